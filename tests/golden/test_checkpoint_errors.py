"""What mistakes with checkpoint get, word for word.

Each case is a mistake; ``checkpoints/<case>.txt`` holds the type and the message, in which the
numbers of lines are written HERE.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.ad_checkpoint import checkpoint_name, print_saved_residuals

P = phalanx.checkpoint_policies
X = np.ones(3, np.float32)
CASES = {}


def mistake(case):
    CASES[case.__name__] = case
    return case


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
def static_list():
    phalanx.checkpoint(lambda x, dims: jnp.sum(x), static_argnums=1)(X, [0])


@mistake
def static_position_that_is_not_there():
    phalanx.checkpoint(loss, static_argnums=1)


@mistake
def residuals_of_a_string():
    print_saved_residuals(loss, "rows")


@pytest.mark.parametrize("name", CASES)
def test_message(name, golden):
    with pytest.raises(Exception) as caught:
        CASES[name]()
    error = caught.value
    kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
    head = type(error).__name__
    head = head if head in kinds else f"{head} (a {kinds[0]})"
    message = re.sub(r"(test_checkpoint_errors.py):\d+", r"\1:HERE", str(error))
    assert "phalanx/" not in message and "object at 0x" not in message
    golden(f"checkpoints/{name}.txt", f"{head}\n\n{message}")


def test_no_golden_file_is_left_over():
    files = (Path(__file__).parent / "checkpoints").glob("*.txt")
    assert {path.stem for path in files} <= set(CASES)
