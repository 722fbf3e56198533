"""The folder of a service. The process that holds its lock owns it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType

from rag_harness.service.state.database import Database
from rag_harness.service.state.problems import StateError

DATABASE = "service.sqlite3"


class StateFolder:
    """A state folder that this process owns while the block lasts.

    Args:
        path: made if it does not exist. Only the owner may read its contents, even if another user made the folder.

    Raises:
        StateError: another server owns it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout

        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FileLock(path / "owner.lock", timeout=0)
            self._lock.acquire()
        except Timeout:
            raise StateError(
                f"Another server is running on {path.name}/: a state folder has one owner. Stop that one, or give "
                f"this one a folder of its own: --state DIR."
            ) from None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise StateError(f"{path.name}/ cannot be written ({why}). Name another: --state DIR.") from error
        self.database: Database = Database(path / DATABASE)
        self._empty_incoming()

    @property
    def incoming(self) -> Path:
        """The folder of uploads that are being read, under random names."""
        return self.path / "incoming"

    def _empty_incoming(self) -> None:
        """Remove uploads that a killed server had begun to read."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        self.incoming.mkdir(mode=0o700, exist_ok=True)

    def of_collection(self, number: int) -> Path:
        """Return the folder of a collection. Its name does not name the tenant."""
        folder = self.path / "collections" / str(number)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)
        return folder

    def __enter__(self) -> StateFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.database.close()
        self._lock.release()
