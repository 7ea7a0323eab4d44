"""What every printed measure means: one card each, shown beside the number."""

from __future__ import annotations

from attentest.claims.calibrated import calibrated_cards
from attentest.experiments.ablation.cards import ABLATION_CARDS
from attentest.experiments.adversary.cards import ADVERSARY_CARDS
from attentest.experiments.calibration import conclude as calibration
from attentest.experiments.communication.cards import COMMUNICATION_CARDS
from attentest.experiments.deception.cards import DECEPTION_CARDS
from attentest.experiments.dispersion.cards import DISPERSION_CARDS
from attentest.experiments.explainers.cards import EXPLAINER_CARDS
from attentest.experiments.frozen_adversary.cards import FROZEN_ADVERSARY_CARDS
from attentest.experiments.heat_map.cards import HEAT_MAP_CARDS
from attentest.experiments.importance.cards import IMPORTANCE_CARDS
from attentest.experiments.information.cards import INFORMATION_CARDS
from attentest.experiments.information_ablation.cards import INFORMATION_CHANGE_CARDS
from attentest.experiments.log_odds.cards import LOG_ODDS_CARDS
from attentest.experiments.removal.cards import REMOVAL_CARDS
from attentest.experiments.single_weight.cards import SINGLE_WEIGHT_CARDS
from attentest.experiments.sparsity.cards import SPARSITY_CARDS
from attentest.experiments.trained_adversary.cards import WIEGREFFE_PINTER_CARDS
from attentest.experiments.vectors.cards import VECTORS_CARDS
from attentest.refusal import look_up
from attentest.statistics.card import OF_UNTRAINED, Card

WRITTEN: dict[str, Card] = {
    "performance/accuracy": Card(
        measure="Accuracy",
        formula="share of texts whose predicted label is the gold label",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the share of the majority class: what always answering it scores. By gold label, that same"
        " answer scores 1 on the majority label and 0 on the others.",
        unit="share of texts",
        paper="jain2019attention",
        section="Table 1 (question answering)",
        undefined_when="there is no text, or no output is a number",
    ),
    "performance/f1": Card(
        measure="F1",
        formula="2 TP / (2 TP + FP + FN) of class 1 where there are two classes; of more, the plain mean"
        " over the classes that occur as gold or predicted label",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the best constant answer. Two classes: always class 1, which scores 2 s / (1 + s) for its"
        " share s; answering the majority instead would score 0 wherever class 1 is the rarer. More"
        " classes: always the majority.",
        unit="harmonic mean of precision and recall",
        paper="jain2019attention",
        section="Table 1 (classification)",
        undefined_when="two classes, and class 1 is neither gold nor predicted anywhere",
    ),
    "performance/auc": Card(
        measure="ROC-AUC",
        formula="chance that a text of class 1 gets a higher probability of class 1 than a text of class 0,"
        " ties counting half; of more classes, the plain mean of one class against the rest over the"
        " gold classes",
        range=(0.0, 1.0),
        direction="higher is better",
        null="0.5: a probability that ranks at random",
        unit="share of pairs",
        paper="jain2019attention",
        section="not printed; the published code chooses its checkpoint by it",
        undefined_when="all gold labels are alike",
    ),
    "permutation/median-output-change": Card(
        measure="Median output change under permuted attention",
        formula="mean over texts of median over permutations pi of TVD(y(pi(a)), y(a)),"
        " with encoder and decoder held fixed",
        range=(0.0, 1.0),
        direction="lower: the output depends less on which token gets which weight",
        null="the same on untrained models, in the group of the same name by their own predictions and"
        f" their own largest weights; untrained models have none. {OF_UNTRAINED}",
        unit="total variation distance",
        paper="jain2019attention",
        section="4.2.1 Attention permutation; the means per bin and class are ours",
        undefined_when="the text has one token",
    ),
    "permutation/share-unmoved": Card(
        measure="Share of texts that permuting attention leaves unmoved",
        formula="share of texts whose median output change is below 0.05",
        range=(0.0, 1.0),
        direction="higher: fewer outputs depend on which token gets which weight",
        null=f"the same on untrained models, which have none. {OF_UNTRAINED}",
        unit="share of texts",
        paper="jain2019attention",
        section="4.2.1 Attention permutation, where it is said of a figure; the threshold is ours",
        undefined_when="the text has one token",
    ),
    **IMPORTANCE_CARDS,
    **ADVERSARY_CARDS,
    **HEAT_MAP_CARDS,
    **LOG_ODDS_CARDS,
    **WIEGREFFE_PINTER_CARDS,
    **SINGLE_WEIGHT_CARDS,
    **REMOVAL_CARDS,
    **DECEPTION_CARDS,
    **COMMUNICATION_CARDS,
    **DISPERSION_CARDS,
    **SPARSITY_CARDS,
    **FROZEN_ADVERSARY_CARDS,
    **INFORMATION_CARDS,
    **INFORMATION_CHANGE_CARDS,
    **EXPLAINER_CARDS,
    **ABLATION_CARDS,
    **VECTORS_CARDS,
    **calibration.CARDS,
}


CARDS: dict[str, Card] = calibrated_cards(WRITTEN)


def card(experiment: str, measure: str) -> Card:
    """The card of a measure; one whose name ends in a setting, as in @0.01, shares that of all settings."""
    return look_up(f"{experiment}/{measure.partition('@')[0]}", CARDS, "card")
