// The map view: which sets, projections, colours and filter, one map or two. `WordMap` draws, `selection.js` selects.

const PROJECTION_NAMES = { tsne: "t-SNE", umap: "UMAP", pca: "PCA" };
const MAP_PARAMS = ["set", "by", "beside", "rows", "colour", "w", "q", "in", "low", "high", "content"]; // and only, at
const maps = new Map(); // loaded, by set, projection and rows
let second, left, right; // the second canvas; what the two maps show

// the maps on the screen, each with what it shows
function shownMaps() {
  return [{ map, shown: left }, { map: second, shown: right }].filter((each) => each.map && each.shown);
}

async function showMap(params, isCurrent) {
  document.title = "Map · word vectors";
  const choice = readChoice(params);
  map ??= createMap($("canvas"), $("tooltip"));
  const loaded = await loadMap({ ...choice, rows: params.get("rows") ?? "" }, isCurrent);
  const beside = choice.beside && isCurrent() ? await loadMap(choice.beside, isCurrent) : null;
  if (!isCurrent() || !loaded || (choice.beside && !beside)) return;
  $("progress").hidden = true;
  $("second").hidden = !beside;
  if (beside) second ??= createMap($("canvas-2"), $("tooltip-2"));
  left = { ...loaded, fields: await loadFields(choice.set) };
  right = beside && { ...beside, fields: await loadFields(choice.beside.set) };
  if (!isCurrent()) return;
  drawControls(params, choice);
  colourMaps(params);
  for (const each of shownMaps()) { // after a change of the maps; the address has the view of the first
    const key = `${each.shown.set} ${each.shown.by} ${each.shown.rows.length}`;
    if (each.map.shownKey !== key && each.map === second) each.map.view = { x: 0, y: 0, zoom: 1 };
    each.isNew = each.map.shownKey !== key;
    each.map.shownKey = key;
    each.map.listeners.onHover(null);
  }
  const at = (params.get("at") ?? "").split(",").map(Number), hasView = at.length === 3 && at.every(Number.isFinite);
  const word = params.get("w"), isNew = map.shownWord !== word;
  map.shownWord = word;
  if (hasView) map.view = { x: at[0], y: at[1], zoom: clamp(at[2], 0.8, 400) };
  else if (!word) map.view = { x: 0, y: 0, zoom: 1 };
  describeMap();
  drawSelection();
  await openOnMap(word, isNew && !hasView, isCurrent);
  for (const each of shownMaps()) each.map.draw();
}

function readChoice(params) {
  const setNames = about.sets.map(({ name }) => name), methods = about.projections;
  const valid = (value, known) => (known.includes(value) ? value : known[0]);
  const [otherSet, otherBy] = JSON.parse(parsable(params.get("beside")) ?? "[]");
  const beside = setNames.includes(otherSet) && methods.includes(otherBy) ? { set: otherSet, by: otherBy, rows: "" } : null;
  return { set: valid(params.get("set"), setNames), by: valid(params.get("by"), methods), beside };
}

function parsable(text) {
  try {
    return Array.isArray(JSON.parse(text)) ? text : null;
  } catch {
    return null;
  }
}

function createMap(canvas, tooltip) {
  const created = new WordMap(canvas, {
    onHover: (word, x, y) => hoverWord(created, tooltip, word, x, y),
    onSelect: (word, event) => {
      if (event.shiftKey && word) updateSelection([word], event);
      else if (event.key === "Escape" && !state()[1].has("w")) updateSelection([]);
      else updateMapState({ w: word ?? undefined }, true);
    },
    onMove: () => created === map && saveView(),
    onLasso: (rows, event) => updateSelection(rows.map((row) => created.words[row]), event),
  });
  created.isLassoing = Boolean(map?.isLassoing);
  return created;
}

