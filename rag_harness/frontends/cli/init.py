"""The command rag-harness init: the smallest working suite in the user's repository."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from rag_harness.core.errors import DataError
from rag_harness.core.escaping import say
from rag_harness.core.files import meant_beside, write_atomically
from rag_harness.core.package import NAME, has_torch, install, without_torch
from rag_harness.core.settings import Settings
from rag_harness.data.documents import is_page, kinds, page_files
from rag_harness.data.queries import placeholder_for
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.results import schema_text

__all__ = ["Started", "start", "start_example", "write_ci"]


# ``rag-harness init``: writes the smallest working suite into the user's repository.


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``init``."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="your repository; default: this folder")
    named = "your documents, below it; default: docs, or what is there that is called like documents"
    parser.add_argument("--kb", default="", metavar="DIR", help=named)
    parser.add_argument("--example", action="store_true", help="bring a small made-up knowledge base to try")
    run_by = (
        "write what runs the suite on each pull request, too: github, a workflow, or gitlab, a job; default: github"
    )
    parser.add_argument("--ci", choices=("github", "gitlab"), nargs="?", const="github", help=run_by)


def run_init(chosen: argparse.Namespace) -> int:
    """Write the smallest working suite. The status is 1 where it does not run before lines are added by hand."""

    begin = start_example if chosen.example else start
    done = begin(chosen.folder, chosen.kb)
    if chosen.ci:
        write_ci(chosen.folder, chosen.ci, done)
    say(*done.lines())
    return FOUND if done.is_incomplete else 0


@dataclass
class Started:
    """The record of what was found and written, and of the next steps."""

    found: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)
    next_step: str = "pytest test_retrieval.py"
    is_incomplete: bool = False
    """Whether the suite does not work before lines are added by hand."""

    def keeps(self, file: Path) -> bool:
        """Return whether a file exists; if so, note that it is kept."""
        if not file.exists():
            return False
        self.kept.append(file)
        return True

    def write(self, file: Path, text: str) -> None:
        """Write a file, unless it exists.

        Raises:
            DataError: the file cannot be written.
        """
        if self.keeps(file):
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{file} cannot be written: {error.strerror}. Choose a folder that you may write to."
            ) from error
        self.written.append(file)

    def append(self, file: Path, text: str, said: str) -> None:
        """Put ``text`` at the end of a file that exists, or write it; ``said`` names what is added.

        Raises:
            DataError: the file cannot be written.
        """
        if not file.exists():
            self.write(file, text)
            return
        try:
            there = file.read_bytes()
            end = b"\r\n" if b"\r\n" in there else b"\n"
            with file.open("ab") as opened:
                opened.write(end if there and not there.endswith(b"\n") else b"")
                opened.write(text.encode().replace(b"\n", end))
        except OSError as error:
            raise DataError(f"{file} cannot be added to: {error.strerror}. Add to it by hand: {said}") from error
        self.added.append(f"added  {said} to {file}")

    def lines(self) -> list[str]:
        """Return the lines for the user."""
        return [
            *self.found,
            *(f"wrote  {file}" for file in self.written),
            *self.added,
            *(f"kept   {file} (it was there)" for file in self.kept),
            *self.todo,
            f"Next: {self.next_step}",
        ]


USUAL_FOLDERS = ("docs", "my_docs", "doc", "documentation", "content", "kb")
"""Usual names of folders of documents, the likeliest first."""
_EXAMPLE = "In an empty folder, rag-harness init --example brings a small knowledge base to try."


class Documents(NamedTuple):
    """A folder of documents, relative to the suite's folder, and the number of its documents."""

    folder: str
    pages: int


