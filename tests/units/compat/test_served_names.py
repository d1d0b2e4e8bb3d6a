"""The tree of modules: what is served, and what is said of what is not."""

import importlib
import inspect
import sys
import warnings
from pathlib import Path
from traceback import walk_tb
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.modules import MODULES
from phalanx.compat.refused import MODULES_REFUSED, NAMES_REFUSED, NotOffered
from tests.releases import OLDER

PARTS = "jax.experimental.sparse."  # whose names are those of the package

pytestmark = pytest.mark.usefixtures("served")


@pytest.mark.parametrize("served_module", [*MODULES, *MODULES_REFUSED])
def test_every_module_is_there_with_all_names_that_it_lists(served_module):
    module = importlib.import_module(served_module)
    assert importlib.import_module(served_module) is module is sys.modules[served_module]
    assert all(hasattr(module, each) for each in dir(module))


NOT_TAKEN = {  # which are experiments, are told of, or are called by their place alone
    "jax.api_util.donation_vector": {"kws"},
    "jax.custom_derivatives.custom_gradient": {"with_logs", "remat", "with_accums"},
    "jax.custom_derivatives.custom_vjp_primal_tree_values": {"tree"},
    "jax.custom_gradient": {"with_logs", "remat", "with_accums"},
    "jax.debug.visualize_sharding": {"scale", "color_map"},
    "jax.dtypes.issubdtype": {"a", "b"},
    "jax.experimental.sparse.bcoo_todense": {"mat"},
    "jax.experimental.sparse.bcsr_todense": {"mat"},
    "jax.interpreters.batching.bdim_at_front": {"mesh_axis"},
    "jax.interpreters.batching.broadcast": {"mesh_axis"},
    "jax.interpreters.partial_eval.dce_jaxpr": {"live_inputs"},
    "jax.linearize": {"in_nzs"},
    "jax.vjp": {"saveable_args", "in_nzs"},
    "jax.vmap": {"sum_match"},
}
OTHERS = "jax.extend.linear_util."  # whose transformations are generators there

NEWEST = pytest.mark.skipif(OLDER, reason="the peer is of before the names that are served")


@pytest.fixture(scope="module")
def names_elsewhere():
    """Of public modules of the peer what they have of their own; what Python has may be missing."""
    found = {}
    for name in [m for m in MODULES if "._src" not in m and not m.startswith(PARTS)]:
        try:
            with warnings.catch_warnings(action="ignore"):
                module = importlib.import_module(name)
                names = [n for n in getattr(module, "__all__", dir(module)) if n[0] != "_"]
                found[name] = [n for n in names if not is_python(getattr(module, n))]
        except ImportError:  # of what is not installed
            continue
    return found


def is_python(value):
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    root = str(home).partition(".")[0]
    return root in sys.stdlib_module_names or (isinstance(value, ModuleType) and root != "jax")


@NEWEST
def test_every_name_of_the_field_is_served_or_refused(names_elsewhere):
    missing = {
        f"{name}.{each}"
        for name, names in names_elsewhere.items()
        for each in names
        if not is_served_or_told(name, each)
    }
    assert sum(map(len, names_elsewhere.values())) > 2400
    assert missing == set()


def is_served_or_told(module, name):
    """Whether the name is there, or the error that it is not says what to use."""
    try:
        getattr(importlib.import_module(module), name)
        return True
    except AttributeError as error:
        return f"{module}: {name} is not there: " in str(error)


@pytest.fixture(scope="module")
def parameters_elsewhere(names_elsewhere):
    """Of functions of the peer the parameters that may be given by name."""
    found = {}
    for module, names in names_elsewhere.items():
        for name in names if not module.startswith(OTHERS[:-1]) else ():
            function = getattr(importlib.import_module(module), name)
            if callable(function) and not isinstance(function, type):
                found[f"{module}.{name}"] = parameters(function)
    return found


def parameters(function):
    """The public ones that may be given by name; None for any."""
    try:
        kinds = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it has none that Python can see
        return None
    if any(p.kind is p.VAR_KEYWORD for p in kinds):
        return None
    by_name = [p for p in kinds if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name for p in by_name if p.name[0] != "_"}


@NEWEST
def test_parameters_of_functions_have_their_names(parameters_elsewhere):
    lacking = {}
    for name, wanted in parameters_elsewhere.items():
        module, _, last = name.rpartition(".")
        function = getattr(importlib.import_module(module), last, None)
        offered = function is not None and not isinstance(function, NotOffered)
        taken = parameters(function) if offered else None
        if wanted and taken is not None and wanted - taken:
            lacking[name] = wanted - taken
    assert len(parameters_elsewhere) > 1200
    assert lacking == NOT_TAKEN


