"""`attentest store export` and `import`: the same findings, the same keys, no text; nothing is believed."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attentest.bench.conclusion import conclude_all, list_cells
from attentest.bench.verbs import run_study
from attentest.cli.main import run
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.compare.table import compare
from attentest.compare.verdicts import judged
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery import pictures, site
from attentest.gallery.export import export_findings
from attentest.refusal import Refusal
from attentest.statistics.record import COLUMNS as FINDING_COLUMNS
from attentest.store import findings_file
from attentest.store.cell import canonical
from attentest.store.findings_file import COLUMNS, LATER, CellRows, decode, encode, sealed
from attentest.store.importing import checksum, import_findings
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet
from attentest.studies.recipe import load_study
from tests.exporting import LABELS, TOY, labelled
from tests.gallery import HOSTILE, ROWS, WORDS, put, put_corpus

STUDY = f"""{TOY}
[[claim]]
says = "Most texts do not notice."
statistic = "permutation/median-output-change/overall"
supported_if = "high < 0.5"
refuted_if = "low > 0.5"
"""
GALLERY = ("importance", "performance", "ablation", "heat-map")


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """A study that was run, its file, and a store that knows nothing but the file."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "toy.toml").write_text(STUDY)
    done = run_study(str(folder / "toy.toml"), str(folder / "store"), engine="inline", device="cpu")
    assert not done["failed"]
    export_findings(str(folder / "store"), folder / "toy.parquet")
    import_findings(folder / "toy.parquet", str(folder / "imported"))
    return folder


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """The same with rows made by hand: hostile names, published numbers to compare with."""
    folder = tmp_path_factory.mktemp("gallery")
    store = Store(folder / "store")
    corpus = put_corpus(store, "sst", labels=LABELS)
    for experiment in GALLERY:
        put(store, experiment, corpus, labelled(ROWS[experiment]()))
    put(store, "importance", corpus, labelled(ROWS["importance"]()), encoder="average")
    told = export_findings(store.url, folder / "all.parquet")
    (folder / "told.json").write_text(json.dumps(told))
    import_findings(folder / "all.parquet", str(folder / "imported"))
    return folder


def findings_of(url):
    store = Store(url)
    return [key for key in store.done() if store.about(key)["stage"] == "finding"]


def cells_of(file):
    return [*decode(file.read_bytes(), file.name)]


def rewritten(file, change, *, honest=True):
    """The file with its first cell changed; `honest` computes the checksum again, as a forger would."""
    first, *others = cells_of(file)
    shared, rows = dict(first.shared), {name: list(values) for name, values in first.rows.items()}
    change(shared, rows)
    changed = CellRows(shared, rows)
    if honest:
        shared["checksum"] = checksum(changed)
    return encode([changed, *others])


# --- there and back


def test_an_imported_finding_has_its_key_its_settings_and_its_bytes(real):
    here, there = Store(real / "store"), Store(real / "imported")
    keys = findings_of(real / "store")
    assert len(keys) == 2 and keys == findings_of(real / "imported")
    for key in keys:
        assert there.read(key, "findings.parquet") == here.read(key, "findings.parquet")
        assert there.cell(key) == here.cell(key) and there.cell(key).key == key and there.is_whole(key)


def test_the_columns_are_those_of_a_finding():
    assert COLUMNS == FINDING_COLUMNS and [*COLUMNS] == [*FINDING_COLUMNS]


def of_the_first_format(file):
    """The file as it was written before findings had the columns error, freedom and by_seed."""
    table = pq.read_table(file).drop_columns([*LATER])
    sums = []
    for cell in cells_of(file):
        rows = {name: values for name, values in cell.rows.items() if name not in LATER}
        sums += [checksum(CellRows(cell.shared, rows))] * len(cell)
    table = table.set_column(table.column_names.index("checksum"), "checksum", [sums])
    return written(
        table.replace_schema_metadata(findings_file.SCHEMA.metadata | {b"attentest": b"findings 1"})
    )


