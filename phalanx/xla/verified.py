"""Modules that come from elsewhere: whether one is something that we could have written.

A module is run in this process, so what a file says is not believed: it has one main function, of
the types that are described, and otherwise nothing but operations and calls that ``export`` writes.
So no file calls Python or waits for what nobody sends, or ends the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from jaxlib.mlir import ir as mlir_ir

from phalanx.base.lengths import symbolic
from phalanx.core.types import ArrayType
from phalanx.xla import options, signatures

ir: Any = mlir_ir  # of which much is asked here that is used nowhere else
Operation = Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPERATIONS: Final = _words(
    """
    abs add all_gather all_reduce all_to_all and atan2 bitcast_convert broadcast_in_dim case cbrt
    ceil cholesky clamp collective_permute compare complex composite concatenate constant convert
    convolution cosine count_leading_zeros custom_call divide dot_general dynamic_broadcast_in_dim
    dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice
    dynamic_update_slice exponential exponential_minus_one fft floor gather get_dimension_size imag
    iota is_finite log log_plus_one logistic maximum minimum multiply negate not
    optimization_barrier or pad partition_id popcnt power real real_dynamic_slice reduce
    reduce_precision reduce_scatter reduce_window remainder reshape return reverse rng
    rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter
    shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan
    tanh transpose triangular_solve while xor
    """
)
_OTHERS: Final = _words(
    """
    func.func func.return func.call sdy.mesh sdy.manual_computation sdy.return
    sdy.sharding_constraint
    """
)
_AT_THE_TOP: Final = ("func.func", "sdy.mesh")
_ATTRIBUTES: Final = _words(  # beside what operations are themselves
    """
    mhlo.num_partitions mhlo.num_replicas mhlo.frontend_attributes mhlo.backend_config
    sdy.sharding sdy.sharding_rule tf.aliasing_output jax.buffer_donor
    """
)
_OF_FUNCTIONS: Final = _words("sym_name function_type sym_visibility arg_attrs res_attrs")
_COMPOSITES: Final = _words(
    """
    acos acosh asin asinh atan atanh conj cosh digamma erf erf_inv erfc lgamma next_after polygamma
    ragged_dot sinh top_k zeta
    """
)
_REQUIRED: Final = {"chlo.top_k": "k", "chlo.ragged_dot": "ragged_dot_dimension_numbers"}
_ELEMENTS: Final = _words(
    """
    i1 i2 i4 i8 i16 i32 i64 ui2 ui4 ui8 ui16 ui32 ui64 bf16 f16 f32 f64 complex<f32> complex<f64>
    f4E2M1FN f8E3M4 f8E4M3 f8E4M3FN f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU
    """
)
_MEMORIES: Final = ("device", "pinned_host", "unpinned_host")
_DEEPEST: Final = 1000  # calls inside of calls: Python itself goes no deeper
_MOST: Final = 1 << 58  # elements of an array, of 16 bytes at most


@contextmanager
def _texts_are_read() -> Generator[None]:
    """Refuse the module if jaxlib finds a name or a text in it that it cannot hand to Python."""
    try:
        yield
    except RuntimeError as e:
        if "conversion error" not in str(e):
            raise
        _refuse("it has a name or a text that is not in UTF-8")


@_texts_are_read()
def check(
    module: Any,
    ins: Sequence[ArrayType],
    outs: Sequence[ArrayType],
    foreign: Collection[str],
    type_of: Callable[[ArrayType], Any],
) -> None:
    """Look at ``module``, which is to be a function of ``ins`` that gives ``outs``.

    ``foreign`` are the functions of other languages that it says to call. ``type_of`` gives the
    type that it has for such a type.

    Raises:
        ValueError: it is none, or none that we write.
    """
    functions = _functions(module)
    try:
        module.operation.verify()
    except ir.MLIRError as e:
        _refuse(f"it is no module: {'; '.join(d.message for d in e.error_diagnostics)}")
    look = _Look(foreign, static=not symbolic([n for t in ins for n in t.shape]))
    for function in functions.values():
        look.at(function)
        if look.fault:
            _refuse(look.fault)
    _check_calls(look.calls)
    kind = ir.FunctionType(ir.TypeAttr(functions["main"].attributes["function_type"]).value)
    expected = ir.FunctionType.get(list(map(type_of, ins)), list(map(type_of, outs)))
    if kind != expected:
        _refuse(f"its main function is {kind}, and described as {expected}")


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"export: the module is none that export writes: {why}")


def _functions(module: Any) -> dict[str, Operation]:
    """The functions of ``module``, by name."""
    found: dict[str, Operation] = {}
    for view in module.body.operations:
        operation = view.operation
        if operation.name not in _AT_THE_TOP:
            _refuse(f"it has a {operation.name} outside of functions")
        if operation.name == "func.func":
            name = ir.StringAttr(operation.attributes["sym_name"]).value
            if not operation.regions[0].blocks:
                _refuse(f"its function {name} has no body")
            found[name] = operation
    if "main" not in found:
        _refuse("it has no main function")
    return found


class _Look:
    """Looks at the operations of functions, one after the other.

    Attributes:
        fault: what is wrong, if something is.
        calls: the functions that each calls.
    """

    def __init__(self, foreign: Collection[str], static: bool) -> None:
        self._foreign = foreign
        self._static = static  # whether all lengths have to be numbers
        self._sound: set[Any] = set()  # types that were looked at
        self.fault = ""
        self.calls: dict[str, set[str]] = {}

    def at(self, function: Operation) -> None:
        """Look at all that is in ``function``."""
        called: set[str] = set()
        self.calls[_text(function, "sym_name")] = called

        def look(operation: Operation) -> Any:
            try:
                self._check(operation, operation == function)
                called.update(_called(operation))
            except (ValueError, TypeError, KeyError) as e:
                self.fault = f"{e}, in a {operation.name}"[:400]
            except RuntimeError:  # of what makes Python's text of it
                self.fault = f"it has a name that is no text, in a {operation.name}"
            if self.fault:
                return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        function.walk(look)

    def _check(self, operation: Operation, is_function: bool) -> None:
        name = operation.name
        dialect, _, word = name.partition(".")
        if name not in _OTHERS and not (dialect == "stablehlo" and word in _OPERATIONS):
            raise ValueError(f"it has the operation {name}")
        if name in _AT_THE_TOP and not is_function:
            raise ValueError(f"it has a {name} inside of a function")
        self._check_attributes(operation)
        arguments = [x.type for r in operation.regions for block in r for x in block.arguments]
        for kind in (*[x.type for x in operation.results], *arguments):
            self._check_type(kind)
        if name in _CHECKS:
            _CHECKS[name](self, operation)

    def _check_attributes(self, operation: Operation) -> None:
        names = [name for name in operation.attributes if "." in name]
        for name in names:
            if name not in _ATTRIBUTES:
                raise ValueError(f"it says {name} of a {operation.name}")
        if "mhlo.frontend_attributes" in names:
            attribute = operation.attributes["mhlo.frontend_attributes"]
            if not _is_to_the_compiler(attribute, operation):
                raise ValueError(f"it tells the compiler {attribute}"[:200])

    def _check_type(self, kind: Any) -> None:
        if kind in self._sound:
            return
        if not isinstance(kind, ir.RankedTensorType) or kind.encoding is not None:
            raise ValueError(f"it has a value of type {kind}")
        if str(kind.element_type) not in _ELEMENTS:
            raise ValueError(f"it has elements of type {kind.element_type}")
        if self._static and not kind.has_static_shape:
            raise ValueError(f"it has {kind}, whose lengths are not known")
        lengths = [kind.get_dim_size(i) for i in range(kind.rank) if not kind.is_dynamic_dim(i)]
        if math.prod(max(n, 1) for n in lengths) > _MOST:
            raise ValueError(f"it has {kind}, which is larger than any memory")
        self._sound.add(kind)

    def check_function(self, operation: Operation) -> None:
        attributes = operation.attributes
        for name in attributes:
            if name not in _OF_FUNCTIONS:
                raise ValueError(f"it says {name} of a function")
        for name in ("arg_attrs", "res_attrs"):
            for one in ir.ArrayAttr(attributes[name]) if name in attributes else ():
                if not _ATTRIBUTES.issuperset(_names(one)):
                    raise ValueError(f"it says {one} of what a function takes or gives"[:200])

    def check_custom_call(self, operation: Operation) -> None:
        name = _text(operation, "call_target_name")
        if signatures.is_known(name):
            signatures.check(name, operation)
            options.check(name, operation)
        elif name not in self._foreign:
            raise ValueError(f"it calls {name[:100]!r}, which no exported function calls")

    def check_composite(self, operation: Operation) -> None:
        name = _text(operation, "name")
        if name.startswith("chlo.") and name[5:] not in _COMPOSITES:
            raise ValueError(f"it has the operation {name}")
        attributes = operation.attributes.get("composite_attributes")
        if name in _REQUIRED and (attributes is None or _REQUIRED[name] not in _names(attributes)):
            raise ValueError(f"{name} lacks its {_REQUIRED[name]}")


_CHECKS: Final[dict[str, Callable[[_Look, Operation], None]]] = {
    "func.func": _Look.check_function,
    "stablehlo.custom_call": _Look.check_custom_call,
    "stablehlo.composite": _Look.check_composite,
}


def _is_to_the_compiler(attribute: Any, operation: Operation) -> bool:
    """Whether it is what we tell the compiler: how many dimensions are a batch, and a memory."""
    least = min([ir.RankedTensorType(x.type).rank for x in operation.operands], default=0)
    batches = [str(n) for n in range(least + 1)]
    allowed = {"num_batch_dims": batches, "_xla_buffer_placement": _MEMORIES}
    words = (
        {name: attribute[name] for name in _names(attribute)}
        if isinstance(attribute, ir.DictAttr)
        else {}
    )
    return bool(words) and all(
        isinstance(text, ir.StringAttr) and text.value in allowed.get(name, ())
        for name, text in words.items()
    )


def _text(operation: Operation, name: str) -> str:
    return ir.StringAttr(operation.attributes[name]).value


def _names(dictionary: Any) -> list[str]:
    return [dictionary[i].name for i in range(len(dictionary))]


def _called(operation: Operation) -> Iterator[str]:
    """The functions that an operation names."""
    attributes = operation.attributes
    for name in ("callee", "decomposition"):
        if name in attributes:
            yield ir.FlatSymbolRefAttr(attributes[name]).value
    if "called_computations" in attributes:
        for one in ir.ArrayAttr(attributes["called_computations"]):
            yield ir.FlatSymbolRefAttr(one).value


def _check_calls(calls: dict[str, set[str]]) -> None:
    """Raise ValueError if a function calls itself, or calls go too deep."""
    depths: dict[str, int] = {}
    waiting = list(calls)
    under: set[str] = set()
    while waiting:
        name = waiting[-1]
        if name not in calls:
            _refuse(f"it calls {name}, which is not in it")
        missing = [other for other in calls[name] if other not in depths]
        if name in depths or not missing:
            waiting.pop()
            under.discard(name)
            depths[name] = 1 + max([depths[other] for other in calls[name]], default=0)
            if depths[name] > _DEEPEST:
                _refuse(f"its functions call one another {depths[name]} deep")
        else:
            under.add(name)
            if not under.isdisjoint(missing):
                _refuse(f"its function {name} calls itself")
            waiting += missing
