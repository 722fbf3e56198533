// One question at a time: read, accept, edit, reject; kept in this browser, downloaded as JSONL.
// Direction marks of strangers' texts stay within a <bdi>.
(async () => {
const AROUND = 600, SAVED = "rag-review ", $ = (id) => document.getElementById(id);

// Not `seen`: quotes are shown as the page has them.
const el = elements((text) => text);
const fill = (id, ...inside) => $(id).replaceChildren(...inside.flat(Infinity).filter(Boolean));
const said = (text) => el("bdi", String(text));
const dotted = (all) => all.filter((one) => one !== "" && one != null).flatMap((one, n) => [n ? " · " : "", said(one)]);
const path = (all) => all.flatMap((one, n) => [n ? " › " : "", said(one)]);

/** Tell whoever does not see the page; the same words twice are told twice. */
const tell = (text) => { $("said").textContent = text === $("said").textContent ? `${text}\u00a0` : text; };
function trouble(text) { $("trouble").textContent = text; $("trouble").hidden = !text; if (text) tell(text); }

async function unpacked(text) {
	if (!self.DecompressionStream) throw new Error("This browser cannot unpack the questions: update it, or open the page in another one.");
	const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

let data;
try {
	data = await unpacked($("data").textContent);
} catch (error) {
	trouble(`${error.message} If the page was cut short, make it again.`);
	document.documentElement.dataset.ready = "";
	return;
}
const { rows, notes, pages, reasons } = data;

// What is decided: by id, { state, why, changes, by }; kept at every decision.

const key = SAVED + data.digest;
let decided = Object.create(null), shown = [], at = 0, wide = false, editing = null;

function restore() {
	try {
		const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
		Object.assign(decided, kept.decided);
		$("by").value = kept.by ?? "";
	} catch { trouble("This browser keeps nothing for the page: download before you close it."); }
}
function keep() {
	try {
		localStorage.setItem(key, JSON.stringify({ by: $("by").value, decided }));
	} catch { trouble("This browser cannot keep your decisions: download before you close the page."); }
}

const metadata = (row) => row.metadata ?? {};
const first = (row) => notes[row.query_id].state;
const stateOf = (row) => decided[row.query_id]?.state ?? first(row);
const whoOf = (row) => decided[row.query_id] ? decided[row.query_id].by : metadata(row).reviewed_by;
const whyOf = (row) => decided[row.query_id] ? decided[row.query_id].why : metadata(row).rejected_because;
const now = (row) => ({ ...row, ...decided[row.query_id]?.changes });
const listed = (value) => value == null ? [] : typeof value === "string" ? [value] : value;
const current = () => shown.length ? rows[shown[at]] : null;

function decide(row, state, why = "") {
	const changes = decided[row.query_id]?.changes;
	if (state === "unreviewed" && !changes && first(row) === "unreviewed") delete decided[row.query_id];
	else decided[row.query_id] = { state, why, changes, by: $("by").value.trim() };
	keep();
}

// Turns stand on the turns before them; what is downloaded is held to that once more when it is taken.

const behind = (row) => rows.filter((one) => row.conversation && one.conversation === row.conversation && one.turn > row.turn);
const because = (row) => `it stands on turn ${row.turn}, which was rejected`;

// Where a quote stands, and why a question may not be accepted

/** The part of a page that holds a quote, and where; null where none that is known here does. */
function placed(name, quote) {
	for (const part of Object.hasOwn(pages, name) ? pages[name].parts : []) {
		const start = part.indexOf(quote);
		if (quote && start >= 0) return { part, start, end: start + quote.length };
	}
	return null;
}

function faults(row) {
	if (!decided[row.query_id]?.changes) return notes[row.query_id].faults;
	const { query_type: kind, query, ground_truth: answer, context_reference, evidence = [] } = now(row), found = [];
	const named = listed(context_reference);
	if (!query.trim()) found.push("It asks nothing.");
	for (const { filename, quote } of evidence)
		if (!Object.hasOwn(pages, filename)) found.push(...data.names.includes(filename) ? [] : [`“${filename}” is not a page of the documents.`]);
		else if (!placed(filename, quote) && pages[filename].whole) found.push(`A quote is not in ${filename} word for word. Copy the words of the page.`);
	found.push(...named.filter((name) => !data.names.includes(name)).map((name) => `“${name}” is not a page of the documents.`));
	if (kind === "unlabelled") found.push("Its kind is not said: direct, multi_hop or negative.");
	if (kind === "negative") return evidence.length || named.length ? [...found, "It is negative, and names evidence or pages that answer it. Remove them, or mend the kind."] : found;
	if (!answer?.trim()) found.push("It has no answer. Write one, or reject it.");
	if (kind === "multi_hop" && new Set(named).size < 2) found.push("It is multi_hop, and names one page. Name all it needs.");
	for (const { filename } of evidence) if (named.length && !named.includes(filename)) found.push(`It quotes ${filename}, which its pages do not name. Add it there.`);
	return found;
}
/** Quotes that cannot be looked for here, for the page holds a part of theirs alone. */
const unsure = (row) => (now(row).evidence ?? []).some(({ filename, quote }) => !placed(filename, quote) && !pages[filename]?.whole && data.names.includes(filename));

// Showing

const LABELS = ["turn_kind", "difficulty", "made_of", "kind", "hops", "linked", "overlap", "version_pair"];
const text = (kind, ...inside) => el(`div.text${kind}`, { dir: "auto", tabindex: "0", role: "group", "aria-label": "Text of the page" }, inside);

function context({ part, start, end }) {
	const from = wide ? 0 : Math.max(0, start - AROUND), to = wide ? part.length : end + AROUND;
	const before = from ? part.slice(part.indexOf("\n", from) + 1 || from, start) : part.slice(0, start);
	const last = to < part.length ? part.lastIndexOf("\n", to) : -1;
	return [start < from ? "" : before, el("mark", part.slice(start, end)), part.slice(end, last > end ? last : to)];
}

function evidenceOf(row, quote, number, all) {
	const note = notes[row.query_id], old = (row.evidence ?? []).findIndex((one) => one.filename === quote.filename && one.quote === quote.quote);
	const place = placed(quote.filename, quote.quote), replaced = old < 0 ? "" : note.replaced[old];
	return [
		el("h3", all.length > 1 ? `Evidence ${number + 1} of ${all.length}: ` : "Evidence: ", path([quote.filename, ...old < 0 ? [] : note.sections[old]])),
		replaced && el("p.box", "This page is superseded", replaced === "?" ? "." : [" by ", said(replaced), "."]),
		place ? text(".page", context(place)) : text(".lost", quote.quote),
		!place && old >= 0 && note.nearest[old] && [el("h3", "What that page says"), text(".near", note.nearest[old])],
	];
}

function nearOf(row, near) {
	const title = now(row).query_type === "negative" ? "Nearest passage: " : "Another page that may answer it: ";
	return [el("h3", title, path([near.filename, ...near.section]), ` · ${Math.round(near.share * 100)} % of its words`), text(".near", near.text)];
}

function beforeOf(row) {
	const { before = [], earlier = 0 } = notes[row.query_id];
	return before.length ? [
		el("h3", earlier ? `Said before, the last ${before.length} of ${before.length + earlier} turns` : "Said before"),
		el("ol.before", before.map(([asked, reply]) => el("li", el("p", { dir: "auto" }, asked), el("p.note", { dir: "auto" }, reply || "no reply")))),
	] : "";
}

function show() {
	const row = current(), done = editing !== null;
	$("acts").hidden = done || !row;
	if (!row) {
		fill("question", el("p", "No question is like that. Change the kind, the state or the words."));
		fill("evidence");
		return count();
	}
	const it = now(row), state = stateOf(row), found = faults(row), why = whyOf(row), who = whoOf(row);
	const labels = LABELS.filter((name) => metadata(row)[name] != null).map((name) => `${name.replace("_", " ")} ${metadata(row)[name]}`);
	if (!done) fill("question",
		el("div.line", el(`span.state.${state}`, state), el("span.note", `${at + 1} of ${shown.length} · `, said(row.query_id))),
		beforeOf(row),
		el("h2", { dir: "auto", id: "asked", tabindex: "-1" }, it.query),
		it.standalone && [el("h3", "Asked alone"), el("p.said", { dir: "auto" }, it.standalone)],
		el("h3", "Answer"), el("p.said", { dir: "auto" }, it.ground_truth || "none"),
		el("p.note", dotted([it.query_type, ...labels])),
		(why || who) && state !== "unreviewed" && el("p.note", why && [said(why), ", "], who && ["by ", said(who)]),
		decided[row.query_id]?.changes && el("p.note", "Edited here."),
		metadata(row).affected && el("p.box", "The documents have changed: ", said(metadata(row).affected)),
		found.length ? el("div.box.bad", { id: "faults" }, el("strong", "It cannot be accepted as it is."), found.map((one) => el("p", said(one)))) : "",
		!found.length && unsure(row) && el("p.box", "A quote is not in the text that this page holds. It is looked for in the documents when your download is taken."),
	);
	const quotes = it.evidence ?? [], { near } = notes[row.query_id];
	fill("evidence",
		quotes.map((quote, n) => evidenceOf(row, quote, n, quotes)),
		!quotes.length && !near.length && el("p.note", "It names no evidence."),
		near.map((one) => nearOf(row, one)),
	);
	for (const mark of $("evidence").querySelectorAll("mark")) {
		const box = mark.parentElement;
		box.scrollTop = Math.max(0, mark.offsetTop - box.offsetTop - 90);
	}
	$("accept").setAttribute("aria-disabled", String(found.length > 0));
	count();
}

function count() {
	const all = { unreviewed: 0, accepted: 0, rejected: 0 };
	for (const row of rows) all[stateOf(row)] += 1;
	$("progress").max = rows.length || 1;
	$("progress").value = rows.length - all.unreviewed;
	const touched = Object.keys(decided).length;
	$("counts").textContent = `${all.accepted} accepted, ${all.rejected} rejected, ${all.unreviewed} to go.${touched ? ` ${touched} decided here: download them, then take them with rag-harness queries review ${data.file} --take FILE` : ""}`;
}

function filter(id = current()?.query_id) {
	const kind = $("kind").value, state = $("state").value, words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
	shown = [...rows.keys()].filter((n) => {
		const row = now(rows[n]), all = `${row.query_id} ${row.query} ${row.ground_truth} ${listed(row.context_reference).join(" ")}`.toLowerCase();
		return (!kind || row.query_type === kind) && (!state || stateOf(rows[n]) === state) && words.every((word) => all.includes(word));
	});
	at = Math.max(0, shown.findIndex((n) => rows[n].query_id === id));
	show();
}

// What is done

function go(to) {
	if (to < 0 || to >= shown.length) return tell(to < 0 ? "This is the first one." : "This is the last one.");
	at = to;
	wide = false;
	show();
	scrollTo(0, 0);
	$("asked")?.focus({ preventScroll: true });
}
const unreviewed = (start) => shown.findIndex((n, place) => place >= start && stateOf(rows[n]) === "unreviewed");
function goOn(what) {
	const next = unreviewed(at + 1) < 0 ? unreviewed(0) : unreviewed(at + 1);
	if (next < 0) { show(); tell(`${what} All of these are reviewed.`); } else { go(next); tell(what); }
}

function named() {
	if ($("by").value.trim()) return true;
	trouble("Write your name first: it is kept with what you decide.");
	$("by").focus();
	return false;
}

function accept() {
	const row = current();
	if (faults(row).length) return tell(`Not accepted. ${faults(row).join(" ")}`);
	if (!named()) return;
	decide(row, "accepted");
	goOn("Accepted.");
}
function reject() {
	if (!named()) return;
	$("words").value = "";
	$("why").showModal();
}
function rejected(why) {
	if (!why.trim()) return;
	$("why").close();
	const row = current(), others = behind(row).filter((one) => stateOf(one) !== "rejected");
	decide(row, "rejected", why.trim());
	for (const one of others) decide(one, "rejected", because(row));
	goOn(others.length ? `Rejected, and ${others.length} later turns with it.` : "Rejected.");
}
function undo() {
	const row = current();
	for (const one of behind(row)) if (whyOf(one) === because(row)) decide(one, "unreviewed");
	delete decided[row.query_id];
	if (first(row) !== "unreviewed") decided[row.query_id] = { state: "unreviewed", why: "", by: $("by").value.trim() };
	keep();
	show();
	tell("Undone: it is as it was drafted, and unreviewed.");
}

// Editing

const area = (id, name, value, rows) => [el("label", { for: id }, name), el("textarea", { id, rows, dir: "auto" }, value)];

function kindOf(kind) {
	const all = new Set(["direct", "multi_hop", "negative", ...rows.map((row) => row.query_type ?? "direct"), kind]);
	return el("select", { id: "edit-kind" }, [...all].map((one) => el("option", { selected: one === kind ? "" : null }, one)));
}

function quoteFields({ filename, quote }) {
	const n = editing.quotes++, words = el("textarea", { id: `quote-${n}`, rows: 4, dir: "auto", "aria-label": "Quote, word for word" }, quote);
	const take = () => {
		const picked = String(getSelection()).replaceAll("\r\n", "\n").trim();
		if (picked && $("evidence").contains(getSelection().anchorNode)) words.value = picked;
		else tell("Select words in the text of a page first.");
	};
	const box = el("div.quote", el("div.line", el("label", { for: `file-${n}` }, "Page"), el("input", { id: `file-${n}`, type: "text", value: filename })), words,
		el("div.line", el("button.small", { type: "button", onmousedown: (event) => event.preventDefault(), onclick: take }, "Use the selected words"),
			el("button.small", { type: "button", onclick: () => box.remove() }, "Remove the quote")));
	return box;
}

function edit() {
	if (!named()) return;
	const row = current(), it = now(row);
	editing = { quotes: 0 };
	const more = el("button.small", { type: "button", onclick: () => more.before(quoteFields({ filename: listed(it.context_reference)[0] ?? "", quote: "" })) }, "Add a quote");
	const form = el("form", { id: "edit-form", onsubmit: (event) => { event.preventDefault(); edited(row, form); } },
		area("edit-query", "Question", it.query, 3), row.conversation && area("edit-alone", "The same in words that need nothing said before", it.standalone ?? "", 3), area("edit-answer", "Answer", it.ground_truth ?? "", 4),
		el("div.line", el("label", { for: "edit-kind" }, "Kind"), kindOf(it.query_type ?? "direct")),
		area("edit-pages", "Pages that answer it, one a line", listed(it.context_reference).join("\n"), 2),
		el("h3", "Evidence"), (it.evidence ?? []).map(quoteFields), more,
		el("div.line", el("button.main", { type: "submit" }, "Keep the edit"), el("button", { type: "button", onclick: () => leave() }, "Leave it as it was")));
	fill("question", el("h2", { id: "asked", tabindex: "-1" }, "Edit"), form);
	show();
	$("edit-query").focus();
}

function edited(row, form) {
	const lines = (id) => $(id).value.split("\n").map((one) => one.trim()).filter(Boolean);
	const evidence = [...form.querySelectorAll(".quote")].map((box) => ({ filename: box.querySelector("input").value.trim(), quote: box.querySelector("textarea").value.trim() })).filter(({ quote }) => quote);
	const alone = row.conversation ? { standalone: $("edit-alone").value.trim() } : {};
	const changes = { query_type: $("edit-kind").value, query: $("edit-query").value.trim(), ...alone, ground_truth: $("edit-answer").value.trim(), context_reference: lines("edit-pages"), evidence };
	const before = { query_type: row.query_type ?? "direct", query: row.query, ...row.conversation && { standalone: row.standalone ?? "" }, ground_truth: row.ground_truth ?? "", context_reference: listed(row.context_reference), evidence: (row.evidence ?? []).map(({ filename, quote }) => ({ filename, quote })) };
	if (JSON.stringify(changes) !== JSON.stringify(before)) decided[row.query_id] = { state: "unreviewed", why: "", changes, by: $("by").value.trim() };
	else delete decided[row.query_id]?.changes;
	if (changes.query !== before.query || changes.ground_truth !== before.ground_truth)
		for (const one of behind(row)) if (stateOf(one) === "accepted") decide(one, "unreviewed");
	keep();
	leave(faults(row).length ? `Kept. ${faults(row).join(" ")}` : "Kept as edited. Accept it when it is right.");
}
function leave(what = "Left as it was.") {
	editing = null;
	show();
	$("asked").focus();
	tell(what);
}

// Download

function lines() {
	return rows.map((row) => {
		const one = decided[row.query_id];
		if (!one) return JSON.stringify(row);
		const about = Object.fromEntries(Object.entries(metadata(row)).filter(([name]) => !["reviewed", "reviewed_by", "rejected_because"].includes(name)));
		const marks = { accepted: { reviewed: "yes", reviewed_by: one.by }, rejected: { reviewed: "rejected", reviewed_by: one.by, rejected_because: one.why }, unreviewed: { reviewed: "no" } }[one.state];
		return JSON.stringify({ ...row, ...one.changes, metadata: { ...about, ...marks, ...one.changes && { edited_by: one.by }, review_of: notes[row.query_id].digest } });
	});
}
function download() {
	const link = el("a", { href: URL.createObjectURL(new Blob(lines().map((line) => `${line}\n`), { type: "application/jsonl" })), download: data.file.replace(/(\.[^.]*)?$/, ".reviewed.jsonl") });
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
	tell("Downloaded.");
}

// Keys and buttons

const DO = { a: accept, e: edit, r: reject, u: undo, j: () => go(at + 1), k: () => go(at - 1), s: () => goOn(""), c: () => { wide = !wide; show(); } };
const BUTTONS = { accept, edit, reject, undo, back: DO.k, next: DO.j, download };
for (const [id, act] of Object.entries(BUTTONS)) $(id).onclick = act;
for (const id of ["kind", "state"]) $(id).onchange = () => filter();
$("search").oninput = () => filter();
$("by").onchange = () => { trouble(""); keep(); };
$("by").oninput = () => trouble("");
$("why-form").onsubmit = (event) => { event.preventDefault(); rejected($("words").value); };
$("why-close").onclick = () => $("why").close();
$("reasons").append(...reasons.map((why, n) => el("li", el("button", { type: "button", onclick: () => rejected(why) }, why, el("kbd", String(n + 1))))));
addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key) || event.target.closest("input, textarea, select")) return;
	if ($("why").open) {
		if (reasons[event.key - 1]) { event.preventDefault(); rejected(reasons[event.key - 1]); }
	} else if ($("keys").checked && !editing && current() && Object.hasOwn(DO, event.key)) {
		event.preventDefault();
		DO[event.key]();
	}
});

restore();
for (const kind of new Set(rows.map((row) => row.query_type ?? "direct"))) $("kind").append(el("option", kind));
$("app").hidden = false;
shown = [...rows.keys()];
at = Math.max(0, unreviewed(0));
filter(rows[shown[at]]?.query_id);
document.documentElement.dataset.ready = "";
})();
