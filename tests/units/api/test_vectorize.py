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


@pytest.mark.parametrize("text", ["(n)", "(n)->", "n->n", "(n),->()", "(n)->(n)->(n)", "(n-1)->()"])
def test_what_is_no_signature_is_told(text):
    with pytest.raises(ValueError, match="is not a signature"):
        jnp.vectorize(lambda a: a, signature=text)


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
