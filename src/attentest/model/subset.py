"""Some texts of a reading, as if the others had never been in the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attentest.model.batch import Batch
from attentest.model.seam import Reading

Texts = Int[Tensor, " text"]  # rows of the batch, any of them any number of times


def selected(reading: Reading, texts: Texts) -> Reading:
    """These texts alone, without padding that only others needed."""
    if torch.equal(texts, torch.arange(len(reading.mask), device=texts.device)):
        return reading
    units = int(reading.mask[texts].sum(1).max())
    tokens = int(reading.batch.mask[texts].sum(1).max())
    return replace(
        reading,
        batch=selected_batch(reading.batch, texts, tokens),
        embeddings=reading.embeddings[texts, :tokens],
        hidden=reading.hidden[texts, :units],
        scores=reading.scores[texts][..., :units],
        weights=reading.weights[texts][..., :units],
        mask=reading.mask[texts, :units],
        query=None if reading.query is None else reading.query[texts],
        values=None if reading.values is None else reading.values[texts, :units],
        inner=None,
        explained=None if reading.explained is None else reading.explained[texts],
        scored=None if reading.scored is None else reading.scored[texts],
        scored_unit=None if reading.scored_unit is None else reading.scored_unit[texts],
        kept={name: tensor[texts] for name, tensor in reading.kept.items()},
    )


def selected_batch(batch: Batch, texts: Texts, tokens: int) -> Batch:
    """These texts of a batch, cut to so many tokens."""
    return Batch(
        ids=tuple(batch.ids[row] for row in texts.tolist()),
        tokens=batch.tokens[texts, :tokens],
        mask=batch.mask[texts, :tokens],
        labels=batch.labels[texts],
        query=None if batch.query is None else batch.query[texts],
        query_mask=None if batch.query_mask is None else batch.query_mask[texts],
        answers=None if batch.answers is None else batch.answers[texts],
        sentences=None if batch.sentences is None else batch.sentences[texts, :tokens],
    )


def in_parts(reading: Reading, size: int) -> Iterator[tuple[slice, Reading]]:
    """The reading, some texts at a time; every field but the bias has one row a text."""
    for begun in range(0, len(reading.weights), size):
        rows = slice(begun, begun + size)
        batch = replace(reading.batch, ids=reading.batch.ids[rows], **_cut(reading.batch, rows))
        kept = {name: tensor[rows].detach() for name, tensor in reading.kept.items()}
        own = _cut(reading, rows, but=("bias",))
        yield rows, replace(reading, batch=batch, kept=kept, **own)  # type: ignore[arg-type]


def _cut(held: object, rows: slice, but: tuple[str, ...] = ()) -> dict[str, Tensor]:
    tensors = {field.name: getattr(held, field.name) for field in fields(held)}  # type: ignore[arg-type]
    return {n: t[rows].detach() for n, t in tensors.items() if isinstance(t, Tensor) and n not in but}
