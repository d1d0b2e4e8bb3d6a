"""What is compiled while a program runs, the functions of installed libraries included."""

from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.insight.checks.running_programs import checking_compiled
from tests.units.insight.checks.finding import codes, line_of

X = np.ones((4, 3), np.float32)


def drawn_twice(key):
    return random.normal(key) + random.uniform(key)


def summed_twice(x):
    return lax.psum(lax.psum(x, "i"), "i")


def test_what_is_compiled_is_looked_at_once_for_each_line():
    with checking_compiled() as found:
        f = phalanx.jit(drawn_twice)
        for seed in range(3):
            f(random.key(seed))
        f(random.PRNGKey(0))
        phalanx.pmap(summed_twice, axis_name="i")(X[:2])
    assert [code for code, _, _ in found] == ["P106", "P103"]
    phalanx.jit(drawn_twice)(random.key(0))
    assert len(found) == 2


LIBRARY = """
from phalanx import jit, numpy as jnp, random

def compiled(fun):
    fast = jit(fun)
    return lambda *args: fast(*args)

def several(fast, key, x):
    for _ in range(3):
        x = fast(key, x)
    return x

def linear(key):
    first, second = random.split(key)
    return random.normal(first, (2, 2)), random.normal(second, (2,))

def twice(key):
    return random.normal(key, (2,)), random.uniform(key, (2,))

def dropout(key, x):
    return jnp.where(random.bernoulli(key, 0.5, x.shape), x, 0)

def widened(x, y):
    x = x.astype(y.dtype)
    return x * y
"""


@pytest.fixture
def library():
    names = {}
    exec(compile(LIBRARY, "/usr/lib/site-packages/library.py", "exec"), names)
    return SimpleNamespace(**names)


def test_what_a_library_does_is_told_at_the_line_of_the_user(library):
    def network(key, x):
        x = library.dropout(key, jnp.tanh(x))
        x = library.dropout(key, jnp.sin(x))  # the second layer
        return library.dropout(key, x)  # phalanx: ok P106

    (finding,) = phalanx.check(network)(random.key(0), jnp.ones(4))
    assert (finding.file, finding.line) == (__file__, line_of("the second layer", __file__))
    assert "in library.py:21 (dropout), which this line calls" in finding.message
    assert (
        f"after test_running_programs.py:{line_of('the second layer', __file__) - 1} (network)"
        in finding.message
    )

    def step(x, y):
        return library.widened(x, y).sum()  # in two of its lines, and so on purpose

    with phalanx.enable_x64(True):
        assert codes(step, np.ones(3, np.float32), np.ones(3)) == []


def test_a_key_for_two_calls_of_a_library_is_told(library):
    key = random.key(0)
    with checking_compiled() as found:
        library.twice(random.key(1))  # what it does with one key is its own affair
        library.linear(key)
    assert not found
    with checking_compiled() as found:
        library.linear(key)
        library.linear(key)
    (finding,) = found.values()
    assert finding.code == "P106" and finding.file == __file__


@pytest.mark.parametrize("wrap", [phalanx.jit, lambda f: f])
def test_what_was_compiled_before_anybody_looked_is_looked_at(wrap):
    key = random.key(0)
    first = wrap(lambda key: random.normal(key, (2,)))
    second = wrap(lambda key: random.bits(key, (3,)))

    def drawn():
        return first(key), second(key)  # a second time

    drawn()
    with checking_compiled() as found:
        drawn()
    (finding,) = found.values()
    assert (finding.code, finding.line) == ("P106", line_of("# a second time", __file__))


def test_a_key_for_each_call_of_what_a_library_compiles_is_told(library):
    def noisy(key, x):
        return x + random.normal(key, x.shape)

    key, fast, x = random.key(0), library.compiled(noisy), jnp.ones(3)
    with checking_compiled() as found:
        library.several(fast, key, x)  # in one call of it
        fast(random.key(1), x)
        fast(random.key(1), x)  # of the same, as to measure its time
    assert not found
    with checking_compiled() as found:
        for _ in range(3):
            x = fast(key, x)  # again and again
    (finding,) = found.values()
    assert (finding.code, finding.line) == ("P106", line_of("# again and again", __file__))
