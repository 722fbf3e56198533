"""Cases with their gold in ``cases/<data>.jsonl``, their scenarios, expected tools and earlier messages."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

from rag_harness.core.errors import DataError, unknown
from rag_harness.core.files import file_sha256, json_digest, write_atomically
from rag_harness.core.types import Case, Evidence, Expectation, ExpectedTool, Query, Scenario
from rag_harness.records.expectations import as_json, expectations_of, in_short, needs_model
from rag_harness.records.row import ExperimentResult, read_json, storable

# Scenarios in ``queries.jsonl``: a conversation that a simulated user plays, in a line of its own.
#
#     {"conversation": "sim_001", "scenario": {"opening": "can i rent a tent?", "goal": "knows what three days cost",
#      "facts": ["two adults and a child"], "asks": ["and the deposit?"], "reached": [{"contains": "€36"}],
#      "max_turns": 6}}
#
# Its turns become cases of their own, ``sim_001#1`` to ``sim_001#6``. What the user says in them is known when it is
# said.

MOST_PLAYED = 20
"""The most turns of a conversation that a simulated user plays."""
USUAL_TURNS = 10
"""The most turns where a scenario states no ``max_turns``."""
LONGEST_SCENARIO_TEXT = 2_000
"""The most characters of a text of a scenario."""
_TEXTS = ("opening", "persona", "goal")
_KEYS = (*_TEXTS, "facts", "asks", "reached", "max_turns")
BESIDE_SCENARIO = ("conversation", "scenario", "query_type", "answerable", "ground_truth", "context_reference", "qrels",
           "evidence", "expect", "inputs", "metadata")  # fmt: skip


def said_later(conversation: str, turn: int) -> str:
    """Return the placeholder of a question that a simulated user has yet to ask."""
    return f"(what the simulated user says in turn {turn} of {conversation})"


def turns_of_scenario(raw: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the turns that a line with a scenario may reach, as lines of single turns, and the faults of the line.

    The keys beside the scenario are gold of each turn. The ground truth alone is gold of the whole conversation.
    """
    strange = [key for key in raw if key not in BESIDE_SCENARIO]
    if strange:
        return [], [unknown("key beside a scenario", strange[0], BESIDE_SCENARIO)]
    scenario, problems = scenario_of(raw["scenario"], raw.get("ground_truth", ""))
    if scenario is None:
        return [], problems
    conversation = raw.get("conversation")
    shared = {key: value for key, value in raw.items() if key not in ("conversation", "scenario", "ground_truth")}
    return [
        {
            **shared,
            "conversation": conversation,
            "turn": turn,
            "query": scenario.opening if turn == 1 else said_later(str(conversation), turn),
            "scenario": scenario,
        }
        for turn in range(1, scenario.max_turns + 1)
    ], []


def scenario_of(raw: object, ground_truth: object = "") -> tuple[Scenario | None, list[str]]:
    """Return the scenario of a JSON object, or None and its faults, a sentence each."""
    if not isinstance(raw, dict):
        return None, ['scenario: an object was expected, e.g. {"opening": "can i rent a tent?", "max_turns": 6}']
    problems = [f"scenario: {unknown('key', key, _KEYS)}" for key in raw if key not in _KEYS]
    texts = {name: raw.get(name, "") for name in _TEXTS}
    problems += [each for name, text in texts.items() if (each := _text_problem(name, text))]
    if not problems and not texts["opening"].strip():
        problems.append("scenario: opening is missing: the first thing that the user says")
    facts, wrong = _facts(raw.get("facts", []))
    asks, no_list = _list_of_texts("asks", raw.get("asks", []))
    reached, unread = _reached(raw.get("reached"))
    problems += [*wrong, *no_list, *unread, *_ending_problems(raw)]
    if not isinstance(ground_truth, str):
        problems.append("ground_truth: a text was expected")
    if problems:
        return None, problems
    turns = raw.get("max_turns", USUAL_TURNS)
    said = {name: text.strip() for name, text in texts.items()} | {"ground_truth": ground_truth}
    return Scenario(**said, facts=facts, asks=asks, reached=reached, max_turns=turns), []


