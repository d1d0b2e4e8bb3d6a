"""Functions as portable modules: ``export``, and calling what was exported."""

# What a traced function holds is private to users, not to what exports and compiles it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from phalanx.api import aot
from phalanx.api.arguments import LeafNames, shown_call
from phalanx.api.custom_vjp import custom_vjp
from phalanx.api.derivatives import vjp
from phalanx.api.enclosing import enclosing
from phalanx.api.jit import jit
from phalanx.api.lowering_platforms import checked_platforms, used_platform
from phalanx.api.portable_bytes import (
    describe_mesh,
    describe_sharding,
    describe_tree,
    describe_type,
    mesh_of,
    pack,
    read_sharding,
    tree_of,
    type_of,
    understood,
    unpack,
)
from phalanx.api.stages import TracedCall
from phalanx.api.symbolic import SymbolicScope, constraints_of, symbolic_shape
from phalanx.api.transformed import P
from phalanx.base import dtypes, tree
from phalanx.base.boundary import hiding
from phalanx.base.config import settings
from phalanx.base.errors import MissingRule, NoMesh, RefError, TreeError
from phalanx.base.extended import is_key
from phalanx.base.lengths import Length, numbered, symbolic
from phalanx.base.source import user_location
from phalanx.control.call import call
from phalanx.control.exported import PortableModule, exported
from phalanx.control.foreign_call import foreign_call
from phalanx.core.length_variables import numbers_of
from phalanx.core.program import Equation, Program
from phalanx.core.refs import Ref
from phalanx.core.types import ArrayType, Types, typeof
from phalanx.primitives.basis import random_unwrap, random_wrap
from phalanx.primitives.callback import host_call
from phalanx.primitives.resharding import without_spec
from phalanx.run.array import Signature, default_sharding
from phalanx.run.constrain import constrain
from phalanx.run.planning import check_devices, constraints, type_shardings, with_devices
from phalanx.run.portable_modules import export_program
from phalanx.run.runtime import backend
from phalanx.spmd.constraint import as_named, is_abstract
from phalanx.spmd.mesh import AbstractMesh, AnyMesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import type_of as typed
from phalanx.transforms.dce import dce

Shardings = tuple[NamedSharding | None, ...]  # of several values, where something is said
minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10  # they differ in what these modules do not have


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check of ``export`` that is left out.

    >>> DisabledSafetyCheck.custom_call("my_function"), DisabledSafetyCheck.platform()
    (custom_call:my_function, platform)
    """

    _what: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let what was exported be called on platforms for which it was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let a function be exported that calls the foreign function ``target_name``.

        Whoever calls it must have registered the same function under this name.

        Args:
            target_name: the name under which the function is registered.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the foreign function that may be called, if it is such a check."""
        kind, _, name = self._what.partition(":")
        return name if kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._what


