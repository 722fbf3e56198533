"""Profiles, which are named sets of models and endpoints, and the prices of their calls."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.roles import OWN, ROLES, JudgeTable, check_no_keys, judge_tables, role_options
from rag_harness.core.settings.table import Settings


@dataclass(frozen=True)
class Profile:
    """Models and endpoints under one name. A set option overrides the profile."""

    chat_model: str
    chat_base_url: str
    embed_model: str
    rerank_model: str
    chat_api_key_env: str = ""
    chat_request: str = ""
    embed_base_url: str = ""
    judge_model: str = ""
    judge_base_url: str = ""
    judge_api_key_env: str = ""
    judge_request: str = ""
    writer_model: str = ""
    writer_base_url: str = ""
    writer_api_key_env: str = ""
    writer_request: str = ""
    rewrite_model: str = ""
    rewrite_base_url: str = ""
    rewrite_api_key_env: str = ""
    rewrite_request: str = ""
    user_model: str = ""
    user_base_url: str = ""
    user_api_key_env: str = ""
    user_request: str = ""
    judge_tables: tuple[JudgeTable, ...] = ()
    stores_of: str = ""
    """The profile whose recorded vectors, scores and cuts are used, and added to; empty for the profile's own."""


_KEYS = (
    "chat_model",
    "chat_base_url",
    "chat_api_key_env",
    "embed_model",
    "embed_base_url",
    "rerank_model",
    "stores_of",
)
"""What is in the table of a profile itself. The model of the answers may be there; other roles have tables."""
EMBEDDED_URL = "embedded://"
"""Base URL of the models that answer in this process: the baseline reader, and the simulated model."""
BASELINE_READER = "embedded/extractive"
"""The reader of the package. It is not a language model, needs no weights, and answers alike on every machine."""
SIMULATED = "simulated/"
"""Beginning of the names of simulated models. Their answers have planted faults, which is said wherever they stand."""

MOCK = "mock/"
"""Beginning of the names of models that replace others: they say nothing, which is said wherever they stand."""

BUILT_IN_PROFILES: Mapping[str, Profile] = {
    "embedded": Profile(
        chat_model=BASELINE_READER,
        chat_base_url=EMBEDDED_URL,
        embed_model="sentence-transformers/all-MiniLM-L6-v2",
        rerank_model="embedded/late-interaction",
        judge_model="embedded/alignment",
    ),
    "simulated": Profile(
        chat_model="simulated/known-faults",
        chat_base_url=EMBEDDED_URL,
        embed_model="sentence-transformers/all-MiniLM-L6-v2",
        rerank_model="embedded/late-interaction",
        judge_model="embedded/alignment",
        stores_of="embedded",
    ),
    "openrouter": Profile(
        chat_model="x-ai/grok-beta",
        chat_base_url="https://openrouter.ai/api/v1",
        chat_api_key_env="OPENROUTER_API_KEY",
        embed_model="text-embedding-3-small",
        embed_base_url="https://api.openai.com/v1",
        rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2",
    ),
    "mock": Profile(
        chat_model="mock/placeholder",
        chat_base_url=EMBEDDED_URL,
        embed_model="mock/hashed-words",
        rerank_model="mock/word-overlap",
        judge_model="mock/word-overlap",
    ),
}


def profiles(rootdir: Path) -> dict[str, Profile]:
    """Return the built-in profiles and those of ``[tool.rag_harness.profiles]`` in rootdir's pyproject.toml."""
    found = dict(BUILT_IN_PROFILES)
    for name, table in pyproject_table(rootdir, "profiles", "one a profile").items():
        said = _options_of(name, table)
        base = found.get(name, found["openrouter"])
        if "chat_base_url" in said:
            base = replace(base, chat_api_key_env="")  # OpenRouter's key must not be sent to another endpoint
        if "judge_base_url" in said:
            base = replace(base, judge_model="")  # another endpoint does not have the model of this process
        found[name] = replace(base, **said)
    return found


