"""Descriptions of services as experiments.

Address, request, answer and session, their checks and their JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from sys import float_info
from typing import Any
from urllib.parse import urlsplit

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.json_text import Schema, closed, document, list_schema, text_schema
from rag_harness.core.settings.profiles import check_table_keys, pyproject_table, toml_file
from rag_harness.core.settings.roles import SECRET_HEADER, USER, VARIABLE, address_secret, field_secret

# The description of a service: its address, request and answer. ``endpoints`` reads it from TOML.


@dataclass(frozen=True)
class AnswerPaths:
    """Where the parts of an answer are: JSONPath, JSON Pointer, or a plain name. A ``?`` at the end means optional.

    ``text``, ``id``, ``document`` and ``score`` are looked up in each item of ``contexts``.
    """

    answer: str = "answer"
    contexts: str = ""
    text: str = "text?"
    id: str = "id?"
    document: str = "document?"
    score: str = "score?"
    citations: str = ""
    confidence: str = ""
    decision: str = ""
    abstained: str = ""
    model: str = ""
    usage_prompt: str = ""
    usage_completion: str = ""
    error: str = ""


@dataclass(frozen=True)
class StreamReading:
    """The names of a stream's server-sent events. ``text`` is the path of a piece of text in the data of its event.

    Without ``text`` the data are the text. The text of ``replace`` replaces all pieces before it. Without ``final``,
    the stream is complete when its connection ends properly.
    """

    token: str = "token"
    text: str = ""
    replace: str = "replace"
    final: str = ""
    error: str = "error"


@dataclass(frozen=True)
class VersionReading:
    """Where the version of a service is: at an address, in its JSON or a header; or in the output of a command.

    All empty: the version is unknown.
    """

    url: str = ""
    path: str = ""
    header: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return bool(self.url or self.command)


@dataclass(frozen=True)
class HistoryLimits:
    """The limits of the history that is sent: turns, and characters of their messages. None: no limit."""

    most_turns: int | None = None
    most_chars: int | None = None

    def __bool__(self) -> bool:
        return self != HistoryLimits()


@dataclass(frozen=True)
class OpenRequest:
    """The request that opens a session. ``body`` is JSON as text; "" sends none."""

    url: str
    method: str = "POST"
    body: str = "{}"


@dataclass(frozen=True)
class SessionReading:
    """The sessions of a service that keeps conversations itself. All empty: it keeps none.

    Attributes:
        path: where the service states the id of a session: in the reply to ``open``, or else in each answer. With a
            ``?`` at its end, answers after the first may leave it out.
        id: template of the id, where the client chooses it: ``{{uuid}}``, ``{{conversation}}``.
        open: the request that opens a session, where one is needed.
        changes: whether each answer states the id for the next turn.
        lost: a path. What it finds, if it is neither null nor false, says that the service does not know the session.
        resumes: whether later runs may go on in the sessions of a run that was cut off. None: ``may_resume`` says.
    """

    path: str = ""
    id: str = ""
    open: OpenRequest | None = None
    changes: bool = False
    lost: str = ""
    resumes: bool | None = None

    def __bool__(self) -> bool:
        return bool(self.path or self.id)

    @property
    def may_resume(self) -> bool:
        """Whether later runs may go on in its sessions: by default, where the service shows that it has lost one.

        A service that takes ids of the client takes any, also those that it does not know.
        """
        return self.resumes if self.resumes is not None else bool(self.path or self.lost)


@dataclass(frozen=True)
class EndpointSpec:
    """One service.

    Attributes:
        name: the name of the experiment.
        url: the address; may hold ``${VARIABLE}`` and placeholders, whose values are quoted.
        kind: ``json``: one answer; ``sse``: server-sent events; ``openai``: a chat endpoint; ``mcp``: a tool over HTTP.
        method: HTTP method.
        headers: names and values; a value may hold ``${VARIABLE}``.
        body: template of the request body as JSON; of the tool's arguments where ``kind`` is ``mcp``. "" sends no body.
        model: the model of a chat endpoint.
        tool: the tool to call over MCP.
        read: where the parts of an answer are.
        stream: the events of a stream.
        version: where its version is.
        history: how much is sent of what was said before.
        session: its sessions, where it keeps conversations itself.
        data: the named data whose questions it gets; empty is the run's own.
        timeout: seconds that one call may take; 0: as ``--rag-timeout`` says.
        concurrency: most calls in flight; 0: as ``--rag-concurrency`` says.
        rpm: most calls a minute; 0: as ``--rag-rpm`` says.
        usd_per_call: the price of a call where no price table has one; None: unknown.
        expect: what each of its answers owes, JSON objects.
        traces: ``otlp``: its spans are received and fill what its answers do not say; "" for none.
        traces_port: where they are received, on 127.0.0.1.
        traces_wait: seconds to wait for spans after an answer, at most.
        traces_late: seconds without a new span after which a trace counts as whole.
        where: the file and table that it was read from.
    """

    name: str
    url: str
    kind: str = "json"
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    model: str = ""
    tool: str = ""
    read: AnswerPaths = AnswerPaths()
    stream: StreamReading = StreamReading()
    version: VersionReading = VersionReading()
    history: HistoryLimits = HistoryLimits()
    session: SessionReading = SessionReading()
    data: str = ""
    timeout: float = 0.0
    concurrency: int = 0
    rpm: float = 0.0
    usd_per_call: float | None = None
    expect: tuple[str, ...] = ()
    traces: str = ""
    traces_port: int = 4318
    traces_wait: float = 6.0
    traces_late: float = 0.5
    where: str = field(default="", compare=False)


EXPERIMENT_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,59}"
"""The pattern of a name that an experiment can have."""
_NAME = re.compile(EXPERIMENT_NAME)
_RESERVED = ("golden", "queries")
_PYTEST = ("filterwarnings", "parametrize", "rag_expect", "rag_experiment", "skip", "skipif", "usefixtures", "xfail")
"""Markers with a meaning. An experiment marks its tests with its name, so its name must be none of these."""
RESERVED_NAMES = (*_RESERVED, *_PYTEST)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_VALUE = re.compile(
    r"(?i)^(bearer|basic|token)\s|^(sk|pk|ghp|xox[a-z]|AKIA|eyJ)[-_A-Za-z0-9]{8}|[A-Za-z0-9+/_=-]{32}"
)
"""Values that look like a key, in a header of any name."""


def check_name(name: Any, where: str) -> None:
    """Refuse a name that an experiment cannot have.

    Raises:
        SettingsError: the name is not allowed. The message has the rule.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise SettingsError(
            f"{where}: {name!r} is not a name for an experiment: a letter, then letters, digits, _ and - (not golden, "
            f'queries or a marker of pytest). Say it in the file: name = "my_service".'
        )


