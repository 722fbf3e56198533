"""Options, each declared once with its name, type, default and help, and the rights of each mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rag_harness.core.settings.removed import RARE_TABLE

if TYPE_CHECKING:
    from rag_harness.core.settings.configurations import ConfigurationSpec, ReliabilityNumbers
    from rag_harness.core.settings.endpoints import EndpointSpec
    from rag_harness.core.settings.loading import DataSpec, OwnOption
    from rag_harness.core.settings.roles import JudgeTable


Affects = Literal["data", "retrieval", "reranking", "generation", "judging", "golden", "reliability", "nothing"]
"""The part of a result that an option changes. A fingerprint has the options that affect what its experiment does.

Options of ``data`` name files, and the content of the files counts. Options of ``reliability``
count for the reliability engine alone. Options of ``nothing`` do not change results.
"""


# Every option, declared once: name, type, default, help and where it can be set.
#
# It is a stdlib dataclass, because the plugin reads it in every suite and it must be cheap. ``loading`` fills it.

_T = TypeVar("_T")
Mode = Literal["auto", "replay", "record", "live"]
Precision = Literal["float32", "bfloat16"]
Device = Literal["cpu", "cuda", "mps"]
EmbedBackend = Literal["torch", "onnx", "onnx-int8"]
VerdictBy = Literal["point", "evidence"]
WarnOrFail = Literal["warn", "fail"]
StopOrSkip = Literal["stop", "skip"]
EngineName = Literal["local", "ray"]
HistoryOf = Literal["gold", "own", "both"]
ForeignText = Literal["refuse", "allow"]
FailedTurn = Literal["shown", "skip"]
PanelRule = Literal["", "majority", "mean", "median"]
Population = Literal["like", "finite"]


def option(default: _T, help_: str, affects: Affects, *, env: str = "", flag: bool = True, **limits: Any) -> _T:
    """Declare an option. ``env`` replaces the usual ``RAG_<NAME>``; ``limits`` are pydantic's (ge, le, min_length)."""
    about = {"help": help_, "affects": affects, "env": env, "flag": flag, "limits": limits}
    made: _T = field(default=default, metadata=about)
    return made


def role_option(default: _T, help_: str, affects: Affects, **about: Any) -> _T:
    """Declare an option that a table of a profile sets, or the profile itself. It has no flag and no variable."""
    made: _T = field(
        default=default,
        metadata={"help": help_, "affects": affects, "env": "", "flag": False, "place": "a profile"} | about,
    )
    return made


def rare_option(default: _T, help_: str, affects: Affects, **limits: Any) -> _T:
    """Declare an option that ``[tool.rag_harness.settings]`` of pyproject.toml sets. It has no flag and no variable."""
    about = {"help": help_, "affects": affects, "env": "", "flag": False, "place": RARE_TABLE, "limits": limits}
    made: _T = field(default=default, metadata=about)
    return made


def path_option(default: str, help_: str, affects: Affects, *, env: str = "") -> str:
    """Declare a path. On the command line it is relative to the current folder, elsewhere to rootdir."""
    about = {"help": help_, "affects": affects, "env": env, "flag": True, "path": True}
    made: str = field(default=default, metadata=about)
    return made


def paths_option(help_: str, affects: Affects) -> tuple[str, ...]:
    """Declare an option of paths that may be repeated."""
    about = {"help": help_, "affects": affects, "env": "", "flag": True, "limits": {}, "path": True}
    made: tuple[str, ...] = field(default=(), metadata=about)
    return made


def address_option(default: str, help_: str, affects: Affects, key: str = "") -> str:
    """Declare the address of a server. ``key`` names the variable that its key comes from: the address holds none."""
    about = {"help": help_, "affects": affects, "env": "", "flag": True, "address": True, "key": key}
    made: str = field(default=default, metadata=about)
    return made


def derived(default: _T, help_: str, affects: Affects, *, if_set: bool = False) -> _T:
    """Declare a value that is derived from files and other options. It cannot be set directly.

    With ``if_set`` it counts for nothing where it has its default: results that were made before it was known stay.
    """
    about = {"help": help_, "affects": affects, "env": "", "flag": False, "derived": True, "if_set": if_set}
    made: _T = field(default=default, metadata=about)
    return made