def _ending_problems(raw: Mapping[str, Any]) -> list[str]:
    turns = raw.get("max_turns", USUAL_TURNS)
    if isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_PLAYED:
        return [f"scenario: max_turns is {turns!r}. Write a number from 1 to {MOST_PLAYED}"]
    if not any(raw.get(name) for name in ("reached", "asks", "max_turns")):
        return ['scenario: nothing says when it is over. Add reached, [{"contains": "€36"}] say, or asks, or max_turns']
    return []


def _text_problem(name: str, value: object) -> str:
    if not isinstance(value, str):
        return f"scenario: {name}: a text was expected"
    return (
        f"scenario: {name} has {len(value):,} characters; at most {LONGEST_SCENARIO_TEXT:,}"
        if len(value) > LONGEST_SCENARIO_TEXT
        else ""
    )


def _list_of_texts(name: str, raw: object) -> tuple[tuple[str, ...], list[str]]:
    if not isinstance(raw, list) or not all(isinstance(each, str) and each.strip() for each in raw):
        return (), [f"scenario: {name}: a list of texts was expected"]
    if len(raw) > MOST_PLAYED or any(len(each) > LONGEST_SCENARIO_TEXT for each in raw):
        return (), [f"scenario: {name}: at most {MOST_PLAYED} texts of {LONGEST_SCENARIO_TEXT:,} characters each"]
    return tuple(each.strip() for each in raw), []


def _facts(raw: object) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Return facts, each with the words that ask for it: an object has them as keys, a list has none."""
    by_cue = raw if isinstance(raw, dict) else {}
    texts, problems = _list_of_texts("facts", list(by_cue.values()) or raw or [])
    if problems:
        expected = 'an object of words that ask for a fact, {"how many people": "two adults"}, or a list of facts'
        return (), [f"scenario: facts: {expected}, was expected: texts of at most {LONGEST_SCENARIO_TEXT:,} characters"]
    return tuple(zip(map(str, by_cue), texts, strict=True)) if by_cue else tuple(("", each) for each in texts), []


def _reached(raw: object) -> tuple[tuple[Expectation, ...], list[str]]:
    if raw is None:
        return (), []
    found, problems = expectations_of(raw)
    for each in found if not problems else ():
        if each.negated:
            problems.append(f"{each}: what an answer does not say reaches no goal. Put it into expect")
        elif needs_model(each):
            problems.append(f"{each}: it needs a judge, and this is asked while the conversation goes on. Put it into "
                            "expect, and say here what an answer contains that reaches the goal")  # fmt: skip
    return found, [f"scenario: reached: {each}" for each in problems]


def scenario_as_json(scenario: Scenario, demand: Any) -> dict[str, Any]:
    """Return a scenario in the form of a line, without its ground truth. ``demand`` writes an expectation."""
    facts: Any = dict(scenario.facts)
    if not all(asked for asked, _ in scenario.facts):
        facts = [fact for _, fact in scenario.facts]
    said = {
        "opening": scenario.opening,
        "persona": scenario.persona,
        "goal": scenario.goal,
        "facts": facts,
        "asks": list(scenario.asks),
        "reached": [demand(each) for each in scenario.reached],
    }
    return {**{name: value for name, value in said.items() if value}, "max_turns": scenario.max_turns}


# Reads which tools an agent should call for a question: ``"tools": [{"name": "price", "args": {"sku": "T-18"}}]``.

MOST_TOOLS = 100
"""The most expected calls of a case."""
_TOOL_KEYS = ("name", "args")


def tools_of(raw: object) -> tuple[tuple[ExpectedTool, ...], list[str]]:
    """Return the calls that ``raw`` lists, in their order, and its faults, a sentence each."""
    if not isinstance(raw, list):
        return (), [f'a list of objects was expected, e.g. [{{"name": "price"}}]; found {in_short(raw)}']
    if len(raw) > MOST_TOOLS:
        return (), [f"{len(raw):,} calls; a case may expect {MOST_TOOLS}"]
    problems = [f"call {number}: {said}" for number, each in enumerate(raw, 1) if (said := _problem(each))]
    return () if problems else tuple(ExpectedTool(each["name"], each.get("args")) for each in raw), problems


def tools_as_json(tools: Sequence[ExpectedTool]) -> list[dict[str, Any]]:
    """Return expected calls as ``tools_of`` reads them."""
    return [{"name": each.name, **({} if each.args is None else {"args": dict(each.args)})} for each in tools]


def _problem(raw: object) -> str:
    if not isinstance(raw, dict):
        return f'an object was expected, e.g. {{"name": "price"}}; found {in_short(raw)}'
    if strange := [key for key in raw if key not in _TOOL_KEYS]:
        return unknown("key", strange[0], _TOOL_KEYS)
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return "name is missing: the name of the tool, a text"
    if not isinstance(raw.get("args", {}), dict):
        return f'args: an object was expected, e.g. {{"sku": "T-18"}}; found {in_short(raw["args"])}'
    return ""


# ``cases/<data>.jsonl`` beside the rows: every case with its gold, so that a report needs nothing else.

CASES = "cases"
"""Folder beside the result files."""
_CASE_KEYS = {"case_id", "query", "inputs", "query_type", "labels", "answerable", "ground_truth", "qrels", "evidence"}
_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("case_id", "query", "query_type", "ground_truth", "justification", "passage", "standalone"), str),
    **dict.fromkeys(("inputs", "labels", "qrels"), dict),
    **dict.fromkeys(("evidence", "expected"), list),
    "answerable": bool,
}
_MOST_KEPT = 10_000
"""Cases of one file that are kept in memory: some 25 MB."""
_WAS = "was"
"""Beside a snapshot: the answer that was kept."""
_NO_CASE = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A case. A golden entry also has its expected ids as written, the reason for them, and the passage to be found."""

    case: Case
    labels: Mapping[str, str]
    expected: tuple[str, ...] = ()
    justification: str = ""
    passage: str = ""


