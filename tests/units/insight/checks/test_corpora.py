"""What is found in programs as people write them: mistakes, and none where there are none."""

import linecache

import numpy as np
import pytest

import phalanx
from phalanx.insight import CODES
from phalanx.insight.checks.running_programs import checking_compiled
from tests.units.insight.checks import corpus
from tests.units.insight.checks.corpus import (
    right_lanes,
    right_models,
    right_programs,
    scripts,
    singular,
    updates,
    vectorized,
    wrong_lanes,
    wrong_models,
    wrong_others,
    wrong_programs,
)

# they enter their programs
assert {
    right_lanes, right_models, right_programs, scripts, singular, updates, vectorized,
    wrong_lanes, wrong_models, wrong_others, wrong_programs,
}  # fmt: skip

eight = pytest.mark.skipif(phalanx.device_count() != 8, reason="they are for eight devices")


def findings_in(program):
    fun, args = program()
    return phalanx.check(fun)(*args)


def codes_in(program):
    return {finding.code for finding in findings_in(program)}


@eight
def test_hardly_any_correct_program_has_findings():
    told = {name: codes_in(program) for name, program in corpus.PROGRAMS.right.items()}
    alarms = {name: codes for name, codes in told.items() if codes}
    assert len(told) >= 60
    assert len(alarms) < 0.02 * len(told), alarms


@eight
def test_nearly_all_mistakes_are_found():
    entered = corpus.PROGRAMS.wrong.items()
    told = {name: (code, codes_in(program)) for name, (code, program) in entered}
    missed = {name: code for name, (code, found) in told.items() if code not in found}
    assert len(told) >= 60
    assert len(missed) < 0.05 * len(told), missed
    others = {name: found for name, (code, found) in told.items() if found - {code}}
    assert len(others) < 0.05 * len(told), others


def test_derivatives_are_nan_where_that_is_said():
    def has_nan(program):
        fun, args = program()
        return bool(np.isnan(fun(*args)).any())

    right = [p for p in corpus.PROGRAMS.right.values() if p.__module__ == singular.__name__]
    wrong = [p for _, p in corpus.PROGRAMS.wrong.values() if p.__module__ == singular.__name__]
    assert right and not [p.__name__ for p in right if has_nan(p)]
    assert wrong and not [p.__name__ for p in wrong if not has_nan(p)]


def test_there_are_several_programs_for_each_code():
    codes = [code for code, _ in corpus.PROGRAMS.wrong.values()]
    assert not {code for code in CODES if codes.count(code) < 3}


@eight
@pytest.mark.parametrize("code", CODES)
def test_each_kind_is_silenced_in_its_line(code, monkeypatch):
    program = next(make for told, make in corpus.PROGRAMS.wrong.values() if told == code)
    mistakes = [finding for finding in findings_in(program) if finding.code == code]
    for file in {f.file for f in mistakes}:
        lines = [*linecache.getlines(file)]
        for line in {f.line for f in mistakes if f.file == file}:
            lines[line - 1] = lines[line - 1].rstrip() + f"  # phalanx: ok {code}: it is meant\n"
        size, changed, _, name = linecache.cache[file]
        monkeypatch.setitem(linecache.cache, file, (size, changed, lines, name))
    assert mistakes and code not in codes_in(program)


# ---- scripts ------------------------------------------------------------------------------------


def codes_in_script(script):
    phalanx.clear_caches()  # as in a process of its own
    with checking_compiled() as found:
        script()
    return {code for code, _, _ in found}


@eight
def test_correct_scripts_have_no_findings():
    told = {name: codes_in_script(script) for name, script in corpus.SCRIPTS.right.items()}
    assert len(told) >= 10
    assert not {name: codes for name, codes in told.items() if codes}


@eight
def test_mistakes_in_scripts_are_found():
    told = {n: (code, codes_in_script(s)) for n, (code, s) in corpus.SCRIPTS.wrong.items()}
    assert len(told) >= 10
    assert not {name: (code, found) for name, (code, found) in told.items() if found != {code}}
