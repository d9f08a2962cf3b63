"""The one source of colour: the grammar of roles, the scales and the palette of heads, for both themes.

Colours are built in OKLCH (Ottosson, "A perceptual color space for image processing", 2020), where equal steps of
lightness look equal. Every colour is written "#rrggbb"; a scale is 256 of them.
"""

import cmath
import math
from dataclasses import dataclass
from typing import Any, Literal

from visualizer.masks import MASK_KINDS

ThemeName = Literal["light", "dark"]
Role = Literal["query", "key", "value", "weights", "residual", "feed_forward", "neutral"]
Rgb = tuple[float, float, float]

N_STEPS = 256
N_HEAD_COLORS = 12


@dataclass(frozen=True)
class Oklch:
    """Lightness 0 to 1, chroma (0 is grey), hue in degrees."""

    lightness: float
    chroma: float
    hue: float


def to_hex(color: Oklch) -> str:
    """The colour as "#rrggbb", its chroma lowered as far as a screen needs."""
    red, green, blue = (round(255 * _gamma(min(max(part, 0.0), 1.0))) for part in _linear_rgb(_in_gamut(color)))
    return f"#{red:02x}{green:02x}{blue:02x}"


def from_hex(text: str) -> Oklch:
    """The colour written "#rrggbb"."""
    red, green, blue = (_inverse_gamma(int(text[start : start + 2], 16) / 255) for start in (1, 3, 5))
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    lightness = 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    return Oklch(lightness, math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360)


