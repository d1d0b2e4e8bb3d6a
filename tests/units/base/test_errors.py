"""The classes of errors, and the advice in their messages."""

import copy
import pickle

import pytest

from phalanx.base import errors

CLASSES = [
    c
    for c in vars(errors).values()
    if isinstance(c, type) and issubclass(c, errors.PhalanxError) and c is not errors.PhalanxError
]

BUILTINS = {
    errors.ArgumentError: (TypeError, ValueError),
    errors.TreeError: (ValueError, TypeError),
    errors.AxisError: (ValueError, IndexError),
    errors.AxisSizeError: ValueError,
    errors.UnboundAxis: NameError,
    errors.ReplicationError: ValueError,
    errors.ShapeError: (ValueError, TypeError),
    errors.ShardingTypeError: TypeError,
    errors.TracerBoolConversionError: errors.ConcretizationTypeError,
    errors.TracerIntegerConversionError: errors.ConcretizationTypeError,
    errors.TracerArrayConversionError: errors.ConcretizationTypeError,
    errors.ConcretizationTypeError: errors.JAXTypeError,
    errors.NonConcreteBooleanIndexError: errors.JAXIndexError,
    errors.JAXTypeError: TypeError,
    errors.JAXIndexError: IndexError,
    errors.EscapedTracer: errors.JAXTypeError,
    errors.KeyReuseError: errors.JAXTypeError,
    errors.InconclusiveDimensionOperation: ValueError,
    errors.RefError: ValueError,
    errors.DeletedArray: (RuntimeError, ValueError),
    errors.DeviceError: RuntimeError,
    errors.DeviceCountError: (errors.DeviceError, ValueError),
    errors.NoDevices: (errors.DeviceError, AttributeError, ValueError),
    errors.DevicesDiffer: ValueError,
    errors.MeshesDiffer: (errors.DeviceError, ValueError),
    errors.NoMesh: (RuntimeError, ValueError),
    errors.NonFiniteError: FloatingPointError,
    errors.RuntimeFailure: RuntimeError,
    errors.OutOfMemory: errors.RuntimeFailure,
    errors.DisallowedTransfer: errors.RuntimeFailure,
    errors.RendezvousError: RuntimeError,
    errors.PeerLost: RuntimeError,
    errors.ProgramMismatch: RuntimeError,
    errors.MissingRule: (NotImplementedError, ValueError),
    errors.MissingDerivative: (errors.MissingRule, AttributeError),
    errors.ProgramError: TypeError,
    errors.ClosureDifferentiated: TypeError,
    errors.UnreducedError: (errors.ShardingTypeError, NotImplementedError),
    errors.DtypeError: (TypeError, ValueError),
    errors.TypePromotionError: (TypeError, ValueError),
    errors.RefusedOption: (errors.RuntimeFailure, ValueError),
    errors.CheckFailed: (errors.RuntimeFailure, ValueError),
    errors.TracingRefused: RuntimeError,
    errors.ConfigError: ValueError,
    errors.UnknownOption: (errors.ConfigError, AttributeError),
}


@pytest.mark.parametrize("cls", sorted(set(CLASSES), key=lambda c: c.__name__))
def test_every_error_is_a_builtin_error_with_a_doc_and_survives_pickling(cls):
    expected = BUILTINS[cls]
    for base in expected if isinstance(expected, tuple) else (expected,):
        assert issubclass(cls, base)
    assert cls.__doc__
    error = pickle.loads(pickle.dumps(cls("what happened")))
    assert type(error) is cls and str(error) == "what happened"
    assert str(copy.copy(error)) == "what happened"


def test_the_public_alias_of_an_escaped_tracer():
    assert errors.UnexpectedTracerError is errors.EscapedTracer


def test_an_unbound_axis_lists_what_is_in_scope_and_the_nearest_name():
    scope = [("model", 2), ("batch", 8)]
    message = str(errors.UnboundAxis.of("psum", "bacth", scope, "a.py:2", None))
    assert message == (
        "psum: unbound axis name: bacth (in scope: 'model' of size 2, 'batch' of size 8), "
        "at a.py:2. Did you mean 'batch'?"
    )


def test_an_unbound_axis_where_nothing_is_in_scope_says_how_to_bind_it():
    message = str(errors.UnboundAxis.of("axis_index", ("i", 1), [], "a.py:2", None))
    assert "unbound axis name: ('i', 1)" in message
    assert "in scope: none" in message and "pmap(..., axis_name=...)" in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [("btach", "Did you mean 'batch'?"), ("zzz", ""), ("", "")],
)
def test_suggest(name, hint):
    assert errors.suggest(name, ["model", "batch"]) == hint
