"""The engine without processes: each cell in turn, here. For notebooks, debuggers and tests."""

from __future__ import annotations

from attentest.bench.engine.contract import Cells, Event, OnEvent, Work


def run(cells: Cells, work: Work, on_event: OnEvent) -> None:
    """Do every cell; `on_event` hears of each and so makes the next ones ready."""
    while not cells.is_over():
        job = cells.take()
        assert job, "nothing is ready, yet nothing is running: a cycle among cells"
        for key in job:
            on_event(Event("begun", key))
        work.here(job, on_event)
