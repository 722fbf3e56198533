"""Whether an answer declines: it says that it has no answer, and claims nothing beside that.

The whole answer is looked at, clause by clause. A clause refuses ("the documents do not mention a price"), or is a
courtesy (an apology, an offer of help, what was searched), or claims something. An answer declines where a clause
refuses and none claims: "I don't know why you ask, lamps can be returned within 45 days" is an answer.

The phrases are of English and of the six languages with rules (``abstention.toml``). Three words do not tell their
language, so those of all languages are looked for. ``benchmarks/refusals.py`` measures it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from rag_harness.settings.profiles import parsed_toml
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import without_emphasis

_LONGEST = 4_000
"""Most characters of an answer that is read: a refusal is short, and nothing is read for ever."""
_LONGEST_EVASION = 300
_APOLOGY = re.compile(
    r"\b(?:sorry|apolog\w+|unfortunately|afraid|leider|tut mir|désolée?|malheureusement|lo siento|lamentablemente|"
    r"mi dispiace|purtroppo|helaas|desculp\w+|infelizmente)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"")
"""What somebody else says. Typographic quotes are compared as plain ones."""
_SENTENCE = re.compile(r";\s+|(?<=[.!?…])[\"')\]]*\s+|\n+|(?<=[\w)\]\"])\s?:\s+")
_CONTRAST = (
    r"(?:but|however|though|although|aber|doch|sondern|jedoch|mais|cependant|pero|aunque|sino|ma|però|bensì|maar|mas|"
    r"porém)"
)
_CLAUSE = re.compile(rf"[,()]\s+|\s-+\s|\s(?={_CONTRAST}\s)", re.I)
_CONTRASTED = re.compile(rf"{_CONTRAST}\s", re.I)
_NUMBERED = re.compile(r"\[\d[\d\s,;-]*\]|[{}]")
"""Numbers of sources, and brackets of JSON."""
_ITEM = re.compile(r"(?:\d{1,3}[.)]|[-*>#•|]+)\s+")
"""The mark of an item of a list, or of a heading."""
_NO_CLAIM = re.compile(r"[\W\d_]*\Z|\S{1,80}\.(?:md|pdf|docx?|html?|txt|csv|pptx?|xlsx?)\b|https?://|\[\d", re.I)
"""Marks, numbers, names of files and addresses: where was searched."""
_SUBORDINATE = re.compile(
    r"(?:if|as|because|since|when|that|which|who|whose|whether|where|what|how|or|and|nor|such|ob|wie|wer|was|wann|wo|weil|"
    r"dass|welche\w*|oder|und|que|qui|quand|où|comment|si|ou|et|como|cuando|donde|cuándo|cuánto|quién|y|che|quando|dove|"
    r"quanto|chi|come|dat|hoe|waar|wanneer|wat|en|quem|onde|quanto)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 4
"""Fewest words of a sentence that claims something though its verb is not known: shorter ones are headings."""
_FIGURE = re.compile(r"\d")
_KNOWN = "I do not know"
"""Stands for the phrases of a suite."""
_REFUSES, _COURTESY, _CLAIMS, _PART = "refuses", "courtesy", "claims", "part"


class _Patterns(NamedTuple):
    hints: re.Pattern[str]
    refuses: re.Pattern[str]
    courtesy: re.Pattern[str]
    about: re.Pattern[str]
    claims: re.Pattern[str]


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    languages = parsed_toml((files("rag_harness.words") / "abstention.toml").read_text("utf-8")).values()

    def any_of(field: str) -> re.Pattern[str]:
        phrases = [
            phrase.replace("{docs}", each["docs"]).replace("{info}", each["info"])
            for each in languages
            for phrase in ([each[field]] if isinstance(each[field], str) else each[field])
        ]
        return re.compile("|".join(f"(?<![\\w'])(?:{phrase})" for phrase in phrases), re.IGNORECASE)

    def words(field: str) -> re.Pattern[str]:
        return re.compile(rf"(?:\b|(?=n't))(?:{'|'.join(each[field] for each in languages)})(?!\w)", re.IGNORECASE)

    return _Patterns(words("hints"), any_of("refuses"), any_of("courtesy"), any_of("about"), words("claims"))


@lru_cache(maxsize=4)
def _own(phrases: tuple[str, ...]) -> re.Pattern[str]:
    said = "|".join(r"\s+".join(map(re.escape, without_emphasis(phrase).split())) for phrase in phrases)
    return re.compile(rf"(?<!\w)(?:{said})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def declines(answer: str, own: tuple[str, ...] = ()) -> bool:
    """Return whether an answer says that it has no answer, and claims nothing beside that.

    ``own`` are phrases that say so besides those that are known.
    """
    if len(answer) > _LONGEST:
        return False
    text, patterns = _read(answer, own), _patterns()
    if patterns.hints.search(text) is None or patterns.refuses.search(text) is None:
        return False
    kinds = _all_kinds(text)
    return _REFUSES in kinds and _CLAIMS not in kinds


@lru_cache(maxsize=4096)
def evades(answer: str) -> bool:
    """Return whether an answer declines, or is short, apologises, and claims nothing beside that."""
    if len(answer) > _LONGEST_EVASION or _APOLOGY.search(answer) is None:
        return declines(answer)
    return not _all_kinds(_read(answer)) & {_CLAIMS, _PART}


def _read(answer: str, own: tuple[str, ...] = ()) -> str:
    text = _NUMBERED.sub(" ", _QUOTED.sub('""', without_emphasis(CITATION.sub(" ", answer))))
    return _own(own).sub(_KNOWN, text) if own else text


def _all_kinds(text: str) -> set[str]:
    return {kind for sentence in _SENTENCE.split(text.strip()) for kind in _kinds(sentence)}


def _kinds(sentence: str) -> set[str]:
    """Return what the clauses of a sentence do."""
    item = _ITEM.match(sentence.strip())
    bare = sentence.strip()[item.end() :] if item else sentence.strip()
    kinds = {_kind(clause.strip()) for clause in _CLAUSE.split(bare)}
    # A sentence without anything of that claims, whatever its verb; an item of a list may be the name of a source.
    is_short = len(bare.split()) < _FEWEST_WORDS
    return {_CLAIMS} if kinds == {_PART} and not item and not is_short and not bare.endswith(":") else kinds


def _kind(clause: str) -> str:
    patterns = _patterns()
    if clause.endswith("?") or _NO_CLAIM.match(clause):
        return _COURTESY
    if patterns.refuses.search(clause):
        return _REFUSES
    if patterns.courtesy.search(clause):
        return _COURTESY
    has_figure, is_contrasted = _FIGURE.search(clause), _CONTRASTED.match(clause)
    if patterns.about.search(clause) and not has_figure and not is_contrasted:
        return _COURTESY
    if has_figure or (is_contrasted and len(clause.split()) >= _FEWEST_WORDS):
        return _CLAIMS
    return _CLAIMS if patterns.claims.search(clause) and not _SUBORDINATE.match(clause) else _PART
