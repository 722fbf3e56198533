"""The reference is whole, and is that of the code."""

from __future__ import annotations

import re
import sys

import pytest

import rag_harness
from docs.made import DOCS, IMAGES, PAGES, PICTURES
from rag_harness.__main__ import ALONE, COMMANDS
from rag_harness.core.settings import options
from rag_harness.evaluation.measures import known_measures
from rag_harness.records.expectations import known_kinds
from tests.effort import without_garbage_collection


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="help and signatures read otherwise on other Pythons")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_that_of_the_code(name: str) -> None:
    with without_garbage_collection():
        made = PAGES[name]()
    assert text(name) == made, "write it anew: python -m docs.made"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_that_of_the_code(name: str) -> None:
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name](), "draw it anew: python -m docs.made"


def test_every_option_is_there() -> None:
    flags = re.findall(r"^### (--rag-[a-z0-9-]+)$", text("reference/options.md"), re.MULTILINE)
    assert sorted(flags) == sorted(f"--rag-{each.name.replace('_', '-')}" for each in options())


def test_every_command_is_there() -> None:
    named = set(
        re.findall(r"^usage: rag-harness ([a-z-]+(?: [a-z-]+)?) \[", text("reference/commands.md"), re.MULTILINE)
    )
    assert named >= set(ALONE) | {f"{group} {name}" for group, (_, names) in COMMANDS.items() for name in names}


def test_every_public_name_has_words() -> None:
    sections = re.split(r"^## ", text("reference/api.md"), flags=re.MULTILINE)[1:]
    said = {
        each.partition("\n")[0]: re.sub(r"```.*?```", "", each.partition("\n")[2], flags=re.DOTALL) for each in sections
    }
    assert set(said) == {name for name in rag_harness.__all__ if not name.startswith("__")}
    assert [name for name, words in said.items() if len(words.split()) < 4] == []


def test_every_field_of_a_file_has_words() -> None:
    assert re.findall(r"^\| `\w+` \| .* \|  \|$", text("reference/output.md"), re.MULTILINE) == []


def test_every_measure_and_every_kind_of_expectation_is_named() -> None:
    measures, kinds = text("reference/measures.md"), text("reference/expectations.md")
    assert [name for name in known_measures() if f"`{name}" not in measures] == []
    assert [kind for kind in known_kinds() if f"`{kind}`" not in kinds] == []
