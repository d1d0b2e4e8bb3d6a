"""What a user sees of an exception that comes out of the library."""

import collections
import dataclasses
import functools
import operator
import pickle
import pkgutil
import threading
import traceback
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from docs.generator import public
from phalanx import lax
from phalanx.base.boundary import boundary
from phalanx.core import primitive
from phalanx.errors import ConfigError, EscapedTracer

pytestmark = pytest.mark.usefixtures("as_users_have_it")

ROWS = jnp.ones((4, 3))
F = phalanx.ShapeDtypeStruct((), "float32")


class Mine(Exception):
    """An exception of the user's."""


def fails(*_):
    raise Mine


def wrong(x):
    return x + jnp.ones(5)


def functions(error):
    """The names of the functions in the traceback, from the first of this file on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next(i for i, frame in enumerate(frames) if frame.filename == __file__)
    assert all(frame.filename == __file__ for frame in frames[first:]), frames
    return [frame.name for frame in frames[first:]]


def custom(f):
    made = phalanx.custom_vjp(lambda x: x)
    made.defvjp(lambda x: (x, None), f)
    return phalanx.grad(lambda x: made(x).sum())


# Functions that run a function of the user's, which is the last line of a traceback.
TRANSFORMATIONS = {
    "jit": phalanx.jit,
    "pmap": phalanx.pmap,
    "vmap": phalanx.vmap,
    "grad": phalanx.grad,
    "value_and_grad": phalanx.value_and_grad,
    "jacfwd": phalanx.jacfwd,
    "jacrev": phalanx.jacrev,
    "hessian": phalanx.hessian,
    "jvp": lambda f: lambda x: phalanx.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: phalanx.vjp(f, x),
    "linearize": lambda f: lambda x: phalanx.linearize(f, x),
    "checkpoint": phalanx.checkpoint,
    "custom_vjp": custom,
    "make_program": phalanx.make_program,
    "eval_shape": lambda f: lambda x: phalanx.eval_shape(f, x),
    "lower": lambda f: phalanx.jit(f).lower,
    "placement": lambda f: phalanx.pmap(f).placement,
    "nested": lambda f: phalanx.jit(phalanx.grad(phalanx.vmap(phalanx.jit(f)))),
    "scan": lambda f: lambda x: lax.scan(f, x, x),
    "while_loop": lambda f: lambda x: lax.while_loop(f, f, x),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 3, f, x),
    "cond": lambda f: lambda x: lax.cond(True, f, f, x),
    "map": lambda f: lambda x: lax.map(f, x),
    "associative_scan": lambda f: lambda x: lax.associative_scan(f, x),
    "vectorize": jnp.vectorize,
    "apply_along_axis": lambda f: lambda x: jnp.apply_along_axis(f, 0, x),
    "tree": lambda f: lambda x: phalanx.tree.map(f, x),
    "named_call": phalanx.named_call,
    "callback": lambda f: lambda x: phalanx.pure_callback(f, F, x),
    "callback in jit": lambda f: phalanx.jit(lambda x: phalanx.pure_callback(f, F, x)),
    "callback in pmap": lambda f: phalanx.pmap(lambda x: phalanx.pure_callback(f, F, x)),
    "debug": lambda f: lambda x: phalanx.debug.callback(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_the_last_line_is_that_of_the_users_function(name):
    with pytest.raises(Mine) as caught:
        TRANSFORMATIONS[name](fails)(ROWS)
    assert functions(caught.value)[-1] == "fails"


# Mistakes in one line of the user's, of which nothing of ours stands below.
MISTAKES = {
    "operator": lambda: ROWS + jnp.ones(5),
    "reflected": lambda: np.ones(5) + ROWS,
    "function": lambda: jnp.add(ROWS, jnp.ones(5)),
    "keyword": lambda: jnp.sum(ROWS, axis=7),
    "assignment": lambda: operator.setitem(ROWS, 0, 1.0),
    "hash": lambda: {ROWS},
    "bool": lambda: bool(ROWS),
    "int": lambda: int(ROWS),
    "float": lambda: float(ROWS),
    "complex": lambda: complex(ROWS),
    "position": lambda: [1, 2][ROWS],
    "len": lambda: len(ROWS[0, 0]),
    "iter": lambda: iter(ROWS[0, 0]),
    "method": lambda: ROWS.reshape(5, 7),
    "index": lambda: ROWS[0, 0, 0],
    "at": lambda: ROWS.at[0, 0, 0].set(1),
    "lax": lambda: lax.add(ROWS, jnp.ones(5)),
    "nn": lambda: phalanx.nn.relu("x"),
    "random": lambda: phalanx.random.normal("key", (3,)),
    "initializer": lambda: phalanx.nn.initializers.he_normal()(phalanx.random.key(0), (3,)),
    "linalg": lambda: jnp.linalg.norm(ROWS, axis=7),
    "devices": lambda: phalanx.devices("none"),
    "option": lambda: phalanx.jit(3),
    "config": lambda: phalanx.config.update("none", 3),
    "compiled": lambda: phalanx.jit(jnp.sin).lower(ROWS).compile()(ROWS[0]),
    "pullback": lambda: phalanx.vjp(jnp.sin, ROWS)[1]("x"),
    "linear": lambda: phalanx.linearize(jnp.sin, ROWS)[1]("x"),
    "tree": lambda: phalanx.tree.map(len, [1], [1, 2]),
    "debug": lambda: phalanx.debug.print("{} {}", 1),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_last_line_is_that_of_the_mistake(name):
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as caught:
        MISTAKES[name]()
    assert functions(caught.value)[-1] == "<lambda>"


@pytest.mark.parametrize(
    "call",
    [phalanx.pure_callback, phalanx.experimental.io_callback, phalanx.debug.callback],
    ids=lambda call: call.__name__,
)
def test_the_last_line_is_that_of_a_function_called_eagerly(call):
    with pytest.raises(Mine) as caught:
        call(fails, *([] if call is phalanx.debug.callback else [F]), jnp.float32(1))
    assert functions(caught.value)[1:] == ["fails"]


def test_all_functions_of_the_user_between_ours_are_there():
    def loss(x):
        return jnp.sum(phalanx.vmap(wrong)(x))

    def step(x):
        return phalanx.grad(loss)(x)

    with pytest.raises(ValueError, match="broadcast") as caught:
        phalanx.jit(step)(ROWS)
    assert functions(caught.value) == [
        "test_all_functions_of_the_user_between_ours_are_there", "step", "loss", "wrong",
    ]  # fmt: skip


def test_in_a_thread():
    raised = []

    def run():
        try:
            phalanx.jit(wrong)(ROWS)
        except ValueError as e:
            raised.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert functions(raised[0]) == ["run", "wrong"]


def test_exceptions_that_others_came_from():
    def translated(x):
        try:
            return phalanx.vmap(wrong)(x)
        except ValueError as e:
            raise Mine from e

    def then(x):
        try:
            fails()
        except Mine:
            return wrong(x)

    with pytest.raises(Mine) as caught:
        phalanx.jit(translated)(ROWS)
    assert functions(caught.value)[-1] == "translated"
    assert functions(caught.value.__cause__) == ["translated", "wrong"]
    with pytest.raises(ValueError, match="broadcast") as caught:
        phalanx.jit(then)(ROWS)
    assert functions(caught.value.__context__) == ["then", "fails"]


def test_libraries_that_the_user_called_are_the_users():
    @contextmanager
    def managed():
        yield fails()

    def f(x):
        with managed():
            return x

    with pytest.raises(Mine) as caught:
        phalanx.jit(f)(ROWS)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-4:] == ["f", "__enter__", "managed", "fails"]


def test_the_option_keeps_all_frames():
    phalanx.config.update("jax_traceback_filtering", "off")
    with pytest.raises(ValueError, match="broadcast") as caught:
        phalanx.jit(wrong)(ROWS)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert sum("phalanx" in file and file != __file__ for file in files) > 5
    with pytest.raises(ConfigError, match=r"'auto', which leaves out .* got 'of'"):
        phalanx.config.update("traceback_filtering", "of")


def test_an_exception_that_is_raised_again_stays_itself():
    error = Mine("once")

    def again(x):
        raise error

    for _ in range(3):
        with pytest.raises(Mine) as caught:
            phalanx.jit(phalanx.vmap(again))(ROWS)
        assert caught.value is error and error.args == ("once",)


# ---- accidents ----------------------------------------------------------------------------------


@boundary
def careless(x, *, key=None):
    if key is not None:
        return {"a": 1}[key]
    if callable(x):
        raise ValueError("careless: words of its own")
    return len(x)


# A file of ours: what is raised there is ours.
careless.__wrapped__.__code__ = careless.__wrapped__.__code__.replace(
    co_filename=phalanx.__file__.replace("__init__", "careless")
)


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "words"),
    [
        ((3,), {}, TypeError, r"careless: called with \(3\): object of type 'int' has no len\(\)"),
        ((ROWS,), {"key": "b"}, TypeError, r"careless: called with \(float32\[4, 3\], key='b'\): "),
        ((), {}, TypeError, r"careless: called with \(\): careless\(\) missing 1 required"),
        ((len,), {}, ValueError, "^careless: words of its own$"),
        (([1, np.uint8], 2), {}, TypeError, r"called with \(\[1, the class uint8\], 2\): "),
        ((phalanx.P("x"), jnp.float32), {}, TypeError, r"called with \(P\('x'\), float32\): "),
        (([1, "a"], 2), {}, TypeError, r"called with \(\[1, 'a'\], 2\): .* takes 1 positional"),
    ],
)
def test_what_no_words_of_ours_say_names_the_function_and_its_arguments(args, kwargs, kind, words):
    with pytest.raises(kind, match=words) as caught:
        careless(*args, **kwargs)
    assert functions(caught.value) == [
        "test_what_no_words_of_ours_say_names_the_function_and_its_arguments"
    ]


def test_words_are_settled_at_the_first_boundary():
    with pytest.raises(TypeError) as caught:
        phalanx.nn.one_hot("a", 3)  # which calls functions that are public, too
    assert "called with" not in str(caught.value) and "numbers are needed" in str(caught.value)


def test_exceptions_of_the_users_functions_are_theirs():
    def look_up(x):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        lax.map(look_up, ROWS)
    assert caught.value.args == ("missing",)


# ---- public functions are what they were --------------------------------------------------------


def test_exceptions_of_libraries_that_are_left_out_are_theirs(monkeypatch):
    def again():
        try:
            raise Mine("of a library")
        except Mine as mine:
            mine.__traceback__ = None  # so this frame is not there, nor the ``raise`` in it
            raise

    monkeypatch.setattr("phalanx.base.boundary.excluded", [__file__])
    with pytest.raises(Mine, match=r"^of a library$"):
        phalanx.jvp(lambda x: again(), (1.0,), (1.0,))
    with pytest.raises(Mine, match=r"^$"):  # nothing is left of its traceback behind ``jit``
        phalanx.jvp(phalanx.jit(fails), (1.0,), (1.0,))


def test_public_functions_are_pickled_by_name_and_have_one_identity():
    for function in (jnp.sin, lax.add, phalanx.jit, phalanx.random.normal, phalanx.tree.map):
        assert pickle.loads(pickle.dumps(function)) is function
    assert jnp.linalg.matmul is jnp.matmul and phalanx.tree_util.tree_map is phalanx.tree.map
    assert jnp.sum.__name__ == "sum" and "axis" in jnp.sum.__doc__


def test_computations_of_the_library_are_recognized():
    x = jnp.arange(6.0)
    assert float(lax.reduce(x, 0.0, lax.add, (0,))) == 15.0
    with pytest.raises(EscapedTracer):
        kept = []
        phalanx.jit(functools.partial(lambda kept, x: kept.append(x) or x, kept))(x)
        jnp.sin(kept[0])


MESH = phalanx.make_mesh((1,), ("x",))
MAKING = {  # instances of classes: what is wrong is said where they are made, in words
    "axis": (lambda: phalanx.NamedSharding(MESH, phalanx.P("y")), "no axis 'y'"),
    "spec": (lambda: phalanx.NamedSharding(MESH, "x"), "needs a Mesh and a PartitionSpec"),
    "missing": (lambda: phalanx.NamedSharding(MESH), "NamedSharding: called with"),
    "entry": (lambda: phalanx.P(3), "PartitionSpec: an entry must be"),
    "grid": (lambda: phalanx.sharding.Mesh(3, ("x",)), "Mesh: the grid has 0 dimensions"),
    "mesh": (lambda: phalanx.make_mesh((1,), ("x", "y")), "there are 2 axis names"),
    "dtype": (lambda: phalanx.ShapeDtypeStruct((3,), "flaot32"), "Did you mean 'float32'"),
    "length": (lambda: phalanx.ShapeDtypeStruct((3.5,), "float32"), "must be integers"),
    "custom_vjp": (lambda: phalanx.custom_vjp(3), "must be a function"),
    "set_mesh": (lambda: phalanx.set_mesh(3), "a Mesh or None is needed"),
    "devices": (lambda: phalanx.devices(3), "Unknown backend 3"),
    "key": (lambda: phalanx.random.key("a"), "key: the seed must be a single integer, got 'a'"),
    "trees": (lambda: phalanx.tree.map(max, [1, 2], [1]), "different lengths of list"),
    "arange": (lambda: jnp.arange("a"), "arange: start, stop and step must be real numbers"),
    "format": (lambda: f"{jnp.float32(1.0):d}", "Unknown format code 'd'"),
    "choice": (lambda: lax.Precision("hihgest"), r"Did you mean Precision\.HIGHEST\?"),
    "name": (lambda: phalanx.sharding.AxisType["auto"], r"Did you mean AxisType\.Auto\?"),
    "number": (lambda: lax.RandomAlgorithm(7), r"RNG_DEFAULT \(0\), RNG_THREE_FRY \(1\)"),
    "dims": (lambda: lax.GatherDimensionNumbers((1,), 0, (0,)), "collapsed_slice_dims must be"),
    "groups": (lambda: lax.RaggedDotDimensionNumbers(3, (0,), (0,)), "numbers of dot_general"),
    "tolerance": (lambda: lax.Tolerance("a"), "Tolerance: tolerances must be real numbers"),
    "reference": (lambda: phalanx.new_ref(1.0)[3], "too many indices"),
}


@pytest.mark.parametrize("case", MAKING)
def test_what_makes_an_instance_ends_in_the_line_of_the_user(case):
    make, words = MAKING[case]
    with pytest.raises(Exception, match=words) as caught:
        make()
    assert functions(caught.value)[-1] == "<lambda>"


OURS = [  # (where, what is called) of what is public, also where nobody asked for it yet
    (f"{module}.{name}", value)
    for _, modules in public.PAGES.values()
    for module in modules
    for name in getattr(pkgutil.resolve_name(module), "__all__", ())
    if callable(value := getattr(pkgutil.resolve_name(module), name))
    and name not in ("breakpoint", "start_server", "start_trace")  # which go on
    and str(getattr(value, "__module__", "")).startswith("phalanx")
    and not (isinstance(value, type) and issubclass(value, (BaseException, Protocol)))
]


def test_whatever_is_called_with_what_it_does_not_take_ends_in_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr(primitive, "REGISTRY", {**primitive.REGISTRY})  # may get strange names
    refused, bad = 0, []
    for where, value in OURS:
        for args, options in (((object(),), {}), ((object(),) * 3, {}), ((), {"no_such": 1})):
            try:
                value(*args, **options)
            except Exception as error:
                refused += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                if last.filename != __file__:
                    bad.append((where, str(error), last))
    assert not bad
    assert len(OURS) > 1300 and refused > 2 * len(OURS)


def test_a_warning_that_filters_make_an_error_keeps_its_class():
    with pytest.raises(FutureWarning, match=r"^scatter inputs have incompatible types: cannot"):
        jnp.arange(3).at[0].set(0.5)


@pytest.mark.parametrize(
    ("function", "leaf", "kind"),
    [
        ({"known": 1}.__getitem__, "missing", KeyError),
        (operator.itemgetter("missing"), collections.UserDict(), KeyError),
        (functools.partial(operator.truediv, 1), 0, ZeroDivisionError),
        (operator.attrgetter("missing"), "text", AttributeError),
    ],
)
def test_what_functions_that_leave_no_frame_raise_of_leaves_is_theirs(function, leaf, kind):
    with pytest.raises(kind) as own:
        function(leaf)
    for way in (phalanx.tree.map, lambda f, t: phalanx.tree.map_with_path(lambda _, x: f(x), t)):
        with pytest.raises(kind) as caught:
            way(function, [leaf])
        assert caught.value.args == own.value.args


def test_a_dataclass_that_lacks_a_child_says_so_as_python_does():
    @phalanx.tree_util.register_dataclass
    @dataclasses.dataclass
    class Pair:
        x: float
        y: float

    pair = Pair(1.0, 2.0)
    del pair.y
    for way in (phalanx.tree.leaves, phalanx.tree.structure, phalanx.jit(lambda t: 0)):
        with pytest.raises(AttributeError, match="has no attribute 'y'"):
            way(pair)
