"""Detector of languages, by function words or by letters.

Some rules of the package are for English alone: negations, coefficients, contradictions. They would score a text in
another language wrongly, and ``foreign`` asks for them. Names, code, tables and quotes in another language do not make
a text foreign; its function words must be foreign. A text that is too short counts as English.

Where text is prepared and not judged, ``main_language`` tells that of a document, and ``spoken`` that of a question: a
few words, in one of the languages that its documents have.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from rag_harness.words.languages import ENGLISH, LANGUAGES, has_rules
from rag_harness.words.terms import STOPWORDS

_MOST = 20_000
"""Characters of a text that are read."""
_LEAST = 3
"""Fewest function words of a language in a text of that language; two of them must be different."""
_LEAST_ASKED = 1.0
"""Least function words of a question for another language than its documents have; one of two languages counts half."""
_LEAST_TOLD, _AHEAD = 1.5, 1.2
"""Least function words of a paragraph, counted likewise, and how many times those of the next language.

Chosen so that no paragraph of the shipped English pages is called foreign (docs/results/languages.md).
"""
_SHARE = 0.12
"""Least share of function words of a language in a text of it. English texts have a lower share for all others."""
_LEAST_LETTERS, _LETTERS_SHARE = 8, 0.5
_MOST_OF_DOCUMENT = 200_000
_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['’][^\W\d_]+)?(?!\w)")
_UNREAD = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|https?://\S+|(?<![^\s@`])[^\s@`]+@\S+", re.DOTALL)
"""Code and addresses have no language."""

_SMALL: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in (
        ("en", "the of and to in is are was were be been it its that this these those for with as on at by from or "
               "an not no if when which what how can may must will would should has have had do does did you your we "
               "our they their he she his her i my there than then but so into about more most only also any all "
               "each"),
        ("de", "der die das und ist sind nicht ein eine einen einem einer eines den dem des mit für auf von zu sich "
               "auch es wird werden kann können bei oder als wie nach aus wenn nur noch ihr ihre sie wir ich haben "
               "hat über zum zur im am durch dass diese dieser dieses sein seine war wurde keine kein muss innerhalb "
               "habe weiß gibt ihnen dazu darüber dauert beträgt"),
        ("fr", "le la les des du de et est sont ne pas un une dans pour par sur avec que qui vous nous il elle ce "
               "cette ces votre notre au aux ou où mais plus être peut sans sous leur leurs été ont à se son sa ses "
               "je quel quelle comment combien quand"),
        ("es", "el la los las del de y es son no un una unos en para por con que se su sus lo le al como más pero "
               "está están este esta estos puede sin sobre entre ser hay fue cuando cuál qué cómo"),
        ("it", "il lo la gli i le di del della dei delle e è sono non un una uno in per con che si da dal nel nella "
               "alla al come più ma questo questa può essere ha hanno sul suo sua quando quale"),
        ("pt", "o a os as do da dos das de e é são não um uma em no na nos nas para por com que se seu sua ao à como "
               "mais mas este esta pode ser foi ou quando qual pelo pela você"),
        ("nl", "de het een en van is zijn niet te dat die voor met op aan er ook als bij of om door maar naar dan "
               "nog wordt worden kan kunnen uw je deze dit heeft hebben uit over geen hoe wanneer welke binnen"),
        ("sv", "och att det som en ett är av för på med den till inte om har de du kan från eller när ska vid men "
               "var sig så inom hur"),
        ("da", "og at det som en et er af for på med den til ikke om har de du kan fra eller når skal ved men var "
               "sig så inden hvor hvad hvordan"),
        ("no", "og at det som en et er av for på med den til ikke om har de du kan fra eller når skal ved men var "
               "seg så innen hvor hva hvordan jeg"),
        ("fi", "ja on ei se että en oli ovat joka kun niin tai mutta myös sen voi ole hän jos vain kuin tämä sitä "
               "voit"),
        ("pl", "i w na z do nie się że jest są to o dla po od jak przez przy lub oraz może ale tak jego który która "
               "być aby czy był które jeśli można tylko jako tej tym"),
        ("cs", "a v na se je z do že to s o pro jako ale po by za od jsou nebo jeho který která při není být když"),
        ("hu", "a az és hogy nem is egy ez van volt meg már csak ha vagy mint ki el de még minden lehet kell"),
        ("ro", "și în de la cu nu este sunt un o pe care că din pentru se mai să au fi sau dacă"),
        ("tr", "ve bir bu için ile de da ne olarak daha çok gibi olan var değil kadar sonra ya mı en"),
    )
}  # fmt: skip
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("uk", re.compile(r"[іїєґ]", re.I)),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
"""The most common language of each script; the first with a letter in the text counts. Two languages of one script
differ by letters that only one has."""
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


KNOWN: tuple[str, ...] = (*_SMALL, *(code for code, _ in _SCRIPTS))
"""The codes of all languages that can be told."""


@lru_cache(maxsize=1024)
def foreign(text: str) -> str:
    """Return the two-letter code of a text's language; empty for English and where it is unclear."""
    read = _UNREAD.sub(" ", text[:_MOST])
    return _by_letters("".join(filter(str.isalpha, read))) or _by_small_words(_WORD.findall(read))


