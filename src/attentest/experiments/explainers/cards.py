"""The cards of the explainers experiment: agreement, faithfulness and plausibility of every ranking."""

from __future__ import annotations

from collections.abc import Iterator

from attentest.evidence.importances.names import IMPORTANCES
from attentest.experiments.explainers import ALSO, ATTENTION, RANKINGS, pairs
from attentest.statistics.card import OF_RANDOM_RANKING, Card

PAPER = "deyoung2020eraser"
UNRANKED = "the text has one unit, or either vector is constant or holds a NaN: there is nothing to rank"
UNREAD = "the text has one unit, or the ranking holds a NaN"
UNMARKED = (
    "the text has one unit, all of it is marked, or the ranking holds a NaN; without marks none is asked"
)
BINS = "over k in {1, 5, 10, 20, 50} %, each at least one unit"
EVERY = (*RANKINGS, *ALSO)
*MOST, LAST = (about.title for about in IMPORTANCES.values() if about.signed)
SIGNED = (  # so that nobody takes the advantage of a direction for that of a better ranking
    f"; {', '.join(MOST)} and {LAST} know what speaks against the class and put it last, the others rank by"
    " size alone"
)
PUBLISHED = "; as published, the sum over these and a bin of no words, divided by 6 (A15)"
TITLES = {ATTENTION: "attention", **{name: about.title for name, about in IMPORTANCES.items()}}
PLAUSIBLE = {  # measure: title, formula, section
    "token-f1": (
        "Token F1",
        "the share of marked units among the top of the ranking, as many as are marked, which is precision,"
        " recall and F1 at once",
        "4.1, token-level F1; the threshold is ours",
    ),
    "iou-f1": (
        "Span F1 at an IoU of 0.5",
        "F1 of runs of neighbours among as many units of the top as are marked, where a run is right that"
        " shares at least half of its union with a marked run",
        "4.1, IOU F1; the threshold is ours",
    ),
    "auprc": (
        "Average precision",
        "precision at every threshold on the scores, weighted by the recall gained there",
        "4.1, AUPRC",
    ),
}


def _agreement(one: str, other: str) -> Card:
    return Card(
        measure=f"Kendall's tau-b of {TITLES[one]} and {TITLES[other]}",
        formula=f"mean over texts of tau-b between {TITLES[one]} and {TITLES[other]}, of magnitudes",
        range=(-1.0, 1.0),
        direction="higher: they rank the units of a text more alike",
        null="0: rankings that have nothing to do with each other; what they share by construction is seen on"
        " untrained models",
        unit="rank correlation",
        paper=PAPER,
        section="ours: the explainers are baselines there",
        undefined_when=UNRANKED,
    )


def _faithfulness(ranking: str) -> Iterator[tuple[str, Card]]:
    top = f"the top k % of its units by {TITLES[ranking]}"
    for measure, formula, direction in (
        (
            "comprehensiveness",
            f"p(text) - p(text without {top})",
            "higher: the top holds more of what decides",
        ),
        ("sufficiency", f"p(text) - p({top} alone)", "lower: the top alone decides more as the whole does"),
    ):
        mean = f"mean over texts of the mean {BINS}, of {formula}, p being the probability of the class that"
        card = Card(
            measure=f"{measure.capitalize()} of {TITLES[ranking]}",
            formula=f"{mean} is predicted for the whole text; units are deleted{PUBLISHED}{SIGNED}",
            range=(-1.0, 1.0),
            direction=direction,
            null=f"the same of random rankings of the same text. {OF_RANDOM_RANKING}",
            unit="difference of probabilities",
            paper=PAPER,
            section="4.2, with AOPC",
            undefined_when=UNREAD,
        )
        yield f"explainers/{measure}-{ranking}", card
        yield (
            f"explainers/{measure}-{ranking}-excess",
            Card(
                measure=f"{measure.capitalize()} of {TITLES[ranking]} beyond random rankings",
                formula=f"{card.formula}; minus the same of random rankings of the same text",
                range=(-2.0, 2.0),
                direction=direction,
                null="0",
                unit=card.unit,
                paper=PAPER,
                section="ours",
                undefined_when=UNREAD,
            ),
        )


def _plausibility(measure: str, ranking: str) -> Card:
    title, formula, section = PLAUSIBLE[measure]
    return Card(
        measure=f"{title} of {TITLES[ranking]} and people's rationales",
        formula=f"mean over texts in which people marked words of {formula}; ranked by {TITLES[ranking]}",
        range=(0.0, 1.0),
        direction="higher: more of what people marked is on top, which does not say that the model used it",
        null=f"the same with the ranking's own scores shuffled within the text. {OF_RANDOM_RANKING}",
        unit="share",
        paper=PAPER,
        section=section,
        undefined_when=UNMARKED,
    )


CARDS: dict[str, Card] = {
    **{f"explainers/tau-{one}-{other}": _agreement(one, other) for one, other in pairs(EVERY)},
    **{name: card for ranking in EVERY for name, card in _faithfulness(ranking)},
    **{
        f"explainers/{measure}-{ranking}": _plausibility(measure, ranking)
        for measure in PLAUSIBLE
        for ranking in EVERY
    },
}
