"""Models for the removal experiments, and their rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest.evidence.removal.decisions import in_double
from attentest.experiments.contract import InMemory, Subject
from tests.toys import toy_batch, toy_corpus, toy_model

MODELS = {
    "one logit": ({}, {}),
    "classes": ({"labels": ("a", "b", "c", "d")}, {"encoder": "bigru"}),
    "sparse": ({}, {"projection": "sparsemax", "encoder": "identity"}),
    "sentences": ({"labels": ("a", "b", "c")}, {"encoder": "han-bigru", "attention": "additive-wide"}),
    "affine query": ({"query": True, "labels": ("a", "b", "c")}, {"decoder": "affine"}),
    "two-layer": ({"query": True, "labels": ("a", "b", "c")}, {"encoder": "cnn"}),
    "candidates": ({"query": True, "labels": ("a", "b", "c", "d"), "candidates": True}, {}),
    "affine candidates": (
        {"query": True, "labels": ("a", "b", "c", "d"), "candidates": True},
        {"decoder": "affine"},
    ),
}


NOT_AFFINE = {"two-layer", "candidates"}


every = pytest.mark.parametrize("name", MODELS)


def loud(model, reading_of):
    """Let the decoder hear attention, and no class win everywhere: the units of the texts are its middle."""
    last = getattr(model.decoder, "to_logits", None) or model.decoder.dense
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(8.0)
        reading = reading_of()
        alone = torch.eye(reading.mask.shape[1]).expand(len(reading.mask), -1, -1)
        logits = model.decide(replace(reading, batch=replace(reading.batch, answers=None)), alone)
        last.bias -= logits[reading.mask].mean(0)
        return reading_of()


def made(name):
    """An untrained model with a loud decoder, and the reading of texts of one to 25 tokens."""
    corpus = toy_corpus(lengths=(5, 1, 9, 2, 25, 14, 13, 12), **MODELS[name][0])
    model = toy_model(corpus, **MODELS[name][1])
    reading = loud(model, lambda: model.read(toy_batch(model, corpus)))
    assert (reading.values is None) == (name in NOT_AFFINE)
    return model, in_double(reading)


def observed(name, step, seed=0):
    corpus = toy_corpus(**MODELS[name][0])
    model = toy_model(corpus, **MODELS[name][1])
    loud(model, lambda: model.read(toy_batch(model, corpus)))
    configs = step.siblings(model.config)
    subject = Subject(corpus, model.config, InMemory(dict.fromkeys(("trained", *configs), model), configs))
    return list(step.observe(subject, np.random.default_rng(seed)))
