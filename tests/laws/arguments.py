"""What public functions are called with: by the names of their parameters, and, for those that
need something else, by the names of the functions."""

import io
import os
from types import ModuleType

import numpy as np

import phalanx
from phalanx import lax, random
from phalanx.experimental import checkify
from phalanx.scipy import stats
from tests.laws.calls import AXIS, Call, Made, Operand, Sizes, public, required, room_of

ROOMS = (
    "", "experimental.checkify", "image", "lax", "lax.linalg", "nn", "nn.initializers", "numpy",
    "numpy.fft", "numpy.linalg", "ops", "random", "scipy.cluster.vq", "scipy.fft", "scipy.linalg",
    "scipy.ndimage", "scipy.signal", "scipy.sparse.linalg", "scipy.special",
    "scipy.stats",
    *(f"scipy.stats.{n}" for n, m in vars(stats).items() if isinstance(m, ModuleType)
      and n in stats.__all__),
)  # fmt: skip

X = Operand("mn")
V = Operand("n")
S = Operand("")
SQUARE = Operand("nn")
DEFINITE = Operand("nn", diagonal=4)
SORTED = Operand("n", ordered=True)
KEY = Operand("2", np.uint32)
MASK = Operand("mn", bool)


def index(shape, high=2):
    return Operand(shape, np.int32, high)


def reverse(x):
    return x[::-1]


IMAGES, KERNELS = Operand("kmnn"), Operand("3m22")
WHOLE = Made(lambda: phalanx.sharding.SingleDeviceSharding(phalanx.devices()[0]))
PRODUCT = (((1,), (0,)), ((), ()))
GROUPS = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ROWS_OUT = lax.ScatterDimensionNumbers((1,), (0,), (0,))

# what a required parameter of that name takes
PARAMETERS = {
    **dict.fromkeys(
        ["x", "y", "a", "b", "m", "f", "z", "arr", "array", "object", "A", "p", "prototype"], X
    ),
    **dict.fromkeys(["c", "a1", "a2", "ar", "ar1", "ar2", "v", "filt", "ary"], V),
    **dict.fromkeys(
        ["element", "test_elements", "operand", "x1", "x2", "elems", "xs", "init_val"], X
    ),
    **dict.fromkeys(["at_zero", "values", "init", "update", "on_true", "on_false"], X),
    **dict.fromkeys(["lhs", "rhs", "src", "logits", "*cases", "*arys", "value"], X),
    **dict.fromkeys(["xp", "bins"], SORTED),
    **dict.fromkeys(["fp", "*xi"], V),
    **dict.fromkeys(["min", "max", "fill_value", "padding_value", "init_value", "val"], S),
    **dict.fromkeys(["condition", "pred"], MASK),
    **dict.fromkeys(["key", "data"], KEY),
    **{name: [X, X] for name in ("arrays", "tup", "operands", "keys")},
    **dict.fromkeys(["shape", "dims", "dimensions", "new_shape"], (2, 3)),
    **dict.fromkeys(["dtype", "new_dtype"], np.float32),
    **dict.fromkeys(["index_dtype"], np.int32),
    **dict.fromkeys(["N", "M", "n", "repeats", "reps", "size", "rank", "num_classes"], 3),
    **dict.fromkeys(["axis", "axis1", "source", "dimension", "obj", "start_dimension"], 0),
    **dict.fromkeys(["axis2", "destination", "kth", "k", "shift", "pad_width", "seed"], 1),
    **dict.fromkeys(["axes"], (0,)),
    **dict.fromkeys(["fn", "computation"], lax.add),
    "indices_or_sections": [1],
    "exponent": index("mn"),
    "indices": index("k"),
    "start_indices": (index(""), index("")),
    "index": index(""),
    **dict.fromkeys(["alpha", "beta", "df", "kappa", "mu"], X),
    "start_index": index(""),
    "which": MASK,
    "q": 0.5,
    "start": 1.0,
    "stop": 2.0,
    "axis_name": AXIS,
    "split_axis": 0,
    "concat_axis": 0,
}

