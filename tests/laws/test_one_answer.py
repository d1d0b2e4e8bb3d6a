"""One value, one answer: a public function gives the same eagerly, under jit, vmap and pmap.

The same dtype, weakness, shape and elements, for ordinary numbers and where numbers end; NumPy in
float64 says what the elements are, differences in float64 what derivatives are. A function that
is added later is tried as well: its example call is found, or asked for, by ``test_calls``.
"""

import functools
import inspect

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.trace import ROOT
from tests.exemptions import exempt, exemptions
from tests.laws.arguments import calls
from tests.laws.slopes import Table

ROOMS = ("numpy", "numpy.linalg", "nn")
ELEMENTWISE = ("phalanx.lax.unary", "phalanx.lax.binary")  # where those of lax are written
LANES = 4  # the first of ordinary numbers, the others with these among them:
ENDS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e-30]


def on_arrays(call):
    """Whether a function makes arrays of arrays, and can be traced."""
    try:
        leaves = phalanx.tree.leaves(phalanx.eval_shape(call, *call.operands()))
    except (TypeError, IndexError):
        return False
    return bool(leaves) and all(isinstance(x, phalanx.ShapeDtypeStruct) for x in leaves)


def belongs(call):
    return call.room in ROOMS or written_in(call) in ELEMENTWISE


def written_in(call):
    return getattr(inspect.unwrap(call.function), "__globals__", {}).get("__name__")


def once(calls):
    """Functions that have several names under the first of them."""
    return list({id(c.function): c for c in reversed(calls)}.values())[::-1]


CALLS = once([c for c in calls() if belongs(c) and c.args is not None])
TRACED = [c for c in CALLS if on_arrays(c)]


def with_ends(x, source):
    """``x``, about half of its elements replaced by numbers that are special."""
    if x.dtype.kind not in "fc":
        return x
    return np.where(source.random(x.shape) < 0.5, source.choice(ENDS, x.shape), x).astype(x.dtype)


def operands(call, lane):
    source = np.random.default_rng(lane)
    ordinary = call.operands(seed=lane)
    sorted = [slot.ordered for slot in call.slots]
    if not lane or any(sorted) or exempt("special-numbers", call):
        return ordinary
    return [with_ends(x, source) for x in ordinary]


def every(given):
    return [call(*xs) for call, xs in zip(TRACED, given, strict=True)]


@pytest.fixture(scope="module")
def given():
    return [[operands(call, lane) for call in TRACED] for lane in range(LANES)]


@pytest.fixture(scope="module")
def eager(given):
    """What all functions give for each lane, and which run several programs for that."""
    several = set()
    launched = []

    def counted(prim, args, params, evaluate=ROOT.evaluate):
        launched.append(prim)
        return evaluate(prim, args, params)

    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ROOT, "evaluate", counted)
        for operands in given:
            results.append([])
            for call, xs in zip(TRACED, operands, strict=True):
                arrays = [jnp.asarray(x) for x in xs]
                launched.clear()
                results[-1].append(call(*arrays))
                if len(results) > 1 and len(launched) > 1:  # the first lane compiles
                    several.add(str(call))
    return results, several


def described(x):
    return (x.shape, x.dtype, x.weak_type) if hasattr(x, "weak_type") else type(x)


def elements(x):
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "V" or x.dtype.itemsize < 2 else x


def differences(results, expected):
    """Where two lists of results differ, in words."""
    out = []
    for call, found, wanted in zip(TRACED, results, expected, strict=True):
        pairs = zip(phalanx.tree.leaves(found), phalanx.tree.leaves(wanted), strict=True)
        for x, y in pairs:
            if hasattr(y, "weak_type") and described(x) != described(y):
                out.append(f"{call}: {described(x)} instead of {described(y)}")
            elif not np.allclose(elements(x), elements(y), 2e-5, 1e-6, equal_nan=True):
                out.append(f"{call}: {x} instead of {y}")
    return out


def lane(results, i):
    return phalanx.tree.map(lambda x: x[i], results)


def test_what_is_no_function_of_arrays():
    traced = {str(c) for c in TRACED}
    assert {str(c) for c in CALLS} - traced == {*exemptions("traced-arrays")}


def test_compiled_functions_give_what_eager_ones_give(given, eager):
    compiled = phalanx.jit(every)
    for i in range(LANES):
        assert not differences(compiled(given[i]), eager[0][i])


