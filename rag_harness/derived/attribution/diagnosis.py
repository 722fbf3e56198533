"""Finds the cause of a failed trial from facts and results of interventions. Pure: the rules, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.derived.attribution.agent_searches import AgentFacts, cause_of_searches
from rag_harness.derived.attribution.broken import BrokenFact
from rag_harness.derived.attribution.broken_rules import AnswerState, cause_of_broken
from rag_harness.derived.attribution.cause_names import (
    GOLD_DOUBTFUL,
    JUDGE_DOUBTFUL,
    LOGIC_FAILURE,
    NOISE,
    OUTDATED_INFO,
    RETRIEVAL_MISS,
    UNDETERMINED,
)
from rag_harness.derived.attribution.gold import GoldFacts, QuoteFact
from rag_harness.derived.attribution.interventions import (
    CURRENT_VERSIONS,
    GOLD_AT_BOTH_ENDS,
    GOLD_CONTEXT,
    NO_CONTEXT,
    NO_DISTRACTORS,
    PASSAGES_ALONE,
    TWICE,
)
from rag_harness.derived.attribution.remedies import REMEDIES
from rag_harness.derived.attribution.turns import GOLD_HISTORY, STANDALONE
from rag_harness.derived.attribution.unfinished import CutOff
from rag_harness.measures.ground_truth import Rightness, plain_terms, share_within
from rag_harness.words.terms import written_numbers

_WORST_FIRST = (
    "not in the index",
    "left out",
    "cut",
    "without",
    "not found",
    "missing",
    "ranked below k",
    "lost in reranking",
)
_DETAIL = {
    "left out": "not in the index",
    "cut": "cut by a chunk border",
    "ranked below k": "found but ranked below k",
    "missing": "not in the context",
    "without": "the page came without the passage",
}
_AGREES, _QUOTE_CARRIED = 0.8, 0.5
_NO_CONTEXT = "its rows have no context: nothing was looked up, or the pipeline does not return what was"


@dataclass(frozen=True, slots=True)
class Trialled:
    """The result of an intervention. ``right`` is None where it was not run or is not conclusive; ``why`` says why."""

    answer: str = ""
    right: Rightness | None = None
    why: str = ""

    @property
    def repaired(self) -> bool:
        """Whether the answer became right."""
        return self.right is not None and self.right.right


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """All that is known of a failed trial before anything is run again.

    Attributes:
        abstained: whether it declines: the row says so, or its words read so.
        says_so: whether the row says so.
        retrieves: whether the experiment gives its model a context.
        tells: whether the pipeline reports what it did. Then a row without a context means that nothing was retrieved.
        cut_off: the evidence that the answer stops before its end.
        others_gold: why its gold belongs to another question; empty where nothing says so.
        judged: scores of measures that compare the answer with the ground truth, by name.
        broken: the expectations that the answer does not keep.
        wants_refusal: whether the right answer is that the documents do not answer the question.
        standalone: the question of a turn in words that need nothing said before it; empty where it is no such turn.
        agent: what its searches brought; None where its row does not tell its steps.
    """

    query: str
    answer: str
    answerable: bool
    abstained: bool
    retrieves: bool
    right: Rightness
    gold: GoldFacts
    category: str = ""
    says_so: bool = True
    tells: bool = True
    cut_off: CutOff = CutOff()
    others_gold: str = ""
    judged: Mapping[str, float] = field(default_factory=dict)
    broken: Sequence[BrokenFact] = ()
    wants_refusal: bool = False
    standalone: str = ""
    agent: AgentFacts | None = None

    @property
    def fails_by_gold(self) -> bool:
        """Whether the trial fails by its gold or its category, whatever is expected of it beside that."""
        if self.gold.contradicted:
            return True
        refused = self.abstained and self.answerable
        return bool(self.category) or refused or (self.right.value is not None and not self.right.right)

    @property
    def only_expected(self) -> bool:
        """Whether its expectations alone tell that it failed: its gold does not, or there is none."""
        if not self.broken or self.gold.contradicted:
            return False
        return self.right.right or bool(self.gold.nothing) or not self.fails_by_gold


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause of a failed trial."""

    cause: str
    detail: str
    evidence: str
    repaired_by: str = ""

    @property
    def remedy(self) -> str:
        """What to do, in one line."""
        return REMEDIES.get((self.cause, self.detail)) or REMEDIES[self.cause, ""]


def diagnose(facts: FailureFacts, tried: Mapping[str, Trialled] | None = None) -> Diagnosis:
    """Return the cause: that of the first rule that applies."""
    came = _Came(tried or {})
    return next(found for rule in _RULES if (found := rule(facts, came)) is not None)


