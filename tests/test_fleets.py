"""Fleets on the bench: who goes with whom, what is stored, and what a kill or a failure leaves."""

import functools
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load as load_tensors

from attentest.bench import fleets, frontier, study, work
from attentest.bench.checkpoint import StoreCheckpoint
from attentest.bench.engine.contract import Event
from attentest.bench.fleets import MOST, attempt_together, batch_key, train_together
from attentest.bench.frontier import Frontier
from attentest.bench.plan import Planner
from attentest.bench.study import run_cells
from attentest.bench.work import attempt, do
from attentest.corpus.catalogue import load_corpus
from attentest.corpus.files import to_files
from attentest.fleet.trainer import Fleet
from attentest.model.config import ModelConfig
from attentest.model.networks.projection import Projection
from attentest.model.training.loop import Training
from attentest.model.training.provenance import parameters_digest
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store

SMALL = {"encoder": "average", "hidden": 8, "embedding": 6, "epochs": 4, "learning_rate": 0.02}
CONFIGS = [
    {"seed": 0},
    {"seed": 1, "projection": "sparsemax"},
    {"seed": 1, "labels": "shuffled", "epochs": 2},
]


def planned(store, configs=CONFIGS, device="cpu"):
    """The model cells of some configurations; their corpus is there."""
    planner = Planner(store, device=device)
    corpus = planner.corpus("planted-keyword")
    cells = []
    for settings in configs:
        config, where = planner.resolve(ModelConfig(**{**SMALL, **settings}), corpus)
        cells.append(planner.model(config, corpus, where))
    for cell in cells:
        store.plan(cell)
    store.write(corpus, few_texts(), {})
    return cells


@functools.cache
def few_texts():
    """The files of planted-keyword with few texts: what is planned is the same, only quicker."""
    whole = load_corpus("planted-keyword")
    return to_files(replace(whole, train=whole.train[:128], dev=whole.dev[:50], test=whole.test[:50]))


def keys(cells):
    return [cell.key for cell in cells]


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """The same cells, each trained by itself; tests only read it."""
    store = Store(str(tmp_path_factory.mktemp("alone") / "store"))
    for cell in planned(store):
        do(cell.key, store, "cpu")
    return store


def check_alike(expected, store, cells):
    for cell in cells:
        one, other = (load_tensors(each.read(cell.key, "model.safetensors")) for each in (expected, store))
        for name in one:
            torch.testing.assert_close(other[name], one[name], rtol=1e-3, atol=1e-4, msg=name)
        one, other = (json.loads(each.read(cell.key, "training.json")) for each in (expected, store))
        assert len(one["history"]) == len(other["history"]) and one["chosen"] == other["chosen"]
        assert one["scores"]["test"] == pytest.approx(other["scores"]["test"], abs=0.02)


def test_a_fleet_stores_what_trainings_alone_would(store, alone, monkeypatch):
    monkeypatch.setattr(fleets, "REPORT_EVERY", 0.0)
    cells, heard = planned(store), []
    attempt_together(keys(cells), store, "cpu", heard.append)
    assert sorted(event.key for event in heard if event.kind == "done") == sorted(keys(cells))
    assert {event.kind for event in heard} == {"done", "progress"}
    assert all(0 < event.detail["fraction"] <= 1 for event in heard if event.kind == "progress")
    check_alike(alone, store, cells)
    assert store.about(cells[0].key)["fleet"] == len(cells)


def test_what_is_there_already_is_left_alone(store):
    cells = planned(store)
    do(cells[0].key, store, "cpu")
    before, heard = store.about(cells[0].key), []
    attempt_together(keys(cells), store, "cpu", heard.append)
    assert sorted(event.key for event in heard if event.kind == "done") == sorted(keys(cells))
    assert store.about(cells[0].key) == before


@pytest.mark.parametrize("at", [1, 6, 11])
def test_an_interrupted_fleet_goes_on_and_its_members_may_go_on_alone(store, alone, monkeypatch, at):
    """Interrupted in the first step and in the middle of epochs; then half of it alone, half together."""
    cells, steps = planned(store), 0
    learn = Fleet._learn

    def learn_and_stop(self, *given):
        nonlocal steps
        steps += 1
        if steps == at:
            monkeypatch.setattr(fleets, "_sometimes", None)
        return learn(self, *given)

    sometimes = fleets._sometimes

    def interrupting(*given):
        on_step = sometimes(*given)

        def stop(step):
            on_step(step)
            if steps == at:
                raise KeyboardInterrupt

        return stop

    monkeypatch.setattr(Fleet, "_learn", learn_and_stop)
    monkeypatch.setattr(fleets, "_sometimes", interrupting)
    with pytest.raises(KeyboardInterrupt):
        attempt_together(keys(cells), store, "cpu", lambda event: None)
    monkeypatch.undo()
    left = [cell for cell in cells if not store.has(cell.key)]
    assert left and all(StoreCheckpoint(store, cell.key).load() is not None for cell in left)
    attempt(left[0].key, store, "cpu", lambda event: None)
    attempt_together(keys(left[1:]), store, "cpu", lambda event: None)
    check_alike(alone, store, cells)


