"""The reproduction pages say what the files under results/ say, and nothing was typed by hand."""

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("altair")

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

import reproduction_blocks  # noqa: E402
import reproduction_findings  # noqa: E402
import reproductions  # noqa: E402

from attentest.gallery.export import export_findings  # noqa: E402
from attentest.store.store import Store  # noqa: E402
from tests.exporting import labelled  # noqa: E402
from tests.gallery import ROWS, put, put_corpus  # noqa: E402

PAGES = reproductions.pages()
PageError = reproduction_blocks.PageError
STUDY = """
study = "toy"
title = "A claim about findings made by hand"
seeds = 2

[grid]
corpus = ["sst"]
encoder = ["bilstm", "average"]
attention = ["additive"]

[[experiment]]
name = "importance"

[[claim]]
says = "Attention agrees with gradients."
statistic = "importance/tau-gradient/overall"
supported_if = "low > 0"
refuted_if = "high < 0"
"""


def text_of(path):
    return path.read_text(encoding="utf-8")


# --- what is committed


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_and_its_figures_are_what_the_results_generate(page):
    stale = reproductions.stale(reproductions.generated(page, text_of(page)))
    assert not stale, f"run `make reproductions`: {', '.join(path.name for path in stale)}"


def test_every_figure_belongs_to_a_page():
    assert not reproductions.unused()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_short_and_answers_first(page):
    lines = text_of(page).splitlines()
    assert len(lines) <= 150
    assert lines[0].startswith("# ")
    said = [line for line in lines[1:6] if line.strip()]
    assert any(re.search(r"[a-z].*[.!?]", line) for line in said)
    assert any(line.startswith("**Answer") for line in said), "the answer stands within five lines"
    assert not any(line.startswith(("```", "    ", "<!--", "|")) for line in said), "no command comes first"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_changed_number_is_found(page):
    body = max(reproduction_blocks.BLOCK.finditer(text_of(page)), key=lambda match: len(match["body"]))
    place = re.search(r"\d(?=[^\d]*$)", body["body"]).start() + body.start("body")
    changed = text_of(page)
    changed = f"{changed[:place]}{(int(changed[place]) + 1) % 10}{changed[place + 1 :]}"
    assert reproductions.generated(page, changed)[page] == text_of(page) != changed


SECOND_EDITION = (
    "audit-minilm-sst",
    "jain-wallace-2019",
    "pruthi-2020",
    "serrano-smith-2019-flat",
    "wen-2022",
    "wiegreffe-pinter-2019",
)


def exact_numbers(text):
    """Numbers with three decimals, as tables print them; a minus is part of the number."""
    return set(re.findall(r"(?<![\w.])-?\d+\.\d{3}(?![\d.])", text))


def not_generated(text):
    return reproduction_blocks.BLOCK.sub("", text)


@pytest.mark.parametrize("name", SECOND_EDITION)
def test_every_exact_number_of_the_argument_is_in_a_table_of_its_page(name):
    text = text_of(reproductions.PAGES / f"{name}.md")
    tables = exact_numbers("\n".join(match["body"] for match in reproduction_blocks.BLOCK.finditer(text)))
    argued = exact_numbers(not_generated(text))
    assert argued, "the argument names numbers"
    assert not argued - tables


def findings_of(file):
    section = text_of(ROOT / file).split("## What it found so far")[1].split("\n## ")[0]
    return [item for item in re.split(r"^- ", section, flags=re.M)[1:]]


@pytest.mark.parametrize("file", ["README.md", "docs/findings.md"])
def test_every_exact_number_of_a_finding_is_on_a_page_that_it_links(file):
    for finding in findings_of(file):
        links = re.findall(r"\]\(([^)#:]+\.md)", finding)
        pages = [(ROOT / file).parent / link for link in links]
        assert pages, finding
        there = set().union(*(exact_numbers(text_of(page)) for page in pages))
        assert not exact_numbers(finding) - there, finding


@pytest.mark.parametrize("file, most", [("README.md", 0), ("docs/findings.md", 1)])
def test_no_finding_rests_on_a_page_of_the_first_edition(file, most):
    findings = findings_of(file)
    first_edition = [one for one in findings if "first-edition/" in one]
    assert len(findings) > len(first_edition) <= most
    assert all("no conclusion rests on them" in one for one in first_edition)


# --- the parser


