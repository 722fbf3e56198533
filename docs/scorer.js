// How the site's search orders what it finds. A title that is the question comes first, then one that has it in a row,
// then tasks and the reference; pages of figures come last. Sphinx asks this object.
var Scorer = (() => {
  const plain = (text) => (text || "").toLowerCase().replace(/[^a-z0-9@]+/g, " ").trim();
  const asked = plain(new URLSearchParams(window.location.search).get("q"));
  const byFolder = { tutorials: 4, "how-to": 5, reference: 4, explanation: 2, results: -4 };
  return {
    score: ([page, title, , , score]) => {
      // The title of a section is "Page > Section".
      const own = plain((title || "").split(" > ").pop());
      const exact = asked && own === asked ? 200 : asked && ` ${own} `.includes(` ${asked} `) ? 60 : 0;
      const demoted = page === "reference/requirements" ? -8 : 0; // links to all of it
      return score + exact + demoted + (byFolder[page.split("/")[0]] || 0);
    },
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
  };
})();
