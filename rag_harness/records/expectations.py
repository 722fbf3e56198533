"""Expectations, the demands of a case on its answer.

Base class of kinds, parser, JSON Schema and check of an answer.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from rag_harness.core.errors import SettingsError, is_near, unknown
from rag_harness.core.json_text import Schema, closed, list_schema, one_of
from rag_harness.core.processes import Unchecked, checked, is_long
from rag_harness.core.registry import is_own, registered, resolve
from rag_harness.core.text.comparison import ComparableText, comparable_text
from rag_harness.core.text.terms import CITATION
from rag_harness.core.types import Case, Expectation

__all__ = [
    "MOST_EXPECTED",
    "AnswerSeen",
    "ExpectationKind",
    "ExpectationResult",
    "Finding",
    "Source",
    "as_found",
    "as_json",
    "contradictions",
    "expectations_of",
    "kept_share",
    "kind_of",
    "known_kinds",
    "looked_at",
    "needs_model",
    "tells_by_words",
]


LONGEST = 200_000
"""The most characters of an answer that are looked at. Longer ones are not checked, and that is said."""


AsksFor: TypeAlias = Literal["nothing", "criterion", "similarity"]
"""What a kind needs a model for: nothing, a judge's verdict on a criterion, or the vectors of an embedder."""


@dataclass(frozen=True)
class Source:
    """A chunk of the prompt: its document, and its text."""

    document: str
    text: str


@dataclass(frozen=True)
class AnswerSeen:
    """The answer that expectations are checked on.

    Attributes:
        text: the answer as the user gets it.
        declined: whether it says that it does not know.
        sources: chunks of the prompt, in their order; None where the pipeline reports none.
        cited: numbers of the sources that the answer cites, from 1.
        cited_wrongly: numbers that it cites, and that no source has.
        decision: the decision of a pipeline that decides: pass, warn, abstain; empty for others.
        confidence: from 0 to 1; None where the pipeline states none.
        ms: time of the whole trial, in milliseconds.
        usd: cost in US dollars; None where it is not known.
        tokens: tokens of all calls; None where no call reported any.
        finish_reason: why the model stopped; empty where it does not say.
        explained: whether to look for the words that the answer has instead of a missing text, which takes longest.
    """

    text: str
    declined: bool = False
    sources: Sequence[Source] | None = ()
    cited: Sequence[int] = ()
    cited_wrongly: Sequence[int] = ()
    decision: str = ""
    confidence: float | None = None
    ms: float = 0.0
    usd: float | None = None
    tokens: int | None = None
    finish_reason: str = ""
    explained: bool = True

    @cached_property
    def words(self) -> str:
        """The text with blanks in place of citation marks: as long as the text, so that positions are the same."""
        return CITATION.sub(lambda mark: " " * len(mark[0]), self.text)

    @cached_property
    def plain(self) -> ComparableText:
        """The words as they are compared, with their places in the text."""
        return comparable_text(self.words)

    @property
    def documents_cited(self) -> list[str]:
        """The documents that the answer cites, each once, in the order of the citations."""
        sources = self.sources or ()
        return list(dict.fromkeys(sources[n - 1].document for n in self.cited if 1 <= n <= len(sources)))


@dataclass(frozen=True)
class Finding:
    """The result of a kind for an answer.

    Attributes:
        does: whether the answer does what the kind is about; None where that cannot be decided.
        said: the words of the answer, or why no decision is possible. It ends a sentence that begins with the demand.
        start: where in the answer the place begins; -1 where there is none.
        end: where the place ends.
    """

    does: bool | None
    said: str = ""
    start: int = -1
    end: int = -1


