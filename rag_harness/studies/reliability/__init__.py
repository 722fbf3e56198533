"""Experiment ``r1``, which says how sure it is and declines if it is not sure; ``r2`` to ``r6`` each change one thing.

Question
    Which answers of ``e3`` can be trusted? ``r1`` answers the same questions, rates what it found, checks what it
    said, and states a confidence. Below a threshold it declines.

Experiments
    ``r1``           all steps
    ``r1-original``  the four signals as the first design had them
    ``r2``           without the gate before generation
    ``r3``           without verification
    ``r4``           without decomposition of the question
    ``r5``           dense search only
    ``r6``           all steps, with the stricter thresholds

Pipelines
    ``assembly`` puts an experiment together; ``engine`` goes through the steps, a file each: ``understanding``,
    ``searching``, ``quality`` (how good is what was found), ``gate``, ``fallback`` (search again), ``asking_again``,
    ``contradicting``, ``verification``, ``confidence``, ``deciding``. Every step leaves its decisions in the row.

Prompts
    ``prompts/r1.*.md``, for all of them.

Thresholds
    ``settings.reliability_numbers`` has every number that a decision depends on, normal and strict; a suite may set
    others. ``scales`` has the constants of the signals, by reranker.

Calibration
    ``rag-harness reliability calibrate OUTPUT`` fits the confidence to gold and writes ``reliability/r1.json`` in the
    project; ``confidence`` reads it as data. A calibration that was made with other code, models or weights, or with
    another gate, is not used, and the row says so.

Verification asks a judge of the evaluation (``judges``, with the nouns of ``measures.judged``). That is the only
thing of the evaluation that this study knows. Results: ``docs/dev/results/reliability.md``.
"""
