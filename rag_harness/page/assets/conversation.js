// Conversations: what was said before a turn, as a chat; of two trials once, then in columns where they part.

const MOST_TURNS = 8, LAST_TURNS = 4; // of a longer chat the last ones are in sight

const conversationOf = (n) => caseOf(n).labels.turn && caseOf(n).labels.conversation;
const turnOf = (n) => Number(caseOf(n).labels.turn);

/** The listed trials of a conversation of an experiment, by turn. */
const turnsOf = (n) => new Map(trials.case.flatMap((_, m) =>
	trials.experiment[m] === trials.experiment[n] && conversationOf(m) === conversationOf(n) ? [[turnOf(m), m]] : []));

/** What was said before, a list of messages a turn. */
function turnsBefore({ history = [] }) {
	const turns = [];
	for (const message of history) {
		if (message[0] === "user" || !turns.length) turns.push([]);
		turns.at(-1).push(message);
	}
	return turns;
}

function message(n, [role, number, isFailed], { strings }) {
	const who = { user: "User", assistant: suiteOf(n).history === "gold" ? "Reference reply" : "Reply" }[role] ?? role;
	return el(role === "user" ? "div.said.asks" : "div.said", el("div.who", said(who), isFailed && el("span.bad", " ✗ failed")), long(strings[number]));
}

/** A trial in a line: the columns of the list, cause, expectations. */
function cameTo(m) {
	if (m == null) return null;
	const kept = col("expectations")?.of(m), names = view.cols.filter((name) => col(name).digits && name !== "expectations" && col(name).of(m) != null);
	const parts = [link(m), statusOf(m) !== "ok" && statusOf(m), ...names.map((name) => `${name} ${written(name, col(name).of(m))}`),
		kept != null && [sign(kept === 1 ? ["good", "✓", "kept"] : ["bad", "✗", "not kept"]), kept === 1 ? " kept its expectations" : ` expectations ${written("expectations", kept)}`],
		(causeOf(m) || kindOf(m)) && said(causeOf(m) || kindOf(m))];
	return note(parts.filter(Boolean).map((one, at) => [at > 0 && " · ", one]));
}

/** The chunks in the prompt of an earlier turn, looked up when somebody wants them. */
const contextOf = (m, { chunks }) => m != null && fold("Context", () => {
	const box = el("ul"), lines = ({ context = [] }) => context.length ? context.map(([number]) => chunkLine(m, chunks[number])) : [el("li", "none")];
	detailsOf(m).then((about) => box.append(...lines(about)));
	return box;
});

/** The beginning of a long chat is made when it is opened. */
function chatOf(turns) {
	const list = (some) => some.length > 0 && el("ol.chat", some.map((turn) => turn()));
	if (turns.length <= MOST_TURNS) return list(turns);
	return [fold(`${turns.length - LAST_TURNS} earlier turns`, () => list(turns.slice(0, -LAST_TURNS))), list(turns.slice(-LAST_TURNS))];
}

const turnItem = (turn, ...inside) => el("li", el("h5", `Turn ${turn}`), inside);

/** What was looked up in place of a question, and who made it. */
function searchedFor(n, { stages = [] }) {
	const { searched, by } = stages.find(([name]) => name === "rewrite")?.[3] ?? {};
	return typeof searched === "string" && searched !== caseOf(n).query && note("Searched for: “", said(searched.slice(0, LONG)), "”", by && [" · ", said(by)]);
}

/** A turn in its conversation: the chat before it, question, answer. */
function conversation(n, about, kept, asked) {
	const turn = turnOf(n), of = turnsOf(n), next = of.get(turn + 1);
	const before = turnsBefore(about).map((messages, at) => () => turnItem(at + 1, messages.map((one) => message(n, one, kept)), cameTo(of.get(at + 1)), contextOf(of.get(at + 1), kept)));
	return part(`Conversation, turn ${turn}`, chatOf(before), el("div.now", asked, answer(n, about)),
		el("p.note.acts", next != null && ["Next: ", link(next), " · "], el("a", { href: fragmentOf({ ...view, filters: { conversation: [conversationOf(n)] }, q: "", sort: "trial" }) }, "List this conversation")));
}

/** Two trials of a turn: what both were told before once, then beside each other. */
function parted(n, m, mine, theirs, kept) {
	const of = [n, m].map(turnsOf), [a, b] = [mine, theirs].map(turnsBefore), first = [...of[0].keys()].find((turn) => of[1].has(turn) && differ(of[0].get(turn), of[1].get(turn)));
	const turns = (a.length > b.length ? a : b).map((_, at) => () => {
		const [one = [], other = []] = [a[at], b[at]], isIn = (all) => (it) => all.some((each) => String(each) === String(it));
		const both = one.filter(isIn(other)), column = (trial, messages, place) => el("div", messages.filter((it) => !isIn(both)(it)).map((it) => message(trial, it, kept)), cameTo(of[place].get(at + 1)));
		return turnItem(at + 1, both.map((it) => message(n, it, kept)), el("div.columns", column(n, one, 0), column(m, other, 1)));
	});
	const pair = first != null && linkTo(of[0].get(first), of[1].get(first));
	return part(`Conversation, turn ${turnOf(n)}`, note(first == null ? "Their answers are the same in every turn." : first === turnOf(n) ? "Their answers first differ here."
		: ["Their answers first differ at ", el("a", { href: pair }, `turn ${first}`), "."]), chatOf(turns));
}

const differ = (n, m) => trials.answer[n] !== trials.answer[m] || statusOf(n) !== statusOf(m);
