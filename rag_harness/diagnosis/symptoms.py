"""Symptoms of a failed trial beside its gold, alone and across the trials of its experiment."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from rag_harness.core.concurrency import Lazy
from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.language_detection import told
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import terms, written_numbers
from rag_harness.core.types import Case, Chunk
from rag_harness.diagnosis.corpus_view import (
    CorpusView,
    are_of_one_length,
    are_shortened,
    bare,
    border_beside,
    stops_inside,
)
from rag_harness.diagnosis.gold import GoldFacts, GoldIndex
from rag_harness.evaluation.measures.correctness import Rightness, carries, plain_terms, share_within
from rag_harness.records.row import ExperimentResult
from rag_harness.retrieval.bm25 import Bm25Index
from rag_harness.retrieval.retrievers import Rarity

# What the trials of an experiment show together: one answer or one context for all, contexts that fit no question.
#
# A single trial does not show it. The first rows of a run are enough, and nothing of the pipeline has to be known.

_FEWEST, _MOST_OF_ALL = 3, 0.5
"""Least number of questions, or of words, that tell something; and their least share of all questions."""
_SOME_OF_ALL = 0.2
"""Least share of questions whose context belongs to another, where contexts are mixed up."""
_STRANGE, _BETTER = 0.5, 0.25
"""How well a context fits its question at most, and how much better another at least, where it belongs to that."""
_MOST_OTHERS = 200
"""Questions that are tried for one context."""
_FEWEST_TERMS = 2
_FEWEST_WORDS, _DRAWN = 4, 0.7
"""Least number of an answer's content words, and least share of them in a chunk that it is drawn from."""
_CLOSER, _MOSTLY = 0.1, 0.5
"""How many more of an answer's words one text has at least, and how many of all, where the answer goes with it."""
_LARGEST = 20_000_000
"""Characters of pages that are searched by words; of more, nothing is said by such a search."""
_SHOWN = 60


