"""What is said over HTTP: every question and every answer is one of these, and nothing else passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, final, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

LONGEST_TEXT = 100_000  # characters; models read some thousand words
LONGEST_HEAD = 65_536  # bytes of an address, and of all headers
LARGEST = 1_000_000  # bytes of a question: such a text in any script, and as many weights

Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Shares = list[float | None]


class _Said(BaseModel):
    """Nothing is converted and nothing unknown passes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@final
class ReadQuestion(_Said):
    """A text, and the model that is to read it."""

    model: Key
    text: Text
    query: Text | None = None
    epsilon: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="how much the adversary may change the output; 0.01, with a query 0.05"
    )


@final
class DecideQuestion(_Said):
    """The same text under weights of the reader's own."""

    model: Key
    text: Text
    query: Text | None = None
    weights: Annotated[list[Share], Field(max_length=10_000)]
    renormalise: bool = Field(description="divide the weights by their sum; otherwise they are used as given")


@final
class ExampleQuestion(_Said):
    """Which text of a model's test split; numbers go round."""

    model: Key
    number: Annotated[int, Field(ge=0, le=10**9)] = 0


@final
class Adversary(_Said):
    """The attention furthest from the model's own under which its output changes by at most epsilon."""

    weights: Shares
    divergence: float | None = Field(description="Jensen-Shannon, in nats: at most ln 2")
    output_change: float | None = Field(description="total variation")
    exact: bool = Field(description="whether the divergence is the proven maximum")
    bound: float | None = Field(description="no attention within epsilon diverges more")


@final
class ReadAnswer(_Said):
    """One text as a model reads it; lists are one number a unit, null where a number is not defined."""

    model: Key
    labels: list[str]
    probabilities: Shares
    predicted: str
    units: list[str] = Field(description="what attention weighs: words, sentences, or the whole text")
    known: list[bool] = Field(description="whether all words of the unit are in the model's vocabulary")
    weights: Shares
    gradient: Shares = Field(description="|gradient x input|, with attention held")
    leave_one_out: Shares | None = Field(description="total variation of the output without the unit")
    epsilon: float
    adversary: Adversary | None
    notes: list[str] = Field(description="what a reader should know, in sentences")
    seconds: float


@final
class DecideAnswer(_Said):
    """The decision under given weights."""

    labels: list[str]
    probabilities: Shares
    predicted: str
    weights: Shares = Field(description="as they were used")
    mass: float = Field(description="their sum")
    output_change: float | None = Field(description="total variation from the model's own output")
    divergence: float | None = Field(description="from the model's own weights; null unless the mass is 1")


@final
class Model(_Said):
    """A model of the store with its weights."""

    key: Key
    corpus: str
    encoder: str
    attention: str
    projection: str
    seed: int
    kind: str = Field(description="trained, untrained, shuffled labels, or what else was done to it")
    trained_on: str = Field(description="cpu, cuda, or a GPU before keys said so; empty where untrained")
    labels: list[str]
    has_query: bool
    unreadable: str = Field(description="why it cannot read typed texts; empty where it can")


@final
class ModelsAnswer(_Said):
    """The models, and whether they can be asked here."""

    live: bool
    why: str = Field(description="why they cannot; empty where they can")
    models: list[Model]


@final
class ExampleAnswer(_Said):
    """A text of the test split, as somebody would type it."""

    text: str
    query: str | None
    label: str
    number: int
    of: int


@final
class Error(_Said):
    """A refusal in one sentence, and its parts."""

    message: str
    what: str = ""
    got: str = ""
    needs: str = ""
    way_out: str = ""


@final
class ErrorAnswer(_Said):
    """What went wrong."""

    error: Error


@runtime_checkable
class Reader(Protocol):
    """Whoever runs the models; the server only knows that it can be asked."""

    def read(self, *, model: str, text: str, query: str | None, epsilon: float | None) -> dict[str, Any]:
        """One text as a model reads it."""
        ...

    def decide(
        self, *, model: str, text: str, query: str | None, weights: Sequence[float], renormalise: bool
    ) -> dict[str, Any]:
        """The decision under given weights."""
        ...
