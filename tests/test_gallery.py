"""What the gallery's pages take: shards that cannot break out, strips on one scale, numbers as concluded."""

import json
import math
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.charts.style import to_svg
from attentest.charts.training import Epoch, training_curve
from attentest.cli.main import run
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored, StoredText
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery import pictures, site
from attentest.gallery.by_seed import by_seed
from attentest.gallery.examples import examples
from attentest.gallery.lines import lines, measure_key
from attentest.gallery.missing import failed
from attentest.gallery.numbers import numbers
from attentest.gallery.reading import reading
from attentest.gallery.rows import PointRows
from attentest.gallery.shards import shard
from attentest.gallery.single import _digest, single
from attentest.gallery.site import build
from attentest.gallery.strips import LONGEST, STEPS, TEXTS, TOKENS, UNKNOWN, chunks, packed, words
from attentest.gallery.writing import write
from attentest.notebook import harmless
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store
from tests.gallery import HOSTILE, ROWS, put, put_corpus, put_everything
from tests.gallery_texts import HUGE, LONG, put_texts, text_id


def taken(script):
    """What a page would be handed, by name."""
    inside = script.removeprefix("attentest.take(").removesuffix(");\n")
    name, end = json.JSONDecoder().raw_decode(inside)
    return name, json.loads(inside[end + 2 :])


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """A store of texts and its report, without figures: to draw takes most of the time."""
    store = Store(tmp_path_factory.mktemp("gallery") / "store")
    put_texts(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", {})
        patch.setattr(site, "to_svg", lambda chart: "<svg/>")
        return store, build(store.url, {"mine": "here", "adr": "absent"}, version="1")


@pytest.fixture(scope="session")
def one_model(tmp_path_factory):
    """A store of the same texts with few findings, which is reported of in a fraction of the time."""
    store = Store(tmp_path_factory.mktemp("one") / "store")
    put_texts(store, encoders=("bilstm",), more=())
    return store


def point_of(store, encoder="bilstm"):
    [point] = [p for p in grid_points(Stored(store)) if p.axes["encoder"] == encoder]
    return point


def test_python_prints_no_sign_that_is_replaced():
    printed = (sign for sign in map(chr, range(0x110000)) if sign.isprintable())
    assert not any(unicodedata.category(sign).startswith("C") for sign in printed)
    assert harmless("a\x1b\u202e b") == "a\ufffd\ufffd b"


# --- shards


@given(st.text(), st.lists(st.one_of(st.text(), st.floats(), st.integers(-9, 9), st.none(), st.booleans())))
def test_a_shard_hands_over_what_it_was_given_and_nothing_can_break_out_of_it(name, values):
    written = shard(name, {"values": values})
    assert written.isascii() and not set("<>&") & set(written)
    called, found = taken(written)
    assert called == harmless(name)
    for given_, came in zip(values, found["values"], strict=True):
        if isinstance(given_, str):
            assert came == harmless(given_)
        elif isinstance(given_, float) and not math.isfinite(given_):
            assert came is None
        else:
            assert came == (pytest.approx(given_, rel=1e-4, abs=0) if isinstance(given_, float) else given_)


def test_numbers_travel_short_and_arrays_as_they_are():
    _, found = taken(shard("n", {"a": 0.123456789, "b": [1.0, math.nan], "c": np.array([3, -1]), "d": True}))
    assert found == {"a": 0.12346, "b": [1, None], "c": [3, -1], "d": True}


# --- strips

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(SHARES, SHARES)
def test_strips_are_on_one_scale_and_exact_to_a_step(own, gradient):
    found = packed({"own": own, "gradient": [-g for g in gradient], "exact": None, "search": math.nan})
    total = sum(gradient)
    shares = [g / total for g in gradient] if total > 0 else gradient
    top = max([*own, *shares])
    if top <= 0:
        assert found is None
        return
    assert set(found) == {"top", "own", "gradient"} and found["top"] == pytest.approx(top)
    for name, strip in (("own", own), ("gradient", shares)):
        np.testing.assert_allclose(np.array(found[name]) / STEPS * top, strip, atol=top / STEPS)


def test_a_weight_that_is_not_a_number_is_unknown_and_not_zero():
    found = packed({"own": [math.nan, 0.5]})
    assert found["own"].tolist() == [UNKNOWN, STEPS]


@given(st.lists(st.integers(1, 50_000), min_size=1, max_size=60))
def test_every_text_is_in_one_shard_and_no_shard_is_large(lengths):
    starts = chunks(lengths)
    assert starts[0] == 0 and starts == sorted(set(starts)) and starts[-1] < len(lengths)
    for start, end in zip(starts, [*starts[1:], len(lengths)], strict=True):
        assert end - start == 1 or sum(lengths[start:end]) <= TOKENS
        assert end - start <= TEXTS


def test_a_token_of_ten_thousand_signs_is_cut_and_says_so():
    found = words(StoredText([HUGE, "a"], ["why"], [1], [0]))
    assert found == {"t": [f"{'x' * LONGEST}… (10,000 signs)", "a"], "q": "why", "r": [1], "s": [0]}


# --- the explorer's data


def explored(files, name="mine-bilstm-additive"):
    return taken(files[f"data/{name}.js"])[1]


def test_the_table_says_of_each_text_what_the_experiments_say(gallery):
    store, files = gallery
    found, rows = explored(files), PointRows(point_of(store))
    columns = {"tau_gradient": ("importance", "tau_gradient"), "jsd": ("adversary", "exact@0.01")}
    columns |= {"change": ("permutation", "median_change"), "tau_loo": ("importance", "tau_loo")}
    for name, (experiment, column) in columns.items():
        own = rows.own(experiment)
        own = own[own["seed"] == 0].set_index("id")[column].astype(float)
        said = [math.nan if n is None else n for n in found["numbers"][name]]
        clean = {harmless(each): each for each in own.index}
        np.testing.assert_allclose(said, [own[clean[each]] for each in found["ids"]], rtol=1e-4)
    assert found["seed"] == 0 and "confidence" not in found["numbers"], "performance was not run"
    flips = rows.own("removal").query("seed == 0").set_index("id")["smallest"].astype(float)
    said = found["numbers"]["flip"]
    assert [n is None for n in said] == [not flips[text_id(n)] > 0 for n in range(len(said))]


def test_a_texts_words_and_weights_lie_where_its_number_says(gallery):
    _, files = gallery
    found = explored(files)
    for n in (0, 1, 2, 9):  # not the fourth, whose sentences are weighed
        place = found["places"][n]
        part = max(p for p, start in enumerate(found["starts"]) if start <= place)
        text = taken(files[f"data/{found['texts']}-{part}.js"])[1][place - found["starts"][part]]
        strips = taken(files[f"data/{found['weights']}-{part}.js"])[1][str(place)]
        assert found["ids"][n] == harmless(text_id(n)) and found["whole"][n]
        assert len(text["t"]) == len(strips["own"]) == (LONG if n == 1 else 3)
        kept = {"own", "gradient", "loo", "permuted", "search", "exact"}
        assert kept | {"top", "effects"} >= set(strips) > {"own", "top"}
        assert text.get("r") == ([1] if n == 2 else None)


def test_every_seed_has_its_texts_in_shards_of_its_own(gallery):
    store, files = gallery
    first = explored(files)
    assert first["seeds"] == [
        {"seed": 0, "name": "mine-bilstm-additive"},
        {"seed": 1, "name": "mine-bilstm-additive-seed-1"},
    ]
    other = explored(files, "mine-bilstm-additive-seed-1")
    rows = PointRows(point_of(store)).own("permutation")
    own = rows[rows["seed"] == 1].set_index("id")["median_change"]
    assert other["seed"] == 1 and other["seeds"] == first["seeds"] and other["texts"] == first["texts"]
    assert other["numbers"]["change"] == pytest.approx([own[text_id(n)] for n in range(len(own))], rel=1e-4)
    assert other["numbers"]["change"] != first["numbers"]["change"]
    strips = [taken(files[f"data/{each['weights']}-0.js"])[1]["2"]["own"] for each in (first, other)]
    assert strips[0] != strips[1], "and so has each its weights"


def test_what_other_weights_do_is_beside_them_where_the_model_was_asked(gallery):
    store, files = gallery
    rows = PointRows(point_of(store)).own("ablation")
    own = rows[rows["seed"] == 0].set_index("id")
    strips = taken(files[f"data/{explored(files)['weights']}-0.js"])[1]
    for number in (1, 2, 3):
        row = own.loc[text_id(number)]
        told = strips[str(number)]["effects"] if str(number) in strips else {}
        for name in ("uniform", "permuted", "gradient", "loo", "rationale"):
            change, says = told[name]
            assert change == pytest.approx(row[f"{name}_change"], rel=1e-4)
            assert says == harmless(row[f"{name}_predicted"])
    assert strips["0"]["effects"] == {}, "of one unit nothing can be asked"
    without = taken(files[f"data/{explored(files, 'mine-average-additive')['weights']}-0.js"])[1]
    assert all(each["effects"] == {} for each in without.values())


def test_models_of_a_corpus_share_its_words(gallery):
    _, files = gallery
    first, second = explored(files), explored(files, "mine-average-additive")
    assert first["texts"] == second["texts"] and first["weights"] != second["weights"]
    shards = [name for name in files if re.fullmatch(rf"data/{first['texts']}-\d+\.js", name)]
    assert len(shards) == len(first["starts"])


def test_nothing_hostile_is_in_any_script(gallery):
    _, files = gallery
    for name, text in files.items():
        if name.startswith("data/"):
            assert text.isascii() and "<" not in text, name
            assert not re.search(r"\\u(202[a-e]|206[6-9]|001b)", text), name
    assert harmless(HOSTILE.id) in explored(files)["ids"]


def test_texts_that_need_credentials_have_a_page_that_says_so_and_no_shard(one_model, monkeypatch):
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    files = build(one_model.url, {}, version="1", private=["mine"])
    assert "need credentials" in files["explore-mine-bilstm-additive.html"]
    assert not [name for name in files if "weights-" in name or name.startswith("data/texts")]
    assert "good7" not in "".join(files.values()) and "t0007" not in "".join(files.values())


def test_without_rows_there_is_nothing_to_explore(gallery, monkeypatch):
    store, _ = gallery
    point = point_of(store)
    monkeypatch.setattr("attentest.compare.stored.can_be_observed", lambda cell, store: False)
    assert not list(examples(PointRows(point))) and by_seed(PointRows(point)) == {}


def test_of_a_report_in_one_file_only_the_texts_kept_whole_travel(one_model, monkeypatch):
    monkeypatch.setattr("attentest.compare.stored.StoredFinding.weights", lambda self, seed: {"t0030": [0.5]})
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    for every, there in ((True, 1), (False, 0)):
        files = build(one_model.url, {}, version="1", every_text=every)
        assert explored(files)["weighed"][30] == there


# --- numbers


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """A grid point with every experiment."""
    store = Store(tmp_path_factory.mktemp("everything") / "store")
    put_everything(store)
    [point] = grid_points(Stored(store))
    return point, by_seed(PointRows(point))


def lines_of(point):
    """Every number of the overview, by the name it has there."""
    kept = [point.of(name) for name in dict.fromkeys(f.cell.config["experiment"] for f in point.findings)]
    found = [line for finding in kept for line in lines(finding, point.tolerance).first]
    return {measure_key(line.finding["experiment"], line.finding["measure"]): line.finding for line in found}


@pytest.mark.parametrize("experiment", ROWS)
def test_every_number_of_the_overview_is_there_by_seed_as_its_seed_alone_would_have_it(
    everything, experiment
):
    point, found = everything
    rows = PointRows(point).of(point.of(experiment))
    plain = CONCLUSIONS[experiment].conclude(
        rows[rows["seed"] == 1], mode="corrected", rng=np.random.default_rng(1)
    )
    said = {one.measure: one.estimate for one in plain if one.group == "overall"}
    for key, line in lines_of(point).items():
        if line["experiment"] == experiment:
            alone = found.get(key, {}).get("1", math.nan)
            assert alone == pytest.approx(said.get(line["measure"], math.nan), nan_ok=True), key


def test_the_mean_of_the_seeds_numbers_is_the_finding_where_that_is_a_mean(everything):
    point, found = everything
    there = lines_of(point)
    means = ("performance/f1", "importance/tau-loo", "adversary/emax-jsd-exact", "removal/fraction-attention")
    for name in means:
        assert set(found[name]) == {"0", "1"}
        assert np.mean(list(found[name].values())) == pytest.approx(there[name]["estimate"])


def test_of_one_seed_nothing_is_concluded_again(store, monkeypatch):
    put(store, "importance", put_corpus(store), ROWS["importance"]().query("seed == 0"))
    [point] = grid_points(Stored(store))
    monkeypatch.setattr("attentest.gallery.by_seed.CONCLUSIONS", dict.fromkeys(CONCLUSIONS))
    found = by_seed(PointRows(point))
    assert found == {key: {"0": line["estimate"]} for key, line in lines_of(point).items()}


def test_the_overviews_numbers_are_the_findings(gallery):
    store, files = gallery
    told = taken(files["data/numbers.js"])[1]
    assert {m["key"] for m in told["measures"] if m["main"]} >= {"importance/tau-gradient"}
    for point in grid_points(Stored(store)):
        [said] = [one for one in told["points"] if one["file"] == point.file]
        for finding in point.findings:
            experiment = finding.cell.config["experiment"]
            assert said["done"][experiment]["cell"] == finding.cell.key[:12]
        found = point.of("importance").row("tau-gradient", "overall")
        for name in ("estimate", "low", "high", "null", "n"):
            assert said["found"]["importance/tau-gradient"][name] == pytest.approx(found[name], rel=1e-4)
    assert told["absent"] == {"adr": "absent"}, "what was run is not absent, wherever its files are"


def test_every_experiment_has_a_main_number_and_no_two_the_same_heading(everything):
    point, found = everything
    told = numbers([point], {point.file: found}, {}, {})
    main = [one for one in told["measures"] if one["main"]]
    asked = {key.split("/")[0] for key in lines_of(point)}
    assert {one["experiment"] for one in main} == asked
    assert len({one["heads"] for one in main}) == len(main)


def test_what_failed_is_named_with_its_reason_and_what_was_only_planned_is_not(store):
    axes = {"corpus": "sst", "encoder": "cnn", "attention": "dot", "projection": "softmax"}
    model = Cell(stage="model", version=1, config={"seed": 0})
    for experiment in ("importance", "adversary"):
        seen = Cell(
            stage="observation", version=1, config={"experiment": experiment}, inputs={"model": model.key}
        )
        about = {**axes, "experiment": experiment}
        finding = Cell(stage="finding", version=1, config=about, inputs={"seed 0": seen.key})
        for cell in (model, seen, finding):
            store.plan(cell)
        if experiment == "importance":
            store.fail(seen.key, "out of memory\nand more", "traceback")
    assert failed(store) == [{**axes, "experiment": "importance", "error": "out of memory"}]
    store.fail(model.key, "no such word", "traceback")
    assert {one["experiment"] for one in failed(store)} == {"importance", "adversary"}


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.5, 0.4, 0.6, 0.1), "0.400 above the null"),
        ((0.5, 0.4, 0.6, 0.9), "0.400 below the null"),
        ((0.5, 0.4, 0.6, 0.55), "not told apart"),
        ((0.5, 0.4, 0.6, math.nan), "no null"),
        ((0.5, math.nan, math.nan, 0.1), "without an interval"),
        ((math.nan, math.nan, math.nan, 0.1), "undefined: too short"),
    ],
)
def test_a_finding_is_read_beside_its_null(numbers, said):
    finding = dict(zip(("estimate", "low", "high", "null"), numbers, strict=True)) | {"why": "too short"}
    assert said in reading(finding)


