// The page: what is asked stands behind the # of its address, so that links and the back button hold it.
// Words enter as text, never as markup.

const $ = (id) => document.getElementById(id);
const data = $("data");
const source = data ? new LocalSource(JSON.parse(data.textContent)) : new ServerSource();
const ROMAN = new Intl.NumberFormat("en");
const ANALOGIES = [["man", "woman", "king"], ["france", "paris", "japan"], ["walk", "walked", "go"], ["good", "better", "bad"]];
const ODDS = [["breakfast", "cereal", "dinner", "lunch"], ["red", "green", "heavy", "blue"], ["violin", "piano", "flute", "painter"]];
const AXES = [
  ["he-she, man-woman", "", "doctor, nurse, engineer, teacher, pilot, dancer, soldier, librarian, king, queen, actor, actress"],
  ["small-large", "", "ant, mouse, cat, dog, pig, horse, elephant, whale, bee, goat, lion"],
  ["cold-hot", "bad-good", "ice, fire, winter, summer, storm, sun, hell, snow, coffee, war, love, fever, stove, friend, murder"],
];
let about, map, asking = 0;

function make(name, settings = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function wordButton(word) {
  return make("button", { type: "button", class: "word", onclick: () => go("word", { w: word }) }, word);
}

function joinedWords(words) {
  return words.flatMap((word, place) => (place ? [", ", wordButton(word)] : [wordButton(word)]));
}

function chip(text, todo) {
  return make("button", { type: "button", onclick: todo }, text);
}

// the state

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
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== known;
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

// a word

async function showWord(asked, current) {
  const word = asked.get("w"), k = Number(asked.get("k")) || 12;
  $("welcome").hidden = Boolean(word);
  $("found").hidden = true;
  document.title = word ? `${word} · word vectors` : "Word vectors";
  if (!word) return;
  $("typed").value = word;
  const [card, answers] = await Promise.all([source.ask("card", { word }), source.ask("neighbours", { word, k })]);
  if (!current()) return;
  $("found").hidden = false;
  const first = card.sets[0];
  const facts = [`rank ${ROMAN.format(first.rank)}`, first.count ? `seen ${ROMAN.format(first.count)} times` : "", PART_NAMES[card.part] ?? ""];
  const onMap = make("a", { href: address("map", { w: card.word }) }, "on the map");
  $("head").replaceChildren(make("h1", {}, card.word), make("p", { class: "facts" }, facts.filter(Boolean).join(" · "), " · ", onMap));
  drawColumns($("neighbours"), answers);
  $("more").hidden = k > 12;
  $("more").onclick = () => go("word", { w: word, k: 40 });
  $("agreement").textContent = agreement(answers, k);
  drawCard(card);
  if (about.corpus) drawExamples(card.word, current);
}

const PART_NAMES = { noun: "noun", verb: "verb", adj: "adjective", adv: "adverb" };

function agreement(answers, k) {
  const there = answers.filter((each) => each.found);
  if (there.length < 2) return "";
  const all = there[0].found.filter(([, , sets]) => sets.length === there.length).length;
  return `${all} of ${k} neighbours stand in ${there.length === 2 ? "both" : "all three"} lists; dots say in which others a word stands.`;
}

function drawCard(card) {
  const rows = card.sets.map((set) => make("tr", {},
    make("th", { scope: "row" }, dotOf(set.name), set.name),
    ...[ROMAN.format(set.rank), set.count ? ROMAN.format(set.count) : "–", set.norm.toPrecision(3)].map((text) => make("td", {}, text))));
  const head = make("tr", {}, make("th", {}, "vectors"), ...["rank", "count", "length"].map((text) => make("th", { class: "num" }, text)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const layers = make("dl");
  for (const [name, near] of card.layers ?? []) layers.append(make("dt", {}, name), make("dd", {}, ...joinedWords(near.map(([word]) => word))));
  const list = make("dl");
  for (const [relation, words] of Object.entries(card.relations ?? {})) {
    list.append(make("dt", {}, relation), make("dd", {}, ...joinedWords(words)));
  }
  $("card").replaceChildren(table, ...(layers.children.length ? [make("h2", {}, "Layer by layer"), layers] : []), ...(list.children.length ? [make("h2", {}, "In the lexicon"), list] : []), make("div", { id: "sentences" }));
}

async function drawExamples(word, current) {
  const place = $("sentences");
  place.replaceChildren(make("h2", {}, "In the corpus"), make("p", { class: "note" }, "reading …"));
  const answer = await source.ask("examples", { word });
  if (!current()) return;
  const quotes = answer.found.map(([before, it, behind]) => make("blockquote", {}, before, make("mark", {}, it), behind));
  const read = `${ROMAN.format(answer.read)} sentences`;
  const note = quotes.length ? "" : answer.ended ? `Not in the ${read} of the corpus.` : `Not in the first ${read}; time was up.`;
  place.replaceChildren(make("h2", {}, "In the corpus"), ...quotes, ...(note ? [make("p", { class: "note" }, note)] : []));
}

function dotOf(name) {
  return make("span", { class: `dot s${about.sets.findIndex((set) => set.name === name)}` });
}

// lists side by side: a bar a score, and a dot for every other set that has the word

function drawColumns(place, answers, odd = false) {
  place.classList.toggle("several", answers.length > 1);
  place.style.setProperty("--sets", answers.length);
  const there = answers.filter((each) => each.found).length;
  place.replaceChildren(...answers.map((answer, number) => {
    const column = make("div", { class: `s${number}` }, make("h3", {}, dotOf(answer.name), answer.name));
    if (answer.error) {
      const alike = joinedWords(answer.alike);
      column.append(make("p", { class: "lacks" }, "lacks a word here", ...(alike.length ? ["; it has ", ...alike] : []), "."));
      return column;
    }
    const top = Math.max(...answer.found.map(([, score]) => score), 1e-9);
    const items = answer.found.map(([word, score, sets = []], rank) => {
      const others = sets.filter((each) => each !== number);
      const also = make("span", { class: "also" }, ...others.map((each) => make("span", { class: `dot s${each}`, title: `also in ${about.sets[each].name}` })));
      const item = make("li", {}, wordButton(word), also, make("span", { class: "value" }, score.toFixed(3)));
      item.style.setProperty("--share", `${100 * clamp(score / Math.max(top, odd ? top : 1), 0, 1)}%`);
      item.dataset.word = word;
      if (sets.length === there && there > 1) item.classList.add("all");
      if (odd && !rank) item.classList.add("out");
      for (const [name, on] of [["pointerenter", true], ["pointerleave", false]]) item.addEventListener(name, () => light(place, word, on));
      return item;
    });
    column.append(make("ol", {}, ...items));
    return column;
  }));
}

function light(place, word, on) {
  const same = [...place.querySelectorAll("li")].filter((item) => item.dataset.word === word);
  for (const item of same) item.classList.toggle("same", on && same.length > 1);
}

// analogies, the odd one

async function showAnalogy(asked, current) {
  const form = $("ask-analogy");
  const [a, b, c] = ["a", "b", "c"].map((name) => asked.get(name) ?? "");
  const method = asked.get("m") ?? "3cosadd";
  Object.entries({ a, b, c }).forEach(([name, value]) => { form.elements[name].value = value; });
  $("method").value = method;
  $("answer").textContent = "what?";
  $("analogous").replaceChildren();
  document.title = a ? `${a} : ${b} = ${c} : ? · word vectors` : "Analogy · word vectors";
  if (!(a && b && c)) return;
  const answers = await source.ask("analogy", { a, b, c, method });
  if (!current()) return;
  $("answer").textContent = answers.find((each) => each.found)?.found[0]?.[0] ?? "what?";
  drawColumns($("analogous"), answers);
}

function listed(text) {
  return text.split(/[,;\n]/).map((word) => word.trim()).filter(Boolean);
}

async function showOdd(asked, current) {
  const words = asked.getAll("w");
  $("ask-odd").elements.words.value = words.join(", ");
  $("odd-ones").replaceChildren();
  document.title = "Odd one out · word vectors";
  if (!words.length) return;
  const answers = await source.ask("odd", { word: words });
  if (current()) drawColumns($("odd-ones"), answers, true);
}

// axes

function ends(text) {
  return listed(text).flatMap((pair) => {
    const parts = [":", " - ", " – ", "–", "-"].map((mark) => pair.split(mark)).find((each) => each.length === 2 && each.every((end) => end.trim()));
    if (!parts) throw new Trouble(`An axis is made of two words with a hyphen or a colon between them, and '${pair}' came; write he-she.`);
    return parts.map((end) => end.trim());
  });
}

async function showAxes(asked, current) {
  const form = $("ask-axes"), [x, y, words] = ["x", "y", "words"].map((name) => asked.get(name) ?? "");
  Object.entries({ x, y, words }).forEach(([name, value]) => { form.elements[name].value = value; });
  form.elements.set.value = about.sets.some((set) => set.name === asked.get("set")) ? asked.get("set") : about.sets[0].name;
  $("laid").replaceChildren();
  document.title = x ? `${x} · word vectors` : "Axes · word vectors";
  if (!x) return;
  const question = { set: form.elements.set.value, x: ends(x), y: y ? ends(y) : [], word: listed(words) };
  const answer = await source.ask("axes", question);
  if (!current()) return;
  $("laid").replaceChildren(answer.y ? plane(answer, question) : strip(answer, question));
  if (answer.unknown.length) $("laid").append(make("figcaption", { class: "note" }, `Not in these vectors: ${answer.unknown.join(", ")}.`));
}

function svg(name, settings = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(settings)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawnWord(word, ...shapes) {
  const node = svg("g", { role: "link", tabindex: 0, "aria-label": word }, ...shapes);
  const open = () => go("word", { w: word });
  node.addEventListener("click", open);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return node;
}

function spread(values, least = 1) {
  const low = Math.min(-least, ...values), high = Math.max(least, ...values), room = (high - low) * 0.08;
  return [low - room, high + room];
}

const sides = (list) => [0, 1].map((half) => list.filter((_, i) => i % 2 === half).join(", "));

// one axis: words over and under a line, each in the first row that has room
function strip(answer, question) {
  const width = clamp($("laid").clientWidth || 900, 340, 1200), [low, high] = spread(answer.x);
  const at = (value) => 20 + ((value - low) / (high - low)) * (width - 40);
  const rows = [], placed = [];
  const order = answer.words.map((word, i) => [word, answer.x[i]]).sort((p, q) => p[1] - q[1]);
  for (const [word, value] of order) {
    const half = word.length * 3.9 + 6, x = clamp(at(value), half + 4, width - half - 4);
    let row = rows.findIndex((taken) => taken <= x - half);
    if (row < 0) row = rows.push(0) - 1;
    rows[row] = x + half;
    placed.push({ word, value, x, row });
  }
  const above = Math.ceil(rows.length / 2), middle = 30 + above * 24, height = middle + (rows.length - above) * 24 + 62;
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawn s0", role: "img", "aria-label": `Words from ${sides(question.x).join(" to ")}` });
  drawn.append(svg("line", { x1: 10, x2: width - 10, y1: middle, y2: middle, class: "rule" }));
  for (const tick of [-1, 0, 1]) drawn.append(svg("line", { x1: at(tick), x2: at(tick), y1: middle - 7, y2: middle + 7, class: "rule" }));
  for (const { word, value, x, row } of placed) {
    const y = row % 2 ? middle + 22 + Math.floor(row / 2) * 24 : middle - 20 - Math.floor(row / 2) * 24;
    drawn.append(drawnWord(word,
      svg("line", { x1: at(value), y1: middle, x2: x, y2: row % 2 ? y - 10 : y + 4, class: "stem" }),
      svg("circle", { cx: at(value), cy: middle, r: 4 }),
      svg("title", {}, `${word}: ${value.toFixed(2)}`),
      svg("text", { x, y: y + (row % 2 ? 2 : 0), "text-anchor": "middle" }, word)));
  }
  const [left, right] = sides(question.x);
  drawn.append(svg("text", { x: at(-1), y: height - 14, class: "end", "text-anchor": at(-1) < width * 0.25 ? "start" : "middle" }, `← ${left}`));
  drawn.append(svg("text", { x: at(1), y: height - 14, class: "end", "text-anchor": at(1) > width * 0.75 ? "end" : "middle" }, `${right} →`));
  return drawn;
}

function plane(answer, question) {
  const width = clamp($("laid").clientWidth || 900, 340, 1200), height = clamp(width * 0.62, 420, 640);
  const [x0, x1] = spread(answer.x, 0.3), [y0, y1] = spread(answer.y, 0.3);
  const across = (value) => 16 + ((value - x0) / (x1 - x0)) * (width - 32);
  const up = (value) => height - 30 - ((value - y0) / (y1 - y0)) * (height - 60);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawn s0", role: "img", "aria-label": "Words on two axes" });
  drawn.append(svg("line", { x1: 0, x2: width, y1: up(0), y2: up(0), class: "rule" }), svg("line", { x1: across(0), x2: across(0), y1: 0, y2: height, class: "rule" }));
  const [left, right] = sides(question.x), [below, above] = sides(question.y);
  const boxes = new Boxes(width, height);
  const wide = (text) => 8 * (text.length + 3);
  for (const [x, y, text] of [[10, up(0) - 8, left], [width - 10 - wide(right), up(0) - 8, right], [across(0) + 8, height - 10, below], [across(0) + 8, 18, above]]) boxes.take(x, y - 11, x + wide(text), y + 3);
  answer.words.forEach((_, i) => boxes.take(across(answer.x[i]) - 3, up(answer.y[i]) - 3, across(answer.x[i]) + 3, up(answer.y[i]) + 3));
  drawn.append(
    svg("text", { x: 10, y: up(0) - 8, class: "end" }, `← ${left}`), svg("text", { x: width - 10, y: up(0) - 8, class: "end", "text-anchor": "end" }, `${right} →`),
    svg("text", { x: across(0) + 8, y: height - 10, class: "end" }, `↓ ${below}`), svg("text", { x: across(0) + 8, y: 18, class: "end" }, `↑ ${above}`));
  answer.words.forEach((word, i) => {
    const x = across(answer.x[i]), y = up(answer.y[i]), half = word.length * 3.7 + 3;
    const tries = [[0, -9], [0, 18], [half + 7, 4], [-half - 7, 4], [half, -10], [-half, -10], [half, 18], [-half, 18], [0, -24], [0, 33]].map(([dx, dy]) => [clamp(x + dx, half + 2, width - half - 2), y + dy]);
    const [tx, ty] = tries.find(([a, b]) => boxes.take(a - half, b - 11, a + half, b + 3)) ?? tries[0];
    drawn.append(drawnWord(word, svg("circle", { cx: x, cy: y, r: 4 }), svg("title", {}, `${word}: ${answer.x[i].toFixed(2)}, ${answer.y[i].toFixed(2)}`), svg("text", { x: tx, y: ty, "text-anchor": "middle" }, word)));
  });
  return drawn;
}

// the map

const laid = new Map();

async function showMap(asked, current) {
  const name = about.sets.some((set) => set.name === asked.get("set")) ? asked.get("set") : about.sets[0].name;
  $("map-set").value = name;
  document.title = "Map · word vectors";
  map ??= new WordMap($("canvas"), { over: hover, chosen: (word) => keep({ w: word ?? undefined }, true), moved: () => keepView() });
  if (!laid.has(name)) laid.set(name, await layMap(name, current));
  const told = laid.get(name);
  if (!current() || !told) return laid.delete(name);
  $("progress").hidden = true;
  $("colour").querySelector('[value="part"]').hidden = !told.part;
  const colour = asked.get("colour") === "part" && !told.part ? "cluster" : (asked.get("colour") ?? "cluster");
  $("colour").value = colour;
  map.only = asked.has("only") ? Number(asked.get("only")) : -1;
  paintMap(told, colour);
  const at = (asked.get("at") ?? "").split(",").map(Number);
  const word = asked.get("w"), fresh = map.shownWord !== word || map.shownSet !== name;
  map.shownWord = word;
  map.shownSet = name;
  if (at.length === 3 && at.every(Number.isFinite)) map.view = { x: at[0], y: at[1], zoom: clamp(at[2], 0.8, 400) };
  else if (!word) map.view = { x: 0, y: 0, zoom: 1 };
  const whole = about.sets.find((set) => set.name === name);
  const all = whole.whole ?? whole.words;
  const which = told.words.length < all ? `the ${ROMAN.format(told.words.length)} most frequent of ${ROMAN.format(all)} words` : `all ${ROMAN.format(all)} words`;
  $("about-map").textContent = `t-SNE of ${which}, from the 30 nearest neighbours of each. Near is alike; what lies far apart may be more or less so. Clusters are those of the whole vectors (k-means), named by the most central of their frequent words.`;
  await chooseOnMap(word, name, fresh && at.length !== 3, current);
  map.draw();
}

async function layMap(name, current) {
  for (;;) {
    const answer = await source.ask("map", { set: name });
    if (answer.words) {
      const places = new Uint16Array(bytes(answer.places).buffer);
      return { ...answer, places: Float32Array.from(places, (each) => (each / 65535) * 2 - 1), cluster: bytes(answer.cluster), part: answer.part && bytes(answer.part) };
    }
    if (!current()) return null;
    $("progress").hidden = false;
    $("progress").querySelector("p").textContent = `The map of ${name} is made once, then kept: ${answer.stage}.`;
    const bar = $("progress").querySelector("progress");
    if (answer.total) bar.value = answer.done / answer.total;
    else bar.removeAttribute("value");
    await new Promise((done) => setTimeout(done, 400));
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");

function palette(kind, count) {
  const style = getComputedStyle(document.documentElement);
  if (kind === "part") return [0, 1, 2, 3, 4].map((n) => style.getPropertyValue(`--c${n}`).trim());
  if (kind === "frequency") return [...Array(count).keys()].map((n) => `oklch(${dark.matches ? 0.9 - (0.5 * n) / count : 0.36 + (0.46 * n) / count} ${0.13 - (0.1 * n) / count} 250)`);
  return [...Array(count).keys()].map((n) => `oklch(${(dark.matches ? 0.75 : 0.55) + (n % 2 ? 0.07 : -0.03)} 0.13 ${((n * 7) % count) * (360 / count)})`);
}

function paintMap(told, kind) {
  const n = told.words.length, bins = 10;
  const groups = kind === "cluster" ? told.cluster : kind === "part" ? told.part : Uint8Array.from({ length: n }, (_, row) => Math.min(bins - 1, Math.floor((bins * Math.log(row + 1)) / Math.log(n + 1))));
  const colours = palette(kind, kind === "cluster" ? told.clusters.length : bins);
  map.titles = kind === "cluster" ? told.titles ??= titlesOf(told) : null;
  map.show(told.words, told.places, groups, colours);
  const legend = { cluster: () => told.clusters.map((words) => words.join(", ")), part: () => ["not in the lexicon", "noun", "verb", "adjective", "adverb"], frequency: () => colours.map((_, at) => `from rank ${ROMAN.format(Math.max(1, Math.ceil(Math.exp((at / bins) * Math.log(n + 1)))))}`) }[kind]();
  $("legend").replaceChildren(...legend.map((text, group) => {
    const dot = make("span", { class: "dot" });
    dot.style.setProperty("--c", colours[group]);
    const pressed = map.only === group;
    return make("li", {}, make("button", { type: "button", "aria-pressed": pressed, onclick: () => keep({ only: pressed ? undefined : group }, true) }, dot, text));
  }));
}

// a cluster's name stands at its member that is nearest to the middle of most of them
function titlesOf(told) {
  return told.clusters.map((words, group) => {
    const rows = [...told.cluster.keys()].filter((row) => told.cluster[row] === group);
    const middle = [0, 1].map((axis) => rows.map((row) => told.places[2 * row + axis]).sort((p, q) => p - q)[rows.length >> 1]);
    const far = (row) => (told.places[2 * row] - middle[0]) ** 2 + (told.places[2 * row + 1] - middle[1]) ** 2;
    return { group, text: words[0] ?? "", size: rows.length, row: rows.reduce((best, row) => (far(row) < far(best) ? row : best), rows[0] ?? 0) };
  }).sort((p, q) => q.size - p.size);
}

function hover(word, x, y) {
  const under = $("under");
  under.hidden = !word;
  if (!word) return;
  under.textContent = word;
  under.style.left = `${x}px`;
  under.style.top = `${y}px`;
}

async function chooseOnMap(word, name, fly, current) {
  const panel = $("panel");
  panel.hidden = true;
  map.chosen = -1;
  map.marked = [];
  if (!word) return;
  const number = about.sets.findIndex((set) => set.name === name);
  const [card, answers] = await Promise.all([source.ask("card", { word }), source.ask("neighbours", { word, k: 10 })]);
  if (!current()) return;
  const found = answers[number].found ?? [], own = card.sets.find((set) => set.name === name);
  if (!own) throw new Trouble(`The word '${word}' is not in ${name}.`);
  map.chosen = map.index.get(own.word) ?? -1;
  map.marked = found.map(([each]) => map.index.get(each) ?? -1).filter((row) => row >= 0);
  const facts = [`rank ${ROMAN.format(own.rank)}`, own.count ? `seen ${ROMAN.format(own.count)} times` : "", PART_NAMES[card.part] ?? ""].filter(Boolean).join(" · ");
  const list = found.map(([each, score]) => make("li", {}, make("button", { type: "button", class: "word", onclick: () => keep({ w: each, at: undefined }, true) }, each), make("span", {}, score.toFixed(3))));
  const missing = map.chosen < 0 ? [make("p", { class: "note" }, "It is not among the words of the map.")] : [];
  panel.replaceChildren(
    make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => keep({ w: undefined }, true) }, "×"),
    make("h2", {}, own.word), make("div", { class: "note" }, facts), ...missing, make("ol", {}, ...list),
    make("a", { href: address("word", { w: own.word }) }, "its card"));
  panel.hidden = false;
  if (fly && map.chosen >= 0) map.goTo(own.word);
}

function keep(change, step = false) {
  const [, asked] = state();
  const { x, y, zoom } = map.view;
  const next = { set: asked.get("set") ?? undefined, colour: asked.get("colour") ?? undefined, w: asked.get("w") ?? undefined, only: asked.get("only") ?? undefined, at: [x.toFixed(4), y.toFixed(4), zoom.toFixed(2)].join(","), ...change };
  const hash = address("map", next);
  if (step) location.hash = hash;
  else history.replaceState(null, "", hash);
}

let keeping;
function keepView() {
  clearTimeout(keeping);
  keeping = setTimeout(() => { if (state()[0] === "map") keep({}); }, 150);
}

// the search: completion as a combobox

let picked = -1, typing = 0;

async function complete() {
  const typed = $("typed").value, turn = (typing += 1);
  const words = typed.trim() ? await source.ask("complete", { typed }).catch(() => []) : [];
  if (turn !== typing) return;
  picked = -1;
  $("completions").replaceChildren(...words.map((word, at) => make("li", { role: "option", id: `completion-${at}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); found(word); } }, word)));
  listing(words.length > 0 && document.activeElement === $("typed"));
}

function listing(open) {
  $("completions").hidden = !open;
  $("typed").setAttribute("aria-expanded", open);
  if (!open) $("typed").removeAttribute("aria-activedescendant");
}

function pick(step) {
  const options = [...$("completions").children];
  if (!options.length) return;
  picked = (picked + step + options.length + (picked < 0 && step < 0 ? 1 : 0)) % options.length;
  options.forEach((option, at) => option.setAttribute("aria-selected", at === picked));
  $("typed").setAttribute("aria-activedescendant", options[picked].id);
}

function found(word) {
  typing += 1;
  listing(false);
  $("typed").value = word;
  $("typed").blur();
  if (state()[0] === "map") keep({ w: word, at: undefined }, true);
  else go("word", { w: word });
}

function listen() {
  $("typed").addEventListener("input", complete);
  $("typed").addEventListener("focus", () => { $("typed").select(); });
  $("typed").addEventListener("blur", () => listing(false));
  $("typed").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); pick(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Escape") { listing(false); $("typed").blur(); }
  });
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const word = $("completions").children[picked]?.textContent ?? $("typed").value.trim();
    if (word) found(word);
  });
  $("ask-analogy").addEventListener("submit", (event) => {
    event.preventDefault();
    const [a, b, c] = ["a", "b", "c"].map((name) => event.target.elements[name].value.trim());
    go("analogy", { a, b, c, m: $("method").value === "3cosadd" ? "" : $("method").value });
  });
  $("method").addEventListener("change", () => $("ask-analogy").requestSubmit());
  $("ask-odd").addEventListener("submit", (event) => {
    event.preventDefault();
    go("odd", { w: listed(event.target.elements.words.value) });
  });
  $("ask-axes").addEventListener("submit", (event) => {
    event.preventDefault();
    const { x, y, words, set } = event.target.elements;
    go("axes", { x: x.value.trim(), y: y.value.trim(), words: words.value.trim(), set: set.value === about.sets[0].name ? "" : set.value });
  });
  $("map-set").addEventListener("change", (event) => keep({ set: event.target.value, only: undefined }, true));
  $("colour").addEventListener("change", (event) => keep({ colour: event.target.value, only: undefined }, true));
  $("closer").addEventListener("click", () => map?.look(map.view.x, map.view.y, map.view.zoom * 1.6));
  $("farther").addEventListener("click", () => map?.look(map.view.x, map.view.y, map.view.zoom / 1.6));
  $("whole").addEventListener("click", () => map?.look(0, 0, 1));
  dark.addEventListener("change", show);
  document.addEventListener("keydown", (event) => {
    const writing = event.target.matches("input, select, textarea");
    const view = Object.keys(VIEWS)[Number(event.key) - 1];
    if (event.key === "/" && !writing) { event.preventDefault(); $("typed").focus(); }
    else if (event.altKey && view) { event.preventDefault(); go(view); }
    else if (state()[0] === "map" && !writing && !event.altKey && event.target !== $("canvas") && /^([+=\-0]|Arrow.*)$/.test(event.key) && !event.target.matches("#panel *")) map?.key(event);
  });
  window.addEventListener("hashchange", show);
}

async function begin() {
  about = await source.ask("about");
  $("sets").replaceChildren(...about.sets.map(({ name, words, dim, whole }) => make("li", {}, dotOf(name), make("b", {}, name), ` ${ROMAN.format(words)}${whole > words ? ` of ${ROMAN.format(whole)}` : ""} words × ${dim}`)));
  for (const place of [$("map-set"), $("ask-axes").elements.set]) place.append(...about.sets.map(({ name }) => make("option", { value: name }, name)));
  $("frequent").append(...about.frequent.slice(0, 24).map((word) => chip(word, () => go("word", { w: word }))));
  $("analogies").append(...ANALOGIES.map(([a, b, c]) => chip(`${a} : ${b} = ${c} : ?`, () => go("analogy", { a, b, c }))));
  $("odds").append(...ODDS.map((words) => chip(words.join(", "), () => go("odd", { w: words }))));
  $("axis-examples").append(...AXES.map(([x, y, words]) => chip(y ? `${x} and ${y}` : x, () => go("axes", { x, y, words }))));
  $("kind").textContent = data ? "One file: it needs no server, and its vectors are rounded to bytes." : "It runs on this machine and asks nobody else.";
  listen();
  await show();
}

begin().catch((error) => complain(error, "word", new URLSearchParams()));
