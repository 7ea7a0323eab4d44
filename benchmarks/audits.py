"""A whole audit beside that of an earlier commit, and its explainers beside Captum's own at equal error.

The model has MiniLM's shape (6 layers, 384 wide, 12 heads) and random parameters; texts are as long as SST's.
Seconds are processor time of one thread, so that what else the machine does counts little.

The error of a budget is how far the values of a text, less their mean, are from those of a long run of the
same estimator, beside the length of those: the mean over texts. For each explainer and side the smallest
budget is looked for, of those that double, that comes below the error that is asked for. That run is timed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attentest.corpus.example import Example
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.presence import explained
from attentest.evidence.importances.sampled import Precision, sampled
from attentest.foreign.loading import adopt
from attentest.foreign.transformer import TransformerModel
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from benchmarks.made import Row

BEFORE = "af4d029"  # the commit before parts were shared
ROOT = Path(__file__).parents[1]
AUDITED, EXPLAINED, ERROR = 100, 4, 0.3
SAMPLES, STEPS = 200, 32  # at equal evaluations
LONG_PAIRS, LONG_SAMPLES, LONG_STEPS = 4096, 6144, 300
CLS, SEP = torch.tensor([2]), torch.tensor([3])
Values = list[Tensor]  # one a text, one number a unit
Run = Callable[[int], list[Values]]  # from a budget to the values of one explainer, or of two
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
    transformers, tokenizers = (importlib.import_module(name) for name in ("transformers", "tokenizers"))
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    numbers = {word: n for n, word in enumerate((*special, *(f"w{n}" for n in range(30_000))))}
    pieces = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, numbers[name]) for name in special],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names)
    torch.manual_seed(0)
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    config = transformers.BertConfig(vocab_size=len(numbers), num_labels=2, pad_token_id=0, **shape)
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
        text = Path(__file__).read_text(encoding="utf-8")
        begin, end = text.index("def minilm_sized"), text.index("def audit_seconds")
        head = "import importlib\nfrom typing import Any\nimport numpy as np\nimport torch\n"
        head += "from attentest.corpus.example import Example\n"
        (Path(made) / "benchmarks_audits.py").write_text(head + text[begin:end], encoding="utf-8")
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
    return name, before, audit_seconds(ROOT / "src", AUDITED), "leave-one-out and gradients: matrix products"


@final
class Captum:
    """Captum's own loop: a text at a time, read by the library's model; units that are gone are deleted."""

    def __init__(self, model: TransformerModel, reading: Reading) -> None:
        self.model, self.reading = model, reading
        self.library = importlib.import_module("captum.attr")
        self.best = explained(model, reading).predicted.tolist()
        self.lengths = reading.mask.sum(1).tolist()

    def shapley(self, samples: int) -> list[Values]:
        """KernelSHAP as it is."""
        return [self._perturbed(self.library.KernelShap, samples)]

    def lime(self, samples: int) -> list[Values]:
        """LIME with Captum's kernel and parts, by least squares: its lasso shrinks values."""
        models = importlib.import_module("captum._utils.models.linear_model")
        return [self._perturbed(self.library.Lime, samples, models.SkLearnLinearRegression)]

    def path(self, steps: int) -> list[Values]:
        """Integrated gradients from words of zeros, between the tokenizer's own marks."""
        found = []
        for text, units in enumerate(self.lengths):
            vectors = self.model.embedding(self._ids(text, torch.ones(units)))[None].detach()
            start = vectors.clone()
            start[:, 1:-1] = 0.0
            likely = self.library.IntegratedGradients(
                lambda v, text=text: self._answer(text, inputs_embeds=v)
            )
            slopes = likely.attribute(vectors, baselines=start, n_steps=steps, internal_batch_size=64)
            found.append(slopes.sum(-1)[0, 1:-1])
        return [found]

    def _perturbed(self, kind: Any, samples: int, fitted: Any = None) -> Values:
        torch.manual_seed(0)
        found = []
        for text, units in enumerate(self.lengths):
            asked = kind(lambda there, text=text: self._likely(text, there), *([fitted()] if fitted else []))
            whole = torch.ones(1, units)
            found.append(asked.attribute(whole, n_samples=samples, perturbations_per_eval=64)[0])
        return found

    def _likely(self, text: int, there: Tensor) -> Tensor:
        texts = [self._ids(text, kept) for kept in there]
        padded = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in texts], batch_first=True)
        with torch.no_grad():
            return self._answer(text, input_ids=padded, attention_mask=mask)

    def _ids(self, text: int, kept: Tensor) -> Tensor:
        return torch.cat([CLS, self.reading.batch.tokens[text, : len(kept)][kept.bool()], SEP])

    def _answer(self, text: int, **inputs: Tensor) -> Tensor:
        return distribution(self.model.transformer(**inputs).logits)[:, self.best[text]]


