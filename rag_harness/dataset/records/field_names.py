"""What other tools call the fields of a question, and which of their fields is which of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from rag_harness.dataset.records.source_record import given
from rag_harness.errors import SettingsError, unknown
from rag_harness.files.json_text import read_json

MEANINGS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "query_id": ("query_id", "id", "question_id", "qid", "_id", "task_id", "example_id", "item_id"),
        "query": ("query", "question", "user_input", "input", "prompt", "query_text", "question_text", "user_query"),
        "ground_truth": (
            "ground_truth", "reference", "expected_output", "expected_answer", "expected_response", "reference_answer",
            "reference_response", "gt_answer", "generation_gt", "ground_truths", "ideal", "ideal_answer", "gold_answer",
            "gold_answers", "golden_answer", "golden_answers", "correct_answer", "correct_answers", "answer",
            "answers.text", "answers", "expected", "gold", "target", "targets", "reference_output",
            "reference_outputs", "output.response", "output.answer",
        ),
        "evidence": ("evidence", "reference_contexts", "contexts", "context", "reference_context", "passages"),
        "context_reference": (
            "context_reference", "documents", "document", "doc_id", "doc_ids", "source_file", "sources", "source",
            "filename", "reference_context_ids", "expected_document_id", "relevant_documents",
            "retrieval_gt",
        ),
        "query_type": ("query_type", "question_type", "type", "kind"),
        "answerable": ("answerable", "is_answerable", "answerability"),
        "expect": ("expect", "assert", "asserts", "assertions", "expectations"),
        "conversation": ("conversation", "conversation_id", "session_id", "thread_id"),
        "turn": ("turn", "turn_id", "turn_number"),
        "turns": ("turns", "messages", "dialogue", "dialog"),
        "metadata": ("metadata", "meta", "additional_metadata", "labels", "tags"),
        "inputs": ("inputs", "variables", "vars"),
        "reply": ("reply",),
        "qrels": ("qrels", "relevance"),
        "standalone": ("standalone", "rewritten_query", "standalone_question"),
        "scenario": ("scenario",),
        "tools": ("tools", "expected_tools", "reference_tool_calls"),
    }
)  # fmt: skip
"""Names of each field of ours. The first is ours; an earlier name counts more. A dot leads into an object."""
_BELOW = ("metadata", "inputs")
"""Fields with names of their own: ``metadata.difficulty``."""


def plain_name(name: str) -> str:
    """Return a name as it is compared: ``expectedOutput`` and ``Expected output`` are ``expected_output``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(1)
def _by_meaning() -> Mapping[str, str]:
    return {plain_name(name): ours for ours, names in MEANINGS.items() for name in names}


def field_meant(name: str) -> str:
    """Return our field that another tool's name means; empty where it means none."""
    return _by_meaning().get(plain_name(name), "")


def nearest_field(name: str, known: Iterable[str]) -> str:
    """Return which of ``known`` a name probably is: by its meaning, else by its spelling; empty where it is none."""
    fields = [*known]
    meant = field_meant(name)
    return meant if meant in fields else next(iter(get_close_matches(name, fields, n=1)), "")


def read_map(texts: Iterable[str], where: str, known: Iterable[str] = MEANINGS) -> dict[str, str]:
    """Return which column or path is which of our fields, of texts such as ``question=user_input``.

    Args:
        texts: each may hold several, with commas between. The name on the left may be another tool's, too.
        where: the option, for messages.
        known: our fields that may be named.

    Raises:
        SettingsError: a text has another form, names no field, or a field is named twice.
    """
    found: dict[str, str] = {}
    for text in (part.strip() for each in texts for part in each.split(",") if part.strip()):
        name, equals, path = (part.strip() for part in text.partition("="))
        if not equals or not name or not path:
            raise SettingsError(f"{where} {text!r}: FIELD=COLUMN was expected, e.g. question=user_input.")
        ours = _ours(name, [*known], f"{where} {text!r}")
        if ours in found:
            raise SettingsError(f"{where}: {ours} is named twice, as {found[ours]!r} and as {path!r}. Leave one out.")
        found[ours] = path
    return found


def _ours(name: str, known: Sequence[str], where: str) -> str:
    above, dot, below = name.partition(".")
    if dot and above in _BELOW and below:
        return name
    meant = name if name in known else field_meant(name)
    if meant not in known or meant in _BELOW:
        raise SettingsError(f"{where}: {unknown('field', name, known)} For a label: metadata.NAME=COLUMN.")
    return meant


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or of a path with dots into objects; None where there is none.

    A text on the way that holds JSON is looked into: exports as CSV have objects in their cells.
    """
    if path in values:
        return given(values[path])
    value: Any = values
    for step in path.split("."):
        if isinstance(value, str):
            value = _object_in(value)
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and step.isascii() and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return given(value)


def _object_in(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None
