"""What mistakes with loops and branches get, word for word."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.primitives import Primitive
from tests.golden.mistakes import Mistakes

X = np.ones(3, np.float32)
mistake = Mistakes(__file__)


@mistake
def branches_of_other_structure():
    lax.cond(True, lambda x: x, lambda x: (x, x), X)


@mistake
def branches_of_other_types():
    lax.cond(True, lambda x: x, lambda x: x[:2], X)


@mistake
def branches_of_other_types_in_a_switch():
    lax.switch(1, [lambda x: x, lambda x: x, lambda x: x > 0], X)


@mistake
def predicate_that_is_complex():
    lax.cond(1j, lambda x: x, lambda x: x, X)


@mistake
def predicate_of_many():
    lax.cond(X > 0, lambda x: x, lambda x: x, X)


@mistake
def branches_that_are_no_functions():
    lax.cond(True, 1.0, 2.0)


@mistake
def switch_between_values():
    lax.switch(0, [1.0, 2.0])


@mistake
def switch_without_branches():
    lax.switch(0, [], X)


@mistake
def switch_by_a_float():
    lax.switch(0.5, [jnp.sin, jnp.cos], X)


@mistake
def carry_of_another_shape():
    lax.scan(lambda c, x: ({"a": c["a"][:2]}, x), {"a": X}, X)


@mistake
def carry_of_another_dtype():
    lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 1.5), (0, jnp.int32(1)))


@mistake
def carry_of_another_structure():
    lax.fori_loop(0, 3, lambda i, c: (c, c), X)


@mistake
def scan_without_a_pair():
    lax.scan(lambda c, x: c, 0.0, X)


@mistake
def scan_of_rows_of_other_lengths():
    lax.scan(lambda c, x: (c, None), 0.0, (X, X[:2]))


@mistake
def scan_that_does_not_know_how_often():
    lax.scan(lambda c, x: (c, None), 0.0)


@mistake
def scan_of_fewer_than_no_rows():
    lax.scan(lambda c, x: (c, None), 0.0, length=-1)


@mistake
def scan_written_out_a_negative_number_of_times():
    lax.scan(lambda c, x: (c, None), 0.0, X, unroll=-1)


@mistake
def dynamic_loop_written_out():
    lax.fori_loop(0, jnp.int32(3), lambda i, c: c, 0.0, unroll=True)


@mistake
def dynamic_loop_that_changes_its_carry():
    lax.fori_loop(0, jnp.int32(3), lambda i, c: c[:2], X)


@mistake
def map_in_batches_of_none():
    lax.map(lambda x: x, X, batch_size=0)


@mistake
def map_of_rows_of_other_lengths():
    lax.map(lambda x: x, (X, X[:2]))


@mistake
def associative_scan_over_an_axis_that_is_not_there():
    lax.associative_scan(jnp.add, X, axis=1)


@mistake
def associative_scan_of_nothing():
    lax.associative_scan(jnp.add, ())


@mistake
def associative_scan_over_other_lengths():
    lax.associative_scan(lambda a, b: a, (X, X[:2]))


@mistake
def associative_scan_that_returns_another_structure():
    lax.associative_scan(lambda a, b: (a, b), X)


@mistake
def associative_scan_that_returns_another_type():
    lax.associative_scan(lambda a, b: a[:0], X)


@mistake
def condition_that_is_no_boolean():
    lax.while_loop(lambda c: c, lambda c: c - 1, 3)


@mistake
def bounds_that_are_complex():
    lax.fori_loop(0, 2j, lambda i, c: c, 0.0)


@mistake
def reverse_mode_through_a_while_loop():
    def halved(x):
        return lax.while_loop(lambda y: y > 1, lambda y: y / 2, x)

    phalanx.grad(halved)(2.0)


@mistake
def reverse_mode_through_a_loop_with_dynamic_bounds():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, y: y * x, 1.0)

    phalanx.jit(phalanx.grad(power))(2.0, 3)


@mistake
def python_if_in_a_body():
    lax.fori_loop(0, 3, lambda i, c: c + 1 if i > 1 else c, 0)


@mistake
def transpose_of_a_square():
    phalanx.linear_transpose(lambda x: x * x, X)(X)


@mistake
def rule_that_squares_tangents_in_a_loop():
    @phalanx.custom_jvp
    def f(x):
        return x

    @f.defjvp
    def rule(primals, tangents):
        return primals[0], lax.fori_loop(0, 3, lambda i, t: t * t, tangents[0])

    phalanx.grad(f)(1.0)


@mistake
def primitive_without_a_derivative():
    twice = Primitive("twice", lambda x: x, lambda b, x: b.add(x, x))
    phalanx.grad(lambda x: twice(x))(1.0)


# ---- how many lanes run at once -----------------------------------------------------------------


@mistake
def no_lane_at_once():
    phalanx.pmap(jnp.sin, lanes_at_once=0)


@mistake
def lanes_at_once_that_are_no_integer():
    phalanx.pmap(jnp.sin, lanes_at_once=2.0)


@mistake
def lanes_at_once_in_other_words():
    phalanx.vmap(jnp.sin, lanes_at_once="two")


@mistake
def lanes_at_once_that_are_dealt_out():
    phalanx.vmap(jnp.sin, spmd_axis_name="data", lanes_at_once=2)


@mistake
def primitive_without_lanes():
    twice = Primitive("twice", lambda x: x, lambda b, x: b.add(x, x))
    phalanx.vmap(lambda x: twice(x))(X)


@mistake
def primitive_with_a_list_for_a_parameter():
    rows = Primitive(
        "rows", lambda x, which: x, lambda b, x, which: x, doc="x; for the sake of a parameter"
    )
    rows(X, which=[0, 1])


def test_messages(golden):
    golden(mistake.texts())
