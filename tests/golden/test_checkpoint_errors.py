"""What mistakes with checkpoint get, word for word."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx.ad_checkpoint import checkpoint_name, print_saved_residuals
from tests.golden.mistakes import Mistakes

P = phalanx.checkpoint_policies
X = np.ones(3, np.float32)
mistake = Mistakes(__file__)


def loss(x):
    return jnp.sum(jnp.sin(x))


@mistake
def no_function():
    phalanx.checkpoint(X)


@mistake
def policy_by_name():
    phalanx.checkpoint(loss, policy="dots_saveable")


@mistake
def policy_that_was_not_made():
    phalanx.checkpoint(loss, policy=P.save_only_these_names)


@mistake
def names_saved_and_offloaded():
    P.save_and_offload_only_these_names(
        names_which_can_be_saved=["a", "b"], names_which_can_be_offloaded=["b"],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip


@mistake
def offloaded_to_memory_that_is_not_there():
    P.offload_dot_with_no_batch_dims("device", "disk")


@mistake
def policy_without_an_answer():
    def names(prim, *types, **params):
        print(end=prim.name[:0])

    phalanx.grad(phalanx.checkpoint(loss, policy=names))(X)


@mistake
def names_in_a_list():
    P.save_only_these_names(["hidden", "scores"])


@mistake
def prevent_cse_by_name():
    phalanx.checkpoint(loss, prevent_cse="always")


@mistake
def name_before_the_value():
    checkpoint_name("hidden", X)


@mistake
def name_of_a_string():
    checkpoint_name({"x": "rows"}, "hidden")


@mistake
def argument_that_decides():
    @phalanx.checkpoint
    def rectified(x):
        return x if x > 0 else 0.0

    phalanx.grad(rectified)(1.0)


@mistake
def argument_that_is_no_array():
    phalanx.grad(phalanx.checkpoint(lambda x, kind: loss(x)))(X, "sum")


@mistake
def static_position_that_is_not_there():
    phalanx.checkpoint(loss, static_argnums=1)


@mistake
def residuals_of_a_string():
    print_saved_residuals(loss, "rows")


def test_messages(golden):
    golden(mistake.texts())
