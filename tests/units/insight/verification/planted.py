"""Faults that are planted into rules of the engine, and programs in which they show.

Of each program, one line runs into the fault; it ends in ``# here``.
"""

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec.structs import force_setattr, replace

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, random
from phalanx.control import branch
from phalanx.core.primitive import REGISTRY
from phalanx.primitives import collective, lanes
from phalanx.primitives.basis import add

RNG = np.random.default_rng(0)
DIGITS = np.arange(4, dtype=np.int32)


@dataclass(frozen=True)
class Fault:
    """A fault, and a function of one lane, or of arrays over a mesh, that runs into it."""

    name: str
    plant: object  # a context manager
    run: object
    lanes: int = 16
    shape: tuple = (3, 4)
    over: str = "lanes"

    def step(self):
        if self.over == "mesh":
            return phalanx.jit(self.run)
        return phalanx.pmap(lambda x: self.run(x), "i")

    def arguments(self):
        shape = self.shape if self.over == "mesh" else (self.lanes, *self.shape)
        return (RNG.normal(size=shape).astype("f"),)

    @property
    def line(self):
        lines, first = inspect.getsourcelines(self.run)
        (number,) = [k for k, line in enumerate(lines) if "# here" in line]
        return f"{inspect.getsourcefile(self.run)}:{first + number}"


@contextmanager
def in_place_of(owner, name, make):
    """``make`` of what ``owner`` has under ``name``, in its place."""
    before = getattr(owner, name)
    put = force_setattr if hasattr(owner, "__struct_fields__") else setattr
    put(owner, name, make(before))
    phalanx.clear_caches()
    try:
        yield
    finally:
        put(owner, name, before)
        phalanx.clear_caches()


def rule(primitive, which, make):
    return partial(in_place_of, REGISTRY[primitive], which, make)


# ---- what rules do wrongly -----------------------------------------------------------------------


def doubled(batch):
    """A batching rule with a wrong factor."""

    def wrong(axis, values, dims, /, **params):
        out, dim = batch(axis, values, dims, **params)
        return (tuple([add(y, y) for y in out]) if isinstance(out, tuple) else add(out, out)), dim

    return wrong


def turned(batch):
    """A batching rule that gives each lane what the next one should get."""

    def wrong(axis, values, dims, /, **params):
        out, dim = batch(axis, values, dims, **params)
        if isinstance(out, tuple):
            return tuple([jnp.roll(y, 1, d) for y, d in zip(out, dim, strict=True)]), dim
        return (out if dim is None else jnp.roll(out, 1, dim)), dim

    return wrong


def of_the_first(batch):
    """A batching rule that gives all lanes of a device what its first one has."""

    def wrong(axis, values, dims, /, **params):
        out, dim = batch(axis, values, dims, **params)
        if isinstance(out, tuple):
            return tuple([first(y, d) for y, d in zip(out, dim, strict=True)]), dim
        return first(out, dim), dim

    return wrong


def first(y, dim):
    return y if dim is None else jnp.broadcast_to(lax.slice_in_dim(y, 0, 1, axis=dim), y.shape)


def on_the_device_alone(batch):
    """A batching rule that forgets the lanes of other devices."""
    return lambda axis, values, dims, /, **params: batch(
        replace(axis, rest=None), values, dims, **params
    )


def lost(lower):
    """A lowering that leaves the exchange out."""
    return lambda b, *xs, **params: list(xs)


def lost_of_one(lower):
    return lambda b, x, **params: x


def twice(lower):
    def wrong(b, *xs, **params):
        return [b.add(y, y) for y in lower(b, *xs, **params)]

    return wrong


def along_the_first(lower):
    """A lowering that forgets all axes but the first."""
    return lambda b, *xs, axes, **params: lower(b, *xs, axes=axes[:1], **params)


def turned_round(lower):
    return lambda b, x, perm, **params: lower(b, x, perm=tuple((t, s) for s, t in perm), **params)


