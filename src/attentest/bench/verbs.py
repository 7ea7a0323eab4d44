"""The verbs of the command line and of Python, each giving one plain document."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attentest.bench.conclusion import findings_of, varied
from attentest.bench.engine.contract import Event
from attentest.bench.engines import check_engine, planning, started
from attentest.bench.needs import Resources
from attentest.bench.plan import Planner, file_of_vectors
from attentest.bench.planned import planned
from attentest.bench.result import StudyResult
from attentest.bench.study import Outcome, Watcher, again, judge, run_cells
from attentest.bench.subjects import load_model
from attentest.bench.work import attempt, best_device, device_of
from attentest.claims.claims import ClaimAtPoint, ClaimVerdict, overall
from attentest.corpus.catalogue import canonical_name
from attentest.corpus.shelf import entries
from attentest.corpus.vectors import is_absent
from attentest.model.config import ModelConfig
from attentest.model.training.files import check_folder, save
from attentest.model.training.finite import NotFinite
from attentest.model.training.provenance import config_of
from attentest.refusal import Refusal
from attentest.store.cell import Cell, short
from attentest.store.checking import named, without_damaged
from attentest.store.store import Store
from attentest.store.studies import name_or_path, remember
from attentest.studies.recipe import Study, beside, load_study, names, written

Document = dict[str, Any]
ABSENT = ("absent", "needs credentials", "not redistributable")


def train_one(
    corpus: str,
    settings: Mapping[str, Any],
    store_url: str,
    *,
    device: str = "auto",
    data_dir: str | None = None,
    include_text: bool = False,
    out: Path | None = None,
    watcher: Watcher | None = None,
) -> Document:
    """Train one model in this process; the same settings again are answered from the store."""
    begun = time.monotonic()
    if out is not None:
        check_folder(out)  # before the work, not after
    here = best_device(device)
    file_of_vectors(config_of(settings).vectors, data_dir)  # so are words

    def trained(store: Store) -> Document:
        planner = Planner(store, device=here, data_dir=data_dir, include_text=include_text)
        cell = planner.corpus(corpus)
        config, where = planner.resolve(config_of(settings), cell)
        model = planner.model(config, cell, where)
        outcome = run_cells([model], planner, engine="inline", watcher=watcher)
        for key, error in outcome.failed.items():
            if error.startswith(NotFinite.__name__):
                raise _not_finite(key, error)
            raise RuntimeError(f"cell {short(key)} failed: {error}\n{store.failures()[key]['traceback']}")
        if out is not None:
            save(load_model(store, model.key, "cpu"), out)
        return _told_of(model, config, json.loads(store.read(model.key, "training.json")))

    made = without_damaged(Store(store_url), trained, at_once=True)
    return {**made, "seconds": round(time.monotonic() - begun, 3)}


def _not_finite(key: str, error: str) -> Refusal:
    return Refusal(
        f"the training of cell {short(key)}",
        got=error.removeprefix(f"{NotFinite.__name__}: ").removesuffix("."),
        needs="a training that ends in finite numbers",
        way_out="Give a smaller number, or one nearer to 1.",
    )


def _told_of(model: Cell, config: ModelConfig, record: Mapping[str, Any]) -> Document:
    return {
        "cell": model.key,
        "corpus": model.where["corpus"],
        "scores": record["scores"],
        "epoch": record["chosen"],
        "epochs": len(record["history"]),
        "config": config.spelled(),
        "device": model.config.get("trained_on", "cpu"),
    }


def run_study(
    name: str,
    store_url: str,
    *,
    corpora: Sequence[str] | None = None,
    seeds: int | None = None,
    engine: str = "local",
    device: str = "auto",
    workers: int | None = None,
    ray_address: str | None = None,
    resources: Resources | None = None,
    only_plan: bool = False,
    data_dir: str | None = None,
    include_text: bool = False,
    watcher: Watcher | None = None,
) -> StudyResult:
    """Run a study, or with `only_plan` say what would be done.

    The engine `ray` does the cells on the cluster at `ray_address`, or on one that is started here; what
    cells take of its nodes follows from them, or from `resources` by stage: `{"observation": {"gpus": 0.5}}`.
    The device is settled before planning, since keys say it. To plan for a GPU none needs to be here.
    """
    store = Store(store_url)
    check_engine(engine)
    name = name if name in names() else name_or_path(store, name)
    whole = load_study(name)
    study = adapted(whole, [canonical_name(each) for each in corpora or ()], seeds)
    study, skipped = (study, []) if corpora else present(study, data_dir)
    study, absent = with_present_vectors(study, data_dir)
    document: Document = {"study": study.study, "title": study.title, "skipped": skipped + absent}

    def run(store: Store) -> Document:
        planner = Planner(store, device=here, data_dir=data_dir, include_text=include_text)
        targets = planner.study(study)
        counted = {"cells": len(planner.cells)}
        if only_plan:
            return counted | _planned(planner, targets)
        remember_study(store, name)
        outcome = run_cells(targets, planner, engine=ready, resources=resources, watcher=watcher)
        return counted | told([(study, targets)], planner, outcome)

    asked: Document = {"workers": workers, "address": ray_address, "resources": resources}
    with planning(device) if only_plan else started(engine, store, device, **asked) as (ready, here):
        return StudyResult(document | {"device": here} | without_damaged(store, run, at_once=True))


def _planned(planner: Planner, targets: list[Cell]) -> Document:
    """What would be done."""
    missing = planner.missing(targets)
    for cell in missing.values():
        planner.store.plan(cell)
    plan = [*planned(missing, planner.store)]
    done = len(planner.cells) - len(missing)
    return {"plan": plan, "failed": [], "done": done, "damaged": named(planner.store)}


def remember_study(store: Store, name: str) -> None:
    """Leave the study's TOML in the store, and its published numbers: pages of the store then show it."""
    study, packaged = load_study(name), name in names()
    files = {}
    if study.published is not None and not packaged:
        with contextlib.suppress(OSError, ValueError):  # `compare` says so where it is asked for
            files[study.published.file] = beside(name, study.published.file).read_bytes()
    remember(store, study.study, written(name), files, packaged=packaged)


