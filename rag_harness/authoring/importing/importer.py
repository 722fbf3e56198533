"""Import the questions of a file of another tool: read its records, place their evidence, write their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.authoring.importing.field_mapping import LOOKED_AT, RecordMapping, SourceFields, lacking_question
from rag_harness.authoring.importing.promptfoo import promptfoo_questions
from rag_harness.authoring.importing.promptfoo_files import YAML
from rag_harness.authoring.importing.records import ImportedQuestion, Notes
from rag_harness.authoring.importing.tool_formats import (
    DEEPEVAL,
    HUGGING_FACE,
    LANGFUSE,
    LANGSMITH,
    RAGAS,
    TABLE,
    records_to_import,
)
from rag_harness.authoring.questions.document_changes import otherwise_marked, tells_page
from rag_harness.core.errors import DataError
from rag_harness.core.files import reference_fault, referenced_files
from rag_harness.core.types import NEGATIVE, REVIEWED, Document, Evidence
from rag_harness.data.queries import QueryLine, lines_of
from rag_harness.data.query_lines import as_id, id_of_question, line_of_cells
from rag_harness.data.record_files import MOST_JSON, READERS, read_yaml
from rag_harness.data.source_records import SourceRecord, text_of
from rag_harness.pipelines.endpoint.answer import Context, Placing
from rag_harness.records.row import storable

_PARAGRAPHS = re.compile(r"\n[ \t]{0,80}\n")
_SHOWN = 60
_LONGEST = 5_000
"""The most characters of a paragraph that is looked for with other marks than the page has."""


@dataclass
class PlacedGold:
    """The gold of a question in our documents.

    Attributes:
        pages: the documents, each once.
        evidence: verbatim quotes of them.
        lost: contexts and names that no document has.
    """

    pages: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class ContextPlaces:
    """Finds contexts and names of documents in a knowledge base.

    Args:
        documents: the documents.
        notes: takes what is not found.
    """

    def __init__(self, documents: Sequence[Document], notes: Notes) -> None:
        self._texts = {document.doc_id: document.text for document in documents}
        self._placing, self._notes = Placing(lambda: documents, "import"), notes

    def place(self, question: ImportedQuestion) -> PlacedGold:
        """Return where the contexts and documents of a question are. What is not found is noted."""
        found = PlacedGold()
        for name in question.documents:
            if page := self._page_of("", name):
                found.pages.append(page)
            else:
                found.lost.append(name)
                self._lack(name, question.where)
        for text, name in question.contexts:
            self._add(found, text, name, question.where)
        found.pages = list(dict.fromkeys([*(each.filename for each in found.evidence), *found.pages]))
        return found

    def check(self, pages: Iterable[str], where: str) -> None:
        """Note those of the documents that a line names and the folder does not have."""
        for name in dict.fromkeys(pages):
            if name not in self._texts:
                self._lack(name, where)

    def _lack(self, name: str, where: str) -> None:
        self._notes.lose(f"a document that the folder does not have, e.g. {name[:_SHOWN]!r}", where)

    def _add(self, found: PlacedGold, text: str, name: str, where: str) -> None:
        page = self._page_of(text, name)
        if not page:
            found.lost.append(text)
            self._notes.lose("a context that no document has, or several have", where)
            return
        quotes = self._quotes(page, text)
        if not quotes:
            self._notes.tell(
                "a context whose page is found, and not its words: the page is gold, without a quote", where
            )
            found.pages.append(page)
        found.evidence += [each for each in quotes if each not in found.evidence]

    def _page_of(self, text: str, name: str) -> str:
        """Return the document of a context, by its text, or by its name without a text."""
        by_text = self._placing.place([Context(text)]).hits[0].chunk.doc_id if text else ""
        return by_text or (self._placing.place([Context("", document=name)]).hits[0].chunk.doc_id if name else "")

    def _quotes(self, page: str, text: str) -> list[Evidence]:
        """Return a quote, in the page's own words, for each paragraph of a context that is in the page.

        A whole context is often longer than a chunk. A quote that a chunk's border divides is found in no chunk.
        """
        paragraphs = (each.strip() for each in _PARAGRAPHS.split(text))
        found = (self._verbatim(self._texts[page], each) for each in paragraphs if tells_page(each))
        return [Evidence(page, quote) for quote in found if quote]

    @staticmethod
    def _verbatim(text: str, paragraph: str) -> str:
        if paragraph in text:
            return paragraph
        passage = otherwise_marked(text, paragraph) if len(paragraph) <= _LONGEST else None
        return passage.text if passage else ""


# Records that are lines of ``queries.jsonl`` already: all that they say is kept as it stands.

_FIELDS = frozenset({*QueryLine.model_fields, "turns"})
_ASKED, _NAMED = ("query", "turns", "scenario"), ("query_id", "conversation")
_NO_OTHER_TOOLS = ("qrels", "inputs", "turn", "turns", "reply", "standalone", "scenario")
"""Fields that no other tool has under this name. A table without any of them may hold contexts to be looked for."""


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A record with our fields and no others.

    Attributes:
        where: its place in the file.
        values: the line.
        problems: what is wrong with the cells of a table.
    """

    where: str
    values: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The field that holds the name of the line: the conversation's, where it is one."""
        return "conversation" if "conversation" in self.values else "query_id"

    @property
    def is_turn(self) -> bool:
        """Whether the line is one turn of a conversation, whose other turns stand on lines of their own."""
        return "turn" in self.values

    def pages(self) -> Iterator[str]:
        """Yield the documents that the line names as gold."""
        turns = self.values.get("turns")
        for each in turns if isinstance(turns, list) else [self.values]:
            if isinstance(each, Mapping):
                named = each.get("context_reference") or ()
                yield from [named] if isinstance(named, str) else named
                yield from each.get("qrels") or ()
                yield from (one["filename"] for one in each.get("evidence") or () if _is_quote(one))


