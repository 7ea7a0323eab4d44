"""A Preparation says how documents become a corpus: tokens, filters and splits, all of it recorded."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, final

import numpy as np

from attentest.corpus.division import distinct, drawn, too_few
from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Corpus, Example, Split
from attentest.corpus.words import WORDS_VERSION, spacy_tokenise, tokenise, tokenise_sentences
from attentest.refusal import Refusal, look_up

TOKENISERS: dict[str, Callable[[str], list[str]]] = {"words": tokenise, "spacy": spacy_tokenise}
MODES = {"corrected": False, "as-published": True}  # whether the extreme lengths are dropped
Parts = dict[Split, list[Example]]
TREEBANK = re.compile(r"-(?P<bracket>[LR][RSC]B)-|\\(?P<sign>[/*])")
BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}


@final
@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Everything that shapes a corpus between the publisher's file and the first batch.

    Both length bounds are strict, as in the published code. `test_share` and `dev_share` speak only where
    the publisher gives no such split, or where `pool` puts all texts together first; the dev texts are
    taken from what the test left over.
    """

    tokeniser: str = "words"
    lower: bool = True
    digits: str | None = None  # what every token with a digit becomes; the papers write "qqq"
    brackets: bool = False  # write the Treebank's -LRB- and \/ as the signs they stand for
    letters_only: bool = False  # drop tokens without a letter or digit
    min_df: int = 1  # for the vocabulary, which is built from the training split alone
    longer_than: int | None = None
    shorter_than: int | None = None
    pool: bool = False
    test_share: float = 0.15
    dev_share: float = 0.15
    test_sample: float | None = None  # keep only this share of the test split
    split_seed: int = 0
    stratified: bool = False
    keep_sentences: bool = False
    mode: str = "corrected"

    def record(self) -> dict[str, Any]:
        """The same as JSON can hold it, with the versions of what does the splitting into words."""
        versions: dict[str, Any] = {"words_version": WORDS_VERSION}
        if self.tokeniser == "spacy":
            versions["spacy_version"] = importlib.metadata.version("spacy")
        return {**asdict(self), **versions}

    def check(self) -> None:
        """Refuse settings that no corpus could be made with; constructors only store."""
        look_up(self.tokeniser, TOKENISERS, "tokeniser")
        look_up(self.mode, MODES, "mode")
        shares = {"dev_share": self.dev_share, "test_share": self.test_share}
        if self.test_sample is not None:
            shares["test_sample"] = self.test_sample
        for setting, share in shares.items():
            if not 0 < share < 1:
                raise _wrong(setting, share, "a share between 0 and 1, both excluded", "0.15 is usual.")
        if self.min_df < 1:
            raise _wrong("min_df", self.min_df, "at least 1", "1 keeps every word.")
        low, high = self.longer_than, self.shorter_than
        if low is not None and high is not None and low + 1 >= high:
            between = f"room between longer_than ({low}) and shorter_than"
            raise _wrong("shorter_than", high, between, "Both bounds are strict.")


def _wrong(setting: str, got: float | int, needs: str, way_out: str) -> Refusal:
    return Refusal(f"preparation, {setting}", got=str(got), needs=needs, way_out=way_out)


def _spelled(preparation: Preparation, token: str) -> str | None:
    """How a token is written in the corpus; None drops it."""
    if preparation.letters_only and not any(sign.isalnum() for sign in token):
        return None
    if preparation.digits is not None and any(sign.isdigit() for sign in token):
        return preparation.digits
    return token.lower() if preparation.lower else token


