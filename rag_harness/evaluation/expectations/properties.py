"""Kinds that look at properties of an answer: length, links, JSON, citations, decisions, time, cost and tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from rag_harness.core.errors import RagHarnessError
from rag_harness.core.registry import missing_package
from rag_harness.core.text.language_detection import KNOWN, told
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.text import found_text, matches, pattern_problem
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationKind,
    Finding,
    most_problem,
    text_problem,
    texts_problem,
    true_problem,
)

if TYPE_CHECKING:
    from jsonschema import ValidationError


# Checks JSON against a JSON Schema in a number of steps that grows with the answer alone.
#
# jsonschema compares each item with each other for ``uniqueItems``, and follows each reference of each branch, so that
# a schema of some lines can double its work with each level. Here values are compared by their text, and steps are
# counted.

_LEAST_STEPS = 100_000
"""Steps that every answer may take."""
_STEPS_A_CHARACTER = 10
"""Steps that it may take beside that, for each character. An item of 12 characters with eight keywords takes 20."""
_CHARACTERS_A_STEP = 64
"""Characters of a message, or of an answer in it, that take as long as a step."""
_STEPS_A_PART = 5
"""Steps that it takes to look at a part of a list or an object: each is checked against a schema of its own."""
_WALKING = ("items", "additionalItems", "contains", "propertyNames", "additionalProperties")
"""Keywords that look at each part of a list or an object."""
_SEARCHING = ("unevaluatedItems", "unevaluatedProperties")
"""Keywords that look each part up in a list of those that are known."""
_Keyword: TypeAlias = "Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]"


class TooManyStepsError(RagHarnessError):
    """A schema takes too many steps for an answer."""


def first_error(schema: Mapping[str, Any], value: Any, characters: int) -> ValidationError | None:
    """Return the first thing that a schema does not allow in a value; None where it allows it.

    Args:
        schema: a JSON Schema whose patterns the linear engine takes.
        value: the value of the JSON.
        characters: how long the JSON is. The limit of the steps grows with it.

    Raises:
        TooManyStepsError: there are more steps than the limit.
        RecursionError: schema or value is nested too deep.
    """
    from jsonschema.validators import extend, validator_for

    plain, steps = validator_for(schema), _Steps(characters)
    comparing = _Comparing(steps)
    compared: dict[str, _Keyword] = {
        "pattern": _pattern,
        "uniqueItems": comparing.unique_items,
        "enum": comparing.enum,
        "const": comparing.const,
    }
    keywords = {**plain.VALIDATORS, **{name: each for name, each in compared.items() if name in plain.VALIDATORS}}
    counted = extend(plain, {name: steps.counted(name, keyword) for name, keyword in keywords.items()})
    return next(iter(counted(schema).iter_errors(value)), None)


class _Steps:
    """The steps of one check."""

    def __init__(self, characters: int) -> None:
        self._characters, self._most = characters, _LEAST_STEPS + _STEPS_A_CHARACTER * characters
        self._left = self._most

    def take(self, number: int) -> None:
        """Count steps.

        Raises:
            TooManyStepsError: none are left.
        """
        self._left -= number
        if self._left < 0:
            raise TooManyStepsError(
                f"the schema takes more than {self._most:,} steps for an answer of {self._characters:,} characters. "
                f"Write it with fewer branches and references"
            )

    def counted(self, name: str, keyword: _Keyword) -> _Keyword:
        """Return a keyword that counts its steps: the parts of its value, those that it walks, its message."""

        def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
            self.take(1 + _parts(wanted) + _walked(name, value))
            for error in keyword(validator, wanted, value, schema) or ():
                self.take(1 + len(error.message) // _CHARACTERS_A_STEP)
                yield error

        return check


def _parts(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _walked(keyword: str, value: Any) -> int:
    parts = _STEPS_A_PART * _parts(value)
    if keyword in _SEARCHING:
        return parts + _parts(value) ** 2 // _CHARACTERS_A_STEP
    return parts if keyword in _WALKING else 0


def _pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not matches(wanted, value, case=True):
        yield ValidationError(f"{value!r:.80} does not match {wanted!r}")


class _Comparing:
    """The keywords that compare values: 1 is 1.0, true is not 1, and the order of an object's fields does not count.

    Values are compared by a text: texts have a hash that no answer can be made for.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._allowed: dict[int, frozenset[str]] = {}

    def unique_items(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        if wanted and isinstance(value, list):
            seen: set[str] = set()
            for place, item in enumerate(value):
                text = self._text(item)
                if text in seen:
                    yield ValidationError(f"item {place} is there twice: {text:.80}")
                    return
                seen.add(text)

    def enum(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        # The list is part of the schema, so no other one has its identity during the check.
        if id(wanted) not in self._allowed:
            self._allowed[id(wanted)] = frozenset(map(self._text, wanted))
        if self._text(value) not in self._allowed[id(wanted)]:
            yield ValidationError(f"{value!r:.80} is not one of {wanted!r:.160}")

    def const(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        if self._text(value) != self._text(wanted):
            yield ValidationError(f"{value!r:.80} is not {wanted!r:.160}")

    def _text(self, value: Any) -> str:
        if isinstance(value, list):
            text = f"[{','.join(map(self._text, value))}]"
        elif isinstance(value, dict):
            text = f"{{{','.join(sorted(f'{json.dumps(name)}:{self._text(each)}' for name, each in value.items()))}}}"
        elif isinstance(value, float) and isfinite(value) and value.is_integer():
            text = hex(int(value))
        else:
            text = hex(value) if type(value) is int else json.dumps(value)
        self._steps.take(1 + len(text) // _CHARACTERS_A_STEP)
        return text


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
            return Finding(False, f"it is not JSON: {error}")
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
            return Finding(False, f"it is not JSON: {error}")
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
    """Return the value of the JSON in an answer.

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


_DECISIONS = ("pass", "warn", "abstain")


class Declines(ExpectationKind):
    """The answer says that it does not know."""

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(answer.declined, "it declines" if answer.declined else f"it says “{answer.text[:160].strip()}”")


class Answers(Declines):
    """The answer says something other than that it does not know."""

    of_content = False

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = super().look(answer, demand)
        return Finding(not found.does and bool(answer.text.strip()), found.said)


class Decides(ExpectationKind):
    """A pipeline that decides has decided this: pass, warn or abstain."""

    def problem(self, demand: Expectation) -> str:
        return (
            "" if demand.wanted in _DECISIONS else f"write one of {', '.join(_DECISIONS)}; found {demand.wanted!r:.40}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if not answer.decision:
            return Finding(None, "the pipeline decides nothing")
        return Finding(answer.decision == demand.wanted, f"it decided {answer.decision}")


class MinConfidence(ExpectationKind):
    """The pipeline is at least so sure of its answer, from 0 to 1."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return most_problem(demand.wanted) or (
            "" if demand.wanted <= 1 else f"a number up to 1 was expected; found {demand.wanted}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.confidence is None:
            return Finding(None, "the pipeline states no confidence")
        return Finding(answer.confidence >= demand.wanted, f"its confidence is {answer.confidence:.2f}")


class MaxMs(ExpectationKind):
    """The trial took at most so many milliseconds."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return most_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(answer.ms <= demand.wanted, f"it took {answer.ms:,.0f} ms")


class MaxUsd(MaxMs):
    """The trial cost at most so many US dollars."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.usd is None:
            return Finding(None, "the cost is not known")
        return Finding(answer.usd <= demand.wanted, f"it cost ${answer.usd:.6f}")


class MaxTokens(MaxMs):
    """All calls of the trial together used at most so many tokens."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.tokens is None:
            return Finding(None, "no call reported tokens")
        return Finding(answer.tokens <= demand.wanted, f"it used {answer.tokens:,} tokens")


class Finishes(ExpectationKind):
    """The model stopped for this reason: "stop" where it came to its end, "length" where it was cut short."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if not answer.finish_reason:
            return Finding(None, "the model does not say why it stopped")
        return Finding(answer.finish_reason == demand.wanted, f"it stopped for the reason {answer.finish_reason!r}")


# Kinds that look at what an answer cites, and at what was in its prompt. A document may be a pattern: ``a*.md``.

_NO_SOURCES = Finding(None, "the pipeline reports no sources")


def _is_one_of(document: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(document, each) for each in wanted)


def _cited(answer: AnswerSeen) -> str:
    documents = answer.documents_cited
    return f"it cites {', '.join(documents)}" if documents else "it cites nothing"


class Cites(ExpectationKind):
    """The answer cites this document."""

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        return Finding(any(_is_one_of(each, [demand.wanted]) for each in answer.documents_cited), _cited(answer))


class CitesAny(ExpectationKind):
    """The answer cites at least one of these documents."""

    def problem(self, demand: Expectation) -> str:
        return texts_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        return Finding(any(_is_one_of(each, demand.wanted) for each in answer.documents_cited), _cited(answer))


class CitesAll(CitesAny):
    """The answer cites each of these documents."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        cited = answer.documents_cited
        return Finding(all(any(_is_one_of(each, [one]) for each in cited) for one in demand.wanted), _cited(answer))


class CitesOnly(CitesAny):
    """The answer cites something, and nothing but these documents."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        cited = answer.documents_cited
        return Finding(bool(cited) and all(_is_one_of(each, demand.wanted) for each in cited), _cited(answer))


class CitesSomething(ExpectationKind):
    """The answer cites at least one source of its prompt."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return _NO_SOURCES if answer.sources is None else Finding(bool(answer.documents_cited), _cited(answer))


class ValidCitations(CitesSomething):
    """Each source that the answer cites was in its prompt."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        wrong = ", ".join(map(str, answer.cited_wrongly))
        said = f"of {len(answer.sources)} sources it cites {wrong}" if wrong else "all cited sources were in the prompt"
        return Finding(not wrong, said)


class Retrieves(Cites):
    """A chunk of this document was in the prompt."""

    of_content = False

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        documents = list(dict.fromkeys(each.document for each in answer.sources))
        said = f"its prompt had {', '.join(documents)}" if documents else "its prompt had no sources"
        return Finding(any(_is_one_of(each, [demand.wanted]) for each in documents), said)


class ContextContains(ExpectationKind):
    """The text is in a source of the prompt."""

    of_content = False

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        for number, source in enumerate(answer.sources, 1):
            if found_text(AnswerSeen(source.text), demand.wanted, demand.options).does:
                return Finding(True, f"source {number}, {source.document}, has it")
        return Finding(False, f"none of its {len(answer.sources)} sources has it")
