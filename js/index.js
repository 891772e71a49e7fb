// Load a stillvec folder, embed texts and find nearest words: the same results as `stillvec.load` in Python.

import { readMatrix } from "./matrix.js";
import { parseTensors } from "./safetensors.js";
import { SubwordTable } from "./subwords.js";
import { fold, WordMatcher } from "./words.js";

const MAX_VERSION = 2; // of the folder

/** Load a folder from a URL, or from the disk in Node. */
export async function load(place, { fetch = globalThis.fetch } = {}) {
  const open = await createReader(place, fetch);
  const manifest = JSON.parse(decodeText(await open("manifest.json")));
  if (!Number.isInteger(manifest.format) || manifest.format < 1 || manifest.format > MAX_VERSION) {
    throw new Error(`manifest.json: expected 'format' 1 to ${MAX_VERSION}, got ${manifest.format}.`);
  }
  const names = ["vocabulary.tsv", "vectors.safetensors", ...(manifest.subwords ? ["subwords.safetensors"] : [])];
  const [words, vectors, subwords] = await Promise.all(names.map(open));
  const { values, dim } = readMatrix(parseTensors(vectors), manifest);
  const table = subwords && new SubwordTable(manifest.subwords, parseTensors(subwords).matrix);
  return new WordVectors(...parseVocabulary(decodeText(words)), values, dim, { lowercase: manifest.lowercase, subwords: table, manifest });
}

/** One vector per word. */
export class WordVectors {
  constructor(words, counts, values, dim, { lowercase = false, subwords = null, manifest = {} } = {}) {
    if (values.length !== words.length * dim) throw new Error(`Expected ${words.length} vectors of ${dim} numbers, got ${values.length} numbers.`);
    Object.assign(this, { words, counts, values, dim, lowercase, subwords, manifest });
    this.index = new Map(words.map((word, row) => [word, row]));
    if (this.index.size !== words.length) throw new Error("Expected one line per word, got a word twice.");
  }

  get length() {
    return this.words.length;
  }

  /** The row of a word as it is written, else of its folded form; -1 if there is neither. */
  row(word) {
    return this.index.get(word) ?? this.index.get(fold(word, this.lowercase)) ?? -1;
  }

  has(word) {
    return this.row(word) >= 0;
  }

  /** The vector of a word; of an unknown one from its n-grams, if there is a table. */
  vector(word) {
    const row = this.row(word);
    if (row >= 0) return Float32Array.from(this.values.subarray(row * this.dim, (row + 1) * this.dim));
    if (!this.subwords || !word) throw new RangeError(`Unknown word '${word}'.`);
    return Float32Array.from(this.subwords.vector(fold(word, this.lowercase)));
  }

  /** The cosine of two words; 0 if one of them has a zero vector. */
  similarity(a, b) {
    const [x, y] = [this.vector(a), this.vector(b)];
    const lengths = Math.sqrt(dot(x, x) * dot(y, y));
    return lengths > 0 ? dot(x, y) / lengths : 0;
  }

  /** The `k` words of highest cosine with a word or a vector, best first, without the word itself. */
  nearest(query, k = 10, { exclude = [] } = {}) {
    if (!(k >= 1)) throw new RangeError(`k: expected at least 1, got ${k}.`);
    const excluded = new Set(exclude.map((word) => this.row(word)));
    if (typeof query === "string") excluded.add(this.row(query));
    const vector = typeof query === "string" ? this.vector(query) : query;
    if (vector.length !== this.dim) throw new RangeError(`Expected a vector of ${this.dim} numbers, got ${vector.length}.`);
    const length = Math.sqrt(dot(vector, vector)) || 1;
    const best = [];
    for (let row = 0; row < this.length; row += 1) {
      if (excluded.has(row)) continue;
      const cosine = dot(this.values, vector, row * this.dim) / length / this.norms[row];
      if (best.length < k || cosine > best.at(-1)[1]) insert(best, [row, cosine], k);
    }
    return best.map(([row, cosine]) => [this.words[row], cosine]);
  }

