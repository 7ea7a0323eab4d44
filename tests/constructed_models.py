"""The corpus of the constructed models, and one of them by name."""

from attentest.corpus.vocabulary import Vocabulary
from attentest.model.config import ModelConfig
from attentest.model.constructions import Constructed
from attentest.model.protocol import resolved
from attentest.model.training.building import build

CORPUS = "planted-reviews(cues=4,negation=0.0,distractors=0,train=600,dev=50,test=60{})"


def model_of(corpus, encoder, seed=0):
    config = ModelConfig(encoder=encoder, attention="dot-unscaled", seed=seed)
    config = resolved(config, family="classification", classes=len(corpus.labels), has_query=False)
    vocabulary = Vocabulary.build(corpus.train)
    rule = Constructed.parse(encoder).rule(vocabulary.words, len(corpus.labels), seed)
    return build(config, corpus, vocabulary), rule
