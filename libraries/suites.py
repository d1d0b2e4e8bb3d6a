"""`python -m libraries.suites optax chex --sources FOLDER [--results FOLDER] [--out table.md]`.

`--sources` holds unpacked source distributions (`optax-0.2.8/`), which bring the tests; the
libraries themselves, pytest and jax are installed beside this interpreter. Every file of tests is
run twice, a process each: under jax, and with Phalanx in its place. `--results` keeps a report of
each run; what was run is not repeated, so delete the `.log` of what should run anew. A run that
takes more than `--seconds` is interrupted, and its file counted as far as both sides came.
`--together` runs the files of a folder in one process, which takes less where they are small, and
`--reported` runs nothing and counts what was run.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEER, OURS = "jax", "phalanx"
START = {PEER: ["-m", "pytest"], OURS: ["-m", "phalanx.as_jax", "-m", "pytest"]}
Outcomes = dict[str, str]  # name of a test -> passed, failed or skipped
Run = tuple[Path, Path, Path]  # the first of its files, and the reports under jax and Phalanx
GRACE = 60  # seconds in which an interrupted pytest may write its report
STOPPED = "interrupted after"  # in the log of a run that took too long


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="+", help="names of source distributions")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=Path("suites"))
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--together", action="store_true", help="files of a folder in one process")
    parser.add_argument("--reported", action="store_true", help="run nothing, count what was run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=600, help="that one file may take")
    parser.add_argument("--out", type=Path, help="write the table of Markdown here")
    given = parser.parse_args()
    heed_interrupts()
    rows = [HEADER]
    for library in given.libraries:
        source = folder_of(library, given.sources)
        every = test_files(source)
        files = [file for file in every if given.only in str(file)]
        groups = of_folders(files) if given.together else [[file] for file in files]
        results = given.results.resolve() / library
        if given.reported:
            runs = reported(results)
        else:
            runs = run_all(source, groups, results, given.workers, given.seconds)
        peer, ours, partly = outcomes_of_all(runs)
        for name in differing(peer, ours):
            print(f"{library}: {name}: {ours.get(name, 'not run')}")
        rows.append(row(source.name, len(every), peer, ours, partly))
    print("\n".join(rows))
    if given.out:
        given.out.write_text("\n".join(rows) + "\n")


def folder_of(library: str, sources: Path) -> Path:
    """The unpacked source distribution of a library, the last of several."""
    found = sorted(path for path in sources.glob(f"{library}-*") if path.is_dir())
    if not found:
        raise SystemExit(f"{sources} has no folder {library}-*: unpack the source there")
    return found[-1]


def test_files(source: Path) -> list[Path]:
    """Files of tests, relative to the source, small ones first."""
    names = {*source.rglob("*_test.py"), *source.rglob("test_*.py")}
    return [path.relative_to(source) for path in sorted(names, key=lambda p: (p.stat().st_size, p))]


def of_folders(files: list[Path]) -> list[list[Path]]:
    """The files of each folder."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    return [*folders.values()]


def run_all(
    source: Path, groups: list[list[Path]], results: Path, workers: int, seconds: int
) -> list[Run]:
    """Run each group of files on both sides."""
    turns = [(side, group) for group in groups for side in (PEER, OURS)]
    with ThreadPoolExecutor(workers) as pool:
        reports = list(
            pool.map(lambda turn: run_files(source, turn[1], results, turn[0], seconds), turns)
        )
    firsts = [group[0] for group in groups]
    return list(zip(firsts, reports[::2], reports[1::2], strict=True))


def reported(results: Path) -> list[Run]:
    """What was run on both sides, of files alone and together."""
    logs = sorted((results / PEER).glob("*.log"))
    both = [(theirs, results / OURS / theirs.name) for theirs in logs]
    return [
        (Path(theirs.stem), theirs.with_suffix(".xml"), own.with_suffix(".xml"))
        for theirs, own in both
        if own.exists()
    ]


def outcomes_of_all(runs: list[Run]) -> tuple[Outcomes, Outcomes, int]:
    """The outcomes under jax and under Phalanx, and how many runs did not come to their ends."""
    peer, ours, partly = {}, {}, 0
    for file, theirs, own in runs:
        of_peer, of_ours, whole = outcomes_of(file, theirs, own)
        peer |= of_peer
        ours |= of_ours
        partly += bool(of_peer) and not whole
    return peer, ours, partly


