"""What a user's own embedder and chunker said is kept only where they state a fingerprint, or in mode record."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.plugin.conftest import Suite

PARTS = """
from pathlib import Path

from rag_harness import Chunk
from rag_harness.models.dry_run import MockEmbedder

LOG = Path(__file__).parent / "asked.txt"
WORD = "paragraph"

def note(what):
    with LOG.open("a") as file:
        file.write(what + "\\n")

class Counted(MockEmbedder):
    model, revision = "own/words", "1"
    {embedder}

    def embed_documents(self, texts):
        note("embed")
        return super().embed_documents(texts)

    embed_queries = embed_documents

def embedder(parts):
    return Counted()

def chunk(document, tokenizer, settings):
    note("cut")
    return [Chunk(f"{{document.doc_id}}#chunk_0", document.doc_id, document.text, 0, len(document.text), index=0)]
{chunker}
"""
ENTRY_POINTS = """
[rag_harness.embedders]
counted = own_parts:embedder
[rag_harness.chunkers]
in_one = own_parts:chunk
"""
OPTIONS = ("--rag-embed-model=counted:x", "--rag-chunker=in_one")


@pytest.fixture
def own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    site = suite.path / "site"
    about = site / "own-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    suite.pytester.makepyfile("import pytest\n\n@pytest.mark.e2\ndef test_e2(rag_result):\n    assert rag_result.ok\n")
    return suite


def write(suite: Suite, fingerprint: str = "") -> None:
    stated = {"embedder": f"fingerprint = {fingerprint!r}", "chunker": f"chunk.fingerprint = {fingerprint!r}"}
    (suite.path / "site" / "own_parts.py").write_text(PARTS.format(**stated))


def asked(suite: Suite) -> Counter[str]:
    log = suite.path / "site" / "asked.txt"
    found = Counter(log.read_text().split()) if log.exists() else Counter[str]()
    log.unlink(missing_ok=True)
    return found


def test_without_a_fingerprint_they_are_asked_in_each_run(own: Suite) -> None:
    write(own)
    for _ in range(2):
        own.run(*OPTIONS).assert_outcomes(passed=4)
        found = asked(own)
        assert found["embed"]
        assert found["cut"]


def test_with_a_fingerprint_they_are_asked_once_and_again_with_another(own: Suite) -> None:
    write(own, "v1")
    own.run(*OPTIONS).assert_outcomes(passed=4)
    assert asked(own)["embed"]
    own.run(*OPTIONS, "--rag-overwrite").assert_outcomes(passed=4)
    assert not asked(own)
    write(own, "v2 with more")
    own.run(*OPTIONS, "--rag-overwrite").assert_outcomes(passed=4)
    found = asked(own)
    assert found["embed"]
    assert found["cut"]


def test_what_record_mode_kept_of_them_is_replayed(own: Suite) -> None:
    write(own)
    own.run(*OPTIONS, "--rag-mode=record").assert_outcomes(passed=4)
    assert asked(own)
    own.run(*OPTIONS, "--rag-mode=replay").assert_outcomes(passed=4)
    assert not asked(own)


def test_a_golden_suite_looks_up_again_what_they_find(own: Suite) -> None:
    own.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    pass\n")
    entry = {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "it says so"}
    (own.path / "golden.json").write_text(json.dumps([entry]))
    write(own)
    for _ in range(2):
        result = own.run(*OPTIONS, "test_golden.py", "--rag-k=1", "-v")
        result.stdout.fnmatch_lines(["answers: 1 looked up now"])
        assert asked(own)["cut"]
