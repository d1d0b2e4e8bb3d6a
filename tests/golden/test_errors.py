"""What bad input gets, word for word: who complains, what was found, what was needed, what to do.

Where a message names a line of the user's, the case marks it."""

import dataclasses

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.golden.mistakes import Mistakes

N = 4
ROWS = np.arange(N * 3, dtype=np.float32).reshape(N, 3)
mistake = Mistakes(__file__, never=r"shard_?map|\bmesh|\bjax\b")


# ---- sizes and positions of axes ----------------------------------------------------------------


@mistake
def saving_with_what_recomputes():
    phalanx.checkpoint.save("runs", 1, ROWS)  # HERE


@mistake
def counts_of_repeat_that_are_too_few():
    jnp.repeat(jnp.ones(3), np.array([1, 2]))  # HERE


@mistake
def a_guard_that_is_a_structure():
    phalanx.transfer_guard(phalanx.tree.structure(1))


@mistake
def sizes_disagree():
    def step(params, batch, *, rate):
        return params

    phalanx.pmap(step)({"w": ROWS, "b": ROWS[:2]}, ROWS, rate=np.ones(3))


@mistake
def sizes_disagree_in_vmap():
    phalanx.vmap(lambda x, y: x, in_axes=(0, 1))(ROWS, ROWS)


@mistake
def nothing_tells_the_size():
    phalanx.pmap(lambda x: x, in_axes=None)(1.0)


@mistake
def axis_size_disagrees():
    phalanx.pmap(lambda x: x, axis_size=3)(ROWS)


@mistake
def axis_size_that_is_no_integer():
    phalanx.pmap(lambda x: x, axis_size=2.5)(ROWS)


@mistake
def axis_name_that_is_a_list():
    phalanx.pmap(lambda x: x, axis_name=["i"])


@mistake
def an_axis_without_lanes():
    phalanx.pmap(lambda x: x)(np.zeros((0, 3), np.float32))


@mistake
def position_out_of_range():
    phalanx.pmap(lambda x: x, in_axes=2)(ROWS)


@mistake
def scalar_is_mapped():
    phalanx.pmap(lambda scale, x: scale * x)(2.0, ROWS)


@mistake
def in_axes_of_wrong_length():
    phalanx.pmap(lambda x, y: x, in_axes=(0,))(ROWS, ROWS)


@mistake
def in_axes_that_do_not_fit():
    phalanx.pmap(lambda x, t: x, in_axes=(0, {"w": 0, "b": (0, 0)}))(  # HERE
        ROWS, {"w": ROWS, "b": (ROWS, ROWS, ROWS)}
    )


@mistake
def in_axes_with_other_keys():
    phalanx.pmap(lambda t: t, in_axes=({"weights": 0},))({"w": ROWS})  # HERE


@mistake
def in_axes_of_wrong_type():
    phalanx.pmap(lambda x: x, in_axes="0")(ROWS)


@mistake
def out_axes_that_do_not_fit():
    axes = {"loss": 0, "aux": (0, 0, 0)}
    phalanx.pmap(lambda x: {"loss": x, "aux": (x, x)}, out_axes=axes)(ROWS)  # HERE


@mistake
def out_axes_out_of_range():
    phalanx.pmap(lambda x: x.sum(), out_axes=1)(ROWS)


@mistake
def a_shared_result_differs():
    def loss(w, x):
        error = x - w  # HERE
        return (error**2).mean()

    def step(w, x):
        value, slope = phalanx.value_and_grad(loss)(w, x)
        return value, lax.pmean(slope, "batch")

    phalanx.pmap(step, axis_name="batch", in_axes=(None, 0), out_axes=None)(
        np.zeros(3, np.float32), ROWS
    )


@mistake
def a_mapped_argument_is_returned_as_shared():
    phalanx.pmap(lambda x: {"x": x}, out_axes=None)(ROWS)


@mistake
def a_shared_result_differs_in_vmap():
    phalanx.vmap(lambda x: x, out_axes=None)(ROWS)


