"""Short answers: a yes or no, a value, a phrase. They are judged as the sentence that question and answer make.

By itself such an answer has too few words for the models: "Yes." stands in every passage. The rules find what the
passages state about the question. Where they cannot decide there is no verdict. docs/dev/results/embedded-judge.md has
how often they are right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.judges.embedded.absent.identifiers import identifier_not_in, identifiers
from rag_harness.judges.embedded.absent.quantities import Quantity, quantities
from rag_harness.judges.embedded.absent.stated import is_stated
from rag_harness.judges.embedded.absent.statements import (
    NEGATIONS,
    Asked,
    Stated,
    Statement,
    asked,
    compared,
)
from rag_harness.judges.embedded.absent.values import (
    LEAST_FIT,
    MARGIN,
    NOTHING,
    Standing,
    amounts,
    clause_rivals,
    nothing,
    phrase_candidates,
    quantity_candidates,
    standing,
    terms_of,
)
from rag_harness.judges.embedded.yes_no import reading
from rag_harness.measures.judged.reasons import TOO_SHORT
from rag_harness.words.comparison import compared_words
from rag_harness.words.contradictions.vocabulary import tokens
from rag_harness.words.language import yes_or_no
from rag_harness.words.number_words import in_digits, in_words
from rag_harness.words.opposites import opposite, same_sense

MOST_WORDS = 8
"""Most words of a short answer."""
RIGHT, WRONG = 0.95, 0.05
"""Support of an answer that the rules find right, and wrong."""
_MARGIN_OF_PHRASES = 0.3
"""Least margin by which other clauses fit better, where a phrase is found wrong: it may be in words of its own."""
_SURE = 0.65
"""Least share of a question that a statement has, for a yes or no against it to be found wrong."""
_FEW = 4
"""Most words of a phrase that ends with a full stop; longer ones are sentences, unless they begin as a phrase."""
_OPENS_PHRASE = re.compile(
    r"\W*(?:\d|at|in|on|by|within|from|to|after|before|up|because|with|without|for|between|about|around|every|only|just"
    r"|under|over|until|once|twice|half|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty)\b",
    re.I,
)
_SHOWN = 80
_YES_NO = re.compile(
    r"^\W*(yes|no|yeah|yep|nope|correct|true|false|right)\b(?!\s+(?:more|less|later|longer)\b)[\s,.:;!-]*", re.I
)
_NO = frozenset(("no", "nope", "false"))
_ASKS_YES_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have|had|am)\b", re.I
)
_ECHO = re.compile(
    r"^(?:it|they|you|he|she|we|i|there|that|this)?\s{0,4}(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would"
    r"|has|have)?(?:\s?n['’]t|\s?not)?[\s.!]{0,9}$|^(?:it|they|you|that)\s+(?:can|may|must)not[\s.!]{0,9}$",
    re.I,
)
_VERBS = frozenset(
    """
    is are was were be been has have had do does did can could may might must shall should will would cannot
    take takes took get gets got go goes went make makes made give gives gave cost costs need needs last lasts come
    comes came cover covers include includes contain contains run runs ran use uses used say says said mean means meant
    apply applies start starts end ends open opens close closes pay pays receive receives arrive arrives weigh weighs
    hold holds held keep keeps kept stay stays expire expires leave leaves left begin begins began call calls find finds
    founded built designed wrote invented won lost works work lives live became become becomes remain remains covers
    fails fail failed earns earn earned expect expects register donate ship ships enter enters accept accepts accepted
    offer offers offered sell sells sold buy buys require requires required allow allows let lets send sends sent bring
    brings provide provides support supports supported return returns returned return check checks read reads write
    move moves moved serve serves served follow follows set sets turn turns put puts add adds keep drive play plays
    show shows happen happens help helps ask asks want wants see sees look looks seem seems try tries choose click press
    hold visit travel travels fly flies walk stop stops wait waits grow grows lie lies stand stands sit sits measure
    measures exceed exceeds replace replaces contain store stores carry carries connect connects install installs
    it's they're that's isn't aren't don't doesn't can't won't
    """.split()  # noqa: SIM905
)
_FILLING = frozenset(("it", "is", "merely", "only", "just", "so"))
_ITEMS = re.compile(r"\s{0,24}(?:,(?!\d)|;|\band\b|\bor\b|&)\s{0,24}", re.I)
_LEADING = re.compile(
    r"^(?:it|they|that|this|you|he|she|there)(?:['’](?:s|re)|\s+(?:is|are|was|were|has|have|costs?|takes?|lasts?|weighs?|does"
    r"|can|must|may|will))\s+",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rules say of a short answer.

    Attributes:
        value: its support; None where they cannot decide.
        passage: the passage that decides.
        reason: why it is not supported, or not judged.
    """

    value: float | None
    passage: int | None = None
    reason: str = ""


