"""Documents from files and folders.

Which files are pages, how they load, which could not be read, and their languages.
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache, partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from rag_harness.core.cache import note_use
from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError, meant, unknown
from rag_harness.core.escaping import escaped
from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.files import meant_beside, regular_bytes, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.log import log
from rag_harness.core.package import package_digest
from rag_harness.core.progress import report
from rag_harness.core.registry import module_of, registered, resolve
from rag_harness.core.settings import Settings
from rag_harness.core.text.comparison import composed
from rag_harness.core.text.language_detection import KNOWN, shares
from rag_harness.core.text.languages import ENGLISH, LANGUAGES, has_rules
from rag_harness.core.types import LANGUAGE, Document, Metadata
from rag_harness.data.loaders.child_process import GUESSED, PassingError, read_in, unread_parts
from rag_harness.data.loaders.openapi import is_document as is_openapi
from rag_harness.data.loaders.reading import fault_of_place, reading
from rag_harness.data.loaders.text import is_csv_document

# Loaders of files, one for each suffix, found under the entry point ``rag_harness.loaders``.
#
# A loader is a function ``load(file, doc_id) -> Document``, registered under its suffix without the dot, in lower case:
# ``rst = my_package.rst:load``. It raises UnicodeDecodeError, OSError or ``UnreadableError`` for a file that cannot be
# read.

_PERHAPS = {
    ".json": is_openapi,
    ".yaml": is_openapi,
    ".yml": is_openapi,
    ".csv": is_csv_document,
}
"""Suffixes of many files that are not documents, and our function that looks into them."""
Loader = Callable[[Path, str], Document]
"""Reads a file as the document of that id; what a loader of your own is."""

LEFT_OUT = ("README.md", "requirements*.txt", "robots.txt", "LICENSE*")
"""Files for people or programs that are not pages of the knowledge base."""


def page_files(folder: Path) -> Iterator[Path]:
    """Yield the files below ``folder`` that a loader reads, in the order of their paths.

    Links that lead out of the folder, files that are not regular, and folders such as ``.git`` are skipped.
    """
    return (file for file, fault in files_below(folder) if not fault)


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield all files with the name of a page, in the order of paths, each with a reason not to open it, or "".

    A folder that cannot be listed is yielded with that reason.
    """
    shut: dict[Path, str] = {}
    named = list(_named(folder, shut))
    return ((each, shut.get(each) or fault_of_place(each, folder)) for each in sorted([*named, *shut]))


def is_readable(file: Path) -> bool:
    """Return whether a loader exists for the name of a file."""
    return file.suffix.lower().lstrip(".") in registered("loaders") and not is_left_out(file)


def is_page(file: Path, folder: Path) -> bool:
    """Return whether a file below ``folder`` is a document by its name, or by its beginning if the name may lie."""
    if is_page_named(file):
        return True
    # Only a file that may be opened is read. One that may not does not count as a document, and is not an error.
    is_open = is_readable(file) and not fault_of_place(file, folder)
    return is_open and _PERHAPS[file.suffix.lower()](file)


def is_page_named(file: Path) -> bool:
    """Return whether the name alone says that a file is a document."""
    suffix = file.suffix.lower()
    ours = _PERHAPS.get(suffix)
    is_other = ours is None or module_of("loaders", suffix.lstrip(".")) != ours.__module__
    return is_other and is_readable(file)


def other_files(folder: Path) -> Counter[str]:
    """Return how many files below ``folder`` are not documents, by suffix, without those that are left out by name."""
    found: Counter[str] = Counter()
    for place, folders, files in os.walk(folder):
        folders[:] = _seen(folders)
        others = (Path(place, name) for name in _seen(files))
        found.update(each.suffix.lower() for each in others if not (is_page(each, folder) or is_left_out(each)))
    return found


def kinds() -> str:
    """Return the suffixes that have a loader, as text for a message."""
    return ", ".join(f".{suffix}" for suffix in sorted(registered("loaders")))


def is_left_out(file: Path) -> bool:
    """Return whether a file has a name that is never a document."""
    return any(fnmatchcase(file.name, pattern) for pattern in LEFT_OUT)


def _named(folder: Path, shut: dict[Path, str]) -> Iterator[Path]:
    def tell(error: OSError) -> None:
        shut[Path(error.filename)] = f"a folder that cannot be listed: {error.strerror}. Mend its rights"

    for place, folders, files in os.walk(folder, onerror=tell):
        folders[:] = _seen(folders)
        yield from (file for name in files if is_page(file := Path(place, name), folder))


