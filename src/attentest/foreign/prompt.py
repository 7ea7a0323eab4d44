"""The prompt around each text that a causal language model is asked about: a template with {text} in it.

What stands before and behind the text stays as it is, whatever is done to the words of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from attentest.corpus.example import Example
from attentest.corpus.raw_text import query_text, text_and_spans
from attentest.refusal import Refusal

TEXT, QUERY = "{text}", "{query}"
CLASSIFY, PROMPT, NEXT_TOKEN = "classify", "prompt", "next-token"
EXAMPLE = "prompt='Review: {text} Sentiment:', labels=(' negative', ' positive')"
NEXT_LABELS = ("the token", "any other token")  # classes of the task next-token


@final
@dataclass(frozen=True)
class Prompt:
    """A template, and what is asked behind it: which of some labels comes next, or how sure one token is."""

    template: str = TEXT
    asks_token: bool = False

    def __post_init__(self) -> None:
        at, second = self.template.find(TEXT), self.template.find(QUERY)
        wrong = None
        if self.template.count(TEXT) != 1:
            wrong = f"{self.template.count(TEXT)} times {TEXT}", f"{TEXT} once, where the text stands"
        elif self.template.count(QUERY) > 1 or -1 < second < at:
            wrong = (
                f"{QUERY} twice or before {TEXT}",
                f"{QUERY}, the second text, at most once, behind {TEXT}",
            )
        elif not self.asks_token and self.template != self.template.rstrip(" \t"):
            wrong = "a blank at its end", "no blank there: tokenizers join it with the word that comes next"
        if wrong:
            way_out = f"Write it as in {EXAMPLE}."
            raise Refusal(f"prompt={self.template!r}", got=wrong[0], needs=wrong[1], way_out=way_out)

    @property
    def before(self) -> str:
        """What stands before every text."""
        return self.template.partition(TEXT)[0]

    def after(self, example: Example) -> str:
        """What stands behind this text, the second text filled in."""
        return self.template.partition(TEXT)[2].replace(QUERY, query_text(example) or "")

    def follows(self, example: Example) -> str | None:
        """What really comes next, where the user says so: the second text that the template does not hold."""
        return None if QUERY in self.template or not self.asks_token else query_text(example)

    def sentence(self, labels: Sequence[str]) -> str:
        """The task as a report says it: what the answer is, and what stands around each text."""
        if not self.asks_token:
            choice = ", ".join(map(repr, labels))
            return (
                f"Task prompt: the answer is which of the labels {choice} comes next behind the prompt"
                f" {self.template!r}. Attention weighs the words of the text; the rest of the prompt stays as"
                " it is."
            )
        behind = "each text" if self.template == TEXT else f"the prompt {self.template!r}"
        return (
            f"Task next-token: the answer is the probability of one token behind {behind} against all others."
            " The token is the one that follows in the data where that is given (a second text, or what"
            " stands behind a mark), and else the one that the model itself finds likeliest there."
            " Importances and erasure are of this token's probability, however small it is; where a test"
            " counts flips, the probability crosses one half."
        )

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse second texts that the prompt has no place for, and a place without one."""
        given = sum(example.query is not None for example in examples)
        if QUERY in self.template and given < len(examples):
            got, needs = f"{len(examples) - given} texts without a second text", "one for every text"
        elif QUERY not in self.template and not self.asks_token and given:
            got, needs = f"{given} texts with a second text", f"a place for it: {QUERY}"
        else:
            return
        way_out = (
            f"Name the column of second texts (query='...') if the prompt has {QUERY}, else leave it out."
        )
        raise Refusal(f"prompt={self.template!r}", got=got, needs=needs, way_out=way_out)


def prompt_of(task: str, template: str | None) -> Prompt | None:
    """The prompt of a task; None of a classifier, which has none."""
    if task == CLASSIFY:
        if template is not None:
            raise Refusal(
                f"prompt={template!r}",
                got="a prompt without a task",
                needs="task='prompt', which scores labels, or task='next-token'",
                way_out=f"As in task='prompt', {EXAMPLE}.",
            )
        return None
    if task == PROMPT and template is None:
        raise Refusal(
            "task='prompt'",
            got="no prompt",
            needs=f"a prompt with {TEXT} in it, where the text stands",
            way_out=f"As in {EXAMPLE}.",
        )
    return Prompt(TEXT if template is None else template, asks_token=task == NEXT_TOKEN)


def check_labels(labels: Sequence[str]) -> None:
    """Refuse labels of a prompt that are no two different words, before a tokenizer is loaded."""
    wrong = None
    if len(labels) < 2:
        wrong = f"{len(labels)} of them", "two or more, which the model chooses among"
    elif any(not label.strip() for label in labels):
        wrong = "an empty one", "words that may come next"
    elif len({label.strip() for label in labels}) < len(labels):
        wrong = "the same one twice", "different ones"
    if wrong:
        way_out = f"Name the words that may come next, with the blank before each, as in {EXAMPLE}."
        raise Refusal("labels of a prompt", got=wrong[0], needs=wrong[1], way_out=way_out)


def split_at(example: Example, mark: str) -> Example:
    """The text up to a mark, and what really follows it as the second text."""
    text = text_and_spans(example)[0]
    before, found, after = text.partition(mark)
    if not found or mark in after or not before.strip() or not after.strip():
        raise Refusal(
            f"text {example.id!r}",
            got=f"the mark {mark!r} {text.count(mark)} times, or with nothing on one side of it",
            needs="the mark once in every text, between the words before and the token asked about",
            way_out="Leave the mark out to ask about the end of every text.",
        )
    spans = text_and_spans(example)[1]
    count = sum(end <= len(before) for _, end in spans)
    own = len(spans) == len(example.tokens)
    marks = tuple(place for place in example.rationale or () if own and place < count)
    return replace(
        example,
        tokens=example.tokens[:count] if own else tuple(text[start:end] for start, end in spans[:count]),
        text=before,
        query=tuple(after.split()),
        query_text=after,
        rationale=marks or None,
        sentences=None,
    )