def documents_folder(folder: Path, kb: str, done: Started) -> Documents:
    """Return the folder of documents, relative to ``folder``. Note how many it has and why it was chosen.

    Raises:
        DataError: none of the searched folders has a document.
    """
    named = kb or next((name for name in USUAL_FOLDERS if _has_pages(folder / name)), "")
    named = named or ("." if _has_pages_at_its_top(folder) else "")
    if not named:
        places = ", ".join(USUAL_FOLDERS)
        raise DataError(
            f"No document ({kinds()}) in {folder}, nor in a folder there called {places}. Name yours: "
            f"rag-harness init --kb DIR. {_EXAMPLE}"
        )
    place = folder / named
    if not place.is_dir():
        what = f"{place} is a file, and no folder of documents" if place.exists() else f"No folder {place}"
        raise DataError(
            f"{what}.{meant_beside(place, Path.is_dir)} Name the folder of your documents: rag-harness init --kb DIR. "
            f"{_EXAMPLE}"
        )
    pages = sum(1 for _ in page_files(place))
    if not pages:
        raise DataError(
            f"No document ({kinds()}) in {place}. Name the folder of your documents: rag-harness init --kb "
            f"DIR. {_EXAMPLE}"
        )
    done.found.append(f"found  {pages} document{'s' * (pages != 1)} in {_said(named, kb)}")
    return Documents(named, pages)


def _said(named: str, kb: str) -> str:
    if kb or named == USUAL_FOLDERS[0]:
        return named
    what = "this folder and all below it" if named == "." else named
    return f"{what}; if your documents are elsewhere: rag-harness init --kb DIR"


def _has_pages(place: Path) -> bool:
    return place.is_dir() and next(page_files(place), None) is not None


def _has_pages_at_its_top(folder: Path) -> bool:
    return folder.is_dir() and any(each.is_file() and is_page(each, folder) for each in folder.iterdir())


WANTED = 20
_MULTI_HOP = 4
"""How many of the questions have several hops, if the pages allow so many."""
_SEED = 0
_MOST_WORDS = 120
"""How long an answer may be, in the example of what an answer owes."""
_EXPECTED = 'The first of them says in "expect" what its answer owes: two examples, for you to write more.'
_NO_FACT = "no fact was found in English or another language with question forms"


def drafted_questions(folder: Path, done: Started) -> str:
    """Return the lines of ``queries.jsonl`` for a folder of documents, and note that they are drafts.

    Raises:
        DataError: nothing in the folder can be read.
    """
    from rag_harness.authoring.questions.document_collection import DocumentCollection
    from rag_harness.authoring.questions.drafts import json_lines, rows
    from rag_harness.authoring.questions.generator import make_questions
    from rag_harness.authoring.questions.planned_facts import planned_facts
    from rag_harness.data.documents import languages_said, read_folder

    library = read_folder(folder)
    done.found += [f"not read: {each.line}" for each in library.unread]
    done.found += languages_said(library.documents)
    collection = DocumentCollection(library.documents, planned_facts(folder))
    found = make_questions(collection, {"direct": WANTED, "multi_hop": _MULTI_HOP}, _SEED)
    hops = [draft for draft in found.drafts if draft.kind == "multi_hop"]
    chosen = [*[draft for draft in found.drafts if draft.kind == "direct"][: WANTED - len(hops)], *hops]
    if not chosen:
        done.todo.append(_none(folder, found.dropped))
        return placeholder(library.documents[0].doc_id)
    done.todo += [_some(len(chosen)), _EXPECTED]
    first, *others = rows(chosen, collection)
    return json_lines([{**first, "expect": _expected(first["context_reference"])}, *others])


def _expected(pages: list[str]) -> list[dict[str, object]]:
    """Return two expectations that hold for each right answer, whatever the drafted question asks."""
    cites: dict[str, object] = {"cites": pages[0]} if len(pages) == 1 else {"cites_all": pages}
    return [cites, {"max_words": _MOST_WORDS}]


