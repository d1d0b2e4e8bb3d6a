"""What docstrings say of results is so: of their shapes and dtypes, for operands of every dtype."""

import functools
import inspect
import re

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from docs.generator.docstrings import doc_of
from phalanx.errors import AxisError, PhalanxError, ShapeError
from tests.laws.arguments import ROOMS, X, calls
from tests.laws.calls import CASTS

DTYPES = ("float32", "bfloat16", "complex64", "int32", "int8", "uint8", "bool")
FLOAT32, INT32, BOOL = np.dtype("float32"), np.dtype("int32"), np.dtype("bool")
CALLS = [c for c in calls() if c.args is not None and not c.communicates]
SAID = {str(c): " ".join(doc_of(c.function).returns.split()) for c in CALLS}


class Trial:
    """One call with operands of one dtype: arrays among its arguments, the types of its results."""

    def __init__(self, call, dtype):
        operands = call.operands(dtype)
        out = phalanx.tree.leaves(phalanx.eval_shape(call, *operands))
        self.said = SAID[str(call)]
        self.count = len(out)
        self.shapes = {x.shape for x in out}
        self.dtypes = {x.dtype for x in out}
        args, kwargs = call.arguments(operands)
        signature = inspect.signature(call.function)
        given = signature.bind(*args, **kwargs).arguments
        self.parameters = {*signature.parameters}
        self.named = {k: x for k, x in given.items() if isinstance(x, np.ndarray)}
        free = [x for x, slot in zip(operands, call.slots, strict=True) if slot.dtype is None]
        self.operands = free or operands

    def shape(self, name):
        """The shape of an argument; of one that is no array, or not given, nothing is claimed."""
        assert name in self.parameters, f"{name} is no parameter: {self.said}"
        return {self.named[name].shape} if name in self.named else self.shapes

    def dtype(self, name):
        """The dtype of an argument, or what the sentence says that integers give in its place."""
        assert name in self.parameters, f"{name} is no parameter: {self.said}"
        return {self._result(self.named[name].dtype)} if name in self.named else self.dtypes

    @property
    def broadcast(self):
        """The shape to which the arguments broadcast."""
        return {np.broadcast_shapes(*(x.shape for x in self.operands))}

    @property
    def promoted(self):
        """The dtype to which they are promoted."""
        return {self._result(jnp.result_type(*self.operands))}

    def _result(self, dtype):
        if "booleans give int32" in self.said and dtype == BOOL:
            return INT32
        counts = jnp.issubdtype(dtype, jnp.integer) or dtype == BOOL
        return FLOAT32 if "integers give float32" in self.said and counts else dtype

    @property
    def kinds(self):
        """Of each dtype whether it is of floating-point, of complex, or of other numbers."""
        kinds = {"floating": jnp.floating, "complex": jnp.complexfloating, "other": jnp.generic}
        return {next(k for k, of in kinds.items() if jnp.issubdtype(d, of)) for d in self.dtypes}


NAME = r"``(?P<name>\w+)``"
ARRAYS = "^(?:An array|Two arrays|Booleans|(?:Real|Complex) numbers|Floats|Integers|int32|uint8),?"

# Phrases, and what they claim of a trial: what there is, and what there should be.
PHRASES = {
    rf"{ARRAYS} of the shape (?:and dtype )?of {NAME}(?! and )": lambda t, name: (
        t.shapes, t.shape(name)),
    rf"^(?:An array|Two arrays) of the (?:shape and )?dtype of {NAME}": lambda t, name: (
        t.dtypes, t.dtype(name)),
    "of the broadcast shape": lambda t, _: (t.shapes, t.broadcast),
    r"their promoted dtype|dtype to which (?:both|all) are promoted|"
    "broadcast shape; integers give float32": lambda t, _: (t.dtypes, t.promoted),
    "^An array of the (?:shape and )?dtype of the operand|"
    "of the dtype of the operands": lambda t, _: (t.dtypes, t.promoted),
    r"^An array of the shape (?:and dtype )?of the operands": lambda t, _: (t.shapes, t.broadcast),
    r"^An array of the shape (?:and dtype )?of the operand\b(?!s)": lambda t, _: (
        t.shapes, {t.operands[0].shape}),
    "^Booleans|^A boolean": lambda t, _: (t.dtypes, {BOOL}),
    r"^(?:int32|(?:Two|A tuple of) vectors of int32)": lambda t, _: (t.dtypes, {INT32}),
    r"^uint8": lambda t, _: (t.dtypes, {np.dtype("uint8")}),
    r"^float32|by default of float32": lambda t, _: (t.dtypes, {FLOAT32}),
    "^Complex numbers": lambda t, _: (t.kinds, {"complex"}),
    "^Floats": lambda t, _: (t.kinds, {"floating"}),
    "^Real numbers": lambda t, _: (t.kinds & {"complex"}, set()),
    "^(?:A vector|Two vectors|A tuple of vectors)": lambda t, _: ({len(s) for s in t.shapes}, {1}),
    "^(?:Matrices|Triangles)": lambda t, _: ({min(len(s), 2) for s in t.shapes}, {2}),
    "^A matrix(?! of a vector|;)": lambda t, _: ({len(s) for s in t.shapes}, {2}),
    "as an array without dimensions": lambda t, _: (t.shapes, {()}),
    r"^(?:An array|A (?:vector|matrix|number|boolean)|int32|uint8|Booleans)\b(?!.* list)": (
        lambda t, _: (t.count, 1)),
    r"^(?:Two|A pair)": lambda t, _: (t.count, 2),
}  # fmt: skip


