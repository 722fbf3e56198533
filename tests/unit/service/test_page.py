"""The page as it is served: whole, its own, and refused nothing that it needs."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install '.[service]'")


from rag_harness import studies
from rag_harness.core.escaping import page_script, page_style
from rag_harness.core.settings import configurations
from rag_harness.service import questions

PAGE = files("rag_harness.service").joinpath("page")
MOST_BYTES = 40 * 1024
CODE = re.compile(r"""f?"([A-Z]+(?:_[A-Z]+)+|STRICT)\b[":]""")


def whole(name: str) -> str:
    """Return a file as it is served: style and script stand behind what all pages share."""
    text = PAGE.joinpath(name).read_text(encoding="utf-8")
    if name == "index.html":
        return text
    return page_style(text) if name == "page.css" else page_script(text)


def asked(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a request to the page's routes."""
    from fastapi import FastAPI

    from rag_harness.service.routes import page_router as router

    app, said = FastAPI(), list[dict[str, Any]]()
    app.include_router(router)
    named = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": named,
        "query_string": b"",
        "http_version": "1.1",
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    begun, *rest = said
    return (
        begun["status"],
        {name.decode(): value.decode() for name, value in begun["headers"]},
        b"".join(one["body"] for one in rest),
    )


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/page.css", "page.css", "text/css; charset=utf-8"),
        ("/page.js", "page.js", "text/javascript; charset=utf-8"),
    ],
)
def test_its_files_are_served_with_a_policy_of_their_own(path: str, name: str, kind: str) -> None:
    status, headers, body = asked(path)
    assert (status, headers["content-type"], body) == (200, kind, whole(name).encode())
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    again, told, nothing = asked(path, if_none_match=f'"other", W/{headers["etag"]}')
    assert (again, nothing, told["etag"]) == (304, b"", headers["etag"])
    assert told["content-security-policy"] == policy
    assert asked(path, "HEAD")[0] == 200
    assert asked(path, if_none_match='"other"')[0] == 200


def test_nothing_stands_in_line_or_elsewhere() -> None:
    text = PAGE.joinpath("index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.S) == [""]
    assert re.findall(r"""(?:src|href)="([^"#]+?)[",]""", text)[1:] == ["page.css", "page.js"]


def test_the_script_is_small_and_makes_no_markup() -> None:
    script = whole("page.js")
    assert len(script.encode()) <= MOST_BYTES
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|localStorage|\.cookie", script
    )


def test_each_reason_code_has_a_sentence() -> None:
    modules = [
        *(file for file in Path(str(files(studies))).rglob("*.py") if "reliability" in file.as_posix()),
        *map(Path, (questions.__file__, configurations.__file__)),
    ]
    codes = {code for module in modules for code in CODE.findall(module.read_text(encoding="utf-8"))}
    known = set(re.findall(r"^\t([A-Z_]+): \(", PAGE.joinpath("page.js").read_text(encoding="utf-8"), re.M))
    assert {"UNGROUNDED_CLAIM", "MODEL_UNAVAILABLE", "STRICT", "LOW_COVERAGE", "CHIT_CHAT"} <= codes
    assert codes == known
