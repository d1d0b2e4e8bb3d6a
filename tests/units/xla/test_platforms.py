"""A primitive may be lowered in another way on some platforms."""

import importlib
import pkgutil
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx import primitives as ops
from phalanx.core.platforms import AnyDevice
from phalanx.core.primitive import REGISTRY
from phalanx.errors import DeviceError
from phalanx.laws.primitives import Case
from phalanx.primitives import linalg
from phalanx.spmd.plan import Plan
from phalanx.transforms.passes import ready
from phalanx.xla.lower import lower

PRODUCT = "ProductOfElementaryHouseholderReflectors"
KEYS = np.array([3.0, 1.0, 2.0], np.float32)
WORDS = np.arange(4, dtype=np.uint32)


def text_on(platform, f, *args):
    """What ``f`` is lowered to for a device of ``platform``."""
    plan = Plan((AnyDevice(platform),))
    return lower(phalanx.make_program(f)(*args), plan).as_text()


def sorted_pair(x, y):
    return ops.sort(x, y, dim=0, num_keys=1, stable=True)


def bits(x):
    return ops.threefry2x32(x, x, x, x, once=True)


@pytest.mark.parametrize("platform, packed", [("cpu", True), ("gpu", False), ("tpu", False)])
def test_keys_are_packed_on_cpus(platform, packed):
    assert ("tensor<3xi64>" in text_on(platform, sorted_pair, KEYS, KEYS)) == packed


@pytest.mark.parametrize("platform, looped", [("cpu", True), ("gpu", False), ("tpu", False)])
def test_the_rounds_of_random_bits_are_a_loop_where_they_would_be_repeated(platform, looped):
    assert ("stablehlo.while" in text_on(platform, bits, WORDS)) == looped


def test_platforms_have_names_that_devices_have():
    known = {"cpu", "gpu", "cuda", "rocm", "tpu"}
    assert all(set(prim.lower_on) <= known for prim in REGISTRY.values())


@pytest.mark.parametrize("find", [lax.approx_max_k, lax.approx_min_k])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_greatest_are_searched_on_tpus_as_is_fast_there(find, dtype):
    def f(x):
        return find(x, 2, 0, recall_target=0.5, reduction_input_size_override=40)

    text = text_on("tpu", f, np.ones((20, 3), dtype))
    for said in ("recall_target = 5.0", "reduction_input_size_override = 40", "top_k = 2"):
        assert said in text
    assert text.count("@ApproxTopK") == 1 and "chlo.top_k" not in text
    with phalanx.enable_x64(True):
        exact = [text_on("tpu", f, np.ones((20, 3)))]
    for text in (*exact, *[text_on(p, f, np.ones((20, 3), dtype)) for p in ("cpu", "gpu")]):
        assert "chlo.top_k" in text and "ApproxTopK" not in text


def test_tpus_multiply_rows_in_groups_by_an_operation_that_skips_what_groups_do_not_share():
    x, y, sizes = np.ones((7, 3), np.float32), np.ones((2, 3, 4), np.float32), np.int32([4, 2])

    def loss(x, y):
        return lax.ragged_dot(x, y, sizes, preferred_element_type=np.float32).sum()

    text = text_on("tpu", phalanx.grad(loss, (0, 1)), x, y)
    assert text.count('chlo.ragged_dot"(') == 3 and "gather" not in text
    lanes = text_on("tpu", phalanx.vmap(loss, (0, None)), np.stack([x, x]), y)
    assert lanes.count('chlo.ragged_dot"(') == 1
    assert all("ragged_dot" not in text_on(p, loss, x, y) for p in ("cpu", "gpu"))


# ---- everything ---------------------------------------------------------------------------------


@cache
def programs():
    """Of every operation, at each of its examples."""
    for module in pkgutil.walk_packages(ops.__path__, "phalanx.primitives."):
        importlib.import_module(module.name)
    cases = [Case(prim, e) for prim in REGISTRY.values() for e in prim.examples]
    made = ((c.prim.name, phalanx.make_program(c)(*c.operands())) for c in cases)
    return [(name, ready(program).program) for name, program in made]


def refused(platform):
    """The operations that are refused in words; all others are lowered."""
    plan = Plan((AnyDevice(platform),))
    names = set()
    for name, program in programs():
        try:
            lower(program, plan)
        except (DeviceError, NotImplementedError) as e:
            assert re.match(f"{name}: |a function of Python|platform_dependent: ", str(e))
            names.add(name)
    return names


@pytest.mark.parametrize(
    ("platform", "missing"),
    [
        ("cpu", set()),
        ("gpu", {"hessenberg", "schur", "platform_index"}),  # whose example has no function for it
        ("rocm", {"hessenberg", "schur", "platform_index"}),
        ("tpu", {"eig", "hessenberg", "schur", "tridiagonal"}),
    ],
)
def test_every_operation_is_lowered_for_every_platform_or_refused(platform, missing):
    assert refused(platform) == missing


# ---- matrices -----------------------------------------------------------------------------------

