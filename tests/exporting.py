"""What an exported table says of its columns, and a study that fills one."""

from tests.gallery import hostile

LABELS = ("negative", "positive")


def labelled(rows):
    """Rows with the labels of SST, as published numbers have them."""
    names = [name for name in rows if name == "label" or name.endswith("predicted")]
    return hostile(rows.assign(**{n: rows[n].replace({"no": LABELS[0], "yes": LABELS[1]}) for n in names}))


TOY = """
study = "toy"
title = "As small as a study can be"
seeds = 2

[grid]
corpus = ["planted-keyword"]
encoder = ["average"]

[model]
hidden = 8
embedding = 8
epochs = 1

[[experiment]]
name = "performance"

[[experiment]]
name = "permutation"
parameters = { permutations = 5 }
"""
