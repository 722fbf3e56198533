"""Experiments are found by the table of the studies."""

from __future__ import annotations

import pytest

from rag_harness import pipelines
from rag_harness.errors import RegistryError


def test_the_textbook_is_found() -> None:
    found = pipelines.built_in()
    assert {"e1", "t1", "t1-boost0", "t1-boost12", "t1-boost15", "t2", "t3", "t3-rrf", "t4", "t5"} <= found.keys()
    assert pipelines.result_name("t1") == "t1_headings"
    assert pipelines.result_name("t1-boost0") == "t1__boost0"
    assert pipelines.builder("t1-boost0").__module__ == "rag_harness.studies.textbook.t1_headings"
    assert pipelines.builder("t3-rrf").__module__ == "rag_harness.studies.textbook.t3__rrf"
    with pytest.raises(RegistryError, match=r"t1-boost1\b.*Did you mean 't1-boost1[25]'"):
        pipelines.builder("t1-boost1")
