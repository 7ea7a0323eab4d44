"""Engines do every cell whose inputs exist, once; a worker's death is not the study's."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.bench.engine import inline, local
from attentest.bench.engine.contract import Event, Work
from attentest.bench.engine.local import Local
from attentest.bench.frontier import Frontier
from attentest.bench.plan import Planner
from attentest.bench.worker import _say
from attentest.model.config import ModelConfig
from attentest.store.cell import STAGES, Cell
from tests.processes import is_gone

# A worker in a few lines: BODY does the cell `key`; `folder` is where it may leave marks.
WORKER = """
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def say(kind, key, **detail):
    print(json.dumps({"kind": kind, "key": key, "detail": detail}), flush=True)
def times(name):
    with open(folder / name, "a") as file:
        file.write("x")
    return (folder / name).stat().st_size
for line in sys.stdin:
    key = line.strip()
"""


def worker(folder, body):
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return [sys.executable, "-I", "-S", "-c", WORKER + lines, str(folder)]


def cell(name, *inputs, stage="model"):
    return Cell(
        stage=stage, version=1, config={"name": name}, inputs={i.config["name"]: i.key for i in inputs}
    )


def diamond():
    top = cell("top")
    left, right = cell("left", top, stage="reading"), cell("right", top, stage="reading")
    bottom = cell("bottom", left, right, stage="observation")
    return {each.config["name"]: each for each in (bottom, left, right, top)}


class Run:
    """A run of some cells by some engine, and everything that was heard."""

    def __init__(self, cells, engine, work, on_event=lambda event: None):
        self.names = {each.key: name for name, each in cells.items()}
        self.frontier = Frontier({each.key: each for each in cells.values()})
        self.events = []
        self.on_event = on_event
        engine(self.frontier, work, self._hear)

    def _hear(self, event):
        self.frontier.hear(event)
        self.events.append(event)
        self.on_event(event)

    def heard(self, kind):
        return [self.names[event.key] for event in self.events if event.kind == kind]

    def workers(self):
        return [event.detail["worker"] for event in self.events if event.kind == "begun"]


def nothing_here(key, tell):
    raise AssertionError("this engine has processes for that")


def run_local(cells, command, workers=2, on_event=lambda event: None):
    return Run(cells, Local(workers).run, Work(here=nothing_here, command=command), on_event)


def test_inputs_are_done_before_what_needs_them_without_processes():
    done = Run(diamond(), inline.run, Work(here=lambda job, tell: tell(Event("done", *job)), command=[]))
    assert done.heard("begun") == done.heard("done") == ["top", "left", "right", "bottom"]
    assert done.frontier.is_over() and not done.frontier.failed


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_inputs_are_done_before_what_needs_them_in_processes(tmp_path, workers):
    body = 'say("progress", key, fraction=0.5)\nsay("done", key)'
    done = run_local(diamond(), worker(tmp_path, body), workers)
    story = [(event.kind, done.names[event.key]) for event in done.events]
    for needed, needs in [("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom")]:
        assert story.index(("done", needed)) < story.index(("begun", needs))
    assert sorted(done.heard("done")) == ["bottom", "left", "right", "top"]
    assert [e.detail for e in done.events if e.kind == "progress"] == [{"fraction": 0.5}] * 4
    # No more processes than there is work for at once.
    assert 1 <= len(set(done.workers())) <= min(workers, 2)
    assert all(is_gone(pid) for pid in done.workers())


def test_a_worker_that_dies_is_replaced_and_its_cell_tried_again(tmp_path):
    body = 'if times(key) < 2: os.kill(os.getpid(), signal.SIGKILL)\nsay("done", key)'
    done = run_local(diamond(), worker(tmp_path, body))
    assert sorted(done.heard("done")) == ["bottom", "left", "right", "top"]
    assert sorted(done.heard("retried")) == ["bottom", "left", "right", "top"]
    assert sorted(done.heard("begun")) == sorted(done.heard("done") * 2)
    assert "status -9" in next(e for e in done.events if e.kind == "retried").detail["error"]
    assert not done.frontier.failed and all(is_gone(pid) for pid in done.workers())


def test_a_cell_that_found_no_memory_waits_for_another_to_end(tmp_path):
    cells = diamond()
    left, right = (cells[name].key for name in ("left", "right"))
    crowded = (
        f'if key == "{left}" and times("found none") < 2:\n'
        '    say("postponed", key, error="OutOfMemoryError: none left", traceback="")\n'
        "    continue\n"
        f'if key == "{right}":\n'
        '    while not (folder / "found none").exists(): time.sleep(0.01)\n'
        "    time.sleep(0.2)\n"
        'say("done", key)'
    )
    done = run_local(cells, worker(tmp_path, crowded))
    assert done.heard("postponed") == ["left"] and not done.frontier.failed
    story = [(event.kind, done.names[event.key]) for event in done.events]
    again = len(story) - 1 - story[::-1].index(("begun", "left"))
    assert story.index(("done", "right")) < again < story.index(("done", "left"))


def test_three_deaths_are_the_cells_own_failure_and_the_others_are_done(tmp_path):
    cells = diamond()
    body = f'if key == "{cells["left"].key}": times("deaths"); os._exit(3)\nsay("done", key)'
    done = run_local(cells, worker(tmp_path, body))
    assert (tmp_path / "deaths").stat().st_size == 3
    assert sorted(done.heard("done")) == ["right", "top"]
    assert done.heard("failed") == ["left"] and done.heard("retried") == ["left", "left"]
    failed = {done.names[key]: error for key, error in done.frontier.failed.items()}
    assert failed["left"] == "its worker died 3 times (status 3)"
    assert failed["bottom"] == f"it needs {cells['left'].key[:12]}, which failed"
    assert done.frontier.is_over()


def test_a_worker_that_ends_after_every_cell_is_replaced_each_time(tmp_path):
    done = run_local(diamond(), worker(tmp_path, 'say("done", key)\nos._exit(0)'), workers=1)
    assert sorted(done.heard("done")) == ["bottom", "left", "right", "top"]
    assert len(set(done.workers())) >= 4 and not done.frontier.failed


class Companions(Frontier):
    """Hands out everything that is ready as one job."""

    def take(self):
        job = []
        while taken := super().take():
            job += taken
        return job


def together(monkeypatch, cells, body, tmp_path):
    monkeypatch.setattr(sys.modules[__name__], "Frontier", Companions)
    return run_local(cells, worker(tmp_path, body), workers=1)


def test_a_job_of_several_cells_is_one_line_and_ends_with_the_last_of_them(tmp_path, monkeypatch):
    body = 'open(folder / "jobs", "a").write(line)\nfor each in key.split():\n    say("done", each)'
    cells = {name: cell(name) for name in ("a", "b", "c")}
    done = together(monkeypatch, cells, body, tmp_path)
    assert sorted(done.heard("done")) == sorted(done.heard("begun")) == ["a", "b", "c"]
    (line,) = (tmp_path / "jobs").read_text().splitlines()
    assert sorted(line.split()) == sorted(each.key for each in cells.values())


def test_what_is_left_of_a_dead_workers_job_is_tried_cell_by_cell(tmp_path, monkeypatch):
    """It dies of the job after one cell: that one is done, the others come back by themselves."""
    body = """
