"""The grammar of gates: parse the text of a gate into a Gate, with promises over repeats and over turns.

Write it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeAlias, cast

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import GOLDEN, limit_of

# Promises over repeats: what a gate asks of several answers to the same question.
#
# ``pass^3(citation_recall)`` is the chance that all of 3 answers are right, ``worst_of_3(token_f1)`` the mean worst
# value of 3, and ``flip_rate(token_f1>=0.5)`` the chance that of 2 answers one is right and one is wrong. An answer is
# right where the measure has its best value, or where it meets the condition behind the measure's name.

PromiseKind: TypeAlias = Literal["pass^", "worst_of_", "flip_rate"]
PROMISE_FORMS = "pass^3(…), worst_of_3(…) or flip_rate(…)"
_OF = re.compile(r"(pass\^|worst_of_|flip_rate)\s*(\w*)\s*\(\s*(.*?)\s*\)")
_LIMITED = re.compile(r"(.*?)\s*([<>=!]+)\s*(.*)")
_LIMITS = (">=", "<=", ">", "<")
_KINDS: dict[str, PromiseKind] = {"pass^": "pass^", "worst_of_": "worst_of_", "flip_rate": "flip_rate"}


@dataclass(frozen=True, slots=True)
class Promise:
    """What is asked of ``k`` answers to each question.

    ``limit`` is the condition of a right answer, as an operator and a number. None is the measure's best value.
    """

    kind: PromiseKind
    k: int
    limit: tuple[str, float] | None = None

    def of(self, measure: str) -> str:
        """Return the text of the promise about a measure: ``pass^3(token_f1>=0.5)``."""
        number = "" if self.kind == "flip_rate" else str(self.k)
        return f"{self.kind}{number}({measure}{limit_text(self.limit)})"

    @property
    def is_share(self) -> bool:
        """Whether its values are chances, whatever the unit of the measure is."""
        return self.kind != "worst_of_"


def number_text(number: float) -> str:
    """Write a number as a person would: 1, not 1.0."""
    return repr(number).removesuffix(".0")


def read_promise(what: str) -> tuple[Promise, str] | None:
    """Return the promise in the left side of a gate, and the name of its measure; None where there is none.

    Raises:
        ValueError: it is half a promise; the message is the problem in words.
    """
    found = _OF.fullmatch(what)
    if not found:
        if what.startswith(("pass^", "pass@")):
            raise ValueError(f"{what!r} is not a promise over repeats; write {PROMISE_FORMS}")
        return None
    kind, digits, inner = _KINDS[found[1]], found[2], found[3]
    if kind == "flip_rate":
        if digits:
            raise ValueError(f"flip_rate compares 2 answers, and takes no number; write flip_rate({inner})")
        return _promise(kind, 2, inner)
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError(f"a number of answers, 1 or more, follows {kind!r}; write {kind}3({inner})")
    return _promise(kind, int(digits), inner)


def _promise(kind: PromiseKind, k: int, inner: str) -> tuple[Promise, str]:
    if "~" in inner:
        raise ValueError(f"people's labels are of first answers, so {inner} has no promise over repeats")
    measure, limit = read_limit(inner)
    if limit and kind == "worst_of_":
        raise ValueError(f"{kind}{k} takes the values themselves; write {kind}{k}({measure}), or pass^{k}({inner})")
    return Promise(kind, k, limit), measure


def read_limit(inner: str) -> tuple[str, tuple[str, float] | None]:
    """Return what stands before the condition of ``token_f1>=0.5``, and the condition; None where there is none.

    A condition inside of parentheses belongs to what is called there.

    Raises:
        ValueError: the condition cannot be read; says why.
    """
    called = inner[: call_end(inner)]
    limited = _LIMITED.fullmatch(inner[len(called) :])
    if not limited:
        return inner, None
    more, op, digits = limited.groups()
    if op not in _LIMITS:
        raise ValueError(f"{op!r} in {inner!r} is not a comparison; use one of {' '.join(_LIMITS)}")
    try:
        limit = float(digits)
    except ValueError:
        limit = float("nan")
    if not isfinite(limit):
        raise ValueError(f"{digits!r} in {inner!r} is not a number")
    return called + more, (op, limit)


def limit_text(limit: tuple[str, float] | None) -> str:
    """Return the text of a condition: ``>=0.5``; empty where there is none."""
    return f"{limit[0]}{number_text(limit[1])}" if limit else ""


def call_end(text: str) -> int:
    """Return where the call at the start of a text ends: behind ``pass^3(token_f1>=0.5)``; 0 without a call."""
    opened = text.find("(")
    if opened < 0 or any(sign in text[:opened] for sign in "<>=!)"):
        return 0
    depth = 0
    for place in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return 0


# What a gate asks of whole conversations in place of single turns.
#
# ``conversation(all(expectations))`` is the share of conversations in which every turn is right,
# ``conversation(mean(faithfulness))`` the mean of the conversations' means, ``conversation(worst(recall@5))`` the mean
# of their worst turns, and ``drift(recall@5)`` how much a value changes from one turn to the next. A turn is right
# where the measure has its best value, or where it meets the condition behind the measure's name.

TurnsKind: TypeAlias = Literal["all", "mean", "worst", "drift"]
TURN_FORMS = "conversation(all(…)), conversation(mean(…)), conversation(worst(…)) or drift(…)"
_TURN_KINDS: dict[str, TurnsKind] = {"all": "all", "mean": "mean", "worst": "worst"}
_CALL = re.compile(r"(conversation|drift)\s*\(\s*(.*?)\s*\)")
_TURNS_CALL = re.compile(r"(\w+)\s*\(\s*(.*?)\s*\)")


@dataclass(frozen=True, slots=True)
class OverTurns:
    """What is asked of the turns of each conversation.

    ``limit`` is the condition of a right turn, as an operator and a number. None is the measure's best value.
    """

    kind: TurnsKind
    limit: tuple[str, float] | None = None

    def of(self, measure: str) -> str:
        """Return the text of what is asked about a measure: ``conversation(all(token_f1>=0.5))``."""
        if self.kind == "drift":
            return f"drift({measure})"
        return f"conversation({self.kind}({measure}{limit_text(self.limit)}))"

    @property
    def is_share(self) -> bool:
        """Whether a conversation's value is 0 or 1, whatever the unit of the measure is."""
        return self.kind == "all"


