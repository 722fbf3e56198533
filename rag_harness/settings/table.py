"""Every option, declared once: name, type, default, help and where it can be set.

A stdlib dataclass, so that the plugin can read it in any suite at no cost; ``loading`` fills it.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Mode = Literal["auto", "replay", "record", "live"]
Precision = Literal["float32", "bfloat16"]


def option(default: T, help_: str, *, env: str = "", flag: bool = True, **limits: Any) -> T:
    """Declare an option. ``env`` replaces the usual ``RAG_<NAME>``; ``limits`` are pydantic's (ge, le, min_length)."""
    made: T = field(default=default, metadata={"help": help_, "env": env, "flag": flag, "limits": limits})
    return made


def path_option(default: str, help_: str, *, env: str = "") -> str:
    """Declare a path. On the command line it starts from the current folder, elsewhere from rootdir."""
    made: str = field(default=default, metadata={"help": help_, "env": env, "flag": True, "path": True})
    return made


def secret(help_: str, env: str) -> str:
    """Declare a key: environment and ``.env`` only, never shown."""
    made: str = field(default="", metadata={"help": help_, "env": env, "flag": False, "secret": True}, repr=False)
    return made


@dataclass(frozen=True)
class Settings:
    """The effective settings of a run."""

    kb_dir: str = path_option("data/kb", "folder of Markdown pages", env="KB_DIR")
    queries: str = path_option("", "queries.jsonl; default: the one in the knowledge base's folder")
    output: str = path_option("output", "folder for result files")
    prompts: str = path_option("", "folder of prompt files that replace the built-in ones, e.g. e3.system.md")
    logs: str = path_option("logs", "folder for the log file")
    cassettes: str = path_option("cassettes", "folder of recordings")
    cache_dir: str = path_option(".rag_cache", "folder for vectors that were computed locally; safe to delete")

    profile: str = option("embedded", "named set of models and endpoints: embedded, openrouter, mock or your own")
    mode: Mode = option("auto", "auto, replay, record or live")
    dry_run: bool = option(False, "the same as mode replay", env="DRY_RUN", flag=False)
    rerecord: bool = option(False, "in mode record, call again what is recorded")
    overwrite: bool = option(False, "start result files anew instead of resuming", env="OVERWRITE")

    chat_model: str = option("", "chat model; default: the profile's")
    chat_base_url: str = option("", "OpenAI-compatible endpoint; default: the profile's")
    embed_model: str = option("", "embedding model; default: the profile's")
    embed_max_tokens: int = option(0, "longest input of a local embedding model in tokens; 0 is its default", ge=0)
    precision: Precision = option("float32", "of local models' weights: float32, or bfloat16 where the CPU knows it")
    embed_base_url: str = option("", "endpoint for embeddings; default: the profile's")
    rerank_model: str = option("", "reranker; default: the profile's")
    index: str = option("qdrant", "vector index, by its registered name")
    qdrant_url: str = option("", "Qdrant server or cluster; default: in memory")
    temperature: float = option(0.0, "sampling temperature of the chat model", ge=0, le=2)
    seed: int = option(7, "seed sent to the chat model")
    max_output_tokens: int = option(1024, "longest answer in tokens", ge=1)

    top_k: int = option(5, "chunks that go into the prompt", ge=1)
    candidates: int = option(20, "chunks that the first stage hands to the reranker", ge=1)
    chunk_size: int = option(512, "longest chunk in tokens", ge=16)
    chunk_overlap: int = option(128, "tokens repeated between pieces of a long section", ge=0)

    golden: str = path_option("golden.json", "golden set: JSON, or CSV with query,expected_document_id,justification")
    dataset: str = option("", "golden suite on a public collection instead: beir:DIR or beir:FILE.zip")
    retriever: str = option("dense", "of the golden suite: dense, bm25, hybrid, reranked or an experiment's id")
    k: int = option(10, "cutoff of the golden suite", ge=1)
    gate: tuple[str, ...] = option((), 'threshold on an aggregate, repeatable: "e3: recall@5 >= 0.9"')
    gate_partial: bool = option(False, "judge gates although a selection left cases out")
    strict: bool = option(False, "a miss of the golden suite is a failure")
    misses: str = path_option("", "write the misses of the golden suite to this file, as JSONL")
    export: str = option("", "write run and qrels of the golden suite: trec:DIR")
    save: str = option("", "keep this run as a baseline under this name")
    compare: str = option("", "set this run against the baseline of this name")
    baselines: str = path_option("baselines", "folder of saved baselines")

    concurrency: int = option(16, "trials in flight at once, in the whole run", ge=1)
    limit: int = option(0, "only the first N queries; 0 is all", ge=0)
    timeout: float = option(60.0, "seconds one model call may take", gt=0, allow_inf_nan=False)
    deadline: float = option(
        300.0, "seconds one trial may take, waiting for caps not counted", gt=0, allow_inf_nan=False
    )
    rpm: float = option(0.0, "most chat calls a minute, in the whole run; 0 is no cap", ge=0, allow_inf_nan=False)
    tpm: float = option(0.0, "most tokens a minute, in the whole run; 0 is no cap", ge=0, allow_inf_nan=False)
    budget: float = option(0.0, "most USD the run's chat calls may cost; 0 is no limit", ge=0, allow_inf_nan=False)
    prices: str = path_option("", "TOML table of prices that extends and overrides the one shipped")

    openrouter_api_key: str = secret("key for OpenRouter", "OPENROUTER_API_KEY")
    openai_api_key: str = secret("key for OpenAI embeddings", "OPENAI_API_KEY")
    chat_api_key: str = secret("key for another chat endpoint", "RAG_CHAT_API_KEY")

    chat_api_key_env: str = option("", "name of the variable that holds the chat key", flag=False)
    gates_elsewhere: tuple[tuple[str, str], ...] = option((), "ini gates of other data, each with why", flag=False)
    rootdir: str = option(".", "folder that relative paths start from: that of the ini file", flag=False)

    def path(self, value: str) -> Path:
        """Return ``value`` as a path, relative ones below rootdir."""
        return Path(self.rootdir) / value

    @property
    def chat_key(self) -> str:
        """The key for the chat endpoint: the one made for it, or the one that the profile names."""
        if self.chat_api_key or not self.chat_api_key_env:
            return self.chat_api_key
        own = {"OPENROUTER_API_KEY": self.openrouter_api_key, "OPENAI_API_KEY": self.openai_api_key}
        return own.get(self.chat_api_key_env, "")

    @property
    def prices_path(self) -> Path | None:
        """The user's own table of prices, if there is one."""
        return self.path(self.prices) if self.prices else None

    @property
    def queries_path(self) -> Path:
        """Where the queries are read from."""
        return self.path(self.queries) if self.queries else self.path(self.kb_dir) / "queries.jsonl"


def options() -> list[Field[Any]]:
    """Return the options that have a command-line flag and an ini key."""
    return [each for each in fields(Settings) if each.metadata["flag"]]


def env_name(each: Field[Any]) -> str:
    """Return the environment variable of an option."""
    return each.metadata["env"] or f"RAG_{each.name.upper()}"


def masked(settings: Settings) -> dict[str, Any]:
    """Return all settings by name with every key masked, for logs."""
    return {
        each.name: ("set" if getattr(settings, each.name) else "not set")
        if each.metadata.get("secret")
        else getattr(settings, each.name)
        for each in fields(Settings)
    }
