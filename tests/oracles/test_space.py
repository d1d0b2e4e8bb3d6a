"""Rotations of space, values between points of a grid, nearest points: as SciPy has them."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.cluster.vq import vq as scipy_vq
from scipy.interpolate import RegularGridInterpolator as ScipyGrid
from scipy.spatial.transform import Rotation as ScipyRotation
from scipy.spatial.transform import Slerp as ScipySlerp

import phalanx
import phalanx.numpy as jnp
from phalanx.scipy.cluster.vq import vq
from phalanx.scipy.interpolate import RegularGridInterpolator
from phalanx.scipy.spatial.transform import Rotation, Slerp
from tests.compare import close as close_within

close = partial(close_within, atol=2e-6)

SOME = ScipyRotation.random(6, random_state=0)
OTHER = ScipyRotation.random(6, random_state=1)
VECTORS = np.random.default_rng(0).normal(size=(6, 3))


def given(rotation):
    return Rotation.from_quat(rotation.as_quat())


@pytest.mark.parametrize("form", ["matrix", "rotvec", "mrp"])
def test_forms_of_rotations(form):
    expected = getattr(SOME, f"as_{form}")()
    close(getattr(given(SOME), f"as_{form}")(), expected)
    back = getattr(Rotation, f"from_{form}")(expected)
    close(back.as_quat(canonical=True), SOME.as_quat(canonical=True))
    assert getattr(Rotation, f"from_{form}")(expected[0]).single


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "XYX", "YXZ"])
def test_angles_around_three_axes(seq):
    expected = SOME.as_euler(seq, degrees=True)
    close(given(SOME).as_euler(seq, degrees=True), expected, atol=1e-3)
    close(Rotation.from_euler(seq, expected, degrees=True).as_matrix(), SOME.as_matrix())


def test_angles_where_two_axes_coincide():
    turn = ScipyRotation.from_euler("z", 0.3)
    for seq in ("zxz", "ZXZ"):
        found = Rotation.from_euler(seq, given(turn).as_euler(seq))
        close(found.as_matrix(), turn.as_matrix())


def test_angles_around_fewer_axes():
    for seq, angles in (("y", 0.3), ("Y", [[0.3], [0.4]]), ("y", [0.3]), ("xz", [[0.3, 0.4]])):
        expected = ScipyRotation.from_euler(seq, angles)
        close(Rotation.from_euler(seq, np.array(angles)).as_matrix(), expected.as_matrix())
    for seq, angles in (("xY", np.zeros(2)), ("xyz", np.zeros(2)), ("w", 0.0)):
        with pytest.raises(ValueError, match=r"the axes"):
            Rotation.from_euler(seq, angles)


def test_what_rotations_do():
    a, b = given(SOME), given(OTHER)
    close(a.apply(VECTORS), SOME.apply(VECTORS))
    close(a.apply(VECTORS[0], inverse=True), SOME.apply(VECTORS[0], inverse=True))
    close((a * b).as_matrix(), (SOME * OTHER).as_matrix())
    close((a[0] * b).inv().as_matrix(), (SOME[0] * OTHER).inv().as_matrix())
    close(a.magnitude(), SOME.magnitude())
    weights = np.arange(1.0, 7)
    close(a.mean(weights).as_matrix(), SOME.mean(weights).as_matrix())
    assert len(Rotation.concatenate([a, b[:2], b[0]])) == 9 and bool(a)
    close(Rotation.identity(2).as_quat(scalar_first=True), [[1, 0, 0, 0]] * 2)
    assert Rotation.random(phalanx.random.key(0), 3).quat.shape == (3, 4)
    two: Any = 2
    for wrong in (lambda: a[0][0], lambda: len(a[0]), lambda: a * two):
        with pytest.raises(TypeError):
            wrong()


def test_rotations_between_rotations():
    times, asked = np.array([0.0, 1, 3, 4, 6, 7]), np.array([0.0, 0.5, 3.0, 5.9, 7.0])
    between = phalanx.jit(lambda t, turns: Slerp.init(t, turns)(asked))(times, given(SOME))
    close(between.as_matrix(), ScipySlerp(times, SOME)(asked).as_matrix())


def test_derivatives_at_no_rotation():
    def moved(vector):
        return Rotation.from_rotvec(vector).apply(jnp.array([1.0, 2.0, 3.0]))

    there = phalanx.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())
    for size in (0.0, 0.02, 0.7):
        close(there(jnp.full(3, size)), np.eye(3))
    crossed = [[0, 3, -2], [-3, 0, 1], [2, -1, 0]]
    close(phalanx.jacobian(moved)(jnp.zeros(3)), crossed)
    lanes = phalanx.vmap(lambda q, v: Rotation.from_quat(q).apply(v))(SOME.as_quat(), VECTORS)
    close(lanes, SOME.apply(VECTORS))


GRID = np.array([0.0, 1, 3]), np.array([-1.0, 0, 1, 2])
VALUES = np.random.default_rng(2).normal(size=(3, 4, 2))
PLACES = np.array([[0.0, -1], [3, 2], [0.4, 0.5], [2.9, -0.2], [1, 0], [-1, 0], [5, 9]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 7.0, None])
def test_values_between_points_of_a_grid(method, fill):
    f = RegularGridInterpolator(GRID, VALUES, method, fill_value=fill)
    expected = ScipyGrid(GRID, VALUES, method, bounds_error=False, fill_value=fill)
    close(phalanx.jit(f)(PLACES), expected(PLACES))
    close(f(PLACES[2]), expected(PLACES[2]))
    close(f(tuple(PLACES.T.reshape(2, 7, 1)), "linear"), expected(PLACES[:, None], "linear"))


def test_values_in_one_dimension():
    f = RegularGridInterpolator((GRID[0],), VALUES[:, 0, 0])
    expected = ScipyGrid((GRID[0],), VALUES[:, 0, 0])
    for x in (np.array([0.5]), np.array([0.5, 2.0]), np.array([[0.5], [2.0]])):
        close(f(x), expected(x))
    slopes = np.diff(VALUES[:, 0, 0]) / np.diff(GRID[0])
    close(phalanx.vmap(phalanx.grad(lambda x: f(x[None])[0]))(jnp.array([0.5, 2.0])), slopes)
    for wrong in (np.zeros((2, 2)), (np.zeros(1), np.zeros(1))):
        with pytest.raises(ValueError, match="RegularGridInterpolator: points"):
            f(wrong)
    refused: list[dict[str, Any]] = [{"method": "cubic"}, {"bounds_error": True}]
    for options in refused:
        with pytest.raises(ValueError, match=next(iter(options))):
            RegularGridInterpolator((GRID[0],), VALUES[:, 0, 0], **options)
    with pytest.raises(ValueError, match="a vector of coordinates for each dimension"):
        RegularGridInterpolator((GRID[0],), VALUES[0])


def test_nearest_of_a_few_points():
    codes = VECTORS[:4] + 0.1
    for x, book in ((VECTORS, codes), (VECTORS[:, 0], codes[:, 0]), (VECTORS[:0], codes)):
        for a, b in zip(vq(x, book), scipy_vq(x, book), strict=True):
            close(a, b)
    away = phalanx.grad(lambda x: vq(x, codes)[1].sum())(jnp.array(codes + np.array([0, 0, 0.01])))
    close(away, [[0, 0, 1]] * 4, atol=1e-4)
    for wrong in (VECTORS[:, :2], codes[0], codes[:0]):
        with pytest.raises(ValueError, match="vq: rows"):
            vq(VECTORS, wrong)
