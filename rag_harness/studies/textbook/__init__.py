"""A teaching assistant over a textbook: ``t1``, and the alternatives that its decision record names.

Question
    A student asks about a book, sometimes with a passage selected. The assistant answers with links to sections, says
    when it is unsure, and declines where the book has nothing. The decision record behind it made assumptions; each
    is a gate here.

Experiments
    ``t1``                        chunks by headings, cosine, the selected passage as a candidate and a boost for it,
                                  a calibrated floor
    ``t1-nopassage``              only the question finds candidates
    ``t1-both``                   the question and the selected text are searched together
    ``t1-adaptive``               3 to 8 sources in place of 5, as the scores say
    ``t1-boost0`` ``12`` ``15``   another boost: none, 1.2, 1.5
    ``t1-floor07``                the floor of the record, 0.7
    ``t2``                        fixed chunks
    ``t3``, ``t3-rrf``            cosine with BM25: weighted, by reciprocal ranks
    ``t4``                        long sliding chunks
    ``t5``                        summaries of sections are searched first

Pipelines
    ``assembly.Design`` is what an experiment sets, and ``assembly.textbook`` makes the experiment of it, so each file
    ``t*.py`` is a few lines. ``assistant`` is the pipeline. Its steps are ``selection``, ``passages``, ``ordering``
    (the boost), ``floors``, ``fusion``, ``expansion`` (summaries first), ``citations`` and ``replies``. A question in a
    conversation is rewritten by ``conversations.rewriting``.

Prompts
    ``prompts/t1.*.md`` for all of them, ``prompts/t5.summary.*.md`` for summaries that a model writes.

Thresholds and calibration
    ``assistant`` has the numbers of the record. ``floors`` has the calibrated floor of each embedding model;
    ``benchmarks/textbook_floor.py`` sets it on one half of the questions.

Data and gates
    The data is called ``textbook`` in ``pyproject.toml``, and its gates stand there too. Three of them are red with
    the embedded profile; ``docs/dev/results/textbook.md`` says why.
"""
