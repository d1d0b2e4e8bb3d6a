"""What a call gives depends on the context in which it is made, and on no call before it.

Calls are made in one context after the other, forth and back, while tables fill: each gives what it
gives alone, when all tables were just emptied. Contexts are all options that a block can override,
meshes that are set, axes that are in scope, and transformations around.
"""

import contextlib
import logging
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, nn
from phalanx.base.config import OPTIONS, config
from phalanx.compat.experimental.pallas import call as pallas
from phalanx.sharding import AxisType, NamedSharding
from phalanx.transforms.stage import evaluate

if phalanx.device_count() < 8:
    pytest.skip("the contexts are of a mesh of 2 x 4", allow_module_level=True)

# ---- contexts -----------------------------------------------------------------------------------

VALUES = {  # of options, beside flags
    "numpy_rank_promotion": ["raise", "warn"],
    "numpy_dtype_promotion": ["strict"],
    "default_prng_impl": ["rbg", "unsafe_rbg"],
    "threefry_partitionable": [False],
    "auto_pcast": [False],
    "legacy_prng_key": ["error", "warn"],
    "debug_replicated": [2],
    "default_matmul_precision": ["bfloat16", "highest"],
    "transfer_guard_host_to_device": ["log", "log_explicit", "disallow", "disallow_explicit"],
    "transfer_guard_device_to_host": ["log", "disallow"],
    "transfer_guard_device_to_device": ["log", "disallow"],
}
# They are about what is in tables, or change nothing but what is logged.
ABOUT_TABLES = {"no_tracing", "explain_cache_misses", "log_compiles"}


def overridden(name, value):
    return lambda call: within(config.override(**{name: value}), call)


def within(block, call):
    with block:
        return call()


def mesh(kind, *sizes):
    return phalanx.make_mesh(sizes, ("x", "y"), (kind, kind))


def over(kind, *sizes):
    return lambda call: within(phalanx.set_mesh(mesh(kind, *sizes)), call)


def over_types_alone(call):
    chosen = mesh(AxisType.Explicit, 2, 4).abstract_mesh
    return within(phalanx.sharding.use_abstract_mesh(chosen), call)


def in_lanes(size, around=phalanx.vmap):
    return lambda call: around(lambda _: call(), axis_name="i")(jnp.zeros(size))


def at_positions(name, *sizes):
    def context(call):
        whole = mesh(AxisType.Auto, *sizes)
        parts = phalanx.shard_map(
            lambda _: call(), mesh=whole, axis_names={name}, in_specs=P(name), out_specs=P(),
            check_vma=False,
        )  # fmt: skip
        return parts(jnp.zeros(sizes["xy".index(name)]))

    return context


def differentiated(call):
    return phalanx.jvp(lambda _: call(), (1.0,), (1.0,))[0]


def known_now(call):
    block = phalanx.ensure_compile_time_eval
    return phalanx.jit(lambda: within(block(), call))()


CONTEXTS = {
    "nothing": lambda call: call(),
    "mesh": over(AxisType.Auto, 2, 4),
    "other mesh": over(AxisType.Auto, 4, 2),
    "explicit mesh": over(AxisType.Explicit, 2, 4),
    "other explicit mesh": over(AxisType.Explicit, 4, 2),
    "types of a mesh": over_types_alone,
    "2 lanes": in_lanes(2),
    "3 lanes": in_lanes(3),
    "2 lanes of pmap": in_lanes(2, phalanx.pmap),
    "4 lanes of pmap": in_lanes(4, phalanx.pmap),
    "positions": at_positions("x", 2, 4),
    "other positions": at_positions("x", 2, 2),
    "jit": lambda call: phalanx.jit(lambda: call())(),
    "tangents": differentiated,
    "known now": known_now,
    "scope": lambda call: within(phalanx.named_scope("scope"), call),
    "another device": overridden("default_device", phalanx.devices()[-1]),
    **{
        f"{name}={value}": overridden(name, value)
        for name, option in OPTIONS.items()
        if (option.tracing or option.watching) and name not in ABOUT_TABLES
        for value in VALUES.get(name, [True] if option.default is False else [])
    },
}


def test_every_option_of_a_block_is_a_context():
    free = {name for name, option in OPTIONS.items() if option.tracing or option.watching}
    tried = {name.partition("=")[0] for name in CONTEXTS} | {"default_device", "mesh"}
    assert free - tried == ABOUT_TABLES


