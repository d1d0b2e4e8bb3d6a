"""NaN in, NaN out: what depends on a number is NaN where the number is.

A result depends on an element of an operand if it is another one for another element. Then it is
NaN for NaN, unless NumPy or SciPy answers a number there, as of functions that leave NaN out. And
if the result is NaN, so is the slope by that element, if it depends on it: a finite one would hide
as a clean step.
"""

import warnings

import numpy as np
import pytest
import scipy

import phalanx
import phalanx.numpy as jnp
from phalanx import tree
from phalanx.errors import PhalanxError
from tests.laws.arguments import calls

AT = (0.35, 0.55)  # values for an element, to tell what depends on it
ONCE = {c.function: c for c in calls() if c.args is not None}  # a function may have several names
CALLS = [c for c in ONCE.values() if any(x.dtype.kind == "f" for x in c.operands())]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_nan_in_nan_out(call):
    operands = call.operands()
    places = [i for i, x in enumerate(operands) if x.dtype.kind == "f" and x.size]
    f = compiled(call, places)
    for place, k in enumerate(places):
        given = [[*operands[:k], with_first(operands[k], v), *operands[k + 1 :]] for v in AT]
        given += [[*operands[:k], with_first(operands[k], np.nan), *operands[k + 1 :]]]
        (*values, at_nan), slopes = zip(*[f(*xs) for xs in given], strict=True)
        answers = of_others(call, given[-1])
        for i, (a, b, y) in enumerate(zip(*values, at_nan, strict=True)):
            if (call.name, i) in COUNTED:
                continue
            wrong = depends(a, b, y) & ~is_number(answers, i, y)
            assert not wrong.any(), f"result {i} by operand {k}: {y}"
        if slopes[0] and any(np.isnan(y).any() for y in at_nan):
            own = [each[place] for each in slopes]
            assert not depends(*own), f"slope by operand {k}: {own}"


def compiled(call, places):
    """What gives the results, and the slopes of their sum by the first elements of operands."""

    def total(firsts, *operands):
        operands = list(operands)
        for k, first in zip(places, firsts, strict=True):
            shape = np.shape(operands[k])
            operands[k] = jnp.ravel(operands[k]).at[0].set(first).reshape(shape)
        out = numbers(call(*operands))
        terms = [jnp.real(jnp.ravel(y)) * (1 + 0.1 * np.arange(y.size)) for y in out]
        return sum([y.sum() for y in terms], jnp.float32(0)), out

    def values(*operands):
        return numbers(call(*operands)), None

    def both(*operands):
        firsts = [jnp.ravel(operands[k])[0] for k in places]
        slopes, out = phalanx.grad(total, has_aux=True)(firsts, *operands)
        return out, slopes

    for f in phalanx.jit(both), both, values:  # some need to see values, and some have no slope
        try:
            f(*call.operands())
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


# Results that count: a NaN lies between no two edges, nor does a number between two that are NaN.
COUNTED = {("histogram", 0)}

SAME = {("lax.linalg", "lu"): ("scipy.linalg", "lu_factor")}  # functions by other names

# Of SciPy's decompositions those that end, whatever the numbers are; LAPACK's iterations may not.
DIRECT = ("inv", "lu", "lu_factor", "solve")


def is_number(answers, i, y):
    """Where answer ``i`` is a number."""
    if answers is None or len(answers) <= i or answers[i].shape != np.shape(y):
        return np.zeros((), bool)
    return ~np.isnan(answers[i])
