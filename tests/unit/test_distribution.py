"""What is built and published: pyproject.toml, the container, and files that a host reads."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

import rag_harness
from rag_harness.__main__ import ALONE, parser_of
from rag_harness.core import package
from rag_harness.core.package import VERSION
from rag_harness.core.settings.profiles import parsed_toml
from rag_harness.frontends.cli.serve import serve_arguments
from tests.unit.pages import ROOT as PAGES_ROOT
from tests.unit.pages import found

# What stands in pyproject.toml for the package index, and what goes into the archives.

ROOT = Path(__file__).parents[2]
PROJECT: Mapping[str, Any] = parsed_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ABOUT, TARGETS = PROJECT["project"], PROJECT["tool"]["hatch"]["build"]["targets"]
FROM_PEP_301 = re.compile(r"[^:]+( :: [^:]+)+")


def test_name_and_version_are_those_that_the_code_says() -> None:
    assert (ABOUT["name"], ABOUT["version"]) == (package.NAME, package.VERSION)
    assert package.version() == package.VERSION == rag_harness.__version__
    assert ABOUT["scripts"] == {package.COMMAND: "rag_harness.__main__:main"}


def test_what_the_index_shows_is_there() -> None:
    shown = ["description", "readme", "license", "authors", "keywords", "classifiers", "urls"]
    assert [key for key in shown if not ABOUT.get(key)] == []


def test_files_that_are_named_are_there() -> None:
    for name in (ABOUT["readme"], *ABOUT["license-files"]):
        assert (ROOT / name).is_file()


def test_urls_have_the_labels_that_the_index_knows() -> None:
    assert {"homepage", "documentation", "repository", "issues", "changelog"} == {
        each.lower() for each in ABOUT["urls"]
    }
    assert all(url.startswith("https://") for url in ABOUT["urls"].values())


def test_classifiers_are_well_formed_and_say_no_licence_beside_the_expression() -> None:
    assert len(set(ABOUT["classifiers"])) == len(ABOUT["classifiers"])
    for each in ABOUT["classifiers"]:
        assert FROM_PEP_301.fullmatch(each)
        assert not each.startswith("License ::")  # the index refuses both
    assert len(set(ABOUT["keywords"])) == len(ABOUT["keywords"])


def test_the_wheel_is_the_package_alone() -> None:
    assert TARGETS["wheel"] == {"packages": ["rag_harness"]}
    assert not [each for each in (ROOT / "rag_harness").rglob("*.py") if re.fullmatch(r"test_.*|conftest", each.stem)]


def test_the_source_archive_leaves_recordings_out_and_keeps_what_is_built_from() -> None:
    left_out = TARGETS["sdist"]["exclude"]
    assert "/cassettes" in left_out
    assert all(each.startswith("/") for each in left_out)  # a bare name would leave out folders of the package, too
    needed = {"/rag_harness", "/pyproject.toml", *(f"/{each}" for each in (ABOUT["readme"], *ABOUT["license-files"]))}
    assert not needed & set(left_out)


def test_what_the_source_archive_holds_is_small() -> None:
    folders = (ROOT / name for name in ("rag_harness", "docs", "data", "tests", "benchmarks"))
    files = [each for folder in folders for each in folder.rglob("*") if "__pycache__" not in each.parts]
    sizes = {each: each.stat().st_size for each in files if each.is_file()}
    # Uncompressed. The archive has 5 MB of them now, and may have 15.
    assert sum(sizes.values()) < 30_000_000, sorted(sizes.items(), key=lambda each: -each[1])[:5]


# Dockerfile and compose.yaml, held to the code without building them; ``tests/container`` builds them.


def instructions() -> list[tuple[str, str]]:
    """What the Dockerfile says, an instruction and its arguments each."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def last(name: str) -> str:
    return [said for each, said in instructions() if each == name][-1]


def sources() -> list[str]:
    """What the Dockerfile copies from the repository."""
    copied = [said.split() for name, said in instructions() if name == "COPY" and not said.startswith("--from=")]
    return [word for words in copied for word in words[:-1]]


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return read


def served(command: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    serve_arguments(parser)
    assert command[0] == "serve"
    return parser.parse_args(command[1:])


def test_all_that_is_copied_is_there_and_not_ignored() -> None:
    assert {"rag_harness", "pyproject.toml", "data/kb"} <= set(sources())
    assert [name for name in sources() if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    assert [name for name in sources() if f"!{name}" not in ignored] == []


def test_the_package_can_be_built_of_what_is_copied() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r'(?:readme = |license-files = \[|packages = \[)"([^"]+)"', project)
    assert len(needed) == 3
    assert [name for name in needed if name not in sources()] == []


def test_the_extras_are_those_of_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = next(said.partition("=")[2] for name, said in instructions() if said.startswith("EXTRAS="))
    assert [extra for extra in wanted.split(",") if f"\n{extra} = [" not in project] == []


def test_every_stage_is_of_one_pinned_python_and_the_last_has_nothing_to_build_with() -> None:
    images = [said.split()[0] for name, said in instructions() if name == "FROM"]
    assert len(images) == 2
    assert len(set(images)) == 1
    assert re.fullmatch(r"python:3\.1[1-9]-slim-\w+", images[0])
    final = [i for i, (name, _) in enumerate(instructions()) if name == "FROM"][-1]
    rest = [said for name, said in instructions()[final:] if name == "RUN"]
    assert "pip uninstall" in rest[0]
    assert not re.search(r"apt-get|pip install|gcc|build-essential", " ".join(rest))


def test_nobody_is_root_and_no_secret_is_baked_in() -> None:
    user = last("USER")
    assert user.split(":")[0].isdecimal()
    assert int(user.split(":")[0]) > 0
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert not re.search(r"(?i)(api_?key|token|secret|password)", " ".join(said for _, said in instructions()[:-4]))


def test_all_that_is_written_is_below_the_volume_or_tmp() -> None:
    said = dict(re.findall(r"(\w+)=(\S+)", last("ENV")))
    assert last("VOLUME") == "/state"
    assert {said["RAG_CACHE_DIR"], said["RAG_LOGS"]} == {"/state/cache", "/state/logs"}
    assert said["HOME"] == "/tmp"
    assert served(json.loads(last("CMD"))).state == Path("/state")


def test_the_command_is_one_that_serve_takes() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["rag-harness"]
    chosen = served(json.loads(last("CMD")))
    assert (chosen.host, chosen.port, chosen.experiment) == ("0.0.0.0", 8000, "e2")
    assert last("EXPOSE") == "8000"


class _Health(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Ill(_Health):
    status = 503


@pytest.fixture(params=[_Health, _Ill])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), request.param)
    thread = Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield listening.server_address[1], request.param.status
    listening.shutdown()
    thread.join()
    listening.server_close()


