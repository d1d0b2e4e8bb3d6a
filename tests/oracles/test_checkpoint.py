"""What derivatives store, against jax: no more than there, policy by policy."""

import contextlib
import io
import math
import re
from collections import Counter

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import phalanx

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)).astype(np.float32)
X = RNG.normal(size=(3, 4)).astype(np.float32)
ROWS = RNG.normal(size=(5, 4, 4)).astype(np.float32)


def perceptron(api, name):
    def f(w, x):
        hidden = name(api.numpy.tanh(x @ w), "hidden")
        return api.jit(lambda a: api.numpy.sin(a @ w))(hidden)

    return f


def attention(api, name):
    def f(w, x):
        scores = name(api.numpy.einsum("bij,bkj->bik", x @ w, x), "scores")
        return api.numpy.einsum("bik,bkj->bij", api.nn.softmax(scores), api.numpy.cos(x) @ w)

    return f


def layers(api, name):
    def f(w, x):
        def step(c, _):
            return name(api.numpy.tanh(c @ w), "hidden") @ w, None

        return api.lax.scan(step, x, None, length=5)[0]

    return f


FUNCTIONS = {"perceptron": (perceptron, X), "attention": (attention, ROWS), "layers": (layers, X)}
POLICIES = {
    "none": lambda p: None,
    "dots": lambda p: p.dots_saveable,
    "dots_without_batch": lambda p: p.dots_with_no_batch_dims_saveable,
    "names": lambda p: p.save_any_names_but_these("other"),
    "one_name": lambda p: p.save_only_these_names("scores"),
    "both": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("hidden")),
}


def stored(api, module, which, policy):
    """The types of what is stored, but for literals, and the function and its argument."""
    make, x = FUNCTIONS[which]
    f = make(api, module.checkpoint_name)
    g = api.checkpoint(f, policy=POLICIES[policy](api.checkpoint_policies))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        module.print_saved_residuals(g, W, x)
    lines = [line for line in out.getvalue().splitlines() if "literal" not in line]
    return Counter(re.match(r"\w+\[[\d,]*\]", line)[0] for line in lines), (g, x)


def elements(actual):
    sizes = (kind.split("[")[1] for kind in actual.elements())
    shapes = [[int(d) for d in re.findall(r"\d+", size)] for size in sizes]
    return sum(map(math.prod, shapes))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("which", FUNCTIONS)
def test_no_more_is_stored(which, policy):
    ours, (f, x) = stored(phalanx, phalanx.ad_checkpoint, which, policy)
    theirs, (g, _) = stored(jax, jax.ad_checkpoint, which, policy)
    assert elements(ours) <= elements(theirs), (ours, theirs)
    slopes = [
        api.jit(api.grad(lambda w, x, f=f: (f(w, x) ** 2).sum()))(W, x)
        for api, f in ((phalanx, f), (jax, g))
    ]
    np.testing.assert_allclose(*map(np.asarray, slopes), rtol=1e-3, atol=1e-4)
