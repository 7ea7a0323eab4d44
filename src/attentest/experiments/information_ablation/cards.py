"""The cards of what becomes of tau: in models trained otherwise, and measured otherwise (Wen et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import replace

from attentest.experiments.information.cards import CARDS as INFORMATION
from attentest.experiments.information.cards import PAPER, TAU
from attentest.statistics.card import Card

CHANGE = (-2.0, 2.0)
SHARE = (0.0, 1.0)
EITHER = "tau is undefined in either model"
ONE_TOKEN = "the text has one token, or attention or output is not a number"
TAU_UNIT = "weighted Kendall correlation over ranks"
# Measured of every model as the information experiment does.
SAME = ("tau", "tau-p", "tau-joint", "tau-null-95", "ranks", "clusters", "small-clusters", "flagged")
FLAT = ("attention-entropy", "max-attention")


def _lost() -> dict[str, Card]:
    lost = Card(
        measure="Agreement lost",
        formula="tau of the normal model less tau of the other, both from one seed; the mean over seeds",
        range=CHANGE,
        direction="higher: the other model's attention orders its states less well",
        null="mean over pairs of draws, one of each model, that deal tokens to ranks at random",
        unit=TAU_UNIT,
        paper=PAPER,
        section="Tables 2 and 4",
        undefined_when=EITHER,
    )
    return {
        "tau-lost": lost,
        "tau-lost-shared": replace(
            lost,
            measure="Agreement lost over the ranks that both models have",
            formula="the same, both taus over the first min(k, k') ranks",
            null="0",
            section="ours: the two numbers of ranks need not be the same",
        ),
        "tau-lost-p": replace(
            lost,
            measure="How often two orders that are luck differ as much",
            formula="(1 + pairs of draws whose taus differ by |tau-lost| or more) / (1 + pairs); the mean",
            range=SHARE,
            direction="lower: the change is less likely luck",
            null="0.5: the mean p-value where nothing changes",
            unit="probability",
            section="ours",
        ),
        "not-fallen": replace(
            lost,
            measure="Seeds whose agreement does not fall",
            formula="share of seeds in which tau-lost < 0.005",
            range=SHARE,
            direction="higher: in more trainings tau stays or rises",
            null="the same share among pairs of draws that are luck",
            unit="share of seeds",
            section="Table 5, where settings are counted",
        ),
        "unchanged": replace(
            lost,
            measure="Seeds whose agreement is the same",
            formula="share of seeds in which |tau-lost| < 0.005",
            range=SHARE,
            direction="higher: in more trainings nothing changes",
            null="the same share among pairs of draws that are luck",
            unit="share of seeds",
            section="ours: what counts as unchanged in Table 5",
        ),
        "sign-p": replace(
            lost,
            measure="Sign test of the change",
            formula="exact two-sided binomial test that tau falls in as many seeds as it rises in; seeds in"
            " which |tau-lost| < 0.005 say nothing",
            range=SHARE,
            direction="lower: the direction is less likely luck; with n seeds it is at least 2^(1-n)",
            null="1: as many seeds fall as rise",
            unit="probability",
            section="ours",
            undefined_when="tau is undefined in either model, for every seed",
        ),
    }


def _texts() -> dict[str, Card]:
    distance = Card(
        measure="Attention apart from the normal model's",
        formula="mean over texts of the Jensen-Shannon divergence of the two models' attention",
        range=(0.0, math.log(2)),
        direction="higher: the other model attends elsewhere",
        null="0: the same attention",
        unit="nats",
        paper=PAPER,
        section="Table 3, where the caption says outputs and the numbers are of attention (A12)",
        undefined_when=ONE_TOKEN,
    )
    return {
        "attention-jsd": distance,
        "output-tvd": replace(
            distance,
            measure="Output apart from the normal model's",
            formula="mean over texts of the total variation distance of the two models' outputs",
            range=SHARE,
            direction="higher: the other model answers otherwise",
            null="0: the same output",
            unit="total variation distance",
            section="Table 3",
        ),
        "output-tvd-halved": replace(
            distance,
            measure="Output apart from the normal model's, halved",
            formula="half of it, as the published code of the adversary has it (A6, A31)",
            range=(0.0, 0.5),
            direction="higher: the other model answers otherwise",
            null="0: the same output",
            unit="half a total variation distance",
            section="Table 3, taken as halved",
        ),
        "entropy-lost": replace(
            distance,
            measure="Flatness lost",
            formula="mean over texts of H(a) / ln T of the normal model less that of the other",
            range=(-1.0, 1.0),
            direction="higher: the other model's attention is more skewed",
            null="0",
            unit="share of the largest entropy",
            section="said of Gumbel-softmax below 1, without a table",
        ),
        "entropy-lost-to-noise": replace(
            distance,
            measure="Flatness lost to the noise",
            formula="mean over texts of H(a) / ln T under softmax at the same temperature less under this",
            range=(-1.0, 1.0),
            direction="higher: noise makes attention more skewed than the temperature alone does",
            null="0: the temperature does it all",
            unit="share of the largest entropy",
            section="a control; the paper has Gumbel-softmax only",
        ),
    }


def _scores() -> dict[str, Card]:
    accuracy = Card(
        measure="Accuracy",
        formula="share of texts whose predicted label is the gold label",
        range=SHARE,
        direction="higher is better",
        null="the share of the majority class",
        unit="share of texts",
        paper=PAPER,
        section="Tables 1 and 3; the text of the latter says F1 (A12)",
        undefined_when="there is no text, or no output is a number",
    )
    f1 = replace(
        accuracy,
        measure="F1",
        formula="2 TP / (2 TP + FP + FN) of class 1 where there are two classes; of more, the plain mean",
        null="the best constant answer",
        unit="harmonic mean of precision and recall",
        undefined_when="two classes, and class 1 is neither gold nor predicted anywhere",
    )
    return {"accuracy": accuracy, "f1": f1}


FLATNESS = Card(
    measure="Flat attention and agreement",
    formula="Spearman's correlation of mean H(a) / ln T and tau over a seed's models; the mean over seeds",
    range=TAU,
    direction="lower: flatter attention goes with less agreement",
    null="0",
    unit="Spearman correlation over models",
    paper=PAPER,
    section="said without a table; the models compared are ours",
    undefined_when="fewer than three models have a tau, or all are alike",
)


CARDS: dict[str, Card] = {
    **{f"information-ablation/{name}": INFORMATION[f"information/{name}"] for name in (*SAME, *FLAT)},
    **{f"information-ablation/{name}": card for name, card in {**_lost(), **_texts(), **_scores()}.items()},
    "information-ablation/flatness-tau": FLATNESS,
}