async function loadMap({ set, by, rows }, isCurrent) {
  const key = JSON.stringify([set, by, rows]);
  while (!maps.has(key)) {
    const answer = await source.query("map", { set, method: by, ...(rows ? { rows } : {}) });
    if (answer.words) {
      const positions = Float32Array.from(new Uint16Array(decodeBytes(answer.places).buffer), (value) => (value / 65535) * 2 - 1);
      const setRows = Uint32Array.from(rows ? decodeRows(rows) : answer.words.keys());
      maps.set(key, { ...answer, set, by, positions, rows: setRows, isPart: Boolean(rows), cluster: decodeBytes(answer.cluster) });
      break;
    }
    if (!isCurrent()) return null;
    $("progress").hidden = false;
    $("progress").querySelector("p").textContent = `The ${PROJECTION_NAMES[by]} map of ${set} is computed once${data ? "" : " and cached"}: ${answer.stage} …`;
    const bar = $("progress").querySelector("progress");
    if (answer.total) bar.value = answer.done / answer.total;
    else bar.removeAttribute("value");
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return maps.get(key);
}

// the colours of the left map are those of the right one too: each word has one colour
function colourMaps(params) {
  const known = listFields(left.fields), colour = known.some(({ id }) => id === params.get("colour")) ? params.get("colour") : "cluster";
  const filter = readFilter(params);
  Object.assign(left, { colour }, groupWords(colour, left, left.fields));
  showOn(map, left, filter, colour === "cluster" ? clusterTitles(left) : null);
  if (right) {
    const index = new Map(left.words.map((word, row) => [word, row])), none = left.labels.length;
    right.groups = Uint8Array.from(right.words, (word) => (index.has(word) ? left.groups[index.get(word)] : none));
    right.colours = [...left.colours, quietColour()];
    right.quiet = new Set([...left.quiet, none]);
    showOn(second, right, filter, null);
  }
  drawLegend(filter);
}

function showOn(target, content, filter, titles) {
  const n = content.words.length, { fields, rows } = content;
  const shown = maskWords(content, fields, filter, content.groups);
  const sizes = Float32Array.from({ length: n }, (_, row) => 0.8 + 1.5 * (1 - Math.log1p(row) / Math.log1p(n)));
  const isMinor = Uint8Array.from(content.words, (word, row) => content.quiet.has(content.groups[row]) || fields.functionWords.has(rows[row]) || word.replace(/[^\p{L}\p{N}]/gu, "").length < 2); // labelled last
  const labelOrder = Uint32Array.from(content.words.keys()).sort((p, q) => isMinor[p] - isMinor[q] || p - q);
  Object.assign(content, { shown, nShown: shown.reduce((sum, value) => sum + value, 0) });
  target.show({ words: content.words, positions: content.positions, groups: content.groups, colours: content.colours, quiet: content.quiet, shown, sizes, labelOrder, titles, isIsotropic: content.by === "pca" });
}

// the title of a cluster is drawn at the member nearest to the median of its positions
function clusterTitles({ clusters, cluster, positions }) {
  const members = clusters.map(() => []);
  cluster.forEach((group, row) => members[group].push(row));
  return members.map((rows, group) => {
    const median = [0, 1].map((axis) => rows.map((row) => positions[2 * row + axis]).sort((p, q) => p - q)[rows.length >> 1]);
    const distance = (row) => (positions[2 * row] - median[0]) ** 2 + (positions[2 * row + 1] - median[1]) ** 2;
    return { group, text: clusters[group].slice(0, 2).join(" · "), size: rows.length, row: rows.reduce((best, row) => (distance(row) < distance(best) ? row : best), rows[0] ?? 0) };
  }).sort((p, q) => q.size - p.size);
}

function drawLegend(filter) {
  const counts = new Map();
  left.groups.forEach((group) => counts.set(group, (counts.get(group) ?? 0) + 1));
  const groups = [...left.labels.keys()].filter((group) => counts.has(group));
  if (left.colour === "cluster") groups.sort((p, q) => counts.get(q) - counts.get(p));
  $("legend").replaceChildren(...groups.map((group) => {
    const dot = make("span", { class: "dot" }), isPressed = filter.only.has(group);
    dot.style.setProperty("--c", left.colours[group]);
    const toggled = isPressed ? [...filter.only].filter((each) => each !== group) : [...filter.only, group];
    return make("li", {}, make("button", { type: "button", "aria-pressed": isPressed, onclick: () => updateMapState({ only: toggled }, true) }, dot, make("span", {}, left.labels[group]), make("span", { class: "count" }, NUMBERS.format(counts.get(group)))));
  }));
}

// the word under the pointer is shown on both maps
function hoverWord(target, tooltip, word, x, y) {
  tooltip.hidden = !word;
  for (const { map: each } of shownMaps()) {
    const row = each === target || !word ? -1 : (each.index?.get(word) ?? -1);
    if (each.hovered !== row) Object.assign(each, { hovered: row }).draw();
  }
  if (!word) return;
  const shown = shownMaps().find((each) => each.map === target)?.shown, row = shown && shown.rows[target.index.get(word)];
  const values = shown ? shown.fields.columns.map((column) => valueOf(column, row)).filter(Boolean).slice(0, 3) : [];
  tooltip.replaceChildren(make("b", {}, word), ...values.map((value) => ` · ${value}`));
  tooltip.style.left = `${clamp(x, 60, Math.max(60, target.canvas.clientWidth - 60))}px`;
  tooltip.style.top = `${Math.max(y, 44)}px`;
}

function mapWordButton(word) {
  return make("button", { type: "button", class: "word", onclick: () => updateMapState({ w: word, at: undefined }, true) }, word);
}

async function openOnMap(word, fly, isCurrent) {
  const panel = $("panel");
  panel.hidden = true;
  for (const each of shownMaps()) Object.assign(each.map, { selected: -1, marked: [] });
  if (!word) return;
  const number = about.sets.findIndex((set) => set.name === left.set);
  const [card, answers] = await Promise.all([source.query("card", { word }), source.query("neighbours", { word, k: 10 })]);
  if (!isCurrent()) return;
  const neighbours = answers[number].found ?? [], facts = card.sets.find((set) => set.name === left.set);
  if (!facts) throw new QueryError(`'${word}' is not in ${left.set}.`);
  for (const each of shownMaps()) {
    const near = answers.find((answer) => answer.name === each.shown.set)?.found ?? [];
    each.map.selected = each.map.index.get(facts.word) ?? -1;
    each.map.marked = near.map(([other]) => each.map.index.get(other) ?? -1).filter((row) => row >= 0);
  }
  const list = neighbours.map(([other, score]) => make("li", {}, mapWordButton(other), make("span", {}, score.toFixed(3))));
  const missing = map.selected < 0 ? [make("p", { class: "note" }, "This word is not on the map.")] : [];
  const values = map.selected < 0 ? [] : left.fields.columns.filter(({ id }) => id !== "part").map((column) => [column.name, valueOf(column, left.rows[map.selected])]).filter(([, value]) => value);
  panel.replaceChildren(
    make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => updateMapState({ w: undefined }, true) }, "×"),
    make("h2", {}, facts.word), make("div", { class: "note" }, describeFacts(facts, card.part)), ...missing,
    ...(values.length ? [make("dl", { class: "values" }, ...values.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))] : []),
    make("ol", {}, ...list),
    make("p", { class: "actions" }, make("a", { href: address("word", { w: facts.word }) }, "Details"), make("button", { type: "button", id: "select-near", onclick: (event) => updateSelection([facts.word, ...neighbours.map(([other]) => other)], event) }, "Select these")));
  panel.hidden = false;
  if (map.selected >= 0 && fly) map.centre(map.selected, panel, Math.max(8, map.view.zoom));
  else if (map.selected >= 0 && map.isCovered(map.selected, panel)) map.centre(map.selected, panel);
}

function updateMapState(change, addToHistory = false) {
  const [, params] = state();
  const { x, y, zoom } = map.view;
  const current = Object.fromEntries(MAP_PARAMS.map((name) => [name, params.get(name) ?? undefined]));
  const hash = address("map", { ...current, only: params.getAll("only"), at: [x.toFixed(4), y.toFixed(4), zoom.toFixed(2)].join(","), ...change });
  if (addToHistory) location.hash = hash;
  else history.replaceState(null, "", hash);
}

let saveTimer;
function saveView() {
  clearTimeout(saveTimer);
  saveTimer = setTimeout(() => { if (state()[0] === "map") updateMapState({}); }, 150);
}
