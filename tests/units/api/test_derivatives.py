"""grad, value_and_grad, jvp, vjp, linearize, linear_transpose, Jacobians and Hessians."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import MissingRule

X = np.array([0.5, -1.0, 2.0], np.float32)
W = np.arange(6, dtype=np.float32).reshape(2, 3) / 3


# ---- grad ---------------------------------------------------------------------------------------


def test_grad_of_a_tree_has_its_structure():
    def loss(p):
        return (p["w"] ** 2).sum() + 3 * p["b"][0]

    found = phalanx.grad(loss)({"w": X, "b": (1.0, np.float16(2))})
    np.testing.assert_allclose(found["w"], 2 * X)
    assert float(found["b"][0]) == 3 and float(found["b"][1]) == 0
    assert found["b"][1].dtype == np.float16


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 3.0), (1, 2.0), ((0, 1), (3.0, 2.0)), ([1, 0], (2.0, 3.0)), (-1, 2.0)],
)
def test_argnums_choose_the_arguments(argnums, expected):
    found = phalanx.grad(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and tuple(map(float, found)) == expected
    else:
        assert float(found) == expected


def test_value_and_grad_of_keyword_arguments_and_has_aux():
    def loss(w, x, *, scale=1.0):
        y = scale * (w @ x)
        return (y**2).sum(), {"y": y, "name": "loss"}

    (value, aux), grads = phalanx.value_and_grad(loss, has_aux=True)(W, X, scale=2.0)
    y = 2 * (W @ X)
    np.testing.assert_allclose(value, (y**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(aux["y"], y, rtol=1e-6)
    assert aux["name"] == "loss"
    np.testing.assert_allclose(grads, np.outer(2 * y, 2 * X), rtol=1e-6)
    grads_too, aux = phalanx.grad(loss, has_aux=True)(W, X, scale=2.0)
    np.testing.assert_allclose(grads_too, grads)


def test_aux_is_concrete_also_under_second_derivatives():
    def inner(x):
        return x**3, x

    def outer(x):
        slope, aux = phalanx.grad(inner, has_aux=True)(x)
        return slope * aux

    assert float(phalanx.grad(outer)(2.0)) == pytest.approx(9 * 4)
    assert float(outer(2.0)) == pytest.approx(24)


def test_derivatives_of_higher_order():
    f = jnp.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)):
        f = phalanx.grad(f)
        np.testing.assert_allclose(f(0.7), expected(0.7), rtol=1e-5)


def test_python_control_flow_on_values_outside_jit():
    def f(x):
        return x**2 if x > 0 else -x

    assert float(phalanx.grad(f)(3.0)) == 6
    assert float(phalanx.grad(f)(-3.0)) == -1

    def loop(x):
        while x < 100:
            x = x * x
        return x

    assert float(phalanx.grad(loop)(3.0)) == pytest.approx(8 * 3.0**7)


def test_stop_gradient_cuts():
    assert float(phalanx.grad(lambda x: x * lax.stop_gradient(x))(3.0)) == 3
    assert float(phalanx.jvp(lax.stop_gradient, (3.0,), (1.0,))[1]) == 0


def test_the_gradient_of_what_is_not_used_is_zero():
    np.testing.assert_array_equal(phalanx.grad(lambda x: 1.0)(X), [0, 0, 0])
    found = phalanx.grad(lambda x, y: x.sum(), argnums=1)(X, W)
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_allow_int_gives_float0():
    found = phalanx.grad(lambda t: t["x"] * t["n"], allow_int=True)({"x": 2.0, "n": 3})
    assert float(found["x"]) == 3
    assert found["n"].dtype == phalanx.float0 and found["n"].shape == ()


def test_complex_derivatives():
    z = np.complex64(1 + 2j)
    found = phalanx.grad(lambda z: z**2, holomorphic=True)(z)
    np.testing.assert_allclose(found, 2 * z)
    # of a real function of z = a + ib: df/da - i df/db
    found = phalanx.grad(lambda z: jnp.real(z) ** 2 + 3 * jnp.imag(z))(z)
    np.testing.assert_allclose(found, 2 - 3j)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: phalanx.grad(lambda x: x.sum())("x"), "not an array"),
        (lambda: phalanx.grad(lambda x: x.sum(), holomorphic=True)(X), "complex"),
        (lambda: phalanx.grad(3.0), "must be a function"),
    ],
)
def test_what_has_no_gradient_is_a_type_error(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# ---- jvp, vjp, linearize ------------------------------------------------------------------------


def test_jvp_of_trees():
    def f(t, y):
        return {"s": t["a"] * y, "n": t["n"]}

    y, moved = phalanx.jvp(
        f, ({"a": X, "n": 3}, 2.0), ({"a": X, "n": np.zeros((), phalanx.float0)}, 1.0)
    )
    np.testing.assert_allclose(y["s"], 2 * X)
    np.testing.assert_allclose(moved["s"], 3 * X)
    assert moved["n"].dtype == phalanx.float0


def test_jvp_and_linearize_hand_on_the_numbers_that_a_function_returns():
    half = np.ones(2, np.float16)
    for how in (lambda f: phalanx.jvp(f, (1.0,), (2.0,)), lambda f: phalanx.linearize(f, 1.0)):
        assert (how(lambda x: x)[0] + half).dtype == np.float16  # as 1.0 + half is


def test_jvp_with_aux():
    y, t, aux = phalanx.jvp(lambda x: (x**2, x + 1), (3.0,), (1.0,), has_aux=True)
    assert (float(y), float(t), float(aux)) == (9, 6, 4)


@pytest.mark.parametrize(
    ("primals", "tangents"),
    [((X,), (X[:2],)), ((X,), (X, X)), ((X,), (X.astype(np.float16),)), ((3,), (1,)), (X, X)],
)
def test_tangents_must_be_like_the_primals(primals, tangents):
    with pytest.raises(TypeError, match="jvp"):
        phalanx.jvp(lambda *xs: xs, primals, tangents)


def test_vjp_gives_a_pullback_that_can_be_used_many_times():
    y, pull = phalanx.vjp(lambda x, w: {"y": w @ x}, X, W)
    np.testing.assert_allclose(y["y"], W @ X, rtol=1e-6)
    for ct in np.eye(2, dtype=np.float32):
        dx, dw = pull({"y": ct})
        np.testing.assert_allclose(dx, ct @ W, rtol=1e-6)
        np.testing.assert_allclose(dw, np.outer(ct, X), rtol=1e-6)


def test_a_pullback_is_a_tree_and_passes_jit():
    _, pull = phalanx.jit(lambda x: phalanx.vjp(jnp.sin, x))(X)
    assert phalanx.tree.leaves(pull)
    np.testing.assert_allclose(pull(jnp.ones(3))[0], np.cos(X), rtol=1e-6)
    found = phalanx.jit(lambda p, ct: p(ct))(pull, jnp.ones(3))
    np.testing.assert_allclose(found[0], np.cos(X), rtol=1e-6)


def test_cotangents_must_be_like_the_results():
    _, pull = phalanx.vjp(lambda x: (x, x), X)
    with pytest.raises(TypeError, match=r"f32\[3\]"):
        pull((X, X[:2]))


def test_vjp_with_aux_and_integers():
    _, pull, aux = phalanx.vjp(lambda x, n: (x * n, {"n": n}), X, 2, has_aux=True)
    assert int(aux["n"]) == 2
    dx, dn = pull(jnp.ones(3))
    np.testing.assert_allclose(dx, [2, 2, 2])
    assert dn.dtype == phalanx.float0


def test_linearize_traces_once():
    calls = []

    def f(x):
        calls.append(1)
        return jnp.sin(x) * W

    y, derivative = phalanx.linearize(f, X)
    for t in np.eye(3, dtype=np.float32):
        np.testing.assert_allclose(derivative(t), np.cos(X) * t * W, rtol=1e-5, atol=1e-7)
    assert len(calls) == 1
    assert np.asarray(y).shape == (2, 3)


def test_linear_transpose():
    back = phalanx.linear_transpose(lambda x: W @ x, phalanx.ShapeDtypeStruct((3,), "float32"))
    ct = np.array([1.0, -2.0], np.float32)
    np.testing.assert_allclose(back(ct)[0], ct @ W, rtol=1e-6)


rectify = phalanx.jit(lambda x: jnp.where(x > 0, x * x, 0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rectify(rectify(x)),
        phalanx.checkpoint(lambda x: rectify(rectify(x))),
        lambda x: rectify(lax.cond(x[0] > 0, lambda x: rectify(rectify(x)), lambda x: x, x)),
        lambda x: lax.scan(lambda c, _: (rectify(c), c), x, None, length=3)[0],
    ],
    ids=["jit", "checkpoint", "cond", "scan"],
)
def test_the_transpose_of_a_derivative_is_the_pullback(f):
    def derivative(t):
        return phalanx.jvp(f, (X,), (t,))[1]

    (back,) = phalanx.linear_transpose(derivative, X)(W[1])
    np.testing.assert_allclose(back, phalanx.vjp(f, X)[1](W[1])[0], rtol=1e-6)


def _curved(x):
    return lax.scan(lambda c, a: (jnp.sin(c) * a + c, c * a), x.sum(), x)[1]


def _repeated(t):
    def f(x):
        return lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) * x[i], x)

    return phalanx.jvp(f, (X,), (t,))[1]


def _hvp(t):
    return phalanx.jvp(phalanx.grad(lambda x: _curved(x).sum()), (X,), (t,))[1]


def _beside(how):
    """A function of ``how``, which gives a value of constants beside what is linear."""

    def f(t):
        y, known = how(lambda t: (2 * t, jnp.cos(X[0])))(t)
        return y * known

    return f


@pytest.mark.parametrize(
    "f",
    [
        phalanx.jit(_hvp),
        lambda t: phalanx.vmap(phalanx.checkpoint(_hvp))(t[None])[0],
        lambda t: phalanx.pmap(_hvp)(t[None])[0],
        phalanx.jit(_repeated),
        _beside(phalanx.jit),
        _beside(phalanx.pmap),
    ],
    ids=["jit", "checkpoint", "pmap", "fori_loop", "value of jit", "value of pmap"],
)
def test_what_is_known_may_be_computed_where_all_operands_are_linear(f):
    rows = [np.asarray(f(row)) for row in np.eye(3, dtype=np.float32)]
    np.testing.assert_allclose(phalanx.linear_transpose(f, X)(X)[0], rows @ X, rtol=1e-5)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda t: lax.cond(t.sum() > 0, lambda t: t, lambda t: 2 * t, t), "cond"),
        (lambda t: lax.dynamic_slice(X, (t[0].astype(int),), (2,)), "dynamic_slice"),
        (phalanx.jit(lambda t: jnp.where(t > 0, t, 2 * t)), "select"),
    ],
)
def test_nothing_is_linear_in_what_it_chooses_by(f, name):
    with pytest.raises(TypeError, match=rf"{name}: at test_derivatives.py.* not linear in them"):
        phalanx.linear_transpose(f, X)(f(X))


@pytest.mark.parametrize("f", [jnp.sin, lambda t: phalanx.jit(lambda x, t: x * jnp.sin(t))(X, t)])
def test_linear_transpose_of_what_is_not_linear(f):
    with pytest.raises(MissingRule, match="sin"):
        phalanx.linear_transpose(f, X)(X)


@pytest.mark.parametrize("how", [lambda f: f, phalanx.jit])
def test_arrays_of_integers_are_no_tangents(how):
    one, five = jnp.array(1.0), jnp.array(5)
    with pytest.raises(TypeError, match=r"tangent of x must be f32\[\].* like the primal, got "):
        how(lambda x, t: phalanx.jvp(lambda x: 1 + x, (x,), (t,)))(one, five)
    with pytest.raises(TypeError, match=r"cotangent of .* like the result, got "):
        how(lambda x, t: phalanx.vjp(lambda x: 1 + x, x)[1](t))(one, five)


# ---- Jacobians ----------------------------------------------------------------------------------


@pytest.mark.parametrize("jacobian", [phalanx.jacfwd, phalanx.jacrev])
def test_jacobians_have_the_shape_of_result_and_argument(jacobian):
    def f(w, x):
        return {"y": w @ x, "s": x.sum()}

    found = jacobian(f, argnums=(0, 1))(W, X)
    np.testing.assert_allclose(found["y"][1], W, rtol=1e-6)
    expected = np.einsum("ik,j->ikj", np.eye(2), X)
    np.testing.assert_allclose(found["y"][0], expected, rtol=1e-6)
    np.testing.assert_allclose(found["s"][1], [1, 1, 1])
    assert found["s"][0].shape == (2, 3)


@pytest.mark.parametrize("jacobian", [phalanx.jacfwd, phalanx.jacrev])
def test_jacobians_by_trees_and_with_aux(jacobian):
    found, aux = jacobian(lambda t: (t["a"] * t["b"], t["a"]), has_aux=True)({"a": X, "b": 2.0})
    np.testing.assert_allclose(found["a"], 2 * np.eye(3))
    np.testing.assert_allclose(found["b"], X)
    np.testing.assert_allclose(aux, X)


def test_hessians():
    a = W.T @ W
    found = phalanx.jit(phalanx.hessian(lambda x: 0.5 * x @ a @ x + jnp.sin(x).sum()))(X)
    np.testing.assert_allclose(found, a - np.diag(np.sin(X)), rtol=1e-4, atol=1e-5)
    by_trees = phalanx.hessian(lambda t: t["a"] * t["b"] ** 2)({"a": 2.0, "b": 3.0})
    assert float(by_trees["a"]["b"]) == 6 and float(by_trees["b"]["b"]) == 4


Z = np.complex64(1 + 2j)


@pytest.mark.parametrize(
    ("derivative", "message"),
    [
        (phalanx.jacfwd(lambda z: z * jnp.conj(z)), r"argument is c64\[\]"),
        (phalanx.jacrev(lambda z: z * jnp.conj(z)), r"returned c64\[\]"),
        (phalanx.hessian(jnp.abs), r"argument is c64\[\]"),
        (phalanx.jacfwd(jnp.abs, holomorphic=True), r"returned f32\[\]"),
        (phalanx.jacrev(jnp.abs, holomorphic=True), r"returned f32\[\]"),
        (phalanx.hessian(jnp.abs, holomorphic=True), r"returned f32\[\]"),
        (phalanx.grad(jnp.abs, holomorphic=True), r"returned f32\[\]"),
    ],
)
def test_one_complex_number_is_the_derivative_of_holomorphic_functions_alone(derivative, message):
    with pytest.raises(TypeError, match=message) as caught:
        derivative(Z)
    assert "holomorphic" in str(caught.value) and "test_derivatives.py:" in str(caught.value)


def test_jacobians_of_complex_numbers():
    for jacobian in phalanx.jacfwd, phalanx.jacrev:
        np.testing.assert_allclose(jacobian(lambda z: z**3, holomorphic=True)(Z), 3 * Z**2)
    np.testing.assert_allclose(phalanx.hessian(lambda z: z**3, holomorphic=True)(Z), 6 * Z)
    # of a real function of z = a + ib: df/da - i df/db; of a real argument: the derivative
    np.testing.assert_allclose(phalanx.jacrev(jnp.abs)(Z), np.conj(Z) / abs(Z), rtol=1e-6)
    np.testing.assert_allclose(phalanx.jacfwd(lambda x: x * Z)(1.0), Z)


@pytest.mark.parametrize("of", [phalanx.grad, phalanx.jacfwd, phalanx.jacrev, phalanx.hessian])
def test_derivatives_by_nothing_are_empty(of):
    assert of(lambda x: 3.0)({}) == {}
    assert of(lambda x: x.sum(), argnums=())(X) == ()


@pytest.mark.parametrize("of", [phalanx.jacfwd, phalanx.jacrev, phalanx.hessian])
def test_derivatives_of_nothing_are_empty(of):
    assert of(lambda x: {})(X) == {}


@pytest.mark.parametrize("of", [phalanx.jacfwd, phalanx.hessian])
def test_jacobians_advise_what_they_take(of):
    with pytest.raises(TypeError) as told:
        of(lambda x: x * 2.0)(np.arange(3))
    assert str(told.value).startswith(f"{of.__name__}(<lambda>): x is ")
    assert "or choose others with argnums" in str(told.value)
    assert "allow_int" not in str(told.value)
    with pytest.raises(TypeError, match=rf"^{of.__name__}"):
        of(3)
    with pytest.raises(TypeError, match=rf"^{of.__name__}\(<lambda>\): with has_aux"):
        of(lambda x: x.sum(), has_aux=True)(X)


def test_a_position_that_is_named_twice_gets_its_derivative_twice():
    def f(x, y):
        return x * x * y

    for derivative in (phalanx.grad, phalanx.jacfwd, phalanx.jacrev):
        for argnums, wanted in [((0, 0), (12, 12)), ((1, 0, -1), (4, 12, 4)), ((0, -2), (12, 12))]:
            assert tuple(map(float, derivative(f, argnums)(2.0, 3.0))) == wanted
    rows = phalanx.hessian(f, (0, 0))(2.0, 3.0)
    assert [[float(h) for h in row] for row in rows] == [[6, 6], [6, 6]]


def test_a_derivative_is_a_tree_of_residuals_and_passes_transformations():
    def at(x):
        return phalanx.linearize(lambda t: {"y": jnp.sin(t["x"]), "n": t["n"] + 1}, x)

    x = {"x": jnp.arange(3.0), "n": jnp.arange(3)}
    zero = np.zeros(3, phalanx.float0)
    t = {"x": jnp.ones(3), "n": zero}
    _, wanted = phalanx.jvp(lambda t: jnp.sin(t["x"]), (x,), (t,))
    for point in (at, phalanx.jit(at), phalanx.jit(phalanx.jit(at))):
        value, derivative = point(x)
        np.testing.assert_allclose(value["y"], np.sin(np.arange(3)), rtol=1e-6)
        moved = derivative(t)
        np.testing.assert_allclose(moved["y"], wanted, rtol=1e-6)
        assert moved["n"].dtype == phalanx.float0
    _, slopes = phalanx.vmap(lambda x: phalanx.linearize(jnp.sin, x))(x["x"])
    each = phalanx.vmap(lambda f, t: f(t))(slopes, jnp.ones(3))
    np.testing.assert_allclose(each, wanted, rtol=1e-6)
    assert float(phalanx.jit(lambda f, t: f(t))(phalanx.linearize(jnp.sin, 0.0)[1], 2.0)) == 2


def test_linear_transpose_takes_examples_of_any_kind_and_no_axes():
    for example in (np.ones(3), jnp.ones(3), phalanx.ShapeDtypeStruct((3,), "float64")):
        (x,) = phalanx.linear_transpose(lambda x: 2 * x, example)(np.ones(3))
        np.testing.assert_array_equal(x, [2, 2, 2])
    with pytest.raises(NotImplementedError, match=r"lax\.psum"):
        phalanx.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",))


def test_axes_to_reduce_may_be_none_at_all():
    f = lambda x: x * x  # noqa: E731
    assert phalanx.grad(f, reduce_axes=())(3.0) == 6
    assert phalanx.value_and_grad(f, reduce_axes=[])(3.0) == (9, 6)
    assert phalanx.vjp(f, 3.0, reduce_axes=())[1](1.0) == (6,)
    for refused in (
        lambda: phalanx.grad(f, reduce_axes=("i",)),
        lambda: phalanx.value_and_grad(f, reduce_axes=("i",)),
        lambda: phalanx.vjp(f, 3.0, reduce_axes=("i",)),
    ):
        with pytest.raises(NotImplementedError, match=r"reduce_axes=\('i',\).*lax.psum"):
            refused()


def test_arrays_of_float0_are_made_as_others():
    nothing = phalanx.dtypes.float0
    x, n = jnp.ones((3, 2)), jnp.ones((3, 2), int)
    slopes = phalanx.pmap(phalanx.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True))(
        x, n
    )
    zeros = phalanx.tree.map(jnp.zeros_like, slopes)  # as optimizers begin
    assert [z.dtype for z in zeros] == [np.float32, nothing] and zeros[1].shape == (3, 2)
    for made in (
        jnp.zeros((3, 2), nothing),
        jnp.full((3, 2), 0, nothing),
        jnp.ones_like(slopes[1]),
        jnp.empty_like(slopes[1]),
        phalanx.lax.full_like(slopes[1], 0),
        phalanx.jit(jnp.zeros_like)(slopes[1]),
        phalanx.vmap(lambda x: jnp.zeros(2, nothing))(x),
        phalanx.pmap(lambda x: jnp.zeros(2, nothing))(x),
    ):
        assert (made.shape, made.dtype) == ((3, 2), nothing)
        assert np.asarray(made).dtype == nothing


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_errors_name_the_function_that_was_called(name):
    differentiate = getattr(phalanx, name)
    for f, x in ((lambda x: x, np.ones(3)), (lambda x: x * 1.0, 1)):
        with pytest.raises(TypeError, match=rf"^{name}\(<lambda>\): "):
            differentiate(f)(x)
    with pytest.raises(TypeError, match=rf"^{name}: "):
        differentiate(3)
