"""`python -m libraries.standard [--suite FOLDER] [--module NAME] [--examples 20] [-k linalg ...]`.

FOLDER is a checkout of the suite of the array API standard (array-api-tests, with its submodule);
where it is left out, the environment variable ARRAY_API_SUITE tells it. pytest, hypothesis and
ndindex are installed beside this interpreter. The suite runs on `phalanx.numpy`, or on another
module, with 64-bit dtypes. What is known to fail is listed in `standard.txt` with the reasons; it
is run, and reported as expected. Arguments that are not known here are pytest's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = Path(__file__).with_name("standard.txt")
FOLDER = "ARRAY_API_SUITE"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default=os.environ.get(FOLDER), help=f"default: ${FOLDER}")
    parser.add_argument("--module", default="phalanx.numpy", help="what is to follow the standard")
    parser.add_argument("--examples", type=int, default=20, help="that are drawn for a test")
    given, more = parser.parse_known_args()
    if not given.suite or not (Path(given.suite) / "array_api_tests").is_dir():
        parser.error(
            f"a checkout of array-api-tests is needed, as --suite or ${FOLDER}, got {given.suite}"
        )
    raise SystemExit(run(given.suite, given.module, given.examples, *more))


def run(suite: str, module: str, examples: int, *more: str) -> int:
    """Run the tests of ``suite`` on ``module``; pytest's exit status."""
    options = [f"--max-examples={examples}", "--disable-deadline", f"--xfails-file={KNOWN}"]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    wide = {"PHALANX_ENABLE_X64": "1", "JAX_ENABLE_X64": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "array_api_tests", *options, *more],
        cwd=suite,
        env=os.environ | wide | {"ARRAY_API_TESTS_MODULE": module, "PYTHONPATH": path},
    ).returncode


if __name__ == "__main__":
    main()
