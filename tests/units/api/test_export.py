"""Functions as portable modules: the same in other processes, on lanes, and differentiated."""

import collections
import importlib
import json
import pkgutil
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx import lax
from phalanx.control.exported import PortableModule
from phalanx.core.platforms import platform_of
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import ArrayType
from phalanx.export import DisabledSafetyCheck, deserialize, export
from phalanx.run.portable_modules import export_program
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import Mesh
from tests.compare import ROUNDED, close

agree = partial(close, within=ROUNDED)

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

X = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
POINT = collections.namedtuple("POINT", "x y")
phalanx.export.register_namedtuple_serialization(POINT, serialized_name="tests.POINT")


def f(x, scale):
    """Something of everything: products, loops, what XLA has under names of its own."""

    def step(total, row):
        return total + jnp.sin(row), total

    total, rows = lax.scan(step, jnp.zeros(3, x.dtype), x)
    return {"total": total * scale, "rows": phalanx.scipy.special.erfinv(rows / 4) @ x.T}


@pytest.fixture(scope="module")
def made():
    return export(phalanx.jit(f))(X, 2.0)


def test_it_gives_what_the_function_gives(made):
    agree(made.call(X, 2.0), f(X, 2.0))
    agree(phalanx.jit(made.call)(X, 2.0), f(X, 2.0))
    assert made.fun_name == "f" and made.platforms == ("cpu",) and made.nr_devices == 1
    assert [str(t) for t in made.in_avals] == ["f32[2,3]", "f32[]"]
    assert [str(t) for t in made.out_avals] == ["f32[2,2]", "f32[3]"]
    assert (
        made.calling_convention_version
        <= phalanx.export.maximum_supported_calling_convention_version
    )
    assert "stablehlo.while" in made.mlir_module() and "chlo" not in made.mlir_module()


@pytest.mark.spmd
@pytest.mark.parametrize("mapping", [phalanx.vmap, phalanx.pmap], ids=["vmap", "pmap"])
def test_lanes(made, mapping):
    xs = np.stack([X, X + 0.05, X - 0.05])
    agree(mapping(made.call, in_axes=(0, None))(xs, 2.0), mapping(f, in_axes=(0, None))(xs, 2.0))
    mixed = mapping(mapping(made.call, in_axes=(1, None)), in_axes=(None, 0))
    wanted = mapping(mapping(f, in_axes=(1, None)), in_axes=(None, 0))
    swapped, scales = np.moveaxis(xs, 0, 1), np.float32([1, 2])
    agree(mixed(swapped, scales), wanted(swapped, scales))


def test_shards_call_it():
    made = export(phalanx.jit(jnp.cos))(X[:1])
    mesh = Mesh(np.array(phalanx.devices()[:1]), ("a",))
    rows = phalanx.P("a")
    mapped = phalanx.shard_map(made.call, mesh=mesh, in_specs=rows, out_specs=rows)
    agree(mapped(X[:1]), np.cos(X[:1]))


def loss(g):
    return lambda x, scale: sum(map(jnp.sum, phalanx.tree.leaves(g(x, scale))))


def test_derivatives_come_along_as_far_as_they_are_serialized(made):
    again = deserialize(made.serialize(vjp_order=2))
    wanted = phalanx.grad(loss(f), argnums=(0, 1))(X, 2.0)
    agree(phalanx.grad(loss(made.call), argnums=(0, 1))(X, 2.0), wanted)
    agree(phalanx.grad(loss(again.call), argnums=(0, 1))(X, 2.0), wanted)
    second = phalanx.jacrev(phalanx.grad(loss(f)))(X, 2.0)
    agree(phalanx.jacrev(phalanx.grad(loss(again.call)))(X, 2.0), second)
    assert again.vjp().vjp().vjp() is None and not again.vjp().vjp().has_vjp()
    with pytest.raises(phalanx.errors.MissingRule, match=r"without its derivative.*vjp_order=1"):
        phalanx.grad(loss(deserialize(made.serialize()).call))(X, 2.0)
    with pytest.raises(ValueError, match="up to order 2, and vjp_order is 3"):
        again.serialize(vjp_order=3)
    with pytest.raises(TypeError, match="forward mode"):
        phalanx.jvp(made.call, (X, 2.0), (X, 1.0))


def test_whole_numbers_have_no_cotangents():
    made = export(phalanx.jit(lambda x, n: (x * n, n + 1)))(2.0, 3)
    assert [str(t.dtype) for t in made.vjp().in_avals][:2] == ["float32", "int32"]
    value, grad = phalanx.value_and_grad(lambda x: made.call(x, 3)[0])(2.0)
    assert (float(value), float(grad)) == (6.0, 3.0)


