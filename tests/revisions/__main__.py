"""Store the results of the parts whose revision was raised: ``python -m tests.revisions``.

It refuses other results under a revision that has some: what was kept under it would be taken for the new ones.
"""

from __future__ import annotations

import json
import sys

from rag_harness.registry.revisions import REVISIONS
from tests.revisions.behaviours import BEHAVIOURS
from tests.revisions.stored import FOLDER, differences, file_of, stored


def main() -> int:
    """Store what is new. Return 1 where a part gives other results and has kept its revision."""
    FOLDER.mkdir(exist_ok=True)
    refused = 0
    for part, revision in REVISIONS.items():
        found, (before, outputs) = BEHAVIOURS[part](), stored(part)
        if before == revision:
            if different := differences(outputs, found):
                print(f"{part}: {len(different)} other results under revision {revision}. Raise it: {different[0]}")
                refused = 1
            continue
        text = json.dumps({"revision": revision, "outputs": found}, ensure_ascii=False, indent=0)
        file_of(part).write_text(f"{text}\n", encoding="utf-8")
        print(f"{part}: stored under revision {revision}")
    return refused


if __name__ == "__main__":
    sys.exit(main())