def checked_text_value(where: str, key: str, value: Any) -> str:
    """Return a string.

    Raises:
        SettingsError: the value is none.
    """
    if not isinstance(value, str):
        raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")
    return value


def checked_number_value(where: str, key: str, value: Any, whole: bool = False) -> float:
    """Return a number that is not negative.

    Raises:
        SettingsError: the value is none.
    """
    is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= float_info.max:
        raise SettingsError(f"{where}: {key} is {value!r}: expected a {'whole ' * whole}number, 0 or more.")
    found: float = value
    return found


def check_url(where: str, url: str) -> None:
    """Refuse an address that is not an HTTP address, or that contains a secret.

    Raises:
        SettingsError: the address is refused. The message has the reason.
    """
    if not url:
        raise SettingsError(f'{where} has no url: name the address that is asked, url = "https://…".')
    check_no_secret(where, url)
    shown = VARIABLE.sub("1", url)
    try:
        parts = urlsplit(shown if not url.startswith("${") or "://" in shown else f"http://{shown}")
        parts.port  # noqa: B018 - it raises where the port is not a number
    except ValueError as error:
        raise SettingsError(f"{where}: url is {url!r}: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{where}: url is {url!r}: expected http://… or https://….")


def check_no_secret(where: str, url: str) -> None:
    """Refuse an address, or a path of one, that contains a secret.

    Raises:
        SettingsError: names the part, and not the secret.
    """
    found = address_secret(url)
    if found == USER:
        raise SettingsError(f"{where}: url holds a user or a password. Put them into a header: Authorization.")
    if found:
        name = found.partition("'")[2].rstrip("'") or "my_key"
        raise SettingsError(f"{where}: url holds a secret, {found}. Name its variable there: {_named(name)}")


