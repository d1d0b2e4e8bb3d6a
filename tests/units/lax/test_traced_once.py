"""How often loops and branches run the functions that they are given."""

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax

XS = np.arange(1, 5, dtype=np.float32)
START = np.float32(1)
calls = [0]


class Counted:
    """A function; how often Python runs any of them is counted in ``calls``."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        calls[0] += 1
        return self.function(*args)


def calls_of(run):
    """How often counted functions run meanwhile."""
    before = calls[0]
    run()
    return calls[0] - before


# ---- once for each place where they stand ----


def nested_conds(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.cond(x.sum() > 0, lambda x: nested_conds(leaf, x, depth - 1), lambda x: x, x)


def nested_switches(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.switch(0, [lambda x: nested_switches(leaf, x, depth - 1)], x)


def nested_scans(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.scan(lambda c, _: (nested_scans(leaf, c, depth - 1), None), x, None, 2)[0]


def nested_fori_loops(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.fori_loop(0, 2, lambda i, c: nested_fori_loops(leaf, c, depth - 1), x)


def nested_while_loops(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.while_loop(
        lambda c: c.sum() > 100, lambda c: nested_while_loops(leaf, c, depth - 1), x
    )


def nested_conditions_of_while_loops(leaf, x, depth):
    if not depth:
        return leaf(x)
    holds = lambda c: nested_conditions_of_while_loops(leaf, c, depth - 1).sum() > 9  # noqa: E731
    return lax.while_loop(holds, lambda c: c - 1, x)


def nested_maps(leaf, x, depth):
    if not depth:
        return leaf(x)
    return lax.map(lambda row: nested_maps(leaf, row, depth - 1), x[None])[0]


NESTS = [
    nested_conds,
    nested_switches,
    nested_scans,
    nested_fori_loops,
    nested_while_loops,
    nested_conditions_of_while_loops,
    nested_maps,
]


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("depth", [1, 10])
def test_the_innermost_of_nested_functions_runs_once(nest, depth):
    leaf = Counted(lambda x: x * 0.5)
    staged = px.make_program(lambda x: nest(leaf, x, depth))
    assert calls_of(lambda: staged(XS)) == 1


@pytest.mark.parametrize("weak", [False, True])
def test_branches_that_differ_in_weakness_run_once_and_give_one_type(weak):
    first = Counted(lambda x, y: x)
    second = Counted(lambda x, y: x if weak else y)
    choose = lambda p, x, y: lax.cond(p, first, second, x, y)  # noqa: E731
    staged = px.make_program(choose)
    assert calls_of(lambda: staged(True, 1.0, START)) == 2
    for p in True, False:
        out = choose(p, 2.0, 3 * START)
        assert (float(out), out.weak_type) == (2.0 if p or weak else 3.0, weak)


HALF = jnp.ones((), jnp.bfloat16)
WEAK_CARRIES = {  # the body, the start, how often it runs, the types of what comes out
    "sum": (lambda c, x: (c + x, None), 0.0, 1, ["f32"]),
    "sum of rows": (lambda c, x: (c + x, c), 0.0, 1, ["f32", "f32~"]),
    "two": (lambda c, x: ((c[0] + x, c[0]), None), (0.0, 0.0), 1, ["f32", "f32~"]),
    "weak": (lambda c, x: (c * 0.5, x), 1.0, 1, ["f32~", "f32"]),
    "beside another dtype": (lambda c, x: (c * HALF + x, c * HALF), 0.0, 1, ["f32", "bf16"]),
    "count": (lambda c, x: (c + jnp.int32(1), jnp.sin(c) * HALF), 0, 1, ["i32", "bf16"]),
    "to a float": (lambda c, x: (c + x, c), 0, 2, ["f32", "f32"]),
    "to a smaller float": (lambda c, x: (c + HALF, c), 0.0, 2, ["bf16", "bf16"]),
    "one to a float": (
        lambda c, x: ((c[0] + x, c[1] + 1), x), (0, 0), 2, ["f32", "i32~", "f32"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WEAK_CARRIES)
def test_a_carry_that_starts_weak_takes_the_type_that_it_turns_into(case):
    function, init, times, types = WEAK_CARRIES[case]
    out = []
    assert calls_of(lambda: out.append(lax.scan(Counted(function), init, XS))) == times
    leaves = px.tree.leaves(out[0])
    assert [repr(x.aval).split("[")[0] + "~" * x.weak_type for x in leaves] == types
    carry, rows = init, []
    for x in XS:
        carry, row = function(carry, x)
        rows.append(row)
    expected = px.tree.leaves((carry, px.tree.map(lambda *ys: np.stack(ys), *rows)))
    for found, wanted in zip(leaves, expected, strict=True):
        np.testing.assert_allclose(np.float32(found), np.float32(wanted), rtol=1e-2)


def test_the_condition_of_a_loop_sees_a_weak_carry_as_its_body_does():
    seen = []
    test = lambda c: (seen.append(c.weak_type), c < 5)[1]  # noqa: E731
    step = lambda c: (seen.append(c.weak_type), c + START)[1]  # noqa: E731
    out = lax.while_loop(test, step, 0.0)
    assert (float(out), out.weak_type, seen) == (5, False, [True, True])


def test_weak_carries_of_nested_loops_do_not_multiply():
    def nested(x, depth):
        if not depth:
            return leaf(x)
        return lax.fori_loop(0, 2, lambda i, c: c + nested(x, depth - 1), 0.0)

    leaf = Counted(lambda x: x * 0.5)
    staged = px.make_program(lambda x: nested(x, 10))
    assert calls_of(lambda: staged(START)) == 1
    assert float(px.jit(lambda x: nested(x, 3))(START)) == 4


def test_a_carry_that_is_strong_stays_strong():
    last, _ = lax.scan(lambda c, x: (1.0, None), START, XS)
    assert (last.dtype, last.weak_type) == (np.float32, False)


# ---- once for the same function ----

CASES = {
    "scan": (lambda c, x: (c + x, c), lambda f: lax.scan(f, START, XS), 1),
    "scan of a weak carry": (lambda c, x: (c + x, c), lambda f: lax.scan(f, 0, XS), 2),
    "scan of nothing": (lambda c, _: (2 * c, None), lambda f: lax.scan(f, START, None, 3), 1),
    "fori_loop": (lambda i, x: x + i, lambda f: lax.fori_loop(1, 3, f, START), 1),
    "fori_loop to a value": (
        lambda i, x: x + i,
        lambda f: lax.fori_loop(0, jnp.int32(3), f, START),
        1,
    ),
    "while_loop": (lambda x: x * 2, lambda f: lax.while_loop(below, f, START), 1),
    "condition of a while_loop": (lambda x: x < 50, lambda f: lax.while_loop(f, twice, START), 1),
    "cond": (lambda x: x * 2, lambda f: lax.cond(True, f, f, START), 1),
    "switch": (lambda x: x * 2, lambda f: lax.switch(1, [twice, f], START), 1),
    "map": (lambda x: x * 2, lambda f: lax.map(f, XS), 1),
    "map in batches": (lambda x: x * 2, lambda f: lax.map(f, XS, batch_size=3), 1),
}
below = lambda x: x < 50  # noqa: E731
twice = lambda x: x * 2  # noqa: E731


@pytest.mark.parametrize("case", CASES)
def test_a_function_that_comes_again_is_not_run_again(case):
    function, run, times = CASES[case]
    f = Counted(function)
    assert calls_of(lambda: run(f)) == times
    assert calls_of(lambda: run(f)) == 0
    px.tree.map(np.testing.assert_array_equal, run(f), run(Counted(function)))
    assert calls_of(lambda: px.jit(lambda: run(f))()) == 0
    assert calls_of(lambda: px.vmap(lambda _: run(f))(XS)) == 0
    assert calls_of(lambda: px.grad(lambda x: px.tree.leaves(run(f))[0].sum() * x)(1.0)) == 0


class Model:
    def __init__(self, w):
        self.w = w

    def step(self, c, x):
        calls[0] += 1
        return self.w * c + x, c


def closing_over_a_jitted_function():
    inner = px.jit(lambda x: 2 * x)

    def body(c, x):
        calls[0] += 1
        return inner(c) + inner(x), None

    return body


def writing_down_what_it_sees():
    seen = []

    def body(c, x):
        calls[0] += 1
        seen.append(c)
        return c + x, None

    return body


def calling_itself():
    def body(c, x, depth=1):
        calls[0] += 1
        return body(c, x, 0) if depth else (c + x, None)

    return body


@pytest.mark.parametrize(
    "body",
    [
        Model(jnp.float32(2)).step,
        px.tree_util.Partial(Model.step, Model(2.0)),
        closing_over_a_jitted_function(),
        writing_down_what_it_sees(),
        calling_itself(),
    ],
    ids=["method", "Partial", "jitted", "side effect", "recursive"],
)
def test_it_does_not_matter_what_kind_of_function_comes_again(body):
    assert calls_of(lambda: lax.scan(body, START, XS)) > 0
    assert calls_of(lambda: lax.scan(body, START, XS)) == 0


def test_the_methods_of_one_object_are_found_though_they_are_made_anew():
    model = Model(jnp.float32(2))
    assert calls_of(lambda: lax.scan(model.step, START, XS)) == 1
    assert calls_of(lambda: lax.scan(model.step, START, XS)) == 0
    assert calls_of(lambda: lax.scan(Model(3.0).step, START, XS)) == 1


def test_other_types_structures_and_options_are_traced_anew():
    f = Counted(lambda c, x: (jnp.asarray(c, jnp.float32) * 2, x))
    lax.scan(f, START, XS)
    assert calls_of(lambda: lax.scan(f, START, XS.astype(np.int32))) == 1
    assert calls_of(lambda: lax.scan(f, START, (XS, XS))) == 1
    assert calls_of(lambda: lax.scan(f, START, XS[:2])) == 0
    with px.config.override(default_matmul_precision="highest"):
        assert calls_of(lambda: lax.scan(f, START, XS)) == 1
    assert calls_of(lambda: px.vmap(lambda _: lax.scan(f, START, XS), axis_name="i")(XS)) == 1
    with px.named_scope("layer"):
        assert calls_of(lambda: lax.scan(f, START, XS)) == 1
    assert calls_of(lambda: lax.fori_loop(0, 3, lambda i, c: f(c, c)[0], START)) == 1


def test_written_out_or_not():
    for unroll in (True, False, 3):
        last, rows = lax.scan(lambda c, x: (c + x, c), START, XS, unroll=unroll)
        assert (float(last), rows.tolist()) == (11, [1, 2, 4, 7])
    assert float(lax.fori_loop(0, jnp.int32(3), lambda i, c: c + 1, START, unroll=False)) == 4


def test_a_function_is_traced_for_the_axes_in_scope():
    f = lambda c, x: (c * lax.psum(1, "i"), None)  # noqa: E731
    for size in 2, 3:
        out = px.vmap(lambda _: lax.scan(f, START, XS)[0], axis_name="i")(np.zeros(size))
        assert out.tolist() == [size**4] * size


# ---- a function that is several branches ----


def test_branches_that_are_one_function_are_traced_together():
    square, cube = Counted(lambda x: x**2), Counted(lambda x: x**3)
    assert calls_of(lambda: lax.cond(False, square, square, START)) == 1
    got = []
    assert calls_of(lambda: got.append(lax.switch(3, [square, cube] * 4, np.float32(3)))) == 2
    assert got[0] == 27
    weights = jnp.arange(3.0)  # what both capture is taken in once

    def f(x):
        return weights * x

    assert px.jit(lambda i, x: lax.switch(i, [f, f], x))(1, START).tolist() == [0, 1, 2]
