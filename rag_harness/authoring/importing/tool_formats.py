"""The formats of other tools.

Fields of deepeval, Langfuse, LangSmith, ragas and tables, and nested records of data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeGuard

from rag_harness.authoring.importing.field_mapping import MAPPED, SourceFields
from rag_harness.authoring.importing.records import Demand, Notes, other_members, structured
from rag_harness.data.record_files import records_in
from rag_harness.data.source_records import MEANINGS, SourceRecord, field_meant, plain_text, said_flag, texts_of

# Goldens of deepeval (4.3): ``EvaluationDataset.save_as`` as JSON, JSONL and CSV, and the camelCase of its API.
#
# ``expectations`` are criteria in words, so they become rubrics. A ``ConversationalGolden`` with turns is a
# conversation whose last question owes the outcome; one without turns has no first words, which a scenario of ours
# begins with.

_SIDES = ("must", "must_not", "mustNot")
_EMPTY: Sequence[Any] = (None, "", [], {})
_CLASSES = "labels of a classifier are not demanded by a line of questions"


def _is_synthetic(values: Mapping[str, Any]) -> bool:
    """Return whether a golden comes of deepeval's synthesizer, which leaves its evolutions there."""
    labels = structured(values.get("additional_metadata") or values.get("additionalMetadata"))
    return isinstance(labels, dict) and "evolutions" in labels


def _expected(values: Mapping[str, Any]) -> list[Demand]:
    outcome = plain_text(values.get("expected_outcome") or values.get("expectedOutcome"))
    return [
        *({"rubric": text} for text in ([outcome] if outcome else [])),
        *_criteria(structured(values.get("expectations"))),
    ]


def _criteria(stated: Any) -> list[Demand]:
    """Return criteria in words as rubrics: an object says what must be and what must not; all others must be."""
    if isinstance(stated, dict):
        forbidden = texts_of(stated.get("must_not") or stated.get("mustNot"))
        wanted: list[Demand] = [{"rubric": text} for text in texts_of(stated.get("must"))]
        # The check of the demands names anything that is not a criterion.
        others = [{name: each} for name, each in stated.items() if name not in _SIDES and each not in _EMPTY]
        return [*wanted, *({"not": {"rubric": text}} for text in forbidden), *others]
    if isinstance(stated, list):
        return [demand for each in stated for demand in _criteria(each)]
    return [{"rubric": text}] if (text := plain_text(stated)) else []


DEEPEVAL = SourceFields(
    "deepeval",
    {
        "query_id": ("id", "name"),
        "query": ("input", "turns"),
        "evidence": ("context",),
        "context_reference": ("source_file", "sourceFile"),
        "tools": ("expected_tools", "expectedTools"),
    },
    typical=(
        "expected_output", "actual_output", "retrieval_context", "expected_outcome", "expected_tools", "source_file",
        "additional_metadata", "custom_column_key_values", "actualOutput", "retrievalContext", "expectedOutcome",
        "expectedTools", "sourceFile", "additionalMetadata",
    ),
    scored=(
        "actual_output", "retrieval_context", "tools_called", "actualOutput", "retrievalContext", "toolsCalled",
        "token_cost", "tokenCost", "input_token_count", "inputTokenCount", "output_token_count", "outputTokenCount",
    ),
    unmatched={
        "expected_labels": _CLASSES,
        "expectedLabels": _CLASSES,
        "persona": "who a simulated user is: write it into a scenario (docs/how-to/simulate-users.md)",
    },
    read_otherwise=("expectations", "expected_outcome", "expectedOutcome", "turns"),
    objects=("additional_metadata", "additionalMetadata", "custom_column_key_values", "customColumnKeyValues"),
    separator="|",
    is_synthetic=_is_synthetic,
    expected=_expected,
    no_question="a scenario without turns: write what its user says first, as a scenario "
    "(docs/how-to/conversations.md)",
)  # fmt: skip
"""The fields of deepeval."""