def stored_case(case: Case) -> StoredCase:
    """Return a case of an experiment in the form of the file."""
    return StoredCase(case, case.labels)


def write_cases(output: Path, data: str, cases: Iterable[StoredCase]) -> None:
    """Write the file atomically: a reader sees the old file or the whole new one."""
    write_atomically(CaseFile.place(output, data), map(_line, cases))


class CaseFile:
    """Cases by id, in their order. Ids and labels are in memory; a case is read when it is asked for.

    The first ``_MOST_KEPT`` cases that were read stay in memory, because each experiment asks for them again.

    Attributes:
        ids: ids of all cases.
        labels: labels of each case, in the same order.
        position: position of each id in both.
        pages: the first page that the gold of each case names; empty for none.
        questions: of each case without a page, a digest of its question and its gold; else empty.

    Raises:
        DataError: the file does not exist, or a line of it is not a case.
    """

    def __init__(self, output: Path, data: str) -> None:
        self.file: Path = self.place(output, data)
        self.ids: list[str] = []
        self.labels: list[Mapping[str, str]] = []
        self.pages: list[str] = []
        self.questions: list[str] = []
        self._places = array("q")
        self._stream: IO[bytes] | None = None
        self._kept: dict[int, StoredCase] = {}
        try:
            self._read()
        except FileNotFoundError:
            raise DataError(f"No file {self.file}. Run pytest with --rag-output={output} first.") from None
        self.position: dict[str, int] = {case_id: n for n, case_id in enumerate(self.ids)}

    @staticmethod
    def place(output: Path, data: str) -> Path:
        """Return the path of the cases of some data."""
        return output / CASES / f"{data}.jsonl"

    def _read(self) -> None:
        place, known = 0, dict[tuple[tuple[str, str], ...], Mapping[str, str]]()
        with self.file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                content = self._named(line, number)
                case_id, labels = content["case_id"], content["labels"]
                self.ids.append(case_id)
                self.pages.append(_first_page(content))
                self.questions.append("" if self.pages[-1] else _question_digest(content))
                # Cases with the same labels share one mapping.
                self.labels.append(known.setdefault(tuple(labels.items()), labels))
                self._places.append(place)
                place += len(line)

    def __getitem__(self, position: int) -> StoredCase:
        """Return the case at a position."""
        if (kept := self._kept.get(position)) is not None:
            return kept
        if self._stream is None:
            self._stream = self.file.open("rb")
        self._stream.seek(self._places[position])
        found = self._parsed(self._stream.readline(), position + 1)
        if len(self._kept) < _MOST_KEPT:
            self._kept[position] = found
        return found

    @cached_property
    def digest(self) -> str:
        """The digest of the file."""
        return file_sha256(self.file)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _named(self, line: bytes, number: int) -> Mapping[str, Any]:
        """Return a case as the file has it. To make a million ``Case`` objects takes as long as to read their rows."""
        try:
            content = read_json(line)
            if not content.keys() >= _CASE_KEYS:
                _case(content)  # raises an error that says what is missing
            if not isinstance(content["case_id"], str) or not isinstance(content["labels"], dict):
                _check_types(content)  # raises an error that names the field
            return cast("Mapping[str, Any]", content)
        except _NO_CASE as error:
            raise self._damaged(number, error) from error

    def _parsed(self, line: bytes, number: int) -> StoredCase:
        try:
            return _case(read_json(line))
        except _NO_CASE as error:
            raise self._damaged(number, error) from error

    def _damaged(self, number: int, error: Exception) -> DataError:
        return DataError(f"{self.file}:{number}: no case: {type(error).__name__}: {error}. Run pytest again.")


