"""Hidden states and outputs as symbols, by rank of attention: what questions of information start from.

`RankedSplit` is a whole test split as one model reads it, every text's units in the order of attention.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.information.quantisation import k_means, nearest, rank_symbols
from attentest.evidence.information.ranked import output_symbols, ranked
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.orders import FEW_TEXTS, LISTS
from attentest.model.batch import buckets
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import Reading
from attentest.refusal import Refusal
from attentest.statistics.comparison import normalised_entropy


@final
@dataclass(frozen=True, eq=False)
class RankedSplit:
    """What a ranking needs of every text, in the order of the examples."""

    rows: list[Row]  # what every row begins with, and how flat attention is
    attention: Float[np.ndarray, "text unit"]  # NaN beyond a text's units
    vectors: Float[Tensor, "rank text hidden"]  # a rank lies together, since each is quantised alone
    logits: Float[Tensor, "text class"]

    @classmethod
    def read(cls, subject: Subject, most: int, noise: torch.Generator | None) -> RankedSplit:
        """Hidden states are kept for `most` ranks; `noise` draws what training draws, None means none."""
        model, split = subject.model, subject.texts
        whole = cls(
            rows=[{} for _ in split.examples],
            attention=np.full((len(split), int(split.lengths.max())), np.nan),
            vectors=torch.zeros(most, len(split), model.width, device=model.device),
            logits=torch.zeros(len(split), model.outputs, device=model.device),
        )
        for places in buckets(split.lengths, split.at_once or TEXTS, tokens=TOKENS):
            with torch.no_grad():
                reading = model.read_distinct(split.batch(places).to(model.device), rng=noise)
                whole.logits[places] = model.decide(reading)
                found = ranked(reading, most)
            whole.vectors[: found.vectors.shape[1], places] = found.vectors.transpose(0, 1)
            whole.attention[places, : found.weights.shape[1]] = found.weights.cpu().numpy()
            for place, row in zip(places, _begun(subject, places, reading), strict=True):
                whole.rows[place] = row
        return whole

    @property
    def lengths(self) -> Int[np.ndarray, " text"]:
        """The units of each text."""
        return np.array([row["length"] for row in self.rows], dtype=np.int64)

    @property
    def sound(self) -> Bool[np.ndarray, " text"]:
        """Whether a text's attention and output are numbers."""
        weights = (~np.isnan(self.attention)).sum(axis=1) == self.lengths
        return weights & ~self.logits.isnan().any(1).cpu().numpy()


def _begun(subject: Subject, places: np.ndarray, reading: Reading) -> list[Row]:
    flat = np.atleast_1d(normalised_entropy(reading.weights.cpu().numpy(), reading.mask.cpu().numpy()))
    rows = common_columns(subject, places, reading)
    return [{**row, "entropy": float(own)} for row, own in zip(rows, flat, strict=True)]


Vectors: TypeAlias = Float[Tensor, "rank text hidden"]
Columns: TypeAlias = dict[str, Any]

FEWEST = 3  # of fewer ranks an order says next to nothing


class Depth(NamedTuple):
    """How far down the ranks go: by the texts' lengths, and by the attention that is left there."""

    by_length: int
    by_attention: int

    @property
    def k(self) -> int:
        """The number of ranks."""
        return min(self)


def depth(
    attention: Float[np.ndarray, "text unit"],
    lengths: Int[np.ndarray, " text"],
    *,
    percentile: float = 10.0,
    share: float = 0.8,
    least: float = 1e-5,
) -> Depth:
    """The length that all but `percentile` of the texts reach, and the last rank with attention to speak of.

    `attention` is sorted, the largest first. The last rank is the largest k at which, of the texts that are
    so long, at least `share` have more than `least` there.
    """
    if not len(lengths):
        return Depth(0, 0)
    ranks = np.arange(1, attention.shape[1] + 1)
    reaching = lengths[:, None] >= ranks
    heavy = (reaching & (attention > least)).sum(axis=0)
    enough = (heavy > 0) & (heavy >= share * reaching.sum(axis=0))
    return Depth(int(np.percentile(lengths, percentile)), int(ranks[enough].max(initial=0)))


FEW_RANKS = f"fewer than {FEWEST} ranks"
SMALL = "some clusters have fewer than two members"
TOO_SMALL = "too many clusters have fewer than two members"


