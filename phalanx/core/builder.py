"""The words in which primitives are lowered: those of StableHLO and CHLO.

A primitive's ``lower`` rule speaks this protocol and nothing below it. Values are opaque. The
type of a result follows from the operands wherever the protocol does not ask for it. Shapes,
positions of dimensions and the like are tuples of ints; dtypes are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from phalanx.base.source import Location
from phalanx.core.ffi_records import ForeignFunction
from phalanx.core.layouts import Cut, Layout, Target
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.types import ArrayType, Ints, Shape

Value = Any
Values = Sequence[Any]
Pairs = Sequence[tuple[int, int]]
Groups = Sequence[Sequence[int]]  # of partition numbers, all of one length
Sums = tuple[Sequence[MeshSpec | None], Sequence[MeshSpec | None]]  # of arguments, of results
Combine = Callable[["Builder", Value, Value], Value]  # of two elements: one
# body(b, *values): one value, or several. With ``...`` a lambda's would be of unknown types.
Body = (
    Callable[["Builder"], Any]
    | Callable[["Builder", Value], Any]
    | Callable[["Builder", Value, Any], Any]
    | Callable[["Builder", Value, Any, Any], Any]
    | Callable[["Builder", Value, Any, Any, Any], Any]
)
Precision = str | tuple[str, str] | None  # 'default', 'high', 'highest'; one for each operand


class Factors(NamedTuple):
    """Which dimensions of an operation's operands and results are cut together, and which not.

    Attributes:
        operands: of each a text for every dimension: the letters of its factors, the outermost
            first. What has no letter stays whole.
        results: the same.
        sizes: of each letter. Where a factor is cut, all that have its letter are, and results
            that have not are sums over it.
    """

    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, int]


class Elementwise(Protocol):
    """One result element from the operands' elements at the same place."""

    def abs(self, x: Value, /) -> Value:
        """Magnitude; that of a complex number is real."""
        ...

    def negate(self, x: Value, /) -> Value: ...
    def sign(self, x: Value, /) -> Value: ...
    def floor(self, x: Value, /) -> Value: ...
    def ceil(self, x: Value, /) -> Value: ...
    def round_nearest_afz(self, x: Value, /) -> Value: ...
    def round_nearest_even(self, x: Value, /) -> Value: ...
    def exponential(self, x: Value, /) -> Value: ...
    def exponential_minus_one(self, x: Value, /) -> Value: ...
    def log(self, x: Value, /) -> Value: ...
    def log_plus_one(self, x: Value, /) -> Value: ...
    def sine(self, x: Value, /) -> Value: ...
    def cosine(self, x: Value, /) -> Value: ...
    def tan(self, x: Value, /) -> Value: ...
    def tanh(self, x: Value, /) -> Value: ...
    def sqrt(self, x: Value, /) -> Value: ...
    def rsqrt(self, x: Value, /) -> Value: ...
    def cbrt(self, x: Value, /) -> Value: ...
    def logistic(self, x: Value, /) -> Value: ...
    def is_finite(self, x: Value, /) -> Value: ...
    def not_(self, x: Value, /) -> Value: ...
    def popcnt(self, x: Value, /) -> Value: ...
    def count_leading_zeros(self, x: Value, /) -> Value: ...
    def real(self, x: Value, /) -> Value: ...
    def imag(self, x: Value, /) -> Value: ...
    def acos(self, x: Value, /) -> Value: ...
    def asin(self, x: Value, /) -> Value: ...
    def atan(self, x: Value, /) -> Value: ...
    def sinh(self, x: Value, /) -> Value: ...
    def cosh(self, x: Value, /) -> Value: ...
    def acosh(self, x: Value, /) -> Value: ...
    def asinh(self, x: Value, /) -> Value: ...
    def atanh(self, x: Value, /) -> Value: ...
    def erf(self, x: Value, /) -> Value: ...
    def erfc(self, x: Value, /) -> Value: ...
    def erf_inv(self, x: Value, /) -> Value: ...
    def conj(self, x: Value, /) -> Value: ...

    def add(self, x: Value, y: Value, /) -> Value: ...
    def subtract(self, x: Value, y: Value, /) -> Value: ...
    def multiply(self, x: Value, y: Value, /) -> Value: ...
    def divide(self, x: Value, y: Value, /) -> Value: ...
    def remainder(self, x: Value, y: Value, /) -> Value: ...
    def power(self, x: Value, y: Value, /) -> Value: ...
    def atan2(self, x: Value, y: Value, /) -> Value: ...
    def maximum(self, x: Value, y: Value, /) -> Value: ...
    def minimum(self, x: Value, y: Value, /) -> Value: ...
    def and_(self, x: Value, y: Value, /) -> Value: ...
    def or_(self, x: Value, y: Value, /) -> Value: ...
    def xor(self, x: Value, y: Value, /) -> Value: ...
    def shift_left(self, x: Value, y: Value, /) -> Value: ...
    def shift_right_arithmetic(self, x: Value, y: Value, /) -> Value: ...
    def shift_right_logical(self, x: Value, y: Value, /) -> Value: ...
    def next_after(self, x: Value, y: Value, /) -> Value: ...
    def polygamma(self, order: Value, x: Value, /) -> Value: ...
    def zeta(self, s: Value, q: Value, /) -> Value: ...

    def complex(self, re: Value, im: Value, /) -> Value:
        """``re + i im`` of two real operands."""
        ...

    def compare(self, x: Value, y: Value, direction: str, *, total: bool = False) -> Value:
        """Booleans; ``direction`` is 'EQ', 'NE', 'LT', 'LE', 'GT' or 'GE'.

        ``total``: floats are ordered by their signs and bits, NaNs and zeros included.
        """
        ...

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        """``pred`` has the shape of the others, or none."""
        ...

    def clamp(self, low: Value, x: Value, high: Value) -> Value:
        """``low`` and ``high`` have the shape of ``x``, or none."""
        ...

    def convert(self, x: Value, dtype: np.dtype) -> Value: ...

    def bitcast_convert(self, x: Value, dtype: np.dtype, shape: Shape) -> Value:
        """The same bits; a last dimension appears or goes where the widths differ."""
        ...

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value: ...


