"""Errors of the runtime, in our words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from phalanx.base.errors import (
    DeletedArray,
    DeviceError,
    OutOfMemory,
    PhalanxError,
    RefusedOption,
    RuntimeFailure,
)
from phalanx.base.source import user_location
from phalanx.processes.joined import failure_of_others
from phalanx.spmd.torus import ends_compilers

_DELETED = re.compile(
    r"(deleted or donated|has been deleted|been donated|donated buffer|shards, got: \[)", re.I
)
_OPTION = re.compile(r"(compile option|while setting option|DebugOptions|No such.*option)", re.I)
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):(\n  .*)*")
_ALL_CHIPS = re.compile("device assignment should include all slice devices|kMaxDeviceCount")
_TO_NEED_LESS = (
    "To need less memory: checkpoint, fewer lanes at once (lanes_at_once=), arguments that are "
    "donated, or arrays that are cut over more devices"
)
_OF_NCCL = (
    "NCCL, by which GPUs exchange arrays, tells more with NCCL_DEBUG=WARN in the environment. In a "
    "container it needs more than the usual room in /dev/shm: docker run --ipc=host, or "
    "--shm-size=8g. Between machines NCCL_SOCKET_IFNAME names the network to use"
)
_INTERRUPT = re.compile(r"\nKeyboardInterrupt\b|\nSystemExit: (?P<status>.*)")


def only_described(device: Any, who: str) -> DeviceError:
    """The exception for what a device that is not here was to do."""
    return DeviceError(
        f"{who}: {device.device_kind} is described and not here, so it holds no arrays and runs "
        "nothing; programs are compiled for it, f.lower(x).compile(), and looked at: "
        "memory_analysis(), cost_analysis(), as_text(), collectives(); or taken to where it is: "
        "experimental.serialize_executable"
    )


def check_fits(who: str, sizes: Mapping[str, int], memory: int, device: Any) -> None:
    """Raise OutOfMemory if a program needs more than the ``memory`` of a device, in bytes.

    Args:
        who: its name.
        sizes: what it needs, as ``Executable.memory_analysis`` says.
        memory: how much the device has.
        device: one of those for which it is compiled.
    """
    needed = sum([sizes[key] for key in _PARTS]) - sizes["aliased"]
    if needed > memory:
        who = f"compile, at {user_location()}: {who}"
        raise out_of_memory(who, sizes, device.device_kind, memory)


_PARTS: Final = ("arguments", "outputs", "temporaries")


def out_of_memory(who: str, sizes: Mapping[str, int], device: str, memory: float) -> OutOfMemory:
    """The error of ``who`` that needs memory of such ``sizes`` in a ``device``, and it has less."""
    inputs, outputs, temporaries = [size_text(sizes[key]) for key in _PARTS]
    needed = size_text(sum([sizes[key] for key in _PARTS]) - sizes["aliased"])
    return OutOfMemory(
        f"{who} needs {needed}, and {device} has {size_text(memory)}: it takes {inputs}, gives "
        f"{outputs}, and holds {temporaries} between\n{_TO_NEED_LESS}"
    )


def size_text(size: float) -> str:
    """A number of bytes.

    >>> size_text(3 * 2**29), size_text(2**62)
    ('1.5 GiB', '4.295e+09 GiB')
    """
    return f"{size / 2**30:.4g} GiB"


def check_slice(who: str, devices: Sequence[Any]) -> None:
    """Raise DeviceError if compilers take no program over just these chips of a slice."""
    if ends_compilers(devices):
        raise DeviceError(
            f"{who}, at {user_location()}: compilers take no program over 6 of the 8 chips of such "
            "a slice; give pmap all of them, phalanx.devices(), and meshes 4 or 8"
        )


def translated(error: Exception, who: str) -> BaseException:
    """The exception to raise in place of one of the runtime."""
    if isinstance(error, PhalanxError):
        return error
    text = str(error)
    interrupt = _INTERRUPT.search(text)
    if interrupt:
        return _interruption(interrupt["status"])
    if _DELETED.search(text):
        return deleted(who)
    if "Gloo" in text or "NCCL" in text:
        lost = failure_of_others(who)
        if lost is not None:
            return lost
    if _ALL_CHIPS.search(text):
        return DeviceError(
            f"{who}: compilers take no program over just these of the chips of a slice of several "
            "hosts; give pmap and meshes all of them, phalanx.devices()"
        )
    message = f"{who}, at {user_location()}: {_cleaned(text)}"
    if "RESOURCE_EXHAUSTED" in text:
        return OutOfMemory(f"{message}\n{_TO_NEED_LESS}")
    return RuntimeFailure(f"{message}\n{_OF_NCCL}" if "NCCL" in text else message)


def _interruption(status: str | None) -> BaseException:
    """What a signal raised on the way to a function that a program calls, before that began.

    The runtime tells its type and its words alone.
    """
    if status is None:
        return KeyboardInterrupt()
    return SystemExit(int(status) if status.isdigit() else status)


def deleted(who: str) -> DeletedArray:
    """The error of ``who`` that needs an array which is deleted."""
    return DeletedArray(
        f"{who}: Array has been deleted. It was deleted or donated before this use; keep a copy, "
        "or do not donate it"
    )


def refused(error: Exception, who: str, place: object) -> RuntimeFailure:
    """The error for an operation of ``who``, at ``place``, that MLIR does not take."""
    cause = _cleaned(str(error))
    return RuntimeFailure(f"{who}: the compiler refuses the operation, at {place}: {cause}")


def refused_option(error: Exception, options: dict[str, Any]) -> RefusedOption | None:
    """The error for compiler options, if that is what ``error`` is about."""
    text = str(error)
    named = [name for name in options if name in text]
    if not named and not _OPTION.search(text):
        return None
    listed = ", ".join(f"{name}={options[name]!r}" for name in named or options)
    return RefusedOption(f"compile: the compiler refuses the option {listed}: {_cleaned(text)}")


def _cleaned(text: str) -> str:
    """The first paragraph, without a dump of the module or the frames of a traceback."""
    text = _TRACEBACK.sub("", text).strip()
    lines = [line for line in text.split("\n") if not line.lstrip().startswith(("%", "#loc"))]
    return "\n".join(lines[:12])