open(folder / "jobs", "a").write(line)
say("done", key.split()[0])
if len(key.split()) > 1:
    os._exit(9)
"""
    done = together(monkeypatch, {name: cell(name) for name in ("a", "b", "c")}, body, tmp_path)
    assert sorted(done.heard("done")) == ["a", "b", "c"] and len(done.heard("retried")) == 2
    assert sorted(len(line.split()) for line in (tmp_path / "jobs").read_text().splitlines()) == [1, 1, 3]
    assert not done.frontier.failed


@pytest.mark.parametrize("road", ["inline", "local"])
def test_a_failing_cell_fails_its_dependants_but_not_the_others(tmp_path, road):
    cells = {**diamond(), "apart": cell("apart"), "after": cell("after", cell("apart"), stage="reading")}
    bad = cells["left"].key

    def here(job, tell):
        (key,) = job
        tell(Event("failed", key, {"error": "Broken: it"}) if key == bad else Event("done", key))

    body = f'say("failed", key, error="Broken: it") if key == "{bad}" else say("done", key)'
    engine = inline.run if road == "inline" else Local(2).run
    done = Run(cells, engine, Work(here=here, command=worker(tmp_path, body)))
    assert sorted(done.heard("done")) == ["after", "apart", "right", "top"]
    assert {done.names[key] for key in done.frontier.failed} == {"left", "bottom"}
    assert done.frontier.failed[bad] == "Broken: it"
    assert "bottom" not in done.heard("begun")


TORN = r"""
sys.stdout.write('{"kind": "do\n3\nnull\n[]\n"done"\n{}\n{"kind": "done"}\n\nnot json at all\n')
sys.stdout.flush()
sys.stdout.buffer.write(b"\xff\xfe\n")
say("done", key)
"""


def test_torn_lines_are_ignored(tmp_path):
    done = run_local(diamond(), worker(tmp_path, TORN))
    assert sorted(done.heard("done")) == ["bottom", "left", "right", "top"]
    assert not done.heard("retried")


def test_a_line_torn_by_death_is_a_death(tmp_path):
    body = (
        'if times(key) > 1: say("done", key); continue\n'
        'sys.stdout.write(\'{"kind": "done", "ke\'); sys.stdout.flush()\n'
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = run_local({"only": cell("only")}, worker(tmp_path, body))
    assert done.heard("retried") == ["only"] and done.heard("done") == ["only"]


def interrupt(event):
    if event.kind == "progress":
        raise KeyboardInterrupt


def test_an_interrupted_worker_may_keep_what_it_has(tmp_path):
    body = """
