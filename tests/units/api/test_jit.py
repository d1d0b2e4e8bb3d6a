"""jit: what is traced anew, what is static or donated, ahead of time, methods, eager execution."""

import functools
import gc
import inspect
import weakref

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import DeletedArray
from phalanx.xla import XlaBackend

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Counter:
    """A function that counts how often Python runs it."""

    def __init__(self, fun):
        self.fun = fun
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.fun(*args, **kwargs)


# ---- what is traced anew ------------------------------------------------------------------------


def test_a_function_is_traced_once_per_types():
    count = Counter(lambda x: x * 2)
    f = phalanx.jit(count)
    for x in (X, X + 1, jnp.asarray(X)):
        np.testing.assert_array_equal(f(x), 2 * np.asarray(x))
    assert count.calls == 1
    f(X[:1]), f(X.astype(np.int32)), f(X[:1])
    assert count.calls == 3


def test_python_numbers_are_weakly_typed_and_traced_apart_from_arrays():
    f = phalanx.jit(lambda x, s: x * s)
    half = X.astype(np.float16)
    assert f(half, 2.0).dtype == np.float16
    assert f(half, np.float32(2)).dtype == np.float32
    assert f(half, jnp.float32(2)).dtype == np.float32
    assert f(1, 2).dtype == np.int32


def test_numbers_of_python_are_not_baked_in():
    count = Counter(lambda x: x + 1)
    f = phalanx.jit(count)
    assert [int(f(i)) for i in range(5)] == [1, 2, 3, 4, 5]
    assert count.calls == 1


def test_trees_of_another_structure_are_traced_anew():
    count = Counter(lambda t: t)
    f = phalanx.jit(count)
    f({"a": 1.0}), f({"b": 1.0}), f([1.0]), f((1.0,)), f({"a": 2.0})
    assert count.calls == 4


def test_calls_of_alternating_structures_fetch_nothing(monkeypatch):
    f = phalanx.jit(lambda t: phalanx.tree.map(lambda x: x + 1, t))
    x = jnp.ones(3)
    f({"a": x}), f({"b": x})

    def refuse(*_):
        raise AssertionError("an argument was fetched")

    monkeypatch.setattr(XlaBackend, "fetch", staticmethod(refuse))
    for _ in range(3):
        f({"a": x}), f({"b": x}), f([x, x]), f((x,)), f(x)
    monkeypatch.undo()
    np.testing.assert_array_equal(f([x])[0], [2, 2, 2])


def test_dicts_of_another_order_are_the_same_structure():
    count = Counter(lambda t: t["a"] - t["b"])
    f = phalanx.jit(count)
    a, b = jnp.array(5.0), jnp.array(3.0)
    assert [float(f(t)) for t in ({"a": a, "b": b}, {"b": b, "a": a}, {"a": a, "b": b})] == [2] * 3
    assert count.calls == 1


def test_none_is_an_empty_tree():
    assert phalanx.jit(lambda x, y=None: (x, y))(1.0, None)[1] is None
    assert phalanx.jit(lambda: None)() is None


def test_keywords_and_defaults():
    f = phalanx.jit(lambda x, y=10.0, *, z=100.0: x + y + z)
    assert float(f(1.0)) == 111
    assert float(f(1.0, z=0.0)) == 11
    assert float(f(1.0, 2.0, z=3.0)) == 6
    assert float(f(x=1.0, y=2.0)) == 103


def test_results_may_be_inputs_constants_and_repeats():
    a, b, c, d = phalanx.jit(lambda x: (x, 3, x, np.arange(2)))(X)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(c, X)
    assert int(b) == 3 and b.dtype == np.int32
    np.testing.assert_array_equal(d, [0, 1])


def test_options_are_part_of_the_key():
    f = phalanx.jit(lambda x: x * 1.5)
    assert f(np.arange(2.0)).dtype == np.float32
    with phalanx.config.override(enable_x64=True):
        assert f(np.arange(2.0)).dtype == np.float64
    assert f(np.arange(2.0)).dtype == np.float32


def test_the_same_function_jitted_twice_shares_what_is_traced():
    count = Counter(lambda x: x + 1)
    phalanx.jit(count)(X), phalanx.jit(count)(X)
    assert count.calls == 1


def test_captured_arrays_are_constants_and_may_be_donated_nowhere():
    w = jnp.arange(3.0)
    f = phalanx.jit(lambda x: x + w, donate_argnums=0)
    for _ in range(2):
        np.testing.assert_array_equal(f(jnp.ones(3)), [1.0, 2.0, 3.0])
    assert not w.is_deleted()


