"""What an exported table says of its columns."""

from tests.gallery import hostile

LABELS = ("negative", "positive")


def labelled(rows):
    """Rows with the labels of SST, as published numbers have them."""
    names = [name for name in rows if name == "label" or name.endswith("predicted")]
    return hostile(rows.assign(**{n: rows[n].replace({"no": LABELS[0], "yes": LABELS[1]}) for n in names}))
