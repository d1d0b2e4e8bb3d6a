// In which order a search shows what it finds, and what it shows of a page. Sphinx loads this after
// its own script, and before the index.
const LISTS = ["names", "not-offered", "changelog", "architecture"]; // have words of all subjects
const isList = page => page.startsWith("reference/") || LISTS.includes(page);
var Scorer = { // the scores of Sphinx, but guides come before lists, unless the name of one is typed
  score: ([page, , , , score, , kind]) => score - (isList(page) && kind === "text" ? 6 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};

const perform = Search._performSearch, toText = Search.htmlToText;
Search._performSearch = (...query) => { // the best comes last; a page comes once, and its sections
  const seen = new Set();
  const isNew = ([page, , anchor, , , , kind]) => {
    const place = kind === "title" || kind === "object" ? page + anchor : page;
    return !seen.has(place) && !seen.has(page) && seen.add(place);
  };
  return perform(...query).reverse().filter(isNew).reverse();
};
Search.htmlToText = (html, anchor) => { // sentences, without code
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll("div.highlight, dt.sig, h1").forEach(element => element.remove());
  return toText(page.documentElement.outerHTML, anchor);
};
