"""What launchers keep in memory for their processes."""

import errno
import http.client

import pytest

from phalanx.processes.keeper import Keeper, Kept
from phalanx.processes.wire import split
from tests.units.processes.test_hub import ORGANIZATION, shown


@pytest.fixture
def keeper():
    made = Keeper("127.0.0.1", "a secret")
    yield made
    made.close()


@pytest.fixture
def kept(keeper):
    return Kept(keeper.address, "a secret")


def test_what_is_kept_is_given_as_a_whole_and_in_parts(kept):
    kept.put("0.1/0.data", [b"abc", memoryview(b"defgh"), b""])
    kept.put("0.1/1.data", [])
    assert kept.names() == ["0.1/0.data", "0.1/1.data"]
    assert kept.get("0.1/0.data") == b"abcdefgh"
    assert kept.get("0.1/0.data", 2, 5) == b"cde"
    assert kept.get("0.1/0.data", 8, 8) == b""
    assert kept.get("0.1/1.data") == b""
    kept.put("0.1/0.data", [b"anew"])
    assert kept.get("0.1/0.data") == b"anew"


def test_older_snapshots_are_forgotten_by_number(kept):
    names = [f"{number}/0.data" for number in ("0.9", "0.10", "1.0", "1.2", "10.0")]
    for name in names:
        kept.put(name, [b"x"])
    kept.forget_before("0.10")
    assert kept.names() == names[1:]
    kept.forget_before("1.2")
    assert kept.names() == names[3:]


def test_what_is_not_there(kept, keeper):
    with pytest.raises(FileNotFoundError, match=f"the launcher at {keeper.address} answers 404"):
        kept.get("0.1/0.data")


@pytest.mark.parametrize("token", ["", "another"])
def test_strangers_get_nothing(kept, keeper, token):
    kept.put("0.1/0.data", [b"x"])
    stranger = Kept(keeper.address, token)
    for ask in (
        stranger.names,
        lambda: stranger.get("0.1/0.data"),
        lambda: stranger.put("0.1/0.data", [b"y"]),
        lambda: stranger.forget_before("5.0"),
    ):
        with pytest.raises(PermissionError, match="401"):
            ask()
    assert kept.get("0.1/0.data") == b"x"


@pytest.mark.parametrize("name", ["", "0.1", "0/1", "../0.1/a", "0.1/a/b", "0.1/" + "a" * 65])
def test_names_that_no_snapshot_has_are_refused(kept, name):
    with pytest.raises(OSError, match="answers 400") as e:
        kept.put(name, [b"x"])
    assert e.value.errno == errno.EPROTO
    assert kept.names() == []


@pytest.mark.parametrize("length", [None, "-1", "many", "9" * 30])
def test_lengths_that_nothing_has(keeper, kept, length):
    connection = http.client.HTTPConnection(*split(keeper.address))
    connection.putrequest("PUT", "/0.1/0.data")
    connection.putheader("Authorization", "Bearer a secret")
    if length is not None:
        connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status in (400, 507)
    connection.close()
    assert kept.names() == []


def test_what_breaks_off_is_not_kept(keeper, kept):
    connection = http.client.HTTPConnection(*split(keeper.address))
    connection.putrequest("PUT", "/0.1/0.data")
    connection.putheader("Authorization", "Bearer a secret")
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"begin")
    connection.close()
    kept.put("0.2/0.data", [b"x"])
    assert kept.names() == ["0.2/0.data"]


def test_nobody_is_there(keeper):
    keeper.close()
    with pytest.raises(OSError, match="refused"):
        Kept(keeper.address, "a secret").names()


def test_with_certificates_strangers_do_not_even_ask(capfd):
    here, other = shown("train", ORGANIZATION), shown("stranger")
    keeper = Keeper("127.0.0.1", "a secret", here)
    try:
        kept = Kept(keeper.address, "a secret", here)
        kept.put("0.1/0.data", [b"abc"])
        assert kept.get("0.1/0.data") == b"abc"
        for stranger in (other, None):
            with pytest.raises(OSError):
                Kept(keeper.address, "a secret", stranger).names()
        assert kept.names() == ["0.1/0.data"]
    finally:
        keeper.close()
    assert capfd.readouterr().err == ""
