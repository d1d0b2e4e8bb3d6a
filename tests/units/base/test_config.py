"""Options: values, checks, overrides in threads, and the key of what changes tracing."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import traceback
import weakref

import pytest

from phalanx.base import config as module
from phalanx.base.config import OPTIONS, config
from phalanx.base.errors import ConfigError, UnknownOption
from phalanx.base.recent import forget_everything


@pytest.fixture(autouse=True)
def restored():
    before = {name: getattr(config, name) for name in OPTIONS}
    frozen = dict(module._frozen)
    module._frozen.clear()
    yield
    module._frozen.clear()
    for name, value in before.items():
        config.update(name, value)
    module._frozen.update(frozen)


def in_a_thread(f):
    found = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start()
    thread.join()
    return found[0]


def in_a_process(code, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PHALANX_", "JAX_", "XLA_"))}
    return subprocess.run(
        [sys.executable, "-c", f"from phalanx.base.config import config\n{code}"],
        env={**clean, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
    )


def test_every_option_is_an_attribute_and_documented():
    for name, option in OPTIONS.items():
        assert hasattr(config, name) and option.doc.endswith(".")
        assert name in config.describe()


def test_update_is_seen_by_other_threads_and_changes_the_key():
    key = config.key
    config.update("enable_x64", not config.enable_x64)
    assert config.key != key
    assert in_a_thread(lambda: (config.enable_x64, config.key)) == (config.enable_x64, config.key)
    config.update("enable_x64", not config.enable_x64)
    assert config.key == key


def test_the_names_of_the_field_work_too():
    config.update("jax_debug_nans", True)
    assert config.debug_nans
    config.update("phalanx_debug_nans", False)
    assert not config.debug_nans


def test_an_option_that_does_not_change_tracing_leaves_the_key_alone():
    key = config.key
    config.update("platforms", "cpu")
    assert config.platforms == "cpu" and config.key == key


def test_an_override_holds_in_its_thread_and_block_only():
    config.update("enable_x64", False)
    key = config.key
    with config.override(enable_x64=True, debug_nans=True):
        assert config.enable_x64 and config.debug_nans and config.key != key
        assert in_a_thread(lambda: (config.enable_x64, config.key)) == (False, key)
        inside = config.key
        with config.override(enable_x64=False):
            assert not config.enable_x64 and config.debug_nans
            assert config.key not in (key, inside)
        assert config.key == inside
    assert not config.enable_x64 and config.key == key


def test_an_override_ends_with_an_error_as_well():
    key = config.key
    with pytest.raises(ZeroDivisionError), config.override(disable_jit=True):
        raise ZeroDivisionError
    assert not config.disable_jit and config.key == key


def test_an_override_is_a_decorator_too():
    @config.override(disable_jit=True)
    def f():
        return config.disable_jit

    assert f() and f() and not config.disable_jit


def test_the_key_of_settings_in_force_outlives_the_table():
    key = config.key
    forget_everything()
    with config.override(no_tracing=True):
        assert config.key == key


def test_equal_settings_have_equal_keys_however_they_came_about():
    with config.override(enable_x64=True):
        overridden = config.key
    config.update("enable_x64", True)
    assert config.key == overridden


def test_an_update_during_an_override_reaches_its_key():
    config.update("debug_nans", False)
    with config.override(enable_x64=True):
        before = config.key
        in_a_thread(lambda: config.update("debug_nans", True))
        assert config.enable_x64 and config.debug_nans and config.key != before


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("enable_x64", 1, "enable_x64 must be True or False, got 1"),
        ("num_cpu_devices", 0, "a positive integer"),
        ("num_cpu_devices", True, "a positive integer"),
        ("num_cpu_devices", "8", "a positive integer"),
        ("platforms", 3, "names of platforms"),
        ("default_matmul_precision", "hihg", "'bfloat16'"),
        ("enable_x32", True, "no option 'enable_x32'. Did you mean 'enable_x64'?"),
        ("wholly_unknown", 1, "The options are enable_x64,"),
    ],
)
def test_refused_values(name, value, needed):
    with pytest.raises(ConfigError, match="config") as caught:
        config.update(name, value)
    assert needed in str(caught.value)


def test_precision_has_aliases():
    words = {"tensorfloat32": "high", "BF16_BF16_F32": "default", "F32_F32_F32": "highest"}
    for name, word in words.items():
        config.update("default_matmul_precision", name)
        assert config.default_matmul_precision == word
    config.update("default_matmul_precision", None)
    assert config.default_matmul_precision is None


def test_overriding_refuses_what_holds_for_the_process():
    with pytest.raises(ConfigError, match=r"config.update\('num_cpu_devices'"):
        config.override(num_cpu_devices=2)


def test_a_frozen_option_may_be_set_to_what_it_is_and_says_why_not_otherwise():
    config.update("num_cpu_devices", 3)
    config.freeze("num_cpu_devices", "the CPU client has started; set it before the first array")
    config.update("num_cpu_devices", 3)
    with pytest.raises(ConfigError, match=r"is 3 and can no longer change to 4: the CPU client"):
        config.update("num_cpu_devices", 4)
    config.thaw("num_cpu_devices")
    config.update("num_cpu_devices", 4)


def test_a_frozen_option_may_be_set_to_what_it_has_come_to():
    config.update("platforms", None)
    config.freeze("platforms", "the client of platform cpu has started", "cpu")
    config.update("jax_platform_name", "cpu")
    with pytest.raises(ConfigError, match="can no longer change to 'cuda'"):
        config.update("platforms", "cuda")
    config.thaw("platforms")


def test_assigning_is_refused_and_a_misspelt_read_is_an_attribute_error():
    with pytest.raises(ConfigError, match=r"use config.update\('enable_x64', True\)"):
        config.enable_x64 = True
    with pytest.raises(AttributeError):
        _ = config.enable_x65  # type: ignore[attr-defined]
    with pytest.raises(UnknownOption, match="Did you mean 'enable_x64'"):
        config.enable_x65 = True


@pytest.mark.parametrize(
    ("variables", "expression", "expected"),
    [
        ({"PHALANX_ENABLE_X64": "1"}, "config.enable_x64, config.key != 0", "(True, True)"),
        ({"PHALANX_ENABLE_X64": "off"}, "config.enable_x64, config.key", "(False, 0)"),
        ({"PHALANX_NUM_CPU_DEVICES": "8"}, "config.num_cpu_devices", "8"),
        ({"XLA_FLAGS": "--a=b --xla_force_host_platform_device_count=4"},
         "config.num_cpu_devices", "4"),
        ({"PHALANX_NUM_CPU_DEVICES": "2",
          "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
         "config.num_cpu_devices", "2"),
        ({"PHALANX_PLATFORMS": "cpu"}, "config.platforms", "cpu"),
        ({"JAX_PLATFORM_NAME": "cpu", "JAX_TRANSFER_GUARD": "log",
          "JAX_TRANSFER_GUARD_DEVICE_TO_HOST": "allow"},
         "config.platforms, config.transfer_guard_host_to_device, "
         "config.transfer_guard_device_to_host", "('cpu', 'log', 'allow')"),
        ({}, "config.num_cpu_devices, config.platforms", "(1, None)"),
    ],
)  # fmt: skip
def test_environment_variables(variables, expression, expected):
    assert in_a_process(f"print(({expression}))", **variables).stdout.strip() == expected


def test_a_bad_environment_variable_is_named():
    ran = in_a_process("", PHALANX_NUM_CPU_DEVICES="many")
    needed = "PHALANX_NUM_CPU_DEVICES: num_cpu_devices must be a positive integer, got 'many'"
    assert needed in ran.stderr
    assert [line.split(",")[0] for line in ran.stderr.split("\n") if line.startswith("  File")] == [
        '  File "<string>"'
    ]


@pytest.mark.parametrize("variable", ["PHALANX_DEFAULT_DEVICE", "JAX_DEFAULT_DEVICE"])
def test_a_device_that_is_none_is_told_with_its_variable(variable):
    """Which devices there are is known when one is asked for, not at the import."""
    ran = in_a_process("import phalanx.numpy; phalanx.numpy.ones(3)", **{variable: "nonsense"})
    needed = f"{variable} must be a platform with devices, got 'nonsense': devices: Unknown backend"
    assert needed in ran.stderr


def test_environment_variables_of_what_is_fixed_are_refused_in_words():
    ran = in_a_process("", JAX_MOCK_GPU_TOPOLOGY="1x2x4")
    assert "JAX_MOCK_GPU_TOPOLOGY: mock_gpu_topology is '' here and cannot be '1x2x4'" in ran.stderr
    assert "experimental.topologies" in ran.stderr
    same = in_a_process("print(3)", JAX_MOCK_GPU_TOPOLOGY="", JAX_USE_SHARDY_PARTITIONER="1")
    assert same.stdout.strip() == "3"


def test_an_option_that_is_not_there_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'enable_x46'\. Did you mean 'enable_x64'") as e:
        _ = config.enable_x46
    assert traceback.extract_tb(e.value.__traceback__)[-1].filename == __file__


def test_overrides_of_tasks_that_overlap_do_not_mix():
    seen = {}

    async def task(name, first, second, **options):
        with config.override(**options):
            first.set()
            await second.wait()
            seen[name] = config.enable_x64, config.debug_nans
        seen[name] += config.enable_x64, config.debug_nans

    async def main():
        a, b = asyncio.Event(), asyncio.Event()
        with config.override(enable_x64=False, debug_nans=False):
            await asyncio.gather(
                task("wide", a, b, enable_x64=True), task("nans", b, a, debug_nans=True)
            )

    asyncio.run(main())
    assert seen == {"wide": (True, False, False, False), "nans": (False, True, False, False)}


def test_a_copied_context_keeps_its_overrides_and_gets_updates():
    config.update("debug_nans", False)
    with config.override(enable_x64=not config.enable_x64):
        inside, value = contextvars.copy_context(), config.enable_x64
    assert config.enable_x64 is not value
    config.update("debug_nans", True)
    assert inside.run(lambda: (config.enable_x64, config.debug_nans)) == (value, True)


def test_overrides_in_generators_may_end_in_any_order():
    def holding(**options):
        with config.override(**options):
            yield

    config.update("enable_x64", False)
    config.update("debug_nans", False)
    first, second = holding(enable_x64=True), holding(debug_nans=True)
    next(first), next(second)
    first.close()
    assert (config.enable_x64, config.debug_nans) == (False, True)
    second.close()
    assert (config.enable_x64, config.debug_nans) == (False, False)


def test_one_override_serves_tasks_that_overlap():
    override, seen = config.override(debug_nans=True), []

    async def task(pause):
        for _ in range(3):
            with override:
                await asyncio.sleep(pause)
                seen.append(config.debug_nans)
            seen.append(config.debug_nans)
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(task(n / 1000) for n in range(4)))

    config.update("debug_nans", False)
    asyncio.run(main())
    assert seen.count(True) == seen.count(False) == 12
    assert not config.debug_nans


def test_a_nested_override_ends_where_it_ends():
    config.update("debug_nans", False)
    on, off = config.override(debug_nans=True), config.override(debug_nans=False)
    seen = []
    with on:
        with off:
            with on:
                seen.append(config.debug_nans)
            seen.append(config.debug_nans)
        seen.append(config.debug_nans)
    assert [*seen, config.debug_nans] == [True, False, True, False]


def test_options_are_read_by_the_names_of_the_field():
    with config.override(enable_x64=True):
        assert config.jax_enable_x64 is True


def test_options_come_from_the_environment_and_from_arguments():
    show = "print(config.enable_x64, config.debug_nans, config.platforms)"
    found = in_a_process(show, JAX_ENABLE_X64="1", JAX_DEBUG_NANS="1", PHALANX_DEBUG_NANS="0")
    assert found.stdout == "True False None\n"
    given = "import sys; sys.argv = ['program', '--jax_platforms=cpu', '--jax_debug_nans', '-v']"
    found = in_a_process(f"{given}\nconfig.parse_flags_with_absl()\n{show}")
    assert found.stdout == "False True cpu\n"
    found = in_a_process("print(config.compilation_cache_dir)", JAX_COMPILATION_CACHE_DIR="/x")
    assert "/x" not in found.stdout.split()


ABSL = """
import sys, types

