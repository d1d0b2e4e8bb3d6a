"""Convolution against its defining sum, with every parameter, and its derivatives."""

import itertools

import numpy as np
import pytest

import phalanx
from phalanx import primitives as ops
from phalanx.primitives.conv import ConvDimensionNumbers, padding_same, plain_window

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def by_definition(x, kernel, strides, padding, lhs_dilation, rhs_dilation, groups, batches):
    """One spatial dimension, [N, C, W] and [O, I, W], written as loops."""
    n, c, width = x.shape
    outputs, inputs, window = kernel.shape
    (stride,), ((low, high),), (ld,), (rd,) = strides, padding, lhs_dilation, rhs_dilation
    dilated = np.zeros((n, c, (width - 1) * ld + 1 + low + high), x.dtype)
    for i in range(width):
        if 0 <= i * ld + low < dilated.shape[2]:
            dilated[:, :, i * ld + low] = x[:, :, i]
    size = (dilated.shape[2] - (window - 1) * rd - 1) // stride + 1
    out = np.zeros((n // batches, outputs, size), x.dtype)
    for b, o, p, i, k in itertools.product(*map(range, (*out.shape, inputs, window))):
        group = o // (outputs // groups)
        batch = b + (o // (outputs // batches)) * out.shape[0]
        out[b, o, p] += dilated[batch, group * inputs + i, p * stride + k * rd] * kernel[o, i, k]
    return out


CASES = list(
    itertools.product(
        [(1,), (2,)],
        [((0, 0),), ((2, 1),), ((-1, 2),)],
        [(1,), (2,)],
        [(1,), (2,)],
        [(1, 1), (2, 1), (1, 2)],
    )
)


def operands(groups, batches):
    return draw(2 * batches, 2 * groups, 6), draw(2 * groups * batches, 2, 2)


def window(strides, padding, lhs_dilation, rhs_dilation, groups):
    return plain_window(
        1,
        strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        feature_group_count=groups[0],
        batch_group_count=groups[1],
    )


@pytest.mark.parametrize("strides", [(1,), (2,)])
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)])
def test_agrees_with_the_definition_and_so_do_both_cotangents(strides, groups):
    """The sum is bilinear: <conv(x, k), c> must equal <x, ct_x> and <k, ct_k>."""
    cases = [c for c in CASES if c[0] == strides and c[4] == groups]
    x, kernel = operands(*groups)

    def everything(x, kernel):
        found = []
        for case in cases:

            def conv(x, k, case=case):
                return ops.conv_general_dilated(x, k, **window(*case))

            out, pull = phalanx.vjp(conv, x, kernel)
            found.append((out, pull(out)))
        return found

    for case, (out, (ct_x, ct_k)) in zip(cases, phalanx.jit(everything)(x, kernel), strict=True):
        expected = by_definition(x, kernel, *case[:4], *case[4])
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4, err_msg=str(case))
        square = np.vdot(expected, expected)
        np.testing.assert_allclose(np.vdot(ct_x, x), square, rtol=1e-4, err_msg=str(case))
        np.testing.assert_allclose(np.vdot(ct_k, kernel), square, rtol=1e-4, err_msg=str(case))


def test_a_result_without_elements_has_zero_cotangents():
    x, kernel = draw(1, 1, 2), draw(1, 1, 3)

    def conv(x, k):
        return ops.conv_general_dilated(x, k, **plain_window(1))

    out, pull = phalanx.vjp(conv, x, kernel)
    assert out.shape == (1, 1, 0)
    for ct, operand in zip(pull(out), (x, kernel), strict=True):
        np.testing.assert_array_equal(ct, 0 * operand)


def test_padding_same():
    assert padding_same((5, 6, 4), (3, 2, 2), (1, 2, 3)) == ((1, 1), (0, 0), (0, 1))


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"strides": (1, 1)}, ValueError, "strides needs one entry for each of 1 spatial"),
        ({"strides": (0,)}, ValueError, "strides must be positive"),
        ({"feature_group_count": 2}, TypeError, r"lhs f32\[4,3,5\] has 3 features in dimension 1"),
        ({"batch_group_count": 3}, ValueError, "must be a multiple of"),
        ({"batch_group_count": 0}, ValueError, "must be positive and one of them"),
        (
            {"dimension_numbers": ConvDimensionNumbers((0, 1, 1), (0, 1, 2), (0, 1, 2))},
            ValueError,
            "must list its dimensions",
        ),
    ],
)
def test_refuses(changes, error, message):
    with pytest.raises(error, match=message):
        ops.conv_general_dilated(draw(4, 3, 5), draw(6, 3, 2), **plain_window(1, **changes))


def test_refuses_two_dtypes():
    with pytest.raises(TypeError, match="must have one dtype"):
        ops.conv_general_dilated(draw(1, 1, 2), draw(1, 1, 2).astype(np.float16), **plain_window(1))
