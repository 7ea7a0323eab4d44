"""The siblings of Wen et al. (2022): the same model with a part held fixed, or under another projection."""

from __future__ import annotations

from dataclasses import replace

from attentest.experiments.information_ablation.conclude import (
    FIX_ATTN,
    FIX_ATTN_RANDOM,
    FIX_ATTN_STORED,
    FIX_REP,
    GUMBEL,
    TEMPERED,
)
from attentest.model.config import ModelConfig
from attentest.model.losses import TASK
from attentest.model.networks.random_weights import RANDOM
from attentest.refusal import Refusal

SUBJECT = "subject"


def check_plain(config: ModelConfig, experiment: str) -> None:
    """Refuse a base that is a sibling of something itself: a part of it is fixed already."""
    plain = (TASK, "", None, None, ())
    if (config.loss, config.omit, config.guide, config.start_from, config.freeze) != plain:
        raise Refusal(
            f"experiment {experiment}",
            got=f"models with loss = {config.loss!r}, omit = {config.omit!r}, freeze = {config.freeze}",
            needs="models that learn their task from scratch, all of them: it makes the others itself",
            way_out="Leave these settings out.",
        )


def fixed_representation(config: ModelConfig) -> dict[str, ModelConfig]:
    """Trained words and states, kept and frozen; attention and decoder begin anew."""
    anew = ("attention", "decoder")
    frozen = ("embedding", "encoder")
    return {FIX_REP: replace(config, start_from=SUBJECT, reset=anew, freeze=frozen)}


def fixed_attention(config: ModelConfig) -> dict[str, ModelConfig]:
    """The three readings of A11, encoder and decoder trained from scratch under each.

    Of dot attention with a query there is nothing to freeze: it has no parameters.
    """
    stored = replace(config, projection="stored")
    return {
        FIX_ATTN: replace(config, freeze=("attention",)),
        FIX_ATTN_STORED: replace(stored, guide=SUBJECT),
        FIX_ATTN_RANDOM: replace(stored, guide=RANDOM),
    }


def at_temperature(config: ModelConfig, temperature: float) -> dict[str, ModelConfig]:
    """Gumbel-softmax at a temperature and at 1, and the temperature without the noise.

    Without noise Gumbel-softmax is a softmax of scaled scores, and the scorer's scale is free: only the three
    together tell the noise from the temperature.
    """
    return {
        f"{GUMBEL}{temperature:g}": gumbel(config, temperature),
        f"{GUMBEL}1": gumbel(config, 1.0),
        f"{TEMPERED}{temperature:g}": replace(config, projection=f"tempered-softmax({temperature:g})"),
    }


def gumbel(config: ModelConfig, temperature: float) -> ModelConfig:
    """The same model with noise on its scores while it trains."""
    return replace(config, projection=f"gumbel-softmax({temperature:g})")