# ---- collectives --------------------------------------------------------------------------------


@mistake
def unbound_axis():
    phalanx.pmap(
        lambda x: phalanx.vmap(lambda y: lax.psum(y, "bacth"), axis_name="item")(x),  # HERE
        axis_name="batch",
    )(ROWS)


@mistake
def unbound_axis_outside():
    lax.pmean(jnp.ones(3), "batch")  # HERE


@mistake
def ppermute_leaves_the_axis():
    phalanx.pmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 4)]), axis_name="i")(ROWS)  # HERE


@mistake
def ppermute_sends_twice():
    phalanx.pmap(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), axis_name="i")(ROWS)  # HERE


@mistake
def ppermute_without_pairs():
    phalanx.pmap(lambda x: lax.ppermute(x, "i", [(0, 1, 2)]), axis_name="i")(ROWS)  # HERE


@mistake
def ppermute_of_plain_indices():
    phalanx.pmap(lambda x: lax.ppermute(x, "i", [1, 2, 3, 0]), axis_name="i")(ROWS)  # HERE


@mistake
def pshuffle_without_a_permutation():
    phalanx.pmap(lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), axis_name="i")(ROWS)  # HERE


@mistake
def groups_that_do_not_partition():
    groups = [[0, 1], [1, 2]]
    phalanx.pmap(
        lambda x: lax.psum(x, "i", axis_index_groups=groups),  # HERE
        axis_name="i",
    )(ROWS)


@mistake
def groups_that_are_no_sequences():
    phalanx.pmap(
        lambda x: lax.psum(x, "i", axis_index_groups=[0, 1, 2, 3]),  # HERE
        axis_name="i",
    )(ROWS)


@mistake
def uneven_groups_in_an_exchange():
    phalanx.pmap(
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]]),  # HERE
        axis_name="i",
    )(ROWS)


@mistake
def all_to_all_of_the_wrong_size():
    phalanx.pmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(ROWS)  # HERE


@mistake
def psum_scatter_that_does_not_divide():
    phalanx.pmap(lambda x: lax.psum_scatter(x, "i", tiled=True), axis_name="i")(ROWS)  # HERE


@mistake
def collective_of_a_string():
    phalanx.pmap(lambda x: lax.psum({"x": x, "name": "loss"}, "i"), axis_name="i")(ROWS)  # HERE


# ---- arguments and results ----------------------------------------------------------------------


@mistake
def argument_that_is_no_array():
    phalanx.pmap(lambda x, options: x)(ROWS, {"mode": "train"})


@mistake
def argument_that_is_no_array_in_jit():
    phalanx.jit(lambda x, mode: x)(1.0, "train")


@mistake
def argument_of_strings():
    phalanx.jit(lambda names: names)(np.array(["a", "b"]))


@mistake
def result_that_is_no_array():
    phalanx.jit(lambda x: {"loss": x, "name": "mse"})(1.0)


@mistake
def unhashable_static():
    phalanx.pmap(lambda sizes, x: x, static_broadcasted_argnums=0)([1, 2], ROWS)  # HERE


@mistake
def unhashable_static_in_jit():
    phalanx.jit(lambda x, sizes: x, static_argnames="sizes")(1.0, sizes={"a": 1})  # HERE


@mistake
def static_array():
    phalanx.jit(lambda x, scale: x * scale, static_argnums=1)(ROWS, jnp.ones(3))  # HERE


@mistake
def static_position_that_is_not_there():
    phalanx.jit(lambda x: x, static_argnums=1)


@mistake
def static_name_that_is_not_there():
    phalanx.jit(lambda x, size: x, static_argnames="sizes")


@mistake
def static_and_donated():
    phalanx.jit(lambda x: x, static_argnums=0, donate_argnums=0)


@mistake
def donated_position_that_is_not_there():
    phalanx.pmap(lambda x: x, donate_argnums=1)


@mistake
def no_function():
    phalanx.pmap(ROWS)


# ---- values that are not known while tracing ----------------------------------------------------


