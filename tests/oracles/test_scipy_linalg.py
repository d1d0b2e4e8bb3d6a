"""``phalanx.scipy.linalg`` and the Fourier and cosine transforms, against NumPy and SciPy."""

import itertools

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

import phalanx
import phalanx.numpy as jnp
from phalanx.base.errors import ShapeError
from phalanx.scipy import fft, linalg
from tests.oracles.linear import close, drawn, exact

pytestmark = pytest.mark.usefixtures("x64")

KINDS = [np.float32, np.float64, np.complex64, np.complex128]


def positive(n, kind, seed=0):
    x = drawn((n, n), kind, seed)
    return x @ x.conj().T + np.eye(n, dtype=kind)


def check(cases):
    """Pairs of ours and theirs with operands: all of ours in one program."""
    results = phalanx.jit(lambda xs: [ours(*x) for (ours, _, _), x in zip(cases, xs, strict=True)])(
        [operands for _, _, operands in cases]
    )
    for (_, theirs, operands), out in zip(cases, results, strict=True):
        expected = theirs(*[exact(x) for x in operands])
        close(phalanx.tree.leaves(out), phalanx.tree.leaves(expected), operands)


def same(name, *args, **options):
    """A case for the function ``name`` of both libraries."""
    ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    return lambda *xs: ours(*xs, *args, **options), lambda *xs: theirs(*xs, *args, **options)


def test_systems():
    cases = []
    for kind, trans, lower in zip(KINDS, (0, 1, 2, "C"), (False, True, False, True), strict=True):
        a, b = positive(4, kind), drawn((4, 2), kind, 1)
        cases += [
            (*same("solve_triangular", trans=trans, lower=lower), (a, b)),
            (*same("cholesky", lower=lower), (a,)),
            (*same("solve", assume_a="pos", lower=lower), (a, b[:, 0])),
            (*same("lu"), (drawn((4, 3), kind),)),
            (*same("lu", permute_l=True), (drawn((2, 4), kind),)),
            (
                lambda a, b, lower=lower: linalg.cho_solve(linalg.cho_factor(a, lower), b),
                np.linalg.solve,
                (a, b),
            ),
        ]
        for t in (0, 1, 2):
            x = drawn((4, 4), kind)
            cases.append(
                (
                    lambda a, b, t=t: linalg.lu_solve(linalg.lu_factor(a), b, t),
                    lambda a, b, t=t: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, t),
                    (x, b),
                )
            )
    check(cases)


def test_vectors_with_one_for_each_matrix():
    definite = np.stack([positive(3, np.float64, seed) for seed in (0, 1)])
    b = drawn((2, 3), np.float64, 2)
    for solve, of in (
        (lambda a, b: linalg.solve_triangular(a, b, lower=True), np.tril),
        (lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), np.array),
        (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), np.array),
        (lambda a, b: linalg.solve(a, b, assume_a="pos"), np.array),
    ):
        expected = np.stack([np.linalg.solve(of(a), v) for a, v in zip(definite, b, strict=True)])
        np.testing.assert_allclose(solve(definite, b), expected, rtol=1e-9)
        with pytest.raises(ShapeError, match="b must be"):
            solve(definite, b[:, :2])


def test_eigenvalues():
    cases = []
    for kind, type in zip(KINDS, (1, 2, 3, 1), strict=True):
        a, b = positive(4, kind), positive(4, kind, 1)
        cases += [
            (*same("eigh", eigvals_only=True, type=type), (a, b)),
            (*same("eigh", eigvals_only=True, lower=False), (a,)),
        ]
    d, e = drawn((5,), np.float64), drawn((4,), np.float64)
    cases += [
        (*same("eigh_tridiagonal", eigvals_only=True), (d, e)),
        (*same("eigh_tridiagonal", eigvals_only=True, select="i", select_range=(1, 3)), (d, e)),
    ]
    check(cases)
    for type in (1, 2, 3):
        w, v = (np.asarray(x) for x in linalg.eigh(a, b, type=type))
        left, right = {1: (a, b), 2: (a @ b, np.eye(4)), 3: (b @ a, np.eye(4))}[type]
        close([left @ v], [right @ v * w], (a,))


