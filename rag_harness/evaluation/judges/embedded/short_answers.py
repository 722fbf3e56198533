"""Short answers, such as yes, no, a value or a phrase, judged with their question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.figures import tokens
from rag_harness.core.text.language_detection import yes_or_no
from rag_harness.core.text.numbers import in_digits, in_words
from rag_harness.core.text.terms import opposite, same_sense
from rag_harness.evaluation.judges.embedded.quantities import Quantity, quantities
from rag_harness.evaluation.judges.embedded.unsupported_details import identifier_not_in, identifiers
from rag_harness.evaluation.judges.embedded.values import (
    LEAST_FIT,
    MARGIN,
    NEGATIONS,
    NOTHING,
    AskedTerms,
    Standing,
    Statement,
    StatementIndex,
    amounts,
    asked,
    clause_rivals,
    compared,
    is_rate,
    is_stated,
    nothing,
    phrase_candidates,
    quantity_candidates,
    standing,
    terms_of,
)
from rag_harness.evaluation.measures.opinion import TOO_SHORT

# Whether yes or no is right: the statement that a question asks about, whether it is negated, and its bounds.

FOUND = 0.5
"""Least share of the question, by weight, that a statement has for it to decide."""
_RIVAL = 0.9
"""Least share of the best statement's weight for another one to count beside it."""
_BEFORE = 0.6
"""What a term counts that is in the sentence before, or in a heading."""
_UPPER = (
    r"(?:under|below|less than|fewer than|up to|at most|within|no more than|not more than|maximum(?: of)?"
    r"|younger than|a limit of)"
)
_LOWER = (
    r"(?:over|above|more than|at least|from|minimum(?: of)?|older than|exceed(?:s|ing)?|min\.?|longer than|after"
    r"|starting at)"
)
_UPPER_BEFORE = re.compile(rf"\b{_UPPER}[\s-]{{0,24}}[€$£]?\s{{0,24}}$", re.I)
_LOWER_BEFORE = re.compile(rf"\b{_LOWER}[\s-]{{0,24}}[€$£]?\s{{0,24}}$", re.I)
_LOWER_AFTER = re.compile(
    r"^[^,;.]{0,14}\b(?:or (?:more|newer|later|older|above|higher)|and (?:over|up|above)|minimum|at least)\b|^\+", re.I
)
_UPPER_AFTER = re.compile(r"^[^,;.]{0,14}\b(?:or (?:less|fewer|younger|below)|maximum|at most|and under)\b", re.I)
_AHEAD = re.compile(r"^[^,;.]{0,14}\b(?:before|ahead|beforehand|prior|in advance)\b", re.I)
_ALL = re.compile(r"\b(?:all|every|always|any|whole|entire|both|each|only|everything|everyone)\b", re.I)
_LIMITS = re.compile(r"\b(?:except|excepted|unless|only|apart from|other than|but not)\b", re.I)
_IF = re.compile(r"\b(?:if|unless|provided|when)\b", re.I)
_AGE = re.compile(r"\b(\d+)[- ]years?[- ]olds?\b|\b(\d+)s\b")


_EXCEPTS = frozenset(("except", "excluding", "without"))
"""Prepositions that negate what follows them alone."""


class Reading(NamedTuple):
    """Whether a statement agrees with a question, the statement, and its share of the question."""

    says: bool
    statement: Statement
    share: float


def reading(question: str, asked: AskedTerms, stated: StatementIndex) -> Reading | None:
    """Return whether the passages say yes to a question; None where the rules cannot tell."""
    asked = AskedTerms({word: said for word, said in asked.words.items() if not word[0].isdigit()})
    total = sum(map(stated.weight, asked.words))
    if not total:
        return None
    found = [(_weight(asked, one, stated) / total, one) for one in stated.all]
    best = max((share for share, _ in found), default=0.0)
    if best < FOUND:
        return None
    near = [(share, one) for share, one in found if share >= _RIVAL * best]
    said = [(_says(question, asked, one, stated), one, share) for share, one in near]
    verdicts = {says for says, _, _ in said}
    if len(verdicts) != 1 or None in verdicts:
        return None
    says, statement, share = max(said, key=lambda row: row[2])
    return Reading(bool(says), statement, share)


def _weight(asked: AskedTerms, statement: Statement, stated: StatementIndex) -> float:
    here = asked.within(statement)
    rest = [word for word in asked.words if word not in here and word in statement.above]
    own = sum(map(stated.weight, here))
    return own + _BEFORE * sum(map(stated.weight, rest)) if own else 0.0