def _seen(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(".")]


def load(file: Path, doc_id: str, metadata: Metadata | None = None) -> Document:
    """Read ``file`` with the loader of its suffix. ``metadata`` overrides the loader's metadata, also the title."""
    document = _loader(file.suffix.lower().lstrip("."))(file, doc_id)
    if not metadata:
        return document
    title = str(metadata.get("title") or document.title)
    return replace(document, title=title, metadata={**document.metadata, **metadata})


@lru_cache
def _loader(suffix: str) -> Loader:
    loader: Loader = resolve("loaders", suffix)
    return loader


class Pages:
    """The pages of a folder by their names. The folder is looked at when the first name is: questions may name none.

    Args:
        folder: the knowledge base.
        parts: whether a heading or a chunk of a page may be named, too: ``page.md#heading``. Whether there is such a
            part is known when the documents are cut.
    """

    def __init__(self, folder: Path, parts: bool = False) -> None:
        self._folder, self._parts = folder, parts

    @cached_property
    def _names(self) -> frozenset[str]:
        check_folder(self._folder)
        return frozenset(composed(page.relative_to(self._folder).as_posix()) for page in page_files(self._folder))

    def __contains__(self, name: str) -> bool:
        """Return whether a page has that name.

        Raises:
            DataError: the folder does not exist.
        """
        name = composed(name)
        # A page's own name may have a "#" in it, and so may a heading's.
        ends = [at for at, letter in enumerate(name) if letter == "#"] if self._parts else []
        return any(each in self._names for each in (name, *(name[:end] for end in ends)))

    def no_page_said(self, field: str, name: str) -> str:
        """Return the message that no page is called ``name``, which ``field`` says, with the nearest one."""
        page, mark, part = name.partition("#") if self._parts else (name, "", "")
        near = meant(page, sorted(self._names))
        whole = near.replace("'?", f"{mark}{part}'?") if mark else near
        return f"{field} {name!r} is not a page of {self._folder}.{whole}"


def check_folder(folder: Path) -> None:
    """Check that there is a folder of documents.

    Raises:
        DataError: there is none; names the nearest.
    """
    if not folder.is_dir():
        what = f"{folder} is a file, and no folder of documents" if folder.exists() else f"No folder {folder}"
        raise DataError(
            f"{what}.{meant_beside(folder, Path.is_dir)} Name your own with --rag-kb DIR, rag_kb_dir in the ini file "
            "or KB_DIR: documents, and queries.jsonl with the questions. If a service or pipeline has the documents, "
            "name the questions alone: --rag-queries FILE."
        )


AUTO = "auto"
ASSUMED = "language_assumed"
"""The key in the metadata of a document that is too short to tell its language: why it has the one that it has."""
MIXED = "languages_mixed"
"""The key in the metadata of a document in several languages: the share of each, as text."""
_LEAST_SHARE = 0.15
"""The least share of a second language that makes a document mixed. A quote or a table of terms has less."""

_BY_NAME = {"english": ENGLISH, **{rules.name.lower(): code for code, rules in LANGUAGES.items()}}


def language_of(settings: Settings) -> str:
    """Return the language of all documents and questions that the option names; "auto" where it is to be found.

    Raises:
        SettingsError: no language is called that.
    """
    named = settings.language.strip().lower()
    if named in (AUTO, *KNOWN):
        return named
    hint = f" Did you mean {_BY_NAME[named]!r}?" if named in _BY_NAME else ""
    known = (AUTO, ENGLISH, *LANGUAGES)
    others = ", ".join(sorted(set(KNOWN) - set(known)))
    said = f"Unknown language {settings.language!r}.{hint} Known: {', '.join(known)}" if hint else ""
    said = said or unknown("language", settings.language, known).rstrip(".")
    raise SettingsError(f"rag_language: {said}; without rules: {others}.")


def with_languages(
    documents: Sequence[Document], asked: str = AUTO, shares_of: Callable[[str], dict[str, float]] = shares
) -> list[Document]:
    """Return the documents, each with its language in its metadata, unless that is English.

    Args:
        documents: a collection. A document that is too short gets the most frequent language of the others.
        asked: the language of all that state none; ``auto``: it is found in the text.
        shares_of: finds the languages of a text and their shares, the largest first.
    """
    by_option = {} if asked == AUTO else {asked: 1.0}
    found = [_stated(document) or by_option or shares_of(document.text) for document in documents]
    told = Counter(next(iter(each)) for each in found if each)
    usual = told.most_common(1)[0][0] if told else ENGLISH
    return [_told(document, each, usual) for document, each in zip(documents, found, strict=True)]


