/** A table of character n-grams for unknown words. */
export interface SubwordTable {
  readonly dim: number;
  vector(word: string): Float64Array;
}

export interface EncodeOptions {
  /** One weight per word of the vocabulary; default: all are equal. */
  weights?: ArrayLike<number> & { reduce(fold: (most: number, weight: number) => number, first: number): number };
  /** Only the first of the dimensions; default: all. */
  dimensions?: number;
}

/** One vector per word. */
export class WordVectors {
  constructor(
    words: readonly string[],
    counts: readonly number[],
    values: Float32Array | Float64Array,
    dim: number,
    options?: { lowercase?: boolean; subwords?: SubwordTable | null; manifest?: Record<string, unknown> },
  );
  readonly words: readonly string[];
  readonly counts: readonly number[];
  /** The vectors, row by row. */
  readonly values: Float32Array | Float64Array;
  readonly dim: number;
  readonly lowercase: boolean;
  readonly subwords: SubwordTable | null | undefined;
  /** How the vectors were made: `manifest.json`. */
  readonly manifest: Record<string, unknown>;
  /** The number of words. */
  readonly length: number;
  /** The row of a word as it is written, else of its folded form; -1 if there is neither. */
  row(word: string): number;
  has(word: string): boolean;
  /** The vector of a word; of an unknown one from its n-grams, if there is a table. */
  vector(word: string): Float32Array;
  /** The cosine of two words. */
  similarity(a: string, b: string): number;
  /** The `k` words of highest cosine with a word or a vector, best first, without the word itself. */
  nearest(query: string | ArrayLike<number>, k?: number, options?: { exclude?: readonly string[] }): [string, number][];
  /** The mean vector of the known words of a text, zero if it has none. */
  encode(text: string, options?: EncodeOptions): Float32Array;
  encode(texts: readonly string[], options?: EncodeOptions): Float32Array[];
}

/** Load a folder from a URL, or from the disk in Node (a path or a `file:` URL). */
export function load(place: string | URL, options?: { fetch?: typeof globalThis.fetch }): Promise<WordVectors>;
