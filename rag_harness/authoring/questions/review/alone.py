"""Makes sure that a file has only one review at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rag_harness.errors import DataError, SettingsError
from rag_harness.files.alone import HeldError, alone


@contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Keep other reviews of the file out.

    Raises:
        SettingsError: another review is running.
        DataError: the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(file.with_name(f".{file.name}.lock")))
        except HeldError as error:
            raise SettingsError(
                f"{file} is open in another review: {error.by}. Run the command again when that one has ended."
            ) from None
        except OSError as error:
            raise DataError(
                f"Nothing can be kept in {file.parent}: {error.strerror}. Mend its rights, or review a copy of "
                f"{file.name}."
            ) from error
        yield
