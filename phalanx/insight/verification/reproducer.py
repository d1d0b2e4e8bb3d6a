"""A short program that does what one operation of a large one does on devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base.extended import is_key
from phalanx.base.kinds import is_tuple
from phalanx.core.manual import user_axis_name
from phalanx.core.program import Equation, Program
from phalanx.core.runs import Lanes
from phalanx.core.types import ArrayType
from phalanx.insight.verification.bisection import Culprit
from phalanx.run.array import DeviceArray
from phalanx.spmd.named import NamedSharding

__all__ = ["program_text"]

_WIDTH = 100
_HEAD = """\
import numpy as np, phalanx
from phalanx import NamedSharding, P
from phalanx.core.primitive import REGISTRY
"""


def program_text(culprit: Culprit, program: Program) -> str | None:
    """The text of a program of that operation alone, on drawn operands; None if there is none."""
    e = culprit.equation
    mapped = _around(program, culprit.path)
    params = _params(e)
    if (
        mapped is None
        or params is None
        or not e.inputs
        or any([is_key(a.type.dtype) for a in e.inputs])
    ):
        return None
    names = _names(len(e.inputs))
    body = [f"def operation({', '.join(names)}):"]
    body += _listed(f'    return REGISTRY["{e.prim.name}"](', [*names, *params], ")")
    lines = [_HEAD, *_drawn(culprit, bool(mapped))]
    if not mapped:
        imitation = _over_mesh(culprit)
    elif mapped[0].prim.name == "mapped" and mapped[0].params["mesh"] is None:
        imitation = _in_lanes(mapped[0])
    else:
        imitation = None
    if imitation is None:
        return None
    return "\n".join([*lines, *body, *imitation, "print(phalanx.verify(f)(*operands))"])


def _around(program: Program, path: Sequence[int]) -> list[Equation] | None:
    """The lanes around the operation; None if those are of several functions."""
    found: list[Equation] = []
    for number in path:
        e = program.equations[number]
        if e.frame is not None and isinstance(e.frame.runs, Lanes):
            found.append(e)
        (program,) = e.programs
    axes = found[0].params["axes"] if found else ()
    return found if len(found) < 2 and len(axes) < 2 else None


def _names(count: int) -> list[str]:
    return [f"x{i}" for i in range(count)]


def _params(e: Equation) -> list[str] | None:
    """The parameters as they are written in Python; None if one cannot be."""
    if e.prim.subprograms is not None:
        return None
    written: list[str] = []
    for name, value in e.params.items():
        if isinstance(value, np.dtype):
            written.append(f'{name}=np.dtype("{value.name}")')
        elif _is_plain(value):
            written.append(f"{name}={_plain(value)!r}")
        else:
            return None
    return written


def _is_plain(value: Any) -> bool:
    if is_tuple(value):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _plain(value: Any) -> Any:
    """Axes as the user names them."""
    if is_tuple(value):
        return tuple(map(_plain, value))
    return str(user_axis_name(value)) if isinstance(value, str) else value


def _drawn(culprit: Culprit, in_lanes: bool) -> list[str]:
    """Lines that draw the operands."""
    pairs = zip(culprit.equation.inputs, culprit.operands, strict=True)
    arrays = [_array(a.type, tuple(np.shape(x)) if in_lanes else a.type.shape) for a, x in pairs]
    return ["rng = np.random.default_rng(0)", *_listed("operands = [", arrays, "]")]


def _listed(start: str, items: Sequence[str], end: str) -> list[str]:
    """Items between brackets, as many in a line as fit."""
    lines, margin = [start], " " * (len(start) - len(start.lstrip()) + 4)
    for item in [*[f"{item}, " for item in items[:-1]], f"{items[-1]}{end}"]:
        if len(lines[-1] + item) > _WIDTH:
            lines.append(margin)
        lines[-1] += item
    return [line.rstrip() for line in lines]


def _array(type: ArrayType, shape: tuple[int, ...]) -> str:
    kind = np.dtype(type.dtype).kind
    if kind == "b":
        return f"rng.random({shape}) < 0.5"
    if kind in "iu":
        return f'rng.integers(0, 3, {shape}).astype("{type.dtype.name}")'
    return f'rng.normal(size={shape}).astype("{type.dtype.name}")'


def _over_mesh(culprit: Culprit) -> list[str] | None:
    """Lines that compile the operation with the shardings that its operands had."""
    shardings = [x.sharding if isinstance(x, DeviceArray) else None for x in culprit.operands]
    meshes = {s.mesh for s in shardings if isinstance(s, NamedSharding)}
    if len(meshes) != 1:
        return None
    (mesh,) = meshes
    if mesh.explicit_axes:
        return None
    axes, sizes = zip(*mesh.axes, strict=True)
    results = [x.sharding for x in culprit.results if isinstance(x, DeviceArray)]
    lines = [
        f"mesh = phalanx.make_mesh({tuple(sizes)}, {tuple(axes)})",
        f"shardings = [{', '.join(map(_sharding, shardings))}]",
    ]
    asked = ["operation", "in_shardings=shardings"]
    if len(culprit.results) == len(results) == 1:
        asked.append(f"out_shardings={_sharding(results[0])}")
    return [*lines, *_listed("f = phalanx.jit(", asked, ")")]


def _sharding(sharding: Any) -> str:
    return (
        f"NamedSharding(mesh, {sharding.spec})" if isinstance(sharding, NamedSharding) else "None"
    )


def _in_lanes(mapped: Equation) -> list[str]:
    ((axis, _),) = mapped.params["axes"]
    return [f"f = phalanx.pmap(operation, {str(user_axis_name(axis))!r})"]
