"""Training: it learns what was planted, repeats bit for bit, and keeps to its protocol."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attentest as at
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.batch import IndexedSplit
from attentest.model.catalogue import ENCODERS
from attentest.model.config import ModelConfig
from attentest.model.protocol import PROTOCOLS, resolved
from attentest.model.reader import readings, split_logits
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from tests.toys import toy_corpus, toy_model

SMALL = {"hidden": 16, "embedding": 12, "epochs": 4}


def weights_by_id(model, corpus, split="test"):
    indexed = IndexedSplit(corpus.splits()[split], model.vocabulary, corpus.labels)
    found = {}
    for rows, reading in readings(model, indexed):
        for place, row in enumerate(rows):
            length = len(indexed.examples[row].tokens)
            found[indexed.examples[row].id] = reading.weights[place, :length].numpy()
    return found


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_planted_word_is_learnt(planted, encoder):
    model = at.train(planted, encoder=encoder, embedding=12, hidden=16, epochs=25, learning_rate=0.01)
    assert model.record.scores["test"]["accuracy"] > 0.9


def test_attention_without_context_finds_the_planted_word_of_one_class(planted):
    """Of one class only: to tell two words apart it is enough to look for one of them."""
    model = at.train(planted, encoder="average", embedding=12, hidden=16, epochs=8, learning_rate=0.01)
    weights = weights_by_id(model, planted)

    def hits(label, weight_of):
        texts = [e for e in planted.test if e.label == label]
        return np.mean([int(weight_of(e).argmax()) in (e.rationale or ()) for e in texts])

    rng = np.random.default_rng(0)
    assert max(hits(label, lambda e: weights[e.id]) for label in planted.labels) > 0.9
    assert max(hits(label, lambda e: rng.random(len(e.tokens))) for label in planted.labels) < 0.5


@pytest.mark.parametrize("projection", ["softmax", "gumbel-softmax(0.8)", "sparsemax"])
def test_the_same_seed_gives_the_same_bits(planted, projection):
    short = {**SMALL, "encoder": "bilstm", "projection": projection, "epochs": 2}
    one, two = (at.train(planted, seed=3, **short) for _ in range(2))
    assert all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    )
    other = at.train(planted, seed=4, **short)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_training_leaves_torchs_own_generator_alone(planted):
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    at.train(planted, encoder="average", **{**SMALL, "epochs": 1})
    assert torch.equal(torch.rand(1), expected)


def test_padding_stays_exactly_zero(planted):
    model = at.train(planted, encoder="cnn", **SMALL)
    assert (model.embedding.weight[0] == 0).all()


def test_it_stops_once_dev_is_perfect_and_never_keeps_the_first_epoch(planted):
    model = at.train(planted, encoder="identity", embedding=12, epochs=60, patience=60, learning_rate=0.01)
    record = model.record
    assert len(record.history) < 60 and record.history[-1]["dev"]["accuracy"] == 1.0
    assert record.chosen >= 2
    auc = [epoch["dev"]["auc"] for epoch in record.history[1:]]
    assert record.history[record.chosen - 1]["dev"]["auc"] == max(auc)


def test_patience_ends_a_training_that_no_longer_improves(planted):
    model = at.train(planted, encoder="average", labels="shuffled", patience=2, **{**SMALL, "epochs": 60})
    assert len(model.record.history) < 60


def test_an_epoch_goes_over_the_texts_until_it_has_its_steps(planted):
    once = at.train(planted, encoder="average", **SMALL)
    steps = -(-len(planted.train) // once.config.batch_size)
    model = build(replace(once.config, epoch_steps=steps + 1), planted, once.vocabulary)
    training = Training(model, planted)
    assert training.passes == 2 and training.steps == 2 * steps
    first, second = training.batches(3)[:steps], training.batches(3)[steps:]
    assert all(map(np.array_equal, first, Training(once, planted).batches(3)))
    everything = np.arange(len(planted.train))
    assert np.array_equal(np.sort(np.concatenate(second)), everything)
    assert not all(map(np.array_equal, first, second))


def test_its_loss_is_that_of_a_text_and_its_patience_counts_epochs(planted):
    settings = {**SMALL, "epochs": 60, "encoder": "average", "labels": "shuffled", "patience": 2}
    short, long = (at.train(planted, **settings, epoch_steps=steps).record for steps in (1, 10**2))
    assert 0.1 < long.history[0]["loss"] < 1.2 * short.history[0]["loss"]
    assert len(long.history) <= long.chosen + 3


def test_shuffled_labels_teach_nothing(planted):
    model = at.train(planted, encoder="average", labels="shuffled", **SMALL)
    assert model.record.scores["test"]["accuracy"] < 0.75


def labels_of(planted, **settings):
    training = Training(build(shuffling(**settings), planted, Vocabulary.build(planted.train)), planted)
    return training.train.labels, training.dev.labels


def shuffling(labels="shuffled-all", seed=0):
    config = ModelConfig(encoder="average", labels=labels, seed=seed, **SMALL)
    return resolved(config, family="classification", classes=2, has_query=False)


def test_shuffled_all_shuffles_dev_too_by_the_seed_and_apart_from_train(planted):
    train, dev = labels_of(planted, labels="gold")
    shuffled, dev_shuffled = labels_of(planted)
    assert np.array_equal(np.bincount(dev), np.bincount(dev_shuffled)) and (dev != dev_shuffled).any()
    assert np.array_equal(np.bincount(train), np.bincount(shuffled)) and (train != shuffled).any()
    again = labels_of(planted)
    assert np.array_equal(again[0], shuffled) and np.array_equal(again[1], dev_shuffled)
    assert (labels_of(planted, seed=1)[1] != dev_shuffled).any()
    # The order of dev is no repetition of that of train: applied to as many labels it ends elsewhere.
    order = np.arange(len(dev))
    np.random.default_rng([0, 1]).shuffle(order)
    assert (dev[order] != dev_shuffled).any()


def test_shuffled_keeps_the_labels_of_dev_and_what_train_was(planted):
    earlier = labels_of(planted, labels="shuffled")
    assert np.array_equal(earlier[0], labels_of(planted)[0])
    assert np.array_equal(earlier[1], labels_of(planted, labels="gold")[1])


def test_shuffled_labels_never_touch_test(planted):
    """Dev's score is of the shuffled labels, which choose the epoch; that of test is of the gold ones."""
    model = build(shuffling(), planted, Vocabulary.build(planted.train))
    training = Training(model, planted)
    record = training.run()
    found = {
        name: split_logits(model, IndexedSplit(examples, model.vocabulary, planted.labels))[:, 0] > 0
        for name, examples in (("dev", planted.dev), ("test", planted.test))
    }
    gold = np.array([planted.labels.index(example.label) for example in planted.test])
    assert record.scores["test"]["accuracy"] == (found["test"].numpy() == gold).mean()
    assert record.scores["dev"]["accuracy"] == (found["dev"].numpy() == training.dev.labels).mean()