# Functions that take something else, as ``{room: {names: arguments}}``.
ARGUMENTS = {
    "": {
        "block_until_ready device_get device_put stop_gradient": (X,),
        "closure_convert eval_shape linear_transpose linearize vjp": (reverse, X),
        "checkpoint custom_gradient remat": (reverse,),
        "check explain grad hessian jacfwd jacobian jacrev jit make_jaxpr make_program named_call "
        "pmap shard_map smap value_and_grad verify vmap": (reverse,),
        "plan": (reverse, "v5e:4"),
        "jvp": (reverse, (X,), (X,)),
        "make_array_from_callback": ((2, 3), WHOLE, lambda index: np.ones((2, 3))[index]),
        "make_array_from_process_local_data": (WHOLE, np.ones((2, 3))),
        "make_array_from_single_device_arrays": ((3,), WHOLE, [Made(lambda: phalanx.device_put(
            np.ones(3), phalanx.devices()[0]
        ))]),
        "empty_ref": (phalanx.ShapeDtypeStruct((3,), np.float32),),
        "free_ref freeze": (Made(lambda: phalanx.new_ref(np.ones(3))),),
        "make_mesh": ((1,), ("x",)),
        "named_scope": ("here",),
        "process_rows": (8,),
        "reshard": (X, WHOLE),
        "default_device": (None,),
        "default_prng_impl": ("threefry2x32",),
        "debug_key_reuse no_execution": (False,),
        "legacy_prng_key": ("allow",),
        "numpy_dtype_promotion": ("standard",),
        "numpy_rank_promotion transfer_guard transfer_guard_device_to_device "
        "transfer_guard_device_to_host transfer_guard_host_to_device": ("allow",),
        "default_matmul_precision": ("float32",),
        "device_put_replicated": (X, Made(lambda: phalanx.devices()[:1])),
        "device_put_sharded": ([X], Made(lambda: phalanx.devices()[:1])),
        "io_callback pure_callback": (np.asarray, np.float32(0), Operand("", np.float32)),
    },
    "experimental.checkify": {
        "check debug_check": (True, "there is nothing to say"),
        "check_error": (checkify.init_error,),
        "checkify": (reverse,),
    },
    "lax": {
        "all_to_all": (Operand("2n"), AXIS, 0, 0),
        "approx_max_k approx_min_k top_k": (X, 1),
        "batch_matmul": (Operand("kmn"), Operand("knm")),
        "broadcast": (X, (2,)),
        "broadcast_like": (V, X),
        "broadcast_in_dim": (X, Sizes("kmn"), (1, 2)),
        "broadcast_shapes": ((2, 1), (3,)),
        "clamp": (S, X, S),
        "composite": (reverse, "my.reverse"),
        "cond": (Operand("", bool), reverse, reverse, X),
        "conv conv_general_dilated": (IMAGES, KERNELS, (1, 1), "SAME"),
        "conv_general_dilated_local": (IMAGES, Operand("38nn"), (1, 1), "SAME", (2, 2)),
        "conv_general_dilated_patches": (IMAGES, (2, 2), (1, 1), "SAME"),
        "conv_general_permutations": (("NHWC", "HWIO", "NHWC"),),
        "conv_general_shape_tuple conv_transpose_shape_tuple": (
            (1, 2, 3, 3), (1, 2, 3, 3), (1, 1), "SAME", ("NCHW", "OIHW", "NCHW"),
        ),
        "conv_shape_tuple": ((1, 2, 3, 3), (1, 2, 3, 3), (1, 1), "SAME"),
        "conv_dimension_numbers": ((1, 2, 3, 3), (1, 2, 3, 3), None),
        "conv_transpose": (Operand("knnm"), Operand("22m3"), (2, 2), "SAME"),
        "conv_with_general_padding": (IMAGES, KERNELS, (1, 1), [(0, 1)] * 2, (2, 1), (1, 2)),
        "custom_linear_solve": (lambda x: x + x, X, lambda product, b: b / product(b) * b),
        "custom_root": (
            lambda x: x + x, X, lambda f, x: x - x, lambda slope, y: slope(y) - y - y - y,
        ),
        "dot": (X, Operand("nk")),
        "dot_general": (X, Operand("nk"), PRODUCT),
        "dynamic_slice": (X, (index(""), index("")), Sizes("mn")),
        "dynamic_slice_in_dim": (X, index(""), 1),
        "dynamic_update_index_in_dim": (X, V, index(""), 0),
        "dynamic_update_slice_in_dim": (X, X, index(""), 0),
        "fft": (Operand("mn", np.complex64), "FFT", Sizes("n")),
        "fori_loop": (0, 2, lambda i, x: x[::-1], X),
        "gather": (X, index("k1"), ROWS, Sizes("1n")),
        "index_in_dim": (X, 0),
        "index_take": (X, (index("k"),), (0,)),
        "integer_pow": (X, 2),
        "iota": (np.int32, 3),
        "map": (reverse, X),
        "pad": (X, S, [(0, 1, 0), (1, 0, 1)]),
        "padtype_to_pads": ((3, 3), (2, 2), (1, 1), "SAME"),
        "pbroadcast": (X, AXIS, 0),
        "pcast": (X, AXIS),
        "platform_dependent": (X,),
        "polynomial": (X, [1, 2]),
        "ppermute": (X, AXIS, [(0, 1)]),
        "pshuffle": (X, AXIS, [1, 0]),
        "psum_scatter": (Operand("2n"), AXIS),
        "pswapaxes": (Operand("2n"), AXIS, 0),
        "ragged_all_to_all": (X, X, *[index("2", 1)] * 4),
        "ragged_dot": (X, Operand("knm"), index("k", 2)),
        "ragged_dot_general": (X, Operand("knm"), index("k", 2), GROUPS),
        "reduce_precision": (X, 5, 3),
        "reduce_window_shape_tuple": ((2, 3), (1, 2), (1, 1), "VALID"),
        "scaled_dot": (X, Operand("nk")),
        "scatter_apply": (X, index("k1"), lambda v: v + v, ROWS_OUT),
        "shape_as_value": ((2, 3),),
        "reduce": (X, S, lax.add, (0,)),
        "reduce_window": (X, S, lax.add, (1, 2)),
        "reshape": (X, Sizes("nm")),
        "rev expand_dims": (X, (0,)),
        "rng_bit_generator": (Operand("4", np.uint32), (2, 3)),
        "rng_uniform": (S, S, (2, 3)),
        "scan": (lambda carry, x: (carry, x), V, X),
        "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub": (
            X, index("k1"), Operand("kn"), ROWS_OUT,
        ),
        "slice": (X, (0, 0), Sizes("mn")),
        "slice_in_dim": (X, 0, None),
        "split": (X, Sizes("m")),
        "squeeze": (Operand("1n"), (0,)),
        "sort_key_val": (X, X),
        "switch": (index(""), [reverse, reverse], X),
        "tile": (X, (1, 2)),
        "transpose": (X, (1, 0)),
        "unstack": (X,),
        "with_sharding_constraint": (X, WHOLE),
        "zeta": (X, X),
        "while_loop": (lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1]), (index(""), X)),
    },
    "lax.linalg": {
        "cholesky": (DEFINITE,),
        "eig eigh hessenberg schur tridiagonal": (SQUARE,),
        "cholesky_update": (SQUARE, V),
        "householder_product": (Operand("nm"), Operand("m")),
        "lu qr svd": (X,),
        "lu_pivots_to_permutation": (index("m"), 3),
        "ormqr": (Operand("nm"), Operand("m"), Operand("nk")),
        "qdwh": (Operand("nm"),),
        "symmetric_product": (X, Operand("mm")),
        "triangular_solve": (SQUARE, X),
        "tridiagonal_solve": (V, V, V, Operand("nk")),
    },
    "image": {
        "resize": (X, (4, 2), "linear"),
        "scale_and_translate": (
            X, (4, 2), (0, 1), np.float32([1.5, 0.5]), np.float32([0.5, 0.5]), "linear"
        ),
    },
    "nn": {
        "dot_product_attention": (Operand("mnk3"), Operand("mnk3"), Operand("mnk3")),
        "glu": (Operand("n4"),),
        "one_hot": (index("n"), 4),
        "scaled_matmul": (Operand("kmn"), Operand("k3n"), Operand("km1"), Operand("k3n")),
    },
    "nn.initializers": {
        "constant": (1.0,),
        "ones zeros": (KEY, (2, 3)),
        "variance_scaling": (1.0, "fan_in", "normal"),
    },
    "numpy": {
        "apply_along_axis": (lambda v: v[::-1], 0, X),
        "apply_over_axes": (lambda x, axis: x.sum(axis, keepdims=True), X, (0,)),
        "arange": (5,),
        "bincount": (index("n"),),
        "bartlett blackman hamming hanning": (5,),
        "kaiser": (5, S),
        "frompyfunc": (lambda x, y: x + y, 2, 1),
        "fromfile": (os.devnull, np.uint8),
        "histogram2d": (V, V, 2),
        "histogramdd": (X, 2),
        "isdtype": (np.float32, "numeric"),
        "mask_indices": (3, phalanx.numpy.triu),
        "place": (X, MASK, S),
        "poly polyder polyint roots": (V,),
        "polydiv polysub": (V, Operand("2")),
        "polyfit": (V, V, 1),
        "top_k": (X, 2),
        "broadcast_arrays": (X, V),
        "broadcast_shapes": ((2, 1), (3,)),
        "broadcast_to": (V, Sizes("mn")),
        "can_cast": (np.int8, np.int16),
        "choose": (index("mn"), [X, X]),
        "clip": (X, 1, 2),
        "compress": (Operand("m", bool), X, 0),
        "convolve correlate": (V, V),
        "cumulative_prod cumulative_sum": (V,),
        "cross": (Operand("m3"), Operand("m3")),
        "diag_indices_from": (SQUARE,),
        "dot matmul": (X, Operand("nk")),
        "dsplit": (Operand("mnk"), [1]),
        "einsum einsum_path": ("ij,jk->ik", X, Operand("nk")),
        "fill_diagonal": (X, 1),
        "frombuffer": (b"1234", np.uint8),
        "fromfunction": (lambda i, j: i + j, Sizes("mn")),
        "fromiter": ([1, 2], np.int32),
        "fromstring": ("1 2",),
        "gradient unwrap diff": (X,),
        "insert": (X, 0, S, 0),
        "interp": (X, SORTED, V),
        "issubdtype": (np.int32, np.integer),
        "ix_": (V, V),
        "kron": (V, X),
        "iinfo": (np.int32,),
        "lexsort": ([V, V],),
        "load": (Made(lambda: saved(np.ones(3))),),
        "matvec": (X, V),
        "pad": (X, 1),
        "piecewise": (X, [MASK], [lambda x: x + x, 0]),
        "polyval": (V, X),
        "get_printoptions printoptions set_printoptions": (),
        "promote_types": (np.int8, np.float16),
        "put": (X, index("k"), Operand("k")),
        "put_along_axis": (X, index("mn"), X, 1),
        "ravel_multi_index": ((index("n"), index("n")), (2, 3)),
        "result_type": (X, np.float32),
        "reshape": (X, Sizes("nm")),
        "save savez": (Made(io.BytesIO), X),
        "searchsorted": (SORTED, X),
        "select": ([MASK, MASK], [X, X]),
        "take_along_axis": (X, index("mn"), 1),
        "unravel_index": (index("n", 6), (2, 3)),
        "vander": (V,),
        "vecmat": (Operand("m"), X),
        "vectorize": (reverse,),
        "hsplit split vsplit array_split": (X, [1]),
        "where": (MASK, X, X),
    },
    "numpy.fft": {"fftfreq rfftfreq": (4,), "fft2 ifft2 rfft2 irfft2": (X,)},
    "numpy.linalg": {
        "cholesky": (DEFINITE,),
        "det eig eigh eigvals eigvalsh inv slogdet": (SQUARE,),
        "lstsq": (Operand("nm"), V),
        "matrix_rank": (X,),
        "solve": (SQUARE, V),
        "svd": (X, False),
        "tensorinv": (Operand("mnmn"),),
        "tensorsolve": (Operand("mnmn"), X),
        "cross": (Operand("m3"), Operand("m3")),
        "matmul": (X, Operand("nk")),
        "matrix_power": (SQUARE, 2),
        "multi_dot": ([X, Operand("nk")],),
    },
    "scipy.cluster.vq": {"vq": (X, Operand("kn"))},
    "scipy.ndimage": {"map_coordinates": (X, [V, V], 1)},
    "scipy.signal": {
        "convolve correlate convolve2d correlate2d fftconvolve": (X, Operand("22")),
        "csd": (V, V),
        "detrend": (V,),
        "istft": (Operand("5k", np.complex64),),
        "stft welch": (V,),
    },
    "ops": {
        "segment_max segment_min segment_prod segment_sum": (X, index("m"), 3),
    },
    "scipy.sparse.linalg": {"bicgstab cg gmres": (DEFINITE, V)},
    "scipy.special": {
        "bessel_jn": (X,),
        "boxcox boxcox1p": (X, X),
        "comb": (X, X),
        "expn": (index("mn"), X),
        "kl_div rel_entr": (X, X),
        "lpmn": (2, 3, V),
        "lpmn_values": (2, 3, V, True),
        "multigammaln": (X, 1),
        "owens_t": (X, X),
        "sph_harm_y": (index("mn"), index("mn"), X, X),
    },
    "scipy.stats": {"mode rankdata sem": (X,)},
    "scipy.stats.dirichlet": {"logpdf pdf": (X, Operand("m"))},
    "scipy.stats.multinomial": {"logpmf pmf": (index("mn"), 3, V)},
    "scipy.stats.multivariate_normal": {"logpdf pdf": (X, V, DEFINITE)},
    "scipy.linalg": {
        "block_diag": (X, V),
        "cho_factor cholesky expm hessenberg schur sqrtm": (DEFINITE,),
        "cho_solve": ((DEFINITE, False), V),
        "companion fiedler fiedler_companion": (Operand("4"),),
        "convolution_matrix": (Operand("2"), 3),
        "det eigh inv lu_factor": (DEFINITE,),
        "eigh_tridiagonal": (Operand("3"), Operand("2")),
        "expm_frechet rsf2csf": (DEFINITE, SQUARE),
        "funm": (DEFINITE, phalanx.numpy.exp),
        "hadamard": (4,),
        "leslie": (Operand("3"), Operand("2")),
        "lu qr polar": (X,),
        "lu_solve": ((DEFINITE, index("n", 3)), V),
        "qr_multiply": (Operand("nm"), Operand("kn")),
        "solve solve_triangular": (DEFINITE, V),
        "solve_sylvester": (DEFINITE, DEFINITE, SQUARE),
        "svd": (X, False),
    },
    "random": {
        "categorical choice permutation": (KEY, X),
        "clone key_data key_impl": (Made(lambda: random.key(0)),),
        "fold_in": (KEY, 1),
        "randint": (KEY, (2, 3), 0, 5),
        "define_prng_impl key_dtype": (),
        "truncated_normal": (KEY, -1.0, 1.0),
        "wrap_key_data": (KEY,),
        "ball": (KEY, 3),
        "beta f double_sided_maxwell weibull_min": (KEY, 1.0, 2.0),
        "binomial": (KEY, 5.0, 0.5),
        "chisquare gamma generalized_normal loggamma pareto poisson rayleigh t wald": (KEY, 2.0),
        "dirichlet": (KEY, V),
        "geometric": (KEY, 0.5),
        "multinomial": (KEY, 5.0, V),
        "multivariate_normal": (KEY, V, DEFINITE),
        "orthogonal": (KEY, 3),
        "triangular": (KEY, 0.0, 0.5, 1.0),
    },
}  # fmt: skip

