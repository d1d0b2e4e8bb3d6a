"""Functions applied along axes, and functions of single elements made to work on arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base import tree
from phalanx.base.boundary import hiding
from phalanx.base.broadcasting import common_shape
from phalanx.base.kinds import SEQUENCE
from phalanx.base.source import user_location
from phalanx.core.axes import Axis
from phalanx.core.primitive import selected
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, boolean, convert, dim
from phalanx.numpy.searching import where
from phalanx.numpy.signatures import CoreDims, Names
from phalanx.numpy.signatures import signature as parsed
from phalanx.transforms.batch import batch, place_lanes


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Iterable[int | str] = (),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function that applies ``pyfunc`` to all elements of arrays, which broadcast, at once.

    Args:
        pyfunc: a function of arrays without dimensions, or with those of the signature; None is
            passed on to it beside arrays. By a signature it returns an array, or a tuple of arrays,
            and without one any tree of arrays.
        excluded: positions and names of arguments that are passed on as they are.
        signature: the dimensions that ``pyfunc`` itself works on, as in "(n,m),(m)->(n)".

    Returns:
        A function of arrays, and of what ``excluded`` names.

    Raises:
        ValueError: ``signature`` is none, or the function that is returned is called with arrays
            that do not fit it or with None alone, or ``pyfunc`` returns such; or ``excluded`` has
            a negative number.
        TypeError: the number of arguments is not that of the signature, or that of results; or
            ``excluded`` has what is neither position nor name.

    >>> dot = jnp.vectorize(jnp.vdot, signature="(n),(n)->()")
    >>> print(dot(jnp.ones((2, 3)), jnp.arange(3.0)))
    [3. 3.]
    """
    left_out = _excluded(excluded)
    core_dims = None if signature is None else parsed(signature)

    @hiding
    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        free = {k: v for k, v in kwargs.items() if k in left_out}
        named = [k for k in kwargs if k not in left_out]
        cored = [i for i in range(len(args)) if i not in left_out]
        mapped = [i for i in cored if args[i] is not None]
        arrays = [as_array("vectorize", args[i]) for i in mapped]
        arrays += [as_array("vectorize", kwargs[k]) for k in named]

        def one(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(mapped, xs, strict=False):
                full[i] = x
            return pyfunc(*full, **free, **dict(zip(named, xs[len(mapped) :], strict=True)))

        count = len(cored) + len(named)
        cores = ((),) * count if core_dims is None else core_dims.operands
        if len(cores) != count:
            raise TypeError(
                f"vectorize: the signature {signature!r} has {len(cores)} arguments, got {count}, "
                f"at {user_location()}"
            )
        if count and not arrays:
            raise ValueError(
                "vectorize: no argument is an array with whose elements the function could be "
                f"called, got None alone, at {user_location()}; give an array, or name what is "
                "passed on as it is in excluded="
            )
        is_mapped = [i in mapped for i in cored] + [True] * len(named)
        return _over_lanes(one, arrays, selected(cores, is_mapped), core_dims)

    return vectorized


def _excluded(listed: Iterable[Any]) -> set[int | str]:
    found = set(listed)
    for entry in found:
        if not isinstance(entry, (int, str)):
            raise TypeError(
                f"vectorize: excluded lists positions and names of arguments, got {entry!r}, at "
                f"{user_location()}"
            )
        if isinstance(entry, int) and entry < 0:
            raise ValueError(
                f"vectorize: positions in excluded count from 0, got {entry}, at {user_location()}"
            )
    return found


def _over_lanes(
    function: Callable[..., Any], xs: list[Any], cores: Sequence[Names], core_dims: CoreDims | None
) -> Any:
    """``function`` on all dimensions of ``xs`` but the last ``cores``, which broadcast."""
    sizes = core_dims.sizes(zip(cores, [x.shape for x in xs], strict=True)) if core_dims else {}
    outer = [x.shape[: x.ndim - len(core)] for x, core in zip(xs, cores, strict=True)]
    shape = common_shape("vectorize", *outer)
    size = math.prod(shape)
    flat: list[Any] = []
    lanes: list[int | None] = []
    for x, own in zip(xs, outer, strict=True):
        core = x.shape[len(own) :]
        mapped = bool(own)
        if mapped:
            x = ops.reshape(ops.broadcast_to(x, (*shape, *core)), shape=(size, *core))
        flat.append(x)
        lanes.append(0 if mapped else None)
    structure: Any = None

    def on_all(*values: Any) -> list[Any]:
        nonlocal structure
        out = function(*values)
        single = not isinstance(out, tuple)

        def is_result(y: Any) -> bool:
            return single or y is not out

        leaves, structure = tree.flatten(out, None if core_dims is None else is_result)
        ys = [as_array("vectorize", y) for y in leaves]
        if core_dims is not None:
            core_dims.check_results(sizes, single, [y.shape for y in ys])
        return ys

    if not shape:
        results = on_all(*flat)
    else:
        ys, dims = batch(on_all, Axis(None, size), flat, lanes)
        results = [place_lanes(y, d, 0, size) for y, d in zip(ys, dims, strict=True)]
        results = [ops.reshape(y, shape=(*shape, *y.shape[1:])) for y in results]
    return tree.unflatten(structure, results)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """``func1d`` of every vector along ``axis``; the dimensions of its result take its place.

    Args:
        func1d: a function of a vector, and of the further arguments.
        axis: the axis along which it works, counted from the end if negative.
        arr: an array.
        args: further arguments of the function.
        kwargs: keyword arguments of the function.

    Returns:
        What the function makes of each slice, in place of ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.apply_along_axis(jnp.sum, 0, jnp.ones((2, 3))))
    [2. 2. 2.]
    """
    x = as_array("apply_along_axis", arr)
    d = dim("apply_along_axis", axis, x)
    lines = ops.move(x, d, x.ndim - 1)

    def along(v: Any) -> Any:
        return func1d(v, *args, **kwargs)

    out = _over_lanes(along, [lines], [("line",)], None)
    new = out.ndim - (x.ndim - 1)
    order = list(range(x.ndim - 1))
    order[d:d] = range(x.ndim - 1, x.ndim - 1 + new)
    return ops.reorder(out, order)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """``func(x, axis)`` for each of the ``axes`` in turn; reduced ones stay, with length 1.

    Args:
        func: a function ``func(a, axis)``, such as ``sum``.
        a: an array, or a number.
        axes: the axes, one after the other.

    Returns:
        An array with as many dimensions as ``a``.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2]).shape
    (1, 3, 1)
    """
    x = as_array("apply_over_axes", a)
    for axis in [axes] if isinstance(axes, int) else axes:
        d = dim("apply_over_axes", axis, x)
        y = func(x, d)
        x = ops.expand_dims(y, (d,)) if y.ndim == x.ndim - 1 else y
    return x


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """The function beside the last condition that holds, applied to x, elementwise.

    A function may be a number. One more function than conditions is the default, else 0.

    Args:
        x: an array, or a number.
        condlist: conditions, arrays of booleans.
        funclist: a function of x, or a number, for each condition; one more for where none holds.
        args: further arguments of the functions.
        kw: keyword arguments of the functions.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        ValueError: the number of functions is not that of the conditions, nor one more.

    >>> x = jnp.array([-2.0, 3.0])
    >>> print(jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: 10 * v]))
    [ 2. 30.]
    """
    x = as_array("piecewise", x)
    conditions = list(condlist) if isinstance(condlist, SEQUENCE) else [condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: {len(conditions)} functions or one more are needed, got {len(functions)}"
        )
    default = functions[len(conditions)] if len(functions) > len(conditions) else 0

    def value(function: Any) -> Any:
        y = function(x, *args, **kw) if callable(function) else function
        return convert(as_array("piecewise", y), x.aval.dtype)

    out = ops.broadcast_to(value(default), x.shape)
    for condition, function in zip(conditions, functions, strict=False):
        out = where(boolean("piecewise", condition), value(function), out)
    return out
