"""`TextView`: everything that was measured of one text. It prints, shows itself in a notebook, and saves."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from jaxtyping import Float
from numpy import ndarray

from attentest.gallery.writing import as_json
from attentest.inspection.page import FORMATS, fragment
from attentest.inspection.records import (
    Adversary,
    Importance,
    Permuted,
    Prediction,
    SmallestFlip,
    Vector,
    plain,
)
from attentest.inspection.terminal import printed
from attentest.refusal import look_up


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TextView:
    """One text as one model reads it: numbers, each beside its null, and no verdict."""

    model: str
    attention_of: str  # which attention it is, in words
    text: str
    query: str | None
    tokens: tuple[str, ...]  # what attention weighs: words, or sub-words, sentences, the whole text
    prediction: Prediction
    attention: Vector
    importances: Mapping[str, Importance]
    adversary: Adversary | None  # None where there is none: `left_out` says why
    permuted: Permuted | None
    smallest_flip: SmallestFlip | None
    heads: Float[ndarray, "layer head unit"] | None = None  # every row of a transformer
    place: tuple[int, int | None] | None = None  # of the row that is looked at, among them
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens; unless sub-words were asked for, they are words."""
        return self.tokens

    def captum(self, name: str) -> dict[str, Any]:
        """The arguments of `captum.attr.visualization.VisualizationDataRecord` for one importance."""
        one = look_up(name, self.importances, "importance")
        return {
            "word_attributions": one.scores,
            "pred_prob": self.prediction.probability,
            "pred_class": self.prediction.label,
            "true_class": "",
            "attr_class": one.label,
            "attr_score": float(one.scores.sum()),
            "raw_input_ids": list(self.tokens),
            "convergence_score": one.convergence_delta,
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, numbers and strings."""
        fields = (name for name in self.__dataclass_fields__)
        version = importlib.metadata.version("attentest")
        return {**{name: plain(getattr(self, name)) for name in fields}, "version": version}

    def to_json(self) -> str:
        """The same as JSON; what is not a number is null."""
        return as_json(self.to_dict())

    def save(self, out: Path | str) -> Path:
        """Write it: .html is a page that needs nothing beside it, .json everything."""
        return FORMATS.write(self.to_dict(), out)

    def __repr__(self) -> str:
        """Tables of 80 columns, with bars."""
        return printed(self.to_dict())

    def _repr_html_(self) -> str:
        return fragment(self.to_dict())