def test_jit_inside_jit_and_recursion_by_static_argument():
    @functools.partial(phalanx.jit, static_argnums=1)
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert float(power(2.0, 5)) == 32


def test_a_dropped_function_is_collected():
    def make():
        def f(x):
            return x + 1

        jitted = phalanx.jit(f)
        jitted(X), phalanx.grad(lambda x: jitted(x).sum())(X), phalanx.vmap(jitted)(X)
        return weakref.ref(f), weakref.ref(jitted)

    refs = make()
    gc.collect()
    assert [r() for r in refs] == [None, None]


# ---- static arguments ---------------------------------------------------------------------------


def test_static_arguments_by_position_name_and_from_the_end():
    def f(x, n, mode="sum"):
        assert type(n) is int and type(mode) is str
        return x.sum() * n if mode == "sum" else x * n

    for options in (
        {"static_argnums": (1, 2)},
        {"static_argnames": ("n", "mode")},
        {"static_argnums": (-2, -1)},
    ):
        g = phalanx.jit(f, **options)
        assert float(g(X, 2)) == 30
        assert float(g(X, n=3)) == 45
        np.testing.assert_array_equal(g(X, 2, mode="scale"), 2 * X)
        np.testing.assert_array_equal(g(X, 2, "scale"), 2 * X)


def test_where_positions_and_names_are_given_others_are_not_static():
    def traced(x, y):
        return [isinstance(value, phalanx.Array) for value in (x, y)]

    f = phalanx.jit(traced, static_argnums=1, static_argnames="x")
    assert np.asarray(f(1, 2)).tolist() == [True, False]
    assert np.asarray(f(x=1, y=2)).tolist() == [False, True]


def test_names_are_not_looked_up_in_a_signature_that_was_copied_to_other_places():
    def f(x, n):
        return x * n

    @functools.wraps(f)
    def after_state(state, *args, **kwargs):
        return state[0] + f(*args, **kwargs)

    @functools.wraps(f)
    def the_same(*args, **kwargs):
        return f(*args, **kwargs)

    g = phalanx.jit(after_state, static_argnames="n")
    np.testing.assert_array_equal(g([1.0], X, n=2), 1 + 2 * X)
    count = Counter(the_same)
    h = phalanx.jit(functools.wraps(f)(lambda *args: count(*args)), static_argnames="n")
    h(X, 2), h(X, 3)
    assert count.calls == 2


def test_a_new_static_value_traces_anew_and_types_are_told_apart():
    count = Counter(lambda x, n: x * n)
    f = phalanx.jit(count, static_argnums=1)
    f(X, 2), f(X, 3), f(X, 2), f(X, 2.0), f(X, True), f(X, 1)
    assert count.calls == 5


def test_static_values_may_be_any_hashable_object():
    f = phalanx.jit(lambda fun, x: fun(x), static_argnums=0)
    np.testing.assert_allclose(f(jnp.sin, X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(f(jnp.cos, X), np.cos(X), rtol=1e-6)


# ---- donation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "state"}])
def test_a_donated_argument_is_gone_and_the_others_are_not(options):
    def step(state, x):
        return {"w": state["w"] + x}

    f = phalanx.jit(step, **options)
    x = jnp.ones(3)
    for _ in range(2):  # the first call compiles, the second is the fast path
        state = {"w": jnp.arange(3.0)}
        new = f(state, x) if "donate_argnums" in options else f(state=state, x=x)
        np.testing.assert_array_equal(new["w"], [1, 2, 3])
        assert state["w"].is_deleted() and not x.is_deleted()
        with pytest.raises(DeletedArray, match="donated"):
            np.asarray(state["w"])


def test_donating_numbers_and_numpy_arrays_is_harmless():
    f = phalanx.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))
    for _ in range(3):
        a, b = f(1.0, X)
        assert float(a) == 2
        np.testing.assert_array_equal(b, X + 1)
    assert float(phalanx.jit(lambda x: x)(1.0)) == 1


def test_a_donated_argument_that_no_result_fits_into_stays_alive_with_a_warning_once():
    def evaluate(params, batch):
        return (params * batch).sum()

    f = phalanx.jit(evaluate, donate_argnums=0)
    params, batch = jnp.arange(3.0), jnp.ones(3)
    told = r"^Some donated buffers were not usable: params f32.* of jit\("
    with pytest.warns(UserWarning, match=told) as warned:
        for _ in range(3):
            np.testing.assert_array_equal(f(params, batch), 3)
    (warning,) = warned
    assert warning.filename == __file__
    assert not params.is_deleted()


