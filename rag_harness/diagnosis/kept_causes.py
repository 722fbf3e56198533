"""The causes of earlier replays, in the cache: the same rows fail for the same reasons.

Causes are found by the content of all that decides them: rows but for their times, cases, scores, failed gates,
options, documents, recordings, this package and the libraries that decide results. With them come the rows of trials
that were run again, and their prompts. Whatever could end otherwise the next time is not kept: a trial that did not
come back, a pipeline or documents that are not known.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rag_harness.core.cache import SUFFIX, leave_newest, note_use, read_kept, write_kept
from rag_harness.core.files import bytes_digest, json_digest, text_digest, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.package import library_versions, package_digest
from rag_harness.core.registry import is_own, registered
from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import affecting
from rag_harness.pipelines.experiments import result_path
from rag_harness.records.cases import CaseFile
from rag_harness.records.files import PROMPTS
from rag_harness.records.manifest import SuiteRecord
from rag_harness.records.row import rows_among
from rag_harness.records.scores import CauseLine
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import SUMMARY_FILE

KEPT_CAUSES = "causes"
"""The folder in the cache."""
MOST_BYTES = 2**26
"""The most bytes of rows whose causes are kept."""
_NEWEST = 8
"""Explanations of one experiment that are kept."""
_TIMES = re.compile(
    rb'"(?:finished_at":"[^"\\]{0,40}"|(?:ms|(?:retrieval|rerank|llm|ttft|total)(?:_time)?_ms|waited_ms)":[0-9.e+-]{1,40})'
)
"""What differs between rows of the same content. In a text of a row each of its quotes has a backslash before it."""
_BY_TIME = b'"max_ms"'
"""The expectation that looks at times. Its answers are explained each time."""


def _holds(file: Path, rows: bytes) -> bool:
    """Return whether each of ``rows`` is a line of ``file``."""
    return file.exists() and {*rows.splitlines()} <= {*file.read_bytes().splitlines()}


class KeptCauses:
    """The causes of earlier replays.

    Args:
        settings: of the run.
        output: folder of the result files.
        keep_prompt: keeps a prompt, given its digest and its content.
    """

    def __init__(self, settings: Settings, output: Path, keep_prompt: Callable[[str, str], None]) -> None:
        self._settings, self._output, self._keep_prompt = settings, output, keep_prompt
        self._folder = settings.path(settings.cache_dir) / KEPT_CAUSES

    def key(self, record: SuiteRecord, table: SuiteTable, identity: Sequence[str]) -> str:
        """Return the digest of all that decides the causes of a suite; empty where they are worked out each time.

        ``identity`` are the digests of experiment and documents.

        Raises:
            OSError: a file of the run cannot be read.
        """
        rows, cases = self._output / record.file, CaseFile.place(self._output, record.cases)
        if rows.stat().st_size > MOST_BYTES or _BY_TIME in (stated := cases.read_bytes()):
            return ""
        if any(is_own(point.value) for point in registered("expectations").values()):
            return ""  # what a user's own kind of expectation hangs on is not known
        settings = self._settings
        decides = [package_digest(), sys.version, library_versions(), *identity]
        options = affecting(
            settings, "data", "retrieval", "reranking", "generation", "judging", "golden", "reliability"
        )
        # Workers write their rows in another order each time.
        answered = b"\n".join(sorted(_TIMES.sub(b"", rows.read_bytes()).splitlines()))
        content = [bytes_digest(stated), bytes_digest(answered), record.fingerprints]
        recorded = _looks(settings.folder("cassettes"))
        return json_digest([decides, options, settings.k, content, recorded, self._failed(), *_values(table)])

    def find(self, name: str, key: str) -> list[CauseLine] | None:
        """Return the causes kept under ``key``, and leave the rows that belong to them; None where none are kept.

        Other rows of these that are in the folder already are not touched: causes are looked for then.
        """
        note_use(self._place(name))
        said: Any = read_kept(self._file(name, key)) if key else None
        try:
            lines = [CauseLine.model_validate(each) for each in said["causes"]]
            kept = {result_path(self._output, derived): text.encode() for derived, text in said["rows"].items()}
            prompts = dict(said["prompts"])
        except (TypeError, KeyError, AttributeError, ValidationError):
            return None
        rows = {file: content for file, content in kept.items() if not _holds(file, content)}
        if any(file.exists() for file in rows) and not self._settings.overwrite:
            return None
        for digest, content in prompts.items():
            self._keep_prompt(digest, content)
        for file, content in rows.items():
            write_atomically(file, content)
        return lines

    def keep(self, name: str, key: str, lines: Sequence[CauseLine]) -> None:
        """Keep the causes of an experiment, with the rows and prompts in the folder that belong to them.

        Where one of these is missing, or the key is empty, nothing is kept.
        """
        asked: dict[str, set[str]] = {}
        for line in lines:
            for changed in line.answers:
                asked.setdefault(f"{name}{changed}", set()).add(line.query_id)
        rows: dict[str, str] = {}
        prompts: dict[str, str] = {}
        for derived, query_ids in asked.items() if key else ():
            found = {row.query_id: row for row in rows_among(result_path(self._output, derived), query_ids)}
            if found.keys() != query_ids:
                return
            rows[derived] = "".join(row.line() for row in found.values())
            calls = (call for row in found.values() for stage in row.stages for call in stage.calls if call.prompt)
            prompts |= {call.prompt: self._prompt(call.prompt) for call in calls if call.prompt not in prompts}
        if key and all(prompts.values()):
            causes = [line.model_dump(mode="json") for line in lines]
            write_kept(self._file(name, key), {"causes": causes, "rows": rows, "prompts": prompts})
            leave_newest(self._place(name), _NEWEST)

    def _prompt(self, digest: str) -> str:
        try:
            return (self._output / PROMPTS / f"{digest}.json").read_text(encoding="ascii")
        except (OSError, ValueError):
            return ""

    def _failed(self) -> list[str]:
        """Return the failed gates, which decide what is looked at."""
        said = read_json((self._output / SUMMARY_FILE).read_bytes()).get("gates", [])
        return [str(verdict.get("gate")) for verdict in said if verdict.get("state") == "failed"]

    def _place(self, name: str) -> Path:
        return self._folder / text_digest(name)

    def _file(self, name: str, key: str) -> Path:
        return self._place(name) / f"{key}{SUFFIX}"


def _looks(folder: Path) -> str:
    """Return the digest of the sizes and times of all recordings: trials that are run again are answered from them."""
    found = []
    for place, below, files in os.walk(folder):
        below.sort()
        for file in sorted(files):
            stat = os.stat(f"{place}/{file}")  # noqa: PTH116 - some thousand files
            found.append(f"{place}/{file} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}")
    return text_digest("\n".join(found))


def _values(table: SuiteTable) -> list[Any]:
    """Return what a table says of each case, but for times."""
    columns: Mapping[str, Any] = table.columns
    values = {name: column.values.tolist() for name, column in columns.items() if not name.endswith("_ms")}
    answers = [table.totals.answered, table.totals.retrieves]
    return [list(table.ids), table.states.tolist(), table.categories and list(table.categories), values, answers]
