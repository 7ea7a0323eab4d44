"""What the measures of uniform and permuted weights mean, one card each."""

from __future__ import annotations

from attentest.statistics.card import OF_UNTRAINED, Card

KINDS = {
    "uniform": ("uniform attention", "1 / units"),
    "permuted": ("permuted attention", "one random permutation of a, drawn for each text"),
}
NULL = f"the same on untrained models, in the group of the same name, which have none. {OF_UNTRAINED}"
OURS = "ours, after Wiegreffe & Pinter (2019), who train under such attention"
AFTER = {"uniform": OURS, "permuted": "ours; the paper takes the median of many permutations (4.2.1)"}
PAPERS = {"uniform": "wiegreffe2019attention", "permuted": "jain2019attention"}


def _changes(name: str, title: str, weights: str) -> Card:
    return Card(
        measure=f"Output change under {title}",
        formula=f"mean over texts of TVD(y(w), y(a)), w being {weights}; nothing is trained again",
        range=(0.0, 1.0),
        direction="higher: the output depends on the weights the model learnt",
        null=NULL,
        unit="total variation distance",
        paper=PAPERS[name],
        section=AFTER[name],
        undefined_when="the text has one unit",
    )


def _flips(name: str, title: str, weights: str) -> Card:
    return Card(
        measure=f"Predictions that flip under {title}",
        formula=f"share of texts whose likeliest class under w is another, w being {weights}",
        range=(0.0, 1.0),
        direction="higher: more predictions depend on the weights the model learnt",
        null=NULL,
        unit="share of texts",
        paper=PAPERS[name],
        section=AFTER[name],
        undefined_when="the text has one unit",
    )


CARDS: dict[str, Card] = {
    **{f"ablation/{name}-output-change": _changes(name, *about) for name, about in KINDS.items()},
    **{f"ablation/{name}-flips": _flips(name, *about) for name, about in KINDS.items()},
}
