// The view of the map: which set, which colours, which word; `WordMap` draws it.

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
  $("about-map").textContent = `t-SNE of ${which}, from the 60 nearest neighbours of each. Near is alike, but a plane has little room: of the ten nearest words of a word ${(10 * told.kept).toFixed(1)} are among its ten nearest here, and what lies far apart may be more or less alike. Clusters are those of the whole vectors (k-means), named by the most central of their frequent words.`;
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
  const list = found.map(([each, score]) => make("li", {}, make("button", { type: "button", class: "word", onclick: () => keep({ w: each, at: undefined }, true) }, each), make("span", {}, score.toFixed(3))));
  const missing = map.chosen < 0 ? [make("p", { class: "note" }, "It is not among the words of the map.")] : [];
  panel.replaceChildren(
    make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => keep({ w: undefined }, true) }, "×"),
    make("h2", {}, own.word), make("div", { class: "note" }, factsOf(own, card.part)), ...missing, make("ol", {}, ...list),
    make("a", { href: address("word", { w: own.word }) }, "its card"));
  panel.hidden = false;
  if (map.chosen < 0) return;
  if (fly) map.bring(map.chosen, panel, Math.max(12, map.view.zoom));
  else if (map.covered(map.chosen, panel)) map.bring(map.chosen, panel);
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
