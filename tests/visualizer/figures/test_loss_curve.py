"""The curves of a training in words."""

from visualizer.figures.loss_curve import MOST_SAID, Curve, in_words


def test_a_curve_is_read_from_its_first_point_to_its_last():
    steps = range(0, 1001, 10)
    long = Curve("Intact", "#000000", "solid", steps, [3.5 - step / 500 for step in steps])
    short = Curve("", "#000000", "solid", [7], [0.25])
    first, second = in_words("The loss", [long, short], ".2f").split(". ")
    assert first.startswith("The loss, Intact: step 0: 3.50, ")
    assert first.endswith(", step 1000: 1.50")
    assert first.count("step") == MOST_SAID
    assert second == "The loss: step 7: 0.25"
    assert in_words("The loss", [Curve("", "#000000", "solid", [], [])], ".2f") == "The loss: "
