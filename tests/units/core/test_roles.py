"""What a run sees of an array that axes cut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phalanx.core.roles import CARRY, FIXED, blocks, each, slices
from phalanx.core.types import ArrayType

AXES = (("i", 2), ("j", 3))
F = np.dtype(np.float32)


@st.composite
def layouts(draw, joined):
    """Layouts that use each axis once at most; several may cut one dimension where ``joined``."""
    dims = [[] for _ in range(4)]
    for axis, _ in draw(st.permutations(AXES)):
        free = [d for d in range(4) if joined or not dims[d]]
        if (d := draw(st.sampled_from([None, *free]))) is not None:
            dims[d].append(axis)
    return tuple(map(tuple, dims))


ROLES = layouts(False).map(slices) | layouts(True).map(blocks)
SHAPE = (5, 7, 1, 2)


@given(ROLES)
def test_the_whole_is_made_of_what_runs_see(role):
    seen = ArrayType(SHAPE[: 4 - len(role.sliced)], F)
    whole = role.outer(seen, AXES)
    assert role.inner(whole, AXES) == seen
    assert whole.size == seen.size * np.prod([n for a, n in AXES if a in role.axes])
    for axis, size in AXES:
        assert (role.place(axis) is None) == (axis not in role.axes)
        assert role.without(axis).axes == role.axes - {axis}
        inner = role.inner(whole, AXES)
        if axis in role.sliced:
            # without the axis, a run sees its dimension again
            shape = list(inner.shape)
            shape.insert(role.place(axis), size)
            assert role.without(axis).inner(whole, AXES).shape == tuple(shape)
            place = role.place(axis, [a for a in AXES if a[0] != axis])
            assert role.layout[place] == (axis,)


@given(ROLES, st.integers(0, 4), st.integers(0, 4))
def test_a_further_dimension_is_found_again(role, outside, inside):
    assert role.insert_dim(role.outer_dim(inside)).inner_dim(role.outer_dim(inside)) == inside
    assert role.insert_dim(outside).axes == role.axes
    other = role.insert_dim(outside)
    types = [ArrayType((1,) * 4, F), ArrayType((1,) * 5, F)]
    before, after = (r.outer(t, AXES).shape for r, t in zip((role, other), types, strict=True))
    dim = min(outside, len(after) - 1)
    if not role.sliced:
        assert after[:dim] + after[dim + 1 :] == before


def test_what_is_not_cut_is_fixed():
    assert slices(()) is blocks(((), ())) is FIXED
    assert each(0).without("<rows>") is FIXED
    assert CARRY.insert_dim(0) is CARRY
    assert list(map(str, (each(1), slices(((), ("i",))), blocks((("i", "j"),))))) == [
        "each@1", "each[:, i]", "block[i*j]"
    ]  # fmt: skip