def zero(lower):
    return lambda b, **params: b.constant(0, np.dtype("int32"))


def unmasked(mask):
    return lambda axis, x, identity: x


def the_last(selected):
    return lambda takers, values: values[-1]


# ---- programs ------------------------------------------------------------------------------------


def elementwise(name):
    """A lane that uses an elementwise function in one line."""
    f = getattr(jnp, name)

    def lane(x):
        y = x * 0.5 + 0.1
        y = f(y)  # here
        return y - x

    return lane


def product(x):
    y = x + 1
    y = y @ x.T  # here
    return y + 1


def total(x):
    y = x - 1
    y = y.sum(0)  # here
    return y - 1


def largest(x):
    y = x - 1
    y = y.max(1)  # here
    return y - 1


def running(x):
    y = x - 1
    y = jnp.cumsum(y, 0)  # here
    return y - 1


def transposed(x):
    y = x - 1
    y = jnp.transpose(y)  # here
    return y - 1


def joined(x):
    y = x - 1
    y = jnp.concatenate([y, x])  # here
    return y - 1


def taken(x):
    y = x - 1
    y = y[:, DIGITS[::-1]]  # here
    return y - 1


def added(x):
    y = x - 1
    y = y.at[:, DIGITS].add(1.0)  # here
    return y - 1


def sliced(x):
    i = (x.sum() > 0).astype("int32")
    y = lax.dynamic_slice(x, (i, 0), (2, 2))  # here
    return y - 1


def in_order(x):
    y = x - 1
    y = jnp.sort(y, 1)  # here
    return y - 1


def chosen(x):
    y = x - 1
    y = jnp.where(y > 0, y, x)  # here
    return y - 1


def convolved(x):
    y = x[None, None]
    y = lax.conv(y, jnp.ones((1, 1, 2, 2)), (1, 1), "VALID")  # here
    return y - 1


def reshaped(x):
    y = x - 1
    y = y.reshape(2, 6)  # here
    return y - 1


def drawn(x):
    number = lax.axis_index("i")
    key = random.fold_in(random.key(0), number)  # here
    return x + random.normal(key, x.shape)


def drawn_by_number(x):
    number = lax.axis_index("i")  # here
    return x + random.normal(random.fold_in(random.key(0), number), x.shape)


def numbered(x):
    i = lax.axis_index("i")  # here
    return x + i


def summed(x):
    y = x - 1
    y = lax.psum(y, "i")  # here
    return y - x


def averaged(x):
    y = jnp.sin(x)
    y = lax.pmean(y, "i")  # here
    return y - x


def summed_in_groups(x):
    groups = [list(range(0, 16, 2)), list(range(1, 16, 2))]
    y = lax.psum(x, "i", axis_index_groups=groups)  # here
    return y - x


def maximum(x):
    y = x - 1
    y = lax.pmax(y, "i")  # here
    return y - x


def gathered(x):
    y = x - 1
    y = lax.all_gather(y, "i")  # here
    return jnp.tanh(y).sum(1)


def scattered(x):
    y = jnp.outer(jnp.arange(16.0), x[0])
    y = lax.psum_scatter(y, "i")  # here
    return y - 1


def exchanged(x):
    y = jnp.outer(jnp.arange(16.0), x[0])
    y = lax.all_to_all(y, "i", 0, 0)  # here
    return y - 1


def exchanged_by_8(x):
    y = jnp.outer(jnp.arange(8.0), x[0])
    y = lax.all_to_all(y, "i", 0, 0)  # here
    return y - 1


def passed_on(x):
    y = x - 1
    y = lax.ppermute(y, "i", [(k, (k + 1) % 16) for k in range(16)])  # here
    return y - x


def passed_on_by_8(x):
    y = x - 1
    y = lax.ppermute(y, "i", [(k, (k + 1) % 8) for k in range(8)])  # here
    return y - x