def test_what_it_closes_over_is_in_it():
    key, large = phalanx.random.key(3), jnp.arange(10_000.0)

    def g(x, k):
        return x + large[-3:] + phalanx.random.normal(key, (3,)), phalanx.random.split(k)

    made = deserialize(export(phalanx.jit(g))(X[0], key).serialize())
    for ours, wanted in zip(made.call(X[0], key), g(X[0], key), strict=True):
        assert ours.dtype == wanted.dtype
    agree(made.call(X[0], key)[0], g(X[0], key)[0])
    assert (made.call(X[0], key)[1] == g(X[0], key)[1]).all()


def test_static_arguments_are_fixed():
    power = phalanx.jit(lambda x, n: x**n, static_argnums=1)
    made = export(power)(phalanx.ShapeDtypeStruct((2,), "float32"), 3)
    agree(made.call(np.float32([1, 2])), np.float32([1, 8]))


def test_lanes_of_a_pmap_lie_on_one_device():
    mean = phalanx.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")
    made = export(mean)(X)
    assert made.nr_devices == 1
    agree(made.call(X), X - X.mean(0))


def test_other_trees_of_arguments():
    tree = {"a": (X, None), "b": {3: [POINT(X, collections.OrderedDict(z=X))]}}
    made = export(phalanx.jit(lambda t, *, s: phalanx.tree.map(lambda x: x * s, t)))(tree, s=2.0)
    again = deserialize(made.serialize())
    assert again.in_tree == made.in_tree and again.out_tree == made.out_tree
    agree(again.call(tree, s=2.0), phalanx.tree.map(lambda x: 2 * x, tree))
    other = collections.namedtuple("other", "x")
    with pytest.raises(ValueError, match="nobody said how that is written"):
        export(phalanx.jit(lambda t: t.x))(other(X)).serialize()
    with pytest.raises(ValueError, match="registered before"):
        phalanx.export.register_namedtuple_serialization(POINT, serialized_name="again")


# ---- platforms ------------------------------------------------------------------------------


def test_platforms_have_code_of_their_own():
    def g(x):
        return lax.platform_dependent(
            x, cpu=lambda x: x + 1, cuda=lambda x: x * 2, tpu=lambda x: x * 3
        )

    made = deserialize(export(phalanx.jit(g), platforms=["tpu", "cuda", "cpu"])(X).serialize())
    assert made.platforms == ("tpu", "cuda", "cpu") and made.uses_global_constants
    agree(made.call(X), X + 1)
    agree(phalanx.vmap(phalanx.grad(lambda x: export(phalanx.jit(g), platforms=["tpu", "cpu"])(1.0)
                                    .call(x)))(X[0]), np.ones(3))  # fmt: skip


def test_an_exported_function_knows_the_kinds_of_gpus():
    def number(platforms, device, version=""):
        made = PortableModule("f", b"", (), (), platforms, False)
        client = SimpleNamespace(platform_version=version)
        return made.number_of(platform_of(SimpleNamespace(platform=device, client=client)))

    assert number(("cpu", "cuda", "rocm"), "gpu", "rocm 60000") == 2
    assert number(("cpu", "cuda", "rocm"), "gpu", "cuda 12090") == 1
    with pytest.raises(ValueError, match="for platforms cuda and is used on rocm"):
        number(("cuda",), "gpu", "rocm 60000")


def test_what_is_alike_everywhere_is_written_once():
    made = export(phalanx.jit(jnp.sin), platforms=["tpu", "cpu"])(X)
    assert "case" not in made.mlir_module()
    agree(made.call(X), np.sin(X))


def test_another_platform_is_refused_unless_the_check_is_left_out():
    with pytest.raises(ValueError, match=r"for platforms cuda and is used on cpu"):
        export(phalanx.jit(jnp.sin), platforms=["cuda"])(X).call(X)
    anywhere = [DisabledSafetyCheck.platform()]
    made = export(phalanx.jit(jnp.sin), platforms=["cuda"], disabled_checks=anywhere)(X)
    agree(deserialize(made.serialize()).call(X), np.sin(X))
    with pytest.raises(ValueError, match="platforms must be some of cpu, cuda"):
        export(phalanx.jit(jnp.sin), platforms=["abacus"])


def alone(prim):
    """Whether its first example speaks of no named axes."""
    return bool(prim.examples) and not prim.examples[0].axes


