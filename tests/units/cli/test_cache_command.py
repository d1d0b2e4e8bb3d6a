"""`phalanx cache` and `phalanx cache clear`."""

import pytest

from phalanx.base.config import config
from phalanx.cli import main


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture(autouse=True)
def restored():
    names = "compilation_cache_dir", "compilation_cache_max_size"
    before = {name: getattr(config, name) for name in names}
    yield
    for name, value in before.items():
        config.update(name, value)


def test_cache_is_shown_and_cleared(tmp_path, capsys):
    config.update("compilation_cache_dir", str(tmp_path))
    config.update("compilation_cache_max_size", 4096)
    (tmp_path / f"{'0' * 64}.compiled").write_bytes(b"x" * 2048)
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert tmp_path.name in out.replace("\n", "") and "2 KiB" in out and "4 KiB" in out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("1 compiled programs removed")
    assert not list(tmp_path.iterdir())


def test_no_cache_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    config.update("compilation_cache_dir", str(tmp_path / "file" / "c"))
    assert main(["cache"]) == 1
    assert "it cannot be made" in capsys.readouterr().out
    config.update("compilation_cache_dir", None)
    assert main(["cache", "clear"]) == 1
    assert capsys.readouterr().out.startswith("no cache: ")
