"""Solutions of equations, differentiated by the equations that they solve.

How a solution was found plays no part: a solver may loop as often as it takes, and look at what it
likes. Functions that a solver is given become programs, of which what they close over are operands.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from phalanx.base.source import name_of, user_location
from phalanx.control.call import call
from phalanx.control.call_with_transpose import LinearRule, linear_call
from phalanx.control.custom_derivatives import bind_program, bind_with_rules
from phalanx.control.custom_jvp_call import JvpRule, custom_jvp
from phalanx.core.primitive import ZERO, Linear, with_zeros
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, current
from phalanx.core.types import typeof
from phalanx.lax.bodies import leaves_of
from phalanx.primitives.basis import add_tangents, instantiate, neg
from phalanx.run.eager import as_array
from phalanx.transforms.linearize import jvp
from phalanx.transforms.stage import evaluate, stage
from phalanx.transforms.transpose import backward

Solve = Callable[[Callable[..., Any], Any], Any]


class _Unknown:
    """What an equation is solved for: the structure and the types of the leaves."""

    def __init__(self, example: Any, who: str) -> None:
        self.who = who
        self.leaves, self.tree = leaves_of(example, who, "the unknown")
        self.types = [typeof(x) for x in self.leaves]

    def flat(self, function: Callable[[Any], Any]) -> Callable[..., list[Any]]:
        """``function`` from leaves to leaves."""
        return lambda *xs: self.checked(function(self.tree.unflatten(xs)), function)

    def whole(self, flat: Callable[..., Sequence[Any]]) -> Callable[[Any], Any]:
        """``flat`` as a function of trees."""

        def function(x: Any) -> Any:
            leaves, _ = leaves_of(x, self.who, "the argument")
            return self.tree.unflatten(flat(*leaves))

        return function

    def checked(self, result: Any, function: Callable[..., Any]) -> list[Any]:
        """The leaves of ``result``, which must be like the unknown.

        Raises:
            TypeError: it is not.
        """
        leaves, structure = leaves_of(result, self.who, f"the result of {name_of(function)}")
        types = [typeof(x) for x in leaves]
        alike = zip(types, self.types, strict=False)
        if structure != self.tree or any(
            (t.shape, t.dtype) != (u.shape, u.dtype) for t, u in alike
        ):
            raise TypeError(
                f"{self.who}: {name_of(function)} must return what the unknown is, "
                f"{self.tree.unflatten(self.types)}, got {structure.unflatten(types)}, at "
                f"{user_location()}"
            )
        return leaves


class _Solver:
    """A user's ``solve`` as a flat function: the solution, and then what else it returns."""

    def __init__(self, solve: Solve, unknown: _Unknown, has_aux: bool) -> None:
        self.solve, self.unknown, self.has_aux = solve, unknown, has_aux
        self.aux_tree: Any = None

    def __call__(self, function: Callable[[Any], Any], leaves: Sequence[Any]) -> list[Any]:
        out = self.solve(function, self.unknown.tree.unflatten(leaves))
        aux: Any = ()
        if self.has_aux:
            out, aux = out
        leaves, self.aux_tree = leaves_of(aux, self.unknown.who, "auxiliary data")
        return [*self.unknown.checked(out, self.solve), *leaves]

    def at_once(self, function: Callable[[Any], Any]) -> Any:
        """What ``solve`` finds where nothing is traced: no program is made."""
        return self.whole([as_array(x) for x in self(function, self.unknown.leaves)])

    def whole(self, results: Sequence[Any]) -> Any:
        """The results as the user's ``solve`` returned them."""
        count = len(self.unknown.types)
        solution = self.unknown.tree.unflatten(results[:count])
        return (solution, self.aux_tree.unflatten(results[count:])) if self.has_aux else solution


# ---- linear equations -----------------------------------------------------------------------


