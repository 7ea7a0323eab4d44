"""Small corpora as their makers pack them: a folder or an archive of each kind."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

TREES = {
    "trees/train.txt": "(3 (2 Very) (3 (4 good) (2 -LRB-)))\n(2 (2 So) (2 so))\n",
    "trees/dev.txt": "(0 (1 bad) (2 .))\n",
    "trees/test.txt": "(4 (4 fine) (2 8\u00a01\\/2))\r\n",
}


REVIEWS = {
    f"aclImdb/{split}/{label}/{number}_{rating}.txt": f"{label} film<br /><br />number {number}, é"
    for split in ("train", "test")
    for label, rating in (("neg", 1), ("pos", 10))
    for number in (7, 231)
} | {"aclImdb/train/unsup/0_0.txt": "no label", "aclImdb/README": "about"}


def packed(kind: str, top: Path, files: dict[str, str], encoding: str = "utf-8") -> Path:
    """The files as a folder or an archive of that kind."""
    contents = {name: text.encode(encoding) for name, text in files.items()}
    path = top if kind == "folder" else top / f"a{kind}"
    if kind == "folder" or kind == "gzipped":
        for name, content in contents.items():
            file = top / (name + (".gz" if kind == "gzipped" else ""))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(content) if kind == "gzipped" else content)
        return top
    if kind == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
        return path
    modes = {".tar": "w", ".tar.gz": "w:gz", ".tar.xz": "w:xz"}
    with tarfile.open(path, modes[kind]) as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
