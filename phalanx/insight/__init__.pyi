"""The names of ``phalanx.insight``, each with the module that has it."""

from phalanx.insight.applied import AppliedStep as AppliedStep
from phalanx.insight.checking import CODES as CODES, check as check
from phalanx.insight.explained import explain as explain
from phalanx.insight.findings import (
    Code as Code,
    Finding as Finding,
)
from phalanx.insight.planning import StepPlan as StepPlan, plan as plan
from phalanx.insight.profiled import profiling as profiling
from phalanx.insight.report import Report as Report
from phalanx.insight.verified import Verified as Verified, verify as verify
