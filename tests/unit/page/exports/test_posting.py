"""What is sent to the server of a tool, and what becomes of its replies."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.page.exports.servers import Posting
from tests.serving import running
from tests.unit.page.exports.stub_server import stub_server


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_with_the_key(status: int) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", f"{other.url}/login")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with (
        stub_server(lambda *_: (200, {})) as other,
        running(ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)) as server,
    ):
        posting = Posting("Tool", f"http://127.0.0.1:{server.server_port}", {"Authorization": "Bearer sk-planted-77"})
        with pytest.raises(PrerequisiteError, match=f"refused /v1/traces: {status}") as error:
            posting.send("/v1/traces", {"a": 1})
    assert other.asked == []
    assert "sk-planted-77" not in str(error.value)
