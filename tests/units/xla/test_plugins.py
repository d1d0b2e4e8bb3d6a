"""Which platforms are found and started: on machines that are made up."""

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jaxlib.version
import pytest

from phalanx.base.config import OPTIONS, config
from phalanx.base.errors import ConfigError, DeviceError
from phalanx.processes import hardware
from phalanx.processes.dealing import OfHost
from phalanx.xla import client, cuda, gpu_calls, partitioning, plugins, processes, rocm
from phalanx.xla.plugins import Plugin


@pytest.fixture
def files(monkeypatch, tmp_path_factory):
    """files(*names): the device files that there are; returns what the others are below."""

    def there(*names):
        root = tmp_path_factory.mktemp("system")
        for name in names:
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            (root / name[1:]).touch()
        monkeypatch.setattr(hardware, "_ROOT", str(root))
        return root

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
    packages("libtpu/libtpu.so", CUDA12)
    said = tmp_path / "chip.json"
    said.write_text(json.dumps({"library_path": "/b.so", "create_options": {"n": 2}}))
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"mine:/a.so,chip:{said},cuda:/c.so")
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/own/libtpu.so")
    assert plugins.installed() == {
        "cuda": [Plugin("cuda", "/c.so")],
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
def test_tpus_are_seen_on_the_bus(files, device, there):
    for driver in ((), ("/dev/vfio/0", "/dev/vfio/vfio")):
        place = files(*driver) / "sys/bus/pci/devices/0000:00:04.0"
        place.mkdir(parents=True)
        (place / "vendor").write_text("0x1ae0\n")
        (place / "device").write_text(f"{device}\n")  # 0x0042 is a network card
        assert hardware.has_hardware("tpu") is (there and driver != ())


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


def test_a_container_that_was_made_for_gpus_and_given_none_is_told(
    files, packages, fresh, recwarn, monkeypatch
):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    packages(CUDA12, "nvidia/cudnn/lib/libcudnn.so.9")
    assert client.client().platform == "cpu" and not recwarn.list
    files("/.dockerenv")
    with pytest.warns(RuntimeWarning, match="no GPU, so the CPU computes: .*--gpus all"):
        assert client.client().platform == "cpu"
    client.config.platforms = "cpu"
    assert client.client().platform == "cpu"


def test_gpus_without_their_plugin_are_asked_for_by_their_own_name(files, packages, fresh):
    packages()
    files("/dev/kfd")
    with pytest.raises(DeviceError, match=r"'gpu'. XLA's plugin .*jax-rocm7-plugin"):
        client.client("gpu")


@pytest.mark.parametrize("seen", ["", "-1"])
def test_gpus_that_the_environment_hides_are_not_used(files, packages, fresh, monkeypatch, seen):
    files("/dev/nvidia0")
    packages(CUDA12)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert client.client().platform == "cpu" and client.local_device_ids(OfHost(1, 2)) is None
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


def test_a_tpu_that_does_not_start_is_told_with_what_it_needs(monkeypatch):
    def make(*_):
        raise RuntimeError("NOT_FOUND: TPU initialization failed: No jellyfish device found.")

    monkeypatch.setattr(client, "load", lambda plugin: None)
    monkeypatch.setattr(client, "xla_client", SimpleNamespace(make_c_api_client=make))
    with pytest.raises(DeviceError, match=r"'tpu': .* found\. One process .* /dev/vfio/\*$"):
        client._start([Plugin("tpu", "/a.so")])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("rocm,cpu", "Unable to initialize backend 'rocm': .*has no AMD GPU"),
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


@pytest.fixture
def driver(monkeypatch):
    """driver(capabilities, status, version): what answers as the driver of such GPUs, or fails."""

    def there(capabilities, status=0, version=12080):
        def put(value):
            return lambda there: setattr(there._obj, "value", value)

        def attribute(there, which, device):
            there._obj.value = divmod(capabilities[device.value], 10)[which - 75]

        made = SimpleNamespace(
            cuInit=lambda _: status,
            cuDeviceGetCount=put(len(capabilities)),
            cuDeviceGet=lambda there, number: setattr(there._obj, "value", number),
            cuDeviceGetAttribute=attribute,
            cuDriverGetVersion=put(version),
            cuGetErrorName=lambda _, word: put(b"CUDA_ERROR_X")(word),
            cuGetErrorString=lambda _, word: put(b"not ready")(word),
        )
        monkeypatch.setattr(cuda, "_driver", lambda: made)

    return there


@pytest.mark.parametrize(
    ("runs", "capabilities", "built", "chosen"),
    [
        (13000, [90], (12, 13), 13), (12080, [90], (12, 13), 12), (13010, [90], (12,), 12),
        (13000, [70], (12, 13), 12), (13000, [52, 89], (12, 13), 13),
    ],
)  # fmt: skip
def test_the_plugin_that_fits_driver_and_gpu(driver, runs, capabilities, built, chosen):
    driver(capabilities, version=runs)
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
    monkeypatch.setattr(cuda, "capabilities", lambda: [90])
    monkeypatch.setattr(cuda, "prepare", lambda plugin, gpus: done.append(plugin.version))
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


def test_gpus_that_are_too_old_are_told(driver):
    driver([70, 61], version=13000)
    with pytest.raises(DeviceError, match=r"CUDA 13, .* capability 7\.5 .* has 7\.0: .*\[cuda12\]"):
        cuda.fitting([Plugin("cuda", "", 13)])
    driver([30], version=13000)
    with pytest.raises(DeviceError, match=r"CUDA 12, .* capability 5\.0 or more, .* has 3\.0$"):
        cuda.fitting([Plugin("cuda", "", 12)])


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


@pytest.mark.parametrize(
    ("status", "seen", "remedy"),
    [(802, "", "fabricmanager"), (803, "9", "restart"), (804, "", "LD_LIBRARY_PATH"),
     (100, "9", "CUDA_VISIBLE_DEVICES=9 names none"), (100, "", "nvidia-smi")],
)  # fmt: skip
def test_a_driver_that_does_not_start_is_told(driver, monkeypatch, status, seen, remedy):
    driver([90] * 8, status)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    with pytest.raises(DeviceError, match=f"error {status}, CUDA_ERROR_X, not ready: .*{remedy}"):
        cuda.prepare(Plugin("cuda", "/a.so", 12), ())


def test_gpus_that_the_driver_does_not_show_are_told(driver):
    driver([90])
    with pytest.raises(DeviceError, match=r"use GPU 1, 3, and CUDA shows it 1, .*\(MIG\)"):
        cuda.prepare(Plugin("cuda", "/a.so", 12), [0, 1, 3])
    assert cuda.prepare(Plugin("cuda", "/a.so"), [0]) == "a driver for CUDA 12.8"


VERSIONS = {
    "cuda_runtime": 12090, "cudnn": 91100, "cublas": 120901, "cusparse": 12510, "cufft": 11401,
    "cupti": 28,
}  # fmt: skip


@pytest.fixture
def libraries(monkeypatch):
    """libraries(**other): the module of a plugin that tells versions, of which some are other."""

    def there(built=VERSIONS, **other):
        def missing():
            raise RuntimeError("not found")

        get = {
            f"{n}_get_version": missing if v is None else lambda v=v: v
            for n, v in {**VERSIONS, **other}.items()
        }
        build = {f"{n}_build_version": lambda v=v: v for n, v in built.items()}
        module = SimpleNamespace(**get, **build)
        monkeypatch.setattr(cuda, "extension", lambda plugin, name: module)

    monkeypatch.delenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    return there


def test_libraries_are_told_with_their_versions(driver, libraries, packages):
    packages()
    driver([90, 90])
    libraries(cudnn=91101)
    assert cuda.prepare(Plugin("cuda", "/a.so", 12), ()) == (
        "a driver for CUDA 12.8, CUDA 12.9, cuDNN 9.11.1, cuBLAS 12.9.1, cuSPARSE 12.5.10, "
        "cuFFT 11.4.1, CUPTI 28"
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"cudnn": 91099, "built": {**VERSIONS, "cudnn": 91102}},
            r"cuDNN is 9\.10\.99, .* 9\.11\.0",
        ),
        ({"cuda_runtime": 11080}, r"CUDA is 11\.8, at least 12\.1 is needed\. .*cuda12.*=/theirs"),
        ({"cufft": None, "cudnn": None}, "cuDNN, cuFFT cannot be loaded. "),
        ({"cudnn": 91000, "built": {**VERSIONS, "cudnn": 91002}}, r"takes some dtypes for others"),
        ({"cudnn": 90900, "built": {**VERSIONS, "cudnn": 90900}}, r"products on several GPUs"),
    ],
)
def test_libraries_that_do_not_fit_are_told(
    driver, libraries, packages, monkeypatch, other, message
):
    packages()
    driver([90, 90])
    libraries(**other)
    with pytest.raises(DeviceError, match=message):
        cuda.prepare(Plugin("cuda", "/a.so", 12), ())
    monkeypatch.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    assert "cuBLAS 12.9.1" in cuda.prepare(Plugin("cuda", "/a.so", 12), ())


