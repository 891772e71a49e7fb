// Vectors of arbitrary strings from hashed character n-grams (floret), as `stillvec.subwords` computes them.

const MASK = (1n << 64n) - 1n;
const C1 = 0x87c37b91114253d5n, C2 = 0x4cf5ad432745937fn;
const MAX_CACHED = 10_000; // strings

/** The vector of a string is the mean of the rows of its n-grams. */
export class SubwordTable {
  constructor(settings, { values, shape }) {
    if (shape[0] !== settings.buckets) throw new Error(`subwords.safetensors: expected ${settings.buckets} rows, got ${shape[0]}.`);
    Object.assign(this, { settings, values, dim: shape[1], cache: new Map() });
  }

  /** Zero for the empty string. */
  vector(word) {
    if (!this.cache.has(word)) {
      if (this.cache.size >= MAX_CACHED) this.cache.clear();
      this.cache.set(word, this.compute(word));
    }
    return this.cache.get(word);
  }

  compute(word) {
    const mean = new Float64Array(this.dim), rows = this.ngrams(word).flatMap((gram) => this.hash(gram));
    for (const row of rows) for (let d = 0; d < this.dim; d += 1) mean[d] += this.values[row * this.dim + d];
    return mean.map((sum) => sum / (rows.length || 1));
  }

  // the string between its boundary marks, then its n-grams
  ngrams(word) {
    if (!word) return [];
    const { minn, maxn, bow, eow } = this.settings, key = Array.from(`${bow}${word}${eow}`), grams = [key.join("")];
    for (let size = minn; size <= Math.min(maxn, key.length); size += 1) {
      for (let at = 0; at + size <= key.length; at += 1) grams.push(key.slice(at, at + size).join(""));
    }
    return grams;
  }

  hash(gram) {
    const [h1, h2] = murmur3(new TextEncoder().encode(gram), BigInt(this.settings.hash_seed)), buckets = BigInt(this.settings.buckets);
    const numbers = [h1 & 0xffffffffn, h1 >> 32n, h2 & 0xffffffffn, h2 >> 32n].slice(0, this.settings.hash_count);
    return numbers.map((number) => Number(number % buckets));
  }
}

/** MurmurHash3_x64_128 (Appleby 2011). */
export function murmur3(bytes, seed) {
  const padded = new Uint8Array(16 * (Math.floor(bytes.length / 16) + 1)); // zero padding does not change the hash
  padded.set(bytes);
  const blocks = new BigUint64Array(padded.buffer), last = blocks.length - 2;
  let h1 = seed, h2 = seed;
  for (let at = 0; at < last; at += 2) {
    h1 = (rotate(h1 ^ mix(blocks[at], C1, 31n, C2), 27n) + h2) & MASK;
    h1 = (h1 * 5n + 0x52dce729n) & MASK;
    h2 = (rotate(h2 ^ mix(blocks[at + 1], C2, 33n, C1), 31n) + h1) & MASK;
    h2 = (h2 * 5n + 0x38495ab5n) & MASK;
  }
  h1 ^= mix(blocks[last], C1, 31n, C2) ^ BigInt(bytes.length);
  h2 ^= mix(blocks[last + 1], C2, 33n, C1) ^ BigInt(bytes.length);
  h1 = (h1 + h2) & MASK;
  h2 = (h2 + h1) & MASK;
  [h1, h2] = [finalize(h1), finalize(h2)];
  h1 = (h1 + h2) & MASK;
  return [h1, (h2 + h1) & MASK];
}

function rotate(x, by) {
  return ((x << by) | (x >> (64n - by))) & MASK;
}

function mix(x, first, by, second) {
  return (rotate((x * first) & MASK, by) * second) & MASK;
}

function finalize(x) {
  for (const factor of [0xff51afd7ed558ccdn, 0xc4ceb9fe1a85ec53n]) x = ((x ^ (x >> 33n)) * factor) & MASK;
  return x ^ (x >> 33n);
}
