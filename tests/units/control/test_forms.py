"""The forms in which loops and branches are called, and the types that they carry and give."""

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax


def kind(x):
    return f"{x.dtype}{'~' if x.weak_type else ''}"


# ---- cond ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [1, 0, 0.5, -0.0, np.nan, np.int8(3), np.uint8(0), True, False])
def test_a_number_is_true_if_it_is_not_zero(pred):
    def choose(p):
        return lax.cond(p, lambda x: x, lambda x: -x, 3.0)

    expected = 3.0 if pred else -3.0
    assert float(choose(pred)) == float(choose(jnp.asarray(pred))) == expected
    assert float(phalanx.jit(choose)(pred)) == expected
    assert phalanx.vmap(choose)(jnp.asarray([pred, pred])).tolist() == [expected] * 2
    with phalanx.disable_jit():
        assert float(choose(pred)) == expected


def test_the_operand_by_name():
    assert float(lax.cond(True, jnp.sin, jnp.cos, operand=0.0)) == 0.0
    assert lax.cond(False, lambda _: 1.0, lambda x: 2.0 if x is None else 3.0, operand=None) == 2.0
    assert float(lax.switch(1, [jnp.sin, jnp.cos], operand=0.0)) == 1.0


def test_each_function_with_an_operand_of_its_own():
    def f(p, a, b):
        return lax.cond(p, a, lambda x: x * 2, {"b": b}, lambda x: -x["b"])

    assert (float(f(True, 1.0, 5.0)), float(f(False, 1.0, 5.0))) == (2.0, -5.0)
    assert phalanx.grad(f, (1, 2))(False, 1.0, 5.0) == (0.0, -1.0)


def test_an_error_names_the_function_with_an_operand_of_its_own():
    def twice(x):
        return x, x

    with pytest.raises(TypeError, match=r"false_fun \(sin, .*true_fun \(twice, test_forms.py:"):
        lax.cond(True, 1.0, twice, 2.0, jnp.sin)


def test_functions_may_be_operands_of_python_functions():
    """An operand that can be called is no sign of the older form if the first one can be, too."""
    with phalanx.disable_jit():
        assert lax.cond(True, lambda f, g: f(1.0), lambda f, g: g(1.0), np.negative, abs) == -1.0


# ---- loops --------------------------------------------------------------------------------------


@pytest.mark.parametrize("x64", [False, True])
def test_the_index_is_weakly_typed(x64):
    kinds = []

    def body(i, c):
        kinds.append(kind(i))
        return c + i

    with phalanx.config.override(enable_x64=x64):
        plain = "int64~" if x64 else "int32~"
        assert kind(lax.fori_loop(0, 3, body, jnp.int8(0))) == "int8" and kinds[-1] == plain
        assert kind(lax.fori_loop(np.int32(1), 3, body, jnp.float16(0))) == "float16"
        assert kinds[-1] == plain
        n = jnp.asarray(3, plain[:-1])
        assert kind(lax.fori_loop(0, n, body, jnp.int8(0))) == "int8" and kinds[-1] == plain
        assert kind(lax.fori_loop(n - 1, 3, body, 0)) == plain[:-1] == kinds[-1]
        assert kind(lax.fori_loop(0, jnp.int8(3), body, jnp.int8(0))) == "int8" == kinds[-1]


def test_a_loop_that_counts_in_floats():
    def total(a, b):
        return lax.fori_loop(a, b, lambda i, c: c + i, 0.0)

    assert float(total(0.5, 2.6)) == 4.5 == float(phalanx.jit(total)(0.5, 2.6))
    assert float(phalanx.jvp(total, (0.5, 2.6), (1.0, 0.0))[1]) == 3.0
    assert float(total(0, 2.5)) == 3.0
    by_start = phalanx.grad(lambda x: lax.fori_loop(x, x + 2.0, lambda i, c: c, x * 3))
    assert float(by_start(1.0)) == 3.0


@pytest.mark.parametrize("unroll", [0, 1, 2, 7, True, False])
def test_unroll(unroll):
    carry, rows = lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(4.0), unroll=unroll)
    assert float(carry) == 6.0 and rows.tolist() == [0.0, 0.0, 1.0, 3.0]
    assert float(lax.fori_loop(0, 4, lambda i, c: c + i, 0.0, unroll=unroll)) == 6.0


F32 = np.float32(1)


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [
        (0.0, lambda c: c + 1, "float32~"),
        (0, lambda c: c + 1, "int32~"),
        (0, lambda c: 1, "int32~"),
        (0.0, lambda c: c * F32, "float32"),
        (0, lambda c: c * 1.5, "float32"),  # converted where it starts, it is typed
        (0, lambda c: jnp.sin(c), "float32"),
        (0, lambda c: c + jnp.int8(1), "int8"),
        (F32, lambda c: c + 1, "float32"),
        (F32, lambda c: 1.0, "float32"),
        (0, lambda c: c, "int32~"),
    ],
)
def test_the_weakness_of_what_is_carried(start, step, expected):
    assert kind(lax.scan(lambda c, _: (step(c), None), start, length=2)[0]) == expected
    assert kind(lax.fori_loop(0, 2, lambda i, c: step(c), start)) == expected
    assert kind(lax.fori_loop(0, jnp.int32(2), lambda i, c: step(c), start)) == expected