def begins_over_turns(what: str) -> bool:
    """Return whether a text asks something of whole conversations, or is meant to."""
    return bool(re.match(r"(?:conversation|drift)\s*\(", what))


def read_over_turns(what: str) -> tuple[OverTurns, str] | None:
    """Return what the left side of a gate asks of conversations, and the name of its measure; None where it does not.

    Raises:
        ValueError: it is half of that; the message is the problem in words.
    """
    if not begins_over_turns(what):
        return None
    called = _CALL.fullmatch(what)
    inner = called[2] if called else ""
    if called and called[1] == "drift":
        return OverTurns("drift"), _plain(inner, f"drift({inner})")
    found = _TURNS_CALL.fullmatch(inner)
    if inner.startswith(("pass^", "worst_of_", "flip_rate")):
        _plain(inner, what)
    if not found or found[1] not in _TURN_KINDS:
        raise ValueError(f"{what!r} is nothing that is asked of conversations; write {TURN_FORMS}")
    kind = _TURN_KINDS[found[1]]
    if kind != "all":
        return OverTurns(kind), _plain(found[2], what)
    measure, limit = read_limit(found[2])
    return OverTurns(kind, limit), _plain(measure, what)


def _plain(measure: str, what: str) -> str:
    """Return a measure's name.

    Raises:
        ValueError: it is something else; says why that does not combine.
    """
    if "~" in measure:
        raise ValueError(f"people's labels are of single answers, so {what} has no calibrated mean")
    if re.match(r"(?:pass\^|worst_of_|flip_rate)", measure):
        raise ValueError(f"repeats stand around a conversation: pass^3(conversation(all(expectations))), not {what}")
    if re.match(r"p\d+\s*\(", measure):
        raise ValueError(f"{what}: a conversation has no quantile; write conversation(worst(…)), or p95 of turns")
    if re.search(r"[<>=!]", measure):
        raise ValueError(f"{what} takes the values themselves; only conversation(all(…)) takes a condition")
    return measure


CALIBRATED = "~calibrated"
"""Suffix of a measure: the mean that people would give, by a saved calibration of the judge."""
BASELINE = "baseline"
"""Name on the right of a gate: the same measure in the saved run that this one is compared with."""

CONVERSATION = "conversation"
"""The label that turns of a conversation share."""

Test = Literal["", "paired", "robust"]
"""How a gate is to bound a difference: as its operator asks, by the paired test, or without assumptions."""

