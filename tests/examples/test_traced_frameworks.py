"""What instrumentors of real frameworks tell is what the app really did; ``-m long`` asks all of them anew."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from rag_harness.pipelines.otel.steps import read_trace
from tests.examples.traced.did import told
from tests.examples.traced.keep import FRAMEWORKS, asked, instrumented

# LlamaIndex swallows what its instrumentor raises: a warning that is an error there takes the spans of models away.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]
SHAPES = 10


@pytest.mark.parametrize(("framework", "package"), FRAMEWORKS.items())
def test_what_an_instrumented_app_tells_is_what_it_did(framework: str, package: str) -> None:
    instrumentor = f"openinference-instrumentation-{'llama-index' if framework == 'llamaindex' else framework}"
    for needed in (package, "openinference"):
        if find_spec(needed) is None:
            pytest.skip(
                f"{needed} is not installed: pip install {instrumentor} -r examples/{framework}/requirements.txt"
            )
    with instrumented(framework) as (apps, provider):
        assert len(apps.SHAPES) == SHAPES
        for name, app in apps.SHAPES.items():
            did, said, spans = asked(app, provider)
            seen = read_trace(spans, said)
            assert (name, told(seen, did.given is not None)) == (name, did.as_json())
            assert not any(span.dropped for span in spans)
