// The map view: which set, which colours, which word. `WordMap` draws it.

const maps = new Map();

async function showMap(params, isCurrent) {
  const name = about.sets.some((set) => set.name === params.get("set")) ? params.get("set") : about.sets[0].name;
  $("map-set").value = name;
  document.title = "Map · word vectors";
  map ??= new WordMap($("canvas"), { onHover: showTooltip, onSelect: (word) => updateMapState({ w: word ?? undefined }, true), onMove: saveView });
  if (!maps.has(name)) maps.set(name, await loadMap(name, isCurrent));
  const loaded = maps.get(name);
  if (!isCurrent() || !loaded) return maps.delete(name);
  $("progress").hidden = true;
  $("colour").querySelector('[value="part"]').hidden = !loaded.part;
  const colour = params.get("colour") === "part" && !loaded.part ? "cluster" : (params.get("colour") ?? "cluster");
  $("colour").value = colour;
  map.only = params.has("only") ? Number(params.get("only")) : -1;
  colourMap(loaded, colour);
  showTooltip(null);
  const at = (params.get("at") ?? "").split(",").map(Number);
  const word = params.get("w"), isNew = map.shownWord !== word || map.shownSet !== name;
  map.shownWord = word;
  map.shownSet = name;
  if (at.length === 3 && at.every(Number.isFinite)) map.view = { x: at[0], y: at[1], zoom: clamp(at[2], 0.8, 400) };
  else if (!word) map.view = { x: 0, y: 0, zoom: 1 };
  const set = about.sets.find(({ name: other }) => other === name), nAll = set.whole ?? set.words, n = loaded.words.length;
  const which = n < nAll ? `the ${NUMBERS.format(n)} most frequent of ${NUMBERS.format(nAll)} words` : `all ${NUMBERS.format(nAll)} words`;
  $("about-map").textContent = `t-SNE of ${which}, from the 60 nearest neighbours of each. Nearby words are similar, but a 2-D map is lossy: on average ${(10 * loaded.kept).toFixed(1)} of a word's 10 nearest neighbours are among its 10 nearest on the map. Large distances mean little. Clusters are computed from the full vectors (k-means) and named after their most central frequent words.`;
  await selectOnMap(word, name, isNew && at.length !== 3, isCurrent);
  map.draw();
}