def _says(question: str, asked: AskedTerms, statement: Statement, stated: StatementIndex) -> bool | None:
    """Return whether a statement agrees with a question: by its negations, opposites and bounds."""
    here = asked.within(statement)
    limits = _LIMITS.search(statement.text)
    if limits and _ALL.search(question):
        return False
    places = _clauses(here, statement)
    turned = statement.negations(_negating(places, here, statement, question))
    turned += sum(is_opposite for _, is_opposite in here.values())
    turned += len(re.findall(r"\bnot\b|n['’]t\b(?! (?:you|it|they))", question.partition(" ")[2]))
    fits = _fits(question, statement)
    if fits is None:
        return None
    absent = [word for word in asked.words if word not in here]
    missing = [word for word in absent if word not in statement.above and not _is_topic(word, asked, question, stated)]
    if re.search(r"\bonly\b", statement.text) and any(map(stated.has, absent)):
        turned += 1
    elif (
        (any(map(stated.has, missing)) and not _ALL.search(statement.text))
        or [*asked.words][-1] in absent
        or (_IF.search(statement.text) and not _IF.search(question))
    ):
        return None
    return (turned % 2 == 0) == fits


def _negating(places: list[int], here: dict[str, tuple[int, bool]], statement: Statement, question: str) -> list[int]:
    """Return the tokens whose negations count.

    A word that is asked about does not count, nor a word of the question, nor an exception of something else.
    """
    found = {place for place, _ in here.values()}
    last = max(found)
    words = frozenset(token.lower for token in tokens(question, 0, len(question)))
    return [
        place
        for place in places
        if place not in found
        and not (statement.tokens[place].lower in _EXCEPTS and (place > last or statement.tokens[place].lower in words))
    ]


def _is_topic(word: str, asked: AskedTerms, question: str, stated: StatementIndex) -> bool:
    """Return whether a word behind a preposition is the beginning of a passage: "… for the scooter"."""
    before = r"\b(?:for|of|in|at|on|with|from|to)\b[^,;?]{0,20}\b"
    behind = re.search(before + re.escape(asked.words[word]), question, re.I)
    return bool(behind) and any(word in one.terms for one in stated.firsts)


def _clauses(here: dict[str, tuple[int, bool]], statement: Statement) -> list[int]:
    """Return the tokens of the clauses with words of the question; of its subject's clause alone if that denies."""
    clauses = {statement.clauses[place] for place, _ in here.values()}
    first = next(iter(here.values()))[0]
    own = statement.clause(first)
    if statement.negations(list(own)) and len(clauses) > 1:
        return list(own)
    within = range(min(clauses), max(clauses) + 1)
    return [place for place, clause in enumerate(statement.clauses) if clause in within]


def _fits(question: str, statement: Statement) -> bool | None:
    """Return whether the question's figures are within those of the statement; None where that is not clear."""
    asked = quantities(in_digits(question.partition(" ")[2]))  # "May I" is not a month.
    aged = [float(found[1] or found[2]) for found in _AGE.finditer(in_digits(question))]
    if aged:
        return _fits_age(aged[0], statement)
    for one in asked:
        if any(map(one.same, statement.quantities)) or is_rate(one):
            continue
        known = [other for other in statement.quantities if not is_rate(other)]
        rivals = [other for other in known if one.rivals(other) or _counts_alike(one, other)]
        if not rivals:
            return None
        if one.unit in ("month", "weekday") or one.unit.startswith("day of"):
            return None
        found = [_within(one, question.partition(" ")[2], other, statement.text) for other in rivals]
        if len(rivals) > 1 and len(set(found)) > 1:
            return None
        if not found[0]:
            return False
    return True


def _counts_alike(one: Quantity, other: Quantity) -> bool:
    return not one.unit and not other.unit and (not one.noun or not other.noun)


def _bound(text: str, start: int, end: int) -> str:
    before, after = text[max(0, start - 24) : start], text[end : end + 24]
    if _LOWER_BEFORE.search(before) or _LOWER_AFTER.search(after):
        return "lower"
    if _UPPER_BEFORE.search(before) or _UPPER_AFTER.search(after):
        return "lower" if _AHEAD.search(after) else "upper"
    return ""


def _end(text: str, one: Quantity) -> int:
    found = re.compile(r"[\d.,]*\d").search(text, one.start)
    return found.end() if found else one.start


