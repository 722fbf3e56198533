"""The image is built of the Dockerfile, and a container of it does what compose.yaml says: minutes, by ``-m long``."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.container.composed import Containers, compose
from tests.container.image import ROOT, Buildah, NotHereError, lacking

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(lacking()), reason=f"no image can be built here: {lacking()}")]
SERVICES = compose(RAG_PROFILE="mock")
ASK = """
import json, sys, urllib.error, urllib.request
body = sys.argv[3].encode() if len(sys.argv) > 3 else None
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]}
request = urllib.request.Request("http://127.0.0.1:8000" + sys.argv[1], body, headers)
try:
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(json.dumps([answer.status, json.load(answer)]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, json.load(error)]))
"""
PROBE = """
import pathlib
for place in ("/", "/suite", "/opt/rag", "/usr/local", "/state", "/tmp"):
    try:
        pathlib.Path(place, "probe").write_text("x")
        print("written", place)
    except OSError as error:
        print("refused", place, error.errno)
shown = ("Uid", "CapEff", "CapBnd", "NoNewPrivs")
print(*(line for line in open("/proc/self/status") if line.split(":")[0] in shown), sep="")
"""


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    folder = tmp_path_factory.mktemp("container")
    buildah = Buildah(folder)
    alone = ["unshare", "--net", sys.executable, "-m", "tests.container.vectors"]
    try:
        image = buildah.image()
        with subprocess.Popen(alone, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as vectors:
            assert vectors.stdout is not None
            assert vectors.stdin is not None
            assert vectors.stdout.readline() == "ready\n"
            yield Containers(folder, buildah.files(), image, SERVICES["service"], vectors.pid, ("qdrant",))
            vectors.stdin.close()
    except NotHereError as error:
        pytest.skip(str(error))
    finally:
        buildah.clean()


@pytest.fixture(scope="module")
def key(containers: Containers) -> str:
    """The key that the first line of compose.yaml makes."""
    first = (ROOT / "compose.yaml").read_text(encoding="utf-8").splitlines()[0]
    words = first.partition("run --rm service ")[2].split()
    _, process = containers.start(words[: words.index("/state") + 1])
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said.split()[0]


@pytest.fixture
def service(containers: Containers, key: str) -> Iterator[str]:
    """The composed service, once its own health check says that it lives; ended as compose ends it."""
    name, process = containers.start()
    try:
        _until(lambda: healthy(containers, name), process)
        yield name
    finally:
        if process.poll() is None:
            containers.signal(name, containers.image.get("StopSignal") or "SIGTERM")
        grace = float(SERVICES["service"]["stop_grace_period"].removesuffix("s"))
        said, _ = process.communicate(timeout=grace)
    assert process.returncode == 0, said


def _until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something holds of a container that goes on."""
    end = time.monotonic() + 180
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.5)


def healthy(containers: Containers, name: str) -> bool:
    """Ask as the health check of the image does."""
    kind, *words = containers.image["Healthcheck"]["Test"]
    assert kind == "CMD"
    return containers.inside(name, *words).returncode == 0


def asked(containers: Containers, name: str, path: str, key: str, body: object = None) -> tuple[int, Any]:
    """Return status and answer of a request from within the container."""
    sent = [] if body is None else [json.dumps(body)]
    found = containers.inside(name, "python", "-c", ASK, path, key, *sent)
    assert found.returncode == 0, found.stderr
    status, answer = json.loads(found.stdout)
    return status, answer


def test_the_image_has_nothing_to_build_with(containers: Containers) -> None:
    assert not [*containers.files.glob("usr/local/lib/python3*/*-packages/pip")]
    assert not [*containers.files.glob("opt/rag/lib/python3*/site-packages/pip")]
    assert (containers.files / "opt/rag/bin/rag-harness").exists()


def test_without_a_key_the_composed_service_does_not_start(containers: Containers, tmp_path: Path) -> None:
    _, process = replace(containers, folder=tmp_path).start()
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "rag-harness keys create" in said


def test_the_composed_service_answers_who_has_a_key(containers: Containers, key: str, service: str) -> None:
    while asked(containers, service, "/ready", key)[0] == 503:
        time.sleep(0.5)
    status, answer = asked(containers, service, "/query", key, {"query": "How long can I return a lamp?"})
    assert status == 200, answer
    assert {"answer", "citations", "decision", "trace_id"} <= answer.keys()
    status, documents = asked(containers, service, "/documents", key)
    assert (status, len(documents["documents"])) == (200, 100)
    assert asked(containers, service, "/query", "nobody", {"query": "?"})[0] == 401


def test_it_writes_to_its_volume_and_tmp_alone_and_may_do_nothing_else(containers: Containers, service: str) -> None:
    found = containers.inside(service, "python", "-c", PROBE).stdout
    written = {line.split()[1] for line in found.splitlines() if line.startswith("written")}
    assert written == {"/state", "/tmp"}
    refused = {line.split()[2] for line in found.splitlines() if line.startswith("refused")}
    assert refused == {str(errno.EROFS)}
    said = dict(line.split(":\t") for line in found.splitlines() if ":\t" in line)
    assert said["Uid"].split() == ["10001"] * 4
    assert (int(said["CapEff"], 16), int(said["CapBnd"], 16), said["NoNewPrivs"]) == (0, 0, "1")


def test_what_the_volume_holds_is_there_after_a_restart(containers: Containers, key: str, service: str) -> None:
    assert (containers.folder / "volume-state").stat().st_uid == 10001
    assert asked(containers, service, "/health", key)[0] == 200
    while asked(containers, service, "/ready", key)[0] == 503:
        time.sleep(0.5)
    assert asked(containers, service, "/documents", key)[0] == 200
