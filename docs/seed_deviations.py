"""Makes the table of seed deviations that `attentest compare` moderates with.

    python docs/seed_deviations.py gather vectors=results/vectors.parquet jain-wallace-2019=STORE
    python docs/seed_deviations.py fit

`gather` reads findings, from an export or a store, and writes the deviations over seeds of the scores and of
what the package's studies compare or claim to results/seed_deviations_inputs.csv. `fit` makes
src/attentest/studies/seed_deviations.csv of that file alone, so anybody can make it again. Raise VERSION
whenever the inputs change.
"""

import sys
from pathlib import Path

import pandas as pd

from attentest.bench.conclusion import findings_of
from attentest.compare.translation import is_result, wanted
from attentest.statistics.moderated import INPUTS, prior_table
from attentest.store.store import Store
from attentest.studies.published import load_published
from attentest.studies.recipe import load_study, names

VERSION = 1
ROOT = Path(__file__).parents[1]
GATHERED = ROOT / "results" / "seed_deviations_inputs.csv"
FITTED = ROOT / "src" / "attentest" / "studies" / "seed_deviations.csv"
# The study of vectors measures the same tau on a sample of the texts.
SAME = {"vectors/tau-gradient": "importance/tau-gradient", "vectors/tau-loo": "importance/tau-loo"}
SCORES = {"performance/accuracy", "performance/f1", "performance/auc"}


def findings(path: str) -> pd.DataFrame:
    """All findings of an export (a Parquet file) or of a store."""
    if path.endswith(".parquet"):
        return pd.read_parquet(path)
    store = Store(path).existing()
    cells = [cell for key in store.done() if (cell := store.cell(key)).stage == "finding"]
    return findings_of(cells, store)


def asked_for() -> set[str]:
    """The measures that a published number or a claim of the package's studies is about."""
    studies = {name: load_study(name) for name in names()}
    claimed = {claim.statistic.rpartition("/")[0] for study in studies.values() for claim in study.claim}
    printed = [load_published(name) for name, study in studies.items() if study.published is not None]
    return (
        SCORES
        | claimed
        | {wanted(number).statistic for many in printed for number in many if is_result(number)}
    )


def gathered(study: str, table: pd.DataFrame) -> pd.DataFrame:
    """The deviations of trained models over at least two seeds: over all texts, and by predicted class."""
    statistic = (table["experiment"] + "/" + table["measure"]).replace(SAME)
    groups = (table["group"] == "overall") | table["group"].str.startswith("predicted=")
    own = table[statistic.isin(asked_for()) & groups & table["seed_std"].notna()]
    about = {"study": study, "cell": own["cell"].str[:12], "statistic": statistic[own.index]}
    rounded = own["seed_std"].map(lambda value: float(f"{value:.6g}"))
    made = pd.DataFrame(about | {"group": own["group"], "seeds": own["seeds"], "seed_std": rounded})
    return made[list(INPUTS)].sort_values(["statistic", "cell", "group"], ignore_index=True)


def fitted() -> pd.DataFrame:
    """The table that the gathered deviations make."""
    return prior_table(pd.read_csv(GATHERED), VERSION)


def main(verb: str, *named: str) -> None:
    """Gather or fit."""
    if verb == "gather":
        parts = [
            gathered(study, findings(path)) for study, _, path in (name.partition("=") for name in named)
        ]
        pd.concat(parts, ignore_index=True).to_csv(GATHERED, index=False, lineterminator="\n")
    else:
        fitted().to_csv(FITTED, index=False, lineterminator="\n")
        print(FITTED.read_text(), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
