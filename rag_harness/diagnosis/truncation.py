"""Answers that stop before their end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import CITATION
from rag_harness.records.row import ExperimentResult

# A text without a full stop may be complete: "30 days" is. So a text is called cut off only with further evidence: its
# last word, an unclosed bracket, the passage that it repeats and that goes on, or how the experiment's other answers
# end. The words are English; for other languages only the rules without words apply.

_LIMITED = frozenset(("length", "max_tokens", "max_output_tokens", "token_limit", "incomplete"))
"""Words by which servers report an answer that reached its limit: OpenAI, Anthropic, Gemini, OpenAI's Responses."""
_STOPPED = ("finish_reason", "stop_reason")
_ENDS = re.compile(r"[.!?。！？][\"'”’»)\]}*_`]*$")
_DOTS = re.compile(r"(?:…|\.\.\.)$")
_HANGS = re.compile(r"[,;:(\[{/&+=€$£<–—-]$")
_HANGING_WORDS = """
    a an the and or but nor of to with within by from for at into onto between per than as is are was were be been being
    has have had that which who whose if when while where because although unless until your our their my its every each
    this these those will would can could should must may might not no about after before during without through via
    plus either neither both such
"""
_OPEN_ENDED = frozenset(_HANGING_WORDS.split())
"""Words that end no English sentence."""
_LAST_FIGURE = re.compile(r"((?<![^\W\d_])[^\W\d_]+|[€£$])\s?(\d+)$")
"""A word or a sign, and the digits at the end of a text."""
_WORD = re.compile(r"[^\W_]+(?:[-'’.,:][^\W_]+)*")
_LEAD_IN = re.compile(r"^(?:[^:]*:\s+)?[-*•]?\s*")
"""Words before a colon, or the mark of a list."""
_NO_SENTENCE = re.compile(r"\s*(?:[-*•|#>]|\d+[.)]\s|[^.!?:]{1,40}:\s)")
"""A line of a list or a table, a heading, or a name with its value: it may end without a full stop."""
_PHRASE, _REPEATED = 4, 15
"""Number of words below which a text without a full stop is a phrase; least characters of a repeated passage."""
_MOST, _SHARE, _ALIKE, _SHORTER = 3, 0.5, 0.1, 0.8
_UNITS: Mapping[str, Callable[[str], int]] = {"characters": len, "words": lambda text: len(text.split())}


@dataclass(frozen=True)
class EndingHabits:
    """How the answers of one experiment end.

    Attributes:
        texts: the different answers, unchanged, without refusals.
    """

    texts: Sequence[str] = field(default=())

    @cached_property
    def _at(self) -> Mapping[str, Counter[int]]:
        """The number of answers without a full stop, by their length in characters and in words."""
        unfinished = [text for text in self.texts if not _is_finished(text)]
        return {unit: Counter(map(count, unfinished)) for unit, count in _UNITS.items()}

    @cached_property
    def _longest(self) -> Mapping[str, int]:
        return {unit: max(map(count, self.texts), default=0) for unit, count in _UNITS.items()}

    def stopping(self, text: str) -> tuple[int, str]:
        """Return how many answers stop at the length of ``text``, and that length; 0 where some answer is longer."""
        for unit, count in _UNITS.items():
            length, slack = count(text), int(unit == "characters")  # a blank at the end may have been removed
            if length + slack >= self._longest[unit]:
                return sum(self._at[unit][length + near] for near in range(-slack, slack + 1)), f"{length} {unit}"
        return 0, ""

    def finished(self, shorter_than: float = float("inf")) -> tuple[int, int]:
        """Return how many short answers end like a sentence, and the number of short answers."""
        found = [text for text in self.texts if len(text) < shorter_than and len(text.split()) >= _PHRASE]
        return sum(map(_is_finished, found)), len(found)


def habits_of(rows: Iterable[ExperimentResult]) -> EndingHabits:
    """Return how the answers in rows end."""
    return EndingHabits(tuple(dict.fromkeys(without_citations(row.llm_answer) for row in rows if not row.abstained)))


class CutOff(NamedTuple):
    """The evidence that an answer was cut off; empty where there is none.

    Attributes:
        is_sure: whether no complete answer ends so. Otherwise another cause may be stronger, e.g. the order of sources
            where another order makes the answer right.
    """

    why: str = ""
    is_sure: bool = False


def cut_off(row: ExperimentResult, sources: Sequence[str], habits: EndingHabits) -> CutOff:
    """Return the evidence that an answer was cut off.

    Args:
        row: row of the answer.
        sources: texts that the answer may repeat: ground truth, evidence, chunks.
        habits: endings of the answers of its experiment.
    """
    if told := _limit_of(row):
        return CutOff(f"the model stopped at its limit (finish_reason {told})", is_sure=True)
    text = without_citations(row.llm_answer)
    if not text:
        return CutOff("the answer is empty")
    if _is_finished(text):
        return CutOff()
    return max(_signs(text, sources, habits), key=lambda sign: sign.is_sure, default=CutOff())


