"""Functions that programs call and that are not there: the error says which, at the user's line."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import ffi
from phalanx.errors import DeviceError
from phalanx.xla import client
from phalanx.xla.lacking import lacking

PLACE = r"at test_lacking.py:\d+ \({}\): "
HANDLER = "NOT_FOUND: No FFI handler registered for {} on a platform Host (canonical host)"
UNTYPED = 'No registered implementation for untyped custom call to "{}" for platform CUDA'


def called(x):
    return phalanx.pure_callback(np.sin, x, x)


def factored(x):
    return jnp.linalg.cholesky(x)


def asked(x):
    phalanx.debug.inspect_array_sharding(x, callback=print)
    return x


def error_of(function, said, monkeypatch):
    """That of a plugin, in whose place the CPU is, which says so of the module of ``function``."""
    lowered = phalanx.jit(function).lower(jnp.eye(3))._module
    monkeypatch.setattr(client, "_clients", {"plug": lowered.plan.devices[0].client})
    return lacking(RuntimeError(said), lowered)


def test_what_nobody_registered():
    def calling(x):
        return ffi.ffi_call("nobody_registered_this", phalanx.ShapeDtypeStruct((4,), np.float32))(x)

    told = rf"calling, {PLACE.format('.*calling')}no function 'nobody_registered_this'.*"
    with pytest.raises(DeviceError, match=told + "register_ffi_target") as caught:
        phalanx.jit(calling)(jnp.ones(4))
    assert "FFI handler" not in str(caught.value)


@pytest.mark.parametrize("said", [HANDLER, UNTYPED])
@pytest.mark.parametrize(
    ("function", "target", "told"),
    [
        (called, "xla_ffi_python_cpu_callback", "the plugin for plug cannot do: leave out pure_"),
        (factored, "lapack_spotrf_ffi", "the plugin for plug has no function 'lapack_spotrf_ffi'"),
    ],
)
def test_what_a_plugin_does_not_bring(function, target, told, said, monkeypatch):
    error = error_of(function, said.format(target), monkeypatch)
    place = PLACE.format(function.__name__)
    assert re.match(rf"{function.__name__}, {place}.*{told}.*device=phalanx", str(error))


def test_a_partitioner_that_is_not_asked(monkeypatch):
    said = "UNIMPLEMENTED: Side-effect ops cannot be replicated: %a = f32[4] custom-call(%b), "
    error = error_of(asked, said + 'custom_call_target="InspectSharding", x', monkeypatch)
    assert str(error).startswith("asked, at test_lacking.py:")
    assert "inspect_array_sharding asks the partitioner, and the plugin for plug" in str(error)


def test_a_program_that_is_not_read(monkeypatch):
    said = (
        "UNKNOWN: -:0:0: error: unknown attribute code: 24\n-:0:0: note: in bytecode version 6\n"
        "<unknown>:0: error: Failed to parse using StableHLO v1.16.1, this could indicate"
    )
    error = error_of(called, said, monkeypatch)
    assert re.match(r"called, at test_lacking.py:\d+.*plugin for plug does not read", str(error))
    assert "bfloat16" in str(error) and "StableHLO" not in str(error)


def test_other_errors_are_others(monkeypatch):
    assert error_of(called, "INTERNAL: no", monkeypatch) is None


def test_costs_where_the_compiler_tells_none(monkeypatch):
    """XLA's count on the host: a product of 4 x 4 has 128 operations."""

    def tells_none():
        raise RuntimeError("UNIMPLEMENTED: GetCostAnalysis is not implemented.")

    compiled = phalanx.jit(jnp.matmul).lower(jnp.ones((4, 4)), jnp.ones((4, 4))).compile()
    executable = compiled._compiled.executable
    modules = executable._loaded.hlo_modules
    other = SimpleNamespace(cost_analysis=tells_none, hlo_modules=modules)
    monkeypatch.setattr(executable, "_loaded", other)
    assert compiled.cost_analysis()["flops"] == 128
