import pytest

from visualizer.stages.check_line import all_hold, summary_line
from visualizer.stages.checks import Check


@pytest.mark.parametrize(
    ("held", "line"),
    [
        ((True,), ":green[:material/check_circle:] 1 check holds"),
        ((True, True, None), ":green[:material/check_circle:] 2 checks hold · 1 remark"),
        ((True, False, None, None), ":red[:material/cancel:] **1 of 2 checks does not hold** · 2 remarks"),
        ((False, False, True), ":red[:material/cancel:] **2 of 3 checks do not hold**"),
    ],
)
def test_all_checks_of_a_stage_are_one_line(held, line):
    checks = [Check("text", holds) for holds in held]
    assert summary_line(checks) == line
    assert all_hold(checks) == (False not in held)
