"""The interface between judged measures and judges: questions, material, claims, criteria and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from rag_harness.core.errors import NotJudgedError
from rag_harness.core.processes import is_long
from rag_harness.core.text.terms import CITATION
from rag_harness.core.types import Case, Message
from rag_harness.evaluation.expectations.rubrics import Criterion, Rubric
from rag_harness.evaluation.measures.measure import Score
from rag_harness.records.expectations import ExpectationResult

# The interface between judged measures and judges: questions, material, verdicts. Pure; it imports no model.

ClaimedText: TypeAlias = Literal["answer", "ground_truth", "nuggets"]
"""The text that claims are taken from. In ``nuggets``, each quote of the evidence is one claim as it stands."""
SupportSource: TypeAlias = Literal["contexts", "gold_pages", "answer", "ground_truth"]
"""The text that may support claims."""


class Support(NamedTuple):
    """A question to a judge: which claims of ``claims`` does ``source`` support?"""

    claims: ClaimedText
    source: SupportSource


JudgeQuestion: TypeAlias = Support | Literal["usefulness", "relevancy"]
"""A question to a judge. ``usefulness``: was each chunk useful for arriving at the ground truth? ``relevancy``: is the
answer to the point?"""


@dataclass(frozen=True, slots=True)
class Material:
    """One answer, and the texts for judging it. Any may be empty; ``contexts`` are the chunks of its prompt, in order.

    ``gold_pages`` are the whole texts of the relevant documents, ``quotes`` the passages in them that carry the answer.
    ``retrieves`` is False where the experiment is declared to retrieve nothing.
    """

    question: str
    answer: str
    contexts: tuple[str, ...] = ()
    ground_truth: str = ""
    gold_pages: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    abstained: bool = False
    answerable: bool = True
    retrieves: bool = True

    @property
    def has_context(self) -> bool:
        """Whether a context has any text."""
        return any(context.strip() for context in self.contexts)

    @property
    def is_long(self) -> bool:
        """Whether a judge that computes does so where it can be ended."""
        return is_long(self.answer, (self.ground_truth, *self.contexts, *self.gold_pages))


def texts_of(material: Material, which: ClaimedText | SupportSource) -> tuple[str, ...]:
    """Return the texts that claims are taken from, or that may support them."""
    of = {"answer": (material.answer,), "ground_truth": (material.ground_truth,), "nuggets": material.quotes}
    return {**of, "contexts": material.contexts, "gold_pages": material.gold_pages}[which]


def passages_of(material: Material, source: SupportSource) -> dict[int, str]:
    """Return the passages that are not empty, by their position."""
    return {place: text for place, text in enumerate(texts_of(material, source)) if text.strip()}


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a text.

    ``start`` and ``end`` are its position in that text; -1 where the judge has rephrased it. ``citations`` are the
    sources that the answer names for it, from 1; ``text`` does not contain their marks.
    """

    text: str
    start: int = -1
    end: int = -1
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on one claim.

    ``value`` is 1 if the claim is supported, 0 if not; some judges give a probability. It is None where there is no
    verdict; ``reason`` then explains it. ``passage`` is the position of the supporting passage, from 0.
    """

    claim: Claim
    value: float | None
    passage: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A judge's verdicts on all claims of a text, in the order of the text.

    ``share`` is the judge's own estimate of the supported share, in [0, 1], where that is better than the mean of its
    verdicts. ``detail`` has further output of the judge, plain JSON by name.
    """

    each: tuple[Verdict, ...]
    share: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


NOTHING_TO_JUDGE_BY = "no text to judge by"


def unjudged(claims: ClaimedText) -> Verdicts:
    """Return that claims have no text to judge them by."""
    return Verdicts((Verdict(Claim(claims), None, reason=NOTHING_TO_JUDGE_BY),))


