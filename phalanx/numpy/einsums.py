"""Products by formula: einsum, and the order in which it multiplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, overload

import opt_einsum

from phalanx.base.errors import ShapeError
from phalanx.base.kinds import SEQUENCE
from phalanx.base.recent import memoized
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.contraction import (
    Labels,
    Options,
    arranged,
    contracted,
    factors,
    finished,
    without,
)
from phalanx.numpy.matrices import diagonal
from phalanx.numpy.promotion import ArrayLike, DTypeLike, as_array


@overload
def einsum(
    subscripts: str,
    /,
    *operands: ArrayLike,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: Any = None,
) -> Array: ...
@overload
def einsum(
    operand: ArrayLike,
    axes: Sequence[Any],
    /,
    *others: ArrayLike | Sequence[Any],
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: Any = None,
) -> Array: ...
@takes_out_sharding
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: Any = None,
) -> Array:
    """Einstein summation: the sum of products that a formula such as "ij,jk->ik" describes.

    Each letter, or another character, names a dimension; those that are missing on the right are
    summed over. Without "->" the result has those that occur once, in alphabetical order. "..."
    stands for any dimensions, which broadcast. Alternatively, each operand is followed by a list
    of labels, and the labels of the result come last.

    Args:
        subscripts: the formula: for each operand the names of its dimensions, separated by commas,
            and behind "->" those of the result.
        operands: the arrays, one for each term of the formula.
        out: must be None: arrays are immutable, and results are returned.
        optimize: how opt_einsum chooses the order of contractions; False takes them in turn.
        precision: how exactly float32 is multiplied where hardware has faster, coarser ways.
        preferred_element_type: the dtype of the result and of the sums.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.
        _dot_general: what multiplies two operands, called as ``lax.dot_general``, in its place.

    Returns:
        An array of the dimensions that the formula names for the result.

    Raises:
        ValueError: the formula and the shapes do not fit.

    >>> print(jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.arange(3.0)))
    [3. 3.]
    """
    options = Options("einsum", precision, preferred_element_type, _dot_general)
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    arrays, was_bool = factors("einsum", operands)
    labels, target = _parsed(subscripts, tuple(x.aval.shape for x in arrays))
    terms = [_own_diagonal(x, ls) for x, ls in zip(arrays, labels, strict=True)]
    for step in _path(labels, target, tuple(x.aval.shape for x in arrays), optimize):
        chosen = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        needed = set(target).union(*(ls for _, ls in terms))
        terms.append(_combined(chosen, needed, options))
    ((x, own),) = terms
    x, own = without(x, own, set(own) - set(target))
    return finished(arranged(x, own, target), was_bool, options)


def _combined(terms: list[tuple[Any, Labels]], needed: set[Any], options: Options) -> Any:
    x, xl = terms[0]
    for y, yl in terms[1:]:
        both = tuple(n for n in dict.fromkeys((*xl, *yl)) if n in needed)
        x, xl = contracted(x, xl, y, yl, both, options)
    return x, xl


def _own_diagonal(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """``x`` with dimensions of one label as one: the diagonal."""
    while len(set(labels)) < len(labels):
        name = next(n for n in labels if labels.count(n) > 1)
        i = labels.index(name)
        j = labels.index(name, i + 1)
        x = diagonal(x, 0, i, j)
        labels = (*(n for d, n in enumerate(labels) if d not in (i, j)), name)
    return x, labels


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The formula and the operands of einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    operands, lists = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    target = arguments[-1] if len(arguments) % 2 else None
    used = sorted({n for ls in lists for n in ls if n is not Ellipsis}, key=str)
    letter = {n: opt_einsum.get_symbol(i) for i, n in enumerate(used)}

    def words(labels: Any) -> str:
        return "".join("..." if n is Ellipsis else letter[n] for n in labels)

    formula = ",".join(map(words, lists))
    return formula if target is None else f"{formula}->{words(target)}", operands


@memoized(4096)
def _parsed(formula: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of every operand and of the result; dimensions under "..." are numbered."""
    left, arrow, right = formula.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(shapes):
        raise ValueError(f"einsum: {formula!r} describes {len(words)} operands, got {len(shapes)}")
    labels = tuple(_labelled(w, s, formula) for w, s in zip(words, shapes, strict=True))
    _check_lengths(labels, shapes, formula)
    dots = [n for ls in labels for n in ls if isinstance(n, int)]
    under = tuple(range(min(dots, default=0), 0))  # numbered -1 from the right
    if not arrow:
        every = [n for ls in labels for n in ls if isinstance(n, str)]
        return labels, (*under, *sorted(n for n in set(every) if every.count(n) == 1))
    before, dotted, after = right.partition("...")
    target: Labels = (*before, *(under if dotted else ()), *after)
    known = {n for ls in labels for n in ls}
    for letter in target:
        if letter not in known or target.count(letter) > 1:
            what = "stands there twice" if letter in known else "is in no operand"
            raise ValueError(
                f"einsum: the result of {formula!r} must have distinct letters of the operands; "
                f"{letter!r} {what}"
            )
    return labels, target


