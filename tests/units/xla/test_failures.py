"""What the runtime says, in our words."""

import re
from types import SimpleNamespace

import pytest

from phalanx.errors import DeviceError, OutOfMemory, RuntimeFailure
from phalanx.xla.failures import check_fits, translated

SLICE = "INTERNAL: RET_CHECK failure device assignment should include all slice devices"


def test_programs_over_a_part_of_a_slice_that_takes_whole_ones():
    error = translated(RuntimeError(SLICE), "compile")
    assert type(error) is DeviceError
    assert "as many lanes as there are chips" in str(error)


def test_what_has_no_words_of_ours_keeps_the_first_paragraph():
    error = translated(RuntimeError("INTERNAL: no\n%0 = add"), "step")
    assert type(error) is RuntimeFailure
    assert str(error) == "step: INTERNAL: no"


def test_memory_that_does_not_suffice():
    lack = translated(RuntimeError("RESOURCE_EXHAUSTED: 3 GB"), "step")
    assert type(lack) is OutOfMemory
    assert re.match(r"step, at test_failures.py:\d+ \(.*\): RESOURCE_EXHAUSTED: 3 GB\n", str(lack))
    assert "lanes_at_once=" in str(lack)


def test_what_a_program_needs_is_told_beside_what_a_device_has():
    sizes = {"arguments": 3 * 2**30, "outputs": 2**30, "aliased": 2**30, "temporaries": 2**29}
    device = SimpleNamespace(device_kind="NVIDIA H100")
    check_fits("step", sizes, 7 * 2**29, device)
    told = r"compile, at test_failures.py:\d+ .*: step needs 3.5 GiB, and NVIDIA H100 has 3 GiB: "
    told += r"it takes 3 GiB, gives 1 GiB, and holds 0.5 GiB between\n.*checkpoint"
    with pytest.raises(OutOfMemory, match=told):
        check_fits("step", sizes, 3 * 2**30, device)