class Structural(Protocol):
    """Elements moved, repeated or selected by position."""

    def constant(self, value: Any, dtype: np.dtype, shape: Shape = ()) -> Value:
        """A scalar ``value``, which may be a symbolic length, repeated over ``shape``, or the array
        ``value``."""
        ...

    def iota(self, dtype: np.dtype, shape: Shape, dim: int) -> Value: ...

    def broadcast_in_dim(self, x: Value, shape: Shape, dims: Ints) -> Value:
        """Dimension i of ``x`` becomes dimension ``dims[i]`` of the result."""
        ...

    def reshape(self, x: Value, shape: Shape) -> Value: ...
    def transpose(self, x: Value, perm: Ints) -> Value: ...
    def reverse(self, x: Value, dims: Ints) -> Value: ...
    def concatenate(self, xs: Values, dim: int) -> Value: ...

    def pad(self, x: Value, value: Value, low: Ints, high: Ints, interior: Ints) -> Value:
        """The scalar ``value`` around ``x`` and between its elements; negative amounts cut."""
        ...

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value: ...

    def dynamic_slice(self, x: Value, starts: Values, sizes: Ints) -> Value:
        """``starts`` are integer scalars of one dtype, clamped so that the slice fits."""
        ...

    def dynamic_update_slice(self, x: Value, update: Value, starts: Values) -> Value: ...

    def gather(
        self, x: Value, indices: Value, numbers: Any, slice_sizes: Ints, sorted: bool
    ) -> Value:
        """The last dimension of ``indices`` holds the index vectors. ``numbers`` has
        ``offset_dims``, ``collapsed_slice_dims``, ``start_index_map``,
        ``operand_batching_dims`` and ``start_indices_batching_dims``.
        """
        ...

    def scatter(
        self,
        x: Value,
        indices: Value,
        updates: Value,
        numbers: Any,
        body: Body,
        sorted: bool,
        unique: bool,
    ) -> Value:
        """``body(b, old, update)`` gives the new element. ``numbers`` has
        ``update_window_dims``, ``inserted_window_dims``, ``scatter_dims_to_operand_dims``,
        ``operand_batching_dims`` and ``scatter_indices_batching_dims``.
        """
        ...

    def isolate(self) -> None:
        """Have the module compiled without what would round values otherwise where more is known
        of what they are used for."""
        ...

    def optimization_barrier(self, xs: Values) -> list[Value]:
        """``xs``; the compiler moves no computation from one side to the other."""
        ...


