"""``jax.experimental.hijax``: types and operations of another library's own.

A value of such a type is a node of a tree here: its children are the arrays of which its type says
that it is made. So every transformation takes it apart and puts it together, and what a function
sees is an instance of the library's class, which holds traced values. An operation is what it
expands to, with the rules for derivatives that its class has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, NoReturn

import numpy as np

from phalanx.api import aot
from phalanx.api.custom_jvp import custom_jvp
from phalanx.api.custom_vjp import custom_vjp
from phalanx.base import registry, tree
from phalanx.base.kinds import class_of
from phalanx.base.source import user_location
from phalanx.compat.avals import AbstractValue, ShapedArray
from phalanx.compat.zeros import ZeroTangent, instantiate_zeros
from phalanx.core.refs import AbstractRef, Ref
from phalanx.core.trace import Trace, Tracer, current, owner_of
from phalanx.core.types import Array, ArrayType
from phalanx.numpy.refs import RefView
from phalanx.primitives.elementwise import add
from phalanx.transforms.compile_time_eval import CompileTimeEvalTrace

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "GradAccum",
    "HiPrim",
    "HiType",
    "ShapedArray",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "aval_method",
    "aval_property",
    "instantiate_zeros",
    "register_hitype",
]
TransformedRef = RefView
Zero = ZeroTangent

# ---- types ----------------------------------------------------------------------------------

TYPES: dict[type, Callable[[Any], HiType]] = {}  # class of values -> what tells the type of one


class HiType:
    """A type of another library's: what its values are made of."""

    def lo_ty(self) -> list[Any]:
        """The types of the arrays of which a value is made."""
        _needs(self, "lo_ty")

    def lower_val(self, value: Any, /) -> list[Any]:
        """The arrays of which ``value`` is made."""
        _needs(self, "lower_val")

    def raise_val(self, *arrays: Any) -> Any:
        """The value that is made of ``arrays``."""
        _needs(self, "raise_val")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        _needs(self, "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """The type of cotangents."""
        return self.to_tangent_aval()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
    """Let values of ``val_cls`` have the type that ``typeof_fn`` tells of one."""
    if val_cls not in TYPES:
        registry.register_pytree_node(val_cls, _flattened, _put_together)
    TYPES[val_cls] = typeof_fn


def _flattened(value: Any) -> tuple[list[Any], HiType]:
    token = _IN_TREE.set(True)
    try:
        kind = typeof(value)
    finally:
        _IN_TREE.reset(token)
    return kind.lower_val(value), kind


def _put_together(kind: HiType, arrays: Sequence[Any]) -> Any:
    return kind.raise_val(*arrays)


def typeof(x: Any) -> Any:
    """The type of an array, a reference, or a value of a type of another library's."""
    rule = TYPES.get(class_of(x))
    if rule is not None:
        return rule(x)
    if not _IN_TREE.get():
        return aot.typeof(x)
    return _Leaf(aot.typeof(x) if isinstance(x, (Array, np.ndarray, np.generic, Ref)) else None)


_IN_TREE: ContextVar[bool] = ContextVar("_IN_TREE", default=False)  # a value is taken apart


class _Leaf:
    """The type of an array as a part of the structure of a tree, where all arrays are alike.

    Other things may stand for arrays in trees, such as numbers of axes.
    """

    def __init__(self, kind: ArrayType | AbstractRef | None) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._kind, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Leaf)

    def __hash__(self) -> int:
        return 0

    def to_tangent_aval(self) -> _Leaf:
        return self


def _needs(kind: Any, method: str) -> NoReturn:
    raise NotImplementedError(f"{type(kind).__qualname__} must have a method {method}")


class aval_method:
    """A method of a type. Here values are instances of their own class, whose methods they have."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """An attribute of a type. Here values are instances of their own class."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


# types of arrays and references are made of themselves
for _kind in (ArrayType, AbstractRef, _Leaf):
    _kind.lo_ty = lambda self: [self]  # type: ignore[attr-defined]
    _kind.lower_val = lambda self, x: [x]  # type: ignore[attr-defined]
    _kind.raise_val = lambda self, x: x  # type: ignore[attr-defined]


# ---- operations -----------------------------------------------------------------------------


