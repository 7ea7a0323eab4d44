"""Attention as a ranking of words: beside explainers, erased in its order, beside what people marked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from attentest.auditing.means import DRAWN, ERASED, EXPLAINERS, MARKED
from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.drawn_units import drawn_units, only
from attentest.evidence.importances.catalogue import explain
from attentest.evidence.importances.faithfulness import faithfulness, random_scores
from attentest.evidence.importances.nested_integration import integrated_to
from attentest.evidence.importances.presence import changes_without
from attentest.evidence.importances.sampled import Precision, sampled
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading
from attentest.statistics.plausibility import plausibility, shuffled_plausibility
from attentest.statistics.rank_agreement import kendalls

DRAWS = 50  # shuffles of a text's weights behind the null of plausibility


def answering(model: Model, reading: Reading) -> tuple[Model, Reading]:
    """Who answers for parts of the texts of a reading: of those nobody wants the map, which may take long."""
    answered_by = model.capabilities.answered_by
    return (model, reading) if answered_by is None else (answered_by.model, answered_by.own(reading))


def _of_parts(subject: Subject) -> Iterator[tuple[np.ndarray, Reading]]:
    """Readings whose parts are asked about; of a map those that all questions have: it may take long."""
    of_map = subject.model.capabilities.answered_by is not None
    return readings(subject.model, subject.texts, parts=not of_map)


def agreed(subject: Subject, precision: Precision, rng: torch.Generator) -> Iterator[Row]:
    """One row a text: tau-b of attention with how much each explainer says a unit matters.

    What is drawn ends with the `precision`; each row says how much that was. Explainers by perturbation
    share the parts that they ask about, and those that leave-one-out has asked about already.

    The null that shuffles importance per weight, as gradients have it, is right only for an importance that
    is the weight times something, and known without noise. These explainers go through the whole model and
    some of them draw: where importance is no such product that null stays far above an agreement of 0, and
    noise lowers the agreement more than the null (simulated in the tests). So the untrained twin is asked.
    """
    for rows, reading in _of_parts(subject):
        model, own = answering(subject.model, reading)
        units = drawn_units(own, subject.ranked)
        with torch.no_grad():
            drawn = sampled(model, own, precision, rng=rng, known=subject.known, units=units)
            along = integrated_to(model, own, precision)
            left = changes_without(model, own, known=subject.known, units=units)
            found = {
                "leave-one-out": left,
                "integrated-gradients": along.values,
                "shapley": drawn.shapley,
                "lime": drawn.lime,
            }
            others = [name for name in EXPLAINERS if name not in found]
            found |= explain(model, own, rng=rng, names=others) if others else {}
        ranked = (reading.mask if units is None else units).sum(1)
        weights, lengths = only(units, reading.weights).cpu().numpy(), ranked.cpu().numpy()
        count = count_on(reading.weights.device)
        magnitudes = {name: only(units, each.detach().abs()) for name, each in found.items()}
        sizes = {name: each.to(reading.weights).cpu().numpy() for name, each in magnitudes.items()}
        columns = {name: kendalls(weights, size, lengths, count=count)[0] for name, size in sizes.items()}
        columns |= {
            name: each.double().cpu().numpy()
            for name, each in zip(DRAWN, (drawn.pairs, drawn.error, along.steps, ranked), strict=True)
        }
        for place, row in enumerate(common_columns(subject, rows, reading)):
            yield {**row, **{name: float(column[place]) for name, column in columns.items()}}


def erased(subject: Subject, draws: int, rng: torch.Generator) -> Iterator[Row]:
    """One row a text: what its output loses without the words on top, and with them alone; and at random."""
    for rows, reading in _of_parts(subject):
        drawn = random_scores(reading.mask, draws, rng=rng).to(reading.weights)
        scores = torch.cat([reading.weights[:, None], drawn], dim=1)
        with torch.no_grad():
            areas = faithfulness(*answering(subject.model, reading), scores, known=subject.known).aopc()
        columns: dict[str, list[float]] = {}
        for name, area in zip(ERASED, areas, strict=True):
            columns |= {name: area[:, 0].tolist(), f"null_{name}": area[:, 1:].mean(1).tolist()}
        for place, row in enumerate(common_columns(subject, rows, reading)):
            yield {**row, **{name: column[place] for name, column in columns.items()}}


def marked(subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
    """One row a text that has a rationale: how well attention finds its words, and how well chance does.

    NaN where the units of the model are not the words that were marked, or where all of them are.
    """
    examples = subject.texts.examples
    among = {row for row, example in enumerate(examples) if example.rationale}
    for rows, reading in readings(subject.model, subject.texts, among):
        weights = reading.weights.double().cpu().numpy()
        for place, row in enumerate(common_columns(subject, rows, reading)):
            wanted = subject.texts.rationale(int(rows[place]))
            own = chance = (np.nan,) * len(MARKED)
            if row["length"] == len(wanted):
                scores = weights[place, : len(wanted)]
                own = plausibility(scores, wanted)
                chance = shuffled_plausibility(scores, wanted, draws=DRAWS, rng=rng)
            nulls = (f"null_{name}" for name in MARKED)
            yield {**row, **dict(zip(MARKED, own, strict=True)), **dict(zip(nulls, chance, strict=True))}