def test_the_array_api_standard_is_served():
    import jax.numpy

    assert jax.numpy.__array_api_version__ == jnp.__array_api_version__
    assert jax.numpy.__array_namespace_info__ is jnp.__array_namespace_info__


def test_names_are_those_of_phalanx():
    import jax
    import jax.numpy.linalg
    from jax import random
    from jax.experimental.shard_map import shard_map

    assert jax.jit is phalanx.jit and jax.numpy.sin is jnp.sin
    assert jax.numpy.linalg.norm is jnp.linalg.norm and random.normal is phalanx.random.normal
    assert shard_map is phalanx.experimental.shard_map.shard_map
    assert not hasattr(jax, "run") and not hasattr(jax, "transforms")  # rooms of ours


def test_vars_of_a_module_hold_what_its_sources_have_imported():
    """Some libraries wrap all that a module has, and read it there."""
    import jax.numpy

    assert vars(jax.numpy)["sin"] is jnp.sin and vars(jax.numpy)["pi"] is np.pi
    for name, sources in MODULES.items():
        module = importlib.import_module(name)
        imported = {n for source in sources for n in vars(importlib.import_module(source))}
        public = {n for n in imported & {*dir(module)} if f"{name}.{n}" not in MODULES}
        assert all(vars(module).get(n, module) is getattr(module, n) for n in sorted(public))


def test_names_that_libraries_take_from_private_modules():
    import jax.numpy
    from jax._src import dtypes
    from jax._src.lax.control_flow import scan

    assert scan is jax.lax.scan
    for each in (True, 1, 1.0, jax.numpy.int8, "bfloat16", jnp.ones(2, jnp.uint8)):
        assert dtypes.dtype(each) == phalanx.numpy.result_type(each)
    assert dtypes.dtype(phalanx.random.key(0)) == phalanx.random.key(0).dtype


def test_the_version_of_jaxlib():
    import jax.lib
    import jaxlib

    assert jax.lib.__version__ == jaxlib.__version__


def test_what_is_missing_is_told_with_what_to_use():
    import jax

    with pytest.raises(AttributeError, match=r"jax: tree_map is not there: use jax.tree.map"):
        jax.tree_map  # noqa: B018
    with pytest.raises(AttributeError, match=r"jax.numpy.*sine.*Did you mean 'sin"):
        jax.numpy.sine  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"Did you mean 'jax.numpy'"):
        importlib.import_module("jax.nump")
    with pytest.raises(ImportError):
        from jax.numpy import nothing  # noqa: F401


@pytest.mark.parametrize("module", NAMES_REFUSED)
def test_no_name_is_offered_and_refused(module):
    names = [n for n in NAMES_REFUSED[module][1].split() if n != "*"]
    assert all(isinstance(getattr(importlib.import_module(module), n), NotOffered) for n in names)


def test_what_is_not_offered_is_told_with_the_advice_of_its_module():
    from jax.experimental import sparse

    with pytest.raises(
        AttributeError, match=r"^jax.experimental.sparse: bcoo_todense_p is not "
    ) as e:
        sparse.bcoo_todense_p  # noqa: B018
    assert str(e.value).endswith(
        "is not there: use BCOO, whose transformations are those of arrays (see "
        "docs/not-offered.md). Did you mean 'bcoo_todense'?"
    )
    with pytest.raises(ImportError, match=r"ode: runge_kutta_step is not there: use odeint"):
        from jax.experimental.ode import runge_kutta_step  # noqa: F401
    assert not hasattr(sparse, "bcoo_todense_p")  # so that programs may do without


def test_names_that_are_refused_can_be_imported():
    from jax.interpreters.mlir import LoweringRule, ir_constant

    assert not isinstance(3, LoweringRule)
    with pytest.raises(NotImplementedError, match=r"mlir.ir_constant is not offered: lower a func"):
        ir_constant(3)


def test_what_is_refused_says_so_however_it_is_used():
    from jax.experimental import jax2tf
    from jax.experimental.pallas import mosaic_gpu

    for use in (
        lambda: jax2tf.convert(jnp.sin),
        lambda: mosaic_gpu.SMEM[(2, 3)],
        lambda: [*mosaic_gpu.Layout],
        lambda: mosaic_gpu.Layout.WGMMA.reduce(0),
    ):
        with pytest.raises(NotImplementedError, match=r"is not offered: "):
            use()