# Items of a data set of Langfuse, as its page exports them and its API returns them, as CSV, JSON or JSONL.
#
# ``input`` and ``expectedOutput`` are a text, messages, or an object, of which ``--map question=input.KEY`` says the
# key.


def _left_out(values: Mapping[str, Any]) -> str:
    return "an archived item" if plain_text(values.get("status")).upper() == "ARCHIVED" else ""


LANGFUSE = SourceFields(
    "langfuse",
    {"query_id": ("id",), "query": ("input",)},
    typical=(
        "sourceTraceId", "sourceObservationId", "datasetId", "datasetName", "expectedOutput", "source_trace_id",
        "source_observation_id", "dataset_name",
    ),
    unread=(
        "createdAt", "updatedAt", "datasetId", "datasetName", "projectId", "created_at", "updated_at",
        "dataset_id", "dataset_name", "project_id", "validFrom", "mediaReferences",
    ),
    objects=("metadata",),
    read_otherwise=("status",),
    left_out=_left_out,
)  # fmt: skip
"""The fields of Langfuse."""


# Examples of a data set of LangSmith: objects ``inputs`` and ``outputs``, whose keys every data set chooses.
#
# An object with one text is that text. With several, ``--map question=inputs.KEY ground_truth=outputs.KEY`` says which.
# Its CSV has columns of the data set's own, so it is a table: name them with ``--map``.

LANGSMITH = SourceFields(
    "langsmith",
    {
        "query_id": ("id", "example_id"),
        "query": ("inputs", "input"),
        "ground_truth": ("outputs", "reference_outputs", "output"),
    },
    typical=("outputs", "reference_outputs", "source_run_id", "reference_example_id"),
    unread=("created_at", "modified_at", "dataset_id", "attachment_urls"),
    unmatched={"attachments": "files beside a question are not sent"},
    objects=("metadata",),
)
"""The fields of LangSmith."""


# Samples of ragas: ``SingleTurnSample``, ``MultiTurnSample`` and test sets, as JSONL or CSV (ragas 0.2 to 0.4).
#
# ``user_input`` is a text, or a list of messages; the last of the user is the question. The names of ragas 0.1
# (``question``, ``ground_truth``, ``contexts``) are read, too.

_GENERATED = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")


def _is_generated(values: Mapping[str, Any]) -> bool:
    return any(plain_text(values.get(name)) for name in _GENERATED)


def _type_of(values: Mapping[str, Any]) -> str:
    name = plain_text(values.get("synthesizer_name"))
    return "multi_hop" if name.startswith("multi_hop") else "direct" if name.startswith("single_hop") else ""


RAGAS = SourceFields(
    "ragas",
    {
        "query_id": ("id",),
        "query": ("user_input", "question"),
        "evidence": ("reference_contexts",),
        "context_reference": ("reference_context_ids",),
        "tools": ("reference_tool_calls",),
    },
    typical=("user_input", "reference_contexts", "synthesizer_name", "reference_tool_calls"),
    scored=("response", "multi_responses", "retrieved_contexts", "retrieved_context_ids", "answer", "contexts"),
    unmatched={
        "rubrics": "a scale of scores in words; write each criterion as a rubric (docs/how-to/rubrics.md)",
        "rubric": "a scale of scores in words; write each criterion as a rubric (docs/how-to/rubrics.md)",
        "reference_topics": "what an assistant may talk about; write it as a rubric (docs/how-to/rubrics.md)",
    },
    is_synthetic=_is_generated,
    type_of=_type_of,
)
"""The fields of ragas."""


# Tables and JSON of no tool in particular: columns are known by their names, or named by ``--map``.

_EXPECT = "expect"


def _expectations_in_column(values: Mapping[str, Any]) -> Sequence[Demand]:
    """Return the expectations of a column that has them as lines of questions do."""
    stated = structured(values.get(_EXPECT))
    listed = stated if isinstance(stated, list) else [stated]
    return [each for each in listed if each not in (None, "")]


