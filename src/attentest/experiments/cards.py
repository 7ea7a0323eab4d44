"""What every printed measure means: the cards of all experiments, shown beside the numbers."""

from __future__ import annotations

from attentest.claims.calibrated import calibrated_cards
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.refusal import look_up
from attentest.statistics.card import Card
from attentest.statistics.named import Named

CARDS: dict[str, Card] = calibrated_cards(
    {name: card for conclusion in CONCLUSIONS.values() for name, card in conclusion.cards.items()}
)


def card(experiment: str, measure: str) -> Card:
    """The card of a measure; one whose name ends in a setting, as in @0.01, shares that of all settings."""
    return look_up(f"{experiment}/{Named.of(measure).name}", CARDS, "card")
