"""Builder: calls to Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.base.errors import DeviceError
from phalanx.core.platforms import GPUS
from phalanx.spmd.plan import Plan
from phalanx.xla import host_transfers
from phalanx.xla.host_callbacks import Callbacks, Function, Types
from phalanx.xla.host_transfers import HostTransfers, carried, crossing
from phalanx.xla.mesh_axes import RegionAxesEmitter

# Functions of XLA that call.
_TARGETS = {"cpu": "xla_ffi_python_cpu_callback"} | dict.fromkeys(
    GPUS, "xla_ffi_python_gpu_callback"
)
_TO_HOST, _FROM_HOST = 2, 3  # kinds of channels
CALLING = frozenset(_TARGETS.values())


def _attributes(channel: int, kind: int) -> dict[str, ir.Attribute]:
    """Those of an operation that sends to the host, or receives from it."""
    names = {"handler_name": "pjrt_rendezvous", "rendezvous": str(channel)}
    return {
        "channel_handle": hlo.ChannelHandle.get(channel, kind),
        "is_host_transfer": ir.BoolAttr.get(True),
        "mhlo.frontend_attributes": ir.DictAttr.get(
            {f"_xla_host_transfer_{n}": ir.StringAttr.get(v) for n, v in names.items()}
        ),
    }


class HostCallEmitter(RegionAxesEmitter):
    """Builder: calls to Python."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self.callbacks = Callbacks(plan.devices)

    def host_call(
        self,
        function: Function,
        args: Sequence[ir.Value],
        out_types: Types,
        has_side_effect: bool = False,
    ) -> list[ir.Value]:
        parted = self.parted
        if not parted:
            return self._host_call(function, args, out_types, has_side_effect)
        # code that the compiler partitions along some axes: there the first device calls for all

        def on_first(is_first: Any, *args: Any) -> Sequence[Any]:
            return [np.zeros(t.shape, t.dtype) for t in out_types] if is_first else function(*args)

        def body(_: Any, *args: ir.Value) -> list[ir.Value]:
            results = self._host_call(
                on_first, [self.place_along(parted), *args], out_types, has_side_effect
            )
            return [self._of_first_device(x, parted) for x in results]

        return self.manual_computation(
            args, [()] * len(args), [()] * len(out_types), out_types, body
        )

    def _host_call(
        self, function: Function, args: Sequence[ir.Value], out_types: Types, has_side_effect: bool
    ) -> list[ir.Value]:
        platform = self.target.platform
        if platform in host_transfers.SENDING:
            return self._transferred(function, args, out_types)
        target = _TARGETS.get(platform)
        if target is None:
            raise DeviceError(
                f"a function of Python is called, which devices of platform {platform} cannot "
                "do: leave out pure_callback, io_callback, debug.print and debug.callback there, "
                "or run this part on a CPU, jit(f, device=phalanx.devices('cpu')[0])"
            )
        index = np.uint64(self.callbacks.add(function, out_types))
        return self.custom_call(target, args, out_types, {"index": index}, has_side_effect)

    def _transferred(
        self, function: Function, args: Sequence[ir.Value], out_types: Types
    ) -> list[ir.Value]:
        """A call by sending and receiving, each after the one before."""
        ins = tuple(map(self.type, args))
        operands = [
            self.convert(x, carried(t).dtype) for x, t in zip(args, ins, strict=True) if t.size
        ]
        token_type = hlo.TokenType.get()
        token = self.op("stablehlo.create_token", token_type, ())
        sends: list[int] = []
        receives: list[int] = []
        values: list[ir.Value] = []
        for x in operands or [self.constant(0, np.dtype(np.int32))]:
            sends.append(channel := self.new_channel())
            token = self.op(
                "stablehlo.send", token_type, [x, token], **_attributes(channel, _TO_HOST)
            )
        for t in crossing(out_types):
            receives.append(channel := self.new_channel())
            x, token = self.region_op(
                "stablehlo.recv",
                [self.tensor_of(t), token_type],
                [token],
                _attributes(channel, _FROM_HOST),
            )
            values.append(x)
        transfers = HostTransfers(ins, tuple(out_types), sends, receives)
        self.callbacks.add(function, out_types, transfers)
        received = iter(values)
        return [
            self.convert(next(received), t.dtype) if t.size else self.constant(0, t.dtype, t.shape)
            for t in out_types
        ]

    def _of_first_device(self, x: ir.Value, along: Sequence[str]) -> ir.Value:
        shape, rows = self.type(x).shape, self.rows_along(along)
        one = self.reshape(x, (1, *shape))
        gathered = self.all_gather(one, 0, rows, (len(rows[0]), *shape))
        ends = (0,) * (1 + len(shape)), (1, *shape), (1,) * (1 + len(shape))
        return self.reshape(self.slice(gathered, *ends), shape)
