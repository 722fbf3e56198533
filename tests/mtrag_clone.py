"""A clone of IBM/mt-rag-benchmark in small: its folders and formats, with texts of our own."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TASKS = "mtrag-human/retrieval_tasks/clapnq"
PASSAGES = (
    ("11_0-40-0-40", "Lamps", "Lamps\nA lamp can be returned within 45 days."),
    ("11_40-80-0-40", "Lamps", "Lamps\nAn opened lamp cannot be returned."),
    ("12_0-30-0-30", None, "\nDelivery to Norway costs 9 euros."),
)
ASKED = ("How long can I return a lamp?", "And opened?", "What does delivery to Norway cost?")


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"speaker": ("user", "agent")[place % 2], "text": text} for place, text in enumerate(texts)]


def task(conversation: str, turn: int, kind: str, *texts: str, **more: Any) -> dict[str, Any]:
    """Return a generation task whose last text is the question."""
    return {
        "conversation_id": conversation,
        "task_id": f"{conversation}<::>{turn}",
        "turn": str(turn),
        "Collection": "mt-rag-clapnq-elser-512-100-20240503",
        "answerability": [kind],
        "Question Type": ["Factoid", "Explanation"],
        "Multi-Turn": ["Follow-up"] if turn > 1 else ["N/A"],
        "contexts": [],
        "input": said(*texts),
        "targets": [{"speaker": "agent", "text": f"Reply {turn}."}],
        **more,
    }


def passage(place: int) -> dict[str, Any]:
    name, title, text = PASSAGES[place]
    return {"document_id": name, "text": text, **({"title": title} if title else {})}


GENERATION = (
    task("aa", 1, "ANSWERABLE", ASKED[0], contexts=[passage(0)]),
    task("aa", 2, "PARTIAL", ASKED[0], "45 days.", ASKED[1], contexts=[passage(1)], **{"Multi-Turn": float("nan")}),
    task("aa", 3, "UNANSWERABLE", ASKED[0], "45 days.", ASKED[1], "No.", "Who made it?"),
    task("bb", 1, "ANSWERABLE", ASKED[2], contexts=[passage(2)]),
    task("bb", 2, "UNDERSPECIFIED", ASKED[2], "9 euros.", "And the other?", contexts=[passage(2)]),
    task("cc", 1, "CONVERSATIONAL", "Thanks!", Collection="mt-rag-govt-elser-512-100-20240611"),
)


def queries(*texts: tuple[str, str]) -> str:
    return jsonl(*({"_id": name, "text": text} for name, text in texts))


def jsonl(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


CORPUS = jsonl(
    *(
        {"_id": name, "id": name, "url": "https://u.test", "title": title or "", "text": text}
        for name, title, text in PASSAGES
    )
)
QRELS = "query-id\tcorpus-id\tscore\naa<::>1\t11_0-40-0-40\t1\naa<::>2\t11_40-80-0-40\t1\nbb<::>1\t12_0-30-0-30\t1\n"
NAMES = ("aa<::>1", "aa<::>2", "bb<::>1")
QUESTIONS = queries(
    (NAMES[0], f"|user|: {ASKED[0]}"),
    (NAMES[1], f"|user|: {ASKED[0]}\n|user|: {ASKED[1]}"),
    (NAMES[2], f"|user|: {ASKED[2]}"),
)
LAST = queries(*((name, f"|user|: {text}") for name, text in zip(NAMES, ASKED, strict=True)))
REWRITTEN = queries(
    (NAMES[0], "|user|: How long can a lamp be returned?"),
    (NAMES[1], "|user|:  Can an opened lamp be returned?"),
    (NAMES[2], "|user|: What is the cost of delivery to Norway?"),
)
FILES = {
    f"{TASKS}/clapnq_lastturn.jsonl": LAST,
    f"{TASKS}/clapnq_rewrite.jsonl": REWRITTEN,
    f"{TASKS}/clapnq_questions.jsonl": QUESTIONS,
    f"{TASKS}/qrels/dev.tsv": QRELS,
    "mtrag-human/generation_tasks/reference.jsonl": jsonl(*GENERATION),
    "mtragun-human/retrieval_tasks/qrels/clapnq.tsv": QRELS,
    "mtragun-human/generation_tasks/reference.jsonl": jsonl(*GENERATION),
    "corpora/passage_level/clapnq.jsonl": CORPUS,
}


def clone_of(folder: Path, changed: Mapping[str, str | bytes | None] | None = None) -> Path:
    """Write a clone with some files changed; None: without the file."""
    for name, content in (FILES | dict(changed or {})).items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def zipped_corpus(folder: Path, member: str = "clapnq.jsonl") -> None:
    """Put the corpus into a zip, as the repository has it."""
    plain = folder / "corpora/passage_level/clapnq.jsonl"
    with zipfile.ZipFile(plain.with_name("clapnq.jsonl.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/clapnq.jsonl", "no data")
        archive.writestr(member, plain.read_bytes())
    plain.unlink()
