"""Options: their defaults, their environment variables, and overrides for one context.

``config.update(name, value)`` changes an option for the whole process. ``config.override``
changes it for a block of code in the running thread or task. Environment variables
``PHALANX_<NAME>`` set the values to begin with, or else ``JAX_<NAME>`` for all that does not
concern the compilation cache, and ``PHALANX_CACHE_DIR`` says where that lies, too; one that is
nearly the name of an option is warned of. Where nothing else
says into how many devices the CPU is divided, XLA's flag
``--xla_force_host_platform_device_count`` in ``XLA_FLAGS`` counts, as it is at the first use.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import NoneType
from typing import Any
from weakref import WeakSet

from msgspec import Struct

from phalanx.base import jax_options
from phalanx.base.errors import ConfigError, UnknownOption, nearest, suggest
from phalanx.base.kinds import is_iterable
from phalanx.base.places import user_cache
from phalanx.base.precision import PRECISIONS
from phalanx.base.recent import Recent


class Option(Struct, frozen=True):
    """An option: what it is for, what values it takes, and whether a block can override it."""

    name: str
    default: Any
    check: Callable[[Any], Any]  # the value to store; ValueError says what is needed instead
    parse: Callable[[str], Any]  # what an environment variable means
    doc: str
    tracing: bool = False  # part of `config.key`
    watching: bool = False  # changes no program; these two kinds are to override in a block
    short: str = ""  # the name in the environment, where it is not that of the option
    own: bool = False  # what it concerns is not shared with JAX on the same machine

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set the value to begin with; the first counts."""
        own = [f"PHALANX_{name.upper()}" for name in (self.short, self.name) if name]
        if self.own:
            return (*own,)
        others = [name.upper() for name, meant in _OTHER_NAMES.items() if self.name in meant]
        of_others = [f"{prefix}_{name}" for name in others for prefix in ("PHALANX", "JAX")]
        return (*own, f"JAX_{self.name.upper()}", *of_others)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _boolean_from(text: str) -> Any:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    return words.get(text.strip().lower(), text)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a positive integer")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("an integer from 0 up")
    return value


def _device_numbers(value: Any) -> tuple[int, ...] | None:
    """Which devices: all of them, or those of the numbers."""
    if value in (None, "", "all"):
        return None
    if isinstance(value, str):
        value = [int(n) if n.strip().isdigit() else n for n in value.split(",")]
    numbers = tuple(value) if is_iterable(value) else (value,)
    if not numbers or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise ValueError("'all', or numbers of devices, such as '0,2'")
    return numbers


