"""The pmap law over processes, on drawn programs: each has some of the rows, and all give ``vmap``.

The oracle is that of the pmap law: the lanes one by one in NumPy, and finite differences of them.
Processes take long to start. So a launch answers many cases: the test draws them and writes them to
a file, each process computes them on its own rows and writes down what it found, and the test joins
that and compares.
"""

import functools
import itertools
import pickle
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, pmap, random, vmap
from phalanx.sharding import Mesh, PmapSharding
from phalanx.sharding import PartitionSpec as P
from tests.laws.lanes import LAYOUTS, Program, programs
from tests.laws.slopes import smoothly_along
from tests.laws.test_pmap_law import close, dot, loss, total
from tests.stories.test_processes import launch  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("x64")

SHARED = None  # in place of the dimension that processes have rows of: all have the same


@dataclass(frozen=True)
class Case:
    """A program, the rows that each process has of its outermost axis, and what is asked of it.

    ``inner`` maps the axes inside, by ``pmap`` or ``vmap``, and ``outer`` the outermost.
    """

    outer = staticmethod(pmap)

    program: Program
    rows: tuple
    inner: tuple
    question: str

    def arguments(self):
        """x, w and three directions for each; a seed for each of them."""
        return [self.program.arguments(seed) for seed in range(3)]

    def values(self):
        return self.program.oracle(*self.program.arguments())

    def cotangent(self):
        return np.random.default_rng(3).uniform(-1, 1, self.values().shape)

    def dims(self):
        """In which dimensions of x and of w processes have rows, and of the result."""
        m = self.program.mapping
        return (m.x_dims[0], m.w_dims[0]), m.out_dims[0]

    def part(self, whole, dim, me):
        """What process ``me`` has of ``whole``."""
        first = sum(self.rows[:me])
        return whole if dim is SHARED else whole.take(range(first, first + self.rows[me]), dim)

    def mapped(self, me, lane=None, out_dims=None):
        """The function of process ``me``, on its rows."""
        m = self.program.mapping
        (name, _), *rest = m.axes
        here = replace(m, axes=((name, self.rows[me]), *rest), processes=len(self.rows))
        function = lane or self.program.lane

        def own(*args):  # of this case: an equal program of another may have other rows elsewhere
            return function(*args)

        return here.over((self.outer, *self.inner), own, out_dims=out_dims)

    def answer(self, me):
        """What process ``me`` finds: arrays."""
        args, ts, us = [
            [self.part(a, d, me) for a, d in zip(given, self.dims()[0], strict=True)]
            for given in self.arguments()
        ]
        ct = self.part(self.cotangent(), self.dims()[1], me)
        found = QUESTIONS[self.question].answer(self, me, args, ts, us, ct)
        return [np.asarray(y) for y in found]

    def check(self, answers, expected):
        """Compare what all processes found."""
        pairs = zip(zip(*answers, strict=True), self.found_in(), strict=True)
        question = QUESTIONS[self.question]
        joined = [self.join(parts, dim) for parts, dim in pairs]
        close(question.measure(self, *joined), expected, tolerance=question.tolerance)

    def found_in(self):
        """In which dimensions of what is found processes have rows."""
        ins, out = self.dims()
        if self.question in ("slopes", "bends"):
            return ins
        if self.question == "slopes in a lane":
            return (0, 0)
        return (out,)

    def join(self, parts, dim):
        if dim is not SHARED:
            assert [y.shape[dim] for y in parts] == list(self.rows)
            return np.concatenate(parts, dim)
        for y in parts:  # to the bit, as what is trained has to be
            np.testing.assert_array_equal(y, parts[0])
        return parts[0]


def over_mesh(lane, *, axis_name, devices, **options):
    """``pmap`` over a mesh of those devices."""
    return pmap(lane, mesh=Mesh(np.array(devices), (axis_name or "rows",)), **options)


