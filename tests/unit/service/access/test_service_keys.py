"""Keys: shown once, kept as a digest, good until they are revoked."""

from __future__ import annotations

import hmac
import re
import sqlite3
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.service.database import Database
from rag_harness.service.keys import find_key, has_keys, list_keys, make_key, revoke_key
from tests.unit.service.access.small_app import opened


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
        (["--rate", "often"], "'often' is no rate. Write a number and a time: 60/minute, 10/second, 1000/hour.\n"),
        (["--rate", "0/minute"], "'0/minute' is no rate."),
        (["--rate", "5/second; 60/minute"], "is no rate."),
        (["--quota", "0"], "A quota of 0 is none"),
        (["--quota", str(2**63)], "is none"),
        (["--collection", "../etc"], "'../etc' is no name of a collection"),
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
