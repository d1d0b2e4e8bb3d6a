"""Collectives in groups of positions, against what they are by definition."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax

pytestmark = pytest.mark.skipif(phalanx.device_count() < 4, reason="needs a mesh of 2 x 2")
X = np.random.default_rng(0).normal(size=(4, 8, 3)).astype("f")  # of 4 positions
EVEN = [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[3, 0], [1, 2]], [[2], [0], [1], [3]]]
UNEVEN = [[[1], [3, 2, 0]], [[0], [2, 1], [3]]]

# of each collective: what it is, whether it needs even groups, what a position of a group gets
COLLECTIVES = {
    "psum": (lax.psum, False, lambda rows, place: sum(rows)),
    "pmean": (lax.pmean, False, lambda rows, place: sum(rows) / len(rows)),
    "pmax": (lax.pmax, False, lambda rows, place: np.max(rows, 0)),
    "pmin": (lax.pmin, False, lambda rows, place: np.min(rows, 0)),
    "all_gather": (lax.all_gather, True, lambda rows, place: np.stack(rows)),
    "all_gather, tiled": (
        lambda x, a, **groups: lax.all_gather(x, a, axis=1, tiled=True, **groups), True,
        lambda rows, place: np.concatenate(rows, 1),
    ),
    "psum_scatter": (
        lambda x, a, **groups: lax.psum_scatter(x, a, tiled=True, **groups), True,
        lambda rows, place: np.split(sum(rows), len(rows))[place],
    ),
    "all_to_all": (
        lambda x, a, **groups: lax.all_to_all(x, a, 0, 1, tiled=True, **groups), True,
        lambda rows, place: np.concatenate([np.split(r, len(rows))[place] for r in rows], 1),
    ),
}  # fmt: skip
LINEAR = [name for name in COLLECTIVES if name not in ("pmax", "pmin")]


def by_definition(name, groups):
    found = [None] * 4
    for group in groups:
        for place, position in enumerate(group):
            found[position] = COLLECTIVES[name][2]([X[i] for i in group], place)
    return np.stack(found)


@pytest.mark.parametrize("groups, sizes", [
    *[(groups, (4,)) for groups in EVEN + UNEVEN], (EVEN[2], (2, 2)), (UNEVEN[0], (2, 2)),
])  # fmt: skip
def test_each_group_is_an_axis_of_its_own(groups, sizes):
    names = tuple("xy"[: len(sizes)])
    mesh = phalanx.make_mesh(sizes, names, devices=phalanx.devices()[:4])
    used = [name for name, (_, even, _) in COLLECTIVES.items() if groups in EVEN or not even]

    def each(x):
        made = [COLLECTIVES[name][0](x[0], names, axis_index_groups=groups) for name in used]
        return [y[None] for y in made]

    f = phalanx.shard_map(each, mesh=mesh, in_specs=P(names), out_specs=P(names))
    cotangents = [np.cos(by_definition(name, groups)) for name in used]

    def paired(x):
        pairs = zip(used, f(x), cotangents, strict=True)
        return sum([jnp.vdot(y, ct) for name, y, ct in pairs if name in LINEAR])

    found, (total, slope) = phalanx.jit(lambda x: (f(x), phalanx.value_and_grad(paired)(x)))(X)
    for name, y in zip(used, found, strict=True):
        np.testing.assert_allclose(y, by_definition(name, groups), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.vdot(slope, X), total, rtol=1e-4)  # of a linear function
