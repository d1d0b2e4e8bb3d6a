"""Functions with derivative rules of their own: their arguments, and symbolic zeros."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, MethodType
from typing import Any, Concatenate, Generic, Self, overload

from phalanx.api.arguments import (
    check_callable,
    check_leaf,
    parameters,
    positional_names,
    static_positions,
)
from phalanx.api.linear import zero_tangent
from phalanx.api.transformed import P, R, Rest
from phalanx.base import dtypes, lattice, tree
from phalanx.base.nodes import outline
from phalanx.base.plain import brief
from phalanx.base.source import Location, is_installed, is_internal, name_of, replaying
from phalanx.base.tree import shown
from phalanx.control.custom_derivatives import as_type
from phalanx.core.primitive import ZERO
from phalanx.core.refs import Ref
from phalanx.core.types import ArrayType, Shaped, is_scalar, typeof
from phalanx.lax.bodies import flatten_results
from phalanx.transforms.stage import is_value


class SymbolicZero(Shaped):
    """A tangent or cotangent that is zero, known without computing.

    It has the shape and dtype of the zeros that it stands for: those of the value that it belongs
    to, or float0 where that has no derivative. Rules that were given with ``symbolic_zeros=True``
    receive it, and may return it.

    Args:
        like: an array, whose shape and dtype it has.

    >>> zero = SymbolicZero(jnp.ones((2, 3)))
    >>> zero.shape, zero.dtype, zero
    ((2, 3), dtype('float32'), SymbolicZero(f32[2,3]))
    """

    __slots__ = ("aval",)

    def __init__(self, like: Any) -> None:
        kind = like if isinstance(like, ArrayType) else typeof(like)
        self.aval = kind.tangent

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def zero_like(kind: ArrayType, symbolic: bool) -> Any:
    """The tangent or cotangent of a value of type ``kind`` that is zero, as rules receive it."""
    return SymbolicZero(kind) if symbolic else zero_tangent(kind)


class Custom(Generic[P, R]):
    """A function, some of whose arguments are not for its derivative rules."""

    kind: str
    takes_refs = False  # whether an argument may be a mutable reference
    takes_defaults = True  # whether those that a call leaves out are arguments for the rules

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function gives."""
        raise NotImplementedError

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        check_callable(fun, self.kind)
        # Twins share it. That which Python 3.13 would make lies inside of this object, and what is
        # in there is cleared with this object.
        self.__dict__ = {}
        self.fun = fun
        self.who = f"{self.kind}({name_of(fun)})"
        self.nondiff_argnums, _ = static_positions(
            fun, nondiff_argnums, nondiff_argnames, self.who, "nondifferentiable"
        )
        self.symbolic_zeros = False
        functools.update_wrapper(self, fun, updated=())

    def twin(self) -> Any:
        """The same function, rules that it is given later included, as another object.

        Programs hold that one: they live as long as the function of which they were made, and
        would keep it alive.
        """
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__
        return other

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Custom[Concatenate[Any, Rest], R], instance: object, owner: Any = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.who}>"


def positional(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    who: str,
    defaults: bool = True,
) -> tuple[Any, ...]:
    """The arguments of a call, those passed by keyword and defaults among them, in order.

    Without ``defaults``, they are left out unless an argument by keyword stands after one.

    Raises:
        TypeError: they do not fit the signature, or one can be passed by keyword alone.
    """
    declared = parameters(fun)
    if not kwargs and (declared is None or len(args) >= len(declared) or not defaults):
        return args
    if declared is None:
        raise TypeError(
            f"{who}: the signature of the function cannot be found; pass its arguments by position"
        )
    try:
        bound = inspect.Signature(declared).bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{who}: {e}") from None
    if defaults or bound.kwargs:
        bound.apply_defaults()
    without = [name for name in bound.kwargs if name in kwargs]
    if without:
        raise TypeError(
            f"{who}: arguments by keyword are passed to the rules by position, and "
            f"{', '.join(without)} has none; declare it as an ordinary parameter"
        )
    return bound.args


def defined_at(fun: Callable[..., Any]) -> str:
    """The name of a rule, and where it is written."""
    code, name = _code_of(fun), name_of(fun)
    if code is None:
        return name
    place = Location.at(code.co_filename, code.co_firstlineno, "<module>")
    return f"{name}, defined at {place},"


