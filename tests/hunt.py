"""``./dev hunt --minutes 30 [paths]``: the laws and oracles with new seeds until the time is up.

What fails is printed at once, with the line that repeats it. Every run has a seed of its own, which
decides which cases are taken, what is drawn and optimized, and in which order the files come.
"""

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = ("tests/laws", "tests/oracles")
PYTEST = (sys.executable, "-m", "pytest", "-n", "2", "-v", "--tb=no", "-p", "no:cacheprovider")
FAILED = re.compile(r"\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (.*\S)")


def hunt(minutes, paths=PATHS, command=PYTEST):
    """Runs ``command`` until the time is up; how many tests failed."""
    end, found = time.monotonic() + 60 * minutes, set()
    while time.monotonic() < end:
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed {seed}", flush=True)
        drawn = ("--sample", f"--hypothesis-seed={seed}", *shuffled(paths, seed))
        for test in failures([*command, *drawn], end):
            if (test, seed) not in found:
                print(repeating(test, seed), flush=True)
            found.add((test, seed))
    return len(found)


def shuffled(paths, seed):
    """The files of tests in ``paths``, in an order that ``seed`` chooses."""
    files = {str(f) for path in paths for f in (sorted(Path(path).rglob("test_*.py")) or [path])}
    return random.Random(seed).sample(sorted(files), len(files))


def failures(command, end):
    """The tests that fail, while ``command`` runs; when the clock shows ``end``, it is stopped."""
    at_once = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = {"stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=at_once, **pipe) as process:
        # by SIGTERM: what a shell has started in the background ignores SIGINT
        timer = threading.Timer(end - time.monotonic(), process.terminate)
        timer.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            failed = FAILED.match(line)
            if failed:
                yield failed[1]
        timer.cancel()
    if process.returncode not in (0, 1) and time.monotonic() < end:
        raise SystemExit("".join(lines[-20:]))  # no tests ran, or not to their end


def repeating(test, seed):
    """The line for a shell that runs the test once more as it ran."""
    where = [f"{k}={os.environ[k]}" for k in ("PHALANX_VENV",) if k in os.environ]
    line = ["./dev", "test", test, "--sample", f"--hypothesis-seed={seed}"]
    return shlex.join([*where, *line])


if __name__ == "__main__":
    parser = argparse.ArgumentParser("./dev hunt", description="tries new seeds of the tests")
    parser.add_argument("--minutes", type=float, required=True, help="for how long")
    parser.add_argument("paths", nargs="*", default=PATHS, help="where: by default %(default)s")
    given = parser.parse_args()
    count = hunt(given.minutes, given.paths)
    print(f"{count} tests failed" if count else "nothing failed")
    sys.exit(bool(count))