def test_python_numbers_from_branches_are_weak():
    assert kind(lax.cond(True, lambda: 1, lambda: 2)) == "int32~"
    assert kind(lax.cond(True, lambda: 1.0, lambda: F32)) == "float32"
    assert kind(lax.cond(True, lambda: True, lambda: False)) == "bool"


@pytest.mark.parametrize(
    "transform", [lambda f: f, phalanx.jit, phalanx.grad], ids=["plain", "jit", "grad"]
)
def test_the_first_branch_says_how_weak_a_result_is(transform):
    """As in jax, where the first branch of ``cond`` is the one for False."""

    def chosen(lax, weak, strong):
        forms = [
            lax.cond(strong > 0, lambda: weak, lambda: strong),
            lax.cond(strong > 0, lambda: strong, lambda: weak),
            lax.cond(True, lambda x: x, lambda x: 0.0, strong),
            *lax.cond(strong > 0, lambda: (strong, weak), lambda: (weak, strong)),
            lax.switch(1, [lambda: strong, lambda: weak, lambda: strong]),
            lax.switch(1, [lambda: weak, lambda: strong, lambda: strong]),
        ]
        kinds.append([kind(x) for x in forms])
        return weak

    kinds = []
    transform(lambda weak, strong: chosen(lax, weak, strong))(1.0, F32)
    jax.jit(lambda weak, strong: chosen(jax.lax, weak, strong))(1.0, F32)
    ours, theirs = kinds
    assert ours == theirs


@pytest.mark.parametrize("start", [1.0, F32])
def test_a_state_that_starts_as_a_number_of_python_is_traced_once(start):
    @phalanx.jit
    def step(state):
        traced.append(state)
        return lax.cond(state < 3, lambda: state + F32, lambda: state)

    traced = []
    state = start
    for _ in range(4):
        state = step(state)
    assert len(traced) == 1 and float(state) >= 3


@pytest.mark.spmd
def test_what_all_branches_pass_on_is_the_same_in_all_lanes():
    def lane(x, y):
        return lax.cond(x < 1, lambda x, y: (x * 2, y), lambda x, y: (x * 3, y), x, y)

    for transform in (phalanx.vmap, phalanx.pmap):
        out, same = transform(lane, in_axes=(0, None), out_axes=(0, None))(
            np.arange(3), np.float32(4)
        )
        assert out.tolist() == [0, 3, 6] and float(same) == 4.0


@pytest.mark.spmd
def test_what_a_loop_passes_on_is_the_same_in_all_lanes():
    def lane(n, w):
        total = lax.fori_loop(0, n, lambda i, s: (s[0] + w, s[1]), (w, w))
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, *s[1:]), (0, *total))

    for transform in (phalanx.vmap, phalanx.pmap):
        mapped = transform(lane, in_axes=(0, None), out_axes=(0, 0, None))
        count, total, same = mapped(np.arange(3), np.ones(2, np.float32))
        assert count.tolist() == [0, 1, 2] and total[:, 0].tolist() == [1, 2, 3]
        assert same.tolist() == [1.0, 1.0]


def test_what_a_loop_passes_on_is_not_stored_for_its_derivative():
    def f(w, x):
        return lax.scan(lambda c, _: ((c[0], jnp.sin(c[0] * c[1])), None), (w, x), length=5)[0][1]

    w = np.ones(3, np.float32)
    lowered = str(phalanx.make_program(phalanx.grad(lambda w, x: f(w, x).sum(), 1))(w, w))
    assert "f32[5,3]" in lowered  # what differs from run to run
    assert lowered.count("= scan") == 2 and lowered.count(": f32[5,3]") == 1


@pytest.mark.parametrize("carry", [np.float32(2), np.ones(3, np.float32), 2.0])
def test_a_loop_that_changes_nothing(carry):
    for out in (
        lax.scan(lambda c, x: (c, None), carry, None, length=3)[0],
        lax.fori_loop(0, 3, lambda i, c: c, carry),
        lax.fori_loop(0, jnp.int32(3), lambda i, c: c, carry),
        lax.while_loop(lambda c: False, lambda c: c, carry),
        lax.cond(True, lambda c: c, lambda c: c, carry),
    ):
        assert isinstance(out, phalanx.Array)
        np.testing.assert_array_equal(out, carry)


def test_python_writes_into_no_array_of_the_caller():
    """Under disable_jit the functions see values, and NumPy's would change in place."""
    given = np.zeros(3, np.float32)

    def add_one(x):
        x += 1
        return x

    with phalanx.disable_jit():
        results = [
            lax.while_loop(lambda c: c.sum() < 9, add_one, given),
            lax.fori_loop(0, 3, lambda i, c: add_one(c), given),
            lax.scan(lambda c, x: (add_one(c), None), given, None, length=3)[0],
            lax.cond(True, add_one, lambda x: x, given) + 2,
            lax.switch(0, [add_one], given) + 2,
        ]
    assert not given.any()
    assert all(r.tolist() == [3.0] * 3 for r in results)
