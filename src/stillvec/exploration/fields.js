// What words are coloured and filtered by: clusters, frequency, parts of speech and the columns of the user.

const N_BINS = 9, MAX_LEVELS = 18; // of numbers and of texts; rarer levels share one colour
const fieldSets = new Map();
const darkScheme = matchMedia("(prefers-color-scheme: dark)");

async function loadFields(name) {
  if (!fieldSets.has(name)) {
    const answer = await source.query("fields", { set: name });
    const unpack = (column, id) => ({
      id, name: column.name, levels: column.levels,
      numbers: column.numbers && new Float32Array(decodeBytes(column.numbers).buffer),
      codes: column.codes && new Int32Array(decodeBytes(column.codes).buffer),
    });
    const columns = answer.columns.map((column) => unpack(column, `column:${column.name}`));
    if (answer.part) columns.unshift(unpack({ ...answer.part, levels: answer.part.levels.map((part) => PART_NAMES[part] ?? part) }, "part"));
    fieldSets.set(name, { counts: answer.counts, columns, hasCounts: answer.counts.some((count) => count > 1), functionWords: new Set(answer.function) });
  }
  return fieldSets.get(name);
}

function listFields(fields) {
  return [{ id: "cluster", name: "cluster" }, { id: "frequency", name: "frequency" }, ...fields.columns];
}

// the text of a column for a word, by the row of the word in its set
function valueOf(column, row) {
  if (column.numbers) return Number.isNaN(column.numbers[row]) ? "" : formatNumber(column.numbers[row]);
  return column.levels[column.codes[row]] ?? "";
}

function formatNumber(value) {
  return Number.isInteger(value) ? NUMBERS.format(value) : String(Number(value.toPrecision(3)));
}

// { groups by row of the map, labels, colours, quiet }; `loaded.rows` are the rows of the set that are on the map
function groupWords(id, loaded, fields) {
  const column = fields.columns.find((each) => each.id === id);
  if (column?.numbers) return groupNumbers(Float64Array.from(loaded.rows, (row) => column.numbers[row]));
  if (column) return groupLevels(column, loaded);
  if (id === "frequency") {
    if (fields.hasCounts) return groupNumbers(Float64Array.from(loaded.rows, (row) => fields.counts[row]));
    return groupNumbers(Float64Array.from(loaded.rows, (row) => row + 1), true);
  }
  return { groups: loaded.cluster, labels: loaded.clusters.map((words) => words.join(", ")), colours: clusterColours(loaded.clusters.length), quiet: new Set() };
}

function groupLevels({ levels, codes }, { rows }) {
  const nLevels = levels.length > MAX_LEVELS ? MAX_LEVELS - 1 : levels.length;
  const isCut = nLevels < levels.length, missing = nLevels + isCut;
  const groups = Uint8Array.from(rows, (row) => (codes[row] < 0 ? missing : Math.min(codes[row], nLevels)));
  const labels = levels.slice(0, nLevels).concat(isCut ? ["other"] : [], ["no value"]);
  const extra = clusterColours(MAX_LEVELS);
  const colours = labels.map((_, n) => (n === missing ? quietColour() : n >= nLevels ? cssColour("--c0") : n < 8 ? cssColour(`--c${n + 1}`) : extra[n]));
  return { groups, labels, colours, quiet: new Set([missing]) };
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function quietColour() {
  return `color-mix(in srgb, ${cssColour("--c0")} 40%, ${cssColour("--soft")})`;
}

// bins between the extreme percentiles; their width grows with the numbers if those differ by a factor of 50
function groupNumbers(values, isRank = false) {
  const known = [...values].filter((value) => !Number.isNaN(value)).sort((p, q) => p - q);
  const at = (share) => known[Math.min(known.length - 1, Math.floor(share * known.length))] ?? 0;
  const isLog = known[0] > 0 && at(0.99) / Math.max(at(0.01), 1e-30) > 50;
  const scale = isLog ? Math.log : (value) => value, unscale = isLog ? Math.exp : (value) => value;
  const low = scale(isRank ? at(0) : at(0.01)), high = scale(isLog ? at(1) : at(0.99)), width = (high - low) / N_BINS || 1;
  const groups = Uint8Array.from(values, (value) => (Number.isNaN(value) ? N_BINS : clamp(Math.floor((scale(value) - low) / width), 0, N_BINS - 1)));
  const isWhole = known.every(Number.isInteger), shownEdge = (n) => (isWhole ? Math.ceil(unscale(low + n * width) - 1e-9) : Number(unscale(low + n * width).toPrecision(3)));
  const describeBin = (n) => {
    const first = formatNumber(shownEdge(n)), last = formatNumber(isWhole ? Math.max(shownEdge(n), shownEdge(n + 1) - 1) : shownEdge(n + 1));
    return `${isRank ? "rank " : ""}${n === N_BINS - 1 ? `from ${first}` : first === last ? first : `${first} to ${last}`}`;
  };
  const labels = Array.from({ length: N_BINS }, (_, n) => describeBin(n));
  const colours = binColours();
  if (isRank) colours.reverse();
  return { groups, labels: [...labels, "no value"], colours: [...colours, quietColour()], quiet: new Set([N_BINS]) };
}

// from quiet to strong: darker on paper, brighter at night
function binColours() {
  const [from, to] = darkScheme.matches ? [[0.45, 0.1, 290], [0.92, 0.17, 98]] : [[0.82, 0.13, 92], [0.33, 0.15, 288]];
  return Array.from({ length: N_BINS }, (_, n) => `oklch(${from.map((value, i) => (value + ((to[i] - value) * n) / (N_BINS - 1)).toFixed(3)).join(" ")})`);
}

function clusterColours(count) {
  return Array.from({ length: count }, (_, n) => `oklch(${(darkScheme.matches ? 0.75 : 0.55) + (n % 2 ? 0.07 : -0.03)} 0.13 ${((n * 7) % count) * (360 / count)})`);
}

// filter: { pattern, inField, low, high (counts or ranks), hideFunctionWords, only: Set of groups }
function maskWords(loaded, fields, filter, groups) {
  const column = fields.columns.find((each) => each.id === filter.inField);
  const matches = parsePattern(filter.pattern);
  return Uint8Array.from(loaded.words, (word, at) => {
    const row = loaded.rows[at], amount = fields.hasCounts ? fields.counts[row] : row + 1;
    return amount >= filter.low && amount <= filter.high
      && !(filter.hideFunctionWords && fields.functionWords.has(row))
      && (!filter.only.size || filter.only.has(groups[at]))
      && matches(column ? valueOf(column, row) : word);
  });
}

// /pattern/ is a regular expression, anything else a part of the text; both ignore case
function parsePattern(text) {
  const inner = text.match(/^\/(.+)\/$/)?.[1];
  if (inner === undefined) return text ? (value) => value.toLowerCase().includes(text.toLowerCase()) : () => true;
  let pattern;
  try {
    pattern = new RegExp(inner, "iu");
  } catch {
    throw new QueryError(`filter: expected a regular expression such as /^un.*able$/, got ${text}.`);
  }
  return (value) => pattern.test(value);
}
