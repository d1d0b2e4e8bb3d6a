"""Every public function has an example call, and takes it by position and by keyword."""

import pytest

import phalanx
from phalanx import errors
from tests.laws.arguments import ROOMS, calls

ARRAYS = phalanx.Array | phalanx.ShapeDtypeStruct
CALLS = [c for c in calls() if c.args is not None]


def test_every_public_function_has_an_example():
    known = {str(c) for c in CALLS}
    missing = [str(c) for c in calls() if str(c) not in known]
    assert not missing, f"give them arguments in tests/laws/arguments.py: {', '.join(missing)}"


def typed(call):
    """The types of what the call gives: without computing it, unless that needs values."""
    operands = call.operands()
    try:
        out = phalanx.eval_shape(call, *operands)
    except (TypeError, errors.NonConcreteBooleanIndexError, AttributeError):
        out = call(*operands)
    leaves = phalanx.tree.leaves(out)
    return [(x.shape, x.dtype) if isinstance(x, ARRAYS) else type(x) for x in leaves]


@pytest.mark.parametrize("room", ROOMS)
def test_examples_are_accepted_by_position_and_by_keyword(room):
    for call in CALLS:
        if call.room == room:
            assert typed(call) == typed(call.by_keyword()), call
