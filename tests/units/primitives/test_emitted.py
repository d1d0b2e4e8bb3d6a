"""What is emitted is no more work than the compiler's: it cannot take back what is asked of it."""

import math
import re

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.scipy import stats


def emitted(f, *shapes, platform="cuda"):
    operands = [phalanx.ShapeDtypeStruct(s, np.float32) for s in shapes]
    return phalanx.jit(f).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


def elements(text):
    """How many elements the operations of a module compute, which have a result each."""
    shapes = re.findall(r"^ *%.*[ (]tensor<((?:\d+x)*)\w+>\)?(?: {|$)", text, re.MULTILINE)
    return sum(math.prod(map(int, s.split("x")[:-1])) for s in shapes)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_slopes_of_running_results_are_linear_work(name, reverse):
    def slopes(x):
        return phalanx.grad(lambda x: getattr(lax, name)(x, reverse=reverse)[7:].sum())(x)

    few, many = (elements(emitted(slopes, (n,))) for n in (1 << 8, 1 << 12))
    assert 10 < many / few < 16.5


@pytest.mark.parametrize("of", [phalanx.jacfwd, phalanx.jacrev, phalanx.hessian])
def test_directions_are_computed_not_written_down(of):
    few, many = (emitted(of(lambda x: jnp.sin(x).sum()), (n,)) for n in (8, 800))
    assert len(many) < 1.1 * len(few)


def test_differences_are_taken_once():
    x, inner = (100, 100), 100 * 98
    assert elements(emitted(lambda x: jnp.gradient(x, axis=0), x)) < 9 * inner


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_padding_repeats_parts(mode):
    text = emitted(phalanx.grad(lambda x: jnp.pad(x, 3, mode=mode).sum()), (9, 9))
    assert "scatter" not in text and "gather" not in text
    text = emitted(lambda x: jnp.pad(x, 300, mode=mode), (2,))
    assert text.count("stablehlo.slice") < 20


def test_a_density_needs_no_logarithm():
    density, logarithm = (
        elements(emitted(lambda d, x, n=n: getattr(stats.gaussian_kde(d), n)(x), (50,), (200,)))
        for n in ("pdf", "logpdf")
    )
    assert density < 0.7 * logarithm


def test_what_is_whole_is_neither_sliced_nor_padded():
    text = emitted(phalanx.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), (8,))
    assert "stablehlo.slice" not in text and "stablehlo.pad" not in text
    text = emitted(lambda x: x[::-1, ::-2], (4, 4))
    assert text.count("stablehlo.slice") == 1


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_shifts_of_random_bits_are_numbers(platform):
    text = phalanx.jit(lambda k: random.bits(k, (9,))).trace(random.key(0))
    text = text.lower(lowering_platforms=(platform,)).as_text()
    assert "stablehlo.subtract" not in text
    assert text.count("stablehlo.xor") == 23 and text.count("stablehlo.add") <= 38