# ---- calls --------------------------------------------------------------------------------------

ROWS = np.linspace(0.1, 1.7, 16, dtype=np.float32).reshape(4, 4)
ROW, WIDE = np.float32([0.3, -1, 2, 0.7]), np.arange(4.0)
WORDS = np.uint32([1, 2])
M, V = jnp.asarray(ROWS), jnp.asarray(ROW)


def size_in_scope():
    """How many lanes or positions there are of an axis, where there is one."""
    for name in "ixy":
        with contextlib.suppress(NameError):
            return lax.axis_size(name)
    return 0


def total_in_scope(x):
    for name in "ix":
        with contextlib.suppress(NameError):
            lax.axis_size(name)
            return lax.psum(x, name)
    return x


@phalanx.custom_vjp
def with_rule(x):
    return jnp.sin(x) * 2


def forward(x):
    return with_rule(x), (x, wide() + 10 * size_in_scope())


with_rule.defvjp(forward, lambda kept, ct: (ct * jnp.cos(kept[0]) * kept[1] * wide(),))


def wide():
    return jnp.asarray(0.1).dtype.itemsize


@phalanx.custom_jvp
def with_tangents(x):
    return x @ ROWS


with_tangents.defjvp(
    lambda xs, ts: (with_tangents(*xs), jnp.matmul(*ts, ROWS) * (wide() + size_in_scope()))
)


def looped(x):
    def step(carry, row):
        return carry + row @ ROWS * (1 + size_in_scope()), jnp.asarray(1.5)

    return lax.scan(step, x, ROWS)


def chosen(x):
    return lax.cond(x[0] > 0, lambda x: x * (2 + size_in_scope()), lambda x: x - 0.1, x)


def until(x):
    return lax.while_loop(lambda x: x[0] < 5, lambda x: x * 2 + jnp.ones(4) * size_in_scope(), x)


def inside(x):
    """A `shard_map` over axes that are left."""
    part = phalanx.shard_map(
        lambda x: x * lax.axis_size("y"), axis_names={"y"}, in_specs=P("y"), out_specs=P("y")
    )
    return part(x)


def constrained(x):
    return lax.with_sharding_constraint(x * 2, P("x"))


def programs(x):
    return x + pallas.num_programs(0)


def in_a_loop(x):
    return lax.fori_loop(0, 2, lambda _, x: programs(x), x)


def kernel(size, function):
    def written(out):
        out[...] = function(V * 0)

    return pallas.pallas_call(written, phalanx.ShapeDtypeStruct((4,), "float32"), grid=(size,))()


def in_programs(x):
    """Rules of the user's in a call, and in a loop."""
    x = phalanx.jit(lambda x: with_rule(x @ ROWS))(x)
    return lax.scan(lambda x, row: (with_tangents(x) * row, with_rule(x)), x, ROWS)[0]


JITTED = {f: phalanx.jit(f) for f in (looped, chosen, until, inside, constrained, programs)}
MAPPED = phalanx.pmap(lambda x: x * (1 + size_in_scope()) + 0.1)
PULL = phalanx.vjp(lambda x: with_rule(x @ ROWS), V)[1]
PUSH = phalanx.linearize(lambda x: with_tangents(jnp.sin(x)), V)[1]
HELD = phalanx.make_program(in_programs)(V)
COMPILED = phalanx.jit(looped).lower(V).compile()
MESH = mesh(AxisType.Explicit, 2, 4)
COLUMNS, LINES = (phalanx.device_put(ROWS, NamedSharding(MESH, s)) for s in (P(None, "x"), P("x")))


def of_held(x):
    return evaluate(HELD, [x])[0]


def of_parts(call):
    """What it gives of arrays that lie over a mesh with Explicit axes, which is set."""
    return lambda: within(phalanx.set_mesh(MESH), call)


def left(**asked):
    return jnp.matmul(COLUMNS, LINES, precision=lax.Precision.HIGHEST, **asked)


