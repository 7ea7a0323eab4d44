"""Doing many model cells at once: the fleets of `model.fleet`, from the store and back into it."""

from __future__ import annotations

import gc
import json
import math
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, replace

import torch

from attentest.bench.checkpoint import StoreCheckpoint, interrupts_between_steps
from attentest.bench.engine.contract import Event, OnEvent
from attentest.bench.work import (
    REPORT_EVERY,
    attempt,
    check_inputs,
    device_of,
    lacks_memory,
    notes_on,
    seconds_between_saves,
    trained_model,
    untrained,
)
from attentest.fleet.trainer import Fleet, signature
from attentest.model.config import ModelConfig
from attentest.model.training.loop import Training
from attentest.store.cell import Cell
from attentest.store.store import Store

MOST = 48  # members of a fleet: more of them gain little, and ask for memory
WORTH_RETURNING = 2**30  # bytes: under this, asking for them again costs more than they are worth


def batch_key(cell: Cell) -> Hashable | None:
    """Cells of one company may be trained together; None for a cell that must be done alone.

    On a CPU the same key gives the same bits, which in company it would not.
    """
    if cell.stage != "model":
        return None
    config = ModelConfig.of(cell.config)
    alike = signature(config) if config.trained_on == "cuda" else None
    return None if alike is None else (cell.inputs["corpus"], json.dumps(cell.where, sort_keys=True), alike)


def train_together(cells: Sequence[Cell], store: Store, device: str, on_event: OnEvent) -> None:
    """Train these cells and store each as it ends; goes on where a killed run stopped.

    Members that were stopped at different steps go on in fleets of their own.
    """
    begun = time.monotonic()
    of_cell: dict[int, Cell] = {}
    at_step: dict[tuple[int, int], list[Training]] = defaultdict(list)
    beside = None
    for cell in cells:
        check_inputs(cell, store)
        device = device_of(cell, device)
        model, corpus, base = untrained(cell, store, device)
        kept = StoreCheckpoint(store, cell.key, device)
        training = Training(
            model,
            corpus,
            base=base,
            beside=beside,
            checkpoint=kept,
            save_every=seconds_between_saves(),
        )
        training.resume()
        beside = beside or training
        of_cell[id(training)] = cell
        at_step[training.epoch, training.step].append(training)

    def write(training: Training) -> None:
        cell = of_cell[id(training)]
        made = trained_model(training.model, asdict(training.record))
        notes = notes_on(made, device, seconds=(time.monotonic() - begun) / len(cells))
        store.write(cell, made.files, {**notes, "fleet": len(cells)})
        on_event(Event("done", cell.key))

    with interrupts_between_steps() as let_go:
        for trainings in at_step.values():
            Fleet(trainings).run(write, _sometimes(trainings, of_cell, on_event, let_go))


def _sometimes(
    trainings: Sequence[Training], of_cell: dict[int, Cell], on_event: OnEvent, always: Callable[[], None]
) -> Callable[[int], None]:
    """Tell now and then how far each member is; `always` is called between any two steps."""
    last = 0.0

    def on_step(step: int) -> None:
        nonlocal last
        always()
        if time.monotonic() - last < REPORT_EVERY:
            return
        last = time.monotonic()
        for training in trainings:
            if not training.record.scores:  # a loss is known at the end of an epoch: asking would be waiting
                loss = training.record.history[-1]["loss"] if training.record.history else math.nan
                told = replace(training.progress(step), loss=loss)
                on_event(Event("progress", of_cell[id(training)].key, asdict(told)))

    return on_step


def attempt_together(keys: Sequence[str], store: Store, device: str, on_event: OnEvent) -> None:
    """`attempt` for a fleet. One that asks for more memory than there is goes on as two halves; where it
    fails otherwise, those that are left are tried one by one.
    """
    left = [key for key in keys if not store.is_whole(key)]
    whole = [key for key in keys if key not in left]

    def hear(event: Event) -> None:
        if event.kind == "done":
            left.remove(event.key)
        on_event(event)

    too_much = False
    if len(left) > 1:
        try:
            train_together([store.cell(key) for key in left], store, device, hear)
        except Exception as error:  # noqa: BLE001  whatever it was, each member will say it for itself
            too_much = lacks_memory(error)
            on_event(Event("retried", left[0], {"error": traceback.format_exc()}))
        return_memory()
    if too_much:
        half = (len(left) + 1) // 2
        attempt_together(left[:half], store, device, on_event)
        attempt_together(left[half:], store, device, on_event)
        left = []
    for key in [*whole, *left]:
        attempt(key, store, device, on_event)
    return_memory()


def return_memory() -> None:
    """Workers share a GPU: what one keeps for later, another may need now. A fleet's recordings hold the
    fleet and it holds them, so they go only when cycles are looked for.
    """
    if torch.cuda.is_available() and torch.cuda.memory_reserved() > WORTH_RETURNING:
        gc.collect()
        torch.cuda.empty_cache()
