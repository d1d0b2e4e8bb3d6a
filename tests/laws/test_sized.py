"""Dimensions, lengths and numbers of things are taken in every form of an integer.

What is taken as an int is taken as an integer or an array of NumPy, and as an array of ours; what
is taken as a tuple, as a list and as an array, too. All else is refused: text, numbers with a
fraction, and values that only the run of a compiled function knows.
"""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import ConcretizationTypeError
from tests.exemptions import exempt
from tests.laws.sized import NAMES, OWN_VALUES, PARAMETERS, call

CASES = [
    (function, parameter)
    for function, parameter in PARAMETERS
    if not exempt("forms-of-sizes", function)
    and not exempt("forms-of-sizes", f"{function}.{parameter}")
]


def numbers(results):
    leaves = phalanx.tree.leaves(results)
    keys = [jnp.issubdtype(jnp.asarray(x).dtype, phalanx.dtypes.prng_key) for x in leaves]
    pairs = zip(leaves, keys, strict=True)
    return [np.asarray(phalanx.random.key_data(x) if key else x) for x, key in pairs]


def forms(value):
    if not isinstance(value, tuple):
        return [np.int64(value), np.array(value), jnp.array(value)]
    return [list(value), np.array(value), tuple(map(np.int64, value)), jnp.array(value)]


def others(name, value):
    """What is no integer, or not several."""
    wrong = ["1", 1.5, np.array(1.5)] if not exempt("fractions-refused", name) else []
    if not isinstance(value, tuple):
        return wrong
    return [("1",) * len(value), (1.5,) * len(value), np.array(value) + 0.5]


@pytest.mark.parametrize(("function", "parameter"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_forms(function, parameter):
    f, taken = call(function, parameter), 0
    for value in OWN_VALUES.get((function, parameter), NAMES[parameter]):
        if value is None:
            continue
        try:
            wanted = numbers(f(value))
        except (TypeError, ValueError):  # takes one, or several
            continue
        taken += 1
        for form in forms(value):
            for x, y in zip(numbers(f(form)), wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-6, err_msg=repr(form))
        for wrong in others(function, value):
            with pytest.raises((TypeError, ValueError)):
                f(wrong)
        if not exempt("sizes-untraced", f"{function}.{parameter}"):
            with pytest.raises(ConcretizationTypeError):
                phalanx.jit(f)(np.int32(value))
    assert taken, "no value of this parameter is known: give one in tests/laws/sized.py"


@pytest.mark.parametrize("f", [jnp.sum, jnp.flip, jnp.cumsum, jnp.argmax, phalanx.nn.softmax])
def test_no_bools_as_dimensions(f):
    f(np.ones((2, 2)), axis=1)  # what is held of it is of no other axis that equals it
    with pytest.raises(TypeError, match="a dimension must be an integer, got True"):
        f(np.ones((2, 2)), axis=True)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda: phalanx.scipy.special.bernoulli(np.ones(2)), "bernoulli: n must be an integer"),
        (lambda: jnp.ones(3).at[0].divide(2.0, mode="no"), r"at\[\].divide: mode must be one of"),
        (lambda: jnp.ones(3).at[0].power(2.0, mode="no"), r"at\[\].power: mode must be one of"),
        (lambda: phalanx.lax.top_k(np.ones(3), "1"), "lax.top_k: k must be an integer, got '1'"),
        (lambda: jnp.nonzero(np.ones(3), size=1.5), "nonzero: size must be an integer, got 1.5"),
    ],
)
def test_words(f, words):
    with pytest.raises((TypeError, ValueError), match=words):
        f()
