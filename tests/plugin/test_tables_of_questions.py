"""A table of questions is asked as it is; columns of other names are named by an option."""

from __future__ import annotations

from tests.plugin.conftest import Suite

HEADER = "\ufeffnummer;frage;seite;antwort\r\n"
TABLE = f"{HEADER}a1;return a lamp;returns.md;45 days\r\na2;express delivery costs;shipping.md;\r\n"
MAPPED = "--rag-map=id=nummer,question=frage,document=seite,reference=antwort"


def test_a_csv_file_is_asked(suite: Suite) -> None:
    (suite.path / "questions.csv").write_text(TABLE, encoding="utf-8")
    suite.run("--rag-queries=questions.csv", MAPPED).assert_outcomes(passed=2)
    assert [row["query_id"] for row in suite.rows()] == ["a1", "a2"]


def test_a_map_for_lines_is_refused(suite: Suite) -> None:
    refused = suite.run(MAPPED)
    refused.stdout.fnmatch_lines(["*rag_map names columns of a table*queries.jsonl is none*"])


def test_an_unknown_field_of_a_map_is_refused(suite: Suite) -> None:
    (suite.path / "questions.csv").write_text(TABLE, encoding="utf-8")
    refused = suite.run("--rag-queries=questions.csv", "--rag-map=qestion=frage")
    refused.stdout.fnmatch_lines(["*rag_map 'qestion=frage': Unknown field 'qestion'*"])