def test_forms_of_batches():
    a = drawn((2, 3, 4, 4), KINDS[0])
    pairs = [scipy.linalg.schur(exact(m)) for m in a.reshape(6, 4, 4)]
    t, z = (np.float32(x).reshape(a.shape) for x in zip(*pairs, strict=True))
    t, z = map(np.asarray, linalg.rsf2csf(t, z))
    close([z @ t @ z.conj().swapaxes(-1, -2), np.tril(t, -1)], [exact(a), 0 * exact(a)], (a,))


def test_forms():
    for kind in KINDS:
        a = drawn((4, 4), kind)
        h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
        close([q @ h @ q.conj().T, np.tril(h, -2)], [exact(a), np.zeros((4, 4))], (a,))
        t, z = map(np.asarray, linalg.schur(a, output="complex"))
        close([z @ t @ z.conj().T, np.tril(t, -1)], [exact(a), np.zeros((4, 4))], (a,))
        real = linalg.schur(a)
        close(linalg.rsf2csf(*real), scipy.linalg.rsf2csf(*map(exact, real)), (a,))
    cases = []
    for kind, mode in zip(KINDS, ("left", "right", "left", "right"), strict=True):
        a, c = drawn((4, 3), kind), drawn((3, 4) if mode == "right" else (3, 2), kind, 1)
        cases += [
            (*same("qr_multiply", mode), (a, c)),
            (*same("qr_multiply", mode, pivoting=True, conjugate=True), (a, c)),
            (*same("qr", mode="economic", pivoting=True), (a,)),
            (*same("polar"), (a,)),
            (*same("polar", side="left"), (a,)),
        ]
    check(cases)


def test_functions_of_matrices():
    cases = []
    for kind, scale in zip(KINDS[1:3], (0.1, 30), strict=True):
        a, e = drawn((4, 4), kind), drawn((4, 4), kind, 1)
        cases += [
            (*same("expm"), (a * scale,)),
            (linalg.sqrtm, lambda a: scipy.linalg.sqrtm(a.astype(complex)), (positive(4, kind),)),
            (*same("solve_sylvester"), (a, e, drawn((4, 4), kind, 2))),
            (
                lambda a: linalg.funm(a, jnp.sin),
                lambda a: scipy.linalg.funm(a.astype(complex), np.sin),
                (positive(4, kind),),
            ),
        ]
    a, b, c = (drawn(s, np.float64, i) for i, s in enumerate([(3, 3), (2, 2), (3, 2)]))
    ours = lambda a, b, c: linalg.solve_sylvester(a, b, c, method="eigen")  # noqa: E731
    cases.append((ours, scipy.linalg.solve_sylvester, (a, b, c)))
    check(cases)
    batch = np.stack([np.eye(3), 50 * np.eye(3)])
    close([linalg.expm(batch)], [np.stack(list(map(scipy.linalg.expm, batch)))], (batch,))


def test_the_derivative_of_the_exponential():
    a, e = drawn((3, 3), np.float64), drawn((3, 3), np.float64, 1)
    _, slope = phalanx.jvp(linalg.expm, (a,), (e,))
    expected = scipy.linalg.expm_frechet(a, e, compute_expm=False)
    close([slope, linalg.expm_frechet(a, e)[1]], [expected] * 2, (a,))
    back = phalanx.grad(lambda a: jnp.sum(linalg.expm(a) * e))(a)
    close([back], [scipy.linalg.expm_frechet(a.T, e, compute_expm=False)], (a,))


BY_VECTOR = {
    "block_diag": [((2, 3), (1, 2)), ((3,), ())],
    "circulant": [((4,),)],
    "companion": [((4,),)],
    "fiedler": [((4,),)],
    "fiedler_companion": [((2,),), ((3,),), ((6,),), ((7,),)],
    "hankel": [((4,),), ((3,), (4,))],
    "leslie": [((4,), (3,))],
    "toeplitz": [((4,),), ((3,), (4,))],
}
BY_SIZE = ["hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal", "dft"]


