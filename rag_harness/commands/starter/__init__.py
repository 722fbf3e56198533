"""``rag-harness init``: the smallest working suite, written into the user's own repository.

start(folder, kb)            for existing documents: drafted questions, with which no gate passes
start_example(folder, kb)    for an empty folder: a small knowledge base with reviewed questions
write_ci(folder, host, done) runs the suite on each pull request, of GitHub or GitLab
"""

from __future__ import annotations

from pathlib import Path

from rag_harness.commands.starter.documents_folder import Documents, documents_folder
from rag_harness.commands.starter.drafted import drafted_questions
from rag_harness.commands.starter.editor_schemas import write_schemas
from rag_harness.commands.starter.example import EXAMPLE_QUERIES_FILE, copy_pages, questions
from rag_harness.commands.starter.ignored import ignore_results
from rag_harness.commands.starter.ini_keys import write_ini
from rag_harness.commands.starter.started import Started
from rag_harness.commands.starter.workflow import write_ci
from rag_harness.errors import DataError
from rag_harness.registry.installed import has_torch, install, without_torch

__all__ = ["Started", "start", "start_example", "write_ci"]

TEST = '''"""Is retrieval still good? One test a question that pages answer; the gates are in the ini file."""


def test_finds_what_is_expected(rag_retrieval):
    assert rag_retrieval.found
'''
GATE = "recall@k >= 0.8 @95%"
EXAMPLES_GATE = "recall@k >= 0.5 @95%"
_OLD = "golden.json"


def start(folder: Path, kb: str = "") -> Started:
    """Write a test file, the ini keys, drafted questions, schemas for editors and lines of ``.gitignore``.

    Existing files are left alone, but for schemas of another version.

    Without ``kb``, the folder of documents is searched for.

    Raises:
        DataError: there is no document, or nothing in the documents can be read.
    """
    done = Started()
    documents = documents_folder(folder, kb, done)
    has_old = (folder / _OLD).exists() and not (folder / EXAMPLE_QUERIES_FILE).exists()
    golden = _OLD if has_old else EXAMPLE_QUERIES_FILE
    text = "" if (folder / golden).exists() else drafted_questions(folder / documents.folder, done)
    done.write(folder / "test_retrieval.py", TEST)
    done.write(folder / golden, text)
    write_ini(folder, _pairs(documents, golden), GATE, done)
    write_schemas(folder, done)
    ignore_results(folder, done)
    done.todo.append(_searched_by())
    return done


def start_example(folder: Path, kb: str = "") -> Started:
    """Write a small knowledge base to try, its reviewed questions, a test file and the ini keys.

    Raises:
        DataError: other documents are where its pages would be, or there are questions about others.
    """
    done, named = Started(), kb or "docs"
    if (folder / EXAMPLE_QUERIES_FILE).exists() and not (folder / named).exists():
        raise DataError(
            f"{folder / EXAMPLE_QUERIES_FILE} is there, and none of the pages that the example asks about. Leave "
            "--example out, "
            "or try it in an empty folder."
        )
    pages = copy_pages(folder / named, done)
    done.write(folder / "test_retrieval.py", TEST)
    done.write(folder / EXAMPLE_QUERIES_FILE, questions())
    write_ini(folder, _pairs(Documents(named, pages), EXAMPLE_QUERIES_FILE), EXAMPLES_GATE, done)
    write_schemas(folder, done)
    ignore_results(folder, done)
    done.todo.append(f"{named} is made up, and so are its questions: what they score says nothing of your documents.")
    return done


def _pairs(documents: Documents, golden: str) -> dict[str, str]:
    """Return the ini keys. BM25 needs no model and little time, so the suite works on any folder at once."""
    questions = {"rag_queries": golden} if golden == EXAMPLE_QUERIES_FILE else {}
    # With three pages or fewer, three hits would be all pages.
    k = 3 if documents.pages > 3 else 1
    return {
        "rag_kb_dir": documents.folder,
        **questions,
        "rag_golden": golden,
        "rag_retriever": "bm25",
        "rag_k": str(k),
        # However many gates there are, the chance that a run is wrong about any of them is one in twenty.
        "rag_family": "0.95",
    }


def _searched_by() -> str:
    option = "" if has_torch() else f", after {install('local')}, or without torch {without_torch()}"
    return (
        "Questions are searched by words (rag_retriever = bm25), which needs no model. By vectors: pytest "
        f"--rag-retriever=hybrid{option}"
    )
