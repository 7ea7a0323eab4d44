"""Numbers over all settings of a study: averages of tau, counts of what does not fall, flatness (WE-1, 4, 5).

A setting is a corpus, an encoder and an attention. Published ones are of more settings than a store may hold,
so they are laid beside ours, with how many settings those are of, and not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
import pandas as pd

from attentest.compare.papers import WEN
from attentest.compare.points import GridPoint, of_one_device
from attentest.compare.stored import StoredFinding
from attentest.compare.verdicts import asks_for
from attentest.experiments.shared.orders import LITTLE, tau_of
from attentest.statistics.crossed import intervals_of_means
from attentest.statistics.flatness import Flatness, flatness_finding
from attentest.statistics.record import Finding
from attentest.studies.published import PublishedNumber
from attentest.studies.recipe import Study

COLUMNS = ("corpus", "encoder", "attention", "seed", "tau", "entropy")
SETTING = ["corpus", "encoder", "attention"]
GUMBEL = "gumbel 0.8"
ALL = "all"
TASKS = {
    "Classification": ("sst", "imdb", "adr", "20news", "agnews", "mimic-diabetes", "mimic-anemia"),
    "QA": ("babi-1", "babi-2", "babi-3"),
    "NLI": ("snli",),
}


@final
@dataclass(frozen=True, kw_only=True)
class OverSettings:
    """One published number over settings, and ours over those that are here; NaN where there are none."""

    measure: str
    dataset: str
    model: str
    attention: str
    published: float
    ours: float
    low: float
    high: float
    settings: int  # that ours is of


def trainings(study: Study, points: Sequence[GridPoint]) -> pd.DataFrame:
    """Tau and mean flatness of every training of the study whose rows the store still holds."""
    found = [row for setting in _settings(study, points, "information") for row in _trainings(*setting)]
    return pd.DataFrame(found, columns=list(COLUMNS))


def _settings(
    study: Study, points: Sequence[GridPoint], experiment: str
) -> list[tuple[GridPoint, StoredFinding]]:
    """The findings of an experiment that the study asks for, of models trained on one device."""
    found = {point: point.of(experiment) for point in points}
    asked = {point: one for point, one in found.items() if one is not None and asks_for(study, one)}
    return [(point, asked[point]) for point in of_one_device(list(asked))]


def _trainings(point: GridPoint, finding: StoredFinding) -> Iterator[dict[str, object]]:
    setting = {name: point.axes[name] for name in SETTING}
    kept = finding.stored.kept  # a page shows these in a table and in a figure
    if finding.cell.key not in kept:
        kept[finding.cell.key] = [*_of_seeds(finding)]
    yield from ({**setting, **training} for training in kept[finding.cell.key])


def _of_seeds(finding: StoredFinding) -> Iterator[dict[str, object]]:
    rows = finding.rows()
    if rows is None:
        return
    own = rows[rows["subject"] == "trained"]
    for seed, texts in own.groupby("seed"):
        flat = texts["entropy"].astype(np.float64).mean()
        yield {"seed": seed, "tau": tau_of(texts), "entropy": float(flat)}


def changes(study: Study, points: Sequence[GridPoint]) -> pd.DataFrame:
    """What Gumbel-softmax loses of tau in every setting, the mean over its seeds."""
    found = []
    for point, finding in _settings(study, points, "information-ablation"):
        row = finding.row("tau-lost", GUMBEL)
        if row is not None and math.isfinite(row["estimate"]):
            found.append({**{name: point.axes[name] for name in SETTING}, "lost": row["estimate"]})
    return pd.DataFrame(found, columns=[*SETTING, "lost"])


def flatness(settings: pd.DataFrame, rng: np.random.Generator) -> Finding | None:
    """Spearman's correlation of flatness and tau over settings, with its interval; None without any."""
    samples = [_sample(of_seed) for _, of_seed in settings.groupby("seed")]
    if not samples:
        return None
    return flatness_finding(samples, rng=rng, experiment="information", group="overall", mode="corrected")


def _sample(settings: pd.DataFrame) -> Flatness:
    names = settings[SETTING].agg(" ".join, axis=1).to_numpy()
    entropy, tau = (settings[name].to_numpy(dtype=np.float64) for name in ("entropy", "tau"))
    return Flatness(names, entropy, tau)


def over_settings(
    study: Study, numbers: Sequence[PublishedNumber], points: Sequence[GridPoint]
) -> list[OverSettings]:
    """Every number of this kind that the study's papers print, with ours."""
    asked = [number for number in numbers if number["measure"] in OURS]
    if not asked:
        return []
    taus, lost = trainings(study, points), changes(study, points)
    return [_beside(number, lost if number["measure"] == COUNTED else taus) for number in asked]


def _beside(number: PublishedNumber, table: pd.DataFrame) -> OverSettings:
    own = _about(number, table).dropna()
    ours, low, high = OURS[number["measure"]](own) if len(own) else (math.nan,) * 3
    return OverSettings(
        measure=number["measure"],
        dataset=number["dataset"],
        model=number["model"],
        attention=number["attention"],
        published=number.value,
        ours=ours,
        low=low,
        high=high,
        settings=len(own[SETTING].drop_duplicates()),
    )


def _about(number: PublishedNumber, table: pd.DataFrame) -> pd.DataFrame:
    """The settings that a number speaks of; `all` and totals are of every one there is."""
    dataset = number["dataset"]
    corpora = TASKS.get(dataset, (WEN.datasets[dataset].corpus,) if dataset in WEN.datasets else ())
    words = {"encoder": WEN.encoders.get(number["model"], ALL), "attention": number["attention"]}
    kept = table["corpus"].isin(corpora) if corpora else pd.Series(True, index=table.index)
    for axis, name in words.items():
        kept &= (table[axis] == name) | (name == ALL)
    return table[kept]


Numbers = tuple[float, float, float]  # an estimate and its interval


def _mean(settings: pd.DataFrame) -> Numbers:
    """A setting counts once, however many seeds it has; the interval is over settings and seeds."""
    of_setting = [own for _, own in settings.groupby(SETTING)]
    taus, seeds = ([own[name].to_numpy() for own in of_setting] for name in ("tau", "seed"))
    interval = intervals_of_means([own[:, None] for own in taus], seeds)[0]
    return float(np.mean([own.mean() for own in taus])), interval.low, interval.high


def _between_seeds(take: Callable[[list[float]], float]) -> Callable[[pd.DataFrame], Numbers]:
    """How much tau differs between two seeds: of all pairs of a setting, and then of all settings."""

    def of(settings: pd.DataFrame) -> Numbers:
        pairs = [list(combinations(taus, 2)) for _, taus in settings.groupby(SETTING)["tau"]]
        apart = [take([abs(one - other) for one, other in own]) for own in pairs if own]
        return (take(apart) if apart else math.nan), math.nan, math.nan

    return of


def _not_fallen(settings: pd.DataFrame) -> Numbers:
    return float((settings["lost"] < LITTLE).sum()), math.nan, math.nan


COUNTED = "n_settings_tau_not_decreased"
OURS: dict[str, Callable[[pd.DataFrame], Numbers]] = {
    "mean_weighted_tau": _mean,
    "mean_abs_tau_diff_between_seeds": _between_seeds(lambda apart: float(np.mean(apart))),
    "max_tau_diff_between_seeds": _between_seeds(max),
    COUNTED: _not_fallen,
}