def _entries(value: Any) -> dict[str, Any] | None:
    """Options of a client: a dict, or its entries as text, ``name:value`` with ; between."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {**value}
    parts = [entry.partition(":") for entry in str(value).split(";") if entry]
    if not all(name and colon for name, colon, _ in parts):
        raise ValueError("a dict, or entries 'name:value' with ; between")
    return {name.strip(): text.strip() for name, _, text in parts}


def _count_from(text: str) -> Any:
    return int(text) if text.strip().isdigit() else text


def _size(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < -1:
        raise ValueError("a number of bytes, 0 for no cache or -1 for no limit")
    return value


def _size_from(text: str) -> Any:
    return int(text) if re.fullmatch(r"\s*-?\d+\s*", text) else text


def _seconds(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise ValueError("a number of seconds from 0 up")
    return float(value)


def _seconds_from(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _folder(value: Any) -> str | None:
    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise ValueError("a path, or None")
    path: str = os.fspath(value or "")
    return os.path.abspath(os.path.expanduser(path)) if path else None


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise ValueError("text or None")
    return os.fspath(value or "") or None


def _platforms(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("None or names of platforms separated by commas, such as 'cuda,cpu'")
    return value or None


def _device(value: Any) -> Any:
    if value is not None and not isinstance(value, str) and not hasattr(value, "device_kind"):
        raise ValueError("a device, the name of a platform, or None for the first device")
    return value or None


def _mesh(value: Any) -> Any:
    if value is not None and not hasattr(value, "axis_names"):
        raise ValueError("a Mesh or None")
    return value


def _precision(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.lower() not in PRECISIONS:
        raise ValueError(
            "None, 'default', 'high', 'highest', 'bfloat16', 'bfloat16_3x', 'tensorfloat32', "
            "'float32' or the name of a DotAlgorithmPreset, such as 'BF16_BF16_F32'"
        )
    return PRECISIONS[value.lower()]


_FILTERING = ("auto", "off", "remove_frames", "quiet_remove_frames", "tracebackhide")


def _filtering(value: Any) -> str:
    if not isinstance(value, str) or value not in _FILTERING:
        raise ValueError("'auto', which leaves out frames of this package, or 'off'")
    return "off" if value == "off" else "auto"


def _one_of(*words: str | None) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, (str, NoneType)) or value not in words:
            raise ValueError("one of " + ", ".join(map(repr, words)))
        return value

    return check


def _word(text: str) -> Any:
    return text or None


def _flag(name: str, doc: str) -> Option:
    return Option(name, False, _boolean, _boolean_from, doc, tracing=True)


def _log(name: str, doc: str) -> Option:
    return Option(name, False, _boolean, _boolean_from, doc, watching=True)


def _mtls(name: str, doc: str) -> Option:
    return Option(f"mtls_{name}", None, _text, _word, f"{doc}, where initialize is not told one.")


_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


def _guard(which: str) -> Option:
    doc = f"Whether to 'allow', 'log' or 'disallow' transfers from {which.replace('_', ' ')}."
    name = f"transfer_guard_{which}"
    return Option(name, None, _one_of(None, *_GUARDS), _word, doc, watching=True)


OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        _flag("enable_x64", "Keep 64-bit dtypes; otherwise they become the 32-bit ones."),
        _flag("debug_nans", "Raise NonFiniteError as soon as an operation produces a NaN."),
        _flag("debug_infs", "Raise NonFiniteError as soon as an operation produces an infinity."),
        _flag("check_tracer_leaks", "Look for traced values that outlive their transformations."),
        _flag(
            "enable_checks",
            "Check programs against their types when they are traced, and after each pass.",
        ),
        _flag("enable_custom_prng", "Let random.PRNGKey give keys of the kind of random.key."),
        _flag("disable_jit", "Run jitted and mapped functions eagerly, one operation at a time."),
        _flag("disable_most_optimizations", "Compile faster, to programs that are slower."),
        _flag(
            "disable_vmap_shmap_error", "Do not refuse spmd_axis_name where shard_map cuts by it."
        ),
        _flag(
            "remove_size_one_mesh_axis_from_type", "In shard_map types know of axes of length > 1."
        ),
        _flag("keep_lanes", "Keep what vmap does in a program as one operation in lanes."),
        _flag("reproducible", "Give pmap the same bits on any number of devices."),
        _flag("wrap_integers", "Let Python ints wrap around to dtypes that do not hold them."),
        _log("log_compiles", "Log a warning for each program that is compiled."),
        _log("explain_cache_misses", "Log a warning when a function is traced, and what is new."),
        Option(
            "dump_ir_to",
            None,
            _folder,
            str,
            "The directory for texts of each program that is compiled: as it was traced, after the "
            "passes that change it, and its module. None: there is none.",
        ),
        _log("no_tracing", "Refuse to trace functions that jit, pmap and shard_map have not seen."),
        *map(_guard, ("host_to_device", "device_to_host", "device_to_device")),
        Option(
            "debug_replicated",
            0,
            _number,
            _count_from,
            "After how many launches of a program over processes these compare again what must be "
            "the same in all. 0: before the first one only.",
            tracing=True,
        ),
        Option(
            "numpy_rank_promotion",
            "allow",
            _one_of("allow", "warn", "raise"),
            str,
            "Whether arrays of different ranks broadcast: 'allow', 'warn' or 'raise'.",
            tracing=True,
        ),
        Option(
            "numpy_dtype_promotion",
            "standard",
            _one_of("standard", "strict"),
            str,
            "Whether dtypes are promoted, 'standard', or numbers of Python alone, 'strict'.",
            tracing=True,
        ),
        Option(
            "default_prng_impl",
            "threefry2x32",
            _one_of("threefry2x32", "rbg", "unsafe_rbg"),
            str,
            "The generator of keys that say no other, and of keys in their old form.",
            tracing=True,
        ),
        Option(
            "threefry_partitionable",
            True,
            _boolean,
            _boolean_from,
            "Draw each number by its own position; otherwise the numbers that were drawn formerly.",
            tracing=True,
        ),
        Option(
            "auto_pcast",
            True,
            _boolean,
            _boolean_from,
            "Let values beside others in shard_map vary as these; otherwise pcast has to say it.",
            tracing=True,
        ),
        Option(
            "legacy_prng_key",
            "allow",
            _one_of("allow", "warn", "error"),
            str,
            "Whether keys in their old form are taken: 'allow', 'warn' or 'error'.",
            watching=True,
        ),
        Option(
            "num_cpu_devices",
            None,
            _count,
            _count_from,
            "Into how many devices the CPU is divided. Fixed once the CPU client has started.",
        ),
        Option(
            "platforms",
            None,
            _platforms,
            str,
            "Which platforms there have to be, such as 'cuda,cpu'. The first one is that of arrays "
            "that nobody places. None: the best there is.",
        ),
        Option(
            "cuda_visible_devices",
            None,
            _device_numbers,
            str,
            "The numbers of the NVIDIA GPUs that are used, such as '0,2'. None: all.",
        ),
        Option(
            "rocm_visible_devices",
            None,
            _device_numbers,
            str,
            "The numbers of the AMD GPUs that are used, such as '0,2'. None: all.",
        ),
        Option(
            "pjrt_client_create_options",
            None,
            _entries,
            str,
            "Further options with which an accelerator is started, such as 'name:value;other:1'.",
        ),
        Option(
            "default_matmul_precision",
            None,
            _precision,
            lambda text: text or None,
            "Precision of float32 products that do not ask for one, such as 'high' or 'bfloat16'.",
            tracing=True,
        ),
        Option(
            "default_device",
            None,
            _device,
            str,
            "Where arrays are made that nobody places: a device, or the name of a platform.",
            tracing=True,
        ),
        Option(
            "mesh",
            None,
            _mesh,
            str,
            "The mesh whose axes are meant where none is given; phalanx.set_mesh sets it.",
            tracing=True,
        ),
        Option(
            "compilation_cache_dir",
            user_cache(),
            _folder,
            str,
            "The directory that keeps compiled programs for later processes. None: there is none.",
            short="cache_dir",
            own=True,
        ),
        Option(
            "enable_compilation_cache",
            True,
            _boolean,
            _boolean_from,
            "Whether compiled programs are kept for later processes, and those looked for.",
            own=True,
        ),
        Option(
            "compilation_cache_max_size",
            2 << 30,
            _size,
            _size_from,
            "How many bytes may lie there; what was not used for longest goes first. -1: no limit.",
            own=True,
        ),
        Option(
            "persistent_cache_min_compile_time_secs",
            0.0,
            _seconds,
            _seconds_from,
            "What took fewer seconds to compile is not kept there.",
            own=True,
        ),
        _mtls("cert_file", "The certificate that this process shows to those it computes with"),
        _mtls("key_file", "The key of that certificate"),
        _mtls("ca_file", "The certificates to which those of the others must lead"),
        _mtls("peer_uri_prefix", "How a URI in the certificates of the others must begin"),
        Option(
            "distributed_verify_secure_credentials",
            False,
            _boolean,
            _boolean_from,
            "Refuse to compute with other processes without mutual TLS.",
        ),
        Option(
            "traceback_filtering",
            "auto",
            _filtering,
            str,
            "Whether tracebacks leave out the frames of this package: 'auto', or 'off' for all.",
        ),
    )
}
_TRACING = tuple(option.name for option in OPTIONS.values() if option.tracing)
_PREFIXES = ("phalanx_", "jax_")
_OTHER_NAMES = {
    "platform_name": ("platforms",),
    "transfer_guard": tuple(name for name in OPTIONS if name.startswith("transfer_guard_")),
}
_FLAG = re.compile(r"--(?P<no>no)?(jax|phalanx)_(?P<name>\w+)(=(?P<text>.*))?")


class LayeredOptions:
    """The values of all options in some contexts, as attributes.

    ``key`` is a small integer that stands for everything here that changes what tracing and
    compiling a function gives: equal keys mean equal settings.
    """

    layers: tuple[Mapping[str, Any], ...]
    state: tuple[Any, ...]  # what the key stands for
    enable_x64: bool
    debug_nans: bool
    debug_infs: bool
    check_tracer_leaks: bool
    enable_checks: bool
    enable_custom_prng: bool
    disable_jit: bool
    disable_most_optimizations: bool
    disable_vmap_shmap_error: bool
    remove_size_one_mesh_axis_from_type: bool
    reproducible: bool
    wrap_integers: bool
    log_compiles: bool
    explain_cache_misses: bool
    dump_ir_to: str | None
    no_tracing: bool
    transfer_guard_host_to_device: str | None
    transfer_guard_device_to_host: str | None
    transfer_guard_device_to_device: str | None
    numpy_rank_promotion: str
    numpy_dtype_promotion: str
    default_prng_impl: str
    threefry_partitionable: bool
    auto_pcast: bool
    legacy_prng_key: str
    num_cpu_devices: int | None
    platforms: str | None
    cuda_visible_devices: tuple[int, ...] | None
    rocm_visible_devices: tuple[int, ...] | None
    pjrt_client_create_options: dict[str, Any] | None
    default_matmul_precision: str | None
    default_device: Any
    mesh: Any
    compilation_cache_dir: str | None
    enable_compilation_cache: bool
    compilation_cache_max_size: int
    persistent_cache_min_compile_time_secs: float
    mtls_cert_file: str | None
    mtls_key_file: str | None
    mtls_ca_file: str | None
    mtls_peer_uri_prefix: str | None
    distributed_verify_secure_credentials: bool
    traceback_filtering: str
    key: int

    def __init__(self, layers: tuple[Mapping[str, Any], ...]) -> None:
        with _lock:
            self.refresh(layers)
            _overridden.add(self)

    def refresh(self, layers: tuple[Mapping[str, Any], ...]) -> None:
        """Take over the values for the process where no layer has another.

        All change at once: other threads look at them meanwhile.
        """
        values = dict(_process)
        for layer in layers:
            values |= layer
        state = tuple([values[name] for name in _TRACING])
        key = _keys[state]
        if key is None:
            key = _keys[state] = _key_in_force(state)
        self.__dict__ = {**values, "key": key, "layers": layers, "state": state}


def _key_in_force(state: tuple[Any, ...]) -> int:
    """The key of settings that are alike and in force, which the table forgot, or a new one."""
    alike = (other.key for other in _overridden if other.state == state)
    return next(itertools.chain(alike, _numbers))


def differing_options(old: int, new: int) -> list[str]:
    """How the settings differ that keys stand for, by option."""
    states = {key: state for state, key in _keys.items()}
    if old not in states or new not in states:
        return ["settings differ"]
    compared = zip(_TRACING, states[old], states[new], strict=True)
    others = [(name, was, now) for name, was, now in compared if was != now]
    return [f"the option {name} is {now!r}, and was {was!r}" for name, was, now in others]


_process: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
_keys: Recent[int] = Recent(256)
_numbers = itertools.count()  # one that was forgotten does not come again
_frozen: dict[str, str] = {}
_settled: dict[str, Any] = {}
_lock = threading.RLock()
_overridden: WeakSet[LayeredOptions] = WeakSet()
_of_process = LayeredOptions(())
_here: ContextVar[LayeredOptions] = ContextVar("settings", default=_of_process)
settings = _here.get


class Override(ContextDecorator):
    """Options for a block of code, or for the calls of a function that it decorates."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __enter__(self) -> None:
        _here.set(LayeredOptions((*settings().layers, self._values)))

    def __exit__(self, *_: object) -> None:
        # Not what was before: blocks in generators need not end in the order of a stack. Of those
        # here that say the same the innermost ends; threads and tasks have their own.
        layers = [*reversed(settings().layers)]
        if self._values in layers:
            layers.remove(self._values)
        _here.set(LayeredOptions((*reversed(layers),)) if layers else _of_process)


