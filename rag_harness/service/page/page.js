// Ask, read, open the passage; add a document, ask about it. Direction marks of strangers' texts stay within a <bdi>.
(() => {
const LONG = 20_000, AROUND = 2_000, MOST_ANSWERS = 20, MOST_DOCUMENTS = 50, FEW_DOCUMENTS = 8, HEARD = 600, KEY = "rag-key", SEEN = "rag-answers", TALK = "rag-conversation";
const $ = (id) => document.getElementById(id);
const question = $("question"), file = $("file");

// Elements

const el = elements(seen);
const said = (text) => el("bdi", String(text));
const button = (text, onclick, about) => el("button.small", { type: "button", onclick }, about, text);
const dotted = (all) => all.filter(Boolean).flatMap((one, n) => [n ? " · " : "", said(one)]);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const percent = (share) => share > 0.995 && share < 1 ? "over 99\u00a0%" : share > 0 && share < 0.005 ? "under 1\u00a0%" : `${Math.round(share * 100)}\u00a0%`;

/** Tell whoever does not see the page; the same words twice are told twice. */
const tell = (text) => { $("said").textContent = text === $("said").textContent ? `${text}\u00a0` : text; };

// Requests, and what goes wrong with them

/** Settled when the documents are loaded; nothing is asked before. */
let loaded = Promise.resolve(), isLoading = true;

const ADVICE = {
	0: "The server cannot be reached. Is it still running, and are you online?",
	400: "The server could not read what was sent.",
	401: "The server asks for an API key.",
	403: "This key may not do that. Use another key, or ask the operator of this server for one that may.",
	404: "It is not there, or not for this key.",
	408: "The server waited too long for what was sent. Try again.",
	409: "Something else is being done with it. Try again in a moment.",
	413: "It is larger than this server takes. Shorten or split it.",
	415: "This kind of file is not read: Markdown, text, HTML and PDF are.",
	422: "The server could not make sense of what was sent. Change it and try again.",
	429: "This key has asked as often as it may for now.",
	500: "Something is wrong in the server. Its operator finds the cause in its log.",
	503: "The server cannot do that just now. Try again in a moment.",
	507: "The server has no room left.",
	504: "It took too long. Ask again, or ask for less.",
};

/** What a client did not get: why in our words, ``detail`` in the server's, ``wait`` in seconds. */
class Trouble extends Error {
	constructor(status, detail = "", wait = 0, advice = ADVICE[status], code = "") {
		super(advice ?? `The server answered with status ${status}.`);
		Object.assign(this, { status, detail, wait, code });
	}
}

async function troubleOf(response) {
	const { detail, code } = await response.json().catch(() => ({})), wait = Number(response.headers.get("Retry-After")) || 0;
	return troubleWith(response.status, detail, wait, code);
}
const troubleWith = (status, detail, wait, code) => new Trouble(status, typeof detail === "string" ? detail.slice(0, HEARD) : "", wait, undefined, code);
const UNREADABLE = "The answer of the server cannot be read. Try again.", ENDED = "The connection ended before the answer did.";
const asTrouble = (error) => error instanceof Trouble ? error : new Trouble(0, "", 0, error instanceof SyntaxError ? UNREADABLE : ENDED);

function troubleBox(trouble, again) {
	return el("div.box.bad", el("strong", trouble.message), trouble.detail && el("p", said(trouble.detail)),
		trouble.wait > 0 && el("p", `Try again in ${many(trouble.wait, "second")}.`), again && el("div.line", again));
}

/** Fetch from this server with the key there is, once its documents are loaded; where a key is asked for, ask for it and try again. */
async function call(path, { headers, ...options } = {}) {
	for (;;) {
		await unlessStopped(loaded, options.signal);
		const used = key;
		const response = await fetch(path, { ...options, headers: { ...headers, ...(used && { Authorization: `Bearer ${used}` }) } })
			.catch((error) => { throw error.name === "AbortError" ? error : new Trouble(0); });
		if (response.ok) return response;
		const trouble = await troubleOf(response);
		if (trouble.code === "starting") loaded = introduce(); // it was started again
		else if (trouble.status !== 401) throw trouble;
		else if (key === used) await askKey(used ? "The server does not know this key, or no longer." : "The server asks for an API key.");
	}
}

const unlessStopped = (waited, signal) => Promise.race([waited, new Promise((_, stop) => signal?.addEventListener("abort", stop))]);

// The key

let key = keptKey(), asking;

function keptKey() {
	try { return sessionStorage.getItem(KEY) ?? ""; } catch { return ""; }
}

function useKey(one) {
	key = one;
	try { one ? sessionStorage.setItem(KEY, one) : sessionStorage.removeItem(KEY); } catch { /* kept in this page, then */ }
}

/** Ask once, however many requests wait for it. */
function askKey(why) {
	return asking ??= new Promise((given, refused) => {
		const box = $("key-dialog");
		$("key-why").textContent = why;
		$("key-forget").hidden = !key;
		box.returnValue = "";
		box.onclose = () => {
			asking = undefined;
			$("key").value = "";
			box.returnValue === "given" ? given() : refused(new Trouble(401));
		};
		box.showModal();
		$("key").focus();
	});
}

$("key-form").onsubmit = (event) => {
	event.preventDefault();
	const typed = $("key").value.trim();
	if (!/^[!-~]+$/.test(typed)) {
		$("key-why").textContent = "That is not a key: a key has letters, digits and signs, and no blanks.";
		return;
	}
	useKey(typed);
	$("key-dialog").close("given");
};
$("key-close").onclick = () => $("key-dialog").close();
$("key-forget").onclick = () => {
	endTalk();
	useKey("");
	keepIds([]);
	history.replaceState(null, "", location.pathname);
	running?.abort();
	for (const id of ["answers", "uploads", "documents"]) $(id).replaceChildren();
	$("key-dialog").close();
	tell("The key and what was asked with it are forgotten.");
};
$("key-open").onclick = () => askKey(key ? "A key is in use." : "No key is in use.").then(listDocuments, () => {});

// Events of a stream

/** Yield name and data of each event as it is complete. */
async function* eventsOf(body) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "", name = "", data = [];
	for (;;) {
		const { value = "", done } = await reader.read();
		const lines = (rest + value).split(/\r\n|\r(?!$)|\n/); // what ends with \r may go on with \n
		rest = lines.pop();
		for (const line of lines) {
			const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
			if (field === "event") name = text;
			else if (field === "data") data.push(text);
			else if (!line) {
				if (data.length) yield [name, JSON.parse(data.join("\n"))];
				name = "", data = [];
			}
		}
		if (done) return;
	}
}

// One answer

let running, asked = 0;

class Turn {
	constructor(text, isStrict) {
		const id = `question-${++asked}`;
		Object.assign(this, { question: text, isStrict, text: "", sources: new Map(), citations: [], isDone: false });
		this.heading = el("p.note");
		this.verdict = el("div.verdict");
		this.withdrawn = el("div");
		this.answer = el("div.text.said", { dir: "auto", onclick: (event) => this.clicked(event) });
		this.list = el("div.sources");
		this.below = el("div");
		this.box = el("article.answer", { "aria-labelledby": id, tabindex: -1 }, el("h3", { id, dir: "auto" }, text), this.heading,
			el("div.beside", this.verdict, this.withdrawn, this.answer, this.list, this.below));
		this.begin();
		this.is("asking");
	}

	is(state) {
		this.box.dataset.state = state;
		this.answer.setAttribute("aria-busy", state === "growing");
	}

	async run(signal) {
		const sent = { query: this.question, mode: this.isStrict ? "strict" : "normal", debug: false };
		try {
			if (isLoading) this.verdict.replaceChildren(el("strong", "Waiting until the documents are loaded …"));
			await unlessStopped(loaded, signal);
			this.verdict.replaceChildren(el("strong", "Looking for passages …"));
			const response = await inTalk(signal, (conversation) => call("query", { method: "POST", signal, body: JSON.stringify({ ...sent, conversation }),
				headers: { "Content-Type": "application/json", Accept: "text/event-stream, application/json;q=0.5" } }));
			if (response.headers.get("Content-Type")?.startsWith("text/event-stream")) await this.hear(response.body);
			else this.done(await response.json());
			if (!this.isDone) throw new Trouble(0, "", 0, ENDED);
		} catch (error) {
			signal.aborted ? this.stopped() : this.failed(asTrouble(error));
		}
	}

	async hear(body) {
		const does = {
			retrieval: ({ sources }) => this.found(sources),
			token: ({ text }) => this.grow(text),
			citation: (one) => this.citations.push(one),
			verdict: (one) => this.decide(one),
			replace: ({ answer }) => this.replace(answer),
			done: (answered) => this.done(answered),
			error: ({ status, detail }) => { throw troubleWith(status, detail); },
		};
		for await (const [name, data] of eventsOf(body)) does[name]?.(data);
	}

	found(sources) {
		this.sources = new Map(sources.map((one) => [one.source, { ...one }]));
		this.drawSources();
		if (!this.headline) this.verdict.replaceChildren(el("strong", this.isStrict ? "Answering, and checking before anything is shown …" : "Answering …"));
	}

	begin(most = LONG) {
		Object.assign(this, { pending: "", drawn: 0, most });
		this.answer.replaceChildren();
	}

	grow(text) {
		if (!this.text) {
			this.is("growing");
			if (!this.headline) this.verdict.replaceChildren(el("strong", "Answering, not checked yet …"));
		}
		this.text += text;
		this.draw(text);
	}

	/** Append what came; what may be half a mark waits for its end, what is too long for the page waits to be asked for. */
	draw(text, isLast) {
		if (this.drawn > this.most) return;
		const ready = this.pending + text, half = isLast ? -1 : ready.search(/\[[^\]]{0,80}$/);
		this.pending = half < 0 ? "" : ready.slice(half);
		const now = (half < 0 ? ready : ready.slice(0, half)).slice(0, this.most + 1 - this.drawn);
		this.drawn += now.length;
		for (const piece of now.split(/(\[\s*sources?\b[^\]]*\])/i)) this.append(piece);
		if (this.drawn > this.most) this.answer.append("… ");
	}

	append(piece) {
		const last = this.answer.lastChild;
		if (/^\[\s*source/i.test(piece)) this.answer.append(...this.marks(piece));
		else if (last?.nodeType === Node.TEXT_NODE) last.appendData(seen(piece));
		else if (piece) this.answer.append(seen(piece));
	}

	/** [Source 1] is one button, [Sources 1, 3] has one for each number; the letters stay as they are. */
	marks(piece) {
		const numbers = piece.match(/\b\d{1,6}\b/g) ?? [];
		if (numbers.length === 1) return [this.mark(piece, Number(numbers[0]))];
		return piece.split(/\b(\d{1,6})\b/).map((part, n) => n % 2 ? this.mark(part, Number(part)) : seen(part));
	}

	mark(text, number) {
		if (this.sources.size && !this.sources.has(number)) return el("span.wrong", { title: "There is no such source." }, text);
		return el("button", { type: "button", "data-source": number, "aria-expanded": "false", "aria-label": `Source ${number}: open the passage` }, text);
	}

	/** What was shown is not what holds: say so, and keep it where it can be read. */
	replace(answer) {
		if (this.text.trim()) {
			this.withdrawn.append(el("div.box.unsure", el("strong", "What was shown before is withdrawn: it is not the answer."),
				el("details", el("summary", "Show what was withdrawn"), el("del.text", { dir: "auto" }, this.text.slice(0, LONG)))));
		}
		this.citations = [];
		this.begin();
		this.text = answer;
		this.draw(answer);
	}

	decide(verdict) {
		const [tone, headline, meaning] = verdictOf(verdict);
		this.trace = verdict.trace_id;
		this.headline = headline;
		this.verdict.className = `verdict ${tone}`;
		this.verdict.replaceChildren(el("strong", headline), meaning && el("div.note", meaning),
			verdict.reasons.length ? el("ul", verdict.reasons.map(reasonOf)) : "");
	}

	done(answered, isNew = true) {
		const told = this.citations;
		this.isDone = true;
		if (answered.answer.trim() !== this.text.trim()) this.replace(answered.answer);
		this.citations = answered.citations ?? told; // a stream has told them
		this.decide(answered);
		this.heading.textContent = turnOf(answered);
		for (const { source, document, section, page, url } of this.citations)
			this.sources.set(source, Object.assign(this.sources.get(source) ?? { source, text: "", document, section }, { page, url }));
		this.end("done");
		this.drawSources(answered.reasons);
		if (this.text.length > LONG) this.below.append(button(`Show all ${whole(this.text.length)} characters`, ({ target }) => this.showAll(target)));
		if (this.trace) {
			this.box.id = `answer-${this.trace}`;
			this.below.append(rating(this.trace), el("p.note", el("a", { href: `#${this.trace}` }, "Link to this answer"), " · trace ", el("code", said(this.trace))));
		}
		if (isNew) keepIds([...keptIds(), this.trace]);
		if (isNew) tell(`${this.headline}. ${this.text.length <= HEARD ? this.text : "The answer is there."}`);
	}

	showAll(target) {
		target.remove();
		this.begin(Infinity);
		this.draw(this.text, true);
		this.answer.tabIndex = -1;
		this.answer.focus();
	}

	stopped() {
		this.end("stopped");
		this.verdict.className = "verdict unsure";
		this.verdict.replaceChildren(el("strong", "Stopped"), el("div.note", this.text ? "What stands here is unfinished, and nothing of it was checked." : "Nothing was answered yet."));
		this.below.append(this.again());
		tell("Stopped.");
	}

	failed(trouble) {
		this.end("failed");
		if (this.text) trouble.detail += " What stands here is unfinished, and nothing of it was checked.";
		this.verdict.replaceWith(troubleBox(trouble, this.again()));
		tell(`${trouble.message} ${trouble.detail}`);
	}

	again() {
		return button("Ask again", () => ask(this.question, this.isStrict));
	}

	end(state) {
		this.draw("", true);
		this.is(state);
	}

	// Its sources

	drawSources(reasons) {
		const cited = new Set(this.citations.map((one) => one.source));
		const all = [...this.sources.values()].sort((a, b) => a.source - b.source);
		for (const one of all) {
			one.box ??= this.sourceBox(one);
			one.head.replaceChildren(`${one.source} · `, ...dotted([one.document, sectionOf(one.section), one.page != null && `page ${one.page}`]),
				el("span.cited", cited.has(one.source) && " · cited"));
			if (one.box.open) this.fill(one);
		}
		const none = !reasons ? "" : reasons.some((one) => one.startsWith("CHIT_CHAT")) ? "" : reasons.some((one) => one.startsWith("LOW_")) ? "No passage fits well enough to be shown" : "No passage was found";
		const head = all.length ? "Passages that were found" : none;
		this.list.replaceChildren(head && el("h4", head), ...all.map((one) => one.box));
	}

	sourceBox(source) {
		source.head = el("summary");
		source.inside = el("div");
		const box = el("details.source", { "data-passage": source.source }, source.head, source.inside);
		box.ontoggle = () => this.toggled(source);
		box.onkeydown = (event) => { if (event.key === "Escape") this.back(source); };
		return box;
	}

	toggled(source) {
		if (source.box.open && !source.inside.firstChild) this.fill(source);
		for (const one of this.answer.querySelectorAll(`[data-source="${source.source}"]`)) one.setAttribute("aria-expanded", source.box.open);
		if (!source.box.open) { source.from = undefined; source.inside.replaceChildren(); self.CSS?.highlights?.delete("claim"); }
	}

	/** Show a passage with what is quoted of it: for one mark, or for all of them. */
	fill(source, quoting = this.citations.filter((one) => one.source === source.source)) {
		const quotes = [...new Set(quoting.map((one) => one.quote).filter(Boolean))], url = webAddress(source.url);
		const places = merged(quotes.flatMap((quote) => placeOf(source.text, quote)));
		const apart = quotes.filter((quote) => !placeOf(source.text, quote).length);
		source.inside.replaceChildren(...[
			apart.map((quote) => el("blockquote.text", { dir: "auto" }, el("mark", quote))),
			source.text && el("div.text", { dir: "auto", tabindex: 0, role: "region", "aria-label": `Passage ${source.source}` }, passage(source.text, places)),
			!source.text && !quotes.length && el("p.note", "The server did not send this passage, or its document has changed since."),
			el("div.line", source.from && button("Back to the answer", () => this.back(source)),
				url && el("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, "Open the document at ", said(url.host))),
		].flat().filter(Boolean));
	}

	clicked({ target }) {
		const mark = target.closest("[data-source]"), source = mark && this.sources.get(Number(mark.dataset.source));
		if (!source) return;
		if (source.from === mark) return this.back(source);
		const citation = this.citationAt(mark, source.source);
		source.from = mark;
		source.box.open = true;
		this.fill(source, citation && [citation]);
		if (citation) this.showClaim(citation);
		source.head.focus({ preventScroll: true });
		source.box.scrollIntoView({ block: "nearest" });
		source.inside.querySelector("mark")?.scrollIntoView({ block: "nearest" });
	}

	/** The citation of this source whose claim stands nearest to the mark; offsets count characters, not UTF-16. */
	citationAt(mark, number) {
		const range = new Range();
		range.setStart(this.answer, 0);
		range.setEndBefore(mark);
		const at = [...range.toString()].length;
		const far = (one) => Math.max(one.answer_start - at, at - one.answer_end, 0);
		return this.citations.filter((one) => one.source === number).sort((a, b) => far(a) - far(b))[0];
	}

	showClaim({ answer_start: start, answer_end: end }) {
		if (!self.CSS?.highlights || this.text.length > LONG) return;
		const letters = [...this.text], units = (count) => letters.slice(0, count).join("").length, range = new Range();
		range.setStart(...this.spot(units(start)));
		range.setEnd(...this.spot(units(end)));
		CSS.highlights.set("claim", new Highlight(range));
	}

	spot(at) {
		const walker = document.createTreeWalker(this.answer, NodeFilter.SHOW_TEXT);
		let node, last = [this.answer, 0];
		while ((node = walker.nextNode())) {
			if (at <= node.length) return [node, at];
			at -= node.length;
			last = [node, node.length];
		}
		return last;
	}

	back(source) {
		const from = source.from ?? source.head;
		source.box.open = false;
		from.focus();
	}
}

const sectionOf = (section) => [section].flat().filter(Boolean).join(" › ");

function webAddress(text) {
	const url = text && URL.canParse(text) && new URL(text);
	return url && /^https?:$/.test(url.protocol) && url;
}

/** Where a quote stands in a text, blanks being equal: none or one pair of ends. */
function placeOf(text, quote) {
	const at = text.indexOf(quote);
	if (at >= 0) return [[at, at + quote.length]];
	if (quote.length > LONG) return [];
	const words = quote.trim().split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
	const found = new RegExp(words.join("\\s+")).exec(text);
	return found ? [[found.index, found.index + found[0].length]] : [];
}

function merged(places) {
	const kept = [];
	for (const [start, end] of places.sort((a, b) => a[0] - b[0]))
		if (kept.length && start <= kept.at(-1)[1]) kept.at(-1)[1] = Math.max(end, kept.at(-1)[1]);
		else kept.push([start, end]);
	return kept;
}

/** The text with its quotes marked; of one that would choke the page, what is around the first quote. */
function passage(text, places) {
	const from = text.length > LONG ? Math.max(0, (places[0]?.[0] ?? 0) - AROUND) : 0, until = Math.min(text.length, from + LONG), nodes = [];
	let at = from;
	for (const [start, end] of places.filter(([start, end]) => start >= from && end <= until)) {
		nodes.push(text.slice(at, start), el("mark", text.slice(start, end)));
		at = end;
	}
	return [from > 0 && "… ", ...nodes, text.slice(at, until), until < text.length && " …"];
}

// The verdict in words

function verdictOf({ decision, confidence, reasons }) {
	const has = (...codes) => codes.some((code) => reasons.some((one) => one.startsWith(code))), tells = confidence != null;
	const estimate = tells && "The figure is the system's estimate that the answer is right.", other = "Ask in other words, or add a document that answers it.";
	const share = tells && `${confidence < SOMEWHAT ? "only " : ""}${percent(confidence)} sure`;
	if (decision === "pass" && has("CHIT_CHAT")) return ["", "Not a question about the documents", ""];
	if (decision === "pass") return ["good", tells ? howSure(confidence) : "Passed every check", estimate];
	if (decision === "warn") return ["unsure", tells ? `${howSure(confidence)}, with a warning` : "With a warning", `Open the passages before you rely on it. ${estimate || ""}`];
	if (decision === "abstain" && has("MODEL_UNAVAILABLE")) return ["bad", "No answer just now", "Ask again in a minute."];
	if (decision === "abstain" && has("NOT_IN_SOURCES", "LOW_RETRIEVAL_QUALITY")) return ["unsure", tells ? `Declined: ${share} that the documents do not answer this` : "Declined: the documents do not answer this", other];
	if (decision === "abstain") return ["unsure", tells ? `Declined: ${share} of the answer that it had` : "Declined to answer", other];
	if (decision === "unchecked") return ["", tells ? `${howSure(confidence)}, unchecked` : "Unchecked", tells ? estimate : "This experiment does not say how sure it is."];
	return ["", decision, estimate];
}

/** The words follow the figure and nothing else, so that a higher figure never sounds less sure. */
const SOMEWHAT = 0.545, WORDS = [[0.945, "Very sure"], [0.745, "Fairly sure"], [SOMEWHAT, "Somewhat sure"], [0.245, "Rather unsure"], [0, "Very unsure"]];
const howSure = (confidence) => `${WORDS.find(([least]) => confidence >= least)[1]}, ${percent(confidence)}`;

const REASONS = {
	UNGROUNDED_CLAIM: (claim) => `No passage supports this: “${claim}”.`,
	UNGROUNDED_ANSWER: () => "The passages support too little of the answer.",
	CONFLICTING_SOURCES: (names) => `These documents say different things: ${names}.`,
	CONTRADICTS_SOURCE: (name) => `The answer says something else than ${name}.`,
	OUTDATED_SOURCE: (name) => `It rests on ${name}, which another document has replaced.`,
	INCONSISTENT_ANSWERS: () => "Asked again, the model answered something else.",
	NO_CITATION: () => "The answer names no passage that it rests on.",
	UNKNOWN_SOURCE: (numbers) => `The answer names a passage that there was not: ${numbers}.`,
	LOW_RELEVANCE: () => "The passages that were found match the question only loosely.",
	LOW_COVERAGE: () => "The passages that were found cover only a part of the question.",
	LOW_RETRIEVAL_QUALITY: () => "No passage fits the question well enough to answer from.",
	NOT_IN_SOURCES: () => "The passages that were found do not say it.",
	CHIT_CHAT: () => "Nothing was looked up.",
	MODEL_UNAVAILABLE: () => "The model that writes the answers did not answer.",
	STRICT: () => "In strict mode an answer is given only where no warning but a weak search speaks against it.",
};

function reasonOf(reason) {
	const [code, ...rest] = reason.split(": "), sentence = REASONS[code]?.(rest.join(": "));
	return el("li", sentence ? [said(sentence), " ", el("code", code)] : el("code", said(reason)));
}

// What somebody thinks of it

function rating(trace) {
	const state = el("span.note", { role: "status" }), comment = el("input", { type: "text", maxlength: 2000, id: `comment-${trace}` });
	let thumb;
	const send = async (sent) => {
		try {
			await call(`traces/${encodeURIComponent(trace)}/rating`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) });
			state.textContent = sent.comment ? "Thank you: your words are kept with the answer." : "Thank you: kept.";
		} catch (error) {
			state.textContent = `Not kept. ${asTrouble(error).message}`;
		}
	};
	const more = el("form", { hidden: "", onsubmit: (event) => { event.preventDefault(); send({ thumb, comment: comment.value.trim() }); } },
		el("label", { for: comment.id }, "What was right or wrong? (not required)"), comment, el("button.small", { type: "submit" }, "Send"));
	const thumbs = [["Yes", 1], ["No", -1]].map(([text, value]) => button(text, ({ target }) => {
		thumb = value;
		for (const one of thumbs) one.setAttribute("aria-pressed", one === target);
		more.hidden = false;
		send({ thumb, comment: comment.value.trim() });
	}, { "aria-pressed": "false" }));
	return el("div.rate", el("div.line", { role: "group", "aria-label": "Was this answer right?" }, "Was this answer right?", thumbs, state), more);
}

// The conversation: the server keeps what is said in it, this tab its id

let talk = keptTalk();
const unread = new Set();

function keptTalk() {
	try { return sessionStorage.getItem(TALK) ?? ""; } catch { return ""; }
}

function useTalk(id) {
	talk = id;
	$("talk").hidden = !id;
	try { id ? sessionStorage.setItem(TALK, id) : sessionStorage.removeItem(TALK); } catch { /* kept in this page, then */ }
}

/** Ask in the conversation there is, or begin one; one that the server does not keep any more, or that is full, is begun anew. */
async function inTalk(signal, ask) {
	for (let isNew = !talk; ; isNew = true) {
		if (!talk) useTalk((await (await call("conversations", { method: "POST", signal })).json()).conversation);
		try {
			return await ask(talk);
		} catch (error) {
			if (isNew || !["no_such_conversation", "conversation_full"].includes(error.code)) throw error;
			useTalk("");
			tell("A new conversation begins: the server takes no more of the last one.");
		}
	}
}

function endTalk() {
	const gone = talk;
	useTalk("");
	if (gone) fetch(`conversations/${gone}`, { method: "DELETE", headers: key ? { Authorization: `Bearer ${key}` } : {} }).catch(() => {});
}

/** Whether the question was asked with what was said before it; that an experiment does not look at that is said once. */
function turnOf({ conversation, turn, history_read: wasRead }) {
	if (!(turn > 1)) return conversation ? "A new conversation begins here" : "";
	const isTold = unread.has(conversation);
	if (wasRead === false) unread.add(conversation);
	return `Turn ${turn}${wasRead === false && !isTold ? ": this experiment does not look at what was said before, so each question must say all" : ""}`;
}

$("afresh").onclick = () => {
	if (running) return tell("The last question is still being answered. Stop it first.");
	endTalk();
	tell("A new conversation begins with the next question.");
	question.focus();
};

// Answers that were given before: this tab knows their ids, the server has their words

function keptIds() {
	try { return JSON.parse(sessionStorage.getItem(SEEN)) ?? []; } catch { return []; }
}

function keepIds(ids) {
	const kept = ids.filter(Boolean).slice(-MOST_ANSWERS);
	try { kept.length ? sessionStorage.setItem(SEEN, JSON.stringify(kept)) : sessionStorage.removeItem(SEEN); } catch { /* until it is loaded again, then */ }
}

const answerBox = (id) => $(`answer-${id}`), idInAddress = () => /^#([0-9a-f]{32})$/.exec(location.hash)?.[1];

/** Show an answer again, below or above those that are there. */
async function showAgain(id, place = "append") {
	const answered = await (await call(`traces/${id}/answer`)).json(), turn = new Turn(answered.question, answered.mode === "strict");
	if (answerBox(id)) return;
	turn.found(answered.sources);
	turn.grow(answered.answer);
	turn.done(answered, false);
	$("answers")[place](turn.box);
}

async function showKept() {
	const gone = [];
	for (const id of keptIds().reverse()) await showAgain(id).catch((error) => error.status === 404 && gone.push(id));
	keepIds(keptIds().filter((id) => !gone.includes(id)));
	if (gone.length) $("answers").append(el("p.note", `${many(gone.length, "earlier answer")} cannot be shown again: the server does not keep them any more.`));
	await showLinked();
}

async function showLinked() {
	const id = idInAddress();
	if (!id) return;
	try {
		await showAgain(id, "prepend");
		const box = answerBox(id);
		box.focus({ preventScroll: true });
		box.scrollIntoView();
	} catch (error) {
		const trouble = asTrouble(error);
		if (trouble.status === 404) trouble.message = "The answer of this link is not kept any more, or it is not for this key.";
		$("answers").prepend(troubleBox(trouble, button("Try again", ({ target }) => { target.closest(".box").remove(); showLinked(); })));
	}
}
addEventListener("hashchange", showLinked);

// Asking

async function ask(text, isStrict) {
	if (running) return tell("The last question is still being answered. Stop it first.");
	if (idInAddress()) history.replaceState(null, "", location.pathname);
	const turn = new Turn(text, isStrict), mine = new AbortController();
	running = mine;
	$("answers").prepend(turn.box);
	for (const old of [...$("answers").children].slice(MOST_ANSWERS)) old.remove();
	swap($("ask-now"), $("stop"));
	tell("Asked.");
	await turn.run(mine.signal);
	mine.abort(); // what is left of a stream is nobody's
	running = undefined;
	swap($("stop"), $("ask-now"));
}

/** Show one button in place of another; the focus goes along. */
function swap(one, other) {
	const hasFocus = document.activeElement === one;
	other.hidden = false;
	one.hidden = true;
	if (hasFocus) other.focus();
}

$("ask").onsubmit = (event) => {
	event.preventDefault();
	const text = question.value.trim();
	if (text) ask(text, $("strict").checked);
	else question.focus();
};
$("stop").onclick = () => running?.abort();
question.onkeydown = (event) => {
	if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
	event.preventDefault();
	$("ask").requestSubmit();
};

const ABOUT = "What does “";
function askAbout(name) {
	if (!question.value.trim() || question.value.startsWith(ABOUT)) question.value = `${ABOUT}${name}” say about `;
	question.focus();
	question.setSelectionRange(question.value.length, question.value.length);
}

// Documents

let documents = [], sought = "";

async function listDocuments() {
	try {
		({ documents } = await (await call("documents")).json());
		drawDocuments();
	} catch (error) {
		const trouble = asTrouble(error);
		if (trouble.status === 403) trouble.message = "This key may ask, and neither see nor add documents.";
		$("documents").replaceChildren(troubleBox(trouble, button("Try again", listDocuments)));
	}
}

function drawDocuments(isAll) {
	const wanted = documents.filter((one) => one.name.toLowerCase().includes(sought)), shown = isAll ? wanted : wanted.slice(0, MOST_DOCUMENTS);
	const rest = wanted.length - shown.length, are = (status) => documents.filter((one) => one.status === status).length, list = el("ul.plain", { "aria-label": "Documents" }, shown.map(documentLine));
	let box = $("documents").querySelector("[data-list]");
	if (!box) {
		const search = el("input", { type: "search", id: "seek", oninput: () => { sought = search.value.trim().toLowerCase(); drawDocuments(); } });
		box = el("div", { "data-list": "" });
		$("documents").replaceChildren(el("div", { "data-seek": "" }, el("label", { for: "seek" }, "Find a document by its name"), search), box);
	}
	$("documents").querySelector("[data-seek]").hidden = documents.length <= FEW_DOCUMENTS;
	const counted = [are("ready") && many(are("ready"), "document"), are("pending") && `${whole(are("pending"))} being read`, are("failed") && `${whole(are("failed"))} could not be read`].filter(Boolean).join(" · ");
	for (const one of $("uploads").querySelectorAll("[data-about]")) one.hidden = !documents.some(({ name, status }) => name === one.dataset.about && status === "ready");
	box.replaceChildren(el("p.note", !documents.length ? "No document yet." : sought ? `${whole(wanted.length)} of ${whole(documents.length)} have this in their names` : counted),
		list, rest > 0 ? button(`Show ${whole(rest)} more`, () => { drawDocuments(true); $("documents-title").focus(); }) : "");
}

function documentLine(one) {
	const about = () => [el("span.unseen", " ", said(one.name))];
	return el("li", { "data-document": one.doc_id }, el("span.name", said(one.name)), el("div.note", said(stateOf(one))), el("div.line",
		one.status === "ready" && button(["Ask about it", about()], () => askAbout(one.name)),
		one.status !== "deleting" && button(["Delete", about()], () => remove(one))));
}

function stateOf({ status, why, chunks_created: chunks, coverage, dropped }) {
	const left = Object.entries(dropped ?? {}).filter(([, count]) => count).map(([what, count]) => `${whole(count)} ${what.replaceAll("_", " ")}`);
	if (status === "pending") return "being read";
	if (status === "deleting") return "being removed";
	if (status === "failed") return `could not be read: ${why}`;
	return [many(chunks, "passage"), coverage != null && `${coverage === 1 ? "all" : percent(coverage)} of its text is searched`, left.length && `left out: ${left.join(", ")}`].filter(Boolean).join(" · ");
}

function remove(one) {
	const box = $("delete-dialog");
	$("delete-title").replaceChildren("Delete ", said(one.name), "?");
	$("delete-form").onsubmit = async (event) => {
		event.preventDefault();
		box.close();
		try {
			await call(`documents/${encodeURIComponent(one.doc_id)}`, { method: "DELETE" });
			tell(`${one.name} is deleted.`);
		} catch (error) {
			const trouble = asTrouble(error);
			$("uploads").hidden = false;
			$("uploads").prepend(el("li", el("span.name", said(one.name)), troubleBox(trouble)));
			tell(`${one.name} was not deleted. ${trouble.message}`);
		}
		await listDocuments();
		$("documents-title").focus();
	};
	box.showModal();
}
$("delete-keep").onclick = () => $("delete-dialog").close();

// Adding

let adding = Promise.resolve();

$("add").onsubmit = (event) => {
	event.preventDefault();
	addAll(file.files);
	file.value = "";
};

function addAll(files) {
	for (const one of files) {
		const state = el("div.note", "waits"), line = el("li", el("span.name", said(one.name)), state);
		$("uploads").hidden = false;
		$("uploads").prepend(line);
		adding = adding.then(() => add(one, state));
	}
}

// Files may be dropped anywhere: beside a target, a browser would leave the page and open the file.
const hasFiles = (event) => event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
let over = 0;
const dropping = (change) => { over = Math.max(0, over + change); document.documentElement.classList.toggle("dropping", over > 0); };
addEventListener("dragenter", (event) => hasFiles(event) && dropping(1));
addEventListener("dragleave", (event) => hasFiles(event) && dropping(-1));
addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
addEventListener("drop", (event) => {
	if (!hasFiles(event)) return;
	event.preventDefault();
	dropping(-over);
	const isFolder = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry?.()?.isDirectory), files = [...event.dataTransfer.files];
	addAll(files.filter((_, n) => !isFolder[n]));
	for (const [n, one] of files.entries()) {
		if (!isFolder[n]) continue;
		$("uploads").hidden = false;
		$("uploads").prepend(el("li", el("span.name", said(one.name)), troubleBox(new Trouble(0, "", 0, "A folder cannot be added. Drop the files that are in it."))));
	}
});

