"""Roles of models in a profile: model, address, key and request fields, and the secrets among them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.table import Settings

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
        raise SettingsError(f"{where} is not an address: {error}.") from None
    if found := address_secret(url):
        raise SettingsError(
            f"{where} holds {found}: a secret, and addresses are written to reports and logs. {instead}"
        )


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
                f"the environment or of .env: the variable of the role, or one that a header of the service names."
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


# Fields have the names of the chat completions API. Fields that only one server knows are in ``extra_body``, as in
# OpenAI's SDK. TOML has no null, so a field that is not to be sent is named in ``drop``.

_NUMBER, _WHOLE, _TEXT, _TRUTH = "a number", "a whole number", "a text", "true or false"
FIELDS: Mapping[str, str] = {
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), _NUMBER),
    **dict.fromkeys(("seed", "max_tokens", "max_completion_tokens"), _WHOLE),
    **dict.fromkeys(("reasoning_effort", "verbosity", "service_tier", "user", "safety_identifier"), _TEXT),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention"), _TEXT),
    **dict.fromkeys(("store", "parallel_tool_calls"), _TRUTH),
    "stop": "a text, or a list of texts",
    **dict.fromkeys(("logit_bias", "metadata", "prediction"), "a table"),
    "extra_body": "a table",
}
"""What a table may set, and what it has to be."""
SENT = ("temperature", "max_tokens", "seed", "stream", "stream_options", "response_format", "logprobs")
"""What a table may drop: the fields that are sent without it."""
_OF_THE_HARNESS = (
    *("model", "messages", "tools", "functions", "n", "modalities", "audio", "top_logprobs"),
    *(name for name in SENT if name not in FIELDS),
)
"""What the harness decides, because it reads the reply."""
_LEAST = {"temperature": 0, "top_p": 0, "max_tokens": 1, "max_completion_tokens": 1}
_OPTIONS = {"temperature": "temperature", "seed": "seed", "max_tokens": "max_output_tokens"}
"""Fields that are options, too, by their names there."""
_TOGETHER = {"stream": ("stream_options",), "logprobs": ("top_logprobs",)}
"""What makes no sense without a field."""


@dataclass(frozen=True)
class RequestFields:
    """The fields that a role's requests have beside the fields of the harness, and those that they lack.

    Attributes:
        set: the fields that are set, by name; those of ``extra_body`` among them.
        drop: the names of those that are not sent.
    """

    set: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> RequestFields:
        """Return the fields that ``text`` says, as settings have it; none for an empty text."""
        if not text:
            return cls()
        said = json.loads(text)
        return cls(said["set"], tuple(said["drop"]))

    @property
    def text(self) -> str:
        """The fields as one line of JSON; empty where nothing is set or dropped."""
        said = {"set": dict(self.set), "drop": list(self.drop)}
        return json.dumps(said, sort_keys=True, ensure_ascii=False) if self.set or self.drop else ""

    @property
    def sampling(self) -> dict[str, Any]:
        """The set fields that are options, by the names of the options."""
        return {option: self.set[name] for name, option in _OPTIONS.items() if name in self.set}

    def without_options(self, given: Collection[str] = ()) -> RequestFields:
        """Return what is left where the options decide: those of ``sampling``, and dropped ones that are ``given``."""
        spoken = {name for name, option in _OPTIONS.items() if option in given}
        left = {name: value for name, value in self.set.items() if name not in _OPTIONS}
        return replace(self, set=left, drop=tuple(name for name in self.drop if name not in spoken))

    def applied(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with these fields, and without the dropped ones."""
        gone = {*self.drop, *(each for name in self.drop for each in _TOGETHER.get(name, ()))}
        if "max_completion_tokens" in self.set:
            gone.add("max_tokens")
        others = {name: value for name, value in self.set.items() if name not in _OPTIONS}
        return {name: value for name, value in (dict(request) | others).items() if name not in gone}


def request_fields(where: str, table: Mapping[str, Any], beside: Collection[str]) -> RequestFields:
    """Return the fields that a table sets and drops. ``beside`` are the names that it may have besides.

    Raises:
        SettingsError: a field is unknown or cannot be used, is the harness's own, or is set and dropped.
    """
    dropped = table.get("drop", [])
    if not isinstance(dropped, list) or not all(isinstance(each, str) for each in dropped):
        raise SettingsError(f'{where}: drop is {dropped!r}: expected a list of fields, ["temperature"].')
    for name in dropped:
        if name not in SENT:
            raise SettingsError(f"{where}: drop: {unknown('field', name, SENT)}")
    fields = {name: value for name, value in table.items() if name != "drop"}
    for name, value in fields.items():
        _check(where, name, value, (*beside, "drop", *FIELDS))
    extra = fields.pop("extra_body", {})
    _check_extra(f"{where}: extra_body", extra, fields)
    if both := [name for name in dropped if name in fields]:
        raise SettingsError(f"{where}: {both[0]} is set, and it is in drop: keep one of them.")
    if {"max_tokens", "max_completion_tokens"} <= fields.keys():
        raise SettingsError(f"{where}: max_tokens and max_completion_tokens are one limit: keep one of them.")
    return RequestFields({**fields, **extra}, tuple(dict.fromkeys(dropped)))


