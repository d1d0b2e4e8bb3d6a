"""Operations that each device runs on blocks: attention, with CPUs in the place of GPUs."""

import re

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn
from phalanx.primitives import attention, cudnn
from phalanx.sharding import NamedSharding
from phalanx.sharding import PartitionSpec as P
from phalanx.xla import partitioning

pytestmark = pytest.mark.skipif(phalanx.device_count() != 8, reason="it is over eight devices")

partitioning.register()
SOURCE = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cpus_with_kernels(monkeypatch):
    """CPUs run by block what GPUs do, in operations."""
    monkeypatch.setitem(attention.attention.lower_on, "cpu", attention._lower_on_cuda)
    backward = attention.attention_backward
    monkeypatch.setitem(backward.lower_on, "cpu", attention._lower_backward_on_cuda)
    monkeypatch.setattr(cudnn, "forward", attention._lower)
    monkeypatch.setattr(cudnn, "backward", attention._lower_backward)


def drawn(*shape):
    return jnp.asarray(SOURCE.normal(size=shape), "bfloat16")


def slopes(*args, **options):
    def total(*args):
        return (nn.dot_product_attention(*args, implementation="cudnn", **options) ** 2).sum()

    return phalanx.value_and_grad(total, range(len(args)))(*args)


def compiled(f, args, specs, grid=(4, 2)):
    mesh = phalanx.make_mesh(grid, ("b", "n"))
    cut = [phalanx.device_put(x, NamedSharding(mesh, s)) for x, s in zip(args, specs, strict=True)]
    f = phalanx.jit(f)
    return f(*cut), f.lower(*cut).compile().as_text()


def operands(text, count):
    """The shapes of values with the ``count`` scores of one query in their last dimension."""
    return {tuple(map(int, s.split(","))) for s in re.findall(rf"\[([\d,]*,{count})\]", text)}


BATCH, BOTH = P("b"), P("b", None, "n")
CASES = {
    "batch over all": ((8, 4), [P(("b", "n"))] * 3, (1, 4)),
    "heads and batch": ((8, 4), [BOTH] * 3, (2, 2)),
    "two heads for a key": ((8, 2), [BOTH] * 3, (2, 2)),
    "all heads for a key": ((8, 1), [BOTH, BATCH, BATCH], (2, 2)),
    "whole keys": ((8, 4), [BOTH, P(), P()], (2, 2)),
    "rows of queries": ((8, 4), [P(None, "b"), P(), P()], (8, 4, 1)),
    "a batch that does not divide": ((6, 4), [P()] * 3, (6, 4)),
    "one of a batch": ((1, 4), [P(None, None, "n")] * 3, (1, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_devices_compute_their_own_batches_and_heads(case):
    (batch, keys), specs, block = CASES[case]
    args = [drawn(batch, 4, 4, 8), drawn(batch, 6, keys, 8), drawn(batch, 6, keys, 8)]
    found, text = compiled(slopes, args, specs)
    for x, y in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(slopes(*args)), strict=True):
        np.testing.assert_allclose(*(np.asarray(v, np.float32) for v in (x, y)), 0.05, 0.05)
    assert (*block, 4, 6)[:3] in {shape[:3] for shape in operands(text, 6)}
    if block[:2] != (batch, 4):
        assert "all-gather" not in text or "whole" in case


@pytest.mark.parametrize("shape", [(8, 4), (1, 1)])
def test_biases(shape):
    args = [*(drawn(8, 4, 4, 8) for _ in "qkv"), drawn(*shape, 4, 4)]
    bias = P("b" if shape[0] > 1 else None, "n" if shape[1] > 1 else None)
    found, _ = compiled(slopes, args, [BOTH] * 3 + [bias])
    for x, y in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(slopes(*args)), strict=True):
        np.testing.assert_allclose(*(np.asarray(v, np.float32) for v in (x, y)), 0.05, 0.1)


def test_lengths_are_cut_with_the_batch():
    counts = jnp.arange(8, dtype="int32") % 4 + 1
    args = [*(drawn(8, 4, 4, 8) for _ in "qkv"), counts]

    def told(q, k, v, counts):
        return nn.dot_product_attention(
            q, k, v, key_value_seq_lengths=counts, implementation="cudnn"
        )

    found, text = compiled(told, args, [BOTH, BOTH, BOTH, BATCH])
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(told(*args), np.float32), 0.05, 0.05
    )
    assert "all-gather" not in text


def test_axes_that_a_region_leaves_to_the_compiler():
    args = [drawn(8, 4, 4, 8) for _ in "qkv"]
    mesh = phalanx.make_mesh((4, 2), ("b", "n"))

    def attend(q, k, v):
        return nn.dot_product_attention(q, k, v, implementation="cudnn") + lax.axis_index("b")

    region = phalanx.shard_map(
        attend, mesh=mesh, in_specs=(BATCH,) * 3, out_specs=BATCH, axis_names={"b"}
    )
    found, text = compiled(region, args, [BOTH] * 3)
    apart = [attend_alone(*args)[2 * i : 2 * i + 2] + i for i in range(4)]
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(jnp.concatenate(apart), np.float32), 0.05, 0.05
    )
    assert (2, 2, 4, 4) in operands(text, 4)


def attend_alone(q, k, v):
    return nn.dot_product_attention(q, k, v)
