"""A study gives the same bytes by every road, does nothing twice, and is concluded again without torch."""

import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from attentest.bench.checkpoint import StoreCheckpoint, interrupts_between_steps
from attentest.bench.conclusion import conclude_all, list_cells
from attentest.bench.plan import Planner
from attentest.bench.verbs import run_one, run_study, train_one
from attentest.bench.work import attempt
from attentest.claims.claims import Claim
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.compare.verdicts import judged
from attentest.experiments.cards import card
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.observers import EXPERIMENTS
from attentest.model.config import ModelConfig
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from attentest.store.cell import Cell, canonical
from attentest.store.store import Store
from attentest.studies.recipe import load_study
from attentest.studies.recipe import names as study_names
from tests.toy_study import (
    CORPUS,
    PERFORMANCE,
    PERMUTATION,
    MemoryCheckpoint,
    conclude_kin,
    data_files,
    descriptions,
    finding,
    interrupted_after,
    kin_conclusion,
    of_stage,
    toml,
)
from tests.toys import toy_model

SMALL = {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 1}


class Onlooker:
    """A watcher that only remembers."""

    def __init__(self):
        self.cells, self.events = {}, []

    def planned(self, cells):
        self.cells = dict(cells)

    def heard(self, event):
        self.events.append(event)

    def begun(self, stage):
        return [e.key for e in self.events if e.kind == "begun" and self.cells[e.key].stage == stage]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The store of the toy study, done in this process; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result = run_study(toml(folder), str(folder / "store"), engine="inline", device="cpu")
    assert result["failed"] == [] and result["cells"] == result["done"] == 9
    assert result["computed"] == 8  # the corpus was prepared while planning
    return str(folder / "store")


@pytest.fixture
def fresh(undisturbed, tmp_path):
    """A store that holds the corpus and nothing else; preparing it again would be most of a test's time."""
    (corpus,) = of_stage(undisturbed, "corpus")
    shutil.copytree(f"{undisturbed}/cells/{corpus}", tmp_path / "fresh" / "cells" / corpus)
    return str(tmp_path / "fresh")


@pytest.fixture
def copied(undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path / "store")
    return str(tmp_path / "store")


# --- the same bytes by every road


def test_processes_write_the_same_bytes_as_this_one(undisturbed, fresh, tmp_path):
    watcher = Onlooker()
    result = run_study(toml(tmp_path), fresh, engine="local", device="cpu", watcher=watcher)
    assert result["failed"] == [] and result["computed"] == 8
    workers = {e.detail["worker"] for e in watcher.events if e.kind == "begun"}
    assert workers  # they were taken
    assert data_files(fresh) == data_files(undisturbed)
    assert len(data_files(undisturbed)) >= 8


def test_running_again_does_nothing(copied, tmp_path):
    before = descriptions(copied)
    result = run_study(toml(tmp_path), copied, engine="inline", device="cpu")
    assert result["computed"] == 0 and result["done"] == result["cells"] == 9
    assert descriptions(copied) == before and len(before) == 9


def test_a_plan_can_be_done_cell_by_cell_to_the_same_bytes(undisturbed, fresh, tmp_path):
    url = fresh
    planned = run_study(toml(tmp_path), url, only_plan=True, device="cpu")
    assert planned["done"] == 1 and len(planned["plan"]) == 8
    assert sorted(Store(url).plans()) == sorted(each["cell"] for each in planned["plan"])
    assert of_stage(url, "corpus") == Store(url).done()
    listed = list_cells(url)
    assert listed["planned"] == Store(url).plans() and len(listed["cells"]) == 1
    with pytest.raises(Refusal, match="inputs that do not exist yet"):
        run_one(planned["plan"][-1]["cell"], url, device="cpu")
    for each in planned["plan"]:
        done = run_one(each["cell"][:16], url, device="cpu")
        assert done == {"cell": each["cell"], "stage": each["stage"], "device": "cpu", "failed": []}
    assert data_files(url) == data_files(undisturbed)
    before = descriptions(url)
    assert run_one(planned["plan"][0]["cell"], url, device="cpu")["failed"] == []
    assert descriptions(url) == before
    assert run_study(toml(tmp_path), url, only_plan=True)["plan"] == []


