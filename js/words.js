// The words of a text, as `stillvec.vocabulary` finds them: folding, the pattern of a word, and multi-word terms.

const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u; // as in Python
const FIRST = "[\\p{L}\\p{N}_]";
const LETTER = "[\\p{L}\\p{M}\\p{N}_\\u200C\\u200D]";
const JOINER = `(?:['’](?![sS](?!${LETTER}))|[.·׳״]|(?<=\\p{N}),(?=\\p{N}))`;
const WORD = new RegExp(
  "(?:[cdjlmnstCDJLMNST]|[qQ]u)['’](?=\\p{L}{2})" + // l'homme, d'être, qu'il
    `|(?:^|(?<=${LETTER}))['’][sS](?!${LETTER})` + // the dog's; ^: after a multi-word term
    `|${FIRST}${LETTER}*(?:${JOINER}${FIRST}${LETTER}*)*`,
  "gu",
);
const FINAL_SIGMA = /(?<=\p{L}|\p{L}\p{M})σ(?![\p{L}\p{M}])/gu;
const WORD_CHARACTER = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;

/** A word or term as a vocabulary writes it, stripped and with single spaces. */
export function fold(word, lowercase) {
  return normalize(word.split(SPACES).filter(Boolean).join(" "), lowercase);
}

/** Composed Unicode, straight apostrophes, lower case if requested. */
export function normalize(text, lowercase) {
  const plain = text.normalize("NFC").replaceAll("’", "'");
  if (!lowercase) return plain;
  const lower = plain.includes("Σ") ? Array.from(plain, (char) => char.toLowerCase()).join("") : plain.toLowerCase();
  return lower.includes("σ") ? lower.replace(FINAL_SIGMA, "ς") : lower;
}

/** Matches the words of texts with the rows of a vocabulary. */
export class WordMatcher {
  constructor(words, lowercase) {
    this.lowercase = lowercase;
    this.rows = new Map();
    this.terms = new Map(); // by their first character, the longest first
    words.forEach((word, row) => {
      if (/[^\0-\x7f]/.test(word)) this.rows.set(fold(word, lowercase), row); // "don’t" or a decomposed "é"
    });
    words.forEach((word, row) => {
      this.rows.set(word, row);
      if (isMultiword(word)) this.addTerm(normalize(word, lowercase), row);
    });
    for (const terms of this.terms.values()) terms.sort((a, b) => b.text.length - a.text.length);
  }

  addTerm(text, row) {
    if (!this.terms.has(text[0])) this.terms.set(text[0], []);
    this.terms.get(text[0]).push({ text, row });
  }

  /** `[row, word]` of each word of a text, in order; row -1 if it is unknown. */
  match(text) {
    const normalized = normalize(text, this.lowercase), found = [];
    let start = 0;
    for (let at = 0; this.terms.size && at < normalized.length; at += 1) {
      const term = this.terms.get(normalized[at])?.find((candidate) => normalized.startsWith(candidate.text, at));
      if (!term) continue;
      const end = at + term.text.length;
      if (isAlone(normalized, at, end)) {
        this.split(normalized.slice(start, at), found);
        found.push([term.row, term.text]);
        start = end;
      }
      at = end - 1; // also past a term that is a part of a longer word, as the tokenizers library does
    }
    this.split(normalized.slice(start), found);
    return found;
  }

  split(piece, found) {
    for (const [word] of piece.matchAll(WORD)) found.push([this.rows.get(word) ?? -1, word]);
  }
}

// whether the pattern splits a word, whatever follows it: "new york", "e-mail", "c++"
function isMultiword(word) {
  if (/^\p{L}+$/u.test(word) || !word.replace(SPACES, "")) return false;
  const parts = Array.from(word.matchAll(WORD), ([part]) => part);
  if (parts.length === 1 && parts[0] === word) return false;
  const first = `${word}aa`.matchAll(WORD).next().value; // "l'" needs its noun
  return !(first && first.index === 0 && first[0] === word);
}

function isAlone(text, start, end) {
  const before = Array.from(text.slice(Math.max(0, start - 2), start)).at(-1) ?? "";
  const after = end < text.length ? String.fromCodePoint(text.codePointAt(end)) : "";
  return !WORD_CHARACTER.test(before) && !WORD_CHARACTER.test(after);
}
