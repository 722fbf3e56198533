"""Data of the experiments of a run: documents, cases and golden set, each read once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from rag_harness.core.errors import DataError, RagHarnessError, SettingsError, unknown
from rag_harness.core.files import bytes_digest, file_digest, files_digest, json_digest
from rag_harness.core.json_text import after_blanks
from rag_harness.core.log import is_worker, log
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.text.comparison import PageNames, composed
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.shingles import PagesOfContexts
from rag_harness.core.types import Case, Document
from rag_harness.data.beir import BeirDataset, read_beir
from rag_harness.data.documents import (
    AUTO,
    ParsedKeeping,
    Unread,
    language_of,
    languages_said,
    page_files,
    pages_digest,
    read_folder,
    read_knowledge_base,
    with_languages,
)
from rag_harness.data.golden import GoldenEntry, GoldenSet, read_golden_set
from rag_harness.data.loaders.text import is_charset
from rag_harness.data.mtrag import MTRAG, MTRAG_UN, MtragDataset, read_mtrag
from rag_harness.data.queries import distribution, read_queries, types_named
from rag_harness.data.query_lines import rows_of_table
from rag_harness.data.record_files import TABLES, is_table
from rag_harness.data.source_records import read_map
from rag_harness.records.expectations import AddedExpectations, stated_in

# Public collections by the name that ``--rag-dataset`` gives them: a kind, a colon and a path.

_SHAPES = "beir:DIR or beir:FILE.zip; mtrag:CLONE/DOMAIN, mtragun:CLONE/DOMAIN or mtragun:reference.jsonl"


def read_collection(named: str, path_of: Callable[[str], Path]) -> BeirDataset:
    """Read a collection; ``path_of`` makes a path of the settings absolute.

    Raises:
        SettingsError: it is of no kind that can be read.
        DataError: its files are missing or malformed; lists the first 20 problems.
    """
    kind, _, path = named.partition(":")
    if kind not in ("beir", MTRAG, MTRAG_UN) or not path:
        raise SettingsError(f"rag_dataset is {named!r}. Name a collection: {_SHAPES}.")
    return read_beir(path_of(path)) if kind == "beir" else read_mtrag(kind, path_of(path))


_OWED = ("expect", "tools")
_DECODER = json.JSONDecoder()


def asked_digest(file: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the digest of a file of questions as if no line had ``expect`` or ``tools``.

    Without any, it is the digest of the bytes. For a table, the lines are made from its rows, by the columns that
    ``mapped`` names.
    """
    if is_table(file):
        return bytes_digest(b"\n".join(_asked(each.text.encode()) for each in rows_of_table(file, mapped)))
    content = file.read_bytes()
    if not any(f'"{key}"'.encode() in content for key in _OWED):
        return bytes_digest(content)
    return bytes_digest(b"\n".join(map(_asked, content.split(b"\n"))))


def _asked(line: bytes) -> bytes:
    """Return a line without the expectations of its answer and of its turns' answers."""
    try:
        text = line.decode("utf-8")
        cuts = list(_cuts(text, after_blanks(text, 0))) if any(f'"{key}"' in text for key in _OWED) else []
    except (ValueError, IndexError, RecursionError):
        return line  # it is not JSON, and the reader of the file reports it
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text.encode()


