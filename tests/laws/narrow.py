"""What the law of narrow dtypes tries: primitives and functions, of integers of two and four bits.

The oracle is the same in int32, cut to the lowest bits of the dtype of each result.
"""

import importlib
import pkgutil

import ml_dtypes
import numpy as np
from msgspec.structs import replace

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx import lax
from phalanx.base import dtypes
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import ArrayType, operand_type
from phalanx.laws.primitives import Case
from tests.exemptions import exempt

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

NAMES = ("int2", "uint2", "int4", "uint4")
DTYPES = {name: np.dtype(getattr(ml_dtypes, name)) for name in NAMES}
WIDE = np.dtype("int32")
FLOATS = {t.name: t for t in sorted(dtypes.FLOAT8, key=str)}
FLOAT32 = np.dtype("float32")
WITHOUT_ZERO = FLOATS["float8_e8m0fnu"]  # nor signs: what fills empty places is NaN
FILLING = {("pmax", 1), ("psum", 1)}  # where some lanes have part in a group, and others in none


def drawn(dtype, shape):
    limits = ml_dtypes.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return np.random.default_rng(3).integers(low, high, shape, endpoint=True).astype(dtype)


def require_cut(got, wide, who):
    """``got`` is ``wide`` in its own dtypes."""
    got, wide = map(phalanx.tree.leaves, (got, wide))
    for x, y in zip(got, wide, strict=True):
        expected = np.asarray(y).astype(x.dtype)
        np.testing.assert_array_equal(np.asarray(x), expected, err_msg=str(who))


# ---- primitives ---------------------------------------------------------------------------------


def in_place(x, kinds, dtype):
    """``x``, an operand or a parameter, of ``dtype`` where its own is one of ``kinds``."""
    if isinstance(x, np.dtype):
        return dtype if x.kind in kinds else x
    if isinstance(x, ArrayType) and isinstance(x.dtype, np.dtype):
        return x.update(dtype=in_place(x.dtype, kinds, dtype))
    return x


def substituted(example, kinds, dtype):
    return replace(
        example,
        args=tuple([in_place(a, kinds, dtype) for a in example.args]),
        params={k: in_place(v, kinds, dtype) for k, v in example.params.items()},
    )


def applies(prim, example, kinds, dtype, wide):
    """Whether something is substituted, and the type rules take it."""
    kept = [substituted(example, kinds, t) for t in (dtype, wide)]
    if (kept[0].args, kept[0].params) == (example.args, example.params):
        return False
    try:
        for e in kept:
            args = [a if isinstance(a, ArrayType) else operand_type(a) for a in e.args]
            prim.type(*args, **e.params)
    except (TypeError, ValueError, IndexError, AttributeError, NameError):
        return False
    return True


def cases():
    """Names of primitives, numbers of their examples, and the kinds that are substituted."""
    return [
        (name, number, kinds)
        for name, prim in sorted(REGISTRY.items())
        if not exempt("narrow-integers", f"primitives.{name}")
        for number, example in enumerate(prim.examples)
        for kinds in ("f", "iu")
        if applies(prim, example, kinds, DTYPES["int2"], WIDE)
    ]


def float_cases():
    """Names of primitives, numbers of their examples, and names of dtypes."""
    return [
        (name, number, dtype)
        for name, prim in sorted(REGISTRY.items())
        if not exempt("narrow-floats", f"primitives.{name}")
        for number, example in enumerate(prim.examples)
        if applies(prim, example, "f", FLOATS["float8_e5m2"], FLOAT32)
        for dtype in FLOATS
        if (name, number) not in FILLING or FLOATS[dtype] != WITHOUT_ZERO
    ]


def check_primitive(name, number, kinds, dtype):
    prim, dtype = REGISTRY[name], DTYPES[dtype]
    example = prim.examples[number]
    case, oracle = (Case(prim, substituted(example, kinds, t)) for t in (dtype, WIDE))
    xs = [drawn(dtype, x.shape) if x.dtype == dtype else x for x in case.operands()]
    wide = [x.astype(WIDE) if x.dtype == dtype else x for x in xs]
    require_cut(phalanx.jit(case)(*xs), phalanx.jit(oracle)(*wide), name)


def positive(dtype, shape):
    """Numbers that every float has, with their quotients: of one sign, and no zero."""
    drawn = np.random.default_rng(3).choice([0.5, 1.0, 1.5, 2.0, 3.0, 4.0], shape)
    return np.asarray(drawn, FLOAT32).astype(dtype)


def check_floats(name, number, dtype):
    """An operation of floats of a byte or less is that of float32, rounded; sums may be rounded
    more than once, so that they differ by two of the last place."""
    prim, dtype = REGISTRY[name], FLOATS[dtype]
    example = prim.examples[number]
    case, oracle = (Case(prim, substituted(example, "f", t)) for t in (dtype, FLOAT32))
    xs = [positive(dtype, x.shape) if x.dtype == dtype else x for x in case.operands()]
    wide = [x.astype(FLOAT32) if x.dtype == dtype else x for x in xs]
    pairs = map(phalanx.tree.leaves, (phalanx.jit(case)(*xs), phalanx.jit(oracle)(*wide)))
    once = prim.elements.fused or prim.elements.copied or dtype == WITHOUT_ZERO
    allowed = 0 if once else 2 * float(ml_dtypes.finfo(dtype).eps)
    for got, expected in zip(*pairs, strict=True):
        found, right = (np.asarray(x).astype(got.dtype).astype(float) for x in (got, expected))
        np.testing.assert_allclose(found, right, rtol=allowed if got.dtype == dtype else 0)


# ---- functions ----------------------------------------------------------------------------------


def mesh():
    return phalanx.make_mesh((4,), ("i",), devices=phalanx.devices()[:4])