@dataclass(frozen=True)
class Whole(Case):
    """The same of arrays over all processes, in one program, whose devices have equal blocks."""

    outer = staticmethod(over_mesh)

    @property
    def mapping(self):
        return replace(self.program.mapping, processes=len(self.rows))

    def mapped(self, me, lane=None, out_dims=None):
        lane = lane or self.program.lane
        return self.mapping.over((self.outer, *self.inner), lane, out_dims=out_dims)

    def spread(self, whole, dim):
        """``whole``, of which each device has rows in dimension ``dim``."""
        mesh = Mesh(np.array(self.mapping.devices()), ("i",))
        spec = P() if dim is SHARED else P(*[None] * (dim % whole.ndim), "i")
        return phalanx.make_array_from_callback(
            whole.shape, PmapSharding(mesh, spec), lambda index: whole[index]
        )

    def answer(self, me):
        """What process ``me`` finds: the shapes, and the parts that it has, by their places."""
        args, ts, us = [
            [self.spread(a, d) for a, d in zip(given, self.dims()[0], strict=True)]
            for given in self.arguments()
        ]
        ct = self.spread(self.cotangent(), self.dims()[1])
        find = functools.partial(QUESTIONS[self.question].answer, self, me)
        if self.question != "values eagerly":
            find = phalanx.jit(find)
        found = find(args, ts, us, ct)
        return [
            (y.shape, [(s.index, np.asarray(s.data)) for s in y.addressable_shards]) for y in found
        ]

    def check(self, answers, expected):
        question = QUESTIONS[self.question]
        joined = [self.joined(parts) for parts in zip(*answers, strict=True)]
        close(question.measure(self, *joined), expected, tolerance=question.tolerance)

    @staticmethod
    def joined(found):
        """The array of the parts that processes found; where several have one, it is the same."""
        (shape,) = {shape for shape, _ in found}
        whole = np.full(shape, np.nan)
        for index, part in [each for _, parts in found for each in parts]:
            assert np.isnan(whole[index]).all() or np.array_equal(whole[index], part)
            whole[index] = part
        return whole


DRAWS = {
    "uniform": random.uniform,
    "normal": lambda key, shape: random.normal(key, shape, "complex64"),
    "bits": lambda key, shape: random.bits(key, shape, "uint16"),
    "gamma": lambda key, shape: random.gamma(key, 0.7, shape),
    "poisson": lambda key, shape: random.poisson(key, 3.0, shape),
    "permutation": lambda key, shape: random.permutation(key, jnp.arange(7)),
    "split": lambda key, shape: random.key_data(random.split(key, 2)),
}


@dataclass(frozen=True)
class Lots:
    """Random numbers: of a key for each lane, and of one that they have in common."""

    rows: tuple
    kind: str
    shape: tuple

    def lanes(self, transform, **options):
        def lane(own, key):
            here = random.fold_in(key, lax.axis_index("i"))
            return jnp.stack([DRAWS[self.kind](k, self.shape) for k in (own, here)])

        return transform(lane, axis_name="i", in_axes=(0, None), **options)

    def keys(self):
        return random.split(random.key(1), sum(self.rows)), random.key(2)

    def answer(self, me):
        keys, key = self.keys()
        first = sum(self.rows[:me])
        devices = [d for d in phalanx.devices() if d.process_index < len(self.rows)]
        mine = keys[first : first + self.rows[me]]
        return np.asarray(self.lanes(pmap, devices=devices)(mine, key))

    def oracle(self):
        return self.lanes(vmap)(*self.keys())

    def check(self, answers, expected):
        close(np.concatenate(answers), expected, tolerance=1e-6)


