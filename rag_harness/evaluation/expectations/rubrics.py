"""Rubrics and criteria in words, by which a judge rates answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.files import json_digest
from rag_harness.core.settings.profiles import check_table_keys, parsed_toml
from rag_harness.core.types import Expectation
from rag_harness.records.expectations import AnswerSeen, AsksFor, ExpectationKind, Finding, text_problem

WORDS_OF_DEMAND = 150
"""The most words of a criterion, and of a text that an answer resembles."""


class RubricExpectation(ExpectationKind):
    """Meets the criterion, as a judge finds."""

    asks: ClassVar[AsksFor] = "criterion"

    def problem(self, demand: Expectation) -> str:
        return words_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(None, "no judge was asked")


class Similar(ExpectationKind):
    """Resembles the text: the cosine of their vectors is ``at_least`` so much."""

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"at_least": (int, float)}
    asks: ClassVar[AsksFor] = "similarity"

    def problem(self, demand: Expectation) -> str:
        at_least = demand.options.get("at_least")
        if at_least is None or not 0 < at_least <= 1:
            return f"at_least is {at_least}. Write a number above 0 and up to 1: cosines differ between embedders"
        return words_problem(demand.wanted, "A long text resembles many")

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(None, "no embedder was asked")


def words_problem(text: object, why: str = "A rubric is one criterion") -> str:
    """Return the fault of a text of few words; empty without one."""
    if problem := text_problem(text):
        return problem
    count = len(str(text).split())
    if count <= WORDS_OF_DEMAND:
        return ""
    return f"{count:,} words; at most {WORDS_OF_DEMAND}. {why}: shorten it, or make several"


# Rubrics: criteria in words that a judge holds every answer of an experiment against, a TOML file each.
#
# ``rubrics/tone.toml`` is the measure ``rubric_tone``::
#
#     about = "How an answer sounds"
#     criteria = [
#       "does not blame the customer",
#       {text = "names the next step", weight = 2, must = true},
#     ]
#
#     [[scales]]
#     text = "how easily a customer understands it"
#     levels = ["not at all", "on a second reading", "at first reading"]

MOST_CRITERIA = 36
"""The most criteria of a rubric, levels of scales included."""
_FEWEST_LEVELS, _MOST_LEVELS = 2, 7
_KEYS = ("about", "experiments", "criteria", "scales")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a rubric asks of an answer.

    Attributes:
        text: the criterion, in words.
        levels: of a scale, what its levels are called, the worst first; empty for a criterion that is met or not.
        weight: how much it counts.
        must: whether the whole rubric is 0 where it is not met. A scale has none.
    """

    text: str
    levels: tuple[str, ...] = ()
    weight: float = 1.0
    must: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        """The criteria that a judge is asked, each met or not met. A scale has one for each level to reach."""
        if not self.levels:
            return (self.text,)
        return tuple(f"On the scale {self.text!r} the answer is at {level!r} or above." for level in self.levels[1:])


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria with one name.

    Attributes:
        name: name of its file, without the ending.
        criteria: its criteria, scales among them.
        experiments: those that it is measured for without a request.
        about: its subject, for people.
    """

    name: str
    criteria: tuple[Criterion, ...]
    experiments: tuple[str, ...] = ()
    about: str = field(default="", compare=False)

    @property
    def version(self) -> int:
        """A number that is another one when a criterion, a level or a weight is another; below 2**31."""
        of = [[each.text, each.levels, each.weight, each.must] for each in self.criteria]
        return int(json_digest(of)[:7], 16) or 1

    @property
    def asked(self) -> list[str]:
        """All that a judge is asked."""
        return [text for each in self.criteria for text in each.asked]


def read_rubrics(folder: Path) -> dict[str, Rubric]:
    """Return the rubrics of a folder by name; none where the folder does not exist.

    Raises:
        SettingsError: a file is not a rubric. The message has file and line, or file and key.
    """
    return {file.stem: _read(file) for file in sorted(folder.glob("*.toml"))} if folder.is_dir() else {}


def _read(file: Path) -> Rubric:
    try:
        table = parsed_toml(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"The rubric {file} cannot be read: {error}") from error
    check_table_keys(str(file), table, _KEYS)
    if not file.stem.replace("-", "_").isidentifier():
        raise SettingsError(f"{file}: a rubric's name has letters, digits, '_' and '-' only.")
    criteria = [_criterion(f"{file}: criteria[{n}]", each) for n, each in enumerate(_list(file, table, "criteria"))]
    criteria += [_scale(f"{file}: scales[{n}]", each) for n, each in enumerate(_list(file, table, "scales"))]
    experiments = _list(file, table, "experiments")
    if not all(isinstance(each, str) for each in experiments):
        raise SettingsError(f'{file}: experiments is {experiments!r}: write names, e.g. ["e3"].')
    rubric = Rubric(file.stem, tuple(criteria), tuple(map(str, experiments)), str(table.get("about", "")))
    _check(file, rubric.asked)
    return rubric


def _check(file: Path, asked: Sequence[str]) -> None:
    twice = next((text for number, text in enumerate(asked) if text in asked[:number]), "")
    if twice:
        raise SettingsError(f"{file}: the criterion {twice!r} is there twice. Give one of them more weight.")
    if not asked:
        raise SettingsError(f'{file}: it has no criterion. Write criteria = ["names the next step"].')
    if len(asked) > MOST_CRITERIA:
        raise SettingsError(f"{file}: {len(asked)} criteria; at most {MOST_CRITERIA}. Make two rubrics of it.")


def _list(file: Path, table: Mapping[str, Any], key: str) -> list[Any]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise SettingsError(f"{file}: {key} is {found!r:.60}: a list was expected.")
    return found


def _criterion(where: str, raw: object) -> Criterion:
    table = raw if isinstance(raw, dict) else {"text": raw}
    check_table_keys(where, table, ("text", "weight", "must"))
    if not isinstance(must := table.get("must", False), bool):
        raise SettingsError(f"{where}: must is {must!r}. Write true or false.")
    return Criterion(_text(where, table.get("text")), weight=_weight(where, table), must=must)


def _scale(where: str, raw: object) -> Criterion:
    if not isinstance(raw, dict):
        raise SettingsError(f"{where} is {raw!r:.60}: expected a table with text and levels.")
    check_table_keys(where, raw, ("text", "levels", "weight"))
    levels = raw.get("levels")
    if not isinstance(levels, list) or not _FEWEST_LEVELS <= len(levels) <= _MOST_LEVELS:
        raise SettingsError(f"{where}: levels are {_FEWEST_LEVELS} to {_MOST_LEVELS} texts, the worst first.")
    named = tuple(_text(f"{where}: levels[{number}]", level) for number, level in enumerate(levels))
    if len({*named}) < len(named):
        raise SettingsError(f"{where}: two levels have one name.")
    return Criterion(_text(where, raw.get("text")), named, _weight(where, raw))


def _weight(where: str, table: Mapping[str, Any]) -> float:
    weight = table.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        raise SettingsError(f"{where}: weight is {weight!r}. Write a number above 0.")
    return float(weight)


def _text(where: str, text: object) -> str:
    if problem := words_problem(text):
        raise SettingsError(f"{where}: {problem}.")
    return str(text)


def rubric_named(name: str, rubrics: Mapping[str, Rubric], folder: Path) -> Rubric:
    """Return the rubric of that name.

    Raises:
        SettingsError: there is none; suggests the nearest one.
    """
    if name not in rubrics:
        known: Iterable[str] = rubrics
        said = unknown("rubric", name, sorted(known)) if rubrics else f"There is no rubric {name!r}."
        raise SettingsError(f"{said} Rubrics are the TOML files of {folder}.")
    return rubrics[name]


# Criteria that ask whether an answer states a fact: a text can be compared with them without a judge of words.
#
# ``says that opened goods are excluded`` is the statement ``opened goods are excluded``. Other criteria, about tone or
# form, are not about facts.

_SUBJECT = r"(?:(?:the |this )?(?:answer|response|reply|it) )?(?:(?:also|clearly|correctly|explicitly) )?"
_NOT = r"(?P<not>(?:does not |doesn't |must not |should not |never )|)(?:must |should |has to )?"
_TO = "(?: the (?:user|customer|reader))?"
_VERB = rf"(?:say|state|mention|note|explain|tell|confirm|add|point out|make clear|claim)s?{_TO}"
_BEGINNING = re.compile(rf"{_SUBJECT}{_NOT}{_VERB} that ", re.IGNORECASE)


def fact_of(criterion: str) -> tuple[str, bool] | None:
    """Return the fact that a criterion asks for, and whether the answer must not state it; None for any other one."""
    found = _BEGINNING.match(criterion.strip())
    fact = criterion.strip()[found.end() :].rstrip(" .!") if found else ""
    return (fact, bool(found["not"])) if found and fact else None
