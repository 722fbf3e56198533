"use strict";
// Every trial: a list that filters and sorts, one opened, two side by side. Where one looks is the address's fragment.
// Texts come from strangers: they become text nodes, never markup, and their direction marks stay within their element.
(() => {
const STEP = 100, LONG = 20_000, MOST_WORDS = 2_000, MOST_VALUES = 200, SUPPORTED = 0.5;
const app = document.getElementById("app");

// Elements

function el(tag, about = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true || value === false) node.toggleAttribute(name, value);
    else if (value != null) node.setAttribute(name, value);
  }
  node.append(...inside.flat(Infinity).filter((one) => one != null && one !== ""));
  return node;
}
const said = (text) => el("bdi", { dir: "auto" }, String(text));
const button = (text, onclick, about = {}) => el("button", { type: "button", onclick, ...about }, text);
const unseen = (text) => el("span", { class: "unseen" }, text);
const note = (...inside) => el("p", { class: "note" }, ...inside);
const whole = (number) => number.toLocaleString("en");

/** A title and what it names; nothing where there is nothing. */
function part(title, name, ...inside) {
  const kept = inside.flat(Infinity).filter(Boolean);
  return kept.length ? el("section", { class: "part", "data-part": name }, el("h4", {}, title), kept) : null;
}

/** Folded until it is asked for, and made only then. */
function fold(title, name, make) {
  const box = el("details", { class: "part", "data-part": name }, el("summary", {}, title));
  box.addEventListener("toggle", () => box.append(...[make()].flat(Infinity)), { once: true });
  return box;
}

/** A text of any length: one that would choke the page is cut, with a button for the rest. */
function long(text, draw = (shown) => [shown], tag = "div") {
  const box = el(tag, { class: "text", dir: "auto", tabindex: -1 });
  const all = () => { box.replaceChildren(...draw(text)); box.focus(); };
  if (text.length <= LONG) box.append(...draw(text));
  else box.append(...draw(text.slice(0, LONG)), "… ", button(`Show all ${whole(text.length)} characters`, all));
  return box;
}

function table(label, head, rows, about = {}) {
  const cells = (row) => row.map((cell, n) => (cell instanceof HTMLTableCellElement ? cell
    : n ? el("td", { class: typeof cell === "number" ? "num" : "" }, cell ?? "–") : el("th", { scope: "row" }, cell)));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, el("table", about,
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row))))));
}

// Data

const blocks = new Map();
function block(name) {
  if (!blocks.has(name)) blocks.set(name, unpacked(document.getElementById("data-" + name), name));
  return blocks.get(name);
}

async function unpacked(node, name) {
  if (!node) throw new Error(`The page has no block “${name}”: the file was cut short. Make it again.`);
  if (node.dataset.packed !== "gzip") return JSON.parse(node.textContent);
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser cannot unpack the trials. Update it, or make the page with --plain.");
  const packed = new Blob([bytesOf(node.textContent.trim())]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).json();
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let n = 0; n < raw.length; n++) bytes[n] = raw.charCodeAt(n);
  return bytes;
}

let index, trials, total, facets, columns, usual, numbers, peers;

function take(read) {
  index = read, trials = read.trials, total = trials.case.length;
  columns = new Map([
    ["category", { of: categoryOf }], ["cause", { of: causeOf }], ["status", { of: statusOf }],
    ...index.measures.map(({ name, better }) => [name, { values: trials.values[name], better }]),
    ["ms", { values: trials.ms, better: "lower", digits: 1 }],
    ["cost", { values: trials.cost, better: "lower", digits: 5 }],
    ["confidence", { values: trials.confidence, better: "higher" }],
  ].filter(([, column]) => column.of || column.values.some((value) => value != null)));
  for (const column of columns.values()) column.of ??= (n) => column.values[n];
  numbers = [...columns.keys()].filter((name) => columns.get(name).values);
  facets = facetsOf();
  const liked = ["hri", "faithfulness", "token_f1", "recall@5"].filter((name) => columns.has(name));
  usual = ["category", "cause", ...(liked.length ? liked : numbers.slice(0, 4)), "ms"].filter((name) => columns.has(name));
  usual = usual.filter((name) => !facets.has(name) || facets.get(name).counts.size > 1);
}

function facetsOf() {
  const labels = new Set(index.cases.flatMap((one) => Object.keys(one.labels)));
  const found = new Map([
    ["run", { of: (n) => runOf(n) }], ["experiment", { of: (n) => experimentOf(n).id }],
    ["type", { of: (n) => caseOf(n).type }], ["category", { of: categoryOf }], ["cause", { of: causeOf }],
    ["status", { of: statusOf }],
    ...[...labels].map((name) => ["label." + name, { of: (n) => caseOf(n).labels[name] ?? "" }]),
  ]);
  for (const facet of found.values()) facet.counts = counted(facet.of);
  return found;
}

function counted(of) {
  const counts = new Map();
  for (let n = 0; n < total; n++) counts.set(of(n), (counts.get(of(n)) ?? 0) + 1);
  return counts;
}