@dataclass(frozen=True)
class Changing:
    """One function for batches of which each process has some rows, in each step others."""

    steps: tuple
    """The rows of all processes, step by step."""

    @staticmethod
    def lane(x):
        return x * lax.axis_index("i") + lax.pmean(x, "i"), lax.all_gather(x, "i")[0]

    def batch(self, rows):
        return np.random.default_rng(7).uniform(-1, 1, (sum(rows), 3))

    @property
    def rows(self):
        return self.steps[0]

    def answer(self, me):
        devices = [d for d in phalanx.devices() if d.process_index < len(self.rows)]
        step = pmap(
            lambda x, rows: self.lane(x), "i", static_broadcasted_argnums=1, devices=devices,
            out_axes=(0, None),
        )  # fmt: skip
        found = []
        for rows in self.steps:
            first = sum(rows[:me])
            own = self.batch(rows)[first : first + rows[me]]
            found.append([np.asarray(y) for y in step(own, rows)])
        return found

    def oracle(self):
        return [self.of_all(self.batch(rows)) for rows in self.steps]

    @staticmethod
    def of_all(x):
        return x * np.arange(len(x))[:, None] + x.mean(0), x[0]

    def check(self, answers, expected):
        for step, (own, common) in enumerate(expected):
            close(np.concatenate([found[step][0] for found in answers]), own, tolerance=1e-8)
            for found in answers:
                close(found[step][1], common, tolerance=1e-8)


# ---- in a process -------------------------------------------------------------------------------


def answer(path, me):
    """Compute all cases of the file at ``path`` in process ``me``, and write down what is found."""
    found = {}
    for i, case in enumerate(pickle.loads(path.read_bytes())):
        if me < len(case.rows):
            try:
                found[i] = case.answer(me)
            except Exception:  # it is told, and the other cases are asked
                found[i] = traceback.format_exc()
    path.with_suffix(f".{me}").write_bytes(pickle.dumps(found))


def values(case, me, args, *_):
    return [case.mapped(me)(*args)]


def eagerly(case, me, args, *_):
    with phalanx.disable_jit():
        return values(case, me, args)


def tangents(case, me, args, ts, *_):
    return [phalanx.jvp(case.mapped(me), args, ts)[1]]


def slopes(case, me, args, ts, us, ct):
    return phalanx.vjp(case.mapped(me), *args)[1](ct)


def bends(case, me, args, ts, us, ct):
    f = case.mapped(me)

    def slope(*args):
        return phalanx.vjp(f, *args)[1](ct)

    return phalanx.jvp(slope, args, ts)[1]


def slopes_in_a_lane(case, me, args, *_):
    lane, leading = phalanx.grad(loss(case.program), (0, 1)), (0,) * len(case.program.mapping.axes)
    return case.mapped(me, lane, leading)(*args)


# ---- the oracle ---------------------------------------------------------------------------------


def slope_of(case):
    args, ts, _ = case.arguments()
    return smoothly_along(case.program.oracle, args, ts)


def slope_along_cotangent(case):
    return np.vdot(case.cotangent(), slope_of(case))


def bend_of(case):
    args, ts, us = case.arguments()
    ct = case.cotangent()
    return smoothly_along(lambda x, w: np.vdot(ct, case.program.oracle(x, w)), args, ts, us)


def directions_in_lanes(case):
    """What every lane has of x and of w, and for each of these a direction of its own."""
    m, source = case.program.mapping, np.random.default_rng(5)
    both = zip(case.arguments()[0], (m.x_dims, m.w_dims), strict=True)
    lanes = [m.split(a, dims) for a, dims in both]
    return lanes, [{c: source.uniform(-1, 1, a.shape) for c, a in v.items()} for v in lanes]


def slope_in_lanes(case):
    lanes, ts = directions_in_lanes(case)

    def moved(amount):
        both = zip(lanes, ts, strict=True)
        return total(case.program, *({c: a + amount * t[c] for c, a in v.items()} for v, t in both))

    return smoothly_along(moved, (np.zeros(()),), (np.ones(()),))


def along_directions_in_lanes(case, *gradients):
    m, (_, ts) = case.program.mapping, directions_in_lanes(case)
    return sum(
        np.vdot(g, t[c])
        for whole, t in zip(gradients, ts, strict=True)
        for c, g in m.split(whole, (0,) * len(m.axes)).items()
    )


@dataclass(frozen=True)
class Question:
    """What is asked of a program: what a process answers, what the oracle says, and what of the
    answers, joined over processes, is the same up to a ``tolerance``."""

    answer: Callable
    oracle: Callable
    measure: Callable = lambda case, found: found
    tolerance: float = 1e-8


