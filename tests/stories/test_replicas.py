"""Values that must be the same in all processes, and that are not in some."""

import re

import pytest

from tests.stories.test_processes import launch  # noqa: F401

BEGIN = """
from phalanx import random
from phalanx.errors import PeerLost, ProgramMismatch
import warnings
mesh = phalanx.make_mesh((phalanx.device_count(),), ("i",))
whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("i"))
rows = np.arange(6, dtype=np.float32).reshape(2, 3) + 6 * me
last = me == count - 1
def loss(w, x):
    return lax.pmean((x * w).sum(), "i")
def mapped(f, **options):
    return phalanx.pmap(f, "i", in_axes=(None, 0), out_axes=None, **options)
def attempt(call):
    try:
        tell(np.asarray(call().addressable_data(0)).tolist())
    except ProgramMismatch as e:
        tell(e)
"""

# Each with what is said of it, where ``v`` is 1 in the last process and 0 in all others.
DIFFERING = {
    "mapped(loss)(np.float32([1, 2, v]), rows)": "w[2] {0.0|1.0}",
    "mapped(lambda w, x: loss(w, x) - 1)(jnp.ones(3).at[1].set(v), rows)": "w[1] {0.0|1.0}",
    "mapped(lambda w, x: loss(w['layer'], x))"
    "({'bias': 0, 'layer': random.normal(random.key(v), (3,))}, rows)": "w['layer'][0] {|}",
    "mapped(lambda rate, x: loss(rate, x))(0.5 + v, rows)": "rate {0.5|1.5}",
    "mapped(lambda k, x: loss(random.normal(k), x))(random.key(v), rows)": "k {0|1}",
    "mapped(lambda w, x: w + lax.psum(x.sum() * 0, 'i'), donate_argnums=0)"
    "(jnp.zeros((2, 2)).at[1, 0].set(v), rows)": "w[1, 0] {0.0|1.0}",
    "mapped(lambda w, x: loss(w.astype('float32'), x))(jnp.asarray([0, v, 0], 'int4'), rows)": (
        "w[1] {0|1}"
    ),
    "mapped(lambda w, x: loss(w.astype('float32'), x))(jnp.asarray([0, 0, v], 'float8_e5m2'), "
    "rows)": "w[2] {0|1}",
    "phalanx.grad(mapped(lambda w, x: loss(w, x) ** 2))(np.float32([0, 0, v]), rows)": (
        "operand 0[2] {0.0|1.0}"
    ),
    "phalanx.pmap(lambda x: lax.psum(x, 'i'), 'i', mesh=mesh)(np.ones((count, 2)) + v)": (
        "x[0, 0] {1.0|2.0}"
    ),
    "phalanx.jit(lambda a: a * 2)(phalanx.device_put(np.float32([5, v]), whole))": "a[1] {0.0|1.0}",
    "phalanx.jit(lambda a: a * 3)(phalanx.device_put(np.zeros(count) + v, cut))": "a {0.0|1.0}",
    "phalanx.jit(lambda a, b: a + b, in_shardings=whole)(np.zeros((0, 3)), v)": "b {0|1}",
    "phalanx.jit(lambda a: a * 4, in_shardings=whole).lower(0.0).compile()(0.0 + v)": (
        "a {0.0|1.0}"
    ),
    "phalanx.shard_map(lambda w, x: w * lax.psum(x.sum(), 'i'), mesh=mesh, "
    "in_specs=(P(), P('i')), out_specs=P())(np.float32([1, v]), np.zeros(count))": "w[1] {0.0|1.0}",
}


@pytest.mark.parametrize("count", [2, 3])
def test_what_must_be_the_same_is_compared_before_the_first_launch(launch, count):  # noqa: F811
    """All processes tell the argument, its element, who differs, and two values; then they go on
    with equal ones."""
    cases = "".join(
        f"attempt(lambda v=int(last): {code})\nattempt(lambda v=0: ({code}) * 0 == 0)\n"
        for code in DIFFERING
    )
    ended = launch(count, BEGIN + cases)
    assert ended.status == 0, ended.output
    assert len(ended.told) == count
    others = "process 0" if count == 2 else "processes 0, 1"
    for told in ended.told.values():
        for code, differs, alike in zip(DIFFERING, told[::2], told[1::2], strict=True):
            place, values = DIFFERING[code].rsplit(" {", 1)
            here, there = values.rstrip("}").split("|")
            words = re.escape(f"{place} must be the same in all processes, and is ")
            number = r"-?[\d.]+"
            found = f"{re.escape(here) or number} in {others} and {re.escape(there) or number}"
            assert re.search(words + found + f" in process {count - 1}, at ", differs), code
            assert re.fullmatch(r"[][, True]+", alike), code


def test_not_all_processes_that_differ_and_not_all_values_are_told(launch):  # noqa: F811
    ended = launch(
        3,
        BEGIN
        + """
        attempt(lambda: mapped(loss)(np.float32([1, 2, me // 2]), rows))
        f = mapped(lambda w, x: loss(w["a"], x) + w["b"].sum() + w["c"])
        attempt(lambda: f({"a": np.ones(3), "b": np.full(2, me), "c": me}, rows))
        payload = np.uint32([0x7fc00000 + last]).view(np.float32)
        attempt(lambda: mapped(lambda w, x: loss(w, x) * 2)(payload, rows))
        attempt(lambda: mapped(lambda w, x: loss(w, x) * 2)(np.float32([np.nan]), rows))
        """.replace("\n        ", "\n"),
    )
    assert ended.status == 0, ended.output
    for told in ended.told.values():
        one, several, bits, nan = told
        assert "w[2] must be the same in all processes, and is 0.0 in processes 0, 1 and 1.0" in one
        assert (
            "w['b'][0] must be the same in all processes, and is 0 in process 0, 1 in p" in several
        )
        assert "2 in process 2 (1 more argument differs), at" in several
        assert "multihost_utils.broadcast_one_to_all(w)" in several
        assert re.search(r"nan \(0x0000c07f\) in processes 0, 1 and nan \(0x0100c07f\)", bits)
        assert nan == "nan"