@dataclass(frozen=True, eq=False)
class Exported:
    """A function as a portable module, with what is needed to call it: what ``export`` gives.

    Attributes:
        fun_name: the name of the function.
        in_tree: the structure of the arguments, ``(args, kwargs)``, without the static ones.
        in_avals: the types of the leaves of the arguments.
        out_tree: the structure of the results.
        out_avals: the types of the leaves of the results.
        platforms: those that it was exported for.
        mlir_module_serialized: the module, as a portable artifact of StableHLO. Its main function
            takes the leaves of the arguments in order, of random keys the words in a last
            dimension; if there are several platforms, the number of one of them, an int32, before.
        disabled_safety_checks: the checks that were left out.
        calling_convention_version: of what the main function takes and gives.

    >>> import phalanx
    >>> from phalanx import export
    >>> exported = export.export(phalanx.jit(lambda x: 2 * x))(jnp.ones(3))
    >>> exported.fun_name, exported.in_avals[0].shape, exported.nr_devices
    ('<lambda>', (3,), 1)
    """

    fun_name: str
    in_tree: Any
    in_avals: Types
    out_tree: Any
    out_avals: Types
    platforms: tuple[str, ...]
    mlir_module_serialized: bytes = field(repr=False)
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    calling_convention_version: int
    _mesh: AbstractMesh | None = field(repr=False)
    _in_shardings: Shardings = field(repr=False)
    _out_shardings: Shardings = field(repr=False)
    _derivative: Callable[[], Exported | None] = field(repr=False)

    ordered_effects = ()
    unordered_effects = ()

    @property
    def nr_devices(self) -> int:
        """How many devices it runs on."""
        return 1 if self._mesh is None else self._mesh.size

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing of any argument: see ``in_shardings_jax``."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing of any result: see ``out_shardings_jax``."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: AnyMesh) -> Shardings:
        """How the leaves of the arguments lie; None for those of which it was not said.

        Args:
            mesh: of the devices on which it is called, with the axes for which it was exported.

        Raises:
            ValueError: it has other axes, or other types of them.

        >>> import phalanx, phalanx.numpy as jnp
        >>> mesh = AbstractMesh((4,), ("data",))  # which need not be here
        >>> rows = phalanx.NamedSharding(mesh, phalanx.P("data"))
        >>> exported = export(phalanx.jit(jnp.sin, in_shardings=rows))(jnp.ones(8))
        >>> exported.nr_devices, exported.in_shardings_jax(mesh)
        (4, (NamedSharding(mesh=AbstractMesh('data': 4), spec=P('data')),))
        """
        return tuple([_over(mesh, s) for s in self._in_shardings])

    def out_shardings_jax(self, mesh: AnyMesh) -> Shardings:
        """How the leaves of the results lie; None for those of which it was not said.

        Args:
            mesh: of the devices on which it is called, with the axes for which it was exported.

        Raises:
            ValueError: it has other axes, or other types of them.
        """
        return tuple([_over(mesh, s) for s in self._out_shardings])

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Which leaves of the arguments the module takes: all."""
        return tuple(range(len(self.in_avals)))

    @property
    def uses_global_constants(self) -> bool:
        """Whether the module takes the number of the platform."""
        return len(self.platforms) > 1

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, platforms={self.platforms})"

    def mlir_module(self) -> str:
        """The module as text.

        >>> import phalanx
        >>> x = phalanx.ShapeDtypeStruct((3,), "float32")
        >>> exported = export(phalanx.jit(lambda x: x + x))(x)
        >>> "stablehlo.add" in exported.mlir_module()
        True
        """
        return backend().exported_text(self.mlir_module_serialized)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """All of it as bytes, which ``deserialize`` reads, in later versions, too.

        Args:
            vjp_order: up to which order derivatives come along.

        Raises:
            ValueError: the order is negative, or there is no derivative of that order; arguments or
                results have nodes of which nobody said how they are written.

        >>> import phalanx
        >>> exported = export(phalanx.jit(lambda x: x * x))(1.0)
        >>> again = deserialize(exported.serialize(vjp_order=1))
        >>> print(phalanx.grad(again.call)(3.0))
        6.0
        """
        if vjp_order < 0:
            raise ValueError(f"Exported.serialize: vjp_order must be 0 or more, got {vjp_order}")
        parts: list[tuple[dict[str, Any], bytes]] = []
        one = self
        for order in range(vjp_order + 1):
            parts.append((one._description(), one.mlir_module_serialized))
            further = one.vjp() if order < vjp_order else one
            if further is None:
                raise ValueError(
                    f"Exported.serialize: {self.fun_name} was loaded with derivatives up to order "
                    f"{order}, and vjp_order is {vjp_order}"
                )
            one = further
        return pack(parts)

    def _description(self) -> dict[str, Any]:
        return {
            "fun_name": self.fun_name,
            "in_tree": describe_tree(self.in_tree, "an argument"),
            "in_avals": list(map(describe_type, self.in_avals)),
            "constraints": constraints_of(self.in_avals),
            "out_tree": describe_tree(self.out_tree, "a result"),
            "out_avals": list(map(describe_type, self.out_avals)),
            "platforms": self.platforms,
            "disabled_safety_checks": list(map(str, self.disabled_safety_checks)),
            "calling_convention_version": self.calling_convention_version,
            "mesh": describe_mesh(self._mesh),
            "in_shardings": list(map(describe_sharding, self._in_shardings)),
            "out_shardings": list(map(describe_sharding, self._out_shardings)),
        }

    def has_vjp(self) -> bool:
        """Whether there is a derivative: what was deserialized has it if it was serialized."""
        return self.vjp() is not None

    def vjp(self) -> Exported | None:
        """The derivative, exported in turn; None where what was deserialized came without.

        It takes the leaves of the arguments, and then a cotangent for each leaf of the results,
        float0 where that has no derivative. It gives a tuple of cotangents of the leaves of the
        arguments.

        >>> import phalanx
        >>> exported = export(phalanx.jit(lambda x: x * x))(1.0)
        >>> print(exported.vjp().call(3.0, 1.0)[0])
        6.0
        """
        return self._cached_derivative

    @functools.cached_property
    def _cached_derivative(self) -> Exported | None:
        return self._derivative()

    @hiding
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives, without its static arguments, for they are fixed.

        It can be called inside all transformations. Lanes of ``vmap`` and ``pmap`` run one after
        the other on a device. It has the derivative in reverse mode that ``vjp`` gives. What was
        exported for several devices runs on as many, in any mesh, over which the arguments lie or
        which is set; its arguments and results are laid out as it was exported.

        Args:
            *args: arrays of the shapes and dtypes that it was exported for.
            **kwargs: the same by name.

        Raises:
            TreeError: the structure of the arguments differs from that for which it was exported.
            ValueError: a shape or a dtype differs, or it is called on another platform, or for
                several devices in a ``pmap`` or ``shard_map``.
            NoMesh: it was exported for more or fewer devices than there are in this program.

        >>> import phalanx, phalanx.numpy as jnp
        >>> exported = export(phalanx.jit(jnp.sin))(1.0)
        >>> print(phalanx.grad(exported.call)(0.0))
        1.0
        """
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            raise TreeError(
                f"Exported.call: {self.fun_name} was exported for arguments of the structure "
                f"{shown_call(self.in_tree)} and is called with {shown_call(treedef)}, at "
                f"{user_location()}"
            )
        axes_in_scope = enclosing()
        if self._mesh and axes_in_scope:
            raise ValueError(
                f"Exported.call: {self.fun_name} was exported for {self.nr_devices} devices and is "
                f"called in {axes_in_scope}, at {user_location()}, where each device runs what it "
                "does by itself; call it outside, or export what one device does"
            )
        names = LeafNames(self.call, args, kwargs, range(len(args)))
        types = [aot.abstract(x, names, i, "Exported.call") for i, x in enumerate(leaves)]
        for i, (actual, expected) in enumerate(zip(types, self.in_avals, strict=True)):
            if not _fits(actual, expected):
                raise ValueError(
                    f"Exported.call: {self.fun_name} was exported for {expected} as {names[i]} and "
                    f"is called with {actual}, at {user_location()}; convert it, or export for its "
                    "type"
                )
        try:
            return self.out_tree.unflatten(self._at_lengths_of(types)._ruled(*leaves))
        except NoMesh:
            raise NoMesh(
                f"Exported.call: {self.fun_name} was exported for {self.nr_devices} devices and is "
                f"called where there are more or fewer, at {user_location()}; place the arguments "
                "over a mesh of as many, or set one with phalanx.set_mesh(mesh)"
            ) from None

    def _at_lengths_of(self, types: Sequence[ArrayType]) -> Exported:
        """This for arguments with the lengths of ``types``: itself where no length is symbolic."""
        pairs = zip(self.in_avals, types, strict=True)
        dims = [(n, size) for t, g in pairs for n, size in zip(t.shape, g.shape, strict=True)]
        unknown = [(n, size) for n, size in dims if isinstance(n, Length)]
        if not unknown:
            return self
        lengths, sizes = zip(*unknown, strict=True)
        try:
            numbers = numbers_of(lengths, sizes)
        except ValueError as e:
            raise ValueError(
                "Exported.call: Input shapes do not match the polymorphic shapes specification: "
                f"{self.fun_name} was exported for {self.in_avals} and is called with "
                f"{tuple(types)}, at {user_location()}: {e}"
            ) from None
        key = tuple(numbers.items())
        exported = self._for_numbers.get(key)
        if exported is None:
            exported = self._for_numbers[key] = self._at(numbers)
        return exported

    @functools.cached_property
    def _for_numbers(self) -> dict[Any, Exported]:
        return {}

    def _at(self, numbers: dict[str, Any]) -> Exported:
        """This where variables are ``numbers``; if these are symbolic in turn, the same module."""
        ins, outs = [tuple([_at(t, numbers) for t in types]) for types in self._avals]
        artifact = self.mlir_module_serialized
        is_static = not symbolic(numbers.values())
        if is_static:
            artifact = backend().refined(artifact, (*self._first, *_physical(ins)))

        def derivative() -> Exported | None:
            whole = self.vjp()
            return whole and whole._at(numbers)

        exported = replace(
            self, in_avals=ins, out_avals=outs, mlir_module_serialized=artifact,
            _derivative=derivative,
        )  # fmt: skip
        if is_static:
            _check_module(exported)
        return exported

    @property
    def _first(self) -> Types:
        """What the module takes before the leaves of the arguments: the number of the platform."""
        return (ArrayType((), np.dtype("int32")),) if self.uses_global_constants else ()

    @property
    def _avals(self) -> tuple[Types, Types]:
        return self.in_avals, self.out_avals

    @functools.cached_property
    def _module(self) -> PortableModule:
        anywhere = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        return PortableModule(
            self.fun_name, self.mlir_module_serialized, _physical(self.in_avals),
            _physical(self.out_avals), self.platforms, anywhere, self._mesh,
        )  # fmt: skip

    def _run(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        context_mesh = _mesh_around(leaves)
        pairs = zip(leaves, self._in_shardings, strict=True)
        operands = [_constrained(x, s, context_mesh) for x, s in pairs]
        pairs = zip(operands, self.in_avals, strict=True)
        words = [random_unwrap(x) if is_key(t.dtype) else x for x, t in pairs]
        pairs = zip(exported(*words, module=self._module), self.out_avals, strict=True)
        results = [random_wrap(y, dtype=t.dtype) if is_key(t.dtype) else y for y, t in pairs]
        pairs = zip(results, self._out_shardings, strict=True)
        return tuple([_constrained(y, s, context_mesh) for y, s in pairs])

    @functools.cached_property
    def _ruled(self) -> Callable[..., tuple[Any, ...]]:
        """The flat function, with the exported derivative as its rule."""

        def function(*leaves: Any) -> tuple[Any, ...]:
            return self._run(leaves)

        def forward(*leaves: Any) -> Any:
            if self.vjp() is None:
                raise MissingRule(
                    f"Exported.call: {self.fun_name} is differentiated, at {user_location()}, and "
                    "came without its derivative; serialize it with vjp_order=1, or more for "
                    "derivatives of higher order"
                )
            return ruled(*leaves), leaves

        def backward(leaves: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
            derivative: Any = self.vjp()
            results = derivative.call(*leaves, *cts)
            real = [dtypes.is_inexact(t.dtype) for t in derivative.out_avals]
            return tuple([ct if r else None for ct, r in zip(results, real, strict=True)])

        function.__name__ = f"{self.fun_name}, exported"
        # one program, whose arguments may lie anywhere among as many devices
        ruled = custom_vjp(function if self._mesh is None else jit(function))
        ruled.defvjp(forward, backward)
        return ruled


def _fits(type: ArrayType, expected: ArrayType) -> bool:
    """Whether an argument of this type fits into ``expected``, whose lengths may be symbolic."""
    if type.dtype != expected.dtype or type.ndim != expected.ndim:
        return False
    pairs = zip(type.shape, expected.shape, strict=True)
    return all([isinstance(n, Length) or size == n for size, n in pairs])


def _at(type: ArrayType, numbers: dict[str, Any]) -> ArrayType:
    return type.update(shape=tuple([numbered(n, numbers) for n in type.shape]))


def _physical(types: Types) -> Types:
    return tuple([t.physical.update(spec=None) for t in types])


def _over(mesh: AnyMesh, sharding: NamedSharding | None) -> NamedSharding | None:
    """``sharding`` over ``mesh``.

    Raises:
        ValueError: that has other axes than the mesh of ``sharding``, or other types of them.
    """
    if sharding is None:
        return None
    if (mesh.axes, mesh.axis_types) != (sharding.mesh.axes, sharding.mesh.axis_types):
        raise ValueError(
            f"Exported: it was exported over {sharding.mesh}, and is to lie over {mesh}; give a "
            "mesh with these axes, of these types"
        )
    return sharding.update(mesh=mesh)


def _constrained(x: Any, sharding: NamedSharding | None, context_mesh: AnyMesh | None) -> Any:
    """``x``, which lies as ``sharding``, whose mesh has no devices; ``context_mesh`` is in use.

    Types say so where that is a mesh of the same axes, or nothing.
    """
    if sharding is None:
        return x
    mesh = sharding.mesh
    if context_mesh is not None:
        auto = AbstractMesh(mesh.axis_sizes, mesh.axis_names)
        sharding = sharding.update(mesh=context_mesh if context_mesh.axes == mesh.axes else auto)
    return constrain(without_spec(x), sharding=sharding)


def _mesh_around(leaves: Sequence[Any]) -> AnyMesh | None:
    """The mesh that is set, or over which types of ``leaves`` tell how they lie."""
    specs = (typeof(x).spec for x in leaves)
    meshes = (spec.mesh for spec in specs if spec is not None and spec.mesh is not None)
    return settings().mesh or cast("AnyMesh | None", next(meshes, None))


def default_export_platform() -> str:
    """The platform for which functions are exported where none is said.

    >>> default_export_platform()
    'cpu'
    """
    return used_platform()


def export(
    fun_jit: Callable[P, Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """A function that gives ``fun_jit``, at the types of its arguments, as a portable module.

    The module is StableHLO that later versions read, too, and other tools. It runs on one device,
    with all lanes of a ``pmap`` in it; or on as many as those over which a ``shard_map``, a mesh
    or shardings in it are, or the mesh that is set is. What it closes over is in it.

    Args:
        fun_jit: what ``jit`` or ``pmap`` gave.
        platforms: those on which it is to run: "cpu", "cuda", "rocm" and "tpu". They need not be
            there. By default that which is used.
        disabled_checks: checks that are left out.

    Returns:
        A function of arrays, numbers or ``ShapeDtypeStruct``, and of static arguments, that gives
        an ``Exported``.

    Raises:
        ValueError: the function is none that ``jit`` gave; there is no such platform; it calls a
            foreign function that was not allowed.
        MissingRule: it calls Python, which no module can hold.

    >>> import phalanx, phalanx.numpy as jnp
    >>> exported = export(phalanx.jit(jnp.sin))(phalanx.ShapeDtypeStruct((2,), "float32"))
    >>> exported.in_avals, exported.platforms, exported.nr_devices
    ((f32[2],), ('cpu',), 1)
    >>> deserialize(exported.serialize()).call(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    if not callable(getattr(fun_jit, "trace", None)):
        raise ValueError(
            "export: Function to be exported must be the result of `jit` or `pmap`, got "
            f"{fun_jit!r}; export(phalanx.jit(f))"
        )
    chosen = (default_export_platform(),) if platforms is None else platforms
    names = checked_platforms(chosen, "export")
    checks = tuple(disabled_checks)
    traceable = cast(Any, fun_jit)

    @hiding
    def exporting(*args: Any, **kwargs: Any) -> Exported:
        return _exported(traceable.trace(*args, **kwargs)._traced, names, checks)

    return exporting


def deserialize(blob: bytes | bytearray) -> Exported:
    """What ``Exported.serialize`` made bytes of.

    Nothing in the bytes is run by reading them; calling the function runs them. It computes with
    arrays and does nothing else: a module with anything in it that ``export`` does not write is an
    error. But whoever wrote it chose what it computes, and how much time and memory that takes.

    Args:
        blob: bytes, as ``Exported.serialize`` gives them.

    Returns:
        An ``Exported``, whose ``call`` runs it.

    Raises:
        TypeError: ``blob`` is no bytes.
        ValueError: they are damaged, of another library, or of a later version; or the module is
            not what is told of it, or has in it what ``export`` does not write.

    >>> deserialize(b"something")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: deserialize: bytes that Exported.serialize gave are needed; these begin with ...
    """
    exported: Exported | None = None
    parts = unpack(blob)
    fault = backend().try_exported([artifact for _, artifact in parts])
    for words, artifact in reversed(parts):
        with understood(words):
            exported = _described(words, artifact, exported)
            _check_module(exported)
    if exported is None or fault:
        raise ValueError(fault or "deserialize: the bytes hold no function")
    return exported


def _check_module(exported: Exported) -> None:
    """Raise ValueError if the module of what comes from elsewhere is not what is told of it."""
    checks = [check.is_custom_call() for check in exported.disabled_safety_checks]
    foreign = [name for name in checks if name is not None]
    ins = (*exported._first, *_physical(exported.in_avals))
    artifact, outs = exported.mlir_module_serialized, _physical(exported.out_avals)
    backend().check_exported(artifact, ins, outs, foreign)


def _described(words: dict[str, Any], artifact: bytes, derivative: Exported | None) -> Exported:
    version = words["calling_convention_version"]
    if version > maximum_supported_calling_convention_version:
        raise ValueError(
            f"deserialize: {words['fun_name']} is of calling convention {version}, and this "
            f"version knows up to {maximum_supported_calling_convention_version}"
        )
    scope = SymbolicScope(words.get("constraints") or ())

    def types_of(entries: Any, shardings: Shardings) -> Types:
        found = [type_of(t, lambda text: symbolic_shape(text, scope=scope)[0]) for t in entries]
        return tuple(
            [t if s is None else typed(t, s) for t, s in zip(found, shardings, strict=True)]
        )

    def shardings(who: str) -> Shardings:
        nothing = [None] * len(words[f"{who}_avals"])
        return tuple(map(read_sharding, words.get(f"{who}_shardings", nothing)))

    ins, outs = shardings("in"), shardings("out")

    return Exported(
        fun_name=words["fun_name"],
        in_tree=tree_of(words["in_tree"]),
        in_avals=types_of(words["in_avals"], ins),
        out_tree=tree_of(words["out_tree"]),
        out_avals=types_of(words["out_avals"], outs),
        platforms=tuple(words["platforms"]),
        mlir_module_serialized=artifact,
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, words["disabled_safety_checks"])),
        calling_convention_version=version,
        _mesh=mesh_of(words.get("mesh")),
        _in_shardings=ins,
        _out_shardings=outs,
        _derivative=lambda: derivative,
    )


def _exported(
    traced: TracedCall, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Exported:
    program = traced.program
    _refuse_what_is_outside(traced, checks)
    mesh = _mesh_of(traced)
    ins, outs = _shardings_of(traced)

    def derivative() -> Exported:
        return _derivative_of(program, ins, outs, platforms, checks)

    return Exported(
        fun_name=program.name,
        in_tree=traced.in_tree,
        in_avals=program.input_types,
        out_tree=traced.out_tree,
        out_avals=program.output_types,
        platforms=platforms,
        mlir_module_serialized=_module_of(traced, platforms, mesh),
        disabled_safety_checks=checks,
        calling_convention_version=maximum_supported_calling_convention_version,
        _mesh=mesh,
        _in_shardings=_without_devices(ins),
        _out_shardings=_without_devices(outs),
        _derivative=derivative,
    )


def _module_of(traced: TracedCall, platforms: tuple[str, ...], mesh: AnyMesh | None) -> bytes:
    """The artifact of ``traced``, for as many devices as ``mesh`` has; None: for one."""
    program, places = traced.program, traced.places
    if mesh is None:
        return export_program(program, platforms)
    shardings = [s or default_sharding() for s in traced.shardings]
    name_of = traced.names.__getitem__
    shardings, places = with_devices(program, shardings, places, platforms[0], name_of)
    check_devices(program, list(map(Signature.of, traced.types, shardings)), places, name_of)
    return export_program(program, platforms, shardings, places)


def _derivative_of(
    program: Program,
    ins: Shardings,
    outs: Shardings,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    count = len(program.inputs)

    def derivative(*values: Any) -> Any:
        _, pull = vjp(lambda *primals: tuple(call(*primals, program=program)), *values[:count])
        return pull(values[count:])

    derivative.__name__ = f"{program.name}_vjp"
    cts = [t.tangent.update(weak=False) for t in program.output_types]
    types = [*program.input_types, *cts]
    shardings = (*ins, *outs)
    jitted = jit(derivative, in_shardings=shardings, out_shardings=ins)
    return _exported(jitted.trace(*map(aot.struct, types, shardings))._traced, platforms, checks)


# ---- how arguments and results lie ----------------------------------------------------------


def _mesh_of(traced: TracedCall) -> AbstractMesh | None:
    """The mesh, without devices, over which something in it is said to lie, or else that is set;
    None: one device."""
    program = traced.program
    shardings = [*traced.places.ins, *traced.shardings, *traced.places.outs]
    shardings += [s for s, _ in constraints(program)]
    meshes: list[AnyMesh | None] = [s.mesh for s in map(_spread, shardings) if s is not None]
    context_mesh = settings().mesh
    for e in program.walk():
        if e.prim.execution.launch is not None:
            raise ValueError(
                f"export: {program.name}, at {e.location or user_location()}, maps rows of each "
                "process, and a module is of whole arrays; export what maps arrays over all "
                "processes, with mesh="
            )
        region = e.region
        if region is not None:
            meshes.append(cast("AnyMesh | None", region.mesh))
            context_mesh = (
                context_mesh if region.mesh else None
            )  # lanes of a pmap are all on one device
    return next((m.abstract_mesh for m in (*meshes, context_mesh) if m and m.size > 1), None)


def _shardings_of(traced: TracedCall) -> tuple[Shardings, Shardings]:
    """How each argument and each result lies, where that is said and is over several devices."""
    places = traced.places
    in_shardings = [s or t for s, t in zip(places.ins, traced.shardings, strict=True)]
    from_types = type_shardings(traced.program)
    shardings = [s or t for s, t in zip(places.outs, from_types, strict=True)]
    return tuple(map(_spread, in_shardings)), tuple(map(_spread, shardings))


def _spread(sharding: Sharding | None) -> NamedSharding | None:
    """``sharding``, if it is over several devices, over a mesh, in their own memory."""
    if sharding is None or (not is_abstract(sharding) and len(sharding.device_list) == 1):
        return None
    return as_named(sharding).in_memory(None)


def _without_devices(shardings: Shardings) -> Shardings:
    return tuple([None if s is None else s.update(mesh=s.mesh.abstract_mesh) for s in shardings])


# ---- what cannot be exported ----------------------------------------------------------------


def _refuse_what_is_outside(traced: TracedCall, checks: tuple[DisabledSafetyCheck, ...]) -> None:
    """Raise where a function captures traced values, calls Python, or does anything besides."""
    program = traced.program
    if traced.written or traced.stored or Ref in map(type, traced.captured):
        raise RefError(
            f"export: {program.name}, at {user_location()}, uses mutable references, which no "
            "module knows; pass what they hold, ref[...], and return what they are to hold"
        )
    if traced.captured:
        raise ValueError(
            f"export: {program.name}, at {user_location()}, closes over values of a transformation "
            "around it, which have no data; pass them as arguments"
        )
    allowed = [check.is_custom_call() for check in checks]
    for e in dce(program).walk():
        if e.prim is foreign_call:
            _refuse_unless_allowed(e, allowed)
        elif e.prim is host_call or e.prim.effects.of(**e.params):
            raise MissingRule(
                f"export: {program.name} calls Python, at {e.location}: {e.prim}, and no module "
                "can hold a function of Python; leave the call out of what is exported"
            )


def _refuse_unless_allowed(e: Equation, allowed: Sequence[str | None]) -> None:
    """Raise ValueError if the foreign function that ``e`` calls is not one of those ``allowed``."""
    target = e.params["foreign"].function.target
    if target not in allowed:
        raise ValueError(
            f"export: the foreign function {target}, called at {e.location}, has to be registered "
            "wherever what is exported is called; say that it will be, with disabled_checks="
            f"[DisabledSafetyCheck.custom_call({target!r})]"
        )
