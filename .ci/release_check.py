"""Refuses archives that are not what their tag says, before anything is published.

    python .ci/release_check.py dist v1.2.3

Without a tag, for TestPyPI, archives and ``pyproject.toml`` have to agree.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(folder: Path, tag: str) -> Iterator[str]:
    """Yield what is wrong with the archives in ``folder``, a line each."""
    (version,) = re.findall(r'^version = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    wanted = [f"pytest_rag_harness-{version}-py3-none-any.whl", f"pytest_rag_harness-{version}.tar.gz"]
    found = sorted(each.name for each in folder.iterdir())
    if found != sorted(wanted):
        yield f"{folder} has {', '.join(found) or 'nothing'}, and {' and '.join(wanted)} were to be there"
    if tag and tag != f"v{version}":
        yield f"the tag is {tag}, and pyproject.toml says {version}: the tag has to be v{version}"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag and not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M):
        yield f"CHANGELOG.md has no section of {version} with its date"


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")) or 0)