def _unescaped(text: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(text, str):
        return TREEBANK.sub(lambda found: found["sign"] or BRACKETS[found["bracket"]], text)
    return tuple(str(_unescaped(token)) for token in text)


def _sentence_starts(text: str, tokens: Sequence[str]) -> list[int]:
    """Where the sentences of a text begin among tokens that some other tokeniser made of it.

    No tokeniser loses a character but blanks, so characters counted without blanks are a common measure.
    """
    words, starts = tokenise_sentences(text)
    ends = list(accumulate(map(len, words)))
    own = [0, *accumulate(map(len, tokens))][:-1]
    return [bisect_left(own, ends[start - 1] if start else 0) for start in starts]


def raw_tokens(
    text: str | tuple[str, ...], sentences: tuple[int, ...] | None, preparation: Preparation
) -> tuple[Sequence[str], Sequence[int] | None]:
    """The tokens as published or as split here, and where sentences begin if that is wanted."""
    if preparation.brackets:
        text = _unescaped(text)
    if not isinstance(text, str):
        return text, sentences if preparation.keep_sentences else None
    if preparation.keep_sentences and preparation.tokeniser == "words":
        return tokenise_sentences(text)
    tokens = TOKENISERS[preparation.tokeniser](text)
    return tokens, _sentence_starts(text, tokens) if preparation.keep_sentences else None


def _example(document: Document, preparation: Preparation, spelled: Callable[[str], str | None]) -> Example:
    """The document in its final tokens, with the positions it carries moved to where their tokens went."""
    raw, starts = raw_tokens(document.text, document.sentences, preparation)
    spellings = [spelled(token) for token in raw]
    tokens = tuple(token for token in spellings if token is not None)
    kept: Sequence[int] = range(len(raw))
    if len(tokens) < len(raw):
        kept = [position for position, token in enumerate(spellings) if token is not None]
    places = {position: n for n, position in enumerate(kept)} if document.rationale else {}
    query = None
    if document.query is not None:
        words, _ = raw_tokens(document.query, None, preparation)
        query = tuple(word for word in map(spelled, words) if word is not None)
    return Example(
        id=document.id,
        tokens=tokens,
        label=document.label,
        query=query,
        rationale=None
        if document.rationale is None
        else tuple(places[position] for position in document.rationale if position in places),
        # A sentence that lost its first token begins at its next one; one that lost all is no sentence.
        sentences=None
        if starts is None
        else tuple(sorted({bisect_left(kept, start) for start in starts} - {len(kept)})),
        candidates=document.candidates,
        text=_written(document.text, preparation),
        query_text=_written(document.query, preparation),
    )


def _written(text: str | tuple[str, ...] | None, preparation: Preparation) -> str | None:
    """The raw string; a text of the Treebank is a list of tokens, in whatever form a reader gives it."""
    return text if isinstance(text, str) and not preparation.brackets else None


def _why_left_out(example: Example, preparation: Preparation) -> str | None:
    length, low, high = len(example.tokens), preparation.longer_than, preparation.shorter_than
    if not length or example.query == ():
        return "nothing left after preparation"
    if low is not None and length <= low:
        return f"{low} tokens or fewer"
    if high is not None and length >= high:
        return f"{high} tokens or more"
    return None


def _divide(name: str, parts: Parts, given: set[Split], preparation: Preparation) -> int:
    """Fill the splits that the publisher does not give; the number of test texts outside the sample."""
    shares: dict[Split, float] = {"test": preparation.test_share, "dev": preparation.dev_share}
    wanted: dict[Split, float] = {split: share for split, share in shares.items() if split not in given}
    rng = np.random.default_rng(preparation.split_seed)
    refusal = too_few(name, parts["train"], 1 + len(wanted), preparation.stratified) if wanted else None
    if refusal:
        raise refusal
    for split, share in wanted.items():
        parts[split], parts["train"] = drawn(parts["train"], share, preparation.stratified, rng)
    if preparation.test_sample is None:
        return 0
    parts["test"], rest = drawn(parts["test"], preparation.test_sample, preparation.stratified, rng)
    return len(rest)


def _without_extremes(examples: list[Example], preparation: Preparation) -> list[Example]:
    """The published code's filter: where no bound is set, the extreme length of the split is the bound.

    A split whose texts are all of the same length stays whole; the published code would leave nothing.
    """
    lengths = [len(example.tokens) for example in examples]
    low = min(lengths, default=0) if preparation.longer_than is None else -1
    high = max(lengths, default=0) if preparation.shorter_than is None else None
    kept = [e for e in examples if low < len(e.tokens) and (high is None or len(e.tokens) < high)]
    return kept or examples


def _check_learnable(name: str, parts: Parts, excluded: Counter[str]) -> None:
    seen = {example.label for example in parts["train"]}
    if len(seen) < 2:
        reasons = "; ".join(f"{count} left out: {why}" for why, count in excluded.items())
        raise Refusal(
            f"corpus {name}",
            got=(f"training texts of one label only ({', '.join(seen)})" if seen else "no texts to train on")
            + (f" ({reasons})" if reasons else ""),
            needs="texts of at least two labels, or there is nothing to learn",
            way_out="Check the labels, the length bounds and the split.",
        )


def prepare(
    name: str,
    documents: Iterable[Document],
    preparation: Preparation,
    *,
    labels: Sequence[str] | None = None,
) -> Corpus:
    """The corpus that a preparation makes of some documents, whatever order they come in.

    `labels` are the labels that count, in the order that numbers them; texts of another label are left out.
    Without it, every label counts, in order of spelling.
    """
    preparation.check()
    # Cached, so that a token is spelled once and all its occurrences share one string.
    spelled = functools.cache(functools.partial(_spelled, preparation))
    excluded: Counter[str] = Counter()
    parts: Parts = {split: [] for split in SPLITS}
    given: set[Split] = set()
    for document in distinct(name, documents):
        split = None if preparation.pool else document.split
        given |= {split} if split else set()
        example = _example(document, preparation, spelled)
        why = f"label {example.label}" if labels and example.label not in labels else None
        why = why or _why_left_out(example, preparation)
        if why:
            excluded[why] += 1
        else:
            parts[split or "train"].append(example)
    _check_learnable(name, parts, excluded)
    excluded["test text outside the sample"] = _divide(name, parts, given, preparation)
    if MODES[preparation.mode]:
        whole = sum(map(len, parts.values()))
        parts = {split: _without_extremes(examples, preparation) for split, examples in parts.items()}
        excluded["shortest or longest of its split"] = whole - sum(map(len, parts.values()))
    _check_learnable(name, parts, excluded)
    train, dev, test = (tuple(sorted(parts[split], key=lambda e: e.id)) for split in SPLITS)
    return Corpus(
        name=name,
        train=train,
        dev=dev,
        test=test,
        labels=tuple(labels or sorted({example.label for example in (*train, *dev, *test)})),
        preparation={**preparation.record(), "labels": list(labels) if labels else None},
        excluded={why: count for why, count in excluded.items() if count},
    )


def prepare_one(document: Document, preparation: Preparation) -> Example:
    """One document as `prepare` would have it in a corpus; refused where it would be left out."""
    example, why = prepared(document, preparation)
    if why:
        raise Refusal(
            f"text {document.id!r}",
            got=why,
            needs="a text that the preparation of its corpus keeps",
            way_out="Choose another text.",
        )
    return example


def prepared(document: Document, preparation: Preparation) -> tuple[Example, str | None]:
    """One document as `prepare` would have it in a corpus, and why it would be left out, if it would."""
    preparation.check()
    example = _example(document, preparation, functools.partial(_spelled, preparation))
    return example, _why_left_out(example, preparation)


def as_given(document: Document, preparation: Preparation) -> Example:
    """One document as an audit takes it: whatever its length, and with its raw text.

    A preparation that lower-cases lower-cases the raw text, too. A text of which the preparation would leave
    no token has all its tokens.
    """
    example = _example(document, preparation, functools.partial(_spelled, preparation))
    if not example.tokens or example.query == ():
        example = _example(document, preparation, lambda token: token)
    raw = [text if isinstance(text, str) else None for text in (document.text, document.query)]
    text, query = (each.lower() if each is not None and preparation.lower else each for each in raw)
    return replace(example, text=text, query_text=query)
