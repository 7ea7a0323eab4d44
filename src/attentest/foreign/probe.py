"""What a Hugging Face model looks words up in, how long its texts may be, and texts to try it with."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from attentest.model.batch import Batch


def tables_of(model: Any) -> list[nn.Embedding]:
    """The look-ups of words: a model of two stacks has one for each, with one matrix."""
    own = model.get_input_embeddings()
    tied = [m for m in model.modules() if isinstance(m, nn.Embedding) and m.weight is own.weight]
    return sorted(tied, key=lambda table: table is own)  # what is shared is called by its shares, if any


def probe_of(tokenizer: Any, rows: int, device: torch.device) -> Batch:
    """Texts of several lengths out of the tokenizer's own words, so that padding is there to go wrong."""
    special = set(tokenizer.all_special_ids)
    words = [n for n in sorted(tokenizer.get_vocab().values()) if n not in special and n < rows]
    drawn = torch.randint(len(words), (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(7) < torch.tensor([[7], [4], [5]])
    return Batch(
        ids=("0", "1", "2"),
        tokens=torch.tensor(words)[drawn].masked_fill(~mask, 0),
        mask=mask,
        labels=torch.zeros(3, dtype=torch.long),
        sentences=torch.arange(7).expand(3, -1).masked_fill(~mask, 0),
    ).to(device)


def longest_text(model: Any, tokenizer: Any) -> int:
    """The places the model has positions for; a table that counts from its padding has fewer than rows."""
    positions = getattr(model.config, "max_position_embeddings", None)
    most = int(tokenizer.model_max_length)
    if positions is None or positions < 0:
        return most
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            positions = min(positions, module.num_embeddings - module.padding_idx - 1)
    return min(most, positions)
