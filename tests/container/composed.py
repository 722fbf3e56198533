"""A service of compose.yaml as a container of runc, run as compose.yaml says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.container.image import ROOT

_NAMESPACES = ("pid", "ipc", "uts", "mount")
_CAPABILITIES = ("bounding", "effective", "inheritable", "permitted", "ambient")
_PSEUDO = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "nodev", "size=64m"]},
]


def compose(**variables: str) -> dict[str, Any]:
    """Return the services of compose.yaml, its variables replaced by these or by their defaults."""
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    filled = re.sub(r"\$\{(\w+):-(\w*)\}", lambda found: variables.get(found[1], found[2]), text)
    services: dict[str, Any] = yaml.safe_load(filled)["services"]
    return services


@dataclass
class Containers:
    """Containers of one image and one service, which share its volumes and a network that nobody else is in."""

    folder: Path
    files: Path
    image: dict[str, Any]
    service: dict[str, Any]
    network: int
    """The process whose network it is."""
    names: tuple[str, ...]
    """Other services, by the names that the service knows them by; they listen in the same network."""
    started: int = field(default=0, init=False)

    def start(self, command: list[str] | None = None) -> tuple[str, subprocess.Popen[str]]:
        """Start a container and return its name and its process. Without a command it is that of compose.yaml."""
        self.started += 1
        name = f"rag-harness-{self.network}-{self.started}"
        bundle = self.folder / name
        bundle.mkdir()
        config = self._config(command or self.service["command"])
        (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")
        words = [*self._runc(), "run", "--bundle", str(bundle), name]
        return name, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def inside(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in a container that is there, as its health check does."""
        called = [*self._runc(), "exec", name, *words]
        return subprocess.run(called, capture_output=True, text=True, check=False, timeout=60)

    def signal(self, name: str, signal: str) -> None:
        """Send a signal to the first process of a container."""
        subprocess.run([*self._runc(), "kill", name, signal], check=True, timeout=60)

    def _runc(self) -> list[str]:
        return ["runc", "--root", str(self.folder / "runc")]

    def _config(self, command: list[str]) -> dict[str, Any]:
        user, group = map(int, self.image["User"].split(":"))
        assert self.service["cap_drop"] == ["ALL"]
        process = {
            "user": {"uid": user, "gid": group},
            "args": [*self.image["Entrypoint"], *command],
            "env": [*self.image["Env"], *(f"{name}={value}" for name, value in self.service["environment"].items())],
            "cwd": self.image["WorkingDir"],
            "capabilities": {kind: [] for kind in _CAPABILITIES},
            "noNewPrivileges": "no-new-privileges:true" in self.service["security_opt"],
        }
        network = {"type": "network", "path": f"/proc/{self.network}/ns/net"}
        return {
            "ociVersion": "1.0.0",
            "process": process,
            "root": {"path": str(self.files), "readonly": self.service["read_only"]},
            "mounts": [*_PSEUDO, *self._tmpfs(), *self._volumes(), self._hosts()],
            "linux": {"namespaces": [*({"type": kind} for kind in _NAMESPACES), network]},
        }

    def _tmpfs(self) -> list[dict[str, Any]]:
        places = [each.partition(":")[::2] for each in self.service["tmpfs"]]
        return [
            {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options.split(",")}
            for place, options in places
        ]

    def _volumes(self) -> list[dict[str, Any]]:
        return [self._volume(*each.split(":")) for each in self.service["volumes"]]

    def _volume(self, name: str, place: str) -> dict[str, Any]:
        folder = self.folder / f"volume-{name}"
        if not folder.exists():
            # A new volume begins as what the image has there, and belongs to whom it belongs to in the image.
            kept = self.files / place.lstrip("/")
            shutil.copytree(kept, folder)
            shutil.chown(folder, kept.stat().st_uid, kept.stat().st_gid)
        return {"destination": place, "type": "bind", "source": str(folder), "options": ["bind", "rw"]}

    def _hosts(self) -> dict[str, Any]:
        file = self.folder / "hosts"
        file.write_text(f"127.0.0.1 localhost {' '.join(self.names)}\n", encoding="utf-8")
        return {"destination": "/etc/hosts", "type": "bind", "source": str(file), "options": ["bind", "ro"]}