def _healthy(port: int) -> bool:
    name, code = last("HEALTHCHECK").partition(" CMD ")[::2]
    assert "--interval" in name
    words = json.loads(code)
    assert words[:2] == ["python", "-c"]
    program = words[2].replace(":8000/", f":{port}/")
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=30).returncode == 0


def test_the_health_check_tells_a_healthy_server_from_an_ill_one(server: tuple[int, int]) -> None:
    port, status = server
    assert _healthy(port) == (status == 200)


def test_the_composed_service_is_the_image_with_a_read_only_root() -> None:
    service = compose()["services"]["service"]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["volumes"] == ["state:/state"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"][0].startswith("/tmp:")
    assert set(compose()["volumes"]) == {"state", "vectors"}


def test_the_composed_command_is_one_that_serve_takes() -> None:
    words = [re.sub(r"\$\{\w+:-(\w*)\}", r"\1", word) for word in compose()["services"]["service"]["command"]]
    chosen = served(words)
    assert (chosen.qdrant_url, chosen.experiment, chosen.profile) == ("http://qdrant:6333", "e2", "openrouter")
    assert "qdrant" in compose()["services"]


def test_qdrant_is_pinned_and_not_published() -> None:
    qdrant = compose()["services"]["qdrant"]
    assert re.fullmatch(r"qdrant/qdrant:v\d+\.\d+\.\d+", qdrant["image"])
    assert "ports" not in qdrant
    assert qdrant["volumes"] == ["vectors:/qdrant/storage"]


def test_the_command_that_makes_the_first_key_is_one_that_there_is() -> None:
    first = (ROOT / "compose.yaml").read_text(encoding="utf-8").splitlines()[0]
    words = shlex.split(first.partition("run --rm service ")[2], comments=False)
    words = words[: words.index("/state") + 1]
    chosen = parser_of(words).parse_args(words)
    assert (chosen.scopes, chosen.state) == (["admin"], Path("/state"))


# Files that a host of repositories reads: they name what exists, in the form that is asked for.

FORMS = sorted((PAGES_ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
KINDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
"""Elements of a form, by GitHub's schema."""
PAGES = ("SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
_LINK = re.compile(r"\]\(([^)#]{1,200})")


def read_yaml(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def test_an_issue_form_has_the_form_that_is_asked_for() -> None:
    assert len(FORMS) >= 2
    for file in FORMS:
        form = read_yaml(file)
        assert {"name", "description", "body"} <= form.keys(), file.name
        named = [each for each in form["body"] if each["type"] != "markdown"]
        assert {each["type"] for each in form["body"]} <= KINDS, file.name
        assert len({each["id"] for each in named}) == len(named), file.name
        assert all(each["attributes"]["label"] for each in named), file.name


def test_a_bug_is_reported_with_what_doctor_says() -> None:
    body = read_yaml(PAGES_ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")["body"]
    (asked,) = [each for each in body if each.get("id") == "doctor"]
    assert asked["attributes"]["label"] == "Output of `rag-harness doctor`"
    assert "doctor" in ALONE
    assert asked["validations"] == {"required": True}
    assert asked["attributes"]["render"] == "text"  # else its lines would be read as Markdown


def test_the_citation_is_of_this_version_and_of_this_project() -> None:
    cited, about = (
        read_yaml(PAGES_ROOT / "CITATION.cff"),
        parsed_toml((PAGES_ROOT / "pyproject.toml").read_text())["project"],
    )
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["version"] == VERSION
    assert cited["license"] == about["license"]
    assert [each["name"] for each in cited["authors"]] == [each["name"] for each in about["authors"]]
    assert cited["repository-code"] == about["urls"]["Repository"]
    assert cited["url"] == about["urls"]["Homepage"]


def test_links_of_a_page_lead_to_files() -> None:
    links = [each for name in PAGES for each in found(_LINK, PAGES_ROOT / name)]
    lost = [
        f"{where}: {each}"
        for where, each in links
        if not (each.startswith("https://") or (PAGES_ROOT / each).is_file())
    ]
    assert not lost, "\n".join(lost)


def test_the_changelog_has_versions_and_their_known_sections() -> None:
    lines = (PAGES_ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Changelog"
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    known = ("### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security")
    sections = [line for line in lines if line.startswith(("## ", "### "))]
    assert all(line in known for line in sections if line not in versions)
    body = lines[lines.index(versions[0]) :]
    assert all(line.startswith(("- ", "  ", "## ", "### ")) for line in body if line)
    # A section without an entry says nothing.
    filled = [line for line in body if line.startswith(("## ", "### ", "- "))]
    assert not [one for one, other in pairwise(filled) if one.startswith("### ") and not other.startswith("- ")]