CALLS = {
    "cholesky": ({"cusolver_potrf_ffi"}, set()),
    "det": ({"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"}, {"LuDecomposition"}),
    "eig": ({"cuhybrid_eig_real", "cuhybrid_eig_comp"}, None),
    "eigh": ({"cusolver_syevd_ffi"}, {"Eigh"}),
    "geqp3": ({"cuhybrid_geqp3"}, set()),
    "geqrf": ({"cusolver_geqrf_ffi"}, {"Qr"}),
    "householder_product": ({"cusolver_orgqr_ffi"}, {PRODUCT}),
    "lu": ({"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"}, {"LuDecomposition"}),
    "lu_pivots_to_permutation": ({"cu_lu_pivots_to_permutation"}, set()),
    "ormqr": ({"cusolver_ormqr_ffi"}, set()),
    "pinv": ({"cusolver_gesvdj_ffi"}, {"Eigh", "Qr", PRODUCT}),
    "qr": ({"cusolver_geqrf_ffi", "cusolver_orgqr_ffi", "cuhybrid_geqp3"}, {"Qr", PRODUCT}),
    "slogdet": ({"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"}, {"LuDecomposition"}),
    "solve": ({"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"}, {"LuDecomposition"}),
    "svd": ({"cusolver_gesvdj_ffi"}, {"Eigh", "Qr", PRODUCT}),
    "triangular_solve": (set(), set()),
    "tridiagonal": ({"cusolver_sytrd_ffi"}, None),
    "tridiagonal_solve": ({"cusparse_gtsv2_ffi", "cu_tridiagonal_solve_perturbed"}, set()),
}


def calls(program, platform):
    text = lower(program, Plan((AnyDevice(platform),))).as_text()
    return set(re.findall(r"custom_call @(\w+)", text))


def in_64_bits(case):
    wide = {"f": np.float64, "c": np.complex128}
    operands = [np.asarray(x) for x in case.operands()]
    return [x.astype(wide.get(x.dtype.kind, x.dtype)) for x in operands]


@pytest.mark.parametrize("name", CALLS)
def test_matrices_are_factorized_by_what_the_platform_has(name):
    prim = REGISTRY[name]
    cases = [Case(prim, e) for e in prim.examples]
    narrow = [phalanx.make_program(c)(*c.operands()) for c in cases]
    of_arrays = [c for c in cases if len(c.operands()) == len(c.example.args)]
    with phalanx.enable_x64(True):
        wide = [phalanx.make_program(c)(*in_64_bits(c)) for c in of_arrays] or narrow
        on_cuda, on_tpu = CALLS[name]
        on_rocm = {re.sub("^cu", "hip", call) for call in on_cuda}
        for platform, expected in {"gpu": on_cuda, "rocm": on_rocm, "tpu": on_tpu}.items():
            if expected is not None:
                for made in (narrow, wide):
                    assert set().union(*[calls(p, platform) for p in made]) == expected


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)])
def test_matrices_without_elements_are_not_factorized(platform, shape):
    m, n = shape[-2:]
    a, taus = np.zeros(shape, np.float32), np.zeros((*shape[:-2], 0), np.float32)
    whole = [
        lambda a: linalg.svd(a, full=True, vectors=True),
        lambda a: linalg.qr(a, full=True, pivoting=True),
        linalg.lu,
        linalg.geqrf,
        linalg.geqp3,
        lambda a: linalg.pinv(a, np.zeros(shape[:-2], np.float32)),
        *([linalg.det, lambda a: linalg.solve(a, a)] if m == n else []),
        *([lambda a: linalg.householder_product(a, taus)] if m >= n else []),
    ]
    for f in whole:
        assert "custom_call" not in text_on(platform, f, a)


@pytest.mark.parametrize(
    ("shape", "routine", "name"),
    [((1024, 9), "gesdd", "gesvdj"), ((1025, 9), "gesdd", "gesvd"), ((4, 3), "gesvd", "gesvd")],
)
def test_singular_values_on_gpus_are_found_by_size(shape, routine, name):
    def f(a):
        return linalg.svd(a, full=False, vectors=True, routine=routine)

    for a in (np.ones(shape, np.float32), np.ones(shape[::-1], np.float32)):
        assert f"@cusolver_{name}_ffi(" in text_on("gpu", f, a)


def test_calls_of_python_are_refused_where_there_are_none():
    def f(x):
        phalanx.debug.print("{}", x)
        return x

    with pytest.raises(DeviceError, match=r"a function of Python .* platform npu .*debug\.print"):
        text_on("npu", f, KEYS)
    assert all("xla_ffi_python_gpu_callback" in text_on(p, f, KEYS) for p in ("gpu", "rocm"))


@pytest.mark.parametrize("name", ["int2", "uint2"])
def test_arrays_of_two_bits_are_refused_where_compilers_end_the_process(name):
    x = np.ones((2, 3), getattr(ml_dtypes, name))
    with pytest.raises(DeviceError, match=rf"{name}: it is computed on cpu and gpu alone; .* int4"):
        text_on("tpu", lambda x: x + x, x)
    assert all("i2>" in text_on(p, lambda x: x + x, x) for p in ("cpu", "gpu"))


def test_tpus_send_what_functions_of_python_take_and_receive_what_they_give():
    outs = [((3,), "float32"), ((0, 2), "float32"), ((2,), "int4")]
    types = [phalanx.ShapeDtypeStruct(*o) for o in outs]

    def f(x):
        phalanx.debug.print("{}", x[:0])
        return phalanx.pure_callback(lambda *_: None, types, x, x.astype("int4"))

    text = text_on("tpu", f, KEYS)
    sent = re.findall(r'"stablehlo.send".* : \(tensor<(\S+)>, ', text)
    received = re.findall(r'"stablehlo.recv".* -> \(tensor<(\S+)>, ', text)
    # whether to call comes first, and who gives nothing is waited for by a number
    assert sent == ["i1", "i1", "3xf32", "3xi8"] and received == ["i32", "3xf32", "2xi8"]
    channels = re.findall(r"handle<handle = (\d+), type = (\d)>", text)
    assert len({n for n, _ in channels}) == 7 and {kind for _, kind in channels} == {"2", "3"}
    assert "custom_call" not in text
