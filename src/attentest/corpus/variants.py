"""Corpora with parameters: `planted-reviews(classes=5,length=60)` is a name like any other.

A name has one canonical spelling: parameters in alphabetical order, without blanks, without those that have
their default. Only this spelling enters keys, so that one corpus never has two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from attentest.corpus.generators.planted_reviews import MEANINGS, ReviewSettings, review_documents
from attentest.corpus.generators.review_rule import LABELS
from attentest.corpus.origin import Generated, Source
from attentest.corpus.preparation import Preparation
from attentest.refusal import Refusal, look_up

REVIEWS = "planted-reviews"
CALL = re.compile(r"([^()]*)\(([^()]*)\)")
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ReviewSettings)}
KINDS = {int: "a whole number", float: "a number", str: "a word"}


def reviews_source(settings: ReviewSettings | None = None) -> Source:
    """The catalogue's entry of planted-reviews with these settings."""
    chosen = settings or ReviewSettings()
    return Source(
        title="Film and product reviews of our own, with planted graded words, negation and distractors",
        cite="attentest",
        licence="Apache-2.0",
        size=chosen.train + chosen.dev + chosen.test,
        how_to_get="Nothing to get: attentest makes it.",
        origin=Generated(make=partial(review_documents, chosen), parameters=asdict(chosen)),
        labels=LABELS[chosen.classes],
        preparation=Preparation(keep_sentences=True),
    )


def canonical_name(name: str, parameters: Mapping[str, Any] | None = None) -> str:
    """The one spelling of a corpus's name; parameters may be in the name, given beside it, or both.

    A name without parentheses stays as it is unless parameters are given.
    """
    call = CALL.fullmatch(name.strip())
    if call is None and not parameters:
        return name
    base = call[1].strip() if call else name
    _check_has_parameters(base)
    settings = _settings(name, {**_written(name, call[2] if call else ""), **(parameters or {})})
    changed = {key: value for key, value in sorted(asdict(settings).items()) if value != DEFAULTS[key]}
    inside = ",".join(f"{key}={value}" for key, value in changed.items())
    return f"{base}({inside})" if inside else base


def variant(name: str) -> Source | None:
    """The source that a name with parameters stands for; None for a name without parentheses."""
    call = CALL.fullmatch(name.strip())
    if call is None:
        return None
    _check_has_parameters(call[1].strip())
    return reviews_source(_settings(name, _written(name, call[2])))


def parameters_of(source: Source) -> dict[str, dict[str, Any]]:
    """Value, default and meaning of every parameter of a corpus; empty for a corpus without parameters."""
    if not (isinstance(source.origin, Generated) and source.origin.parameters.keys() == MEANINGS.keys()):
        return {}
    return {
        key: {"value": value, "default": DEFAULTS[key], "meaning": MEANINGS[key]}
        for key, value in source.origin.parameters.items()
    }


def _check_has_parameters(base: str) -> None:
    if base != REVIEWS:
        raise Refusal(
            f"corpus {base!r}",
            got="parameters",
            needs=f"a corpus that has some, which is {REVIEWS}",
            way_out="Leave out the parameters.",
        )


def _written(name: str, inside: str) -> dict[str, str]:
    """The parameters between the parentheses of a name, still as text."""
    found: dict[str, str] = {}
    for piece in inside.split(",") if inside.strip() else ():
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not (key and equals and value) or key in found:
            raise Refusal(
                f"corpus {name!r}",
                got=f"{piece.strip()!r}" + (" a second time" if key in found else ""),
                needs="parameters as name=value with commas between them, each once",
                way_out=f"Write it as in {REVIEWS}(classes=5,length=60).",
            )
        found[key] = value
    return found


def _settings(name: str, given: Mapping[str, Any]) -> ReviewSettings:
    for key in given:
        look_up(key, DEFAULTS, f"parameter of {REVIEWS},")
    return ReviewSettings(**{key: _value(name, key, str(value).strip()) for key, value in given.items()})


def _value(name: str, key: str, written: str) -> Any:
    kind = type(DEFAULTS[key])
    try:
        value = kind(written)
    except ValueError as wrong:
        raise Refusal(
            f"corpus {name!r}, {key}",
            got=repr(written),
            needs=KINDS[kind],
            way_out=f"The default is {DEFAULTS[key]}.",
        ) from wrong
    return value + 0.0 if kind is float else value  # -0.0 is spelled 0.0
