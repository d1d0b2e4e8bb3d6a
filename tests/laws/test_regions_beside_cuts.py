"""Functions over one axis of a mesh, of operands that the compiler cuts along another.

They give what they give of whole operands, and end no process.
"""

import itertools
import random

from tests.children import undone

PRELUDE = """
from phalanx import P, shard_map
from phalanx.sharding import AxisType, NamedSharding
M = make_mesh((2, 2, 2), ("i", "j", "k"), (AxisType.Auto,) * 3)
X = np.random.default_rng(0).permutation(64).astype("f").reshape(8, 8) / 64
def V(x):
    return x if "j" in typeof(x).vma else lax.pcast(x, "j", to="varying")
def law(f, spec, derived):
    g = shard_map(lambda x: V(f(V(x))), mesh=M, in_specs=spec, out_specs=P("j"), axis_names={"j"})
    g = grad(lambda x, g=g: jnp.sum(jnp.sin(g(x)))) if derived else g
    want = np.asarray(jit(g)(X))
    for cut in (P(None, "i"), P("i"), P("k", "i")):
        got = np.asarray(jit(g)(device_put(X, NamedSharding(M, cut))))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
def sorted_by_j(rows):
    of = {"in_specs": P("j"), "out_specs": P("j"), "axis_names": {"j"}}
    g = shard_map(lambda x: jnp.sort(x, 1), mesh=M, **of)
    return jit(g)(device_put(X, NamedSharding(M, P(None, "i"))))
"""
TAKEN = {  # of x, whose rows are whole or of "j"
    "gather": "jnp.take_along_axis({x}, jnp.argsort({x}, 1), 1)",
    "gather rows": "jnp.take_along_axis({x}, jnp.argsort({x}, 0), 0)",
    "index": "{x}[:, jnp.array([3, 1, 2])]",
    "scatter": "{x}.at[:, jnp.argmax({x}, 1)].add(1.0)",
    "sort": "jnp.sort({x}, 1)",
    "sort pairs": "lax.sort_key_val({x}, 2 * {x}, 1)[1]",
    "median": "jnp.median({x}, 1)",
    "cumsum": "jnp.cumsum({x}, 1)",
    "slice": "lax.dynamic_slice({x}, (0, jnp.argmax({x}[0])), (2, 3))",
    "psum": "lax.psum({x}, 'j')",
    "exchange": "lax.all_to_all({x}, 'j', 1, 1, tiled=True)",
    "permute": "lax.ppermute({x}, 'j', [(0, 1), (1, 0)])",
    "rows of a table": "{x}[jnp.argsort({x}[0, :4])]",
    "table of few": "{x}[jnp.argsort({x}[:2, :4], 1)[:, :2]].sum(0)",
    "table of many": "{x}[jnp.argsort({x}, 1) // 2]",
    "rows added": "{x}.at[jnp.argsort({x}[0, :4])].add({x}[:4])",
    "lanes of slices": (
        "vmap(lambda r, i: lax.dynamic_slice(r, (i,), (3,)))({x}, jnp.argmax({x}, 1))"
    ),
    "lanes of tables": "vmap(lambda r: jnp.outer(r, r)[jnp.argsort(r)])({x}).sum(0)",
    "one table": (
        "vmap(lambda i: lax.dynamic_slice({x}, (i, 0), (2, 8)))(jnp.argsort({x}[0])).sum(0)"
    ),
    "update": "lax.dynamic_update_slice({x}, 2 * {x}[:1], (jnp.argmax({x}[:, 0]), 0))",
    "windows": "lax.reduce_window({x}, -jnp.inf, lax.max, (2, 2), (1, 1), 'SAME')",
    "convolution": (
        "lax.conv_general_dilated({x}[None, None], {x}[None, None, :3, :3], (1, 1), 'SAME')[0, 0]"
    ),
    "transform": "jnp.fft.fft({x}).real",
    "largest": "lax.top_k({x}, 3)[0]",
    "product": "{x} @ {x}.T",
    "segments": "ops.segment_sum({x}, jnp.argsort({x}[:, 0]), {x}.shape[0])",
    "chain": "lax.associative_scan(jnp.multiply, {x}, axis=1)",
    "all of them": "lax.all_gather({x}, 'j', tiled=True)",
    "a part of the sum": "lax.psum_scatter({x}, 'j', scatter_dimension=1, tiled=True)",
}
AROUND = {
    "alone": "{f}",
    "scan": "lax.scan(lambda c, _: (c + V({f}).sum(), None), V(x.sum()), None, length=2)[0][None]",
    "cond": "lax.cond(lax.psum({x}.sum(), 'j') > 1, lambda x: V({f}), lambda x: V(2 * {f}), {x})",
    "lanes": "vmap(lambda x: lax.psum(V({f}), ('n', 'j')), axis_name='n')(jnp.stack([x, x]))[0]",
}
FELL = [
    *(("sort", "'j'"), ("gather", ""), ("median", ""), ("scatter", "")),
    *(("table of few", ""), ("table of many", ""), ("lanes of tables", ""), ("windows", "")),
    ("transform", ""),
]


def pieces():
    every = [
        f"law(lambda x: {around.format(f=f.format(x='x'), x='x')}, P({spec}), {derived})"
        for f, around, spec, derived in itertools.product(
            TAKEN.values(), AROUND.values(), ("'j'", ""), (False, True)
        )
    ]
    some = random.Random(3).sample(every, 10)
    alone = [f"law(lambda x: {TAKEN[name].format(x='x')}, P({spec}), True)" for name, spec in FELL]
    return [*some, *alone]


def test_drawn_functions_beside_axes_of_the_compiler():
    drawn = [*pieces(), "assert np.array_equal(sorted_by_j(X), np.sort(X, 1))"]
    assert not undone(drawn, devices=8, prelude=PRELUDE)
