"""Result dtypes and weakness of phalanx.numpy against installed jax."""

import functools
import itertools

import jax
import jax.numpy as jax_jnp
import ml_dtypes
import numpy as np
import pytest

import phalanx
import phalanx.numpy as phalanx_jnp


def names(text):
    return text.split()


DTYPES = names("bool uint8 uint16 uint32 int8 int16 int32 float16 bfloat16 float32 complex64")
SCALARS = {
    "True": True,
    "1": 1,
    "1.5": 1.5,
    "1j": 1j,
    "np.int8": np.int8(1),
    "np.f32": np.float32(2),
}
WEAK = {"weak int": 1, "weak float": 1.0, "weak complex": 1j}


class Peer:
    """One of the two libraries, and a way to learn the type of a result without computing."""

    def __init__(self, package, jnp):
        self.package, self.jnp = package, jnp

    def operand(self, name):
        if name in SCALARS:
            return SCALARS[name]
        if name in WEAK:
            return self.jnp.asarray(WEAK[name])
        return self.jnp.ones((2,), name)

    def type(self, function, *names):
        operands = [self.operand(n) for n in names]
        arrays = [x for x in operands if hasattr(x, "weak_type")]
        found = []

        def traced(*xs):
            values = iter(xs)
            out = function(
                self.jnp, *(next(values) if hasattr(x, "weak_type") else x for x in operands)
            )
            dtype = np.dtype(out.dtype)
            found.append((dtype.name, bool(out.weak_type) and dtype.kind != "b"))
            return out

        try:
            self.package.eval_shape(traced, *arrays)
        except (TypeError, ValueError):
            return "refused"
        return found[-1]


