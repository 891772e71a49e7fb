// Words on one or two axes.

const AXES_EXAMPLES = [
  ["he-she, man-woman", "", "doctor, nurse, engineer, teacher, pilot, dancer, soldier, librarian, king, queen, actor, actress"],
  ["small-large", "", "ant, mouse, cat, dog, pig, horse, elephant, whale, bee, goat, lion"],
  ["cold-hot", "bad-good", "ice, fire, winter, summer, storm, sun, hell, snow, coffee, war, love, fever, stove, friend, murder"],
];

function parsePairs(text) {
  return splitList(text).flatMap((pair) => {
    const parts = [":", " - ", " – ", "–", "-"].map((mark) => pair.split(mark)).find((split) => split.length === 2 && split.every((end) => end.trim()));
    if (!parts) throw new QueryError(`axis: expected two words with a hyphen or a colon between them, such as he-she, got '${pair}'.`);
    return parts.map((end) => end.trim());
  });
}

async function showAxes(params, isCurrent) {
  const form = $("axes-form"), [x, y, words] = ["x", "y", "words"].map((name) => params.get(name) ?? "");
  Object.entries({ x, y, words }).forEach(([name, value]) => { form.elements[name].value = value; });
  form.elements.set.value = about.sets.some((set) => set.name === params.get("set")) ? params.get("set") : about.sets[0].name;
  $("plot").replaceChildren();
  document.title = x ? `${x} · word vectors` : "Axes · word vectors";
  if (!x) return;
  const query = { set: form.elements.set.value, x: parsePairs(x), y: y ? parsePairs(y) : [], word: splitList(words) };
  const answer = await source.query("axes", query);
  if (!isCurrent()) return;
  $("plot").replaceChildren(answer.y ? drawPlane(answer, query) : drawLine(answer, query));
  if (answer.unknown.length) $("plot").append(make("figcaption", { class: "note" }, `Not in the vocabulary: ${answer.unknown.join(", ")}.`));
}

function svg(name, settings = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(settings)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function wordLink(word, ...shapes) {
  const node = svg("g", { role: "link", tabindex: 0, "aria-label": word }, ...shapes);
  const open = () => go("word", { w: word });
  node.addEventListener("click", open);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return node;
}

function range(values, least = 0.2) {
  const low = Math.min(-least, ...values), high = Math.max(least, ...values), margin = (high - low) * 0.08;
  return [low - margin, high + margin];
}

const splitPairs = (list) => [0, 1].map((half) => list.filter((_, i) => i % 2 === half).join(", "));

// round numbers, three to eight of them
function ticks(low, high) {
  const step = [0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 100].find((size) => (high - low) / size <= 7) ?? high - low;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toFixed(2)) || 0);
}

// one axis: words above and below a line, each in the first row with space for it
function drawLine(answer, query) {
  const width = clamp($("plot").clientWidth || 900, 340, 1200), [low, high] = range(answer.x);
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
  const above = Math.ceil(rows.length / 2), middle = 30 + above * 24, height = middle + (rows.length - above) * 24 + 74;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawing s0", role: "img", "aria-label": `Words from ${splitPairs(query.x).join(" to ")}` });
  drawing.append(svg("line", { x1: 10, x2: width - 10, y1: middle, y2: middle, class: "rule" }));
  for (const tick of ticks(low, high)) {
    drawing.append(svg("line", { x1: at(tick), x2: at(tick), y1: middle - 7, y2: middle + 7, class: "rule" }));
    drawing.append(svg("text", { x: at(tick), y: height - 36, class: "tick", "text-anchor": "middle" }, String(tick).replace("-", "−")));
  }
  for (const { word, value, x, row } of placed) {
    const y = row % 2 ? middle + 22 + Math.floor(row / 2) * 24 : middle - 20 - Math.floor(row / 2) * 24;
    drawing.append(wordLink(word,
      svg("line", { x1: at(value), y1: middle, x2: x, y2: row % 2 ? y - 10 : y + 4, class: "stem" }),
      svg("circle", { cx: at(value), cy: middle, r: 4 }),
      svg("title", {}, `${word}: ${value.toFixed(2)}`),
      svg("text", { x, y: y + (row % 2 ? 2 : 0), "text-anchor": "middle" }, word)));
  }
  const [left, right] = splitPairs(query.x);
  drawing.append(svg("text", { x: 12, y: height - 12, class: "end" }, `← ${left}`), svg("text", { x: width - 12, y: height - 12, class: "end", "text-anchor": "end" }, `${right} →`));
  return drawing;
}

function drawPlane(answer, query) {
  const width = clamp($("plot").clientWidth || 900, 340, 1200), height = clamp(width * 0.62, 420, 640);
  const [x0, x1] = range(answer.x), [y0, y1] = range(answer.y);
  const across = (value) => 16 + ((value - x0) / (x1 - x0)) * (width - 32);
  const up = (value) => height - 30 - ((value - y0) / (y1 - y0)) * (height - 60);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawing s0", role: "img", "aria-label": "Words on two axes" });
  drawing.append(svg("line", { x1: 0, x2: width, y1: up(0), y2: up(0), class: "rule" }), svg("line", { x1: across(0), x2: across(0), y1: 0, y2: height, class: "rule" }));
  const [left, right] = splitPairs(query.x), [below, above] = splitPairs(query.y);
  const boxes = new Boxes(width, height);
  const wide = (text) => 8 * (text.length + 3);
  for (const [x, y, text] of [[10, up(0) - 8, left], [width - 10 - wide(right), up(0) - 8, right], [across(0) + 8, height - 10, below], [across(0) + 8, 18, above]]) boxes.take(x, y - 11, x + wide(text), y + 3);
  answer.words.forEach((_, i) => boxes.take(across(answer.x[i]) - 3, up(answer.y[i]) - 3, across(answer.x[i]) + 3, up(answer.y[i]) + 3));
  drawing.append(
    svg("text", { x: 10, y: up(0) - 8, class: "end" }, `← ${left}`), svg("text", { x: width - 10, y: up(0) - 8, class: "end", "text-anchor": "end" }, `${right} →`),
    svg("text", { x: across(0) + 8, y: height - 10, class: "end" }, `↓ ${below}`), svg("text", { x: across(0) + 8, y: 18, class: "end" }, `↑ ${above}`));
  answer.words.forEach((word, i) => {
    const x = across(answer.x[i]), y = up(answer.y[i]), half = word.length * 3.7 + 3;
    const tries = [[0, -9], [0, 18], [half + 7, 4], [-half - 7, 4], [half, -10], [-half, -10], [half, 18], [-half, 18], [0, -24], [0, 33]].map(([dx, dy]) => [clamp(x + dx, half + 2, width - half - 2), y + dy]);
    const [tx, ty] = tries.find(([a, b]) => boxes.take(a - half, b - 11, a + half, b + 3)) ?? tries[0];
    drawing.append(wordLink(word, svg("circle", { cx: x, cy: y, r: 4 }), svg("title", {}, `${word}: ${answer.x[i].toFixed(2)}, ${answer.y[i].toFixed(2)}`), svg("text", { x: tx, y: ty, "text-anchor": "middle" }, word)));
  });
  return drawing;
}
