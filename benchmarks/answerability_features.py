"""What can be seen of "do these passages answer this question?" without a model that reasons; for ``answerability.py``.

Words of the question are compared with those of the passages by stem and by MiniLM's last hidden states, sentences by
their vectors. The "best sentence" has the most of the question. Rules add negations, antonyms, figures and names that
only the question has, and whether the best sentence has something of the kind that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.core.text.figures import word_set
from rag_harness.evaluation.judges.embedded.alignment import Encoded, EncodedSource, Float32s
from rag_harness.evaluation.judges.embedded.features import same
from rag_harness.evaluation.judges.embedded.quantities import numbers

Bools = npt.NDArray[np.bool_]

_NEGATION = re.compile(r"\b(?:not?|non|never|none|nobody|nothing|neither|nor|cannot|without)\b|n['’]t\b", re.I)
_DENIAL = re.compile(
    r"\b(?:fail\w{0,9}|lack\w{0,9}|unable|refus\w{0,9}|den(?:y|ied|ies)|exclu\w{1,9}|except|un\w{5,20}"
    r"|in(?:capable|valid|correct|effective)|dis\w{5,20}|least|few|little|hardly)\b",
    re.I,
)
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "anti", "mis")
_ANTONYMS = """
    increase/decrease increased/decreased rise/fall rising/falling grow/shrink more/less most/least largest/smallest
    larger/smaller large/small big/small highest/lowest higher/lower high/low first/last before/after early/late
    earlier/later start/end began/ended beginning/end north/south northern/southern east/west eastern/western win/lose
    won/lost victory/defeat gain/lose gained/lost allow/prohibit allowed/forbidden allowed/prohibited permit/prohibit
    strong/weak stronger/weaker strengthen/weaken internal/external inside/outside left/right old/new older/younger
    young/old oldest/youngest rich/poor good/bad better/worse best/worst positive/negative accept/reject
    accepted/rejected accept/refuse public/private major/minor majority/minority support/oppose supported/opposed
    agree/disagree include/exclude included/excluded male/female men/women man/woman father/mother son/daughter
    husband/wife king/queen import/export imported/exported attack/defend enter/leave arrive/depart arrival/departure
    open/closed close/open hot/cold warm/cold fast/slow faster/slower long/short longest/shortest longer/shorter
    heavy/light upper/lower top/bottom above/below maximum/minimum active/inactive stable/unstable legal/illegal
    possible/impossible similar/different same/different simple/complex easy/difficult easy/hard rare/common
    create/destroy created/destroyed build/destroy built/destroyed love/hate friend/enemy peace/war birth/death
    born/died alive/dead buy/sell bought/sold borrow/lend teach/learn expand/contract expanded/contracted
    decline/growth decline/rise improve/worsen advantage/disadvantage cause/prevent caused/prevented
    encourage/discourage often/rarely always/never all/none domestic/foreign rural/urban natural/artificial
    liquid/solid visible/invisible known/unknown popular/unpopular near/far nearest/farthest forward/backward
    ancient/modern former/latter previous/next succeed/fail success/failure exceed/below over/under approve/reject
    ratified/rejected appointed/elected remove/add removed/added adding/removing push/pull attract/repel
    absorb/release absorbed/released acid/base innate/adaptive primary/secondary even/odd finite/infinite
    advance/retreat advanced/retreated asleep/awake ascend/descend above/under absence/presence absent/present
    abundant/scarce accelerate/decelerate admit/deny admitted/denied adult/child amateur/professional apart/together
    appear/disappear arrived/departed arrived/left attack/defense backward/forward beautiful/ugly begin/end begins/ends
    beginning/ending believe/doubt belief/disbelief bottom/top bought/sold brave/coward bright/dark broad/narrow
    calm/stormy captured/released careful/careless cheap/expensive clean/dirty clear/unclear clockwise/counterclockwise
    common/unique complete/partial connect/disconnect conquer/surrender constant/variable continue/stop
    continued/stopped cooperation/competition costly/cheap cowardly/brave danger/safety day/night deep/shallow
    defeat/win defeated/victorious defended/attacked deficit/surplus demand/supply dense/sparse dependent/independent
    direct/indirect discover/lose divide/unite divided/united dry/wet east/west effect/cause empty/full
    enable/disable equal/unequal evening/morning everyone/nobody expensive/cheap explicit/implicit export/import
    fact/fiction failed/succeeded false/true farther/nearer few/many fewer/more fewest/most final/initial
    find/lose finish/start finished/started flexible/rigid float/sink follow/lead followed/led founder/successor
    free/enslaved freedom/slavery freeze/melt frequent/infrequent friend/foe general/specific generous/stingy
    giant/tiny giver/receiver give/take gave/took given/taken global/local grew/shrank guilty/innocent happy/sad
    harmful/harmless health/illness heaven/hell higher/lesser hidden/visible hire/fire horizontal/vertical
    huge/tiny human/animal improved/worsened including/excluding increasing/decreasing inferior/superior inner/outer
    intentional/accidental join/leave joined/left junior/senior kill/save knowledge/ignorance largest/least
    lawful/unlawful leader/follower lend/borrow less/greater liberal/conservative light/dark limited/unlimited
    locally/globally loose/tight loss/profit loss/gain losing/winning loud/quiet lowered/raised lowering/raising
    married/divorced maternal/paternal mandatory/optional maximize/minimize maximum/least minor/adult moist/dry
    multiple/single native/foreign nearby/distant never/often noisy/quiet north/south northernmost/southernmost
    northeast/southwest northwest/southeast obey/disobey offense/defense officially/unofficially opponent/supporter
    opponents/supporters opposite/same optimist/pessimist order/chaos parent/child past/future peaceful/violent
    permanent/temporary plural/singular poverty/wealth praise/criticize praised/criticized predator/prey
    private/government profit/debt progress/regress pro/anti raise/lower raised/lowered reduce/increase
    reduced/increased reducing/increasing reward/punish rough/smooth rural/city safe/dangerous seldom/often
    sell/purchase
    separate/together separated/united shallow/deep shortage/surplus shrink/expand sick/healthy slave/master
    slowly/quickly slowing/speeding soft/hard sold/purchased solve/create sooner/later stay/leave stayed/left
    stopped/began stop/start sunrise/sunset surface/depth synthetic/natural tall/short teacher/student tiny/large
    thick/thin thin/fat ugly/pretty unite/separate unlike/like useful/useless vacant/occupied victim/attacker
    weaken/strengthen weakest/strongest weakness/strength whole/part wide/narrow widely/rarely wife/husband
    winner/loser winners/losers wins/loses wrong/right youngest/eldest younger/elder
