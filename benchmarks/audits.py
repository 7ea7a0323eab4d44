"""A whole audit beside that of an earlier commit.

The model has MiniLM's shape (6 layers, 384 wide, 12 heads) and random parameters; texts are as long as SST's.
Seconds are processor time of one thread, so that what else the machine does counts little.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attentest.corpus.example import Example
from benchmarks.hugging_face import word_tokenizer
from benchmarks.made import Row

BEFORE = "af4d029"  # the commit before parts were shared
ROOT = Path(__file__).parents[1]
AUDITED = 100
TIMED = """
import json, sys, time
import torch
torch.set_num_threads(1)
import attentest
from benchmarks_audits import minilm_sized, sentences
import attentest as at
transformer, tokenizer = minilm_sized()
examples = sentences(int(sys.argv[1]))
begun = time.process_time()
at.audit(transformer, examples, tokenizer=tokenizer, budget="quick")
print(json.dumps(time.process_time() - begun))
"""


def minilm_sized() -> tuple[Any, Any]:
    """The model and its tokenizer of words."""
    transformers = importlib.import_module("transformers")
    tokenizer = word_tokenizer()
    torch.manual_seed(0)
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_labels=2, pad_token_id=0, **shape)
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():  # else no word changes an answer by more than rounding does
        model.classifier.weight.mul_(20.0)
        model.bert.embeddings.word_embeddings.weight.mul_(5.0)
    return model, tokenizer


def sentences(count: int) -> list[Example]:
    """Texts of 4 to 40 words, 19 on average, as those of SST are."""
    rng = np.random.default_rng(0)
    lengths = rng.gamma(4.0, 4.75, count).round().clip(4, 40).astype(int)
    return [
        Example(id=f"t{n}", tokens=tuple(f"w{w}" for w in rng.integers(30_000, size=length)), label="LABEL_0")
        for n, length in enumerate(lengths)
    ]


def audit_seconds(source: Path, texts: int) -> float:
    """Seconds of processor time that a whole quick audit takes with the package in this folder."""
    with tempfile.TemporaryDirectory() as made:
        text = "\n\n".join(map(inspect.getsource, (word_tokenizer, minilm_sized, sentences)))
        head = "import importlib\nfrom typing import Any\nimport numpy as np\nimport torch\n"
        head += "from attentest.corpus.example import Example\n"
        (Path(made) / "benchmarks_audits.py").write_text(head + text, encoding="utf-8")
        paths = os.pathsep.join((str(source), made))
        said = subprocess.run(
            [sys.executable, "-c", TIMED, str(texts)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            check=True,
        )
    return float(json.loads(said.stdout.decode().splitlines()[-1]))


def whole_audit() -> Row | None:
    """The code of the earlier commit comes out of this repository; without its history there is no row."""
    packed = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        return None
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as held:
            held.extractall(folder, filter="data")
        before = audit_seconds(Path(folder) / "src", AUDITED)
    name = f"quick audit, MiniLM's shape, {AUDITED} texts; beside the code of {BEFORE} (processor time)"
    now = audit_seconds(ROOT / "src", AUDITED)
    return name, before, now, "leave-one-out and parts that are drawn: matrix products"


def rows() -> list[Row | None]:
    return [] if importlib.util.find_spec("transformers") is None else [whole_audit()]