async function add(one, state) {
	const body = new FormData();
	body.append("file", one, one.name);
	state.textContent = `being sent, ${whole(one.size)} bytes …`;
	tell(`${one.name} is being sent.`);
	try {
		const doc = await settled(await (await call("ingest", { method: "POST", body })).json(), state);
		if (doc.status !== "ready") throw new Trouble(0, doc.why, 0, "The file could not be read.");
		state.replaceChildren(el("span.good", "Added: "), said(stateOf(doc)), el("div.line", { "data-about": doc.name }, button("Ask about it", () => askAbout(doc.name))));
		tell(`${one.name} is added.`);
	} catch (error) {
		const trouble = asTrouble(error);
		state.replaceChildren(troubleBox(trouble));
		tell(`${one.name} was not added. ${trouble.message} ${trouble.detail}`);
	}
	await listDocuments();
}

/** Ask what has come of a document until something has; a lost connection or too many questions only take longer. */
async function settled(doc, state) {
	let now = "is there, and being read …", least = 0;
	for (let wait = 400; doc.status === "pending"; wait = Math.min(wait * 1.5, 5_000)) {
		state.textContent = now;
		await sleep(Math.max(wait, least));
		try {
			doc = await (await call(`ingest/${encodeURIComponent(doc.doc_id)}`)).json();
		} catch (error) {
			if (![0, 429, 503].includes(error.status)) throw error;
			now = `${error.message} The page asks again.`;
			least = error.wait * 1_000;
		}
	}
	return doc;
}

// The page

/** Say who answers, and how far the loading of documents is; return when they are loaded, or when nobody says so. */
async function introduce() {
	for (;;) {
		const response = await fetch("ready").catch(() => undefined), { experiment, status, progress } = await response?.json().catch(() => ({})) ?? {};
		isLoading = status === "starting";
		if (experiment) $("about").replaceChildren("Answered by experiment ", el("b", said(experiment)));
		$("loading").hidden = !isLoading;
		$("far").textContent = progress ? progress[0].toUpperCase() + progress.slice(1) : "Starting the models and reading the documents";
		if (!isLoading) return;
		await sleep(1_000);
	}
}

const connected = () => { $("offline").hidden = navigator.onLine; };
addEventListener("online", () => { connected(); listDocuments(); });
addEventListener("offline", () => { connected(); tell("You are offline."); });
connected();
useTalk(talk);
loaded = introduce();
listDocuments();
showKept();
document.documentElement.dataset.ready = "";
})();
