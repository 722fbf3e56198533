from __future__ import annotations

import ssl
import sys
from json import JSONDecodeError

import pytest
from httpx import ConnectError, Headers, ReadTimeout
from pydantic_core import ValidationError
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_harness.core.errors import CriticalError, PrerequisiteError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes.server_connection import check_client, connect, explained, speaking

URL = "https://qdrant.example:6333"


def answer(status: int, content: bytes = b'{"status": {"error": "Wrong input: no."}}') -> Exception:
    return UnexpectedResponse(status, "", content, Headers())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            answer(401),
            f"{URL} refuses the key (401): Wrong input: no. Set QDRANT_API_KEY to one that may read and write.",
        ),
        (answer(403), f"{URL} refuses the key (403): Wrong input: no. Set QDRANT_API_KEY to one that may do this."),
        (answer(400), f"{URL} answers 400: Wrong input: no."),
        (answer(502, b"<html>Bad gateway</html>"), f"{URL} answers 502: <html>Bad gateway</html>."),
        (answer(500, b"\xff" * 900), f"{URL} answers 500: {chr(0xFFFD) * 300}."),
        (
            answer(507),
            f"{URL} has no room left (507): Wrong input: no. Enlarge its volumes; the next run sends the points again.",
        ),
        (ResourceExhaustedResponse("too many requests", 3), f"{URL} answers 429: too many requests."),
        (
            ResponseHandlingException(ReadTimeout("")),
            f"{URL} took too long (ReadTimeout). Raise qdrant_cluster timeout=, or look at the server's load.",
        ),
        (
            ResponseHandlingException(ConnectError("Connection refused")),
            f"{URL} cannot be reached (ConnectError: Connection refused). Is it running, and is rag_qdrant_url right?",
        ),
        (
            JSONDecodeError("Expecting value", "<html>", 0),
            f"{URL} answers, and not as Qdrant does (JSONDecodeError). Is rag_qdrant_url right?",
        ),
        (
            ResponseHandlingException(ValidationError.from_exception_data("VersionInfo", [])),
            f"{URL} answers, and not as Qdrant does (ValidationError). Is rag_qdrant_url right?",
        ),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_a_failure_says_what_was_found_and_what_to_do(error: Exception, says: str) -> None:
    assert explained(error, URL) == says
    with pytest.raises(CriticalError) as caught, speaking("does not answer", URL):
        raise error
    assert str(caught.value) == f"The Qdrant index does not answer: {says}"


def test_an_error_of_ours_goes_through() -> None:
    with pytest.raises(SettingsError, match=r"^ours$"), speaking("does not answer", URL):
        raise SettingsError("ours")


@pytest.mark.parametrize(("url", "verifies"), [("https://127.0.0.1:1", True), ("http://127.0.0.1:1", False)])
def test_a_server_over_tls_is_verified(url: str, verifies: bool) -> None:
    client = connect(url, "")
    context = client._client.http.client._client._transport._pool._ssl_context
    assert (context.verify_mode == ssl.CERT_REQUIRED) == verifies
    assert context.check_hostname == verifies
    client.close()


@pytest.mark.parametrize("url", [URL, ""])
def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    wanted = f"index on the Qdrant server {URL}" if url else "index 'memory'"
    says = f"The {wanted} needs the package 'qdrant_client', which is not installed. Install it: pip install "
    with pytest.raises(PrerequisiteError) as caught:
        connect(url, "")
    assert str(caught.value) == f"{says}'pytest-rag-harness[qdrant]'"


def test_the_client_is_asked_for_only_where_a_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_client(Settings(qdrant_url=URL))
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    check_client(Settings())
    check_client(Settings(qdrant_url=URL, index="mine"))
    with pytest.raises(PrerequisiteError, match=r"pip install 'pytest-rag-harness\[qdrant\]'"):
        check_client(Settings(qdrant_url=URL))