class Flags(set):
    parsed = None
    is_parsed = lambda self: self.parsed is not None
    def __call__(self, argv, known_only):
        self.parsed = argv

flags = types.ModuleType("absl.flags")
flags.FLAGS = Flags()
flags.DEFINE_string = lambda name, *_: flags.FLAGS.add(name)
sys.modules["absl.flags"] = flags
"""


def test_flags_of_absl_can_be_read_where_nobody_else_parses_them():
    show = "print('jax_debug_nans' in flags.FLAGS, flags.FLAGS.parsed)"
    defined = in_a_process(f"{ABSL}\nconfig.config_with_absl()\n{show}")
    assert defined.stdout == "True None\n", defined.stderr
    twice = "config.parse_flags_with_absl()\n" * 2
    parsed = in_a_process(f"{ABSL}\n{twice}{show}")
    assert parsed.stdout == "True ['']\n", parsed.stderr


def test_every_option_has_a_variable_of_its_name():
    assert [n for n, o in OPTIONS.items() if f"PHALANX_{n.upper()}" not in o.variables] == []
    for variable in ("PHALANX_CACHE_DIR", "PHALANX_COMPILATION_CACHE_DIR"):
        found = in_a_process("print(config.compilation_cache_dir)", **{variable: "/x"})
        assert (found.stdout, found.stderr) == ("/x\n", "")


@pytest.mark.parametrize(
    "misspelt, meant",
    [
        ("ENABEL_X64", "ENABLE_X64"),
        ("NUM_CPU_DEVICE", "NUM_CPU_DEVICES"),
        ("DEBUG_NAN", "DEBUG_NANS"),
    ],
)
def test_a_misspelt_variable_is_told_of(misspelt, meant):
    found = in_a_process("", **{f"PHALANX_{misspelt}": "1"})
    assert f"PHALANX_{misspelt} is that of no option. Did you mean PHALANX_{meant}?" in found.stderr
    if sys.version_info >= (3, 12):  # at the line that imports the package
        assert "config.py" not in found.stderr


def test_variables_of_others_are_not_options():
    names = ("TOKEN", "PROCESS_ID", "NUM_PROCESSES", "LOCAL_DEVICE_IDS", "AS_JAX", "MY_OWN")
    assert in_a_process("", **{f"PHALANX_{name}": "1" for name in names}).stderr == ""


def test_options_with_other_names():
    config.update("jax_platform_name", "cpu")
    assert config.platforms == config.jax_platform_name == "cpu"
    with config.override(transfer_guard="log"):
        assert config.transfer_guard_device_to_host == config.transfer_guard == "log"


def test_an_update_shows_no_other_values_inside_an_override_of_another_thread():
    seen, reading = set(), threading.Event()

    def read():
        with config.override(enable_x64=not config.enable_x64, numpy_rank_promotion="warn"):
            expected = (config.enable_x64, config.numpy_rank_promotion, config.key)
            reading.set()
            while reading.is_set():
                seen.add((config.enable_x64, config.numpy_rank_promotion, config.key) == expected)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=read)
    try:
        sys.setswitchinterval(1e-6)
        thread.start()
        reading.wait()
        for _ in range(3000):
            config.update("log_compiles", False)
    finally:
        reading.clear()
        thread.join()
        sys.setswitchinterval(interval)
    assert seen == {True}


def test_settings_of_long_ago_are_forgotten_and_their_keys_do_not_come_again():
    class Mesh:
        axis_names = ()

    first = Mesh()
    with config.override(mesh=first):
        before = config.key
    known = weakref.ref(first)
    del first
    keys = []
    for _ in range(1000):
        with config.override(mesh=Mesh()):
            keys.append(config.key)
    gc.collect()
    assert known() is None
    assert len({before, *keys}) == 1001


def test_an_option_can_be_read_by_the_names_that_it_is_set_by():
    for value in (True, False):
        config.update("jax_enable_x64", value)
        assert config.read("jax_enable_x64") is config.read("enable_x64") is value
        assert config.x64_enabled is value
    with pytest.raises(AttributeError, match=r"no option 'enable_x46'\. Did you mean 'enable_x64'"):
        config.read("jax_enable_x46")


def test_repr_has_what_was_changed():
    with config.override(enable_x64=True, debug_nans=True):
        assert "enable_x64=True" in repr(config) and "debug_nans=True" in repr(config)
    assert "debug_nans" not in repr(config)
