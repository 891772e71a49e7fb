// Read safetensors: eight bytes of header length, a JSON header, the bytes of the arrays.

const TYPES = {
  F64: Float64Array, F32: Float32Array, I32: Int32Array, I16: Int16Array, I8: Int8Array,
  U32: Uint32Array, U16: Uint16Array, U8: Uint8Array, F16: Uint16Array,
};

/** The arrays of a file as `{ name: { values, shape } }`; half precision becomes single. */
export function parseTensors(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.byteLength < 8 ? Infinity : Number(view.getBigUint64(0, true));
  if (length > bytes.byteLength - 8) throw new Error(`safetensors: the header does not fit into ${bytes.byteLength} bytes.`);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const type = TYPES[entry.dtype], [begin, end] = entry.data_offsets, size = entry.shape.reduce((product, n) => product * n, 1);
    if (!type) throw new Error(`safetensors: unknown type ${entry.dtype} of '${name}'.`);
    if (end - begin !== size * type.BYTES_PER_ELEMENT || 8 + length + end > bytes.byteLength) throw new Error(`safetensors: '${name}' has the wrong number of bytes.`);
    const values = viewOrCopy(bytes, 8 + length + begin, size, type);
    tensors[name] = { values: entry.dtype === "F16" ? Float32Array.from(values, fromHalf) : values, shape: entry.shape };
  }
  return tensors;
}

function viewOrCopy(bytes, offset, size, Type) {
  const start = bytes.byteOffset + offset;
  if (start % Type.BYTES_PER_ELEMENT === 0) return new Type(bytes.buffer, start, size);
  return new Type(bytes.slice(offset, offset + size * Type.BYTES_PER_ELEMENT).buffer, 0, size);
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
