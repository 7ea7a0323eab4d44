"""An example made anew with only some of its units."""

import dataclasses
import itertools

import numpy as np
import torch

from attentest.model.batch import IndexedSplit
from attentest.model.networks.decoder import distribution


def by_hand(model, corpus, example, kept, hierarchical):
    """The example with only these units, made anew as words, and the model's answer to it."""
    ends = [*example.sentences[1:], len(example.tokens)]
    sentences = [example.tokens[b:e] for b, e in zip(example.sentences, ends, strict=True)]
    units = sentences if hierarchical else [(token,) for token in example.tokens]
    rest = [unit for unit, stays in zip(units, kept, strict=False) if stays]
    starts = tuple(np.cumsum([0, *map(len, rest[:-1])]).tolist()) if hierarchical else None
    shorter = dataclasses.replace(example, tokens=tuple(itertools.chain(*rest)), sentences=starts)
    split = IndexedSplit([shorter], model.vocabulary, corpus.labels)
    with torch.no_grad():
        return distribution(model.decide(model.read(split.batch([0]))))[0]