def test_of_one_gpu_products_are_right(driver, libraries, packages):
    packages()
    driver([90, 90])
    libraries(cudnn=90900, built={**VERSIONS, "cudnn": 90900})
    assert "cuDNN 9.9.0" in cuda.prepare(Plugin("cuda", "/a.so", 12), [1])


@pytest.mark.parametrize(
    ("capability", "cublas", "warned"),
    [(100, 120901, True), (100, 130200, False), (90, 120901, False)],
)
def test_products_that_race_are_warned_of(
    driver, libraries, packages, recwarn, capability, cublas, warned
):
    packages()
    driver([capability])
    libraries(cublas=cublas)
    cuda.prepare(Plugin("cuda", "/a.so", 12), ())
    assert ["cuBLAS 12.9.1 can give wrong" in str(w.message) for w in recwarn] == [True] * warned


def test_libraries_are_loaded_wherever_their_packages_lie(packages, monkeypatch, tmp_path):
    packages("nvidia/cublas/lib/libcublas.so.12", "nvidia/cu13/lib/libcublas.so.13")
    other = tmp_path / "other"
    for file in ("cudnn/lib/libcudnn.so.9", "cuda_nvrtc/lib/libnvrtc.so.12"):
        (other / "nvidia" / file).parent.mkdir(parents=True)
        (other / "nvidia" / file).touch()
    sys.path.append(str(other))
    loaded = []

    def load(path):
        loaded.append(Path(path).name)
        if "nvrtc" in path:
            raise OSError("it needs what is not here")

    monkeypatch.setattr(cuda.ctypes, "CDLL", load)
    cuda._preload(Plugin("cuda", "/a.so", 12))
    assert loaded == ["libnvrtc.so.12", "libcublas.so.12", "libcudnn.so.9"]
    loaded.clear()
    cuda._preload(Plugin("cuda", "/a.so", 13))
    assert loaded == ["libnvrtc.so.12", "libcublas.so.13", "libcudnn.so.9"]


