"""Names of operations and of their parameters: ours, and those that the field reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from phalanx.api.sums_at_ends import spec_of
from phalanx.base.kinds import class_of
from phalanx.core import primitive as core
from phalanx.core.layouts import Axes
from phalanx.core.manual import as_said, typed
from phalanx.core.program import Program
from phalanx.core.roles import Roles

# a parameter of operations that others declare; nobody's may have the same name
TYPES: Final = "types of operands"

_REDUCED: Final = {"dims": "axes"}
_WINDOWS: Final = {"window": "window_dimensions", "strides": "window_strides"}

# of our operations, what the field calls them, and their parameters where it calls these otherwise
NAMES: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "bitcast": ("bitcast_convert_type", {"dtype": "new_dtype"}),
    "broadcast": ("broadcast_in_dim", {"dims": "broadcast_dimensions"}),
    "call": ("jit", {"program": "jaxpr"}),
    "checkpoint": ("checkpoint", {"program": "jaxpr"}),
    "concatenate": ("concatenate", {"dim": "dimension"}),
    "cond": ("cond", {"programs": "branches"}),
    "conv_general_dilated": (
        "conv_general_dilated",
        {"dtype": "preferred_element_type", "strides": "window_strides"},
    ),
    "convert": ("convert_element_type", {"dtype": "new_dtype", "weak": "weak_type"}),
    "custom_jvp": ("custom_jvp_call", {"program": "call_jaxpr", "rule": "jvp_jaxpr_fun"}),
    "custom_vjp": ("custom_vjp_call", {"program": "call_jaxpr", "rule": "bwd"}),
    "dot_general": ("dot_general", {"dtype": "preferred_element_type"}),
    "dynamic_slice": ("dynamic_slice", {"sizes": "slice_sizes"}),
    "host_call": ("pure_callback", {}),
    "iota": ("iota", {"dim": "dimension"}),
    "mapped": ("shard_map", {"program": "jaxpr"}),
    "pad": ("pad", {"config": "padding_config"}),
    "reshape": ("reshape", {"shape": "new_sizes"}),
    "reverse": ("rev", {"dims": "dimensions"}),
    "scan": ("scan", {"program": "jaxpr"}),
    "slice": ("slice", {"start": "start_indices", "limit": "limit_indices"}),
    "sort": ("sort", {"dim": "dimension", "stable": "is_stable"}),
    "transpose": ("transpose", {"perm": "permutation"}),
    "while": ("while", {"program": "body_jaxpr", "condition": "cond_jaxpr"}),
    "with_sharding_constraint": ("sharding_constraint", {}),
    **{
        f"reduce_{kind}": (f"reduce_{kind}", _REDUCED)
        for kind in ("and", "max", "min", "or", "prod", "sum", "xor")
    },
    **{
        f"reduce_window_{kind}": (f"reduce_window_{kind}", _WINDOWS)
        for kind in ("max", "min", "sum")
    },
    **{
        f"cum{kind}": (f"cum{kind}", {"dim": "axis"})
        for kind in ("logsumexp", "max", "min", "prod", "sum")
    },
    **{kind: (kind, {"groups": "axis_index_groups"}) for kind in ("pmax", "pmin", "psum")},
}


def name_in_the_field(prim: core.Primitive) -> str:
    """What the field calls ``prim``."""
    return NAMES.get(prim.name, (prim.name, {}))[0]


def theirs(
    prim: core.Primitive, params: Mapping[str, Any], shown: Callable[..., Any]
) -> dict[str, Any]:
    """``params`` under the field's names; programs are ``shown``."""
    _, names = NAMES.get(prim.name, (prim.name, {}))
    out = {names.get(k, k): _each(v, Program, shown) for k, v in params.items() if k != TYPES}
    if prim.name == "call":
        out["name"] = params["program"].name
    if prim.name == "dot_general":
        out["dimension_numbers"] = (out.pop("contract"), out.pop("batch"))
    return out | (_of_shard_map(**params) if prim.name == "mapped" else {})


def ours(
    prim: core.Primitive, params: Mapping[str, Any], hidden: Callable[..., Any]
) -> dict[str, Any]:
    """The way back; ``hidden`` takes what is shown to a program, and leaves all else."""
    _, names = NAMES.get(prim.name, (prim.name, {}))
    back = {their: our for our, their in names.items()}
    out = {back.get(k, k): _each(v, object, hidden) for k, v in params.items()}
    if prim.name == "call":
        out.pop("name", None)
    if prim.name == "dot_general":
        out["contract"], out["batch"] = out.pop("dimension_numbers")
    if prim.name == "mapped":
        out = {k: v for k, v in out.items() if k not in _SAID_OF_ROLES}
    return out


_SAID_OF_ROLES: Final = ("in_specs", "out_specs", "manual_axes", "check_vma")


def _of_shard_map(*, axes: Axes, ins: Roles, outs: Roles, **_: Any) -> dict[str, Any]:
    """What the field says of a mapped function in place of the roles of its arguments."""
    said = [tuple(map(spec_of, roles)) for roles in (ins, outs)]
    names = [name for name, _ in axes]
    return dict(
        zip(_SAID_OF_ROLES, [*said, {*map(as_said, names)}, bool(typed(names))], strict=True)
    )


def _each(value: Any, kind: type, change: Callable[..., Any]) -> Any:
    """``value`` with what is a ``kind`` in it, itself or in a tuple, changed."""
    if class_of(value) is tuple:
        return tuple([_each(v, kind, change) for v in value])
    return change(value) if isinstance(value, kind) else value
