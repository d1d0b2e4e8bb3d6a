"""Optimizers for small examples, each a triple of functions: initialize, update, get the
parameters.

``init_fn(params)`` gives a state, ``update_fn(i, grads, state)`` the next one, where i is the step
number, and ``params_fn(state)`` the parameters. For more optimizers and schedules, use optax.

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
from phalanx.base import registry, tree
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
    """The three functions of an optimizer, as a named tuple.

    Args:
        init_fn: ``init_fn(params)`` gives the initial state; ``params`` is a pytree of arrays.
        update_fn: ``update_fn(i, grads, state)`` gives the next state; i is the step number, from
            0.
        params_fn: ``params_fn(state)`` gives the parameters.

    >>> opt = sgd(0.5)
    >>> state = opt.init_fn({"w": jnp.array([3.0])})
    >>> state = opt.update_fn(0, {"w": jnp.array([2.0])}, state)
    >>> print(opt.params_fn(state)["w"])
    [2.]
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """State of an optimizer: the parameters and what is kept for each; a pytree.

    Args:
        packed_state: the arrays, per parameter.
        tree_def: the structure of the parameters.
        subtree_defs: the structure of what is kept, per parameter.

    >>> init, update, params = sgd(0.5)
    >>> float(params(init({"w": jnp.float32(3)}))["w"])
    3.0
    """

    packed_state: tuple[tuple[Any, ...], ...]
    tree_def: tree.PyTreeDef
    subtree_defs: tuple[tree.PyTreeDef, ...]


registry.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, children: OptimizerState(children[0], *structures),
)