class Config:
    """The options of this library: ``config.enable_x64`` is the value here and now.

    That is what was set for the process, unless an ``override`` holds in the running context:
    one for each thread and each task of asyncio, and what ``contextvars.copy_context`` copies.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        option = name.removeprefix("jax_")  # the name that it has in programs of others
        if option in OPTIONS:
            return getattr(settings(), option)
        if option in _OTHER_NAMES:
            return getattr(settings(), _OTHER_NAMES[option][0])
        if jax_options.is_foreign(option):
            return jax_options.value(option)
        near = suggest(name, OPTIONS)
        try:
            raise AttributeError(f"config has no option {name!r}. {near}".rstrip())
        except AttributeError as error:
            error.__traceback__ = None  # so that the last line is the one that asks
            raise

    def __repr__(self) -> str:
        changed = {
            name: value
            for name, option in OPTIONS.items()
            if (value := getattr(settings(), name)) != option.default
        }
        return "config(" + ", ".join(f"{n}={v!r}" for n, v in changed.items()) + ")"

    @property
    def key(self) -> int:
        """What stands for all that changes what tracing and compiling a function gives."""
        return settings().key

    @property
    def looks_for_nonfinite(self) -> bool:
        """Whether results are looked at, for NaNs or for infinities."""
        return settings().debug_nans or settings().debug_infs

    @property
    def values(self) -> dict[str, Any]:
        """All options by the names that they have in programs of others."""
        names = [*OPTIONS, *jax_options.HARMLESS, *jax_options.FIXED]
        return {f"jax_{name}": getattr(self, name) for name in names}

    @property
    def num_cpu_devices(self) -> int:
        """Into how many devices the CPU is divided; what XLA's own flag says, until it is set."""
        return settings().num_cpu_devices or _host_devices(os.environ.get("XLA_FLAGS", ""))

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are kept, here and now."""
        return settings().enable_x64

    def read(self, name: str) -> Any:
        """The value of option ``name`` here and now.

        Raises:
            AttributeError: there is no such option.

        >>> config.read("jax_enable_x64")
        False
        """
        try:
            return getattr(self, _bare(name))
        except AttributeError as error:
            raise AttributeError(*error.args) from None

    def update(self, name: str, value: Any) -> None:
        """Set option ``name`` for the whole process.

        Raises:
            ConfigError: there is no such option, the value is of the wrong kind, or the option
                is fixed by now.
        """
        bare = _bare(name)
        if jax_options.is_foreign(bare):
            jax_options.update(bare, value)
            return
        for which in _OTHER_NAMES.get(bare, (bare,)):
            self._update(_find(which), value)

    def _update(self, option: Option, value: Any) -> None:
        checked = _check(option, value)
        with _lock:
            reason = _frozen.get(option.name)
            same = getattr(self, option.name), _settled.get(option.name)
            if reason is not None and checked not in same:
                raise ConfigError(
                    f"config.update: {option.name} is {getattr(self, option.name)!r} and can no "
                    f"longer change to {checked!r}: {reason}"
                )
            _process[option.name] = checked
            for each in list(_overridden):
                each.refresh(each.layers)

    def override(self, **changes: Any) -> Override:
        """Set options for a block of code, in the running thread or task only.

        >>> with config.override(enable_x64=True):
        ...     config.enable_x64
        True
        """
        named = {_bare(name): value for name, value in changes.items()}
        for name in filter(jax_options.is_foreign, [*named]):
            jax_options.check(name, named.pop(name))
        options = {
            _find(option): value
            for name, value in named.items()
            for option in _OTHER_NAMES.get(name, (name,))
        }
        for option in options:
            if not option.tracing and not option.watching:
                raise ConfigError(
                    f"config.override: {option.name} holds for the whole process; set it with "
                    f"config.update({option.name!r}, ...)"
                )
        return Override({option.name: _check(option, v) for option, v in options.items()})

    def config_with_absl(self) -> None:
        """Set the options among the arguments of the program, such as ``--jax_enable_x64=true``.

        A program that uses absl, and has imported its flags, may be given them too.
        """
        for argument in sys.argv[1:]:
            flag = _FLAG.fullmatch(argument)
            if flag and flag["name"] in OPTIONS:
                text = "false" if flag["no"] else flag["text"]
                parsed = OPTIONS[flag["name"]].parse("true" if text is None else text)
                self.update(flag["name"], parsed)
        absl: Any = sys.modules.get("absl.flags")
        for name in OPTIONS if absl else ():
            if f"jax_{name}" not in absl.FLAGS:
                absl.DEFINE_string(f"jax_{name}", None, OPTIONS[name].doc)

    def parse_flags_with_absl(self) -> None:
        """The same, where nobody runs the program by ``absl.app``: its flags have their defaults.

        Those of tests, such as a folder for temporary files, can be read from then on.
        """
        self.config_with_absl()
        absl: Any = sys.modules.get("absl.flags")
        if absl and not absl.FLAGS.is_parsed():
            absl.FLAGS([""], known_only=True)

    def freeze(self, name: str, reason: str, settled: Any = None) -> None:
        """From now on refuse to change ``name``; ``reason`` ends the error message.

        What it has come to, ``settled``, can still be asked for.
        """
        _frozen[_find(name).name] = reason
        _settled[_find(name).name] = settled

    def thaw(self, name: str) -> None:
        """Allow ``name`` to change again."""
        _frozen.pop(_find(name).name, None)

    def describe(self) -> str:
        """All options with their values here and now, one a line."""
        lines = (f"{o.name} = {getattr(self, o.name)!r}  # {o.doc}" for o in OPTIONS.values())
        return "\n".join(lines)

    def __setattr__(self, name: str, value: Any) -> None:
        _find(name)
        raise ConfigError(
            f"config.{name} cannot be assigned; use config.update({name!r}, {value!r})"
        )


def _bare(name: str) -> str:
    bare = name.lower()
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    return bare


def _find(name: str) -> Option:
    bare = _bare(name)
    if bare not in OPTIONS:
        hint = suggest(bare, OPTIONS) or f"The options are {', '.join(OPTIONS)}."
        raise UnknownOption(f"config: there is no option {name!r}. {hint}")
    return OPTIONS[bare]


def _check(option: Option, value: Any, who: str = "config") -> Any:
    try:
        return option.check(value)
    except ValueError as needed:
        raise ConfigError(f"{who}: {option.name} must be {needed}, got {value!r}") from None


def _host_devices(flags: str) -> int:
    """The number of CPU devices that XLA's own flag asks for."""
    counts = re.findall(r"--xla_force_host_platform_device_count=(\d+)", flags)
    return max(1, int(counts[-1])) if counts else 1


