"""Programs of lanes: how to draw them, run them with Phalanx, and run them in NumPy.

The NumPy side is an oracle. It knows nothing of batching rules or devices: a value is a dict
from the coordinates of a lane to its array, and a collective is a function of the list of arrays
in the lanes that talk to each other.
"""

import itertools
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

# ---- collectives of a list of lanes -------------------------------------------------------------


def all_gather(xs, axis, tiled):
    joined = np.concatenate(xs, axis) if tiled else np.stack(xs, axis)
    return [joined] * len(xs)


def psum_scatter(xs, scatter_dimension, tiled):
    total = sum(xs)
    if tiled:
        return np.split(total, len(xs), scatter_dimension)
    return [np.take(total, i, scatter_dimension) for i in range(len(xs))]


def all_to_all(xs, split_axis, concat_axis, tiled):
    if tiled:
        parts = [np.split(x, len(xs), split_axis) for x in xs]
        return [np.concatenate([p[i] for p in parts], concat_axis) for i in range(len(xs))]
    return [np.stack([np.take(x, i, split_axis) for x in xs], concat_axis) for i in range(len(xs))]


def ppermute(xs, perm):
    sent = {target: xs[source] for source, target in perm}
    return [sent.get(i, np.zeros_like(xs[0])) for i in range(len(xs))]


def everyone(reduce):
    return lambda xs: [reduce(xs)] * len(xs)


ORACLES = {
    "psum": everyone(sum),
    "pmean": everyone(lambda xs: sum(xs) / len(xs)),
    "pmax": everyone(lambda xs: np.max(xs, 0)),
    "pmin": everyone(lambda xs: np.min(xs, 0)),
    "all_gather": all_gather,
    "psum_scatter": psum_scatter,
    "all_to_all": all_to_all,
    "pswapaxes": lambda xs, axis: all_to_all(xs, axis, axis, False),
    "ppermute": ppermute,
    "pshuffle": lambda xs, perm: [xs[i] for i in perm],
    "pbroadcast": lambda xs, source: [xs[source]] * len(xs),
}
ALIKE = {"psum", "pmean", "pmax", "pmin", "all_gather", "pbroadcast"}  # the same in every lane


def in_groups(collective, xs, groups):
    out = [None] * len(xs)
    for group in groups:
        for i, y in zip(group, collective([xs[i] for i in group]), strict=True):
            out[i] = y
    return out


# ---- operations of one lane ---------------------------------------------------------------------

ORACLE = SimpleNamespace(
    np=np,
    cond=lambda pred, f, g, x: f(x) if pred else g(x),
    call=lambda f, x: f(x),
)
PHALANX = SimpleNamespace(np=jnp, cond=lax.cond, call=lambda f, x: phalanx.jit(f)(x))
LOCALS = {
    "sin": lambda b, x, w: b.np.sin(x),
    "tanh": lambda b, x, w: b.np.tanh(x) * 1.5,
    "square": lambda b, x, w: x * x / (1 + x * x),
    "weigh": lambda b, x, w: x * w.sum() + b.np.cos(w)[0],
    "negative": lambda b, x, w: 0.5 - x,
    "transpose": lambda b, x, w: x.T + 0.1,
    "where": lambda b, x, w: b.np.where(x > 0.1, x, 2 * b.np.sin(x) * x),
    "cumsum": lambda b, x, w: b.np.cumsum(x, 0) / 2 if x.ndim else x,
    "flip": lambda b, x, w: x[::-1] * 0.9 if x.ndim else x,
    "cond": lambda b, x, w: b.cond(x.sum() > 0.1, b.np.sin, lambda x: x * x * 0.3, x),
    "call": lambda b, x, w: b.call(lambda x: b.np.cos(x) * x, x),
    # where it is not taken, the first branch and its derivatives are not numbers
    "root": lambda b, x, w: b.cond(decide(x), lambda x: b.np.sqrt(x.sum()) * x, b.np.sin, x),
    "root of w": lambda b, x, w: b.cond(
        w.sum() > 0.1, lambda x: b.np.sqrt(w.sum()) + x, lambda x: x * 0.9, x
    ),
}


def decide(x):
    return x.sum() > 0.1