def test_between_readings_gradients_are_as_the_consumer_has_them():
    corpus = toy_corpus()
    model = toy_model(corpus)
    split = IndexedSplit(corpus.test * 50, model.vocabulary, corpus.labels)
    found = 0
    for _, reading in readings(model, split):
        assert torch.is_grad_enabled() and not reading.weights.requires_grad
        model.zero_grad()
        model.decide(reading).sum().backward()
        assert model.decoder.dense.bias.grad is not None
        found += 1
    assert found > 1
    begun = readings(model, split)
    next(begun)
    assert torch.is_grad_enabled()  # also where the rest is never asked for


def test_zero_epochs_is_the_untrained_model(planted):
    model = at.train(planted, encoder="average", **{**SMALL, "epochs": 0})
    fresh = build(model.config, planted, model.vocabulary)
    assert torch.equal(model.embedding.weight, fresh.embedding.weight)
    assert model.record.chosen == 0 and model.record.history == []
    assert 0 <= model.record.scores["test"]["accuracy"] <= 1


@pytest.mark.parametrize("part", ["embedding", "encoder", "attention", "decoder"])
def test_a_frozen_part_does_not_move(planted, part):
    model = at.train(planted, encoder="average", freeze=[part], **SMALL)
    fresh = build(model.config, planted, model.vocabulary)
    moved = {
        name.split(".")[0]
        for name, tensor in model.state_dict().items()
        if not torch.equal(tensor, fresh.state_dict()[name])
    }
    assert moved == {"embedding", "encoder", "attention", "decoder"} - {part}


def test_attention_parameters_feel_no_weight_decay():
    corpus = toy_corpus()
    training = Training(toy_model(corpus, weight_decay=0.1), corpus)
    decayed, plain = training.optimiser.param_groups
    attention = {id(p) for p in training.model.attention.parameters()}
    assert decayed["weight_decay"] == 0.1 and plain["weight_decay"] == 0.0
    assert {id(p) for p in plain["params"]} == attention
    assert not attention & {id(p) for p in decayed["params"]}


