"""What devices exchange, read from the text of a compiled program."""

from types import SimpleNamespace

import pytest

from phalanx.xla.communication import exchanges
from phalanx.xla.hlo_text import HloModule

# two chips in each of four slices, whose chips are in another order in the second
SLICES = [
    SimpleNamespace(id=100_000 * s + chip, slice_index=s - 1)
    for s, chips in ((1, (0, 1)), (2, (1, 0)), (3, (0, 1)), (4, (0, 1)))
    for chip in chips
]


def read(*lines):
    body = "\n".join(f"  {line}" for line in lines)
    text = f"HloModule f, num_partitions=2\n\nENTRY %main (x: f32[4]) -> f32[4] {{\n{body}\n}}\n"
    return exchanges(HloModule(text), SLICES)


def across(kind, target):
    told = (
        'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale'
        f'_runtime",_xla_megascale_target={target},_xla_megascale_transfer_type="{kind}"}}'
    )
    return read(
        f"%send = (f32[2,8]{{1,0:T(8,128)}}, u32[]{{:S(2)}}, token[]) send(%x, %t), {told}",
        f"%recv = (f32[4,8]{{1,0:T(8,128)}}, u32[]{{:S(2)}}, token[]) recv(%t), {told}",
        f"%done = (f32[4,8]{{1,0:T(8,128)}}, token[]) recv-done(%recv), {told}",
    )


@pytest.mark.parametrize(
    "kind, target, operation, groups",
    [
        ("ALL_REDUCE", '"{1,2,3,4}x{0:1}"', "all-reduce", ((0, 3, 4, 6), (1, 2, 5, 7))),
        ("REDUCE_SCATTER", '"{1,3}x{1:1}"', "reduce-scatter", ((1, 5),)),
        ("ALL_GATHER", "{{100000,300000},{200001,400001}}", "all-gather", ((0, 4), (2, 7))),
        ("ALL_TO_ALL", "{{100000,100001,200000,200001}}", "all-to-all", ((0, 1, 3, 2),)),
    ],
)  # fmt: skip
def test_what_slices_exchange_is_told_by_the_positions_of_their_chips(
    kind, target, operation, groups
):
    (found,) = across(kind, target)
    assert (found.operation, found.groups, found.pairs) == (operation, groups, None)
    assert found.bytes == 4 * 8 * 4


def test_a_permutation_of_slices_has_pairs():
    (found,) = across("ONE_TO_ONE", "{{100000->200000},{200000->100000}}")
    assert (found.operation, found.groups) == ("collective-permute", None)
    assert found.pairs == ((0, 3), (3, 0))


def test_what_one_slice_does_inside_all_do():
    (found,) = read("%r = f32[4]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add")
    assert found.groups == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_a_permutation_that_moves_nothing_is_no_exchange():
    assert read("%p = f32[4]{0} collective-permute(%x), source_target_pairs={{0,0},{1,1}}") == []
