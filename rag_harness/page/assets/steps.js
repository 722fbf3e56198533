// Steps of an agent: what went in and came out, what a search brought that was new, and which gold it was the first to find.

/** Draws the steps of a trial in their order. */
function drawnSteps(n, { names }) {
	const found = new Set();
	const inText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
	const documentOf = (id) => (id.lastIndexOf("#") > 0 ? id.slice(0, id.lastIndexOf("#")) : id);
	return ({ kind, input, output, hits }, notes) => {
		const ids = (hits ?? []).map(([name]) => names[name]), isSearch = kind === "retrieve";
		const first = [...new Set(ids.filter((id) => goldOf(n, id)).map(documentOf))].filter((file) => isSearch && !found.has(file));
		for (const file of first) found.add(file);
		const brought = `${many(ids.length, "chunk")}${isSearch && ids.length ? `, ${hits.filter(([, isNew]) => isNew).length || "none"} new` : ""}`;
		const line = (id, at) => el("li", said(id), isSearch && !hits[at][1] && " · found before", goldOf(n, id));
		return el("div.told", input != null && long(inText(input)),
			first.length > 0 && el("p.gold", "★ finds ", first.map((file, at) => [at > 0 && ", ", said(file)])),
			ids.length ? fold(brought, () => el("ol", ids.map(line))) : isSearch && note(hits ? "found nothing" : "does not tell what it found"),
			output != null && fold("came back", () => long(inText(output))), notes);
	};
}
