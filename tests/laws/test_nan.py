"""NaN in, NaN out: what depends on a number is NaN where the number is.

A result depends on an element of an operand if it is another one for another element. Then it is
NaN for NaN, unless NumPy or SciPy answers a number there, as of functions that leave NaN out. And
if the result is NaN, so is the slope by that element, if it depends on it: a finite one would hide
as a clean step. Of a complex number this holds for each of its parts.
"""

import re
import warnings

import numpy as np
import pytest
import scipy

import phalanx
import phalanx.numpy as jnp
from phalanx import tree
from phalanx.errors import PhalanxError
from tests.exemptions import exempt
from tests.laws.arguments import calls

# Values for an element, of a complex one for either part. Between the first two lies no element of
# an operand, so what depends on the order alone is the same at both. The third is further off, for
# what is constant in steps.
STEPS = {
    "f": [(0.352, 0.358, 0.55, np.nan)],
    "c": [
        (0.352 + 0.45j, 0.358 + 0.45j, 0.55 + 0.45j, complex(np.nan, 0.45)),
        (0.45 + 0.352j, 0.45 + 0.358j, 0.45 + 0.55j, complex(0.45, np.nan)),
    ],
}
ONCE = {c.function: c for c in calls() if c.args is not None}  # a function may have several names
CALLS = [c for c in ONCE.values() if any(x.dtype.kind == "f" for x in c.operands())]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_nan_in_nan_out(call):
    check(call, call.operands())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, which some calls are given
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # conversions drop a part
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_nan_in_a_part_of_a_complex_number(call):
    operands = call.operands(np.complex64)
    try:
        call(*operands)
    except (PhalanxError, TypeError, ValueError) as refused:
        assert re.search("complex|c64", str(refused))  # it is a function of real numbers
    else:
        check(call, operands)


def check(call, operands):
    """That a NaN in the first element of an operand is seen in what depends on that."""
    places = [i for i, x in enumerate(operands) if x.dtype.kind in STEPS and x.size]
    f = compiled(call, operands, places)
    for place, k in enumerate(places):
        for step in STEPS[operands[k].dtype.kind]:
            given = [[*operands[:k], with_first(operands[k], v), *operands[k + 1 :]] for v in step]
            values, slopes = zip(*[f(*xs) for xs in given], strict=True)
            answers = of_others(call, given[-1])
            for i, (a, _, b, y) in enumerate(zip(*values, strict=True)):
                if exempt("nan-in-nan-out", f"{call}.{i}"):
                    continue
                wrong = depends(a, b, y) & ~is_number(answers, i, y)
                assert not wrong.any(), f"result {i} by operand {k} at {step[-1]}: {y}"
            if slopes[0] and any(np.isnan(y).any() for y in values[-1]):
                a, b, _, own = [each[place] for each in slopes]
                wrong = depends(a, b, own)
                assert not wrong, f"slope by operand {k} at {step[-1]}: {own}, and {a}, {b}"


def compiled(call, operands, places):
    """What gives the results, and the slopes of their sum by the first elements of operands."""

    def total(firsts, *operands):
        operands = list(operands)
        for k, first in zip(places, firsts, strict=True):
            shape = np.shape(operands[k])
            operands[k] = jnp.ravel(operands[k]).at[0].set(first).reshape(shape)
        out = numbers(call(*operands))
        terms = [part(y) for y in out for part in PARTS[jnp.iscomplexobj(y)]]
        terms = [jnp.ravel(y) * (1 + 0.1 * np.arange(y.size)) for y in terms]
        return sum([y.sum() for y in terms], jnp.float32(0)), out

    def values(*operands):
        return numbers(call(*operands)), None

    def both(*operands):
        firsts = [jnp.ravel(operands[k])[0] for k in places]
        slopes, out = phalanx.grad(total, has_aux=True)(firsts, *operands)
        return out, slopes

    for f in phalanx.jit(both), both, values:  # some need to see values, and some have no slope
        try:
            f(*operands)
        except (PhalanxError, NotImplementedError, TypeError, ValueError):
            continue
        return f
    return values


def with_first(operand, value):
    changed = np.array(operand)
    changed.flat[0] = value
    return changed


def numbers(out):
    """The leaves of a result that may be NaN."""
    leaves = [x for x in tree.leaves(out) if isinstance(x, phalanx.Array | np.ndarray | np.generic)]
    return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.inexact)]


def depends(a, b, y):
    """Where ``a`` and ``b`` differ, and ``y`` is a number nevertheless."""
    a, b, y = map(np.asarray, (a, b, y))
    if not a.shape == b.shape == y.shape:
        return np.zeros((), bool)
    return (a != b) & ~np.isnan(a) & ~np.isnan(b) & ~np.isnan(y)


def of_others(call, operands):
    """What the function of the same name in NumPy or SciPy gives; None where there is none."""
    room, name = SAME.get((call.room, call.name), (call.room, call.name))
    found = {"numpy": np, "scipy": scipy}.get(room.partition(".")[0])
    for part in [*room.split(".")[1:], name]:
        found = getattr(found, part, None)
    args, kwargs = call.arguments(operands)
    if room == "scipy.linalg" and name in DIRECT:
        kwargs["check_finite"] = False
    try:
        with warnings.catch_warnings(action="ignore"):
            return [np.asarray(x) for x in numbers(found(*args, **kwargs))]
    except (TypeError, ValueError, AttributeError, RuntimeError, np.linalg.LinAlgError):
        return None


PARTS = {False: [lambda y: y], True: [jnp.real, lambda y: 2 * jnp.imag(y)]}

# Functions by other names. LAPACK's of complex reflections finds numbers beside a NaN.
SAME = {
    ("lax.linalg", "householder_product"): ("scipy.linalg.lapack", "cungqr"),
    ("lax.linalg", "lu"): ("scipy.linalg", "lu_factor"),
}

# Of SciPy's decompositions those that end, whatever the numbers are; LAPACK's iterations may not.
DIRECT = ("inv", "lu", "lu_factor", "solve")


def is_number(answers, i, y):
    """Where answer ``i`` is a number."""
    if answers is None or len(answers) <= i or answers[i].shape != np.shape(y):
        return np.zeros((), bool)
    return ~np.isnan(answers[i])