PEERS = (Peer(phalanx, phalanx_jnp), Peer(jax, jax_jnp))
FUNCTIONS = {
    "add": lambda jnp, x, y: jnp.add(x, y),
    "divide": lambda jnp, x, y: jnp.divide(x, y),
    "maximum": lambda jnp, x, y: jnp.maximum(x, y),
    "where": lambda jnp, x, y: jnp.where(True, x, y),
    "power": lambda jnp, x, y: jnp.power(x, y),
    "arctan2": lambda jnp, x, y: jnp.arctan2(x, y),
    "stack": lambda jnp, x, y: jnp.stack(jnp.broadcast_arrays(x, y)),
}
# Where we differ on purpose: powers promote like other functions, and complex numbers have no
# order.
EXCEPT = {
    "power": lambda a, b: b[:3] == "np." or "complex" in a + b or "1j" in (a, b) or "bool" in a,
    "maximum": lambda a, b: "complex" in a + b or "1j" in (a, b),
    "arctan2": lambda a, b: "complex" in a + b or "1j" in (a, b),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pairs(name):
    kinds = (*DTYPES, *SCALARS, *WEAK)
    wrong = []
    for a, b in itertools.product(kinds, kinds):
        if EXCEPT.get(name, lambda a, b: False)(a, b) or (a in SCALARS and b in SCALARS):
            continue
        ours, theirs = (p.type(FUNCTIONS[name], a, b) for p in PEERS)
        if name == "power":  # where the peer forgets weakness
            ours, theirs = ours[:1], theirs[:1]
        if ours != theirs:
            wrong.append((a, b, ours, theirs))
    assert not wrong


UNARY = names(
    """sin sqrt exp negative absolute square floor mean sum prod max cumsum var sort argmax
isnan real imag conj sign ravel median round zeros_like ones_like"""
)


@pytest.mark.parametrize("name", UNARY)
def test_single_operands(name):
    wrong = []
    for kind in (*DTYPES, *WEAK):
        ours, theirs = (p.type(lambda jnp, x: getattr(jnp, name)(x), kind) for p in PEERS)
        if ours != theirs and theirs != "refused":
            wrong.append((kind, ours, theirs))
    assert not wrong


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_reductions_accept_a_dtype(dtype):
    for name in ("sum", "mean", "cumsum"):
        types = [
            p.type(lambda jnp, x, name=name: getattr(jnp, name)(x, dtype=jnp.float32), dtype)
            for p in PEERS
        ]
        assert types[0] == types[1] == ("float32", False)


def test_scalars_stay_constants():
    def program(x):
        return x * 2 + 1.5

    text = str(phalanx.make_program(program)(phalanx_jnp.ones(3)))
    assert "mul" in text
    assert "convert" not in text
    assert "broadcast" not in text


def test_integers_out_of_range():
    with pytest.raises(OverflowError, match="does not fit int8"):
        phalanx_jnp.ones(2, "int8") + 1000
    with pytest.raises(OverflowError, match="does not fit int32"):
        phalanx_jnp.array(2**40)


WRAPPING = {
    "multiply": lambda jnp, x: x * -1,
    "reflected": lambda jnp, x: 300 - x,
    "compare": lambda jnp, x: x == 300,
    "where": lambda jnp, x: jnp.where(x > 1, x, -1),
    "full": lambda jnp, x: jnp.full_like(x, -(2**31)),
    "set": lambda jnp, x: x.at[0].set(-7),
    "clip": lambda jnp, x: jnp.clip(x, -1, 300),
}


@pytest.mark.parametrize("case", WRAPPING)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint32"])
def test_integers_out_of_range_wrap_if_one_asks(case, dtype):
    with pytest.raises(OverflowError, match="does not fit"):
        WRAPPING["multiply"](phalanx_jnp, phalanx_jnp.arange(3, dtype="uint8"))
    with phalanx.config.override(wrap_integers=True):
        ours, theirs = (
            WRAPPING[case](jnp, jnp.arange(3, dtype=dtype)) for jnp in (phalanx_jnp, jax_jnp)
        )
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_integers_that_no_program_holds_do_not_wrap():
    with phalanx.config.override(wrap_integers=True):
        for make in (lambda: phalanx_jnp.ones(2, "int8") + 2**31, lambda: phalanx_jnp.uint8(-1)):
            with pytest.raises(OverflowError, match="does not fit"):
                make()


def test_scalar_types_make_arrays():
    x = phalanx_jnp.int8(3)
    assert isinstance(x, phalanx_jnp.ndarray)
    assert (x + 1).dtype == phalanx_jnp.int8
    assert phalanx_jnp.float32([1, 2]).shape == (2,)


def test_numpy_arrays_defer_to_ours():
    host = np.arange(3, dtype=np.float32)
    ours = phalanx_jnp.ones(3)
    for out in (host + ours, np.float32(2) * ours, host @ ours, host > ours):
        assert isinstance(out, phalanx_jnp.ndarray)


FRACTIONS = {
    "sin": lambda jnp, x: jnp.sin(x),
    "divide": lambda jnp, x: x / x,
    "mean": lambda jnp, x: jnp.mean(x),
    "quantile": lambda jnp, x: jnp.quantile(x, 0.5),
    "inv": lambda jnp, x: jnp.linalg.inv(x[:1, None]),
    "fft": lambda jnp, x: jnp.fft.fft(x),
    "angle": lambda jnp, x: jnp.angle(x),
    "argsort": lambda jnp, x: jnp.argsort(x),
}


@pytest.mark.parametrize("name", FRACTIONS)
def test_integers_become_fractions_of_as_many_bits(name):
    """Where 64 bits are enabled, 32 are enough for what has no more."""
    with phalanx.enable_x64(True), jax.enable_x64(True):
        for dtype in names("bool int8 uint16 int32 uint32 int64 uint64 float32"):
            ours, theirs = (peer.type(FRACTIONS[name], dtype) for peer in PEERS)
            assert ours == theirs, (name, dtype)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4", "uint4"])
def test_numbers_of_dtypes_that_numpy_lacks_stand_beside_others(name):
    one = np.dtype(getattr(ml_dtypes, name)).type(1)
    for data in ([2, one], [one, 2], [[one, True], [3, 2]], [np.array(one), 2], [np.True_, one]):
        ours, theirs = phalanx_jnp.array(data), jax_jnp.array(data)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.astype("float32"), theirs.astype("float32"))
    for number in (np.True_, np.False_, True):
        for function in ("add", "multiply", "maximum", "equal", "floor_divide"):
            theirs = getattr(jax_jnp, function)(number, jax_jnp.array([1, 3], name))
            apply = functools.partial(getattr(phalanx_jnp, function), number)
            for ours in (apply, phalanx.jit(apply)):
                out = ours(phalanx_jnp.array([1, 3], name))
                assert out.dtype == theirs.dtype
                np.testing.assert_array_equal(out.astype("float32"), theirs.astype("float32"))
