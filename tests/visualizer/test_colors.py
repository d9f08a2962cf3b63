"""The colour tables: monotone, readable and distinct."""

import itertools
import json

import pytest

from visualizer import colors

THEMES = ("light", "dark")


@pytest.mark.parametrize("text", ["#000000", "#ffffff", "#1d5fd1", "#0e1117", "#c62f3b", "#808080"])
def test_a_colour_survives_the_way_through_oklch(text):
    assert colors.to_hex(colors.from_hex(text)) == text


def test_known_colours_in_oklch():
    red = colors.from_hex("#ff0000")
    assert (red.lightness, red.chroma, red.hue) == pytest.approx((0.62796, 0.25768, 29.2339), rel=1e-4)
    assert colors.from_hex("#ffffff").lightness == pytest.approx(1.0, abs=1e-4)


def test_a_colour_outside_the_screen_keeps_lightness_and_hue():
    wanted = colors.Oklch(0.6, 0.4, 145)
    got = colors.from_hex(colors.to_hex(wanted))
    assert got.lightness == pytest.approx(wanted.lightness, abs=0.01)
    assert got.hue == pytest.approx(wanted.hue, abs=1.5)
    assert got.chroma < wanted.chroma


@pytest.mark.parametrize("theme", THEMES)
def test_the_sequential_scale_begins_at_the_background_and_its_lightness_is_monotone(theme):
    scale = colors.SEQUENTIAL[theme]
    assert len(scale) == 256
    assert scale[0] == colors.BACKGROUND[theme]
    sign = -1 if theme == "light" else 1
    steps = [colors.from_hex(color).lightness for color in scale]
    assert all(sign * (after - before) > -0.003 for before, after in itertools.pairwise(steps))
    assert abs(steps[-1] - steps[0]) > 0.6


@pytest.mark.parametrize("theme", THEMES)
def test_the_diverging_scale_is_centred_on_the_background(theme):
    scale = colors.DIVERGING[theme]
    assert len(scale) == 256
    background = colors.from_hex(colors.BACKGROUND[theme])
    for middle in scale[127:129]:
        assert colors.from_hex(middle).lightness == pytest.approx(background.lightness, abs=0.02)
    distances = [abs(colors.from_hex(color).lightness - background.lightness) for color in scale]
    assert all(after < before + 0.003 for before, after in itertools.pairwise(distances[:128]))
    assert all(after > before - 0.003 for before, after in itertools.pairwise(distances[128:]))


@pytest.mark.parametrize("theme", THEMES)
def test_text_colours_can_be_read_on_the_background(theme):
    for color in [*colors.ROLES[theme].values(), colors.WARNING[theme]]:
        assert colors.contrast(color, colors.BACKGROUND[theme]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_heads_have_twelve_colours_that_can_be_seen_and_told_apart(theme):
    heads = [colors.from_hex(color) for color in colors.HEADS[theme]]
    assert len(set(colors.HEADS[theme])) == colors.N_HEAD_COLORS
    for first, second in itertools.combinations(heads, 2):
        turn = abs(first.hue - second.hue) % 360
        assert min(turn, 360 - turn) > 15
    assert all(colors.contrast(color, colors.BACKGROUND[theme]) > 2.5 for color in colors.HEADS[theme])


@pytest.mark.parametrize("theme", THEMES)
def test_the_hatch_is_no_colour_of_a_scale(theme):
    for scale in (colors.SEQUENTIAL[theme], colors.DIVERGING[theme]):
        assert colors.HATCH[theme] not in scale
        assert colors.HATCH_GROUND[theme] not in scale


def test_the_browser_receives_both_themes_as_json():
    tables = json.loads(json.dumps(colors.as_json()))["themes"]
    assert set(tables) == set(THEMES)
    for theme in THEMES:
        assert len(tables[theme]["sequential"]) == len(tables[theme]["diverging"]) == 6 * 256
        assert set(tables[theme]["roles"]) == set(colors.ROLES[theme])
