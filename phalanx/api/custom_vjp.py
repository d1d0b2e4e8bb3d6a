"""``custom_vjp`` and its kin: a function, and rules for its cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    check_callable,
    check_same_tree,
    dress,
    parameters,
)
from phalanx.api.custom import (
    Custom,
    RuledCall,
    checked_tangent,
    defined_at,
    lines_of,
    number_as_array,
    positional,
    zero_like,
)
from phalanx.api.transformed import P, R
from phalanx.api.vmap import is_none
from phalanx.base import dtypes, tree
from phalanx.base.boundary import hiding
from phalanx.base.errors import ArgumentError, MissingDerivative, TreeError
from phalanx.base.kinds import is_sequence, is_tuple
from phalanx.base.source import name_of, user_location
from phalanx.base.tree import shown
from phalanx.control.custom_derivatives import bind_with_rules, differentiated
from phalanx.control.custom_vjp_call import ForwardResult, VjpRule, refuse_closed
from phalanx.control.custom_vjp_call import custom_vjp as custom_vjp_primitive
from phalanx.core.primitive import ZERO
from phalanx.core.refs import Ref
from phalanx.core.trace import ROOT, Tracer, current, trace_of
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.lax.bodies import flatten_results
from phalanx.transforms.stage import evaluate, stage

Nonzero = tuple[bool, ...]


class CustomVJPPrimal(Struct, frozen=True):
    """An argument leaf, as a forward rule with ``symbolic_zeros=True`` receives it.

    Attributes:
        value: the array.
        perturbed: whether it is differentiated.

    >>> import phalanx
    >>> @phalanx.custom_vjp
    ... def double(x):
    ...     return 2 * x
    >>> def forward(x):
    ...     return 2 * x.value, x.perturbed
    >>> double.defvjp(forward, lambda perturbed, c: (2 * c,), symbolic_zeros=True)
    >>> float(phalanx.grad(double)(1.0))
    2.0
    """

    value: Any
    perturbed: bool


class custom_vjp(Custom[P, R]):
    """``fun``, differentiated in reverse mode by two rules that are given with ``defvjp``.

    The forward rule runs in place of the function, once; the backward rule runs in the backward
    pass. There is no forward mode. What the rules do is differentiated in turn where derivatives
    of higher order are taken.

    Args:
        fun: a function of trees of arrays. Arguments by keyword and defaults are put into
            the order of its parameters.
        nondiff_argnums: positions of arguments that are not differentiated, such as functions
            and strings; the backward rule receives them first.
        nondiff_argnames: the same by name.

    An argument may be a mutable reference, which function and rules get as it is, also as a
    residual: so the backward rule can hand out a cotangent. The cotangent of a reference is None.

    Raises:
        MissingRule: it is differentiated and has no rules.
        ClosureDifferentiated: it is differentiated by a value that it closes over.
        TypeError: it is differentiated in forward mode; an argument is neither an array nor in
            ``nondiff_argnums``; or a rule returns something of the wrong structure or type.

    >>> import phalanx
    >>> @phalanx.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
    >>> float(phalanx.grad(lambda x: 5.0 * clipped(x))(2.0))
    1.0
    """

    kind = "custom_vjp"
    takes_refs = True
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules.

        Args:
            fwd: of the arguments of the function, to a pair of its result and residuals: a tree
                of whatever the backward rule needs.
            bwd: of the residuals and a tree of cotangents like the result; after the arguments
                in ``nondiff_argnums``, if there are any. It returns a tuple with a tree of
                cotangents for every other argument, in which None stands for zeros, in place of
                an array or of a whole tree.
            symbolic_zeros: whether ``fwd`` receives the leaves of arguments as
                ``CustomVJPPrimal``, which tells whether they are differentiated, and ``bwd``
                receives ``SymbolicZero`` for results on which nothing depends.
            optimize_remat: accepted, and without effect.
        """
        for name, rule in {"fwd": fwd, "bwd": bwd}.items():
            if not callable(rule):
                raise TypeError(f"{self.who}.defvjp: {name} must be a function, got {rule!r}")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = symbolic_zeros

    @hiding
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current() is ROOT:
            return self.fun(*args, **kwargs)
        arguments = positional(self.fun, args, kwargs, self.who, self.takes_defaults)
        call = RuledCall(self, arguments)
        name = name_of(self.fun)
        results = bind_with_rules(
            custom_vjp_primitive,
            call.function,
            call.leaves(arguments),
            partial(VjpRule.of, name, partial(_forward, call), partial(_backward, call)),
            (self.fun, self.fwd, self.bwd, call.fixed),
            name,
            partial(_check_alone, call),
        )
        return call.out_tree.unflatten(results)


def _check_alone(call: RuledCall, results: Sequence[Any]) -> None:
    """Raise TypeError where results have tangents although no argument has one."""
    for y in results:
        layer = differentiated(y)
        if layer is not None:
            refuse_closed(name_of(call.custom.fun), trace_of(layer).name)


