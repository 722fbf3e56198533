"""Splits a sentence into subject, auxiliary and rest, in the order of a question."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.verbs import BASES, THIRD
from rag_harness.authoring.questions.wordlists import word_set

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
    """``subject`` ``auxiliary`` ``rest``, for a question; if there was no auxiliary, it is a form of do.

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
