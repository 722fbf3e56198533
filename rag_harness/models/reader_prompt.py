"""Prompts as the baseline reader parses them: sources and their versions, units of text, question and languages."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from rag_harness.core.text.comparison import readable_text
from rag_harness.core.text.language_detection import spoken, told
from rag_harness.core.text.languages import ENGLISH, LANGUAGES
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import answer_kind, figures, kind_words, says_unknown, term, terms, tokens

# Reading is bounded. Retrieval puts a few kB into a prompt, so the limits never cut a real RAG prompt.
MAX_CONTEXT_CHARS = 200_000
MAX_QUESTION_CHARS = 4_000
MAX_SOURCES = 200

_LABELLED = re.compile(r"^\[Source (\d{1,4}): ?([^\]\n]*)\]", re.M)
_BARE = re.compile(r"^\[Source (\d{1,4})\]", re.M)
_QUESTION = "Question: "


@dataclass(frozen=True, slots=True)
class PromptSource:
    """One numbered source of the context. ``label`` is the text after its number; it begins with the filename."""

    number: int
    label: str
    text: str

    @property
    def filename(self) -> str:
        """The first word of the label, which is the filename."""
        return self.label.split()[0].rstrip(",;") if self.label.split() else f"source {self.number}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The content of a chat request. ``sources`` is empty without retrieval."""

    question: str
    sources: tuple[PromptSource, ...] = ()


def content_text(content: Any) -> str:
    """Return a message's text. Its content is a string or a list of parts, as in OpenAI's API."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def role_text(messages: Sequence[Mapping[str, Any]], *roles: str) -> str:
    """Return the last message of one of ``roles``, or nothing."""
    found = [content_text(message.get("content")) for message in messages if message.get("role") in roles]
    return found[-1] if found else ""


def parse_prompt(messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """Split the last user message into its sources and its question."""
    text = readable_text(role_text(messages, "user").replace("\r\n", "\n")).text
    # The last marker counts: a chunk may contain "Question:", and the pipeline writes the real one at the end.
    context, marker, question = text.rpartition(f"\n\n{_QUESTION}")
    if not marker:
        context, question = ("", text.removeprefix(_QUESTION)) if not text.startswith("Context:") else (text, "")
    return Prompt(_clip(question.strip()), _sources(context[:MAX_CONTEXT_CHARS]))


def _clip(question: str) -> str:
    half = MAX_QUESTION_CHARS // 2
    return question if len(question) <= 2 * half else f"{question[:half]} {question[-half:]}"


def _sources(context: str) -> tuple[PromptSource, ...]:
    heads = _consecutive(_LABELLED, context) or _consecutive(_BARE, context)
    ends = [*(head.start() for head in heads), len(context)][1:]
    return tuple(
        PromptSource(number, head[2].strip() if head.re is _LABELLED else "", context[head.end() : end].strip())
        for number, (head, end) in enumerate(zip(heads, ends, strict=True), start=1)
    )


def _consecutive(pattern: re.Pattern[str], context: str) -> list[re.Match[str]]:
    """Return the matches numbered 1, 2, 3, … in order, so that a "[Source 9]" in a chunk begins no source."""
    heads: list[re.Match[str]] = []
    for match in pattern.finditer(context):
        if int(match[1]) == len(heads) + 1 <= MAX_SOURCES:
            heads.append(match)
    return heads


MAX_UNITS = 3_000
LONGEST = 600
"""Characters of a unit; a longer one is divided."""

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---(?:\n|\Z)", re.S)
_FENCE = re.compile(r"```+|~~~+")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_BREAK = re.compile(r"<br ?/?>", re.I)
_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
# Citations inside a chunk must not get into an answer.
_CITATION = re.compile(r"\[Source \d+[^\]\[\n]{0,200}\]")

_ALL_ENGLISH: Mapping[int, str] = {}
LineGroup = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Unit:
    """A quotable piece of source ``source``. ``above`` is its frame: label, headings, lead-in or FAQ question."""

    source: int
    text: str
    above: tuple[str, ...]
    language: str = ENGLISH


def split_sources(sources: tuple[PromptSource, ...], languages: Mapping[int, str] = _ALL_ENGLISH) -> list[Unit]:
    """Return the units of all sources in order, an equal share of MAX_UNITS from each; ``languages`` is by number."""
    share = MAX_UNITS // max(1, len(sources)) + 1
    return [unit for source in sources for unit in _units(source, languages.get(source.number, ENGLISH), share)]


def _units(source: PromptSource, language: str, most: int) -> Iterator[Unit]:
    # More are read than are asked for, up to the next power of two: so it hangs less on how many sources there are.
    for text, frame in _framed(source.text, language, 1 << most.bit_length())[:most]:
        yield Unit(source.number, text, (source.label, *frame), language)


@lru_cache(maxsize=1024)
def _framed(text: str, language: str, most: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the first ``most`` units of a text, and headings and lead-in of each. Many prompts have the same chunk."""
    return tuple(islice(_read(text, language), most))


