"""Operations that take functions, and functions of the module."""

import importlib
import re

import numpy as np
import pytest
from jaxlib.mlir import ir

from phalanx.base.source import Location
from phalanx.core.program import Equation, Program, Var
from phalanx.core.types import ArrayType
from phalanx.primitives.elementwise import cos, sin, tan
from phalanx.spmd.plan import Plan
from phalanx.xla.lower import build

F, I, B = np.dtype("f4"), np.dtype("i4"), np.dtype(bool)  # noqa: E741
X = np.array([[3, 1, 2, 0], [7, 5, 6, 4], [9, 11, 8, 10]], F)


def add(b, x, y):
    return b.add(x, y)


def greatest(b, x, y):
    return [b.maximum(x, y)]


def test_reduce(check):
    def largest_with_position(b, v, i, w, j):
        better = b.compare(w, v, "GT")
        return [b.select(better, w, v), b.select(better, j, i)]

    def emit(b, x):
        zero, low, none = b.constant(0, F), b.constant(-np.inf, F), b.constant(0, I)
        where = b.iota(I, (3, 4), 1)
        return [
            *b.reduce([x], [zero], (0, 1), add),
            *b.reduce([x], [low], (1,), greatest),
            *b.reduce([x, where], [low, none], (1,), largest_with_position),
        ]

    check(emit, [X], [X.sum(), X.max(1), X.max(1), X.argmax(1).astype(I)])


def test_reduce_window(check):
    sums = np.array([[X[i : i + 2, j : j + 2].sum() for j in (0, 2)] for i in range(2)])
    running = X.cumsum(1)

    def emit(b, x):
        zero = b.constant(0, F)
        ones, none = (1, 1), ((0, 0), (0, 0))
        return [
            *b.reduce_window([x], [zero], (2, 2), (1, 2), ones, ones, none, add),
            *b.reduce_window([x], [zero], (1, 4), ones, ones, ones, ((0, 0), (3, 0)), add),
            *b.reduce_window([x], [zero], (1, 2), ones, ones, (1, 3), none, add),
            *b.reduce_window([x], [zero], (1, 1), ones, (1, 2), ones, none, add),
        ]

    dilated = np.zeros((3, 7), F)
    dilated[:, ::2] = X
    check(emit, [X], [sums, running, X[:, :1] + X[:, 3:], dilated])


def test_select_and_scatter(check):
    source = np.array([[1, 2]], F)
    want = np.zeros((2, 4), F)
    want[1, 0], want[1, 2] = 1, 2

    def emit(b, x, s):
        zero = b.constant(0, F)
        larger = lambda b, x, y: b.compare(x, y, "GE")  # noqa: E731
        none = ((0, 0), (0, 0))
        return [b.select_and_scatter(x, s, zero, (2, 2), (2, 2), none, larger, add)]

    check(emit, [X[:2], source], [want])


def test_sort_and_top_k(check):
    def emit(b, x):
        where = b.iota(I, (3, 4), 1)
        by_first = lambda b, x, y, i, j: b.compare(x, y, "LT")  # noqa: E731
        return [*b.sort([x, where], 1, True, by_first), *b.top_k(x, 2)]

    order = np.argsort(X, 1, kind="stable").astype(I)
    check(emit, [X], [np.sort(X, 1), order, -np.sort(-X, 1)[:, :2], order[:, :1:-1]])


def test_approx_top_k(backend, one):
    """As the compiler writes it out for platforms that have no such operation; that is exact."""
    larger = importlib.import_module("phalanx.primitives.sort")._larger
    x = np.random.default_rng(0).normal(size=(3, 400)).astype(F)
    x[0, 5], x[1], x[1, 7] = np.nan, -np.inf, 2
    in_types, out_types = [ArrayType(x.shape, F)], [ArrayType((3, 6), F), ArrayType((3, 6), I)]

    def emit(b, x):
        return b.approx_top_k(x, 6, 0.95, -1, larger)

    lowered = build(in_types, out_types, Plan(one.device_list), emit)
    with lowered.module.context:
        lowered.module.operation.walk(_write_out)
    outs = backend.compile(lowered)([backend.put(x, in_types[0], one)])
    values, places = [backend.fetch(o, t, one) for o, t in zip(outs, out_types, strict=True)]
    order = np.argsort(np.where(np.isnan(x), -np.inf, -x), 1, kind="stable")[:, :6]
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))
    assert all(len({*row}) == 6 and min(row) >= 0 for row in places.tolist())


def _write_out(op):
    if op.name == "stablehlo.custom_call":
        said = {a.name: a.attr for a in op.attributes["mhlo.backend_config"]}
        said["is_fallback"] = ir.BoolAttr.get(True)
        op.attributes["mhlo.backend_config"] = ir.DictAttr.get(said)
    return ir.WalkResult.ADVANCE


def test_while(check):
    def emit(b, x):
        ten = b.constant(10, I)
        cond = lambda b, i, s: b.compare(i, ten, "LT")  # noqa: E731
        step = lambda b, i, s: [b.add(i, b.constant(1, I)), b.add(s, x)]  # noqa: E731
        return b.while_([b.constant(0, I), x], cond, step)

    check(emit, [X], [I.type(10), 11 * X])