def _cuts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the places to cut out of the object that begins at ``start``: members with a comma, those of turns, too."""
    comma, first = start, start + 1
    for key, value, end in _members(text, start):
        if key in _OWED:
            after = after_blanks(text, end)
            # The comma before it goes with it. Where no member is left before it, the one behind it does.
            behind = after_blanks(text, after + 1) if text[after] == "," else end
            yield (first, behind) if first else (comma, end)
            first = first and behind
            comma = after
            continue
        first = 0
        if key == "turns" and text[value] == "[":
            for turn in _items(text, value):
                yield from _cuts(text, turn)
        comma = after_blanks(text, end)


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of an object, where its value begins, and where that ends."""
    place = after_blanks(text, start + 1) if text[start] == "{" else len(text)
    while place < len(text) and text[place] == '"':
        key, place = _DECODER.raw_decode(text, place)
        value = after_blanks(text, after_blanks(text, place) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield key, value, end
        place = after_blanks(text, after_blanks(text, end) + 1)


def _items(text: str, start: int) -> Iterator[int]:
    """Yield where each item of a list begins."""
    place = after_blanks(text, start + 1)
    while text[place] != "]":
        yield place
        _, end = _DECODER.raw_decode(text, place)
        place = after_blanks(text, end)
        place = after_blanks(text, place + 1) if text[place] == "," else place


def keeping_of(settings: Settings) -> ParsedKeeping:
    """Return where a run keeps parsed files and languages: beside its vectors, unless its mode keeps nothing."""
    writes = access_of(settings).keeps != "nothing"
    return ParsedKeeping(
        settings.path(settings.cache_dir), writes, charset=charset_of(settings), language=language_of(settings)
    )


def charset_of(settings: Settings) -> str:
    """Return the charset of files that name none, in lower case; empty where it is guessed.

    Raises:
        SettingsError: no charset has that name.
    """
    named = settings.charset.strip().lower()
    if named and not is_charset(named):
        raise SettingsError(f"rag_charset is {settings.charset!r}. Name one that Python knows: cp1252, shift_jis, …")
    return named


def _refuse_passing(unread: Sequence[Unread], keeping: ParsedKeeping) -> None:
    """Refuse to skip a file after a temporary fault, if nothing is written: other processes may not skip it."""
    lines = [each.line for each in unread if each.passing]
    if lines and not keeping.writes:
        why = "A file that cannot be read for now is left out in no run that writes nothing: mend or remove it."
        raise DataError("\n".join([*lines, why]))


class DataSets:
    """The run's own data and the named data of pyproject.toml, each made once.

    Args:
        settings: the settings of the run.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[str, Data] = {}

    @property
    def names(self) -> list[str]:
        """The names of all data. The first is the run's own, whose name is empty."""
        return ["", *(spec.name for spec in self._settings.data)]

    def get(self, name: str = "") -> Data:
        """Return the data called ``name``; an empty name is the run's own.

        Raises:
            SettingsError: pyproject.toml names no such data.
        """
        if name not in self._made:
            own_golden = any(spec.golden and not spec.instead for spec in self._settings.data if spec.name == name)
            self._made[name] = Data(self._settings_for(name), name, own_golden)
        return self._made[name]

    def _settings_for(self, name: str) -> Settings:
        if not name:
            return self._settings
        known = {spec.name: spec for spec in self._settings.data}
        if name not in known:
            raise SettingsError(
                f"{unknown('data', name, known)} Name its folder in pyproject.toml: [tool.rag_harness.data.{name}]."
            )
        spec = known[name]
        return replace(
            self._settings, kb_dir=spec.kb, queries=spec.queries, golden=spec.golden, expect=spec.expect, dataset=""
        )


class Data:
    """One named set of data. Everything is read on first use.

    Args:
        settings: settings with ``kb_dir``, ``queries`` and ``golden`` of this data.
        name: empty for the run's own.
        own_golden: whether its golden set is about its own documents. Then its cases may be in the golden set.
    """

    def __init__(self, settings: Settings, name: str = "", own_golden: bool = False) -> None:
        self.name: str = name
        self._settings, self._own_golden = settings, own_golden
        self._unread: tuple[Unread, ...] = ()
        self._skipped: tuple[str, ...] = ()

    @cached_property
    def collection(self) -> BeirDataset | None:
        """The public collection that replaces knowledge base and golden set, if the settings name one.

        Raises:
            SettingsError: it is none that can be read.
        """
        named = self._settings.dataset
        if not named:
            return None
        return read_collection(named, self._settings.path)

    @cached_property
    def documents(self) -> list[Document]:
        """The pages of the knowledge base."""
        if self.collection is not None:
            # Looking at 200,000 documents takes a minute, so public collections are English unless the option says not.
            asked = language_of(self._settings)
            return with_languages(self.collection.documents, ENGLISH if asked == AUTO else asked)
        folder, keeping = self._settings.path(self._settings.kb_dir), keeping_of(self._settings)
        if self._settings.unreadable == "skip":
            library = read_folder(folder, keeping)
            _refuse_passing(library.unread, keeping)
            self._unread, documents = library.unread, list(library.documents)
            if not documents:
                lines = [each.line for each in library.unread]
                raise DataError("\n".join([*lines, f"No file of {folder} can be read: there is nothing to ask about."]))
        else:
            documents = read_knowledge_base(folder, keeping)
        log.info("Read %d documents from %s", len(documents), self._settings.kb_dir)
        return documents

    @property
    def languages(self) -> list[str]:
        """What to know about the languages of its documents; nothing where they would have to be parsed for that."""
        if "documents" not in vars(self) and not self._is_markdown():
            return []
        return languages_said(self.documents)

    def _is_markdown(self) -> bool:
        folder = self._settings.path(self._settings.kb_dir)
        is_folder = not self._settings.dataset and folder.is_dir()
        return is_folder and all(file.suffix.lower() == ".md" for file in page_files(folder))

    @property
    def unread(self) -> tuple[Unread, ...]:
        """The unreadable files that were left out, if the settings allow that."""
        _ = self.documents
        return self._unread

    @property
    def lost_gold(self) -> frozenset[str]:
        """Ids of queries with gold in a file that was left out."""
        folder = self._settings.path(self._settings.kb_dir)
        gone = {each.file.relative_to(folder).as_posix() for each in self.unread}
        gold = {case.query.query_id: {*case.qrels, *(each.filename for each in case.evidence)} for case in self._read}
        return frozenset(query_id for query_id, named in gold.items() if named & gone)

    @cached_property
    def digest(self) -> str:
        """Digest of all pages and their metadata."""
        return pages_digest(self.documents)

    @cached_property
    def pages_digest(self) -> str:
        """Digest of the unparsed files of all pages; above 64 MB, of their sizes and times.

        Empty without pages, or where a public collection replaces them.
        """
        folder = self._settings.path(self._settings.kb_dir)
        if self._settings.dataset or not folder.is_dir():
            return ""
        return files_digest(folder, sorted(page_files(folder)))

    @cached_property
    def cases(self) -> list[Case]:
        """All queries with their gold, as in the file. The label ``golden`` says whether one is in the golden set.

        A collection brings its own. Turns that a simulated user says are not among them.
        """
        return [case for case in self._read if case.scenario is None]

    @cached_property
    def scenarios(self) -> list[Case]:
        """The turns that simulated users say, with their gold."""
        return [case for case in self._read if case.scenario is not None]

    @cached_property
    def _read(self) -> list[Case]:
        settings = self._settings
        skipped: list[str] | None = [] if settings.bad_queries == "skip" else None
        if self.collection is not None:
            cases = self.collection.cases()
        else:
            types = types_named(settings.query_types)
            cases = read_queries(self.queries_file, self._checked_folder, types, skipped, self.mapped)
        for problem in () if is_worker() else skipped or ():
            log.info("Skipped: %s", problem)
        self._skipped = tuple(skipped or ())
        if settings.expect:
            where = f"pyproject.toml, [tool.rag_harness.data.{self.name}]: expect" if self.name else "rag_expect"
            owed = AddedExpectations(stated_in(settings.expect, where), places=(where,))
            cases = owed.added_to(cases, self.queries_file)
        if self._own_golden:
            golden = {entry.entry_id for entry in self.golden}
            cases = [_marked(case, case.query.query_id in golden) for case in cases]
        if not is_worker():
            log.info("Read %d queries: %s", len(cases), distribution(cases))
        return cases

    @cached_property
    def find_page(self) -> Callable[[str, str], str] | None:
        """Finds a page by the name that other software gives it, or by words of it; None without pages."""
        if not self.has_documents:
            return None
        return PagesOfContexts(PageNames(self._names_of_pages).find, self._texts_of_pages).find

    def _names_of_pages(self) -> Iterable[str]:
        if self.collection is not None:
            return (document.doc_id for document in self.documents)
        folder = self._settings.path(self._settings.kb_dir)
        return (composed(file.relative_to(folder).as_posix()) for file in page_files(folder))

    def _texts_of_pages(self) -> Mapping[str, str]:
        try:
            return {document.doc_id: document.text for document in self.documents}
        except RagHarnessError as error:
            # A pipeline of the user's own may read pages that cannot be read here.
            log.warning("Contexts without the name of a page are not looked for in the pages: %s", error)
            return {}

    @property
    def has_documents(self) -> bool:
        """Whether there are documents that a context can be looked up in."""
        return self.collection is not None or self._settings.path(self.folder).is_dir()

    @property
    def takes_pages_as_named(self) -> bool:
        """Whether questions name pages, and no folder has to contain these."""
        is_open = self.collection is None and self._checked_folder is None
        return is_open and any(case.context_reference for case in self._read)

    @property
    def _checked_folder(self) -> Path | None:
        """The folder whose pages references must name; none where a service has its documents elsewhere."""
        folder = self._settings.path(self._settings.kb_dir)
        is_usual = self._settings.kb_dir == type(self._settings)().kb_dir
        return None if is_usual and self._settings.queries and not folder.exists() else folder

    @property
    def skipped(self) -> tuple[str, ...]:
        """The faults of the lines of its queries that were left out, if the settings allow that."""
        _ = self._read
        return self._skipped

    @property
    def folder(self) -> str:
        """The folder of its documents, as the settings name it."""
        return self._settings.kb_dir

    @property
    def queries_file(self) -> Path:
        """The file of its queries."""
        return self.collection.tasks if isinstance(self.collection, MtragDataset) else self._settings.queries_path

    @cached_property
    def mapped(self) -> Mapping[str, str]:
        """The column of each field of a table of questions that is not known by its name.

        Raises:
            SettingsError: columns are named, and the run's own questions are not a table.
        """
        mapped = read_map(self._settings.map, "rag_map")
        if mapped and not self.name and not is_table(self.queries_file):
            raise SettingsError(
                f"rag_map names columns of a table ({', '.join(TABLES)}), and {self.queries_file.name} is none: its "
                "lines have our names. Leave it out, or make lines of another tool's file: rag-harness queries import"
            )
        return mapped

    @cached_property
    def queries_digest(self) -> str:
        """Digest of the file of queries, without the expectations of their answers, which change no answer.

        For a collection, it is the digest of its queries or tasks and its judgements.
        """
        of = self.collection
        if isinstance(of, MtragDataset):
            return json_digest([file_digest(self.queries_file), of.domain, of.variant, of.qrels])
        if of is not None:
            return json_digest([[(each.query_id, each.text) for each in of.queries], of.qrels])
        return asked_digest(self.queries_file, self.mapped)

    @property
    def golden_file(self) -> Path:
        """The file of its golden set."""
        return self._settings.path(self._settings.golden)

    @cached_property
    def golden_set(self) -> GoldenSet:
        """The golden set."""
        return read_golden_set(self.golden_file, self._settings.path(self._settings.kb_dir))

    @property
    def golden(self) -> list[GoldenEntry]:
        """The entries of the golden set."""
        return self.golden_set.entries


def _marked(case: Case, is_golden: bool) -> Case:
    """Return the case with the label ``golden``. If the case has such a label already, it stays."""
    return replace(case, metadata={"golden": "yes" if is_golden else "no", **case.metadata})
