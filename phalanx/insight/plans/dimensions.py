"""The dimensions of results that correspond to those of operands: by them the rows of a batch, its
sequences, and experts are followed through a program."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.core.correspond import Dims, Labels
from phalanx.core.program import Equation
from phalanx.primitives.attention import attention, attention_backward, attention_tangent
from phalanx.primitives.basis import reshape, same_elements

__all__ = ["ATTENTION", "Dimensions", "along_results", "dims_of"]

Dimensions = tuple[int, ...]
ATTENTION = (attention, attention_tangent, attention_backward)
_QUERIES: Labels = ("b", "t", "n", "h")
_KEYS: Labels = ("b", "s", None, "h")
_SUMS: Labels = ("b", "n", "t")


def dims_of(e: Equation) -> Dims | None:
    """The labels of the dimensions of an equation's operands and results; None if it has none."""
    if e.prim in ATTENTION:
        return _of_attention(e)
    return None if e.prim.dims is None else e.prim.dims(*[a.type for a in e.inputs], **e.params)


def _of_attention(e: Equation) -> Dims:
    """Queries, keys and values; biases and lengths correspond to nothing."""
    first, results = (_QUERIES, _KEYS, _KEYS), (_QUERIES, _SUMS)
    if e.prim is attention:
        return Dims(first, results)
    last = (*results, _QUERIES) if e.prim is attention_backward else (*results, *first)
    biased = e.prim is attention_tangent and bool(e.params["biased"])
    others: list[Labels] = [()] * (len(e.inputs) - len(first) - len(last) - biased)
    ends: list[Labels] = [()] * biased
    outs = [*first, ()][: len(e.outputs)] if e.prim is attention_backward else results
    return Dims((*first, *others, *last, *ends), tuple(outs))


def along_results(e: Equation, operands: Sequence[Dimensions]) -> list[Dimensions]:
    """The dimensions of the results that correspond to those of operands, such as rows."""
    if not any(operands):
        return []
    if e.prim is reshape:
        pairs = same_elements(e.inputs[0].type.shape, e.outputs[0].type.shape)
        return [tuple([d for before, after in pairs if {*before} & {*operands[0]} for d in after])]
    dims = dims_of(e)
    if dims is None:
        return []
    labelled = zip(dims.operands, operands, strict=False)
    marked = {labels[d] for labels, rows in labelled for d in rows if d < len(labels)} - {None}
    results = dims.results * (len(e.outputs) if len(dims.results) == 1 else 1)
    return [tuple([d for d, n in enumerate(labels) if n in marked]) for labels in results]