@pytest.mark.parametrize("index, factor", [(0, 2), (1, 3), (2, 4), (7, 4), (-1, 4)])
def test_case(check, index, factor):
    def scaled(by):
        return lambda b: [b.multiply(captured[0], b.constant(by, F, (3, 4))), b.constant(by, I)]

    captured = []

    def emit(b, i, x):
        captured[:] = [x]
        return b.case(i, [scaled(2), scaled(3), scaled(4)])

    check(emit, [I.type(index), X], [X * factor, I.type(factor)])


def test_case_of_one_value_and_nested(check):
    def emit(b, i, x):
        inner = lambda b: b.case(i, [lambda b: x, lambda b: b.negate(x)])  # noqa: E731
        return b.case(i, [lambda b: b.add(x, x), inner])

    check(emit, [I.type(1), X], [-X])
    check(emit, [I.type(0), X], [X + X])


def test_functions_are_written_once(check, one):
    def twice(b, x):
        (y,) = b.call("inner", lambda b, x: [b.add(x, x)], [x])
        return [y, b.negate(y)]

    def emit(b, x):
        y, _ = b.call("outer", twice, [x])
        return b.call("outer", twice, [y])

    check(emit, [X], [4 * X, -4 * X])
    t = ArrayType((3, 4), F)
    text = build([t], [t, t], Plan(one.device_list), emit).as_text()
    assert text.count("func.func private") == 2 and text.count("stablehlo.add") == 1


def test_locations_name_the_users_line(one):
    t = ArrayType((2,), F)

    def emit(b, x):
        with b.at(Location.at("/home/ada/train.py", 12, "loss")):
            y = b.sine(x)
        with b.at(None):
            return [b.cosine(y)]

    text = build([t], [t], Plan(one.device_list), emit).as_text(locations=True)
    assert 'loc("/home/ada/train.py":12:0)' in text and '"loss"' in text


def test_scopes_on_one_line_name_operations_apart(one):
    t = ArrayType((2,), F)
    place = Location.at("/home/ada/train.py", 12, "loss")

    def emit(b, x):
        with b.at(Location(place.code, place.lasti, "first")):
            y = b.sine(x)
        with b.at(Location(place.code, place.lasti, "second")):
            return [b.cosine(y)]

    text = build([t], [t], Plan(one.device_list), emit).as_text(locations=True)
    assert '"first/loss"' in text and '"second/loss"' in text


def test_equations_keep_their_lines_and_what_has_none_that_of_what_it_stands_in(one):
    t = ArrayType((2,), F)
    x, y, z, w = (Var(t) for _ in range(4))
    first, second = (Location.at("/home/ada/train.py", n, f"step_{n}") for n in (1, 2))
    equations = [
        Equation(sin, [x], {}, (y,), first),
        Equation(cos, [y], {}, (z,), None),
        Equation(tan, [z], {}, (w,), second),
    ]
    program = Program([x], equations, [w])

    def emit(b, x):
        with b.at(Location.at("/home/ada/train.py", 3, "call")):
            return b.inline(program, x)

    text = build([t], [t], Plan(one.device_list), emit).as_text(locations=True)
    names = dict(re.findall(r'^(#loc\d+) = loc\("(\w+)"', text, re.M))
    places = re.findall(r"(stablehlo\.\w+|tan) .* loc\((#loc\d+)\)$", text, re.M)
    assert [names[place] for _, place in places] == ["step_1", "call", "step_2"]


def test_a_scalar_constant_is_written_once_for_each_region(one, check):
    t = ArrayType((2,), F)

    def emit(b, x):
        two = [b.broadcast_in_dim(b.constant(2, F), (2,), ()) for _ in range(3)]
        body = lambda b, v: b.multiply(v, b.broadcast_in_dim(b.constant(2, F), (2,), ()))  # noqa: E731
        done = lambda b, v: b.compare(b.constant(1, I), b.constant(1, I), "NE")  # noqa: E731
        (y,) = b.while_([x], done, body)
        return [b.add(b.add(y, two[0]), b.add(two[1], two[2]))]

    text = build([t], [t], Plan(one.device_list), emit).as_text()
    assert text.count("dense<2.000000e+00>") == 2 and text.count("dense<1>") == 1
    assert text.count("stablehlo.broadcast_in_dim") == 2
    x = np.array([1, 2], F)
    check(emit, [x], [x + 6])


def test_constants_of_equal_bits_and_other_types_or_signs_are_told_apart(check):
    def emit(b, x):
        values = [b.constant(0.0, F), b.constant(-0.0, F), b.convert(b.constant(0, I), F)]
        return [b.divide(x, b.broadcast_in_dim(v, (2,), ())) for v in values]

    x = np.ones(2, F)
    check(emit, [x], [np.array([s * np.inf] * 2, F) for s in (1, -1, 1)])


def test_host_calls(check, run):
    def emit(b, x):
        total = lambda x: (x.sum(1), x.astype("f8") + 1)  # noqa: E731  (results are converted)
        return b.host_call(total, [x], [ArrayType((3,), F), ArrayType((3, 4), F)])

    check(emit, [X], [X.sum(1), X + 1])


def test_failing_host_calls_raise_the_original(run):
    def fail(x):
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        run(lambda b, x: b.host_call(fail, [x], [ArrayType((3, 4), F)]), [X], [X])
    with pytest.raises(ValueError, match=r"has shape \(2,\), but f32\[3,4\] was declared"):
        emit = lambda b, x: b.host_call(lambda x: [x[:2, 0]], [x], [ArrayType((3, 4), F)])  # noqa: E731
        run(emit, [X], [X])
