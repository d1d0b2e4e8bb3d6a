"""Looking at programs, and the small switches: shapes, names, eager execution."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Literal, overload

from phalanx.api import aot
from phalanx.api.arguments import (
    Flat,
    LeafNames,
    check_callable,
    dynamic_positions,
    split_static,
    static_positions,
    wrap,
)
from phalanx.api.transformed import P, R
from phalanx.base import tree
from phalanx.base.boundary import hiding
from phalanx.base.source import name_of, naming
from phalanx.core import axes
from phalanx.core.program import Atom, Program
from phalanx.core.refs import Ref, refuse_aliases
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import zeros
from phalanx.spmd.constraint import open_dims
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import loaded, stage_with_refs


@overload
def make_program(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[P, Program]: ...
@overload
def make_program(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Callable[P, tuple[Program, Any]]: ...
@overload
def make_program(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[P, Any]: ...
def make_program(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that gives the traced program of ``fun``, to print and to inspect.

    Args:
        fun: a function of trees of arrays.
        static_argnums: positions of arguments that are Python values.
        axis_env: named axes that are in scope, as ``(name, size)``.
        return_shape: whether to return the shapes of the results besides.

    Returns:
        A function with the parameters of ``fun``, which returns a program; with ``return_shape`` a
        pair of it and the shapes and dtypes of the results, as a tree.

    >>> import phalanx
    >>> print(phalanx.make_program(lambda x: 2.0 * x + 1.0)(3.0))
    <lambda>(a: f32[]~) {
      b: f32[]~ = mul 2.0 a
      c: f32[]~ = add b 1.0
      return c
    }
    """
    check_callable(fun, "make_program")

    def make(*args: Any, **kwargs: Any) -> Any:
        program, _, results = traced_program(fun, args, kwargs, static_argnums, axis_env)
        shapes = map(aot.struct, program.output_types)
        return (program, results(shapes)) if return_shape else program

    return wrap(make, fun)


def traced_program(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    who: str = "make_program",
) -> tuple[Program, list[Any], Callable[[Iterable[Any]], Any]]:
    """The program of a call, what it captured, and a function that puts its results together.

    What was captured are traced values, and what references hold. The function makes, of what there
    is for each output of the program, the tree of what there is for the results of ``fun``.
    """
    who = f"{who}({name_of(fun)})"
    nums, _ = static_positions(fun, static_argnums, None, who)
    static, rest, named = split_static(args, kwargs, nums, frozenset(), who)
    leaves, treedef = tree.flatten((rest, named))
    names = LeafNames(fun, rest, named, dynamic_positions(len(rest), static))
    types = [aot.abstract(x, names, i, who) for i, x in enumerate(leaves)]
    refs = [i for i, x in enumerate(leaves) if type(x) is Ref]
    flat = Flat(fun, treedef, static, who, refs)
    with axes.only((*axes.scope(), *(axis_env or ()))):
        program, captured, written = stage_with_refs(flat, types, name_of(fun), names.all())
    refuse_aliases(leaves, captured, who)

    def results(outputs: Iterable[Any]) -> Any:
        return flat.out_tree.unflatten([*outputs][len(written) :][: flat.out_tree.num_leaves])

    return program, loaded(captured), results


def eval_shape(fun: Callable[P, Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of ``fun(*args)``, without computing anything.

    Args:
        fun: a function of trees of arrays.
        *args: arrays, numbers, or ``ShapeDtypeStruct``.
        **kwargs: arrays, numbers, or ``ShapeDtypeStruct``, passed by name.

    Returns:
        The tree that ``fun`` returns, with ``ShapeDtypeStruct`` as leaves, which ``fun`` may return
        itself. They have the shardings that are requested, as by ``out_shardings``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.eval_shape(jnp.sum, phalanx.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    """
    check_callable(fun, "eval_shape")

    def filled(*args: Any, **kwargs: Any) -> Any:
        return tree.map(_zeros_for, fun(*args, **kwargs))

    program, _, results = traced_program(wrap(filled, fun), args, kwargs, who="eval_shape")
    requested: dict[Atom, Sharding | None] = {
        e.outputs[0]: e.prim.on_devices.requested_sharding(**e.params)
        for e in program.equations
        if e.prim.on_devices.requested_sharding is not None
    }
    shardings = [None if a.type.spec is not None else requested.get(a) for a in program.outputs]
    closed = [None if s is None or open_dims(s) else s for s in shardings]
    return results(map(aot.struct, program.output_types, closed))


def _zeros_for(x: Any) -> Any:
    """An array in place of a ``ShapeDtypeStruct``; anything else as it is."""
    if not isinstance(x, aot.ShapeDtypeStruct):
        return x
    return zeros(ArrayType(x.shape, x.dtype, x.weak_type))


@contextmanager
def named_scope(name: str) -> Generator[None]:
    """Give a name to what is computed inside a block: compiled code and profiles show it.

    Args:
        name: the name.

    Returns:
        A context manager, to be used in a ``with`` statement.

    Raises:
        TypeError: the name is not a string.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def f(x):
    ...     with phalanx.named_scope("attention"):
    ...         return jnp.sin(x)
    >>> "attention" in phalanx.jit(f).lower(1.0).as_text(debug_info=True)
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: the name must be a string, got {name!r}")
    with naming(name):
        yield


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """``fun``, with what it computes in a scope called ``name``, by default its own name.

    Args:
        fun: a function of trees of arrays.
        name: the name; default that of the function.

    Returns:
        A function with the parameters and results of ``fun``.

    >>> import phalanx
    >>> double = phalanx.named_call(lambda x: 2 * x, name="double")
    >>> float(double(3.0))
    6.0
    """
    check_callable(fun, "named_call")

    @hiding
    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name or name_of(fun)):
            return fun(*args, **kwargs)

    return named
