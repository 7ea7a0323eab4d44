"""The cards of Wiegreffe & Pinter's experiments: uniform baseline, seed variance, guided MLP, adversaries."""

from __future__ import annotations

import math

from attentest.experiments.shared.score_cards import SCORES, TITLES, UNDEFINED, UNITS, score_card
from attentest.statistics.card import Card

PAPER = "wiegreffe2019attention"
NATS = "Jensen-Shannon divergence, nats"
DIVERGENCE = (0.0, math.log(2))
DIFFERENCE = (-math.log(2), math.log(2))
SHARE = (0.0, 1.0)
TVD = "total variation distance"
ONE_TOKEN = "the text has one token, or weights or outputs are not numbers"

OF_UNIFORM = "Table 2. Models are chosen on dev; the published code chose them on test"
MODELS = "a group is a model: trained, uniform (weights of 1/T in training and test), and the controls"


def _lost(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} that uniform attention loses",
        formula=f"{TITLES[measure]} of the trained model minus that of the same model trained and tested with"
        " uniform attention, by seed; the interval is over seeds and texts, the same for both",
        range=(-1.0, 1.0),
        direction="0: the task does not need attention, and says little of whether attention explains",
        null="the mean absolute difference between two seeds of the trained model: what means nothing",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=OF_UNIFORM,
        undefined_when=UNDEFINED[measure],
    )


OF_SEEDS = "in figures. Models are chosen on dev; the published code chose them on test"
CONTROLS = (
    "; in the groups of the controls, of an untrained model and one of shuffled labels against the base"
)
PERMUTED = "the base's own weights in random orders over its tokens"
ORDERLESS = "It holds the set of weights fixed and breaks which token has which: they know no token."
EXACT = "the strongest adversary: the furthest attention that changes the output by at most 0.01 (0.05 with a"
EXACT += " query)"
NO_ADVERSARY = f"{ONE_TOKEN}, the decision is not affine, or several classes make it too costly"

SEED_CARDS = {
    "seed-variance/seed-jsd": Card(
        measure="Divergence of attention between seeds",
        formula=f"mean over texts of the median over other seeds of JSD(a_seed, a_base){CONTROLS}",
        range=DIVERGENCE,
        direction="higher: attention depends more on the luck of training",
        null=f"the same for {PERMUTED}; none for the controls. {ORDERLESS}",
        unit=NATS,
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/seed-tvd": Card(
        measure="Change of output between seeds",
        formula=f"mean over texts of the mean over other seeds of TVD(y_seed, y_base){CONTROLS}",
        range=SHARE,
        direction="higher: the answer depends more on the luck of training",
        null="an untrained model against the base on the same texts; none for the controls",
        unit=TVD,
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/seed-jsd-excess": Card(
        measure="Divergence between seeds beyond that of shuffled weights",
        formula=f"mean over texts of the median JSD over other seeds minus the mean JSD of {PERMUTED}",
        range=DIFFERENCE,
        direction="below 0: seeds agree on which tokens to attend to",
        null="0",
        unit=f"difference of {NATS}",
        paper=PAPER,
        section="ours",
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/seed-jsd-ratio": Card(
        measure="Divergence between seeds relative to what any attention could have",
        formula="mean over texts of the median JSD over other seeds, divided by the JSD of all weight on the"
        " token that has least",
        range=SHARE,
        direction="1: other seeds are as far away as attention can be",
        null=f"the same for {PERMUTED}. {ORDERLESS}",
        unit="share of the attainable divergence",
        paper=PAPER,
        section="ours",
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/adversary-jsd": Card(
        measure="Divergence of the strongest adversary, beside that of seeds",
        formula=f"mean over texts of JSD(alpha, a_base) of {EXACT}",
        range=DIVERGENCE,
        direction="no evidence against attention unless well above what another seed does",
        null="the divergence between seeds, of the same texts",
        unit=NATS,
        paper=PAPER,
        section=f"{OF_SEEDS}; the exact adversary is ours",
        undefined_when=NO_ADVERSARY,
    ),
    "seed-variance/adversary-beyond-seeds": Card(
        measure="What the strongest adversary moves attention beyond another seed",
        formula=f"mean over texts of the JSD of {EXACT}, minus the median JSD over other seeds",
        range=DIFFERENCE,
        direction="higher: adversaries do more than training anew does",
        null="0",
        unit=f"difference of {NATS}",
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=NO_ADVERSARY,
    ),
    "seed-variance/share-beyond-seeds": Card(
        measure="Share of texts whose adversary moves attention further than another seed",
        formula=f"share of texts where the JSD of {EXACT} exceeds the median JSD over other seeds",
        range=SHARE,
        direction="higher: more texts on which an adversary says something",
        null=f"the same for {PERMUTED} instead of the adversary. {ORDERLESS}",
        unit="share of texts",
        paper=PAPER,
        section="ours",
        undefined_when=NO_ADVERSARY,
    ),
}

