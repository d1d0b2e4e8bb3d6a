"""Accelerators that are only described, for which programs compile."""

import importlib.util
import os
import shutil
import subprocess
import sys

import jaxlib
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import DeviceError
from phalanx.experimental import topologies
from phalanx.xla import topology


def test_devices_that_are_here_are_a_description_too():
    here = topologies.get_attached_topology("cpu")
    assert here.devices == phalanx.devices("cpu")
    mesh = topologies.make_mesh(here, (1, len(here.devices)), ("data", "model"))
    assert mesh.shape == {"data": 1, "model": len(here.devices)}


def test_a_platform_that_nothing_here_knows():
    with pytest.raises(DeviceError, match=r"to compile for chip .* plugin .*phalanx\[aot\]"):
        topologies.get_topology_desc("2x2", platform="chip")


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins") is None, reason="needs the extra aot")
def test_a_gpu_that_is_not_here_has_to_be_described(monkeypatch):
    monkeypatch.setattr(topology, "has_hardware", lambda _: False)
    with pytest.raises(DeviceError, match=r"no GPU, so say which one is meant\. .* H100 PCIe,"):
        topologies.get_topology_desc("1x1x8", platform="cuda")
    with pytest.raises(DeviceError, match=r"'a100' does not say .* knows NVIDIA A100-[^;]*PCIe;"):
        topologies.get_topology_desc("1x1x8", platform="cuda", target_config="a100")
    described = topologies.get_topology_desc("1x1x8", "cuda", target_config="H100 PCIe").devices
    assert [d.device_kind for d in described] == ["NVIDIA H100 PCIe"] * 8


def test_what_a_plugin_has_of_gpus_is_found_by_name(tmp_path):
    library = tmp_path / "plugin.so"
    texts = [
        f"# of {name}\ngpu_device_info {{\n {kind}_compute_capability {{\n }}\n}}\n"
        f'device_description_str: "{name}"\n'
        for name, kind in (("NVIDIA A1", "cuda"), ("NVIDIA A1 half", "cuda"), ("MI1", "rocm"))
    ]
    library.write_bytes(b"\x7fELF\0" + b"\0".join(t.encode() for t in texts) + b"\0\1")
    found = topology.descriptions(str(library), "cuda")
    assert found == {"NVIDIA A1": texts[0], "NVIDIA A1 half": texts[1]}
    assert topology._named("a1", found) == topology._named("NVIDIA A1", found) == texts[0]
    assert topology._named("HALF", found) == texts[1]
    for name in ("a", "b"):
        with pytest.raises(DeviceError, match=rf"'{name}' .* knows NVIDIA A1, NVIDIA A1 half; "):
            topology._named(name, found)


@pytest.mark.parametrize(
    ("platform", "options", "hint"),
    [
        (
            "cuda",
            {"target_confg": ""},
            "cuda has no option 'target_confg'. Did you mean 'target_config'",
        ),
        ("cuda", {"num_slices": 2}, "There are target_config"),
        ("tpu", {"num_slice": 2}, "Did you mean 'num_slices'"),
    ],
)
def test_an_option_that_a_plugin_would_ignore_is_refused(platform, options, hint):
    with pytest.raises(TypeError, match=hint):
        topologies.get_topology_desc("1x2x4", platform, **options)


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins") is None, reason="needs the extra aot")
@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("{}", "threads_per_warp, block_dim_limit_x, block_dim_limit_y, block_dim_limit_z"),
        ("threads_per_warp: 32 block_dim_limit_x: 1 block_dim_limit_y: 1", "block_dim_limit_z"),
    ],
)
def test_a_gpu_is_not_described_by_halves(said, missing):
    """XLA would divide by what is missing, and end the process."""
    with pytest.raises(DeviceError, match=rf"describes a GPU; .* says nothing of {missing}$"):
        topologies.get_topology_desc("1x1x8", platform="cuda", target_config=said)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("v5e", "Near it are v5e:2x2, v5e:2x4"),
        ("v5e:3x3", "Near it are v5e:2x4, v5e:4x4"),
        ("v5e-256", "Near it are v5e:8x16, v5e:16x16"),
        ("v5litepod-16", "Near it are v5e:2x4, v5e:4x4"),
        ("v6:2x4", "Near it are v6e:2x2, v6e:2x4"),
        ("v5p:4x4x5", "Near it are v5p:4x4x4, v5p:4x4x8"),
        ("h100:8", "There are v2, v3, v4, v5e, v5p, v6e, tpu7x"),
        ("", "There are v2,"),
    ],
)
def test_a_topology_that_is_not_known_is_told_its_nearest(name, near):
    assert topology._of_tpus(name).startswith(near)


@pytest.mark.parametrize(
    ("platform", "name", "advice"),
    [
        ("tpu", "", "There are v2"),
        ("tpu", "v5e:0x4", "Near it are v5e:1x1"),
        ("tpu", "v5p:1024x1024x1024", "Near it are v5p:8x16x16"),
        ("cuda", "1x1x100000000", "It has three numbers"),
    ],
)
def test_a_topology_without_devices_or_of_too_many(platform, name, advice, monkeypatch):
    """XLA would end the process; or of no name take what nobody has."""
    monkeypatch.setattr(topology, "has_hardware", lambda _: False)
    with pytest.raises(DeviceError, match=rf"from 1 to 262,144 devices\. {advice}"):
        topologies.get_topology_desc(name, platform=platform)