def _stated(document: Document) -> dict[str, float]:
    """Return the language that metadata state as a code or an English name: "de", "de-AT", "German"."""
    stated = str(document.metadata.get(LANGUAGE) or "").strip().lower()
    language = _BY_NAME.get(stated, stated.replace("_", "-").split("-")[0])
    return {language: 1.0} if language in KNOWN else {}


def _told(document: Document, found: dict[str, float], usual: str) -> Document:
    if not found:
        return _in(document, usual, {ASSUMED: "too short to tell"})
    language, *others = found
    is_mixed = any(found[each] >= _LEAST_SHARE for each in others)
    return _in(document, language, {MIXED: _said(found)} if is_mixed else {})


def _in(document: Document, language: str, more: dict[str, str] | None = None) -> Document:
    """Return the document in a language. English ones stay as they are, so that nothing changes where all are."""
    said = {LANGUAGE: language} if language != ENGLISH or LANGUAGE in document.metadata else {}
    said |= {key: why for key, why in (more or {}).items() if language != ENGLISH or key == MIXED}
    return replace(document, metadata={**document.metadata, **said}) if said else document


def _said(found: dict[str, float]) -> str:
    return ", ".join(f"{language} {share:.0%}" for language, share in found.items() if share >= _LEAST_SHARE)


def languages_said(documents: Iterable[Document]) -> list[str]:
    """Return what to know about the languages of documents, a sentence each; nothing where all are English."""
    known = list(documents)
    counts = Counter(document.language for document in known)
    if set(counts) <= {ENGLISH} and not any(MIXED in each.metadata for each in known):
        return []
    named = ", ".join(f"{count} in {language}" for language, count in counts.most_common())
    lines = [f"Documents by language: {named}."]
    lines += [_without_rules(language, counts[language]) for language in counts if not has_rules(language)]
    short = [each for each in known if ASSUMED in each.metadata]
    if short:
        lines.append(f"{len(short)} too short to tell: taken for the language of most others, {short[0].language}.")
    mixed = [f"{each.doc_id} ({each.metadata[MIXED]})" for each in known if MIXED in each.metadata]
    if mixed:
        more = f" and {len(mixed) - 3} more" if len(mixed) > 3 else ""
        lines.append(f"In several languages, read as the first: {', '.join(mixed[:3])}{more}.")
    return lines


def _without_rules(language: str, count: int) -> str:
    return f"{count} in {language}, which has no rules: words are cut as English ones, and nothing else is done."


# A file holds the shares of one text as JSON. Its folder is named by the digest of the package, its name is the digest
# of the text. So another text or another package has another file, and nothing becomes stale. No file is forced to the
# disk, which would take longer than most texts: where a power cut tears one, it is not a JSON object, and the text is
# read again.

_FOLDER = "languages"


def shares_kept_in(cache: Path | None) -> Callable[[str], dict[str, float]]:
    """Return ``shares``, which keeps its results in the folder of a cache; None keeps nothing.

    A replay keeps them too: otherwise each of its processes would load a library that takes longer than 200 answers.
    """
    if cache is None:
        return shares
    folder = cache / _FOLDER / _found_by()
    note_use(folder)
    return partial(_shares, folder)


def _shares(folder: Path, text: str) -> dict[str, float]:
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    place = folder / digest[:2] / digest[2:]
    found = _kept(place)
    if found is None:
        found = shares(text)
        _keep(place, found)
    return found


def _kept(place: Path) -> dict[str, float] | None:
    with suppress(OSError, ValueError):
        found = json.loads(regular_bytes(place))
        if isinstance(found, dict):
            return found
    return None


def _keep(place: Path, found: dict[str, float]) -> None:
    with suppress(OSError):  # the disk is full, or refuses: the text is read again next time
        write_atomically(place, json.dumps(found).encode())


@lru_cache
def _found_by() -> str:
    """Name everything that decides the languages: this package, and Python, whose releases bring other letters."""
    return f"{package_digest()}-{platform.python_version()}"