def _first_page(content: Mapping[str, Any]) -> str:
    found = content["qrels"].items() if isinstance(content["qrels"], dict) else ()
    return next((sys.intern(name) for name, gain in found if isinstance(gain, (int, float)) and gain > 0), "")


def question_of(case: Case) -> str:
    """Return what ``CaseFile.questions`` has of a case without a page."""
    return _question_digest(json.loads(_line(stored_case(case))))


def _question_digest(content: Mapping[str, Any]) -> str:
    """Return a digest that questions share which are equal but for capitals and white space, and have equal gold."""
    asked = " ".join(str(content["query"]).casefold().split())
    gold = [content.get(name) for name in ("inputs", "ground_truth", "answerable", "expect", "scenario")]
    return json_digest([asked, gold])


def _line(kept: StoredCase) -> bytes:
    case = kept.case
    content = {
        "case_id": case.query.query_id,
        "query": case.query.text,
        "inputs": dict(case.query.inputs),
        "query_type": case.query_type,
        "labels": dict(kept.labels),
        "answerable": case.answerable,
        "ground_truth": case.ground_truth,
        "qrels": dict(case.qrels),
        "evidence": [{"filename": quote.filename, "quote": quote.quote} for quote in case.evidence],
    }
    golden: dict[str, object] = {
        "expected": list(kept.expected),
        "justification": kept.justification,
        "passage": kept.passage,
    }
    more: dict[str, object] = golden if kept.expected else {}
    if case.expect:
        more = {**more, "expect": [_stated(each) for each in case.expect]}
    if case.scenario is not None:
        played = scenario_as_json(case.scenario, _stated)
        more = {**more, "scenario": played, "scenario_truth": case.scenario.ground_truth}
    if case.standalone:
        more = {**more, "standalone": case.standalone}
    if case.tools is not None:
        more = {**more, "tools": tools_as_json(case.tools)}
    return json.dumps(storable({**content, **more}), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _check_types(content: Mapping[str, Any]) -> None:
    for key, kind in _TYPES.items():
        if key in content and not isinstance(content[key], kind):
            raise TypeError(f"{key} is {content[key]!r:.40}")
    numbers, texts = content["qrels"].values(), [*content["labels"].values()]
    texts += [quote[key] for quote in content["evidence"] for key in ("filename", "quote")]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers):
        raise TypeError("a value of qrels is not a number")
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("a label, or a part of the evidence, is not text")


def _stated(each: Expectation) -> dict[str, object]:
    return {**as_json(each), **({} if each.was is None else {_WAS: each.was})}


