"""``python -m tests.texts FOLDER``: programs, and what they are lowered to, one file for each.

What changes how the engine is built, and not what it does, leaves all of them as they were:
``diff -r before after``. Nothing is compiled.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.sharding import AxisType, NamedSharding
from tests.laws.test_slopes_in_shard_map import BACKWARD_ONLY, BODIES, INSIDE

LANES = np.ones((13, 3), "f")
BLOCKS = [np.ones(n, "f") for n in (12, 12, 3)]
SPECS = P(("x", "y")), P("x"), P()
OVER_THE_MESH = {"mean", "gathered", "shifted", *(name for name in BODIES if "meeting" in name)}


def texts() -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of each program, and what makes its text."""
    for name, body in BODIES.items():
        for kind in (AxisType.Auto, AxisType.Explicit):
            yield f"{name}, blocks, {kind.name}", of(*in_blocks(body, kind))
        if name in OVER_THE_MESH:
            continue
        for inside, how in INSIDE.items():
            yield f"{name}, {inside or 'alone'}, slope, jit", of(slope(how(body)), [LANES[0]] * 3)
        if name not in BACKWARD_ONLY:
            yield f"{name}, tangent, jit", of(tangent(body), [LANES[0]] * 3)
        yield f"{name}, lanes, pmap", of(phalanx.pmap(body, in_axes=(0, None, 0)), lanes())
        yield (
            f"{name}, slope of lanes",
            of(slope(phalanx.pmap(body, in_axes=(0, None, 0))), lanes()),
        )
    for kind in (AxisType.Auto, AxisType.Explicit):
        for name, (f, *xs) in placed(kind).items():
            yield f"{name}, {kind.name}", of(f, xs)


def lanes() -> list[Any]:
    return [LANES, LANES[0], LANES]


def of(f: Any, xs: list[Any]) -> Callable[[], str]:
    def text() -> str:
        traced = (f if hasattr(f, "trace") else phalanx.jit(f)).trace(*xs)
        return f"{traced.jaxpr}\n\n{traced.lower().as_text()}"

    return text


def leaves(f: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *xs: phalanx.tree.leaves(f(*xs))


def slope(f: Callable[..., Any]) -> Callable[..., Any]:
    return phalanx.grad(lambda *xs: sum(y.sum() for y in leaves(f)(*xs)), (0, 1, 2))


def tangent(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: phalanx.jvp(leaves(f), xs, xs)


def in_blocks(f: Callable[..., Any], kind: AxisType) -> tuple[Any, list[Any]]:
    mesh = phalanx.make_mesh((2, 2), ("x", "y"), (kind, kind))

    def of_block(*xs: Any) -> list[Any]:
        return [jnp.reshape(y, (1, -1)) for y in leaves(f)(xs[0], xs[1][:3], xs[2])]

    mapped = phalanx.shard_map(of_block, mesh=mesh, in_specs=SPECS, out_specs=P(("x", "y")))
    given = zip(BLOCKS, SPECS, strict=True)
    return slope(mapped), [phalanx.device_put(x, NamedSharding(mesh, s)) for x, s in given]


def placed(kind: AxisType) -> dict[str, tuple[Any, ...]]:
    """Functions of arrays that lie over a mesh."""
    mesh = phalanx.make_mesh((2, 2), ("x", "y"), (kind, kind))

    def lying(*axes: str | None) -> Any:
        return phalanx.device_put(np.ones((8, 8), "f"), NamedSharding(mesh, P(*axes)))

    def laid(x: Any) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "y")))

    def written(x: Any) -> Any:
        ref = phalanx.new_ref(x)
        ref[:, 0] = jnp.sin(x[:, 0])
        return ref[...]

    def drawn(x: Any) -> Any:
        return x + phalanx.random.normal(phalanx.random.key(0), x.shape)

    def stepped(w: Any, x: Any) -> Any:
        return w - 0.1 * phalanx.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

    return {
        "product": (lambda x, y: x @ y, lying("x"), lying(None, "y")),
        "row of sums": (lambda x: x.sum(0), lying(None, "y")),
        "reference": (written, lying("x")),
        "draws": (drawn, lying("x")),
        "step": (stepped, lying(), lying("x")),
        "step, donated": (phalanx.jit(stepped, donate_argnums=0), lying(), lying("x")),
        "results asked for": (
            phalanx.jit(stepped, out_shardings=NamedSharding(mesh, P("y"))), lying(), lying("x"),
        ),
        "loop": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), lying(None, "x")),
        "choice": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), lying("x", "y")),
        "recomputed": (slope_of(phalanx.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), lying("x")),
        "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (2, 1), "VALID"),
                    lying(None, "x")),
    } | ({} if kind == AxisType.Explicit else {
        "laid": (lambda x: laid(jnp.sin(x)) * 2, lying("x")),
        "indexed": (lambda x: x[jnp.array([0, 3, 3])], lying("x")),
    })  # fmt: skip


def slope_of(f: Callable[..., Any]) -> Callable[..., Any]:
    return phalanx.grad(lambda x: f(x).sum())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.texts")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True)
    count = 0
    for name, text in texts():
        (folder / f"{name.replace(', ', '-').replace(' ', '_')}.txt").write_text(text(), "utf-8")
        count += 1
    print(f"{count} programs in {folder}")


if __name__ == "__main__":
    main()
