"""Operations and bytes of instructions, counted by hand in programs as compilers write them."""

import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.xla.hlo_text import HloModule
from phalanx.xla.kernels import kernels

# as for a TPU: in each run a layer of many is read, multiplied, and its row written; S(1) is memory
# beside the main one
LOOP = """HloModule step, is_scheduled=true

%sliced (p0: bf16[5,64,32], p1: s32[]) -> bf16[64,32] {
  %p0 = bf16[5,64,32]{2,1,0} parameter(0)
  %p1 = s32[]{:S(6)} parameter(1)
  %zero = s32[] constant(0)
  %one = bf16[1,64,32]{2,1,0} dynamic-slice(%p0, %p1, %zero, %zero), dynamic_slice_sizes={1,64,32}
  ROOT %flat = bf16[64,32]{1,0} bitcast(%one)
}

%written (q0: f32[5,16,32], q1: bf16[16,32], q2: s32[]) -> f32[5,16,32] {
  %q0 = f32[5,16,32]{2,1,0} parameter(0)
  %q1 = bf16[16,32]{1,0} parameter(1)
  %wide = f32[1,16,32]{2,1,0} convert(%q1)
  %q2 = s32[] parameter(2)
  %none = s32[] constant(0)
  ROOT %new = f32[5,16,32]{2,1,0} dynamic-update-slice(%q0, %wide, %q2, %none, %none)
}

%same (r0: bf16[64,32]) -> bf16[64,32] {
  %r0 = bf16[64,32]{1,0:S(1)} parameter(0)
  ROOT %bits = bf16[64,32]{1,0} bitcast(%r0)
}

%multiplied (s0: bf16[16,64], s1: bf16[64,32]) -> bf16[16,32] {
  %s0 = bf16[16,64]{1,0} parameter(0)
  %s1 = bf16[64,32]{1,0:S(1)} parameter(1)
  %inner = bf16[64,32]{1,0} fusion(%s1), kind=kLoop, calls=%same
  ROOT %product = bf16[16,32]{1,0} convolution(%s0, %inner), dim_labels=bf_io->bf
}

%body (b: (s32[], bf16[16,64], bf16[5,64,32], f32[5,16,32])) -> (s32[], bf16[16,64], bf16[5,64,32], f32[5,16,32]) {
  %b = (s32[], bf16[16,64]{1,0}, bf16[5,64,32]{2,1,0}, f32[5,16,32]{2,1,0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = bf16[16,64]{1,0} get-tuple-element(%b), index=1
  %layers = bf16[5,64,32]{2,1,0} get-tuple-element(%b), index=2
  %rows = f32[5,16,32]{2,1,0} get-tuple-element(%b), index=3
  %layer = bf16[64,32]{1,0:S(1)} fusion(%layers, %i), kind=kLoop, calls=%sliced
  %y = bf16[16,32]{1,0} fusion(%x, %layer), kind=kOutput, calls=%multiplied
  %kept = f32[5,16,32]{2,1,0} fusion(%rows, %y, %i), kind=kLoop, calls=%written
  ROOT %next = (s32[], bf16[16,64]{1,0}, bf16[5,64,32]{2,1,0}, f32[5,16,32]{2,1,0}) tuple(%i, %x, %layers, %kept)
}

%more (c: (s32[], bf16[16,64], bf16[5,64,32], f32[5,16,32])) -> pred[] {
  %c = (s32[], bf16[16,64]{1,0}, bf16[5,64,32]{2,1,0}, f32[5,16,32]{2,1,0}) parameter(0)
  %n = s32[] get-tuple-element(%c), index=0
  %five = s32[] constant(5)
  ROOT %less = pred[] compare(%n, %five), direction=LT
}

ENTRY %main (a: (s32[], bf16[16,64], bf16[5,64,32], f32[5,16,32])) -> (s32[], bf16[16,64], bf16[5,64,32], f32[5,16,32]) {
  %a = (s32[], bf16[16,64]{1,0}, bf16[5,64,32]{2,1,0}, f32[5,16,32]{2,1,0}) parameter(0)
  ROOT %loop = (s32[], bf16[16,64]{1,0}, bf16[5,64,32]{2,1,0}, f32[5,16,32]{2,1,0}) while(%a), condition=%more, body=%body, backend_config={"known_trip_count":{"n":"5"}}
}
"""  # noqa: E501


def test_bytes_are_those_that_are_read_and_written_of_the_main_memory():
    found = {k.name: k for k in kernels(HloModule(LOOP))}
    assert {k.count for k in found.values()} == {5}
    layer, row = 2 * 64 * 32, 16 * 32
    assert found["layer"].moved == layer + 4  # of all layers one, and its number; not what is made
    assert found["y"].moved == 2 * 16 * 64 + 2 * row and found["y"].products == 2 * 16 * 64 * 32
    assert found["kept"].moved == 2 * row + 4 * row + 4
    assert found["kept"].products == 0


@pytest.mark.parametrize(
    "line, left, kernel, expected",
    [
        ("f32[2,8,10]{2,1,0} convolution(%l, %r), window={size=3 pad=1_1}, dim_labels=bf0_oi0->bf0",
         "f32[2,4,10]", "f32[8,4,3]", 2 * 2 * 8 * 4 * (3 * 10 - 2)),
        # six matrices side by side, as a convolution that meets each kernel once
        ("f32[6,5,7]{2,1,0} convolution(%l, %r), window={size=6 stride=5 pad=0_0 lhs_dilate=6}, "
         "dim_labels=0bf_0io->0bf", "f32[6,5,3]", "f32[6,3,7]", 2 * 6 * 5 * 7 * 3),
        ("f32[5,7]{1,0} dot(%l, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         "f32[5,3]", "f32[3,7]", 2 * 5 * 7 * 3),
    ],
)  # fmt: skip
def test_operations_of_products(line, left, kernel, expected):
    text = f"""HloModule f

ENTRY %main (l: {left}, r: {kernel}) -> f32[] {{
  %l = {left}{{0}} parameter(0)
  %r = {kernel}{{0}} parameter(1)
  ROOT %made = {line}
}}
"""
    (found,) = kernels(HloModule(text))
    assert found.products == expected


def test_what_this_machine_compiles():
    """An instruction with many results is one, too."""
    x = jnp.ones((32, 48))

    def f(x, y):
        return (x @ y, *[n * x for n in range(7)])

    executable = ph.jit(f).lower(x, x.T).compile().runtime_executable()
    found = executable.kernels()
    assert sum([k.products * k.count for k in found]) == 2 * 32 * 48 * 32
    moved = sum([k.moved for k in found if not k.products])
    assert 7 * x.nbytes <= moved <= 2 * 7 * x.nbytes + 1000