def _options_of(name: str, table: object) -> dict[str, Any]:
    """Return the options that the table of a profile sets, by name."""
    where = f"pyproject.toml, profile {name!r}"
    if not isinstance(table, dict):
        raise SettingsError(f"{where} is {table!r}: expected a table, [tool.rag_harness.profiles.{name}].")
    for key in table:
        role, _, rest = key.partition("_")
        if role in ROLES and rest in OWN:
            raise SettingsError(f"{where}: {key}: write {rest} into [tool.rag_harness.profiles.{name}.{role}].")
    check_table_keys(where, table, {*_KEYS, *ROLES, "judges"})
    said: dict[str, Any] = {key: table[key] for key in _KEYS if key in table}
    for key, value in said.items():
        if not isinstance(value, str):
            raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")
    for role in ROLES:
        of_role = role_options(f"{where}, role {role!r}", role, table.get(role, {}))
        if both := said.keys() & of_role.keys():
            raise SettingsError(f"{where}: {min(both)} is said twice, in {role!r}, too: keep one of them.")
        said |= of_role
    return said | ({"judge_tables": judge_tables(where, table["judges"])} if "judges" in table else {})


def pyproject_table(rootdir: Path, name: str, what: str) -> Mapping[str, Any]:
    """Return ``[tool.rag_harness.<name>]`` of rootdir's pyproject.toml, a table of tables; each describes a ``what``.

    Raises:
        SettingsError: the file cannot be read, or has something else under that name.
    """
    found = pyproject_entry(rootdir, name, {})
    if not isinstance(found, dict):
        raise SettingsError(
            f"{rootdir / 'pyproject.toml'}: tool.rag_harness.{name} is {found!r}: expected tables, {what}."
        )
    return found


def pyproject_entry(rootdir: Path, name: str, default: object) -> object:
    """Return ``<name>`` of ``[tool.rag_harness]`` in rootdir's pyproject.toml; ``default`` without one.

    Raises:
        SettingsError: the file cannot be read, or contains a key of a server.
    """
    file = rootdir / "pyproject.toml"
    if not file.is_file():
        return default
    try:
        tool = parsed_toml(file.read_text(encoding="utf-8")).get("tool", {})
    except ValueError as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    found = tool.get("rag_harness", {}).get(name, default)
    check_no_keys(f"pyproject.toml, tool.rag_harness.{name}", found)
    return found


@lru_cache(maxsize=4)
def parsed_toml(text: str) -> Mapping[str, Any]:
    """Return the content of a TOML file. Callers share the content and must not change it.

    Raises:
        ValueError: the file is not TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its lists or tables are nested too deeply.") from None


def toml_file(file: Path, said: str) -> Mapping[str, Any]:
    """Return the content of a TOML file. Callers share the content and must not change it.

    Args:
        file: the file.
        said: the name of the file in messages: an option and its value, or the file alone.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or contains a key of a server.
    """
    try:
        table = parsed_toml(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{said} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise SettingsError(f"{said} is not TOML: {error}") from error
    check_no_keys(said, table)
    return table


def check_table_keys(where: str, table: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse a key that is not ``known``.

    Raises:
        SettingsError: a key is not known; names it, and the key that was probably meant.
    """
    for key in table:
        if key not in known:
            raise SettingsError(f"{where}: {unknown('key', key, known)}")


