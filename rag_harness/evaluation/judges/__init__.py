"""Judges give the verdicts behind judged measures. Each has an entry point ``rag_harness.judges``."""

UNSEEN = (
    "it does not see a name of the context in another's place, subject and object exchanged, a sum or another "
    "conclusion, nor most paraphrases, and leaves short answers that its rules cannot decide, summaries and languages "
    "other than English without a score."
)