class ExpectationKind(ABC):
    """A kind of expectation. Derive from it and register the class; one object serves all cases.

    Its docstring's first line says in the list of kinds what an answer does that keeps to it.
    """

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {}
    """Values that may be beside the demand, by name, with their types."""
    of_words: ClassVar[bool] = False
    """Whether it looks at the words alone, so that a right answer written by a person keeps to it, too.

    Checks of questions set such a kind against the ground truth.
    """

    of_content: ClassVar[bool] = True
    """Whether an answer that keeps to it is right, as far as it goes; False for form, time, cost, or what was found."""

    asks: ClassVar[AsksFor] = "nothing"
    """What it needs a model for. Where it needs one, ``look`` is not asked: the answer is judged."""

    def criterion(self, demand: Expectation) -> str:
        """Return the criterion that a judge is asked about, if the kind asks a judge."""
        return str(demand.wanted)

    @abstractmethod
    def problem(self, demand: Expectation) -> str:
        """Return the fault of a demand; empty where it can be checked."""

    @abstractmethod
    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        """Return the finding in an answer. ``problem`` has accepted the demand."""


# What a demand may be: a text, texts, a number, ``true``. Each function returns what is wrong; empty: nothing is.

LONGEST_TEXT = 2_000


def text_problem(wanted: Any) -> str:
    """A text with at least one character other than a blank."""
    if not isinstance(wanted, str) or not wanted.strip():
        return f"a text was expected; found {wanted!r:.40}"
    return f"longer than {LONGEST_TEXT:,} characters" if len(wanted) > LONGEST_TEXT else ""


def texts_problem(wanted: Any) -> str:
    """A list of such texts."""
    if not isinstance(wanted, list) or not wanted:
        return f"a list of texts was expected; found {wanted!r:.40}"
    return next(filter(None, map(text_problem, wanted)), "")


def number_problem(wanted: Any) -> str:
    """A finite number."""
    is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool) and isfinite(wanted)
    return "" if is_number else f"a number was expected; found {wanted!r:.40}"


def most_problem(wanted: Any) -> str:
    """A number of 0 or more."""
    return number_problem(wanted) or ("" if wanted >= 0 else f"a number of 0 or more was expected; found {wanted}")


def true_problem(wanted: Any) -> str:
    """``true``: the opposite is written with ``not``."""
    return "" if wanted is True else f'write true, and for the opposite {{"not": …}}; found {wanted!r:.40}'


_LIMITS = (("max_words", "min_words"), ("max_chars", "min_chars"))
_SINGLE = ("equals", "language", "decides", "finishes")
"""Kinds of which an answer has one value."""


def contradictions(expected: Sequence[Expectation]) -> Iterator[str]:
    """Yield pairs that no answer can keep at once."""
    yield from _both_ways(expected)
    plain: dict[str, list[Any]] = defaultdict(list)
    for each in expected:
        if not each.negated:
            plain[each.kind].append(each.wanted)
    if "declines" in plain and "answers" in plain:
        yield "declines and answers are demanded at once"
    for most, least in _LIMITS:
        if most in plain and least in plain and min(plain[most]) < max(plain[least]):
            yield f"{most} {min(plain[most])} is less than {least} {max(plain[least])}"
    yield from _of_one_value(plain)


def _both_ways(expected: Sequence[Expectation]) -> Iterator[str]:
    ways: dict[str, set[bool]] = {}
    for each in expected:
        demand = json.dumps([each.kind, each.wanted, dict(each.options)], sort_keys=True)
        seen = ways.setdefault(demand, set())
        if seen == {not each.negated}:
            yield f"{each.kind} is demanded and forbidden at once: {in_short(each.wanted)}"
        seen.add(each.negated)


