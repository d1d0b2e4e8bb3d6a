"""`python -m libraries.named CHECKOUT/tests/pjit_test.py ... [--results FOLDER] [-p PLUGIN]`.

Files of JAX's own tests, of the release of jax that is installed beside this interpreter, on eight
devices of the CPU. Each is run on Phalanx, and those of its tests that did not pass are run under
jax. The tests that pass under jax alone are to be those that `pjit.txt` names, each under its
reason: another one is told, and a name of none of them, and then the status is 1. Arguments that
are not known here are pytest's, such as a plugin which stands in for what the file imports of jax's
private modules.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from libraries.suites import Outcomes, alone, heed_interrupts, outcomes_of, run_group

LISTS = Path(__file__).parent
SETTINGS = {
    "JAX_NUM_GENERATED_CASES": "5",
    "JAX_PLATFORMS": "cpu",
    "PHALANX_NUM_CPU_DEVICES": "8",
    "PYTEST_ADDOPTS": f"-c {os.devnull} --rootdir .",  # what a checkout configures is about jax
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="of tests")
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of lists of names")
    parser.add_argument("--results", type=Path, help="keep reports; what was run is not repeated")
    parser.add_argument("--seconds", type=int, default=3600, help="that one file may take")
    given, options = parser.parse_known_args()
    heed_interrupts()
    os.environ.update(SETTINGS)
    surprised = False
    with tempfile.TemporaryDirectory() as passing:
        results = (given.results or Path(passing)).resolve()
        for file in given.files:
            run = run_group(file.parent, [Path(file.name)], results, given.seconds, *options)
            ours, peer, _ = outcomes_of(*run)
            names = named(given.lists / f"{file.stem.removesuffix('_test')}.txt")
            for surprise in surprises(ours, peer, names):
                print(f"{file.name}: {surprise}")
                surprised = True
            passed = list(ours.values()).count("passed")
            print(f"{file.name}: {passed} pass, and {len(alone(ours, peer))} with jax alone")
    raise SystemExit(surprised)


def named(file: Path) -> set[str]:
    """The tests that a list names: the lines that are no reasons."""
    return {line for line in file.read_text().splitlines() if line and not line.startswith("#")}


def surprises(ours: Outcomes, peer: Outcomes, names: set[str]) -> Iterator[str]:
    """What is otherwise than ``names`` say, of the tests of one file."""
    missed = {name.partition("::")[2] for name in alone(ours, peer)}
    for name in sorted(missed - names):
        yield f"{name} passes with jax alone, and is not named"
    for name in sorted(names - missed):
        yield f"{name} is named, but does not pass with jax alone"


if __name__ == "__main__":
    main()
