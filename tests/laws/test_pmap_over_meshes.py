"""The pmap law over meshes: several axes at once are one ``vmap`` inside the other.

The oracle is that of the pmap law: the lanes one by one in NumPy, and finite differences of them.

Nested pmaps and one over a mesh are the same up to rounding: XLA, which fuses products and sums
with how a device gets at its part, may round a product before it is added or not; and where an
argument is copied along several axes, its cotangents are added up along all of them at once, and by
nested pmaps along one after the other.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import P, pmap
from phalanx.spmd.placement import mesh_of
from tests.laws.lanes import Mapping, Program, Step, programs
from tests.laws.slopes import smoothly_along
from tests.laws.test_pmap_law import close

pytestmark = [pytest.mark.spmd, pytest.mark.usefixtures("x64")]
fewer = settings(max_examples=max(1, settings().max_examples // 2))
COUNT = phalanx.device_count()
SHAPES = [
    (1,), (2,), (3,), (8,), (1, 1), (1, 8), (2, 4), (4, 2), (1, 3), (2, 2, 2), (1, 3, 1), (1, 1, 1)
]  # fmt: skip


def fitting(axes):
    return [s for s in SHAPES if len(s) == len(axes) and np.prod(s) <= COUNT]


def spec_of(axes, rank, dims):
    """Where the axes lie in an array that has ``rank`` dimensions in one lane, as one spec."""
    entries = [None] * rank
    for (name, _), d in reversed(list(zip(axes, dims, strict=True))):
        if d is not None:
            entries.insert(d % (len(entries) + 1), name)
    return P(*entries)


def over_mesh(program, shape, devices=None):
    """``program`` mapped over all its axes at once, each over an axis of a mesh of ``shape``.

    A further argument, mapped over all of them, tells their sizes.
    """
    m = program.mapping
    names, sizes = zip(*m.axes, strict=True)
    x, w = program.arguments()
    rank = program.oracle(x, w).ndim - sum(d is not None for d in m.out_dims)
    ins = [
        spec_of(m.axes, len(shape), dims)
        for shape, dims in ((program.x_shape, m.x_dims), (program.w_shape, m.w_dims))
    ]
    mapped = pmap(
        lambda x, w, _: program.lane(x, w),
        axis_name=names,
        in_axes=(*ins, 0),
        out_axes=spec_of(m.axes, rank, m.out_dims),
        mesh=phalanx.make_mesh(shape, names, devices=devices),
    )
    return lambda x, w: mapped(x, w, np.zeros(sizes))


@given(programs(most_steps=3), st.data())
def test_values_and_derivatives(program, data):
    shape = data.draw(st.sampled_from(fitting(program.mapping.axes)))
    args, ts = program.arguments(), program.arguments(1)
    note(f"{program} over a mesh of {shape}")
    f = over_mesh(program, shape, data.draw(st.permutations(phalanx.devices())))
    slope = smoothly_along(program.oracle, args, ts)
    ct = np.random.default_rng(2).uniform(-1, 1, slope.shape)

    @phalanx.jit
    def derivatives(args, ts, ct):
        value, tangents = phalanx.jvp(f, args, ts)
        pairs = [jnp.stack(pair) for pair in zip(args, ts, strict=True)]
        return value, tangents, phalanx.vjp(f, *args)[1](ct), phalanx.vmap(f)(*pairs)

    value, tangents, pulled, both = derivatives(args, ts, ct)
    close(value, program.oracle(*args))
    close(both[1], program.oracle(*ts))
    close(tangents, slope, tolerance=1e-6)
    close(
        sum(np.vdot(p, t) for p, t in zip(pulled, ts, strict=True)),
        np.vdot(ct, slope),
        tolerance=1e-6,
    )


@fewer
@given(programs(most_steps=3))
def test_nested_pmaps_agree(program):
    note(program)
    nested, at_once = nested_and_at_once(program)
    args = program.arguments()
    close(nested(*args), at_once(*args), tolerance=1e-13)
    close(slope_of(nested)(*args), slope_of(at_once)(*args), tolerance=1e-11)
    with phalanx.disable_jit():
        close(at_once(*args), program.oracle(*args))


def test_cotangents_of_copies_are_added_up_axis_by_axis_or_at_once():
    mapping = Mapping((("i", 4), ("j", 2)), (None, None), (2, 1), (-1, -1))
    program = Program(mapping, (8, 2), (3,), (Step("weigh"),))
    nested, at_once = [
        str(phalanx.make_program(slope_of(f))(*program.arguments()))
        for f in nested_and_at_once(program)
    ]
    assert nested.index("psum[axes=('j',)") < nested.index("psum[axes=('i',)")
    assert at_once.count("psum[") == at_once.count("psum[axes=('i', 'j')") == 1


def nested_and_at_once(program):
    """``program`` in one pmap for each axis, and in one over a mesh of the same devices."""
    m = replace(program.mapping, room=None)
    nested = m.over((pmap,) * len(m.axes), program.lane)
    mesh = mesh_of(nested.trace(*program.arguments()).program, phalanx.devices())
    return nested, over_mesh(program, (1,) * len(m.axes) if mesh is None else mesh.sizes)


def slope_of(f):
    return lambda x, w: phalanx.grad(lambda x, w: (f(x, w) ** 2).sum())(x, w)
