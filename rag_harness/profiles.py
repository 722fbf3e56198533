"""Named sets of models and endpoints."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from rag_harness.errors import SettingsError, unknown


@dataclass(frozen=True)
class Profile:
    """Models and endpoints under one name. An option that is set wins over the profile."""

    chat_model: str
    chat_base_url: str
    embed_model: str
    rerank_model: str
    chat_api_key_env: str = ""
    embed_base_url: str = ""


EMBEDDED_URL = "embedded://"
"""Base URL of the reader that is served in process."""

BUILT_IN_PROFILES: Mapping[str, Profile] = {
    "embedded": Profile(
        chat_model="embedded/extractive",
        chat_base_url=EMBEDDED_URL,
        embed_model="sentence-transformers/all-MiniLM-L6-v2",
        rerank_model="embedded/late-interaction",
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
    ),
}


def profiles(rootdir: Path) -> dict[str, Profile]:
    """Return the built-in profiles and those of ``[tool.rag_harness.profiles]`` in rootdir's pyproject.toml."""
    found = dict(BUILT_IN_PROFILES)
    known = {each.name for each in fields(Profile)}
    for name, table in _pyproject_profiles(rootdir).items():
        wrong = next((key for key in table if key not in known), None)
        if wrong is not None:
            raise SettingsError(f"pyproject.toml, profile {name!r}: {unknown('key', wrong, known)}")
        found[name] = replace(found.get(name, found["openrouter"]), **table)
    return found


def _pyproject_profiles(rootdir: Path) -> Mapping[str, Mapping[str, str]]:
    file = rootdir / "pyproject.toml"
    if not file.is_file():
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    found: Mapping[str, Mapping[str, str]] = tool.get("rag_harness", {}).get("profiles", {})
    return found
