"""Reader of many files of any kind: the documents, and the files that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.dataset.document_languages import AUTO, with_languages
from rag_harness.dataset.ingest import files_below, load
from rag_harness.dataset.ingest.file_reading import reading
from rag_harness.dataset.ingest.parsed import GUESSED, PassingError, read_in, unread_parts
from rag_harness.dataset.kept_languages import shares_kept_in
from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.files.log import log
from rag_harness.shown.hidden import escaped
from rag_harness.shown.terminal import line as shown
from rag_harness.types import Document, Metadata
from rag_harness.words.comparison import composed
from rag_harness.work.reporting import report


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
    told = with_languages(documents, keeping.language, shares_kept_in(keeping.folder, keeping.writes))
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