@pytest.mark.parametrize("operation", sorted(n for n, p in REGISTRY.items() if alone(p)))
def test_every_primitive_can_be_written_and_read(operation):
    prim, example = REGISTRY[operation], REGISTRY[operation].examples[0]
    types = [t for t in example.args if isinstance(t, ArrayType)]

    def call(*given):
        rest = iter(given)
        args = [next(rest) if isinstance(a, ArrayType) else a for a in example.args]
        return prim(*args, **example.params)

    program = phalanx.make_program(call)(*types)
    assert "func.func public @main" in backend().exported_text(export_program(program, ["cpu"]))


# ---- bytes ----------------------------------------------------------------------------------


def test_another_process_loads_it(tmp_path, made):
    (tmp_path / "f.bin").write_bytes(made.serialize(vjp_order=1))
    code = """
import sys, json, numpy as np, phalanx
made = phalanx.export.deserialize(open(sys.argv[1], "rb").read())
x = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
value = made.call(x, 2.0)["total"]
slope = phalanx.grad(lambda s: made.call(x, s)["total"].sum())(2.0)
print(json.dumps([value.tolist(), float(slope)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "f.bin")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    value, slope = json.loads(done.stdout)
    agree(np.float32(value), f(X, 2.0)["total"])
    agree(np.float32(slope), f(X, 2.0)["total"].sum() / 2)


def test_damage_is_found(made):
    whole = bytes(made.serialize())
    for at in np.linspace(0, len(whole) - 1, 40, dtype=int):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        with pytest.raises(ValueError, match=r"^deserialize: "):
            deserialize(damaged)
        with pytest.raises(ValueError, match=r"^deserialize: "):
            deserialize(whole[:at])
    with pytest.raises(ValueError, match="of other libraries"):
        deserialize(b"\x1c\x00\x00\x00 flatbuffer")
    with pytest.raises(TypeError, match="bytes are needed"):
        deserialize("text")


def test_a_module_that_is_none_is_refused():
    with pytest.raises(ValueError, match="the module cannot be read"):
        backend().exported_text(b"ML\xefR nothing")


# ---- what cannot be -------------------------------------------------------------------------


def calls_python(x):
    return phalanx.pure_callback(lambda v: v, x, x)


def prints(x):
    phalanx.debug.print("{}", x)
    return x


@pytest.mark.parametrize("function", [calls_python, prints])
def test_functions_of_python_are_refused_with_their_line(function):
    inside = phalanx.jit(lambda x: lax.fori_loop(0, 2, lambda i, x: function(x), x))
    with pytest.raises(phalanx.errors.MissingRule, match=r"at test_export.py:\d+ \(\w+\)"):
        export(inside)(X)


def test_a_call_of_python_that_nothing_needs_is_left_out():
    made = export(phalanx.jit(lambda x: (calls_python(x), x * 2)[1]))(X)
    np.testing.assert_array_equal(made.call(X), X * 2)


def test_wrong_calls_are_refused(made):
    with pytest.raises(ValueError, match=r"exported for f32\[2,3\] as args\[0\].*f32\[3\]"):
        made.call(X[0], 2.0)
    with pytest.raises(ValueError, match=r"called with i32\[\]"):
        made.call(X, 2)
    with pytest.raises(phalanx.errors.TreeError, match=r"structure \(\*, \*\)"):
        made.call(X)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export(f)
    with pytest.raises(ValueError, match="closes over values of a transformation"):
        phalanx.vmap(lambda x: export(phalanx.jit(lambda y: x + y))(1.0))(X[0])


# ---- symbolic dimensions --------------------------------------------------------------------


@pytest.mark.parametrize("spec, like, wanted", [
    ("2, 3", None, (2, 3)), ("(2, 3)", (2, 3), (2, 3)), ("_, ...", (4, 5, 6), (4, 5, 6)),
    ("...", (), ()), (None, (7,), (7,)), ("", None, ()), ("5,", None, (5,)),
])  # fmt: skip
def test_shapes_of_constants(spec, like, wanted):
    assert phalanx.export.symbolic_shape(spec, like=like) == wanted


@pytest.mark.parametrize("spec, like, error", [
    ("2, 3", (2, 4), "stands where `like` has 4"), ("2", (2, 2), "1 dimensions, `like` 2"),
    ("_", None, "has none"), ("..., 3", (2, 3), "must come last"), ("...", None, "missing"),
])  # fmt: skip
def test_shapes_that_are_refused(spec, like, error):
    with pytest.raises(ValueError, match=error):
        phalanx.export.symbolic_shape(spec, like=like)


def test_specs_of_trees():
    specs = phalanx.export.symbolic_args_specs({"a": X, "b": (X, X)}, {"a": "4, _", "b": None})
    assert [s.shape for s in phalanx.tree.leaves(specs)] == [(4, 3), (2, 3), (2, 3)]
