// Every trial: a list, one opened, two side by side; the fragment says which.
// Direction marks of strangers' texts are written out, and directions stay within a <bdi>.
const STEP = 100, LONG = 20_000, FOLDED = 1_500, MOST_WORDS = 2_000, MOST_VALUES = 200, SUPPORTED = 0.5;
const app = document.getElementById("app"), pick = (what) => app.querySelector(what);
const search = pick("#trials-q"), count = pick("[data-count]"), list = pick(".list"), panel = pick("[data-panel]"), headline = pick("#opened");
app.hidden = false;

const el = elements(seen);
const said = (text) => el("bdi", String(text));
const note = (...inside) => el("p.note", inside);
const dotted = (...all) => note(all.filter(Boolean).map((one, n) => [n && " · ", said(one)]));
const button = (text, onclick, about) => el("button", { type: "button", onclick }, about, text);
const facts = (all) => all && el("dl.facts", entries(all).map(([name, value]) => el("div", el("dt", said(name)),
	el("dd", long(typeof value === "string" ? value : JSON.stringify(value))))));

const named = (title) => ({ "data-part": title.toLowerCase().split(",")[0] });

const part = (title, ...inside) => inside.flat(Infinity).some(Boolean) && el("section.part", named(title), el("h4", title), inside);

/** Folded, and made only when it is asked for. */
function fold(title, make) {
	const box = el("details.part", named(title), el("summary", title));
	box.addEventListener("toggle", () => box.append(el("div", make())), { once: true });
	return box;
}

/** One that would choke the page is cut. */
function long(text, draw = Array.of, tag = "div") {
	const box = el(tag + ".text", { dir: "auto", tabindex: -1 });
	const drawn = (part) => draw(part).map((one) => typeof one === "string" ? seen(one) : one);
	const all = () => { box.replaceChildren(...drawn(text)); box.focus(); };
	if (text.length <= LONG) box.append(...drawn(text));
	else box.append(...drawn(text.slice(0, LONG)), "… ", button(`Show all ${whole(text.length)} characters`, all));
	return tag === "div" ? folded(box, text.length) : box;
}

/** A long text shows its beginning, unless what is marked in it would be hidden. */
function folded(box, length) {
	if (length <= FOLDED || box.querySelector("mark")) return box;
	const more = button("Show all", () => { box.classList.remove("folded"); more.remove(); box.focus(); }, { "data-unfold": "" });
	box.classList.add("folded");
	return el("div", box, more);
}
const plain = (text) => long(text, undefined, "pre");

