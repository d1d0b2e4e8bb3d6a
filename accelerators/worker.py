"""`python -m accelerators.worker CHIPS GPU KIND START EVERY` compiles subjects, one after another.

It prints a line of JSON when it begins with one, and another when that is done.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import Any

from accelerators.compiling import COMPILED, FAILED, NONE, REFUSED
from accelerators.subjects import Subject, subjects
from phalanx.api.described import compiled_for, use_described_devices
from phalanx.base.errors import DeviceError, MissingRule, PhalanxError
from phalanx.cli.chips import described


def main() -> None:
    chips, gpu, kind, start, every = sys.argv[1:]
    devices = described(chips, gpu or None)
    use_described_devices(devices)
    numbered = enumerate(s for s in subjects(len(devices)) if kind in ("", s.kind))
    for number, subject in islice(numbered, int(start), None, int(every)):
        head = {"number": number, "kind": subject.kind, "name": subject.name}
        print(json.dumps(head), flush=True)
        outcome, why = tried(subject, devices)
        print(json.dumps({**head, "outcome": outcome, "why": why}), flush=True)


def tried(subject: Subject, devices: Any) -> tuple[str, str]:
    """What became of ``subject``, and why."""
    try:
        traced = subject.trace()
        if traced is None:
            return NONE, ""
        compiled_for(traced, devices)
    except (DeviceError, MissingRule, NotImplementedError) as e:
        return REFUSED, _first_line(e).partition(";")[0]  # what to do about it comes after
    except (PhalanxError, RuntimeError, ValueError, TypeError) as e:
        return FAILED, f"{type(e).__name__}: {_first_line(e)}"
    return COMPILED, ""


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


if __name__ == "__main__":
    main()