const caseOf = (n) => index.cases[trials.case[n]];
const experimentOf = (n) => index.experiments[trials.experiment[n]];
const runOf = (n) => index.runs[experimentOf(n).run].name;
const categoryOf = (n) => index.categories[trials.category[n]] ?? "";
const causeOf = (n) => index.causes[trials.cause[n]] ?? "";
const statusOf = (n) => index.states[trials.state[n]];
const systemOf = (n) => (index.runs.length > 1 ? runOf(n) + "/" : "") + experimentOf(n).id;
const addressOf = (n) => `${systemOf(n)}-${caseOf(n).id}`;

let addresses;
/** The trial of an address; of the first run where the address names none. */
function trialAt(address) {
  addresses ??= new Map(Array.from({ length: total }, (_, n) => [addressOf(n), n]));
  return addresses.get(address) ?? addresses.get(`${index.runs[0]?.name}/${address}`);
}

/** The trials of the same case, this one too. */
function peersOf(n) {
  if (!peers) {
    peers = new Map();
    trials.case.forEach((one, trial) => peers.set(one, [...(peers.get(one) ?? []), trial]));
  }
  return peers.get(trials.case[n]);
}

const searched = [], asked = [];
function textOf(n) {
  const one = trials.case[n];
  asked[one] ??= `${caseOf(n).query}\n${caseOf(n).truth}`.toLowerCase();
  return (searched[n] ??= `${addressOf(n)}\n${trials.answer[n]}`.toLowerCase()) + "\n" + asked[one];
}

function written(name, value) {
  if (value == null) return "–";
  return typeof value === "number" ? value.toFixed(columns.get(name)?.digits ?? 3) : value;
}

// The view and its fragment

const WORDS = ["q", "sort", "open", "with", "by"];
let view, found = [], shown = STEP;

function viewOf(fragment) {
  const read = { chosen: {}, ranges: {}, cols: usual, q: "", sort: "", open: "", with: "", by: "" };
  const query = fragment.startsWith("#trials?") ? fragment.slice(8) : "";
  for (const [name, value] of new URLSearchParams(query)) {
    if (WORDS.includes(name)) read[name] = value;
    else if (name === "cols") read.cols = value.split(",").filter((column) => columns.has(column));
    else if (facets.has(name)) read.chosen[name] = [...(read.chosen[name] ?? []), value];
    else if (numbers.includes(name)) readRange(read, name, value);
  }
  return read;
}

function readRange(read, name, value) {
  const ends = value.split("..").map((end) => (end.trim() === "" ? null : Number(end)));
  if (ends.length === 2 && !ends.some(Number.isNaN) && ends.some((end) => end != null)) read.ranges[name] = ends;
}

function fragmentOf(of) {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(of.chosen)) for (const value of values) query.append(name, value);
  for (const [name, ends] of Object.entries(of.ranges)) query.append(name, ends.map((end) => end ?? "").join(".."));
  if (of.cols.join() !== usual.join()) query.append("cols", of.cols.join());
  for (const name of WORDS) if (of[name]) query.append(name, of[name]);
  const text = query.toString().replaceAll("%2F", "/").replaceAll("%40", "@");
  return "#trials" + (text && "?" + text);
}

const linkTo = (n, change = {}) => fragmentOf({ ...view, open: addressOf(n), with: "", ...change });

/** Show another view. A quiet one replaces the last in the history: a letter typed is no step to go back to. */
function go(change, isQuiet = false) {
  const fragment = fragmentOf({ ...view, ...change });
  if (fragment === location.hash) return;
  history[isQuiet ? "replaceState" : "pushState"](null, "", fragment);
  render();
}

function choose(name, value, isOn) {
  const rest = (view.chosen[name] ?? []).filter((one) => one !== value);
  const { [name]: _, ...others } = view.chosen;
  const values = isOn ? [...rest, value] : rest;
  go({ chosen: values.length ? { ...others, [name]: values } : others });
}

function limit(name, ends, isQuiet) {
  const { [name]: _, ...others } = view.ranges;
  go({ ranges: ends.some((end) => end != null) ? { ...others, [name]: ends } : others }, isQuiet);
}

const clear = () => go({ chosen: {}, ranges: {}, q: "" });

// What matches

function matching({ chosen, ranges, q, sort }) {
  const tests = Object.entries(chosen).map(([name, values]) => {
    const kept = new Set(values), { of } = facets.get(name);
    return (n) => kept.has(of(n));
  });
  for (const [name, [least, most]] of Object.entries(ranges)) {
    const { values } = columns.get(name), low = least ?? -Infinity, high = most ?? Infinity;
    tests.push((n) => values[n] != null && values[n] >= low && values[n] <= high);
  }
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) tests.push((n) => { const text = textOf(n); return words.every((word) => text.includes(word)); });
  const kept = [];
  for (let n = 0; n < total; n++) if (tests.every((test) => test(n))) kept.push(n);
  return sorted(kept, sort);
}

