// Where many words are: a blurred count of points in a grid, in bands of the colours of the groups.

const DENSITY_CELLS = 220, DENSITY_EDGE = 1.1; // cells per direction, and how far the grid reaches
const DENSITY_BANDS = [[0.5, 58], [0.3, 46], [0.16, 34], [0.07, 22], [0.025, 12]]; // share of the largest, opacity of 255

function drawDensity({ positions, groups, colours, quiet, shown, words }) {
  const size = DENSITY_CELLS, nCells = size * size;
  const rgb = colours.map(toRgb), sums = [0, 1, 2, 3].map(() => new Float32Array(nCells));
  const cellOf = (value) => clamp(Math.floor(((value + DENSITY_EDGE) / (2 * DENSITY_EDGE)) * size), 0, size - 1);
  for (let row = 0; row < words.length; row += 1) {
    if (!shown[row] || quiet.has(groups[row])) continue;
    const cell = cellOf(positions[2 * row + 1]) * size + cellOf(positions[2 * row]), colour = rgb[groups[row]];
    for (let channel = 0; channel < 3; channel += 1) sums[channel][cell] += colour[channel];
    sums[3][cell] += 1;
  }
  const radius = clamp(Math.round(220 / Math.sqrt(words.length)), 2, 9);
  const [red, green, blue, count] = sums.map((values) => blurCells(values, size, radius));
  const top = count.reduce((largest, value) => Math.max(largest, value), 0);
  const canvas = make("canvas", { width: size, height: size }), pen = canvas.getContext("2d");
  const image = pen.createImageData(size, size);
  for (let cell = 0; cell < nCells; cell += 1) {
    const alpha = DENSITY_BANDS.find(([share]) => count[cell] > share * top)?.[1];
    if (alpha) image.data.set([red[cell] / count[cell], green[cell] / count[cell], blue[cell] / count[cell], alpha], 4 * cell);
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

// three means over a window, along rows and then along columns, are nearly a Gaussian
function blurCells(values, size, radius) {
  let table = values;
  for (let pass = 0; pass < 3; pass += 1) table = averageAlong(averageAlong(table, size, radius, 1, size), size, radius, size, 1);
  return table;
}

function averageAlong(values, size, radius, step, start) {
  const result = new Float32Array(values.length);
  for (let line = 0; line < size; line += 1) {
    let sum = 0;
    for (let i = -radius; i < size; i += 1) {
      if (i + radius < size) sum += values[line * start + (i + radius) * step];
      if (i - radius - 1 >= 0) sum -= values[line * start + (i - radius - 1) * step];
      if (i >= 0) result[line * start + i * step] = sum / (2 * radius + 1);
    }
  }
  return result;
}

const rgbOf = new Map(); // of a CSS colour, as a canvas draws it

function toRgb(colour) {
  if (!rgbOf.has(colour)) {
    const pen = make("canvas", { width: 1, height: 1 }).getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    rgbOf.set(colour, [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3));
  }
  return rgbOf.get(colour);
}