@pytest.mark.parametrize("function", [lambda x: x.reshape(2, 3), lambda x: x.astype(int)])
def test_a_result_of_another_type_takes_donated_memory_of_as_many_bytes(function):
    x = jnp.ones(6)
    at = x.unsafe_buffer_pointer()
    y = phalanx.jit(function, donate_argnums=0)(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == at


def test_of_several_donated_arguments_as_many_go_as_results_fit():
    f = phalanx.jit(lambda a, b, c: (a + b + c.sum(),), donate_argnums=(0, 1, 2))
    a, b, c = jnp.ones(3), jnp.ones(3), jnp.ones(2)
    with pytest.warns(UserWarning, match=r"b f32\[3\], c f32\[2\]"):
        f(a, b, c)
    assert [x.is_deleted() for x in (a, b, c)] == [True, False, False]


def test_of_many_donated_arguments_alike_as_many_go_as_there_are_results():
    f = phalanx.jit(lambda *xs: (sum(xs), xs[0] - xs[1]), donate_argnums=range(5))
    xs = [jnp.full(3, float(i)) for i in range(5)]
    with pytest.warns(UserWarning, match=r"xs\[2\] f32\[3\], xs\[3\] f32\[3\], xs\[4\]"):
        f(*xs)
    assert [x.is_deleted() for x in xs] == [True, True, False, False, False]


# ---- arguments that are not needed --------------------------------------------------------------


def test_arguments_that_are_not_needed_are_not_passed_on():
    f = phalanx.jit(lambda x, rest: x + 1)
    rest = [jnp.ones(3), X, 2.0]
    lowered = f.lower(1.0, rest)
    assert lowered.as_text().count("%arg") == phalanx.jit(lambda x: x + 1).lower(
        1.0
    ).as_text().count("%arg")
    assert float(lowered.compile()(1.0, rest)) == 2
    with pytest.raises(TypeError, match=r"'rest\[0\]' compiled with f32\[3\]"):
        lowered.compile()(1.0, [jnp.ones(4), X, 2.0])
    for _ in range(2):
        assert float(f(1.0, rest)) == 2
    kept = phalanx.jit(lambda x, rest: x + 1, keep_unused=True)
    assert "%arg3" in kept.lower(1.0, rest).as_text()
    for _ in range(2):
        assert float(kept(1.0, rest)) == 2


def test_the_memory_of_an_argument_that_is_passed_twice_is_not_taken():
    x = jnp.ones((1, 3))
    f, lanes = (g(lambda x, y: x + y["b"], donate_argnums=0) for g in (phalanx.jit, phalanx.pmap))
    for call in (f, f.lower(x, {"b": x}).compile(), lanes):
        with pytest.raises(DeletedArray, match=r"x is donated .*, as y\['b'\], at test_jit"):
            call(x, {"b": x})
    assert not x.is_deleted()


def test_a_donated_argument_that_is_not_needed_stays_alive():
    f = phalanx.jit(lambda x, y: x + 1, donate_argnums=(0, 1))
    for _ in range(2):
        x, y = jnp.ones(3), jnp.ones(3)
        np.testing.assert_array_equal(f(x, y), [2, 2, 2])
        assert x.is_deleted() and not y.is_deleted()


def test_effects_of_an_argument_count_as_its_use():
    seen = []
    f = phalanx.jit(lambda x, y: (phalanx.debug.callback(seen.append, y), x)[1])
    assert float(f(1.0, 2.0)) == 1
    phalanx.effects_barrier()
    assert [float(y) for y in seen] == [2.0]


# ---- where and how it is compiled ---------------------------------------------------------------


@pytest.mark.parametrize("x", [X, 2.0, phalanx.device_put(X, phalanx.devices()[0])])
def test_a_function_with_a_device_runs_there(x):
    last = phalanx.devices()[-1]
    f = phalanx.jit(lambda x: x * 2, device=last)
    for _ in range(2):
        y = f(x)
        assert y.devices() == {last} and y.committed
        np.testing.assert_array_equal(y, np.asarray(x) * 2)
    assert phalanx.jit(lambda: jnp.arange(3), device=last)().devices() == {last}
    assert f.lower(x).compile()(x).devices() == {last}


def test_a_function_with_a_backend_runs_on_its_first_device():
    f = phalanx.jit(lambda x: x + 1, backend="cpu")
    assert f(X).devices() == {phalanx.devices("cpu")[0]}
    with pytest.raises(ValueError, match="a device or a backend, not both"):
        phalanx.jit(lambda x: x, backend="cpu", device=phalanx.devices()[0])
    with pytest.raises(TypeError, match=r"one of phalanx\.devices"):
        phalanx.jit(lambda x: x, device=0)
    here = phalanx.sharding.SingleDeviceSharding(phalanx.devices()[0])
    with pytest.raises(ValueError, match="backend says where all of it lies, and so do"):
        phalanx.jit(lambda x: x, backend="cpu", out_shardings=here)


def test_options_of_the_compiler_belong_to_the_function():
    f = phalanx.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    np.testing.assert_array_equal(f(X), X + 1)
    wrong = phalanx.jit(lambda x: x + 1, compiler_options={"xla_no_such_thing": True})
    with pytest.raises(ValueError, match="xla_no_such_thing"):
        wrong(X)
    with pytest.raises(ValueError, match="strings, numbers or booleans"):
        phalanx.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": []})
    for derived in (phalanx.grad(lambda x: wrong(x).sum()), phalanx.vmap(wrong)):
        with pytest.raises(ValueError, match="xla_no_such_thing"):
            derived(X)
    np.testing.assert_array_equal(phalanx.vmap(f)(X), X + 1)
    for inside in (
        phalanx.jit(f),
        lambda x: phalanx.lax.scan(lambda c, _: (f(c), None), x, length=2),
    ):
        with pytest.raises(ValueError, match=r"`compiler_options` .* top-level .*, at test_jit"):
            inside(X)


def test_the_attributes_of_the_function_are_those_of_the_compiled_one():
    def step(x):
        return x

    step.version, step.lower = 3, "hidden by the method"
    jitted = phalanx.jit(step)
    assert jitted.version == 3 and callable(jitted.lower) and jitted.__wrapped__ is step


# ---- ahead of time ------------------------------------------------------------------------------


def test_lowering_and_compiling_step_by_step():
    f = phalanx.jit(lambda x, y: {"z": x @ y})
    lowered = f.lower(phalanx.ShapeDtypeStruct((2, 3), "float32"), X.T)
    assert "stablehlo.dot_general" in lowered.as_text()
    assert lowered.out_info["z"].shape == (2, 2)
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(X, X.T)["z"], X @ X.T)
    assert "HloModule" in compiled.as_text()
    told = compiled.out_info["z"]  # which also says how the result lies
    assert (told.shape, told.dtype) == ((2, 2), "float32")
    assert told.sharding.is_equivalent_to(compiled(X, X.T)["z"].sharding, 2)
    assert compiled.in_tree == lowered.in_tree and compiled.out_tree == lowered.out_tree


