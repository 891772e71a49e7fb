// The source of answers: a server, or the data in this file. Both answer the same queries with the same messages.

class QueryError extends Error {
  constructor(message, word, alike = []) {
    super(message);
    this.word = word;
    this.alike = alike;
  }
}

class ServerSource {
  async query(name, params = {}) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(params)) for (const item of [value].flat()) query.append(key, item);
    let answer;
    try {
      answer = await (await fetch(`api/${name}?${query}`)).json();
    } catch {
      throw new QueryError("No response from the server; is stillvec explore still running?");
    }
    if (answer.error) throw new QueryError(answer.error, answer.word, answer.alike);
    return answer;
  }
}

// Vectors as bytes. A cosine does not depend on the length of a row, so each row has its own scale.
class LocalSource {
  constructor(data) {
    this.data = data;
    this.sets = data.data.map((packed, number) => {
      const name = data.sets[number].name, dim = data.sets[number].dim;
      const rows = new Int8Array(decodeBytes(packed.q).buffer);
      const lengths = packed.words.map((_, row) => Math.sqrt(dot(rows, row, rows, row, dim)) || Infinity);
      const index = new Map(packed.words.map((word, row) => [word, row]));
      return { ...packed, name, dim, rows, lengths, index, norms: new Float32Array(decodeBytes(packed.n).buffer) };
    });
  }

  async query(name, params = {}) {
    return this[name](params);
  }

  about() {
    return this.data;
  }

  complete({ typed }) {
    const words = new Set(), key = fold(typed, true);
    if (!key) return [];
    for (const set of this.sets) {
      const matches = set.words.filter((word) => fold(word, true).startsWith(key));
      for (const word of matches.filter((match) => fold(match, true) === key).concat(matches).slice(0, 9)) words.add(word);
    }
    return [...words].slice(0, 8);
  }

  neighbours({ word, k = 12, group = "" }) {
    const answers = this.answerAll([word], (set, [row]) => {
      const scores = cosines(set, unit(set, row));
      return group === "1" ? groupForms(set, scores, +k, row) : best(set, scores, +k, [row]);
    });
    for (const each of answers) if (each.found?.forms) each.forms = each.found.forms;
    return markShared(answers);
  }

  analogy({ a, b, c, k = 8, method = "3cosadd" }) {
    return markShared(this.answerAll([a, b, c], (set, rows) => {
      const [x, y, z] = rows.map((row) => cosines(set, unit(set, row)));
      const score = method === "3cosmul"
        ? (i) => ((1 + y[i]) * (1 + z[i])) / (1 + x[i] + 2e-3) / 2
        : (i) => y[i] - x[i] + z[i];
      return best(set, Float64Array.from(x, (_, i) => score(i)), +k, rows);
    }));
  }

  odd({ word }) {
    const words = [...new Set([word].flat())];
    if (words.length < 3) throw new QueryError(`odd one out: expected 3 to 200 words, got ${words.length}.`);
    return this.answerAll(words, (set, rows) => {
      const units = rows.map((row) => unit(set, row));
      const mean = (i) => units.reduce((sum, other, j) => sum + (i === j ? 0 : inner(units[i], other)), 0) / (units.length - 1);
      return words.map((each, i) => [each, mean(i)]).sort((p, q) => p[1] - q[1]);
    });
  }

  axes({ set: name, x, y = [], word = [] }) {
    const set = this.findSet(name);
    const given = [...new Set([word].flat())];
    const listed = given.length ? given : this.data.frequent;
    const words = listed.filter((each) => rowOf(set, each) !== undefined);
    const answer = { words, unknown: listed.filter((each) => rowOf(set, each) === undefined) };
    for (const [side, ends] of [["x", [x].flat()], ["y", [y].flat()]]) {
      if (side === "y" && !ends.length) continue;
      if (!ends.length || ends.length % 2) throw new QueryError(`axis ${side}: expected pairs such as he-she, good-bad, got ${ends.length} words.`);
      const rows = ends.map((end) => this.known(set, end));
      const [left, right] = [0, 1].map((half) => average(rows.filter((_, i) => i % 2 === half).map((row) => unit(set, row))));
      const axis = right.map((value, i) => value - left[i]);
      const length = inner(axis, axis);
      if (length < 1e-12) throw new QueryError("Both ends of the axis have the same vector; use different words.");
      const middle = inner(left.map((value, i) => (value + right[i]) / 2), axis);
      answer[side] = words.map((each) => (2 * (inner(unit(set, rowOf(set, each)), axis) - middle)) / length);
    }
    return answer;
  }

