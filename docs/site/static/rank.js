// Ranks the sections of all pages by a question: BM25 over the fields of a section. Every word counts by how rare it is
// on the whole site, and none is required, so a question in one's own words finds something. Sections come from
// sections.js: [page, anchor, heading, title of the page, text, readers' words]; SAME says which words mean the same.
// Weights were fitted to questions of readers: tests/browser/searches.jsonl.
const ranking = (() => {
  const FIELDS = { heading: [4, 0.2], page: [0.5, 0.2], words: [5, 0.2], text: [1, 0.4] }; // weight, and how length counts
  const SATURATED = 3; // a word that is there often counts at most 1 + this many times
  const PART = 0.5, NEAR = 0.4, SAME_WORD = 0.6; // a part of a name, a word that is like it, another word for it
  const REST_OF_PAGE = 0.3, BEST_OF_PAGE = 4;
  const IS_HEADING = 4, IN_HEADING = 1.6, IN_TEXT = 1.5;
  // Not shown: what scores less than this share of the best, or has less than this share of the question, by rarity.
  const WEAK = 0.2, LITTLE = 0.4;
  const BY_FOLDER = { tutorials: 1.2, "how-to": 1.3 };
  const LONGEST = 500;
  const TERM = /[\p{L}\p{N}_@^%~]+(?:[-.][\p{L}\p{N}_@^%~]+)*/gu;
  const unsaid = new Set([...stopwords, ..."per use using want need can get us may will also".split(" ")]);

  const stemmer = new Stemmer(), stems = new Map();
  const stem = (word) => {
    const lower = word.toLowerCase();
    if (!stems.has(lower)) stems.set(lower, stemmer.stemWord(lower));
    return stems.get(lower);
  };
  const isSaid = (word) => !unsaid.has(word.toLowerCase());
  const partsOf = (word) => word.split(/[-._@^%~]+/).filter((part) => part && isSaid(part));
  const wordsOf = (text) => text.match(TERM) || [];
  // "--rag-run" is found as it is written, and by its parts.
  const termsOf = (word) => [...new Set([word, ...partsOf(word)])].filter(isSaid).map(stem);

  const sections = SECTIONS.map(([path, anchor, heading, page, text, words]) => ({ path, anchor, heading, page, text, words }));
  const index = new Map(); // term -> section -> how often, by field and by the field's length
  const written = new Set(); // terms that a page has itself, not only the readers' words for it
  for (const [field, [weight, length]] of Object.entries(FIELDS)) {
    // The top of a page has its title as its heading; counted twice it would win over every other word.
    const said = sections.map((each) => (field === "page" && each.heading === each.page ? [] : wordsOf(each[field]).flatMap(termsOf)));
    const filled = said.filter((terms) => terms.length);
    const usual = filled.reduce((sum, terms) => sum + terms.length, 0) / filled.length;
    said.forEach((terms, id) => {
      for (const term of terms) {
        if (field !== "words") written.add(term);
        if (!index.has(term)) index.set(term, new Map());
        const often = index.get(term);
        often.set(id, (often.get(id) || 0) + weight / (1 - length + (length * terms.length) / usual));
      }
    });
  }
  const rarity = (term) => Math.log(1 + (sections.length - index.get(term).size + 0.5) / (index.get(term).size + 0.5));
  const same = new Map(Object.entries(SAME).map(([typed, other]) => [stem(typed), stem(other)]));

  // Letters to change, add, leave out or swap; not counted beyond ``most``.
  const slips = (one, other, most) => {
    if (Math.abs(one.length - other.length) > most) return most + 1;
    let before = [], row = [...Array(other.length + 1).keys()];
    for (let i = 1; i <= one.length; i++) {
      const next = [i];
      for (let j = 1; j <= other.length; j++) {
        const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
        const changed = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, changed, isSwapped ? before[j - 2] + 1 : Infinity));
      }
      if (Math.min(...next) > most) return most + 1;
      [before, row] = [row, next];
    }
    return row[other.length];
  };
  // A word that no page has may be the beginning of one, or a slip.
  const near = (word) => {
    const lower = word.toLowerCase(), most = lower.length > 8 ? 2 : lower.length > 4 ? 1 : 0;
    const isNear = (known) => (lower.length > 2 && known.startsWith(lower)) || (most && slips(lower, known, most) <= most);
    return [...new Set([...stems].filter(([known, term]) => index.has(term) && isNear(known)).map(([, term]) => term))];
  };

  // The words of a question, each with the terms that stand for it and their worth.
  const asked = (question) =>
    wordsOf(question).filter(isSaid).flatMap((word) => {
      const parts = partsOf(word), isWhole = index.has(stem(word));
      const names = parts.length < 2 && !isWhole ? parts.map((part) => [part, 1])
        : [...(isWhole ? [[word, 1]] : []), ...(parts.length > 1 ? parts.map((part) => [part, isWhole ? PART : 1]) : [])];
      return names.map(([name, worth]) => {
        const root = stem(name), isKnown = index.has(root), other = same.get(root);
        const terms = isKnown ? [[root, worth]] : near(name).map((term) => [term, NEAR * worth]);
        if (index.has(other)) terms.push([other, SAME_WORD * worth]);
        return { name, isWritten: written.has(root), terms };
      });
    });

  const add = (places, id, score, terms) => {
    const place = places.get(id) || { id, score: 0, terms: new Set() };
    place.score += score;
    terms.forEach((term) => place.terms.add(term));
    places.set(id, place);
  };
  const addWord = (places, { terms }) => {
    const best = new Map();
    for (const [term, worth] of terms)
      for (const [id, often] of index.get(term)) {
        const score = (worth * rarity(term) * often * (SATURATED + 1)) / (SATURATED + often);
        if (score > (best.get(id) || [0])[0]) best.set(id, [score, term]);
      }
    for (const [id, [score, term]] of best) add(places, id, score, [term]);
  };

  const plain = (text) => ` ${wordsOf(text).map(stem).join(" ")} `;
  // A heading that is the question, or has it in a row, leads; then a text that has three words or more in a row.
  const likeness = (phrase, { path, heading, text }) => {
    const own = plain(heading), isLong = phrase.trim().split(" ").length > 2;
    const said = own === phrase ? IS_HEADING : phrase.trim() && own.includes(phrase) ? IN_HEADING : isLong && plain(text).includes(phrase) ? IN_TEXT : 1;
    return said * (BY_FOLDER[path.split("/")[0]] || 1);
  };
  // What else the page has of the question counts for each of its places.
  const addPages = (places) => {
    const ofPage = new Map();
    for (const { id, score } of places.values()) ofPage.set(sections[id].path, [...(ofPage.get(sections[id].path) || []), score]);
    for (const [path, scores] of ofPage) ofPage.set(path, scores.sort((a, b) => b - a).slice(0, BEST_OF_PAGE).reduce((sum, each) => sum + each));
    for (const place of places.values()) place.score += REST_OF_PAGE * ofPage.get(sections[place.id].path);
  };

  // A place that has only what every page has of a question is no answer to it.
  const withoutWeak = (places, words) => {
    const worth = ({ terms }) => Math.max(0, ...terms.map(([term, each]) => each * rarity(term)));
    const has = (place, { terms }) => terms.some(([term]) => place.terms.has(term));
    const worths = words.map(worth);
    for (const place of places) place.share = words.reduce((sum, word, at) => sum + (has(place, word) ? worths[at] : 0), 0);
    const most = Math.max(...places.map(({ share }) => share));
    return places.filter(({ score, share }) => score > WEAK * places[0].score && share >= LITTLE * most);
  };

  const found = (typed) => {
    const question = typed.slice(0, LONGEST), words = asked(question), places = new Map();
    words.forEach((word) => addWord(places, word));
    const phrase = plain(question);
    for (const place of places.values()) place.score *= likeness(phrase, sections[place.id]);
    addPages(places);
    const sorted = [...places.values()].sort((a, b) => b.score - a.score || a.id - b.id);
    const unknown = [...new Set(words.filter(({ isWritten }) => !isWritten).map(({ name }) => name))];
    return { places: withoutWeak(sorted, words), unknown };
  };
  return { found, sections, TERM, termsOf };
})();
