"""What `phalanx launch` makes of the output of its processes."""

import io
import os
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from phalanx.cli import launch
from phalanx.cli.main import main


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"one\ntwo\n", b"[3] one\n[3] two\n"),
        (b"no end", b"[3] no end\n"),
        (b"\r 10%\r 20%\n", b"[3] \r[3]  10%\r[3]  20%\n"),
        (b"of another system\r\n", b"[3] of another system\r\n"),
        (b"", b""),
        (b"x" * 3_000_000 + b"\nend\n", None),
    ],
)
def test_lines_have_the_number_of_their_process(written, shown, monkeypatch, tmp_path):
    told = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(told))
    file = tmp_path / "output"
    file.write_bytes(written)
    launch._prefix(3, launch._pieces(file.open("rb"), lambda: False))
    if shown is None:  # nothing is lost of what is too long for a line
        *long, last = told.getvalue().splitlines(keepends=True)
        assert b"".join(line.removeprefix(b"[3] ").strip() for line in long) == b"x" * 3_000_000
        assert last == b"[3] end\n"
    else:
        assert told.getvalue() == shown


def test_what_a_process_says_last_is_shown_however_late(monkeypatch, capfdbinary, tmp_path):
    def write_late(process, lines):
        time.sleep(1.2)
        write(process, lines)

    write = launch._write
    monkeypatch.setattr(launch, "_write", write_late)
    script = tmp_path / "script.py"
    script.write_text("print('last words')\n")
    assert main(["launch", "-n", "1", str(script)]) == 0
    assert capfdbinary.readouterr().out == b"[0] last words\n"


def test_output_that_cannot_be_written_is_told_of(capsys, tmp_path):
    file = tmp_path / "output"
    file.write_bytes(b"lost\n")
    with open("/dev/full", "wb", buffering=0) as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", SimpleNamespace(buffer=full))
        launch._prefix(3, launch._pieces(file.open("rb"), lambda: False))
    told = "the output of process 3 cannot be written: No space left on device"
    assert capsys.readouterr().err == f"phalanx launch: {told}\n"


