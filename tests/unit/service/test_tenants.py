"""Two tenants of one server: whatever they do, in whatever order, each sees what it would see alone.

Each call of a tenant is made twice: on a server that both use, and on one of its own. Both must say the same, to the
header; and nothing that is the other's stands in it. What is the other's is asked for, too: there the server of its own
is asked for what never was.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.unit.service.tenants import Comparable, Server, server

WORDS = {"acme": "aardvark7731", "bravo": "bison4402"}
OTHER = {"acme": "bravo", "bravo": "acme"}
tenants = st.sampled_from(sorted(WORDS))
names = st.sampled_from(["a.md", "b.md", "deep/c.txt"])
texts = st.sampled_from(
    [
        "# Returns\n\nA {word} can be returned within {n} days. Lamps cannot.\n",
        "# Delivery\n\nThe {word} is delivered in {n} days.\n\n## Islands\n\nThe {word} takes {n} weeks there.\n",
        "Lamps lamps lamps. The {word} has {n} lamps.\n",
    ]
)
questions = st.sampled_from(
    ["How long can I return lamps?", "What is aardvark7731?", "Where is bison4402 delivered, in days?", "Lamps"]
)
A_LARGE_FILE = 110


class Tenants(RuleBasedStateMachine):
    """Two tenants, on a server that they share and on one each."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        options = {"at_once": A_LARGE_FILE}
        self.shared = self._open(server(self.folder / "shared", sorted(WORDS), **options))
        self.alone = {name: self._open(server(self.folder / name, [name], **options)) for name in WORDS}
        self.compared = {name: (Comparable(), Comparable()) for name in WORDS}
        self.documents: dict[str, list[tuple[str, str]]] = {name: [] for name in WORDS}
        self.traces: dict[str, list[tuple[str, str]]] = {name: [] for name in WORDS}
        self.talks: dict[str, list[tuple[str, str]]] = {name: [] for name in WORDS}

    def _open(self, opening: Any) -> Server:
        opened: Server = self.runner.run(self.stack.enter_async_context(opening))
        return opened

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        shutil.rmtree(self.folder)

    def both(
        self, tenant: str, method: str, path: str, ids: tuple[str, str] = ("", ""), may_name: str = "", **given: Any
    ) -> Any:
        """Ask both servers, check that they say the same, and return what they said.

        ``may_name`` is what the tenant itself has sent.
        """
        answers = tuple(
            self.runner.run(where.clients[tenant].request(method, path.format(id=named), **given))
            for where, named in zip((self.shared, self.alone[tenant]), ids, strict=True)
        )
        self._nothing_of_the_other(tenant, answers[0], may_name)
        said, alone = (each.of(answer) for each, answer in zip(self.compared[tenant], answers, strict=True))
        assert said == alone
        assert answers[0].status_code < 500
        return answers

    def _nothing_of_the_other(self, tenant: str, answer: httpx.Response, may_name: str = "") -> None:
        other, said = OTHER[tenant], f"{answer.headers} {answer.text}"
        ids = [ids[0] for ids in (*self.documents[other], *self.traces[other], *self.talks[other])]
        for secret in {WORDS[other], other, self.shared.keys[other], *ids} - {may_name}:
            assert secret not in said

    # What a tenant does with what is its own

    @rule(tenant=tenants, name=names, text=texts, n=st.integers(2, 5), page=st.booleans())
    def ingests(self, tenant: str, name: str, text: str, n: int, page: bool) -> None:
        content = text.format(word=WORDS[tenant], n=n) + "\nAnd more of it.\n" * 4 * page
        form: dict[str, Any] = {"files": {"file": (name, content.encode())}}
        if page:
            form["data"] = {"metadata": json.dumps({"url": f"https://shop.example/{n}"})}
        ids = self._taken_in(tenant, form)
        self.documents[tenant] = [*self.documents[tenant], ids]

    def _taken_in(self, tenant: str, form: dict[str, Any]) -> tuple[str, str]:
        ids = []
        for where, compared in zip((self.shared, self.alone[tenant]), self.compared[tenant], strict=True):
            client = where.clients[tenant]
            answer = self.runner.run(client.post("/ingest", **form))
            assert answer.status_code in {200, 202}, answer.text
            ids.append(answer.json()["doc_id"])
            compared.of(answer)
            self.runner.run(_until_ready(where.clients["everything"], tenant, ids[-1]))
        self.both(tenant, "GET", "/ingest/{id}", (ids[0], ids[1]))
        return ids[0], ids[1]

    @rule(
        tenant=tenants, name=st.sampled_from(["a.exe", "", "../a.md", "a.md"]), content=st.sampled_from([b"", b"\xff"])
    )
    def ingests_what_cannot_be_taken(self, tenant: str, name: str, content: bytes) -> None:
        answer, _ = self.both(tenant, "POST", "/ingest", files={"file": (name, content)})
        assert answer.status_code in {415, 422}

    @rule(tenant=tenants, question=questions, debug=st.booleans(), mode=st.sampled_from(["normal", "strict"]))
    def asks(self, tenant: str, question: str, debug: bool, mode: str) -> None:
        self._asked(tenant, {"query": question, "debug": debug, "mode": mode})

    @rule(tenant=tenants, question=questions)
    def asks_for_a_stream(self, tenant: str, question: str) -> None:
        self._asked(tenant, {"query": question}, headers={"Accept": "text/event-stream"})

    def _asked(self, tenant: str, body: dict[str, Any], path: str = "/query", **given: Any) -> None:
        said, alone = self.both(tenant, "POST", path, json=body, **given)
        if said.status_code == 200:
            self.traces[tenant].append((said.headers["x-request-id"], alone.headers["x-request-id"]))

    @rule(tenant=tenants, question=questions, stream=st.booleans())
    def chats(self, tenant: str, question: str, stream: bool) -> None:
        messages = [{"role": "user", "content": question}]
        self._asked(tenant, {"model": "e3", "messages": messages, "stream": stream}, "/v1/chat/completions")

    @rule(tenant=tenants)
    def begins_a_conversation(self, tenant: str) -> None:
        answers = self.both(tenant, "POST", "/conversations")
        if answers[0].status_code == 201:  # without a document there is no collection yet
            shared, alone = (str(answer.json()["conversation"]) for answer in answers)
            self.talks[tenant].append((shared, alone))

    @rule(tenant=tenants, which=st.integers(0, 100), question=questions)
    def goes_on_in_a_conversation(self, tenant: str, which: int, question: str) -> None:
        if self.talks[tenant]:
            ids = self.talks[tenant][which % len(self.talks[tenant])]
            self._goes_on(tenant, ids, question)

    def _goes_on(self, tenant: str, ids: tuple[str, str], question: str) -> Any:
        answers = [
            self.runner.run(where.clients[tenant].post("/query", json={"query": question, "conversation": name}))
            for where, name in zip((self.shared, self.alone[tenant]), ids, strict=True)
        ]
        self._nothing_of_the_other(tenant, answers[0])
        said, alone = (each.of(answer) for each, answer in zip(self.compared[tenant], answers, strict=True))
        assert said == alone
        if answers[0].status_code == 200:
            self.traces[tenant].append((answers[0].headers["x-request-id"], answers[1].headers["x-request-id"]))
        return answers

    @rule(tenant=tenants, which=st.integers(0, 100))
    def ends_a_conversation(self, tenant: str, which: int) -> None:
        if self.talks[tenant]:
            self.both(tenant, "DELETE", "/conversations/{id}", self.talks[tenant][which % len(self.talks[tenant])])

    @rule(tenant=tenants)
    def lists(self, tenant: str) -> None:
        self.both(tenant, "GET", "/documents")

    @rule(tenant=tenants, which=st.integers(0, 100))
    def deletes(self, tenant: str, which: int) -> None:
        if self.documents[tenant]:
            self.both(tenant, "DELETE", "/documents/{id}", self.documents[tenant][which % len(self.documents[tenant])])

    @rule(tenant=tenants, which=st.integers(0, 100))
    def reads_a_trace(self, tenant: str, which: int) -> None:
        if self.traces[tenant]:
            self.both(tenant, "GET", "/traces/{id}", self.traces[tenant][which % len(self.traces[tenant])])

    @rule(tenant=tenants, which=st.integers(0, 100))
    def reads_an_answer_again(self, tenant: str, which: int) -> None:
        if self.traces[tenant]:
            ids = self.traces[tenant][which % len(self.traces[tenant])]
            self.both(tenant, "GET", "/traces/{id}/answer", ids, may_name=WORDS[OTHER[tenant]])

    @rule(tenant=tenants, which=st.integers(0, 100), thumb=st.sampled_from([-1, 1]))
    def rates_an_answer(self, tenant: str, which: int, thumb: int) -> None:
        if self.traces[tenant]:
            ids = self.traces[tenant][which % len(self.traces[tenant])]
            self.both(tenant, "POST", "/traces/{id}/rating", ids, json={"thumb": thumb, "comment": WORDS[tenant]})

    @rule(tenant=tenants, path=st.sampled_from(["/ready", "/health", "/metrics", "/v1/models"]))
    def looks_around(self, tenant: str, path: str) -> None:
        self.both(tenant, "GET", path)

    # What it does with what is the other's

    @rule(tenant=tenants, which=st.integers(0, 100), of=st.sampled_from(["", "/answer", "/rating"]))
    def reaches_for_a_trace_of_the_other(self, tenant: str, which: int, of: str) -> None:
        if not self.traces[OTHER[tenant]]:
            self._adds_a_page(OTHER[tenant])
            self._asked(OTHER[tenant], {"query": "Lamps"})
        method, given = ("POST", {"json": {"thumb": 1}}) if of == "/rating" else ("GET", {})
        self._reaches(tenant, self.traces[OTHER[tenant]], which, (method, f"/traces/{{id}}{of}"), **given)

    @rule(tenant=tenants, which=st.integers(0, 100), ends=st.booleans(), question=questions)
    def reaches_for_a_conversation_of_the_other(self, tenant: str, which: int, ends: bool, question: str) -> None:
        if not self.talks[OTHER[tenant]]:
            self._adds_a_page(OTHER[tenant])
            self.begins_a_conversation(OTHER[tenant])
        theirs = self.talks[OTHER[tenant]]
        if ends:
            self._reaches(tenant, theirs, which, ("DELETE", "/conversations/{id}"))
            return
        answer, invented = self._goes_on(tenant, (theirs[which % len(theirs)][0], uuid4().hex), question)
        assert answer.status_code == 404
        assert answer.content == invented.content

    @rule(tenant=tenants, which=st.integers(0, 100), path=st.sampled_from(["/ingest/{id}", "/documents/{id}"]))
    def reaches_for_a_document_of_the_other(self, tenant: str, which: int, path: str) -> None:
        if not self.documents[OTHER[tenant]]:
            self._adds_a_page(OTHER[tenant])
        method = "DELETE" if path.startswith("/documents") else "GET"
        self._reaches(tenant, self.documents[OTHER[tenant]], which, (method, path))

    def _adds_a_page(self, tenant: str) -> None:
        page = f"Lamps of {WORDS[tenant]}.\n".encode()
        self.documents[tenant].append(self._taken_in(tenant, {"files": {"file": ("a.md", page)}}))

    def _reaches(
        self, tenant: str, theirs: list[tuple[str, str]], which: int, call: tuple[str, str], **given: Any
    ) -> None:
        ids = (theirs[which % len(theirs)][0], uuid4().hex)
        answer, invented = self.both(tenant, *call, ids, **given)
        assert answer.status_code == 404
        assert answer.content == invented.content

    @rule(tenant=tenants, call=st.sampled_from(["/query", "/documents", "/ingest"]))
    def names_the_others_collection(self, tenant: str, call: str) -> None:
        said = []
        for collection in (OTHER[tenant], "nobodys"):
            client = self.shared.clients[tenant]
            answer = self.runner.run(_about(client, call, collection))
            self._nothing_of_the_other(tenant, answer)
            said.append((answer.status_code, answer.content))
            assert answer.status_code == 404
        # Asked twice, the rate is counted twice: on the server of its own, too.
        for _ in said:
            self.runner.run(_about(self.alone[tenant].clients[tenant], call, "nobodys"))
        assert said[0] == said[1]

    # Whoever sees everything changes nothing by looking

    @rule(question=questions, collection=tenants)
    def the_owner_looks(self, question: str, collection: str) -> None:
        client = self.shared.clients["everything"]
        for coming in (
            client.get("/documents", params={"collection": collection}),
            client.post("/query", json={"query": question, "collection": collection}),
            client.get("/metrics", params={"by_collection": True}),
        ):
            assert self.runner.run(coming).status_code in {200, 404}


