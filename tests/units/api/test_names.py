"""Names of small modules: versions, types, events, other libraries' arrays, given derivatives."""

import functools
import importlib

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import dtypes, errors, test_util
from phalanx.experimental import checkify
from phalanx.laws import DerivativeError


def test_what_there_is_lazily_is_listed_and_found():
    for name in ("flatten_util", "typing", "test_util", "monitoring", "dlpack", "version"):
        assert name in dir(phalanx)
        assert getattr(phalanx, name) is importlib.import_module(f"phalanx.{name}")


def test_version_and_environment():
    assert phalanx.__version__ == ".".join(map(str, phalanx.__version_info__))
    assert phalanx.version.__version_info__ == phalanx.__version_info__
    text = phalanx.print_environment_info(return_string=True)
    assert f"{phalanx.device_count()} of" in text and np.__version__ in text


def test_processes():
    assert phalanx.host_id() == phalanx.process_index() == 0
    assert phalanx.host_count() == phalanx.process_count() == len(phalanx.host_ids()) == 1
    assert all(isinstance(d, phalanx.Device) for d in phalanx.devices(backend="cpu"))


def test_now_inside_of_a_transformation():
    @phalanx.jit
    def f(x):
        with phalanx.ensure_compile_time_eval():
            y = jnp.sum(jnp.arange(3))
            assert int(y) == 3
        return x * y

    assert f(2) == 6
    assert phalanx.grad(lambda x: f(x))(2.0) == 3


WITHIN = {
    "jit": lambda f: phalanx.jit(f),
    "grad": lambda f: phalanx.grad(f),
    "vmap": lambda f: lambda x: phalanx.vmap(f)(jnp.stack([x, x]))[1],
    "pmap": lambda f: lambda x: phalanx.pmap(f)(jnp.stack([x, x]))[1],
    "jit of grad of jit": lambda f: phalanx.jit(phalanx.grad(phalanx.jit(f))),
    "grad of grad": lambda f: phalanx.grad(phalanx.grad(f)),
    "jvp": lambda f: lambda x: phalanx.jvp(f, (x,), (x,))[1],
    "vmap of grad": lambda f: lambda x: phalanx.vmap(phalanx.grad(f))(jnp.stack([x, x]))[0],
    "scan": lambda f: lambda x: phalanx.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
    "cond": lambda f: lambda x: phalanx.lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": lambda f: phalanx.grad(phalanx.checkpoint(f)),
    "disable_jit": lambda f: phalanx.disable_jit()(phalanx.jit(f)),
}


@pytest.mark.parametrize("around", WITHIN)
def test_now_what_is_known_and_in_its_place_what_is_traced(around):
    def plain(x):
        return jnp.sin(x) * x**2 + jnp.where(x > 1, x, 3.0 * x)

    def inside(x):
        with phalanx.ensure_compile_time_eval():
            three = jnp.cumsum(jnp.ones(3))[-1]
            if three == 3:
                return plain(x) + (three - 3) * x

    x = jnp.float32(1.5)
    np.testing.assert_allclose(WITHIN[around](inside)(x), WITHIN[around](plain)(x), rtol=1e-6)


def test_now_within_a_function_with_rules_of_its_own_and_named_axes():
    @phalanx.custom_jvp
    def f(x):
        with phalanx.ensure_compile_time_eval():
            return x * phalanx.lax.axis_size("i") + phalanx.lax.axis_index("i")

    @f.defjvp
    def _(primals, tangents):
        with phalanx.ensure_compile_time_eval():
            return f(*primals), 5 * tangents[0] + phalanx.lax.psum(0 * tangents[0], "i")

    for many in (phalanx.vmap, phalanx.pmap):
        lanes = many(phalanx.value_and_grad(lambda x: f(x) * 2), axis_name="i")(jnp.arange(3.0))
        np.testing.assert_array_equal(lanes, [[0, 8, 16], [10, 10, 10]])


def test_values_of_what_has_ended_are_refused_now_too():
    kept = []
    phalanx.jit(lambda x: kept.append(x) or x)(1.0)
    with phalanx.ensure_compile_time_eval(), pytest.raises(errors.UnexpectedTracerError):
        kept[0] + 1


