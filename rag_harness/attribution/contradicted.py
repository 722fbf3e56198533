"""Does the ground truth contradict its own evidence, and the answer agree with the evidence? Pure.

It does where a figure of the ground truth stands in no passage of the evidence, the evidence has another in its place,
and the answer says that one. Names of months and weekdays count as figures. A figure's place is told by the words beside
it: "31 days" against "44 days".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.attribution.right import figures_of, plain_terms, share
from rag_harness.prompts.marks import CITATION
from rag_harness.reader.terms import stem
from rag_harness.types import Case

_NAMES = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday"
).split()
_SAME = {"€": "euro", "eur": "euro", "euros": "euro", "$": "dollar", "usd": "dollar", "dollars": "dollar",
         "£": "pound", "gbp": "pound", "pounds": "pound", "percent": "%", "per cent": "%"}  # fmt: skip
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[€$£%°]")
_SAYS_THE_SAME = 0.5
"""Share of the ground truth's words from which a sentence of a page is about the same."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A figure and the tokens on both sides of it, as they compare."""

    figure: str
    before: str
    after: str

    def is_in_place_of(self, other: _Placed) -> bool:
        """Whether it says in one text what ``other`` says in another: the unit is the same, or what leads to it."""
        ours, theirs = {self.before, self.after}, {other.before, other.after}
        if not (ours - {""}) or not (theirs - {""}):
            return True  # a figure alone has no unit to compare
        return bool((ours & theirs) - {""})


def contradiction(case: Case, answer: str, pages: Sequence[str]) -> str:
    """Return how the ground truth contradicts the evidence that the answer agrees with; empty where it does not.

    Args:
        case: question, ground truth and evidence.
        answer: what was said.
        pages: texts of the gold pages, which stand for the evidence where it has no quotes.
    """
    if not case.answerable:
        return ""
    evidence = [one.quote for one in case.evidence if one.quote.strip()] or list(_about(case.ground_truth, pages))
    found = next(_pairs(case, answer, evidence), None)
    if found is None:
        return ""
    told, quoted = found
    return f"the evidence says {quoted}, as the answer does, and the ground truth {told}"


def may_contradict(question: str, ground_truth: str, answer: str) -> bool:
    """Whether an answer has a figure in which it differs from the ground truth, and lacks one of it."""
    truth, said = _figures(ground_truth), _figures(answer)
    return bool(truth - said - _figures(question)) and bool(said - truth)


def _pairs(case: Case, answer: str, evidence: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield figures of the ground truth with those that the evidence has in their place, and the answer too."""
    said, asked = _figures(answer), _figures(case.query.text)
    known, truth = _figures(" ".join(evidence)), _figures(case.ground_truth)
    wrong = [each for each in _placed(case.ground_truth) if each.figure not in known | said | asked]
    right = [each for text in evidence for each in _placed(text) if each.figure in said - truth - asked]
    for mine in wrong:
        yield from ((mine.figure, its.figure) for its in right if its.is_in_place_of(mine))


def _figures(text: str) -> frozenset[str]:
    names = {word for word in re.findall(r"[a-z]+", text.lower()) if word in _NAMES}
    return figures_of(text) | names


def _placed(text: str) -> Iterator[_Placed]:
    tokens = [each.lower() for each in _TOKEN.findall(CITATION.sub(" ", text))]
    for n, token in enumerate(tokens):
        found = figures_of(token) or ({token} if token in _NAMES else frozenset())
        for figure in found:
            before = tokens[n - 1] if n else ""
            after = tokens[n + 1] if n + 1 < len(tokens) else ""
            yield _Placed(figure, _compared(before), _compared(after))


def _compared(token: str) -> str:
    return _SAME.get(token, stem(token))


def _about(ground_truth: str, pages: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the gold pages that say what the ground truth says, figures aside."""
    wanted = plain_terms(ground_truth)
    for sentence in (each for page in pages for each in re.split(r"(?<=[.!?])\s+|\n+", page)):
        if wanted and share(plain_terms(sentence), wanted) >= _SAYS_THE_SAME:
            yield sentence