@dataclass(frozen=True, slots=True)
class Usefulness:
    """Whether one chunk was useful for arriving at the ground truth; None without a verdict."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relevancy:
    """The relevancy of an answer: ``value`` is a mean cosine, in [-1, 1]; None where it could not be computed."""

    value: float | None
    noncommittal: bool = False
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


class Opinion(Protocol):
    """One judge's view of one answer. Each question is asked once, however many measures use the result.

    A failure of the judge (no such model, unreadable even after it was asked again) is raised as a RagHarnessError. The
    scores that depend on it are then None, with that reason.
    """

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        """Return a verdict for each claim of ``claims``; none where the text has no claims."""
        ...

    async def usefulness(self) -> Sequence[Usefulness]:
        """Return one verdict a chunk, in the order of the contexts."""
        ...

    async def relevancy(self) -> Relevancy:
        """Return the relevancy of the answer."""
        ...


class Judge(Protocol):
    """Answers the questions of judged measures: an LLM of role ``judge``, or the embedded judge. Reports name it.

    ``asks_model``, ``deterministic`` and ``reads_conversation`` are read before the first question, from the class
    where it has all three. A judge without them counts as one that asks no model, may change its verdicts, and reads
    earlier turns.
    """

    @property
    def name(self) -> str:
        """The kind of judge: fused, ragas, embedded."""
        ...

    @property
    def asks_model(self) -> bool:
        """Whether it asks the chat model of role ``judge``, whose server, key and price are then checked."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether it says the same of the same answer, however often it is asked."""
        ...

    @property
    def reads_conversation(self) -> bool:
        """Whether it understands a question with the messages before it; one that compares words does not."""
        ...

    @property
    def model(self) -> str:
        """The name of its chat model, or of the embedded model."""
        ...

    @property
    def revision(self) -> str:
        """Digest of its prompts or coefficients, which also decide its verdicts."""
        ...

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        """Return its opinion of ``material``. It may combine the questions ``asks``, which will be asked."""
        ...


NOT_ANSWERABLE = "no answer in the documents"
NO_GROUND_TRUTH = "no ground truth"
NO_CONTEXT = "no context: not defined without one"
FOUND_NOTHING = "no context, so nothing is supported"
"""Why an answer of an experiment that retrieves has the worst value: its retrieval has found nothing."""
ABSTAINED = "an abstention, which claims nothing"
RIGHT_ABSTENTION = "a right abstention"

TOO_SHORT = "too short to judge without a model"
REPEATS = "it repeats the question"
NO_SUMMARY = "not judged: a summary, where counting words is as good as the embedded judge"
OTHER_LANGUAGE = "not judged: language"
"""Why judges without an LLM abstain; the last one is followed by the code of the language."""
ABSTENTIONS = (TOO_SHORT, REPEATS, NO_SUMMARY, OTHER_LANGUAGE)


def no_truth(of: Case | Material) -> str:
    """Return why the case lacks a ground truth to compare with; empty where it has one."""
    if not of.answerable:
        return NOT_ANSWERABLE
    return "" if of.ground_truth.strip() else NO_GROUND_TRUTH


def says_nothing(material: Material) -> bool:
    """Return whether the answer is an abstention, or contains nothing but citation marks."""
    return material.abstained or not CITATION.sub("", material.answer).strip()


# What a judge says of citations: each claim of an answer, and how far each source of its prompt supports it, alone.
#
# The judge does not see what the answer cites. So it is not led by a citation, and a source that nobody cited is judged
# like the others.

