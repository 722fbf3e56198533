"""Loader for OpenAPI 3 and Swagger 2: a section for each operation and each schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import Parsed
from rag_harness.data.loaders.markdown_writer import (
    MarkdownWriter,
    add_heading,
    add_paragraph,
    add_table,
    deeper,
    without_marks_of_loaders,
)
from rag_harness.data.loaders.reading import parsed_file
from rag_harness.data.loaders.text import check_kind, checked_text, decoded

# Loader of descriptions of HTTP interfaces: OpenAPI 3 and Swagger 2, as JSON or YAML.
#
# ``is_document`` refuses other JSON and YAML files. A ``$ref`` is followed inside the file
# for parameters, bodies and responses; a schema is named, never unfolded. Begin reading in ``parse``.

_HEAD = 1 << 20
"""Bytes that are looked into: programs that sort keys write ``openapi`` behind all schemas."""
_SAYS_YAML = re.compile(rb"""^(?:\xef\xbb\xbf)?["']?(?:openapi|swagger)["']?[ \t]*:[ \t]*["']?[1-9]\.""", re.MULTILINE)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_KEYS = (b'"openapi"', b'"swagger"')
_VERSION = re.compile(rb'\s{0,9}:\s{0,9}"[1-9]\.')


def load(file: Path, doc_id: str) -> Document:
    """Read a description of an interface.

    Raises:
        UnreadableError, OSError: the file cannot be read, or describes no interface.
    """
    return parsed_file("openapi", file).document(file, doc_id)


def is_document(file: Path) -> bool:
    """Return whether the beginning of a JSON or YAML file says that it is such a description."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return True  # the loader says why
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return bool(_SAYS_YAML.search(head))
    return any(key in head for key in _KEYS) and _says_json(head)


def _says_json(head: bytes) -> bool:
    """Return whether the outermost object has the key: a package may depend on something called ``openapi``."""
    depth = 0
    for token in _TOKEN.finditer(head):
        if depth == 1 and token[0] in _KEYS and _VERSION.match(head, token.end()):
            return True
        depth += (token[0] in b"{[") - (token[0] in b"}]")
    return False


# Schemas in words: the type of a value, and the fields of an object. A schema that is named stays a name.

_DEEPEST = 5
_MOST_VALUES = 50


