"""``jit``: trace a function once per types of its arguments, compile it, call it at low cost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, overload

from phalanx.api.arguments import (
    CallArgs,
    check_callable,
    result_names,
)
from phalanx.api.ref_calls import array_types
from phalanx.api.shardings import ShardingPrefix
from phalanx.api.staged import StagedFunction
from phalanx.api.traced_function import TracedFunction
from phalanx.api.transformed import Compiling, P, R, Wrapped
from phalanx.base.errors import coded
from phalanx.base.nodes import outline
from phalanx.base.source import user_location
from phalanx.control.call import call
from phalanx.control.compiled_call import compiled_call
from phalanx.core.program import Program
from phalanx.run.constrain import constrain, with_result_shardings
from phalanx.run.execute import option_key
from phalanx.run.planning import RequestedShardings
from phalanx.run.runtime import backend as runtime
from phalanx.spmd.named import unreduced_along
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import mesh_spec_of
from phalanx.transforms.stage import loaded


class Jitted(StagedFunction):
    """A compiled function. Called, it does what the function does."""

    kind = "jit"
    results: ClassVar[type[ShardingPrefix]] = ShardingPrefix  # what is asked of them

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any = None,
        static_argnames: Any = None,
        donate_argnums: Any = None,
        donate_argnames: Any = None,
        keep_unused: bool = False,
        device: Any = None,
        backend: str | None = None,
        inline: bool = False,
        compiler_options: dict[str, Any] | None = None,
        in_shardings: Any = None,
        out_shardings: Any = None,
    ) -> None:
        super().__init__(fun, self.kind)
        self.ins = ShardingPrefix(in_shardings, self.who, "in_shardings")
        self.outs = self.results(out_shardings, self.who, "out_shardings")
        static, donated = (static_argnums, static_argnames), (donate_argnums, donate_argnames)
        self._set_positions(static, donated, unset_is_none=True)
        self.keep_unused = keep_unused
        self.device_sharding = _device_sharding(device, backend, self.who)
        if self.device_sharding is not None and not (self.ins.nothing and self.outs.nothing):
            error = ValueError(
                f"{self.who}: {'device' if backend is None else 'backend'} says where all of it "
                f"lies, and so do in_shardings and out_shardings, at {user_location()}; give the "
                "one or the other"
            )
            raise coded(error, "device and shardings")
        self.strict = self.device_sharding is None
        self.compiler_options = dict(compiler_options or {})
        options = option_key(self.compiler_options, self.who)
        self._remember(keep_unused, self.device_sharding, options, self.ins.key, self.outs.key)

    def _one_by_one(self, arguments: CallArgs) -> Any:
        args, kwargs = arguments.restored()
        return self.fun(*args, **kwargs)

    def _bound(self, traced: TracedFunction, arguments: CallArgs) -> Sequence[Any]:
        requested = traced.requested
        operands = _constrained(loaded(arguments.leaves), requested and requested.ins)
        results = self._run(traced.program, [*loaded(traced.captured), *operands])
        return _constrained(results, requested and requested.outs)

    def _run(self, program: Program, operands: Sequence[Any]) -> Sequence[Any]:
        """Bind what stands for this function inside other transformations."""
        if self.compiler_options:
            options = tuple(self.compiler_options.items())
            return compiled_call(*operands, program=program, options=options)
        return call(*operands, program=program)

    def _trace(self, arguments: CallArgs, context: Any) -> TracedFunction:
        types, ins = array_types(arguments.types), self._in_shardings(arguments)
        pairs = zip(types, ins, strict=True)
        flat, staged = self._stage(
            arguments,
            [t if s is None else t.update(spec=mesh_spec_of(s, t.ndim, t.spec)) for t, s in pairs],
        )
        program, captured, written = staged
        first, last = len(written), len(program.outputs) - len(flat.stored)

        def name(i: int) -> str:
            return f"the {result_names(flat.out_tree)[i]}"

        outs = self.outs.of(outline(flat.out_tree), program.output_types[first:last], name)
        outs = [*[None] * first, *outs, *[None] * len(flat.stored)]
        # unreduced where that is asked for, and summed elsewhere
        pairs = zip(outs, program.output_types, strict=True)
        program = with_result_shardings(
            program,
            [None if s is None or unreduced_along(s) == t.unreduced else s for s, t in pairs],
        )
        if self.device_sharding is not None:
            ins, outs = ([self.device_sharding] * len(found) for found in (ins, outs))
        requested = RequestedShardings(tuple(ins), tuple(outs))
        return TracedFunction(program, captured, flat.out_tree, written, flat.stored, requested)

    def _in_shardings(self, arguments: CallArgs) -> list[Sharding | None]:
        """What ``in_shardings`` ask of each argument."""
        if arguments.kwargs and not self.ins.nothing:
            error = ValueError(
                f"{self.who}: in_shardings are those of arguments by position, but "
                f"{', '.join(arguments.kwargs)} is given by name; pass every argument by position"
            )
            raise coded(error, "in_shardings by name")
        return self.ins.of(
            arguments.args, array_types(arguments.types), arguments.names.__getitem__
        )


@overload
def jit(
    fun: Callable[P, R],
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Wrapped[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Compiling: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function just in time: ``fun`` as one program of XLA, with the same values.

    The function is traced once for each combination of shapes and dtypes of its arguments,
    and of values of its static ones. Values that it takes from closures and global variables are
    those at the time of tracing.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays. Without it, a
            decorator with these options is returned.
        in_shardings: how the arguments are sharded: a tree of shardings, or of specs under the
            mesh that is set, that is a prefix of the tuple of positional arguments. Arguments from
            the host, uncommitted ones, and those on the same devices in another order are moved
            accordingly (to an unreduced sharding only by ``device_put``). None: committed arguments
            keep their sharding, and the compiler chooses that of the others.
        out_shardings: the same for the results. None: the compiler chooses.
        static_argnums: positions of arguments that are Python values, fixed while tracing;
            they must be hashable. Each new value is traced and compiled.
        static_argnames: the same by name. If only one of the two is given, an argument is static
            whether it is passed by position or by name.
        donate_argnums: positions of arguments whose memory the results may reuse; the arrays cannot
            be used afterwards. If no result fits into the memory of one, it is kept, with a warning
            when the function is compiled.
        donate_argnames: the same by name.
        keep_unused: whether the compiled program takes the arguments that it does not need.
        device: where to run; the arguments are moved there.
        backend: the platform whose first device is to run it, such as "cpu".
        inline: accepted; XLA inlines calls.
        compiler_options: options of XLA by name, for this function alone.

    Returns:
        A function with the methods ``lower``, ``trace``, ``eval_shape`` and ``clear_cache``.

    Raises:
        TypeError: an argument is no array, or the function needs the value of a traced one.
        ValueError: a static argument is not hashable; XLA does not know an option; both a device
            and a backend are given; a sharding does not fit its argument or result, is over other
            devices than another one, or an argument was placed elsewhere.
        TreeError: the shardings do not fit the tree of arguments or of results.
        NoMesh: a spec stands alone, and no mesh is set.

    >>> import phalanx, phalanx.numpy as jnp
    >>> f = phalanx.jit(lambda x, n: x**n, static_argnums=1)
    >>> f(jnp.arange(4.0), 2)
    Array([0., 1., 4., 9.], dtype=float32)

    >>> rows = phalanx.NamedSharding(phalanx.make_mesh((1,), ("data",)), phalanx.P("data"))
    >>> phalanx.jit(lambda x: x + 1, in_shardings=rows, out_shardings=rows)(jnp.ones(4)).sharding
    NamedSharding(mesh=Mesh('data': 1), spec=P('data'))
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device,
        "backend": backend,
        "inline": inline,
        "compiler_options": compiler_options,
    }
    if fun is None:
        return functools.partial(jit, **options)
    check_callable(fun, "jit")
    return Jitted(fun, **options).function()


def _constrained(
    values: Sequence[Any], shardings: Sequence[Sharding | None] | None
) -> Sequence[Any]:
    """``values``, where ``shardings`` has one for a value in that one; None: for no value."""
    if shardings is None:
        return values
    pairs = zip(values, shardings, strict=True)
    return [x if s is None else constrain(x, sharding=s) for x, s in pairs]


def _device_sharding(device: Any, platform: str | None, who: str) -> Sharding | None:
    """Where the function is to run, if that was said."""
    if device is not None and platform is not None:
        error = ValueError(f"{who}: give a device or a backend, not both")
        raise coded(error, "device and backend")
    if platform is not None:
        device = runtime().local_devices(platform)[0]
    if device is None or isinstance(device, Sharding):
        return device
    if not hasattr(device, "device_kind"):
        raise TypeError(f"{who}: device must be one of phalanx.devices(), got {device!r}")
    return Sharding((device,))