def secret(help_: str, env: str) -> str:
    """Declare a secret key. It comes from the environment or ``.env``, nothing else holds it, and it is never shown."""
    about = {"help": help_, "affects": "nothing", "env": env, "flag": False, "secret": True}
    made: str = field(default="", metadata=about, repr=False)
    return made


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Settings:
    """The effective settings of a run.

    Methods that a dataclass would generate for 60 fields are written by hand: compiling them took 2 ms in every suite.
    """

    kb_dir: str = path_option("data/kb", "folder of documents: Markdown, text, HTML, PDF", "data", env="KB_DIR")
    queries: str = path_option(
        "", "queries.jsonl, or a table: CSV, Parquet; default: the one in the knowledge base's folder", "data"
    )
    map: tuple[str, ...] = option(
        (),
        "which column of a table of questions is which field, separated by commas, or repeatable: question=user_input",
        "nothing",
    )
    bad_queries: StopOrSkip = option(
        "stop",
        "if lines of queries.jsonl cannot be used: stop names them and runs nothing, skip leaves them out and says so",
        "data",
    )
    query_types: tuple[str, ...] = option(
        (),
        "types of questions of your own, separated by commas, or repeatable; needed for one that is spelt nearly "
        "like a known one",
        "nothing",
    )
    expect: tuple[str, ...] = option(
        (),
        'expectation that every answer must meet, a JSON object, repeatable: {"max_words": 120}',
        "nothing",
    )
    unreadable: StopOrSkip = option(
        "stop",
        "if documents cannot be read: stop names them and runs nothing, skip leaves them out and says so",
        "data",
    )
    charset: str = option(
        "",
        "charset of text and HTML files that are not UTF-8 and name none, e.g. cp1252; default: the likeliest",
        "data",
    )
    language: str = option(
        "auto",
        "language of all documents that state none, two letters: en, de, …; auto finds the language of each",
        "data",
    )
    output: str = path_option("output", "folder or directory for the results of runs", "nothing")
    project: str = path_option(
        "",
        "folder that has cassettes/, baselines/, judges/, rubrics/, snapshots/, reliability/ and prompts/; default: "
        "the folder of the ini file",
        "nothing",
    )
    logs: str = path_option("logs", "folder for the log file", "nothing")
    cache_dir: str = path_option(
        ".rag_cache", "folder for vectors that were computed locally; safe to delete", "nothing"
    )

    profile: str = option(
        "embedded", "named set of models and endpoints: embedded, simulated, openrouter, mock or your own", "generation"
    )
    mode: Mode = option("auto", "how models are asked: auto, replay, record or live", "nothing")
    dry_run: bool = option(
        False,
        "mode replay that also computes what it can here: call nobody, and let the mock answer where nothing else can",
        "nothing",
        env="DRY_RUN",
        flag=False,
    )
    rerecord: bool = option(False, "in mode record, call again what is recorded", "nothing")
    abridge: bool = option(
        False, "in mode record, keep of each long paragraph of a request its first words and a digest", "nothing"
    )
    overwrite: bool = option(False, "start result files again instead of resuming", "nothing", env="OVERWRITE")
    resume: bool = option(
        False,
        "go on with an interrupted run of a pipeline or service of your own: ask what has no answer yet",
        "nothing",
    )

    chat_model: str = role_option("", "chat model; default: the profile's", "generation")
    chat_base_url: str = role_option(
        "", "OpenAI-compatible endpoint; default: the profile's", "generation", address=True, key="RAG_CHAT_API_KEY"
    )
    embed_model: str = option("", "embedding model; default: the profile's", "retrieval")
    embed_max_tokens: int = option(
        0, "longest input of a local embedding model in tokens; 0 is its default", "retrieval", ge=0
    )
    precision: Precision = rare_option(
        "float32", "precision of local models' weights: float32, or bfloat16 where the CPU supports it", "retrieval"
    )
    # It changes the last digits of vectors and scores. The model's revision contains it.
    device: Device = option("cpu", "where local models run: cpu, or cuda or mps, a GPU that torch knows", "nothing")
    # The model's revision contains it, too.
    embed_backend: EmbedBackend = option(
        "torch",
        "what computes a local embedding model: torch, onnx (ONNX Runtime), or onnx-int8, with weights of eight bits",
        "nothing",
    )
    embed_base_url: str = role_option(
        "", "endpoint for embeddings; default: the profile's", "retrieval", address=True, key="OPENAI_API_KEY"
    )
    rerank_model: str = role_option("", "reranker; default: the profile's", "reranking")
    chunker: str = option("sections", "how pages are cut, by its registered name", "retrieval")
    index: str = option(
        "qdrant",
        "vector index, by its registered name: qdrant (Edge, or a server), memory (qdrant-client's in-memory mode)",
        "retrieval",
    )
    qdrant_url: str = address_option(
        "", "Qdrant server or cluster; default: an index in this process", "nothing", "QDRANT_API_KEY"
    )
    qdrant_api_key: str = secret("key for the Qdrant server", "QDRANT_API_KEY")
    qdrant_cluster: tuple[str, ...] = rare_option(
        (),
        "how a collection on the Qdrant server is spread and written, repeatable: shards=6 replicas=2 batch=512",
        "nothing",
    )
    qdrant_graph: tuple[str, ...] = rare_option(
        (),
        "search the Qdrant server by a graph, repeatable: m=16 ef=128 quantize=int8; default: every vector is compared",
        "nothing",
    )
    temperature: float = role_option(
        0.0, "sampling temperature of the chat model", "generation", limits={"ge": 0, "le": 2}
    )
    seed: int = role_option(7, "seed sent to the chat model", "generation")
    max_output_tokens: int = role_option(1024, "longest answer in tokens", "generation", limits={"ge": 1})
    max_answer: int = rare_option(
        200_000, "longest answer in characters; a longer one is a failed trial, however it came", "generation", ge=1
    )
    # It changes no figure: a trial with more has none.
    max_contexts: int = rare_option(
        1_000, "most contexts of an answer; a trial with more is a failed one, and none is left out", "nothing", ge=1
    )

    top_k: int = option(5, "top k: how many retrieved chunks, or passages, go into the prompt", "retrieval", ge=1)
    candidates: int = option(20, "chunks that the first stage hands to the reranker", "reranking", ge=1)
    chunk_size: int = option(512, "longest chunk in tokens", "retrieval", ge=16)
    chunk_overlap: int = option(128, "tokens repeated between pieces of a long section", "retrieval", ge=0)
    near_duplicates: float = option(
        0.0,
        "leave out chunks that share this part of their words with one of an earlier document, 0.9 say; 0 keeps all",
        "retrieval",
        ge=0,
        le=1,
    )

    golden: str = path_option(
        "golden.json",
        "golden set: JSON, CSV with query,expected_document_id,justification, or questions as JSONL",
        "data",
    )
    dataset: str = option(
        "",
        "public collection instead: beir:DIR, beir:FILE.zip, mtrag:CLONE/DOMAIN[/rewrite], mtragun:CLONE/DOMAIN",
        "data",
    )
    retriever: str = option(
        "dense", "retriever of the golden suite: dense, bm25, hybrid, reranked or an experiment's id", "golden"
    )
    k: int = option(10, "number of hits that the golden suite looks at: the k of recall@k", "golden", ge=1)
    gate: tuple[str, ...] = option((), 'threshold on an aggregate, repeatable: "e3: recall@5 >= 0.9"', "nothing")
    gate_partial: bool = option(False, "judge gates although a selection left cases out", "nothing")
    gate_unreviewed: bool = option(False, "judge gates on questions that nobody has reviewed, as on others", "nothing")
    verdict: VerdictBy = option(
        "point",
        "point: the value decides; evidence: every gate is judged as if it ended with @95%",
        "nothing",
    )
    family: float = option(
        0.0,
        "confidence with which all gates with evidence hold together, 0.95 say; 0 judges each gate by itself",
        "nothing",
        ge=0,
        lt=1,
    )
    undecided: WarnOrFail = option(
        "warn", "if a gate has too few cases to be decided: warn leaves the exit status alone, fail fails", "nothing"
    )
    not_judged: WarnOrFail = option(
        "warn", "a gate that could not be judged: warn leaves the exit status alone, fail fails", "nothing"
    )
    foreign_text: ForeignText = option(
        "refuse",
        "where most contexts have a text that the page which they name does not have, gates that go by names of pages "
        "are not judged: refuse; or allow, for pipelines that rewrite or translate what they find",
        "nothing",
    )
    max_age: str = option(
        "", "oldest that answers may be, 7d or 12h: gates on older ones fail as stale; default: any age", "nothing"
    )
    cluster: str = option(
        "",
        "what makes cases alike, for gates with evidence: source_page, conversation, a key of their metadata, none; "
        "default: conversation, where cases are turns",
        "nothing",
    )
    history: HistoryOf = option(
        "gold",
        "what was said before a turn of a conversation: gold, the reference replies, own, the pipeline's answers (its "
        "experiment is then called c1-own), or both",
        "nothing",
    )
    failed_turn: FailedTurn = rare_option(
        "shown",
        "after a turn that failed, with own history: shown asks later turns with what a user sees, skip asks none",
        "nothing",
    )
    population: Population = option(
        "like",
        "what gates with evidence are about: like, cases like these; finite, these cases and no others",
        "nothing",
    )
    stop_early: bool = option(
        False, "ask cases in random order, and stop asking an experiment when all its gates are settled", "nothing"
    )
    order_seed: int = rare_option(0, "seed of the order in which --rag-stop-early asks cases", "nothing")
    strict: bool = option(False, "a miss of the golden suite is a failure", "nothing")
    misses: str = path_option("", "write the misses of the golden suite to this file, as JSONL", "nothing")
    export: str = option("", "write run and qrels of the golden suite: trec:DIR", "nothing")
    report: str = path_option(
        "", "write the report of the run to this file, when it has ended: .html, .md, .csv or .parquet", "nothing"
    )
    otlp: str = address_option(
        "",
        "send spans and scores of each trial to this backend of OpenTelemetry, OTLP over HTTP: http://127.0.0.1:4318",
        "nothing",
        "OTEL_EXPORTER_OTLP_HEADERS",
    )
    save: str = option("", "keep this run as a baseline under this name", "nothing")
    compare: str = option("", "say what changed since the baseline of this name", "nothing")

    measures: tuple[str, ...] = option(
        (), "what is judged, by name, separated by commas, or repeatable; what a gate names is judged anyway", "nothing"
    )
    judge: str = option(
        "",
        "how answers are judged: embedded, fused, ragas or encoder; several separated by commas, fused@gpt-x,embedded, "
        "are a panel; default: embedded without an LLM, else fused",
        "judging",
    )
    panel: PanelRule = option("", "how several judges decide: majority, mean or median of their scores", "judging")
    judge_model: str = option(
        "",
        "chat model that judges, or the encoder's classifier; default: the profile's, else the chat model",
        "judging",
    )
    judge_base_url: str = role_option(
        "",
        "OpenAI-compatible endpoint of the judge; default: the chat model's",
        "judging",
        address=True,
        key="RAG_JUDGE_API_KEY",
    )
    writer_model: str = role_option(
        "", "chat model of role writer: other words for questions, summaries for t5", "nothing"
    )
    writer_base_url: str = role_option(
        "",
        "OpenAI-compatible endpoint of the writer; default: the chat model's",
        "nothing",
        address=True,
        key="RAG_WRITER_API_KEY",
    )
    rewrite_model: str = role_option(
        "", "chat model of role rewrite, which makes questions that stand alone", "nothing"
    )
    rewrite_base_url: str = role_option(
        "",
        "OpenAI-compatible endpoint of role rewrite; default: the chat model's",
        "nothing",
        address=True,
        key="RAG_REWRITE_API_KEY",
    )
    user_model: str = role_option(
        "", "chat model of role user, which plays the users of scenarios; default: a script plays them", "nothing"
    )
    user_base_url: str = role_option(
        "",
        "OpenAI-compatible endpoint of role user; default: the chat model's",
        "nothing",
        address=True,
        key="RAG_USER_API_KEY",
    )
    judge_repeats: int = option(
        0, "judge 50 of the rows so many times again, and say how often verdicts flip", "nothing", ge=0, le=20
    )
    repeats: int = option(
        0,
        "answer each query so many times: for gates such as pass^3(…), and to say where the noise is",
        "nothing",
        ge=0,
        le=100,
    )
    slices: tuple[str, ...] = option(
        (),
        "say for each slice which experiment wins: keys of the queries, with measures if you like: "
        '"query_type, topic: recall@5", repeatable',
        "nothing",
    )
    headline: tuple[str, ...] = option(
        (),
        "measures that the run in brief, the report and the comment speak of behind wrong answers, separated by "
        "commas; they are judged, too; default: those of gates, else factuality, hri and g_mean where they were judged",
        "nothing",
    )
    sections: tuple[str, ...] = option(
        (),
        "sections of the terminal summary: all, or their names separated by commas; default: the run in brief, with -v "
        "all, with -q gates and what they rest on",
        "nothing",
    )
    attribute: bool = option(
        False, "say why trials failed: run each failed one again with one thing changed, after the tests", "nothing"
    )
    tune: str = path_option(
        "", "after the tests, let the configurations of this space of parameters race: TOML", "nothing"
    )
    metamorphic: bool = option(
        False, "ask a sample of the queries again with one thing changed that must not change the answer", "nothing"
    )
    metamorphic_cases: int = option(
        50, "answers of each experiment that metamorphic checks look at; 0 is all", "nothing", ge=0
    )
    max_unmeasured: float = option(
        0.05,
        "a gate fails if a larger share of its cases has no value, though they could have one",
        "nothing",
        ge=0,
        le=1,
    )

    concurrency: int = option(16, "trials in flight at once, in the whole run", "nothing", ge=1)
    engine: EngineName = option(
        "local", "where trials are answered and judged: local, or ray, on the machines of a Ray cluster", "nothing"
    )
    ray_address: str = address_option(
        "", "Ray cluster: auto, HOST:PORT or ray://HOST:PORT; default: one that is started on this machine", "nothing"
    )
    ray_workers: int = rare_option(
        0, "worker processes on the Ray cluster; 0 is one a node", "nothing", ge=0, le=10_000
    )
    ray_gpus: float = rare_option(0.0, "GPUs that each Ray worker gets, or a part of one", "nothing", ge=0, le=64)
    run: tuple[str, ...] = option(
        (),
        "experiments to ask: e2,e3, repeatable; the plugin brings their tests where the suite has none",
        "nothing",
    )
    limit: int = option(0, "only the first N queries; 0 is all", "nothing", ge=0)
    affected_by: str = option(
        "",
        "only the queries whose gold or top candidates touch documents that have changed since this git revision",
        "nothing",
    )
    timeout: float = option(60.0, "seconds one model call may take", "nothing", gt=0, allow_inf_nan=False)
    deadline: float = option(
        300.0, "seconds one trial may take, waiting for caps not counted", "nothing", gt=0, allow_inf_nan=False
    )
    rpm: float = option(
        0.0, "most chat calls a minute, in the whole run; 0: no cap", "nothing", ge=0, allow_inf_nan=False
    )
    tpm: float = option(0.0, "most tokens a minute, in the whole run; 0: no cap", "nothing", ge=0, allow_inf_nan=False)
    budget: float = option(
        0.0, "most USD the run's chat calls may cost; 0: no limit", "nothing", ge=0, allow_inf_nan=False
    )
    prices: str = path_option("", "TOML table of prices that extends and overrides the one shipped", "nothing")

    openrouter_api_key: str = secret("key for OpenRouter", "OPENROUTER_API_KEY")
    openai_api_key: str = secret("key for OpenAI embeddings", "OPENAI_API_KEY")
    chat_api_key: str = secret("key for another chat endpoint", "RAG_CHAT_API_KEY")
    writer_api_key: str = secret("key for the writer's own endpoint", "RAG_WRITER_API_KEY")
    rewrite_api_key: str = secret("key for the own endpoint of role rewrite", "RAG_REWRITE_API_KEY")
    user_api_key: str = secret("key for the own endpoint of role user", "RAG_USER_API_KEY")
    judge_api_key: str = secret("key for the judge's own endpoint", "RAG_JUDGE_API_KEY")

    chat_api_key_env: str = option("", "name of the variable that holds the chat key", "nothing", flag=False)
    stores_of: str = option("", "profile whose recorded vectors and scores are used, too", "nothing", flag=False)
    judge_api_key_env: str = option("", "name of the variable that holds the judge's key", "nothing", flag=False)
    writer_api_key_env: str = option("", "name of the variable that holds the writer's key", "nothing", flag=False)
    rewrite_api_key_env: str = option(
        "", "name of the variable that holds the key of role rewrite", "nothing", flag=False
    )
    user_api_key_env: str = option("", "name of the variable that holds the key of role user", "nothing", flag=False)
    # Fields as RequestFields.text has them.
    chat_request: str = derived("", "fields of the requests for answers: [….answer]", "generation", if_set=True)
    judge_request: str = derived("", "fields of the judge's requests: [….judge]", "judging", if_set=True)
    writer_request: str = derived("", "fields of the writer's requests: [….writer]", "nothing")
    rewrite_request: str = derived("", "fields of the requests of role rewrite: [….rewrite]", "nothing")
    user_request: str = derived("", "fields of the requests of role user: [….user]", "nothing")
    judge_tables: tuple[JudgeTable, ...] = derived(
        (), "judges of a panel with addresses of their own: [….judges.<name>]", "nothing"
    )
    endpoint: tuple[str, ...] = paths_option(
        "TOML file that makes a service an experiment of the file's name, repeatable", "nothing"
    )
    config: tuple[str, ...] = paths_option(
        "TOML file of a configuration: an experiment of the file's name; rag-harness tune writes one; repeatable",
        "nothing",
    )
    define: tuple[str, ...] = option(
        (), "option of a part of your own, declared in pyproject.toml: NAME=VALUE, repeatable", "nothing"
    )
    defined: tuple[OwnOption, ...] = derived((), "options of your own: [tool.rag_harness.options.<name>]", "nothing")
    stands_in: str = derived("", "why a dry run has other models than its profile", "nothing")
    gates_elsewhere: tuple[tuple[str, str], ...] = derived((), "ini gates of other data, each with why", "nothing")
    endpoints: tuple[EndpointSpec, ...] = derived(
        (), "services as experiments: [tool.rag_harness.endpoints.<name>], and the files of endpoint", "nothing"
    )
    configurations: tuple[ConfigurationSpec, ...] = derived((), "of the files of config, as experiments", "nothing")
    reliability_numbers: ReliabilityNumbers | None = derived(
        None,
        "of r1: [tool.rag_harness.reliability]; None: as shipped",
        "reliability",
    )
    refusals: tuple[str, ...] = derived(
        (), "phrases that decline, besides those known: refusals of [tool.rag_harness]", "generation"
    )
    data: tuple[DataSpec, ...] = derived((), "named data: [tool.rag_harness.data.<name>] in pyproject.toml", "data")
    rootdir: str = option(".", "folder that relative paths start from: where the ini file is", "nothing", flag=False)

    def __init__(self, **values: Any) -> None:
        strange = values.keys() - _DEFAULTS.keys()
        if strange:
            raise TypeError(f"Settings has no {', '.join(sorted(strange))}")
        vars(self).update({**_DEFAULTS, **values})

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Settings) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"Settings({', '.join(shown)})"

    def path(self, value: str) -> Path:
        """Return ``value`` as a path. A relative path starts from rootdir."""
        return Path(self.rootdir) / value

    def folder(self, name: str) -> Path:
        """Return the folder of that name among what a project commits: ``cassettes``, ``baselines``, ``prompts``, …"""
        return self.path(self.project) / name

    def folder_said(self, name: str) -> str:
        """Return that folder as messages name it: from rootdir on."""
        return f"{self.project}/{name}" if self.project else name

    @property
    def own(self) -> dict[str, Any]:
        """The options of a user's own parts, by name."""
        return {option.name: option.value for option in self.defined}

    @property
    def chat_key(self) -> str:
        """The key for the chat endpoint: its own key, or the key that the profile names."""
        if self.chat_api_key or not self.chat_api_key_env:
            return self.chat_api_key
        own = {"OPENROUTER_API_KEY": self.openrouter_api_key, "OPENAI_API_KEY": self.openai_api_key}
        return own.get(self.chat_api_key_env, "")

    @property
    def prices_path(self) -> Path | None:
        """The user's own table of prices, if there is one."""
        return self.path(self.prices) if self.prices else None

    @property
    def lookup_model(self) -> str:
        """The embedding model of the golden suite's retriever. It is empty for BM25, which reads no vector."""
        return "" if self.retriever == "bm25" else self.embed_model

    @property
    def queries_path(self) -> Path:
        """The file of the queries."""
        return self.path(self.queries) if self.queries else self.path(self.kb_dir) / "queries.jsonl"


