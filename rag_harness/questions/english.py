"""English for asking: who speaks to whom, verbs in their base form, and a sentence turned into a question's order."""

from __future__ import annotations

import re
from collections.abc import Collection
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
    delete deliver demonstrate depend describe determine disable display emit enable end enforce ensure exclude exist expect expire
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
    r"|neither|above|below|following|previous(?:ly)? (?:section|step|example|page)|here|there|other|another|none|same|said"
    r"|respective(?:ly)?|that(?= (?:is|was|way|case|page|point|time|day|order|one|amount|fee|value|means)\b)|(?:the|this|that|which) one|ones"
    r"|earlier example|example|now|therefore|thus|hence|instead|too|again|already|meanwhile|anyway|accordingly"
    r"|(?:all|the|these) (?:two|three|four|five|six)|the (?:rest|list|chart|table|diagram|figure|hour|first|second|third"
    r"|last|note|page|section|answer|question|reason|difference|point|idea|result|problem|issue|rule|step|case|exception)"
    r"(?! of\b)|(?:if|when|once|unless|of|for|in|to|on|allow) that|two kinds|as follows|as shown|in (?:general|turn)|for now|by default|so far)\b",
    re.I,
)
"""Words that say nothing without what stands before them."""
_ASIDE = re.compile(r"\s\([^()]{1,200}\)")
_CUT = re.compile(r"(?:,? — |,? – |; |: |, (?:but|and|or|so|which|because|while|since|although|even|not|as|e\.g\.|i\.e\.|for example|such as|including|with|then|though)\b).*$")
_RELATIVE = frozenset("that which who whose whom where when if because while unless although though since as".split())
_NO_SUBJECT = frozenset(
    """it this that these those they there here he she what which who when if while although however also then instead
    otherwise finally note first second next additionally similarly thus therefore so but and or yet both each either
    by in on at for with without from to after before during until unless once because since as under over see not only
    even just like unlike nothing something anything everything most some many few more less none i one example
    alternatively conversely meanwhile internally currently optionally everyone nobody somebody anyone how please don't
    never always every-thing does do did be being been using via per again later now today yes thanks""".split()
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
    """Return the parts of a plain main clause, up to what is added to it; None where its subject may be none."""
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
    return subject[0].lower() in ("you", "we") and len(subject) == 1 or (last.endswith("s") and not last.endswith("ss"))


def _with(subject: list[str], word: str, rest: list[str]) -> Clause | None:
    negated = word in _NOT or bool(rest and rest[0].lower() == "not")
    rest = rest[1:] if rest and rest[0].lower() == "not" else rest
    auxiliary = _NOT.get(word, word)
    if auxiliary in ("has", "have") and (word in ("has", "have")) and not _participle(rest):
        return _checked(subject, "does" if auxiliary == "has" else "do", ["have", *rest], negated)
    return _checked(subject, auxiliary, rest, negated)


_BEFORE_NOUNS = frozenset(
    "the a an your our my its their and or of each every this that any some no all to in on for with by at two".split()
)


def _participle(rest: list[str]) -> bool:
    return bool(rest) and (rest[0].endswith(("ed", "en")) or rest[0] == "been")


_NEEDLESS = frozenset("also deliberately intentionally simply currently yet actually normally just".split())
_ADVERBS = frozenset("always never often rarely sometimes usually".split())


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


def lower_first(text: str, names: Collection[str]) -> str:
    """Return ``text`` with a small first letter, unless its first word is one of ``names`` or looks like one."""
    first, _, others = text.partition(" ")
    word = first.strip("\"'“(,.:")
    following = others.split(" ", 1)[0]
    named = following[:1].isupper() and not following.isupper() and word not in _OPENING
    return text if named or word in names or not (word.istitle() or len(word) == 1) else text[:1].lower() + text[1:]


_OPENING = frozenset("A An The If When Once Unless To You We Your Our Each Every All No Any Some Use Set Call".split())


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
    for written, meant in (("I are", "I am"), ("are I", "am I"), ("I were", "I was"), ("were I", "was I"),
                           ("I aren['’]t", "I'm not"), ("I weren['’]t", "I wasn't")):
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
