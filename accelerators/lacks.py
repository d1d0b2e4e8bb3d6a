"""What the plugin of `.ci/plugin`, a CPU behind the interface of accelerators, does not bring.

In `./dev accelerator` and, with ``-p accelerators.lacks``, in tests, what fails for these reasons
is counted apart. Nothing else is excused.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

import pytest

_PLUGIN = "the plugin for plug"
LACKS = {  # and what errors say of it
    "calls of Python": rf"a function of Python is called, which {_PLUGIN} cannot do",
    "LAPACK": rf"{_PLUGIN} has no function '(lapack_\w+|tridiagonal_solve_perturbed)_ffi'",
    "questions to the partitioner": rf"asks the partitioner, and {_PLUGIN} does not say",
}
# What ends the process in its partitioner (`Check failed: !UseNamedShardingLeaf()
# SubgroupReplicationDim should not be called for HloShardingV3`), which does for the package jax,
# too, where an array that some axes cut along one dimension is to be cut by these and others along
# another. With the flag neither ends: `.ci/plugin` runs these tests so.
_WITHOUT_NAMES = "--xla_enable_hlo_sharding_v3=false"
ENDS = (
    "test_lanes_run_among_the_devices_of_a_constraint[2]",
    "test_shardings_change_no_value",  # draws any
)


def lacked(error: BaseException | None) -> str | None:
    """What is lacking, if ``error``, or one that it came from, is for that."""
    while error is not None:
        for name, said in LACKS.items():
            if re.search(said, str(error)):
                return name
        error = error.__cause__ or error.__context__
    return None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    if _WITHOUT_NAMES in os.environ.get("XLA_FLAGS", ""):
        return
    for item in items:
        if item.name in ENDS:
            item.add_marker(pytest.mark.skip(reason="it ends the process in the plugin's compiler"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    lack = lacked(call.excinfo.value) if call.excinfo is not None and report.failed else None
    if lack is not None:
        report.outcome, report.wasxfail = "skipped", f"the plugin lacks {lack}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    stats = terminalreporter.stats
    for why, count in Counter(r.wasxfail for r in stats.get("xfailed", ())).items():
        terminalreporter.write_line(f"{count} of the tests: {why}")
