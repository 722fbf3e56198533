"""--rag-affected-by: a change of documents, and which questions are asked then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.data.datasets import DataSets
from rag_harness.frontends.pytest_plugin.affected import Changes, changes_of
from tests.git_repository import Repository, repository
from tests.plugin.conftest import PAGES, QUERIES, Suite

GATE = "--rag-gate=e3: recall@2 >= 0.5"


@pytest.fixture
def repo(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = repository(suite.path, monkeypatch)
    (made.folder / ".gitignore").write_text("output\nlogs\n.rag_cache\n__pycache__\n")
    made.commit()
    return made


def asked(suite: Suite) -> list[object]:
    return [row["query_id"] for row in suite.rows()]


def test_where_nothing_has_changed_nothing_is_asked_and_that_is_a_success(suite: Suite, repo: Repository) -> None:
    result = suite.run("-m", "e3", "--rag-affected-by=HEAD", GATE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["rag: no page of kb and none of its questions has changed since HEAD*", "*4 deselected*"]
    )
    result.stdout.no_fnmatch_line("*rag gates*")
    assert asked(suite) == []


def test_questions_are_asked_whose_gold_row_or_candidates_have_changed(suite: Suite, repo: Repository) -> None:
    repo.write(**{"kb/returns": PAGES["returns.md"].replace("45", "30"), "kb/neue fische ü": "# Fish\n\nLive fish.\n"})
    (repo.folder / "lib.py").write_text("")
    repo.git("add", "lib.py")
    result = suite.run("--rag-affected-by=HEAD", GATE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "rag: 2 questions are affected by HEAD: 1 by their gold, 1 by a changed page that has their words "
            "(2 pages of kb changed)",
            "rag: lib.py changed since HEAD too: --rag-affected-by looks at documents and questions alone. *",
            "passed      e3: recall@2 >= 0.5   1.000 * n=1   2 of 4 cases affected by HEAD",
            "*2 passed, 2 deselected*",
        ]
    )
    assert asked(suite) == ["q_direct_001", "q_negative_001"]


def test_what_the_last_run_retrieved_counts_and_a_narrower_choice_is_not_judged(suite: Suite, repo: Repository) -> None:
    suite.run()
    file = repo.folder / "output" / "e3_filtered_rag.jsonl"
    found = {"q_negative_001": [{"chunk_id": "warranty.md#0", "score": 1.0}]}
    rows = ({**row, "retrieved_chunks": [], "candidates": found.get(str(row["query_id"]), [])} for row in suite.rows())
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    suite.write_queries([{**query, "ground_truth": "€9.90"} if "002" in str(query) else query for query in QUERIES])
    (repo.folder / "kb" / "warranty.md").write_text("# Warranty\n\nThe warranty lasts 5 years.\n")
    result = suite.run("--rag-affected-by=HEAD", "-k", "direct", GATE)
    result.stdout.fnmatch_lines(
        [
            "rag: 3 questions are affected by HEAD: 1 by their own row, 1 by their gold, 1 by what was retrieved for "
            "them (1 page of kb changed)",
            "not judged  e3: recall@2 >= 0.5   2 of 4 cases selected; *",
        ]
    )
    assert asked(suite) == ["q_direct_002", "q_direct_003"]


def test_turns_behind_an_affected_one_are_asked_too(suite: Suite, repo: Repository) -> None:
    turns = [{key: value for key, value in query.items() if key != "query_id"} for query in QUERIES[:3]]
    follow_up = {**turns[1], "query": "And for that?", "standalone": turns[1]["query"]}
    suite.write_queries([{"conversation": "c1", "turns": [turns[0], follow_up]}, {**QUERIES[2]}])
    repo.commit()
    repo.write(**{"kb/returns": PAGES["returns.md"].replace("45", "30")})
    result = suite.run("--rag-affected-by=HEAD")
    result.stdout.fnmatch_lines(
        [
            "rag: 2 questions are affected by HEAD: 1 by their gold, 1 by an earlier turn of their conversation "
            "(1 page of kb changed)"
        ]
    )
    assert asked(suite) == ["c1#1", "c1#2"]


def test_workers_choose_alike_and_the_golden_suite_too(suite: Suite, repo: Repository) -> None:
    entries = [
        {"query": query["query"], "expected_document_id": query["context_reference"][0], "justification": "j"}  # type: ignore[index]
        for query in QUERIES[:3]
    ]
    (repo.folder / "golden.json").write_text(json.dumps(entries))
    suite.pytester.makepyfile(
        test_both="""
        import pytest

        @pytest.mark.e3
        def test_answers(rag_result):
            assert rag_result.ok

        def test_found(rag_retrieval):
            assert rag_retrieval.found
        """
    )
    # A worker that had to ask git itself would fail.
    suite.pytester.makeconftest(
        """
        import os

        def pytest_configure(config):
            if hasattr(config, "workerinput"):
                os.environ["PATH"] = os.devnull
        """
    )
    repo.commit()
    repo.write(**{"kb/shipping": PAGES["shipping.md"].replace("9.90", "8.90")})
    result = suite.run(
        "-n2", "--rag-affected-by=HEAD", GATE, "--rag-gate=golden: recall@2 >= 0.5", "--rag-k=2", "test_both.py"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "rag: 1 question is affected by HEAD: 1 by their gold (1 page of kb changed)",
            "rag: 1 golden entry is affected by HEAD: 1 by their gold (1 page of kb changed)",
            "passed      e3: recall@2 >= 0.5 *n=1   1 of 4 cases affected by HEAD",
            "passed      golden: recall@2 >= 0.5 *n=1   1 of 3 cases affected by HEAD",
        ]
    )
    assert asked(suite) == ["q_direct_002"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rag-affected-by=nowhere"], "*'nowhere' is not a commit of the repository*"),
        (["--rag-affected-by=HEAD", "--rag-save=main"], "*--rag-save=main keeps a whole run*"),
    ],
)
def test_what_cannot_be_told_ends_the_run_before_anything_is_asked(
    suite: Suite, repo: Repository, options: list[str], said: str
) -> None:
    result = suite.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert asked(suite) == []


def changes(repo: Repository, golden: bool = False, **options: str) -> Changes:
    settings = Settings(**{"kb_dir": "kb", "rootdir": str(repo.folder), "affected_by": "HEAD", **options})
    return changes_of(DataSets(settings).get(""), settings, golden)


def structure(repo: Repository, versions: Iterable[str]) -> None:
    pages = [{"filename": name, "version": version} for name, version in zip(PAGES, versions, strict=True)]
    (repo.folder / "kb" / "structure.json").write_text(json.dumps({"pages": pages}))


def test_a_page_of_which_the_plan_says_otherwise_has_changed(repo: Repository) -> None:
    structure(repo, "123")
    repo.commit()
    structure(repo, "124")
    assert changes(repo).change.pages == {"warranty.md"}


def test_a_renamed_page_is_two_and_what_is_no_document_is_none(repo: Repository) -> None:
    repo.git("mv", "kb/returns.md", "kb/back.md")
    repo.write(**{"kb/README": "read me", "beside": "outside"})
    (repo.folder / "kb" / "notes.bin").write_bytes(b"\0")
    assert changes(repo).change.pages == {"returns.md", "back.md"}


def test_the_documents_may_be_the_repository_itself(repo: Repository, tmp_path: Path) -> None:
    repo.write(**{"kb/returns": "other", "beside": "outside"})
    assert changes(repo, kb_dir=".", queries="kb/queries.jsonl").change.pages == {"kb/returns.md", "beside.md"}


def test_questions_that_git_does_not_have_are_all_new(repo: Repository) -> None:
    (repo.folder / "mine.jsonl").write_text((repo.folder / "kb" / "queries.jsonl").read_text())
    found = changes(repo, queries="mine.jsonl")
    assert len(found.change.questions) == len(QUERIES)
    assert found.unknown == "mine.jsonl"


def test_a_question_of_which_more_is_demanded_has_changed(repo: Repository) -> None:
    first, *others = QUERIES
    rows = [{**first, "expect": [{"max_words": 120}]}, *others]
    (repo.folder / "kb" / "queries.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    assert changes(repo).change.questions == {first["query_id"]}


def test_a_public_collection_has_no_folder_to_look_at(repo: Repository) -> None:
    folder = repo.folder / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "text"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "query"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    with pytest.raises(SettingsError, match="names a collection in its place"):
        changes(repo, golden=True, dataset=f"beir:{folder}")


def test_scenarios_are_affected_by_their_gold_and_no_questions_of_other_experiments(
    suite: Suite, repo: Repository
) -> None:
    scenario = {"opening": "return a lamp?", "asks": ["and refunds?"], "max_turns": 3}
    other = {"opening": "express delivery?", "max_turns": 2}
    suite.write_queries(
        [
            *QUERIES,
            {"conversation": "s1", "scenario": scenario, "context_reference": ["returns.md"]},
            {"conversation": "s2", "scenario": other, "context_reference": ["shipping.md"]},
        ]
    )
    repo.commit()
    repo.write(**{"kb/returns": PAGES["returns.md"].replace("45", "30")})
    result = suite.run("--rag-affected-by=HEAD", GATE, "--rag-gate=e3-sim: recall@2 >= 0.5")
    result.stdout.fnmatch_lines(
        [
            "passed      e3: recall@2 >= 0.5 * n=1   1 of 4 cases affected by HEAD",
            "passed      e3-sim: recall@2 >= 0.5 * n=2 in 1 conversation   2 of 4 cases affected by HEAD",
        ]
    )
    assert {str(row["query_id"]) for row in suite.rows("e3-sim")} == {"s1#1", "s1#2"}
