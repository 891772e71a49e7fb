// Compare with what Python computed; used by the tests in Node and in the browser.

import { load } from "../index.js";

/** The largest difference of each kind between the results here and those of Python in `cases.json`. */
export async function findDifferences(cases, locate) {
  const worst = { encode: 0, vector: 0, cosine: 0, neighbours: [] };
  const compare = (kind, got, expected) => {
    if (got.length !== expected.length) worst[kind] = Infinity;
    got.forEach((value, at) => { worst[kind] = Math.max(worst[kind], Math.abs(value - expected[at])); });
  };
  for (const { folder, texts, calls, vectors, nearest } of cases) {
    const loaded = await load(locate(folder));
    for (const { options, expected } of calls) loaded.encode(texts, options).forEach((row, at) => compare("encode", row, expected[at]));
    if (texts.length) compare("encode", loaded.encode(texts[0]), calls[0].expected[0]);
    for (const [word, expected] of Object.entries(vectors)) compare("vector", loaded.vector(word), expected);
    for (const [word, expected] of Object.entries(nearest)) {
      const found = loaded.nearest(word, expected.length);
      compare("cosine", found.map(([, cosine]) => cosine), expected.map(([, cosine]) => cosine));
      const near = (position) => expected.filter(([, cosine]) => Math.abs(cosine - expected[position][1]) < 1e-5).map(([other]) => other); // ties
      found.forEach(([other], position) => { if (!near(position).includes(other) && position < expected.length - 1) worst.neighbours.push(`${folder} ${word}: ${other}`); });
    }
  }
  return worst;
}
