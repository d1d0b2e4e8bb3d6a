"""Programs with one mistake each, on the line that says so, as users of libraries like this make.

The names are those of the field, so the same file is read with the peer's in their place.
"""

import functools
from typing import NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random
from phalanx.sharding import Mesh, NamedSharding
from phalanx.sharding import PartitionSpec as P


class State(NamedTuple):
    params: dict[str, jax.Array]
    step: int


def predict(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ params["w"] + params["b"]


def loss(params: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def loss_and_logits(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    logits = x @ w
    return jnp.sum(logits), logits


def area(side: jax.Array) -> jax.Array:
    return side * side


params = {"w": jnp.ones((3, 1)), "b": jnp.zeros(1)}
x = jnp.ones((4, 3))
y = jnp.ones((4, 1))
key = random.key(0)
state = State(params, 0)


# ---- transformations ----


def jitted_without_an_argument() -> None:
    step = jax.jit(loss)
    step(params, x)  # wrong


def jitted_with_a_misspelt_keyword() -> None:
    step = jax.jit(loss)
    step(params, x, target=y)  # wrong


def decorated_with_too_many() -> None:
    @jax.jit
    def update(params: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return params

    update(params, x)  # wrong


def decorated_with_options_called_wrongly() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def power(x: jax.Array, n: int) -> jax.Array:
        return x**n

    power(x, n=2, m=3)  # wrong


def jitted_result_of_another_length() -> None:
    w, b, c = jax.jit(loss_and_logits)(x, x)  # wrong


def jitted_state_without_such_a_field() -> None:
    def advance(state: State) -> State:
        return state._replace(step=state.step + 1)

    print(jax.jit(advance)(state).parameters)  # wrong


def called_before_it_is_compiled() -> None:
    jax.jit(loss(params, x, y))  # wrong


def differentiated_after_the_call() -> None:
    jax.grad(loss(params, x, y))(params)  # wrong


def misspelt_option_of_jit() -> None:
    jax.jit(loss, static_argname="n")  # wrong


def numbers_that_are_names() -> None:
    jax.jit(loss, static_argnums="params")  # wrong


def gradient_by_name() -> None:
    jax.grad(loss, argnums="params")  # wrong


def gradient_without_arguments() -> None:
    jax.grad(loss)(params)  # wrong


def value_and_grad_of_three() -> None:
    value, grads, aux = jax.value_and_grad(loss)(params, x, y)  # wrong


def value_with_aux_is_a_pair() -> None:
    value, grads = jax.value_and_grad(loss_and_logits, has_aux=True)(x, x)
    print(value - 1.0)  # wrong


def attribute_of_value_and_grad() -> None:
    print(jax.value_and_grad(loss)(params, x, y).mean())  # wrong


def vmap_with_a_misspelt_option() -> None:
    jax.vmap(predict, in_axis=(None, 0))  # wrong


def vmapped_without_an_argument() -> None:
    jax.vmap(predict, in_axes=(None, 0))(params)  # wrong


def vmapped_result_as_text() -> None:
    name: str = jax.vmap(area)(x)  # wrong
    print(name)


def pmap_over_a_count() -> None:
    jax.pmap(loss, axis_name="data", n_devices=8)  # wrong


def pmapped_with_too_many() -> None:
    jax.pmap(area, axis_name="i")(x, y)  # wrong


def checkpoint_with_a_misspelt_option() -> None:
    jax.checkpoint(predict, policies=None)  # wrong


def checkpointed_without_an_argument() -> None:
    jax.checkpoint(predict)(params)  # wrong


def shard_map_without_specs() -> None:
    mesh = jax.make_mesh((1,), ("data",))
    jax.shard_map(area, mesh=mesh, in_spec=P("data"), out_specs=P("data"))  # wrong


def custom_vjp_without_backward() -> None:
    @jax.custom_vjp
    def clipped(x: jax.Array) -> jax.Array:
        return x

    clipped.defvjp(lambda x: (x, None))  # wrong


def custom_jvp_with_too_many() -> None:
    @jax.custom_jvp
    def soft(x: jax.Array) -> jax.Array:
        return x

    soft(x, y)  # wrong


def method_with_too_many() -> None:
    class Model:
        @jax.jit
        def apply(self, x: jax.Array) -> jax.Array:
            return x

    Model().apply(x, y)  # wrong


# ---- loops and branches ----


def scan_body_gives_no_pair() -> None:
    def body(total: jax.Array, row: jax.Array) -> jax.Array:
        return total + row

    lax.scan(body, jnp.zeros(3), x)  # wrong


def scan_body_of_one_argument() -> None:
    def body(total: jax.Array) -> tuple[jax.Array, None]:
        return total, None

    lax.scan(body, jnp.zeros(3), x)  # wrong


def scan_gives_two() -> None:
    def body(total: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return total + row, total

    total, rows, last = lax.scan(body, jnp.zeros(3), x)  # wrong


def scan_of_a_worded_length() -> None:
    def body(total: jax.Array, _: None) -> tuple[jax.Array, None]:
        return total + 1, None

    lax.scan(body, jnp.zeros(3), None, length="ten")  # wrong


def fori_loop_without_a_start() -> None:
    lax.fori_loop(0, 10, lambda i, x: x + i)  # wrong


def fori_loop_body_of_one_argument() -> None:
    lax.fori_loop(0, 10, area, x)  # wrong


def while_loop_without_a_condition() -> None:
    lax.while_loop(lambda x: x + 1, x)  # wrong


def cond_with_one_branch() -> None:
    lax.cond(True, area)  # wrong


# ---- communication and meshes ----


def psum_over_nothing() -> None:
    lax.psum(x)  # wrong


def psum_over_an_axis() -> None:
    lax.psum(x, axis="data")  # wrong


def sharding_the_wrong_way_round(mesh: Mesh) -> None:
    NamedSharding(P("data"), mesh)  # wrong


def devices_that_are_not_called() -> None:
    print(jax.devices[0])  # wrong


def mesh_of_a_number() -> None:
    jax.make_mesh(8, ("data",))  # wrong


# ---- random numbers ----


def shape_before_key() -> None:
    random.normal((3, 3), key)  # wrong


def bounds_as_in_numpy() -> None:
    random.uniform(key, (3,), low=0.0, high=1.0)  # wrong


def key_of_text() -> None:
    random.key("seed")  # wrong


def key_of_nothing() -> None:
    random.PRNGKey()  # wrong


def split_by_text() -> None:
    random.split(key, "two")  # wrong


def method_of_a_key() -> None:
    first, second = key.split()  # wrong


# ---- arrays ----


def misspelt_method() -> None:
    x.reshpae(3, 4)  # wrong


def assigned_in_place() -> None:
    x[0] = 1.0  # wrong


def indexed_by_a_list() -> None:
    print(x[[0, 2]])  # wrong


def misspelt_update() -> None:
    x.at[0].sets(1.0)  # wrong


def update_without_a_value() -> None:
    x.at[0].add()  # wrong


def numpy_as_in_torch() -> None:
    x.numpy()  # wrong


def moved_as_in_torch() -> None:
    x.cuda()  # wrong


def size_as_in_torch() -> None:
    print(x.size(0))  # wrong


def shape_that_is_called() -> None:
    print(x.shape(0))  # wrong


def sum_over_dim() -> None:
    x.sum(dim=0)  # wrong


def array_plus_text() -> None:
    print(x + "1")  # wrong


def array_plus_list() -> None:
    print(x + [1.0, 2.0, 3.0])  # wrong


def sum_of_a_list() -> None:
    jnp.sum([1.0, 2.0])  # wrong


def zeros_of_two_lengths() -> None:
    jnp.zeros(3, 4)  # wrong


def dtype_of_bits() -> None:
    jnp.ones((3,), dtype=32)  # wrong


def misspelt_dtype() -> None:
    jnp.ones((3,), jnp.flaot32)  # wrong


def concatenated_one_by_one() -> None:
    jnp.concatenate(x, x)  # wrong


def stacked_one_by_one() -> None:
    jnp.stack(x, x)  # wrong


def mean_over_dim() -> None:
    jnp.mean(x, dim=0)  # wrong


def linspace_of_text() -> None:
    jnp.linspace(0.0, 1.0, "10")  # wrong


def svd_in_two() -> None:
    u, s = jnp.linalg.svd(x)  # wrong


def norm_along_text() -> None:
    jnp.linalg.norm(x, axis="rows")  # wrong


def reshaped_by_text() -> None:
    jnp.reshape(x, "flat")  # wrong


# ---- networks, trees, values ----


def misspelt_activation() -> None:
    nn.rleu(x)  # wrong


def activation_in_place() -> None:
    nn.relu(x, inplace=True)  # wrong


def softmax_over_dim() -> None:
    nn.softmax(x, dim=-1)  # wrong


def one_hot_of_unknown_width() -> None:
    nn.one_hot(jnp.arange(3))  # wrong


def tree_before_function() -> None:
    jax.tree.map(params, lambda p: p * 2)  # wrong


def tree_of_nothing() -> None:
    jax.tree.leaves()  # wrong


def printed_without_words() -> None:
    jax.debug.print(x)  # wrong


def learning_rate_as_text() -> None:
    def schedule(step: jax.Array) -> jax.Array:
        return 0.1 * jnp.cos(step / 100)

    rate: str = schedule(jnp.asarray(1))  # wrong
    print(rate)


def activation_as_text() -> None:
    name: str = nn.relu(x)  # wrong
    print(name)


def draws_as_text() -> None:
    label: str = random.normal(key, (3,))  # wrong
    print(label)


def loss_of_a_function() -> None:
    print(float(jax.jit(area)))  # wrong


def numpy_array_where_one_of_ours_is_asked() -> None:
    def show(x: jax.Array) -> None:
        print(x.sharding)

    show(np.ones(3).tolist())  # wrong
