"""Other words for a question, and what is not taken for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag_harness.core.errors import RecordingMissError
from rag_harness.core.lazy import Lazy
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.diagnosis.perturbations import Changed, Paraphraser, checked_paraphrase
from rag_harness.runs.engine import InlineLoop


class Writer:
    model = "made/up"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        self.asked.append(messages[-1].content)
        if "fail" in messages[-1].content:
            raise RecordingMissError("no recording of it")
        return Completion(f'"Say, {messages[-1].content}"', self.model, Usage(), total_ms=0.0)


def test_each_question_is_asked_once() -> None:
    writer = Writer()

    async def keep(_: Any) -> None:
        return None

    loop: Any = InlineLoop(keep)
    found = Paraphraser(writer, Lazy(lambda: loop))(["why 5?", "fail", "why 5?"])
    loop.close()
    assert found == {"why 5?": Changed("Say, why 5?"), "fail": Changed("", "no other words: no recording of it")}
    assert writer.asked == ["why 5?", "fail"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("How many days: 5?", "the writer changed a figure"),
        ("", "the writer found no other words"),
        (" why  not? ", "the writer found no other words"),
        ("For what reason not?", ""),
    ],
)
def test_what_is_no_other_wording(written: str, why: str) -> None:
    assert checked_paraphrase("why not?", written).why == why
