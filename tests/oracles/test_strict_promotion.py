"""What installed jax refuses to promote where promotion is strict is refused here, too."""

import importlib

import jax
import numpy as np
import pytest

import phalanx
from tests.laws.arguments import ROOMS, calls
from tests.releases import OLDER

THERE = {"numpy.segments": "ops"}  # where jax has a room of another name
CALLS = [c for c in calls() if c.args is not None and len(c.slots) > 1 and not c.communicates]
# What jax refuses by the way, since it vectorizes functions of matrices.
BATCHES = {
    "numpy.matvec", "numpy.vecdot", "numpy.vecmat", "numpy.linalg.solve", "numpy.linalg.vecdot",
    "scipy.linalg.cho_solve", "scipy.linalg.lu_solve", "scipy.linalg.rsf2csf",
    "scipy.linalg.solve", "scipy.linalg.solve_triangular",
    "scipy.stats.multivariate_normal.logpdf", "scipy.stats.multivariate_normal.pdf",
}  # fmt: skip
# What is converted to the dtype of another operand before anything is computed.
CONVERTS = {
    "numpy.place", "numpy.put", "numpy.put_along_axis", "random.multivariate_normal",
    *(f"scipy.stats.chi2.{f}" for f in ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")),
}  # fmt: skip
if OLDER:  # which so refuses rows of one coefficient
    BATCHES.add("numpy.polyval")
REFUSED_HERE = {"numpy.gcd", "numpy.heaviside"}  # ranks that differ; jax forgets to look


def peer(call):
    try:
        room = importlib.import_module(f"jax.{THERE.get(call.room, call.room)}".rstrip("."))
    except ImportError:
        return None
    return getattr(room, call.name, None)


def variants(call):
    """The operands of a call, one of which has another dtype or rank than the others."""
    operands = call.operands()
    free = [i for i, slot in enumerate(call.slots) if slot.dtype is None]
    for i in free if len(free) > 1 else ():
        other = np.int16 if operands[i].dtype == np.int32 else np.int32
        yield [np.ones(x.shape, other) if i == j else x for j, x in enumerate(operands)], "dtype"
        yield [x[None] if i == j else x for j, x in enumerate(operands)], "rank"


def taken(package, function, call, operands):
    def run(*xs):
        args, kwargs = call.arguments(xs)
        return package.tree_util.tree_leaves(function(*args, **kwargs))

    try:
        package.eval_shape(run, *operands)
    except Exception:
        return False
    return True


def strictly(package, function, call, operands):
    with package.numpy_dtype_promotion("strict"), package.numpy_rank_promotion("raise"):
        return taken(package, function, call, operands)


@pytest.mark.parametrize("room", [r for r in ROOMS if r])
def test_what_does_not_agree_is_refused(room):
    wrong = []
    for call in (c for c in CALLS if c.room == room and peer(c)):
        f = peer(call)
        for operands, what in variants(call):
            known = CONVERTS if what == "dtype" else BATCHES | REFUSED_HERE
            both = ((jax, f), (phalanx, call.function))
            if str(call) in known:
                continue
            theirs, ours = (strictly(*pair, call, operands) for pair in both)
            if theirs != ours and all(taken(*pair, call, operands) for pair in both):
                wrong.append(f"{call}, {what}: taken by {'jax' if theirs else 'phalanx'} alone")
    assert not wrong
