"""A study's published numbers beside what a store holds: one row for each pair, one line for each gap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, final

from attentest import notebook
from attentest.compare.absence import absence
from attentest.compare.agreement import (
    RULE,
    Judgement,
    barred,
    is_recalled,
    judge,
    judge_size,
    made_otherwise,
)
from attentest.compare.over_settings import over_settings
from attentest.compare.papers import SIZES, UNKNOWN_ORDER
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored, StoredCorpus, StoredFinding
from attentest.compare.translation import Wanted, is_result, place, printed_once, wanted
from attentest.store.cell import short
from attentest.store.checking import named, without_damaged
from attentest.store.store import Store
from attentest.store.studies import name_or_path
from attentest.studies.published import WORDS, PublishedNumber, load_published
from attentest.studies.recipe import Study, load_study

Row = dict[str, Any]
SHOWN = (
    *("dataset", "model", "attention", "class", "measure", "published", "published_a", "ours", "low", "high"),
    *("agrees", "p_agrees_if_equal"),
)
VERDICTS = ("same", "agrees", "differs", "cannot tell", "not comparable", "recalled")  # sizes are the same
SHOWN_ANYWAY = ("vectors", "decoder", "epochs", "encoder", "attention", "projection")


@final
class Comparison(dict[str, Any]):
    """The comparison as one document for programs, which shows itself in a notebook."""

    def _repr_html_(self) -> str:
        counts = f"{len(self['rows'])} published numbers beside ours, {len(self.get('sizes', ()))} sizes,"
        counts += f" {len(self['missing'])} missing"
        rows = [[row[name] for name in SHOWN] for row in self["rows"]]
        return notebook.said(f"{self['title']}: {counts}.") + notebook.table(SHOWN, rows)


def compare(name: str, store_url: str, shelf: Mapping[str, str]) -> Comparison:
    """The comparison as one document without NaN; `shelf` says of every corpus whether it is here."""
    store = Store(store_url).existing()
    found = without_damaged(store, lambda store: compare_stored(name, Stored(store), shelf))
    return Comparison(found, damaged=named(store))


def compare_stored(name: str, stored: Stored, shelf: Mapping[str, str]) -> Comparison:
    """The same with what was read of a store before: a report compares every study with one store."""
    name = name_or_path(stored.store, name)
    study = load_study(name)
    printed = load_published(name)
    numbers = [number for number in printed if is_result(number)]
    comparison = _Comparison(stored, numbers, study.model)
    rows: list[Row] = []
    sizes: list[Row] = []
    missing: list[Row] = []
    for number, earlier in printed_once(numbers):
        sought, beside = wanted(number), _version_a(earlier)
        own, tried = comparison.rows(number, sought, sought.corpus)
        found = own
        if sought.stand_in:
            found = own + comparison.rows(number, sought, sought.stand_in)[0]
        (sizes if sought.statistic in SIZES else rows).extend(row | beside for row in found)
        if not own:
            gap = absence(sought, study, name, shelf, tried)
            missing.append(
                {
                    **number.words,
                    "corpus": sought.corpus,
                    "published": number.value,
                    **beside,
                    "recalled": is_recalled(number),
                    "reason": gap.reason,
                    "way_out": gap.way_out,
                }
            )
    return Comparison(
        {
            "study": study.study,
            "title": study.title,
            "rule": RULE,
            "summary": _summary(rows),
            "rows": rows,
            "sizes_summary": _summary(sizes),
            "sizes": sizes,
            "missing": missing,
            "over_settings": _over_settings(study, printed, stored),
        }
    )


def _summary(rows: Sequence[Row]) -> dict[str, int]:
    counts = Counter(row["agrees"] for row in rows)
    return {said: counts[said] for said in VERDICTS if counts[said]}


def _version_a(earlier: PublishedNumber | None) -> Row:
    """What an earlier version of the table prints; not of a class that may be another one there (A20)."""
    if earlier is None:
        return {"published_a": None, "published_a_std": None, "version_a": ""}
    if place(earlier) in UNKNOWN_ORDER and earlier["class"] not in ("", "Overall"):
        note = f"{earlier['table']}: which class it is there is not known (A20)"
        return {"published_a": None, "published_a_std": None, "version_a": note}
    return {
        "published_a": earlier.value,
        "published_a_std": _number(earlier.std),
        "version_a": earlier["table"],
    }


def _over_settings(study: Study, printed: Sequence[PublishedNumber], stored: Stored) -> list[Row]:
    """Published averages and counts over settings beside ours, of as many settings as are here."""
    found = [asdict(one) for one in over_settings(study, printed, grid_points(stored))]
    return [{k: _number(v) if isinstance(v, float) else v for k, v in row.items()} for row in found]


@final
class _Comparison:
    def __init__(
        self, stored: Stored, numbers: Sequence[PublishedNumber], prescribed: Mapping[str, Any]
    ) -> None:
        self.stored, self.prescribed = stored, prescribed
        printed: Counter[tuple[str, str, str]] = Counter()  # classes of one table add up, tables do not
        for number in numbers:
            if number["measure"] in ("train_size", "train_plus_dev_size"):
                printed[place(number)] += int(number.value)
        self.training_texts = {(paper, dataset): texts for (paper, _, dataset), texts in printed.items()}

    def rows(self, number: PublishedNumber, sought: Wanted, corpus: str) -> tuple[list[Row], list[str]]:
        """What there is of ours, and of what is there but says nothing, why."""
        if sought.statistic in SIZES:
            found = list(self._sizes(number, sought, corpus))
        else:
            found = list(self._findings(number, sought, corpus))
        rows = [row for row in found if isinstance(row, dict)]
        return rows, [reason for reason in found if isinstance(reason, str)]

    def _sizes(self, number: PublishedNumber, sought: Wanted, corpus: str) -> Iterator[Row | str]:
        for stored in self.stored.corpora(corpus):
            ours = stored.size(number["measure"], sought.label)
            if ours is None:
                yield f"the store does not hold what tells its {number['measure']}"
            else:
                said = self._barred(number, corpus, stored) or judge_size(number, corpus, ours)
                yield _row(number, sought, corpus, said, ours=ours, cells=[stored.cell.key])

    def _findings(self, number: PublishedNumber, sought: Wanted, corpus: str) -> Iterator[Row | str]:
        variants = self.stored.findings(sought, corpus)
        for variant, differs in zip(variants, told_apart(variants), strict=True):
            found = variant.row(sought.measure, sought.group)
            if found is None:
                yield f"cell {short(variant.cell.key)} has no {sought.measure} for {sought.group}"
            elif math.isnan(found["estimate"]):
                yield f"cell {short(variant.cell.key)}: undefined ({found['why'] or 'no texts'})"
            else:
                said = self._judged(number, sought, corpus, variant, found)
                yield _row(
                    number, sought, corpus, said, differs=differs, **_measured(found), **_made(variant)
                )

    def _judged(
        self, number: PublishedNumber, sought: Wanted, corpus: str, variant: StoredFinding, found: Row
    ) -> Judgement:
        said = self._barred(number, corpus, self.stored.corpus(variant.corpus_key))
        said = said or made_otherwise(self.prescribed, variant.settings)
        ours, seeds = float(found["estimate"]), int(found["seeds"])
        return said or judge(number, sought.statistic, corpus, ours, float(found["seed_std"]), seeds)

    def _barred(self, number: PublishedNumber, corpus: str, stored: StoredCorpus | None) -> Judgement | None:
        texts = None if stored is None else stored.texts("train")
        return barred(number, corpus, texts, self.training_texts.get((number["paper"], number["dataset"])))


def told_apart(variants: Sequence[StoredFinding]) -> list[str]:
    """What distinguishes cells of one grid point, beyond the vectors, decoder and epochs every row shows."""
    described = [_description(variant) for variant in variants]
    names = dict.fromkeys(name for one in described for name in one)
    varying = [name for name in names if len({str(one.get(name)) for one in described}) > 1]
    # That a number was made with the published code's errors, or not on a CPU, is never left unsaid.
    return [
        ", ".join(
            f"{name} {one.get(name, 'default')}"
            for name in names
            if name in varying or one.get(name) == "as-published" or (name == "trained_on" and name in one)
        )
        for one in described
    ]


def _description(variant: StoredFinding) -> dict[str, Any]:
    config = variant.cell.config
    settings = {name: value for name, value in variant.settings.items() if name not in SHOWN_ANYWAY}
    texts = short(variant.corpus_key) if variant.corpus_key else "unknown"
    return {"mode": config["mode"], **config["parameters"], **settings, "corpus cell": texts}


def _measured(found: Row) -> Row:
    """The finding's own numbers."""
    plain = {name: _number(found[name]) for name in ("low", "high", "seed_std", "std", "null")}
    counts = {name: int(found[name]) for name in ("n", "excluded", "seeds")}
    return {
        "ours": float(found["estimate"]),
        **plain,
        **counts,
        "excluded_why": found["why"],
        "interval": found["interval"],
    }