@pytest.mark.parametrize(
    ("directive", "sentence"),
    [
        ("file = x.parquet", "the key `kind` is missing."),
        ("kind", "'kind' is not of the form `key = value`."),
        ("kind = claims; kind = claims", "the key `kind` is given twice."),
        ('kind = findings; corpus = "sst', "a quotation mark is never closed."),
        ("kind = findings; corpus = sst,", "'' under `corpus` is not of the form"),
        ('kind = findings; corpus = sst is "SST"', "is not of the form"),
        ("kind = riddle", "'riddle' is none of them."),
        ("kind = provenance; files = vectors.parquet", "has no key `files`; its keys are file, corpus."),
        ("kind = provenance", "the key `file` is missing."),
        ("kind = provenance; file = no.parquet", "There is no file results/no.parquet."),
        ("kind = provenance; file = README.md", "is not a Parquet file"),
        ("kind = provenance; file = calibration.parquet", "was not written by `attentest store export"),
        ("kind = findings; file = vectors.parquet; columns = tau", "the column 'tau' matches no finding."),
        ("kind = findings; file = vectors.parquet; columns = auc; encoder = hat", "has the encoder 'hat'."),
        ("kind = findings; file = vectors.parquet; columns = auc; groups = x", "is of the group 'x'."),
        ("kind = findings; file = vectors.parquet; columns = auc; across = seeds", "none of them."),
        ("kind = findings; file = vectors.parquet; columns = auc; show = p", "'p' is none of them."),
        ("kind = findings; file = vectors.parquet; columns = auc; mode = as-published", "as-published"),
        ("kind = figure; file = vectors.parquet; measure = auc", "the key `axis` is missing."),
        ("kind = findings; file = vectors.parquet; digits = many; columns = auc", "needs a whole number"),
    ],
)
def test_what_is_wrong_with_a_block_is_said_in_a_sentence(directive, sentence):
    page = f"# A\n<!-- table t: {directive} -->\n<!-- end t -->\n"
    with pytest.raises(PageError) as error:
        reproductions.generated(Path("page.md"), page)
    said = str(error.value)
    assert sentence in said and said.startswith("page.md: ") and said.endswith(".")


def test_two_findings_for_one_place_are_an_error():
    directive = "kind = groups; file = vectors.parquet; measure = auc; across = corpus; columns = sst"
    page = f"<!-- table t: {directive}; groups = overall -->\n<!-- end t -->"
    assert (
        "| Average + additive, random(0.1)/300 |" in reproductions.generated(Path("p.md"), page)[Path("p.md")]
    )
    page = page.replace("measure = auc", "measure = accuracy").replace(
        "columns = sst", "columns = random(0.1)"
    )
    with pytest.raises(PageError, match="2 findings fit one place of the table; they differ in vectors"):
        reproductions.generated(Path("p.md"), page.replace("across = corpus", "across = vectors"))


@pytest.mark.parametrize(
    "page", ["<!-- table a: kind = x -->\n<!-- end b -->", "<!-- end a -->", "<!-- table A: kind = x -->\n"]
)
def test_a_marker_that_stands_alone_is_an_error(page):
    with pytest.raises(PageError, match="A marker stands alone"):
        reproduction_blocks.blocks(page)


def test_two_blocks_of_one_name_are_an_error():
    with pytest.raises(PageError, match="Two blocks have the name a"):
        reproduction_blocks.blocks("<!-- table a: kind = x -->\n<!-- end a -->\n" * 2)


def test_quotes_protect_commas_and_semicolons():
    block = reproduction_blocks.parse("t", 'kind = x; corpus = "toy(a=1,b=2)" as "a toy; small",\n  imdb')
    assert [(item.value, item.shown) for item in block.many("corpus")] == [
        ("toy(a=1,b=2)", "a toy; small"),
        ("imdb", "imdb"),
    ]