def ours(model: TransformerModel, reading: Reading) -> tuple[Run, Run]:
    """LIME and Shapley values of one set of pairs; and integrated gradients."""
    lengths = reading.mask.sum(1).tolist()

    def apart(values: Tensor) -> Values:
        return [row[:length] for row, length in zip(values, lengths, strict=True)]

    def both(pairs: int) -> list[Values]:
        wanted = Precision(error=1e-9, first=pairs, most=pairs)
        found = sampled(model, reading, wanted, rng=torch.Generator().manual_seed(pairs))
        return [apart(found.shapley), apart(found.lime)]

    return both, lambda steps: [apart(integrated_gradients(model, reading, steps=steps))]


def off(found: Values, truth: Values) -> float:
    """The error as it is defined above."""
    return float(
        np.mean([_off(one.double(), other.double()) for one, other in zip(found, truth, strict=True)])
    )


def _off(found: Tensor, truth: Tensor) -> float:
    truth, found = truth - truth.mean(), found - found.mean()
    return float((found - truth).norm() / truth.norm())


def processor(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, and what came out."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def reached(run: Run, budgets: Iterable[int], truth: list[Values], error: float) -> tuple[float, int, float]:
    """Seconds of the first budget that comes below the error in all that it finds, with both."""
    for budget in budgets:
        spent, found = processor(lambda budget=budget: run(budget))  # type: ignore[misc]
        worst = max(off(one, true) for one, true in zip(found, truth, strict=True))
        print(f"  {budget}: {spent:.2f} s, error {worst:.3f}", flush=True)
        if worst <= error:
            return spent, budget, worst
    raise ValueError(f"no budget reaches an error of {error}")


def beside_captum() -> Iterator[Row]:
    """At equal evaluations, and at equal error against long runs."""
    transformer, tokenizer = minilm_sized()
    model = adopt(transformer, tokenizer)
    split = model.split(sentences(EXPLAINED))
    with torch.no_grad():
        reading = model.read(split.batch(range(EXPLAINED)))
    captum, (both, path) = Captum(model, reading), ours(model, reading)
    what = f"LIME + KernelSHAP + integrated gradients, MiniLM's shape, {EXPLAINED} texts; Captum's own"
    units = int(reading.mask.sum()) // EXPLAINED
    theirs, _ = processor(lambda: (captum.shapley(SAMPLES), captum.lime(SAMPLES), captum.path(STEPS)))
    alike, _ = processor(lambda: (both(SAMPLES - units), path(STEPS)))
    yield f"{what}, {2 * SAMPLES} parts in all and {STEPS} steps", theirs, alike, "matrix products"

    long, straight = both(LONG_PAIRS), path(LONG_STEPS)
    samples, steps = [2**n for n in range(5, 15)], (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    found = {
        "KernelSHAP": reached(captum.shapley, samples, long[:1], ERROR),
        "LIME": reached(captum.lime, samples, captum.lime(LONG_SAMPLES), ERROR),
        "integrated gradients": reached(captum.path, steps, straight, ERROR),
        "our LIME and KernelSHAP": reached(both, [2**n for n in range(2, 12)], long, ERROR),
        "our integrated gradients": reached(path, steps, straight, ERROR),
    }
    spent, budget, worst = zip(*found.values(), strict=True)
    said = (
        f"{what}, at an error of {ERROR} against long runs: {budget[0]} and {budget[1]} samples and"
        f" {budget[2]} steps, beside {budget[3]} pairs for both and {budget[4]} steps (errors"
        f" {', '.join(f'{each:.2f}' for each in worst)})"
    )
    yield said, sum(spent[:3]), sum(spent[3:]), "matrix products"


def rows() -> list[Row | None]:
    if importlib.util.find_spec("transformers") is None:
        return []
    captum = importlib.util.find_spec("captum") is not None
    return [whole_audit(), *(beside_captum() if captum else ())]
