"""Names of operations and of their parameters: ours, and those that the field reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from phalanx.api.unreduced_specs import spec_of_role
from phalanx.base.kinds import class_of
from phalanx.compat.loops import LOOPS, Arranged, arranged_loop, counted, with_roles
from phalanx.core import primitive as core
from phalanx.core.layouts import Axes
from phalanx.core.manual import Typed, typed, user_axis_name
from phalanx.core.program import Program
from phalanx.core.roles import Roles
from phalanx.lax.unary import RoundingMethod
from phalanx.primitives.index import GatherScatterMode
from phalanx.spmd.constraint import cutting
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Sharding

# a parameter of operations that others declare; nobody's may have the same name
TYPES: Final = "types of operands"


Values = Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]


class Translation(Struct, frozen=True):
    """How the field names an operation of ours, and its parameters.

    Attributes:
        name: what it calls it.
        names: of our parameters what it calls them, where that is something else.
        values: of our parameters how it tells their values, and the way back.
        besides: what it says that is always the same here.
        unsaid: what we say that it has no word for, as it is there.
        order: which of our operands its own are, where they come in another order.
    """

    name: str
    names: Mapping[str, str] = {}
    values: Values = {}
    besides: Mapping[str, Any] = {}
    omitted: Mapping[str, Any] = {}
    order: tuple[int, ...] = ()


_ACCURATE: Final = (
    "cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt",
    "tan", "tanh",
)  # fmt: skip
_EVEN, _AWAY = RoundingMethod.TO_NEAREST_EVEN, RoundingMethod.AWAY_FROM_ZERO
_EXCHANGED: Final = {"axes": "axis_name", "groups": "axis_index_groups"}
_FACTORS: Final = {"full": "full_matrices", "vectors": "compute_uv"}
_LYING: Final = {"sharding": None}
_MODE: Final[Values] = {"mode": (GatherScatterMode, lambda mode: mode.value)}
_NUMBERS: Final = {"numbers": "dimension_numbers"}
_OF_WINDOWS: Final = {"indices_are_sorted": False, "unique_indices": False}
_REDUCED: Final = {"dims": "axes"}
_RESULT_LYING: Final = {"out_sharding": None}
_ROUNDED: Final[Values] = {
    "mode": (lambda mode: _EVEN if mode == "even" else _AWAY, lambda m: "even" if m else "away")
}
_RULES: Final = {"symbolic_zeros": False}
_SEVERAL: Final[Values] = {"dim": (lambda dim: (dim,), lambda axes: axes[0])}
_SUMMED: Final = {"dtype": "preferred_element_type"}
_TYPED_AXES: Final[Values] = {
    "axes": (lambda axes: tuple(map(user_axis_name, axes)), lambda a: tuple(map(Typed, a)))
}
_TRIANGULAR: Final = {"left": "left_side", "low": "lower", "unit": "unit_diagonal"}
_UPDATED: Final = {**_OF_WINDOWS, "update_jaxpr": None, "update_consts": ()}
_WINDOWS: Final = {"window": "window_dimensions", "strides": "window_strides"}

_SAME_NAMES: Final = [  # of operations that have the same name
    Translation("argmax", {"dim": "axes"}, _SEVERAL),
    Translation("argmin", {"dim": "axes"}, _SEVERAL),
    Translation("concatenate", {"dim": "dimension"}),
    Translation("cond", {"programs": "branches"}, omitted={"agreed": False}),
    Translation(
        "conv_general_dilated", {**_SUMMED, "strides": "window_strides"}, besides=_RESULT_LYING
    ),
    Translation("dot_general", _SUMMED, besides=_RESULT_LYING),
    Translation("dynamic_slice", {"sizes": "slice_sizes"}),
    Translation("gather", {**_NUMBERS, "fill": "fill_value"}, _MODE, _OF_WINDOWS),
    Translation("iota", {"dim": "dimension"}, besides=_LYING),
    Translation("pad", {"config": "padding_config"}),
    Translation("pvary", values=_TYPED_AXES),
    Translation("qr", _FACTORS),
    Translation("reshape", {"shape": "new_sizes"}, besides={"dimensions": None, **_LYING}),
    Translation("round", {"mode": "rounding_method"}, _ROUNDED),
    Translation("scan", {"program": "jaxpr"}),
    Translation("scatter", _NUMBERS, _MODE, _UPDATED),
    Translation("slice", {"start": "start_indices", "limit": "limit_indices"}),
    Translation("sort", {"dim": "dimension", "stable": "is_stable"}),
    Translation("svd", _FACTORS),
    Translation("top_k", besides={"axis": -1, "is_stable": True}),
    Translation("transpose", {"perm": "permutation"}),
    Translation("triangular_solve", _TRIANGULAR),
    Translation("while", {"program": "body_jaxpr", "condition": "cond_jaxpr"}),
    *[Translation(f"reduce_{kind}", _REDUCED) for kind in ("and", "or", "prod", "xor")],
    *[Translation(f"reduce_{k}", _REDUCED, besides=_RESULT_LYING) for k in ("max", "min", "sum")],
    *[Translation(f"reduce_window_{kind}", _WINDOWS) for kind in ("max", "min", "sum")],
    *[Translation(f"cum{k}", {"dim": "axis"}) for k in ("logsumexp", "max", "min", "prod", "sum")],
    *[Translation(kind, {"groups": "axis_index_groups"}) for kind in ("pmax", "pmin", "psum")],
    *[Translation(name, besides={"accuracy": None}) for name in _ACCURATE],
]

# of our operations, by our name
NAMES: Final[dict[str, Translation]] = {
    **{translation.name: translation for translation in _SAME_NAMES},
    **{
        f"scatter_{kind}": Translation(f"scatter-{kind}", _NUMBERS, _MODE, _UPDATED)
        for kind in ("add", "max", "min", "mul", "sub")
    },
    "bitcast": Translation("bitcast_convert_type", {"dtype": "new_dtype"}),
    "broadcast": Translation("broadcast_in_dim", {"dims": "broadcast_dimensions"}, besides=_LYING),
    "call": Translation(
        "jit", {"program": "jaxpr"}, besides={"inline": False, "keep_unused": False}
    ),
    "checkpoint": Translation("remat2", {"program": "jaxpr", "again": "differentiated"}),
    "convert": Translation(
        "convert_element_type", {"dtype": "new_dtype", "weak": "weak_type"}, besides=_LYING
    ),
    "custom_jvp": Translation(
        "custom_jvp_call", {"program": "call_jaxpr", "rule": "jvp_jaxpr_fun"}, besides=_RULES
    ),
    "custom_vjp": Translation(
        "custom_vjp_call", {"program": "call_jaxpr", "rule": "bwd"}, besides=_RULES
    ),
    "host_call": Translation("pure_callback", {"host": "callback", "out_types": "result_avals"}),
    "mapped": Translation("shard_map", {"program": "jaxpr"}),
    "psum_scatter": Translation(
        "reduce_scatter", _EXCHANGED, besides={"scatter_dimension": 0, "tiled": False}
    ),
    "reverse": Translation("rev", {"dims": "dimensions"}),
    "select": Translation("select_n", order=(0, 2, 1)),
    "with_sharding_constraint": Translation("sharding_constraint"),
}


# of a sum along axes of which types know: no result varies along them
INVARIANT: Final = Translation("psum_invariant", values=_TYPED_AXES, omitted={"groups": None})
# of a constraint over axes of which types know: the compiler has no say
RESHARD: Final = Translation(
    "reshard", {"sharding": "dst_sharding"}, besides={"concrete_mesh": None}
)


def translation_of(prim: core.Primitive, params: Mapping[str, Any] | None = None) -> Translation:
    """The translation of ``prim``, which depends for some on the parameters."""
    if params and prim.name == "psum" and _is_invariant(**params):
        return INVARIANT
    if params and prim.name == "with_sharding_constraint" and _is_of_types(**params):
        return RESHARD
    return NAMES.get(prim.name) or Translation(prim.name)


def _is_invariant(axes: Sequence[Any], groups: Any) -> bool:
    return groups is None and len(typed(axes)) == len(axes) > 0


def _is_of_types(sharding: Sharding) -> bool:
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return False
    return set(sharding.mesh.auto_axes).isdisjoint(cutting(sharding))


def arranged(prim: core.Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Arranged:
    """The field's operands, which of our results its own are, if not all in order, and the
    parameters with which the operation takes and gives those."""
    if prim.name in LOOPS:
        return arranged_loop(prim, operands, params)
    return in_order(prim, operands), None, params


def in_order(prim: core.Primitive, operands: Sequence[Any]) -> list[Any]:
    """Our ``operands`` as the field has them; or the field's, as we have them."""
    order = translation_of(prim).order
    return [operands[i] for i in order] if order else [*operands]


