"""An interface as Markdown: a section for each operation and for each schema, their parameters and fields as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rag_harness.dataset.ingest.charset import decoded
from rag_harness.dataset.ingest.markdown_blocks import (
    add_heading,
    add_paragraph,
    add_table,
    deeper,
    without_marks_of_loaders,
)
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter
from rag_harness.dataset.ingest.openapi.types_in_words import field_rows, items, mapping, name_of, said, type_of
from rag_harness.dataset.ingest.other_kinds import check_kind
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
_MOST_REFERENCES = 10


def parse(data: bytes) -> Parsed:
    """Return the text of a description."""
    check_kind(data, "OpenAPI document")
    whole = _loaded(decoded(data).text)
    if not (said(whole.get("openapi")) or said(whole.get("swagger"))):
        raise UnreadableError("is no OpenAPI document: other JSON and YAML is not read. Remove it, or save it as text")
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
        raise UnreadableError("is nested too deep. Remove it, or save it anew") from None
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
        """Add a description. It is Markdown of its own, so it is kept as it is, its headings below ours."""
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
