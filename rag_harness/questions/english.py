"""English for asking: who speaks to whom, verbs in their base form, and a sentence turned into a question's order."""

from __future__ import annotations

import re
from dataclasses import dataclass

_AUXILIARY = "is are was were can could may might must should will would has have had do does did"
AUXILIARIES = frozenset(_AUXILIARY.split())
_NOT = {
    "can't": "can", "cannot": "can", "isn't": "is", "aren't": "are", "won't": "will", "mustn't": "must",
    "doesn't": "does", "don't": "do", "wasn't": "was", "weren't": "were", "shouldn't": "should", "couldn't": "could",
    "hasn't": "has", "haven't": "have", "didn't": "did", "wouldn't": "would", "needn't": "need",
}  # fmt: skip
_BASES = """
    accept add affect allow apply arrive ask attach begin belong block book bring call capture carry cause change charge
    check close come compare connect consist contain control convert copy cost count cover create decide default define
    delete deliver depend describe determine disable display emit enable end enforce ensure exclude exist expect expire
    expose extend fail fall fire fit follow generate get give go grow handle happen help hold ignore implement include
    increase indicate inherit inject keep last lead leave let limit live load log look lose make match mean merge modify
    move need offer omit open override own pass pay perform point prevent print produce propagate protect provide raise
    reach read receive record refer refuse register reject release remain remove render replace represent request
    require reset resolve respect restore return run save say select send serve set ship show skip specify split stand
    start stay stop store stream suggest support survive take tell throw track translate treat trigger try turn update
    use validate wait work wrap write yield
""".split()  # noqa: SIM905 - one word a line would hide the list
BASES = frozenset(_BASES)


def _third(base: str) -> str:
    if base.endswith(("s", "x", "ch", "sh", "z")) or base in ("go", "do"):
        return f"{base}es"
    return f"{base[:-1]}ies" if base.endswith("y") and base[-2] not in "aeiou" else f"{base}s"


THIRD = {_third(base): base for base in _BASES}
"""Third person -> base form."""

POINTING = re.compile(
    r"\b(?:it|its|it's|itself|they|them|their|theirs|he|she|him|his|her|this|these|those|such|former|latter|both|either"
    r"|neither|above|below|following|previous(?:ly)? (?:section|step|example|page)|here|there|other|another|same|said"
    r"|respective(?:ly)?|that(?= (?:is|was|way|case|page|point|time|day|order|one|amount|fee|value|means)\b)|(?:the|this|that|which) one|ones"
    r"|earlier example|example)\b",
    re.I,
)
"""Words that say nothing without what stands before them."""
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_RELATIVE = frozenset("that which who whose whom where when if because while unless although though since as".split())
_NO_SUBJECT = frozenset(
    """it this that these those they there here he she what which who when if while although however also then instead
    otherwise finally note first second next additionally similarly thus therefore so but and or yet both each either
    by in on at for with without from to after before during until unless once because since as under over see not only
    even just like unlike nothing something anything everything most some many few more less none i one example
    alternatively conversely meanwhile internally currently optionally everyone nobody somebody anyone""".split()
)
_OBJECT_AFTER = frozenset(
    """to for from with by of on at between about around against give gives gave send sends let lets ask asks allow
    allows help helps tell tells show shows pay pays charge charges contact reach reaches call calls email text owe
    costs save saves refund refunds notify warn inform enable enables require requires want wants than like beside
    near remind reminds invite invites""".split()
)


@dataclass(frozen=True, slots=True)
class Clause:
    """``subject`` ``auxiliary`` ``rest``, as a question wants them; where there was none the auxiliary is a form of do.

    ``negated`` says whether a "not" was taken out.
    """

    subject: str
    auxiliary: str
    rest: str
    negated: bool = False

    @property
    def asked(self) -> str:
        """The clause in a question's order: "can gift cards be returned"."""
        return f"{self.auxiliary} {self.subject} {self.rest}"


