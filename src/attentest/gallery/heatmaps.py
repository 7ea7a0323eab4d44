"""Heat maps of attention: strips of tokens for a page, and pairs of strips to compare.

Tokens come from anybody's corpus: each is cleared of control and direction signs, then escaped. Weights
become classes of a style sheet, not style attributes, so that a page may forbid inline styles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import final

from attentest.notebook import harmless, number
from attentest.refusal import Refusal

WARM = (209, 90, 0)  # the papers' orange, at weight one
MANY = 60  # tokens shown of a long text; the heaviest are always among them
LEVELS = 20  # of warmth above none; finer steps cannot be told apart
NO_TOKEN = "∅"  # an empty token would be invisible, and its weight with it
EMPTY, NOT_THERE = "a text without tokens", "not looked for"


@final
@dataclass(frozen=True, kw_only=True)
class Strip:
    """One attention over a text, and what it does: the change of output and the JSD from the original."""

    name: str
    weights: Sequence[float] | None  # None where it was not looked for
    change: float = math.nan
    jsd: float = math.nan

    @property
    def told(self) -> list[str]:
        """What is known of it, in words."""
        known = (("output changes by", self.change), ("JSD", self.jsd))
        return [f"{what} {number(value)}" for what, value in known if math.isfinite(value)]


def heaviest(*weightings: Sequence[float]) -> float:
    """The largest weight that is a number, or zero."""
    return max((w for weights in weightings for w in weights if math.isfinite(w)), default=0.0)


def prominent(*weightings: Sequence[float], most: int = MANY) -> list[int]:
    """The places that are heavy in any weighting of one text, in the order of the text."""
    top = [heaviest(together) for together in zip(*weightings, strict=True)]
    return sorted(sorted(range(len(top)), key=lambda place: -top[place])[:most])


def _style_sheet() -> str:
    warmth = "".join(
        f".strip .w{level}, .heatmap .key.w{level} {{ background: {_colour(level / LEVELS)}; }}\n"
        for level in range(LEVELS + 1)
    )
    return f"""\