@dataclass(frozen=True, kw_only=True)
class AbstractByRank(AbstractExperiment, ABC):
    """The measurement of Wen et al. (2022), up to the symbols.

    `percentile`, `reach` and `least` choose the number of ranks (A9); `clusters` are the sizes of codebook to
    try, the largest first, and `singletons` the share of clusters that may be small (A10). Of two classes the
    output is one of `outputs`. The one codebook of all ranks is fitted to a `sample` of their states. `nulls`
    is for the draws of every null.
    """

    lists: ClassVar[tuple[str, ...]] = LISTS  # columns that hold a number for each of the ranks

    percentile: float = 10.0
    reach: float = 0.8
    least: float = 1e-5
    clusters: str = "200 150 100 75 50"
    singletons: float = 0.05
    outputs: int = 5
    restarts: int = 10
    sample: int = 10_000
    nulls: int = 200

    def __post_init__(self) -> None:
        most = max(sizes(self.clusters, self.name))
        shares = (self.percentile / 100, self.reach, self.singletons)
        if not (all(0 <= share <= 1 for share in shares) and self.least >= 0):
            raise Refusal(
                f"experiment {self.name}",
                got=f"percentile {self.percentile:g}, reach {self.reach:g}, least {self.least:g},"
                f" singletons {self.singletons:g}",
                needs="a percentile of 0 to 100, shares of 0 to 1, and a weight of 0 or more",
                way_out="Leave them out for the defaults.",
            )
        asked = (self.restarts, self.outputs, self.sample, self.nulls)
        # Of fewer than 20 draws no p-value is below 0.05.
        if any(one < least for one, least in zip(asked, (1, 2, most, 20), strict=True)):
            raise Refusal(
                f"experiment {self.name}",
                got="restarts, outputs, sample and nulls of " + ", ".join(map(str, asked)),
                needs=f"at least 1, 2, {most} (the most clusters) and 20",
                way_out="Leave them out for the defaults.",
            )

    def told(self, vectors: Vectors, output: Int[Tensor, " text"]) -> Columns:
        """What else an experiment wants to keep of each text's states; nothing, unless it says otherwise."""
        return {}

    def read(self, subject: Subject, noise: torch.Generator | None = None) -> RankedSplit:
        """The test split, with the states of all the ranks that may be asked for.

        Units are tokens or fewer, so the length in tokens bounds the ranks.
        """
        most = max(1, int(np.percentile(subject.texts.lengths, self.percentile)))
        return RankedSplit.read(subject, most, noise)

    def measured(self, split: RankedSplit, rng: torch.Generator, *, or_none: bool = False) -> Iterator[Row]:
        """One row a text of one model. A text that is left out has the output -1, and no lists.

        Fewer texts than clusters are refused, or with `or_none` all left out: a sibling that is asked beside
        the subject must not end the asking.
        """
        sound, lengths = split.sound, split.lengths
        rule = {"percentile": self.percentile, "share": self.reach, "least": self.least}
        k = depth(split.attention[sound], lengths[sound], **rule).k
        kept = np.flatnonzero(sound & (lengths >= k) & (k > 0))
        few = or_none and 0 < len(kept) < min(sizes(self.clusters, self.name))
        kept = kept[: 0 if few else None]
        about, columns = self._symbols(split, kept, k, rng) if len(kept) else ({}, {})
        about = {"k": k, "clusters": 0, "small_clusters": np.nan, "nulls": self.nulls, **about}
        flags = (*self._flags(k, about["small_clusters"]), *[FEW_TEXTS] * few)
        about["flags"] = "; ".join(flags)
        place = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        nothing = {"output": -1, **dict.fromkeys(self.lists)}
        for number, row in enumerate(split.rows):
            own = (
                {name: column[place[number]] for name, column in columns.items()}
                if number in place
                else nothing
            )
            yield {**row, **about, **own}

    def _symbols(
        self, split: RankedSplit, kept: Int[np.ndarray, " kept"], k: int, rng: torch.Generator
    ) -> tuple[Row, Columns]:
        """What was chosen for the model, and the columns of the texts it is measured on."""
        vectors = split.vectors[:k, torch.from_numpy(kept)]
        found = rank_symbols(
            vectors,
            sizes(self.clusters, self.name),
            rng=rng,
            restarts=self.restarts,
            singletons=self.singletons,
        )
        output = output_symbols(split.logits[kept], self.outputs, rng=rng, restarts=self.restarts)
        columns = {
            "output": output.tolist(),
            "attention": split.attention[kept, :k].astype(np.float32),
            "symbols": by_text(found.symbols),
            "joint": by_text(self._joint(vectors, found.number, rng)),
            **self.told(vectors, output),
        }
        return {"clusters": found.number, "small_clusters": found.small}, columns

    def _joint(self, vectors: Vectors, number: int, rng: torch.Generator) -> Int[Tensor, "rank text"]:
        """By one codebook of all ranks, which is fitted to states of any rank alike."""
        flat = vectors.flatten(0, 1)
        some = torch.randperm(len(flat), generator=rng)[: self.sample].to(flat.device)
        codebook = k_means(flat[some], number, rng=rng, restarts=self.restarts)
        return torch.stack([nearest(of_rank, codebook.centres) for of_rank in vectors])

    def _flags(self, k: int, small: float) -> Iterator[str]:
        if k < FEWEST:
            yield FEW_RANKS
        if small > 0:
            yield SMALL if small <= self.singletons else TOO_SMALL


def sizes(written: str, experiment: str) -> list[int]:
    """The numbers of clusters to try, as a study writes them."""
    try:
        numbers = [int(one) for one in written.split()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 2:
        raise Refusal(
            f"experiment {experiment}, parameter 'clusters'",
            got=repr(written),
            needs="whole numbers of at least 2, apart by spaces",
            way_out="'200 150 100 75 50' is the default; one number fixes it.",
        )
    return numbers


def by_text(symbols: Int[Tensor, "rank text"]) -> Int[np.ndarray, "text rank"]:
    """Small numbers are stored as small ones."""
    return symbols.T.to("cpu", torch.int32 if symbols.max() > 2**15 - 1 else torch.int16).numpy()
