"""Paraphrases questions with a chat model of role ``writer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import cast

from rag_harness.derived.metamorphic.question_changes import Changed
from rag_harness.engine.jobs import Engine
from rag_harness.errors import RagHarnessError
from rag_harness.protocols import ChatModel
from rag_harness.types import Message
from rag_harness.words.terms import written_numbers
from rag_harness.work.once import Once

PROMPT = (
    "Write the question of the user in other words. Keep its meaning, its language, and every name, code, number and "
    "date as it is. Add nothing and answer nothing. Say only the new question."
)


class Paraphraser:
    """Asks the model for all questions at once.

    Args:
        chat: the model.
        engine: made on first use.
    """

    def __init__(self, chat: ChatModel, engine: Once[Engine]) -> None:
        self._chat, self._engine = chat, engine

    def __call__(self, questions: Sequence[str]) -> Mapping[str, Changed]:
        """Return a paraphrase of each question, or why there is none."""
        different = list(dict.fromkeys(questions))
        for question in different:
            self._submit(question)
        return {question: self._result(question) for question in different}

    def _submit(self, question: str) -> None:
        async def job() -> _Written:
            try:
                said = await self._chat.complete([Message("system", PROMPT), Message("user", question)])
            except RagHarnessError as error:
                return _Written(why=str(error))
            return _Written(said.text)

        self._engine.get().submit(("paraphrase", question), job)

    def _result(self, question: str) -> Changed:
        key = "paraphrase", question
        try:
            written = cast("_Written", self._engine.get().result(key))
            self._engine.get().forget(key)
        except (CancelledError, RagHarnessError) as error:
            return Changed("", f"no other words: {str(error) or 'the run was stopped'}")
        return (
            Changed("", f"no other words: {written.why}") if written.why else checked_paraphrase(question, written.text)
        )


class _Written:
    """The model's result. It is not journalled, for a recording keeps it."""

    new: tuple[bytes, ...] = ()

    def __init__(self, text: str = "", why: str = "") -> None:
        self.text, self.why = text, why


def checked_paraphrase(question: str, written: str) -> Changed:
    """Return the paraphrase of a model, unless it is the same text or has other figures."""
    text = " ".join(written.split()).strip("\"'“”")
    if not text or text == " ".join(question.split()):
        return Changed("", "the writer found no other words")
    if written_numbers(text) != written_numbers(question):
        return Changed("", "the writer changed a figure")
    return Changed(text)
