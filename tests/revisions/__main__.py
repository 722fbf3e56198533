"""Store the results of the parts whose revision was raised: ``python -m tests.revisions``.

It refuses other results under a revision that has some: what was kept under it would be taken for the new ones.
"""

from __future__ import annotations

import sys

from rag_harness.core.registry import REVISIONS
from tests.revisions.behaviours import BEHAVIOURS
from tests.revisions.stored import differences, store, stored


def main() -> int:
    """Store what is new. Return 1 where a part gives other results and has kept its revision."""
    refused = 0
    for part, revision in REVISIONS.items():
        found, (before, outputs) = BEHAVIOURS[part](), stored(part)
        if before == revision:
            if different := differences(outputs, found):
                print(f"{part}: {len(different)} other results under revision {revision}. Raise it: {different[0]}")
                refused = 1
            continue
        store(part, revision, found)
        print(f"{part}: stored under revision {revision}")
    return refused


if __name__ == "__main__":
    sys.exit(main())