def placeholder(page: str) -> str:
    """Return a placeholder line: the user is to write a question about ``page`` there."""
    metadata = {"reviewed": "no"}
    row = {"query_id": "q_001", "query": placeholder_for(page), "context_reference": [page], "metadata": metadata}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _none(folder: Path, dropped: Counter[str]) -> str:
    n, reasons = dropped.total(), ", ".join(f"{reason} ({count})" for reason, count in dropped.most_common(3))
    why = f"{n} fact{'s' * (n != 1)} found, but none makes a fair question: {reasons}" if n else _NO_FACT
    return (
        f"No question was drafted from {folder.name or 'this folder'}: {why}. queries.jsonl holds a placeholder: write "
        "a question of your own in its place, without its metadata. Until then its gate says what came out and is not "
        "judged."
    )


def _some(number: int) -> str:
    few = " (the rules found no more)" if number < WANTED else ""
    return (
        f"queries.jsonl holds {number} drafted question{'s' * (number != 1)}{few} that nobody has reviewed: until "
        "somebody has, its gate says what came out and is not judged. More, of all kinds: rag-harness kb queries"
    )


# Schemas by which editors complete the TOML files of services and spaces.
#
# They are files of the suite, so that they work offline. ``init`` replaces those of another version, and ``doctor``
# names them.

SCHEMAS_FOLDER = ".rag_harness"
_KINDS = ("endpoint", "space")


def write_schemas(folder: Path, done: Started) -> None:
    """Write the schemas below ``folder``, also over those of another version.

    Raises:
        DataError: a file cannot be written.
    """
    for kind in _KINDS:
        file = schema_file(folder, kind)
        if is_current(file, kind):
            continue
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, schema_text(kind).encode())
        except OSError as error:
            raise DataError(
                f"{file} cannot be written: {error.strerror}. Choose a folder that you may write to."
            ) from error
        done.written.append(file)


def schema_file(folder: Path, kind: str) -> Path:
    """Return where the schema of a kind of file is."""
    return folder / SCHEMAS_FOLDER / f"{kind}.schema.json"


def is_current(file: Path, kind: str) -> bool:
    """Return whether a file is the schema of the installed version."""
    return file.is_file() and file.read_bytes() == schema_text(kind).encode()


def outdated(folder: Path) -> dict[str, Path]:
    """Return the schemas that are there and of another version than the installed one, by their kind."""
    files = {kind: schema_file(folder, kind) for kind in _KINDS}
    return {kind: file for kind, file in files.items() if file.is_file() and not is_current(file, kind)}


EXAMPLE_QUERIES_FILE = "queries.jsonl"
_PLACE = Path(__file__).with_name("shipped")
_ABOUT = "README.md"


def copy_pages(target: Path, done: Started) -> int:
    """Write the pages and the file that describes them; return how many pages there are.

    Raises:
        DataError: ``target`` holds documents that are not the example's.
    """
    pages = {page.name: page for page in sorted((_PLACE / "docs").iterdir())}
    there = [page.relative_to(target).as_posix() for page in page_files(target)] if target.is_dir() else []
    if strange := sorted(set(there) - set(pages)):
        raise DataError(
            f"{target} holds {len(strange)} documents of yours, {strange[0]} for one. For questions about them leave "
            "--example out; to try the example choose an empty folder, or another with --kb DIR."
        )
    for name, page in {_ABOUT: _PLACE / _ABOUT, **pages}.items():
        done.write(target / name, page.read_text(encoding="utf-8"))
    return len(pages)


def questions() -> str:
    """Return the lines of its questions."""
    return (_PLACE / EXAMPLE_QUERIES_FILE).read_text(encoding="utf-8")


# Lines of ``.gitignore`` for what a run writes and nobody commits: results, cache, log.

_UNSET = Settings()
IGNORED = tuple(f"{folder}/" for folder in (_UNSET.output, _UNSET.cache_dir, _UNSET.logs))
"""Recordings, in ``cassettes/``, and baselines are committed."""
_WHY = "# What a run of rag-harness writes"


def ignore_results(folder: Path, done: Started) -> None:
    """Add the lines that ``.gitignore`` lacks. Lines that are there stay, also one that takes such a folder in again.

    Raises:
        DataError: the file cannot be written.
    """
    file = folder / ".gitignore"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    # `/output`, `output/`, `!output`: the user has decided about this folder.
    decided = {line.strip().lstrip("!").strip("/") for line in text.splitlines()}
    missing = [line for line in IGNORED if line.rstrip("/") not in decided]
    if missing:
        done.append(file, "\n".join([_WHY, *missing, ""]), ", ".join(missing))
    else:
        done.kept.append(file)


