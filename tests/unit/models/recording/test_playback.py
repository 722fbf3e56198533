"""Calls are recorded and replayed with the server gone and the network closed."""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import RecordingMissError
from rag_harness.models.recording.cassette_file import (
    ExperimentCassette,
    Recorded,
    _as_written,
    _as_yaml,
    _yaml,
    read_own_shape,
    write_interaction,
)
from rag_harness.models.recording.cassettes import TOTAL, TTFT, Cassettes
from rag_harness.models.recording.patches import patched
from rag_harness.models.recording.playback import (
    Playback,
    allow_connections,
    closed_network,
    is_whole,
    refuse_connections,
)
from tests.unit.models.recording.answering import BINARY, Answering, answering, chunk

# Calls of httpx, httpx2 and the openai SDK, recorded from a server and replayed with the server gone.

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


@pytest.fixture(params=["httpx2", "httpx"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


@contextmanager
def mode(folder: Path, name: str, rerecord: bool = False) -> Iterator[Cassettes]:
    cassettes, records = Cassettes(folder), name == "record"
    with patched(Playback(cassettes, records, records, rerecord, "Record it."), lambda request: False):
        yield cassettes


def stream_of(library: Any, server: Answering) -> tuple[str, dict[str, str]]:
    with library.Client() as client, client.stream("POST", f"{server.url}/v1/chat/completions", json=ASKED) as response:
        text = ""
        for part in response.iter_text():
            text += part
            if "John" in text:
                server.seen.set()
        return text, dict(response.headers)


async def stream_of_async(library: Any, server: Answering) -> tuple[str, dict[str, str]]:
    url = f"{server.url}/v1/chat/completions"
    async with library.AsyncClient() as client, client.stream("POST", url, json=ASKED) as response:
        text = ""
        async for part in response.aiter_text():
            text += part
            if "John" in text:
                server.seen.set()
        return text, dict(response.headers)


def in_loop(ask: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: asyncio.run(ask(*args))


@pytest.mark.parametrize("ask", [stream_of, in_loop(stream_of_async)], ids=["sync", "async"])
def test_a_stream_passes_as_it_comes_and_is_replayed(tmp_path: Path, library: Any, ask: Callable[..., Any]) -> None:
    with answering("John ", "Smith") as server:
        server.seen.clear()  # the server holds the second delta back until the client has seen the first
        with mode(tmp_path, "record") as cassettes:
            live, _ = ask(library, server)
        assert len(cassettes.made) == len(server.calls) == 1
    with mode(tmp_path, "replay") as cassettes:
        text, headers = ask(library, server)
    assert text == live
    assert live.endswith("data: [DONE]\n\n")
    assert 0 < float(headers[TTFT]) < float(headers[TOTAL])
    assert len(cassettes.used) == 1


def test_what_one_way_records_the_other_replays(tmp_path: Path) -> None:
    pytest.importorskip("httpx")
    with answering("a") as server, mode(tmp_path, "record"):
        text, _ = stream_of(importlib.import_module("httpx"), server)
    with mode(tmp_path, "replay"):
        assert asyncio.run(stream_of_async(importlib.import_module("httpx2"), server))[0] == text


@pytest.mark.parametrize("path", ["/page?lang=en&api_key=planted-key-1", "/gzip", "/binary", "/empty"])
def test_requests_without_a_body(tmp_path: Path, library: Any, path: str) -> None:
    with answering() as server, mode(tmp_path, "record") as cassettes:
        live = library.get(server.url + path)
    (file,) = cassettes.made
    assert file.parent.name == "127.0.0.1"
    with mode(tmp_path, "replay"):
        replayed = library.get(server.url + path.replace("planted-key-1", "other"))
    assert replayed.status_code == live.status_code
    assert replayed.content == live.content.replace(b"planted-key-1", b"REDACTED")
    assert replayed.content == {"/gzip": b'{"packed": true}', "/binary": BINARY}.get(path, replayed.content)
    assert b"planted" not in file.read_bytes()


def test_forms_and_files(tmp_path: Path, library: Any) -> None:
    def send(url: str, content: bytes) -> Any:
        return library.post(f"{url}/upload", files={"file": ("a.bin", content)}, data={"a": "b"}).json()

    with answering() as server, mode(tmp_path, "record"):
        assert (send(server.url, BINARY), send(server.url, b"text")) == ({"n": 1}, {"n": 2})
        assert send(server.url, BINARY) == {"n": 1}  # recorded a moment ago
        assert library.post(f"{server.url}/form", data={"a": "b", "client_secret": "x" * 9}).json() == {"n": 3}
    with mode(tmp_path, "replay"):
        assert (send(server.url, BINARY), send(server.url, b"text")) == ({"n": 1}, {"n": 2})
        with pytest.raises(
            RecordingMissError, match=r"No recording of POST http://127\.0\.0\.1:\d+/upload\. The nearest"
        ):
            send(server.url, b"other")


def test_only_successes_are_kept(tmp_path: Path, library: Any) -> None:
    with answering() as server, mode(tmp_path, "record") as cassettes:
        assert library.get(f"{server.url}/broken").status_code == 500
        assert not cassettes.made


def test_a_stream_that_is_not_read_to_its_end_is_not_kept(tmp_path: Path, library: Any) -> None:
    with answering("a", "b") as server, mode(tmp_path, "record") as cassettes:
        with library.Client() as client, client.stream("POST", f"{server.url}/v1/chat/completions", json=ASKED) as said:
            next(said.iter_raw())
        assert not cassettes.made


def other(part: bytes) -> bytes:
    """Return the same of a second choice, which was asked for with n=2."""
    assert b'"index": 0' in part or b'"index":0' in part
    return part.replace(b'"index": 0', b'"index": 1').replace(b'"index":0', b'"index":1')


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([chunk("a"), chunk("", "stop")], True),
        ([chunk("a"), b"data: [DONE]\n\n"], True),
        ([chunk("a"), chunk("b")], False),
        ([chunk("a"), chunk("", "stop"), other(chunk("b"))], False),
        ([chunk("a"), chunk("", "stop"), other(chunk("b")), other(chunk("", "stop"))], True),
        ([], False),
    ],
)
def test_a_stream_is_whole_that_says_why_it_ends_or_that_it_does(parts: list[bytes], whole: bool) -> None:
    assert is_whole(b"".join(parts), "text/event-stream", ASKED) == whole


def test_record_calls_what_is_missing_and_rerecord_calls_once_more(tmp_path: Path) -> None:
    import httpx2

    with answering() as server:
        for rerecord, calls in ((False, 1), (False, 1), (True, 2)):
            with mode(tmp_path, "record", rerecord):
                assert httpx2.get(f"{server.url}/a").json()["n"] == httpx2.get(f"{server.url}/a").json()["n"] == calls


def test_the_patch_is_undone(tmp_path: Path, library: Any) -> None:
    before = library.HTTPTransport.handle_request, library.AsyncHTTPTransport.handle_async_request
    with pytest.raises(RecordingMissError), mode(tmp_path, "replay"):
        library.get("http://host.test/")
    assert (library.HTTPTransport.handle_request, library.AsyncHTTPTransport.handle_async_request) == before


@pytest.mark.parametrize("streamed", [True, False])
def test_the_openai_sdk(tmp_path: Path, streamed: bool) -> None:
    from openai import APIConnectionError, AsyncOpenAI, OpenAI

    messages: Any = [{"role": "user", "content": "Who?"}]

    def ask(url: str, question: Any = messages) -> str:
        with OpenAI(api_key="sk-planted-0123456789", base_url=f"{url}/v1", max_retries=0) as client:
            said: Any = client.chat.completions.create(model="m", messages=question, stream=streamed)
            return (
                "".join(each.choices[0].delta.content for each in said) if streamed else said.choices[0].message.content
            )

    async def ask_async(url: str) -> str:
        async with AsyncOpenAI(api_key="another", base_url=f"{url}/v1", max_retries=0) as client:
            said: Any = await client.chat.completions.create(model="m", messages=messages, stream=streamed)
            if streamed:
                return "".join([each.choices[0].delta.content async for each in said])
            return str(said.choices[0].message.content)

    with answering("John ", "Smith") as server:
        with mode(tmp_path, "record"):
            assert ask(server.url) == "John Smith"
        assert len(server.calls) == 1
    with mode(tmp_path, "replay"):
        assert ask(server.url) == asyncio.run(ask_async(server.url)) == "John Smith"
        with pytest.raises((APIConnectionError, RecordingMissError)) as caught:
            ask(server.url, [{"role": "user", "content": "Where?"}])
    miss = caught.value.__cause__ or caught.value  # some releases of the SDK take every error for a broken connection
    assert isinstance(miss, RecordingMissError)
    assert "No recording of m for 'Where?'. The nearest recording, " in str(miss)


def test_many_calls_overlap(tmp_path: Path) -> None:
    import httpx2

    async def ask_all(url: str) -> list[str]:
        async with httpx2.AsyncClient() as client:
            bodies = [{**ASKED, "seed": n} for n in range(30)]
            said = await asyncio.gather(*(client.post(f"{url}/v1/chat/completions", json=each) for each in bodies))
            return [each.text for each in said]

    with answering("a", "b") as server:
        with mode(tmp_path, "record") as cassettes:
            live = asyncio.run(ask_all(server.url))
        assert len(cassettes.made) == len(server.calls) == 30
    with mode(tmp_path, "replay"):
        assert asyncio.run(ask_all(server.url)) == live


def test_a_cassette_of_vcrpy_below_keeps_its_own(tmp_path: Path, library: Any) -> None:
    import vcr

    theirs = tmp_path / "theirs.yaml"
    with answering() as server:
        with vcr.use_cassette(str(theirs)):
            first = library.get(f"{server.url}/theirs").json()
        with vcr.use_cassette(str(theirs), record_mode="new_episodes"), mode(tmp_path / "ours", "record") as cassettes:
            assert library.get(f"{server.url}/theirs").json() == first
            ours = library.get(f"{server.url}/ours").json()
        assert len(cassettes.made) == 1
        assert server.calls == ["/theirs", "/ours"]
    assert "/ours" not in theirs.read_text()
    with vcr.use_cassette(str(theirs), record_mode="none"), mode(tmp_path / "ours", "replay"):
        assert library.get(f"{server.url}/theirs").json() == first
        assert library.get(f"{server.url}/ours").json() == ours
        with pytest.raises(RecordingMissError):
            library.get(f"{server.url}/nobody")


@pytest.mark.parametrize("path", ["/page?lang=en", "/binary"])
def test_plain_vcrpy_replays_a_file(tmp_path: Path, library: Any, path: str) -> None:
    import vcr

    with answering("John ", "Smith") as server, mode(tmp_path, "record") as cassettes:
        live = library.get(server.url + path)
        streamed, _ = stream_of(library, server)
    chat, page = sorted(cassettes.made, key=lambda file: file.parent.name, reverse=True)
    with vcr.use_cassette(str(page), record_mode="none") as cassette:
        assert library.get(server.url + path).content == live.content
        assert cassette.play_count == 1
    with vcr.use_cassette(str(chat), record_mode="none"):
        assert stream_of(library, server)[0] == streamed


def test_an_answer_is_written_before_a_thread_is_waited_for(
    tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads may be busy, and a kill may come meanwhile."""

    async def killed_while_waiting(*_: object) -> None:
        raise KeyboardInterrupt

    with answering("a") as server:
        monkeypatch.setattr(asyncio, "to_thread", killed_while_waiting)
        with mode(tmp_path, "record"), pytest.raises(KeyboardInterrupt):
            asyncio.run(stream_of_async(library, server))
        with mode(tmp_path, "replay"):
            assert stream_of(library, server)[0].endswith("data: [DONE]\n\n")


def test_skipped_requests_go_their_way(tmp_path: Path) -> None:
    import httpx2

    cassettes = Cassettes(tmp_path)
    with answering() as server, patched(Playback(cassettes, False, False), lambda asked: "qdrant" in str(asked.url)):
        assert httpx2.get(f"{server.url}/qdrant").json()["n"] == 1
        with pytest.raises(RecordingMissError):
            httpx2.get(f"{server.url}/model")
    assert not cassettes.used


@pytest.fixture
def closed() -> Iterator[None]:
    refuse_connections()
    yield
    allow_connections()


def send_to() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", 9))


def send_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


@pytest.mark.parametrize(
    ("attempt", "host"),
    [
        (lambda: socket.create_connection(("127.0.0.1", 9), timeout=1), "127.0.0.1"),
        (lambda: socket.create_connection(("::1", 9), timeout=1), "::1"),
        (lambda: socket.getaddrinfo("host.test", 443), "host.test"),
        (lambda: socket.getaddrinfo(b"host.test", 443), "host.test"),
        (lambda: socket.gethostbyname("host.test"), "host.test"),
        (lambda: socket.gethostbyname_ex("host.test"), "host.test"),
        (lambda: socket.gethostbyaddr("192.0.2.1"), "192.0.2.1"),
        (send_to, "127.0.0.1"),
        (send_message, "127.0.0.1"),
        (lambda: asyncio.run(_connect()), "127.0.0.1"),
    ],
)
def test_every_attempt_names_its_caller(closed: None, attempt: Callable[[], Any], host: str) -> None:
    wanted = rf"opens no connection, but .*\.py:\d+ \(.*\) asked for {host}\."
    with pytest.raises(RecordingMissError, match=wanted) as refused:
        attempt()
    assert "playback.py" not in str(refused.value), "it is not the guard that asks"


async def _connect() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


def test_what_stays_open(closed: None) -> None:
    asyncio.run(asyncio.sleep(0))  # the loop's own pair of sockets
    one, other = socket.socketpair()
    with one, other, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        socket.getaddrinfo(None, 80)


def test_a_host_may_be_let_through() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        refuse_connections({"127.0.0.1"})
        try:
            socket.create_connection(server.getsockname(), timeout=5).close()
            with pytest.raises(RecordingMissError):
                socket.getaddrinfo("host.test", 443)
        finally:
            allow_connections()


@pytest.mark.parametrize(
    ("server", "is_open"), [("http://localhost:6333", True), ("http://host.test", False), ("", False)]
)
def test_a_server_on_this_machine_is_let_through_until_the_block_ends(server: str, is_open: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with closed_network(server):
            with pytest.raises(RecordingMissError):
                socket.getaddrinfo("host.test", 443)
            if is_open:
                socket.create_connection(listening.getsockname(), timeout=5).close()
            else:
                with pytest.raises(RecordingMissError):
                    socket.create_connection(listening.getsockname(), timeout=5)
        socket.create_connection(listening.getsockname(), timeout=5).close()


def test_down_again(closed: None) -> None:
    allow_connections()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


# The fast reader of recordings returns the same as YAML, or None.

URL = "https://host.test/v1/chat/completions"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["", " a", "a\n", "\n a", "a\n\n", "a \nb", "\ta", "a\r\nb", "x\u2028y", "data: {}\n\ndata: [DONE]\n\n", "  \n a"]
)


def written(sent: Any, said: str, kind: str, ttft: float | None = 2.5, version: str = "", url: str = URL) -> str:
    asked = Cassettes(Path("nowhere")).asked("POST", url, sent if isinstance(sent, bytes) else b"")
    recorded = Recorded(200, kind, said.encode(), 12.25, ttft, recorded_at="2026-11-20T14:02:00+00:00", version=version)
    return write_interaction(asked, recorded).decode()


def agrees(text: str) -> bool:
    """Return whether the short way reads ``text``; it must then say what YAML says."""
    found = read_own_shape(text)
    if found is not None:
        assert _as_written(found) == _as_yaml(text)
    return found is not None


KINDS = ["text/event-stream; charset=utf-8", "application/json", "", "a: b", "text/x; q", "text/plain"]
VERSIONS = st.sampled_from(["", "r2.4.1", "1.0", "true", "2026-11-20", "it's", "a\nb", "ü: #", " x ", "'"]) | TEXTS


@given(TEXTS, TEXTS, st.sampled_from(KINDS), VERSIONS, st.sampled_from([URL, "http://h/a b", "http://h/?q=1", "/x"]))
def test_whatever_is_written_is_read_as_yaml_reads_it(asked: str, said: str, kind: str, version: str, url: str) -> None:
    text = written(json.dumps({"model": "m", "messages": [asked]}).encode(), said, kind, version=version, url=url)
    agrees(text)
    read = _as_yaml(text)
    assert (read.body.decode(), read.content_type, read.version) == (said, kind, version)
    assert read.request == {"model": "m", "messages": [asked]}


@given(TEXTS, st.sampled_from(["text/event-stream", "application/json"]), st.sampled_from(["", "r2.4.1"]))
def test_vcrpy_reads_what_is_written_without_it(said: str, kind: str, version: str) -> None:
    import vcr

    text = written(b'{"model": "m"}', said, kind, version=version)
    requests, responses, *_ = vcr.serialize.deserialize(text, vcr.serializers.yamlserializer)
    assert json.loads(requests[0].body) == {"model": "m"}
    assert responses[0]["body"]["string"] == said.encode()


def test_a_recording_that_yaml_wrote_is_written_the_same_without_it() -> None:
    for file in sorted(Path("cassettes/embedded").glob("*.yaml")):
        cassette = ExperimentCassette(file)
        # The one writes a version in quotes, the other only where it would be a number.
        for found in (replace(cassette.read(digest), version="") for digest in cassette.digests[::67]):
            asked = Cassettes(file.parent).asked("POST", found.url, str(found.sent).encode())
            without = write_interaction(asked, found)
            assert read_own_shape(without.decode()) is not None
            assert _yaml(asked, asked.content, found.body.decode(), found) == without


def test_writing_imports_neither_vcrpy_nor_yaml(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rag_harness.models.recording.cassettes import Cassettes, Recorded; "
        "made = Cassettes(Path(sys.argv[1])); asked = made.asked('POST', 'http://h/x', b'{\"model\": \"m\"}'); "
        "made.save(asked, Recorded(200, 'text/event-stream', b'data: {}\\n\\n', 1.0, None)); "
        "print('yaml' in sys.modules, 'vcr' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


def test_an_answer_of_a_common_server_is_read_the_short_way() -> None:
    said = 'data: {"choices": [{"delta": {"content": "29 €"}}]}\n\ndata: [DONE]\n\n'
    assert agrees(written(b'{"model": "m"}', said, "text/event-stream"))
    assert agrees(written(b'{"model": "m"}', said, "text/event-stream", ttft=None))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  response:", "  response: "),
        ("code: 200", "code: 2e2"),
        ("      string: |", "      string: >"),
        ("        data", "      data"),
        ("        data", "        data: \x07"),
        ("metadata:", "# metadata:"),
        ("total_ms: 12.25", "total_ms: 12"),
        ("version: 1", "version: 1 "),
        ("ttft_ms: 2.5\n", "ttft_ms: 2.5 \n"),
        ("+00:00'\n", "+00:00'"),
        ("2026-11-20T", "20 Nov 2026 "),
    ],
)
def test_what_is_not_as_written_is_left_to_yaml(old: str, new: str) -> None:
    text = written(b'{"model": "m"}', "data: {}\n\n", "text/event-stream")
    assert old in text
    assert read_own_shape(text.replace(old, new, 1)) is None