OF_ANOTHER_VERSION = """
#include <stddef.h>
static struct {
    size_t size; void *next;
    struct { size_t size; void *next; int major, minor; } version;
    void *functions[300];
} interface = { sizeof(interface), 0, { sizeof(interface.version), 0, 0, 1 } };
const void *GetPjrtApi(void) { return &interface; }
"""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (OF_ANOTHER_VERSION, "version 0.1 is older than the minimum"),
        ("int nothing;", "GetPjrtApi not found"),
        (None, "file too short"),
    ],
)
def test_a_plugin_that_does_not_fit_is_told(tmp_path, source, reason):
    """In a process of its own, which keeps what it has loaded."""
    library, compiler = tmp_path / "libtpu.so", shutil.which("cc")
    if source is None:
        library.write_text("text")
    elif compiler is None:
        pytest.skip("needs a compiler of C")
    else:
        (tmp_path / "plugin.c").write_text(source)
        build = [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "plugin.c"]
        subprocess.run(build, check=True)
    program = "from phalanx.experimental.topologies import *; get_topology_desc('v5e:2x4', 'tpu')"
    env = os.environ | {"TPU_LIBRARY_PATH": str(library)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("phalanx.errors.DeviceError: the plugin for tpu cannot be loaded: ")
    assert reason in last
    assert f"another version of jaxlib than {jaxlib.__version__}, which is here: pip" in last


PROGRAMS = """
import math, pickle
import numpy as np
import phalanx, phalanx.numpy as jnp
from phalanx import lax
from phalanx.ad_checkpoint import checkpoint_name
from phalanx.errors import DeviceError
from phalanx.experimental import topologies
from phalanx.experimental.serialize_executable import deserialize_and_load, serialize
from phalanx.sharding import NamedSharding, PartitionSpec as P
from phalanx.xla.topology import _GRIDS as GRIDS

whole = topologies.get_topology_desc("v5e:2x4", "tpu", chips_per_host_bounds=[2, 4, 1]).devices
assert {d.process_index for d in whole} == {0}
pod = topologies.get_topology_desc("v5e:2x4", platform="tpu")
assert topologies.get_topology_desc("v5e:2x4", platform="tpu").devices == pod.devices
d, large = pod.devices, jnp.arange(100_000.0)
x = phalanx.ShapeDtypeStruct((64, 64), jnp.float32)

one = phalanx.jit(lambda x: x @ x + large.sum(), device=d[3]).lower(x).compile()
assert one.memory_analysis().argument_size_in_bytes >= 4 * (64 * 64 + 100_000)
assert one.cost_analysis()["flops"] > 0 and "fusion" in one.as_text()

policy = phalanx.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
    offload_src="device", offload_dst="pinned_host")
f = phalanx.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "h")), policy=policy)
wide = phalanx.ShapeDtypeStruct((8192, 8192), jnp.float32)
slope = phalanx.jit(phalanx.grad(lambda x: f(x).sum()), device=d[0])
assert slope.lower(wide).compile().memory_analysis().host_temp_size_in_bytes == 4 * 8192**2

total = lambda x: lax.psum(x, "i")
for lanes in (8, 19):
    rows = phalanx.ShapeDtypeStruct((lanes, 64), jnp.float32)
    summed = phalanx.pmap(total, "i", devices=d).lower(rows).compile()
    assert [c.operation for c in summed.collectives()] == ["all-reduce"]
    phalanx.pmap(jnp.sin, devices=d).lower(rows).compile().memory_analysis()
try:
    deserialize_and_load(*pickle.loads(pickle.dumps(serialize(summed))))
except DeviceError as e:
    assert "tpu:6, and the devices here are [CpuDevice" in str(e), e
else:
    raise AssertionError("it was loaded")

mesh = topologies.make_mesh(pod, (4, 2), ("data", "model"))
cut = NamedSharding(mesh, P("data", "model"))
assert phalanx.jit(jnp.matmul, in_shardings=(cut, cut)).lower(x, x).compile().collectives()

for use in (
    lambda: phalanx.device_put(1.0, d[0]),
    lambda: phalanx.jit(jnp.sin, device=d[0])(1.0),
    lambda: one(np.ones((64, 64), np.float32)),
    lambda: phalanx.pmap(total, "i", devices=d)(jnp.ones((8, 2))),
    lambda: phalanx.pmap(total, "i", devices=d).lower(np.ones((11, 2), np.float32)).compile(),
):
    try:
        use()
    except DeviceError as e:
        assert "is described and not here" in str(e) or "over 6 of the 8 chips" in str(e), e
    else:
        raise AssertionError("it ran")
try:
    topologies.get_topology_desc("v5e:2x3", platform="tpu")
except DeviceError as e:
    assert "'v5e:2x3'" in str(e) and "Near it are v5e:2x2, v5e:2x4" in str(e)
for generation, grids in GRIDS.items():
    for grid in grids:
        there = topologies.get_topology_desc(f"{generation}:{grid}", platform="tpu").devices
        assert len(there) >= math.prod(map(int, grid.split("x")))
print("all compiled")
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu")
def test_programs_compile_for_tpus_that_are_not_here():
    done = subprocess.run([sys.executable, "-c", PROGRAMS], capture_output=True, text=True)
    assert done.stdout == "all compiled\n", done.stderr[-2000:]


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins") is None, reason="needs the extra aot")
def test_sorts_of_many_elements_compile_where_no_gpu_is():
    """Of those by radix the compiler asks a GPU how much memory they take."""
    gpu = topologies.get_topology_desc("1x1x1", "cuda", target_config="NVIDIA H100 80GB HBM3")
    keys = phalanx.ShapeDtypeStruct(
        (1_000_000,), "float32", sharding=phalanx.sharding.SingleDeviceSharding(gpu.devices[0])
    )
    compiled = phalanx.jit(jnp.argsort).lower(keys).compile()
    assert compiled.memory_analysis().output_size_in_bytes == 4_000_000
