"""Derivatives of functions of trees: ``grad``, ``jvp``, ``vjp``, ``linearize`` and their kin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    LeafNames,
    as_tuple,
    check_callable,
    check_leaf,
    check_same_tree,
    name_of,
    shown_call,
    wrap,
)
from phalanx.api.vmap import vmap
from phalanx.base import dtypes, tree
from phalanx.base.boundary import hiding
from phalanx.core.primitive import ZERO, Linear
from phalanx.core.program import plain
from phalanx.core.trace import carried, trace_of
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import convert, full, instantiate, move, reshape, zeros
from phalanx.ops.shape import slice as slice_
from phalanx.transforms.linearize import DualTracer, LinearMap
from phalanx.transforms.linearize import jvp as jvp_flat
from phalanx.transforms.linearize import linearize as linearize_flat
from phalanx.transforms.stage import is_value, stage
from phalanx.transforms.transpose import backward


def _flat(fun: Callable, args: Sequence[Any], who: str) -> tuple[Flat, list[Any], LeafNames]:
    leaves, treedef = tree.flatten((tuple(args), {}))
    names = LeafNames(fun, args, {}, range(len(args)))
    for i, x in enumerate(leaves):
        if not is_value(x):
            check_leaf(x, names[i], who)
    return Flat(fun, treedef, NO_STATIC, who), leaves, names


def _differentiable(x: Any) -> bool:
    return dtypes.is_inexact(typeof(x).dtype)


def tangent_dtype(type: ArrayType) -> np.dtype:
    """The dtype of tangents of ``type``: the same, or float0 where there is no derivative."""
    return type.dtype if dtypes.is_inexact(type.dtype) else dtypes.float0


def _zero_tangent(type: ArrayType) -> Any:
    if dtypes.is_inexact(type.dtype):
        return zeros(type)
    return np.zeros(type.shape, dtypes.float0)


def _tangent_in(t: Any, kind: ArrayType, names: LeafNames, i: int, who: str) -> Any:
    """A tangent given by the user: checked, and ``ZERO`` where there is no derivative."""
    if not dtypes.is_inexact(kind.dtype):
        given_dtype = getattr(t, "dtype", None)
        if given_dtype is None and t == 0:
            return ZERO
        if given_dtype != dtypes.float0 or t.shape != kind.shape:
            raise TypeError(
                f"{who}: {names[i]} is {kind}, which has no derivative; its tangent must be an "
                f"array of dtype float0 and shape {kind.shape}, got {t!r}"
            )
        return ZERO
    if not is_value(t):
        check_leaf(t, f"the tangent of {names[i]}", who)
    given = typeof(t)
    if given.shape != kind.shape or not (given.dtype == kind.dtype or given.weak):
        raise TypeError(
            f"{who}: the tangent of {names[i]} must be {plain(kind)} like the primal, got "
            f"{plain(given)}"
        )
    if isinstance(t, (int, float, complex)):
        return dtypes.scalar(t, kind.dtype)
    return t


def _given_out(ct: Any, type: ArrayType, name: str, who: str) -> Any:
    """A cotangent given by the user: checked, and ``ZERO`` where there is no derivative."""
    if not dtypes.is_inexact(type.dtype):
        return ZERO
    check_leaf(ct, f"the cotangent of {name}", who)
    given = typeof(ct)
    if given.shape != type.shape or not (given.dtype == type.dtype or given.weak):
        raise TypeError(
            f"{who}: the cotangent of {name} must be {plain(type)} like the result, got "
            f"{plain(given)}"
        )
    return instantiate_scalar(ct, type)


def instantiate_scalar(x: Any, type: ArrayType) -> Any:
    """A Python or NumPy number as a constant of the dtype of ``type``; arrays as they are."""
    return dtypes.scalar(x, type.dtype) if isinstance(x, (int, float, complex)) else x


class Pullback:
    """The function from cotangents of results to cotangents of arguments: a tree of residuals."""

    def __init__(
        self, linear: LinearMap, in_tree: Any, in_types: tuple, out_tree: Any, out_types: tuple
    ) -> None:
        self.linear = linear
        self.in_tree = in_tree
        self.in_types = in_types
        self.out_tree = out_tree
        self.out_types = out_types

    @hiding
    def __call__(self, *cts: Any) -> Any:
        if len(cts) != 1:
            raise TypeError(f"vjp: the pullback takes one tree of cotangents, got {len(cts)}")
        leaves, treedef = tree.flatten(cts[0])
        check_same_tree(treedef, self.out_tree, "vjp", "the cotangents, like the results,")
        given = [
            _given_out(ct, t, f"result {i}", "vjp")
            for i, (ct, t) in enumerate(zip(leaves, self.out_types, strict=True))
        ]
        cotangents = pull(self.linear, given, self.in_types)
        args, _ = self.in_tree.unflatten(cotangents)
        return args

    def __repr__(self) -> str:
        return f"<pullback of {len(self.in_types)} arguments>"


def _like(t: Any, type: ArrayType) -> Any:
    """A tangent or cotangent as weak as the values of ``type`` that it belongs to."""
    if t is ZERO:
        return _zero_tangent(type)
    t = _as_array(t)
    kind = typeof(t)
    return t if kind.weak == type.weak else convert(t, dtype=kind.dtype, weak=type.weak)


def pull(linear: LinearMap, cts: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
    """The cotangents of all arguments: zeros where nothing depends on them."""
    variables = linear.program.inputs[len(linear.residuals) :]
    operands = [*linear.residuals, *(Linear(v.type) for v in variables)]
    given = [ct for ct, n in zip(cts, linear.nonzero, strict=True) if n]
    pulled = iter(backward(linear.program, operands, given))
    out = []
    for t in types:
        ct = next(pulled) if dtypes.is_inexact(t.dtype) else ZERO
        out.append(_like(ct, t))
    return out


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(f(x), c -> f'(x)^T c): the value, and the pullback of cotangents.

    Args:
        fun: a function of trees of arrays.
        *primals: its arguments.
        has_aux: whether ``fun`` returns a pair of results and further data.

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
    body = _Aux(fun, has_aux, "vjp")
    flat, leaves, _ = _flat(body, primals, f"vjp({name_of(fun)})")
    outs, linear = linearize_flat(flat, leaves, [_differentiable(x) for x in leaves])
    in_types = tuple(plain(typeof(x)) for x in leaves)
    out_types = tuple(plain(typeof(y)) for y in outs)
    pullback = Pullback(linear, flat.in_tree, in_types, flat.out_tree, out_types)
    result = flat.out_tree.unflatten(outs)
    return (result, pullback, body.aux()) if has_aux else (result, pullback)


class _Aux:
    """``fun`` without its second result, which is kept aside, cut off from differentiation."""

    def __init__(self, fun: Callable, has_aux: bool, who: str) -> None:
        self.fun = fun
        self.has_aux = has_aux
        self.who = who
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self._data: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self.fun(*args, **kwargs)
        if not self.has_aux:
            return out
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"{self.who}: with has_aux the function must return a pair (result, data), "
                f"got {out!r}"
            )
        self._data = out[1]
        return out[0]

    def aux(self) -> Any:
        """The data, with traced values replaced by their primal parts."""
        return tree.map(_primal, self._data)


def _primal(x: Any) -> Any:
    while isinstance(x, DualTracer) and not trace_of(x).alive:
        x = carried(x)
    return x


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """x -> (f(x), gradient of f at x), for a function with a scalar result.

    Args:
        fun: returns a real scalar (a complex one if ``holomorphic``), or, if ``has_aux``, a
            pair of it and further data.
        argnums: the position or positions of the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair.
        holomorphic: whether ``fun`` is complex-differentiable; then arguments are complex.
        allow_int: whether integer arguments are allowed; their gradient has dtype float0.

    Returns:
        A function that returns the value (with the data) and the gradient: like the argument,
        or a tuple if ``argnums`` is a sequence.

    Raises:
        TypeError: the result is no scalar, or an argument has a dtype without derivative.

    >>> import phalanx
    >>> phalanx.value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun, "grad")
    who = f"grad({name_of(fun)})"

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, where, unpack = _chosen(fun, args, kwargs, argnums, who)
        body = _Aux(partial, has_aux, who)
        leaves, treedef = tree.flatten((chosen, {}))
        names = LeafNames(fun, chosen, {}, where)
        for i, x in enumerate(leaves):
            _check_input(x, names, i, holomorphic, allow_int, who)
        flat = Flat(body, treedef, NO_STATIC, who)
        outs, linear = linearize_flat(flat, leaves, [_differentiable(x) for x in leaves])
        value = _scalar_result(outs, flat, holomorphic, who)
        types = [plain(typeof(x)) for x in leaves]
        one = dtypes.scalar(1, typeof(value).dtype)
        cotangents = pull(linear, [one], types)
        grads, _ = treedef.unflatten([_as_array(g) for g in cotangents])
        result = _as_array(value)
        return ((result, body.aux()) if has_aux else result), unpack(grads)

    return wrap(value_and_gradient, fun)


