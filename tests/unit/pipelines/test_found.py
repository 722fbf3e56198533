"""Experiments are found by the table of the studies."""

from __future__ import annotations

import pytest

from rag_harness.core.errors import RegistryError
from rag_harness.pipelines import experiments


def test_the_textbook_is_found() -> None:
    found = experiments.built_in()
    assert {"e1", "t1", "t1-boost0", "t1-boost12", "t1-boost15", "t2", "t3", "t3-rrf", "t4", "t5"} <= found.keys()
    assert experiments.result_name("t1") == "t1_headings"
    assert experiments.result_name("t1-boost0") == "t1__boost0"
    assert experiments.builder("t1-boost0").__module__ == "rag_harness.studies.textbook"
    assert experiments.builder("t3-rrf").__module__ == "rag_harness.studies.textbook"
    with pytest.raises(RegistryError, match=r"t1-boost1\b.*Did you mean 't1-boost1[25]'"):
        experiments.builder("t1-boost1")
