"""Compiled programs on arrays: what is compiled again, moved, donated and checked."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.base.config import config
from phalanx.base.errors import DeletedArray, NonFiniteError
from phalanx.run.array import Signature, default_sharding
from phalanx.run.calls import operand_signatures
from phalanx.run.execute import compile_program, option_key, plan_program
from phalanx.run.planning import RequestedShardings
from phalanx.spmd.sharding import Sharding

pytestmark = pytest.mark.spmd

DEVICES = ph.devices()
X = np.arange(8, dtype=np.float32)


def compiled(f, *arrays, **options):
    program = ph.make_program(f)(*arrays)
    return program, compile_program(program, operand_signatures(arrays), **options)


def test_one_layout_is_compiled_once_whoever_chose_it():
    program, first = compiled(jnp.sin, jnp.asarray(X))
    chosen = [Signature.of(program.input_types[0], default_sharding().commit())]
    second = compile_program(program, chosen)
    assert second.executable is first.executable
    assert first([jnp.asarray(X)])[0].committed is False
    placed = ph.device_put(X, DEVICES[0])
    assert second([placed])[0].committed is True


def test_other_options_and_other_layouts_are_other_programs():
    program, first = compiled(jnp.sin, jnp.asarray(X))
    sigs = operand_signatures([jnp.asarray(X)])
    with config.override(disable_most_optimizations=not config.disable_most_optimizations):
        assert compile_program(program, sigs).executable is not first.executable
    whole = RequestedShardings((Sharding(DEVICES, (len(DEVICES),)),), (None,))
    there = compile_program(program, sigs, places=whole)
    assert (there.executable is first.executable) == (len(DEVICES) == 1)
    np.testing.assert_allclose(there([jnp.asarray(X)])[0], np.sin(X), rtol=1e-6)


def test_results_lie_as_they_are_wanted():
    program, _ = compiled(lambda x: (x + 1, x * 2), jnp.asarray(X))
    cut = Sharding(DEVICES, (len(DEVICES),))
    places = RequestedShardings((None,), (cut, cut))
    made = compile_program(program, operand_signatures([jnp.asarray(X)]), places=places)
    for y, wanted in zip(made([jnp.asarray(X)]), (X + 1, X * 2), strict=True):
        assert y.sharding == cut
        np.testing.assert_array_equal(y, wanted)


def test_results_without_elements_lie_as_they_are_wanted():
    n = len(DEVICES)
    mesh = ph.make_mesh((n,), ("x",))
    rows = ph.NamedSharding(mesh, ph.P("x"))
    x = ph.device_put(np.ones((n, 3), np.float32), rows)
    for none in (lambda x: x[:, :0], lambda x: jnp.zeros((n, 0), "float32")):
        by_jit = ph.jit(none, out_shardings=rows)
        for call in (by_jit, by_jit.lower(x).compile()):
            for _ in range(2):
                nothing = call(x)
                assert nothing.sharding == rows
                assert [s.data.shape for s in nothing.addressable_shards] == [(1, 0)] * n
                np.testing.assert_array_equal(jnp.concatenate([nothing, x], 1), x)


@pytest.mark.parametrize(
    ("f", "reused"),
    [
        (lambda a, b: a + b, (0,)),  # one result, into the first of its size
        (lambda a, b: (a + b, a * b), (0, 1)),
        (lambda a, b: (a + b).sum(), ()),
        (lambda a, b: (a + b).astype(np.int32), (0,)),  # memory has no dtype
        (lambda a, b: jnp.concatenate([a, b]), ()),
    ],
)
def test_memory_is_taken_where_a_result_fits(f, reused):
    a, b = jnp.asarray(X), jnp.asarray(X)
    _, made = compiled(f, a, b, donate=(0, 1))
    assert made.donate == reused
    made([a, b])
    assert (a.is_deleted(), b.is_deleted()) == (0 in reused, 1 in reused)


def test_nothing_is_donated_where_values_are_looked_at_again():
    with ph.debug_nans(True):
        _, made = compiled(lambda a: a + 1, jnp.asarray(X), donate=(0,))
        assert made.donate == ()


def test_what_was_donated_is_no_argument():
    x = jnp.asarray(X)
    program, made = compiled(lambda a: a + 1, x, donate=(0,))
    made([x])
    with pytest.raises(DeletedArray, match=r"An argument, f32\[8\].*donated"):
        compile_program(program, [x._sig])


@pytest.mark.parametrize(("option", "value"), [("debug_nans", np.nan), ("debug_infs", np.inf)])
def test_results_are_looked_at_where_that_is_asked(option, value):
    x = jnp.asarray(X)
    with getattr(ph, option)(True):
        _, made = compiled(lambda a: (a, a.astype(np.int32), a * value), x)
        with pytest.raises(NonFiniteError, match=option):
            made([x])
    _, made = compiled(lambda a: a * value, x)
    made([x])


def test_constants_are_put_on_devices_once():
    large = np.arange(5000, dtype=np.float32)
    x = jnp.asarray(large)
    program, made = compiled(lambda a: a + large, x)
    assert len(made.fixed) == 1
    np.testing.assert_array_equal(made([x])[0], 2 * large)
    assert compile_program(program, operand_signatures([x])).fixed[0] is made.fixed[0]


def test_the_module_that_is_lowered_is_the_one_that_is_compiled():
    x = jnp.asarray(X)
    program = ph.make_program(lambda a: jnp.sin(a) * 2)(x)
    places = RequestedShardings.anywhere(program)
    planned = plan_program(program, [x._sig], (), places, "operand {}".format)
    assert planned.compile().executable.as_text() == planned.module.as_text()


def test_options_of_the_compiler_as_a_key():
    assert option_key({"a": 1}, "f") != option_key({"a": True}, "f")
    assert option_key({"a": 1, "b": 2}, "f") == option_key({"b": 2, "a": 1}, "f")
    with pytest.raises(ValueError, match=r"f: compiler options are .* got \{'a': \[1\]\}"):
        option_key({"a": [1]}, "f")
