"""Exports of annotation tools: tasks of Label Studio, records of Argilla.

https://labelstud.io/guide/export, https://docs.argilla.io/latest/how_to_guides/import_export
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.authoring.importing.field_values import other_members
from rag_harness.authoring.importing.messages import structured
from rag_harness.authoring.importing.notes import Notes

Plain = Sequence[Mapping[str, Any]]
_RESPONSES, _SUGGESTION = ".responses", "suggestion"
_DISCARDED = "discarded"
_OF_RESULTS = ("from_name", "type", "value")
_OF_VALUES = ("question_name", "question_id", "value")


def of_label_studio(values: Mapping[str, Any], where: str, notes: Notes) -> Plain | None:
    """Return a task with what its first annotation says, each control of the form as a column."""
    data, listed = structured(values.get("data")), structured(values.get("annotations"))
    if not isinstance(data, Mapping) or not isinstance(listed, list):
        return None
    said = [each for each in listed if isinstance(each, Mapping)]
    kept = [each for each in said if not each.get("was_cancelled")]
    if len(kept) < len(said):
        notes.tell("annotations that were cancelled: they do not count", where)
    if len(kept) > 1:
        notes.tell("further annotations of one task: the first is taken", where)
    about = {name: value for name, value in values.items() if name not in ("data", "annotations")}
    made = kept[0] if kept else {}
    beside = {name: value for name, value in made.items() if name not in ("result", "was_cancelled")}
    found = {**{f"annotation.{name}": value for name, value in beside.items()}, **_free(about, data), **data}
    _note_parts("annotations.result", made.get("result"), _OF_RESULTS, where, notes)
    for control, value in _results(made.get("result")):
        found[control if control not in found else f"annotation.{control}"] = value
    return [found]


def _results(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the controls of an annotation say, by their names."""
    said: dict[str, list[Any]] = {}
    for each in value if isinstance(value, list) else ():
        if isinstance(each, Mapping):
            inner, kind = each.get("value"), str(each.get("type") or "")
            # A text area has its texts below "text", choices theirs below "choices", others below their type.
            key = "text" if kind == "textarea" else kind
            is_alone = isinstance(inner, Mapping) and [*inner] == [key]
            told = inner[key] if is_alone and isinstance(inner, Mapping) else inner
            said.setdefault(str(each.get("from_name") or kind), []).extend(told if isinstance(told, list) else [told])
    for name, values in said.items():
        yield name, values[0] if len(values) == 1 else values


def of_argilla(values: Mapping[str, Any], where: str, notes: Notes) -> Plain | None:
    """Return a record with what its first annotator responded, each question of the form as a column."""
    fields = structured(values.get("fields"))
    said = [structured(values[name]) for name in ("responses", "suggestions") if name in values]
    if isinstance(fields, Mapping) and said and all(isinstance(each, (Mapping, list, type(None))) for each in said):
        about = {name: value for name, value in values.items() if name not in ("fields", "responses", "suggestions")}
        found = {**_free(about, fields), **fields}
        responses = dict(_responses(structured(values.get("responses")), where, notes))
        suggestions = structured(values.get("suggestions"))
        listed = [*suggestions.values()] if isinstance(suggestions, Mapping) else suggestions
        _note_parts("suggestions", listed, _OF_VALUES, where, notes)
        suggested = {f"{name}.{_SUGGESTION}": each for name, each in _suggestions(suggestions)}
    elif any(name.endswith(_RESPONSES) for name in values):
        found = {name: value for name, value in values.items() if not name.endswith(_RESPONSES)}
        responses = {
            name.removesuffix(_RESPONSES): structured(value)
            for name, value in values.items()
            if name.endswith(_RESPONSES)
        }
        suggested = {}
    else:
        return None
    for name, value in responses.items():
        found[name if name not in found else f"{name}.response"] = value
    return [{**found, **suggested}]


def _responses(said: Any, where: str, notes: Notes) -> Iterator[tuple[str, Any]]:
    """Yield what was responded to each question of the form: by question, or a response an annotator."""
    by_name: dict[str, list[Any]] = {}
    if isinstance(said, Mapping):
        for name, each in said.items():
            listed = each if isinstance(each, list) else [each]
            _note_parts("responses", listed, _OF_VALUES, where, notes)
            by_name.setdefault(name, []).extend(map(_value_in, listed))
    _note_parts("responses", said, ("values", "status"), where, notes)
    for response in said if isinstance(said, list) else ():
        values = response.get("values") if isinstance(response, Mapping) else None
        if isinstance(response, Mapping) and response.get("status") == _DISCARDED:
            notes.tell("responses that were discarded: they do not count", where)
        elif isinstance(values, Mapping):
            for name, each in values.items():
                by_name.setdefault(name, []).append(_value_in(each))
    yield from by_name.items()


def _suggestions(said: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(said, Mapping):
        yield from ((name, _value_in(each)) for name, each in said.items())
    for each in said if isinstance(said, list) else ():
        if isinstance(each, Mapping):
            yield str(each.get("question_name") or each.get("question_id") or _SUGGESTION), _value_in(each)


def _value_in(said: Any) -> Any:
    return said["value"] if isinstance(said, Mapping) and "value" in said else said


def _note_parts(name: str, listed: Any, read: Sequence[str], where: str, notes: Notes) -> None:
    """Note what a list of objects says beside the members that are read."""
    parts = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    if others := other_members(parts, read):
        notes.leave(f"{name}: {', '.join(others)}", where)


def _free(about: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a record, under names that its own fields do not have."""
    return {f"record.{name}" if name in taken else name: value for name, value in about.items()}