def test_a_file_of_the_first_format_is_read_with_the_columns_it_has(real, tmp_path):
    (tmp_path / "first.parquet").write_bytes(of_the_first_format(real / "toy.parquet"))
    import_findings(tmp_path / "first.parquet", str(tmp_path / "store"))
    here, there = Store(real / "store"), Store(tmp_path / "store")
    for key in findings_of(real / "store"):
        ours, theirs = (from_parquet(store.read(key, "findings.parquet")) for store in (here, there))
        pd.testing.assert_frame_equal(theirs, ours.drop(columns=[*LATER]))
    tables = [finding.table for finding in Stored(there).every]
    assert all([*table] == [*COLUMNS] and set(table["by_seed"]) == {""} for table in tables)
    # Exported again they have the new columns, empty, and are still the same findings.
    export_findings(there.url, tmp_path / "again.parquet")
    assert import_findings(tmp_path / "again.parquet", there.url)["written"] == 0
    assert import_findings(tmp_path / "again.parquet", str(tmp_path / "third"))["written"] == 2


def test_results_that_were_published_are_still_read():
    files = sorted((Path(__file__).parents[1] / "results").glob("*.parquet"))
    files = [file for file in files if file.name != "calibration.parquet"]  # rows of audits, and no findings
    assert files
    for file in files:
        cell = cells_of(file)[0]
        assert checksum(cell) == cell.shared["checksum"] and len(cell) > 1


def test_what_a_finding_was_made_from_is_described_and_not_whole(real):
    here, there = Store(real / "store"), Store(real / "imported")
    told = {"observation": 0, "model": 0, "corpus": 0}
    for key in set(there.done()) - {*findings_of(real / "imported")}:
        about, original = there.about(key), here.about(key)
        told[about["stage"]] += 1
        assert not there.is_whole(key) and there.cell(key).key == key
        for name in ("config", "inputs", "version", "files", "device", "torch", "seconds"):
            assert about.get(name) == original.get(name)
        assert about["where"] == {}  # paths of a machine
    assert told == {"observation": 4, "model": 2, "corpus": 1}
    assert not list((real / "imported").rglob("examples.parquet"))


def test_a_row_can_be_read_by_anybody_with_pandas(real):
    frame = pd.read_parquet(real / "toy.parquet")
    [row] = frame[(frame["measure"] == "accuracy") & (frame["group"] == "overall")].to_dict("records")
    assert (row["experiment"], row["corpus"], row["encoder"]) == ("performance", "planted-keyword", "average")
    assert json.loads(row["model"])["hidden"] == 8 and list(row["seed"]) == [0, 1]
    assert list(row["device"]) == ["cpu", "cpu"] and all(row["torch"]) and row["attentest"]
    store = Store(real / "store")
    for seen, model in zip(row["observation"], row["trained_model"], strict=True):
        assert store.cell(seen).inputs["model"] == model and store.about(model)["stage"] == "model"


def test_numbers_of_single_seeds_have_the_mean_and_the_spread_of_the_finding(real):
    frame = pd.read_parquet(real / "toy.parquet")
    assert set(frame["seed_reason"]) == {""} and len(frame) > 10
    means = frame[frame["estimate"].notna() & (frame["seeds"] == 2)]
    own = np.stack(means["seed_estimate"].to_list())
    assert own.shape == (len(means), 2) and len(means) > 10
    assert own.mean(axis=1) == pytest.approx(means["estimate"].to_numpy())
    assert own.std(axis=1, ddof=1) == pytest.approx(means["seed_std"].to_numpy(), abs=1e-12)


def test_numbers_of_single_seeds_are_those_of_the_whole_conclusion(gallery):
    [cell] = [c for c in cells_of(gallery / "all.parquet") if c.shared["experiment"] == "ablation"]
    rows = labelled(ROWS["ablation"]())
    for place, seed in enumerate(cell.shared["seed"]):
        found = CONCLUSIONS["ablation"].conclude(
            rows[rows["seed"] == seed], mode="corrected", rng=np.random.default_rng(7)
        )
        known = {(one.measure, one.group): one.estimate for one in found}
        same = [
            (known[measure, group], own[place])
            for measure, group, own in zip(
                cell.rows["measure"], cell.rows["group"], cell.rows["seed_estimate"], strict=True
            )
            if (measure, group) in known
        ]
        assert len(same) > 5
        for expected, found_here in same:
            assert found_here == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_without_rows_the_file_says_why_there_are_no_numbers_of_single_seeds(real, tmp_path):
    shutil.copytree(real / "store", tmp_path / "store")
    for rows in (tmp_path / "store").rglob("rows.parquet"):
        rows.unlink()
    export_findings(str(tmp_path / "store"), tmp_path / "bare.parquet")
    frame = pd.read_parquet(tmp_path / "bare.parquet")
    assert set(frame["seed_reason"]) == {"the store no longer has the rows of every seed"}
    assert all(math.isnan(each) for own in frame["seed_estimate"] for each in own)
    import_findings(tmp_path / "bare.parquet", str(tmp_path / "imported"))
    assert not list((tmp_path / "imported").rglob("by_seed.parquet"))


