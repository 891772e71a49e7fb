// The matrix of a folder, plain or compressed (`stored`: int8, pq, bits or sparse). docs/formats.md specifies the arrays.

const UNPACK = { int8: unpackSteps, pq: unpackProducts, bits: unpackBits, sparse: unpackSparse };

/** The numbers, row by row, and their dimension. */
export function readMatrix(tensors, manifest) {
  if (manifest.stored === undefined) {
    const { matrix } = tensors;
    if (matrix?.shape.length !== 2) throw new Error("vectors.safetensors: expected an array 'matrix'.");
    return { values: matrix.values, dim: matrix.shape[1] };
  }
  const unpack = Object.hasOwn(UNPACK, manifest.stored) ? UNPACK[manifest.stored] : undefined;
  if (!unpack) throw new Error(`manifest.json: expected a compression (${Object.keys(UNPACK).join(", ")}), got '${manifest.stored}'.`);
  const Type = manifest.dtype === "float64" ? Float64Array : Float32Array;
  const values = new Type(manifest.words * manifest.dim);
  unpack(tensors, values, manifest.words, manifest.dim);
  return { values, dim: manifest.dim };
}

function unpackSteps({ codes, scales }, values, nWords, dim) {
  for (let row = 0, at = 0; row < nWords; row += 1) {
    for (let column = 0; column < dim; column += 1, at += 1) values[at] = codes.values[at] * scales.values[row];
  }
}

function unpackProducts({ codes, centres, widths }, values, nWords, dim) {
  const nParts = widths.values.length;
  for (let row = 0; row < nWords; row += 1) {
    for (let part = 0, column = 0; part < nParts; part += 1) {
      const centre = codes.values[row * nParts + part] * dim;
      for (const end = column + widths.values[part]; column < end; column += 1) values[row * dim + column] = centres.values[centre + column];
    }
  }
}

function unpackBits({ codes, scale: { values: [scale] } }, values, nWords, dim) {
  const nBytes = Math.ceil(dim / 8);
  for (let row = 0, at = 0; row < nWords; row += 1) {
    for (let column = 0; column < dim; column += 1, at += 1) {
      values[at] = (codes.values[row * nBytes + (column >> 3)] >> (7 - (column & 7))) & 1 ? scale : -scale;
    }
  }
}

function unpackSparse({ values: given, columns, lengths }, values, nWords, dim) {
  for (let row = 0, at = 0; row < nWords; row += 1) {
    for (const end = at + lengths.values[row]; at < end; at += 1) values[row * dim + columns.values[at]] = given.values[at];
  }
}
