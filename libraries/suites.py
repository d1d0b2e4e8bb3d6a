"""`python -m libraries.suites optax chex --sources FOLDER [--results FOLDER] [--out table.md]`.

`--sources` holds unpacked source distributions (`optax-0.2.8/`), which bring the tests; the
libraries themselves, pytest and jax are installed beside this interpreter. Every file of tests is
run with Phalanx in the place of jax, a process each, and those of its tests that did not pass are
run under jax. `--results` keeps a report of each run; what was run is not repeated, so delete the
`.log` of what should run anew. A run that takes more than `--seconds` is interrupted, and its file
counted as far as it came. `--together` runs the files of a folder in one process, up to so many
bytes, which takes less where they are small, and `--reported` runs nothing and counts what was run.
"""

from __future__ import annotations

import argparse
import math
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
Run = tuple[Path, Path, Path]  # the first of its files, and the reports under Phalanx and jax
GRACE = 60  # seconds in which an interrupted pytest may write its report
STOPPED = "interrupted after"  # in the log of a run that took too long


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="+", help="names of source distributions")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=Path("suites"))
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--together", type=int, default=0, help="bytes of files in one process")
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
        groups = in_groups(source, files, given.together)
        results = given.results.resolve() / library
        if given.reported:
            runs = reported(results)
        else:
            runs = run_all(source, groups, results, given.workers, given.seconds)
        ours, peer, partly = outcomes_of_all(runs)
        for name in alone(ours, peer):
            print(f"{library}: {name}: {ours.get(name, 'not run')}")
        rows.append(row(source.name, len(every), ours, peer, partly))
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


def in_groups(source: Path, files: list[Path], together: int) -> list[list[Path]]:
    """Files that run in one process: of one folder, of ``together`` bytes at most."""
    groups: list[list[Path]] = []
    last: dict[Path, tuple[list[Path], float]] = {}
    for file in files:
        size = (source / file).stat().st_size
        group, so_far = last.get(file.parent, ([], math.inf))
        if so_far + size > together:
            group, so_far = [], 0
            groups.append(group)
        group.append(file)
        last[file.parent] = group, so_far + size
    return groups


def run_all(
    source: Path, groups: list[list[Path]], results: Path, workers: int, seconds: int
) -> list[Run]:
    """Run each group of files, and what did not pass under jax."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda group: run_group(source, group, results, seconds), groups))


def run_group(source: Path, group: list[Path], results: Path, seconds: int, *more: str) -> Run:
    """Run files under Phalanx, and under jax what did not pass."""
    first = group[0]
    ours = run_files(source, group, results, OURS, seconds, *more)
    if all_passed(first, ours):
        return first, ours, report_of(results, group, PEER)
    beside = ["-p", "libraries.rest", f"--beside={ours}"] if ours.exists() else []
    return first, ours, run_files(source, group, results, PEER, seconds, *more, *beside)


def all_passed(file: Path, report: Path) -> bool:
    outcomes = dict(read_report(file, report)).values()
    return bool(outcomes) and set(outcomes) == {"passed"}


def reported(results: Path) -> list[Run]:
    """What was run, of files alone and together."""
    runs = [
        (Path(log.stem), log.with_suffix(".xml"), results / PEER / f"{log.stem}.xml")
        for log in sorted((results / OURS).glob("*.log"))
    ]
    return [run for run in runs if all_passed(*run[:2]) or log_of(run[2]).exists()]


def outcomes_of_all(runs: list[Run]) -> tuple[Outcomes, Outcomes, int]:
    """The outcomes under Phalanx and under jax, and how many runs did not come to their ends."""
    ours, peer, partly = {}, {}, 0
    for file, own, theirs in runs:
        of_ours, of_peer, whole = outcomes_of(file, own, theirs)
        ours |= of_ours
        peer |= of_peer
        partly += bool(of_ours) and not whole
    return ours, peer, partly


def outcomes_of(file: Path, own: Path, theirs: Path) -> tuple[Outcomes, Outcomes, bool]:
    """The outcomes of a file under Phalanx, under jax, and whether they are all.

    Where a side was interrupted they are of the tests that it came to.
    """
    ours, peer = dict(read_report(file, own)), dict(read_report(file, theirs))
    if interrupted(own):
        peer = {name: outcome for name, outcome in peer.items() if name in ours}
    if interrupted(theirs):
        ours = {name: out for name, out in ours.items() if out == "passed" or name in peer}
    return ours, peer, not (interrupted(own) or interrupted(theirs))


def run_files(
    source: Path, group: list[Path], results: Path, side: str, seconds: int, *more: str
) -> Path:
    """Run files of tests in one process, unless that was done already; the report."""
    report = report_of(results, group, side)
    if not log_of(report).exists():
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        options = ["-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}"]
        options += ["-o", "junit_family=xunit1", "--continue-on-collection-errors", *more]
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
    """Named by the file; by the first and how many more where there are several."""
    first, *others = group
    more = f"+{len(others)}" if others else ""
    return results / side / f"{'.'.join(first.with_suffix('').parts)}{more}.xml"


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
        if not case.get("name"):  # it was interrupted
            continue
        children = {child.tag for child in case}
        failed = children & {"failure", "error"}
        outcome = "failed" if failed else "skipped" if "skipped" in children else "passed"
        *folders, name = case.get("classname", "").split(".")
        home = case.get("file", str(file))
        if home.startswith(".."):  # that of a decorator; the class tells where the test is
            home = f"{'/'.join(folders)}.py"
        yield f"{home}::{name}::{case.get('name')}", outcome


def alone(ours: Outcomes, peer: Outcomes) -> list[str]:
    """The tests that pass under jax alone."""
    return [name for name, out in peer.items() if out == "passed" and ours.get(name) != "passed"]


HEADER = """\
| library | test files | passed | pass only with jax | passed of both |
|---|---:|---:|---:|---:|"""


def row(name: str, files: int, ours: Outcomes, peer: Outcomes, partly: int = 0) -> str:
    passed = [test for test, outcome in ours.items() if outcome == "passed"]
    missed = alone(ours, peer)
    run = len({test.partition("::")[0] for test in (*passed, *missed)})
    of_files = f"{run} of {files}" + (f", {partly} in part" if partly else "")
    share = len(passed) / max(len(passed) + len(missed), 1)
    return f"| {name} | {of_files} | {len(passed)} | {len(missed)} | {share:.1%} |"


if __name__ == "__main__":
    main()
