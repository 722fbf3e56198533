"""Cases that are alike: how their clusters are named, and how many there are, in words.

Two questions about one page tell less than two about different pages, and so do two turns of a conversation. They are
one cluster: a bound of a mean counts clusters, not cases.
"""

from __future__ import annotations

from collections.abc import Collection

CONVERSATION_OF, PAGE_OF, QUESTION_OF = "conversation ", "page ", "question "
"""How the name of a cluster begins: of turns, of questions about one page, of one question asked several times."""
STANDS_ALONE = "\0"
"""How the cluster of a case begins that has none: it is independent of all others."""
_PLACES = ((CONVERSATION_OF, "in", "conversation"), (PAGE_OF, "on", "page"))


def describe_clusters(clusters: Collection[str], key: str = "") -> str:
    """Say in how many conversations, pages or other clusters cases are: "on 9 pages"; empty where each is alone.

    Args:
        clusters: cluster of each case.
        key: label whose values are the clusters, where these are no conversations or pages.
    """
    distinct = set(clusters)
    if len(distinct) == len(clusters):
        return ""
    said, others = [], {each for each in distinct if not each.startswith((STANDS_ALONE, QUESTION_OF))}
    for begin, where, what in _PLACES:
        found = {each for each in others if each.startswith(begin)}
        said += [f"{where} {_counted(len(found), what)}"] if found else []
        others -= found
    said += [f"in {_counted(len(others), 'cluster')}{f' by {key}' if key else ''}"] if others else []
    alone = sum(each.startswith((STANDS_ALONE, QUESTION_OF)) for each in distinct)
    said += [f"{alone:,} alone" if said else f"of {_counted(alone, 'question')}"] if alone else []
    return " and ".join(said)


def describe_one_cluster(clusters: Collection[str], key: str = "") -> str:
    """Say that all cases are of one cluster, which bounds nothing, and what to do; empty where they are not."""
    if len(clusters) < 2 or len(set(clusters)) > 1:
        return ""
    return f"all are {describe_clusters(clusters, key)}, which bounds nothing: --rag-cluster=none counts each by itself"


def kind_of_cluster(clusters: Collection[str]) -> str:
    """Return what more cases would have to be of: conversations, pages or clusters."""
    found = {what for begin, _, what in _PLACES if any(each.startswith(begin) for each in clusters)}
    return f"{found.pop()}s" if len(found) == 1 else "clusters"


def describe_missed(units: int, what: str) -> str:
    """Say what a paired test of so many units assumes: that no large difference is too rare for them.

    Args:
        units: number of cases, or of clusters.
        what: what one of them is: "case", "page", "conversation", "cluster".
    """
    from rag_harness.stats.difference_bounds import rarest_seen

    share = f"1 {what} in {rarest_seen(units):,}"
    return f"if no large difference is rarer than {share}: {units:,} {what}s could miss it"


def unit_of(clusters: Collection[str] | None) -> str:
    """Return what a bound counts: a case, a page, a conversation or a cluster."""
    is_alone = clusters is None or len(set(clusters)) == len(clusters)
    return "case" if is_alone or clusters is None else kind_of_cluster(clusters).removesuffix("s")


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