class Contraction(Protocol):
    """Products summed over dimensions, and the linear algebra that XLA has built in."""

    def dot_general(
        self,
        x: Value,
        y: Value,
        contract: tuple[Ints, Ints],
        batch: tuple[Ints, Ints],
        out_dtype: np.dtype,
        precision: Precision,
    ) -> Value:
        """Result dimensions: batch, the rest of ``x``, the rest of ``y``."""
        ...

    def ragged_dot(
        self,
        x: Value,
        y: Value,
        sizes: Value,
        contract: tuple[Ints, Ints],
        out_type: ArrayType,
        precision: Precision,
    ) -> Value:
        """Groups of rows of ``x`` by a matrix each; or, if rows are contracted, sums of each."""
        ...

    def convolution(
        self,
        x: Value,
        kernel: Value,
        out_type: ArrayType,
        strides: Ints,
        padding: Pairs,
        lhs_dilation: Ints,
        rhs_dilation: Ints,
        dimension_numbers: tuple[Ints, Ints, Ints],
        feature_group_count: int,
        batch_group_count: int,
        precision: Precision,
    ) -> Value:
        """``dimension_numbers`` are the positions of (batch, feature, *spatial) in ``x``, of
        (output feature, input feature, *spatial) in ``kernel``, and of (batch, feature,
        *spatial) in the result.
        """
        ...

    def fft(self, x: Value, kind: str, lengths: Ints) -> Value:
        """Over the last ``len(lengths)`` dimensions; kind is FFT, IFFT, RFFT or IRFFT."""
        ...

    def cholesky(self, x: Value, lower: bool) -> Value: ...

    def triangular_solve(
        self, a: Value, b: Value, left_side: bool, lower: bool, unit_diagonal: bool, transpose: str
    ) -> Value:
        """``transpose`` is NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
        ...


class Regions(Protocol):
    """Operations that take functions: ``body(b, *values)`` emits one and returns its results."""

    def reduce(self, xs: Values, inits: Values, dims: Ints, body: Body) -> list[Value]:
        """``body`` maps n accumulated and n new scalars to n scalars."""
        ...

    def reduce_window(
        self,
        xs: Values,
        inits: Values,
        window: Ints,
        strides: Ints,
        base_dilation: Ints,
        window_dilation: Ints,
        padding: Pairs,
        body: Body,
    ) -> list[Value]: ...

    def select_and_scatter(
        self,
        x: Value,
        source: Value,
        init: Value,
        window: Ints,
        strides: Ints,
        padding: Pairs,
        select: Body,
        scatter: Body,
    ) -> Value: ...

    def sort(self, xs: Values, dim: int, stable: bool, comparator: Body) -> list[Value]:
        """``comparator`` sees two elements of the first operand, two of the second, ..."""
        ...

    def top_k(self, x: Value, k: int) -> list[Value]:
        """The k largest of the last dimension, descending, and their int32 positions."""
        ...

    def approx_top_k(
        self, x: Value, k: int, recall: float, input_size: int, comparator: Body
    ) -> list[Value]:
        """The same, of which a share of ``recall`` is right, if ``x`` is a part of an array of
        ``input_size`` elements.

        ``comparator`` sees two elements and their positions, -1 where there is none; it says
        whether the first one is larger.
        """
        ...

    def while_(self, inits: Values, cond: Body, body: Body) -> list[Value]:
        """While ``cond(b, *values)``, a boolean scalar: values = ``body(b, *values)``."""
        ...

    def case(self, index: Value, branches: Sequence[Body]) -> list[Value]:
        """The values of ``branches[index](b)``; the last branch if ``index`` is out of range."""
        ...

    def call(self, key: Any, emit: Body, args: Values) -> list[Value]:
        """Call a function of the module, which ``emit(b, *parameters)`` writes once per key."""
        ...

    def composite(
        self,
        key: Any,
        emit: Body,
        args: Values,
        name: str,
        version: int,
        attributes: Mapping[str, Any],
    ) -> list[Value]:
        """An operation that the compiler may know by ``name``; else ``call`` of the function."""
        ...

    def inline(self, program: Any, *values: Value) -> list[Value]:
        """The outputs of ``program`` for these inputs, written here."""
        ...

    def traced(self, function: Callable[..., Any], *values: Value) -> Any:
        """What a function of arrays, by operations, gives: one value, or a list of them."""
        ...

    def custom_call(
        self,
        name: str,
        args: Values,
        out_types: Sequence[ArrayType],
        backend_config: dict[str, Any] | None = None,
        has_side_effect: bool = False,
    ) -> list[Value]:
        """A function registered with XLA."""
        ...

    def matrix_call(
        self,
        name: str,
        args: Values,
        out_types: Sequence[ArrayType],
        batch: int,
        config: Mapping[str, Any],
        in_place: Mapping[int, int],
    ) -> list[Value]:
        """A function registered with XLA, of matrices that lie column by column.

        The first ``batch`` dimensions of all operands and results are equal, and what belongs to
        one place along them depends on nothing else. ``in_place`` are the operands over which
        the function writes results.
        """
        ...

    def expanded_call(
        self,
        name: str,
        args: Values,
        out_types: Sequence[ArrayType],
        options: str,
        orders: Sequence[Ints] | None = None,
    ) -> list[Value]:
        """A function that the compiler knows by its name.

        If ``orders`` are given, results lie in memory by them, the outermost dimension first, and
        operands row by row.
        """
        ...

    def by_block(self, factors: Factors, run: Body, *args: Value) -> list[Value]:
        """What ``run`` writes for the operation that is being lowered.

        Where the compiler parts the work each device runs it on blocks of the operands, and the
        partitioner says which device has which.
        """
        ...

    def host_call(
        self,
        function: Callable[..., Sequence[np.ndarray]],
        args: Values,
        out_types: Sequence[ArrayType],
        has_side_effect: bool = False,
    ) -> list[Value]:
        """``function`` of NumPy arrays, run by the host while the program runs."""
        ...

    def foreign_call(
        self,
        function: ForeignFunction,
        args: Values,
        out_types: Sequence[ArrayType],
        has_side_effect: bool,
    ) -> list[Value]:
        """A function of another language that is registered with XLA."""
        ...

    def module_call(
        self, artifact: bytes, args: Values, out_types: Sequence[ArrayType]
    ) -> list[Value]:
        """Call the main function of a module that was written before, as a portable artifact."""
        ...

    def inspect_sharding(self, x: Value, watcher: Any) -> None:
        """Ask how ``x`` lies; the executable answers, in ``inspected``."""
        ...


class CollectiveBuilder(Protocol):
    """Communication between the devices of a manual computation.

    Devices are counted by partition number: row by row through the module's mesh.
    """

    def all_reduce(self, xs: Values, groups: Groups, body: Body) -> list[Value]:
        """``xs`` have one dtype; ``body`` combines two scalars."""
        ...

    def all_gather(self, x: Value, dim: int, groups: Groups, shape: Shape) -> Value:
        """``shape`` is that of the result."""
        ...

    def reduce_scatter(
        self, x: Value, dim: int, groups: Groups, body: Body, shape: Shape
    ) -> Value: ...

    def all_to_all(
        self, x: Value, split_dim: int, concat_dim: int, groups: Groups, shape: Shape
    ) -> Value: ...

    def collective_permute(self, x: Value, pairs: Pairs) -> Value:
        """Zeros on a device to which no (source, target) pair sends."""
        ...

    def partition_id(self) -> Value:
        """The number of this device, a uint32 scalar."""
        ...

    def constrained(self, x: Value, sharding: Any) -> Value:
        """``x``, which lies over the devices of the program as ``sharding`` says."""
        ...

    def with_spec(self, x: Value, spec: MeshSpec) -> Value:
        """``x``, whose type has this ``spec``."""
        ...

    def cut_by_type(self, x: Value, type: ArrayType, dims: Ints, product: MeshSpec) -> Value:
        """``x``, an operand of a ``product`` whose sum over ``dims`` is still to be taken: only
        what ``type`` tells cuts these, or else XLA ends the process."""
        ...

    def whole_along(self, x: Value, dims: Ints) -> Value:
        """``x``, whose dimensions ``dims`` are cut over no devices; of others nothing is said."""
        ...

    def gathered(self, x: Value, dims: Ints) -> Value:
        """The same of a result, unless its sum over devices is still to be taken: then it lies as
        its type says."""
        ...

    def by_rows(self, x: Value, ndim: int, f: Callable[[Value], Value]) -> Value:
        """``f(x)``, which is of the last ``ndim`` dimensions and of each part along others alone.

        Where devices have parts, the others are one to ``f``, the only one that is cut, and what
        ``f`` takes and gives follows itself in memory row by row.
        """
        ...

    def summed_as(self, type: ArrayType, x: Value) -> Value:
        """``x``, marked as unreduced where ``type`` is.

        Where operands and results of an operation are not marked, the compiler may get them wrong.
        """
        ...

    def summed(self, x: Value, spec: MeshSpec) -> Value:
        """``x``, whose type has this ``spec``, with the sums taken that were still to be taken."""
        ...

    def left_as_sum(self, x: Value, spec: MeshSpec) -> Value:
        """The value ``x`` as an unreduced one: each position along axes has a summand."""
        ...

    def in_memory(self, x: Value, kind: str | None) -> Value:
        """``x`` in memory of a kind, None for the devices' own."""
        ...

    def manual_computation(
        self,
        args: Values,
        in_layouts: Sequence[Layout],
        out_layouts: Sequence[Layout],
        out_types: Sequence[ArrayType],
        body: Body,
        over: Sequence[str] | None = None,
        sums: Sums | None = None,
    ) -> list[Value]:
        """Run ``body(b, *parts)`` at every position of the mesh with its part of each argument.

        ``in_layouts`` and ``out_layouts`` say per value and dimension which mesh axes split it
        (an entry ``()``: not split; fewer entries than dimensions: the rest not split).
        Of an argument or a result that is a sum still to be taken ``sums`` say how it lies.
        ``out_types`` are those of the whole results. Positions are those ``over`` some axes of
        the mesh, along the others of which the compiler parts the work; over all if not given.
        """
        ...


