"""Parameters of primitives: one rule declares them, with their types, and the others take these."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

from phalanx.base.kinds import is_tuple
from phalanx.core.primitive import DualRule, Primitive
from phalanx.core.types import ArrayType
from phalanx.laws.compare import PrimitiveError

Rule = Callable[..., Any]
_BY_NAME = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY


def parameters(prim: Primitive) -> dict[str, Any]:
    """The type of each parameter of ``prim``, as its declaration says it.

    >>> from phalanx.primitives.shape import concatenate
    >>> parameters(concatenate)
    {'dim': <class 'int'>}
    """
    if prim.params is not None:
        return get_type_hints(prim.params)
    rule = prim.type if prim.subprograms is None else prim.subprograms.frame
    return dict(_named(rule))


def _named(rule: Rule) -> Iterator[tuple[str, Any]]:
    """What ``rule`` takes by name, with the types that it says; an operand's is ``ArrayType``."""
    hints = get_type_hints(rule)
    for name, parameter in signature(rule).parameters.items():
        kind = hints.get(name)
        if parameter.kind is Parameter.VAR_KEYWORD and get_origin(kind) is Unpack:
            yield from get_type_hints(get_args(kind)[0]).items()
        elif parameter.kind in _BY_NAME and kind is not ArrayType:
            yield name, kind


def check_parameters(prim: Primitive) -> None:
    """Every rule of ``prim`` takes the parameters that it declares, of the types declared.

    Raises:
        PrimitiveError: a rule does not take one, or takes it as another type; or an example gives
            one that is not declared, or a value that is not of its type.
    """
    declared = parameters(prim)
    for which, rule in _rules(prim):
        _check_rule(prim, which, rule, declared)
    for i, example in enumerate(prim.examples):
        for name, value in example.params.items():
            if name not in declared:
                _refuse(prim, f"example {i}", f"{name}, which is not declared", [*declared])
            if not _is_of(value, declared[name]):
                _refuse(prim, f"example {i}", f"{name}={value!r}", declared[name])


def _rules(prim: Primitive) -> Iterator[tuple[str, Rule]]:
    """What of a declaration is given the parameters, by name."""
    inner, linearize = prim.subprograms, prim.linearize
    every: dict[str, Any] = {
        **{f"lower_on {platform}": rule for platform, rule in prim.lower_on.items()},
        "type": prim.type, "lower": prim.lower,
        "linearize": linearize.rule if isinstance(linearize, DualRule) else linearize,
        "transpose": prim.transpose, "batch": prim.batch,
        "vary": prim.vary, "windows": prim.elements.windows,
        "operations": prim.elements.operations,
        "named_axes": prim.named_axes and prim.named_axes.of,
        "finalize": prim.fold and prim.fold.finalize,
        "frame": inner and inner.frame, "decides": prim.decides,
        "effects": prim.effects.of, "carry_state": prim.effects.carry_state,
        "region": prim.on_devices.region, "requested_sharding": prim.on_devices.requested_sharding,
        "run": prim.execution.run, "on_host": prim.execution.on_host,
    }  # fmt: skip
    yield from ((which, rule) for which, rule in every.items() if callable(rule))


def _check_rule(prim: Primitive, which: str, rule: Rule, declared: Mapping[str, Any]) -> None:
    taken = dict(_named(rule))
    for name in declared.keys() & taken.keys():
        if not _is_within(taken[name], declared[name]):
            _refuse(prim, which, f"{name}: {taken[name]}", declared[name])
    if any(p.kind is Parameter.VAR_KEYWORD for p in signature(rule).parameters.values()):
        return
    missing = declared.keys() - taken.keys()
    if missing:
        _refuse(prim, which, f"no parameter {', '.join(sorted(missing))}", [*declared])


def _is_within(taken: Any, declared: Any) -> bool:
    """Whether a rule may say ``taken`` of what is ``declared``: an alternative of it, or nothing.

    Nothing is what lambdas say. A rule is asked for some alternatives alone, as of a program where
    there may be a Python function; a protocol has as many as there are classes that follow it.
    """
    if getattr(declared, "_is_protocol", False):
        return True
    return taken in (None, Any, declared, *get_args(declared))


def _refuse(prim: Primitive, which: str, found: Any, expected: Any) -> None:
    message = f"{found}, where the declaration has {expected}"
    raise PrimitiveError(f"{prim.name}: {which}", message, found, expected)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether ``value`` is of the type ``kind``, as far as that can be seen."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, k) for k in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        if not is_tuple(value):
            return False
        each = args[:1] * len(value) if args[-1:] == (...,) else args
        return len(each) == len(value) and all(map(_is_of, value, each))
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)
