"""Calling compiled functions: caches, and the fast path."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from phalanx.api import stages
from phalanx.api.arguments import (
    NO_STATIC,
    LeafNames,
    Static,
    dress,
    dynamic_positions,
    split_static,
)
from phalanx.api.passing import known
from phalanx.base import tree
from phalanx.base.boundary import hide_frames, hiding
from phalanx.base.config import config, settings
from phalanx.base.errors import NonFiniteError, TracingRefused
from phalanx.base.exact import Exact
from phalanx.base.keys import distinctions
from phalanx.base.recent import Recent, forget_everything
from phalanx.base.source import user_location
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, entered
from phalanx.core.types import ArrayType
from phalanx.run.array import DeviceArray
from phalanx.run.calls import Call, signature
from phalanx.transforms.reach import TRACED_ONCE

_log = logging.getLogger("phalanx")
KEPT = 512  # programs of a function; one that was not called during so many others may be dropped


@dataclass(slots=True)
class TracedFunction:
    """A function traced at types: the program, traced values it closes over, its tree."""

    program: Program
    captured: list[Any]
    out_tree: Any

    @property
    def reusable(self) -> bool:
        """Whether another call may use it: not where it holds values of a transformation."""
        return not self.captured


class Caches:
    """What has been traced and compiled for one function and one choice of options."""

    __slots__ = ("calls", "only", "structures", "traced")

    def __init__(self) -> None:
        self.traced: Recent[Any] = Recent(KEPT)
        # by the settings, what is static, what stands for the structure, and the signatures of
        # the leaves
        self.calls: Recent[Call] = Recent(KEPT)
        # what stands for each structure there, for it is cheaper to hash; nothing does for that
        # of arguments by position of which each is an array
        self.structures: Recent[tuple[Any, ...]] = Recent(KEPT)
        # what stands for the structure that all calls had, if it was one and the same
        self.only: Exact | None = None

    def structure(self, treedef: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """What stands for the structure of these arguments in the keys of ``calls``."""
        key = self.structures[treedef]
        if key is None:
            exact = None
            if not kwargs and treedef.num_nodes == len(args) + 3 == treedef.num_leaves + 3:
                key = ()
            else:
                exact = Exact.of((args, kwargs), sure=kwargs)
                key = (exact or object(),)
            self.only = None if self.structures else exact
            self.structures[treedef] = key
        return key

    def find(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Call | None, Sequence[Any]]:
        """The call, and the leaves of the arguments; None if it is not there."""
        if self.only is not None:
            structure: tuple[Any, ...] | None = (self.only,)
            # cheaper than to flatten, but where it fails it is dear, for the message that nobody
            # reads shows values of arrays
            leaves = self.only.leaves((args, kwargs))
        else:
            leaves, treedef = tree.flatten_call((args, kwargs))
            structure = self.structures[treedef]
        if leaves is None or structure is None:
            return None, ()
        array = DeviceArray
        signs = [x._sig if type(x) is array else signature(x) for x in leaves]
        return self.calls[(settings().key, *structure, *signs)], leaves

    def clear(self) -> None:
        """Forget everything."""
        self.traced.clear()
        self.calls.clear()
        self.structures.clear()
        self.only = None


def clear_caches() -> None:
    """Forget what was traced and compiled for all functions, and for operations outside of them.

    What is called next is traced anew, and compiled unless the cache on disk has it.

    >>> import phalanx
    >>> phalanx.clear_caches()
    """
    forget_everything()


# By weak reference to the function, and by what tells it apart from equal ones. What was traced may
# refer to the function in turn, and so keep it alive: then it stays until the table forgets it.
_by_function: Recent[Recent[Caches]] = Recent(4096)


def caches_of(fun: Any, options: tuple) -> Caches:
    """The caches of ``fun``; they live as long as ``fun`` does."""
    try:
        apart = tuple(distinctions(fun))
        reference = weakref.ref(fun, lambda gone: _by_function.forget((gone, *apart)))
        key = (reference, *apart)
        of_function = _by_function[key]
        if of_function is None:
            of_function = _by_function[key] = Recent(KEPT)
        caches = of_function[options]
        if caches is None:
            caches = of_function[options] = Caches()
        return caches
    except TypeError:  # no weak reference, or not hashable
        return Caches()


class Dispatched:
    """A function that is traced and compiled when it is called, once per types of arguments.

    Subclasses say how, in ``_call``; this class finds again what was compiled before.
    """

    fun: Callable
    who: str
    static_nums: tuple[int, ...]
    static_names: frozenset[str]
    donate_nums: tuple[int, ...]
    donate_names: frozenset[str]

    def _remember(self, *options: Any) -> None:
        """Look up the caches for these options."""
        self.has_static = bool(self.static_nums or self.static_names)
        nums = (self.static_nums, self.static_names, self.donate_nums, self.donate_names)
        self.caches = caches_of(self.fun, (type(self), *options, *nums))

    def function(self, *methods: Callable) -> Callable:
        """What users call. Its attributes are those of the function, ``methods``, and all's.

        It is a Python function, because these cost less to call than other objects.
        """
        caches, calls, has_static = self.caches, self.caches.calls, self.has_static
        call, split, array, root = self._call, self._split, DeviceArray, ROOT

        def dispatch(*args: Any, **kwargs: Any) -> Any:
            try:
                if has_static or entered() is not root:
                    return call(*split(args, kwargs))
                if not kwargs and caches.only is None:
                    signs = [x._sig if type(x) is array else signature(x) for x in args]
                    found = calls[(settings().key, *signs)]
                    if found is not None:
                        return found.run(args)
                found, leaves = caches.find(args, kwargs)
                if found is not None:
                    return found.run(leaves)
                return call(NO_STATIC, args, kwargs)
            except Exception as error:
                hide_frames(error)
                raise

        dispatch.__dict__.update(getattr(self.fun, "__dict__", {}))
        dress(dispatch, self.fun)
        setattr(dispatch, TRACED_ONCE, True)
        for method in (self.trace, self.lower, self.eval_shape, self.clear_cache, *methods):
            setattr(dispatch, method.__name__, hiding(method))
        return dispatch

    def _call(self, static: Static, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call where nothing was compiled yet, something is static, or a trace is running."""
        raise NotImplementedError

    def _evaluate(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence, treedef: Any
    ) -> Any:
        """Call outside of transformations, with what was compiled for such arguments or is now."""
        names = self._names(static, args, kwargs)
        leaves = known(leaves, names, self.who)
        key = self._key(static, treedef, args, kwargs, leaves)
        call = self.caches.calls[key]
        if call is None:
            call = self._compiled(static, args, kwargs, leaves, treedef)
            self.caches.calls[key] = call
        if not config.looks_for_nonfinite:
            return call.run(leaves)
        return self._watched(call, leaves, static, args, kwargs)

    def _meets(self, types: Sequence[ArrayType]) -> None:
        """Before the function is traced at types that it has not been traced at.

        Raises:
            TracingRefused: the option ``no_tracing`` is set.
        """
        if not (settings().no_tracing or settings().explain_cache_misses):
            return
        listed = ", ".join(map(str, types))
        if settings().no_tracing:
            raise TracingRefused(
                f"{self.who}: it has not been traced for arguments ({listed}), at "
                f"{user_location()}, and no_tracing is set"
            )
        new = "these types or static arguments are new" if self.caches.traced else "never seen"
        _log.warning("Tracing %s for arguments (%s): %s", self.who, listed, new)

    def _compiled(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence, treedef: Any
    ) -> Call:
        """Compile for such arguments: the call with their leaves."""
        raise NotImplementedError

    def _key(
        self, static: Static, treedef: Any, args: tuple, kwargs: dict[str, Any], leaves: Sequence
    ) -> tuple:
        """Where in the table is the call with these arguments."""
        structure = self.caches.structure(treedef, args, kwargs)
        key = (*structure, *[signature(x) for x in leaves])
        if static is NO_STATIC and not config.looks_for_nonfinite:
            return settings().key, *key
        return settings().key, static, *key  # which `dispatch` does not find

    def _watched(
        self, call: Call, leaves: Sequence, static: Static, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """``call``, called; if that makes a NaN, once more without compiling, to find where.

        There, numbers that the user gave are Python's, which may fail in other ways.
        """
        try:
            return call.run(leaves)
        except NonFiniteError as e:
            if not e.repeatable:
                raise
            error = e
        try:
            with config.override(disable_jit=True), suppress(ZeroDivisionError, OverflowError):
                self._call(static, args, kwargs)
            raise error
        finally:
            del error  # or the exception would hold itself, through its frames

    def _split(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Static, tuple, dict[str, Any]]:
        if not self.has_static:
            return NO_STATIC, args, kwargs
        return split_static(args, kwargs, self.static_nums, self.static_names, self.who)

    def _names(self, static: Static, args: tuple, kwargs: dict[str, Any]) -> LeafNames:
        return LeafNames(self.fun, args, kwargs, dynamic_positions(len(args), static))

    def _donated(self, static: Static, args: tuple, kwargs: dict[str, Any]) -> list[bool]:
        """Per leaf whether its memory may be taken over."""
        marks: list[bool] = []
        for position, arg in zip(dynamic_positions(len(args), static), args, strict=True):
            marks += [position in self.donate_nums] * len(tree.leaves(arg))
        for name in sorted(kwargs):
            marks += [name in self.donate_names] * len(tree.leaves(kwargs[name]))
        return marks

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace at the types of the arguments: arrays, numbers or ``ShapeDtypeStruct``."""
        raise NotImplementedError

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Trace, and prepare for compilation: ``f.lower(x).compile()``."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        self.caches.clear()
