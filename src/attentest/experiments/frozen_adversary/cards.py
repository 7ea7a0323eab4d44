"""The cards of the frozen-adversary experiment: what it costs attention to move alone."""

from __future__ import annotations

from attentest.experiments.dispersion.cards import PAPER
from attentest.experiments.shared.attention_rate import rate_card, start_card
from attentest.experiments.shared.score_cards import TITLES, UNDEFINED, UNITS, score_card
from attentest.experiments.trained_adversary.cards import DIVERGENCE, NATS, ONE_TOKEN, SEEDS, SHARE, TVD
from attentest.statistics.card import Card

TABLE = "Table 5. The loss is that of Wiegreffe & Pinter, KL(adversary || base); lambda is not given"
POINTS = (
    "; a group is an adversary by its lambda: frozen (a new attention trained within the base), free (weights"
    " of each text's own within the base), unfrozen (a model from scratch); or a point beside: other seeds"
    " (each text's mean over them) and the controls"
)
AT = (
    "; of a group such as `frozen at 0.62`, where the curve over lambda, straight between neighbours, first"
    " has that mean JSD of attention, from texts that all adversaries of the kind have"
)

CARDS: dict[str, Card] = {
    "frozen-adversary/attention-rate": rate_card(PAPER),
    "frozen-adversary/attention-start": start_card(PAPER),
    "frozen-adversary/attention-jsd": Card(
        measure="Divergence of an adversary's attention",
        formula=f"mean over texts of JSD(a_adversary, a_base){POINTS}",
        range=DIVERGENCE,
        direction="higher: it looks elsewhere",
        null=SEEDS,
        unit=NATS,
        paper=PAPER,
        section=TABLE,
        undefined_when=ONE_TOKEN,
    ),
    "frozen-adversary/output-tvd": Card(
        measure="Change of output of an adversary",
        formula=f"mean over texts of TVD(y_adversary, y_base), |y_a - y_b| of two classes{POINTS}",
        range=SHARE,
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=TVD,
        paper=PAPER,
        section="ours, beside Table 5: no divergence of attention bounds it (A19)",
        undefined_when=ONE_TOKEN,
    ),
    "frozen-adversary/accuracy": score_card(
        "accuracy",
        whose="of adversaries",
        groups=f"{POINTS[2:]}; and the base itself (trained){AT}",
        paper=PAPER,
        section=TABLE,
    ),
    "frozen-adversary/accuracy-change": Card(
        measure=f"Change of {TITLES['accuracy'].lower()} from the base",
        formula=f"{TITLES['accuracy']} of the adversary minus that of the base, by seed{POINTS}{AT}",
        range=(-1.0, 1.0),
        direction="below the null: attention cannot move there without losing what it carried",
        null="minus the mean absolute difference between two seeds of the base: a fall that means nothing",
        unit=f"difference of {UNITS['accuracy']}",
        paper=PAPER,
        section=TABLE,
        undefined_when=f"{UNDEFINED['accuracy']}; at a divergence that no adversary of the kind reaches",
    ),
}
