"""Refusals: whether an answer declines, which means that it says it has no answer and claims nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from rag_harness.core.settings.profiles import parsed_toml
from rag_harness.core.text.comparison import without_emphasis
from rag_harness.core.text.memory import remembered
from rag_harness.core.text.terms import CITATION

# The whole answer is looked at, clause by clause. A clause refuses ("the documents do not mention a price"), or is a
# courtesy (an apology, an offer of help, what was searched), or claims something. An answer declines where a clause
# refuses and none claims: "I don't know why you ask, lamps can be returned within 45 days" is an answer.
#
# A clause refuses by words that it has together, in one language: a negation with a document and a verb of
# saying, with the assistant and a verb of finding, with what is missing. ``abstention.toml`` has these words, and some
# phrases, in English and the six languages with rules. Three words do not tell their language, so those of all are
# looked for. ``benchmarks/refusals.py`` measures it.

_LONGEST = 4_000
"""Most characters of an answer that is read: a refusal is short, and nothing is read for ever."""
_LONGEST_EVASION = 300
_CODE = re.compile(r"`[^`\n]{0,300}`")
_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"")
"""Words of somebody else. Typographic quotes are compared as plain ones."""
_SOURCES = re.compile(
    r"(?:^|\n)\W{0,9}(?:sources?|references?|documents?|quellen|(?:geprüfte |verwendete )?(?:unterlagen|dokumente)|"
    r"références|documents consultés|fuentes|referencias|fonti|riferimenti|bronnen|geraadpleegde?|fontes|referências)"
    r"(?: \w{1,40})?[^\w\n]*(?::|\n|$)[\s\S]*",
    re.IGNORECASE,
)
"""A list of sources, up to the end."""
_SENTENCE = re.compile(r";\s+|(?<=[.!?…])[\"')\]]*\s+|\n+|(?<=[\w)\]\"])\s?:\s+")
_SPLITS = r"(?:but|however|though|although|mais|cependant|pero|aunque|sino|ma non|però|bensì|maar|mas|porém)"
"""Words that begin a clause. In German a comma does, and "aber" also stands within one."""
_CLAUSE = re.compile(rf"[,()]\s+|\s-+\s|\s(?={_SPLITS}\s)", re.IGNORECASE)
_NUMBERED = re.compile(r"\[\d[\d\s,;-]*\]|[{}]")
"""Numbers of sources, and brackets of JSON."""
_LABEL = re.compile(
    r"(?=\S{4,60} \d)\S{0,40}(?:quelle|source|report|chapter|passage|textstelle|extract|excerpt|extrait|chapitre|"
    r"cap[ií]tulos?|section|sección|"
    r"seção|abschnitt|kapitel|hoofdstuk|seite|page|pagina|página|table|tabelle|tema|study|clause|part|teil|document|"
    r"dokument)\w{0,9}\.? \d{1,9}[\d.,–-]{0,9}|\bq[1-4]\b",
    re.IGNORECASE,
)
"""A figure that names a part of a document. It asks for a figure first: each name is tried at forty places."""
_YEAR = re.compile(r"(?<![€$£\d.,])(?:1[5-9]|20)\d\d(?![\d%€]| ?(?:euros?|dollars?|people|kg|m|km)\b)")
"""A figure that may be a year: documents are about years, and amounts are claims."""
_PHONE = re.compile(
    r"\+?\d(?:[\s/().-]?\d){6,20}|24/7|24 h|"
    r"(?:call|dial|ring|llam\w{1,9}|appel\w{1,9}|ruf\w{0,9}|wähl\w{1,9}|bel|chiam\w{1,9}|lig\w{1,9})\b.{0,12}\b\d{3}\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:\d{1,3}[.)]|[-*>#•|]+)\s+")
"""The mark of an item of a list, or of a heading."""
_NO_CLAIM = re.compile(
    r"[^\w€$£%]*(?:\d{1,2}[^\w€$£%]*)?\Z|\S{1,80}\.(?:md|pdf|docx?|html?|txt|csv|pptx?|xlsx?)\b|https?://|\[\d", re.I
)
"""Marks, numbers, names of files and addresses: where was searched."""
_FEWEST_WORDS = 4
"""Fewest words of a sentence that claims something though its verb is not known: shorter ones are headings."""
_HEADING_WORDS = 6
"""Most words of "No information on …" without a verb."""
_FIGURE = re.compile(r"\d")
_KNOWN = "I do not know"
"""Means the phrases of a suite."""
_REFUSES, _COURTESY, _CLAIMS, _PART = "refuses", "courtesy", "claims", "part"


class _Pattern:
    """A pattern that is compiled when a text is first looked at for it: most answers need nine of 130."""

    search: Callable[[str], re.Match[str] | None]
    match: Callable[[str], re.Match[str] | None]

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Callable[[str], re.Match[str] | None]:
        if name not in ("search", "match"):
            raise AttributeError(name)
        compiled = re.compile(self._pattern, re.IGNORECASE)
        self.search, self.match = compiled.search, compiled.match
        return compiled.search if name == "search" else compiled.match


class _Words(NamedTuple):
    """The words of a language, as patterns."""

    hint: _Pattern
    negation: _Pattern
    assistant: _Pattern
    unable: _Pattern
    finding: _Pattern
    having: _Pattern
    reporting: _Pattern
    containing: _Pattern
    documents: _Pattern
    norms: _Pattern
    information: _Pattern
    insufficient: _Pattern
    describing: _Pattern
    only: _Pattern
    is_not_reported: _Pattern
    documents_do: _Pattern
    no_information: _Pattern
    information_not: _Pattern

    def has_refusal(self, clause: str, refers_back: bool) -> bool:
        """Return whether words that a clause has together refuse."""
        documents = self.documents.search(clause)
        if self.insufficient.search(clause) and (documents or self.information.search(clause)):
            return True
        negation = self.negation.search(clause)
        if negation is None or self._is_of_others(clause, negation.start()):
            return False
        reports = self.reporting.search(clause)
        says = reports or self.containing.search(clause)
        return bool(
            self.is_not_reported.search(clause)
            or (self.assistant.search(clause) and self.finding.search(clause))
            or (says and (documents or refers_back))
            or self.unable.search(clause)
            or (reports and self.norms.search(clause))
            or self._has_no_information(clause, documents is not None)
        )

    def _is_of_others(self, clause: str, negation: int) -> bool:
        """Return whether a condition is negated, or what somebody or a document says."""
        condition, reported = _grammar().condition.search(clause), _grammar().speech.search(clause)
        if condition is not None and condition.start() < negation:
            return True
        if reported is None:
            return False
        return reported.start() < negation and self.assistant.search(clause[: reported.start()]) is None

    def _has_no_information(self, clause: str, has_documents: bool) -> bool:
        is_short = len(clause.split()) <= _HEADING_WORDS
        if self.no_information.search(clause) and (is_short or has_documents or self.having.search(clause)):
            return True
        return self.information_not.search(clause) is not None

    def names_documents(self, text: str) -> bool:
        """Return whether a text speaks of documents or of rules."""
        return self.documents.search(text) is not None or self.norms.search(text) is not None

    def is_about_documents(self, clause: str) -> bool:
        """Return whether a clause says what the documents are about."""
        has_documents = self.documents.search(clause) is not None
        is_only = self.only.search(clause) is not None
        if has_documents and is_only:
            return True
        grammar = _grammar()
        if grammar.that.search(clause):
            return False
        does = self.documents_do.match(clause) and not (grammar.advice.search(clause) or grammar.being.search(clause))
        refers_back = is_only and grammar.reference.match(clause)
        return bool(does or (self.describing.search(clause) and (has_documents or refers_back)))


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, Any]:
    return parsed_toml((files("rag_harness.core.text") / "abstention.toml").read_text("utf-8"))


class _Grammar(NamedTuple):
    """Words that separate the parts of a sentence, of all languages together: no two take one for another."""

    apology: _Pattern
    contrast: _Pattern
    but_not: _Pattern
    concession: _Pattern
    condition: _Pattern
    meaning: _Pattern
    speech: _Pattern
    advice: _Pattern
    being: _Pattern
    that: _Pattern
    offer: _Pattern
    reference: _Pattern
    place: _Pattern
    according: _Pattern
    subordinate: _Pattern


@lru_cache(maxsize=1)
def _grammar() -> _Grammar:
    return _Grammar(**{name: _whole("|".join(words)) for name, words in _tables()["clauses"].items()})


class _Patterns(NamedTuple):
    languages: tuple[_Words, ...]
    refuses: _Pattern
    courtesy: _Pattern
    claims: _Pattern


def _any_of(phrases: Iterable[str]) -> _Pattern:
    return _bounded(rf"(?<![\w'])(?:{'|'.join(phrases)})")


def _whole(words: str) -> _Pattern:
    return _bounded(rf"(?<![\w'])(?:{words})(?!\w)")


def _bounded(pattern: str) -> _Pattern:
    """Return a pattern in which no word is longer than 40 letters: so it reads no text twice."""
    for many, few in ((r"\w*", r"\w{0,40}"), (r"\w+", r"\w{1,40}"), (r"\S+", r"\S{1,40}")):
        pattern = pattern.replace(many, few)
    return _Pattern(pattern)


def _filled(phrase: str, table: Mapping[str, str]) -> str:
    """Return a phrase with the words of ``{documents}`` and ``{information}``."""
    for name in ("documents", "information"):
        phrase = phrase.replace(f"{{{name}}}", f"(?:{table[name]})")
    return phrase


def _words(table: Mapping[str, str]) -> _Words:
    fields = {name: _whole(_filled(words, table)) for name, words in table.items() if name in _Words._fields}
    absence, information, negation = table["absence"], table["information"], table["negation"]
    says = f"{table['having']}|{table['reporting']}"
    near = r"(?: \S+){0,3}? "
    return _Words(
        **fields,
        hint=_whole(f"{negation}|{table['insufficient']}"),
        is_not_reported=_whole(
            rf"(?:{negation}){near}(?:{table['reporting']})|(?:{table['reporting']}){near}(?:{negation})"
        ),
        documents_do=_whole(rf"(?:\S+ ){{0,2}}?(?:{table['documents']}) \w+"),
        no_information=_whole(rf"(?:{absence})(?: \S+){{0,3}}? (?:{information})"),
        information_not=_whole(rf"(?:{information})(?: \S+){{0,4}}? (?:{negation})(?: \S+){{0,2}}? (?:{says})"),
    )


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    tables = [table for name, table in _tables().items() if name != "clauses"]

    def phrases(field: str) -> list[str]:
        return [_filled(phrase, each) for each in tables for phrase in each[field]]

    return _Patterns(
        languages=tuple(_words(table) for table in tables),
        refuses=_any_of(phrases("refuses")),
        courtesy=_any_of(phrases("courtesy")),
        claims=_bounded(rf"(?:\b|(?=n't))(?:{'|'.join(table['claims'] for table in tables)})(?!\w)"),
    )


@lru_cache(maxsize=4)
def _own(phrases: tuple[str, ...]) -> re.Pattern[str]:
    said = "|".join(r"\s+".join(map(re.escape, without_emphasis(phrase).split())) for phrase in phrases)
    return re.compile(rf"(?<!\w)(?:{said})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=4096)
@remembered
def declines(answer: str, own: tuple[str, ...] = ()) -> bool:
    """Return whether an answer says that it has no answer, and claims nothing beside that.

    ``own`` are phrases that say so besides those that are known.
    """
    if len(answer) > _LONGEST:
        return False
    text = _read(answer, own)
    languages = _languages(text)
    if not languages and _patterns().refuses.search(text) is None:
        return False
    kinds = _Clauses(text, languages).kinds()
    return _REFUSES in kinds and _CLAIMS not in kinds


@lru_cache(maxsize=4096)
def evades(answer: str) -> bool:
    """Return whether an answer declines, or is short, apologises, and claims nothing beside that."""
    if len(answer) > _LONGEST_EVASION or _grammar().apology.search(answer) is None:
        return declines(answer)
    text = _read(answer)
    return not _Clauses(text, _patterns().languages).kinds() & {_CLAIMS, _PART}


def _read(answer: str, own: tuple[str, ...] = ()) -> str:
    plain = without_emphasis(CITATION.sub(" ", _CODE.sub('""', answer)))
    text = _NUMBERED.sub(" ", _QUOTED.sub('""', plain))
    text = _SOURCES.sub("", text) or text
    return _own(own).sub(_KNOWN, text) if own else text


def _languages(text: str) -> tuple[_Words, ...]:
    """Return the languages that a text negates in: of the others no word is looked for."""
    return tuple(words for words in _patterns().languages if words.hint.search(text))


class _Clauses(NamedTuple):
    """The clauses of an answer, and their kinds."""

    text: str
    languages: tuple[_Words, ...]

    def kinds(self) -> set[str]:
        """Return the kinds of the clauses, up to the first sentence that claims something."""
        kinds: set[str] = set()
        previous = ""
        for sentence in _SENTENCE.split(self.text.strip()):
            kinds |= self._of_sentence(sentence, previous)
            if _CLAIMS in kinds:
                break
            previous = sentence
        return kinds

    def _of_sentence(self, sentence: str, previous: str) -> set[str]:
        item = _ITEM.match(sentence.strip())
        bare = sentence.strip()[item.end() :] if item else sentence.strip()
        clauses = [clause.strip() for clause in _CLAUSE.split(bare) if clause.strip(" .")]
        each = []
        for place, clause in enumerate(clauses):
            concedes = place == 0 and _grammar().concession.match(clause)
            each.append(_PART if concedes else self._of_clause(clause, " ".join([previous, *clauses[:place]])))
        kinds = set(each)
        if each[-1:] == [_REFUSES] and each[0] != _REFUSES and self._is_about(clauses[0]) and not _has_amount(bare):
            return {_REFUSES}
        if _grammar().offer.match(bare) and not _FIGURE.search(" ".join(clauses[1:])):
            return kinds - {_CLAIMS}
        # A sentence without anything of that claims, whatever its verb; an item of a list may be the name of a source.
        is_short = len(bare.split()) < _FEWEST_WORDS
        return {_CLAIMS} if kinds == {_PART} and not item and not is_short and not bare.endswith(":") else kinds

    def _of_clause(self, clause: str, before: str) -> str:
        if clause.endswith("?") or _NO_CLAIM.match(clause):
            return _COURTESY
        if _grammar().meaning.search(clause):
            return _CLAIMS
        if self._refuses(clause, before):
            return _REFUSES
        if self._is_courtesy(clause):
            return _COURTESY
        return _CLAIMS if _claims(clause) else _PART

    def _is_about(self, clause: str) -> bool:
        return any(words.is_about_documents(clause) for words in self.languages) and not _grammar().according.search(
            clause
        )

    def _is_courtesy(self, clause: str) -> bool:
        is_about = self._is_about(clause)
        if is_about and any(words.only.search(clause) for words in self.languages):
            return True
        contrasts = _contrasts(clause)
        if not contrasts and (is_about or _is_passage(clause)) and not _has_amount(clause):
            return True
        if _has_figure(clause):
            return False
        is_courtesy = _patterns().courtesy.search(clause) is not None
        return is_courtesy and not (_grammar().according.search(clause) and (contrasts or _has_verb(clause)))

    def _refuses(self, clause: str, before: str) -> bool:
        if _grammar().concession.match(clause):
            return False
        if _patterns().refuses.search(clause):
            return True
        if _grammar().but_not.match(clause) and any(words.names_documents(before) for words in self.languages):
            return True
        refers_back = _grammar().reference.match(clause) or _grammar().contrast.match(clause)
        return any(
            words.has_refusal(clause, refers_back is not None and words.names_documents(before))
            for words in self.languages
        )


def _claims(clause: str) -> bool:
    if _has_figure(clause) or (_contrasts(clause) and len(clause.split()) >= _FEWEST_WORDS):
        return True
    return _has_verb(clause)


def _has_verb(clause: str) -> bool:
    return _patterns().claims.search(clause) is not None and not _grammar().subordinate.match(clause)


def _has_figure(clause: str) -> bool:
    return _FIGURE.search(_LABEL.sub(" ", clause)) is not None and _PHONE.search(clause) is None


def _has_amount(text: str) -> bool:
    """Return whether a text has a figure other than a year. Years do not count: they describe what documents cover."""
    return _has_figure(_YEAR.sub(" ", text))


def _contrasts(clause: str) -> bool:
    return (_grammar().contrast.match(clause) or _grammar().concession.match(clause)) is not None


def _is_passage(clause: str) -> bool:
    return _grammar().place.match(clause) is not None and not (
        _grammar().that.search(clause) or _grammar().advice.search(clause)
    )