  /**
   * The mean vector of the known words of each text, zero if it has none. One text gives one vector, several an array.
   * With a table of n-grams, unknown words are included, with the largest weight.
   */
  encode(texts, { weights = null, dimensions = this.dim } = {}) {
    if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > this.dim) throw new RangeError(`dimensions: expected 1 to ${this.dim}, got ${dimensions}.`);
    if (weights && weights.length !== this.length) throw new RangeError(`weights: expected ${this.length}, one per word, got ${weights.length}.`);
    if (Array.isArray(texts)) return texts.map((text) => this.encodeText(text, weights, dimensions));
    return this.encodeText(texts, weights, dimensions);
  }

  encodeText(text, weights, dimensions) {
    const sums = new Float64Array(dimensions);
    let total = 0;
    for (const [row, word] of this.matcher.match(text)) {
      if (row < 0 && !this.subwords) continue;
      const weight = row < 0 ? this.heaviest(weights) : (weights?.[row] ?? 1);
      const values = row < 0 ? this.subwords.vector(word) : this.values, start = row < 0 ? 0 : row * this.dim;
      for (let d = 0; d < dimensions; d += 1) sums[d] += weight * values[start + d];
      total += weight;
    }
    return Float32Array.from(sums, (sum) => sum / (total > 0 ? total : 1));
  }

  heaviest(weights) {
    return weights ? weights.reduce((most, weight) => Math.max(most, weight), 1) : 1;
  }

  get matcher() {
    return (this.cachedMatcher ??= new WordMatcher(this.words, this.lowercase));
  }

  get norms() {
    if (!this.cachedNorms) {
      this.cachedNorms = new Float64Array(this.length);
      for (let row = 0; row < this.length; row += 1) {
        const vector = this.values.subarray(row * this.dim, (row + 1) * this.dim);
        this.cachedNorms[row] = Math.sqrt(dot(vector, vector)) || Infinity;
      }
    }
    return this.cachedNorms;
  }
}

function dot(values, vector, start = 0) {
  let sum = 0;
  for (let d = 0; d < vector.length; d += 1) sum += values[start + d] * vector[d];
  return sum;
}

// keep the k best in descending order; of equal ones the first row comes first
function insert(best, entry, k) {
  let at = best.length;
  while (at > 0 && best[at - 1][1] < entry[1]) at -= 1;
  best.splice(at, 0, entry);
  if (best.length > k) best.pop();
}

function decodeText(bytes) {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

function parseVocabulary(text) {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("vocabulary.tsv: expected a line break at the end.");
  const pairs = lines.map((line, number) => {
    const fields = line.split("\t");
    if (fields.length !== 2 || !fields[0] || !/^\d+$/.test(fields[1])) throw new Error(`vocabulary.tsv:${number + 1}: expected a word, a tab and a count.`);
    return fields;
  });
  return [pairs.map(([word]) => word), pairs.map(([, count]) => Number(count))];
}

async function createReader(place, fetch) {
  const name = String(place);
  if (globalThis.process?.versions?.node && !/^https?:/.test(name)) {
    const [files, url] = await Promise.all(["node:fs/promises", "node:url"].map((module) => import(/* webpackIgnore: true */ /* @vite-ignore */ module)));
    const folder = name.startsWith("file:") ? url.fileURLToPath(name) : name;
    return async (file) => new Uint8Array(await files.readFile(`${folder}/${file}`)); // a copy, which is aligned
  }
  const base = new URL(name.endsWith("/") ? name : `${name}/`, globalThis.document?.baseURI ?? globalThis.location?.href);
  return async (file) => {
    const response = await fetch(new URL(file, base));
    if (!response.ok) throw new Error(`${response.url}: expected a file of a stillvec folder, got status ${response.status}.`);
    return new Uint8Array(await response.arrayBuffer());
  };
}
