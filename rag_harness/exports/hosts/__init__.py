"""What a job of CI says on its host, GitHub or GitLab: one comment that is kept up to date, and the commit's status.

``kept_comment`` has the rules, a file a host the addresses. It needs the standard library alone, so that a job with a
token that may write installs nothing (``comment/action.yml``). ``commands`` calls it. Begin reading with
``kept_comment.py``.
"""
