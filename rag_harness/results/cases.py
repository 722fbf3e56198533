"""``cases/<data>.jsonl`` beside the rows: every case with its gold, so that a report needs nothing else."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

from rag_harness.dataset.expected_tools import tools_as_json, tools_of
from rag_harness.dataset.scenarios import scenario_as_json, scenario_of
from rag_harness.errors import DataError
from rag_harness.expectations import as_json, expectations_of
from rag_harness.files.atomic import write_atomically
from rag_harness.files.sources import file_sha256, json_digest
from rag_harness.results.storable import read_json, storable
from rag_harness.types import Case, Evidence, Expectation, ExpectedTool, Query, Scenario

CASES = "cases"
"""Folder beside the result files."""
_KEYS = {"case_id", "query", "inputs", "query_type", "labels", "answerable", "ground_truth", "qrels", "evidence"}
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
class KeptCase:
    """A case. A golden entry also has its expected ids as written, the reason for them, and the passage to be found."""

    case: Case
    labels: Mapping[str, str]
    expected: tuple[str, ...] = ()
    justification: str = ""
    passage: str = ""


def kept(case: Case) -> KeptCase:
    """Return a case of an experiment in the form of the file."""
    return KeptCase(case, case.labels)


def write_cases(output: Path, data: str, cases: Iterable[KeptCase]) -> None:
    """Write the file atomically: a reader sees the old file or the whole new one."""
    write_atomically(CaseFile.place(output, data), map(_line, cases))


class CaseFile:
    """Cases by id, in their order. Ids and labels are in memory; a case is read when it is asked for.

    The first ``_MOST_KEPT`` cases that were read are kept, for each experiment asks for them again.

    Attributes:
        ids: ids of all cases.
        labels: labels of each case, in the same order.
        position: position of each id in both.
        pages: the first page that the gold of each case names; empty for none.
        questions: of each case without a page, a digest of what is asked and of its gold; else empty.

    Raises:
        DataError: there is no such file, or a line of it is no case.
    """

    def __init__(self, output: Path, data: str) -> None:
        self.file: Path = self.place(output, data)
        self.ids: list[str] = []
        self.labels: list[Mapping[str, str]] = []
        self.pages: list[str] = []
        self.questions: list[str] = []
        self._places = array("q")
        self._stream: IO[bytes] | None = None
        self._kept: dict[int, KeptCase] = {}
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

    def __getitem__(self, position: int) -> KeptCase:
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
        """Return a case as it stands there: to make a million cases takes as long as to read their rows."""
        try:
            content = read_json(line)
            if not content.keys() >= _KEYS:
                _case(content)  # raises an error that says what is missing
            if not isinstance(content["case_id"], str) or not isinstance(content["labels"], dict):
                _check_types(content)  # raises an error that names the field
            return cast("Mapping[str, Any]", content)
        except _NO_CASE as error:
            raise self._damaged(number, error) from error

    def _parsed(self, line: bytes, number: int) -> KeptCase:
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
    return _question_digest(json.loads(_line(kept(case))))


def _question_digest(content: Mapping[str, Any]) -> str:
    """Return a digest that questions share which are equal but for capitals and white space, and have equal gold."""
    asked = " ".join(str(content["query"]).casefold().split())
    gold = [content.get(name) for name in ("inputs", "ground_truth", "answerable", "expect", "scenario")]
    return json_digest([asked, gold])


def _line(kept: KeptCase) -> bytes:
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
        raise TypeError("a value of qrels is no number")
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("a label, or a part of the evidence, is no text")


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


def _case(content: Mapping[str, Any]) -> KeptCase:
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
    return KeptCase(
        case,
        content["labels"],
        tuple(content.get("expected", ())),
        content.get("justification", ""),
        content.get("passage", ""),
    )
