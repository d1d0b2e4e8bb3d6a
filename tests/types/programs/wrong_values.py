"""More programs with one mistake each: random numbers, arrays, networks and trees.

The names are those of the field, so the same file is read with the peer's in their place.
"""

from typing import Any

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random, scipy

Params = dict[str, jax.Array]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def area(side: jax.Array) -> jax.Array:
    return side * side


params: Params = {"w": jnp.ones((3, 1)), "b": jnp.zeros(1)}
x = jnp.ones((4, 3))
y = jnp.ones((4, 1))
key = random.key(0)


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


def key_made_by_numpy() -> None:
    random.seed(0)  # wrong


def normal_without_a_key() -> None:
    random.normal(shape=(3,))  # wrong


def normal_with_a_scale() -> None:
    random.normal(key, (3,), scale=2.0)  # wrong


def randint_without_bounds() -> None:
    random.randint(key, (3,))  # wrong


def choice_of_size() -> None:
    random.choice(key, x, size=3)  # wrong


def permutation_of_a_list_of_text() -> None:
    random.permutation(key, ["a", "b"])  # wrong


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


def view_as_in_torch() -> None:
    x.view(-1, 3)  # wrong


def unsqueeze_as_in_torch() -> None:
    x.unsqueeze(0)  # wrong


def detach_as_in_torch() -> None:
    x.detach()  # wrong


def append_as_in_lists() -> None:
    x.append(1.0)  # wrong


def permute_as_in_torch() -> None:
    jnp.permute(x, (1, 0))  # wrong


def fill_as_in_numpy() -> None:
    x.fill(0)  # wrong


def at_called() -> None:
    x.at(0).set(1.0)  # wrong


def at_assigned() -> None:
    x.at[0] = 1.0  # wrong


def max_gives_indices_as_in_torch() -> None:
    print(jnp.max(x, 0).values)  # wrong


def dtype_assigned() -> None:
    x.dtype = jnp.float16  # wrong


def shape_assigned() -> None:
    x.shape = (12,)  # wrong


def shape_plus_a_list() -> None:
    print(x.shape + [1])  # wrong


def shape_by_a_name() -> None:
    print(x.shape["rows"])  # wrong


def length_of_a_sum() -> None:
    print(x.sum().shape.dims)  # wrong


def text_times_array() -> None:
    print("loss: " + x.sum())  # wrong


def axis_of_a_float() -> None:
    jnp.sum(x, axis=1.0)  # wrong


def keepdim_as_in_torch() -> None:
    jnp.sum(x, axis=0, keepdim=True)  # wrong


def astype_of_a_list() -> None:
    x.astype([1])  # wrong


def cast_to_no_dtype() -> None:
    x.astype(32)  # wrong


def zeros_of_text() -> None:
    jnp.zeros("3")  # wrong


def zeros_by_floats() -> None:
    jnp.zeros((3.0, 4.0))  # wrong


def arange_of_text() -> None:
    jnp.arange("10")  # wrong


def eye_of_a_shape() -> None:
    jnp.eye((3, 3))  # wrong


def where_of_two() -> None:
    jnp.where(x > 0, x)  # wrong


def clip_by_low_and_high() -> None:
    jnp.clip(x, low=0)  # wrong


def einsum_without_letters() -> None:
    jnp.einsum(x, x)  # wrong


def argmax_over_axes() -> None:
    jnp.argmax(x, axis=(0, 1))  # wrong


def concatenate_along_dim() -> None:
    jnp.concatenate([x, x], dim=0)  # wrong


def split_without_sections() -> None:
    jnp.split(x)  # wrong


def expand_dims_without_an_axis() -> None:
    jnp.expand_dims(x)  # wrong


def unique_with_size_of_text() -> None:
    jnp.unique(x, size="3")  # wrong


def sort_that_is_in_place() -> None:
    values: list[float] = x.sort()  # wrong
    print(values)


def qr_taken_for_an_array() -> None:
    print(jnp.linalg.qr(x) @ x)  # wrong


def qr_in_three() -> None:
    q, r, p = jnp.linalg.qr(x)  # wrong


def eigh_in_three() -> None:
    w, v, info = jnp.linalg.eigh(x.T @ x)  # wrong


def slogdet_as_a_number() -> None:
    print(jnp.linalg.slogdet(x.T @ x) + 1)  # wrong


def solve_with_one() -> None:
    jnp.linalg.solve(x)  # wrong


def fft_over_dim() -> None:
    jnp.fft.fft(x, dim=0)  # wrong


def top_k_as_one_array() -> None:
    print(lax.top_k(x, 2).mean())  # wrong


def numpy_function_named_as_in_torch() -> None:
    jnp.cat([x, x])  # wrong


