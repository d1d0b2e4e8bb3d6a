"""What installed jax refuses to promote where promotion is strict is refused here, too."""

import importlib

import jax
import numpy as np
import pytest

import phalanx
from tests.exemptions import exempt
from tests.laws.arguments import ROOMS, calls
from tests.releases import OLDER

CALLS = [c for c in calls() if c.args is not None and len(c.slots) > 1 and not c.communicates]


def reason(call, what):
    """Why the call need not be refused where jax refuses what differs."""
    if what == "dtype":
        return exempt("strict-dtypes-as-jax", call)
    older = OLDER and exempt("strict-ranks-as-older-jax", call)
    return older or exempt("strict-ranks-as-jax", call)


def peer(call):
    try:
        room = importlib.import_module(f"jax.{call.room}".rstrip("."))
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
            both = ((jax, f), (phalanx, call.function))
            if reason(call, what):
                continue
            theirs, ours = (strictly(*pair, call, operands) for pair in both)
            if theirs != ours and all(taken(*pair, call, operands) for pair in both):
                wrong.append(f"{call}, {what}: taken by {'jax' if theirs else 'phalanx'} alone")
    assert not wrong
