"""What is imported when somebody first asks for it."""

import inspect
import pickle
import pkgutil
import subprocess
import sys
import traceback
import types
import typing

import msgspec
import pytest

import phalanx.experimental
from docs.generator import public

LATE = [
    "jaxlib.mlir", "jaxlib.xla_client", "opt_einsum", "phalanx.nn", "phalanx.random",
    "phalanx.experimental",
    "phalanx.processes.member", "socket", "numpy.random", "importlib.metadata", "json", "html",
]  # fmt: skip


def test_what_is_not_asked_for_is_not_imported():
    program = f"import sys, phalanx; print([m for m in {LATE} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stderr


def test_rooms_are_there_when_they_are_asked_for():
    program = (
        "import phalanx, phalanx.numpy as jnp\n"
        "f = phalanx.jit(lambda k: phalanx.nn.relu(phalanx.random.normal(k, (3,))))\n"
        "x = f(phalanx.random.key(0))\n"
        "print(jnp.einsum('i,i', x, x).shape, phalanx.experimental.checkpoint.__name__)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "() phalanx.experimental.checkpoint", out.stderr


def test_all_late_modules_of_experimental_are_attributes():
    for name in ("checkpoint", "multihost_utils", "ode", "safetensors"):
        assert getattr(phalanx.experimental, name).__name__ == f"phalanx.experimental.{name}"


PACKAGES = ["scipy", "scipy.sparse", "scipy.spatial", "scipy.cluster", "example_libraries"]
VERSIONS = {"__version__", "__version_info__"}
MODULES = [*public.modules(), *(f"phalanx.{name}" for name in PACKAGES)]


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_what_is_public_and_nothing_else(name):
    module = public._module(name)
    listed = dir(module)
    for own in listed:
        value = getattr(module, own)
        assert own in VERSIONS or not own.startswith("_")
        assert value is not types
        if isinstance(value, types.ModuleType):
            assert value.__name__.startswith("phalanx.")
    assert {*public.names_of(module)} <= {*listed, *vars(module).get("_OLD", ())}
    assert not {"Any", "Callable", "Sequence", "annotations", "dataclass"} & {*listed}
    with pytest.raises(AttributeError, match="there_is_none is not there"):
        module.there_is_none  # noqa: B018


def test_old_names_are_there_and_not_listed():
    assert not {"host_id", "softmax_custom_jvp"} & {*dir(phalanx)}
    assert {*phalanx._OLD} <= {*phalanx.__all__} - {*dir(phalanx)}
    assert all([hasattr(phalanx, name) for name in phalanx._OLD])
    with pytest.raises(AttributeError) as raised:
        phalanx.ad_checkpont  # noqa: B018
    assert "ad_checkpoint" not in str(raised.value)  # nobody is led to it


def test_rooms_of_the_package_are_not_listed():
    rooms = {"api", "base", "core", "control", "run", "transforms", "spmd", "xla", "compat"}
    assert not rooms & {*dir(phalanx)}
    assert {"numpy", "lax", "random", "errors", "tree_util"} <= {*dir(phalanx)}
    assert {"linalg", "fft"} <= {*dir(phalanx.numpy)}
    assert not {"shaping", "creation"} & {*dir(phalanx.numpy)}


def test_what_is_public_is_known_by_a_public_place():
    known = 0
    for entry in public.entries():
        value = entry.value
        if isinstance(value, type | types.FunctionType) and value.__module__.startswith("phalanx"):
            known += 1
            method = value.__name__ != entry.short  # such as bcoo_todense
            record = isinstance(value, msgspec.StructMeta)
            assert method or record or value.__module__ in public.modules(), entry
            found = pkgutil.resolve_name(f"{value.__module__}:{value.__qualname__}")
            assert found is value is pickle.loads(pickle.dumps(value)), entry
            assert isinstance(value, type) or inspect.getsource(value), entry
            public.signature(value)  # which annotations of records can refuse
    assert known > 1000
    assert repr(phalanx.sharding.Mesh) == "<class 'phalanx.sharding.Mesh'>"
    assert inspect.unwrap(phalanx.lax.sin).__module__ == "phalanx.lax"  # as printers of trees ask
    assert repr(phalanx.Array) == "<class 'phalanx.Array'>"
    assert phalanx.dtypes.TypePromotionError.__module__ == "phalanx.errors"
    with pytest.raises(OSError, match=r"source|class definition"):  # not lines of another file
        inspect.getsource(phalanx.sharding.Mesh)


def test_annotations_of_public_classes_are_read_where_they_were_written():
    for entry in public.entries():
        kind = isinstance(entry.value, type) and not issubclass(entry.value, Exception)
        if kind and entry.short != "Primitive":  # it has attributes with names of types
            typing.get_type_hints(entry.value)
    hints = typing.get_type_hints(phalanx.export.Exported)
    assert hints["fun_name"] is str and hints["in_avals"] == phalanx.core.types.Types


def test_what_is_near_is_suggested_once():
    with pytest.raises(AttributeError) as caught:
        phalanx.numpy.arrange  # noqa: B018
    said = "".join(traceback.format_exception(caught.value))
    assert said.count("Did you mean") == 1


def test_a_module_that_is_being_imported_is_found(monkeypatch):
    from phalanx import xla
    from phalanx.xla import plugins

    monkeypatch.delattr(xla, "plugins")  # which the import sets at its end
    found = {}
    exec("from phalanx.xla import plugins", found)
    assert found["plugins"] is plugins