_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Settings)}


def options() -> list[Field[Any]]:
    """Return the options with a command-line flag and an ini key."""
    return [each for each in fields(Settings) if each.metadata["flag"]]


def env_name(each: Field[Any]) -> str:
    """Return the environment variable of an option."""
    return each.metadata["env"] or f"RAG_{each.name.upper()}"


def sentence(text: str) -> str:
    """Return a help text as a sentence. The name of a file or a command keeps its small letter."""
    first = text.partition(" ")[0]
    begun = text if set(first) & set("._-0123456789") else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "…")) else f"{begun}."


def help_sentence(each: Field[Any]) -> str:
    """Return the help of an option as a sentence, with its default."""
    text = each.metadata["help"]
    if each.default is not False and each.default != () and "default:" not in text:
        text += f"; default: {each.default if each.default != '' else 'none'}"
    return sentence(text)


def affecting(settings: Settings, *kinds: Affects) -> dict[str, Any]:
    """Return the options that affect one of ``kinds``, by name."""
    of_kinds = [each for each in fields(Settings) if each.metadata["affects"] in kinds]
    ours = {
        each.name: value
        for each in of_kinds
        if (value := getattr(settings, each.name)) != each.default or not each.metadata.get("if_set")
    }
    return ours | {f"own {option.name}": option.value for option in settings.defined if option.affects in kinds}


