"""Finds ground truths that contradict their own evidence while the answer agrees with the evidence. Pure.

That is so where three things hold. A figure of the ground truth is in no passage of the evidence. The answer has a
figure of the evidence in its place. The answer would be right if the ground truth had that figure too: otherwise the
ground truth's figure may be computed from the evidence. Names of months and weekdays count as figures. The place of a
figure is known from the words beside it, in the answer or in the evidence: "31 days" against "44 days". The same figure
in another unit is a contradiction, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rag_harness.measures.ground_truth import plain_terms, rightness, share_within
from rag_harness.types import Case
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.sentence_ends import sentence_texts
from rag_harness.words.terms import STOPWORDS, stem, written_numbers

_MONTHS_AND_DAYS = """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
"""
_SIGNS = ("€", "£", "$", "eur", "gbp", "usd")
"""Units that may stand before their figure."""
_NAMES = frozenset(_MONTHS_AND_DAYS.split())
_SAME = {
    **dict.fromkeys(("€", "eur", "euros"), "euro"),
    **dict.fromkeys(("$", "usd", "dollars"), "dollar"),
    **dict.fromkeys(("£", "gbp", "pounds"), "pound"),
    "percent": "%",
}
"""Tokens for the same unit."""
_UNITS = {
    name: names.split()[0]
    for names in (
        "% percent pct", "‰ permille", "second seconds sec secs s", "minute minutes min mins", "hour hours hr hrs h",
        "day days", "week weeks", "month months", "year years yr yrs", "milligram milligrams mg", "gram grams g",
        "kilogram kilograms kg kgs kilo kilos", "tonne tonnes ton tons", "pound pounds lb lbs £ gbp",
        "ounce ounces oz", "millimetre millimetres millimeter millimeters mm",
        "centimetre centimetres centimeter centimeters cm", "metre metres meter meters m",
        "kilometre kilometres kilometer kilometers km", "inch inches", "foot feet ft", "yard yards", "mile miles mi",
        "millilitre millilitres milliliter milliliters ml", "litre litres liter liters l", "gallon gallons gal",
        "euro euros eur €", "dollar dollars usd $", "cent cents", "watt watts w", "kilowatt kilowatts kw",
        "volt volts v", "amp amps ampere amperes a", "byte bytes", "kilobyte kilobytes kb", "megabyte megabytes mb",
        "gigabyte gigabytes gb", "terabyte terabytes tb", "millisecond milliseconds ms", "degree degrees °",
    )
    for name in names.split()
}  # fmt: skip
"""Units by their names. "Pounds" may be money or weight; both have one name here, so that they never differ."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[€£%‰°]|\$(?=\s?\d)")
_MOST_FIGURES = 12
_SAYS_THE_SAME = 0.5
"""Share of the ground truth's words from which a sentence of a page counts as about the same."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A figure, the tokens beside it in comparable form, and its position in the text."""

    figure: str
    beside: frozenset[str]
    span: tuple[int, int]

    def is_in_place_of(self, other: _Placed) -> bool:
        """Whether two figures have the same role in their texts: the same unit, or the same words before them."""
        return not self.beside or not other.beside or bool(self.beside & other.beside)


def contradiction(case: Case, answer: str, pages: Sequence[str]) -> str:
    """Return how the ground truth contradicts the evidence that the answer agrees with; empty where it does not.

    Args:
        case: question, ground truth and evidence.
        answer: text of the answer.
        pages: texts of the gold pages, used as evidence where the case has no quotes.
    """
    if not case.answerable:
        return ""
    evidence = [one.quote for one in case.evidence if one.quote.strip()] or list(_about(case.ground_truth, pages))
    for mine, its in _pairs(case, answer, evidence):
        start, end = mine.span
        mended = f"{case.ground_truth[:start]}{its.figure}{case.ground_truth[end:]}"
        if rightness(replace(case, ground_truth=mended), answer, abstained=False).right:
            return f"the evidence says {its.figure}, as the answer does, and the ground truth {mine.figure}"
    return _in_unit(case, answer, evidence)


def may_contradict(question: str, ground_truth: str, answer: str) -> bool:
    """Whether an answer has a figure or a unit in place of one in the ground truth."""
    truth, said = _figures(ground_truth), _figures(answer)
    other_figure = bool(truth - said - _figures(question)) and bool(said)
    return other_figure or bool(_other_units(_measured(ground_truth), _measured(answer)))


def _in_unit(case: Case, answer: str, evidence: Sequence[str]) -> str:
    """Return a figure whose unit in the ground truth differs from that in evidence and answer; empty if none does."""
    truth, quoted = _measured(case.ground_truth), _measured(" ; ".join(evidence))
    asked = _measured(case.query.text)
    for figure, mine, its in _other_units(truth, _measured(answer)):
        if its in quoted.get(figure, ()) and mine not in quoted[figure] and mine not in asked.get(figure, ()):
            return f"the evidence says {figure} {its}, as the answer does, and the ground truth {figure} {mine}"
    return ""


