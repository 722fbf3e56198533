// Shows the places that rank.js finds for what was typed.
(() => {
  const MOST = 30, MOST_OF_A_PAGE = 3, BEFORE = 60, AFTER = 160;
  const { sections, TERM, termsOf } = ranking;

  const marked = (text, terms) => {
    const places = [...text.matchAll(TERM)].filter(([word]) => termsOf(word).some((term) => terms.has(term)));
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
    item.appendChild(marked(text, terms));
    return item;
  };

  const counted = (places) => {
    const ofPage = {};
    return places
      .filter(({ id }) => (ofPage[sections[id].path] = (ofPage[sections[id].path] || 0) + 1) <= MOST_OF_A_PAGE)
      .slice(0, MOST);
  };

  const said = (asked, results, unknown) => {
    if (!asked) return "Type what you look for: an option, an error, a task.";
    if (!results.length) return `No page has any of the words of “${asked}”.`;
    const count = `${results.length === MOST ? "The best " : ""}${results.length} ${results.length === 1 ? "place" : "places"}`;
    const missing = unknown.length ? `No page has ${unknown.map((word) => `“${word}”`).join(" or ")}. ` : "";
    return `${missing}${count} for “${asked}”`;
  };

  const show = () => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim();
    boxes.forEach((box) => (box.value = asked));
    const { places, unknown } = ranking.found(asked);
    const results = counted(places);
    document.getElementById("search-results").replaceChildren(...results.map(shown));
    document.getElementById("search-state").textContent = said(asked, results, unknown);
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