/** What has no value stands last, whichever way. */
function sorted(kept, sort) {
  const isDown = sort.startsWith("-"), of = columns.get(sort.replace(/^-/, ""))?.of;
  if (!of) return sort === "-trial" ? kept.reverse() : kept;
  const way = isDown ? -1 : 1, isNone = (value) => value == null || value === "";
  return kept.sort((a, b) => {
    const one = of(a), other = of(b);
    if (isNone(one) || isNone(other)) return isNone(one) - isNone(other);
    return one < other ? -way : one > other ? way : 0;
  });
}

// The bar above the list

const search = el("input", { type: "search", id: "trials-q", "data-field": "q", autocomplete: "off", spellcheck: "false",
  placeholder: "question, answer, ground truth or id" });
const [chips, count, list, panel] = [
  el("div", { class: "chips", "data-chips": "" }), el("p", { role: "status", "data-count": "" }),
  el("div", { class: "list" }), el("section", { class: "opened", "data-panel": "", hidden: true, "aria-labelledby": "opened" })];
const help = el("details", { class: "pick", "data-help": "" }, el("summary", {}, "Keys"));

function bar() {
  let timer;
  const typed = (act) => () => { clearTimeout(timer); timer = setTimeout(act, 120); };
  search.addEventListener("input", typed(() => go({ q: search.value.trim() }, true)));
  const picks = [...facets].filter(([, { counts }]) => counts.size > 1 && counts.size <= MOST_VALUES).map(([name, { counts }]) =>
    pick(titleOf(name), name, [...counts], (value, isOn) => choose(name, value, isOn)));
  const cols = pick("Columns", "cols", [...columns.keys()].map((name) => [name]), (name, isOn) =>
    go({ cols: [...columns.keys()].filter((one) => (one === name ? isOn : view.cols.includes(one))) }));
  help.append(el("dl", { class: "menu keys" }, KEYS.map(([keys, what]) => el("div", {}, el("dt", {}, el("kbd", {}, keys)), el("dd", {}, what)))));
  return el("div", { class: "filters", role: "search", "aria-label": "Trials" },
    el("div", { class: "find" }, el("label", { for: search.id }, "Search"), search), el("div", { class: "picks" }, picks,
      numbers.length ? rangePick(typed) : null, cols, help), chips);
}

const titleOf = (name) => { const bare = name.replace(/^label\./, ""); return bare[0].toUpperCase() + bare.slice(1); };

function pick(title, name, values, act) {
  const one = ([value, many]) => el("label", {}, el("input", { type: "checkbox", value, name, onchange: ({ target }) => act(value, target.checked) }),
    said(value || "(none)"), many ? el("span", { class: "many" }, whole(many)) : null);
  return el("details", { class: "pick", name: "pick", "data-facet": name }, el("summary", {}, title),
    el("div", { class: "menu", role: "group", "aria-label": title }, values.map(one)));
}

function rangePick(typed) {
  const which = el("select", { "aria-label": "Measure", "data-field": "range" }, numbers.map((name) => el("option", { value: name }, name)));
  const ends = ["from", "to"].map((end) => el("input", { type: "number", step: "any", "data-field": end }));
  const fill = () => ends.forEach((end, n) => { end.value = view.ranges[which.value]?.[n] ?? ""; });
  const set = typed(() => limit(which.value, ends.map((end) => (end.value === "" ? null : Number(end.value))), true));
  which.addEventListener("change", fill);
  ends.forEach((end) => end.addEventListener("input", set));
  const box = el("details", { class: "pick", name: "pick", "data-facet": "range" }, el("summary", {}, "Range"), el("div", { class: "menu" }, which,
    el("div", { class: "ends" }, el("label", {}, "from ", ends[0]), el("label", {}, "to ", ends[1]))));
  box.addEventListener("toggle", fill);
  return box;
}

function syncBar() {
  if (document.activeElement !== search) search.value = view.q;
  for (const box of app.querySelectorAll(".pick input[type=checkbox]"))
    box.checked = (box.name === "cols" ? view.cols : view.chosen[box.name] ?? []).includes(box.value);
  const chip = (text, what, act) => button([said(text), el("span", { "aria-hidden": "true" }, " ×")], act, { "aria-label": `Remove the filter ${text}`, "data-chip": what });
  const on = [
    ...Object.entries(view.chosen).flatMap(([name, values]) => values.map((value) =>
      chip(`${titleOf(name)}: ${value || "(none)"}`, name, () => choose(name, value, false)))),
    ...Object.entries(view.ranges).map(([name, [low, high]]) =>
      chip(`${name} ${low ?? ""} … ${high ?? ""}`, name, () => limit(name, [null, null])))];
  if (view.q) on.push(chip(`Text: ${view.q}`, "q", () => { search.value = ""; go({ q: "" }); }));
  chips.replaceChildren(...on, ...(on.length > 1 ? [button("Clear filters", clear, { class: "plain", "data-clear": "" })] : []));
}

