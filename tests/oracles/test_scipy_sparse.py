"""Iterative solvers against NumPy, and their derivatives against finite differences."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.scipy.sparse.linalg as sparse
from phalanx.laws import check_grads

N = 12
SOURCE = np.random.default_rng(0)


def matrix(dtype, definite):
    a = SOURCE.normal(size=(N, N)) + (1j * SOURCE.normal(size=(N, N)) if dtype == "c8" else 0)
    a = a @ a.conj().T + N * np.eye(N) if definite else a + 2 * N**0.5 * np.eye(N)
    return a.astype(dtype), SOURCE.normal(size=N).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_solutions(dtype):
    a, b = matrix(dtype, True)
    for solve in (sparse.cg, sparse.bicgstab, sparse.gmres):
        np.testing.assert_allclose(a @ solve(a, b, tol=1e-6)[0], b, rtol=1e-4, atol=1e-4)
    a, b = matrix(dtype, False)
    for options in ({}, {"restart": 4}, {"M": np.linalg.inv(a)}, {"x0": b}):
        np.testing.assert_allclose(a @ sparse.gmres(a, b, **options)[0], b, rtol=1e-3, atol=1e-3)
    x, none = sparse.bicgstab(a, b, tol=1e-6, M=lambda v: v / 4)
    np.testing.assert_allclose(a @ x, b, rtol=1e-4, atol=1e-4)
    assert none is None
    assert [sparse.gmres(a, b, x0=v)[1].item() for v in (b, np.nan * b)] == [0, -1]


@pytest.mark.parametrize("solve", [sparse.cg, sparse.bicgstab, sparse.gmres])
def test_small_cases(solve):
    np.testing.assert_array_equal(solve(np.eye(3), np.zeros(3))[0], np.zeros(3))
    np.testing.assert_array_equal(solve(np.eye(3), np.arange(3))[0], np.arange(3))
    assert solve(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)
    np.testing.assert_array_equal(solve(2 * np.eye(3), np.ones(3), maxiter=0)[0], np.zeros(3))


def test_vectors_are_trees():
    x, _ = sparse.cg(
        lambda t: {"a": 2 * t["a"], "b": 4 * t["b"]}, {"a": jnp.ones(2), "b": jnp.ones((2, 2))}
    )
    np.testing.assert_allclose(x["a"], [0.5, 0.5])
    np.testing.assert_allclose(x["b"], np.full((2, 2), 0.25))


def test_derivatives_and_lanes():
    a, b = matrix("f4", True)
    a, b = a[:4, :4] / 4, b[:4]
    check_grads(lambda a, b: sparse.cg((a + a.T) / 2, b, tol=1e-7)[0], (a, b), order=1)
    slope = phalanx.grad(lambda b: sparse.gmres(a, b)[0].sum())(b)
    np.testing.assert_allclose(slope, np.linalg.solve(a.T, np.ones(4)), rtol=1e-3)
    lanes = phalanx.vmap(lambda b: sparse.bicgstab(a, b, tol=1e-6)[0])(np.stack([b, 2 * b]))
    np.testing.assert_allclose(lanes[1], np.linalg.solve(a, 2 * b), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("solve", [sparse.cg, sparse.bicgstab, sparse.gmres])
@pytest.mark.parametrize("kind", ["BCOO", "BCSR", "COO", "CSR", "CSC"])
def test_sparse_matrices_are_operators(solve, kind):
    made = getattr(phalanx.experimental.sparse, kind).fromdense
    dense, b = np.array([[4, 1, 0], [1, 3, 0], [0, 0, 2]], np.float32), np.ones(3, np.float32)
    inverse = np.diag(1 / np.diag(dense))
    found = phalanx.jit(lambda A, M: solve(A, b, M=M)[0])(made(dense), made(inverse))
    np.testing.assert_allclose(found, np.linalg.solve(dense, b), rtol=1e-4)


def test_solutions_have_slopes_by_entries_of_a_sparse_matrix():
    dense, b = np.array([[4, 1], [1, 3]], np.float32), np.ones(2, np.float32)

    def total(a):
        return sparse.bicgstab(a, b, tol=1e-7)[0].sum()

    a = phalanx.experimental.sparse.BCOO.fromdense(dense)
    found = phalanx.grad(lambda data: total(type(a)((data, a.indices), shape=a.shape)))(a.data)
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(found, -np.outer(inverse.T @ b, inverse @ b).ravel(), rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sparse.cg(np.ones((2, 3)), np.ones(3)), TypeError, "A must be a square matrix"),
        (lambda: sparse.cg(lambda x: x[:1], np.ones(3)), TypeError, "must be like b"),
        (lambda: sparse.cg(np.eye(3), np.ones(3), np.ones(2)), TypeError, "must be like b"),
        (lambda: sparse.gmres(np.eye(3), np.ones(3), solve_method="x"), ValueError, "'batched'"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
