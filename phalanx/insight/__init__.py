"""What a program does before it has done it: findings, reports, plans.

It looks at programs as they are traced, with the lines of the user's that they come from.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phalanx.base.lazily import later as _later
from phalanx.insight.checking import check
from phalanx.insight.findings import CODES, Code, Finding

if _TYPE_CHECKING:
    from phalanx.insight.explained import explain
    from phalanx.insight.planning import plan
    from phalanx.insight.profiled import profiling
    from phalanx.insight.report import Report

_later(
    __name__,
    explained=("explain",),
    planning=("plan",),
    profiled=("profiling",),
    report=("Report",),
)

__all__ = ["CODES", "Code", "Finding", "Report", "check", "explain", "plan", "profiling"]
