"""The catalogue: corpora, experiments and models with their sources and costs, and every cell's command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.compare.pairs import count
from attentest.compare.points import GridPoint, told_apart
from attentest.compare.stored import Stored
from attentest.compare.verdicts import command
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS, title_and_question
from attentest.gallery.pages import CataloguePage, CellEntry, CorpusEntry, ExperimentEntry
from attentest.studies.recipe import Study

About = Mapping[str, Any]  # of a corpus: name, title, status, licence, cite


def catalogue(
    stored: Stored,
    points: Sequence[GridPoint],
    studies: Mapping[str, Study],
    corpora: Sequence[About],
    version: str,
) -> CataloguePage:
    """Everything that can be named here, what the store has of it, and what that took."""
    return CataloguePage(
        corpora=_corpora(points, corpora),
        experiments=[_experiment(name, stored) for name in CONCLUSIONS],
        points=[
            (point, apart, _training(point, stored))
            for point, apart in zip(points, told_apart(points), strict=True)
        ],
        cells=[
            CellEntry(
                key=finding.cell.key,
                experiment=finding.cell.config["experiment"],
                mode=finding.cell.config["mode"],
                point=point,
                seconds=_total([stored.seconds[cell.key] for cell in finding.observations]),
                command=command(studies, finding),
            )
            for point in points
            for finding in point.findings
        ],
        version=version,
    )


def _corpora(points: Sequence[GridPoint], corpora: Sequence[About]) -> list[CorpusEntry]:
    """Those the catalogue names, and after them those that only the store knows."""
    held = {point.corpus: point.stored_corpus for point in points}
    named = [str(about["name"]) for about in corpora]
    others = [{"name": name, "title": "in this store only"} for name in held if name not in named]
    return [
        CorpusEntry(
            **{
                field: str(about.get(field) or "–")
                for field in ("name", "title", "status", "licence", "cite")
            },
            counts=_counts(held.get(str(about["name"]))),
        )
        for about in (*corpora, *others)
    ]


def _counts(corpus: Any) -> str:
    if corpus is None:
        return "–"
    return ", ".join(f"{count(sum(labels.values()))} {split}" for split, labels in corpus.counts.items())


def _experiment(name: str, stored: Stored) -> ExperimentEntry:
    title, asks = title_and_question(name)
    cards = [card for key, card in CARDS.items() if key.split("/")[0] == name]
    keys = [
        key
        for key, cell in stored.cells.items()
        if cell.stage == "observation" and cell.config.get("experiment") == name
    ]
    return ExperimentEntry(
        name=name,
        title=title,
        asks=asks,
        papers=sorted({card.paper for card in cards if card.paper}),
        cards=cards,
        done=len(keys),
        seconds=_mean([stored.seconds[key] for key in keys]),
    )


def _training(point: GridPoint, stored: Stored) -> float:
    """Seconds a seed, where the store knows."""
    keys = {cell.inputs["model"] for f in point.findings for cell in f.observations if "model" in cell.inputs}
    return _mean([stored.seconds[key] for key in keys if key in stored.seconds])


def _total(seconds: Sequence[float]) -> float:
    """NaN where the store no longer describes the observations."""
    return math.fsum(seconds) if seconds else math.nan


def _mean(seconds: Sequence[float]) -> float:
    known = [second for second in seconds if math.isfinite(second)]
    # Keys come from a set, in another order each time: `fsum` gives the same number in any.
    return math.fsum(known) / len(known) if known else math.nan