def test_a_store_in_memory_holds_the_same_bytes(undisturbed, tmp_path):
    url = "memory://toy-study"
    assert not Store(url).local
    result = run_study(toml(tmp_path), url, engine="inline", device="cpu")
    assert result["failed"] == [] and data_files(url) == data_files(undisturbed)
    assert conclude_all(url)["same"] == 2


def test_one_model_is_trained_once_and_answered_from_the_store(fresh, tmp_path):
    settings = {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 1, "seed": 3}
    first = train_one(CORPUS, settings, fresh, out=tmp_path / "saved")
    before = descriptions(fresh)
    again = train_one(CORPUS, settings, fresh)
    assert first | {"seconds": 0} == again | {"seconds": 0}
    assert descriptions(fresh) == before and (tmp_path / "saved").is_dir()
    assert set(first["scores"]) == {"dev", "test"} and first["config"]["seed"] == 3


# --- what is needed, and no more


def test_models_that_experiments_share_are_trained_once(fresh, tmp_path):
    watcher = Onlooker()
    experiments = "\n\n".join(PERMUTATION.format(n) for n in (3, 5, 7))
    result = run_study(toml(tmp_path, experiments), fresh, engine="inline", device="cpu", watcher=watcher)
    assert result["failed"] == []
    trained = watcher.begun("model")
    assert len(trained) == len(set(trained)) == 3  # the subject and its two controls
    assert len(watcher.begun("reading")) == 1
    assert len(watcher.begun("observation")) == len(watcher.begun("finding")) == 3


def test_a_cell_that_travelled_without_weights_is_remade_only_when_needed(copied, undisturbed, tmp_path):
    store = Store(copied)
    for key in of_stage(copied, "model"):
        store.forget("cells", key, "model.safetensors")
    assert run_study(toml(tmp_path), copied, engine="inline", device="cpu")["computed"] == 0
    lost = of_stage(copied, "observation")
    for key in (*lost, *of_stage(copied, "finding")):
        store.forget("cells", key)
    result = run_study(toml(tmp_path), copied, engine="inline", device="cpu")
    assert result["failed"] == [] and result["computed"] == 7  # 3 models, 2 observations, 2 findings
    assert data_files(copied) == data_files(undisturbed)


@pytest.mark.parametrize("name", ["corpus.json", "examples.parquet"])
def test_a_corpus_that_travelled_without_a_file_is_prepared_again(fresh, undisturbed, tmp_path, name):
    (corpus,) = of_stage(fresh, "corpus")
    Store(fresh).forget("cells", corpus, name)
    assert run_study(toml(tmp_path), fresh, engine="inline", device="cpu")["failed"] == []
    assert data_files(fresh) == data_files(undisturbed)


@dataclass(frozen=True, kw_only=True)
class Kin(AbstractExperiment):
    """Siblings that name the subject, and one that names a sibling before it."""

    name = "kin"
    cite = "jain2019attention"
    version = 1

    def siblings(self, config):
        return {
            "guided": replace(config, projection="stored", guide="subject", epochs=0),
            "child": replace(config, start_from="subject", epochs=0),
            "grandchild": replace(config, start_from="child", guide="guided", projection="stored", epochs=0),
        }

    def observe(self, subject, rng):
        own = subject.readings.set_index("id")
        for name, sibling in subject.sibling.items():
            theirs = sibling.readings.set_index("id").loc[own.index]
            for column in ("weights", "logits"):
                pairs = zip(own[column], theirs[column], strict=True)
                apart = max(float(np.abs(ours - other).max()) for ours, other in pairs)
                yield {"subject": name, "id": column, "apart": apart}