def _limit_of(row: ExperimentResult) -> str:
    """Return the word by which the server reports that an answer reached its limit; empty where it does not."""
    return next((word for word in _stopped(row) if word.lower() in _LIMITED), "")


def without_citations(answer: str) -> str:
    """Return an answer without citations."""
    return CITATION.sub(" ", answer).strip()


def _stopped(row: ExperimentResult) -> Iterator[str]:
    for stage in row.stages:
        yield from (call.finish_reason for call in stage.calls if call.finish_reason and call.role != "judge")
        yield from (str(stage.detail[key]) for key in _STOPPED if stage.detail.get(key))


def _is_finished(text: str) -> bool:
    return bool(_ENDS.search(text)) and not _DOTS.search(text)


def _signs(text: str, sources: Sequence[str], habits: EndingHabits) -> Iterator[CutOff]:
    words, said = _WORD.findall(text), f"it ends “…{text[-30:]}”"
    if not words:
        return
    if _DOTS.search(text) or _HANGS.search(text) or words[-1].lower() in _OPEN_ENDED:
        yield CutOff(said)
    if _is_open(text):
        yield CutOff(f"{said}: what it opens it does not close")
    if whole := _begun_word(text, words, sources) or _begun_figure(text, sources):
        yield CutOff(f"{said}, the beginning of “{whole}”", is_sure=True)
    last = sentence_texts(text)[-1]
    behind = _LEAD_IN.sub("", last)
    if rest := _goes_on(last, sources) or _goes_on(text, sources) or _goes_on(behind, sources):
        yield CutOff(f"{said}, where the passage goes on “{rest}”", is_sure=True)
    yield from _unlike(text, last, habits)


def _is_open(text: str) -> bool:
    pairs = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
    return any(text.count(first) > text.count(last) for first, last in pairs) or any(
        text.count(mark) % 2 for mark in ("```", "**", '"')
    )


def _begun_word(text: str, words: Sequence[str], sources: Sequence[str]) -> str:
    """Return the word of a source that begins with the last word and follows the same word; else empty."""
    if not text.endswith(words[-1]):
        return ""
    last, before = words[-1].lower(), words[-2].lower() if len(words) > 1 else ""
    known = [[word.lower() for word in _WORD.findall(source)] for source in sources]
    if any(last in each for each in known):
        return ""
    longer = [
        (each[n - 1] if n else "", word)
        for each in known
        for n, word in enumerate(each)
        if word.startswith(last) and word != f"{last}s"
    ]
    return next((word for ahead, word in longer if ahead == before), "")


def _begun_figure(text: str, sources: Sequence[str]) -> str:
    """Return the figure of a source that begins with the last figure and follows the same sign; else empty."""
    found = _LAST_FIGURE.search(text[-40:])
    if not found:
        return ""
    begun = re.compile(rf"(?<!\w){re.escape(found[1])}\s?({found[2]}(?:[.,:]?\d)*)(?![\w%])", re.I)
    same = [each[1] for source in sources for each in begun.finditer(source)]
    return same[0] if same and found[2] not in same else ""


def _goes_on(sentence: str, sources: Sequence[str]) -> str:
    """Return how a source continues after the last sentence; empty where a source ends there too."""
    begun = " ".join(sentence.split()).lower()
    if len(begun) < _REPEATED or len(begun.split()) < _PHRASE:
        return ""
    rests: list[str] = []
    for source in (" ".join(source.split()) for source in sources):
        place = source.lower().find(begun)
        while place >= 0:
            if not source[:place].strip() or source[:place].rstrip()[-1] in ".!?:;|*•-–—#":
                rests.append(source[place + len(begun) :])
            place = source.lower().find(begun, place + 1)
    goes_on = [rest for rest in rests if re.match(r"[\s,]*[^\W_]", rest)]
    return goes_on[0].strip()[:30] if goes_on and len(goes_on) == len(rests) else ""


def _unlike(text: str, last: str, habits: EndingHabits) -> Iterator[CutOff]:
    """Yield evidence that an answer differs from the experiment's others: in its length, and in its ending."""
    if len(text.split()) < _PHRASE or _NO_SENTENCE.match(last):
        return
    others = len(habits.texts)
    stop_here, length = habits.stopping(text)
    if stop_here >= max(_MOST, _ALIKE * others):
        yield CutOff(f"{stop_here} of {others} answers stop after {length}, and none is longer", is_sure=True)
    finished, counted = habits.finished()
    if counted > _MOST and finished >= _SHARE * counted:
        yield CutOff(f"{finished} of {counted} answers end with a sentence, and this one in the middle of one")
    finished, counted = habits.finished(_SHORTER * len(text))
    if counted >= _MOST and finished >= _SHARE * counted:
        yield CutOff(f"{finished} of {counted} shorter answers end with a sentence, and this one in the middle of one")