  card({ word }) {
    const sets = [];
    for (const set of this.sets) {
      const row = rowOf(set, word);
      if (row !== undefined) sets.push({ name: set.name, word: set.words[row], rank: row + 1, count: set.counts[row], norm: set.norms[row] });
    }
    if (!sets.length) throw this.unknown(word, "is not in the vocabulary of this page", this.sets);
    const lookUp = (table) => (Object.hasOwn(table, sets[0].word) ? table[sets[0].word] : undefined);
    const layers = Object.entries(this.data.layers).map(([name, near]) => [name, lookUp(near)]).filter(([, near]) => near).map(([name, near]) => [name, near.map((each) => [each])]);
    return { word: sets[0].word, sets, layers, senses: lookUp(this.data.senses) ?? [], relations: lookUp(this.data.relations) ?? {}, part: lookUp(this.data.parts) ?? "" };
  }

  lists() {
    return this.data.lists;
  }

  examples({ word }) {
    const { sentences, read, ended } = this.data;
    return { found: Object.hasOwn(sentences, word) ? sentences[word] : [], read, ended };
  }

  map({ set: name, method = "tsne", rows = "" }) {
    if (rows) return this.projectPart(name, method, rows);
    const found = this.data.maps[name];
    if (!found || !Object.hasOwn(found, method)) throw new QueryError("This page was exported without this map.");
    return { ...found[method], words: this.findSet(name).words };
  }

  fields({ set: name }) {
    return { ...this.data.fields[name], counts: this.findSet(name).counts };
  }

  vectors({ set: name, rows }) {
    const set = this.findSet(name), chosen = decodeRows(rows);
    const values = Float32Array.from(chosen.flatMap((row) => [...unit(set, row)].map((value) => value * set.norms[row])));
    return { dim: set.dim, vectors: encodeBytes(new Uint8Array(values.buffer)) };
  }

  // a map of some rows, computed here between two paintings of the page; returns its progress until it is done
  projectPart(name, method, text) {
    this.parts ??= new Map();
    const key = JSON.stringify([name, method, text]), set = this.findSet(name), rows = decodeRows(text);
    if (rows.length > MAX_PROJECTED || method === "umap") {
      const limit = method === "umap" ? "A UMAP map of selected words" : `A map of more than ${MAX_PROJECTED} selected words`;
      throw new QueryError(`${limit} needs the server: stillvec explore VECTORS.`);
    }
    if (!this.parts.has(key)) {
      const units = rows.map((row) => unit(set, row)), words = rows.map((row) => set.words[row]), steps = projectRows(units, method);
      const functionWords = new Set(this.data.fields[name].function);
      const run = () => {
        const end = performance.now() + 40;
        while (performance.now() < end) {
          const { done, value } = steps.next();
          if (!done) this.parts.set(key, value);
          else {
            const { labels, names } = clusterRows(units, words, rows.map((row, i) => /^\p{L}{3,}$/u.test(words[i]) && !functionWords.has(row)));
            const places = Uint16Array.from(value.positions, (place) => Math.round(((place + 1) / 2) * 65535));
            this.parts.set(key, { words, kept: value.kept, places: encodeBytes(new Uint8Array(places.buffer)), cluster: encodeBytes(labels), clusters: names });
            return;
          }
        }
        setTimeout(run);
      };
      this.parts.set(key, { stage: "waiting", done: 0, total: null });
      setTimeout(run);
    }
    return this.parts.get(key);
  }

  findSet(name) {
    return this.sets.find((each) => each.name === name);
  }

  answerAll(words, answer) {
    const answers = this.sets.map((set) => {
      const missing = words.find((word) => rowOf(set, word) === undefined);
      if (missing === undefined) return { name: set.name, found: answer(set, words.map((word) => rowOf(set, word))) };
      const error = this.unknown(missing, `is not in ${set.name}`, [set]);
      return { name: set.name, error: error.message, alike: error.alike };
    });
    const nowhere = words.find((word) => this.sets.every((set) => rowOf(set, word) === undefined));
    if (nowhere !== undefined) throw this.unknown(nowhere, "is not in the vocabulary of this page", this.sets);
    return answers;
  }

