"""The cards of the removal experiment: four rankings, and the exact smallest flip beside them."""

from __future__ import annotations

import math

from attentest.statistics.card import OF_EXCHANGE, OF_RANDOM_RANKING, Card

PAPER = "serrano2019attention"
SECTION = "set removal to the first flip, with the rankings compared there"
SHARE = (0.0, 1.0)
RANKINGS = {
    "random": ("at random", "in random order: five orders averaged, as published the first of them"),
    "attention": ("by attention", "by falling weight a_t"),
    "gradient": ("by gradient", "by falling d p_y / d a_t, signed, the weights free and hidden states held"),
    "product": (
        "by attention x gradient",
        "by falling a_t d p_y / d a_t, signed. With one logit this differs from the exact smallest flip only"
        " through the bias, so that it wins is near to a tautology",
    ),
}
QUANTITIES = {
    "fraction": ("Fraction of items", "items removed / items of positive weight", "share of the items"),
    "mass": ("Attention", "attention removed / all attention", "share of the attention"),
}
ATTENTION = "attention"  # whose quantities are told as medians, too, and against the optimum
PAIRS = (  # what is compared, and by what
    ("fraction", ATTENTION, "random"),
    ("fraction", "gradient", ATTENTION),
    ("fraction", "product", ATTENTION),
    ("mass", ATTENTION, "random"),
)
FIRST_FLIP = (
    "at the first flip, when items are removed one at a time from the top and the rest renormalised, until"
    " another class is strictly above the predicted; without any item the bias alone decides"
)
ON = "over the texts that flip under all rankings (as published, under this one)"
NOT_COMPARED = "the text has one item, never flips under some ranking, or its output is not a number"
NOT_ASKED = "the text has one item, or its output is not a number"
NOT_SOLVED = "the decision is not affine, no removal that leaves an item flips it, or the text has one item"
RANDOM = f"the random ranking's on the same texts; for that ranking itself, its own. {OF_RANDOM_RANKING}"
EXCHANGED = "the same where hidden states have changed places beneath the weights"
SMALLEST = "the exact smallest set whose removal, leaving an item, puts another class strictly above"


def _of_ranking(ranking: str) -> dict[str, Card]:
    title, order = RANKINGS[ranking]
    cards = {
        f"removal/never-flips-{ranking}": Card(
            measure=f"Share of texts that never flip, items removed {title}",
            formula=f"share of texts whose decision no number of items flips, not even all, removed {order}",
            range=SHARE,
            direction="higher: more texts drop out of the comparison of rankings",
            null=RANDOM,
            unit="share of texts",
            paper=PAPER,
            section="ours: dropped without a count in the published figure",
            undefined_when=NOT_ASKED,
        ),
        f"removal/unflipped-{ranking}": Card(
            measure=f"Share of texts not yet flipped, items removed {title}",
            formula=f"share of texts whose decision has never flipped while up to the given share of their"
            f" items was removed {order}; texts that never flip count",
            range=SHARE,
            direction="lower: the ranking finds what decides sooner",
            null=RANDOM,
            unit="share of texts",
            paper=PAPER,
            section="ours: the survival view of the published box plots",
            undefined_when=NOT_ASKED,
        ),
    }
    for quantity, (name, formula, unit) in QUANTITIES.items():
        middles = {"mean": "", "median": "median-"} if ranking == ATTENTION else {"mean": ""}
        for middle, prefix in middles.items():
            cards[f"removal/{prefix}{quantity}-{ranking}"] = Card(
                measure=f"{name} removed {title} until the decision flips, {middle}",
                formula=f"{middle} {ON} of {formula} {FIRST_FLIP}; {order}",
                range=SHARE,
                direction="lower: fewer removals flip the decision, so the ranking points at what decides",
                null=RANDOM,
                unit=unit,
                paper=PAPER,
                section=SECTION,
                undefined_when=NOT_COMPARED,
            )
    return cards | _from_optimum(ranking, title, order)


