"""Words a planned fact as a question for its value, in the words of its statement."""

from __future__ import annotations

from collections.abc import Collection

from rag_harness.authoring.kb.plan import PlannedFact
from rag_harness.authoring.questions.persons import asked_by_reader
from rag_harness.authoring.questions.planned.conditions import asked_for_condition
from rag_harness.authoring.questions.planned.statement import GAP, PlannedStatement, read_statement
from rag_harness.authoring.questions.planned.value_questions import QuestionWords, asked_for, is_figure


def asked_of(fact: PlannedFact, names: Collection[str] = frozenset()) -> str:
    """Return the question for a planned fact, without a capital and a question mark; empty if there is none."""
    said = read_statement(fact, names)
    if said is None:
        return ""
    if said.in_subject:
        return _of_subject(fact.value, said)
    if is_figure(fact.value):
        found = asked_for(fact.value, said) if said.auxiliary else None
    else:
        found = asked_for_condition(fact.value, said)
    return asked_by_reader(_joined(found, said)) if found else ""


def _joined(found: QuestionWords, said: PlannedStatement) -> str:
    subject = "" if said.subject in found.words else said.subject
    parts = (found.words, "" if found.whole else said.auxiliary, subject, found.before, found.after)
    question = " ".join(" ".join(parts).split())
    return f"{said.front}, {question}" if said.front else question


def _of_subject(value: str, said: PlannedStatement) -> str:
    """Return the question for a value in the subject: "up to how many hours of overtime may stand on …"."""
    before, _, after = said.subject.partition(GAP)
    bare = PlannedStatement("", "", said.auxiliary, before.strip(), after.strip())
    found = asked_for(value, bare) if is_figure(value) else None
    if found is None or found.before or said.auxiliary == "does":
        return ""
    auxiliary = "" if said.auxiliary == "do" else said.auxiliary
    return asked_by_reader(" ".join(" ".join((found.words, found.after, auxiliary, said.before)).split()))
