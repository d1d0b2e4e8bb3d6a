"""Types and operations of another library's own, under every transformation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.compat import core
from phalanx.compat.experimental import hijax


@dataclass(frozen=True)
class Pair:
    """A value of the library's: two arrays."""

    first: Any
    second: Any


@dataclass(frozen=True)
class PairType(hijax.HiType):
    first: Any
    second: Any

    def lo_ty(self):
        return [self.first, self.second]

    def lower_val(self, pair):
        return [pair.first, pair.second]

    def raise_val(self, first, second):
        return Pair(first, second)

    def to_tangent_aval(self):
        return PairType(self.first.to_tangent_aval(), self.second.to_tangent_aval())


hijax.register_hitype(Pair, lambda x: PairType(*map(hijax.typeof, (x.first, x.second))))


class Operation(hijax.HiPrim):
    """An operation that stands for ``does``; classes that derive from it have a rule each."""

    def __init__(self, *args):
        self.in_avals = tuple(map(hijax.typeof, args))
        self.out_aval = self.in_avals[0]
        self.params = {"factor": 2.0}
        super().__init__()

    def expand(self, x):
        return Pair(self.factor * x.first, jnp.sin(x.second))


class ByJvp(Operation):
    def jvp(self, primals, tangents):
        ((x,), (t,)) = primals, tangents
        return self(x), Pair(10 * t.first, t.second)


class ByLin(Operation):
    def lin(self, active, x):
        return self(x), active

    def linearized(self, active, t):
        assert active == (True,)
        return Pair(10 * t.first, t.second)


class ByReturned(Operation):
    def vjp_fwd(self, active, x):
        return self(x), active

    def vjp_bwd_retval(self, active, ct):
        assert active == (True,)
        return (Pair(10 * ct.first, ct.second),)


class ByAccumulated(Operation):
    def vjp_fwd(self, active, x):
        return self(x), None

    def vjp_bwd(self, residuals, ct, total):
        total.accum(Pair(9 * ct.first, 0 * ct.second))
        total.accum(Pair(ct.first, ct.second))
        total.accum(None)


X = Pair(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, -0.25, 4.0]))
RULES = [ByJvp, ByLin, ByReturned, ByAccumulated]


def does(kind, x):
    out = kind(x)(x)
    return out.first * out.second


def value(x):
    return 2 * np.asarray(x.first) * np.sin(np.asarray(x.second))


@pytest.mark.parametrize("kind", [Operation, *RULES])
def test_values_under_every_transformation(kind):
    def f(x):
        return does(kind, x)

    ways = {
        "at once": f,
        "jit": phalanx.jit(f),
        "vmap": phalanx.vmap(f),
        "pmap": phalanx.pmap(f),
        "scan": lambda x: lax.scan(lambda n, row: (n, f(row)), 0, x)[1],
        "remat": phalanx.checkpoint(f),
    }
    for name, way in ways.items():
        np.testing.assert_allclose(way(X), value(X), rtol=1e-6, err_msg=name)


def test_what_is_returned_is_a_value_of_the_library():
    out = phalanx.jit(lambda x: Pair(x.second, x.first))(X)
    assert type(out) is Pair and out.first.tolist() == [0.5, -0.25, 4.0]
    assert hijax.typeof(out) == core.get_aval(X)
    assert isinstance(phalanx.grad(lambda x: x.first.sum())(X), Pair)


def test_what_stands_for_an_array_has_its_type():
    stands = phalanx.ShapeDtypeStruct((2,), "float32", weak_type=True, vma={"i"})
    kind = core.typeof(stands)
    assert (kind.shape, kind.dtype, kind.weak, kind.vma) == ((2,), np.float32, True, {"i"})
    assert core.valid_jaxtype(stands)