def check_filled(where: str, url: str, filled: str) -> None:
    """Refuse an address that is wrong after its variables are filled in, or that then holds a user or a password.

    Raises:
        SettingsError: the values are not usable. The message has the fault, without the values of the variables.
    """
    try:
        parts = urlsplit(filled)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise SettingsError(
            f"{where}: url is {url!r}, and with its variables filled in it does not begin with http://HOST or "
            f"https://HOST."
        )
    if parts.username or parts.password:
        raise SettingsError(f"{where}: a variable of url {url!r} holds a user or a password. Put them into a header.")


def checked_headers(where: str, given: Any) -> tuple[tuple[str, str], ...]:
    """Return the headers of a table.

    Raises:
        SettingsError: the value is not a table of strings, or a header contains a secret instead of the name of a
            variable.
    """
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: headers is {type(given).__name__}: expected a table of names and strings.")
    for name, value in given.items():
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise SettingsError(f"{where}: header {name!r} is not a string of one line of ASCII.")
        if not _HEADER.fullmatch(name):
            raise SettingsError(f"{where}: {name!r} is not a name of a header: letters, digits and - make one.")
        literal = VARIABLE.sub("", value)
        if (SECRET_HEADER.search(name) and literal == value) or _SECRET_VALUE.search(literal.strip()):
            raise SettingsError(
                f"{where}: header {name!r} holds a secret. Put it into the environment or .env, and name it "
                f'here: "{name}" = {_named(name)}'
            )
    return tuple(given.items())


def body_text(where: str, key: str, body: Any) -> str:
    """Return a request body as JSON.

    Raises:
        SettingsError: it is not JSON, or contains ``${VARIABLE}``. Recordings and rows store bodies, so a secret would
            be stored.
    """
    try:
        _refuse_variables(where, key, body)
        if found := field_secret(body):
            raise SettingsError(
                f"{where}: {key} has a key in {found!r}, and bodies are kept in rows and recordings. Send it in a "
                f'header that names its variable: headers = {{ Authorization = "Bearer ${{MY_KEY}}" }}'
            )
        return json.dumps(body, allow_nan=False)
    except RecursionError:
        raise SettingsError(f"{where}: {key} is nested too deeply.") from None
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{where}: {key} is not JSON: {error}. Write dates in quotes.") from None


def _refuse_variables(where: str, key: str, body: Any) -> None:
    for value in body.values() if isinstance(body, Mapping) else body if isinstance(body, list) else ():
        _refuse_variables(where, key, value)
    found = VARIABLE.search(body) if isinstance(body, str) else None
    if found:
        raise SettingsError(f"{where}: {key} holds {found[0]}, but it is kept in rows and recordings. Use a header.")


def _named(name: str) -> str:
    return '"${' + re.sub(r"\W+", "_", name).upper() + '}"'


def expect_texts(where: str, value: Any) -> tuple[str, ...]:
    """Return each table as JSON.

    Raises:
        SettingsError: the value is not a list of tables.
    """
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise SettingsError(f"{where}: expect is {value!r}: expected a list of tables, [{{max_words = 120}}].")
    return tuple(json.dumps(each, default=str) for each in value)


# The table ``[session]`` of a service that keeps conversations itself, and what the rest of its spec must then be.