def test_members_that_were_stopped_at_different_steps_go_on_in_fleets_of_their_own(store, alone, monkeypatch):
    cells, sizes = planned(store, [*CONFIGS[:2], {"seed": 2}]), []

    def stopped(self, step):
        self.save()
        if self.epoch == 2:
            raise RuntimeError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(Training, "progress", stopped)
        patch.setattr(work, "_sometimes", lambda report, always: lambda progress: None)
        attempt(cells[0].key, store, "cpu", lambda event: None)
    assert not store.has(cells[0].key)
    made = Fleet.__init__

    def counted(self, trainings):
        sizes.append(len(trainings))
        made(self, trainings)

    monkeypatch.setattr(Fleet, "__init__", counted)
    attempt_together(keys(cells), store, "cpu", lambda event: None)
    assert sorted(sizes) == [1, 2]
    check_alike(alone, store, cells[:2])


def test_where_a_fleet_fails_its_members_are_tried_one_by_one(store, alone, monkeypatch):
    def broken(self, *given):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Fleet, "_learn", broken)
    cells, heard = planned(store), []
    attempt_together(keys(cells), store, "cpu", heard.append)
    (said,) = [event.detail["error"] for event in heard if event.kind == "retried"]
    assert "out of memory" in said
    assert [event.key for event in heard if event.kind == "done"] == keys(cells)
    check_alike(alone, store, cells)


@pytest.mark.parametrize("in_a_recording", [False, True])
def test_a_fleet_too_large_for_the_memory_goes_on_as_two(store, alone, monkeypatch, in_a_recording):
    sizes, learn = [], Fleet._learn

    def narrow(self, *given):
        sizes.append(len(self.members))
        if len(self.members) > 2:
            try:
                raise torch.OutOfMemoryError("CUDA out of memory")
            finally:
                if in_a_recording:
                    raise RuntimeError("a previous error during capture")
        learn(self, *given)

    monkeypatch.setattr(Fleet, "_learn", narrow)
    cells, heard = planned(store), []
    attempt_together(keys(cells), store, "cpu", heard.append)
    assert sizes[0] == 3 and set(sizes[1:]) == {2}  # the third goes alone, which is no fleet
    assert sorted(event.key for event in heard if event.kind == "done") == sorted(keys(cells))
    check_alike(alone, store, cells)


def test_memory_of_a_gpu_is_returned_where_it_is_much(store, monkeypatch):
    returned = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: returned.append(True))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: fleets.WORTH_RETURNING)
    fleets.return_memory()
    assert not returned
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: fleets.WORTH_RETURNING + 1)
    fleets.return_memory()
    assert returned


@pytest.mark.parametrize("guide", [{}, {"cut": True}])
def test_a_guide_that_does_not_fit_is_refused_as_it_is_alone(store, monkeypatch, guide):
    """Missing texts and missing weights: the fleet gives up, and each member says why."""
    cells, heard = planned(store, [{"seed": 0}, {"seed": 1}]), []
    made = fleets.untrained

    def ill_guided(cell, *given):
        model, corpus, base = made(cell, *given)
        texts = (*corpus.train, *corpus.dev, *corpus.test)
        weights = {text.id: [1.0] + [0.0] * (len(text.tokens) - 2) for text in texts} if guide else {}
        model.projection, model.guide = Projection.parse("stored"), weights
        return model, corpus, base

    monkeypatch.setattr(fleets, "untrained", ill_guided)
    monkeypatch.setattr(work, "untrained", ill_guided)
    attempt_together(keys(cells), store, "cpu", heard.append)
    refused = [event for event in heard if event.kind == "refused"]
    assert [event.key for event in refused] == keys(cells)
    assert all("stored attention for text" in event.detail["what"] for event in refused)


def test_company_is_for_models_of_one_shape_and_corpus(store):
    cells = planned(store, [*CONFIGS, {"hidden": 9}, {"learning_rate": 0.1}, {"dropout": 0.3}], "cuda")
    first, second, third, wider, faster, unusual = map(batch_key, cells)
    assert first == second == third is not None
    assert len({first, wider, faster}) == 3 and unusual is None
    assert batch_key(Cell(stage="reading", version=1, config={"splits": ["test"]})) is None
    assert {batch_key(cell) for cell in planned(store)} == {None}  # on a CPU a key promises its bits


def test_a_frontier_hands_out_company_together_up_to_a_number(store):
    cells = planned(store, [{"seed": seed} for seed in range(5)] + [{"dropout": 0.3}], "cuda")
    found = Frontier({cell.key: cell for cell in cells}, batch_key, 3)
    assert [len(found.take()) for _ in range(4)] == [3, 2, 1, 0]
    plain = Frontier({cell.key: cell for cell in cells})
    assert [len(plain.take()) for _ in range(7)] == [1] * 6 + [0]


