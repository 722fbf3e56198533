"""What all pages begin with: one file of styles and one of script functions."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from rag_harness.core.escaping import page_policy, page_script, page_style

_STYLES = {
    "rag_harness.page": ("assets/page.css", "assets/trials.css"),
    "rag_harness.authoring.questions.review": ("assets/review.css",),
    "rag_harness.service": ("page/page.css",),
}
_SCRIPTS = {
    "rag_harness.page": "assets/page.js",
    "rag_harness.authoring.questions.review": "assets/review.js",
    "rag_harness.service": "page/page.js",
}
packages = pytest.mark.parametrize("package", _STYLES)


def text_of(package: str, *names: str) -> str:
    return "".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names)


@packages
def test_a_page_has_the_colours_of_all_pages_and_none_of_its_own(package: str) -> None:
    assert len(re.findall(r":root \{.*?--bg: ", page_style(""), re.S)) == 2
    assert not re.search(
        r"--(?:bg|fg|panel|muted|accent|text|mono): ", text_of(package, *_STYLES[package]).split("@media print")[0]
    )


@packages
def test_a_page_makes_its_elements_by_the_function_of_all_pages(package: str) -> None:
    script = text_of(package, _SCRIPTS[package])
    assert "createElement(" not in script
    assert re.search(r"^const el = elements\(.+\);$", script, re.M)


def test_the_script_of_a_page_is_strict_from_its_first_line() -> None:
    assert page_script("go();").startswith('"use strict";\n')
    assert page_script("go();").endswith("\ngo();")


def test_what_all_pages_share_overrides_what_stands_before_it() -> None:
    assert page_style("b {}", before="a {}").startswith("a {}")
    assert page_style("b {}", before="a {}").endswith("b {}")


def test_a_policy_lets_in_what_has_these_digests() -> None:
    said = page_policy("", "x")
    assert "style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='" in said
    assert "script-src 'sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE='" in said
