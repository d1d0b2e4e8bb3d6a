"""Functions of Python in programs, however these are transformed, are called on every platform.

Each way to call one, inside each transformation, is lowered for all of them. On GPUs there are as
many calls as on CPUs; TPUs send what such a function takes. What is refused, is refused alike.
"""

import re

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.sharding import NamedSharding, PartitionSpec

P = PartitionSpec
DEVICES = phalanx.device_count()
ROWS = np.ones((8, 4), np.float32)
ON_CPU, ON_GPU = (f"xla_ffi_python_{kind}_callback" for kind in ("cpu", "gpu"))


def like(x):
    return phalanx.ShapeDtypeStruct(x.shape, x.dtype)


def pure(how):
    return lambda x: phalanx.pure_callback(np.sin, like(x), x, vmap_method=how)


def said(report, ordered):
    def f(x):
        report(x, ordered=ordered)
        return x * 2

    return f


CALLS = {
    **{f"pure, {how}": pure(how) for how in ("sequential", "expand_dims", "broadcast_all")},
    "io": lambda x: phalanx.io_callback(np.cos, like(x), x),
    "io in order": lambda x: phalanx.io_callback(np.cos, like(x), x, ordered=True),
}
for in_order in (False, True):
    CALLS |= {
        f"print, {in_order}": said(lambda x, **how: phalanx.debug.print("{}", x, **how), in_order),
        f"debug, {in_order}": said(lambda x, **how: phalanx.debug.callback(id, x, **how), in_order),
    }


def with_tangent(f):
    g = phalanx.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * 3))
    return g


def with_cotangent(f):
    g = phalanx.custom_vjp(f)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (f(ct),))
    return g


def scanned(f):
    return lambda x: lax.scan(lambda c, r: (c + f(r), f(c)), x[0], x)


def slope(f):
    return phalanx.grad(lambda x: phalanx.tree.leaves(f(x))[0].sum())


OF_ONE = {
    "nothing": lambda f: f,
    "vmap": phalanx.vmap,
    "scan": scanned,
    "map": lambda f: lambda x: lax.map(f, x),
    "cond": lambda f: lambda x: lax.cond(x.sum() > 0, f, lambda x: x, x),
    "switch by lane": lambda f: phalanx.vmap(
        lambda x: lax.switch(x[0].astype(int), [f, lambda x: x], x)
    ),
    "while": lambda f: lambda x: lax.while_loop(lambda v: v.sum() > 1, lambda v: f(v) / 2, x),
    "while, asked": lambda f: (
        lambda x: lax.while_loop(lambda v: f(v).sum() > 1, lambda v: v / 2, x)
    ),
    "fori": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, v: f(v), x),
    "jvp": lambda f: lambda x: phalanx.jvp(with_tangent(f), (x,), (x,)),
    "a rule for tangents": lambda f: slope(with_tangent(f)),
    "a rule for cotangents": lambda f: slope(with_cotangent(f)),
    "checkpoint": lambda f: slope(phalanx.checkpoint(lambda x: with_tangent(f)(x) * x)),
    "scan, its gradient": lambda f: slope(scanned(with_tangent(f))),
}


def over(axes):
    names = tuple(axes)
    return phalanx.make_mesh(tuple(axes.values()), names)


def blocks(f, **axes):
    mesh = over(axes)
    return phalanx.shard_map(
        f, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names=frozenset("a")
    )


def cut(f):
    return phalanx.jit(f, in_shardings=NamedSharding(over({"a": 8}), P("a")))


OF_SEVERAL = {
    "pmap": phalanx.pmap,
    "pmap with a sum": lambda f: phalanx.pmap(lambda x: lax.psum(f(x), "i"), "i"),
    "blocks": lambda f: blocks(f, a=8),
    "blocks along one axis": lambda f: blocks(f, a=4, b=2),
    "a loop in blocks": lambda f: blocks(lambda x: lax.map(f, x), a=8),
    "pmap in a loop": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, x: phalanx.pmap(f)(x), x),
    "cut": cut,
}


def called(f, platform):
    """How often the program for ``platform`` calls, or why there is none."""
    try:
        text = phalanx.jit(f).trace(ROWS).lower(lowering_platforms=(platform,)).as_text()
    except (ValueError, TypeError) as e:
        return str(e)
    if platform == "tpu":
        assert "custom_call" not in text or "xla_ffi" not in text
        return "stablehlo.send" in text
    return len(re.findall(f"@{ON_CPU if platform == 'cpu' else ON_GPU}", text))


@pytest.mark.parametrize("way", OF_ONE)
def test_calls_in_transformed_programs(way):
    called_everywhere(OF_ONE[way])


@pytest.mark.skipif(DEVICES != 8, reason="they are over eight devices")
@pytest.mark.parametrize("way", OF_SEVERAL)
def test_calls_in_programs_over_devices(way):
    called_everywhere(OF_SEVERAL[way])


def called_everywhere(transformed):
    there = []
    for call in CALLS.values():
        on = {p: called(transformed(call), p) for p in ("cpu", "cuda", "rocm", "tpu")}
        assert on["cpu"] == on["cuda"] == on["rocm"], on
        assert on["tpu"] == (on["cpu"] if isinstance(on["cpu"], str) else on["cpu"] > 0)
        there.append(isinstance(on["cpu"], int) and on["cpu"] > 0)
    assert sum(there) > len(CALLS) // 2