def test_the_folder_of_the_assembler(packages, monkeypatch):
    top = packages("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cublas/lib/libcublas.so.12")
    monkeypatch.delenv("CUDA_ROOT", raising=False)
    folder = cuda.data_directory.__wrapped__
    assert folder() == folder(12) == str(top / "nvidia/cuda_nvcc") and folder(13) is None
    packages("nvidia/cu13/bin/ptxas")
    assert folder() == folder(13) == str(top / "nvidia/cu13")
    assert folder(12) == str(top / "nvidia/cuda_nvcc")  # a driver may not run what another makes
    monkeypatch.setenv("CUDA_ROOT", "/no/cuda")
    with pytest.warns(RuntimeWarning, match="CUDA_ROOT=/no/cuda is no folder"):
        assert folder(13) == str(top / "nvidia/cu13")
    monkeypatch.setenv("CUDA_ROOT", str(top))
    assert folder(12) == str(top)


@pytest.fixture
def rocm_here(packages, monkeypatch):
    """rocm_here(*files): AMD's, below a folder; what is loaded, and what the plugin is told."""
    loaded, told = [], {}
    monkeypatch.setattr(rocm.ctypes, "CDLL", lambda path, mode: loaded.append(Path(path).name))
    own = SimpleNamespace(environ=os.environ, putenv=told.__setitem__)
    monkeypatch.setattr(rocm, "os", own)
    monkeypatch.setattr(rocm, "_SYSTEM", Path("/nowhere"))
    monkeypatch.delitem(sys.modules, "rocm", raising=False)
    for variable in (*rocm._OPTIONS, "ROCM_PATH"):
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


def test_clients_of_several_processes_know_each_other(monkeypatch):
    member = SimpleNamespace(process=3, count=8)
    monkeypatch.setattr(processes, "_connected", [(member, "the coordination service")])
    monkeypatch.setattr(processes, "_visible", [6, 7])  # those that were dealt to this one
    said = {"cuda_visible_devices": (4, 5, 6, 7), "pjrt_client_create_options": None}
    monkeypatch.setattr(client, "config", SimpleNamespace(**said))
    options, service = client._arguments(Plugin("cuda", "/a.so", 12))
    assert (options["node_id"], options["num_nodes"], options["visible_devices"]) == (3, 8, [6, 7])
    assert service == "the coordination service"
    assert client._arguments(Plugin("tpu", "/a.so")) == ({}, "the coordination service")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEM_FRACTION", "half"),
        ("PREALLOCATE", "perhaps"),
        ("ALLOCATOR", "mine"),
        ("MEM_FRACTON", "0.5"),
    ],
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
    assert list(reasons) == ["tpu", "cuda", "rocm"] and "plugin" in reasons["rocm"]
    assert "has no TPU" in reasons["tpu"] and "has no NVIDIA GPU" in reasons["cuda"]
    files("/.dockerenv")
    assert "docker run --gpus all" in client.absences()["cuda"]


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


