"""Which platforms are found and started: on machines that are made up."""

import fnmatch
import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from phalanx.base.config import OPTIONS, config
from phalanx.base.errors import ConfigError, DeviceError
from phalanx.processes import hardware
from phalanx.processes.dealing import OfHost
from phalanx.xla import client, cuda, gpu_calls, partitioning, plugins, rocm
from phalanx.xla.plugins import Plugin


@pytest.fixture
def files(monkeypatch):
    """files(*names): the device files that there are."""

    def there(*names):
        def glob(pattern):
            return fnmatch.filter(names, pattern)

        monkeypatch.setattr(hardware.glob, "glob", glob)

    there()
    return there


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """packages(**files): plugins that are installed, beside those of this machine: none."""

    def install(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("")
        importlib.invalidate_caches()
        return tmp_path

    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in ("PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("jax_plugins", "libtpu"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return install


@pytest.fixture
def fresh(monkeypatch):
    """A client that nobody has asked for yet; started: which platforms were."""
    started = []

    def start(candidates):
        started.append(candidates[0].platform)
        return SimpleNamespace(platform=candidates[0].platform)

    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "_start", start)
    monkeypatch.setattr(client, "_start_cpu", lambda: SimpleNamespace(platform="cpu"))
    monkeypatch.setattr(client, "_watch_forks", lambda: None)
    monkeypatch.setattr(client, "_preferred", client._preferred.__wrapped__)
    settings = SimpleNamespace(
        platforms=None, cuda_visible_devices=None, rocm_visible_devices=None, freeze=lambda *_: None
    )
    monkeypatch.setattr(client, "config", settings)
    return started


CUDA12 = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
CUDA13 = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"


# ---- what is installed --------------------------------------------------------------------------


def test_plugins_of_packages_are_found_and_not_imported(packages):
    top = packages(
        CUDA12, CUDA13, "jax_plugins/xla_rocm7/xla_rocm_plugin.so", "libtpu/libtpu.so",
        "libtpu/__init__.py", "jax_plugins/xla_mine/mine.so", "jax_plugins/empty/readme.txt",
    )  # fmt: skip
    for package in ("libtpu/__init__.py", "jax_plugins/xla_cuda12/__init__.py"):
        (top / package).write_text("raise RuntimeError('imported')")
    found = plugins.installed()
    assert {name: [p.version for p in of] for name, of in found.items()} == {
        "tpu": [0], "cuda": [12, 13], "mine": [0], "rocm": [7],
    }  # fmt: skip
    assert found["mine"][0].path == str(top / "jax_plugins/xla_mine/mine.so")


def test_plugins_that_call_themselves_so(packages):
    top = packages("theirs/chip/plugin.so", "theirs-1.0.dist-info/METADATA")
    (top / "theirs-1.0.dist-info/METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    points = "[jax_plugins]\nx = theirs.chip:start\n"
    (top / "theirs-1.0.dist-info/entry_points.txt").write_text(points)
    plugin = Plugin("chip", str(top / "theirs/chip/plugin.so"))
    assert plugins.announced() == {"chip": [plugin]} and not plugins.installed()
    assert client._absence("chip") is None


def test_plugins_that_the_environment_names(packages, monkeypatch, tmp_path):
    packages("libtpu/libtpu.so")
    said = tmp_path / "chip.json"
    said.write_text(json.dumps({"library_path": "/b.so", "create_options": {"n": 2}}))
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"mine:/a.so,chip:{said}")
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/own/libtpu.so")
    assert plugins.installed() == {
        "mine": [Plugin("mine", "/a.so")],
        "chip": [Plugin("chip", "/b.so", options={"n": 2})],
        "tpu": [Plugin("tpu", "/own/libtpu.so")],
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [("mine", "name:path"), (":/a.so", "name:path"), ("mine:/no.json", "library_path")],
)
def test_what_the_environment_says_wrongly(packages, monkeypatch, value, message):
    packages()
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", value)
    with pytest.raises(DeviceError, match=message):
        plugins.installed()


# ---- what hardware there is ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "platforms"),
    [
        ((), set()),
        (("/dev/nvidia0", "/dev/nvidiactl"), {"cuda"}),
        (("/dev/nvidiactl",), set()),
        (("/dev/dxg",), {"cuda"}),
        (("/dev/kfd",), {"rocm"}),
        (("/dev/accel0",), {"tpu"}),
        (("/dev/accel/accel0",), set()),  # of an Intel processor
        (("/dev/vfio/0",), {"tpu"}),
    ],
)
def test_devices_are_seen_by_their_files(files, there, platforms):
    files(*there)
    assert {n for n in ("tpu", "cuda", "rocm") if hardware.has_hardware(n)} == platforms
    assert hardware.has_hardware("chip")  # nobody knows how it looks