LEFT = P(None, None, unreduced={"x"})
FAMILIES = {
    "arithmetic": {
        "add": lambda: jnp.add(M, V),
        "larger dtype than there is": lambda: (jnp.sum(V, dtype="float64"), V.astype("float64")),
        "written to integers": lambda: jnp.fill_diagonal(jnp.ones((2, 2), int), 1.5, inplace=False),
        "numbers": lambda: M[0] * 2 + 1,
        "narrow integers": lambda: jnp.add(np.int8([1, 100]), np.int32([5, 7])),
        "integers beside floats": lambda: jnp.add(np.int32([3]), V),
        "bounds": lambda: jnp.asarray(np.int8(3)) + 300,
        "log": lambda: jnp.log(-V),
        "quotient": lambda: lax.div(V, 0 * V),
        "where": lambda: jnp.where(V > 0, V, 0),
    },
    "creation": {
        "wide": lambda: (jnp.asarray(WIDE) + 1, jnp.arange(3), jnp.zeros(2, "float64")),
        "linspace": lambda: jnp.linspace(0, 1, 5),
        "filled": lambda: (jnp.ones(3), jnp.eye(2), jnp.full(2, 7)),
        "scalar": lambda: jnp.asarray(2.5),
        "put": lambda: phalanx.device_put(ROW),
        "size": lambda: jnp.asarray(size_in_scope()),
    },
    "parts": {
        "sum": lambda: (jnp.sum(M, 0), jnp.mean(np.arange(5))),
        "cumsum": lambda: jnp.cumsum(np.arange(5)),
        "sort": lambda: (jnp.argsort(V), jnp.sort(V)),
        "index": lambda: (M[1], M[np.array([0, 1])], M.at[0].add(1)),
        "shape by a value": lambda: jnp.nonzero(V > 0)[0],
        "number": lambda: jnp.asarray(float(V[0])),
    },
    "products": {
        "product": lambda: M @ M,
        "precise": lambda: jnp.matmul(M, M, precision=lax.Precision.HIGHEST),
        "einsum": lambda: jnp.einsum("ij,kj->ik", M, M),
        "dot": lambda: lax.dot(M, V),
        "layer": lambda: nn.gelu(nn.softmax(M) @ V),
    },
    "sums over devices": {
        "left": of_parts(lambda: left(out_sharding=LEFT)),
        "refused": of_parts(left),
        "taken": of_parts(lambda: left(out_sharding=P())),
        "sum left": of_parts(
            lambda: lax.reduce_sum(LINES, (0,), out_sharding=P(None, unreduced={"x"}))
        ),
        "sum": of_parts(lambda: LINES.sum(0)),
    },
    "functions": {
        "solve": lambda: jnp.linalg.solve(M + 3 * jnp.eye(4), V),
        "norm": lambda: jnp.linalg.norm(M),
        "fft": lambda: jnp.fft.fft(V),
        "inner function": lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(M, V),
    },
    "random": {
        "key": lambda: phalanx.random.key_data(phalanx.random.key(3)),
        "old key": lambda: phalanx.random.key_data(phalanx.random.PRNGKey(3)),
        "uniform": lambda: phalanx.random.uniform(phalanx.random.key(3), (5,)),
        "of words": lambda: phalanx.random.uniform(WORDS, (5,)),
        "split": lambda: phalanx.random.split(WORDS, 3),
        "choice": lambda: phalanx.random.choice(WORDS, 5, (3,)),
    },
    "loops": {
        "scan": lambda: looped(V),
        "cond": lambda: chosen(V),
        "while": lambda: until(V),
        "lanes": lambda: phalanx.vmap(chosen)(M),
        "map": lambda: lax.map(until, M),
    },
    "jit": {
        "scan": lambda: JITTED[looped](V),
        "cond": lambda: JITTED[chosen](V),
        "while": lambda: JITTED[until](V),
        "total": lambda: total_in_scope(V),
        "pmap": lambda: MAPPED(M),
    },
    "meshes": {
        "shard_map": lambda: inside(V),
        "shard_map in jit": lambda: JITTED[inside](V),
        "constraint": lambda: JITTED[constrained](V),
        "constrained": lambda: constrained(V),
    },
    "derivatives": {
        "rule": lambda: phalanx.grad(lambda x: with_rule(x).sum())(V),
        "jit": lambda: phalanx.grad(lambda x: JITTED[looped](x)[0].sum())(V),
        "tangents": lambda: phalanx.jacfwd(with_tangents)(V),
        "checkpoint": lambda: phalanx.grad(lambda x: phalanx.checkpoint(looped)(x)[0].sum())(V),
    },
    "kernels": {  # functions that ask for the grid
        "2 in jit": lambda: kernel(2, JITTED[programs]),
        "4 in jit": lambda: kernel(4, JITTED[programs]),
        "2 in a loop": lambda: kernel(2, in_a_loop),
        "4 in a loop": lambda: kernel(4, in_a_loop),
    },
    "held": {  # what was traced in no context
        "pull": lambda: PULL(V),
        "push": lambda: PUSH(V),
        "program": lambda: of_held(V),
        "gradient": lambda: phalanx.grad(lambda x: of_held(x).sum())(V),
        "gradient of lanes": lambda: phalanx.grad(lambda x: phalanx.vmap(of_held)(x).sum())(M),
        "lanes": lambda: phalanx.vmap(of_held)(M),
        "compiled": lambda: COMPILED(V),
    },
}


