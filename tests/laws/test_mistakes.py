"""Everything is called with wrong arguments: what a user gets is about the call, in words."""

import re
import traceback
import warnings
from dataclasses import replace

import numpy as np
import pytest

import phalanx
from phalanx.errors import PhalanxError
from tests.laws import arguments
from tests.laws.arguments import ROOMS, calls

ESCAPED = []
phalanx.eval_shape(ESCAPED.append, phalanx.ShapeDtypeStruct((2,), "float32"))

# What an argument is replaced by. Each is wrong for most parameters; for some it is right.
WRONG = {
    "text": "text",
    "None": None,
    "an object": object(),
    "a dict": {"a": np.ones(2, np.float32)},
    "a function": len,
    "a class": int,
    "a number": 2.5,
    "a negative number": -7,
    "a large number": 2**70,
    "a complex number": 1j,
    "nan": float("nan"),
    "an empty tuple": (),
    "a tuple": (7, "x"),
    "a ragged list": [[1.0], [2.0, 3.0]],
    "an array of rank 5": np.ones((1, 2, 1, 2, 1), np.float32),
    "an array of other lengths": np.ones((7, 11), np.float32),
    "a boolean": np.array(True),
    "text in an array": np.array(["x"]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "objects in an array": np.array([None, 1], object),
    "a tracer that escaped": ESCAPED[0],
    "a type": phalanx.ShapeDtypeStruct((2, 3), "float32"),
}
ALLOWED = (
    TypeError, ValueError, IndexError, OverflowError, FileNotFoundError, PhalanxError,
    BufferError,  # the protocol of DLPack has it
)  # fmt: skip
INSIDE = re.compile(
    r"mlir|stablehlo|nanobind|incompatible function arguments|Traceback|jaxlib|XlaRuntimeError|"
    r"optree|<unnamed>|phalanx/|zip\(\) argument",
    re.IGNORECASE,
)


def mistakes(call):
    """(what is wrong, the wrong call) for every argument, and for their number."""
    for what, value in WRONG.items():
        for i in range(len(call.args)):
            args = (*call.args[:i], value, *call.args[i + 1 :])
            yield f"argument {i} is {what}", replace(call, args=args)
        for name in call.keywords:
            yield f"{name} is {what}", replace(call, keywords={**call.keywords, name: value})
    if call.args:
        yield "an argument is missing", replace(call, args=call.args[:-1])
        yield "there are too many", replace(call, args=call.args + call.args[-1:] * 20)
    yield "no parameter is called so", replace(call, keywords={**call.keywords, "no_such": 1})


def unhelpful(error):
    """What is wrong with an exception, if anything is."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    if last == arguments.__file__:
        return None  # it is the example's own function that does not take what it is given
    if not isinstance(error, ALLOWED):
        return "its class"
    if not str(error).strip() or INSIDE.search(str(error)):
        return "its words"
    return None if "tests" in last else "its last line"


@pytest.fixture
def as_users_have_it(tmp_path, monkeypatch):
    before = phalanx.config.traceback_filtering
    phalanx.config.update("traceback_filtering", "auto")
    monkeypatch.chdir(tmp_path)  # what is saved under a wrong name is gone afterwards
    yield
    phalanx.config.update("traceback_filtering", before)


def from_numpy(function):
    """Whether NumPy's own function is offered as it is."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"


def in_parts(room):
    """The calls of a room, in parts of at least ``SIZE`` functions, if there are so many."""
    tried = [
        call
        for call in CALLS
        if call.room == room and call.args is not None and not from_numpy(call.function)
    ]
    count = max(len(tried) // SIZE, 1)
    return [tried[i::count] for i in range(count)]


SIZE = 8
CALLS = calls()
PARTS = [
    pytest.param(room, part, id=f"{room}-{i}")
    for room in ROOMS
    for i, part in enumerate(in_parts(room))
]


def trials(part):
    for call in part:
        for what, wrong in mistakes(call):
            # a list of 2**70 arrays is what was asked for
            if (call.name, what) != ("array_split", "argument 1 is a large number"):
                yield f"{call}: {what}", wrong


@pytest.mark.parametrize("room, part", PARTS)
def test_what_a_wrong_call_gets_is_about_the_call(room, part, as_users_have_it):
    """Types are enough: nothing is compiled, but what is accepted is lowered."""
    tried, refused, bad = 0, 0, []
    for name, wrong in trials(part):
        operands = wrong.operands()
        tried += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                phalanx.jit(lambda *xs, wrong=wrong: wrong(*xs)).lower(*operands)
        except Exception as error:
            refused += 1
            fault = unhelpful(error)
            if fault:
                bad.append(f"{name}: {fault}: {type(error).__name__}: {error}")
    assert not bad, "\n".join(bad)
    assert tried > 40 and refused > tried / 2
