"""Array types, and the abstract class of everything that behaves like an array."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, SupportsIndex, cast

import numpy as np

from phalanx.base import dialect, dtypes, jax_arrays, wide
from phalanx.base.extended import WORD, is_key
from phalanx.base.lengths import Length
from phalanx.base.plain import brief
from phalanx.base.recent import InternTable
from phalanx.core.layouts import Layout
from phalanx.core.manual import ManualAxisType, user_axis_name
from phalanx.core.mesh_spec import MeshSpec

Shape = tuple[int, ...]
Ints = tuple[int, ...]  # positions of dimensions, or a number for each
NOWHERE: frozenset[Any] = frozenset()  # the axes along which an ordinary value varies


class ArrayType:
    """The static part of an array: shape, dtype, and whether the dtype is weak.

    It also says how the value lies over a mesh. Along axes that ``shard_map`` takes it may vary
    from position to position: ``varying`` has those axes, ``vma`` their names. Axes of type
    Explicit cut its dimensions, as ``spec`` says; to users that is ``sharding``.

    Types are interned: two equal types are the same object, so comparing and hashing a type
    costs what comparing two pointers costs. The attribute ``weak_type`` is the name under
    which the XLA runtime looks for ``weak``.

    Args:
        shape: the lengths of the dimensions.
        dtype: the dtype.
        weak: whether the dtype gives way to others, as that of a Python number.
        varying: the axes of a mesh along which the value varies, inside ``shard_map``.
        spec: how it lies along axes of type Explicit; None where nothing is said.

    >>> ArrayType((3, 4), np.dtype("float32")) is ArrayType((3, 4), np.dtype("float32"))
    True
    >>> str(ArrayType((3, 4), np.dtype("float32")))
    'f32[3,4]'
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "ndim",
        "of_mesh",
        "shape",
        "size",
        "spec",
        "varying",
        "weak",
        "weak_type",
    )  # fmt: skip
    _interned: ClassVar[InternTable[ArrayType]] = InternTable(4096)
    # plugged in by the packages that know meshes: how a type says that it lies, and the way back
    to_sharding: ClassVar[Callable[[ArrayType], Any]]
    of_sharding: ClassVar[Callable[[Any, int], MeshSpec | None]]

    shape: tuple[int, ...]
    dtype: Any  # a numpy.dtype, or the KeyType of random keys
    weak: bool
    weak_type: bool
    varying: frozenset[Any]
    spec: MeshSpec | None
    of_mesh: bool  # whether anything is said of a mesh
    ndim: int
    size: int

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: Any,
        weak: bool = False,
        varying: frozenset[Any] = NOWHERE,
        spec: MeshSpec | None = None,
    ) -> ArrayType:
        key = (cls, shape, dtype, weak, varying, spec)
        interned = ArrayType._interned[key]
        return interned if interned is not None else cls._make(key)

    @classmethod
    def _make(cls, key: tuple[Any, ...]) -> ArrayType:
        _, shape, dtype, weak, varying, spec = key
        kind = dtype if is_key(dtype) else np.dtype(dtype)
        normal = (cls, tuple(map(_length, shape)), kind, bool(weak), varying, spec)
        array_type = ArrayType._interned[normal]
        if array_type is None:
            array_type = object.__new__(cls)
            (
                array_type.shape,
                array_type.dtype,
                array_type.weak,
                array_type.varying,
                array_type.spec,
            ) = normal[1:]
            array_type.of_mesh = bool(varying) or spec is not None
            array_type.weak_type = array_type.weak
            array_type.ndim = len(array_type.shape)
            array_type.size = math.prod(array_type.shape)
            _check_bytes(array_type)
            array_type = ArrayType._interned.add(normal, array_type)
        ArrayType._interned[key] = array_type
        return array_type

    def update(self, **changes: Any) -> ArrayType:
        """The same type but for ``changes``: ``shape``, ``dtype``, ``weak``, ``varying``, ``spec``.

        ``weak_type`` is another name of ``weak``. How it lies is kept where the shape is, and may
        be told by a ``sharding``.

        Args:
            **changes: the parts of the type that are others, by name.

        >>> import phalanx
        >>> from phalanx.sharding import AxisType
        >>> mesh = phalanx.make_mesh((1,), ("x",), AxisType.Explicit)
        >>> rows = phalanx.NamedSharding(mesh, phalanx.P("x"))
        >>> phalanx.typeof(phalanx.numpy.ones((4, 2))).update(sharding=rows)
        f32[4@x,2]
        """
        shape = changes.get("shape", self.shape)
        if "sharding" in changes:
            changes["spec"] = ArrayType.of_sharding(changes["sharding"], len(shape))
        return ArrayType(
            shape,
            changes.get("dtype", self.dtype),
            changes.get("weak", changes.get("weak_type", self.weak)),
            changes.get("varying", self.varying),
            changes.get("spec", None if "shape" in changes else self.spec),
        )

    @property
    def of_array(self) -> ArrayType:
        """The type of an array, where this is that of an operand."""
        return self

    @property
    def layout(self) -> Layout:
        """For every dimension, the axes of type Explicit that cut it."""
        return self.spec.layout if self.spec is not None else ((),) * self.ndim

    @property
    def vma(self) -> frozenset[Any]:
        """The names of the axes along which the value varies, from position to position.

        >>> import phalanx
        >>> phalanx.typeof(phalanx.numpy.ones(3)).vma
        frozenset()
        """
        return _user_names(self.varying)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """What it says of the axes that ``shard_map`` takes, as a ``ShapeDtypeStruct`` takes it.

        >>> import phalanx
        >>> phalanx.typeof(phalanx.numpy.ones(3)).manual_axis_type
        ManualAxisType()
        """
        sums = self.spec and self.spec.manual
        if sums is None:
            return ManualAxisType(varying=self.vma)
        unreduced, reduced = _user_names(sums.unreduced), _user_names(sums.reduced)
        return ManualAxisType(varying=self.vma, unreduced=unreduced, reduced=reduced)

    mat = manual_axis_type

    @property
    def sharding(self) -> Any:
        """How it lies over the mesh that is set, without devices, along axes of type Explicit.

        Where no mesh is set it is empty. How an array lies indeed is told by ``x.sharding``.

        >>> import phalanx
        >>> from phalanx.sharding import AxisType
        >>> mesh = phalanx.make_mesh((1,), ("data",), AxisType.Explicit)
        >>> with phalanx.set_mesh(mesh):
        ...     x = phalanx.device_put(phalanx.numpy.ones((2, 3)), phalanx.P("data"))
        ...     print(phalanx.typeof(x), phalanx.typeof(x.T).sharding.spec)
        f32[2@data,3] P(None, 'data')
        """
        return ArrayType.to_sharding(self)

    @property
    def unreduced(self) -> frozenset[str]:
        """The axes over which the sum is still to be taken."""
        return NOWHERE if self.spec is None else self.spec.unreduced

    @property
    def reduced(self) -> frozenset[Any]:
        """The axes over which the sum of the cotangent is still to be taken."""
        return NOWHERE if self.spec is None else self.spec.reduced

    @property
    def tangent(self) -> ArrayType:
        """The type of its tangents: the same for real and complex numbers, else float0."""
        kind = dtypes.of_tangents(self.dtype)
        return self.update(dtype=kind, weak=self.weak and kind is self.dtype)

    @property
    def cotangent(self) -> ArrayType:
        """The type of its cotangent: along axes along which it is reduced that is unreduced."""
        spec = self.spec
        if spec is None or not spec.has_sums:
            return self
        return self.update(spec=spec.cotangent)

    @property
    def physical(self) -> ArrayType:
        """The type of what devices hold: the same, but words in a last dimension for keys, and
        bools for what holds no information."""
        if self.dtype is dtypes.float0:
            return self.update(dtype=np.dtype(bool))
        if is_key(self.dtype):
            spec = self.spec and self.spec.with_dim(self.ndim, ())
            return self.update(shape=(*self.shape, self.dtype.words), dtype=WORD, spec=spec)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self.dtype, self.weak, self.varying, self.spec)

    def shown_dims(self) -> str:
        """The shape in printed types, with the axes that cut it."""
        dims = [str(n) for n in self.shape]
        if self.spec is not None:
            pairs = zip(dims, self.spec.layout, strict=True)
            dims = [f"{n}@{joined(names)}" if names else n for n, names in pairs]
        return f"[{','.join(dims)}]"

    def __str__(self) -> str:
        if spoken_text := dialect.spoken.type_text:
            return spoken_text(self)
        along = f"{{{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        if self.spec is not None and self.spec.has_sums:
            along += _sums(self.spec)
        return f"{dtypes.short_name(self.dtype)}{self.shown_dims()}{along}"

    def __repr__(self) -> str:
        is_marked = self.weak and not dialect.spoken.type_text
        return f"{self}~" if is_marked else str(self)


