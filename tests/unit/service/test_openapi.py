"""Whatever the OpenAPI document allows and forbids: no 500, and every answer is one that the document describes.

``pytest -m long tests/unit/service/test_openapi.py`` sends more than 5,000 requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

# The extra `fuzz`, which CI installs behind the tests.
pytest.importorskip("schemathesis")
pytest.importorskip("requests")

import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from rag_harness.core.settings.loading import load_settings
from rag_harness.service.app_state import Options
from rag_harness.service.database import StateFolder
from rag_harness.service.keys import make_key
from rag_harness.service.server import create_app, opened
from tests.unit.service.listened import serving

CHECKS: Any = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
)
PAGE = b"# Lamps\n\nLamps can be returned within 45 days.\n"
CHAT = "/v1/chat/completions"
CHATS = {"model": "e3", "messages": [{"role": "user", "content": "How long can I return lamps?"}]}


class Api:
    """A server, a key for all of it, and what its document says."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.headers = url, {"Authorization": f"Bearer {key}"}
        self.schema: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")
        self.calls = 0

    def call(self, case: Any) -> None:
        """Send a case; now and then about something that is there, or in a shape that front ends send."""
        self.calls += 1
        chosen = sum(map(ord, f"{case.body}{case.path_parameters}")) % 4
        if chosen == 0 and case.path_parameters and set(case.path_parameters) <= {"doc_id", "trace_id", "conversation"}:
            case.path_parameters = {name: self.there(name) for name in case.path_parameters}
        if chosen and case.path == CHAT and case.method == "POST":
            case.body = CHATS | (case.body if isinstance(case.body, dict) else {"stream": chosen == 1})
        case.call_and_validate(headers={**(case.headers or {}), **self.headers}, checks=CHECKS)

    def there(self, name: str) -> str:
        """Return the id of a document, a trace or a conversation that is there; what was deleted is made again."""
        if name == "doc_id":
            made = requests.post(f"{self.url}/ingest", files={"file": ("a.md", PAGE)}, headers=self.headers, timeout=10)
        elif name == "conversation":
            made = requests.post(f"{self.url}/conversations", headers=self.headers, timeout=10)
        else:
            made = requests.post(f"{self.url}/query", json={"query": "lamps?"}, headers=self.headers, timeout=10)
        return str(made.json()[name])


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("served")
    harness = load_settings({"profile": "mock", "top_k": 3, "candidates": 5}, rootdir=folder)
    options = Options("e3", folder / "state", rate="")
    with StateFolder(options.state) as state:
        key = make_key(state.database, ["admin"])
        with serving(create_app(lambda: opened(options, harness, state))) as port:
            yield Api(f"http://127.0.0.1:{port}", key)


def ask_everything(api: Api, most: int) -> None:
    for found in api.schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=most, database=None)
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                api.call(case)

            with suppress(Unsatisfiable):  # an operation that takes nothing cannot be sent anything wrong
                ask()


def test_every_answer_is_as_the_document_says(api: Api) -> None:
    ask_everything(api, 5)


@pytest.mark.long
def test_every_answer_of_thousands_is_as_the_document_says(api: Api) -> None:
    ask_everything(api, 350)
    assert api.calls >= 5000, api.calls
