"""Annotations of jaxtyping on our arrays, checked by beartype, under transformations too."""

import dataclasses

import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintParamViolation
from jaxtyping import BFloat16, Bool, Float, Int, Key, TypeCheckError, UInt8, jaxtyped

import phalanx
import phalanx.numpy as jnp
from phalanx import Array, random
from phalanx.typing import ArrayLike, DTypeLike, Shape, ShapeLike

checked = jaxtyped(typechecker=beartype)


@checked
def dense(x: Float[Array, "b n"], w: Float[Array, "n m"]) -> Float[Array, "b m"]:
    return x @ w


X, W = jnp.ones((4, 3)), jnp.ones((3, 2))
CALLS = {
    "called": dense,
    "jit": phalanx.jit(dense),
    "grad": lambda x, w: phalanx.grad(lambda w: dense(x, w).sum())(w),
    "jvp": lambda x, w: phalanx.jvp(dense, (x, w), (x, w))[1],
    "vmap": lambda x, w: phalanx.vmap(dense, in_axes=(0, None))(x[None], w),
    "pmap": lambda x, w: phalanx.pmap(dense, in_axes=(0, None))(x[None], w),
    "eval_shape": lambda x, w: phalanx.eval_shape(dense, x, w),
}


@pytest.mark.parametrize("law", CALLS)
def test_shapes_of_one_lane_are_checked(law):
    CALLS[law](X, W)
    with pytest.raises(TypeCheckError, match="parameter 'w'"):
        CALLS[law](X, X)


def test_dtypes_and_keys():
    @checked
    def first(
        key: Key[Array, ""],
        n: Int[Array, ""],
        b: Bool[Array, "k"],
        z: BFloat16[Array, "k"],
        u: UInt8[Array, "k"],
    ) -> Int[Array, ""]:
        return n

    kinds = [jnp.int32(1), *(jnp.ones(3, d) for d in ("bool", "bfloat16", "uint8"))]
    assert phalanx.jit(first)(random.key(0), *kinds) == 1
    assert phalanx.vmap(first, in_axes=(0, *[None] * 4))(random.split(random.key(0)), *kinds).ndim
    with pytest.raises(TypeCheckError, match="parameter 'key'"):
        first(jnp.int32(0), *kinds)


def test_dataclasses_that_are_trees():
    @phalanx.tree_util.register_dataclass
    @checked
    @dataclasses.dataclass
    class Layer:
        w: Float[Array, "i o"]
        b: Float[Array, " o"]

    assert phalanx.jit(lambda layer: layer.w.sum() + layer.b.sum())(Layer(W, jnp.ones(2))) == 8
    with pytest.raises(TypeCheckError):
        Layer(W, jnp.ones(3))


def test_types_for_annotations():
    @beartype
    def made(x: ArrayLike, shape: ShapeLike, dtype: DTypeLike, like: Array) -> Shape:
        return (jnp.full(shape, x, dtype) + like).shape

    ones = jnp.ones(3)
    for x in (1, 2.0, True, np.float32(1), np.ones(3), ones):
        for dtype in ("float32", float, jnp.bfloat16, np.dtype("int32"), np.float16):
            assert made(x, 3, dtype, ones) == (3,) == made(x, (3,), dtype, ones)
    assert phalanx.jit(lambda x: made(x, [3], "float32", x) and x)(ones).shape == (3,)
    for wrong in [("1", 3, "float32"), ([1.0], 3, "float32"), (1, 3, 32), (1, 3.0, "float32")]:
        with pytest.raises(BeartypeCallHintParamViolation):
            made(*wrong, ones)
    with pytest.raises(BeartypeCallHintParamViolation):
        made(1, 3, "float32", np.ones(3))
