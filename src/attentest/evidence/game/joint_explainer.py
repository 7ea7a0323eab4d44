"""An explainer that learns together with its layperson (Treviso & Martins 2020): its aim is to be understood.

It reads the states of a classifier that stays as it is and knows its answer, and lays sparse weights over the
words; a linear layperson hears the words so weighted and guesses the answer; both descend the same loss. It
is free to invent a code: to send, for each answer, a word that texts happen to have. What it achieves for a
classifier that learnt nothing tells how far such a code gets.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attentest.evidence.game.laypeople import BATCH, EPOCHS, PATIENCE, RATE
from attentest.evidence.game.messages import places
from attentest.model.batch import AbstractSplit, Batch, buckets
from attentest.model.networks.projection import entmax15
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import Network
from attentest.shapes import Hidden, Logits, Mask, Weights

Answers = Int[Tensor, " batch"]


@final
class Explainer(nn.Module):
    """`v . tanh(W h_t + e_answer)`, projected by 1.5-entmax: additive attention that knows the answer."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        inner = max(1, width // 2)
        self.of_state = nn.Linear(width, inner)
        self.of_answer = nn.Embedding(classes, inner)
        self.to_score = nn.Linear(inner, 1, bias=False)

    def forward(self, hidden: Hidden, mask: Mask, answers: Answers) -> Weights:
        """Weights over the words of each text; many are zero."""
        inner = self.of_state(hidden) + self.of_answer(answers)[:, None]
        return entmax15(self.to_score(inner.tanh()).squeeze(-1), mask)


@final
class Listener(nn.Module):
    """A layperson whose words arrive with weights: what each says for each class, nothing at first.

    As for any layperson, a query's words are known, behind those of texts; word 0 is the constant.
    """

    def __init__(self, vocabulary: int, classes: int, has_query: bool) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.says = nn.Embedding(vocabulary * (2 if has_query else 1), classes)
        nn.init.zeros_(self.says.weight)

    def forward(self, batch: Batch, weights: Weights) -> Logits:
        """The weighted sum of what is heard."""
        heard = torch.einsum("bt,btc->bc", weights, self.says(batch.tokens)) + self.says.weight[0]
        if batch.query is None or batch.query_mask is None:
            return heard
        asked = self.says(batch.query + self.vocabulary)
        return heard + torch.einsum("bw,bwc->bc", batch.query_mask.to(weights), asked)


@final
@dataclass(frozen=True, eq=False)
class Told:
    """Some texts of a split and what the classifier says of them."""

    split: AbstractSplit
    answers: Int[np.ndarray, " text"]
    texts: Int[np.ndarray, " chosen"]  # rows of the split: those that the classifier has an answer to


@final
class Together(nn.Module):
    """One explainer, one listener, and the classifier between them, which never changes."""

    def __init__(self, model: Network, classes: int) -> None:
        super().__init__()
        self.model = model
        self.explainer = Explainer(model.encoder.width, classes)
        self.listener = Listener(len(model.vocabulary), classes, model.query_encoder is not None)

    def forward(self, batch: Batch, answers: Answers) -> tuple[Weights, Logits]:
        """What is sent, and what is understood."""
        with torch.no_grad():
            reading = self.model.read_distinct(batch)
        weights = self.explainer(reading.hidden, reading.mask, answers)
        return weights, self.listener(batch, weights)


@final
@dataclass(frozen=True, eq=False)
class JointExplainer:
    """The explainer of the epoch that was understood best on dev."""

    both: Together

    @classmethod
    def taught(
        cls, model: Network, lessons: Told, exam: Told, *, classes: int, rng: np.random.Generator
    ) -> JointExplainer:
        """Trained as laypeople are: the same rate, batches, epochs and patience."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            both = Together(model, classes).to(model.device)
        learnt = [*both.explainer.parameters(), *both.listener.parameters()]
        adam = torch.optim.Adam(learnt, lr=RATE)
        best, highest, waited = both.explainer.state_dict(), -1.0, 0
        for _ in range(EPOCHS):
            for batch, answers in _batches(both, lessons, rng):
                loss = functional.cross_entropy(both(batch, answers)[1], answers)
                for parameter, slope in zip(learnt, torch.autograd.grad(loss, learnt), strict=True):
                    parameter.grad = slope
                adam.step()
            understood = _understood(both, exam)
            waited += 1
            if understood > highest:
                best, highest, waited = copy.deepcopy(both.explainer.state_dict()), understood, 0
            if waited == PATIENCE:
                break
        both.explainer.load_state_dict(best)
        return cls(both)

    @torch.no_grad()
    def weights(self, split: AbstractSplit, answers: Int[np.ndarray, " text"]) -> Float[np.ndarray, " token"]:
        """The weight of every word of a split, texts one behind the other."""
        found = np.empty(split.lengths.sum())
        told = Told(split, answers, np.arange(len(split)))
        for rows in buckets(split.lengths, split.at_once or TEXTS, tokens=TOKENS):
            batch, said = _batch(self.both, told, rows)
            found[places(split.lengths, rows)] = self.both(batch, said)[0][batch.mask].cpu().numpy()
        return found


def _batch(both: Together, told: Told, rows: Int[np.ndarray, " row"]) -> tuple[Batch, Answers]:
    device = both.model.device
    return told.split.batch(rows).to(device), torch.from_numpy(told.answers[rows]).to(device)


def _batches(both: Together, told: Told, rng: np.random.Generator) -> Iterator[tuple[Batch, Answers]]:
    """One epoch, texts of like length together."""
    for some in buckets(told.split.lengths[told.texts], BATCH, rng=rng):
        yield _batch(both, told, told.texts[some])


@torch.no_grad()
def _understood(both: Together, told: Told) -> float:
    """The share of texts whose answer the listener guesses."""
    hits = 0
    for some in buckets(told.split.lengths[told.texts], TEXTS, tokens=TOKENS):
        batch, answers = _batch(both, told, told.texts[some])
        hits += int((both(batch, answers)[1].argmax(1) == answers).sum())
    return hits / len(told.texts)