def mapping(value: Any) -> Mapping[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def said(value: Any) -> str:
    """Return a scalar as text; empty for anything else, which could be without end."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def name_of(schema: Mapping[str, Any]) -> str:
    """Return the last part of what a ``$ref`` names; empty where there is none."""
    return said(schema.get("$ref")).rpartition("/")[2]


def type_of(schema: Any, depth: int = 0) -> str:
    """Return the type in words, for example ``array of Pet``."""
    about = mapping(schema)
    if not about or depth > _DEEPEST:
        return ""
    if name := name_of(about):
        return name
    for key, between in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        parts = [type_of(each, depth + 1) for each in items(about.get(key))[:_MOST_VALUES]]
        if any(parts):
            return between.join(filter(None, dict.fromkeys(parts)))
    return _plain(about, depth)


def _plain(about: Mapping[str, Any], depth: int) -> str:
    kinds = [said(each) for each in items(about.get("type"))] or [said(about.get("type"))]
    kind = " or ".join(filter(None, kinds)) or ("object" if "properties" in about else "")
    if kind == "array":
        kind = f"array of {type_of(about.get('items'), depth + 1) or 'values'}"
    values = ", ".join(filter(None, map(said, items(about.get("enum"))[:_MOST_VALUES])))
    limits = [f"{key} {said(about[key])}" for key in ("minimum", "maximum", "minLength", "maxLength") if key in about]
    default = [f"default {said(about['default'])}"] if said(about.get("default")) else []
    more = [*filter(None, [said(about.get("format"))]), *([f"one of {values}"] if values else []), *limits, *default]
    return ", ".join(filter(None, [kind, *more]))


def field_rows(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield name, type, "yes" if required, and description of each field; those of inner objects are ``owner.name``."""
    return _rows(schema, "", 0)


def _rows(schema: Mapping[str, Any], above: str, depth: int) -> Iterator[list[str]]:
    if depth > _DEEPEST or name_of(schema):
        return
    for part in items(schema.get("allOf")):
        yield from _rows(mapping(part), above, depth + 1)
    required = {each for each in items(schema.get("required")) if isinstance(each, str)}
    for name, found in mapping(schema.get("properties")).items():
        about = mapping(found)
        full = f"{above}{said(name)}"
        yield [full, type_of(about), "yes" if name in required else "no", said(about.get("description"))]
        yield from _rows(about, f"{full}.", depth + 1)
        inside = mapping(about.get("items"))
        if not name_of(about):
            yield from _rows(inside, f"{full}[].", depth + 1)


_METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
_MOST_REFERENCES = 10


def parse(data: bytes) -> Parsed:
    """Return the text of a description."""
    check_kind(data, "an OpenAPI document")
    whole = _loaded(decoded(data).text)
    if not (said(whole.get("openapi")) or said(whole.get("swagger"))):
        raise UnreadableError(
            "is not an OpenAPI document: other JSON and YAML is not read. Remove it, or save it as text"
        )
    text = _Interface(whole).text()
    return Parsed(checked_text(text, without_marks_of_loaders(text)), said(mapping(whole.get("info")).get("title")))


def _loaded(text: str) -> Mapping[str, Any]:
    import yaml

    try:
        if text.lstrip().startswith("{"):
            found = json.loads(text)
        else:
            # The C loader is ten times as fast; neither makes anything but plain values.
            found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except RecursionError:
        raise UnreadableError("is nested too deep. Remove it, or save it again") from None
    except (ValueError, yaml.YAMLError) as error:
        what = " ".join(str(error).split())[:200]
        raise UnreadableError(f"is neither JSON nor YAML that can be read: {what}") from None
    return mapping(found)


class _Interface:
    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._out = MarkdownWriter()
        self._parts: list[str] = []

    def text(self) -> str:
        """Return the whole as Markdown."""
        info = mapping(self._whole.get("info"))
        self._heading(1, " ".join(filter(None, (said(info.get("title")) or "Interface", said(info.get("version"))))))
        self._prose(info.get("description"), 1)
        servers = [said(mapping(each).get("url")) for each in items(self._whole.get("servers"))]
        host = said(self._whole.get("host")) + said(self._whole.get("basePath"))
        add_paragraph(self._out, *(f"Server: {url}" for url in (*servers, host) if url))
        for path, found in mapping(self._whole.get("paths")).items():
            self._path(said(path), self._followed(found))
        components = mapping(mapping(self._whole.get("components")).get("schemas"))
        schemas = {**components, **mapping(self._whole.get("definitions"))}
        if schemas:
            self._heading(2, "Schemas")
        for name, schema in schemas.items():
            self._schema(said(name), mapping(schema))
        self._flush()
        return "\n\n".join(filter(None, self._parts)) + "\n"

    def _path(self, path: str, found: Mapping[str, Any]) -> None:
        for method in _METHODS:
            if method in found:
                self._operation(f"{method.upper()} {path}", mapping(found[method]), items(found.get("parameters")))

    def _operation(self, name: str, about: Mapping[str, Any], shared: list[Any]) -> None:
        self._heading(2, name)
        add_paragraph(self._out, said(about.get("summary")), "Deprecated." if about.get("deprecated") is True else "")
        self._prose(about.get("description"), 2)
        parameters = [self._followed(each) for each in (*shared, *items(about.get("parameters")))]
        body = self._followed(about.get("requestBody"))
        rows = list(map(_parameter, parameters))
        if rows:
            add_table(self._out, [["Parameter", "In", "Type", "Required", "Description"], *rows])
        for kind, media in mapping(body.get("content")).items():
            add_paragraph(self._out, f"Body, {said(kind)}: {type_of(mapping(media).get('schema'))}")
            self._fields(mapping(mapping(media).get("schema")))
        responses = mapping(about.get("responses"))
        answers = [_response(said(code), self._followed(each)) for code, each in responses.items()]
        if answers:
            add_table(self._out, [["Response", "Type", "Description"], *answers])

    def _schema(self, name: str, schema: Mapping[str, Any]) -> None:
        self._heading(3, name)
        self._prose(schema.get("description"), 3)
        if not self._fields(schema):
            add_paragraph(self._out, f"Type: {type_of(schema)}")

    def _fields(self, schema: Mapping[str, Any]) -> bool:
        rows = list(field_rows(schema))
        if rows:
            add_table(self._out, [["Field", "Type", "Required", "Description"], *rows])
        return bool(rows)

    def _followed(self, found: Any) -> Mapping[str, Any]:
        """Return what a ``$ref`` inside this file leads to. Other files and addresses are never opened."""
        about = mapping(found)
        for _ in range(_MOST_REFERENCES):
            reference = said(about.get("$ref"))
            if not reference.startswith("#/"):
                break
            place: Any = self._whole
            for step in reference[2:].split("/"):
                place = mapping(place).get(step.replace("~1", "/").replace("~0", "~"))
            about = mapping(place)
        return about

    def _heading(self, level: int, text: str) -> None:
        add_heading(self._out, level, text)

    def _prose(self, text: Any, below: int) -> None:
        """Add a description. It is Markdown of its own, so it stays as it is, with its headings below ours."""
        if said(text).strip():
            self._flush()
            self._parts.append(deeper(str(text).strip(), below))

    def _flush(self) -> None:
        self._parts.append(self._out.text().strip())
        self._out = MarkdownWriter()


def _parameter(about: Mapping[str, Any]) -> list[str]:
    if not said(about.get("name")):
        return [name_of(about), "", "", "", ""]
    kind = type_of(about.get("schema") or about)
    required = "yes" if about.get("required") is True else "no"
    return [said(about.get("name")), said(about.get("in")), kind, required, said(about.get("description"))]


def _response(code: str, about: Mapping[str, Any]) -> list[str]:
    media = [mapping(each) for each in mapping(about.get("content")).values()] or [about]
    kinds = dict.fromkeys(type_of(each["schema"]) for each in media if "schema" in each)
    return [code, " or ".join(kinds), said(about.get("description")) or name_of(about)]
