"""Texts of programs: the option ``dump_ir_to``."""

import re

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import ConfigError


@pytest.fixture
def dumped():
    yield lambda folder: phalanx.config.update("dump_ir_to", folder)
    phalanx.config.update("dump_ir_to", None)


def test_a_program_its_passes_and_its_module_are_written(dumped, tmp_path):
    def drawn(key, x):
        jnp.sin(x)  # which nobody needs
        return x + phalanx.random.uniform(key, x.shape)

    dumped(tmp_path / "new")
    phalanx.jit(drawn)(phalanx.random.key(0), jnp.ones(3))
    files = sorted(f for f in (tmp_path / "new").iterdir() if "-drawn-" in f.name)
    stages = [re.fullmatch(r"\d+-\d{4}-drawn-(\w+)\.txt", f.name)[1] for f in files]
    assert stages == ["traced", "dce", "on_words", "module"]
    traced, needed, words, module = [f.read_text("utf-8") for f in files]
    assert "= sin " in traced and "sin" not in needed
    assert "key<" in needed and "key<" not in words
    assert "@main" in module and "test_dump.py" in module


def test_where_nothing_can_be_written(dumped, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    x = jnp.ones(7)
    dumped(file)
    with pytest.raises(ConfigError, match=r"dump_ir_to: no texts can be written to '.*file'"):
        phalanx.jit(lambda x: x * 3)(x)
