"""Every encoder by its name, with its widths: `sizes` says whether the published code's or the paper's."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from attentest.model.constructions import is_constructed
from attentest.model.networks.constructed import encoder_for
from attentest.model.networks.encoders import Convolutional, Encoder, Recurrent, TokenWise, Transformer
from attentest.model.networks.hierarchy import Hierarchical

Make = Callable[[int, int, str], Encoder]


def _average(emb: int, hidden: int, sizes: str) -> TokenWise:
    activation = nn.Tanh() if sizes == "code" else nn.ReLU()
    width = hidden if sizes == "code" else 2 * hidden
    return TokenWise(nn.Sequential(nn.Linear(emb, width), activation), width)


def _mlp(emb: int, hidden: int, sizes: str) -> TokenWise:
    network = nn.Sequential(nn.Linear(emb, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
    return TokenWise(network, hidden)


def _cnn(emb: int, hidden: int, sizes: str) -> Convolutional:
    # Code: the hidden width is shared out over four kernels. Paper: 64 each, twice as many.
    return Convolutional(emb, (1, 3, 5, 7), hidden // 4 if sizes == "code" else hidden // 2)


def _cnn_wen(emb: int, hidden: int, sizes: str) -> Convolutional:
    # "128 output channels" over five kernels: 25 each, or 128 each as the sentence might be read (A29).
    return Convolutional(emb, (1, 3, 5, 7, 15), hidden // 5 if sizes == "code" else hidden)


def _bilstm(emb: int, hidden: int, sizes: str) -> Recurrent:
    return Recurrent(emb, hidden, nn.LSTM)


def _bigru(emb: int, hidden: int, sizes: str) -> Recurrent:
    return Recurrent(emb, hidden, nn.GRU)


def _conv(emb: int, hidden: int, sizes: str) -> Convolutional:
    return Convolutional(emb, (3, 5), hidden)


def _transformer(emb: int, hidden: int, sizes: str) -> Transformer:
    return Transformer(emb, hidden)


def _identity(emb: int, hidden: int, sizes: str) -> TokenWise:
    return TokenWise(nn.Identity(), emb)


def _han(make: Make) -> Callable[[int, int, str], Hierarchical]:
    """The same kind of encoder over words and over sentences (Serrano & Smith's HAN)."""

    def hierarchical(emb: int, hidden: int, sizes: str) -> Hierarchical:
        words = make(emb, hidden, sizes)
        return Hierarchical(words, make(words.width, hidden, sizes))

    return hierarchical


ENCODERS: dict[str, Callable[[int, int, str], Encoder | Hierarchical]] = {
    "bilstm": _bilstm,
    "cnn": _cnn,
    "cnn-wen": _cnn_wen,
    "average": _average,
    "mlp": _mlp,
    "transformer": _transformer,
    "bigru": _bigru,
    "conv": _conv,
    "identity": _identity,
    "han-bigru": _han(_bigru),
    "han-conv": _han(_conv),
    "han-identity": _han(_identity),
}


def make_encoder(name: str, emb: int, hidden: int, sizes: str) -> Encoder | Hierarchical:
    """The encoder of that name, or of that construction."""
    return encoder_for(name) if is_constructed(name) else ENCODERS[name](emb, hidden, sizes)