def _read(source: str, language: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    headings: list[tuple[int, str]] = []
    lead, led = "", ""
    for kind, lines in _blocks(_FRONT_MATTER.sub("", source)):
        if kind == "heading":
            headings, lead, led = _nest(headings, lines[0]), "", ""
            continue
        # A lead-in introduces one list or one table, not the table after the list.
        if kind == "text" or led not in ("", kind):
            lead = ""
        led = "" if kind == "text" else kind
        for text in _pieces(kind, lines, language):
            # A question or "as follows:" answers nothing. It introduces the next lines.
            if text.endswith(("?", ":")) and kind != "table":
                lead = text
                continue
            # As a quote, "I don't know" would make the answer decline. A question and the text after it are not quoted.
            if says_unknown(f"{lead} {text}" if lead.endswith(":") else text):
                continue
            yield text, (*(title for _, title in headings), lead)


def _nest(headings: list[tuple[int, str]], line: str) -> list[tuple[int, str]]:
    match = _HEADING.match(line)
    level, title = (len(match[1]), match[2]) if match else (6, line)
    return [*((above, text) for above, text in headings if above < level), (level, plain_text(title))]


def _blocks(text: str) -> Iterator[LineGroup]:
    """Group lines into headings, tables, list items and paragraphs. Fenced code and comments are left out."""
    kind, lines, fence = "", list[str](), ""
    for line in map(str.strip, text.splitlines()):
        opened = _FENCE.match(line)
        if fence or opened:
            fence = "" if fence and line.startswith(fence) else fence or (opened[0] if opened else "")
            new = ""
        else:
            new = _kind(line)
        joins = new == kind in ("table", "text") or (new == "text" and kind == "item")
        if not joins:
            if lines:
                yield kind, lines
            kind, lines = new, []
        if new:
            lines.append(line.lstrip("> "))
    if lines:
        yield kind, lines


def _kind(line: str) -> str:
    line = line.lstrip("> ")
    if not line or line.startswith("<!--") or (_is_rule(line) and "|" not in line):
        return ""
    if line.startswith("|"):
        return "table"
    if _HEADING.match(line):
        return "heading"
    return "item" if _ITEM.match(line) else "text"


def _is_rule(line: str) -> bool:
    return "-" in line and not line.strip("|:- ")


def _pieces(kind: str, lines: list[str], language: str) -> Iterator[str]:
    if kind == "table":
        found = _rows(lines)
    elif kind == "item":
        found = iter([plain_text(_ITEM.sub("", " ".join(lines), count=1))])
    else:
        found = iter(sentence_texts(plain_text(" ".join(lines)), language))
    for text in filter(None, found):
        yield from [text] if len(text) <= LONGEST else textwrap.wrap(text, LONGEST)


def _rows(lines: list[str]) -> Iterator[str]:
    """Write each row as "Header: cell; Header: cell", so that it is clear without its table."""
    has_header = len(lines) > 1 and _is_rule(lines[1])
    header = _cells(lines[0]) if has_header else []
    for line in lines[2:] if has_header else lines:
        cells = _cells(line)
        names = header if len(header) == len(cells) else [""] * len(cells)
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True) if cell)


def _cells(line: str) -> list[str]:
    return [
        plain_text(cell.replace("\\|", "|")) for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    ]


def plain_text(text: str) -> str:
    """Return ``text`` on one line without emphasis, code marks, line breaks, link targets and citations."""
    text = _LINK.sub(r"\1", _CITATION.sub("", _BREAK.sub(" ", text)))
    return " ".join(text.replace("**", "").replace("__", "").replace("`", "").split())


# Two units are about one thing when most words of the shorter one are in the other. With half, "express costs …" would
# match "standard costs …". With all, a reworded sentence would be missed.
SAME_THING = 0.6

