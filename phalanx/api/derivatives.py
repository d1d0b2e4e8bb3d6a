"""Derivatives of functions of trees: ``grad``, ``jvp``, ``vjp``, ``linearize`` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from phalanx.api.aot import abstract
from phalanx.api.arguments import NO_STATIC, Flat, LeafNames, check_callable, shown_call, wrap
from phalanx.api.differentiable import (
    Argnums,
    WithAux,
    check_result,
    differentiable,
    flattened,
    result_as_array,
)
from phalanx.api.linear import Pullback, Pushforward, cotangent_sharding, pull, tangent_in, weak_as
from phalanx.api.ref_calls import store_copies
from phalanx.api.stages import watched
from phalanx.api.transformed import P, R
from phalanx.base import dtypes, tree
from phalanx.base.errors import RefError
from phalanx.base.source import name_of, user_location
from phalanx.core.refs import Ref
from phalanx.core.types import ArrayType, typeof
from phalanx.transforms.linearize import LinearMap
from phalanx.transforms.linearize import jvp as jvp_flat
from phalanx.transforms.linearize import linearize as linearize_flat
from phalanx.transforms.partial_eval import partial_eval
from phalanx.transforms.stage import loaded, stage

Aux = TypeVar("Aux")  # what a function gives beside its results


@overload
def vjp(
    fun: Callable[P, R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Pullback, Aux]: ...
@overload
def vjp(
    fun: Callable[P, Any], *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]: ...
def vjp(
    fun: Callable[P, Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Reverse mode: (f(x), c -> f'(x)^T c), the value and the vector-Jacobian product.

    Args:
        fun: a function of trees of arrays.
        *primals: its arguments.
        has_aux: whether ``fun`` returns a pair of results and further data.
        reduce_axes: must be empty; sum over axes with ``lax.psum`` instead.

    Returns:
        The results and the pullback, which takes a tree of cotangents like the results and
        returns a tuple of cotangents like the arguments (and the data, if ``has_aux``).
        Cotangents of integers are zeros of dtype float0. The pullback is itself a tree.

    >>> import phalanx, phalanx.numpy as jnp
    >>> y, pullback = phalanx.vjp(jnp.sin, 0.0)
    >>> float(pullback(2.0)[0])
    2.0
    """
    check_callable(fun, "vjp")
    _check_not_reduced(f"vjp({name_of(fun)})", reduce_axes)
    body = WithAux(fun, has_aux, "vjp")
    flat, leaves, _ = flattened(body, primals, f"vjp({name_of(fun)})")
    outs, linear = linearize_flat(flat, leaves, [differentiable(x) for x in leaves])
    in_types = tuple(typeof(x) for x in leaves)
    out_types = tuple(typeof(y) for y in outs)
    shardings = tuple([cotangent_sharding(x) for x in leaves])
    pullback = Pullback(linear, flat.in_tree, in_types, flat.out_tree, out_types, shardings)
    result = flat.out_tree.unflatten(outs)
    return (result, pullback, body.aux()) if has_aux else (result, pullback)


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """A function that gives the value and the gradient: x -> (fun(x), gradient at x).

    Args:
        fun: returns a real scalar (a complex one if ``holomorphic``), or, if ``has_aux``, a
            pair of it and further data.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.
        allow_int: whether integer arguments are allowed; their gradient has dtype float0.
        reduce_axes: must be empty; sum over axes with ``lax.psum`` instead.

    Returns:
        A function that returns the value (with the data) and the gradient: like the argument,
        or a tuple if ``argnums`` is a sequence.

    Raises:
        TypeError: the result is no scalar, or an argument has a dtype without derivative.

    >>> import phalanx
    >>> phalanx.value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return _value_and_grad(
        "value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes
    )


def _value_and_grad(
    name: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    reduce_axes: Sequence[Any],
) -> Callable[..., Any]:
    """``value_and_grad`` for the public function that errors call ``name``."""
    check_callable(fun, name)
    who = f"{name}({name_of(fun)})"
    _check_not_reduced(who, reduce_axes)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = Argnums.of(fun, args, kwargs, argnums, who, has_aux, holomorphic, allow_int)
        flat, leaves = Flat(chosen.body, chosen.in_tree, NO_STATIC, who), chosen.leaves
        outs, linear = linearize_flat(flat, leaves, [differentiable(x) for x in leaves])
        value = _scalar_result(outs, flat, holomorphic, who)
        types = [typeof(x) for x in leaves]
        one = dtypes.scalar(1, typeof(value).dtype)
        cotangents = pull(linear, [one], types, [cotangent_sharding(x) for x in leaves])
        gradient = chosen.results([result_as_array(g) for g in cotangents])
        return chosen.body.with_data(result_as_array(value)), gradient

    return wrap(watched(value_and_gradient), fun)


@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, R]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, R]]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, Any]],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient function of ``fun``, which has a scalar result: x -> gradient at x.

    Arguments, results and errors are those of ``value_and_grad`` without the value; with
    ``has_aux`` the function returns the gradient and the data.

    Args:
        fun: returns a real scalar (a complex one if ``holomorphic``), or, if ``has_aux``, a pair of
            it and further data.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.
        allow_int: whether integer arguments are allowed; their gradient has dtype float0.
        reduce_axes: must be empty; sum over axes with ``lax.psum`` instead.

    Returns:
        A function with the parameters of ``fun``. It returns the gradient: of one argument a tree
        like that argument, for several ``argnums`` a tuple of them; with ``has_aux`` a pair of the
        gradient and the further data.

    >>> import phalanx
    >>> float(phalanx.grad(lambda x: x**3)(2.0))
    12.0
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrap(gradient, fun)


def _scalar_result(outs: list[Any], flat: Flat, holomorphic: bool, who: str) -> Any:
    if len(outs) != 1 or typeof(outs[0]).shape != ():
        shapes = [str(typeof(o)) for o in outs]
        raise TypeError(
            f"{who}: the function must return a scalar, got "
            f"{shapes[0] if len(shapes) == 1 else 'a tree ' + str(shapes)}; sum or average it, "
            "use has_aux=True for further results, or jacrev for a Jacobian"
        )
    check_result(outs[0], holomorphic, who)
    return outs[0]


@overload
def jvp(
    fun: Callable[P, R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    fun: Callable[P, Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]: ...
def jvp(
    fun: Callable[P, Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Forward mode: (f(x), f'(x) t), the value and the Jacobian-vector product with tangents.

    Args:
        fun: a function of trees of arrays.
        primals: a tuple of its arguments, mutable references among them.
        tangents: a tuple of the same structure; float0 for integers, and for each reference one of
            the same type, which receives the tangent of what is written to the first.
        has_aux: whether ``fun`` returns a pair of results and further data.

    Returns:
        A pair of trees like the result of ``fun``; with ``has_aux`` a triple, the last of it the
        further data.

    Raises:
        TypeError: primals and tangents differ in structure, shape or dtype.

    >>> import phalanx, phalanx.numpy as jnp
    >>> y, t = phalanx.jvp(jnp.sin, (0.0,), (2.0,))
    >>> float(t)
    2.0
    """
    check_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents must be tuples of arguments")
    who = f"jvp({name_of(fun)})"
    body = WithAux(fun, has_aux, who)
    primal_refs, refs = _refs_in(primals)
    flat, leaves, names = flattened(body, primals, who, refs)
    tangent_leaves, treedef = tree.flatten((tuple(tangents), {}))
    if treedef != flat.in_tree:
        raise TypeError(
            f"{who}: the tangents must have the structure of the primals, "
            f"{shown_call(flat.in_tree)}, got {shown_call(treedef)}"
        )
    tangent_refs, others = _refs_in(tangents)
    if refs != others:
        raise RefError(
            f"{who}: the tangent of a reference is a reference, at {user_location()}: primals have "
            f"them at leaves {refs}, tangents at {others}"
        )
    ts = [
        tangent_in(t, typeof(x), names, i, who)
        for i, (t, x) in enumerate(zip(loaded(tangent_leaves), leaves, strict=True))
    ]
    outs, out_ts = jvp_flat(flat, leaves, ts)
    moved = [weak_as(t, typeof(y)) for y, t in zip(outs, out_ts, strict=True)]
    numbers = [refs.index(i) for i in flat.stored]
    outs = store_copies([primal_refs[n] for n in numbers], outs, leaves)
    moved = store_copies([tangent_refs[n] for n in numbers], moved, ts)
    result = flat.out_tree.unflatten(outs)
    slopes = flat.out_tree.unflatten(moved)
    return (result, slopes, body.aux()) if has_aux else (result, slopes)


