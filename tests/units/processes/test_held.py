"""Connections that break only when all have heard what has become of the others."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from phalanx.processes.held import Holder

HOLDS = """
import os, signal, socket, sys

from phalanx.processes.held import Holder

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
holder = Holder()
holder.hold(connection)
connection.sendall(b".")
sys.stdin.read(1)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
connection.close()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sys.stdin.read(1)
holder.let_go()
"""


@pytest.fixture
def held():
    """A process that holds its end of a connection, and this end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def start(how):
            port = str(listener.getsockname()[1])
            process = subprocess.Popen([sys.executable, "-c", HOLDS, port, how], stdin=-1)
            processes.append(process)
            here, _ = listener.accept()
            connections.append(here)
            assert here.recv(1) == b"."
            return process, here

        processes, connections = [], []
        start.listener = listener
        yield start
        for process in processes:
            process.stdin.close()
            process.wait()
        for connection in connections:
            connection.close()


def is_open(connection):
    connection.settimeout(0.2)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        connection.send(b".")
        return True
    except ConnectionResetError:
        return False


def test_it_outlives_who_was_killed(held):
    process, connection = held("killed")
    connection.send(b"not read, so the kernel would reset the connection")
    process.communicate(b".")
    assert process.returncode == -signal.SIGKILL
    assert is_open(connection) and is_open(connection)


def test_it_lasts_until_it_is_let_go(held):
    process, connection = held("in peace")
    process.stdin.write(b".")
    process.stdin.flush()
    held.listener.accept()[0].close()  # now it is closed there
    assert is_open(connection) and is_open(connection)
    process.communicate(b".")
    assert not all(is_open(connection) for _ in range(50))  # within ten seconds


def test_without_a_shell_nothing_is_held(monkeypatch):
    def run(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", run)
    holder = Holder()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        holder.hold(listener)
        holder.let_go()
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(holder._word)