def outcomes_of(file: Path, theirs: Path, own: Path) -> tuple[Outcomes, Outcomes, bool]:
    """The outcomes of a file on both sides, and whether they are all.

    Where a side was interrupted they are of the tests that both came to.
    """
    peer, ours = dict(read_report(file, theirs)), dict(read_report(file, own))
    if not (interrupted(theirs) or interrupted(own)):
        return peer, named_alike(peer, ours), True
    both = [name for name in peer if name in ours]
    return {name: peer[name] for name in both}, {name: ours[name] for name in both}, False


def named_alike(peer: Outcomes, ours: Outcomes) -> Outcomes:
    """``ours`` under the names of the peer: a name may hold how a parameter prints.

    Where as many tests of a file are left on both sides, they are the same, in order.
    """
    theirs = [name for name in peer if name not in ours]
    own = [name for name in ours if name not in peer]
    if len(theirs) != len(own):
        return ours
    names = dict(zip(own, theirs, strict=True))
    return {names.get(name, name): outcome for name, outcome in ours.items()}


def run_files(source: Path, group: list[Path], results: Path, side: str, seconds: int) -> Path:
    """Run files of tests in one process, unless that was done already; the report."""
    report = report_of(results, group, side)
    if not log_of(report).exists():
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        options = ["-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}"]
        options += ["-o", "junit_family=xunit1", "--continue-on-collection-errors"]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        unfinished = report.with_suffix(".running")
        with unfinished.open("w") as log:
            run = subprocess.Popen(
                [sys.executable, *START[side], *options, *map(str, group)],
                cwd=source,
                env=os.environ | {"PYTHONPATH": path},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                run.wait(seconds)
            except subprocess.TimeoutExpired:
                stop(run)
                log.write(f"\n{STOPPED} {seconds} seconds\n")
        unfinished.rename(log_of(report))
    return report


def report_of(results: Path, group: list[Path], side: str) -> Path:
    """Named by the file; by the folder where there are several."""
    first, *others = group
    named = first.parent / "*" if others else first.with_suffix("")
    return results / side / f"{'.'.join(named.parts)}.xml"


def log_of(report: Path) -> Path:
    """What a run printed; it has this name once the run is over, with a report or without."""
    return report.with_suffix(".log")


def heed_interrupts() -> None:
    """Let interrupts reach this process and what it starts: a shell's background ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def stop(run: subprocess.Popen[bytes]) -> None:
    """Interrupt pytest, which then reports the tests it has done, unless it hangs."""
    run.send_signal(signal.SIGINT)
    try:
        run.wait(GRACE)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()


def interrupted(report: Path) -> bool:
    """Whether a run was stopped and still could report what it had done."""
    return report.exists() and STOPPED in log_of(report).read_text(errors="replace")


def read_report(file: Path, report: Path) -> Iterator[tuple[str, str]]:
    """Tests and their outcomes; nothing where the process died or was stopped.

    Tests of which the report does not tell the file are in ``file``.
    """
    if not report.exists():
        return
    for case in ElementTree.parse(report).iter("testcase"):
        children = {child.tag for child in case}
        failed = children & {"failure", "error"}
        outcome = "failed" if failed else "skipped" if "skipped" in children else "passed"
        home, name = case.get("file", file), case.get("classname", "").split(".")[-1]
        yield f"{home}::{name}::{case.get('name')}", outcome


def differing(peer: Outcomes, ours: Outcomes) -> list[str]:
    """The tests that the peer passes and we do not."""
    return [name for name, out in peer.items() if out == "passed" and ours.get(name) != "passed"]


HEADER = """\
| library | files of tests | passed under jax | of these under Phalanx | |
|---|---:|---:|---:|---:|"""


def row(name: str, files: int, peer: Outcomes, ours: Outcomes, partly: int = 0) -> str:
    run = len({test.partition("::")[0] for test in peer})
    of_files = f"{run} of {files}" + (f", {partly} in part" if partly else "")
    passed = sum(outcome == "passed" for outcome in peer.values())
    both = passed - len(differing(peer, ours))
    return f"| {name} | {of_files} | {passed} | {both} | {both / max(passed, 1):.1%} |"


if __name__ == "__main__":
    main()
