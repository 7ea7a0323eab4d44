"""What a reader must know beside a number."""

from __future__ import annotations

from dataclasses import dataclass


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
