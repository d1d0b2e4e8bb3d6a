"""phalanx.lax against jax.lax: values, dtypes, derivatives, vectorization."""

import itertools

import jax
import numpy as np
import pytest
from jax import lax as jax_lax

import phalanx
from phalanx import lax

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.uniform(0.1, 0.9, shape).astype(np.float32)


def i32(*shape, low=-9, high=9):
    return RNG.integers(low, high, shape).astype(np.int32)


def bools(*shape):
    return RNG.integers(0, 2, shape).astype(bool)


def c64(*shape):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)


class Case:
    """A function of a lax module and arrays, and arrays to try it on."""

    def __init__(self, name, function, *args):
        self.name, self.function, self.args = name, function, args

    def __call__(self, L, *args):
        out = self.function(L, *args)
        return list(out) if isinstance(out, (tuple, list)) else [out]

    def pull(self, L, vjp, args, cts):
        """Floating-point results, and the cotangents of floating-point arguments."""
        floats = [a for a in args if a.dtype.kind == "f"]

        def of_floats(*xs):
            found = iter(xs)
            whole = [next(found) if a.dtype.kind == "f" else a for a in args]
            return [y for y in self(L, *whole) if y.dtype.kind == "f"]

        if not floats or not jax.eval_shape(lambda: self(jax_lax, *self.args)):
            return []
        out, back = vjp(of_floats, *floats)
        found = iter(cts)
        return [*out, *back([next(found)[: y.size].reshape(y.shape).astype(y.dtype) for y in out])]


case = Case


