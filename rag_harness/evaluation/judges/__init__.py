"""Judges give the verdicts behind judged measures. Each has an entry point ``rag_harness.judges``.

``embedded`` needs no model, ``encoder`` a local classifier, ``fused`` and ``ragas`` ask a language model. ``factory``
makes the judge that the settings name; ``run_judge`` adds the questions that it does not answer itself. Engine, studies
and commands call it. A judge does not get the score that a measure computes from its verdicts. Begin reading with
``factory.py``.
"""

UNSEEN = (
    "it does not see a name of the context in another's place, subject and object exchanged, a sum or another "
    "conclusion, nor most paraphrases, and leaves short answers that its rules cannot decide, summaries and languages "
    "other than English without a score."
)
