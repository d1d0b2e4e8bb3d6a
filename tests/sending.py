"""CPU devices that call Python as TPUs do, by sending and receiving.

They cannot. So a module is written as if they could, and what it sends and receives for one call
becomes a function that plays the host: it checks what it is sent, calls what the executable was
given for those channels, and checks what is to be received.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from jaxlib.mlir import ir
from msgspec.structs import replace

from phalanx.xla import compile as compiling
from phalanx.xla import executables, host_transfers

NAMES = "_xla_host_transfer_handler_name", "_xla_host_transfer_rendezvous"


@contextmanager
def devices_that_send(busy=False):
    """Inside, programs are compiled for CPU devices that send and receive.

    They compute for the host as well, unless they are ``busy`` while they wait for it.
    """
    with pytest.MonkeyPatch.context() as patch:
        load = compiling._load
        patch.setattr(compiling, "_load", lambda lowered, *rest: load(_played(lowered), *rest))
        patch.setattr(host_transfers, "SENDING", {"cpu"})
        if not busy:
            patch.setattr(executables, "OnWaitingDevice", executables.OnOneDevice)
        yield


class Host:
    """A client that keeps what it is to call, by the channels."""

    def __init__(self):
        self.calls = {}

    def make_python_callback_from_host_send_and_recv(
        self, function, operands, results, sends, receives, serializer
    ):
        assert callable(serializer)
        assert (len(operands), len(results)) == (len(sends), len(receives))
        known = {channel for key in self.calls for way in key for channel in way}
        assert len({*sends, *receives} - known) == len(sends) + len(receives)
        self.calls[tuple(sends), tuple(receives)] = function, operands, results


@dataclass
class Exchange:
    """What stands in a module for one call: operations that send, then ones that receive."""

    sends: list
    receives: list


def _played(lowered):
    """The module for devices that call, and the functions that they call."""
    host = Host()
    lowered.callbacks.attached(host)
    functions = []
    with lowered.module.context, ir.Location.unknown():
        for exchange in _exchanges(lowered.module):
            channels = _channels(exchange.sends, 2), _channels(exchange.receives, 3)
            _write_call(exchange, len(functions))
            functions.append(_checked(*host.calls.pop(channels)))
        assert lowered.module.operation.verify()
    assert not host.calls
    played = SimpleNamespace(entries=functions, attached=lambda client: functions)
    return replace(lowered, callbacks=played)


def _exchanges(module):
    """Those of a module: the operations of each take the token of the one before."""
    starts = []

    def look(op):
        if op.name == "stablehlo.create_token":
            starts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for start in starts:
        every, token = [], start.results[0]
        while uses := list(token.uses):
            (use,) = uses
            every.append(use.owner)
            token = use.owner.results[len(use.owner.results) - 1]
        names = [op.name for op in every]
        sends = names.count("stablehlo.send")
        assert sends and names[sends:], "a call sends something, and waits for something"
        assert set(names[sends:]) == {"stablehlo.recv"}
        yield Exchange(every[:sends], every[sends:])


def _channels(operations, kind):
    """Their channels, all of one kind, by which the host knows them."""
    numbers = []
    for op in operations:
        handle = str(op.attributes["channel_handle"])
        assert f"type = {kind}" in handle and ir.BoolAttr(op.attributes["is_host_transfer"]).value
        said = op.attributes["mhlo.frontend_attributes"]
        handler, number = (ir.StringAttr(said[name]).value for name in NAMES)
        assert handler == "pjrt_rendezvous" and f"handle = {number}," in handle
        numbers.append(int(number))
    return tuple(numbers)


def _write_call(exchange, index):
    """Replace an exchange by a call of function ``index``."""
    operands = [op.operands[0] for op in exchange.sends]
    config = {"index": ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), index)}
    with ir.InsertionPoint(exchange.receives[0]):
        call = ir.Operation.create(
            "stablehlo.custom_call",
            results=[op.results[0].type for op in exchange.receives],
            operands=operands,
            attributes={
                "call_target_name": ir.StringAttr.get("xla_ffi_python_cpu_callback"),
                "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
                "has_side_effect": ir.BoolAttr.get(True),
                "backend_config": ir.DictAttr.get(config),
            },
        )
    for op, result in zip(exchange.receives, call.results, strict=True):
        op.results[0].replace_all_uses_with(result)
    for op in reversed([*exchange.sends, *exchange.receives]):
        op.erase()


def _checked(function, operands, results):
    """``function``, of which the host knows how many bytes go each way."""

    def call(*sent):
        assert [_form(x) for x in sent] == [_told(s) for s in operands]
        given = function(*sent)
        assert type(given) is tuple
        assert [_form(x) for x in given] == [_told(s) for s in results]
        return given

    return call


def _form(x):
    return np.shape(x), np.asarray(x).dtype


def _told(shape):
    return tuple(shape.dimensions()), shape.numpy_dtype()