_OPERATORS = (">=", "<=", ">", "<")
_EXAMPLE = "Example: 'golden: recall@10 >= 0.95'."
_XFAIL_EXAMPLE = "'xfail e4: abstention_rate >= 0.9 -- the small model cannot'"
_ELSE_EXAMPLE = "'e3: recall@5 >= 0.8 else switch to e2'"

_HEAD = re.compile(r"\s*([^\[\]:<>=!]*)(\[[^\]]*\])?\s*:")
_WITHOUT_COLON = re.compile(r"\s*((?!else\b)[A-Za-z_][\w.-]*(?:\s*\[[^\]]*\])?)[\s;,]+([A-Za-z_].*)", re.DOTALL)
_COMPARISON = re.compile(r"[<>=!]+")
_BOUND = re.compile(r"\s*([\w.-]+)\s*([<>]=?)\s*([+-]?\d+(?:\.\d+)?)\s*")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_KEY = re.compile(r"[\w.-]+")
_MEASURE = re.compile(r"[A-Za-z_][\w.-]*(?:@\w+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_OFFSET = re.compile(r"(\S+)\s+([+-])\s*(\S+)")
_CONFIDENCE = re.compile(r"(.*?)\s*@\s*([\d.]+)\s*(%?)\s*(paired|robust)?\s*")
_XFAIL = re.compile(r"\s*xfail\s+(?=[^\s:\[])(.*)", re.DOTALL)
_REASON = re.compile(r"(.*)\s--\s+(.*?)\s*", re.DOTALL)
_ELSE = re.compile(r"(.*?)(?:^|\s)else(?:\s(.*))?", re.DOTALL)
_LATE_CONFIDENCE = re.compile(r"(?:.*\s)?@\s*[\d.]+\s*%(\s*(?:paired|robust))?")
_QUANTILE = re.compile(r"p(50|95|99)\s*\(\s*(.*?)\s*\)")


@dataclass(frozen=True, slots=True)
class Reference:
    """The same measure and slice of another experiment, or of the baseline, plus an offset."""

    name: str
    offset: float = 0.0

    def __str__(self) -> str:
        if not self.offset:
            return self.name
        return f"{self.name} {'-' if self.offset < 0 else '+'} {number_text(abs(self.offset))}"


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold on the mean of a measure, or on its ``quantile`` in %. ``str`` gives a text that parses to it.

    ``calibrated`` asks for the mean that people would give, estimated from their labels of some answers.
    ``confidence``, in per cent, asks for evidence: without enough of it the gate neither passes nor fails.
    ``otherwise`` says what to do where the condition is not met; it may be empty. ``test`` replaces the operator's own
    way of bounding a difference: ``paired`` is a paired test, ``robust`` bounds it without assumptions, which needs
    more cases. ``expected`` is the reason why a gate is known to fail. Such a gate does not fail the run when it fails,
    and fails the run when it passes. ``over`` asks for several answers to each question, ``turns`` for whole
    conversations.
    """

    suite: str
    slice: tuple[tuple[str, str], ...]
    measure: str
    op: str
    right: float | Reference
    quantile: int | None = None
    calibrated: bool = False
    confidence: float | None = None
    otherwise: str = ""
    test: Test = ""
    expected: str = ""
    over: Promise | None = None
    turns: OverTurns | None = None

    def __str__(self) -> str:
        said = f"{self.condition} else {self.otherwise}" if self.otherwise else self.condition
        return f"xfail {said} -- {self.expected}" if self.expected else said

    @property
    def condition(self) -> str:
        """The gate without its ``else``: the name of its verdict in reports."""
        right = str(self.right) if isinstance(self.right, Reference) else number_text(self.right)
        evidence = (
            f" @{number_text(self.confidence)}%{f' {self.test}' if self.test else ''}"
            if self.confidence is not None
            else ""
        )
        return f"{self.where}: {self.what} {self.op} {right}{evidence}"

    @property
    def what(self) -> str:
        """What is compared with the threshold: ``recall@5``, ``p95(total_ms)``, ``faithfulness~calibrated``."""
        measure = self.measure if self.turns is None else self.turns.of(self.measure)
        if self.over is not None:
            return self.over.of(measure)
        measure += CALIBRATED * self.calibrated
        return measure if self.quantile is None else f"p{self.quantile}({measure})"

    @property
    def counts(self) -> str:
        """What the gate has a value of each of: ``cases``, or ``conversations``."""
        return "conversations" if self.turns is not None else "cases"

    @property
    def cutoff(self) -> int | None:
        """The number of hits in the measure's name; None where it has none, or counts searches."""
        name, _, digits = self.measure.partition("@")
        return int(digits) if digits.isascii() and digits.isdigit() and name != "recall_by_step" else None

    @property
    def where(self) -> str:
        """The cases of the gate: the suite and its slice."""
        pairs = ",".join(f"{key}{value if limit_of(value) else f'={value}'}" for key, value in self.slice)
        return f"{self.suite}[{pairs}]" if pairs else self.suite


def parse_gate(text: str, k: int) -> Gate:
    """Read a gate; ``@k`` becomes the option's k.

    Raises:
        SettingsError: the text is not a gate; shows the text, the wrong part, and an example.
    """
    if marked := _XFAIL.fullmatch(text):
        return _expected(text, marked[1], k)
    head = _HEAD.match(text)
    if head is None and (lacking := _WITHOUT_COLON.match(text)):
        raise wrong(text, f"a colon is missing behind the experiment; write '{lacking[1]}: {lacking[2].strip()}'")
    name, pairs = (head[1].strip(), head[2]) if head else (GOLDEN, None)
    if not _NAME.fullmatch(name):
        raise wrong(text, f"{name!r} before the colon is not a name of an experiment")
    what, op, right = _body(text, text[head.end() :] if head else text)
    right, otherwise = _otherwise(text, right)
    right, confidence, test = _confidence(text, right)
    over, what = _over(text, what)
    turns, what = _turns(text, what)
    share = _QUANTILE.fullmatch(what)
    if turns and turns.kind == "drift" and over:
        raise wrong(text, f"a drift is one number of all conversations, so {over.of(what)} has no repeats")
    if share and begins_over_turns(share[2]):
        raise wrong(text, f"conversations have no quantile here; write {share[2]}, or a quantile of turns")
    measure, tilde, kind = (share[2] if share else what).partition("~")
    measure = measure.strip()
    if tilde and kind.strip() != CALIBRATED[1:]:
        raise wrong(text, f"'~{kind.strip()}' behind {measure!r} is unknown; write {measure}{CALIBRATED}")
    if not _MEASURE.fullmatch(measure):
        raise wrong(text, f"{what!r} before {op!r} is not a measure")
    measure = measure.removesuffix("@k") + f"@{k}" if measure.endswith("@k") else measure
    threshold = _right(text, right)
    if tilde and (share or isinstance(threshold, Reference)):
        raise wrong(text, f"{measure}{CALIBRATED} is a mean, to be compared with a number")
    if share and confidence and isinstance(threshold, Reference):
        raise wrong(text, f"a quantile against {threshold.name} has no bounds; ask for a mean, or leave the @ away")
    if test and not isinstance(threshold, Reference):
        raise wrong(text, f"'{test}' compares with another experiment, case by case; leave it away before a number")
    if over and isinstance(threshold, Reference) and threshold.name == BASELINE:
        raise wrong(text, f"a baseline keeps first answers only; compare {over.of(measure)} with a number")
    if turns and isinstance(threshold, Reference) and threshold.name == BASELINE:
        problem = f"a baseline does not keep why a turn has no value; compare {turns.of(measure)} with a number"
        raise wrong(text, problem)
    quantile, where, is_calibrated = int(share[1]) if share else None, _slice(text, pairs), bool(tilde)
    return Gate(
        name, where, measure, op, threshold, quantile, is_calibrated, confidence, otherwise, test, "", over, turns
    )


def _over(text: str, what: str) -> tuple[Promise | None, str]:
    """Separate a promise over repeats from the name of its measure."""
    try:
        found = read_promise(what)
    except ValueError as problem:
        raise wrong(text, str(problem)) from None
    if found and not (_MEASURE.fullmatch(found[1]) or begins_over_turns(found[1])):
        raise wrong(text, f"{found[1]!r} in {what!r} is not a measure; write {PROMISE_FORMS}")
    return found or (None, what)


def _turns(text: str, what: str) -> tuple[OverTurns | None, str]:
    """Separate what is asked of whole conversations from the name of its measure."""
    try:
        found = read_over_turns(what)
    except ValueError as problem:
        raise wrong(text, str(problem)) from None
    if found and not _MEASURE.fullmatch(found[1]):
        raise wrong(text, f"{found[1]!r} in {what!r} is not a measure")
    return found or (None, what)


def _expected(text: str, rest: str, k: int) -> Gate:
    """Read a gate that is known to fail, with its reason."""
    found = _REASON.fullmatch(rest)
    reason = " ".join(found[2].split()) if found else ""
    if not found or not reason:
        raise wrong(text, f"'xfail' says behind ' -- ' why the gate fails; write {_XFAIL_EXAMPLE}")
    return replace(parse_gate(found[1], k), expected=reason)


def _body(text: str, body: str) -> tuple[str, str, str]:
    # The comparison of a promise follows its parentheses: pass^3(token_f1>=0.5) >= 0.9.
    found = _COMPARISON.search(body, call_end(body))
    if found is None:
        raise wrong(text, f"no comparison in {body.strip()!r}; use one of {' '.join(_OPERATORS)}")
    if found[0] not in _OPERATORS:
        raise wrong(text, f"{found[0]!r} is not a comparison; use one of {' '.join(_OPERATORS)}")
    return body[: found.start()].strip(), found[0], body[found.end() :].strip()


def _otherwise(text: str, right: str) -> tuple[str, str]:
    """Separate the right side from the text after ``else``, and fold white space."""
    found = _ELSE.fullmatch(right)
    if not found:
        return right, ""
    condition, otherwise = found[1].strip(), " ".join((found[2] or "").split())
    if not condition:
        raise wrong(text, f"there is no threshold before 'else'; write {_ELSE_EXAMPLE}")
    if not otherwise:
        raise wrong(text, f"nothing follows 'else'; write {_ELSE_EXAMPLE}, or leave 'else' out")
    if _LATE_CONFIDENCE.fullmatch(otherwise):
        raise wrong(
            text, "a confidence stands before 'else', behind it it is text; write >= 0.8 @95% else switch to e2"
        )
    return condition, otherwise


def _confidence(text: str, right: str) -> tuple[str, float | None, Test]:
    """Separate the right side from the confidence after it, in per cent, and from the test that it names."""
    found = _CONFIDENCE.fullmatch(right)
    if not found:
        return right, None, ""
    try:
        confidence = float(found[2])
    except ValueError:
        raise wrong(text, f"{found[2]!r} behind '@' is not a confidence; write @95%") from None
    if not found[3]:
        raise wrong(text, "a confidence is in per cent; write @95%")
    if not 50 < confidence < 100:
        shown = number_text(confidence)
        raise wrong(text, f"a confidence lies above 50 % and below 100 %; {shown} does not. Write @95%")
    return found[1], confidence, cast("Test", found[4] or "")


def _slice(text: str, pairs: str | None) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for pair in pairs[1:-1].split(",") if pairs is not None else ():
        bounded = _BOUND.fullmatch(pair)
        key, equals, value = (part.strip() for part in (bounded.groups() if bounded else pair.partition("=")))
        if not (equals and value and _KEY.fullmatch(key)):
            raise wrong(
                text, f"{pair.strip()!r} in the brackets is not key=value, e.g. [query_type=multi_hop] or [turn>=3]"
            )
        value = f"{equals}{value}" if bounded else value
        if key in found:
            raise wrong(text, f"{key!r} stands twice in the brackets")
        found[key] = value
    return tuple(found.items())


def _right(text: str, right: str) -> float | Reference:
    if _NUMBER.fullmatch(right):
        return _number(text, right)
    if right.endswith("%"):
        number = right[:-1].strip()
        share = f"{number_text(float(number) / 100)}" if _NUMBER.fullmatch(number) else "0.95"
        raise wrong(text, f"a threshold is a share, not a percentage; write {share} instead of {right!r}")
    offset = _OFFSET.fullmatch(right)
    name = offset[1] if offset else right
    if not _NAME.fullmatch(name) or (offset and not _NUMBER.fullmatch(offset[3])):
        raise wrong(text, f"{right!r} on the right is not a number, no experiment, and no 'baseline - 0.02'")
    return Reference(name, _number(text, offset[2] + offset[3]) if offset else 0.0)


def _number(text: str, digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise wrong(text, f"{digits!r} is too large a number")
    return number


def wrong(text: str, problem: str) -> SettingsError:
    """Return the error of a gate: its text, the problem, and an example."""
    return SettingsError(f"Gate '{text.strip()}': {problem}. {_EXAMPLE}")
