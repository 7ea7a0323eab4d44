"""Overview, papers and models in a real Chromium: by seed, by keyboard, on a phone, at night, by address."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.compare.formats import printable
from attentest.compare.listing import listings
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.experiments.figures import FIGURES
from attentest.gallery import pictures
from attentest.gallery.by_seed import by_seed
from attentest.gallery.folder import publish
from attentest.gallery.rows import PointRows
from attentest.gallery.single import single
from attentest.gallery.site import build
from attentest.store.store import Store
from tests.browser import drawn, patient_page, until
from tests.gallery import hostile, permutation_rows, put, put_corpus
from tests.gallery_texts import put_failure
from tests.observed import importance_rows

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.browser
PAPER, MODEL = "study-jain-wallace-2019.html", "sst-bilstm-additive.html"
PAGES = (
    "index.html",
    "compare.html",
    "calibration.html",
    "catalogue.html",
    PAPER,
    MODEL,
    "study-pruthi-2020.html",
)
SHELF = {"sst": "here", "imdb": "here", "mine": "here", "adr": "not redistributable"}
# Who can be used or looked at without a name to call it by.
NAMELESS = """[...document.querySelectorAll("a[href], button, input, select, img, [role=region]")].filter(
  (each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.title
    || each.getAttribute("alt") !== null || each.querySelector("img[alt]:not([alt=''])")
    || (each.labels && each.labels.length))
).map((each) => each.outerHTML.slice(0, 200))"""
# What scrolls sideways must be reached by the keyboard.
UNREACHED = """[...document.querySelectorAll(".scroll")].filter((each) => each.tabIndex !== 0).length"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two corpora, of which one was asked less; a failure; of the papers' corpora one."""
    store = Store(tmp_path_factory.mktemp("pages") / "store")
    put(store, "importance", put_corpus(store, "sst"), hostile(importance_rows()))
    put(store, "permutation", put_corpus(store, "mine"), hostile(permutation_rows()))
    put_failure(store, "out of <b>memory</b>", name="sst")
    return store


@pytest.fixture(scope="module")
def files(stored):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", {"importance": FIGURES["importance"][:1]})
        return build(stored.url, SHELF, version="1")


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    made = tmp_path_factory.mktemp("site") / "pages"
    publish(files, made)
    return made


class Opened:
    """A page on disk, and what it complains of."""

    def __init__(self, page, folder):
        self.page, self.folder, self.complaints = page, folder, []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, name, state=""):
        self.page.goto("about:blank")
        self.page.goto((self.folder / name).as_uri() + (f"#{state}" if state else ""))
        return drawn(self.page)


@pytest.fixture
def opened(browser, folder):
    with patient_page(browser, viewport={"width": 1280, "height": 900}) as page:
        told = Opened(page, folder)
        yield told
    assert not told.complaints


def grid(page):
    """The overview's table as rows of texts."""
    read = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))"
    return page.locator("table.grid tbody tr").evaluate_all(read)