def test_hints_to_compilers_change_no_values():
    import jax
    from jax.experimental.layout import Layout, with_layout_constraint
    from jax.experimental.scheduling_groups import scheduling_group
    from jax.experimental.xla_metadata import must_fuse_call, set_xla_metadata, xla_metadata_call

    @jax.jit
    @must_fuse_call("one")
    @xla_metadata_call(group=1)
    def f(x):
        with set_xla_metadata(kind="slow"), scheduling_group("mine"):
            y = with_layout_constraint(set_xla_metadata(x + 1, kind="fast"), Layout((0, 1)))
        return jax.interpreters.xla.apply_primitive(jax.lax.neg_p, y)

    assert f(jnp.ones((1, 2))).tolist() == [[-2, -2]]
    with pytest.raises(ValueError, match="with_layout_constraint: the order of dimensions"):
        with_layout_constraint(jnp.ones((1, 2)), Layout((1, 0)))


def test_policies_are_a_module_and_an_attribute():
    import jax

    policies = importlib.import_module("jax.ad_checkpoint").checkpoint_policies
    assert policies.dots_saveable is jax.checkpoint_policies.dots_saveable
    assert jax.checkpoint_policies.dots_saveable is phalanx.checkpoint_policies.dots_saveable


def test_modules_that_are_refused_can_be_imported():
    from jax.experimental.pallas import mosaic_gpu

    assert not isinstance(3, mosaic_gpu.BlockSpec)
    with pytest.raises(NotImplementedError, match=r"mosaic_gpu.kernel is not offered: write the"):
        mosaic_gpu.kernel(print)


def test_what_a_refused_module_has_may_be_a_module():
    from jax.experimental.colocated_python import serialization
    from jax.extend import ifrt_programs

    assert not isinstance(3, serialization.DeviceList)
    with pytest.raises(NotImplementedError, match=r"serialization.DeviceList is not offered"):
        serialization.DeviceList()
    with pytest.raises(NotImplementedError, match=r"ifrt_programs.ifrt_programs.make is not off"):
        ifrt_programs.ifrt_programs.make()
    with pytest.raises(AttributeError):
        importlib.import_module("jax.experimental.layout").explicit_layout.part  # noqa: B018


def test_one_process_has_nobody_to_speak_to(monkeypatch):
    from jax._src.distributed import global_state

    assert (global_state.process_id, global_state.num_processes) == (0, 1)
    assert global_state.client is None
    member = SimpleNamespace(process=1, count=2)
    monkeypatch.setattr("phalanx.compat.private.distributed.joined_member", lambda: member)
    assert (global_state.process_id, global_state.num_processes) == (1, 2)


