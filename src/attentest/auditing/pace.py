"""How far an audit is, and how long it will still take: questions cost so many readings of all texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

from attentest.auditing.titles import title_of
from attentest.experiments.contract import Row

Watcher = Callable[[str, float, float | None], None]  # the question in words, the share done, seconds left
READINGS = {"erasure": 10.0, "adversary": 12.0, "removal": 20.0, "dispersion": 20.0, "information": 5.0}
BY_UNIT = {"importance": 2.0, "agreement": 2.0}  # for every unit of a text: it is read without each of them


def _unheard(question: str, share: float, left: float | None) -> None:
    """Nobody watches."""


@final
class Pace:
    """What is done is timed; what is not is thought to go on at the same pace."""

    def __init__(
        self, questions: Sequence[str], units: float, rows: int, watcher: Watcher | None = None
    ) -> None:
        self.costs = {name: READINGS.get(name, 2.0) + units * BY_UNIT.get(name, 0.0) for name in questions}
        self.rows, self.watcher = max(1, rows), watcher or _unheard
        self.done = self.timed = self.seconds = 0.0

    def rows_of(self, name: str, observed: Iterable[Row]) -> Iterator[Row]:
        """The rows of a question, and the watcher hears of each batch of them."""
        begun, cost, said = time.monotonic(), self.costs[name], 0.0
        self._say(name, 0.0, 0.0)
        for count, row in enumerate(observed, 1):
            yield row
            spent = time.monotonic() - begun
            if spent - said > 0.2:
                said = spent
                self._say(name, cost * min(1.0, count / self.rows), spent)
        self.timed, self.seconds = self.timed + cost, self.seconds + time.monotonic() - begun

    def end(self, name: str) -> None:
        """A question is done, or left out, or was answered before."""
        self.done += self.costs.get(name, 0.0)
        self._say(name, 0.0, 0.0)

    def _say(self, name: str, of_this: float, spent: float) -> None:
        timed, left = self.timed + of_this, sum(self.costs.values()) - self.done - of_this
        pace = (self.seconds + spent) / timed if timed else None
        share = (self.done + of_this) / (sum(self.costs.values()) or 1.0)
        self.watcher(title_of(name), share, None if pace is None else max(0.0, pace * left))
