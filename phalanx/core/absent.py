"""Attributes that arrays of other libraries have, and what is used here in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

_ASSIGN = "arrays are immutable; x.at[index].set(value) gives a new one"
_PARTS = "see x.addressable_shards, whose items have .data and .device"
_MEMORY = "how elements lie in memory is left to the compiler"
_MOVE = "phalanx.device_put(x, device) gives one on another device"
_CAST = "x.astype(dtype) gives one of another dtype"
_GRAD = "phalanx.grad(f) is a function that gives the gradient of f"
ABSENT: dict[str, str] = {
    "fill": _ASSIGN,
    "itemset": _ASSIGN,
    "put": _ASSIGN,
    "resize": "arrays are immutable; jnp.resize(x, shape) gives a new one",
    "setflags": "arrays are immutable",
    "device_buffer": _PARTS,
    "device_buffers": _PARTS,
    "flat": "x.ravel() has the elements in a row",
    "base": _MEMORY,
    "data": _MEMORY,
    "flags": _MEMORY,
    "format": _MEMORY,
    "strides": _MEMORY,
    "byteswap": "x.view(dtype) reads the bits otherwise",
    "traceback": "errors name the line that made a traced value",
    # of PyTorch and TensorFlow
    "cpu": _MOVE,
    "cuda": _MOVE,
    "to": f"x.astype(dtype) gives one of another dtype, {_MOVE}",
    "numpy": "numpy.asarray(x) gives an array of NumPy",
    "detach": "phalanx.lax.stop_gradient(x) is a constant to derivatives",
    "backward": _GRAD,
    "grad": _GRAD,
    "requires_grad": _GRAD,
    "permute": "x.transpose(axes) gives the dimensions in another order",
    "unsqueeze": "jnp.expand_dims(x, axis), or x[:, None], gives a dimension more",
    "expand": "jnp.broadcast_to(x, shape) repeats the elements",
    "matmul": "x @ y is the product",
    "requires_grad_": _GRAD,
    "float": _CAST,
    "double": _CAST,
    "half": _CAST,
    "bfloat16": _CAST,
    "int": _CAST,
    "long": _CAST,
    "bool": _CAST,
    "type": _CAST,
    "append": "arrays are immutable; jnp.append(x, values) gives a new one",
    **{name: f"jnp.{name}(x) is a function" for name in (
        "abs", "exp", "log", "sqrt", "square", "sin", "cos", "tan", "tanh", "sign", "floor", "ceil",
        "isnan", "isinf", "isfinite", "maximum", "minimum", "where", "flip", "tile", "power",
    )},
    **{name: f"phalanx.nn.{name}(x) is a function" for name in ("relu", "sigmoid", "softmax")},
    "norm": "jnp.linalg.norm(x) is a function",
}  # fmt: skip


def install_absent(array: type) -> None:
    """Have the class of arrays say what is used instead; completion does not show these names."""
    for name, advice in ABSENT.items():
        setattr(array, name, property(_absent(name, advice), doc=f"There is none: {advice}."))
    array.__dir__ = _there  # type: ignore[assignment,method-assign]


def _there(self: Any) -> list[str]:
    return sorted({*object.__dir__(self)} - {*ABSENT})


def _absent(name: str, advice: str) -> Callable[[Any], NoReturn]:
    def refuse(self: Any) -> NoReturn:
        try:
            raise AttributeError(f"an array {self.aval} has no attribute {name!r}: {advice}")
        except AttributeError as error:
            error.__traceback__ = None  # so that the last line is the one that asks
            raise

    return refuse
