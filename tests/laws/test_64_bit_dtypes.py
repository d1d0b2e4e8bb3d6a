"""Who asks for a dtype of 64 bits and gets one of 32 is told so, at the line that asks."""

import inspect
import warnings

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from tests.exemptions import exempt
from tests.laws.arguments import calls

MEANING = ("dtype", "preferred_element_type", "new_dtype", "index_dtype")
WIDE = (np.float64, np.int64, np.uint64, np.complex128)
MAKING = {"nn.initializers.zeros", "nn.initializers.ones"}


def asking():
    """Each public function with a parameter for a dtype, and the name of that."""
    for call in calls():
        makes_functions = call.room == "nn.initializers" and str(call) not in MAKING
        if call.args is None or makes_functions or exempt("64-bits-told", call):
            continue
        try:
            parameters = inspect.signature(call.function).parameters
        except ValueError:  # a dtype, say, is a class
            continue
        for name in MEANING:
            p = parameters.get(name)
            if p is not None and p.kind is not p.POSITIONAL_ONLY:
                yield pytest.param(call, name, id=f"{call}-{name}")


def warned(function):
    """What is said while ``function`` runs; None where it refuses what it is told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            phalanx.eval_shape(function)
        except (TypeError, ValueError):
            return None
    return caught


@pytest.mark.parametrize("call, parameter", [*asking()])
def test_functions_that_are_asked_for_64_bits_say_so(call, parameter):
    args, kwargs = call.by_keyword().arguments(call.operands())

    def run(dtype):
        return call.function(*args, **kwargs | {parameter: dtype})

    told = [said for d in WIDE if (said := warned(lambda d=d: run(d))) is not None]
    assert told
    for said in told:
        assert any("Explicitly requested dtype" in str(w.message) for w in said)
        assert {w.filename for w in said} == {__file__}


def test_so_do_conversions():
    for convert in (lambda x: x.astype(np.int64), lambda x: jnp.astype(x, "int64")):
        with pytest.warns(UserWarning, match="int64 is not available, and arrays get int32"):
            assert convert(jnp.ones(3)).dtype == np.int32


def test_every_line_that_asks_is_told():
    x = jnp.arange(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            jnp.sum(x, dtype="float64")
            jnp.sum(x, dtype="float64")
    assert len({w.lineno for w in caught}) == len(caught) == 2


@pytest.mark.parametrize("dtype", [None, int, float, complex, bool, "float32", np.int32, jnp.int8])
def test_others_are_not(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.zeros(3, dtype).dtype == phalanx.dtypes.canonicalize_dtype(dtype)


@pytest.mark.parametrize("dtype", ["float64", np.int64, np.dtype("uint64"), jnp.complex128])
def test_with_64_bits_nobody_is(dtype):
    with warnings.catch_warnings(), phalanx.enable_x64(True):
        warnings.simplefilter("error")
        assert jnp.zeros(3, dtype).dtype == np.dtype(dtype)
    with pytest.warns(UserWarning, match=r"requested dtype \w+64|128 is not available.*enable_x64"):
        assert jnp.zeros(3, dtype).dtype.itemsize == np.dtype(dtype).itemsize // 2
