"""Dtypes by name: they stand for dtypes, are classes, and make arrays."""

import copy
import pickle
import typing

import numpy as np
import pytest

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.numpy import scalar_types


def test_a_scalar_type_stands_for_its_dtype():
    t = jnp.float32
    assert np.dtype(t) == np.float32 and np.zeros(2).astype(t).dtype == np.float32
    assert t == np.float32 and np.dtype("float32") == t and t == "float32" and t != np.float64
    assert t != 3 and t != jnp.float16 and t in {t: 1}
    assert {np.float32: 1}[t] == {t: 1}[np.float32] == 1
    assert np.issubdtype(t, np.floating) and dtypes.issubdtype(jnp.bfloat16, np.floating)
    assert t.__name__ == "float32" and repr(jnp.bfloat16) == "phalanx.numpy.bfloat16"
    assert copy.deepcopy(t) == pickle.loads(pickle.dumps(t)) == t


def test_a_scalar_type_is_a_class():
    t = jnp.float32
    assert (t | None) == typing.Optional[t] and isinstance(t, type)  # noqa: UP045
    assert isinstance(np.float32(1), t) and not isinstance(np.float64(1), t)
    assert not isinstance(jnp.zeros(()), t)
    assert repr(t | None) == "phalanx.numpy.float32 | None" and t.__module__ == "phalanx.numpy"


@pytest.mark.parametrize("t", [jnp.int8, jnp.bfloat16, jnp.complex64])
def test_a_class_derived_from_a_scalar_type_is_the_same_dtype(t):
    class Own(t):
        """A status."""

        FIRST = t(0)

    assert Own == t == Own.dtype and hash(Own) == hash(t) and Own.FIRST == 0
    assert np.zeros(2, Own).dtype == dtypes.as_dtype(Own) == t.dtype
    assert Own(1).dtype == t.dtype and isinstance(t.dtype.type(1), Own) and issubclass(Own, t)
    assert Own.__doc__ == "A status." and repr(Own).startswith(f"{__name__}.")


def test_a_scalar_type_makes_arrays():
    x, zero = jnp.float32(3), jnp.int8()
    assert isinstance(x, jnp.ndarray) and x.dtype == np.float32 and x == 3 and x.shape == ()
    assert isinstance(zero, jnp.ndarray) and zero.dtype == np.int8 and zero == 0


def test_every_dtype_has_a_scalar_type():
    types = {t for t in vars(scalar_types).values() if isinstance(t, jnp.ScalarType)}
    assert {t.dtype for t in types} == dtypes.ALL - {dtypes.float0}
    for t in types:
        assert getattr(jnp, t.__name__.replace("bool", "bool_")) is t
