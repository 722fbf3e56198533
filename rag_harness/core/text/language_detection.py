"""The language of a text, by py3langid; an uncertain text counts as English."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_harness.core.concurrency import Lazy, begin_ahead
from rag_harness.core.text.languages import ENGLISH, LANGUAGES, has_rules
from rag_harness.core.text.memory import remembered
from rag_harness.core.text.terms import STOPWORDS

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


# Some rules of the package are for English alone: negations, coefficients, contradictions. They would score a text in
# another language wrongly, and ``foreign`` asks for them. Where text is prepared and not judged, ``shares`` returns the
# languages of a document, and ``spoken`` the language of a question: a few words, in one of its documents' languages.

_KNOWN = """
    en de fr es it pt nl sv da no fi pl cs hu ro tr vi id ca bg sk hr sl lt lv et sr mk be kk mn uk ru el
    ja ko zh ar fa ur he hi mr ne bn ta te ml kn gu pa si th lo km am ka hy
"""
KNOWN: tuple[str, ...] = tuple(_KNOWN.split())
"""The codes of all languages that are told apart (ISO 639-1).

The library knows 135. Small neighbours of large languages are left out (Galician, Afrikaans, Asturian): with them, a
third of short Spanish answers was none (docs/dev/results/languages.md).
"""
_SURE = 0.8
"""The least probability of a language. Of 5,503 English texts two were called foreign by it, and both were."""
_LIKELY = 0.6
"""The least share of a language among those of the documents that a question without a language of its own gets."""
_MOST = 5_000
"""Characters of a text that are read."""
_MOST_OF_DOCUMENT = 200_000
_FEWEST_WORDS = 5
"""Fewest words of a paragraph in ASCII that is looked at: headings tell little, and most of them are English."""
_UNREAD = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`|https?://\S+|(?<![^\s@`])[^\s@`]+@\S+", re.DOTALL)
"""Code and addresses have no language."""
_TAG = re.compile(r"<[^<>]{0,500}>")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_COMMON_ENGLISH = """
    the and that this these those with from been are you your it its it's they their them our can cannot must may will
    would should has not only also any each which when where what who how if than then there here more some about after
    before between into out such does don't
"""
_COMMON = frozenset(_COMMON_ENGLISH.split())
_MOSTLY = 0.6
"""Least share of an answer's words that its question and its passages do not have, before these words decide."""
_HINT, _TIMES = 0.15, 5
"""Least probability of their language, and how many times as likely as English it is."""
_YES_NO = {
    "de": ("ja", "nein"),
    "fr": ("oui", "non"),
    "es": ("sí",),
    "pt": ("sim", "não"),
    "it": ("sì",),
    "nl": ("nee", "ja"),
}
_ENGLISH_TOO = frozenset(
    """
    minute minutes second seconds mars august september april november dollar dollars cent cents euro euros percent die
    war man hat bin gut am art pour son plus tout comment pro sans sur come sei con para sin van over per solo fort been
    has had die met den also want
    """.split()  # noqa: SIM905
)
"""Words of the lists of other languages that are English ones, too."""
_SHARE_OF_COMMON = 0.12
"""Least share of these words in a text that is plainly English. In capitals they may be SQL."""


@lru_cache(maxsize=4096)
def told(text: str) -> str:
    """Return the code of a text's language; empty where the text does not tell, or two languages are near."""
    read = _UNREAD.sub(" ", text[:_MOST])
    return ENGLISH if _is_plainly_english(read) else _surest(read)


@remembered
def _surest(text: str) -> str:
    likely = _likely(text)
    best = max(likely, key=lambda language: likely[language], default="")
    return best if best and likely[best] >= _SURE else ""


def foreign(text: str) -> str:
    """Return the two-letter code of a text's language; empty for English and where it is unclear."""
    found = told(text)
    return "" if found == ENGLISH else found


def not_judged(*texts: str) -> str:
    """Return the reason not to judge ``texts`` by rules for English: "not judged: language de"; empty without one."""
    found = next(filter(None, map(foreign, texts)), "")
    return f"not judged: language {found}" if found else ""


def answer_not_judged(question: str, answer: str, contexts: Sequence[str]) -> str:
    """Return the reason not to judge an answer by rules for English; empty without one.

    Each passage counts by itself: statements of a passage in another language cannot be found. The language of a short
    answer is decided by the words that neither the question nor the passages have. For example, "24 Monate" is too
    short to be detected alone, but is not English.
    """
    if why := not_judged(question, answer, "\n".join(contexts), *contexts):
        return why
    found = _language_of_new(answer, (question, *contexts))
    return f"not judged: language {found}" if found else ""


def yes_or_no(language: str) -> tuple[str, ...]:
    """Return the words for yes and no of a language, as far as English has them not."""
    return _YES_NO.get(language, ())


