"""The list of every measure: `python docs/measures.py` writes docs/measures.md from the cards of the experiments."""

from pathlib import Path

from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import title_and_question

PAGE = Path(__file__).with_name("measures.md")
HEAD = """# Measures

Every measure that the terminal, the pages and `findings` name, by experiment. Each has a card with its formula on the gallery's pages, and `--json` has all of it. *Null* is what the number is where there is nothing to find.

Made by `python docs/measures.py` from the cards; a test says when it is out of date.
"""


def section(experiment: str, names: list[str]) -> list[str]:
    """The heading of an experiment and a table of its measures."""
    title, question = title_and_question(experiment)
    lines = [f"\n## {title}\n", f"`{experiment}`. {question}\n" if question else f"`{experiment}`\n"]
    lines += ["| measure | in words | unit, range | direction | null |", "|---|---|---|---|---|"]
    return lines + [row(name) for name in names]


def row(name: str) -> str:
    """One measure in five cells."""
    card = CARDS[name]
    low, high = (f"{bound:g}" for bound in card.range)
    cells = [
        f"`{name.partition('/')[2]}`",
        card.measure,
        f"{card.unit}, {low} to {high}",
        card.direction,
        card.null,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def page() -> str:
    """The whole page."""
    names: dict[str, list[str]] = {}
    for name in CARDS:
        names.setdefault(name.partition("/")[0], []).append(name)
    return (
        HEAD
        + "\n".join(line for experiment, own in names.items() for line in section(experiment, own))
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
