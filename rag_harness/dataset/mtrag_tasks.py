"""Reader of MTRAG's generation tasks: a question, what was said before it, its reference passages and its reply.

{"task_id": "18ef<::>7", "turn": "7", "Collection": "fiqa", "answerability": ["PARTIAL"],
 "input": [{"speaker": "user", "text": "…"}, {"speaker": "agent", "text": "…"}, …],
 "contexts": [{"document_id": "162428-0-349", "text": "…"}], "targets": [{"speaker": "agent", "text": "…"}]}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.dataset.beir_files import objects, refuse
from rag_harness.dataset.mtrag_files import there
from rag_harness.dataset.mtrag_turns import TYPES, GenerationTask, turn_of
from rag_harness.errors import DataError
from rag_harness.types import Document

_ROLES = {"user": "user", "agent": "assistant"}


def read_tasks(file: Path, domain: str = "") -> list[GenerationTask]:
    """Read the tasks of a domain, or all. The turns of a conversation stand together, in their order.

    Raises:
        DataError: the file is missing, a task is malformed, or the domain has none; lists the first 20 problems.
    """
    problems: list[str] = []
    found: dict[str, GenerationTask] = {}
    for where, row in objects(there(file), problems):
        task = _task(row)
        if isinstance(task, str):
            problems.append(f"{where}: {task}")
        elif task.turn.case_id in found:
            problems.append(f"{where}: task {row['task_id']!r} stands already on a line above.")
        elif domain in task.collection:
            found[task.turn.case_id] = task
    refuse(problems)
    if not found:
        raise DataError(f"{file} holds no task{f' of {domain}' if domain else ''}.")
    first = {each.turn.conversation: place for place, each in reversed(list(enumerate(found.values())))}
    return sorted(found.values(), key=lambda each: (first[each.turn.conversation], each.turn.number))


def passages_of(tasks: Sequence[GenerationTask]) -> list[Document]:
    """Return the passages of all tasks, each once.

    Raises:
        DataError: two passages have one id.
    """
    found: dict[str, Document] = {}
    problems = []
    for task in tasks:
        for each in task.passages:
            if found.setdefault(each.doc_id, each).text != each.text:
                problems.append(f"Task {task.turn.case_id}: passage {each.doc_id!r} has another text in a task before.")
    refuse(problems)
    return [*found.values()]


def passage_of_row(row: Mapping[str, Any], name: object) -> Document | str:
    """Return a passage, or what is wrong with it. Its text begins with its title, so that is not put before it."""
    text, title, url = (_given(row.get(key)) for key in ("text", "title", "url"))
    if not isinstance(name, str) or not name:
        return "a passage without an id. Judgements name passages by it"
    if not isinstance(text, str) or not isinstance(title, str | None):
        return f"passage {name!r} needs a string text; its title is a string"
    return Document(name, text.strip(), title or name, {"url": url} if url and isinstance(url, str) else {})


def _given(value: object) -> object:
    """Return a value; None for NaN, which pandas writes for what is missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _task(row: Mapping[str, Any]) -> GenerationTask | str:
    """Return the task, or what is wrong with it."""
    turn, kind = turn_of(row.get("task_id")), _first(row.get("answerability", row.get("Answerability")))
    if turn is None:
        return f"task_id is {row.get('task_id')!r:.80}, expected CONVERSATION<::>TURN."
    if kind not in TYPES:
        return f"answerability is {row.get('answerability')!r:.80}, expected one of {', '.join(TYPES)}."
    said = _said(row.get("input"))
    if isinstance(said, str):
        return said
    if len(said) != 2 * turn.number - 1 or str(_given(row.get("turn")) or turn.number) != str(turn.number):
        count = (len(said) + 1) // 2
        return f"turn {turn.number} by its task_id, {row.get('turn')!r:.20} by its turn, {count} by its input."
    found = [passage_of_row(each, each.get("document_id")) for each in _objects(_given(row.get("contexts")))]
    wrong = next((each for each in found if isinstance(each, str)), "")
    if wrong:
        return f"contexts: {wrong}."
    reply = next((_given(each.get("text")) for each in _objects(_given(row.get("targets")))), "")
    return GenerationTask(
        turn,
        str(_given(row.get("Collection", row.get("collection"))) or ""),
        TYPES[kind],
        said,
        tuple(each for each in found if isinstance(each, Document)),
        reply if isinstance(reply, str) else "",
        dict(_labels(row, kind)),
    )


def _said(value: object) -> tuple[str, ...] | str:
    """Return what user and agent have said in turn, or what is wrong with that."""
    texts = [(_ROLES.get(str(each.get("speaker"))), _given(each.get("text"))) for each in _objects(_given(value))]
    wanted = ["user", "assistant"] * len(texts)
    for place, ((role, text), expected) in enumerate(zip(texts, wanted, strict=False), 1):
        if role != expected:
            return f"input: message {place} is not the {'user' if expected == 'user' else 'agent'}'s: turns alternate."
        if not isinstance(text, str) or not text.strip():
            return f"input: message {place} has no text."
    if not len(texts) % 2:
        return "input: a list of messages that ends with the user's question was expected."
    return tuple(str(text).strip() for _, text in texts)


def _labels(row: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    yield "answerability", kind.lower()
    for label, key in (("question_kind", "Question Type"), ("multi_turn", "Multi-Turn")):
        value = _given(row.get(key))
        named = value if isinstance(value, list) else [value]
        said = ", ".join(str(each) for each in named if each and each != "N/A")
        if said:
            yield label, said
    yield "collection", str(_given(row.get("Collection", row.get("collection"))) or "")


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
