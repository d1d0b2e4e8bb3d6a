"""Exceptions of functions that programs call, as handlers written for the field find them."""

import pickle

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.base import dialect
from phalanx.base.dialect import Dialect
from phalanx.compat.raised import as_runtime_error
from phalanx.errors import JaxRuntimeError


class Refused(Exception):
    """One with arguments of its own."""

    def __init__(self, reason, *, code):
        super().__init__(reason)
        self.code = code


def raised(error, devices=1):
    def fail(x):
        raise error

    def call(x):
        return phalanx.lax.psum(phalanx.pure_callback(fail, x, x), "i")

    with pytest.raises(BaseException) as caught:
        phalanx.pmap(call, axis_name="i", devices=phalanx.devices()[:devices])(jnp.ones(devices))
    return caught.value


@pytest.mark.parametrize("devices", [1, 2])
def test_they_are_of_their_class_and_runtime_errors_too(monkeypatch, devices):
    monkeypatch.setattr(dialect, "spoken", Dialect(failure=as_runtime_error))
    error = raised(Refused("not today", code=7), devices)
    assert isinstance(error, Refused) and isinstance(error, JaxRuntimeError)
    assert error.code == 7 and error.args == ("not today",)
    assert str(error).endswith("Refused: not today")
    assert type(raised(KeyboardInterrupt())) is KeyboardInterrupt


def test_elsewhere_they_are_what_was_raised():
    assert raised(error := ValueError("no")) is error


def test_they_can_be_pickled():
    error = as_runtime_error(ZeroDivisionError("by 0"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ZeroDivisionError and again.args == ("by 0",)


@pytest.mark.parametrize("error", [JaxRuntimeError("gone"), SystemExit(2)])
def test_what_is_one_already_or_ends_the_process_stays(error):
    assert as_runtime_error(error) is error
