"""What is computed while compiling, of constants, is what is computed of arguments.

Constants are folded by code of the compiler's own that nothing else reaches, and that may end the
process. So every primitive is tried on constants, and every conversion between dtypes on both.
"""

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.base import dtypes
from phalanx.core.primitive import REGISTRY
from phalanx.laws.compare import PrimitiveError, require_same
from phalanx.laws.primitives import Case

EVERY = sorted({d for d in dtypes.ALL if d != dtypes.float0}, key=str)
NO_ZERO = "float8_e8m0fnu"  # which has powers of two alone


def numbers(source):
    """Zero and one, if the dtype has both; of complex numbers those are the real parts."""
    of = np.ones(2) if source == NO_ZERO else np.arange(2)
    return (of + 2j if dtypes.is_complex(source) else of).astype(source)


def expected(x, target):
    """The numbers in another dtype: real parts, truth of whatever is not zero."""
    wide = x.astype(np.complex128) if dtypes.is_complex(x.dtype) else x.astype(np.float64)
    if dtypes.is_bool(target):
        return wide != 0
    return wide if dtypes.is_complex(target) else wide.real


@pytest.mark.parametrize("source", EVERY, ids=str)
def test_conversions(source):
    with phalanx.enable_x64():
        x = numbers(source)

        def converted(x):
            alike = [lax.full((), v, source) for v in numbers(source)]
            repeated = [lax.broadcast(v, (3,)) for v in alike]
            return [[lax.convert_element_type(y, d) for y in (x, *alike, *repeated)] for d in EVERY]

        for target, made in zip(EVERY, phalanx.jit(converted)(x), strict=True):
            assert all(y.dtype == target for y in made)
            given, *alike, first, second = (np.asarray(y).astype(np.complex128) for y in made)
            kept = slice(1 if target == NO_ZERO else 0, None)
            wanted = expected(x, target)[kept]
            assert (given[kept] == wanted).all(), target
            assert (np.stack(alike)[kept] == wanted).all(), target
            assert (np.stack([first, second])[kept] == wanted[:, None]).all(), target


@pytest.mark.parametrize("primitive", sorted(n for n, p in REGISTRY.items() if p.examples))
def test_constants(primitive):
    prim = REGISTRY[primitive]
    for example in prim.examples:
        case = Case(prim, example)
        operands = case.operands()
        folded = phalanx.jit(lambda case=case, operands=operands: case(*operands))()
        require_same(PrimitiveError, case.who("constants"), folded, case(*operands))


def test_a_complex_constant_becomes_real():
    """As the cotangent does of what a real number was promoted for."""
    back = phalanx.jit(lambda w: phalanx.vjp(lambda w: w + 0j, w)[1](lax.full((), 1 + 2j))[0])
    assert back(np.float32(3)) == 1
