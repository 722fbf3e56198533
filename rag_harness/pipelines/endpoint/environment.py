"""The variables that a service's address and headers name, looked up in the environment and in ``.env``."""

from __future__ import annotations

import os
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.settings.literal_keys import VARIABLE


class Environment:
    """Variables by name: of the process, else of ``.env``.

    Args:
        spec: the service that names them.
        rootdir: the folder of ``.env``.
        must_know: whether every variable must be set.
    """

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool) -> None:
        self._spec, self._must_know = spec, must_know
        self._file: dict[str, str | None] | None = None
        self._rootdir = rootdir

    def filled(self, text: str, in_header: bool = False) -> str:
        """Return a text with the values of its variables.

        Raises:
            PrerequisiteError: a variable is not set, or holds what no header may have.
        """
        return VARIABLE.sub(lambda found: self._printable(found[1]) if in_header else self.value(found[1]), text)

    def _printable(self, name: str) -> str:
        value = self.value(name)
        if value and not (value.isascii() and value.isprintable()):
            raise PrerequisiteError(
                f"{name}, a header of the endpoint {self._spec.name!r} ({self._spec.where}), holds a line break or "
                f"another character that no header may have. Set it again without. Nothing was called."
            )
        return value

    def value(self, name: str) -> str:
        """Return the value of a variable; empty where it need not be set.

        Raises:
            PrerequisiteError: it is not set.
        """
        value = os.environ.get(name) or self._from_file().get(name) or ""
        if not value and self._must_know:
            raise PrerequisiteError(
                f"{name} is not set: the endpoint {self._spec.name!r} ({self._spec.where}) needs it. Set it in the "
                f"environment or in .env. Nothing was called."
            )
        return value

    def _from_file(self) -> dict[str, str | None]:
        from dotenv import dotenv_values

        if self._file is None:
            self._file = dict(dotenv_values(self._rootdir / ".env", encoding="utf-8-sig"))
        return self._file
