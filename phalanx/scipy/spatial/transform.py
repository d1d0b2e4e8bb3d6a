"""Rotations of space, as unit quaternions (x, y, z, w): one, or an array of them."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.base.registry import register_dataclass
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, inexact
from phalanx.random import normal

__all__ = ["Rotation", "Slerp"]


@register_dataclass
@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation, or several, made by the functions ``from_...``.

    Args:
        quat: unit quaternions [..., 4], each as (x, y, z, w).

    >>> import phalanx.numpy as jnp
    >>> from phalanx.scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
    >>> print(turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3))
    [0. 1. 0.]
    """

    quat: Array

    # ---- from other forms ----------------------------------------------------------------------

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """The rotations of quaternions [..., 4] as (x, y, z, w), which are brought to length 1.

        Args:
            quat: quaternions [..., 4].
        """
        return cls(_normalized(_rows("from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotations of orthogonal matrices [..., 3, 3] with determinant 1.

        Args:
            matrix: matrices [..., 3, 3].
        """
        return cls(_from_matrix(_rows("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations of vectors [..., 3] along the axes, whose lengths are the angles.

        Args:
            rotvec: vectors [..., 3].
            degrees: whether their lengths are degrees, and not radians.
        """
        return cls(_from_rotvec(_in_radians(_rows("from_rotvec", rotvec, 3), degrees)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotations of modified Rodrigues parameters, vectors along axes of length tan(a/4).

        Args:
            mrp: the parameters [..., 3].
        """
        return cls(_from_mrp(_rows("from_mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations made of turns around one to three axes, one after the other.

        Args:
            seq: the axes: "xyz" that stand still, or "XYZ" that turn along.
            angles: [..., n] for n axes; for one axis also a number, or [k] for k rotations.
            degrees: whether angles are in degrees.

        Raises:
            ValueError: the axes are others, or the angles do not fit.
        """
        x = _inexact("from_euler", angles)
        axes, along = _axes(seq, range(1, 4))
        if len(axes) == 1 and x.shape[-1:] != (1,):
            x = x[..., None]
        if x.shape[-1:] != (len(axes),):
            raise ShapeError(
                f"from_euler: {len(axes)} angles are needed for the axes {seq!r}, got {x.aval}"
            )
        return cls(_from_euler(_in_radians(x, degrees), axes, along))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation by nothing, or ``num`` of them.

        Args:
            num: how many; None for a single one.
            dtype: the dtype of the quaternions.
        """
        unit = jnp.array([0, 0, 0, 1], dtype)
        return cls(unit if num is None else jnp.tile(unit, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation drawn from all alike, or ``num`` of them.

        Args:
            random_key: a random key.
            num: how many; None for a single one.
        """
        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several, one after the other, as one array of rotations.

        Args:
            rotations: a sequence of rotations.
        """
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    # ---- in other forms ------------------------------------------------------------------------

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions [..., 4]; of the two of a rotation the ``canonical`` one has w >= 0.

        Args:
            canonical: whether w >= 0.
            scalar_first: whether w comes first, and not last.
        """
        q = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Matrices [..., 3, 3]."""
        return _as_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors [..., 3] along the axes, whose lengths are the angles, at most π.

        Args:
            degrees: whether the lengths are degrees, and not radians.
        """
        return _out(_as_rotvec(self.quat), degrees)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters [..., 3]."""
        q = _canonical(self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles [..., 3] around three axes.

        Where the first and the last axis coincide in space, the last angle is 0. Bernardes and
        Viollet, PLoS ONE 17 (2022).

        Args:
            seq: as in ``from_euler``, three of them, of which neighbours differ.
            degrees: whether angles are in degrees.
        """
        axes, along = _axes(seq, (3,))
        if axes[1] in (axes[0], axes[2]):
            raise ArgumentError(f"as_euler: neighbours among the axes must differ, got {seq!r}")
        return _out(_as_euler(self.quat, axes, along), degrees)

    # ---- what they do --------------------------------------------------------------------------

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """``vectors`` [..., 3], rotated, or with ``inverse`` rotated back.

        Args:
            vectors: vectors [..., 3].
            inverse: whether to rotate back.
        """
        x = _rows("apply", vectors, 3)
        return _applied(self.inv().quat if inverse else self.quat, x)

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, between 0 and π."""
        q = self.quat
        return 2 * jnp.arctan2(_length(q[..., :3])[..., 0], jnp.abs(q[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that is nearest to all of them, by the squares of distances of matrices.

        Markley et al., J. Guidance, Control, and Dynamics 30 (2007).

        Args:
            weights: how much each rotation counts; None: all alike.
        """
        q = jnp.atleast_2d(self.quat)
        w = jnp.ones(q.shape[0], q.dtype) if weights is None else as_array("mean", weights)
        if w.shape != q.shape[:1]:
            raise ShapeError(f"mean: one weight for each of {q.shape[0]} is needed, got {w.aval}")
        return Rotation(jnp.linalg.eigh(jnp.einsum("n,ni,nj->ij", w, q, q))[1][:, -1])

    def __mul__(self, other: Rotation) -> Rotation:
        """First ``other``, then this one."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_normalized(_product(self.quat, other.quat)))

    @property
    def single(self) -> bool:
        """Whether it is one rotation, and no array of them."""
        return self.quat.ndim == 1

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Rotation: a single one has no parts")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single one has no length")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True


@register_dataclass
@dataclass(frozen=True, eq=False)
class Slerp:
    """Rotations between given ones: around a fixed axis from one to the next, evenly in time.

    It is made by ``Slerp.init``.

    Args:
        times: when the rotations are there, ascending.
        timedelta: the differences of the times.
        rotations: the rotations at these times.
        rotvecs: the rotations from each to the next, as vectors.

    >>> import phalanx.numpy as jnp
    >>> from phalanx.scipy.spatial.transform import Rotation, Slerp
    >>> ends = Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True)
    >>> print(Slerp.init(jnp.array([0.0, 1.0]), ends)(0.5).as_rotvec(degrees=True).round(3))
    [ 0.  0. 45.]
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """What turns from one of ``rotations`` to the next; each belongs to one of ``times``.

        Args:
            times: when the rotations are there, ascending.
            rotations: as many rotations.
        """
        t = _inexact("Slerp", times)
        if rotations.single or t.shape != (len(rotations),) or t.size < 2:
            raise ShapeError(
                f"Slerp: at least two rotations with one time each are needed, got times {t.aval} "
                f"and quaternions {rotations.quat.aval}"
            )
        steps = rotations[:-1].inv() * rotations[1:]
        return cls(t, jnp.diff(t), rotations[:-1], steps.as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at ``times``; beyond the ends they go on."""
        t = _inexact("Slerp", times)
        last = self.timedelta.shape[0] - 1
        at = jnp.clip(jnp.searchsorted(self.times, t, "right") - 1, 0, last)
        share = (t - self.times[at]) / self.timedelta[at]
        return self.rotations[at] * Rotation.from_rotvec(self.rotvecs[at] * share[..., None])


# ---- arguments --------------------------------------------------------------------------------


def _inexact(who: str, x: Any) -> Any:
    x = inexact(who, jnp.asarray(x))
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{who}: real numbers are needed, got {x.aval}")
    return x


def _rows(who: str, x: Any, *shape: int) -> Any:
    x = _inexact(who, x)
    if x.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, ("...", *shape)))
        raise ShapeError(f"{who}: an array [{wanted}] is needed, got {x.aval}")
    return x


def _axes(seq: Any, counts: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """The axes by number, and whether they turn along."""
    names = seq if isinstance(seq, str) else ""
    along = names.isupper()
    axes = tuple("XYZ".find(n) if along else "xyz".find(n) for n in names)
    if len(axes) not in counts or -1 in axes:
        raise ArgumentError(
            f"Rotation: the axes are {counts[-1]} of x, y and z, or of X, Y and Z, got {seq!r}"
        )
    return axes, along


def _in_radians(x: Any, degrees: bool) -> Any:
    return jnp.deg2rad(x) if degrees else x


def _out(x: Any, degrees: bool) -> Any:
    return jnp.rad2deg(x) if degrees else x


# ---- quaternions ------------------------------------------------------------------------------


def _length(x: Any) -> Any:
    """The length of vectors [..., n], as [..., 1], whose derivative at 0 is 0."""
    square = jnp.sum(x * x, -1, keepdims=True)
    nothing = square == 0
    return jnp.where(nothing, 0, jnp.sqrt(jnp.where(nothing, 1, square)))


@one_program
def _normalized(q: ArrayLike) -> Array:
    x = as_array("Rotation", q)
    return x / jnp.sqrt(jnp.sum(x * x, -1, keepdims=True))


@one_program
def _product(p: ArrayLike, q: ArrayLike) -> Array:
    x, y = as_array("Rotation", p), as_array("Rotation", q)
    a, b, v, w = x[..., 3:], y[..., 3:], x[..., :3], y[..., :3]
    scalar = a * b - jnp.sum(v * w, -1, keepdims=True)
    vector = a * w + b * v + jnp.cross(v, w)
    return jnp.concatenate([vector, scalar], -1)


@one_program
def _canonical(q: ArrayLike) -> Array:
    """q or -q: its last part that is not 0 is positive, w, then x, y, z."""
    x = as_array("Rotation", q)
    ordered = jnp.roll(x, 1, -1)
    first = jnp.argmax(ordered != 0, -1, keepdims=True)
    return jnp.where(jnp.take_along_axis(ordered, first, -1, mode="clip") < 0, -x, x)


@one_program
def _applied(q: ArrayLike, vectors: ArrayLike) -> Array:
    return jnp.matvec(_as_matrix(as_array("apply", q)), as_array("apply", vectors))


@one_program
def _as_matrix(q: ArrayLike) -> Array:
    x, y, z, w = jnp.moveaxis(as_array("as_matrix", q), -1, 0)
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


@one_program
def _from_matrix(matrix: ArrayLike) -> Array:
    """Shepperd, J. Guidance and Control 1 (1978): by the largest of 4x², 4y², 4z² and 4w²."""
    m = as_array("from_matrix", matrix)
    (a, b, c), (d, e, f), (g, h, i) = ([m[..., r, k] for k in range(3)] for r in range(3))
    squares = jnp.stack([1 + a - e - i, 1 + e - a - i, 1 + i - a - e, 1 + a + e + i], -1)
    xy, xz, yz, xw, yw, zw = b + d, c + g, f + h, h - f, c - g, d - b
    rows = [
        [squares[..., 0], xy, xz, xw],
        [xy, squares[..., 1], yz, yw],
        [xz, yz, squares[..., 2], zw],
        [xw, yw, zw, squares[..., 3]],
    ]
    table = jnp.stack([jnp.stack(row, -1) for row in rows], -2)  # 4 q qᵀ
    largest = jnp.argmax(squares, -1)[..., None, None]
    return _normalized(jnp.take_along_axis(table, largest, -2, mode="clip")[..., 0, :])


@one_program
def _from_rotvec(rotvec: ArrayLike) -> Array:
    v = as_array("from_rotvec", rotvec)
    half = jnp.sum(v * v, -1, keepdims=True) / 4
    small = half < 1e-3  # there by the series in the square of half the angle
    h = jnp.sqrt(jnp.where(small, 1, half))
    ratio = jnp.where(small, 1 - half / 6 * (1 - half / 20), jnp.sin(h) / h)
    scalar = jnp.where(small, 1 - half / 2 * (1 - half / 12), jnp.cos(h))
    return _normalized(jnp.concatenate([v * ratio / 2, scalar], -1))


@one_program
def _as_rotvec(q: ArrayLike) -> Array:
    x = _canonical(as_array("as_rotvec", q))
    v, w = x[..., :3], x[..., 3:]
    square = jnp.sum(v * v, -1, keepdims=True)
    small = square < 1e-3  # there by the series of asin(s) / s, as w² = 1 - s²
    s = jnp.sqrt(jnp.where(small, 1, square))
    near = 1 + square / 6 * (1 + square * (9 / 20) * (1 + square * (25 / 42)))
    return v * 2 * jnp.where(small, near, jnp.arctan2(s, w) / s)


@one_program
def _from_mrp(mrp: ArrayLike) -> Array:
    v = as_array("from_mrp", mrp)
    square = jnp.sum(v * v, -1, keepdims=True)
    return jnp.concatenate([2 * v, 1 - square], -1) / (1 + square)


@one_program
def _from_euler(angles: ArrayLike, axes: tuple[int, ...], along: bool) -> Array:
    x = as_array("from_euler", angles) / 2
    total: Any = None
    for i, axis in enumerate(axes):
        parts = [jnp.zeros_like(x[..., i])] * 4
        parts[axis], parts[3] = jnp.sin(x[..., i]), jnp.cos(x[..., i])
        turn = jnp.stack(parts, -1)
        pair = (total, turn) if along else (turn, total)
        total = _product(*pair) if i else turn
    return total


@one_program
def _as_euler(q: ArrayLike, axes: tuple[int, ...], along: bool) -> Array:
    parts = jnp.moveaxis(as_array("as_euler", q), -1, 0)
    i, j, k = reversed(axes) if along else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = parts[i], parts[j], parts[k] * sign, parts[3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    still, turned = middle < 1e-7, jnp.abs(middle - np.pi) < 1e-7
    twice = jnp.where(still, 2 * half_sum, (2 if along else -2) * half_difference)
    lost = still | turned
    first, third = half_sum - half_difference, half_sum + half_difference
    if not symmetric:
        third, middle = third * sign, middle - np.pi / 2
    if along:
        first, third = third, first
    found = jnp.where(lost, twice, first), middle, jnp.where(lost, 0, third)
    angles = jnp.stack(found, -1)
    return jnp.where(angles < -np.pi, angles + 2 * np.pi,
                     jnp.where(angles > np.pi, angles - 2 * np.pi, angles))  # fmt: skip


bound(sys.modules[__name__], Rotation, Slerp)