# --- pages


def test_a_model_has_its_numbers_at_a_glance_and_the_way_to_its_texts(gallery):
    _, files = gallery
    page = files["mine-bilstm-additive.html"]
    glance = page[page.index('id="glance"') : page.index('id="importance"')]
    assert glance.count('<tr><th scope="row">') == 6, "two taus, permutation, adversary, removal, ablation"
    assert CARDS["importance/tau-gradient"].direction in glance
    assert "this one training" not in glance  # it has two seeds
    assert 'href="explore-mine-bilstm-additive.html"' in page


def test_the_numbers_of_one_seed_are_said_to_be_of_one_training(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    store = Store(tmp_path / "store")
    rows = ROWS["permutation"]()
    put(store, "permutation", put_corpus(store), rows[rows["seed"] == 0])
    page = build(store.url, {"mine": "here"}, version="1")["mine-bilstm-additive.html"]
    assert page.count("over texts of this one training") == 1


def test_the_catalogue_has_every_experiment_and_every_cell(gallery):
    store, files = gallery
    page = files["catalogue.html"]
    for name in CONCLUSIONS:
        assert f'id="experiment-{name}"' in page
    for finding in Stored(store).every:
        assert finding.cell.key[:12] in page
    assert "in this store only" in page


def test_a_training_curve_has_a_line_a_seed_and_marks_what_was_kept():
    known = [
        Epoch(seed=s, epoch=e, chosen=e == 2, numbers={"training loss": 1 / e, "dev accuracy": 0.5})
        for s in (0, 1)
        for e in (1, 2, 3)
    ]
    drawn = training_curve(known, title="Training").to_dict()
    [records] = drawn["datasets"].values()
    assert len(records) == 12 and sum(record["chosen"] for record in records) == 4
    assert "ringed" in str(drawn["title"])
    assert "does not tell" in to_svg(training_curve([]))


# --- one file


def test_one_file_holds_every_page_and_names_nothing_outside_it(gallery):
    _, files = gallery
    document = single(files)
    for name in files:
        if name.endswith(".html"):
            assert f'data-page="{name}"' in document
        if name.startswith("data/"):
            assert f'data-block="{taken(files[name])[0]}"' in document
    read = re.sub(r"<script.*?</script>", "", document, flags=re.DOTALL)
    outside = re.findall(r'(?:src|href)="(?!data:|#)([^"]*)"', read)
    assert not outside
    targets = set(re.findall(r'href="#page=([^"&]*)', document))
    assert targets <= set(files)
    running = re.findall(r"<script>(.*?)</script>", document, re.DOTALL)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', document)
    assert running and all(_digest(script) in policy for script in running)
    assert (
        "unsafe" not in policy
        and _digest(re.findall(r"<style>(.*?)</style>", document, re.DOTALL)[0]) in policy
    )


def test_places_of_one_file_are_told_apart_by_their_page(gallery):
    _, files = gallery
    places = re.findall(r' id="([^"]*)"', single(files))
    assert len(places) == len(set(places))


def test_the_command_writes_one_file_or_a_folder_or_both(one_model, tmp_path, capsys, monkeypatch):
    store = one_model
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    one = tmp_path / "deep" / "all.html"
    assert run(["report", "--store", store.url, "--single", str(one), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["single"] == said["index"] == str(one) and said["out"] is None and one.exists()
    assert [path.name for path in one.parent.iterdir()] == ["all.html"]
    assert run(["report", "--store", store.url]) == 2
    assert "neither --out nor --single" in capsys.readouterr().err
    with pytest.raises(Refusal, match="cannot be written"):
        write("x", tmp_path)
