"""What mistakes with matrices, transforms, distributions and keys get, word for word."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.scipy import linalg, signal, stats
from tests.golden.mistakes import Mistakes

SQUARE, WIDE = np.eye(3, dtype=np.float32), np.ones((2, 3), np.float32)
mistake = Mistakes(__file__)


@mistake
def cholesky_of_a_wide_matrix():
    jnp.linalg.cholesky(WIDE)


@mistake
def inverse_of_a_vector():
    jnp.linalg.inv(SQUARE[0])


@mistake
def solve_with_too_many_rows():
    jnp.linalg.solve(SQUARE, np.ones((4, 2), np.float32))


@mistake
def median_of_complex_numbers():
    jnp.median(SQUARE * 1j)


@mistake
def qr_in_an_unknown_mode():
    jnp.linalg.qr(SQUARE, mode="economic")


@mistake
def norm_of_an_unknown_order():
    jnp.linalg.norm(SQUARE, ord="nuclear")


@mistake
def eigenvalues_of_a_wide_matrix_in_jit():
    phalanx.jit(lambda x: jnp.linalg.eigh(x))(WIDE)


@mistake
def triangular_solve_of_other_shapes():
    linalg.solve_triangular(SQUARE, np.ones(4, np.float32))


@mistake
def sylvester_of_other_shapes():
    linalg.solve_sylvester(SQUARE, SQUARE, WIDE)


@mistake
def fft_over_an_axis_that_is_not_there():
    jnp.fft.fft(SQUARE, axis=2)


@mistake
def fft_of_no_points():
    jnp.fft.fft(SQUARE, n=0)


@mistake
def window_of_a_negative_size():
    lax.reduce_window(SQUARE, 0.0, lax.add, (-1, 2), (1, 1), "VALID")


@mistake
def groups_that_are_no_integers():
    lax.ragged_dot(SQUARE, np.ones((2, 3, 3), np.float32), np.ones(2, np.float32))


@mistake
def root_without_a_solver():
    lax.custom_root(lambda x: x * x - 2, 1.0, None, None)


@mistake
def segments_that_are_no_integers():
    phalanx.ops.segment_sum(SQUARE, np.ones(3, np.float32), 2)


@mistake
def segments_of_another_length():
    phalanx.ops.segment_sum(SQUARE, np.ones(4, np.int32), 2)


@mistake
def density_of_a_string():
    stats.norm.pdf("one")


@mistake
def density_of_other_shapes():
    stats.norm.logpdf(np.ones(3, np.float32), np.ones(4, np.float32))


@mistake
def convolution_of_matrices():
    signal.convolve(SQUARE, SQUARE[0])


@mistake
def key_of_an_unknown_generator():
    random.key(0, impl="mersenne")


@mistake
def covariance_that_is_no_matrix():
    random.multivariate_normal(random.key(0), np.zeros(3), np.ones(3))


@mistake
def polynomial_of_a_matrix():
    jnp.roots(SQUARE)


def test_messages(golden):
    golden(mistake.texts())
