"""What mistakes with mutable references get, word for word."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from tests.golden.mistakes import Mistakes

X = np.ones(3, np.float32)
mistake = Mistakes(__file__)


@mistake
def reference_as_a_result():
    phalanx.jit(lambda x: {"state": phalanx.new_ref(x)})(X)


@mistake
def argument_as_a_result():
    phalanx.jit(lambda ref: ref)(phalanx.new_ref(X))


@mistake
def reference_passed_twice():
    ref = phalanx.new_ref(X)
    phalanx.jit(lambda a, b: a[...] + b[...])(ref, ref)


@mistake
def reference_passed_and_used_inside():
    ref = phalanx.new_ref(X)

    def f(a):
        ref[...] = a[...]

    phalanx.jit(f)(ref)


@mistake
def reference_that_escaped():
    left = []
    phalanx.jit(lambda x: left.append(phalanx.new_ref(x)))(X)
    left[0][...]


@mistake
def reference_after_it_was_freed():
    ref = phalanx.new_ref(X)
    phalanx.freeze(ref)
    ref[0] = 1.0


@mistake
def reference_from_outside_that_is_freed():
    ref = phalanx.new_ref(X)
    phalanx.jit(lambda: phalanx.freeze(ref))()


@mistake
def value_of_another_dtype():
    phalanx.new_ref(X)[...] = jnp.arange(3)


@mistake
def value_of_another_shape():
    phalanx.new_ref(X)[...] = jnp.ones(2)


@mistake
def index_outside():
    phalanx.new_ref(X)[3]


@mistake
def reference_for_an_array():
    jnp.sin(phalanx.new_ref(X))


@mistake
def reference_for_an_operand():
    jnp.ones(3) + phalanx.new_ref(X)


@mistake
def numpy_array_of_a_reference():
    np.asarray(phalanx.new_ref(X))


@mistake
def reference_to_a_reference():
    phalanx.new_ref(phalanx.new_ref(X))


@mistake
def array_for_a_reference():
    phalanx.ref.get(X, 0)


@mistake
def written_by_all_lanes():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] = x

    phalanx.vmap(f)(X)


@mistake
def written_by_lanes_in_jit():
    ref = phalanx.new_ref(0.0)

    @phalanx.jit
    def f(x):
        ref[...] = x

    phalanx.vmap(f)(X)


@mistake
def written_by_a_few_lanes_at_a_time():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] = x

    phalanx.vmap(f, lanes_at_once=2)(X)


@mistake
def written_in_pmap():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] = x

    phalanx.pmap(f)(X)


@mistake
def shared_by_lanes_that_write_it():
    phalanx.pmap(lambda ref, x: ref.set(x), in_axes=(None, 0))(phalanx.new_ref(0.0), X)


@mistake
def shared_by_examples_that_write_it():
    phalanx.vmap(lambda ref, x: ref.set(x), in_axes=(None, 0))(phalanx.new_ref(0.0), X)


@mistake
def shared_by_positions_that_write_it():
    mesh, specs = phalanx.make_mesh((1,), ("i",)), (P(), P("i"))
    f = phalanx.shard_map(lambda ref, x: ref.set(x), mesh=mesh, in_specs=specs, out_specs=P())
    f(phalanx.new_ref(X), X)


@mistake
def tangent_in_a_reference_from_outside():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] = 2 * x
        return x

    phalanx.grad(f)(1.0)


@mistake
def gradient_by_a_reference():
    phalanx.grad(lambda ref: ref[...])(phalanx.new_ref(1.0))


@mistake
def tangent_that_is_no_reference():
    phalanx.jvp(lambda ref: ref[...], (phalanx.new_ref(1.0),), (1.0,))


@mistake
def carried_by_a_loop():
    lax.scan(lambda ref, _: (ref, None), phalanx.new_ref(X), length=2)


@mistake
def written_in_a_condition():
    ref = phalanx.new_ref(0)

    def more(x):
        ref[...] += 1
        return x < 3

    lax.while_loop(more, lambda x: x + 1, 0)


@mistake
def written_in_a_rule_inside_of_a_loop():
    ref = phalanx.new_ref(0.0)

    @phalanx.custom_vjp
    def f(ref, x):
        return x

    def backward(ref, ct):
        ref[...] = ct
        return None, ct

    f.defvjp(lambda ref, x: (x, ref), backward)
    phalanx.grad(lambda x: lax.fori_loop(0, 2, lambda _, x: f(ref, x), x))(1.0)


@mistake
def cotangent_of_a_reference():
    @phalanx.custom_vjp
    def f(ref, x):
        return x

    f.defvjp(lambda ref, x: (x, None), lambda _, ct: (ct, ct))
    phalanx.grad(f, 1)(phalanx.new_ref(0.0), 1.0)


@mistake
def written_in_a_function_with_a_rule():
    ref = phalanx.new_ref(0.0)

    @phalanx.custom_jvp
    def f(x):
        ref[...] = x
        return x

    phalanx.jit(f)(1.0)


@mistake
def exported_function_that_writes_a_reference():
    phalanx.export.export(phalanx.jit(lambda ref, x: ref.set(x)))(phalanx.new_ref(X), X)


def test_messages(golden):
    golden(mistake.texts())
