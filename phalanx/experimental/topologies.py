"""Accelerators that are not here, described: programs are compiled for them ahead of time.

Their devices stand wherever devices do: in ``jit``, ``pmap``, meshes and shardings. What is lowered
for them can be compiled and looked at, its memory, cost, text and collectives. It does not run, but
what ``experimental.serialize_executable`` makes of it does, on a machine with such devices. XLA's
plugin for the platform has to be installed, and no hardware.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.api import meshes
from phalanx.api.devices import devices
from phalanx.base.boundary import bound
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import Mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription(Struct, frozen=True):
    """Devices, which need not be here.

    Attributes:
        devices: the devices, in the order of the topology.

    >>> from phalanx.experimental import topologies
    >>> topologies.get_attached_topology().devices[0].platform
    'cpu'
    """

    devices: list[Any]


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """The devices of a topology.

    Args:
        topology_name: "v5e:2x4", say, of TPUs: the generation, and how many lie along each axis of
            the torus; "1x4x8", say, of CUDA: processes, hosts and GPUs of each.
        platform: "tpu" or "cuda".
        **kwargs: more that the plugin takes. ``target_config`` says which GPU it is: a name that
            the plugin knows, such as "H100 PCIe", or the text of XLA's GpuTargetConfigProto, which
            describes it. Of TPUs ``num_slices``, and ``chips_per_host_bounds``: how many chips of
            each host lie along each axis.

    Returns:
        A ``TopologyDescription``.

    Raises:
        DeviceError: the plugin is not installed, or does not know the topology or the GPU.
        TypeError: the plugin takes no such option.

    >>> get_topology_desc("v5e:2x4", "tpux")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.DeviceError: get_topology_desc: to compile for tpux XLA's plugin ...
    """
    name = "tpu" if platform is None else {"gpu": "cuda"}.get(platform, platform)
    return TopologyDescription(list(backend().topology(name, topology_name, kwargs)))


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are here, as a description.

    Args:
        platform: which one; None for the default one.

    Returns:
        A ``TopologyDescription``.

    >>> import phalanx
    >>> get_attached_topology("cpu").devices == phalanx.devices("cpu")
    True
    """
    return TopologyDescription(devices(platform))


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
    axis_types: Any = None,
) -> Mesh:
    """A mesh of described devices.

    Args:
        topo: a description of devices.
        mesh_shape: the lengths of the grid.
        axis_names: the names of its axes.
        contiguous_submeshes: accepted; blocks of axes of a torus are contiguous.
        axis_types: the kind of each axis; None: all ``Auto``.

    Returns:
        A ``Mesh``.

    >>> here = get_attached_topology("cpu")
    >>> make_mesh(here, (len(here.devices),), ("data",)).axis_names
    ('data',)
    """
    return meshes.make_mesh(mesh_shape, axis_names, axis_types, devices=topo.devices)


bound(sys.modules[__name__])
