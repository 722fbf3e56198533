"""The rules of diagnosis: from facts and results of interventions to the cause of a failed trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.core.text.terms import written_numbers
from rag_harness.diagnosis.broken_expectations import AnswerState, BrokenFact, cause_of_broken
from rag_harness.diagnosis.failures import (
    GOLD_DOUBTFUL,
    JUDGE_DOUBTFUL,
    LOGIC_FAILURE,
    NOISE,
    OUTDATED_INFO,
    RETRIEVAL_MISS,
    UNDETERMINED,
)
from rag_harness.diagnosis.gold import GoldFacts, QuoteFact
from rag_harness.diagnosis.interventions import (
    CURRENT_VERSIONS,
    GOLD_AT_BOTH_ENDS,
    GOLD_CONTEXT,
    GOLD_HISTORY,
    NO_CONTEXT,
    NO_DISTRACTORS,
    PASSAGES_ALONE,
    STANDALONE,
    TWICE,
    AgentFacts,
    cause_of_searches,
)
from rag_harness.diagnosis.symptoms import TrialSigns
from rag_harness.diagnosis.truncation import CutOff
from rag_harness.evaluation.measures.correctness import Rightness, plain_terms, share_within

_WORST_FIRST = (
    "not in the index",
    "left out",
    "cut",
    "older",
    "without",
    "not found",
    "another part",
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
    "another part": "another part of the page came",
}
_MAY_BE_MIXED_UP = frozenset(("not found", "another part", "missing"))
"""Places that do not tell by themselves why evidence is missing; without a reranker ``lost in reranking``, too."""
_MAY_BE_CUT = frozenset(("cut", "without", "another part"))
"""Places of evidence that a chunk border beside it explains, where the index is not known."""
_FEW = 3
"""So many chunks are few."""
_AGREES, _QUOTE_CARRIED = 0.8, 0.5
_NO_CONTEXT = "its rows have no context: nothing was looked up, or the pipeline does not return what was"


@dataclass(frozen=True, slots=True)
class RerunResult:
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
    """The facts about a failed trial before anything is run again.

    Attributes:
        abstained: whether the answer declines, by its row or by its words.
        says_so: whether the row says that the answer declines.
        retrieves: whether the experiment gives its model a context.
        tells: whether the pipeline reports its steps. Then a row without a context means that nothing was retrieved.
        cut_off: the evidence that the answer stops before its end.
        others_gold: why its gold belongs to another question; empty without evidence of this.
        judged: scores of measures that compare the answer with the ground truth, by name.
        broken: the expectations that the answer does not meet.
        wants_refusal: whether the right answer is that the documents do not answer the question.
        standalone: the question of a later turn in words that need no earlier turn; empty for other questions.
        agent: the results of its searches; None where its row does not list its steps.
        signs: its symptoms beside its gold.
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
    signs: TrialSigns = TrialSigns()

    @property
    def fails_by_gold(self) -> bool:
        """Whether the trial fails by its gold or its category, whatever is expected of it beside that."""
        if self.gold.contradicted or self.signs.language or self.signs.unlike:
            return True
        refused = self.abstained and self.answerable
        return bool(self.category) or refused or (self.right.value is not None and not self.right.right)

    @property
    def only_expected(self) -> bool:
        """Whether its expectations alone tell that it failed: its gold does not, or there is none."""
        if not self.broken or self.gold.contradicted:
            return False
        is_right = self.right.right and not self.signs.language
        return is_right or bool(self.gold.nothing) or not self.fails_by_gold


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause of a failed trial."""

    cause: str
    detail: str
    evidence: str
    repaired_by: str = ""


def diagnose(facts: FailureFacts, tried: Mapping[str, RerunResult] | None = None) -> Diagnosis:
    """Return the cause by the first rule that applies."""
    came = _InterventionResults(tried or {})
    return next(found for rule in _RULES if (found := rule(facts, came)) is not None)


class _InterventionResults:
    """Results of interventions, in the form that the rules need."""

    def __init__(self, tried: Mapping[str, RerunResult]) -> None:
        self._tried = tried

    def first(self, *names: str) -> str:
        """Return the first intervention of ``names`` (default: all) that made the answer right; else empty."""
        asked = names or tuple(self._tried)
        return next((name for name in asked if name in self._tried and self._tried[name].repaired), "")

    def failed(self, name: str) -> bool:
        """Whether an intervention was run and did not help."""
        return name in self._tried and self._tried[name].right is not None and not self._tried[name].repaired


def _expected(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
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


def _nothing_known(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    if not facts.gold.nothing:
        return None
    return Diagnosis(UNDETERMINED, "no gold", facts.gold.nothing)


def _contradicted(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    if not facts.gold.contradicted:
        return None
    return Diagnosis(GOLD_DOUBTFUL, "the answer has the figure of the evidence", facts.gold.contradicted)


def _judge(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    if facts.right.right and not facts.signs.language:
        said = f"{facts.category or 'called a failure'}, yet the answer carries the gold"
        return Diagnosis(JUDGE_DOUBTFUL, "the answer is right", said)
    agree = [f"{name} {value:.2f}" for name, value in facts.judged.items() if value >= _AGREES]
    if facts.category and agree and not facts.abstained:
        return Diagnosis(JUDGE_DOUBTFUL, "measures contradict each other", f"{facts.category}, yet {', '.join(agree)}")
    return None


def _noise(_: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    again = came.first(*TWICE)
    if not again:
        return None
    return Diagnosis(NOISE, "right when asked again", "nothing was changed, and it is right", again)


def _together(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    if instead := facts.signs.instead:
        return Diagnosis(LOGIC_FAILURE, instead, f"the answer is “{facts.answer[:80]}”")
    if not facts.signs.same_answer or facts.signs.same_context:
        return None
    both = "; ".join(filter(None, (facts.signs.same_answer, facts.signs.language)))
    also = ", in another language" if facts.signs.language else ""
    return Diagnosis(LOGIC_FAILURE, f"the same answer to every question{also}", both)


def _language(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    """A refusal in another language, where evidence is lost, is first of all a miss."""
    if not facts.signs.language or (facts.abstained and facts.gold.lost):
        return None
    return Diagnosis(LOGIC_FAILURE, "answers in another language", facts.signs.language)


def _gold(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    if facts.others_gold:
        return Diagnosis(GOLD_DOUBTFUL, "the gold is that of another question", facts.others_gold)
    if not facts.gold.doubt:
        return None
    by = came.first(NO_CONTEXT)
    detail = "right without context, the evidence says otherwise" if by else "the evidence lacks the ground truth"
    return Diagnosis(GOLD_DOUBTFUL, detail, facts.gold.doubt, by)


def _older(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    """Find whether what was sent of a page is not what the page says now."""
    said = written_numbers(facts.answer)
    for fact in facts.gold.needed:
        only = written_numbers(fact.version) - written_numbers(fact.quote)
        if fact.place == "older" or (fact.version and said & only and not facts.right.right):
            told = f"{fact.filename} says “{fact.quote}”, and what was sent of it “{' '.join(fact.version.split())}”"
            return Diagnosis(OUTDATED_INFO, "the index has another version of the page", told, came.first(GOLD_CONTEXT))
    return None


def _outdated(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    by = came.first(CURRENT_VERSIONS)
    # The answer stays wrong with all needed evidence and without the outdated pages: they did not mislead it.
    in_vain = came.failed(CURRENT_VERSIONS) and not facts.gold.lost
    if facts.gold.stale and not in_vain:
        said = ", ".join(f"{figure} ({page})" for figure, page in facts.gold.stale[:3])
        above = f"; {facts.signs.wrong_above}" if facts.signs.wrong_above else ""
        return Diagnosis(OUTDATED_INFO, "says what only an outdated page says", f"only there: {said}{above}", by)
    if by:
        pages = ", ".join(facts.gold.superseded)
        return Diagnosis(OUTDATED_INFO, "right without outdated pages", f"it was given {pages}", by)
    return None


def _unanswerable(facts: FailureFacts, _: _InterventionResults) -> Diagnosis | None:
    if facts.answerable:
        return None
    said = "the documents do not answer the question, and it did not say so"
    return Diagnosis(LOGIC_FAILURE, "answered what is not in the documents", said)


def _cut_off(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
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


def _no_retriever(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    if facts.retrieves or facts.agent is not None:
        return None
    if not facts.tells:
        said = "its rows have neither chunks nor steps: whether the evidence was found cannot be known"
        return Diagnosis(UNDETERMINED, "the pipeline does not say what it looked up", said, came.first(GOLD_CONTEXT))
    return Diagnosis(RETRIEVAL_MISS, "no retriever", _NO_CONTEXT)


def _turn(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    """Find whether a turn was not understood, or an earlier answer misled: changing that alone repairs it."""
    cause = RETRIEVAL_MISS if facts.gold.lost else LOGIC_FAILURE
    if by := came.first(STANDALONE):
        return Diagnosis(cause, "lost the subject", f"asked “{facts.standalone}” in its place, it is right", by)
    if by := came.first(GOLD_HISTORY):
        return Diagnosis(cause, "lost in history", "with the reference replies before it, it is right", by)
    return None


def _searches(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    found = None if facts.agent is None else cause_of_searches(facts.agent, facts.gold, came.first)
    return None if found is None else Diagnosis(*found)


def _miss(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    lost, needed = facts.gold.lost, facts.gold.needed
    if not lost:
        return None
    if facts.signs.same_context:
        return Diagnosis(RETRIEVAL_MISS, "the same context for every question", facts.signs.same_context)
    worst = min(lost, key=lambda fact: _WORST_FIRST.index(fact.place))
    mixed_up = _MAY_BE_MIXED_UP | (frozenset() if facts.signs.reranks else {"lost in reranking"})
    if facts.signs.strange_context and worst.place in mixed_up:
        by = came.first(GOLD_CONTEXT)
        return Diagnosis(RETRIEVAL_MISS, "the context of another question", facts.signs.strange_context, by)
    parts = f"{len(lost)} of {len(needed)} passages of evidence missing; " if len(needed) > 1 else ""
    if facts.signs.border and worst.place in _MAY_BE_CUT:
        return Diagnosis(RETRIEVAL_MISS, _DETAIL["cut"], f"{parts}{facts.signs.border}", came.first(GOLD_CONTEXT))
    detail, also = _placed(facts, worst)
    return Diagnosis(RETRIEVAL_MISS, detail, f"{parts}{_where(worst)}{also}", came.first(GOLD_CONTEXT))


def _placed(facts: FailureFacts, fact: QuoteFact) -> tuple[str, str]:
    """Return the detail for a place, and what more is known of it."""
    if fact.place == "lost in reranking" and not facts.signs.reranks:
        return "found and not given", ""
    if fact.place in ("missing", "another part"):
        return next(_among_those_that_came(facts, fact))
    return _DETAIL.get(fact.place, fact.place), ""


def _among_those_that_came(facts: FailureFacts, fact: QuoteFact) -> Iterator[tuple[str, str]]:
    """Yield what is wrong where no candidates are told: by the chunks that came, and by what words alone find."""
    given, place, distinct = facts.gold.given, facts.signs.by_words, facts.signs.distinct
    by_words = f", and a search by words alone has it at place {place}" if place else ""
    came = f"; {given} chunk{'s' * (given != 1)} came{by_words}"
    if not given:
        yield "no context came", came
    if given > 1 and distinct <= given / 2:
        yield "the same chunk several times", f"; of {given} chunks {distinct} differ"
    if 0 < place <= given:
        yield "ranked too low", came
    is_partly_there = len(facts.gold.lost) < len(facts.gold.needed)
    if given <= _FEW and (place or given == 1 or is_partly_there):
        yield "too few chunks", came
    yield _DETAIL[fact.place], came


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
    "cut": "came in parts: no chunk holds the passage whole",
    "not found": "is in the index, but not among the candidates",
    "missing": "is not in the context",
    "ranked below k": "is among the candidates, below those that the model was given",
    "lost in reranking": "was high enough before reranking",
    "older": "came in another version",
    "another part": "was retrieved, but not this part of it",
}


def _logic(facts: FailureFacts, came: _InterventionResults) -> Diagnosis | None:
    there = "all that is needed was in the context"
    if by := came.first(GOLD_AT_BOTH_ENDS):
        said = f"{there}{_stood(facts.gold)}; with the evidence first and last it is right"
        return Diagnosis(LOGIC_FAILURE, "not read where it stood", said, by)
    if by := came.first(NO_DISTRACTORS):
        return Diagnosis(LOGIC_FAILURE, "distracted", f"{there}; without the other chunks it is right", by)
    if by := came.first(PASSAGES_ALONE):
        said = f"{there}{_stood(facts.gold)}; with the passages alone, without the rest of their chunks, it is right"
        return Diagnosis(LOGIC_FAILURE, "not read where it stood", said, by)
    detail, said = next(_unused(facts, came, f"{there}{_stood(facts.gold)}"))
    return Diagnosis(LOGIC_FAILURE, detail, said, came.first())


def _unused(facts: FailureFacts, came: _InterventionResults, there: str) -> Iterator[tuple[str, str]]:
    """Yield why evidence that was there was not used, where no other order or choice of it is known to repair it."""
    signs = facts.signs
    in_vain = came.failed(GOLD_AT_BOTH_ENDS) or came.failed(NO_DISTRACTORS)
    if signs.wrong_above and not signs.another and not in_vain:
        yield "a wrong page ranked above", "; ".join(filter(None, (there, signs.wrong_above, signs.unread)))
    if signs.unread:
        yield "not read where it stood", f"{there}; {signs.unread}"
    if facts.abstained:
        declines = "it says it does not know" if facts.says_so else f"it reads like a refusal: “{facts.answer}”"
        yield "wrong refusal", f"{there}, and {declines}"
    left = list(_unsaid(facts))
    if left and len(left) < len(facts.gold.needed):
        parts = f"it says {len(facts.gold.needed) - len(left)} of {len(facts.gold.needed)} parts"
        yield "incomplete multi-hop", f"{parts}; unsaid: “{left[0].quote}”"
    if signs.another:
        yield "the answer to another question", f"{there}; the answer has the ground truth of {signs.another}"
    if signs.unsent:
        yield "not from its context", f"{there}; no source says {signs.unsent}"
    if signs.drawn_from:
        yield "answers from another passage", f"{there}; the answer has the words of place {signs.drawn_from}"
    yield "misread", f"{there}, and the answer does not say it"


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
    _together,
    _language,
    _gold,
    _older,
    _outdated,
    _unanswerable,
    _cut_off,
    _no_retriever,
    _turn,
    _searches,
    _miss,
    _logic,
)
