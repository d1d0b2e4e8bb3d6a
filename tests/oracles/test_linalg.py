"""Linear algebra against NumPy and SciPy in float64, and against what defines a factorization."""

import itertools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.oracles.linear import close, drawn, exact

pytestmark = pytest.mark.usefixtures("x64")

KINDS = [np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(4, 4), (2, 5, 3), (2, 1, 3, 5), (1, 1)]
SQUARE = [(4, 4), (2, 3, 3), (2, 1, 1, 1)]
EMPTY = [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 3, 3)]


def positive(x):
    return x @ np.swapaxes(x.conj(), -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


def adjoint(x):
    return np.swapaxes(x.conj(), -1, -2)


def check(function, expected, operands):
    """``function`` of each of the operands, in one program, against ``expected`` of each alone."""
    results = phalanx.jit(lambda xs: [function(*x) for x in xs])(operands)
    for x, out in zip(operands, results, strict=True):
        wanted = expected(*[exact(a) for a in x])
        close(phalanx.tree.leaves(out), phalanx.tree.leaves(wanted), x)


def ones(shapes, make=lambda x: x):
    """Tuples of one operand each, of all shapes and of all dtypes."""
    pairs = zip(itertools.cycle(shapes), KINDS, strict=False)
    return [(make(drawn(shape, kind)),) for shape, kind in pairs]


ONE = {
    "cholesky": (np.linalg.cholesky, ones(SQUARE, positive)),
    "inv": (np.linalg.inv, ones(SQUARE)),
    "det": (np.linalg.det, ones([*SQUARE, (5, 5)])),
    "slogdet": (np.linalg.slogdet, ones([*SQUARE, (5, 5)])),
    "pinv": (np.linalg.pinv, ones(SHAPES)),
    "svdvals": (lambda x: np.linalg.svd(x, compute_uv=False), ones(SHAPES)),
    "eigvalsh": (np.linalg.eigvalsh, ones(SQUARE, positive)),
    "cond": (np.linalg.cond, ones(SHAPES)),
    "matrix_rank": (np.linalg.matrix_rank, ones(SHAPES)),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    expected, operands = ONE[name]
    check(getattr(jnp.linalg, name), expected, operands)


def test_systems():
    pairs = [
        (drawn(a, kind), drawn(b, kind, 1))
        for kind, a, b in zip(
            KINDS,
            [(3, 3), (2, 3, 3), (3, 3), (2, 1, 3, 3)],
            [(3, 2), (3, 2), (2, 3, 1), (4, 3, 2)],
            strict=True,
        )
    ]
    check(jnp.linalg.solve, np.linalg.solve, pairs)
    vectors = [(drawn((2, 3, 3), kind), drawn((3,), kind, 1)) for kind in KINDS]
    check(jnp.linalg.solve, lambda a, b: np.linalg.solve(a, b[:, None])[..., 0], vectors)
    tall = [(x, drawn((len(x), 2), x.dtype, 1)) for (x,) in ones([(5, 3), (2, 4)])]
    check(lambda a, b: jnp.linalg.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b)[0], tall)


def rebuilt(function, build, operands):
    """What ``build`` makes of a factorization is what was factorized."""
    check(lambda x: build(function(x)), lambda x: x, operands)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_triangular_systems_of_half_precision(dtype):
    a, b = drawn((4, 4), np.float32), drawn((4, 3), np.float32)
    a, b = jnp.asarray(a + 4 * np.eye(4), dtype), jnp.asarray(b, dtype)
    x = lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    assert x.dtype == dtype
    wanted = np.linalg.solve(np.tril(exact(a)), exact(b))
    np.testing.assert_allclose(exact(x), wanted, rtol=float(jnp.finfo(dtype).eps), atol=1e-3)


def test_factorizations_multiply_to_the_matrix():
    rebuilt(jnp.linalg.qr, lambda out: out.Q @ out.R, ones(SHAPES))
    rebuilt(lambda x: jnp.linalg.qr(x, "complete"), lambda out: out[0] @ out[1], ones(SHAPES))
    for algorithm in (None, lax.linalg.SvdAlgorithm.QR):
        rebuilt(
            lambda x, a=algorithm: lax.linalg.svd(x, full_matrices=False, algorithm=a),
            lambda out: out[0] * out[1][..., None, :] @ out[2],
            ones(SHAPES),
        )
    rebuilt(
        jnp.linalg.eigh,
        lambda out: out[1] * out[0][..., None, :] @ jnp.conj(out[1].mT),
        ones(SQUARE, positive),
    )
    square = [(x.astype(np.result_type(x, np.complex64)),) for (x,) in ones(SQUARE)]
    rebuilt(
        jnp.linalg.eig, lambda out: out[1] * out[0][..., None, :] @ jnp.linalg.inv(out[1]), square
    )
    rebuilt(lax.linalg.schur, lambda out: out[1] @ out[0] @ jnp.conj(out[1].mT), ones(SQUARE))


def permuted(out):
    factors, _, order = out
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    left = jnp.tril(factors[..., :least], -1) + jnp.eye(rows, least, dtype=factors.dtype)
    return left @ jnp.triu(factors[..., :least, :]), order


def test_lu():
    operands = ones(SHAPES)
    results = phalanx.jit(lambda xs: [permuted(lax.linalg.lu(x)) for (x,) in xs])(operands)
    for (x,), (product, order) in zip(operands, results, strict=True):
        rows = np.take_along_axis(x, np.asarray(order)[..., None], -2)
        close([product], [exact(rows)], (x,))


def test_orthonormal_columns():
    for name in ("qr", "svd"):
        operands = ones(SHAPES)
        function = getattr(jnp.linalg, name)
        results = phalanx.jit(lambda xs, f=function: [f(*x)[0] for x in xs])(operands)
        for q in map(np.asarray, results):
            one = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2))
            close([adjoint(q) @ q], [one], (q,))


