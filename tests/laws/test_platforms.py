"""Everything that is lowered for one platform is lowered for all of them, or is refused in words.

The compilers of accelerators are asked where they are installed (the extra ``aot``).
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import pytest

import phalanx
from accelerators.subjects import DEVICES, subjects
from phalanx.errors import DeviceError, MissingRule
from tests.exemptions import exemptions

ROOT = Path(__file__).parents[2]
OF_ONE_DEVICE = [s for s in subjects() if s.kind != "program"]
NOT_LOWERED = {
    "cuda": exemptions("lowered-for-cuda"),
    "rocm": exemptions("lowered-for-rocm"),
    "tpu": exemptions("lowered-for-tpu"),
}
ACCELERATORS = {*NOT_LOWERED}
PLATFORMS = ACCELERATORS | {"cpu"}
INDEPENDENT = "platform_index, derivative"  # nothing in it depends on the platform
LINALG = "scipy.linalg."
OF_MATRICES = [n.removeprefix(LINALG) for n in NOT_LOWERED["tpu"] if n.startswith(LINALG)]
PROGRAMS = [s for s in subjects() if s.kind == "program"]


@pytest.mark.parametrize("subject", OF_ONE_DEVICE, ids=lambda s: f"{s.kind} {s.name}")
def test_what_is_lowered_here_is_lowered_for_accelerators(subject):
    operation = subject.kind == "operation"
    name = f"primitives.{re.split('[ ,]', subject.name)[0]}" if operation else subject.name
    without = set() if subject.name == INDEPENDENT else refused(name)
    assert lowered_everywhere(subject) in (set(), PLATFORMS - without)


def refused(name):
    """The platforms for which a function, or a primitive, is not lowered."""
    return {platform for platform, names in NOT_LOWERED.items() if name in names}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_what_is_refused_the_peer_refuses_too(name):
    function = getattr(jax.scipy.linalg, name)
    operands = {"funm": (jnp.eye(3), jnp.sin), "solve_sylvester": (jnp.eye(3),) * 3}
    traced = jax.jit(function, static_argnums=1 if name == "funm" else ()).trace(
        *operands.get(name, (jnp.eye(3),))
    )
    for platform in refused(LINALG + name):
        with pytest.raises(NotImplementedError):
            traced.lower(lowering_platforms=(platform,))


@pytest.mark.skipif(phalanx.device_count() != DEVICES, reason="it is over eight devices")
@pytest.mark.parametrize("subject", PROGRAMS, ids=lambda s: s.name)
def test_programs_over_devices_are_lowered_for_accelerators(subject):
    assert lowered_everywhere(subject) == PLATFORMS


def lowered_everywhere(subject):
    """The platforms for which it is lowered; it is refused in a sentence by the others."""
    traced = subject.trace()
    if traced is None:
        return set()
    there = {"cpu"}
    assert "func.func public @main" in traced.lower(lowering_platforms=("cpu",)).as_text()
    for platform in sorted(ACCELERATORS):
        try:
            traced.lower(lowering_platforms=(platform,))
            there.add(platform)
        except (DeviceError, MissingRule, NotImplementedError) as e:
            assert str(e).splitlines()[0][:4] not in ("", "None")
    return there


@pytest.mark.parametrize("chips", ["v5e:2x4", "v5p:2x2x2", "v6e:2x4", "h100:8"])
def test_it_compiles_for_accelerators(chips, pytestconfig):
    """All of it in two minutes for TPUs, in fifteen for GPUs; of a sample a part."""
    if importlib.util.find_spec("jax_plugins" if chips == "h100:8" else "libtpu") is None:
        pytest.skip("needs the extra aot")
    every = "50" if pytestconfig.getoption("--sample") else "1"
    command = [sys.executable, "-m", "accelerators.compiling", chips, "--every", every]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {chips} | " in done.stdout