@mistake
def python_if():
    @phalanx.jit
    def relu(x, slope):
        y = x * slope  # HERE
        if y > 0:  # HERE
            return y
        return x

    relu(1.0, 2.0)


@mistake
def python_if_in_pmap():
    def step(params, batch):
        if params["scale"] > 0:  # HERE
            return batch
        return -batch

    phalanx.pmap(step, in_axes=(None, 0))({"scale": 1.0}, ROWS)


@mistake
def python_if_in_vmap():
    phalanx.vmap(lambda x: 1.0 if x > 0 else -1.0)(ROWS[:, 0])  # HERE


@mistake
def python_if_in_a_derivative_in_vmap_in_jit():
    def loss(w, x):
        error = (w - x) ** 2  # HERE
        return error if error.sum() else w  # HERE

    @phalanx.jit
    def step(w, batch):
        return phalanx.vmap(phalanx.grad(loss), in_axes=(None, 0))(w, batch)

    step(1.0, ROWS[:, 0])


@mistake
def float_in_a_derivative_in_jit():
    def loss(w, x):
        error = w * x  # HERE
        return float(error)  # HERE

    phalanx.jit(phalanx.grad(loss))(1.0, 2.0)


@mistake
def int_of_a_traced_value():
    phalanx.jit(lambda n: jnp.ones(3) * int(n))(3)  # HERE


@mistake
def float_of_a_traced_value():
    phalanx.jit(lambda x: float(x.sum()))(ROWS)  # HERE


@mistake
def range_of_a_traced_value():
    def repeat(x, n):
        for _ in range(n):  # HERE
            x = x + 1
        return x

    phalanx.jit(repeat)(1.0, 3)


@mistake
def numpy_of_a_traced_value():
    phalanx.jit(lambda x: np.asarray(x).sum())(ROWS)  # HERE


@mistake
def numpy_function_of_a_traced_value():
    phalanx.jit(lambda x: np.linalg.norm(x))(ROWS)  # HERE


@mistake
def item_of_a_traced_value():
    phalanx.jit(lambda x: x.sum().item())(ROWS)  # HERE


@mistake
def shape_from_a_traced_value():
    phalanx.jit(lambda n: jnp.zeros((n, 2)))(3)  # HERE


@mistake
def new_shape_from_a_traced_value():
    phalanx.jit(lambda x, n: jnp.reshape(x, (n, 3)))(ROWS, 4)  # HERE


@mistake
def a_dataclass_that_is_returned():
    @dataclasses.dataclass
    class State:
        weights: object

    phalanx.jit(lambda x: State(x))(ROWS)


@mistake
def argument_that_is_a_dataclass():
    @dataclasses.dataclass
    class Params:
        rate: float

    phalanx.jit(lambda params: params.rate)(Params(0.5))


@mistake
def array_of_objects():
    jnp.array([1.0, None])


@mistake
def array_of_text():
    jnp.array(["one", "two"])


@mistake
def dtype_that_is_misspelt():
    jnp.zeros(3, "flaot32")


@mistake
def mask_as_an_index():
    phalanx.jit(lambda x: x[x > 0])(ROWS)  # HERE


@mistake
def escaped_from_jit():
    kept = []

    @phalanx.jit
    def remember(x):
        y = x * 2  # HERE
        kept.append(y)
        return y

    remember(1.0)
    kept[0] + 1  # HERE


@mistake
def escaped_from_grad():
    kept = []
    phalanx.grad(lambda x: kept.append(x) or x**2)(3.0)
    jnp.sin(kept[0])  # HERE


@mistake
def escaped_into_a_mapped_function():
    kept = []
    phalanx.pmap(lambda x: kept.append(x) or x)(ROWS)
    phalanx.pmap(lambda x: x + kept[0])(ROWS)  # HERE


@mistake
def escaped_as_an_argument():
    kept = []
    phalanx.jit(lambda x: kept.append(x) or x)(ROWS)
    phalanx.jit(lambda x: x)(kept[0])  # HERE