UNDECIDED = Decision(None, reason=TOO_SHORT)


def repeats_question(question: str, answer: str) -> bool:
    """Return whether an answer says nothing but its question."""
    said = compared_words(answer)
    return bool(said) and said == compared_words(question)


def is_short(answer: str, sentences: int) -> bool:
    """Return whether an answer is a yes or no, a value or a phrase, and no sentence of its own."""
    words = [word.strip(".,;:!?\"'()").lower() for word in answer.split() if any(map(str.isalnum, word))]
    if sentences != 1 or not words:
        return False
    rest = _LEADING.sub("", answer)
    if _YES_NO.match(answer):
        return len(words) <= MOST_WORDS
    is_sentence = any(word in _VERBS for word in words if word != "may" or "may" in answer)
    if rest != answer:
        return len(words) <= MOST_WORDS - 2
    is_list = "," in answer and all(len(item.split()) <= _FEW for item in answer.split(","))
    is_phrase = len(words) <= _FEW or not answer.rstrip().endswith(".") or is_list or _OPENS_PHRASE.match(answer)
    return len(words) <= MOST_WORDS and not is_sentence and bool(is_phrase)


def decide(question: str, answer: str, passages: Sequence[str]) -> Decision:
    """Return what the rules say of a short answer."""
    stated = Stated(passages)
    if said := identifier_not_in(identifiers(answer), [*passages, question]):
        return Decision(WRONG, reason=f"{said}: no passage has it")
    yes_no = _YES_NO.match(answer)
    if yes_no:
        return _yes_no(question, yes_no[1].lower() not in _NO, answer[yes_no.end() :].strip(), stated)
    if (_ASKS_YES_NO.match(question) or " or " in question) and (chosen := _chosen(question, answer)) is not None:
        return _yes_no(chosen[0], chosen[1], "", stated)
    return _value(question, _LEADING.sub("", answer), stated)


def decide_in(language: str, question: str, answer: str, passages: Sequence[str]) -> Decision:
    """Return whether passages in another language than English have an answer's value or phrase where it is asked for.

    The rules have no negations and opposites of other languages: they find such an answer right, or nothing.
    """
    words = compared_words(answer)
    if not words or words[0] in yes_or_no(language) or _YES_NO.match(answer):
        return UNDECIDED
    found = _value(question, answer, Stated(passages))
    return found if found.value == RIGHT else UNDECIDED


def _yes_no(question: str, says: bool, rest: str, stated: Stated) -> Decision:
    found = reading(question, asked(question), stated)
    if found is None:
        return UNDECIDED
    if found.says != says:
        if found.share < _SURE or (rest and _value(question, rest, stated).value == RIGHT):
            return UNDECIDED
        return Decision(WRONG, found.statement.passage, f"the passage says: {_quote(found.statement)}")
    more = Decision(RIGHT) if not rest or _ECHO.match(rest) else _value(question, rest, stated)
    return more if more.value == WRONG else Decision(RIGHT, found.statement.passage)


def _chosen(question: str, answer: str) -> tuple[str, bool] | None:
    """Return the question of yes or no that a one-word answer answers, and its answer: "Included", "Not allowed".

    Of "is it included or excluded?" the word that the answer chooses stays.
    """
    rest = _LEADING.sub("", answer)
    words = [token.lower for token in tokens(rest, 0, len(rest)) if token.lower[0].isalpha()]
    denies = any(word in NEGATIONS or word.endswith("n't") for word in words)
    said = [
        word for word in words if word not in NEGATIONS and word not in ("it", "is", "merely", "only", "just", "so")
    ]
    if not 0 < len(said) <= 2:
        return None
    asked_words = [token.lower for token in tokens(question, 0, len(question))]
    for one in said:
        same = next((word for word in asked_words if _is_same(word, one)), "")
        against = next((word for word in asked_words if opposite(word, one)), "")
        if same and against:
            return re.sub(rf"(?:\s+or)?\s+{re.escape(against)}\b(?:\s+or)?", "", question, flags=re.I), not denies
        if same or against:
            return question, bool(same) != denies
    return None


def _is_same(word: str, other: str) -> bool:
    return (bool(compared(other)) and compared(word) == compared(other)) or same_sense(word, other)


def _value(question: str, answer: str, stated: Stated) -> Decision:
    items = [item for item in _ITEMS.split(answer.strip(" .!\n")) if item]
    found = quantities(in_digits(answer))
    if len(items) > 1 and not _is_one_quantity(answer, found):
        return _list(question, items, stated)
    return _item(question, answer.strip(" .!\n"), stated)