function table(label, head, rows) {
	const cell = (one, n) => n ? el("td", typeof one === "number" ? String(one) : one ?? "–") : el("th", { scope: "row" }, one);
	return scrolling(label, el("table", el("thead", el("tr", head.map((name) => el("th", { scope: "col" }, name)))),
		el("tbody", rows.map((row) => el("tr", row.map(cell))))));
}
const scrolling = (label, inside) => el("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, inside);

// Data

const blocks = {};
const block = (name) => (blocks[name] ??= unpacked(document.getElementById("data-" + name), name));

async function unpacked(node, name) {
	if (!node) throw new Error(`The page has no block “${name}”: it was cut short. Make it again.`);
	const { textContent: text, dataset: { packed } } = node;
	if (packed !== "gzip") return JSON.parse(text);
	if (!self.DecompressionStream) throw new Error("This browser cannot unpack the trials: update it, or make the page with --plain.");
	const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const columns = new Map(), col = (name) => columns.get(name);
let index, trials, total, numbers, usual, addresses, badness;

const caseOf = (n) => index.cases[trials.case[n]];
const suiteOf = (n) => index.experiments[trials.experiment[n]];
const runOf = (n) => index.runs[suiteOf(n).run].name;
const kindOf = (n) => index.categories[trials.category[n]] ?? "";
const markOf = (kind) => kind && el("i.kind.kind-" + kind.toLowerCase().replaceAll(" ", "-"));
const causeOf = (n) => index.causes[trials.cause[n]] ?? "";
const statusOf = (n) => index.states[trials.state[n]];
const systemOf = (n) => (index.runs.length > 1 ? runOf(n) + "/" : "") + suiteOf(n).id;
const idOf = (n) => `${systemOf(n)}-${caseOf(n).id}`;

/** A column has words (``counts``: of how many trials) or numbers. */
function take(read) {
	index = read, trials = read.trials, total = trials.case.length;
	const words = { run: runOf, experiment: (n) => suiteOf(n).id, type: (n) => caseOf(n).type, category: kindOf, cause: causeOf, status: statusOf };
	const number = (name, better, values, digits = 3) => values.some((value) => value != null) && columns.set(name, { of: (n) => values[n], better, digits });
	for (const { labels } of index.cases) for (const name in labels) words[["conversation", "turn"].includes(name) ? name : "label." + name] ??= (n) => caseOf(n).labels[name] ?? "";
	for (const [name, of] of entries(words)) columns.set(name, { of, counts: counted(of) });
	for (const { name, better } of index.measures) number(name, better, trials.values[name]);
	number("ms", "lower", trials.ms, 1);
	number("cost", "lower", trials.cost, 5);
	number("confidence", "", trials.confidence);
	const hri = col("hri") ?? col("hri_gold"), shared = col("token_f1"); // an error is worst, then what has a cause, then by HRI, then by words
	badness = trials.case.map((_, n) => 9 * (statusOf(n) !== "ok") + 4 * !!causeOf(n) + (hri?.of(n) ?? -1 - (shared?.of(n) ?? 0)));
	numbers = [...columns.keys()].filter((name) => col(name).digits);
	const liked = ["conversation", "category", "cause", "hri", "faithfulness", "token_f1", "recall@5"].filter((name) => col(name) && col(name).counts?.size !== 1);
	usual = [...new Set([...liked, ...numbers])].slice(0, 6);
}

function counted(of) {
	const counts = new Map();
	for (const n of trials.case.keys()) counts.set(of(n), (counts.get(of(n)) ?? 0) + 1);
	return counts;
}

/** Without a run's name: of the first. */
function trialAt(address) {
	addresses ??= new Map(trials.case.map((_, n) => [idOf(n), n]));
	return addresses.get(address) ?? addresses.get(`${index.runs[0]?.name}/${address}`);
}

const peersOf = (n) => trials.case.flatMap((one, trial) => (one === trials.case[n] ? trial : []));

const texts = [];
const textOf = (n) => (texts[n] ??= [idOf(n), trials.answer[n], caseOf(n).query, caseOf(n).truth].join("\n").toLowerCase());
const warm = (n = 0) => n < total && self.requestIdleCallback?.((idle) => { while (n < total && idle.timeRemaining() > 1) textOf(n++); warm(n); });
const written = (name, value) => typeof value === "number" ? value.toFixed(col(name)?.digits ?? 3) : value || "–";

// The view and its fragment

const WORDS = ["q", "sort", "open", "with", "by"];
let view, found = [], from, shown; // rows from..shown of what was found stand in the list

/** What is unknown or damaged is left out. */
function viewOf(fragment) {
	const read = { filters: {}, cols: usual };
	for (const [name, value] of new URLSearchParams(fragment.startsWith("#trials?") ? fragment.slice(8) : "")) {
		const ends = value.split("..").map((end) => (end.trim() ? Number(end) : null));
		if (WORDS.includes(name)) read[name] = value;
		else if (name === "cols") read.cols = value.split(",").filter(col);
		else if (col(name)?.counts?.has(value)) (read.filters[name] ??= []).push(value);
		else if (col(name)?.digits && ends.length === 2 && !ends.some(Number.isNaN)) read.filters[name] = ends;
	}
	return read;
}

function fragmentOf(of) {
	const query = new URLSearchParams();
	for (const [name, wanted] of entries(of.filters))
		for (const value of col(name).counts ? wanted : [wanted.map((end) => end ?? "").join("..")]) query.append(name, value);
	if (of.cols.join() !== usual.join()) query.append("cols", of.cols);
	for (const name of WORDS) if (of[name]) query.append(name, of[name]);
	return ("#trials?" + query).replace(/\?$/, "").replaceAll("%2F", "/").replaceAll("%40", "@");
}
const link = (n, text = idOf(n)) => el("a", { href: linkTo(n) }, said(text));
const linkTo = (n, other) => fragmentOf({ ...view, open: idOf(n), with: other != null && idOf(other) });

/** Show another view; a quiet one is no step to go back to. */
function go(change, isQuiet) {
	const fragment = fragmentOf({ ...view, ...change });
	if (fragment === location.hash) return;
	history[isQuiet ? "replaceState" : "pushState"](null, "", fragment);
	render();
}

function filter(name, wanted, isQuiet) {
	const { [name]: _, ...rest } = view.filters;
	go({ filters: wanted.some((one) => one != null) ? { ...rest, [name]: wanted } : rest }, isQuiet);
}
const choose = (name, value, isOn) => filter(name, (view.filters[name] ?? []).filter((one) => one !== value).concat(isOn ? value : []));
const clear = () => { search.value = ""; go({ filters: {}, q: "" }); count.focus(); };

// What matches

function matching({ filters, q = "", sort = "" }) {
	const tests = entries(filters).map(([name, wanted]) => {
		const { of, counts } = col(name), least = wanted[0] ?? -Infinity, most = wanted[1] ?? Infinity;
		return counts ? (n) => wanted.includes(of(n)) : (n) => of(n) != null && of(n) >= least && of(n) <= most;
	});
	const words = q.toLowerCase().split(/\s+/).filter(Boolean);
	tests.push((n) => words.every((word) => textOf(n).includes(word)));
	return sorted([...trials.case.keys()].filter((n) => tests.every((test) => test(n))), sort);
}

const inWords = new Intl.Collator("en", { numeric: true }).compare; // turn 2 before turn 10
function sorted(kept, sort) {
	const of = col(sort.replace(/^-/, ""))?.of, way = sort.startsWith("-") ? -1 : 1;
	if (!of) return sort === "trial" ? kept : sort === "-trial" ? kept.reverse() : kept.sort((a, b) => badness[b] - badness[a]);
	const isNone = (value) => value == null || value === ""; // stands last
	return kept.sort((a, b) => {
		const one = of(a), other = of(b);
		return isNone(one) - isNone(other) || way * (typeof one === "string" ? inWords(one, other) : one - other);
	});
}

// The bar above the list

const bareOf = (name) => name.replace(/^label\./, "");
const titleOf = (name) => bareOf(name).replace(/^./, (first) => first.toUpperCase());

function makeBar() {
	search.oninput = later(() => go({ q: search.value.trim() }, true));
	const names = [...columns.keys()], menus = [], labels = [];
	for (const [name, { counts }] of columns) {
		if (!(counts?.size > 1 && counts.size <= MOST_VALUES)) continue;
		const facet = choices(name, [...counts], (value, isOn) => choose(name, value, isOn)), bare = bareOf(name);
		bare === name ? menus.push(menu(name, facet)) : labels.push(el("p", bare), facet);
	}
	const cols = choices("cols", names.map((name) => [name]), (name, isOn) => go({ cols: names.filter((one) => (one === name ? isOn : view.cols.includes(one))) }));
	pick(".picks").prepend(...menus, labels.length ? menu("labels", labels) : "", menu("columns", cols));
	makeRange(...["range", "from", "to"].map((name) => pick(`[data-field=${name}]`)));
}

function later(act) {
	let timer;
	return () => { clearTimeout(timer); timer = setTimeout(act, 120); };
}

const menu = (name, inside) => el("details.pick", { name: "pick", "data-facet": name }, el("summary", titleOf(name)), el("div.menu", inside));

function choices(name, values, act) {
	const line = ([value, trials]) => el("label", el("input", { type: "checkbox", name, value, onchange: ({ target }) => act(value, target.checked) }),
		said(value || "(none)"), trials && el("span.many", whole(trials)));
	return el("div", { role: "group", "aria-label": name }, values.map(line));
}

function makeRange(which, ...ends) {
	const box = which.closest("details");
	which.append(...numbers.map((name) => el("option", name)));
	box.hidden = !numbers.length;
	which.onchange = box.ontoggle = () => ends.forEach((end, n) => { end.value = view.filters[which.value]?.[n] ?? ""; });
	box.oninput = later(() => filter(which.value, ends.map(({ value }) => (value ? Number(value) : null)), true));
}

function renderBar() {
	if (document.activeElement !== search) search.value = view.q ?? "";
	for (const box of app.querySelectorAll(".menu [type=checkbox]"))
		box.checked = (box.name === "cols" ? view.cols : view.filters[box.name] ?? []).includes(box.value);
	const chip = (text, act) => button([said(text), " ×"], () => { act(); count.focus(); }, { "aria-label": `Remove the filter ${text}` });
	const on = entries(view.filters).flatMap(([name, wanted]) => col(name).digits ? chip(`${name}: ${wanted[0] ?? "–"} to ${wanted[1] ?? "–"}`, () => filter(name, []))
		: wanted.map((value) => chip(`${titleOf(name)}: ${value || "(none)"}`, () => choose(name, value))));
	pick(".chips").replaceChildren(...on, on.length ? button("Clear filters", clear) : "");
}

// The list

function renderList() {
	const isLost = view.open && trialAt(view.open) == null, rest = Math.min(STEP, found.length - shown);
	count.replaceChildren(el("span", found.length < total && `${whole(found.length)} of `, many(total, "trial"), !view.sort && total > 1 && ", the worst first", isLost && [". No trial is called ", said(view.open), "."]));
	list.replaceChildren(found.length ? scrolling("List of trials", el("table", el("thead", el("tr", ["trial", ...view.cols].map(headOf))),
		el("tbody", { onclick: clicked }, found.slice(from, shown).map(rowOf)))) : nothing());
	if (from) list.prepend(button(`Show ${STEP} before`, () => focusRow(from - 1)));
	if (rest > 0) list.append(button(`Show ${rest} more`, () => focusRow(shown)));
	rowAt(view.open)?.setAttribute("aria-current", "true");
}

const nothing = () => el("p.none", total ? ["No trial matches. ", button("Clear filters", clear)]
	: "The output holds no trial: none was selected, or none was kept.");

function headOf(name) {
	const { better, digits } = col(name) ?? {}, isDown = view.sort === "-" + name, isOn = isDown || view.sort === name;
	const sort = (isOn ? !isDown : better === "lower") ? "-" + name : name;
	const act = () => { go({ sort }); pick(`[data-sort="${CSS.escape(name)}"]`).focus(); };
	return el(digits ? "th.num" : "th", { scope: "col", "aria-sort": isOn ? (isDown ? "descending" : "ascending") : null },
		button([bareOf(name), isOn && (isDown ? " ↓" : " ↑")], act, { "data-sort": name }));
}

function rowOf(n) {
	const cell = (name) => el(col(name).digits ? "td.num" : "td", name === "category" && markOf(kindOf(n)), said(written(name, col(name).of(n))));
	return el("tr", { "data-trial": idOf(n) }, el("th", { scope: "row" }, link(n),
		el("span.asked", { dir: "auto" }, caseOf(n).query.slice(0, 200))), view.cols.map(cell));
}

function clicked({ target }) {
	if (!target.closest("a") && !String(getSelection())) target.closest("tr").querySelector("a").click();
}

const rowAt = (address) => list.querySelector(`tr[data-trial="${CSS.escape(address ?? "")}"]`);

function focusRow(place) {
	const [first, last] = [from, shown];
	if (place >= shown) shown += STEP;
	else if (place < from && place >= 0) from -= STEP;
	if (from !== first || shown !== last) renderList();
	list.querySelectorAll("tbody a")[place - from]?.focus();
}

// One trial

let turn = 0;
async function renderPanel(isMoved) {
	const mine = ++turn, n = trialAt(view.open), m = trialAt(view.with), other = m === n ? undefined : m;
	panel.hidden = n == null;
	app.classList.toggle("is-open", n != null);
	if (n == null) return;
	const inside = await bodyOf(n, other).catch((error) => note(`The trial cannot be shown: ${error.message}`));
	if (mine !== turn) return;
	headline.replaceChildren(el("span", said(idOf(n)), other != null && [" and ", said(idOf(other))]));
	pick("[data-body]").replaceChildren(el("div", tagsOf(n, other), inside));
	pick("[data-copy]").textContent = "Copy link";
	if (isMoved) reveal(headline);
}

function reveal(head) {
	rowAt(view.open)?.scrollIntoView({ block: "nearest" });
	head?.focus({ preventScroll: true });
	head?.scrollIntoView();
}

const detailsOf = async (n) => (await block(`trials-${Math.floor(n / index.block)}`))[n % index.block];

async function bodyOf(n, other) {
	const about = await detailsOf(n), kept = await block("texts");
	const isTurn = conversationOf(n);
	if (other != null) {
		const both = [[n, about], [other, await detailsOf(other)]], isOlder = suiteOf(other).run > suiteOf(n).run;
		const [[a, mine], [b, theirs]] = isOlder ? both.reverse() : both; // what was before stands on the left
		return [isTurn && parted(a, b, mine, theirs, kept), question(n, about.inputs), truth(n, about), sideBySide([a, mine], [b, theirs], kept)];
	}
	const asked = question(n, about.inputs, searchedFor(n, about));
	if (!keys(about).length) return [asked, truth(n, about), note(`No row of this trial was kept: it is ${statusOf(n)}.`)];
	return [cause(n, about), isTurn ? conversation(n, about, kept, asked) : [asked, truth(n, about), answer(n, about)], isTurn && truth(n, about), expectations(about), scores(n, about, kept), chunks(n, about, kept), candidates(n, about, kept), stages(n, about, kept), decisions(about),
		about.thought && fold("What the model thought", () => long(about.thought)),
		about.steps && fold(`Reasoning, ${many(about.steps.length, "step")}`, () => el("ol", about.steps.map((step) => el("li", long(step))))),
		about.prompts?.map((sent) => fold("Prompt as sent", () => prompt(sent, kept))),
		about.raw && fold("Raw output", () => plain(about.raw))];
}

const question = (n, inputs, searched) => part("Question", long(caseOf(n).query), searched, facts(inputs));

function tagsOf(n, other) {
	const { type, labels, answerable } = caseOf(n), peers = peersOf(n);
	const status = statusOf(n), kind = kindOf(n); // that an answer came says nothing of it; a category never stands beside a cause
	const tags = [status !== "ok" && status, type, ...entries(labels).map((label) => label.join(": ")), !answerable && "not answerable", kind && !causeOf(n) && "category: " + kind, trials.abstained[n] && "abstained"];
	const peer = (one) => one !== n && el("span", link(one, systemOf(one)), " ",
		el("a.beside", { href: linkTo(n, one), "aria-label": `${idOf(one)} beside it`, "aria-current": one === other || null }, "beside"));
	return [el("ul.tags", tags.filter(Boolean).map((tag) => el("li", said(tag)))), peers.length > 1 && el("div.peers", "Same question: ", peers.map(peer))];
}

async function copyLink({ target }) {
	const field = pick(".acts input");
	field.value = location.href;
	try {
		await navigator.clipboard.writeText(field.value);
		target.textContent = "Copied";
	} catch {
		field.hidden = false;
		field.select();
	}
}

// Claims, quotes, citations

/** Offsets count code points, our strings UTF-16 units. */
function unitsOf(text) {
	if (!/[\ud800-\udfff]/.test(text)) return (offset) => offset;
	const at = [0];
	for (const sign of text) at.push(at.at(-1) + sign.length);
	return (offset) => at[offset] ?? text.length;
}

/** Draws a text, ranges of it [start, end, wrap] wrapped; of two that overlap, the first. */
function wrapped(text, ranges, draw = Array.of) {
	const at = unitsOf(text), places = ranges.map(([start, end, wrap]) => [at(start), at(end), wrap]).sort((a, b) => a[0] - b[0]);
	return (visible) => {
		const nodes = [];
		let done = 0;
		for (const [start, end, wrap] of places) {
			if (start < done || start >= Math.min(end, visible.length)) continue;
			nodes.push(...draw(visible.slice(done, start)), wrap(draw(visible.slice(start, end))));
			done = end;
		}
		return [...nodes, ...draw(visible.slice(done))];
	};
}

const verdictOf = (value) => (value == null ? ["unsure", "?", "no verdict"] : value >= SUPPORTED ? ["good", "✓", "supported"] : ["bad", "✗", "not supported"]);
const sign = ([tone, mark, text]) => el("span.sign." + tone, mark, el("span.unseen", ` (${text})`));

/** Whose claims, and what may support them. */
const claimedBy = (name) => index.measures.find((measure) => measure.name === name)?.claims ?? ["answer", "contexts"];
const byOf = ({ claims = {} }) => [view.by, "faithfulness", ...keys(claims)].find((name) => Object.hasOwn(claims, name));

function claimsOf(about, whose) {
	const by = byOf(about), all = by && claimedBy(by)[0] === whose ? about.claims[by] : [];
	const wrap = (verdict, sources) => (inside) => el("span.claim." + verdict[0], { "data-claim": verdict[2], ...(sources?.length && telling(sources)) }, inside, sign(verdict));
	return all.filter((claim) => claim[1] >= 0).map(([value, start, end, , , , , sources]) => [start, end, wrap(verdictOf(value), sources)]);
}

const supportOf = (value) => ({ null: "no verdict", 1: "full support", 0.5: "partial support", 0: "no support" }[value] ?? "support " + written("", value));
const resting = (sources, name = (n) => `Source ${n}`) => el("ul.sources", sources.map(([n, value, isCited, quote, why]) =>
	el("li", isCited ? "Cites " : "Not cited: ", name(n), ": " + supportOf(value), quote && [", “", said(quote), "”"], why && dotted(why))));

/** The sources of a claim and their words, while the mouse or the focus is on it. */
function telling(sources) {
	const tip = () => document.getElementById("tip");
	const hide = ({ relatedTarget }) => { tip().hidden = !tip().contains(relatedTarget); };
	const tell = ({ currentTarget }) => {
		const box = tip(), rows = currentTarget.getClientRects(), around = box.parentElement.getBoundingClientRect();
		box.replaceChildren(resting(sources));
		box.hidden = false;
		box.style.top = rows[rows.length - 1].bottom - around.top + "px";
		box.style.left = Math.max(0, Math.min(rows[0].left - around.left, around.width - box.offsetWidth)) + "px";
	};
	return { tabindex: 0, role: "group", "aria-describedby": "tip", onmouseenter: tell, onfocus: tell, onmouseleave: hide, onblur: hide };
}

const sourceLink = (place, text = `Source ${place}`) => button(text, () => reveal(panel.querySelector(`[data-chunk="${place}"]`)), { class: "link", "aria-label": `Source ${place}` });

/** Each number in [Source n] is a link to its chunk, if there is one. */
function cited({ context = [] }) {
	const one = (piece, n) => (n % 2 === 0 ? piece : context[piece - 1] ? sourceLink(Number(piece), piece)
		: el("span.invalid", piece, " ⚠", el("span.unseen", " (no such source)")));
	return (text) => text.split(/(\[\s*sources?\b[^\]]*\])/i).flatMap((piece, n) => (n % 2 ? piece.split(/(\d+)/).map(one) : piece));
}

function truth(n, about) {
	const { truth: text, evidence, answerable } = caseOf(n);
	return part("Ground truth", text ? long(text, wrapped(text, claimsOf(about, "ground_truth"))) : note(answerable ? "None is given." : "The documents do not answer this."),
		evidence.length && fold(`Evidence, ${many(evidence.length, "quote")}`, () => el("ul", evidence.map(([file, quote]) => el("li", long(quote), dotted(file))))));
}

function answer(n, about) {
	const text = trials.answer[n], by = byOf(about), { claims = {}, invalid, error } = about;
	return part("Answer", error && el("p.prose.bad", `${error[1]} in ${error[0]}: `, said(error[2])), trials.abstained[n] && note("It abstained."),
		text ? long(text, wrapped(text, claimsOf(about, "answer"), cited(about))) : !error && note("It is empty."), invalid && note(`Cited, but not in the prompt: ${invalid.join(", ")}.`),
		by && el("div.switch", "Claims by", keys(claims).map((name) => button(name, () => go({ by: name }), { "aria-pressed": String(name === by) }))),
		by && el("ol.claims", claims[by].map((claim) => claimLine(n, by, claim))),
		by && el("div.tip", { id: "tip", role: "tooltip", hidden: "", onmouseleave: ({ currentTarget }) => { currentTarget.hidden = true; } }));
}

function claimLine(n, by, [value, start, end, passage, own, why, cites, sources]) {
	const { truth, gold } = caseOf(n), [whose, source] = claimedBy(by), text = whose === "ground_truth" ? truth : trials.answer[n], at = unitsOf(text);
	const rests = passage != null && { contexts: sourceLink(passage + 1), gold_pages: said(gold[passage]) }[source];
	return el("li", sign(verdictOf(value)), " ", el("b", written("", value)), " ", said((own || (start < 0 ? "" : text.slice(at(start), at(end)))).slice(0, LONG)), rests && [" ← ", rests], why && dotted(why), sources?.length ? resting(sources, sourceLink) : cites && dotted("cites " + cites.join(", ")));
}

// The rest of a trial

function cause(n, { cause: why }) {
	const tried = ([name, text, isRight, reason]) => [said(name), [{ null: "not known", true: "correct", false: "not correct" }[isRight], reason && dotted(reason)], long(text)];
	const texts = why && [why.evidence, why.remedy && "→ " + why.remedy, why.limits];
	return why && part("Why it failed", el("strong", said(why.cause)), dotted(why.detail, why.observational && "observed, not tried", why.repaired_by && "repaired by " + why.repaired_by, why.reviewed && "reviewed: " + why.reviewed),
		texts.map((text) => text && el("p", said(text))), why.tried && fold(`What was tried, ${why.tried.length}`, () => table("What was tried", ["changed", "came to", "answer"], why.tried.map(tried))));
}

function scores(n, { gaps = {} }, { names }) {
	const rows = index.measures.map(({ name }) => [name, trials.values[name][n], names[gaps[name]]]).filter(([, value, gap]) => value != null || gap);
	return part("Scores", rows.length ? el("dl.scores", rows.map(([name, value, gap]) =>
		el("div", { "data-measure": name }, el("dt", name), el("dd", written(name, value), gap && dotted(gap))))) : note("Nothing was measured."));
}

function goldOf(n, chunk) {
	const { gold } = caseOf(n), end = chunk.lastIndexOf("#");
	return gold.includes(end > 0 ? chunk.slice(0, end) : chunk) && el("span.gold", " ★ gold");
}

function chunks(n, { context = [] }, kept) {
	const one = ([number, signals, quotes], at) => {
		const [id, text, file, section, version, date] = kept.chunks[number];
		return el("article.chunk", el("h5", { tabindex: -1, "data-chunk": at + 1 }, `Source ${at + 1} `, said(file || id), goldOf(n, id)), dotted(section, version && `version ${version}`, date, ...entries(signals).map((signal) => signal.join(" "))),
			isRaw || text.length > LONG ? long(text, wrapped(text, quotes.map(([, start, end]) => [start, end, (inside) => el("mark", inside)])))
				: folded(el("div.text.rendered", { dir: "auto", tabindex: -1 }, markdown(text, marking(text, quotes))), text.length));
	};
	return part(`In the prompt, ${many(context.length, "chunk")}`, context.length && asWritten(), context.map(one));
}

function candidates(n, { candidates: all, context = [] }, { chunks, names }) {
	if (!all) return null;
	const used = context.map(([number]) => chunks[number][0]), signals = keys(all.scores), ids = all.ids.map((id) => names[id]);
	const row = (id, at) => [at + 1, said(id), ...signals.map((name) => all.scores[name][at]), used.includes(id) && sourceLink(used.indexOf(id) + 1), goldOf(n, id)];
	return fold(`Candidates, ${ids.length}, ${ids.filter((id) => goldOf(n, id)).length || "none"} of them gold`,
		() => table("Candidates", ["rank", "chunk", ...signals, "in the prompt", "gold"], ids.map(row)));
}

const inMs = (value) => `${written("ms", value)} ms`;
const tokens = (sent, got) => `${whole(sent)} → ${whole(got)} tokens`;

function stages(n, { stages: all = [], usage }, kept) {
	const sum = all.reduce((ms, stage) => ms + stage[1], 0) || 1;
	let done = 0;
	const drawn = drawnSteps(n, kept), isTold = all.some(([, , , , told]) => told);
	const line = ([name, ms, calls = [], detail, told]) => {
		const bar = el("span.bar");
		bar.style.marginLeft = `${(100 * done) / sum}%`;
		bar.style.width = `${(100 * ms) / sum}%`;
		done += ms;
		return el("li", said(name), el("span.num", inMs(ms)), el("span.track", bar), calls.map(call), told ? drawn(told, facts(detail)) : facts(detail));
	};
	const call = ([role, model, ms, first, sent, got, isRecorded, retries]) => dotted(role, model, inMs(ms), first != null && "first token " + inMs(first),
		tokens(sent, got), isRecorded && "recorded", retries && `retried ${retries}×`);
	return part(isTold ? "Steps" : "Stages", all.length && el("ol.stages", all.map(line)), usage && dotted(many(usage[2], "call"), tokens(...usage)));
}

const expectations = ({ expected: all }) => all && part("Expectations", table("Expectations", ["what is demanded", "kept", "what is there"],
	all.map(([demand, kept, found]) => [said(demand), said(kept === null ? "not checked" : kept ? "yes" : "NO"), found && said(found)])));

const decisions = ({ decisions: all }) => all && part("Decisions", table("Decisions", ["decision", "outcome", "value", "threshold", "reason"],
	all.map(([name, outcome, value, threshold, why]) => [said(name), said(outcome), value, threshold, why && said(why)])));

const prompt = (messages, { chunks, strings }) => messages.map(([role, ...pieces]) => [el("h5", said(role)),
	plain(pieces.map((piece) => (piece < 0 ? chunks[-piece - 1][1].trim() : strings[piece])).join(""))]);

// Markdown, as nodes: no text of it is read as HTML, and nothing of it is a link

const INLINE = /(\*\*|__)(?=\S)(.+?)\1|\x60([^\x60]+)\x60|!?\[([^\]]*)\]\([^)]*\)/g;

