"""What a Hugging Face model looks words up in, how long its texts may be, and texts to try it with."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from attentest.foreign.placement import HALF
from attentest.model.batch import Batch
from attentest.model.precision import at_least_single
from attentest.refusal import Refusal


def tables_of(model: Any) -> list[nn.Embedding]:
    """The look-ups of words: a model of two stacks has one for each, with one matrix."""
    own = model.get_input_embeddings()
    tied = [m for m in model.modules() if isinstance(m, nn.Embedding) and m.weight is own.weight]
    return sorted(tied, key=lambda table: table is own)  # what is shared is called by its shares, if any


@final
class SingleLookUp(nn.Module):
    """A table of half precision whose vectors come in single: what is computed with them is ours."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table
        self.num_embeddings, self.embedding_dim = table.num_embeddings, table.embedding_dim

    @property
    def weight(self) -> Tensor:
        """The table's own."""
        return self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """The vectors of these tokens, in single precision."""
        return at_least_single(self.table(tokens))


def single_look_up(table: nn.Embedding) -> Any:
    """The table itself, or around one of half precision its vectors in single."""
    return SingleLookUp(table) if table.weight.dtype in HALF else table


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


def counted(what: str, number: int, count: int, of: str) -> int:
    """A place counted from 0 or backwards from -1, as one from 0."""
    if not -count <= number < count:
        raise Refusal(
            f"{what} {number} of a {of} model",
            got=f"a model with {count}",
            needs=f"a number from {-count} to {count - 1}",
            way_out=f"The first {what} is 0, the last -1.",
        )
    return number % count
