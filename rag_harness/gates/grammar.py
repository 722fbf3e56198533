"""Parses the text of a gate into a ``Gate``, writes it again, and checks that its names exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import isfinite

from rag_harness.errors import SettingsError, unknown
from rag_harness.types import GOLDEN

CALIBRATED = "~calibrated"
"""Suffix of a measure: the mean that people would give, by a saved calibration of the judge."""
BASELINE = "baseline"
"""Name on the right of a gate: the same measure in the saved run that this one is compared with."""

_OPERATORS = (">=", "<=", ">", "<")
_EXAMPLE = "Example: 'golden: recall@10 >= 0.95'."
_XFAIL_EXAMPLE = "'xfail e4: abstention_rate >= 0.9 -- the small model cannot'"
_ELSE_EXAMPLE = "'e3: recall@5 >= 0.8 else switch to e2'"

_HEAD = re.compile(r"\s*([^\[\]:<>=!]*)(\[[^\]]*\])?\s*:")
_COMPARISON = re.compile(r"[<>=!]+")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_KEY = re.compile(r"[\w.-]+")
_MEASURE = re.compile(r"[A-Za-z_][\w.-]*(?:@\w+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# A sign needs a space before it, because names may contain a hyphen: gpt-4.
_GLUED = re.compile(r"(.*[^-+])([-+])(\d*\.?\d+)")
_OFFSET = re.compile(r"(\S+)\s+([+-])\s*(\S+)")
_CONFIDENCE = re.compile(r"(.*?)\s*@\s*([\d.]+)\s*(%?)\s*(paired)?\s*")
_XFAIL = re.compile(r"\s*xfail\s+(?=[^\s:\[])(.*)", re.DOTALL)
_REASON = re.compile(r"(.*)\s--\s+(.*?)\s*", re.DOTALL)
_ELSE = re.compile(r"(.*?)(?:^|\s)else(?:\s(.*))?", re.DOTALL)
_LATE_CONFIDENCE = re.compile(r"(?:.*\s)?@\s*[\d.]+\s*%(\s*paired)?")
_QUANTILE = re.compile(r"p(50|95|99)\s*\(\s*(.*?)\s*\)")


@dataclass(frozen=True, slots=True)
class Reference:
    """The same measure and slice of another experiment, or of the baseline, plus an offset."""

    name: str
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} {'-' if self.offset < 0 else '+'} {_text(abs(self.offset))}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold on the mean of a measure, or on its ``quantile`` in %. ``str`` gives a text that parses to it.

    ``calibrated`` asks for the mean that people would give, estimated from their labels of some answers.
    ``confidence``, in per cent, asks for evidence: without enough of it the gate neither passes nor fails.
    ``otherwise`` says what to do where the condition does not hold; it may be empty. ``paired`` asks for a paired test
    against another experiment, in place of assumption-free bounds. ``expected`` is the reason why a gate is known to
    fail: then it is no failure when the gate fails, and a failure when it passes.
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
    paired: bool = False
    expected: str = ""

    def __str__(self) -> str:
        said = f"{self.condition} else {self.otherwise}" if self.otherwise else self.condition
        return f"xfail {said} -- {self.expected}" if self.expected else said

    @property
    def condition(self) -> str:
        """The gate without its ``else``: the name of its verdict in reports."""
        right = str(self.right) if isinstance(self.right, Reference) else _text(self.right)
        evidence = f" @{_text(self.confidence)}%{' paired' * self.paired}" if self.confidence is not None else ""
        return f"{self.where}: {self.what} {self.op} {right}{evidence}"

    @property
    def what(self) -> str:
        """What is compared with the threshold: ``recall@5``, ``p95(total_ms)``, ``faithfulness~calibrated``."""
        measure = self.measure + CALIBRATED * self.calibrated
        return measure if self.quantile is None else f"p{self.quantile}({measure})"

    @property
    def cutoff(self) -> int | None:
        """The cutoff in the measure's name; None where it has none."""
        digits = self.measure.partition("@")[2]
        return int(digits) if digits.isascii() and digits.isdigit() else None

    @property
    def where(self) -> str:
        """The cases of the gate: the suite and its slice."""
        pairs = ",".join(f"{key}={value}" for key, value in self.slice)
        return f"{self.suite}[{pairs}]" if pairs else self.suite


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a gate may contain.

    ``slices`` maps each key to the values that cases have; an empty collection allows any value. ``check_measure``
    raises a SettingsError for a name that is no measure. ``is_share`` says whether a measure lies in [0, 1]: a
    threshold outside of that is a mistake.
    """

    names: Collection[str]
    slices: Mapping[str, Collection[str]]
    check_measure: Callable[[str], object]
    is_share: Callable[[str], bool] = lambda _: False


def parse_gate(text: str, k: int) -> Gate:
    """Read a gate; ``@k`` becomes the option's k.

    Raises:
        SettingsError: the text is no gate; shows the text, the wrong part, and an example.
    """
    if marked := _XFAIL.fullmatch(text):
        return _expected(text, marked[1], k)
    head = _HEAD.match(text)
    name, pairs = (head[1].strip(), head[2]) if head else (GOLDEN, None)
    if not _NAME.fullmatch(name):
        raise _wrong(text, f"{name!r} before the colon is no name of an experiment")
    what, op, right = _body(text, text[head.end() :] if head else text)
    right, otherwise = _otherwise(text, right)
    right, confidence, paired = _confidence(text, right)
    share = _QUANTILE.fullmatch(what)
    measure, tilde, kind = (share[2] if share else what).partition("~")
    measure = measure.strip()
    if tilde and kind.strip() != CALIBRATED[1:]:
        raise _wrong(text, f"'~{kind.strip()}' behind {measure!r} is unknown; write {measure}{CALIBRATED}")
    if not _MEASURE.fullmatch(measure):
        raise _wrong(text, f"{what!r} before {op!r} is no measure")
    measure = measure.removesuffix("@k") + f"@{k}" if measure.endswith("@k") else measure
    threshold = _right(text, right)
    if tilde and (share or isinstance(threshold, Reference)):
        raise _wrong(text, f"{measure}{CALIBRATED} is a mean, to be held against a number")
    if share and confidence and isinstance(threshold, Reference):
        raise _wrong(text, f"a quantile against {threshold.name} has no bounds; ask for a mean, or leave the @ away")
    if paired and not isinstance(threshold, Reference):
        raise _wrong(text, "'paired' compares with another experiment, case by case; leave it away before a number")
    quantile = int(share[1]) if share else None
    where = _slice(text, pairs)
    return Gate(name, where, measure, op, threshold, quantile, bool(tilde), confidence, otherwise, paired)


def _expected(text: str, rest: str, k: int) -> Gate:
    """Read a gate that is known to fail, with its reason."""
    found = _REASON.fullmatch(rest)
    reason = " ".join(found[2].split()) if found else ""
    if not found or not reason:
        raise _wrong(text, f"'xfail' says behind ' -- ' why the gate fails; write {_XFAIL_EXAMPLE}")
    return replace(parse_gate(found[1], k), expected=reason)


def check_gate(gate: Gate, known: KnownNames) -> None:
    """Make sure that everything a gate names exists.

    Raises:
        SettingsError: an unknown measure, experiment or slice, or a threshold that a share cannot have.
    """
    _known(gate, "experiment", gate.suite, set(known.names) - {BASELINE})
    for key, value in gate.slice:
        _known(gate, "slice key", key, known.slices)
        if known.slices[key]:
            _known(gate, f"value of {key}", value, known.slices[key])
    if isinstance(gate.right, Reference):
        _known_right(gate, gate.right, known)
    try:
        known.check_measure(gate.measure)
    except SettingsError as error:
        raise SettingsError(f"Gate '{gate}': {error}") from error
    if known.is_share(gate.measure) and isinstance(gate.right, Reference) and abs(gate.right.offset) > 1:
        raise _wrong(str(gate), f"two of {gate.measure} differ by 1 at most; {_text(abs(gate.right.offset))} is more")
    if known.is_share(gate.measure) and not isinstance(gate.right, Reference) and not 0 <= gate.right <= 1:
        raise _wrong(
            str(gate), f"{gate.measure} lies between 0 and 1; {_text(gate.right)} does not. Write 0.95 for 95 %"
        )


def _known_right(gate: Gate, right: Reference, known: KnownNames) -> None:
    if right.name == BASELINE and BASELINE not in known.names:
        raise SettingsError(
            f"Gate '{gate}': there is no baseline in this run. Name a saved one with --rag-compare NAME."
        )
    if right.name == gate.suite:
        raise _wrong(str(gate), f"{right.name!r} would be compared with itself")
    if right.name not in known.names and (glued := _GLUED.fullmatch(right.name)):
        raise _wrong(str(gate), f"an offset needs spaces around its sign; write '{' '.join(glued.groups())}'")
    _known(gate, "experiment", right.name, known.names)


def _known(gate: Gate, kind: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise SettingsError(f"Gate '{gate}': {unknown(kind, name, names)}")


def _body(text: str, body: str) -> tuple[str, str, str]:
    found = _COMPARISON.search(body)
    if found is None:
        raise _wrong(text, f"no comparison in {body.strip()!r}; use one of {' '.join(_OPERATORS)}")
    if found[0] not in _OPERATORS:
        raise _wrong(text, f"{found[0]!r} is no comparison; use one of {' '.join(_OPERATORS)}")
    return body[: found.start()].strip(), found[0], body[found.end() :].strip()


def _otherwise(text: str, right: str) -> tuple[str, str]:
    """Separate the right side from the text after ``else``, and fold white space."""
    found = _ELSE.fullmatch(right)
    if not found:
        return right, ""
    condition, otherwise = found[1].strip(), " ".join((found[2] or "").split())
    if not condition:
        raise _wrong(text, f"there is no threshold before 'else'; write {_ELSE_EXAMPLE}")
    if not otherwise:
        raise _wrong(text, f"nothing stands behind 'else'; write {_ELSE_EXAMPLE}, or leave 'else' out")
    if _LATE_CONFIDENCE.fullmatch(otherwise):
        raise _wrong(
            text, "a confidence stands before 'else', behind it it is text; write >= 0.8 @95% else switch to e2"
        )
    return condition, otherwise


def _confidence(text: str, right: str) -> tuple[str, float | None, bool]:
    """Separate the right side from the confidence after it, in per cent, and from ``paired``."""
    found = _CONFIDENCE.fullmatch(right)
    if not found:
        return right, None, False
    try:
        confidence = float(found[2])
    except ValueError:
        raise _wrong(text, f"{found[2]!r} behind '@' is no confidence; write @95%") from None
    if not found[3]:
        raise _wrong(text, "a confidence is in per cent; write @95%")
    if not 50 < confidence < 100:
        raise _wrong(text, f"a confidence lies above 50 % and below 100 %; {_text(confidence)} does not. Write @95%")
    return found[1], confidence, bool(found[4])


def _slice(text: str, pairs: str | None) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for pair in pairs[1:-1].split(",") if pairs is not None else ():
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and value and _KEY.fullmatch(key)):
            raise _wrong(text, f"{pair.strip()!r} in the brackets is no key=value, e.g. [query_type=multi_hop]")
        if key in found:
            raise _wrong(text, f"{key!r} stands twice in the brackets")
        found[key] = value
    return tuple(found.items())


def _right(text: str, right: str) -> float | Reference:
    if _NUMBER.fullmatch(right):
        return _number(text, right)
    if right.endswith("%"):
        number = right[:-1].strip()
        share = f"{_text(float(number) / 100)}" if _NUMBER.fullmatch(number) else "0.95"
        raise _wrong(text, f"a threshold is a share, not a percentage; write {share} instead of {right!r}")
    offset = _OFFSET.fullmatch(right)
    name = offset[1] if offset else right
    if not _NAME.fullmatch(name) or (offset and not _NUMBER.fullmatch(offset[3])):
        raise _wrong(text, f"{right!r} on the right is no number, no experiment, and no 'baseline - 0.02'")
    return Reference(name, _number(text, offset[2] + offset[3]) if offset else 0.0)


def _number(text: str, digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise _wrong(text, f"{digits!r} is too large a number")
    return number


def _text(number: float) -> str:
    return repr(number).removesuffix(".0")


def _wrong(text: str, problem: str) -> SettingsError:
    return SettingsError(f"Gate '{text.strip()}': {problem}. {_EXAMPLE}")