# ---- programs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A collective over axes, or (no names) an operation of one lane.

    A collective that keeps the shape may be done several ``times``, in a scan, and may be
    ``decided`` upon: lanes choose for themselves whether they take what it gives.
    """

    kind: str
    names: tuple = ()
    params: dict = field(default_factory=dict)
    times: int = 1
    decided: bool = False

    def __call__(self, x, w):
        if self.times == 1:
            return self.once(x, w)
        return lax.scan(lambda x, _: (self.once(calm(jnp, x), w), None), x, length=self.times)[0]

    def once(self, x, w):
        if self.decided:
            return lax.cond(decide(x), lambda x: self.apply(x, w), lambda x: x * 0.5, x)
        return self.apply(x, w)

    def apply(self, x, w):
        if self.kind in LOCALS:
            return LOCALS[self.kind](PHALANX, x, w)
        axis_name = self.names if len(self.names) > 1 else self.names[0]
        if self.kind == "axis_index":
            return x + (1 + lax.axis_index(axis_name)) * 0.25
        return getattr(lax, self.kind)(x, axis_name, **self.params)

    def oracle(self, xs, ws, axes):
        if self.kind in LOCALS:
            return {c: LOCALS[self.kind](ORACLE, x, ws[c]) for c, x in xs.items()}
        positions = [k for k, (name, _) in enumerate(axes) if name in self.names]
        order = [[n for n, _ in axes].index(n) for n in self.names]
        cells = {}
        for c in sorted(xs, key=lambda c: [c[k] for k in order]):
            cells.setdefault(others(c, positions), []).append(c)
        out = {}
        for members in cells.values():
            ys = [xs[c] for c in members]
            for _ in range(self.times):
                ys = self.exchange(ys if self.times == 1 else [calm(np, y) for y in ys])
            out.update(zip(members, ys, strict=True))
        return out

    def exchange(self, xs):
        if self.decided:
            taken = replace(self, decided=False).exchange(xs)
            return [t if decide(x) else x * 0.5 for x, t in zip(xs, taken, strict=True)]
        if self.kind == "axis_index":
            return [x + (1 + i) * 0.25 for i, x in enumerate(xs)]
        params = dict(self.params)
        groups = params.pop("axis_index_groups", None)

        def collective(xs):
            return ORACLES[self.kind](xs, **params)

        return collective(xs) if groups is None else in_groups(collective, xs, groups)

    def varying(self, before):
        if self.kind in LOCALS:
            return before
        if self.decided:
            return before | replace(self, decided=False).varying(before)
        alike = self.kind in ALIKE and self.params.get("axis_index_groups") is None
        if alike and self.times == 1:
            return before - set(self.names)
        return before if alike else before | set(self.names)


def calm(np, x):
    """Small, so that a sum over lanes that is repeated stays so."""
    return np.tanh(x) * 0.3


def others(coordinates, positions):
    return tuple(i for k, i in enumerate(coordinates) if k not in positions)


@dataclass(frozen=True)
class Mapping:
    """Named axes, outermost first, and where they lie in the arguments x, w and the result.

    ``room`` is the number of devices of each process over which pmap may lay them, ``processes``
    that of the processes; None is all. ``at_once`` says of each axis how many lanes run together.
    """

    axes: tuple
    x_dims: tuple
    w_dims: tuple
    out_dims: tuple
    room: int | None = None
    at_once: tuple = (None,) * 3
    processes: int | None = None

    @property
    def coordinates(self):
        return list(itertools.product(*(range(size) for _, size in self.axes)))

    def devices(self):
        """Those that pmap may use."""
        of_processes = {}
        for d in phalanx.devices():
            of_processes.setdefault(d.process_index, []).append(d)
        some = itertools.islice(of_processes.values(), self.processes)
        return [d for devices in some for d in devices[: self.room]]

    def over(self, transforms, lane, *more, out_dims=None):
        """``lane`` under one of ``transforms``, which are ``pmap`` or ``vmap``, for each axis.

        ``more`` are the dimensions of further arguments than x and w.
        """
        outs = self.out_dims if out_dims is None else out_dims
        dims = zip(self.x_dims, self.w_dims, *more, strict=True)
        levels = zip(self.axes, dims, outs, transforms, strict=True)
        outermost = next((k for k, t in enumerate(transforms) if t is not phalanx.vmap), None)
        for k, ((name, size), in_axes, out, transform) in reversed(list(enumerate(levels))):
            named = None if name.startswith("anonymous") else name
            options = {"devices": self.devices()} if k == outermost else {}
            options["lanes_at_once"] = self.at_once[k]
            lane = transform(
                lane, axis_name=named, in_axes=in_axes, out_axes=out, axis_size=size, **options
            )
        return lane

    def whole_shape(self, shape, dims):
        for (_, size), d in reversed(list(zip(self.axes, dims, strict=True))):
            if d is not None:
                at = d % (len(shape) + 1)
                shape = (*shape[:at], size, *shape[at:])
        return shape

    def split(self, whole, dims):
        """The array of every lane."""
        return {c: take_lane(whole, dims, c) for c in self.coordinates}

    def join(self, lanes, dims=None):
        """The whole array of every lane's."""
        for k in reversed(range(len(self.axes))):
            d = (self.out_dims if dims is None else dims)[k]
            cells = {}
            for c, y in sorted(lanes.items()):
                cells.setdefault(c[:k], []).append(y)
            lanes = {c: ys[0] if d is None else np.stack(ys, d) for c, ys in cells.items()}
        return lanes[()]


