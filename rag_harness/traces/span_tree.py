"""The spans of one trace as a tree, in the order in which they began."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rag_harness.traces.span_record import SpanRecord


class SpanTree:
    """Spans with what is around each.

    A span whose parent is not among them is at the top. Spans that come twice count once. Of spans that are each
    other's parents, which only a damaged file has, one is at the top.

    Args:
        spans: the spans of one trace, in any order.

    Attributes:
        spans: in the order in which they began.
        outermost_first: in an order in which each comes after the span around it, whatever their clocks say.
        parents: the span around each that is not at the top, by the id of the inner one.
    """

    def __init__(self, spans: Iterable[SpanRecord]) -> None:
        known = {span.span_id: span for span in spans}
        self.parents: dict[str, SpanRecord] = {}
        depths = self._walk(known)
        self.outermost_first: Sequence[SpanRecord] = [known[key] for key in depths]
        self.spans: Sequence[SpanRecord] = sorted(
            known.values(), key=lambda span: (span.start_ns, depths[span.span_id], span.span_id)
        )

    def _walk(self, known: Mapping[str, SpanRecord]) -> dict[str, int]:
        """Fill ``parents`` and return the depth of each span by its id, a parent before its children."""
        children: dict[str, list[SpanRecord]] = {}
        for span in known.values():
            children.setdefault(span.parent_id, []).append(span)
        depths: dict[str, int] = {}
        tops = [span for span in known.values() if span.parent_id not in known]
        # The second pass reaches spans that are each other's parents.
        for top in (*tops, *known.values()):
            level = [top] if top.span_id not in depths else []
            depths.setdefault(top.span_id, 0)
            while level:
                level = [child for span in level for child in self._entered(span, children, depths)]
        return depths

    def _entered(
        self, span: SpanRecord, children: Mapping[str, Sequence[SpanRecord]], depths: dict[str, int]
    ) -> Sequence[SpanRecord]:
        new = [child for child in children.get(span.span_id, ()) if child.span_id not in depths]
        for child in new:
            self.parents[child.span_id] = span
            depths[child.span_id] = depths[span.span_id] + 1
        return new

    def nearest(self, among: Collection[str]) -> dict[str, SpanRecord]:
        """Return the nearest span around each span whose id is among these, by the id of the inner one."""
        found: dict[str, SpanRecord] = {}
        for span in self.outermost_first:
            around = self.parents.get(span.span_id)
            if around is not None and around.span_id in among:
                found[span.span_id] = around
            elif around is not None and around.span_id in found:
                found[span.span_id] = found[around.span_id]
        return found


def own_ms(spans: Sequence[SpanRecord], tree: SpanTree) -> list[float]:
    """Return the milliseconds of each span without those of the spans inside of it, as far as these are listed, too.

    Of spans inside that ran at the same time, the time counts once.
    """
    around = tree.nearest({span.span_id for span in spans})
    inside: dict[str, list[SpanRecord]] = {}
    for span in spans:
        if span.span_id in around:
            inside.setdefault(around[span.span_id].span_id, []).append(span)
    return [max(span.ms - covered_ms(inside.get(span.span_id, ()), within=span), 0.0) for span in spans]


def covered_ms(spans: Iterable[SpanRecord], within: SpanRecord) -> float:
    """Return during how many milliseconds of ``within`` at least one of the spans ran."""
    covered, until = 0, within.start_ns
    for start, end in sorted((span.start_ns, span.end_ns) for span in spans):
        begin, stop = max(start, until), min(end, within.end_ns)
        covered += max(stop - begin, 0)
        until = max(until, stop)
    return covered / 1e6