class _System(Struct, frozen=True, eq=False):
    """A linear system a x = b as programs, which take what they close over, and then x or b.

    Attributes:
        product: a x.
        solve: x and auxiliary data, of b; it takes what the product closes over, too.
        solve_transposed: the same of the transposed system; None where nobody said how.
        closed: how many values each of the three closes over; they are operands in that order.
        transposed: whether it is the transposed system that is meant.
    """

    product: Program
    solve: Program
    solve_transposed: Program | None
    closed: tuple[int, int, int]
    transposed: bool = False

    def apply(self, consts: Sequence[Any], x: Sequence[Any]) -> list[Any]:
        """a x, or the product with the transpose."""
        of_product = consts[: self.closed[0]]
        if not self.transposed:
            return evaluate(self.product, [*of_product, *x])
        types = self.product.input_types[self.closed[0] :]
        operands = [*of_product, *map(Linear, types)]
        cts = backward(self.product, operands, x)
        return [instantiate(ct, t) for ct, t in zip(cts, types, strict=True)]

    def solution(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """x and auxiliary data."""
        ends = list(itertools.accumulate(self.closed))
        program, own = self.solve, consts[ends[0] : ends[1]]
        if self.transposed:
            program, own = self.solve_transposed, consts[ends[1] :]
        if program is None:
            raise TypeError(
                "custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True, at "
                f"{user_location()}"
            )
        return list(call(*own, *consts[: ends[0]], *b, program=program))

    def other(self) -> _System:
        """The transposed system."""
        return _System(
            self.product, self.solve, self.solve_transposed, self.closed, not self.transposed
        )


def _solve_system(system: _System, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The solution of a system, whose derivative is the solution of the same system."""
    count, known = len(b), len(consts)

    def solved(*operands: Any) -> Sequence[Any]:
        return bind_program(
            linear_call,
            lambda *xs: system.solution(xs[:known], xs[known:]),
            operands,
            partial(LinearRule.of, "custom_linear_solve", transposed, count),
            (),
            "custom_linear_solve",
        )

    def transposed(known: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return _solve_system(system.other(), known, cts[:count])[:count]

    def pair(nonzero: tuple[bool, ...], xs: Sequence[Any]) -> list[Any]:
        operands, rest = xs[: len(nonzero)], xs[len(nonzero) :]
        tangents = with_zeros(rest, nonzero)
        results = _solve_system(system, operands[:known], operands[known:])
        x = results[:count]
        _, by_consts = jvp(lambda *c: system.apply(c, x), operands[:known], tangents[:known])
        sides = [
            add_tangents(t, ZERO if s is ZERO else neg(s))
            for t, s in zip(tangents[known:], by_consts, strict=True)
        ]
        moved: Sequence[Any] = [ZERO] * count
        if any(s is not ZERO for s in sides):
            dense = [instantiate(s, typeof(y)) for s, y in zip(sides, x, strict=True)]
            moved = _solve_system(system, operands[:known], dense)[:count]
        return [*results, *moved, *[ZERO] * (len(results) - count)]

    return list(
        bind_with_rules(
            custom_jvp,
            solved,
            [*consts, *b],
            partial(JvpRule.of, "custom_linear_solve", pair),
            (),
            "custom_linear_solve",
        )
    )


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Solve,
    transpose_solve: Solve | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with matvec(x) = b, as ``solve`` finds it; derivatives are those of the equation.

    Args:
        matvec: a linear function from a tree of arrays to one like it. What it closes over is
            differentiated.
        b: a tree of arrays.
        solve: ``(matvec, b)`` to x. It need not be differentiable, and what it closes over is not
            differentiated.
        transpose_solve: ``(vecmat, b)`` to the solution of the transposed equation; for reverse
            mode.
        symmetric: whether matvec is its own transpose; then ``solve`` solves both.
        has_aux: whether the solvers return pairs of the solution and other arrays, which have no
            derivative.

    Returns:
        What ``solve`` returns.

    Raises:
        TypeError: a function returns something of another structure or type than b; or reverse
            mode is asked for without a way to solve the transposed equation.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def f(a, b):
    ...     dense = lambda _, b: jnp.linalg.solve(a, b)
    ...     return lax.custom_linear_solve(lambda x: a @ x, b, dense, symmetric=True).sum()
    >>> phalanx.grad(f, argnums=1)(jnp.diag(jnp.array([2.0, 4.0])), jnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    unknown = _Unknown(b, "custom_linear_solve")
    solver = _Solver(solve, unknown, has_aux)
    if current() is ROOT:
        return solver.at_once(matvec)
    product, of_product = stage(unknown.flat(matvec), unknown.types, "matvec")
    constants = [typeof(c) for c in of_product]
    plain_system = _System(product, product, None, (len(of_product), 0, 0))

    def staged(solver: _Solver, system: _System) -> tuple[Program, list[Any]]:
        count = len(constants)

        def flat(*xs: Any) -> list[Any]:
            return solver(unknown.whole(lambda *x: system.apply(xs[:count], x)), xs[count:])

        return stage(flat, [*constants, *unknown.types], "solve")

    forward, of_forward = staged(solver, plain_system)
    if symmetric and transpose_solve is None:
        reverse: Program | None = forward
        of_reverse = of_forward
    elif transpose_solve is None:
        reverse, of_reverse = None, []
    else:
        other = plain_system if symmetric else plain_system.other()
        reverse, of_reverse = staged(_Solver(transpose_solve, unknown, has_aux), other)
    consts = [*of_product, *of_forward, *of_reverse]
    sizes = (len(of_product), len(of_forward), len(of_reverse))
    system = _System(product, forward, reverse, sizes)
    return solver.whole(_solve_system(system, consts, unknown.leaves))


# ---- roots ----------------------------------------------------------------------------------


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Solve,
    tangent_solve: Solve,
    has_aux: bool = False,
) -> Any:
    """The x with f(x) = 0 that ``solve`` finds; derivatives are by the implicit function theorem.

    They are with respect to what f closes over: dx = -(df/dx)⁻¹ df.

    Args:
        f: from a tree of arrays to one like it.
        initial_guess: a tree of arrays; the root does not depend on it.
        solve: ``(f, initial_guess)`` to x. It need not be differentiable.
        tangent_solve: ``(g, y)`` to the x with g(x) = y, where g is linear: the derivative of f at
            the root. For scalars it is ``lambda g, y: y / g(1.0)``.
        has_aux: whether ``solve`` returns a pair of the root and other arrays, which have no
            derivative.

    Returns:
        What ``solve`` returns.

    Raises:
        TypeError: a function returns something of another structure or type than the guess.

    >>> import phalanx
    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 20, lambda _, x: x - f(x) / phalanx.grad(f)(x), x)
    >>> def root(a):
    ...     f = lambda x: x * x - a
    ...     return lax.custom_root(f, 1.0, newton, lambda g, y: y / g(1.0))
    >>> phalanx.grad(root)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    unknown = _Unknown(initial_guess, "custom_root")
    solver = _Solver(solve, unknown, has_aux)
    if current() is ROOT:
        return solver.at_once(f)
    function, of_function = stage(unknown.flat(f), unknown.types, "f")
    count, size = len(of_function), len(unknown.types)

    def searched(*xs: Any) -> list[Any]:
        return solver(unknown.whole(lambda *x: evaluate(function, [*xs[:count], *x])), xs[count:])

    types = [typeof(c) for c in of_function]
    search, of_search = stage(searched, [*types, *unknown.types], "solve")
    first = len(of_search)
    consts = slice(first, first + count)

    def found(*xs: Any) -> Sequence[Any]:
        return bind_with_rules(
            custom_jvp,
            lambda *xs: call(*xs, program=search),
            xs,
            partial(JvpRule.of, "custom_root", pair),
            (tangent_solve,),
            "custom_root",
        )

    def pair(nonzero: tuple[bool, ...], xs: Sequence[Any]) -> list[Any]:
        operands, rest = xs[: len(nonzero)], xs[len(nonzero) :]
        tangents = with_zeros(rest, nonzero)
        results = list(found(*operands))
        x, c = results[:size], operands[consts]
        _, by_consts = jvp(lambda *c: evaluate(function, [*c, *x]), c, tangents[consts])
        moved: Sequence[Any] = [ZERO] * size
        if any(t is not ZERO for t in by_consts):

            def slope(*v: Any) -> list[Any]:
                return jvp(lambda *x: evaluate(function, [*c, *x]), x, v)[1]

            sides = [neg(instantiate(t, u)) for t, u in zip(by_consts, unknown.types, strict=True)]
            dense = unknown.whole(lambda *v: [*map(instantiate, slope(*v), unknown.types)])
            moved = unknown.checked(
                tangent_solve(dense, unknown.tree.unflatten(sides)), tangent_solve
            )
        return [*results, *moved, *[ZERO] * (len(results) - size)]

    return solver.whole(found(*of_search, *of_function, *unknown.leaves))