def test_dtypes():
    assert dtypes.canonicalize_dtype(float) == dtypes.canonicalize_dtype(None) == np.float32
    key = phalanx.random.key(0).dtype
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="key"):
        dtypes.canonicalize_dtype(key)
    kinds = [dtypes.scalar_type_of(x) for x in (True, 1, jnp.ones(2, "bfloat16"), "complex64")]
    assert kinds == [bool, int, float, complex]
    bits = {"bool": 8, "int4": 4, "float8_e5m2": 8, "bfloat16": 16, "complex128": 128}
    assert {name: dtypes.itemsize_bits(name) for name in bits} == bits
    assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.float32, True)


def test_errors_are_those_that_programs_catch():
    def decides(x):
        return 1 if x > 0 else 2

    for caught in (errors.JAXTypeError, errors.ConcretizationTypeError, TypeError):
        with pytest.raises(caught):
            phalanx.jit(decides)(1.0)
    with pytest.raises(errors.JAXIndexError):
        phalanx.jit(lambda x: x[x > 0])(jnp.ones(3))
    with pytest.raises(dtypes.TypePromotionError):
        jnp.ones(1, "float8_e5m2") + jnp.ones(1, "float8_e4m3fn")
    assert errors.JaxRuntimeError is errors.RuntimeFailure


def test_events():
    monitoring = phalanx.monitoring
    heard = []
    listeners = {
        "event": ("event", ("e",)),
        "event_duration_secs": ("event_duration", ("d", 0.5)),
        "event_time_span": ("event_time_span", ("t", 1.0, 2.0)),
        "scalar": ("scalar", ("s", 3)),
    }
    for what, (short, args) in listeners.items():

        def listener(*given, **kwargs):
            heard.append((given, kwargs))

        register = getattr(monitoring, f"register_{what}_listener")
        with pytest.raises(TypeError, match="a listener is a function, got 3"):
            register(3)
        register(listener)
        getattr(monitoring, f"record_{what}")(*args, place="here")
        assert heard.pop() == (args, {"place": "here"})
        unregister = getattr(monitoring, f"unregister_{short}_listener")
        unregister(listener)
        getattr(monitoring, f"record_{what}")(*args)
        assert not heard
        with pytest.raises(ValueError, match="not registered"):
            unregister(listener)
    monitoring.register_event_listener(heard.append)
    monitoring.clear_event_listeners()
    monitoring.record_event("e")
    assert not heard


def test_arrays_of_other_libraries():
    from_dlpack = phalanx.dlpack.from_dlpack
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    got = from_dlpack(x, phalanx.devices()[-1])
    np.testing.assert_array_equal(got, x)
    assert got.devices() == {phalanx.devices()[-1]}
    with pytest.raises(BufferError, match="from_dlpack"):
        from_dlpack(x.T[::2], copy=False)
    assert phalanx.dlpack.is_supported_dtype(bool)
    assert not phalanx.dlpack.is_supported_dtype("float8_e5m2")


def scaled(x, n):
    return {"y": jnp.sin(x["w"]) * n, "n": n}


ARGS = ({"w": jnp.arange(3.0)}, 2)


@phalanx.custom_jvp
def wrong(x):
    return jnp.sin(x)


wrong.defjvp(lambda primals, tangents: (wrong(*primals), 2 * jnp.cos(primals[0]) * tangents[0]))


def test_derivatives_that_are_given():
    test_util.check_jvp(scaled, functools.partial(phalanx.jvp, scaled), ARGS)
    test_util.check_vjp(scaled, functools.partial(phalanx.vjp, scaled), ARGS)
    test_util.check_grads(scaled, ARGS, 2, atol=1e-2, rtol=1e-2)
    for check, given in ((test_util.check_jvp, phalanx.jvp), (test_util.check_vjp, phalanx.vjp)):
        with pytest.raises(DerivativeError, match=r"mine: check_(jvp|vjp)"):
            check(wrong, functools.partial(given, wrong), (0.5,), err_msg="mine")
        check(wrong, functools.partial(given, wrong), (0.5,), atol=10.0)


def slope_off_by(error):
    """The sine to six decimals, as of a solver that stops there, with a slope that it is given."""

    @phalanx.custom_jvp
    def solve(x):
        return jnp.round(jnp.sin(x), 6)

    @solve.defjvp
    def slope(primals, tangents):
        return solve(*primals), (1 + error) * jnp.cos(*primals) * tangents[0]

    return solve


