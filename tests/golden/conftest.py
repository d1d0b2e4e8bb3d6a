"""Golden texts, which are compared word for word: those of ``test_SUBJECT.py`` are the sections of
``SUBJECT.txt``, one for each case. ``--update-golden`` writes the files anew, to be read."""

import difflib
import re

import pytest

HEAD = "==== "


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


def stored(file):
    """The texts in a file, by the names of their sections."""
    parts = re.split(rf"^{HEAD}(.+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


def difference(name, before, now):
    sides = before.get(name, "").splitlines(), now.get(name, "").splitlines()
    return "\n".join(difflib.unified_diff(*sides, f"{name}, stored", f"{name}, now", lineterm=""))


@pytest.fixture
def golden(request):
    """golden(texts): they are those of the file, by name; none differs, is new or is left over."""
    file = request.path.with_name(request.path.stem.removeprefix("test_") + ".txt")

    def compare(texts):
        texts = {name: text.strip() for name, text in texts.items()}
        if request.config.getoption("--update-golden", default=False):
            sections = (f"{HEAD}{name}\n{text}\n" for name, text in texts.items())
            file.write_text("\n".join(sections), "utf-8")
        before = stored(file) if file.exists() else {}
        names = [name for name in before | texts if before.get(name) != texts.get(name)]
        if names:
            shown = [difference(name, before, texts) for name in names]
            advice = f"{file.name} has other words; if these are meant: pytest --update-golden"
            pytest.fail("\n\n".join([*shown, advice]), pytrace=False)

    return compare