def own_line(record: SourceRecord) -> OwnLine | None:
    """Return a record as the line that it is; None where it is none of ours."""
    values = {name: value for name, value in record.values.items() if value is not None}
    is_ours = values.keys() <= _FIELDS and any(map(values.get, _ASKED)) and any(map(values.get, _NAMED))
    if not is_ours:
        return None
    is_no_others = bool(values.keys() & {*_NO_OTHER_TOOLS})
    if record.number:  # a row of a table
        line, problems = line_of_cells(values, {name: name for name in values})
        return OwnLine(record.where, line, tuple(problems)) if is_no_others else None
    # A record of another tool may have our names for values of another form: an id with blanks, a number as an answer.
    is_line = is_no_others or not lines_of(json.dumps(storable(values)))[1]
    return OwnLine(record.where, values) if is_line else None


def _is_quote(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("filename"), str)


WrittenLine = dict[str, Any]
_UNLABELLED = "unlabelled"


class LineWriting:
    """Makes lines, each with a unique id.

    Args:
        source: the tool, which becomes the label ``imported_from``.
        reviewed: whether somebody has read all questions, ``yes`` or ``no``; "": those that the file does not call
            synthetic.
        notes: takes the changes of ids.
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


# The files of a Hugging Face data set in a folder: ``configs`` in the YAML at the top of its README.md say which.

_FENCE = "---"
_USUAL = "test"
"""The split that questions are taken from where several are there."""


class _Split(NamedTuple):
    subset: str
    name: str
    patterns: Sequence[str]


def files_of_dataset(folder: Path, subset: str = "", split: str = "") -> list[Path]:
    """Return the data files of one split of a data set.

    Args:
        folder: a clone or a snapshot of its repository.
        subset: the name of a configuration; "": the default one, or the only one.
        split: its name; "": the only one, else ``test``.

    Raises:
        DataError: the README cannot be read, several subsets or splits could be meant, or a file is not there.
    """
    stated = [*_stated(folder)]
    if not stated:
        return _unstated(folder, subset or split)
    named = _chosen(folder, "--subset", subset or _default(folder), {each.subset: None for each in stated})
    splits = {each.name: each for each in stated if each.subset == named}
    usual = _USUAL if len(splits) > 1 and _USUAL in splits else ""
    found = splits[_chosen(folder, "--split", split or usual, splits)]
    files = [file for pattern in found.patterns for file in _matching(folder, pattern)]
    return [*dict.fromkeys(files)]


def _chosen(folder: Path, option: str, name: str, known: dict[str, Any]) -> str:
    if not name and len(known) == 1:
        return next(iter(known))
    if name not in known:
        said = f"no {name!r} among" if name else "it is to be said which of"
        raise DataError(f"{folder}: {said} {', '.join(known)}. Say which: {option} {next(iter(known))}")
    return name


def _stated(folder: Path) -> Iterator[_Split]:
    """Yield the splits that the README states."""
    for config in _configs(folder):
        subset = str(config.get("config_name") or "default")
        files = config.get("data_files")
        entries = files if isinstance(files, list) else [files]
        if isinstance(files, dict):
            entries = [{"split": name, "path": path} for name, path in files.items()]
        plain = [each for each in entries if isinstance(each, str)]
        if plain:
            yield _Split(subset, "train", plain)
        for each in entries:
            if isinstance(each, dict):
                paths = each.get("path") or []
                listed = paths if isinstance(paths, list) else [paths]
                yield _Split(subset, str(each.get("split") or "train"), listed)


def _configs(folder: Path) -> list[dict[str, Any]]:
    readme = folder / "README.md"
    if not readme.is_file():
        return []
    lines = text_of(readme, MOST_JSON).split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(fences) < 2 or fences[0] != 0:
        return []
    # A line for the fence, so that lines of messages are those of the file.
    card = read_yaml("\n" + "\n".join(lines[1 : fences[1]]), str(readme)).value
    configs = card.get("configs") if isinstance(card, dict) else None
    return [each for each in configs if isinstance(each, dict)] if isinstance(configs, list) else []


def _default(folder: Path) -> str:
    configs = _configs(folder)
    marked = [each for each in configs if each.get("default") is True] or configs
    names = [str(each.get("config_name") or "default") for each in marked]
    return names[0] if len(names) == 1 or names[:1] == ["default"] else "default" if "default" in names else ""


def _unstated(folder: Path, asked: str) -> list[Path]:
    named = sorted(each for each in folder.rglob("*") if each.suffix.lower() in READERS)
    files = [each for each in named if not reference_fault(each, _repository(folder))]
    if len(files) == 1 and not asked:
        return files
    listed = ", ".join(each.relative_to(folder).as_posix() for each in files[:10]) or "none that is read"
    raise DataError(f"{folder}: no README.md that states configs. Name one of its files: {listed}")


def _matching(folder: Path, pattern: Any) -> Sequence[Path]:
    try:
        return referenced_files(folder, str(pattern), within=_repository(folder))
    except DataError as error:
        raise DataError(f"{folder / 'README.md'}: {error}") from None


def _repository(folder: Path) -> Path:
    """Return where files of a data set may lie: in the cache of the hub, those of a snapshot are links to blobs."""
    is_snapshot = folder.absolute().parent.name == "snapshots"
    return folder.absolute().parent.parent if is_snapshot else folder


Reader = Callable[[Path, Mapping[str, str], Notes], Iterator[ImportedQuestion | OwnLine]]
"""Reads the questions of a file, with what ``--map`` says; notes take what is not taken over."""
_UNPLACED = "contexts or documents that were not looked for: name the folder of the documents, --kb DIR"


class Part(NamedTuple):
    """A part of a data set in a folder; each name is empty where the only or usual one is meant."""

    subset: str = ""
    split: str = ""


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """The result of an import: the lines of a file, and what could not be imported."""

    lines: Sequence[WrittenLine]
    notes: Notes


def import_questions(
    file: Path,
    source: str,
    chosen: Mapping[str, str],
    documents: Sequence[Document] = (),
    reviewed: str = "",
    part: Part = WHOLE,
) -> ImportedFile:
    """Return the questions of a file of another tool as lines of ``queries.jsonl``.

    Args:
        file: the file, or a folder of a data set.
        source: the tool, one of ``SOURCES``.
        chosen: which column or path is which of our fields.
        documents: where contexts are looked for; without any they are noted.
        reviewed: ``yes`` or ``no`` for all questions; "": what the file calls synthetic is a draft.
        part: which part of a folder is read.

    Raises:
        DataError: the file cannot be read, or holds no question.
        PrerequisiteError: a package is missing that the file needs.
    """
    notes = Notes()
    places = ContextPlaces(documents, notes) if documents else None
    writing, lines = LineWriting(source, reviewed, notes), list[WrittenLine]()
    for question in (each for one in files_of(file, part) for each in SOURCES[source](one, chosen, notes)):
        if isinstance(question, OwnLine):
            line = writing.kept(question)
            if places and line:
                places.check(question.pages(), question.where)
        else:
            line = writing.line_of(question, places.place(question) if places else _not_placed(question, notes))
        if line:
            lines.append(line)
    if not lines:
        raise DataError("\n".join([f"{file}: no question was found.", *notes.lines()]))
    return ImportedFile(lines, notes)


def files_of(file: Path, part: Part) -> list[Path]:
    """Return the files with the questions: the file itself, or the files of a part of a folder.

    Raises:
        DataError: the folder is not a data set, or its part was not chosen.
    """
    if file.is_dir():
        return files_of_dataset(file, *part)
    if any(part):
        raise DataError(f"{file} is a file. --subset and --split choose from a folder.")
    return [file]


def _not_placed(question: ImportedQuestion, notes: Notes) -> PlacedGold:
    texts = [*question.documents, *(text or name for text, name in question.contexts)]
    if texts:
        notes.lose(_UNPLACED, question.where)
    return PlacedGold(lost=texts)


def _by_fields(source: SourceFields) -> Reader:
    def read(file: Path, chosen: Mapping[str, str], notes: Notes) -> Iterator[ImportedQuestion | OwnLine]:
        mapping = RecordMapping(source, chosen, notes)
        may_be_ours = source in (TABLE, HUGGING_FACE) and not chosen
        records = records_to_import(file, notes)
        first = [*islice(records, LOOKED_AT)]
        asked = [each.values for each in first if not (may_be_ours and own_line(each))]
        if asked and (lacks := lacking_question(source, chosen, asked)):
            raise DataError(f"{file}: {lacks}")
        for record in chain(first, records):
            if may_be_ours and (own := own_line(record)) is not None:
                yield own
                continue
            if (question := mapping.question_of(record)) is not None:
                yield question
        mapping.note_unfound(file)
        mapping.note_missing_gold(file)

    return read


FIELDS: Sequence[SourceFields] = (RAGAS, DEEPEVAL, LANGFUSE, LANGSMITH, TABLE, HUGGING_FACE)
"""The tools whose files are records with fields of their own."""
SOURCES: Mapping[str, Reader] = {
    **{source.name: _by_fields(source) for source in FIELDS},
    "promptfoo": promptfoo_questions,
}
"""How the file of a tool is read, by the tool's name."""


_TABLE = "csv"
_OF_PROMPTFOO = ("vars", "assert", "tests", "prompts", "providers")
_COLUMNS = (
    "__expected",
    "__metadata:",
    "__config:",
    "__description",
    "__threshold",
    "__prefix",
    "__suffix",
    "__metric",
)


def guessed_source(file: Path, part: Part = WHOLE) -> tuple[str, str]:
    """Return the tool that probably wrote a file, and what tells it.

    Raises:
        DataError: the file cannot be read.
        PrerequisiteError: a package is missing that the file needs.
    """
    if file.suffix.lower() in YAML:
        return "promptfoo", "a config in YAML"
    first = files_of(file, part)[0]
    names = [name for record in islice(records_to_import(first, Notes()), 1) for name in record.values]
    if told := [name for name in names if name in _OF_PROMPTFOO or name.startswith(_COLUMNS)]:
        return "promptfoo", f"its fields {', '.join(told)}"
    for source in FIELDS:
        if told := [name for name in source.typical if name in names]:
            return source.name, f"its fields {', '.join(told)}"
    if file.is_dir():
        return "hf", "a folder with data files"
    return _TABLE, "its columns are of no tool that is known"
