"""Keys and the rights of a request."""

from __future__ import annotations

import asyncio
import hmac
import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from rag_harness.__main__ import main
from rag_harness.core.errors import SettingsError
from rag_harness.core.log import log
from rag_harness.service.app_state import Options
from rag_harness.service.authentication import check_host, check_page, is_this_machine
from rag_harness.service.database import Database
from rag_harness.service.keys import find_key, has_keys, list_keys, make_key, revoke_key
from rag_harness.service.problems import ProblemError
from tests.unit.service.access.small_app import Asking, create_app, opened

# Checks of a request's rights: no key, a wrong one, a missing scope, another site's page.


def told(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return answer.status_code, body["code"]


def test_without_keys_this_machine_may_do_everything(db: Database) -> None:
    asking = Asking(create_app(db))
    assert asking.ask().json()["answer"] == "How long?"
    assert asking("GET", "/documents/1").status_code == 200


def test_openais_sdk_sends_a_key_always_and_may_where_there_are_none(db: Database) -> None:
    assert Asking(create_app(db), key="not-needed").ask().status_code == 200


def test_from_the_first_key_on_one_is_needed(db: Database, tmp_path: Path) -> None:
    app = create_app(db)
    assert Asking(app).ask().status_code == 200
    with opened(tmp_path) as another_process:
        key = make_key(another_process, ["query"])
    assert told(Asking(app).ask()) == (401, "key_missing")
    assert Asking(app, key).ask().status_code == 200


def test_revoking_counts_at_once_and_opens_nothing(db: Database, tmp_path: Path) -> None:
    app, key = create_app(db), make_key(db, ["query"])
    assert Asking(app, key).ask().status_code == 200
    with opened(tmp_path) as another_process:
        revoke_key(another_process, 1)
    assert told(Asking(app, key).ask()) == (401, "key_unknown")
    assert told(Asking(app).ask()) == (401, "key_missing")


def test_a_server_for_others_is_closed_without_keys(db: Database) -> None:
    app = create_app(db, Options("e1", host="0.0.0.0"))
    assert told(Asking(app).ask()) == (401, "key_missing")
    assert Asking(app)("GET", "/health").status_code == 200


def test_401_says_how_and_a_wrong_key_is_as_unknown_as_a_revoked_one(db: Database) -> None:
    app, key = create_app(db), make_key(db, ["query"])
    revoke_key(db, 1)
    wrong, revoked = Asking(app, "rh_wrong").ask(), Asking(app, key).ask()
    assert wrong.headers["www-authenticate"] == "Bearer"
    assert wrong.content == revoked.content
    assert wrong.status_code == revoked.status_code


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "bearer {key}"},
        {"Authorization": "BEARER   {key} "},
        {"X-API-Key": "{key}"},
        {"Authorization": "Basic eDp5", "X-API-Key": "{key}"},
        {"Authorization": "Bearer", "X-API-Key": "{key}"},
    ],
)
def test_a_key_comes_as_bearer_or_in_its_own_header(db: Database, headers: dict[str, str]) -> None:
    app, key = create_app(db), make_key(db, ["query"])
    assert Asking(app, headers={name: value.format(key=key) for name, value in headers.items()}).ask().is_success


@pytest.mark.parametrize("headers", [{"Authorization": "{key}"}, {"Authorization": "Basic {key}"}, {"Cookie": "{key}"}])
def test_a_key_that_comes_otherwise_is_none(db: Database, headers: dict[str, str]) -> None:
    app, key = create_app(db), make_key(db, ["query"])
    asking = Asking(app, headers={name: value.format(key=key) for name, value in headers.items()})
    assert told(asking.ask()) == (401, "key_missing")
    assert told(asking("POST", f"/query?key={key}&api_key={key}", json={"query": "q"})) == (401, "key_missing")


def test_a_missing_scope_is_named(db: Database) -> None:
    app = create_app(db)
    query, ingest, admin = (Asking(app, make_key(db, [scope])) for scope in ("query", "ingest", "admin"))
    refused = query("GET", "/documents/1")
    assert told(refused) == (403, "scope_missing")
    assert refused.json()["scope"] == "ingest"
    assert told(ingest.ask()) == (403, "scope_missing")
    assert admin.ask().is_success
    assert admin("GET", "/documents/1").is_success


def test_a_strangers_body_is_not_read(db: Database) -> None:
    app, read = create_app(db), []
    make_key(db, ["query"])

    async def endless() -> AsyncIterator[bytes]:
        for number in range(10_000):
            read.append(number)
            yield b"x" * 65536

    async def sent(key: str) -> httpx.Response:
        headers = {"content-type": "multipart/form-data; boundary=b"}
        async with Asking(app, key).client() as client:
            return await client.post("/ingest", content=endless(), headers=headers)

    assert told(asyncio.run(sent("wrong"))) == (401, "key_unknown")
    assert len(read) <= 20


