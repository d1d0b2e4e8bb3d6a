"""Products and einsum against NumPy, and their derivatives."""

from functools import partial

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from tests.compare import SUMS
from tests.compare import close as close_within

close = partial(close_within, within=SUMS)

RNG = np.random.default_rng(0)
SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 5, "i": 3, "j": 4, "k": 2, "z": 1}


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def operands(formula, dots=(2, 3)):
    left = formula.replace(" ", "").split("->")[0]
    shapes = []
    for word in left.split(","):
        before, dotted, after = word.partition("...")
        hidden = dots if dotted else ()
        shapes.append((*(SIZES[n] for n in before), *hidden, *(SIZES[n] for n in after)))
    return [draw(*s) for s in shapes]


FORMULAS = [
    "ij->ji", "ij->", "ij->i", "ij", "ji", "aa->a", "aa", "aab->b", "aab->ab", "aba->ab",
    "i,i", "i,i->i", "i,j->ij", "i,j->ji", "ij,j->i", "ij,jk->ik", "ij,jk", "ij,kj->ki",
    "ij,ij->", "ij,ij->ij", "ab,cb->", "abc,abd->acd", "abc,bad->cd", "abc,cde->abde",
    "bij,bjk->bik", "bij,kj->bik", "ij,jk,kb->ib", "ij,ik,ia->jka", "a,b,c->cba",
    "aab,bc->ac", "ab,ab,ab->a", "...i,...i->...", "...ij,...jk->...ik", "i...,i...",
    "...ij->...ji", "...,i->i...", "...a,ab->...b", "ij, jk -> ik", "abc,cd,de,ea->b",
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_einsum(formula):
    xs = operands(formula)
    close(jnp.einsum(formula, *xs), np.einsum(formula, *xs))


def test_any_character_names_a_dimension():
    x, y = operands("aij,ika")
    for formula in ("1ij,ik1->jk", "_ij,ik_->jk", "1ij,ik1->1", "0ij,ik0"):
        letters = formula.replace("1", "a").replace("_", "a").replace("0", "A")
        close(jnp.einsum(formula, x, y), np.einsum(letters, x, y))
    for formula in ("i-j,jk", "i.j,jk", "ij>,jk", "ij,jk->i->k"):
        with pytest.raises(ValueError, match="einsum: "):
            jnp.einsum(formula, x, y)


@pytest.mark.parametrize("formula", ["ij,jk,kb->ib", "aab,bc->ac", "...ij,...jk->...ik", "ij->"])
def test_einsum_differentiates(formula):
    xs = operands(formula)

    def total(*xs):
        return (jnp.einsum(formula, *xs) ** 2).sum()

    directions = [draw(*x.shape) for x in xs]
    slopes = phalanx.jit(phalanx.grad(total, tuple(range(len(xs)))))(*xs)
    along = sum((s * d).sum() for s, d in zip(slopes, directions, strict=True))
    _, tangent = phalanx.jvp(total, tuple(xs), tuple(directions))
    np.testing.assert_allclose(along, tangent, rtol=1e-3)
    mapped = phalanx.vmap(lambda x: jnp.einsum(formula, x, *xs[1:]))(np.stack([xs[0], 2 * xs[0]]))
    close(mapped[1], np.asarray(2 * jnp.einsum(formula, *xs)))


def test_einsum_of_lists_and_lengths_of_one():
    x, y = draw(3, 4), draw(4, 2)
    close(jnp.einsum(x, [0, 1], y, [1, 2], [0, 2]), x @ y)
    close(jnp.einsum(x, [0, 1], y, [1, 2]), x @ y)
    close(jnp.einsum(x, [0, ...], [..., 0]), x.T)
    close(jnp.einsum("ij,ij->ij", x, x[:1]), x * x[:1])
    close(jnp.einsum("ij,jk->ik", x, y[:1]), np.einsum("ij,jk->ik", x, y[:1] * np.ones((4, 1))))
    for optimize in (False, True, "greedy", "optimal", [(0, 1), (0, 1)]):
        found = jnp.einsum("ij,jk,k->i", x, y, y[0], optimize=optimize)
        close(found, x @ y @ y[0])
    path, table = jnp.einsum_path("ij,jk,kl->il", x, y, y.T)
    assert path == np.einsum_path("ij,jk,kl->il", x, y, y.T, optimize="optimal")[0][1:]
    assert "Complete contraction:  ij,jk,kl->il" in str(table)
    close(jnp.einsum("ij,jk,kl->il", x, y, y.T, optimize=path), x @ y @ y.T)


EINSUM_ERRORS = {
    "count": (("ij,jk", np.ones((2, 2))), "describes 2 operands, got 1"),
    "rank": (("ij", np.ones(2)), "'ij' in 'ij' does not fit an operand with 1 dimensions"),
    "length": (("ij,jk", np.ones((2, 3)), np.ones((4, 2))), "'j' in 'ij,jk' has lengths 3 and 4"),
    "result": (("ij->k", np.ones((2, 2))), "distinct letters of the operands; 'k' is in no"),
    "twice": (("ij->ii", np.ones((2, 2))), "letters of the operands; 'i' stands there twice"),
    "letters": (("i-", np.ones((2, 2))), "may contain letters"),
}


@pytest.mark.parametrize("case", EINSUM_ERRORS)
def test_einsum_errors(case):
    args, text = EINSUM_ERRORS[case]
    with pytest.raises(ValueError, match=text):
        jnp.einsum(*args)


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)), ((3,), (5, 3, 2)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((0, 3), (3, 2)), ((2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize("a,b", SHAPES, ids=str)
def test_matmul(a, b):
    x, y = draw(*a), draw(*b)
    close(jnp.matmul(x, y), np.asarray(np.matmul(x, y)))
    slope = phalanx.grad(lambda x: (jnp.matmul(x, y) ** 2).sum())(jnp.array(x))
    assert slope.shape == a


@pytest.mark.parametrize("a,b", [s for s in SHAPES if s[0] != (1, 2, 3)][:11], ids=str)
def test_dot_and_inner(a, b):
    x, y = draw(*a), draw(*b)
    if len(b) == 1 or a[-1] == b[-2]:
        close(jnp.dot(x, y), np.asarray(np.dot(x, y)))
    z = draw(4, a[-1])
    close(jnp.inner(x, z), np.inner(x, z))


def test_other_products():
    x, y = draw(2, 3, 4), draw(4, 3, 5)
    close(jnp.tensordot(x, y, 1), np.tensordot(x, y, 1))
    axes = ((1, 2), (1, 0))
    close(jnp.tensordot(x, y, axes), np.tensordot(x, y, axes))
    close(jnp.tensordot(x, y, ((-1,), (0,))), np.tensordot(x, y, ((-1,), (0,))))
    z = x[0] + 1j * x[1]
    close(jnp.vdot(z, z), np.asarray(np.vdot(z, z)))
    close(jnp.vecdot(x, x[0]), np.vecdot(x, x[0]))
    close(jnp.vecdot(z, z, axis=0), np.vecdot(z, z, axis=0))
    close(jnp.kron(x[0], y[0]), np.kron(x[0], y[0]))
    close(jnp.dot(2.0, x), 2 * x)
    close(jnp.matvec(x, y[:, 0, 0]), x @ y[:, 0, 0])
    close(jnp.vecmat(z[:, 0], z), np.conj(z[:, 0]) @ z)


def test_cross():
    x, y = draw(5, 3), draw(5, 3)
    close(jnp.cross(x, y), np.cross(x, y))
    close(jnp.cross(x.T, y, axisa=0, axisc=0), np.cross(x.T, y, axisa=0, axisc=0))
    close(jnp.cross(x, y[0]), np.cross(x, y[0]))
    plane = jnp.cross(x[:, :2], y[:, :2])
    close(plane, x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0])
    wide = jnp.cross(x[:, :2], y)
    close(wide, np.cross(np.pad(x[:, :2], ((0, 0), (0, 1))), y))


def test_dtypes():
    flags = RNG.random((3, 3)) > 0.5
    assert jnp.array_equal(jnp.array(flags) @ jnp.array(flags), flags @ flags)
    small = jnp.ones((2, 2), jnp.int8)
    assert (small @ small).dtype == jnp.int8
    assert jnp.matmul(small, small, preferred_element_type=jnp.int32).dtype == jnp.int32
    halves = jnp.ones((2, 2), jnp.bfloat16)
    assert jnp.dot(halves, halves, preferred_element_type=jnp.float32).dtype == jnp.float32
    assert jnp.einsum("ij,jk", halves, halves, precision="highest").dtype == jnp.bfloat16
    assert (jnp.arange(3) @ jnp.ones(3)).dtype == jnp.float32


PRODUCT_ERRORS = {
    "lengths": (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), r"got 3 and 2"),
    "number": (lambda: jnp.ones(3) @ 2, "multiplies with"),
    "batches": (lambda: jnp.ones((2, 3, 3)) @ jnp.ones((4, 3, 3)), "for broadcasting"),
    "axes": (lambda: jnp.tensordot(jnp.ones(3), jnp.ones(3), 2), "cannot be paired"),
    "precision": (lambda: jnp.dot(jnp.ones(3), jnp.ones(3), precision="x"), "precision must be"),
}


@pytest.mark.parametrize("case", PRODUCT_ERRORS)
def test_errors(case):
    function, text = PRODUCT_ERRORS[case]
    with pytest.raises(ValueError, match=text):
        function()


def test_norms():
    x = draw(2, 3, 4)
    for ord in (None, 1, 2, 3, np.inf, -np.inf, 0):
        close(jnp.linalg.norm(x, ord, axis=1), np.linalg.norm(x, ord, axis=1))
    for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            close(
                jnp.linalg.norm(x, ord, axis=(2, 0), keepdims=keepdims),
                np.linalg.norm(x, ord, axis=(2, 0), keepdims=keepdims),
            )
    close(jnp.linalg.norm(x), np.asarray(np.linalg.norm(x)))
    close(jnp.linalg.vector_norm(x, axis=(0, 1)), np.linalg.vector_norm(x, axis=(0, 1)))
    close(jnp.linalg.matrix_norm(x), np.linalg.matrix_norm(x))


def test_powers_and_chains():
    m = draw(2, 3, 3)
    for n in (0, 1, 2, 5):
        close(jnp.linalg.matrix_power(m, n), np.linalg.matrix_power(m, n), rtol=1e-3)
    chain = [draw(2, 3), draw(3, 4), draw(4, 2)]
    close(jnp.linalg.multi_dot(chain), np.linalg.multi_dot(chain))
    ends = [draw(3), draw(3, 4), draw(4)]
    close(jnp.linalg.multi_dot(ends), np.asarray(np.linalg.multi_dot(ends)))
    close(jnp.linalg.trace(m), np.linalg.trace(m))
    close(jnp.linalg.diagonal(m, offset=1), np.linalg.diagonal(m, offset=1))


def test_what_multiplies_in_einsum_is_told_the_dtype_of_the_result():
    told = []

    def product(x, y, numbers, precision, preferred_element_type):
        told.append(preferred_element_type)
        return phalanx.lax.dot_general(x, y, numbers, precision, preferred_element_type)

    x, y = jnp.ones((2, 3), jnp.bfloat16), jnp.ones((3, 2))
    jnp.einsum("ij,jk", x, y, _dot_general=product)
    jnp.einsum("ij,jk", x, x.T, _dot_general=product)
    jnp.einsum("ij,jk", x, x.T, _dot_general=product, preferred_element_type=jnp.float32)
    assert told == [jnp.float32, jnp.bfloat16, jnp.float32]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("wanted", ["float32", "int32", "bfloat16"])
@pytest.mark.parametrize("formula", ["ij,jk,kl->il", "ij,ij,ij->i", "i,j,k->ijk", "ij,kl,jk,l->i"])
def test_einsum_of_many_operands_adds_up_in_the_dtype_that_is_asked_for(dtype, wanted, formula):
    words = formula.split("->")[0].split(",")
    xs = [RNG.integers(0, 2, [2 if n == "i" else 3 for n in w]) for w in words]
    for optimize in ("optimal", False):
        out = jnp.einsum(
            formula,
            *(jnp.array(x, dtype) for x in xs),
            preferred_element_type=wanted,
            optimize=optimize,
        )
        assert out.dtype == wanted
        np.testing.assert_array_equal(np.asarray(out, "float32"), np.einsum(formula, *xs))
