"""Texts to look at: the model's attention beside a search's and the furthest one with the same output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pandas as pd

from attentest.compare.stored import StoredText
from attentest.gallery.heatmaps import HEATMAP_CSS, Strip, pair_html
from attentest.notebook import number

MOST, A_CLASS = 12, 3  # texts on a page, and of a class
OWN, SEARCH, EXACT = "the model's attention", "found by the search", "furthest with the same output"
FOLDED = 12  # words in a row that no attention weighs are folded away


@final
@dataclass(frozen=True, kw_only=True)
class ShownText:
    """One text under several attentions."""

    id: str
    label: str
    predicted: str
    tokens: Sequence[str]
    query: Sequence[str]
    strips: Sequence[Strip]
    facts: Sequence[str] = ()

    @property
    def fits(self) -> bool:
        """Whether every weight is that of a token; hierarchies weigh sentences."""
        return all(strip.weights is None or len(strip.weights) == len(self.tokens) for strip in self.strips)

    @property
    def html(self) -> str:
        """The text under each attention, for a page that has the style of heat maps."""
        right = "rightly" if self.predicted == self.label else f"where the label is {self.label}"
        facts = "".join(f"; {fact}" for fact in self.facts)
        title = f"{self.id}: says {self.predicted}, {right}{facts}"
        return pair_html(self.tokens, self.strips, title=title, query=self.query, collapse=FOLDED)

    def _repr_html_(self) -> str:
        """The same for a notebook, which has no such style."""
        return f"<style>{HEATMAP_CSS}</style>\n{self.html}"


def most_opposed(rows: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """Of the texts kept whole, for each predicted class those whose attention can move furthest.

    They are one model's: that of the first seed. Where no optimum is known the search's best decides, and
    texts with both come before the others, since pictures are there to be compared.
    """
    if "weights" not in rows:  # nothing was observed, or by a version that kept no text whole
        return rows.iloc[:0]
    kept = rows[(rows["subject"] == "trained") & rows["weights"].notna()]
    kept = kept[kept["seed"] == kept["seed"].min()]
    exact, best = kept[f"exact@{tolerance:g}"], kept[f"best@{tolerance:g}"]
    kept = kept.assign(far=exact.fillna(best), both=exact.notna() & best.notna()).dropna(subset="far")
    ranked = kept.sort_values(["both", "far", "id"], ascending=[False, False, True])
    each = max(1, min(A_CLASS, MOST // max(ranked["predicted"].nunique(), 1)))
    chosen = ranked.groupby("predicted", sort=False).head(each).head(MOST)
    return chosen.sort_values(["predicted", "far", "id"], ascending=[True, False, True])


def opposed_texts(chosen: pd.DataFrame, tolerance: float, texts: Mapping[str, StoredText]) -> list[ShownText]:
    """Rows of the adversary as texts, those whose words are known."""
    return [
        ShownText(
            id=row["id"],
            label=row["label"],
            predicted=row["predicted"],
            tokens=texts[row["id"]].tokens,
            query=texts[row["id"]].query,
            strips=(
                Strip(name=OWN, weights=_numbers(row["weights"])),
                _strip(SEARCH, row["search_weights"], row[f"best@{tolerance:g}"]),
                _strip(EXACT, row["exact_weights"], row[f"exact@{tolerance:g}"]),
            ),
        )
        for row in chosen.to_dict("records")
        if row["id"] in texts
    ]


def pictured_texts(rows: pd.DataFrame) -> list[ShownText]:
    """Rows of the heat-map experiment as texts, each under the model of the first seed that has it."""
    if rows.empty:
        return []
    first = rows.sort_values("seed", kind="stable").drop_duplicates("id").to_dict("records")
    return [
        ShownText(
            id=row["id"],
            label=row["label"],
            predicted=row["predicted"],
            tokens=list(row["tokens"]),
            query=list(row["query"]),
            strips=(
                Strip(name=OWN, weights=_numbers(row["weights"])),
                _strip(SEARCH, row["search_weights"], row["search_jsd"], row["search_change"]),
                _strip(EXACT, row["exact_weights"], row["exact_jsd"], row["exact_change"]),
            ),
            facts=(
                f"output {number(row['output'])}",
                f"τ of attention and gradient {number(row['tau_gradient'])}",
                f"median change when permuted {number(row['median_change'])}",
            ),
        )
        for row in first
    ]


def _strip(name: str, weights: Any, jsd: float, change: float = math.nan) -> Strip:
    """An attention whose divergence is not known was not looked for, whatever lies in its place."""
    looked_for = weights is not None and math.isfinite(jsd)
    return Strip(name=name, weights=_numbers(weights) if looked_for else None, jsd=jsd, change=change)


def _numbers(weights: Any) -> list[float]:
    return [float(weight) for weight in weights]
