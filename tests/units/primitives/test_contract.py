"""dot_general against einsum, its derivatives, precision, and what it refuses."""

import numpy as np
import pytest

import phalanx
from phalanx import primitives as ops
from phalanx.base.config import config
from phalanx.primitives.precision import Precision, canonical_precision

RNG = np.random.default_rng(0)
LENGTHS = dict(zip("abcdef", (2, 3, 4, 5, 2, 3), strict=True))


def draw(letters):
    return RNG.normal(size=[LENGTHS[c] for c in letters]).astype(np.float32)


def numbers(lhs, rhs, out):
    """The contraction that einsum writes ``lhs,rhs->out``, batch letters first in ``out``."""
    shared = [c for c in lhs if c in rhs]
    batch = [c for c in out if c in shared]
    contract = [c for c in shared if c not in batch]
    return {
        "contract": (tuple(map(lhs.index, contract)), tuple(map(rhs.index, contract))),
        "batch": (tuple(map(lhs.index, batch)), tuple(map(rhs.index, batch))),
    }


def test_the_result_may_be_wider_and_cotangents_return_to_the_operands_dtypes():
    x, y = draw("ab").astype("bfloat16"), draw("bc").astype("bfloat16")
    params = {**numbers("ab", "bc", "ac"), "dtype": np.dtype("float32")}
    out, pull = phalanx.vjp(lambda x, y: ops.dot_general(x, y, **params), x, y)
    assert out.dtype == np.float32
    ct_x, ct_y = pull(np.ones(out.shape, np.float32))
    assert ct_x.dtype == ct_y.dtype == x.dtype
    expected = np.asarray(y, np.float32).sum(1)[None].repeat(2, 0)
    np.testing.assert_allclose(np.asarray(ct_x, np.float32), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    "given, expected",
    [
        (None, None),
        ("high", ("high", "high")),
        (Precision.HIGHEST, ("highest", "highest")),
        ("float32", ("highest", "highest")),
        ("F32_F32_F32", ("highest", "highest")),
        ("BF16_BF16_F32_X3", ("high", "high")),
        ("bfloat16_3x", ("high", "high")),
        (("default", Precision.HIGH), ("default", "high")),
        ((None, "HIGH"), ("default", "high")),
    ],
)
def test_precision(given, expected):
    assert canonical_precision("dot", given) == expected


@pytest.mark.parametrize(
    "given, name",
    [
        (None, "DEFAULT"),
        (0, "DEFAULT"),
        ("fastest", "DEFAULT"),
        ("bfloat16", "DEFAULT"),
        (1, "HIGH"),
        ("tensorfloat32", "HIGH"),
        ("bfloat16_3x", "HIGH"),
        (2, "HIGHEST"),
        ("Highest", "HIGHEST"),
        ("float32", "HIGHEST"),
    ],
)
def test_what_stands_for_a_precision_gives_its_member(given, name):
    assert Precision(given) is Precision[name]
    assert canonical_precision("dot", Precision(given)) == (name.lower(),) * 2


@pytest.mark.parametrize("given", ["exact", "F32_F32_F32", 3])
def test_what_stands_for_none_gives_none(given):
    with pytest.raises(ValueError, match=r"Precision: its values are DEFAULT \(0\), HIGH \(1\)"):
        Precision(given)


def test_precision_comes_from_the_configuration_unless_given():
    with config.override(default_matmul_precision="high"):
        assert canonical_precision("dot", None) == ("high", "high")
        assert canonical_precision("dot", "highest") == ("highest", "highest")


@pytest.mark.parametrize("given", ["exact", 3, ("high",), ("high", "exact")])
def test_unknown_precision(given):
    with pytest.raises(ValueError, match="dot: precision must be None, 'default', 'high'"):
        canonical_precision("dot", given)


@pytest.mark.parametrize(
    "contract, batch, error, message",
    [
        (
            ((2,), (0,)),
            ((), ()),
            TypeError,
            r"dot_general: dimension 2 of lhs f32\[3,4,5\] and dimension 0 of rhs f32\[3,4,5\] "
            "must be equal, got 5 and 3",
        ),
        (((2, 1), (2,)), ((), ()), ValueError, "as many contracting dimensions"),
        (((2,), (2,)), ((2,), (0,)), ValueError, r"of lhs f32\[3,4,5\] must be distinct"),
        (((3,), (2,)), ((), ()), ValueError, r"must be distinct and lie in 0..2"),
    ],
)
def test_refuses(contract, batch, error, message):
    x = np.zeros((3, 4, 5), np.float32)
    with pytest.raises(error, match=message):
        ops.dot_general(x, x, contract=contract, batch=batch)


def test_refuses_two_dtypes():
    with pytest.raises(TypeError, match=r"lhs f32\[3\] and rhs i32\[3\] must have one dtype"):
        ops.dot_general(
            np.zeros(3, np.float32), np.zeros(3, np.int32), contract=((0,), (0,)), batch=((), ())
        )