def _linear_rgb(color: Oklch) -> Rgb:
    a = color.chroma * math.cos(math.radians(color.hue))
    b = color.chroma * math.sin(math.radians(color.hue))
    long = (color.lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (color.lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (color.lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _in_gamut(color: Oklch) -> Oklch:
    """The same lightness and hue with the largest chroma, up to the given one, that sRGB can show."""
    if not _outside(color):
        return color
    low, high = 0.0, color.chroma
    for _ in range(20):
        middle = (low + high) / 2
        if _outside(Oklch(color.lightness, middle, color.hue)):
            high = middle
        else:
            low = middle
    return Oklch(color.lightness, low, color.hue)


def _outside(color: Oklch) -> bool:
    return any(part < -1e-4 or part > 1 + 1e-4 for part in _linear_rgb(color))


def _gamma(linear: float) -> float:
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def _inverse_gamma(encoded: float) -> float:
    return encoded / 12.92 if encoded <= 0.04045 else ((encoded + 0.055) / 1.055) ** 2.4


BACKGROUND: dict[ThemeName, str] = {"light": "#ffffff", "dark": "#0e1117"}

ROLES: dict[ThemeName, dict[Role, str]] = {
    "light": {
        "query": "#1d5fd1",
        "key": "#c62f3b",
        "value": "#23804a",
        "weights": "#7b3fc4",
        "residual": "#68707d",
        "feed_forward": "#9a5b00",
        "neutral": "#4b5563",
    },
    "dark": {
        "query": "#7ab0ff",
        "key": "#ff8b8b",
        "value": "#6fd08c",
        "weights": "#c3a2ff",
        "residual": "#a4abb6",
        "feed_forward": "#f2b44d",
        "neutral": "#c4c9d2",
    },
}

# Blocked cells: stripes on a ground that neither scale contains.
HATCH: dict[ThemeName, str] = {"light": "#bcc2cc", "dark": "#4c5564"}
HATCH_GROUND: dict[ThemeName, str] = {"light": "#f1f3f6", "dark": "#1b212b"}
# Numbers that no scale can show.
NOT_A_NUMBER: dict[ThemeName, str] = {"light": "#e6007e", "dark": "#ff4fa8"}
INFINITE: dict[ThemeName, str] = {"light": "#c7a600", "dark": "#f0dc4e"}
WARNING: dict[ThemeName, str] = {"light": "#b8336a", "dark": "#ff8fb3"}


def _scale(background: str, middle: Oklch, end: Oklch) -> tuple[str, ...]:
    """256 colours from the background through `middle` to `end`; lightness changes evenly from first to last."""
    start = from_hex(background)
    tint = _vector(start)
    steps = []
    for index in range(N_STEPS):
        fraction = index / (N_STEPS - 1)
        lightness = start.lightness + fraction * (end.lightness - start.lightness)
        # Half a parabola on each side: chroma rises to the middle and then turns to the end without a corner.
        rising = 1 - (1 - min(2 * fraction, 1.0)) ** 2
        falling = max(2 * fraction - 1, 0.0) ** 2
        chroma = middle.chroma * rising + (end.chroma - middle.chroma) * falling
        hue = middle.hue + (end.hue - middle.hue) * fraction
        # The tint of the background fades as the colour comes, or the first steps would look like another black.
        mixed = _vector(Oklch(lightness, chroma, hue)) + tint * (1 - rising)
        steps.append(to_hex(Oklch(lightness, abs(mixed), math.degrees(cmath.phase(mixed)) % 360)))
    steps[0] = background
    return tuple(steps)


def _vector(color: Oklch) -> complex:
    """Chroma and hue as a point of the plane."""
    return cmath.rect(color.chroma, math.radians(color.hue))


def _diverging(background: str, negative: Oklch, positive: Oklch) -> tuple[str, ...]:
    """256 colours from `negative` through the background, which is zero, to `positive`."""
    below, above = _scale(background, negative, negative), _scale(background, positive, positive)
    return (*below[:1:-2], background, background, *above[3::2])


# The weights' scale: from the background to deep purple, or on a dark background to bright lavender.
SEQUENTIAL: dict[ThemeName, tuple[str, ...]] = {
    "light": _scale(BACKGROUND["light"], Oklch(0.65, 0.19, 308), Oklch(0.27, 0.15, 292)),
    "dark": _scale(BACKGROUND["dark"], Oklch(0.55, 0.20, 296), Oklch(0.95, 0.05, 320)),
}

# The same from zero up for what is no attention: grey, the colour of no role in particular.
SEQUENTIAL_NEUTRAL: dict[ThemeName, tuple[str, ...]] = {
    "light": _scale(BACKGROUND["light"], Oklch(0.65, 0.03, 262), Oklch(0.27, 0.03, 262)),
    "dark": _scale(BACKGROUND["dark"], Oklch(0.55, 0.025, 270), Oklch(0.95, 0.01, 270)),
}

# Differences and signed numbers: teal below zero, copper above. No role has these hues, and every kind of colour
# blindness tells them apart.
DIVERGING: dict[ThemeName, tuple[str, ...]] = {
    "light": _diverging(BACKGROUND["light"], Oklch(0.40, 0.10, 205), Oklch(0.40, 0.105, 40)),
    "dark": _diverging(BACKGROUND["dark"], Oklch(0.85, 0.10, 200), Oklch(0.85, 0.10, 42)),
}


# Twelve colours as far from each other as they can be for every kind of colour vision at once, the first heads the
# farthest. Without red or green there is little more than light and dark, blue and yellow to tell them by, so they
# differ in lightness as much as in hue. A head has the same hue in both themes.
HEADS: dict[ThemeName, tuple[str, ...]] = {
    "light": (
        "#4a3fbd",
        "#bf8b1f",
        "#850044",
        "#7690e5",
        "#b86a6a",
        "#817200",
        "#710385",
        "#b72164",
        "#7d5ee0",
        "#1b93a4",
        "#4669a2",
        "#83451e",
    ),
    "dark": (
        "#4852cc",
        "#cdaf6f",
        "#db0065",
        "#7090ff",
        "#cb7e77",
        "#9c9000",
        "#896a94",
        "#ffa3b9",
        "#cbcbff",
        "#b3f9ff",
        "#93b1f2",
        "#9f4a10",
    ),
}

DASHES: tuple[tuple[int, ...], ...] = ((), (7, 4), (2, 3), (10, 3, 2, 3))
"""The lines of the heads, in turn: pixels drawn and left out. A head can be followed without its colour."""


def _masks(lightnesses: tuple[float, float]) -> dict[str, str]:
    """The colour of each mask's stripes on one theme."""
    colors = {name: kind.color for name, kind in MASK_KINDS.items()}
    return {name: to_hex(Oklch(lightnesses[step], chroma, hue)) for name, (step, chroma, hue) in colors.items()}


MASK_COLORS: dict[ThemeName, dict[str, str]] = {"light": _masks((0.53, 0.66)), "dark": _masks((0.70, 0.83))}


def as_json() -> dict[str, Any]:
    """Everything above in the form that the browser reads; a scale is one text of 256 times rrggbb."""
    return {
        "dashes": DASHES,
        "themes": {
            theme: {
                "roles": ROLES[theme],
                "heads": list(HEADS[theme]),
                "sequential": "".join(SEQUENTIAL[theme]).replace("#", ""),
                "sequential_neutral": "".join(SEQUENTIAL_NEUTRAL[theme]).replace("#", ""),
                "diverging": "".join(DIVERGING[theme]).replace("#", ""),
                "masks": MASK_COLORS[theme],
                "hatch": HATCH[theme],
                "hatch_ground": HATCH_GROUND[theme],
                "not_a_number": NOT_A_NUMBER[theme],
                "infinite": INFINITE[theme],
                "warning": WARNING[theme],
            }
            for theme in ("light", "dark")
        },
    }