def test_siblings_are_bound_to_the_subject_and_to_each_other(fresh, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "kin", Kin)
    monkeypatch.setitem(CONCLUSIONS, "kin", kin_conclusion(conclude_kin, "kin"))
    path = toml(tmp_path, '[[experiment]]\nname = "kin"')
    planner = Planner(Store(fresh))
    planner.study(load_study(path))
    (observation,) = (cell for cell in planner.cells.values() if cell.stage == "observation")
    needs = {role: planner.cells[key] for role, key in observation.inputs.items()}
    guide = planner.cells[needs["sibling.guided"].inputs["guide"]]
    assert guide.stage == "reading" and guide.inputs["model"] == needs["model"].key
    assert guide.config["splits"] == ["train", "dev", "test"]
    assert needs["sibling.guided"].config["guide"] == guide.key
    assert needs["sibling.child"].inputs["start"] == needs["model"].key
    grandchild = needs["sibling.grandchild"]
    assert grandchild.inputs["start"] == needs["sibling.child"].key
    assert planner.cells[grandchild.inputs["guide"]].inputs["model"] == needs["sibling.guided"].key

    result = run_study(path, fresh, engine="inline", device="cpu")
    assert result["failed"] == []
    apart = {row["measure"]: row["estimate"] for row in result["findings"]}
    assert apart["guided-weights"] == apart["child-weights"] == apart["grandchild-weights"] == 0.0
    assert apart["child-logits"] == 0.0 and apart["guided-logits"] > 0.0
    assert apart["grandchild-logits"] < 1e-6  # the subject's parameters under the subject's own weights


def test_a_guide_from_an_earlier_run_is_found_and_an_unknown_one_refused(copied, tmp_path):
    (reading,) = of_stage(copied, "reading")
    settings = {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 0, "projection": "stored"}
    with pytest.raises(Refusal, match="no plans/abc"):
        train_one(CORPUS, settings | {"guide": "abc"}, copied, device="cpu")
    store = Store(copied)
    store.plan(store.cell(reading))
    store.forget("cells", reading)  # it is only planned now, and so is done again
    planner = Planner(store)
    corpus = planner.corpus(CORPUS)
    wanted = Cell(stage="model", version=1, config={}, inputs={"corpus": corpus.key, "guide": reading})
    assert list(planner.missing([planner.add(wanted)])) == [reading, wanted.key]


# --- concluding again


def test_concluding_again_says_the_same_and_writes_what_is_missing(copied, undisturbed):
    said = conclude_all(copied)
    assert said["same"] == 2 and said["changed"] == said["written"] == said["waiting"] == []
    assert len(said["findings"]) > 2
    gone, holey = of_stage(copied, "finding")
    store = Store(copied)
    store.forget("cells", gone)
    store.forget("cells", holey, "findings.parquet")
    said = conclude_all(copied)
    assert sorted(said["written"]) == sorted([gone, holey]) and said["same"] == 0
    assert data_files(copied) == data_files(undisturbed)
    for key in of_stage(copied, "observation"):
        store.forget("cells", key)
    said = conclude_all(copied)
    assert sorted(said["waiting"]) == sorted([gone, holey]) and said["same"] == 0