def _made(variant: StoredFinding) -> Row:
    """How the models were made, and the cell to look it up by."""
    settings = variant.settings
    return {
        "vectors": settings.get("vectors", "random"),
        "epochs": settings.get("epochs"),
        "epochs_run": variant.epochs_run,
        "decoder": settings.get("decoder"),
        "mode": variant.cell.config["mode"],
        "parameters": dict(variant.cell.config["parameters"]),
        "settings": dict(settings),
        "cells": [variant.cell.key],
    }


def _row(number: PublishedNumber, sought: Wanted, corpus: str, said: Judgement, **ours: Any) -> Row:
    """One pair; every row has the same fields, None where a size has no such thing."""
    row: Row = {name: number[name] for name in WORDS}
    row |= {
        "corpus": corpus,
        "encoder": sought.encoder,
        "label": sought.label,
        "group": sought.named,
        "statistic": sought.statistic,
        "published": number.value,
        "published_std": _number(number.std),
        "source": number.source,
        "recalled": is_recalled(number),
    }
    return row | dict.fromkeys(OURS) | {"differs": ""} | ours | asdict(said)


OURS = (
    *("ours", "low", "high", "interval", "seed_std", "std", "null", "n", "excluded", "excluded_why", "seeds"),
    *("vectors", "epochs", "epochs_run", "decoder", "mode", "parameters", "settings", "cells"),
)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
