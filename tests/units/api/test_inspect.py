"""How values inside programs lie: what the compiler says of them."""

import numpy as np
import pytest

import phalanx
from phalanx import NamedSharding, P, debug, lax

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs eight devices")
X = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture
def on_mesh():
    mesh = phalanx.make_mesh((2, 4), ("x", "y"))
    return lambda *spec: NamedSharding(mesh, P(*spec))


@pytest.fixture
def told():
    return []


def noting(told):
    """A function that notes how its argument lies, and gives it back."""

    def f(x):
        debug.inspect_array_sharding(x, callback=told.append)
        return x

    return f


def test_what_the_compiler_chose_is_how_the_value_lies_as_a_result(on_mesh, told):
    a, b = (phalanx.device_put(X, on_mesh(*spec)) for spec in (("x", "y"), ("y",)))
    noted = noting(told)

    @phalanx.jit
    def f(a, b):
        c = noted(a @ b)
        return lax.fori_loop(0, 2, lambda _, x: noted(x) + 1, c), c.T

    out, transposed = f(a, b)
    f(a, b)
    np.testing.assert_allclose(out, X @ X + 2)
    assert told == [on_mesh("x")] * 2 and told[0].spec == P("x")
    assert transposed.sharding == on_mesh(None, "x")


@pytest.mark.parametrize(
    "around",
    [
        lambda f: f,
        phalanx.jit,
        phalanx.vmap,
        lambda f: phalanx.jit(phalanx.vmap(f)),
        lambda f: phalanx.grad(lambda x: f(x).sum()),
        lambda f: phalanx.jit(phalanx.grad(lambda x: f(x).sum())),
        lambda f: phalanx.jit(lambda x: lax.cond(x.sum() > 0, f, lambda x: -x, x)),
        lambda f: phalanx.jit(phalanx.grad(lambda x: phalanx.checkpoint(f)(x).sum())),
    ],
)
def test_transformations_ask_once_of_whole_arrays(around, on_mesh, told):
    x = phalanx.device_put(X, on_mesh("x", "y"))
    around(noting(told))(x)
    assert told == [on_mesh("x", "y")]


def test_one_device_is_told_too(told):
    phalanx.jit(noting(told))(X)
    assert [s.device_set for s in told] == [{phalanx.devices()[0]}]


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match=r"test_inspect.py:.*the compiler chooses nothing"):
        phalanx.pmap(noting([]))(X)
    with pytest.raises(TypeError, match="needs arrays on devices or traced ones, got int"):
        debug.inspect_array_sharding(3, callback=print)
    with pytest.raises(TypeError, match="callback must be a function, got None"):
        debug.inspect_array_sharding(phalanx.numpy.ones(3), callback=None)


def test_what_the_callback_raises_is_raised_and_nothing_is_lost(told):
    raising = [KeyError("mine")]

    @phalanx.jit
    def f(x):
        debug.inspect_array_sharding(x, callback=lambda s: raising and _raise(raising.pop()))
        return x + 1

    with pytest.raises(KeyError, match="mine"):
        f(X)
    np.testing.assert_allclose(f(X), X + 1)


def _raise(error):
    raise error
