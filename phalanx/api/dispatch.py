"""Calling compiled functions: caches, and the fast path."""

# What an array holds is private to users, not to what runs functions on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from phalanx.api import stages
from phalanx.api.arguments import (
    NO_STATIC,
    CallArgs,
    Static,
    dress,
    split_static,
)
from phalanx.api.kept_inputs import put_on_devices
from phalanx.api.retraced import moved
from phalanx.base import log, tree
from phalanx.base.boundary import hide_frames, hiding
from phalanx.base.codegen_flatten import flatten_function
from phalanx.base.config import config, settings
from phalanx.base.errors import DeviceError, NonFiniteError
from phalanx.base.keys import distinctions, key_of
from phalanx.base.malloc_trim import trim_memory
from phalanx.base.recent import Recent, forget_everything
from phalanx.base.source import is_ours, name_of, place_of, user_location
from phalanx.core.refs import Ref, load, store
from phalanx.core.trace import ROOT, entered_trace
from phalanx.run.array import DeviceArray
from phalanx.run.backend import Executable
from phalanx.run.calls import CachedCall, Call, signature
from phalanx.transforms.reach import TRACED_ONCE

# Programs of a function; one that was not called during so many others may be dropped.
CAPACITY = 512


class ArgStructure:
    """The structure of the arguments of calls: in their keys, and to find their leaves.

    Attributes:
        leaves: the function from (args, kwargs) to the leaves, static arguments among them, and
            to None where those have another structure; None if only flattening can tell.
        static: where to take the static ones out, one after the other.
    """

    __slots__ = ("leaves", "static")

    def __init__(self, arguments: CallArgs) -> None:
        """For calls like that with ``arguments``."""
        args, named = arguments.static.marked(ArgStructure).restore(
            arguments.args, arguments.kwargs
        )
        example = tuple(args), named
        self.leaves = flatten_function(example)
        places = [i for i, leaf in enumerate(tree.leaves(example)) if leaf is ArgStructure]
        self.static = [place - taken for taken, place in enumerate(places)]


TRIED = 4  # structures, before arguments are flattened


class Caches:
    """What has been traced and compiled for one function and one choice of options."""

    __slots__ = ("calls", "flat", "recent", "structures", "traced")

    def __init__(self) -> None:
        self.traced: Recent[Any] = Recent(CAPACITY)
        # by the signatures of the leaves, the static values, the settings, and the structure of the
        # arguments, if these are not leaves by position
        self.calls: Recent[CachedCall] = Recent(CAPACITY)
        # by structure, and which arguments are static
        self.structures: Recent[ArgStructure] = Recent(CAPACITY)
        self.flat = False  # whether there are calls without a structure in their key
        self.recent: tuple[ArgStructure, ...] = ()  # those that find leaves, the last ones first

    def key(self, arguments: CallArgs) -> tuple[Any, ...]:
        """The key of the call with these arguments."""
        static = arguments.static
        key = (*arguments.signatures, *static.values, settings().key)
        if not (arguments.kwargs or static.places) and _is_flat(
            arguments.treedef, len(arguments.args)
        ):
            self.flat = True
            return key
        of_structure = arguments.treedef, static.places
        structure = self.structures[of_structure]
        if structure is None:
            structure = self.structures[of_structure] = ArgStructure(arguments)
        if structure.leaves is not None and structure not in self.recent:
            self.recent = (structure, *self.recent[: TRIED - 1])
        return *key, structure

    def find(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CachedCall | None, Sequence[Any]]:
        """The call, and its leaves, if these arguments have a structure that was used lately."""
        array = DeviceArray
        for structure in self.recent:
            leaves: Any = structure.leaves((args, kwargs))  # type: ignore[misc]
            if leaves is None:
                continue
            values = [key_of(leaves.pop(place)) for place in structure.static]
            key: list[Any] = [x._sig if type(x) is array else signature(x) for x in leaves]
            key += *values, settings().key, structure
            try:
                found = self.calls[tuple(key)]
            except Exception:  # a static value that cannot be hashed, whatever its class raises
                continue
            if found is not None:
                return found, leaves
        return None, ()

    def clear(self) -> None:
        """Forget everything."""
        self.traced.clear()
        self.calls.clear()
        self.structures.clear()
        self.flat, self.recent = False, ()


