"""The image that the Dockerfile makes, built by buildah, which needs no daemon: root, and Debian's packages.

Where the base image cannot be pulled, one of Debian's packages stands in under its name: the same system and minor
version of Python. It has the certificates that this machine trusts, for pip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAME = "rag-harness"
_STAND_IN = ("ca-certificates", "python3-venv")
_PIP = ("pip", "setuptools", "wheel", "packaging")


class NotHereError(Exception):
    """There is no base image on this machine, and why."""


class FailedError(Exception):
    """A program failed, with what it said."""


def lacking() -> str:
    """Return what keeps this machine from building and running an image; nothing, where nothing does."""
    tools = [tool for tool in ("buildah", "runc", "unshare", "ip") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not installed"
    return "" if os.geteuid() == 0 else "only root may build and run it like this"


@dataclass(frozen=True)
class Buildah:
    """Images and containers below one folder."""

    folder: Path

    def __call__(self, *words: str) -> str:
        """Run one command and return what it printed."""
        places = ["--root", str(self.folder / "store"), "--runroot", str(self.folder / "run")]
        return run(["buildah", *places, *words], env={**os.environ, "BUILDAH_ISOLATION": "chroot"}).strip()

    def image(self) -> dict[str, Any]:
        """Build the image of the Dockerfile and return its configuration."""
        base = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)[0]
        self._base(f"docker.io/library/{base}")
        # Docker's own format, for OCI's has no health check.
        self("bud", "--format", "docker", "--pull-never", "--tag", NAME, str(ROOT))
        said = json.loads(self("inspect", "--type", "image", NAME))
        config: dict[str, Any] = said["Docker"]["config"]
        return config

    def files(self) -> Path:
        """Return the folder of all files of a new container of the image."""
        return Path(self("mount", self("from", "--pull-never", NAME)))

    def clean(self) -> None:
        """Unmount all that was mounted, so that the folder can be removed."""
        self("umount", "--all")
        self("rm", "--all")
        for mounted in (self.folder / "store").glob("overlay"):
            subprocess.run(["umount", str(mounted)], check=False, capture_output=True, timeout=60)

    def _base(self, name: str) -> None:
        try:
            self("pull", "--quiet", name)
        except FailedError as error:
            if shutil.which("mmdebstrap") is None:
                raise NotHereError(f"{name} cannot be pulled, and mmdebstrap is not installed: {error}") from None
            try:
                self._stand_in(name)
            except FailedError as reason:
                raise NotHereError(f"{name} cannot be pulled, and nothing can stand in: {reason}") from None

    def _stand_in(self, name: str) -> None:
        suite = name.rpartition("-")[2]
        archive, wheels = self.folder / "base.tar", self.folder / "wheels"
        system = ["mmdebstrap", "--variant=minbase", f"--include={','.join(_STAND_IN)}", suite, str(archive)]
        run([*system, "http://deb.debian.org/debian"])
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), *_PIP])
        container = self("from", "scratch")
        self("add", "--quiet", container, str(archive), "/")
        trusted = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
        if trusted:
            self("copy", "--quiet", container, trusted, "/etc/ssl/certs/ca-certificates.crt")
        self("copy", "--quiet", container, str(wheels), "/wheels")
        # Debian's own pip could not be removed by pip, as the Dockerfile does.
        self("run", container, "sh", "-ec", _PYTHON.format(packages=" ".join(_PIP)))
        self("commit", "--quiet", container, name)
        archive.unlink()


_PYTHON = """
ln -s /usr/bin/python3 /usr/local/bin/python
rm /usr/lib/python3*/EXTERNALLY-MANAGED
python -m venv /wheels/env
pip="/wheels/env/bin/pip --quiet"
$pip install --no-index --find-links /wheels --upgrade pip
$pip --python /usr/local/bin/python install --no-index --find-links /wheels {packages}
rm -r /wheels
"""


def run(words: list[str], env: dict[str, str] | None = None) -> str:
    """Run a program and return what it printed; what it complained of is the error."""
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise FailedError(f"{' '.join(words[:2])} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
