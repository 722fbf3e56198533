"""What a failed trial shows beside its gold: the language and the origin of its answer, and how its context fits. Pure.

It needs neither an index nor another run: question, answer and contexts tell it, with the pages and the other trials.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_harness.derived.attribution.across_trials import AcrossTrials, drawn_from
from rag_harness.derived.attribution.gold import GoldFacts
from rag_harness.derived.attribution.shelf import bare
from rag_harness.derived.attribution.swapped import Golds
from rag_harness.measures.ground_truth import Rightness, plain_terms, share_within
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case
from rag_harness.words.abstention import declines
from rag_harness.words.comparison import compared_words
from rag_harness.words.language import told
from rag_harness.words.languages import ENGLISH
from rag_harness.words.terms import written_numbers
from rag_harness.work.once import Once

_FEWEST_WORDS, _LONG_WORD = 4, 4
_FROM_NONE = 0.5
"""Most of an answer's words in all chunks together where it is drawn from none."""
_ERROR = re.compile(
    r"\W*(?:(?:\w*error|\w*exception)\b\W|traceback|HTTP [45]\d\d|[45]\d\d [A-Z]|internal server error|"
    r"service unavailable|rate limit|request timed out|(?:null|undefined|none|nan)\W*$)",
    re.IGNORECASE,
)
"""How an error message begins, or a value that is none."""
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class TrialSigns:
    """Signs that are texts are empty where nothing says so, and places are 0.

    Attributes:
        same_answer: that most questions have this answer.
        same_context: that most questions have this context.
        strange_context: that the context is not one of this question.
        border: that a chunk of its page ends right before a passage that the context lacks, or begins after it.
        language: that the answer is in another language than the question.
        unlike: whether the answer has no word of its gold, in a language whose words are not compared otherwise.
        by_words: at which place a plain search by words finds the first needed passage that the context lacks.
        reranks: whether the row tells of a reranker.
        unsent: what the answer says that no chunk of its context does.
        another: the question whose ground truth the answer has.
        instead: what stands in place of an answer: the question itself, or an error message.
        distinct: number of different chunks in its context.
        unread: that no answer is drawn from where the evidence stands in the context.
        wrong_above: that the answer goes with another page, which stands above the evidence.
        drawn_from: place in the context of a chunk without gold that has the words of the answer.
    """

    same_answer: str = ""
    same_context: str = ""
    strange_context: str = ""
    border: str = ""
    language: str = ""
    unlike: bool = False
    by_words: int = 0
    reranks: bool = False
    unsent: str = ""
    drawn_from: int = 0
    another: str = ""
    instead: str = ""
    distinct: int = 0
    unread: str = ""
    wrong_above: str = ""


def trial_signs(
    case: Case,
    row: ExperimentResult,
    gold: GoldFacts,
    verdict: tuple[Rightness, bool],
    across: AcrossTrials,
    golds: Once[Golds],
) -> TrialSigns:
    """Return the signs of an answer that is not right; of a right one only its language.

    ``verdict`` says whether it is right, and whether it declines.
    """
    right, abstained = verdict
    place = max((fact.position or 0 for fact in gold.needed), default=0)
    language = other_language(case, row)
    if right.right:
        return TrialSigns(language=language)
    lost = gold.lost
    return TrialSigns(
        same_answer=across.same_answer(row),
        same_context=across.same_context(row) if lost else "",
        strange_context=across.strange_context(row) if lost else "",
        border=next(filter(None, (across.border(row, fact.filename, fact.quote) for fact in lost)), ""),
        language=language,
        unlike=right.value is None and not abstained and _shares_nothing(case, row.llm_answer),
        by_words=_place_by_words(row, gold, across),
        reranks=reranks(row),
        unsent="" if abstained or lost else _unsent(row),
        another="" if abstained or lost else golds.get().answered(case, row.llm_answer),
        instead="" if abstained else _instead(row),
        distinct=len({chunk.text for chunk in row.retrieved_chunks}),
        unread="" if lost else across.unread(place),
        wrong_above=""
        if abstained or lost
        else across.wrong_above(row, {fact.filename for fact in gold.needed}, place),
        drawn_from=0 if abstained or lost else _drawn_from(row, gold),
    )


def reranks(row: ExperimentResult) -> bool:
    """Return whether a row tells of a reranker: by a score of it, or by a stage."""
    scores = [*(chunk.rerank_score for chunk in row.retrieved_chunks), *(hit.rerank_score for hit in row.candidates)]
    return any(score is not None for score in scores) or any("rerank" in stage.name for stage in row.stages)


def other_language(case: Case, row: ExperimentResult) -> str:
    """Say that an answer is not in the language of its question; a refusal counts too."""
    answer = row.llm_answer
    abstained = row.abstained or declines(answer)
    if not case.answerable or (len(_WORD.findall(answer)) < _FEWEST_WORDS and not abstained):
        return ""
    asked = told(case.query.text) or told(f"{case.query.text} {case.ground_truth}") or ENGLISH
    said = told(answer)
    if not said or said == asked:
        return ""
    return f"the question is in language {asked}, and the answer in {said}: “{answer[:60]}”"


def _shares_nothing(case: Case, answer: str) -> bool:
    """Return whether an answer has no longer word and no figure that gold has beside the question."""
    quotes = " ".join(one.quote for one in case.evidence)
    wanted = _content(f"{case.ground_truth} {quotes}") - _content(case.query.text)
    return case.answerable and bool(wanted) and bool(answer.strip()) and not wanted & _content(answer)


def _content(text: str) -> set[str]:
    return {word for word in compared_words(text) if len(word) >= _LONG_WORD or any(sign.isdigit() for sign in word)}


def _instead(row: ExperimentResult) -> str:
    """Return the detail of what is no answer: an error message, or the question once more."""
    if bare(row.llm_answer) and bare(row.llm_answer) == bare(row.query):
        return "repeats the question"
    return "an error message" if _ERROR.match(row.llm_answer) else ""


def _place_by_words(row: ExperimentResult, gold: GoldFacts, across: AcrossTrials) -> int:
    if across.search is None:
        return 0
    return next((across.search.place_of(row.query, fact.quote) for fact in gold.lost if fact.quote), 0)


def _unsent(row: ExperimentResult) -> str:
    """Return figures, or else the words, of an answer that neither its context nor its question has."""
    sent = " ".join([row.query, *(chunk.text for chunk in row.retrieved_chunks)])
    figures = sorted(written_numbers(row.llm_answer) - written_numbers(sent))
    words = plain_terms(row.llm_answer)
    if not words or share_within(plain_terms(sent), words) > _FROM_NONE:
        return ""
    new = [
        word for word in compared_words(row.llm_answer) if (term := plain_terms(word)) and not term & plain_terms(sent)
    ]
    return ", ".join([*figures, *dict.fromkeys(new)][:6])


def _drawn_from(row: ExperimentResult, gold: GoldFacts) -> int:
    """Return the place of the chunk that an answer is drawn from, where it is none with gold."""
    place = drawn_from(row.llm_answer, [chunk.text for chunk in row.retrieved_chunks])
    return place if place not in {fact.position for fact in gold.needed} else 0
