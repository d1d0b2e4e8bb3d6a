"""The benchmarks of calls: what the library does besides computing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks import transformer
from benchmarks.case import DEVICES, case


@case("jit call, 1 argument")
def jit_one(np: Any, api: Any) -> Callable:
    f, x = api.jit(lambda x: x + 1), api.device_put(np.float32([1]))
    return lambda: f(x)


@case("jit call, 100 arguments")
def jit_many(np: Any, api: Any) -> Callable:
    f = api.jit(lambda xs: [x + 1 for x in xs])
    xs = [api.device_put(np.float32([i])) for i in range(100)]
    return lambda: f(xs)


@case("jit call, a dict of arrays")
def jit_dict(np: Any, api: Any) -> Callable:
    f = api.jit(lambda d: d["a"] + d["b"])
    d = {name: api.device_put(np.float32([1])) for name in "abcde"}
    return lambda: f(d)


@case("jit call, arguments by keyword")
def jit_keywords(np: Any, api: Any) -> Callable:
    f, x = api.jit(lambda x, y: x + y), api.device_put(np.float32([1]))
    return lambda: f(x, y=x)


@case("jit call, a static argument")
def jit_static(np: Any, api: Any) -> Callable:
    f = api.jit(lambda x, n: x + n, static_argnums=1)
    x = api.device_put(np.float32([1]))
    return lambda: f(x, 3)


@case("eager sum over an axis, by keyword")
def eager_keyword(np: Any, api: Any) -> Callable:
    x = api.device_put(np.ones((8, 8), np.float32))
    return lambda: api.numpy.sum(x, axis=0)


@case("eager operation")
def eager(np: Any, api: Any) -> Callable:
    x = api.device_put(np.ones((8, 8), np.float32))
    return lambda: x + x


@case("eager gradient")
def eager_gradient(np: Any, api: Any) -> Callable:
    jnp = api.numpy
    gradient = api.grad(lambda w: jnp.sum(jnp.tanh(w @ w) * w))
    w = api.device_put(np.full((8, 8), 0.1, np.float32))
    return lambda: gradient(w)


def mapped(np: Any, api: Any, f: Callable, *shape: int) -> tuple[Callable, Any]:
    """`f` over eight devices, and an argument that lies there already."""
    placed = api.pmap(lambda x: x + 0.0)(np.ones((DEVICES, *shape), np.float32))
    return api.pmap(f, axis_name="i"), placed


@case("pmap call, sharded input")
def pmap_sharded(np: Any, api: Any) -> Callable:
    f, x = mapped(np, api, lambda x: x + 1, 16)
    return lambda: f(x)


@case("pmap call, NumPy input")
def pmap_numpy(np: Any, api: Any) -> Callable:
    f, _ = mapped(np, api, lambda x: x + 1, 16)
    x = np.ones((DEVICES, 16), np.float32)
    return lambda: f(x)


@case("pmap call, psum", kind="waits")
def pmap_psum(np: Any, api: Any) -> Callable:
    f, x = mapped(np, api, lambda x: api.lax.psum(x, "i"), 16)
    return lambda: f(x)


@case("pmap call, 100 leaves")
def pmap_tree(np: Any, api: Any) -> Callable:
    f, x = mapped(np, api, lambda tree: {k: v + 1 for k, v in tree.items()}, 16)
    tree = {f"leaf {i}": x for i in range(100)}
    return lambda: f(tree)


@case("x[i] of a pmap result")
def index(np: Any, api: Any) -> Callable:
    f, x = mapped(np, api, lambda x: x + 1, 1024)
    y = f(x)
    return lambda: y[3]


def rows(np: Any, api: Any, count: int) -> tuple[Any, list[Any]]:
    """A sharding of rows over eight devices, and arrays that lie so."""
    mesh = api.make_mesh((DEVICES,), ("data",))
    sharding = api.NamedSharding(mesh, api.P("data"))
    return sharding, [api.device_put(np.full((DEVICES, 16), float(i), np.float32), sharding)
                      for i in range(count)]  # fmt: skip


@case("jit call, 1 sharded argument")
def jit_sharded(np: Any, api: Any) -> Callable:
    _, (x,) = rows(np, api, 1)
    f = api.jit(lambda x: x + 1)
    return lambda: f(x)


@case("jit call, 100 sharded arguments")
def jit_many_sharded(np: Any, api: Any) -> Callable:
    _, xs = rows(np, api, 100)
    f = api.jit(lambda xs: [x + 1 for x in xs])
    return lambda: f(xs)


@case("jit call, in_shardings and out_shardings")
def jit_fixed(np: Any, api: Any) -> Callable:
    sharding, (x,) = rows(np, api, 1)
    f = api.jit(lambda x: x + 1, in_shardings=sharding, out_shardings=sharding)
    return lambda: f(x)


MEGABYTES = 16


@case(f"host to device, {MEGABYTES} MB", kind="waits")
def to_device(np: Any, api: Any) -> Callable:
    x = np.ones((MEGABYTES, 1 << 18), np.float32)
    return lambda: api.device_put(x)


@case(f"device to host, {MEGABYTES} MB", kind="fresh")
def to_host(np: Any, api: Any) -> tuple[Callable, Callable]:
    f, x = api.jit(lambda x: x + 1), np.ones((MEGABYTES, 1 << 18), np.float32)
    return lambda: f(x), np.asarray


@case(f"8 devices to host, {MEGABYTES} MB", kind="fresh")
def shards_to_host(np: Any, api: Any) -> tuple[Callable, Callable]:
    f, x = mapped(np, api, lambda x: x + 1, MEGABYTES * (1 << 18) // DEVICES)
    return lambda: f(x), np.asarray


def repeated(step: Callable, params: Any, *batch: Any) -> Callable:
    """Calls of a step, each with the parameters that the one before returned."""
    state = [params]

    def call() -> Any:
        state[0], value = step(state[0], *batch)
        return state[0], value

    return call


def training(np: Any, api: Any) -> tuple[Callable, tuple]:
    """A training step that nobody has traced yet, and its arguments on eight devices."""
    params = transformer.init(np)
    stacked = api.tree.map(lambda p: np.broadcast_to(p, (DEVICES, *p.shape)), params)
    rng = np.random.default_rng(1)
    text = rng.integers(0, transformer.VOCABULARY, (DEVICES, 1, transformer.LENGTH + 1), np.int32)
    place = api.pmap(lambda *xs: xs)
    arguments = place(stacked, text[..., :-1], text[..., 1:])
    return api.pmap(transformer.training_step(api), axis_name="batch"), arguments


@case("training step, trace and lower", kind="fresh")
def lower(np: Any, api: Any) -> tuple[Callable, Callable]:
    _, arguments = training(np, api)

    def fresh() -> Callable:
        return api.pmap(transformer.training_step(api), axis_name="batch")

    return fresh, lambda f: f.lower(*arguments)


@case("training step, first call", kind="once")
def first_call(np: Any, api: Any) -> Callable:
    step, arguments = training(np, api)
    return lambda: step(*arguments)


@case("training step, second process", kind="second")
def second_process(np: Any, api: Any) -> Callable:
    return first_call(np, api)


@case("a few operations, second process", kind="second")
def eager_second_process(np: Any, api: Any) -> Callable:
    jnp = api.numpy

    def call() -> Any:
        x = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
        return jnp.where(x > 0, jnp.exp(x), x @ jnp.ones((4, 4))).sum(axis=0)

    return call


@case("training step", kind="waits")
def training_step(np: Any, api: Any) -> Callable:
    step, (params, *batch) = training(np, api)
    return repeated(step, params, *batch)


# ---- meshes -------------------------------------------------------------------------------------


def mesh_of(api: Any, kind: str = "Auto") -> Any:
    """Two rows of four devices, along which the compiler decides what nobody has fixed."""
    types = (api.sharding.AxisType[kind],) * 2
    return api.make_mesh((2, 4), ("data", "model"), axis_types=types)


def sharding(api: Any, *spec: Any) -> Any:
    return api.NamedSharding(mesh_of(api), api.P(*spec))


@case("device_put of NumPy over a mesh", kind="waits")
def put_over_mesh(np: Any, api: Any) -> Callable:
    x, target = np.ones((256, 256), np.float32), sharding(api, "data", "model")
    return lambda: api.device_put(x, target)


@case("reshard over a mesh", kind="fresh")
def reshard(np: Any, api: Any) -> tuple[Callable, Callable]:
    # of one array, some libraries keep on the host what they have moved before
    x = np.ones((256, 256), np.float32)
    before, after = sharding(api, "data", "model"), sharding(api, "model")
    return (
        lambda: api.device_put(x, before),
        lambda placed: api.block_until_ready(api.device_put(placed, after)),
    )


@case("shard_map under jit, psum", kind="waits")
def shard_mapped(np: Any, api: Any) -> Callable:
    both = api.P("data", "model")
    f = api.shard_map(
        lambda x: api.lax.psum(x, "model"),
        mesh=mesh_of(api), in_specs=both, out_specs=api.P("data"),
    )  # fmt: skip
    f, x = api.jit(f), api.device_put(np.ones((8, 16), np.float32), sharding(api, "data", "model"))
    return lambda: f(x)


def training_over_mesh(np: Any, api: Any, mesh: Any) -> tuple:
    """Parameters of twelve layers and a batch, on a mesh."""
    rng = np.random.default_rng(1)
    text = rng.integers(0, transformer.VOCABULARY, (DEVICES, transformer.LENGTH + 1), np.int32)
    shardings = api.tree.map(lambda spec: api.NamedSharding(mesh, spec), transformer.specs(api))
    params = api.device_put(transformer.init(np), shardings)
    rows = api.NamedSharding(mesh, api.P("data"))
    return params, *api.device_put((text[:, :-1], text[:, 1:]), rows)


@case("mesh training step, trace and lower", kind="fresh")
def lower_over_mesh(np: Any, api: Any) -> tuple[Callable, Callable]:
    mesh = mesh_of(api)
    arguments = training_over_mesh(np, api, mesh)

    def fresh() -> Callable:
        return transformer.mesh_step(api, transformer.loss_in_blocks(api, mesh))

    return fresh, lambda f: f.lower(*arguments)


@case("mesh training step, Explicit axes, trace and lower", kind="fresh")
def lower_over_explicit_axes(np: Any, api: Any) -> tuple[Callable, Callable]:
    mesh = mesh_of(api, "Explicit")
    params, *batch = training_over_mesh(np, api, mesh)
    moments = (params, params)

    def fresh() -> Callable:
        lying = {"lying": api.P("data")}
        return transformer.adam_step(api, functools.partial(transformer.loss, api, **lying))

    def lower(step: Any) -> Any:
        with api.set_mesh(mesh):
            return step.lower(params, moments, *batch)

    return fresh, lower


def steps_over_mesh(np: Any, api: Any, loss: Callable) -> Callable:
    step = transformer.mesh_step(api, loss)
    params, *batch = training_over_mesh(np, api, mesh_of(api))
    return repeated(step, params, *batch)


@case("mesh training step, shard_map", kind="waits")
def step_in_blocks(np: Any, api: Any) -> Callable:
    return steps_over_mesh(np, api, transformer.loss_in_blocks(api, mesh_of(api)))


@case("mesh training step, jit", kind="waits")
def step_by_compiler(np: Any, api: Any) -> Callable:
    return steps_over_mesh(np, api, functools.partial(transformer.loss, api))


# ---- transformations ---------------------------------------------------------------------------


def deep(np: Any, api: Any, stacked: bool) -> tuple[Callable, Callable]:
    """A new training step of 48 layers, in a Python loop or a scan, and how it is lowered."""
    params = transformer.init(np, layers=48)
    if stacked:
        params["layers"] = api.tree.map(lambda *leaves: np.stack(leaves), *params["layers"])
    tokens = np.zeros((1, transformer.LENGTH), np.int32)

    def fresh() -> Callable:
        def step(params: dict, tokens: Any, targets: Any) -> dict:
            grads = api.grad(lambda p: transformer.loss(api, p, tokens, targets))(params)
            return api.tree.map(lambda p, g: p - transformer.RATE * g, params, grads)

        return api.jit(step)

    return fresh, lambda f: f.lower(params, tokens, tokens)


@case("48 layers in a loop, trace and lower", kind="fresh")
def deep_loop(np: Any, api: Any) -> tuple[Callable, Callable]:
    return deep(np, api, stacked=False)


@case("48 layers in a scan, trace and lower", kind="fresh")
def deep_scan(np: Any, api: Any) -> tuple[Callable, Callable]:
    return deep(np, api, stacked=True)


def perceptron(np: Any, api: Any) -> tuple[Callable, Any]:
    """A network of two layers, of its input; and an input."""
    rng = np.random.default_rng(0)
    first, second = (rng.normal(0, 0.2, (64, 64)).astype(np.float32) for _ in range(2))
    jnp = api.numpy
    return lambda x: jnp.tanh(jnp.tanh(x @ first) @ second), np.ones(64, np.float32)


@case("jacrev of a network", kind="waits")
def jacobian(np: Any, api: Any) -> Callable:
    f, x = perceptron(np, api)
    jacobian, x = api.jit(api.jacrev(f)), api.device_put(x)
    return lambda: jacobian(x)


@case("hessian of a network", kind="waits")
def hessian(np: Any, api: Any) -> Callable:
    f, x = perceptron(np, api)
    bend, x = api.jit(api.hessian(lambda x: f(x).sum())), api.device_put(x)
    return lambda: bend(x)


@case("gradient through 1,000 scanned steps", kind="waits")
def scanned(np: Any, api: Any) -> Callable:
    f, x = perceptron(np, api)

    def total(x: Any) -> Any:
        return api.lax.scan(lambda x, _: (f(x), x[0]), x, None, length=1000)[0].sum()

    gradient, x = api.jit(api.grad(total)), api.device_put(x)
    return lambda: gradient(x)


@case("eager gradient, 50 operations")
def eager_fifty(np: Any, api: Any) -> Callable:
    jnp = api.numpy

    def f(x: Any) -> Any:
        for _ in range(16):
            x = jnp.sin(x) * x + 0.5
        return jnp.sum(x * x)

    gradient, x = api.grad(f), api.device_put(np.full((8, 8), 0.1, np.float32))
    return lambda: gradient(x)