TABLE = SourceFields(
    "csv",
    {**{ours: names for ours, names in MEANINGS.items() if ours in MAPPED}, "query": (*MEANINGS["query"], "messages")},
    unmatched={"qrels": "grades are imported where all fields of a record are ours (docs/reference/importing.md)"},
    scored=(
        "response", "actual_output", "retrieved_context", "retrieved_contexts", "retrieval_context",
        "retrieved_context_ids",
    ),
    objects=("metadata",),
    read_otherwise=(_EXPECT,),
    separator="|",
    expected=_expectations_in_column,
)  # fmt: skip
"""The fields of a table."""
HUGGING_FACE = replace(TABLE, name="hf")
"""The same, of a data set in a folder."""


# Exports of annotation tools: tasks of Label Studio, records of Argilla.
#
# https://labelstud.io/guide/export, https://docs.argilla.io/latest/how_to_guides/import_export

AnnotationRecords = Sequence[Mapping[str, Any]]
_RESPONSES, _SUGGESTION = ".responses", "suggestion"
_DISCARDED = "discarded"
_OF_RESULTS = ("from_name", "type", "value")
_OF_VALUES = ("question_name", "question_id", "value")


def of_label_studio(values: Mapping[str, Any], where: str, notes: Notes) -> AnnotationRecords | None:
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


def of_argilla(values: Mapping[str, Any], where: str, notes: Notes) -> AnnotationRecords | None:
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


# Data of MLflow's evaluation: what is passed to the application, and what is expected of it.
#
# https://mlflow.org/docs/latest/genai/eval-monitor/running-evaluation

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
    """Return the inputs with the one first that is the question; as an object where no name tells it."""
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


# Data sets of reading tests: SQuAD, HotpotQA with 2WikiMultihopQA, and MuSiQue, as published and as on the hub.
#
# https://rajpurkar.github.io/SQuAD-explorer, https://hotpotqa.github.io, https://github.com/StonyBrookNLP/musique

ReadingRecords = Sequence[Mapping[str, Any]]
_DISTRACTORS = "paragraphs that do not support the answer: they are not gold"
_MISSING = "a supporting fact that no paragraph of its record has"


def of_squad(values: Mapping[str, Any]) -> ReadingRecords | None:
    """Return the questions of an article of SQuAD, of one of its paragraphs, or of a row of the hub."""
    paragraphs = values.get("paragraphs")
    if _are_objects(paragraphs) and any("qas" in each for each in paragraphs):
        above = _without(values, "paragraphs")
        return [one for each in paragraphs for one in _of_paragraph(_inside(above, each, "article"))]
    if _are_objects(values.get("qas")):
        return _of_paragraph(values)
    answers = structured(values.get("answers"))
    if isinstance(answers, Mapping) and {"text", "answer_start"} <= answers.keys() and "answerable" not in values:
        return [_without_gold({**values, "answers": answers}) if answers["text"] == [] else values]
    return None


def _of_paragraph(values: Mapping[str, Any]) -> ReadingRecords:
    above = _without(values, "qas")
    asked = values.get("qas")
    if not isinstance(asked, list):
        return [values]
    # An item that is not an object becomes a record without a question, which is counted.
    return [_plain_question(_inside(above, each if isinstance(each, Mapping) else {}, "paragraph")) for each in asked]


