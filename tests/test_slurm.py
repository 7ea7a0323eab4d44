"""The guide's scripts for Slurm run here, with a loop for an array and a task that fails once."""

import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from attentest.bench.verbs import run_study
from attentest.cli.main import run
from attentest.store.store import Store
from tests.toy_study import PERFORMANCE, data_files, toml

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "clusters.md"
# As much of `sbatch --wait --array=1-N SCRIPT ...` as the guide uses; the first task of all is lost.
SBATCH = """#!/bin/bash
[[ "$1 $2" == "--wait --array=1-"* ]] || exit 9
count=${2#--array=1-}; shift 2
failed=0
for task in $(seq "$count"); do
  echo "$task $1" >> tasks
  if [ ! -e lost ]; then touch lost; failed=1; continue; fi
  SLURM_ARRAY_TASK_ID=$task bash "$@" || failed=1
done
exit $failed
"""
# `attentest` for the scripts: the command line of this process, in which torch is imported already.
ATTENTEST = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({path!r})
    line.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    status, out, err = json.loads(line.makefile().readline())
print(out, end="")
print(err, end="", file=sys.stderr)
sys.exit(status)
"""


def scripts():
    """The scripts of the guide by their names, each named in the line before it."""
    found = re.findall(
        r"`(\w+\.sh)`[^\n]*\n\n```bash\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
    )
    return dict(found)


def serve(listener, process):
    """Answer calls of `attentest` until the process has ended."""
    listener.settimeout(0.1)
    while process.poll() is None:
        with contextlib.suppress(TimeoutError):
            caller, _ = listener.accept()
            with caller, caller.makefile("rw") as line:
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    status = run(json.loads(line.readline()))
                line.write(json.dumps([status, out.getvalue(), err.getvalue()]) + "\n")


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_study_as_array_jobs_has_the_bytes_of_a_local_one_though_a_task_was_lost(tmp_path, monkeypatch):
    study, store = toml(tmp_path, PERFORMANCE), Store(tmp_path / "store")
    assert scripts().keys() == {"cell.sh", "study.sh"}
    for name, text in scripts().items():
        program(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    program(tmp_path / "bin" / "sbatch", SBATCH)
    program(tmp_path / "bin" / "attentest", ATTENTEST.format(python=sys.executable, path="socket"))
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        listener.listen()
        with subprocess.Popen(
            ["bash", "study.sh", study, store.url], env=os.environ | path, stderr=subprocess.PIPE, text=True
        ) as process:
            serve(listener, process)
            said = process.stderr.read()
    assert process.returncode == 0, said
    assert said.count("submitted again") == 1
    plan = json.loads(Path("plan.json").read_text())
    assert plan["plan"] == [] and plan["done"] == plan["cells"]
    assert len(Path("tasks").read_text().splitlines()) == len(store.done())  # the corpus is no task
    run_study(study, "local", engine="inline", device="cpu")
    assert data_files(store.url) == data_files("local")