CITATIONS = cast("JudgeQuestion", "citations")
"""A question to a judge: which sources support each claim of the answer? It is not in the alias ``JudgeQuestion``: the
shipped judgements are named by the text of that file."""
FULL, PARTIAL, NONE = "full", "partial", "none"
SUPPORTS_FROM = 0.5
"""Value from which a source supports a claim, at least in part."""


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """How far one source supports a claim.

    Attributes:
        source: number of the source in the prompt, from 1, as citations name it.
        value: 1 full, 0.5 partial, 0 none; some judges give a probability. None without a verdict.
        quote: the words of the source that support the claim; empty where none do, or the judge named none.
        reason: why the verdict or the quote is missing.
    """

    source: int
    value: float | None
    quote: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim of the answer, with a verdict for each source of the prompt.

    Attributes:
        claim: the claim; its ``citations`` are the sources that the answer names for it.
        sources: the verdicts, one a source. A source that is not among them does not exist, or has no text.
        needs: whether the claim needs a citation.
        together: 1 if all sources of the prompt together support the claim; None where the judge does not say.
    """

    claim: Claim
    sources: tuple[SourceVerdict, ...]
    needs: bool = True
    together: float | None = None

    def verdict(self, source: int) -> SourceVerdict:
        """Return the verdict on a source. A source that the prompt does not have supports nothing."""
        found = (each for each in self.sources if each.source == source)
        return next(found, SourceVerdict(source, 0.0, reason="no such source in the prompt"))

    @property
    def cited(self) -> tuple[SourceVerdict, ...]:
        """The verdicts on the sources that the answer cites for the claim."""
        return tuple(map(self.verdict, self.claim.citations))

    @property
    def others(self) -> tuple[SourceVerdict, ...]:
        """The verdicts on all other sources."""
        return tuple(each for each in self.sources if each.source not in self.claim.citations)


@runtime_checkable
class OpinionOfCitations(Protocol):
    """An opinion that answers the question ``CITATIONS``, too."""

    async def citations(self) -> Sequence[CitedClaim]:
        """Return each claim of the answer, in the order of the text, with a verdict for each source."""
        ...


async def cited_claims(opinion: Opinion) -> Sequence[CitedClaim]:
    """Return what ``opinion`` says of citations.

    Raises:
        NotJudgedError: its judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if not isinstance(opinion, OpinionOfCitations):
        raise NotJudgedError("cannot be measured: this judge does not say which source supports a claim")
    return await opinion.citations()


def word_of(value: float) -> str:
    """Return full, partial or none for a value; a probability from 0.5 is full, below it none."""
    return PARTIAL if value == 0.5 else FULL if value >= SUPPORTS_FROM else NONE


CRITERIA = cast("JudgeQuestion", "criteria")
"""A question to a judge: which criteria does the answer meet? It is not in the alias ``JudgeQuestion``."""
MOST_TOGETHER = 12
"""The most criteria that a judge is asked about in one call."""
MEETS_FROM = 0.5
"""Value from which an answer meets a criterion."""


@dataclass(frozen=True, slots=True)
class MaterialOfCase(Material):
    """An answer with the expectations of its case.

    Attributes:
        expected: the case's expectations, each with its result by the row alone.
        criteria: all criteria that a judge is asked about, each once.
        rubrics: the rubrics that the answer is judged by, by name.
    """

    expected: tuple[ExpectationResult, ...] = ()
    criteria: tuple[str, ...] = ()
    rubrics: Mapping[str, Rubric] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """A judge's verdict on one criterion.

    Attributes:
        criterion: the criterion, as it was asked.
        value: 1 if the answer meets it, 0 if not; some judges give a probability. None where the judge cannot tell.
        quote: the words of the answer that decide it; empty where no words do.
        start: where in the answer the quote begins; -1 where there is none.
        end: where the quote ends.
        reason: why the verdict is missing, or the judge's explanation.
    """

    criterion: str
    value: float | None
    quote: str = ""
    start: int = -1
    end: int = -1
    reason: str = ""


@runtime_checkable
class OpinionOfCriteria(Protocol):
    """An opinion that answers the question ``CRITERIA``, too."""

    async def criteria(self) -> Sequence[CriterionVerdict]:
        """Return a verdict for each criterion of the material, in its order."""
        ...


@runtime_checkable
class OpinionOfNearness(Protocol):
    """An opinion that says how near the answer is to a text."""

    async def nearness(self, text: str) -> float:
        """Return the cosine of the answer and ``text``, in [-1, 1].

        Raises:
            RagHarnessError: it cannot be computed. The message has the reason.
        """
        ...


@dataclass(frozen=True, slots=True)
class LevelReached:
    """How far up a scale an answer is, from 0 on the worst level to 1 on the best; ``said`` names the level."""

    value: float
    said: str


