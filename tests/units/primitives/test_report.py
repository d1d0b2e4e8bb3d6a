"""What a report says, for as long as its fault is remembered."""

import phalanx as px
import phalanx.numpy as jnp
from phalanx import tree
from phalanx.experimental import checkify
from phalanx.primitives import report
from phalanx.primitives.report import Fault, Faults


def fault(text):
    return Fault("user", text, (), tree.structure(((), {})), "here")


def test_faults_keep_their_numbers_while_they_are_used():
    faults = Faults(3)
    a, b, c, d = map(fault, "abcd")
    assert [faults.number(x) for x in (a, b, c, a)] == [1, 2, 3, 1]
    assert faults.number(d) == 4  # in place of b, which was used before the others
    assert [faults.fault(n) for n in (1, 2, 3, 4)] == [a, None, c, d]
    assert faults.number(b) == 5
    assert faults.fault(1) is None  # which was looked at before c and d
    assert len(faults) == 3


def test_a_text_that_is_forgotten(monkeypatch):
    monkeypatch.setattr(report, "_known", Faults(2))

    def failed(text):
        def f(x):
            checkify.check(x > 0, text)

        error, _ = px.jit(checkify.checkify(f))(jnp.float32(-1))
        assert error.get().startswith(text)
        return error

    early, _, _ = map(failed, ("early", "middle", "late"))
    assert early.get() == "a check failed; its text is forgotten, since 2 others were met after it"


def test_values_within_trees_are_shown_as_arrays():
    def f(x):
        checkify.check(
            x[0] > 0, "all of {all}, or {one:.1f}, not {whole}", all={"x": x}, one=x[1], whole=x
        )

    error, _ = px.jit(checkify.checkify(f))(jnp.array([-1.0, 2.0]))
    assert error.get().startswith(
        "all of {'x': Array([-1.,  2.], dtype=float32)}, or 2.0, not [-1.  2.] (`check` failed)"
    )
