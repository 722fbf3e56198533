"""Every file that a run writes, and its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.dataclasses import is_pydantic_dataclass

from docs.made.markdown import MADE, code, described, documented, table
from rag_harness.records.manifest import RunManifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine

_INTRODUCTION = """# Files of a run

A run writes into `output/`, or the folder that `--rag-output` names. Keys are only ever added; readers ignore keys that
they do not know. The JSON Schema of a row is [result.schema.json](../schemas/result.schema.json).

| file | what it is |
|---|---|
| `<experiment>.jsonl` | [a row](#row) a trial; `golden.jsonl` for the golden suite |
| `scores/<experiment>.jsonl` | a line a judged score: what was judged, by whom, the verdict on each claim |
| `run.json` | [what the run was made of](#run-json), and what became of each selected case |
| `summary.json` | each aggregate of each experiment by its name, and `gates`: [the verdicts](#summary-json) |
| `causes.jsonl` | [why each failed trial failed](#causes-jsonl), with `--rag-attribute` |
| `cases/<data>.jsonl` | the cases with their gold |
| `cases/<data>+<experiment>.jsonl` | the same, of an experiment that has expectations of its own |
| `cases/<data>+scenarios.jsonl` | scenarios of simulated users |
| `prompts/<digest>.json` | messages as they were sent, named by the rows |
| `metamorphic/<experiment>.jsonl` | a line a score of a metamorphic check |
| `derived/` | rows of other trials: one thing changed, repeats, configurations of a race, moves of a simulated user |
| `tune.json` | what came of a race |
| `columns/`, `scores/columns/` | numbers of large files, made of their lines; safe to delete |
| `unfinished/`, `journal/` | what a run that was cut off goes on from |
| `run.lock` | held by the run that writes here |
| `begun.json` | when the last run began, and why it left no results; there until a run leaves some |
"""
_VERDICT = """
## summary.json

An object. Each experiment is a key, and so is `golden`. Beside them are `run`, the time of the run, `profile` and
`mode` of its settings, `provenance`, which says [where the answers come from](answers.md), `unchecked`, the number of
checks that fail the run because they could not be made, `replaced`, a line for each gate that
[another has replaced](gates.md#two-gates-on-one-thing), and `gates`. An experiment has:

| field | what it is |
|---|---|
| `n`, `total`, `lost` | cases of this run; cases of the data; cases that were lost to a crash |
| names of [measures](measures.md) | the mean over the cases that have a value |
| `by_query_type` | the same for each type of question |
| `intervals` | the 95 % interval of each judged mean |
| `p95` | the value of `hri` and `hri_gold` that only 5 % of the answers exceed |
| `categories` | the share of each [category](measures.md#categories-of-answers) |
| `unmeasured` | how many cases of each judged measure could not be measured |
| `by_turn`, `drift` | of conversations: each measure at each turn, and its change a turn |
| `stages_ms` | p50, p95 and p99 of each stage, in milliseconds |
| `cost_usd` | the cost of all answers together; null where no price is known |

`gates` has an object a gate:

| field | what it is |
|---|---|
| `gate` | the gate as it was written |
| `state` | `passed`, `failed`, `stale`, `undecided`, `xfailed`, `xpassed` or `not judged` |
| `value`, `threshold` | what was measured, and the limit that it was compared with |
| `interval` | the 95 % interval of the value, two numbers; null where there is none |
| `unit`, `n` | unit of the value; number of cases that it is a figure of |
| `reason` | why the gate is in this state |
| `confidence`, `bounds` | of a gate with `@`: its confidence, and the bounds that decide it |
| `family` | how many gates with `@` hold together, where they [share their confidence](gates.md#evidence) |
| `expected` | of a gate marked `xfail`: why it is known to fail |
| `otherwise`, `due` | of a gate with `else`: what to do, and whether it is to be done now |
| `unreviewed` | how many drafts were left out |
| `counts`, `conversations` | of a gate over conversations: what it counts, and how many conversations it has |
"""


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION, *_models("Row", ExperimentResult), *_models("run.json", RunManifest), _VERDICT]
    return MADE + "".join([*parts, *_models("causes.jsonl", CauseLine)])


def _models(title: str, model: type[Any]) -> Iterator[str]:
    yield f"\n## {title}\n\n{_first(model)}\n\n{_fields(model)}"
    for part in dict.fromkeys(_parts_of(model)):
        yield f"\n### {part.__name__}\n\n{_first(part)}\n\n{_fields(part)}"


def _first(model: type[Any]) -> str:
    return documented(model).partition("\n\n")[0].replace("\n", " ")


def _fields(model: type[Any]) -> str:
    said = described(model)
    rows = []
    for name, each in _fields_of(model).items():
        about = (each.description or said.get(name, "")).strip().rstrip(".")
        rows.append([code(name), code(type_of(each.annotation)), about])
    return table(["field", "type", "what it is"], rows)


def _fields_of(model: type[Any]) -> dict[str, Any]:
    """Return the fields of a model, or of a dataclass of pydantic; none of any other type."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        return dict(model.model_fields)
    return dict(model.__pydantic_fields__) if is_pydantic_dataclass(model) else {}


def type_of(annotation: Any) -> str:
    """Return a type as JSON has it."""
    text = re.sub(r"(?:\w+\.)+(?=\w)", "", str(annotation) if get_args(annotation) else annotation.__name__)
    text = re.sub(r"Annotated\[(\w+), .*?\](?=[,|\]]|$)", r"\1", text)
    text = re.sub(r"Optional\[(\w+)\]", r"\1 | null", text)
    return re.sub(r", FieldInfo\(.*?\)|StorableText", "", text).replace("NoneType", "null").replace("None", "null")


def _parts_of(model: type[Any]) -> Iterator[type[Any]]:
    """Yield the models that a model's fields are made of, each before its own parts."""
    for each in _fields_of(model).values():
        for part in _models_in(each.annotation):
            yield part
            yield from _parts_of(part)


def _models_in(annotation: Any) -> Iterator[type[Any]]:
    if isinstance(annotation, type) and _fields_of(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
