"""The retail study: what retrieval, reranking and reasoning each add to a shop's help desk.

Question
    A customer asks; 100 help pages have the answer, or do not. Four architectures answer the same 200 questions, and
    each differs from the one before it by one step.

Experiments
    ``e1``        the model alone, without documents
    ``e2``        vector search: the best ``top_k`` chunks go into the prompt
    ``e3``        vector search for ``candidates``, a reranker keeps the best ``top_k``
    ``e4``        as ``e3``, and the model reasons step by step before it answers
    ``e3-plain``  as ``e3``, over pages without the marks of Markdown
    ``e4-plan``   as ``e4``, with several searches of a question that asks several things
    ``e3-tuned``  as ``e3``, configured as ``rag-harness tune`` chose it of the space in ``tuning.toml``

Pipelines
    One file each. ``e3_filtered_rag.filtered`` makes ``e3``, ``e4`` and their variants. ``planning`` makes
    searches of a question, by a model of role ``rewrite`` or by the rules of ``subquestions``; the reliability engine
    uses both.

Prompts
    ``prompts/e1.system.md`` and so on. Files of the same names in the project's ``prompts/`` replace them.

Thresholds
    The study's numbers are options (``top_k``, ``candidates``, chunker, models), so that a user can change them. Its
    gates stand in ``pytest.ini`` under ``rag_gate``, set at what was measured less a margin.

Data and tests
    ``data/kb`` has pages, plan and questions, ``test_experiments`` a test an experiment, ``docs/dev/results/study.md``
    the results. Nothing is calibrated here.

A new experiment of the study is one more file; see ``docs/how-to/add-an-experiment.md``.
"""
