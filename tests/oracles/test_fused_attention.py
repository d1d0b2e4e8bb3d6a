"""Attention by fused kernels: what it computes, and the calls of cuDNN that the peer writes."""

import json
import re

import jax
import numpy as np
import pytest
from jax._src.cudnn import fused_attention_stablehlo as of_peer

import phalanx
import phalanx.numpy as jnp
from phalanx import nn
from phalanx.errors import MissingRule, ShapeError

SOURCE = np.random.default_rng(0)
Q, CT = (jnp.asarray(SOURCE.normal(size=(2, 4, 4, 8)), "bfloat16") for _ in "qc")
K, V = (jnp.asarray(SOURCE.normal(size=(2, 6, 2, 8)), "bfloat16") for _ in "kv")
BIAS = jnp.asarray(SOURCE.normal(size=(1, 4, 4, 6)), "bfloat16")
MASK = SOURCE.random((2, 1, 4, 6)) > 0.3
MASK[..., 0] = True
CASES = {
    "plain": {},
    "scale": {"scale": 0.25},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (2, 0)},
    "causal window": {"local_window_size": 1, "is_causal": True},
    "bias": {"bias": BIAS},
    "mask": {"mask": MASK},
    "both": {"bias": BIAS[:, :1], "mask": MASK, "is_causal": True},
    "keys": {"key_value_seq_lengths": np.array([2, 5], np.int32)},
    "queries": {"query_seq_lengths": np.array([1, 4], np.int32), "is_causal": True},
}


def fused(*args, **options):
    return nn.dot_product_attention(*args, implementation="cudnn", **options)


def like_wide(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x, np.float32), y, rtol=0.05, atol=0.05)


def wide(x):
    return x.astype("float32") if isinstance(x, phalanx.Array) else x


@pytest.mark.parametrize("case", CASES)
def test_it_is_attention_with_its_derivatives(case):
    options = CASES[case]
    args = [Q, K, V, *([options["bias"]] if "bias" in options else [])]
    rest = {n: x for n, x in options.items() if n != "bias"}
    out, pull = phalanx.vjp(lambda *xs: fused(*xs, **rest), *args)
    wanted, pull_wide = phalanx.vjp(
        lambda *xs: nn.dot_product_attention(*xs, **rest), *map(wide, args)
    )
    like_wide([out, *pull(CT)], [wanted, *pull_wide(wide(CT))])
    _, moved = phalanx.jvp(lambda *xs: fused(*xs, **rest), args, args)
    _, moved_wide = phalanx.jvp(
        lambda *xs: nn.dot_product_attention(*xs, **rest), [*map(wide, args)], [*map(wide, args)]
    )
    like_wide([moved], [moved_wide])


def test_lanes_and_arrays_without_a_batch():
    one = fused(Q[0], K[0], V[0], BIAS)
    each = phalanx.vmap(lambda q, k, v: fused(q, k, v, BIAS[0]))(Q, K, V)
    like_wide([one, *each], [wide(fused(Q, K, V, BIAS))[i] for i in (0, 0, 1)])
    slopes = phalanx.vmap(phalanx.grad(lambda b, q: fused(q, K[0], V[0], b).sum()), (None, 0))
    whole = phalanx.grad(lambda b: fused(Q, K[:1].repeat(2, 0), V[:1].repeat(2, 0), b).sum())
    like_wide([slopes(BIAS, Q).sum(0)], [wide(whole(BIAS))])


def test_the_sums_differentiate_too():
    def total(attend, *xs):
        out, sums = attend(*xs, return_residual=True)
        return out.sum() + (sums * sums).sum()

    found = phalanx.grad(lambda *xs: total(fused, *xs), (0, 1))(Q, K, V)
    by_products = phalanx.grad(lambda *xs: total(nn.dot_product_attention, *xs), (0, 1))
    like_wide(found, by_products(*map(wide, (Q, K, V))))


def test_what_has_no_kernel_is_refused():
    with pytest.raises(ValueError, match=r"float16 and bfloat16.*query f32\[2,4,4,8\].*'xla'"):
        fused(wide(Q), wide(K), wide(V))
    with pytest.raises(ValueError, match="multiple of 8"):
        fused(Q[..., :4], K[..., :4], V[..., :4])
    with pytest.raises(ValueError, match=r"local_window_size=\(1, 1\)"):
        fused(Q, K, V, local_window_size=1)
    with pytest.raises(ShapeError, match="even numbers of queries and keys"):
        phalanx.grad(lambda b: fused(Q, K[:, :5], V[:, :5], b).sum())(BIAS[..., :5])
    with pytest.raises(MissingRule, match="first derivative alone"):
        phalanx.grad(lambda q: phalanx.grad(lambda q: fused(q, K, V).sum())(q).sum())(Q)


# ---- the calls ----------------------------------------------------------------------------------


def calls(text):
    """Of each call its name, its types and layouts, and what it is told."""
    found = []
    for name, attributes, types in re.findall(
        r"custom_call @(__cudnn\S+)\(.*?\) \{(.*)\} : (.*?)(?: loc\(.*)?$", text, re.MULTILINE
    ):
        (config,) = re.findall(r'backend_config = "((?:[^"\\]|\\.)*)"', attributes)
        layouts = re.findall(r"dense<.*?>", attributes)
        told = json.loads(config.replace("\\22", '"'))["cudnn_fmha_backend_config"]
        found.append((name, types.replace("ui8", "i8"), layouts, flat(told)))
    return found


def flat(told, path=""):
    """Leaves by their paths, numbers as they are in words; without what says nothing."""
    if isinstance(told, dict):
        return {k: v for n, x in told.items() for k, v in flat(x, f"{path}.{n}").items()}
    if isinstance(told, list):
        told = [str(x) for x in told]
    empty = told in ([], ["False"] * 4, 0, "0", False, "PRIMITIVE_TYPE_INVALID")
    return {} if empty else {path: told if isinstance(told, list) else str(told)}


@pytest.mark.parametrize("case", ["plain", "scale", "causal", "causal window", "bias", "keys"])
def test_calls_are_those_of_the_peer(case, monkeypatch):
    monkeypatch.setattr(of_peer, "check_cudnn_version", lambda: 91300)
    monkeypatch.setattr(of_peer, "check_compute_capability", lambda _: True)
    options = {n: x for n, x in CASES[case].items() if n != "bias"}
    args = [Q, K, V, *([BIAS.repeat(2, 0)] if case == "bias" else [])]

    def slopes(grad, attend):
        def loss(*xs):
            return attend(*xs, implementation="cudnn", **options).sum()

        return grad(loss, argnums=range(len(args)))

    ours = phalanx.jit(slopes(phalanx.grad, nn.dot_product_attention)).trace(*args)
    theirs = jax.jit(slopes(jax.grad, jax.nn.dot_product_attention)).trace(
        *[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    )
    ours = calls(ours.lower(lowering_platforms=("cuda",)).as_text())
    theirs = calls(theirs.lower(lowering_platforms=("cuda",)).as_text())
    assert len(ours) == len(theirs) == 2
    for (*own, told), (*other, theirs_told) in zip(ours, theirs, strict=True):
        assert own == other
        knobs = {n for n in theirs_told if ".tuning_knobs" in n}
        assert told == {n: x for n, x in theirs_told.items() if n not in knobs | {".seed"}}
