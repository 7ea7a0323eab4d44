"""Is a hidden state about one word, and does attention rank states or words?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.given_attention import AttentionPool, GivenAttention
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.hidden_importance import hidden_gradient, hidden_leave_one_out
from attentest.evidence.importances.influence import AT_MOST, Positions, influence, jacobian
from attentest.experiments.contract import Row, Subject
from attentest.experiments.dispersion import ABOUT
from attentest.experiments.importance.observe import mean_of_defined
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.shared.shown import places, shown
from attentest.model.batch import buckets
from attentest.model.reader import TOKENS, together
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected
from attentest.refusal import Refusal
from attentest.statistics.comparison import normalised_entropy
from attentest.statistics.rank_agreement import kendalls

Columns: TypeAlias = dict[str, np.ndarray]
PerUnit: TypeAlias = Float[Tensor, "batch unit"]
Ranked: TypeAlias = Float[Tensor, "batch *draw unit"]
FEW = 4  # states of a text of which the whole Jacobian is taken: each costs a pass back for every unit


@final
@dataclass(frozen=True, kw_only=True)
class Dispersion(AbstractBesideControls):
    """How spread out influence and importance are, and what attention agrees with (ME-1, ME-2, ME-4).

    A row says of its text the normalised entropies of attention, of the gradient and leave-one-out
    importance of words, and of the influence of words on a state (mean over `positions` states at most;
    on `frobenius` texts of the trained model also by the Frobenius norm, for a few states, and by the
    usual norm for the same states). Then `support`, the units of positive weight, and tau-b of attention
    with four importances, over all units and over the support; and for three of them the same under
    weights that do not match the words, the importance computed again (`swapped` and `permuted`: see
    `given_attention`).
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 2

    positions: int = AT_MOST
    frobenius: int = 50
    nulls: int = 20

    def __post_init__(self) -> None:
        if self.positions < 1 or self.frobenius < 0 or self.nulls < 1:
            raise Refusal(
                "experiment dispersion",
                got=f"{self.positions} positions, {self.frobenius} texts with the Frobenius norm, "
                f"{self.nulls} draws of the null",
                needs="at least 1 position and 1 draw, and 0 texts or more",
                way_out=f"{AT_MOST}, 50 and 20 are the defaults.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        model = subject.model
        # To compare two norms, one model does.
        whole = shown(subject, self.frobenius) if subject.name == "trained" and self.frobenius else set()
        nulls = NullDraws.of(subject, self.nulls)
        for rows in buckets(subject.texts.lengths, together(subject.texts), tokens=TOKENS):
            found = gradients(model, subject.texts.batch(rows).to(model.device), free=True)
            reading = found.reading
            assert found.norm_free is not None
            given = nulls.given(reading, rows, rng)
            # Weights that are a mean over heads are moved head by head, which `importance` does.
            loo = leave_one_out(model, reading, given=given if model.with_heads is model else None)
            importances = {
                "inputs_gradient": found.norm_free,
                "inputs_loo": loo.change,
                "hidden_gradient": hidden_gradient(model, reading),
                "hidden_loo": hidden_leave_one_out(model, reading),
            }
            columns = {
                **spreads(reading, importances),
                **self._influences(model, reading, places(rows, whole), rng),
                **agreements(reading, importances),
                **nulls.columns(reading, given, drawn_importances(model, reading, given, loo.under)),
            }
            for place, row in enumerate(common_columns(subject, rows, reading)):
                yield {**row, **{name: column[place].item() for name, column in columns.items()}}

    def _influences(self, model: Model, reading: Reading, whole: Tensor, rng: torch.Generator) -> Columns:
        """Entropies of influence, and of its Frobenius norm for the texts at the places `whole`."""
        positions = Positions.sampled(reading.mask, self.positions, rng=rng)
        found = influence(model, reading, positions)
        real = reading.batch.mask
        columns = {
            "positions": positions.there.sum(1).cpu().numpy(),
            "entropy_influence": over_positions(found.l2, real, positions.there),
            "entropy_influence_l1": over_positions(found.l1, real, positions.there),
            "frobenius": np.isin(np.arange(len(real)), whole.numpy()),
            **{
                name: np.full(len(real), np.nan) for name in ("entropy_frobenius", "entropy_beside_frobenius")
            },
        }
        if len(whole):
            some = selected(reading, whole.to(real.device))
            asked = Positions.sampled(some.mask, FEW, rng=rng)
            norms = jacobian(model, some, asked).frobenius, influence(model, some, asked).l2
            for name, each in zip(("entropy_frobenius", "entropy_beside_frobenius"), norms, strict=True):
                columns[name][whole.numpy()] = over_positions(each, some.batch.mask, asked.there)
        return columns


def agreements(reading: Reading, importances: Mapping[str, PerUnit]) -> Columns:
    """Tau of attention with every importance, over all units and over the support, and the support's size."""
    attended = Attended.of(reading.weights, reading.mask)
    columns: Columns = {"support": attended.real.sum(1).cpu().numpy()}
    for name, importance in importances.items():
        columns |= {f"tau_{name}{where}": tau for where, tau in attended.taus(importance).items()}
    return columns


def drawn_importances(
    model: Model, reading: Reading, given: GivenAttention, loo: Ranked | None
) -> dict[str, Ranked]:
    """The importances under every given attention; NaN where a model made elsewhere cannot be asked."""
    readings = list(given.each(reading))
    unknown = torch.full_like(given.weights, float("nan"))
    found = {"inputs_loo": unknown if loo is None else loo, "hidden_gradient": unknown}
    found["hidden_loo"] = torch.stack([hidden_leave_one_out(model, each) for each in readings], dim=1)
    if model.network is not None:  # another has no scores that could be moved
        found["hidden_gradient"] = torch.stack([hidden_gradient(model, each) for each in readings], dim=1)
    return found


@final
@dataclass(frozen=True)
class NullDraws:
    """The draws of both nulls, and how importances agree with the weights they are computed under."""

    model: Model
    pool: AttentionPool
    draws: int

    @classmethod
    def of(cls, subject: Subject, draws: int) -> NullDraws:
        """Draws for the texts of a subject."""
        return cls(subject.model, AttentionPool.of(subject.model, subject.texts), draws)

    def given(self, reading: Reading, rows: np.ndarray, rng: torch.Generator) -> GivenAttention:
        """The model's own attention, then the draws of both."""
        return self.pool.own_and_nulls(self.model, reading, rows, self.draws, rng=rng)

    def columns(self, reading: Reading, given: GivenAttention, drawn: Mapping[str, Ranked]) -> Columns:
        """The mean tau over the draws of each null; of leave-one-out of words also the own weights'."""
        attended = Attended.of(given.weights, reading.mask[:, None].expand(given.weights.shape))
        columns: Columns = {}
        for name, importance in drawn.items():
            for where, tau in attended.taus(importance).items():
                if name.endswith("loo") and name != "hidden_loo":
                    columns[f"tau_{name}_held{where}"] = tau[:, 0]
                columns[f"swapped_tau_{name}{where}"] = mean_of_defined(tau[:, 1 : 1 + self.draws])
                columns[f"permuted_tau_{name}{where}"] = mean_of_defined(tau[:, 1 + self.draws :])
        return columns


@final
@dataclass(frozen=True)
class Attended:
    """Attention with the units of positive weight first: no rank correlation minds the order of units."""

    order: Int[Tensor, "batch *draw unit"]
    weights: Ranked
    real: Bool[Tensor, "batch *draw unit"]  # the support
    lengths: np.ndarray  # of texts, units without weight included

    @classmethod
    def of(cls, weights: Ranked, mask: Bool[Tensor, "batch *draw unit"]) -> Attended:
        """The support of these weights."""
        support = mask & (weights > 0)
        # Real units without weight come before padding.
        order = (support.int() + mask.int()).argsort(dim=-1, descending=True, stable=True)
        lengths = mask.sum(-1).cpu().numpy()
        return cls(order, weights.gather(-1, order), support.gather(-1, order), lengths)

    def taus(self, importance: Ranked) -> Columns:
        """Tau-b over all units, and over the support, where no zero can tie with a zero."""
        units = self.order.shape[-1]
        ranked = importance.gather(-1, self.order)
        first, second = (each.detach().reshape(-1, units).cpu().numpy() for each in (self.weights, ranked))
        count = count_on(self.weights.device)
        sizes = {"": self.lengths, "_support": self.real.sum(-1).cpu().numpy()}
        return {
            where: kendalls(first, second, size.reshape(-1), count=count)[0].reshape(size.shape)
            for where, size in sizes.items()
        }


def spreads(reading: Reading, importances: dict[str, PerUnit]) -> Columns:
    """The normalised entropies of attention and of the importances of words."""
    asked = {
        "attention": reading.weights,
        "gradient": importances["inputs_gradient"],
        "loo": importances["inputs_loo"],
    }
    return {f"entropy_{name}": entropy(values, reading.mask) for name, values in asked.items()}


def over_positions(
    norms: Float[Tensor, "batch position token"],
    real: Bool[Tensor, "batch token"],
    there: Bool[Tensor, "batch position"],
) -> Float[np.ndarray, " batch"]:
    """The mean over a text's states of the entropy of each; a state that no word moves has none."""
    each = entropy(norms, real[:, None].expand_as(norms))
    defined = ~np.isnan(each) & there.cpu().numpy()
    count = defined.sum(1)
    return np.where(count > 0, np.where(defined, each, 0.0).sum(1) / np.maximum(count, 1), np.nan)


def entropy(
    values: Float[Tensor, "*row token"], real: Bool[Tensor, "*row token"]
) -> Float[np.ndarray, "*row"]:
    """The normalised entropy of an importance, made to sum to 1; NaN for one token and where all is zero."""
    shares = values.detach().double().masked_fill(~real, 0.0)
    shares = shares / shares.sum(-1, keepdim=True)
    return np.asarray(normalised_entropy(shares.cpu().numpy(), real.cpu().numpy()))