@mistake
def escaped_from_vmap_and_asked_for_its_value():
    kept = []
    phalanx.vmap(lambda x: kept.append(x) or x)(ROWS)
    float(kept[0].sum())  # HERE


# ---- arrays that are deleted --------------------------------------------------------------------


@mistake
def use_of_a_donated_array():
    x = jnp.ones(3)
    phalanx.jit(lambda x: x + 1, donate_argnums=0)(x)
    x + 1  # HERE


@mistake
def second_donation():
    step = phalanx.pmap(lambda x: x + 1, donate_argnums=0)
    x = step(jnp.ones((N, 3)))  # dealt out as the next step takes it
    step(x)
    step(x)  # HERE


@mistake
def use_of_a_deleted_array():
    x = jnp.ones(3)
    x.delete()
    np.asarray(x)  # HERE


@mistake
def use_of_a_captured_array_that_is_gone():
    w = jnp.ones(300)  # a few numbers would be written into the program
    scale = phalanx.jit(lambda x: x * w)
    scale(1.0)
    w.delete()
    scale(1.0)


@mistake
def donated_and_passed_again():
    x = jnp.ones(3)
    phalanx.jit(lambda x, y: x + y, donate_argnums=0)(x, x)  # HERE


# ---- derivatives --------------------------------------------------------------------------------


@mistake
def grad_by_an_integer():
    phalanx.grad(lambda params: params["w"] * 2.0)({"w": jnp.arange(3)})


@mistake
def grad_of_a_vector():
    phalanx.grad(lambda x: x * 2)(ROWS)


@mistake
def grad_of_an_integer_result():
    phalanx.grad(lambda x: jnp.argmax(x))(ROWS)


@mistake
def grad_of_a_pair_without_has_aux():
    phalanx.grad(lambda x: (x.sum(), x))(ROWS)


@mistake
def has_aux_without_a_pair():
    phalanx.grad(lambda x: x.sum(), has_aux=True)(ROWS)


@mistake
def grad_of_a_complex_result():
    phalanx.grad(lambda z: z * 2)(1j)  # HERE


@mistake
def argnums_out_of_range():
    phalanx.grad(lambda x, y: x * y, argnums=1)(1.0, y=2.0)


@mistake
def tangent_of_another_shape():
    phalanx.jvp(jnp.sin, (ROWS,), (ROWS[0],))


@mistake
def cotangent_of_another_tree():
    _, pull = phalanx.vjp(lambda x: {"y": x}, ROWS)
    pull(ROWS)


# ---- ahead of time ------------------------------------------------------------------------------


@mistake
def compiled_for_another_dtype():
    compiled = phalanx.pmap(lambda params, x: params["w"] * x).lower({"w": ROWS}, ROWS).compile()
    compiled({"w": ROWS.astype(np.int32)}, ROWS)


@mistake
def compiled_for_another_tree():
    compiled = phalanx.jit(lambda params: params["w"]).lower({"w": ROWS}).compile()
    compiled({"weights": ROWS})


@mistake
def compiled_for_more_arguments():
    compiled = phalanx.jit(lambda x, y: x + y).lower(1.0, 2.0).compile()
    compiled(1.0)


@mistake
def compiled_for_static_arguments():
    compiled = phalanx.jit(lambda x, n: x**n, static_argnums=1).lower(ROWS, 3).compile()
    compiled(ROWS, 2)


@mistake
def compiled_and_then_transformed():
    compiled = phalanx.jit(lambda x: x * x).lower(1.0).compile()
    phalanx.grad(compiled)(2.0)


@mistake
def size_of_the_cache_as_a_string():
    phalanx.config.update("compilation_cache_max_size", "2GB")


@mistake
def unknown_compiler_option():
    phalanx.jit(lambda x: x + 1).lower(1.0).compile(compiler_options={"xla_cpu_fast_maths": True})


# ---- not a number -------------------------------------------------------------------------------