def test_structured_matrices():
    kind = np.float64
    cases = [
        (*same(name), tuple(drawn(s, kind, i) for i, s in enumerate(shapes)))
        for name, examples in BY_VECTOR.items()
        for shapes in examples
    ]
    a = drawn((3,), kind)
    for mode, n in itertools.product(("full", "valid", "same"), (2, 3, 5)):
        cases.append((*same("convolution_matrix", n, mode), (a,)))
    check(cases)
    for name in BY_SIZE:
        np.testing.assert_allclose(
            getattr(linalg, name)(4), getattr(scipy.linalg, name)(4), rtol=1e-6
        )
    for kind in ("lower", "upper"):
        np.testing.assert_array_equal(linalg.invpascal(5, kind), scipy.linalg.invpascal(5, kind))
    np.testing.assert_allclose(linalg.helmert(4, full=True), scipy.linalg.helmert(4, full=True))


# ---- transforms -----------------------------------------------------------------------------

NORMS = (None, "backward", "ortho", "forward")


@pytest.mark.parametrize("error", [TypeError, ValueError])  # NumPy's, and that of the field
@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfft2", "rfftn"])
def test_transforms_of_real_numbers_refuse_complex_ones(name, error):
    for f in (getattr(jnp.fft, name), phalanx.jit(getattr(jnp.fft, name))):
        with pytest.raises(error, match=rf"{name}: a real array is needed, got c64\[4,4\]"):
            f(np.ones((4, 4), np.complex64))


def test_fourier_transforms():
    cases = []
    for i, name in enumerate(["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]):
        kind = np.float64 if name in ("rfft", "ihfft") else np.complex128
        for n, norm in zip((None, 3, 5, 8), NORMS, strict=True):
            ours, theirs = getattr(jnp.fft, name), getattr(np.fft, name)
            options = {"n": n, "norm": norm, "axis": i % 2}
            cases.append(
                (
                    lambda x, f=ours, o=options: f(x, **o),
                    lambda x, f=theirs, o=options: f(x, **o),
                    (drawn((4, 5), kind),),
                )
            )
    for name in ["fftn", "ifftn", "rfftn", "irfftn"]:
        kind = np.float32 if name == "rfftn" else np.complex64
        for s, axes, norm in (
            (None, None, "ortho"),
            ((3, 4), (1, 3), None),
            ((2, 6, 2), (3, 0, 1), "forward"),
        ):
            options = {"s": s, "axes": axes, "norm": norm}
            ours, theirs = getattr(jnp.fft, name), getattr(np.fft, name)
            cases.append(
                (
                    lambda x, f=ours, o=options: f(x, **o),
                    lambda x, f=theirs, o=options: f(x, **o),
                    (drawn((2, 3, 2, 4), kind),),
                )
            )
    check(cases)
    for n in (0, 1, 4, 5):
        if n:
            np.testing.assert_allclose(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
            np.testing.assert_allclose(jnp.fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5))
        for name in ("fftshift", "ifftshift"):
            x = np.arange(3 * n).reshape(3, n)
            np.testing.assert_array_equal(getattr(jnp.fft, name)(x), getattr(np.fft, name)(x))


def test_cosine_transforms():
    cases = []
    for name, norm, n in itertools.product(("dct", "idct"), (None, "ortho"), (None, 1, 2, 5, 6)):
        ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
        options = {"norm": norm, "n": n, "axis": 0}
        cases.append(
            (
                lambda x, f=ours, o=options: f(x, **o),
                lambda x, f=theirs, o=options: f(x, **o),
                (drawn((4, 2), np.float64),),
            )
        )
    for name in ("dctn", "idctn"):
        for options in ({}, {"axes": (0, 2), "norm": "ortho"}, {"s": (3, 5)}):
            ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
            cases.append(
                (
                    lambda x, f=ours, o=options: f(x, **o),
                    lambda x, f=theirs, o=options: f(x, **o),
                    (drawn((4, 3, 2), np.float32),),
                )
            )
    check(cases)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_a_matrix_of_the_fourier_transform_is_complex(dtype):
    with pytest.raises(ValueError, match=f"dft: dtype must be complex, got {np.dtype(dtype)}"):
        linalg.dft(3, dtype=dtype)