def trials(call):
    """The call with operands of each dtype that the function takes, where types tell all."""
    for dtype in DTYPES if call.slots else DTYPES[:1]:
        try:
            yield dtype, Trial(call, dtype)
        except (TypeError, ValueError, AttributeError, OverflowError, PhalanxError):
            continue


def claims(call):
    """What is said of each trial, in a phrase that is known, and whether it is so."""
    for dtype, trial in trials(call):
        for phrase, claim in PHRASES.items():
            for found in re.finditer(phrase, trial.said):
                there, said = claim(trial, found.groupdict().get("name"))
                yield f"{call} of {dtype}: '{found[0]}': {there}, not {said}", there == said


@CASTS
@pytest.mark.parametrize("room", ROOMS)
def test_what_is_said_of_results(room):
    wrong = [text for c in CALLS if c.room == room for text, so in claims(c) if not so]
    assert not wrong, "\n".join(wrong)


def test_most_sentences_are_understood():
    spoken = [text for text in SAID.values() if text]
    known = [text for text in spoken if any(re.search(phrase, text) for phrase in PHRASES)]
    assert len(known) > 0.7 * len(spoken) > 500


REDUCING = [
    call
    for call in CALLS
    if {"axis", "keepdims"} <= {*inspect.signature(call.function).parameters}
    and call.room != "lax"
    and call.args[0] == X
]
# of which an axis is an integer, and of which there are two at most
ALONG_ONE = ["argmax", "argmin", "nanargmax", "nanargmin", "mode", "sem"]
ALONG_TWO = ["norm"]
OPTIONS = {"max": {"initial": 0.0}, "min": {"initial": 0.0}}


@pytest.mark.parametrize("call", REDUCING, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_that_are_reduced_are_gone_or_stay_with_length_1(call, keepdims):
    shape = (2, 3, 4)
    most = 1 if call.name in ALONG_ONE else 2 if call.name in ALONG_TWO else 3
    for axis in [None, 0, -1, *[(0, 2), (-1, -2, -3)][: most - 1]]:
        function = functools.partial(
            call.function, axis=axis, keepdims=keepdims, **OPTIONS.get(call.name, {})
        )
        out = phalanx.eval_shape(lambda x, f=function: f(x, *call.args[1:]), np.ones(shape, "f4"))
        gone = range(3) if axis is None else {d % 3 for d in np.atleast_1d(axis)}
        lengths = [1 if d in gone else n for d, n in enumerate(shape) if keepdims or d not in gone]
        assert {x.shape for x in phalanx.tree.leaves(out)} == {tuple(lengths)}, axis


def test_functions_that_refuse_complex_numbers_say_of_what_they_are():
    silent = []
    for call in [c for c in CALLS if c.room in ("numpy", "lax", "nn", "scipy.special") and c.slots]:
        doc = inspect.getdoc(call.function).split(">>>")[0]
        try:
            if not re.search(r"\b(?:real|integers?|floating|floats|dtype|boolean)", doc):
                Trial(call, "complex64")
        except TypeError as error:
            if "c64" in str(error) and not isinstance(error, PhalanxError):
                silent.append(f"{call}: {error}")
        except IndexError:
            continue  # the elements must be known, of a mask
    assert not silent, "\n".join(silent)


AXES = ("axis", "axes", "dimension")


def refused(call):
    """What a call raises with an axis that is not there, and with arrays that do not go together.

    Other errors are left out: what is no axis at all, and so on, is said of all functions at once.
    """
    args, kwargs = call.arguments(call.operands("float32"))
    bound = inspect.signature(call.function).bind(*args, **kwargs)
    arrays = [k for k, x in bound.arguments.items() if isinstance(x, np.ndarray)]
    wrong = [{k: 9} for k in AXES if k in bound.signature.parameters]
    wrong += [{k: np.ones((7, 5, 7), bound.arguments[k].dtype)} for k in arrays[1:2]]
    for change in wrong:
        given = inspect.BoundArguments(bound.signature, {**bound.arguments, **change})
        try:
            phalanx.eval_shape(lambda g=given: call.function(*g.args, **g.kwargs))
        except (AxisError, ShapeError) as error:
            yield error
        except (TypeError, ValueError, IndexError):
            continue


def test_what_is_refused_is_among_what_is_raised():
    silent, told = [], 0
    for call in [c for c in CALLS if inspect.isfunction(c.function)]:
        raised = {k for names, _ in doc_of(call.function).raises for k in names.split(", ")}
        for error in refused(call):
            kinds = {kind.__name__ for kind in type(error).__mro__}
            told += bool(raised & kinds)
            silent += [] if raised & kinds else [f"{call}: {type(error).__name__}: {error}"]
    assert not silent and told > 300, "\n".join(silent)
