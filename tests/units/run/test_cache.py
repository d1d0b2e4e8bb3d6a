"""The directory of compiled programs: what comes back, what does not, and who may write there."""

import errno
import os
import stat
import threading
import warnings

import pytest
from msgspec.structs import replace

from phalanx.base import places
from phalanx.base.config import OPTIONS, config
from phalanx.run import cache as module
from phalanx.run.cache import Cache, cache

KEYS = [f"{i:064x}" for i in range(40)]
HEAD = len(module._MAGIC) + 32


@pytest.fixture
def kept(tmp_path):
    return Cache(str(tmp_path))


def path_of(kept, key):
    (found,) = (e.path for e in kept.entries() if key in e.path)
    return found


def use_at(kept, key, seconds):
    os.utime(path_of(kept, key), (seconds, seconds))


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(5000), b"a" * 100_000])
def test_what_was_written_comes_back(kept, content):
    assert kept.read(KEYS[0]) is None
    kept.write(KEYS[0], content)
    assert kept.read(KEYS[0]) == content
    assert kept.read(KEYS[1]) is None
    kept.write(KEYS[0], b"newer")
    assert kept.read(KEYS[0]) == b"newer" and len(kept.entries()) == 1
    kept.remove(KEYS[0])
    kept.remove(KEYS[0])
    assert kept.read(KEYS[0]) is None


@pytest.mark.parametrize("place", [0, len(module._MAGIC), HEAD - 1, HEAD, HEAD + 20, -1])
def test_a_changed_byte_is_noticed(kept, place):
    kept.write(KEYS[0], os.urandom(100))
    path = path_of(kept, KEYS[0])
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        data[place] ^= 1
        file.seek(0)
        file.write(data)
    assert kept.read(KEYS[0]) is None
    assert not os.path.exists(path)  # so that it can be written anew


@pytest.mark.parametrize("length", [0, 5, HEAD, HEAD + 3, -1])
def test_a_truncated_entry_is_noticed(kept, length):
    kept.write(KEYS[0], os.urandom(100))
    path = path_of(kept, KEYS[0])
    os.truncate(path, length if length >= 0 else os.path.getsize(path) + length)
    assert kept.read(KEYS[0]) is None


def test_an_entry_under_another_name_is_noticed(kept):
    kept.write(KEYS[0], b"zero")
    os.rename(path_of(kept, KEYS[0]), path_of(kept, KEYS[0]).replace(KEYS[0], KEYS[1]))
    assert kept.read(KEYS[1]) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_nobody_else_can_read_or_write(tmp_path):
    kept = Cache(str(tmp_path / "a" / "b"))
    assert module.unusable(kept.folder) is None
    assert stat.S_IMODE(os.stat(kept.folder).st_mode) == 0o700
    kept.write(KEYS[0], b"x")
    assert stat.S_IMODE(os.stat(path_of(kept, KEYS[0])).st_mode) == 0o600
    os.chmod(path_of(kept, KEYS[0]), 0o620)  # a group could have written it
    assert kept.read(KEYS[0]) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(kept):
    pipe = os.path.join(kept.folder, KEYS[0] + module._SUFFIX)
    os.mkfifo(pipe, 0o600)
    read = []
    reader = threading.Thread(target=lambda: read.append(kept.read(KEYS[0])), daemon=True)
    reader.start()
    reader.join(10)
    assert read == [None]
    kept.write(KEYS[0], b"content")  # takes its place
    assert kept.read(KEYS[0]) == b"content"


def test_a_directory_under_the_name_of_an_entry_is_not_one(kept):
    os.mkdir(os.path.join(kept.folder, KEYS[0] + module._SUFFIX))
    descriptors = os.open(kept.folder, os.O_RDONLY)
    os.close(descriptors)
    assert kept.read(KEYS[0]) is None
    kept.write(KEYS[0], b"content")
    assert kept.read(KEYS[0]) is None
    after = os.open(kept.folder, os.O_RDONLY)
    os.close(after)
    assert after == descriptors  # and none is left open