// The list

function renderList() {
  const many = found.length === total ? `${whole(total)} trials` : `${whole(found.length)} of ${whole(total)} trials`;
  count.replaceChildren(many, view.open && trialAt(view.open) == null ? [". No trial is called ", said(view.open), "."].reduce((all, one) => (all.append(one), all), el("span")) : "");
  if (!found.length) {
    const why = total ? "No trial matches these filters." : "The output holds no trial: nothing was selected, or nothing was kept.";
    list.replaceChildren(el("p", { class: "none", "data-none": "" }, why, " ", total ? button("Clear filters", clear, { "data-clear": "" }) : null));
    return;
  }
  const body = el("tbody", { onclick: clicked }, found.slice(0, shown).map(rowOf));
  const grid = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "List of trials" },
    el("table", { "data-trials": "" }, el("thead", {}, el("tr", {}, ["trial", ...view.cols].map(headOf))), body));
  list.replaceChildren(grid, shown < found.length ? more() : "");
}

function more() {
  const rest = Math.min(STEP, found.length - shown);
  return button(`Show ${rest} more`, () => { const at = shown; shown += STEP; renderList(); mark(); focusRow(at); }, { "data-more": "" });
}

function headOf(name) {
  const isDown = view.sort === "-" + name, isOn = isDown || view.sort === name;
  const first = columns.get(name)?.better === "lower" ? "-" : "";
  const next = !isOn ? first + name : isDown ? name : "-" + name;
  return el("th", { scope: "col", class: columns.get(name)?.values ? "num" : "", "aria-sort": isOn ? (isDown ? "descending" : "ascending") : null },
    button([name, el("span", { "aria-hidden": "true" }, isOn ? (isDown ? " ↓" : " ↑") : "")], () => { go({ sort: next }); app.querySelector(`[data-sort="${CSS.escape(name)}"]`)?.focus(); }, { "data-sort": name }));
}

function rowOf(n) {
  const cell = (name) => el("td", columns.get(name).values ? { class: "num" } : {}, said(written(name, columns.get(name).of(n)) || "–"));
  return el("tr", { "data-trial": addressOf(n) }, el("th", { scope: "row" }, el("a", { href: linkTo(n) }, said(addressOf(n))),
    el("span", { class: "asked", dir: "auto" }, caseOf(n).query.slice(0, 200))), view.cols.map(cell));
}

function clicked(event) {
  if (event.target.closest("a") || String(getSelection())) return;
  event.target.closest("tr")?.querySelector("a").click();
}

const rowAt = (address) => list.querySelector(`tr[data-trial="${CSS.escape(address)}"]`);

/** Say which row is open, and let the rows' links keep the rest of the view. */
function mark() {
  list.querySelector("tr[aria-current]")?.removeAttribute("aria-current");
  rowAt(view.open)?.setAttribute("aria-current", "true");
}

function focusRow(place) {
  if (place >= shown && place < found.length) { shown += STEP; renderList(); mark(); }
  list.querySelectorAll("tbody a")[place]?.focus();
}

// One trial

let turn = 0;
async function renderPanel(isMoved) {
  const mine = ++turn, n = trialAt(view.open);
  app.classList.toggle("is-open", n != null);
  panel.hidden = n == null;
  if (n == null) return panel.replaceChildren();
  const m = trialAt(view.with), other = m === n ? undefined : m;
  const inside = await bodyOf(n, other).catch((error) => [note(`The trial cannot be shown: ${error.message}`)]);
  if (mine !== turn) return;
  panel.replaceChildren(...[headline(n, other), inside].flat(Infinity).filter(Boolean));
  if (isMoved) reveal();
}

function reveal() {
  rowAt(view.open)?.scrollIntoView({ block: "nearest" });
  const head = panel.querySelector("h3");
  head.focus({ preventScroll: true });
  head.scrollIntoView({ block: "start" });
}

async function detailsOf(n) {
  const at = Math.floor(n / index.block);
  return [(await block(`trials-${at}`))[n - at * index.block], await block("texts")];
}

async function bodyOf(n, other) {
  const [about, texts] = await detailsOf(n);
  const common = [part("Question", "question", long(caseOf(n).query), pairs(about.inputs)), truth(n, about)];
  if (other != null) return [...common, sideBySide([n, about], [other, (await detailsOf(other))[0]], texts)];
  if (!Object.keys(about).length) return [...common, note(`No row of this trial was kept: it is ${statusOf(n)}.`)];
  return [...common, answer(n, about), cause(about), scores(n, about, texts), chunks(n, about, texts), candidates(n, about, texts),
    stages(about), decisions(about), about.steps ? fold(`Reasoning, ${about.steps.length} steps`, "steps", () => el("ol", {}, about.steps.map((step) => el("li", {}, long(step))))) : null,
    (about.prompts ?? []).map((sent, call) => fold(`Prompt as sent${about.prompts.length > 1 ? ` in call ${call + 1}` : ""}`, "prompt", () => prompt(sent, texts))),
    about.raw ? fold("Raw output", "raw", () => long(about.raw, undefined, "pre")) : null];
}

