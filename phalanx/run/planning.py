"""Which devices run a program, and how its inputs and outputs lie over them.

What the user fixed is fixed: where inputs and outputs are to lie, what values inside are
constrained to, which devices regions name. They all must speak of the same devices. Inputs
follow, or if they are free to, the compiler says how they lie; so do outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from phalanx.base.config import settings
from phalanx.base.errors import DevicesDiffer, coded
from phalanx.base.extended import is_key
from phalanx.base.source import user_location
from phalanx.core.memoize import memoize_on
from phalanx.core.platforms import AnyDevice
from phalanx.core.program import Atom, Program
from phalanx.core.types import ArrayType
from phalanx.run.array import Signature, default_sharding
from phalanx.run.runtime import backend
from phalanx.spmd import placement
from phalanx.spmd.constraint import (
    cutting,
    is_abstract,
    over,
    resolve_devices,
    sharding_for,
    stack_partials,
    without_open_dims,
)
from phalanx.spmd.layout import fewest_axes, prime_axes, with_devices_counted_as
from phalanx.spmd.mesh import AbstractMesh, Mesh
from phalanx.spmd.named import NamedSharding, P
from phalanx.spmd.plan import Plan, in_terms_of_mesh
from phalanx.spmd.sharding import Devices, Sharding
from phalanx.spmd.shardings_of_types import sharding_in_type


class RequestedShardings(Struct, frozen=True):
    """Where the user wants each input and each output of a program; None: nothing was said."""

    ins: tuple[Sharding | None, ...]
    outs: tuple[Sharding | None, ...]

    @classmethod
    def anywhere(cls, program: Program) -> RequestedShardings:
        """Nothing was said of the inputs and outputs of ``program``."""
        return cls((None,) * len(program.inputs), (None,) * len(program.outputs))

    def taking(self, inputs: Sequence[int]) -> RequestedShardings:
        """The same for a program that takes those inputs alone."""
        return RequestedShardings(tuple([self.ins[i] for i in inputs]), self.outs)

    def after(self, count: int) -> RequestedShardings:
        """The same for a program that takes ``count`` more inputs first, which may lie anywhere."""
        return RequestedShardings((None,) * count + self.ins, self.outs)

    def over(self, devices: Devices) -> RequestedShardings:
        """The same over ``devices``, where something is said of a mesh without any.

        Raises:
            NoMesh: it needs more or fewer.
        """

        def placed(shardings: Sequence[Sharding | None], who: str) -> Iterator[Sharding | None]:
            return (None if s is None else resolve_devices(s, devices, who) for s in shardings)

        ins, outs = placed(self.ins, "in_shardings"), placed(self.outs, "out_shardings")
        return RequestedShardings(tuple(ins), tuple(outs))


class Planning(Struct, frozen=True):
    """What ``make_plan`` decides of a program.

    Attributes:
        plan: the devices, their mesh, and the specs of inputs and outputs.
        committed: whether results are committed to these devices, because the user chose them.
        places: the shardings that the user asks for, over these devices.
    """

    plan: Plan
    committed: bool
    places: RequestedShardings


def constraints(program: Program) -> list[tuple[Sharding, str]]:
    """How values of ``program`` are to lie, and what says so; regions see to themselves."""
    return memoize_on(program, "constraints", lambda: list(_constraints(program)))


def _constraints(program: Program) -> Iterator[tuple[Sharding, str]]:
    if all(p.on_devices.requested_sharding is None for p in program.primitives):
        return
    for equation in program.walk(into=placement.is_no_region):
        rule = equation.prim.on_devices.requested_sharding
        sharding = rule and rule(**equation.params)
        if sharding is not None:
            yield sharding, f"{equation.prim.name} at {equation.location}"


def _mesh_of_types(program: Program) -> AbstractMesh | None:
    """The mesh over which types in ``program`` say how values lie, if they do."""
    for type in (*program.input_types, *program.output_types):
        if type.spec is not None:
            return type.spec.mesh  # type: ignore[return-value]
    for sharding, _ in constraints(program):
        if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
            return sharding.mesh.abstract_mesh
    return None


def _axes_of_types(program: Program) -> NamedSharding | None:
    """The Explicit axes of the types of the results, as the sharding of one dimension that all of
    them cut; None if there are none.

    Axes that are Auto in the mesh that is set are left out: the user set it so that the compiler
    decides how results are cut along them, and only a part of the program sees them as Explicit.
    """
    mesh = _mesh_of_types(program)
    if mesh is None:
        return None
    context_mesh = settings().mesh or mesh
    names = tuple([name for name in mesh.explicit_axes if name not in context_mesh.auto_axes])
    return NamedSharding(mesh, P(names)) if names else None  # type: ignore[arg-type]


def type_shardings(program: Program) -> list[Sharding | None]:
    """How each output lies, as its type says; None where types say nothing."""
    mesh = _mesh_of_types(program)
    if mesh is None:
        return [None] * len(program.outputs)
    of_types = [t.spec and sharding_in_type(t.spec) for t in program.output_types]
    context_mesh = settings().mesh or mesh  # only a part of the program may have Explicit axes
    is_open = mesh.auto_axes or context_mesh.auto_axes
    replicated = None if is_open else NamedSharding(mesh, P())  # type: ignore[arg-type]
    return [replicated if s is None else s for s in of_types]


def inferred_outputs(
    program: Program, inputs: Sequence[Sharding], devices: Devices
) -> list[Sharding | None]:
    """How each output lies over ``devices``, as its type says, or as the input that it is.

    An input that is passed through stays where it is, also next to values of which types tell more.
    None where nothing says how an output lies.
    """
    pairs = zip(program.inputs, inputs, strict=True)
    there: dict[Atom, Sharding] = {v: s for v, s in pairs if s.is_over(devices)}
    triples = zip(program.outputs, program.output_types, type_shardings(program), strict=True)
    return [by if t.spec is not None else there.get(a, by) for a, t, by in triples]


def make_plan(
    program: Program,
    shardings: Sequence[Sharding],
    places: RequestedShardings | None = None,
    constants: int = 0,
) -> Planning:
    """Devices, mesh and specs for ``program`` on inputs with these ``shardings``.

    The first inputs are ``constants`` in number; they follow the others, to which ``places`` refer.
    """
    places = places or RequestedShardings.anywhere(program)
    ins = (*(None,) * constants, *places.ins)
    placed = [requested or s for requested, s in zip(ins, shardings, strict=True)]
    requested_shardings = [s for s in (*ins, *places.outs) if s is not None]
    inside = [without_open_dims(s) for s, _ in constraints(program)]
    inputs = [*placed[constants:], *placed[:constants]]
    all_shardings = [*requested_shardings, *inputs, *inside]
    fixed = _with_devices(requested_shardings) or _with_devices(inside)
    chosen = _named(fixed, all_shardings) or _followed(inputs)

    def shardings_over(devices: Devices) -> list[Sharding]:
        return [s for s in (over(s, devices) for s in all_shardings) if s.is_over(devices)]

    mesh = _mesh(program, chosen, bool(fixed), shardings_over)
    committed = chosen.committed or mesh is not None
    if mesh is None:
        mesh = _over_one(chosen.device_list, shardings_over(chosen.device_list))
    _check_constraints(program, mesh)
    places = places.over(mesh.devices)
    if len(mesh.devices) == 1:
        ins, outs = (P(),) * len(program.inputs), (P(),) * len(program.outputs)
        return Planning(Plan(mesh.devices, (), ins, outs), committed, places)
    plan = _plan_over(program, mesh, placed, places.after(constants))
    return Planning(plan, committed, places)


def _over_one(devices: Devices, shardings: Sequence[Sharding]) -> placement.ProgramMesh:
    """The mesh of a program without regions, in axes that can express all ``shardings``."""
    meshes = [s.mesh.axes for s in shardings if isinstance(s, NamedSharding)]
    with_partials = (*map(stack_partials, shardings), *shardings)  # most are equal to others
    ordered = [with_devices_counted_as(s, devices) for s in dict.fromkeys(with_partials)]
    axes = fewest_axes(meshes, ordered) or prime_axes(len(devices), *ordered)
    return placement.ProgramMesh(devices, axes, ())


def _with_devices(shardings: Sequence[Sharding]) -> list[Sharding]:
    return [s for s in shardings if not is_abstract(s)]


def _named(fixed: Sequence[Sharding], candidates: Sequence[Sharding]) -> Sharding | None:
    """The first of ``candidates`` that is over the devices of ``fixed``, in their order."""
    if not fixed:
        return None
    return next(s for s in candidates if s.is_over(fixed[0].device_list)).commit()


def _followed(inputs: Sequence[Sharding]) -> Sharding:
    """The input that the others follow: one that was placed, the one over most devices."""
    candidates = [*inputs, default_sharding()]
    return max(candidates, key=lambda s: (s.committed, len(s.device_list)))


def _mesh(
    program: Program, chosen: Sharding, fixed: bool, shardings_over: placement.ShardingsOver
) -> placement.ProgramMesh | None:
    """Where regions of ``program`` lie, if that is of consequence."""
    local = tuple(backend().local_devices())
    chosen_ones = fixed or len(chosen.device_list) == placement.open_size(program)
    room = chosen.device_list if chosen_ones else local
    mesh = placement.mesh_of(program, room, use_all_devices=fixed, shardings_over=shardings_over)
    if mesh is None or mesh.axes or mesh.devices != local[:1]:
        return mesh
    return None


def _plan_over(
    program: Program,
    mesh: placement.ProgramMesh,
    placed: Sequence[Sharding],
    places: RequestedShardings,
) -> Plan:
    devices, axes = mesh.devices, mesh.axes

    def spec_of(sharding: Sharding, type: ArrayType) -> P | None:
        spec = in_terms_of_mesh(sharding, type.ndim, devices, axes)
        if spec is None or not spec.unreduced or type.size:
            return spec
        return spec.update(unreduced=set())  # XLA takes what has no elements for whole

    operands, results = (
        placement.region_inputs(program, mesh),
        placement.region_outputs(program, mesh),
    )
    ins = list(map(spec_of, placed, program.input_types))
    ins = [
        own if requested or wish is None else _with_sums(wish, own)
        for requested, own, wish in zip(places.ins, ins, operands, strict=True)
    ]
    inferred, of_types = inferred_outputs(program, placed, devices), _mesh_of_types(program)
    if of_types is not None and not of_types.auto_axes:  # what is not said to be cut is whole
        ins = [P() if spec is None else spec for spec in ins]
    results = [
        wish if s is None else spec_of(s, t)
        for wish, s, t in zip(results, inferred, program.output_types, strict=True)
    ]
    outs = [
        wish if requested is None else spec_of(requested, t)
        for requested, t, wish in zip(places.outs, program.output_types, results, strict=True)
    ]
    row = _axes_of_types(program)
    row_spec = row and in_terms_of_mesh(row, 1, devices, axes)
    (along,) = row_spec.layout if row_spec else ((),)
    if along:  # what types do not say to be cut by these is not
        outs = [
            P(*[P.UNCONSTRAINED] * t.ndim) if spec is None else spec
            for spec, t in zip(outs, program.output_types, strict=True)
        ]
    all_local = Sharding(devices).is_fully_addressable and type(devices[0]) is not AnyDevice
    alone = all_local and placement.is_independent(program, mesh)
    alone = alone and _cut_alike(ins, operands) and _cut_alike(outs, results)
    return Plan(devices, axes, tuple(ins), tuple(outs), mesh.levels, along, alone)


def _with_sums(wish: P, own: P | None) -> P:
    """``wish``, the spec with which a region takes an input, unreduced along the axes along which
    the input is, by its ``own`` spec. Axes by which the region cuts it are left out: along these it
    has to be moved."""
    if own is None or not own.unreduced:
        return wish
    axes = [name for names in wish.layout for name in names]
    return wish.update(unreduced=own.unreduced.difference(axes))


def _cut_alike(specs: Sequence[P | None], others: Sequence[P | None]) -> bool:
    """Whether ``specs`` and ``others`` cut the same dimensions by the same axes."""
    ours, theirs = ([None if s is None else s.partitions for s in of] for of in (specs, others))
    return ours == theirs


def of_whole_keys(
    plan: Plan, in_types: Sequence[ArrayType], out_types: Sequence[ArrayType]
) -> Plan:
    """``plan`` of a program on the words of keys, with specs that do not divide the words of a key:
    neither where XLA chooses them, nor where an array of words is passed through as keys."""

    def one(spec: P | None, type: ArrayType) -> P | None:
        if not is_key(type.dtype):
            return spec
        return P(*([P.UNCONSTRAINED] * type.ndim if spec is None else spec[: type.ndim]))

    def specs_of_keys(
        specs: Sequence[P | None], types: Sequence[ArrayType]
    ) -> tuple[P | None, ...]:
        return tuple(map(one, specs, types))

    if not any(is_key(t.dtype) for t in (*in_types, *out_types)):
        return plan
    ins, outs = specs_of_keys(plan.in_specs, in_types), specs_of_keys(plan.out_specs, out_types)
    return replace(plan, in_specs=ins, out_specs=outs)


def with_devices(
    program: Program,
    shardings: Sequence[Sharding],
    places: RequestedShardings,
    platform: str | None,
    name_of_input: Callable[[int], str],
) -> tuple[list[Sharding], RequestedShardings]:
    """How inputs and outputs of ``program`` lie, all over devices.

    Where meshes have none, they are those of an input over as many, or else such of ``platform`` as
    need not be there.

    Raises:
        NoMesh: nothing tells devices.
    """
    inside = [s for s, _ in constraints(program)]
    all_shardings = [s for s in (*shardings, *places.ins, *places.outs, *inside) if s is not None]
    without = [s for s in all_shardings if is_abstract(s)]
    size = without[0].mesh.size if without else placement.open_size(program)
    if size is None:
        return [*shardings], places
    there = next(
        (s for s in all_shardings if s not in without and len(s.device_list) == size), None
    )
    if there is not None:
        devices = there.device_list
    elif platform is not None:
        devices = tuple([AnyDevice(platform, i) for i in range(size)])
        shardings = [s if s.committed else Sharding(devices).freed() for s in shardings]
    else:
        for i, pair in enumerate(zip(shardings, places.ins, strict=True)):
            for s in pair:
                if s is not None:
                    sharding_for(s, f"{program.name}: {name_of_input(i)}")
        return [*shardings], places
    return [resolve_devices(s, devices, program.name) for s in shardings], places.over(devices)


def check_devices(
    program: Program,
    sigs: Sequence[Signature],
    places: RequestedShardings,
    name_of_input: Callable[[int], str],
) -> None:
    """Raise ``DevicesDiffer`` unless all that is said of a program speaks of the same devices.

    Inputs that the user placed are to lie on some of them, or are brought there where it is said
    how they are to lie, or where there are lanes, which devices share out.
    """
    if any(p.on_devices.requested_sharding is not None for p in program.primitives):
        _check_taken(program, frozenset())
    over = _over_mesh(program)
    speakers = [*_requested(program, places, name_of_input), *over]
    for one, other in speakers[1:]:
        if not other.is_over(speakers[0][1].device_list):
            _refuse(program, [speakers[0], (one, other)])
    fixed = [
        i
        for i, (sig, requested) in enumerate(zip(sigs, places.ins, strict=True))
        if sig.sharding.committed and requested is None
    ]
    lists = {sigs[i].sharding.device_list for i in fixed}
    if len(lists.union([s.device_list for _, s in speakers[:1]])) < 2:
        return
    placed = [(_input(name_of_input(i), sigs[i].type), sigs[i].sharding) for i in fixed]
    widest = speakers[0] if speakers else max(placed, key=lambda p: len(p[1].device_list))
    there = set(widest[1].device_list)
    elsewhere = next((p for p in placed if not there.issuperset(p[1].device_list)), None)
    if elsewhere is None:
        return
    if not over and placement.mesh_of(program, backend().local_devices()) is not None:
        return
    pair = [elsewhere, widest]
    _refuse(program, sorted(pair, key=placed.index) if widest in placed else pair)


def _check_taken(program: Program, taken: frozenset[str]) -> None:
    """Raise ValueError if a constraint names axes that regions around it have ``taken``."""
    for sharding, who in constraints(program):
        used = next((name for name in cutting(sharding) if name in taken), None)
        if used is not None:
            error = ValueError(
                f"{program.name}: {who} names the manual axis {used!r}, "
                "along which the shard_map around it says what each device does; name axes that "
                "it leaves to the compiler"
            )
            raise coded(error, "manual axis", axis=used)
    for region in placement.regions(program):
        own = {str(axis) for axis, _ in region.axes} if region.mesh and not region.shared else ()
        _check_taken(region.program, taken.union(own))


class _Speaker(Struct):
    """What says on which devices something is, as the beginning of a sentence; of inputs, which."""

    words: str
    kind: str = ""
    name: str = ""
    type: str = ""


def _input(name: str, type: ArrayType) -> _Speaker:
    return _Speaker(f"{name}, {type}, lies", "input", name, str(type))


def _requested(
    program: Program, places: RequestedShardings, name_of_input: Callable[[int], str]
) -> Iterator[tuple[_Speaker, Sharding]]:
    for i, s in enumerate(places.ins):
        if s is not None:
            yield _Speaker(f"in_shardings puts {name_of_input(i)}"), s
    for s in places.outs:
        if s is not None and not is_abstract(s):
            yield _Speaker("out_shardings puts a result", "result"), s
    for s, who in constraints(program):
        if not is_abstract(s):
            yield _Speaker(f"{who} puts a value", "constraint"), s


def _over_mesh(program: Program) -> list[tuple[_Speaker, Sharding]]:
    """Where the first ``shard_map`` of ``program`` runs, if there is one."""
    meshes = (r.mesh for r in placement.regions(program) if not r.shared and r.mesh is not None)
    concrete = [mesh for mesh in meshes if isinstance(mesh, Mesh)]
    return [
        (_Speaker("a shard_map in it runs"), Sharding(mesh.devices.flat)) for mesh in concrete[:1]
    ]


def _refuse(program: Program, speakers: Sequence[tuple[_Speaker, Sharding]]) -> None:
    listed = "; ".join(f"{one.words} {_where(s)}" for one, s in speakers)
    error = DevicesDiffer(
        f"{program.name}: Received incompatible devices for jitted computation, at "
        f"{user_location()}: arrays that were placed on different devices do not combine, and "
        f"{listed}. Move one of them: phalanx.device_put(x, device)"
    )
    kinds, inputs = [x.kind for x, _ in speakers], [(x.name, x.type) for x, _ in speakers]
    ids = [device.id for device in speakers[0][1].device_list]
    raise coded(error, "devices differ", name=program.name, kinds=kinds, inputs=inputs, ids=ids)


def _check_constraints(program: Program, mesh: placement.ProgramMesh) -> None:
    """Raise DevicesDiffer if a constraint speaks of other devices than those of ``mesh``.

    NoMesh if it speaks of none, and ``mesh`` has more or fewer than it needs.
    """
    for constraint, who in constraints(program):
        sharding = resolve_devices(constraint, mesh.devices, who)
        if not sharding.is_over(mesh.devices):
            constrained = _Speaker(f"{who} puts a value", "constraint"), sharding
            mapped = _Speaker("a mapped function in it runs"), Sharding(mesh.devices)
            _refuse(program, [constrained, mapped])


def _where(sharding: Sharding) -> str:
    on = f"on {', '.join(map(str, sharding.device_list))}"
    named = isinstance(sharding, NamedSharding)
    return f"as {sharding.spec} over {sharding.mesh}, {on}" if named else on