class _Residuals(Struct, frozen=True):
    """How to put residuals together again: ``fixed`` is what no array can hold, ``_HOLE`` else."""

    tree: Any
    fixed: tuple[Any, ...]
    out_types: tuple[ArrayType, ...]

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        """The residuals as the forward rule gave them, with ``arrays`` for its arrays."""
        rest = iter(arrays)
        return self.tree.unflatten([next(rest) if x is _HOLE else x for x in self.fixed])


_HOLE = object()


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray, np.generic))


def _forward(call: RuledCall, nonzero: Nonzero, operands: Sequence[Any]) -> ForwardResult:
    """The user's forward rule as a flat function."""
    custom: Any = call.custom
    if custom.fwd is None:
        raise MissingDerivative(
            f"{custom.who}: {name_of(custom.fun)} is differentiated, at {user_location()}, before "
            "it has rules; give them with defvjp"
        )
    leaves = [number_as_array(x) if n else x for x, n in zip(operands, nonzero, strict=True)]
    if custom.symbolic_zeros:
        leaves = [CustomVJPPrimal(x, n) for x, n in zip(leaves, nonzero, strict=True)]
    with lines_of(custom.fwd):
        pair = custom.fwd(*call.whole(leaves))
    if not is_sequence(pair) or len(pair) != 2:
        raise TypeError(
            f"{custom.who}: {defined_at(custom.fwd)} must return a pair (result, residuals), got "
            f"{pair!r}"
        )
    results = call.results(pair[0], custom.fwd, "the first of a pair")
    residuals, treedef = tree.flatten(pair[1])
    fixed = tuple(_HOLE if _is_array(x) else x for x in residuals)
    return ForwardResult(
        results,
        [x for x in residuals if _is_array(x)],
        _Residuals(treedef, fixed, tuple(call.out_types)),
    )


def _backward(
    call: RuledCall, nonzero: Nonzero, structure: _Residuals, operands: Sequence[Any]
) -> list[Any]:
    """The user's backward rule as a flat function."""
    custom: Any = call.custom
    count = structure.fixed.count(_HOLE)
    cts = [
        zero_like(t, custom.symbolic_zeros) if ct is ZERO else number_as_array(ct)
        for ct, t in zip(operands[count:], structure.out_types, strict=True)
    ]
    residuals = structure.rebuild(operands[:count])
    with lines_of(custom.bwd):
        returned = custom.bwd(*call.fixed, residuals, call.out_tree.unflatten(cts))
    return _cotangents(call, returned)


def _cotangents(call: RuledCall, returned: Any) -> list[Any]:
    """The leaves of the cotangents that a backward rule returns, checked against the arguments."""
    who = f"{call.custom.who}: {defined_at(call.custom.bwd)}"  # type: ignore[attr-defined]
    names = [call.name(i) for i in call.moving]
    if not is_sequence(returned) or len(returned) != len(names):
        got = f"{len(returned)} of them" if is_sequence(returned) else repr(returned)
        raise TypeError(
            f"{who} must return a tuple of {len(names)} cotangents, one for each of "
            f"({', '.join(names)}), got {got}"
        )
    cotangents: list[Any] = []
    for name, i, ct in zip(names, call.moving, returned, strict=True):
        arg = call.args[i]
        above = _leaves_above(who, name, arg, ct)
        for kind, (path, x) in zip(tree.leaves(arg), above, strict=True):

            def refuse(got: str, at: str = name + path, kind: ArrayType = kind) -> TypeError:
                return ArgumentError(
                    f"{who} must return cotangents like the arguments: for {at} {kind} is "
                    f"expected, got {got}; None stands for zeros"
                )

            if type(kind) is not Ref:
                cotangents.append(ZERO if x is None else checked_tangent(x, kind, refuse))
            elif x is not None:
                raise ArgumentError(
                    f"{who} must return None for {name}{path}, which is a reference and has no "
                    f"cotangent, got {x!r}"
                )
    return cotangents