def _from_optimum(ranking: str, title: str, order: str) -> dict[str, Card]:
    asked = {
        "excess": (
            f"Items removed {title} beyond the fewest possible",
            f"mean {ON} of the count at the first flip minus the size of {SMALLEST}; {order}",
            (0.0, math.inf),
            "lower: the ranking wastes fewer removals",
            "items",
        ),
        "ratio": (
            f"Items removed {title} per item of the smallest set",
            f"mean {ON} of the count at the first flip divided by the size of {SMALLEST}; {order}",
            (1.0, math.inf),
            "lower: nearer to the fewest possible, which is 1",
            "items per item",
        ),
        "at-optimum": (
            f"Share of texts where removing {title} is optimal",
            f"share of the texts that a removal flips whose first flip takes as few items as {SMALLEST};"
            f" {order}",
            SHARE,
            "higher: the ranking singles out a smallest decisive set more often",
            "share of texts",
        ),
    }
    return {
        f"removal/{name}-{ranking}": Card(
            measure=measure,
            formula=formula,
            range=bounds,
            direction=direction,
            null=RANDOM,
            unit=unit,
            paper=PAPER,
            section="ours",
            undefined_when=NOT_SOLVED,
        )
        for name, (measure, formula, bounds, direction, unit) in asked.items()
        if ranking == ATTENTION or name == "at-optimum"
    }


def _difference(quantity: str, one: str, other: str) -> Card:
    name, formula, unit = QUANTITIES[quantity]
    return Card(
        measure=f"{name} removed {RANKINGS[one][0]} minus {RANKINGS[other][0]}",
        formula=f"mean {ON} of the difference in {formula} {FIRST_FLIP}",
        range=(-1.0, 1.0),
        direction=f"below 0: the decision flips sooner {RANKINGS[one][0]}",
        null=f"{EXCHANGED}, over the texts that flip under all rankings there, too. {OF_EXCHANGE}",
        unit=f"difference in {unit}",
        paper=PAPER,
        section=SECTION,
        undefined_when=NOT_COMPARED,
    )


def _excess(quantity: str) -> Card:
    name, formula, unit = QUANTITIES[quantity]
    return Card(
        measure=f"{name} saved by attention beyond what large weights save anywhere",
        formula=f"mean of ({formula} by attention minus at random) {FIRST_FLIP}, minus {EXCHANGED}",
        range=(-2.0, 2.0),
        direction="below 0: attention lies where it decides, and is not merely large somewhere",
        null="0",
        unit=f"difference in {unit}",
        paper=PAPER,
        section="ours",
        undefined_when=NOT_COMPARED + ", here or where hidden states have changed places",
    )


CARDS: dict[str, Card] = {
    **{name: card for ranking in RANKINGS for name, card in _of_ranking(ranking).items()},
    **{
        f"removal/{quantity}-{one}-minus-{other}": _difference(quantity, one, other)
        for quantity, one, other in PAIRS
    },
    **{f"removal/{quantity}-attention-minus-random-excess": _excess(quantity) for quantity in QUANTITIES},
    "removal/smallest-fraction": Card(
        measure="The fewest items that flip the decision",
        formula=f"mean over the texts that have one of the size of {SMALLEST} / items of positive weight",
        range=SHARE,
        direction="lower: the decision rests on fewer items",
        null=f"{EXCHANGED}. {OF_EXCHANGE}",
        unit="share of the items",
        paper=PAPER,
        section="ours: exact where the published search is by ranking",
        undefined_when=NOT_SOLVED,
    ),
    "removal/unflippable": Card(
        measure="Share of texts that no removal flips",
        formula="share of texts in which every item by itself speaks for the predicted class: no set of"
        " items, as long as one is left, puts another class strictly above",
        range=SHARE,
        direction="higher: fewer decisions can be flipped by removal, whatever the ranking",
        null=f"{EXCHANGED}. {OF_EXCHANGE}",
        unit="share of texts",
        paper=PAPER,
        section="ours",
        undefined_when="the decision is not affine, the text has one item, or its output is not a number",
    ),
}
