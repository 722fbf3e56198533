"""The fixed corpus: pages, answered questions with their prompts, and answers made up to be judged. Never change it.

``corpus.json`` has 30 trials of the shipped studies: the prompt, the answer and the chunks of each. ``MADE_UP`` has
what those lack: false figures, other names, negations, other languages, lists, citations that are wrong. A new text is
added at the end, and the stored outputs are written again for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.evaluation.measures.opinion import Material

_FOLDER = Path(__file__).parent
_RETURNS = (
    "Most items can be returned within 45 days of delivery. Opened software cannot be returned. Returns are free.",
    "The pick-up fee is €29. A refund takes 5 working days and goes to the card that paid.",
    "Lamps ship from Rotterdam on weekdays, 9:00 to 17:00. Dr. Ines Aalto leads the warehouse since 12 March 2024.",
)
_GERMAN = (
    "Die Garantie gilt 24 Monate ab Kauf. Für Akkus beträgt sie 12 Monate.",
    "Die Abholung kostet 29 €. Sie wird nicht erstattet.",
)
_TABLE = (
    "| Model | Weight | Price |\n|---|---|---|\n| Ember | 1.1 kg | €119 |\n| Ember Winter | 1.7 kg | €179 |",
    "The tool is run with `rag --all`. Version 2.3.1 removed the flag `--fast`.",
)


def _material(question: str, answer: str, contexts: tuple[str, ...] = _RETURNS, truth: str = "") -> Material:
    return Material(question, answer, contexts, truth, contexts[:1], contexts[:1])


_OPEN, _OLD_OR_NEW = "When is the shop open?", "How many days may a return take now?"
_HOURS = (
    "hours monday: 11:00 am to 5:00 pm\nhours friday: 11:00 am to 5:00 pm\nhours saturday: closed",
    "Open Mon-Fri 11-5. On Sundays the café is open from noon until 4 p.m.",
)
_EDITIONS = (
    "Effective date: 1 January 2024. This page has been replaced. Returns may take 30 days.",
    "Effective date: 2025-11-01. This page replaces the previous version. Returns may take 45 days.",
    "Effective: March 3, 2023. Outdated. Returns may take 15 days, said the returns-2023 page.",
)
_RULES = (
    "Children under 18 are not allowed. Dogs may enter on a lead. Smoking is prohibited everywhere but outside.",
    "Parking: no. Wi-fi: free. Pool: false. Good for kids: no. Noise level: quiet. " * 3,
)
_LEADER, _SHIP = "Who leads the warehouse?", "When do lamps ship?"
_FLAG, _WEIGHT, _PICKUP = "Which flag went?", "What does the Ember weigh?", "What does pick-up cost?"
_ASKED = "How long can I return an item?"
_TRUTH = "Within 45 days of delivery."
MADE_UP: tuple[Material, ...] = (
    _material(_ASKED, "You can return most items within 45 days of delivery.", truth=_TRUTH),
    _material(_ASKED, "You can return most items within 54 days of delivery.", truth=_TRUTH),
    _material(_ASKED, "Most items cannot be returned within 45 days of delivery.", truth=_TRUTH),
    _material(_ASKED, "45 days.", truth=_TRUTH),
    _material(_ASKED, "Six and a half weeks or so, i.e. forty-five days [Source 1].", truth=_TRUTH),
    _material("Can opened software be returned?", "Yes.", truth="No."),
    _material("Can opened software be returned?", "No [1].", truth="No."),
    _material(_LEADER, "Dr. Ines Aalto has led it since 12 March 2024 [Source 3].", truth="Ines Aalto"),
    _material(_LEADER, "Dr. Ivo Aalto has led it since 12 May 2024. [Source 1]", truth="Ines Aalto"),
    _material(_SHIP, "On weekdays between 9 a.m. and 5 p.m. They also ship on Sundays.", truth="Weekdays"),
    _material(_SHIP, "Lamps ship from Hamburg. Lamps ship from Rotterdam.", truth="Weekdays, 9 to 17"),
    _material(_PICKUP, "€29, refunded later; 29 euros; 2,900 cents; $29.", truth="€29"),
    _material(_PICKUP, "I don't know. The provided context does not answer this.", truth="€29"),
    _material(_PICKUP, "", truth="€29"),
    _material(_PICKUP, "Pick-up costs €29.", contexts=(), truth="€29"),
    _material("Wie lange gilt die Garantie?", "Die Garantie gilt 24 Monate ab Kauf [Source 1].", _GERMAN, "24 Monate"),
    _material("Wie lange gilt die Garantie?", "Die Garantie gilt 12 Monate ab Kauf.", _GERMAN, "24 Monate"),
    _material("How long is the guarantee?", "It lasts 24 months; batteries have 12 months.", _GERMAN, "24 months"),
    _material("Was kostet die Abholung?", "29 €, die erstattet werden.", _GERMAN, "29 €, ohne Erstattung"),
    _material(_WEIGHT, "- Ember: 1.7 kg\n- Ember Winter: 1.7 kg, €179", _TABLE, "1.1 kg"),
    _material(_WEIGHT, "| Ember | 1.1 kg |\n|---|---|\n| price | €119 |", _TABLE, "1.1 kg"),
    _material(_FLAG, "Version 2.3.2 removed `--fast`. Run `rag --none` instead.", _TABLE, "`--fast`"),
    _material(_FLAG, "# Answer\n\n1. **`--fast`** went in 2.3.1 [Source 2][Source 9].\n2. See above.", _TABLE),
    _material(_ASKED, "Hello! Thanks for asking. How long can I return an item? Good luck.", truth=_TRUTH),
    _material(_ASKED, "送料は無料です。返品は45日以内です。", truth=_TRUTH),
    *(
        _material(_OPEN, answer, _HOURS, "Monday to Friday from 11:00 to 17:00")
        for answer in (
            "It is open from 11 am to 5 pm on weekdays.",
            "Monday to Saturday, 11:00-17:00.",
            "From 5 pm on Mondays.",
            "On weekends it is open until midnight, and daily from noon to 4 p.m.",
            "It never closes.",
            "At 23:30 on Fri.",
            "Daily: 11 to 5.",
            "It is closed on Sundays and on Saturdays.",
            "Sunday through Wednesday from 9 until 12:30.",
        )
    ),
    *(
        _material(_OLD_OR_NEW, answer, _EDITIONS, "45 days since 1 November 2025")
        for answer in (
            "45 days.",
            "30 days, from January 2024 on.",
            "The limit is 45 days, 30 days or 15 days.",
            "About 44 days",
            "It was 30 days until 31.10.2025 and has been 45 days since (2025-11-01).",
            "Neither 30 nor 45 days.",
            "The limit was raised by 50 % to 45 days.",
            "Version 2 of the page says one month and a half.",
        )
    ),
    *(
        _material("Who may enter?", answer, _RULES, "Adults only.")
        for answer in (
            "Children are allowed.",
            "Nobody under 18 is allowed without an adult.",
            "Dogs, cats and horses may enter.",
            "It isn't true that children are not allowed.",
            "Only adults of 18 years or more, no dogs.",
            "Everyone may.",
            "Adults. Adults. Adults. Adults. Adults. Adults. Adults.",
            "18+, no smoking, free parking, free wi-fi, a pool.",
        )
    ),
)


@dataclass(frozen=True)
class Trial:
    """A trial of a shipped study: what the model was asked, and what came back.

    Attributes:
        name: experiment and query.
        messages: the prompt.
        hits: the chunks that were found, with scores by two signals.
        material: the answer for a judge.
    """

    name: str
    messages: tuple[dict[str, str], ...]
    hits: tuple[Hit, ...]
    material: Material


@cache
def trials() -> tuple[Trial, ...]:
    """Return the trials of ``corpus.json``."""
    return tuple(map(_trial, json.loads((_FOLDER / "corpus.json").read_text(encoding="utf-8"))))


def _trial(said: dict[str, Any]) -> Trial:
    contexts = tuple(said["contexts"])
    chunks = [
        Chunk(f"{page}#chunk_{place}", page, text, 0, len(text))
        for place, (page, text) in enumerate(zip(said["pages"], contexts, strict=True))
    ]
    scored = [{"dense": each["cosine"], "max_sim": each["max_sim"]} for each in said["scores"]]
    hits = [
        Hit(chunk, scores["dense"], rank, "hybrid", scores)
        for rank, (chunk, scores) in enumerate(zip(chunks, scored, strict=True), 1)
    ]
    material = Material(
        said["question"], said["answer"], contexts, said["ground_truth"], contexts[:1], tuple(said["quotes"]),
        said["abstained"], said["answerable"],
    )  # fmt: skip
    return Trial(said["name"], tuple(said["messages"]), tuple(hits), material)


@cache
def pages() -> tuple[Document, ...]:
    """Return the pages of the folder ``pages``."""
    files = sorted((_FOLDER / "pages").iterdir())
    return tuple(Document(file.name, file.read_bytes().decode("utf-8"), file.stem) for file in files)


def materials() -> tuple[Material, ...]:
    """Return all answers to judge."""
    return (*MADE_UP, *(trial.material for trial in trials()))
