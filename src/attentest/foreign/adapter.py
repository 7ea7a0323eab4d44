"""Any PyTorch module on the bench, through an adapter of some ten lines, after the same proof of effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attentest.corpus.example import Example
from attentest.foreign.checked_adapter import CheckedAdapter
from attentest.foreign.foreign_model import AbstractForeignModel, Variants
from attentest.model.batch import AbstractSplit, Batch, marked_words
from attentest.model.seam import Capabilities, Reading, label_numbers
from attentest.refusal import Refusal
from attentest.shapes import Embedded

METHODS = ("numbers", "attend", "decide", "predict")
FLOATS = 32_000_000  # numbers held at a time, some 128 megabytes
NEAR = 1e-3  # how far answers may differ by the number of texts that are asked about together
ALONE = "Let decide make nothing of how many texts there are: no statistics of a batch."
CHANGED = (
    "other answers to the same question than before",
    "the same ones, bit for bit, as often as it is asked",
    "Let no method draw at random or change what the module keeps: no dropout, counters or training.",
)
SIZES = (6, 3, 4)  # of the texts of the proof: padding must be there to go wrong


@runtime_checkable
class Adapter(Protocol):
    """What a module must be able to say. Masks are True where a real token stands."""

    embedding: nn.Embedding

    def numbers(self, words: Sequence[str]) -> Sequence[int]:
        """The row of the embedding table for each word."""
        ...

    def attend(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States (batch, token, width) and attention weights (batch, token) of texts as vectors."""
        ...

    def decide(self, states: Tensor, weights: Tensor) -> Tensor:
        """Logits (batch, class) of these states under these weights, whosever they are."""
        ...

    def predict(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The module's own logits, asked the way it is always asked."""
        ...


@final
class AdaptedModel(AbstractForeignModel):
    """A module behind its adapter. It is proven when it is made, and refused where that fails."""

    def __init__(self, adapter: Any, labels: Sequence[str]) -> None:
        lacking = [name for name in ("embedding", *METHODS) if not hasattr(adapter, name)]
        given = ", ".join(METHODS)
        _need(
            not lacking, f"no {', '.join(lacking)}", f"embedding, {given}", "See docs/guides/your-model.md."
        )
        _need(
            len(set(labels)) == len(labels),
            f"the labels {', '.join(labels)}",
            "different ones",
            "Name each class.",
        )
        asked = CheckedAdapter(adapter)
        super().__init__(adapter.embedding, tuple(labels))
        self.adapter, self._asked = adapter, asked
        self._width, self._outputs = 0, len(labels)
        for part in vars(adapter).values():
            if isinstance(part, nn.Module):
                part.eval()
        self._proven = _prove(self, _probe(adapter.embedding.num_embeddings, self.device))

    @property
    def width(self) -> int:
        """The width of the states that attend returns."""
        return self._width

    @property
    def outputs(self) -> int:
        """One logit a label, or one for two."""
        return self._outputs

    @property
    def capabilities(self) -> Capabilities:
        """Only the adapter knows what its attention is."""
        return Capabilities(attention="the weights that the adapter's attend returns", again=self._again)

    def _again(self) -> None:
        """The proof once more, at the end of a work: its answer is still the first one."""
        probe = _probe(self.embedding.num_embeddings, self.device)
        same = torch.equal(_prove(self, probe), self._proven.to(self.device))
        _need(same, *CHANGED)

    def tensors(self) -> dict[str, Tensor]:
        """The state dict, and the modules and tensors that an adapter holds which is no module itself."""
        state: dict[str, Any] = dict(self.state_dict())
        if not isinstance(self.adapter, nn.Module):
            for name, part in vars(self.adapter).items():
                state |= part.state_dict(prefix=f"{name}.") if isinstance(part, nn.Module) else {name: part}
        return {name: value for name, value in state.items() if isinstance(value, Tensor)}

    def split(self, examples: Sequence[Example]) -> NumberedSplit:
        """The examples by the adapter's numbers, to be read in batches."""
        return NumberedSplit(examples, self._asked, self.labels)

    def read(
        self, batch: Batch, *, embeddings: Embedded | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """Encode and weigh, once."""
        if batch.query is not None:
            raise Refusal(
                "an adapted module", got="texts with a query", needs="single texts", way_out="Join the two."
            )
        if embeddings is None:
            embeddings = self.embedding(batch.tokens)
        states, weights = self._asked.attend(embeddings, batch.mask)
        return Reading(
            batch=batch,
            embeddings=embeddings,
            hidden=states,
            scores=weights.clamp_min(torch.finfo(weights.dtype).tiny).log(),
            weights=weights,
            mask=batch.mask,
        )

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """The adapter's decision, all variants as one batch, as many as memory allows."""
        at_once = max(1, FLOATS // reading.hidden.numel())
        answers = []
        for some in weights.split(at_once, dim=1):
            states = reading.hidden.repeat_interleave(some.shape[1], dim=0)
            logits = self._asked.decide(states, some.flatten(0, 1))
            answers.append(logits.unflatten(0, (-1, some.shape[1])))
        return torch.cat(answers, dim=1)


@final
class NumberedSplit(AbstractSplit):
    """Examples as an adapter numbers their words: the same batches as from a vocabulary."""

    def __init__(self, examples: Sequence[Example], asked: CheckedAdapter, labels: Sequence[str]) -> None:
        self.examples, self.queries = examples, []
        self.tokens = [asked.numbers(example.id, example.tokens) for example in examples]
        self.lengths = np.array([len(tokens) for tokens in self.tokens])
        self.labels = label_numbers(examples, labels)

    def rationale(self, row: int) -> Bool[np.ndarray, " unit"]:
        """Which words of a text somebody marked."""
        return marked_words(self.examples[row])

    def unit_texts(self, row: int) -> tuple[str, ...]:
        """The words of a text."""
        return tuple(self.examples[row].tokens)


def _probe(rows: int, device: torch.device) -> Batch:
    """Random words in texts of several lengths."""
    longest = max(SIZES)
    mask = torch.arange(longest) < torch.tensor(SIZES)[:, None]
    drawn = torch.randint(rows, mask.shape, generator=torch.Generator().manual_seed(0))
    return Batch(
        ids=tuple(map(str, range(len(SIZES)))),
        tokens=drawn.masked_fill(~mask, 0),
        mask=mask,
        labels=torch.zeros(len(SIZES), dtype=torch.long),
    ).to(device)


def _prove(model: AdaptedModel, probe: Batch) -> Tensor:
    """Its own weights give its own answer, bit for bit, alone or among others; other weights give another.

    All of it is done with a graph, so that a gradient that ends on the way is found here.
    """
    with torch.enable_grad():
        vectors = model.embedding(probe.tokens).detach().requires_grad_()
        reading = model.read(probe, embeddings=vectors)
        model._width = reading.hidden.shape[2]
        model.decide(reading, reading.weights.detach().requires_grad_())
    with torch.no_grad():
        reading = model.read(probe)
        own, answer = model._asked.predict(probe.tokens, probe.mask), model.decide(reading)
        _check_classes(model, answer.shape[1])
        _need(
            torch.equal(own, answer),
            "another answer under its own weights",
            "what predict answers, bit for bit",
            "Let attend and decide do exactly what the module does, without dropout.",
        )
        twice = torch.stack([reading.weights, reading.weights], dim=1)
        among = model.decide(reading, twice) - answer[:, None]
        near = float(among.abs().max()) <= NEAR * (1 + float(answer.abs().max()))
        _need(near, "other answers to more texts at once", "an answer of a text that is its own", ALONE)
        _need(torch.equal(model.decide(model.read(probe)), answer), *CHANGED)
        bent = torch.zeros_like(reading.weights).scatter(1, reading.weights.argmin(1, keepdim=True), 1.0)
        _need(
            not torch.equal(model.decide(reading, bent.masked_fill(~probe.mask, 0.0)), answer),
            "a decide that ignores the weights it is given",
            "an answer that follows them",
            "Let decide sum up the states by its second argument.",
        )
    return answer


def _check_classes(model: AdaptedModel, classes: int) -> None:
    _need(
        classes == len(model.labels) or (classes == 1 and len(model.labels) == 2),
        f"{classes} logits for {len(model.labels)} labels",
        "one a label, or one for two",
        "Give the labels in the order of the classes.",
    )
    model._outputs = classes


def _need(fine: bool, got: str, needs: str, way_out: str) -> None:
    if not fine:
        raise Refusal("an adapted module", got=got, needs=needs, way_out=way_out)
