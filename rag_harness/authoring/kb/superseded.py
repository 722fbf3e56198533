"""Finds queries about facts that a superseded page states differently: metadata for ``stale_answer``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.authoring.kb.plan import PLAN_FILE, Conflict, Plan, read_plan
from rag_harness.dataset.conversations import rows_of_line, turns_of_line, with_turns
from rag_harness.dataset.queries import refuse_other_form
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json
from rag_harness.words.comparison import quotable


class Marked(NamedTuple):
    """The lines of a query file, as JSON; how many queries have superseded statements, and how many there are."""

    lines: tuple[str, ...]
    marked: int
    queries: int


def mark_superseded(folder: Path, queries: Path | None = None) -> Marked:
    """Return the queries, with ``superseded`` and ``version_pair`` in the metadata of affected ones.

    A query is affected if one of its quotes from the current page contains the current statement of a conflict, or is
    part of it; white space and bold do not matter. Old values of those two keys are replaced; everything else is kept.

    Raises:
        DataError: there is no plan with version pairs, or a line is no query; the message says what to do.
    """
    facts = list(_facts(_plan(folder)))
    file = queries or folder / "queries.jsonl"
    marked = [_marked_line(line, facts) for line in _queries(file)]
    lines = tuple(json.dumps(line, ensure_ascii=False) for line, _ in marked)
    found = [is_concerned for _, questions in marked for is_concerned in questions]
    return Marked(lines, sum(found), len(found))


class _Fact(NamedTuple):
    outdated: str
    current: str
    conflict: Conflict


def _plan(folder: Path) -> Plan:
    plan, problems = read_plan(folder / PLAN_FILE)
    if plan is None or not plan.version_pairs:
        why = problems[0].text if problems else "it has no version_pairs"
        raise DataError(f"{folder / PLAN_FILE} names no page that has replaced another: {why}")
    return plan


def _facts(plan: Plan) -> Iterator[_Fact]:
    for pair in plan.version_pairs or ():
        current = plan.page(pair.current)
        for conflict in pair.conflicts:
            yield _Fact(pair.outdated, current.filename if current else pair.current, conflict)


def _queries(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Name the queries with --queries.") from error
    refuse_other_form(file, text)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _query(line, f"{file}:{number}")


def _query(line: str, where: str) -> dict[str, Any]:
    try:
        query = read_json(line)
    except ValueError as error:
        raise DataError(f"{where}: no JSON: {error}. Mend the line.") from error
    if not isinstance(query, dict) or not isinstance(query.get("metadata", {}), dict):
        raise DataError(f"{where}: no query: an object is expected, and one in its metadata. Mend the line.")
    if "turns" in query and (wrong := turns_of_line(query)[1]):
        raise DataError(f"{where}: no conversation: {wrong[0]}. Mend the line.")
    return query


def _marked_line(line: dict[str, Any], facts: list[_Fact]) -> tuple[dict[str, Any], list[bool]]:
    """Return a line with its question, or the turns of its conversation, marked; and which of them are concerned."""
    if "turns" not in line:
        query, is_concerned = _marked(line, facts)
        return query, [is_concerned]
    turns = [_marked(turn, facts) for turn in rows_of_line(line)]
    return with_turns(line, [turn for turn, _ in turns]), [is_concerned for _, is_concerned in turns]


def _marked(query: dict[str, Any], facts: list[_Fact]) -> tuple[dict[str, Any], bool]:
    concerned = [fact for fact in facts if any(_carries(quote, fact) for quote in query.get("evidence", ()))]
    kept = {key: value for key, value in query.get("metadata", {}).items() if key not in ("superseded", "version_pair")}
    if not concerned:
        return ({**query, "metadata": kept} if "metadata" in query else query), False
    statements = ("outdated_statement", "current_statement")
    superseded = [{name: getattr(fact.conflict, name) for name in statements} for fact in concerned]
    metadata = {**kept, "version_pair": concerned[0].outdated, "superseded": superseded}
    return {**query, "metadata": metadata}, True


def _carries(quote: Mapping[str, Any], fact: _Fact) -> bool:
    if quote.get("filename") != fact.current:
        return False
    said, stated = quotable(str(quote.get("quote", ""))), quotable(fact.conflict.current_statement)
    return bool(said) and (stated in said or said in stated)