def _terms_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the terms of texts, each of which is read once: questions share their passages."""
    return frozenset().union(*map(terms, texts))


class WordSearch:
    """A plain search of the pages by words, for comparison with what a pipeline sent."""

    def __init__(self, view: CorpusView) -> None:
        self._view = view

    @cached_property
    def _paragraphs(self) -> list[Chunk]:
        pages = self._view.documents.values()
        if sum(len(page.text) for page in pages) > _LARGEST:
            return []
        return [
            Chunk(f"{page.doc_id}#{n}", page.doc_id, text)
            for page in pages
            for n, text in enumerate(page.text.split("\n\n"))
            if text.strip()
        ]

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index(lambda: self._paragraphs)

    @cached_property
    def _rarity(self) -> Rarity:
        return Rarity(self._paragraphs)

    def place_of(self, question: str, quote: str, most: int = 50) -> int:
        """Return at which place the words of a question find a passage, from 1; 0 where they do not."""
        wanted = "".join(quote.split())
        if not self._paragraphs or not wanted:
            return 0
        found = self._index.search(question, most)
        return next((n for n, hit in enumerate(found, 1) if wanted in "".join(hit.chunk.text.split())), 0)

    def fit(self, question: str, contexts: Sequence[str]) -> float | None:
        """Return how much of a question's words contexts have, as a share of what so many paragraphs could have.

        None where the question has too few words to tell, or no paragraph has any of them.
        """
        asked = terms(question)
        if not self._paragraphs or not contexts or len(asked) < _FEWEST_TERMS:
            return None
        best = [hit.chunk.text for hit in self._index.search(question, len(contexts))]
        possible, found = asked & _terms_of(best), asked & _terms_of(contexts)
        weight = sum(map(self._rarity.of, possible))
        return sum(map(self._rarity.of, found)) / weight if weight else None

    @property
    def knows_index(self) -> bool:
        """Whether the chunks of the index are known."""
        return self._view.knows_index

    def has(self, doc_id: str) -> bool:
        """Return whether a page is one of the documents."""
        return doc_id in self._view.documents

    def are_shortened(self, row: ExperimentResult) -> bool:
        """Return whether the chunks of a row were shortened on their way."""
        return are_shortened(list(self._with_pages(row)))

    def stopped(self, row: ExperimentResult) -> list[str]:
        """Return the chunks of a row that stop inside a line of their page."""
        return [text for text, page in self._with_pages(row) if page and stops_inside(text, page)]

    def border_beside(self, row: ExperimentResult, doc_id: str, quote: str) -> str:
        """Say that a chunk of a page ends right before a passage of it, or begins after it; else empty."""
        sent = [(text, page) for text, page in self._with_pages(row, doc_id) if quote and page]
        return next(filter(None, (border_beside(quote, text, page) for text, page in sent)), "")

    def _with_pages(self, row: ExperimentResult, only: str = "") -> Iterator[tuple[str, str]]:
        """Yield the chunks of a row, or only those of one page, each with the text of its page; empty if not known."""
        for chunk in row.retrieved_chunks:
            page = self._view.documents.get(chunk.metadata.filename)
            if not only or chunk.metadata.filename == only:
                yield chunk.text, page.text if page is not None else ""


class AcrossTrials:
    """The rows of an experiment, seen together.

    Args:
        rows: returns its first rows; called on first use.
        search: a search of its pages by words; None where no pages are known.
    """

    def __init__(self, rows: Callable[[], Iterable[ExperimentResult]], search: WordSearch | None) -> None:
        self._make, self._search = rows, search

    @property
    def search(self) -> WordSearch | None:
        """The search of the pages by words."""
        return self._search

    @cached_property
    def _rows(self) -> list[ExperimentResult]:
        return list({bare(row.query): row for row in self._make()}.values())

    @cached_property
    def _answers(self) -> Counter[str]:
        return Counter(bare(row.llm_answer) for row in self._rows)

    @cached_property
    def _truths(self) -> dict[str, set[str]]:
        """The ground truths of the questions that one answer was given to."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in self._rows:
            found[bare(row.llm_answer)].add(bare(row.ground_truth))
        return found

    @cached_property
    def _contexts(self) -> Counter[tuple[str, ...]]:
        return Counter(_texts(row) for row in self._rows)

    def _fit(self, row: ExperimentResult) -> float | None:
        """Return how a context fits its question; None where chunks are shortened, which lose words by that."""
        if self._search is None or self._are_shortened:
            return None
        return self._search.fit(row.query, _texts(row))

    @cached_property
    def _are_shortened(self) -> bool:
        """Whether the chunks of most questions were shortened on their way."""
        found = [self._search.are_shortened(row) for row in self._rows] if self._search is not None else []
        return sum(found) > _MOST_OF_ALL * len(found)

    def same_answer(self, row: ExperimentResult) -> str:
        """Return how many questions have the answer of ``row``, where most have it; else empty. Refusals count not."""
        said = bare(row.llm_answer)
        number = self._answers[said]
        is_one = len(self._truths.get(said, ())) >= _FEWEST
        if not said or not is_one or not self._are_most(number) or declines(row.llm_answer):
            return ""
        return f"{number} of {len(self._rows)} different questions have this answer: “{row.llm_answer[:_SHOWN]}”"

    def same_context(self, row: ExperimentResult) -> str:
        """Return how many questions have the context of ``row``, where most have it; else empty."""
        number = self._contexts[_texts(row)]
        if not row.retrieved_chunks or not self._are_most(number):
            return ""
        return f"{number} of {len(self._rows)} different questions have this context"

    def strange_context(self, row: ExperimentResult) -> str:
        """Return that a context belongs to another question of the run; empty where nothing says so.

        A context that fits its own question badly alone is a search that failed. Only where several of a run belong to
        other questions, contexts and questions were mixed up.
        """
        found, number = self._strangers.get(bare(row.query)), len(self._strangers)
        if not found or number < _FEWEST or number < _SOME_OF_ALL * len(self._rows):
            return ""
        named = ", ".join(dict.fromkeys(chunk.metadata.filename for chunk in row.retrieved_chunks if chunk.text))
        return f"{named or 'it'} {found}; contexts of {number} of {len(self._rows)} questions belong to another"

    @cached_property
    def _strangers(self) -> dict[str, str]:
        """By question, why its context belongs to another question of the run."""
        return {bare(row.query): why for row in self._rows if (why := self._stranger(row))}

    def _stranger(self, row: ExperimentResult) -> str:
        own = self._fit(row)
        if own is None or own >= _STRANGE:
            return ""
        for other in islice(self._others(row), _MOST_OTHERS):
            is_there = any(carries(text, other.ground_truth) for text in _texts(row))
            if is_there and _goes_with(row, other) and self._fits_better(row, other, own):
                return f"has the ground truth of {other.query_id}, and {own:.0%} of what this question's words can find"
        return ""

    def _fits_better(self, row: ExperimentResult, other: ExperimentResult, own: float) -> bool:
        """Return whether a context fits another question clearly better than its own, or the answer is that one's."""
        fit = self._search.fit(other.query, _texts(row)) if self._search is not None else None
        return fit is None or fit >= own + _BETTER or carries(row.llm_answer, other.ground_truth)

    def _others(self, row: ExperimentResult) -> Iterator[ExperimentResult]:
        """Yield the other questions whose gold is on a page of a context; all where no name tells it."""
        pages = dict.fromkeys(chunk.metadata.filename for chunk in row.retrieved_chunks)
        known = [other for page in pages for other in self._by_page.get(page, ())]
        is_named = any(page in self._by_page for page in pages)
        own = bare(row.ground_truth)
        return (other for other in (known if is_named else self._rows) if bare(other.ground_truth) != own)

    @cached_property
    def _by_page(self) -> Mapping[str, list[ExperimentResult]]:
        found: dict[str, list[ExperimentResult]] = defaultdict(list)
        for row in self._rows:
            for page in row.context_reference:
                found[page].append(row)
        return found

    def border(self, row: ExperimentResult, doc_id: str, quote: str) -> str:
        """Say that a chunk border stands right beside a passage, where no index tells it; else empty.

        Chunks that something shortens stop inside a line, too: most are of one length.
        """
        if self._search is None or self._search.knows_index:
            return ""
        may_be_short = self._search.are_shortened(row) and (len(self._stopped) < _FEWEST or self._are_of_one_length)
        said = "" if may_be_short else self._search.border_beside(row, doc_id, quote)
        return f"of {doc_id} {said}: “{quote}”" if said else ""

    @cached_property
    def _stopped(self) -> list[str]:
        return [text for row in self._rows for text in (self._search.stopped(row) if self._search is not None else ())]

    @cached_property
    def _are_of_one_length(self) -> bool:
        return are_of_one_length(self._stopped)

    def wrong_above(self, row: ExperimentResult, gold: Collection[str], place: int) -> str:
        """Say that an answer goes with a chunk of another page above the right one, and not with that; else empty.

        Args:
            row: a failed trial.
            gold: names of the pages with the evidence.
            place: place in the context of the last evidence, from 1.
        """
        sent = row.retrieved_chunks[:place]
        if self._search is None or place < 2:
            return ""
        right = sent[-1]
        for n, chunk in enumerate(sent[:-1], 1):
            name = chunk.metadata.filename
            if name not in gold and self._search.has(name) and _is_closer(row, chunk.text, right.text):
                return f"the answer goes with {name} at place {n}, above {right.metadata.filename} at place {place}"
        return ""

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """The places in their contexts of the chunk that an answer is drawn from, and of the truth; 0 without one."""
        return [(drawn_from(row.llm_answer, _texts(row)), _place_of_truth(row)) for row in self._rows]

    def unread(self, place: int) -> str:
        """Return that no answer is drawn from ``place`` of its context or further on (or before); else empty.

        Several truths have to be there: otherwise answers are drawn from where the search puts the truth.
        """
        drawn = [from_ for from_, _ in self._places if from_]
        if len(drawn) < _FEWEST or not place or min(drawn) <= place <= max(drawn):
            return ""
        is_behind = place > max(drawn)
        missed = sum(truth > max(drawn) if is_behind else 0 < truth < min(drawn) for _, truth in self._places)
        if missed < _FEWEST:
            return ""
        where = f"behind place {max(drawn)}" if is_behind else f"before place {min(drawn)}"
        return f"none of {len(drawn)} answers is drawn from a chunk {where}, and {missed} truths are there"

    def _are_most(self, number: int) -> bool:
        return number >= _FEWEST and number > _MOST_OF_ALL * len(self._rows)


