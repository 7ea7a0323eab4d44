"""A step that is taken thousands of times, recorded once: a GPU then repeats it without being told how.

Telling costs: a step of a fleet is some three hundred launches, and their sum is longer than the work. A
recording is of one shape, reads and writes the same memory each time, and must ask the host for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, final

import torch
from torch import Tensor


@final
class Replayed:
    """`step(*tensors)` by recordings, one for each shape of the tensors; on a CPU it is just called.

    The first step of a shape is taken as it is (kernels are compiled, libraries load), the second recorded.
    """

    def __init__(self, step: Callable[..., None]) -> None:
        self.step = step
        self.given: dict[Hashable, list[Tensor]] = {}
        self.recorded: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def __call__(self, *tensors: Tensor) -> None:
        """Take the step on these."""
        if not tensors[0].is_cuda:
            self.step(*tensors)
            return
        shape = tuple(tuple(each.shape) for each in tensors)
        if shape not in self.given:
            self.given[shape] = [each.clone() for each in tensors]
            self.step(*self.given[shape])
            return
        for place, each in zip(self.given[shape], tensors, strict=True):
            place.copy_(each)
        if shape not in self.recorded:
            self._record(shape)
        self.recorded[shape].replay()

    def _record(self, shape: Hashable) -> None:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, pool=self.pool):
            self.step(*self.given[shape])
        self.pool = graph.pool()
        self.recorded[shape] = graph

    def forget(self) -> None:
        """What was recorded is about memory that is no more."""
        self.given, self.recorded, self.pool = {}, {}, None
