"""What is compiled: every operation, every function of the library, programs over many devices."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, ops
from phalanx.api.stages import Traced
from phalanx.core.primitive import REGISTRY
from phalanx.errors import MissingRule
from phalanx.laws.primitives import Case
from phalanx.sharding import Mesh, NamedSharding
from phalanx.sharding import PartitionSpec as P
from tests.laws.arguments import calls

DEVICES = 8  # unless others are asked for


@dataclass(frozen=True)
class Subject:
    """Something that compiles.

    Attributes:
        kind: "operation", "function" or "program".
        name: which one.
        make: gives what ``jit`` or ``pmap`` gave, and operands.
    """

    kind: str
    name: str
    make: Callable[[], tuple[Any, list[Any]]]

    def trace(self) -> Traced | None:
        """Its program for the operands; None if it has none.

        A function of strings or files has none, nor one that needs the values of its operands; an
        operation may have no derivative. Other tests tell that from a fault.
        """
        f, operands = self.make()
        expected = {"operation": MissingRule, "function": (TypeError, ValueError, IndexError)}
        try:
            return f.trace(*operands)
        except expected.get(self.kind, ()):
            return None


def subjects(devices: int = DEVICES) -> Iterator[Subject]:
    """All of them; programs are over so many ``devices``."""
    for module in pkgutil.walk_packages(ops.__path__, "phalanx.ops."):
        importlib.import_module(module.name)
    for prim in REGISTRY.values():
        for i, example in enumerate(prim.examples):
            case = Case(prim, example)
            yield Subject("operation", f"{prim.name} {i}", lambda case=case: _compiled(case))
            if i == 0:
                name = f"{prim.name}, derivative"
                yield Subject("operation", name, lambda case=case: _derivative(case))
    for call in calls():
        if call.args is not None and str(call) not in _NO_PROGRAM:
            yield Subject("function", str(call), lambda call=call: _compiled(call))
    for name, make in programs(devices).items():
        yield Subject("program", name, make)


def _compiled(case: Any) -> tuple[Any, list[Any]]:
    return phalanx.jit(case), case.operands()


def _derivative(case: Case) -> tuple[Any, list[Any]]:
    """Cotangents of the operands that have some."""
    operands = case.operands()
    inexact = [i for i, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_inexact(every: list[Any], given: Sequence[Any]) -> list[Any]:
        for i, x in zip(inexact, given, strict=True):
            every[i] = x
        results = phalanx.tree.leaves(case(*every))
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.inexact)]

    def pulled(*operands: Any) -> Any:
        primals = [operands[i] for i in inexact]
        results, pull = phalanx.vjp(lambda *xs: of_inexact([*operands], xs), *primals)
        return pull([jnp.ones_like(r) for r in results])

    return phalanx.jit(pulled), operands


_NO_PROGRAM = ("experimental.checkify.check", "experimental.checkify.check_error")


# ---- over many devices ---------------------------------------------------------------------------

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


def _in_halves(x: Any) -> Any:
    each = lax.axis_size("i") // 2
    return lax.psum(x, "i", axis_index_groups=[[*range(each)], [*range(each, 2 * each)]])


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
                "psum in groups": _in_halves,
                "psum of integers": lambda x: lax.psum(x.astype(jnp.int32), "i"),
                "psum of bfloat16": lambda x: lax.psum(x.astype(jnp.bfloat16), "i"),
                "all_gather": lambda x: lax.all_gather(x, "i"),
                "all_gather, tiled": lambda x: lax.all_gather(x, "i", tiled=True),
                "psum_scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
                "all_to_all": lambda x: lax.all_to_all(x, "i", 1, 0),
                "ppermute": lambda x: _round(x, "i"),
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
    }  # fmt: skip
