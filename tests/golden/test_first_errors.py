"""What the mistakes of the first hour get, word for word, and that the last line is the user's: one
who comes from NumPy, PyTorch or Python alone."""

import traceback

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.example_libraries import stax
from tests.golden.mistakes import Mistakes

X = jnp.arange(3.0)
mistake = Mistakes(__file__)


@mistake
def a_shape_in_several_arguments():
    jnp.zeros(2, 3)


@mistake
def a_misspelt_dtype():
    jnp.zeros(3, dtype="flot32")


@mistake
def an_assignment_to_an_element():
    X[0] = 1.0


@mistake
def arrays_to_be_joined_that_are_no_list():
    jnp.concatenate(X, X)


@mistake
def a_list_in_place_of_an_array():
    jnp.sum([1, 2, 3])


@mistake
def random_numbers_of_numpy():
    jnp.random.normal(size=3)


@mistake
def images_with_channels_last():
    phalanx.lax.conv(jnp.ones((8, 28, 28, 3)), jnp.ones((3, 3, 3, 16)), (1, 1), "SAME")


@mistake
def a_forgotten_key():
    random.normal(shape=(3,))


@mistake
def a_derivative_by_an_integer_in_an_update():
    params = {"w": X, "step": jnp.int32(0)}
    grads = phalanx.grad(lambda p: (p["w"] * 2).sum(), allow_int=True)(params)
    phalanx.tree.map(lambda p, g: p - jnp.float32(0.1) * g, params, grads)


@mistake
def a_seed_in_place_of_a_key():
    random.normal(0, (3,))


@mistake
def a_function_of_numpy_inside_jit():
    import numpy as np

    phalanx.jit(lambda x: np.sin(x))(X)


@mistake
def an_if_inside_jit():
    phalanx.jit(lambda x: 1 if x > 0 else 2)(1.0)


@mistake
def a_length_that_is_traced():
    phalanx.jit(lambda n: jnp.zeros(n))(3)


@mistake
def a_mask_inside_jit():
    phalanx.jit(lambda x: x[x > 0])(X)


@mistake
def text_among_the_arguments():
    phalanx.jit(lambda x, mode: x)(X, "train")


@mistake
def the_gradient_of_a_vector():
    phalanx.grad(lambda x: 2 * x)(X)


@mistake
def the_gradient_by_an_integer():
    phalanx.grad(lambda x: 2.0 * x)(3)


@mistake
def a_misspelt_axis():
    phalanx.pmap(lambda x: lax.psum(x, "bacth"), axis_name="batch")(X)


@mistake
def rows_that_are_not_as_many():
    phalanx.pmap(lambda x, y: x + y)(jnp.ones((8, 2)), jnp.ones((4, 2)))


@mistake
def an_axis_of_another_program():
    phalanx.pmap(lambda x: lax.psum(x, "model"), axis_name="batch")(X)


@mistake
def a_number_by_keyword_beside_rows():
    phalanx.pmap(lambda x, y: x + y)(X, y=1.0)


@mistake
def a_number_beside_rows():
    phalanx.pmap(lambda x, y: x + y)(X, 1.0)


@mistake
def moving_as_torch_does():
    X.cuda()


@mistake
def detaching_as_torch_does():
    phalanx.jit(lambda x: x.detach())(X)


@mistake
def the_element_of_many():
    X.item()


@mistake
def an_assignment_to_a_part():
    X.at[0] = 1.0


@mistake
def a_part_in_parentheses():
    X.at(0)


@mistake
def a_list_beside_an_array():
    X * [1, 2, 3]


@mistake
def a_number_too_large_for_its_dtype():
    jnp.uint8(300)


@mistake
def a_body_without_rows():
    lax.scan(lambda carry, x: carry + x, 0.0, X)


@mistake
def a_tree_beside_an_array():
    X @ {"w": X}


@mistake
def the_gradient_by_integers():
    phalanx.grad(lambda n: n.sum())(jnp.arange(3))


@mistake
def a_mesh_of_a_number():
    phalanx.make_mesh(8, "x")


@mistake
def an_image_that_is_a_matrix():
    lax.conv(jnp.ones((8, 8)), jnp.ones((3, 3)), (1, 1), "SAME")


@mistake
def a_kernel_that_is_a_matrix():
    lax.conv(jnp.ones((1, 1, 8, 8)), jnp.ones((3, 3)), (1, 1), "SAME")


@mistake
def a_layer_of_images_without_features():
    stax.Conv(4, (3, 3))[0](random.key(0), (28, 28))


@mistake
def inputs_with_other_features_than_the_layers():
    init, apply = stax.serial(stax.Dense(3), stax.Relu)
    _, params = init(random.key(0), (-1, 4))
    apply(params, jnp.ones((2, 5)))


@mistake
def a_misspelt_keyword():
    X.sum(axes=0)


def test_messages(golden):
    golden(mistake.texts())


@pytest.mark.parametrize("name", mistake.cases)
def test_the_last_line_is_the_users(name, as_users_have_it):
    with pytest.raises(Exception) as caught:
        mistake.cases[name]()
    lines = traceback.extract_tb(caught.value.__traceback__)
    assert lines[-1].filename == __file__