def take_lane(whole, dims, coordinates):
    for i, d in zip(coordinates, dims, strict=True):
        whole = whole if d is None else np.take(whole, i, d)
    return whole


@dataclass(frozen=True)
class Program:
    """A sequence of steps on x, with w at hand, under mapped axes."""

    mapping: Mapping
    x_shape: tuple
    w_shape: tuple
    steps: tuple

    def lane(self, x, w):
        for step in self.steps:
            x = step(x, w)
        return x

    def lanes(self, xs, ws):
        for step in self.steps:
            xs = step.oracle(xs, ws, self.mapping.axes)
        return xs

    def oracle(self, x, w):
        m = self.mapping
        return m.join(self.lanes(m.split(x, m.x_dims), m.split(w, m.w_dims)))

    def arguments(self, seed=0):
        m, source = self.mapping, np.random.default_rng(seed)
        shapes = m.whole_shape(self.x_shape, m.x_dims), m.whole_shape(self.w_shape, m.w_dims)
        return tuple(source.uniform(-1.0, 1.0, s) for s in shapes)


# ---- drawing ------------------------------------------------------------------------------------

LAYOUTS = [
    *[(("i", n),) for n in (*range(1, 18), 24)],
    (("i", 5), ("j", 3)),
    (("i", 2), ("j", 7)),
    (("i", 2), ("j", 2)),
    (("i", 2), ("j", 3)),
    (("i", 4), ("j", 2)),
    (("i", 3), ("j", 4)),
    (("anonymous", 2), ("i", 4)),
    (("i", 4), ("anonymous", 2)),
    (("i", 2), ("j", 2), ("k", 2)),
    (("anonymous", 2), ("i", 2), ("j", 2)),
]
rooms = st.sampled_from([None, None, 1, 2, 3, 4])
LARGEST = 400
REDUCTIONS = ("psum", "pmean", "pmax", "pmin")