# Reader of many files of any kind: the documents, and the files that could not be read.


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, and the id that its document gets."""

    file: Path
    doc_id: str
    metadata: Metadata | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read, and why. ``passing``: the reason is temporary, e.g. it took too long."""

    file: Path
    why: str
    passing: bool = False

    @property
    def line(self) -> str:
        """The file and the reason as one line of text."""
        return escaped(f"{shown(str(self.file))}: {shown(self.why)}.")


@dataclass(frozen=True, slots=True)
class Library:
    """The result of a reading. ``parsed`` is the number of files that were not in the cache."""

    documents: tuple[Document, ...]
    unread: tuple[Unread, ...]
    parsed: int = 0


@dataclass(frozen=True, slots=True)
class ParsedKeeping:
    """The cache of parsed files and their languages. Without ``folder`` there is none; without ``writes`` it is read.

    ``apart``: no other process reads the same files meanwhile. ``charset``: for files that name none. ``language``: of
    all documents that state none, or "auto".
    """

    folder: Path | None = None
    writes: bool = False
    apart: bool = False
    charset: str = ""
    language: str = AUTO


def sources_in(folder: Path, known: Mapping[str, Metadata], below: str = "") -> tuple[list[SourceFile], list[Unread]]:
    """Return the files to read in a folder, and those not to open. ``known`` is the metadata by path in the folder.

    The id of a document is ``below`` and its path.
    """
    sources, refused, taken = [], [], dict[str, Path]()
    for file, fault in files_below(folder):
        path = composed(file.relative_to(folder).as_posix())
        twin = taken.setdefault(path, file)
        if fault:
            refused.append(Unread(file, fault))
        elif twin != file:
            same = f"its name is that of {twin.name!r}, with accents written otherwise. Rename one of the two"
            refused.append(Unread(file, same))
        else:
            sources.append(SourceFile(file, f"{below}{path}", known.get(path)))
    return sources, refused


def read_library(sources: Sequence[SourceFile], refused: Sequence[Unread], keeping: ParsedKeeping) -> Library:
    """Read every file, in order. An unreadable file does not stop the others."""
    documents: list[Document] = []
    unread = list(refused)
    with reading(keeping.folder, keeping.writes, keeping.apart, keeping.charset) as going_on:
        for number, source in enumerate(sources):
            report("reading", number, len(sources), "files")
            found = _read(source)
            if isinstance(found, Unread):
                log.warning("Not read: %s", found.line)
                unread.append(found)
            else:
                _tell_what_lacks(found)
                documents.append(found)
        report("reading", len(sources), len(sources), "files")
    told = with_languages(documents, keeping.language, shares_kept_in(keeping.folder))
    return Library(tuple(told), tuple(unread), going_on.parsed)


def _read(source: SourceFile) -> Document | Unread:
    try:
        return load(source.file, source.doc_id, source.metadata)
    except UnicodeDecodeError as error:
        return Unread(source.file, f"not UTF-8 at byte {error.start}. Save the file as UTF-8")
    except OSError as error:
        return Unread(source.file, f"cannot be read: {error.strerror}")
    except DataError as error:
        return Unread(source.file, str(error).rstrip("."), isinstance(error, PassingError))
    except PrerequisiteError:
        raise  # the loader's package is missing: no file of this kind can be read
    except Exception as error:  # a loader of the user's own
        log.warning("The loader of %s failed", source.doc_id, exc_info=True)
        return Unread(source.file, f"its loader failed: {type(error).__name__}: {error}")


def _tell_what_lacks(document: Document) -> None:
    hidden = document.metadata.get("hidden_characters")
    if hidden:
        log.warning("%s: %d characters of hidden text were left out", shown(document.doc_id), hidden)
    charset = document.metadata.get(GUESSED)
    if charset:
        log.warning("%s: %s", shown(document.doc_id), read_in(str(charset)))
    pages = document.metadata.get("unread_pages")
    if pages:
        log.warning("%s: pages that cannot be read: %s", shown(document.doc_id), ", ".join(map(str, pages)))
    for part in unread_parts(document):
        log.warning("%s: not read: %s", shown(document.doc_id), shown(part))


NOWHERE = ParsedKeeping()

_KEPT_KEYS = (
    "id",
    "title",
    "category",
    "primary_topic",
    "secondary_topics",
    "topics",
    "version",
    "status",
    "effective_date",
    "supersedes",
    "language",
)


