"""Reader of single files and folders as one collection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_harness.dataset.ingest import LEFT_OUT, is_left_out, is_readable, kinds
from rag_harness.dataset.ingest.file_places import fault_of_place
from rag_harness.dataset.knowledge_base import read_folder, read_structure
from rag_harness.dataset.library import Library, ParsedKeeping, SourceFile, Unread, read_library, sources_in
from rag_harness.errors import DataError
from rag_harness.words.comparison import composed


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
        DataError: a path does not exist, or there is no file with a loader.
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
