"""Who asks a module for a name that it lacks is told what is near, or what took its place."""

import contextlib
import importlib
import importlib.util
import pkgutil
import re
import traceback

import pytest

import phalanx
from phalanx.base.former_names import FORMER_NAMES, FORMER_WAYS

MODULES = (
    "phalanx", "phalanx.dlpack", "phalanx.export", "phalanx.ffi", "phalanx.image", "phalanx.lax",
    "phalanx.lax.linalg", "phalanx.nn", "phalanx.numpy", "phalanx.numpy.fft",
    "phalanx.numpy.linalg", "phalanx.profiler", "phalanx.random", "phalanx.scipy.linalg",
    "phalanx.scipy.special", "phalanx.sharding",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_is_not_there(module):
    with pytest.raises(AttributeError, match=f"^{module}: nonsense_at_all is not there$"):
        _ = importlib.import_module(module).nonsense_at_all


@pytest.mark.parametrize(
    "module, name, near",
    [("random", "norml", "normal"), ("nn", "rellu", "relu"), ("numpy.linalg", "nrom", "norm")],
)
def test_a_name_that_is_nearly_there(module, name, near):
    with pytest.raises(AttributeError, match=f"{name} is not there. Did you mean '{near}'"):
        getattr(importlib.import_module(f"phalanx.{module}"), name)


@pytest.mark.parametrize("former", FORMER_NAMES)
def test_what_took_the_place_of_a_name_is_there(former):
    now = f"phalanx.{FORMER_NAMES[former]}"
    with pytest.raises(AttributeError, match=f": {former} is not there: use {re.escape(now)}$"):
        getattr(phalanx, former)
    assert pkgutil.resolve_name(now) is not None


@pytest.mark.parametrize("former", FORMER_WAYS)
def test_how_one_does_now_what_a_name_did(former):
    now = FORMER_WAYS[former]
    with pytest.raises(AttributeError, match=f"{former} is not there: use {re.escape(now)}$"):
        getattr(phalanx, former)
    written = re.match(r"-?([\w.]*)", now)[1].removeprefix("jnp").removeprefix(".")
    if written not in ("0.0", "float", "complex", "int", "len", "functools.partial") and not (
        written.startswith("x.")
    ):
        places = ("phalanx", "phalanx.numpy")
        assert any(_resolved(f"{place}.{written}") for place in places), written


def _resolved(name):
    with contextlib.suppress(AttributeError, ImportError):
        return pkgutil.resolve_name(name) is not None
    return False


@pytest.mark.parametrize(
    "module, name, where",
    [
        ("numpy", "softmax", "nn.softmax"), ("numpy", "inv", "numpy.linalg.inv"),
        ("lax", "matmul", "numpy.matmul"), ("", "psum", "lax.psum"), ("nn", "erf", "lax.erf"),
        # in other letters, or with the name of the module
        ("", "tree_map", "tree.map"), ("", "tree_leaves", "tree.leaves"),
        ("numpy", "NaN", "numpy.nan"), ("numpy", "Inf", "numpy.inf"),
        ("numpy", "round_", "numpy.round"), ("nn", "ReLU", "nn.relu"),
        ("nn", "LogSoftmax", "nn.log_softmax"), ("numpy", "linalg_norm", "numpy.linalg.norm"),
        ("", "random_normal", "random.normal"),
    ],
)  # fmt: skip
def test_a_name_of_another_module(module, name, where):
    found = importlib.import_module(f"phalanx.{module}".rstrip("."))
    with pytest.raises(AttributeError, match=f"{name} is not there: use phalanx.{where}$"):
        getattr(found, name)


def test_a_name_that_is_imported_from_where_it_is_not():
    with pytest.raises(ImportError, match=r"random: randn is not there: use phalanx\.random\.norm"):
        from phalanx.random import randn  # noqa: F401
    with pytest.raises(
        ImportError, match=r"numpy: vstak is not there. Did you mean 'vstack'\?$"
    ) as e:
        from phalanx.numpy import vstak  # noqa: F401
    assert [frame.filename for frame in traceback.extract_tb(e.value.__traceback__)] == [__file__]


def test_what_took_the_place_of_a_keyword_is_told():
    x = phalanx.numpy.ones(3)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'a_min'. Use 'min'$"):
        phalanx.numpy.clip(x, a_min=0)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'newshape'. Use 'shape'$"):
        phalanx.numpy.reshape(x, newshape=(3, 1))


def test_what_other_libraries_call_otherwise_is_told():
    x = phalanx.numpy.ones(3)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'dim'\. Use 'axis'$"):
        phalanx.numpy.sum(x, dim=0)
    with pytest.raises(TypeError, match=r"keyword argument 'unbiased'\. Use ddof=1, or ddof=0$"):
        x.std(unbiased=False)
    with pytest.raises(TypeError, match=r"for one parameter are a tuple: \(3, 1, 1\)$"):
        x.view(3, 1, 1)
    with pytest.raises(TypeError, match=r"3 is no dtype; x\.reshape\(\(3, 1\)\) gives"):
        x.view(3, 1)
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 3 were given$"):
        phalanx.numpy.abs(1, 2, 3)
    with pytest.raises(TypeError, match=r"; phalanx\.devices\('cuda'\)\[0\] is one$"):
        phalanx.numpy.zeros(3, device="cuda")
    with pytest.raises(
        AttributeError, match=r"random: seed is not there: use phalanx\.random\.key"
    ):
        _ = phalanx.random.seed
    for name in ("Linear", "Conv2d"):
        with pytest.raises(AttributeError, match=rf"phalanx\.nn: {name} is not there: use .* flax"):
            getattr(phalanx.nn, name)
    with pytest.raises(TypeError, match="Use 'in_axes' or 'axis_name'"):
        phalanx.pmap(lambda x: x, axis="i")
    with pytest.raises(AttributeError, match=r"f32\[3\] has no attribute 'float': x\.astype"):
        x.float()
    with pytest.raises(TypeError, match=r"f32\[3\] does not take the format '\.2f'; format its el"):
        f"{x:.2f}"
    assert f"{x[0]:.2f} {x}" == "1.00 [1. 1. 1.]"


def test_a_keyword_that_is_nearly_there():
    with pytest.raises(TypeError, match=r"^sum: called with .*'axes'. Did you mean 'axis'\?$"):
        phalanx.numpy.ones(3).sum(axes=0)
    with pytest.raises(TypeError, match=r"^jit: .*'static_argnum'. Did you mean 'static_argnums"):
        phalanx.jit(len, static_argnum=0)


@pytest.mark.parametrize(
    "module, name, instead",
    [
        ("numpy", "random", "use phalanx.random"),
        ("experimental", "pallas", "write the kernel with numpy and lax"),
        ("", "extend", "python -m phalanx.as_jax"),
        ("experimental.layout", "with_layout_constraint", "the compiler's"),
    ],
)
def test_names_of_others_that_are_asked_for(module, name, instead):
    found = importlib.import_module(f"phalanx.{module}".rstrip("."))
    with pytest.raises(AttributeError, match=f"{name} is not there: .*{instead}"):
        getattr(found, name)


@pytest.mark.parametrize(
    "module, near",
    [("numpi", "numpy"), ("scipy.specal", "special"), ("nn.initializer", "initializers")],
)
def test_a_module_that_is_nearly_there(module, near):
    with pytest.raises(ModuleNotFoundError, match=f"phalanx.{module}'. Did you mean '{near}'") as e:
        importlib.import_module(f"phalanx.{module}")
    files = [frame.filename for frame in traceback.extract_tb(e.value.__traceback__)]
    assert not any("phalanx/base" in file for file in files)
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'phalanx\.nonsense'$"):
        importlib.import_module("phalanx.nonsense")
    # who asks where a module is, without importing it, is told that it is not there
    assert importlib.util.find_spec(f"phalanx.{module}") is None