async def _until_ready(owner: httpx.AsyncClient, collection: str, doc_id: str) -> None:
    async with asyncio.timeout(20):
        while (await owner.get(f"/ingest/{doc_id}", params={"collection": collection})).json()["status"] == "pending":
            await asyncio.sleep(0.005)


def _about(client: httpx.AsyncClient, call: str, collection: str) -> Any:
    if call == "/query":
        return client.post("/query", json={"query": "Lamps", "collection": collection})
    if call == "/ingest":
        return client.post(call, files={"file": ("a.md", b"# Lamps\n")}, params={"collection": collection})
    return client.get(call, params={"collection": collection})


def test_counts_of_all_tenants_are_not_for_one(tmp_path: Path) -> None:
    async def statuses() -> dict[str, int]:
        async with server(tmp_path, sorted(WORDS)) as opened:
            return {name: (await client.get("/metrics")).status_code for name, client in opened.clients.items()}

    assert asyncio.run(statuses()) == {"acme": 403, "bravo": 403, "everything": 200}


def test_whatever_is_the_others_is_reached_for() -> None:
    """Each way, once: random steps take some of them."""
    both = Tenants()
    try:
        for tenant in sorted(WORDS):
            for of in ("", "/answer", "/rating"):
                both.reaches_for_a_trace_of_the_other(tenant, 0, of)
            for ends in (False, True):
                both.reaches_for_a_conversation_of_the_other(tenant, 0, ends, "Lamps")
            for path in ("/ingest/{id}", "/documents/{id}"):
                both.reaches_for_a_document_of_the_other(tenant, 0, path)
            for call in ("/query", "/documents", "/ingest"):
                both.names_the_others_collection(tenant, call)
    finally:
        both.teardown()


# What failed is told step by step; making it smaller would take minutes.
_AT_ONCE = settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
Tenants.TestCase.settings = settings(_AT_ONCE, max_examples=3, stateful_step_count=30)
TestTenants = Tenants.TestCase


class ManyTenants(Tenants):
    """The same, for longer."""


ManyTenants.TestCase.settings = settings(_AT_ONCE, max_examples=150, stateful_step_count=40)
TestTenantsForLonger = pytest.mark.long(ManyTenants.TestCase)
