"""Windows of every kind, and all their derivatives: they compute, or raise in words."""

import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.children import outcomes

PRELUDE = """
from phalanx import tree as t
def everything(f, x):
    def slope(x):
        return grad(lambda x: f(x).sum())(x)
    rows = jnp.stack([x, x])
    errors = set()
    for call in (
        lambda: f(x), lambda: jit(f)(x), lambda: slope(x), lambda: jvp(f, (x,), (x,)),
        lambda: vmap(f)(rows), lambda: jit(grad(lambda x: (slope(x) * x).sum()))(x),
        lambda: jacfwd(f)(x), lambda: vmap(slope)(rows),
    ):
        try:
            [np.asarray(leaf) for leaf in t.leaves(call())]
        except (ValueError, TypeError, NotImplementedError) as e:
            errors.add(str(e))
    if errors:
        raise ValueError(" | ".join(sorted(errors)))
"""
OPERATIONS = {
    "lax.add": "0.", "lax.max": "-jnp.inf", "lax.min": "jnp.inf", "lax.mul": "1.",
    "lambda a, b: a * b + 1": "0.",
}  # fmt: skip
FROM_INSIDE = ("called with", "ZeroDivision", "the compiler refuses", "INTERNAL")


def drawn(draw):
    rank, odd = draw([0, 0, 1, 1, 2, 3]), draw([True, False, False, False])

    def numbers(usual, others):
        return f"({''.join(f'{draw(usual + others * odd)}, ' for _ in range(rank))})"

    shape, window = numbers([0, 1, 2, 3, 5], []), numbers([1, 2, 3, 4], [0, -1])
    strides, *dilations = numbers([1, 2, 3, 7], [0, -1]), *[numbers([1, 1, 2], [0]) for _ in "ab"]
    pairs = [(draw([-4, -2, -1, 0, 1, 3]), draw([-5, -1, 0, 1, 3])) for _ in range(rank)]
    padding = draw(["'SAME'", "'VALID'", "'SAME_LOWER'", str(pairs)])
    said = f"{window}, {strides}, {padding}, {', '.join(dilations)}"
    operation, rest = draw([*OPERATIONS]), said.removeprefix(f"{window}, ")
    pairs_of = "(x, x), (0., 0.), lambda a, b: (a[0] + b[0], a[1] * b[1])"
    calls = [f"reduce_window(x, {OPERATIONS[operation]}, {operation}, {said})"] * 4 + [
        f"conv_general_dilated(x[None, None], jnp.ones((1, 1) + {window}), {rest})",
        f"conv_general_dilated_patches(x[None, None], {said})",
        f"reduce_window({pairs_of}, {said})[0]",
    ]
    f = f"lax.{draw(calls)}"
    return f"everything(lambda x: {f}, jnp.ones({shape}))"


def test_drawn_windows_compute_or_raise_in_words():
    draw = random.Random(7).choice
    pieces = [drawn(draw) for _ in range(16)]
    found = dict(zip(pieces, outcomes(pieces, prelude=PRELUDE), strict=True))
    wrong = {
        piece: how for piece, how in found.items()
        if not how.startswith(("done", "ValueError")) or any(word in how for word in FROM_INSIDE)
    }  # fmt: skip
    assert not wrong


@pytest.mark.parametrize(("operation", "init"), [(lax.max, -np.inf), (lax.min, np.inf)])
def test_the_window_of_a_scalar(operation, init):
    def f(x):
        return lax.reduce_window(x, init, operation, (), (), "VALID")

    x = jnp.float32(3)
    assert f(x) == 3
    assert phalanx.grad(f)(x) == phalanx.jit(phalanx.grad(f))(x) == 1
    assert phalanx.jvp(f, (x,), (x,))[1] == 3
    np.testing.assert_array_equal(phalanx.vmap(phalanx.grad(f))(jnp.ones(4)), np.ones(4))


def test_a_stride_of_zero_is_refused():
    for padding in ("SAME", "VALID"):
        with pytest.raises(ValueError, match="strides must be positive, got"):
            lax.reduce_window(jnp.ones(4), 0.0, lax.add, (2,), (0,), padding)
        with pytest.raises(ValueError, match="strides must be positive, got"):
            lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (0,), padding)
