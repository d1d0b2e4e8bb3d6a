"""Programs as they are lowered: what stands around products of arrays.

A product, ``dot_general`` or a convolution, reads its operands in memory and leaves its result
there. A compiler fuses most other operations with what uses them, and makes a value again
wherever it is used; it does not look further. So two things are decided here: what is only
summed is not stored, and what is stored is not made again.
"""

from __future__ import annotations

from collections import Counter

from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.types import ArrayType
from phalanx.primitives.barrier import optimization_barrier
from phalanx.primitives.basis import reduce_sum
from phalanx.primitives.contract import dot_general
from phalanx.primitives.conv import conv_general_dilated

PRODUCTS = (dot_general, conv_general_dilated)
LONG = 16  # operations behind an element: more than that cost more than reading it


def around_products(program: Program) -> Program:
    """``program`` as it is lowered: it computes the same; made once."""
    return memoize_on(program, "around products", lambda: _prepared(program)) or program


def _prepared(program: Program) -> Program | None:
    """None where there is no product, and so nothing to do."""
    products: dict[Atom, Equation] = {
        e.outputs[0]: e for e in program.equations if e.prim in PRODUCTS
    }
    if not products:
        return None
    equations = _contracting(program, products)
    equations, stored = _reading(equations)
    outputs = [stored.get(a, a) for a in program.outputs]
    return program.update(equations=equations, outputs=outputs)


# ---- sums of products -----------------------------------------------------------------------


def _contracting(program: Program, products: dict[Atom, Equation]) -> list[Equation]:
    """The equations, with sums over batch dimensions of products as contractions over them."""
    totals: dict[Atom, Equation] = {}
    for e in program.equations:
        if e.prim is reduce_sum and e.inputs[0] in products:
            product = products[e.inputs[0]]
            if _is_contraction(product, e):
                totals[product.outputs[0]] = e
    if not totals:
        return program.equations
    uses = Counter([a for e in program.equations for a in e.inputs if a in totals])
    uses.update([a for a in program.outputs if a in totals])
    single = {out for out in totals if uses[out] == 1}
    summed = {totals[out].outputs[0]: products[out] for out in single}
    equations: list[Equation] = []
    for e in program.equations:
        result = e.outputs[0] if e.outputs else None
        if result in summed:
            equations += _contraction(summed[result], e)
        elif result not in single:
            equations.append(e)
    return equations


def _is_contraction(product: Equation, total: Equation) -> bool:
    """Whether ``total`` sums batch dimensions of ``product``, and storing that would cost more.

    A contraction over dimensions that do not lie side by side may lay out the operands anew.
    """
    if product.prim is not dot_general or "unreduced" in total.params:
        return False
    batch = len(product.params["batch"][0])
    stored = product.outputs[0].type.size
    return any(d < batch for d in total.params["dims"]) and all(
        a.type.size <= stored for a in product.inputs
    )


def _contraction(product: Equation, total: Equation) -> list[Equation]:
    """``product`` contracted over what ``total`` sums of its batch; then the rest of the sum."""
    params, dims = product.params, total.params["dims"]
    summed = [d for d in dims if d < len(params["batch"][0])]
    sides = list(zip(params["batch"], params["contract"], strict=True))
    params = {
        **params,
        "batch": tuple(tuple(d for i, d in enumerate(b) if i not in summed) for b, _ in sides),
        "contract": tuple((*(b[i] for i in summed), *c) for b, c in sides),
    }
    rest = tuple(d - len(summed) for d in dims if d not in summed)
    if not rest:
        return [Equation(dot_general, product.inputs, params, total.outputs, total.location)]
    t = product.outputs[0].type
    shape = tuple(n for d, n in enumerate(t.shape) if d not in summed)
    out = Var(ArrayType(shape, t.dtype, t.weak))
    return [
        Equation(dot_general, product.inputs, params, (out,), product.location),
        Equation(reduce_sum, [out], {"dims": rest}, total.outputs, total.location),
    ]


# ---- what products read ---------------------------------------------------------------------


def _reading(equations: list[Equation]) -> tuple[list[Equation], dict[Atom, Var]]:
    """The equations, with barriers behind long chains that end in a product and go on elsewhere.

    The product has such a value in memory, and behind the barrier all others read it there.

    Returns:
        Also what stands behind the barriers, for the values before them.
    """
    shared = _shared(equations)
    length: dict[Atom, int] = {}
    stored: dict[Atom, Var] = {}
    reading: list[Equation] = []
    for e in equations:
        if stored and not stored.keys().isdisjoint(e.inputs):
            e = e.renamed(stored)
        reading.append(e)
        if e.prim.elements.fused:
            (out,) = e.outputs
            behind = 1 + sum([length.get(a, 0) for a in e.inputs])
            length[out] = min(behind, LONG + 1)
            if behind > LONG and out in shared:
                stored[out] = Var(out.type)
                barrier = Equation(optimization_barrier, [out], {}, (stored[out],), e.location)
                reading.append(barrier)
    return reading, stored


def _shared(equations: list[Equation]) -> set[Atom]:
    """What both products and other equations take."""
    read = {a for e in equations if e.prim in PRODUCTS for a in e.inputs}
    return read.intersection([a for e in equations if e.prim not in PRODUCTS for a in e.inputs])