def _as_array(x: Any) -> Any:
    """A result as an array: constants become arrays of no dimension."""
    if isinstance(x, (np.generic, int, float, complex)):
        return full((), x, typeof(x).dtype)
    return x


def _positions(positions: tuple, count: int, who: str) -> list[int]:
    normalized = []
    for p in positions:
        if not -count <= p < count:
            raise ValueError(
                f"{who}: argnums asks for positional argument {p}, but the call has {count}; "
                "arguments passed by keyword are not differentiated"
            )
        normalized.append(p % count)
    return normalized


def _check_input(
    x: Any, names: LeafNames, i: int, holomorphic: bool, allow_int: bool, who: str
) -> None:
    if not is_value(x):
        check_leaf(x, names[i], who)
    dtype = typeof(x).dtype
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(
            f"{who}: holomorphic=True needs complex arguments, but {names[i]} is {typeof(x)}"
        )
    if not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{who}: {names[i]} is {plain(typeof(x))}, and only floating-point and complex "
            "arguments have a gradient; convert it with .astype(float), choose others with "
            "argnums, or set allow_int=True"
        )


def _scalar_result(outs: list, flat: Flat, holomorphic: bool, who: str) -> Any:
    if len(outs) != 1 or typeof(outs[0]).shape != ():
        shapes = [str(plain(typeof(o))) for o in outs]
        raise TypeError(
            f"{who}: the function must return a scalar, got "
            f"{shapes[0] if len(shapes) == 1 else 'a tree ' + str(shapes)}; sum or average it, "
            "use has_aux=True for further results, or jacrev for a Jacobian"
        )
    dtype = typeof(outs[0]).dtype
    if dtypes.is_complex(dtype) and not holomorphic:
        raise TypeError(
            f"{who}: the function returned a complex number; take its real part or magnitude, or "
            "set holomorphic=True if it is complex-differentiable"
        )
    if not dtypes.is_inexact(dtype):
        raise TypeError(
            f"{who}: the function returned {plain(typeof(outs[0]))}, which has no derivative; it "
            "must return a floating-point number"
        )
    return outs[0]


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """x -> gradient of f at x, for a function with a scalar result.

    Arguments, results and errors are those of ``value_and_grad`` without the value; with
    ``has_aux`` the function returns the gradient and the data.

    >>> import phalanx
    >>> float(phalanx.grad(lambda x: x**3)(2.0))
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrap(gradient, fun)


def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple:
    """(f(x), f'(x) t): the value and the derivative in the direction of the tangents.

    Args:
        fun: a function of trees of arrays.
        primals: a tuple of its arguments.
        tangents: a tuple of the same structure; float0 for integers.
        has_aux: whether ``fun`` returns a pair of results and further data.

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
    body = _Aux(fun, has_aux, who)
    flat, leaves, names = _flat(body, primals, who)
    given, treedef = tree.flatten((tuple(tangents), {}))
    if treedef != flat.in_tree:
        raise TypeError(
            f"{who}: the tangents must have the structure of the primals, "
            f"{shown_call(flat.in_tree)}, got {shown_call(treedef)}"
        )
    ts = [
        _tangent_in(t, typeof(x), names, i, who)
        for i, (t, x) in enumerate(zip(given, leaves, strict=True))
    ]
    outs, out_ts = jvp_flat(flat, leaves, ts)
    tangents_out = [_like(t, typeof(y)) for y, t in zip(outs, out_ts, strict=True)]
    result = flat.out_tree.unflatten([_as_array(y) for y in outs])
    moved = flat.out_tree.unflatten(tangents_out)
    return (result, moved, body.aux()) if has_aux else (result, moved)


class Pushforward:
    """The function from tangents of arguments to tangents of results: a tree of residuals."""

    def __init__(
        self, linear: LinearMap, in_tree: Any, in_types: tuple, out_tree: Any, out_types: tuple,
        fun: Callable,
    ) -> None:  # fmt: skip
        self.linear = linear
        self.in_tree = in_tree
        self.in_types = in_types
        self.out_tree = out_tree
        self.out_types = out_types
        self.fun = fun

    @hiding
    def __call__(self, *tangents: Any) -> Any:
        who = f"linearize({name_of(self.fun)})"
        given, treedef = tree.flatten((tangents, {}))
        check_same_tree(treedef, self.in_tree, who, "the tangents, like the arguments,")
        names = LeafNames(self.fun, tangents, {}, range(len(tangents)))
        checked = [
            _tangent_in(t, kind, names, i, who)
            for i, (t, kind) in enumerate(zip(given, self.in_types, strict=True))
        ]
        dense = [
            instantiate(t, kind)
            for t, kind in zip(checked, self.in_types, strict=True)
            if dtypes.is_inexact(kind.dtype)
        ]
        results = zip(self.linear(dense), self.out_types, strict=True)
        return self.out_tree.unflatten([_like(t, kind) for t, kind in results])

    def __repr__(self) -> str:
        return f"<derivative of {name_of(self.fun)} in {len(self.in_types)} arguments>"


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(f(x), t -> f'(x) t): the value, and the derivative as a function to apply many times.

    The derivative is itself a tree, so it may be the result or an argument of functions that
    are transformed.

    >>> import phalanx, phalanx.numpy as jnp
    >>> y, derivative = phalanx.linearize(jnp.sin, 0.0)
    >>> float(derivative(3.0))
    3.0
    """
    check_callable(fun, "linearize")
    body = _Aux(fun, has_aux, f"linearize({name_of(fun)})")
    flat, leaves, _ = _flat(body, primals, body.who)
    outs, linear = linearize_flat(flat, leaves, [_differentiable(x) for x in leaves])
    in_types = tuple([plain(typeof(x)) for x in leaves])
    out_types = tuple([plain(typeof(y)) for y in outs])
    derivative = Pushforward(linear, flat.in_tree, in_types, flat.out_tree, out_types, fun)
    result = flat.out_tree.unflatten([_as_array(y) for y in outs])
    return (result, derivative, body.aux()) if has_aux else (result, derivative)


def _children(f: Pullback | Pushforward) -> tuple:
    rest = {name: value for name, value in vars(f).items() if name != "linear"}
    return (list(f.linear.residuals),), (f.linear.program, f.linear.nonzero, *rest.values())


def _from_children(kind: type, meta: tuple, children: Any) -> Any:
    program, nonzero, *rest = meta
    return kind(LinearMap(program, children[0], nonzero), *rest)


for _kind in Pullback, Pushforward:
    tree.register_pytree_node(_kind, _children, functools.partial(_from_children, _kind))


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """c -> f^T c, for a function that is linear.

    Args:
        fun: a linear function of trees of arrays.
        *primals: examples of its arguments: arrays, or ``ShapeDtypeStruct``.
        reduce_axes: none; the field no longer has them either.

    Raises:
        NotImplementedError: ``reduce_axes`` are given.
        TypeError: an argument is not floating-point or complex.
        MissingRule: the function is not linear; the message names the operation.

    >>> import phalanx
    >>> phalanx.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun, "linear_transpose")
    who = f"linear_transpose({name_of(fun)})"
    if reduce_axes:
        raise NotImplementedError(
            f"{who}: reduce_axes={reduce_axes!r} is not supported; sum the cotangents over these "
            "axes with lax.psum where they are needed"
        )
    leaves, treedef = tree.flatten((primals, {}))
    types = [_example_type(x, who) for x in leaves]
    flat = Flat(fun, treedef, NO_STATIC, who)
    program, captured = stage(flat, types, name_of(fun))
    linear = LinearMap(program, captured, (True,) * len(program.outputs))
    pullback = Pullback(linear, treedef, tuple(types), flat.out_tree, program.output_types)
    return pullback


def _example_type(x: Any, who: str) -> ArrayType:
    kind = (
        ArrayType(tuple(x.shape), dtypes.canonical(x.dtype))
        if hasattr(x, "shape") and hasattr(x, "dtype")
        else plain(typeof(x))
    )
    if not dtypes.is_inexact(kind.dtype):
        raise TypeError(f"{who}: arguments must be floating-point or complex, got {kind}")
    return kind


# ---- Jacobians --------------------------------------------------------------------------------


def _basis(leaves: Sequence[Any]) -> tuple[list[Any], int]:
    """The standard basis of the space of ``leaves``: one leading axis of all directions."""
    sizes = [typeof(x).size for x in leaves]
    total = sum(sizes)
    out, start = [], 0
    for x, n in zip(leaves, sizes, strict=True):
        rows = np.zeros((total, n), typeof(x).dtype)
        rows[start : start + n] = np.eye(n, dtype=rows.dtype)
        out.append(rows.reshape(total, *typeof(x).shape))
        start += n
    return out, total


def _split_rows(x: Any, leaves: Sequence[Any], leading: bool) -> list[Any]:
    """Cut the axis of directions into one part per leaf, in the shape of the leaf."""
    shape = typeof(x).shape
    rest = shape[1:]
    parts, start = [], 0
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


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """x -> Jacobian of f at x, column by column: cheap where there are few inputs.

    The result has the structure of the results of ``fun``, each leaf replaced by the structure
    of the argument, with shape ``[*result, *argument]``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacfwd")
    who = f"jacfwd({name_of(fun)})"

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, where, unpack = _chosen(fun, args, kwargs, argnums, who)
        body = _Aux(partial, has_aux, who)
        leaves, treedef = tree.flatten(chosen)
        names = LeafNames(fun, chosen, {}, where)
        for i, x in enumerate(leaves):
            _check_input(x, names, i, holomorphic, False, who)
        _, derivative = linearize(body, *chosen)
        columns, _ = _basis(leaves)
        tangents = vmap(lambda *ts: derivative(*treedef.unflatten(ts)))(*columns)
        out = tree.map(
            lambda y: unpack(treedef.unflatten(_split_rows(y, leaves, leading=False))), tangents
        )
        return (out, body.aux()) if has_aux else out

    return wrap(jacobian, fun)


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """x -> Jacobian of f at x, row by row: cheap where there are few outputs.

    The result is laid out as that of ``jacfwd``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacrev")
    who = f"jacrev({name_of(fun)})"

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen, where, unpack = _chosen(fun, args, kwargs, argnums, who)
        body = _Aux(partial, has_aux, who)
        leaves, treedef = tree.flatten(chosen)
        names = LeafNames(fun, chosen, {}, where)
        for i, x in enumerate(leaves):
            _check_input(x, names, i, holomorphic, allow_int, who)
        result, pullback = vjp(body, *chosen)
        outs, out_tree = tree.flatten(result)
        for y in outs:
            if not _differentiable(y):
                raise TypeError(
                    f"{who}: the function returned {plain(typeof(y))}, which has no derivative; it "
                    "must return floating-point or complex numbers (has_aux=True for others), or "
                    "see vjp"
                )
        rows, _ = _basis(outs)
        gradients = vmap(lambda *cts: pullback(out_tree.unflatten(cts)))(*rows)
        split = [_split_rows(g, outs, leading=True) for g in tree.leaves(gradients)]
        jac = out_tree.unflatten(
            [unpack(treedef.unflatten([s[i] for s in split])) for i in range(len(outs))]
        )
        return (jac, body.aux()) if has_aux else jac

    return wrap(jacobian, fun)


def _chosen(fun: Callable, args: tuple, kwargs: dict, argnums: Any, who: str) -> tuple:
    """The function of the chosen arguments alone, they, where they are, and what makes of a tuple
    of results for them the result for ``argnums``, which may name one of them more than once."""
    wanted = _positions(as_tuple(argnums, who, "argnums"), len(args), who)
    where = list(dict.fromkeys(wanted))

    def partial(*chosen: Any) -> Any:
        full = list(args)
        for i, x in zip(where, chosen, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    def unpack(each: tuple) -> Any:
        return each[0] if single else tuple([each[where.index(i)] for i in wanted])

    single = isinstance(argnums, (int, np.integer))
    return partial, tuple([args[i] for i in where]), where, unpack


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """x -> matrix of second derivatives of f at x: forward over reverse.

    >>> import phalanx, phalanx.numpy as jnp
    >>> phalanx.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
