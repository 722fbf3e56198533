"""The study of conversations: what a retriever should search for where a question leans on what was said before.

Question
    A customer asks on: "and for the bigger one?" The words alone name nothing that a page could be found by. Three
    experiments answer the same turns over the same help pages. They differ only in what they search for.

Experiments
    ``c1``           a question that stands alone, made of the turn and of what was said before it
    ``c1-lastturn``  the words of the turn alone
    ``c1-full``      all that was said so far

Pipelines
    ``conversing`` is the pipeline: it makes the question, then retrieves, reranks and answers as ``e3`` of the retail
    study does, and the model also gets what was said before. ``rewriting`` makes a question that stands alone, by a
    model of role ``rewrite`` or by the rules of ``retrieval.carried_words``; the teaching assistant of the textbook
    uses it, too.
    ``earlier_turns`` reads what was said before. ``joined_turns`` has the two ways without rewriting.

Prompts
    ``prompts/c1.*.md`` for all three.

Thresholds
    ``retrieval.carried_words`` has the numbers of the rules. They were chosen on the conversations with ``part`` =
    ``fit``.

Data and gates
    The data is called ``conversations`` in ``pyproject.toml``: the pages of the retail study and
    ``data/kb/conversations.jsonl``. Its gates stand there, too; ``docs/dev/results/conversations.md`` has the results.
"""
