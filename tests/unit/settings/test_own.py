"""Options of a user's own parts: declared in pyproject.toml, set by name, known to the fingerprint."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.loading import load_settings

DECLARED = """
[tool.rag_harness.options.boost]
default = 0.15
affects = "retrieval"
[tool.rag_harness.options.terse]
default = false
affects = "generation"
"""


def loaded(root: Path, *define: str, declared: str = DECLARED) -> Settings:
    (root / "pyproject.toml").write_text(declared)
    return load_settings({"define": list(define)}, rootdir=root)


def test_a_declared_option_has_its_default_or_what_was_given(tmp_path: Path) -> None:
    assert loaded(tmp_path).own == {"boost": 0.15, "terse": False}
    assert loaded(tmp_path, "boost=1", "terse = Yes").own == {"boost": 1.0, "terse": True}


def test_it_counts_where_it_says(tmp_path: Path) -> None:
    one, other = loaded(tmp_path), loaded(tmp_path, "boost=0.2")
    assert affecting(one, "retrieval") != affecting(other, "retrieval")
    assert affecting(one, "generation", "reranking") == affecting(other, "generation", "reranking")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("boots=1", "Unknown option 'boots'. Did you mean 'boost'?"),
        ("boost", "expected NAME=VALUE"),
        ("boost=much", "expected float, as its default 0.15 is"),
        ("terse=maybe", "expected bool"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("boost = 3", "expected a table with default and affects"),
        ("boost = {default = 1}", "affects says what results it changes"),
        ("boost = {default = [1], affects = 'retrieval'}", "expected a string, a number or a boolean"),
        ("boost = {default = 1, affects = 'retrieval', typ = 'int'}", "Unknown key 'typ'"),
    ],
)
def test_a_declaration_that_says_too_little_is_refused(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, declared=f"[tool.rag_harness.options]\n{declared}\n")
    assert said in str(caught.value)
