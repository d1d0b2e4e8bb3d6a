"""What JAX says where we say the same otherwise: tests and handlers look for such phrases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from phalanx.base.errors import code_of


def phrased(error: BaseException, text: str) -> str:
    """``text`` of ``error``, which tells at its end what JAX says, if programs look for that.

    >>> from phalanx.base.errors import coded
    >>> phrased(coded(ValueError(), "manual mesh"), "set_mesh: the axis 'x' is of type Manual")
    "set_mesh: the axis 'x' is of type Manual (in JAX's words: set_mesh: the mesh contains manual \
axes)"
    """
    code, fields = code_of(error) or ("", {})
    phrase = _PHRASES.get(code)
    if phrase is None or _IN_JAXS_WORDS in text:  # it crossed a boundary before
        return text
    message = phrase.format(**fields) if isinstance(phrase, str) else phrase(**fields)
    return f"{text}{_IN_JAXS_WORDS}{message})" if message else text


_IN_JAXS_WORDS = " (in JAX's words: "


def _function(who: str) -> str:
    """The function of which a message is, without what it was called with, or of whom."""
    return who.partition(":")[0].partition("(")[0]


def _spec_without_mesh(who: str) -> str:
    name = _function(who)
    if name == "device_put":
        return "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put"
    if name == "with_sharding_constraint" or who.endswith("_shardings"):
        return f"{name} requires a non-empty mesh in context"
    return f"Using PartitionSpec when {name} is not under a mesh context is not allowed"


def _no_such_axis(axis: str, spec: str, axes: str) -> str:
    entries = spec.removesuffix(")").removesuffix(",")
    return f"Resource axis: {axis} of {entries},) is not found in mesh: ({axes})."


def _axis_twice(who: str, axis: str, spec: str) -> str:
    what = who.rpartition(": ")[2]
    if not what.endswith("_shardings"):
        return ""
    return (
        f"A single {what} specification can map every mesh axis to at most one positional "
        f"dimension, but {spec} has duplicate entries for `{axis}`"
    )


def _does_not_fit(what: str, spec: str, entries: int, rank: int) -> str:
    if entries <= rank:
        return ""
    return (
        f"One of pjit {'outputs' if what == 'out_shardings' else 'arguments'} has {spec}, which is "
        f"for values of rank at least {entries}, but was applied to a value of rank {rank}"
    )


def _result_unclear(name: str, why: str) -> str:
    """What is said of an operation whose operands do not tell how the result lies."""
    if name in _OF_OPERATIONS:
        return _OF_OPERATIONS[name]
    if why == "summed":
        return "Contracting dimensions are sharded"
    if why == "twice":
        return f"{name} operation with these operands produces an illegally sharded result"
    return f"{name} got incompatible shardings for broadcasting"


_OF_OPERATIONS = {
    "pad": "padding on sharded dims is not supported",
    "reshape": "This reshape is not supported",
    "select": "select cases must have the same shardings",
    "select_n": "select cases must have the same shardings",
    "slice": "slicing on sharded dims is not supported",
}


def _sum(name: str, possible: bool, every: bool) -> str:
    if not possible:
        return f"unreduced rule for {name} is not implemented"
    if every:
        return f"lhs and rhs to `{name}` must be unreduced along the same mesh axes"
    return "lhs is unreduced while rhs is not"


def _devices_differ(
    name: str, kinds: Sequence[str], inputs: Sequence[tuple[str, str]], ids: Sequence[int]
) -> str:
    one = "Received incompatible devices for jitted computation. Got"
    if [*kinds] == ["result", "constraint"]:
        return (
            f"{one} explicit output sharding with device ids {[*ids]} and sharding_constraint "
            "inside jit with device ids of others"
        )
    if [*kinds] != ["input", "input"]:
        return ""
    (first, its), (second, others) = inputs
    return (
        f"{one} argument {first.removeprefix('operand ')} of {name} with shape {its} and "
        f"argument {second.removeprefix('operand ')} of {name} with shape {others}"
    )


def _no_array(type: str, array: str, name: str) -> str:
    if type != "ShapeDtypeStruct":
        return ""
    return f"Argument '{name}' of shape {array} of type {type} is not a valid JAX type."


def _no_array_returned(type: str) -> str:
    return f"A {type} does not have a value" if type == "ShapeDtypeStruct" else ""


def _no_spec(spec: str) -> str:
    return "Unexpected None" if spec == "NoneType" else ""


def _unbound_axis(who: str, axis: str) -> str:
    if who in ("pcast", "pvary"):
        return f"pvary should be called under jax.shard_map. Found an unbound axis name: {axis}"
    return (
        f"Found an unbound axis name: {axis}. To fix this, please call {who} under `jax.shard_map`"
    )


def _varies(spec: str, varying: Sequence[str], missing: Sequence[str]) -> str:
    named = [axis for axis in varying if axis not in missing]
    return (
        f"out_specs require replication which can't be statically inferred: out_specs is {spec} "
        f"which implies that the corresponding output value is only varying across mesh axes "
        f"{_braced(named)} and not {_braced(missing)}, but it was inferred to be possibly varying "
        f"over {_braced(varying)}"
    )


def _braced(names: Iterable[str]) -> str:
    return f"{{{','.join(names)}}}"


def _long_spec(who: str) -> str:
    name = who.partition("(")[2].removesuffix(")")
    return f"shard_map applied to the function '{name}'"


def _value_needed(type: str, kind: str) -> str:
    value = f"traced array with shape {type.removeprefix('~')}"
    return {
        "TracerBoolConversionError": f"Attempted boolean conversion of {value}.",
        "TracerIntegerConversionError": f"The __index__() method was called on {value}",
        "TracerArrayConversionError": (
            f"The numpy.ndarray conversion method __array__() was called on {value}"
        ),
    }.get(kind, f"Abstract tracer value encountered where concrete value is expected: {value}")


_PHRASES: dict[str, str | Callable[..., str]] = {
    "axis in use": "jax.shard_map requires axis_names to be a subset of those left",
    "axis twice": _axis_twice,
    "carry changes": "scan: carry input and carry output must have equal types",
    "cast of mixed": "jax.lax.pcast can only accept axis_name which are all of one kind",
    "device and backend": "can't specify both a device and a backend for jit",
    "device and shardings": (
        "If backend or device is specified on jit, then in_shardings should not be specified. "
        "If backend or device is specified on jit, then out_shardings should not be specified."
    ),
    "devices differ": _devices_differ,
    "does not fit": _does_not_fit,
    "empty mesh": "shard_map requires a non-empty mesh",
    "in_shardings by name": "pjit does not support kwargs when in_shardings is specified.",
    "lanes are cut": (
        "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed, got "
        "spmd_axis_name={axes}"
    ),
    "lanes in specs": "vmap spmd_axis_name cannot appear in shard_map in_specs or out_specs",
    "lanes over no mesh": (
        "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your "
        "jitted function inside the mesh context manager. Got {sharding}"
    ),
    "long spec": _long_spec,
    "manual axis": "the sharding contains a manual axes '{axis}' of mesh",
    "manual mesh": "set_mesh: the mesh contains manual axes",
    "mapped axes differ": (
        "Mapped away dimension of inputs passed to vmap should be sharded the same"
    ),
    "mask": "Array boolean indices must be concrete; got {type}",
    "no array": _no_array,
    "no array returned": _no_array_returned,
    "no mesh": "The context mesh cannot be empty",
    "no rule for tangents": ("can't apply forward-mode autodiff (jvp) to a custom_vjp function."),
    "no spec": _no_spec,
    "no such axis": _no_such_axis,
    "no such sum": (
        "unreduced axes should be equal to the contracting specs, and lhs and rhs contracting dims "
        "should be sharded identically"
    ),
    "not a sharding": (
        "{what} leaf specifications are expected to be PartitionSpec instances or None, but got "
        "{got}"
    ),
    "of another kind": "out_specs passed to shard_map are of another kind than the result",
    "operands vary": "Primitive {name} requires varying manual axes to match",
    "rank": (
        "One of {who} arguments has {spec}, which is for values of rank at least {entries}, but "
        "was applied to a value of rank {rank}"
    ),
    "result unclear": _result_unclear,
    "rows are cut": "0th dimension of all xs should be replicated",
    "shape of values": (
        "Abstract tracer value encountered where concrete value is expected: traced array with "
        "shape {type}"
    ),
    "spec without mesh": _spec_without_mesh,
    "sum": _sum,
    "unbound axis": _unbound_axis,
    "value needed": _value_needed,
    "varies": _varies,
}
