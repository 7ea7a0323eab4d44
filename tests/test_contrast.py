"""Contrast, computed from the colours of the style sheets, by day and by night: text 4.5, marks 3."""

import re
from importlib import resources

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.gallery.heatmaps import LEVELS, _colour
from attentest.gallery.site import night_ink

SHEETS = {
    "report": (resources.files("attentest.gallery") / "style.css").read_text(),
    "live": (resources.files("attentest.web") / "live.css").read_text(),
}
TEXT = [("ink", "ground"), ("faint", "ground"), ("deep", "ground"), ("ink", "tint")]
VERDICTS = [("good-ink", "good"), ("bad-ink", "bad"), ("open-ink", "open")]
ON_ROWS = [
    ("warm", "ground"),
    ("ink", "hover"),
    ("faint", "hover"),
    ("deep", "hover"),
    ("faint", "tint"),
    ("bad-ink", "ground"),
]
MARKS = [("dot", "ground"), ("warm", "ground"), ("warm", "tint"), ("deep", "tint")]


def colours(sheet, *, night):
    """The variables of the sheet; by night those of the day, but for what the night changes."""
    day, _, dark = SHEETS[sheet].partition("prefers-color-scheme: dark")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", day))
    return found | (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", dark)) if night else {})


def channels(colour):
    if colour.startswith("#"):
        return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return [int(each) for each in re.findall(r"\d+", colour)]


def luminance(colour):
    """Relative luminance of sRGB, as the accessibility guidelines define it."""
    shares = [channel / 255 for channel in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one, other):
    low, high = sorted(luminance(channels(each) if isinstance(each, str) else each) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def mixed(warm, cold, share):
    return [
        share * one + (1 - share) * other for one, other in zip(channels(warm), channels(cold), strict=True)
    ]


def test_the_measure_of_contrast_is_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("night", [False, True], ids=["day", "night"])
@pytest.mark.parametrize("sheet", SHEETS)
def test_text_can_be_read(sheet, night):
    there = colours(sheet, night=night)
    pairs = TEXT + (VERDICTS + ON_ROWS if sheet == "report" else [])
    assert there and not [
        (ink, ground, round(contrast(there[ink], there[ground]), 2))
        for ink, ground in pairs
        if contrast(there[ink], there[ground]) < 4.5
    ]


@pytest.mark.parametrize("night", [False, True], ids=["day", "night"])
def test_marks_and_outlines_can_be_seen(night):
    there = colours("report", night=night)
    assert not [pair for pair in MARKS if contrast(there[pair[0]], there[pair[1]]) < 3]


@pytest.mark.parametrize("level", range(LEVELS + 1))
def test_words_can_be_read_on_every_warmth(level):
    assert contrast("#000000", _colour(level / LEVELS)) >= 4.5
    night = colours("report", night=True)
    assert contrast(night_ink(level / LEVELS), mixed(night["hot"], night["cold"], level / LEVELS)) >= 4.5
