"""Optimizers as triples of functions: what to begin with, a step, and the parameters.

>>> from phalanx.example_libraries import optimizers
>>> init, update, get_params = optimizers.sgd(0.5)
>>> state = update(0, {"w": 2.0}, init({"w": 3.0}))
>>> float(get_params(state)["w"])
2.0
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import phalanx.numpy as jnp
from phalanx.base import tree
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, TreeError
from phalanx.core.types import Array

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The three functions: of parameters; of a step, gradients and a state; of a state.

    Args:
        init_fn: from the parameters to the state.
        update_fn: from the number of the step, the gradient and the state to the next state.
        params_fn: from the state to the parameters.

    >>> sgd(0.5)._fields
    ('init_fn', 'update_fn', 'params_fn')
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """What an optimizer keeps for each parameter: leaves, and the structures that they have.

    Args:
        packed_state: the arrays.
        tree_def: the structure of the parameters.
        subtree_defs: the structure of the state of each.

    >>> init, update, params = sgd(0.5)
    >>> float(params(init({"w": jnp.float32(3)}))["w"])
    3.0
    """

    packed_state: tuple[tuple[Any, ...], ...]
    tree_def: tree.PyTreeDef
    subtree_defs: tuple[tree.PyTreeDef, ...]


tree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, children: OptimizerState(children[0], *structures),
)


class JoinPoint:
    """Where, in a tree of parameters, the state of one of them begins.

    Args:
        subtree: the tree that was split off.

    >>> init, _, _ = sgd(0.5)
    >>> type(unpack_optimizer_state(init({"w": 3.0}))["w"]).__name__
    'JoinPoint'
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator: a maker of the three functions for one array makes them for trees of arrays.

    Args:
        opt_maker: a function that makes the three functions for one array.

    Returns:
        A function that makes an ``Optimizer``.

    Raises:
        TreeError: gradients have another structure than the parameters.

    >>> @optimizer
    ... def descent(step_size):
    ...     def update(i, g, x):
    ...         return x - step_size * g
    ...     return lambda x: x, update, lambda x: x
    >>> init, update, params = descent(0.5)
    >>> float(params(update(0, {"w": 2.0}, init({"w": 3.0})))["w"])
    2.0
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Any) -> OptimizerState:
            leaves, treedef = tree.flatten(params)
            return _packed([init(x) for x in leaves], treedef)

        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            _check_state("update", state)
            leaves, treedef = tree.flatten(grads)
            if treedef != state.tree_def:
                raise TreeError(
                    f"update: gradients must have the structure of the parameters, "
                    f"{state.tree_def}, got {treedef}"
                )
            pairs = zip(leaves, _unpacked(state), strict=True)
            return _packed([update(i, g, own) for g, own in pairs], treedef)

        def tree_params(state: OptimizerState) -> Any:
            _check_state("get_params", state)
            return state.tree_def.unflatten([get_params(own) for own in _unpacked(state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


def _packed(states: list[Any], treedef: tree.PyTreeDef) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(
        tuple(tuple(leaves) for leaves, _ in flat), treedef, tuple(own for _, own in flat)
    )


def _check_state(who: str, state: Any) -> None:
    if not isinstance(state, OptimizerState):
        raise TypeError(
            f"{who}: a state is needed, as init_fun(params) makes it and update_fun returns it, "
            f"got a {type(state).__name__}"
        )


def _unpacked(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [treedef.unflatten(leaves) for treedef, leaves in pairs]


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree like the parameters, with a ``JoinPoint`` in place of each: to be saved.

    Args:
        opt_state: a state.

    Returns:
        A tree.

    >>> init, _, params = sgd(0.5)
    >>> marked = unpack_optimizer_state(init({"w": jnp.float32(3)}))
    >>> float(params(pack_optimizer_state(marked))["w"])
    3.0
    """
    return opt_state.tree_def.unflatten(map(JoinPoint, _unpacked(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of what ``unpack_optimizer_state`` gave.

    Args:
        marked_pytree: a tree with a ``JoinPoint`` for each parameter.

    Returns:
        The state of an optimizer.

    Raises:
        TreeError: a leaf is no ``JoinPoint``.

    >>> init, _, params = sgd(0.5)
    >>> marked = unpack_optimizer_state(init({"w": jnp.float32(3)}))
    >>> float(params(pack_optimizer_state(marked))["w"])
    3.0
    """
    points, treedef = tree.flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TreeError("pack_optimizer_state: each leaf must be a JoinPoint")
    return _packed([point.subtree for point in points], treedef)


# ---- the optimizers ---------------------------------------------------------------------------


def _itself(x: Any) -> Any:
    return x


def _first(state: Any) -> Any:
    return state[0]


def _with_zeros(x: Any) -> Any:
    return x, jnp.zeros_like(x)


def _with_two_zeros(x: Any) -> Any:
    return x, jnp.zeros_like(x), jnp.zeros_like(x)


@optimizer
def sgd(step_size: Any) -> Any:
    """x - step g. A step size is a number, or a function of the number of the step.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = sgd(0.5)
    >>> print(params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))))
    [0.]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - step(i) * g

    return _itself, update, _itself


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """x - step v, with v = mass v + g.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        mass: the part of the last step that goes on.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = momentum(0.5, 0.9)
    >>> print(params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))))
    [0.]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * v, v

    return _with_zeros, update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """x - step (mass v + g), with v = mass v + g.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        mass: the part of the last step that goes on.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = nesterov(0.5, 0.5)
    >>> print(params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))))
    [-0.5]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * (mass * v + g), v

    return _with_zeros, update, _first


def _over_root(g: Any, total: Any) -> Any:
    """g / √total, and 0 where the total is."""
    there = total > 0
    return jnp.where(there, g / jnp.sqrt(jnp.where(there, total, 1)), 0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Steps over the root of the sum of squares; Duchi, Hazan and Singer, 2011.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        momentum: the part of the last step that goes on.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adagrad(0.5)
    >>> state = update(0, jnp.array([2.0]), init(jnp.array([1.0])))
    >>> params(state).shape
    (1,)
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + g * g
        m = (1 - momentum) * _over_root(g, squares) + momentum * m
        return x - step(i) * m, squares, m

    return _with_two_zeros, update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Steps over the root of a running mean of squares; Hinton, 2012, lecture 6e.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        gamma: how much of the mean of squares stays in a step.
        eps: a small number that keeps the denominator from 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = rmsprop(0.5)
    >>> params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))).shape
    (1,)
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + g * g * (1 - gamma)
        return x - step(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros, update, _first


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """``rmsprop`` with momentum.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        gamma: how much of the mean of squares stays in a step.
        eps: a small number that keeps the denominator from 0.
        momentum: the part of the last step that goes on.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = rmsprop_momentum(0.5)
    >>> params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))).shape
    (1,)
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares * gamma + g * g * (1 - gamma)
        m = momentum * m + step(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with_two_zeros, update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Running means of gradients over the root of those of squares; Kingma and Ba, 2014.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        b1: how much of the mean of gradients stays in a step.
        b2: how much of the measure of their size stays.
        eps: a small number that keeps the denominator from 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adam(0.5)
    >>> state = update(0, jnp.array([2.0]), init(jnp.array([1.0])))
    >>> print(params(state))
    [0.5]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * g * g + b2 * v
        mean, square = m / (1 - b1 ** (i + 1)), v / (1 - b2 ** (i + 1))
        return x - step(i) * mean / (jnp.sqrt(square) + eps), m, v

    return _with_two_zeros, update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """``adam`` with running maxima in place of squares; Kingma and Ba, 2014, section 7.1.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        b1: how much of the mean of gradients stays in a step.
        b2: how much of the measure of their size stays.
        eps: a small number that keeps the denominator from 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adamax(0.5)
    >>> state = update(0, jnp.array([2.0]), init(jnp.array([1.0])))
    >>> print(params(state))
    [0.5]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - step(i) / (1 - b1 ** (i + 1)) * m / (u + eps), m, u

    return _with_two_zeros, update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """``adagrad`` with one sum for each row of each dimension; Anil et al., 2019.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        momentum: the part of the last step that goes on.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = sm3(0.5)
    >>> params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))).shape
    (1,)
    """
    step = make_schedule(step_size)

    def along(values: Any, d: int, ndim: int) -> Any:
        return values.reshape([-1 if k == d else 1 for k in range(ndim)])

    def init(x: Any) -> Any:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, sums = state
        least = functools.reduce(
            jnp.minimum, [along(s, d, x.ndim) for d, s in enumerate(sums)], jnp.inf
        )
        total = (least if sums else 0) + g * g
        m = (1 - momentum) * _over_root(g, total) + momentum * m
        others = [tuple(k for k in range(x.ndim) if k != d) for d in range(x.ndim)]
        return x - step(i) * m, m, [total.max(over) for over in others]

    return init, update, _first


# ---- sizes of steps ---------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """Steps of one size.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.

    Returns:
        A function from the number of a step to its length.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size decay_rate^(i / decay_steps)

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        decay_steps: after how many steps the rate has decayed by its factor, or to its end.
        decay_rate: the factor, or the rate, of the decay.

    Returns:
        A function from the number of a step to its length.

    >>> float(exponential_decay(1.0, 10, 0.5)(20))
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps); with ``staircase`` the quotient is whole.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        decay_steps: after how many steps the rate has decayed by its factor, or to its end.
        decay_rate: the factor, or the rate, of the decay.
        staircase: whether it decays in jumps.

    Returns:
        A function from the number of a step to its length.

    >>> float(inverse_time_decay(1.0, 10, 1.0)(10))
    0.5
    """

    def schedule(i: Any) -> Any:
        done = i / decay_steps
        return step_size / (1 + decay_rate * (jnp.floor(done) if staircase else done))

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """From one size to another by (1 - i / decay_steps)^power.

    Args:
        step_size: the length of a step: a number, or a function of the number of the step.
        decay_steps: after how many steps the rate has decayed by its factor, or to its end.
        final_step_size: where it ends.
        power: of the polynomial.

    Returns:
        A function from the number of a step to its length.

    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The value number k behind k boundaries.

    Args:
        boundaries: the numbers of the steps after which the value changes.
        values: the values, one more.

    Returns:
        A function from the number of a step to its length.

    Raises:
        ValueError: there is not one value more than boundaries.

    >>> rate = piecewise_constant([10, 20], [1.0, 0.1, 0.01])
    >>> [round(float(rate(i)), 2) for i in (0, 15, 30)]
    [1.0, 0.1, 0.01]
    """
    ends, sizes = jnp.array(boundaries), jnp.array(values)
    if ends.ndim != 1 or sizes.shape != (ends.size + 1,):
        raise ArgumentError(
            f"piecewise_constant: n boundaries and n + 1 values are needed, got {ends.aval} and "
            f"{sizes.aval}"
        )
    return lambda i: sizes[jnp.sum(i > ends)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function of the number of the step, of such a function or of a number.

    Args:
        scalar_or_schedule: a number, or a function of the number of the step.

    Returns:
        A function from the number of a step to its length.

    Raises:
        TypeError: it is neither a number nor a function.

    >>> make_schedule(0.1)(3)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        "make_schedule: a number or a function of the step is needed, got "
        f"{type(scalar_or_schedule).__name__}"
    )


# ---- gradients ----------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The root of the sum of the squares of all elements of all leaves.

    Args:
        tree: a tree of arrays.

    Returns:
        A number, as an array without dimensions.

    >>> float(l2_norm({"a": jnp.array([3.0, 4.0])}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x).real for x in _leaves(tree)))


_leaves = tree.leaves


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients, made smaller together where their norm is larger than ``max_norm``.

    Args:
        grad_tree: a tree of arrays.
        max_norm: the largest norm that is left as it is.

    Returns:
        A tree like ``grad_tree``.

    >>> print(clip_grads(jnp.array([3.0, 4.0]), 1.0))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


bound(sys.modules[__name__])
