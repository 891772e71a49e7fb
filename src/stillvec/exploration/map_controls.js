// The controls of the map view: they change the address, and the address is shown.

const SLIDER_STEPS = 100; // of the logarithm of counts or ranks

function drawControls(params, choice) {
  $("map-set").value = choice.set;
  $("projection").value = choice.by;
  $("beside").value = choice.beside ? JSON.stringify([choice.beside.set, choice.beside.by]) : "";
  const fields = listFields(left.fields), option = ({ id, name }) => make("option", { value: id }, name);
  $("colour").replaceChildren(...fields.map(option));
  $("colour").value = fields.some(({ id }) => id === params.get("colour")) ? params.get("colour") : "cluster";
  $("pattern-in").replaceChildren(make("option", { value: "" }, "words"), ...left.fields.columns.map(option));
  $("pattern-in").value = left.fields.columns.some(({ id }) => id === params.get("in")) ? params.get("in") : "";
  $("pattern-in").parentElement.hidden = !left.fields.columns.length;
  if (document.activeElement !== $("pattern")) $("pattern").value = params.get("q") ?? "";
  $("hide-function").checked = params.has("content");
  $("hide-function").parentElement.hidden = !left.fields.functionWords.size;
  $("range-name").textContent = left.fields.hasCounts ? "Occurrences" : "Rank";
  const { low, high } = readFilter(params);
  for (const [slider, amount, end] of [[$("low"), low, 0], [$("high"), high, SLIDER_STEPS]]) { // steps may share an amount: stay where the user moved it
    if (!Number.isFinite(amount)) slider.value = end;
    else if (fromStep(Number(slider.value)) !== amount) slider.value = toStep(amount);
  }
  describeRange();
}

function readFilter(params) {
  const number = (name, otherwise) => (params.has(name) && Number.isFinite(Number(params.get(name))) ? Number(params.get(name)) : otherwise);
  return {
    pattern: (params.get("q") ?? "").slice(0, 200), inField: params.get("in") ?? "", low: number("low", -Infinity), high: number("high", Infinity),
    hideFunctionWords: params.has("content"), only: new Set(params.getAll("only").map(Number)),
  };
}

// positions of the sliders: counts or ranks by their logarithm, from 1 to the largest
function largestAmount() {
  return left.fields.hasCounts ? left.fields.counts.reduce((largest, count) => Math.max(largest, count), 1) : left.fields.counts.length;
}

function toStep(amount) {
  return Math.round((SLIDER_STEPS * Math.log(Math.max(1, amount))) / Math.log(Math.max(2, largestAmount())));
}

function fromStep(step) {
  return Math.round(Math.exp((step / SLIDER_STEPS) * Math.log(Math.max(2, largestAmount()))));
}

function describeRange() {
  const [low, high] = [$("low"), $("high")].map((slider) => fromStep(Number(slider.value)));
  $("range").textContent = `${NUMBERS.format(low)} – ${NUMBERS.format(high)}`;
  for (const [slider, amount] of [[$("low"), low], [$("high"), high]]) slider.setAttribute("aria-valuetext", NUMBERS.format(amount));
}

// what is on the map, and what it keeps
function describeMap() {
  const set = about.sets.find(({ name }) => name === left.set), nAll = set.whole ?? set.words, n = left.words.length;
  const which = left.isPart ? `${NUMBERS.format(n)} selected words` : n < nAll ? `the ${NUMBERS.format(n)} most frequent of ${NUMBERS.format(nAll)} words` : `all ${NUMBERS.format(nAll)} words`;
  const method = { tsne: "t-SNE, from the 60 nearest neighbours of each", umap: "UMAP, from the 15 nearest neighbours of each", pca: "The first two principal components" }[left.by];
  const meaning = left.by === "pca" ? "Distances along the two axes are real, but other dimensions are not shown" : "Nearby words are similar, but a 2-D map is lossy";
  $("about-map").textContent = `${method}: ${which}. ${meaning}: on average ${(10 * left.kept).toFixed(1)} of a word's 10 nearest neighbours are among its 10 nearest on the map. ${left.by === "pca" ? "" : "Large distances mean little. "}Clusters are computed from the full vectors (k-means) and named after their most central frequent words. Larger points are more frequent words.`;
  $("n-shown").textContent = left.nShown < n ? `${NUMBERS.format(left.nShown)} of ${NUMBERS.format(n)} words` : `${NUMBERS.format(n)} words`;
  $("select-shown").hidden = left.nShown === n || !left.nShown;
  $("reset-filter").hidden = left.nShown === n;
  $("whole-map").hidden = !left.isPart;
  const title = (shown) => [colourDot(shown.set), make("b", {}, ...breakName(shown.set)), ` ${PROJECTION_NAMES[shown.by]}`];
  $("title").replaceChildren(...(right ? title(left) : []));
  $("title-2").replaceChildren(...(right ? title(right) : []));
}

function listenToControls() {
  const change = (id, toState) => $(id).addEventListener("change", (event) => updateMapState(toState(event.target), true));
  change("map-set", ({ value }) => ({ set: value, only: undefined, rows: undefined, at: undefined }));
  change("projection", ({ value }) => ({ by: value, at: undefined }));
  change("beside", ({ value }) => ({ beside: value || undefined }));
  change("colour", ({ value }) => ({ colour: value, only: undefined }));
  change("pattern-in", ({ value }) => ({ in: value || undefined }));
  change("hide-function", ({ checked }) => ({ content: checked ? 1 : undefined }));
  change("low", ({ value }) => ({ low: Number(value) ? fromStep(Math.min(Number(value), Number($("high").value))) : undefined }));
  change("high", ({ value }) => ({ high: Number(value) < SLIDER_STEPS ? fromStep(Math.max(Number(value), Number($("low").value))) : undefined }));
  for (const id of ["low", "high"]) $(id).addEventListener("input", describeRange);
  let timer;
  $("pattern").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { updateMapState({ q: $("pattern").value || undefined }); show(); }, 200);
  });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("reset-filter").addEventListener("click", () => { $("pattern").value = ""; updateMapState({ q: undefined, in: undefined, low: undefined, high: undefined, content: undefined, only: undefined }, true); });
  $("select-shown").addEventListener("click", (event) => updateSelection([...left.words.keys()].filter((row) => left.shown[row]).map((row) => left.words[row]), event));
  $("whole-map").addEventListener("click", () => updateMapState({ rows: undefined, at: undefined, only: undefined }, true));
  $("zoom-in").addEventListener("click", () => zoomBoth(1.6));
  $("zoom-out").addEventListener("click", () => zoomBoth(1 / 1.6));
  $("reset-view").addEventListener("click", () => shownMaps().forEach((each) => each.map.setView(0, 0, 1)));
}

function zoomBoth(factor) {
  for (const { map: each } of shownMaps()) each.setView(each.view.x, each.view.y, each.view.zoom * factor);
}

function fillControls() {
  const setOption = ({ name }) => make("option", { value: name }, name);
  $("map-set").append(...about.sets.map(setOption));
  $("map-set").parentElement.hidden = about.sets.length < 2;
  $("projection").append(...about.projections.map((name) => make("option", { value: name }, PROJECTION_NAMES[name])));
  const pairs = about.sets.flatMap(({ name }) => about.projections.map((by) => [name, by]));
  $("beside").append(make("option", { value: "" }, "nothing"), ...pairs.map(([name, by]) => make("option", { value: JSON.stringify([name, by]) }, about.sets.length > 1 ? `${name}, ${PROJECTION_NAMES[by]}` : PROJECTION_NAMES[by])));
}