def test_shardings_tell_their_devices_in_order():
    import jax

    order = jax.devices()[::-1]
    mesh = jax.sharding.Mesh(order, "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    assert list(sharding._device_assignment) == order
    assert list(sharding._addressable_device_assignment) == order


def test_formats_tell_where_arrays_lie():
    import jax
    from jax.experimental.layout import Format, Layout

    last = jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    x = jax.device_put(jnp.ones((2, 3)), last)
    assert x.format == Format(Layout((0, 1)), x.sharding)
    compiled = jax.jit(lambda x, y: {"out": x @ y}).lower(x, y=x.T[:, 0]).compile()
    (ins, named), outs = compiled.input_formats, compiled.output_formats
    assert [ins[0].layout, named["y"].layout, outs["out"].layout] == [
        Layout((0, 1)), Layout((0,)), Layout((0,)),
    ]  # fmt: skip
    assert outs["out"].sharding.device_set == ins[0].sharding.device_set == last.device_set
    assert jax.device_put(jnp.zeros((2, 3)), x.format).format == x.format
    with pytest.raises(ValueError, match="order of dimensions in memory is the runtime's"):
        jax.device_put(x, Format(Layout((0, 1), sub_byte_element_size_in_bits=4), last))


def test_formats_say_where_an_array_lies():
    import jax
    from jax.experimental.layout import Format, Layout

    last = jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    for layout in (None, Layout((0, 1)), Layout.AUTO):
        x = jax.device_put(jnp.ones((2, 3)), Format(layout, last))
        y = jax.jit(lambda x: x, out_shardings=Format(layout, last))(jnp.ones((2, 3)))
        z = jax.lax.with_sharding_constraint(x, Format(layout, last))
        assert x.sharding.device_set == y.sharding.device_set == last.device_set
        assert z.sharding.device_set == last.device_set
        shape = jax.ShapeDtypeStruct((2, 3), "float32", sharding=Format(layout, last))
        assert shape.sharding == last
    given = jax.device_put({"a": 1.0, "b": 2.0}, {"a": Format(None, last), "b": None})
    assert given["a"].sharding.device_set == last.device_set
    jitted = lambda x, f: jax.jit(jnp.sin, in_shardings=f)(x)  # noqa: E731
    for refuses in (jax.device_put, jitted, jax.lax.with_sharding_constraint):
        with pytest.raises(ValueError, match="order of dimensions in memory is the runtime's"):
            refuses(jnp.ones((2, 3)), Format(Layout((1, 0)), last))


def test_a_prefix_that_is_none_is_told_with_its_path():
    from jax._src.tree_util import prefix_errors

    (error,) = prefix_errors(({"a": [1]}, None), ({"a": [1, 2]}, 3))
    assert isinstance(error("in_axes"), ValueError)
    assert "in_axes[0]['a']" in str(error("in_axes"))
    assert prefix_errors((1, {"a": 2}), ([1, 2], {"a": 3})) == []


def test_frames_of_ours_and_of_libraries_that_ask_are_left_out():
    import inspect

    from jax._src.traceback_util import _exclude_paths, include_frame, register_exclusion

    here = inspect.currentframe()
    assert include_frame(here)
    frames = []
    phalanx.jit(lambda x: frames.extend(f.frame for f in inspect.stack()) or x)(1.0)
    ours = [f for f in frames if "/phalanx/api/" in f.f_code.co_filename]
    assert ours and not any(map(include_frame, ours))
    register_exclusion(__file__)
    assert not include_frame(here)
    _exclude_paths.remove(__file__)


def test_equations_say_the_scope_in_which_they_are():
    import jax

    def f(x):
        with jax.named_scope("layer"):
            return x + 1

    (equation,) = jax.make_jaxpr(f)(1.0).eqns
    assert "layer" in str(equation.source_info.name_stack)


def test_the_class_of_a_dtype_is_what_the_field_has_there():
    import jax.dtypes
    import ml_dtypes

    assert jax.dtypes.bfloat16 is ml_dtypes.bfloat16
    assert not isinstance(1.0, jax.dtypes.bfloat16)
    assert jnp.ones(2, jax.dtypes.bfloat16).dtype == jnp.bfloat16


def test_enumerations_are_told_as_elsewhere():
    import jax

    high = jax.lax.Precision.HIGH
    assert (str(high), repr(high)) == ("HIGH", "Precision.HIGH")
    assert str(jax.lax.DotAlgorithmPreset.BF16_BF16_F32) == "BF16_BF16_F32"
    assert jax.jit(jnp.negative, inline=jax.Inline.JAX_EARLY)(1.0) == -1
    assert {x.name for x in jax.Inline} == {
        "JAX_EARLY", "JAX_LATE", "XLA_EARLY", "XLA_LATE", "AUTO",
    }  # fmt: skip


def test_frames_of_libraries_that_ask_for_it_are_left_out_of_tracebacks():
    from jax._src import traceback_util

    names: dict[str, Any] = {}
    exec(compile("def apply(f, x):\n    return f(x)\n", "library.py", "exec"), names)

    @traceback_util.api_boundary
    def apply(x):
        return names["apply"](phalanx.jit(lambda x: x.nothing), x)

    def files():
        with pytest.raises(AttributeError) as raised:
            apply(1.0)
        return {Path(frame.f_code.co_filename).name for frame, _ in walk_tb(raised.tb)}

    before = phalanx.config.traceback_filtering
    phalanx.config.update("traceback_filtering", "auto")
    try:
        everything = files()
        traceback_util.register_exclusion("library.py")
        assert files() == everything - {"library.py"} == {"test_served_names.py"}
        traceback_util._exclude_paths.remove("library.py")
        assert files() == everything
    finally:
        phalanx.config.update("traceback_filtering", before)


def test_the_values_of_what_a_forward_rule_gets():
    from jax.custom_derivatives import custom_vjp, custom_vjp_primal_tree_values

    @custom_vjp
    def scaled(x, by):
        return x["x"] * by

    def forward(x, by):
        assert x["x"].perturbed and not by.perturbed
        values = custom_vjp_primal_tree_values((x, by))
        return scaled(*values), values

    scaled.defvjp(forward, lambda v, ct: ({"x": ct * v[1]}, ct * v[0]["x"]), symbolic_zeros=True)
    assert phalanx.grad(lambda x: scaled({"x": x}, 3.0))(2.0) == 3.0
    with pytest.raises(TypeError, match="got 1"):
        custom_vjp_primal_tree_values([1.0])


def test_slices_of_references_begin_anywhere():
    import jax

    ref = jax.new_ref(jnp.arange(4))
    ref[jax.ds(jnp.int32(1), 2)] = 7
    assert ref[...].tolist() == [0, 7, 7, 3]
