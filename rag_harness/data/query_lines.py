"""Lines of ``queries.jsonl``: rows of tables, and conversations whose turns become cases of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.core.errors import DataError
from rag_harness.core.files import text_digest
from rag_harness.core.json_text import read_json
from rag_harness.data.record_files import records_in
from rag_harness.data.source_records import field_meant, plain_text, said_flag, texts_of, value_at

# Ids of questions whose file has none: digests, so that the same question has the same id in every file.

_LONGEST = 100
_OTHERS = re.compile(r"[^A-Za-z0-9_.\-]+")


def id_of_question(text: str, kind: str = "q") -> str:
    """Return an id made of a question's text; white space does not count. ``kind`` is its prefix."""
    return f"{kind}_{text_digest(' '.join(text.split()))[:12]}"


def as_id(name: str) -> str:
    """Return a name in the letters that an id may have; empty where none is left."""
    return _OTHERS.sub("-", name.strip())[:_LONGEST].strip("-")


# Columns are known by their names, those of other tools among them (``user_input`` is ``query``), or by ``--rag-map``.
# Any other column is a label. A question without an id has a digest of its text.

_TEXTS = ("query_id", "query", "query_type", "ground_truth", "conversation", "reply", "standalone")
_JSON = ("expect", "tools", "qrels", "turns", "scenario")
_OBJECTS = ("metadata", "inputs")
_BELOW = ("metadata.", "inputs.")


class QuestionRow(NamedTuple):
    """A row as a line of ``queries.jsonl``, with the number of its line or row and the faults of its cells."""

    number: int
    text: str
    problems: list[str]


def rows_of_table(file: Path, mapped: Mapping[str, str]) -> Iterator[QuestionRow]:
    """Yield the rows of a table of questions.

    Args:
        file: CSV, TSV or Parquet.
        mapped: the column or path of each field that is not known by its column's name.

    Raises:
        DataError: the file cannot be read, no column is the question, two are one field, or a named one is not there.
    """
    columns: dict[str, str] | None = None
    for record in records_in(file):
        if columns is None:
            columns = columns_of(str(file), list(record.values), mapped)
        line, problems = line_of_cells(record.values, columns)
        yield QuestionRow(record.number, json.dumps(line, ensure_ascii=False, default=str), problems)


def columns_of(where: str, names: list[str], mapped: Mapping[str, str]) -> dict[str, str]:
    """Return the column or path of each field. Labels and inputs are ``metadata.NAME`` and ``inputs.NAME``.

    Args:
        where: the file or frame, for messages.
        names: of its columns.
        mapped: the column or path of each field that is not known by its column's name.

    Raises:
        DataError: no column is the question, two are one field, or a named one is not there.
    """
    listed = ", ".join(names)
    for field, path in mapped.items():
        if path not in names and path.partition(".")[0] not in names:
            raise DataError(f"{where}: rag_map says {field}={path}, and there is no such column. There are: {listed}.")
    found, taken = dict(mapped), {*mapped.values(), *(path.partition(".")[0] for path in mapped.values())}
    for name in names:
        if name in taken:
            continue
        below = name if name.startswith(_BELOW) else ""
        field = below or field_meant(name) or f"metadata.{name}"
        if field in found and field in mapped:
            field = f"metadata.{name}"
        if field in found:
            raise DataError(
                f"{where}: columns {found[field]!r} and {name!r} are both {field}. Say which one counts: "
                f"--rag-map {field}={found[field]}"
            )
        found[field] = name
    if "query" not in found and not {"turns", "scenario"} & found.keys():
        raise DataError(f"{where}: no column is the question: {listed}. Say which: --rag-map question={names[0]}")
    return found