async function loadMap(name, isCurrent) {
  for (;;) {
    const answer = await source.query("map", { set: name });
    if (answer.words) {
      const positions = new Uint16Array(decodeBytes(answer.places).buffer);
      return { ...answer, positions: Float32Array.from(positions, (value) => (value / 65535) * 2 - 1), cluster: decodeBytes(answer.cluster), part: answer.part && decodeBytes(answer.part) };
    }
    if (!isCurrent()) return null;
    $("progress").hidden = false;
    $("progress").querySelector("p").textContent = `The map of ${name} is computed once and cached: ${answer.stage} …`;
    const bar = $("progress").querySelector("progress");
    if (answer.total) bar.value = answer.done / answer.total;
    else bar.removeAttribute("value");
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const N_BINS = 10; // of frequency

function palette(kind, count) {
  const style = getComputedStyle(document.documentElement), numbers = [...Array(count).keys()];
  if (kind === "part") return [0, 1, 2, 3, 4].map((n) => style.getPropertyValue(`--c${n}`).trim());
  if (kind === "frequency") { // from warm and strong (frequent) to cool and quiet (rare)
    const [near, far] = darkScheme.matches ? [0.85, 0.5] : [0.55, 0.72];
    return numbers.map((n) => { const t = n / (count - 1); return `oklch(${near + (far - near) * t} ${0.2 - 0.07 * t} ${20 + 290 * t})`; });
  }
  return numbers.map((n) => `oklch(${(darkScheme.matches ? 0.75 : 0.55) + (n % 2 ? 0.07 : -0.03)} 0.13 ${((n * 7) % count) * (360 / count)})`);
}

function colourMap(loaded, kind) {
  const n = loaded.words.length; // bins of frequency grow with the square of the rank
  const groups = kind === "cluster" ? loaded.cluster : kind === "part" ? loaded.part : Uint8Array.from({ length: n }, (_, row) => Math.floor(N_BINS * Math.sqrt(row / n)));
  const colours = palette(kind, kind === "cluster" ? loaded.clusters.length : N_BINS);
  map.titles = kind === "cluster" ? loaded.titles ??= clusterTitles(loaded) : null;
  map.show(loaded.words, loaded.positions, groups, colours);
  const legend = { cluster: () => loaded.clusters.map((words) => words.join(", ")), part: () => ["not in the lexicon", "noun", "verb", "adjective", "adverb"], frequency: () => colours.map((_, bin) => `from rank ${NUMBERS.format(Math.ceil(n * (bin / N_BINS) ** 2) + 1)}`) }[kind]();
  $("legend").replaceChildren(...legend.map((text, group) => {
    const dot = make("span", { class: "dot" });
    dot.style.setProperty("--c", colours[group]);
    const pressed = map.only === group;
    return make("li", {}, make("button", { type: "button", "aria-pressed": pressed, onclick: () => updateMapState({ only: pressed ? undefined : group }, true) }, dot, text));
  }));
}

// the title of a cluster is drawn at the member nearest to the median of its positions
function clusterTitles({ clusters, cluster, positions }) {
  return clusters.map((words, group) => {
    const rows = [...cluster.keys()].filter((row) => cluster[row] === group);
    const median = [0, 1].map((axis) => rows.map((row) => positions[2 * row + axis]).sort((p, q) => p - q)[rows.length >> 1]);
    const distance = (row) => (positions[2 * row] - median[0]) ** 2 + (positions[2 * row + 1] - median[1]) ** 2;
    return { group, text: words[0] ?? "", size: rows.length, row: rows.reduce((best, row) => (distance(row) < distance(best) ? row : best), rows[0] ?? 0) };
  }).sort((p, q) => q.size - p.size);
}

function showTooltip(word, x, y) {
  const tooltip = $("tooltip");
  tooltip.hidden = !word;
  if (!word) return;
  tooltip.textContent = word;
  tooltip.style.left = `${x}px`;
  tooltip.style.top = `${y}px`;
}

async function selectOnMap(word, name, fly, isCurrent) {
  const panel = $("panel");
  panel.hidden = true;
  map.selected = -1;
  map.marked = [];
  if (!word) return;
  const number = about.sets.findIndex((set) => set.name === name);
  const [card, answers] = await Promise.all([source.query("card", { word }), source.query("neighbours", { word, k: 10 })]);
  if (!isCurrent()) return;
  const neighbours = answers[number].found ?? [], facts = card.sets.find((set) => set.name === name);
  if (!facts) throw new QueryError(`'${word}' is not in ${name}.`);
  map.selected = map.index.get(facts.word) ?? -1;
  map.marked = neighbours.map(([other]) => map.index.get(other) ?? -1).filter((row) => row >= 0);
  const list = neighbours.map(([other, score]) => make("li", {}, make("button", { type: "button", class: "word", onclick: () => updateMapState({ w: other, at: undefined }, true) }, other), make("span", {}, score.toFixed(3))));
  const missing = map.selected < 0 ? [make("p", { class: "note" }, "This word is not on the map.")] : [];
  panel.replaceChildren(
    make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => updateMapState({ w: undefined }, true) }, "×"),
    make("h2", {}, facts.word), make("div", { class: "note" }, describeFacts(facts, card.part)), ...missing, make("ol", {}, ...list),
    make("a", { href: address("word", { w: facts.word }) }, "Details"));
  panel.hidden = false;
  if (map.selected < 0) return;
  if (fly) map.centre(map.selected, panel, Math.max(12, map.view.zoom));
  else if (map.isCovered(map.selected, panel)) map.centre(map.selected, panel);
}

function updateMapState(change, addToHistory = false) {
  const [, params] = state();
  const { x, y, zoom } = map.view;
  const current = Object.fromEntries(["set", "colour", "w", "only"].map((name) => [name, params.get(name) ?? undefined]));
  const hash = address("map", { ...current, at: [x.toFixed(4), y.toFixed(4), zoom.toFixed(2)].join(","), ...change });
  if (addToHistory) location.hash = hash;
  else history.replaceState(null, "", hash);
}

let saveTimer;
function saveView() {
  clearTimeout(saveTimer);
  saveTimer = setTimeout(() => { if (state()[0] === "map") updateMapState({}); }, 150);
}
