"""``verify``: faults are found at their lines, and right programs are said to be right."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, lax, pmap, random
from phalanx.core.primitive import REGISTRY
from phalanx.core.roles import blocks, slices
from phalanx.core.runs import Lanes
from phalanx.errors import ArgumentError, OutOfMemory
from phalanx.insight.verification.collectives import EXCHANGES, coordinates
from phalanx.insight.verification.reference import Reference, host_value, part, whole
from phalanx.insight.verification.rounding import Judge
from phalanx.insight.verification.single_device import wider
from phalanx.insight.verification.workarounds import way_around
from tests.laws.lanes import programs
from tests.units.insight.verification.planted import FAULTS

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs 8 devices")
X, W = np.random.default_rng(0).normal(size=(2, 8, 8)).astype("f")


def line_of(f, text):
    """The line of a function that contains ``text``."""
    lines, first = inspect.getsourcelines(f)
    (number,) = [k for k, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(f)}:{first + number}"


def mesh():
    return phalanx.make_mesh((2, 2, 2), ("x", "y", "z"))


def test_every_collective_has_a_definition():
    exchange_nothing = {"axis_index", "pvary"}
    named = {name for name, prim in REGISTRY.items() if prim.named_axes is not None}
    assert {*EXCHANGES} == named - exchange_nothing


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_at_its_line(fault):
    with fault.plant():
        report = phalanx.verify(fault.step())(*fault.arguments())
    assert not report.agrees, report.verdict
    assert report.line == fault.line, report.verdict


@pytest.mark.parametrize("fault", FAULTS[::8], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_in_float64(fault):
    with phalanx.enable_x64(True), fault.plant():
        report = phalanx.verify(fault.step())(*map(np.float64, fault.arguments()))
    assert not report.agrees, report.verdict
    assert report.line == fault.line, report.verdict


@settings(max_examples=5)
@given(programs())
def test_right_programs_are_right(program):
    x, w = program.arguments()
    f = program.mapping.over((pmap,) * len(program.mapping.axes), program.lane)
    report = phalanx.verify(f)(np.float32(x), np.float32(w))
    assert report.agrees, report.verdict
    slope = phalanx.jit(phalanx.grad(lambda x, w: jnp.sin(f(x, w)).sum()))
    report = phalanx.verify(slope)(np.float32(x), np.float32(w))
    assert report.agrees, report.verdict


@settings(max_examples=10)
@given(programs())
def test_the_reference_gives_what_an_interpreter_in_numpy_gives(program):
    x, w = program.arguments()
    f = program.mapping.over((pmap,) * len(program.mapping.axes), program.lane)
    traced = phalanx.jit(f).trace(np.float32(x), np.float32(w)).program
    reference = Reference(phalanx.devices()[0], wider)
    ((found,),) = reference(traced, [[np.float32(x)], [np.float32(w)]])
    expected = program.oracle(np.float64(np.float32(x)), np.float64(np.float32(w)))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def asked_along_two_axes(x, w):
    y = jnp.sin(x)
    y = y @ w  # here
    return lax.with_sharding_constraint(y, NamedSharding(mesh(), P("x", ("z", "y"))))


def over_the_sum(f):
    shardings = [NamedSharding(mesh(), spec) for spec in (P(None, "x"), P("x", None))]
    return phalanx.jit(f, in_shardings=shardings)


def test_a_product_that_the_partitioner_gets_wrong():
    report = phalanx.verify(over_the_sum(asked_along_two_axes))(X, W)
    assert not report.agrees
    assert report.line == line_of(asked_along_two_axes, "# here")
    assert "dot_general gives" in report.verdict
    assert "with_sharding_constraint" in report.verdict
    first = report["first difference"].as_json()["facts"]
    assert float(first["on one device"]) != float(first["on devices"])
    rows = report["operands"].as_json()["rows"]
    assert [row["what"] for row in rows] == ["operand", "operand", "result"]
    assert "P(None, 'x')" in rows[0]["sharding"]
    assert "P('x', ('z', 'y'))" in rows[2]["sharding"]
    made = report["what the compiler made of the line"].text
    assert "ynn_fusion = " in made and "all-reduce(ynn_fusion" in made and "tanh(" not in made
    text = report["a program that repeats it"].text
    assert len(text.split("\n\n")[1].splitlines()) <= 10, text


def test_the_program_that_repeats_it_runs_and_repeats_it(capsys):
    report = phalanx.verify(over_the_sum(asked_along_two_axes))(X, W)
    exec(report["a program that repeats it"].text, {"__name__": "repeats"})
    assert "The result differs from that of one device" in capsys.readouterr().out


def test_a_nan_that_a_maximum_loses():
    x = X.copy()
    x[3, 2] = np.nan

    def largest(x):
        return jnp.max(x, 0) + 1  # here

    rows = NamedSharding(phalanx.make_mesh((8,), ("x",)), P("x"))
    report = phalanx.verify(phalanx.jit(largest, in_shardings=rows))(x)
    assert not report.agrees
    assert report.line == line_of(largest, "# here")
    assert "isnan" in report.verdict


def test_rounding_that_a_program_makes_larger_is_no_fault():
    def chaotic(x):
        x = x / lax.psum(jnp.sin(x), "i")
        return lax.fori_loop(0, 60, lambda _, x: 3.99 * x * (1 - x), jnp.abs(x) % 1)

    report = phalanx.verify(pmap(chaotic, "i"))(X)
    assert report.agrees, report.verdict


def test_rounding_in_float64_is_no_fault():
    def spread(x):
        x = lax.fori_loop(0, 60, lambda _, x: jnp.cos(x) / 2, x)  # lanes forget where they began
        return lax.pmean((x - lax.pmean(x, "i")) ** 2, "i")

    with phalanx.enable_x64(True):
        report = phalanx.verify(pmap(spread, "i"))(np.linspace(0, 1, 101))
    assert report.agrees, report.verdict


def test_the_advice_for_lanes_is_of_lanes():
    program = phalanx.jit(pmap(jnp.sin)).trace(X).program
    (mapped,) = [e for e in program.walk() if e.frame and isinstance(e.frame.runs, Lanes)]
    assert "lanes_at_once=1" in way_around(mapped, in_lanes=False)


def test_comparisons_that_rounding_turns_are_no_fault():
    def choose(x):
        total = lax.psum(jnp.sin(x), "i")
        return jnp.floor(total / total.max() * 1e7), jnp.argsort(total * 1e-3 + 1)

    report = phalanx.verify(pmap(choose, "i"))(X)
    assert report.agrees, report.verdict


def test_state_in_references_donation_and_keys():
    total = phalanx.new_ref(jnp.zeros(8))

    @phalanx.jit
    def step(key, x):
        total[...] += pmap(lambda x: x.sum(), "i")(x)
        return random.split(key, 3)

    report = phalanx.verify(step)(random.key(1), X)
    assert report.agrees, report.verdict
    np.testing.assert_array_equal(total[...], 0)
    rows = report["results"].as_json()["rows"]
    assert [row["result"] for row in rows] == ["reference 0", "result"]
    given = jnp.asarray(X)
    donated = phalanx.jit(lambda x: x + 1, donate_argnums=0)
    assert phalanx.verify(donated)(given).agrees
    np.testing.assert_array_equal(given, X)


def test_one_device_is_said_to_be_one():
    report = phalanx.verify(lambda x: {"a": x + 1, "b": 2 * x})(X)
    assert report.agrees
    assert report.verdict == "The 2 results of 1 device are those of one device to the bit."
    rows = report["results"].as_json()["rows"]
    assert [row["result"] for row in rows] == ["result['a']", "result['b']"]


def test_what_is_static_or_has_a_shape_alone():
    power = phalanx.jit(lambda x, n: x**n, static_argnums=1)
    assert phalanx.verify(power)(X, 3).agrees
    row = phalanx.ShapeDtypeStruct((8, 3), "float32")
    report = phalanx.verify(pmap(lambda x, i: x[i % 3] + lax.psum(x, "i"), "i"))(
        row, phalanx.ShapeDtypeStruct((8,), "int32")
    )
    assert report.agrees, report.verdict
    with pytest.raises(ArgumentError, match="keys are not"):
        phalanx.verify(random.bits)(phalanx.eval_shape(random.key, 0))


def test_nothing_and_what_changes_from_run_to_run():
    assert "no results" in phalanx.verify(pmap(lambda x: None, "i"))(X).verdict
    source = np.random.default_rng(0)

    def draw(x):
        return source.normal(size=x.shape).astype("f")

    def lane(x):
        return x + phalanx.pure_callback(draw, phalanx.ShapeDtypeStruct((8,), "float32"), x)

    report = phalanx.verify(pmap(lane, "i"))(X)
    assert not report.agrees
    assert "a second run on the same devices gives something else" in report.verdict
    assert report.line == line_of(lane, "pure_callback")


@pytest.mark.parametrize("fits", ["operations", "all but sines"])
def test_what_does_not_fit_on_one_device_is_compared_in_pieces(monkeypatch, fits):
    compare = Judge.compare

    def refusing(judge, program, *of):
        sines = fits == "all but sines" and REGISTRY["sin"] in program.primitives
        if sines or len([*program.walk()]) > 1:
            raise OutOfMemory("no memory is left")
        return compare(judge, program, *of)

    def lane(x):
        y = jnp.sin(x)  # here
        return y / lax.psum(y, "i")

    monkeypatch.setattr(Judge, "compare", refusing)
    report = phalanx.verify(pmap(lane, "i"))(X)
    assert report.agrees, report.verdict
    assert "was compared in pieces" in report.verdict
    line = line_of(lane, "# here").rpartition("/")[2]
    assert (f"sin at {line}" in report.verdict) == (fits == "all but sines"), report.verdict


def test_a_difference_is_found_in_what_does_not_fit(monkeypatch):
    compare = Judge.compare

    def refusing(judge, program, *of):
        if len([*program.walk()]) > 1:
            raise OutOfMemory("no memory is left")
        return compare(judge, program, *of)

    monkeypatch.setattr(Judge, "compare", refusing)
    report = phalanx.verify(over_the_sum(asked_along_two_axes))(X, W)
    assert report.line == line_of(asked_along_two_axes, "# here")


def test_the_line_that_loses_digits():
    def variance(x):
        mean = jnp.mean(x)
        squares = jnp.mean(x * x)
        return squares - mean * mean  # here

    report = phalanx.verify(variance, against="float64")(X + 1000)
    assert not report.agrees
    assert report.line == line_of(variance, "# here")
    report = phalanx.verify(jnp.sin, against="float64")(X)
    assert report.agrees
    assert report.line is None
    assert report.verdict.startswith("No line loses digits")


def test_lost_digits_in_lanes():
    def lane(x):
        mean = lax.pmean(x.mean(), "i")
        squares = lax.pmean((x * x).mean(), "i")
        return squares - mean * mean  # here

    report = phalanx.verify(pmap(lane, "i"), against="float64")(X + 1000)
    assert not report.agrees
    assert report.line == line_of(lane, "# here")


def test_what_it_cannot_compare_with():
    with pytest.raises(
        ArgumentError, match=r"against must be 'one-device' or 'float64', got 'f64'"
    ):
        phalanx.verify(jnp.sin, against="f64")
    with pytest.raises(TypeError, match="verify: a function is needed, got float"):
        phalanx.verify(3.0)


@pytest.mark.parametrize(
    ("role", "shape"),
    [
        (slices((("i",), (), ("j",))), (2, 8, 4)),
        (blocks((("i",), ("j",))), (8, 8)),
        (blocks((("j", "i"), ())), (8, 8)),
        (slices(((), ("j",))), (8, 4)),
    ],
    ids=str,
)
def test_parts_make_the_whole_again(role, shape):
    axes = (("i", 2), ("j", 4))
    x = np.arange(float(np.prod(shape))).reshape(shape)
    parts = [part(x, role, axes, at) for at in coordinates(axes)]
    assert {p.shape for p in parts} == {role.inner(phalanx.typeof(x), axes).shape}
    np.testing.assert_array_equal(whole(parts, role, axes), x)


def test_values_are_read_from_devices():
    np.testing.assert_array_equal(host_value(jnp.asarray(X)), X)
    assert host_value(random.key(3)).dtype == np.uint32