def groups_of(n):
    """Ways to partition an axis, in equal parts."""
    found = [None]
    if n % 2 == 0 and n > 2:
        found.append([list(range(0, n, 2)), list(range(1, n, 2))])
        found.append([[i, n - 1 - i] for i in range(n // 2)])
    return found


def collectives(axes, shape, copied):
    """Every collective step that an array of ``shape`` allows.

    Where the lanes hold copies of one value, along the axes ``copied``, all of them attain the
    maximum, and it has no derivative by one lane's copy.
    """
    named = [(n, s) for n, s in axes if not n.startswith("anonymous")]
    for count in range(1, len(named) + 1):
        for chosen in itertools.permutations(named, count):
            names, n = tuple(n for n, _ in chosen), int(np.prod([s for _, s in chosen]))
            kinds = ("psum", "pmean") if copied.intersection(names) else REDUCTIONS
            yield from unsplit(names, n, kinds)
            for groups in groups_of(n):
                m = n if groups is None else len(groups[0])
                yield from splitting(names, m, shape, groups)


def unsplit(names, n, reductions):
    """The collectives that take any shape."""
    uneven = [[[0], list(range(1, n))]] if n > 2 else []
    for groups in groups_of(n) + uneven:
        for kind in reductions:
            yield Step(kind, names, {"axis_index_groups": groups})
    yield Step("axis_index", names)
    yield Step("pbroadcast", names, {"source": n - 1})
    order = np.random.default_rng(n).permutation(n).tolist()
    yield Step("pshuffle", names, {"perm": order})
    pairs = list(enumerate(order))
    yield Step("ppermute", names, {"perm": pairs})
    yield Step("ppermute", names, {"perm": pairs[: n // 2]})


def splitting(names, n, shape, groups):
    """The collectives that make, cut or join dimensions."""
    g = {"axis_index_groups": groups}
    for d in range(-1, len(shape) + 1):
        if n * np.prod(shape) > LARGEST:
            break
        yield Step("all_gather", names, {"axis": d, "tiled": False, **g})
    for d in range(len(shape)):
        if n * np.prod(shape) <= LARGEST:
            yield Step("all_gather", names, {"axis": d, "tiled": True, **g})
        if shape[d] % n == 0 and shape[d] > 0:
            yield Step("psum_scatter", names, {"scatter_dimension": d, "tiled": True, **g})
            for e in range(len(shape)):
                params = {"split_axis": d, "concat_axis": e, "tiled": True, **g}
                yield Step("all_to_all", names, params)
        if shape[d] == n:
            yield Step("psum_scatter", names, {"scatter_dimension": d, "tiled": False, **g})
            yield Step("pswapaxes", names, {"axis": d, **g})
            for e in range(len(shape)):
                params = {"split_axis": d, "concat_axis": e, "tiled": False, **g}
                yield Step("all_to_all", names, params)


@st.composite
def programs(draw, most_steps=4, layouts=LAYOUTS):
    """A program, whose every step fits the shape that the steps before it leave."""
    axes = draw(st.sampled_from(layouts))
    width = int(np.prod([s for n, s in axes if not n.startswith("anonymous")]))
    x_shape = draw(st.sampled_from([(width, 2), (width,), (2, width)]))
    w_shape = (3,)
    x_dims, x_rank = [], len(x_shape)
    w_dims, w_rank = [], len(w_shape)
    for _ in axes:  # innermost first
        x_dims.insert(0, draw(st.sampled_from([*range(x_rank + 1), -1, None])))
        w_dims.insert(0, draw(st.sampled_from([*range(w_rank + 1), -1, None])))
        x_rank += x_dims[0] is not None
        w_rank += w_dims[0] is not None
    varying = {n for (n, _), d in zip(axes, x_dims, strict=True) if d is not None}
    copied = {n for n, _ in axes} - varying
    w_varying = {n for (n, _), d in zip(axes, w_dims, strict=True) if d is not None}
    steps, shape = [], x_shape
    for _ in range(draw(st.integers(1, most_steps))):
        local = draw(st.sampled_from(sorted(LOCALS)))
        varying = varying | w_varying if local in ("weigh", "root of w") else varying
        shape = shape[::-1] if local == "transpose" else shape
        choices = by_kind(collectives(axes, shape, copied))
        kind = draw(st.sampled_from(sorted(choices)))
        step = draw(st.sampled_from(choices[kind]))
        if shape_after(step, shape, axes) == shape:
            times, decided = draw(st.sampled_from([1, 1, 3])), draw(st.booleans())
            step = replace(step, times=times, decided=decided)
        varying = step.varying(varying)
        steps += [Step(local), step]
        shape = shape_after(step, shape, axes)
    out_dims, rank = [], len(shape)
    for name, _ in reversed(axes):
        free = [] if name in varying else [None]
        out_dims.insert(0, draw(st.sampled_from([*range(rank + 1), -1, *free])))
        rank += out_dims[0] is not None
    mapping = Mapping(axes, tuple(x_dims), tuple(w_dims), tuple(out_dims))
    at_once = tuple([draw(st.sampled_from([None, None, 1, 2, 3, "all"])) for _ in axes])
    mapping = replace(mapping, room=draw(rooms), at_once=at_once)
    return Program(mapping, x_shape, w_shape, tuple(steps))


def by_kind(steps):
    found = {}
    for step in steps:
        found.setdefault(step.kind, []).append(step)
    return found


def shape_after(step, shape, axes):
    n = int(np.prod([s for name, s in axes if name in step.names]))
    return step.exchange([np.zeros(shape)] * n)[0].shape
