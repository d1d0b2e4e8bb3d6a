"""Files of exported functions that ``serialize`` did not write: none does more than compute."""

import dataclasses
import json
import subprocess
import sys

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.api.portable_bytes import pack, unpack
from phalanx.export import DisabledSafetyCheck, deserialize, export
from phalanx.xla import trial
from phalanx.xla.artifacts import artifact_of
from phalanx.xla.mlir_contexts import context_for_module
from phalanx.xla.module import bytecode_of

ir = pytest.importorskip("jaxlib.mlir.ir")
T = "tensor<4x4xf32>"
CALL = "stablehlo.custom_call"


def main(body, more="", of=T):
    return f"{more}\nfunc.func public @main(%a: {of}) -> {of} {{ {body}\n return %a : {of} }}"


def called(name, config="", outs=T):
    said = f"{{has_side_effect = true, api_version = 4 : i32, backend_config = {{{config}}}}}"
    many = f":{outs.count('tensor')}" if outs.count("tensor") > 1 else ""
    return main(f"%r{many} = {CALL} @{name}(%a) {said} : ({T}) -> ({outs})")


def described(name, **said):
    text = json.dumps(said).replace('"', '\\"')
    how = f'has_side_effect = true, backend_config = "{text}"'
    return main(f'%r = {CALL} @"{name}"(%a) {{{how}}} : ({T}) -> {T}')


INFO = "tensor<i32>"
HOSTILE = {
    "calls Python": (called("xla_ffi_python_cpu_callback", "index = 0 : ui64"), "cpu_callback"),
    "calls what there is not": (called("xla_ffi_python_cpu_callback", "index = 9 : ui64"), "calls"),
    "calls another's function": (called("system"), "'system'"),
    "writes beyond an array": (
        called("lapack_spotrf_ffi", "uplo = 76 : ui8", "tensor<1x1xf32>, tensor<i32>"),
        "lapack_spotrf_ffi is called with",
    ),
    "makes vectors that have no room": (
        called(
            "lapack_sgesdd_ffi",
            "mode = 65 : ui8",
            f"{T}, tensor<4xf32>, tensor<4x1xf32>, tensor<1x4xf32>, tensor<i32>",
        ),
        "lapack_sgesdd_ffi is called with",
    ),
    "tells a function of another letter": (
        called("lapack_spotrf_ffi", "uplo = 7 : ui8", f"{T}, tensor<i32>"),
        "lapack_spotrf_ffi is told uplo = 7",
    ),
    "tells a function to go beyond the last row": (
        called("lapack_sgehrd_ffi", "low = 1 : i32, high = 5 : i32", f"{T}, tensor<3xf32>, {INFO}"),
        "lapack_sgehrd_ffi is told high = 5",
    ),
    "tells a function what it does not know": (
        called("lapack_spotrf_ffi", "uplo = 76 : ui8, more = 1 : i32", f"{T}, tensor<i32>"),
        "lapack_spotrf_ffi is told more = 1",
    ),
    "tells the partitioner of dimensions that there are not": (
        called("lapack_spotrf_ffi", "uplo = 76 : ui8", f"{T}, tensor<i32>").replace(
            "api_version", 'mhlo.frontend_attributes = {num_batch_dims = "99"}, api_version'
        ),
        "tells the compiler",
    ),
    "has another operation computed in parts": (
        described("phalanx_by_block", operation="host_call", params={}, platform="cpu"),
        "a part of 'host_call'",
    ),
    "has parts that are none": (
        described(
            "phalanx_by_block",
            operation="attention",
            params={"scale": 1.0, "causal": False, "window": 0, "biased": False},
            platform="cuda",
            operands=[["a", ""]],
            results=[["a", ""]],
            sizes={"a": 3},
        ),
        "told to cut [4, 4] in [3, 1]",
    ),
    "tells cuDNN nothing": (described("__cudnn$fmhaSoftmax"), "cudnn_fmha_backend_config"),
    "tells a compiler more": (described("Qr", more=1), "Qr is "),
    "leaves out what an operation has to be told": (
        f"func.func private @g(%a: {T}) -> {T} {{ return %a : {T} }}\n"
        f"func.func public @main(%a: {T}) -> {T} {{ "
        f'%r = stablehlo.composite "chlo.top_k" %a {{decomposition = @g}} : ({T}) -> {T}\n'
        f"return %r : {T} }}",
        "chlo.top_k lacks its k",
    ),
    "waits for ever": (
        main(
            '%t = stablehlo.create_token : !stablehlo.token\n %r:2 = "stablehlo.infeed"(%t) '
            '{infeed_config = "", layout = [[]]} : (!stablehlo.token) -> '
            "(tensor<i32>, !stablehlo.token)"
        ),
        "has the operation stablehlo.",
    ),
    "calls itself": (main(f"%r = func.call @main(%a) : ({T}) -> {T}"), "main calls itself"),
    "calls one another": (
        main(
            f"%r = func.call @g(%a) : ({T}) -> {T}",
            f"func.func private @g(%a: {T}) -> {T} {{ %r = func.call @h(%a) : ({T}) -> {T}\n"
            f" return %r : {T} }}\nfunc.func private @h(%a: {T}) -> {T} {{ "
            f"%r = func.call @g(%a) : ({T}) -> {T}\n return %r : {T} }}",
        ),
        "calls itself",
    ),
    "has no body": (
        main(f"%r = func.call @g(%a) : ({T}) -> {T}", f"func.func private @g({T}) -> {T}"),
        "g has no body",
    ),
    "has no main": (f"func.func @f(%a: {T}) -> {T} {{ return %a : {T} }}", "no main function"),
    "is something else": (main("", of="tensor<9xi32>"), "and described as"),
    "is larger than memory": (
        main(
            "%i = stablehlo.iota dim = 0 : tensor<1152921504606846976xf32>\n"
            f"%r = {CALL} @annotate_device_placement(%i) {{has_side_effect = true}} : "
            "(tensor<1152921504606846976xf32>) -> tensor<f32>"
        ),
        "larger than any memory",
    ),
    "tells the compiler": (
        called("annotate_device_placement").replace(
            "api_version", 'mhlo.frontend_attributes = {_xla_compute_type = "host"}, api_version'
        ),
        "tells the compiler",
    ),
    "has a sharding of another kind": (
        called("annotate_device_placement").replace(
            "api_version", 'mhlo.sharding = "{{bad", api_version'
        ),
        "says mhlo.sharding",
    ),
}


