"""A causal language model as a classifier of texts: what comes next?

The state of the last position decides, so everything that is asked of a classifier's row can be asked of it.
The logits are the model's own, of the tokens that matter alone where these are known beforehand.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attentest.foreign.remainder import shallow_copy
from attentest.foreign.split import TokenisedSplit
from attentest.foreign.text import Frame
from attentest.model.batch import buckets
from attentest.model.precision import at_least_single
from attentest.model.reader import TEXTS, TOKENS

LastState = Float[Tensor, "batch 1 width"]


@final
class Reached(nn.Module):
    """Stands where a stack of layers stood, and hands on the states it has come to."""

    def __init__(self, output: type, states: LastState) -> None:
        super().__init__()
        self.output, self.states = output, states

    def forward(self, *_: Any, **__: Any) -> Any:
        """The states, in an output of the kind that the layers return."""
        return self.output(last_hidden_state=self.states)


@final
class SomeRows(nn.Module):
    """The logits of a few tokens: these rows of the matrix that makes all of them."""

    def __init__(self, head: nn.Linear, tokens: Sequence[int]) -> None:
        super().__init__()
        self.weight = head.weight
        self.bias = head.bias
        self.tokens = list(tokens)

    def forward(self, states: Tensor) -> Tensor:
        """As the whole matrix would, row by row."""
        bias = None if self.bias is None else self.bias[self.tokens]
        return nn.functional.linear(states, self.weight[self.tokens], bias)


@final
class NextToken(nn.Module):
    """The classes are the next token's: of some `tokens`, one a class, or else one token and all others.

    Without `tokens` each text brings the token that is asked about. The two logits are then its own and the
    logarithm of the sum of all others' exponentials: their softmax is p and 1 - p, so that a distance between
    two answers is the change of the token's probability. Importances and erasure are of that token's
    probability (`Reading.explained`), even where the others together have more than one half of it.
    """

    def __init__(self, causal: Any, tokens: Sequence[int] = ()) -> None:
        super().__init__()
        self.causal, self.tokens = causal, tuple(tokens)
        self.config = causal.config
        self.scored = len(tokens) or causal.get_output_embeddings().weight.shape[0]

    def forward(
        self,
        input_ids: Int[Tensor, "batch place"],
        attention_mask: Int[Tensor, "batch place"],
        position_ids: Tensor | None = None,
        target: Int[Tensor, " batch"] | None = None,
    ) -> SimpleNamespace:
        """The answer behind the last place of each text."""
        logits = self.next_logits(input_ids, attention_mask, position_ids)
        if not self.tokens and target is not None:
            own = logits.gather(1, target[:, None])
            others = logits.scatter(1, target[:, None], float("-inf")).logsumexp(1, keepdim=True)
            logits = torch.cat([own, others], dim=1)
        return SimpleNamespace(logits=logits)

    def next_logits(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor | None = None
    ) -> Float[Tensor, "batch token"]:
        """The logits of the tokens that are scored, behind the last place."""
        base = getattr(self.causal, self.causal.base_model_prefix)
        more: dict[str, Any] = {} if position_ids is None else {"position_ids": position_ids}
        output = base(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **more)
        states = output.last_hidden_state
        last = states.shape[1] - 1 - attention_mask.flip(1).argmax(1)
        state = states.gather(1, last[:, None, None].expand(-1, -1, states.shape[2]))
        found = (
            self._head(Reached(type(output), state))
            .forward(input_ids=input_ids, use_cache=False)
            .logits[:, -1]
        )
        return at_least_single(found)

    def _head(self, reached: Reached) -> Any:
        """The model without its layers: whatever it does to their states, caps of logits included."""
        head: Any = shallow_copy(self.causal)
        head._modules[self.causal.base_model_prefix] = reached
        if self.tokens:
            output = self.causal.get_output_embeddings()
            name = next(name for name, module in self.causal.named_children() if module is output)
            head._modules[name] = SomeRows(output, self.tokens)
        return head

    @property
    def hf_device_map(self) -> Any:
        """The model's own, where it has been placed on several devices."""
        return getattr(self.causal, "hf_device_map", None)

    @property
    def dtype(self) -> torch.dtype:
        """The model's own."""
        return self.causal.dtype

    def get_input_embeddings(self) -> nn.Embedding:
        """The model's own."""
        return self.causal.get_input_embeddings()

    def set_attn_implementation(self, name: str) -> None:
        """The model's own."""
        self.causal.set_attn_implementation(name)

    def _can_set_attn_implementation(self) -> bool:
        return self.causal._can_set_attn_implementation()


def drawn_anew(model: Any) -> Any:
    """A model of the same configuration with other parameters, as the library draws them."""
    if isinstance(model, NextToken):
        return NextToken(drawn_anew(model.causal), model.tokens)
    return type(model)(copy.deepcopy(model.config))


@torch.no_grad()
def ask_likeliest(split: TokenisedSplit, frame: Frame, model: NextToken, device: torch.device) -> None:
    """Put behind every text the token that is asked about: the one that really follows, or the likeliest."""
    before_it, targets = replace(frame, asks_token=False), [each.target for each in split.encoded]
    for rows in buckets(split.lengths, TEXTS, tokens=TOKENS):
        if any(targets[row] is None for row in rows):
            laid = before_it.lay_out(split.batch(rows).to(device))
            found = model.next_logits(laid.ids, laid.present.long()).argmax(1).tolist()
            for row, token in zip(rows, found, strict=True):
                targets[row] = token if targets[row] is None else targets[row]
    asked = np.array(targets, dtype=np.int64)
    split.queries = [np.append(suffix, token) for suffix, token in zip(split.queries, asked, strict=True)]