_environment: dict[str, str] = {}  # what was read of it


def read_environment() -> None:
    """Give options the values that the environment says now and did not say before."""
    for option in OPTIONS.values():
        variable = next((v for v in option.variables if v in os.environ), None)
        if variable is not None and os.environ[variable] != _environment.get(variable):
            text = _environment[variable] = os.environ[variable]
            _process[option.name] = _check(option, option.parse(text), variable)
    for name, (only, _) in jax_options.FIXED.items():
        variable = f"JAX_{name.upper()}"
        if text := os.environ.get(variable):
            jax_options.check(name, _PARSERS.get(only.__class__, str)(text), variable)
    _of_process.refresh(())


def option_source(name: str, value: Any) -> str | None:
    """The environment variable that gave option ``name`` the text ``value``; None: no one did."""
    texts = ((v, _environment[v]) for v in OPTIONS[name].variables if v in _environment)
    return next((variable for variable, text in texts if text == value), None)


_PARSERS: dict[type, Callable[[str], Any]] = {bool: _boolean_from, int: _count_from}


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AT_THE_IMPORT: Any = (  # the line of the user's that imports us
    {"skip_file_prefixes": (_PACKAGE,)} if sys.version_info >= (3, 12) else {"stacklevel": 2}
)


def _warn_of_misspelt() -> None:
    """Warn of variables of the environment that are nearly the name of an option's."""
    variables = {v for option in OPTIONS.values() for v in option.variables}
    bare = {v.removeprefix("PHALANX_"): v for v in variables if v.startswith("PHALANX_")}
    for variable in sorted(os.environ.keys() - variables):
        if variable.startswith("PHALANX_"):
            near = nearest(variable.removeprefix("PHALANX_"), bare, 0.8)  # it may be another's
            if near:
                warnings.warn(
                    f"the environment variable {variable} is that of no option. "
                    f"Did you mean {bare[near]}?",
                    **_AT_THE_IMPORT,
                )


read_environment()
_warn_of_misspelt()
config = Config()