def same(name, actual, expected, tolerance=3e-5):
    assert len(actual) == len(expected), name
    for x, y in zip(actual, expected, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype), name
        if x.dtype.kind in "fc":
            np.testing.assert_allclose(x, y, tolerance, tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(x, y, err_msg=name)


def on_all(jit, cases, function):
    """One compiled program of ``function(case, args)`` for all cases: faster than many."""
    return jit(lambda args: [function(c, a) for c, a in zip(cases, args, strict=True)])(
        [c.args for c in cases]
    )


def words(text):
    return text.split()


UNARY = [
    *words("abs neg sign square reciprocal floor ceil round sqrt rsqrt cbrt exp exp2 expm1 log"),
    *words("log1p logistic sin cos tan asin acos atan sinh cosh tanh asinh atanh erf erfc"),
    *words("erf_inv lgamma digamma"),
]


def highest(name):
    return lambda L, x: getattr(L, name)(x, accuracy=L.AccuracyMode.HIGHEST)


BITS = words("bitwise_and bitwise_or bitwise_xor")
SHIFTS = words("shift_left shift_right_arithmetic shift_right_logical")
COMPARISONS = words("eq ne lt le gt ge")


def call(name, *rest, **options):
    return lambda L, *xs: getattr(L, name)(*xs, *rest, **options)


ELEMENTWISE = [
    *(case(n, call(n), f32(2, 3)) for n in UNARY),
    case("acosh", call("acosh"), f32(2, 3) + 1),
    case("integer_pow", call("integer_pow", 3), f32(3)),
    case("integer_pow negative", call("integer_pow", -2), f32(3)),
    case("is_finite", call("is_finite"), np.float32([1, np.inf, np.nan])),
    case("round away", call("round"), np.float32([0.5, 1.5, -2.5])),
    case("round even", lambda L, x: L.round(x, L.RoundingMethod(1)), np.float32([0.5, 1.5, -2.5])),
    *(case(n, call(n), c64(3)) for n in ("real", "imag", "conj", "abs")),
    case("conj of reals", call("conj"), f32(3)),
    *(case(n, call(n), i32(4)) for n in ("bitwise_not", "population_count", "clz", "sign")),
    *(case(n, call(n), f32(2, 3), f32(2, 3)) for n in words("add sub mul div rem pow atan2")),
    *(case(n, call(n), f32(2, 3), f32(2, 3)) for n in words("max min nextafter complex")),
    *(case(f"{n} of integers", call(n), i32(5), i32(5) | 1) for n in words("add sub mul div rem")),
    case("pow by integers", call("pow"), f32(3), i32(3)),
    case("pow by 3", call("pow", 3), f32(3)),
    *(case(n, call(n), i32(5), i32(5)) for n in BITS),
    *(case(f"{n} of bools", call(n), bools(5), bools(5)) for n in BITS),
    *(case(n, call(n), i32(5), i32(5, low=0)) for n in SHIFTS),
    *(case(n, call(n), np.int32([0, 1, 2]), np.int32([1, 1, 1])) for n in COMPARISONS),
    *(case(f"{n} of unsigned", call(n), *np.uint32([[2**31, 7], [7, 7]])) for n in COMPARISONS),
    case("add of a scalar", call("add", 2.0), f32(2, 3)),
    case("add of rank 0", call("add"), f32(2, 3), f32()),
    case("add of length 1", call("add"), f32(2, 3), f32(2, 1)),
    case("select", call("select"), bools(2, 3), f32(2, 3), f32(2, 3)),
    case("select by a scalar", call("select"), np.bool_(True), f32(2, 3), f32(2, 3)),
    case("select_n", call("select_n"), i32(6, low=0, high=3), f32(6), f32(6), f32(6)),
    case("select_n of bools", call("select_n"), bools(6), f32(6), f32(6)),
    *(case(f"{n} of an accuracy", highest(n), f32(2, 3)) for n in words("exp log tanh")),
    case("reduce_precision", call("reduce_precision", 5, 3), f32(9) * 1e6),
    case("mul of a dtype", call("mul", out_dtype=np.int32), *[np.int8([100, -100])] * 2),
    case("clamp", lambda L, x: L.clamp(0.3, x, 0.6), f32(9)),
    case("clamp by arrays", call("clamp"), f32(9) / 2, f32(9), f32(9) / 2 + 0.5),
]

STRUCTURE = [
    case("convert", call("convert_element_type", np.int32), f32(3) * 9),
    case("convert to bfloat16", call("convert_element_type", "bfloat16"), f32(3)),
    case("convert to bool", call("convert_element_type", bool), np.float32([0, 0.5])),
    case("bitcast", call("bitcast_convert_type", np.int16), f32(2, 3)),
    case("full", lambda L: L.full((2, 3), 1.5)),
    case("full of a dtype", lambda L: L.full((2,), 3, np.float32)),
    case("full_like", call("full_like", 2), f32(2, 3)),
    case("iota", lambda L: L.broadcasted_iota(np.float32, (2, 3), 1)),
    case("broadcast", call("broadcast", (2, 1)), f32(3)),
    case("broadcast_in_dim", call("broadcast_in_dim", (2, 3, 4), (0, 2)), f32(2, 1)),
    case("tile", call("tile", (2, 3)), f32(2, 2)),
    case("reshape", call("reshape", (3, 2), (1, 0)), f32(2, 3)),
    case("collapse", call("collapse", 1, 3), f32(2, 3, 4)),
    case("transpose", call("transpose", (2, 0, 1)), f32(2, 3, 4)),
    case("rev", call("rev", (0, 2)), f32(2, 3, 4)),
    case("expand_dims", call("expand_dims", (0, -1)), f32(3)),
    case("squeeze", call("squeeze", (0, 2)), f32(1, 3, 1)),
    case("concatenate", lambda L, *xs: L.concatenate(xs, 1), f32(2, 1), f32(2, 3), f32(2, 2)),
    case("stack", lambda L, *xs: L.stack(xs, 1), f32(2, 3), f32(2, 3)),
    case("split", call("split", (1, 2), 1), f32(2, 3)),
    case("pad", call("pad", [(1, 2, 1), (0, 1, 0)]), f32(2, 3), f32()),
    case("pad, negative", call("pad", [(-1, 3, 2), (2, -2, 0)]), f32(3, 4), f32()),
    case("slice", call("slice", (1, 0), (4, 3), (2, 1)), f32(5, 3)),
    case("slice_in_dim", call("slice_in_dim", 1, -1, 2, 1), f32(2, 7)),
    case("index_in_dim", call("index_in_dim", -2, 1, False), f32(2, 5)),
    case("dynamic_slice", call("dynamic_slice", (2, 3)), f32(4, 5), np.int32([1, 4])),
    case("dynamic_slice, negative", lambda L, x: L.dynamic_slice(x, (-3, 0), (2, 2)), f32(4, 5)),
    case("dynamic_slice_in_dim", call("dynamic_slice_in_dim", 2, 1), f32(4, 5), np.int32(-4)),
    case("dynamic_index_in_dim", call("dynamic_index_in_dim", 1, False), f32(4, 5), np.int8(2)),
    case(
        "dynamic_update_slice", call("dynamic_update_slice"), f32(4, 5), f32(2, 2), np.int32([3, 1])
    ),
    case(
        "dynamic_update_index",
        call("dynamic_update_index_in_dim", 1),
        f32(4, 5),
        f32(4),
        np.int32(2),
    ),
]

REDUCTIONS = [
    *(case(n, call(n, (0, 2)), f32(2, 3, 4)) for n in words("reduce_sum reduce_max reduce_min")),
    case("reduce_prod", call("reduce_prod", (1,)), f32(2, 3)),
    *(case(n, call(n, (0,)), bools(4, 3)) for n in words("reduce_and reduce_or")),
    case("reduce_xor", call("reduce_xor", (0,)), i32(4, 3)),
    *(case(n, call(n, 1, np.int32), f32(4, 5)) for n in words("argmax argmin")),
    *(
        case(f"{n} {reverse}", call(n, 1, reverse), f32(2, 5))
        for n in words("cumsum cumprod cummax cummin cumlogsumexp")
        for reverse in (False, True)
    ),
    case("reduce add", lambda L, x: L.reduce(x, 0.0, L.add, (1,)), f32(2, 5)),
    case("reduce max, init", lambda L, x: L.reduce(x, np.float32(0.5), L.max, (1,)), f32(2, 5)),
    case("reduce mul", lambda L, x: L.reduce(x, np.float32(2), L.mul, (0, 1)), f32(2, 3)),
    case("reduce and", lambda L, x: L.reduce(x, np.int32(-1), L.bitwise_and, (0,)), i32(5)),
    case("sort", call("sort", 0), f32(5, 3)),
    case(
        "sort with values",
        lambda L, *xs: L.sort(xs, num_keys=2),
        i32(9, low=0, high=3),
        i32(9),
        f32(9),
    ),
    case("sort_key_val", call("sort_key_val"), f32(5), i32(5)),
    case("top_k", call("top_k", 2), f32(3, 5)),
    case("top_k along an axis", call("top_k", 2, axis=0), f32(5, 3)),
    case("approx_max_k", call("approx_max_k", 2), f32(3, 5)),
    case("approx_min_k along an axis", call("approx_min_k", 2, 0), f32(5, 3)),
]


def window(L, x, how="max", *rest, init=None, **options):
    init = {"max": -np.inf, "min": np.inf, "add": 0.0}[how] if init is None else init
    return L.reduce_window(x, np.float32(init), getattr(L, how), *rest, **options)


def pool(*rest, **options):
    return lambda L, x: window(L, x, *rest, **options)


WINDOWS = [
    case("max", pool("max", (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), f32(1, 5, 5, 2)),
    case("min", pool("min", (2, 3)), f32(4, 5)),
    case("add", pool("add", (2, 3), (1, 2), ((1, 0), (2, 1))), f32(4, 5)),
    case("max, init", pool("max", (2,), (1,), ((1, 1),), init=0.5), f32(6)),
    *(
        case(
            f"{how}, dilated",
            pool(how, (2, 2), (2, 1), ((2, 1), (-1, 2)), (2, 1), (1, 2)),
            f32(4, 5),
        )
        for how in words("max min add")
    ),
]


def dot(contract, batch=((), ()), **options):
    return call("dot_general", (contract, batch), **options)


def ragged(*dims, **options):
    return lambda L, x, y, sizes: L.ragged_dot_general(
        x, y, sizes, L.RaggedDotDimensionNumbers(*dims), **options
    )


def algorithm(name):
    return lambda L, x, y: L.dot(x, y, precision=L.DotAlgorithmPreset[name])


DOTS = [
    case("vectors", call("dot"), f32(3), f32(3)),
    case("matrix and vector", call("dot"), f32(2, 3), f32(3)),
    case("matrices", call("dot"), f32(2, 3), f32(3, 4)),
    case("batch_matmul", call("batch_matmul"), f32(5, 2, 3), f32(5, 3, 4)),
    case("outer", dot(((), ())), f32(2), f32(3)),
    case("crossed", dot(((2, 0), (0, 2))), f32(4, 2, 3), f32(3, 5, 4)),
    case("batches", dot(((3,), (1,)), ((0, 2), (2, 0))), f32(2, 3, 4, 5), f32(4, 5, 2, 6)),
    case("empty", dot(((1,), (0,))), f32(2, 0), f32(0, 3)),
    case("rows in groups", call("ragged_dot"), f32(7, 3), f32(4, 3, 2), np.int32([2, 0, 3, 1])),
    case("few rows in groups", call("ragged_dot"), f32(2, 3), f32(4, 3, 2), np.int32([0, 1, 0, 1])),
    case("more rows than groups say", call("ragged_dot"), f32(9, 3), f32(1, 3, 2), np.int32([4])),
    case(
        "rows in groups, outer",
        ragged((((2,), (2,)), ((), ())), [1], [0]),
        f32(2, 6, 3),
        f32(2, 4, 3),
        np.int32([[2, 4], [5, 1]]),
    ),
    case(
        "rows in groups, batched",
        ragged((((0,), (2,)), ((1,), (0,))), [2], [1]),
        f32(3, 2, 6),
        f32(2, 4, 3, 2),
        np.int32([[2, 1, 1, 1], [0, 0, 5, 1]]),
    ),
    case(
        "sums by groups",
        ragged((((1,), (0,)), ((), ())), [1], []),
        f32(3, 6),
        f32(6, 2),
        np.int32([2, 0, 3]),
    ),
    case(
        "sums by groups, outer",
        ragged((((1, 2), (2, 1)), ((0,), (0,))), [2], []),
        f32(2, 2, 6, 3),
        f32(2, 6, 2, 2),
        RNG.integers(0, 3, (2, 2, 3)).astype(np.int32),
    ),
    case(
        "batches in groups",
        ragged((((2,), (1,)), ((0,), (0,))), [0], []),
        f32(5, 2, 3),
        f32(5, 3, 2),
        np.int32([2, 3]),
    ),
    *(
        case(f"algorithm {n}", algorithm(n), f32(2, 3), f32(3, 2))
        for n in words("DEFAULT F32_F32_F32 BF16_BF16_F32_X6")
    ),
    case("promoted", call("dot"), f32(2, 3), i32(3)),
    case(
        "integers",
        dot(((1,), (0,)), preferred_element_type=np.int32),
        np.int8([[100, 100]]),
        np.int8([[100], [100]]),
    ),
]


def conv(strides, padding, *rest, **options):
    return call("conv_general_dilated", strides, padding, *rest, **options)


def patches(*rest, **options):
    return call("conv_general_dilated_patches", *rest, **options)


NHWC = ("NHWC", "HWIO", "NHWC")
CONVOLUTIONS = [
    case("plain", call("conv", (1, 1), "VALID"), f32(2, 3, 5, 5), f32(4, 3, 3, 2)),
    case(
        "same, NHWC", conv((2, 1), "SAME", dimension_numbers=NHWC), f32(2, 6, 5, 3), f32(3, 3, 3, 4)
    ),
    case("same lower", conv((2,), "SAME_LOWER"), f32(1, 2, 7), f32(3, 2, 4)),
    case(
        "dilated", conv((2, 1), [(1, 2), (0, 3)], (1, 2), (2, 1)), f32(1, 2, 7, 4), f32(3, 2, 2, 3)
    ),
    case("cropped", conv((1,), [(-1, -2)]), f32(1, 2, 9), f32(3, 2, 3)),
    case("strides leave a rest", conv((3,), [(0, 0)]), f32(2, 2, 9), f32(3, 2, 2)),
    case("feature groups", conv((2,), [(1, 1)], feature_group_count=2), f32(2, 4, 7), f32(6, 2, 3)),
    case(
        "depthwise",
        conv((1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=3),
        f32(2, 4, 4, 3),
        f32(2, 2, 1, 6),
    ),
    case(
        "batch groups",
        conv((1,), [(2, 1)], (2,), (1,), batch_group_count=2),
        f32(4, 3, 5),
        f32(6, 3, 2),
    ),
    case(
        "odd order",
        conv((1, 2), "VALID", dimension_numbers=("CWNH", "WOHI", "HNCW")),
        f32(3, 6, 2, 5),
        f32(2, 4, 3, 3),
    ),
    case("no space", conv((), ()), f32(2, 3), f32(4, 3)),
    case(
        "spatial dimensions of rhs in another order",
        conv((1, 2), [(0, 1), (2, 0)], dimension_numbers=("NHWC", "WHIO", "NWHC")),
        f32(2, 6, 5, 3),
        f32(2, 3, 3, 2),
    ),
    case(
        "transposed, padded as the other",
        call("conv_transpose", (2,), [(1, 0)], (2,), use_consistent_padding=True),
        f32(2, 4, 3),
        f32(3, 3, 2),
    ),
    *(
        case(f"patches {order}", patches((2, 3), (2, 1), *rest, dimension_numbers=order), x)
        for order, x, rest in [
            (None, f32(2, 3, 5, 4), ("SAME",)),
            (("NHCW", "OIWH", "CNHW"), f32(2, 5, 3, 4), ([(1, 0), (0, 2)], (1, 2), (2, 1))),
        ]
    ),
    case(
        "local",
        call("conv_general_dilated_local", (2,), [(1, 0)], (3,)),
        f32(2, 2, 6),
        f32(4, 6, 3),
    ),
    case(
        "local, NHWC",
        call(
            "conv_general_dilated_local",
            (1, 2),
            "VALID",
            (2, 3),
            (1, 1),
            (2, 1),
            ("NHWC", "HWIO", "NHWC"),
        ),
        f32(1, 4, 5, 2),
        f32(2, 2, 12, 3),
    ),
    *(
        case(
            f"transposed {padding} {k} {s}",
            call("conv_transpose", (s,), padding, transpose_kernel=t),
            f32(2, 4, 3),
            f32(k, 3 - t, 2 + t),
        )
        for padding, k, s, t in [
            ("SAME", 3, 2, 0),
            ("SAME", 4, 3, 0),
            ("VALID", 2, 3, 0),
            ("SAME", 5, 2, 1),
            ([(1, 2)], 3, 2, 0),
        ]
    ),
]


def numbers(L, cls, *dims):
    return getattr(L, cls)(*dims)


def gather(dims, sizes, **options):
    return lambda L, x, i: L.gather(
        x, i, numbers(L, "GatherDimensionNumbers", *dims), sizes, **options
    )


def scatter(name, dims, **options):
    return lambda L, x, i, u: getattr(L, name)(
        x, i, u, numbers(L, "ScatterDimensionNumbers", *dims), **options
    )


ROWS = ((1,), (0,), (0,))
WINDOW = ((1, 2), (), (0, 1))
BATCHED = ((2,), (2,), (1, 2), (0,), (0,))
ROW_INDICES = np.int32([[2], [0], [7], [2], [-1]])
PLACES = np.int32([[1, 1], [2, 4], [0, 2]])
BATCHED_INDICES = np.int32([[[1, 0], [2, 3]], [[0, 1], [3, 3]]])
DISTINCT = np.int32([[2], [0], [7]])
GATHERS = [
    case("rows", gather(ROWS, (1, 4)), f32(3, 4), ROW_INDICES),
    case("rows, fill", gather(ROWS, (1, 4), mode="fill"), f32(3, 4), ROW_INDICES),
    case("rows, clip", gather(ROWS, (1, 4), mode="clip"), f32(3, 4), ROW_INDICES),
    case("rows, 0.5", gather(ROWS, (1, 4), mode="fill", fill_value=0.5), f32(3, 4), ROW_INDICES),
    case("rows of integers", gather(ROWS, (1, 4), mode="fill"), i32(3, 4), ROW_INDICES),
    case(
        "rows of unsigned",
        gather(ROWS, (1, 4), mode="fill"),
        i32(3, 4).astype(np.uint8),
        ROW_INDICES,
    ),
    case("narrow indices", gather(ROWS, (1, 2), mode="fill"), f32(200, 2), np.int8([[-5], [127]])),
    case("windows, fill", gather(WINDOW, (2, 2), mode="fill"), f32(4, 5), PLACES),
    case("windows, clip", gather(WINDOW, (2, 2), mode="clip"), f32(4, 5), PLACES),
    case("batched", gather(BATCHED, (1, 2, 1), mode="clip"), f32(2, 5, 4), BATCHED_INDICES),
]
SCATTERS = [
    *(
        case(
            f"{n} {mode}",
            scatter(n, ROWS, mode=mode, unique_indices=True),
            f32(3, 4),
            DISTINCT,
            f32(3, 4),
        )
        for n in words("scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max")
        for mode in ("drop",)
    ),
    case("scatter, repeated", scatter("scatter", ROWS), f32(3, 4), ROW_INDICES, f32(5, 4)),
    case("scatter, clip", scatter("scatter", ROWS, mode="clip"), f32(3, 4), ROW_INDICES, f32(5, 4)),
    *(
        case(f"{n}, repeated", scatter(n, ROWS), f32(3, 4), ROW_INDICES, f32(5, 4))
        for n in words("scatter_add scatter_min scatter_max")
    ),
    case("windows", scatter("scatter_add", WINDOW), f32(4, 5), PLACES, f32(3, 2, 2)),
    case(
        "windows, clip",
        scatter("scatter_add", WINDOW, mode="clip"),
        f32(4, 5),
        PLACES,
        f32(3, 2, 2),
    ),
    case("batched", scatter("scatter_add", BATCHED), f32(2, 5, 4), BATCHED_INDICES, f32(2, 2, 2)),
    case("integers", scatter("scatter_max", ROWS), i32(3, 4), ROW_INDICES, i32(5, 4)),
]

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "structure": STRUCTURE,
    "reductions": REDUCTIONS,
    "windows": WINDOWS,
    "dots": DOTS,
    "convolutions": CONVOLUTIONS,
    "gathers": GATHERS,
    "scatters": SCATTERS,
}
NO_DERIVATIVE = {  # none, or a doubtful one, in one of the two
    "nextafter", "max, init", "max, dilated", "min, dilated", "rows", "sums by groups",
    "sums by groups, outer", "batches in groups",
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_values(name):
    cases = FAMILIES[name]
    found = on_all(phalanx.jit, cases, lambda c, args: c(lax, *args))
    expected = on_all(jax.jit, cases, lambda c, args: c(jax_lax, *args))
    for c, x, y in zip(cases, found, expected, strict=True):
        same(c.name, x, y)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives(family):
    cases = [c for c in FAMILIES[family] if c.name not in NO_DERIVATIVE]
    cts = [f32(999), f32(999)]
    found = on_all(phalanx.jit, cases, lambda c, args: c.pull(lax, phalanx.vjp, args, cts))
    expected = on_all(jax.jit, cases, lambda c, args: c.pull(jax_lax, jax.vjp, args, cts))
    for c, x, y in zip(cases, found, expected, strict=True):
        same(c.name, x, y, 1e-4)


def lanes(x):
    return np.stack([x, x[::-1] if x.dtype.kind == "i" else 1 - x, x], -1)


def mapped(c, args, chosen):
    axes = [-1 if m else None for m in chosen]
    return phalanx.vmap(lambda *xs: c(lax, *xs), axes)(*args)


def looped(c, args, chosen):
    one_by_one = [
        c(
            lax,
            *(
                lax.index_in_dim(x, i, -1, False) if m else x
                for x, m in zip(args, chosen, strict=True)
            ),
        )
        for i in range(3)
    ]
    return [lax.stack(ys) for ys in zip(*one_by_one, strict=True)]


@pytest.mark.parametrize("family", ["dots", "convolutions", "gathers", "scatters"])
def test_vectorized(family):
    chosen = [
        (c, m) for c in FAMILIES[family] for m in itertools.product([0, 1], repeat=len(c.args))
    ]
    chosen = [(c, m) for c, m in chosen if any(m)]
    cases = [
        Case(f"{c.name} {m}", m, *(lanes(a) if k else a for a, k in zip(c.args, m, strict=True)))
        for c, m in chosen
    ]
    whole = dict(zip(cases, chosen, strict=True))
    found = on_all(phalanx.jit, cases, lambda c, args: mapped(whole[c][0], args, c.function))
    expected = on_all(phalanx.jit, cases, lambda c, args: looped(whole[c][0], args, c.function))
    for c, x, y in zip(cases, found, expected, strict=True):
        same(c.name, x, y, 1e-4)
