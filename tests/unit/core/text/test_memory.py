"""Memory of texts: a run reads what an earlier one has found out, and finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.core.text import memory
from rag_harness.core.text.answer_match import answer_match
from rag_harness.core.text.language_detection import told
from rag_harness.core.text.memory import open_memory, remembered, without_memory
from rag_harness.core.text.refusals import declines

TEXTS = [
    ("How long is the warranty?", "The warranty is 24 months.", "It is 24 months."),
    ("How long is the warranty?", "The warranty is 24 months.", "It is 12 months."),
    ("Wie lange gilt die Garantie?", "Die Garantie gilt 24 Monate.", "Darüber steht hier leider nichts."),
    ("What does it cost?", "It costs $5.", "I do not know what it costs."),
    ("What does it cost?", "It costs $5.", "\ud800 " + "x" * 30_000),
]


@pytest.fixture(autouse=True)
def _nothing_computed() -> Iterator[None]:
    """Functions keep results in memory, too: another process has none."""
    for each in (answer_match, told, declines):
        each.cache_clear()
    yield
    memory._open.clear()


def look(answers: list[str]) -> list[object]:
    for each in (answer_match, told, declines):
        each.cache_clear()
    matches = [answer_match(question, truth, answer) for question, truth, answer in TEXTS]
    return [*matches, *(told(each) for each in answers), *(declines(each) for each in answers)]


def test_results_of_an_earlier_run_are_those_that_are_computed(tmp_path: Path) -> None:
    answers = [text for each in TEXTS for text in each]
    computed = look(answers)
    close = open_memory(tmp_path)
    assert look(answers) == computed
    close()
    assert look(answers) == computed, "nothing is open"
    open_memory(tmp_path)
    assert look(answers) == computed
    assert len(memory._open[0]._used) > len(TEXTS), "they come from the file"


class Counted:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.of = remembered(self._of)

    def _of(self, *texts: str) -> int:
        self.calls.append(texts)
        return len(self.calls)


def test_a_result_belongs_to_all_arguments_to_one_function_and_to_one_state_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    close = open_memory(tmp_path)
    assert [counted.of("a"), counted.of("b"), counted.of("a", "b"), counted.of("ab")] == [1, 2, 3, 4]
    close()
    open_memory(tmp_path)
    assert counted.of("a", "b") == 3
    assert remembered(str.upper)("a") == "A"
    with without_memory():
        assert counted.of("a") == 5
    assert counted.of("a") == 1
    monkeypatch.setattr(memory, "package_digest", lambda: "another")
    open_memory(tmp_path)
    assert counted.of("a") == 6


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    counted = Counted()
    close = open_memory(tmp_path)
    counted.of("a")
    close()
    (file,) = tmp_path.rglob("*.kept")
    file.write_bytes(file.read_bytes()[:-3])
    open_memory(tmp_path)
    assert counted.of("a") == 2


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("no folder")
    counted = Counted()
    close = open_memory(tmp_path)
    assert counted.of("a") == 1
    close()
