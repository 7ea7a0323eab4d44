"""Explainers by perturbation beside the straightforward way: one part of one text at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from attentest.evidence.importances.faithfulness import faithfulness, on_top, random_scores
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.lime import drawn_parts, lime
from attentest.evidence.importances.presence import explained
from attentest.evidence.importances.shapley import shapley_values
from attentest.evidence.permutation import orders
from attentest.model.network import AttentionModel
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from benchmarks.made import Bench, Row, Size, bench, seconds

TEXTS, SOME = Size(64, 6, 30, 1), 4  # so many are run plainly, and the time scaled up by their number
PERMUTATIONS, SAMPLES, STEPS, RANKINGS = 10, 200, 32, 6
BOUNDS = {
    "bilstm": "reading parts: matrix products and their gates",
    "average": "calls: nothing is read again, parts are told apart and weighed",
}

Work = Callable[[AttentionModel, Reading], object]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def one_by_one(model: AttentionModel, held: Bench, parts: Callable[[Reading], torch.Tensor]) -> None:
    """Each part of each text made and read by itself, as a wrapper around a classifier would do it."""
    for text in range(0, TEXTS.texts, TEXTS.texts // SOME):
        batch = held.split.batch([text])
        with torch.no_grad():
            reading = model.read(batch)
            best = explained(model, reading).predicted[0]
            for kept in parts(reading):
                words = held.split.tokens[text][kept.numpy()]
                if len(words):
                    mask = torch.ones(1, len(words), dtype=torch.bool)
                    shorter = type(batch)(
                        ids=("0",), tokens=torch.from_numpy(words)[None], mask=mask, labels=batch.labels
                    )
                    distribution(model.decide(model.read(shorter)))[0, best].item()


def grown(reading: Reading) -> torch.Tensor:
    """The parts that the Shapley values of one text ask for."""
    place = orders(reading.mask, PERMUTATIONS, rng=seeded()).argsort(2)[0]
    steps = torch.arange(1, place.shape[1])
    return (place[:, None] < steps[:, None]).flatten(0, 1)


def halves(reading: Reading) -> torch.Tensor:
    """The parts that ERASER's measures of some rankings ask for."""
    top = on_top(random_scores(reading.mask, RANKINGS, rng=seeded()), reading.mask)[0].flatten(0, 1)
    return torch.cat([top, ~top])


def step_by_step(model: AttentionModel, held: Bench) -> None:
    """Integrated gradients of one text at one step at a time."""
    for text in range(0, TEXTS.texts, TEXTS.texts // SOME):
        batch = held.split.batch([text])
        own = model.embedding(batch.tokens).detach()
        for step in range(STEPS):
            vectors = (own * (step + 0.5) / STEPS).requires_grad_()
            likely = distribution(model.decide(model.read(batch, embeddings=vectors))).amax()
            torch.autograd.grad(likely, vectors)


def compared(encoder: str) -> Iterator[Row]:
    """A row for each explainer."""
    held = bench(TEXTS, encoder)
    model, scale = held.model, TEXTS.texts / SOME

    def ours(work: Work) -> float:
        return seconds(lambda: [work(model, reading) for reading in held.read], 2)

    def plain(parts: Callable[[Reading], torch.Tensor]) -> float:
        return scale * seconds(lambda: one_by_one(model, held, parts), 1)

    def row(what: str, straightforward: float, batched: float) -> Row:
        return f"{what}, {encoder}, {TEXTS.name}", straightforward, batched, BOUNDS[encoder]

    yield row(
        f"Shapley values, {PERMUTATIONS} orders",
        plain(grown),
        ours(lambda m, r: shapley_values(m, r, rng=seeded(), permutations=PERMUTATIONS)),
    )
    yield row(
        f"LIME, {SAMPLES} parts",
        plain(lambda r: drawn_parts(r.mask, SAMPLES, rng=seeded())[0]),
        ours(lambda m, r: lime(m, r, rng=seeded(), samples=SAMPLES)),
    )
    yield row(
        f"comprehensiveness and sufficiency of {RANKINGS} rankings",
        plain(halves),
        ours(lambda m, r: faithfulness(m, r, random_scores(r.mask, RANKINGS, rng=seeded()))),
    )
    yield row(
        f"integrated gradients, {STEPS} steps",
        scale * seconds(lambda: step_by_step(model, held), 1),
        ours(lambda m, r: integrated_gradients(m, r, steps=STEPS)),
    )


def rows() -> list[Row]:
    return [row for encoder in BOUNDS for row in compared(encoder)]
