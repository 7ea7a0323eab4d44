"""The straightforward way: what anyone would write with torch on the first day. The measure of our speed."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attentest.model.batch import IndexedSplit, buckets


class PlainModel(nn.Module):
    """Embedding, BiLSTM or token-wise tanh, additive attention, one sigmoid logit."""

    def __init__(self, words: int, emb: int, hidden: int, encoder: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, emb, padding_idx=0)
        self.encoder = encoder
        if encoder == "bilstm":
            self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
            width = 2 * hidden
        else:
            self.dense = nn.Linear(emb, hidden)
            width = hidden
        self.attend = nn.Sequential(
            nn.Linear(width, width // 2), nn.Tanh(), nn.Linear(width // 2, 1, bias=False)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, tokens, mask):
        return self.read(self.embedding(tokens), mask)

    def held(self, embedded, mask):
        """The logit under attention that no gradient passes through."""
        _, weights, hidden = self.read(embedded, mask)
        return self.out((weights.detach()[..., None] * hidden).sum(1)).squeeze(-1)

    def read(self, embedded, mask):
        if self.encoder == "bilstm":
            packed = pack_padded_sequence(embedded, mask.sum(1), batch_first=True, enforce_sorted=False)
            hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        else:
            hidden = torch.tanh(self.dense(embedded))
        weights = self.attend(hidden).squeeze(-1).masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights[..., None] * hidden).sum(1)).squeeze(-1), weights, hidden


def plain_epoch(model: PlainModel, adam: torch.optim.Adam, split: IndexedSplit, size: int, rng) -> float:
    """One epoch over the same batches."""
    total = 0.0
    for rows in buckets(split.lengths, size, rng=rng):
        batch = split.batch(rows)
        adam.zero_grad()
        logits, _, _ = model(batch.tokens, batch.mask)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch.labels.float(), reduction="sum")
        loss.backward()
        adam.step()
        total += loss.item()
    return total


def plain_permutations(model, reading, count: int, rng: torch.Generator) -> torch.Tensor:
    """As the paper tells it: again and again shuffle every text's weights, sum up, ask the decoder."""
    dense, hidden, weights = model.decoder.dense, reading.hidden, reading.weights
    lengths = reading.mask.sum(1).tolist()

    def output(attention):
        return torch.sigmoid(dense((attention[..., None] * hidden).sum(1))).squeeze(-1)

    own, changes = output(weights), []
    for _ in range(count):
        shuffled = weights.clone()
        for row, real in enumerate(lengths):
            shuffled[row, :real] = weights[row, torch.randperm(real, generator=rng)]
        changes.append((output(shuffled) - own).abs())
    return torch.stack(changes).median(0).values


class PlainHAN(nn.Module):
    """A hierarchical model the obvious way: a loop over documents and, inside, one over sentences."""

    def __init__(self, words: int, emb: int = 200, hidden: int = 50) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, emb, padding_idx=0)
        self.words = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.sentences = nn.GRU(2 * hidden, hidden, batch_first=True, bidirectional=True)
        self.attend = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * hidden, 2 * hidden), nn.Tanh(), nn.Linear(2 * hidden, 1, bias=False))
            for _ in range(2)
        )
        self.out = nn.Linear(2 * hidden, 1)

    def document(self, sentences):
        vectors = []
        for tokens in sentences:
            hidden = self.words(self.embedding(tokens)[None])[0][0]
            vectors.append(self.attend[0](hidden).softmax(0).T @ hidden)
        hidden = self.sentences(torch.stack(vectors, dim=1))[0][0]
        return self.out(self.attend[1](hidden).softmax(0).T @ hidden)[0, 0]


def plain_han_epoch(model: PlainHAN, adam: torch.optim.Adam, split: IndexedSplit, size: int, rng) -> None:
    """One epoch over the same batches, document by document."""
    for rows in buckets(split.lengths, size, rng=rng):
        adam.zero_grad()
        logits = []
        for row in rows:
            starts = [*split.examples[row].sentences, len(split.tokens[row])]
            tokens = torch.from_numpy(split.tokens[row])
            logits.append(model.document([tokens[a:b] for a, b in pairwise(starts)]))
        labels = torch.from_numpy(split.labels[rows]).float()
        nn.functional.binary_cross_entropy_with_logits(torch.stack(logits), labels).backward()
        adam.step()