def masked(settings: Settings) -> dict[str, Any]:
    """Return all settings by name with every key masked, for logs."""
    return {
        each.name: ("set" if getattr(settings, each.name) else "not set")
        if each.metadata.get("secret")
        else getattr(settings, each.name)
        for each in fields(Settings)
    }


# Rights of a mode: what it reads, calls and keeps, and why a call is refused. Only this module decides them.

Keeps = Literal["recordings", "cache", "nothing"]


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a mode.

    Attributes:
        mode: the name of the mode.
        reads_recordings: recorded answers, vectors, scores and cuts are used first.
        calls_network: models behind a network may be called.
        calls_local: models in this process may be called.
        keeps: where new results are stored: ``recordings``, which are committed; the ``cache``, which is not; nowhere.
    """

    mode: Mode
    reads_recordings: bool
    calls_network: bool
    calls_local: bool
    keeps: Keeps

    @property
    def calls_nobody(self) -> bool:
        """Whether no call may leave this process, not even by code of the user's own."""
        return self.mode == "replay"

    @property
    def records(self) -> bool:
        """Whether new results are stored among the recordings."""
        return self.keeps == "recordings"

    @property
    def covers_own_calls(self) -> bool:
        """Whether calls of a user's own code are recorded or replayed: the modes auto and live ask it as it is."""
        return self.records or self.calls_nobody

    def may_call(self, local: bool) -> bool:
        """Return whether a model in this process (``local``), or one behind a network, may be called."""
        return self.calls_local if local else self.calls_network

    def refusal(self, local: bool, profile: str = "") -> str:
        """Return why a model may not be called, and what to do; empty where it may."""
        if self.may_call(local):
            return ""
        command = f"--rag-profile={profile} --rag-mode=record" if profile else "--rag-mode=record"
        why = "" if self.mode == "replay" else f"Mode {self.mode} calls no network model. "
        return f"{why}Record it: {command}"


_ACCESS = {
    "auto": Access("auto", reads_recordings=True, calls_network=False, calls_local=True, keeps="cache"),
    "replay": Access("replay", reads_recordings=True, calls_network=False, calls_local=False, keeps="nothing"),
    "record": Access("record", reads_recordings=True, calls_network=True, calls_local=True, keeps="recordings"),
    "live": Access("live", reads_recordings=False, calls_network=True, calls_local=True, keeps="cache"),
}


def access_of(settings: Settings) -> Access:
    """Return the rights of a run. A dry run is a replay that may compute here what is not recorded."""
    of_mode = _ACCESS[settings.mode]
    return replace(of_mode, calls_local=True, keeps="cache") if settings.dry_run else of_mode


def names_in(values: Iterable[str]) -> list[str]:
    """Return the names in the values of an option. Each value may hold several: ``e2,e3``, ``faithfulness hri``."""
    return [name for value in values for name in value.replace(",", " ").split()]
