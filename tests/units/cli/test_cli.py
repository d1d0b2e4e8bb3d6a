"""The command line: what it prints, and what it says when something is missing."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
from phalanx.cli import demo, main
from phalanx.cli.main import parser
from phalanx.errors import DeviceError
from phalanx.run.runtime import backend

ROOT = Path(__file__).parents[3]


def command(*arguments, cwd=None, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "PHALANX_NUM_CPU_DEVICES"}
    return subprocess.run(
        [sys.executable, "-m", "phalanx", *arguments],
        env=clean | {"COLUMNS": "100", "PYTHONPATH": str(ROOT)} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_version(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"phalanx {phalanx.__version__}\n"


@pytest.mark.parametrize(
    "typed, meant",
    [("dmeo", "demo"), ("demo --epohcs 2", "--epochs"), ("cache claer", "clear")],
)
def test_the_nearest_word_is_named(typed, meant, capsys):
    with pytest.raises(SystemExit) as exit:
        main(typed.split())
    assert exit.value.code == 2
    assert capsys.readouterr().err.endswith(f"Did you mean '{meant}'?\n")


@pytest.mark.parametrize(
    "typed, known",
    [
        ("compile --on v5e:2x4 x.py", "phalanx explain and phalanx plan"),
        ("plan --for v5e:2x4 x.py", "phalanx compile"),
        ("devices --processes 2", "phalanx measure"),
    ],
)
def test_the_commands_that_know_an_option_are_named(typed, known, capsys):
    with pytest.raises(SystemExit):
        main(typed.split())
    assert capsys.readouterr().err.endswith(f"It is an option of {known}\n")


@pytest.mark.parametrize(
    "typed, hint",
    [
        ("check --bogus x.py", ""),  # which is most like an option of another command
        ("check --selekt P104 x.py", ". Did you mean '--select'?"),
        ("devices --ot", ""),
    ],
)
def test_an_option_is_refused_in_the_words_of_its_command(typed, hint, capsys):
    with pytest.raises(SystemExit) as exit:
        main(typed.split())
    command, option = typed.split()[:2]
    told = capsys.readouterr().err
    assert exit.value.code == 2 and told.startswith(f"usage: phalanx {command}")
    assert f"phalanx {command}: error: unrecognized arguments: {option}" in told
    assert told.endswith(f"{hint}\n") and ("Did you mean" in told) == bool(hint)


@pytest.mark.parametrize(
    "typed, known",
    [
        ("compile x.py --on v5e:2x4", "--on is an option of phalanx explain and phalanx plan"),
        ("explain x.py --for=v5e:2x4", "--for is an option of phalanx compile"),
        ("plan x.py --on v5e:4 --for v5e:2x4", "--for is an option of phalanx compile"),
    ],
)
def test_an_option_behind_the_script_that_another_command_has_is_told(typed, known, capsys):
    with pytest.raises(SystemExit) as exit:
        main(typed.split())
    command = typed.split()[0]
    told = f"phalanx {command}: error: {known}; behind -- it is the script's\n"
    assert (exit.value.code, capsys.readouterr().err) == (2, told)


COMMANDS = sorted(parser()._subparsers._group_actions[0].choices)


def test_no_command_is_help(capsys):
    assert main([]) == 0
    told = capsys.readouterr().out
    assert "usage: phalanx" in told and "example: phalanx devices" in told
    listed = re.findall(r"^  (\w+) +\w", told.partition("options:")[0], re.MULTILINE)
    assert sorted(listed) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_words_and_an_example(command, capsys):
    with pytest.raises(SystemExit) as exit:
        main([command, "-h"])
    assert exit.value.code == 0
    told = capsys.readouterr().out
    assert f"usage: phalanx {command}" in told and f"phalanx {command}" in told.split("example:")[1]
    grammar = parser()._subparsers._group_actions[0].choices[command]
    assert grammar.description.endswith(".")
    assert [a.dest for a in grammar._actions if not a.help] == []


@pytest.mark.parametrize("wrong", ["0", "-3", "many"])
def test_counts_must_be_positive(wrong, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["demo", "--devices", wrong])
    assert "--devices" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [("-n", "0"), ("-n", "two"), ("--max-restarts", "-1")])
def test_counts_of_a_launch_are_told_of_in_words(wrong, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["launch", *wrong, "script.py"])
    assert f"must be {'a number' if wrong[1] == 'two' else 'at least'}" in capsys.readouterr().err


def test_info_is_what_reports_ask_for(capsys):
    assert main(["info"]) == 0
    told = capsys.readouterr().out
    assert told == phalanx.print_environment_info(return_string=True) + "\n"
    assert f"phalanx:   {phalanx.__version__}" in told


def test_devices_lists_all(capsys):
    assert main(["devices", "--why"]) == 0
    out = capsys.readouterr().out
    assert f"backend: {phalanx.default_backend()}" in out
    assert out.count(phalanx.devices()[0].platform) >= phalanx.device_count()
    reasons = dict(re.findall(r"^no (\w+): (.+)$", out, re.MULTILINE))
    assert reasons == backend().absences() and reasons.keys() <= {"tpu", "cuda", "rocm"}
    assert main(["devices"]) == 0
    told = capsys.readouterr().out
    absent = [name for name, why in reasons.items() if why.startswith("This machine has no")]
    assert (f"no {', '.join(absent)}: phalanx devices --why" in told) == bool(absent)


def test_a_reader_that_has_enough_is_no_error():
    words = f"{sys.executable} -m phalanx check --explain | head -n 1"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True)
    assert done.stdout.startswith("P101") and done.stderr == ""


def test_devices_that_do_not_start_are_told(monkeypatch, capsys):
    def fail(platform=None):
        if platform is None:
            raise DeviceError("Unable to initialize backend 'cuda': no driver")
        return [device]

    device = SimpleNamespace(
        id=0, platform="cpu", device_kind="cpu", process_index=0, memory_stats=lambda: None,
        client=SimpleNamespace(platform_version="1.0\nof today"),
    )  # fmt: skip
    monkeypatch.setattr(phalanx, "devices", fail)
    assert main(["devices"]) == 1
    told = capsys.readouterr()
    assert told.err == "phalanx devices: Unable to initialize backend 'cuda': no driver\n"
    assert "backend: cpu, jaxlib " in told.out and "\ncpu: 1.0, of today\n" in told.out


def test_devices_of_several_hosts_are_told(monkeypatch, capsys):
    def device(number, stats):
        client = SimpleNamespace(platform_version="cuda 12090")
        return SimpleNamespace(
            id=number, platform="gpu", device_kind="H100", process_index=number, slice_index=0,
            coords=[0, number, 0], client=client, memory_stats=stats,
        )  # fmt: skip

    def of_another():
        raise RuntimeError("only for addressable devices")

    def two(platform=None):
        warnings.warn("cuBLAS can err", RuntimeWarning, stacklevel=1)
        return [device(0, lambda: {"bytes_limit": 60 << 30}), device(1, of_another)]

    monkeypatch.setattr(phalanx, "devices", two)
    monkeypatch.setattr(type(backend()), "libraries", lambda _, platform: f"{platform}: cuDNN 9.1")
    assert main(["devices"]) == 0
    told = capsys.readouterr()
    rows = [re.split(r"\s*[│┃]\s*", line)[1:-1] for line in told.out.splitlines() if "H100" in line]
    assert rows == [
        ["0", "gpu", "H100", "0", "0", "0, 0, 0", "60.0 GiB"],
        ["1", "gpu", "H100", "1", "0", "0, 1, 0", ""],
    ]
    assert "\ngpu: cuda 12090, cuda: cuDNN 9.1\n" in told.out
    assert told.err == "phalanx devices: cuBLAS can err\n"


def test_plugins_that_the_environment_names_wrongly_are_told(monkeypatch, capsys):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine")
    assert main(["devices"]) == 1
    told = capsys.readouterr()
    assert "entries name:path with commas between are needed, got 'mine'\n" in told.err
    assert f"backend: {phalanx.default_backend()}" in told.out


def test_a_missing_package_is_named(monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    monkeypatch.setattr("importlib.import_module", missing)
    assert main(["demo"]) == 1
    assert "the package sklearn is missing" in capsys.readouterr().err


def test_the_demo_shows_lanes_training_mistakes_a_plan_and_a_report(tmp_path):
    done = command("demo", "--devices", "3", "--epochs", "2", "--out", "r.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cpu:2  ■ ■ ■ □ □  lanes 10 to 12" in done.stdout
    assert "11 of 128, one of 29" in done.stdout
    difference = re.search(r"parameters differ by +at most +([-+.e0-9]+)", done.stdout)
    assert difference is not None and float(difference[1]) < 1e-4
    refused, found = done.stdout.split("3. Mistakes")[1].split("planted.py:")[1:]
    assert refused.startswith("18 (loss)") and found.startswith("22: P107")
    chips = re.findall(r"^ +(\d+) +[\d,]+ µs +[\d,]+ MiB", done.stdout, re.MULTILINE)
    assert chips == ["1", "2", "4", "8", "16", "32", "64"]
    assert "digits.py" in (tmp_path / "r.html").read_text()


def test_an_unknown_example_says_where_it_looked():
    with pytest.raises(FileNotFoundError, match=r"nothing\.py"):
        demo.load_example("nothing")


def test_devices_are_those_of_the_machine_unless_some_are_wanted():
    assert demo.choose_devices(None) == phalanx.devices()


def test_largest_difference_is_that_of_any_leaf():
    ones = {"a": np.ones(3), "b": [np.zeros(2)]}
    others = {"a": np.ones(3), "b": [np.array([0.0, -0.5])]}
    assert demo.largest_difference(ones, others) == 0.5