/** Draws a text with headings, lists, tables, code, bold; ``draw`` draws the part from one place to another. */
function markdown(text, draw) {
	const at = [], blocks = [];
	for (let start = 0; start <= text.length; start = at.at(-1)[1] + 1) at.push([start, (text.indexOf("\n", start) + 1 || text.length + 1) - 1]);
	const inline = (start, end) => {
		const nodes = [];
		let done = start;
		for (const found of text.slice(start, end).matchAll(INLINE)) {
			const inside = found[2] ?? found[3] ?? found[4], from = start + found.index + found[0].indexOf(inside, found[2] ? 2 : 1);
			nodes.push(...draw(done, start + found.index), el(found[2] ? "b" : found[3] ? "code" : "span", draw(from, from + inside.length)));
			done = start + found.index + found[0].length;
		}
		return [...nodes, ...draw(done, end)];
	};
	const cells = ([start, end], tag) => {
		const row = [...text.slice(start, end).matchAll(/[^|]+/g)].filter((one, n, all) => one[0].trim() || (n && n < all.length - 1));
		return el("tr", row.map((one) => el(tag, inline(start + one.index, start + one.index + one[0].length))));
	};
	const isFence = (n) => text.startsWith("\x60\x60\x60", at[n][0]);
	const isTable = (line) => line && /^\s*\|.*\|\s*$/.test(text.slice(...line));
	for (let n = 0; n < at.length; n++) {
		const [start, end] = at[n], line = text.slice(start, end), last = blocks.at(-1);
		const [head] = line.match(/^#{1,6}\s+/) ?? [], [item] = line.match(/^\s*([-*+]|\d+[.)])\s+/) ?? [];
		if (isFence(n)) {
			let close = n + 1;
			while (close < at.length && !isFence(close)) close++;
			if (close > n + 1) blocks.push(el("pre", draw(at[n + 1][0], at[close - 1][1])));
			n = close;
		} else if (isTable(at[n]) && isTable(at[n + 1]) && /^[\s|:-]+$/.test(text.slice(...at[n + 1]))) {
			const rows = [cells(at[n++], "th")];
			while (isTable(at[n + 1])) rows.push(cells(at[++n], "td"));
			blocks.push(scrolling("Table of the document", el("table", el("tbody", rows))));
		} else if (head) blocks.push(el("p.heading", inline(start + head.length, end)));
		else if (item) (last?.tagName === "UL" ? last : blocks[blocks.push(el("ul")) - 1]).append(el("li", /\d/.test(item) && item.trim() + " ", inline(start + item.length, end)));
		else if (!line.trim()) blocks.push("");
		else if (last?.className === "para") last.append("\n", ...inline(start, end));
		else blocks.push(el("p.para", inline(start, end)));
	}
	return blocks.filter(Boolean);
}

/** Draws a part of a text, its quotes marked. */
function marking(text, quotes) {
	const at = unitsOf(text), marks = quotes.map(([, start, end]) => [at(start), at(end)]);
	return (start, end) => {
		const inside = marks.map(([a, b]) => [Math.max(a, start), Math.min(b, end)]).filter(([a, b]) => a < b);
		return pieces(text, start, end, inside);
	};
}

function pieces(text, start, end, marks) {
	const nodes = [];
	let done = start;
	for (const [a, b] of marks.sort((one, other) => one[0] - other[0])) {
		if (b <= done) continue;
		nodes.push(seen(text.slice(done, Math.max(a, done))), el("mark", text.slice(Math.max(a, done), b)));
		done = b;
	}
	return [...nodes, seen(text.slice(done, end))];
}

let isRaw = false;
function asWritten() {
	const act = () => { isRaw = !isRaw; renderPanel().then(() => pick("[data-raw]")?.focus()); };
	return el("div.switch", button("As written", act, { "data-raw": "", "aria-pressed": String(isRaw) }));
}

// Two side by side

/** Which words stand in both: a longest common sequence. */
function common(a, b) {
	const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1)), same = [[], []];
	for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
		best[i][j] = a[i].trim() === b[j].trim() ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
	for (let i = 0, j = 0; i < a.length && j < b.length;)
		if (a[i].trim() === b[j].trim()) same[0][i++] = same[1][j++] = true;
		else if (best[i + 1][j] >= best[i][j + 1]) i++;
		else j++;
	return same;
}

