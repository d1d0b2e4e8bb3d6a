"""Every parameter of the public library that is a dimension, a length or a number of something.

``PARAMETERS`` lists them by signature; ``call`` gives a call of the function in which one of them
is left open, with other arguments that fit.
"""

import inspect

import numpy as np

import phalanx.numpy as jnp
from phalanx import image, lax, nn, ops, random
from phalanx.scipy import fft, integrate, linalg, signal, special, stats

MODULES = {
    "numpy": jnp, "numpy.linalg": jnp.linalg, "numpy.fft": jnp.fft, "lax": lax, "nn": nn,
    "nn.initializers": nn.initializers, "random": random, "image": image, "ops": ops,
    "scipy.fft": fft, "scipy.integrate": integrate, "scipy.linalg": linalg,
    "scipy.signal": signal, "scipy.special": special, "scipy.stats": stats,
}  # fmt: skip
# a number, and several where a function takes them
NAMES = {
    "axis": (1, (0, 1)), "axes": (None, (0, 1)), "axis1": (0, None), "axis2": (1, None),
    "batch_dims": (None, (0,)), "broadcast_dimensions": (None, (0, 1)), "decimals": (1, None),
    "destination": (0, (0, 1)), "dimension": (1, None), "dimensions": (None, (0, 1)),
    "dims": (None, (2, 3)), "freq_axis": (0, None), "k": (1, None), "length": (3, None),
    "M": (3, None), "N": (3, None), "n": (2, None), "ndim": (2, None), "ndmin": (3, None),
    "new_sizes": (None, (3, 2)), "newshape": (6, (3, 2)), "nfft": (8, None),
    "noverlap": (1, None), "nperseg": (4, None), "num": (2, (2, 3)), "num_classes": (3, None),
    "num_segments": (3, None), "offset": (1, None), "permutation": (None, (1, 0)),
    "reps": (2, (2, 1)), "s": (None, (2, 3)), "shape": (3, (3, 3)),
    "size": (2, None), "sizes": (None, (2, 3)), "slice_sizes": (None, (1, 2)),
    "source": (1, (0, 1)), "time_axis": (-1, None), "total_repeat_length": (6, None),
}  # fmt: skip
X = np.float32([[2.0, 0.25, 0.5], [0.25, 3, 0.5], [0.5, 0.5, 4]])


def functions():
    for place, module in MODULES.items():
        for name in module.__all__:
            f = getattr(module, name)
            if callable(f) and not inspect.isclass(f):
                yield f"{place}.{name}", f


def parameters_of(f):
    try:
        return inspect.signature(f).parameters
    except ValueError:  # a type that is no class, before Python 3.13
        return {}


PARAMETERS = {
    (name, parameter): f
    for name, f in functions()
    for parameter in parameters_of(f)
    if parameter in NAMES
}

