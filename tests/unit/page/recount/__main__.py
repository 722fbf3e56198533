"""``python -m tests.unit.page.recount PAGE.html OUTPUT [OTHER …]``: what differs, a line each."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.page.recount.recounted import problems

if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).read_text(), *map(Path, sys.argv[2:]))
    print("\n".join(found) or "every number is right")
    sys.exit(bool(found))
