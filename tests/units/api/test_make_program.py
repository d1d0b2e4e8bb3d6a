"""make_program, eval_shape and the small switches."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.check import check

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_programs_of_every_transformation_pass_the_checker():
    def f(x):
        return jnp.tanh(phalanx.jit(jnp.sin)(x) * 2.0).sum()

    mapped = phalanx.pmap(lambda r: r / lax.psum(r, "i"), axis_name="i")
    for g in (
        f,
        phalanx.grad(f),
        phalanx.vmap(f),
        phalanx.hessian(f),
        mapped,
        phalanx.grad(lambda x: mapped(x).sum()),
        lambda x: phalanx.vmap(mapped)(x[None]),
    ):
        check(phalanx.make_program(g)(X))


def test_the_program_of_shapes_and_of_trees():
    program, shape = phalanx.make_program(
        lambda t, n: {"y": t["a"] @ t["b"] * n}, static_argnums=1, return_shape=True
    )({"a": phalanx.ShapeDtypeStruct((2, 3), "float32"), "b": X.T}, 2)
    assert [str(t) for t in program.input_types] == ["f32[2,3]", "f32[3,2]"]
    assert shape["y"].shape == (2, 2)


def test_axis_env_brings_names_into_scope():
    program = phalanx.make_program(lambda x: lax.psum(x, "i"), axis_env=[("i", 8)])(X)
    assert program.axes == {"i"}
    with pytest.raises(NameError):
        phalanx.make_program(lambda x: lax.psum(x, "i"))(X)


def test_equal_functions_print_equally():
    def show():
        return str(phalanx.make_program(lambda x: jnp.exp(x) + x)(X))

    assert show() == show()


def test_make_jaxpr_is_another_name():
    assert phalanx.make_jaxpr is phalanx.make_program


def test_eval_shape_computes_nothing():
    def f(x, *, n):
        return {"m": x @ x.T, "n": n}

    found = phalanx.eval_shape(f, phalanx.ShapeDtypeStruct((10**6, 10), "bfloat16"), n=1)
    assert found["m"].shape == (10**6, 10**6)
    assert found["m"].dtype == jnp.bfloat16 and found["n"].dtype == np.int32


def test_eval_shape_takes_anything_with_shape_and_dtype():
    class Like:
        shape = (2, 3)
        dtype = np.dtype("float32")

    assert phalanx.eval_shape(lambda x: x.T, Like()).shape == (3, 2)
    assert phalanx.eval_shape(lambda x: x * 2, 1.0).shape == ()


def test_shape_structs_compare_hash_and_have_dimensions():
    a = phalanx.ShapeDtypeStruct((2, 3), "float32")
    assert a == phalanx.ShapeDtypeStruct([2, 3], np.float32) and hash(a) is not None
    assert a != phalanx.ShapeDtypeStruct((2, 3), "int32")
    assert (a.ndim, a.size, len(a)) == (2, 6, 2)


def test_disable_jit_can_be_disabled():
    seen = []
    f = phalanx.jit(lambda x: seen.append(x) or x)
    with phalanx.disable_jit():
        f(1.0)
        with phalanx.disable_jit(False):
            f(1.0)
    assert isinstance(seen[0], float) and not isinstance(seen[1], float)


def test_named_call_and_named_scope_change_nothing_but_names():
    @phalanx.named_call
    def square(x):
        with phalanx.named_scope("inner"):
            return x * x

    assert float(square(3.0)) == 9
    assert square.__name__ == "square"
    with pytest.raises(TypeError, match="named_scope"), phalanx.named_scope(3):
        pass
