"""Questions from ``queries.jsonl`` or a table: validated cases, types, placeholders and the JSON Schema of a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from rag_harness.core.errors import DataError
from rag_harness.core.files import meant_beside
from rag_harness.core.json_text import (
    Schema,
    closed,
    document,
    filled_text,
    list_schema,
    one_of,
    read_json,
    text_schema,
)
from rag_harness.core.text.comparison import composed
from rag_harness.core.types import NEGATIVE, PLACEHOLDER, REVIEWED, Case, Evidence, Metadata, Query
from rag_harness.data.documents import Pages, check_folder
from rag_harness.data.query_lines import (
    DECLINES,
    MOST_TURNS,
    QuestionRow,
    SaidTurn,
    histories,
    order_problems,
    rows_of_table,
    turn_id,
    turns_of_line,
)
from rag_harness.data.record_files import is_table
from rag_harness.data.source_records import field_meant, nearest_field
from rag_harness.records.cases import (
    BESIDE_SCENARIO,
    LONGEST_SCENARIO_TEXT,
    MOST_PLAYED,
    MOST_TOOLS,
    tools_of,
    turns_of_scenario,
)
from rag_harness.records.expectations import expectations_of, expectations_schema

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


KNOWN_TYPES = ("direct", "multi_hop", "comparison", NEGATIVE, "unlabelled")
"""The types that checks, measures and drafts of this package know. Any other type is a slice of the user's own."""

_UNANSWERABLE = (NEGATIVE, "unanswerable")
_NEAR = 0.8
"""Similarity from which a name is a misspelling: ``direkt`` has 0.83 with ``direct``, ``multi_doc`` 0.78 with
``multi_hop``."""