def _leaves_above(who: str, name: str, arg: Any, ct: Any) -> list[tuple[str, Any]]:
    """The path of each leaf of an argument, and its cotangent or the None that stands for it.

    A node that holds one leaf may be stood for by the cotangent of that.
    """
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(arg)]
    present = [x for x in tree.leaves(ct, is_leaf=is_none) if x is not None]
    try:
        cotangents = tree.broadcast_prefix(ct, arg, is_leaf=is_none)
    except TreeError:
        cotangents = None
    if cotangents is None or sum(x is not None for x in cotangents) != len(present):
        raise TypeError(
            f"{who} must return cotangents like the arguments: for {name} structure "
            f"{shown(tree.structure(arg))} is expected, got "
            f"{shown(tree.structure(ct, is_leaf=is_none))}; None stands for zeros"
        )
    return list(zip(paths, cotangents, strict=True))


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its result together with its gradient, as an ordinary function.

    Args:
        fun: of trees of arrays, to a pair: the result, and a function from a tree of cotangents
            like the result to a tuple of cotangents like the arguments (or, for a single
            argument, to its cotangent alone). Defaults that a call leaves out are no arguments;
            their cotangents may be left out.

    Returns:
        A function of the same arguments to the result alone. In reverse mode its derivative is
        what ``fun`` says; it has no forward mode.

    >>> import phalanx
    >>> @phalanx.custom_gradient
    ... def square(x):
    ...     return x**2, lambda ct: 10.0 * ct * x
    >>> float(square(3.0)), float(phalanx.grad(square)(3.0))
    (9.0, 30.0)
    """
    check_callable(fun, "custom_gradient")
    who = f"custom_gradient({name_of(fun)})"

    def result(*args: Any, **kwargs: Any) -> Any:
        return _checked_pair(fun(*args, **kwargs), fun, who)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, gradient = _checked_pair(fun(*args), fun, who)
        leaves, out_tree = tree.flatten(out)
        pull = _Pull(fun, len(args), gradient, out_tree, who)
        program, captured = stage(pull, [typeof(y) for y in leaves], name_of(gradient))
        return out, (captured, program, pull)

    def backward(residuals: Any, cts: Any) -> tuple[Any, ...]:
        captured, program, pull = residuals
        return pull.of_arguments(evaluate(program, [*captured, *tree.leaves(cts)]))

    inner = _CustomGradient(dress(result, fun))
    inner.defvjp(forward, backward)
    return inner


class _CustomGradient(custom_vjp[P, R]):
    """A function with a gradient, which is about what calls pass."""

    kind = "custom_gradient"
    takes_defaults = False


def closure_convert(
    fun: Callable[P, Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """``fun`` with what it closes over as further arguments, and these values.

    So a function that is an argument of another one with rules of its own can be differentiated
    by what it closes over: pass it on in ``nondiff_argnums``, and the values as arguments.

    Args:
        fun: a function of trees of arrays, traced values and arrays that it closes over.
        *example_args: arguments of the structure and the types of those to come.

    Returns:
        A function of arguments like the examples, followed by the values, and a list of the
        values: those that are differentiable and traced.

    >>> import phalanx
    >>> def slope(w):
    ...     f, values = phalanx.closure_convert(lambda x: w * x, 1.0)
    ...     return f(3.0, *values)
    >>> float(phalanx.grad(slope)(2.0))
    3.0
    """
    check_callable(fun, "closure_convert")
    who = f"closure_convert({name_of(fun)})"
    leaves, in_tree = tree.flatten((example_args, {}))
    flat = Flat(fun, in_tree, NO_STATIC, who)
    program, captured = stage(flat, [typeof(x) for x in leaves], name_of(fun))
    moved = [isinstance(x, Tracer) and dtypes.is_inexact(x.dtype) for x in captured]

    def converted(*args: Any) -> Any:
        operands, treedef = tree.flatten((args[: len(example_args)], {}))
        check_same_tree(treedef, in_tree, who, "the arguments, like the examples,")
        rest = iter(args[len(example_args) :])
        constants = [next(rest) if m else x for x, m in zip(captured, moved, strict=True)]
        return flat.out_tree.unflatten(evaluate(program, [*constants, *operands]))

    return converted, [x for x, m in zip(captured, moved, strict=True) if m]


def _checked_pair(pair: Any, fun: Callable[..., Any], who: str) -> tuple[Any, Callable[..., Any]]:
    if not is_sequence(pair) or len(pair) != 2 or not callable(pair[1]):
        raise TypeError(
            f"{who}: {defined_at(fun)} must return a pair of the result and a function of "
            f"cotangents, got {pair!r}"
        )
    out, gradient = pair
    return out, gradient


class _Pull:
    """The function of cotangents as a flat one; remembers the tree that it returned.

    It belongs to a call of ``fun`` with ``count`` arguments.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        count: int,
        gradient: Callable[..., Any],
        in_tree: Any,
        who: str,
    ) -> None:
        self.fun = fun
        self.count = count
        self.gradient = gradient
        self.in_tree = in_tree
        self.who = who
        self.tree: Any = None

    def __call__(self, *cts: Any) -> list[Any]:
        returned = self.gradient(self.in_tree.unflatten(cts))
        cotangents, self.tree = flatten_results(returned, self.who)
        return cotangents

    def of_arguments(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the arguments, without those of defaults that the call left out."""
        cotangents: Any = self.tree.unflatten(leaves)
        if not is_tuple(cotangents) and (self.count == 1 or not is_sequence(cotangents)):
            return (cotangents,)
        return (
            cotangents[: self.count]
            if len(cotangents) == len(parameters(self.fun) or ())
            else cotangents
        )
