"""Which products keep a dimension of the batch, that of rows or sequences, and what chips exchange
that have parts of it.

What a product has along two such dimensions, as scores of queries and keys, is divided along one of
them: all chips need the operand that has the other, such as keys and values (as Liu et al. 2023
pass them around), or they add up a result.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set

from msgspec import Struct

from phalanx.core.correspond import Labels
from phalanx.core.program import Equation
from phalanx.insight.plans.dimensions import ATTENTION, dims_of
from phalanx.insight.plans.matrix_products import Mark, Notes, has_size
from phalanx.primitives.conv import conv_general_dilated
from phalanx.transforms.products import PRODUCTS
from phalanx.transforms.storage import size_in_bytes
from phalanx.transforms.work import operations

__all__ = ["DimensionNotes", "ProductOperations"]


class ProductOperations(Struct):
    """Operations of products whose results have the dimension, that sum over it, and that have
    nothing along it."""

    along: float = 0.0
    summed: float = 0.0
    without: float = 0.0

    @property
    def lost(self) -> float:
        """Those whose results do not have it."""
        return self.summed + self.without


class DimensionNotes(Notes):
    """Notes of a dimension that values are marked with which products keep it, those by weights and
    the others, and what chips exchange that have parts of it.

    Args:
        sizes: those of weights, whose gradients are sums over it: how many elements, and matrices
            in one product.
    """

    products = (*PRODUCTS, *ATTENTION)

    def __init__(self, sizes: Set[tuple[int, int]]) -> None:
        self.sizes = sizes
        self.by_weights, self.others = ProductOperations(), ProductOperations()
        self.exchanged = self.largest = self.count = 0.0

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Nothing is partial: what chips add up over the dimension is noted here."""
        dims = dims_of(e)
        operands = [()] * len(e.inputs) if dims is None else dims.operands
        results = [()] * len(e.outputs) if dims is None else dims.results
        found = _labels(e, marks, operands)
        arrays = [
            (size_in_bytes(a.type), found.intersection(labels))
            for a, labels in zip((*e.inputs, *e.outputs), (*operands, *results), strict=False)
        ]
        keeps = any(has for _, has in arrays[len(e.inputs) :])
        if any(m.state and not m.batch for m in marks):
            if any(m.batch for m in marks):
                _add(self.by_weights, often * operations(e), keeps, bool(found))
            return False
        is_gradient = has_size(e, self.sizes)
        if not is_gradient:
            _add(self.others, often * operations(e), keeps, bool(found))
        if len(found) > 1:
            self._two(arrays, found, often)
        elif found and not keeps and not is_gradient:
            (size, _) = arrays[len(e.inputs)]
            self._note(2 * size, 1, often)  # added up for all: scattered, and gathered
        return False

    def _two(
        self, arrays: Sequence[tuple[int, Set[Hashable]]], found: Set[Hashable], often: float
    ) -> None:
        """Arrays that have the dimension twice: divided along the one for which the others are
        smaller."""
        others = [[size for size, has in arrays if has and label not in has] for label in found]
        least = min(others, key=sum)
        self._note(sum(least), len(least), often)

    def _note(self, size: float, count: int, often: float) -> None:
        self.exchanged += often * size
        self.count += often * count
        self.largest = max(self.largest, size)


def _labels(e: Equation, marks: Sequence[Mark], operands: Sequence[Labels]) -> set[Hashable]:
    """The labels of the dimensions of a product's operands that are marked; not of those in which
    a convolution has windows, for a window reaches beyond a part."""
    found: set[Hashable] = set()
    for m, labels in zip(marks, operands, strict=False):
        found.update([labels[d] for d in m.sequence if d < len(labels)])
    if e.prim is conv_general_dilated:
        examples = e.params["dimension_numbers"].lhs_spec[0]
        found.intersection_update([operands[0][examples]])
    return found.difference([None])


def _add(to: ProductOperations, count: float, keeps: bool, has: bool) -> None:
    if keeps:
        to.along += count
    elif has:
        to.summed += count
    else:
        to.without += count
