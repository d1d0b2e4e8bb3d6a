"""No table of the process grows for ever, whatever is done and however often.

What is done here is each time something new: shapes, dtypes, functions, classes, meshes, options,
texts, files. Then every container that a module or a class of ours holds either is of a kind that
states its limit, and within it, or has not grown.
"""

import gc
import itertools
import sys
import weakref
from collections import deque
from functools import _lru_cache_wrapper

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.recent import Recent
from phalanx.experimental import checkify
from phalanx.sharding import Mesh, NamedSharding, PartitionSpec, PmapSharding

WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
PLAIN = (dict, list, set, deque)


def of_ours():
    """The modules, the classes in them, and the objects of such that modules hold."""
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] == "phalanx" and m]
    yield from ((m.__name__, m) for m in modules)
    for m in modules:
        for name, value in vars(m).items():
            ours = isinstance(value, type) and value.__module__.startswith("phalanx")
            if ours or type(value).__module__.startswith("phalanx"):
                yield f"{m.__name__}.{name}", value


def containers():
    """The name of each container in these, itself, and the limit that it or its holder states."""
    found = {}
    for name, holder in of_ours():
        slots = [s for c in type(holder).__mro__ for s in getattr(c, "__slots__", ())]
        held = {s: getattr(holder, s, None) for s in slots} | dict(getattr(holder, "__dict__", {}))
        for key, value in held.items():
            if isinstance(value, (*PLAIN, *WEAK)) and not key.startswith("__"):
                stated = getattr(holder, "limit", None)
                found.setdefault(id(value), (f"{name}.{key}", value, stated or limit(value)))
    for value in gc.get_objects():
        if isinstance(value, _lru_cache_wrapper) and value.__module__.startswith("phalanx"):
            name = f"{value.__module__}.{value.__qualname__}"
            found[id(value)] = name, value, limit(value)
    return list(found.values())


def size(table):
    return table.cache_info().currsize if isinstance(table, _lru_cache_wrapper) else len(table)


def limit(table):
    """How large ``table`` may become by what it is; None: it does not say."""
    if isinstance(table, _lru_cache_wrapper):
        return table.cache_parameters()["maxsize"]
    if isinstance(table, deque):
        return table.maxlen
    return sys.maxsize if isinstance(table, WEAK) else getattr(table, "limit", None)


# ---- what is done -------------------------------------------------------------------------------


def shapes(n):
    def f(x, y):
        return jnp.einsum("ij,jk->ik", jnp.sin(x), y).reshape(-1) + jnp.arange(n * n)

    x, y = (px.ShapeDtypeStruct(s, jnp.float32) for s in ((n, 2 * n + 1), (2 * n + 1, n)))
    px.eval_shape(f, x, y)


def functions(n):
    class Scale:
        def __init__(self, by):
            self.by = by

    scale = Scale(n)
    f = px.jit(lambda x, by=n: lax.cond(x > by, jnp.sin, lambda x: x * scale.by, x))
    px.eval_shape(px.grad(f), 1.0)
    px.eval_shape(px.vmap(f), px.ShapeDtypeStruct((n,), jnp.float32))


def static_values(n):
    px.eval_shape(lambda x: lax.fori_loop(0, n, lambda i, x: x * n, x), 1.0)
    jnp.asarray(np.float32(n))
    jnp.result_type(*itertools.islice(itertools.cycle([np.int8, np.float32, 1.0, n]), n % 12 + 1))


def layouts(n):
    devices = px.devices()
    count = n % len(devices) + 1
    mesh = Mesh(np.array(devices[:count]), (f"axis {n}",))
    px.device_put(np.zeros((count, n), np.float32), NamedSharding(mesh, PartitionSpec(f"axis {n}")))
    lanes = PmapSharding(mesh, PartitionSpec(f"axis {n}"))
    lanes.shard_shape((n + 8, n)), lanes.devices_indices_map((n + 8, n))


def options(n):
    names = tuple([f"axis {n + i}" for i in range(n % 3 + 1)])
    mesh = Mesh(np.array(px.devices()[:1]).reshape([1] * len(names)), names)
    with px.config.override(mesh=mesh, default_device=px.devices()[n % 8]):
        px.eval_shape(jnp.cos, 1.0)
        jnp.asarray(1.0)


def texts(n):
    def f(x):
        checkify.check(x > 0, f"{n} is no good: {{x}}", x=x)
        return x

    px.eval_shape(checkify.checkify(f), 1.0)
    with pytest.raises((TypeError, ValueError)):
        jnp.zeros(n) @ jnp.zeros(n + 1)


def files(n):
    space = {"px": px, "jnp": jnp}
    exec(compile("px.eval_shape(lambda x: jnp.tan(x), 1.0)", f"<cell {n}>", "exec"), space)


WORK = (shapes, functions, static_values, layouts, options, texts, files)


def work(numbers):
    for n in numbers:
        for each in WORK:
            each(n)


def test_no_table_grows_beyond_what_it_says():
    before: dict[str, int] = {}
    for numbers in (range(1, 10), range(10, 20)):  # a pool may be empty at one of the two
        work(numbers)
        for name, table, _ in containers():
            before[name] = max(before.get(name, 0), size(table))
    work(range(20, 120))
    for name, table, most in containers():
        most = before.get(name, 0) if most is None else most
        assert size(table) <= most, f"{name} has {size(table)} entries, and may have {most}"


def test_nothing_is_left_once_they_are_cleared():
    work(range(20))
    px.clear_caches()
    for name, table, most in containers():
        if isinstance(table, (Recent, _lru_cache_wrapper)) and most is not None:
            assert size(table) == 0, f"{name} has {size(table)} entries"