def no_rules(what: str, *texts: str) -> str:
    """Return the reason not to use rules for English on ``texts``: "no rules for de: ..."; empty without one."""
    found = next(filter(None, map(foreign, texts)), "")
    return f"no rules for {found}: {what}" if found else ""


def unruled(text: str) -> str:
    """Return the reason not to look in ``text`` for phrases, where its language has none: "not judged: language fi"."""
    found = foreign(text)
    return f"not judged: language {found}" if found and not has_rules(found) else ""


def shares(text: str) -> dict[str, float]:
    """Return the languages of a document's paragraphs and their shares of its letters, the largest first.

    Paragraphs too short to tell are not counted. Without any other, the whole text is one paragraph.
    """
    counted: Counter[str] = Counter()
    for block in text[:_MOST_OF_DOCUMENT].split("\n\n"):
        if (not block.isascii() or len(block.split()) >= _FEWEST_WORDS) and (language := told(block)):
            counted[language] += len(block)
    if not counted and (language := told(text)):
        counted[language] = 1
    whole = sum(counted.values())
    return {language: count / whole for language, count in counted.most_common()}


@lru_cache(maxsize=4096)
def spoken(text: str, among: tuple[str, ...]) -> str:
    """Return the language of a question to documents in the languages ``among``, the most frequent first.

    It is English, one of these, or another one that its words clearly tell. A question that does not tell is taken for
    the first of ``among``.
    """
    if language := told(text):
        return language
    likely = _likely(_UNREAD.sub(" ", text[:_MOST]))
    within = {language: likely.get(language, 0.0) for language in (*among, ENGLISH)}
    best = max(within, key=lambda language: within[language])
    is_likely = within[best] > 0 and within[best] >= _LIKELY * sum(within.values())
    return best if is_likely else next(iter(among), ENGLISH)


def asked_language(text: str) -> str:
    """Return the language of a question, whatever its documents are in; English where it does not tell."""
    return spoken(text, (ENGLISH, *LANGUAGES))


def _language_of_new(answer: str, others: Sequence[str]) -> str:
    """Return the language of the answer's words that none of ``others`` has; empty for English, or where it is
    unclear."""
    words = _WORD.findall(_TAG.sub(" ", _UNREAD.sub(" ", answer[:_MOST])))
    if not words or _is_plainly_english(answer[:_MOST]):
        return ""
    known = {word.lower() for text in others for word in _WORD.findall(text)}
    new = [word for word in words if word.lower() not in known]
    if len(new) < _MOSTLY * len(words) or any(map(_is_english, map(str.lower, words))):
        return ""
    likely = _likely(" ".join(new))
    marked = next((code for word in new if (code := _marked(word.lower())) and likely[code] >= likely[ENGLISH]), "")
    best = max(likely, key=lambda language: likely[language])
    is_clear = likely[best] >= max(_HINT, _TIMES * likely[ENGLISH]) and not _ENGLISH_TOO.intersection(new)
    return marked or (best if is_clear and best != ENGLISH else "")


def _is_english(word: str) -> bool:
    """Return whether a word is a small English one, and none of another language."""
    if word not in STOPWORDS and word not in _COMMON:
        return False
    return len(word) > 1 and not any(word in rules.stop_words for rules in LANGUAGES.values())


@lru_cache(maxsize=4096)
def _marked(word: str) -> str:
    """Return the language that has a word among its small words, units or days, where English has no such word."""
    if word in _ENGLISH_TOO or word in STOPWORDS or word in _COMMON:
        return ""
    for code, rules in LANGUAGES.items():
        listed = word in rules.stop_words or word in _YES_NO.get(code, ())
        if listed or any(re.fullmatch(words, word) for words in (rules.durations, rules.money, rules.dates)):
            return code
    return ""


def _is_plainly_english(text: str) -> bool:
    """Whether small words tell at once that a text is English: most texts are, and the library takes 0.4 s to load."""
    words = [word for word in _WORD.findall(text) if not word.isupper()]
    common = [word for word in map(str.lower, words) if word in _COMMON]
    return len(set(common)) > 1 and len(common) >= _SHARE_OF_COMMON * len(words)


def _likely(text: str) -> Mapping[str, float]:
    """Return the probability of each language; empty for a text without letters."""
    return dict(_identifier.get().rank(text)) if any(map(str.isalpha, text)) else {}


def _load() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    found = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    found.set_languages(KNOWN)
    return found


_identifier = Lazy(_load)


def load_ahead(text: str = "") -> None:
    """Load in a thread what tells languages, unless small words tell that of ``text``.

    It takes 0.3 s, in which Python may do something else.
    """
    if _identifier.made is None and not (text and _is_plainly_english(_UNREAD.sub(" ", text[:_MOST]))):
        begin_ahead("rag-languages", _identifier.get)
