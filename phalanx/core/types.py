"""Array types, and the abstract class of everything that behaves like an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, cast

import numpy as np

from phalanx.base import dtypes
from phalanx.base.extended import WORD, is_key
from phalanx.base.recent import Unique

Shape = tuple[int, ...]
Ints = tuple[int, ...]  # positions of dimensions, or a number for each
NOWHERE: frozenset[Any] = frozenset()  # the axes along which an ordinary value varies


class ArrayType:
    """The static part of an array: shape, dtype, and whether the dtype is weak.

    Inside ``shard_map`` it also says along which axes of the mesh the value varies: ``varying`` has
    those axes, ``vma`` their names.

    Types are interned: two equal types are the same object, so comparing and hashing a type
    costs what comparing two pointers costs. The attribute ``weak_type`` is the name under
    which the XLA runtime looks for ``weak``.

    Args:
        shape: the lengths of the dimensions.
        dtype: the dtype.
        weak: whether the dtype gives way to others, as that of a Python number.
        varying: the axes of a mesh along which the value varies, inside ``shard_map``.

    >>> ArrayType((3, 4), np.dtype("float32")) is ArrayType((3, 4), np.dtype("float32"))
    True
    >>> str(ArrayType((3, 4), np.dtype("float32")))
    'f32[3,4]'
    """

    __slots__ = ("__weakref__", "dtype", "ndim", "shape", "size", "varying", "weak", "weak_type")
    _interned: ClassVar[Unique[ArrayType]] = Unique(4096)
    over_current_mesh: ClassVar[Callable[[int], Any]]  # plugged in by the room that knows meshes

    shape: tuple[int, ...]
    dtype: Any  # a numpy.dtype, or the KeyType of random keys
    weak: bool
    weak_type: bool
    varying: frozenset[Any]
    ndim: int
    size: int

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: Any,
        weak: bool = False,
        varying: frozenset[Any] = NOWHERE,
    ) -> ArrayType:
        key = (cls, shape, dtype, weak, varying)
        interned = ArrayType._interned[key]
        return interned if interned is not None else cls._make(key)

    @classmethod
    def _make(cls, key: tuple[Any, ...]) -> ArrayType:
        _, shape, dtype, weak, varying = key
        kind = dtype if is_key(dtype) else np.dtype(dtype)
        normal = (cls, tuple(int(s) for s in shape), kind, bool(weak), varying)
        made = ArrayType._interned[normal]
        if made is None:
            made = object.__new__(cls)
            made.shape, made.dtype, made.weak, made.varying = normal[1:]
            made.weak_type = made.weak
            made.ndim = len(made.shape)
            made.size = math.prod(made.shape)
            _check_bytes(made)
            made = ArrayType._interned.add(normal, made)
        ArrayType._interned[key] = made
        return made

    def update(self, **changes: Any) -> ArrayType:
        """The same type with some of ``shape``, ``dtype``, ``weak``, ``varying`` replaced.

        ``weak_type`` is another name of ``weak``; what is said by ``sharding`` is not kept.
        """
        return ArrayType(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak", changes.get("weak_type", self.weak)),
            changes.get("varying", self.varying),
        )

    @property
    def vma(self) -> frozenset[Any]:
        """The names of the axes along which the value varies, from position to position.

        >>> import phalanx
        >>> phalanx.typeof(phalanx.numpy.ones(3)).vma
        frozenset()
        """
        return frozenset([axis.name for axis in self.varying])

    @property
    def sharding(self) -> Any:
        """Over the mesh that is set, without devices, where a type leaves every dimension open.

        Where none is set the mesh is empty. What it says can be asked of a function by
        ``out_sharding``. How an array lies indeed is told by ``x.sharding``.

        >>> import phalanx
        >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
        ...     phalanx.typeof(phalanx.numpy.ones((2, 3))).sharding.spec
        P(None, None)
        """
        return ArrayType.over_current_mesh(self.ndim)

    def str_short(self, *_: Any, **__: Any) -> str:
        """The type as programs print it."""
        return str(self)

    def strip_weak_type(self) -> ArrayType:
        """The same, not weak."""
        return self.update(weak=False)

    def to_tangent_aval(self) -> ArrayType:
        """The type of tangents: the same for real and complex numbers, else float0."""
        kind = dtypes.of_tangents(self.dtype)
        return self.update(dtype=kind, weak=self.weak and kind is self.dtype)

    at_least_vspace = to_tangent_aval

    @property
    def physical(self) -> ArrayType:
        """The type of what devices hold: the same, but words in a last dimension for keys, and
        bools for what holds no information."""
        if self.dtype is dtypes.float0:
            return self.update(dtype=np.dtype(bool))
        if is_key(self.dtype):
            return self.update(shape=(*self.shape, self.dtype.words), dtype=WORD)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self.dtype, self.weak, self.varying)

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        along = f"{{{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        return f"{dtypes.short_name(self.dtype)}[{dims}]{along}"

    def __repr__(self) -> str:
        return str(self) + ("~" if self.weak else "")


class LiteralType(ArrayType):
    """The type of a scalar constant. An elementwise primitive fits it to any shape."""

    __slots__ = ()


def _check_bytes(type: ArrayType) -> None:
    """Raise ValueError for a type whose bytes the runtime could not count: it would abort."""
    bits = sum(math.log2(n) for n in (*type.shape, type.dtype.itemsize) if n > 0)
    if bits >= 63:
        raise ValueError(
            f"an array {type} would need 2**{bits:.0f} bytes, and there are at most 2**63; check "
            "its shape"
        )


class Shaped:
    """What has a type ``aval`` has its shape and dtype."""

    __slots__ = ()

    aval: Any  # an `ArrayType`, or what tells the same

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements: NumPy's, or that of random keys."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size


if TYPE_CHECKING:  # at run time the numpy room installs them
    from phalanx.core.declared import Methods, Operators

    class _Declared(Operators, Methods, Shaped): ...
else:
    _Declared = Shaped


class Array(_Declared):
    """An immutable n-dimensional array of one dtype.

    Both arrays that hold data and the tracers that stand for them inside transformations are
    instances. Operators and methods are those of NumPy; ``phalanx.numpy`` installs them.

    >>> import phalanx.numpy as jnp
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> x.shape, x.dtype, (x + 1).sum()
    ((2, 3), dtype('float32'), Array(21., dtype=float32))
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100  # `ndarray * array` comes to us, not to NumPy

    aval: ArrayType  # the static part

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to that of other operands, as a Python number's does."""
        return self.aval.weak


ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
KeyLike = Array | np.ndarray  # random keys: those of today, or their bits
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
DTypeLike = str | type[Any] | np.dtype[Any] | dtypes.ScalarType
Types = tuple[ArrayType, ...]
SCALARS = (bool, int, float, complex)


def is_scalar(x: Any) -> bool:
    """Whether ``x`` is a Python or NumPy scalar, a constant of no shape."""
    return isinstance(x, (np.generic, *SCALARS))


def typeof(x: Any) -> ArrayType:
    """The type of an array, a traced value, a NumPy array or a scalar.

    Args:
        x: an array, a traced value, or a number.

    Returns:
        An ``ArrayType``.

    Raises:
        TypeError: ``x`` is none of these.

    >>> typeof(np.zeros((2, 3), np.float32))
    f32[2,3]
    """
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, np.ndarray):
        array = cast(np.ndarray, x)
        if type(array) is not np.ndarray:
            dtypes.refuse_masked(array)
        return ArrayType(array.shape, dtypes.canonical(array.dtype))
    if isinstance(x, np.generic):
        return LiteralType((), dtypes.canonical(cast(np.generic, x).dtype))
    if isinstance(x, SCALARS):
        return LiteralType((), dtypes.weak_dtype(type(x)), not isinstance(x, bool))
    advice = getattr(cast(Any, type(x)), "_advice", "")  # what else to do, of a class of ours
    raise TypeError(f"{x!r} of type {type(x).__name__} is not an array or a number{advice}")
