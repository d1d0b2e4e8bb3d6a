"""``exported``: a call of a module that was written before, of which nothing is known inside.

It is a function of arrays on one device, or on all devices of the program that calls it. Its lanes
run one after the other, and it has no derivative but the one that was exported with it, which
whoever calls it sees to.
"""

from __future__ import annotations

from msgspec import Struct

from phalanx.control.sequential import sequential
from phalanx.core.builder import Builder, Value
from phalanx.core.platforms import names_of
from phalanx.core.primitive import NoRule, OnDevices, Primitive
from phalanx.core.types import ArrayType, Types
from phalanx.primitives.domains import I32
from phalanx.spmd.mesh import AbstractMesh
from phalanx.spmd.named import NamedSharding, P
from phalanx.spmd.sharding import Sharding


class PortableModule(Struct, frozen=True, eq=False):
    """A module that any version of XLA reads.

    Attributes:
        name: of the function that it is.
        artifact: the module itself.
        in_types: those of its operands, without keys.
        out_types: those of its results.
        platforms: those that it was written for. If there are several it takes the number of one
            before its operands.
        anywhere: whether it is called on other platforms, too.
        mesh: over which it was written; None where it is for one device.
    """

    name: str
    artifact: bytes
    in_types: Types
    out_types: Types
    platforms: tuple[str, ...]
    anywhere: bool
    mesh: AbstractMesh | None = None

    def number_of(self, platform: str) -> int:
        """Which of the platforms a device of ``platform`` is of.

        Raises:
            ValueError: of none.
        """
        fitting = [n for n in names_of(platform) if n in self.platforms]
        if fitting:
            return self.platforms.index(fitting[0])
        if self.anywhere:
            return 0
        raise ValueError(
            f"Exported.call: {self.name} was exported for platforms {', '.join(self.platforms)} "
            f"and is used on {platform}; export it with platforms=[..., {platform!r}]"
        )

    def __repr__(self) -> str:
        return self.name


def _type(*types: ArrayType, module: PortableModule) -> Types:
    return module.out_types


def _requested(*, module: PortableModule) -> Sharding | None:
    """Where the result lies: over as many devices as the module is for, and nobody says how."""
    return module.mesh and NamedSharding(module.mesh, P(P.UNCONSTRAINED))


def _lower(b: Builder, *xs: Value, module: PortableModule) -> list[Value]:
    number = module.number_of(b.target.platform)
    first = [b.constant(number, I32)] if len(module.platforms) > 1 else []
    return b.module_call(module.artifact, [*first, *xs], module.out_types)


_OPAQUE = NoRule("what the module does is not known; only its exported derivative is used")

exported: Primitive = Primitive(
    "exported",
    _type,
    _lower,
    linearize=_OPAQUE,
    transpose=_OPAQUE,
    batch=sequential(lambda: exported),
    multi=True,
    on_devices=OnDevices(requested_sharding=_requested),
    doc="main(operands) of a module that was written before; func.call",
)
