"""``segment``: a part of a program in lanes that runs a few lanes at a time.

Nothing in it communicates over the axis but at its end, by collectives that take in lanes one
after the other, such as ``psum``. On its lanes it is a loop over chunks of them. The loop adds up
what those collectives take in, and keeps the other results for each lane. Where a chunk is one
lane, the program runs as it is: its loops and conditions are that lane's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.control.branch import branch
from phalanx.control.call import frame_of_one, lower_call
from phalanx.control.family import with_subprograms
from phalanx.control.lanes import batch_rule
from phalanx.control.scan import scan
from phalanx.core.axes import Axis
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Fold, Primitive
from phalanx.core.program import Atom, Equation, Frame, Literal, Program, Var
from phalanx.core.roles import CARRY, FIXED, Roles, each
from phalanx.core.runs import Loop, Marks
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast, convert, full, move, zeros
from phalanx.primitives.domains import I32
from phalanx.primitives.in_order import accumulating
from phalanx.primitives.lanes import folded, is_there, only_where
from phalanx.primitives.reduce import reduce_or
from phalanx.primitives.shape import (
    concatenate,
    expand_dims,
    merge_dims,
    slice_dim,
    split_dim,
    squeeze,
)
from phalanx.transforms.batch import Dims, on_lanes
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.effects import conditional
from phalanx.transforms.simplify import with_inputs
from phalanx.transforms.stage import evaluate

Values = Sequence[Any]
Pair = tuple[Any, int | None]  # a value, and the dimension of its lanes


def fold_over(e: Equation, axis: Any) -> Fold | None:
    """How ``e`` takes in lanes of ``axis`` one after the other, if it does."""
    return e.prim.fold if axis in e.axes and e.params.get("groups") is None else None


class _Lane(Struct, frozen=True):
    """What a lane of a segment does.

    ``body`` gives what is ``passed_on`` of the lane, and then what is ``taken`` in, and how, by the
    collectives at the end, ``ends``.
    """

    body: Program
    passed_on: tuple[Atom, ...]
    taken: tuple[tuple[Atom, Fold], ...]
    ends: tuple[tuple[Equation, Fold], ...]

    @staticmethod
    def of(program: Program, axis: Any) -> _Lane:
        ends = tuple([(e, fold) for e in program.equations if (fold := fold_over(e, axis))])
        last = {e for e, _ in ends}
        equations = [e for e in program.equations if e not in last]
        computed = {v for e in equations for v in e.outputs}
        passed_on = tuple([a for a in program.outputs if a in computed])
        taken = dict.fromkeys([(a, fold) for e, fold in ends for a in e.inputs if a in computed])
        outputs = (*passed_on, *(a for a, _ in taken))
        body = program.update(equations=equations, outputs=outputs)
        return _Lane(body, passed_on, tuple(taken), ends)

    def identity_values(self) -> list[Any]:
        """What has taken in no lane."""
        types = [(accumulating(a.type), fold) for a, fold in self.taken]
        return [full(t.shape, fold.identity(t.dtype), t.dtype) for t, fold in types]

    def together(self, some: Values, more: Values) -> list[Any]:
        """What has taken in ``some`` and ``more``."""
        triples = zip(self.taken, some, more, strict=True)
        return [fold.combine(x, y) for (_, fold), x, y in triples]

    def run(self, lanes: Marks, values: Values, count: int) -> tuple[list[Any], list[Any]]:
        """What is kept of ``count`` lanes, and what is taken in of them.

        They come first in what is marked as ``lanes`` of ``values``, and in what is kept. After
        the operands there may be a value that marks those lanes that are no padding.
        """
        body = self.body
        operands = values[: len(body.inputs)]
        (there,) = values[len(operands) :] or (None,)
        lanes = lanes[: len(operands)]
        if body.effects and there is not None:
            body, operands, lanes = conditional(body), [there, *operands], (True, *lanes)
        outs = _results(body, lanes, operands, count)
        passed_on = len(self.passed_on)
        pairs = zip(outs[passed_on:], self.taken, strict=True)
        return outs[:passed_on], [fold.local(_real(there, x, fold)) for x, (_, fold) in pairs]


def _results(program: Program, lanes: Marks, values: Values, count: int) -> list[Any]:
    if count > 1:
        dims = [0 if m else None for m in lanes]
        return on_lanes(program, Axis(None, count), values, dims)
    alone = [squeeze(x, (0,)) if m else x for x, m in zip(values, lanes, strict=True)]
    return [expand_dims(y, (0,)) for y in evaluate(program, alone)]


def _real(there: Any, x: Any, fold: Fold) -> Any:
    """``x`` as it is taken in, of the lanes that are ``there``; None: of all."""
    type = accumulating(typeof(x))
    x = _converted(x, type)
    return x if there is None else only_where(there, x, fold.identity(type.dtype))


def _converted(x: Any, type: ArrayType) -> Any:
    if typeof(x).dtype == type.dtype:
        return x  # a sum over lanes of a product is seen as one only where nothing is between
    return convert(x, dtype=type.dtype, weak=False)


# ---- the loop -----------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Values, dims: Dims, *, program: Program, of: Any, at_once: int
) -> tuple[tuple[Any, ...], Dims]:
    if axis.name != of:
        return _batch_alike(axis, values, dims, program=program, of=of, at_once=at_once)
    lane = memoize_on(program, ("lane", of), lambda: _Lane.of(program, of))
    passed_on, totals = _in_chunks(lane, axis, at_once, values, dims)
    env: dict[Atom, Pair] = dict(zip(program.inputs, zip(values, dims, strict=True), strict=True))
    env |= {a: (x, 0) for a, x in zip(lane.passed_on, passed_on, strict=True)}
    taken = {pair: (x, 0) for pair, x in zip(lane.taken, totals, strict=True)}
    for e, fold in lane.ends:
        pairs = [taken.get((a, fold)) or _outside(a, axis, fold, env) for a in e.inputs]
        out, dim = fold.finalize(axis, *zip(*pairs, strict=True), **e.params)
        results = zip(out, dim, strict=True) if e.prim.multi else [(out, dim)]
        env.update(zip(e.outputs, results, strict=True))
    pairs = [env[a] for a in program.outputs]
    return tuple([x for x, _ in pairs]), tuple([d for _, d in pairs])


_batch_alike = batch_rule(lambda: segment)


def _outside(atom: Atom, axis: Axis, fold: Fold, env: dict[Atom, Pair]) -> Pair:
    """All lanes as one of ``atom``, which no lane of the segment makes."""
    value, dim = (atom.value, None) if isinstance(atom, Literal) else env[atom]
    return (value, None) if dim is None else (folded(axis, fold, value, dim), 0)


def _in_chunks(
    lane: _Lane, axis: Axis, at_once: int, values: Values, dims: Dims
) -> tuple[list[Any], list[Any]]:
    """What is kept of the lanes of ``axis``, lanes first, and what is taken in of all of them."""
    operands = [v if d is None else move(v, d, 0) for v, d in zip(values, dims, strict=True)]
    lanes = tuple([d is not None for d in dims])
    if axis.padding and (lane.taken or lane.body.effects):
        operands.append(is_there(axis))
        lanes = (*lanes, True)

    def part(first: int, last: int) -> list[Any]:
        pairs = zip(operands, lanes, strict=True)
        return [slice_dim(x, first, last, 0) if m else x for x, m in pairs]

    in_full_chunks = axis.size // at_once * at_once
    isolated = axis.in_order
    passed_on, totals = _looped(
        lane, lanes, at_once, part(0, in_full_chunks), in_full_chunks, isolated
    )
    if in_full_chunks < axis.size:
        last, more = lane.run(lanes, part(in_full_chunks, axis.size), axis.size - in_full_chunks)
        passed_on = [concatenate(x, y, dim=0) for x, y in zip(passed_on, last, strict=True)]
        totals = lane.together(totals, more)
    pairs = zip(totals, lane.taken, strict=True)
    return passed_on, [_converted(x, a.type) for x, (a, _) in pairs]


def _looped(
    lane: _Lane, lanes: Marks, at_once: int, operands: Values, in_full_chunks: int, isolated: bool
) -> tuple[list[Any], list[Any]]:
    """The results of ``run`` on the first ``in_full_chunks`` lanes, ``at_once`` at a time; if
    ``isolated``, the same to the bit, however many lanes there are."""
    loop, count = Loop(in_full_chunks // at_once), len(lanes)
    shape = (loop.size, at_once)
    rows = [split_dim(x, 0, shape) if m else x for x, m in zip(operands, lanes, strict=True)]
    start = lane.identity_values()

    def step(*inputs: Any) -> tuple[list[Any], None]:
        passed_on, totals = lane.run(lanes, inputs[:count], at_once)
        return [*passed_on, *lane.together(inputs[count:], totals)], None

    ins = (*[each(0) if m else FIXED for m in lanes], *[CARRY] * len(start))
    seen = [r.inner(typeof(x), loop.axes) for r, x in zip(ins, [*rows, *start], strict=True)]
    body = trace_closed(step, seen, lane.body.name).program
    passed_on = len(lane.passed_on)
    if count > len(lane.body.inputs):
        body = _past_padding(body, passed_on, count - 1)
        start += [zeros(t) for t in body.output_types[:passed_on]]
        ins += (CARRY,) * passed_on
    outs = (*[each(0)] * passed_on, *[CARRY] * len(start))
    if at_once == 1:
        rows, body = operands, _of_rows(body, ins, outs)
    params: dict[str, Any] = {"isolated": True} if isolated else {}
    results = scan(
        *rows, *start, program=body, length=loop.size, reverse=False, unroll=1, ins=ins, outs=outs,
        **params,
    )  # fmt: skip
    stored = [x if at_once == 1 else merge_dims(x, 0) for x in results[:passed_on]]
    return stored, list(results[passed_on : passed_on + len(lane.taken)])


def _of_rows(body: Program, ins: Roles, outs: Roles) -> Program:
    """``body`` of chunks of one lane, as one of lanes.

    A dimension of length one may lie anywhere in memory to a compiler, which then makes a copy of
    all lanes that differs in nothing else.
    """

    def lane(*inputs: Any) -> tuple[list[Any], None]:
        chunks = [expand_dims(x, (0,)) if r.layout else x for x, r in zip(inputs, ins, strict=True)]
        results = zip(evaluate(body, chunks), outs, strict=True)
        return [squeeze(y, (0,)) if r.layout else y for y, r in results], None

    types = [
        t.update(shape=t.shape[1:]) if r.layout else t
        for t, r in zip(body.input_types, ins, strict=True)
    ]
    return trace_closed(lane, types, body.name).program


def _past_padding(body: Program, passed_on: int, there: int) -> Program:
    """``body`` that does nothing in chunks of padding; input number ``there`` says in which.

    It carries what is kept, too: in place of what padding would give, which is what the last lane
    gives, it gives that again.
    """

    def repeat(*inputs: Any) -> tuple[list[Any], None]:
        totals, before = inputs[there + 1 : -passed_on or None], inputs[len(inputs) - passed_on :]
        last = [slice_dim(x, typeof(x).shape[0] - 1, typeof(x).shape[0], 0) for x in before]
        again = [
            broadcast(x, shape=typeof(b).shape, dims=tuple(range(typeof(b).ndim)))
            for x, b in zip(last, before, strict=True)
        ]
        return [*again, *totals], None

    types = [*body.input_types, *body.output_types[:passed_on]]
    padding = trace_closed(repeat, types, body.name).program
    working = with_inputs(body, map(Var, types[len(body.inputs) :]))

    def step(*inputs: Any) -> tuple[list[Any], None]:
        some = convert(reduce_or(inputs[there], dims=(0,)), dtype=I32, weak=False)
        outs = branch(some, *inputs, programs=(padding, working))
        return [*outs, *outs[:passed_on]], None

    return trace_closed(step, types, body.name).program


def _frame(*, program: Program, of: Any, at_once: int) -> Frame:
    return frame_of_one(program=program)


segment: Primitive = with_subprograms(
    "segment",
    lower_call,
    _frame,
    batch=_batch,
    doc="the results of a program, on lanes a few at a time; stablehlo.while",
)
