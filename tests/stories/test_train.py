"""The training program of the tutorial: alike on all devices, in chunks, and when interrupted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phalanx
from phalanx.cli.demo import load_example

ROOT = Path(__file__).parents[2]
program = load_example("train")


def losses(log):
    return [(entry["training loss"], entry["test loss"]) for entry in log]


@pytest.fixture
def few(monkeypatch):
    """A fourteenth of the images."""
    (images, labels), (others, answers) = program.load()
    data = (images[:107], labels[:107]), (others[:23], answers[:23])
    monkeypatch.setattr(program, "load", lambda: data)


@pytest.mark.spmd
def test_chunks_and_interruptions_change_nothing(few, tmp_path):
    whole = program.train(tmp_path / "whole", epochs=3, size=24)
    chunks = program.train(tmp_path / "chunks", epochs=3, size=24, lanes_at_once=2)
    np.testing.assert_allclose(losses(chunks), losses(whole), rtol=0.02)  # of bfloat16
    assert losses(whole)[-1] < losses(whole)[0]
    again, write = tmp_path / "again", program.Log.write

    def interrupted(log, entry):
        write(log, entry)
        if entry["epoch"] == 2:  # before it is saved
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(program.Log, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.train(again, epochs=3, size=24)
    resumed = program.train(again, epochs=3, size=24)
    assert losses(resumed) == losses(whole)


@pytest.mark.spmd
def test_one_device_gives_the_losses_of_all(few, tmp_path, monkeypatch):
    expected = program.train(tmp_path / "all", epochs=1, size=24)
    over_batches = program.over_batches

    def on_one(step, statics, **options):
        return over_batches(step, statics, devices=phalanx.devices()[:1], **options)

    monkeypatch.setattr(program, "over_batches", on_one)
    alone = program.train(tmp_path / "one", epochs=1, size=24)
    np.testing.assert_allclose(losses(alone), losses(expected), rtol=0.02)


@pytest.mark.skipif(phalanx.device_count() != 8, reason="once is enough")
def test_two_processes_give_the_losses_of_one_and_draw(tmp_path):
    logs, here = (
        [],
        {"PYTHONPATH": str(ROOT), "PHALANX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"},
    )
    for launched in ([], ["-m", "phalanx", "launch", "-n", "2"]):
        folder = tmp_path / str(len(launched))
        options = ["--folder", folder, "--epochs", "1", "--size", "480"]
        command = [sys.executable, *launched, ROOT / "examples/train.py", *options]
        subprocess.run(command, env=os.environ | here, check=True, timeout=240)
        logs.append([json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()])
        assert (folder / "log.png").stat().st_size > 1000
    np.testing.assert_allclose(losses(logs[1]), losses(logs[0]), rtol=0.02)
