"""How much of what attention shows comes from the word vectors that training starts from?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attentest.corpus.vocabulary import RESERVED
from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.names import IN_ROWS
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import UNTRAINED
from attentest.experiments.shared.shown import shown
from attentest.experiments.vectors import ABOUT
from attentest.model.batch import IndexedSplit, buckets
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.model.reader import TEXTS, TOKENS, split_logits
from attentest.model.seam import Model
from attentest.model.training.building import build
from attentest.refusal import Refusal
from attentest.statistics.rank_agreement import kendalls
from attentest.statistics.scores import scores

# What training selects an epoch by: dev's AUC where there is one logit, else dev's accuracy.
SELECTED_BY = {"sigmoid": "auc"}


@final
@dataclass(frozen=True, kw_only=True)
class Vectors(AbstractExperiment):
    """Agreement with importance, evenness of attention, dev scores and lengths of the word vectors.

    One row per text of the sample: `tau_gradient`, `tau_loo`, `max_attention` and `length`; and of the
    model, the same in every row: `dev_score` (by which training selects), `dev_accuracy`, `dev_majority` (the
    share of dev's commonest label), `norm_start` and `norm_trained`. `sample` texts of the test split are
    asked; 0 means all.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    sample: int = 500

    def __post_init__(self) -> None:
        if self.sample < 0:
            raise Refusal(
                "experiment vectors",
                got=f"{self.sample} texts",
                needs="a number of texts, or 0 for all of them",
                way_out="500 is the default.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """None for random vectors, which the seed draws again; else the model before training."""
        return {} if config.vectors.startswith("random") else {UNTRAINED: replace(config, epochs=0)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row per text of the sample."""
        model = subject.model
        constant = {**dev_scores(subject), **norms(subject)}
        among = np.array(sorted(shown(subject, self.sample or len(subject.texts))))
        for places in buckets(subject.texts.lengths[among], TEXTS, tokens=TOKENS):
            rows = among[places]
            found = gradients(model, subject.texts.batch(rows).to(model.device))
            loo = leave_one_out(model, found.reading).change
            weights, lengths = _numpy(found.reading.weights), _numpy(found.reading.mask.sum(1)).astype(int)
            count = count_on(found.reading.mask.device)
            taus = [
                kendalls(weights, _numpy(importance), lengths, count=count)[0]
                for importance in (found.times_input, loo)
            ]
            for place, row in enumerate(common_columns(subject, rows, found.reading)):
                both = {f"tau_{name}": float(tau[place]) for name, tau in zip(IN_ROWS, taus, strict=True)}
                yield {**row, **both, **constant}


def dev_scores(subject: Subject) -> Row:
    """The scores of dev: the one that selected the epoch, accuracy, and what one answer for all has."""
    model = subject.model
    split = IndexedSplit(subject.corpus.dev, subject.vocabulary, subject.labels)
    found = scores(split.labels, distribution(split_logits(model, split)).numpy())
    measure = SELECTED_BY.get(str(subject.network.config.decoder), "accuracy")
    return {
        "dev_measure": measure,
        "dev_score": found[measure],
        "dev_accuracy": found["accuracy"],
        "dev_majority": float(np.bincount(split.labels).max() / len(split)),
    }


def norms(subject: Subject) -> Row:
    """The mean length of the word vectors before and after training."""
    model = subject.model
    if UNTRAINED in subject.sibling:
        start = subject.sibling[UNTRAINED].model
    else:
        start = build(subject.network.config, subject.corpus, subject.vocabulary)
    return {"norm_start": mean_norm(start), "norm_trained": mean_norm(model)}


def mean_norm(model: Model) -> float:
    """The mean Euclidean length of the vectors of all words of the vocabulary, padding and markers apart."""
    table: Float[Tensor, "word emb"] = model.embedding.weight.detach()[len(RESERVED) :]
    return float(table.double().norm(dim=1).mean())


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