def _refs_in(args: Sequence[Any]) -> tuple[list[Ref], list[int]]:
    """The references among the leaves of ``args``, and which leaves they are."""
    found = {i: x for i, x in enumerate(tree.leaves((tuple(args), {}))) if type(x) is Ref}
    return [*found.values()], [*found]


@overload
def linearize(
    fun: Callable[P, R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...
@overload
def linearize(fun: Callable[P, Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def linearize(fun: Callable[P, Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value f(x), and the Jacobian-vector product t -> f'(x) t to apply many times.

    The derivative is itself a tree, so it may be the result or an argument of functions that
    are transformed.

    Args:
        fun: a function of trees of arrays.
        primals: the arguments at which it is linearized.
        has_aux: whether ``fun`` returns a pair, of which the second is handed on.

    Returns:
        The result of ``fun``, and a function from tangents, trees like ``primals``, to a tree like
        that result; with ``has_aux`` also the further data.

    >>> import phalanx, phalanx.numpy as jnp
    >>> y, derivative = phalanx.linearize(jnp.sin, 0.0)
    >>> float(derivative(3.0))
    3.0
    """
    check_callable(fun, "linearize")
    body = WithAux(fun, has_aux, f"linearize({name_of(fun)})")
    flat, leaves, _ = flattened(body, primals, body.who)
    outs, linear = linearize_flat(flat, leaves, [differentiable(x) for x in leaves])
    in_types = tuple([typeof(x) for x in leaves])
    out_types = tuple([typeof(y) for y in outs])
    derivative = Pushforward(linear, flat.in_tree, in_types, flat.out_tree, out_types, fun)
    result = flat.out_tree.unflatten(outs)
    return (result, derivative, body.aux()) if has_aux else (result, derivative)


def linear_transpose(
    fun: Callable[P, Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """The transpose of a linear function: c -> f^T c.

    Args:
        fun: a linear function of trees of arrays.
        *primals: examples of its arguments: arrays, or ``ShapeDtypeStruct``.
        reduce_axes: must be empty; sum over axes with ``lax.psum`` instead.

    Returns:
        A function from a tree like the result of ``fun`` to a tuple of trees, one like each of
        ``primals``.

    Raises:
        NotImplementedError: ``reduce_axes`` are given.
        TypeError: an argument is not floating-point or complex, or the function is not linear.
        MissingRule: the function is not linear; the message names the operation.

    >>> import phalanx
    >>> phalanx.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun, "linear_transpose")
    who = f"linear_transpose({name_of(fun)})"
    _check_not_reduced(who, reduce_axes)
    leaves, treedef = tree.flatten((primals, {}))
    names = LeafNames(fun, primals, {}, range(len(primals)))
    types = [_example_type(x, names, i, who) for i, x in enumerate(leaves)]
    flat = Flat(fun, treedef, NO_STATIC, who)
    program, captured = stage(flat, types, name_of(fun))
    first = len(captured)
    program = partial_eval(program, [i >= first for i in range(len(program.inputs))])
    linear = LinearMap(program, captured, (True,) * len(program.outputs))
    shardings = tuple(map(cotangent_sharding, leaves))
    return Pullback(linear, treedef, tuple(types), flat.out_tree, program.output_types, shardings)


def _check_not_reduced(who: str, reduce_axes: Sequence[Any]) -> None:
    if reduce_axes:
        raise NotImplementedError(
            f"{who}: reduce_axes={reduce_axes!r} is not supported; sum the cotangents over these "
            "axes with lax.psum where they are needed"
        )


def _example_type(x: Any, names: LeafNames, i: int, who: str) -> ArrayType:
    kind = abstract(x, names, i, who)
    if not dtypes.is_inexact(kind.dtype):
        raise TypeError(f"{who}: arguments must be floating-point or complex, got {kind}")
    return kind