@runtime_checkable
class OpinionOfLevels(Protocol):
    """An opinion that says how far up a scale the answer is."""

    async def level(self, scale: Criterion) -> LevelReached | None:
        """Return how far up a scale the answer is; None where only binary criteria tell."""
        ...


async def criteria_met(opinion: Opinion, wanted: Sequence[str]) -> list[CriterionVerdict]:
    """Return the verdict on each criterion that is ``wanted``, from one opinion on all criteria of its material.

    Raises:
        NotJudgedError: the judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if not isinstance(opinion, OpinionOfCriteria):
        raise NotJudgedError("cannot be measured: this judge does not say which criteria an answer meets")
    said = {each.criterion: each for each in await opinion.criteria()}
    return [said.get(each, CriterionVerdict(each, None, reason="the judge was not asked")) for each in wanted]


async def levels_reached(opinion: Opinion, scale: Criterion) -> tuple[float | None, str]:
    """Return how far up a scale an answer is, from 0 to 1, and what is said of it: the share of its levels above the
    worst that the answer reaches, where the judge does not tell more.

    Raises:
        NotJudgedError: the judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if isinstance(opinion, OpinionOfLevels) and (level := await opinion.level(scale)) is not None:
        return level.value, level.said
    met = await criteria_met(opinion, scale.asked)
    lacking = next((each for each in met if each.value is None), None)
    if lacking is not None:
        return None, lacking.reason or "the judge cannot tell"
    reached = [each.value is not None and each.value >= MEETS_FROM for each in met]
    name = scale.levels[sum(reached)]
    words = next((f": “{each.quote}”" for each in met if each.quote), "")
    return sum(reached) / len(reached), f"{name}{words}"


# What is asked about an answer to a turn, in words: criteria that a judge is asked like those of a rubric.
#
# A judge with a chat model is asked about all of them in one call, in the conversation. Any other judge answers by
# rules (``judges.conversations``), or says that it cannot tell.

ASKS_NOTHING_AGAIN = "does not ask the user for anything that the user has already said in the conversation"
CONTRADICTS_NOTHING = (
    "contradicts nothing that was said before in the conversation, by the user or by the assistant, unless it says "
    "openly that it puts that right"
)
CORRECTS = "makes the user see that what the user takes for granted is not so"
ASKS_BACK = "asks the user for what the question leaves open, or gives the answer for each case that it may mean"
ONLY_ASKS_BACK = "above all, asks the user for what the question leaves open"
"""As MTRAG-UN has it: an answer for each case does not count."""
OF_TURNS = ("retention", "correction", "asks_back", "faithfulness_mtrag")
"""The measures that ask these."""
_RIGHT = ". What is right: "
_LONGEST_TRUTH = 1_500


def with_truth(criterion: str, ground_truth: str) -> str:
    """Return a criterion with the ground truth behind it, where there is one."""
    truth = " ".join(ground_truth.split())
    return f"{criterion}{_RIGHT}{truth[:_LONGEST_TRUTH]}" if truth else criterion


def parts_of_criterion(criterion: str) -> tuple[str, str]:
    """Return a criterion without its ground truth, and the ground truth."""
    plain, _, truth = criterion.partition(_RIGHT)
    return plain, truth


def is_of_turns(criterion: str) -> bool:
    """Return whether a criterion is one of those of this file."""
    return parts_of_criterion(criterion)[0] in (
        ASKS_NOTHING_AGAIN,
        CONTRADICTS_NOTHING,
        CORRECTS,
        ASKS_BACK,
        ONLY_ASKS_BACK,
    )


@runtime_checkable
class AsksOfTurns(Protocol):
    """A measure that asks criteria about answers to turns."""

    def criteria(self, material: Material) -> Sequence[str]:
        """Return the criteria that are asked about an answer; empty where the measure asks none."""
        ...


