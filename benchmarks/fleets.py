"""Many trainings at once on a GPU, beside the same trainings one after another.

`make bench-gpu` writes docs/benchmarks-gpu.md; it is apart from the rest, which needs no GPU.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import torch

from attentest.corpus.example import Corpus
from attentest.corpus.vocabulary import Vocabulary
from attentest.fleet.trainer import Fleet
from attentest.model.config import ModelConfig
from attentest.model.precision import fast_products
from attentest.model.protocol import resolved
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from benchmarks.made import Row, line, made_corpus, seconds

OUT = Path(__file__).parents[1] / "docs" / "benchmarks-gpu.md"
ENCODERS = ("bilstm", "cnn", "average", "bigru", "transformer")
MODELS, ALONE = 48, 3  # of so many trainings the first few are timed alone; the rest is arithmetic


def training(
    corpus: Corpus, vocabulary: Vocabulary, encoder: str, seed: int, beside: Training | None
) -> Training:
    config = resolved(
        ModelConfig(encoder=encoder, epochs=9, seed=seed),
        family="classification",
        classes=2,
        has_query=False,
    )
    return Training(build(config, corpus, vocabulary).to("cuda"), corpus, beside=beside)


def rows() -> list[Row]:
    """An epoch of a fleet of each encoder."""
    made = made_corpus(train=6354)
    corpus = Corpus(**{**vars(made), "train": made.train[:-1]})
    vocabulary = Vocabulary.build(made.train)
    return [epoch(corpus, vocabulary, encoder) for encoder in ENCODERS]


def epoch(corpus: Corpus, vocabulary: Vocabulary, encoder: str) -> Row:
    members: list[Training] = []
    for seed in range(MODELS):
        members.append(training(corpus, vocabulary, encoder, seed, members[0] if members else None))
    fleet = Fleet(members)

    def together() -> None:
        with fast_products():
            fleet._run_epoch(lambda step: None)
        torch.cuda.synchronize()

    def alone() -> None:
        for seed in range(ALONE):
            training(corpus, vocabulary, encoder, seed, members[0])._run_epoch()
        torch.cuda.synchronize()

    plain = seconds(alone, 1) * MODELS / ALONE
    return (
        f"an epoch of {MODELS} models on a GPU, {encoder}",
        plain,
        seconds(together, 2),
        "rows of the word table and products; launches are recorded",
    )


def table(found: Sequence[Row], machine: str, date: datetime.date) -> str:
    lines = [
        "# Benchmarks on a GPU",
        "",
        "Written by `make bench-gpu`: models trained together (a *fleet*) beside the same ones alone,",
        f"{ALONE} of {MODELS} and the time scaled. Texts as in [the other benchmarks](benchmarks.md).",
        "",
        f"- date: {date.isoformat()}",
        f"- machine: {machine}",
        "",
        "| what | one by one | a fleet | ratio | what bounds ours |",
        "| --- | ---: | ---: | ---: | --- |",
        *map(line, found),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    if not torch.cuda.is_available():
        # On a CPU arithmetic is what a training costs, and company saves none of it.
        raise SystemExit(
            "make bench-gpu needs a GPU that torch sees; torch.cuda.is_available() says there is none."
        )
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    OUT.write_text(table(rows(), machine, datetime.date.today()))
    print(OUT.read_text(), flush=True)


if __name__ == "__main__":
    main()
