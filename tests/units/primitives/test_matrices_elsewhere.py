"""Matrices as they are factorized where there is no LAPACK, by rules that a CPU can run as well."""

import functools
import re
from collections import Counter

import numpy as np
import pytest
import scipy.linalg

import phalanx
import phalanx.numpy as jnp
import phalanx.scipy.stats as stats
from phalanx.core.primitive import Primitive
from phalanx.primitives import linalg

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture
def by_rules_of_tpus(monkeypatch):
    """The operations named are lowered as for TPUs, all others as for CPUs."""

    def choose(*names):
        def lowering(prim, platform):
            return prim.lower_on.get("tpu" if prim.name in names else platform, prim.lower)

        monkeypatch.setattr(Primitive, "lowering", lowering)

    with phalanx.enable_x64(True):
        yield choose


def run(f, *args):
    out = phalanx.jit(lambda *xs: f(*xs))(*args)
    return [np.asarray(x) for x in out] if isinstance(out, (list, tuple)) else np.asarray(out)


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def assert_close(x, y, digits=100):
    eps = np.finfo(x.dtype).eps
    assert np.abs(x - y).max(initial=0) <= digits * eps * max(1, np.abs(y).max(initial=0))


def assert_orthonormal(x):
    one = np.eye(x.shape[-1])
    assert_close(adjoint(x) @ x, np.broadcast_to(one, (*x.shape[:-2], *one.shape)))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((4, 4), np.float32),
        ((2, 3, 6, 4), np.float64),
        ((3, 5), np.complex64),
        ((5, 3), np.complex128),
        ((1, 1), np.complex64),
    ],
)
def test_singular_values_by_the_polar_decomposition(shape, dtype, by_rules_of_tpus):
    by_rules_of_tpus("svd")
    a, least = numbers(shape, dtype), min(shape[-2:])
    u, s, vh = run(lambda a: linalg.svd(a, full=True, vectors=True), a)
    assert_close((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], a)
    assert_close(s, np.linalg.svd(a, compute_uv=False))
    assert_orthonormal(u)
    assert_orthonormal(adjoint(vh))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_singular_values_of_small_and_large_matrices(scale, by_rules_of_tpus):
    by_rules_of_tpus("svd")
    a = np.float32(scale) * numbers((3, 3), np.float32)
    (s,) = run(lambda a: linalg.svd(a, full=False, vectors=False), a)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-4)


def test_singular_values_alone(by_rules_of_tpus):
    by_rules_of_tpus("svd")
    a = numbers((3, 5), np.float64)
    (s,) = run(lambda a: linalg.svd(a, full=False, vectors=False), a)
    assert_close(s, np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("a", [np.zeros((4, 3)), np.outer(np.arange(4.0), [1, 2, 0])])
def test_vectors_of_singular_matrices_are_orthonormal(a, by_rules_of_tpus):
    by_rules_of_tpus("svd")
    u, s, vh = run(lambda a: linalg.svd(a, full=True, vectors=True), a)
    assert_orthonormal(u)
    assert_orthonormal(vh)
    assert_close((u[:, : len(s)] * s) @ vh, a)
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


@pytest.mark.parametrize(
    ("shape", "dtype"), [*zip([(4, 4), (5, 3), (3, 5), (2, 3, 6, 4)], DTYPES[::-1], strict=True)]
)
def test_columns_are_exchanged_as_lapack_does(shape, dtype, by_rules_of_tpus):
    by_rules_of_tpus("geqp3")
    a = numbers(shape, dtype)
    factors, order, taus = run(linalg.geqp3, a)
    for i in np.ndindex(shape[:-2]):
        (raw, scales), _, places = scipy.linalg.qr(a[i], mode="raw", pivoting=True)
        assert_close(factors[i], raw)
        assert_close(taus[i], scales)
        assert (order[i] == places).all()


def test_columns_of_zeros_are_reflected_nowhere(by_rules_of_tpus):
    by_rules_of_tpus("geqp3")
    a = np.diag([2.0, 0.0, 0.0])
    factors, order, taus = run(linalg.geqp3, a)
    assert (factors == a).all() and (order == [0, 1, 2]).all() and (taus == 0).all()


@pytest.mark.parametrize(
    ("shape", "dtype"), [*zip([(5, 3), (4, 4), (2, 6, 2), (1, 1)], DTYPES, strict=True)]
)
def test_products_of_reflections(shape, dtype, by_rules_of_tpus):
    by_rules_of_tpus("ormqr")
    a, m = numbers(shape, dtype), shape[-2]
    raw, taus = run(linalg.geqrf, a)
    taus = taus * (np.arange(taus.shape[-1]) != 1)  # of which one is no reflection
    whole = np.concatenate([raw, np.zeros((*shape[:-1], m - shape[-1]), dtype)], -1)
    q = run(linalg.householder_product, whole, taus)
    c = numbers((*shape[:-1], m), dtype, 1)
    sides = [(left, transpose) for left in (True, False) for transpose in (True, False)]

    def products(*xs):
        return [linalg.ormqr(*xs, left=left, transpose=transpose) for left, transpose in sides]

    for (left, transpose), out in zip(sides, run(products, raw, taus, c), strict=True):
        factor = adjoint(q) if transpose else q
        assert_close(out, factor @ c if left else c @ factor)


def matrix_of(dl, d, du):
    n = d.shape[-1]
    a = np.zeros((*d.shape, n), d.dtype)
    for i in range(n):
        a[..., i, i] = d[..., i]
        if i:
            a[..., i, i - 1], a[..., i - 1, i] = dl[..., i], du[..., i - 1]
    return a


@pytest.mark.parametrize(
    ("shape", "dtype"), [*zip([(7,), (2, 3, 5), (2,), (1,)], DTYPES[::-1], strict=True)]
)
def test_tridiagonal_systems_by_elimination(shape, dtype, by_rules_of_tpus):
    by_rules_of_tpus("tridiagonal_solve")
    dl, d, du = (numbers(shape, dtype, i) for i in range(3))
    b = numbers((*shape, 2), dtype, 3)
    for first in (d[..., 0], 0 * d[..., 0] if shape[-1] > 1 else d[..., 0]):  # needs an exchange
        d[..., 0] = first
        a = matrix_of(dl, d, du)
        x = run(lambda *xs: linalg.tridiagonal_solve(*xs, perturbed=False), dl, d, du, b)
        assert_close(x, np.linalg.solve(a, b), 10 * np.linalg.cond(a).max())


def test_singular_tridiagonal_systems(by_rules_of_tpus):
    by_rules_of_tpus("tridiagonal_solve")
    d = np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]])
    beside, b = np.ones((2, 3)), np.ones((2, 3, 1))
    beside[0, 2] = d[0, 2] = 0

    def solved(perturbed):
        return run(
            lambda *xs: linalg.tridiagonal_solve(*xs, perturbed=perturbed), beside, d, beside, b
        )

    x = solved(False)
    assert np.isnan(x[0]).all() and np.isfinite(x[1]).all()
    x = solved(True)
    assert np.isfinite(x).all() and np.abs(x[0]).max() > 1e10


