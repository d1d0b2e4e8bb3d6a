"""Every public function has an example call, and takes it by position and by keyword."""

import inspect

import numpy as np
import pytest

import phalanx
from phalanx import errors
from tests.laws.arguments import ROOMS, calls

BY_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
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
    except (TypeError, errors.NonConcreteBooleanIndexError, errors.RefError, AttributeError):
        out = call(*operands)
    leaves = phalanx.tree.leaves(out)
    return [(x.shape, x.dtype) if isinstance(x, ARRAYS) else type(x) for x in leaves]


@pytest.mark.parametrize("room", ROOMS)
def test_examples_are_accepted_by_position_and_by_keyword(room):
    for call in CALLS:
        if call.room == room:
            assert typed(call) == typed(call.by_keyword()), call


def test_options_that_signatures_have_are_taken():
    refused = []
    for call in CALLS:
        named = inspect.signature(call.function).parameters.values()
        for option in [p for p in named if p.kind == p.KEYWORD_ONLY and p.default is None]:
            try:
                call.function(**{option.name: None})
            except Exception as error:
                if f"unexpected keyword argument '{option.name}'" in str(error):
                    refused.append(f"{call} {option.name}")
    assert not refused


def test_required_parameters_have_the_names_that_numpy_gives_them():
    wrong = {str(c): names for c in CALLS if (names := renamed(c))}
    assert not wrong


def renamed(call):
    """The required parameters that may be given by keyword, where NumPy's have other names."""
    numpys = getattr(np, call.name, None) if call.room == "numpy" else None
    if not inspect.isroutine(numpys):
        return {}
    try:
        theirs = list(inspect.signature(numpys).parameters.values())
    except ValueError:  # written in C, without a signature
        return {}
    ours = inspect.signature(call.function).parameters.values()
    pairs = zip(ours, theirs, strict=False)
    named = [(p, q) for p, q in pairs if BY_KEYWORD == p.kind == q.kind and p.default is p.empty]
    return {p.name: q.name for p, q in named if p.name != q.name}
