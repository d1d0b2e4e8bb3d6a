"""Shardings as Python: the lines that compile a step as a plan does."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.arguments import positional_names
from phalanx.api.stages import Traced
from phalanx.base import tree
from phalanx.base.kinds import class_of
from phalanx.insight.plans.microbatches import Constraint
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding

__all__ = ["JitOptions", "code_of"]

_HEAD = """\
import phalanx
from phalanx import NamedSharding, P

mesh = phalanx.make_mesh({sizes}, {axes}{devices})

def over(*axes):
    return NamedSharding(mesh, P(*axes))
"""
_CALL = """
{name} = phalanx.jit(
    {name},
    in_shardings=in_shardings,
    out_shardings=out_shardings,
    donate_argnums={donated},
)"""
_WIDTH = 96


class JitOptions(Struct, frozen=True):
    """With what ``jit`` compiles a step, in its words; ``outs`` are the leaves of the results."""

    in_shardings: tuple[Any, ...]
    out_shardings: Any
    donate_argnums: tuple[int, ...]
    outs: Sequence[NamedSharding | None]


def code_of(
    traced: Traced, options: JitOptions, mesh: Mesh, constraints: Sequence[Constraint],
    of_some: bool,
) -> str:  # fmt: skip
    """The lines that compile a step over ``mesh``; constraints are comments, for they belong into
    the step.

    Args:
        traced: the step.
        options: with what ``jit`` compiles it.
        mesh: the mesh.
        constraints: where values inside of it are told how they lie.
        of_some: whether the mesh is of ``devices`` that the user has, rather than of the first.
    """
    axes, sizes = zip(*mesh.axes, strict=True)
    name = traced.fun_name if traced.fun_name.isidentifier() else "step"
    head = _HEAD.format(sizes=sizes, axes=axes, devices=", devices=devices" if of_some else "")
    ins = options.in_shardings
    names = positional_names(traced._traced.names.fun, len(ins))
    written = [
        f"    {_indented(_sharding(x, name))},  # {name}\n"
        for name, x in zip(names, ins, strict=True)
    ]
    in_parts = dict(_parts_of(ins, "in_shardings"))
    outs = _known(options.out_shardings, in_parts)
    if outs is None:
        called = f"phalanx.eval_shape({name}, {', '.join(names)})"
        outs = _by_structure(options.outs, called)
    return "".join(
        [
            head, *dict.fromkeys(map(_constraint_code, constraints)),
            "\nin_shardings = (\n", *written, ")\n",
            f"out_shardings = {outs}\n",
            _CALL.format(name=name, donated=options.donate_argnums),
        ]
    )  # fmt: skip


def _constraint_code(constraint: Constraint) -> str:
    """The comment on a constraint."""
    return (
        f"\n# {constraint.location}: {constraint.what}, {constraint.type}, lies so:\n"
        f"# phalanx.lax.with_sharding_constraint(x, {_leaf(constraint.sharding)})\n"
    )


def _sharding(value: Any, name: str) -> str:
    """The shardings of an argument: by its structure, if it has nodes of classes of its own."""
    found = _known(value, {})
    return _by_structure(tree.leaves(value), name) if found is None else found


def _by_structure(leaves: Sequence[NamedSharding | None], name: str) -> str:
    """The shardings of the ``leaves`` of what is called ``name``, in its structure."""
    listed = ", ".join(map(_leaf, leaves))
    return f"phalanx.tree.unflatten(phalanx.tree.structure({name}), [{listed}])"


def _known(value: Any, names: Mapping[str, Any]) -> str | None:
    """A tree of shardings as text: one where all leaves have the same, and a name where that has
    them; None if it has nodes of classes of its own."""
    leaves, structure = tree.flatten(value, _is_leaf)
    if leaves and all([x == leaves[0] for x in leaves]):
        return _leaf(leaves[0])
    for name, other in names.items():
        if (leaves, structure) == tree.flatten(other, _is_leaf):
            return name
    children, kind = _children(value), class_of(value)
    if kind not in (dict, list, tuple):
        return None
    parts: list[str] = []
    for key, x in children:
        text = _known(x, names)
        if text is None:
            return None
        parts.append(f"{key!r}: {text}" if kind is dict else text)
    ends = {dict: "{}", list: "[]", tuple: ("(", ",)" if len(parts) == 1 else ")")}[kind]
    line = ", ".join(parts)
    if len(line) < _WIDTH and "\n" not in line:
        return ends[0] + line + ends[1]
    inside = [f"    {_indented(x)},\n" for x in parts]
    return f"{ends[0]}\n{''.join(inside)}{ends[1][-1]}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _parts_of(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The parts of a tree of shardings that are no leaves, by how they are named."""
    for key, x in _children(value):
        if not _is_leaf(x):
            child = f"{name}[{key!r}]"
            yield child, x
            yield from _parts_of(x, child)


def _children(value: Any) -> list[tuple[Any, Any]]:
    """What is in a dict, a list or a tuple, with the keys or numbers."""
    kind = class_of(value)
    if kind is dict:
        return [*value.items()]
    return [*enumerate(value)] if kind in (list, tuple) else []


def _leaf(sharding: NamedSharding | None) -> str:
    if sharding is None:
        return "None"
    return f"over({', '.join(map(repr, sharding.spec))})"


def _is_leaf(x: Any) -> bool:
    return x is None or isinstance(x, NamedSharding)
