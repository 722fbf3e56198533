"""Data of MLflow's evaluation: what is passed to the application, and what is expected of it.

https://mlflow.org/docs/latest/genai/eval-monitor/running-evaluation
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.authoring.importing.messages import structured
from rag_harness.dataset.records.field_names import field_meant
from rag_harness.dataset.records.list_cells import texts_of

_DEMANDS = {"expected_facts": "The answer says: {}", "guidelines": "{}"}
"""Expectations that are criteria in words, and how each becomes a rubric."""
_RETRIEVED = "expected_retrieved_context"
_TURNS = "messages"


def of_mlflow(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """Return a row of MLflow with its question and each of its expectations as a column."""
    inputs, expected = structured(values.get("inputs")), structured(values.get("expectations"))
    if not isinstance(inputs, Mapping) or not isinstance(expected, Mapping):
        return None
    about = {name: value for name, value in values.items() if name not in ("inputs", "expectations")}
    demands = [{"rubric": text} for name, form in _DEMANDS.items() for text in _rubrics(form, expected.get(name))]
    others = {name: value for name, value in expected.items() if name not in (*_DEMANDS, _RETRIEVED)}
    found = {**about, **{name if name not in about else f"expectations.{name}": each for name, each in others.items()}}
    if demands:
        found["expect"] = demands
    if (retrieved := expected.get(_RETRIEVED)) is not None:
        found["evidence"] = retrieved
    return [{**found, **_asked(inputs)}]


def _asked(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs with the one first that is the question; as an object where none is told by its name."""
    asking = [name for name in inputs if field_meant(name) == "query" or name == _TURNS]
    if len(asking) != 1:
        return {"inputs": inputs} if len(inputs) != 1 else {"query": inputs}
    name = asking[0]
    others = {key: value for key, value in inputs.items() if key != name}
    said = inputs[name]
    if others and isinstance(said, str):
        said = [{"role": "user", "content": said}]
    return {"query": {_TURNS: said, **others} if others else said}


def _rubrics(form: str, value: Any) -> Iterator[str]:
    yield from (form.format(text) for text in texts_of(structured(value)))