def test_outputs_that_are_closed_are_no_error(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('for nobody')\n")
    words = f"{sys.executable} -m phalanx launch -n 1 {script} >&- 2>&-"
    assert subprocess.run(["sh", "-c", words], check=False).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_process_has_started_ends_where_it_fails(number, capfdbinary, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, subprocess\n"
        "there = subprocess.Popen(['sleep', '1000'])\n"
        "print(there.pid, flush=True)\n"
        f"os.kill(os.getpid(), {int(number)})\n"
    )
    assert main(["launch", "-n", "1", str(script)]) == 128 + number
    there = int(capfdbinary.readouterr().out.split()[1])
    until = time.monotonic() + 30
    while is_running(there):
        assert time.monotonic() < until
        time.sleep(0.02)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(") ")[2][0] != "Z"  # whom nobody has asked about
    except OSError:
        return False


def test_every_process_is_told_which_of_its_machine_it_is(capfdbinary, tmp_path):
    script = tmp_path / "script.py"
    names = ["PROCESS_ID", "LOCAL_PROCESS_ID", "NUM_LOCAL_PROCESSES", "DEVICES_PER_PROCESS"]
    shown = [f'os.environ["PHALANX_{name}"]' for name in [*names, "NUM_CPU_DEVICES"]]
    script.write_text(f"import os\nprint({', '.join(shown)})\n")
    assert main(["launch", "-n", "2", "--devices-per-process", "3", str(script)]) == 0
    lines = sorted(capfdbinary.readouterr().out.splitlines())
    assert lines == [b"[0] 0 0 2 3 3", b"[1] 1 1 2 3 3"]


@pytest.mark.parametrize("joins, told", [(False, 2), (True, 0)])
def test_processes_that_compute_alone_are_told(joins, told, capfdbinary, tmp_path):
    script = tmp_path / "script.py"
    joining = "phalanx.distributed.initialize()" if joins else ""
    script.write_text(f"import phalanx\n{joining}\nprint(phalanx.process_count())\n")
    assert main(["launch", "-n", "2", str(script)]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert sorted(line for line in lines if line[4:].isdigit()) == (
        [b"[0] 2", b"[1] 2"] if joins else [b"[0] 1", b"[1] 1"]
    )
    warned = [line for line in lines if b"RuntimeWarning: phalanx launch started 2 proc" in line]
    assert len(warned) == told
    assert all(b"script.py:3: " in line for line in warned)


ASKED_TO_END = """
import os, signal, sys, time
def save(number, frame):
    print("saved", flush=True)
    sys.exit(75)
number = int(sys.argv[1])
if sys.argv[2] == "saves":
    signal.signal(number, save)
os.kill(os.getppid(), number)
while True:  # `signal.pause` waits for ever where the signal comes just before
    time.sleep(0.05)
"""


@pytest.mark.parametrize("ends, status", [("saves", lambda _: 75), ("falls", lambda n: 128 + n)])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("option", [["--max-restarts", "1"], ["--elastic", "1:"]])
def test_a_launcher_that_is_asked_to_end_starts_nothing_again(
    option, number, ends, status, capfdbinary, monkeypatch, tmp_path
):
    monkeypatch.setattr(launch, "_stopped", [])
    script = tmp_path / "script.py"
    script.write_text(ASKED_TO_END)
    given = [str(script), str(int(number)), ends]
    assert main(["launch", "-n", "1", *option, *given]) == status(number)
    out, err = capfdbinary.readouterr()
    assert out == (b"[0] saved\n" if ends == "saves" else b"")
    assert len([line for line in err.splitlines() if line.startswith(b"phalanx launch: ")]) == 1


def test_a_signal_that_comes_while_a_process_starts_reaches_it(monkeypatch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(30)\n")  # longer than it needs
    start = launch.subprocess.Popen

    def start_late(*arguments, **options):
        child = start(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        return child

    monkeypatch.setattr(launch, "_stopped", [])
    monkeypatch.setattr(launch.subprocess, "Popen", start_late)
    assert main(["launch", "-n", "1", str(script)]) == 128 + signal.SIGTERM


def test_a_program_that_is_not_there_starts_no_process(capsys):
    assert main(["launch", "-n", "2", "absent.py"]) == 2
    assert capsys.readouterr().err == "phalanx launch: there is no file absent.py\n"


def test_a_command_without_a_program_asks_for_it(capsys):
    with pytest.raises(SystemExit):
        main(["launch"])
    assert capsys.readouterr().err.endswith("required: script\n")


@pytest.mark.parametrize(
    "given, told",
    [
        (
            ["--elastic", "2", "-n", "4"],
            "argument --elastic: must be least: or least:most, got '2'",
        ),
        (["--elastic", ":", "-n", "4"], "argument --elastic: must be a number, got ''"),
        (["--elastic", "0:", "-n", "4"], "argument --elastic: must be at least 1, got 0"),
        (["--elastic", "a:b", "-n", "4"], "argument --elastic: must be a number, got 'a'"),
        (["--elastic", "1:2:3"], "argument --elastic: must be a number, got '2:3'"),
        (["--elastic", "4:2"], "argument --elastic: at least 4 are more than at most 2, got '4:2'"),
    ],
)
def test_elastic_ranges_that_make_no_sense(given, told, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["launch", *given, "script.py"])
    assert capsys.readouterr().err.endswith(f"error: {told}\n")


@pytest.mark.parametrize(
    "given", [["-n", "4"], ["-n", "2", "--nnodes", "2", "--coordinator", "a:1"]]
)
def test_fewer_processes_than_elastic_needs(given, capsys):
    assert main(["launch", "--elastic", "5:", *given, "script.py"]) == 2
    told = "phalanx launch: --elastic needs 5 processes, and -n and --nnodes start 4\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("option", [[], ["--elastic", "1:"]])
def test_a_port_that_others_have_is_named(option, capsys, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("")
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        where = ["--nnodes", "2", "--node-rank", "0", "--coordinator", address]
        assert main(["launch", "-n", "1", *option, *where, str(script)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"phalanx launch: the coordinator cannot listen at {address}: ")
    assert said.endswith(". Choose another port, or an address of this machine")
