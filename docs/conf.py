"""How the pages of this folder are built: ``sphinx-build -n -W docs OUTPUT``.

Nothing is loaded from elsewhere, search works without a network, and a link that leads nowhere is an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tomllib
from pygments.lexers.python import PythonLexer
from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(_ROOT))
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_SOURCE = _PROJECT["urls"]["Repository"].removesuffix(".git")
_PAGE = re.compile(r"\]\(([a-z-]+/[a-z0-9-]+)\.md[#)]")
_LINK = re.compile(r"\]\(((?:(?:\.\./)+|dev/)[^()\s#]{1,200})((?:#[^()\s]{0,100})?)\)")

project = "rag_harness"
author = _PROJECT["authors"][0]["name"]
release = version = _PROJECT["version"]
language = "en"
# Options begin with two hyphens.
smartquotes = False
extensions = ["myst_parser", "sphinx_copybutton", "docs.site.sections"]
source_suffix = {".md": "markdown"}
# Pages for those who work on it are read in the repository.
exclude_patterns = ["images", "dev"]
# Each heading down to the fourth can be linked to, by the name that GitHub gives it.
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"rag_harness {release}"
html_show_sourcelink = False
templates_path = ["site"]
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = [("sidebar.js", {"defer": "defer"})]
html_show_copyright = False
copybutton_prompt_text = "$ "
# JSON in which "…" stands for what is left out is coloured as far as that goes.
suppress_warnings = ["misc.highlighting_failure"]


def _link_to_the_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links to files that are no pages to the project's source: the built site has pages alone."""
    folder = (Path(app.srcdir) / page).parent

    def led(match: re.Match[str]) -> str:
        target = (folder / match[1]).resolve()
        is_page = target.is_relative_to(app.srcdir) and not target.is_relative_to(Path(app.srcdir, "dev"))
        if is_page or not target.exists():
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"]({_SOURCE}/{kind}/main/{target.relative_to(_ROOT).as_posix()}{match[2]})"

    source[0] = _LINK.sub(led, source[0])


def _list_as_mapped(_app: Sphinx, page: str, source: list[str]) -> None:
    """List the pages beside each page as the map of all pages has them: a list for each of its headings."""
    if page != "index":
        return
    listed = set[str]()
    for section in source[0].split("\n## ")[1:]:
        caption, _, text = section.partition("\n")
        pages = [each for each in dict.fromkeys(_PAGE.findall(text)) if each not in listed]
        listed.update(pages)
        if not pages:
            continue
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + "\n".join([caption, "", *pages]) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Register what is done to a page before it is read, and languages of code blocks that only tests tell apart."""
    app.connect("source-read", _link_to_the_source)
    app.connect("source-read", _list_as_mapped)
    for name in ("gates", "gates-refused", "csv"):
        app.add_lexer(name, TextLexer)
    for name in ("python-langchain", "python-shop"):
        app.add_lexer(name, PythonLexer)