function sideBySide([n, mine], [m, theirs], kept) {
	const words = [n, m].map((one) => trials.answer[one].match(/\s*\S+\s*/g) ?? []), isLong = words.some(({ length }) => length > MOST_WORDS);
	const same = isLong ? [] : common(...words);
	const draw = (at) => () => words[at].map((word, place) => (same[at][place] ? word : el(at ? "ins" : "del", word)));
	const column = (one, at, about) => el("div", { "data-column": idOf(one) }, el("h4", link(one)), dotted(statusOf(one), causeOf(one) || kindOf(one)), searchedFor(one, about),
		trials.answer[one] ? long(trials.answer[one], isLong ? undefined : draw(at)) : note("No answer."), about.error && dotted(about.error[2]));
	return [el("div.columns", column(n, 0, mine), column(m, 1, theirs)), isLong && note(`No difference is shown: an answer has over ${whole(MOST_WORDS)} words.`),
		part("Scores", table("Scores and their difference", ["measure", systemOf(n), systemOf(m), "difference"], scoreRows(n, m))),
		part("Chunks in the prompt", exchanged(n, mine, theirs, kept))];
}

function scoreRows(n, m) {
	return numbers.filter((name) => col(name).of(n) != null || col(name).of(m) != null).map((name) => {
		const { of, better, digits } = col(name), [one, other] = [of(n), of(m)];
		const isBetter = better === "lower" ? other < one : other > one, tone = better && (isBetter ? "good" : "bad");
		const step = one == null || other == null ? NaN : +(other - one).toFixed(digits);
		const text = step ? `${step > 0 ? "+" : "−"}${written(name, Math.abs(step))}${{ good: " better", bad: " worse" }[tone] ?? ""}` : step === 0 ? "same" : "–";
		return [name, written(name, one), written(name, other), el("span." + ((step && tone) || "mute"), text)];
	});
}