def test_exporting_again_from_the_imported_store_gives_the_same_bytes(real, gallery, tmp_path):
    for folder, name in ((real, "toy.parquet"), (gallery, "all.parquet")):
        export_findings(str(folder / "imported"), tmp_path / name)
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_importing_twice_changes_nothing(real, tmp_path):
    shutil.copytree(real / "imported", tmp_path / "store")
    before = {path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}
    told = import_findings(real / "toy.parquet", str(tmp_path / "store"))
    assert (told["cells"], told["written"], told["described"]) == (2, 0, 0)
    assert before == {path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}


def test_importing_into_the_store_it_came_from_changes_nothing(real, tmp_path):
    shutil.copytree(real / "store", tmp_path / "store")
    told = import_findings(real / "toy.parquet", str(tmp_path / "store"))
    assert (told["written"], told["described"]) == (0, 0)
    assert not list((tmp_path / "store").rglob("by_seed.parquet"))


def test_a_store_may_be_a_url(real):
    import_findings(real / "toy.parquet", "memory://imported-findings")
    store = Store("memory://imported-findings")
    for key in findings_of(real / "store"):
        assert store.read(key, "findings.parquet") == Store(real / "store").read(key, "findings.parquet")
    assert sorted(store.done()) == sorted(Store(real / "imported").done())


# --- what an imported store can do


def test_compare_says_the_same(gallery):
    shelf = {"sst": "here"}
    here, there = (compare("jain-wallace-2019", str(gallery / name), shelf) for name in ("store", "imported"))
    # Findings about single texts are not exported.
    alone = [row for row in here["rows"] if row["statistic"].startswith("heat-map/")]
    assert there["rows"] == [row for row in here["rows"] if row not in alone] and len(there["rows"]) > 5
    assert any(row["epochs_run"] == [5, 5] for row in there["rows"])
    assert there["sizes"] == here["sizes"]
    assert any(row["measure"] == "avg_length_tokens" for row in there["sizes"])


def test_the_report_has_the_same_numbers_also_of_single_seeds(gallery, monkeypatch):
    pytest.importorskip("altair")
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    here, there = (
        _numbers(site.build(str(gallery / name), {}, version="1")) for name in ("store", "imported")
    )
    assert len(here["points"]) == 2
    for point in here["points"]:
        point["done"].pop("heat-map", None)
    assert there["points"] == here["points"]
    assert there["points"][0]["by_seed"]


def _numbers(files):
    text = files["data/numbers.js"]
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def test_claims_are_judged_the_same(real):
    study = load_study(str(real / "toy.toml"))
    said = [
        [(one.finding.cell.key, one.verdict.verdict, one.verdict.reason) for one in judged(study, points)]
        for points in (grid_points(Stored(Store(real / name))) for name in ("store", "imported"))
    ]
    assert said[0] == said[1] and len(said[0]) == 1


def test_nothing_of_the_study_is_missing_and_conclude_waits_for_rows(real, tmp_path):
    shutil.copytree(real / "imported", tmp_path / "store")
    url = str(tmp_path / "store")
    assert len(list_cells(url)["cells"]) == 9
    told = conclude_all(url)
    assert len(told["waiting"]) == 2 and not told["changed"] and not told["written"]
    assert run_study(str(real / "toy.toml"), url, only_plan=True)["plan"] == []


def test_a_study_that_needs_more_computes_what_is_only_described(real, tmp_path):
    shutil.copytree(real / "imported", tmp_path / "store")
    text = STUDY.split("[[claim]]")[0].replace("seeds = 2", "seeds = 1")
    (tmp_path / "more.toml").write_text(text + '[[experiment]]\nname = "ablation"\n')
    done = run_study(str(tmp_path / "more.toml"), str(tmp_path / "store"), engine="inline", device="cpu")
    assert not done["failed"] and done["done"] == done["cells"]
    here, there = Store(real / "store"), Store(tmp_path / "store")
    [model] = [k for k in here.done() if here.about(k)["config"].get("seed", 0) == 0 and _is_subject(here, k)]
    assert there.is_whole(model)
    assert there.read(model, "model.safetensors") == here.read(model, "model.safetensors")