def told(asked: Sequence[tuple[Study, Sequence[Cell]]], planner: Planner, outcome: Outcome) -> Document:
    """What came of some studies that were run together: counts, failures, findings, claims."""
    targets = [cell for _, cells in asked for cell in cells]
    judged = [judge(study, cells, planner.store) for study, cells in asked]
    return {
        "done": len(planner.cells) - len(planner.missing(targets)),
        "computed": outcome.done,
        "failed": [{"cell": key, "error": error} for key, error in outcome.failed.items()],
        "damaged": named(planner.store),
        "seconds": round(outcome.seconds, 3),
        "findings": findings_of(targets, planner.store).to_dict("records"),
        "claims": [_at_point(cell, verdict) for verdicts in judged for cell, verdict in verdicts],
        "claim_verdicts": [
            _over_points(one) for verdicts in judged for one in overall(said for _, said in verdicts)
        ],
    }


def adapted(study: Study, corpora: Sequence[str] | None, seeds: int | None) -> Study:
    """The study on other corpora or with another number of seeds."""
    changes: dict[str, Any] = {}
    if corpora:
        changes["grid"] = study.grid.model_copy(update={"corpus": list(corpora)})
    if seeds is not None:
        changes["seeds"] = seeds
    return study.model_copy(update=changes)


def present(study: Study, data_dir: str | None) -> tuple[Study, list[dict[str, str]]]:
    """The study on the corpora that are there, and why it leaves out others of its own grid.

    A corpus that is asked for by name is never left out: its absence is refused.
    """
    status = {entry["name"]: entry["status"] for entry in entries(data_dir)}
    reasons = {name: status.get(name, "") for name in study.grid.corpus}
    skipped = [{"corpus": name, "reason": why} for name, why in reasons.items() if why in ABSENT]
    left = [name for name, why in reasons.items() if why not in ABSENT]
    return (adapted(study, left, None) if left else study), skipped


def with_present_vectors(study: Study, data_dir: str | None) -> tuple[Study, list[dict[str, str]]]:
    """The study with the word vectors that are there, and which files under the data directory are not."""
    written = study.grid.vectors or []
    absent = [name for name in written if is_absent(name, data_dir)]
    left = [name for name in written if name not in absent]
    if absent and not left:
        raise Refusal(
            f"study {study.study}",
            got=f"no file {', '.join(absent)} under the data directory",
            needs="at least one kind of word vectors that is there",
            way_out="Get the file, or add random vectors to the grid.",
        )
    if absent:
        study = study.model_copy(update={"grid": study.grid.model_copy(update={"vectors": left})})
    return study, [{"vectors": name, "reason": "absent"} for name in absent]


def _at_point(cell: Cell, verdict: ClaimAtPoint) -> dict[str, Any]:
    """A claim at one grid point."""
    return {
        "says": verdict.claim.says,
        "corpus": cell.config["corpus"],
        "encoder": cell.config["encoder"],
        "attention": cell.config["attention"],
        "projection": cell.config["projection"],
        **varied(cell.config),
        "mode": verdict.claim.mode,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "statistic": verdict.claim.statistic,
        "p": verdict.p,
        "p_refutes": verdict.p_refutes,
        "p_corrected": verdict.p_corrected,
        "p_refutes_corrected": verdict.p_refutes_corrected,
    }


def _over_points(one: ClaimVerdict) -> dict[str, Any]:
    """A claim over all its grid points."""
    return {
        "says": one.claim.says,
        "statistic": one.claim.statistic,
        "mode": one.claim.mode,
        "verdict": one.verdict,
        "reason": one.reason,
        "points": one.points,
        "supported": one.supported,
        "refuted": one.refuted,
        "undecided": one.undecided,
    }


def run_one(prefix: str, store_url: str, *, device: str = "auto") -> Document:
    """Do one planned cell here, as any other scheduler would; its inputs must be there.

    A model is trained on the device that its key says, and refused where that is not at hand.
    """
    store = Store(store_url).existing()
    key = store.resolve(prefix)
    cell = store.cell(key)
    here = best_device(device)
    if not store.is_whole(key):
        here = device_of(cell, here)
    absent = [short(k) for k in cell.inputs.values() if not store.has(k)]
    if absent and not store.is_whole(key):
        raise Refusal(
            f"cell {short(key)}",
            got=f"inputs that do not exist yet: {', '.join(absent)}",
            needs="its inputs in the store",
            way_out=f"First run: {', '.join(f'attentest run-cell {k}' for k in absent)}.",
        )
    ends: list[Event] = []
    attempt(key, store, here, ends.append)
    last = ends[-1]
    if last.kind == "refused":
        raise again(last.detail)
    if last.kind == "postponed":  # for nothing: no other cell is run here
        store.fail(key, last.detail["error"], last.detail["traceback"])
    failed = [{"cell": key, "error": last.detail["error"]}] if last.kind != "done" else []
    done_on = store.about(key).get("device") if store.has(key) else here
    return {"cell": key, "stage": cell.stage, "device": done_on, "failed": failed}
