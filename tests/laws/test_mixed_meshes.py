"""Programs over meshes whose axes are of all types, against a device alone.

Values and derivatives are the same; along axes of type Explicit, results lie as types say.
"""

import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, reshard, shard_map, typeof
from phalanx.sharding import AxisType, auto_axes

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")
AXES = ("a", "b", "c")
N = 8
RNG = np.random.default_rng(0)
W = RNG.normal(size=(N, N)).astype("f") / 3


class Drawn:
    """A program of steps over a mesh; each step is told with what it is on a device alone."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.kinds = [self.draw.choice([AxisType.Auto, AxisType.Explicit]) for _ in AXES]
        self.explicit = [a for a, k in zip(AXES, self.kinds, strict=True) if k.name == "Explicit"]
        steps = [getattr(self, name) for name in dir(self) if name.startswith("step_")]
        self.steps = [self.draw.choice(steps)() for _ in range(4)]

    def mesh(self):
        return phalanx.make_mesh((2, 2, 2), AXES, self.kinds)

    def spec(self):
        """Axes of type Explicit for some of two dimensions."""
        left = self.draw.sample([*self.explicit, None, None], 2)
        return P(*left)

    def over(self, x):
        for here, _ in self.steps:
            x = here(x)
        return x

    def alone(self, x):
        for _, there in self.steps:
            x = there(x)
        return x

    def step_elementwise(self):
        f = lambda x: jnp.sin(x) + 0.5 * x  # noqa: E731
        return f, f

    def step_transposed(self):
        return (lambda x: x.T * 2), (lambda x: x.T * 2)

    def step_product(self):
        spec = self.spec()
        return (lambda x: jnp.matmul(x, W, out_sharding=spec)), (lambda x: x @ W)

    def step_laid_out(self):
        spec = self.spec()
        return (lambda x: reshard(x, spec)), (lambda x: x)

    def step_left_to_the_compiler(self):
        """Along some axes of type Explicit: along others, types go on saying how values lie."""
        if not self.explicit:
            return self.step_elementwise()
        some = self.draw.sample(self.explicit, self.draw.randint(1, len(self.explicit)))
        f = lambda x: jnp.tanh(x) + jnp.roll(x, 1, 0)  # noqa: E731
        return auto_axes(f, axes=tuple(some), out_sharding=self.spec()), f

    def step_loop(self):
        f = lambda x: lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c) + 0.1 * x, x)  # noqa: E731
        return f, f

    def step_branch(self):
        f = lambda x: lax.cond(jnp.sum(x) > 0, jnp.cos, lambda x: 2 * x, x)  # noqa: E731
        return (lambda x: f(reshard(x, P(None, None)))), f

    def step_blocks(self):
        """Rows along an axis, those along the others left as they lie."""
        axis = self.draw.choice(AXES)

        def each(block):
            return jnp.sin(block) * (1 + lax.axis_index(axis)) + 0.1 * lax.pmean(block, axis)

        def here(x):
            x = reshard(x, P(None, None))
            return shard_map(each, in_specs=P(axis), out_specs=P(axis), axis_names={axis})(x)

        def there(x):
            halves = jnp.split(x, 2)
            mean = 0.1 * (halves[0] + halves[1]) / 2
            return jnp.concatenate([jnp.sin(h) * (1 + i) + mean for i, h in enumerate(halves)])

        return here, there

    def step_blocks_of_blocks(self):
        outer, inner = self.draw.sample(AXES, 2)

        def each(block):
            return block * (1 + lax.axis_index(inner)) + lax.psum(block, outer)

        def rows(block):
            cut = P(None, inner)
            return shard_map(each, in_specs=cut, out_specs=cut, axis_names={inner})(block)

        def here(x):
            x = reshard(x, P(None, None))
            return shard_map(rows, in_specs=P(outer), out_specs=P(outer), axis_names={outer})(x)

        def there(x):
            scale = 1 + jnp.arange(N) // (N // 2)
            halves = jnp.split(x, 2)
            return x * scale + jnp.concatenate([halves[0] + halves[1]] * 2)

        return here, there

    def step_sum_left(self):
        """A sum that is taken later, where types tell it."""
        if not self.explicit:
            return self.step_elementwise()
        axis = self.draw.choice(self.explicit)
        return (lambda x: reshard(3 * reshard(x, P(unreduced={axis})).T, P(None, None))), (
            lambda x: 3 * x.T
        )

    def step_sum_inside(self):
        """One that is made and taken inside a function of blocks."""
        axis = self.draw.choice(AXES)

        def each(block):
            part = lax.pcast(jnp.sin(block), axis, to="unreduced")
            return lax.psum_scatter(2 * jnp.concatenate([part, part]), axis, tiled=True)

        def here(x):
            x = reshard(x, P(None, None))
            return shard_map(each, in_specs=P(axis), out_specs=P(axis), axis_names={axis})(x)

        def there(x):
            first, second = jnp.split(jnp.sin(x), 2)
            return jnp.concatenate([2 * (first + second)] * 2)

        return here, there

    def step_weight_that_is_reduced(self):
        axis = self.draw.choice(AXES)

        def each(block, w):
            w = lax.all_gather(w, axis, tiled=True, to="reduced")
            return jnp.tanh(block @ w)

        def here(x):
            x, cut = reshard(x, P(None, None)), P(axis)
            return shard_map(each, in_specs=(cut, cut), out_specs=cut, axis_names={axis})(x, W)

        return here, lambda x: jnp.tanh(x @ W)


def along(spec, axes):
    """What ``spec`` says of two dimensions along ``axes`` alone."""
    cuts = [e if isinstance(e, tuple) else (e,) for e in (*spec, None, None)[:2]]
    return [tuple(a for a in cut if a in axes) for cut in cuts]


@pytest.mark.parametrize("seed", range(24))
def test_programs_over_meshes_of_several_types(seed):
    drawn, x = Drawn(seed), RNG.normal(size=(N, N)).astype("f")
    wanted, slope = phalanx.jit(drawn.alone)(x), phalanx.grad(lambda x: jnp.sum(drawn.alone(x)))(x)
    with phalanx.set_mesh(drawn.mesh()):
        f = phalanx.jit(drawn.over)
        y, told = f(x), phalanx.eval_shape(drawn.over, x)
        if drawn.explicit:
            assert typeof(y).sharding.spec == told.sharding.spec
        if isinstance(y.sharding, phalanx.sharding.NamedSharding):
            spec = along(y.sharding.spec, drawn.explicit)
            assert spec == along(typeof(y).sharding.spec, drawn.explicit)
        np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=1e-4)
        found = phalanx.jit(phalanx.grad(lambda x: jnp.sum(drawn.over(x))))(x)
        np.testing.assert_allclose(found, slope, rtol=1e-3, atol=1e-3)
