"""Progress with time left, on standard error, so that standard output holds only results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from attentest.bench.engine.contract import Event
from attentest.notebook import harmless, number
from attentest.store.cell import Cell

EVERY = 10.0  # seconds between two lines about the same work, where there is no bar
WEIGHT = {"model": 20.0}  # a training counts as twenty other cells when guessing the time left


def described(stage: str, config: Mapping[str, Any]) -> str:
    """A cell in a few words."""
    if stage == "corpus":
        return str(config["name"])
    if stage == "audit":
        return f"audit: {config['question']}"
    if stage == "reading":
        return ", ".join(config["splits"])
    model = f"{config.get('encoder', 'bilstm')} + {config.get('attention', 'additive')}"
    if stage == "model":
        untrained = "untrained " if config.get("epochs") == 0 else ""
        where = f", on {config['trained_on']}" if "trained_on" in config else ""
        return f"{untrained}{model}, seed {config.get('seed', 0)}{where}"
    where = f" on {config['corpus']}, {model}" if stage == "finding" else ""
    return f"{config['experiment']}{where}"


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for things that are counted; gives what to tell how many are done, of how many."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(harmless(title), total=None)
        yield lambda done, of: bars.update(task, completed=done, total=of)


@contextmanager
def foretelling(title: str) -> Iterator[Callable[[str, float, float | None], None]]:
    """A bar with what is being done and the seconds left; without a terminal, plain lines on standard error.

    What it gives is told the work in words, the share that is done, and how many seconds the rest will take.
    """
    console = Console(stderr=True)
    said: dict[str, float] = {}
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[left]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        task = bars.add_task(harmless(title), total=1.0, left="")

        def hear(what: str, share: float, left: float | None) -> None:
            words = f"{share:.0%}" + ("" if left is None else f", about {in_words(left)} left")
            bars.update(task, completed=share, description=harmless(what), left=words)
            quiet = time.monotonic() - said.get(what, -EVERY) < EVERY
            if not console.is_terminal and not quiet:
                said[what] = time.monotonic()
                print(f"{harmless(title)}: {harmless(what)}; {words}", file=sys.stderr, flush=True)

        yield hear


def in_words(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@final
class ProgressBars:
    """One bar for everything with the time left, one for each cell that is being done."""

    def __init__(self, title: str) -> None:
        self.console = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, max_width=46)),
            BarColumn(bar_width=12),
            TextColumn("{task.percentage:>3.0f}%, left", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
            TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True)),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,  # a log gets failures, not bars
        )
        self.cells: Mapping[str, Cell] = {}
        self.running: dict[str, TaskID] = {}
        self.shares: dict[str, float] = {}
        self.whole = self.bars.add_task(harmless(title), total=None, note="")

    def __enter__(self) -> ProgressBars:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def planned(self, cells: Mapping[str, Cell]) -> None:
        """Know the total."""
        self.cells = cells
        self.bars.update(self.whole, total=sum(map(self._weight, cells)) or 1.0, completed=0.0)

    def _weight(self, key: str) -> float:
        return WEIGHT.get(self.cells[key].stage, 1.0)

    def _named(self, key: str) -> str:
        cell = self.cells[key]
        corpus = f"{cell.where['corpus']}: " if "corpus" in cell.where else f"{cell.stage} "
        return corpus + described(cell.stage, cell.config)

    def heard(self, event: Event) -> None:
        """Move the bars."""
        if event.kind == "begun":
            self.running[event.key] = self.bars.add_task(f"  {self._named(event.key)}", total=1.0, note="")
            return
        if event.kind == "progress":
            self._advance(event)
        elif event.key in self.running:
            self.bars.remove_task(self.running.pop(event.key))
        if event.kind in ("done", "failed", "refused"):
            self.shares[event.key] = 1.0
        elif event.kind in ("retried", "postponed"):
            self.shares.pop(event.key, None)
        if event.kind in ("failed", "retried", "postponed"):
            said = harmless(f"{self._named(event.key)}: {event.detail.get('error')}")
            self.console.print(said, style="red", markup=False, highlight=False)
        done = sum(self._weight(key) * share for key, share in self.shares.items())
        self.bars.update(self.whole, completed=done, note=f"{len(self.shares)}/{len(self.cells)} cells")

    def _advance(self, event: Event) -> None:
        said = event.detail
        note = f"epoch {said['epoch']}/{said['epochs']} loss {said['loss']:.2f} dev {number(said['dev'])}"
        self.shares[event.key] = said["fraction"]
        if event.key in self.running:
            self.bars.update(self.running[event.key], completed=said["fraction"], note=note)
