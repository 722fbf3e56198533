"""Lines of ``queries.jsonl`` of imported questions: ids, gold, labels; turns become conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from rag_harness.authoring.importing.context_places import PlacedGold
from rag_harness.authoring.importing.imported import ImportedQuestion
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.own_lines import OwnLine
from rag_harness.dataset.queries import lines_of
from rag_harness.dataset.question_ids import as_id, id_of_question
from rag_harness.results.storable import storable
from rag_harness.types import NEGATIVE, REVIEWED

WrittenLine = dict[str, Any]
_UNLABELLED = "unlabelled"


class LineWriting:
    """Makes lines, each with an id of its own.

    Args:
        source: the tool, for the label ``imported_from``.
        reviewed: whether somebody has read all questions, ``yes`` or ``no``; "": those that the file does not call
            synthetic.
        notes: takes what becomes of ids.
    """

    def __init__(self, source: str, reviewed: str, notes: Notes) -> None:
        self._source, self._reviewed, self._notes = source, reviewed, notes
        self._taken = set[str]()
        self._bodies = set[tuple[str, bytes]]()
        self._numbers: dict[str, int] = {}

    def line_of(self, question: ImportedQuestion, gold: PlacedGold) -> WrittenLine | None:
        """Return the line of a question. None where it stood there already, or cannot be read, which is noted."""
        content, metadata = _content(question, gold), self._metadata(question, gold)
        key = "conversation" if question.before else "query_id"
        name = self._name(question)
        if question.before:
            turns = [{"query_type": _UNLABELLED, **_said(each.query, each.reply)} for each in question.before]
            made = {"turns": [*turns, {**content, **_said("", question.reply)}], "metadata": metadata}
        else:
            made = {**content, "metadata": metadata}
        body = json.dumps(made, ensure_ascii=False, sort_keys=True)
        free = self._free(name, body, question.where)
        line = storable({key: free, **made}) if free else None
        return line if line and self._is_read(line, question.where) else None

    def kept(self, own: OwnLine) -> WrittenLine | None:
        """Return a line that is ours as it stands; only its id, and who has read it, may become another."""
        made = {**own.values, "metadata": self._read_by(own.values.get("metadata") or {})}
        for each in own.problems:
            self._notes.lose(f"a record that makes no line: {each}", own.where)
        if own.problems:
            return None
        name = f"{made['conversation']}#{made['turn']}" if own.is_turn else str(made.pop(own.key))
        if own.is_turn and name in self._taken:
            self._notes.lose("a turn that is there already", own.where)
            return None
        free = self._free(name, json.dumps(made, ensure_ascii=False, sort_keys=True), own.where)
        line: WrittenLine | None = storable(made if own.is_turn else {own.key: free, **made}) if free else None
        return line if line and self._is_read(line, own.where) else None

    def _read_by(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return labels with what ``reviewed`` says in place of what they said."""
        if not self._reviewed or not isinstance(metadata, Mapping):
            return metadata
        others = {name: value for name, value in metadata.items() if name != REVIEWED}
        return {**others, REVIEWED: "no"} if self._reviewed == "no" else others

    def _name(self, question: ImportedQuestion) -> str:
        said = question.conversation or question.name if question.before else question.name
        if name := as_id(said):
            return name
        texts = [text for each in question.before for text in (each.query, each.reply)]
        return id_of_question("\n".join([*texts, question.query]), "conv" if texts else "q")

    def _free(self, name: str, body: str, where: str) -> str:
        """Return an id that no other line has; "" where a line of this name says the same."""
        digest = blake2b(body.encode(errors="surrogatepass"), digest_size=16).digest()
        if (name, digest) in self._bodies:
            self._notes.tell("a record that is there already, word for word", where)
            return ""
        # The search goes on behind the last number: a file may have one id on every line.
        number, free = self._numbers.get(name, 1), name
        while free in self._taken:
            number += 1
            free = f"{name}-{number}"
        if free != name:
            self._notes.tell("an id that is there already: a number is put behind it", where)
        self._numbers[name] = number
        self._bodies |= {(name, digest), (free, digest)}
        self._taken.add(free)
        return free

    def _metadata(self, question: ImportedQuestion, gold: PlacedGold) -> WrittenLine:
        drafted = self._reviewed == "no" or (question.synthetic and self._reviewed != "yes")
        source_id = (question.conversation if question.before else "") or question.name
        # A line has one name: a conversation's, or a question's. The other of the two is a label.
        unused = {"query_id": question.name} if question.before and question.conversation else {}
        if not question.before:
            unused = {"conversation": question.conversation}
        own: WrittenLine = {
            "imported_from": self._source,
            **{name: each for name, each in unused.items() if each},
            **({"source_id": source_id} if source_id != as_id(source_id) else {}),
            **({"not_placed": gold.lost} if gold.lost else {}),
            **({REVIEWED: "no"} if drafted else {}),
        }
        said = {(name if name not in own else f"source.{name}"): each for name, each in question.metadata.items()}
        return {**said, **own}

    def _is_read(self, line: Mapping[str, Any], where: str) -> bool:
        _, problems = lines_of(json.dumps(line))
        for each in problems:
            self._notes.lose(f"a record that makes no line: {each}", where)
        return not problems


def _content(question: ImportedQuestion, gold: PlacedGold) -> WrittenLine:
    """Return the fields of a question or a turn, without empty ones."""
    evidence = [{"filename": each.filename, "quote": each.quote} for each in gold.evidence]
    found = {
        "query_type": _type(question, gold),
        "query": question.query,
        "inputs": dict(question.inputs),
        "answerable": question.answerable,
        "ground_truth": question.ground_truth,
        "context_reference": gold.pages,
        "evidence": evidence,
        "expect": [dict(each) for each in question.expect],
        "tools": [dict(each) for each in question.tools],
    }
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def _type(question: ImportedQuestion, gold: PlacedGold) -> str:
    """Return the type that the file says, else the one that the gold tells."""
    if question.query_type:
        return question.query_type
    if question.answerable is False:
        return NEGATIVE
    if len(gold.pages) > 1:
        return "multi_hop"
    return "direct" if gold.pages or question.ground_truth or question.expect or question.tools else _UNLABELLED


def _said(query: str, reply: str) -> WrittenLine:
    return {name: text for name, text in (("query", query), ("reply", reply)) if text}
