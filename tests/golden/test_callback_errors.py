"""What mistakes with Python functions in programs get, word for word."""

import numpy as np
import pytest

import phalanx
from phalanx import debug, lax
from tests.golden.mistakes import Mistakes

X = np.float32(2)
XS = np.arange(3, dtype=np.float32)
SCALAR = phalanx.ShapeDtypeStruct((), "float32")
mistake = Mistakes(__file__)
pytestmark = pytest.mark.skipif(phalanx.device_count() < 2, reason="needs several devices")


def compute(x):
    return x


def called(result, like=SCALAR, x=X):
    phalanx.jit(lambda x: phalanx.pure_callback(result, like, x))(x)


# ---- results ------------------------------------------------------------------------------------


@mistake
def result_of_another_shape():
    def mean(x):
        return np.mean(x, keepdims=True)

    called(mean, x=XS)


@mistake
def result_of_another_dtype():
    def mean(x):
        return np.asarray(x, np.float64).mean()

    called(mean, x=XS)


@mistake
def result_of_another_dtype_in_a_tree():
    def count(x):
        return {"n": np.int64(x.size)}

    called(count, {"n": phalanx.ShapeDtypeStruct((), "int32")}, x=XS)


@mistake
def number_that_does_not_fit():
    def count(x):
        return 0.5

    called(count, phalanx.ShapeDtypeStruct((), "int32"))


@mistake
def result_of_another_structure():
    def both(x):
        return x, x

    called(both)


@mistake
def result_where_none_was_declared():
    phalanx.jit(lambda x: phalanx.io_callback(compute, None, x))(X)


@mistake
def result_that_is_no_array():
    def name(x):
        return "x"

    called(name)


@mistake
def result_without_lanes():
    def mean(x):
        return np.float32(0)

    def f(x):
        return phalanx.pure_callback(mean, SCALAR, x, vmap_method="expand_dims")

    phalanx.vmap(f)(XS)


@mistake
def result_declared_by_a_number():
    called(compute, like=1.0)


# ---- transformations ----------------------------------------------------------------------------


@mistake
def grad_of_pure_callback():
    def loss(x):
        return phalanx.pure_callback(compute, SCALAR, x) ** 2

    phalanx.grad(loss)(X)


@mistake
def grad_of_io_callback_in_jit():
    phalanx.jit(phalanx.grad(lambda x: phalanx.io_callback(compute, SCALAR, x)))(X)


@mistake
def vmap_without_method():
    phalanx.vmap(lambda x: phalanx.pure_callback(compute, SCALAR, x))(XS)


@mistake
def unknown_vmap_method():
    phalanx.pure_callback(compute, SCALAR, X, vmap_method="parallel")


@mistake
def ordered_on_several_devices():
    phalanx.pmap(lambda x: debug.print("{}", x, ordered=True))(np.arange(2))


@mistake
def effect_in_a_loop_that_runs_twice():
    def step(x):
        return x + phalanx.io_callback(compute, SCALAR, np.float32(1))

    phalanx.linearize(lambda x: lax.while_loop(lambda x: x < 3, step, x), X)[1](X)


# ---- arguments ----------------------------------------------------------------------------------


@mistake
def argument_that_is_no_array():
    phalanx.pure_callback(compute, SCALAR, "x")


@mistake
def no_function():
    phalanx.io_callback(3, SCALAR, X)


@mistake
def format_without_the_argument():
    debug.print("{} and {}", X)


@mistake
def format_without_the_name():
    debug.print("{loss}", X=X)


@mistake
def argument_without_a_field():
    debug.print(f"x is {X}", X)


@mistake
def format_that_is_no_string():
    debug.print(X)


# ---- the test -----------------------------------------------------------------------------------


def test_messages(golden):
    golden(mistake.texts())
