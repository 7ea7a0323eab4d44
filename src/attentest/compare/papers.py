"""The papers' words and ours: one literal table for each paper, so that a wrong pairing is found by reading.

A word that is not here is taken as ours, so that a study of your own may compare in the names the package
uses: a corpus, an encoder, `experiment/measure`, a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final


@final
@dataclass(frozen=True)
class Dataset:
    """A data set of the papers: our corpus, its labels in the order of their class numbers, its stand-in."""

    corpus: str
    labels: tuple[str, ...] = ()
    stand_in: str | None = None  # imitates the corpus, so it is shown beside it and never judged
    text: str = ""  # the one text of a figure, by its id


@final
@dataclass(frozen=True)
class Measure:
    """A measure that is found in a group of its own: one by name, or one that a word of the row decides."""

    statistic: str
    group: str = ""
    by: str = ""  # the column of that word; of two words, both columns


@final
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
ORDERS = dict.fromkeys(
    [("Jain&Wallace2019", "Table1", "SNLI"), ("Wen2022", "Table1", "SNLI")],
    ("neutral", "contradiction", "entailment"),
)

# Where nobody knows the order (A20): the pairing by the code's order is shown, and not judged.
UNKNOWN_ORDER = {("Jain&Wallace2019", "Table2_proceedings", "SNLI")}

# A table that was printed in two versions: verdicts are against the later one, the earlier is shown (A4).
EARLIER_VERSIONS = {("Jain&Wallace2019", "Table2_slides"): "Table2_proceedings"}

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

# No lambda is printed beside the adversaries of Table 5 but the divergence they reached: ours are read off
# the curve over lambda at the same one, which is therefore no result to compare.
MEISTER = Paper(
    datasets=DATASETS,
    encoders={
        "BiLSTM": "bilstm",
        "Transformer": "transformer",
        "BiLSTM (adv frozen)": "bilstm",
        "BiLSTM (adv unfrozen)": "bilstm",
        "Transformer (adv frozen)": "transformer",
        "Transformer (adv unfrozen)": "transformer",
    },
    attentions={"additive(tanh)": "additive"},
    projections={"sparsegen": "softmax"},  # the sweep stands at the point of the model it varies
    measures={
        "norm_entropy_grad_h_wrt_x": "dispersion/entropy-influence",
        "corr_lambda_vs_norm_entropy_grad_y_wrt_x": Measure(
            "sparsity/kendall-lambda-entropy-gradient", group="sweep"
        ),
        "test_accuracy": "performance/accuracy",
        "tau_attention_gradient_inputs": "dispersion/tau-inputs-gradient",
        "tau_attention_loo_inputs": "dispersion/tau-inputs-loo",
        "tau_attention_gradient_intermediate": "dispersion/tau-hidden-gradient",
        "tau_attention_loo_intermediate": "dispersion/tau-hidden-loo",
        "accuracy": Measure("frozen-adversary/accuracy", by="model dataset"),
        "accuracy_minus_baseline": Measure("frozen-adversary/accuracy-change", by="model dataset"),
    },
    groups={
        "BiLSTM (adv frozen) IMDB": "frozen at 0.67",
        "BiLSTM (adv frozen) SST": "frozen at 0.62",
        "BiLSTM (adv frozen) 20News": "frozen at 0.67",
        "BiLSTM (adv unfrozen) IMDB": "unfrozen at 0.67",
        "BiLSTM (adv unfrozen) SST": "unfrozen at 0.61",
        "BiLSTM (adv unfrozen) 20News": "unfrozen at 0.67",
        "Transformer (adv frozen) IMDB": "frozen at 0.62",
        "Transformer (adv frozen) SST": "frozen at 0.57",
        "Transformer (adv frozen) 20News": "frozen at 0.62",
        "Transformer (adv unfrozen) IMDB": "unfrozen at 0.64",
        "Transformer (adv unfrozen) SST": "unfrozen at 0.57",
        "Transformer (adv unfrozen) 20News": "unfrozen at 0.62",
    },
    settings=("Table4", "jsd_attention"),
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

# The change of tau stands at the grid point of the normal model; the group says which sibling it is to.
WEN = Paper(
    datasets=DATASETS,
    encoders={"BiLSTM": "bilstm", "CNN": "cnn-wen"},
    measures={
        "test_accuracy": "performance/accuracy",
        "delta_weighted_tau_fixed_attn": Measure("information-ablation/tau-lost", group="fix attn"),
        "delta_weighted_tau_fixed_rep": Measure("information-ablation/tau-lost", group="fix rep"),
        "delta_weighted_tau_adversarial": Measure("information-ablation/tau-lost", by="dataset"),
        "adversarial_accuracy": Measure("information-ablation/accuracy", by="dataset"),
        # Taken as halved, as in the code of the adversary (A31).
        "adversarial_tvd_outputs": Measure("information-ablation/output-tvd-halved", by="dataset"),
        "adversarial_jsd_attention": Measure("information-ablation/attention-jsd", by="dataset"),
    },
    groups={
        "SST": "lambda 0.000525",
        "IMDB": "lambda 0.0008",
        "Diabetes": "lambda 0.0002",
        **dict.fromkeys(("AG News", "ADR Tweets", "20News", "Anemia"), "lambda 0.0005"),
    },
    # Averages and counts over all corpora and models are no grid point's: `over_settings` has ours.
    settings=("adversarial_lambda", "Table5", "text_sec5"),
)

PAPERS = {
    "Jain&Wallace2019": JAIN_WALLACE,
    "Wiegreffe&Pinter2019": WIEGREFFE_PINTER,
    "Serrano&Smith2019": SERRANO_SMITH,
    "Wen2022": WEN,
    "Meister2021": MEISTER,
}