def given(call, context):
    """What the call gives: of each array its type, where it lies, and its numbers; or the error.

    And of what it warns, in Python's way and in the log.
    """
    with warnings.catch_warnings(record=True) as warned, logged() as lines:
        warnings.simplefilter("always")
        told = results_of(call, context)
    words = [(warning.category, worded(warning.message)) for warning in warned]
    return told, words, lines


def results_of(call, context):
    try:
        results = CONTEXTS[context](call)
    except Exception as error:
        return type(error).__name__, worded(error)
    told = phalanx.tree.map(_told, results)
    return phalanx.tree.leaves(told, is_leaf=lambda x: isinstance(x, tuple))


def worded(said):
    return re.sub(r" at \S+:\d+|0x[0-9a-f]+", "", str(said))


@contextlib.contextmanager
def logged():
    """The lines that the library logs in the block."""
    lines, handler, log = [], logging.Handler(), logging.getLogger("phalanx")
    handler.emit = lambda record: lines.append(worded(record.getMessage()))
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)


def _told(x):
    """A number of Python may be a result, and what each device has of a sum is one, too."""
    x = jnp.asarray(x)
    with config.override(transfer_guard_device_to_host="allow"):
        data = phalanx.random.key_data(x) if jnp.issubdtype(x.dtype, phalanx.dtypes.prng_key) else x
        numbers = [np.asarray(shard.data).tobytes() for shard in data.addressable_shards]
    return str(phalanx.typeof(x)), x.weak_type, str(x.sharding), x.committed, numbers


CHUNK = 4


def chunks():
    """Of the calls of each family, all contexts, a few at a time; what is none is among all."""
    source = random.Random(49)
    for family in FAMILIES:
        others = source.sample([*CONTEXTS][1:], len(CONTEXTS) - 1)
        for i in range(0, len(others), CHUNK):
            yield family, (next(iter(CONTEXTS)), *others[i : i + CHUNK])


@pytest.mark.parametrize(("name", "contexts"), [*chunks()])
def test_a_call_gives_what_it_gives_alone(name, contexts):
    calls, alone = FAMILIES[name], {}
    every = [(call, context) for call in calls for context in contexts]
    for call, context in every:
        phalanx.clear_caches()
        alone[call, context] = given(calls[call], context)
    phalanx.clear_caches()
    for call, context in random.Random(49).sample(every * 2, 2 * len(every)):
        assert given(calls[call], context) == alone[call, context], (call, context)


# ---- what a context is made of ------------------------------------------------------------------

VARIABLES = {
    "settings": "its key is in those of all tables",
    "trace": "tables of calls are for none; where there is one, programs are asked for by types",
    "axes": "`axes.scope()` is in the keys of all that runs functions of the user's",
    "enclosing shard_map": "its mesh is set, and its axes are in scope",
    "enclosing pmap or shard_map": "its axes are in scope",
    "_running": "its grid is in scope",
    "named scopes": "they are in lines, which change no result",
    "the operation replayed": "it is a line, which changes no result",
    "explicit": "transfers ask for it when they happen",
    "deciding": "what is kept with a program is added to it each time",
    "what a function warns of": "it is kept with the program, and said in each call",
    "_IN_TREE": "it is set while a tree is taken apart",
    "places": "it is set while bytes are read",
}


def test_every_context_variable_is_in_keys_or_changes_no_result():
    sources = Path(phalanx.__file__).parent.rglob("*.py")
    made = [re.findall(r'ContextVar\(\s*"([^"]+)"', file.read_text("utf-8")) for file in sources]
    assert {name for names in made for name in names} == set(VARIABLES)