SESSION_TEXTS, SESSION_FLAGS = ("path", "id", "lost"), ("changes", "resumes")
SESSION_SENT = re.compile(r"\{\{\s{0,9}session\s{0,9}(\??)\s{0,9}\}\}")
"""Where the session is in what is sent."""
_HISTORY = re.compile(r"\{\{\s{0,9}\*?\s{0,9}(history|messages)\b")


def read_session(table: Mapping[str, Any], where: str, url: str, headers: Sequence[str], body: str) -> SessionReading:
    """Return the table ``session`` of a service, whose other parts are given, as text.

    Raises:
        SettingsError: a key or value cannot be used, or does not go with the rest of the service.
    """
    if "session" not in table:
        return SessionReading()
    given, here = table["session"], f"{where}, [session]"
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: session is {given!r}: expected a table, [session].")
    check_table_keys(here, given, {*SESSION_TEXTS, *SESSION_FLAGS, "open"})
    told: dict[str, Any] = {
        name: checked_text_value(here, name, given[name]) for name in SESSION_TEXTS if name in given
    }
    told |= {name: _flag(here, name, given[name]) for name in SESSION_FLAGS if name in given}
    told |= {"open": _open(here, given["open"])} if "open" in given else {}
    found = SessionReading(**told)
    _check_id(found, here)
    _check_sent(found, where, url, [*headers, body, url])
    if "history" in table or (said := _HISTORY.search(body)):
        what = "[history]" if "history" in table else f"{{{{{said[1]}}}}} in its body"  # type: ignore[index]
        raise SettingsError(
            f"{where} has [session] and {what}: a service that keeps conversations itself is sent each question alone. "
            f"Leave one of them out."
        )
    return found


def _check_id(found: SessionReading, here: str) -> None:
    if bool(found.path) == bool(found.id):
        raise SettingsError(
            f"{here} has {'both path and id' if found.id else 'neither path nor id'}. Where the service chooses the "
            f'session, say where its reply has the id, path = "session_id"; where the client does, id = "{{{{uuid}}}}".'
        )
    if found.id and "{{uuid}}" not in found.id:
        raise SettingsError(
            f"{here}: id is {found.id!r}, without {{{{uuid}}}}: a later run, or a repeat, would go on in the sessions "
            f'of this one. Write id = "{found.id}-{{{{uuid}}}}".'
        )
    if found.id and (found.open or found.changes):
        name = "open" if found.open else "changes"
        raise SettingsError(f"{here} has both id and {name}: {name} is for sessions that the service chooses.")
    if found.open and found.changes:
        raise SettingsError(f"{here} has both open and changes: a session that is opened keeps its id.")


def _check_sent(found: SessionReading, where: str, url: str, sent: Sequence[str]) -> None:
    if not any(SESSION_SENT.search(each) for each in sent):
        raise SettingsError(
            f"{where} has [session], and the session is never sent. Put {{{{session}}}} where the service looks for "
            f"it: in body, headers or url."
        )
    if found.path and found.open is None and any(not mark for mark in SESSION_SENT.findall(url)):
        raise SettingsError(
            f"{where}: url holds {{{{session}}}}, and the first turn of a conversation has none yet. Say how one is "
            f"opened, session.open, or write {{{{session?}}}} where it may be missing."
        )


def _open(here: str, given: Any) -> OpenRequest:
    if not isinstance(given, Mapping):
        raise SettingsError(f'{here}: open is {given!r}: expected a table, open = {{ url = "/sessions" }}.')
    check_table_keys(f"{here}, open", given, ("url", "method", "body"))
    url, body = checked_text_value(f"{here}, open", "url", given.get("url", "")), given.get("body", {})
    if not url:
        raise SettingsError(f'{here}, open has no url: name the address that opens a session, url = "/sessions".')
    check_no_secret(f"{here}, open", url)
    if not isinstance(body, (Mapping, list)):
        raise SettingsError(f"{here}, open: body is {body!r}: expected a table or a list.")
    sent = body_text(f"{here}, open", "body", body)
    method = checked_text_value(f"{here}, open", "method", given.get("method", "POST")).upper()
    return OpenRequest(url, method, "" if method == "GET" else sent)