def line_of_cells(values: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the cells of a row as a line of ``queries.jsonl``, and their faults.

    Args:
        values: the cells by column.
        columns: the column or path of each field.
    """
    problems: list[str] = []
    line: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for field, path in columns.items():
        value = value_at(values, path)
        if value in (None, ""):
            continue
        above, _, name = field.partition(".")
        try:
            if name:
                below.setdefault(above, {})[name] = value
            elif field in _OBJECTS:
                line[field] = _named_values(field, path, value)
            else:
                line[field] = _value(field, value)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    # What a column says of one row counts more than an object that says it, too.
    line |= {above: {**line.get(above, {}), **found} for above, found in below.items()}
    _quote(line, problems)
    if "query" in line and not {"query_id", "conversation"} & line.keys():
        line["query_id"] = id_of_question(str(line["query"]))
    return line, problems


def _value(field: str, value: Any) -> Any:
    """Return the value of a cell as its field has it.

    Raises:
        ValueError: the value has another form. The message has the expected one.
    """
    if field in _TEXTS:
        return _one_text(value)
    if field == "context_reference":
        return texts_of(value, "|")
    if field == "evidence":
        return _evidence(value)
    if field == "answerable":
        if (flag := said_flag(value)) is None:
            raise ValueError(f"yes or no was expected, found {plain_text(value)[:40]!r}")
        return flag
    if field == "turn":
        return int(plain_text(value).removesuffix(".0"))
    return _of_json(value) if field in _JSON else value


def _named_values(field: str, path: str, value: Any) -> dict[str, Any]:
    """Return the object that a cell holds. Labels that are none are a label of the column's name.

    Raises:
        ValueError: it is broken JSON, or inputs without names.
    """
    is_plain = isinstance(value, str) and value.lstrip()[:1] not in ("{", "[")
    found = value if is_plain else _of_json(value)
    if isinstance(found, dict):
        return found
    if field == "inputs":
        raise ValueError(f"an object was expected, found {found!r:.40}")
    return {path: found}


def _one_text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise ValueError("a text was expected, found a list or an object. Name its place: --rag-map FIELD=COLUMN.KEY")
    return plain_text(value)


def _evidence(value: Any) -> list[Any]:
    """Return quotes: texts, or objects with filename and quote."""
    if isinstance(value, str) and value.lstrip()[:1] == "[" and value.lstrip()[1:].lstrip()[:1] == "{":
        value = _of_json(value)
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return value
    return texts_of(value, "|")


def _of_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None


def _quote(line: dict[str, Any], problems: list[str]) -> None:
    """Give each quote that is a text its document: the only one of the row."""
    quotes = line.get("evidence", [])
    if not any(isinstance(each, str) for each in quotes):
        return
    pages = line.get("context_reference", [])
    if len(pages) != 1:
        problems.append(
            f"evidence: quotes of {len(pages)} documents. Name the one document of the row, write "
            '[{"filename": …, "quote": …}], or have them looked for: rag-harness queries import FILE --kb DIR'
        )
        del line["evidence"]
        return
    line["evidence"] = [{"filename": pages[0], "quote": each} if isinstance(each, str) else each for each in quotes]


#     {"conversation": "conv_007", "turns": [{"query": "How long can I return a lamp?", "ground_truth": "45 days"}, …]}
#     {"conversation": "conv_008", "turn": 1, "query": "Do you ship to Norway?", "ground_truth": "No."}
#
# The case of turn 3 is called ``conv_007#3``. The earlier messages are in its query's inputs as ``history``: the user's
# questions, each with the reference reply.

MOST_TURNS = 100
"""The most turns of a conversation."""
DECLINES = "I don't know."
"""The reference reply to a question that the documents do not answer, where the turn states none."""
_OF_CONVERSATION = ("conversation", "turns", "metadata")


def turn_id(conversation: str, turn: int) -> str:
    """Return the id of the case of a turn, from 1."""
    return f"{conversation}#{turn}"


def turns_of_line(raw: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the turns of a line that has a whole conversation, as lines of single turns, and the faults of the line.

    The metadata of the conversation are those of each turn that does not state its own.
    """
    unknown = [key for key in raw if key not in _OF_CONVERSATION]
    if unknown:
        return [], [f"{unknown[0]}: a conversation has {', '.join(_OF_CONVERSATION)}; put the rest into its turns"]
    turns, shared = raw["turns"], raw.get("metadata", {})
    if not isinstance(turns, list) or not turns or not all(isinstance(each, dict) for each in turns):
        return [], ['turns: a list of objects was expected, e.g. [{"query": "How long?"}]']
    if not isinstance(shared, dict):
        return [], ["metadata: an object was expected"]
    said = next((key for each in turns for key in ("conversation", "turn", "turns") if key in each), "")
    if said:
        return [], [f"turns: {said!r} is in a turn. Its place in the list says which one it is"]
    if len(turns) > MOST_TURNS:
        return [], [f"turns: {len(turns):,}; a conversation has {MOST_TURNS} at most"]
    conversation = raw.get("conversation")
    return [
        {**each, "conversation": conversation, "turn": n, "metadata": {**shared, **_metadata(each)}}
        for n, each in enumerate(turns, 1)
    ], []


def rows_of_line(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions of a line as rows with ids: the turns of a whole conversation, or the row itself.

    A scenario is the row of its first turn. Its later questions are known when it is simulated.

    The line can be read: ``turns_of_line`` finds nothing wrong with it.
    """
    if "turns" in raw:
        turns, _ = turns_of_line(raw)
        return [{"query_id": turn_id(str(raw.get("conversation")), turn["turn"]), **turn} for turn in turns]
    if "conversation" in raw:
        return [{"query_id": turn_id(str(raw["conversation"]), raw.get("turn", 1)), **raw}]
    return [dict(raw)]


def with_turns(raw: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a line that holds a whole conversation, with the turns of these rows: the reverse of ``rows_of_line``.

    What all of them still share of its metadata stays the conversation's.
    """
    whole = raw.get("metadata", {})
    shared = {key: value for key, value in whole.items() if all(key in row.get("metadata", {}) for row in rows)}
    turns = []
    for row in rows:
        own = {key: value for key, value in row.get("metadata", {}).items() if shared.get(key, _NONE) != value}
        kept = {key: value for key, value in row.items() if key not in (*_OF_TURN, "metadata")}
        turns.append({**kept, **({"metadata": own} if own else {})})
    return {**raw, "turns": turns, **({"metadata": shared} if "metadata" in raw else {})}


_OF_TURN, _NONE = ("query_id", "conversation", "turn"), object()


def _metadata(turn: Mapping[str, Any]) -> Mapping[str, Any]:
    found = turn.get("metadata", {})
    return found if isinstance(found, dict) else {"metadata": found}


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn in its file: line, conversation, number, question, and reference reply."""

    line: int
    conversation: str
    turn: int
    query: str
    reply: str


def order_problems(turns: Sequence[SaidTurn]) -> list[tuple[int, str]]:
    """Return the faults in the order of the turns of all conversations: line and sentence."""
    problems: list[tuple[int, str]] = []
    last: dict[str, SaidTurn] = {}
    begun: dict[str, int] = {}
    previous = ""
    for each in turns:
        before = last.get(each.conversation)
        if each.turn == MOST_TURNS + 1:
            problems.append((each.line, f"turn {each.turn} of {each.conversation!r}: {_MOST}"))
        wanted = before.turn + 1 if before else 1
        # Of a line that holds a whole conversation, all turns stand on it.
        is_again = before is not None and each.turn == 1 < before.turn and begun[each.conversation] == before.line
        if before and (previous != each.conversation or is_again):
            problems.append(
                (each.line, f"conversation {each.conversation!r} stands already on line {before.line}: {_TOGETHER}")
            )
        elif each.turn != wanted:
            problems.append((each.line, _out_of_order(each, wanted, before)))
        last[each.conversation] = each
        begun.setdefault(each.conversation, each.line)
        previous = each.conversation
    return problems


_MOST = f"a conversation has {MOST_TURNS} turns at most. Cut it in two."
_TOGETHER = "its turns stand together, and no two conversations have one id."


def _out_of_order(each: SaidTurn, wanted: int, before: SaidTurn | None) -> str:
    name = f"turn {each.turn} of {each.conversation!r}"
    if before and each.turn == before.turn:
        return f"{name} is there twice: already on line {before.line}."
    if each.turn > wanted:
        return f"{name} comes without turn {wanted}. Turns are numbered from 1, and are in their order."
    return f"{name} comes after turn {wanted - 1}. Turns are numbered from 1, and are in their order."


def histories(turns: Sequence[SaidTurn]) -> list[list[dict[str, str]]]:
    """Return for each turn the earlier messages, with ``role`` and ``content``, the oldest first."""
    said: dict[str, list[dict[str, str]]] = {}
    found = []
    for each in turns:
        before = said.setdefault(each.conversation, [])
        found.append([*before])
        before += [{"role": "user", "content": each.query}, {"role": "assistant", "content": each.reply}]
    return found
