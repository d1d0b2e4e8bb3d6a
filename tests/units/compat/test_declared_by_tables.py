"""Operations of other libraries, declared by tables, under every transformation."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat import ffi as foreign
from phalanx.compat.core import Primitive
from phalanx.compat.interpreters import ad, batching, mlir
from phalanx.compat.interpreters.xla import apply_primitive
from phalanx.errors import MissingRule

X, W = jnp.array([0.3, -0.7, 1.1]), jnp.array([1.0, 2.0, -0.5])


def declared():
    """``sine_and_cosine``, of several results, by a jvp rule; ``spread``, which is linear."""
    both = Primitive("sine_and_cosine")
    both.multiple_results = True
    both.def_abstract_eval(lambda x, *, scale: [x, x])

    def compute(x, *, scale):
        return [jnp.sin(scale * x), jnp.cos(scale * x)]

    def jvp(primals, tangents, *, scale):
        (x,), (t,) = primals, tangents
        sine, cosine = both.bind(x, scale=scale)
        return [sine, cosine], [scale * cosine * t, -scale * sine * t]

    both.def_impl(compute)
    ad.primitive_jvps[both] = jvp
    mlir.register_lowering(both, mlir.lower_fun(compute, multiple_results=True))
    batching.primitive_batchers[both] = lambda xs, dims, scale: (
        both.bind(*xs, scale=scale),
        dims * 2,
    )

    spread = Primitive("spread")
    spread.def_abstract_eval(lambda x: x.update(shape=(*x.shape, 2)))
    mlir.register_lowering(spread, mlir.lower_fun(lambda x: jnp.stack([x, 3 * x], -1), False))
    ad.deflinear(spread, lambda ct: [ct[..., 0] + 3 * ct[..., 1]])
    batching.primitive_batchers[spread] = lambda xs, dims: (
        spread.bind(jnp.moveaxis(xs[0], dims[0], 0)),
        0,
    )
    return both, spread


BOTH, SPREAD = declared()


def theirs(x):
    sine, cosine = BOTH.bind(x, scale=2.0)
    return (SPREAD.bind(sine * x) * jnp.array([1.0, -1.0])).sum(-1) + cosine


def ours(x):
    return jnp.sin(2 * x) * x - 3 * jnp.sin(2 * x) * x + jnp.cos(2 * x)


WAYS = {
    "called": lambda f: f(X),
    "jit": lambda f: phalanx.jit(f)(X),
    "grad": lambda f: phalanx.grad(lambda x: (f(x) * W).sum())(X),
    "jvp": lambda f: phalanx.jvp(f, (X,), (W,)),
    "linearize": lambda f: phalanx.linearize(f, X)[1](W),
    "grad of jit": lambda f: phalanx.grad(lambda x: phalanx.jit(f)(x).sum())(X),
    "second": lambda f: phalanx.hessian(lambda x: (f(x) ** 2).sum())(X),
    "vmap": lambda f: phalanx.vmap(f)(X),
    "vmap of grad": lambda f: phalanx.vmap(phalanx.grad(f))(X),
    "pmap": lambda f: phalanx.pmap(f)(X),
    "grad of pmap": lambda f: phalanx.grad(lambda x: phalanx.pmap(f)(x).sum())(X),
    "scan": lambda f: phalanx.lax.scan(lambda c, x: (c + f(x), f(c)), 0.1, X),
    "checkpoint": lambda f: phalanx.grad(lambda x: phalanx.checkpoint(f)(x).sum())(X),
    "rows": lambda f: phalanx.vmap(phalanx.vmap(f), in_axes=1)(jnp.outer(X, W)),
    "shard_map": lambda f: phalanx.shard_map(
        f, mesh=phalanx.make_mesh((1,), "i"), in_specs=phalanx.P("i"), out_specs=phalanx.P("i")
    )(X),
}


@pytest.mark.parametrize("way", WAYS)
def test_they_are_operations_like_any_other(way):
    for a, b in zip(*map(phalanx.tree.leaves, (WAYS[way](theirs), WAYS[way](ours))), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_reduction_in_lanes():
    total = Primitive("total")
    total.def_abstract_eval(
        lambda x, axes: x.update(shape=tuple(n for i, n in enumerate(x.shape) if i not in axes))
    )
    mlir.register_lowering(total, mlir.lower_fun(lambda x, axes: x.sum(axes), False))
    batching.defreducer(total)
    x = jnp.outer(X, W)[None] * jnp.ones((2, 1, 1))
    rows = phalanx.vmap(lambda row: total.bind(row, axes=(0,)), in_axes=1)(x)
    np.testing.assert_allclose(rows, x.sum(0), rtol=1e-6)


@pytest.mark.parametrize(
    "use, missing",
    [
        (lambda f: phalanx.jit(f)(1.0), "def_abstract_eval"),
        (lambda f: phalanx.grad(f)(1.0), "primitive_jvps"),
        (lambda f: phalanx.vmap(f)(X), "primitive_batchers"),
    ],
)
def test_a_rule_that_is_missing_is_named(use, missing):
    bare = Primitive("bare")
    bare.def_impl(lambda x: x)
    with pytest.raises(MissingRule, match=f"bare: no .*{missing}, needed at .*test_declared_by"):
        use(bare.bind)


def test_lowerings_written_by_hand_are_refused():
    odd = Primitive("odd")
    odd.def_abstract_eval(lambda x: x)
    mlir.register_lowering(odd, lambda ctx, x: [x.owner])
    with pytest.raises(NotImplementedError, match=r"odd: its lowering.*mlir.lower_fun"):
        phalanx.jit(odd.bind)(1.0)


def called(callback, has_side_effect):
    """A primitive whose lowering hands its operand to the functions that the field offers."""
    prim = Primitive("called")
    prim.def_abstract_eval(lambda x, *, scale: x)

    def rule(ctx, x, *, scale):
        (doubled,) = mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx, x)
        out, _, keep = mlir.emit_python_callback(
            ctx,
            lambda x: (callback(x) * np.float32(scale),),
            None,
            [doubled],
            ctx.avals_in,
            ctx.avals_out,
            has_side_effect=has_side_effect,
            sharding=None,
        )
        ctx.module_context.add_keepalive(keep)
        return out

    mlir.register_lowering(prim, rule)
    return phalanx.jit(lambda x: prim.bind(x, scale=3.0))


def test_a_lowering_may_call_python_and_lower_functions():
    seen = []
    np.testing.assert_allclose(called(np.sin, False)(X), 3 * np.sin(2 * np.asarray(X)), rtol=1e-6)
    called(lambda x: seen.append(x) or x, True)(X)
    phalanx.effects_barrier()
    np.testing.assert_array_equal(seen, [2 * np.asarray(X)])


def test_each_platform_has_its_lowering_and_the_others_that_for_all():
    prim = Primitive("by_platform")
    prim.def_abstract_eval(lambda x: x)
    seen = []
    for platform, add in (("tpu", 1.5), ("gpu", 2.5), (None, 4.5), ("cpu", 3.5)):

        def rule(ctx, x, platform=platform, add=add):
            seen.append((platform, ctx.module_context.platforms))
            return [x + add]

        mlir.register_lowering(prim, rule, platform=platform)
    assert phalanx.jit(prim.bind)(2.0) == 5.5
    traced = phalanx.jit(prim.bind).trace(2.0)
    texts = [traced.lower(lowering_platforms=(p,)).as_text() for p in ("tpu", "cuda", "rocm")]
    assert ["1.5" in t for t in texts] == [True, False, False]
    assert ["2.5" in t for t in texts] == [False, True, True]
    assert seen == [
        *[("cpu", ("cpu",)), ("tpu", ("tpu",))],
        *[("gpu", ("cuda",)), ("gpu", ("rocm",))],
    ]


def test_a_lowering_for_other_platforms_alone_is_missed():
    prim = Primitive("elsewhere")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: [x], platform="tpu")
    with pytest.raises(MissingRule, match=r"elsewhere: no rule in .*register_lowering for cpu"):
        phalanx.jit(prim.bind)(1.0)


@pytest.mark.parametrize("multiple_results", [False, True])
def test_what_runs_an_operation_may_be_its_compiled_program(multiple_results):
    tripled = Primitive("tripled")
    tripled.multiple_results = multiple_results
    tripled.def_impl(functools.partial(apply_primitive, tripled))
    tripled.def_abstract_eval(lambda x, *, n: [x] if multiple_results else x)
    mlir.register_lowering(tripled, mlir.lower_fun(lambda x, *, n: n * x, multiple_results=False))
    for bind in (tripled.bind, phalanx.jit(tripled.bind, static_argnames="n")):
        out = bind(X, n=3)
        assert isinstance(out, list) == multiple_results
        np.testing.assert_allclose(out[0] if multiple_results else out, 3 * np.asarray(X))
    with phalanx.disable_jit():
        np.testing.assert_allclose(phalanx.tree.leaves(tripled.bind(X, n=2))[0], 2 * np.asarray(X))


def test_a_compiled_program_needs_a_lowering():
    bare = Primitive("bare")
    bare.def_impl(functools.partial(apply_primitive, bare))
    bare.def_abstract_eval(lambda x: x)
    for bind in (bare.bind, phalanx.jit(bare.bind)):
        with pytest.raises(MissingRule, match=r"bare: no rule in .*register_lowering, needed at"):
            bind(X)


def test_rules_are_given_tuples():
    seen = []
    prim = Primitive("seen")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x, False))

    def jvp(primals, tangents):
        seen.extend([primals, tangents])
        return prim.bind(*primals), 5 * tangents[0]

    def batch(values, dims):
        seen.extend([values, dims])
        return prim.bind(*values), dims[0]

    ad.primitive_jvps[prim], batching.primitive_batchers[prim] = jvp, batch
    assert phalanx.vmap(phalanx.grad(prim.bind))(X).tolist() == [5, 5, 5]
    assert len(seen) == 4 and all(isinstance(each, tuple) for each in seen)


def test_the_zero_tangent_of_integers_is_of_their_tangents():
    assert ad.p2tz(jnp.arange(3)).aval.dtype == phalanx.dtypes.float0
    assert ad.p2tz(X).aval == X.aval


def test_a_lowering_may_call_a_foreign_function():
    """LAPACK's, of matrices that lie column by column; "uplo" is an attribute."""
    factor = Primitive("factor")
    factor.multiple_results = True
    factor.def_impl(functools.partial(apply_primitive, factor))
    factor.def_abstract_eval(lambda a, **_: [a, a.update(shape=(), dtype=np.dtype("int32"))])
    columns = {"operand_layouts": [(0, 1)], "result_layouts": [(0, 1), None]}
    lowering = foreign.ffi_lowering("lapack_spotrf_ffi", **columns)
    mlir.register_lowering(factor, lowering, platform="cpu")
    a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
    for bind in (factor.bind, phalanx.jit(factor.bind, static_argnames="uplo")):
        out, info = bind(a, uplo=np.uint8(ord("L")))
        np.testing.assert_allclose(jnp.tril(out), [[2, 0], [1, 2]])
        assert info == 0
    (upper, _) = factor.bind(a, uplo=np.uint8(ord("U")))
    np.testing.assert_allclose(jnp.triu(upper), [[2, 1], [0, 2]])