OF_GUIDES = "Table 3. Models are chosen on dev; the published code chose them on test"
GUIDES = (
    "a group is a guide: uniform weights, the MLP's own, the base model's, a trained adversary's, those of"
    " the controls; beside them the base model and the adversary themselves"
)


def _beyond_uniform(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} of a guided MLP beyond uniform weights",
        formula=f"{TITLES[measure]} of the MLP under a guide's weights minus that under uniform, by seed",
        range=(-1.0, 1.0),
        direction="higher: the weights tell tokens apart in a way that helps without their context",
        null="the same under the weights of an untrained model of the base's kind",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=f"{OF_GUIDES}; the differences and the null are ours",
        undefined_when=UNDEFINED[measure],
    )


def _beyond_others(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} under the base model's weights beyond the best other guide",
        formula=f"{TITLES[measure]} of the MLP under the base's weights minus the largest under uniform,"
        " its own and the adversary's weights, by seed",
        range=(-1.0, 1.0),
        direction="above 0: the base model's weights guide best",
        null="0; the largest of three is never below any of them, so a tie of all four comes out below 0",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=f"{OF_GUIDES}; ours",
        undefined_when=UNDEFINED[measure],
    )


TABLE, FIGURE = "Table 4", "the figure of divergence against change of output"
POINTS = (
    "; a group is a trained adversary by its lambda, or a point beside: other seeds (each text's mean over"
    " them), uniform attention, the strongest adversary of each text (exact), the published search's best"
    " step (search), and the controls"
)
SEEDS = "the same for other seeds on the same texts: what training anew does; they have none themselves"

ADVERSARY_CARDS = {
    "trained-adversary/attention-jsd": Card(
        measure="Divergence of an adversary's attention",
        formula=f"mean over texts of JSD(a_adversary, a_base){POINTS}",
        range=DIVERGENCE,
        direction="higher: it looks elsewhere",
        null=SEEDS,
        unit=NATS,
        paper=PAPER,
        section=f"{TABLE}, and {FIGURE}",
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/output-tvd": Card(
        measure="Change of output of an adversary",
        formula=f"mean over texts of TVD(y_adversary, y_base), |y_a - y_b| of two classes{POINTS}",
        range=SHARE,
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=TVD,
        paper=PAPER,
        section=f"{FIGURE}; not the unit of the published numbers, see the halved",
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/output-tvd-halved": Card(
        measure="Change of output of an adversary, halved",
        formula=f"half the mean over texts of TVD(y_adversary, y_base){POINTS}",
        range=(0.0, 0.5),
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=f"half of {TVD}: that of the published code, so probably of the published numbers (A6)",
        paper=PAPER,
        section=TABLE,
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/tvd-above-envelope": Card(
        measure="Change of output above that of trained adversaries at the same divergence",
        formula="mean TVD of a point minus the height, at its mean JSD, of the lower convex envelope of the"
        " trained adversaries' (mean JSD, mean TVD), by seed, from the texts that all of them have. Beyond"
        " its ends the envelope's last edge is continued: no convex curve through the same corners is lower"
        f"{POINTS}",
        range=(-1.0, 1.0),
        direction="below 0: it moves attention as far at less cost than any mixture of trained adversaries",
        null="0: on the curve",
        unit=f"difference of {TVD}",
        paper=PAPER,
        section=f"{FIGURE}, where it is seen; the envelope is ours",
        undefined_when="one token or no numbers; or a sweep of one lambda, which has no edge to continue",
    ),
}

WIEGREFFE_PINTER_CARDS = {
    **{
        f"uniform-baseline/{measure}": score_card(
            measure,
            whose="with and without uniform attention",
            groups=MODELS,
            paper=PAPER,
            section=OF_UNIFORM,
        )
        for measure in SCORES
    },
    **{f"uniform-baseline/{measure}-lost": _lost(measure) for measure in SCORES},
    **SEED_CARDS,
    **{
        f"guided/{measure}": score_card(
            measure, whose="of a guided MLP", groups=GUIDES, paper=PAPER, section=OF_GUIDES
        )
        for measure in SCORES
    },
    **{f"guided/{measure}-beyond-uniform": _beyond_uniform(measure) for measure in ("f1", "accuracy")},
    **{f"guided/{measure}-beyond-others": _beyond_others(measure) for measure in ("f1", "accuracy")},
    **ADVERSARY_CARDS,
    **{
        f"trained-adversary/{measure}": score_card(
            measure,
            whose="of trained adversaries",
            groups=f"{POINTS[2:]}; and the base itself (trained)",
            paper=PAPER,
            section=TABLE,
        )
        for measure in ("f1", "accuracy")
    },
}