@mistake
def nan_in_eager_code():
    with phalanx.config.override(debug_nans=True):
        jnp.log(jnp.array([1.0, -1.0]))  # HERE


@mistake
def nan_in_jit():
    @phalanx.jit
    def f(x):
        y = jnp.sqrt(x - 2.0)  # HERE
        return (y * 3.0).sum()

    with phalanx.config.override(debug_nans=True):
        f(np.arange(4.0))


@mistake
def nan_in_pmap():
    def step(x):
        share = x / lax.psum(x, "i")  # HERE
        return share + 1.0

    with phalanx.config.override(debug_nans=True):
        phalanx.pmap(step, axis_name="i")(np.zeros((N, 3), np.float32))


# ---- devices and options ------------------------------------------------------------------------


@mistake
def devices_on_an_inner_map():
    inner = phalanx.pmap(lambda v: v, devices=phalanx.devices()[:1])
    phalanx.pmap(inner)(ROWS)


@mistake
def no_devices():
    phalanx.pmap(lambda x: x, devices=[])


@mistake
def repeated_devices():
    phalanx.pmap(lambda x: x, devices=phalanx.devices()[:1] * 2)


@mistake
def devices_by_their_number():
    phalanx.pmap(lambda x: x, devices=2)(ROWS)  # HERE


@mistake
def a_mesh_of_a_platform():
    phalanx.make_mesh((2,), ("x",), devices="cpu")  # HERE


@mistake
def devices_that_are_none():
    phalanx.pmap(lambda x: x, devices=["cpu:0"])


@mistake
def unknown_platform():
    phalanx.devices("gpuu")


@mistake
def number_of_devices_too_late():
    phalanx.devices()
    phalanx.config.update("num_cpu_devices", 64)


@mistake
def unknown_option():
    phalanx.config.update("enable_x46", True)


@mistake
def device_put_of_a_number_over_devices():
    device = phalanx.devices()[0]
    phalanx.device_put(1.0, [device, device])


@mistake
def device_put_to_a_string():
    phalanx.device_put(ROWS, "cpu")  # HERE


@mistake
def shards_without_devices():
    phalanx.device_put_sharded([ROWS, ROWS], phalanx.devices()[:1])


@mistake
def drawing_of_a_list():
    phalanx.debug.visualize_array_sharding([1.0, 2.0])


@mistake
def drawing_of_a_numpy_array():
    phalanx.debug.visualize_array_sharding(ROWS)


@mistake
def drawing_of_a_traced_array():
    phalanx.jit(phalanx.debug.visualize_array_sharding)(ROWS)


@mistake
def drawing_of_an_array_instead_of_a_shape():
    x = jnp.array(ROWS)
    phalanx.debug.visualize_sharding(x, x.sharding)


@mistake
def drawing_without_a_sharding():
    phalanx.debug.visualize_sharding((4, 2), "cpu")


# ---- array operations ---------------------------------------------------------------------------


@mistake
def add_of_other_shapes():
    jnp.ones((4, 3)) + jnp.ones(4)  # HERE


@mistake
def matmul_of_other_shapes():
    jnp.ones((4, 3)) @ jnp.ones((4, 2))


@mistake
def add_of_other_dtypes_in_lax():
    lax.add(jnp.ones(3), jnp.arange(3))


@mistake
def reshape_to_another_size():
    jnp.ones((4, 3)).reshape(5, 2)


@mistake
def sum_of_a_string():
    jnp.sum("rows")


@mistake
def assignment_to_an_element():
    x = jnp.ones(3)
    x[0] = 1.0


@mistake
def assignment_to_an_element_while_tracing():
    def f(x):
        x[0] = 1.0
        return x

    phalanx.jit(f)(ROWS)


@mistake
def a_shape_whose_bytes_nobody_can_count():
    jnp.ones((2**40, 2**40))


@mistake
def truth_of_many():
    bool(jnp.ones(3))


@mistake
def too_many_indices():
    jnp.ones(3)[0, 0]


def test_messages(golden):
    golden(mistake.texts())
