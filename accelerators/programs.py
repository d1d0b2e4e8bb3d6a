"""Programs over many devices: collectives, lanes, blocks, what the compiler cuts, examples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.cli.demo import load_example
from phalanx.sharding import Mesh, NamedSharding
from phalanx.sharding import PartitionSpec as P

Made = Callable[[], tuple[Any, list[Any]]]
W = np.ones((64, 64), np.float32)


@dataclass(frozen=True)
class Over:
    """Programs over so many ``devices``."""

    devices: int

    def lanes(self, f: Callable[..., Any], lanes: int | None = None, **options: Any) -> Made:
        """``f`` of matrices in lanes, of which each device has one if nothing else is said."""
        n = self.devices
        x = np.ones((lanes or n, 2 * n, n), np.float32)
        return lambda: (phalanx.pmap(f, "i", **options), [x])

    def blocks(self, f: Callable[..., Any], *specs: P, out: P) -> Made:
        """``f`` of blocks of matrices."""

        def make() -> tuple[Any, list[Any]]:
            mapped = phalanx.shard_map(
                f, mesh=self._grid(), in_specs=specs, out_specs=out, check_vma=False
            )
            return phalanx.jit(mapped), [W] * len(specs)

        return make

    def cut(self, f: Callable[..., Any], *specs: P, out: P | None = None) -> Made:
        """``f`` of matrices that lie as ``specs`` say."""

        def make() -> tuple[Any, list[Any]]:
            mesh = self._grid()
            ins = tuple(NamedSharding(mesh, s) for s in specs)
            outs = None if out is None else NamedSharding(mesh, out)
            return phalanx.jit(f, in_shardings=ins, out_shardings=outs), [W] * len(specs)

        return make

    def _grid(self) -> Mesh:
        return phalanx.make_mesh((self.devices // 2, 2), ("a", "b"))


def _loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def _step(w: Any, x: Any) -> Any:
    loss, slope = phalanx.value_and_grad(_loss)(w, x)
    return w - 0.1 * lax.pmean(slope, "i"), lax.pmean(loss, "i")


def _train(x: Any) -> Any:
    return _step(jnp.ones((x.shape[-1], x.shape[-1])), x)


def _until_small(x: Any) -> Any:
    return lax.while_loop(lambda v: lax.pmax(jnp.abs(v).sum(), "i") > 1, lambda v: v / 2, x)


def _nested(x: Any) -> Any:
    return phalanx.pmap(lambda y: lax.psum(y, ("i", "j")), "j")(x)


def _noise(x: Any) -> Any:
    key = phalanx.random.fold_in(phalanx.random.key(0), lax.axis_index("i"))
    return x + phalanx.random.normal(key, x.shape)


def _said(x: Any) -> Any:
    phalanx.debug.print("{}", x.sum())
    return x


def _asked(x: Any) -> Any:
    """Calls that give something, and one that does not, between sums over the lanes."""
    like = phalanx.ShapeDtypeStruct(x.shape, x.dtype)
    y = phalanx.pure_callback(np.sin, like, lax.psum(x, "i"), vmap_method="sequential")
    phalanx.io_callback(lambda y: None, None, y)
    return lax.psum(phalanx.io_callback(np.cos, like, y), "i")


def _halves() -> list[list[int]]:
    each = lax.axis_size("i") // 2
    return [[*range(each)], [*range(each, 2 * each)]]


def _exchanged(x: Any) -> Any:
    """A row to every lane, and one from every lane."""
    n = lax.axis_size("i")
    rows, ones = jnp.arange(n), jnp.ones(n, int)
    here = jnp.full(n, lax.axis_index("i"))
    return lax.ragged_all_to_all(x, x, rows, ones, here, ones, axis_name="i")


def _round(x: Any, axis: str) -> Any:
    n = lax.axis_size(axis)
    return lax.ppermute(x, axis, [(j, (j + 1) % n) for j in range(n)])


def _asked_in_turn(x: Any) -> Any:
    """Calls in the order of the program, in a loop over what is cut."""
    like = phalanx.ShapeDtypeStruct(x.shape[1:], x.dtype)

    def step(total: Any, row: Any) -> Any:
        return total + phalanx.io_callback(np.sin, like, row, ordered=True), row.sum()

    return lax.scan(step, x[0], x)


def _attend(x: Any) -> Any:
    """Attention to itself, with batches along rows and heads along columns."""
    q = x.reshape(8, 8, 8, 8).astype(jnp.bfloat16)
    return phalanx.nn.dot_product_attention(q, q, q, implementation="cudnn").sum()


def programs(devices: int) -> dict[str, Made]:
    """Programs over so many ``devices``, by name."""
    over = Over(devices)
    lanes, cut, blocks = over.lanes, over.cut, over.blocks
    return {
        **{
            name: lanes(f)
            for name, f in {
                "psum": lambda x: lax.psum(x, "i"),
                "pmean": lambda x: lax.pmean(x, "i"),
                "pmax": lambda x: lax.pmax(x, "i"),
                "pmin": lambda x: lax.pmin(x, "i"),
                "psum in groups": lambda x: lax.psum(x, "i", axis_index_groups=_halves()),
                "psum of complex numbers": lambda x: lax.psum(x * 1j, "i"),
                "psum of integers": lambda x: lax.psum(x.astype(jnp.int32), "i"),
                "psum of bfloat16": lambda x: lax.psum(x.astype(jnp.bfloat16), "i"),
                "all_gather": lambda x: lax.all_gather(x, "i"),
                "all_gather, tiled": lambda x: lax.all_gather(x, "i", tiled=True),
                "all_gather in groups": lambda x: lax.all_gather(
                    x, "i", axis_index_groups=_halves()
                ),
                "all_gather of bools": lambda x: lax.all_gather(x > 0, "i"),
                "psum_scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
                "psum_scatter, tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
                "all_to_all": lambda x: lax.all_to_all(x, "i", 1, 0),
                "all_to_all, tiled": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
                "ragged_all_to_all": _exchanged,
                "pswapaxes": lambda x: lax.pswapaxes(x, "i", 1),
                "ppermute": lambda x: _round(x, "i"),
                "pshuffle": lambda x: lax.pshuffle(x, "i", range(lax.axis_size("i"))[::-1]),
                "pbroadcast": lambda x: lax.pbroadcast(x, "i", 1),
                "a sum in a branch": lambda x: lax.cond(
                    lax.psum(x.sum(), "i") > 0, lambda: lax.pmean(x, "i"), lambda: x
                ),
                "factors in every lane": lambda x: jnp.linalg.qr(lax.psum(x, "i"))[1],
                "axis_index": lambda x: x + lax.axis_index("i"),
                "no collective": jnp.sin,
                "a training step": _train,
                "second derivatives": lambda x: phalanx.grad(
                    lambda y: lax.psum(jnp.sin(y), "i").sum()
                )(x),
                "a loop until all lanes are done": _until_small,
                "a scan with a sum": lambda x: lax.scan(
                    lambda c, r: (c + lax.psum(r, "i"), c), x[0], x
                ),
                "nested pmaps": _nested,
                "randomness by lane": _noise,
                "debug.print": _said,
                "calls of Python": _asked,
                "a cumulative sum over lanes": lambda x: lax.associative_scan(
                    jnp.add, lax.all_gather(x, "i")
                ),
            }.items()
        },
        "19 lanes": lanes(lambda x: lax.psum(x, "i"), 19),
        "19 lanes that call Python": lanes(_asked, 19),
        "ordered calls of Python over what is cut": cut(_asked_in_turn, P("a", "b")),
        "11 lanes, gathered": lanes(lambda x: lax.all_gather(x, "i"), 11),
        "5 lanes without a collective": lanes(jnp.sin, 5),
        "16 lanes that train": lanes(_train, 16),
        "3 lanes": lanes(lambda x: lax.pmean(x, "i"), 3),
        "lanes one at a time": lanes(_train, 16, lanes_at_once=1),
        "a product, rows by columns": cut(jnp.matmul, P("a", None), P(None, "b"), out=P("a", "b")),
        "a product, contracted": cut(jnp.matmul, P(None, "a"), P("a", None), out=P()),
        "a product, fully cut": cut(jnp.matmul, P("a", "b"), P("a", "b")),
        "sorted along what is cut": cut(jnp.sort, P(None, "a")),
        "a gradient, cut": cut(phalanx.grad(_loss), P("a", "b"), P("a", None), out=P("a", "b")),
        "attention and its gradient, cut": cut(phalanx.value_and_grad(_attend), P("a", "b")),
        "softmax along what is cut": cut(phalanx.nn.softmax, P("a", "b")),
        "blocks and their sum": blocks(lambda x: lax.psum(x, ("a", "b")), P("a", "b"), out=P()),
        "blocks around a ring": blocks(
            lambda x, y: x + _round(y, "a"), P("a", None), P("a", None), out=P("a")
        ),
        "blocks, scattered": blocks(
            lambda x: lax.psum_scatter(x, "b", tiled=True), P("a", None), out=P(("a", "b"))
        ),
        **_examples(devices),
    }  # fmt: skip


def _examples(devices: int) -> dict[str, Made]:
    """Steps of the examples, over meshes of all devices."""
    n, inner = devices, math.gcd(devices, 4)
    model = {
        f"a transformer, {way}": lambda way=way: _transformer(n, way)
        for way in ("pmap over a mesh", "shard_map", "jit over a mesh")
    }
    return {
        "parameters that are fully cut": lambda: _fully_cut(n),
        "a pipeline and its gradient": lambda: _pipeline(n // inner, inner),
        "a product around a ring": lambda: _ring(n),
        **({"experts and their gradient": lambda: _experts(n // 8)} if n % 8 == 0 else {}),
        **model,
    }


def _fully_cut(n: int) -> tuple[Any, list[Any]]:
    fsdp = load_example("fsdp")
    state, rows = fsdp.init(), np.ones((2 * n, fsdp.WIDTH), np.float32)
    return fsdp.sharded_step(phalanx.make_mesh((n,), ("data",)), state), [state, rows, rows]


def _pipeline(data: int, stages: int) -> tuple[Any, list[Any]]:
    pipeline = load_example("pipeline")
    weights, _ = pipeline.operands()
    parts = np.ones((pipeline.PARTS, 2 * data, pipeline.WIDTH), np.float32)
    over = pipeline.over(phalanx.make_mesh((data, stages), ("data", "stage")))
    return phalanx.jit(phalanx.value_and_grad(pipeline.loss_of(over))), [weights, parts]


def _ring(n: int) -> tuple[Any, list[Any]]:
    ring = load_example("ring_matmul")
    return ring.over(phalanx.make_mesh((n,), ("ring",)), ring.passed_on), [
        np.ones((2 * n, 16), np.float32), np.ones((16, 2 * n), np.float32)
    ]  # fmt: skip


def _experts(copies: int) -> tuple[Any, list[Any]]:
    experts = load_example("experts")
    layer = experts.over(phalanx.make_mesh((copies, 8), ("copy", "expert")))
    return phalanx.jit(phalanx.value_and_grad(experts.loss_of(layer))), [*experts.operands()]


def _transformer(n: int, way: str) -> tuple[Any, list[Any]]:
    """Its step, with heads over a part of the devices."""
    example = load_example("transformer")
    mesh = phalanx.make_mesh((n // math.gcd(n, 4), math.gcd(n, 4)), ("data", "model"))
    make = {
        "pmap over a mesh": example.by_pmap_over_a_mesh,
        "shard_map": example.by_shard_map,
        "jit over a mesh": example.by_the_compiler,
    }[way]
    step, params, placed = make(example.init(), mesh)
    tokens = np.zeros((2 * n, example.LENGTH), np.int32)
    return step, [params, placed(tokens), placed(tokens)]