def _of_one_value(plain: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for kind in _SINGLE:
        values = {" ".join(str(wanted).casefold().split()): wanted for wanted in plain.get(kind, ())}
        if len(values) > 1:
            first, second, *_ = map(in_short, values.values())
            yield f"{kind} is demanded as {first} and as {second}"


def in_short(value: object) -> str:
    """Return a value as JSON for a message, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


# Reads expectations from JSON, and says what is wrong with them before anything is asked.

GROUP = "expectations"
MOST_EXPECTED = 100
"""The most expectations of a case."""
_LONGEST = 20_000
"""The most characters of one expectation, as JSON."""
_BESIDE = ("weight", "must")
_WRITTEN: Mapping[object, str] = {bool: "true or false", str: "a text"}


def known_kinds() -> list[str]:
    """Return the registered kinds."""
    return sorted(registered(GROUP))


@cache
def kind_of(name: str) -> ExpectationKind:
    """Return the kind of a registered name."""
    made: ExpectationKind = resolve(GROUP, name)()
    return made


def tells_by_words(expectation: Expectation) -> bool:
    """Whether an expectation is about the words alone, so that a right answer written by a person keeps to it, too."""
    return kind_of(expectation.kind).of_words


def needs_model(expectation: Expectation) -> bool:
    """Whether a judge or an embedder has to be asked about an expectation: its row alone does not tell."""
    return kind_of(expectation.kind).asks != "nothing"


def expectations_of(raw: object) -> tuple[tuple[Expectation, ...], list[str]]:
    """Return the expectations that ``raw`` lists, and its faults, a sentence each.

    Args:
        raw: a list of objects: the kind with what is wanted, or ``not`` with such an object; ``weight`` and ``must``.
    """
    if not isinstance(raw, list):
        return (), [f'a list of objects was expected, e.g. [{{"contains": "45 days"}}]; found {in_short(raw)}']
    if len(raw) > MOST_EXPECTED:
        return (), [f"{len(raw):,} expectations; a case may have {MOST_EXPECTED}"]
    found: list[Expectation] = []
    problems: list[str] = []
    for number, each in enumerate(raw):
        read = _one(each)
        if isinstance(read, str):
            problems.append(f"{number}: {read}")
        else:
            found.append(read)
    return tuple(found), problems or [*contradictions(found)]


def as_json(expectation: Expectation) -> dict[str, Any]:
    """Return the object that states an expectation."""
    demand: dict[str, Any] = {expectation.kind: expectation.wanted, **expectation.options}
    said: dict[str, Any] = {"not": demand} if expectation.negated else demand
    weight = {"weight": expectation.weight} if expectation.weight != 1 else {}
    return {**said, **weight, **({"must": True} if expectation.must else {})}


def _one(raw: object) -> Expectation | str:
    if not isinstance(raw, dict):
        return f'an object was expected, e.g. {{"contains": "45 days"}}; found {in_short(raw)}'
    if len(json.dumps(raw, default=str)) > _LONGEST:
        return f"longer than {_LONGEST:,} characters. Shorten it, or make several of it"
    beside = {name: raw[name] for name in _BESIDE if name in raw}
    demand = {name: value for name, value in raw.items() if name not in _BESIDE}
    negated = "not" in demand
    if negated:
        inner, more = demand.pop("not"), list(demand)
        if more:
            return f"{more[0]!r} is beside 'not'. Put it inside"
        if not isinstance(inner, dict):
            return f'\'not\' takes one object, e.g. {{"not": {{"contains": "refund"}}}}; found {in_short(inner)}'
        if "not" in inner:
            return "'not' is in 'not'. Take both away"
        demand = inner
    return _beside(beside) or _demand(demand, negated, beside)


def _beside(beside: Mapping[str, Any]) -> str:
    weight, must = beside.get("weight", 1), beside.get("must", False)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        return f"weight is {in_short(weight)}. Write a number above 0"
    return "" if isinstance(must, bool) else f"must is {in_short(must)}. Write true or false"


def _demand(demand: Mapping[str, Any], negated: bool, beside: Mapping[str, Any]) -> Expectation | str:
    named = [name for name in demand if name in registered(GROUP)]
    if len(named) > 1:
        return f"two kinds in one object, {named[0]} and {named[1]}. Make two of it"
    if not named:
        return _unknown(demand) if demand else "it names no kind"
    name = named[0]
    kind, options = kind_of(name), {key: value for key, value in demand.items() if key != name}
    if wrong := _options(kind, options):
        return f"{name}: {wrong}"
    weight, must = float(beside.get("weight", 1)), bool(beside.get("must", False))
    read = Expectation(name, demand[name], options, negated, weight, must)
    problem = kind.problem(read)
    several = isinstance(read.wanted, list) and f"{name}_any" in registered(GROUP)
    return f"{name}: {problem}{f'. For several there is {name}_any' * several}" if problem else read


def _unknown(demand: Mapping[str, Any]) -> str:
    """Return the message that an object names no known kind, with the nearest name."""
    name, wanted = next(iter(demand.items()))
    bare = name.replace("-", "_")
    if bare.startswith("not_") and bare[4:] in registered(GROUP):
        return f'Unknown kind of expectation {name!r}. Write {{"not": {{"{bare[4:]}": {in_short(wanted)}}}}}'
    if name in ("type", "kind"):
        return f'Unknown kind of expectation {name!r}. The kind is the key: {{"contains": "45 days"}}'
    said = unknown("kind of expectation", name, known_kinds()).rstrip(".")
    return said.partition(" Known: ")[0] if is_near(name, known_kinds()) else said


def _options(kind: ExpectationKind, options: Mapping[str, Any]) -> str:
    """Return the fault of the values beside a demand; empty without one."""
    for key, value in options.items():
        if key not in kind.options:
            return unknown("option", key, [*kind.options, *_BESIDE]).rstrip(".")
        if isinstance(value, bool) != (kind.options[key] is bool) or not isinstance(value, kind.options[key]):
            return f"{key} is {in_short(value)}. Write {_WRITTEN.get(kind.options[key], 'a number')}"
    return ""


@dataclass(frozen=True)
class ExpectationResult:
    """An expectation and whether the answer keeps to it; None where that could not be checked.

    ``said`` has the words of the answer, or why it could not be checked. ``start`` and ``end`` are its place.
    """

    expectation: Expectation
    kept: bool | None
    said: str = ""
    start: int = -1
    end: int = -1


def looked_at(expectations: Sequence[Expectation], answer: AnswerSeen) -> list[ExpectationResult]:
    """Return each expectation with its finding in an answer. A long answer is checked in the time of a short one."""
    if len(answer.text) > LONGEST:
        too_long = Finding(None, f"the answer has {len(answer.text):,} characters; {LONGEST:,} are looked at")
        return [as_found(each, too_long) for each in expectations]
    kinds = [(kind_of(each.kind), each) for each in expectations]
    if not is_long(answer.text):
        return [as_found(each, kind.look(answer, each)) for kind, each in kinds]
    # Kinds of a user's own stay here: they may hang on what this process has.
    ours = [place for place, (kind, _) in enumerate(kinds) if not is_own(type(kind).__module__)]
    found = dict(zip(ours, checked(_look, [kinds[place] for place in ours], answer, answer.text), strict=True))
    return [
        as_found(each, _finding(found[place]) if place in found else kind.look(answer, each))
        for place, (kind, each) in enumerate(kinds)
    ]


def _look(asked: tuple[ExpectationKind, Expectation], answer: AnswerSeen) -> Finding:
    kind, expectation = asked
    return kind.look(answer, expectation)


def _finding(came: Finding | Unchecked) -> Finding:
    return Finding(None, came.why) if isinstance(came, Unchecked) else came


def as_found(expectation: Expectation, found: Finding) -> ExpectationResult:
    """Return an expectation with its finding. Where no decision is possible, "not" does not make one."""
    kept = None if found.does is None else found.does != expectation.negated
    return ExpectationResult(expectation, kept, found.said, found.start, found.end)


def kept_share(found: Sequence[ExpectationResult]) -> tuple[float | None, str]:
    """Return the weighted share of expectations that are met, and a text about the others.

    It is None where one could not be checked. The others must not represent it, and a figure over the decided cases
    alone would be about other cases. Else it is 0 where an expectation with ``must`` is not met.
    """
    broken = [each for each in found if each.kept is False]
    unchecked = [each for each in found if each.kept is None]
    if unchecked:
        # It is counted over cases by its words, so it has no number in it.
        return None, f"an unchecked expectation: {unchecked[0].expectation}: {unchecked[0].said}"
    for each in broken:
        if each.expectation.must:
            return 0.0, f"must {each.expectation}: {each.said}"
    total = sum(each.expectation.weight for each in found)
    share = sum(each.expectation.weight for each in found if each.kept) / total
    return share, "; ".join(f"{each.expectation}: {each.said}" for each in broken)


# The JSON Schema of a list of expectations. Each kind checks itself what it wants; the schema says which there are.

_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_COMMON_OPTIONS: dict[str, Schema] = {
    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "how much it counts; 1 where it is missing"},
    "must": {"type": "boolean", "description": "without it the whole answer counts as nothing"},
}


def expectations_schema() -> Schema:
    """Return the schema of a list of expectations, with the kinds that are installed."""
    demands = [_kind_schema(name, kind_of(name), {}) for name in known_kinds()]
    beside = [_kind_schema(name, kind_of(name), _COMMON_OPTIONS) for name in known_kinds()]
    negated = closed({"not": one_of(*demands, about="what an answer must not do"), **_COMMON_OPTIONS}, ["not"])
    return list_schema(one_of(*beside, negated), "what the answer has to keep to", maxItems=MOST_EXPECTED)


def _kind_schema(name: str, kind: ExpectationKind, beside: dict[str, Schema]) -> Schema:
    said = (type(kind).__doc__ or "").strip().partition("\n")[0]
    options = {option: _typed(types) for option, types in kind.options.items()}
    return closed({name: {"description": said} if said else {}, **options, **beside}, [name])


def _typed(types: type | tuple[type, ...]) -> Schema:
    names: list[Any] = [_TYPES[each] for each in (types if isinstance(types, tuple) else (types,)) if each in _TYPES]
    return {"type": names[0] if len(names) == 1 else names} if names else {}


# What answers owe beside what their own questions demand: all to some data, or those of one experiment.


@dataclass(frozen=True)
class AddedExpectations:
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
    def of_json(cls, said: Mapping[str, Any]) -> AddedExpectations:
        """Return what ``as_json`` has written."""
        of_case = {query_id: expectations_of(each)[0] for query_id, each in said["of_case"].items()}
        return cls(expectations_of(said["everywhere"])[0], of_case, tuple(said["places"]))

    def added_to(self, cases: Sequence[Case], file: Path) -> list[Case]:
        """Return cases with expectations added. An expectation that a case has itself is not added twice.

        Args:
            cases: the cases.
            file: the file of their questions, as messages name it.

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
        return joined_expectations(case.expect, self.everywhere, self.of_case.get(case.query.query_id, ()))


def _problems(expected: Sequence[Expectation]) -> Iterator[str]:
    if len(expected) > MOST_EXPECTED:
        yield f"{len(expected):,} expectations; a case may have {MOST_EXPECTED}"
    yield from contradictions(expected)


def joined_expectations(*parts: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """Return the expectations of all parts, equal ones once."""
    found: list[Expectation] = []
    for each in (each for part in parts for each in part):
        if each not in found:
            found.append(each)
    return tuple(found)


def stated_in(texts: Sequence[str], where: str) -> tuple[Expectation, ...]:
    """Return the expectations that JSON objects state; ``where``, their place, begins a message.

    Raises:
        SettingsError: one is not JSON, or not an expectation.
    """
    raw = []
    for text in texts:
        try:
            raw.append(json.loads(text))
        except ValueError as error:
            raise SettingsError(
                f'{where}: {text!r:.60} is not a JSON object, e.g. {{"max_words": 120}}: {error}.'
            ) from None
    return checked_expectations(raw, where)


def checked_expectations(raw: object, where: str) -> tuple[Expectation, ...]:
    """Return the expectations that a list of objects states; ``where``, their place, begins a message.

    Raises:
        SettingsError: the value is not a list, or an item is not an expectation.
    """
    found, problems = expectations_of(raw)
    if problems:
        raise SettingsError("\n".join(f"{where}: {each}" for each in problems))
    return found


def plain_expectations(value: object, where: str) -> Any:
    """Return a value of Python as JSON has it; a tuple is a list. ``where`` it stands begins a message.

    Raises:
        SettingsError: JSON cannot hold it.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{where} takes what JSON can hold: {error}.") from None
