"""Is there another attention, far from the model's own, under which it answers the same?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, final

import torch
from torch import Tensor

from attentest.evidence.adversary.matched import best_permutation, capped
from attentest.evidence.adversary.search import PublishedSearch
from attentest.evidence.adversary.strongest import Adversary as Found
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.importances.given_attention import AttentionPool
from attentest.evidence.permutation import permuted
from attentest.experiments.adversary import ABOUT
from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.shared.shown import nested, places
from attentest.model.divergence import attainable
from attentest.model.networks.projection import uniform
from attentest.model.reader import readings
from attentest.model.seam import Reading
from attentest.model.subset import selected
from attentest.refusal import Refusal

PUBLISHED = adversary.MAIN  # the paper's two tolerances; its figures use the second for all (A2)
SEARCHES = adversary.SEARCHES
CURVE = tuple(sorted((*PUBLISHED, *adversary.CURVE)))
Columns = dict[str, Tensor]
Vectors = dict[str, Tensor]


@final
@dataclass(frozen=True, kw_only=True)
class Adversary(AbstractBesideControls):
    """The largest divergence within a tolerance of the output (JW-5): exact, searched, matched, and nulls.

    Searching costs a hundred times what the exact optimum does, so at most `searched` texts of the trained
    model are searched, and for `matched` the fairer opponents are sought; of several classes, where each text
    takes linear programmes, `programmed` are solved. All are spread over the split, the fewer among the more.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 3

    candidates: int = 5
    steps: int = 500
    searched: int = 500
    matched: int = 200
    programmed: int = 200
    shown: int = 50
    texts: str = ""  # ids of further texts to keep whole

    def __post_init__(self) -> None:
        PublishedSearch(candidates=self.candidates, steps=self.steps)
        counts = {name: getattr(self, name) for name in ("searched", "matched", "programmed", "shown")}
        if min(counts.values()) < 0:
            raise Refusal(
                "experiment adversary",
                got=", ".join(f"{name}={count}" for name, count in counts.items()),
                needs="numbers of texts, 0 or more",
                way_out="Leave them out for the defaults.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        counts = (self.searched, self.matched, self.shown, self.programmed)
        searched, opposed, whole, solved = nested(subject, counts, self.texts)
        found: dict[int, Row] = {}
        if subject.name != "trained":  # a control needs neither opponents nor pictures
            whole = set()
        else:
            for at, opponent in chain(
                self._searched(subject, searched, rng), _matched(subject, opposed, rng)
            ):
                found[at] = found.get(at, {}) | opponent
        pool = None
        for rows, reading in readings(subject.model, subject.texts):
            several = reading.values is not None and reading.values.shape[2] > 2
            columns, vectors = exact(reading, places(rows, solved) if several else None, rng)
            if reading.values is not None and not several:  # there the exact road makes another null cheap
                pool = pool or AttentionPool.of(subject.model, subject.texts)
                lent = pool.swapped(subject.model, reading, rows, 1, rng=rng).weights[:, 0]
                columns |= under_swapped(reading, lent)
            numbers = {name: column.tolist() for name, column in columns.items()}
            for place, row in enumerate(common_columns(subject, rows, reading)):
                kept = {**NOT_LOOKED_FOR, **found.get(int(rows[place]), {})}
                if rows[place] in whole:
                    kept |= {
                        name: vector[place, : row["length"]].tolist() for name, vector in vectors.items()
                    }
                else:
                    kept["search_weights"] = None
                yield {
                    **row,
                    "epsilon": PUBLISHED[reading.query is not None],
                    "proved": reading.values is not None and not several,
                    **{name: column[place] for name, column in numbers.items()},
                    **kept,
                }

    def _searched(
        self, subject: Subject, sought: set[int], rng: torch.Generator
    ) -> Iterator[tuple[int, Row]]:
        """The published search with and without its pair term, of some texts in batches of their own."""
        pair = "distinct" if self.mode == "corrected" else "as-published"
        search = PublishedSearch(epsilons=PUBLISHED, candidates=self.candidates, steps=self.steps, pair=pair)
        for rows, reading in readings(subject.model, subject.texts, sought):
            with torch.no_grad():
                paired = search.run(subject.model, reading, rng=rng)
                unpaired = replace(search, pair=None).run(subject.model, reading, rng=rng)
            values = dict(zip(SEARCHES, (paired.last, paired.best, unpaired.best), strict=True))
            weights = paired.weights[int(reading.query is not None)]
            lengths = reading.mask.sum(1).tolist()
            for place, columns in enumerate(_by_text(values, reading)):
                best = weights[place, : lengths[place]].tolist()
                yield int(rows[place]), columns | {"search_weights": best}


def _matched(subject: Subject, there: set[int], rng: torch.Generator) -> Iterator[tuple[int, Row]]:
    """The two opponents that are no peakier than the own attention, where the decision is affine."""
    for rows, reading in readings(subject.model, subject.texts, there):
        if reading.values is None or reading.bias is None:
            return
        these = (reading.weights, reading.values, reading.bias, reading.mask, PUBLISHED)
        with torch.no_grad():
            values = {
                "permuted": best_permutation(*these, rng=rng).divergence,
                "capped": capped(*these, rng=rng).divergence,
            }
        yield from zip(rows.tolist(), _by_text(values, reading), strict=True)


def _by_text(values: Mapping[str, Tensor], reading: Reading) -> list[Row]:
    """One value a name and tolerance; a text of one token leaves attention no choice, hence NaN."""
    alone = _alone(reading)
    names = [f"{name}@{epsilon:g}" for name in values for epsilon in PUBLISHED]
    found = torch.cat([divergence.double() for divergence in values.values()])
    columns = found.masked_fill(alone, float("nan")).T.tolist()
    return [dict(zip(names, numbers, strict=True)) for numbers in columns]


@torch.no_grad()
def exact(reading: Reading, there: Tensor | None, rng: torch.Generator) -> tuple[Columns, Vectors]:
    """The optimum, its curve over tolerances, and the same under shuffled and uniform weights.

    NaN where the decision is not affine, for one token, which leaves attention no choice, and for texts that
    are not among `there`, where that is given.
    """
    names = [f"exact@{e:g}" for e in CURVE]
    names += [f"{name}@{e:g}" for name in ("bound", "shuffled", "swapped", "uniform") for e in PUBLISHED]
    columns = {name: _nothing(reading) for name in names}
    own = reading.weights.double()
    alone = _alone(reading)
    columns["attainable"] = attainable(own, reading.mask).masked_fill(alone, float("nan"))
    vectors = {"weights": reading.weights, "exact_weights": torch.full_like(reading.weights, torch.nan)}
    if reading.values is None or (there is not None and not len(there)):
        return columns, vectors
    several = reading.values.shape[2] > 2
    if there is None:
        there = torch.arange(len(reading.mask))
    part = selected(reading, there.to(reading.mask.device))
    for epsilon in PUBLISHED if several else CURVE:
        found = _strongest(part, part.weights, epsilon)
        columns[f"exact@{epsilon:g}"][there] = found.divergence
        if epsilon in PUBLISHED:
            columns[f"bound@{epsilon:g}"][there] = found.bound
        if epsilon == PUBLISHED[reading.query is not None]:
            vectors["exact_weights"][there, : part.mask.shape[1]] = found.weights.to(reading.weights)
    shuffled = permuted(part.weights, part.mask, 1, rng=rng)[:, 0]
    for name, weights in (("shuffled", shuffled), ("uniform", uniform(part.scores, part.mask))):
        for epsilon in PUBLISHED:
            columns[f"{name}@{epsilon:g}"][there] = _strongest(part, weights, epsilon).divergence
    return {name: column.masked_fill(alone, float("nan")) for name, column in columns.items()}, vectors


def under_swapped(reading: Reading, lent: Tensor) -> Columns:
    """The optimum against another text's weights; NaN where no other text is as long."""
    undefined = lent.isnan().any(1) | _alone(reading)
    weights = torch.where(undefined[:, None], reading.weights, lent)
    return {
        f"swapped@{e:g}": _strongest(reading, weights, e).divergence.masked_fill(undefined, float("nan"))
        for e in PUBLISHED
    }


def _strongest(reading: Reading, weights: Tensor, epsilon: float) -> Found:
    assert reading.values is not None and reading.bias is not None
    return strongest_adversary(
        weights, reading.values, reading.bias, reading.mask, epsilon, answers=reading.batch.answers
    )


def _alone(reading: Reading) -> Tensor:
    return reading.mask.sum(1) < 2


def _nothing(reading: Reading) -> Tensor:
    nan = float("nan")
    return torch.full((len(reading.mask),), nan, dtype=torch.float64, device=reading.mask.device)


# What a row has of an opponent that was not looked for.
NOT_LOOKED_FOR: Row = {
    **{f"{name}@{e:g}": float("nan") for name in (*SEARCHES, "permuted", "capped") for e in PUBLISHED},
    **dict.fromkeys(("weights", "exact_weights", "search_weights")),
}