# arguments of functions that do not take X in each of their places; of one parameter of several
V, ROWS, B = X[0], np.int32([0, 1, 1]), X > 0.4
KEY = random.key(3)
IN_DIMENSION = dict(operand=X, index=0, start_index=0, slice_size=1, limit_index=1, update=X[:1])
SEGMENTS = dict(data=X, segment_ids=ROWS)
ARGUMENTS = {
    "numpy.apply_along_axis": dict(func1d=jnp.sum, arr=X),
    "numpy.apply_over_axes": dict(func=jnp.sum, a=X),
    "numpy.array_split": dict(ary=X, indices_or_sections=2),
    "numpy.bincount": dict(x=ROWS),
    "numpy.compress": dict(condition=B[0], a=X),
    "numpy.delete": dict(arr=X, obj=0),
    "numpy.diag_indices": dict(n=2),
    "numpy.eye": dict(N=3),
    "numpy.fromfunction": dict(function=jnp.add),
    "numpy.insert": dict(arr=X, obj=0, values=1.0),
    "numpy.lexsort": dict(keys=(X, X)),
    "numpy.mask_indices": dict(n=3, mask_func=jnp.triu),
    "numpy.moveaxis": dict(a=X),
    "numpy.packbits": dict(a=B),
    "numpy.polyint": dict(p=V),
    "numpy.put_along_axis": dict(arr=X, indices=np.int32([[0]]), values=1.0, inplace=False),
    "numpy.ravel_multi_index": dict(multi_index=(ROWS, ROWS)),
    "numpy.repeat": dict(a=X, repeats=2),
    "numpy.split": dict(ary=X, indices_or_sections=3),
    "numpy.squeeze": dict(a=X[:1, :1]),
    "numpy.take": dict(a=X, indices=0),
    "numpy.take_along_axis": dict(arr=X, indices=np.int32([[0]])),
    "numpy.top_k": dict(a=X, k=1),
    "numpy.tri": dict(N=3),
    "numpy.tril_indices": dict(n=3),
    "numpy.triu_indices": dict(n=3),
    "numpy.unpackbits": dict(a=np.uint8(X)),
    "numpy.unravel_index": dict(indices=ROWS),
    "numpy.vander": dict(x=V),
    "numpy.linalg.tensorsolve": dict(a=X, b=V),
    "scipy.special.lpmn": dict(m=2, z=V / 5),
    "scipy.special.lpmn_values": dict(m=2, z=V / 5, is_normalized=False),
    "random.multivariate_normal": dict(key=KEY, mean=V, cov=X),
    "numpy.gradient": dict(f=X),
    "lax.argmax": dict(operand=X, index_dtype=np.int32),
    "lax.argmin": dict(operand=X, index_dtype=np.int32),
    "lax.associative_scan": dict(fn=jnp.add, elems=X),
    "lax.broadcast_in_dim": dict(operand=X, shape=(3, 3), broadcast_dimensions=(0, 1)),
    "lax.broadcasted_iota": dict(dtype=np.int32, shape=(3, 3), dimension=1),
    "lax.concatenate": dict(operands=[X, X]),
    "lax.dynamic_slice": dict(operand=X, start_indices=(0, 0)),
    "lax.empty": dict(dtype=np.float32),
    "lax.full": dict(fill_value=1.0),
    "lax.full_like": dict(x=X, fill_value=1.0),
    "lax.index_take": dict(src=X, idxs=(ROWS, ROWS)),
    "lax.iota": dict(dtype=np.int32),
    "lax.reduce": dict(operands=X, init_values=np.float32(0), computation=lax.add),
    "lax.reshape": dict(operand=X[:2], new_sizes=(2, 3)),
    "lax.rng_bit_generator": dict(key=np.uint32([1, 2, 3, 4])),
    "lax.rng_uniform": dict(a=np.float32(0), b=np.float32(1)),
    "lax.scan": dict(f=lambda c, _: (c, c), init=1.0),
    "lax.split": dict(operand=np.concatenate([X, X[:2]]), sizes=(1, 2)),
    "lax.squeeze": dict(array=X[:1, :1]),
    "lax.top_k": dict(operand=X, k=1),
    "nn.glu": dict(x=np.concatenate([X, X], 1)),
    "nn.one_hot": dict(x=ROWS, num_classes=3),
    "random.ball": dict(key=KEY, d=2),
    "random.orthogonal": dict(key=KEY, n=2),
    "image.resize": dict(image=X, method="linear"),
    "image.scale_and_translate": dict(
        image=X, spatial_dims=(0, 1), scale=V[:2], translation=V[:2], method="linear"
    ),
    "scipy.linalg.convolution_matrix": dict(a=V),
    "scipy.linalg.leslie": dict(f=V),
    **{f"numpy.{n}": dict(arrays=[X, X]) for n in ("concat", "concatenate", "stack")},
    **{f"lax.reduce_{n}": dict(operand=B) for n in ("and", "or", "xor")},
    **{f"ops.segment_{n}": SEGMENTS for n in ("max", "min", "prod", "sum")},
    **{
        f"lax.{n}": {
            k: v
            for k, v in IN_DIMENSION.items()
            if k in inspect.signature(getattr(lax, n)).parameters
        }
        for n in (
            "dynamic_index_in_dim", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
            "dynamic_update_slice_in_dim", "index_in_dim", "slice_in_dim",
        )
    },
}  # fmt: skip
OWN_VALUES = {  # where another number than that of the name is needed
    ("lax.reshape", "dimensions"): (None, (1, 0)), ("lax.split", "sizes"): (None, (1, 4)),
    ("numpy.broadcast_to", "shape"): (None, (2, 3, 3)),
    ("lax.reshape", "new_sizes"): (None, (3, 2)),
    ("numpy.reshape", "shape"): (9, (9, 1)), ("numpy.unravel_index", "shape"): (4, (2, 2)),
    ("lax.full_like", "shape"): (None, (2, 2)), ("lax.concatenate", "dimension"): (1, None),
    ("numpy.moveaxis", "source"): (1, (0, 1)),
    ("numpy.linalg.tensorsolve", "axes"): (None, (0,)),
    ("random.multivariate_normal", "shape"): (None, (2,)),
    ("lax.index_take", "axes"): (None, (0, 1)),
    ("scipy.special.lpmn", "n"): (2, None), ("scipy.special.lpmn_values", "n"): (2, None),
}  # fmt: skip
WITH = {  # other arguments that a parameter needs
    ("numpy.moveaxis", "source"): dict(destination=0),
    ("numpy.moveaxis", "destination"): dict(source=1),
    ("numpy.swapaxes", "axis1"): dict(axis2=1),
    ("numpy.swapaxes", "axis2"): dict(axis1=0),
}


def call(name, parameter):
    """A call of the function of which only ``parameter`` is open."""
    f = PARAMETERS[name, parameter]
    signature = inspect.signature(f).parameters
    given = dict(ARGUMENTS.get(name, {}))
    if not given:
        needed = [
            n for n, p in signature.items() if p.default is p.empty and p.kind < p.VAR_KEYWORD
        ]
        given = {n: KEY if n == "key" else X for n in needed}
    given |= WITH.get((name, parameter), {})
    given.pop(parameter, None)
    first = [n for n, p in signature.items() if p.kind is p.POSITIONAL_ONLY]

    def with_it(value):
        every = given | {parameter: value}
        return f(*[every.pop(n) for n in first if n in every], **every)

    return with_it