def test_what_xla_writes_out_is_what_the_rules_expect(by_rules_of_tpus):
    """It does so on CPUs as well; LuDecomposition alone is known to TPUs only."""
    by_rules_of_tpus("geqrf", "householder_product", "eigh")
    a = numbers((2, 4, 3), np.complex64)
    q, r = run(lambda a: linalg.qr(a, full=True, pivoting=False), a)
    assert_orthonormal(q)
    assert_close(q @ r, a)
    assert (np.tril(r, -1) == 0).all()
    s = numbers((2, 4, 4), np.float32)
    s = s + adjoint(s)
    given = np.tril(s) + 7 * np.triu(np.ones((4, 4), np.float32), 1)  # of which one half is read
    v, w = run(lambda a: linalg.eigh(a, vectors=True), given)
    assert_close((v * w[..., None, :]) @ adjoint(v), s)
    assert_close(w, np.linalg.eigvalsh(s))


# ---- what derivatives take ----------------------------------------------------------------------


def operations(platform, f, *args):
    """How often each operation stands in ``f`` as it is lowered for ``platform``."""
    text = phalanx.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text()
    return Counter(re.findall(r"(?:stablehlo\.|chlo\.|@)(\w+)", text)), text


SQUARE, TALL, WIDE = (np.ones(shape, np.float32) for shape in ((4, 4), (6, 4), (4, 6)))


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize(
    ("f", "a", "products", "systems"),
    [
        (lambda a: jnp.linalg.slogdet(a)[1], SQUARE, 0, 2),
        (lambda a: jnp.linalg.cholesky(a).sum(), SQUARE, 1, 2),
        (lambda a: sum(x.sum() for x in jnp.linalg.qr(a)), TALL, 3, 1),
        (lambda a: sum(x.sum() for x in jnp.linalg.qr(a, mode="complete")), TALL, 3, 1),
        (lambda a: sum(x.sum() for x in jnp.linalg.qr(a)), WIDE, 4, 1),
    ],
    ids=["slogdet", "cholesky", "qr", "qr, complete", "qr, wide"],
)
def test_derivatives_of_factorizations_take_few_products(platform, f, a, products, systems):
    found, _ = operations(platform, phalanx.grad(f), a)
    assert (found["dot_general"], found["triangular_solve"]) == (products, systems)
    assert not found["conj"]
    assert found["cusolver_getrf_ffi"] + found["LuDecomposition"] <= 1


def test_all_points_are_whitened_by_one_factor():
    def density(x, cov):
        return stats.multivariate_normal.logpdf(x, np.zeros(4, np.float32), cov).sum()

    points = np.ones((50, 4), np.float32)
    found, text = operations("cuda", phalanx.grad(density, (0, 1)), points, SQUARE)
    assert found["triangular_solve"] == 4 and "50x4x4" not in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_factors_and_systems_by_xla_itself(by_rules_of_tpus, dtype, lower):
    by_rules_of_tpus("cholesky", "triangular_solve")
    x = numbers((2, 4, 4), dtype)
    factor = run(jnp.linalg.cholesky, x @ adjoint(x) + 4 * np.eye(4, dtype=dtype))
    assert_close(factor @ adjoint(factor), x @ adjoint(x) + 4 * np.eye(4, dtype=dtype))
    assert not np.triu(factor, 1).any()
    a = factor if lower else adjoint(factor)
    for trans, of in enumerate((a, np.swapaxes(a, -1, -2), adjoint(a))):
        solve = functools.partial(phalanx.scipy.linalg.solve_triangular, trans=trans, lower=lower)
        assert_close(of @ run(solve, a, x), x)
