"""A small book, and the parts of a run over it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.pipelines.parts import RunParts

PAGES = {
    "module-1/chapter-1-nodes.md": """---
title: Nodes
module: 1
module_title: Nerves
chapter: 1
url: /module-1/chapter-1
---

# Nodes

A node is a program of a robot with a name.

## Topics

A topic carries messages from publishers to subscribers.

```python
node.create_publisher(String, "chatter", 10)
```

### Queues

A queue of depth ten keeps ten messages.
""",
    "module-1/chapter-2-clocks.md": """---
title: Clocks
module: 1
module_title: Nerves
chapter: 2
url: /module-1/chapter-2
---

# Clocks

Clocks of two computers drift apart.

## Drift

Quartz drifts by twenty parts in a million.

| clock | drift |
|-------|-------|
| quartz | 20 ppm |
| atomic | 0.00001 ppm |
""",
    "module-2/chapter-1-motors.md": """---
title: Motors
module: 2
module_title: Bodies
chapter: 1
url: /module-2/chapter-1
---

# Motors

A motor turns current into torque.

## Stall

At stall the torque is highest and the speed is zero.

## Stall

A motor held at stall grows hot.
""",
}


def parts_over(root: Path, pages: Mapping[str, str] = PAGES, **changes: Any) -> RunParts:
    """Return the parts of a run on the mock profile over ``pages``."""
    for name, text in pages.items():
        (root / "book" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "book" / name).write_text(text, encoding="utf-8")
    return RunParts(load_settings({"profile": "mock", "kb_dir": "book", **changes}, rootdir=root))


@dataclass
class Says:
    """A chat model that gives one answer, and keeps what it was asked."""

    answer: str = "A topic carries messages [Source 1]."
    model: str = "test/says"
    asked: list[list[Message]] = field(default_factory=list)

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append(list(messages))
        return Completion(json.dumps({"answer": self.answer}), self.model, Usage(10, 5, 1), 20.0)
