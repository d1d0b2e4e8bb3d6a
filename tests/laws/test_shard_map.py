"""``shard_map`` against ``vmap``: every position of a mesh is a lane of as many axes.

The reference cuts arrays into blocks, puts those of all positions into leading dimensions, and maps
over these; it joins what comes out as the specs say.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from tests.compare import FLOAT64
from tests.compare import close as close_within

close = partial(close_within, within=FLOAT64)

pytestmark = [pytest.mark.spmd, pytest.mark.usefixtures("x64")]
fewer = settings(max_examples=max(1, settings().max_examples // 2))
MESHES = [
    (("x", 1), ("y", 8)),
    (("x", 2), ("y", 4)),
    (("x", 4), ("y", 2)),
    (("x", 2), ("y", 2), ("z", 2)),
    (("x", 3),),
    (("x", 1), ("y", 3)),
    (("x", 1),),
]
ROWS, COLUMNS = 48, 24


def within_devices(axes):
    return math.prod(n for _, n in axes) <= phalanx.device_count()


def layout(spec):
    return [() if e is None else (e,) if isinstance(e, str) else e for e in spec]


def into_blocks(x, spec, axes):
    """``x`` with a leading dimension for each axis, along which lie the blocks."""
    cuts = layout(spec) + [()] * (x.ndim - len(spec))
    sizes = dict(axes)
    shape = [
        m
        for n, cut in zip(x.shape, cuts, strict=True)
        for m in (*(sizes[a] for a in cut), n // math.prod(sizes[a] for a in cut))
    ]
    tags = [tag for cut in cuts for tag in (*cut, None)]
    rest = [i for i, tag in enumerate(tags) if tag is None]
    split = jnp.transpose(jnp.reshape(x, shape), [tags.index(a) for a in sizes if a in tags] + rest)
    lead = tuple(n if a in tags else 1 for a, n in axes)
    split = jnp.reshape(split, lead + split.shape[len(split.shape) - len(rest) :])
    return jnp.broadcast_to(split, (*sizes.values(), *split.shape[len(axes) :]))


def from_blocks(y, spec, axes):
    """The inverse; where an axis is not in the spec the first block stands for all."""
    names = [a for a, _ in axes]
    cuts = layout(spec) + [()] * (y.ndim - len(axes) - len(spec))
    named = [a for cut in cuts for a in cut]
    y = y[tuple(slice(None) if a in named else slice(1) for a in names)]
    y = jnp.reshape(y, [n for a, n in axes if a in named] + list(y.shape[len(axes) :]))
    leading = [a for a in names if a in named]
    order = []
    for dim, cut in enumerate(cuts):
        order += [leading.index(a) for a in cut] + [len(leading) + dim]
    shape = [
        n * math.prod(dict(axes)[a] for a in cut)
        for n, cut in zip(y.shape[len(leading) :], cuts, strict=True)
    ]
    return jnp.reshape(jnp.transpose(y, order), shape)


def by_vmap(f, axes, in_specs, out_specs):
    for name, _ in reversed(axes):
        f = phalanx.vmap(f, axis_name=name)

    def on_wholes(*args):
        blocks = [into_blocks(x, s, axes) for x, s in zip(args, in_specs, strict=True)]
        return tuple(from_blocks(y, s, axes) for y, s in zip(f(*blocks), out_specs, strict=True))

    return on_wholes


def ring(n):
    return [(i, (i + 1) % n) for i in range(n)]


def pairs(n):
    return np.arange(n).reshape(2, -1).T[::-1].tolist()


def weights(x, over):
    return 1 + 0.1 * lax.axis_index(over) * jnp.cos(x)


STEPS = {
    "psum": lambda x, a: jnp.sin(x) + lax.psum(x, a) * 0.1,
    "pmean": lambda x, a: jnp.cos(x) * lax.pmean(jnp.sin(x), a),
    "pmax": lambda x, a: x * lax.pmax(jnp.sum(x * weights(x, a)), a) * 0.1,
    "index": lambda x, a: x * weights(x, a),
    "gathered": lambda x, a: jnp.mean(lax.all_gather(x, a) * x, 0),
    "scattered": lambda x, a: (
        lax.psum_scatter(lax.all_gather(x, a, tiled=True) * 0.5, a, tiled=True) * weights(x, a)
    ),
    "exchanged": lambda x, a: (
        x
        if x.shape[1] % lax.axis_size(a)
        else (lax.all_to_all(jnp.sin(x), a, 1, 1, tiled=True) * x)
    ),
    "shifted": lambda x, a: x + 0.5 * lax.ppermute(x, a, ring(lax.axis_size(a))),
    "halves": lambda x, a: (
        x
        * jnp.sum(
            lax.psum(
                x,
                a,
                axis_index_groups=np.arange(lax.axis_size(a)).reshape(-1, 1).tolist()
                if lax.axis_size(a) % 2
                else np.arange(lax.axis_size(a)).reshape(2, -1).T.tolist(),
            )
        )
        * 0.1
    ),
    "neighbours": lambda x, a: (
        x
        if lax.axis_size(a) % 2
        else x
        * jnp.sin(
            lax.psum_scatter(
                jnp.stack([x, weights(x, a)]), a, axis_index_groups=pairs(lax.axis_size(a))
            )
        )
    ),
    "looped": lambda x, a: lax.scan(
        lambda c, r: (c * 0.9 + lax.pmean(r, a), c * r), jnp.zeros(x.shape[1]), x
    )[1],
    "chosen": lambda x, a: lax.cond(
        lax.pmean(jnp.sum(x), a) > 0.1, jnp.sin, lambda x: 0.5 * lax.psum(x, a), x
    ),
}


@dataclass(frozen=True)
class Drawn:
    """A mesh, how two arguments are cut, and what is done with their blocks."""

    axes: tuple
    x_spec: P
    w_spec: P
    steps: tuple

    @property
    def names(self):
        return tuple(a for a, _ in self.axes)

    @property
    def in_specs(self):
        return self.x_spec, self.w_spec

    @property
    def out_specs(self):
        return P(None, self.names), P()

    def lane(self, x, w):
        x = x * w
        for name, over in self.steps:
            x = STEPS[name](x, over)
        return x, lax.psum(jnp.sum(x**2), self.names)

    @property
    def mesh(self):
        return phalanx.make_mesh([n for _, n in self.axes], self.names)

    def mapped(self, lane=None, out_specs=None, **options):
        out_specs = self.out_specs if out_specs is None else out_specs
        return phalanx.shard_map(
            lane or self.lane, mesh=self.mesh, in_specs=self.in_specs, out_specs=out_specs,
            **options,
        )  # fmt: skip

    def reference(self):
        return by_vmap(self.lane, self.axes, self.in_specs, self.out_specs)

    def arguments(self, seed=0):
        rng = np.random.default_rng(seed)
        return rng.uniform(-1, 1, (ROWS, COLUMNS)), rng.uniform(0.5, 1, COLUMNS)


@st.composite
def drawn(draw, most_steps=3):
    axes = draw(st.sampled_from([m for m in MESHES if within_devices(m)]))
    names = [a for a, _ in axes]
    some = st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)
    cutting = draw(st.permutations(names).map(lambda p: p[: draw(st.integers(0, len(p)))]))
    at = draw(st.integers(0, len(cutting)))
    entries = [tuple(part) or None for part in (cutting[:at], cutting[at:])]
    # what is cut over the columns is cut alike in both arguments, or in neither
    step = st.tuples(st.sampled_from(sorted(STEPS)), some)
    steps = draw(st.lists(step, min_size=1, max_size=most_steps))
    return Drawn(axes, P(*entries), P(entries[1]), tuple(steps))


@given(drawn())
def test_values(program):
    note(f"{program}")
    args = program.arguments()
    expected = phalanx.jit(program.reference())(*args)
    close(program.mapped()(*args), expected)
    close(phalanx.jit(program.mapped(check_vma=False))(*args), expected)


@fewer
@given(drawn())
def test_values_one_by_one(program):
    """Without compiling, too, where every operation runs by itself."""
    note(f"{program}")
    args = program.arguments()
    expected = phalanx.jit(program.reference())(*args)
    with phalanx.disable_jit():
        close(program.mapped()(*args), expected)


@pytest.mark.parametrize("axes", [m for m in MESHES if within_devices(m) and len(m) == 2], ids=str)
def test_a_branch_that_is_chosen_along_one_axis_one_by_one(axes):
    steps = ("pmean", ("y", "x")), ("chosen", ("x",))
    program = Drawn(axes, P(("y", "x"), None), P(None), steps)
    args = program.arguments()
    expected = phalanx.jit(program.reference())(*args)
    with phalanx.disable_jit():
        close(program.mapped()(*args), expected)


def scalar(f):
    """A number that depends on all results of ``f``."""
    return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in f(*args))


@fewer
@given(drawn(most_steps=2), st.booleans())
def test_derivatives_outside(program, checked):
    """They are those of a function of whole arrays, whatever types know inside."""
    note(f"{program} {checked}")
    args, tangents = program.arguments(), program.arguments(1)
    f, reference = scalar(program.mapped(check_vma=checked)), scalar(program.reference())

    def slopes(f, args, tangents):
        value, slope = phalanx.jvp(lambda *xs: phalanx.grad(f, (0, 1))(*xs), args, tangents)
        return value, slope, phalanx.jvp(f, args, tangents)[1]

    close(phalanx.jit(slopes, static_argnums=0)(f, args, tangents),
          phalanx.jit(slopes, static_argnums=0)(reference, args, tangents))  # fmt: skip


@fewer
@given(drawn(most_steps=2))
def test_derivatives_inside(program):
    """Inside, the gradient is that of the sum over all positions, by a block of the whole array.

    Where types do not know along which axes a block varies, it is what vmap makes of it: that by
    the block of one position.
    """
    note(f"{program}")
    args = program.arguments()

    def local(x, w):
        y, total = program.lane(x, w)
        return lax.pvary(jnp.sum(jnp.sin(y)), program.names) + jnp.sin(total)

    def everywhere(x, w):
        loss = by_vmap(lambda x, w: (local(x, w)[None],), program.axes, program.in_specs,
                       (P(program.names),))  # fmt: skip
        return jnp.sum(loss(x, w)[0])

    inside = phalanx.grad(local, (0, 1))
    found = program.mapped(inside, program.in_specs)(*args)
    close(found, phalanx.jit(phalanx.grad(everywhere, (0, 1)))(*args))
    stacked = (P(program.names), P(program.names))
    found = program.mapped(inside, stacked, check_vma=False)(*args)
    close(found, phalanx.jit(by_vmap(inside, program.axes, program.in_specs, stacked))(*args))


@fewer
@given(drawn(most_steps=1))
def test_derivatives_of_derivatives(program):
    """A gradient that is taken inside is differentiated outside."""
    note(f"{program}")
    args = program.arguments()

    def local(x, w):
        return lax.psum(jnp.sum(program.lane(x, w)[0] ** 3), program.names)

    whole = program.mapped(local, P())
    inside = program.mapped(phalanx.grad(local, 1), program.w_spec)

    def slope(gradient):
        return phalanx.grad(lambda x, w: jnp.sum(jnp.sin(gradient(x, w))), (0, 1))

    wanted = phalanx.jit(slope(phalanx.grad(whole, 1)))(*args)
    close(phalanx.jit(slope(inside))(*args), wanted)