@pytest.mark.parametrize(
    ("device", "there"), [("0x0063", True), ("0x006f", True), ("0x0042", False)]
)
def test_tpus_are_seen_on_the_bus(files, monkeypatch, tmp_path, device, there):
    (tmp_path / "vendor").write_text("0x1ae0\n")
    (tmp_path / "device").write_text(f"{device}\n")  # 0x0042 is a network card
    monkeypatch.setattr(hardware, "_PCI", str(tmp_path))
    files(str(tmp_path))
    assert not hardware.has_hardware("tpu")  # no driver shows it
    files(str(tmp_path), "/dev/vfio/0")
    assert hardware.has_hardware("tpu") is there


# ---- what is started ----------------------------------------------------------------------------


def test_the_best_platform_is_started(files, packages, fresh):
    files("/dev/nvidia0")
    packages(CUDA12, "libtpu/libtpu.so")
    assert client.client().platform == "cuda" and fresh == ["cuda"]
    assert client.client("gpu") is client.client("cuda")
    files("/dev/kfd")
    packages("jax_plugins/xla_rocm7/xla_rocm_plugin.so")
    assert client.client("gpu").platform == "rocm"


def test_without_an_accelerator_the_cpu_computes(files, packages, fresh):
    packages(CUDA12)
    assert client.client().platform == "cpu" and not fresh


@pytest.mark.parametrize("seen", ["", "-1"])
def test_gpus_that_the_environment_hides_are_not_used(files, packages, fresh, monkeypatch, seen):
    files("/dev/nvidia0")
    packages(CUDA12)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert client.client().platform == "cpu" and client.dealt(OfHost(1, 2)) is None
    with pytest.raises(DeviceError, match=f"CUDA_VISIBLE_DEVICES={seen} hides every one"):
        client.client("gpu")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("/dev/nvidia0", r"an NVIDIA GPU, .* 'phalanx\[cuda13\]'"),
        ("/dev/accel0", r"a TPU, .* 'phalanx\[tpu\]'"),
        ("/dev/kfd", r"an AMD GPU, .* jax-rocm7-pjrt"),
    ],
)
def test_hardware_without_its_plugin_is_told(files, packages, fresh, file, words):
    files(file)
    packages()
    with pytest.warns(RuntimeWarning, match=words):
        assert client.client().platform == "cpu"


def test_an_accelerator_that_does_not_start_is_an_error(files, packages, fresh, monkeypatch):
    files("/dev/nvidia0")
    packages(CUDA12)

    def fail(_):
        raise DeviceError("Unable to initialize backend 'cuda': no memory")

    monkeypatch.setattr(client, "_start", fail)
    with pytest.raises(DeviceError, match=r"cuda': no memory. To compute on the CPU .*=cpu"):
        client.client()
    client.config.platforms = "cpu"
    assert client.client().platform == "cpu"
    client.config.platforms = "cuda,cpu"
    with pytest.raises(DeviceError, match=r"no memory$"):
        client.client()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("rocm,cpu", "Unable to initialize backend 'rocm': .*AMD's plugin"),
        ("cpu,tpu", "Unable to initialize backend 'tpu': .*has no TPU"),
        ("cudda", "Unable to initialize backend 'cudda': .*Did you mean 'cuda'"),
    ],
)
def test_every_platform_that_is_asked_for_has_to_be_there(files, packages, fresh, asked, message):
    packages("libtpu/libtpu.so")
    client.config.platforms = asked
    with pytest.raises(DeviceError, match=message) as caught:
        client.client()
    assert "JAX_PLATFORMS=''" in str(caught.value) and not fresh


def test_the_first_platform_that_is_asked_for_is_the_default(files, packages, fresh):
    files("/dev/nvidia0")
    packages(CUDA12)
    client.config.platforms = " cpu , gpu,"
    assert client.client().platform == "cpu" and not fresh
    client.config.platforms = ","  # which asks for none
    assert client.client().platform == "cuda"


def test_the_cpu_is_had_without_starting_an_accelerator(files, packages, fresh):
    files("/dev/nvidia0")
    packages(CUDA12)
    assert client.client("cpu").platform == "cpu" and not fresh


