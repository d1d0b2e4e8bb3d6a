"""What is imported when somebody first asks for it."""

import subprocess
import sys

import phalanx.experimental

LATE = ["jaxlib.mlir.ir", "opt_einsum", "phalanx.nn", "phalanx.random", "phalanx.experimental"]


def test_what_is_not_asked_for_is_not_imported():
    program = f"import sys, phalanx; print([m for m in {LATE} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stderr


def test_rooms_are_there_when_they_are_asked_for():
    program = (
        "import phalanx, phalanx.numpy as jnp\n"
        "f = phalanx.jit(lambda k: phalanx.nn.relu(phalanx.random.normal(k, (3,))))\n"
        "x = f(phalanx.random.key(0))\n"
        "print(jnp.einsum('i,i', x, x).shape, phalanx.experimental.checkpoint.__name__)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "() phalanx.experimental.checkpoint", out.stderr


def test_all_late_modules_of_experimental_are_attributes():
    for name in ("checkpoint", "multihost_utils", "ode", "safetensors"):
        assert getattr(phalanx.experimental, name).__name__ == f"phalanx.experimental.{name}"
