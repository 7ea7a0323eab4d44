"""The papers' words and ours: one literal table for each paper, so that a wrong pairing is found by reading.

A word that is not here is taken as ours, so that a study of your own may compare in the names the package
uses: a corpus, an encoder, `experiment/measure`, a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """A data set of the papers: our corpus, its labels in the order of their class numbers, its stand-in."""

    corpus: str
    labels: tuple[str, ...] = ()
    stand_in: str | None = None  # imitates the corpus, so it is shown beside it and never judged
    text: str = ""  # the one text of a figure, by its id


@dataclass(frozen=True)
class Measure:
    """A measure that is found in a group of its own: one by name, or one that a word of the row decides."""

    statistic: str
    group: str = ""
    by: str = ""  # the column of that word


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The words of one paper."""

    datasets: Mapping[str, Dataset]
    encoders: Mapping[str, str]
    measures: Mapping[str, str | Measure]
    attentions: Mapping[str, str] = field(default_factory=dict)
    projections: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)  # of words that decide one
    # What an experiment must have been run with for a group to mean what the paper's does.
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Tables and measures that are no results but what experiments were run with. A study's TOML says that of
    # ours, so they are neither compared nor missing.
    settings: tuple[str, ...] = ()


# Measures of a corpus, not of a model: they have no seeds, and the corpus's own cell answers them. Beside
# each, the decimals that the papers print.
SIZES = {
    "train_size": 0,
    "test_size": 0,
    "train_plus_dev_size": 0,
    "num_classes": 0,
    "vocab_size": 0,
    "avg_length_tokens": 0,
    "avg_words": 0,
    "avg_sentences": 1,
}

DATASETS = {
    "SST": Dataset("sst", ("negative", "positive")),
    "IMDB": Dataset("imdb", ("negative", "positive")),
    "IMDB(example)": Dataset("imdb", text="test/neg/231_1"),
    "ADR Tweets": Dataset("adr", ("no", "yes")),
    "20News": Dataset("20news", ("baseball", "hockey")),
    "AG News": Dataset("agnews", ("world", "business")),
    "Diabetes": Dataset("mimic-diabetes", ("no diabetes", "diabetes")),
    "Anemia": Dataset("mimic-anemia", ("chronic", "acute")),  # as in the code; the paper's text says acute 0
    "CNN": Dataset("cnn"),
    "bAbI 1": Dataset("babi-1", stand_in="babi-1-simulated"),
    "bAbI 2": Dataset("babi-2", stand_in="babi-2-simulated"),
    "bAbI 3": Dataset("babi-3", stand_in="babi-3-simulated"),
    "SNLI": Dataset("snli", ("contradiction", "entailment", "neutral")),  # the code sorts by name
}

# Where a table numbers the classes in another order: SNLI's test set has 3219 neutral, 3237 contradicting
# and 3368 entailing pairs, and that is how Table 1 prints them.
ORDERS = {("Jain&Wallace2019", "Table1", "SNLI"): ("neutral", "contradiction", "entailment")}

# Where nobody knows the order (A20): the pairing by the code's order is shown, and not judged.
UNKNOWN_ORDER = {("Jain&Wallace2019", "Table2_proceedings", "SNLI")}

# The papers count training texts before a dev split is taken from them (A4), so these count both.
DEV_FROM_TRAIN = {"imdb", "20news", "adr", "agnews", "mimic-anemia", "babi-1", "babi-2", "babi-3"}
DEV_FROM_TRAIN |= {"babi-1-simulated", "babi-2-simulated", "babi-3-simulated"}

JAIN_WALLACE = Paper(
    datasets=DATASETS,
    encoders={"BiLSTM": "bilstm", "Average": "average", "CNN": "cnn"},
    measures={
        "tau_attention_gradient": "importance/tau-gradient",
        "tau_attention_gradient_sig_frac": "importance/tau-gradient-significant",
        "tau_attention_loo": "importance/tau-loo",
        "tau_attention_loo_sig_frac": "importance/tau-loo-significant",
        "tau_attention_gradient_single_example": "heat-map/tau-gradient",
        "median_permutation_delta_y_single_example": "heat-map/median-output-change",
        "test_f1": "performance/f1",
        "test_accuracy": "performance/accuracy",
        "test_micro_f1": "performance/accuracy",  # one answer a text: micro-averaged F1 is accuracy
    },
    settings=("text",),
)

# Every number stands at the grid point of the base model; the group says which of its siblings it is of. An
# F1 of class 1 is ours of two classes, over all texts.
WIEGREFFE_PINTER = Paper(
    datasets=DATASETS,
    encoders={"BiLSTM": "bilstm", "MLP": "bilstm"},
    attentions={
        "uniform(frozen)": "additive",
        "additive(adversary)": "additive",
        "UNIFORM": "additive",
        "TRAINED MLP": "additive",
        "BASE LSTM": "additive",
        "ADVERSARY(lambda=0.001)": "additive",
    },
    projections={"none": "softmax", "": "softmax"},
    measures={
        "f1_reported_by_JW": Measure("performance/f1", group="overall"),
        "f1_reproduced": Measure("uniform-baseline/f1", group="trained"),
        "f1_uniform": Measure("uniform-baseline/f1", group="uniform"),
        "f1_guided": Measure("guided/f1", by="attention"),
        "adversarial_f1": Measure("trained-adversary/f1", by="dataset"),
        # The code halves the distance of two outputs (A6), and so did what was printed.
        "adversarial_tvd_outputs": Measure("trained-adversary/output-tvd-halved", by="dataset"),
        "adversarial_jsd_attention": Measure("trained-adversary/attention-jsd", by="dataset"),
    },
    groups={
        "UNIFORM": "guided by uniform",
        "TRAINED MLP": "guided by own",
        "BASE LSTM": "guided by base",
        "ADVERSARY(lambda=0.001)": "guided by adversary",
        # The lambda of each data set, in the code's unit, as ours is (A31).
        "Diabetes": "lambda 0.0002",
        "Anemia": "lambda 0.0005",
        "SST": "lambda 0.000525",
        "IMDB": "lambda 0.0008",
    },
    parameters={"guided by adversary": {"adversary": 0.001}},
    settings=("code_seeds", "adversarial_lambda"),
)

SERRANO_SMITH = Paper(
    datasets={
        "Yahoo": Dataset("yahoo"),
        "IMDB": Dataset("imdb-ratings"),  # ten ratings, of which the files at hand hold eight
        "Amazon": Dataset("amazon"),
        "Yelp": Dataset("yelp"),
    },
    encoders={
        "HANrnn": "han-bigru",
        "HANconv": "han-conv",
        "HANnoenc": "han-identity",
        "FLANrnn": "bigru",
        "FLANconv": "conv",
        "FLANnoenc": "identity",
    },
    attentions={"additive(HAN)": "additive-wide", "additive(FLAN)": "additive-wide"},
    measures={
        "pct_both_flip": "single-weight/both-flip-attention",
        "pct_only_top_flips": "single-weight/only-top-flips-attention",
        "pct_only_random_flips": "single-weight/only-random-flips-attention",
        "pct_neither_flips": "single-weight/neither-flips-attention",
    },
)

PAPERS = {
    "Jain&Wallace2019": JAIN_WALLACE,
    "Wiegreffe&Pinter2019": WIEGREFFE_PINTER,
    "Serrano&Smith2019": SERRANO_SMITH,
}
