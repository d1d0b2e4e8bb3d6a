"""Derivatives at a point: linear functions of tangents and cotangents, which are trees."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.arguments import LeafNames, check_leaf, check_same_tree
from phalanx.api.differentiable import result_as_array
from phalanx.base import dtypes, registry, tree
from phalanx.base.boundary import hiding
from phalanx.base.errors import ArgumentError
from phalanx.base.source import name_of, user_location
from phalanx.core.primitive import ZERO, Linear
from phalanx.core.refs import Ref
from phalanx.core.types import SCALARS, ArrayType, typeof
from phalanx.numpy.refs import addupdate
from phalanx.primitives.basis import convert, instantiate, zeros
from phalanx.run.array import DeviceArray
from phalanx.run.constrain import constrain
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.linearize import LinearMap
from phalanx.transforms.stage import is_value
from phalanx.transforms.transpose import backward


def zero_tangent(type: ArrayType) -> Any:
    """The tangent of what does not depend on anything, for values of ``type``."""
    if dtypes.is_inexact(type.dtype):
        return zeros(type)
    return np.zeros(type.shape, dtypes.float0)


def tangent_in(t: Any, kind: ArrayType, names: LeafNames, i: int, who: str) -> Any:
    """A tangent given by the user: checked, and ``ZERO`` where there is no derivative."""
    if not dtypes.is_inexact(kind.dtype):
        if getattr(t, "dtype", None) != dtypes.float0 or t.shape != kind.shape:
            raise TypeError(
                f"{who}: {names[i]} is {kind}, which has no derivative; its tangent must be an "
                f"array of dtype float0 and shape {kind.shape}, got {t!r}, at {user_location()}"
            )
        return ZERO
    if not is_value(t):
        check_leaf(t, f"the tangent of {names[i]}", who)
    return _like(t, kind, f"{who}: the tangent of {names[i]}", "primal")


def _checked_cotangent(ct: Any, type: ArrayType, name: str, who: str) -> Any:
    """A cotangent given by the user: checked, and ``ZERO`` where there is no derivative."""
    check_leaf(ct, f"the cotangent of {name}", who)
    if not dtypes.is_inexact(type.dtype):  # what such a cotangent says is of no effect
        if typeof(ct).shape != type.shape:
            raise ArgumentError(
                f"{who}: {name} is {type}, which has no derivative; its cotangent must be "
                f"an array of dtype float0 and shape {type.shape}, got {typeof(ct)}, at "
                f"{user_location()}; numpy.zeros({type.shape}, phalanx.float0) is one"
            )
        return ZERO
    return _like(ct, type, f"{who}: the cotangent of {name}", "result")


def _like(x: Any, type: ArrayType, what: str, other: str) -> Any:
    """A tangent or cotangent of something of ``type``; integers are none, but Python's may be."""
    actual = typeof(x)
    adapts = actual.weak and (dtypes.is_inexact(actual.dtype) or isinstance(x, SCALARS))
    if actual.shape != type.shape or not (actual.dtype == type.dtype or adapts):
        raise ArgumentError(f"{what} must be {type} like the {other}, got {actual}")
    return instantiate_scalar(x, type)


def instantiate_scalar(x: Any, type: ArrayType) -> Any:
    """A Python or NumPy number as a constant of the dtype of ``type``; arrays as they are."""
    return dtypes.scalar(x, type.dtype) if isinstance(x, (int, float, complex)) else x


@dataclass(eq=False, repr=False)
class AtPoint:
    """The derivative of a function at a point, of the structures of its arguments and results."""

    linear: LinearMap
    in_tree: Any
    in_types: tuple[ArrayType, ...]
    out_tree: Any
    out_types: tuple[ArrayType, ...]


class GradValue(Struct, frozen=True):
    """Passed to ``with_refs``: the cotangent is to be returned."""


@registry.register_static
class GradRef(Struct, frozen=True):
    """In what ``with_refs`` gives: the cotangent was added to the reference."""


class DontWant(Struct, frozen=True):
    """Passed to ``with_refs``: the cotangent is not wanted."""


@registry.register_static
class DidntWant(Struct, frozen=True):
    """In what ``with_refs`` gives: the cotangent was not wanted."""


