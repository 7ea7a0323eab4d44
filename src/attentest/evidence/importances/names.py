"""What is known of each importance without computing it: the experiments, the audit and every page ask here.

No part of this needs torch. How each is computed is in `catalogue.py`, under the same names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from attentest.refusal import look_up


@final
@dataclass(frozen=True, kw_only=True)
class About:
    """An importance in words, and what can be done with it."""

    title: str
    says: str  # what it measures, in half a sentence
    short: str = ""  # at most 15 characters, for a column; the title where that is short
    column: str = ""  # how columns of stored rows spell it, where that is not its name
    signed: bool = False  # whether it is below 0 for a word that speaks against the predicted class
    cheap: bool = False  # whether it takes few readings, so that every text of a split may be asked
    has_nulls: bool = False  # whether it can be computed again under other attention of the same text


# In the order of columns and cards.
IMPORTANCES = {
    "gradient": About(
        title="gradient × input",
        says="how far the output moves with the word's vector",
        short="gradient×input",
        column="gradient",
        cheap=True,
        has_nulls=True,
    ),
    "leave-one-out": About(
        title="leave-one-out",
        says="how far the prediction falls without the word",
        column="loo",
        cheap=True,
        has_nulls=True,
    ),
    "integrated-gradients": About(
        title="integrated gradients",
        says="from vectors of zeros to the words' own",
        short="integrated gr.",
        signed=True,
    ),
    "shapley": About(
        title="sampled Shapley values",
        says="the mean gain over orders of joining the text",
        short="Shapley",
        signed=True,
    ),
    "lime": About(title="LIME", says="a line through the answers to parts of the text", signed=True),
}
BY_CAPTUM = {
    "captum-lime": About(title="Captum's LIME", says="LIME as Captum computes it", short="LIME (Captum)"),
    "captum-kernel-shap": About(
        title="Captum's KernelSHAP", says="Shapley values as Captum estimates them", short="SHAP (Captum)"
    ),
}
GRADIENT, LEFT_OUT = WITH_NULLS = tuple(name for name, about in IMPORTANCES.items() if about.has_nulls)


def column(name: str) -> str:
    """How columns of stored rows spell an importance."""
    return IMPORTANCES[name].column or name


# The columns of those that experiments compute under attention that is not the text's own.
IN_ROWS = tuple(column(name) for name in WITH_NULLS)
IN_WORDS = {column(name): f"{name} importance" for name in WITH_NULLS}


def further(own: Collection[str], *, cheap: bool = False) -> tuple[str, ...]:
    """The importances beyond an experiment's own; with `cheap`, those that every text may be asked."""
    return tuple(
        name for name, about in IMPORTANCES.items() if name not in own and (about.cheap or not cheap)
    )


def asked_also(names: str, own: Collection[str], what: str) -> tuple[str, ...]:
    """The importances that a parameter names, separated by spaces; none that is asked in any case."""
    known = dict.fromkeys(further(own))
    for name in names.split():
        look_up(name, known, what)
    return tuple(dict.fromkeys(names.split()))
