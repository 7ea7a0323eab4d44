"""The first page: what the study that ran here says, in one sentence, one picture and some texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from attentest.charts.forest import strip
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredText
from attentest.compare.verdicts import asks_for
from attentest.evidence.importances.names import WITH_NULLS, column
from attentest.gallery.answer import answer, forest_lines
from attentest.gallery.examples import Effects, Examples, examples
from attentest.gallery.heatmaps import strip_html
from attentest.gallery.index_page import CardPicture, LeadAnswer, PlayText
from attentest.gallery.pages import ForestRow, StudyPage
from attentest.gallery.rows import PointRows
from attentest.notebook import harmless, number

MOST = 8  # texts to turn over
LONGEST = 120  # words; what is longer is for the explorer
MODELS = 6  # lines in the picture of a study; what is more is on its page
PANELS = {
    "own": "attention",
    **{column(name): name for name in WITH_NULLS},
    "exact": "strongest adversary",
}
SAID = {  # what each panel is, for someone who has read nothing
    "own": "the weights that the model uses",
    "gradient": "how much the answer moves when a word does; as weights",
    "loo": "how much the answer moves without a word; as weights",
    "exact": "the furthest weights that keep the answer",
}
NO_WORDS = "The store has no texts of this corpus."
NO_WEIGHTS = "No text kept its weights."


def lead(
    points: Sequence[GridPoint], studies: Sequence[StudyPage], private: Collection[str]
) -> LeadAnswer | None:
    """What the study that comes first says, or all models where no study asks for any of them."""
    ran = ((page, _of(page, points)) for page in studies if page.ran)
    page, own = next(((page, own) for page, own in ran if own), (None, list(points)))
    says = answer(own)
    best = max(own, key=lambda point: (len(forest_lines(point)), -own.index(point)))
    rows = PointRows(best)
    texts, missing = ([], NO_WORDS) if best.corpus in private else _texts(rows)
    lines = [ForestRow(line=line, drawn=Markup(strip(line))) for line in forest_lines(best)]
    if not says and not lines:
        return None
    return LeadAnswer(
        study=page,
        where=_where(own),
        says=f"{says}." if says else "no test of attention ran yet.",
        point=best,
        models=len(own),
        model=next(iter(best.models.values()), ""),
        lines=lines,
        texts=texts,
        missing=missing,
    )


def card_picture(page: StudyPage, points: Sequence[GridPoint]) -> CardPicture | None:
    """The test that most models of the study have a number for, a line for each model."""
    by_test: dict[str, list[tuple[str, Markup]]] = {}
    own = _of(page, points)
    for point in own:
        corpus = f"{point.corpus.partition('(')[0]}: " if len({each.corpus for each in own}) > 1 else ""
        for line in forest_lines(point):
            name = corpus + point.model
            by_test.setdefault(line.label, []).append((name, Markup(strip(line))))
    if not by_test:
        return None
    test, lines = max(by_test.items(), key=lambda found: len(found[1]))
    return CardPicture(test=test, lines=lines[:MODELS], more=max(len(lines) - MODELS, 0))


def _of(page: StudyPage, points: Sequence[GridPoint]) -> list[GridPoint]:
    return [point for point in points if any(asks_for(page.study, each) for each in point.findings)]


def _where(points: Sequence[GridPoint]) -> str:
    """Corpora and models by name, or how many where there are many."""
    models = list(dict.fromkeys(point.model for point in points))
    corpora = list(dict.fromkeys(point.corpus.partition("(")[0] for point in points))  # without parameters
    named = ", ".join(corpora) if len(corpora) <= 2 else f"{len(corpora)} corpora"
    return f"{named}; {', '.join(models) if len(models) <= 2 else f'{len(models)} kinds of model'}"


def _texts(rows: PointRows) -> tuple[list[PlayText], str]:
    """Texts of the first seed under four weightings, the most telling first, or why there are none."""
    corpus = rows.point.stored_corpus
    words = None if corpus is None else corpus.test
    found = next(examples(rows), None)
    if not words:
        return [], NO_WORDS
    if found is None or found.vectors.empty or "own" not in found.vectors:
        return [], NO_WEIGHTS
    chosen = _chosen(found, words)
    return [_text(each, found, words[each], rows.point) for each in chosen], "" if chosen else NO_WEIGHTS


def _chosen(found: Examples, words: Mapping[str, StoredText]) -> list[str]:
    """Texts that the model gets right, have most weightings, and whose adversary is as far as most."""
    kept = found.vectors[found.vectors["own"].notna()]
    table = found.table.loc[[each for each in kept.index if _fits(each, kept, words)]]
    right = (table["label"] == table["predicted"]).astype(int)
    has = kept.loc[table.index].notna().sum(axis=1)
    off = (table["jsd"] - table["jsd"].median()).abs()
    order = pd.DataFrame({"right": -right, "has": -has, "off": off, "id": table.index}, index=table.index)
    return [str(each) for each in order.sort_values(["right", "has", "off", "id"]).index[:MOST]]


def _fits(each: str, kept: pd.DataFrame, words: Mapping[str, StoredText]) -> bool:
    """Whether every weight is that of a word; hierarchies weigh sentences."""
    weights: Any = kept.at[each, "own"]
    return (
        each in words and 1 < len(words[each].tokens) <= LONGEST and len(weights) == len(words[each].tokens)
    )


def _text(each: str, found: Examples, text: StoredText, point: GridPoint) -> PlayText:
    vectors, row = found.vectors.loc[each], found.table.loc[each]
    effects = found.effects.get(each, {})
    panels = "".join(
        _panel(name, vectors.get(name), text.tokens, _does(name, row, effects, point)) for name in PANELS
    )
    asked = f'<p class="asked">asked: {escape(harmless(" ".join(text.query)))}</p>' if text.query else ""
    return PlayText(
        id=each,
        text=" ".join(text.tokens),
        label=str(row["label"]),
        predicted=str(row["predicted"]),
        html=Markup(f'{asked}<div class="panels">{panels}</div>'),
        decisive=[text.tokens[place] for place in text.rationale if place < len(text.tokens)],
    )


def _does(name: str, row: Any, effects: Effects, point: GridPoint) -> str:
    """The prediction under these weights, and how far the output moves."""
    if name == "own":
        return f"says {row['predicted']}"
    if name == "exact":
        return f"says {row['predicted']}; moves by at most {point.tolerance:g}; JSD {number(row['jsd'])}"
    if name in effects:
        moved, says = effects[name]
        return f"says {says}; moves by {number(moved)}"
    return "prediction not computed"


def _panel(name: str, weights: Any, tokens: Sequence[str], does: str) -> str:
    """One weighting on its own scale: gradients are no attention, and share none with it."""
    shares = [] if weights is None else [abs(float(weight)) for weight in np.atleast_1d(weights)]
    if len(shares) != len(tokens):
        body = '<p class="missing">not computed</p>'
    else:
        total = sum(shares) or 1.0
        drawn = strip_html(tokens, [share / total for share in shares])
        body = f'{drawn}<p class="told">{escape(harmless(does))}</p>'
    head = f"<figcaption><strong>{PANELS[name]}</strong> <span>{SAID[name]}</span></figcaption>"
    return f'<figure class="panel">{head}{body}</figure>'