# The keys of the suite in an ini file: written if the file is missing, printed if it exists.

_OWN = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
"""Files that pytest always takes for its configuration, whatever they contain, in the order of its search."""
_SHARED = ("pyproject.toml", "tox.ini", "setup.cfg")
_MARKS = ("[pytest]", "[tool.pytest", "[tool:pytest]")
_FOLDER = re.compile(r"^rag_kb_dir\s*=\s*[\"']?([^\"'\n]{1,400}?)[\"']?\s*$", re.MULTILINE)
_TEST_PATHS = re.compile(
    r"^testpaths\s*=\s*(\[[^\]]{0,2000}\]|[^\n]{0,2000}(?:\n[ \t]+[^\n]{1,400}){0,50})", re.MULTILINE
)
_BETWEEN_PATHS = re.compile(r"[\s,\[\]\"']+")
_MEANS = {
    "rag_k": "hits that are looked at: recall@k is recall@{}",
    "rag_family": "all gates with @ together are right in this share of runs",
}
"""Comments behind keys whose names do not say what they mean."""


def write_ini(folder: Path, pairs: Mapping[str, str], gate: str, done: Started) -> None:
    """Write the keys into a new file, or tell the user to add them to the file that pytest reads."""
    configured = _configured(folder)
    if configured is None:
        done.write(folder / "pytest.ini", "\n".join(["[pytest]", *_lines(pairs, gate, is_toml=False), ""]))
    elif "rag_golden" in _text(configured):
        done.kept.append(configured)
        named = _FOLDER.search(_text(configured))
        if named and named[1] != pairs["rag_kb_dir"]:
            wanted = pairs["rag_kb_dir"]
            how = f"begin in another folder, or change rag_kb_dir and the questions there to {wanted}'s"
            done.todo.append(f"{configured} is for {named[1]}, so {wanted} is not tested: {how}.")
    else:
        has_section = any(mark in _text(configured) for mark in _MARKS)
        done.todo.append(f"Add to {'the pytest section of ' if has_section else '[pytest] in '}{configured}:")
        done.todo += [f"    {line}" for line in _lines(pairs, gate, configured.suffix == ".toml")]
        if _leaves_the_folder_out(_text(configured)):
            done.todo.append("Add test_retrieval.py to testpaths there, too: pytest alone would not run it.")
        done.next_step = f"add the lines above, then {done.next_step}"
        done.is_incomplete = True


def _leaves_the_folder_out(config: str) -> bool:
    """Whether ``testpaths`` is there and does not name the folder itself, in which test_retrieval.py is."""
    found = _TEST_PATHS.search(config)
    return found is not None and not {".", "./"}.intersection(_BETWEEN_PATHS.split(found[1]))


def _lines(pairs: Mapping[str, str], gate: str, is_toml: bool) -> list[str]:
    if is_toml:
        return [*(f'{name} = "{value}"' for name, value in pairs.items()), f'rag_gate = ["{gate}"]']
    lines = []
    for name, value in pairs.items():
        lines += [f"# {_MEANS[name].format(value)}"] if name in _MEANS else []
        lines.append(f"{name} = {value}")
    return [*lines, "rag_gate =", f"    {gate}"]


def _configured(folder: Path) -> Path | None:
    """Return the file that configures pytest in this folder, if any."""
    own = next((folder / name for name in _OWN if (folder / name).is_file()), None)
    shared = (folder / name for name in _SHARED if (folder / name).is_file())
    return own or next((file for file in shared if any(mark in _text(file) for mark in _MARKS)), None)


def _text(file: Path) -> str:
    # Only ASCII is looked for, so a file in another encoding can be read, too.
    return file.read_text(encoding="utf-8", errors="replace")


