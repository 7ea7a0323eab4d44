"""A key says where a model was trained, its record which parameters it has; older models are labelled."""

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load as load_tensors
from torch import nn

import attentest as at
from attentest.auditing.digest import audited_digest
from attentest.bench import verbs
from attentest.bench.checkpoint import StoreCheckpoint
from attentest.bench.conclusion import conclude_all, list_cells
from attentest.bench.plan import Planner
from attentest.bench.verbs import run_one, run_study, train_one
from attentest.bench.work import device_of
from attentest.claims.claims import Claim
from attentest.claims.judging import Evidence, judged
from attentest.cli.main import run
from attentest.compare.points import grid_points, of_one_device, told_apart
from attentest.compare.stored import Stored
from attentest.compare.table import told_apart as told_apart_in_tables
from attentest.compare.verdicts import command
from attentest.foreign.adapter import AdaptedModel
from attentest.gallery.sections import _made
from attentest.model.config import ModelConfig
from attentest.model.training.provenance import parameters_digest, placed
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.provenance import SEVERAL, UNMARKED, Provenance
from attentest.store.store import Store
from attentest.studies.recipe import load_study
from attentest.web.shelf import Shelf
from tests.exporting import TOY

pytestmark = pytest.mark.usefixtures("short_search")

LABEL = "trained on a GPU before keys said so"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study on the CPU, done once."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "toy.toml").write_text(TOY)
    result = run_study(str(folder / "toy.toml"), str(folder / "store"), engine="inline", device="cpu")
    assert not result["failed"] and result["device"] == "cpu"
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of it, to be changed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(**more):
    return run_study("toy.toml", "store", engine="inline", **{"device": "cpu", **more})


def cells(stage, url="store"):
    store = Store(url)
    return {key: about for key in store.done() if (about := store.about(key))["stage"] == stage}


def rewrite(key, **notes):
    """Change what a cell's record says of how it was made; None takes a field away."""
    path = Path("store", "cells", key, "cell.json")
    about = json.loads(path.read_bytes()) | notes | {"checksum": None}
    path.write_text(json.dumps({name: value for name, value in about.items() if value is not None}))


def trained(seeds=(0, 1)):
    """The models that learnt something."""
    found = cells("model")
    return [
        k
        for k, about in found.items()
        if about["config"]["epochs"] and about["config"].get("seed", 0) in seeds
    ]


def make_old(seeds=(0, 1)):
    """As if an older version had done all of it on a GPU."""
    for key in [*cells("model"), *cells("reading"), *cells("observation"), *cells("finding")]:
        about = Store("store").about(key)
        if about["stage"] != "model" or key in trained(seeds) or not about["config"]["epochs"]:
            rewrite(key, device="cuda", parameters=None)


# --- the digest


def test_the_digest_is_of_names_types_shapes_and_bits_and_of_nothing_else():
    state = {"b.weight": torch.randn(3, 4), "a": torch.tensor(2), "c": torch.randn(5).bfloat16()}
    digest = parameters_digest(state)
    assert len(digest) == 64 and int(digest, 16)
    again = dict(reversed([(name, tensor.clone()) for name, tensor in state.items()]))
    again["b.weight"] = nn.Parameter(again["b.weight"].T.contiguous().T)  # other strides, a gradient wanted
    assert parameters_digest(again) == digest
    one_bit = state["b.weight"].clone()
    one_bit.view(torch.int32)[1, 2] ^= 1
    others = [
        {**state, "b.weight": one_bit},
        {**state, "b.weight": state["b.weight"].reshape(4, 3)},
        {**state, "a": state["a"].float()},
        {**state, "c": state["c"].view(torch.int16)},
        {"b.weight": state["b.weight"], "d": state["a"], "c": state["c"]},
    ]
    assert len({digest, *map(parameters_digest, others)}) == len(others) + 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_digest_does_not_depend_on_the_device():
    model = nn.LSTM(3, 4)
    here = parameters_digest(model.state_dict())
    assert parameters_digest(model.to("cuda").state_dict()) == here


def test_an_audit_says_which_parameters_it_was_of(planted):
    model = at.train(planted, encoder="average", hidden=8, embedding=8, epochs=1)
    found = at.audit(model, planted.test[:40], budget="quick")
    assert found.document["parameters"] == parameters_digest(model.state_dict())