def _labelled(word: str, shape: tuple[int, ...], formula: str) -> Labels:
    before, dotted, after = word.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if not {*before, *after}.isdisjoint("->."):
        raise ValueError(
            f"einsum: {formula!r} may contain letters, or other characters in their place, and "
            "',', '...' and one '->'"
        )
    if hidden < 0 or (hidden and not dotted):
        raise ValueError(
            f"einsum: {word!r} in {formula!r} does not fit an operand with {len(shape)} dimensions"
        )
    return (*before, *range(-hidden, 0), *after)


def _check_lengths(labels: Any, shapes: Any, formula: str) -> None:
    lengths: dict[Any, int] = {}
    for ls, shape in zip(labels, shapes, strict=True):
        for name, n in zip(ls, shape, strict=True):
            known = lengths.setdefault(name, n)
            if known == 1:
                lengths[name] = n
            elif n not in (1, known):
                where = f"{name!r}" if isinstance(name, str) else "dimensions under '...'"
                raise ShapeError(
                    f"einsum: {where} in {formula!r} has lengths {known} and {n}, which must be "
                    "equal"
                )


def _path(labels: Any, target: Labels, shapes: Any, optimize: Any) -> Sequence[tuple[int, ...]]:
    """The operands to contract in each step; results go to the end of the list."""
    count = len(labels)
    if count <= 2 or optimize is False:
        return [(0, count - 1 - i) for i in range(count - 1)] if count > 1 else []
    if isinstance(optimize, SEQUENCE):
        return [tuple(step) for step in optimize if not isinstance(step, str)]
    name = "auto" if optimize is True else optimize
    return _best_path(labels, target, shapes, name)


@memoized(1024)
def _best_path(labels: Any, target: Labels, shapes: Any, optimize: str) -> Any:
    names = list(dict.fromkeys(n for ls in labels for n in ls))
    symbol = {n: opt_einsum.get_symbol(i) for i, n in enumerate(names)}
    words = ["".join(symbol[n] for n in ls) for ls in (*labels, target)]
    formula = ",".join(words[:-1]) + "->" + words[-1]
    choice: Any = optimize
    return opt_einsum.contract_path(formula, *shapes, shapes=True, optimize=choice)[0]


def einsum_path(
    subscripts: str, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which ``einsum`` contracts its operands, and a table of its costs.

    Args:
        subscripts: the formula.
        *operands: the arrays.
        optimize: how opt_einsum chooses the order of contractions; False takes them in turn.

    Returns:
        A pair: the positions of the operands that each step contracts, for ``optimize`` of
        ``einsum``, and what opt_einsum knows of that order, which prints as a table.

    >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4)))[0]
    [(0, 1)]
    """
    shapes = [as_array("einsum_path", x).shape for x in operands]
    path, info = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=optimize)
    return [*path], info


@one_program
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices [..., n, k] times vectors [..., k], which gives [..., n].

    Args:
        x1: matrices [..., n, k].
        x2: vectors [..., k].

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> print(jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])))
    [3 7]
    """
    return einsum("...nk,...k->...n", x1, x2)


@one_program
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Conjugated vectors [..., k] times matrices [..., k, n], which gives [..., n].

    Args:
        x1: vectors [..., k].
        x2: matrices [..., k, n].

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> print(jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]])))
    [4 6]
    """
    return einsum("...k,...kn->...n", conj(x1), x2)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The matrix product of several matrices, multiplied in the cheapest order.

    The first and the last may be vectors.

    Args:
        arrays: matrices whose shapes fit; the first and the last may be vectors.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.

    Returns:
        A matrix; a vector or a number, where the first or the last of ``arrays`` is a vector, or
        both are.

    Raises:
        ValueError: there are fewer than two arrays, or one that is no matrix.

    >>> print(jnp.linalg.multi_dot([jnp.ones((1, 2)), jnp.ones((2, 3)), jnp.ones(3)]))
    [6.]
    """
    xs = [as_array("multi_dot", x) for x in arrays]
    if len(xs) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed, got {len(xs)}")
    letters = [opt_einsum.get_symbol(i) for i in range(len(xs) + 1)]
    words = ["".join(p) for p in pairwise(letters)]
    target = letters[0] + letters[-1]
    if xs[0].ndim == 1:
        words[0], target = letters[1], target[1:]
    if xs[-1].ndim == 1:
        words[-1], target = letters[-2], target[:-1]
    if any(x.ndim != len(w) for x, w in zip(xs, words, strict=True)):
        raise ValueError(
            f"multi_dot: matrices are needed, got {', '.join(str(x.aval) for x in xs)}"
        )
    return einsum(",".join(words) + "->" + target, *xs, optimize="optimal", precision=precision)