@pytest.fixture(scope="module")
def made():
    return export(phalanx.jit(lambda x: x @ x + 1))(jnp.ones((4, 4)))


def artifact(text):
    with context_for_module():
        return artifact_of(bytecode_of(ir.Module.parse(text)))


@pytest.mark.parametrize("what", HOSTILE)
def test_a_module_that_we_do_not_write_is_refused(made, what):
    text, why = HOSTILE[what]
    blob = dataclasses.replace(made, mlir_module_serialized=artifact(text)).serialize()
    with pytest.raises(ValueError, match=r"deserialize|export") as caught:
        deserialize(blob)
    assert why in str(caught.value)


def test_a_name_that_is_no_text_is_refused(made):
    """MLIR takes it, and Python does not."""
    text = called("annotate_device_placement").replace(
        "api_version", "abcdefg = 1 : i32, api_version"
    )
    damaged = artifact(text).replace(b"abcdefg", b"abc\xffefg")
    blob = dataclasses.replace(made, mlir_module_serialized=damaged).serialize()
    with pytest.raises(ValueError, match=r"no text|none that export writes|cannot be read"):
        deserialize(blob)


def test_a_file_does_not_choose_which_functions_of_others_it_calls(made):
    allowed = (DisabledSafetyCheck.custom_call("xla_ffi_python_cpu_callback"),)
    blob = dataclasses.replace(
        made,
        mlir_module_serialized=artifact(HOSTILE["calls Python"][0]),
        disabled_safety_checks=allowed,
    ).serialize()
    with pytest.raises(ValueError, match="is not registered"):
        deserialize(blob).call(jnp.ones((4, 4)))


def test_of_what_is_told_of_a_function_all_is_looked_at(made, monkeypatch):
    """Whatever is written in place of a part, reading is a ValueError, or gives a function."""
    (told, module), *_ = unpack(made.serialize())
    deserialize(made.serialize())
    monkeypatch.setattr(trial, "check", lambda _: "")  # the module is the same each time
    del told["size"]
    wrong = [None, -1, 1 << 70, "", "n", [], [[]], {}, [None], ["*", "*"], [[[2], "float32"]]]
    for name in told:
        for value in wrong:
            try:
                deserialize(pack([({**told, name: value}, module)]))
            except (ValueError, TypeError) as e:
                assert type(e) is ValueError, (name, value, e)


@pytest.mark.parametrize("length", [-1, -5, -(2**63), True, 1.5, 4.0, "0-5", "n-n-3"])
def test_a_length_that_none_has_is_refused(made, length):
    """The least number of 64 bits stands in modules for a length that is not known."""
    (told, module), *_ = unpack(made.serialize())
    del told["size"]
    for name in ("in_avals", "out_avals"):
        [[shape, *more]] = told[name]
        with pytest.raises(ValueError, match="deserialize: the length of a dimension is a number"):
            deserialize(pack([({**told, name: [[[*shape[1:], length], *more]]}, module)]))


FUZZ = """
import random, sys
from phalanx.api.portable_bytes import pack, unpack
from phalanx.export import deserialize
import phalanx.numpy as jnp

(told, module), *_ = unpack(open(sys.argv[1], "rb").read())
del told["size"]
for seed in map(int, sys.argv[2:]):
    draw, code = random.Random(seed), bytearray(module)
    for _ in range(draw.choice([1, 1, 2])):
        code[draw.randrange(len(code))] ^= 1 << draw.randrange(8)
    try:
        deserialize(pack([(told, bytes(code))])).call(jnp.ones((4, 4)))
    except ValueError:
        pass
"""


def test_bytes_that_were_changed_end_no_process(made, tmp_path):
    """Those in which reading them here would run for ever or fault come first."""
    (tmp_path / "f").write_bytes(made.serialize())
    command = [sys.executable, "-c", FUZZ, tmp_path / "f", *map(str, range(12))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("letter", range(len("main")))
def test_texts_that_are_none_are_refused(made, letter):
    (told, module), *_ = unpack(made.serialize())
    del told["size"]
    code = bytearray(module)
    code[module.index(b"\0main\0") + 1 + letter] ^= 128  # a bit that no letter has
    with pytest.raises(ValueError, match="not in UTF-8"):
        deserialize(pack([(told, bytes(code))]))


def test_lengths_that_become_known_are_looked_at_again():
    """A call of which lengths are open passes at first."""
    shape = phalanx.export.symbolic_shape("n, n")
    made = export(phalanx.jit(jnp.linalg.cholesky))(phalanx.ShapeDtypeStruct(shape, "float32"))
    again = deserialize(made.serialize())
    assert again.call(jnp.eye(3)).tolist() == jnp.eye(3).tolist()


def test_a_process_of_its_own_says_which_modules_cannot_be_read(made):
    (_, module), *_ = unpack(made.serialize())
    assert trial.check([module]) == ""
    with pytest.raises(ValueError, match="the module cannot be read"):
        trial.check([module, module[: len(module) // 2]])
