"""``pmap`` and ``shard_map`` without compiling: operation by operation, everywhere at once.

Where a ``pmap`` is over processes, what each of them does at once is done for its lanes, and what
lanes tell each other is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.api.enclosing import enclosing
from phalanx.base.source import user_location
from phalanx.control.device import in_lanes, joined
from phalanx.control.spanned import spanned
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks, Dealt
from phalanx.core.primitive import Primitive
from phalanx.core.program import Equation, Program, Var, plain
from phalanx.core.region import Axes
from phalanx.core.roles import Role, Roles, slices
from phalanx.core.trace import InnerTrace, Trace, Tracer, current, entering, running
from phalanx.core.types import typeof
from phalanx.ops.basis import move
from phalanx.ops.lanes import lanes_at
from phalanx.ops.shape import expand_dims, slice_dim, squeeze
from phalanx.run.array import moved
from phalanx.run.eager import as_array
from phalanx.run.spanning import Sharing
from phalanx.spmd.named import NamedSharding, P
from phalanx.transforms.batch import batch

Function = Callable[..., Sequence[Any]]
Ends = Callable[[Sequence[Any]], Roles]
Refuse = Callable[[Role, Any], None]


def at_every_position(
    function: Function, axes: Axes, values: Sequence[Any], ins: Roles, outs: Ends,
    refuse: Refuse | None = None, rest: Split | None = None,
) -> tuple[list[Any], Roles]:  # fmt: skip
    """The results of a flat ``function`` at all positions of ``axes``, joined, and their roles.

    ``ins`` say what a position sees of ``values``, and ``outs``, which is given the results of the
    positions, what becomes of them. A result that an axis does not cut is that of position 0,
    unless it may differ and there is somebody to ``refuse`` it. Where one axis has further
    positions, in other processes, ``rest`` says so.
    """
    roles: Roles = ()

    def innermost(*parts: Any) -> Sequence[Any]:
        nonlocal roles
        results = function(*parts)
        roles = outs(results)
        return results

    def over(axes: Axes) -> Function:
        """The function on what is there of positions that differ along ``axes``."""
        if not axes:
            return innermost
        (axis, size), *further = axes
        inner = tuple(further)
        here = Axis(axis, size, rest or Split(axis, Blocks(size, 1)))

        def run(*values: Any) -> list[Any]:
            lanes = [in_lanes(x, r, here, inner) for x, r in zip(values, ins, strict=True)]
            made = batch(over(inner), here, lanes, [r.place(axis, inner) for r in ins])
            results = list(zip(*made, roles, strict=True))
            for _, dim, role in results:
                if refuse is not None and dim is not None and axis not in role.axes:
                    refuse(role, axis)
            return [joined(y, d, r, here, inner) for y, d, r in results]

        return run

    return list(over(axes)(*values)), roles


def of_processes(
    function: Function, sharing: Sharing, values: Sequence[Any], ins: Roles, outs: Ends,
    refuse: Refuse,
) -> list[Any]:  # fmt: skip
    """The same for the lanes of an axis that this process has, where others have further ones."""
    name, dealt = ("the processes of", sharing.axis), Dealt.of(sharing.every)
    held = np.minimum(np.arange(dealt.length), sharing.rows - 1).tolist()
    dims = [r.place(sharing.axis) for r in ins]
    padded = [
        x if d is None else move(lanes_at(move(x, d, 0), held), 0, d)
        for x, d in zip(values, dims, strict=True)
    ]
    axes = ((sharing.axis, dealt.length),)
    with running(_AmongProcesses(current(), sharing.one_each(name))):
        made = at_every_position(function, axes, padded, ins, outs, refuse, Split(name, dealt))
    results = [(y, r.place(sharing.axis)) for y, r in zip(*made, strict=True)]
    return [y if d is None else slice_dim(y, 0, sharing.rows, d) for y, d in results]


class _AmongProcesses(InnerTrace):
    """Launches what communicates over an axis of which each process is one position."""

    __slots__ = ("sharing",)

    def __init__(self, parent: Trace, sharing: Sharing) -> None:
        super().__init__(parent, sharing.who)
        self.sharing = sharing

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        axis = self.sharing.axis
        if prim.axes is None or axis not in prim.axes(params):
            return self.parent.process(prim, args, params)
        inputs = [Var(plain(typeof(x))) for x in args]
        types = prim.result_type([v.type for v in inputs], params)
        outputs = tuple(map(Var, types if prim.multi else (types,)))
        equation = Equation(prim, list(inputs), params, outputs, user_location())
        mine = slices(((axis,),))
        with entering(self.parent):
            results = spanned(
                *[expand_dims(x, (0,)) for x in args],
                program=Program(inputs, [equation], outputs, prim.name),
                axes=((axis, 1),), ins=(mine,) * len(inputs), outs=(mine,) * len(outputs),
                sharing=self.sharing, at_once=None,
            )  # fmt: skip
            own = tuple([squeeze(y, (0,)) for y in results])
        return own if prim.multi else own[0]


def spread(values: Sequence[Any], roles: Roles, mesh: Any, kind: type[NamedSharding]) -> list[Any]:
    """``values``, over the devices of ``mesh`` as their roles say.

    Traced ones stay as they are, and so do all in a function that divides the devices already.
    """
    if enclosing():
        return list(values)

    def lie(x: Any, role: Role) -> Any:
        if isinstance(x, Tracer):
            return x
        spec = P.of(tuple([tuple(map(str, cutting)) for cutting in role.layout]))
        return moved(as_array(x), kind(mesh, spec))

    return [lie(x, r) for x, r in zip(values, roles, strict=True)]