# --- every page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1400])
def test_no_page_scrolls_sideways_and_everything_has_a_name(browser, folder, width, scheme):
    with patient_page(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        told = Opened(page, folder)
        for name in PAGES:
            told.go(name)
            assert page.evaluate(SIDEWAYS) <= 0, name
            assert page.evaluate(NAMELESS) == [], name
            assert page.evaluate(UNREACHED) == 0, name
        assert not told.complaints


def test_the_keyboard_reaches_the_content_and_works_the_overview(opened):
    page = opened.go("index.html")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the content")
    page.get_by_label("Rows", exact=True).focus()
    page.keyboard.press("e")  # a list goes to what begins with the letter
    until(page, lambda: "rows=encoder" in page.url or "rows=experiment" in page.url)
    expect(page.get_by_label("Rows", exact=True)).to_be_focused()


def test_on_disk_nothing_leads_to_a_page_that_only_a_server_has(opened, files):
    for name in (MODEL, "index.html"):
        page = opened.go(name)
        assert page.locator("a[href^='live.html']").count() == 0
    assert "live.html" not in "".join(text for name, text in files.items() if name.endswith(".html"))


# --- the overview


def test_every_seed_has_its_number_of_every_measure(opened, stored):
    [point] = [one for one in grid_points(Stored(stored)) if one.corpus == "sst"]
    found = by_seed(PointRows(point))
    assert len(found) > 6
    for key in ("importance/tau-loo-significant", "importance/tau-gradient"):
        page = opened.go("index.html", f"rows=seed&columns=corpus&measure={key}&only.corpus=sst")
        shown = {row[0]: row[1] for row in grid(page)}
        assert set(shown) == {"all seeds", "0", "1"}
        for seed, value in found[key].items():
            assert f"{value:.3f}".replace("-", "−") in shown[seed]


def test_a_view_is_its_address_with_seeds_and_experiments_narrowed(opened):
    page = opened.go("index.html", "rows=experiment&columns=corpus")
    page.get_by_label("Only seed").select_option("1")
    page.get_by_label("Only experiment").select_option("output change, attention permuted")
    page.get_by_label("Order of rows").select_option("largest first")
    until(page, lambda: len(grid(page)) == 1)
    state = page.evaluate("location.hash.slice(1)")
    assert {"only.seed=1", "sort=falling"} <= set(state.split("&"))
    shown = grid(page)
    assert grid(opened.go("index.html", state)) == shown


def test_what_was_not_asked_of_a_corpus_of_the_store_says_so(opened):
    page = opened.go("index.html", "rows=corpus&columns=encoder&measure=importance/tau-gradient")
    shown = {row[0]: row[1:] for row in grid(page)}
    assert set(shown) == {"sst", "mine"} and "not run" in " ".join(shown["mine"])
    assert "failed: out of <b>memory</b>" in shown["sst"]


def test_rows_are_sorted_by_their_number(opened):
    values = []
    for sort in ("falling", "rising"):
        page = opened.go("index.html", f"rows=seed&columns=projection&sort={sort}&only.corpus=sst")
        values.append([row[0] for row in grid(page)])
    assert values[0] == values[1][::-1]


def test_a_seeds_numbers_can_be_taken_away(opened):
    page = opened.go("index.html", "rows=seed&columns=corpus&only.corpus=sst")
    with page.expect_download() as coming:
        page.get_by_role("button", name="CSV").click()
    told = list(csv.DictReader(io.StringIO(coming.value.path().read_text())))
    assert {row["seed"] for row in told} == {"all seeds", "0", "1"}


# --- papers


def test_a_paper_shows_its_figures_by_corpus_and_model_and_why_others_are_missing(opened):
    page = opened.go(PAPER)
    table = page.locator("#figure-importance-tau-gradient table.album")
    link = table.locator("a:has(img)")
    expect(link).to_have_count(1)
    assert link.get_attribute("href") == f"{MODEL}#importance"
    row = table.locator("tr", has=page.get_by_role("rowheader", name="sst", exact=True))
    assert "failed: out of <b>memory</b>" in row.inner_text() and "not run" in row.inner_text()
    absent = table.locator("tr", has=page.get_by_role("rowheader", name="adr", exact=True))
    expect(absent.locator("td")).to_have_text("corpus not here: not redistributable")
    link.click()
    page.wait_for_url("**/sst-bilstm-additive.html#importance")


def test_figures_that_redraw_a_published_one_say_which():
    redrawn = [figure.redraws for some in pictures.FIGURES.values() for figure in some if figure.redraws]
    assert len(redrawn) == 22 and all(re.match(r"(JW|WP|SS|ME|TM)[-:]", said) for said in redrawn)


def test_every_study_of_a_paper_has_a_page_with_all_its_claims(files):
    for name in ("pruthi-2020", "treviso-martins-2020", "wen-2022", "serrano-smith-2019"):
        page = files[f"study-{name}.html"]
        assert page.count('<article class="claim">') > 2 and "Not evaluated" in page
        assert f'href="study-{name}.html"' in files["index.html"]
    assert "No table of this paper is in the package" in files["study-pruthi-2020.html"]
    assert all(f"study-wen-2022{end}" in files for end in (".md", ".tex", ".csv"))


def test_claims_can_be_taken_away_with_their_verdicts(files):
    told = list(csv.DictReader(io.StringIO(files["study-jain-wallace-2019-claims.csv"])))
    assert {row["verdict"] for row in told} > {"not judged"}
    assert {row["corpus"] for row in told if row["verdict"] != "not judged"} == {"sst"}
    page = files[PAPER]
    for end in (".md", ".tex", ".csv"):
        assert f'href="study-jain-wallace-2019-claims{end}"' in page


def test_a_claim_says_what_it_is_held_against_and_what_it_takes_for_granted(files):
    page = files["study-wen-2022.html"]
    assert "<code>information/tau/overall</code> beside group shuffled labels: supported if" in page
    assert page.count("It takes for granted <code>tau-p/overall: estimate &lt; 0.05</code>.") == 7
    told = list(csv.DictReader(io.StringIO(files["study-wen-2022-claims.csv"])))
    assert {row["beside"] for row in told} > {"", "group shuffled labels"}
    granted = {row["statistic"] for row in told if row["provided"] == "tau-p/overall: estimate < 0.05"}
    assert granted and all("tau-lost" in statistic for statistic in granted)


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_listing_says_what_it_was_given_and_no_cell_ends_its_row(rows):
    written = listings("A | title", ("one", "other"), rows)
    assert list(csv.reader(io.StringIO(written[".csv"], newline="")))[1:] == [
        [*map(printable, row)] for row in rows
    ]
    table = written[".md"].split("\n\n", 1)[1].rstrip("\n").split("\n")
    assert len(table) == len(rows) + 2
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in table)
    assert written[".tex"].count(r" \\" + "\n") == len(rows) + 1


def test_in_one_file_a_figure_stands_once(files):
    document = single(files)
    [name] = [name for name in files if name.endswith("tau-gradient.svg")]
    assert f"figures/{name}" not in document and document.count('class="thumb"') == 0
    assert document.count('alt="Attention and gradients.') == 1
