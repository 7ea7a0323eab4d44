"""Where Hugging Face models come from, and everything that is refused on the way, sentence by sentence."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from attentest.foreign import editing as transformer_editing
from attentest.foreign.loading import adopt, load_transformer
from attentest.foreign.transformer import longest_text
from attentest.refusal import Refusal
from tests.families import LABELS, examples, made, own_logits, tiny, tokenizer, transformers


@pytest.fixture
def folder(tmp_path):
    tiny("bert").save_pretrained(tmp_path)
    tokenizer("bert").save_pretrained(tmp_path)
    return tmp_path


def change(folder, **settings):
    about = folder / "config.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), **settings}))


def test_a_folder_is_the_model_that_was_saved(folder):
    loaded = load_transformer(folder, labels=LABELS, head=1)
    _, own = own_logits(tiny("bert"), "bert")
    split = loaded.split(examples())
    with torch.no_grad():
        reading = loaded.read(split.batch(range(4)))
        torch.testing.assert_close(loaded.decide(reading), own, atol=1e-5, rtol=1e-5)
    assert loaded.labels == LABELS and reading.weights.ndim == 2
    assert load_transformer(str(folder)).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_the_network_is_not_used_unless_it_is_asked_for(monkeypatch):
    def fetched(*args, **kwargs):
        raise AssertionError("nobody asked for the network")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fetched)
    with pytest.raises(Refusal, match=r"no folder here.*network=True"):
        load_transformer("somebody/some-model")


def test_a_name_that_cannot_be_fetched_is_a_sentence(monkeypatch):
    def unreachable(*args, **kwargs):
        assert kwargs["local_files_only"] is False and kwargs["trust_remote_code"] is False
        raise OSError("we could not connect")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    with pytest.raises(Refusal, match=r"could not connect.*check the spelling and the network"):
        load_transformer("somebody/some-model", network=True)


def test_a_folder_without_a_configuration_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"without config\.json"):
        load_transformer(tmp_path)


def test_a_folder_without_weights_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(Refusal, match="without weights"):
        load_transformer(folder)


def test_weights_that_may_run_programs_are_refused(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never opened")
    with pytest.raises(Refusal, match=r"may run any program.*model\.safetensors"):
        load_transformer(folder)


def test_code_that_comes_with_a_model_is_not_run(folder):
    change(folder, auto_map={"AutoConfig": "evil.Config"})
    (folder / "evil.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(Refusal, match=r"brings code of its own.*remote_code=True"):
        load_transformer(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[" * 100_000),
        ("model.safetensors", b""),
        ("model.safetensors", b"not weights " * 400),
        ("tokenizer.json", b"null"),
    ],
    ids=lambda each: each[:20],
)
def test_files_that_no_library_can_read_are_a_sentence(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(Refusal, match="cannot be loaded"):
        load_transformer(folder)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_parameter_that_is_no_number_is_named_wherever_it_is(number):
    model = tiny("bert")
    model.bert.embeddings.word_embeddings.weight.data[3, 1] = number
    with pytest.raises(Refusal, match=r"NaN or infinite in bert\.embeddings\.word_embeddings\.weight"):
        adopt(model, tokenizer("bert"))


def test_a_mask_may_be_infinite_and_no_buffer_may_be_nan():
    model = tiny("bert")
    model.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    assert adopt(model, tokenizer("bert")).labels
    model.mask[0] = torch.nan
    with pytest.raises(Refusal, match="NaN or infinite in mask"):
        adopt(model, tokenizer("bert"))


@pytest.mark.parametrize("names", [["neg", "pos", "so-so"], {"0": "neg", "2": "pos", "5": "so-so"}])
def test_classes_without_names_are_a_sentence(folder, names):
    change(folder, id2label=names)
    with pytest.raises(Refusal, match=r"labels of the model: got id2label|cannot be loaded"):
        load_transformer(folder)


def test_a_folder_without_a_tokenizer_is_a_sentence(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(Refusal, match="one without words"):
        load_transformer(folder)


def test_a_head_that_would_be_random_is_refused(folder):
    base = tiny("bert").bert
    base.save_pretrained(folder)
    change(folder, architectures=["BertForSequenceClassification"])
    with pytest.raises(Refusal, match=r"no weights for classifier\.bias.*random"):
        load_transformer(folder, labels=LABELS)


@pytest.mark.parametrize(
    ("head", "settings", "said"),
    [
        ("ForTokenClassification", {}, "BertForTokenClassification.*classifier of whole texts"),
        ("Model", {}, "BertModel.*classifier of whole texts"),
        ("ForSequenceClassification", {"num_labels": 1}, "a regression model"),
        ("ForSequenceClassification", {"problem_type": "regression"}, "a regression model"),
        (
            "ForSequenceClassification",
            {"problem_type": "multi_label_classification"},
            "several labels to one",
        ),
    ],
)
def test_what_is_no_classifier_of_texts_is_refused(head, settings, said, tmp_path):
    model = tiny("bert", head=head, **settings)
    with pytest.raises(Refusal, match=said):
        adopt(model, tokenizer("bert"))
    model.save_pretrained(tmp_path)
    tokenizer("bert").save_pretrained(tmp_path)
    with pytest.raises(Refusal, match=said):
        load_transformer(tmp_path)


def test_half_precision_is_loaded_as_single_unless_another_type_is_named(folder):
    tiny("bert").half().save_pretrained(folder)
    assert load_transformer(folder).transformer.dtype == torch.float32
    assert load_transformer(folder, dtype="auto").transformer.dtype == torch.float16
    assert load_transformer(folder, dtype="bfloat16", device="cpu").transformer.dtype == torch.bfloat16


def test_numbers_that_are_no_floating_point_are_refused():
    class Quantised(torch.nn.Module):
        config, dtype = tiny("bert").config, torch.int8
        get_input_embeddings = None

    quantised = type("BertForSequenceClassification", (Quantised,), {})()
    with pytest.raises(Refusal, match=r"bert model in int8.*float32, float64, float16, bfloat16"):
        adopt(quantised, tokenizer("bert"))


def test_a_device_that_is_not_there_is_refused(folder):
    if not torch.cuda.is_available():
        with pytest.raises(Refusal, match=r"device='cuda'.*torch finds none.*device='auto'"):
            load_transformer(folder, device="cuda")


def test_what_is_no_hugging_face_model_is_sent_to_the_adapter():
    with pytest.raises(Refusal, match=r"Linear.*attentest\.foreign\.adapter"):
        adopt(torch.nn.Linear(2, 2), tokenizer("bert"))


def test_a_tokenizer_with_more_words_than_vectors_is_refused():
    larger = tokenizer("bert")
    larger.add_tokens(["zebra"])
    with pytest.raises(Refusal, match=r"numbers up to 25.*none above 24"):
        adopt(tiny("bert"), larger)


def test_a_tokenizer_that_pads_otherwise_is_refused():
    other, none = tokenizer("bert"), tokenizer("bert")
    other.pad_token, none.pad_token = "[UNK]", None
    with pytest.raises(Refusal, match=r"padding with 1.*which is 0"):
        adopt(tiny("bert"), other)
    with pytest.raises(Refusal, match="no padding token"):
        adopt(tiny("bert"), none)


def test_texts_longer_than_the_model_are_refused_with_their_number():
    adopted = adopt(tiny("bert", max_position_embeddings=9), tokenizer("bert"), labels=LABELS)
    assert longest_text(adopted.transformer, adopted.tokenizer) == 9
    long = [replace(examples()[0], id=f"long-{n}", tokens=("cat",) * (7 + n)) for n in range(3)]
    assert len(adopted.split(long[:1])) == 1, "seven words and two marks fit"
    with pytest.raises(Refusal, match=r"'long-1' and 1 more: got 10 places.*at most 9"):
        adopted.split(long)


def test_a_table_of_positions_that_counts_from_its_padding_holds_fewer():
    model = tiny("roberta", max_position_embeddings=12)
    longest = longest_text(model, tokenizer("roberta"))
    assert longest == 12 - model.config.pad_token_id - 1
    with torch.no_grad():
        model(input_ids=torch.full((1, longest), 5))
        with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
            model(input_ids=torch.full((1, longest + 1), 5))


def test_labels_that_do_not_match_are_refused():
    adopted, _ = made("bert")
    with pytest.raises(Refusal, match=r"label 'x' of text '0'.*one of a, b, c"):
        adopted.split([replace(examples()[0], label="x")])
    with pytest.raises(Refusal, match=r"2 names.*3 different ones"):
        adopt(tiny("bert"), tokenizer("bert"), labels=("no", "yes"))
    with pytest.raises(Refusal, match="3 different ones"):
        adopt(tiny("bert"), tokenizer("bert"), labels=("no", "yes", "no"))


def test_texts_of_nothing_and_half_pairs_are_refused():
    adopted, _ = made("bert")
    with pytest.raises(Refusal, match="nothing that the tokenizer takes for text"):
        adopted.split([replace(examples()[0], tokens=("\u00a0",))])
    with pytest.raises(Refusal, match="1 of 2 with a second text"):
        adopted.split([examples()[0], examples(pairs=True)[1]])


def test_without_the_library_everything_else_works_and_this_says_how(monkeypatch):
    code = "import sys; sys.modules['transformers'] = None; import attentest.foreign.loading"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setattr(transformer_editing.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"pip install 'attentest\[hf\]'"):
        adopt(tiny("bert"), tokenizer("bert"))


def test_a_library_that_is_too_old_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "4.57.1")
    with pytest.raises(Refusal, match=r"transformers 4\.57\.1.*5\.1 or later"):
        adopt(tiny("bert"), tokenizer("bert"))