# What ``rag-harness init --ci`` writes: each pull request runs the suite; gates that are not judged fail.

Host = Literal["github", "gitlab"]
_SUITE = "pytest test_retrieval.py --rag-not-judged=fail --junitxml=output/junit.xml"

WORKFLOW_FILE = ".github/workflows/rag.yml"
WORKFLOW = f"""\
# Runs the suite of rag-harness on each pull request. A gate that fails stops it, and so does one that was not judged.
name: rag
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read

jobs:
  gates:
    runs-on: ubuntu-latest
    timeout-minutes: 20
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: python -m pip install {NAME}
      - run: {_SUITE}
      - run: rag-harness report output -o report.html
        if: always()
      - uses: actions/upload-artifact@v7
        id: report
        if: always()
        with:
          path: report.html
          archive: false
      - name: Say on the page of the run how it came out, with links into the report
        if: always()
        run: rag-harness report output -o comment.md --link "$REPORT" && cat comment.md >> "$GITHUB_STEP_SUMMARY"
        env:
          REPORT: ${{{{ steps.report.outputs.artifact-url }}}}
      - uses: actions/upload-artifact@v7
        if: always()
        with:
          name: rag
          path: output/
"""

GITLAB_JOB_FILE = ".gitlab/rag.yml"
GITLAB_JOB = f"""\
# Runs the suite of rag-harness on each merge request. A gate that fails stops it, and so does one that was not judged.
rag:
  image: python:3.12
  timeout: 20 minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
    - python -m pip install {NAME}
    - {_SUITE}
  after_script:
    - rag-harness report output -o report.html
    - rag-harness report output -o comment.md && cat comment.md
  cache:
    key: rag
    paths:
      - .rag_cache/
  artifacts:
    when: always
    paths:
      - output/
      - report.html
    reports:
      junit: output/junit.xml
"""
_GITLAB_FILE = ".gitlab-ci.yml"
_INCLUDE = f"include:\n  - local: {GITLAB_JOB_FILE}\n"


def write_ci(folder: Path, host: Host, done: Started) -> None:
    """Write what runs the suite on ``host``. Existing files are left alone.

    Raises:
        DataError: a file cannot be written.
    """
    if host == "github":
        done.write(folder / WORKFLOW_FILE, WORKFLOW)
        done.next_step += ", then commit and push: each pull request runs it"
        return
    done.write(folder / GITLAB_JOB_FILE, GITLAB_JOB)
    _include(folder / _GITLAB_FILE, done)
    done.next_step += ", then commit and push: each merge request runs it"


def _include(file: Path, done: Started) -> None:
    """Have GitLab's own file include the job. One that is there is the user's to change."""
    done.write(file, _INCLUDE)
    if file in done.kept and GITLAB_JOB_FILE not in file.read_text(encoding="utf-8", errors="replace"):
        done.todo.append(f"Add to {file}:")
        done.todo += [f"    {line}" for line in _INCLUDE.splitlines()]


# ``rag-harness init``: the smallest working suite, written into the user's own repository.
#
# start(folder, kb)            for existing documents: drafted questions, with which no gate passes
# start_example(folder, kb)    for an empty folder: a small knowledge base with reviewed questions
# write_ci(folder, host, done) runs the suite on each pull request, of GitHub or GitLab

TEST = '''"""Is retrieval still good? One test a question that pages answer; the gates are in the ini file."""


def test_finds_what_is_expected(rag_retrieval):
    assert rag_retrieval.found
'''
GATE = "recall@k >= 0.8 @95%"
EXAMPLES_GATE = "recall@k >= 0.5 @95%"
_OLD = "golden.json"


def start(folder: Path, kb: str = "") -> Started:
    """Write a test file, the ini keys, drafted questions, schemas for editors and lines of ``.gitignore``.

    Existing files are left alone, except schemas of another version.

    Without ``kb``, the folder of documents is searched for.

    Raises:
        DataError: no document is found, or nothing in the documents can be read.
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