def not_judged(*texts: str) -> str:
    """Return the reason not to judge ``texts`` by rules for English: "not judged: language de"; empty without one."""
    found = next(filter(None, map(foreign, texts)), "")
    return f"not judged: language {found}" if found else ""


def no_rules(what: str, *texts: str) -> str:
    """Return the reason not to use rules for English on ``texts``: "no rules for de: ..."; empty without one."""
    found = next(filter(None, map(foreign, texts)), "")
    return f"no rules for {found}: {what}" if found else ""


def shares(text: str) -> dict[str, float]:
    """Return the languages of a document's paragraphs and their shares of its letters, the largest first.

    Paragraphs too short to tell are not counted. Without any other, the whole text is one paragraph.
    """
    counted: Counter[str] = Counter()
    for block in text[:_MOST_OF_DOCUMENT].split("\n\n"):
        if language := told(block):
            counted[language] += len(block)
    if not counted and (language := told(text)):
        counted[language] = 1
    whole = sum(counted.values())
    return {language: count / whole for language, count in counted.most_common()}


@lru_cache(maxsize=4096)
def told(text: str) -> str:
    """Return the code of a paragraph's language; empty where it is too short to tell, or two languages are near."""
    read = _UNREAD.sub(" ", text[:_MOST])
    by_letters = _by_letters("".join(filter(str.isalpha, read)))
    if by_letters:
        return by_letters
    words = [word for word in map(str.lower, _WORD.findall(read)) if len(word) > 1]
    counts = _weighed(words, _SMALL)
    (best, most), (_, second) = sorted(counts.items(), key=lambda each: -each[1])[:2]
    own = [word for word in words if best in _FUNCTION_WORDS.get(word, ())]
    is_told = most >= max(_LEAST_TOLD, _AHEAD * second) and len(set(own)) > 1
    return best if is_told and (best == ENGLISH or len(own) >= max(_LEAST, _SHARE * len(words))) else ""


def _weighed(words: Iterable[str], among: Collection[str]) -> dict[str, float]:
    """Return how many of the words are function words of each language; one of two languages counts half."""
    counts = dict.fromkeys(among, 0.0)
    for word in words:
        having = [language for language in _FUNCTION_WORDS.get(word, ()) if language in counts]
        for language in having:
            counts[language] += 1 / len(having)
    return counts


@lru_cache(maxsize=4096)
def spoken(text: str, among: tuple[str, ...]) -> str:
    """Return the language of a question to documents in the languages ``among``, the most frequent first.

    It is English, one of these, or another one that its words clearly tell. A question that does not tell is taken for
    the first of ``among``.
    """
    other = foreign(text)
    if other:
        return other
    counts = _weighed(map(str.lower, _WORD.findall(text[:_MOST])), dict.fromkeys((*among, ENGLISH)))
    best = max(counts, key=lambda language: counts[language], default=ENGLISH)
    return best if counts.get(best, 0.0) >= _LEAST_ASKED else next(iter(among), ENGLISH)


def asked_language(text: str) -> str:
    """Return the language of a question, whatever its documents are in; English where it does not tell."""
    return spoken(text, (ENGLISH, *LANGUAGES))


def unruled(text: str) -> str:
    """Return the reason not to look in ``text`` for phrases, where its language has none: "not judged: language fi"."""
    found = foreign(text)
    return f"not judged: language {found}" if found and not has_rules(found) else ""


def _by_letters(letters: str) -> str:
    others = len(letters) - len(_LATIN.findall(letters))
    if others < _LEAST_LETTERS or others < _LETTERS_SHARE * len(letters):
        return ""
    return next((language for language, script in _SCRIPTS if script.search(letters)), "")


def _by_small_words(words: list[str]) -> str:
    english = _SMALL["en"]
    # These are no signs of another language: words that English has, too; capitalized words, which may be names; single
    # letters, which may be formulas.
    own = {
        language: [word for word in words if word in small and word not in english and len(word) > 1]
        for language, small in _SMALL.items()
    }
    language = max(own, key=lambda each: len(own[each]))
    told, in_english = own[language], sum(word.lower() in english for word in words)
    is_foreign = len(told) >= max(_LEAST, _SHARE * len(words)) and len(set(told)) > 1 and len(told) > in_english
    return language if is_foreign else ""


_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")


def _function_words() -> Mapping[str, Collection[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for language, small in _SMALL.items():
        more = LANGUAGES[language].stop_words if language in LANGUAGES else frozenset[str]()
        for word in small | (STOPWORDS if language == ENGLISH else more):
            # An elided "l" or "d" stands in code as well, and tells nothing.
            if word not in _CONSONANTS:
                found[word].append(language)
    return dict(found)


_FUNCTION_WORDS = _function_words()