def test_attributes_of_a_foreign_call_may_be_fixed():
    factor = Primitive("lower_factor")
    factor.multiple_results = True
    factor.def_abstract_eval(lambda a: [a, a.update(shape=(), dtype=np.dtype("int32"))])
    lowering = foreign.ffi_lowering(
        "lapack_spotrf_ffi", backend_config={"uplo": np.uint8(ord("U"))}
    )
    mlir.register_lowering(factor, lowering)
    (out, _) = factor.bind(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    np.testing.assert_allclose(jnp.tril(out), [[2, 0], [1, 2]])  # by rows, it is transposed


def test_parameters_may_have_any_names():
    names = [
        *("prim", "rule", "axis", "values", "dims", "b", "ct", "dual"),
        *("operands", "params", "types"),
    ]
    times = Primitive("times_all")
    times.def_abstract_eval(lambda x, **_: x)
    compute = lambda x, /, **factors: x * sum(factors.values())  # noqa: E731
    times.def_impl(compute)
    mlir.register_lowering(times, mlir.lower_fun(compute, multiple_results=False))
    ad.primitive_jvps[times] = lambda primals, tangents, /, **factors: (
        times.bind(*primals, **factors),
        times.bind(*tangents, **factors),
    )
    ad.primitive_transposes[times] = lambda ct, x, /, **factors: [times.bind(ct, **factors)]
    batching.primitive_batchers[times] = lambda xs, dims, /, **factors: (
        times.bind(*xs, **factors),
        dims[0],
    )
    f = lambda x: times.bind(x, **dict.fromkeys(names, 1.0))  # noqa: E731
    for way in ("called", "jit", "grad", "jvp", "vmap", "vmap of grad", "pmap", "scan"):
        got, wanted = WAYS[way](f), WAYS[way](lambda x: x * len(names))
        for a, b in zip(phalanx.tree.leaves(got), phalanx.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_rule_may_pass_zero_tangents_through_vmap_and_jit():
    """As equinox's operations do, whose rules map those of single lanes."""
    rounded = Primitive("rounded")
    rounded.multiple_results = True
    rounded.def_abstract_eval(lambda x: [x, x])
    rounded.def_impl(lambda x: [jnp.sin(x), jnp.round(x)])

    def jvp(primals, tangents):
        def lane(x, t):
            slope = ad.Zero(phalanx.typeof(x))
            return [jnp.sin(x), jnp.round(x)], [jnp.cos(x) * t, slope]

        return phalanx.jit(phalanx.vmap(lane))(*primals, *tangents)

    ad.primitive_jvps[rounded] = jvp
    (sine, whole), (moved, still) = phalanx.jvp(lambda x: rounded.bind(x), (X,), (W,))
    np.testing.assert_allclose([sine, whole, moved], [jnp.sin(X), jnp.round(X), W * jnp.cos(X)])
    assert not np.any(still)
    second = phalanx.vmap(phalanx.hessian(lambda x: rounded.bind(x[None])[0].sum()))(X)
    np.testing.assert_allclose(second, -jnp.sin(X), rtol=1e-5)
    zero = ad.Zero(phalanx.typeof(X))
    assert phalanx.tree.leaves(zero) == [] and phalanx.tree.map(abs, zero).aval == zero.aval