def test_a_finding_that_no_longer_follows_from_its_rows_is_named(copied, monkeypatch):
    (other, _) = (Store(copied).cell(key) for key in of_stage(copied, "finding"))
    name = other.config["experiment"]
    monkeypatch.setitem(CONCLUSIONS, name, kin_conclusion(lambda rows, *, mode, rng: [], name))
    said = conclude_all(copied)
    assert said["changed"] == [other.key] and said["same"] == 1


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("there is no torch here")
sys.meta_path.insert(0, NoTorch())
from attentest.bench.conclusion import conclude_all
said = conclude_all(sys.argv[1])
print(said["same"], len(said["written"]))
"""


def test_concluding_needs_no_torch(copied, undisturbed):
    first, _ = of_stage(copied, "finding")
    Store(copied).forget("cells", first)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, copied], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]
    assert data_files(copied) == data_files(undisturbed)


# The test's own message says it. The model is untrained, so that no processor's rounding is amplified; its
# word vectors are large, so that attention matters all the same.
PINNED = "66333bf190171bd79105494626c445af44afd2b153b92aedd70818dfa171261a"


def test_the_findings_of_a_toy_study_are_pinned(fresh, tmp_path):
    path = toml(tmp_path, epochs=0, vectors="random(3.0)", corpus="planted-keyword")
    result = run_study(path, fresh, engine="inline", device="cpu")
    said = [
        {name: row[name] for name in ("experiment", "measure", "group", "n", "excluded", "mode")}
        | {"estimate": None if math.isnan(row["estimate"]) else round(row["estimate"], 4)}
        for row in result["findings"]
    ]
    found = hashlib.sha256(canonical(said).encode()).hexdigest()
    assert found == PINNED, (
        f"the findings of the toy study are now {found}; change PINNED only together with the version of the "
        f"stage whose results changed, or when keys changed and were meant to: what is stored is wrong now"
    )


# --- failing, and going on


@dataclass(frozen=True, kw_only=True)
class Broken(AbstractExperiment):
    """Fails until it is mended."""

    name = "broken"
    cite = "jain2019attention"
    version = 1
    mended: ClassVar[list[bool]] = []

    def siblings(self, config):
        return {}

    def observe(self, subject, rng):
        if not self.mended:
            raise ZeroDivisionError("by nothing")
        yield {"subject": "trained", "id": "all", "apart": 0.0}


def test_a_failure_is_kept_with_its_traceback_the_rest_is_done_and_the_next_run_tries_again(
    fresh, tmp_path, monkeypatch
):
    monkeypatch.setitem(EXPERIMENTS, "broken", Broken)
    monkeypatch.setitem(CONCLUSIONS, "broken", kin_conclusion(conclude_kin, "broken"))
    monkeypatch.setattr(Broken, "mended", [])
    url, path = fresh, toml(tmp_path, f'[[experiment]]\nname = "broken"\n\n{PERFORMANCE}')
    result = run_study(path, url, engine="inline", device="cpu")
    broken, needy = result["failed"]
    assert broken["error"] == "ZeroDivisionError: by nothing"
    assert needy["error"] == f"it needs {broken['cell'][:12]}, which failed"
    assert result["done"] == result["cells"] - 2
    assert {row["experiment"] for row in result["findings"]} == {"performance"}
    kept = Store(url).failures()
    assert list(kept) == [broken["cell"]] and "in observe" in kept[broken["cell"]]["traceback"]
    assert list_cells(url)["failed"] == [broken]
    assert run_one(broken["cell"], url, device="cpu")["failed"] == [broken]

    before = descriptions(url)
    Broken.mended.append(True)
    result = run_study(path, url, engine="inline", device="cpu")
    assert result["failed"] == [] and result["computed"] == 2 and Store(url).failures() == {}
    assert {key: content for key, content in descriptions(url).items() if key in before} == before


def test_a_cell_that_finds_no_memory_though_alone_is_kept_as_a_failure(fresh, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "broken", Broken)
    monkeypatch.setitem(CONCLUSIONS, "broken", kin_conclusion(conclude_kin, "broken"))

    def greedy(self, subject, rng):
        raise torch.OutOfMemoryError("tried to allocate all there is")

    monkeypatch.setattr(Broken, "observe", greedy)
    result = run_study(
        toml(tmp_path, '[[experiment]]\nname = "broken"'), fresh, engine="inline", device="cpu"
    )
    broken, needy = result["failed"]
    assert broken["error"] == "OutOfMemoryError: tried to allocate all there is"
    assert needy["error"] == f"it needs {broken['cell'][:12]}, which failed"
    assert "in greedy" in Store(fresh).failures()[broken["cell"]]["traceback"]
    shutil.rmtree(Path(fresh) / "failures")
    assert run_one(broken["cell"], fresh, device="cpu")["failed"] == [broken]
    assert list(Store(fresh).failures()) == [broken["cell"]]


class Killer(Onlooker):
    """Kills every worker as soon as it has a cell."""

    def heard(self, event):
        super().heard(event)
        if event.kind == "begun":
            os.kill(event.detail["worker"], signal.SIGKILL)


def test_a_cell_whose_workers_all_die_is_kept_as_a_failure(fresh, tmp_path):
    watcher = Killer()
    result = run_study(
        toml(tmp_path, PERFORMANCE), fresh, engine="local", device="cpu", workers=1, watcher=watcher
    )
    (model,) = watcher.cells.keys() & {event.key for event in watcher.events}
    assert [event.kind for event in watcher.events] == ["begun", "retried"] * 2 + ["begun", "failed"]
    assert result["computed"] == 0 and len(result["failed"]) == 4  # and what rests on it
    assert Store(fresh).failures()[model]["error"] == "its worker died 3 times (status -9)"


def test_a_failed_training_shows_its_traceback(fresh, monkeypatch):
    def explode(self, *args, **kwargs):
        raise FloatingPointError("overflow")

    monkeypatch.setattr(torch.optim.Adam, "step", explode)
    with pytest.raises(RuntimeError, match=r"(?s)FloatingPointError: overflow.*Traceback"):
        train_one(CORPUS, SMALL, fresh, device="cpu")


@pytest.mark.parametrize("engine", ["inline", "local"])
def test_a_damaged_input_is_set_aside_and_computed_again(copied, tmp_path, engine):
    (reading,) = of_stage(copied, "reading")
    store = Store(copied)
    whole = store.read(reading, "readings.parquet")
    store.replace(b"not what was written", "cells", reading, "readings.parquet")
    for key in (*of_stage(copied, "observation"), *of_stage(copied, "finding")):
        store.forget("cells", key)
    result = run_study(toml(tmp_path), copied, engine=engine, device="cpu", workers=1)
    assert result["failed"] == [] and Store(copied).read(reading, "readings.parquet") == whole


def test_word_vectors_that_changed_since_they_were_planned_are_refused(fresh, tmp_path):
    vectors, store, ends = tmp_path / "vectors.txt", Store(fresh), []
    vectors.write_text("good 0.5 0.25\nbad -0.5 0.25\n")
    planner = Planner(store)
    corpus = planner.corpus(CORPUS)
    settings = {**SMALL, "embedding": 2, "epochs": 0, "vectors": str(vectors)}
    config, where = planner.resolve(ModelConfig.of(settings), corpus)
    cell = planner.model(config, corpus, where)
    store.plan(cell)
    vectors.write_text("good 0.5 0.5\nbad -0.5 0.25\n")
    attempt(cell.key, store, "cpu", ends.append)
    vectors.write_text("good 0.5 0.25\nbad -0.5 0.25\n")
    attempt(cell.key, store, "cpu", ends.append)
    assert [end.kind for end in ends] == ["refused", "done"]
    assert "another content" in ends[0].detail["message"] and store.is_whole(cell.key)


def test_an_unknown_engine_or_device_is_refused(tmp_path):
    for wrong, names in [({"engine": "slurm"}, "local, inline"), ({"device": "tpu"}, "auto, cpu or cuda")]:
        with pytest.raises(Refusal, match=names):
            run_study(toml(tmp_path), str(tmp_path / "store"), **wrong)


def test_a_study_can_be_adapted_to_other_corpora_and_seeds(tmp_path):
    plan = run_study(
        toml(tmp_path),
        str(tmp_path / "store"),
        corpora=["planted-negation"],
        seeds=3,
        only_plan=True,
    )
    stages = [each["stage"] for each in plan["plan"]]
    assert stages.count("model") == 9 and stages.count("finding") == 2
    (corpus,) = (Store(tmp_path / "store").cell(key) for key in of_stage(tmp_path / "store", "corpus"))
    assert corpus.config["name"] == "planted-negation"


def test_claims_are_judged_from_the_findings(copied, tmp_path):
    result = run_study(toml(tmp_path), copied, engine="inline", device="cpu")
    (claim,) = result["claims"]
    assert claim["says"] == "Most texts do not notice." and claim["corpus"] == CORPUS
    assert claim["verdict"] and claim["reason"] and claim["mode"] == "corrected"


@dataclass(frozen=True, kw_only=True)
class Moded(AbstractExperiment):
    """Sees 0.25 in the one mode and 0.75 in the other."""

    name = "moded"
    cite = "jain2019attention"
    version = 1

    def siblings(self, config):
        return {}

    def observe(self, subject, rng):
        yield {"subject": "trained", "id": "all", "seen": 0.25 if self.mode == "corrected" else 0.75}


def conclude_moded(rows, *, mode, rng):
    seen = float(rows["seen"].mean())  # the same of every text, so that its interval has no width
    return [replace(finding("seen", seen, mode), experiment="moded", low=seen, high=seen)]


MODED = """
[[experiment]]
name = "moded"
mode = "as-published"