@dataclass(eq=False, repr=False)
class Pullback(AtPoint):
    """The function from cotangents of results to cotangents of arguments: a tree of residuals."""

    shardings: tuple[Sharding | None, ...]

    @hiding
    def __call__(self, *cts: Any) -> Any:
        if len(cts) != 1:
            raise TypeError(f"vjp: the pullback takes one tree of cotangents, got {len(cts)}")
        leaves, treedef = tree.flatten(cts[0])
        check_same_tree(treedef, self.out_tree, "vjp", "the cotangents, like the results,")
        dense = [
            _checked_cotangent(ct, t, f"result {i}", "vjp")
            for i, (ct, t) in enumerate(zip(leaves, self.out_types, strict=True))
        ]
        with dtypes.enabled(*[t.dtype for t in self.in_types]):
            cotangents = pull(self.linear, dense, self.in_types, self.shardings)
        args, _ = self.in_tree.unflatten(cotangents)
        return args

    @hiding
    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """The function of cotangents that adds those of arguments to references.

        Args:
            maybe_ct_refs: structured as the arguments: a reference to an array like the argument,
                ``DontWant()``, or anything else for what is to be returned.

        Returns:
            A function of cotangents of the results, which returns those of the arguments,
            ``GradRef()`` where there is a reference, ``DidntWant()`` where it is not wanted.

        Raises:
            TreeError: the structure is another.
            ArgumentError: a reference has another shape or dtype than its argument.

        >>> import phalanx
        >>> _, pullback = phalanx.vjp(jnp.sin, 0.0)
        >>> slope = phalanx.new_ref(10.0)
        >>> pullback.with_refs(slope)(1.0), slope
        ((GradRef(),), Ref(11., dtype=float32))
        """
        refs, treedef = tree.flatten((maybe_ct_refs, {}))
        check_same_tree(treedef, self.in_tree, "vjp.with_refs", "references, like the arguments,")
        for i, (ref, kind) in enumerate(zip(refs, self.in_types, strict=True)):
            if isinstance(ref, Ref) and (ref.shape, ref.dtype) != (kind.shape, kind.dtype):
                raise ArgumentError(
                    f"vjp.with_refs: leaf {i} of the arguments is {kind}, and its reference "
                    f"{ref.dtype}{[*ref.shape]}, at {user_location()}; "
                    "phalanx.new_ref(phalanx.numpy.zeros_like(x)) makes one for the argument x"
                )

        def added(ct: Any) -> Any:
            outputs: list[Any] = []
            for ref, cotangent in zip(refs, tree.leaves(self(ct)), strict=True):
                held = isinstance(ref, Ref)
                if held and dtypes.is_inexact(ref.dtype):
                    addupdate(ref, ..., cotangent)
                returned = DidntWant() if isinstance(ref, DontWant) else cotangent
                outputs.append(GradRef() if held else returned)
            args, _ = self.in_tree.unflatten(outputs)
            return args

        return added

    def __repr__(self) -> str:
        return f"<pullback of {len(self.in_types)} arguments>"


@dataclass(eq=False, repr=False)
class Pushforward(AtPoint):
    """The function from tangents of arguments to tangents of results: a tree of residuals."""

    fun: Callable[..., Any]

    @hiding
    def __call__(self, *tangents: Any) -> Any:
        who = f"linearize({name_of(self.fun)})"
        leaves, treedef = tree.flatten((tangents, {}))
        check_same_tree(treedef, self.in_tree, who, "the tangents, like the arguments,")
        names = LeafNames(self.fun, tangents, {}, range(len(tangents)))
        checked = [
            tangent_in(t, kind, names, i, who)
            for i, (t, kind) in enumerate(zip(leaves, self.in_types, strict=True))
        ]
        with dtypes.enabled(*[t.dtype for t in self.in_types]):
            dense = [
                instantiate(t, kind)
                for t, kind in zip(checked, self.in_types, strict=True)
                if dtypes.is_inexact(kind.dtype)
            ]
            results = zip(self.linear(dense), self.out_types, strict=True)
            return self.out_tree.unflatten([weak_as(t, kind) for t, kind in results])

    def __repr__(self) -> str:
        return f"<derivative of {name_of(self.fun)} in {len(self.in_types)} arguments>"


def _children(f: AtPoint) -> tuple[Any, ...]:
    rest = {name: value for name, value in vars(f).items() if name != "linear"}
    return (list(f.linear.residuals),), (f.linear.program, f.linear.nonzero, *rest.values())


def _from_children(kind: type, meta: tuple[Any, ...], children: Any) -> Any:
    program, nonzero, *rest = meta
    return kind(LinearMap(program, children[0], nonzero), *rest)


for _kind in Pullback, Pushforward:
    registry.register_pytree_node(_kind, _children, functools.partial(_from_children, _kind))


def weak_as(t: Any, type: ArrayType) -> Any:
    """A tangent or cotangent as weak as the values of ``type`` that it belongs to."""
    if t is ZERO:
        return zero_tangent(type)
    t = result_as_array(t)
    kind = typeof(t)
    return t if kind.weak == type.weak else convert(t, dtype=kind.dtype, weak=type.weak)


def cotangent_sharding(x: Any) -> Sharding | None:
    """Where the cotangent of ``x`` is to lie, if that is over a mesh of Explicit axes.

    Types do not tell which mesh that is, nor that what is whole lies over one.
    """
    sharding = x.sharding if type(x) is DeviceArray else None
    is_explicit = (
        isinstance(sharding, NamedSharding)
        and sharding.mesh.explicit_axes
        and not sharding.spec.has_sums
    )
    return sharding if is_explicit else None


def pull(
    linear: LinearMap,
    cts: Sequence[Any],
    types: Sequence[ArrayType],
    shardings: Sequence[Sharding | None],
) -> list[Any]:
    """The cotangents of all arguments: zeros where nothing depends on them."""
    variables = linear.program.inputs[len(linear.residuals) :]
    operands = [*linear.residuals, *(Linear(v.type) for v in variables)]
    nonzero = [ct for ct, n in zip(cts, linear.nonzero, strict=True) if n]
    pulled = iter(backward(linear.program, operands, nonzero))
    out: list[Any] = []
    for t, sharding in zip(types, shardings, strict=True):
        ct = weak_as(next(pulled) if dtypes.is_inexact(t.dtype) else ZERO, t.cotangent)
        is_there = sharding is None or type(ct) is not DeviceArray
        out.append(ct if is_there else constrain(ct, sharding=sharding))
    return out