def test_parts_that_several_processes_hold_are_compared(launch):  # noqa: F811
    """Each half of an array lies in two of four processes."""
    ended = launch(
        4,
        BEGIN
        + """
        two = phalanx.make_mesh((2, 2), ("a", "b"))
        halves = NamedSharding(two, P("b"))
        def made(v):
            x = np.arange(4.0) + np.float32([0, 0, 0, v])
            return phalanx.make_array_from_callback((4,), halves, lambda index: x[index])
        total = phalanx.jit(lambda a: a.sum())
        attempt(lambda: total(made(last)))
        attempt(lambda: total(made(5)))
        attempt(lambda: total(made(last)))  # which nobody looks at any more
        """.replace("\n        ", "\n"),
    )
    assert ended.status == 0, ended.output
    for told in ended.told.values():
        assert "a[3] must be the same in all processes, and is 3.0 in process 1 and 4.0" in told[0]
        assert told[1] == "11.0"
        assert len(told) == 3


def test_debug_replicated_compares_again(launch):  # noqa: F811
    ended = launch(
        2,
        BEGIN
        + """
        for often in (0, 3):
            with phalanx.config.override(debug_replicated=often):
                step = mapped(lambda w, x: loss(w, x) + often)
                for i in range(7):
                    try:
                        step(np.ones(3) + (last and i >= 1), rows)
                    except ProgramMismatch as e:
                        tell(often, i, e)
                        break
        computed = phalanx.jit(lambda a: a + 1)(phalanx.device_put(np.zeros(2), whole))
        with phalanx.config.override(debug_replicated=1):
            attempt(lambda: phalanx.jit(lambda a: a * 2)(computed))
        """.replace("\n        ", "\n"),
    )
    assert ended.status == 0, ended.output
    for differs, computed in ended.told.values():
        assert differs.startswith(
            "3 3 launch 4 of pmap_<lambda> of 2, 2 rows: w[0] must be the same"
        )
        assert computed == "[2.0, 2.0]"


def test_later_calls_say_nothing(launch):  # noqa: F811
    ended = launch(
        2,
        BEGIN
        + """
        member = phalanx.processes.joined.joined_member()
        gathers = lambda: sum(group.gathers for group in member.groups.values())
        step, scale = mapped(loss), phalanx.jit(lambda a, rate: a * rate)
        a = phalanx.device_put(np.ones(3), whole)
        for _ in range(3):
            before = gathers()
            phalanx.block_until_ready([step(np.ones(3), rows), scale(a, 0.5)])
            tell(gathers() - before)
        """.replace("\n        ", "\n"),
    )
    assert ended.status == 0, ended.output
    for first, *later in ended.told.values():
        assert int(first) > 0
        assert later == ["0", "0"]


def test_rows_that_all_processes_pass_are_warned_of_once(launch):  # noqa: F811
    ended = launch(
        2,
        BEGIN
        + """
        every = np.arange(6.0).reshape(2, 3)
        def said(call):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                phalanx.block_until_ready([call(), call()])
            tell(*[w.message for w in caught])
        f = mapped(lambda w, x: loss(w, x) + 1)
        said(lambda: f(1.0, every))
        said(lambda: mapped(lambda w, x: loss(w, x) + 2)(1.0, rows))
        said(lambda: phalanx.pmap(lambda x, y: lax.psum(x + y, "i"), "i")(every, rows))
        said(lambda: phalanx.pmap(lambda x: lax.psum(x, "i"), "i")(np.ones(2)))
        said(lambda: phalanx.grad(lambda w: mapped(lambda w, x: loss(w, x) + 3)(w, every))(1.0))
        said(lambda: phalanx.experimental.multihost_utils.process_allgather(every))
        """.replace("\n        ", "\n"),
    )
    assert ended.status == 0, ended.output
    remedy = "Pass to each process its own: x[phalanx.process_rows(len(x))]"
    for whole, own, one_of_two, constant, derivative, gathered in ended.told.values():
        assert whole.count("all 2 processes pass the same 2 rows as x, so each row counts 2") == 1
        assert remedy in whole
        assert own == one_of_two == constant == gathered == ""
        assert derivative.count("all 2 processes pass the same 2 rows as operand 1") == 1


@pytest.mark.parametrize("how", ["", "np.asarray(w)", "time.sleep(0.3 * (1 - last))"])
def test_who_ran_out_of_batches_is_told_so(launch, how):  # noqa: F811
    """Also where the others have launched more before they hear of it."""
    ended = launch(
        3,
        BEGIN
        + f"""
step = mapped(lambda w, x: w - 0.1 * loss(w, x))
w = np.ones(3, np.float32)
try:
    for i in range(3 if last else 5):
        w = step(w, rows)
        {how or "pass"}
    np.asarray(w)
except PeerLost as e:
    tell(e.process, e)
""",
    )
    assert ended.status == 0, ended.output
    assert 2 not in ended.told
    for me in range(2):
        (why,) = ended.told[me]
        assert why.startswith("2 "), ended.output
        assert "left after 3 launches, before launch 4 (pmap_<lambda> of 2, 2, 2" in why
        assert "Give all processes as many batches" in why
        assert "is lost" not in why
