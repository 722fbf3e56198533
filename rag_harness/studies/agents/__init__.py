"""The study of agents: does it pay to look at what was found, and to search again?

Question
    A customer asks what stands on two pages or three. One search finds one of them. An agent plans its searches,
    searches, looks at what is still missing, and searches again; then it answers.

Experiments
    ``a1``       up to three searches
    ``a1-once``  the same agent, which may search once

Pipelines
    ``seeking`` is the agent: each search, each look and each call of a model is a step of its row. ``looking`` says
    what is missing, by rules. ``by_tools`` is the agent when a model of role ``rewrite`` is configured, which calls the
    tools ``search`` and ``look``. Retriever, reranker and prompts are those of ``e3``.

Thresholds
    ``looking`` has the numbers of the rules. They were set before an answer was seen.

Data and gates
    The data is called ``agents`` in ``pyproject.toml``: the pages of the retail study and
    ``data/kb/agent_queries.jsonl``, those of its questions that need more than one page. Its gates stand there, too.
"""
