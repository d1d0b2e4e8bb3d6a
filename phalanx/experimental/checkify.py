"""Checks of values inside of transformations: what went wrong is a result of its own.

>>> import phalanx
>>> from phalanx.experimental import checkify
>>> import phalanx.numpy as jnp
>>> def f(x):
...     checkify.check(x > 0, "x must be positive, got {x}", x=x)
...     return jnp.log(x)
>>> error, _ = phalanx.jit(checkify.checkify(f))(-1.0)
>>> error.get().partition(",")[0]
'x must be positive'
"""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.api import aot
from phalanx.api.arguments import NO_STATIC, Flat, LeafNames, check_callable, wrap
from phalanx.api.transformed import P
from phalanx.base import registry, tree
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, CheckFailed
from phalanx.base.extended import is_key
from phalanx.base.source import name_of, user_location
from phalanx.core.types import ArrayType
from phalanx.numpy.promotion import as_array, number_array
from phalanx.primitives.bits import not_
from phalanx.primitives.report import Fault, first_of, report, text_of_report, words_of_fault
from phalanx.random.keys import key_data
from phalanx.transforms.checks import Checks
from phalanx.transforms.stage import stage

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]  # fmt: skip

JaxRuntimeError = CheckFailed

ErrorCategory = str

user_checks = frozenset({"user"})
nan_checks = frozenset({"nan"})
div_checks = frozenset({"div"})
index_checks = frozenset({"oob"})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@registry.register_dataclass
@dataclass(frozen=True, eq=False)
class Error:
    """What went wrong first, if anything did: a value, which goes where arrays go.

    Under ``vmap`` and ``pmap`` it has lanes: each has an error of its own.

    Args:
        words: what the checks say, by their numbers.

    >>> from phalanx.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: x + 1)(1.0)
    >>> error.get() is None
    True
    """

    words: Any

    def get(self) -> str | None:
        """What went wrong, with the line where it was checked; None if nothing did."""
        words = np.asarray(self.words)
        if words.ndim == 1:
            return text_of_report(words)
        lanes = itertools.product(*map(range, words.shape[:-1]))
        found = [(at, text_of_report(words[at])) for at in lanes]
        lines = [f"at mapped index {', '.join(map(str, at))}: {text}" for at, text in found if text]
        return "\n".join(lines) or None

    def throw(self) -> None:
        """Raise ``JaxRuntimeError`` if something went wrong, inside of ``checkify`` report it."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"


init_error = Error(np.zeros(1, np.uint32))
"""The error of nothing."""


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Report ``msg`` unless ``pred`` holds.

    Where everything is known, that raises ``JaxRuntimeError``. In a function that is compiled it
    needs ``checkify`` around it.

    Args:
        pred: a boolean, without dimensions.
        msg: what to say; a format string of the other arguments.
        fmt_args: trees of arrays, which ``{}`` stands for; of keys, it shows the words.
        debug: whether to leave it out where there is no ``checkify`` around.
        fmt_kwargs: trees of arrays, which ``{name}`` stands for.

    Raises:
        TypeError: ``pred`` is no boolean without dimensions, or an argument is no array.
        ValueError: ``msg`` cannot be filled in with the arguments.

    >>> from phalanx.experimental import checkify
    >>> def root(x):
    ...     checkify.check(x >= 0, "the number is {x}", x=x)
    ...     return x**0.5
    >>> error, _ = checkify.checkify(root)(-1.0)
    >>> error.get().splitlines()[0].startswith("the number is -1")
    True
    """
    holds = as_array("check", pred)
    if holds.shape or holds.dtype != np.bool_:
        raise TypeError(f"check: takes a scalar pred of dtype bool, got {holds.aval}; see jnp.all")
    leaves, structure = tree.flatten((fmt_args, fmt_kwargs))
    values = [_shown(x) for x in leaves]
    types = tuple([x.aval.update(weak=False) for x in values])
    _check_format(msg, types, structure)
    fault = Fault("user", f"{msg} (`check` failed)", types, structure, str(user_location()))
    report(words_of_fault(fault, not_(holds), values), debug=debug)


def _shown(x: Any) -> Any:
    """``x`` as the array that messages show; of keys their words."""
    x = as_array("check", x)
    return key_data(x) if is_key(x.dtype) else number_array("check", x)


def _check_format(msg: str, types: Sequence[ArrayType], structure: Any) -> None:
    args, kwargs = structure.unflatten([np.zeros(t.shape, t.dtype) for t in types])
    try:
        msg.format(*args, **kwargs)
    except Exception as error:
        raise ArgumentError(
            f"check: {msg!r} cannot be filled in with what is given, {len(args)} by position and "
            f"{[*kwargs]} by name: {type(error).__name__}: {error}"
        ) from None


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """``check`` with ``debug``: without ``checkify`` around it, nothing happens.

    Args:
        pred: a boolean, without dimensions.
        msg: what to say; a format string of the other arguments.
        *fmt_args: trees of arrays, which ``{}`` stands for.
        **fmt_kwargs: trees of arrays, which ``{name}`` stands for.

    >>> from phalanx.experimental import checkify
    >>> checkify.debug_check(False, "nobody hears of it")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise ``JaxRuntimeError`` if ``error`` has something to say; in ``checkify``, report it.

    Args:
        error: what a function of ``checkify`` returned.

    Raises:
        TypeError: ``error`` is no error of ``checkify``.

    >>> from phalanx.experimental import checkify
    >>> error, y = checkify.checkify(lambda x: x + 1)(1.0)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error: an Error of checkify is needed, got {type(error).__name__}")
    words = as_array("check_error", error.words)
    report(first_of(words) if words.ndim > 1 else words, debug=False)


def checkify(
    f: Callable[P, Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., Any]:
    """A function (x, ...) -> (error, f(x, ...)): what went wrong in ``f``, and its result.

    Args:
        f: a function of trees of arrays.
        errors: what to look for: ``user_checks``, which are those of ``check``; ``nan_checks``;
            ``div_checks`` for divisions by zero; ``index_checks`` for indices outside of arrays;
            both of floating-point numbers, ``float_checks``; all but those of the user,
            ``automatic_checks``; ``all_checks``; or several of these, joined by ``|``.

    Returns:
        A function to be transformed as any other. Its first result is an ``Error``.

    Raises:
        ArgumentError: ``errors`` is no set of kinds of errors.

    >>> from phalanx.experimental import checkify
    >>> import phalanx.numpy as jnp
    >>> error, _ = checkify.checkify(jnp.log, errors=checkify.float_checks)(-1.0)
    >>> error.get().partition(",")[0]
    'nan generated by primitive: log.'
    """
    check_callable(f, "checkify")
    kinds = frozenset(errors)
    if not kinds <= all_checks:
        raise ArgumentError(
            f"checkify: errors are sets such as checkify.all_checks, got {errors!r}"
        )
    who = f"checkify({name_of(f)})"

    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, structure = tree.flatten((args, kwargs))
        names = LeafNames(f, args, kwargs, tuple(range(len(args))))
        types = [aot.abstract(x, names, i, who) for i, x in enumerate(leaves)]
        flat = Flat(f, structure, NO_STATIC, who)
        program, captured = stage(flat, types, name_of(f), names.all())
        checks = Checks.of(program, kinds)
        words, results = checks.run(program, checks.start, [*captured, *leaves])
        return Error(words), flat.out_tree.unflatten(results)

    return wrap(checked, f)


bound(sys.modules[__name__], Error)