"""
ANTONYMS: dict[str, set[str]] = {}
for _pair in _ANTONYMS.split():
    _one, _other = _pair.split("/")
    ANTONYMS.setdefault(_one, set()).add(_other)
    ANTONYMS.setdefault(_other, set()).add(_one)

_WH = word_set("who whom whose when where why how which what")
_MONTHS = word_set("january february march april may june july august september october november december")
_TIMES = word_set("year date century day month decade time era")
_PLACES = word_set("country city place region area state location countries cities")
_COUNTS = word_set("number percentage percent amount population many much long old far tall often large")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_REACH = 2
"""Words after the question word that may say what kind of answer is asked for."""
_MATCHED = 0.55
"""Nearness from which a word of the question has a counterpart in the best sentence."""


@dataclass(frozen=True)
class Asked:
    """A question and its passages, read.

    Attributes:
        question: the question.
        source: its passages.
        asked: vector of the question, shape (d,).
        sentences: vectors of the passages' sentences, shape (sentences, d).
        passages: vectors of the passages, shape (passages, d).
    """

    question: Encoded
    source: EncodedSource
    asked: Float32s
    sentences: Float32s
    passages: Float32s

    @cached_property
    def sims(self) -> Float32s:
        """Cosine of each word of the question with each of the passages, shape (n, m)."""
        return self.question.vectors @ self.source.vectors.T

    @cached_property
    def stems(self) -> Bools:
        """Whether two words have one stem, shape (n, m)."""
        return same(self.question.text.stems, self.source.stems)

    @cached_property
    def wanted(self) -> Bools:
        """Which words of the question say what it is about: content words, without the kind of answer it names."""
        text = self.question.text
        content = text.content & np.array([word not in _WH for word in text.words], bool)
        left = content.copy()
        if text.words[self.at] in ("what", "which", "how"):
            left[self.at + 1 : self.at + 1 + _REACH] = False
        return next((each for each in (left, content) if each.any()), np.ones(len(content), bool))

    @cached_property
    def at(self) -> int:
        """The place of the question word; 0 where there is none."""
        return next((place for place, word in enumerate(self.question.text.words) if word in _WH), 0)

    @cached_property
    def by_sentence(self) -> Float32s:
        """Best cosine of each word of the question in each sentence, shape (n, sentences)."""
        found: Float32s = np.maximum.reduceat(self.sims, self.source.firsts, axis=1)
        return found

    @cached_property
    def best(self) -> int:
        """The sentence that has most of the question."""
        weights = self.weights[:, None]
        stems = np.maximum.reduceat(self.stems, self.source.firsts, axis=1)
        return int(np.argmax(((self.by_sentence + stems) * weights).sum(axis=0) / weights.sum()))

    @cached_property
    def weights(self) -> Float32s:
        """The weight of each word of the question."""
        return (self.question.weights + 1e-3) * self.wanted

    @cached_property
    def place(self) -> slice:
        """The words of the best sentence."""
        ends = [*self.source.firsts.tolist()[1:], len(self.source.words)]
        return slice(int(self.source.firsts[self.best]), ends[self.best])


def features(of: Asked) -> dict[str, float]:
    """Return the value of each feature by name."""
    return dict([*_cosines(of), *_aligned(of), *_opposed(of), *_absent(of), *_expected(of)])


def prototype(of: Asked) -> dict[str, float]:
    """Return the features of the prototype: cosine and coverage, in the best sentence and in all passages."""
    weights, stems = of.weights, of.stems
    share = [(found.any(axis=1) * weights).sum() / weights.sum() for found in (stems, stems[:, of.place])]
    near = [(found.max(axis=1) * weights).sum() / weights.sum() for found in (of.sims, of.sims[:, of.place])]
    names = ("stems", "stems in best", "near", "near in best")
    return {**dict(_cosines(of)), **dict(zip(names, map(float, [*share, *near]), strict=True))}


def question_only(of: Asked) -> dict[str, float]:
    """Return what the question alone says: the control, which never reads a passage."""
    text = of.question.text
    return {
        "words": float(np.log1p(len(text.words))),
        "content": float(np.log1p(text.content.sum())),
        "negates": float(bool(_NEGATION.search(text.text))),
        "opposite": float(any(word in ANTONYMS for word in text.words)),
        "names": float(_names(of).sum()),
        "figures": float(len(numbers(text.text))),
        **{f"asks {word}": float(text.words[of.at] == word) for word in sorted(_WH)},
    }


def _cosines(of: Asked) -> Iterator[tuple[str, float]]:
    found = np.sort(of.sentences @ of.asked)[::-1]
    yield "cosine", float(found[0])
    yield "cosine, margin", float(found[0] - found[min(1, len(found) - 1)])
    yield "cosine, above mean", float(found[0] - found.mean())
    yield "cosine of passage", float((of.passages @ of.asked).max())


def _aligned(of: Asked) -> Iterator[tuple[str, float]]:
    """Yield how near the question's words are to the passages', and the least of them."""
    around = of.by_sentence[:, max(0, of.best - 1) : of.best + 2].max(axis=1)
    ways = {"all": of.sims.max(axis=1), "best": of.by_sentence[:, of.best], "around": around}
    for name, found in ways.items():
        lowest = np.sort(found[of.wanted])
        yield f"near, {name}", float((found * of.weights).sum() / of.weights.sum())
        yield f"near, mean, {name}", float(lowest.mean())
        for count in (1, 2, 3):
            yield f"near, lowest {count}, {name}", float(lowest[:count].mean())
    there = of.wanted & of.stems.any(axis=1)
    used = np.where(of.stems, of.sims, -1).max(axis=1)[there]
    yield "same word used alike", float(used.mean()) if len(used) else 0.7
    yield "same word used least alike", float(used.min()) if len(used) else 0.6
    yield "matches apart", _apart(of)


def _other_prefix(stem: str, stems: Collection[str]) -> bool:
    """Return whether there is a stem that differs by a prefix that denies: unequal, equal."""
    if len(stem) < 4:
        return False
    bare = (stem.removeprefix(prefix) for prefix in _PREFIXES if stem.startswith(prefix))
    return any(len(each) > 3 and each in stems for each in bare) or any(
        f"{prefix}{stem}" in stems for prefix in _PREFIXES
    )


def _apart(of: Asked) -> float:
    """Return the logarithm of how many words of the best sentence the matched words span."""
    near = np.maximum(of.sims, of.stems)[of.wanted][:, of.place]
    places = near.argmax(axis=1)[near.max(axis=1) >= _MATCHED]
    return float(np.log1p(places.max() - places.min())) if len(places) > 1 else 2.0


def _opposed(of: Asked) -> Iterator[tuple[str, float]]:
    """Yield negations and antonyms that only one side has."""
    for verb, pattern in (("negates", _NEGATION), ("denies", _DENIAL)):
        asks = bool(pattern.search(of.question.text.text))
        says = bool(pattern.search(of.source.sentences[of.best]))
        yield f"only the question {verb}", float(asks and not says)
        yield f"only the sentence {verb}", float(says and not asks)
        yield f"both {verb}", float(asks and says)
    everywhere, here = set(of.source.words), set(of.source.words[of.place])
    stems = set(of.source.stems)
    yield (
        "prefix put on or off",
        float(any(_other_prefix(stem, stems) for stem in of.question.text.stems if stem not in stems)),
    )
    words = [word for word in of.question.text.words if word in ANTONYMS]
    yield "opposite in the sentence", float(any(word not in here and ANTONYMS[word] & here for word in words))
    absent = [word for word in words if word not in everywhere]
    yield "opposite in the passages", float(any(ANTONYMS[word] & everywhere for word in absent))
    yield "word with an opposite is absent", float(bool(absent))


def _absent(of: Asked) -> Iterator[tuple[str, float]]:
    """Yield which of the question's words, figures and names are absent from the best sentence, and from all."""
    text, everywhere = of.question.text, of.stems.any(axis=1)
    here = of.stems[:, of.place].any(axis=1)
    yield "absent here, weight", float((of.question.weights * (of.wanted & ~here)).max())
    yield "absent here", float((of.wanted & ~here).sum())
    figures = np.array([word[:1].isdigit() for word in text.words], bool)
    for name, chosen in (("figure", figures), ("name", _names(of) & of.wanted)):
        yield f"{name}", float(chosen.any())
        yield f"{name} absent", float((chosen & ~everywhere).any())
        yield f"{name} absent here", float((chosen & ~here).any())
        yield f"{name} elsewhere", float((chosen & everywhere & ~here).any())
    others = of.wanted & ~figures & ~_names(of)
    yield "other words absent", float((others & ~everywhere).sum())
    nearest = (("all", of.sims.max(axis=1)), ("best", of.by_sentence[:, of.best]))
    yield from (
        (f"other words, lowest, {way}", float(near[others].min()) if others.any() else 0.6) for way, near in nearest
    )


