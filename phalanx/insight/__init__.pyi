"""The names of ``phalanx.insight``, each with the module that has it."""

from phalanx.insight.checks.check import CODES as CODES, check as check
from phalanx.insight.checks.findings import Code as Code, Finding as Finding
from phalanx.insight.explanations.explain import explain as explain
from phalanx.insight.plans.applied_step import AppliedStep as AppliedStep
from phalanx.insight.plans.plan import StepPlan as StepPlan, plan as plan
from phalanx.insight.profiles.profile import profiling as profiling
from phalanx.insight.reports.report import Report as Report
from phalanx.insight.verification.verify import Verified as Verified, verify as verify