def _within(one: Quantity, question: str, other: Quantity, text: str) -> bool | None:
    """Return whether a figure of the question is within the bound of a statement, or the other way round."""
    theirs = _bound(text, other.start, _end(text, other))
    asked = in_digits(question)
    ours = _bound(asked, one.start, _end(asked, one))
    value, stated = one.value, other.value
    if not (one.unit or other.unit) and re.search(r"newer|later", text):
        value, stated = _version(asked, one), _version(text, other)
    if theirs == "upper":
        return value <= stated
    if theirs == "lower":
        return value >= stated
    if ours == "lower":
        return stated >= value
    return stated <= value if ours == "upper" else False


def _version(text: str, one: Quantity) -> float:
    found = re.compile(r"(\d+)(?:\.(\d+))?").search(text, one.start)
    return int(found[1]) * 1000.0 + int(found[2] or 0) if found else one.value


def _fits_age(age: float, statement: Statement) -> bool | None:
    text = statement.text
    if between := re.search(r"\b(\d+)(?: and | to |\s?[-–]\s?)(\d+)\b", text):
        return float(between[1]) <= age <= float(between[2])
    for found in re.finditer(r"\d+", text):
        bound = _bound(text, found.start(), found.end())
        if bound:
            return age <= float(found[0]) if bound == "upper" else age >= float(found[0])
    return None


# Short answers: a yes or no, a value, a phrase. They are judged as the sentence that question and answer make.
#
# By itself such an answer has too few words for the models: "Yes." is in every passage. The rules find what the
# passages state about the question. Where they cannot decide, the verdict is missing.
# docs/dev/results/embedded-judge.md has how often they are right.

MOST_WORDS = 8
"""Most words of a short answer."""
RIGHT, WRONG = 0.95, 0.05
"""Support of an answer that the rules find right, and wrong."""
_MARGIN_OF_PHRASES = 0.3
"""Least margin by which other clauses fit better, where a phrase is found wrong: it may be in words of its own."""
_SURE = 0.65
"""Least share of a question that a statement has where a yes or no against it is found wrong."""
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
    """The decision of the rules on a short answer.

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
    """Return the decision of the rules on a short answer."""
    stated = StatementIndex(passages)
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
    found = _value(question, answer, StatementIndex(passages))
    return found if found.value == RIGHT else UNDECIDED


def _yes_no(question: str, says: bool, rest: str, stated: StatementIndex) -> Decision:
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


def _value(question: str, answer: str, stated: StatementIndex) -> Decision:
    items = [item for item in _ITEMS.split(answer.strip(" .!\n")) if item]
    found = quantities(in_digits(answer))
    if len(items) > 1 and not _is_one_quantity(answer, found):
        return _list(question, items, stated)
    return _item(question, answer.strip(" .!\n"), stated)


def _is_one_quantity(answer: str, found: Sequence[Quantity]) -> bool:
    return len(found) == 1 and not terms_of(in_digits(answer).replace(found[0].written, ""), AskedTerms({}))


def _list(question: str, items: Sequence[str], stated: StatementIndex) -> Decision:
    """Judge a list: of phrases as one run of words in a passage, else each item by itself."""
    about = asked(question)
    terms = [terms_of(in_digits(item), AskedTerms({})) for item in items]
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
    """Return whether only words of a list are between its first and its last."""
    return all(not word or word in words for word in statement.words[first : last + 1])


def _item(question: str, answer: str, stated: StatementIndex) -> Decision:
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


def _quantity(said: Quantity, answer: str, about: AskedTerms, stated: StatementIndex) -> Decision:
    without = frozenset(compared(token.lower) for token in tokens(said.written.lower(), 0, len(said.written)))
    about = AskedTerms({word: form for word, form in about.words.items() if word not in without})
    own, rivals = quantity_candidates(said, stated)
    if not own:
        if is_stated(said.written, [one.written for one in stated.all]):
            return UNDECIDED
        return Decision(WRONG, reason=f"{in_words(answer, said.written)}: no passage says it")
    return _decided(in_words(answer, said.written), standing(own, rivals, about, stated), LEAST_FIT)


def _phrase(answer: str, about: AskedTerms, stated: StatementIndex) -> Decision:
    words = terms_of(in_digits(answer), about) or terms_of(in_digits(answer), AskedTerms({}))
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
    item = next(item for item in items if word in terms_of(in_digits(item), AskedTerms({})))
    return f"{item.strip()}: no passage says it"


def _quote(statement: Statement) -> str:
    text = " ".join(statement.written.split())
    return f"{text[:_SHOWN]}{'…' * (len(text) > _SHOWN)}"
