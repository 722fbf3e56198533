"""``rag-harness endpoint try``: asks a service, and shows requests, answers and what was read of them."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.files.json_text import read_json

if TYPE_CHECKING:
    from rag_harness.settings import Settings
    from rag_harness.settings.endpoint_spec import EndpointSpec


def try_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options: which service is asked what."""
    parser.add_argument("endpoint", metavar="FILE", help="TOML file of a service, or the name of one in pyproject.toml")
    parser.add_argument("questions", metavar="QUESTION", nargs="+", help="what it is asked; several: turn by turn")
    parser.add_argument("--inputs", default="{}", metavar="JSON", help="what else the user sent, an object")


def run_try(chosen: argparse.Namespace) -> int:
    """Ask once, or turn by turn, and show the answers. The exit status is 1 if a path of the spec finds nothing.

    Raises:
        SettingsError: the spec or the inputs cannot be used.
        PrerequisiteError: the service does not say its version.
        ModelCallError, CriticalError: the service refused, or cannot be reached.
    """
    from rag_harness.commands.trying import Trying, show_part
    from rag_harness.pipelines.context_limit import most_contexts
    from rag_harness.pipelines.endpoint.experiment import ask_for_version
    from rag_harness.pipelines.endpoint.requests import Requests
    from rag_harness.pipelines.endpoint.service_answer import AnswerReader
    from rag_harness.settings.loading import load_settings

    settings = load_settings({"mode": "live"})
    spec, inputs = _spec(settings, chosen.endpoint), _inputs(chosen.inputs)
    requests = Requests(spec, settings.path("."))
    reader = AnswerReader(spec.read, spec.name, most_contexts(settings))
    if spec.version:
        said = f"{spec.name}, version {ask_for_version(spec, settings, requests)}"
        show_part("who", [said], requests.secrets)
    return asyncio.run(Trying(spec, settings, requests, reader).ask_all(chosen.questions, inputs))


def _spec(settings: Settings, name: str) -> EndpointSpec:
    from rag_harness.settings.endpoints import read_endpoint

    known = {spec.name: spec for spec in settings.endpoints}
    if name in known:
        return known[name]
    if not Path(name).is_file() and not name.endswith(".toml"):
        raise SettingsError(f"{unknown('endpoint', name, known)} Name a file, or one of pyproject.toml here.")
    return read_endpoint(Path(name))


def _inputs(text: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except ValueError as error:
        raise SettingsError(f"--inputs {text!r} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise SettingsError(f'--inputs {text!r} is no object. Write: --inputs \'{{"selected_text": "…"}}\'')
    return found