def _inside(above: Mapping[str, Any], each: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object with what is said of the one around it, which loses no member to one of the same name."""
    return {**{(f"{name}.{key}" if key in each else key): value for key, value in above.items()}, **each}


def _plain_question(values: Mapping[str, Any]) -> Mapping[str, Any]:
    answers = values.get("answers")
    if _are_objects(answers):
        names = dict.fromkeys(name for each in answers for name in each)
        values = {**values, "answers": {name: [each.get(name) for each in answers] for name in names}}
    if "is_impossible" not in values:
        return values
    plain = _without(values, "is_impossible")
    return _without_gold(plain) if said_flag(values["is_impossible"]) else {**plain, "answerable": True}


def _without_gold(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a question that its paragraph does not answer: the paragraph is not evidence, and stays as a label."""
    plain = _without(values, "answers", "context")
    return {**plain, "answerable": False, "paragraph_without_answer": values.get("context")}


def of_hotpot(values: Mapping[str, Any], where: str, notes: Notes) -> ReadingRecords | None:
    """Return a question of HotpotQA with its supporting sentences as evidence."""
    context, facts = (structured(values.get(name)) for name in ("context", "supporting_facts"))
    paragraphs, stated = _pairs(context, "title", "sentences"), _pairs(facts, "title", "sent_id")
    if not paragraphs or not stated or not all(isinstance(sentences, list) for _, sentences in paragraphs):
        return None
    texts = {str(title): sentences for title, sentences in paragraphs}
    evidence = []
    for title, number in stated:
        sentences = texts.get(str(title), [])
        sentence = sentences[number] if isinstance(number, int) and 0 <= number < len(sentences) else None
        if isinstance(sentence, str):
            evidence.append({"text": sentence.strip(), "document": str(title)})
        else:
            notes.lose(_MISSING, where)
    if texts.keys() - {str(title) for title, _ in stated}:
        notes.leave(_DISTRACTORS, where)
    return [{**_without(values, "context", "supporting_facts"), "evidence": evidence}]


def of_musique(values: Mapping[str, Any], where: str, notes: Notes) -> ReadingRecords | None:
    """Return a question of MuSiQue with its supporting paragraphs as evidence."""
    paragraphs = structured(values.get("paragraphs"))
    if not _are_objects(paragraphs) or not all("paragraph_text" in each for each in paragraphs):
        return None
    gold = [each for each in paragraphs if each.get("is_supporting")]
    evidence = [{"text": each["paragraph_text"], "document": each.get("title")} for each in gold]
    if len(gold) < len(paragraphs):
        notes.leave(_DISTRACTORS, where)
    return [{**_without(values, "paragraphs"), "evidence": evidence}]


def _pairs(value: Any, first: str, second: str) -> list[tuple[Any, Any]]:
    """Return pairs, as a list of two each or as the hub's object of two lists; none where it is neither."""
    if isinstance(value, Mapping) and isinstance(value.get(first), list) and isinstance(value.get(second), list):
        return [*zip(value[first], value[second], strict=False)]
    if isinstance(value, list) and all(isinstance(each, (list, tuple)) and len(each) == 2 for each in value):
        return [(each[0], each[1]) for each in value]
    return []


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _are_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


# Makes plain records of the nested ones that well-known files have. All else of a record stays in it as a column.

PlainRecords = Sequence[Mapping[str, Any]]
_FORMS: Sequence[Callable[[Mapping[str, Any]], PlainRecords | None]] = (of_squad, of_mlflow)
"""Each returns the plain records of a nested one; None where the record has another form."""
_NOTING: Sequence[Callable[[Mapping[str, Any], str, Notes], PlainRecords | None]] = (
    of_hotpot,
    of_musique,
    of_label_studio,
    of_argilla,
)
"""Those that have something to note of a record."""


def records_to_import(file: Path, notes: Notes) -> Iterator[SourceRecord]:
    """Yield the records of a file, nested ones as plain ones.

    Raises:
        DataError: the file cannot be read.
        PrerequisiteError: a package is missing that the file needs.
    """
    for record in records_in(file):
        for name in record.beside:
            notes.leave(f"{name}: it is beside the records", record.where)
        made = _plain(record, notes)
        if made is None:
            yield record
            continue
        if not made:
            notes.lose("a record that holds no question", record.where)
        for number, values in enumerate(made):
            where = f"{record.where}, question {number + 1}" if len(made) > 1 else record.where
            yield SourceRecord(where, values, record.number)


def _plain(record: SourceRecord, notes: Notes) -> PlainRecords | None:
    quiet = (form(record.values) for form in _FORMS)
    noting = (form(record.values, record.where, notes) for form in _NOTING)
    return next((found for found in chain(quiet, noting) if found is not None), None)
