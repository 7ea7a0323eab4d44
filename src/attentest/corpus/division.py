"""How examples are divided where the publisher does not say: by lot, and each example by its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from attentest.corpus.document import Document
from attentest.corpus.example import Example
from attentest.refusal import Refusal


def distinct(name: str, documents: Iterable[Document]) -> Iterator[Document]:
    """The documents, as long as no id occurs twice.

    Before the division, because lots are drawn by id: two copies outside the test sample would go unseen.
    """
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise Refusal(
                f"corpus {name}, text {document.id!r}",
                got="an id that occurs twice",
                needs="ids that are unique over all splits",
                way_out="Remove the second text, or the second copy of the files.",
            )
        seen.add(document.id)
        yield document


def drawn(
    examples: list[Example], share: float, stratified: bool, rng: np.random.Generator
) -> tuple[list[Example], list[Example]]:
    """A share of the examples and the rest. Of each group at least one is drawn and at least one stays."""
    groups: dict[str, list[Example]] = {}
    # Sorted, because the same texts in another order (a folder, a tar) must be the same corpus.
    for example in sorted(examples, key=lambda example: (example.label, example.id)):
        groups.setdefault(example.label if stratified else "", []).append(example)
    chosen: set[str] = set()
    for group in groups.values():
        group.sort(key=lambda example: example.id)
        size = min(max(1, int(share * len(group) + 0.5)), len(group) - 1)
        chosen.update(group[n].id for n in rng.permutation(len(group))[:size])
    return [e for e in examples if e.id in chosen], [e for e in examples if e.id not in chosen]


def too_few(name: str, examples: list[Example], needed: int, stratified: bool) -> Refusal | None:
    """The refusal to raise where no label, or not the whole, has a text for each split that needs one."""
    counts = Counter(example.label for example in examples) if stratified else {"": len(examples)}
    if max(counts.values(), default=0) >= needed:
        return None
    return Refusal(
        f"corpus {name}",
        got=f"{len(examples)} texts to divide" + (f", no label with {needed}" if stratified else ""),
        needs=f"at least {needed} texts" + (" of one label" if stratified else ""),
        way_out="Each of train, dev and test needs one; a useful corpus has hundreds.",
    )
