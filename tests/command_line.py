"""A table of texts, how it is registered, and the options of a small training."""

from attentest.corpus.tables.registered import register

TINY = ("--encoder", "average", "--epochs", "1", "--batch-size", "16", "--device", "cpu")


STUDY = """
study = "tiny"
title = "A tiny study"

[grid]
corpus = ["mine"]
encoder = ["average"]

[model]
hidden = 8
embedding = 6
epochs = 2

[[experiment]]
name = "performance"

[[experiment]]
name = "permutation"
parameters = { permutations = 5 }

[[claim]]
says = "Shuffling attention rarely changes what a model predicts."
statistic = "permutation/median-output-change/overall"
supported_if = "high < 0.1"
refuted_if = "low > 0.1"
"""


def table(rows=60):
    """A CSV in which the second word says the label."""
    words = {"neg": "an awful", "pos": "a fine"}
    labels = ("neg", "pos") * (rows // 2)
    lines = (f"{words[label]} film of {n} minutes,{label}" for n, label in enumerate(labels))
    return "\n".join(["text,label", *lines]) + "\n"


def add(data, name, content, suffix=".csv"):
    """Register a table of that content, which lies beside the data directory."""
    path = data.parent / f"{name}{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    register(name, path, text="text", label="label", data_dir=data)
    return path
