"""How each family of corpora is trained in the papers, and what a configuration becomes on a corpus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from attentest.corpus.word2vec import width_of
from attentest.model.config import ModelConfig
from attentest.model.constructions import is_constructed
from attentest.model.networks.attention import LAST_STATE
from attentest.model.networks.constructed import WIDTH
from attentest.model.networks.log_odds import LOG_ODDS
from attentest.refusal import Refusal, look_up


@final
@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The settings of one family; a configuration's open settings are taken from here."""

    epochs: int
    batch_size: int
    embedding: int
    hidden: int
    hidden_paper: int
    patience: int
    scale: float  # standard deviation of random word vectors, chosen on dev (docs/decisions.md); see SCALES
    learning_rate: float = 1e-3
    dropout: float = 0.0
    clip: float = 0.0
    halving: bool = False


# Patience is ours: the papers always train to the end, which on bAbI is mostly waiting.
PROTOCOLS = {
    "classification": Protocol(
        epochs=8, batch_size=32, embedding=300, hidden=128, hidden_paper=128, patience=8, scale=0.1
    ),
    "nli": Protocol(
        epochs=25, batch_size=128, embedding=300, hidden=128, hidden_paper=128, patience=8, scale=0.1
    ),
    "qa": Protocol(
        epochs=25, batch_size=90, embedding=300, hidden=128, hidden_paper=128, patience=8, scale=0.1
    ),
    "babi": Protocol(
        epochs=100, batch_size=50, embedding=50, hidden=32, hidden_paper=30, patience=25, scale=1.0
    ),
    # Serrano & Smith's corpora and training.
    "reviews": Protocol(
        epochs=40,
        batch_size=64,
        embedding=200,
        hidden=50,
        hidden_paper=50,
        patience=5,
        scale=0.1,
        learning_rate=4e-4,
        dropout=0.3,
        clip=10.0,
        halving=True,
    ),
}
# The same by attention for classification: what the study `vectors` chose by its rule (docs/decisions.md).
SCALES = {
    "additive": 0.1,
    "additive-wide": 0.1,
    "dot": 0.1,
    "dot-unscaled": 0.1,
    "deep": 0.1,
    "multiplicative": 0.1,
    LOG_ODDS: 0.1,
    LAST_STATE: 0.1,
}
FROM_PROTOCOL = (
    "embedding",
    "epochs",
    "batch_size",
    "patience",
    "learning_rate",
    "dropout",
    "clip",
    "halving",
)
SERRANO_HIDDEN = 50  # their width per direction and per kernel, whatever the corpus


def resolved(config: ModelConfig, *, family: str, classes: int, has_query: bool) -> ModelConfig:
    """The same configuration with every default written out, so that changing a default changes the key."""
    protocol = look_up(family, PROTOCOLS, "family of corpora")
    decoder = config.decoder
    if decoder is None:
        decoder = "two-layer" if has_query else "sigmoid" if classes == 2 else "softmax"
    check_decoder(decoder, classes=classes, has_query=has_query)
    hidden = protocol.hidden if config.sizes == "code" else protocol.hidden_paper
    if config.encoder.removeprefix("han-") in ("bigru", "conv"):
        hidden = SERRANO_HIDDEN
    _check_hierarchy(config.encoder, has_query=has_query)
    if is_constructed(config.encoder):
        config = untrainable(config, has_query=has_query)
    open_settings = {
        "decoder": decoder,
        "hidden": hidden,
        **{name: getattr(protocol, name) for name in FROM_PROTOCOL},
    }
    written = {name: value for name, value in open_settings.items() if getattr(config, name) is None}
    if config.vectors == "random":
        written["vectors"] = f"random({_scale(family, config.attention)})"
    if config.vectors.startswith("word2vec"):
        written["embedding"] = width_of(config.vectors, config.embedding or protocol.embedding)
        written["vectors"] = f"word2vec({written['embedding']})"
    return replace(config, **written)


def untrainable(config: ModelConfig, *, has_query: bool) -> ModelConfig:
    """A construction: its parameters follow from its name and its seed, and nothing is trained."""
    if has_query or config.epochs:
        raise Refusal(
            f"encoder {config.encoder!r}",
            got="a corpus with a query" if has_query else f"{config.epochs} epochs",
            needs="single texts and no training: its parameters are set by its rule",
            way_out="Use planted-reviews, and leave epochs out.",
        )
    return replace(config, epochs=0, embedding=WIDTH, vectors="random(0)")


def _scale(family: str, attention: str) -> float:
    return SCALES[attention] if family == "classification" else PROTOCOLS[family].scale


def _check_hierarchy(encoder: str, *, has_query: bool) -> None:
    if encoder.startswith("han-") and has_query:
        raise Refusal(
            f"encoder {encoder!r}",
            got="a corpus with a query",
            needs="one without: its unit of attention is a sentence of the text alone",
            way_out=f"Use {encoder.removeprefix('han-')!r} for this corpus.",
        )


def check_decoder(decoder: str, *, classes: int, has_query: bool) -> None:
    """Refuse a decoder that cannot answer what the corpus asks."""
    fits = {
        "sigmoid": classes == 2 and not has_query,
        "softmax": not has_query,
        "two-layer": has_query,
        "affine": has_query,
    }
    if not fits[decoder]:
        possible = ", ".join(name for name, fit in fits.items() if fit)
        raise Refusal(
            f"decoder {decoder!r}",
            got=f"a corpus of {classes} labels {'with' if has_query else 'without'} a query",
            needs=f"one of {possible} for such a corpus",
            way_out="Leave the decoder out and the right one is chosen.",
        )
