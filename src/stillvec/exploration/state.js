// The state: what is asked stands behind the # of the address, so that links and the back button hold it.

const data = $("data");
const source = data ? new LocalSource(JSON.parse(data.textContent)) : new ServerSource();
const ROMAN = new Intl.NumberFormat("en");
let about, map, asking = 0;

function wordButton(word) {
  return make("button", { type: "button", class: "word", onclick: () => go("word", { w: word }) }, word);
}

function joinedWords(words) {
  return words.flatMap((word, place) => (place ? [", ", wordButton(word)] : [wordButton(word)]));
}

// the name of a set, which may be long: it breaks behind its signs
function named(name) {
  return name.split(/(?<=[-_./])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

function chip(text, todo) {
  return make("button", { type: "button", onclick: todo }, text);
}

function state() {
  const [view, asked = ""] = location.hash.slice(1).split("?");
  return [view || "word", new URLSearchParams(asked)];
}

function address(view, asked) {
  const written = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) for (const each of [value].flat()) if (each !== "" && each !== undefined) written.append(key, each);
  return `#${view}${[...written].length ? `?${written}` : ""}`;
}

function go(view, asked = {}) {
  const next = address(view, asked);
  if (next === location.hash) show();
  else location.hash = next;
}

const VIEWS = { word: showWord, analogy: showAnalogy, odd: showOdd, axes: showAxes, map: showMap };

async function show() {
  const [view, asked] = state();
  const known = Object.hasOwn(VIEWS, view) ? view : "word";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== `view-${known}`;
  $("trouble").hidden = true;
  const turn = (asking += 1);
  const current = () => turn === asking;
  try {
    await VIEWS[known](asked, current);
    document.body.dataset.shown = location.hash;
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    if (current()) complain(error, known, asked);
  }
}

function complain(error, view, asked) {
  const suggestions = (error.alike ?? []).map((word) => chip(word, () => (view === "word" ? go("word", { w: word }) : replaced(error, word, view, asked))));
  $("trouble").replaceChildren(error.message, " ", make("span", { class: "chips" }, ...suggestions));
  $("trouble").hidden = false;
  document.body.dataset.shown = location.hash;
}

function replaced(error, word, view, asked) {
  const wrong = error.message.match(/^The word '(.*)' is /s)?.[1];
  const next = {};
  for (const key of new Set(asked.keys())) next[key] = asked.getAll(key).map((each) => (each === wrong ? word : each));
  go(view, next);
}
