"""Every test of the field that is held against the truth: which side of it says yes, and what it restates.

A test is a finding of an audit, named experiment/measure. Its *effect* is sign * (estimate - null), so that a
larger effect always says more that attention explains. The null is 0 unless the test is read against the
null of its own finding. Some tests restate one of the two questions, because the truth is defined by what
they measure; for that question they are shown and not ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import pandas as pd

EPSILONS = ("0.01", "0.05")  # output changes that an adversary is allowed
REMOVED = ("0.1", "0.25", "0.5")  # shares of the words that are removed


@final
@dataclass(frozen=True, kw_only=True)
class KnownTest:
    """One test: its name, what it is in words, and which side of it says yes."""

    name: str
    group: str
    title: str
    sign: float = 1.0
    own_null: bool = False  # whether it is read against its finding's own null instead of 0
    restates: str = ""  # the question that it answers by definition: pointer, mechanism or none

    def effect(self, rows: pd.DataFrame) -> pd.Series:
        """Larger: more of a yes. Rounded, so that noise of the arithmetic does not order what is equal."""
        null = rows["null"].astype(float) if self.own_null else 0.0
        return (self.sign * (rows["estimate"].astype(float) - null)).round(6)


IMPORTANCES = {"gradient": "gradients", "loo-held": "leave-one-out, scores held"}
IMPORTANCES |= {"loo": "leave-one-out"}
AGREEMENTS = {"leave-one-out": "leave-one-out", "integrated-gradients": "integrated gradients"}
AGREEMENTS |= {"shapley": "Shapley values", "lime": "LIME"}
SEARCHES = {"last": "the published search", "best": "the best step of the search"}
SEARCHES |= {"unpaired": "the search without the pair term"}
PLAUSIBLE = {"auprc": "AUPRC", "token-f1": "token F1", "iou-f1": "span F1"}
MI = "tau of weights and mutual information"
INFORMATION = {"tau": MI, "tau-joint": f"{MI}, all ranks jointly"}
INFORMATION |= {"tau-above-floor": f"{MI}, above the permutation floor"}
INFORMATION |= {"tau-knn": f"{MI}, nearest neighbours", "tau-scipy": f"{MI}, scipy's tau"}


def _importance() -> Iterator[KnownTest]:
    group = "tau with importances"
    for name, words in IMPORTANCES.items():
        yield KnownTest(name=f"importance/tau-{name}", group=group, title=f"tau with {words}")
        title = f"share of texts with a significant tau with {words}"
        yield KnownTest(name=f"importance/tau-{name}-significant", group="share significant", title=title)
    for name, words in {"gradient": "gradients", "loo": "leave-one-out"}.items():
        title = f"tau with {words} beyond its null"
        yield KnownTest(name=f"importance/tau-{name}-excess", group=group, title=title)
        title = f"tau of both importances minus tau with {words}"
        test = f"importance/gradient-loo-minus-attention-{name}"
        yield KnownTest(name=test, group=group, title=title, sign=-1.0)
        for measure, sign in (("overlap", 1.0), ("distance", -1.0)):
            title = f"top-k {measure} with {words}"
            yield KnownTest(name=f"importance/top-k-{measure}-{name}", group=group, title=title, sign=sign)
    for name in ("held", "free"):
        title = f"tau with the gradient's norm, attention {name}"
        yield KnownTest(name=f"importance/tau-norm-{name}", group=group, title=title)
    for name, words in AGREEMENTS.items():
        yield KnownTest(name=f"agreement/{name}", group=group, title=f"tau with {words} (explainer)")


def _adversary() -> Iterator[KnownTest]:
    for epsilon in EPSILONS:
        at = f"@{epsilon}"
        exact = {"": "divergence", "-share": "share of texts above 0.6"}
        exact |= {"-ratio": "divergence relative to the largest", "-excess": "divergence beyond its null"}
        for suffix, words in exact.items():
            yield KnownTest(
                name=f"adversary/emax-jsd-exact{suffix}{at}",
                group="exact adversary",
                title=f"exact adversary: {words}, ε = {epsilon}",
                sign=-1.0,
            )
        for name, words in SEARCHES.items():
            for suffix, what in {"": "divergence", "-share": "share of texts above 0.6"}.items():
                title = f"{words}: {what}, ε = {epsilon}"
                test = f"adversary/emax-jsd-{name}{suffix}{at}"
                yield KnownTest(name=test, group="searched adversary", title=title, sign=-1.0)
        for name in ("permuted", "capped"):
            title = f"{name} opponent: divergence, ε = {epsilon}"
            test = f"adversary/emax-jsd-{name}{at}"
            yield KnownTest(name=test, group="permuted and capped opponents", title=title, sign=-1.0)


def _weights_changed() -> Iterator[KnownTest]:
    title = "median change of output under permuted weights"
    test = "permutation/median-output-change"
    yield KnownTest(name=test, group="permutation", title=title, restates="mechanism")
    title = "share of texts that permuted weights leave unmoved"
    test = "permutation/share-unmoved"
    yield KnownTest(name=test, group="permutation", title=title, sign=-1.0, restates="mechanism")
    for name, words in {"uniform": "uniform weights", "frozen": "weights of an untrained model"}.items():
        title = f"change of output under {words}"
        test = f"ablation/{name}-output-change"
        yield KnownTest(name=test, group="ablation", title=title, restates="mechanism")


def _single_weight() -> Iterator[KnownTest]:
    measures = {
        "discordant-top-attention": ("top word flips alone, of the texts where one of two does", 1.0),
        "only-top-flips-attention": ("texts where only removing the top word flips", 1.0),
        "only-random-flips-attention": ("texts where only removing a random word flips", -1.0),
        "djs-attention": ("divergence without the top word minus without a random word", 1.0),
        "djs-attention-excess": ("divergence, top minus random word, beyond its null", 1.0),
        "negative-djs-attention": ("texts where a random word matters more", -1.0),
    }
    for name, (title, sign) in measures.items():
        title = f"single weight: {title}"
        yield KnownTest(name=f"single-weight/{name}", group="single weight", title=title, sign=sign)


def _removal() -> Iterator[KnownTest]:
    below = {
        "fraction-attention": "share of words removed until the decision flips",
        "median-fraction-attention": "median share of words removed until it flips",
        "mass-attention": "weight removed until it flips",
        "median-mass-attention": "median weight removed until it flips",
        "never-flips-attention": "texts that never flip",
        "fraction-attention-minus-random": "share removed, minus random order",
        "fraction-attention-minus-random-excess": "share removed, minus random order, beyond its null",
        "mass-attention-minus-random": "weight removed, minus random order",
        "mass-attention-minus-random-excess": "weight removed, minus random order, beyond its null",
    } | {
        f"unflipped-attention@{share}": f"texts unflipped with {share} of the words gone" for share in REMOVED
    }
    for name, title in below.items():
        yield KnownTest(name=f"removal/{name}", group="removal", title=f"removal: {title}", sign=-1.0)
    title = "removal: share removed by gradients minus by attention"
    yield KnownTest(name="removal/fraction-gradient-minus-attention", group="removal", title=title)
    smallest = "distance from the smallest flip"
    optimum = {
        "excess-attention": ("words removed beyond the smallest flip", -1.0),
        "ratio-attention": ("words removed relative to the smallest flip", -1.0),
        "at-optimum-attention": ("texts where attention's order is a smallest flip", 1.0),
    }
    for name, (title, sign) in optimum.items():
        yield KnownTest(name=f"removal/{name}", group=smallest, title=f"removal: {title}", sign=sign)


def _trained() -> Iterator[KnownTest]:
    group = "trained adversary"
    title = "trained adversary: divergence of its weights"
    yield KnownTest(name="trained-adversary/jsd", group=group, title=title, sign=-1.0)
    title = "trained adversary: change of its output"
    yield KnownTest(name="trained-adversary/tvd", group=group, title=title)
    title = "accuracy that the weights give a model without context"
    yield KnownTest(name="guided/accuracy-gain", group="guided MLP", title=title)


def _dispersion() -> Iterator[KnownTest]:
    spread = {"entropy-attention": "entropy of the weights", "entropy-influence": "entropy of influence"}
    for name, title in spread.items():
        yield KnownTest(name=f"dispersion/{name}", group="dispersion", title=title, sign=-1.0)
    yield KnownTest(name="dispersion/max-attention", group="dispersion", title="largest weight")
    of_states = {"tau-inputs-gradient": "gradients of inputs", "tau-hidden-gradient": "gradients of states"}
    of_states |= {"tau-inputs-loo": "leave-one-out of inputs", "tau-hidden-loo": "leave-one-out of states"}
    for name, words in of_states.items():
        title = f"tau with {words}"
        yield KnownTest(name=f"dispersion/{name}", group="tau with importances", title=title)
        if name != "tau-inputs-gradient":
            title = f"tau with {words} beyond its null"
            yield KnownTest(name=f"dispersion/{name}-excess", group="tau with importances", title=title)


def _of_words() -> Iterator[KnownTest]:
    group = "mutual information"
    for name, title in INFORMATION.items():
        yield KnownTest(name=f"information/{name}", group=group, title=title, own_null=name == "tau")
    for name in ("tau", "tau-joint", "tau-above-floor"):
        title = f"p of {INFORMATION[name]}"
        yield KnownTest(name=f"information/{name}-p", group=group, title=title, sign=-1.0)
    for name, sign in {"comprehensiveness": 1.0, "sufficiency": -1.0}.items():
        yield KnownTest(name=f"erasure/{name}", group=name, title=name, sign=sign)
        title = f"{name} beyond random words"
        yield KnownTest(name=f"erasure/{name}-excess", group=name, title=title, sign=sign)
    for name, words in PLAUSIBLE.items():
        for suffix, of in {"": "of marked words", "-excess": "beyond shuffled weights"}.items():
            yield KnownTest(
                name=f"plausibility/{name}{suffix}",
                group="plausibility",
                title=f"{words} {of}",
                restates="pointer",
            )


# Evidence is additive in nearly all constructions, and there gradient times input is the contribution itself.
ADDITIVE = (
    "importance/tau-gradient",
    "importance/tau-gradient-significant",
    "agreement/integrated-gradients",
    "importance/top-k-overlap-gradient",
    "importance/top-k-distance-gradient",
    "importance/gradient-loo-minus-attention-gradient",
)

KNOWN: Mapping[str, KnownTest] = {
    test.name: replace(test, restates="pointer") if test.name in ADDITIVE else test
    for tests in (
        _importance(),
        _weights_changed(),
        _adversary(),
        _single_weight(),
        _removal(),
        _trained(),
        _dispersion(),
        _of_words(),
    )
    for test in tests
}
