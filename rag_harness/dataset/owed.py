"""What answers owe beside what their own questions demand: all to some data, or those of one experiment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.expectations import MOST_EXPECTED, as_json, contradictions, expectations_of
from rag_harness.types import Case, Expectation


@dataclass(frozen=True)
class Owed:
    """Expectations of many answers.

    Attributes:
        everywhere: of each answer.
        of_case: of the answer to one query, by its id.
        places: where they are written, for messages.
    """

    everywhere: tuple[Expectation, ...] = ()
    of_case: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    places: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.everywhere or any(self.of_case.values()))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        of_case = {query_id: [*map(as_json, each)] for query_id, each in self.of_case.items()}
        return {"everywhere": [*map(as_json, self.everywhere)], "of_case": of_case, "places": list(self.places)}

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Owed:
        """Return what ``as_json`` has written."""
        of_case = {query_id: expectations_of(each)[0] for query_id, each in said["of_case"].items()}
        return cls(expectations_of(said["everywhere"])[0], of_case, tuple(said["places"]))

    def added_to(self, cases: Sequence[Case], file: Path) -> list[Case]:
        """Return cases with what is owed added. What a case demands itself is not demanded twice.

        Args:
            cases: the cases.
            file: where their questions stand, for messages.

        Raises:
            SettingsError: no answer to a case can keep all of it, or it is too much.
        """
        found = [replace(case, expect=self._whole(case)) for case in cases]
        for case in found:
            if problem := next(_problems(case.expect), ""):
                places = ", ".join(self.places)
                raise SettingsError(f"{places}, and {case.query.query_id} in {file}, cannot all be kept: {problem}.")
        return found

    def _whole(self, case: Case) -> tuple[Expectation, ...]:
        return joined(case.expect, self.everywhere, self.of_case.get(case.query.query_id, ()))


def _problems(expected: Sequence[Expectation]) -> Iterator[str]:
    if len(expected) > MOST_EXPECTED:
        yield f"{len(expected):,} expectations; a case may have {MOST_EXPECTED}"
    yield from contradictions(expected)


def joined(*parts: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """Return the expectations of all parts, equal ones once."""
    found: list[Expectation] = []
    for each in (each for part in parts for each in part):
        if each not in found:
            found.append(each)
    return tuple(found)


def stated_in(texts: Sequence[str], where: str) -> tuple[Expectation, ...]:
    """Return the expectations that JSON objects state; ``where`` they stand begins a message.

    Raises:
        SettingsError: one is no JSON, or no expectation.
    """
    raw = []
    for text in texts:
        try:
            raw.append(json.loads(text))
        except ValueError as error:
            raise SettingsError(
                f'{where}: {text!r:.60} is no JSON object, e.g. {{"max_words": 120}}: {error}.'
            ) from None
    return checked(raw, where)


def checked(raw: object, where: str) -> tuple[Expectation, ...]:
    """Return the expectations that a list of objects states; ``where`` they stand begins a message.

    Raises:
        SettingsError: it is no list, or one is no expectation.
    """
    found, problems = expectations_of(raw)
    if problems:
        raise SettingsError("\n".join(f"{where}: {each}" for each in problems))
    return found


def plain(value: object, where: str) -> Any:
    """Return a value of Python as JSON has it; a tuple is a list. ``where`` it stands begins a message.

    Raises:
        SettingsError: JSON cannot hold it.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{where} takes what JSON can hold: {error}.") from None