def test_no_key_is_logged(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(log, "handle", lambda record: logged.append((record.getMessage(), record.exc_info)))
    app, key = create_app(db), make_key(db, ["query"])
    Asking(app, key)("GET", "/fails")
    Asking(app, key + "x").ask()
    assert len(logged) == 1
    assert key not in repr(logged)


# Without keys: a page of another site is not this machine's user.


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "127.8.9.1"])
def test_this_machine_is_known_by_its_names(keyless: Asking, host: str) -> None:
    assert Asking(keyless.app, headers={"Host": host}).ask().is_success


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "192.168.0.7", "", "[", "0.0.0.0",
        "[::1].evil", "[::1]evil", "[::1].evil:8000", "[::1]:80.evil", "[::1]@evil", "localhost.evil", "127.0.0.1.evil",
        "evil@localhost", "localhost@evil", "user:pass@127.0.0.1:8000", "localhost:80:80", "localhost:evil", "[::1]:x",
        "localhost:99999", "localhost:80@evil", "localhost/evil", "localhost#evil", "localhost?evil", "localhost\\evil",
        "evil\\@localhost", "localhost evil", "localhost,evil", "[::1%25evil]", "[127.0.0.1]", "::1", "[localhost]",
        "[]", "localhost:", "[::1", "::1]", "localhost%2eevil", "127.0.0.1%00.evil", "127.1", "2130706433",
        "localhost.",
    ],
)  # fmt: skip
def test_another_name_is_refused(keyless: Asking, host: str) -> None:
    assert told(Asking(keyless.app, headers={"Host": host}).ask()) == (403, "not_this_machine")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9999", "http://[", ""])
def test_a_page_of_another_origin_is_refused(keyless: Asking, origin: str) -> None:
    asking = Asking(keyless.app, headers={"Host": "localhost:8000", "Origin": origin})
    assert told(asking.ask()) == (403, "not_this_machine")
    assert told(asking("POST", "/ingest", files={"file": b"poison"})) == (403, "not_this_machine")


