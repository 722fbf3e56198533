"""Plans without a model: from a shipped domain, drawn with a seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rag_harness.authoring.kb.plan import Plan
from rag_harness.authoring.kb.planning.arranging import arranged
from rag_harness.authoring.kb.planning.dealing import deal
from rag_harness.authoring.kb.planning.drafting import drafted_page
from rag_harness.authoring.kb.planning.kinds import kinds_of
from rag_harness.authoring.kb.planning.templates import read_domain
from rag_harness.authoring.kb.planning.wanted import PlanRequest

EMBEDDED = "embedded"
LEAST = 10
"""The fewest pages of a plan. Fewer would not cover a domain's topics."""


def planned(wanted: PlanRequest) -> Plan:
    """Return a plan that passes the checks. The same seed gives the same plan.

    Raises:
        DataError: the wish cannot be planned, or the domain is not shipped; the message says what to do.
    """
    replace(wanted, least=LEAST).check()
    domain = read_domain(wanted.domain)
    dealt = deal(domain, wanted.pages - wanted.pairs, wanted.seed)
    chance = Random(f"{wanted.seed} {domain.name} plan")
    kinds = kinds_of(len(dealt), wanted.shares, chance)
    versions = set(chance.sample(range(len(dealt)), wanted.pairs))
    drafts = [
        drafted_page(each, kind, wanted.seed, number in versions)
        for number, (each, kind) in enumerate(zip(dealt, kinds, strict=True))
    ]
    return arranged(drafts, replace(wanted, domain=domain.name), domain.title, EMBEDDED)
