"""What modules reach: all that they import of the project and of this package, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rag_harness
from rag_harness.registry.identity import Code, Modules, Remembered, code_digest, versions
from rag_harness.registry.identity.libraries import ABSENT
from rag_harness.registry.identity.modules import _spec
from rag_harness.registry.identity.reach import CodeReach

PACKAGE = Path(rag_harness.__file__).parent


def reach(*modules: str, root: Path = PACKAGE) -> CodeReach:
    """What modules come to now."""
    _spec.cache_clear()
    return Code(Modules(root), Remembered()).reach(modules)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a package of somebody's own: ``rag_own.pipeline`` imports its neighbours in every spelling."""
    folder = tmp_path / "rag_own"
    (folder / "deep").mkdir(parents=True)
    (folder / "pipeline.py").write_text(
        "import rag_own.plain\nfrom rag_own import member\nfrom rag_own.absolute import x\nfrom .relative import x\n"
        "from . import sibling\nfrom .deep import inner\nimport json, torch_is_not_here, rag_own.listed as l\n"
        "from rag_own import (  # why\n    unknown,\n    wrapped as w,  # and why\n)\nx = 1; import rag_own.behind\n"
        "from rag_own import \\\n    continued\nfrom rag_own.passing import passed\n"
    )
    names: tuple[str, ...] = ("__init__", "plain", "member", "absolute", "relative", "sibling", "unused", "indirect")
    names += ("deep/__init__", "deep/inner", "listed", "wrapped", "behind", "continued")
    for name in names:
        (folder / f"{name}.py").write_text("x = 1\n")
    (folder / "sibling.py").write_text("from .indirect import x\n")
    (folder / "passing").mkdir()
    (folder / "passing" / "__init__.py").write_text(
        "from rag_own.passing.one import passed\nfrom rag_own.passing.other import not_asked_for\n"
    )
    (folder / "passing" / "one.py").write_text("passed = 1\n")
    (folder / "passing" / "other.py").write_text("not_asked_for = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [each for each in sys.modules if each.startswith("rag_own")]:
        del sys.modules[name]


IMPORTED = (
    *("pipeline", "plain", "member", "absolute", "relative", "sibling", "indirect", "deep/inner"),
    *("listed", "wrapped", "behind", "continued", "passing/one"),
)


@pytest.mark.parametrize("name", IMPORTED)
def test_the_code_of_a_pipeline_and_of_what_it_imports_counts(package: Path, name: str) -> None:
    before = reach("rag_own.pipeline").digest
    with (package / f"{name}.py").open("a") as stream:
        stream.write("y = 2\n")
    assert reach("rag_own.pipeline").digest != before


@pytest.mark.parametrize("name", ["unused", "passing/other", "passing/__init__"])
def test_what_is_not_imported_or_only_passes_names_on_does_not_count(package: Path, name: str) -> None:
    before = reach("rag_own.pipeline").digest
    (package / f"{name}.py").write_text((package / f"{name}.py").read_text() + "x = 2\n")
    assert reach("rag_own.pipeline").digest == before


def test_a_name_that_is_passed_on_from_another_place_counts(package: Path) -> None:
    before = reach("rag_own.pipeline").digest
    (package / "passing" / "__init__.py").write_text("from rag_own.passing.other import not_asked_for as passed\n")
    assert reach("rag_own.pipeline").digest != before


def test_a_package_that_does_more_than_pass_on_counts(package: Path) -> None:
    (package / "passing" / "__init__.py").write_text("passed = 1\n")
    before = reach("rag_own.pipeline").digest
    (package / "passing" / "__init__.py").write_text("passed = 2\n")
    assert reach("rag_own.pipeline").digest != before


def test_a_name_that_is_imported_on_first_use_counts(package: Path) -> None:
    (package / "passing" / "__init__.py").write_text(
        "if TYPE_CHECKING:\n    from rag_own.passing.other import passed\ndef __getattr__(name): ...\n"
    )
    assert "rag_own.passing.other" in reach("rag_own.pipeline").digests


@pytest.mark.parametrize(
    "said",
    [
        "from rag_harness import Generator",
        "import rag_harness\nrag_harness.Generator",
        "import rag_harness as r\nr.Generator",
    ],
)
def test_what_the_package_exports_counts(package: Path, said: str) -> None:
    (package / "plain.py").write_text(f"{said}\n")
    assert "rag_harness.pipelines.generation" in reach("rag_own.plain").digests


def test_names_that_are_passed_on_in_a_circle_end(package: Path) -> None:
    (package / "passing" / "__init__.py").write_text("from rag_own.other import passed\n")
    (package / "other").mkdir()
    (package / "other" / "__init__.py").write_text("from rag_own.passing import passed\n")
    assert reach("rag_own.pipeline").digest


def test_modules_that_import_each_other_end(package: Path) -> None:
    (package / "plain.py").write_text("import rag_own.member\n")
    (package / "member.py").write_text("import rag_own.plain\n")
    assert {"rag_own.plain", "rag_own.member"} <= reach("rag_own.plain").digests.keys()


def test_another_module_of_the_project_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rag_flat.py").write_text("from rag_flat_prompts import x\n")
    (tmp_path / "rag_flat_prompts.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = reach("rag_flat").digest
    (tmp_path / "rag_flat_prompts.py").write_text("x = 2\n")
    assert reach("rag_flat").digest != before


def test_the_place_of_a_checkout_does_not_count(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = reach("rag_own.pipeline").digest
    monkeypatch.undo()
    sys.modules.pop("rag_own", None)
    (tmp_path / "elsewhere").mkdir()
    package.rename(tmp_path / "elsewhere" / "rag_own")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    assert reach("rag_own.pipeline").digest == before != ""


def test_what_is_installed_counts_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "site-packages"
    (site / "rag_library").mkdir(parents=True)
    (site / "rag_library" / "__init__.py").write_text("from rag_library.inner import x\n")
    (site / "rag_library" / "inner.py").write_text("import rag_below\nx = 1\n")
    (site / "rag_below.py").write_text("x = 1\n")
    (tmp_path / "rag_user.py").write_text("import rag_library, json, numpy\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)
    found = reach("rag_user")
    assert ({*found.digests}, {*found.libraries}) == ({"rag_user"}, {"rag_library"})
    # A part that a package of somebody's registers: its own code counts.
    found = reach("rag_library")
    assert ({*found.digests}, {*found.libraries}) == ({"rag_library", "rag_library.inner"}, {"rag_below"})


@pytest.mark.parametrize("module", ["no_such_module", "no.such.module", "sys", "types", "itertools"])
def test_a_module_that_is_nobodys_file_is_unknown(module: str) -> None:
    found = reach(module)
    assert (found.digest, found.unknown) == ("", (module,))


def test_nothing_asked_for_is_nothing() -> None:
    assert reach("").unknown == ()
    assert code_digest() == ""


def test_what_decides_nothing_is_left_out_with_all_that_it_imports() -> None:
    found = reach("rag_harness.models.embedders.encoding")
    assert {*found.digests} == {
        "rag_harness.models.embedders.encoding",
        "rag_harness.models.embedders.model_windows",
        "rag_harness.models.token_batches",
    }
    assert found.libraries == {"torch"}


def test_who_hands_out_parts_counts_and_its_imports_do_not() -> None:
    assert {*reach("rag_harness.pipelines.parts").digests} == {"rag_harness.pipelines.parts"}


def test_versions_of_libraries() -> None:
    found = versions(["Stemmer", "no_such_library_at_all", "tokenizers"])
    assert found["no_such_library_at_all"] == ABSENT
    assert found["Stemmer"][0].isdigit()


def test_a_package_goes_before_a_module_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rag_twice" / "sub").mkdir(parents=True)
    (tmp_path / "rag_twice" / "__init__.py").write_text("")
    (tmp_path / "rag_twice" / "sub" / "__init__.py").write_text("x = 1\n")
    (tmp_path / "rag_twice" / "sub.py").write_text("x = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = Modules(PACKAGE).file_of("rag_twice.sub")
    assert found is not None
    assert found.endswith("__init__.py")