[[experiment]]
name = "moded"

[[claim]]
says = "Little is seen."
statistic = "moded/seen/overall"
supported_if = "estimate < 0.5"
refuted_if = "estimate > 0.5"

[[claim]]
says = "Little is seen by the published code."
statistic = "moded/seen/overall"
mode = "as-published"
supported_if = "estimate < 0.5"
refuted_if = "estimate > 0.5"
"""


def test_one_experiment_in_two_modes_is_judged_in_the_mode_the_claim_asks_for(fresh, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "moded", Moded)
    monkeypatch.setitem(CONCLUSIONS, "moded", kin_conclusion(conclude_moded, "moded"))
    path = toml(tmp_path, MODED, epochs=0, vectors="random(3.0)")
    result = run_study(path, fresh, engine="inline", device="cpu")
    said = [(claim["says"], claim["mode"], claim["verdict"]) for claim in result["claims"]]
    assert said == [
        ("Little is seen.", "corrected", "supported"),
        ("Little is seen by the published code.", "as-published", "refuted"),
        ("Most texts do not notice.", "corrected", "undecided"),
    ]
    assert result["claims"][2]["reason"] == "the study does not run permutation, corrected"
    # A report judges what the store holds, and says the same.
    reported = judged(load_study(path), grid_points(Stored(Store(fresh))))
    assert [
        (one.verdict.claim.says, one.verdict.claim.mode, one.verdict.verdict) for one in reported
    ] == said[:2]


def test_the_guide_names_every_experiment_with_its_parameters_and_every_study():
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "studies.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part.splitlines() for part in guide.split("\n## ")}
    experiments, studies = (
        {line.split("`")[1]: line.split("|")[-2] for line in sections[title] if line.startswith("| `")}
        for title in ("The experiments", "The studies of the package")
    )
    assert set(experiments) == set(EXPERIMENTS) and set(studies) == set(study_names())
    for name, kind in EXPERIMENTS.items():
        told = set(re.findall(r"`([a-z]+)`", experiments[name]))
        assert told == {field.name for field in fields(kind)} - {"mode"}, name


@pytest.mark.parametrize("name", study_names())
def test_every_claim_of_the_package_is_on_what_its_study_measures(name):
    study = load_study(name)
    run = {(step.name, step.mode) for step in study.experiment}
    for written in study.claim:
        claim = Claim(**written.model_dump())
        assert (claim.parts[0], claim.mode) in run and card(*claim.parts[:2])
        assert all(card(claim.parts[0], granted.partition("/")[0]) for granted in claim.provided)


def test_serrano_and_smith_are_asked_in_both_modes():
    study = load_study("serrano-smith-2019")
    modes = [(step.name, step.mode) for step in study.experiment]
    assert len(set(modes)) == len(modes)
    for name in ("single-weight", "removal"):
        assert {mode for step, mode in modes if step == name} == {"corrected", "as-published"}
    assert {claim.mode for claim in study.claim} == {"corrected"}


def test_jain_and_wallace_s_models_are_asked_the_same_by_the_same_rules():
    there, here = (
        [claim.model_copy(update={"where": {}}) for claim in load_study(name).claim]
        for name in ("serrano-smith-2019", "serrano-smith-2019-flat")
    )
    assert there == here


# --- resuming


def untrained(corpus, settings):
    return toy_model(corpus, epochs=3, patience=3, **settings)


NOISY = {"encoder": "average", "projection": "gumbel-softmax(0.7)"}
GUARDED = {"encoder": "bilstm", "dropout": 0.3, "clip": 0.1, "halving": True}


@pytest.mark.parametrize("where", ["memory", "store"])
@pytest.mark.parametrize(
    "settings", [NOISY, GUARDED, {"encoder": "cnn", "projection": "sparsemax", "freeze": ("embedding",)}]
)
def test_a_resumed_training_is_the_undisturbed_one_to_the_bit(planted, store, settings, where):
    corpus = replace(planted, train=planted.train[:150], dev=planted.dev[:40], test=planted.test[:40])
    whole = untrained(corpus, settings)
    record = Training(whole, corpus).run()
    assert len(record.history) == 3  # 5 steps each

    checkpoint = MemoryCheckpoint() if where == "memory" else StoreCheckpoint(store, "key")
    kept_at = []
    # Steps of each attempt: the first one, mid-epoch, the last of an epoch, the first of the next, and more.
    for steps in (1, 2, 2, 1, 7):
        training = Training(untrained(corpus, settings), corpus, checkpoint=checkpoint)
        training.on_progress = interrupted_after(steps)
        with pytest.raises(KeyboardInterrupt):
            training.run()
        kept_at.append((training.epoch, training.step))
    assert kept_at == [(1, 1), (1, 3), (1, 5), (2, 1), (3, 3)]
    training = Training(untrained(corpus, settings), corpus, checkpoint=checkpoint)
    assert asdict(training.run()) == asdict(record)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, training.model.state_dict()[name]), name


def test_a_training_that_is_kept_at_every_step_is_not_disturbed_by_it(planted):
    corpus = replace(planted, train=planted.train[:150], dev=planted.dev[:40], test=planted.test[:40])
    whole, kept = (untrained(corpus, NOISY) for _ in range(2))
    record = Training(whole, corpus).run()
    checkpoint = MemoryCheckpoint()
    training = Training(kept, corpus, checkpoint=checkpoint, save_every=0.0)
    training.on_progress = interrupted_after(0, also=lambda: setattr(training, "_cost", 0.0))
    assert asdict(training.run()) == asdict(record)
    assert checkpoint.saves == 15
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, kept.state_dict()[name])


@pytest.fixture
def whole(copied):
    """The toy study's own subject, undisturbed: its key and its files."""
    configs = {key: Store(copied).about(key)["config"] for key in of_stage(copied, "model")}
    (key,) = (key for key, config in configs.items() if config["epochs"] == 1 and "labels" not in config)
    return key, {name: digest for name, digest in data_files(copied).items() if name.startswith(key)}