def cut(x):
    return phalanx.device_put(x, phalanx.NamedSharding(mesh(), phalanx.P("i")))


def over(f):
    """``f`` in shard_map and in pmap, which do the same of one element a device."""

    def both(x):
        rows = phalanx.shard_map(
            f, mesh=mesh(), in_specs=phalanx.P("i"), out_specs=phalanx.P("i"), check_vma=False
        )
        lanes = phalanx.pmap(f, axis_name="i", devices=phalanx.devices()[:4])
        return rows(x), lanes(x[:4])

    return both


FUNCTIONS = {
    "sort": jnp.sort,
    "descending": lambda x: jnp.sort(x, axis=0, descending=True),
    "argsort": jnp.argsort,
    "keys": lambda x: lax.sort((x, x + 1, x), num_keys=2),
    "places": lambda x: lax.sort((jnp.arange(x.size), x.ravel()), num_keys=1),
    "lexsort": lambda x: jnp.lexsort((x, x)),
    "top_k": lambda x: lax.top_k(x, 1),
    "unique": lambda x: jnp.unique(x, size=8),
    "sums": lambda x: jnp.cumsum(x, axis=0, dtype=x.dtype),
    "products": lambda x: jnp.prod(x, dtype=x.dtype),
    "extrema": lambda x: (x.max(0), x.min(), jnp.argmax(x), jnp.argmin(x)),
    "concatenate": lambda x: jnp.concatenate([x, x[::-1], x]),
    "stack": lambda x: jnp.stack([x, x + 1], 1),
    "roll": lambda x: jnp.roll(x, jnp.argmax(x)),
    "pad": lambda x: (jnp.pad(x, 1, constant_values=1), jnp.pad(x, 1, mode="wrap")),
    "repeat": lambda x: (jnp.repeat(x, 3), jnp.tile(x, 3)),
    "copies": lambda x: (x.T.copy(), x.reshape(-1)[::-1], x[::2]),
    "indices": lambda x: (x[jnp.array([0, -1])], jnp.take_along_axis(x, (x * 0).astype(int), 0)),
    "set": lambda x: (x.at[0].set(1), x.at[::2].set(0)),
    "add at": lambda x: x.at[jnp.array([0, 0])].add(1),
    "min at": lambda x: x.at[jnp.array([0, 0])].min(0).at[1].multiply(1),
    "dot": lambda x: (jnp.dot(x, x.T), jnp.einsum("i...,i...->i", x, x), jnp.kron(x, x)),
    "window": lambda x: lax.reduce_window(
        x, np.array(0, x.dtype), lax.add, (2,) * x.ndim, (1,) * x.ndim, "SAME"
    ),
    "arithmetic": lambda x: (x * x + 1, -x, abs(x), ~x, x & 1, x << 1, jnp.sign(x), x.clip(0, 1)),
    "compare": lambda x: (x < 1, jnp.where(x > 0, x, 0), x.astype(bool)),
    "convert": lambda x: x.astype("float32").astype(x.dtype) + x.astype("int8").astype(x.dtype),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, jnp.stack([c, y])), x[0], x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sort(c) + 0 * x, x),
    "map": lambda x: phalanx.vmap(lambda y: jnp.sort(jnp.stack([0 * y, y]), 0))(x),
    "constant": lambda x: phalanx.jit(lambda: jnp.sort(x) + 1)(),
    "slices": lambda x: lax.dynamic_update_slice_in_dim(x, x[:1], jnp.argmin(x) * 0, 0),
    "triangle": lambda x: jnp.tril(jnp.atleast_2d(x)),
    "prefixes": lambda x: lax.associative_scan(jnp.add, x),
    "cut": lambda x: (cut(x) + 1, jnp.sort(cut(x)), jnp.roll(cut(x), 1, 0)),
    "cut and joined": lambda x: jnp.concatenate([cut(x), cut(x)]),
    "sums of cuts": lambda x: (jnp.sum(cut(x), dtype=x.dtype), cut(x).max(), jnp.dot(cut(x), x.T)),
    "results spread": lambda x: phalanx.jit(
        lambda y: y + 1, out_shardings=phalanx.NamedSharding(mesh(), phalanx.P())
    )(cut(x)),
    "operands differ": lambda x: cut(x) + phalanx.device_put(
        x, phalanx.NamedSharding(mesh(), phalanx.P(None, "i"))
    ),
    "spread": lambda x: phalanx.device_put(cut(x), phalanx.NamedSharding(mesh(), phalanx.P())),
    "psum": over(lambda x: lax.psum(x, "i")),
    "pmax": over(lambda x: lax.pmax(x, "i") + lax.pmin(x, "i")),
    "ppermute": over(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])),
    "all_gather": over(lambda x: lax.all_gather(x, "i")),
    "all_to_all": over(lambda x: lax.all_to_all(jnp.stack([x] * 4), "i", 0, 0)),
    "psum_scatter": over(lambda x: lax.psum_scatter(jnp.stack([x] * 4), "i")),
}  # fmt: skip


def check_function(name, dtype, shape):
    f, x = FUNCTIONS[name], drawn(DTYPES[dtype], shape)
    wide = f(jnp.asarray(x.astype(WIDE)))
    require_cut(f(jnp.asarray(x)), wide, name)
    require_cut(phalanx.jit(f)(jnp.asarray(x)), wide, name)


def check_ways(dtype, shape):
    """Into arrays and out of them."""
    x = drawn(DTYPES[dtype], shape)
    a = jnp.asarray(x)
    assert a.tolist() == x.tolist() and a.dtype == x.dtype
    for y in (a, phalanx.device_put(x), phalanx.jit(lambda: a)(), phalanx.jit(lambda: x)()):
        np.testing.assert_array_equal(np.asarray(y), x)