def branched(x):
    y = x - 1
    y = lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, y)  # here
    return y - 1


def summed_in_a_loop(x):
    def step(c, _):
        c = jnp.sin(c) + 0.1
        c = lax.pmean(c, "i")  # here
        return c + 0.1, None

    return lax.scan(step, x, None, length=3)[0]


def slope_of_mean(x):
    def loss(w):
        y = jnp.sin(w * x)
        return y.sum()

    g = phalanx.grad(loss)(jnp.float32(1))
    g = lax.pmean(g, "i")  # here
    return g


def mesh():
    return phalanx.make_mesh((4, 2), ("a", "b"))


def blocks(x):
    def block(x):
        y = jnp.sin(x).sum()
        return lax.psum(y, ("a", "b"))  # here

    return phalanx.shard_map(block, mesh=mesh(), in_specs=P("a", "b"), out_specs=P())(x)


def batched(name, primitive, how, run):
    return Fault(
        f"{name}: batch of {primitive}, {how.__name__}", rule(primitive, "batch", how), run
    )


def lowered(primitive, how, run, **options):
    plant = rule(primitive, "lower", how)
    return Fault(f"lowering of {primitive}, {how.__name__}", plant, run, **options)


@contextmanager
def padding_unmasked():
    with (
        in_place_of(lanes, "without_padding", unmasked),
        in_place_of(collective, "without_padding", unmasked),
    ):
        yield


FAULTS = [
    *[
        batched(name, name, how, elementwise(name))
        for name, how in (
            ("sin", doubled),
            ("exp", turned),
            ("tanh", doubled),
            ("log1p", turned),
            ("floor", doubled),
        )
    ],
    batched("products", "dot_general", doubled, product),
    batched("products", "dot_general", turned, product),
    batched("sums", "reduce_sum", doubled, total),
    batched("maxima", "reduce_max", turned, largest),
    batched("running sums", "cumsum", doubled, running),
    batched("transposes", "transpose", turned, transposed),
    batched("joining", "concatenate", turned, joined),
    batched("indexing", "gather", turned, taken),
    batched("writing", "scatter_add", doubled, added),
    batched("slices", "dynamic_slice", turned, sliced),
    batched("sorting", "sort", turned, in_order),
    batched("choices", "select", turned, chosen),
    batched("convolutions", "conv_general_dilated", doubled, convolved),
    batched("shapes", "reshape", turned, reshaped),
    batched("keys", "threefry2x32", of_the_first, drawn),
    batched("numbers", "axis_index", of_the_first, numbered),
    batched("sums", "psum", on_the_device_alone, summed),
    batched("sums", "psum", doubled, averaged),
    batched("sums", "psum", turned, summed_in_groups),
    batched("sums", "psum", on_the_device_alone, summed_in_a_loop),
    batched("means of slopes", "psum", on_the_device_alone, slope_of_mean),
    batched("maxima", "pmax", on_the_device_alone, maximum),
    batched("gathering", "all_gather", doubled, gathered),
    batched("scattering", "psum_scatter", turned, scattered),
    batched("exchanging", "all_to_all", turned, exchanged),
    batched("passing", "ppermute", turned, passed_on),
    lowered("psum", lost, summed, lanes=8),
    lowered("psum", twice, averaged, lanes=8),
    lowered("all_to_all", lost_of_one, exchanged_by_8, lanes=8),
    lowered("ppermute", turned_round, passed_on_by_8, lanes=8),
    lowered("axis_index", zero, drawn_by_number, lanes=8),
    lowered("psum", along_the_first, blocks, over="mesh", shape=(8, 4)),
    Fault("padding in sums", padding_unmasked, summed, lanes=11),
    Fault("padding in means", padding_unmasked, averaged, lanes=13),
    Fault("branches", partial(in_place_of, branch, "_selected", the_last), branched),
]