def clause(sentence: str) -> Clause | None:
    """Return the parts of a plain main clause; None where its subject is not sure to be one."""
    words = _ASIDE.sub("", sentence).strip().rstrip(".!").split()
    for place in range(1, min(9, len(words) - 1)):
        word = words[place].lower()
        subject = words[:place]
        if word in AUXILIARIES or word in _NOT:
            return _with(subject, word, words[place + 1 :])
        if word in THIRD and words[place - 1].lower() not in ("the", "a", "an", "your", "our", "and", "or", "of"):
            return _checked(subject, "does", [THIRD[word], *words[place + 1 :]])
        if word in BASES and _plural(subject):
            return _checked(subject, "do", [word, *words[place + 1 :]])
    return None


def _plural(subject: list[str]) -> bool:
    last = subject[-1]
    return subject[0].lower() in ("you", "we") and len(subject) == 1 or (last.endswith("s") and not last.endswith("ss"))


def _with(subject: list[str], word: str, rest: list[str]) -> Clause | None:
    negated = word in _NOT or bool(rest and rest[0].lower() == "not")
    rest = rest[1:] if rest and rest[0].lower() == "not" else rest
    auxiliary = _NOT.get(word, word)
    if auxiliary in ("has", "have") and (word in ("has", "have")) and not _participle(rest):
        return _checked(subject, "does" if auxiliary == "has" else "do", ["have", *rest], negated)
    return _checked(subject, auxiliary, rest, negated)


def _participle(rest: list[str]) -> bool:
    return bool(rest) and (rest[0].endswith(("ed", "en")) or rest[0] in ("been", "to"))


def _checked(subject: list[str], auxiliary: str, rest: list[str], negated: bool = False) -> Clause | None:
    lowered = [word.lower().strip(",;:") for word in subject]
    bad = lowered[0] in _NO_SUBJECT or any(word in _RELATIVE for word in lowered) or not rest
    bad = bad or any(word.endswith((",", ";", ":", "—", "–")) for word in subject) or lowered[-1] in ("to", "not")
    bad = bad or lowered[0].endswith(("ing", "ly")) or any(word in ("—", "–", "-") for word in lowered)
    if bad or POINTING.search(" ".join(subject)):
        return None
    return Clause(" ".join([lower_first(subject[0]), *subject[1:]]), auxiliary, " ".join(rest), negated)


def lower_first(text: str) -> str:
    """Return ``text`` with a small first letter, unless its first word is a name, a code or "I"."""
    word = text.split(" ", 1)[0].strip("\"'“(,.")
    keep = not word[1:].islower() or any(not letter.isalpha() for letter in word)
    known = word.lower() in ("a", "i'm")
    return text if keep and not known and len(word) != 1 else text[:1].lower() + text[1:]


_PERSONS = {
    "your": "my", "yours": "mine", "yourself": "myself", "you're": "I'm", "you’re": "I'm", "you've": "I've",
    "you’ve": "I've", "you'll": "I'll", "you’ll": "I'll", "you'd": "I'd", "we": "you", "us": "you", "our": "your",
    "ours": "yours", "we're": "you're", "we've": "you've", "we'll": "you'll", "ourselves": "yourselves",
    "we’re": "you're", "we’ve": "you've", "we’ll": "you'll", "let's": "let's",
}  # fmt: skip


def asked_by_reader(text: str) -> str:
    """Return what the page says to its reader as the reader says it: "you" is I or me, "we" is you."""
    words = text.split(" ")
    found = [_person(words, place) for place in range(len(words))]
    said = " ".join(found)
    for written, meant in (("I are", "I am"), ("are I", "am I"), ("I were", "I was"), ("were I", "was I")):
        said = re.sub(rf"\b{written}\b", meant, said)
    return said


def _person(words: list[str], place: int) -> str:
    word = words[place]
    bare = word.rstrip(",.;:?!)").lower()
    tail = word[len(bare) :]
    if bare == "you":
        before = words[place - 1].lower() if place else ""
        last = place + 1 == len(words) or bool(tail)
        return ("me" if before in _OBJECT_AFTER or (last and before not in AUXILIARIES) else "I") + tail
    return _PERSONS[bare] + tail if bare in _PERSONS else word
