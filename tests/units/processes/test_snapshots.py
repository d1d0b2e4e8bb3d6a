"""What launchers keep in memory for their processes."""

import errno
import http.client

import pytest

from phalanx.processes.snapshots import SnapshotClient, SnapshotServer
from phalanx.processes.wire import split
from tests.units.processes.test_hub import ORGANIZATION, shown


@pytest.fixture
def server():
    made = SnapshotServer("127.0.0.1", "a secret")
    yield made
    made.close()


@pytest.fixture
def client(server):
    return SnapshotClient(server.address, "a secret")


def test_what_is_kept_is_given_as_a_whole_and_in_parts(client):
    client.put("0.1/0.data", [b"abc", memoryview(b"defgh"), b""])
    client.put("0.1/1.data", [])
    assert client.names() == ["0.1/0.data", "0.1/1.data"]
    assert client.get("0.1/0.data") == b"abcdefgh"
    assert client.get("0.1/0.data", 2, 5) == b"cde"
    assert client.get("0.1/0.data", 8, 8) == b""
    assert client.get("0.1/1.data") == b""
    client.put("0.1/0.data", [b"anew"])
    assert client.get("0.1/0.data") == b"anew"


def test_older_snapshots_are_forgotten_by_number(client):
    names = [f"{number}/0.data" for number in ("0.9", "0.10", "1.0", "1.2", "10.0")]
    for name in names:
        client.put(name, [b"x"])
    client.forget_before("0.10")
    assert client.names() == names[1:]
    client.forget_before("1.2")
    assert client.names() == names[3:]


def test_what_is_not_there(client, server):
    with pytest.raises(FileNotFoundError, match=f"the launcher at {server.address} answers 404"):
        client.get("0.1/0.data")


@pytest.mark.parametrize("token", ["naïve", "日本", "with a line\n", "\udcff"])
def test_a_secret_is_any_text(token):
    server = SnapshotServer("127.0.0.1", token)
    client = SnapshotClient(server.address, token)
    client.put("0.1/0.data", [b"x"])
    assert client.get("0.1/0.data") == b"x"
    server.close()


@pytest.mark.parametrize("token", ["", "another", "\ud800"])
def test_strangers_get_nothing(client, server, token):
    client.put("0.1/0.data", [b"x"])
    stranger = SnapshotClient(server.address, token)
    for ask in (
        stranger.names,
        lambda: stranger.get("0.1/0.data"),
        lambda: stranger.put("0.1/0.data", [b"y"]),
        lambda: stranger.forget_before("5.0"),
    ):
        with pytest.raises(PermissionError, match="401"):
            ask()
    assert client.get("0.1/0.data") == b"x"


@pytest.mark.parametrize("name", ["", "0.1", "0/1", "../0.1/a", "0.1/a/b", "0.1/" + "a" * 65])
def test_names_that_no_snapshot_has_are_refused(client, name):
    with pytest.raises(OSError, match="answers 400") as e:
        client.put(name, [b"x"])
    assert e.value.errno == errno.EPROTO
    assert client.names() == []


@pytest.mark.parametrize("length", [None, "-1", "many", "9" * 30])
def test_lengths_that_nothing_has(server, client, length):
    connection = http.client.HTTPConnection(*split(server.address))
    connection.putrequest("PUT", "/0.1/0.data")
    connection.putheader("Authorization", 'Bearer "a secret"')
    if length is not None:
        connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status in (400, 507)
    connection.close()
    assert client.names() == []


def test_what_breaks_off_is_not_kept(server, client):
    connection = http.client.HTTPConnection(*split(server.address))
    connection.putrequest("PUT", "/0.1/0.data")
    connection.putheader("Authorization", 'Bearer "a secret"')
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"begin")
    connection.close()
    client.put("0.2/0.data", [b"x"])
    assert client.names() == ["0.2/0.data"]


def test_nobody_is_there(server):
    server.close()
    with pytest.raises(OSError, match="refused"):
        SnapshotClient(server.address, "a secret").names()


def test_with_certificates_strangers_do_not_even_ask(capfd):
    here, other = shown("train", ORGANIZATION), shown("stranger")
    server = SnapshotServer("127.0.0.1", "a secret", here)
    try:
        client = SnapshotClient(server.address, "a secret", here)
        client.put("0.1/0.data", [b"abc"])
        assert client.get("0.1/0.data") == b"abc"
        for stranger in (other, None):
            with pytest.raises(OSError):
                SnapshotClient(server.address, "a secret", stranger).names()
        assert client.names() == ["0.1/0.data"]
    finally:
        server.close()
    assert capfd.readouterr().err == ""
