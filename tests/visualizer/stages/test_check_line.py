import pytest

from visualizer.stages.check_line import all_hold, summary_line
from visualizer.stages.checks import Check


@pytest.mark.parametrize(
    ("held", "line"),
    [
        ((True,), ":green[:material/check_circle:] 1 check passed"),
        ((True, True, None), ":green[:material/check_circle:] 2 checks passed · 1 remark"),
        ((True, False, None, None), ":red[:material/cancel:] :red[**1 of 2 checks failed**] · 2 remarks"),
        ((False, False, True), ":red[:material/cancel:] :red[**2 of 3 checks failed**]"),
    ],
)
def test_all_checks_of_a_stage_are_one_line(held, line):
    checks = [Check("text", holds) for holds in held]
    assert summary_line(checks) == line
    assert all_hold(checks) == (False not in held)