@pytest.mark.parametrize("step", [1, 7, 12])
def test_ctrl_c_in_the_middle_of_a_step_keeps_a_checkpoint_that_goes_on_to_the_same_bits(
    fresh, whole, monkeypatch, step
):
    take_step, taken = torch.optim.Adam.step, 0

    def interrupted_step(self, *args, **kwargs):
        """The dense parameters have moved and the embedding has not: the worst moment there is."""
        nonlocal taken
        take_step(self, *args, **kwargs)
        taken += 1
        if taken == step:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(torch.optim.Adam, "step", interrupted_step)
        with pytest.raises(KeyboardInterrupt):
            train_one(CORPUS, SMALL, fresh, device="cpu")
    store, (key, files) = Store(fresh), whole
    assert store.plans() == [key] and not store.has(key) and store.failures() == {}
    _, notes = StoreCheckpoint(store, key).load()
    assert (notes["epoch"], notes["step"]) == (1, step)
    assert train_one(CORPUS, SMALL, fresh, device="cpu")["epochs"] == 1
    assert files.items() <= data_files(fresh).items()
    assert store.find("partial", key, "state.safetensors") is None


def test_ctrl_c_after_the_last_step_still_interrupts():
    with pytest.raises(KeyboardInterrupt), interrupts_between_steps() as let_go:
        let_go()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_may_train_too():
    passed = []

    def train():
        with interrupts_between_steps() as let_go:
            let_go()
            passed.append(True)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert passed