def _expected(raw: Any) -> tuple[Expectation, ...]:
    plain = [{name: value for name, value in each.items() if name != _WAS} for each in raw]
    found, problems = expectations_of(plain)
    if problems:  # a kind of another package that is not installed here
        raise ValueError(f"expect: {problems[0]}")
    return tuple(
        replace(each, was=said[_WAS]) if isinstance(said.get(_WAS), str) else each
        for each, said in zip(found, raw, strict=True)
    )


def _tools(raw: Any) -> tuple[ExpectedTool, ...]:
    found, problems = tools_of(raw)
    if problems:
        raise ValueError(f"tools: {problems[0]}")
    return found


def _scenario(content: Mapping[str, Any]) -> Scenario | None:
    found, problems = scenario_of(content["scenario"], content.get("scenario_truth", ""))
    if problems:
        raise ValueError(problems[0])
    return found


def _case(content: Mapping[str, Any]) -> StoredCase:
    _check_types(content)
    query = Query(content["case_id"], content["query"], content["inputs"])
    case = Case(
        query=query,
        query_type=content["query_type"],
        # Of its metadata the file has what cases are sliced by: short plain values, as text.
        metadata={key: value for key, value in content["labels"].items() if key not in (*query.place, "query_type")},
        ground_truth=content["ground_truth"],
        qrels=content["qrels"],
        evidence=tuple(Evidence(quote["filename"], quote["quote"]) for quote in content["evidence"]),
        answerable=content["answerable"],
        expect=_expected(content["expect"]) if "expect" in content else (),
        scenario=_scenario(content) if "scenario" in content else None,
        standalone=content.get("standalone", ""),
        tools=_tools(content["tools"]) if "tools" in content else None,
    )
    return StoredCase(
        case,
        content["labels"],
        tuple(content.get("expected", ())),
        content.get("justification", ""),
        content.get("passage", ""),
    )


# The messages before a turn, as its row has them, as the page and the terminal show them. Any program may have written
# the row.
#
# The page's script groups messages as ``turns_before`` does, and finds what was searched as ``searched_for`` does.

_HISTORY, _USER = "history", "user"
_REWRITE, _SEARCHED = "rewrite", "searched"
"""Stage of a pipeline that makes a question that stands alone, and the key of its detail that has it."""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of a conversation.

    Attributes:
        role: ``user`` or ``assistant``, or another role that the history names.
        text: its text.
        failed: whether it is the placeholder of a reply that failed.
    """

    role: str
    text: str
    failed: bool = False


def chat_before(query: Query) -> list[SaidMessage]:
    """Return the messages before a turn, the oldest first; empty where the query is not a turn, or is the first turn.

    Empty, too, where the history is not a list of messages, as in a row of another program.
    """
    history = query.inputs.get(_HISTORY) if query.place else None
    if not isinstance(history, list) or not all(map(_is_message, history)):
        return []
    return [SaidMessage(each["role"], each["content"], each.get("failed") is True) for each in history]


def turns_before(said: Sequence[SaidMessage]) -> list[list[SaidMessage]]:
    """Return messages by turn. Each turn begins with the user's message."""
    turns: list[list[SaidMessage]] = []
    for each in said:
        if each.role == _USER or not turns:
            turns.append([])
        turns[-1].append(each)
    return turns


def searched_for(row: ExperimentResult) -> str:
    """Return the query that the pipeline used instead of the question; empty where it is unknown, or the question."""
    found = next((stage.detail.get(_SEARCHED) for stage in row.stages if stage.name == _REWRITE), None)
    return found if isinstance(found, str) and found != row.query else ""


def inputs_beside(query: Query) -> dict[str, Any]:
    """Return the inputs that are not about the conversation; all of them where the query is not a turn."""
    of_chat = {*query.place, *([_HISTORY] if chat_before(query) else [])}
    return {name: value for name, value in query.inputs.items() if name not in of_chat}


def _is_message(each: object) -> bool:
    return isinstance(each, Mapping) and isinstance(each.get("role"), str) and isinstance(each.get("content"), str)
