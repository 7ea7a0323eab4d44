"""The engine for Ray: what it needs of a cluster, what a node does, and what is refused before any work."""

import importlib
import json
import os
import queue
import sys

import pytest

from attentest.bench.corpora import corpus_cell
from attentest.bench.engine import node
from attentest.bench.engine.contract import Needs
from attentest.bench.engine.local import Worker
from attentest.bench.needs import BASE, SHARE, check_room, needs_of, parse
from attentest.bench.sharing import answer
from attentest.cli.main import run
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from tests.processes import is_gone
from tests.toy_study import toml

# --- what a node does, without a cluster

ECHO = """
import json, os, sys, time
def say(kind, key, **detail):
    print(json.dumps({"kind": kind, "key": key, "detail": detail}), flush=True)
for line in sys.stdin:
    for key in line.split():
"""


def command(body):
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return ["python", "-I", "-S", "-c", ECHO + lines]


@pytest.fixture(autouse=True)
def _nothing_kept():
    yield
    for servant in node._kept.values():
        servant.end()
    node._kept.clear()
    node._answered.clear()


def kinds(events):
    return [(kind, key) for kind, key, _ in events]


def test_a_job_is_begun_and_done_cell_by_cell_and_the_worker_is_kept_for_the_next():
    told = command('say("progress", key, pid=os.getpid())\nsay("done", key)')
    first, second = list(node.do(["a", "b"], told, {})), list(node.do(["c"], told, {}))
    assert kinds(first) == [
        *(("begun", key) for key in "ab"),
        *((kind, key) for key in "ab" for kind in ("progress", "done")),
    ]
    assert kinds(second) == [("begun", "c"), ("progress", "c"), ("done", "c")]
    assert first[2][2] == second[1][2] and first[0][2]["worker"] == os.getpid()
    (other,) = [said for kind, _, said in node.do(["d"], told, {"SOMETHING": "else"}) if kind == "progress"]
    assert other["pid"] != first[2][2]["pid"] and is_gone(first[2][2]["pid"]) and len(node._kept) == 1


def test_a_death_says_its_status_and_what_was_written_before_it():
    told = command('print("x" * 9 + key, file=sys.stderr)\nif key == "b": os._exit(7)\nsay("done", key)')
    *before, (kind, _, detail) = node.do(["a", "b", "c"], told, {})
    assert kinds(before)[-1] == ("done", "a") and (kind, detail["status"]) == ("died", 7)
    assert detail["log"].splitlines() == ["xxxxxxxxxa", "xxxxxxxxxb"] and not node._kept


def test_the_log_of_a_failed_cell_comes_home_with_its_traceback_and_is_about_it_alone():
    told = command('print("said by", key, file=sys.stderr)\nsay("failed", key, error="E", traceback="T")')
    list(node.do(["a"], told, {}))
    *_, (_, _, detail) = node.do(["b"], told, {})
    traceback, heading, log = detail["traceback"].splitlines()
    assert (traceback, log) == ("T", "said by b") and "standard error on" in heading


def test_what_a_cancelled_job_has_is_kept_and_its_worker_ends(tmp_path):
    mark = tmp_path / "kept"
    told = command(
        f'try:\n    say("progress", key, pid=os.getpid())\n    time.sleep(600)\n'
        f'except KeyboardInterrupt:\n    open({str(mark)!r}, "w").close()\n    sys.exit(130)'
    )
    events = node.do(["a"], told, {})
    assert next(events)[0] == "begun"
    kind, _, detail = next(events)
    assert kind == "progress"
    with pytest.raises(KeyboardInterrupt):
        events.throw(KeyboardInterrupt())
    assert mark.exists() and is_gone(detail["pid"]) and not node._kept


def test_a_message_is_never_so_long_that_it_would_be_an_object_of_the_cluster():
    told = command(
        'print("l" * 10**6, file=sys.stderr)\nsay("failed", key, error="E", traceback="t" * 10**6)'
    )
    *_, (_, _, detail) = node.do(["a"], told, {})
    assert len(json.dumps(detail)) < 100_000  # what Ray sends along instead of storing


def test_a_node_that_comes_later_is_asked_before_its_first_job(monkeypatch):
    monkeypatch.setattr(node, "_node_id", lambda: "late")
    no = ["python", "-c", "import sys; print('no store'); sys.exit(2)"]
    told = command('say("done", key)')
    ((kind, _, detail),) = node.do(["a"], told, {}, no, ["early"])
    assert kind == "unfit" and detail["said"] == "no store\n" and not node._kept
    assert kinds(node.do(["a"], told, {}, no, ["late"])) == [("begun", "a"), ("done", "a")]
    yes = ["python", "-c", "print('here it is')"]
    assert kinds(node.do(["a"], told, {}, yes, ["early"])) == [("begun", "a"), ("done", "a")]


def test_a_worker_may_have_an_environment_and_a_log_of_its_own(tmp_path):
    heard = queue.Queue()
    said = ["-c", "import os, sys; print(os.environ['IT'], file=sys.stderr)"]
    with (tmp_path / "log").open("wb") as log:
        worker = Worker([sys.executable, *said], heard, environment={"IT": "is here"}, log=log)
        assert heard.get()[1] is None
        worker.end(at_once=False)
    assert (tmp_path / "log").read_text() == "is here\n"