_MARK = re.compile(
    r"[-_. ](?:v(?P<v>\d{1,3})|(?P<year>(?:19|20)\d\d)(?:-\d\d){0,2}|(?P<old>old|archived?|legacy))$", re.I
)
_OUTDATED = r"superseded|no longer (?:applies|applicable|valid|in force|current)|outdated|out of date|archived|obsolete"
_THING = r"(?:page|policy|version|document|article|guide|edition|list|table|schedule|notice|offer)"
_STALE = re.compile(
    rf"^[ >*_#!-]{{0,20}}(?:(?:note|status|important|warning)\W{{1,5}})?(?:{_OUTDATED}|previous version|old version)\b"
    rf"|^# [^\n]{{0,200}}\b(?:{_OUTDATED}|previous version|old version)\b"
    rf"|\bthis (?:\w{{1,30}} ){{0,3}}{_THING}\b[^.\n]{{0,80}}\b(?:{_OUTDATED}|previous version|older version)\b"
    rf"|\bthis is (?:a|an|the) (?:{_OUTDATED}|previous|older?|earlier)\b"
    r"|\b(?:effective|valid|in force) until\b",
    re.I | re.M,
)
_REPLACING = re.compile(r"\b(?:supersedes|replaces|replaced the)\b", re.I)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<{{}}>{'|'.join(_MONTHS)})[a-z]*\.?"
_EFFECTIVE = re.compile(
    r"\b(?:effective|applies|valid|in force)(?:[ _]date)?(?: as of| from| since| on)?[*:\s]{1,6}(?:"
    rf"(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)|(?P<d2>\d{{1,2}}) {_MONTH.format('m2')} (?P<y2>\d{{4}})"
    rf"|{_MONTH.format('m3')} (?:(?P<d3>\d{{1,2}}),? )?(?P<y3>\d{{4}})|(?P<y4>\d{{4}})\b)",
    re.I,
)
_HISTORY = re.compile(
    r"\b(?:(?:19|20)\d\d|v\d+|previous(?:ly)?|former(?:ly)?|older?|superseded|used to|history)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Version:
    """The version that a document states of itself; ``mark`` is the year or number in its filename."""

    family: str
    mark: int | None
    superseded: bool
    effective: tuple[int, int, int] | None

    def supersedes(self, other: Version) -> bool:
        """Return whether this version is newer than ``other``. Without any sign, neither is."""
        if self.superseded != other.superseded:
            return other.superseded
        if self.family != other.family:
            return False
        if self.effective and other.effective and self.effective != other.effective:
            return self.effective > other.effective
        return _newer(self.mark, other.mark)


def _newer(mark: int | None, other: int | None) -> bool:
    """Return whether ``mark`` is newer. A page without a mark is the current one: old copies get a year or "-v1"."""
    if mark is None or other is None:
        return mark is None and other is not None
    return mark > other


def asks_for_history(question: str) -> bool:
    """Return whether the question is about an old version. Then the current one must not be preferred."""
    return bool(_HISTORY.search(question))


def versions(sources: Iterable[PromptSource]) -> dict[int, Version]:
    """Return each source's version by number. All chunks of a file share their signs."""
    texts: dict[str, list[str]] = defaultdict(list)
    numbers: dict[int, str] = {}
    for source in sources:
        texts[source.filename].append(source.text)
        numbers[source.number] = source.filename
    judged = {name: _version(name, "\n".join(parts)) for name, parts in texts.items()}
    return {number: judged[name] for number, name in numbers.items()}


@lru_cache(maxsize=512)
def _version(filename: str, text: str) -> Version:
    stem = re.sub(r"\.\w{1,8}$", "", filename.lower())
    match = _MARK.search(stem)
    mark = int(match["v"] or match["year"] or 0) if match else None
    dates = map(_date, _EFFECTIVE.finditer(text))
    return Version(stem[: match.start()] if match else stem, mark, _is_stale(text), max(dates, default=None))


def _is_stale(text: str) -> bool:
    # "This page replaces the previous version" is about the other page.
    return any(not _REPLACING.search(found[0]) for found in _STALE.finditer(text))


def _date(found: re.Match[str]) -> tuple[int, int, int]:
    parts = (("y", "1234"), ("m", "123"), ("d", "123"))
    year, month, day = (next((found[part + i] for i in ways if found[part + i]), "1") for part, ways in parts)
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    return int(year), number, int(day)


def same_thing(first: Unit, second: Unit) -> bool:
    """Return whether two units of different sources differ in little more than their figures."""
    if first.source == second.source or figures(first.text) == figures(second.text):
        return False
    ours, theirs = (
        frozenset(word for word in terms(unit.text, unit.language) if not word[0].isdigit()) for unit in (first, second)
    )
    return bool(ours and theirs) and len(ours & theirs) / min(len(ours), len(theirs)) >= SAME_THING


@dataclass(frozen=True, slots=True)
class PromptLanguages:
    """The language of the question, and the language of each source by its number."""

    question: str
    sources: Mapping[int, str]


def languages_in(prompt: Prompt) -> PromptLanguages:
    """Return the languages. A source too short to tell has that of most others, and so has such a question."""
    found = {source.number: told(source.text) for source in prompt.sources}
    known = [language for language, _ in Counter(filter(None, found.values())).most_common()]
    among = tuple(dict.fromkeys((*known, ENGLISH, *LANGUAGES)))
    return PromptLanguages(
        spoken(prompt.question, among), {number: language or among[0] for number, language in found.items()}
    )


MAX_TERMS = 48  # a longer "question" is a pasted text
BOOSTS = {"code": 2.0, "number": 1.5, "name": 1.5}  # "HK-204" or "Norway" says more about the topic than "order"

_CAPITAL_NOUNS = "de"
"""In German every noun has a capital, which makes no name of it."""
STORY_WEIGHT = 0.5
"""Weight of a word of the story. In "I bought a lamp in May. Can I return it?" the story names the thing.

Best of 0, 0.25, 0.5 and 1 on the development half of ``benchmarks/reader_calibration.py`` (AUC 0.67, 0.69, 0.70,
0.69).
"""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The content terms of a question with their original words, their boosts, and the kind of token it asks for.

    ``story``: terms that are only in sentences without a question mark, if another sentence has one.
    """

    words: Mapping[str, str]
    boosts: Mapping[str, float]
    story: frozenset[str] = frozenset()
    kind: str = ""
    pattern: re.Pattern[str] | None = None

    @property
    def terms(self) -> frozenset[str]:
        """The terms in the form in which they are compared."""
        return frozenset(self.words)


def read_question(text: str, language: str = ENGLISH) -> QuestionTerms:
    """Return the terms of a question, at most MAX_TERMS: first those of its asking sentences, then of the story."""
    asked, story = _told_apart(" ".join(text.split()), language)
    kind, pattern = answer_kind(asked, language)
    # "What is the fee?" has no other word, so here the word for the kind is the topic.
    words = _words(asked, kind_words(kind, language), language) or _words(asked, frozenset(), language)
    around = {key: (word, STORY_WEIGHT * boost) for key, (word, boost) in _words(story, words.keys(), language).items()}
    both = dict([*words.items(), *around.items()][:MAX_TERMS])
    return QuestionTerms(
        words={key: word for key, (word, _) in both.items()},
        boosts={key: boost for key, (_, boost) in both.items()},
        story=frozenset(both.keys() & around.keys()),
        kind=kind,
        pattern=pattern,
    )


def _told_apart(text: str, language: str) -> tuple[str, str]:
    """Return the sentences that ask and those of the story. Without a question mark, all sentences ask."""
    asked: list[str] = []
    told: list[str] = []
    for sentence in sentence_texts(text, language):
        (asked if sentence.rstrip("\"'”’) ").endswith("?") else told).append(sentence)
    return (" ".join(asked), " ".join(told)) if terms(" ".join(asked), language) else (text, "")


def _words(text: str, left_out: Collection[str], language: str) -> dict[str, tuple[str, float]]:
    words: dict[str, tuple[str, float]] = {}
    for position, token in enumerate(tokens(text)):
        key = term(token, language)
        if key and token.lower() not in left_out and key not in left_out and len(words) < MAX_TERMS:
            words.setdefault(key, (token, BOOSTS.get(_token_kind(token, position, language), 1.0)))
    return words


def _token_kind(token: str, position: int, language: str) -> str:
    if any(character.isdigit() for character in token):
        return "number" if token[0].isdigit() else "code"
    is_name = position and token[0].isupper() and language != _CAPITAL_NOUNS
    return "name" if is_name else "word"
