"""The cards of the single-weight experiment: the item on top of a ranking, beside one at random."""

from __future__ import annotations

import math

from attentest.statistics.card import OF_EXCHANGE, Card

PAPER = "serrano2019attention"
PERCENT = (0.0, 100.0)
DIVERGENCE = math.log(2)
RANKINGS = {
    "attention": ("attention", "i* the item of the largest weight a_t"),
    "gradient": ("gradient", "i* the item of the largest d p_y / d a_t, signed, hidden states held"),
    "product": ("attention x gradient", "i* the item of the largest a_t d p_y / d a_t, signed"),
}
DRAWN = "r drawn from the other items (as published, a place of the text but the first: it may be i*)"
REMOVED = "an item's weight zeroed, the rest renormalised, hidden states held"
EXCHANGED = (
    "the same where hidden states have changed places beneath the weights: what the size of the weights"
    f" alone brings about. {OF_EXCHANGE}"
)
ONE_ITEM = "the text has one item, or attention or output is not a number"
CELLS = {
    "both-flip": ("both items flip", "both i* and r", "higher: the decision hangs on more than one item"),
    "only-top-flips": (
        "only the item on top flips",
        "i* and not r",
        "higher: the ranking points at what decides",
    ),
    "only-random-flips": (
        "only the random item flips",
        "r and not i*",
        "higher: the ranking misses what decides",
    ),
    "neither-flips": ("neither item flips", "neither i* nor r", "higher: fewer decisions hang on one item"),
}


def _of_ranking(ranking: str) -> dict[str, Card]:
    title, top = RANKINGS[ranking]
    cells = {
        f"single-weight/{cell}-{ranking}": Card(
            measure=f"Texts whose decision {name}, top by {title}",
            formula=f"percentage of texts where removing {which} puts another class strictly above the"
            f" predicted ({REMOVED}); {top}; {DRAWN}",
            range=PERCENT,
            direction=direction,
            null=EXCHANGED,
            unit="percent of texts",
            paper=PAPER,
            section="Table 2 (attention); with gradients likewise",
            undefined_when=ONE_ITEM,
        )
        for cell, (name, which, direction) in CELLS.items()
    }
    return cells | {
        f"single-weight/mcnemar-p-{ranking}": Card(
            measure=f"McNemar's exact p-value, top by {title}",
            formula="two-sided chance that as many tosses of a coin as there are discordant texts fall as"
            " unevenly; the largest over the seeds, each tested by itself",
            range=(0.0, 1.0),
            direction="lower: chance explains less why one of the two items flips more decisions",
            null="about 0.5 for one seed: p-values are spread evenly where there is nothing to find",
            unit="probability",
            paper=PAPER,
            section="in the published code",
            undefined_when="there is no text of two items; 1 where no text is discordant",
        )
    }


def _by_attention() -> dict[str, Card]:
    """What is told of the ranking that the experiment is about, and of no other."""
    title, top = RANKINGS["attention"]
    difference = f"JS(p, q without i*) - JS(p, q without r) ({REMOVED}); {top}; {DRAWN}"
    return {
        "single-weight/discordant-top-attention": Card(
            measure=f"Share of one-sided flips that are of the item on top by {title}",
            formula=f"of the texts whose decision flips without i* or without r, but not both, the share"
            f" that flips without i*; {top}; {DRAWN}",
            range=(0.0, 1.0),
            direction="higher: the item on top decides more often than another",
            null="0.5: two items drawn alike. Larger weights flip more wherever they lie: the nulls of the"
            " four cells say how much of it that is",
            unit="share of discordant texts",
            paper=PAPER,
            section="Table 2, whose discordant cells these are",
            undefined_when="no text is discordant",
        ),
        "single-weight/djs-attention": Card(
            measure=f"How much more the item on top by {title} changes the output",
            formula=f"mean over texts of dJS = {difference}",
            range=(-DIVERGENCE, DIVERGENCE),
            direction="higher: removing the item on top changes the output more",
            null=EXCHANGED,
            unit="difference of Jensen-Shannon divergences, nats",
            paper=PAPER,
            section="single weights, shown as a scatter against the weight gap",
            undefined_when=ONE_ITEM,
        ),
        "single-weight/djs-attention-excess": Card(
            measure=f"The same beyond what large weights change anywhere, top by {title}",
            formula=f"mean over texts of {difference}; minus {EXCHANGED}",
            range=(-2 * DIVERGENCE, 2 * DIVERGENCE),
            direction="above 0: the item on top matters because of where it lies",
            null="0",
            unit="difference of Jensen-Shannon divergences, nats",
            paper=PAPER,
            section="ours",
            undefined_when=ONE_ITEM,
        ),
        "single-weight/negative-djs-attention": Card(
            measure=f"Share of texts where the random item changes the output more, top by {title}",
            formula=f"share of texts with dJS = {difference} below -1e-12, beneath which is rounding",
            range=(0.0, 1.0),
            direction="lower: the item on top is seldom outdone",
            null=EXCHANGED,
            unit="share of texts",
            paper=PAPER,
            section="single weights, shown as a histogram over the weight gap",
            undefined_when=ONE_ITEM,
        ),
    }


CARDS: dict[str, Card] = {
    **{name: card for ranking in RANKINGS for name, card in _of_ranking(ranking).items()},
    **_by_attention(),
}