def test_derivatives_of_solvers_are_checked_to_the_precision_of_their_arguments():
    for x in (np.float32(0.5), np.full(3, 0.5), 0.5):
        test_util.check_grads(slope_off_by(0.0), (x,), 1, eps=1e-3)
        with pytest.raises(DerivativeError, match="jvp of solve and finite differences"):
            test_util.check_grads(slope_off_by(0.01), (x,), 1, eps=1e-3)
    with pytest.raises(DerivativeError, match="finite differences"):
        test_util.check_grads(slope_off_by(0.0), (0.5,), 1, eps=1e-3, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="no argument of solve is a floating-point number"):
        test_util.check_grads(slope_off_by(0.0), (1,), 1)


# ---- what programs written for JAX count on ------------------------------------------------------


def test_lengths_in_an_array():
    x = jnp.arange(6)
    assert jnp.reshape(x, np.array([3, -1])).shape == x.reshape(np.array([3, 2])).shape == (3, 2)
    assert x.reshape(np.int64(6)).shape == jnp.reshape(x, np.array(6)).shape == (6,)


@pytest.mark.parametrize("kind", ["auto", "explicit", "manual"])
def test_whether_all_axes_of_a_mesh_are_of_a_type(kind):
    made = getattr(phalanx.sharding.AxisType, kind.capitalize())
    mesh = phalanx.sharding.AbstractMesh((2, 3), ("a", "b"), (made, made))
    for other in ("auto", "explicit", "manual"):
        assert getattr(mesh, f"are_all_axes_{other}") == (other == kind)
        mixed = mesh.update_axis_types({"a": phalanx.sharding.AxisType[other.capitalize()]})
        assert getattr(mixed, f"are_all_axes_{kind}") == (other == kind)
        assert not getattr(phalanx.sharding.AbstractMesh((), ()), f"are_all_axes_{other}")


def test_a_struct_may_be_returned_where_only_shapes_are_asked_for():
    struct = phalanx.ShapeDtypeStruct((3,), np.int8)

    def f(x, y=struct):
        return {"x": x, "y": y}

    assert phalanx.eval_shape(f, 1.0)["y"] == struct
    with pytest.raises(TypeError, match=r"eval_shape\(f\): x is 'text'"):
        phalanx.eval_shape(f, "text")


def test_structs_with_changes_and_like_others():
    struct = phalanx.ShapeDtypeStruct((3,), np.int8, weak_type=True)
    changed = struct.update(shape=(4, 1), dtype=bool)
    assert changed == phalanx.ShapeDtypeStruct((4, 1), bool, weak_type=True)
    assert phalanx.ShapeDtypeStruct.like(struct) == struct
    x = jnp.ones((2, 3))
    assert phalanx.ShapeDtypeStruct.like(x) == struct.update(
        shape=(2, 3), dtype=np.float32, weak_type=False, sharding=x.sharding
    )
    with pytest.raises(TypeError):
        struct.update(length=3)


def test_the_zero_of_a_tree():
    zero = phalanx.custom_derivatives.zero_from_primal
    got = zero({"a": jnp.ones(2), "b": (1, 2.0)})
    assert got["a"].tolist() == [0, 0] and got["b"][1] == 0
    assert got["b"][0].dtype == phalanx.dtypes.float0
    with pytest.raises(TypeError, match="zero_from_primal"):
        zero({"a": "text"})


def test_what_a_check_finds_is_a_value_error():
    def f(x):
        checkify.check(x > 0, "not positive: {}", x)
        return x

    error, _ = checkify.checkify(f)(jnp.float32(-1))
    for caught in (ValueError, RuntimeError, errors.CheckFailed):
        with pytest.raises(caught, match="not positive"):
            error.throw()


@pytest.mark.parametrize(
    "transform", [phalanx.jit, phalanx.vmap, phalanx.grad, phalanx.checkpoint, phalanx.pmap]
)
def test_objects_whose_attributes_are_no_names_can_be_called(transform):
    class Layer:
        def __call__(self, x):
            return x

    layer = Layer()
    vars(layer).update(__name__=None, __qualname__=None, __annotations__=3)
    given = transform(layer)
    assert given.__name__ == "Layer" and callable(given)