def lines_of(rule: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A block in which operations come from lines of ``rule``, if the user wrote it; those of the
    rule of a library come from the line of the operation that it is a rule of."""
    code = _code_of(rule)
    of_user = code is not None and not (
        is_internal(code.co_filename) or is_installed(code.co_filename)
    )
    return replaying() if of_user else nullcontext()


def _code_of(fun: Callable[..., Any]) -> CodeType | None:
    inner = inspect.unwrap(fun)
    while isinstance(inner, functools.partial):
        inner = inner.func
    return getattr(inner, "__code__", None)


class RuledCall:
    """One call of a function with rules: the types of its arguments, and the tree it returns.

    A program keeps it for the rules, so it does not hold the values of the call. References among
    the arguments are no operands: function and rules get them as they are.
    """

    def __init__(self, custom: Custom[..., Any], args: tuple[Any, ...]) -> None:
        self.custom = custom.twin()
        fixed = [i for i in custom.nondiff_argnums if i < len(args)]
        self.fixed = tuple(args[i] for i in fixed)
        self.moving = [i for i in range(len(args)) if i not in fixed]
        leaves, self.tree = tree.flatten(tuple(args[i] for i in self.moving))
        self.out_tree: Any = None
        self.out_types: list[ArrayType] = []
        if not all(map(self._is_fit, leaves)):
            self._refuse_leaf(args)
        self.refs = {i: x for i, x in enumerate(leaves) if type(x) is Ref}
        kinds = [x if type(x) is Ref else typeof(x) for x in leaves]
        types = self.tree.unflatten(kinds)
        # in the place of what is differentiated, trees of types and references
        self.args = list(args)
        for i, kinds in zip(self.moving, types, strict=True):
            self.args[i] = kinds

    def _is_fit(self, x: Any) -> bool:
        return is_value(x) or (self.custom.takes_refs and type(x) is Ref)

    def _refuse_leaf(self, args: tuple[Any, ...]) -> None:
        for i in self.moving:
            for path, x in tree.leaves_with_path(args[i]):
                if not self._is_fit(x):
                    name = self.name(i) + tree.keystr(path)
                    try:
                        check_leaf(x, name, self.custom.who)
                    except TypeError as e:
                        raise TypeError(
                            f"{e}. If it is no array by intention, list its position in "
                            "nondiff_argnums"
                        ) from None

    def leaves(self, args: tuple[Any, ...]) -> list[Any]:
        """The leaves of those arguments that can be differentiated."""
        moving: Any = tuple(args[i] for i in self.moving)
        leaves: list[Any] = self.tree.flatten_up_to(moving)
        return [x for x in leaves if type(x) is not Ref]

    def name(self, position: int) -> str:
        """The name of an argument."""
        return positional_names(self.custom.fun, position + 1)[position]

    def whole(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, the differentiable ones with ``leaves``."""
        args, inserted = list(self.args), [*leaves]
        for i, ref in self.refs.items():
            inserted.insert(i, ref)
        for i, x in zip(self.moving, self.tree.unflatten(inserted), strict=True):
            args[i] = x
        return args

    def function(self, *leaves: Any) -> list[Any]:
        """The results of the function as leaves."""
        out = self.custom.fun(*self.whole(leaves))
        results, self.out_tree = flatten_results(out, self.custom.who)
        self.out_types = [typeof(y) for y in results]
        return results

    def results(self, out: Any, rule: Callable[..., Any], what: str) -> list[Any]:
        """The leaves of what a rule returns as the results, which must be those of the function."""
        leaves, treedef = flatten_results(out, self.custom.who)
        kinds = [typeof(y) for y in leaves]
        if self.out_tree is None:
            self.out_tree, self.out_types = treedef, kinds
        who = f"{self.custom.who}: {defined_at(rule)} must return as {what} what the function does"
        if treedef != self.out_tree:
            raise TypeError(
                f"{who}: structure {shown(self.out_tree)} is expected, got {shown(treedef)}"
            )
        for path, expected, kind in zip(self.paths(), self.out_types, kinds, strict=True):
            if not same_kind(kind, expected):
                raise TypeError(f"{who}: for result{path} {expected} is expected, got {kind}")
        return leaves

    def paths(self) -> list[str]:
        """The path of every leaf among the results."""
        pairs = tree.leaves_with_path(outline(self.out_tree))
        return [tree.keystr(path) for path, _ in pairs]


def same_kind(kind: ArrayType, other: ArrayType) -> bool:
    """Whether the shapes are equal, and the dtypes, or the first one yields to the other."""
    dtype = kind.dtype
    if kind.weak and dtype != other.dtype and dtypes.is_inexact(other.dtype):
        dtype, _ = lattice.common((dtype, True), (other.dtype, False))
    return kind.shape == other.shape and dtype == other.dtype


def checked_tangent(x: Any, kind: ArrayType, refuse: Callable[[str], TypeError]) -> Any:
    """A tangent or cotangent from a rule, for a value of type ``kind``; ZERO where it is zero.

    ``refuse`` makes the error, from what was given.
    """
    if isinstance(x, SymbolicZero) or not dtypes.is_inexact(kind.dtype):
        return ZERO
    if not is_value(x):
        raise refuse(f"{brief(x)} of type {type(x).__name__}")
    actual = typeof(x)
    if not same_kind(actual, kind):
        raise refuse(str(actual))
    return x if actual.dtype == kind.dtype and not is_scalar(x) else as_type(x, kind)


def number_as_array(x: Any) -> Any:
    """``x``, but a number as an array without dimensions: rules can ask for its shape."""
    return as_type(x, typeof(x)) if is_scalar(x) else x
