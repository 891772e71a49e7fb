// Where answers come from: a server, or the data of this file. Both answer the same questions in the same words.

class Trouble extends Error {
  constructor(message, alike = []) {
    super(message);
    this.alike = alike;
  }
}

class ServerSource {
  async ask(name, question = {}) {
    const asked = new URLSearchParams();
    for (const [key, value] of Object.entries(question)) for (const each of [value].flat()) asked.append(key, each);
    let answer, told;
    try {
      answer = await fetch(`api/${name}?${asked}`);
      told = await answer.json();
    } catch {
      throw new Trouble("The server does not answer; is stillvec explore still running?");
    }
    if (!answer.ok) throw new Trouble(told.error, told.alike);
    return told;
  }
}

// Vectors of bytes; cosines do not change with the length of a row, so each row has a scale of its own.
class LocalSource {
  constructor(data) {
    this.data = data;
    this.sets = data.data.map((packed, number) => {
      const name = data.sets[number].name, dim = data.sets[number].dim;
      const rows = new Int8Array(bytes(packed.q).buffer);
      const lengths = packed.words.map((_, row) => Math.sqrt(dot(rows, row, rows, row, dim)) || Infinity);
      const index = new Map(packed.words.map((word, row) => [word, row]));
      return { ...packed, name, dim, rows, lengths, index, norms: new Float32Array(bytes(packed.n).buffer) };
    });
  }

  async ask(name, question = {}) {
    return this[name](question);
  }

  about() {
    return this.data;
  }

  complete({ typed }) {
    const found = new Set(), key = fold(typed, true);
    if (!key) return [];
    for (const set of this.sets) {
      const begin = set.words.filter((word) => fold(word, true).startsWith(key));
      for (const word of begin.filter((each) => fold(each, true) === key).concat(begin).slice(0, 9)) found.add(word);
    }
    return [...found].slice(0, 8);
  }

  neighbours({ word, k = 12 }) {
    return shared(this.each([word], (set, [row]) => best(set, cosines(set, unit(set, row)), +k, [row])));
  }

  analogy({ a, b, c, k = 8, method = "3cosadd" }) {
    return shared(this.each([a, b, c], (set, rows) => {
      const [x, y, z] = rows.map((row) => cosines(set, unit(set, row)));
      const score = method === "3cosmul"
        ? (i) => ((1 + y[i]) * (1 + z[i])) / (1 + x[i] + 2e-3) / 2
        : (i) => y[i] - x[i] + z[i];
      return best(set, Float64Array.from(x, (_, i) => score(i)), +k, rows);
    }));
  }

  odd({ word }) {
    const words = [...new Set([word].flat())];
    if (words.length < 3) throw new Trouble(`The odd one is found among 3 to 200 words, and ${words.length} came.`);
    return this.each(words, (set, rows) => {
      const units = rows.map((row) => unit(set, row));
      const mean = (i) => units.reduce((sum, other, j) => sum + (i === j ? 0 : inner(units[i], other)), 0) / (units.length - 1);
      return words.map((each, i) => [each, mean(i)]).sort((p, q) => p[1] - q[1]);
    });
  }

  axes({ set: name, x, y = [], word = [] }) {
    const set = this.sets.find((each) => each.name === name);
    const asked = [...new Set([word].flat())];
    const listed = asked.length ? asked : this.data.frequent;
    const words = listed.filter((each) => rowOf(set, each) !== undefined);
    const answer = { words, unknown: listed.filter((each) => rowOf(set, each) === undefined) };
    for (const [side, ends] of [["x", [x].flat()], ["y", [y].flat()]]) {
      if (side === "y" && !ends.length) continue;
      if (!ends.length || ends.length % 2) throw new Trouble(`The axis ${side} is made of pairs, and ${ends.length} words came; write he-she, good-bad.`);
      const rows = ends.map((end) => this.known(set, end));
      const [left, right] = [0, 1].map((half) => average(rows.filter((_, i) => i % 2 === half).map((row) => unit(set, row))));
      const axis = right.map((value, i) => value - left[i]);
      const length = inner(axis, axis);
      if (length < 1e-12) throw new Trouble("Both ends of the axis are one and the same place; give words that differ.");
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
    if (!sets.length) throw this.unknown(word, "is in no set of this page", this.sets);
    const own = (table) => (Object.hasOwn(table, sets[0].word) ? table[sets[0].word] : undefined);
    const layers = Object.entries(this.data.layers).map(([name, near]) => [name, own(near)]).filter(([, near]) => near).map(([name, near]) => [name, near.map((each) => [each])]);
    return { word: sets[0].word, sets, layers, relations: own(this.data.relations) ?? {}, part: own(this.data.parts) ?? "" };
  }

  examples({ word }) {
    const { sentences, read, ended } = this.data;
    return { found: Object.hasOwn(sentences, word) ? sentences[word] : [], read, ended };
  }

  map({ set: name }) {
    const set = this.sets.find((each) => each.name === name);
    if (!Object.hasOwn(this.data.maps, name)) throw new Trouble("This page was written without a map.");
    return { ...this.data.maps[name], words: set.words };
  }

  each(words, answer) {
    const answers = this.sets.map((set) => {
      const lacking = words.find((word) => rowOf(set, word) === undefined);
      if (lacking === undefined) return { name: set.name, found: answer(set, words.map((word) => rowOf(set, word))) };
      const missing = this.unknown(lacking, `is not in ${set.name}`, [set]);
      return { name: set.name, error: missing.message, alike: missing.alike };
    });
    const nowhere = words.find((word) => this.sets.every((set) => rowOf(set, word) === undefined));
    if (nowhere !== undefined) throw this.unknown(nowhere, "is in no set of this page", this.sets);
    return answers;
  }

  known(set, word) {
    const row = rowOf(set, word);
    if (row === undefined) throw this.unknown(word, `is not in ${set.name}`, [set]);
    return row;
  }

  unknown(word, where, sets) {
    const key = fold(word, true);
    const near = sets.flatMap((set) => set.words.filter((each) => each[0]?.toLowerCase() === key[0] && Math.abs(each.length - key.length) < 3));
    const scored = [...new Set(near)].map((each) => [each, edits(key, fold(each, true))]).filter(([, far]) => far <= Math.max(1, key.length / 3));
    const alike = scored.sort((p, q) => p[1] - q[1]).slice(0, 3).map(([each]) => each);
    const hint = alike.length ? `did you mean ${alike.map((each) => `'${each}'`).join(" or ")}?` : "try another spelling.";
    return new Trouble(`The word '${word}' ${where}; ${hint}`, alike);
  }
}

function bytes(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
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

function best(set, scores, k, leftOut) {
  const order = [...scores.keys()].filter((row) => !leftOut.includes(row)).sort((p, q) => scores[q] - scores[p] || p - q);
  return order.slice(0, k).map((row) => [set.words[row], scores[row]]);
}

function shared(answers) {
  const lists = answers.map((each) => new Set((each.found ?? []).map(([word]) => word)));
  for (const each of answers) {
    each.found &&= each.found.map(([word, score]) => [word, score, [...lists.keys()].filter((n) => lists[n].has(word))]);
  }
  return answers;
}

function edits(a, b) {
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
