"""English grammar for questions: inflection, verbs, clauses, persons, and words that refer to something elsewhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from rag_harness.core.text.terms import terms

# Reads lists of words that are written as paragraphs, which are easier to read than one word a line.


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by blanks."""
    return frozenset(words.split())


# Reads ``synonyms.tsv``, the list of words with similar meaning, and makes every form of each word.

_PAST = {
    "make": "made", "put": "put", "keep": "kept", "bring": "brought", "hold": "held", "send": "sent", "get": "got",
    "deal": "dealt", "find": "found", "buy": "bought", "set": "set", "tell": "told", "cap": "capped", "stop": "stopped",
}  # fmt: skip
_NO_PAST = word_set("take begin go break spell choose give die rid stand turn lose buy be get")
"""Verbs whose participle differs from the past, or is not used. Their "-ed" form is not replaced."""


class Forms(NamedTuple):
    """``phrases`` as they are; ``words`` by their written form: the kind of form, and its replacements."""

    phrases: dict[str, str]
    words: dict[str, list[tuple[str, str]]]


def read_forms() -> Forms:
    """Read the list."""
    forms = Forms({}, {})
    for line in (files(__package__) / "synonyms.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, written, said = line.split("\t")
            if kind == "=":
                forms.phrases[written] = said
            for name, one, other in _inflected(kind, written, said):
                forms.words.setdefault(one, []).append((name, other))
    return forms


def _inflected(kind: str, written: str, said: str) -> Iterator[tuple[str, str, str]]:
    first, blank, rest = said.partition(" ")
    if kind == "n":
        yield "noun", written, said
        yield "noun", plural(written), f"{plural(first)}{blank}{rest}" if rest.startswith("of ") else plural(said)
    if kind in ("v", "V"):
        yield "base", written, said
    if kind == "V":
        yield "third", third(written), f"{third(first)}{blank}{rest}"
        yield "ing", ing(written), f"{ing(first)}{blank}{rest}"
        if first not in _NO_PAST and rest.split(" ")[0] not in ("of", "with"):
            yield "past", past(written), f"{past(first)}{blank}{rest}"


def plural(noun: str) -> str:
    """Return the plural of a regular noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"


def third(verb: str) -> str:
    """Return the third person of a verb."""
    return "does" if verb == "do" else "goes" if verb == "go" else plural(verb)


def ing(verb: str) -> str:
    """Return the present participle of a verb."""
    if verb.endswith("e") and not verb.endswith(("ee", "ye")):
        return f"{verb[:-1]}ying" if verb == "die" else f"{verb[:-1]}ing"
    return f"{verb}{verb[-1]}ing" if verb in _DOUBLED else f"{verb}ing"


def past(verb: str) -> str:
    """Return the past of a verb whose past and participle are the same."""
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


_DOUBLED = word_set("get put set stop submit begin cap wrap ship log swap cancel permit quit occur")


BASES = word_set(
    """
    accept add affect allow apply arrive ask attach begin belong block book bring call capture carry cause change
    charge check close come compare connect consist contain control convert copy cost count cover create decide
    default define delete deliver demonstrate depend describe determine disable display emit enable end enforce ensure
    exclude exist expect expire expose extend fail fall fire fit follow generate get give go grow handle happen help
    hold ignore implement include increase indicate inherit inject keep last lead leave let limit live load log look
    lose make match mean merge modify move need offer omit open override own pass pay perform point prevent print
    produce propagate protect provide raise reach read receive record refer refuse register reject release remain
    remove render replace represent request require reset resolve respect restore return run save say select send
    serve set ship show skip specify split stand start stay stop store stream suggest support survive take tell throw
    track translate treat trigger try turn update use validate wait work wrap write yield
    """
)
THIRD = {third(base): base for base in sorted(BASES)}
"""From the third person to the base form."""
TOLD_TO_DO = word_set(
    """
    access air ask attach authenticate avoid be bring brush build buy cancel cap charge choose clean click collect
    combine comment compare compute configure confirm consider contact count create customise customize debug define
    deploy descale do don't download dry edit empty enter evaluate export fetch file fill filter find fix force format
    forward get give hang have hide hold install instrument integrate invite keep know learn leave list look manage
    mark measure migrate mock note opt order pause pay pick place plug prefer press prevent print provide publish put
    query reduce register remember reopen replace report retry return review ring rinse scan seal search see share
    sign simplify skip specify speed spend start stop subclass submit subscribe switch take talk tell test think track
    try tune turn understand unpack unplug upgrade upload use verify view visit wait want wash wipe wire withdraw
    write
    """
)
ASKED_OF = word_set(
    """
    accept add charge check contain control convert cost create default define delete depend determine disable emit
    enforce ensure exclude expose generate get handle hold ignore indicate inherit inject lead limit match mean
    need offer omit override perform prevent produce protect provide raise receive record refer refuse reject remove
    render replace represent require reset return save say set stand store suggest tell throw track translate
    trigger update validate wrap yield
    """
)


# Words that refer to something elsewhere. A question with such a word cannot be asked alone.

_WORDS = (
    r"it|its|it's|itself|they|them|their|theirs|he|she|him|his|her|this|these|those|such|former|latter|both"
    r"|either|neither|above|below|following|here|there|other|another|none|same|said|respective(?:ly)?|ones"
    r"|earlier example|example|now|therefore|thus|hence|instead|too|again|already|meanwhile|anyway|accordingly"
    r"|two kinds|as follows|as shown|in (?:general|turn)|for now|by default|so far|still"
    r"|(?:after|before|by) (?:that|then)"
)
_THAT = (
    r"that(?= (?:is|was|way|case|page|point|time|day|order|one|amount|fee|value|means)\b)|(?:the|this|that|which) one"
    r"|(?:if|when|once|unless|of|for|in|to|on|allow) that"
)
_PLACES = (
    r"previous(?:ly)? (?:section|step|example|page)|(?:all|the|these) (?:two|three|four|five|six)"
    r"|the (?:rest|list|chart|table|diagram|figure|hour|first|second|third|last|note|page|section|answer|question"
    r"|reason|difference|point|idea|result|problem|issue|rule|step|case|exception)(?! of\b)"
)
POINTING = re.compile(rf"\b(?:{_WORDS}|{_THAT}|{_PLACES})\b", re.I)
"""Words that mean nothing without the text before them."""


AUXILIARIES = word_set("is are was were can could may might must should will would has have had do does did")
_NOT = {
    "can't": "can", "cannot": "can", "isn't": "is", "aren't": "are", "won't": "will", "mustn't": "must",
    "doesn't": "does", "don't": "do", "wasn't": "was", "weren't": "were", "shouldn't": "should", "couldn't": "could",
    "hasn't": "has", "haven't": "have", "didn't": "did", "wouldn't": "would", "needn't": "need",
}  # fmt: skip
_ASIDE = re.compile(r"\s\([^()]{1,200}\)")
_ADDED = (
    r"but|and|or|nor|so|which|because|while|since|although|even|not|as|e\.g\.|i\.e\.|for example|such as|including|with"
    r"|then|though"
)
_CUT = re.compile(rf"(?:,? — |,? – |; |: |, (?:{_ADDED})\b).*$")
_RELATIVE = word_set("that which who whose whom where when if because while unless although though since as")
_NO_SUBJECT = word_set(
    """
    it this that these those they there here he she what which who when if while although however also then instead
    otherwise finally note first second next additionally similarly thus therefore so but and or yet both each either
    by in on at for with without from to after before during until unless once because since as under over see not
    only even just like unlike nothing something anything everything most some many few more less none i one example
    alternatively conversely meanwhile internally currently optionally everyone nobody somebody anyone how please
    don't never always every-thing does do did be being been using via per again later now today yes thanks
    """
)
_BEFORE_NOUNS = word_set(
    """
    the a an your our my its their and or of each every this that any some no all to in on for with by at two
    """
)
_NEEDLESS = word_set("also deliberately intentionally simply currently yet actually normally just")
_ADVERBS = word_set("always never often rarely sometimes usually")


@dataclass(frozen=True, slots=True)
class Clause:
    """The parts ``subject``, ``auxiliary`` and ``rest`` of a question; a missing auxiliary becomes a form of do.

    ``negated``: whether a "not" was removed.
    """

    subject: str
    auxiliary: str
    rest: str
    negated: bool = False

    @property
    def asked(self) -> str:
        """The clause in the order of a question: "can gift cards be returned"."""
        return f"{self.auxiliary} {self.subject} {self.rest}"


def clause(sentence: str) -> Clause | None:
    """Return the parts of a plain main clause without its additions; None if its subject is not certain."""
    words = _CUT.sub("", _ASIDE.sub("", sentence).strip().rstrip(".!")).split()
    for place in range(1, min(9, len(words) - 1)):
        word = words[place].lower()
        subject = words[:place]
        if word in AUXILIARIES or word in _NOT:
            return _with(subject, word, words[place + 1 :])
        if word in THIRD and _is_verb(words, place):
            return _checked(subject, "does", [THIRD[word], *words[place + 1 :]])
        if word in BASES and _plural(subject) and _is_verb(words, place):
            return _checked(subject, "do", [word, *words[place + 1 :]])
    return None


def _is_verb(words: list[str], place: int) -> bool:
    after = words[place + 1].lower()
    noun = words[place - 1].lower() in _BEFORE_NOUNS or after in AUXILIARIES or after in THIRD or after in _NOT
    return not noun and words[place].islower()


def _plural(subject: list[str]) -> bool:
    last = subject[-1]
    return (subject[0].lower() in ("you", "we") and len(subject) == 1) or (
        last.endswith("s") and not last.endswith("ss")
    )


def _with(subject: list[str], word: str, rest: list[str]) -> Clause | None:
    negated = word in _NOT or bool(rest and rest[0].lower() == "not")
    rest = rest[1:] if rest and rest[0].lower() == "not" else rest
    auxiliary = _NOT.get(word, word)
    if auxiliary in ("has", "have") and (word in ("has", "have")) and not _participle(rest):
        return _checked(subject, "does" if auxiliary == "has" else "do", ["have", *rest], negated)
    return _checked(subject, auxiliary, rest, negated)


def _participle(rest: list[str]) -> bool:
    return bool(rest) and (rest[0].endswith(("ed", "en")) or rest[0] == "been")


def _checked(subject: list[str], auxiliary: str, rest: list[str], negated: bool = False) -> Clause | None:
    lowered = [word.lower().strip(",;:") for word in subject]
    bad = lowered[0] in _NO_SUBJECT or any(word in _RELATIVE for word in lowered) or not rest
    bad = bad or any(word.endswith((",", ";", ":", "—", "–")) for word in subject) or lowered[-1] in ("to", "not")
    bad = bad or lowered[0] in THIRD or "how" in lowered or ("and" in lowered and bool(_ADVERBS & set(lowered)))
    bad = bad or (lowered[0] in BASES and len(lowered) > 1 and lowered[1] in _BEFORE_NOUNS | {"what", "it", "you"})
    bad = bad or lowered[0].endswith(("ing", "ly")) or any(word in ("—", "–", "-") for word in lowered)
    if bad or POINTING.search(" ".join(subject)):
        return None
    if auxiliary == "need":
        auxiliary, rest = ("do" if _plural(subject) else "does"), ["need", "to", *rest]
    said = [word for word in rest if word.lower() not in _NEEDLESS]
    subject = [word for word in subject if word.lower() not in _NEEDLESS]
    return Clause(" ".join(subject), auxiliary, " ".join(said), negated)


_OBJECT_AFTER = word_set(
    """
    to for from with by of on at between about around against give gives gave send sends let lets ask asks allow
    allows help helps tell tells show shows pay pays charge charges contact reach reaches call calls email text owe
    costs earn earned earns save saves refund refunds notify warn inform enable enables require requires want wants
    than like beside near remind reminds invite invites
    """
)
"""Words after which "you" becomes "me"."""
_OPENING = word_set("A An The If When Once Unless To You We Your Our Each Every All No Any Some Use Set Call")
_PERSONS = {
    "your": "my", "yours": "mine", "yourself": "myself", "you're": "I'm", "you’re": "I'm", "you've": "I've",
    "you’ve": "I've", "you'll": "I'll", "you’ll": "I'll", "you'd": "I'd", "we": "you", "us": "you", "our": "your",
    "ours": "yours", "we're": "you're", "we've": "you've", "we'll": "you'll", "ourselves": "yourselves",
    "we’re": "you're", "we’ve": "you've", "we’ll": "you'll", "let's": "let's",
}  # fmt: skip


_ANY = re.compile(r"\b(?:you|we|us|our|let's)", re.I)


def asked_by_reader(text: str) -> str:
    """Return a page's words as its reader would say them: "you" becomes I or me, "we" becomes you."""
    if not _ANY.search(text):
        return text
    words = text.split(" ")
    found = [_person(words, place) for place in range(len(words))]
    said = " ".join(found)
    for written, meant in (
        ("I are", "I am"),
        ("are I", "am I"),
        ("I were", "I was"),
        ("were I", "was I"),
        ("I aren['’]t", "I'm not"),
        ("I weren['’]t", "I wasn't"),
    ):
        said = re.sub(rf"\b{written}\b", meant, said)
    return said


def _person(words: list[str], place: int) -> str:
    word = words[place]
    bare = word.rstrip(",.;:?!)").lower()
    tail = word[len(bare) :]
    if bare == "you" and place and words[place - 1].lower() == "of":
        return "us" + tail
    if bare == "you":
        before = words[place - 1].lower() if place else ""
        last = place + 1 == len(words) or bool(tail)
        return ("me" if before in _OBJECT_AFTER or (last and before not in AUXILIARIES) else "I") + tail
    return _PERSONS[bare] + tail if bare in _PERSONS else word


def lower_first(text: str, names: Collection[str]) -> str:
    """Return ``text`` with a small first letter, unless its first word is one of ``names`` or looks like one."""
    first, _, others = text.partition(" ")
    word = first.strip("\"'“(,.:")
    following = others.split(" ", 1)[0]
    named = (following[:1].isupper() or following[:1].isdigit()) and word not in _OPENING
    return text if named or word in names or not (word.istitle() or len(word) == 1) else text[:1].lower() + text[1:]


FactParts = tuple[str, str, dict[str, str]] | None
"""Kind, answer and parts of a fact: see ``facts.Fact``."""
LONGEST_PART = 18
"""The most words of a part."""
_SPOKEN = re.compile(
    r"\b(?:we(?:'re|’re| are|'ll|'ve| have| run| want| need| see| look| start| use| can| now)|let's|say)\b", re.I
)


def can_be_asked(part: str) -> bool:
    """Whether a part fits into a question: it refers to nothing outside, and is not a fragment or an author's "we"."""
    dashes = part.startswith("whether") or "—" in part or "–" in part
    whole = not dashes and part.count("(") == part.count(")") and part.count('"') % 2 == 0
    return whole and not POINTING.search(part) and not _SPOKEN.search(part) and 2 <= len(part.split()) <= LONGEST_PART


def does(part: str) -> bool:
    """Whether a part begins with a verb, names its object, and can be used in a question."""
    verb, thing, *_ = [*part.split(), "", ""]
    return verb in BASES | TOLD_TO_DO and thing != "that" and can_be_asked(part)


def tells_to_do(text: str) -> bool:
    """Whether a clause tells its reader to do something."""
    said = re.sub(r"^(?:(?:please|simply|just|always|never|do not|don't) )*", "", text)
    return said.split(" ", 1)[0].lower().rstrip(".,") in BASES | TOLD_TO_DO


def tells_apart(subject: str) -> bool:
    """Whether a subject is specific: a name, a code, or two words. "The limit" is not: it may be any limit."""
    coded = re.search(r"[A-Z0-9_.]", subject) is not None
    return coded or len(terms(subject)) > 1