def also_asking_of_turns(material: Material, measures: Sequence[object]) -> Material:
    """Return the material with the criteria that ``measures`` ask about an answer to a turn."""
    asked = [each for one in measures if isinstance(one, AsksOfTurns) for each in one.criteria(material)]
    if not asked:
        return material
    if not isinstance(material, MaterialOfCase):
        material = MaterialOfCase(**{each.name: getattr(material, each.name) for each in fields(material)})
    return replace(material, criteria=tuple(dict.fromkeys([*material.criteria, *asked])))


def score_of(met: Sequence[CriterionVerdict]) -> Score:
    """Return the score of criteria that must all be met: the lowest value, 0 or 1, or a probability.

    One that is not met decides, whatever is not known of the others.
    """
    detail = {"expectations": [_detail(each) for each in met]}
    broken = next((each for each in met if each.value is not None and each.value < MEETS_FROM), None)
    unknown = next((each for each in met if each.value is None), None)
    if broken is None and unknown is not None:
        return Score(None, unknown.reason or "the judge cannot tell", detail)
    value = min(each.value for each in met if each.value is not None)
    return Score(value, _why(broken) if broken is not None else "", detail)


def _why(said: CriterionVerdict) -> str:
    plain = parts_of_criterion(said.criterion)[0]
    return f"not: {plain}: {_words(said)}"


def _words(said: CriterionVerdict) -> str:
    return said.reason or (f"“{said.quote}”" if said.quote else "no words of the answer decide it")


def _detail(said: CriterionVerdict) -> dict[str, object]:
    place = {"start": said.start, "end": said.end} if said.start >= 0 else {}
    kept = None if said.value is None else said.value >= MEETS_FROM
    return {"expectation": parts_of_criterion(said.criterion)[0], "kept": kept, "said": _words(said), **place}


MOST_SAID = 12_000
"""The most characters of what was said before that a judge is shown, whole messages of the newest turns."""
LONGEST_MESSAGE = 4_000
"""The most characters of one message; of a longer one the beginning is shown."""
_CUT = " […]"
CORRECTION, UNDERSPECIFIED = "correction", "underspecified"
"""Kinds of turns that measures ask about: the user takes something wrong for granted; the question leaves open what it
is about."""
_TURN_KIND = "turn_kind"


@dataclass(frozen=True, slots=True)
class MaterialOfTurn(MaterialOfCase):
    """An answer to a turn.

    ``question`` is the turn's own words; ``contexts`` are those of this turn alone.

    Attributes:
        said: the earlier messages, the oldest first: as many as the judge gets.
        left_out: how many older messages a judge is not shown.
        kinds: which of the kinds that measures ask about the turn is of.
    """

    said: tuple[Message, ...] = ()
    left_out: int = 0
    kinds: frozenset[str] = frozenset()


def turn_material(material: Material, history: Sequence[Message], kinds: frozenset[str]) -> Material:
    """Return the material of a turn; the same material where it has no earlier messages and is of no kind."""
    if not history and not kinds:
        return material
    said = newest(history)
    plain = {each.name: getattr(material, each.name) for each in fields(material)}
    return MaterialOfTurn(**plain, said=said, left_out=len(history) - len(said), kinds=kinds)


def kinds_of(case: Case) -> frozenset[str]:
    """Return which of the kinds that measures ask about a case is of: its ``turn_kind``, or its query type."""
    return kinds_named(case.query_type, str(case.metadata.get(_TURN_KIND, "")))


def kinds_named(*names: str) -> frozenset[str]:
    """Return which of ``names`` are kinds that measures ask about."""
    return frozenset({CORRECTION, UNDERSPECIFIED}.intersection(names))


def said_before(material: Material) -> tuple[Message, ...]:
    """Return the messages before an answer; empty where it answers no turn, or the first one."""
    return material.said if isinstance(material, MaterialOfTurn) else ()


def newest(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the newest messages that a judge gets: as many whole ones as fit.

    The newest is there in any case.
    """
    kept: list[Message] = []
    room = MOST_SAID
    for each in reversed(history):
        shown = Message(each.role, _shortened(each.content))
        room -= len(shown.content)
        if room < 0 and kept:
            break
        kept.insert(0, shown)
    return tuple(kept)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - len(_CUT)] + _CUT
