// The selected words: drawn with the lasso, listed, exported, and mapped again.

const MAX_LISTED = 300;
const selection = new Set();

// a new area replaces the selection; with Shift it is added, with Alt removed
function updateSelection(words, { shiftKey = false, altKey = false } = {}) {
  if (!shiftKey && !altKey) selection.clear();
  for (const word of words) altKey ? selection.delete(word) : selection.add(word);
  drawSelection();
}

function drawSelection() {
  const place = $("chosen");
  for (const each of shownMaps()) each.map.choose(selection);
  place.hidden = !selection.size;
  if (place.hidden) return;
  const rows = selectedRows();
  const items = rows.slice(0, MAX_LISTED).map((row) => make("li", {}, mapWordButton(left.words[row]), make("span", {}, describeOnMap(row))));
  const more = selection.size - items.length;
  $("n-chosen").textContent = `${NUMBERS.format(selection.size)} ${selection.size === 1 ? "word" : "words"} selected`;
  $("chosen-groups").textContent = describeGroups(rows);
  $("chosen-words").replaceChildren(...items, ...(more > 0 ? [make("li", { class: "note" }, `and ${NUMBERS.format(more)} more`)] : []));
  $("remap").disabled = rows.length < 4;
}

// rows of the left map, the most frequent first
function selectedRows() {
  return [...left.words.keys()].filter((row) => selection.has(left.words[row]));
}

function describeOnMap(row) {
  const column = left.fields.columns.find((each) => each.id === left.colour), at = left.rows[row];
  return column ? valueOf(column, at) : left.fields.hasCounts ? NUMBERS.format(left.fields.counts[at]) : `rank ${NUMBERS.format(at + 1)}`;
}

function describeGroups(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(left.groups[row], (counts.get(left.groups[row]) ?? 0) + 1);
  const largest = [...counts].sort((p, q) => q[1] - p[1]).slice(0, 3);
  return largest.map(([group, count]) => `${left.labels[group]}: ${NUMBERS.format(count)}`).join(" · ");
}

// the selection as a table: what is known of each word
function tabulate() {
  const { fields, rows, positions, clusters, cluster } = left;
  const header = ["word", "rank", "count", "cluster", "x", "y", ...fields.columns.map(({ name }) => name)];
  const records = selectedRows().map((row) => [
    left.words[row], rows[row] + 1, fields.counts[rows[row]], clusters[cluster[row]].join(" "), Number(positions[2 * row].toFixed(4)), Number(positions[2 * row + 1].toFixed(4)),
    ...fields.columns.map((column) => (column.numbers && !Number.isNaN(column.numbers[rows[row]]) ? column.numbers[rows[row]] : valueOf(column, rows[row]))),
  ]);
  return { header, records };
}

function quoteCsv(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const EXPORTS = {
  txt: () => selectedRows().map((row) => `${left.words[row]}\n`).join(""),
  csv: () => {
    const { header, records } = tabulate();
    return [header, ...records].map((record) => `${record.map(quoteCsv).join(",")}\r\n`).join("");
  },
  json: () => {
    const { header, records } = tabulate();
    return `${JSON.stringify(records.map((record) => Object.fromEntries(header.map((name, i) => [name, record[i]]))), null, 1)}\n`;
  },
  vec: async () => { // the text format of word2vec
    const rows = selectedRows().map((row) => left.rows[row]);
    const answer = await source.query("vectors", { set: left.set, rows: encodeRows(rows) });
    const values = new Float32Array(decodeBytes(answer.vectors).buffer), dim = answer.dim;
    const lines = selectedRows().map((row, i) => `${left.words[row].replace(/\s+/g, "_")} ${[...values.subarray(i * dim, (i + 1) * dim)].map((value) => Number(value.toPrecision(7))).join(" ")}\n`);
    return `${lines.length} ${dim}\n${lines.join("")}`;
  },
};

async function exportSelection(kind) {
  const text = await EXPORTS[kind]();
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download: `words.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// rows as bits, the lowest first, in base64url; short enough for an address
function encodeRows(rows) {
  const bytes = new Uint8Array(rows.reduce((last, row) => Math.max(last, row), 0) / 8 + 1);
  for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function decodeRows(text) {
  const bytes = decodeBytes(text.replaceAll("-", "+").replaceAll("_", "/"));
  return [...bytes].flatMap((byte, at) => [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte >> bit) & 1).map((bit) => 8 * at + bit));
}

function listenToSelection() {
  $("lasso").addEventListener("click", () => setLasso(!map?.isLassoing));
  $("select-view").addEventListener("click", (event) => updateSelection(map.inView().map((row) => map.words[row]), event));
  $("clear").addEventListener("click", () => updateSelection([]));
  $("remap").addEventListener("click", () => {
    const rows = encodeRows(selectedRows().map((row) => left.rows[row]));
    updateSelection([]);
    setLasso(false);
    updateMapState({ rows, at: undefined, only: undefined, w: undefined }, true);
  });
  $("export").addEventListener("click", () => exportSelection($("format").value).catch((error) => showError(error, "map", new URLSearchParams())));
}

function setLasso(isOn) {
  $("lasso").setAttribute("aria-pressed", isOn);
  for (const each of [map, second]) {
    if (!each) continue;
    each.isLassoing = isOn;
    each.canvas.classList.toggle("lassoing", isOn);
  }
}