def test_a_damaged_checkpoint_is_as_good_as_none(fresh, whole):
    store, (key, files) = Store(fresh), whole
    store.replace(b"the first few bytes of", "partial", key, "state.safetensors")
    assert StoreCheckpoint(store, key).load() is None
    train_one(CORPUS, SMALL, fresh, device="cpu")
    assert files.items() <= data_files(fresh).items()


def test_doing_a_cell_that_nobody_planned_is_refused(store):
    ends = []
    attempt("0" * 64, store, "cpu", ends.append)
    assert [end.kind for end in ends] == ["refused"] and "no plans/" in ends[0].detail["message"]


def test_a_study_leaves_out_corpora_of_its_own_grid_that_are_absent(tmp_path):
    path = tmp_path / "some.toml"
    with open(toml(tmp_path)) as file:
        path.write_text(file.read().replace(f'["{CORPUS}"]', f'["{CORPUS}", "cnn"]'))
    assert "cnn" in path.read_text()
    store = str(tmp_path / "store")
    plan = run_study(str(path), store, only_plan=True, data_dir=str(tmp_path))
    assert [entry["corpus"] for entry in plan["skipped"]] == ["cnn"] and plan["plan"]
    with pytest.raises(Refusal, match="cnn"):  # asked for by name, it is missed
        run_study(str(path), store, corpora=["cnn"], only_plan=True, data_dir=str(tmp_path))