def relu_of_jnp() -> None:
    jnp.relu(x)  # wrong


def numpy_random() -> None:
    jnp.random.normal(3)  # wrong


def to_numpy_as_in_tensorflow() -> None:
    np.asarray(x).numpy()  # wrong


def linspace_is_an_array() -> None:
    jnp.linspace(0, 1, 5).append(1)  # wrong


def linspace_with_its_step_is_a_pair() -> None:
    jnp.linspace(0, 1, 5, retstep=True).sum()  # wrong


def singular_values_are_an_array() -> None:
    print(jnp.linalg.svd(x, compute_uv=False).S)  # wrong


def average_is_an_array() -> None:
    print(jnp.average(x, axis=0).avg)  # wrong


def average_with_weights_is_a_pair() -> None:
    jnp.average(x, returned=True).sum()  # wrong


def polyfit_is_an_array() -> None:
    print(jnp.polyfit(x[:, 0], y[:, 0], 1).roots)  # wrong


def gradient_along_an_axis_is_an_array() -> None:
    jnp.gradient(x, axis=0).append(x)  # wrong


def lu_in_two() -> None:
    lower, upper = scipy.linalg.lu(x)  # wrong


def lu_of_permuted_rows_in_three() -> None:
    p, lower, upper = scipy.linalg.lu(x, permute_l=True)  # wrong


def singular_values_of_scipy() -> None:
    print(scipy.linalg.svd(x, compute_uv=False)[0].S)  # wrong


def eigenvalues_of_scipy_are_an_array() -> None:
    print(scipy.linalg.eigh(x, eigvals_only=True).eigenvalues)  # wrong


def dtype_is_no_array() -> None:
    x.dtype.sum()  # wrong


def result_type_is_a_dtype() -> None:
    print(jnp.result_type(x, y).shap)  # wrong


def a_scalar_is_an_array() -> None:
    jnp.float32(3).append(1)  # wrong


def limits_of_floats() -> None:
    print(jnp.finfo(jnp.float32).epsilon)  # wrong


def limits_of_integers() -> None:
    print(jnp.iinfo(jnp.int32).maximum)  # wrong


def distinct_elements_are_an_array() -> None:
    jnp.unique(x).items()  # wrong


def common_elements_are_an_array() -> None:
    jnp.intersect1d(x, y).items()  # wrong


def indices_are_an_array() -> None:
    jnp.indices((2, 3)).append(1)  # wrong


def reduce_of_a_misspelt_axis() -> None:
    jnp.add.reduce(x, axes=0)  # wrong


def reduce_gives_an_array() -> None:
    jnp.maximum.reduce(x).items()  # wrong


def outer_of_one_argument() -> None:
    jnp.multiply.outer(x)  # wrong


def method_that_no_function_has() -> None:
    jnp.add.fold(x)  # wrong


def sum_of_one_operand() -> None:
    jnp.add(x)  # wrong


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


def dropout_of_nn() -> None:
    nn.dropout(x, 0.5)  # wrong


def softmax_of_nothing() -> None:
    nn.softmax()  # wrong


def one_hot_of_text() -> None:
    nn.one_hot(jnp.arange(3), "3")  # wrong


def initializer_called_at_once() -> None:
    nn.initializers.glorot_normal(key, (3, 3))  # wrong


def initializer_that_is_missing() -> None:
    nn.initializers.kaiming()  # wrong


def attention_with_two() -> None:
    nn.dot_product_attention(x, x)  # wrong


def tree_map_of_a_missing_function() -> None:
    jax.tree.map(jax.add, params, params)  # wrong


def tree_leaves_as_a_tuple() -> None:
    leaves: dict[str, Any] = jax.tree.leaves(params)  # wrong
    print(leaves)


def tree_flatten_in_three() -> None:
    leaves, treedef, extra = jax.tree.flatten(params)  # wrong


def config_misspelt() -> None:
    jax.config.updates("jax_enable_x64", True)  # wrong, unseen


def debug_breakpoint_on_a_value() -> None:
    jax.debug.prnt("x")  # wrong


def stop_gradient_of_nothing() -> None:
    lax.stop_gradient()  # wrong


def block_until_ready_on_a_float() -> None:
    loss_value = float(jax.jit(loss)(params, x, y))
    loss_value.block_until_ready()  # wrong


def accuracy_as_a_python_bool() -> None:
    def hit(a: jax.Array, b: jax.Array) -> bool:
        return (a == b).all()  # wrong

    print(hit(x, x))


def optional_result_not_looked_at() -> None:
    def find(name: str) -> jax.Array | None:
        return params.get(name)

    print(find("w") + 1)  # wrong
