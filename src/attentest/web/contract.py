"""What is said over HTTP: every question and every answer is one of these, and nothing else passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol, final, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from attentest.evidence.importances.names import WITH_NULLS, further

LONGEST_TEXT = 100_000  # characters; models read some thousand words
LONGEST_HEAD = 65_536  # bytes of an address, and of all headers
LARGEST = 1_000_000  # bytes of a question: such a text in any script, and as many weights

Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Shares = list[float | None]
Row = Annotated[int, Field(ge=-1000, le=1000)]
FURTHER = further(WITH_NULLS)  # those that are read only if they are asked for

Explainer = Literal[FURTHER]  # type: ignore[valid-type]


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
    layer: Row | None = Field(default=None, description="of a transformer; without it the model's own")
    head: Row | None = Field(default=None, description="of that layer; without it the mean over heads")
    importances: list[Explainer] = Field(
        default=[],
        description="further ones; gradient and leave-one-out are always there",
        max_length=len(FURTHER),
    )


@final
class DecideQuestion(_Said):
    """The same text under weights of the reader's own."""

    model: Key
    text: Text
    query: Text | None = None
    weights: Annotated[list[Share], Field(max_length=10_000)]
    renormalise: bool = Field(description="divide the weights by their sum; otherwise they are used as given")
    layer: Row | None = None
    head: Row | None = None


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
    null: float | None = Field(description="the same maximum for permuted attention; null unless exact")


@final
class Importance(_Said):
    """One number a unit: positive speaks for the predicted class, negative against it."""

    scores: Shares
    label: str = Field(description="the class that it speaks for")
    convergence_delta: float | None = Field(
        description="the sum of the scores less what they should add up to; null if nothing"
    )


@final
class Permuted(_Said):
    """The total variation of the output under random orders of the attention weights."""

    median_change: float
    low: float = Field(description="the central 95 % of the changes, from here")
    high: float = Field(description="to here")
    flips: float = Field(description="the share of orders under which another class is predicted")


@final
class SmallestFlip(_Said):
    """The fewest units without whose weight another class is predicted."""

    indices: list[int]
    words: list[str]
    label: str
    probability: float
    exact: bool = Field(description="whether no smaller set does; else it is the best that was found")


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
    attention_of: str = Field(description="which attention it is, in words")
    gradient: Shares = Field(description="|gradient x input|, with attention held")
    leave_one_out: Shares | None = Field(description="total variation of the output without the unit")
    epsilon: float
    importances: dict[str, Importance] = Field(description="with their signs, by name")
    adversary: Adversary | None
    permuted: Permuted | None
    smallest_flip: SmallestFlip | None
    heads: list[list[Shares]] | None = Field(
        description="weights by layer and head; null if none, or too many"
    )
    layer: int | None = Field(description="the layer whose row the weights are; null if there is no choice")
    head: int | None = Field(description="its head; null is the mean over heads")
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
    """A model of the store with its weights, or one that was given when the server was started."""

    key: Key
    name: str = Field(default="", description="of one that was given: its folder or name")
    corpus: str
    encoder: str
    attention: str
    projection: str
    seed: int
    kind: str = Field(description="trained, untrained, shuffled labels, or what else was done to it")
    trained_on: str = Field(description="cpu, cuda, or a GPU before keys said so; empty where untrained")
    labels: list[str]
    has_query: bool = Field(description="whether it needs a second text")
    takes_query: bool = Field(default=False, description="whether it takes a second text, but needs none")
    unreadable: str = Field(description="why it cannot read typed texts; empty where it can")


@final
class Offered(_Said):
    """An importance of the catalogue."""

    name: str
    title: str
    says: str = Field(description="what it measures")
    always: bool = Field(description="whether every answer has it; the others are asked for by name")


@final
class ModelsAnswer(_Said):
    """The models, and whether they can be asked here."""

    live: bool
    why: str = Field(description="why they cannot; empty where they can")
    models: list[Model]
    importances: list[Offered] = Field(description="what a text may be asked, in the order of the page")


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

    def read(
        self,
        *,
        model: str,
        text: str,
        query: str | None,
        epsilon: float | None,
        layer: int | None = None,
        head: int | None = None,
        importances: Sequence[str] = (),
    ) -> dict[str, Any]:
        """One text as a model reads it."""
        ...

    def decide(
        self,
        *,
        model: str,
        text: str,
        query: str | None,
        weights: Sequence[float],
        renormalise: bool,
        layer: int | None = None,
        head: int | None = None,
    ) -> dict[str, Any]:
        """The decision under given weights."""
        ...
