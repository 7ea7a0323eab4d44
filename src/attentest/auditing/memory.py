"""A question that does not fit into the memory of a GPU is asked again, of fewer texts at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from attentest.model.batch import AbstractSplit
from attentest.model.reader import TEXTS
from attentest.refusal import Refusal

Found = TypeVar("Found")


def in_memory(texts: AbstractSplit, ask: Callable[[], Found]) -> Found:
    """What `ask` finds, with batches of half the texts as often as it runs out of memory."""
    while True:
        try:
            return ask()
        except torch.OutOfMemoryError as error:
            texts.at_once = (texts.at_once or TEXTS) // 2
            if not texts.at_once:
                raise Refusal(
                    "memory of the GPU",
                    got="too little for one text at a time",
                    needs="room for the model and one text under many attentions",
                    way_out="Say dtype='bfloat16', too_long='truncate', or device='cpu'.",
                ) from error
        if torch.cuda.is_available():  # outside the handler, whose traceback holds tensors
            torch.cuda.empty_cache()
