"""The demo as a person sees it: numbers, a distribution, what was published, texts, and where to go."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from attentest.compare.pairs import decimal, interval, published, version_a
from attentest.gallery.heatmaps import Strip
from attentest.notebook import number
from attentest.terminal.charts import paired_histograms
from attentest.terminal.documents import show_study
from attentest.terminal.tables import pair_terminal, plain_table, strip

Document = dict[str, Any]
# Of some two hundred measures, those that a first look is about; --json and the pages have all of them.
MAIN = {
    "performance": ("accuracy",),
    "importance": ("tau-gradient", "tau-gradient-excess", "tau-loo", "tau-loo-excess"),
    "permutation": ("median-output-change", "share-unmoved"),
    "adversary": ("emax-jsd-exact@0.01", "emax-jsd-last@0.05"),
    "single-weight": ("only-top-flips-attention", "only-random-flips-attention"),
    "removal": ("fraction-attention", "at-optimum-attention"),
    "uniform-baseline": ("accuracy-lost",),
    "deception": ("mass",),
}
NEXT = (
    ("report --store {store} --out pages", "these pages again"),
    ("compare jain-wallace-2019 --store {store}", "what was published"),
    ("conclude --store {store}", "numbers again"),
    ("corpora list", "other corpora"),
    ("corpora add mine FILE.csv --text COL --label COL", "your own texts"),
    ("train mine --encoder cnn --projection sparsemax", "a model for them"),
)


def show_demo(document: Document, console: Console) -> None:
    """Everything the demo found, from numbers to texts."""
    main = [row for row in document["findings"] if row["measure"] in MAIN.get(row["experiment"], ())]
    show_study(document | {"findings": main}, console)
    if document["histogram"]:
        _show_histogram(document["histogram"], console)
    if document["published"]:
        _show_published(document["published"], console)
    _show_texts(document["texts"], console)
    _show_pairs(document["pairs"], console)
    _show_site(document, console)
    _heading("What to try next", console)
    for command, why in NEXT:
        said = f"  attentest {command.format(store=document['store']):50} {why}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)


def _heading(said: str, console: Console) -> None:
    console.print()
    console.print(Text(said, style="bold"))


def _model(about: Document) -> str:
    return f"{about['corpus']}: {about['encoder']} + {about['attention']}"


def _show_histogram(drawn: Document, console: Console) -> None:
    _heading(f"Does attention rank words as gradients do? ({_model(drawn)})", console)
    console.print(
        paired_histograms(
            drawn["shares"],
            drawn["null"],
            headings=("Kendall's τ, text by text", "its null: values permuted"),
            notes=(f"mean {number(drawn['mean'])}, n {drawn['n']:,}", f"mean {number(drawn['null_mean'])}"),
            ends=("-1", "0", "1"),
        )
    )


def _show_published(rows: list[Document], console: Console) -> None:
    """A stand-in is never judged, and says so."""
    _heading("Beside Table 2 of Jain & Wallace (2019), bAbI 1", console)
    said = [
        (
            row["model"],
            row["statistic"].rpartition("/")[2].replace("-", " "),
            published(row),
            version_a(row),
            decimal(row["ours"]),
            interval(row),
            decimal(row["null"]),
        )
        for row in rows
    ]
    console.print(
        plain_table(
            ("  model", "", "published", "earlier version", "ours", "95 %", "null"),
            [_indented(r) for r in said],
        )
    )
    for why in dict.fromkeys(f"  {row['agrees']}: {row['why']}" for row in rows):
        console.print(Text(why, style="dim"))


def _indented(row: tuple[str, ...]) -> tuple[str, ...]:
    return f"  {row[0]}", *row[1:]


def _show_texts(texts: list[Document], console: Console) -> None:
    _heading("What attention looks like", console)
    console.print("The warmer, the more weight; underlined: the tokens that truly decide (we planted them).")
    for text in texts:
        console.print()
        change, top = number(text["median_change"]), number(max(text["weights"]))
        note = f"shuffled, the output moves by {change}; largest weight {top}"
        title = f"{_model(text)} says {text['predicted']}"
        console.print(strip(title, note, text["tokens"], text["weights"], text["rationale"], text["query"]))


def _show_pairs(pairs: list[Document], console: Console) -> None:
    if pairs:
        _heading("Another attention, the same answer", console)
    for text in pairs:
        console.print()
        strips = [Strip(**one) for one in text["strips"]]
        title = f"{_model(text)} says {text['predicted']}"
        console.print(pair_terminal(text["tokens"], strips, title=title, query=text["query"]))


def _show_site(document: Document, console: Console) -> None:
    _heading("The whole as pages", console)
    site = document["site"]
    said = f"Open {site['index']}" if site else f"Not made: {document['site_missing']}"
    console.print(f"  {said}", markup=False, highlight=False, soft_wrap=True)
