"""The text of compiled programs: how often the computations in it run."""

import pytest

from phalanx.xla.hlo_text import HloModule

TEXT = """\
HloModule f

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p = (s32[], f32[4]) parameter(0)
}

%condition (q: (s32[], f32[4])) -> pred[] {
  %bound = s32[]{:T(128)} constant(7)
  %q = (s32[], f32[4]) parameter(0)
  %number = s32[]{:T(128)} get-tuple-element(%q), index=0
  ROOT %less = pred[]{:T(512)} compare(%number, %bound), direction=LT, metadata={}
}

ENTRY %main (x: f32[4]) -> (s32[], f32[4]) {
  %x = f32[4] parameter(0)
  %first = s32[]{:T(128)} constant(0)
  %copied = s32[]{:T(128)S(6)} copy(%first), metadata={}
  %start = (s32[], f32[4]) tuple(%copied, /*index=1*/%x)
  ROOT %loop = (s32[], f32[4]) while(%start), condition=%condition, body=%body, metadata={}
}
"""


@pytest.mark.parametrize(
    "old, new, times",
    [
        ("", "", 7),
        ("constant(0)", "constant(2)", 1),  # it is not counted from 0
        ("direction=LT", "direction=NE", 1),
        ("constant(7)", "parameter(1)", 1),  # nobody knows before
        ("copy(%first)", "copy(%unknown)", 1),
        ("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"5"}}', 5),
    ],
)
def test_runs_of_a_loop(old, new, times):
    assert HloModule(TEXT.replace(old, new)).runs["body"] == times