def _goes_with(row: ExperimentResult, other: ExperimentResult) -> bool:
    """Return whether an answer is as near to another question and its truth as to its own, or nearer, or declines."""
    said = plain_terms(row.llm_answer)
    shares = [share_within(plain_terms(f"{each.query} {each.ground_truth}"), said) for each in (row, other)]
    return declines(row.llm_answer) or shares[1] >= shares[0]


def _is_closer(row: ExperimentResult, one: str, other: str) -> bool:
    """Return whether an answer has figures of one text that another lacks, or else more of its words there."""
    figures = written_numbers(row.llm_answer) - written_numbers(row.query)
    of_one, of_other = figures & written_numbers(one), figures & written_numbers(other)
    if of_one != of_other:
        return of_one > of_other
    said = plain_terms(row.llm_answer)
    shares = [share_within(plain_terms(text), said) for text in (one, other)]
    return len(said) >= _FEWEST and shares[0] >= max(_MOSTLY, shares[1] + _CLOSER)


def drawn_from(answer: str, texts: Sequence[str]) -> int:
    """Return the place, from 1, of the one text that has most words of an answer; 0 where none has, or several."""
    words = plain_terms(answer)
    shares = [share_within(plain_terms(text), words) for text in texts]
    best = max(shares, default=0.0)
    is_one = len(words) >= _FEWEST_WORDS and best >= _DRAWN and shares.count(best) == 1
    return shares.index(best) + 1 if is_one else 0