class JoinPoint:
    """Marks, in a pytree like the parameters, the state that belongs to one of them.

    Args:
        subtree: the state of that parameter.

    >>> init, _, _ = sgd(0.5)
    >>> type(unpack_optimizer_state(init({"w": 3.0}))["w"]).__name__
    'JoinPoint'
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator: turn an optimizer of single arrays into one of pytrees of arrays.

    Args:
        opt_maker: a function that returns the three functions ``(init, update, get_params)`` for
            one array.

    Returns:
        A function with the same parameters that returns an ``Optimizer``.

    Raises:
        TreeError: when it is used: gradients do not have the structure of the parameters.

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
    """State of an optimizer as a pytree like the parameters, to save it independently of this
    library.

    In place of each parameter stands a ``JoinPoint`` with its state; ``pack_optimizer_state`` is
    the inverse.

    Args:
        opt_state: a state, as ``init_fn`` and ``update_fn`` return it.

    Returns:
        A pytree with the structure of the parameters.

    >>> init, _, params = sgd(0.5)
    >>> marked = unpack_optimizer_state(init({"w": jnp.float32(3)}))
    >>> float(params(pack_optimizer_state(marked))["w"])
    3.0
    """
    return opt_state.tree_def.unflatten(map(JoinPoint, _unpacked(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """State of an optimizer from the result of ``unpack_optimizer_state``.

    Args:
        marked_pytree: a pytree with a ``JoinPoint`` for each parameter.

    Returns:
        An ``OptimizerState``.

    Raises:
        TreeError: a leaf is not a ``JoinPoint``.

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
    """Stochastic gradient descent: x ← x - step_size · g.

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = sgd(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.]
    [-1.]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - step(i) * g

    return _itself, update, _itself


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with momentum: v ← mass · v + g, x ← x - step_size · v.

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        mass: the fraction of the last velocity that is kept.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = momentum(0.5, 0.9)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.]
    [-1.9]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * v, v

    return _with_zeros, update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov momentum: v ← mass · v + g, x ← x - step_size · (mass · v +
    g).

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        mass: the fraction of the last velocity that is kept.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = nesterov(0.5, 0.9)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [-0.9]
    [-3.61]
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
    """AdaGrad: steps divided by the root of the sum of all squared gradients.

    (Duchi, Hazan and Singer, Adaptive subgradient methods, 2011), with momentum.

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        momentum: the fraction of the last step that is kept.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adagrad(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.95]
    [0.8696]
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
    """RMSProp: steps divided by the root of a running mean of squared gradients.

    (Tieleman and Hinton, lecture 6e of Neural Networks for Machine Learning, 2012.)

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        gamma: the decay of the running mean.
        eps: added to the mean square, against division by 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = rmsprop(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [-0.5811]
    [-1.7282]
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
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        gamma: the decay of the running mean.
        eps: added to the mean square, against division by 0.
        momentum: the fraction of the last step that is kept.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = rmsprop_momentum(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [-0.5811]
    [-3.1512]
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
    """Adam: running means of gradients, divided by the root of those of their squares.

    (Kingma and Ba, Adam: a method for stochastic optimization, 2014.)

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        b1: the decay of the running mean of gradients.
        b2: the decay of the running mean of their squares.
        eps: added to the root, against division by 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adam(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.5]
    [0.]
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
    """AdaMax: ``adam`` with a decaying maximum of absolute gradients in place of mean squares.

    (Kingma and Ba, Adam: a method for stochastic optimization, 2014, section 7.1.)

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        b1: the decay of the running mean of gradients.
        b2: the decay of the maximum.
        eps: added to the maximum, against division by 0.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = adamax(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.5]
    [0.]
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
    """SM3: ``adagrad`` in little memory, with one sum of squares per index of each dimension.

    (Anil, Gupta, Koren and Singer, Memory-efficient adaptive optimization, 2019.)

    Args:
        step_size: the learning rate: a number, or a schedule, a function of the step number.
        momentum: the fraction of the last step that is kept.

    Returns:
        An ``Optimizer``: the functions ``init_fn``, ``update_fn`` and ``params_fn``.

    >>> init, update, params = sm3(0.5)
    >>> state = init(jnp.array([1.0]))
    >>> for i in range(2):
    ...     state = update(i, jnp.array([2.0]), state)
    ...     print(params(state).round(4))
    [0.95]
    [0.8696]
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
    """Schedule of a constant step size.

    Args:
        step_size: the step size, a number.

    Returns:
        A schedule: a function from the step number i to the step size.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Schedule of exponential decay: step_size · decay_rate^(i / decay_steps).

    Args:
        step_size: the initial step size.
        decay_steps: after how many steps it is multiplied by ``decay_rate``.
        decay_rate: the factor of the decay.

    Returns:
        A schedule: a function from the step number i to the step size.

    >>> float(exponential_decay(1.0, 10, 0.5)(20))
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Schedule of inverse time decay: step_size / (1 + decay_rate · i / decay_steps).

    Args:
        step_size: the initial step size.
        decay_steps: the time scale of the decay, in steps.
        decay_rate: how much is added to the denominator in that time.
        staircase: whether i / decay_steps is rounded down, so that the step size falls in stairs.

    Returns:
        A schedule: a function from the step number i to the step size.

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
    """Schedule of polynomial decay from one step size to another, which is reached after
    ``decay_steps``.

    Args:
        step_size: the initial step size.
        decay_steps: the number of steps to the final step size.
        final_step_size: the final step size.
        power: the exponent of the polynomial (1 - i / decay_steps)^power; 1 for linear decay.

    Returns:
        A schedule: a function from the step number i to the step size.

    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Schedule of step sizes that change at given steps.

    Args:
        boundaries: the step numbers at which it changes, ascending.
        values: the step sizes, one more than boundaries.

    Returns:
        A schedule: a function from the step number i to the step size.

    Raises:
        ValueError: there are not as many values as boundaries, and one more.

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
    """Schedule of a number, which is constant; a schedule is returned as it is.

    Args:
        scalar_or_schedule: a number, or a function from the step number to one.

    Returns:
        A schedule: a function from the step number i to the step size.

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
    """Euclidean norm of a pytree, as one vector of all its elements.

    Args:
        tree: a pytree of arrays.

    Returns:
        A number, as an array without dimensions.

    >>> print(l2_norm({"a": jnp.array([3.0]), "b": jnp.array([[4.0]])}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x).real for x in _leaves(tree)))


_leaves = tree.leaves


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down so that their norm, as of ``l2_norm``, is at most ``max_norm``.

    Args:
        grad_tree: a pytree of arrays.
        max_norm: the largest norm; gradients of a smaller one are unchanged.

    Returns:
        A pytree like ``grad_tree``.

    >>> print(clip_grads(jnp.array([3.0, 4.0]), 1.0))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


bound(sys.modules[__name__])
