"""Reproducible lanes on drawn programs, over processes: to the bit what one device gives.

Each process has some of the rows, not equally many, or all have arrays over all of them. The
oracle is the same program on one device of this process, that has all rows.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phalanx
from phalanx import lax, pmap, random, vmap
from phalanx.sharding import Mesh
from tests.laws.lanes import LAYOUTS, programs
from tests.laws.test_pmap_over_processes import (
    COUNTS,
    DRAWS,
    Case,
    Lots,
    Whole,
    answers_of,
    cuttings,
)
from tests.laws.test_reproducible import bits, narrow, reproducible
from tests.stories.test_processes import launch  # noqa: F401  (a fixture)


class InFloat32:
    """A case in the numbers of most programs, that can be asked of one device as well."""

    def arguments(self):
        return [narrow(given) for given in super().arguments()]

    def cotangent(self):
        return super().cotangent().astype(np.float32)

    def alone(self):
        """What one device finds, that has the rows of all processes."""
        m = replace(self.program.mapping, room=1)
        program = replace(self.program, mapping=m)
        return Rows(program, (sum(self.rows),), self.inner, self.question).answer(0)

    def check(self, answers, expected):
        assert bits(self.of_all(answers)) == bits(expected)


@dataclass(frozen=True)
class Rows(InFloat32, Case):
    """Each process passes its own rows."""

    outer = staticmethod(reproducible)

    def of_all(self, answers):
        pairs = zip(zip(*answers, strict=True), self.found_in(), strict=True)
        return [self.join(parts, dim) for parts, dim in pairs]


@dataclass(frozen=True)
class Arrays(InFloat32, Whole):
    """All processes pass arrays over all of them."""

    @staticmethod
    def outer(lane, *, axis_name, devices, **options):
        mesh = Mesh(np.array(devices), (axis_name or "rows",))
        return reproducible(lane, mesh=mesh, **options)

    def of_all(self, answers):
        return [self.joined(parts).astype(np.float32) for parts in zip(*answers, strict=True)]


@dataclass(frozen=True)
class Keys(Lots):
    """Random numbers, and the sum of what lanes draw."""

    def drawn(self, keys, devices):
        def lane(own, key):
            here = random.fold_in(key, lax.axis_index("i"))
            mine = [DRAWS[self.kind](k, self.shape) for k in (own, here)]
            return mine, lax.psum(mine, "i")

        f = reproducible(lane, "i", in_axes=(0, None), out_axes=(0, None), devices=devices)
        return [np.asarray(y) for y in phalanx.tree.leaves(f(keys, random.key(2)))]

    def answer(self, me):
        first = sum(self.rows[:me])
        devices = [d for d in phalanx.devices() if d.process_index < len(self.rows)]
        return self.drawn(self.keys()[0][first : first + self.rows[me]], devices)

    def alone(self):
        return self.drawn(self.keys()[0], phalanx.devices()[:1])

    def check(self, answers, expected):
        own = [np.concatenate(parts) for parts in list(zip(*answers, strict=True))[:2]]
        for found in answers:
            assert bits([*own, *found[2:]]) == bits(expected)


@dataclass(frozen=True)
class LargeSum:
    """A sum that devices exchange in pairs, some of which are of two processes."""

    rows: tuple

    def total(self, rows, devices=None):
        x = np.random.default_rng(0).normal(size=(sum(self.rows), 20000)).astype(np.float32)
        f = reproducible(lambda x: lax.psum(x, "i"), "i", out_axes=None, devices=devices)
        return np.asarray(f(x[rows]))

    def answer(self, me):
        first = sum(self.rows[:me])
        devices = [d for d in phalanx.devices() if d.process_index < len(self.rows)]
        return self.total(slice(first, first + self.rows[me]), devices)

    def alone(self):
        return self.total(slice(None), phalanx.devices()[:1])

    def check(self, answers, expected):
        for found in answers:
            assert bits(found) == bits(expected)


def keys(count):
    rows = st.integers(count, 7).flatmap(lambda size: cuttings(size, count))
    return st.builds(Keys, rows, st.sampled_from(sorted(DRAWS)), st.sampled_from([(), (3,)]))


QUESTIONS = ("values", "tangents", "slopes", "bends", "slopes in a lane")


@st.composite
def cases(draw, count):
    """A case for ``count`` processes, with rows that are not equally many."""
    layouts = [axes for axes in LAYOUTS if count <= axes[0][1] <= 17]
    question = draw(st.sampled_from(QUESTIONS))
    program = draw(programs(most_steps=2 if question == "bends" else 3, layouts=layouts))
    (_, size), *rest = program.mapping.axes
    mapping = replace(program.mapping, at_once=(None,) * (1 + len(rest)))
    inner = tuple([draw(st.sampled_from([pmap, vmap])) for _ in rest])
    kind = draw(st.sampled_from([Rows, Rows, Arrays]))
    return kind(replace(program, mapping=mapping), draw(cuttings(size, count)), inner, question)


@given(st.data())
def draw_into(found, data):
    count = data.draw(st.sampled_from(COUNTS))
    found.append(data.draw(st.one_of(*[cases(count)] * 7, keys(count))))


@pytest.mark.slow
def test_drawn_programs_over_processes(launch, tmp_path):  # noqa: F811
    drawn = [LargeSum((4, 4)), LargeSum((2, 3, 3))]
    draw_into(drawn)
    answers = answers_of(drawn, launch, tmp_path / "cases")
    for case, found in zip(drawn, answers, strict=True):
        print(case)  # which pytest shows where it fails
        case.check(found, case.alone())