class HiPrim:
    """An operation of another library's, on values of such types or on arrays.

    A class that derives from it sets ``in_avals``, ``out_aval`` and ``params`` before it calls
    ``super().__init__()``. What the operation does is ``expand``. Where that is differentiated, the
    class's own rule is asked: ``jvp``, or ``lin`` and ``linearized``, or ``vjp_fwd`` and one of
    ``vjp_bwd`` and ``vjp_bwd_retval``. One without a rule is differentiated through what it does.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    jvp: Callable[..., Any]  # this and what follows are rules that a class may have
    lin: Callable[..., Any]
    linearized: Callable[..., Any]
    vjp_fwd: Callable[..., Any]
    vjp_bwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]
    multiple_results: ClassVar[bool] = False
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        missing = [x for x in ("in_avals", "out_aval", "params") if not hasattr(self, x)]
        if missing:
            raise AttributeError(
                f"{type(self).__qualname__}.__init__ must set {', '.join(missing)} before it calls "
                "super().__init__()"
            )
        vars(self).update(self.params)

    def expand(self, *args: Any) -> Any:
        """What the operation does, in operations on arrays."""
        _needs(self, "expand")

    def __call__(self, *args: Any) -> Any:
        """The result: at once, or in the transformation to which it belongs."""
        leaves = tree.leaves(args)
        trace = _where(leaves)
        if trace.parent is None:
            return self.expand(*args)
        if trace.records:
            return self.staging(trace, user_location(), *args)
        return self._transformed(args, leaves)

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """The result while a program is recorded."""
        return self._transformed(args, tree.leaves(args))

    def _transformed(self, args: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
        rule = None if any(isinstance(x, Ref) for x in leaves) else self._differentiable()
        if rule is not None:
            return rule(*args)
        if not tree.leaves(self.out_aval):
            raise NotImplementedError(
                f"{type(self).__qualname__} gives no result, so what it changes is lost inside of "
                f"a transformation, at {user_location()}; use a reference, jax.new_ref"
            )
        return self.expand(*args)

    def _differentiable(self) -> Callable[..., Any] | None:
        """What the operation does, with the rule for derivatives that its class has."""
        names = [name for name in ("jvp", "lin", "vjp_fwd") if hasattr(self, name)]
        if not names:
            return None
        if names[0] == "vjp_fwd":
            function = custom_vjp(self.expand)
            function.defvjp(self._forward, self._backward)
            return function
        function = custom_jvp(self.expand)
        function.defjvp(self._jvp if names[0] == "jvp" else self._jvp_by_lin)
        return function

    def _jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        self._check_tangents()
        return self.jvp(primals, tangents)

    def _jvp_by_lin(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        self._check_tangents()
        out, residuals = self.lin((True,) * len(primals), *primals)
        return out, self.linearized(residuals, *tangents)

    def _forward(self, *args: Any) -> tuple[Any, Any]:
        self._check_tangents()
        return self.vjp_fwd((True,) * len(args), *args)

    def _backward(self, residuals: Any, ct: Any) -> Any:
        if not hasattr(self, "vjp_bwd"):
            cts = self.vjp_bwd_retval(residuals, ct)
        else:
            sums = [ValAccum(kind) for kind in self.in_avals]
            self.vjp_bwd(residuals, ct, *sums)
            cts = [x.freeze() for x in sums]
        return tuple(None if isinstance(x, ZeroTangent) else x for x in cts)

    def _check_tangents(self) -> None:
        for kind in tree.leaves((self.in_avals, self.out_aval)):
            if isinstance(kind, HiType) and type(kind.to_tangent_aval()) is not type(kind):
                raise NotImplementedError(
                    f"{type(self).__qualname__} is differentiated, at {user_location()}: tangents "
                    f"of {type(kind).__qualname__} are of another type, which is not offered; use "
                    "jax.custom_vjp on the arrays that it is made of"
                )

    def __hash__(self) -> int:
        return hash((type(self), *self.params.items()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.params == other.params  # type: ignore[attr-defined]


VJPHiPrimitive = HiPrim


def _where(leaves: Sequence[Any]) -> Trace:
    """The innermost trace that records, or to which one of ``leaves`` belongs; else the last."""
    trace = current()
    if isinstance(trace, CompileTimeEvalTrace):
        return owner_of(leaves, trace.parent)
    traced = [x for x in leaves if isinstance(x, Tracer)]
    while trace.parent is not None and not trace.records and not any(map(trace.owns, traced)):
        trace = trace.parent
    return trace


class ValAccum:
    """Adds up what a backward rule gives for an argument of type ``aval``."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        self._sum: Any = ZeroTangent(aval)

    def accum(self, x: Any) -> None:
        """Add ``x``; None is zero."""
        if x is not None and not isinstance(x, ZeroTangent):
            empty = isinstance(self._sum, ZeroTangent)
            self._sum = x if empty else tree.map(add, self._sum, x)

    def freeze(self) -> Any:
        """The sum."""
        return self._sum


GradAccum = ValAccum