def _place_of_truth(row: ExperimentResult) -> int:
    return next((n for n, text in enumerate(_texts(row), 1) if carries(text, row.ground_truth)), 0)


def _texts(row: ExperimentResult) -> tuple[str, ...]:
    return tuple(chunk.text for chunk in row.retrieved_chunks)


# What a failed trial shows beside its gold: the language and the origin of its answer, and how its context fits. Pure.
#
# It needs neither an index nor another run: question, answer and contexts tell it, with the pages and the other
# trials.

_FEWEST_COPIED_WORDS, _LONG_WORD = 4, 4
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
    """Without a sign, its text is empty and its place is 0.

    Attributes:
        same_answer: that most questions have this answer.
        same_context: that most questions have this context.
        strange_context: that the context is not one of this question.
        border: that a chunk of its page ends right before a passage that the context lacks, or begins after it.
        language: that the answer is in another language than the question.
        unlike: whether the answer has no word of its gold, in a language whose words are not compared otherwise.
        by_words: the place at which a plain search by words finds the first needed passage that the context lacks.
        reranks: whether the row has a reranker.
        unsent: what the answer says that no chunk of its context does.
        another: the question whose ground truth the answer has.
        instead: what the row has in place of an answer: the question itself, or an error message.
        distinct: number of different chunks in its context.
        unread: that no answer is drawn from the place of the evidence in the context.
        wrong_above: that the answer agrees with another page, which is above the evidence.
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
    gold_index: Lazy[GoldIndex],
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
        another="" if abstained or lost else gold_index.get().answered(case, row.llm_answer),
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
    if not case.answerable or (len(_WORD.findall(answer)) < _FEWEST_COPIED_WORDS and not abstained):
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
    """Return the detail of a text that is not an answer: an error message, or the question once more."""
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
