"""Spans and annotations for Phoenix, against a stub with the rules of its API, and with ``-m long`` the real one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.page.exports.conftest import Exporting
from tests.unit.page.exports.real_phoenix import installed_phoenix, phoenix_has, serving_phoenix
from tests.unit.page.exports.stub_server import StubServer, stub_server


class Phoenix:
    """What Phoenix keeps, and what it refuses: spans that are there, annotations of spans that are not."""

    def __init__(self) -> None:
        self.spans: dict[str, Any] = {}
        self.annotations: dict[tuple[Any, ...], Any] = {}
        self.late = 0

    def __call__(self, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/spans"):
            return self._spans(body["data"])
        if self.late:
            self.late -= 1
            return 404, {"detail": "Spans with IDs … do not exist."}
        of_documents = path == "/v1/document_annotations?sync=true"
        assert of_documents or path == "/v1/span_annotations?sync=true"
        for each in body["data"]:
            assert each["annotator_kind"] == "CODE"
            assert set(each["result"]) <= {"score", "label", "explanation"}
            span = self.spans[each["span_id"]]
            if of_documents:
                assert "identifier" not in each
                documents = [
                    key for key in span["attributes"] if re.fullmatch(r"retrieval\.documents\.\d+\.document\.id", key)
                ]
                assert 0 <= each["document_position"] < len(documents)
            key = (each["name"], each["span_id"], each.get("identifier"), each.get("document_position"))
            self.annotations[key] = each["result"]
        return 200, {"data": []}

    def _spans(self, spans: list[Any]) -> tuple[int, Any]:
        there = [span["context"] for span in spans if span["context"]["span_id"] in self.spans]
        if there:
            return 400, {"error": "Request contains invalid or duplicate spans", "duplicate_spans": there}
        for span in spans:
            assert all(isinstance(value, str) for value in span["attributes"].values())
            assert re.fullmatch("[0-9a-f]{16}", span["context"]["span_id"])
            self.spans[span["context"]["span_id"]] = span
        return 202, {"total_queued": len(spans)}


@pytest.fixture
def phoenix() -> Phoenix:
    return Phoenix()


@pytest.fixture
def server(phoenix: Phoenix) -> Iterator[StubServer]:
    with stub_server(phoenix) as running:
        yield running


def test_trials_are_spans_with_annotations(exporting: Exporting, phoenix: Phoenix, server: StubServer) -> None:
    status, _ = exporting("phoenix", "--url", server.url, "--project", "my shop")
    assert status == 0
    assert server.asked[0].path == "/v1/projects/my%20shop/spans"
    trial = next(span for span in phoenix.spans.values() if span["name"] == "e3 q0" and not span.get("parent_id"))
    span_id = trial["context"]["span_id"]
    assert trial["attributes"]["input.value"] == "What?"
    assert phoenix.annotations["recall@5", span_id, "rag-harness", None]["score"] in (0.0, 1.0)
    whole = next(span for span in phoenix.spans.values() if span["name"] == "e3, all trials")["context"]["span_id"]
    assert "95 % interval" in phoenix.annotations["recall@5", whole, "rag-harness", None]["explanation"]
    assert phoenix.annotations["gate 02", whole, "rag-harness", None]["label"] == "FAILED"
    relevant = {key[3]: result["label"] for key, result in phoenix.annotations.items() if key[0] == "gold"}
    assert set(relevant.values()) == {"relevant", "irrelevant"}


def test_a_second_export_changes_nothing(exporting: Exporting, phoenix: Phoenix, server: StubServer) -> None:
    exporting("phoenix", "--url", server.url)
    before = json.dumps([phoenix.spans, [*phoenix.annotations.items()]])
    status, said = exporting("phoenix", "--url", server.url)
    assert (status, "0 new spans" in said) == (0, True)
    assert json.dumps([phoenix.spans, [*phoenix.annotations.items()]]) == before


def test_an_export_that_was_cut_off_is_completed(exporting: Exporting, phoenix: Phoenix, server: StubServer) -> None:
    exporting("phoenix", "--url", server.url)
    count = len(phoenix.spans)
    for span_id in [*phoenix.spans][::3]:
        del phoenix.spans[span_id]
    phoenix.annotations.clear()
    assert exporting("phoenix", "--url", server.url)[0] == 0
    assert len(phoenix.spans) == count
    assert phoenix.annotations


def test_spans_that_come_late_are_waited_for(
    exporting: Exporting, phoenix: Phoenix, server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    monkeypatch.setattr("rag_harness.page.exports.targets.time", clock)
    phoenix.late = 3
    assert exporting("phoenix", "--url", server.url)[0] == 0
    assert waits == [0.2] * 3


def test_an_address_is_needed(exporting: Exporting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHOENIX_COLLECTOR_ENDPOINT", raising=False)
    assert "Phoenix: the address of its server is not known. Name it: --url https://" in exporting("phoenix")[1]
    assert "'localhost' is no address" in exporting("phoenix", "--url", "localhost")[1]


@pytest.mark.long
def test_the_real_phoenix(exporting: Exporting, tmp_path: Path) -> None:
    check_real(installed_phoenix(tmp_path), exporting, tmp_path)


def check_real(program: Path, exporting: Exporting, folder: Path) -> None:
    """Export twice into a server of Phoenix, and compare what it has."""
    with serving_phoenix(program, folder) as url:
        looked = []
        for _ in range(2):
            status, said = exporting("phoenix", "--url", url)
            assert status == 0, said
            looked.append(_kept(url))
        assert looked[0] == looked[1]
        assert any(name == "recall@5" for _, name, _ in looked[0])


def _kept(url: str) -> list[tuple[str, str, str]]:
    spans = phoenix_has(f"{url}/v1/projects/rag-harness/spans?limit=1000")
    asked = "&".join(f"span_ids={span['context']['span_id']}" for span in spans)
    found = phoenix_has(f"{url}/v1/projects/rag-harness/span_annotations?limit=10000&{asked}")
    assert len(found) > len(spans) > 20
    return sorted((each["span_id"], each["name"], json.dumps(each["result"], sort_keys=True)) for each in found)
