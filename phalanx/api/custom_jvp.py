"""``custom_jvp``: a function, and a rule for its tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from phalanx.api.arguments import check_callable
from phalanx.api.custom import (
    Custom,
    RuledCall,
    SymbolicZero,
    checked_tangent,
    defined_at,
    lines_of,
    number_as_array,
    positional,
    zero_like,
)
from phalanx.api.transformed import P, R
from phalanx.base import dtypes, tree
from phalanx.base.boundary import hiding
from phalanx.base.errors import MissingDerivative
from phalanx.base.kinds import is_sequence
from phalanx.base.source import name_of, user_location
from phalanx.base.tree import shown
from phalanx.control.custom_derivatives import bind_with_rules
from phalanx.control.custom_jvp_call import JvpRule
from phalanx.control.custom_jvp_call import custom_jvp as custom_jvp_primitive
from phalanx.core.primitive import ZERO
from phalanx.core.trace import ROOT, current
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add_tangents
from phalanx.transforms.stage import is_value


class custom_jvp(Custom[P, R]):
    """``fun``, differentiated by a rule that is given with ``defjvp`` or ``defjvps``.

    The rule serves forward and reverse mode, and derivatives of any order: what it does is
    differentiated in turn. Values that ``fun`` closes over are differentiated as usual.

    Args:
        fun: a function of trees of arrays. Arguments by keyword and defaults are put into
            the order of its parameters.
        nondiff_argnums: positions of arguments that are not differentiated, such as functions
            and strings; the rule receives them first.
        nondiff_argnames: the same by name.

    Raises:
        MissingRule: it is differentiated and has no rule.
        TypeError: an argument is neither an array nor in ``nondiff_argnums``, or the rule
            returns something of the wrong structure or type.

    >>> import phalanx
    >>> @phalanx.custom_jvp
    ... def logsumexp0(x):
    ...     return jnp.log1p(jnp.exp(x))
    >>> @logsumexp0.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return logsumexp0(x), phalanx.nn.sigmoid(x) * t
    >>> float(phalanx.grad(logsumexp0)(0.0))
    0.5
    """

    kind = "custom_jvp"
    rule: Callable[..., Any] | None = None
    rules: tuple[Callable[..., Any] | None, ...] = ()

    @property
    def jvp(self) -> Callable[..., Any] | None:
        """The rule that was given, or what the rules for each argument are together."""
        return _Sum(self, self.rules) if self.rules else self.rule

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule: ``jvp(primals, tangents)`` to the results and their tangents.

        Args:
            jvp: of two tuples, one entry per argument; after the arguments in
                ``nondiff_argnums``, if there are any. It returns a pair of trees like the result
                of the function.
            symbolic_zeros: whether it receives, for what is not differentiated, instances of
                ``SymbolicZero`` in place of arrays of zeros.

        Returns:
            ``jvp``, so that this is a decorator.
        """
        check_callable(jvp, f"{self.who}.defjvp")
        self.rule, self.rules = jvp, ()
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give a rule for each argument: ``jvp(tangent, result, *primals)`` to a tangent.

        The tangent of the result is their sum. None stands for a derivative of zero.

        Args:
            *jvps: a function for each argument; None for a derivative of zero.

        Raises:
            TypeError: the function has arguments that are not differentiated.

        >>> import phalanx
        >>> product = phalanx.custom_jvp(lambda x, y: x * y)
        >>> product.defjvps(lambda t, out, x, y: t * y, None)
        >>> phalanx.jvp(product, (2.0, 3.0), (1.0, 1.0))[1]
        Array(3., dtype=float32, weak_type=True)
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"{self.who}.defjvps: there are nondifferentiable arguments, at positions "
                f"{self.nondiff_argnums}; give one rule for all arguments, with defjvp"
            )
        self.rules = jvps
        self.symbolic_zeros = True

    @hiding
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current() is ROOT:
            return self.fun(*args, **kwargs)
        arguments = positional(self.fun, args, kwargs, self.who)
        call = RuledCall(self, arguments)
        jvp = self.jvp
        results = bind_with_rules(
            custom_jvp_primitive,
            call.function,
            call.leaves(arguments),
            partial(JvpRule.of, name_of(jvp) if jvp else "none", partial(_pair, call)),
            (self.fun, jvp, call.fixed),
            name_of(self.fun),
        )
        return call.out_tree.unflatten(results)