def _is_subject(store, key):
    return key in {store.cell(k).inputs.get("model") for k in store.done()} and store.about(key)[
        "config"
    ].get("epochs")


def test_a_training_that_was_begun_here_can_go_on_after_an_import(real, tmp_path):
    store = Store(tmp_path / "store")
    [model, *_] = cells_of(real / "toy.parquet")[0].shared["trained_model"]
    store.replace(b"state", "partial", model, "state.safetensors")
    import_findings(real / "toy.parquet", store.url)
    assert store.has(model) and store.find("partial", model, "state.safetensors") == b"state"


# --- no texts


def test_no_word_no_id_and_no_weight_leaves_the_store(gallery):
    sink = pa.BufferOutputStream()
    table = pq.read_table(gallery / "all.parquet")
    pq.write_table(table, sink, compression=None, use_dictionary=False)
    unpacked = sink.getvalue().to_pybytes()
    assert all(label.encode() in unpacked for label in LABELS)  # of which groups are made
    for secret in (*WORDS, HOSTILE.query, HOSTILE.id, "secretword", "t0001", "t0039"):
        assert secret.encode() not in unpacked
    # A Parquet file has no other place for data than its columns, and these are named one by one.
    assert table.column_names == findings_file.SCHEMA.names
    assert not {"tokens", "id", "weights", "text"} & set(table.column_names)


def test_findings_about_single_texts_are_left_out_and_listed(gallery):
    store = Store(gallery / "store")
    [left] = json.loads((gallery / "told.json").read_text())["left_out"]
    assert store.about(left["cell"])["config"]["experiment"] == "heat-map" and "ids" in left["reason"]
    assert "heat-map" not in set(pd.read_parquet(gallery / "all.parquet")["experiment"])


def test_neither_hosts_nor_paths_nor_times_leave_the_store(real):
    about = Store(real / "store").about(findings_of(real / "store")[0])
    texts = " ".join(map(str, pq.read_table(real / "toy.parquet").to_pylist()))
    assert about["host"] not in texts and str(real) not in texts and about["written"][:10] not in texts


# --- size


def test_a_finding_takes_few_bytes(gallery):
    rows = pq.read_metadata(gallery / "all.parquet").num_rows
    fixed = len(encode(cells_of(gallery / "all.parquet")[:1]))  # column names, the first cell
    assert rows > 300
    assert ((gallery / "all.parquet").stat().st_size - fixed) / rows < 100
    assert 15e6 / 100 > 100_000  # so many findings fit into 15 MB at least


# --- nothing is believed


def refused(file, store, *words):
    """Importing says no, in one sentence that has these words, and leaves no trace."""
    before = sorted(store.rglob("*"))
    with pytest.raises(Refusal) as refusal:
        import_findings(file, str(store))
    assert sorted(store.rglob("*")) == before
    for word in words:
        assert word in str(refusal.value)
    return str(refusal.value)


def set_first(name, value):
    def change(shared, rows):
        (rows if name in rows else shared)[name] = value(shared, rows)

    return change