# --- what cells take of a machine


@pytest.fixture
def cells(store, few_planted):
    corpus = corpus_cell("planted-keyword")
    on = {"corpus": corpus.key}

    def model(**more):
        return Cell(stage="model", version=1, config=ModelConfig.of(more).spelled(), inputs=on)

    made = {"corpus": corpus, "model": model(), "gpu": model(trained_on="cuda", seed=1)}
    made["observation"] = Cell(stage="observation", version=1, config={}, inputs=on)
    made["finding"] = Cell(stage="finding", version=1, config={}, inputs=on)
    return made


@pytest.mark.parametrize(
    ("names", "device", "gpus"),
    [
        (["model"], "cpu", 0),
        (["observation"], "cpu", 0),
        (["observation"], "cuda", SHARE),
        (["gpu"], "cuda", SHARE),
        (["gpu", "gpu"], "cuda", 1),
        (["model"], "cuda", 0),
        (["finding"], "cuda", 0),
        (["corpus"], "cuda", 0),
    ],
)
def test_a_fleet_takes_a_gpu_what_reads_a_share_and_the_rest_none(store, cells, names, device, gpus):
    needs = needs_of([cells[name] for name in names], store, device, {})
    assert (needs.cpus, needs.gpus) == (1, gpus)
    held = sum(file["bytes"] for file in store.about(cells["corpus"].key)["files"].values())
    assert needs.memory - BASE == (0 if names == ["corpus"] else 20 * held)


def test_what_a_user_says_of_a_stage_comes_first(store, cells):
    said = parse(["observation:gpus=0.5,memory=4GB", "fleet:cpus=2", "observation:cpus=3"])
    assert said == {"observation": {"gpus": 0.5, "memory": 4 * 2**30, "cpus": 3}, "fleet": {"cpus": 2}}
    assert needs_of([cells["observation"]], store, "cuda", said) == Needs(3.0, 0.5, 4 * 2**30)
    assert needs_of([cells["gpu"]] * 2, store, "cuda", said).cpus == 2
    assert needs_of([cells["gpu"]], store, "cuda", said).cpus == 1


@pytest.mark.parametrize(
    ("written", "device", "said"),
    [
        ("observation", "cuda", "STAGE:NAME=NUMBER"),
        ("observation:gpus=many", "cuda", "STAGE:NAME=NUMBER"),
        ("observations:gpus=1", "cuda", "a stage of corpus, model"),
        ("observation:gpu=1", "cuda", "cpus, gpus, memory"),
        ("observation:gpus=-1", "cuda", "zero or more"),
        ("observation:cpus=nan", "cuda", "zero or more"),
        ("observation:gpus=1", "cpu", "--device cuda"),
        ("fleet:gpus=3", "cuda", "at most 2, the most that a node has"),
        ("model:memory=1TB", "cpu", "the most that a node has"),
    ],
)
def test_resources_that_are_misspelled_or_that_no_node_has_are_refused(written, device, said):
    with pytest.raises(Refusal, match="--resources") as refused:
        check_room({"CPU": 4.0, "GPU": 2.0, "memory": 2.0**34}, device, parse([written]))
    assert said in str(refused.value)


# --- what is refused before any work


def test_without_ray_the_engine_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    store = tmp_path / "store"
    assert run(["study", toml(tmp_path), "--engine", "ray", "--store", str(store), "--json"]) == 2
    assert "pip install 'attentest[ray]'" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert not store.exists()


@pytest.mark.parametrize("option", [("--ray-address", "auto"), ("--resources", "model:cpus=1")])
def test_what_is_said_of_a_cluster_is_refused_of_another_engine(tmp_path, capsys, option):
    store = tmp_path / "store"
    assert run(["study", toml(tmp_path), *option, "--store", str(store)]) == 2
    assert option[0] in capsys.readouterr().err and not store.exists()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "ray://127.0.0.1:1"])
def test_an_address_where_no_cluster_answers_is_refused(tmp_path, capsys, monkeypatch, address):
    pytest.importorskip("ray", reason="needs the extra ray")
    store = tmp_path / "store"
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, "0")  # and forgotten again
    options = ["--engine", "ray", "--ray-address", address, "--store", str(store)]
    assert run(["study", toml(tmp_path), *options]) == 2
    assert f"--ray-address {address}" in capsys.readouterr().err and not store.exists()


def test_a_node_that_reads_something_else_or_runs_another_version_does_not_answer(tmp_path, store):
    version = importlib.metadata.version("attentest")
    store.replace(b"run", "making", "run", "home")
    token = json.loads(answer(store.url, "run", version))["token"]
    assert store.find("making", "run", token) == b"run"
    with pytest.raises(Refusal, match="without what was just written"):
        answer(str(tmp_path / "another"), "run", version)
    with pytest.raises(Refusal, match="another version"):
        answer(store.url, "run", "0.0.1")
