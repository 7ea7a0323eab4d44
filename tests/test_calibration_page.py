"""The page on calibration: from the audits of a store, else from the package, with a legend one can use."""

import csv
import io
import math

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.compare.stored import Stored
from attentest.experiments.calibration.rows import described
from attentest.gallery.calibration import calibration_page
from attentest.gallery.folder import publish
from attentest.gallery.page_writer import Writer
from attentest.gallery.single import single
from attentest.gallery.site import _shared
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import to_parquet
from tests.browser import drawn, patient_page

CORPUS = "planted-reviews(cues=4,dev=50,distractors=0,negation=0.0,test=2000,train=600)"
QUADRANTS = ("graded", "selector", "random-loud", "random-word", "idle-sum", "idle-blind")
QUADRANTS += ("idle-random-word", "idle-uniform")
TAU, MOVED, LOO = "importance/tau-gradient", "permutation/median-output-change", "importance/tau-loo"


def put_audits(store, texts):
    corpus = Cell(stage="corpus", version=1, config={"name": CORPUS})
    store.write(corpus, {}, {})
    for name in QUADRANTS:
        about = described({"encoder": f"constructed({name})"}, CORPUS)
        model = Cell(stage="model", version=1, config={"encoder": f"constructed({name})", "seed": 0})
        parameters = {"texts": texts, "budget": "standard"}
        config = {"experiment": "calibration", "parameters": parameters}
        inputs = {"model": model.key, "corpus": corpus.key}
        audit = Cell(stage="observation", version=1, config=config, inputs=inputs)
        found = {TAU: 0.95 * about["pointer"], MOVED: 0.4 * about["mechanism"], LOO: 0.3}
        common = {"seed": 0, "subject": "trained", "error": 0.01, "freedom": texts - 1.0, "null": math.nan}
        common |= {"n": texts, "points": float(about["pointer"]), "depends": float(about["mechanism"])}
        rows = [{**common, "id": test, "estimate": float(value)} for test, value in found.items()]
        store.write(model, {}, {})
        store.write(audit, {"rows.parquet": to_parquet(rows)}, {})


def pages_of(store):
    page, files = calibration_page(Stored(store))
    write = Writer()
    write("calibration.html", "calibration.html", page)
    return page, write.files | files | _shared()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("calibration") / "store")
    put_audits(store, 200)
    put_audits(store, 50)
    return pages_of(store)


def test_the_audits_of_a_store_are_what_its_page_shows(made):
    page, files = made
    assert (page.audits, page.constructions) == (16, 8)
    assert {line["test"] for line in page.tests} == {TAU, MOVED, LOO}
    assert [picture.name for picture in page.roc] == [
        "figures-calibration-roc-pointer",
        "figures-calibration-roc-mechanism",
    ]
    assert [picture.name for picture in page.curves] == ["figures-calibration-by-texts"]
    table = list(csv.DictReader(io.StringIO(files["calibration_tests.csv"])))
    assert {row["test"]: float(row["auc_pointer"]) for row in table}[TAU] == 1.0
    assert len(list(csv.DictReader(io.StringIO(files["calibration_rates.csv"])))) == len(page.rates) > 0


def test_a_store_without_audits_shows_the_tables_of_the_package(tmp_path):
    page, files = pages_of(Store(tmp_path))
    assert page.audits == 0 and not page.roc and not page.curves
    assert "tables of the package" in files["calibration.html"]
    assert len(page.tests) > 50 and page.downloads == ["calibration_tests.csv", "calibration_criteria.csv"]


def test_audits_at_other_settings_only_are_not_called_the_source_of_the_tables(tmp_path):
    put_audits(Store(tmp_path), 50)
    page, _ = pages_of(Store(tmp_path))
    assert page.audits == 0 and len(page.tests) > 50


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser_curves_are_drawn_and_the_legend_picks_one(made, browser, tmp_path, width):
    publish(made[1], tmp_path / "pages")
    complaints = []
    with patient_page(browser, viewport={"width": width, "height": 900}) as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((tmp_path / "pages" / "calibration.html").as_uri())
        drawn(page)
        assert page.locator("[data-view=live] canvas").count() == 3
        assert page.locator("[data-view=live] img").count() == 0, "the picture gave way to the chart"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        chart = page.locator("[data-view=live] canvas").first
        before = chart.evaluate("canvas => canvas.toDataURL()")
        chart.click(position={"x": 480, "y": 60}, force=True)
        page.wait_for_timeout(300)
        assert chart.evaluate("canvas => canvas.toDataURL()") != before
        with page.expect_download() as coming:
            page.get_by_role("link", name="calibration_tests.csv").click()
        assert coming.value.path().read_text().startswith("test,question,margin")
    assert not complaints


@pytest.mark.browser
def test_in_one_file_the_page_draws_its_curves(made, browser, tmp_path):
    index = {"index.html": made[1]["calibration.html"].replace("data-view", "data-off")}
    (tmp_path / "one.html").write_text(
        single(made[1] | index | {f"{n}.html": index["index.html"] for n in ("compare", "catalogue")}),
        encoding="utf-8",
    )
    with patient_page(browser) as page:
        page.goto((tmp_path / "one.html").as_uri() + "#page=calibration.html")
        page.locator(".here [data-view=live] canvas").nth(2).wait_for()
