"""attentest: do a model's attention weights explain its predictions?

    import attentest as at
    corpus = at.load_corpus("planted-keyword")
    model = at.train(corpus, encoder="bilstm", attention="additive", projection="softmax", seed=0)

Names load on first use, so that importing the package costs nothing and the gallery never sees torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attentest.auditing.api import audit
    from attentest.bench.verbs import run_study as study
    from attentest.corpus.catalogue import load_corpus
    from attentest.corpus.example import Corpus, Example
    from attentest.corpus.tables.table import read_table
    from attentest.inspection.api import inspect
    from attentest.model.training.files import load, save
    from attentest.model.training.train import train
    from attentest.refusal import Refusal

__version__ = "0.2.0"
__all__ = [
    "Corpus",
    "Example",
    "Refusal",
    "audit",
    "inspect",
    "load",
    "load_corpus",
    "read_table",
    "save",
    "study",
    "train",
]

_HOME = {
    "Corpus": "attentest.corpus.example",
    "Example": "attentest.corpus.example",
    "Refusal": "attentest.refusal",
    "audit": "attentest.auditing.api",
    "inspect": "attentest.inspection.api",
    "load": "attentest.model.training.files",
    "load_corpus": "attentest.corpus.catalogue",
    "read_table": "attentest.corpus.tables.table",
    "save": "attentest.model.training.files",
    "study": "attentest.bench.verbs",
    "train": "attentest.model.training.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"attentest has no {name!r}; it has {', '.join(__all__)}")
    module = importlib.import_module(_HOME[name])
    return getattr(module, "run_study" if name == "study" else name)


def __dir__() -> list[str]:
    return __all__
