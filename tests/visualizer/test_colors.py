"""The colour tables: monotone, readable and distinct."""

import itertools
import json
import math
import re
import tomllib
from pathlib import Path

import pytest

from model import MASKS
from visualizer import colors

THEMES = ("light", "dark")
ROOT = Path(__file__).parents[2]
COLOR_BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""The rest of linear red, green and blue (Machado, Oliveira, Fernandes 2009, table 1, severity 1.0)."""


def as_seen_with(blindness, text):
    """The colour "#rrggbb" as it looks to a person with one kind of colour blindness."""
    encoded = [int(text[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in encoded]
    seen = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in COLOR_BLINDNESS[blindness]]
    clipped = [min(max(part, 0.0), 1.0) for part in seen]
    back = [12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055 for part in clipped]
    return "#" + "".join(f"{round(255 * part):02x}" for part in back)


def difference(first, second):
    """The distance of two colours in Oklab, where 0.02 can just be seen."""
    return math.dist(*(_oklab(colors.from_hex(text)) for text in (first, second)))


def _oklab(color):
    angle = math.radians(color.hue)
    return color.lightness, color.chroma * math.cos(angle), color.chroma * math.sin(angle)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""

    def luminance(text: str) -> float:
        parts = [int(text[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


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
@pytest.mark.parametrize("scales", [colors.SEQUENTIAL, colors.SEQUENTIAL_NEUTRAL], ids=["weights", "neutral"])
def test_a_sequential_scale_begins_at_the_background_and_its_lightness_is_monotone(scales, theme):
    scale = scales[theme]
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
@pytest.mark.parametrize("blindness", COLOR_BLINDNESS)
def test_both_sides_of_the_diverging_scale_can_be_told_apart_with_colour_blindness(blindness, theme):
    seen = [as_seen_with(blindness, color) for color in colors.DIVERGING[theme]]
    for size in range(40, 128):
        assert difference(seen[127 - size], seen[128 + size]) > 0.07
    lightness = [colors.from_hex(color).lightness for color in seen]
    sign = 1 if theme == "light" else -1
    for below, above in itertools.pairwise(range(0, 128, 8)):
        assert sign * (lightness[above] - lightness[below]) > 0
        assert sign * (lightness[255 - above] - lightness[255 - below]) > 0


@pytest.mark.parametrize("theme", THEMES)
def test_the_diverging_scale_uses_no_colour_of_a_role(theme):
    hues = [colors.from_hex(color).hue for role, color in colors.ROLES[theme].items() if role != "neutral"]
    for end in (colors.DIVERGING[theme][0], colors.DIVERGING[theme][-1]):
        assert all(difference(end, color) > 0.06 for color in colors.ROLES[theme].values())
        turns = [abs(colors.from_hex(end).hue - hue) % 360 for hue in hues]
        assert min(min(turn, 360 - turn) for turn in turns) > 15


@pytest.mark.parametrize("theme", THEMES)
def test_the_neutral_scale_is_grey(theme):
    assert all(colors.from_hex(color).chroma < 0.04 for color in colors.SEQUENTIAL_NEUTRAL[theme])


@pytest.mark.parametrize("theme", THEMES)
def test_text_colours_can_be_read_on_the_background(theme):
    for color in [*colors.ROLES[theme].values(), colors.WARNING[theme]]:
        assert contrast(color, colors.BACKGROUND[theme]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_written_small_or_grey_can_be_read_on_every_ground(theme):
    """Streamlit writes captions with 60% of the colour of text, pictures quiet words with a share of theirs."""
    looks = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"][theme]
    sheet = (ROOT / "visualizer/components/shared/dom.css").read_text()
    quiet = int(re.search(r"--hl-muted: color-mix\(in srgb, var\(--hl-text\) (\d+)%", sheet)[1]) / 100
    grounds = [looks["backgroundColor"], looks["secondaryBackgroundColor"], looks["sidebar"]["backgroundColor"]]
    for ground in grounds:
        for share in (0.6, quiet):
            assert contrast(mixed(looks["textColor"], ground, share), ground) >= 4.5
        assert contrast(looks["linkColor"], ground) >= 4.5
        assert contrast(looks["primaryColor"], ground) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_written_on_a_button_of_the_primary_colour_can_be_read(theme):
    looks = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"][theme]
    sheet = (ROOT / "visualizer/page/page.css").read_text()
    inks = re.search(r'button\[kind="primary"\]\S* [^{]*\{\s*color: light-dark\((#\w{6}), (#\w{6})\)', sheet)
    assert contrast(inks[1 + THEMES.index(theme)], looks["primaryColor"]) >= 4.5


def mixed(over, under, share):
    """Mix a colour over another one with this share of opacity."""
    parts = [[int(text[start : start + 2], 16) for start in (1, 3, 5)] for text in (over, under)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(*parts, strict=True))


@pytest.mark.parametrize("theme", THEMES)
def test_heads_have_twelve_colours_that_can_be_seen(theme):
    assert len(set(colors.HEADS[theme])) == colors.N_HEAD_COLORS
    assert all(contrast(color, colors.BACKGROUND[theme]) >= 3 for color in colors.HEADS[theme])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("blindness", [None, *COLOR_BLINDNESS])
def test_the_colours_of_heads_can_be_told_apart_with_colour_blindness(blindness, theme):
    """The first four, which most models have, farther than all twelve; blue-blindness is a hundred times rarer."""
    seen = [as_seen_with(blindness, color) if blindness else color for color in colors.HEADS[theme]]
    nearest_of_four, nearest_of_all = (0.09, 0.05) if blindness == "tritanopia" else (0.16, 0.08)
    assert min(difference(*pair) for pair in itertools.combinations(seen[:4], 2)) > nearest_of_four
    assert min(difference(*pair) for pair in itertools.combinations(seen, 2)) > nearest_of_all


def test_a_head_has_the_same_hue_in_both_themes():
    for light, dark in zip(colors.HEADS["light"], colors.HEADS["dark"], strict=True):
        turned = abs(colors.from_hex(light).hue - colors.from_hex(dark).hue)
        assert min(turned, 360 - turned) < 10, (light, dark)


def test_heads_side_by_side_have_different_lines():
    assert len(set(colors.DASHES)) == len(colors.DASHES) == 4
    assert colors.DASHES[0] == ()


@pytest.mark.parametrize("theme", THEMES)
def test_every_mask_has_a_colour_that_can_be_seen(theme):
    assert set(colors.MASK_COLORS[theme]) == set(MASKS)
    for color in colors.MASK_COLORS[theme].values():
        assert contrast(color, colors.BACKGROUND[theme]) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("blindness", [None, *COLOR_BLINDNESS])
def test_the_colours_of_masks_can_be_told_apart_with_colour_blindness(blindness, theme):
    masks = colors.MASK_COLORS[theme].values()
    seen = [as_seen_with(blindness, color) if blindness else color for color in masks]
    for first, second in itertools.combinations(seen, 2):
        assert difference(first, second) > 0.07


@pytest.mark.parametrize("theme", THEMES)
def test_the_colour_of_a_mask_is_not_that_of_a_role(theme):
    others = [color for role, color in colors.ROLES[theme].items() if role not in ("residual", "neutral")]
    for color in colors.MASK_COLORS[theme].values():
        assert all(difference(color, other) > 0.06 for other in [*others, colors.WARNING[theme]])


@pytest.mark.parametrize("theme", THEMES)
def test_the_hatch_is_no_colour_of_a_scale(theme):
    for scale in (colors.SEQUENTIAL[theme], colors.SEQUENTIAL_NEUTRAL[theme], colors.DIVERGING[theme]):
        assert colors.HATCH[theme] not in scale
        assert colors.HATCH_GROUND[theme] not in scale


def test_the_browser_receives_both_themes_as_json():
    tables = json.loads(json.dumps(colors.as_json()))["themes"]
    assert set(tables) == set(THEMES)
    for theme in THEMES:
        for scale in ("sequential", "sequential_neutral", "diverging"):
            assert len(tables[theme][scale]) == 6 * 256
        assert set(tables[theme]["roles"]) == set(colors.ROLES[theme])
        assert tables[theme]["masks"] == colors.MASK_COLORS[theme]