def _is_flat(treedef: Any, count: int) -> bool:
    """Whether (args, kwargs) are ``count`` leaves by position."""
    return treedef.num_nodes == count + 3 == treedef.num_leaves + 3


def clear_caches() -> None:
    """Forget what was traced and compiled for all functions, and for operations outside of them.

    What is called next is traced anew, and compiled unless the cache on disk has it. Memory that is
    free afterwards goes back to the system, where the C library can do that (glibc's can).

    >>> import phalanx
    >>> phalanx.clear_caches()
    """
    forget_everything()
    trim_memory()


# By weak reference to the function, and by what tells it apart from equal ones. What was traced may
# refer to the function in turn, and so keep it alive: then it stays until the table forgets it.
_by_function: Recent[Recent[Caches]] = Recent(4096)


def caches_of(fun: Any, options: tuple[Any, ...]) -> Caches:
    """The caches of ``fun``; they live as long as ``fun`` does."""
    try:
        distinct = tuple(distinctions(fun))
        # The method itself, since functions die too when Python takes modules apart at its end.
        forget = _by_function.forget
        reference = weakref.ref(fun, lambda gone: forget((gone, *distinct)))
        key = (reference, *distinct)
        of_function = _by_function[key]
        if of_function is None:
            of_function = _by_function[key] = Recent(CAPACITY)
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

    fun: Callable[..., Any]
    who: str
    static_nums: tuple[int, ...]
    static_names: frozenset[str]
    donate_nums: tuple[int, ...]
    donate_names: frozenset[str]

    def _remember(self, *options: Any) -> None:
        """Look up the caches for these options."""
        nums = (self.static_nums, self.static_names, self.donate_nums, self.donate_names)
        self.caches = caches_of(self.fun, (type(self), *options, *nums))

    def function(self, *methods: Callable[..., Any]) -> Callable[..., Any]:
        """What users call. Its attributes are those of the function, ``methods``, and all's.

        It is a Python function, because these cost less to call than other objects, and one that
        calls few others.
        """
        fun, caches, calls, find = self.fun, self.caches, self.caches.calls, self.caches.find
        call, split, array, root = self._call, self._split, DeviceArray, ROOT

        def dispatch(*args: Any, **kwargs: Any) -> Any:
            try:
                if entered_trace() is not root:
                    return call(CallArgs.of(fun, *split(args, kwargs)))
                if caches.flat and not kwargs:
                    key: list[Any] = [x._sig if type(x) is array else signature(x) for x in args]
                    key.append(settings().key)
                    found = calls[tuple(key)]
                    if found is not None:
                        return found.run(args)
                found, leaves = find(args, kwargs)
                if found is not None:
                    return found.run(leaves)
                return call(CallArgs.of(fun, *split(args, kwargs)))
            except Exception as error:
                hide_frames(error)
                raise

        dispatch.__dict__.update(getattr(self.fun, "__dict__", {}))
        dress(dispatch, self.fun)
        setattr(dispatch, TRACED_ONCE, True)
        own = self.trace, self.lower, self.eval_shape, self.clear_cache, self._cache_size
        for method in (*own, self._repr_html_, *methods):
            setattr(dispatch, method.__name__, method)
        return dispatch

    def _repr_html_(self) -> str:
        """What notebooks show; the ``repr`` of a Python function cannot be changed."""
        shown = self._shown().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<code>&lt;{shown}&gt;</code>"

    def _shown(self) -> str:
        fun = inspect.unwrap(self.fun)
        ours = is_ours(getattr(getattr(fun, "__code__", None), "co_filename", ""))
        return f"{self.who.partition('(')[0]} of {name_of(fun) if ours else place_of(fun)}"

    def _call(self, arguments: CallArgs) -> Any:
        """Call where nothing was compiled yet, something is static, or a trace is running."""
        raise NotImplementedError

    def _evaluate(self, arguments: CallArgs) -> Any:
        """Call outside of transformations, with what was compiled for such arguments or is now."""
        put_on_devices(arguments, self.who)
        leaves, names = arguments.leaves, arguments.names
        key = self.caches.key(arguments)
        if config.looks_for_nonfinite:
            key = (*key, Dispatched)  # which `dispatch` does not find
        call = self.caches.calls[key]
        if call is None:
            before, calls = len(self.caches.traced), self.caches.calls
            call = self._compiled(arguments)
            explained = settings().explain_cache_misses and before == len(self.caches.traced)
            if explained and calls and not _runs_as(call, calls.values()):
                why, place = moved(key, list(calls), names, len(leaves)), user_location()
                log.warn("Compiling %s again at %s: %s", self.who, place, why)
            calls[key] = call
            if stages.on_compiled or stages.on_compiled_call:
                args, named = arguments.restored()
                stages.notify_compiled(self.trace(*args, **named), leaves)
        if not config.looks_for_nonfinite:
            return call.run(leaves)
        return self._watched(call, arguments)

    def _compiled(self, arguments: CallArgs) -> CachedCall:
        """Compile for such arguments: the call with their leaves."""
        raise NotImplementedError

    def _watched(self, call: CachedCall, arguments: CallArgs) -> Any:
        """``call``, called; if that makes a NaN, once more without compiling, to find where.

        There, numbers that the user gave are Python's, which may fail in other ways.
        """
        try:
            return call.run(arguments.leaves)
        except NonFiniteError as e:
            if not e.repeatable:
                raise
            error = e
        before = {ref: load(ref) for ref in call.refs(arguments.leaves)}
        try:
            with config.override(disable_jit=True), suppress(ZeroDivisionError, OverflowError):
                self._call(arguments)
            raise error
        finally:
            for ref, value in before.items():
                store(ref, value)
            del error  # or the exception would hold itself, through its frames

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Static, tuple[Any, ...], dict[str, Any]]:
        if not self.static_nums and not self.static_names:
            return NO_STATIC, args, kwargs
        return split_static(args, kwargs, self.static_nums, self.static_names, self.who)

    def _donated(self, arguments: CallArgs) -> list[bool]:
        """Per leaf whether its memory may be taken over; that of references is not."""
        marks: list[bool] = []
        for position, arg in zip(arguments.names.where, arguments.args, strict=True):
            marks += [position in self.donate_nums] * len(tree.leaves(arg))
        for name, value in sorted(arguments.kwargs.items()):
            marks += [name in self.donate_names] * len(tree.leaves(value))
        pairs = zip(marks, arguments.leaves, strict=True)
        return [donated and type(x) is not Ref for donated, x in pairs]

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace at the types of the arguments: arrays, numbers or ``ShapeDtypeStruct``."""
        raise NotImplementedError

    @hiding
    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Trace, and prepare for compilation: ``f.lower(x).compile()``."""
        return self.trace(*args, **kwargs).lower()

    @hiding
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        self.caches.clear()

    def _cache_size(self) -> int:
        """The number of kinds of arguments that were compiled for: tests of others ask."""
        return len(self.caches.calls)


def _runs_as(call: CachedCall, others: Iterable[CachedCall]) -> bool:
    """Whether ``call`` runs what one of ``others`` does, so that nothing was compiled for it."""
    own = _executable(call)
    return own is not None and any([_executable(other) is own for other in others])


def _executable(call: CachedCall) -> Executable | None:
    with suppress(DeviceError):  # where there is none for the whole
        return call.prepared.executable if isinstance(call, Call) else None
    return None