.strip {{ line-height: 1.75; overflow-wrap: anywhere; }}
.strip .token {{ color: #000; padding: .1em .2em; border-radius: .15em; unicode-bidi: isolate; }}
.strip .undefined {{ background: repeating-linear-gradient(45deg, #ddd 0 3px, #fff 3px 6px); }}
.strip .gap, .strip .gap > summary {{ display: inline; }}
.strip .gap > summary {{ cursor: pointer; white-space: nowrap; }}
.strip .gap[open]::details-content {{ display: inline; }}
.strip .gap:not([open])::details-content {{ display: none; }}
.strip .gap > summary, .heatmap .told, .heatmap .scale, .heatmap .asked {{ font-size: .85em; color: #555; }}
.heatmap .panels {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }}
.heatmap .panel {{ margin: 0; min-width: 0; }}
.heatmap figcaption {{ margin-bottom: .4rem; }}
.heatmap .told {{ display: block; min-height: 1.2em; }}
.heatmap .key {{ margin: 0 .3em 0 .6em; padding: 0 .7em; border: 1px solid #ccc; }}
{warmth}"""


def _colour(share: float) -> str:
    red, green, blue = (round(255 - share * (255 - channel)) for channel in WARM)
    return f"rgb({red}, {green}, {blue})"


HEATMAP_CSS = _style_sheet()


def strip_html(
    tokens: Sequence[str], weights: Sequence[float], *, top: float | None = None, collapse: int | None = None
) -> str:
    """The tokens on grounds as warm as their share of `top`, or of the largest weight.

    Runs of at least `collapse` tokens that would all stay white are folded into one line, which opens.
    """
    _check(tokens, weights)
    levels = _levels(weights, heaviest(weights) if top is None else top)
    return _strip(tokens, weights, levels, _runs([levels], collapse))


def pair_html(
    tokens: Sequence[str],
    rows: Sequence[Strip],
    *,
    title: str = "",
    query: Sequence[str] | None = None,
    top: float | None = None,
    collapse: int | None = None,
) -> str:
    """Attentions over one text side by side, on one scale: the original, what a search found, the optimum.

    The panels are equally wide and hold the same words, so their lines break at the same places.
    """
    known = known_weights(tokens, rows)
    top = heaviest(*known) if top is None else top
    runs = _runs([_levels(weights, top) for weights in known], collapse)
    panels = "".join(_panel(tokens, strip, top, runs) for strip in rows)
    heading = f"<h3>{_safe(title)}</h3>" if title else ""
    asked = f'<p class="asked">asked: {" ".join(map(_safe, query))}</p>' if query else ""
    key = f'<span class="key w0"></span> 0 <span class="key w{LEVELS}"></span> {top:.4g}'
    return (
        f'<section class="heatmap">{heading}{asked}<div class="panels">{panels}</div>'
        f'<p class="scale">weight: {key}</p></section>'
    )


def known_weights(tokens: Sequence[str], rows: Sequence[Strip]) -> list[Sequence[float]]:
    """The weights that there are, each checked to be one number for each token."""
    known = [strip.weights for strip in rows if strip.weights is not None]
    for weights in known:
        _check(tokens, weights)
    return known


def _check(tokens: Sequence[str], weights: Sequence[float]) -> None:
    if len(tokens) != len(weights):
        raise Refusal(
            "drawing a heat map",
            got=f"{len(weights)} weights for {len(tokens)} tokens",
            needs="one weight for each token",
            way_out="Leave out the padding, and the markers at both ends.",
        )


def _levels(weights: Sequence[float], top: float) -> list[int | None]:
    """How warm each token is, in steps; None where the weight is not a number."""
    return [_level(weight, top) if math.isfinite(weight) else None for weight in weights]


def _level(weight: float, top: float) -> int:
    return round(LEVELS * min(max(weight / top, 0.0), 1.0)) if top > 0 else 0


def _runs(levels: Sequence[Sequence[int | None]], collapse: int | None) -> list[tuple[range, bool]]:
    """The text in runs, and whether each is folded: white in every strip, and long enough."""
    white = [all(level == 0 for level in together) for together in zip(*levels, strict=True)]
    runs = []
    for cold, places in groupby(range(len(white)), key=white.__getitem__):
        run = list(places)
        folded = cold and collapse is not None and len(run) >= collapse
        runs.append((range(run[0], run[-1] + 1), folded))
    return runs


def _panel(tokens: Sequence[str], strip: Strip, top: float, runs: list[tuple[range, bool]]) -> str:
    body = f'<p class="told">{NOT_THERE}</p>'
    if strip.weights is not None:
        body = _strip(tokens, strip.weights, _levels(strip.weights, top), runs)
    told = f'<span class="told">{"; ".join(strip.told)}</span>'
    caption = f"<figcaption><strong>{_safe(strip.name)}</strong>{told}</figcaption>"
    return f'<figure class="panel">{caption}{body}</figure>'


def _strip(
    tokens: Sequence[str],
    weights: Sequence[float],
    levels: Sequence[int | None],
    runs: Sequence[tuple[range, bool]],
) -> str:
    def written(places: range) -> str:
        return " ".join(_token(tokens[n], weights[n], levels[n]) for n in places)

    parts = [_gap(len(run), written(run)) if folded else written(run) for run, folded in runs]
    return f'<div class="strip">{" ".join(parts) or EMPTY}</div>'


def _gap(n: int, words: str) -> str:
    said = f"… {n} {'word' if n == 1 else 'words'} …"
    return f'<details class="gap"><summary>{said}</summary> {words}</details>'


def _token(token: str, weight: float, level: int | None) -> str:
    warmth, said = ("undefined", "undefined") if level is None else (f"w{level}", f"{weight:.4g}")
    return f'<bdi class="token {warmth}" title="{said}">{_safe(token) or NO_TOKEN}</bdi>'


def _safe(words: str) -> str:
    return escape(harmless(words))
