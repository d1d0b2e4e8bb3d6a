"""Programs without a mistake, as users of libraries like this write them, with and without types.

The names are those of the field, so the same file is read with the peer's in their place.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import Array, export, lax, nn, random
from phalanx.experimental import checkify
from phalanx.sharding import Mesh, NamedSharding
from phalanx.sharding import PartitionSpec as P
from phalanx.typing import ArrayLike, DTypeLike

Params = dict[str, Array]


class State(NamedTuple):
    params: Params
    momentum: Params
    step: int | Array


@dataclasses.dataclass
class Config:
    width: int = 8
    rate: float = 1e-2
    dtype: str = "float32"


def predict(params: Params, x: Array) -> Array:
    return nn.relu(x @ params["w"] + params["b"])


def loss(params: Params, x: Array, y: Array) -> Array:
    return jnp.mean((predict(params, x) - y) ** 2)


params: Params = {"w": jnp.ones((3, 1)), "b": jnp.zeros(1)}
x = jnp.ones((4, 3))
y = jnp.ones((4, 1))
key = random.key(0)


# ---- training ----


def plain_descent() -> None:
    @jax.jit
    def update(params: Params, x: Array, y: Array) -> Params:
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    new = params
    for _ in range(3):
        new = update(new, x, y)
    print(new["w"].shape)


def value_and_gradient() -> None:
    value, grads = jax.value_and_grad(loss)(params, x, y)
    print(float(value), value.item(), grads["w"].mean())


def value_with_aux() -> None:
    def with_logits(params: Params, x: Array) -> tuple[Array, Array]:
        logits = predict(params, x)
        return logits.sum(), logits

    (value, logits), grads = jax.value_and_grad(with_logits, has_aux=True)(params, x)
    print(value + 1, logits.shape, grads["b"])


def gradient_with_aux() -> None:
    def with_count(w: Array) -> tuple[Array, dict[str, Array]]:
        return jnp.sum(w**2), {"norm": jnp.linalg.norm(w)}

    grads, aux = jax.grad(with_count, has_aux=True)(x)
    print(grads * 2, aux["norm"])


def gradients_of_two() -> None:
    def product(a: Array, b: Array) -> Array:
        return jnp.vdot(a, b)

    da, db = jax.grad(product, argnums=(0, 1))(x, x)
    print(da + db)


def second_derivatives() -> None:
    cube: Callable[[float], Any] = jax.grad(jax.grad(lambda x: x**3))
    print(cube(2.0))


def momentum_in_a_named_tuple() -> None:
    @jax.jit
    def step(state: State, x: Array, y: Array) -> tuple[State, Array]:
        value, grads = jax.value_and_grad(loss)(state.params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state.momentum, grads)
        params = jax.tree.map(lambda p, m: p - 0.1 * m, state.params, momentum)
        return State(params, momentum, state.step + 1), value

    state = State(params, jax.tree.map(jnp.zeros_like, params), 0)
    state, value = step(state, x, y)
    print(state.params["w"], value)


def steps_with_donation() -> None:
    @functools.partial(jax.jit, donate_argnums=(0,))
    def update(params: Params, scale: float) -> Params:
        return {name: p * scale for name, p in params.items()}

    print(update(jax.tree.map(jnp.copy, params), 0.5)["w"])


def static_by_name() -> None:
    @functools.partial(jax.jit, static_argnames=("n", "reverse"))
    def power(x: Array, n: int, *, reverse: bool = False) -> Array:
        return x ** (-n if reverse else n)

    print(power(x, 2), power(x, n=3, reverse=True))


def options_in_a_decorator() -> None:
    @jax.jit(static_argnames="n")
    def power(x: Array, n: int) -> Array:
        return x**n

    print(power(x, n=2) + 1)


def without_types() -> None:
    @jax.jit
    def f(x, y=1, *rest, scale=2.0):
        return x * y * scale

    print(f(1.0), f(x, 2), f(x, 2, 3, scale=1.0).sum())


def lambdas() -> None:
    double = jax.jit(lambda x: x * 2)
    print(double(x).shape, jax.vmap(lambda row: row.sum())(x))


def schedule() -> None:
    config = Config()

    def rate(step: ArrayLike) -> Array:
        warm = jnp.minimum(1.0, jnp.asarray(step) / 100)
        return config.rate * warm * 0.5 * (1 + jnp.cos(math.pi * jnp.asarray(step) / 1000))

    print(float(rate(3)), rate(jnp.arange(3)))


def batches() -> None:
    def loader(data: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for i in range(0, len(data), size):
            yield data[i : i + size], data[i : i + size, :1]

    for images, labels in loader(np.ones((8, 3)), 4):
        print(loss(params, jnp.asarray(images), jnp.asarray(labels)))


def numpy_arrays_into_jit() -> None:
    def mean(x: ArrayLike) -> Array:
        return jnp.mean(x)

    print(jax.jit(mean)(np.ones(3)), jnp.sum(np.arange(3)), np.asarray(x).tolist())


def accuracy() -> None:
    logits = jnp.ones((4, 10))
    labels = jnp.arange(4)
    hits = jnp.argmax(logits, axis=-1) == labels
    print(hits.mean().item(), int(hits.sum()), bool(hits.all()))


def cross_entropy() -> None:
    def entropy(logits: Array, labels: Array) -> Array:
        chosen = nn.one_hot(labels, logits.shape[-1])
        return -jnp.mean(jnp.sum(chosen * nn.log_softmax(logits, axis=-1), axis=-1))

    print(jax.grad(entropy)(jnp.ones((2, 3)), jnp.array([0, 1])))


def clipped_by_norm() -> None:
    def clip(grads: Params, limit: float) -> Params:
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return jax.tree.map(lambda g: g * jnp.minimum(1.0, limit / norm), grads)

    print(clip(params, 1.0))


def weights_by_layers() -> None:
    sizes = [3, 8, 1]
    layers = []
    for inner, outer, k in zip(sizes, sizes[1:], random.split(key, 2), strict=False):
        layers.append((random.normal(k, (inner, outer)) / inner**0.5, jnp.zeros(outer)))
    hidden = x
    for w, b in layers:
        hidden = nn.gelu(hidden @ w + b)
    print(hidden)


def model_class() -> None:
    class Model:
        def __init__(self, key: Array, config: Config) -> None:
            self.w = nn.initializers.glorot_normal()(key, (3, config.width))

        def __call__(self, x: Array) -> Array:
            return x @ self.w

        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, x: Array) -> Array:
            return self(x)

    model = Model(key, Config())
    print(model(x), model.apply(x), jax.jit(model)(x), jax.jit(model.__call__)(x))


def jitted_method() -> None:
    class Model(NamedTuple):
        w: Array

        @jax.jit
        def apply(self, x: Array, scale: float = 1.0) -> Array:
            return x @ self.w * scale

    print(Model(x.T).apply(x), Model(x.T).apply(x, scale=2.0))


# ---- transformations ----


def mapped_over_some() -> None:
    print(jax.vmap(predict, in_axes=(None, 0))(params, x).shape)
    print(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)["w"])


def mapped_over_a_tree() -> None:
    print(jax.vmap(predict, in_axes=({"w": None, "b": None}, 0), out_axes=0)(params, x))


def pmapped() -> None:
    @functools.partial(jax.pmap, axis_name="i")
    def normalized(x: Array) -> Array:
        return x / lax.psum(x, "i")

    print(normalized(jnp.arange(4.0)))


def pmapped_training() -> None:
    def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        grads = lax.pmean(grads, axis_name="data")
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return params, lax.pmean(value, "data")

    many = jax.pmap(step, axis_name="data", in_axes=(None, 0, 0), out_axes=(None, None))
    new, value = many(params, x[None], y[None])
    print(new["w"], value)


def compiled_ahead() -> None:
    lowered = jax.jit(predict).lower(params, x)
    print(lowered.as_text()[:10], lowered.compile()(params, x))


def rematerialized() -> None:
    layer = jax.checkpoint(predict, static_argnums=())
    print(jax.grad(lambda p: jnp.sum(layer(p, x)))(params))

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def block(x: Array) -> Array:
        return jnp.sin(x @ x.T)

    print(block(x))


def derivative_of_your_own() -> None:
    @jax.custom_vjp
    def clipped(x: Array) -> Array:
        return x

    def forward(x: Array) -> tuple[Array, None]:
        return x, None

    def backward(_: None, g: Array) -> tuple[Array]:
        return (jnp.clip(g, -1.0, 1.0),)

    clipped.defvjp(forward, backward)
    print(clipped(x) + 1)


def derivative_with_static() -> None:
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def scaled(scale: float, x: Array) -> Array:
        return scale * x

    scaled.defvjp(lambda scale, x: (x, None), lambda scale, _, g: (g,))
    print(scaled(2.0, x).shape)


def tangents_of_your_own() -> None:
    @jax.custom_jvp
    def soft(x: Array) -> Array:
        return jnp.log1p(jnp.exp(x))

    @soft.defjvp
    def rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        (x,), (t,) = primals, tangents
        return soft(x), nn.sigmoid(x) * t

    print(soft(x), jax.grad(lambda x: soft(x).sum())(x))


def forward_and_back() -> None:
    value, tangent = jax.jvp(jnp.sin, (x,), (x,))
    result, pull = jax.vjp(predict, params, x)
    grads, dx = pull(result)
    print(value + tangent, grads["w"], dx)


def jacobians() -> None:
    print(jax.jacfwd(jnp.sin)(x), jax.jacrev(jnp.cos)(x), jax.hessian(jnp.sum)(x))


# ---- loops and branches ----


def scanned() -> None:
    def body(total: Array, row: Array) -> tuple[Array, Array]:
        total = total + row
        return total, total

    total, sums = lax.scan(body, jnp.zeros(3), x)
    print(total + 1, sums.shape)


def scanned_with_a_tree() -> None:
    def body(carry: tuple[Params, Array], _: None) -> tuple[tuple[Params, Array], Array]:
        params, key = carry
        key, drawn = random.split(key)
        return (params, key), random.normal(drawn)

    (new, last), draws = lax.scan(body, (params, key), None, length=3)
    print(new["w"], last, draws)


def scanned_without_types() -> None:
    last, rows = lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(3), x, reverse=True)
    print(last, rows)


def counted() -> None:
    print(lax.fori_loop(0, 10, lambda i, total: total + i, 0))
    print(lax.fori_loop(0, 10, lambda i, total: total + x[i], jnp.zeros(3)).sum())


def repeated() -> None:
    def unfinished(state: tuple[Array, Array]) -> Array:
        return state[0] < 10

    def advance(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return state[0] + 1, state[1] * 2

    count, value = lax.while_loop(unfinished, advance, (jnp.array(0), jnp.array(1.0)))
    print(count, value)


def branched() -> None:
    print(lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x))
    print(lax.switch(jnp.array(1), [jnp.sin, jnp.cos], x))
    print(lax.select(x > 0, x, -x), jnp.where(x > 0, x, 0.0))


def prefix_sums() -> None:
    print(lax.associative_scan(jnp.add, x), lax.map(jnp.sum, x), jnp.cumsum(x, axis=0))


# ---- meshes and communication ----


def over_a_mesh() -> None:
    mesh = jax.make_mesh((1,), ("data",))
    rows = NamedSharding(mesh, P("data"))
    print(jax.device_put(x, rows).sharding, jax.device_put(params, rows)["w"])


def mesh_of_devices() -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(-1), ("data",))
    with mesh:
        print(mesh.shape["data"], mesh.axis_names)


def mapped_over_shards() -> None:
    mesh = jax.make_mesh((1,), ("data",))

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    def apply(params: Params, x: Array) -> Array:
        return predict(params, x)

    print(apply(params, x).shape)


def communicating() -> None:
    def body(x: Array) -> Array:
        i = lax.axis_index("i")
        gathered = lax.all_gather(x, "i")
        shifted = lax.ppermute(x, "i", perm=[(0, 1), (1, 0)])
        return gathered.sum() + shifted * i + lax.pmax(x, axis_name="i")

    print(jax.pmap(body, axis_name="i")(jnp.arange(2.0)))


def devices() -> None:
    first = jax.devices()[0]
    print(first.platform, jax.local_device_count(), jax.default_backend(), first.id)
    print(jax.device_put(1.0, first), jax.block_until_ready(x), jax.device_get(x))


# ---- random numbers ----


def keys() -> None:
    key = random.PRNGKey(0)
    key, drawn = random.split(key)
    first, second, third = random.split(drawn, 3)
    print(random.normal(first, (3,)), random.uniform(second, (2, 3), minval=-1.0, maxval=1.0))
    print(random.fold_in(third, 1), random.split(key, num=4)[0])


def draws() -> None:
    print(random.bernoulli(key, 0.5, (3,)) & True, random.randint(key, (3,), 0, 10) + 1)
    print(random.permutation(key, x), random.choice(key, jnp.arange(5), (2,), replace=False))
    print(random.categorical(key, x, axis=-1).shape, random.normal(key, dtype=jnp.float16))


def dropped_out() -> None:
    def dropout(key: Array, x: Array, rate: float, train: bool = True) -> Array:
        if not train:
            return x
        keep = random.bernoulli(key, 1 - rate, x.shape)
        return jnp.where(keep, x / (1 - rate), 0)

    print(jax.jit(dropout, static_argnames=("rate", "train"))(key, x, 0.1))


# ---- arrays ----


def shapes() -> None:
    rows, columns = x.shape
    print(x.reshape(columns, rows), x.reshape((-1,)), x.T @ x, x.ndim, x.size, len(x))
    print(x.transpose(1, 0), x.ravel(), x.flatten(), x.squeeze(), x[None].swapaxes(0, 1))


def reductions() -> None:
    print(x.sum(), x.sum(0), x.sum(axis=(0, 1), keepdims=True), x.mean(-1), x.max(), x.argmax())
    print(x.std(axis=0, ddof=1), x.prod(), x.any(), x.all(), x.cumsum(), x.min(initial=0.0))


def dtypes() -> None:
    def cast(x: ArrayLike, dtype: DTypeLike) -> Array:
        return jnp.asarray(x, dtype=dtype)

    config = Config()
    print(cast(1, "int32"), cast(x, jnp.bfloat16), cast(x, x.dtype), cast(x, config.dtype))
    print(cast(x, np.float32), cast(x, int), x.astype("float16"), x.astype(jnp.int32).dtype)
    print(jnp.zeros(3, dtype=bool), jnp.zeros((2, 3), jnp.float32), jnp.finfo(x.dtype).eps)


def operators() -> None:
    print(x + 1, 1 - x, x * 2.0, 2 / x, x**2, 2**x, x // 2, x % 2, -x, abs(x), +x, divmod(x, 2))
    print((x > 0) & (x < 1) | ~(x == 2), x @ x.T, np.float32(2) * x, x != 1, x >= np.ones(3))


def numbers() -> None:
    total = x.sum()
    if total > 3:
        print(float(total), int(total), complex(total), f"{total:.3f}", range(int(total)))
    values: list[float] = [float(v) for v in x[0]]
    print(max(values), x.tolist())


def indexed() -> None:
    print(x[0], x[0, 1], x[:, 0], x[..., None], x[x > 0], x[jnp.array([0, 1])], x[-1:, ::2])
    print(x[np.array([0])], jnp.take(x, jnp.array([0]), axis=0))


def updated() -> None:
    print(x.at[0].set(1.0), x.at[0, 1].add(2), x.at[:, 0].multiply(x[:, 1]), x.at[0].get())
    print(x.at[jnp.array([0, 1])].max(0.0, mode="drop"), x.at[0].apply(jnp.sin))


def made() -> None:
    print(jnp.array([[1, 2], [3, 4]]), jnp.arange(10), jnp.arange(0.0, 1.0, 0.1), jnp.eye(3))
    print(jnp.linspace(0, 1, 10), jnp.full((2, 2), 7), jnp.ones_like(x), jnp.zeros(()), jnp.ones(3))


def joined() -> None:
    print(jnp.concatenate([x, x], axis=-1), jnp.stack((x, x)), jnp.vstack([x, x]), jnp.hstack([x]))
    first, second = jnp.split(x, 2)
    rows, columns = jnp.meshgrid(jnp.arange(3), jnp.arange(2), indexing="ij")
    print(first, second, rows, columns, jnp.concatenate([np.ones(3), jnp.ones(3)]))


def factored() -> None:
    u, s, vt = jnp.linalg.svd(x, full_matrices=False)
    q, r = jnp.linalg.qr(x)
    values, vectors = jnp.linalg.eigh(x.T @ x)
    print(u * s @ vt, q @ r, values, vectors, jnp.linalg.solve(x.T @ x, jnp.ones(3)))
    print(jnp.linalg.norm(x, axis=-1, keepdims=True), jnp.linalg.inv(x.T @ x))


def summed_by_letters() -> None:
    print(jnp.einsum("ij,kj->ik", x, x), jnp.einsum("...i,i", x, jnp.ones(3)))
    print(jnp.tensordot(x, x.T, 1))


def sorted_and_found() -> None:
    values, places = lax.top_k(x[0], 2)
    found, counts = jnp.unique(jnp.array([1, 1, 2]), return_counts=True)
    print(values, places, found, counts, jnp.sort(x, axis=0), jnp.argsort(-x[0]), jnp.nonzero(x)[0])


def attention() -> None:
    def attend(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = jnp.where(mask, scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, axis=-1), v)

    q = random.normal(key, (1, 4, 2, 8))
    print(attend(q, q, q, jnp.tril(jnp.ones((4, 4), bool))))


# ---- trees, debugging, state ----


def trees() -> None:
    leaves, treedef = jax.tree.flatten(params)
    print(jax.tree.unflatten(treedef, [leaf * 2 for leaf in leaves])["w"])
    print(sum(p.size for p in jax.tree.leaves(params)), jax.tree.structure(params) == treedef)
    print(jax.tree_util.tree_map(jnp.shape, params))
    print(jax.tree.map(lambda a, b: a + b, params, params))
    print(jax.tree.reduce(lambda total, p: total + p.sum(), params, 0.0))


def registered() -> None:
    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a: Array, b: Array) -> None:
            self.a, self.b = a, b

        def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, aux: None, children: tuple[Array, Array]) -> "Pair":
            return cls(*children)

    @functools.partial(
        jax.tree_util.register_dataclass, data_fields=["value"], meta_fields=["name"]
    )
    @dataclasses.dataclass
    class Named:
        value: Array
        name: str

    print(jax.jit(lambda p: p.a + p.b)(Pair(x, x)), Named(x, "x").value)


def printed() -> None:
    def noisy(x: Array) -> Array:
        jax.debug.print("x is {x} at {}", 3, x=x)
        jax.debug.callback(lambda x: None, x)
        return x

    print(jax.jit(noisy)(x))


def shapes_alone() -> None:
    shapes = jax.eval_shape(predict, params, x)
    print(shapes.shape, shapes.dtype, jax.ShapeDtypeStruct((2, 3), jnp.float32).shape)
    print(jax.make_jaxpr(predict)(params, x))


def settings() -> None:
    jax.config.update("jax_enable_x64", False)
    with jax.disable_jit(), jax.default_matmul_precision("float32"):
        print(jax.jit(loss)(params, x, y))


def isinstance_of_arrays() -> None:
    def describe(value: Array | np.ndarray | float) -> str:
        if isinstance(value, jax.Array):
            return f"{value.dtype}{value.shape}"
        return str(value)

    print(describe(x), describe(1.0), isinstance(x, jnp.ndarray))


def functions_as_arguments() -> None:
    activations: dict[str, Callable[[Array], Array]] = {"relu": nn.relu, "tanh": jnp.tanh}

    def apply(f: Callable[[Array], Array], x: Array) -> Array:
        return f(x)

    print(apply(activations["relu"], x), apply(jax.jit(jnp.sin), x), apply(jax.nn.silu, x))


# ---- more of each ----


def adam_in_a_dataclass() -> None:
    @functools.partial(
        jax.tree_util.register_dataclass, data_fields=["mean", "square", "count"], meta_fields=[]
    )
    @dataclasses.dataclass
    class Adam:
        mean: Params
        square: Params
        count: ArrayLike

    def adam(params: Params, state: Adam, grads: Params) -> tuple[Params, Adam]:
        count = jnp.asarray(state.count) + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, state.square, grads)
        new = jax.tree.map(lambda p, m, s: p - m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return new, Adam(mean, square, count)

    zeros = jax.tree.map(jnp.zeros_like, params)
    new, state = jax.jit(adam)(params, Adam(zeros, zeros, 0), params)
    print(new["w"].shape, jnp.asarray(state.count).item())


def trees_in_a_row() -> None:
    trees = [params, params, params]
    print(jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)["w"].shape)
    print(jax.tree.map(lambda a, b, c, d: a + b + c + d, params, params, params, params)["b"])
    print(jax.tree.map(np.asarray, params), jax.tree.map(lambda x: x, None))
    print(jax.tree.map(lambda p, g: p if g is None else p - g, params, params, is_leaf=None))
    paths = jax.tree_util.tree_map_with_path(lambda path, x: jax.tree_util.keystr(path), params)
    print(paths, jax.tree.leaves(params, is_leaf=lambda x: x is None))


def placed_where_it_is_made() -> None:
    mesh = jax.make_mesh((1,), ("data",))
    rows = NamedSharding(mesh, P("data"))
    print(jnp.zeros((4, 2), out_sharding=rows), jnp.ones(4, device=rows))
    print(jnp.arange(4, device=rows))
    print(random.normal(key, (4, 2), out_sharding=rows))
    print(nn.initializers.zeros(key, (4, 4), jnp.float32, out_sharding=rows))
    print(x.at[0].set(1.0, mode="drop", unique_indices=True, out_sharding=rows))
    print(jnp.einsum("ij,kj->ik", x, x, out_sharding=NamedSharding(mesh, P())))


def initializers() -> None:
    init: nn.initializers.Initializer = nn.initializers.he_normal()
    made: list[nn.initializers.Initializer] = [
        nn.initializers.zeros,
        nn.initializers.ones,
        nn.initializers.constant(0.1),
        nn.initializers.normal(stddev=0.02, dtype=jnp.float32),
        nn.initializers.variance_scaling(1.0, "fan_in", "normal"),
        nn.initializers.orthogonal(),
    ]
    print(init(key, (3, 4)) + 1, [m(key, (3, 3), jnp.float32).mean() for m in made])


def pull_and_push() -> None:
    def both(x: Array) -> tuple[Array, dict[str, Array]]:
        return jnp.sin(x), {"cos": jnp.cos(x)}

    value, pull, aux = jax.vjp(both, x, has_aux=True)
    (dx,) = pull(value)
    result, push = jax.linearize(jnp.sin, x)
    primal, tangent, more = jax.jvp(both, (x,), (x,), has_aux=True)
    print(dx, aux["cos"], push(x) + result, primal + tangent, more["cos"])
    (one, two), (t1, t2) = jax.jvp(lambda a: (a + 1, a * 2), (x,), (x,))
    print(one, two, t1, t2)
    forward = jax.vmap(lambda t: jax.jvp(jnp.sum, (x,), (t,))[1])
    print(forward(x[None]))


def chosen_by_a_condition() -> None:
    rows, columns = jnp.where(x > 0)
    (found,) = jnp.where(x[0] > 0, size=2, fill_value=0)
    print(rows, columns, found, jnp.where(True, 1.0, 2.0), jnp.where(x > 0, x, -jnp.inf))
    print(jnp.select([x > 0, x < 0], [x, -x], 0.0), jnp.nonzero(x, size=3))


def products_by_numbers() -> None:
    print(jnp.einsum(x, [0, 1], x, [2, 1], [0, 2]), jnp.einsum("ij->ji", x, optimize="optimal"))
    operands = [x, x]
    print(jnp.einsum("ij,kj->ik", *operands), jnp.einsum("ij,jk", x, x.T))


def axes_by_lists() -> None:
    print(jax.vmap(predict, in_axes=[None, 0], out_axes=0)(params, x))
    print(jax.vmap(lambda a: a, in_axes=-1)(x), jax.vmap(lambda a, b: a + b, (0, None))(x, 1.0))
    print(jax.vmap(jax.vmap(jnp.sin))(x))


def over_two_axes() -> None:
    def body(x: Array) -> Array:
        return lax.psum(x, ("i", "j")) + lax.axis_index("i") + lax.axis_size("j")

    print(jax.vmap(jax.vmap(body, axis_name="j"), axis_name="i")(x))


def devices_in_lists() -> None:
    cpus = jax.devices("cpu")
    kinds: dict[int, str] = {device.id: device.device_kind for device in cpus}
    mesh = Mesh(np.array(cpus[:1]), ("data",))
    local: list[jax.Device] = jax.local_devices()
    print(kinds, mesh.devices.size, local[0].process_index, cpus[0].memory_stats(), mesh.size)


def compared() -> None:
    print(x == 1, (x == x.T.T).all(), x.dtype == jnp.float32, x.shape == (4, 3))
    if x.ndim == 2 and x.dtype in (jnp.float32, jnp.float16):
        print(jnp.issubdtype(x.dtype, jnp.floating), np.issubdtype(x.dtype, np.floating))


def shapes_as_arguments() -> None:
    def noise(key: Array, shape: tuple[int, ...], dtype: DTypeLike = jnp.float32) -> Array:
        return random.normal(key, shape, dtype)

    print(noise(key, x.shape), noise(key, (3,), x.dtype), noise(key, (2, *x.shape[1:]), "float16"))
    print(jnp.zeros(x.shape[0]), jnp.ones((np.int64(3), 2)), jnp.full(x.shape, jnp.nan))


def lists_of_arrays() -> None:
    rows: list[Array] = [row * 2 for row in x]
    total: Array = sum(rows, start=jnp.zeros(3))
    print(jnp.array(rows).shape, jnp.stack(rows), jnp.asarray([1, 2.5, x.sum()]), total)
    print(jnp.concatenate(rows), max(rows, key=lambda row: float(row.sum())))


def arithmetic_with_numpy() -> None:
    host = np.ones((4, 3), np.float32)
    print(x + host, x * np.float32(2), host @ np.asarray(x).T, jnp.dot(host, x.T), x - host.mean())
    copied: np.ndarray = np.array(x)
    print(copied.sum(), jax.device_get(params)["w"], jnp.asarray(host).at[0].add(1))


def scheduled_by_a_closure() -> None:
    def cosine(peak: float, steps: int) -> Callable[[ArrayLike], Array]:
        def rate(step: ArrayLike) -> Array:
            return peak * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(step, steps) / steps))

        return rate

    schedule = jax.jit(cosine(0.1, 100))
    print(schedule(3), float(schedule(jnp.array(200))))


def evaluated_in_batches() -> None:
    @jax.jit
    def correct(params: Params, images: ArrayLike, labels: ArrayLike) -> Array:
        return (jnp.argmax(predict(params, jnp.asarray(images)), -1) == labels).sum()

    total = 0
    for _ in range(2):
        total += int(correct(params, np.ones((2, 3)), np.zeros(2, int)))
    print(total / 4)


def recurrent() -> None:
    class Cell(NamedTuple):
        w: Array
        u: Array

    def step(cell: Cell, hidden: Array, token: Array) -> tuple[Array, Array]:
        hidden = jnp.tanh(hidden @ cell.w + token @ cell.u)
        return hidden, hidden

    cell = Cell(jnp.eye(3), jnp.eye(3))
    last, outputs = lax.scan(functools.partial(step, cell), jnp.zeros(3), x)
    print(last.shape, outputs.shape, jax.vmap(lambda row: step(cell, row, row)[0])(x))


def loops_over_tuples() -> None:
    def body(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = state
        return b, a + b

    print(lax.fori_loop(0, 10, body, (jnp.array(0), jnp.array(1)))[0].item())
    print(lax.while_loop(lambda v: v < 10, lambda v: v + 1, 0))
    print(lax.cond(True, lambda: x, lambda: -x))
    print(lax.cond(x.sum() > 0, jnp.sin, jnp.cos, operand=x))


def chunks_of_lanes() -> None:
    print(lax.map(lambda row: row.sum(), x, batch_size=2))
    print(lax.map(lambda ab: ab[0] * ab[1], (x, x)))


def special_functions() -> None:
    print(jax.scipy.special.logsumexp(x, axis=-1), jax.scipy.stats.norm.logpdf(x))
    size, sign = nn.logsumexp(x, return_sign=True)
    print(nn.logsumexp(x).shape, size.shape, sign.shape)
    print(nn.softplus(x), nn.sigmoid(x), nn.leaky_relu(x, 0.1), nn.glu(jnp.ones((2, 4))))
    print(nn.standardize(x), nn.log_softmax(x), nn.softmax(x, axis=(0, 1), where=x > 0))


def contexts() -> None:
    with jax.enable_x64(True), jax.default_device(jax.devices()[0]):
        print(jnp.ones(3, jnp.float64))
    with jax.named_scope("layer"), jax.debug_nans(False):
        print(x)
    with jax.set_mesh(jax.make_mesh((1,), ("data",))):
        print(lax.with_sharding_constraint(x, P("data")))


def profiled() -> None:
    @jax.named_call
    def layer(x: Array) -> Array:
        return x * 2

    print(jax.block_until_ready(layer(x)).sum(), jax.jit(layer).lower(x).compile().cost_analysis())


def of_several_results() -> None:
    def stats(x: Array) -> tuple[Array, Array, dict[str, Array]]:
        return x.mean(), x.std(), {"max": x.max()}

    mean, std, more = jax.jit(stats)(x)
    means, stds, others = jax.vmap(stats)(x)
    print(mean + std, more["max"], means.shape, stds[0], others["max"].shape)


def nested() -> None:
    step = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    print(step(params, x, y)["w"].mean(0))
    both = jax.jit(jax.value_and_grad(lambda p: loss(p, x, y)))
    value, grads = both(params)
    print(float(value), grads["b"])


def keys_in_a_loop() -> None:
    def one(key: Array) -> Array:
        return random.normal(key, (2,)).sum()

    keys = random.split(key, 4)
    print(jax.vmap(one)(keys), [one(k) for k in keys], random.split(key, (2, 3)).shape)
    a, b, *rest = random.split(key, 5)
    print(one(a), one(b), len(rest), random.key_data(key), random.normal(random.PRNGKey(1)))


def of_functions_without_names() -> None:
    ones = jnp.ones(3)
    print(jax.make_jaxpr(jax.jit(lambda x: x * 2))(ones))
    print(jax.eval_shape(jax.vmap(lambda x: x * 2), ones).shape)
    print(jax.jvp(jax.vmap(lambda x: x * 2), (ones,), (ones,))[1].sum())
    value, pull = jax.vjp(jax.jit(lambda x: x * 2), ones)
    print(value.sum(), pull(ones)[0], jax.linearize(jax.jit(lambda x: x * 2), ones)[1](ones))
    print(jax.pure_callback(jax.jit(lambda x: x * 2), ones, ones))
    either = lax.cond(ones.sum() > 0, jax.jit(lambda x: x * 2), jax.jit(lambda x: -x), ones)
    print(either, lax.while_loop(lambda x: (x < 9).all(), lambda x: x * 2, ones).sum())
    print(lax.while_loop(lambda n: n < 9, lambda n: n * 2, 1).dtype)
    print(lax.fori_loop(0, 3, lambda i, x: x + i, ones).sum())


def exported() -> None:
    twice = export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((3,), "float32"))
    print(export.deserialize(twice.serialize()).call(jnp.ones(3)))


def checked() -> None:
    error, value = checkify.checkify(jax.jit(lambda x: jnp.log(x)))(jnp.ones(3))
    error.throw()
    print(value)
