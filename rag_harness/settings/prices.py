"""Prices of calls: a versioned table, which the user can extend and override."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.settings.profiles import EMBEDDED_URL, MOCK, SIMULATED, check_table_keys, parsed_toml
from rag_harness.settings.table import Settings

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
