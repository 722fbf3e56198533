"""The digest of a module's source: what it imports from its own package counts, and nothing else does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.files import sources


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a package of somebody's own: ``rag_own.pipeline`` imports its neighbours in every spelling."""
    folder = tmp_path / "rag_own"
    (folder / "deep").mkdir(parents=True)
    (folder / "pipeline.py").write_text(
        "import rag_own.plain\nfrom rag_own import member\nfrom rag_own.absolute import x\nfrom .relative import x\n"
        "from . import sibling\nfrom .deep import inner\nimport json, torch_is_not_here, rag_own.listed as l\n"
        "from rag_own import (  # why\n    unknown,\n    wrapped as w,  # and why\n)\nx = 1; import rag_own.behind\n"
        "from rag_own import \\\n    continued\n"
    )
    names: tuple[str, ...] = (
        "__init__",
        "plain",
        "member",
        "absolute",
        "relative",
        "sibling",
        "unused",
        "deep/__init__",
        "deep/inner",
    )
    names += ("listed", "wrapped", "behind", "continued")
    for name in names:
        (folder / f"{name}.py").write_text("x = 1\n")
    (folder / "sibling.py").write_text("from .indirect import x\n")
    (folder / "indirect.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [each for each in sys.modules if each.startswith("rag_own")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    [
        *("pipeline", "plain", "member", "absolute", "relative", "sibling", "indirect", "deep/inner"),
        *("listed", "wrapped", "behind", "continued"),
    ],
)
def test_the_source_of_a_pipeline_and_of_what_it_imports_counts(package: Path, name: str) -> None:
    before = sources.source_digest.__wrapped__("rag_own.pipeline")
    with (package / f"{name}.py").open("a") as stream:
        stream.write("y = 2\n")
    assert sources.source_digest.__wrapped__("rag_own.pipeline") != before


def test_a_module_that_is_not_imported_does_not_count(package: Path) -> None:
    before = sources.source_digest.__wrapped__("rag_own.pipeline")
    (package / "unused.py").write_text("x = 2\n")
    assert sources.source_digest.__wrapped__("rag_own.pipeline") == before


def test_a_module_beside_a_conftest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rag_flat.py").write_text("from rag_flat_prompts import x\n")
    (tmp_path / "rag_flat_prompts.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = sources.source_digest.__wrapped__("rag_flat")
    (tmp_path / "rag_flat_prompts.py").write_text("x = 2\n")
    assert sources.source_digest.__wrapped__("rag_flat") != before


def test_the_place_of_a_checkout_does_not_count(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.source_digest.__wrapped__("rag_own.pipeline")
    monkeypatch.undo()
    sys.modules.pop("rag_own", None)
    (tmp_path / "elsewhere").mkdir()
    package.rename(tmp_path / "elsewhere" / "rag_own")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    assert sources.source_digest.__wrapped__("rag_own.pipeline") == before != ""


@pytest.mark.parametrize("module", ["no_such_module", "no.such.module", "sys", "types", ""])
def test_a_module_that_is_nobodys_file_is_no_error(module: str) -> None:
    assert sources.source_digest.__wrapped__(module) == ""


def test_ends_of_lines_do_not_count(package: Path) -> None:
    before = sources.source_digest.__wrapped__("rag_own.pipeline")
    file = package / "pipeline.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert sources.source_digest.__wrapped__("rag_own.pipeline") == before