def test_pivoted_qr():
    operands = ones(SHAPES)
    results = phalanx.jit(lambda xs: [lax.linalg.qr(*x, pivoting=True) for x in xs])(operands)
    for (x,), (q, r, order) in zip(operands, results, strict=True):
        columns = np.take_along_axis(exact(x), np.asarray(order)[..., None, :], -1)
        close([np.asarray(q) @ np.asarray(r)], [columns], (x,))
        falling = np.abs(np.diagonal(np.asarray(r), axis1=-2, axis2=-1))
        assert (np.diff(falling) <= 1e-6).all()


def test_tridiagonal_systems():
    for kind in KINDS:
        dl, d, du, b = (drawn(s, kind, i) for i, s in enumerate([(2, 4)] * 3 + [(2, 4, 3)]))
        x = lax.linalg.tridiagonal_solve(dl, d, du, b)
        for i in range(2):
            matrix = np.diag(exact(d[i])) + np.diag(exact(dl[i, 1:]), -1)
            matrix += np.diag(exact(du[i, :-1]), 1)
            close([matrix @ np.asarray(x[i])], [exact(b[i])], (d, x))


# ---- singular, not finite, empty ------------------------------------------------------------


@pytest.mark.parametrize("derive", [phalanx.grad, lambda f: lambda x: phalanx.jvp(f, (x,), (x,))])
@pytest.mark.parametrize(("unknowns", "rows"), [(3, 4), (1, 3)])
def test_derivatives_of_systems_that_do_not_fit_are_refused(derive, unknowns, rows):
    with pytest.raises(ValueError, match="solve: b must have as many rows"):
        derive(lambda a: jnp.linalg.solve(a, np.ones(rows)).sum())(np.eye(unknowns))


def test_singular_and_non_finite_matrices_give_no_error():
    singular = np.ones((4, 4))
    broken = np.full((4, 4), np.nan)
    assert np.isnan(jnp.linalg.cholesky(-np.eye(3))).any()
    assert not np.isfinite(jnp.linalg.inv(singular)).all()
    assert jnp.linalg.det(singular) == 0
    assert [*map(float, jnp.linalg.slogdet(np.zeros((3, 3))))] == [0, -np.inf]
    assert not np.isfinite(jnp.linalg.solve(singular, np.ones(4))).all()
    for function in (jnp.linalg.svdvals, jnp.linalg.eigvalsh, jnp.linalg.inv, jnp.linalg.det):
        assert np.isnan(function(broken)).all(), function


def test_one_broken_matrix_leaves_the_others_of_its_batch():
    batch = np.stack([np.eye(3), -np.eye(3), 4 * np.eye(3)])
    factors = np.asarray(jnp.linalg.cholesky(batch))
    assert np.isnan(factors[1]).any()
    np.testing.assert_array_equal(factors[[0, 2]], [np.eye(3), 2 * np.eye(3)])


def test_matrices_without_elements():
    operands = [np.zeros(s) for s in EMPTY]
    square = [x for x in operands if x.shape[-1] == x.shape[-2]]

    def everything():
        return [
            *[jnp.linalg.qr(x, mode) for x in operands for mode in ("reduced", "complete")],
            *[jnp.linalg.svd(x, full) for x in operands for full in (False, True)],
            *[getattr(jnp.linalg, n)(x) for x in square for n in ("det", "inv", "eigh", "eig")],
            *[jnp.linalg.slogdet(x) for x in square],
        ]

    def expected():
        return [
            *[np.linalg.qr(x, mode) for x in operands for mode in ("reduced", "complete")],
            *[np.linalg.svd(x, full) for x in operands for full in (False, True)],
            *[getattr(np.linalg, n)(x) for x in square for n in ("det", "inv", "eigh", "eig")],
            *[np.linalg.slogdet(x) for x in square],
        ]

    for ours, theirs in zip(phalanx.jit(everything)(), expected(), strict=True):
        pairs = zip(phalanx.tree.leaves(ours), phalanx.tree.leaves(theirs), strict=True)
        assert all(x.shape == y.shape and np.allclose(x, y) for x, y in pairs)
