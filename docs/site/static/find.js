// Finds the sections that a reader's words are about, and shows them. Every word counts and none is required, so a
// question in one's own words finds something. Sections come from sections.js: [page, anchor, heading, title of the
// page, text, readers' words for the page].
(() => {
  const MOST = 30, MOST_OF_A_PAGE = 3, BEFORE = 60, AFTER = 160;
  const BY_FOLDER = { tutorials: 1.2, "how-to": 1.3, reference: 1.2, explanation: 1, results: 0.6 };
  const BY_PAGE = { "reference/requirements": 0.3 }; // has a word of everything
  const FIELDS = { heading: 3, page: 1, words: 4, text: 1 };
  const TERM = /[\p{L}\p{N}_@^%~]+(?:[-.][\p{L}\p{N}_@^%~]+)*/gu;

  const plain = (text) => ` ${(text.toLowerCase().match(TERM) || []).join(" ")} `;
  const stemmer = new Stemmer();

  // "--rag-run" is found as it is written, and by its parts.
  const tokenize = (text) =>
    (text.match(TERM) || []).flatMap((term) => {
      const parts = term.split(/[-._@^%~]/).filter(Boolean);
      return parts.length > 1 ? [term, ...parts] : parts;
    });
  // By its root, so that other forms are found, and as it is, so that a slip in it is near.
  const processTerm = (term) => {
    const lower = term.toLowerCase();
    return stopwords.has(lower) ? null : [...new Set([stemmer.stemWord(lower), lower])];
  };

  const known = new Set();
  const search = new MiniSearch({
    fields: Object.keys(FIELDS),
    storeFields: ["page", "heading", "path"],
    // The top of a page has its title as its heading; counted twice it would win over every other word.
    extractField: (section, name) => (name === "page" && section.heading === section.page ? "" : section[name]),
    tokenize,
    processTerm: (term) => {
      const terms = processTerm(term);
      (terms || []).forEach((each) => known.add(each));
      return terms;
    },
  });
  const sections = SECTIONS.map(([path, anchor, heading, page, text, words], id) => ({ id, path, anchor, heading, page, text, words }));
  search.addAll(sections);

  // A heading that is the question, or has it in a row, leads; then a text that has three words or more in a row.
  const likeness = (phrase) => (id, _term, { path, heading }) => {
    const isLong = phrase.trim().split(" ").length > 2;
    const own = plain(heading);
    const said = own === phrase ? 4 : phrase.trim() && own.includes(phrase) ? 2 : isLong && plain(sections[id].text).includes(phrase) ? 3 : 1;
    return said * (BY_PAGE[path] || BY_FOLDER[path.split("/")[0]] || 1);
  };

  const found = (asked) => {
    const ofPage = {};
    return search
      .search(asked, {
        boost: FIELDS,
        boostDocument: likeness(plain(asked)),
        processTerm,
        // A word that no page has may be the beginning of one, or a slip.
        prefix: (term) => !known.has(term) && term.length > 2,
        fuzzy: (term) => !known.has(term) && term.length > 4 && 0.25,
        // Few sections have words of readers, so how many they are says nothing.
        bm25: { k: 1.2, b: 0.3, d: 0.5 },
      })
      .filter(({ path }) => (ofPage[path] = (ofPage[path] || 0) + 1) <= MOST_OF_A_PAGE)
      .slice(0, MOST);
  };

  const marked = (text, terms) => {
    const places = [...text.matchAll(TERM)].filter(([word]) => tokenize(word).some((part) => (processTerm(part) || []).some((each) => terms.has(each))));
    const start = Math.max(0, (places.length ? places[0].index : 0) - BEFORE);
    const end = start + BEFORE + AFTER;
    const line = document.createElement("p");
    let at = start;
    for (const { 0: word, index } of places) {
      if (index < at || index + word.length > end) continue;
      line.append(text.slice(at, index));
      line.appendChild(document.createElement("mark")).textContent = word;
      at = index + word.length;
    }
    line.append(text.slice(at, end));
    if (start) line.prepend("…");
    if (end < text.length) line.append("…");
    return line;
  };

  const shown = ({ id, terms }) => {
    const { path, anchor, heading, page, text } = sections[id];
    const item = document.createElement("li");
    const link = item.appendChild(document.createElement("a"));
    link.href = `${path}.html${anchor ? `#${anchor}` : ""}`;
    link.textContent = heading === page ? page : `${page} › ${heading}`;
    item.appendChild(marked(text, new Set(terms)));
    return item;
  };

  const show = () => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim();
    boxes.forEach((box) => (box.value = asked));
    const results = asked ? found(asked) : [];
    document.getElementById("search-results").replaceChildren(...results.map(shown));
    document.getElementById("search-state").textContent = !asked
      ? "Type what you look for: an option, an error, a task."
      : results.length
        ? `${results.length === MOST ? "The best " : ""}${results.length} ${results.length === 1 ? "place" : "places"} for “${asked}”`
        : `No page has any of the words of “${asked}”.`;
  };

  // A further question needs no further loading.
  const boxes = document.querySelectorAll('input[name="q"]');
  boxes.forEach((box) =>
    box.form.addEventListener("submit", (event) => {
      event.preventDefault();
      window.history.pushState(null, "", `?q=${encodeURIComponent(box.value)}`);
      show();
    }),
  );
  window.addEventListener("popstate", show);
  show();
})();
