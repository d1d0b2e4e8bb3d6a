"""Jacobians and Hessians: derivatives in all directions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.arguments import check_callable, wrap
from phalanx.api.derivatives import linearize, vjp
from phalanx.api.differentiable import Argnums, check_complex, check_result
from phalanx.api.transformed import P
from phalanx.api.vmap import vmap
from phalanx.base import dtypes, tree
from phalanx.base.source import name_of, user_location
from phalanx.core.types import typeof
from phalanx.numpy.matrices import eye
from phalanx.primitives.basis import move, reshape
from phalanx.primitives.shape import slice as slice_


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """The Jacobian in forward mode, column by column: cheap where there are few inputs.

    The result has the structure of the results of ``fun``, each leaf replaced by the structure
    of the argument, with shape ``[*result, *argument]``.

    Args:
        fun: a function of trees of arrays.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair, of which the second is handed on.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.

    Returns:
        A function with the parameters of ``fun``. Of an argument of shape s and a result of shape r
        it returns an array of shape [*r, *s]; of trees, a tree of trees of them; with ``has_aux`` a
        pair of that and the further data.

    Raises:
        TypeError: an argument is complex without ``holomorphic``, or a result is not with it.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacfwd")
    return _by_columns(fun, argnums, has_aux, holomorphic, f"jacfwd({name_of(fun)})")


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """The Jacobian in reverse mode, row by row: cheap where there are few outputs.

    The result is laid out as that of ``jacfwd``.

    Args:
        fun: a function of trees of arrays.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair, of which the second is handed on.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.
        allow_int: whether integer arguments are allowed; their derivative has dtype float0.

    Returns:
        A function with the parameters of ``fun``. Of an argument of shape s and a result of shape r
        it returns an array of shape [*r, *s]; of trees, a tree of trees of them; with ``has_aux`` a
        pair of that and the further data.

    Raises:
        TypeError: the function returned integers, or booleans, which have no derivative, or
            complex numbers without ``holomorphic``, or real ones with it.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacrev")
    return _by_rows(fun, argnums, has_aux, holomorphic, allow_int, f"jacrev({name_of(fun)})")


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """The Hessian: x -> matrix of second derivatives at x, by forward over reverse mode.

    Args:
        fun: a function of trees of arrays.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair, of which the second is handed on.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.

    Returns:
        A function with the parameters of ``fun``. Of an argument of shape s and a result of shape r
        it returns an array of shape [*r, *s, *s]; of trees, a tree of trees of them; with
        ``has_aux`` a pair of that and the further data.

    Raises:
        TypeError: an argument is complex without ``holomorphic``, or a result is not with it.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    check_callable(fun, "hessian")
    who = f"hessian({name_of(fun)})"
    gradient = _by_rows(fun, argnums, has_aux, holomorphic, None, who)
    return _by_columns(gradient, argnums, has_aux, holomorphic, who)


def _by_columns(
    fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool, holomorphic: bool, who: str
) -> Callable[P, Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = Argnums.of(fun, args, kwargs, argnums, who, has_aux, holomorphic)
        if not holomorphic:
            _check_real(chosen.leaves, who)
        result, derivative = linearize(chosen.body, *chosen.args)
        if holomorphic:
            for y in tree.leaves(result):
                check_complex(y, who)
        tangents = _in_all_directions(lambda *ts: derivative(*chosen.arguments(ts)), chosen.leaves)
        out = tree.map(
            lambda y: chosen.results(_split_rows(y, chosen.leaves, leading=False)), tangents
        )
        return chosen.body.with_data(out)

    return wrap(jacobian, fun)


def _check_real(leaves: Sequence[Any], who: str) -> None:
    """A complex argument has two real directions, of which forward mode would take one."""
    for x in leaves:
        kind = typeof(x)
        if dtypes.is_complex(kind.dtype):
            raise TypeError(
                f"{who}: an argument is {kind}, at {user_location()}, and forward mode needs real "
                "ones; set holomorphic=True if the function is complex-differentiable, or see jvp"
            )


def _by_rows(
    fun: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool | None,
    who: str,
) -> Callable[P, Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = Argnums.of(fun, args, kwargs, argnums, who, has_aux, holomorphic, allow_int)
        result, pullback = vjp(chosen.body, *chosen.args)
        outs, out_tree = tree.flatten(result)
        for y in outs:
            check_result(y, holomorphic, who)
        gradients = _in_all_directions(lambda *cts: pullback(out_tree.unflatten(cts)), outs)
        split = [_split_rows(g, outs, leading=True) for g in tree.leaves(gradients)]
        jac = out_tree.unflatten([chosen.results([s[i] for s in split]) for i in range(len(outs))])
        return chosen.body.with_data(jac)

    return wrap(jacobian, fun)


def _in_all_directions(linear: Callable[..., Any], leaves: Sequence[Any]) -> Any:
    """``linear`` of each direction in the space of ``leaves``; without leaves there is none."""
    return vmap(linear, axis_size=None if leaves else 0)(*_basis(leaves))


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The standard basis of the space of ``leaves``: one leading axis of all directions."""
    sizes = [typeof(x).size for x in leaves]
    total = sum(sizes)
    out: list[Any] = []
    start = 0
    for x, n in zip(leaves, sizes, strict=True):
        rows = eye(total, n, -start, typeof(x).dtype)
        out.append(rows.reshape(total, *typeof(x).shape))
        start += n
    return out


def _split_rows(x: Any, leaves: Sequence[Any], leading: bool) -> list[Any]:
    """Cut the axis of directions into one part per leaf, in the shape of the leaf."""
    shape = typeof(x).shape
    rest = shape[1:]
    parts: list[Any] = []
    start = 0
    for leaf in leaves:
        kind = typeof(leaf)
        part = slice_(
            x,
            start=(start,) + (0,) * len(rest),
            limit=(start + kind.size, *rest),
            strides=(1,) * len(shape),
        )
        if leading:
            parts.append(reshape(part, shape=(*kind.shape, *rest)))
        else:
            parts.append(reshape(move(part, 0, len(rest)), shape=(*rest, *kind.shape)))
        start += kind.size
    return parts
