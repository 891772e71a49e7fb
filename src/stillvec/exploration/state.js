// The state of the page is in the part of the address after #, so that links and the back button restore it.

const data = $("data");
const source = data ? new LocalSource(JSON.parse(data.textContent)) : new ServerSource();
const NUMBERS = new Intl.NumberFormat("en");
let about, map, lastRequest = 0;

function wordButton(word) {
  return make("button", { type: "button", class: "word", onclick: () => go("word", { w: word, g: grouping() }) }, word);
}

// "1" where inflections are grouped; kept from word to word
function grouping() {
  const [view, params] = state();
  return view === "word" ? (params.get("g") ?? "") : "";
}

function joinWords(words) {
  return words.flatMap((word, index) => (index ? [", ", wordButton(word)] : [wordButton(word)]));
}

// a set's name may be long: it breaks after punctuation
function breakName(name) {
  return name.split(/(?<=[-_./])/).flatMap((part, index) => (index ? [make("wbr"), part] : [part]));
}

function chip(text, onclick) {
  return make("button", { type: "button", onclick }, text);
}

function state() {
  const [view, params = ""] = location.hash.slice(1).split("?");
  return [view || "map", new URLSearchParams(params)];
}

function address(view, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) for (const item of [value].flat()) if (item !== "" && item !== undefined) query.append(key, item);
  return `#${view}${[...query].length ? `?${query}` : ""}`;
}

function go(view, params = {}) {
  const hash = address(view, params);
  if (hash === location.hash) show();
  else location.hash = hash;
}

// one entry per view, in the order of the navigation: its link is a[data-view=NAME], its section #view-NAME
const VIEWS = { map: showMap, word: showWord, analogy: showAnalogy, odd: showOdd, axes: showAxes, documents: showDocuments };

async function show() {
  const [name, params] = state();
  const view = Object.hasOwn(VIEWS, name) ? name : "map";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = view;
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== `view-${view}`;
  $("error").hidden = true;
  const request = (lastRequest += 1);
  const isCurrent = () => request === lastRequest;
  try {
    await VIEWS[view](params, isCurrent);
    document.body.dataset.shown = location.hash;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    if (isCurrent()) showError(error, view, params);
  }
}

function showError(error, view, params) {
  const suggestions = (error.alike ?? []).map((word) => chip(word, () => (view === "word" ? go("word", { w: word }) : replaceWord(error.word, word, view, params))));
  $("error").replaceChildren(error.message, " ", make("span", { class: "chips" }, ...suggestions));
  $("error").hidden = false;
  document.body.dataset.shown = location.hash;
}

function replaceWord(wrong, word, view, params) {
  const corrected = {};
  for (const key of new Set(params.keys())) corrected[key] = params.getAll(key).map((value) => (value === wrong ? word : value));
  go(view, corrected);
}
