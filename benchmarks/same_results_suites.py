"""The small suites of ``same_results.py``: a conversation, an agent, a service, a race, and ``evaluate``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days.\n\n"
    "## Refunds\n\nWe refund within 5 working days.\n",
    "shipping.md": "# Shipping\n\nExpress delivery costs €9.90 in Zone 1.\n",
    "warranty.md": "# Warranty\n\nThe warranty lasts 2 years.\n",
    "rental.md": "# Rental\n\nThree days with a tent cost €36. The deposit is €120.\n",
}
QUERIES: list[dict[str, Any]] = [
    {
        "query_id": "q_direct_001",
        "query": "How long can I return a lamp?",
        "context_reference": ["returns.md"],
        "ground_truth": "45 days",
        "evidence": [{"filename": "returns.md", "quote": "within 45 days"}],
        "expect": [{"contains": "45 days"}],
    },
    {
        "query_id": "q_direct_002",
        "query": "What does express delivery cost?",
        "context_reference": ["shipping.md"],
        "ground_truth": "€9.90",
        "expect": [{"contains": "€9.90"}, {"max_words": 20}],
    },
    {
        "query_id": "q_multi_hop_001",
        "query": "How long can I return a lamp and how long is the warranty?",
        "query_type": "multi_hop",
        "context_reference": ["returns.md", "warranty.md"],
        "ground_truth": "45 days, and 2 years",
    },
    {"query_id": "q_negative_001", "query_type": "negative", "query": "Do you sell live fish?"},
]
CONVERSATIONS: list[dict[str, Any]] = [
    {
        "conversation": "tent",
        "turns": [
            {"query": "Can I rent a tent?", "context_reference": ["rental.md"]},
            {"query": "What does it cost?", "context_reference": ["rental.md"], "expect": [{"contains": "€36"}]},
            {"query": "And the deposit?", "context_reference": ["rental.md"], "ground_truth": "€120"},
        ],
    },
    {
        "conversation": "played",
        "scenario": {
            "persona": "impatient, writes in fragments",
            "goal": "knows what three days with a tent cost",
            "opening": "can i rent a tent?",
            "facts": ["two adults and a child", "friday to sunday"],
            "asks": ["and the deposit?"],
            "reached": [{"contains": "€36"}],
            "max_turns": 6,
        },
        "context_reference": ["rental.md"],
    },
]
AGENT = '''
import pytest
from rag_harness import Answer, Chunk, Hit, StepTrace

PAGES = {
    "returns.md": "You can return a lamp within 45 days.",
    "shipping.md": "Express delivery costs €9.90 in Zone 1.",
    "warranty.md": "The warranty lasts 2 years.",
}


def search(query, k):
    """Return the pages that share a word with the query, best first."""
    words = set(query.lower().strip("?").split())
    shared = {name: len(words & set(text.lower().rstrip(".").split())) for name, text in PAGES.items()}
    best = sorted((name for name in shared if shared[name]), key=lambda name: -shared[name])[:k]
    chunks = [Chunk(f"{name}#chunk_0", name, PAGES[name], 0, len(PAGES[name])) for name in best]
    return [Hit(chunk, float(shared[name]), n) for n, (name, chunk) in enumerate(zip(best, chunks), 1)]


def days_between(first, last):
    return last - first


class Agent:
    fingerprint = "1"

    async def answer(self, query):
        with StepTrace() as trace:
            with trace.step("plan", "decide", query.text) as plan:
                plan.output = query.text.split(" and ")
            for part in plan.output:
                await trace.search(search, part, 2)
            await trace.tool("days_between", days_between, first=5, last=45)
            trace.context = trace.retrieved[:1]
            return trace.output(Answer(" ".join(hit.chunk.text for hit in trace.context) or "I don't know."))


@pytest.fixture(scope="session")
def rag_pipeline():
    return Agent()
'''
SHOP = """
import pytest


class Shop:
    fingerprint = "1"

    def answer(self, query):
        if "deposit" in query.text:
            return "The deposit is €120."
        if "friday" in query.text or "cost" in query.text:
            return f"Three days cost €36, after {len(query.history)} messages."
        if "rent" in query.text:
            return "Yes. For how many people, and for which days?"
        return "I don't know."


@pytest.fixture(scope="session")
def rag_pipeline():
    return Shop()
"""
TEST = """
import pytest


@pytest.mark.rag_experiment("NAME")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
INI = """[pytest]
addopts = -p no:cacheprovider
filterwarnings = error
rag_kb_dir = kb
rag_profile = mock
rag_sections = all
rag_attribute = true
rag_slices = query_type
"""
SPACE = """objective = ["evidence_recall", "token_f1"]
[parameters]
retriever = "bm25"
rerank = false
top_k = [3, 5]
"""
EVALUATED = """
import rag_harness

def quoting(question):
    if "fish" in question:
        raise ValueError("no fish")
    return "You can return a lamp within 45 days."

for pipeline in ("e3", quoting):
    found = rag_harness.evaluate(pipeline, measures=("context_precision", "answer_relevancy"), output="output")
    print(found)
    print(*sorted(f"{name}: {figure}" for name, figure in found.figures.items()), sep="\\n")
    print(found.check("recall@5 >= 0.9", "error_rate <= 0"))
"""
SAID = "You can return a lamp within 45 days."
REPLIES = {
    "delivery": {"answer": "It costs €9.90. [Source 1]", "contexts": [{"text": "x", "document": "shipping.md"}]},
    "fish": {"answer": "I don't know.", "contexts": []},
}
"""What the service answers to a question that has the word."""


def write_suite(folder: Path) -> None:
    """Write pages, questions and tests of all small suites."""
    texts = {f"kb/{name}": text for name, text in PAGES.items()}
    texts |= {"kb/queries.jsonl": _lines(QUERIES), "conversations.jsonl": _lines(CONVERSATIONS)}
    pipelines = {"agent": AGENT, "shop": SHOP, "service": ""}
    texts |= {f"test_{name}.py": own + TEST.replace("NAME", name) for name, own in pipelines.items()}
    texts |= {"pytest.ini": INI, "space.toml": SPACE, "evaluated.py": EVALUATED}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _lines(values: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@contextmanager
def service(folder: Path) -> Iterator[None]:
    """Serve the replies, and write into ``folder`` how the service is asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/query"
    read = '[read]\nanswer = "answer"\ncontexts = "contexts"\n'
    (folder / "service.toml").write_text(f'url = "{url}"\nbody = {{ query = "{{{{query}}}}" }}\n\n{read}')
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        lamp = {"answer": f"{SAID} [Source 1]", "contexts": [{"text": SAID, "document": "returns.md"}]}
        reply = json.dumps(next((said for word, said in REPLIES.items() if word in asked), lamp)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
