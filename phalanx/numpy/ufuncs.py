"""Functions of elements that know how to reduce, accumulate and combine arrays with themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, dim, no_out
from phalanx.numpy.ufunc_methods import WITH_METHODS, P, R

__all__ = ["frompyfunc", "ufunc"]


class _WithMethods(type):
    """The class of ``ufunc``, of which functions that have its methods are instances, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        attached = isinstance(instance, FunctionType) and hasattr(instance, "reduceat")
        return attached or super().__instancecheck__(instance)


class ufunc(Generic[P, R], metaclass=_WithMethods):
    """A function of single elements that works on arrays, and its methods as those of NumPy's.

    Args:
        func: the function; on arrays, elementwise.
        nin: the number of its arguments.
        nout: the number of its results.
        name: what it is called; default the name of the function.
        nargs: must be ``nin`` if it is given.
        identity: what leaves any element as it is, if there is such a thing.
        call: what to call in place of the function.
        reduce: what does ``reduce``; so ``accumulate``, ``at`` and ``reduceat``.
        accumulate: what does ``accumulate``.
        at: what does ``at``.
        reduceat: what does ``reduceat``.

    >>> import phalanx.numpy as jnp
    >>> add = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    >>> print(add(1, jnp.arange(3)), add.reduce(jnp.arange(4)), add.accumulate(jnp.arange(4)))
    [1 2 3] 6 [0 1 3 6]
    >>> isinstance(jnp.add, jnp.ufunc), isinstance(jnp.sin, jnp.ufunc)
    (True, False)
    """

    def __init__(
        self,
        func: Callable[P, R],
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        self.nin, self.nout, self.nargs = int(nin), int(nout), int(nargs or nin)
        self.identity = identity
        self.__name__ = name or getattr(func, "__name__", "ufunc")
        self.__doc__ = getattr(func, "__doc__", None)
        self._call: Callable[..., Any] = call or func
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    def __repr__(self) -> str:
        return f"<phalanx.numpy.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self._call, self.identity, self.nin, self.nout, self.__name__))

    def __eq__(self, other: object) -> bool:
        mine = (self._call, self.identity, self.nin, self.nout, self.__name__)
        return isinstance(other, ufunc) and mine == (
            other._call, other.identity, other.nin, other.nout, other.__name__
        )  # fmt: skip

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function of each element; ``out`` and ``where``, if given, must be None."""
        no_out(self.__name__, kwargs.pop("out", None), kwargs.pop("where", None))
        return self._call(*args, **kwargs)

    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """f(... f(f(x0, x1), x2) ...) along ``axis``; None is all.

        Args:
            a: the elements.
            axis: the axis along which it works.
            dtype: in which to compute; default that of ``a``.
            out: must be None.
            keepdims: whether the axis stays, with length 1.
            initial: what to start with; default the identity, if there is one.
            where: which elements count; it needs something to start with.

        Raises:
            ValueError: the function has not two arguments and one result, or there is nothing to
                start with.
        """
        self._check_binary("reduce", out)
        if self._own["reduce"] is not None:
            return self._own["reduce"](
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        operand = self._operand("reduce", a, dtype)
        x = self._carried(operand)
        d = None if axis is None else dim(self.__name__, axis, x)
        shape = [1 if d is None or i == d else n for i, n in enumerate(x.shape)]
        line = x.reshape(-1) if d is None else jnp.moveaxis(x, d, 0)
        start = self.identity if initial is None else initial
        if start is None and (where is not None or not line.shape[0]):
            raise ArgumentError(f"{self.__name__}.reduce: it has no identity; give initial")
        counts = None
        if where is not None:
            shown = jnp.broadcast_to(as_array(self.__name__, where), x.shape)
            counts = shown.reshape(-1) if d is None else jnp.moveaxis(shown, d, 0)
        result = self._cast_back(self._folded(line, start, counts), operand)
        return result.reshape(shape) if keepdims else result

    def _folded(self, line: Any, start: Any, counts: Any) -> Any:
        if start is None:
            first, rest = line[0], line[1:]
        else:
            first, rest = jnp.full(line.shape[1:], start, line.dtype), line
        first = self._started(first)
        marks = jnp.ones(rest.shape[0], bool) if counts is None else counts

        def step(before: Array, row: Any) -> tuple[Array, None]:
            x, counted = row
            return jnp.where(counted, self._of(before, x).astype(before.dtype), before), None

        return lax.scan(step, first, (rest, marks))[0]

    def _started(self, x: Any) -> Any:
        """``x`` in the dtype of the results."""
        return x.astype(self._of(x, x).dtype)

    def _of(self, x: Any, y: Any) -> Any:
        return as_array(self.__name__, self._call(x, y))

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """The results of ``reduce`` for all beginnings along ``axis``.

        Args:
            a: an array.
            axis: the axis along which it works.
            dtype: the dtype of the result; None for the one that follows from the elements.
            out: must be None: arrays are immutable.
        """
        self._check_binary("accumulate", out)
        if self._own["accumulate"] is not None:
            return self._own["accumulate"](a, axis=axis, dtype=dtype)
        operand = self._operand("accumulate", a, dtype)
        x = self._carried(operand)
        d = dim(self.__name__, axis, x)
        line = jnp.moveaxis(x, d, 0)
        if not line.shape[0]:
            return operand
        first = self._started(line[0])

        def step(before: Array, row: Array) -> tuple[Array, Array]:
            now = self._of(before, row).astype(before.dtype)
            return now, now

        _, rest = lax.scan(step, first, line[1:])
        whole = jnp.moveaxis(jnp.concatenate([first[None], rest]), 0, d)
        return self._cast_back(whole, operand)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Any:
        """f(a, b) for all pairs of elements: the dimensions of A, and then those of B.

        Args:
            A: an array.
            B: an array of any shape.
        """
        self._check_binary("outer", None)
        a, b = as_array(self.__name__, A), as_array(self.__name__, B)
        return self._call(a.reshape(*a.shape, *[1] * b.ndim), b)

    def at(
        self,
        a: ArrayLike,
        indices: Any,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Array:
        """``a`` with f(a, b) in place of the elements at ``indices``, one index after the other.

        Args:
            a: an array.
            indices: the positions, as in ``a[indices]``; one that is there twice counts twice.
            b: the second operand, where there is one.
            inplace: must be False: the changed array is returned.

        Raises:
            ValueError: ``inplace`` is true: arrays are immutable. Or ``b`` is missing, or given to
                a function of one argument.
        """
        if inplace:
            raise ArgumentError(
                f"{self.__name__}.at: arrays are immutable; pass inplace=False and use the result"
            )
        count = 1 if b is None else 2
        if (self.nin, self.nout) != (count, 1):
            raise ArgumentError(
                f"{self.__name__}.at: a function of {count} with one result is needed for what was "
                f"given, this one has {self.nin} and {self.nout}"
            )
        x: Any = as_array(self.__name__, a)
        if self.nin == 1:
            return x.at[indices].apply(self._call)
        y = as_array(self.__name__, b)
        wide = self._carried(x) if jnp.result_type(x, y) == x.dtype else x
        return self._cast_back(self._changed(wide, indices, y), x)

    def _changed(self, x: Array, indices: Any, b: Any) -> Any:
        if self._own["at"] is not None:
            return self._own["at"](x, indices, b)
        places = jnp.arange(x.size).reshape(x.shape)[indices]
        values = jnp.broadcast_to(b, places.shape).reshape(-1)

        def step(line: Any, entry: Any) -> Any:
            place, value = entry
            return line.at[place].set(self._of(line[place], value)), None

        return lax.scan(step, x.reshape(-1), (places.reshape(-1), values))[0].reshape(x.shape)

    def reduceat(
        self, a: ArrayLike, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """What ``reduce`` gives from each index up to the next; where that is no later, x[i].

        Args:
            a: an array.
            indices: where the parts begin: integers.
            axis: the axis along which it works.
            dtype: the dtype of the result; None for the one that follows from the elements.
            out: must be None: arrays are immutable.
        """
        self._check_binary("reduceat", out)
        if self._own["reduceat"] is not None:
            return self._own["reduceat"](a, indices, axis=axis, dtype=dtype)
        operand = self._operand("reduceat", a, dtype)
        x = self._carried(operand)
        d = dim(self.__name__, axis, x)
        line = jnp.moveaxis(x, d, 0)
        starts = as_array(self.__name__, indices)
        if starts.ndim != 1:
            raise ArgumentError(
                f"{self.__name__}.reduceat: indices are a vector, got {starts.aval}"
            )
        ends = jnp.append(starts[1:], line.shape[0])
        first = line[starts]
        first = self._started(first)
        wide = (slice(None), *[None] * (line.ndim - 1))

        def step(before: Array, entry: Any) -> tuple[Array, None]:
            place, row = entry
            inside = (place > starts) & (place < ends)
            now = self._of(before, jnp.broadcast_to(row, before.shape)).astype(before.dtype)
            return jnp.where(inside[wide], now, before), None

        result, _ = lax.scan(step, first, (jnp.arange(line.shape[0]), line))
        return self._cast_back(jnp.moveaxis(result, 0, d), operand)

    def _check_binary(self, method: str, out: Any) -> None:
        no_out(f"{self.__name__}.{method}", out)
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(
                f"{self.__name__}.{method}: a function of two arguments with one result is needed, "
                f"this one has {self.nin} and {self.nout}"
            )

    def _operand(self, method: str, a: Any, dtype: Any) -> Any:
        x = as_array(f"{self.__name__}.{method}", a)
        return x if dtype is None else x.astype(dtypes.requested(dtype))

    def _carried(self, x: Any) -> Any:
        """``x`` in the dtype in which it is combined: its own, which a function may depend on."""
        return x

    def _cast_back(self, result: Any, x: Any) -> Any:
        """The ``result`` of what was carried, in the dtype that ``x`` gives."""
        del x
        return result


class _Known(ufunc[P, R]):
    """One of ``phalanx.numpy``: on the way it holds more, and finer, than float16 and bfloat16."""

    def _carried(self, x: Any) -> Any:
        return x.astype(dtypes.accumulator(x.dtype))

    def _cast_back(self, result: Any, x: Any) -> Any:
        carried = result.dtype == dtypes.accumulator(x.dtype)
        return result.astype(x.dtype) if carried else result


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> ufunc[..., Any]:
    """``func``, of single elements, as a ``ufunc``.

    Args:
        func: a function of numbers, traced once for all elements.
        nin: the number of its arguments.
        nout: the number of its results.
        identity: what leaves any element as it is, if there is such a thing.

    Returns:
        A ``ufunc``.

    >>> import phalanx.numpy as jnp
    >>> larger = jnp.frompyfunc(lambda x, y: jnp.where(x > y, x, y), 2, 1)
    >>> print(larger.outer(jnp.arange(2), jnp.arange(3)))
    [[0 1 2]
     [1 1 2]]
    """
    return ufunc(
        func, nin, nout, name=getattr(func, "__name__", None), identity=identity,
        call=jnp.vectorize(func),
    )  # fmt: skip


def _in_dtype(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """``reduce``, which takes no dtype, with one."""

    def reduced(a: ArrayLike, dtype: Any = None, **options: Any) -> Any:
        x = as_array("reduce", a)
        return reduce(x if dtype is None else x.astype(dtypes.requested(dtype)), **options)

    return reduced


def _running(combine: Callable[..., Any]) -> Callable[..., Any]:
    def accumulated(a: ArrayLike, axis: int, dtype: Any) -> Any:
        x = as_array("accumulate", a)
        x = x if dtype is None else x.astype(dtypes.requested(dtype))
        return combine(x, axis=dim("accumulate", axis, x))

    return accumulated


def _at(how: str) -> Callable[[Any, Any, Any], Any]:
    def at(a: Any, indices: Any, b: Any) -> Any:
        return getattr(a.at[indices], how)(b)

    return at


_OWN: dict[str, dict[str, Any]] = {
    "add": {
        "reduce": jnp.sum,
        "accumulate": jnp.cumsum,
        "at": _at("add"),
    },
    "multiply": {
        "reduce": jnp.prod,
        "accumulate": jnp.cumprod,
        "at": _at("multiply"),
    },
    "maximum": {
        "reduce": _in_dtype(jnp.max),
        "accumulate": _running(lax.cummax),
        "at": _at("max"),
    },
    "minimum": {
        "reduce": _in_dtype(jnp.min),
        "accumulate": _running(lax.cummin),
        "at": _at("min"),
    },
    "subtract": {"at": _at("subtract")},
}
KNOWN = {
    name: _Known(function, function.nin, 1, identity=function.identity, **_OWN.get(name, {}))
    for name, function in WITH_METHODS.items()
}
"""The functions of ``phalanx.numpy`` that have methods."""

bound(sys.modules[__name__])