QUESTIONS = {
    "values": Question(values, Case.values),
    "values eagerly": Question(eagerly, Case.values),
    "tangents": Question(tangents, slope_of, tolerance=1e-6),
    "slopes": Question(
        slopes, slope_along_cotangent, lambda case, *found: dot(found, case.arguments()[1]), 1e-6
    ),
    "bends": Question(bends, bend_of, lambda case, *found: dot(found, case.arguments()[2]), 1e-5),
    "slopes in a lane": Question(slopes_in_a_lane, slope_in_lanes, along_directions_in_lanes, 1e-6),
}


# ---- drawing ------------------------------------------------------------------------------------


def cuttings(size, count):
    """How ``count`` processes may have ``size`` rows."""
    ends = st.lists(st.integers(1, size - 1), min_size=count - 1, max_size=count - 1, unique=True)

    def between(ends):
        return tuple([b - a for a, b in itertools.pairwise([0, *sorted(ends), size])])

    return ends.map(between)


def lots(count):
    """Random numbers in ``count`` processes, and what the oracle says."""
    rows = st.integers(count, 7).flatmap(lambda size: cuttings(size, count))
    shapes = st.sampled_from([(), (3,), (2, 1)])
    drawn = st.builds(Lots, rows, st.sampled_from(sorted(DRAWS)), shapes)
    return drawn.map(lambda these: (these, these.oracle()))


def changing(count):
    """Batches whose rows change in some processes, and in others do not."""
    rows = st.tuples(*[st.integers(1, 3)] * count)
    drawn = st.builds(Changing, st.lists(rows, min_size=2, max_size=4).map(tuple))
    return drawn.map(lambda these: (these, these.oracle()))


@st.composite
def cases(draw, count):
    """A case for ``count`` processes, and what the oracle says; where this has no derivative, there
    is no case."""
    layouts = [axes for axes in LAYOUTS if count <= axes[0][1] <= 9]
    question = draw(st.sampled_from(sorted(QUESTIONS)))
    program = draw(programs(most_steps=2 if question == "bends" else 3, layouts=layouts))
    (_, size), *rest = program.mapping.axes
    rows = draw(cuttings(size, count))
    inner = tuple([draw(st.sampled_from([pmap, vmap])) for _ in rest])
    case = draw(st.sampled_from([Case, Whole]))(program, rows, inner, question)
    return case, QUESTIONS[question].oracle(case)


COUNTS = (2, 3)


@settings(max_examples=3 * settings().max_examples)
@given(st.data())
def draw_into(found, data):
    count = data.draw(st.sampled_from(COUNTS))
    found.append(data.draw(st.one_of(*[cases(count)] * 7, lots(count))))


@settings(max_examples=settings().max_examples // 2)
@given(st.sampled_from(COUNTS).flatmap(changing))
def draw_changes_into(found, these):
    found.append(these)


def answers_of(cases, launch, path, options=""):  # noqa: F811
    """What the processes of each case find, with two devices each, and ``options`` set."""
    path.write_bytes(pickle.dumps(cases))
    story = f"""
    from pathlib import Path
    from tests.laws.test_pmap_over_processes import answer
    answer(Path({str(path)!r}), me)
    """
    count = max(COUNTS)
    ended = launch(count, textwrap.dedent(options) + textwrap.dedent(story), devices=2)
    assert ended.status == 0, ended.output
    found = [pickle.loads(path.with_suffix(f".{me}").read_bytes()) for me in range(count)]
    for i, case in enumerate(cases):
        answers = [found[me][i] for me in range(len(case.rows))]
        assert not any(isinstance(a, str) for a in answers), "\n".join(
            [str(case), *map(str, answers)]
        )
        yield answers


@pytest.mark.slow
def test_drawn_programs_over_processes(launch, tmp_path):  # noqa: F811
    drawn = []
    draw_into(drawn)
    draw_changes_into(drawn)
    options = """
    phalanx.config.update("enable_x64", True)
    phalanx.config.update("disable_most_optimizations", True)
    """
    answers = answers_of([case for case, _ in drawn], launch, tmp_path / "cases", options)
    for (case, expected), found in zip(drawn, answers, strict=True):
        print(case)  # which pytest shows where it fails
        case.check(found, expected)