def _names(of: Asked) -> Bools:
    """Return which words are capitalised inside the question."""
    text = of.question.text
    found: Bools = np.array([word[:1].isupper() for word in text.written], bool) & text.content
    found[0] = False
    return found


def _expected(of: Asked) -> Iterator[tuple[str, float]]:
    """Yield whether the best sentence has something of the kind that is asked for, which the question does not name."""
    kind = _kind(of.question.text.words, of.at)
    new = ~np.asarray(of.stems[of.question.text.content].any(axis=0))
    written = [word for each in of.source.passages for word in each.text.written]
    rows = np.flatnonzero(new[of.place]) + of.place.start
    said = [written[row] for row in rows if row != of.place.start]
    have = {
        "when": any(_YEAR.fullmatch(word) or word.lower() in _MONTHS or word[:1].isdigit() for word in said),
        "who": any(word[:1].isupper() for word in said),
        "where": any(word[:1].isupper() for word in said),
        "how many": bool(numbers(" ".join(said))),
    }
    for name, found in have.items():
        yield f"asks {name}, not there", float(kind == name and not found)
        yield f"asks {name}, there", float(kind == name and found)
    yield "new words", float(np.log1p(len(said)))


def _kind(words: Sequence[str], at: int) -> str:
    """Return the kind of answer: who, when, where, how many; empty where the question does not say."""
    word, after = words[at], frozenset(words[at + 1 : at + 1 + _REACH])
    if word in ("who", "whom", "whose"):
        return "who"
    if word == "when" or (word in ("what", "which") and after & _TIMES):
        return "when"
    if word == "where" or (word in ("what", "which") and after & _PLACES):
        return "where"
    return "how many" if word in ("what", "which", "how") and after & _COUNTS else ""