class Generators(Protocol):
    """Random numbers of XLA's own generators."""

    def rng_bit_generator(
        self, state: Value, shape: Shape, dtype: np.dtype, algorithm: str
    ) -> tuple[Value, Value]:
        """The next state, uint64[2], and uint32 or uint64 bits; ``algorithm`` is 'default',
        'three_fry' or 'philox'.
        """
        ...

    def rng_uniform(self, low: Value, high: Value, shape: Shape) -> Value:
        """Numbers from ``low`` to ``high``, others in every run."""
        ...


class RegionAxes(Protocol):
    """Which mesh axes each axis of a region lies over, and which devices are at its positions.

    Attributes:
        manual: the axes of the mesh that manual computations around this place have taken.
        conditional: whether some devices may leave out what is written here.
    """

    manual: frozenset[str]
    conditional: bool

    @property
    def parted(self) -> Sequence[str]:
        """The axes of the mesh along which the compiler parts what is written here."""
        ...

    def cuts(self, region: Any) -> tuple[Cut, ...]:
        """How the axes of a region are dealt out that is lowered here."""
        ...

    @property
    def target(self) -> Target:
        """What the program is written for."""
        ...

    def parts_work_within(self, region: Any) -> bool:
        """Whether there are axes along which the compiler parts what a region does."""
        ...

    def inside(self, axes: Mapping[Any, tuple[str, ...]]) -> AbstractContextManager[None]:
        """What is lowered inside the block is in a region; its ``axes`` lie over mesh axes."""
        ...

    def replica_groups(self, axes: Sequence[Any], groups: Groups | None) -> Groups:
        """The partitions that communicate over ``axes``, those of a group in order."""
        ...

    def partition_pairs(self, axes: Sequence[Any], perm: Pairs) -> Pairs:
        """The (source, target) partitions that a permutation of the positions of ``axes`` is."""
        ...

    def axis_index(self, *axes: Any) -> Value:
        """The position of this device along ``axes``, row by row, an int32 scalar."""
        ...

    def padded(self, x: Value, shape: Shape) -> Value:
        """``x`` at the front of an array of ``shape``, with copies of its last rows after it."""
        ...

    def unpadded(self, x: Value, shape: Shape) -> Value:
        """The array of ``shape`` at the front of ``x``; ``padded`` finds the rest again."""
        ...


class Builder(
    Elementwise,
    Structural,
    Contraction,
    Regions,
    CollectiveBuilder,
    Generators,
    RegionAxes,
    Protocol,
):
    """Everything a lowering rule may use.

    >>> def lower(b: Builder, x):  # of an operation that gives x² + x
    ...     return b.add(b.multiply(x, x), x)
    """

    @property
    def ins(self) -> tuple[ArrayType, ...]:
        """The types of the operands of the equation being lowered."""
        ...

    @property
    def outs(self) -> tuple[ArrayType, ...]:
        """The types of its results."""
        ...

    def type(self, x: Value) -> ArrayType:
        """The type of a value; never weak."""
        ...

    def at(self, location: Location | None) -> AbstractContextManager[Any]:
        """What is written inside the block comes from ``location``; None changes nothing."""
        ...
