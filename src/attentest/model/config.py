"""A ModelConfig says everything about one trained model; the same configuration is the same model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from attentest.model.attention import ATTENTIONS, LAST_STATE
from attentest.model.decoder import DECODERS
from attentest.model.encoders import ENCODERS
from attentest.model.projection import Projection
from attentest.refusal import Refusal, look_up


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The grid point, the seed, and how to train. None means: as the corpus's family does (`resolved`)."""

    encoder: str = "bilstm"
    attention: str = "additive"
    projection: str = "softmax"
    decoder: str | None = None
    sizes: Literal["code", "paper"] = "code"
    hidden: int | None = None
    embedding: int | None = None
    vectors: str = "random"  # "random", "random(SCALE)", or "file:SHA256" of a text vector file
    seed: int = 0
    # What half of the experiments need of a sibling model.
    guide: str | None = None  # key of the reading cell whose weights `projection = stored` looks up
    start_from: str | None = None  # key of the model cell whose parameters are the starting point
    freeze: tuple[str, ...] = ()  # parts that are not trained: embedding, encoder, attention, decoder
    labels: Literal["gold", "shuffled"] = "gold"
    # The protocol.
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    patience: int | None = None

    def __post_init__(self) -> None:
        self._check_values()
        look_up(self.encoder, ENCODERS, "encoder")
        look_up(self.attention, ATTENTIONS, "attention")
        projection = Projection.parse(self.projection)
        if self.decoder is not None:
            look_up(self.decoder, DECODERS, "decoder")
        for part in self.freeze:
            look_up(part, dict.fromkeys(PARTS), "part to freeze")
        look_up(self.sizes, dict.fromkeys(("code", "paper")), "sizes")
        look_up(self.labels, dict.fromkeys(("gold", "shuffled")), "labels")
        if self.attention == LAST_STATE and projection.name not in ("softmax", "uniform"):
            raise Refusal(
                f"attention {LAST_STATE!r}",
                got=f"the projection {self.projection!r}",
                needs="no projection of its own (leave softmax)",
                way_out="There is one unit, so its weight is 1 under every projection.",
            )

    def _check_values(self) -> None:
        """TOML and JSON bring values of any type and size."""
        given = {name: value for name, value in vars(self).items() if not (value is None and name in OPEN)}
        for name, value in given.items():
            if name in WORDS and not (isinstance(value, str) and "\0" not in value):
                raise _wrong(name, value, "a string")
            if name in REAL and not (type(value) in (int, float) and 0 <= value < float("inf")):
                raise _wrong(name, value, "a number of at least 0")
            least, most = WHOLE.get(name, (0, 0))
            if name in WHOLE and not (type(value) is int and least <= value <= most):
                raise _wrong(name, value, f"a whole number from {least} to {most}")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ModelConfig:
        """From a table of settings; an unknown one is refused with the list of the known."""
        known = {field.name: None for field in fields(cls)}
        for name in settings:
            look_up(name, known, "model setting")
        freeze = settings.get("freeze", ())
        try:
            return cls(**{**settings, "freeze": tuple(freeze)})
        except TypeError as error:
            raise Refusal(
                "model settings",
                got=f"a value of the wrong type ({error})",
                needs="numbers and names as documented",
                way_out="See docs/guides/models.md.",
            ) from error

    def spelled(self) -> dict[str, Any]:
        """What enters the key: settings that differ from the class's defaults.

        Leaving defaults out means that a setting added tomorrow changes no key of today.
        """
        default = asdict(ModelConfig())
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if v != default[k]}


PARTS = ("embedding", "encoder", "attention", "decoder")
WORDS = ("encoder", "attention", "projection", "decoder", "sizes", "vectors", "guide", "start_from", "labels")
REAL = ("learning_rate", "weight_decay")
WHOLE = {
    "hidden": (5, 10**6),
    "embedding": (1, 10**6),
    "seed": (0, 2**63 - 1),
    "epochs": (0, 10**6),
    "batch_size": (1, 10**9),
    "patience": (1, 10**9),
}
# The settings that may stay open.
OPEN = {"decoder", "guide", "start_from", "hidden", "embedding", "epochs", "batch_size", "patience"}


def _wrong(name: str, value: object, needs: str) -> Refusal:
    way_out = "Leave it out to use the default."
    return Refusal(f"model setting {name}", got=repr(value), needs=needs, way_out=way_out)


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a family of corpora is trained in the papers (EXPERIMENTS 1.7) and how wide its models are."""

    epochs: int
    batch_size: int
    embedding: int
    hidden: int
    hidden_paper: int
    patience: int
    scale: float  # standard deviation of random word vectors, chosen on dev (docs/decisions.md)


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
}

BIGRU_HIDDEN = 50  # Serrano & Smith's width per direction, whatever the corpus


def resolved(config: ModelConfig, *, family: str, classes: int, has_query: bool) -> ModelConfig:
    """The same configuration with every default written out, so that changing a default changes the key."""
    protocol = look_up(family, PROTOCOLS, "family of corpora")
    decoder = config.decoder
    if decoder is None:
        decoder = "two-layer" if has_query else "sigmoid" if classes == 2 else "softmax"
    check_decoder(decoder, classes=classes, has_query=has_query)
    hidden = protocol.hidden if config.sizes == "code" else protocol.hidden_paper
    if config.encoder == "bigru":
        hidden = BIGRU_HIDDEN

    def default(value: int | None, otherwise: int) -> int:
        return otherwise if value is None else value

    return replace(
        config,
        decoder=decoder,
        hidden=default(config.hidden, hidden),
        embedding=default(config.embedding, protocol.embedding),
        epochs=default(config.epochs, protocol.epochs),
        batch_size=default(config.batch_size, protocol.batch_size),
        patience=default(config.patience, protocol.patience),
        vectors=f"random({protocol.scale})" if config.vectors == "random" else config.vectors,
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
