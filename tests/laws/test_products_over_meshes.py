"""Products of any dimensions over meshes of any axes, cut in ways that are drawn.

Values and cotangents are those of NumPy; along axes of type Explicit they lie as types say.
"""

import math
import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, reshard, typeof
from phalanx.errors import ShardingTypeError
from phalanx.sharding import AxisType

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs meshes of 8 devices")
GRIDS = [(2, 4), (4, 2), (2, 2, 2), (2, 2), (1, 2, 4), (2, 1, 2)]


class Product:
    """A product with up to two dimensions of each kind: batch, sum, left and right."""

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.grid = draw.choice(GRIDS)
        self.names = "xyz"[: len(self.grid)]
        self.kinds = draw.choices(list(AxisType)[:2], k=len(self.grid))
        pairs = zip(self.names, self.kinds, strict=True)
        self.explicit = [name for name, kind in pairs if kind is AxisType.Explicit]
        letters, sizes = iter("abcdefgh"), {c: draw.choice([4, 8]) for c in "abcdefgh"}
        batch, summed, left, right = [
            [next(letters) for _ in range(draw.randint(0, 2))] for _ in range(4)
        ]
        dims = [batch + summed + left, batch + summed + right, batch + left + right]
        self.dims = [draw.sample(each, len(each)) for each in dims]
        self.shapes = [[sizes[c] for c in each] for each in self.dims]
        specs = [self.spec(shape, self.names) for shape in self.shapes]
        self.asked = draw.choice([None, self.spec(self.shapes[2], self.explicit)])
        *self.specs, self.of_cotangent = specs

    def spec(self, shape, names):
        """Axes for dimensions that they divide, several for some."""
        entries, size = [[] for _ in shape], dict(zip(self.names, self.grid, strict=True))
        for name in self.draw.sample(list(names), len(names)):
            fitting = [
                entry
                for n, entry in zip(shape, entries, strict=True)
                if n % math.prod(size[a] for a in [name, *entry]) == 0
            ]
            if fitting and self.draw.random() < 0.75:
                self.draw.choice(fitting).append(name)
        return P(*[tuple(entry) or None for entry in entries])

    def mesh(self):
        return phalanx.make_mesh(self.grid, tuple(self.names), self.kinds)

    def text(self, *order):
        lhs, rhs, out = ["".join(self.dims[i]) for i in order]
        return f"{lhs},{rhs}->{out}"

    def over(self, x, w):
        return jnp.einsum(self.text(0, 1, 2), x, w, out_sharding=self.asked)

    def told(self, spec, shape):
        """What a type says of an array of ``shape`` that lies as ``spec``."""
        sharding = phalanx.NamedSharding(self.mesh(), spec)
        return typeof(phalanx.device_put(np.zeros(shape, "f"), sharding)).layout


@pytest.mark.parametrize("seed", range(16))
def test_products_cut_at_random(seed):
    p, rng = Product(seed), np.random.default_rng(seed)
    x, w, ct = [rng.normal(size=shape) for shape in p.shapes]
    with phalanx.set_mesh(p.mesh()):
        given = zip((x, w, ct), (*p.specs, p.of_cotangent), strict=True)
        operands = [phalanx.device_put(np.float32(v), spec) for v, spec in given]
        try:
            type = phalanx.eval_shape(p.over, *operands[:2])
        except ShardingTypeError:
            assert p.asked is None
            return
        y = phalanx.jit(p.over)(*operands[:2])
        of_x, of_w = phalanx.jit(lambda x, w, ct: phalanx.vjp(p.over, x, w)[1](ct))(*operands)
        if p.explicit:
            said = p.asked if p.asked is not None else type.sharding.spec
            for found, spec in ((y, said), (of_x, p.specs[0]), (of_w, p.specs[1])):
                assert typeof(found).layout == p.told(spec, found.shape)
    wanted = [np.einsum(p.text(0, 1, 2), x, w)]
    wanted += [np.einsum(p.text(2, 1, 0), ct, w), np.einsum(p.text(0, 2, 1), x, ct)]
    for found, want in zip((y, of_x, of_w), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-3)


def test_sums_are_left_where_the_compiler_cut_the_operands_otherwise():
    kinds = (AxisType.Explicit, AxisType.Auto)
    x, w = np.sin(np.arange(64.0)).reshape(8, 8), np.cos(np.arange(64.0)).reshape(8, 8)
    with phalanx.set_mesh(phalanx.make_mesh((2, 2), ("x", "y"), kinds)):
        cut = [phalanx.device_put(np.float32(v), s) for v, s in ((x, P(("x", "y"))), (w, P("x")))]
        y = phalanx.jit(lambda x, w: jnp.matmul(x.T, w, out_sharding=P(unreduced={"x"})))(*cut)
        assert typeof(y).unreduced == {"x"}
        np.testing.assert_allclose(reshard(y, P(None, None)), x.T @ w, rtol=1e-4, atol=1e-5)


def test_what_no_axis_cuts_in_the_type_is_cut_by_none_of_type_explicit():
    kinds = (AxisType.Explicit, AxisType.Auto)
    with phalanx.set_mesh(phalanx.make_mesh((2, 2), ("x", "y"), kinds)):
        x, w = phalanx.device_put((np.ones((4, 4), "f"), np.ones((4, 4), "f")), P(None, "y"))

        def pulled(x, w):
            y, pull = phalanx.vjp(lambda x: lax.mul(x, reshard(w, P("x"))), x)
            return pull(reshard(y, P("x")))[0]

        assert typeof(phalanx.jit(pulled)(x, w)).layout == ((), ())
