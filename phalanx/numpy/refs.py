"""Mutable references: ``ref[index]``, and functions that read and write a part of one."""

# What a part of a reference is of is private to users, not to what reads it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.boundary import boundary
from phalanx.base.errors import RefError
from phalanx.base.kinds import TUPLE
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core.refs import Ref, free, load, store
from phalanx.core.trace import Tracer
from phalanx.core.types import ArrayType, typeof
from phalanx.numpy.promotion import as_array, kind_of, operand
from phalanx.numpy.slices import Slice, read_part, written_part
from phalanx.primitives.basis import zeros

__all__ = ["addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


def new_ref(
    init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False
) -> Ref:
    """A mutable reference that holds ``init_val`` at first.

    Args:
        init_val: an array or a number, which is copied. A number is held in its dtype, which does
            not give way to others.
        memory_space: None: where it lies is up to the compiler.
        kind: None or "no_grad_no_remat"; it has no meaning here.
        pin: has no meaning here.

    Returns:
        A reference to an array: ``ref[...]`` reads it, ``ref[...] = x`` writes
        it, ``ref[index]`` is about a part.

    Raises:
        TypeError: ``init_val`` is no array and no number.
        NotImplementedError: a memory space is given.

    >>> import phalanx
    >>> total = phalanx.new_ref(0.0)
    >>> @phalanx.jit
    ... def add(x):
    ...     total[...] += x
    >>> add(2.0)
    >>> add(3.0)
    >>> total
    Ref(5., dtype=float32)
    """
    if memory_space is not None:
        raise NotImplementedError(
            f"new_ref: memory_space={memory_space!r} cannot be chosen for a reference, at "
            f"{user_location()}; leave it out"
        )
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(
            f"new_ref: kind must be None or 'no_grad_no_remat', got {kind!r} at {user_location()}"
        )
    return Ref(_own(as_array("new_ref", init_val)))


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A mutable reference to an array of zeros like ``ty``, which has a shape and a dtype.

    Args:
        ty: the shape and dtype, as of a ``ShapeDtypeStruct``.
        memory_space: must be None: where it lies is up to the compiler.
        pin: has no meaning.

    Returns:
        A reference.

    >>> import phalanx
    >>> phalanx.empty_ref(phalanx.ShapeDtypeStruct((2,), "float32"))
    Ref([0., 0.], dtype=float32)
    """
    kind = ArrayType(tuple(ty.shape), dtypes.canonical(ty.dtype))
    return new_ref(zeros(kind), memory_space=memory_space, pin=pin)


def freeze(ref: Ref) -> Any:
    """What ``ref`` holds; the reference cannot be used any more.

    Args:
        ref: a mutable reference.

    Returns:
        An array of the shape and dtype of the reference.

    Raises:
        RefError: it was freed before, or was made outside of what is traced here.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.arange(3))
    >>> ref[0] = 7
    >>> phalanx.freeze(ref)
    Array([7, 1, 2], dtype=int32)
    """
    _check_ref("freeze", ref)
    return free(ref)


def free_ref(ref: Ref) -> None:
    """Free the memory of a mutable reference, which cannot be used any more.

    Args:
        ref: a mutable reference.

    Raises:
        RefError: it was freed before, or was made outside of what is traced here.

    >>> import phalanx
    >>> phalanx.free_ref(phalanx.new_ref(1.0))
    """
    _check_ref("free_ref", ref)
    free(ref)


# ---- parts --------------------------------------------------------------------------------------


class RefView:
    """A part of what a reference holds, or all in another shape: used like the reference."""

    __slots__ = ("_of", "_read", "_suffix", "_written")

    def __init__(
        self,
        of: Ref | RefView,
        suffix: str,
        read: Callable[[Any], Any],
        written: Callable[[Any, Any], Any],
    ) -> None:
        """Reads of the whole; makes the whole with a value in this place."""
        self._of = of
        self._suffix = suffix
        self._read = read
        self._written = written

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return typeof(_held(self)).shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._of.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return typeof(_held(self)).size

    def __repr__(self) -> str:
        return f"{self._of!r}{self._suffix}"


class _Parts:
    """``ref.at``: ``ref.at[index]`` names a part."""

    __slots__ = ("_of",)

    def __init__(self, of: Ref | RefView) -> None:
        self._of = of

    def __getitem__(self, index: Any) -> RefView:
        def written(whole: Any, value: Any) -> Any:
            _check_bounds(whole, index)
            return written_part(whole, index, lambda part: part.set(value))

        return RefView(self._of, f".at[{index!r}]", lambda whole: _read(whole, index), written)


def _reshape(self: Ref | RefView, *shape: Any) -> RefView:
    """What it holds in another shape, read and written in place.

    Args:
        shape: the lengths, as for arrays.
    """
    new = typeof(_held(self).reshape(*shape)).shape
    return RefView(
        self,
        f".reshape{new}",
        lambda whole: whole.reshape(new),
        lambda whole, value: value.reshape(whole.shape),
    )


def _held(x: Ref | RefView) -> Any:
    """What ``x`` holds now."""
    return load(x) if isinstance(x, Ref) else x._read(_held(x._of))


def _hold(x: Ref | RefView, value: Any) -> None:
    """Let ``x`` hold ``value``, of its shape and dtype."""
    if isinstance(x, Ref):
        store(x, value)
    else:
        _hold(x._of, x._written(_held(x._of), value))


def _read(x: Any, index: Any) -> Any:
    _check_bounds(x, index)
    return read_part(x, index)


def _own(x: Any, shared: Any = None) -> Any:
    """``x`` without weakness, in memory that nobody else can delete or donate.

    That of traced values is their program's; any other is a copy, but for an ``x`` that is known to
    be new because it is not ``shared``.
    """
    known = not isinstance(x, Tracer) and (shared is None or x is shared)
    if known or x.aval.weak:
        return ops.convert(x, dtype=x.aval.dtype, weak=False)
    return x


def get(ref: Ref | RefView, idx: Any = None) -> Any:
    """``ref[idx]``: what ``ref`` holds in the part ``idx``; all of it if that is None.

    An index of integers that is known lies inside of the array; one that is known only while
    running is treated as in ``x[i]``.

    Args:
        ref: a mutable reference.
        idx: an index, as in ``ref[idx]``; a tuple for several dimensions.

    Returns:
        An array of the part.

    Raises:
        IndexError: the index lies outside, or has too many entries.
        ValueError: a window (``pl.ds``) is known to reach outside.
        RefError: the reference was freed.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.arange(5))
    >>> phalanx.ref.get(ref, slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    _check_ref("get", ref)
    held = _held(ref)
    return _own(_read(held, _index(idx)), shared=held)


def set(ref: Ref | RefView, idx: Any, value: Any) -> None:
    """Write a part of a reference: ``ref[idx] = value``.

    Args:
        ref: a reference, or a part of one (``ref.at[i]``).
        idx: an index as in ``x[idx]``; None or ``...`` for all.
        value: an array or a number, which is broadcast to the part.

    Raises:
        IndexError: the index lies outside, or has too many entries.
        RefError: ``value`` has another dtype than the reference, and it is no number that gives
            way to it; or it is not known where the reference was made: it has tangents or
            lanes of a transformation inside of which the reference was not made.
        ValueError: ``value`` cannot be broadcast.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.zeros(3))
    >>> phalanx.ref.set(ref, 1, 10.0)
    >>> ref
    Ref([ 0., 10.,  0.], dtype=float32)
    """
    _check_ref("set", ref)
    _update(ref, idx, value, "set")


def addupdate(ref: Ref | RefView, idx: Any, x: Any) -> None:
    """``ref[idx] += x``; where an array of indices names an element twice, it adds twice.

    Arguments and errors are those of ``set``.

    Args:
        ref: a reference, or a part of one (``ref.at[i]``).
        idx: an index as in ``x[idx]``; None or ``...`` for all.
        x: what is added; broadcasts to the part.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.zeros(3))
    >>> phalanx.ref.addupdate(ref, jnp.array([2, 2]), 1.0)
    >>> ref
    Ref([0., 0., 2.], dtype=float32)
    """
    _check_ref("addupdate", ref)
    _update(ref, idx, x, "add")


def swap(ref: Ref | RefView, idx: Any, value: Any) -> Any:
    """``ref[idx] = value``, and what was there before.

    Arguments and errors are those of ``set``.

    Args:
        ref: a reference, or a part of one (``ref.at[i]``).
        idx: an index as in ``x[idx]``; None or ``...`` for all.
        value: an array or a number, which is broadcast to the part.

    Returns:
        An array: what the part held before.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.arange(3))
    >>> phalanx.ref.swap(ref, 2, 9)
    Array(2, dtype=int32)
    """
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def _index(idx: Any) -> Any:
    return ... if idx is None else idx


def _update(ref: Ref | RefView, idx: Any, value: Any, how: str) -> None:
    held, index = _held(ref), _index(idx)
    _check_bounds(held, index)
    value = _fitting(ref, value)
    changed = written_part(held, index, lambda part: getattr(part, how)(value))
    _hold(ref, _own(changed, shared=value))


def _fitting(ref: Ref | RefView, value: Any) -> Any:
    """``value``, which has the dtype of ``ref`` or gives way to it."""
    dtype, weak = kind_of(operand("ref", value))
    if dtype != ref.dtype and not (
        weak and lattice.promote((dtype, True), (ref.dtype, False))[0] == ref.dtype
    ):
        raise RefError(  # "Invalid dtype" is the field's, for matching
            f"Invalid dtype: a reference to an array of dtype {ref.dtype} is to hold a value of "
            f"dtype {dtype}, at {user_location()}; convert it with .astype(ref.dtype)"
        )
    return value


def _check_bounds(x: Any, index: Any) -> None:
    """Raise if an integer or a window in ``index`` is known to lie outside of ``x``."""
    entries = index if isinstance(index, TUPLE) else (index,)
    count = sum(e is not None and e is not ... for e in entries)
    dim = 0
    for e in entries:
        if e is ...:
            dim += x.ndim - count
        elif getattr(e, "dtype", None) == np.bool_ or isinstance(e, (bool, list)):
            return  # a mask may be of several dimensions: what follows is left to the indexing
        elif e is not None and dim >= x.ndim:
            return  # too many, which the indexing says
        elif e is not None:
            if isinstance(e, (int, np.integer)) and not -x.shape[dim] <= e < x.shape[dim]:
                raise IndexError(  # "Out of bound" is the field's, for matching
                    f"Out of bound index {e} of a reference that has {x.shape[dim]} in dimension "
                    f"{dim}, at {user_location()}"
                )
            if isinstance(e, Slice):
                _check_window(e, x.shape[dim], dim)
            dim += 1


def _check_window(window: Slice, length: int, dim: int) -> None:
    if not window.is_dynamic_start and not 0 <= window.start <= length - window.span:
        raise ValueError(
            f"Out of bound slice: {window} of a reference that has {length} in dimension {dim}, "
            f"at {user_location()}"
        )


def _check_ref(who: str, x: Any) -> None:
    if not isinstance(x, (Ref, RefView)):
        raise TypeError(
            f"{who}: a reference is needed, got {brief(x)} of type {type(x).__name__}, at "
            f"{user_location()}; new_ref makes one"
        )


# ---- methods ------------------------------------------------------------------------------------


def _getitem(self: Any, index: Any) -> Any:
    return get(self, index)


def _setitem(self: Any, index: Any, value: Any) -> None:
    set(self, index, value)


def _len(self: Any) -> int:
    if not self.ndim:
        raise TypeError("len() of a reference to an array without dimensions")
    return self.shape[0]


def _iter(self: Any) -> Iterator[Any]:
    return iter(get(self))


def _get_all(self: Any, idx: Any = ()) -> Any:
    """``self[idx]``; all of it if there is no index.

    Args:
        idx: an index, as in ``ref[idx]``; by default all.
    """
    return get(self, idx)


def _set_all(self: Any, value: Any, idx: Any = ()) -> None:
    """``self[idx] = value``; all of it if there is no index.

    Args:
        value: an array, or a number, which broadcasts to the part.
        idx: an index, as in ``ref[idx]``; by default all.
    """
    set(self, idx, value)


def _swap_all(self: Any, value: Any, idx: Any = ()) -> Any:
    """``self[idx] = value``, and what was there before.

    Args:
        value: an array, or a number, which broadcasts to the part.
        idx: an index, as in ``ref[idx]``; by default all.
    """
    return swap(self, idx, value)


def _add_all(self: Any, x: Any, idx: Any = ()) -> None:
    """``self[idx] += x``.

    Args:
        x: what is added: an array, or a number.
        idx: an index, as in ``ref[idx]``; by default all.
    """
    addupdate(self, idx, x)


def _reduced(self: Ref) -> tuple[Any, ...]:
    return _remade, (load(self),)


def _remade(value: Any) -> Ref:
    return new_ref(value)  # which bytes could not name: the public function has its name


_METHODS = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__len__": _len,
    "__iter__": _iter,
    "get": _get_all,
    "set": _set_all,
    "swap": _swap_all,
    "addupdate": _add_all,
    "reshape": _reshape,
}


def _sharding(ref: Ref) -> Any:
    """How what it holds is laid out over devices."""
    return load(ref).sharding


def _committed(ref: Ref) -> bool:
    """Whether the user chose where it lies."""
    return load(ref).committed


def install() -> None:
    """Give references, and parts of them, their methods."""
    for cls in (Ref, RefView):
        for name, method in _METHODS.items():
            setattr(cls, name, boundary(method))
        cls.at = property(_Parts, doc="Parts: ``ref.at[index]``.")  # type: ignore[attr-defined]
    Ref.__reduce__ = _reduced  # a copy is a reference of its own
    Ref.sharding = property(_sharding, doc=_sharding.__doc__)  # type: ignore[attr-defined]
    Ref.committed = property(_committed, doc=_committed.__doc__)  # type: ignore[attr-defined]