def _is_one_quantity(answer: str, found: Sequence[Quantity]) -> bool:
    return len(found) == 1 and not terms_of(in_digits(answer).replace(found[0].written, ""), Asked({}))


def _list(question: str, items: Sequence[str], stated: Stated) -> Decision:
    """Judge a list: of phrases as one run of words in a passage, else each item by itself."""
    about = asked(question)
    terms = [terms_of(in_digits(item), Asked({})) for item in items]
    every = [word for item in terms for word in item]
    lacking = [word for word in every if not stated.has(word)]
    if lacking:
        if any(is_stated(item, [one.written for one in stated.all]) for item in items):
            return UNDECIDED
        return Decision(WRONG, reason=_nowhere(items, lacking[0])) if len(lacking) < len(every) else UNDECIDED
    runs = [one for one in phrase_candidates(every, stated) if _is_run(one.statement, one.first, one.last, every)]
    if runs:
        found = _decided(" ".join(items), standing(runs, clause_rivals(runs, about, stated), about, stated), 0.0)
        return UNDECIDED if found.value == WRONG else found
    if len(items) > 2 or all(not quantities(in_digits(item)) for item in items):
        return UNDECIDED
    said = [_item(question, item, stated) for item in items]
    return min(said, key=lambda one: -1.0 if one.value is None else one.value)


def _is_run(statement: Statement, first: int, last: int, words: Sequence[str]) -> bool:
    """Return whether nothing but the words of a list stands between its first and its last."""
    return all(not word or word in words for word in statement.words[first : last + 1])


def _item(question: str, answer: str, stated: Stated) -> Decision:
    about, digits = asked(question), in_digits(answer)
    if answer.lower().removesuffix(" of charge") in NOTHING:
        return _decided(answer, standing(list(nothing(stated)), amounts(stated), about, stated), LEAST_FIT)
    found = quantities(digits)
    without = digits
    for one in found:
        without = without.replace(one.written, " ")
    rest = terms_of(without, about)
    dates = [one for one in found if one.unit.startswith("day of")]
    if len(dates) == 1 and all(one.unit in ("", "month") or one in dates for one in found):
        found = tuple(dates)
    if len(found) == 1 and not rest and not identifiers(answer):
        return _quantity(found[0], answer, about, stated)
    return _phrase(answer, about, stated)


def _quantity(said: Quantity, answer: str, about: Asked, stated: Stated) -> Decision:
    without = frozenset(compared(token.lower) for token in tokens(said.written.lower(), 0, len(said.written)))
    about = Asked({word: form for word, form in about.words.items() if word not in without})
    own, rivals = quantity_candidates(said, stated)
    if not own:
        if is_stated(said.written, [one.written for one in stated.all]):
            return UNDECIDED
        return Decision(WRONG, reason=f"{in_words(answer, said.written)}: no passage says it")
    return _decided(in_words(answer, said.written), standing(own, rivals, about, stated), LEAST_FIT)


def _phrase(answer: str, about: Asked, stated: Stated) -> Decision:
    words = terms_of(in_digits(answer), about) or terms_of(in_digits(answer), Asked({}))
    if not words or any(not stated.has(word) for word in words):
        return UNDECIDED
    own = phrase_candidates(words, stated)
    if not own:
        return UNDECIDED
    found = standing(own, clause_rivals(own, about, stated), about, stated)
    return _decided(answer, found, LEAST_FIT, _MARGIN_OF_PHRASES)


def _decided(answer: str, found: Standing, least: float, margin: float = MARGIN) -> Decision:
    if found.best is None:
        return UNDECIDED
    if found.rival is not None and found.other > found.own + margin and found.other >= LEAST_FIT:
        rival, statement = found.rival, found.rival.statement
        said = in_words(statement.written, rival.quantity.written) if rival.quantity else _quote(statement)
        return Decision(WRONG, statement.passage, f"{' '.join(answer.split())}: the passage says {said}")
    is_clear = found.rival is None or found.own >= found.other + MARGIN
    if found.own >= least and is_clear:
        return Decision(RIGHT, found.best.statement.passage)
    return UNDECIDED


def _nowhere(items: Sequence[str], word: str) -> str:
    item = next(item for item in items if word in terms_of(in_digits(item), Asked({})))
    return f"{item.strip()}: no passage says it"


def _quote(statement: Statement) -> str:
    text = " ".join(statement.written.split())
    return f"{text[:_SHOWN]}{'…' * (len(text) > _SHOWN)}"