class _Came:
    """Results of interventions, in the form that the rules need."""

    def __init__(self, tried: Mapping[str, Trialled]) -> None:
        self._tried = tried

    def first(self, *names: str) -> str:
        """Return the first intervention of ``names`` (default: all) that made the answer right; else empty."""
        asked = names or tuple(self._tried)
        return next((name for name in asked if name in self._tried and self._tried[name].repaired), "")

    def failed(self, name: str) -> bool:
        """Whether an intervention was run and did not help."""
        return name in self._tried and self._tried[name].right is not None and not self._tried[name].repaired


def _expected(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    if not facts.only_expected:
        return None
    if noise := _noise(facts, came):
        return noise
    state = AnswerState(facts.abstained, facts.wants_refusal, facts.cut_off, facts.gold)
    found = cause_of_broken(facts.broken, state)
    if found.lost is None:
        return Diagnosis(found.cause, found.detail, found.evidence)
    if nothing := _no_retriever(facts, came):
        return nothing
    detail = _DETAIL.get(found.lost.place, found.lost.place)
    return Diagnosis(found.cause, detail, f"{found.evidence}; {_where(found.lost)}")


def _nothing_known(facts: FailureFacts, _: _Came) -> Diagnosis | None:
    if not facts.gold.nothing:
        return None
    return Diagnosis(UNDETERMINED, "no gold", facts.gold.nothing)


def _contradicted(facts: FailureFacts, _: _Came) -> Diagnosis | None:
    if not facts.gold.contradicted:
        return None
    return Diagnosis(GOLD_DOUBTFUL, "the answer has the figure of the evidence", facts.gold.contradicted)


def _judge(facts: FailureFacts, _: _Came) -> Diagnosis | None:
    if facts.right.right:
        said = f"{facts.category or 'called a failure'}, yet the answer carries the gold"
        return Diagnosis(JUDGE_DOUBTFUL, "the answer is right", said)
    agree = [f"{name} {value:.2f}" for name, value in facts.judged.items() if value >= _AGREES]
    if facts.category and agree and not facts.abstained:
        return Diagnosis(JUDGE_DOUBTFUL, "measures contradict each other", f"{facts.category}, yet {', '.join(agree)}")
    return None


def _noise(_: FailureFacts, came: _Came) -> Diagnosis | None:
    again = came.first(*TWICE)
    if not again:
        return None
    return Diagnosis(NOISE, "right when asked again", "nothing was changed, and it is right", again)


def _gold(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    if facts.others_gold:
        return Diagnosis(GOLD_DOUBTFUL, "the gold is that of another question", facts.others_gold)
    if not facts.gold.doubt:
        return None
    by = came.first(NO_CONTEXT)
    detail = "right without context, the evidence says otherwise" if by else "the evidence lacks the ground truth"
    return Diagnosis(GOLD_DOUBTFUL, detail, facts.gold.doubt, by)


def _outdated(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    by = came.first(CURRENT_VERSIONS)
    # The answer stays wrong with all needed evidence and without the outdated pages: they did not mislead it.
    in_vain = came.failed(CURRENT_VERSIONS) and not facts.gold.lost
    if facts.gold.stale and not in_vain:
        said = ", ".join(f"{figure} ({page})" for figure, page in facts.gold.stale[:3])
        return Diagnosis(OUTDATED_INFO, "says what only an outdated page says", f"only there: {said}", by)
    if by:
        pages = ", ".join(facts.gold.superseded)
        return Diagnosis(OUTDATED_INFO, "right without outdated pages", f"it was given {pages}", by)
    return None


def _unanswerable(facts: FailureFacts, _: _Came) -> Diagnosis | None:
    if facts.answerable:
        return None
    said = "the documents do not answer the question, and it did not say so"
    return Diagnosis(LOGIC_FAILURE, "answered what is not in the documents", said)


def _cut_off(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    lost = facts.retrieves and facts.gold.lost
    # A full-length answer without evidence would be wrong too. An answer that repeats half a passage stops where it
    # does.
    if not facts.cut_off.why or (
        lost and (not facts.gold.carried or any(each.place in ("without", "cut") for each in lost))
    ):
        return None
    if came.first(GOLD_AT_BOTH_ENDS, NO_DISTRACTORS, PASSAGES_ALONE) and not facts.cut_off.is_sure:
        return None
    return Diagnosis(LOGIC_FAILURE, "cut short", facts.cut_off.why, came.first())


def _no_retriever(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    if facts.retrieves or facts.agent is not None:
        return None
    if not facts.tells:
        said = "its rows have neither chunks nor steps: whether the evidence was found cannot be known"
        return Diagnosis(UNDETERMINED, "the pipeline does not say what it looked up", said, came.first(GOLD_CONTEXT))
    return Diagnosis(RETRIEVAL_MISS, "no retriever", _NO_CONTEXT)


def _turn(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    """Find whether a turn was not understood, or an earlier answer misled: changing that alone repairs it."""
    cause = RETRIEVAL_MISS if facts.gold.lost else LOGIC_FAILURE
    if by := came.first(STANDALONE):
        return Diagnosis(cause, "lost the subject", f"asked “{facts.standalone}” in its place, it is right", by)
    if by := came.first(GOLD_HISTORY):
        return Diagnosis(cause, "lost in history", "with the reference replies before it, it is right", by)
    return None


def _searches(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    found = None if facts.agent is None else cause_of_searches(facts.agent, facts.gold, came.first)
    return None if found is None else Diagnosis(*found)


def _miss(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    lost, needed = facts.gold.lost, facts.gold.needed
    if not lost:
        return None
    worst = min(lost, key=lambda fact: _WORST_FIRST.index(fact.place))
    parts = f"{len(lost)} of {len(needed)} quotes; " if len(needed) > 1 else ""
    detail = _DETAIL.get(worst.place, worst.place)
    return Diagnosis(RETRIEVAL_MISS, detail, parts + _where(worst), came.first(GOLD_CONTEXT))


def _where(fact: QuoteFact) -> str:
    rank = f" (rank {fact.rank})" if fact.rank else ""
    quote = f": “{fact.quote}”" if fact.quote else ""
    if not fact.filename:
        return f"no source of the prompt has “{fact.quote}”"
    if fact.place == "without":
        sent, whole = fact.sent
        length = f", {sent:,} characters{f' of {whole:,}' if whole else ''}"
        return f"chunks of {fact.filename} came without the passage{length}{quote}"
    return f"{fact.filename} {_PLACES[fact.place]}{rank}{quote}"


_PLACES = {
    "not in the index": "is not in the index",
    "left out": "is in the index without its end",
    "cut": "is in the index, but no chunk holds the quote whole",
    "not found": "is in the index, and no candidate",
    "missing": "is not in the context",
    "ranked below k": "is a candidate below the context",
    "lost in reranking": "was high enough before the reranker",
}


def _logic(facts: FailureFacts, came: _Came) -> Diagnosis | None:
    there = "all that is needed was in the context"
    if by := came.first(GOLD_AT_BOTH_ENDS):
        said = f"{there}{_stood(facts.gold)}; with the evidence first and last it is right"
        return Diagnosis(LOGIC_FAILURE, "not read where it stood", said, by)
    if by := came.first(NO_DISTRACTORS):
        return Diagnosis(LOGIC_FAILURE, "distracted", f"{there}; without the other chunks it is right", by)
    if by := came.first(PASSAGES_ALONE):
        said = f"{there}{_stood(facts.gold)}; with the passages alone, without the rest of their chunks, it is right"
        return Diagnosis(LOGIC_FAILURE, "not read where it stood", said, by)
    if facts.abstained:
        declines = "it says it does not know" if facts.says_so else f"it reads like a refusal: “{facts.answer}”"
        return Diagnosis(LOGIC_FAILURE, "wrong refusal", f"{there}, and {declines}", came.first())
    left = list(_unsaid(facts))
    if left and len(left) < len(facts.gold.needed):
        parts = f"it says {len(facts.gold.needed) - len(left)} of {len(facts.gold.needed)} parts"
        return Diagnosis(LOGIC_FAILURE, "incomplete multi-hop", f"{parts}; unsaid: “{left[0].quote}”", came.first())
    return Diagnosis(LOGIC_FAILURE, "misread", f"{there}, and the answer does not say it", came.first())


def _stood(gold: GoldFacts) -> str:
    """Say at which rank of the context the last piece of evidence was."""
    places = [fact.position for fact in gold.needed if fact.position]
    return f", at place {max(places)} of {gold.given}" if places and gold.given else ""


def _unsaid(facts: FailureFacts) -> Iterator[QuoteFact]:
    """Yield the needed quotes of which the answer has neither a figure nor half of the words."""
    asked, said = written_numbers(facts.query), written_numbers(facts.answer)
    words = plain_terms(facts.answer)
    for fact in facts.gold.needed:
        figures = written_numbers(fact.quote) - asked
        carried = bool(figures & said) if figures else share_within(words, plain_terms(fact.quote)) >= _QUOTE_CARRIED
        if not carried:
            yield fact


_RULES = (
    _expected,
    _nothing_known,
    _contradicted,
    _judge,
    _noise,
    _gold,
    _outdated,
    _unanswerable,
    _cut_off,
    _no_retriever,
    _turn,
    _searches,
    _miss,
    _logic,
)
