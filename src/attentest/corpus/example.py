"""An Example is one labelled text; a Corpus is three splits of them and how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

from attentest import notebook
from attentest.refusal import Refusal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
MOST_NAMED = 20  # labels; where there are more, each is an answer and not a class
UNLABELLED = ""  # the label of a text whose label nobody gave; no model has a class of that name


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One text and its label *name* (or UNLABELLED). Only `tokens` is attended, not the question `query`."""

    id: str
    tokens: tuple[str, ...]
    label: str
    query: tuple[str, ...] | None = None
    rationale: tuple[int, ...] | None = None  # positions in `tokens` that decide, by whoever knows
    sentences: tuple[int, ...] | None = None  # the position at which each sentence begins
    candidates: tuple[str, ...] | None = None  # the answers that are possible here; None means all
    # The raw strings, where there are any. A model with a tokenizer of its own reads these and not `tokens`,
    # so whoever changes `tokens` must change or drop them. They are not stored, and equality ignores them.
    text: str | None = field(default=None, compare=False, repr=False)
    query_text: str | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        """The text, what was asked of it, its label; words that are known to decide stand out."""
        asked = notebook.said("asked:") + notebook.words(self.query) if self.query else ""
        about = notebook.said(f"{self.id}: {self.label}" if self.label else self.id)
        return about + asked + notebook.words(self.tokens, frozenset(self.rationale or ()))


def enumerated(labels: Sequence[str]) -> str:
    """How many labels there are, and their names where these are few and short."""
    shown = ", ".join(map(notebook.harmless, labels))
    more = len(labels) > MOST_NAMED or len(shown) > notebook.LONGEST
    return f"{len(labels)} labels" if more else f"{len(labels)} labels: {shown}"


@final
@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Train, dev and test, ready to be indexed: tokens are final, so what is stored is what is trained on."""

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: tuple[str, ...]
    family: str = "classification"  # how such corpora are trained: classification, nli, qa, babi
    preparation: Mapping[str, Any] = field(default_factory=dict)  # part of the corpus's key
    excluded: Mapping[str, int] = field(default_factory=dict)  # reason -> number of texts left out
    # Of a table, every row in file order with its case untouched: what an audit takes. It is not stored.
    rows: Sequence[Example] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for split, examples in self.splits().items():
            if not examples:
                raise Refusal(
                    f"corpus {self.name}",
                    got=f"an empty {split} split",
                    needs="at least one text in each of train, dev and test",
                    way_out="Check the length filter and the split sizes.",
                )
            for example in examples:
                self._check(example, seen)

    def _check(self, example: Example, seen: set[str]) -> None:
        wrong = None
        if example.id in seen:
            wrong = "an id that occurs twice", "ids that are unique over all splits"
        elif not example.tokens:
            wrong = "a text without tokens", "at least one token"
        elif example.label not in self.labels:
            wrong = f"the label {example.label!r}", f"one of {', '.join(self.labels)}"
        elif example.query is not None and not example.query:
            wrong = "an empty query", "at least one token"
        if wrong:
            raise Refusal(
                f"corpus {self.name}, text {example.id!r}",
                got=wrong[0],
                needs=wrong[1],
                way_out="Mend or remove that text.",
            )
        seen.add(example.id)

    def __repr__(self) -> str:
        """How many texts there are of which labels; the texts themselves would fill many screens."""
        counts = ", ".join(f"{len(examples)} {split}" for split, examples in self.splits().items())
        return f"Corpus({self.name!r}, {self.family}: {counts}; {enumerated(self.labels)})"

    def splits(self) -> dict[Split, tuple[Example, ...]]:
        """The three splits by name, in the order the house uses everywhere."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @property
    def has_query(self) -> bool:
        """Whether texts come with a question or hypothesis."""
        return self.train[0].query is not None

    def counts(self) -> dict[str, dict[str, int]]:
        """Texts per split and label."""
        return {
            split: {label: Counter(e.label for e in examples)[label] for label in self.labels}
            for split, examples in self.splits().items()
        }

    def _repr_html_(self) -> str:
        """How many texts there are by split and label, what was left out, and one of them to look at."""
        total = {split: len(examples) for split, examples in self.splits().items()}
        named = self.labels if len(self.labels) <= MOST_NAMED else ()
        counted = self.counts() if named else {split: {} for split in SPLITS}
        rows = [[split, total[split], *(counted[split][label] for label in named)] for split in SPLITS]
        left_out = (
            [notebook.table(("left out because", "texts"), self.excluded.items())] if self.excluded else []
        )
        said = f"Corpus {self.name} ({self.family}): {len(self.labels)} labels. A test text:"
        return "".join(
            [
                notebook.table(("split", "texts", *named), rows),
                *left_out,
                notebook.said(said),
                self.test[0]._repr_html_(),
            ]
        )