const chunkLine = (n, [id, , , section]) => el("li", said(id), " ", el("span.mute", said(section)), goldOf(n, id));

function exchanged(n, mine, theirs, { chunks }) {
	const [a, b] = [mine, theirs].map(({ context = [] }) => context.map(([number]) => number));
	return [["Lost", a.filter((one) => !b.includes(one))], ["Gained", b.filter((one) => !a.includes(one))]]
		.map(([name, all]) => all.length && el("div", el("h5", `${name}, ${all.length}`), el("ul", all.map((number) => chunkLine(n, chunks[number])))));
}

// Keys

const focused = () => trialAt(document.activeElement.closest("tr[data-trial]")?.dataset.trial) ?? trialAt(view.open);

function step(by) {
	const next = found.indexOf(focused()) + by;
	if (panel.hidden || list.contains(document.activeElement)) focusRow(next);
	else if (next in found) go({ open: idOf(found[next]), with: "" });
}

function close() {
	const opened = view.open;
	if (view.with) return go({ with: "" });
	go({ open: "" });
	(rowAt(opened)?.querySelector("a") ?? list.querySelector("[tabindex]"))?.focus();
}

function beside() {
	const n = focused(), all = n == null ? [] : peersOf(n), at = all.indexOf(trialAt(view.with) ?? n);
	const next = [...all.slice(at + 1), ...all.slice(0, at)].find((one) => one !== n);
	if (next != null) go({ open: idOf(n), with: idOf(next) });
}

