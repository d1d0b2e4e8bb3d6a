"""Attributes that arrays of other libraries have, and what is used here in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from phalanx.base.boundary import public_names

_NEW = "arrays are immutable"
_ASSIGN = f"{_NEW}; x.at[index].set(value) gives a new one"
_PARTS = "see x.addressable_shards, whose items have .data and .device"
_MEMORY = "how elements lie in memory is left to the compiler"
_MOVE = "phalanx.device_put(x, device) gives one on another device"
_CAST = "x.astype(dtype) gives one of another dtype"
_GRAD = "phalanx.grad(f) is a function that gives the gradient of f"
_LIKE = "jnp.zeros(shape, x.dtype), ones and full make arrays of a dtype"
_UPDATE = "x.at[indices].set(y) gives a new array, and x.at[indices].add(y) one with sums"
_PLACE = "x.devices() is where it lies"
_HOST = "numpy.asarray(x) gives an array of NumPy"
_EACH = "phalanx.vmap(f)(x) applies f to each row"
ABSENT: dict[str, str] = {
    "fill": _ASSIGN,
    "itemset": _ASSIGN,
    "put": _ASSIGN,
    "resize": f"{_NEW}; jnp.resize(x, shape) gives a new one",
    "setflags": _NEW,
    "device_buffer": _PARTS,
    "device_buffers": _PARTS,
    "flat": "x.ravel() has the elements in a row",
    "base": _MEMORY,
    "data": _MEMORY,
    "flags": _MEMORY,
    "strides": _MEMORY,
    "traceback": "errors name the line that made a traced value",
    # of PyTorch and TensorFlow
    "cpu": _MOVE,
    "cuda": _MOVE,
    "to": f"x.astype(dtype) gives one of another dtype, {_MOVE}",
    "detach": "phalanx.lax.stop_gradient(x) is a constant to derivatives",
    "backward": _GRAD,
    "grad": _GRAD,
    "requires_grad": _GRAD,
    "permute": "x.transpose(axes) gives the dimensions in another order",
    "unsqueeze": "jnp.expand_dims(x, axis), or x[:, None], gives a dimension more",
    "expand": "jnp.broadcast_to(x, shape) repeats the elements",
    **dict.fromkeys(["matmul", "mm", "bmm", "mv"], "x @ y is the product"),
    "requires_grad_": _GRAD,
    "dim": "x.ndim is the number of dimensions",
    **dict.fromkeys(["numel", "nelement"], "x.size is the number of elements"),
    "element_size": "x.itemsize is the number of bytes of an element",
    **dict.fromkeys(["get_shape", "set_shape"], "x.shape is a tuple of integers"),
    **dict.fromkeys(["contiguous", "is_contiguous", "stride", "ctypes"], _MEMORY),
    **dict.fromkeys(["is_cuda", "get_device"], _PLACE),
    **dict.fromkeys(["grad_fn", "is_leaf", "register_hook", "retain_grad"], _GRAD),
    **dict.fromkeys(["is_floating_point", "is_complex"], "jnp.issubdtype(x.dtype, kind) tells"),
    "narrow": "x[start : start + length] is a part",
    "masked_select": "x[mask] is what a mask selects",
    "data_ptr": "x.unsafe_buffer_pointer() is an address",
    "neg": "-x is a new array",
    "rsqrt": "phalanx.lax.rsqrt(x) is a function",
    **dict.fromkeys(["apply", "map"], _EACH),
    **dict.fromkeys(["new_zeros", "new_ones", "new_full", "new_tensor"], _LIKE),
    **dict.fromkeys(["scatter", "scatter_add", "index_add", "index_copy", "index_update"], _UPDATE),
    **dict.fromkeys(["asnumpy", "eval", "numpy", "to_numpy", "values"], _HOST),
    "tofile": "jnp.save(file, x) writes it",
    "t": "x.T is the transpose",
    "clamp": "x.clip(min, max) bounds it",
    "pow": "x ** y is the power",
    **{name: f"x {sign} y is a new array" for name, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("eq", "=="), ("ne", "!="),
        ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
    )},
    "masked_fill": "jnp.where(mask, value, x) is a new array",
    "index_select": "x.take(indices, axis) gives what lies there",
    "gather": "jnp.take_along_axis(x, indices, axis) gives what lies there",
    "chunk": "jnp.array_split(x, parts, axis) gives a list",
    "split": "jnp.split(x, parts, axis) gives a list",
    "unbind": "jnp.unstack(x, axis=axis) gives a tuple",
    "movedim": "jnp.moveaxis(x, source, destination) moves dimensions",
    "topk": "jnp.top_k(x, k) is a function",
    "repeat_interleave": "x.repeat(repeats, axis) repeats elements",
    **dict.fromkeys(["view_as", "reshape_as"], "x.reshape(y.shape) has another shape"),
    "expand_as": "jnp.broadcast_to(x, y.shape) repeats the elements",
    "type_as": "x.astype(y.dtype) gives one of another dtype",
    # which change an array, in these libraries
    **{f"{name}_": f"{_NEW}; x {sign} y is a new one" for name, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("pow", "**"),
    )},
    **dict.fromkeys(["assign", "copy_"], f"{_NEW}; give the name another, x = y"),
    "assign_add": f"{_NEW}; x + y is a new one",
    "assign_sub": f"{_NEW}; x - y is a new one",
    "zero_": f"{_NEW}; jnp.zeros_like(x) is a new one",
    "fill_": f"{_NEW}; jnp.full_like(x, value) is a new one",
    "clamp_": f"{_NEW}; x.clip(min, max) is a new one",
    **{f"{name}_": f"{_NEW}; jnp.{name}(x) is a new one" for name in ("abs", "exp", "log", "sqrt")},
    "masked_fill_": f"{_NEW}; jnp.where(mask, value, x) is a new one",
    **dict.fromkeys(["scatter_", "scatter_add_", "index_add_", "index_copy_"], _UPDATE),
    "normal_": f"{_NEW}; phalanx.random.normal(key, shape) gives numbers",
    "uniform_": f"{_NEW}; phalanx.random.uniform(key, shape) gives numbers",
    "float": _CAST,
    "double": _CAST,
    "half": _CAST,
    "bfloat16": _CAST,
    "int": _CAST,
    "long": _CAST,
    "bool": _CAST,
    "type": _CAST,
    "append": f"{_NEW}; jnp.append(x, values) gives a new one",
    **{name: f"jnp.{name}(x) is a function" for name in (
        "abs", "exp", "log", "sqrt", "square", "sin", "cos", "tan", "tanh", "sign", "floor", "ceil",
        "isnan", "isinf", "isfinite", "maximum", "minimum", "where", "flip", "tile", "power",
        "outer", "cross", "vdot", "unique", "histogram", "allclose", "isclose", "roll", "diff",
        "median", "quantile", "tril", "triu", "rot90", "log1p", "log2", "log10", "expm1", "sinh",
        "cosh", "arctan2", "reciprocal", "fmod", "remainder", "logical_and", "logical_or",
        "logical_not", "nan_to_num", "nansum", "nanmean", "count_nonzero", "broadcast_to",
        "moveaxis", "kron", "bincount", "argwhere",
    )},
    **{name: f"phalanx.nn.{name}(x) is a function" for name in (
        "relu", "sigmoid", "softmax", "log_softmax", "gelu", "silu", "logsumexp",
    )},
    **{name: f"jnp.linalg.{name}(x) is a function" for name in ("norm", "inv", "det", "pinv")},
}  # fmt: skip


def install_absent(array: type) -> None:
    """Have the class of arrays say what is used instead; completion shows neither these names nor
    private ones."""
    for name, advice in ABSENT.items():
        setattr(array, name, property(_absent(name, advice), doc=f"There is none: {advice}."))
    array.__dir__ = _there  # type: ignore[assignment,method-assign]


def _there(self: Any) -> list[str]:
    return sorted({*public_names(self)} - {*ABSENT})


def _absent(name: str, advice: str) -> Callable[[Any], NoReturn]:
    def refuse(self: Any) -> NoReturn:
        try:
            raise AttributeError(f"an array {self.aval} has no attribute {name!r}: {advice}")
        except AttributeError as error:
            error.__traceback__ = None  # so that the last line is the one that asks
            raise

    return refuse