# What some need besides, by keyword.
KEYWORDS = {
    "random.define_prng_impl": {
        "key_shape": (),
        "name": "reversed",
        **dict.fromkeys(["seed", "split", "random_bits", "fold_in"], reverse),
    },
    "scipy.special.bessel_jn": {"v": 3},
    ".pure_callback": {"vmap_method": "sequential"},
    ".smap": {"in_axes": None, "out_axes": None, "axis_name": "x"},
    ".shard_map": {"in_specs": phalanx.P(), "out_specs": phalanx.P()},
    "lax.pcast": {"to": "varying"},
    "lax.platform_dependent": {"default": reverse},
    "lax.ragged_all_to_all": {"axis_name": AXIS},
    "lax.scatter_apply": {"update_shape": Sizes("kn")},
    "numpy.fill_diagonal": {"inplace": False},
    "numpy.place": {"inplace": False},
    "numpy.roots": {"strip_zeros": False},
    "numpy.fromstring": {"sep": " "},
    "numpy.put": {"inplace": False},
    "numpy.put_along_axis": {"inplace": False},
}


# Those that refuse floating-point numbers.
ONLY = {
    np.int32: {
        "lax": "bitwise_and bitwise_not bitwise_or bitwise_xor clz mulhi population_count "
        "reduce_and reduce_or reduce_xor shift_left shift_right_arithmetic shift_right_logical",
        "numpy": "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
        "bitwise_or bitwise_right_shift bitwise_xor gcd invert lcm left_shift packbits right_shift",
    },
    np.complex64: {"lax": "imag real"},
    np.uint8: {"numpy": "unpackbits"},
}


def saved(array):
    """A file that holds an array."""
    file = io.BytesIO()
    np.save(file, array)
    file.seek(0)
    return file


def calls():
    """An example of every public function; where there is none, ``args`` is None."""
    return [
        Call(
            room, name, arguments(room, name), KEYWORDS.get(f"{room}.{name}", {}), dtype(room, name)
        )
        for room in ROOMS
        for name in public(room)
    ]


def arguments(room, name):
    """Those listed for the function, or what its required parameters take by their names."""
    for names, args in ARGUMENTS.get(room, {}).items():
        if name in names.split():
            return args
    parameters = required(getattr(room_of(room), name))
    if parameters == () and room == "numpy":  # a dtype, which converts
        return (X,)
    known = all(p in PARAMETERS for p in parameters)
    return tuple(PARAMETERS[p] for p in parameters) if known else None


def dtype(room, name):
    """The dtype of operands that the function takes for certain."""
    only = (t for t, names in ONLY.items() if name in names.get(room, "").split())
    return next(only, np.float32)
