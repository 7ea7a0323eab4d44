"""Trainings for a fleet, and what must agree between a fleet's and a model's own training."""

import copy

import pytest
import torch

from attentest.corpus.vocabulary import Vocabulary
from attentest.fleet.trainer import Fleet
from attentest.model.config import ModelConfig
from attentest.model.protocol import resolved
from attentest.model.training.building import build
from attentest.model.training.loop import Training

LENGTHS = (5, 1, 9, 2, 4, 7, 3, 3, 6, 8, 2)


SMALL = {"hidden": 10, "embedding": 6, "epochs": 4, "batch_size": 4, "learning_rate": 0.02, "patience": 9}


def made(corpus, *, guide=None, start=None, **settings):
    config = ModelConfig(**{**SMALL, **settings})
    full = resolved(config, family=corpus.family, classes=len(corpus.labels), has_query=corpus.has_query)
    return build(full, corpus, Vocabulary.build(corpus.train), guide=guide, start=start).double()


def trainings(models, corpus, base=None):
    found: list[Training] = []
    for model in models:
        beside = found[0] if found else None
        found.append(Training(copy.deepcopy(model), corpus, base=base, beside=beside))
    return found


def check_alike(models, corpus, base=None):
    alone, together = trainings(models, corpus, base), trainings(models, corpus, base)
    for training in alone:
        training.run()
    ended = []
    Fleet(together).run(on_end=ended.append)
    assert sorted(map(id, ended)) == sorted(map(id, together))
    for one, other in zip(alone, together, strict=True):
        assert one.record.chosen == other.record.chosen
        assert [e["loss"] for e in other.record.history] == pytest.approx(
            [e["loss"] for e in one.record.history], rel=1e-6, abs=1e-9
        )
        assert [e["dev"] for e in one.record.history] == [
            pytest.approx(e["dev"], nan_ok=True) for e in other.record.history
        ]
        assert one.record.scores["test"] == pytest.approx(other.record.scores["test"], nan_ok=True)
        expected, got = one.model.state_dict(), other.model.state_dict()
        for name in expected:
            torch.testing.assert_close(got[name], expected[name], rtol=1e-5, atol=1e-7, msg=name)
    return together
