"""Calls to Python against those of jax: how often, of which shapes, with which results."""

import numpy as np
import pytest

import phalanx

jax = pytest.importorskip("jax")

X, Y = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.float32)
METHODS = ["sequential", "expand_dims", "broadcast_all", "legacy_vectorized"]


def shapes_and_result(library, method, args, *in_axes):
    """The shapes that the function sees under vmaps over ``in_axes``, and what comes out."""
    seen = set()

    def python(x, y):
        seen.add((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)[..., None]

    def f(x, y):
        result = library.ShapeDtypeStruct((2,), "float32")
        return library.pure_callback(python, result, x, y, vmap_method=method)

    for where in in_axes:
        f = library.vmap(f, in_axes=where)
    out = library.jit(f)(*args)
    return sorted(seen), np.asarray(out)


CASES = {
    "first": ((X, Y[1]), (0, None)),
    "second": ((X[0], Y), (None, 0)),
    "both": ((X.T, Y), (1, 0)),
    "nested": ((X, Y), (0, None), (None, 0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_vmap_methods(method, case):
    if (method, case) == ("legacy_vectorized", "nested"):
        pytest.skip("the function cannot know which lanes its arguments have")
    found = shapes_and_result(phalanx, method, *CASES[case])
    wanted = shapes_and_result(jax, method, *CASES[case])
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


def printed(library, transform, capfd):
    lax, debug = library.lax, library.debug

    def f(x):
        i32 = lax.convert_element_type(x, np.int32)
        debug.print("x {}", x, ordered=True)

        def step(c, i):
            debug.print("step {} {c}", i, c=c, ordered=True)
            c = lax.cond(i > 0, lambda c: (debug.print("yes", ordered=True), c)[1], lambda c: c, c)
            return c * x, None

        c, _ = lax.scan(step, x, np.arange(3))
        debug.print("{:.1f} {r!r} {tree}", c, r=c, tree={"a": i32, "b": [c]}, ordered=True)
        return c

    transform(library)(f)(np.float32(2))
    library.effects_barrier()
    return capfd.readouterr().out


TRANSFORMS = {
    "jit": lambda library: library.jit,
    "grad": lambda library: lambda f: library.jit(library.grad(f)),
    "jvp": lambda library: lambda f: lambda x: library.jvp(f, (x,), (x,)),
    "vjp": lambda library: lambda f: lambda x: library.vjp(f, x)[1](x),
    "hessian": lambda library: library.hessian,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_printed(name, capfd):
    wanted = printed(jax, TRANSFORMS[name], capfd)
    assert printed(phalanx, TRANSFORMS[name], capfd) == wanted
