"""Log-odds attention: a word's weight is what a bag-of-words classifier thinks of it (JW-6).

An L1 logistic regression reads the training texts as bags of words, without order and without a network. The
size of a word's coefficient is its score wherever the word stands, so this is attention that no hidden state
had a say in: imposed on a model, trained under, or aimed at by a regulariser.
"""

from __future__ import annotations

import importlib
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import sparse
from torch import Tensor, nn

from attentest.corpus.vocabulary import RESERVED, Vocabulary
from attentest.model.batch import AbstractSplit, Batch
from attentest.model.divergence import jensen_shannon
from attentest.model.networks.projection import softmax
from attentest.refusal import Refusal

LOG_ODDS = "log-odds"  # the attention; `log-odds(FACTOR)` is the loss

Numbers = Int[Tensor, "batch token"]
RealTokens = Bool[Tensor, "batch token"]
Attended = Float[Tensor, "batch token"]

# Words that build sentences. Ours, and short: the usual lists also hold words with a meaning of their own,
# and negations, which decide. Clitics are here because tokenisers cut them off.
_FUNCTION_WORDS = """
    a an the and or but if as than because so while though although until unless whether
    of at by for with about against between into through during before after above below to from up down in
    out on off over under around upon within onto
    i you he she it we they me him her us them my your his its our their mine yours hers ours theirs
    myself yourself himself herself itself ourselves yourselves themselves
    who whom whose which what this that these those there here then when where why how
    am is are was were be been being have has had having do does did doing
    will would shall should can could may might must
    's 're 've 'll 'd 'm
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


@final
class LogOddsAttention(nn.Module):
    """`z_t = |coefficient of word t|`: a table, fitted before training and never trained.

    Function words and words the regression did not see score 0, and so does every word where it learnt
    nothing: attention is then uniform. The table is a buffer, so a saved model carries it.
    """

    strengths: Tensor

    def __init__(self, words: int) -> None:
        super().__init__()
        self.register_buffer("strengths", torch.zeros(words))

    @classmethod
    def fitted(cls, split: AbstractSplit, vocabulary: Vocabulary) -> LogOddsAttention:
        """The table of a training split."""
        attention = cls(len(vocabulary))
        attention.strengths.copy_(torch.from_numpy(fit_strengths(split, vocabulary)))
        return attention

    def forward(self, tokens: Numbers) -> Attended:
        """The raw scores; padding has one too, until a projection masks it."""
        return self.strengths[tokens]

    def weights(self, tokens: Numbers, mask: RealTokens) -> Attended:
        """The attention itself, a softmax over the text's tokens."""
        return softmax(self(tokens), mask)


def fit_strengths(split: AbstractSplit, vocabulary: Vocabulary) -> Float[np.ndarray, " word"]:
    """The size of every word's coefficient, largest over classes; 0 for function words and reserved numbers.

    A text is its set of words as a vector of length one. With a query only the text is read: it is what is
    attended. Two classes are one regression; of more, each is told from the rest.
    """
    carries = np.array([word.lower() not in FUNCTION_WORDS for word in vocabulary.words])
    carries[: len(RESERVED)] = False
    bags = [np.unique(numbers[carries[numbers]]) for numbers in split.tokens]
    words, columns = np.unique(np.concatenate(bags), return_inverse=True)
    classes = np.unique(split.labels)
    _check_learnable(len(words), len(classes))
    sizes = np.array([len(bag) for bag in bags])
    entries = 1.0 / np.sqrt(np.repeat(sizes, sizes))
    ends = np.concatenate([[0], sizes.cumsum()])
    texts = sparse.csr_matrix((entries, columns, ends), shape=(len(bags), len(words)))
    told_apart = classes if len(classes) > 2 else classes[1:]
    strengths = np.zeros(len(vocabulary))
    strengths[words] = np.max([np.abs(_coefficients(texts, split.labels == c)) for c in told_apart], axis=0)
    return strengths


def _coefficients(texts: sparse.csr_matrix, positive: Bool[np.ndarray, " text"]) -> np.ndarray:
    """L1 logistic regression at the library's own strength, C = 1; none is published."""
    # scikit-learn takes most of a second to import, which no other model should pay.
    regression = importlib.import_module("sklearn.linear_model").LogisticRegression(
        l1_ratio=1.0, solver="liblinear", tol=1e-6, max_iter=1000, random_state=0
    )
    return regression.fit(texts, positive).coef_[0]


def _check_learnable(words: int, classes: int) -> None:
    if words and classes > 1:
        return
    raise Refusal(
        LOG_ODDS,
        got="training texts that hold function words alone" if classes > 1 else "training texts of one label",
        needs="words and at least two labels to tell apart by them",
        way_out="Use another attention and loss for this corpus, or mend its training split.",
    )


@final
class Regulariser(nn.Module):
    """`factor * JSD(attention, log-odds attention)` of every text."""

    def __init__(self, factor: float, target: LogOddsAttention) -> None:
        super().__init__()
        self.factor, self.target = factor, target

    def forward(self, weights: Attended, batch: Batch) -> Float[Tensor, " batch"]:
        """What each text adds to the loss."""
        return self.factor * jensen_shannon(weights, self.target.weights(batch.tokens, batch.mask))
