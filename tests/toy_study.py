"""A study as small as can be, what two runs of it must agree on, and how a training is interrupted."""

import hashlib
import json
import math

from attentest.experiments.description import Conclusion, Description
from attentest.statistics.record import Finding
from attentest.store.store import Store

# Which word decides has to be learnt; few texts, so that a training takes a moment.
CORPUS = "planted-reviews(cues=2,dev=60,distractors=0,length=24,negation=0.0,test=60,train=400)"
TOY = """
study = "toy"
title = "As small as a study can be"
seeds = 1

[grid]
corpus = ["{corpus}"]
encoder = ["average"]

[model]
hidden = 8
embedding = 8
epochs = {epochs}
vectors = "{vectors}"

{experiments}

[[claim]]
says = "Most texts do not notice."
statistic = "permutation/share-unmoved/overall"
supported_if = "low > 0.5"
refuted_if = "high < 0.5"
"""


# A rate so small that nothing is learnt and no epoch is the last before its time.
LONG = """
study = "long"
title = "Long enough to be killed in"
seeds = {seeds}

[grid]
corpus = ["planted-keyword"]
encoder = ["average"]

[model]
hidden = 8
embedding = 8
epochs = {epochs}
patience = {epochs}
learning_rate = 1e-6

[[experiment]]
name = "performance"

[[experiment]]
name = "permutation"
parameters = {{ permutations = 5 }}
"""


PERFORMANCE = '[[experiment]]\nname = "performance"'


PERMUTATION = '[[experiment]]\nname = "permutation"\nparameters = {{ permutations = {} }}'


BOTH = f"{PERFORMANCE}\n\n{PERMUTATION.format(5)}"


def toml(folder, experiments=BOTH, epochs=1, vectors="random", corpus=CORPUS):
    path = folder / "toy.toml"
    path.write_text(TOY.format(corpus=corpus, experiments=experiments, epochs=epochs, vectors=vectors))
    return str(path)


def data_files(url):
    """What two runs must agree on: everything but the descriptions, which hold times and hosts."""
    store = Store(url)
    return {
        f"{key}/{name}": hashlib.sha256(store.read(key, name)).hexdigest()
        for key in store.done()
        for name in store.about(key)["files"]
    }


def descriptions(url):
    store = Store(url)
    return {key: store.find("cells", key, "cell.json") for key in store.done()}


def of_stage(url, stage):
    store = Store(url)
    return [key for key in store.done() if store.about(key)["stage"] == stage]


def finding(measure, estimate, mode):
    nothing = {"std": math.nan, "seed_std": math.nan, "low": math.nan, "high": math.nan, "null": math.nan}
    counts = {"n": 1, "seeds": 1, "excluded": 0, "why": "", "interval": "none", "mode": mode}
    return Finding(experiment="kin", measure=measure, group="overall", estimate=estimate, **nothing, **counts)


def conclude_kin(rows, *, mode, rng):
    return [finding(f"{row.subject}-{row.id}", row.apart, mode) for row in rows.itertuples()]


def kin_conclusion(conclude, name="kin"):
    """A conclusion of an experiment that only a test has."""
    about = Description(name=name, title=name, asks="What is it?", cite="jain2019attention")
    return Conclusion(conclude, version=1, about=about, cards={}, columns=())


class MemoryCheckpoint:
    """A checkpoint that remembers its last save, copied as a file would be."""

    def __init__(self):
        self.last, self.saves = None, 0

    def load(self):
        if self.last is None:
            return None
        tensors, notes = self.last
        return {name: tensor.clone() for name, tensor in tensors.items()}, json.loads(json.dumps(notes))

    def save(self, tensors, notes):
        self.last = {name: tensor.detach().clone() for name, tensor in tensors.items()}, notes
        self.saves += 1


def interrupted_after(steps, *, also=lambda: None):
    """A listener that interrupts once so many steps are taken."""
    taken = 0

    def on_progress(progress):
        nonlocal taken
        taken += 1
        also()
        if taken == steps:
            raise KeyboardInterrupt

    return on_progress