def read_knowledge_base(folder: Path, keeping: ParsedKeeping = NOWHERE) -> list[Document]:
    """Read every file below ``folder`` that has a loader, except README.md, ordered by path.

    Raises:
        DataError: the folder is missing or has no page, or files cannot be read; names every file.
    """
    library = read_folder(folder, keeping)
    if library.unread:
        raise DataError("\n".join([*(each.line for each in library.unread), *_remedy(library)]))
    return list(library.documents)


def read_folder(folder: Path, keeping: ParsedKeeping = NOWHERE) -> Library:
    """Read all readable files below ``folder``, and name the others.

    Raises:
        DataError: the folder is missing, has no file with a loader, or has no text.
    """
    check_folder(folder)
    sources, refused = sources_in(folder, read_structure(folder / "structure.json"))
    library = read_library(sources, refused, keeping)
    if not library.unread and not any(document.text.strip() for document in library.documents):
        raise DataError(f"No page with text in {folder}: a knowledge base is one or more files of {kinds()}.")
    return library


def _remedy(library: Library) -> list[str]:
    """Return the way to go on without the unread files; nothing if all are Markdown, which is easily mended."""
    mixed = any(each.file.suffix.lower() != ".md" for each in library.unread)
    return ["Mend or remove these files, or leave them out of the run: --rag-unreadable=skip"] if mixed else []


def read_structure(file: Path) -> dict[str, dict[str, Any]]:
    """Return the metadata of pages by path; empty where the file does not exist.

    Raises:
        DataError: the file cannot be read.
    """
    if not file.is_file():
        return {}
    try:
        pages = read_json(file.read_text(encoding="utf-8-sig"))["pages"]
        return {composed(page["filename"]): {key: page[key] for key in _KEPT_KEYS if key in page} for page in pages}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: expected an object with a list 'pages' of objects with a 'filename' ({type(error).__name__}: "
            f"{error}). Mend it, or remove it: metadata is optional."
        ) from error


def pages_digest(documents: list[Document]) -> str:
    """Return a digest of all pages and their metadata, a part of the fingerprint."""
    state = blake2b(digest_size=16)
    for document in documents:
        pages = [json.dumps(document.pages)] if document.pages else []
        for part in (document.doc_id, document.text, json.dumps(dict(document.metadata), sort_keys=True), *pages):
            encoded = part.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.hexdigest()


def read_paths(paths: Sequence[Path], keeping: ParsedKeeping) -> Library:
    """Read files and folders as one collection.

    A single folder is read as ``--rag-kb`` reads it. Otherwise the id of a document is its path below the common
    folder.

    Raises:
        DataError: a path does not exist, or the single folder has no file with a loader.
    """
    if len(paths) == 1 and paths[0].is_dir():
        return read_folder(paths[0], keeping)
    return read_library(*sources_of(paths), keeping)


def sources_of(paths: Sequence[Path]) -> tuple[list[SourceFile], list[Unread]]:
    """Return the files that ``read_paths`` would read, and those that it would refuse without opening.

    Raises:
        DataError: a path does not exist, or no file has a loader.
    """
    missing = [str(path) for path in paths if not os.path.lexists(path)]
    if missing:
        raise DataError(f"No file or folder {', '.join(missing)}.")
    if len(paths) == 1 and paths[0].is_dir():
        found_alone = sources_in(paths[0], read_structure(paths[0] / "structure.json"))
        if not any(found_alone):
            raise DataError(f"No page in {paths[0]}: a knowledge base is one or more files of {kinds()}.")
        return found_alone
    places = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - without .., and links as they are
    above = Path(os.path.commonpath([place if place.is_dir() else place.parent for place in places]))
    found = list(_found(places, above))
    sources = {each.file: each for each in found if isinstance(each, SourceFile)}
    refused = {each.file: each for each in found if isinstance(each, Unread)}
    return list(sources.values()), list(refused.values())


def _found(places: Sequence[Path], above: Path) -> Iterator[SourceFile | Unread]:
    for place in places:
        if place.is_dir():
            below = place.relative_to(above).as_posix()
            known = read_structure(place / "structure.json")
            sources, refused = sources_in(place, known, "" if below == "." else f"{below}/")
            yield from sources
            yield from refused
        else:
            fault = fault_of_place(place, place.parent) or _fault_of_kind(place)
            yield Unread(place, fault) if fault else SourceFile(place, composed(place.relative_to(above).as_posix()))


def _fault_of_kind(file: Path) -> str:
    if is_left_out(file):
        return f"no document: {', '.join(LEFT_OUT)} are left out. Rename it"
    return "" if is_readable(file) else f"no loader reads it: there are some for {kinds()}"
