"""The whole report as one file: every page, picture, script and number of the site, and nothing beside it.

What a policy cannot name by its folder it names by its digest: the style and the scripts of the file are
allowed because the page says what they hash to. Numbers are blocks of JSON, which no browser runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from urllib.parse import quote

from markupsafe import escape

from attentest.gallery.shards import OWN, VEGA, router

MAIN = re.compile(r'<main id="main">(.*)</main>', re.DOTALL)
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
LINKED = re.compile(r'<a href="figures/[^"]*">(<img [^>]*>)</a>')
DRAWN = re.compile(r'<a href="figures/[^"]*" download="">SVG</a>')
AGAIN = re.compile(r'<img class="thumb" [^>]*alt="([^"]*)"[^>]*>')  # each stands in full on its model's page
LINK = re.compile(r'href="([^"]*)"')
PICTURE = re.compile(r'src="(figures/[^"]*|icon\.svg)"')
PLACE = re.compile(r'id="([^"]*)"')
TYPES = {".csv": "text/csv", ".md": "text/markdown", ".tex": "text/x-tex", ".svg": "image/svg+xml"}
PLACES = {"index.html": "Studies", "texts.html": "Texts", "compare.html": "Compare"}
PLACES |= {"calibration.html": "Calibration", "catalogue.html": "Data", "about.html": "About"}
FIRST = tuple(PLACES)


def single(files: Mapping[str, str]) -> str:
    """The site's files as one HTML document."""
    pages = [name for name in files if name.endswith(".html")]
    pages.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    running = [_unclosed(files["scripts/core.js"]), _unclosed(router())]
    later = [_unclosed(files[VEGA]), *(_unclosed(files[f"scripts/{name}.js"]) for name in OWN[1:])]
    style = files["style.css"]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_digest, [*running, *later]))};"
        f" style-src {_digest(style)}; img-src data: blob:"
    )
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}" />\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />\n',
            f"<title>attentest</title>\n<style>{style}</style>\n",
            *(f"<script>{script}</script>\n" for script in running),
            '</head>\n<body data-single="yes">\n',
            *(_page(name, files) for name in pages),
            *(_data(name, files[name]) for name in files if name.startswith("data/")),
            *(f"<script>{script}</script>\n" for script in later),
            "</body>\n</html>\n",
        ]
    )


def _page(name: str, files: Mapping[str, str]) -> str:
    page = files[name]
    main, title = MAIN.search(page), TITLE.search(page)
    assert main is not None and title is not None  # both are in the template of every page
    # Pictures first: their links go, and with them every link to a file of the folder.
    body = DRAWN.sub("", LINKED.sub(r"\1", AGAIN.sub(r"\1", main[1])))
    body = PICTURE.sub(lambda found: f'src="{_address(found[1], files[found[1]])}"', body)
    body = PLACE.sub(lambda found: f'id="{name}/{found[1]}"', body)
    body = LINK.sub(lambda found: f'href="{_turned(unescape(found[1]), name, files)}"', body)
    links = " ".join(f'<a href="#page={file}">{says}</a>' for file, says in PLACES.items())
    top = f'<header class="top"><span class="name">attentest</span><nav class="pages">{links}</nav></header>'
    return f'<div data-page="{name}" data-title="{title[1]}">\n{top}\n<main>\n{body}\n</main></div>\n'


def _turned(target: str, page: str, files: Mapping[str, str]) -> str:
    """A link between files as one within the file; state stays state, a place becomes `at`."""
    file, _, place = target.partition("#")
    if file and not file.endswith(".html"):
        return _address(file, files[file])
    state = place if "=" in place else f"at={place}" if place else ""
    return str(escape("&".join(part for part in (f"#page={file or page}", state) if part)))


def _address(name: str, content: str) -> str:
    return f"data:{TYPES[Path(name).suffix]};charset=utf-8,{quote(content)}"


def _data(name: str, script: str) -> str:
    """What a shard would hand over, as a block that is read when it is needed; `<` is spelled there."""
    inside = script.removeprefix("attentest.take(").removesuffix(");\n")
    called, end = json.JSONDecoder().raw_decode(inside)
    return f'<script type="application/json" data-block="{escape(called)}">{inside[end + 2 :]}</script>\n'


def _unclosed(script: str) -> str:
    """The script without anything that ends a script element; in strings the two are the same."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
