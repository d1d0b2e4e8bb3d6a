"""`python -m accelerators.compiling v5e:2x4 h100:8 [--kind program] [--out FILE]`.

Compiles everything for chips that are not here, and writes a table of what did. XLA's plugins have
to be installed: the extra `aot`. A compiler that ends its process is no reason to end this one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMPILED, REFUSED, FAILED, NONE = "compiled", "refused", "failed", "no program"
KINDS = {"operation": "operations", "function": "functions", "program": "programs over all"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chips", nargs="+", help="v5e:2x4, h100:8, or cuda:1x1x8 with --gpu")
    parser.add_argument("--gpu", help="its name, or a file of XLA's GpuTargetConfigProto")
    parser.add_argument("--kind", choices=KINDS, default="", help="these alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take one of so many subjects")
    parser.add_argument("--first", type=int, default=0, help="beginning with this one")
    parser.add_argument("--out", type=Path, help="write the table of Markdown here")
    given = parser.parse_args()
    rows = [(chips, all_outcomes(chips, given)) for chips in given.chips]
    text = table(rows)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return any(found["outcome"] == FAILED for _, every in rows for found in every)


def all_outcomes(chips: str, given: argparse.Namespace) -> list[dict[str, str]]:
    """What became of the subjects, which several processes compile."""
    every = given.every * given.workers
    starts = range(given.first, given.first + every, given.every)
    with ThreadPoolExecutor(given.workers) as pool:
        parts = pool.map(lambda start: list(outcomes(chips, given, start, every)), starts)
        return [found for part in parts for found in part]


def outcomes(
    chips: str, given: argparse.Namespace, start: int, every: int
) -> Iterator[dict[str, str]]:
    """What became of subject ``start`` and each further of ``every``."""
    module = "accelerators.worker"
    command = [sys.executable, "-m", module, chips, given.gpu or "", given.kind]
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    while True:
        worker = subprocess.Popen(
            [*command, str(start), str(every)], stdout=subprocess.PIPE, text=True, env=env
        )
        assert worker.stdout is not None
        begun = None
        for line in worker.stdout:
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            if "outcome" in said:
                yield said
                begun = None
            else:
                begun = said
            start = said["number"] + every
        if worker.wait() == 0:
            return
        if begun is None:
            raise SystemExit(f"{chips}: the worker ended with {worker.returncode}")
        why = f"the compiler ended the process with {worker.returncode}"
        yield {**begun, "outcome": FAILED, "why": why}


def table(rows: Sequence[tuple[str, Sequence[dict[str, str]]]]) -> str:
    """Counts by kind, and what did not compile, with the reason."""
    lines = ["| chips | " + " | ".join(KINDS.values()) + " |", "|---|" + "---|" * len(KINDS)]
    for chips, found in rows:
        cells = []
        for kind in KINDS:
            counts = Counter(f["outcome"] for f in found if f["kind"] == kind)
            whole = sum(counts.values()) - counts[NONE]
            cells.append(f"{counts[COMPILED]} of {whole}" if whole else "")
        lines.append(f"| {chips} | " + " | ".join(cells) + " |")
    for outcome in (REFUSED, FAILED):
        alike = defaultdict(list)
        for chips, found in rows:
            alike["\n".join(_reasons(found, outcome))].append(chips)
        for reasons, chips in alike.items():
            if reasons:
                lines += ["", f"{', '.join(chips)}, {outcome}:", "", reasons]
    return "\n".join(lines)


def _reasons(found: Sequence[dict[str, str]], outcome: str) -> Iterator[str]:
    """Of each reason a line, with the names of what it was told of."""
    names = defaultdict(list)
    for f in found:
        if f["outcome"] == outcome:
            names[f["why"]].append(re.sub(r" \d+$", "", f["name"]))  # an example of an operation
    for why, of in sorted(names.items()):
        yield textwrap.fill(
            f"- {'; '.join(sorted({*of}))}: {why}",
            _WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )


_WIDTH = 106  # of a line of the page


if __name__ == "__main__":
    sys.exit(main())
