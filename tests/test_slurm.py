"""The guide's scripts for Slurm run here, with a loop for an array and a task that fails once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from attentest.bench.verbs import run_study
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


def scripts():
    """The scripts of the guide by their names, each named in the line before it."""
    found = re.findall(
        r"`(\w+\.sh)`[^\n]*\n\n```bash\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
    )
    return dict(found)


def test_a_study_as_array_jobs_has_the_bytes_of_a_local_one_though_a_task_was_lost(tmp_path):
    study, store = toml(tmp_path, PERFORMANCE), Store(tmp_path / "store")
    run_study(study, str(tmp_path / "local"), engine="inline", device="cpu")
    programs = tmp_path / "bin"
    programs.mkdir()
    command = f'#!/bin/bash\nexec {sys.executable} -m attentest "$@"\n'
    for name, text in {"sbatch": SBATCH, "attentest": command}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    assert scripts().keys() == {"cell.sh", "study.sh"}
    for name, text in scripts().items():
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(
        ["bash", "study.sh", study, store.url],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("submitted again") == 1
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["plan"] == [] and plan["done"] == plan["cells"]
    assert len((tmp_path / "tasks").read_text().splitlines()) == len(store.done())  # the corpus is no task
    assert data_files(store.url) == data_files(tmp_path / "local")