# --- the other kinds, on small stores


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Findings made by hand that have claims, published numbers and controls."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "toy.toml").write_text(STUDY)
    store = Store(folder / "gallery")
    corpus = put_corpus(store, "sst", labels=("negative", "positive"))
    for experiment, encoder in (
        ("importance", "bilstm"),
        ("performance", "bilstm"),
        ("importance", "average"),
    ):
        put(store, experiment, corpus, labelled(ROWS[experiment]()), encoder=encoder)
    export_findings(store.url, folder / "gallery.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction_findings, "RESULTS", folder)
        yield folder


def made(directive, folder):
    path = folder / "page.md"
    page = f"<!-- table one: {directive} -->\nold\n<!-- end one -->\n"
    files = reproductions.generated(path, page)
    again = reproductions.generated(path, files[path])
    assert again == files, "what was generated once is generated again"
    return files[path], files


def test_findings_stand_with_interval_null_and_controls(small):
    page, _ = made(
        'kind = findings; file = gallery.parquet; columns = tau-gradient as "tau", performance/accuracy;'
        " groups = overall, untrained",
        small,
    )
    assert "| model | tau | performance/accuracy | n | seeds |" in page
    assert re.search(r"\| \*\*BiLSTM \+ additive\*\* \| -?\d\.\d{3}( \[.*?\])?; null -?\d\.\d{3} \|", page)
    assert "| *untrained* |" in page and "– (not measured)" in page


def test_groups_are_rows_and_corpora_may_be_columns(small):
    page, _ = made(
        "kind = groups; file = gallery.parquet; experiment = importance; encoder = bilstm;"
        ' measure = tau-gradient; across = corpus; columns = sst as "SST"',
        small,
    )
    assert "| group | SST | n | seeds |" in page and "| untrained |" in page


def test_claims_are_judged_as_the_package_judges(small):
    page, _ = made(f"kind = claims; file = gallery.parquet; study = {small / 'toy.toml'}", small)
    assert "| claim | sst | where |" in page
    counts = re.search(r"\| Attention agrees with gradients. \| (\d) / (\d) / (\d) \|", page).groups()
    assert sum(map(int, counts)) == 2
    page, _ = made(f"kind = claims; file = gallery.parquet; study = {small / 'toy.toml'}; by = all", small)
    assert "| claim | all | where |" in page
    with pytest.raises(PageError, match="what the study pruthi-2020 asks about"):
        made("kind = claims; file = gallery.parquet; study = pruthi-2020", small)


def test_published_numbers_stand_beside_ours(small):
    directive = "kind = published; file = gallery.parquet; study = jain-wallace-2019"
    page, _ = made(directive, small)
    assert re.search(r"^\d+ comparisons with published numbers: .*\.$", page, re.M)
    assert "| corpus | model | measure | published | ours | seeds | verdict | P(agrees if equal) |" in page
    page, _ = made(f"{directive}; show = counts; corpus = sst", small)
    assert "|" not in page
    with pytest.raises(PageError, match="about the corpus 'imdb'"):
        made(f"{directive}; corpus = imdb", small)


def test_provenance_has_sizes_seeds_and_keys(small):
    page, _ = made("kind = provenance; file = gallery.parquet", small)
    for row in ("| seeds | 0, 1 |", "| trained models | 4 |", "| finding cells | 3 |", "| epochs | 8 |"):
        assert row in page
    assert re.search(r"training, [\d,]+ dev, [\d,]+ test texts", page)
    assert re.search(r"^importance: `[0-9a-f]{12}`", page, re.M)


def test_a_figure_has_readable_letters_and_its_controls(small):
    page, files = made(
        "kind = figure; file = gallery.parquet; measure = importance/tau-gradient; line = 0;"
        ' groups = overall as "trained", untrained; axis = "tau"; alt = "A plot"; caption = "A caption."',
        small,
    )
    assert "![A plot](figures/one.svg)\n\n*A caption.*" in page
    drawn = files[small / "figures" / "one.svg"]
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', drawn)]
    assert sizes and min(sizes) >= 12
    for word in ("trained", "untrained", "null", "BiLSTM + additive"):
        assert f">{word}<" in drawn


AUDIT = {
    "criteria": [
        {
            "criterion": "agrees with importances",
            "question": "pointer",
            "verdict": "undecided",
            "tests": [
                {"experiment": "importance", "measure": "tau-gradient-excess", "estimate": 0.5, "low": 0.25}
                | {"high": 0.75, "null": 0.0, "margin": 0.1, "p": 0.0001}
            ],
        },
        {"criterion": "plausible", "question": "pointer", "verdict": "not measured", "tests": []},
    ],
    "findings": [
        {"experiment": "ablation", "measure": "uniform", "group": group, "n": 1000, "null": None}
        | {"estimate": estimate, "low": None, "high": None}
        for group, estimate in (("overall", 0.125), ("untrained", 0.5), ("label a", 0.75))
    ],
}


def test_an_audit_has_its_criteria_and_numbers_beside_the_untrained_twin(small):
    (small / "audit.json").write_text(json.dumps(AUDIT))
    page, _ = made("kind = audit; file = audit.json", small)
    test = "`importance/tau-gradient-excess` | 0.500 [0.250, 0.750] | 0.000 | 0.100 | < 0.001 |"
    assert f"| agrees with importances | pointer | undecided | {test}" in page
    assert "| plausible | pointer | not measured | – | – | – | – | – |" in page
    page, _ = made('kind = audit-findings; file = audit.json; measures = ablation/uniform as "even"', small)
    assert "| even | 0.125 | – | 0.500 | 1,000 |" in page
    with pytest.raises(PageError, match="no finding 'ablation/none' over all texts"):
        made("kind = audit-findings; file = audit.json; measures = ablation/none", small)
    (small / "other.json").write_text("{}")
    with pytest.raises(PageError, match="was not written by `attentest audit --out`"):
        made("kind = audit; file = other.json", small)
