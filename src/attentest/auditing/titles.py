"""Questions and measures of an audit by their titles in words."""

from __future__ import annotations

from typing import Final

from attentest.auditing.cards import audit_card

TITLES: Final = {
    "performance": "Accuracy",
    "importance": "Rank correlation with gradients and leave-one-out",
    "agreement": "Rank correlation with four explainers",
    "permutation": "Permuted weights",
    "ablation": "Equal weights, and those of the untrained model",
    "erasure": "Erasing the most attended words",
    "plausibility": "Words that people marked",
    "adversary": "Different attention with the same output",
    "removal": "Removing units until the answer flips",
    "dispersion": "How spread out influence is",
    "information": "Information about the output",
}


def title_of(name: str) -> str:
    """A question, a measure of one (`question: measure`, and perhaps how many more), or a control."""
    question, _, rest = name.partition(": ")
    if question not in TITLES or not rest:
        return TITLES.get(name, name[:1].upper() + name[1:])
    measure, _, more = rest.partition(" and ")
    title = audit_card(question, measure).measure
    return f"{title}, and {more}" if more else title
