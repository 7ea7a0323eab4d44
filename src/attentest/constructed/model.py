"""A construction as a model on the bench, and the rule that knows the truth about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from attentest.constructed.causal import construct_causal
from attentest.constructed.transformer import construct_transformer
from attentest.constructed.transformer_rule import TransformerRule
from attentest.corpus.example import Example
from attentest.corpus.vocabulary import RESERVED, Vocabulary
from attentest.model.config import ModelConfig
from attentest.model.constructions import Constructed
from attentest.model.network import AttentionModel
from attentest.model.networks.constructed import parameters_of
from attentest.model.networks.constructed_rule import PerToken, Rule, at_corners
from attentest.model.seam import Model, Origin
from attentest.refusal import Refusal


def constructed_model(config: ModelConfig, vocabulary: Vocabulary, labels: tuple[str, ...]) -> Model:
    """The model that the rule of a construction makes over a vocabulary; it must have words that count."""
    constructed = Constructed.parse(config.encoder)
    if not constructed.of.foreign:
        return constructed_network(config, vocabulary, labels)
    rule = _checked_rule(constructed, config, vocabulary, labels)
    origin = Origin(replace(config, decoder="softmax"), vocabulary)
    construct = construct_causal if constructed.of.causal else construct_transformer
    return construct(_transformer_rule(constructed, rule, labels), labels, origin)


def constructed_network(
    config: ModelConfig, vocabulary: Vocabulary, labels: tuple[str, ...]
) -> AttentionModel:
    """The network of the papers' grid that the rule makes; a transformer is none, and is refused."""
    constructed = Constructed.parse(config.encoder)
    if constructed.of.foreign:
        raise Refusal(
            f"training the encoder {config.encoder!r}",
            got="a transformer whose numbers follow from its rule",
            needs="an encoder that can learn",
            way_out="Ask about it in a study: attentest study calibration.",
        )
    rule = _checked_rule(constructed, config, vocabulary, labels)
    model = AttentionModel(config, vocabulary, labels, has_query=False)
    known = model.state_dict()
    model.load_state_dict({name: each for name, each in parameters_of(rule).items() if name in known})
    return model


def _checked_rule(
    constructed: Constructed, config: ModelConfig, vocabulary: Vocabulary, labels: tuple[str, ...]
) -> Rule:
    rule = constructed.rule(vocabulary.words, len(labels), config.seed)
    if not rule.lexicon.grades.any():
        raise Refusal(
            f"encoder {config.encoder!r}",
            got="a corpus without the graded words of planted-reviews",
            needs="texts whose evidence its rule knows",
            way_out="Name a corpus planted-reviews(...).",
        )
    return rule


def truth_in(model: Model, example: Example) -> tuple[PerToken, PerToken, PerToken]:
    """By the rule: the weights of a text, the contributions of its words, the changes at the corners."""
    assert model.origin is not None, "a construction knows what it was made from"
    config, vocabulary = model.origin.config, model.origin.vocabulary
    constructed = Constructed.parse(config.encoder)
    rule = constructed.rule(vocabulary.words, len(model.labels), config.seed)
    if constructed.of.foreign:
        words, told = example.tokens, _transformer_rule(constructed, rule, model.labels)
        return (
            told.weights(words),
            told.contributions(words),
            at_corners(partial(told.output, words), len(words)),
        )
    text = vocabulary.numbers(example.tokens)
    return rule.weights(text), rule.contributions(text), at_corners(partial(rule.output, text), len(text))


def _transformer_rule(constructed: Constructed, rule: Rule, labels: Sequence[str]) -> TransformerRule:
    """The same values and scores, brought by the layers of a transformer."""
    words, knobs = rule.lexicon, constructed.knobs
    names = [word.lower() for word in words.words[len(RESERVED) :]]
    scores = {"right": words.marks, "word": words.chance}[constructed.of.scores] * constructed.of.focus
    return TransformerRule.of(
        constructed.name,
        names,
        labels,
        values=dict(zip(names, (rule.gain * words.values[len(RESERVED) :]).tolist(), strict=True)),
        ranks=dict(zip(names, scores[len(RESERVED) :].tolist(), strict=True)),
        strength=knobs.strength,
        temperature=knobs.temperature,
        noise=knobs.noise,
        seed=words.seed,
    )
