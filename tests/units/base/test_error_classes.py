"""Exceptions are of the classes that programs written for the field catch, and hold its phrases."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

X = np.ones((4, 3), np.float32)


def loop(x):
    return lax.while_loop(lambda c: c < 10.0, lambda c: c * 2, x)


def deleted():
    x = jnp.ones(3)
    x.delete()
    return x


def without_rules(kind):
    return phalanx.grad(kind(lambda x: x))


def backward_of_another_shape():
    f = phalanx.custom_vjp(lambda x: x.sum())
    f.defvjp(lambda x: (x.sum(), None), lambda _, ct: (ct,))
    phalanx.grad(f)(X)


CAUGHT = {
    "reverse mode through a while loop": (
        lambda: phalanx.grad(loop)(1.0),
        (ValueError, NotImplementedError),
        r"Reverse-mode differentiation does not work for lax\.while_loop or lax\.fori_loop with "
        "dynamic start/stop values",
    ),
    "other types than compiled for": (
        lambda: phalanx.jit(jnp.sin).lower(X).compile()(X[0]),
        (TypeError,),
        r"Argument types differ from the types for which this computation was compiled\. The "
        r"mismatches are:\nArgument 'x' compiled with f32",
    ),
    "an option that there is not": (
        lambda: phalanx.jit(jnp.sin, compiler_options={"xla_no_such": True})(X),
        (phalanx.errors.JaxRuntimeError, ValueError),
        "No such compile option: 'xla_no_such'",
    ),
    "another tree than compiled for": (
        lambda: phalanx.jit(lambda x: x).lower([X]).compile()((X,)),
        (TypeError,),
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "sizes under pmap": (
        lambda: phalanx.pmap(jnp.add)(X, X[:2]),
        (ValueError,),
        "pmap got inconsistent sizes for array axes to be mapped",
    ),
    "sizes under vmap": (
        lambda: phalanx.vmap(jnp.add)(X, X[:2]),
        (ValueError,),
        "vmap got inconsistent sizes for array axes to be mapped",
    ),
    "shapes of an operator": (
        lambda: X + jnp.ones(4),
        (ValueError, TypeError),
        r"Incompatible shapes for broadcasting: shapes=\[",
    ),
    "shapes of draws": (
        lambda: phalanx.random.bernoulli(phalanx.random.key(0), X, (4,)),
        (ValueError, TypeError),
        "Incompatible shapes for broadcasting: ",
    ),
    "shapes of what is written": (
        lambda: jnp.asarray(X).at[0].set(jnp.ones(9)),
        (ValueError, TypeError),
        r"Incompatible shapes for broadcasting: .*requested shape \(",
    ),
    "shapes of a product": (lambda: X @ jnp.ones(4), (ValueError, TypeError), "must be equal"),
    "shapes of parts": (
        lambda: jnp.concatenate([X, X[:, :2]]),
        (ValueError, TypeError),
        "must have equal shapes",
    ),
    "shapes of lax": (
        lambda: lax.add(X, X[0]),
        (ValueError, TypeError),
        r"got incompatible shapes for broadcasting: \(",
    ),
    "a tree of axes": (
        lambda: phalanx.pmap(lambda x: x, in_axes=({"a": 0},))({"b": X}),
        (ValueError,),
        r"pmap in_axes\[0\]\[0\]",
    ),
    "a tree of axes under vmap": (
        lambda: phalanx.vmap(lambda x: x, in_axes=({"a": 0},))({"b": X}),
        (ValueError,),
        r"vmap in_axes\[0\]:",
    ),
    "no devices": (
        lambda: phalanx.pmap(jnp.sin, devices=[]),
        (ValueError,),
        "'devices' argument to pmap must be non-empty, or None\\.",
    ),
    "use of a deleted array": (
        lambda: deleted() + 1,
        (RuntimeError, ValueError),
        r"Array has been deleted\.",
    ),
    "value of a deleted array": (
        lambda: np.asarray(deleted()),
        (RuntimeError, ValueError),
        r"Array has been deleted\.",
    ),
    "no rules for cotangents": (
        lambda: without_rules(phalanx.custom_vjp)(1.0),
        (AttributeError, NotImplementedError),
        "before it has rules",
    ),
    "no rule for tangents": (
        lambda: without_rules(phalanx.custom_jvp)(1.0),
        (AttributeError, NotImplementedError),
        "before it has a rule",
    ),
    "a cotangent of another shape": (
        lambda: phalanx.vjp(jnp.sin, X)[1](X[0]),
        (ValueError, TypeError),
        "the cotangent of result 0",
    ),
    "a tangent of another shape": (
        lambda: phalanx.jvp(jnp.sin, (X,), (X[0],)),
        (ValueError, TypeError),
        "the tangent of x",
    ),
    "a tangent of another shape, later": (
        lambda: phalanx.linearize(jnp.sin, X)[1](X[0]),
        (ValueError, TypeError),
        "the tangent of x",
    ),
    "tangents of another structure": (
        lambda: phalanx.linearize(jnp.sin, X)[1]((X, X)),
        (TypeError, ValueError),
        "must have the structure",
    ),
    "a rule's cotangent of another shape": (
        backward_of_another_shape,
        (ValueError, TypeError),
        "must return cotangents like the arguments",
    ),
    "no such argument": (
        lambda: phalanx.grad(jnp.sin, argnums=2)(1.0),
        (TypeError, ValueError),
        "argnums",
    ),
    "no position of an argument": (
        lambda: phalanx.grad(jnp.sin, argnums="x")(1.0),
        (TypeError,),
        "argnums must be positions of arguments, got 'x'",
    ),
    "no such option": (
        lambda: phalanx.config.update("jax_no_such_option", 1),
        (AttributeError, ValueError),
        "there is no option",
    ),
    "no such place": (
        lambda: phalanx.device_put(1.0, "cpu"),
        (ValueError, TypeError),
        "device_put: the target",
    ),
    "lanes of a callback": (
        lambda: phalanx.vmap(
            lambda x: phalanx.pure_callback(np.sin, phalanx.ShapeDtypeStruct((3,), "float32"), x)
        )(X),
        (NotImplementedError, ValueError),
        "vmap_method",
    ),
    "a dtype that a distribution has not": (
        lambda: phalanx.random.normal(phalanx.random.key(0), (3,), dtype=int),
        (ValueError, TypeError),
        "floating-point",
    ),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_each_of_the_classes_catches_it(name):
    mistake, classes, words = CAUGHT[name]
    for kind in classes:
        with pytest.raises(kind, match=words):
            mistake()


def test_a_deleted_array_is_shown_in_words():
    x = deleted()
    assert repr(x) == str(x) == f"{x}" and "has been deleted" in repr(x)
