"""Running a study: plan it, do what is missing, say what came out."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

from attentest.bench.engine.contract import Event, RunCells, Work
from attentest.bench.engines import here
from attentest.bench.fleets import MOST, attempt_together, batch_key
from attentest.bench.frontier import Frontier
from attentest.bench.needs import Resources, needs_of
from attentest.bench.plan import Planner
from attentest.claims.claims import Claim, ClaimAtPoint
from attentest.claims.judging import Evidence, is_asked, judged, point
from attentest.claims.verdict import Verdict
from attentest.experiments.removed_measures import current
from attentest.refusal import Refusal
from attentest.statistics.moderated import by_priors
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import from_parquet
from attentest.studies.recipe import Study
from attentest.studies.seed_deviations import load_seed_deviations


@runtime_checkable
class Watcher(Protocol):
    """Someone who looks on while cells are done."""

    def planned(self, cells: Mapping[str, Cell]) -> None:
        """These will be done."""
        ...

    def heard(self, event: Event) -> None:
        """This happened."""
        ...


@final
@dataclass(frozen=True)
class Outcome:
    """What a run did. `done` counts cells done now; the others were there already."""

    findings: Sequence[Cell]
    cells: int
    done: int
    failed: Mapping[str, str]
    seconds: float


def run_cells(
    targets: Sequence[Cell],
    planner: Planner,
    *,
    engine: str | RunCells = "local",
    workers: int | None = None,
    resources: Resources | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """Do every cell the targets still need, on the device that they were planned for.

    The engine is one by name, or one that `engines.started` has made ready.
    """
    begun = time.monotonic()
    store, device = planner.store, planner.device
    run = here(engine, workers, device)
    store.sweep()
    missing = planner.missing(list(targets))
    for cell in missing.values():
        store.plan(cell)
    # On a CPU arithmetic is what a training costs, and company saves none of it.
    frontier = Frontier(missing, batch_key, MOST) if device == "cuda" else Frontier(missing)
    if watcher is not None:
        watcher.planned(missing)

    def on_event(event: Event) -> None:
        frontier.hear(event)
        if event.kind == "refused":
            raise _Refused(event)
        if event.kind in ("failed", "postponed") and event.key in frontier.failed:
            store.fail(event.key, event.detail["error"], event.detail.get("traceback", ""))
        if watcher is not None:
            watcher.heard(event)

    worker = [sys.executable, "-m", "attentest.bench.worker", store.folder.address]
    work = Work(
        here=lambda job, tell: attempt_together(job, store, device, tell),
        command=[*worker, device],
        without_gpu=[*worker, "cpu"],
        needs=lambda job: needs_of([missing[key] for key in job], store, device, resources or {}),
    )
    try:
        run(frontier, work, on_event)
    except _Refused as refused:
        said = refused.event.detail
        raise again(said) from refused
    return Outcome(
        findings=targets,
        cells=len(missing),
        done=len(frontier.done),
        failed=frontier.failed,
        seconds=time.monotonic() - begun,
    )


def again(said: Mapping[str, str]) -> Refusal:
    """What a worker refused, refused here."""
    return Refusal(**{name: said.get(name, "") for name in ("what", "got", "needs", "way_out", "cell")})


@final
class _Refused(Exception):
    """A worker refused its input: no other cell will fare better, so the run stops."""

    def __init__(self, event: Event) -> None:
        super().__init__(event.detail.get("message"))
        self.event = event


def judge(study: Study, cells: Sequence[Cell], store: Store) -> list[tuple[Cell, ClaimAtPoint]]:
    """What the findings say of each claim, at every grid point that it is about."""
    claims = [Claim(**written.model_dump()) for written in study.claim]
    done = {cell.key: cell for cell in cells if store.has(cell.key)}
    evidence = {
        # A study has one set of texts by each name, so they need no telling apart.
        key: Evidence(cell.config, None, current(from_parquet(store.read(key, "findings.parquet"))))
        for key, cell in done.items()
    }
    deviation = by_priors(load_seed_deviations())
    verdicts = [(done[key], said) for key, said in judged(claims, evidence, deviation)]
    return verdicts + [each for claim in claims for each in _never_asked(claim, cells)]


def _never_asked(claim: Claim, cells: Sequence[Cell]) -> list[tuple[Cell, ClaimAtPoint]]:
    """A claim on what the study does not run is undecided at every grid point: to be silent would mislead."""
    if any(is_asked(claim, cell.config) for cell in cells):
        return []
    said = ClaimAtPoint(claim, Verdict.UNDECIDED, f"the study does not run {claim.parts[0]}, {claim.mode}")
    one_a_point = {tuple(point(cell.config).values()): cell for cell in cells}
    return [(cell, said) for cell in one_a_point.values() if claim.is_about(point(cell.config))]
