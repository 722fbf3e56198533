"""Names of headers and parameters that hold secrets."""

from __future__ import annotations

import re

SECRET_NAME = re.compile(
    r"(?i)(x[-_])?(api|subscription)[-_]?key|(access|refresh|id|auth)[-_]token|(client[-_])?secret|password|authorization"
)
"""Matches the whole name of a field of a request."""
SECRET_HEADER = re.compile(r"(?i)auth|key|token|secret|cookie|openai-(organization|project)")
"""Matches a part of the name of a header."""
_SECRET_PARAMETER = re.compile(r"(?i)key|token|sig|signature|x-(amz|goog)-(signature|credential|security-token)")


def is_secret(parameter: str) -> bool:
    """Return whether a parameter of a query string or a form has the name of a secret."""
    return bool(SECRET_NAME.fullmatch(parameter) or _SECRET_PARAMETER.fullmatch(parameter))
