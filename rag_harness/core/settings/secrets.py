"""Secrets in settings: names of headers that contain them, and keys in places that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from rag_harness.core.errors import SettingsError

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


# Keys in places that are shown: in an address, in a setting, in a file.
#
# A key comes from a variable, which nothing writes down. Settings, TOML files and addresses are written to reports,
# logs and records of runs. So a key in one of them is refused, and the message does not repeat it.

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""The form in which a value names an environment variable."""
KEY = re.compile(
    r"\b(?:rh_|sk-|[srp]k_live_|pk-lf-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xai-|nvapi-|pplx-|AIza|ya29\.)"
    r"(?=[\w-]{0,200}\d)[\w-]{16,500}"
    r"|\b(?:hf_|gsk_|r8_)[A-Za-z0-9]{20,200}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,4000}\.eyJ[\w-]{8,4000}"  # a JSON Web Token
    r"|(?i:\b(?:bearer|basic)\s{1,9})(?=[^\s]{0,200}\d)[\w.~+/=-]{16,500}"
    r"|(?<=://)[^/\s:@?#]{0,200}:[^/\s@?#$]{1,500}(?=@)"  # a password in an address
)
"""What looks like a key wherever it stands: those of model servers and code hosts, tokens, passwords in addresses."""
USER = "a user or a password"
_AUTHORITY = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:(?=[/\\]))?[/\\]*([^/\\?#]*)")
"""What stands before the path of an address, also where the scheme lacks: ``USER:KEY@HOST:8000``."""
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\$\{")
_LONG = re.compile(r"[A-Za-z0-9]{32,}")


def address_secret(url: str) -> str:
    """Say which part of an address is a secret: ``a user or a password``, ``the value of 'key'``, or ``a key``.

    A value that is a variable, ``?key=${MY_KEY}``, is none. Without a secret the text is empty.
    """
    authority = _AUTHORITY.match(url)
    if authority is not None and "@" in unquote(authority[1]):
        return USER
    before, _, after = url.partition("?")
    query, _, fragment = after.partition("#")
    for name, value in parse_qsl(query, keep_blank_values=True):
        if value and not VARIABLE.search(value) and (is_secret(name) or _is_key(value)):
            return f"the value of {name!r}"
    path = before[authority.end() if authority is not None else 0 :]
    return "a key" if any(map(_is_key, re.split(r"[/#&=;]", f"{path}/{fragment}"))) else ""


def check_address(where: str, url: str, instead: str) -> None:
    """Refuse an address that contains a secret, and a text that is not an address.

    Args:
        where: the setting, or the file and its key, as the message names it.
        url: the address.
        instead: the remedy, a sentence of the message.

    Raises:
        SettingsError: the address is refused. The message names the part of the address, and not the secret.
    """
    try:
        urlsplit(url)
    except ValueError as error:
        raise SettingsError(f"{where} is no address: {error}.") from None
    if found := address_secret(url):
        raise SettingsError(f"{where} holds {found}: a secret, and addresses stand in reports and logs. {instead}")


def check_no_keys(where: str, value: Any) -> None:
    """Refuse a table, a list or a text in which something looks like a key.

    Raises:
        SettingsError: names the place, and not the key.
    """
    for place, text in _texts(value, ()):
        if found := KEY.search(text):
            named = f"{where}: {'.'.join(place)}" if place else where
            what = USER if text[: found.start()].endswith("://") else "a key"
            raise SettingsError(
                f"{named} holds {what}, and settings are written into reports and logs. A key comes from a variable of "
                f"the environment or of .env: that of the role, or one that a header of the service names."
            )


def shown_value(value: object) -> str:
    """Return a value for a message, ``…`` for one that looks like a key."""
    return "…" if KEY.search(str(value)) or address_secret(str(value)) else repr(value)


def bare_address(url: str) -> str:
    """Return the scheme, host and path of somebody else's address: user, query string and fragment may be secret."""
    begin = re.split(r"[?#]", url, maxsplit=1)[0]
    authority = _AUTHORITY.match(begin)
    if authority is not None:
        host = authority.start(1) + authority[1].rfind("@") + 1
        begin = begin[: authority.start(1)] + begin[host:]
    return KEY.sub("…", begin)


def field_secret(value: Any) -> str:
    """Return the name of the field of a request body that contains a key; empty where no field does.

    Placeholders are not keys, and names of fields are not: ``{"key": "title"}``.
    """
    for place, text in _texts(value, ()):
        name = next((each for each in reversed(place) if not each.isdecimal()), "")
        is_named = is_secret(name) and (name.lower() != "key" or any(each.isdigit() for each in text))
        if text and not _PLACEHOLDER.search(text) and (is_named or KEY.search(text)):
            return ".".join(place)
    return ""


def _is_key(part: str) -> bool:
    """Whether a part of an address is a key: it looks like one, or is as long and as mixed as no name of a path."""
    part = VARIABLE.sub("", unquote(part))
    return bool(KEY.search(part)) or any(
        any(map(str.isdigit, each)) and any(map(str.isalpha, each)) for each in _LONG.findall(part)
    )


def _texts(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield all texts of JSON with their places. It does not recurse: nesting may be deep."""
    waiting = [(place, value)]
    while waiting:
        where, each = waiting.pop()
        if isinstance(each, str):
            yield where, each
        elif isinstance(each, Mapping):
            waiting += [((*where, str(name)), inner) for name, inner in each.items()]
            waiting += [(where, str(name)) for name in each if KEY.search(str(name))]
        elif isinstance(each, (list, tuple)):
            waiting += [((*where, str(n)), inner) for n, inner in enumerate(each)]
