"""Which cells may be done now: those whose inputs exist."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import final

from attentest.bench.engine.contract import Event
from attentest.store.cell import STAGES, Cell

ENOUGH = 16  # of one seed, to go without the others


@final
class Frontier:
    """Hands cells to an engine as they become ready, and hears what became of them.

    Among ready cells the earliest stage goes first, so that long trainings begin as soon as they can. Cells
    with one batch key are handed out together, up to `most` of them. Those of one seed read the same texts at
    the same step; mixed with other seeds each pads its texts to the longest of all (on 20 Newsgroups to 284
    words with three seeds, to 167 with one), so where they are enough they go by themselves. A group that
    only readings keep apart is waited for: these take seconds, and a fleet of one takes as long as one of
    twenty. A cell that found no memory is handed out again once fewer cells are running than were then.

    Where neither groups nor memory have a say, the next cell is on top of a heap: to look at all that wait
    would take a study of 100,000 cells hours.
    """

    def __init__(
        self,
        cells: Mapping[str, Cell],
        batch_key: Callable[[Cell], Hashable | None] = lambda cell: None,
        most: int = 1,
    ) -> None:
        self.cells, self.most = dict(cells), most
        self.batch_key = {key: batch_key(cell) for key, cell in cells.items()}
        self.waiting = {key: {k for k in cell.inputs.values() if k in cells} for key, cell in cells.items()}
        self.running: set[str] = set()
        self.crowd: dict[str, int] = {}  # how many others ran when the cell found no memory
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.has_groups = any(each is not None for each in self.batch_key.values())
        self.needed_by: dict[str, list[str]] = defaultdict(list)
        for key, inputs in self.waiting.items():
            for each in inputs:
                self.needed_by[each].append(key)
        self.place = {key: (STAGES.index(cell.stage), n) for n, (key, cell) in enumerate(cells.items())}
        self.ready = [(self.place[key], key) for key, inputs in self.waiting.items() if not inputs]
        heapq.heapify(self.ready)

    def take(self) -> list[str]:
        """The next ready cell, with as many of its group as are ready; none while there is none."""
        return self._best_of_all() if self.has_groups or self.crowd else self._first()

    def _first(self) -> list[str]:
        while self.ready:
            _, key = heapq.heappop(self.ready)
            if key in self.waiting:
                self._hand_out(key)
                return [key]
        return []

    def _hand_out(self, key: str) -> None:
        del self.waiting[key]
        self.running.add(key)

    def _best_of_all(self) -> list[str]:
        ready = [key for key, inputs in self.waiting.items() if inputs <= self.done and self._has_room(key)]
        growing = self._growing_groups(ready)
        ready = [key for key in ready if self.batch_key[key] not in growing]
        if not ready:
            return []
        key = min(ready, key=lambda key: STAGES.index(self.cells[key].stage))
        job = self._with_its_group(key, ready)[: self.most]
        for each in job:
            self._hand_out(each)
        return job

    def _growing_groups(self, ready: list[str]) -> set[Hashable]:
        """Batch keys whose groups are not full, and of which more will be ready with readings made now."""
        at_hand = {key for key in [*ready, *self.running] if self.cells[key].stage == "reading"}
        soon = {
            self.batch_key[key]
            for key, inputs in self.waiting.items()
            if self.batch_key[key] is not None and inputs - self.done and inputs - self.done <= at_hand
        }
        size = Counter(self.batch_key[key] for key in ready)
        return {batch_key for batch_key in soon if size[batch_key] < self.most}

    def _with_its_group(self, key: str, ready: list[str]) -> list[str]:
        if self.batch_key[key] is None:
            return [key]
        others = (other for other in ready if other != key)
        job = [key, *(other for other in others if self.batch_key[other] == self.batch_key[key])]
        seed = self.cells[key].config.get("seed")
        alike = [each for each in job if self.cells[each].config.get("seed") == seed]
        return alike if len(alike) >= ENOUGH else job

    def _has_room(self, key: str) -> bool:
        return key not in self.crowd or len(self.running) < self.crowd[key]

    def is_over(self) -> bool:
        """Nothing left to hand out, nothing unfinished."""
        return not self.waiting and not self.running

    def hear(self, event: Event) -> None:
        """Take note; whatever rests on a failed cell fails with it."""
        if event.kind == "done":
            self.running.discard(event.key)
            self.done.add(event.key)
            for key in self.needed_by[event.key]:
                if self.waiting.get(key, {""}) <= self.done:
                    heapq.heappush(self.ready, (self.place[key], key))
        elif event.kind == "postponed":
            self.running.discard(event.key)
            self._postpone(event)
        elif event.kind in ("failed", "refused"):
            self.running.discard(event.key)
            self._fail(event.key, event.detail.get("error") or event.detail["message"])

    def _postpone(self, event: Event) -> None:
        """Where no other is running there is nobody to wait for."""
        if not self.running:
            self._fail(event.key, event.detail["error"])
            return
        self.waiting[event.key] = set()
        self.crowd[event.key] = len(self.running)

    def _fail(self, key: str, error: str) -> None:
        self.failed[key] = error
        for other, inputs in list(self.waiting.items()):
            if key in inputs and other in self.waiting:
                del self.waiting[other]
                self._fail(other, f"it needs {key[:12]}, which failed")