class Plain:
    """An adapter that is no module but has one, and a table."""

    def __init__(self):
        self.embedding, self.table, self.name = nn.Embedding(6, 3), torch.randn(3, 2), "plain"

    def numbers(self, words):
        return [len(word) % 6 for word in words]

    def attend(self, vectors, mask):
        return vectors, mask / mask.sum(1, keepdim=True)

    def decide(self, states, weights):
        return (weights[..., None] * states).sum(1) @ self.table

    def predict(self, tokens, mask):
        return self.decide(*self.attend(self.embedding(tokens), mask))


def test_what_an_adapter_holds_is_in_the_digest_of_its_audit():
    adapter = Plain()
    one = audited_digest(AdaptedModel(adapter, ("no", "yes")))
    assert audited_digest(AdaptedModel(copy.deepcopy(adapter), ("no", "yes"))) == one
    adapter.table[0, 0] += 1
    assert audited_digest(AdaptedModel(adapter, ("no", "yes"))) != one


# --- keys


def test_the_key_of_a_model_trained_on_a_cpu_is_what_it_was_before_keys_said_so(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    model = planner.model(*planner.resolve(ModelConfig(), corpus)[:1], corpus, {})
    assert model.key == "cd38b2dbf54a9095b3f5c56134801fc7930951c27f8983bc07645280684d30dd"
    assert "trained_on" not in model.config
    elsewhere = Planner(store, device="cuda")
    other = elsewhere.model(*elsewhere.resolve(ModelConfig(), corpus)[:1], corpus, {})
    assert other.config == {**model.config, "trained_on": "cuda"} and other.key != model.key


def test_every_model_planned_for_a_gpu_says_so_but_for_those_that_learn_nothing(store):
    """Siblings and the candidates of a choice, too; corpora and untrained models are those of the CPU."""
    settings = {"hidden": 8, "embedding": 8, "epochs": 2, "attention_rates": [1.0, 10.0]}
    asked = load_study("demo-sparse").model_copy(update={"seeds": 1, "model": settings})
    planners = {device: Planner(store, device=device) for device in ("cpu", "cuda")}
    findings = {device: planner.study(asked) for device, planner in planners.items()}
    there = planners["cuda"].cells.values()
    models = [cell for cell in there if cell.stage == "model"]
    assert {(cell.config["epochs"] == 0, cell.config.get("trained_on")) for cell in models} == {
        (True, None),
        (False, "cuda"),
    }
    assert any("rate 10" in cell.inputs for cell in models)
    assert {cell.config["model"]["trained_on"] for cell in findings["cuda"]} == {"cuda"}
    assert not any("trained_on" in cell.config["model"] for cell in findings["cpu"])
    shared = planners["cpu"].cells.keys() & planners["cuda"].cells.keys()
    stages = {planners["cpu"].cells[key].stage for key in shared}
    assert stages == {"corpus", "model"}
    assert all(ModelConfig.of(cell.config).epochs == 0 for cell in models if cell.key in shared)
    assert len([cell for cell in models if cell.key in shared]) == len(
        [c for c in models if not c.config["epochs"]]
    )


def test_the_device_is_settled_before_planning(here, monkeypatch):
    by_device = {device: study(only_plan=True, device=device) for device in ("cpu", "cuda", "auto")}
    assert by_device["cpu"]["plan"] == [] and by_device["auto"]["device"] == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    found = study(only_plan=True, device="auto")
    assert found["device"] == "cuda" and found["plan"] == by_device["cuda"]["plan"] != []
    store = Store("store")
    models = [store.cell(cell["cell"]) for cell in found["plan"] if cell["stage"] == "model"]
    assert models and all(cell.config["trained_on"] == "cuda" for cell in models)  # the untrained are here


def test_who_trains_does_not_say_where_in_the_settings(here, planted):
    for ask in (
        lambda: train_one("planted-keyword", {"trained_on": "cuda"}, "store", device="cpu"),
        lambda: at.train(planted, trained_on="cpu"),
    ):
        with pytest.raises(Refusal, match="--device"):
            ask()
    Path("toy.toml").write_text(TOY.replace("epochs = 1", 'epochs = 1\ntrained_on = "cuda"'))
    with pytest.raises(Refusal, match="--device"):
        study()
    with pytest.raises(Refusal, match="cpu, cuda"):
        ModelConfig(trained_on="tpu")


def test_an_untrained_model_has_no_device_whatever_it_is_placed_on():
    assert placed(ModelConfig(epochs=0, trained_on="cuda"), "cuda").trained_on == "cpu"
    assert placed(ModelConfig(epochs=3), "cuda").trained_on == "cuda"
    assert placed(ModelConfig(trained_on="cuda"), "cpu").trained_on == "cpu"


# --- doing cells


def test_a_model_of_a_gpu_is_not_trained_on_a_cpu(here, capsys):
    plan = study(only_plan=True, device="cuda")["plan"]
    key = next(cell["cell"] for cell in plan if cell["stage"] == "model")
    for device in ("cpu", "auto"):
        with pytest.raises(Refusal, match="its key says trained_on = cuda"):
            run_one(key, "store", device=device)
    assert run(["run-cell", key, "--store", "store"]) == 2
    assert run(["run-cell", key, "--store", "store", "--device", "cuda"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "needs a CUDA device" in said[0] and "--device cpu" in said[1]
    assert not Store("store").has(key) and not Store("store").failures()


def test_a_key_of_a_cpu_is_trained_on_the_cpu_wherever_that_is(tmp_path, made, monkeypatch):
    """The same bytes, and the record says cpu: of the untrained, which a study on a GPU needs, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verbs, "best_device", lambda asked: "cpu" if asked == "cpu" else "cuda")
    plan = run_study(str(made / "toy.toml"), "store", only_plan=True, seeds=1, device="cpu")["plan"]
    for cell in plan:
        if cell["stage"] in ("corpus", "model"):
            assert run_one(cell["cell"], "store")["device"] == (None if cell["stage"] == "corpus" else "cpu")
    store, first = Store("store"), Store(str(made / "store"))
    assert {about["config"]["epochs"] for about in cells("model").values()} == {0, 1}
    for key, about in cells("model").items():
        assert about["device"] == "cpu" and about["parameters"] == first.about(key)["parameters"]
        assert all(store.read(key, name) == first.read(key, name) for name in about["files"])


def test_anything_but_a_training_is_done_where_it_is_asked_for():
    reading = Cell(stage="reading", version=1, config={"splits": ["test"]})
    model = Cell(stage="model", version=1, config={"trained_on": "cuda"})
    assert device_of(reading, "cpu") == "cpu" and device_of(reading, "cuda") == "cuda"
    assert device_of(model, "cuda") == "cuda"


def test_a_training_does_not_go_on_where_another_device_stopped(store):
    state = {"weight": torch.ones(2)}
    StoreCheckpoint(store, "key", "cuda").save(state, {"step": 3})
    assert StoreCheckpoint(store, "key", "cpu").load() is None
    assert StoreCheckpoint(store, "key", "cuda").load()[1]["step"] == 3


def test_a_model_trained_in_python_knows_where(planted):
    model = at.train(planted, encoder="average", hidden=8, embedding=8, epochs=1, device="cpu")
    assert model.config.trained_on == "cpu"


# --- the record


def test_the_record_of_models_and_observations_holds_device_torch_and_digests(here):
    store, models = Store("store"), cells("model")
    for key, about in models.items():
        state = load_tensors(store.read(key, "model.safetensors"))
        assert about["parameters"] == parameters_digest(state)
    for about in [*models.values(), *cells("observation").values()]:
        assert about["device"] == "cpu" and about["torch"] == torch.__version__
    seen = {about["config"]["experiment"]: about for about in cells("observation").values()}
    for (
        about
    ) in seen.values():  # `performance` asks the readings and loads no model; its record says which, too
        roles = {"trained": "model"} | {
            role.removeprefix("sibling."): role for role in about["inputs"] if role.startswith("sibling.")
        }
        expected = {name: models[about["inputs"][role]]["parameters"] for name, role in roles.items()}
        assert about["parameters"] == expected
    assert set(seen["permutation"]["parameters"]) == {"trained", "untrained", "shuffled labels"}
    assert not any("parameters" in about for about in cells("finding").values())


def test_what_train_says_has_the_device(here, capsys):
    settings = {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 1}
    found = train_one("planted-keyword", settings, "store", device="auto")
    assert found["device"] == "cpu" and found["cell"] in trained()
    assert run(["list", "--store", "store", "--json"]) == 0
    listed = {cell["cell"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert listed[found["cell"]]["device"] == listed[found["cell"]]["trained_on"] == "cpu"
    assert {cell["label"] for cell in listed.values()} == {""}


# --- cells of older versions


def test_models_that_a_gpu_trained_under_the_key_of_a_cpu_are_labelled(here, capsys):
    make_old()
    listed = {cell["cell"]: cell for cell in list_cells("store")["cells"]}
    untrained = cells("model").keys() - trained()
    for key, cell in listed.items():
        looks_at_trained = cell["stage"] in ("observation", "finding") or key in trained()
        if looks_at_trained:
            assert cell["label"] == LABEL and cell["trained_on"] == UNMARKED, cell
        if key in untrained or cell["stage"] == "corpus":
            assert cell["label"] == cell["trained_on"] == ""
    assert run(["list", "--store", "store"]) == 0
    assert "before keys said so" in " ".join(capsys.readouterr().out.split())
    models = {model.key: model for model in Shelf(Store("store")).models()}
    assert {models[key].trained_on for key in trained()} == {UNMARKED}


@pytest.mark.parametrize(
    "again",
    [
        lambda: study(),
        lambda: study(seeds=3),
        lambda: study(only_plan=True),
        lambda: study(seeds=1, only_plan=True),
        lambda: train_one(
            "planted-keyword",
            {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 1},
            "store",
            device="cpu",
        ),
    ],
)
def test_nothing_new_is_made_from_them(here, again):
    make_old()
    before = Store("store").done()
    with pytest.raises(Refusal, match=r"before keys said so.*another --store"):
        again()
    assert Store("store").done() == before


def test_one_of_several_seeds_is_enough_to_refuse(here):
    make_old(seeds=(1,))
    study(seeds=1)  # for this one everything was made on the CPU
    with pytest.raises(Refusal, match="before keys said so"):
        study(seeds=2)


def test_a_single_planned_cell_is_not_made_from_them_either(here):
    key = next(iter(cells("observation")))
    shutil.rmtree(Path("store", "cells", key))
    make_old()
    assert run(["run-cell", key, "--store", "store"]) == 2
    with pytest.raises(Refusal, match="before keys said so"):
        run_one(key, "store", device="cpu")


def test_where_the_models_did_not_travel_their_observations_tell(here):
    make_old()
    for key in [*cells("model"), *cells("reading")]:
        shutil.rmtree(Path("store", "cells", key))
    assert {cell["label"] for cell in list_cells("store")["cells"] if cell["stage"] == "finding"} == {LABEL}
    with pytest.raises(Refusal, match="before keys said so"):
        study(seeds=3)
    for key in cells("observation"):
        shutil.rmtree(Path("store", "cells", key))
    assert {cell["label"] for cell in list_cells("store")["cells"] if cell["stage"] == "finding"} == {LABEL}


def test_an_exported_file_brings_the_label_along(here, capsys):
    make_old()
    assert run(["store", "export", "--store", "store", "--findings", "old.parquet"]) == 0
    assert run(["store", "import", "old.parquet", "--store", "elsewhere"]) == 0
    capsys.readouterr()
    listed = list_cells("elsewhere")["cells"]
    assert {cell["label"] for cell in listed if cell["stage"] == "finding"} == {LABEL}
    with pytest.raises(Refusal, match="before keys said so"):
        run_study("toy.toml", "elsewhere", engine="inline", device="cpu")


def test_a_store_of_a_cpu_without_its_models_is_as_good_as_before(here):
    for key in [*cells("model"), *cells("reading")]:
        shutil.rmtree(Path("store", "cells", key))
    assert study()["computed"] == 0 and {cell["label"] for cell in list_cells("store")["cells"]} == {""}


def test_on_a_gpu_all_are_trained_again_and_the_untrained_are_shared(here):
    make_old()
    plan = study(only_plan=True, device="cuda")["plan"]
    planned = [Store("store").cell(cell["cell"]) for cell in plan if cell["stage"] == "model"]
    assert len(planned) == len(trained()) and all(cell.config["trained_on"] == "cuda" for cell in planned)


def test_what_was_concluded_from_them_can_be_read(here, capsys):
    make_old()
    found = conclude_all("store")
    assert found["same"] == len(cells("finding")) and not (found["changed"] or found["mixed"])
    assert found["labels"] == dict.fromkeys(cells("finding"), LABEL)
    assert run(["conclude", "--store", "store"]) == 0 and LABEL in capsys.readouterr().out
    stored = Stored(Store("store"))
    (point,) = grid_points(stored)
    assert ("trained on", UNMARKED) in _made(point) and told_apart([point]) == [LABEL]
    assert all(f"trained_on {UNMARKED}" in said for said in told_apart_in_tables(stored.every))
    said = command({"toy.toml": load_study("toy.toml")}, stored.every[0])
    assert said == "attentest study toy.toml --corpus planted-keyword --device cuda"


def test_a_page_says_cpu_and_nothing_tells_it_apart(here):
    stored = Stored(Store("store"))
    (point,) = grid_points(stored)
    assert ("trained on", "cpu") in _made(point) and told_apart([point]) == [""]
    assert "trained_on" not in point.settings


def test_a_finding_of_seeds_from_different_devices_is_not_written(here, capsys):
    """Two stores were merged, say, and the finding was only planned."""
    finding = next(iter(cells("finding")))
    shutil.rmtree(Path("store", "cells", finding))
    make_old(seeds=(1,))
    assert run(["conclude", "--store", "store", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mixed"] == [finding] and found["written"] == []
    (other,) = cells("finding")
    assert found["labels"] == {other: f"trained on {SEVERAL}"}
    assert not Store("store").has(finding)


def test_findings_of_old_models_and_of_new_ones_are_two_grid_points(here):
    """By hand, since no study would make the second beside the first."""
    finding = next(iter(cells("finding")))
    store, seen = Store("store"), {}
    make_old()
    for role, key in store.cell(finding).inputs.items():
        old = store.cell(key)
        model = replace(store.cell(old.inputs["model"]), version=99)
        store.write(model, {}, {"device": "cpu"})
        seen[role] = replace(old, inputs={"corpus": old.inputs["corpus"], "model": model.key})
        store.write(seen[role], {"rows.parquet": store.read(key, "rows.parquet")}, {"device": "cuda"})
    new = replace(store.cell(finding), inputs={role: cell.key for role, cell in seen.items()})
    store.write(new, {"findings.parquet": store.read(finding, "findings.parquet")}, {})
    points = sorted(grid_points(Stored(store)), key=lambda point: len(point.findings))
    assert [len(point.findings) for point in points] == [1, 2]
    assert told_apart(points) == ["trained on cpu", LABEL]
    assert of_one_device([points[1], points[0], points[1]]) == [points[1]] * 2


def test_models_of_one_device_are_compared_with_each_other():
    claim = Claim(
        says="They differ.",
        statistic="importance/tau/overall",
        where={"encoder": ["average"]},
        against={"encoder": "bilstm"},
        supported_if="difference > 0.1",
        refuted_if="difference < 0.1",
    )

    def evidence(encoder, estimate, **model):
        config = {"experiment": "importance", "mode": "corrected", "parameters": {}, "model": model}
        config |= {"corpus": "sst", "encoder": encoder, "attention": "additive", "projection": "softmax"}
        row = {"experiment": "importance", "measure": "tau", "group": "overall", "mode": "corrected"}
        row |= {
            "estimate": estimate,
            "low": estimate,
            "high": estimate,
            "null": 0.0,
            "seed_std": 0.01,
            "seeds": 3,
        }
        return Evidence(config, None, pd.DataFrame([row | {"n": 10, "std": 0.0, "excluded": 0, "why": ""}]))

    here = {"own": evidence("average", 0.6), "gpu": evidence("bilstm", 0.1, trained_on="cuda")}
    (verdict,) = [said for _, said in judged([claim], here)]
    assert verdict.verdict == "undecided"
    (verdict,) = [said for _, said in judged([claim], here | {"cpu": evidence("bilstm", 0.2)})]
    assert verdict.verdict == "supported"


def test_a_description_that_cannot_be_read_tells_nothing(here):
    key = trained()[0]
    Path("store", "cells", key, "cell.json").write_text("{")
    assert Provenance.of(Store("store")).places(key) == frozenset()