FORGED = {
    "an estimate": ("estimate", lambda s, r: [np.nextafter(r["estimate"][0], 9), *r["estimate"][1:]]),
    "a number of a seed": ("seed_estimate", lambda s, r: [[0.25, 0.75], *r["seed_estimate"][1:]]),
    "a group": ("group", lambda s, r: ["others", *r["group"][1:]]),
    "a device": ("device", lambda s, r: ["cuda", "cuda"]),
    "a parameter": ("parameters", lambda s, r: canonical({"permutations": 1000})),
    "a version": ("version", lambda s, r: 99),
    "a seed": ("seed", lambda s, r: [0, 2]),
    "the corpus": ("corpus", lambda s, r: "sst"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_changed_row_is_refused(what, real, tmp_path):
    name, value = FORGED[what]
    (tmp_path / "file").write_bytes(rewritten(real / "toy.parquet", set_first(name, value), honest=False))
    refused(tmp_path / "file", tmp_path / "store", cells_of(real / "toy.parquet")[0].shared["cell"][:12])


def described(name, change, place=0):
    """One described cell with another content."""

    def value(shared, rows):
        told = json.loads(shared[name][place])
        change(told)
        return [canonical(told), *shared[name][1:]]

    return set_first(name, value)


HONEST = {
    "settings that do not give the key": (set_first("mode", lambda s, r: "as-published"), "its key"),
    "settings that are no JSON": (set_first("model", lambda s, r: "{"), "no JSON"),
    "settings without end": (set_first("model", lambda s, r: "[" * 100_000), "no JSON"),
    "settings that are no table": (set_first("parameters", lambda s, r: "[1]"), "no table"),
    "a name that is no key": (set_first("cell", lambda s, r: "../../../etc/passwd"), "no key"),
    "a seed twice": (set_first("seed", lambda s, r: [0, 0]), "a seed twice"),
    "the model of another": (
        set_first("trained_model", lambda s, r: [s["trained_model"][1], s["trained_model"][0]]),
        "description of another model",
    ),
    "the observation of another": (
        set_first("described_observations", lambda s, r: [*reversed(s["described_observations"])]),
        "description of another observation",
    ),
    "a device that its description does not have": (
        set_first("device", lambda s, r: ["cuda", "cuda"]),
        "another origin",
    ),
    "another configuration of a model": (
        described("described_models", lambda told: told["config"].update(hidden=9)),
        "description of another model",
    ),
    "a file that is a path": (
        described(
            "described_models",
            lambda told: told["files"].update({"../x.json": told["files"]["training.json"]}),
        ),
        "impossible file name",
    ),
    "a cell that would pass for whole": (
        described("described_observations", lambda told: told["files"].clear()),
        "pass for the cell itself",
    ),
    "data in a description": (
        described("described_models", lambda told: told["content"].update({"training.json": "{}"})),
        "data in it",
    ),
    "a note that no export writes": (
        described("described_models", lambda told: told["notes"].update(host="mine")),
        "notes of another kind",
    ),
    "an input that is no key": (
        described("described_models", lambda told: told["inputs"].update(corpus="../..")),
        "no keys",
    ),
    "a corpus with other counts": (
        set_first(
            "described_corpus", lambda s, r: s["described_corpus"].replace('\\"test\\": {', '\\"test\\":  {')
        ),
        "not what was stored",
    ),
}


@pytest.mark.parametrize("what", HONEST)
def test_a_forged_cell_is_refused_though_its_checksum_is_right(what, real, tmp_path):
    change, words = HONEST[what]
    (tmp_path / "file").write_bytes(rewritten(real / "toy.parquet", change))
    refused(tmp_path / "file", tmp_path / "store", words)


def test_what_is_not_changed_is_not_refused(real, tmp_path):
    (tmp_path / "file").write_bytes(rewritten(real / "toy.parquet", lambda shared, rows: None))
    assert import_findings(tmp_path / "file", str(tmp_path / "store"))["written"] == 2


def written(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sealed(sink.getvalue().to_pybytes())  # as a forger would


def foreign_files(real):
    content = (real / "toy.parquet").read_bytes()
    table = pq.read_table(pa.BufferReader(content))
    marked = findings_file.SCHEMA.metadata
    ours = table.cast(findings_file.SCHEMA)
    return {
        "nothing": (b"", "did not export"),
        "words": (b"measure,estimate\ntau,0.5\n", "did not export"),
        "the first half": (content[: len(content) // 2], "not all of it"),
        "a hole in the middle": (content[:2000] + bytes(2000) + content[4000:], "changed after"),
        "a hole in the middle, sealed": (sealed(content[:2000] + bytes(2000) + content[4000:]), "no whole"),
        "the findings of one cell": (written(pa.table({"measure": ["tau"]})), "did not export"),
        "a later format": (
            written(ours.replace_schema_metadata({**marked, b"attentest": b"findings 3"})),
            "the format 'findings 3'",
        ),
        "the first format with later columns": (
            written(ours.replace_schema_metadata({**marked, b"attentest": b"findings 1"})),
            "by_seed",
        ),
        "one column more": (
            written(ours.append_column("tokens", [["a"]] * len(ours)).replace_schema_metadata(marked)),
            "tokens",
        ),
        "one column less": (written(ours.drop_columns(["why"])), "why"),
        "numbers as words": (
            written(
                ours.set_column(ours.column_names.index("n"), "n", [list(map(str, ours["n"].to_pylist()))])
            ),
            "n",
        ),
        "no rows": (written(ours.slice(0, 0)), "no findings"),
        "a gap": (
            written(ours.set_column(ours.column_names.index("n"), "n", [[None, *ours["n"].to_pylist()[1:]]])),
            "gaps in the column n",
        ),
    }


FOREIGN = (
    *(
        "nothing",
        "words",
        "the first half",
        "a hole in the middle",
        "a hole in the middle, sealed",
        "the findings of one cell",
        "no rows",
    ),
    *(
        "a later format",
        "the first format with later columns",
        "one column more",
        "one column less",
        "numbers as words",
        "a gap",
    ),
)


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_file_is_refused(what, real, tmp_path):
    content, words = foreign_files(real)[what]
    (tmp_path / "file").write_bytes(content)
    refused(tmp_path / "file", tmp_path / "store", words, "store export")


def test_a_cell_in_two_places_is_refused(real):
    ours = pq.read_table(real / "toy.parquet").cast(findings_file.SCHEMA)
    with pytest.raises(Refusal, match="in two places"):
        cells_of_bytes(written(ours.take([0, len(ours) - 1, 1])))


def test_a_file_that_would_unpack_to_much_more_is_refused(real, tmp_path, monkeypatch):
    ours = pq.read_table(real / "toy.parquet").cast(findings_file.SCHEMA)
    many = pa.concat_tables([ours.slice(0, 1)] * 100)
    place = many.column_names.index("why")
    long = many.set_column(place, "why", [["x" * (findings_file.LONGEST_TEXT + 1)] * len(many)])
    (tmp_path / "file").write_bytes(written(long))
    assert (tmp_path / "file").stat().st_size < 200_000
    refused(tmp_path / "file", tmp_path / "store", "in the column why")
    for name, words in (
        ("MOST_ROWS", "rows, where"),
        ("MOST_GROUP_ROWS", "rows in one group"),
        ("MOST_VALUES", "values in one column"),
        ("MOST_UNPACKED", "bytes once unpacked"),
    ):
        with monkeypatch.context() as few:
            few.setattr(findings_file, name, 1)
            refused(real / "toy.parquet", tmp_path / "store", words)


def test_damage_anywhere_is_refused(real, tmp_path):
    content = (real / "toy.parquet").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 200):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(Refusal):
            cells_of_bytes(bytes(damaged))


def test_damaged_pages_are_refused_also_under_a_new_seal(real):
    """Of the footer this cannot be said: who forges that can end the process, and gains nothing else."""
    content = (real / "toy.parquet").read_bytes()
    pages = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    rng = np.random.default_rng(0)
    whole = [checksum(cell) for cell in cells_of(real / "toy.parquet")]
    outcomes = []
    for place in rng.integers(4, pages, 100):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        try:
            found = [checksum(cell) for cell in cells_of_bytes(sealed(bytes(damaged)))]
        except Refusal:
            outcomes.append("refused")
        else:
            outcomes.append("changed" if found != whole else "harmless")  # which an import then refuses
    assert outcomes.count("refused") > 30 and len(outcomes) == 100


def test_other_numbers_under_a_key_that_is_here_are_refused_before_anything_is_written(real, tmp_path):
    key = findings_of(real / "store")[1]
    here = Store(real / "store")
    table = from_parquet(here.read(key, "findings.parquet"))
    store = Store(tmp_path / "store")
    store.write(here.cell(key), {"findings.parquet": to_parquet(table.assign(estimate=0.5))}, {})
    refused(real / "toy.parquet", tmp_path / "store", f"cell {key}", "other numbers")
    assert store.done() == [key]


def test_the_same_numbers_in_other_bytes_are_the_same_finding(real, tmp_path):
    key = findings_of(real / "store")[0]
    here = Store(real / "store")
    sink = pa.BufferOutputStream()
    table = pq.read_table(pa.BufferReader(here.read(key, "findings.parquet")))
    pq.write_table(table, sink, compression="snappy")  # as another release would
    store = Store(tmp_path / "store")
    store.write(here.cell(key), {"findings.parquet": sink.getvalue().to_pybytes()}, {})
    assert import_findings(real / "toy.parquet", store.url)["written"] == 1
    assert store.read(key, "findings.parquet") == sink.getvalue().to_pybytes()


@pytest.mark.parametrize("note", [{"device": "cuda"}, {"device": "cpu", "parameters": "0" * 64}])
def test_findings_are_not_put_on_a_model_that_was_trained_elsewhere(note, real, tmp_path):
    here, store = Store(real / "store"), Store(tmp_path / "store")

    def with_digest(told):
        told["notes"]["parameters"] = "1" * 64

    def change(shared, rows):
        described("described_models", with_digest)(shared, rows)
        shared["parameters_sha256"] = ["1" * 64, shared["parameters_sha256"][1]]

    first, *_ = cells_of(real / "toy.parquet")
    (tmp_path / "file").write_bytes(encode([cells_of_bytes(rewritten(real / "toy.parquet", change))[0]]))
    model = first.shared["trained_model"][0]
    files = {"model.safetensors": b"weights", "training.json": here.read(model, "training.json")}
    store.write(here.cell(model), files, note)
    refused(
        tmp_path / "file", tmp_path / "store", f"cell {model}", "parameters" if len(note) > 1 else "device"
    )


def cells_of_bytes(content):
    return [*decode(content, "file")]


def test_one_cell_described_in_two_ways_is_refused(real, tmp_path):
    change = described("described_models", lambda told: told["notes"].update(seconds=1e6))
    (tmp_path / "file").write_bytes(rewritten(real / "toy.parquet", change))
    refused(tmp_path / "file", tmp_path / "store", "two descriptions")


# --- the command line


def test_the_commands_tell_a_program_what_they_did(real, tmp_path, capsys):
    file, store = tmp_path / "file.parquet", tmp_path / "imported"
    assert run(["store", "export", "--findings", str(file), "--store", str(real / "store"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cells"] == 2 and told["left_out"] == [] and told["bytes"] == file.stat().st_size
    assert (
        told["findings"] == len(pd.read_parquet(file))
        and file.read_bytes() == (real / "toy.parquet").read_bytes()
    )
    assert run(["store", "import", str(file), "--store", str(store), "--json"]) == 0
    brought = json.loads(capsys.readouterr().out)
    assert (brought["findings"], brought["cells"], brought["written"]) == (told["findings"], 2, 2)


def test_the_commands_tell_a_person_what_they_did(gallery, tmp_path, capsys):
    file = tmp_path / "file.parquet"
    assert run(["store", "export", "--findings", str(file), "--store", str(gallery / "store")]) == 0
    out = capsys.readouterr().out
    assert "findings of 4 cells" in out and "left out: " in out and "single texts" in out
    assert run(["store", "import", str(file), "--store", str(tmp_path / "store")]) == 0
    assert "4 cells written" in capsys.readouterr().out


def test_a_study_exports_what_it_asks_for(real, tmp_path, capsys):
    (tmp_path / "less.toml").write_text(STUDY.replace('name = "performance"', 'name = "ablation"'))
    words = ["store", "export", "--findings", str(tmp_path / "file"), "--store", str(real / "store")]
    assert run([*words, "--study", str(tmp_path / "less.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 1
    assert set(pd.read_parquet(tmp_path / "file")["experiment"]) == {"permutation"}


def test_wrong_input_is_refused_with_status_two(real, tmp_path, capsys):
    store, file = str(real / "store"), str(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"not ours")
    asked = [
        ["store", "import", file, "--store", str(tmp_path / "new")],
        ["store", "import", str(tmp_path / "absent"), "--store", str(tmp_path / "new")],
        ["store", "import", str(tmp_path), "--store", str(tmp_path / "new")],
        ["store", "export", "--findings", file, "--store", str(tmp_path / "absent")],
        ["store", "export", "--findings", str(tmp_path / "no" / "folder"), "--store", store],
        ["store", "export", "--findings", file, "--store", store, "--study", "meister-2021"],
        ["store", "export", "--store", store],
    ]
    for words in asked:
        assert run([*words, "--json"]) == 2, words
        assert json.loads(capsys.readouterr().out)["error"]["message"]
    assert (tmp_path / "file").read_bytes() == b"not ours" and not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
