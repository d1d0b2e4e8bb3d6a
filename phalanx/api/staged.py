"""Functions that are traced and compiled when they are called: what ``jit``, ``pmap`` and
``shard_map`` do alike.

A call outside of transformations is compiled for its arguments, or found again (``dispatch.py``).
In a transformation the traced program is bound there. Ahead of time it is handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api import aot, stages
from phalanx.api.arguments import CallArgs, Flat, check_leaf, static_positions
from phalanx.api.dispatch import Dispatched
from phalanx.api.ref_calls import RefCall, abstract_types, array_types, leaf_types, ref_numbers
from phalanx.api.retraced import TraceKey, reason
from phalanx.api.traced_function import TracedFunction
from phalanx.base import log, tree
from phalanx.base.boundary import hiding
from phalanx.base.config import config, settings
from phalanx.base.errors import TracingRefused
from phalanx.base.phases import phase
from phalanx.base.source import name_of, user_location
from phalanx.core import axes
from phalanx.core.refs import Ref, refuse_aliases
from phalanx.core.trace import ROOT, current
from phalanx.core.types import ArrayType, typeof
from phalanx.run.calls import CachedCall
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import Staged, evaluate, is_value, loaded, stage_with_refs


class StagedFunction(Dispatched):
    """A function that is traced at the types of its arguments, and then compiled or bound.

    Attributes:
        keep_unused: whether the compiled program takes the arguments that it does not need.
        compiler_options: options of XLA by name.
        strict: whether arguments that were placed elsewhere than asked for are refused, not moved.
    """

    def __init__(self, fun: Callable[..., Any], kind: str) -> None:
        self.fun = fun
        self.who = f"{kind}({name_of(fun)})"
        self.keep_unused = True
        self.compiler_options: dict[str, Any] = {}
        self.strict = False

    def _set_positions(
        self, static: tuple[Any, Any], donated: tuple[Any, Any], unset_is_none: bool
    ) -> None:
        """Say which arguments are static and which are donated, each by position and by name;
        ``unset_is_none`` as ``static_positions`` takes it.

        Raises:
            ValueError: there is no such argument, or one is both.
        """
        self.static_nums, self.static_names = static_positions(
            self.fun, *static, self.who, unset_is_none=unset_is_none
        )
        self.donate_nums, self.donate_names = static_positions(
            self.fun, *donated, self.who, "donated", unset_is_none=unset_is_none
        )
        if set(self.static_nums) & set(self.donate_nums):
            raise ValueError(f"{self.who}: an argument cannot be both static and donated")

    # ---- what subclasses say ----

    def _context(self, arguments: CallArgs) -> Any:
        """What ``_trace`` depends on besides the types of arguments, settings and axes in scope:
        None, or a record whose fields say in words of the user what differs."""
        del arguments

    def _trace(self, arguments: CallArgs, context: Any) -> TracedFunction:
        """Trace at the types of ``arguments``, and find the shardings that are asked for.

        Raises:
            ValueError: these are not possible.
        """
        raise NotImplementedError

    def _bound(self, traced: TracedFunction, arguments: CallArgs) -> Sequence[Any]:
        """What the program gives inside other transformations."""
        return evaluate(traced.program, loaded([*traced.captured, *arguments.leaves]))

    def _one_by_one(self, arguments: CallArgs) -> Any:
        """Call without compiling, operation by operation."""
        raise NotImplementedError

    # ---- calls ----

    def _call(self, arguments: CallArgs) -> Any:
        if config.disable_jit:
            return self._one_by_one(arguments)
        return self._evaluate(arguments) if current() is ROOT else self._bind(arguments)

    def _bind(self, arguments: CallArgs) -> Any:
        self._check(arguments)
        traced = self.traced(arguments)
        refuse_aliases(arguments.leaves, traced.captured, self.who)
        results = self._bound(traced, arguments)
        return traced.out_tree.unflatten(traced.store(arguments.leaves, results))

    def _compiled(self, arguments: CallArgs) -> CachedCall:
        arguments.types = leaf_types(arguments.leaves, typeof)
        traced, call = self._traced_call(arguments)
        if traced.captured or Ref in map(type, arguments.leaves):
            return RefCall(traced, self.who, call.with_captured().compiled)
        return call.compiled(arguments.leaves, traced.out_tree)

    def _check(self, arguments: CallArgs) -> None:
        """Find the types of arguments.

        Raises:
            TypeError: one is no array and no number.
        """
        for i, x in enumerate(arguments.leaves):
            if not is_value(x) and type(x) is not Ref:
                check_leaf(x, arguments.names[i], self.who)
        arguments.types = leaf_types(arguments.leaves, typeof)

    # ---- tracing ----

    def traced(self, arguments: CallArgs) -> TracedFunction:
        """The function traced at the types of ``arguments``: once, unless it captures traced
        values."""
        context = self._context(arguments)
        key = TraceKey(
            arguments.static, arguments.treedef, arguments.types, config.key, axes.key(), context
        )
        traced = self.caches.traced[key]
        if traced is None:
            self._note(key, arguments)
            with phase("tracing"):
                traced = self._trace(arguments, context)
            if traced.reusable:
                self.caches.traced[key] = traced
        return traced

    def _stage(self, arguments: CallArgs, types: Sequence[ArrayType]) -> tuple[Flat, Staged]:
        """The function of the leaves of ``arguments``, and what tracing it at ``types`` gave."""
        flat, names = self._flat(arguments), arguments.names.all()
        return flat, stage_with_refs(flat, types, name_of(self.fun), names)

    def _flat(self, arguments: CallArgs) -> Flat:
        """The function of the leaves of ``arguments``."""
        return Flat(
            self.fun, arguments.treedef, arguments.static, self.who, ref_numbers(arguments.types)
        )

    def _note(self, key: TraceKey, arguments: CallArgs) -> None:
        """Say that the function is traced for a call with ``key``, and why.

        Raises:
            TracingRefused: the option ``no_tracing`` is set.
        """
        if not (settings().no_tracing or settings().explain_cache_misses):
            return
        listed, place = ", ".join(map(str, array_types(arguments.types))), user_location()
        if settings().no_tracing:
            raise TracingRefused(
                f"{self.who}: it has not been traced for arguments ({listed}), at {place}, and "
                "no_tracing is set"
            )
        why = reason(self.fun, key, list(self.caches.traced), arguments.names)
        log.warn("Tracing %s for arguments (%s) at %s: %s", self.who, listed, place, why)

    # ---- ahead of time ----

    @hiding
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace at the types of the arguments: arrays, numbers or ``ShapeDtypeStruct``."""
        arguments = CallArgs.of(self.fun, *self._split(args, kwargs))
        names = arguments.names
        arguments.types = abstract_types(arguments.leaves, names, self.who)
        shardings = aot.shardings_of(arguments.leaves, names, self.who)
        _, call = self._traced_call(arguments, shardings)
        call.check_followed(shardings)
        return stages.Traced(call)

    def _traced_call(
        self, arguments: CallArgs, shardings: Sequence[Sharding | None] = ()
    ) -> tuple[TracedFunction, stages.TracedCall]:
        """The function traced for ``arguments``, which lie as ``shardings``; and the call, with all
        that compiling it takes."""
        traced = self.traced(arguments)
        return traced, stages.TracedCall(
            self.who, arguments.names, arguments.static, traced.program, traced.captured,
            tree.structure((arguments.args, arguments.kwargs)), traced.out_tree,
            array_types(arguments.types), shardings, self._donated(arguments), traced.requested,
            self.keep_unused, self.compiler_options, self.strict, traced.store, traced.rewritten,
            traced.stored, self._arranged(arguments),
        )  # fmt: skip

    def _arranged(self, arguments: CallArgs) -> stages.Arranged:
        """The leaves of later calls, whose arguments must have the structure of ``arguments``."""
        del arguments
        return stages.as_they_are
