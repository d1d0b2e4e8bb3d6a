"""Functions at lengths that are not known: traced, exported, called at numbers."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import image, lax, nn, random
from phalanx.base.lengths import numbered
from phalanx.errors import InconclusiveDimensionOperation
from phalanx.experimental.sparse import BCOO, bcoo_broadcast_in_dim
from phalanx.export import (
    SymbolicScope,
    deserialize,
    export,
    symbolic_args_specs,
    symbolic_shape,
)

NUMBERS = [{"a": 5, "b": 3}, {"a": 2, "b": 1}]


METHODS = ["nearest", "linear", "lanczos3", "area"]


def loss(x):
    return jnp.mean(jnp.sin(x) ** 2)


def carried(x):
    return lax.scan(lambda c, r: (jnp.sin(c + r), c * r), jnp.zeros(3), x)


def broadcast_to_bcoo(x):
    shape = (*x.shape, 1)
    return bcoo_broadcast_in_dim(BCOO.fromdense(x, nse=2), shape=shape, broadcast_dimensions=(0, 1))


def convolved(x, kernel):
    return lax.conv(x, kernel, (2, 2), "SAME")


PROGRAMS = [
    (lambda x: jnp.arange(x.shape[0]) + x, "a"),
    (lambda x: jnp.arange(2 * x.shape[0], 1, -2), "a"),
    (lambda x: jnp.linspace(0, 1, x.shape[0]), "a"),
    (lambda x: x.reshape(-1, 2), "a,4"),
    (lambda x: x.reshape(x.shape[0] * 2, 2), "a,4"),
    (lambda x: x.reshape(x.shape[0], -1), "a,2,b"),
    (lambda x: jnp.pad(x, ((0, -x.shape[0] % 4), (0, 0))).reshape(-1, 4, 3), "a,3"),
    (lambda x: jnp.pad(x, ((1, x.shape[0]), (0, 0))), "a,3"),
    (lambda x, y: x + y, "a,1;1,b"),
    (lambda x, y: x * y, "a,b;b"),
    (lambda x: x / x.shape[0] + jnp.sqrt(x.size) + np.float32(2) * x.shape[0], "a,b"),
    (lambda x: x.mean(0) + jnp.var(x, 0, ddof=1) + jnp.average(x), "a,3"),
    (lambda x: (x[: x.shape[0] // 2], x[:4], x[-2:], x[1:], x[::2], x[::-1], x[1::3]), "a,3"),
    (lambda x: (x[0], x[-1], x[x.shape[0] - 1], x[:, 1], x[:, None]), "a,3"),
    (lambda x: x[jnp.array([0, 1, 0])], "a,3"),
    (lambda x: x[jnp.arange(x.shape[0]), jnp.zeros(x.shape[0], int)], "a,3"),
    (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), "a,3"),
    (lambda x: x.at[0].set(1.0).at[:, 1].add(2.0).at[1:].mul(3.0).at[::2].set(0.0), "a,3"),
    (lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, x]), jnp.tile(x, (2, 1))), "a,3;b,3"),
    (lambda x: (jnp.repeat(x, 2, 0), jnp.roll(x, 1, 0)), "a,3"),
    (lambda x: (jnp.flip(x, 0), jnp.diff(x, axis=1)), "a,3"),
    (lambda x: jnp.split(x, [1], 0), "a,3"),
    (lambda x: (jnp.sort(x, 0), jnp.argmax(x, 0), jnp.cumsum(x, 0), jnp.cumprod(x, 0)), "a,3"),
    (lambda x: (jnp.eye(x.shape[0]), jnp.diag(x), jnp.tril(jnp.outer(x, x))), "a"),
    (lambda x, y: x @ y, "a,b;b,4"),
    (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), "a,2,b;a,b,4"),
    (lambda x: (nn.softmax(x), nn.logsumexp(x), nn.gelu(x), nn.standardize(x)), "a,b"),
    (lambda x: nn.one_hot(jnp.zeros(x.shape[0], int), x.shape[0]), "a"),
    (lambda x: nn.dot_product_attention(x, x, x, is_causal=True), "a,b,2,4"),
    (lambda x: phalanx.vmap(lambda r: r @ r)(x), "a,b"),
    (lambda x: phalanx.grad(loss)(x), "a,b"),
    (lambda x: phalanx.jvp(jnp.sin, (x,), (x,)), "a,b"),
    (lambda x: phalanx.jit(lambda z: z @ z.T)(x), "a,b"),
    (lambda x: (carried(x), phalanx.grad(lambda x: carried(x)[0].sum())(x)), "a,3"),
    (lambda x: lax.scan(lambda c, r: (c + r.sum(), c), jnp.zeros(x.shape[0]), x.T), "a,3"),
    (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3)), "a,3"),
    (lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x), "a,3"),
    (lambda x: lax.cond(x.sum() > 0, lambda z: z * 2, lambda z: z, x), "a,3"),
    (lambda x: lax.map(lambda r: r * 2, x), "a,3"),
    (lambda x: phalanx.grad(lambda x: phalanx.checkpoint(jnp.sin)(x).sum())(x), "a,3"),
    (lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME"), "1,3,a,b;4,3,3,3"),
    (lambda x, k: phalanx.grad(lambda k: convolved(x, k).sum())(k), "a,3,8,8;4,3,3,3"),
    (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *[(1, 2, 2, 1)] * 2, "SAME"), "a,8,8,3"),
    (lambda x: random.normal(random.key(0), x.shape), "a,3"),
    (lambda x: random.bernoulli(random.key(1), 0.5, x.shape), "a,3"),
    (lambda x: random.key_data(random.split(random.key(0), x.shape[0])), "a"),
    (lambda x: jnp.linalg.solve(x + 4 * jnp.eye(3), x), "a,3,3"),
    (lambda x: jnp.linalg.norm(jnp.fft.rfft(x), axis=1), "a,8"),
    (lambda x: (lax.top_k(x, 2), jnp.median(x, 1)), "a,3"),
    (lambda x: lax.dynamic_slice(x, (jnp.int32(7), 1), (x.shape[0], 2)), "a,3"),
    (lambda x: lax.associative_scan(jnp.add, x), "8,a"),
    (lambda x: (jnp.fft.fftfreq(x.size), jnp.fft.rfftfreq(x.size, 2.0), jnp.trapezoid(x)), "a"),
    (lambda x: (jnp.fft.fftshift(x), jnp.fft.ifftshift(x, 0), jnp.fft.rfft(x, 4, 0)), "a,b"),
    (lambda x: [image.resize(x, (x.shape[0], 2 * x.shape[1]), m) for m in METHODS], "a,b"),
    (lambda x: image.resize(x, (x.shape[0], 4), "linear"), "a,b"),
    (lambda x: (phalanx.jacfwd(jnp.cumsum)(x), phalanx.hessian(loss)(x)), "a"),
    (lambda x, y: phalanx.jacrev(lambda p: p[0][:, None] * p[1])((x, y)), "a;b"),
    (lambda x: lax.map(jnp.sin, x, batch_size=2), "a,3"),
    (lambda x: phalanx.image.resize(x, (x.shape[0], 16, 16, 3), "bilinear"), "a,8,8,3"),
    (lambda x: jnp.searchsorted(jnp.sort(x), x), "a"),
    (lambda x: (2 * BCOO.fromdense(x, nse=2) * x[0]).todense(), "a,3"),
    (lambda x: broadcast_to_bcoo(x).sum_duplicates(2).todense(), "a,3"),
    (lambda x: BCOO(
        (x[:, 0], jnp.arange(x.shape[0])[:, None]), shape=(2 * x.shape[0],)
    ).reshape(2, -1).todense(), "a,3"),
    (lambda x: (x * jnp.array(x.shape), jnp.array([[x.shape[0], 1.5]])), "a,2"),
    (lambda x: phalanx.ops.segment_sum(x, jnp.zeros(x.shape[0], int), num_segments=2), "a,3"),
]  # fmt: skip


def struct(shape):
    return phalanx.ShapeDtypeStruct(shape, "float32")


def types(results):
    return [(t.shape, t.dtype, t.weak_type) for t in phalanx.tree.leaves(results)]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_are_those_of_numbers(number):
    function, spec = PROGRAMS[number]
    scope = SymbolicScope()
    shapes = [symbolic_shape(text, scope=scope) for text in spec.split(";")]
    made = export(phalanx.jit(function))(*map(struct, shapes))
    again = deserialize(made.serialize())
    assert again.out_avals == made.out_avals or str(again.out_avals) == str(made.out_avals)
    told = types(phalanx.eval_shape(function, *map(struct, shapes)))
    for numbers in NUMBERS:
        known = [tuple([numbered(n, numbers) for n in shape]) for shape in shapes]
        source = np.random.default_rng(number)
        xs = [source.uniform(0.1, 0.9, shape).astype("float32") for shape in known]
        wanted = phalanx.jit(function)(*xs)
        found = [(tuple([numbered(n, numbers) for n in s]), *rest) for s, *rest in told]
        assert found == types(phalanx.eval_shape(function, *map(struct, known)))
        results = zip(
            phalanx.tree.leaves(again.call(*xs)), phalanx.tree.leaves(wanted), strict=True
        )
        for x, y in results:
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-6)


def test_what_is_serialized_keeps_what_is_said():
    n, m = symbolic_shape("n, 2*m + n", constraints=["mod(n, 4) == 0", "m <= 9"])
    made = export(phalanx.jit(lambda x, y: (x.reshape(-1, 4), y[: y.shape[0] // 2])))(
        struct((n,)), struct((m,))
    )
    again = deserialize(made.serialize(vjp_order=1))
    assert str(again.in_avals) == str(made.in_avals) == "(f32[n], f32[2*m + n])"
    out = again.call(jnp.ones(8), jnp.ones(14))
    assert [x.shape for x in out] == [(2, 4), (7,)]
    wrong = [
        ((6, 14), r"mod\(n, 4\)"), ((8, 13), "length n .* 2"), ((8, 40), "- m . 9 >= 0 is needed"),
        ((0, 14), "Expected value >= 1 for dimension variable 'n'"),
    ]  # fmt: skip
    for (x, y), words in wrong:
        with pytest.raises(ValueError, match="do not match the polymorphic shapes") as caught:
            again.call(jnp.ones(x), jnp.ones(y))
        assert __file__.rpartition("/")[2] in str(caught.value), words


@pytest.mark.parametrize(("said", "right", "wrong"), [
    ("b == 2*a; b >= 8", (4, 8), (3, 6)), ("mod(b, 4) == 0; b == 2*a", (4, 8), (3, 6)),
    ("a == b; b == a", (3, 3), (3, 5)), ("a == 4", (4, 3), (3, 3)),
])  # fmt: skip
def test_a_variable_that_is_equal_to_another_length_is_replaced(said, right, wrong):
    a, b = symbolic_shape("a, b", constraints=said.split("; "))
    made = deserialize(
        export(phalanx.jit(lambda x, y: x.sum() + y.sum()))(struct((a,)), struct((b,))).serialize()
    )
    assert made.call(*map(jnp.ones, right)) == sum(right)
    with pytest.raises(ValueError, match="was exported for"):
        made.call(*map(jnp.ones, wrong))


def test_what_is_said_of_lengths_that_are_nowhere_or_impossible_is_refused():
    (a,) = symbolic_shape("a", constraints="c >= 2")
    with pytest.raises(ValueError, match="the lengths c do not follow from the shapes"):
        export(phalanx.jit(jnp.sin))(struct((a,)))
    with pytest.raises(ValueError, match="5 <= 4 holds of no lengths"):
        SymbolicScope(["a == 4", "a == 5"])


def test_derivatives_of_what_was_exported():
    n, k = symbolic_shape("n, k")
    f = phalanx.jit(lambda x, w: jnp.tanh(x @ w).sum(1))
    made = deserialize(export(f)(struct((n, 3)), struct((3, k))).serialize(vjp_order=2))
    x, w = np.full((4, 3), 0.2, "float32"), np.full((3, 5), 0.3, "float32")

    def of(function):
        return lambda x, w: (phalanx.grad(lambda x, w: function(x, w).sum(), 1)(x, w) ** 2).sum()

    np.testing.assert_allclose(of(made.call)(x, w), of(f)(x, w), rtol=1e-5)
    np.testing.assert_allclose(
        phalanx.grad(of(made.call))(x, w), phalanx.grad(of(f))(x, w), rtol=1e-4
    )


def test_what_was_exported_is_called_within_what_is_exported():
    (n,) = symbolic_shape("n")
    inner = export(phalanx.jit(lambda x: jnp.concatenate([x, x])))(struct((n, 3)))
    (m,) = symbolic_shape("m")
    outer = export(phalanx.jit(lambda x: inner.call(x[1:]) * 2))(struct((m + 1, 3)))
    assert str(outer.out_avals) == "(f32[2*m,3],)"
    x = np.arange(12, dtype="float32").reshape(4, 3)
    np.testing.assert_array_equal(outer.call(x), 2 * np.concatenate([x[1:], x[1:]]))
    assert inner.call(jnp.ones((2, 3))).shape == (4, 3)
    assert phalanx.vmap(inner.call)(jnp.ones((2, 4, 3))).shape == (2, 8, 3)


def test_several_platforms():
    (n,) = symbolic_shape("n")
    made = export(phalanx.jit(lambda x: jnp.sort(x)[::-1]), platforms=["cpu", "cuda"])(struct((n,)))
    np.testing.assert_array_equal(made.call(np.float32([1, 3, 2])), [3, 2, 1])


def test_the_module_asserts_and_has_no_numbers():
    (n,) = symbolic_shape("n", constraints="n >= 3")
    text = export(phalanx.jit(lambda x: x.reshape(-1)))(struct((n, 2))).mlir_module()
    assert "tensor<?x2xf32>" in text and "dynamic_reshape" in text
    assert text.count("@shape_assertion") == 3


def test_lengths_that_do_not_follow():
    n, m = symbolic_shape("n * m, n // 2")
    with pytest.raises(ValueError, match=r"the lengths m, n do not follow from the shapes"):
        export(phalanx.jit(jnp.sin))(struct((n, m)))


def test_lengths_have_no_number_outside():
    (n,) = symbolic_shape("n")
    with pytest.raises(InconclusiveDimensionOperation, match="length n has no number here"):
        jnp.float32(2) * n
    with pytest.raises(InconclusiveDimensionOperation, match="'n' used in a context"):
        jnp.ones((n, 2))
    with pytest.raises(InconclusiveDimensionOperation, match="a compiler needs numbers"):
        phalanx.jit(jnp.sin).lower(struct((n,))).compile()


def test_what_needs_a_number_is_refused():
    (n,) = symbolic_shape("n")
    for function in (
        lambda x: lax.associative_scan(jnp.add, x),
        jnp.fft.rfft,
        lambda x: [x[i] for i in range(x.shape[0])],
    ):
        with pytest.raises(InconclusiveDimensionOperation, match=r"test_symbolic.py:\d+"):
            phalanx.eval_shape(function, struct((n,)))
    with pytest.raises(ValueError, match=r"n is not divisible by 3"):
        phalanx.eval_shape(lambda x: x.reshape(-1, 3), struct((n,)))
    with pytest.raises(ValueError, match="Incompatible shapes"):
        phalanx.eval_shape(lambda x: x + jnp.ones(3), struct((n,)))


@pytest.mark.parametrize(
    ("spec", "like", "wanted"),
    [
        ("2, n", None, "(2, n)"), ("n,", None, "(n,)"), ("(n, 2*n + 1)", None, "(n, 2*n + 1)"),
        ("", None, "()"), ("n, ...", (1, 2, 3), "(n, 2, 3)"), (None, (1, 2), "(1, 2)"),
        ("_, floordiv(n, 2)", (4, None), "(4, floordiv(n, 2))"), ("n^2 - n", None, "(n^2 - n,)"),
        ("max(n, 4), mod(n, 3), min(n, 2)", None, "(max(n, 4), mod(n, 3), min(n, 2))"),
    ],
)  # fmt: skip
def test_spelling(spec, like, wanted):
    assert str(symbolic_shape(spec, like=like)) == wanted


@pytest.mark.parametrize(
    "wrong", [{"shape_spec": "n +"}, {"shape_spec": "f(n, 2)"}, {"shape_spec": "1.5"},
              {"shape_spec": "n", "constraints": "n > 2"}, {"shape_spec": "n", "constraints": "n"},
              {"shape_spec": "n", "constraints": "n >= 2", "scope": SymbolicScope()}],
)  # fmt: skip
def test_words_that_are_no_shape(wrong):
    with pytest.raises(ValueError, match=r"(symbolic_shape|SymbolicScope): .*test_symbolic.py:\d+"):
        symbolic_shape(**wrong)


def test_specs_of_arguments_share_a_scope():
    x = np.ones((2, 3), "float32")
    first, second = symbolic_args_specs((x, {"y": x}), "n, _", constraints=["n >= 2"])
    assert first.shape == second["y"].shape == (first.shape[0], 3) and first.shape[0] >= 2


def test_dimension_functions_of_the_field():
    (n,) = symbolic_shape("n")
    from phalanx.compat import core

    assert str(core.max_dim(n, 4)) == "max(n, 4)" and core.min_dim(n, 0) == 0


BY_INDEX = {
    "edge": lambda x: jnp.pad(x, ((1, 2), (0, 0)), mode="edge"),
    "reflect": lambda x: jnp.pad(x, ((7, 1), (0, 2)), mode="reflect"),
    "symmetric": lambda x: jnp.pad(x, ((1, 9), (0, 0)), mode="symmetric"),
    "wrap": lambda x: jnp.pad(x, ((7, 8), (1, 0)), mode="wrap"),
    "own length": lambda x: jnp.pad(x, ((0, x.shape[0]), (0, 0)), mode="edge"),
    "permutation": lambda x: random.permutation(KEY, x),
    "of numbers": lambda x: random.permutation(KEY, x.shape[0]),
    "of each": lambda x: random.permutation(KEY, x, independent=True),
    "choice": lambda x: random.choice(KEY, x, (4,)),
    "choice of numbers": lambda x: random.choice(KEY, x.shape[0], (4,)),
    "choice once": lambda x: random.choice(KEY, x, (2,), replace=False),
    "choice by weights": lambda x: random.choice(KEY, x, (4,), p=x[:, 0] + 1),
    "randint": lambda x: random.randint(KEY, (4,), 0, x.shape[0]),
    "nonzero": lambda x: jnp.nonzero(x > 3, size=4, fill_value=x.shape[0]),
    "unique": lambda x: jnp.unique(x[:, 0] // 2, size=3, return_inverse=True, return_counts=True),
    "isin": lambda x: jnp.isin(x, 2 * x),
    "intersection": lambda x: jnp.intersect1d(x, 2 * x, size=3),
    "difference": lambda x: jnp.setdiff1d(x, 2 * x, size=3),
    "delete": lambda x: jnp.delete(x, -1, axis=0),
    "delete several": lambda x: jnp.delete(x, [0, -1], axis=0, assume_unique_indices=True),
    "insert": lambda x: jnp.insert(x, -1, 9, axis=0),
}
KEY = random.key(3)


@pytest.mark.parametrize("name", BY_INDEX)
def test_elements_are_found_where_lengths_are_not_known(name):
    function = phalanx.jit(BY_INDEX[name])
    (n,) = symbolic_shape("n", constraints=["n >= 2"] if name == "choice once" else [])
    exported = export(function)(phalanx.ShapeDtypeStruct((n, 3), "int32"))
    for count in (2, 5) if name != "of numbers" else (2, 5, 1700):
        x = jnp.arange(3 * count, dtype="int32").reshape(count, 3)
        phalanx.tree.map(np.testing.assert_array_equal, exported.call(x), function(x))


def test_what_needs_numbers_says_so():
    n, m = symbolic_shape("n, m")
    drawn = phalanx.jit(lambda x: random.bits(random.key(0, impl="rbg"), x.shape))
    with pytest.raises(InconclusiveDimensionOperation, match="draw with keys of threefry2x32"):
        export(drawn)(phalanx.ShapeDtypeStruct((n,), "float32"))
    with pytest.raises(InconclusiveDimensionOperation, match=r"delete: .* assume_unique_indices"):
        export(phalanx.jit(lambda x: jnp.delete(x, [1, 1])))(phalanx.ShapeDtypeStruct((m,), "f4"))


def test_kernels_of_unknown_number_are_taken_one_by_one():
    one = lambda x, w: lax.conv(x[None], w, (1, 1), "SAME")  # noqa: E731
    (n,) = symbolic_shape("n")
    asked = [phalanx.ShapeDtypeStruct((n, *s), "float32") for s in ((2, 4, 4), (3, 2, 3, 3))]
    together = phalanx.jit(phalanx.vmap(one))
    with pytest.raises(InconclusiveDimensionOperation, match=r"with lax\.map"):
        export(together)(*asked)
    one_by_one = phalanx.jit(lambda x, w: lax.map(lambda each: one(*each), (x, w)))
    x, w = (jnp.arange(k * 2.0).reshape(2, *s) for k, s in ((32, (2, 4, 4)), (54, (3, 2, 3, 3))))
    np.testing.assert_allclose(export(one_by_one)(*asked).call(x, w), together(x, w), rtol=1e-5)