def _check(where: str, name: str, value: Any, known: Collection[str]) -> None:
    if name in _OF_THE_HARNESS:
        raise _decided(where, name)
    if name not in FIELDS:
        raise SettingsError(
            f"{where}: {unknown('field', name, known)} Put what only your server knows into extra_body = "
            f"{{ {name} = … }}."
        )
    least = _LEAST.get(name)
    if not _fits(FIELDS[name], value):
        raise SettingsError(f"{where}: {name} is {value!r}: expected {FIELDS[name]}.")
    if least is not None and value < least:
        raise SettingsError(f"{where}: {name} is {value!r}: expected {least} or more.")
    _check_plain(f"{where}: {name}", value)


def _decided(where: str, name: str) -> SettingsError:
    leave = f' drop = ["{name}"] leaves it out.' if name in SENT else ""
    return SettingsError(f"{where}: {name} cannot be set: the harness decides it, because it reads the reply.{leave}")


def _fits(kind: str, value: Any) -> bool:
    if kind in (_NUMBER, _WHOLE):
        kinds = int if kind == _WHOLE else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and isfinite(value)
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _TRUTH:
        return isinstance(value, bool)
    if kind == "a table":
        return isinstance(value, dict)
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _check_extra(where: str, extra: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    for name in extra:
        if name in _OF_THE_HARNESS:
            raise _decided(where, name)
        if name in FIELDS:
            raise SettingsError(f"{where}: {name} is a field of its own: write it beside extra_body.")
        if name in fields:
            raise SettingsError(f"{where}: {name} is set beside it, too: keep one of them.")


def _check_plain(where: str, value: Any) -> None:
    """Refuse what JSON does not have, and keys: settings are written into the record of a run."""
    for name, each in _values(value):
        if is_secret(name):
            raise SettingsError(f"{where}: {name} looks like a key. Put keys into variables: name one in api_key_env.")
        if not isinstance(each, (str, int, float, bool)) or (isinstance(each, float) and not isfinite(each)):
            raise SettingsError(f"{where}: {each!r} cannot be sent: expected what JSON has.")


def _values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(each, (dict, list)):
                yield key, each
            else:
                yield from _values(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _values(each, name)
    else:
        yield name, value


ROLES = ("answer", "judge", "writer", "rewrite", "user")
_OPTIONS_OF = {"answer": "chat"}
OWN = ("model", "base_url", "api_key_env")
"""What a table says beside the fields of requests."""


def prefix_of(role: str) -> str:
    """Return the prefix of a role's options: ``chat`` for ``answer``, else the role's name."""
    return _OPTIONS_OF.get(role, role)


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """A judge of a panel with an address of its own: ``[tool.rag_harness.profiles.<profile>.judges.<name>]``.

    ``request`` are the fields of its requests, as ``RequestFields.text`` has them.
    """

    name: str
    model: str
    base_url: str = ""
    api_key_env: str = ""
    request: str = ""

    @property
    def key_variable(self) -> str:
        """The variable that holds the key of its own address."""
        return self.api_key_env or f"RAG_JUDGE_{re.sub(r'[^A-Z0-9]+', '_', self.name.upper())}_API_KEY"


def role_options(where: str, role: str, table: object) -> dict[str, str]:
    """Return the options that the table of a role sets, by name: ``judge_model``, …, ``judge_request``.

    Raises:
        SettingsError: the value is not a table, or one of its entries is not usable. The message names the entry.
    """
    read = _read(where, table)
    return {f"{prefix_of(role)}_{name}": value for name, value in read.items()}


def judge_tables(where: str, tables: object) -> tuple[JudgeTable, ...]:
    """Return the judges of a panel that have tables.

    Raises:
        SettingsError: no table exists, or an entry of one is not usable. The message names the entry.
    """
    if not isinstance(tables, Mapping):
        raise SettingsError(f"{where}: judges is {tables!r}: expected tables, one a judge.")
    found = []
    for name, table in tables.items():
        here = f"{where}, judge {name!r}"
        if "," in name:
            raise SettingsError(f"{here}: a name has no comma: --rag-judge parts judges by commas.")
        said = _read(here, table)
        found.append(JudgeTable(name, **{"model": name, **said}))
    return tuple(found)


def _read(where: str, table: object) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table.")
    said = {name: table[name] for name in OWN if name in table}
    for name, value in said.items():
        if not isinstance(value, str):
            raise SettingsError(f"{where}: {name} is {value!r}: expected a string.")
    check_address(f"{where}: base_url", said.get("base_url", ""), "Name its variable with api_key_env.")
    others = {name: value for name, value in table.items() if name not in OWN}
    request = request_fields(where, others, OWN).text
    return said | ({"request": request} if request else {})


def named_key(name: str, rootdir: str) -> str:
    """Return the key in the variable ``name``, of the environment or ``.env``; empty without one."""
    from dotenv import dotenv_values

    return os.environ.get(name) or dotenv_values(Path(rootdir) / ".env", encoding="utf-8-sig").get(name) or ""


def settings_by_table(settings: Settings, table: JudgeTable) -> Settings:
    """Return the settings in which the judge is asked as its table says. Its address gets no key but its own."""
    found = replace(settings, judge_model=table.model, judge_request=table.request)
    if not (table.base_url or table.api_key_env):
        return found
    return replace(
        found,
        judge_base_url=table.base_url or settings.judge_base_url,
        judge_api_key_env=table.key_variable,
        judge_api_key=named_key(table.key_variable, settings.rootdir),
    )


def keys_of_judges(settings: Settings) -> list[str]:
    """Return the keys of all judges with tables."""
    return [named_key(each.key_variable, settings.rootdir) for each in settings.judge_tables]