def types_named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the values of ``rag_query_types``, each of which may hold several, with commas between."""
    return tuple(name for value in values for each in value.split(",") if (name := each.strip()))


@lru_cache(1024)
def type_problem(query_type: str, answerable: bool | None, further: tuple[str, ...] = ()) -> str:
    """Say why a type cannot be meant as it is written; empty if it can.

    A type that is near no known one is a type of the user's own. Its questions count as answerable.

    Args:
        query_type: the type of a question.
        answerable: the value that the question itself states; None if it states none.
        further: types beside the known ones, from ``rag_query_types``.
    """
    known = (*KNOWN_TYPES, *further)
    if query_type not in known and (meant := _meant(query_type, known)):
        return (
            f"query_type {query_type!r} is not known. Did you mean {meant!r}? Known: {', '.join(known)}. "
            f"If it is a type of your own, name it: --rag-query-types={query_type} (ini rag_query_types)."
        )
    if query_type != NEGATIVE and answerable is None and any(word in _plain(query_type) for word in _UNANSWERABLE):
        return (
            f"query_type {query_type!r} says that no page has the answer, but only {NEGATIVE!r} means this by itself. "
            f'Write {NEGATIVE!r}, or add "answerable": false.'
        )
    return ""


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the known type that a name is near; empty where it is near none."""
    plain = {_plain(each): each for each in known}
    if _plain(name) in plain:
        return plain[_plain(name)]
    # A known type with something in front or behind is made on purpose: indirect, negative_hard. "s" is a plural.
    if any(each in _plain(name) and _plain(name) != f"{each}s" for each in plain):
        return ""
    return next((plain[each] for each in get_close_matches(_plain(name), plain, n=1, cutoff=_NEAR)), "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


# Placeholders for questions that a person has to write. The text marks a placeholder, so editing it is enough.

_BEGINNING = "Replace this by a question"


def placeholder_for(page: str) -> str:
    """Return the placeholder for a question about a page."""
    return f"{_BEGINNING} that {page} answers"


def is_placeholder(query: str) -> bool:
    """Return whether a question is a placeholder."""
    return query.startswith(_BEGINNING)


def labelled(query: str, metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a question. Those of a placeholder get the labels of one."""
    return {**metadata, **({REVIEWED: "no", PLACEHOLDER: "yes"} if is_placeholder(query) else {})}


# Reader of ``queries.jsonl``, or of a table of questions: validated cases. One error reports all problems with file
# and line.

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_PageName = Annotated[_Text, AfterValidator(composed)]
# Ids become test ids and file names: no white space, no brackets, no characters with a meaning in a shell or pytest.
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]+$", max_length=120)]

_TURN_FIELDS = frozenset(("conversation", "turn", "reply", "standalone"))
_FIRST = 2_000
"""Characters of the first line that tell what a file is."""
_SAID = 5
"""Number of problems that are named where every line has one."""


class EvidenceLine(BaseModel):
    """One quote of a query line."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    filename: _PageName
    quote: _Text


_SEVERAL = (
    "a text was expected, found several values. One that is right stands here; where any of several will do, "
    'expect says so: {"contains_any": ["30 days", "one month"]}'
)


class QueryLine(BaseModel):
    """One line of ``queries.jsonl``."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")
    query_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]+(#[0-9]+)?$", max_length=120)]
    conversation: _Id | None = None
    turn: Annotated[int, Field(strict=True, ge=1)] | None = None
    reply: str = ""
    standalone: str = ""
    query_type: _Text = "direct"
    query: _Text
    inputs: dict[str, Any] = Field(default_factory=dict)
    answerable: bool | None = None
    ground_truth: str = ""
    context_reference: tuple[_PageName, ...] = ()
    qrels: dict[_PageName, Annotated[int, Field(strict=True)]] = Field(default_factory=dict)
    evidence: tuple[EvidenceLine, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    expect: Any = ()
    scenario: Any = None
    tools: Any = None

    @model_validator(mode="before")
    @classmethod
    def _named_by_its_turn(cls, line: Any) -> Any:
        """Give a turn of a conversation its id; refuse one that states another, or half of what makes a turn."""
        if not isinstance(line, dict) or not (_TURN_FIELDS & line.keys()):
            if isinstance(line, dict) and "#" in str(line.get("query_id")):
                raise ValueError("query_id: '#' stands only in the ids of turns, which name themselves")
            return line
        conversation, turn = line.get("conversation"), line.get("turn")
        if conversation is None or turn is None:
            lacks = "conversation" if conversation is None else "turn"
            raise ValueError(f"{lacks} is missing: a turn has the conversation's id and a number from 1")
        name = turn_id(str(conversation), turn)
        if line.get("query_id", name) != name:
            raise ValueError(f"query_id is {line['query_id']!r}, and that of this turn is {name!r}. Leave it out")
        return {**line, "query_id": name}

    @field_validator("context_reference", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        """Accept a single file name, null or a list. All three occur in practice."""
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value

    @field_validator("ground_truth", mode="before")
    @classmethod
    def _one_text(cls, value: Any) -> Any:
        """Accept null as an empty text. Refuse any other value that is not a text, with the way to write it."""
        if value is None:
            return ""
        if isinstance(value, (list, dict)):
            raise ValueError(_SEVERAL)
        if isinstance(value, (bool, int, float)):
            given = json.dumps(value)
            written = {"true": "yes", "false": "no"}.get(given, given)
            raise ValueError(f'a text was expected, found {given}. Write it in quotes: "{written}"')
        return value

    @field_validator("metadata", "inputs", "expect", "tools")
    @classmethod
    def _strict_json(cls, value: Any) -> Any:
        """Refuse NaN and Infinity. The parser accepts them, but a row with them would not be JSON."""
        json.dumps(value, allow_nan=False)
        return value

    @property
    def is_answerable(self) -> bool:
        """Whether the documents have the answer."""
        return self.query_type != NEGATIVE if self.answerable is None else self.answerable

    @property
    def reference_reply(self) -> str:
        """The assistant's reply to it, as later turns get it where the reference is their history."""
        return self.reply or self.ground_truth or ("" if self.is_answerable else DECLINES)

    @property
    def asked_alone(self) -> str:
        """The question in words that need no earlier turn; empty for a later turn whose data has none."""
        return self.standalone.strip() or ("" if (self.turn or 1) > 1 else self.query)

    def case(self, history: Sequence[Mapping[str, str]] = ()) -> Case:
        """Return the line as a case. ``history`` has the earlier messages, where it is a turn."""
        evidence = tuple(Evidence(each.filename, each.quote) for each in self.evidence)
        inputs = self.inputs
        if self.conversation is not None:
            place = {"conversation": self.conversation, "turn": self.turn}
            before = history if self.scenario is None else ()
            inputs = {**inputs, **place, **({"history": [*before]} if before else {})}
        return Case(
            Query(self.query_id, self.query, inputs),
            self.query_type,
            self.ground_truth,
            dict.fromkeys(self.context_reference, 1) | self.qrels,
            evidence,
            self.is_answerable,
            labelled(self.query, self.metadata),
            expectations_of(self.expect)[0] if self.expect != () else (),
            self.scenario,
            self.standalone.strip(),
            None if self.tools is None else tools_of(self.tools)[0],
        )


def read_queries(
    file: Path,
    kb_dir: Path | None = None,
    types: Sequence[str] | None = None,
    skipped: list[str] | None = None,
    mapped: Mapping[str, str] = MappingProxyType({}),
) -> list[Case]:
    """Read and validate ``file``; arguments and errors are those of ``read_numbered``."""
    return [case for _, case in read_numbered(file, kb_dir, types, skipped, mapped)]


def read_numbered(
    file: Path,
    kb_dir: Path | None = None,
    types: Sequence[str] | None = None,
    skipped: list[str] | None = None,
    mapped: Mapping[str, str] = MappingProxyType({}),
    *,
    parts: bool = False,
) -> list[tuple[int, Case]]:
    """Read and validate ``file``; return each case with the number of its line.

    Args:
        file: one JSON object a line, or a table: CSV, TSV or Parquet.
        kb_dir: references must be ids of pages in it.
        types: types of questions beside the known ones: a type that is close to one of them is a problem. None: types
            are not looked at.
        skipped: takes a text for each line that cannot be used, and these lines are left out. None: they are an error.
        mapped: the column of each field of a table that is not known by its name.
        parts: references may name a heading or a chunk of a page, too: ``page.md#heading``.

    Raises:
        DataError: the file or the folder is missing or empty, or lines are malformed; lists every problem as
            ``file:line: …``.
    """
    if kb_dir is not None and file.parent == kb_dir and not file.is_file():
        check_folder(kb_dir)  # the folder is what lacks, and not a file in it
    pages = None if kb_dir is None else Pages(kb_dir, parts)
    stops, found = skipped is None, [] if skipped is None else skipped
    kept: list[tuple[int, QueryLine]] = []
    first_line: dict[str, int] = {}
    for number, text, unread in _rows(file, None if stops else found, mapped):
        lines, wrong = lines_of(text)
        wrong = [*unread, *wrong]
        for line in lines:
            if line.query_id in first_line and not line.conversation:
                wrong.append(f"query_id {line.query_id!r} stands already on line {first_line[line.query_id]}.")
            wrong += [*_type_problems(line, types), *_missing_pages(line, pages), *_owed_problems(line)]
        found += [f"{file}:{number}: {each}" for each in (wrong if stops else ["; ".join(wrong)] if wrong else ())]
        for line in lines if stops or not wrong else ():
            first_line.setdefault(line.query_id, number)
        kept += [(number, line) for line in lines if not wrong]
    cases, disorder = _cases(kept, f"{file}:", stops)
    if not (stops and found):  # a line that cannot be read is missing in its conversation
        found += disorder
    if stops and found:
        raise DataError("\n".join(found))
    if not cases:
        empty = f"{file} holds no query: each line is a JSON object with query_id and query, at least."
        raise DataError("\n".join([*found[:_SAID], empty]))
    return cases


def said_turns(lines: Iterable[tuple[int, QueryLine]]) -> list[SaidTurn]:
    """Return the turns among lines, each with its number in the file."""
    return [
        SaidTurn(number, line.conversation, line.turn, line.query, line.reference_reply)
        for number, line in lines
        if line.conversation is not None and line.turn is not None
    ]


def _cases(kept: Sequence[tuple[int, QueryLine]], file: str, stops: bool) -> tuple[list[tuple[int, Case]], list[str]]:
    """Return the cases of lines with their numbers, turns with their history, and the faults of their order.

    A conversation with a turn that cannot be used is left out whole, where such lines do not stop the reading.
    """
    turns = said_turns(kept)
    problems = order_problems(turns)
    conversation_of = {each.line: each.conversation for each in turns}
    broken = {conversation_of[number] for number, _ in problems}
    said_before = dict(zip(((each.conversation, each.turn) for each in turns), histories(turns), strict=True))
    cases = [
        (number, line.case(said_before.get((line.conversation or "", line.turn or 0), ())))
        for number, line in kept
        if stops or line.conversation not in broken
    ]
    return cases, [f"{file}{number}: {said}" for number, said in problems]


def _rows(file: Path, undecoded: list[str] | None, mapped: Mapping[str, str]) -> Iterator[QuestionRow]:
    """Yield each line with the faults of its cells. A row of a table is a line."""
    if is_table(file) and file.is_file():
        yield from rows_of_table(file, mapped)
    else:
        yield from (QuestionRow(number, text, []) for number, text in _lines(file, undecoded))


def _lines(file: Path, undecoded: list[str] | None) -> Sequence[tuple[int, str]]:
    """Return each line with its number. A line that is not UTF-8 is put into ``undecoded``, or is an error."""
    if not file.is_file():
        raise DataError(
            f"No file {file}.{meant_beside(file)} Name your questions with --rag-queries FILE; to have some drafted "
            f"for documents: rag-harness kb queries DIR -o {file.name}"
        )
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        if undecoded is None:
            line = file.read_bytes()[: error.start].count(b"\n") + 1
            raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
        text = _without_undecoded(file, undecoded)
    refuse_other_form(file, text)
    # split("\n") and not splitlines(): U+2028 inside a JSON string does not end a line.
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def refuse_other_form(file: Path, text: str = "") -> None:
    """Check that a file has one JSON object a line, as those have that are written back.

    Raises:
        DataError: it is a table by its name, or its text has another form; says what makes lines of it.
    """
    if other := "is a table" if is_table(file) else _other_form(text):
        make = f"rag-harness queries import {file} -o queries.jsonl"
        raise DataError(f"{file} {other}. It is to have one JSON object a line. To make such lines of it: {make}")


def _other_form(text: str) -> str:
    """Return what a file is that has no JSON object a line: a list, one object over many lines, or a table."""
    first = text.lstrip()[:_FIRST].partition("\n")[0].strip()
    if first.startswith("["):
        return "is a JSON array"
    if first == "{" and isinstance(_object(text), dict):
        return "is one JSON object over several lines"
    cells = {field_meant(cell.strip(' "')) for mark in ",;\t" for cell in first.split(mark)}
    is_header = not first.startswith("{") and "query" in cells
    return "looks like CSV, which is read where its name ends in .csv" if is_header else ""


def _without_undecoded(file: Path, undecoded: list[str]) -> str:
    """Return the text of a file, with lines that are not UTF-8 left empty and put into ``undecoded``."""
    lines = []
    for number, raw in enumerate(file.read_bytes().split(b"\n"), 1):
        try:
            lines.append(raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            undecoded.append(f"{file}:{number}: not UTF-8 at byte {error.start} of the line. Save the file as UTF-8.")
            lines.append("")
    return "\n".join(lines)


def lines_of(text: str) -> tuple[list[QueryLine], list[str]]:
    """Return the question of a line, or the turns of its conversation, and the faults of the line."""
    raw = _object(text) if '"turns"' in text or '"scenario"' in text else None
    if isinstance(raw, dict) and "scenario" in raw:
        return _played(raw)
    if isinstance(raw, dict) and "turns" in raw:
        turns, wrong = turns_of_line(raw)
        read = [_line(partial(QueryLine.model_validate, each)) for each in turns]
        wrong += [f"turn {n}: {said}" for n, (_, problems) in enumerate(read, 1) for said in problems]
        return [line for line, _ in read if line is not None], wrong
    line, wrong = _line(partial(QueryLine.model_validate_json, text))
    return ([] if line is None else [line]), wrong


def _played(raw: Mapping[str, Any]) -> tuple[list[QueryLine], list[str]]:
    """Return the turns that a line with a scenario may reach. A fault of one is a fault of all."""
    turns, wrong = turns_of_scenario(raw)
    for each in turns[:1]:
        wrong += _line(partial(QueryLine.model_validate, each))[1]
    return ([] if wrong else [QueryLine.model_validate(each) for each in turns]), wrong


def _object(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def _line(read: Callable[[], QueryLine]) -> tuple[QueryLine | None, list[str]]:
    try:
        return read(), []
    except ValidationError as error:
        return None, [_said(each) for each in error.errors()]


def _said(problem: ErrorDetails) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        # Of the JSON of one line the parser says "line 1", and the number of the file's line stands before this.
        said = problem["msg"].removeprefix("Value error, ").replace(" at line 1 column ", " at column ")
        return f"{field}: {said}" if field else said
    near = nearest_field(field, [*QueryLine.model_fields, "turns"])
    return f"{field}: no field of a question.{f' Did you mean {near!r}?' if near else ' A label is in metadata.'}"


def _type_problems(line: QueryLine, types: Sequence[str] | None) -> list[str]:
    said = "" if types is None else type_problem(line.query_type, line.answerable, tuple(types))
    return [f"{line.query_id}: {said}"] if said else []


def _owed_problems(line: QueryLine) -> list[str]:
    problems = expectations_of(line.expect)[1] if line.expect != () else []
    of_tools = [] if line.tools is None else tools_of(line.tools)[1]
    return [
        *(f"{line.query_id}: expect: {each}" for each in problems),
        *(f"{line.query_id}: tools: {each}" for each in of_tools),
    ]


def _missing_pages(line: QueryLine, pages: Pages | None) -> list[str]:
    named = {
        "context_reference": line.context_reference,
        "qrels": line.qrels,
        "evidence": [each.filename for each in line.evidence],
    }
    fields: dict[str, str] = {}
    for field, names in named.items() if pages is not None else ():
        fields |= {name: field for name in names if name not in fields}
    return [
        f"{line.query_id}: {pages.no_page_said(fields[name], name)}" for name in fields if pages and name not in pages
    ]


def distribution(cases: Sequence[Case]) -> dict[str, int]:
    """Count the cases of each query type."""
    return dict(Counter(case.query_type for case in cases))


_ABOUT: dict[str, str] = {
    "query_id": "names the question in rows and tests",
    "query": "the question",
    "query_type": "a label: direct, multi_hop, negative, or one of your own",
    "answerable": "whether the documents have the answer; without it, they do unless query_type is negative",
    "ground_truth": "the answer that is wanted",
    "context_reference": "relevant documents, by their paths in the knowledge base",
    "qrels": "documents with their relevance, a whole number; above 0 is relevant",
    "evidence": "quotes that the answer rests on",
    "metadata": "labels, for slices",
    "inputs": "what else the pipeline gets beside the question",
    "conversation": "the id of the conversation that this is a turn of",
    "turn": "its number, from 1",
    "reply": "what the assistant has said to it; later turns see it",
    "standalone": "the turn's question in words that need nothing said before it",
}
_YES_OR_NO = "^(" + "|".join("".join(f"[{a.upper()}{a}]" for a in word) for word in ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n")) + "|0|1)$"  # fmt: skip  # noqa: E501
_EXPECTED = {"$ref": "#/$defs/expectations"}


def query_schema() -> Schema:
    """Return the schema of one line.

    It is about the form of a line. Only the reader finds faults over several lines or in the documents: a repeated id,
    turns out of order, a missing page, expectations that contradict each other.
    """
    fields = _fields()
    forms = [_question(fields), _turn(fields), _conversation(fields), _scenario(fields)]
    about = "One line of queries.jsonl of rag-harness."
    return document("Question", about, {"anyOf": forms, "$defs": {"expectations": expectations_schema(), **_defs()}})


def _defs() -> dict[str, Schema]:
    call = closed({"name": filled_text("the tool"), "args": {"type": "object"}}, ["name"])
    return {"tools": list_schema(call, "calls of tools that an agent should make, in their order", maxItems=MOST_TOOLS)}


def _fields() -> dict[str, Schema]:
    """Return the schema of each field of a question, of the reader's model where that says it all."""
    made = QueryLine.model_json_schema(mode="validation")
    patterns: dict[str, dict[str, Any]] = made["properties"]
    evidence = made["$defs"]["EvidenceLine"]["properties"]
    name = filled_text()
    quote = {"type": "object", "properties": dict.fromkeys(evidence, filled_text()), "required": [*evidence]}
    found: dict[str, Schema] = {
        **{each: text_schema() for each in ("reply", "standalone")},
        "ground_truth": one_of(text_schema(), {"type": "null"}),
        **{each: filled_text() for each in ("query", "query_type")},
        "query_id": {key: patterns["query_id"][key] for key in ("type", "pattern", "maxLength")},
        "conversation": {key: patterns["conversation"]["anyOf"][0][key] for key in ("type", "pattern", "maxLength")},
        "turn": {"type": "integer", "minimum": 1},
        "answerable": one_of({"type": ["boolean", "null"]}, text_schema(pattern=_YES_OR_NO), {"enum": [0, 1]}),
        "context_reference": one_of(list_schema(name), name, {"type": "null"}),
        "qrels": {"type": "object", "propertyNames": name, "additionalProperties": {"type": "integer"}},
        "evidence": list_schema(quote),
        "metadata": {"type": "object"},
        "inputs": {"type": "object"},
    }
    found = {each: {**schema, "description": _ABOUT[each]} for each, schema in found.items()}
    return {**found, "expect": _EXPECTED, "tools": one_of({"$ref": "#/$defs/tools"}, {"type": "null"})}


def _question(fields: dict[str, Schema]) -> Schema:
    own = {name: each for name, each in fields.items() if name not in _TURN_FIELDS}
    plain = {**own["query_id"], "pattern": own["query_id"]["pattern"].replace("(#[0-9]+)?", "")}
    return closed({**own, "query_id": plain}, ["query_id", "query"], title="a question")


def _turn(fields: dict[str, Schema]) -> Schema:
    return closed(fields, ["conversation", "turn", "query"], title="a turn of a conversation")


def _conversation(fields: dict[str, Schema]) -> Schema:
    own = {name: each for name, each in fields.items() if name not in ("conversation", "turn")}
    turn = closed({**own, "metadata": {"description": _ABOUT["metadata"]}}, ["query"])
    return closed(
        {
            "conversation": fields["conversation"],
            "turns": list_schema(turn, "its turns, in their order", minItems=1, maxItems=MOST_TURNS),
            "metadata": fields["metadata"],
        },
        ["conversation", "turns"],
        title="a whole conversation",
    )


def _scenario(fields: dict[str, Schema]) -> Schema:
    beside = {name: fields[name] for name in BESIDE_SCENARIO if name != "scenario"}
    return closed(
        {**beside, "scenario": _scenario_schema()}, ["conversation", "scenario"], title="a scenario that is played"
    )


def _scenario_schema() -> Schema:
    said, filled = text_schema(maxLength=LONGEST_SCENARIO_TEXT), filled_text(maxLength=LONGEST_SCENARIO_TEXT)
    by_cue = {"type": "object", "additionalProperties": filled, "maxProperties": MOST_PLAYED}
    in_list = list_schema(filled, maxItems=MOST_PLAYED)
    ends = [
        {"required": ["max_turns"]},
        *({"required": [name], "properties": {name: {"type": "array", "minItems": 1}}} for name in ("asks", "reached")),
    ]
    return closed(
        {
            "opening": filled_text("the first thing that the user says", maxLength=LONGEST_SCENARIO_TEXT),
            "persona": {**said, "description": "how the user talks"},
            "goal": {**said, "description": "what the user wants to know"},
            "facts": one_of(in_list, by_cue, {"type": "null"}, about="what the user knows, and says when asked"),
            "asks": {**in_list, "description": "what the user asks next"},
            "reached": one_of(_EXPECTED, {"type": "null"}, about="what an answer says that reaches the goal"),
            "max_turns": {"type": "integer", "minimum": 1, "maximum": MOST_PLAYED},
        },
        ["opening"],
        anyOf=ends,
    )
