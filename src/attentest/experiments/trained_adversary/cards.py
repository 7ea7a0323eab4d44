"""What the measures of trained adversaries mean, one card each."""

from __future__ import annotations

from attentest.experiments.shared.score_cards import score_card
from attentest.experiments.shared.wiegreffe_pinter import (
    DIVERGENCE,
    NATS,
    ONE_TOKEN,
    PAPER,
    SHARE,
    TVD,
)
from attentest.statistics.card import Card

TABLE, FIGURE = "Table 4", "the figure of divergence against change of output"
POINTS = (
    "; a group is a trained adversary by its lambda, or a point beside: other seeds (each text's mean over"
    " them), uniform attention, the strongest adversary of each text (exact), the published search's best"
    " step (search), and the controls"
)
SEEDS = "the same for other seeds on the same texts: what training anew does; they have none themselves"

CARDS: dict[str, Card] = {
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