class LiteralType(ArrayType):
    """What a scalar constant is as an operand: an elementwise primitive fits it to any shape."""

    __slots__ = ()

    @property
    def of_array(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype, self.weak)


def _sums(spec: MeshSpec) -> str:
    """Along which axes sums are still to be taken: ``U`` for unreduced, ``R`` for reduced."""
    sums = [("U", spec.unreduced), ("R", spec.reduced)]
    named = [(word, tuple(sorted(map(str, axes)))) for word, axes in sums if axes]
    return f"{{{', '.join([f'{word}:{joined(names)}' for word, names in named])}}}"


def _user_names(axes: frozenset[Any]) -> frozenset[Any]:
    return frozenset(map(user_axis_name, axes))


def joined(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def _length(n: Any) -> Any:
    return n if isinstance(n, Length) else int(n)


def _check_bytes(type: ArrayType) -> None:
    """Raise ValueError for a type whose bytes the runtime could not count: it would abort."""
    numbers = [n for n in (*type.shape, type.dtype.itemsize) if not isinstance(n, Length)]
    bits = sum(math.log2(n) for n in numbers if n > 0)
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
    def dtype(self) -> np.dtype:
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


if TYPE_CHECKING:  # at run time the package numpy installs them
    from phalanx.core.declared import Methods, Operators

    class _Declared(Operators, Methods, Shaped): ...
else:
    _Declared = Shaped


class Array(_Declared):
    """An immutable n-dimensional array of one dtype.

    Both arrays that hold data and the tracers that stand for them inside transformations are
    instances. Operators and methods are those of NumPy; ``phalanx.numpy`` installs them. Tracers
    lack what needs data or devices, such as ``item``, ``devices`` and ``block_until_ready``.

    >>> import phalanx.numpy as jnp
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> x.shape, x.dtype, (x + 1).sum()
    ((2, 3), dtype('float32'), Array(21., dtype=float32))
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100  # `ndarray * array` comes to us, not to NumPy
    __hash__ = None  # None itself: so `isinstance(x, Hashable)` tells that there is no hash

    aval: ArrayType  # the static part

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to that of other operands, as a Python number's does."""
        return self.aval.weak

    @property
    def __jax_array__(self) -> NoReturn:
        """Not there, as ``hasattr`` tells; the package jax, which looks for it, is warned of."""
        asks = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]: Python's way to the caller
        jax_arrays.look_for_jax(asks)
        raise AttributeError("__jax_array__")


ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
KeyLike = Array | np.ndarray  # random keys: those of today, or their bits
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
DTypeLike = str | type[Any] | np.dtype[Any]
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
        if type(array) is not np.ndarray and not wide.is_wide(array):
            dtypes.refuse_masked(array)
            array = np.asarray(array)  # what its memory is, whatever its class makes of it
        return ArrayType(array.shape, dtypes.held_as(array))
    if isinstance(x, np.generic):
        return ArrayType((), dtypes.held_as(cast(np.generic, x)))
    if isinstance(x, SCALARS):
        return ArrayType((), dtypes.weak_dtype(type(x)), not isinstance(x, bool))
    if isinstance(x, Length):
        return ArrayType((), dtypes.weak_dtype(Length), weak=True)
    advice = getattr(cast(Any, type(x)), "_advice", "")  # what else to do, of a class of ours
    raise TypeError(f"{brief(x)} of type {type(x).__name__} is not an array or a number{advice}")


def operand_type(x: Any) -> ArrayType:
    """The type of ``x`` as an operand: ``typeof``, but a ``LiteralType`` of a number."""
    kind = typeof(x)
    return LiteralType((), kind.dtype, kind.weak) if is_scalar(x) else kind
