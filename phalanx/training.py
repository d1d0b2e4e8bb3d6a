"""What training programs need besides arrays: losses of labels, means over uneven batches, batches
that processes share, and the state of a run."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

import phalanx.numpy as jnp
from phalanx import random
from phalanx.api.devices import process_count, process_rows
from phalanx.base import tree
from phalanx.base.boundary import bound
from phalanx.base.dtypes import accumulator
from phalanx.base.errors import ArgumentError
from phalanx.base.lengths import integer
from phalanx.base.registry import register_dataclass
from phalanx.core.types import Array, ArrayLike, typeof
from phalanx.nn.normalize import logsumexp
from phalanx.primitives.shape import dimension

__all__ = ["EvenBatch", "Mean", "TrainState", "cross_entropy", "even_batches"]

Params = TypeVar("Params")
Optimizer = TypeVar("Optimizer")


def cross_entropy(logits: ArrayLike, labels: ArrayLike, axis: int = -1) -> Array:
    """The cross-entropy of class labels: minus the logarithm of the probability that softmax gives
    to the right class, log Σ exp(logits) - logits[label].

    It is computed in float32, or in float64 where the logits are, since exp and sums of 16-bit
    numbers lose too many digits.

    Args:
        logits: scores of the classes along ``axis``, of any floating-point dtype.
        labels: the right classes: integers, in the shape of ``logits`` without ``axis``.
        axis: the dimension of the classes.

    Returns:
        The loss of each label, in the shape of ``labels``; NaN where the label is no class.

    Raises:
        TypeError: the labels are not integers, or the logits are complex.
        ValueError: the shapes do not belong together, or there are no classes.
        AxisError: ``logits`` has no dimension ``axis``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import training
    >>> logits = jnp.array([[2.0, 0.0, 0.0], [0.0, 0.0, 100.0]])
    >>> jnp.round(training.cross_entropy(logits, jnp.array([0, 2])), 3).tolist()
    [0.23999999463558197, 0.0]
    """
    scores, classes = jnp.asarray(logits), jnp.asarray(labels)
    if not jnp.issubdtype(classes.dtype, jnp.integer):
        raise TypeError(
            f"training.cross_entropy: labels must be integers, not {classes.dtype}: for "
            "probabilities of the classes, write -(probabilities * nn.log_softmax(logits)).sum(-1)"
        )
    scores = jnp.moveaxis(scores, dimension("training.cross_entropy", axis, scores.ndim), -1)
    if jnp.iscomplexobj(scores):
        raise TypeError(f"training.cross_entropy: logits must be real numbers, not {scores.dtype}")
    if scores.shape[-1] == 0:
        raise ArgumentError(
            f"training.cross_entropy: logits of shape {jnp.shape(logits)} have no classes along "
            f"axis {axis}"
        )
    if scores.shape[:-1] != classes.shape:
        raise ArgumentError(
            f"training.cross_entropy: labels must have the shape of the logits without their "
            f"dimension of classes, {scores.shape[:-1]}, not {classes.shape}"
        )
    scores = scores.astype(accumulator(scores.dtype))
    right = jnp.take_along_axis(scores, classes[..., None], -1, wrap_negative_indices=False)
    return logsumexp(scores, -1) - right[..., 0]


@register_dataclass
@dataclass(frozen=True)
class Mean:
    """A mean that is still a sum and a count, so that parts of any size add up to the exact mean.

    It is a tree of two numbers: ``lax.psum(mean, axis_name)`` is the mean over all lanes, and
    ``a + b`` that over two batches, which may differ in size. The mean of their means would count
    each example of the smaller batch more.

    Args:
        total: the sum of the values, in float32 or wider.
        count: how many there are.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx import lax, training
    >>> def correct(scores, label):
    ...     return lax.psum(training.Mean.of(scores.argmax() == label), "example")
    >>> count = phalanx.pmap(correct, "example", out_axes=None)
    >>> scores, labels = jnp.eye(5), jnp.array([0, 1, 2, 0, 0])
    >>> accuracy = count(scores[:3], labels[:3]) + count(scores[3:], labels[3:])
    >>> print(accuracy, float(accuracy.value))
    3 of 5: 0.6 0.6000000238418579
    """

    total: Any = 0.0
    count: Any = 0

    @classmethod
    def of(cls, values: ArrayLike, where: ArrayLike | None = None) -> Mean:
        """The mean of all elements, or of some.

        Args:
            values: an array of any shape; numbers or bools.
            where: a mask that broadcasts with ``values``: what to count; by default all.

        Returns:
            A ``Mean``: its sum is computed in float32, or in float64 where the values are.

        Raises:
            TypeError: the values are complex.
            ShapeError: the mask does not broadcast to the shape of the values.
        """
        x = jnp.asarray(values)
        if jnp.iscomplexobj(x):
            raise TypeError(f"training.Mean.of: values must be real numbers, not {x.dtype}")
        there = jnp.ones(x.shape, bool) if where is None else jnp.broadcast_to(where, x.shape)
        wide = x.astype(accumulator(jnp.result_type(x.dtype, jnp.float32)))
        return cls(jnp.sum(wide, where=there), jnp.sum(there, dtype=jnp.int32))

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.total + other.total, self.count + other.count)

    @property
    def value(self) -> Array:
        """The mean: an array without dimensions, NaN where nothing was counted."""
        return jnp.asarray(self.total) / self.count

    def __str__(self) -> str:
        return f"{float(self.total):g} of {int(self.count):,}: {float(self.value):g}"


class EvenBatch(NamedTuple):
    """What ``even_batches`` gives: the part of this process in a batch.

    Args:
        rows: integers by which data are indexed.
        of: the number of rows of the batch in all processes together.

    >>> from phalanx import training
    >>> [(rows, of)] = training.even_batches(3, 8)
    >>> print(rows, of)
    [0 1 2] 3
    """

    rows: np.ndarray
    of: int


def _at_least(low: int, what: str, n: Any) -> int:
    number = int(integer("training.even_batches", what, n))
    if number < low:
        raise ArgumentError(f"training.even_batches: {what} must be at least {low}, got {number}")
    return number


def even_batches(
    rows: int, size: int, *, seed: int | None = None, epoch: int = 0
) -> list[EvenBatch]:
    """The batches of an epoch, each divided among the processes: all take equally many, and each
    has at least one row of every batch.

    Without this, a process that has fewer rows ends first, and the others wait for it. The last
    batch is what is left over; rows that are fewer than the processes join the batch before. With
    one process these are ordinary batches.

    Args:
        rows: the number of all rows.
        size: rows in a batch, of all processes together.
        seed: shuffles the rows, in each epoch and in all processes alike; None keeps their order.
        epoch: the number of the epoch, from 0.

    Returns:
        An ``EvenBatch`` for each: pairs of ``rows`` and ``of``. Over several processes a mapped
        function takes ``of`` as a static argument: see "Processes" in the documentation.

    Raises:
        TypeError: one of the arguments is no integer.
        ValueError: there are fewer rows, or smaller batches, than processes, or a number is
            negative.

    >>> from phalanx import training
    >>> for batch in training.even_batches(7, 3):
    ...     print(batch.rows, batch.of)
    [0 1 2] 3
    [3 4 5] 3
    [6] 1
    """
    count, size, least = _at_least(1, "rows", rows), _at_least(1, "size", size), process_count()
    if min(count, size) < least:
        raise ArgumentError(
            f"training.even_batches: {count:,} rows in batches of {size:,} leave some of the "
            f"{least:,} processes without a row"
        )
    order = np.arange(count)
    if seed is not None:
        drawn = _at_least(0, "seed", seed), _at_least(0, "epoch", epoch)
        order = np.random.default_rng(drawn).permutation(count)
    starts = [start for start in range(0, count, size) if start == 0 or count - start >= least]
    batches = [order[start:stop] for start, stop in zip(starts, [*starts[1:], count], strict=True)]
    return [EvenBatch(batch[process_rows(len(batch))], len(batch)) for batch in batches]


@register_dataclass
@dataclass(frozen=True)
class TrainState(Generic[Params, Optimizer]):
    """What a training step takes and returns, and a checkpoint holds: a tree.

    Args:
        params: the parameters, a tree.
        optimizer: the state of the optimizer, a tree.
        key: a random key, the same in the whole run.
        step: how many steps were taken.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx import random, training
    >>> state = training.TrainState(jnp.ones(2), None, random.key(0))
    >>> state = state.next(params=state.params / 2)
    >>> print(state.params, state.step)
    [0.5 0.5] 1
    >>> state
    TrainState(params=f32[2], optimizer=None, key=key<fry>[], step=1)
    """

    params: Params
    optimizer: Optimizer
    key: Any = None
    step: Any = 0

    def __repr__(self) -> str:
        """With the types of arrays: their elements would fill the screen."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields = [f"{name}={tree.map(_described, value)!r}" for name, value in held.items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def next(self, **changed: Any) -> TrainState[Params, Optimizer]:
        """The state after this step.

        Args:
            **changed: fields, and what they are then: ``params`` and ``optimizer``.

        Returns:
            A new state, in which the others are as they were, and ``step`` is one more.

        Raises:
            TypeError: there is no such field.
        """
        return dataclasses.replace(self, **{"step": self.step + 1} | changed)

    @property
    def step_key(self) -> Any:
        """A random key of this step alone: ``key`` with ``step`` folded in."""
        return random.fold_in(self.key, self.step)


def _described(leaf: Any) -> Any:
    return typeof(leaf) if isinstance(leaf, (Array, np.ndarray)) else leaf


bound(sys.modules[__name__], Mean, TrainState)