@pytest.fixture
def belonging(monkeypatch):
    """belonging(package, version, **modules): a package that belongs to a plugin."""

    def there(package, version, **modules):
        top = ModuleType(package)
        top.__path__ = []
        monkeypatch.setitem(sys.modules, package, top)
        modules["version"] = SimpleNamespace(__version__=version)
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, f"{package}.{name}", module)

    return there


@pytest.mark.parametrize(("platform", "start"), [("cuda", "cu"), ("rocm", "hip")])
def test_what_a_plugin_for_gpus_calls_is_registered(monkeypatch, belonging, platform, start):
    done, by_matrix = [], []
    own = SimpleNamespace(
        register_custom_type=print,
        register_custom_call_target=lambda interface, name: done.append((interface, name)),
        ffi_types=lambda: {"t": 1},
        ffi_handlers=lambda: {"f": 2},
    )
    calls = {
        "_solver": f"{start}solver_getrf_ffi", "_hybrid": f"{start}hybrid_eig_real",
        "_linalg": f"{start}_lu_pivots_to_permutation", "_prng": f"{start}_threefry2x32_ffi",
        "_sparse": f"{start}sparse_gtsv2_ffi",
    }  # fmt: skip
    modules = {m: SimpleNamespace(registrations=lambda n=n: {n: 3}) for m, n in calls.items()}
    belonging(
        f"jax_{platform}7_plugin", jaxlib.version.__version__,
        **modules, **{f"{platform}_plugin_extension": own},
    )  # fmt: skip

    def told(what):
        return lambda *args, platform, **_: done.append((what, platform, args[0]))

    fake = SimpleNamespace(
        register_custom_type_handler=lambda platform, _: done.append(("types", platform)),
        register_custom_call_handler=lambda platform, call: (done.append(platform), call("g")),
        register_custom_type=told("type"),
        register_custom_call_target=told("call"),
        register_custom_call_as_batch_partitionable=lambda name, c_api: by_matrix.append(name),
    )
    monkeypatch.setattr(gpu_calls, "xla_client", fake)
    monkeypatch.setattr(partitioning, "register", lambda given: done.append(("blocks", given)))
    gpu_calls.register(Plugin(platform, "/a.so", 7), "interface")
    name = platform.upper()
    assert done == [
        ("blocks", "interface"), ("types", name), name, ("interface", "g"), ("type", name, "t"),
        ("call", name, "f"), *[("call", name, target) for target in calls.values()],
    ]  # fmt: skip
    assert by_matrix == [target for target in calls.values() if "threefry" not in target]


def test_a_plugin_without_the_package_that_belongs_to_it_is_told(belonging):
    with pytest.raises(DeviceError, match=r"needs .*jax_cuda7_plugin: .*'jax-cuda7-plugin\[with"):
        gpu_calls.extension(Plugin("cuda", "/a.so", 7), "_versions")
    assert gpu_calls.extension(Plugin("cuda", "/a.so"), "_versions") is None
    belonging("jax_cuda7_plugin", "0.1.0", _versions="module")
    with pytest.raises(
        DeviceError, match=r"CUDA 7 is for jaxlib 0\.1\.0, and jaxlib .*plugin\[with"
    ):
        gpu_calls.extension(Plugin("cuda", "/a.so", 7), "_versions")
    belonging("jax_rocm7_plugin", "0.1.0", _versions="module")  # AMD releases it on its own
    assert gpu_calls.extension(Plugin("rocm", "/a.so", 7), "_versions") == "module"
    assert gpu_calls.extension(Plugin("rocm", "/a.so", 7), "_hybrid") is None


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
    assert client.local_device_ids(OfHost(1, 2)) == dealt


@pytest.mark.parametrize(("own", "dealt"), [((4, 5, 6, 7), [6, 7]), ((5, 3), [3]), ((6,), None)])
def test_gpus_that_the_user_chose_are_dealt_out_and_no_others(
    files, packages, fresh, monkeypatch, own, dealt
):
    files(*[f"/dev/nvidia{i}" for i in range(8)])
    packages(CUDA13)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    client.config.cuda_visible_devices = own
    assert client.local_device_ids(OfHost(1, 2)) == dealt


def test_a_tpu_is_not_dealt_out(files, packages, fresh):
    files("/dev/accel0")
    packages("libtpu/libtpu.so")
    assert client.local_device_ids(OfHost(0, 1)) is None
    with pytest.raises(ConfigError, match=r"2 processes on this machine.*TPU_VISIBLE_CHIPS"):
        client.local_device_ids(OfHost(0, 2))
