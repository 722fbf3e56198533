"""Kinds that look at an answer's form: its length, its language, links, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import most_problem, true_problem
from rag_harness.expectations.kinds.json_validation import TooManyStepsError, first_error
from rag_harness.expectations.kinds.pattern import pattern_problem
from rag_harness.registry import missing_package
from rag_harness.types import Expectation
from rag_harness.words.language import KNOWN, told
from rag_harness.words.sentence_ends import sentence_texts

_LINK = re.compile(r"https?://[^\s<>\")\]]{1,2000}", re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


class _Counted(ExpectationKind):
    """A number of things in an answer."""

    of_content = False

    things: ClassVar[str]
    is_most: ClassVar[bool] = True
    of_words = True

    def problem(self, demand: Expectation) -> str:
        return most_problem(demand.wanted) or (
            "" if isinstance(demand.wanted, int) else f"a whole number was expected; found {demand.wanted}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        count = self.count(answer.words)
        return Finding(
            count <= demand.wanted if self.is_most else count >= demand.wanted, f"it has {count:,} {self.things}"
        )

    def count(self, text: str) -> int:
        """Return how many there are."""
        raise NotImplementedError


class MaxWords(_Counted):
    """The answer has at most so many words, citation marks aside."""

    things = "words"

    def count(self, text: str) -> int:
        return sum(any(map(str.isalnum, word)) for word in text.split())


class MinWords(MaxWords):
    """The answer has at least so many words, citation marks aside."""

    is_most = False


class MaxChars(_Counted):
    """The answer has at most so many characters, citation marks and blanks around it aside."""

    things = "characters"

    def count(self, text: str) -> int:
        return len(" ".join(text.split()))


class MinChars(MaxChars):
    """The answer has at least so many characters, citation marks and blanks around it aside."""

    is_most = False


class MaxSentences(_Counted):
    """The answer has at most so many sentences."""

    things = "sentences"

    def count(self, text: str) -> int:
        return len([each for each in sentence_texts(text) if any(map(str.isalnum, each))])


class Links(ExpectationKind):
    """The answer has an http(s) link."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        link = _LINK.search(answer.text)
        return Finding(True, f"it has {link[0]}", *link.span()) if link else Finding(False, "it has no link")


class Language(ExpectationKind):
    """The answer is in the language of this code: "de"."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return (
            ""
            if demand.wanted in KNOWN
            else f"unknown language {demand.wanted!r:.40}. Known: {', '.join(sorted(KNOWN))}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = told(answer.words)
        return (
            Finding(found == demand.wanted, f"it is in {found}")
            if found
            else Finding(None, "too short to tell the language")
        )


class IsJson(ExpectationKind):
    """The answer is JSON; a fence of Markdown around it does not count."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        try:
            read_json_answer(answer.text)
        except ValueError as error:
            return Finding(False, f"it is no JSON: {error}")
        return Finding(True, "it is JSON", 0, len(answer.text))


class Json(ExpectationKind):
    """The answer is JSON that this JSON Schema allows. ``pip install jsonschema`` where it is missing."""

    def problem(self, demand: Expectation) -> str:
        if not isinstance(demand.wanted, dict):
            return f"a JSON Schema was expected, an object; found {demand.wanted!r:.40}"
        try:
            from jsonschema import SchemaError
            from jsonschema.validators import validator_for
        except ImportError as error:
            return missing_package("expectation 'json'", error)
        if _has(demand.wanted, "$ref", lambda reference: not str(reference).startswith("#")):
            return "the schema has a $ref to another file. Write what it says into the schema"
        if _has(demand.wanted, "patternProperties", bool):
            return "patternProperties are not looked at: their patterns could take hours. Name the properties"
        try:
            validator_for(demand.wanted).check_schema(demand.wanted)
        except SchemaError as error:
            return f"no JSON Schema: {error.message}"
        patterns: list[str] = []
        _has(demand.wanted, "pattern", lambda pattern: patterns.append(pattern) if isinstance(pattern, str) else None)
        return next(filter(None, map(pattern_problem, patterns)), "")

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        try:
            said = read_json_answer(answer.text)
        except ValueError as error:
            return Finding(False, f"it is no JSON: {error}")
        try:
            wrong = first_error(demand.wanted, said, len(answer.text))
        except TooManyStepsError as error:
            return Finding(None, str(error))
        except RecursionError:
            return Finding(None, "answer and schema are nested too deep to be checked")
        except (ArithmeticError, ValueError) as error:  # infinity, no number, or more than a float holds
            return Finding(None, f"a number in it cannot be checked: {error}")
        if wrong is None:
            return Finding(True, "the schema allows it", 0, len(answer.text))
        return Finding(False, f"{wrong.json_path}: {wrong.message}"[:300])


def read_json_answer(text: str) -> Any:
    """Return what an answer says in JSON.

    Raises:
        ValueError: it is none.
    """
    fenced = _FENCE.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _has(schema: Any, key: str, which: Callable[[Any], Any]) -> bool:
    """Whether a key of a schema, at any depth, has a value that ``which`` holds for."""
    if isinstance(schema, dict):
        return bool(key in schema and which(schema[key])) or any(_has(each, key, which) for each in schema.values())
    return isinstance(schema, list) and any(_has(each, key, which) for each in schema)
