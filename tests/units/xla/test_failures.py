"""What the runtime says, in our words."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from phalanx.errors import DeviceError, OutOfMemory, RuntimeFailure
from phalanx.xla.failures import check_fits, check_slice, translated


@pytest.mark.parametrize(
    "said",
    [
        "device assignment should include all slice devices",
        "device_id < kMaxDeviceCount Unexpected",
    ],
)
def test_programs_over_a_part_of_a_slice_that_compilers_do_not_take(said):
    error = translated(RuntimeError(f"INTERNAL: RET_CHECK failure {said}"), "compile")
    assert type(error) is DeviceError
    assert "give pmap and meshes all of them, phalanx.devices()" in str(error)


def test_what_has_no_words_of_ours_keeps_the_first_paragraph():
    error = translated(RuntimeError("INTERNAL: no\n%0 = add"), "step")
    assert type(error) is RuntimeFailure
    assert re.fullmatch(r"step, at test_failures.py:\d+ \(.*\): INTERNAL: no", str(error))


def test_what_nccl_lacks_in_a_container_is_told():
    said = "INTERNAL: NCCL operation ncclCommInitRankConfig failed: unhandled system error. Last "
    said += "NCCL warning: Error while creating shared memory segment /dev/shm/nccl-x"
    error = translated(RuntimeError(said), "step")
    assert type(error) is RuntimeFailure
    assert re.fullmatch(rf"step, at .*: {said}\n.*NCCL_DEBUG.*--shm-size.*", str(error))


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


@pytest.mark.parametrize(
    ("kind", "chips", "count", "refused"),
    [
        ("TPU v5 lite", 8, 6, True), ("TPU v6 lite", 8, 6, True), ("TPU v5 lite", 8, 5, False),
        ("TPU v5 lite", 16, 6, False), ("TPU v5", 8, 6, False), ("cpu", 8, 6, False),
    ],
)  # fmt: skip
def test_six_chips_of_eight_in_a_plane_are_refused(kind, chips, count, refused):
    """Their compiler would end the process."""
    client = SimpleNamespace(device_count=lambda: chips)
    devices = [SimpleNamespace(device_kind=kind, client=client)] * count
    told = pytest.raises(DeviceError, match=r"f, at .* over 6 of the 8")
    with told if refused else nullcontext():
        check_slice("f", devices)