@pytest.mark.parametrize("kind", RULES)
def test_the_rule_of_the_class_is_the_derivative(kind):
    """It says 10 and 1, where what the operation does has other derivatives."""
    out = Operation(X)(X)
    for wrap in (lambda f: f, phalanx.jit, phalanx.checkpoint):
        g = phalanx.grad(wrap(lambda x: does(kind, x).sum()))(X)
        np.testing.assert_allclose(g.first, 10 * out.second, rtol=1e-6)
        np.testing.assert_allclose(g.second, out.first, rtol=1e-6)
    lanes = phalanx.vmap(phalanx.grad(lambda x: does(kind, x)))(X)
    np.testing.assert_allclose(lanes.first, 10 * out.second, rtol=1e-6)


def test_what_stands_for_arrays_in_a_value():
    """Axes, types, and names in their place."""
    f = phalanx.vmap(lambda x: x.first + x.second, in_axes=(Pair(None, 0),), out_axes=1)
    assert f(Pair(X.first, jnp.arange(2.0))).shape == (3, 2)
    shapes = phalanx.eval_shape(lambda x: Pair(x.second, x.first[0]), X)
    assert shapes.first.shape == (3,) and shapes.second.shape == ()
    assert phalanx.tree.map(lambda x: x.shape, shapes) == Pair((3,), ())
    assert phalanx.tree.map(lambda n, x: x * n, Pair(2, 3), Pair(5, 7)) == Pair(10, 21)
    weak = Pair(jnp.asarray(1.0), 2.0)  # a carry of weak dtype that does not stay so
    carry, _ = lax.scan(lambda c, x: (Pair(c.first * x, c.second * x), None), weak, X.first)
    assert carry == Pair(6.0, 12.0)
    with pytest.raises(TypeError, match="not an array or a number"):
        hijax.typeof(Pair("a", "b"))


@pytest.mark.parametrize("kind", RULES[:2])
def test_the_rule_serves_forward_mode(kind):
    t = Pair(jnp.ones(3), jnp.zeros(3))
    _, out = phalanx.jvp(lambda x: does(kind, x), (X,), (t,))
    np.testing.assert_allclose(out, 10 * jnp.sin(X.second), rtol=1e-6)


def test_without_a_rule_it_is_differentiated_through():
    g = phalanx.grad(lambda x: does(Operation, x).sum())(X)
    np.testing.assert_allclose(g.first, 2 * np.sin(X.second), rtol=1e-6)


def test_a_class_may_say_what_is_done_while_recording():
    class Loud(Operation):
        def staging(self, trace, source_info, *args):
            raise KeyError(trace.records)

    assert Loud(X)(X).first[0] == 2.0
    assert phalanx.vmap(lambda x: Loud(x)(x))(X).first[0] == 2.0
    with pytest.raises(KeyError, match="True"):
        phalanx.jit(lambda x: Loud(x)(x).first)(X)


def test_what_would_be_lost_is_refused():
    class Write(Operation):
        def __init__(self, *args):
            super().__init__(*args)
            self.out_aval = ()

        def expand(self, x):
            seen.append(x)
            return ()

    seen = []
    Write(X)(X)
    assert seen == [X]
    for transform in (phalanx.jit, phalanx.vmap):
        with pytest.raises(NotImplementedError, match=r"Write gives no result.*test_hijax.py:\d+"):
            transform(lambda x: (Write(x)(x), x.first)[1])(X)


def test_tangents_of_another_type_are_refused():
    @dataclass(frozen=True)
    class Rounded(PairType):
        def to_tangent_aval(self):
            return self.second

    class Odd(ByJvp):
        def __init__(self, x):
            super().__init__(x)
            self.out_aval = Rounded(*self.out_aval.lo_ty())

    with pytest.raises(NotImplementedError, match=r"tangents of .*Rounded are of another type"):
        phalanx.grad(lambda x: does(Odd, x).sum())(X)


def test_what_a_class_must_say():
    class Empty(hijax.HiPrim):
        pass

    with pytest.raises(AttributeError, match=r"Empty\.__init__ must set in_avals, out_aval"):
        Empty()
    with pytest.raises(NotImplementedError, match="HiType must have a method lo_ty"):
        hijax.HiType().lo_ty()
    assert Operation(X) == Operation(X) and hash(Operation(X)) == hash(Operation(X))
    assert Operation(X) != ByJvp(X)