SHIPPED = Path(__file__).with_name("prices.toml")
_PER_MILLION = 1_000_000
_FREE = ("embedded/", SIMULATED, MOCK)
_DATED = re.compile(r"-(?:latest|\d{8}|\d{4}-\d\d-\d\d)$")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens of prompt and of completion, and of prompt that the server had read before.

    ``cached`` is the price of ``input`` where no other is known.
    """

    input: float
    output: float
    cached: float | None = None


@dataclass(frozen=True)
class Prices:
    """Prices by model.

    A name is looked up as it is, then without the part after a colon (``:nitro``), without its date, and without its
    provider. So ``openai/gpt-4o-mini-2024-07-18`` costs as much as ``gpt-4o-mini``, unless it has a price of its own.
    """

    models: Mapping[str, Price]
    version: str = ""
    free: tuple[str, ...] = _FREE
    _found: dict[str, Price | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def load(cls, path: Path | str | None = None, behind_a_server: bool = False) -> Prices:
        """Return the shipped table, extended and overridden by the table at ``path``. A table is read once.

        ``behind_a_server`` says that all models run behind a server. Then no model is free because of its name.

        Raises:
            SettingsError: the file cannot be read, or a key or a number cannot be used; names file and key.
        """
        prices = _load(str(path) if path else "")
        return replace(prices, free=()) if behind_a_server else prices

    def price(self, model: str) -> Price | None:
        """Return the price of ``model``, or None where it is unknown."""
        if model not in self._found:
            self._found[model] = next(filter(None, map(self.models.get, _spellings(model))), None)
        return Price(0.0, 0.0) if model.startswith(self.free) else self._found[model]

    def is_free(self, model: str) -> bool:
        """Return whether ``model`` is known to cost nothing."""
        price = self.price(model)
        return price is not None and not (price.input or price.output or price.cached)

    def cost(self, model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float | None:
        """Return the cost of the tokens in USD, or None where the price of ``model`` is unknown.

        ``cached_tokens`` are among those of the prompt.
        """
        price = self.price(model)
        if price is None:
            return None
        cached = min(cached_tokens, prompt_tokens) if price.cached is not None else 0
        new = (prompt_tokens - cached) * price.input + cached * (price.cached or 0.0)
        return (new + completion_tokens * price.output) / _PER_MILLION


def prices_of(settings: Settings) -> Prices:
    """Return the prices of a run. With a server of the user's own, ``mock/…`` in a model's name does not make it free.

    Raises:
        SettingsError: the user's own table cannot be used.
    """
    return Prices.load(settings.prices_path, settings.chat_base_url not in ("", EMBEDDED_URL))


def _spellings(model: str) -> Iterator[str]:
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        bare = name.partition(":")[0]
        undated = _DATED.sub("", bare)
        # OpenRouter writes claude-3.5-sonnet where Anthropic writes claude-3-5-sonnet.
        yield from (name, bare, undated, undated.replace(".", "-"))


@lru_cache
def _load(path: str) -> Prices:
    shipped = _read(SHIPPED)
    own = _read(Path(path)) if path else {}
    models = {**shipped["models"], **own.get("models", {})}
    return Prices({name: Price(**price) for name, price in models.items()}, str(own.get("version", shipped["version"])))


def _read(file: Path) -> dict[str, Any]:
    """Read and check a table."""
    try:
        table = dict(parsed_toml(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise SettingsError(f"The price table {file} cannot be read: {error}. It is set with --rag-prices.") from error
    check_table_keys(str(file), table, ("version", "date", "source", "models"))
    if not isinstance(table.get("models", {}), dict):
        raise SettingsError(f"{file}: models is {table['models']!r}: expected a table of models.")
    for model, price in table.get("models", {}).items():
        _check_price(f"{file}: models.{model!r}", price)
    return table


def _check_price(where: str, price: object) -> None:
    if not isinstance(price, dict):
        raise SettingsError(f"{where} is {price!r}: expected {{ input = …, output = … }}, USD per million tokens.")
    if any(isinstance(each, dict) for each in price.values()):
        raise SettingsError(f'{where} holds tables. A name with a dot needs quotes: [models."gpt-4.1"].')
    check_table_keys(where, price, ("input", "output", "cached"))
    for key in ("input", "output", "cached"):
        value = price.get(key)
        if value is None and key == "cached":
            continue
        if value is None:
            raise SettingsError(f"{where}: {key} is missing. Give USD per million tokens; 0 is free.")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < 0:
            raise SettingsError(f"{where}: {key} is {value!r}: expected a number of USD per million tokens, 0 or more.")