def theirs(
    prim: core.Primitive, params: Mapping[str, Any], shown: Callable[..., Any]
) -> dict[str, Any]:
    """``params``, which are ``arranged``, under the field's names; programs are ``shown``."""
    translation = translation_of(prim, params)
    if prim.name in LOOPS:
        params = counted(prim, params)
    out = dict(translation.besides)
    for name, value in params.items():
        if name == TYPES or (name in translation.omitted and value == translation.omitted[name]):
            continue
        if name in translation.values:
            value = translation.values[name][0](value)
        out[translation.names.get(name, name)] = _each(value, Program, shown)
    if prim.name == "call":
        out |= _of_call(params["program"])
    if prim.name == "dot_general":
        out["dimension_numbers"] = (out.pop("contract"), out.pop("batch"))
    return out | (_of_shard_map(**params) if prim.name == "mapped" else {})


def ours(
    prim: core.Primitive,
    translation: Translation,
    params: Mapping[str, Any],
    hidden: Callable[..., Any],
) -> dict[str, Any]:
    """The way back, by the ``translation`` of ``prim``; ``hidden`` makes programs of what was shown
    for them, and leaves all else."""
    back = {their: our for our, their in translation.names.items()}
    out = dict(translation.omitted)
    for name, value in params.items():
        own = back.get(name, name)
        if own in translation.values:
            value = translation.values[own][1](value)
        if name not in translation.besides or value != translation.besides[name]:
            out[own] = _each(value, object, hidden)
    if prim.name in LOOPS:
        out = with_roles(prim, out)
    if prim.name == "call":
        out = {k: v for k, v in out.items() if k not in _PARAMS_OF_CALLS}
    if prim.name == "dot_general":
        out["contract"], out["batch"] = out.pop("dimension_numbers")
    if prim.name == "mapped":
        out = {k: v for k, v in out.items() if k not in _PARAMS_OF_ROLES}
    return out