function toggle(menu) {
	menu.open = !menu.open;
	menu.querySelector("summary").focus();
}
function escape() {
	const menu = pick(".pick[open]"), tip = pick(".tip:not([hidden])");
	if (tip) tip.hidden = true;
	else menu ? toggle(menu) : panel.hidden || close();
}

const ACTS = { j: () => step(1), k: () => step(-1), Escape: escape, "/": () => search.focus(), s: beside, "?": () => toggle(pick("[data-help]")) };

function pressed(event) {
	const isTyping = event.target.closest?.("input:not([type=checkbox]), select, textarea");
	if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping || !Object.hasOwn(ACTS, event.key)) return;
	event.preventDefault();
	ACTS[event.key]();
}

let matched, opened;
function render() {
	view = viewOf(location.hash);
	const wanted = JSON.stringify([view.filters, view.q, view.sort]), now = view.open && view.open + " " + view.with;
	if (wanted !== matched) { found = matching(view); from = 0; shown = STEP; matched = wanted; }
	const place = found.indexOf(trialAt(view.open));
	if (place >= shown || (place >= 0 && place < from)) { from = place - (place % STEP); shown = from + STEP; }
	renderBar();
	renderList();
	const isMoved = now && now !== opened;
	opened = now;
	return renderPanel(isMoved);
}

/** A fragment that is not ours leaves the view as it is. */
async function follow() {
	if (view && !/^#trials(\?|$)/.test(location.hash)) return;
	const wasOpen = view?.open;
	await render();
	if (!wasOpen && !view.open && location.hash.startsWith("#trials")) app.parentElement.scrollIntoView();
}

async function start() {
	take(await block("index"));
	makeBar();
	addEventListener("hashchange", follow);
	addEventListener("keydown", pressed);
	pick("[data-copy]").onclick = copyLink;
	pick("[data-close]").onclick = close;
	await follow();
	warm();
}

start().catch((error) => app.replaceChildren(el("p.prose.bad", { "data-broken": "" }, error.message)))
	.finally(() => { document.documentElement.dataset.ready = "true"; });
