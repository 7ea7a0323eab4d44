"""What the measures mean that only an audit takes: one card each. Those of the studies have theirs."""

from __future__ import annotations

from attentest.auditing.means import EXPLAINERS
from attentest.claims.calibrated import calibrated_cards
from attentest.evidence.importances.names import IMPORTANCES
from attentest.experiments.ablation.conclude import OURS
from attentest.experiments.cards import CARDS
from attentest.refusal import look_up
from attentest.statistics.card import OF_RANDOM_RANKING, Card
from attentest.statistics.named import Named

PAPER = "deyoung2020eraser"
SHARES = "1, 5, 10, 20 and 50 % of the units, at least one"
RANDOM = f"the mean over random rankings of the same texts. {OF_RANDOM_RANKING}"


def _agreement() -> dict[str, Card]:
    return {
        f"agreement/{name}": Card(
            measure=f"Agreement of attention with {title}",
            formula=f"mean over texts of Kendall's tau-b of the weights and the magnitudes of {title}",
            range=(-1.0, 1.0),
            direction="higher: attention ranks units as the explainer does",
            null="the same on the untrained twin, in which weights are factors just as much; 0, as of"
            " rankings that have nothing to do with each other, where there is no twin",
            unit="Kendall correlation over units",
            paper="jain2019attention",
            section="4.1 asks it of gradients and leave-one-out; the other explainers and the null are ours",
            undefined_when="the text has one unit, or all weights or all importances are alike",
        )
        for name, title in ((name, IMPORTANCES[name].title) for name in EXPLAINERS)
    }


def _erasure() -> dict[str, Card]:
    kinds = {
        "comprehensiveness": ("without the first", "higher: what attention points at is needed"),
        "sufficiency": ("with nothing but the first", "lower: what attention points at is enough"),
    }
    found = {}
    for name, (left, direction) in kinds.items():
        formula = f"mean over texts and over {SHARES}, of p_y(text) - p_y({left} units by attention)"
        found[f"erasure/{name}"] = Card(
            measure=f"{name.capitalize()} (area over the perturbation curve)",
            formula=f"{formula}; y is the class predicted from the whole text, words are deleted",
            range=(-1.0, 1.0),
            direction=direction,
            null=RANDOM,
            unit="probability",
            paper=PAPER,
            section="Section 4; the plain mean over the bins (A15)",
            undefined_when="the text has one unit",
        )
        found[f"erasure/{name}-excess"] = Card(
            measure=f"{name.capitalize()} beyond that of random rankings",
            formula=f"mean over texts of {name} by attention minus {name} by random rankings",
            range=(-2.0, 2.0),
            direction=direction,
            null="0: attention ranks no better than chance",
            unit="probability",
            paper=PAPER,
            section="ours",
            undefined_when="the text has one unit",
        )
    return found


def _plausibility() -> dict[str, Card]:
    kinds = {
        "token-f1": ("Token F1", "F1 of the k units of largest weight, k being the number of marked words"),
        "iou-f1": ("Span F1 at an overlap of one half", "F1 of the runs that those k units make"),
        "auprc": ("AUPRC", "average precision of the ranking by weight"),
    }
    found = {}
    for name, (title, formula) in kinds.items():
        found[f"plausibility/{name}"] = Card(
            measure=f"{title} against human rationales",
            formula=f"mean over texts of: {formula}",
            range=(0.0, 1.0),
            direction="higher: attention is where people marked",
            null=RANDOM,
            unit="share",
            paper=PAPER,
            section="Section 4; the number of words to choose is known here, not fixed for a corpus",
            undefined_when="the text has no marks, all is marked, or units are not its words",
        )
        found[f"plausibility/{name}-excess"] = Card(
            measure=f"{title} beyond that of random rankings",
            formula=f"mean over texts of {name} by attention minus {name} by random rankings",
            range=(-1.0, 1.0),
            direction="higher: attention is where people marked",
            null="0: attention finds marked words no better than chance",
            unit="share",
            paper=PAPER,
            section="ours",
            undefined_when="the text has no marks, all is marked, or units are not its words",
        )
    return found


def _ablation() -> dict[str, Card]:
    """Uniform weights have the card of the studies; a twin stands beside no model of theirs."""
    return {
        "ablation/frozen-output-change": Card(
            measure="Output change under an untrained twin's attention",
            formula="mean over texts of TVD(y(w), y(a)), w being the weights of the untrained twin;"
            " nothing is trained again",
            range=(0.0, 1.0),
            direction="higher: the output depends on the weights the model learnt",
            null="none",
            unit="total variation distance",
            paper="wiegreffe2019attention",
            section=OURS,
            undefined_when="the text has one unit, or there is no untrained twin",
        )
    }


AUDIT_CARDS: dict[str, Card] = calibrated_cards(
    {**_agreement(), **_erasure(), **_plausibility(), **_ablation()}
)


def audit_card(experiment: str, measure: str) -> Card:
    """The card of anything an audit measures; one whose name ends in a setting shares that of all."""
    return look_up(f"{experiment}/{Named.of(measure).name}", {**CARDS, **AUDIT_CARDS}, "card")
