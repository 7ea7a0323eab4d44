"""Can somebody who hears a few words of a text say what the classifier said?

Rows, one a text and model, beyond what every row begins with (`experiments.rows.begun`):

- `support`: how many words have positive weight
- `agrees_M`, `right_M` of each message M: the share of draws in which its layperson said what the classifier
  said, and in which it said the gold label; NaN where the classifier's output is not a number

M is `EXPLAINER@K`, or `silence`, `whole`, `embedded`; `chance-attention@K`, `chance-embedded` and
`chance-joint@K` are random words, as many as were sent of the text. `words_joint`, and the messages of
`joint`, are there where that explainer was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from attentest.evidence.game.joint_explainer import JointExplainer, Told
from attentest.experiments.communication import ABOUT
from attentest.experiments.communication.conclude import PROJECTIONS
from attentest.experiments.communication.game import Columns, Game
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import controls
from attentest.experiments.shared.explained_split import ExplainedSplit
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import LAST_STATE
from attentest.model.reader import readings
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Communication(AbstractExperiment):
    """The communication game (Treviso & Martins 2020): explainers send words, laypeople guess the answer.

    Every classifier is asked the same: the subject, the same model with other projections, the controls.
    `surrogate` is ours: a linear model that learnt the classifier's answers from whole texts sends the words
    that speak most for the answer. `joint` asks for the explainer that is trained together with a layperson,
    too; it reads the training texts ten times more for every classifier.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1
    later: ClassVar[Mapping[str, Any]] = {"joint": False}

    k: str = "1 3 5 10"  # how many words are sent
    draws: int = 3  # of random words
    taught: int = 10_000  # training texts at most, spread over the split: leaving words out takes long
    joint: bool = False  # also an explainer that is trained together with a layperson

    def __post_init__(self) -> None:
        if not self.sizes or self.draws < 1 or self.taught < 1:
            raise Refusal(
                "experiment communication",
                got=f"k = {self.k!r}, {self.draws} draws, {self.taught} texts to learn from",
                needs="numbers of words from 1 on with blanks between them, and at least 1 draw and 1 text",
                way_out="'1 3 5 10', 3 and 10000 are the defaults.",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of words, each once and the smallest first; none if any cannot be read."""
        given = self.k.split()
        if not all(number.isascii() and number.isdigit() and int(number) for number in given):
            return ()
        return tuple(sorted({int(number) for number in given}))

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The same model with each of the other projections, and the controls."""
        if config.encoder.startswith("han-") or config.attention == LAST_STATE:
            raise Refusal(
                "experiment communication",
                got=f"the encoder {config.encoder!r} with the attention {config.attention!r}",
                needs="attention over words: they are what is sent",
                way_out="Use 'bilstm' with 'additive', for example.",
            )
        others = [name for name in PROJECTIONS if name != config.projection]
        projected = {name: replace(config, projection=name, guide=None) for name in others}
        return {**projected, **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model.

        Laypeople learn here, though nothing trains in `observe`: they are the instrument, as a line of
        regression is, and no models of the study. They are made of messages that exist only here, take
        seconds, and serve nobody else.
        """
        for each in (subject, *subject.sibling.values()):
            yield from self._observed(each, rng)

    def _observed(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        labels = subject.labels
        game = self._game(subject)
        columns = {"support": game.test.support, **game.columns(self.sizes, self.draws, rng=rng)}
        if self.joint:  # with draws of its own: the others' messages are the same without it
            columns |= self._joint(subject, game, rng.spawn(1)[0])
        for rows, reading in readings(subject.model, subject.texts):
            for place, row in zip(rows, common_columns(subject, rows, reading), strict=True):
                said = labels[game.test.answers[place]]
                yield {**row, "predicted": said, **{name: c[place].item() for name, c in columns.items()}}

    def _joint(self, subject: Subject, game: Game, rng: np.random.Generator) -> Columns:
        """The messages of an explainer that is trained here, an instrument as laypeople are."""
        weights = [np.zeros(split.lengths.sum()) for split in game.splits]
        if game.teachable:
            told = [Told(each.split, each.answers, np.flatnonzero(each.defined)) for each in game.splits]
            explainer = JointExplainer.taught(subject.network, *told[:2], classes=game.classes, rng=rng)
            weights = [explainer.weights(each.split, each.answers) for each in game.splits]
        return game.joint_columns(weights, self.sizes, self.draws, rng=rng)

    def _game(self, subject: Subject) -> Game:
        """The classifier's explained splits, the training split cut to what laypeople are taught."""
        train = subject.corpus.train
        some = np.linspace(0, len(train) - 1, min(self.taught, len(train))).astype(int)
        numbered = (
            IndexedSplit(examples, subject.vocabulary, subject.labels)
            for examples in ([train[row] for row in some], subject.corpus.dev)
        )
        explained = [ExplainedSplit.of(subject.model, split) for split in (*numbered, subject.texts)]
        return Game(
            **dict(zip(("train", "dev", "test"), explained, strict=True)),
            vocabulary=len(subject.vocabulary),
            classes=len(subject.labels),
        )
