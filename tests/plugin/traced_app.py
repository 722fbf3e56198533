"""How suites hand over an app that is traced, and test it: the app is a class ``Shop`` of the suite's own."""

from __future__ import annotations

FIXTURE = """
@pytest.fixture(scope="session")
def rag_pipeline(rag_traced):
    return rag_traced(Shop(rag_traced.provider.get_tracer("shop")).ask)
"""
AT_THE_GLOBAL_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

@pytest.fixture(scope="session")
def rag_pipeline():
    trace.set_tracer_provider(TracerProvider())
    return Shop(trace.get_tracer("shop")).ask
"""
TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
BY_MARK = TEST.replace('"mine"', '"mine", traced=True')
