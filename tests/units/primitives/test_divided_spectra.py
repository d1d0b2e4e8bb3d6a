"""Eigenvalues of large matrices as TPUs compute them, by rules that a CPU can run as well."""

import importlib

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.core.primitive import Primitive
from phalanx.primitives import linalg
from phalanx.primitives.linalg.matrix_sign import cubics

SMALL, N = 12, 31
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def divided(monkeypatch):
    """Spectra of more than a few rows are divided; the small blocks are for LAPACK."""
    division = importlib.import_module("phalanx.primitives.linalg.division")
    monkeypatch.setattr(division, "SMALL", SMALL)
    on_cpu = linalg.eigh.lower_on["cpu"]

    def divided(b, a, *, vectors):
        large = b.type(a).shape[-1] > SMALL
        large_on = linalg.eigh.lower_on["tpu"]
        return (large_on if large else on_cpu)(b, a, vectors=vectors)

    def lowering(prim, platform):
        return divided if prim is linalg.eigh else prim.lower_on.get(platform, prim.lower)

    monkeypatch.setattr(Primitive, "lowering", lowering)
    with phalanx.enable_x64(True):
        yield


def decomposed(a):
    v, w = phalanx.jit(lambda a: tuple(linalg.eigh(a, vectors=True)))(a)
    return np.asarray(v), np.asarray(w)


def random(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    return (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)


def hermitian(a):
    return (a + np.conj(a.T)) / 2


def of_values(w, dtype):
    q, _ = np.linalg.qr(random(len(w), dtype, 1))
    return hermitian((q * w) @ np.conj(q.T)).astype(dtype)


def assert_decomposed(a, v, w):
    """To the digits that the dtype has, of the norm of the matrix."""
    wide = a.astype(complex)
    error = np.finfo(a.dtype).eps * 40
    norm = np.linalg.norm(wide, 2)
    assert (np.diff(w) >= 0).all()
    assert np.abs(w - np.linalg.eigvalsh(wide)).max() <= error * norm
    assert np.abs(wide @ v - v * w).max() <= error * norm
    assert np.abs(np.conj(v.T) @ v - np.eye(len(a))).max() <= error


SPECTRA = {
    "apart": np.linspace(-1, 2, N),
    "geometric": 2.0 ** -np.arange(N),
    "over all magnitudes": 10.0 ** np.linspace(-30, 3, N),
    "repeated, with the mean among them": np.repeat([1.0, 2, 3], [10, 11, 10]),
    "clustered about the mean": np.concatenate([[-1], 1e-8 * np.arange(N - 2), [1]]),
    "one outlier": np.concatenate([[1e4], np.linspace(1, 2, N - 1)]),
    "of rank 2": np.concatenate([[1, 2], np.zeros(N - 2)]),
    "tiny": 1e-30 * np.linspace(1, 2, N),
    "huge": 1e30 * np.linspace(-1, 2, N),
}


places = np.arange(N)
MATRICES = {
    "zero": np.zeros((N, N)),
    "identity": np.eye(N),
    "ones": np.ones((N, N)),
    "diagonal": np.diag(places[::-1]),
    "wilkinson": np.diag(np.abs(places - N // 2)) + np.eye(N, k=1) + np.eye(N, k=-1),
    "circulant": np.abs(N / 2 - np.abs(np.subtract.outer(places, places))),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra_of_every_kind(dtype):
    named = {name: of_values(w, dtype) for name, w in SPECTRA.items()}
    named |= {name: a.astype(dtype) for name, a in MATRICES.items()}
    found = decomposed(np.stack([*named.values()]))
    for (name, a), v, w in zip(named.items(), *found, strict=True):
        try:
            assert_decomposed(a, v, w)
        except AssertionError as e:
            e.add_note(name)
            raise


@pytest.mark.parametrize("n", [SMALL + 1, 2 * SMALL, 5 * SMALL + 3])
def test_sizes(n):
    a = hermitian(random(n, np.complex128))
    assert_decomposed(a, *decomposed(a))


def test_values_alone_are_those_with_vectors():
    a = np.stack([hermitian(random(N, np.float64, seed)) for seed in range(6)]).reshape(2, 3, N, N)
    (w,) = phalanx.jit(lambda a: tuple(linalg.eigh(a, vectors=False)))(a)
    np.testing.assert_array_equal(w, decomposed(a)[1])


def test_the_lower_triangle_is_read():
    a = hermitian(random(N, np.float64))
    given = np.tril(a) + 7 * np.triu(np.ones_like(a), 1)
    v, w = decomposed(given)
    assert_decomposed(a, v, w)


def test_lanes_and_an_empty_batch():
    a = np.stack([hermitian(random(N, np.float64, seed)) for seed in range(2)])
    w = phalanx.jit(phalanx.vmap(jnp.linalg.eigvalsh))(a)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-13)
    assert decomposed(np.zeros((0, N, N)))[1].shape == (0, N)


def test_what_is_not_finite_gives_nan_and_ends():
    a = np.stack([np.full((N, N), np.nan), hermitian(random(N, np.float64))])
    v, w = decomposed(a)
    assert np.isnan(w[0]).any()
    assert_decomposed(a[1], v[1], w[1])


def test_derivatives_are_those_of_the_function():
    a, t = (hermitian(random(N, np.float64, seed)) for seed in (2, 3))

    def energy(a, eigh, sum, abs):
        w, v = eigh(a)
        return sum(w**3) + sum(abs(v[0]) ** 4 * places)

    def ours(a):
        return energy(a, lambda a: linalg.eigh(a, vectors=True)[::-1], jnp.sum, jnp.abs)

    def expected(a):
        return energy(a, np.linalg.eigh, np.sum, np.abs)

    _, slope = phalanx.jit(lambda a, t: phalanx.jvp(ours, (a,), (t,)))(a, t)
    step = 1e-6
    quotient = (expected(a + step * t) - expected(a - step * t)) / (2 * step)
    np.testing.assert_allclose(slope, quotient, rtol=1e-6)


@pytest.mark.parametrize(("least", "error"), [(1e-7, 1e-7), (1e-16, 2e-16), (0.5, 0.0)])
def test_cubics_take_all_singular_values_to_one(least, error):
    x = np.geomspace(least, 1, 1000)
    for a, b in cubics(least, error):
        x = x * (a + b * x * x)
    assert np.abs(x - 1).max() <= 10 * max(error, 1e-15)