# ---- CUDA ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "built", "chosen"),
    [(13000, (12, 13), 13), (12080, (12, 13), 12), (13010, (12,), 12)],
)
def test_the_plugin_that_fits_the_driver(monkeypatch, driver, built, chosen):
    monkeypatch.setattr(cuda, "driver_version", lambda: driver)
    assert cuda.fitting([Plugin("cuda", "", v) for v in built]).version == chosen


def test_that_plugin_is_started_and_no_other(monkeypatch):
    done = []

    def make(platform, options, distributed):
        done.append(platform)
        if options["memory_fraction"] > 1:
            raise RuntimeError("no such memory")

    def said():
        return {"memory_fraction": float(os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"])}

    monkeypatch.setattr(cuda, "driver_version", lambda: 12080)
    monkeypatch.setattr(cuda, "prepare", lambda plugin: done.append(plugin.version))
    monkeypatch.setattr(client, "load", lambda plugin: done.append(plugin.path))
    made = SimpleNamespace(make_c_api_client=make, generate_pjrt_gpu_plugin_options=said)
    monkeypatch.setattr(client, "xla_client", made)
    both = [Plugin("cuda", "/12.so", 12), Plugin("cuda", "/13.so", 13)]
    for value, reason in (("0.5", None), ("2", "no such memory"), ("half", "FRACTION=half: ")):
        monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", value)
        done.clear()
        if reason is None:
            client._start(both)
            assert done == [12, "/12.so", "cuda"]
        else:
            with pytest.raises(DeviceError, match=f"initialize backend 'cuda': .*{reason}"):
                client._start(both)


def test_a_driver_that_is_too_old_is_told(monkeypatch):
    monkeypatch.setattr(cuda, "driver_version", lambda: 12080)
    with pytest.raises(DeviceError, match=r"up to 12\.8, .* for CUDA 13: .*'phalanx\[cuda12\]'"):
        cuda.fitting([Plugin("cuda", "", 13)])


def test_a_driver_that_no_plugin_fits_is_told(monkeypatch):
    monkeypatch.setattr(cuda, "driver_version", lambda: 11080)
    with pytest.raises(DeviceError, match=r"up to 11\.8, .* for CUDA 12: install a newer driver"):
        cuda.fitting([Plugin("cuda", "", 12)])


@pytest.mark.skipif(hardware.has_hardware("cuda"), reason="there is a driver here")
def test_a_driver_that_is_not_there_is_told():
    with pytest.raises(DeviceError, match=r"driver's library cannot be loaded .* --gpus all"):
        cuda.driver_version()


def test_libraries_that_are_too_old_are_told():
    names = ("cuda_runtime", "cudnn", "cufft", "cupti", "cublas", "cusparse")
    there = {name: 10**6 for name in names}
    built = {f"{name}_build_version": lambda: 91002 for name in names}

    def versions(**other):
        get = {f"{n}_get_version": lambda v=v: v for n, v in {**there, **other}.items()}
        return SimpleNamespace(**built, **get)

    cuda.check_versions(versions(cudnn=91000))  # of the same minor version
    with pytest.raises(DeviceError, match=r"cudnn is of version 90900, .*91000 .*LD_LIBRARY_PATH"):
        cuda.check_versions(versions(cudnn=90900))
    missing = versions()
    missing.cufft_get_version = lambda: 1 / 0
    with pytest.raises(DeviceError, match="cufft cannot be loaded"):
        cuda.check_versions(missing)


def test_the_folder_of_the_assembler(packages, monkeypatch):
    top = packages("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cublas/lib/libcublas.so.12")
    monkeypatch.delenv("CUDA_ROOT", raising=False)
    assert cuda.data_directory.__wrapped__() == str(top / "nvidia/cuda_nvcc")
    monkeypatch.setenv("CUDA_ROOT", "/opt/cuda")
    assert cuda.data_directory.__wrapped__() == "/opt/cuda"


@pytest.fixture
def rocm_here(packages, monkeypatch):
    """rocm_here(*files): AMD's, below a folder; what is loaded, and what the plugin is told."""
    loaded, told = [], {}
    monkeypatch.setattr(rocm.ctypes, "CDLL", lambda path, mode: loaded.append(Path(path).name))
    own = SimpleNamespace(environ=os.environ, putenv=told.__setitem__)
    monkeypatch.setattr(rocm, "os", own)
    monkeypatch.setattr(rocm, "_SYSTEM", Path("/nowhere"))
    monkeypatch.delitem(sys.modules, "rocm", raising=False)
    for variable in (*rocm._TOLD, "ROCM_PATH"):
        monkeypatch.delenv(variable, raising=False)

    def install(top, *files):
        return packages(*(f"{top}/{f}" for f in files)) / top, loaded, told

    return install


LIBRARIES = tuple(
    f"lib/lib{n}" for n in ("MIOpen.so.1", "rocblas.so", "rocblas.so.4", "amdhip64.so.7")
)


@pytest.mark.parametrize("below", ["amdgcn/bitcode", "lib/llvm/lib/clang/20/lib/amdgcn/bitcode"])
@pytest.mark.parametrize("named", [True, False])
def test_libraries_of_amd_are_found(rocm_here, monkeypatch, named, below):
    top, loaded, told = rocm_here(
        "any" if named else "rocm", *LIBRARIES, f"{below}/ocml.bc", "lib/llvm/bin/ld.lld"
    )
    if named:
        monkeypatch.setenv("ROCM_PATH", str(top))
    rocm.prepare()
    assert loaded == ["libamdhip64.so.7", "librocblas.so.4", "libMIOpen.so.1"]
    assert told == {
        "JAX_ROCM_PLUGIN_INTERNAL_BITCODE_PATH": str(top / below),
        "HIP_DEVICE_LIB_PATH": str(top / below),
        "JAX_ROCM_PLUGIN_INTERNAL_LLD_PATH": str(top / "lib/llvm/bin"),
    }
    assert rocm.data_directory.__wrapped__() == str(top / below)


def test_what_is_said_of_amds_libraries_stands(rocm_here, monkeypatch):
    top, loaded, told = rocm_here("rocm", *LIBRARIES, "amdgcn/bitcode/ocml.bc")
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", "/mine")
    monkeypatch.setattr(rocm, "_SYSTEM", top)  # where the plugin finds them by itself
    monkeypatch.setattr(rocm, "folders", lambda _: [])
    rocm.prepare()
    assert not loaded and told == {
        "JAX_ROCM_PLUGIN_INTERNAL_BITCODE_PATH": str(top / "amdgcn/bitcode")
    }
    assert rocm.data_directory.__wrapped__() == "/mine"


def test_without_libraries_of_amd_nothing_is_told(rocm_here, monkeypatch):
    _, loaded, told = rocm_here("other", "x")
    monkeypatch.setenv("ROCM_PATH", "/neither")
    rocm.prepare()
    assert not loaded and not told and rocm.data_directory.__wrapped__() is None


# ---- options ------------------------------------------------------------------------------------


def test_options_of_a_client(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    said = {"cuda_visible_devices": "0,2", "pjrt_client_create_options": "a:1;b:two"}
    meant = {name: OPTIONS[name].check(value) for name, value in said.items()}
    monkeypatch.setattr(client, "config", SimpleNamespace(**meant))
    options, _ = client._arguments(Plugin("cuda", "", 12, {"own": 1}))
    assert options["visible_devices"] == [0, 2] and options["memory_fraction"] == 0.5
    assert (options["own"], options["a"], options["b"]) == (1, "1", "two")
    check = OPTIONS["cuda_visible_devices"].check
    assert check("") is check("all") is None  # an empty variable says nothing
    client.config.cuda_visible_devices = check("all")
    assert "visible_devices" not in client._arguments(Plugin("cuda", "", 12))[0]
    client.config.pjrt_client_create_options = None
    assert client._arguments(Plugin("chip", "")) == ({}, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MEM_FRACTION", "half"), ("PREALLOCATE", "perhaps"), ("ALLOCATOR", "mine")],
)
def test_what_the_environment_says_wrongly_of_memory(monkeypatch, name, value):
    monkeypatch.setenv(f"XLA_PYTHON_CLIENT_{name}", value)
    with pytest.raises(ConfigError, match=f"XLA_PYTHON_CLIENT_{name}={value}: "):
        client._arguments(Plugin("cuda", "", 12))


@pytest.mark.parametrize(
    ("option", "value"),
    [("cuda_visible_devices", "0,x"), ("rocm_visible_devices", [-1]),
     ("pjrt_client_create_options", "alone")],
)  # fmt: skip
def test_options_that_mean_nothing(option, value):
    with pytest.raises(ConfigError, match=option):
        config.update(option, value)


def test_what_cannot_be_had_is_told_with_the_reason(files, packages):
    files("/dev/kfd")
    packages(CUDA12)
    reasons = client.absences()
    assert list(reasons) == ["tpu", "cuda", "rocm"] and "NVIDIA GPU" in reasons["cuda"]
    assert "plugin" in reasons["tpu"] and "plugin" in reasons["rocm"]


@pytest.mark.parametrize("by_another", [False, True])
def test_a_plugin_is_loaded_and_made_ready_once(monkeypatch, by_another):
    done = ["loaded", "ready"] if by_another else []
    monkeypatch.setattr(client, "loaded", {})
    fake = SimpleNamespace(
        pjrt_plugin_loaded=lambda _: "loaded" in done,
        pjrt_plugin_initialized=lambda _: "ready" in done,
        load_pjrt_plugin_dynamically=lambda *_: done.append("loaded") or "interface",
        initialize_pjrt_plugin=lambda _: done.append("ready"),
    )
    monkeypatch.setattr(client, "xla_client", fake)
    for _ in range(2):
        assert client.load(Plugin("chip", "/a.so")) == (None if by_another else "interface")
    assert done == ["loaded", "ready"]


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_what_a_plugin_for_gpus_calls_is_registered(monkeypatch, platform):
    done = []
    own = SimpleNamespace(
        register_custom_type=print,
        register_custom_call_target=lambda interface, name: done.append((interface, name)),
        ffi_types=lambda: {"t": 1},
        ffi_handlers=lambda: {"f": 2},
    )
    monkeypatch.setitem(sys.modules, f"jax_{platform}7_plugin", ModuleType("package"))
    monkeypatch.setitem(sys.modules, f"jax_{platform}7_plugin.{platform}_plugin_extension", own)

    def told(what):
        return lambda *args, platform, **_: done.append((what, platform, args[0]))

    fake = SimpleNamespace(
        register_custom_type_handler=lambda platform, _: done.append(("types", platform)),
        register_custom_call_handler=lambda platform, call: (done.append(platform), call("g")),
        register_custom_type=told("type"),
        register_custom_call_target=told("call"),
        register_custom_call_as_batch_partitionable=lambda *_, **__: None,
    )
    monkeypatch.setattr(gpu_calls, "xla_client", fake)
    monkeypatch.setattr(partitioning, "register", lambda given: done.append(("blocks", given)))
    gpu_calls.register(Plugin(platform, "/a.so", 7), "interface")
    name = platform.upper()
    assert done[:6] == [
        ("blocks", "interface"), ("types", name), name, ("interface", "g"), ("type", name, "t"),
        ("call", name, "f"),
    ]  # fmt: skip


# ---- for which process --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "platforms", "env", "dealt"),
    [
        (("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"), None, {}, (1,)),
        (("/dev/nvidia0", "/dev/nvidia1"), "cpu", {}, None),
        (("/dev/nvidia0", "/dev/nvidia1"), "cuda,cpu", {"CUDA_VISIBLE_DEVICES": "1"}, None),
        (("/dev/nvidia0", "/dev/nvidia1"), "gpu", {"CUDA_VISIBLE_DEVICES": "0,1"}, (1,)),
        (("/dev/dxg",), None, {}, None),  # which does not tell how many there are
        (("/dev/accel0",), None, {"TPU_VISIBLE_CHIPS": "1"}, None),
        ((), None, {}, None),
    ],
)
def test_gpus_are_dealt_out_to_the_processes_of_a_machine(
    files, packages, fresh, monkeypatch, there, platforms, env, dealt
):
    files(*there)
    packages(CUDA13, "libtpu/libtpu.so")
    client.config.platforms = platforms
    for name in ("CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert client.dealt(OfHost(1, 2)) == dealt


@pytest.mark.parametrize(("own", "dealt"), [((4, 5, 6, 7), [6, 7]), ((5, 3), [3]), ((6,), None)])
def test_gpus_that_the_user_chose_are_dealt_out_and_no_others(
    files, packages, fresh, monkeypatch, own, dealt
):
    files(*[f"/dev/nvidia{i}" for i in range(8)])
    packages(CUDA13)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    client.config.cuda_visible_devices = own
    assert client.dealt(OfHost(1, 2)) == dealt


def test_a_tpu_is_not_dealt_out(files, packages, fresh):
    files("/dev/accel0")
    packages("libtpu/libtpu.so")
    assert client.dealt(OfHost(0, 1)) is None
    with pytest.raises(ConfigError, match=r"2 processes on this machine.*TPU_VISIBLE_CHIPS"):
        client.dealt(OfHost(0, 2))