class _Sum:
    """The rule for all arguments, from one for each."""

    def __init__(
        self, function: custom_jvp[..., Any], jvps: Sequence[Callable[..., Any] | None]
    ) -> None:
        self.function = function
        self.jvps = jvps
        self.__name__ = "defjvps"

    def __call__(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        if len(self.jvps) != len(primals):
            raise TypeError(
                f"{self.function.who}.defjvps: {len(self.jvps)} rules are given, for "
                f"{len(primals)} arguments; give None where the derivative is zero"
            )
        out = self.function(*primals)
        leaves, out_tree = tree.flatten(out)
        totals: list[Any] = [ZERO] * len(leaves)
        for jvp, t in zip(self.jvps, tangents, strict=True):
            if jvp is None or all(isinstance(x, SymbolicZero) for x in tree.leaves(t)):
                continue
            dense = tree.map(lambda x: zero_like(x.aval, False) if _is_zero(x) else x, t)
            terms = tree.leaves(jvp(dense, out, *primals))
            totals = [add_tangents(a, b) for a, b in zip(totals, terms, strict=True)]
        zeros: list[Any] = [
            SymbolicZero(y) if t is ZERO else t for y, t in zip(leaves, totals, strict=True)
        ]
        return out, out_tree.unflatten(zeros)


def _is_zero(x: Any) -> bool:
    return isinstance(x, SymbolicZero)


def _pair(call: RuledCall, nonzero: tuple[bool, ...], operands: Sequence[Any]) -> list[Any]:
    """The user's rule as a flat function: results, and then their tangents."""
    custom: Any = call.custom
    rule = custom.jvp
    if rule is None:
        raise MissingDerivative(
            f"{custom.who}: {name_of(custom.fun)} is differentiated, at {user_location()}, before "
            "it has a rule; give one with defjvp or defjvps"
        )
    primals = [number_as_array(x) if n else x for x, n in zip(operands, nonzero, strict=False)]
    rest = iter(operands[len(nonzero) :])
    tangents = [
        number_as_array(next(rest)) if n else zero_like(typeof(x), custom.symbolic_zeros)
        for x, n in zip(primals, nonzero, strict=True)
    ]
    with lines_of(rule):
        pair = rule(*call.fixed, call.tree.unflatten(primals), call.tree.unflatten(tangents))
    if not is_sequence(pair) or len(pair) != 2:
        raise TypeError(
            f"{custom.who}: {defined_at(rule)} must return a pair (result, tangent), got {pair!r}"
        )
    results = call.results(pair[0], rule, "results")
    return [*results, *_tangents(call, pair[1], rule)]


def _tangents(call: RuledCall, out: Any, rule: Callable[..., Any]) -> list[Any]:
    """The leaves of the tangents that a rule returns, checked against those of the results."""
    leaves, treedef = tree.flatten(out)
    who = f"{call.custom.who}: {defined_at(rule)} must return tangents like the results"
    if treedef != call.out_tree:
        expected = shown(call.out_tree)
        raise TypeError(f"{who}: structure {expected} is expected, got {shown(treedef)}")
    tangents: list[Any] = []
    for path, kind, x in zip(call.paths(), call.out_types, leaves, strict=True):

        def refuse(got: str, path: str = path, kind: Any = kind) -> TypeError:
            return TypeError(f"{who}: for tangent{path} {kind} is expected, got {got}")

        if not dtypes.is_inexact(kind.dtype):
            _check_without_derivative(x, kind, refuse)
        tangents.append(checked_tangent(x, kind, refuse))
    return tangents


def _check_without_derivative(x: Any, kind: ArrayType, refuse: Callable[[str], TypeError]) -> None:
    """Raise TypeError unless ``x`` is the tangent of what has no derivative."""
    if isinstance(x, SymbolicZero):
        return
    actual = typeof(x) if is_value(x) else None
    if actual is None or (actual.shape, actual.dtype) != (kind.shape, dtypes.float0):
        raise refuse(f"{actual or repr(x)}; it has no derivative, so zeros of dtype float0")
