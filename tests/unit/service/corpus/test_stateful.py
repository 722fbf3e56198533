"""Documents come, are replaced, go, and the server starts anew, in any order: a dictionary says what must be found."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import check_finds, opened

NAMES = st.sampled_from(["a.md", "b/a.md", "b-a.md", "ä.txt", "z.html"])
WORDS = st.lists(st.sampled_from(["tent", "boot", "lamp", "fee", "zinc", "oak"]), min_size=1, max_size=4)


class Documents(RuleBasedStateMachine):
    """Two collections of one server; what is done to one must not be seen in the other."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.expected: dict[str, dict[str, str]] = {"one": {}, "two": {}}
        self.open()

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    def open(self) -> None:
        self.stack = AsyncExitStack()
        self.corpora = self.run(self.stack.enter_async_context(opened(self.root)))

    def collection(self, tenant: str) -> Any:
        return self.run(self.corpora.create(tenant))

    @rule(tenant=st.sampled_from(["one", "two"]), name=NAMES, words=WORDS, sections=st.integers(1, 3))
    def ingest(self, tenant: str, name: str, words: list[str], sections: int) -> None:
        text = "\n".join(f"# Part {n}\n\n{' '.join(words)} of {n}.\n" for n in range(sections))
        done = self.run(self.collection(tenant).ingest(name, text.encode()))
        assert (done.status, done.name) == ("ready", name)
        assert done.coverage is not None
        assert done.coverage > 0.5
        self.expected[tenant][name] = self.collection(tenant).serving.document(name).text

    @rule(tenant=st.sampled_from(["one", "two"]), name=NAMES)
    def refuse(self, tenant: str, name: str) -> None:
        with pytest.raises(ProblemError):
            self.run(self.collection(tenant).ingest(name, b"\n \n"))

    @precondition(lambda self: any(self.expected.values()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        tenant = data.draw(st.sampled_from([name for name, there in self.expected.items() if there]))
        name = data.draw(st.sampled_from(sorted(self.expected[tenant])))
        collection = self.collection(tenant)
        doc_id = next(each.doc_id for each in collection.documents() if (each.name, each.status) == (name, "ready"))
        other = self.collection("two" if tenant == "one" else "one")
        with pytest.raises(KeyError):
            self.run(other.delete(doc_id))
        self.run(collection.delete(doc_id))
        del self.expected[tenant][name]

    @rule()
    def restart(self) -> None:
        self.run(self.stack.aclose())
        self.open()

    @invariant()
    def finds_what_is_there(self) -> None:
        for tenant, expected in self.expected.items():
            check_finds(self.collection(tenant), expected)

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.run(self.stack.aclose())
            self.loop.close()
            shutil.rmtree(self.root)


class ManyDocuments(Documents):
    """The same, for longer."""


_ANYHOW = settings(deadline=None, suppress_health_check=list(HealthCheck))
Documents.TestCase.settings = settings(_ANYHOW, max_examples=4, stateful_step_count=12)
TestDocuments = Documents.TestCase
ManyDocuments.TestCase.settings = settings(_ANYHOW, max_examples=50, stateful_step_count=25)
TestDocumentsForLonger = pytest.mark.long(ManyDocuments.TestCase)
