"""Golden files: texts that are compared word for word; ``--update-golden`` writes them anew."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request):
    """golden(path, text): the text equals that of the file ``path`` of this folder."""

    def compare(path, text):
        file = HERE / path
        if request.config.getoption("--update-golden", default=False):
            file.write_text(text + "\n")
        assert file.exists(), f"no golden file {path}; run pytest --update-golden {HERE.name}"
        assert text + "\n" == file.read_text()

    return compare