  known(set, word) {
    const row = rowOf(set, word);
    if (row === undefined) throw this.unknown(word, `is not in ${set.name}`, [set]);
    return row;
  }

  unknown(word, where, sets) {
    const key = fold(word, true);
    const candidates = sets.flatMap((set) => set.words.filter((each) => each[0]?.toLowerCase() === key[0] && Math.abs(each.length - key.length) < 3));
    const scored = [...new Set(candidates)].map((known) => [known, editDistance(key, fold(known, true))]).filter(([, distance]) => distance <= Math.max(1, key.length / 3));
    const alike = scored.sort((p, q) => p[1] - q[1]).slice(0, 3).map(([each]) => each);
    const hint = alike.length ? `did you mean ${alike.map((each) => `'${each}'`).join(" or ")}?` : "try another spelling.";
    return new QueryError(`'${word}' ${where}; ${hint}`, word, alike);
  }
}

function decodeBytes(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

function encodeBytes(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

function fold(word, lower) {
  const plain = word.trim().replace(/\s+/g, " ").normalize("NFC").replaceAll("’", "'");
  return lower ? plain.toLowerCase() : plain;
}

function rowOf(set, word) {
  return set.index.get(word) ?? set.index.get(fold(word, set.lowercase));
}

function dot(a, i, b, j, dim) {
  let sum = 0;
  for (let d = 0, p = i * dim, q = j * dim; d < dim; d += 1) sum += a[p + d] * b[q + d];
  return sum;
}

function inner(a, b) {
  let sum = 0;
  for (let d = 0; d < a.length; d += 1) sum += a[d] * b[d];
  return sum;
}

function unit(set, row) {
  return Float64Array.from(set.rows.subarray(row * set.dim, (row + 1) * set.dim), (value) => value / set.lengths[row]);
}

function average(rows) {
  return rows[0].map((_, d) => rows.reduce((sum, row) => sum + row[d], 0) / rows.length);
}

function cosines(set, query) {
  return Float64Array.from(set.lengths, (length, row) => dot(set.rows, row, query, 0, set.dim) / length);
}

function rankRows(scores, excluded) {
  return [...scores.keys()].filter((row) => !excluded.includes(row)).sort((p, q) => scores[q] - scores[p] || p - q);
}

function best(set, scores, k, excluded) {
  return rankRows(scores, excluded).slice(0, k).map((row) => [set.words[row], scores[row]]);
}

// one entry [word, score, , forms] per word; the forms of the query are a property of the list
function groupForms(set, scores, k, query) {
  const groups = [], own = [];
  for (const row of rankRows(scores, [query])) {
    const group = groups.find((each) => shareStem(set, each.row, row));
    if (shareStem(set, query, row)) own.push(set.words[row]);
    else if (group) group.forms.push(set.words[row]);
    else if (groups.length === k) break;
    else groups.push({ row, forms: [] });
  }
  return Object.assign(groups.map(({ row, forms }) => [set.words[row], scores[row], forms]), { forms: own });
}

// as share_stem of inflections.py
function shareStem(set, p, q) {
  if (set.stems) return set.stems[p] === set.stems[q];
  const [a, b] = [p, q].map((row) => [...set.words[row].toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "")]);
  let nCommon = 0;
  while (nCommon < Math.min(a.length, b.length) && a[nCommon] === b[nCommon]) nCommon += 1;
  const [short, long] = [a, b].map((word) => word.slice(nCommon)).sort((x, y) => x.length - y.length);
  if (!long.length) return true;
  const isPlain = [...short, ...long].every((char) => /\p{L}/u.test(char));
  return isPlain && nCommon >= (short.length ? 4 : 3) && short.length <= 2 && long.length <= 3 && 3 * nCommon >= 2 * Math.max(a.length, b.length);
}

function markShared(answers) {
  const lists = answers.map((each) => new Set((each.found ?? []).map(([word]) => word)));
  for (const each of answers) {
    each.found &&= each.found.map(([word, score, ...forms]) => [word, score, [...lists.keys()].filter((n) => lists[n].has(word)), ...forms]);
  }
  return answers;
}

function editDistance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    rows[i] = [i];
    for (let j = 1; j <= b.length; j += 1) {
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] !== b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}
