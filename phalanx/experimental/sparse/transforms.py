"""Functions of arrays on entries with positions: ``sparsify``, and derivatives by the entries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx.api import derivatives, jacobians
from phalanx.api.arguments import as_tuple, check_callable, wrap
from phalanx.base import tree
from phalanx.base.source import name_of
from phalanx.control.call import call
from phalanx.core.interpret import interpret
from phalanx.core.program import Equation
from phalanx.core.types import typeof
from phalanx.experimental.sparse.bcoo import BCOO, would_be_dense
from phalanx.experimental.sparse.layouts import Entries
from phalanx.experimental.sparse.matrices import Matrix
from phalanx.experimental.sparse.products import bcoo_dot_general, bcoo_reduce_sum
from phalanx.experimental.sparse.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_transpose,
)
from phalanx.lax.bodies import trace_body

# Functions that are zero at zero.
_ENTRYWISE = (
    "abs", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "conj", "convert", "erf", "erf_inv",
    "expm1", "floor", "imag", "integer_pow", "log1p", "neg", "real", "round", "sign", "sin",
    "sinh", "sqrt", "square", "stop_gradient", "tan", "tanh",
)  # fmt: skip
_LINEAR = ("conj", "convert", "imag", "neg", "real", "stop_gradient")


def _is_sparse(x: Any) -> bool:
    return isinstance(x, (Entries, Matrix))


def todense(arr: Any) -> Any:
    """Dense array of a sparse one; a dense one is returned as it is.

    Args:
        arr: a sparse array, or a dense one, which is the result.

    Returns:
        An array.

    >>> import phalanx.numpy as jnp
    >>> print(todense(BCOO.fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    return tree.map(lambda x: x.todense() if _is_sparse(x) else x, arr, is_leaf=_is_sparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Make a function of dense arrays accept ``BCOO`` for some of them.

    Operations for which zeros stay zeros, such as ``sin`` or products, give a ``BCOO`` again;
    products of matrices with dense arrays give dense ones.

    Args:
        f: a function of pytrees of arrays.
        use_tracer: accepted, and ignored.

    Returns:
        A function of the same parameters, any of whose arguments may be ``BCOO``.

    Raises:
        MissingRule: when it is called: an operation would turn zeros into other numbers, such as
            ``cos``, or has no rule for sparse arrays.

    >>> import phalanx.numpy as jnp
    >>> f = sparsify(lambda m, x: jnp.sum(jnp.sin(m) @ x))
    >>> print(f(BCOO.fromdense(jnp.eye(3)), jnp.ones(3)))
    2.5244129
    """
    check_callable(f, "sparsify")

    def sparse(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=_is_sparse)
        leaves = [x.to_bcoo() if isinstance(x, Matrix) else x for x in leaves]
        types = [x.aval if isinstance(x, Entries) else typeof(x) for x in leaves]
        body = trace_body(f, _called, treedef, types, f"sparsify({name_of(f)})")
        results = interpret(body.program, [*body.captured, *leaves], _step)
        return body.out_tree.unflatten(results)

    return wrap(sparse, f)


def _called(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


def _step(e: Equation, operands: tuple[Any, ...]) -> Any:
    if not any(isinstance(x, Entries) for x in operands):
        return e.prim(*operands, **e.params)
    if e.prim is call or (e.prim.user_rules is not None and e.frame is not None):
        (program,) = e.programs
        return interpret(program, operands, _step)
    name = e.prim.name
    if name in _ENTRYWISE and (name != "integer_pow" or e.params["y"] > 0):
        (mat,) = operands
        mat = mat if name in _LINEAR else mat.sum_duplicates()
        return mat.with_data(e.prim(mat.data, **e.params))
    rule = _RULES.get(name)
    if rule is None:
        raise would_be_dense(f"{name} of {', '.join(map(str, operands))}")
    return rule(*operands, **e.params)


def _of_first(function: Callable[..., Any], message: str) -> Callable[..., Any]:
    """A rule for entries as the first operand alone."""

    def rule(x: Any, y: Any, **params: Any) -> Any:
        if not isinstance(x, Entries):
            raise would_be_dense(f"{message} {y}")
        return function(x, y, **params)

    return rule


def _dot(x: Any, y: Any, *, contract: Any, batch: Any, precision: Any, dtype: Any) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=(contract, batch), preferred_element_type=dtype)


def _multiply(x: Any, y: Any) -> Any:
    return x * y if isinstance(x, Entries) else y * x


def _add(x: Any, y: Any) -> Any:
    return x + y if isinstance(x, Entries) else y + x


def _slice(x: BCOO, *, start: Any, limit: Any, strides: Any = None) -> BCOO:
    return bcoo_slice(x, start_indices=start, limit_indices=limit, strides=strides)


def _broadcast(x: Any, *, shape: Any, dims: Any) -> Any:
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def _concatenate(*xs: Any, dim: int) -> Any:
    mats = [x if isinstance(x, Entries) else BCOO.fromdense(x) for x in xs]
    return bcoo_concatenate(mats, dimension=dim)


def _divide(x: Any, y: Any) -> Any:
    return x / y


def _dynamic_slice(x: Any, *starts: Any, sizes: Any) -> Any:
    return bcoo_dynamic_slice(x, starts, sizes)


def _reduce_sum(x: Any, *, dims: Any) -> Any:
    return x.sum() if len(dims) == x.ndim else bcoo_reduce_sum(x, axes=dims)


def _reshape(x: Any, *, shape: Any) -> Any:
    return bcoo_reshape(x, new_sizes=shape)


def _reverse(x: Any, *, dims: Any) -> Any:
    return bcoo_rev(x, dims)


def _subtract(x: Any, y: Any) -> Any:
    return _add(x, -y)


def _transpose(x: Any, *, perm: Any) -> Any:
    return bcoo_transpose(x, permutation=perm)


_RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "div": _of_first(_divide, "dividing by"),
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "mul": _multiply,
    "reduce_sum": _reduce_sum,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "sub": _subtract,
    "transpose": _transpose,
}


# ---- derivatives ----------------------------------------------------------------------------


def _with_data(x: Any, data: Any) -> Any:
    return x.with_data(data) if _is_sparse(x) else data


def _data(arg: Any) -> Any:
    """``arg`` with the data alone in place of what is sparse."""
    return tree.map(lambda x: x.data if _is_sparse(x) else x, arg, is_leaf=_is_sparse)


def _at_positions(arg: Any, values: Any) -> Any:
    """``values``, which are like ``_data(arg)``, at the positions of ``arg``."""
    leaves, treedef = tree.flatten(arg, is_leaf=_is_sparse)
    return treedef.unflatten(list(map(_with_data, leaves, tree.leaves(values))))


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Value and gradient of ``fun``, as ``phalanx.value_and_grad``, by the entries of sparse
    arguments.

    Args:
        fun: returns a real scalar (a complex one if ``holomorphic``), or, if ``has_aux``, a pair of
            it and further data.
        argnums: the positions of the arguments to differentiate by: an integer, or several.
        has_aux: whether ``fun`` returns a pair.
        kwargs: further arguments of ``phalanx.value_and_grad``, such as ``holomorphic``.

    Returns:
        A function of the same parameters that returns the value and the gradients. Gradients by a
        sparse array are sparse arrays with the same positions.

    >>> import phalanx.numpy as jnp
    >>> m = BCOO.fromdense(jnp.eye(2))
    >>> value, slope = value_and_grad(lambda m, x: jnp.sum(m @ x))(m, jnp.arange(2.0))
    >>> print(value, slope.todense())
    1.0 [[0. 0.]
     [0. 1.]]
    """
    check_callable(fun, "sparse.value_and_grad")
    nums = as_tuple(argnums, "sparse.value_and_grad", "argnums")

    def both(*args: Any, **named: Any) -> tuple[Any, Any]:
        places = [n % len(args) for n in nums]

        def of_data(*data: Any) -> Any:
            arguments = list(args)
            for i, values in zip(places, data, strict=True):
                arguments[i] = _at_positions(args[i], values)
            return fun(*arguments, **named)

        take = derivatives.value_and_grad(of_data, tuple(range(len(nums))), has_aux, **kwargs)
        value, found = take(*[_data(args[i]) for i in places])
        grads = [_at_positions(args[i], g) for i, g in zip(places, found, strict=True)]
        return value, grads[0] if isinstance(argnums, int) else tuple(grads)

    return wrap(both, fun)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Gradient of ``fun``, as ``phalanx.grad``, by the entries of sparse arguments.

    Args:
        fun: returns a real scalar (a complex one if ``holomorphic``), or, if ``has_aux``, a pair of
            it and further data.
        argnums: the positions of the arguments to differentiate by: an integer, or several.
        has_aux: whether ``fun`` returns a pair.
        kwargs: further arguments of ``phalanx.grad``, such as ``holomorphic``.

    Returns:
        A function of the same parameters. Gradients by a sparse array are sparse arrays with the
        same positions.

    >>> import phalanx.numpy as jnp
    >>> m = BCOO.fromdense(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> print(grad(lambda m: jnp.sum((m @ jnp.ones(2)) ** 2))(m).todense())
    [[ 2.  0.]
     [10. 10.]]
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def derived(*args: Any, **named: Any) -> Any:
        value, found = both(*args, **named)
        return (found, value[1]) if has_aux else found

    return wrap(derived, fun)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Jacobian of ``fun``, as ``phalanx.jacfwd``, by the entries of sparse arguments.

    Args:
        fun: returns dense arrays, or, if ``has_aux``, a pair of them and further data.
        argnums: the positions of the arguments to differentiate by: an integer, or several.
        has_aux: whether ``fun`` returns a pair.
        kwargs: further arguments of ``phalanx.jacfwd``, such as ``holomorphic``.

    Returns:
        A function of the same parameters. Jacobians by a sparse array are ``BCOO`` with the
        dimensions of the result for a batch.

    >>> import phalanx.numpy as jnp
    >>> m = BCOO.fromdense(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> slopes = jacfwd(lambda m: m @ jnp.array([5.0, 6.0]))(m)
    >>> slopes, slopes.data.tolist()
    (BCOO(float32[2, 2, 2], nse=3, n_batch=1), [[5.0, 0.0, 0.0], [0.0, 5.0, 6.0]])
    """
    return _jacobian(fun, argnums, has_aux, functools.partial(jacobians.jacfwd, **kwargs))


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Jacobian of ``fun``, as ``phalanx.jacrev``, by the entries of sparse arguments.

    Args:
        fun: returns dense arrays, or, if ``has_aux``, a pair of them and further data.
        argnums: the positions of the arguments to differentiate by: an integer, or several.
        has_aux: whether ``fun`` returns a pair.
        kwargs: further arguments of ``phalanx.jacrev``, such as ``holomorphic``.

    Returns:
        A function of the same parameters. Jacobians by a sparse array are ``BCOO`` with the
        dimensions of the result for a batch.

    >>> import phalanx.numpy as jnp
    >>> m = BCOO.fromdense(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> jacrev(lambda m: jnp.sum(m @ jnp.ones(2)))(m).data.tolist()
    [1.0, 1.0, 1.0]
    """
    return _jacobian(fun, argnums, has_aux, functools.partial(jacobians.jacrev, **kwargs))


jacobian = jacrev


def _jacobian(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, take: Callable[..., Any]
) -> Callable[..., Any]:
    nums = as_tuple(argnums, "sparse.jacobian", "argnums")

    def derived(*args: Any, **named: Any) -> Any:
        places = [n % len(args) for n in nums]
        results: list[Any] = []

        def of_data(*data: Any) -> Any:
            arguments = list(args)
            for i, values in zip(places, data, strict=True):
                arguments[i] = _at_positions(args[i], values)
            out = fun(*arguments, **named)
            results.append(tree.structure(out[0] if has_aux else out))
            return out

        data = tuple([_data(args[i]) for i in places])
        found = take(of_data, tuple(range(len(nums))), has_aux=has_aux)(*data)
        found, *aux = found if has_aux else (found,)
        sparse, treedef = tree.flatten(tuple([args[i] for i in places]), is_leaf=_is_sparse)
        leaves, count = tree.leaves(found), len(sparse)
        each = [leaves[k : k + count] for k in range(0, len(leaves), count)]
        slopes = [treedef.unflatten(list(map(_slopes, sparse, s))) for s in each]
        chosen = [s[0] if isinstance(argnums, int) else s for s in slopes]
        jacobian = results[0].unflatten(chosen)
        return (jacobian, *aux) if has_aux else jacobian

    return wrap(derived, fun)


def _slopes(x: Any, data: Any) -> Any:
    """The derivatives ``data`` by the entries of ``x``, if it is sparse, at their positions."""
    if not _is_sparse(x):
        return data
    x = x.to_bcoo() if isinstance(x, Matrix) else x
    over = data.shape[: data.ndim - x.data.ndim]
    indices = jnp.broadcast_to(x.indices, (*over, *x.indices.shape))
    return BCOO((data, indices), shape=(*over, *x.shape))
