import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { load, WordVectors } from "../index.js";
import { parseTensors } from "../safetensors.js";
import { murmur3 } from "../subwords.js";
import { fold, WordMatcher } from "../words.js";
import { findDifferences } from "./differences.js";

function writeTensors(arrays) {
  const header = {}, parts = [];
  let end = 0;
  for (const [name, [dtype, shape, values]] of Object.entries(arrays)) {
    header[name] = { dtype, shape, data_offsets: [end, end + values.byteLength] };
    end += values.byteLength;
    parts.push(Buffer.from(values.buffer));
  }
  const text = JSON.stringify(header), padded = text.padEnd(Math.ceil(text.length / 8) * 8), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, Buffer.from(padded), ...parts]);
}

async function withFolder(files, use) {
  const folder = await mkdtemp(join(tmpdir(), "stillvec-"));
  const whole = {
    "manifest.json": JSON.stringify({ format: 1, words: 3, dim: 2, lowercase: true }),
    "vocabulary.tsv": "ice\t3\nsnow\t2\nnew york\t0\n",
    "vectors.safetensors": writeTensors({ matrix: ["F32", [3, 2], Float32Array.of(1, 0, 0.9, 0.1, -1, 0.2)] }),
    ...files,
  };
  try {
    for (const [name, content] of Object.entries(whole)) if (content !== null) await writeFile(join(folder, name), content);
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("a folder is loaded from a path, a file URL and a server", () => withFolder({}, async (folder) => {
  const server = createServer(async (request, response) => {
    const content = await readFile(join(folder, request.url.replace("/vectors", ""))).catch(() => null);
    response.writeHead(content ? 200 : 404).end(content ?? "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  try {
    for (const place of [folder, pathToFileURL(folder), `http://127.0.0.1:${port}/vectors`, new URL(`http://127.0.0.1:${port}/vectors/`)]) {
      const vectors = await load(place);
      assert.deepEqual([vectors.length, vectors.dim, vectors.counts], [3, 2, [3, 2, 0]]);
      assert.equal(vectors.nearest("Ice", 1)[0][0], "snow");
      assert.deepEqual(vectors.nearest("ice", 5, { exclude: ["snow"] }).map(([word]) => word), ["new york"]);
      assert.deepEqual([...vectors.encode("Ice in New York, qqq")], [0, Math.fround(0.1)]);
      assert.deepEqual([...vectors.encode(["", "ice"], { dimensions: 1 })].map((row) => [...row]), [[0], [1]]);
      assert.deepEqual([...vectors.encode("ice snow", { weights: [0, 1, 1] })], [...vectors.vector("snow")]);
    }
    await assert.rejects(load(`http://127.0.0.1:${port}/other`), /404/);
  } finally {
    server.close();
  }
}));

test("what is no folder is refused with a sentence", async () => {
  const bad = {
    newer: { "manifest.json": '{"format": 3}' },
    compression: { "manifest.json": '{"format": 2, "stored": "constructor", "words": 3, "dim": 2}' },
    short: { "vectors.safetensors": "abc" },
    lines: { "vocabulary.tsv": "ice\t3\nsnow 2\nnew york\t0\n" },
    end: { "vocabulary.tsv": "ice\t3" },
    rows: { "vocabulary.tsv": "ice\t3\n" },
    twice: { "vocabulary.tsv": "ice\t3\nice\t3\nsnow\t1\n" },
  };
  for (const [name, files] of Object.entries(bad)) {
    await withFolder(files, (folder) => assert.rejects(load(folder), (error) => error instanceof Error && error.message.endsWith("."), name));
  }
});

test("a wrong argument is refused", () => {
  const vectors = new WordVectors(["ice"], [1], Float32Array.of(1, 2), 2);
  assert.throws(() => vectors.vector("snow"), /snow/);
  assert.throws(() => vectors.nearest([1, 2, 3]), /2 numbers/);
  assert.throws(() => vectors.nearest("ice", 0), /k:/);
  for (const dimensions of [0, 3, 1.5]) assert.throws(() => vectors.encode("ice", { dimensions }), /1 to 2/);
  assert.throws(() => vectors.encode("ice", { weights: [] }), /weights/);
});

test("half precision is read exactly", () => {
  const { matrix } = parseTensors(new Uint8Array(writeTensors({ matrix: ["F16", [5], Uint16Array.of(0x3c00, 0xc000, 1, 0x7bff, 0x8000)] })));
  assert.deepEqual([...matrix.values], [1, -2, 2 ** -24, 65504, -0]);
});

test("murmur3 gives the published value", () => {
  const hash = murmur3(new TextEncoder().encode("The quick brown fox jumps over the lazy dog"), 0n);
  assert.deepEqual(hash.map((half) => half.toString(16)), ["e34bbc7bbc071b6c", "7a433ca9c49a9347"]);
});

test("words are folded and found", () => {
  assert.equal(fold("  ΟΔΟΣ\u00a0 ΣΑΣ ", true), "οδος σας");
  const matcher = new WordMatcher(["new york", "c++", "l'", "don't", "york"], true);
  const words = matcher.match("New York's c++; L'homme DON’T newyork xc++ new yorker");
  assert.deepEqual(words.map(([, word]) => word), ["new york", "'s", "c++", "l'", "homme", "don't", "newyork", "xc", "new", "yorker"]);
  assert.deepEqual(words.map(([row]) => row), [0, -1, 1, 2, -1, 3, -1, -1, -1, -1]);
});

const cases = process.env.STILLVEC_CASES;
test("the results are those of Python", { skip: cases ? false : "STILLVEC_CASES is not set (tests/test_javascript.py sets it)." }, async () => {
  const worst = await findDifferences(JSON.parse(await readFile(join(cases, "cases.json"), "utf8")), (folder) => join(cases, folder));
  assert.ok(worst.encode < 1e-6 && worst.vector < 1e-6 && worst.cosine < 1e-5, JSON.stringify(worst));
  assert.deepEqual(worst.neighbours, []);
});
