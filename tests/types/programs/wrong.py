"""Programs with one mistake each, on the line that says so, as users of libraries like this make.

The names are those of the field, so the same file is read with the peer's in their place.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.sharding import Mesh, NamedSharding
from phalanx.sharding import PartitionSpec as P

Params = dict[str, jax.Array]


class State(NamedTuple):
    params: Params
    step: int


@dataclasses.dataclass
class Adam:
    mean: Params
    square: Params
    count: int = 0


def predict(params: Params, x: jax.Array) -> jax.Array:
    return x @ params["w"] + params["b"]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def loss_and_logits(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    logits = x @ w
    return jnp.sum(logits), logits


def adam(params: Params, state: Adam, grads: Params) -> tuple[Params, Adam]:
    return params, state


def area(side: jax.Array) -> jax.Array:
    return side * side


params: Params = {"w": jnp.ones((3, 1)), "b": jnp.zeros(1)}
x = jnp.ones((4, 3))
y = jnp.ones((4, 1))
key = random.key(0)
state = State(params, 0)
adam_state = Adam(params, params)


# ---- transformations ----


def jitted_without_an_argument() -> None:
    step = jax.jit(loss)
    step(params, x)  # wrong


def jitted_with_a_misspelt_keyword() -> None:
    step = jax.jit(loss)
    step(params, x, target=y)  # wrong


def decorated_with_too_many() -> None:
    @jax.jit
    def update(params: Params) -> Params:
        return params

    update(params, x)  # wrong


def decorated_with_options_called_wrongly() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def power(x: jax.Array, n: int) -> jax.Array:
        return x**n

    power(x, n=2, m=3)  # wrong, seen by pyright


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


def state_where_params_are_asked() -> None:
    jax.jit(adam)(adam_state, params, params)  # wrong


def results_in_the_wrong_order() -> None:
    update = jax.jit(adam)
    state: Adam
    state, new = update(params, adam_state, params)  # wrong


def field_of_the_state_misspelt() -> None:
    new, state = jax.jit(adam)(params, adam_state, params)
    print(state.means)  # wrong


def named_tuple_as_params() -> None:
    state = State(params, 0)
    jax.grad(loss)(state, x, y)  # wrong


def gradient_as_a_number() -> None:
    def square(v: jax.Array) -> jax.Array:
        return v @ v

    total: float = jax.grad(square)(x[0])  # wrong, unseen
    print(total)


def loss_as_a_float_field() -> None:
    @dataclasses.dataclass
    class Record:
        loss: float

    print(Record(loss=jax.jit(loss)(params, x, y)))  # wrong


def gradients_of_params_used_as_an_array() -> None:
    grads = jax.grad(loss)(params, x, y)
    print(grads.mean())  # wrong, unseen


def value_and_gradients_swapped() -> None:
    grads, value = jax.value_and_grad(loss)(params, x, y)
    print(grads["w"])  # wrong


def jitted_loss_taken_apart() -> None:
    value, aux = jax.jit(loss)(params, x, y)
    print(value.items())  # wrong


def keyword_of_a_gradient() -> None:
    jax.grad(loss)(params, x, labels=y)  # wrong


def callback_with_the_wrong_signature() -> None:
    def train(step: Callable[[Params, jax.Array], Params]) -> None:
        print(step)

    train(jax.jit(loss))  # wrong


def jitted_function_returned_as_its_result() -> None:
    def make() -> jax.Array:
        return jax.jit(area)  # wrong

    print(make())


def lambda_of_two_for_vmap() -> None:
    jax.vmap(lambda a, b: a + b)(x)  # wrong


def in_axes_of_text() -> None:
    jax.vmap(area, in_axes="batch")  # wrong


def donated_by_a_string() -> None:
    jax.jit(area, donate_argnums="x")  # wrong


def vjp_called_with_a_pair() -> None:
    value, pull, extra = jax.vjp(area, x)  # wrong


def jvp_without_tangents() -> None:
    jax.jvp(area, (x,))  # wrong


def jvp_of_a_bare_array() -> None:
    jax.jvp(jnp.sin, x, x)  # wrong


def shape_dtype_without_a_dtype() -> None:
    jax.ShapeDtypeStruct((3,))  # wrong


def eval_shape_of_a_result() -> None:
    jax.eval_shape(area(x))  # wrong


def lowered_and_called() -> None:
    jax.jit(area).lower(x)(x)  # wrong


def compiled_by_a_misspelt_step() -> None:
    jax.jit(area).lower(x).compiled()  # wrong


def custom_vjp_with_three_rules() -> None:
    @jax.custom_vjp
    def f(v: jax.Array) -> jax.Array:
        return v

    f.def_vjp(lambda v: (v, None), lambda _, g: (g,))  # wrong


def float_where_arrays_are_asked() -> None:
    jax.jit(area)("3")  # wrong


def none_where_an_array_is_asked() -> None:
    jax.jit(predict)(params, None)  # wrong


def static_method_of_a_model() -> None:
    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, v: jax.Array) -> jax.Array:
            return v

    Model().aply(x)  # wrong


def grad_with_data_of_a_function_without() -> None:
    jax.grad(area, has_aux=True)(x)  # wrong


def program_of_too_few_arguments() -> None:
    jax.make_jaxpr(loss)(params, x)  # wrong


def waiting_for_an_array_gives_an_array() -> None:
    jax.block_until_ready(x).items()  # wrong


def an_array_on_a_device_is_an_array() -> None:
    jax.device_put(x, jax.devices()[0]).items()  # wrong


def method_of_a_trainer_that_gets_too_little() -> None:
    class Trainer:
        @functools.partial(jax.jit, static_argnums=0)
        def step(self, w: jax.Array, batch: jax.Array) -> jax.Array:
            return w - batch

    Trainer().step(x)  # wrong, seen by pyright


def rule_with_a_misspelt_option() -> None:
    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def clipped(v: jax.Array, bound: float) -> jax.Array:
        return v

    clipped(x, bounds=1.0)  # wrong, seen by mypy


def loss_and_data_taken_for_the_loss() -> None:
    found, _ = jax.value_and_grad(loss_and_logits, has_aux=True)(x, x)
    print(found.mean())  # wrong


def jvp_taken_for_the_value() -> None:
    print(jax.jvp(jnp.sin, (x,), (x,)) + 1)  # wrong


def pullback_taken_for_the_gradient() -> None:
    value, pull = jax.vjp(jnp.sin, x)
    print(value - pull)  # wrong


def callback_without_its_result() -> None:
    jax.pure_callback(jnp.sin)  # wrong


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


def scan_over_a_callable_first() -> None:
    lax.scan(jnp.zeros(3), area, x)  # wrong


def cond_without_a_condition() -> None:
    lax.cond(jnp.sin, jnp.cos, x)  # wrong


def while_loop_that_takes_two() -> None:
    lax.while_loop(lambda a, b: a < 3, lambda a, b: a + 1, 0)  # wrong


def while_loop_body_of_another_structure() -> None:
    lax.while_loop(lambda x: x.sum() < 3, lambda x: (x, x), x)  # wrong


def while_loop_body_without_a_result() -> None:
    def body(x: jax.Array) -> None:
        jax.debug.print("{}", x)

    lax.while_loop(lambda x: x.sum() < 3, body, x)  # wrong


def fori_loop_body_of_another_structure() -> None:
    lax.fori_loop(0, 3, lambda i, x: (x, i), x)  # wrong


def switch_of_functions_unlisted() -> None:
    lax.switch(0, jnp.sin, jnp.cos, x)  # wrong


def map_with_the_array_first() -> None:
    lax.map(x, area)  # wrong


def running(total: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    return total + row, total


def pair(
    carry: tuple[jax.Array, jax.Array], row: jax.Array
) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    return carry, row


def scale(x: jax.Array, factor: jax.Array) -> jax.Array:
    return x * factor


def scan_from_a_dict() -> None:
    lax.scan(running, {"total": jnp.zeros(3)}, x)  # wrong


def scan_over_a_dict() -> None:
    lax.scan(running, jnp.zeros(3), {"x": x})  # wrong


def scan_from_three_for_two() -> None:
    lax.scan(pair, (jnp.zeros(3), 0, 0), x)  # wrong


def scan_from_one_for_two() -> None:
    lax.scan(pair, jnp.zeros(3), x)  # wrong


def scan_of_a_lambda_has_a_carry() -> None:
    last, _ = lax.scan(lambda total, row: (total + row, total), jnp.zeros(3), x)
    last.avg()  # wrong


def scan_of_a_lambda_of_the_carry_alone() -> None:
    lax.scan(lambda total: (total, total), jnp.zeros(3), x)  # wrong


def scan_of_a_lambda_misspells_a_method() -> None:
    lax.scan(lambda total, row: (total.add(row), total), jnp.zeros(3), x)  # wrong


def scan_of_a_lambda_misspells_a_method_of_the_row() -> None:
    lax.scan(lambda total, row: (total, row.norm()), x[0], x)  # wrong, seen by pyright


def cond_without_an_operand() -> None:
    lax.cond(True, area, area)  # wrong


def cond_of_lambdas_with_an_operand_too_few() -> None:
    lax.cond(True, lambda a, b: a, lambda a, b: b, x)  # wrong


def cond_of_a_dict() -> None:
    lax.cond(True, area, area, params)  # wrong


def cond_of_branches_with_other_parameters() -> None:
    lax.cond(True, scale, area, x)  # wrong


def cond_of_lambdas_is_an_array() -> None:
    lax.cond(True, lambda a: a, lambda a: -a, x).items()  # wrong, seen by pyright


def cond_of_an_array_and_a_number_is_an_array() -> None:
    lax.cond(True, lambda: x, lambda: 0.0).hex()  # wrong


def switch_of_lambdas_with_an_operand_too_few() -> None:
    lax.switch(0, [lambda a, b: a, lambda a, b: b], x)  # wrong


def switch_of_branches_with_other_parameters() -> None:
    lax.switch(0, [area, scale], x)  # wrong


def switch_of_lambdas_is_an_array() -> None:
    lax.switch(0, [lambda a: a, lambda a: -a], x).items()  # wrong, seen by pyright


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


def axis_name_forgotten() -> None:
    lax.pmean(x)  # wrong


def all_gather_with_a_dim() -> None:
    lax.all_gather(x, "i", dim=0)  # wrong


def ppermute_without_a_permutation() -> None:
    lax.ppermute(x, "i")  # wrong


def axis_index_of_an_array() -> None:
    lax.axis_index(x)  # wrong


def mesh_of_names_alone() -> None:
    Mesh(("data",))  # wrong


def mesh_shape_of_text() -> None:
    jax.make_mesh(("data",), (1,))  # wrong


def spec_as_a_keyword() -> None:
    mesh = jax.make_mesh((1,), ("data",))
    NamedSharding(mesh, specs=P("data"))  # wrong


def spec_of_text() -> None:
    mesh = jax.make_mesh((1,), ("data",))
    NamedSharding(mesh, "data")  # wrong


def device_called() -> None:
    print(jax.devices()[0]())  # wrong


def device_by_a_number() -> None:
    print(jax.devices(0))  # wrong


def attribute_of_a_device() -> None:
    print(jax.devices()[0].name)  # wrong