function headline(n, other) {
  const others = peersOf(n).filter((one) => one !== n);
  const one = caseOf(n), labels = Object.entries(one.labels).map(([name, value]) => `${name}: ${value}`);
  return [el("div", { class: "headline" }, el("h3", { id: "opened", tabindex: -1 }, said(addressOf(n)), other != null ? [" and ", said(addressOf(other))] : ""),
    el("div", { class: "acts" }, button("Copy link", copyLink, { "data-copy": "" }), button("Close", close, { "data-close": "" }))),
  el("ul", { class: "tags" }, [statusOf(n), one.type, ...labels, one.answerable ? "" : "not answerable", categoryOf(n), trials.abstained[n] ? "abstained" : ""]
    .filter(Boolean).map((tag) => el("li", {}, said(tag)))),
  others.length ? el("div", { class: "peers" }, el("span", {}, "Same question: "), others.map((peer) => el("span", { class: "peer" },
    el("a", { href: linkTo(peer), "data-peer": addressOf(peer) }, said(systemOf(peer))), " ",
    el("a", { href: linkTo(n, { with: peer === other ? "" : addressOf(peer) }), "data-with": addressOf(peer), "aria-label": `${addressOf(peer)} beside it` , class: "beside", "aria-current": peer === other ? "true" : null }, "beside")))) : null];
}

async function copyLink({ target }) {
  try {
    await navigator.clipboard.writeText(location.href);
    target.textContent = "Copied";
  } catch {
    const field = el("input", { readonly: true, value: location.href, "aria-label": "Link to this trial" });
    target.replaceWith(field);
    field.select();
  }
}

const pairs = (said_) => Object.keys(said_ ?? {}).length ? el("dl", { class: "facts" }, Object.entries(said_).map(([name, value]) =>
  el("div", {}, el("dt", {}, said(name)), el("dd", {}, long(typeof value === "string" ? value : JSON.stringify(value)))))) : null;

// Claims and quotes

/** Offsets count code points, a string of this language UTF-16 units. */
function unitsOf(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (offset) => offset;
  const at = [0];
  for (const sign of text) at.push(at[at.length - 1] + sign.length);
  return (offset) => at[Math.min(offset, at.length - 1)];
}

/** The text with ``ranges`` of it ([start, end, wrap] in code points) wrapped; of two that overlap, the first. */
function wrapped(text, ranges, draw = (shown) => [shown]) {
  const at = unitsOf(text);
  const places = ranges.map(([start, end, wrap]) => [at(start), at(end), wrap]).sort((a, b) => a[0] - b[0]);
  return (shown) => {
    const nodes = [];
    let done = 0;
    for (const [start, end, wrap] of places) {
      if (start < done || end <= start || start >= shown.length) continue;
      nodes.push(...draw(shown.slice(done, start)), wrap(draw(shown.slice(start, end))));
      done = end;
    }
    return [...nodes, ...draw(shown.slice(done))];
  };
}

const verdictOf = (value) => (value == null ? ["unsure", "?", "no verdict"] : value >= SUPPORTED ? ["good", "✓", "supported"] : ["bad", "✗", "not supported"]);

function sign(value) {
  const [tone, mark_, text] = verdictOf(value);
  return el("span", { class: `sign ${tone}` }, el("span", { "aria-hidden": "true" }, mark_), unseen(` (${text})`));
}

const claimedOf = (name) => index.measures.find((measure) => measure.name === name)?.claims ?? ["answer", "contexts"];
const claimRanges = (claims) => claims.filter((claim) => claim[1] >= 0).map(([value, start, end]) =>
  [start, end, (inside) => el("span", { class: `claim ${verdictOf(value)[0]}`, "data-claim": verdictOf(value)[2] }, inside, sign(value))]);

function jumpTo(place) {
  const chunk = panel.querySelector(`[data-chunk="${place}"]`);
  chunk?.focus({ preventScroll: true });
  chunk?.scrollIntoView({ block: "start" });
}
const sourceLink = (place) => button(`Source ${place}`, () => jumpTo(place), { class: "link", "data-source": place });

/** The text with each number in [Source n] linked to its chunk, or marked where there is none. */
function cited(about) {
  const many = about.context?.length ?? 0;
  const one = (piece) => (!/^\d+$/.test(piece) ? [piece] : +piece >= 1 && +piece <= many
    ? [button(piece, () => jumpTo(+piece), { class: "link", "data-source": +piece, "aria-label": `Source ${piece}` })]
    : [el("span", { class: "invalid", "data-invalid": "" }, piece, " ⚠", unseen(" (no such source)"))]);
  return (shown) => shown.split(/(\[\s*sources?\b[^\]]*\])/i).flatMap((piece, n) => (n % 2 ? piece.split(/(\d+)/).flatMap(one) : [piece]));
}