def test_the_rarer_class_weighs_more():
    corpus = toy_corpus(lengths=(3,) * 9)
    few = replace(corpus, train=tuple(e for n, e in enumerate(corpus.train) if e.label == "no" or n == 1))
    training = Training(toy_model(few), few)
    assert float(training.objective.positive_weight) == 5 / 1  # N / N_pos - 1 with five "no" and one "yes"


def test_a_guide_decides_where_a_model_looks(planted):
    base = at.train(planted, encoder="average", **SMALL)
    guide = {
        k: v for split in ("train", "dev", "test") for k, v in weights_by_id(base, planted, split).items()
    }
    guided = at.train(planted, encoder="average", projection="stored", guide=guide, **SMALL)
    for name, weights in weights_by_id(guided, planted).items():
        np.testing.assert_allclose(weights, guide[name], atol=1e-7)
    del guide[planted.test[0].id]
    with pytest.raises(Refusal, match="stored attention for text"):
        at.train(planted, encoder="average", projection="stored", guide=guide, **SMALL)


def test_impossible_answers_get_no_probability():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"), candidates=True)
    model = toy_model(corpus)
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    logits = split_logits(model, split)
    assert torch.isinf(logits[~torch.from_numpy(split.possible)]).all()
    assert Training(model, corpus).run().scores["test"]["accuracy"] >= 0


def test_word_vectors_come_from_a_file(planted, tmp_path):
    words = Vocabulary.build(planted.train).words[4:]
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {n % 7} 0.5 -1\n" for n, word in enumerate(words[:50])))
    model = at.train(planted, encoder="average", vectors=str(path), epochs=0, hidden=8)
    assert model.config.embedding == 3 and model.config.vectors.startswith("file:")
    assert model.embedding.weight[model.vocabulary.index[words[3]]].tolist() == [3.0, 0.5, -1.0]
    assert (model.embedding.weight[model.vocabulary.index[words[60]]] == 0).all(), (
        "missing words are zero (A5)"
    )


def test_word_vectors_can_be_learnt_from_the_corpus_itself(planted):
    pytest.importorskip("gensim", reason="needs the extra `vectors`")
    one, two = (at.train(planted, encoder="average", vectors="word2vec(9)", epochs=0, seed=s) for s in (1, 1))
    assert one.config.embedding == 9 and one.config.vectors == "word2vec(9)"
    assert torch.equal(one.embedding.weight, two.embedding.weight)
    assert (one.embedding.weight[0] == 0).all()
    with pytest.raises(Refusal, match="word2vec"):
        at.train(planted, encoder="average", vectors="word2vec(x)", epochs=0)


@pytest.mark.parametrize("family", PROTOCOLS)
def test_resolving_writes_every_default_out(family):
    query = family != "classification"
    config = resolved(ModelConfig(), family=family, classes=3, has_query=query)
    protocol = PROTOCOLS[family]
    assert (config.epochs, config.batch_size) == (protocol.epochs, protocol.batch_size)
    assert config.decoder == ("two-layer" if query else "softmax")
    assert config.vectors == f"random({protocol.scale})"
    assert ModelConfig.of(config.spelled()) == config


def test_paper_sizes_differ_from_code_sizes():
    corpus = toy_corpus()
    widths = {
        (encoder, sizes): toy_model(corpus, encoder=encoder, sizes=sizes, hidden=128).encoder.width
        for encoder in ("cnn", "average", "bilstm")
        for sizes in ("code", "paper")
    }
    assert widths == {
        ("cnn", "code"): 128,
        ("cnn", "paper"): 256,
        ("average", "code"): 128,
        ("average", "paper"): 256,
        ("bilstm", "code"): 256,
        ("bilstm", "paper"): 256,
    }


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer", "bigru"])
def test_a_gpu_reads_and_learns_as_a_cpu_does(planted, encoder):
    fresh = at.train(planted, encoder=encoder, **{**SMALL, "epochs": 0})
    split = IndexedSplit(planted.test, fresh.vocabulary, planted.labels)
    here = split_logits(fresh, split)
    torch.testing.assert_close(split_logits(fresh.to("cuda"), split), here, atol=1e-4, rtol=1e-3)
    model = at.train(planted, encoder=encoder, device="cuda", embedding=12, hidden=16, learning_rate=0.01)
    assert model.device.type == "cuda"
    assert model.record.scores["test"]["accuracy"] > 0.9
