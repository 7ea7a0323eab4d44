"""What cannot end in numbers is said in a sentence, and wrong words before anything is written."""

import pytest

from attentest.bench.verbs import run_study, train_one
from attentest.model.training.files import from_files, to_files
from attentest.model.training.finite import NotFinite, check_finite
from attentest.model.training.train import train
from attentest.refusal import Refusal
from tests.toys import toy_corpus, toy_model

SMALL = {"encoder": "average", "epochs": 1}
OVERFLOWING = [{"learning_rate": 9e29, "vectors": "random(1e9)"}]


@pytest.mark.parametrize("settings", OVERFLOWING, ids=str)
def test_a_training_that_overflows_is_refused_and_leaves_a_failed_cell(settings, tmp_path):
    with pytest.raises(Refusal, match=r"training of cell .*NaN or infinite.*needs .*finite"):
        train_one("planted-keyword", SMALL | settings, str(tmp_path))


def test_training_in_python_says_so_too():
    with pytest.raises(NotFinite, match=r"of the training: NaN or infinite"):
        train(toy_corpus(), **(SMALL | OVERFLOWING[0] | {"epochs": 3}))


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_or_weights_that_are_no_numbers_are_named(loss):
    model = toy_model(toy_corpus())
    check_finite(model, {"history": [{"epoch": 1, "loss": 0.5}]})
    with pytest.raises(NotFinite, match="the loss of epoch 2"):
        check_finite(model, {"history": [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": loss}]})
    model.embedding.weight.data[0, 0] = loss
    with pytest.raises(Refusal, match=r"cannot be loaded .*embedding\.weight has numbers that are NaN"):
        from_files(to_files(model).__getitem__, "there")
    with pytest.raises(NotFinite, match=r"the weights embedding\.weight"):
        check_finite(model, {"history": []})


@pytest.mark.parametrize(
    "asked",
    [
        lambda store: train_one("planted-keyword", SMALL | {"vectors": "/no/such.vec"}, store),
        *(
            lambda store, words=words: train_one("planted-keyword", SMALL | words, store)
            for words in (
                {"vectors": "random(1e308)"},
                {"vectors": "random(x)"},
                {"vectors": "word2vec(0)"},
                {"projection": "tempered-softmax(1e-320)"},
                {"projection": "sparsegen(-1e308)"},
                {"learning_rate": 1e300},
            )
        ),
        lambda store: train_one("planted-keyword", SMALL, store, device="tpu"),
        lambda store: run_study("demo", store, engine="nope"),
        lambda store: run_study("demo", store, device="tpu"),
    ],
)
def test_words_are_checked_before_anything_is_written(asked, tmp_path):
    with pytest.raises(Refusal, match=r"such\.vec|tpu|nope|random\(|word2vec\(|projection|learning_rate"):
        asked(str(tmp_path / "store"))
    assert not (tmp_path / "store").exists()
