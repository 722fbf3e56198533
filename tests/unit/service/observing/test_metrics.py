from __future__ import annotations

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from rag_harness.core.types import Answer, PipelineOutput, Stage
from rag_harness.service.corpus.document_table import CollectionSize
from rag_harness.service.monitoring import Bounded, Metrics
from rag_harness.service.observations import FAILED
from tests.unit.service.observing.seen import output, seen


def told(metrics: Metrics, by_collection: bool = False) -> dict[str, float]:
    return read(metrics.text(by_collection))


def read(text: bytes) -> dict[str, float]:
    """Every sample of a text, by its name and labels."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_a_question_is_counted_with_its_time_its_stages_and_its_tokens() -> None:
    metrics = Metrics()
    metrics.answered(seen(ms=300.0, first_token_ms=40.0))
    metrics.answered(seen(ms=30.0, outcome="abstain", output=output("abstain")))
    said = told(metrics)
    assert said["rag_harness_decisions_total{outcome=pass}"] == 1
    assert said["rag_harness_decisions_total{outcome=abstain}"] == 1
    assert said["rag_harness_answer_seconds_count"] == 2
    assert said["rag_harness_answer_seconds_sum"] == pytest.approx(0.33)
    assert said["rag_harness_answer_seconds_bucket{le=0.05}"] == 1
    assert said["rag_harness_first_token_seconds_count"] == 1
    assert said["rag_harness_stage_seconds_sum{stage=retrieve}"] == pytest.approx(0.019)
    assert said["rag_harness_tokens_total{type=input}"] == 240
    assert said["rag_harness_tokens_total{type=output}"] == 60


def test_requests_are_counted_by_the_template_of_their_path() -> None:
    metrics = Metrics()
    metrics.request("GET", "/traces/{trace_id}", 200)
    metrics.request("GET", "/traces/{trace_id}", 404)
    metrics.request("BREW", "", 405)
    said = told(metrics)
    assert said["rag_harness_requests_total{method=GET,route=/traces/{trace_id},status=200}"] == 1
    assert said["rag_harness_requests_total{method=GET,route=/traces/{trace_id},status=404}"] == 1
    assert said["rag_harness_requests_total{method=other,route=none,status=405}"] == 1


def test_what_is_being_answered_and_what_waits() -> None:
    metrics = Metrics()
    waiting = [1]
    metrics.watch_waiting(lambda: waiting[0])
    with metrics.in_flight():
        inside = told(metrics)
    waiting[0] = 0
    assert (inside["rag_harness_questions_in_flight"], inside["rag_harness_questions_waiting"]) == (1, 1)
    after = told(metrics)
    assert (after["rag_harness_questions_in_flight"], after["rag_harness_questions_waiting"]) == (0, 0)


def test_documents_are_counted_when_somebody_reads() -> None:
    held = {"default": CollectionSize(2, 30, 31)}
    metrics = Metrics(lambda: held, lambda: 4)
    held["more"] = CollectionSize(1, 5, 5)
    said = told(metrics)
    assert [said[f"rag_harness_{name}"] for name in ("documents", "chunks", "index_size")] == [3, 35, 36]
    assert said["rag_harness_traces_lost"] == 4


def test_ingest_and_thumbs() -> None:
    metrics = Metrics()
    metrics.ingested(0.2, ok=True)
    metrics.ingested(3.0, ok=False)
    metrics.rated(1)
    metrics.rated(-1)
    metrics.rated(-1)
    said = told(metrics)
    assert (said["rag_harness_ingest_seconds_count"], said["rag_harness_ingest_failures_total"]) == (2, 1)
    assert (said["rag_harness_ratings_total{thumb=up}"], said["rag_harness_ratings_total{thumb=down}"]) == (1, 2)


def test_no_tenant_is_named_unless_that_is_asked_for() -> None:
    metrics = Metrics(lambda: {"acme": CollectionSize(2, 30, 31)})
    metrics.answered(seen(collection="acme"))
    assert b"acme" not in metrics.text()
    said = told(metrics, by_collection=True)
    assert said["rag_harness_collection_questions_total{collection=acme,outcome=pass}"] == 1
    assert said["rag_harness_collection_documents{collection=acme}"] == 2
    assert said["rag_harness_collection_chunks{collection=acme}"] == 30
    assert said["rag_harness_collection_index_size{collection=acme}"] == 31
    assert said["rag_harness_documents"] == 2


def test_no_label_grows_without_end() -> None:
    metrics = Metrics(lambda: {f"tenant-{n}": CollectionSize(1, 1, 1) for n in range(500)})
    for n in range(500):
        metrics.request(f"M{n}", f"/{n}", 200)
        stages = (Stage(f"stage {n}", 1.0),)
        told_so = PipelineOutput(Answer(""), stages=stages)
        metrics.answered(seen(outcome=f"outcome {n}", collection=f"tenant-{n}", output=told_so))
    said = told(metrics, by_collection=True)
    assert len(said) < 2_000
    assert said["rag_harness_decisions_total{outcome=other}"] == 500
    assert said["rag_harness_stage_seconds_count{stage=other}"] == 468
    assert said["rag_harness_collection_documents{collection=other}"] == 300
    assert said["rag_harness_collection_questions_total{collection=other,outcome=other}"] == 300


def test_a_failed_question_is_an_outcome_of_its_own() -> None:
    metrics = Metrics()
    metrics.answered(seen(outcome=FAILED, output=PipelineOutput(Answer(""))))
    assert told(metrics)["rag_harness_decisions_total{outcome=failed}"] == 1


def test_two_servers_of_a_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.rated(1)
    assert "rag_harness_ratings_total{thumb=up}" not in told(other)
    assert not [family for family in REGISTRY.collect() if family.name.startswith("rag_harness")]


def test_the_process_is_measured_too() -> None:
    assert told(Metrics())["process_resident_memory_bytes"] > 1_000_000


def test_known_labels_stay_whatever_came_first() -> None:
    labels = Bounded(1, ["GET"])
    assert [labels.label(text) for text in ("a", "b", "GET", "a")] == ["a", "other", "GET", "a"]