def _of_call(program: Program) -> dict[str, Any]:
    """What the field says of a compiled function within another: here it is but its program."""
    ins, outs = len(program.input_types), len(program.output_types)
    by_argument = {"donated_invars": (False,) * ins, "in_shardings": (None,) * ins}
    return {"name": program.name, "out_shardings": (None,) * outs, **by_argument}


_PARAMS_OF_CALLS: Final = ("donated_invars", "in_shardings", "name", "out_shardings")
_PARAMS_OF_ROLES: Final = ("in_specs", "out_specs", "manual_axes", "check_vma")


def _of_shard_map(*, axes: Axes, ins: Roles, outs: Roles, **_: Any) -> dict[str, Any]:
    """What the field says of a mapped function in place of the roles of its arguments."""
    translation = [tuple(map(spec_of_role, roles)) for roles in (ins, outs)]
    names = [name for name, _ in axes]
    return dict(
        zip(
            _PARAMS_OF_ROLES,
            [*translation, {*map(user_axis_name, names)}, bool(typed(names))],
            strict=True,
        )
    )


def _each(value: Any, kind: type, change: Callable[..., Any]) -> Any:
    """``value`` with what is a ``kind`` in it, itself or in a tuple, changed."""
    if class_of(value) is tuple:
        return tuple([_each(v, kind, change) for v in value])
    return change(value) if isinstance(value, kind) else value