def test_enough_of_one_seed_go_without_the_others(store, monkeypatch):
    monkeypatch.setattr(frontier, "ENOUGH", 3)
    rates = {0: 4, 1: 3, 2: 2, 3: 1}  # so many of each seed
    configs = [{"seed": s, "attention_rate": 1.0 + n} for s, many in rates.items() for n in range(many)]
    cells = planned(store, configs, "cuda")
    found = Frontier({cell.key: cell for cell in cells}, batch_key, 8)
    seeds = {cell.key: cell.config.get("seed", 0) for cell in cells}
    assert [[seeds[key] for key in found.take()] for _ in range(3)] == [[0] * 4, [1] * 3, [2, 2, 3]]


def guided(store):
    """Two models, a reading of each, and a model guided by each reading."""
    planner = Planner(store, device="cuda")
    corpus = planner.corpus("planted-keyword")
    bases, readings, followers = [], [], []
    for seed in (0, 1):
        config, where = planner.resolve(ModelConfig(seed=seed, **SMALL), corpus)
        bases.append(planner.model(config, corpus, where))
        readings.append(planner.reading(bases[-1], corpus))
        asked = replace(config, projection="stored", guide=readings[-1].key)
        followers.append(planner.model(asked, corpus, where))
    return keys(bases), keys(readings), keys(followers), planner.missing([*followers])


def after_the_bases(bases, readings, cells):
    """The frontier once both bases are trained and both readings are being made."""
    found = Frontier(cells, batch_key, 8)
    assert sorted(found.take()) == sorted(bases)
    for key in bases:
        found.hear(Event("done", key))
    assert {*found.take(), *found.take()} == set(readings)
    return found


def test_a_company_that_only_readings_keep_apart_goes_together(store):
    bases, readings, followers, cells = guided(store)
    found = after_the_bases(bases, readings, cells)
    found.hear(Event("done", readings[0]))
    assert found.take() == [] and not found.is_over()
    found.hear(Event("done", readings[1]))
    assert sorted(found.take()) == sorted(followers)


def test_a_reading_that_failed_is_not_waited_for(store):
    bases, readings, followers, cells = guided(store)
    found = after_the_bases(bases, readings, cells)
    found.hear(Event("done", readings[0]))
    found.hear(Event("failed", readings[1], {"error": "it broke"}))
    assert found.take() == [followers[0]]


def test_a_full_company_waits_for_nobody(store):
    bases, readings, followers, cells = guided(store)
    found = Frontier(cells, batch_key, 1)
    assert found.take() + found.take() == bases
    for key in bases:
        found.hear(Event("done", key))
    assert found.take() + found.take() == readings
    found.hear(Event("done", readings[0]))
    assert found.take() == [followers[0]]


def test_a_training_is_not_waited_for(store):
    bases, readings, followers, cells = guided(store)
    found = Frontier(cells, batch_key, 8)
    assert sorted(found.take()) == sorted(bases)
    found.hear(Event("done", bases[0]))
    assert found.take() == [readings[0]]
    found.hear(Event("done", readings[0]))
    assert found.take() == [followers[0]]


def test_a_study_on_a_gpu_trains_in_fleets_and_on_a_cpu_one_by_one(store, monkeypatch):
    """The GPU is played by the CPU: what is looked at is who is handed out with whom."""
    jobs = []

    def noted(job, store, device, tell):
        jobs.append((device, len(job)))
        attempt_together(job, store, device, tell)

    monkeypatch.setattr(study, "attempt_together", noted)
    for module in (fleets, work):
        monkeypatch.setattr(module, "device_of", lambda cell, here: "cpu")
    for device in ("cuda", "cpu"):
        cells, planner = planned(store, device=device), Planner(store, device=device)
        planner.cells.update({cell.key: cell for cell in cells})
        run_cells(cells, planner, engine="inline")
        assert all(store.has(key) for key in keys(cells)) and len(cells) <= MOST
    assert jobs == [("cuda", 3)] + [("cpu", 1)] * 3


def test_the_members_of_a_fleet_carry_their_device_and_the_digest_of_their_parameters(store, monkeypatch):
    cells = planned(store, device="cuda")
    with pytest.raises(Refusal, match="trained_on = cuda"):
        train_together(cells, store, "cpu", lambda event: None)
    for module in (fleets, work):
        monkeypatch.setattr(module, "untrained", on_the_cpu(work.untrained))
    train_together(cells, store, "cuda", lambda event: None)
    for cell in cells:
        about = store.about(cell.key)
        assert about["config"]["trained_on"] == about["device"] == "cuda"
        assert about["torch"] == torch.__version__ and about["fleet"] == len(cells)
        assert about["parameters"] == parameters_digest(
            load_tensors(store.read(cell.key, "model.safetensors"))
        )


def on_the_cpu(made):
    """What makes a model, which plays on the CPU that it is on a GPU."""
    return lambda cell, store, device: made(cell, store, "cpu")


def test_the_events_of_one_member_are_not_those_of_the_others():
    found = Frontier({}, batch_key, 3)
    found.running = {"a", "b"}
    found.hear(Event("done", "a"))
    assert found.running == {"b"} and found.done == {"a"}
