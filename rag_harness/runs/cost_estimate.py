"""The estimated cost of a recording run, before its first call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from rag_harness.core.progress import report
from rag_harness.core.protocols import ChatModel, Pipeline
from rag_harness.core.registry import model_name
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import prices_of
from rag_harness.core.types import Case
from rag_harness.models.calls import asked_again
from rag_harness.models.endpoints import chat_name, embedder_name
from rag_harness.models.openai_chat import Expected, counting_chat
from rag_harness.pipelines.experiments import built_in, endpoints_of
from rag_harness.pipelines.experiments import experiment as build_experiment
from rag_harness.pipelines.parts import RunParts

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline


_TOGETHER = 16
FORECAST = "counting what to ask:"
"""The name by which the work reports."""
_BYTES_A_TOKEN = 4


@dataclass
class Forecast:
    """Calls and tokens of a run.

    ``texts`` go to an embedding server first. The prompts of ``unknown`` trials are known only after that. Prompts are
    also unknown with users' own pipelines and chat adapters, with the run's ``rag_scrub``, and where turns continue
    from answers. ``services`` has for each service the number of questions to ask, the number of recorded ones, and the
    cost in USD where it is known.
    """

    chat: Expected = field(default_factory=Expected)
    texts: Sequence[str] = ()
    unknown: int = 0
    services: dict[str, tuple[int, int, float | None]] = field(default_factory=dict)
    cost: float | None = None

    def line(self) -> str:
        """Return the forecast in one line."""
        usage, sent = self.chat.usage, len(self.chat.to_send)
        money = f", {self.cost:.2f} USD" if self.cost is not None else ""
        only_services = self.services and not (sent or self.chat.recorded or self.texts)
        said = [] if only_services else [f"{sent} answers to ask for, {len(self.chat.recorded)} are recorded"]
        for name, (asked, recorded, usd) in self.services.items():
            price = f", {usd:.2f} USD" if usd is not None else ""
            said.append(f"{asked} questions to {name}, {recorded} are recorded{price}")
        if sent:
            said.append(f"at most {usage.prompt_tokens:,} tokens in and {usage.completion_tokens:,} out{money}")
        if self.texts:
            tokens = sum(len(text.encode("utf-8", "replace")) for text in self.texts) // _BYTES_A_TOKEN
            said.append(f"{len(self.texts)} texts to embed, about {tokens:,} tokens")
        if self.unknown:
            said.append(f"{self.unknown} trials whose prompts are not known yet")
        return "rag: recording: " + "; ".join(said)


def forecast(parts: RunParts, trials: Mapping[str, Sequence[Case]], queries: Sequence[str]) -> Forecast:
    """Return the calls of ``trials`` (cases by experiment) that are not recorded."""
    found = Forecast(texts=_texts_to_send(parts, queries))
    counts = chat_name(parts.settings) == "openai"
    counting = _Counting(parts.settings, parts.scrub, found.chat) if counts else parts
    progress = _Progress(sum(map(len, trials.values())))
    for name, cases in trials.items():
        if name in endpoints_of(parts.settings):
            asked = _known_now(parts, name, cases)
            found.services[name] = _of_service(parts, name, asked)
            found.unknown += len(cases) - len(asked)
            progress.add(len(cases))
            continue
        # Users' own pipelines and chat adapters would really call.
        experiment = build_experiment(name, counting) if counts and name in built_in() else None
        if experiment is None or (found.texts and experiment.retriever is not None):
            found.unknown += len(cases)
            progress.add(len(cases))
        else:
            for times in range(max(parts.settings.repeats, 1)):
                with asked_again(times):
                    asyncio.run(_ask_all(experiment.pipeline, cases, progress if not times else None))
    progress.end()
    settings, usage = parts.settings, found.chat.usage
    prices = prices_of(settings)
    model = model_name("chat", settings.chat_model)
    found.cost = prices.cost(model, usage.prompt_tokens, usage.completion_tokens)
    return found


def _known_now(parts: RunParts, name: str, cases: Sequence[Case]) -> Sequence[Case]:
    """Leave out turns whose recordings depend on unknown answers because the service stores conversations itself."""
    has_sessions = bool(endpoints_of(parts.settings)[name].session)
    return [case for case in cases if not (has_sessions and case.query.history)]


def _of_service(parts: RunParts, name: str, cases: Sequence[Case]) -> tuple[int, int, float | None]:
    pipeline = cast("EndpointPipeline", build_experiment(name, parts).pipeline)
    times = max(parts.settings.repeats, 1)
    recorded = 0
    for repeat in range(times):
        with asked_again(repeat):
            recorded += sum(pipeline.is_recorded(case.query) for case in cases)
    asked, usd = len(cases) * times - recorded, endpoints_of(parts.settings)[name].usd_per_call
    return asked, recorded, None if usd is None else usd * asked


class _Counting(RunParts):
    """The parts of a run with a chat model that counts its calls and sends none."""

    def __init__(self, settings: Settings, scrub: Callable[[str], str] | None, expected: Expected) -> None:
        super().__init__(settings, scrub)
        self._expected = expected

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> ChatModel:
        sampling: dict[str, Any] = {"temperature": temperature, "max_output_tokens": max_output_tokens}
        asked = self.endpoints.settings_of(role, **sampling, model=model)
        return counting_chat(asked, self.cassettes, self._expected)


def _texts_to_send(parts: RunParts, queries: Sequence[str]) -> list[str]:
    if embedder_name(parts.settings) != "openai":
        return []
    retrieval = parts.retrieval()
    chunks = [chunk.text for chunk in retrieval.chunks]
    return [*retrieval.embedder.missing(chunks, "document"), *retrieval.embedder.missing(queries, "query")]


class _Progress:
    """Reports how many trials were counted."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self.add(0)

    def add(self, trials: int) -> None:
        # The work is over when all is reported, and the last experiment may be asked several times.
        self._done += trials
        if self._total:
            report(FORECAST, min(self._done, self._total - 1), self._total, "trials")

    def end(self) -> None:
        if self._total:
            report(FORECAST, self._total, self._total, "trials")


async def _ask_all(pipeline: Pipeline, cases: Sequence[Case], progress: _Progress | None = None) -> None:
    for start in range(0, len(cases), _TOGETHER):
        some = cases[start : start + _TOGETHER]
        await asyncio.gather(*(_ask(pipeline, case) for case in some))
        if progress is not None:
            progress.add(len(some))


async def _ask(pipeline: Pipeline, case: Case) -> None:
    # The usual end is NotSentError. Any earlier error is reported by the trial itself.
    with suppress(Exception):
        await pipeline.answer(case.query)