def test_what_others_could_have_written_is_refused(tmp_path, monkeypatch):
    for mode in (0o720, 0o702, 0o1777):
        tmp_path.chmod(mode)
        assert "others own it or can write to it" in (module.unusable(str(tmp_path)) or "")
    tmp_path.chmod(0o755)
    assert module.unusable(str(tmp_path)) is None
    kept = Cache(str(tmp_path))
    kept.write(KEYS[0], b"x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "others own it" in (module.unusable(str(tmp_path)) or "")
    assert kept.read(KEYS[0]) is None


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    kept = Cache(str(tmp_path), 40_000)
    for i, key in enumerate(KEYS[:20]):
        kept.write(key, os.urandom(1000))
        use_at(kept, key, 1000 + i)
    kept.read(KEYS[0])
    for key in KEYS[20:]:
        kept.write(key, os.urandom(1000))
    assert sum(e.size for e in kept.entries()) <= 40_000
    there = [any(key in e.path for e in kept.entries()) for key in KEYS]
    assert there[0] and not there[1] and all(there[6:])
    kept.write(KEYS[1], os.urandom(50_000))  # larger than all may be together
    assert len(kept.entries()) == sum(there)


def test_leftovers_of_processes_that_died_are_swept(tmp_path):
    kept = Cache(str(tmp_path), 10_000)
    for name, seconds in (("writing-old", 1), ("writing-now", None), ("notes.txt", 1)):
        (tmp_path / name).write_bytes(b"x")
        if seconds is not None:
            os.utime(tmp_path / name, (seconds, seconds))
    kept.trim()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "writing-now"]
    kept.write(KEYS[0], b"x")
    assert kept.clear() == 1
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("step", ["open", "write", "replace"])
def test_a_full_disk_leaves_nothing_behind(kept, monkeypatch, step):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        def __init__(self, handle, *_):
            self.handle = handle

        def __enter__(self):
            return self

        def __exit__(self, *_):
            os.close(self.handle)

        write = full

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(module, "open", Full, raising=False)
        else:
            patch.setattr(os, step, full)
        kept.write(KEYS[0], b"x")
        assert os.listdir(kept.folder) == []
    assert kept.read(KEYS[0]) is None
    kept.write(KEYS[0], b"x")
    assert kept.read(KEYS[0]) == b"x"


def test_a_directory_that_vanishes_is_an_empty_cache(tmp_path):
    kept = Cache(str(tmp_path / "gone"), 1000)
    kept.write(KEYS[0], b"x")
    kept.trim()
    assert kept.read(KEYS[0]) is None and kept.entries() == [] and kept.clear() == 0


def test_many_writers_at_once(tmp_path):
    wrong = []
    contents = {key: os.urandom(3000) for key in KEYS[:8]}

    def work(seed):
        mine = Cache(str(tmp_path), 20_000)
        for i in range(60):
            key = KEYS[(seed * 7 + i) % 8]
            found = mine.read(key)
            if found is not None and found != contents[key]:
                wrong.append(key)
            mine.write(key, contents[key])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(e.size > 3000 for e in Cache(str(tmp_path)).entries())


# ---- which directory ----------------------------------------------------------------------------


@pytest.fixture
def options():
    names = [name for name in OPTIONS if "cache" in name]
    before = {name: getattr(config, name) for name in names}
    yield
    for name, value in before.items():
        config.update(name, value)


def test_options_choose_the_cache(options, tmp_path):
    config.update("compilation_cache_dir", tmp_path / "c")
    config.update("compilation_cache_max_size", 123)
    found = cache()
    assert found is not None and found is cache()
    assert (found.folder, found.limit) == (str(tmp_path / "c"), 123)
    config.update("jax_compilation_cache_max_size", -1)
    assert cache().limit is None
    config.update("compilation_cache_max_size", 0)
    assert cache() is None
    config.update("compilation_cache_max_size", 123)
    config.update("compilation_cache_dir", None)
    assert cache() is None


def test_a_directory_that_was_asked_for_and_is_unusable_is_named_once(options, tmp_path):
    (tmp_path / "file").write_text("")
    config.update("compilation_cache_dir", tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match=r"file.cache is not used.*: it cannot be made: Not a dir"):
        assert cache() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache() is None


def test_the_default_is_silent(options, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "phalanx")
    default = OPTIONS["compilation_cache_dir"]
    monkeypatch.setitem(OPTIONS, "compilation_cache_dir", replace(default, default=folder))
    config.update("compilation_cache_dir", folder)
    assert cache() is None


@pytest.mark.parametrize(
    ("platform", "environment", "home", "expected"),
    [
        ("linux", {}, "/h", "/h/.cache/phalanx"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/h", "/x/phalanx"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/h", "/h/.cache/phalanx"),
        ("darwin", {}, "/h", "/h/Library/Caches/phalanx"),
        ("linux", {}, "~", None),
        ("win32", {}, "/h", None),
    ],
)
def test_where_the_user_keeps_caches(platform, environment, home, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(places.sys, "platform", platform)
    monkeypatch.setattr(os.path, "expanduser", lambda p: p.replace("~", home))
    assert places.user_cache() == expected
