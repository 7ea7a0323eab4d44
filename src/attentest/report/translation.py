"""From the papers' words to ours: literal tables, so that a wrong pairing is found by reading them.

A word that is not here is taken as ours, so that a study of your own may compare in the names the
package uses: a corpus, an encoder, `experiment/measure`, a label.
"""

from __future__ import annotations

from dataclasses import dataclass

from attentest.studies.published import PublishedNumber


@dataclass(frozen=True)
class Dataset:
    """A data set of the papers: our corpus, its labels in the order of their class numbers, its stand-in."""

    corpus: str
    labels: tuple[str, ...] = ()
    stand_in: str | None = None  # imitates the corpus, so it is shown beside it and never judged
    text: str = ""  # the one text of a figure, by its id


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

ENCODERS = {"BiLSTM": "bilstm", "Average": "average", "CNN": "cnn"}

MEASURES = {
    "tau_attention_gradient": "importance/tau-gradient",
    "tau_attention_gradient_sig_frac": "importance/tau-gradient-significant",
    "tau_attention_loo": "importance/tau-loo",
    "tau_attention_loo_sig_frac": "importance/tau-loo-significant",
    "tau_attention_gradient_single_example": "heat-map/tau-gradient",
    "median_permutation_delta_y_single_example": "heat-map/median-output-change",
    "test_f1": "performance/f1",
    "test_accuracy": "performance/accuracy",
    "test_micro_f1": "performance/accuracy",  # one answer a text: micro-averaged F1 is accuracy
}

# Measures of a corpus, not of a model: they have no seeds, and the corpus's own cell answers them.
SIZES = ("train_size", "test_size", "vocab_size", "avg_length_tokens")

# The papers count training texts before a dev split is taken from them (A4), so these count both.
DEV_FROM_TRAIN = {"imdb", "20news", "adr", "agnews", "mimic-anemia", "babi-1", "babi-2", "babi-3"}
DEV_FROM_TRAIN |= {"babi-1-simulated", "babi-2-simulated", "babi-3-simulated"}

# Rows that are no results: what the text says the experiments were run with. A study's TOML says that of
# ours, so they are neither compared nor missing.
PARAMETERS = ("text",)

@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of ours a published number is to be laid beside. An empty label means all texts."""

    corpus: str
    stand_in: str | None
    encoder: str
    attention: str
    projection: str
    statistic: str  # experiment/measure, or one of SIZES
    label: str
    text: str = ""

    @property
    def experiment(self) -> str:
        """The experiment that measures it."""
        return self.statistic.partition("/")[0]

    @property
    def measure(self) -> str:
        """The measure's name within the experiment."""
        return self.statistic.partition("/")[2]

    @property
    def group(self) -> str:
        """The finding's group: one text, or a class, which in Table 2 is the predicted one (A21)."""
        return self.text or (f"predicted={self.label}" if self.label else "overall")


def wanted(number: PublishedNumber) -> Wanted:
    """The published number's place in our words."""
    dataset = DATASETS.get(number["dataset"], Dataset(number["dataset"]))
    return Wanted(
        corpus=dataset.corpus,
        stand_in=dataset.stand_in,
        encoder=ENCODERS.get(number["model"], number["model"]),
        attention=number["attention"],
        projection=number["projection"],
        statistic=MEASURES.get(number["measure"], number["measure"]),
        label=_label(number, dataset),
        text=dataset.text,
    )


def place(number: PublishedNumber) -> tuple[str, str, str]:
    """Which data set of which table the number is from."""
    return number["paper"], number["table"], number["dataset"]


def _label(number: PublishedNumber, dataset: Dataset) -> str:
    said = number["class"]
    labels = ORDERS.get(place(number), dataset.labels)
    if said in ("", "Overall") or dataset.text:
        return ""
    return labels[int(said)] if said in map(str, range(len(labels))) else said
