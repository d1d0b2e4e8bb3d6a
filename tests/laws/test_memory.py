"""What needs more memory than there is raises OutOfMemory, and ends no process."""

import re

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import OutOfMemory
from phalanx.xla import compile as compiling
from tests.children import outcomes

N = 2**44  # numbers, of 64 TiB
# XLA divides by zero where it computes arrays of 2**44 numbers, and not where there are 8 more.
HUGE = [
    f"{call}.block_until_ready()"
    for n in (N, N + 8)
    for call in (
        f"jnp.arange({n})",
        f"jnp.zeros({n})",
        f"jnp.linspace(0, 1, {n})",
        f"lax.broadcasted_iota(jnp.int8, ({n // 8}, 8), 0)",
        f"lax.broadcasted_iota(jnp.int8, ({n // 8}, 1, 3), 0)",
        f"jnp.broadcast_to(jnp.ones(()), ({n},))",
        f"jnp.tile(jnp.ones(2), {n // 2})",
        f"jnp.pad(jnp.ones(3), {n // 2})",
        f"jit(lambda x: jnp.sort(jnp.sin(x * lax.iota(jnp.float32, {n})))[3])(2.0)",
        f"jit(lambda x: lax.fft(x * jnp.ones({n}), 'RFFT', ({n},))[5].real)(1.0)",
        f"jnp.fft.fft(jnp.ones(3), {n})",
        f"vmap(lambda x: x * jnp.ones({n // 4}))(jnp.arange(4.0))",
        f"pmap(lambda x: x * jnp.ones({n // 4}))(jnp.arange(4.0))",
        f"jit(lambda x: lax.map(lambda y: y * jnp.ones({n // 4}), x))(jnp.arange(4.0))",
        f"grad(lambda x: jnp.sort(x * lax.iota(jnp.float32, {n}))[3])(2.0)",
        f"jnp.ones(({n // 2**20}, 2)) @ jnp.ones((2, 2**20))",
        f"nn.one_hot(jnp.arange(2**10), {n // 2**10})",
    )
]


def test_arrays_that_no_machine_has_end_no_process():
    found = dict(zip(HUGE, outcomes(HUGE, devices=2), strict=True))
    wrong = {code: how for code, how in found.items() if "OutOfMemory" not in how}
    assert not wrong


def test_the_error_tells_the_line_the_sizes_and_what_there_is():
    with pytest.raises(OutOfMemory) as raised:
        jnp.ones((2**21, 2**21 + 8))
    words = r"at test_memory\.py:\d+ .*: needs 1\.638e\+04 GiB, and this machine has [\d.]+ GiB: "
    assert re.search(words + ".*lanes", str(raised.value), re.DOTALL)


@pytest.fixture
def little(monkeypatch):
    """A machine of 64 MiB."""
    monkeypatch.setattr(compiling, "of_the_host", lambda: 64 * 2**20)


def test_what_is_held_between_counts(little):
    def f(x):
        return jnp.sort(jnp.sort(x[:, None] * x)[:, ::-1], 0)[3, 3]

    ok, large = jnp.ones(2000), jnp.ones(6000)  # 16 and 144 MB
    phalanx.jit(f)(ok)
    with pytest.raises(OutOfMemory, match=r"gives 3\.725e-09 GiB, and holds 0"):
        phalanx.jit(f)(large)


def test_what_is_too_large_can_be_looked_at(little):
    made = phalanx.jit(lambda x: x[:, None] * x).lower(jnp.ones(6000)).compile()
    assert made.memory_analysis().output_size_in_bytes == 4 * 6000**2
    assert made.cost_analysis()["flops"] >= 6000**2
    with pytest.raises(OutOfMemory):
        made(jnp.ones(6000))


def test_devices_share_the_memory_of_the_host(little):
    n = phalanx.device_count()
    rows = 7 * 2**20 // 4 * 2  # of numbers: 14 MiB for each device
    f = phalanx.pmap(lambda x: x + jnp.zeros(rows))
    if n > 4:
        with pytest.raises(OutOfMemory, match=f"each of {n} devices of this machine has"):
            f(jnp.ones(n))
    else:
        f(jnp.ones(n))


def test_types_alone_may_be_of_any_size():
    made = phalanx.eval_shape(lambda: jnp.sin(lax.iota(jnp.float32, N)))
    assert made.shape == (N,)
    phalanx.make_program(lambda: jnp.arange(N) + 1)()
