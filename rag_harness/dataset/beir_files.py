"""The files of a BEIR folder or zip, as streams of rows; a zip is never unpacked to disk."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

from rag_harness.errors import DataError

Folder: TypeAlias = "Path | zipfile.Path"

_SHAPE = "A BEIR collection is corpus.jsonl, queries.jsonl and qrels/test.tsv"
_SHOWN = 20
"""Most problems that an error lists. A corpus has millions of lines, and all may have the same mistake."""
UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
"""Errors of a damaged zip. RuntimeError is an encrypted zip; its subclass NotImplementedError a rare compression."""


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Yield the folder with corpus.jsonl: ``path`` or the root of the zip, or a folder inside.

    Raises:
        DataError: there is no such folder, or a file in it cannot be read.
    """
    if not path.exists():
        raise DataError(f"No folder or zip {path}. {_SHAPE}, in a folder or a zip.")
    try:
        if path.is_dir():
            yield _with_corpus(path, path)
        else:
            with zipfile.ZipFile(path) as archive:
                yield _with_corpus(zipfile.Path(archive), path)
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read: {error}. Name a BEIR folder, or a zip that is whole.") from error


def _with_corpus(top: Folder, path: Path) -> Folder:
    # A Mac adds these to zips.
    inner = sorted((each for each in top.iterdir() if each.name != "__MACOSX" and each.is_dir()), key=str)
    for folder in (top, *inner):
        if (folder / "corpus.jsonl").is_file():
            return folder
    raise DataError(f"No corpus.jsonl in {path}, nor in a folder inside. {_SHAPE}.")


def qrels_file(folder: Folder, split: str) -> Folder:
    """Return the file of a split's judgements. For an unknown split, the DataError names the existing ones."""
    qrels = folder / "qrels"
    file = qrels / f"{split}.tsv"
    if file.is_file():
        return file
    names = sorted(each.name for each in qrels.iterdir()) if qrels.is_dir() else []
    splits = ", ".join(name.removesuffix(".tsv") for name in names if name.endswith(".tsv"))
    found = f"Splits there: {splits}." if splits else "Without judgements nothing can be scored."
    raise DataError(f"No {file}. {_SHAPE}. {found}")


def lines_by_number(file: Folder) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with numbers from 1, without line ends and byte order mark."""
    if not file.is_file():
        raise DataError(f"No {file}. {_SHAPE}.")
    # A zip member splits lines in Python, which is slow; a BufferedReader around it does it in C.
    with file.open("rb") as member, io.BufferedReader(cast("Any", member)) as stream:
        for number, line in enumerate(stream, 1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if content.strip():
                yield number, content.rstrip(b"\r\n")


def objects(file: Folder, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object on each line of a JSONL file, with its place. Other lines become problems."""
    for number, line in lines_by_number(file):
        where = f"{file}:{number}"
        try:
            row = json.loads(line.decode())
        except UnicodeDecodeError:
            problems.append(f"{where}: not UTF-8. Save the file as UTF-8.")
        except (ValueError, RecursionError) as error:
            problems.append(f"{where}: no JSON: {error}. Each line is one object.")
        else:
            if isinstance(row, dict):
                yield where, row
            else:
                problems.append(f"{where}: expected an object.")


def refuse(problems: Sequence[str]) -> None:
    """Raise a DataError with the first problems, if there are any."""
    if problems:
        more = [f"… and {len(problems) - _SHOWN} more."] if len(problems) > _SHOWN else []
        raise DataError("\n".join([*problems[:_SHOWN], *more]))