def test_a_second_host_or_origin_is_refused() -> None:
    check_page(Headers(raw=[(b"host", b"localhost")]))
    with pytest.raises(ProblemError, match="the header Host names another"):
        check_page(Headers(raw=[(b"host", b"localhost"), (b"host", b"evil")]))
    with pytest.raises(ProblemError, match="the header Origin names another"):
        check_page(
            Headers(raw=[(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://evil")])
        )


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", " cross-site ", "anything", ""])
@pytest.mark.parametrize("more", [{}, {"Origin": "http://localhost:8000"}])
def test_a_page_of_another_site_is_refused_where_it_says_no_origin(
    keyless: Asking, site: str, more: dict[str, str]
) -> None:
    asking = Asking(keyless.app, headers={"Host": "localhost:8000", "Sec-Fetch-Site": site, **more})
    assert told(asking.ask()) == (403, "not_this_machine")
    assert told(asking("GET", "/documents/1")) == (403, "not_this_machine")


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_page_and_what_a_user_opens_may_ask(keyless: Asking, site: str) -> None:
    assert Asking(keyless.app, headers={"Host": "localhost:8000", "Sec-Fetch-Site": site}).ask().is_success


def test_our_own_page_may_ask(keyless: Asking) -> None:
    assert Asking(keyless.app, headers={"Host": "localhost:8000", "Origin": "http://localhost:8000"}).ask().is_success


def test_with_a_key_any_host_will_do(db: Database) -> None:
    key = make_key(db, ["query"])
    headers = {"Host": "rag.example", "Origin": "https://front.example"}
    assert Asking(create_app(db), key, headers).ask().is_success


# Where it listens


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.0.7", False),
        ("example.org", False),
    ],
)
def test_without_keys_it_listens_to_this_machine_alone(host: str, is_it: bool) -> None:
    assert is_this_machine(host) is is_it
    check_host(host, keys_made=True)
    if is_it:
        check_host(host, keys_made=False)
    else:
        with pytest.raises(SettingsError, match=r"there is no key.*rag-harness keys create.*--host 127\.0\.0\.1"):
            check_host(host, keys_made=False)


# Keys: shown once, kept as a digest, good until they are revoked.


def test_a_key_has_256_random_bits_and_is_found_as_whose_it_is(db: Database) -> None:
    key = make_key(db, ["query", "ingest"], "phone", "acme", "60/minute", 7)
    assert re.fullmatch(r"rh_[A-Za-z0-9_-]{43}", key)
    principal = find_key(db, key)
    assert principal is not None
    assert principal.scopes == {"query", "ingest"}
    assert (principal.label, principal.collection, principal.rate, principal.quota) == ("phone", "acme", "60/minute", 7)
    assert make_key(db, ["query"]) != key


def test_the_key_itself_is_nowhere(db: Database, tmp_path: Path) -> None:
    key = make_key(db, ["admin"], "laptop")
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert key.encode() not in content
        assert key[3:].encode() not in content
    assert key not in repr((find_key(db, key), list_keys(db)))


@pytest.mark.parametrize("presented", ["", "rh_", "rh_" + "A" * 43, "ä", "\ud800", "x" * 100_000])
def test_what_is_no_key_is_nobodys(db: Database, presented: str) -> None:
    make_key(db, ["admin"])
    assert find_key(db, presented) is None


def test_digests_are_compared_in_constant_time(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    key, lengths = make_key(db, ["query"]), []

    def compare(one: bytes, other: bytes) -> bool:
        lengths.append((len(one), len(other)))
        return False

    assert find_key(db, key) is not None
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert find_key(db, key) is None
    assert lengths == [(32, 32)]


def test_a_revoked_key_is_nobodys_and_still_needs_a_key(db: Database) -> None:
    key = make_key(db, ["query"])
    key_id = list_keys(db)[0].key_id
    assert revoke_key(db, key_id)
    assert not revoke_key(db, key_id)
    assert not revoke_key(db, 1 << 63)
    assert find_key(db, key) is None
    assert has_keys(db)


def test_another_process_revokes_at_once(db: Database, tmp_path: Path) -> None:
    key = make_key(db, ["query"])
    assert find_key(db, key) is not None
    with opened(tmp_path) as other:
        revoke_key(other, 1)
    assert find_key(db, key) is None


def test_scopes_are_checked_by_their_names(db: Database) -> None:
    query, admin = find_key(db, make_key(db, ["query"])), find_key(db, make_key(db, ["admin"]))
    assert query is not None
    assert admin is not None
    assert query.may("query")
    assert not query.may("ingest")
    assert not query.may("admin")
    assert admin.may("query")
    assert admin.may("ingest")


# The commands


def test_a_key_is_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--state", str(tmp_path / "state")]
    made = ["keys", "create", "--scope", "query", "--scope", "ingest", "--label", "phone", "--quota", "3", *state]
    assert main([*made, "--collection", "acme", "--rate", "60/minute"]) == 0
    shown = capsys.readouterr()
    key = shown.out.strip()
    assert key not in shown.err
    assert main(["keys", "list", *state]) == 0
    heads, line = capsys.readouterr().out.splitlines()
    assert heads.split() == ["id", "name", "label", "scopes", "collection", "rate", "used", "created", "revoked"]
    assert re.match(r"1   [0-9a-f]{4}  phone  query ingest  acme        60/minute  0 of 3  20", line)
    assert key not in line
    assert main(["keys", "revoke", "1", *state]) == 0
    assert "the next request with it is refused" in capsys.readouterr().out
    assert main(["keys", "revoke", "1", *state]) == 1
    assert capsys.readouterr().err == "No key 1 is in use: see rag-harness keys list.\n"
    with opened(tmp_path / "state") as db:
        assert find_key(db, key) is None


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert main(["keys", "create", "--scope", "query", "--state", str(tmp_path / "state")]) == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--rate", "often"], "'often' is not a rate. Write a number and a time: 60/minute, 10/second, 1000/hour.\n"),
        (["--rate", "0/minute"], "'0/minute' is not a rate."),
        (["--rate", "5/second; 60/minute"], "is not a rate."),
        (["--quota", "0"], "A quota of 0 is none"),
        (["--quota", str(2**63)], "is none"),
        (["--collection", "../etc"], "'../etc' is not a name of a collection"),
        (["--label", "a\nb"], "one line"),
        (["--label", "\u200b"], "nothing that can be seen"),
        (["--label", "pho\u200bne"], "cannot be seen"),
        (["--label", "   "], "nothing that can be seen"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], told: str
) -> None:
    state = tmp_path / "state"
    assert main(["keys", "create", "--scope", "query", "--state", str(state), *given]) == 2
    assert told in capsys.readouterr().err
    assert not state.exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "list", "--state", str(tmp_path / "nowhere")]) == 2
    assert "--state DIR" in capsys.readouterr().err


def test_a_list_without_keys_says_so(db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "list", "--state", str(tmp_path)]) == 0
    assert "There are no keys" in capsys.readouterr().out


def test_a_scope_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["keys", "create", "--scope", "root", "--state", str(tmp_path / "state")])


def test_keys_cannot_be_put_there_twice(db: Database) -> None:
    make_key(db, ["query"])
    again = "INSERT INTO keys (digest, label, scopes, created) SELECT digest, '', '', '' FROM keys"
    with pytest.raises(sqlite3.IntegrityError):
        db.write_now(lambda rows: rows.execute(again))
