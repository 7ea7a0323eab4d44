"""What was measured of one text, in sentences: each number beside its null, and no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attentest.evidence.importances.names import BY_CAPTUM, IMPORTANCES
from attentest.notebook import number

Document = Mapping[str, Any]
AGREEMENT = "Kendall's tau with attention", "tau", "permuted", "central 95 %"
RECOMPUTED = (
    "* computed again under each permutation; the others are as they are, and only attention is permuted"
)
NOTHING = 1e-9  # of a divergence: what rounding leaves between a thing and itself
WORDS = 12  # of a set that are named
CLASSES = 6
ABOUT = IMPORTANCES | BY_CAPTUM
SHORT = {name: about.short or about.title for name, about in ABOUT.items()}
TITLES = {
    **{"attention": "attention", "adversary": "strongest adversary"},
    **{name: about.title for name, about in ABOUT.items()},
}
LEFT_OUT = {
    "permuted": "Permuted attention",
    "adversary": "Adversary",
    "smallest_flip": "Smallest flip",
    "heads": "Layers and heads",
}


def said(view: Document) -> list[str]:
    """The prediction first; then every measurement, and what is not there."""
    return [prediction(view), *_measured(view)]


def prediction(view: Document) -> str:
    """What the model says, and how likely it finds the other classes."""
    about = view["prediction"]
    ranked = sorted(about["probabilities"].items(), key=lambda each: -each[1])
    others = [f"{label} {number(chance)}" for label, chance in ranked if label != about["label"]]
    more = f", and {len(others) - CLASSES} more" if len(others) > CLASSES else ""
    return f"{about['label']} {number(about['probability'])} ({', '.join(others[:CLASSES])}{more})"


def _measured(view: Document) -> Iterator[str]:
    yield f"Attention: {view['attention_of']}."
    yield f"A positive importance speaks for {view['prediction']['label']}, a negative one against it."
    for told in (permuted(view), adversary(view), smallest_flip(view)):
        if told:
            yield told
    yield from (f"{LEFT_OUT.get(what, what)}: {why}" for what, why in view["left_out"].items())
    yield from view["notes"]
    yield "One text is shown with numbers and nulls; whether attention explains is asked of many (audit)."


def permuted(view: Document) -> str:
    """What the same weights on other units do."""
    found = view["permuted"]
    if found is None:
        return ""
    return (
        f"Permuted attention: under {len(found['changes'])} random orders of its weights the output"
        f" changes by {number(found['median_change'])} (median; central 95 % {number(found['low'])} to"
        f" {number(found['high'])}), and {100 * found['flips']:.0f} % of them change the predicted class."
    )


def adversary(view: Document) -> str:
    """How far attention can go while the output stays."""
    found = view["adversary"]
    if found is None:
        return ""
    if not found["exact"] and found["divergence"] < NOTHING:
        return (
            "Adversary: the search found no other attention that changes the output by at most"
            f" {found['epsilon']:g}; none is further than {number(found['bound'])}."
        )
    null = "" if found["null"] is None else f" For permuted attention the maximum is {number(found['null'])}."
    how = (
        "is the furthest there is, exactly"
        if found["exact"]
        else f"is the best that was found; none is further than {number(found['bound'])}"
    )
    return (
        f"Adversary: attention at a Jensen-Shannon divergence of {number(found['divergence'])} (of at most"
        f" 0.693) changes the output by {number(found['output_change'])}, which is within"
        f" {found['epsilon']:g}; it {how}.{null}"
    )


def smallest_flip(view: Document) -> str:
    """Which units carry the decision."""
    found = view["smallest_flip"]
    if found is None:
        return ""
    words = ", ".join(repr(word) for word in found["words"][:WORDS])
    more = f" and {len(found['words']) - WORDS} more" if len(found["words"]) > WORDS else ""
    how = "No smaller set does" if found["exact"] else "Of three rankings the shortest; a smaller set may do"
    return (
        f"Smallest flip: without the weight of {words}{more} ({len(found['indices'])} of"
        f" {len(view['tokens'])}) the model says {found['label']} ({number(found['probability'])}). {how}."
    )


def agreement(view: Document) -> list[tuple[str, ...]]:
    """How attention ranks beside every importance, and permuted attention does: rows of a table."""
    return [
        (
            TITLES.get(name, name) + ("*" if one["agreement"]["recomputed"] else ""),
            *(_signed(one["agreement"][field]) for field in ("tau", "null")),
            f"{_signed(one['agreement']['null_low'])} to {_signed(one['agreement']['null_high'])}",
        )
        for name, one in view["importances"].items()
        if one["agreement"]
    ]


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero
