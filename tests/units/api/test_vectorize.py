"""What signatures of ``vectorize`` say of operands and results."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

SQUARE = np.arange(16.0, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize(
    ("signature", "function", "operands", "words"),
    [
        ("(n),(n)->()", lambda a, b: a.sum() * b.sum(), ((3,), (4,)), "'n'.* size 4"),
        ("(n),(n)->(n)", lambda a, b: a * b, ((3,), (1,)), "'n'.* size 1"),
        ("(n,m),(m,p)->(n,p)", lambda a, b: a @ b.T, ((2, 3), (2, 3)), "'m'.* size 2"),
        ("(n,m)->()", lambda a: a.sum(), ((3,),), "needs 2 dimensions"),
        ("(n)->(n)", lambda a: a.sum(), ((4, 4),), r"dimensions \(n\)"),
        ("(n)->()", lambda a: a, ((4, 4),), r"dimensions \(\)"),
        ("(n)->(n)", lambda a: a[:2], ((4, 4),), "'n'.* size 2"),
        ("(n)->(k),(k)", lambda a: (a[:2], a[:3]), ((4, 4),), "'k'.* size 3"),
    ],
)
def test_sizes_that_do_not_fit_are_told(signature, function, operands, words):
    apply = jnp.vectorize(function, signature=signature)
    with pytest.raises(ValueError, match=words):
        apply(*[jnp.ones(shape) for shape in operands])


@pytest.mark.parametrize(
    ("signature", "function"),
    [
        ("(n)->(n)", lambda a: (a, a)),
        ("(n)->(n),(n)", lambda a: a),
        ("(n)->(n),(n)", lambda a: (a,)),
    ],
)
def test_another_number_of_results_is_told(signature, function):
    with pytest.raises(TypeError, match="results by the signature"):
        jnp.vectorize(function, signature=signature)(SQUARE)


@pytest.mark.parametrize(
    "text",
    ["(n)", "(n)->", "n->n", "(n),->()", "(n)->(n)->(n)", "(n-1)->()", "(a b)->()", "(n)->() ()"],
)
def test_what_is_no_signature_is_told(text):
    with pytest.raises(ValueError, match=r"is not a signature .*, at test_vectorize\.py"):
        jnp.vectorize(lambda a: a, signature=text)


def test_spaces_may_stand_between_names_and_signs():
    ours, theirs = (
        m.vectorize(lambda a, b: a @ b, signature=" ( n, m ) ,(m) -> ( n )") for m in (jnp, np)
    )
    np.testing.assert_array_equal(ours(SQUARE, SQUARE[0]), theirs(SQUARE, SQUARE[0]))


def test_another_number_of_arguments_is_told():
    words = r"'\(n\)->\(\)' has 1 arguments, got 2, at test_vectorize\.py"
    with pytest.raises(TypeError, match=words):
        jnp.vectorize(lambda a, b: a, signature="(n)->()")(SQUARE, SQUARE)


@pytest.mark.parametrize("around", [lambda f: f, phalanx.jit])
def test_without_a_signature_results_are_any_tree(around):
    def function(a):
        return {"twice": 2 * a, "both": [a, (a + 1, None)]}

    for x in (SQUARE, np.float32(3)):
        found = around(jnp.vectorize(function))(x)
        assert phalanx.tree.structure(found) == phalanx.tree.structure(function(x))
        for got, wanted in zip(*map(phalanx.tree.leaves, (found, function(x))), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("signature", ["()->()", "()->(),()"])
def test_by_a_signature_a_list_is_no_result(signature):
    with pytest.raises(TypeError, match="an array or a number is needed, got a list of 2"):
        jnp.vectorize(lambda a: [a, a], signature=signature)(SQUARE)


@pytest.mark.parametrize("signature", [None, "()->()"])
def test_none_alone_is_nothing_to_call_a_function_with(signature):
    with pytest.raises(ValueError, match=r"got None alone, at test_vectorize\.py"):
        jnp.vectorize(lambda a: 1.0, signature=signature)(None)
    beside = jnp.vectorize(lambda a, b: a if b is None else b)(SQUARE, None)
    np.testing.assert_array_equal(beside, SQUARE)


@pytest.mark.parametrize(
    ("excluded", "error", "words"),
    [({-1}, ValueError, "count from 0, got -1"), ({1.5}, TypeError, "positions and names .* 1.5")],
)
def test_what_cannot_be_left_out_is_told(excluded, error, words):
    with pytest.raises(error, match=rf"{words}, at test_vectorize\.py"):
        jnp.vectorize(lambda a, b: a, excluded=excluded)


@pytest.mark.parametrize("around", [lambda f: f, phalanx.jit, phalanx.vmap])
def test_new_names_of_results_take_any_size(around):
    def function(a, b):
        return a @ b, a[0, :2]

    said = "(n,m),(m)->(n),(k)"
    ours = around(jnp.vectorize(function, signature=said))
    theirs = np.vectorize(function, signature=said)
    a, b = np.ones((5, 2, 3), np.float32), np.ones((5, 3), np.float32)
    for x, y in zip(ours(a, b), theirs(a, b), strict=True):
        np.testing.assert_allclose(x, y)
