"""Facts of sentences: quotable passages, and the conditions, properties and quantities that they state."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from rag_harness.authoring.questions.english import (
    ASKED_OF,
    POINTING,
    THIRD,
    Clause,
    FactParts,
    asked_by_reader,
    can_be_asked,
    clause,
    does,
    lower_first,
    tells_apart,
    tells_to_do,
    word_set,
)
from rag_harness.core.text.sentences import sentence_spans
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Document
from rag_harness.retrieval.chunking.markdown import HeadingSection, MarkdownBlock, read_sections

# Splits a document into sentences and table rows, each with its place, so that a quote is verbatim.

LONGEST_PASSAGE = 500
"""The most characters of a passage that is searched for facts. A longer one is not a sentence."""

_REFERENCE = re.compile(r"!?\[([^\[\]]{0,300})\](?:\([^()\s]{0,500}(?:\s\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,300}\])")
_MARKS = re.compile(r"<(?!https?:)[^<>]{1,200}>|\{[^{}]{0,200}\}|\[\^[\w-]{1,40}\]|\(\d{1,2}\)!?$")
_EMPHASIS = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<![\w_])_(?=[^\W_])|(?<=[^\W_])_(?![\w_])")
_ITEM = re.compile(r"\s*(?:>\s?)*(?:(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?(?:>\s?)*")
_NUMBERED = re.compile(r"\s*\d{1,3}[.)] ")
_CELL = re.compile(r"(?<!\\)\|")
_SYNTAX = re.compile(r"!!!|\?\?\?|:::|===|---|^\s*#")


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """A sentence, a list item's sentence or a table row: ``document.text[start:end]`` is the quote.

    ``text`` is what a reader sees. For a row, ``names`` and ``cells`` are the header and the row, equally long.
    ``section`` are the headings above it, outermost first; ``item`` says whether it begins an item of a list.
    """

    start: int
    end: int
    text: str
    section: tuple[str, ...]
    item: bool = False
    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


def seen(markup: str) -> str:
    """Return what a reader sees of a line of Markdown: no link targets, emphasis, code marks, tags or attributes."""
    text = _REFERENCE.sub(r"\1", _REFERENCE.sub(r"\1", markup))
    text = _EMPHASIS.sub("", _MARKS.sub("", text.replace("`", "")).replace("\\", ""))
    return " ".join(text.split())


def passages(document: Document, sections: Sequence[HeadingSection] | None = None) -> Iterator[QuotablePassage]:
    """Yield the passages of a document in their order. Code and HTML are left out."""
    for section in read_sections(document.text) if sections is None else sections:
        path = tuple(map(seen, section.path))
        after_code = False
        for block in section.blocks:
            explains = after_code and _NUMBERED.match(document.text, block.start) is not None
            after_code = block.code or explains
            if explains:
                continue  # notes with numbers of code lines mean nothing without the code
            if block.header is not None:
                yield from _row(document.text, block, path)
            elif not block.code:
                yield from _sentences(document, block, path)


def _sentences(document: Document, block: MarkdownBlock, path: tuple[str, ...]) -> Iterator[QuotablePassage]:
    raw = document.text[block.start : block.end].rstrip()
    mark = _ITEM.match(raw)
    first = mark.end() if mark else 0
    if _SYNTAX.match(raw):
        return
    for number, (start, end) in enumerate(sentence_spans(raw, first, language=document.language, wrapped=True)):
        quote = raw[start:end]
        if len(quote) <= 2 * LONGEST_PASSAGE:
            is_item = number == 0 and bool(raw[:first].strip("> \t\n"))
            at = block.start + start
            yield QuotablePassage(at, at + len(quote), seen(quote), path, is_item)


def _row(text: str, block: MarkdownBlock, path: tuple[str, ...]) -> Iterator[QuotablePassage]:
    header = block.header
    if header is None:
        return
    names = _cells(text[header.start : header.end].split("\n", 1)[0])
    start = max(block.start, header.end) if block.start <= header.start else block.start
    quote = text[start : block.end].strip()
    cells = _cells(quote)
    if quote and "\n" not in quote and len(cells) == len(names) > 1 and len(quote) <= 2 * LONGEST_PASSAGE:
        at = text.index(quote, start)
        yield QuotablePassage(at, at + len(quote), " | ".join(cells), path, names=names, cells=cells)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(seen(cell.replace("\\|", "|")) for cell in _CELL.split(inner))


# Sentences that say what happens under a condition, and how something is done.

_CONDITION = re.compile(r"(if|when|whenever|once|as soon as|unless) ([^,;:]{6,140}), (?:then )?(\S[^\n]{8,300})$")
_CONDITION_BEHIND = re.compile(r"([^,;:]{8,160}?) (if|when|unless|once) ([^,;:()—–]{6,120})\.$")
_PURPOSE = re.compile(r"(?:to|in order to) ([a-z][\w-]+ [^,;:]{4,120}), (\S[^\n]{8,300})$")
_WANTED = re.compile(r"(?:if|when) you(?:'d like| want| need| wish|'re looking)? to ([^,;:]{6,120}), (\S[^\n]{8,300})$")
_USED = re.compile(
    r"((?:use|call|pass|set|add|subclass|install|run|implement|press|enter|select|choose|open) [^,;:]{2,80}?)"
    r" to ([a-z]+ [^,;:]{5,140})\.$"
)
_BY = re.compile(r"you can(?: also)? ([a-z]+ [^,;:]{4,100}?) ((?:by [a-z]+ing|with|using|via|through) [^;]{4,160})\.$")
_NO_MAIN = re.compile(r"(?:or|and|but|then|though|that|which|who|where|as|not|so|because|for example|e\.g\.)\b", re.I)
_WISH = re.compile(r"you(?:'d| would)? (?:want|need|like|prefer|wish)\b", re.I)
_IF = re.compile(r"\b(?:if|when|because|rather than)\b")
_NO_OUTCOME = re.compile(
    r"\b(?:only|not|never)\b|n['’]t\b|\b(?:wonder|check|ask|asks|know|see|tell|tells|decide|decides|determines?|sure"
    r"|find out|say|controls?|unclear|matter|choose|chooses|let us know)$"
)
"""Expressions in "… if …" with which it means "whether" or "only if"."""
_ASKED_BY = (
    (re.compile(r"you (?:can|may|could|'re allowed)\b(?!['’]t| not)", re.I), "what can I do"),
    (re.compile(r"you (?:must|have to|need to|should|'ll need to)\b(?! not)", re.I), "what do I have to do"),
    (re.compile(r"you (?:get|receive|earn|pay|need|lose)\b", re.I), "what do I {0}"),
    (re.compile(r"you (?:can['’]t|cannot|may not|don['’]t)\b", re.I), "what happens"),
)


def wanted_purpose(text: str) -> FactParts:
    """Return the purpose of "if you want to …, do …"."""
    match = _WANTED.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) else None


def stated_condition(text: str) -> FactParts:
    """Return the condition of "if …, …"."""
    match = _CONDITION.match(text)
    if not match or not can_be_asked(match[2]) or POINTING.match(match[3]) or _NO_MAIN.match(match[3]):
        return None
    if len(terms(match[2])) < 2 or (match[1] == "if" and re.match(r"\w+ing\b", match[2])):
        return None
    asked = "what should I do" if _WISH.match(match[2]) else _asked_of(match[3])
    return "condition", match[3], {"when": match[1], "condition": match[2], "asked": asked}


def trailing_condition(text: str) -> FactParts:
    """Return the condition of "… if …"."""
    match = _CONDITION_BEHIND.match(text)
    if not match or not can_be_asked(match[3]) or POINTING.search(match[1]):
        return None
    if (
        clause(match[1]) is None
        or _NO_OUTCOME.search(match[1])
        or not (clause(match[3]) or match[3].startswith(("you ", "we ")))
    ):
        return None
    return "condition", match[1], {"when": match[2], "condition": match[3], "asked": _asked_of(match[1])}


def stated_purpose(text: str) -> FactParts:
    """Return the purpose of "to …, do …"."""
    match = _PURPOSE.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) else None


def stated_use(text: str) -> FactParts:
    """Return the purpose of "use … to …"."""
    match = _USED.match(text)
    if not match or not does(match[2]) or POINTING.search(match[1]) or _IF.search(f"{match[1]} {match[2]}"):
        return None
    return "purpose", match[1], {"purpose": match[2]}


def stated_means(text: str) -> FactParts:
    """Return the purpose of "you can … by …"."""
    match = _BY.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) and " to " not in match[1] else None


def _asked_of(main: str) -> str:
    """Return the question for a main clause: what to do, what one can do, what one gets, or what happens."""
    for pattern, asked in _ASKED_BY:
        if pattern.match(main):
            return asked.format(main.split()[1])
    return "what should I do" if tells_to_do(main) else "what happens"


# Sentences that say what a thing is, what it does, and what must not be done with it.

LEAST_SAID = 3
"""How many content words a yes-or-no question needs: "do I have to do anything" asks for nothing."""
_DEFINING = re.compile(r"(?:an? |one of |the (?:process|way|time|part|place|number|amount|name|share|sum|set) )")
_AFTER = {"default": "to", "depend": "on", "refer": "to", "lead": "to", "stand": "for"}
_SAYING = frozenset(("mean", "say", "tell", "show", "indicate", "suggest", "ensure", "require"))
_PLACE = re.compile(r"(?:to|in|on|at|for|with|from|by|as|of|how|into|over|out|up|per|when|only)\b")
_PERCEIVED = re.compile(r"(?:hear|see|notice|be|have|get|need|want|know|find)\b")
"""Verbs after which "may not" means that something is possible, not that it is forbidden."""
_HALF = re.compile(r"^(?:just|only|necessarily|yet|even|always)\b|\b(?:and|because)\b")


def stated_definition(text: str) -> FactParts:
    """Return the definition of a term."""
    found = clause(text)
    if found is None or found.auxiliary not in ("is", "are") or found.negated or not _DEFINING.match(found.rest):
        return None
    if (
        not tells_apart(found.subject)
        or len(found.subject.split()) > 5
        or len(found.rest.split()) < 5
        or found.subject.startswith(("the ", "you"))
    ):
        return None
    _, _, answer = text.partition(f" {found.auxiliary} ")
    return "definition", answer, {"term": found.subject, "be": found.auxiliary}


def stated_property(text: str) -> FactParts:
    """Return what a thing does, by its verb and object."""
    found = clause(text)
    if found is None or found.negated or found.auxiliary not in ("does", "do") or found.subject in ("you", "we"):
        return None
    verb, _, thing = found.rest.partition(" ")
    if verb in _AFTER:
        thing = thing.removeprefix(f"{_AFTER[verb]} ") if thing.startswith(f"{_AFTER[verb]} ") else ""
    if verb not in ASKED_OF or not _is_thing(thing, verb) or not tells_apart(found.subject):
        return None
    parts = re.split(r" (?=(?:when|if|unless|until) )", thing, maxsplit=1)
    when = parts[1] if len(parts) == 2 and can_be_asked(parts[1]) else ""
    asked = {"do": found.auxiliary, "subject": found.subject, "verb": verb, "after": _AFTER.get(verb, ""), "when": when}
    return "property", parts[0] if when else thing, asked


def _is_thing(thing: str, verb: str) -> bool:
    """Whether the words after a verb are its object, and mean something alone."""
    elsewhere = POINTING.search(thing) or _PLACE.match(thing) or (thing.startswith("that ") and verb not in _SAYING)
    return not elsewhere and len(thing.split()) > 1


def stated_permission(text: str) -> FactParts:
    """Return what cannot, must not or does not happen."""
    found = clause(text)
    if found is None or found.auxiliary in ("was", "were", "did", "had", "would") or not can_be_asked(found.rest):
        return None
    if found.auxiliary == "may" and _PERCEIVED.match(found.rest):
        return None
    if not found.negated or len(found.rest.split()) < 3 or _HALF.search(found.rest):
        return None
    if len(terms(found.asked)) < LEAST_SAID:
        return None
    return "permission", text, {"asked": found.asked, "subject": found.subject}


# Finds the question for a number in a clause: how long, how much, how many, until when.

_NUMBER = r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|fifteen|twenty|thirty|sixty)"
_TIME = (
    r"(?:(?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|seasons?))"
)
_DURATION = rf"{_NUMBER}(?: to {_NUMBER}|[–-]{_NUMBER})?[ -]{_TIME}"
_MONEY = r"(?:[€$£] ?\d[\d.,]*|\d[\d.,]* ?(?:€|euros?|dollars?|pounds?|EUR|USD|GBP|cents?))"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WHEN = rf"(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}}:\d{{2}}|\d{{4}}-\d\d-\d\d)"
_LAST = r"(?=$| (?:if|when|unless|after|before|from|of|by|in|at|on|for|to|with|per|because|once|as|during|without)\b)"
_MOST = r"(?:up to|at most|a maximum of|no more than)"

_ASKED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), asked)
    for pattern, asked in (
        (rf"^(?:take|last|stay) {_MOST} (?P<q>{_DURATION}){_LAST}", "how many {unit} at most"),
        (rf"^(?:take|last|stay) (?:about |only |at least )?(?P<q>{_DURATION}){_LAST}", "how many {unit}"),
        (rf"^cost (?:only |just |another )?(?P<q>{_MONEY}){_LAST}", "how much"),
        (rf" within (?P<q>{_DURATION}){_LAST}", "within how many {unit}"),
        (rf" every (?P<q>{_DURATION}){_LAST}", "how often"),
        (rf" for {_MOST} (?P<q>{_DURATION}){_LAST}", "for how many {unit} at most"),
        (rf" for (?:at least )?(?P<q>{_DURATION}){_LAST}", "for how many {unit}"),
        (rf" after (?P<q>{_DURATION}){_LAST}", "after how many {unit}"),
        (rf" until (?P<q>{_WHEN}){_LAST}", "until when"),
        (rf" by (?P<q>{_WHEN}){_LAST}", "by when"),
        (rf" from (?P<q>{_WHEN}){_LAST}", "from when"),
        (rf" since (?P<q>{_WHEN}){_LAST}", "since when"),
        (rf" (?:at|on) (?P<q>{_WHEN}){_LAST}", "when"),
        (rf" {_MOST} (?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun} at most"),
        (rf" (?:only |at least |exactly )?(?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun}"),
        (rf"^have (?:only |at least )?(?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun}"),
    )
)
_TIMES = word_set("second minute hour day night week month year")
_LONE = re.compile(rf"(?:about |only |{_MOST} |at least )?(?P<q>{_MONEY}|{_DURATION}|\d[\d.,]*(?: [a-z]+)?)$", re.I)
_OPEN = re.compile(
    r"\b(?:of|with|to|from|by|in|at|and|or|than|the|a|an|for|only|per|least|most|until|after|on|over|under|within|into"
    r"|about|as|between|next|last|first|another|is|are|be|within|these|those|any|all|exactly|through)$",
    re.I,
)


def stated_quantity(found: Clause) -> tuple[str, str, dict[str, str]] | None:
    """Return kind, answer and parts of the question for the number in a clause; None without a question."""
    if POINTING.search(found.rest) or "," in found.rest or len(found.rest.split()) > 20:
        return None
    lone = _LONE.match(found.rest)
    if lone and found.auxiliary in ("is", "are", "was"):
        how = "how much" if re.match(_MONEY, lone["q"]) else "what"
        return "quantity", lone["q"], {"asked": f"{how} {found.auxiliary} {found.subject}", "subject": found.subject}
    for pattern, asked in _ASKED:
        match = pattern.search(found.rest)
        if match:
            return _question(found, match, asked)
    return None


def _question(found: Clause, match: re.Match[str], asked: str) -> tuple[str, str, dict[str, str]] | None:
    before, after = found.rest[: match.start()].strip(), found.rest[match.end() :].strip()
    if not before:
        before = match[0].split()[0]
    if _OPEN.search(before) or re.search(r"\d|\b(?:and|does|do|is|are)\b", f"{before} {after}"):
        return None
    if match.groupdict().get("noun") in THIRD:
        return None
    unit = match["q"].split()[-1].split("-")[-1]
    words = {"unit": unit if unit.endswith("s") else f"{unit}s", "noun": match.groupdict().get("noun") or ""}
    front = asked.format(**words)
    if after.startswith(("of ", "to ")) or (unit.rstrip("s") in _TIMES and after.startswith(("after ", "before "))):
        front, after = f"{front} {after}", ""
    said = f"{front} {found.auxiliary} {found.subject} {before} {after}".strip()
    return "quantity", match["q"], {"asked": said, "subject": found.subject}


StatedFact = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and statement: see ``facts.Fact``."""
FEWEST_SENTENCE_WORDS, MOST_SENTENCE_WORDS = 5, 45
"""The fewest and the most words of a sentence that is read."""
_CONTEXT = re.compile(r"\b(?:now|below|above|following|here|earlier|previous|next|again)\b", re.I)
"""Words of a statement that depends on its context."""
_POINTER = re.compile(
    r"^(?:please )?(?:see|refer to|check out|read|visit|have a look|look at|follow|check)\b|\b(?:see|refer to) "
    r"(?:also )?(?:the |our )?[A-Z\[]|\bfor (?:more|details|further|full|an? (?:complete|full))\b|\bdocs?\b"
    r"|\bdocumentation\b|\bread (?:how|that|the|about)\b|\b(?:that|the|this) page\b|\bexample\b|\bsection\b|\bguide\b",
    re.I,
)
_ASIDE = re.compile(r"\s\([^()]{1,200}\)")


def read_sentence(passage: QuotablePassage, names: Collection[str]) -> Iterator[StatedFact]:
    """Yield what a sentence states, as kind, answer, parts and statement."""
    text = lower_first(_ASIDE.sub("", passage.text), names)
    found = next(filter(None, (reads(text) for reads in _READERS)), None) if _stands_alone(text) else None
    if found:
        kind, answer, parts = found
        yield kind, answer, {name: asked_by_reader(part) for name, part in parts.items()}, passage.text


def _stands_alone(text: str) -> bool:
    whole = text.endswith((".", "!")) and not text.endswith((" .", "…", "..."))
    return (
        whole
        and FEWEST_SENTENCE_WORDS <= len(text.split()) <= MOST_SENTENCE_WORDS
        and not (_POINTER.search(text) or _CONTEXT.search(text))
    )


def _quantity(text: str) -> FactParts:
    found = clause(text)
    return stated_quantity(found) if found and not found.negated else None


_READERS: tuple[Callable[[str], FactParts], ...] = (
    wanted_purpose, _quantity, stated_condition, stated_purpose, stated_use, stated_means,
    stated_definition, stated_property, stated_permission, trailing_condition,
)  # fmt: skip