function byOf(about) {
  const names = Object.keys(about.claims ?? {});
  return names.includes(view.by) ? view.by : names.includes("faithfulness") ? "faithfulness" : names[0];
}

function truth(n, about) {
  const { truth: text, evidence, answerable } = caseOf(n), by = byOf(about);
  const ranges = by && claimedOf(by)[0] === "ground_truth" ? claimRanges(about.claims[by]) : [];
  return part("Ground truth", "truth", text ? long(text, wrapped(text, ranges)) : note(answerable ? "None is given." : "The documents do not answer this."),
    evidence.length ? fold(`Evidence, ${evidence.length} ${evidence.length > 1 ? "quotes" : "quote"}`, "evidence", () => el("ul", {}, evidence.map(([file, quote]) => el("li", {}, long(quote), note(said(file)))))) : null);
}

function answer(n, about) {
  const text = trials.answer[n], by = byOf(about), names = Object.keys(about.claims ?? {});
  const claims = about.claims?.[by] ?? [];
  const ranges = by && claimedOf(by)[0] === "answer" ? claimRanges(claims) : [];
  const failed = about.error ? el("p", { class: "prose bad", "data-error": "" }, `${about.error[1]} in ${about.error[0]}: `, said(about.error[2])) : null;
  return part("Answer", "answer", failed, trials.abstained[n] ? note("It abstained.") : null,
    text ? long(text, wrapped(text, ranges, cited(about))) : failed ? null : note("It is empty."),
    about.invalid?.length ? note(`Cited, but not in the prompt: ${about.invalid.map((one) => `Source ${one}`).join(", ")}.`) : null,
    names.length ? el("div", { class: "switch", role: "group", "aria-label": "Claims by" }, "Claims by ", names.map((name) =>
      button(name, () => { go({ by: name }); }, { "aria-pressed": String(name === by), "data-by": name }))) : null,
    claims.length ? el("ol", { class: "claims" }, claims.map((claim) => claimLine(n, by, claim))) : null);
}

function claimLine(n, by, [value, start, end, passage, own, reason]) {
  const [of, source] = claimedOf(by), text = of === "ground_truth" ? caseOf(n).truth : trials.answer[n], at = unitsOf(text);
  const where = passage == null ? null : source === "contexts" ? sourceLink(passage + 1) : source === "gold_pages" ? said(caseOf(n).gold[passage] ?? "") : null;
  return el("li", {}, sign(value), " ", el("b", {}, written("", value)), " ", said(own || (start >= 0 ? text.slice(at(start), at(end)) : "")), where ? [" ← ", where] : null,
    reason ? note(said(reason)) : null);
}

// The rest of a trial

function cause({ cause: why }) {
  if (!why) return null;
  const right = (value) => (value == null ? "not known" : value ? "right" : "wrong");
  return part("Why it failed", "cause", el("p", {}, el("strong", {}, said(why.cause)), why.detail ? [" · ", said(why.detail)] : null, why.observational ? " · observed, not tried" : null),
    why.evidence ? el("p", {}, said(why.evidence)) : null, why.remedy ? el("p", {}, "→ ", said(why.remedy)) : null,
    why.repaired_by ? note("Repaired by ", said(why.repaired_by), ".") : null, why.limits ? note(said(why.limits)) : null,
    why.reviewed ? note("Reviewed: ", said(why.reviewed)) : null,
    why.tried ? fold(`What was tried, ${why.tried.length}`, "tried", () => table("What was tried", ["changed", "came to", "answer"],
      why.tried.map(([name, text, value, reason]) => [said(name), [right(value), reason ? note(said(reason)) : null], long(text)]))) : null);
}

function scores(n, { gaps = {} }, texts) {
  const rows = index.measures.map(({ name }) => [name, trials.values[name][n], texts.names[gaps[name]]]).filter(([, value, gap]) => value != null || gap);
  return part("Scores", "scores", el("dl", { class: "scores" }, rows.map(([name, value, gap]) =>
    el("div", { "data-measure": name }, el("dt", {}, name), el("dd", {}, written(name, value), gap ? note(said(gap)) : null)))),
  rows.length ? null : note("Nothing was measured."));
}

const documentOf = (chunk) => chunk.slice(0, Math.max(0, chunk.lastIndexOf("#"))) || chunk;
const isGold = (n, chunk) => caseOf(n).gold.includes(documentOf(chunk)) || caseOf(n).gold.includes(chunk);
const goldMark = () => el("span", { class: "gold", "data-gold": "" }, "★ gold");

function chunks(n, { context = [] }, texts) {
  const one = ([number, signals, quotes], at) => {
    const [id, text, file, section, version, date] = texts.chunks[number];
    const about = [section, version && `version ${version}`, date].filter(Boolean);
    return el("article", { class: "chunk" }, el("h5", { tabindex: -1, "data-chunk": at + 1 }, `Source ${at + 1} `, said(file || id), isGold(n, id) ? [" ", goldMark()] : null),
      note(about.map((what) => [said(what), " · "]), Object.entries(signals).map(([name, value]) => `${name} ${value ?? "–"}`).join(" · ")),
      long(text, wrapped(text, quotes.map(([, start, end]) => [start, end, (inside) => el("mark", {}, inside)]))));
  };
  return part(`In the prompt, ${context.length} ${context.length === 1 ? "chunk" : "chunks"}`, "chunks", context.map(one));
}