def test_lanes_give_what_eager_functions_give(given, eager):
    """Two lanes to a device: what ``vmap`` makes of the functions runs on each."""
    of_calls = zip(*given, strict=True)
    stacked = [[np.stack(xs) for xs in zip(*of_call, strict=True)] for of_call in of_calls]
    results = phalanx.pmap(every, devices=phalanx.devices()[: LANES // 2])(stacked)
    for i in range(LANES):
        assert not differences(lane(results, i), eager[0][i])
    types = phalanx.eval_shape(phalanx.vmap(every), stacked)
    assert list(map(described, phalanx.tree.leaves(types))) == [
        described(x) for x in phalanx.tree.leaves(results)
    ]


def test_numbers_beside_arrays_have_their_shape():
    """In functions of ``lax``, which neither promote nor align shapes."""
    rooms = ("phalanx.lax.binary", "phalanx.lax.special")
    chosen = [c for c in calls() if c.room == "lax" and written_in(c) in rooms]
    chosen = [c for c in chosen if len(c.slots) > 1 and not exempt("numbers-beside-arrays", c)]
    pairs = [(c, i) for c in chosen for i in range(len(c.slots))]
    assert len(pairs) > 40
    for call, i in pairs:
        xs = call.operands()
        wanted = described(phalanx.eval_shape(call, *xs))
        for number in (xs[i].dtype.type(1), xs[i].dtype.type(1).item()):
            beside = functools.partial(call, *xs[:i], number, *xs[i + 1 :])
            assert described(phalanx.eval_shape(beside)) == wanted, (str(call), number)


def test_activations_of_integers_are_those_of_the_same_numbers():
    chosen = [c for c in TRACED if c.room == "nn" and [s.dtype for s in c.slots] == [None]]
    x = np.int8([[-100, 1, 7], [0, -1, 100]])

    def every(x):
        return [c(x[:, :2] if c.name == "glu" else x) for c in chosen]

    results = phalanx.jit(lambda: [every(x), every(x.astype(np.float32))])()
    found = zip(chosen, *results, strict=True)
    wrong = [str(c) for c, y, z in found if not np.allclose(y, z, 1e-5, 1e-6, equal_nan=True)]
    assert len(chosen) > 20 and not wrong


# ---- one program ------------------------------------------------------------------------------


def test_eager_functions_run_one_program(eager):
    """Nobody pays for the number of operations that a function of numpy or nn is made of."""
    several = {name for name in eager[1] if not name.startswith("lax.")}
    missing = sorted(several - exemptions("one-program").keys())
    assert not missing, f"use one_program: {missing}"


def test_another_number_needs_no_other_program(monkeypatch):
    x = jnp.arange(4.0)
    assert jnp.quantile(x, 0.25) == 0.75
    assert jnp.floor_divide(x, 2).tolist() == [0, 0, 1, 1]
    monkeypatch.setattr("phalanx.control.one_program.stage_tree", None)  # nothing is traced now
    assert jnp.quantile(x, 0.5) == 1.5
    assert jnp.floor_divide(x, 3).tolist() == [0, 0, 0, 1]


# ---- oracles ----------------------------------------------------------------------------------


def in_numpy(call, xs):
    """The leaves of what NumPy gives in double precision; None where it has no such function."""
    function = getattr(np, call.name, None)
    if call.room != "numpy" or function is None or exempt("as-numpy", call):
        return None
    wide = {"f": np.float64, "c": np.complex128}
    args, kwargs = call.arguments([x.astype(wide.get(x.dtype.kind, x.dtype)) for x in xs])
    with np.errstate(all="ignore"):
        out = function(*args, **kwargs)
    return phalanx.tree.leaves(out)


@pytest.mark.filterwarnings("ignore")  # those of NumPy
@pytest.mark.parametrize("i", range(LANES))
def test_functions_of_numpy_give_what_numpy_gives(i, given, eager):
    wrong = []
    for call, xs, found in zip(TRACED, given[i], eager[0][i], strict=True):
        expected = in_numpy(call, xs)
        if expected is None:
            continue
        for x, y in zip(phalanx.tree.leaves(found), expected, strict=True):
            x, y = elements(x), np.asarray(y)
            narrow = y.astype({"f": np.float32, "c": np.complex64}.get(y.dtype.kind, y.dtype))
            if x.shape != y.shape or not np.allclose(x, narrow, 1e-4, 1e-5, equal_nan=True):
                wrong.append(f"{call} of {xs}: {x} instead of {y}")
    assert not wrong


# ---- derivatives ------------------------------------------------------------------------------

STEPS = 0.5 ** np.arange(8, 18)
ABOVE_ONE = {"acosh", "arccosh"}  # elsewhere they have no value


def floats(leaves):
    return [x for x in leaves if np.issubdtype(x.dtype, np.floating)]


def slopes(call, xs, directions):
    """The derivative of ``call`` in a direction: by rules, and differences at each of ``STEPS``.

    What it gives is added up with weights.
    """

    def f(*moved):
        values = iter(moved)
        out = call(*[next(values) if np.issubdtype(x.dtype, np.floating) else x for x in xs])
        leaves = floats(phalanx.tree.leaves(out))
        return sum(jnp.vdot(jnp.cos(jnp.arange(y.size)), y) for y in leaves)

    def moved(step):
        return f(*[x + step * v for x, v in zip(ours, directions, strict=True)])

    ours = floats(xs)
    ends = lax.map(moved, np.stack([STEPS, -STEPS], 1).ravel())
    return phalanx.jvp(f, ours, directions)[1], (ends[::2] - ends[1::2]) / (2 * STEPS)


def differentiable(call):
    xs = [x for slot, x in zip(call.slots, call.operands(), strict=True) if slot.dtype is None]
    out = phalanx.tree.leaves(phalanx.eval_shape(call, *call.operands()))
    return bool(floats(xs)) and bool(floats(out)) and not exempt("slopes-as-differences", call)


def test_derivatives_are_what_differences_say():
    chosen = [c for c in TRACED if differentiable(c)]
    source = np.random.default_rng(0)
    given = [
        [
            x.astype(np.float64) + (call.name in ABOVE_ONE) if x.dtype.kind == "f" else x
            for x in call.operands(np.float64, seed=2)
        ]
        for call in chosen
    ]
    directions = [[source.normal(size=x.shape) for x in floats(xs)] for xs in given]

    def every(given, directions):
        return [slopes(*of_call) for of_call in zip(chosen, given, directions, strict=True)]

    with phalanx.config.override(enable_x64=True):
        results = phalanx.jit(every)(given, directions)
    wrong = []
    for call, xs, (found, differences) in zip(chosen, given, results, strict=True):
        expected = Table(np.asarray(differences))
        if not (expected.is_within(1e-7) and np.allclose(found, expected.value, 1e-6, 1e-6)):
            wrong.append(f"{call} at {xs}: {found} instead of {expected}")
    assert not wrong, "\n".join(wrong)
