"""The text of a file that another tool has written."""

from __future__ import annotations

from pathlib import Path

from rag_harness.errors import DataError


def text_of(file: Path, most: int) -> str:
    """Return the text of ``file`` without a byte order mark.

    Args:
        file: the file.
        most: the most bytes that may be read.

    Raises:
        DataError: the file is missing, empty, too large or not UTF-8.
    """
    size = check_there(file)
    if size > most:
        raise DataError(f"{file} has {size / 2**20:,.0f} MiB; {most >> 20} MiB are read at most. Split it.")
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(file, content[: error.start].count(b"\n") + 1) from None
    if not text.strip():
        raise DataError(f"{file} is empty.")
    return text


def check_there(file: Path) -> int:
    """Return the bytes of ``file``.

    Raises:
        DataError: there is no such file, or it is empty.
    """
    if file.is_dir():
        raise DataError(f"{file} is a folder. Name a file in it.")
    if not file.is_file():
        raise DataError(f"No file {file}.")
    size = file.stat().st_size
    if not size:
        raise DataError(f"{file} is empty.")
    return size


def not_utf8(file: Path, line: int) -> DataError:
    """Return the error of a file with a line that is not UTF-8."""
    return DataError(f"{file}:{line}: not UTF-8. Save the file as UTF-8 (spreadsheets: “CSV UTF-8”).")