def _flag(here: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{here}: {name} is {value!r}: expected true or false.")
    return value


# Services as experiments: ``[tool.rag_harness.endpoints.<name>]`` in pyproject.toml, or a file for ``--rag-endpoint``.
#
# A secret header names a variable: ``"Bearer ${MY_KEY}"``. Its value is looked up for each call. It is never in
# settings, rows, recordings or logs.

ENDPOINT_KINDS = ("json", "sse", "openai", "mcp")
_OF_TABLES = ("openai", "mcp")
"""Kinds whose body, or whose tool's arguments, have names."""
TEXTS = ("url", "kind", "method", "model", "tool", "data", "traces")
OF_TRACES = ("traces_port", "traces_wait", "traces_late")
_NUMBERS = ("timeout", "concurrency", "rpm", "usd_per_call", *OF_TRACES)
WHOLE = ("concurrency", "traces_port")
TRACES = ("otlp",)
_MESSAGES = "{{messages}}"
_QUESTION_ALONE = [{"role": "user", "content": "{{query}}"}]
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
_DEFAULT_READING: Mapping[str, Mapping[str, str]] = {
    "json": {},
    "sse": {"answer": "streamed"},
    "openai": {
        "answer": "choices[0].message.content",
        "model": "model?",
        "usage_prompt": "usage.prompt_tokens?",
        "usage_completion": "usage.completion_tokens?",
    },
    "mcp": {"answer": "text"},
}
"""Default paths of the answer's parts, by kind of service."""


def read_endpoints(rootdir: Path, files: Sequence[str]) -> tuple[EndpointSpec, ...]:
    """Return the services of pyproject.toml in ``rootdir`` and of ``files``, whose paths start from ``rootdir``.

    Raises:
        SettingsError: a table, a key or a value is not usable, or two services have one name. The message names it.
    """
    tables = pyproject_table(rootdir, "endpoints", "one a service")
    here = "pyproject.toml, [tool.rag_harness.endpoints."
    specs = [_spec(name, table, f"{here}{name}]") for name, table in tables.items()]
    specs += [read_endpoint(rootdir / file) for file in files]
    known: dict[str, EndpointSpec] = {}
    for spec in specs:
        if spec.name in known:
            raise SettingsError(
                f"Two endpoints are called {spec.name!r}: {known[spec.name].where} and {spec.where}. "
                f'Give one of them another name: name = "…".'
            )
        known[spec.name] = spec
    return tuple(specs)


def read_endpoint(file: Path) -> EndpointSpec:
    """Return the service of one TOML file. Without a name in it, the service is named after the file.

    Raises:
        SettingsError: the file cannot be read, or has a key or a value that cannot be used.
    """
    table = dict(toml_file(file, f"--rag-endpoint {file}"))
    return _spec(table.pop("name", file.stem), table, str(file))


def _spec(name: Any, table: Any, where: str) -> EndpointSpec:
    check_name(name, where)
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table with url, and maybe body and read.")
    known = {*(each.name for each in fields(EndpointSpec)), "arguments"} - {"name", "where"}
    check_table_keys(where, table, known)
    given: dict[str, Any] = {key: checked_text_value(where, key, table[key]) for key in TEXTS if key in table}
    given |= {key: checked_number_value(where, key, table[key], whole=key in WHOLE) for key in _NUMBERS if key in table}
    kind = given.setdefault("kind", "json")
    if kind not in ENDPOINT_KINDS:
        raise SettingsError(f"{where}: {unknown('kind', kind, ENDPOINT_KINDS)}")
    if "traces" in given and given["traces"] not in TRACES:
        raise SettingsError(f"{where}: {unknown('traces', given['traces'], TRACES)}")
    for key in OF_TRACES:
        if key in given and "traces" not in given:
            raise SettingsError(f'{where}: {key} is about spans that are received, and nothing says traces = "otlp".')
    wait, late = (given.get(key, getattr(EndpointSpec, key)) for key in ("traces_wait", "traces_late"))
    if late >= wait:
        raise SettingsError(
            f"{where}: traces_late = {late:g} is not less than traces_wait = {wait:g}, so no trace could be whole in "
            f"time: it is once nothing new has come for traces_late seconds. Raise traces_wait."
        )
    check_url(where, given.get("url", ""))
    headers, body = checked_headers(where, table.get("headers", {})), _body(table, where, given)
    return EndpointSpec(
        **{
            **given,
            "name": name,
            "method": given.get("method", "POST").upper(),
            "headers": headers,
            "body": body,
            "read": AnswerPaths(**_texts(table, "read", where, AnswerPaths, _DEFAULT_READING[kind])),
            "stream": StreamReading(**_texts(table, "stream", where, StreamReading, {})),
            "version": _version(table, where),
            "history": _history(table, where),
            "session": read_session(table, where, given["url"], [value for _, value in headers], body),
            "expect": expect_texts(where, table.get("expect", [])),
            "where": where,
        }
    )


def _version(table: Mapping[str, Any], where: str) -> VersionReading:
    found = VersionReading(**_texts(table, "version", where, VersionReading, {}))
    if bool(found.url) == bool(found.command) and vars(found) != vars(VersionReading()):
        raise SettingsError(
            f"{where}: version has {'both url and command' if found.url else 'no url'}: name one of them."
        )
    if found.path and found.header:
        raise SettingsError(f"{where}: version has both path and header: it is read in one place.")
    (check_no_secret if found.url[:1] in ("", "/") else check_url)(f"{where}, [version]", found.url)
    return found


def _history(table: Mapping[str, Any], where: str) -> HistoryLimits:
    given, here = _table(table, "history", where, HistoryLimits), f"{where}, [history]"
    return HistoryLimits(
        **{name: int(checked_number_value(here, name, value, whole=True)) for name, value in given.items()}
    )


def _texts(
    table: Mapping[str, Any], key: str, where: str, kind: type[Any], default: Mapping[str, str]
) -> dict[str, str]:
    given = _table(table, key, where, kind)
    return {**default, **{name: checked_text_value(f"{where}, [{key}]", name, value) for name, value in given.items()}}


def _table(table: Mapping[str, Any], key: str, where: str, kind: type[Any]) -> Mapping[str, Any]:
    """Return the table ``key``, whose keys are fields of ``kind``."""
    given = table.get(key, {})
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: {key} is {given!r}: expected a table, [{key}].")
    names: Collection[str] = {each.name for each in fields(kind)}
    check_table_keys(f"{where}, [{key}]", given, names)
    return given


def _body(table: Mapping[str, Any], where: str, given: Mapping[str, Any]) -> str:
    """Return the template as JSON."""
    kind, key = given["kind"], "arguments" if given["kind"] == "mcp" else "body"
    for other in ({"arguments", "body"} - {key}) & table.keys():
        raise SettingsError(f'{where}: {other} is not read where kind is "{kind}". Name it {key}.')
    for needed in [name for of, name in (("mcp", "tool"), ("openai", "model")) if of == kind and name not in given]:
        raise SettingsError(f'{where} has no {needed}: kind "{kind}" needs it.')
    if given.get("method", "POST").upper() == "GET" and key not in table:
        return ""
    if table.get(key) == "" and kind not in _OF_TABLES:
        return ""  # its URL has the question
    body: Any = table.get(key, {} if kind == "openai" else {"query": "{{query}}"})
    if isinstance(body, str):
        body = _parsed(body, where, key)
    if not isinstance(body, Mapping if kind in _OF_TABLES else (Mapping, list)):
        expected = "an object" if kind in _OF_TABLES else "an object or a list"
        raise SettingsError(f"{where}: {key} is {body!r}: expected {expected}: a TOML value, or JSON in quotes.")
    if kind == "openai":
        asked = {} if "stream" in body else _STREAMED
        messages = _QUESTION_ALONE if "session" in table else _MESSAGES
        body = {"model": given["model"], "messages": messages, **asked, **dict(body)}
    return body_text(where, key, body)


def _parsed(body: str, where: str, key: str) -> Any:
    try:
        return json.loads(body)
    except RecursionError:
        raise SettingsError(f"{where}: {key} is nested too deeply.") from None
    except ValueError as error:
        raise SettingsError(f"{where}: {key} is not JSON: {error}. Write a table, or JSON in quotes.") from None


_NUMBER = {"type": "number", "minimum": 0}
_WHOLE_NUMBER = {"type": "integer", "minimum": 0}
_ANYTHING: Schema = {}
"""A template is a table, JSON as text, or any value."""


def endpoint_schema() -> Schema:
    """Return the schema of the file.

    It is about form. Whether an address can be asked, a header holds a secret, or an expectation is one, only the
    reader says.
    """
    tables: dict[str, Schema] = {
        "read": _text_fields_schema(AnswerPaths),
        "stream": _text_fields_schema(StreamReading),
        "version": _text_fields_schema(VersionReading),
        "history": closed({each.name: _WHOLE_NUMBER for each in fields(HistoryLimits)}),
        "session": _session(),
        "headers": {"type": "object", "additionalProperties": text_schema()},
        "expect": list_schema({"type": "object"}),
        "body": _ANYTHING,
        "arguments": _ANYTHING,
    }
    names = [each.name for each in fields(EndpointSpec) if each.name != "where"]
    properties = {name: tables[name] if name in tables else _plain(name) for name in [*names, "arguments"]}
    about = _attributes(EndpointSpec) | {"arguments": "template of the tool's arguments where kind is mcp"}
    described = {name: {**each, "description": about[name]} for name, each in properties.items()}
    return document(
        "Service",
        "A service as an experiment of rag-harness: pytest --rag-endpoint FILE.toml",
        closed(
            described,
            ["url"],
            allOf=[
                _if_kind("openai", {"required": ["model"]}),
                _if_kind("mcp", {"required": ["tool"], "properties": {"body": False}}),
                {"anyOf": [_is_kind("mcp"), {"properties": {"arguments": False}}]},
            ],
            dependentRequired={name: ["traces"] for name in OF_TRACES},
        ),
    )


def _plain(name: str) -> Schema:
    if name == "name":
        return {**text_schema(pattern=f"^{EXPERIMENT_NAME}$"), "not": {"enum": [*RESERVED_NAMES]}}
    if name == "kind":
        return {"enum": [*ENDPOINT_KINDS]}
    if name == "traces":
        return {"enum": [*TRACES]}
    if name == "url":
        return text_schema(minLength=1)
    if name in TEXTS:
        return text_schema()
    return _WHOLE_NUMBER if name in WHOLE else _NUMBER


def _text_fields_schema(of: type[Any]) -> Schema:
    return closed({each.name: text_schema() for each in fields(of)})


def _session() -> Schema:
    opened = closed(
        {"url": text_schema(minLength=1), "method": text_schema(), "body": {"type": ["object", "array"]}}, ["url"]
    )
    named = {name: text_schema() for name in SESSION_TEXTS}
    flags: dict[str, Schema] = {name: {"type": "boolean"} for name in SESSION_FLAGS}
    return closed({**named, **flags, "open": opened}, anyOf=[{"required": ["path"]}, {"required": ["id"]}])


def _is_kind(kind: str) -> Schema:
    return {"required": ["kind"], "properties": {"kind": {"const": kind}}}


def _if_kind(kind: str, then: Schema) -> Schema:
    return {"if": _is_kind(kind), "then": then}


def _attributes(of: type[Any]) -> dict[str, str]:
    """Return a docstring's text for each attribute, by name."""
    found: dict[str, str] = {}
    for line in (of.__doc__ or "").partition("Attributes:\n")[2].splitlines():
        name, colon, said = line.strip().partition(": ")
        if colon:
            found[name] = said.replace("``", "")
    return found
