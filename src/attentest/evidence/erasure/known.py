"""Answers to parts of texts that were found before, so that whoever asks for the same part again has it.

Leave-one-out, LIME, Shapley values and erasure ask one model about many of the same parts.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.evidence.erasure.parts import Chosen, Kept
from attentest.model.seam import Reading

DIGEST = 16  # bytes of the name of a part: no two of a million parts share one


@final
class KnownParts:
    """Logits of one model by text and by the units that are kept of it; every text has an id of its own."""

    def __init__(self) -> None:
        self.logits: dict[bytes, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.logits)

    def names(self, reading: Reading, texts: Chosen, kept: Kept) -> list[bytes]:
        """What each part is called: padding does not count."""
        packed = np.packbits(kept.cpu().numpy(), axis=1)
        ids = [reading.batch.ids[text].encode() for text in texts.tolist()]
        return [
            hashlib.blake2b(name + b"\0" + row.tobytes().rstrip(b"\0"), digest_size=DIGEST).digest()
            for name, row in zip(ids, packed, strict=True)
        ]

    def unknown(self, names: Sequence[bytes]) -> Bool[Tensor, " part"]:
        """Which of them nobody has asked about."""
        return torch.tensor([name not in self.logits for name in names], dtype=torch.bool)

    def add(self, names: Sequence[bytes], logits: Float[Tensor, "part class"]) -> None:
        """Remember these answers; one that is known already stays as it is."""
        for name, row in zip(names, logits.detach().cpu().numpy(), strict=True):
            self.logits.setdefault(name, row)

    def found(self, names: Sequence[bytes], like: Tensor) -> Float[Tensor, "part class"]:
        """The answers to parts that are all known, as the model gives them."""
        return torch.from_numpy(np.stack([self.logits[name] for name in names])).to(like)

    def add_without(
        self,
        reading: Reading,
        lefts: range,
        logits: Float[Tensor, "batch variant class"],
        asked: Bool[Tensor, "batch unit"],
    ) -> None:
        """Remember the answers to texts without each of the units `lefts` that were asked about."""
        texts, variants = asked[:, lefts.start : lefts.stop].nonzero(as_tuple=True)
        kept = reading.mask[texts].scatter(1, variants[:, None] + lefts.start, False)
        self.add(self.names(reading, texts, kept), logits[texts, variants])

    def written(self, begin: int = 0) -> bytes:
        """What was found from the answer `begin` on, as one file."""
        file, some = io.BytesIO(), [*self.logits.items()][begin:]
        names = np.frombuffer(b"".join(name for name, _ in some), dtype=np.uint8).reshape(-1, DIGEST)
        np.savez_compressed(file, names=names, logits=np.array([row for _, row in some]))
        return file.getvalue()

    def take(self, written: bytes) -> None:
        """Know what is in such a file, too."""
        with np.load(io.BytesIO(written), allow_pickle=False) as held:
            names, logits = held["names"], held["logits"]
        self.logits |= {name.tobytes(): row for name, row in zip(names, logits, strict=True)}