function candidates(n, { candidates: found_, context = [] }, texts) {
  if (!found_) return null;
  const used = new Map(context.map(([number], at) => [texts.chunks[number][0], at + 1])), signals = Object.keys(found_.scores);
  const gold = found_.ids.filter((id) => isGold(n, texts.names[id])).length;
  const row = (id, at) => [at + 1, said(texts.names[id]), ...signals.map((name) => found_.scores[name][at]),
    used.has(texts.names[id]) ? sourceLink(used.get(texts.names[id])) : null, isGold(n, texts.names[id]) ? goldMark() : null];
  return fold(`Candidates, ${found_.ids.length}, ${gold || "none"} of them gold`, "candidates", () =>
    table("Candidates", ["rank", "chunk", ...signals, "in the prompt", "gold"], found_.ids.map(row)));
}

function stages({ stages: all = [], model, usage }) {
  const sum = all.reduce((ms, stage) => ms + (stage[1] ?? 0), 0) || 1;
  let done = 0;
  const line = ([name, ms, calls = [], detail]) => {
    const bar_ = el("span", { class: "bar" });
    bar_.style.marginLeft = `${(100 * done) / sum}%`;
    bar_.style.width = `${(100 * (ms ?? 0)) / sum}%`;
    done += ms ?? 0;
    return el("li", {}, el("span", {}, said(name)), el("span", { class: "num" }, `${written("ms", ms)} ms`), el("span", { class: "track" }, bar_),
      calls.map(([role, by, took, first, sent, got, isRecorded, retries]) => note(said(role), " ", said(by), `, ${written("ms", took)} ms`, first != null ? `, first token ${written("ms", first)} ms` : "",
        `, ${whole(sent)} → ${whole(got)} tokens`, isRecorded ? ", recorded" : "", retries ? `, ${retries} retries` : "")), pairs(detail));
  };
  return part("Stages", "stages", all.length ? el("ol", { class: "stages" }, all.map(line)) : null,
    usage?.[2] ? note(`${usage[2]} ${usage[2] > 1 ? "calls" : "call"}, ${whole(usage[0])} → ${whole(usage[1])} tokens`) : null);
}

const decisions = ({ decisions: all }) => all ? part("Decisions", "decisions", table("Decisions", ["decision", "outcome", "value", "threshold", "reason"],
  all.map(([name, outcome, ...rest]) => [said(name), said(outcome), rest[0], rest[1], rest[2] ? said(rest[2]) : null]))) : null;

const prompt = (messages, texts) => messages.map(([role, ...pieces]) => [el("h5", {}, said(role)),
  long(pieces.map((piece) => (piece < 0 ? texts.chunks[-piece - 1][1].trim() : texts.strings[piece])).join(""), undefined, "pre")]);

// Two side by side

/** Each text as [is common, words] pieces: a longest common sequence of words; null where they are too many. */
function differing(one, other) {
  const [a, b] = [one, other].map((text) => text.match(/\s*\S+\s*/g) ?? []), [c, d] = [a, b].map((words) => words.map((word) => word.trim()));
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return null;
  const wide = b.length + 1, best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
    best[i * wide + j] = c[i] === d[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  const left = [], right = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && c[i] === d[j]) { add(left, true, a[i++]); add(right, true, b[j++]); }
    else if (j >= b.length || (i < a.length && best[(i + 1) * wide + j] >= best[i * wide + j + 1])) add(left, false, a[i++]);
    else add(right, false, b[j++]);
  }
  return [left, right];
}

function add(pieces, isCommon, word) {
  const last = pieces[pieces.length - 1];
  if (last?.[0] === isCommon) last[1] += word;
  else pieces.push([isCommon, word]);
}

function sideBySide([n, about], [m, others], texts) {
  const texts_ = [n, m].map((one) => trials.answer[one]), pieces = differing(...texts_);
  const answerOf = (at) => (!texts_[at] ? note("No answer.") : !pieces ? long(texts_[at])
    : el("div", { class: "text", dir: "auto" }, pieces[at].map(([isCommon, text]) => (isCommon ? text : el(at ? "ins" : "del", {}, text)))));
  const column = (one, at, its) => el("div", { class: "column", "data-column": addressOf(one) }, el("h4", {}, el("a", { href: linkTo(one) }, said(addressOf(one)))),
    note([statusOf(one), categoryOf(one), causeOf(one)].filter(Boolean).map((what, k) => [k ? " · " : "", said(what)])), answerOf(at),
    its.error ? note(said(its.error[2])) : null);
  return [el("div", { class: "columns" }, column(n, 0, about), column(m, 1, others)),
    pieces ? null : note(`No difference of words is shown: an answer has over ${whole(MOST_WORDS)}.`),
    part("Scores", "difference", table("Scores and their difference", ["measure", systemOf(n), systemOf(m), "difference"], scoreRows(n, m))),
    part("Chunks in the prompt", "exchanged", exchanged(n, about, others, texts))];
}

