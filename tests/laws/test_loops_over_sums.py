"""Loops and branches over sums that are still to be taken, and that close over them, drawn.

Values and derivatives are those of the same program on a device alone.
"""

import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, reshard
from phalanx.sharding import AxisType

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs meshes of 8 devices")
N = 4
RNG = np.random.default_rng(0)
K, X, W = RNG.normal(size=(3, N, N)).astype("f") / 2
UNREDUCED, REDUCED = kinds = ("unreduced", "reduced")


class Drawn:
    """A program whose values are of one kind, in steps that keep it."""

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.grid = draw.choice([(2, 4), (4, 2), (2, 2, 2)])
        self.names = tuple("abc")[: len(self.grid)]
        kinds_of_axes = [AxisType.Explicit, *draw.choices(list(AxisType)[:2], k=len(self.grid) - 1)]
        self.kinds = draw.sample(kinds_of_axes, len(self.grid))
        pairs = zip(self.names, self.kinds, strict=True)
        explicit = [name for name, kind in pairs if kind is AxisType.Explicit]
        self.axes = set(draw.sample(explicit, draw.randint(1, len(explicit))))
        self.kind = draw.choice(kinds)
        self.over = True  # whether values lie over the mesh
        self.body = self.steps(2)

    def lay(self, x, **said):
        return reshard(x, P(None, None, **said)) if self.over else x

    def told(self, x):
        return self.lay(x, **{self.kind: self.axes})

    def __call__(self, x, w):
        self.x, self.w = self.told(x), self.told(jnp.cos(w))
        self.condition = x[0, 0] > 0
        return self.lay(self.body(self.told(x / 2 + w)))

    def mesh(self):
        return phalanx.make_mesh(self.grid, self.names, self.kinds)

    def steps(self, depth):
        easy = [self.scaled, self.turned, self.added, self.rolled, self.chosen]
        easy += [self.waved, self.multiplied] if self.kind == REDUCED else []
        hard = [self.repeated, self.scanned, self.stacked, self.mapped, self.branched, self.again]
        steps = [self.draw.choice(easy + 3 * hard if depth else easy) for _ in range(1 + depth)]
        steps = [step(depth - 1) for step in steps]

        def run(c):
            for step in steps:
                c = step(c)
            return c

        return run

    def scaled(self, _):
        return lambda c: -0.7 * c * K

    def turned(self, _):
        return lambda c: c.T

    def added(self, _):
        return lambda c: c + 0.3 * self.w

    def rolled(self, _):
        return lambda c: jnp.concatenate([c[1:], c[:1]])

    def chosen(self, _):
        return lambda c: jnp.where(K > 0, c, 0.5 * self.x)

    def waved(self, _):
        return jnp.sin

    def multiplied(self, _):
        return lambda c: self.told(c @ self.w)

    def repeated(self, depth):
        inner = self.steps(depth)
        return lambda c: lax.fori_loop(0, 2, lambda _, c: inner(c), c)

    def scanned(self, depth):
        inner, backwards = self.steps(depth), self.draw.random() < 0.5

        def step(c, row):
            return inner(c) + 0.1 * row, None

        return lambda c: lax.scan(step, c, self.x, reverse=backwards)[0]

    def stacked(self, depth):
        inner = self.steps(depth)

        def function(c):
            c, rows = lax.scan(lambda c, row: (inner(c), c[0] + row), c, self.w)
            return c + 0.2 * rows

        return function

    def mapped(self, _):
        return lambda c: lax.map(lambda row: 0.5 * row + self.x[0], c)

    def branched(self, depth):
        one, other = self.steps(depth), self.steps(depth)
        return lambda c: lax.cond(self.condition, one, other, c)

    def again(self, depth):
        return phalanx.checkpoint(phalanx.jit(self.steps(depth)))


@pytest.mark.parametrize("seed", range(8))
def test_drawn_loops(seed):
    drawn = Drawn(seed)

    def both(x, w):
        total = lambda x, w: (jnp.sum(jnp.sin(y := drawn(x, w))), y)  # noqa: E731
        return phalanx.grad(total, (0, 1), has_aux=True)(x, w)

    with phalanx.set_mesh(drawn.mesh()):
        found = phalanx.jit(both)(*phalanx.device_put((X, W), P()))
    drawn.over = False
    wanted = phalanx.jit(lambda x, w: both(x, w))(X, W)
    for y, want in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-3, atol=1e-4)
