"""Operators and methods of arrays and of tracers."""

import operator

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

X = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
K = np.arange(12, dtype=np.int32).reshape(3, 4) + 1

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    divmod, operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
    operator.ge,
]  # fmt: skip
INTEGRAL = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("f", [*BINARY, *INTEGRAL], ids=lambda f: f.__name__)
def test_operators(f):
    host = K % 5 + 1 if f in INTEGRAL else X % 5 + 1
    x = jnp.array(host)
    for found, expected in (
        (f(x, x[0]), f(host, host[0])),
        (f(x, 2), f(host, 2)),
        (f(2, x), f(np.array(2, host.dtype), host)),
        (f(host, x), f(host, host)),
        (
            phalanx.jit(lambda x: f(2, f(x, 2)))(x) if f is operator.add else 0,
            2 + host + 2 if f is operator.add else 0,
        ),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_unary_operators():
    x = jnp.array(K - 5)
    for function in (operator.neg, operator.pos, operator.abs, operator.invert):
        np.testing.assert_array_equal(function(x), function(K - 5))
    assert round(jnp.array(2.567), 1) == jnp.array(2.6)
    assert (jnp.array(X) @ X.T).shape == (3, 3)
    assert (X @ jnp.array(X).T).shape == (3, 3)


METHODS = [
    ("sum",), ("sum", 0), ("mean", 1), ("max",), ("min", 0), ("prod", 1), ("std",), ("var", 0),
    ("argmax", 1), ("argmin",), ("all",), ("any", 0), ("cumsum", 1), ("cumprod", 0), ("ptp",),
    ("reshape", 4, 3), ("reshape", (2, 6)), ("reshape", -1), ("ravel",), ("flatten",),
    ("transpose",), ("transpose", 1, 0), ("transpose", (1, 0)), ("swapaxes", 0, 1), ("squeeze",),
    ("clip", 2, 5), ("round", 1), ("repeat", 2, 0), ("take", np.array([1, 2]), 1), ("sort",),
    ("argsort", 0), ("conj",), ("conjugate",), ("copy",), ("astype", np.int32), ("dot", X.T),
    ("diagonal",), ("trace",), ("nonzero",), ("compress", np.array([True, False, True]), 0),
]  # fmt: skip


@pytest.mark.parametrize("name, args", [(name, args) for name, *args in METHODS])
def test_methods(name, args):
    host = X
    if name == "sort":
        expected = np.sort(host)
    elif name == "ptp":
        expected = np.ptp(host)
    else:
        expected = getattr(host, name)(*args)
    np.testing.assert_allclose(getattr(jnp.array(host), name)(*args), expected, rtol=1e-5)


def test_properties():
    x = jnp.array(X)
    assert x.T.shape == (4, 3)
    assert x.mT.shape == (4, 3)
    assert (x.nbytes, x.itemsize, len(x)) == (48, 4, 3)
    z = jnp.array([1 + 2j])
    assert (z.real.tolist(), z.imag.tolist()) == ([1.0], [2.0])
    assert x.imag.tolist() == np.zeros((3, 4)).tolist()
    assert [row.shape for row in x] == [(4,)] * 3


def test_tracers_have_them_all():
    @phalanx.jit
    def program(x):
        rows = sum(row.sum() for row in x)
        return x.T.astype(int).at[0].set(7), x.mean(), rows, -x[::2], len(x), x.nbytes

    found = program(X)
    assert found[0].dtype == jnp.int32
    assert float(found[2]) == X.sum()
    assert (int(found[4]), int(found[5])) == (3, 48)


def test_views():
    x = jnp.array([1.0, 2.0])
    assert x.view(jnp.int32).tolist() == X[0, :2].view(np.int32).tolist()
    assert x.view(jnp.uint8).shape == (8,)
    assert x.view(jnp.uint8).view(jnp.float32).tolist() == [1.0, 2.0]
    assert jnp.array([True, False]).view(jnp.uint8).tolist() == [1, 0]


def test_conversions():
    x = jnp.array([-1.7, 0.0, 2.9])
    assert x.astype(int).tolist() == [-1, 0, 2]
    assert x.astype(bool).tolist() == [True, False, True]
    assert x.astype("bfloat16").dtype == jnp.bfloat16
    assert jnp.array([1 + 2j]).astype(float).tolist() == [1.0]


def test_numpy_functions_call_our_methods():
    x = jnp.array(X)
    assert isinstance(np.sum(x, axis=0), jnp.ndarray)
    assert isinstance(np.reshape(x, (4, 3)), jnp.ndarray)
    np.testing.assert_allclose(np.exp(x), np.exp(X), rtol=1e-6)


def test_what_does_not_combine():
    x = jnp.array(X)
    for other in ([1, 2, 3, 4], (1, 2)):
        for function in (operator.add, operator.eq, operator.lt):
            with pytest.raises(TypeError, match=r"convert it with jnp.array, once"):
                function(x, other)
            with pytest.raises(TypeError, match=r"convert it with jnp.array, once"):
                function(other, x)
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()

    class Other:
        def __radd__(self, _):
            return "theirs"

    assert x + Other() == "theirs"


def test_out_must_be_none():
    with pytest.raises(TypeError, match="out must be None"):
        np.sum(jnp.array(X), out=np.zeros(()))
