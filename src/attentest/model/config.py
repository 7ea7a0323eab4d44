"""A ModelConfig says everything about one trained model; the same configuration is the same model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, final

from attentest.corpus.marks import RATIONALE, vocabulary_of
from attentest.model.catalogue import ENCODERS
from attentest.model.constructions import Constructed, is_constructed
from attentest.model.losses import IMITATE, IMPERMISSIBLE, TASK, Loss
from attentest.model.networks.attention import ATTENTIONS, LAST_STATE
from attentest.model.networks.decoder import DECODERS
from attentest.model.networks.log_odds import LOG_ODDS
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal, look_up


@final
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
    vectors: str = "random"  # random, random(SCALE), word2vec(WIDTH), or file:SHA256 of a text vector file
    seed: int = 0
    # What half of the experiments need of a sibling model.
    guide: str | None = None  # whose weights `projection = stored` looks up: key of a reading, or `random`
    start_from: str | None = None  # key of the model cell whose parameters are the starting point
    reset: tuple[str, ...] = ()  # parts that do not come from there: they keep the numbers of the own seed
    freeze: tuple[str, ...] = ()  # parts that are not trained: embedding, encoder, attention, decoder
    # `shuffled-all` shuffles the labels of train and dev, `shuffled` those of train alone; test stays gold.
    labels: Literal["gold", "shuffled", "shuffled-all"] = "gold"
    loss: str = TASK  # or log-odds(FACTOR), imitate(KEY, LAMBDA), impermissible(LAMBDA, WORDS): see losses.py
    omit: str = ""  # words that are cut out of every text, or <rationale>: the anonymised control
    # The protocol.
    epochs: int | None = None
    batch_size: int | None = None
    patience: int | None = None
    epoch_steps: int = 1  # an epoch goes over the texts as often as it needs to take so many steps
    learning_rate: float | None = None
    attention_rate: float = 1.0  # of attention's own parameters, in learning rates
    attention_start: float = 1.0  # the size of attention's first numbers, in those that are drawn
    attention_rates: tuple[float, ...] = ()  # or several, each trained, of which dev chooses: see rates.py
    attention_starts: tuple[float, ...] = ()  # likewise
    weight_decay: float = 1e-5
    dropout: float | None = None  # of the context vector, while training
    clip: float | None = None  # the largest norm of the gradient; 0 is no limit
    halving: bool | None = None  # halve the learning rate after every epoch that did not improve
    trained_on: str = "cpu"  # or cuda: the device of the training, see provenance.py

    def __post_init__(self) -> None:
        _check_values(vars(self))
        _check_encoder(self)
        look_up(self.attention, ATTENTIONS, "attention")
        projection = Projection.parse(self.projection)
        if self.decoder is not None:
            look_up(self.decoder, DECODERS, "decoder")
        for part in self.freeze:
            look_up(part, dict.fromkeys(PARTS), "part to freeze")
        _check_reset(self)
        if self.attention == LAST_STATE and projection.name not in ("softmax", "uniform"):
            raise Refusal(
                f"attention {LAST_STATE!r}",
                got=f"the projection {self.projection!r}",
                needs="no projection of its own (leave softmax)",
                way_out="There is one unit, so its weight is 1 under every projection.",
            )
        _check_steering(self, projection)
        _check_choice("attention_rate", self.attention_rate, self.attention_rates)
        _check_choice("attention_start", self.attention_start, self.attention_starts)
        loss = Loss.parse(self.loss)
        for words in (self.omit, loss.of if loss.name == IMPERMISSIBLE else ""):
            if words not in ("", RATIONALE):
                vocabulary_of(words)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ModelConfig:
        """From a table of settings; an unknown one is refused with the list of the known."""
        known = {field.name: None for field in fields(cls)}
        for name in settings:
            look_up(name, known, "model setting")
        _check_values(settings)
        for name in SEVERAL:
            if not isinstance(settings.get(name, ()), list | tuple):
                raise _wrong(name, settings[name], "a list")
        try:
            return cls(**{**settings, **{name: tuple(settings.get(name, ())) for name in SEVERAL}})
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
WORDS = (
    "encoder",
    "attention",
    "projection",
    "decoder",
    "sizes",
    "vectors",
    "guide",
    "start_from",
    "labels",
    "loss",
    "omit",
)
SEVERAL = ("reset", "freeze", "attention_rates", "attention_starts")
CHOICES = {"sizes": ("code", "paper"), "labels": ("gold", "shuffled", "shuffled-all")}
CHOICES |= {"trained_on": ("cpu", "cuda")}
REAL = {"dropout": 1.0} | dict.fromkeys(
    ("learning_rate", "attention_rate", "attention_start", "weight_decay", "clip"), 1e30
)
WHOLE = {
    "hidden": (5, 10**6),
    "embedding": (1, 10**6),
    "seed": (0, 2**63 - 1),
    "epochs": (0, 10**6),
    "batch_size": (1, 10**9),
    "patience": (1, 10**9),
    "epoch_steps": (1, 10**6),
}
# The settings that may stay open.
OPEN = {"decoder", "guide", "start_from", "hidden", "embedding", "epochs", "batch_size", "patience"}
OPEN |= {"learning_rate", "dropout", "clip", "halving"}


def _check_values(values: Mapping[str, Any]) -> None:
    """TOML and JSON bring values of any type and size."""
    for name, value in values.items():
        if value is None and name in OPEN:
            continue
        if name in WORDS and not (isinstance(value, str) and "\0" not in value):
            raise _wrong(name, value, "a string")
        if name in CHOICES:
            look_up(value, dict.fromkeys(CHOICES[name]), name)
        if name in REAL and not (type(value) in (int, float) and 0 <= value < REAL[name]):
            raise _wrong(name, value, f"a number of at least 0 and below {REAL[name]}")
        if name == "halving" and not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
        least, most = WHOLE.get(name, (0, 0))
        if name in WHOLE and not (type(value) is int and least <= value <= most):
            raise _wrong(name, value, f"a whole number from {least} to {most}")


def _check_encoder(config: ModelConfig) -> None:
    """A name of the catalogue, or a construction: its scores are read by unscaled dot attention."""
    if not is_constructed(config.encoder):
        look_up(config.encoder, ENCODERS, "encoder")
        return
    Constructed.parse(config.encoder)
    read_by = (config.attention, config.projection)
    if read_by != CONSTRUCTED_WITH:
        raise Refusal(
            f"encoder {config.encoder!r}",
            got=f"the attention {config.attention!r} with the projection {config.projection!r}",
            needs="the attention dot-unscaled with the projection softmax, which read its scores as they are",
            way_out="Write so, or choose another encoder.",
        )


CONSTRUCTED_WITH = ("dot-unscaled", "softmax")


def _check_reset(config: ModelConfig) -> None:
    """Only what would come from another model can be kept from coming."""
    for part in config.reset:
        look_up(part, dict.fromkeys(PARTS), "part to reset")
    if config.reset and config.start_from is None:
        raise Refusal(
            "model setting reset",
            got=f"{', '.join(config.reset)}, and no model to start from",
            needs="start_from, whose other parts are kept",
            way_out="Leave reset out: a model from scratch is its own seed's throughout.",
        )


def _check_choice(name: str, single: float, several: tuple[Any, ...]) -> None:
    """A choice is between several, and leaves no single one to be given."""
    numbers = all(type(each) in (int, float) and 0 <= each < math.inf for each in several)
    if several and not (numbers and 1 < len(several) == len(set(several)) and single == 1.0):
        raise Refusal(
            f"model setting {name}s",
            got=f"{list(several)}, beside {name} = {single}",
            needs=f"at least two different numbers of at least 0, and no {name}",
            way_out=f"Write for example [1.0, 10.0], or give {name} alone.",
        )


def _check_steering(config: ModelConfig, projection: Projection) -> None:
    """Some losses are about words, which sentences are not; and only learnt weights can be steered."""
    loss = Loss.parse(config.loss)
    steered = loss.factor > 0
    of_words = config.attention == LOG_ODDS or (steered and loss.name != IMITATE)
    if config.encoder.startswith("han-") and of_words:
        raise Refusal(
            LOG_ODDS if config.attention == LOG_ODDS else loss.name,
            got=f"the encoder {config.encoder!r}",
            needs="an encoder whose units of attention are words",
            way_out=f"Use {config.encoder.removeprefix('han-')!r}, for example.",
        )
    fixed = config.attention in (LOG_ODDS, LAST_STATE) or projection.name in ("uniform", "stored")
    if steered and fixed:
        raise Refusal(
            f"loss {config.loss!r}",
            got=f"the attention {config.attention!r} with the projection {config.projection!r}",
            needs="weights over words that are learnt",
            way_out="Leave the loss out, or choose another attention.",
        )


def _wrong(name: str, value: object, needs: str) -> Refusal:
    way_out = "Leave it out to use the default."
    return Refusal(f"model setting {name}", got=repr(value), needs=needs, way_out=way_out)