def test_analyses_are_numbers():
    compiled = phalanx.jit(lambda x: x @ x.T).lower(np.ones((64, 32), np.float32)).compile()
    assert compiled.cost_analysis()["flops"] >= 2 * 64 * 64 * 32
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (8192, 16384)
    assert memory.host_temp_size_in_bytes == memory.host_argument_size_in_bytes == 0


def test_a_compiled_function_takes_what_it_was_compiled_for():
    compiled = phalanx.jit(lambda x, s: x * s).lower(X, 2.0).compile()
    np.testing.assert_array_equal(compiled(jnp.asarray(X), 3.0), 3 * X)
    with pytest.raises(TypeError, match=r"'x' compiled with f32\[2,3\] and called with f32\[2\]"):
        compiled(X[:, 0], 2.0)
    with pytest.raises(TypeError, match="structure"):
        compiled(X, s=2.0)


def test_trace_gives_the_program():
    staged = phalanx.jit(lambda x: jnp.sin(x)).trace(X)
    assert [e.prim.name for e in staged.jaxpr.equations] == ["sin"]
    np.testing.assert_allclose(staged.lower().compile()(X), np.sin(X), rtol=1e-6)


def test_static_and_donated_arguments_ahead_of_time():
    f = phalanx.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0)
    compiled = f.lower(X, 3).compile()
    x = jnp.array(X)
    np.testing.assert_array_equal(compiled(x), 3 * X)
    assert x.is_deleted()