def _other_units(truth: Mapping[str, frozenset[str]], said: Mapping[str, frozenset[str]]) -> list[tuple[str, str, str]]:
    """Return figures that both texts have with different units: figure, unit in ``truth``, unit in ``said``."""
    return [
        (figure, next(iter(units)), next(iter(others)))
        for figure, units in truth.items()
        if len(units) == 1 and len(others := said.get(figure, frozenset())) == 1 and others != units
    ]


def _measured(text: str) -> Mapping[str, frozenset[str]]:
    """Return the units beside each figure of a text; figures without a unit are left out."""
    tokens = [token.lower() for token in _TOKEN.findall(CITATION.sub(" ", text).replace("per mille", "‰"))]
    found: dict[str, set[str]] = {}
    for n, token in enumerate(tokens):
        before, behind = tokens[n - 1] if n else "", "".join(tokens[n + 1 : n + 2])
        unit = _UNITS.get(before if before in _SIGNS else behind, "")
        for figure in written_numbers(token) if unit else ():
            found.setdefault(figure, set()).add(unit)
    return {figure: frozenset(units) for figure, units in found.items()}


def _pairs(case: Case, answer: str, evidence: Sequence[str]) -> Iterator[tuple[_Placed, _Placed]]:
    """Yield figures of the ground truth, each with the figure of the evidence that the answer has in its place."""
    truth, said = list(_placed(case.ground_truth)), list(_placed(answer))
    quoted = [each for text in evidence for each in _placed(text)]
    asked, known = _figures(case.query.text), {each.figure for each in quoted}
    # A figure that the ground truth has as often is not in place of another.
    more = Counter(each.figure for each in said) - Counter(each.figure for each in truth)
    right = _once(each for each in (*said, *quoted) if each.figure in known - asked and more[each.figure])
    wrong = [each for each in truth if each.figure not in {each.figure for each in said} | known | asked]
    # With only one figure on each side there is nothing to confuse, whatever the words beside them.
    is_one = len({each.figure for each in right}) == len({each.figure for each in truth} - asked) == 1
    given = asked | (known if len(case.evidence) > 1 else frozenset())
    computed = {its.figure: _computed(its.figure, given) for its in right}
    for mine in wrong:
        summed = mine.figure in _summed({each.figure for each in truth} - {mine.figure})
        in_place: dict[str, _Placed] = {}
        for its in right:
            if (is_one or its.is_in_place_of(mine)) and mine.figure not in computed[its.figure] and not summed:
                in_place.setdefault(its.figure, its)
        yield from ((mine, its) for its in in_place.values())


def _once(placed: Iterable[_Placed]) -> list[_Placed]:
    """Return figures without those that stand beside the same words: an answer may repeat one 20,000 times."""
    return list({(each.figure, each.beside): each for each in placed}.values())


def _computed(figure: str, others: Iterable[str]) -> set[str]:
    """Return sums, differences and products of a figure and others: a ground truth may state such a result."""
    first = _number(figure)
    pairs = [(first, second) for second in map(_number, others) if first is not None and second is not None]
    return _written(value for a, b in pairs for value in (a + b, abs(a - b), a * b))


def _summed(figures: Iterable[str]) -> set[str]:
    """Return the sums of a ground truth's figures: "€87: €39, €19 and €29", or €45 less 15 %."""
    given = [value for value in map(_number, sorted(figures)) if value is not None][:_MOST_FIGURES]
    sums = [sum(some) for count in (2, 3, 4) for some in combinations(given, count)]
    return _written([*sums, *(whole * (1 - part / 100) for whole in given for part in given if part <= 100)])


def _written(values: Iterable[float]) -> set[str]:
    return {each for value in values for each in written_numbers(f"{value:.10g}")}


def _number(figure: str) -> float | None:
    """Return the value of a figure in English notation; None for a time of day, or a name."""
    try:
        return float(figure.replace(",", ""))
    except ValueError:
        return None


def _figures(text: str) -> frozenset[str]:
    names = {word for word in re.findall(r"[a-z]+", text.lower()) if word in _NAMES}
    return written_numbers(text) | names


def _placed(text: str) -> Iterator[_Placed]:
    plain = CITATION.sub(lambda mark: " " * len(mark[0]), text)  # positions stay the same
    found_at = list(_TOKEN.finditer(plain))
    tokens = [each[0].lower() for each in found_at]
    for n, token in enumerate(tokens):
        found = written_numbers(token) or ({token} if token in _NAMES else frozenset())
        for figure in found:
            beside = [tokens[at] for at in (n - 1, n + 1) if 0 <= at < len(tokens)]
            further = [tokens[at] for at in (n - 2, n + 2) if 0 <= at < len(tokens)]
            words = [*beside, *(token for token in further if token not in STOPWORDS and not token[0].isdigit())]
            yield _Placed(figure, frozenset(map(_compared, words)), found_at[n].span())


def _compared(token: str) -> str:
    return _SAME.get(token, stem(token))


def _about(ground_truth: str, pages: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the gold pages about the same as the ground truth, apart from figures."""
    wanted = plain_terms(ground_truth)
    for sentence in (each for page in pages for each in sentence_texts(page)):
        if wanted and share_within(plain_terms(sentence), wanted) >= _SAYS_THE_SAME:
            yield sentence
