"""What a reader must know beside a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attentest import notebook
from attentest.references import brief


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """What a reader must know to read one measure, and to doubt it."""

    measure: str
    formula: str
    range: tuple[float, float]
    direction: str
    null: str
    unit: str
    paper: str
    section: str
    undefined_when: str
    how_good: str = ""  # how well it tells models apart whose truth is known; empty where that is not known

    def _repr_html_(self) -> str:
        """The card, a line a field."""
        between = " to ".join(map(notebook.number, self.range))
        told = {"formula": self.formula, "read it as": self.direction, "null": self.null}
        told |= {"range": f"{between}, {self.unit}", "undefined when": self.undefined_when}
        told |= {"how good it is": self.how_good} if self.how_good else {}
        told |= {"from": f"{brief(self.paper)}, {self.section}"}
        return notebook.table((self.measure, ""), told.items())


# What a null holds fixed, what it breaks, and why that is the absence of explanation.
OF_UNTRAINED = (
    "It holds architecture, vectors and texts fixed and breaks what was learnt: a model that learnt"
    " nothing has"
    " nothing to explain."
)
OF_EXCHANGE = (
    "It holds the weights and the states fixed and breaks which state has which weight: then attention cannot"
    " have picked what matters."
)
OF_RANDOM_RANKING = (
    "It holds the text and its units fixed and breaks their order: a ranking that knows nothing of the text"
    " explains nothing."
)