try:
    say("progress", key)
    time.sleep(600)
except KeyboardInterrupt:
    times("kept")
    sys.exit(130)
"""
    begun = []
    with pytest.raises(KeyboardInterrupt):
        run_local(
            {"only": cell("only")},
            worker(tmp_path, body),
            on_event=lambda event: (begun.append(event), interrupt(event)),
        )
    assert (tmp_path / "kept").stat().st_size == 1
    assert is_gone(begun[0].detail["worker"])


def test_a_worker_that_has_said_nothing_yet_is_not_waited_for(tmp_path):
    begun = []

    def interrupt_at_once(event):
        begun.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local({"only": cell("only")}, worker(tmp_path, 'times("given")'), on_event=interrupt_at_once)
    assert is_gone(begun[0].detail["worker"]) and not (tmp_path / "given").exists()


def test_a_worker_that_will_not_stop_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "PATIENCE", 0.1)
    body = 'signal.signal(signal.SIGINT, signal.SIG_IGN)\nsay("progress", key)\ntime.sleep(600)'
    begun = []
    with pytest.raises(KeyboardInterrupt):
        run_local(
            {"only": cell("only")},
            worker(tmp_path, body),
            on_event=lambda event: (begun.append(event), interrupt(event)),
        )
    assert is_gone(begun[0].detail["worker"])


def test_a_worker_that_will_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "PATIENCE", 0.1)
    done = run_local({"only": cell("only")}, worker(tmp_path, 'say("done", key)\ntime.sleep(600)'))
    assert done.heard("done") == ["only"] and all(is_gone(pid) for pid in done.workers())


def test_an_error_of_the_listener_ends_every_worker(tmp_path):
    body = 'say("progress", key)\ntime.sleep(600)'
    begun = []

    def refuse(event):
        begun.append(event)
        if event.kind == "progress":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_local({"one": cell("one"), "two": cell("two")}, worker(tmp_path, body), on_event=refuse)
    pids = [event.detail["worker"] for event in begun if event.kind == "begun"]
    assert len(pids) == 2 and all(is_gone(pid) for pid in pids)


def test_a_real_worker_ends_when_its_parents_pipe_closes_even_while_it_trains(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    endless = {"encoder": "average", "hidden": 8, "embedding": 8, "epochs": 1000, "learning_rate": 1e-9}
    config, where = planner.resolve(ModelConfig.of(endless | {"patience": 1000}), corpus)
    model = planner.model(config, corpus, where)
    store.plan(model)
    command = [sys.executable, "-m", "attentest.bench.worker", store.url, "cpu"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(model.key + "\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline())
        assert (said["kind"], said["key"]) == ("progress", model.key)
        assert said["detail"]["epoch"] == 1 and said["detail"]["epochs"] == 1000
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert not store.has(model.key) and store.failures() == {}


def test_a_worker_whose_listener_is_gone_is_interrupted_and_its_cell_does_not_fail():
    reading, writing = os.pipe()
    os.close(reading)
    out = os.fdopen(writing, "w")
    with pytest.raises(KeyboardInterrupt):
        _say(out, Event("progress", "key", {"fraction": 0.5}))
    with pytest.raises(BrokenPipeError):
        out.close()


# --- which cells are ready


def test_what_found_no_memory_is_ready_once_fewer_are_running():
    cells = [cell(str(number)) for number in range(4)]
    frontier = Frontier({each.key: each for each in cells})
    first, second, third = (frontier.take()[0] for _ in range(3))
    frontier.hear(Event("postponed", third, {"error": "no memory"}))
    (fourth,) = frontier.take()
    assert fourth != third
    frontier.hear(Event("done", first))
    assert frontier.take() == []  # as many are running as before
    frontier.hear(Event("done", second))
    assert frontier.take() == [third]
    frontier.hear(Event("postponed", third, {"error": "no memory"}))
    assert frontier.take() == []
    frontier.hear(Event("done", fourth))
    assert frontier.take() == [third] and not frontier.failed


def test_what_found_no_memory_alone_has_failed_and_what_needs_it_too():
    cells = diamond()
    frontier = Frontier({each.key: each for each in cells.values()})
    frontier.hear(Event("postponed", *frontier.take(), {"error": "no memory"}))
    assert frontier.is_over() and frontier.failed[cells["top"].key] == "no memory"
    assert set(frontier.failed) == {each.key for each in cells.values()}


@given(st.data())
def test_the_heap_hands_out_what_looking_at_all_that_wait_does(data):
    """A group for each cell says nothing, but has all of them looked at."""
    cells = []
    for number in range(data.draw(st.integers(1, 12))):
        inputs = data.draw(st.lists(st.sampled_from(cells), max_size=3)) if cells else []
        cells.append(cell(str(number), *inputs, stage=data.draw(st.sampled_from(STAGES))))
    ordered = {each.key: each for each in data.draw(st.permutations(cells))}
    heap, plain = Frontier(ordered), Frontier(ordered, lambda each: each.key)
    running = []
    while not plain.is_over():
        taken = plain.take()
        assert heap.take() == taken
        running += taken
        if running and (not taken or data.draw(st.booleans())):
            key = running.pop(data.draw(st.integers(0, len(running) - 1)))
            kind = data.draw(st.sampled_from(["done", "done", "failed"]))
            for frontier in (heap, plain):
                frontier.hear(Event(kind, key, {"error": "it"}))
    assert heap.is_over() and (heap.done, heap.failed) == (plain.done, plain.failed)


def test_the_earliest_stage_goes_first_and_nothing_twice():
    cells = [cell(stage, stage=stage) for stage in ("finding", "observation", "reading", "model", "corpus")]
    frontier = Frontier({each.key: each for each in cells})
    taken = [key for _ in cells for key in frontier.take()]
    assert taken == [each.key for each in reversed(cells)]
    assert frontier.take() == [] and not frontier.is_over()
    for key in taken:
        frontier.hear(Event("done", key))
    assert frontier.is_over() and frontier.done == set(taken)


def test_only_a_cell_whose_inputs_are_done_is_ready():
    cells = diamond()
    frontier = Frontier({each.key: each for each in cells.values()})
    assert frontier.take() == [cells["top"].key]
    assert frontier.take() == []  # it is running, not done
    frontier.hear(Event("progress", cells["top"].key))
    assert frontier.take() == []
    frontier.hear(Event("done", cells["top"].key))
    assert {*frontier.take(), *frontier.take()} == {cells["left"].key, cells["right"].key}
    frontier.hear(Event("done", cells["right"].key))
    assert frontier.take() == []
    frontier.hear(Event("done", cells["left"].key))
    assert frontier.take() == [cells["bottom"].key]


def test_inputs_outside_the_run_are_taken_to_exist():
    cells = diamond()
    frontier = Frontier({cells["bottom"].key: cells["bottom"]})
    assert frontier.take() == [cells["bottom"].key]


@pytest.mark.parametrize("kind, detail", [("failed", {"error": "why"}), ("refused", {"message": "why"})])
def test_whatever_rests_on_a_failure_fails_with_it_once(kind, detail):
    cells = diamond()
    frontier = Frontier({each.key: each for each in cells.values()})
    frontier.hear(Event(kind, *frontier.take(), detail))
    assert frontier.is_over() and frontier.done == set()
    assert frontier.failed[cells["top"].key] == "why"
    assert set(frontier.failed) == {each.key for each in cells.values()}
    assert frontier.take() == []