def test_eval_shape_runs_nothing():
    f = phalanx.jit(lambda x: (x.sum(0), x.astype(int)))
    a, b = f.eval_shape(phalanx.ShapeDtypeStruct((5, 7), "float32"))
    assert (a.shape, b.shape, b.dtype) == ((7,), (5, 7), np.int32)


# ---- how it looks from outside ------------------------------------------------------------------


def test_name_documentation_and_signature_carry_over():
    def f(x, *, scale: float = 1.0):
        """Scaled."""

    jitted = phalanx.jit(f)
    assert jitted.__wrapped__ is f
    assert jitted.__name__ == "f" and jitted.__doc__ == "Scaled."
    assert inspect.signature(jitted) == inspect.signature(f)
    assert jitted.__qualname__ == f.__qualname__  # pickle looks it up


def test_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(phalanx.jit, static_argnums=0)
        def apply(self, x):
            return x * self.w

        @phalanx.jit
        def double(x):
            return 2 * x

    np.testing.assert_array_equal(Model(3.0).apply(X), 3 * X)
    np.testing.assert_array_equal(Model.double(X), 2 * X)


def test_a_tree_of_arrays_may_be_the_object_of_a_method():
    @phalanx.tree_util.register_pytree_node_class
    class Scale:
        def __init__(self, w):
            self.w = w

        def tree_flatten(self):
            return (self.w,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        @phalanx.jit
        def __call__(self, x):
            return x * self.w

    np.testing.assert_array_equal(Scale(2.0)(X), 2 * X)


def test_as_a_decorator_with_options():
    @phalanx.jit(static_argnames="n")
    def f(x, n=2):
        return x * n

    np.testing.assert_array_equal(f(X, n=3), 3 * X)


def test_partials_and_callable_objects():
    f = phalanx.jit(functools.partial(lambda x, y: x - y, y=1.0))
    np.testing.assert_array_equal(f(X), X - 1)
    np.testing.assert_array_equal(phalanx.jit(Counter(jnp.negative))(X), -X)


def test_disable_jit_runs_python():
    @phalanx.jit
    def f(x):
        return "positive" if x > 0 else "negative"

    with phalanx.disable_jit():
        assert f(1.0) == "positive" and f(-1.0) == "negative"
        count = phalanx.lax.while_loop(lambda n: n < 3, lambda n: n.astype(n.dtype) + 1, 0)
    assert count.dtype == jnp.int32 and count == 3


def test_errors_of_the_function_pass_through_and_leave_it_usable():
    @phalanx.jit
    def f(x):
        if x.ndim == 1:
            raise KeyError("a vector")
        return x

    with pytest.raises(KeyError, match="a vector"):
        f(X[0])
    np.testing.assert_array_equal(f(X), X)
    with pytest.raises(TypeError, match="argument"):
        f()


def test_gradients_and_batches_pass_a_jitted_function():
    f = phalanx.jit(lambda x: (jnp.sin(x) ** 2).sum())
    np.testing.assert_allclose(phalanx.grad(f)(X), np.sin(2 * X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(phalanx.vmap(f)(X), (np.sin(X) ** 2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(
        phalanx.jit(phalanx.grad(phalanx.jit(f)))(X), np.sin(2 * X), rtol=1e-5, atol=1e-6
    )


def test_what_is_donated_becomes_the_result_of_its_type():
    x = jnp.float32(1) + 1
    at = x.unsafe_buffer_pointer()
    _, y = phalanx.jit(lambda x: (jnp.int32(0), x + 1), donate_argnums=0)(x)
    assert float(y) == 3 and x.is_deleted() and y.unsafe_buffer_pointer() == at


def test_notebooks_show_what_a_compiled_function_is():
    def step(x):
        return x

    here = f"step, test_jit.py:{step.__code__.co_firstlineno}"
    spec, mesh = phalanx.P("a"), phalanx.make_mesh((2,), ("a",))
    shown = {
        f"jit of {here}": phalanx.jit(step),
        f"pmap of {here}": phalanx.pmap(step),
        f"pmap of {here}, over 'rows'": phalanx.pmap(step, axis_name="rows"),
        f"shard_map of {here}": phalanx.shard_map(step, mesh=mesh, in_specs=spec, out_specs=spec),
        "jit of sin": phalanx.jit(jnp.sin),
    }
    for text, function in shown.items():
        assert function._repr_html_() == f"<code>&lt;{text}&gt;</code>"
