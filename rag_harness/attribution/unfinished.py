"""Does an answer stop before its end? By what the model's server says, else by how the text ends. Pure.

A text without a full stop may be whole: "30 days" is. So a text is called cut off only where something else says so:
its last word, a bracket that nothing closes, the passage that it repeats and that goes on, or how the other answers of
the experiment end. The words are English; of other languages what rests on no word remains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rag_harness.prompts.marks import CITATION
from rag_harness.results.row import ExperimentResult

_LIMITED = frozenset(("length", "max_tokens", "max_output_tokens", "token_limit", "incomplete"))
"""Words of servers for an answer that reached its limit: OpenAI, Anthropic, Gemini, OpenAI's Responses."""
_STOPPED = ("finish_reason", "stop_reason")
_ENDS = re.compile(r"[.!?。！？][\"'”’»)\]}*_`]*$")
_DOTS = re.compile(r"(?:…|\.\.\.)$")
_HANGS = re.compile(r"[,;:(\[{/&+=€$£<–—-]$")
_OPEN_ENDED = frozenset(
    """a an the and or but nor of to with within by from for at into onto between per than as is are was were be been
    being has have had that which who whose if when while where because although unless until your our their my its
    every each this these those will would can could should must may might not no between about after before during
    without through via plus either neither both such""".split()
)
"""Words that end no English sentence."""
_WORD = re.compile(r"[^\W_]+(?:[-'’.,:][^\W_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NO_SENTENCE = re.compile(r"\s*(?:[-*•|#>]|\d+[.)]\s)")
_PHRASE, _REPEATED = 4, 15
"""Words below which a text without a full stop is a phrase; characters from which a sentence repeats a passage."""
_MOST, _SHARE, _ALIKE, _SHORTER = 3, 0.5, 0.1, 0.8


@dataclass(frozen=True)
class Habits:
    """How the answers of one experiment end.

    Attributes:
        texts: different answers, without refusals, as they are.
    """

    texts: Sequence[str] = field(default=())

    @cached_property
    def lengths(self) -> Counter[int]:
        """How many answers end unfinished after so many characters, as far as a limit may have cut them."""
        return Counter(len(text) for text in self.texts if not _is_finished(text))

    @cached_property
    def longest(self) -> int:
        """Characters of the longest answer."""
        return max(map(len, self.texts), default=0)

    def finished(self, shorter_than: float = float("inf")) -> tuple[int, int]:
        """Return how many answers of a few words end as a sentence does, and how many there are."""
        found = [text for text in self.texts if len(text) < shorter_than and len(text.split()) >= _PHRASE]
        return sum(map(_is_finished, found)), len(found)


def habits_of(rows: Iterable[ExperimentResult]) -> Habits:
    """Return how the answers of rows end."""
    return Habits(tuple(dict.fromkeys(plain(row.llm_answer) for row in rows if not row.abstained)))


def cut_off(row: ExperimentResult, sources: Sequence[str], habits: Habits) -> str:
    """Return what says that an answer was cut off; empty where nothing does.

    Args:
        row: the answer's.
        sources: what the answer may repeat: ground truth, evidence, chunks.
        habits: of the answers of its experiment.
    """
    told = next((word for word in _stopped(row) if word.lower() in _LIMITED), "")
    if told:
        return f"the model stopped at its limit (finish_reason {told})"
    text = plain(row.llm_answer)
    if not text or _is_finished(text):
        return ""
    return next(_signs(text, sources, habits), "")


def plain(answer: str) -> str:
    """Return an answer without citations."""
    return CITATION.sub(" ", answer).strip()


def _stopped(row: ExperimentResult) -> Iterator[str]:
    for stage in row.stages:
        yield from (call.finish_reason for call in stage.calls if call.finish_reason and call.role != "judge")
        yield from (str(stage.detail[key]) for key in _STOPPED if stage.detail.get(key))


def _is_finished(text: str) -> bool:
    return bool(_ENDS.search(text)) and not _DOTS.search(text)


def _signs(text: str, sources: Sequence[str], habits: Habits) -> Iterator[str]:
    words, said = _WORD.findall(text), f"it ends “…{text[-30:]}”"
    if not words:
        return
    if _DOTS.search(text) or _HANGS.search(text) or words[-1].lower() in _OPEN_ENDED:
        yield said
    if _is_open(text):
        yield f"{said}: what it opens it does not close"
    if whole := _begun_word(text, words, sources):
        yield f"{said}, the beginning of “{whole}”"
    last = _SENTENCE.split(text)[-1]
    if rest := _goes_on(last, sources):
        yield f"{said}, where the passage goes on “{rest}”"
    yield from _unlike(text, last, habits)


def _is_open(text: str) -> bool:
    pairs = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
    return any(text.count(first) > text.count(last) for first, last in pairs) or any(
        text.count(mark) % 2 for mark in ("```", "**", '"')
    )


def _begun_word(text: str, words: Sequence[str], sources: Sequence[str]) -> str:
    """Return the word of a source that the last word is the beginning of, where it stands after the same word."""
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


def _goes_on(sentence: str, sources: Sequence[str]) -> str:
    """Return how a source goes on of which the last sentence is a beginning; empty where it ends there as well."""
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


def _unlike(text: str, last: str, habits: Habits) -> Iterator[str]:
    """Yield what tells an answer from the others of its experiment: where they end, and how."""
    if len(last.split()) < _PHRASE or _NO_SENTENCE.match(last):
        return
    others = len(habits.texts)
    stop_here = sum(habits.lengths[len(text) + near] for near in (-1, 0, 1))
    if len(text) >= habits.longest - 1 and stop_here >= max(_MOST, _ALIKE * others):
        yield f"{stop_here} of {others} answers stop after {len(text)} characters, and none is longer"
    finished, counted = habits.finished()
    if counted > _MOST and finished >= _SHARE * counted:
        yield f"{finished} of {counted} answers end as a sentence does, and this one in the middle of one"
    finished, counted = habits.finished(_SHORTER * len(text))
    if counted >= _MOST and finished >= _SHARE * counted:
        yield f"{finished} of {counted} shorter answers end as a sentence does, and this one in the middle of one"