function scoreRows(n, m) {
  const value = (name, text, tone = "") => el("td", { class: `num ${tone}` }, text);
  return numbers.map((name) => [name, columns.get(name)]).filter(([, { of }]) => of(n) != null || of(m) != null).map(([name, { of, better }]) => {
    const step = of(n) == null || of(m) == null ? null : of(m) - of(n), isBetter = better === "lower" ? step < 0 : step > 0;
    const text = step == null ? "–" : step ? `${step > 0 ? "+" : "−"}${written(name, Math.abs(step))} ${isBetter ? "better" : "worse"}` : "same";
    return [name, value(name, written(name, of(n))), value(name, written(name, of(m))), value(name, text, step ? (isBetter ? "good" : "bad") : "mute")];
  });
}

function exchanged(n, about, others, texts) {
  const [mine, theirs] = [about, others].map(({ context = [] }) => context.map(([number]) => number));
  const kinds = [["lost", mine.filter((one) => !theirs.includes(one))], ["gained", theirs.filter((one) => !mine.includes(one))], ["kept", mine.filter((one) => theirs.includes(one))]];
  return kinds.filter(([, all]) => all.length).map(([name, all]) => el("div", { "data-chunks": name }, el("h5", {}, `${titleOf(name)}, ${all.length}`),
    el("ul", {}, all.map((number) => el("li", {}, said(texts.chunks[number][0]), " ", el("span", { class: "mute" }, said(texts.chunks[number][3])), isGold(n, texts.chunks[number][0]) ? [" ", goldMark()] : null)))));
}

// Keys

const KEYS = [["j", "next trial"], ["k", "previous trial"], ["Enter", "open the trial"], ["Esc", "close it, or this list"], ["/", "search"], ["s", "side by side with the next experiment"], ["?", "these keys"]];

const placeOf = () => {
  const row = document.activeElement.closest?.("tr[data-trial]");
  return found.indexOf(trialAt(row ? row.dataset.trial : view.open) ?? -1);
};

function step(by) {
  const next = placeOf() + by;
  if (next < 0 || next >= found.length) return;
  if (!panel.hidden && !list.contains(document.activeElement)) return void (go({ open: addressOf(found[next]), with: "" }));
  focusRow(next);
}

function close() {
  const last = view.open;
  if (view.with) return go({ with: "" });
  go({ open: "", by: "" });
  (rowAt(last)?.querySelector("a") ?? list.querySelector("[tabindex]"))?.focus();
}

function beside() {
  const n = trialAt(view.open) ?? trialAt(document.activeElement.closest?.("tr[data-trial]")?.dataset.trial);
  if (n == null) return;
  const all = peersOf(n), at = all.indexOf(trialAt(view.with) ?? n);
  const next = [...all.slice(at + 1), ...all.slice(0, at)].find((one) => one !== n);
  if (next != null) go({ open: addressOf(n), with: addressOf(next) });
}

function escape() {
  const open = app.querySelector(".pick[open]");
  if (!open) return panel.hidden ? undefined : close();
  open.open = false;
  open.querySelector("summary").focus();
}

const ACTS = { j: () => step(1), k: () => step(-1), Escape: escape, "/": () => search.focus(), s: beside,
  "?": () => { help.open = !help.open; help.querySelector("summary").focus(); } };

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !Object.hasOwn(ACTS, event.key)) return;
  if (event.target.closest?.("input:not([type=checkbox]), select, textarea")) return;
  event.preventDefault();
  ACTS[event.key]();
}

// Together

let last = "", lastOpened = "";
function render() {
  view = viewOf(location.hash);
  const wanted = fragmentOf({ ...view, open: "", with: "", by: "" });
  if (wanted !== last) { found = matching(view); shown = STEP; last = wanted; }
  syncBar();
  renderList();
  mark();
  const opened = view.open + " " + view.with, isMoved = opened !== lastOpened && view.open !== "";
  lastOpened = opened;
  return renderPanel(isMoved);
}

async function start() {
  take(await block("index"));
  app.replaceChildren(bar(), count, el("div", { class: "split" }, list, panel));
  addEventListener("hashchange", () => {
    if (!/^#trials(\?|$)/.test(location.hash)) return;
    const wasOpen = view.open;
    render();
    if (!view.open && !wasOpen) document.getElementById("trials").scrollIntoView();
  });
  addEventListener("keydown", pressed);
  await render();
}

start().catch((error) => app.replaceChildren(el("p", { class: "prose bad", "data-broken": "" }, error.message)))
  .finally(() => { document.documentElement.dataset.ready = "true"; });
})();
