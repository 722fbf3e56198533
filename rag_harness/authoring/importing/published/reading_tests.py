"""Data sets of reading tests: SQuAD, HotpotQA with 2WikiMultihopQA, and MuSiQue, as published and as on the hub.

https://rajpurkar.github.io/SQuAD-explorer, https://hotpotqa.github.io, https://github.com/StonyBrookNLP/musique
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from rag_harness.authoring.importing.messages import structured
from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.records.source_record import said_flag

Plain = Sequence[Mapping[str, Any]]
_DISTRACTORS = "paragraphs that do not support the answer: they are no gold"
_MISSING = "a supporting fact that no paragraph of its record has"


def of_squad(values: Mapping[str, Any]) -> Plain | None:
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


def _of_paragraph(values: Mapping[str, Any]) -> Plain:
    above = _without(values, "qas")
    asked = values.get("qas")
    if not isinstance(asked, list):
        return [values]
    # An item that is no object becomes a record without a question, which is counted.
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
    """Return a question that its paragraph does not answer: the paragraph is no evidence, and stays as a label."""
    plain = _without(values, "answers", "context")
    return {**plain, "answerable": False, "paragraph_without_answer": values.get("context")}


def of_hotpot(values: Mapping[str, Any], where: str, notes: Notes) -> Plain | None:
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


def of_musique(values: Mapping[str, Any], where: str, notes: Notes) -> Plain | None:
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
