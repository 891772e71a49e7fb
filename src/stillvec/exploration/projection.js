// A map of selected words, computed in a page that has no server: exact t-SNE, principal components, k-means.

const MAX_PROJECTED = 2500, PROJECTION_STEPS = 350; // words (time grows with the square), and steps of t-SNE
const PERPLEXITY = 20;

// Generators yield { stage, done, total } and return their result, so that the page can be drawn between steps.
function* projectRows(units, method) {
  const near = yield* findNearest(units, Math.min(3 * PERPLEXITY, units.length - 1));
  const positions = method === "pca" || units.length < 5 ? principalPlane(units) : yield* optimise(units, near);
  return { positions: fitSquare(positions), kept: keptNeighbours(near, positions) };
}

function* findNearest(units, k) {
  const near = [];
  for (const [row, unitRow] of units.entries()) {
    if (row % 100 === 0) yield { stage: "finding neighbours", done: row, total: units.length };
    const distances = units.map((other, at) => [at === row ? Infinity : Math.max(0, 2 - 2 * inner(unitRow, other)), at]);
    near.push(distances.sort((p, q) => p[0] - q[0]).slice(0, k));
  }
  return near;
}

// the probabilities of one row's neighbours, with the precision found by bisection
function shares(distances, perplexity) {
  const least = distances[0], mean = distances.reduce((sum, value) => sum + value - least, 0) / distances.length || 1;
  let low = -20, high = 20, p = [];
  for (let round = 0; round < 40; round += 1) {
    const middle = (low + high) / 2;
    p = distances.map((value) => Math.exp(-((value - least) / mean) * Math.exp(middle)));
    const sum = p.reduce((total, value) => total + value, 0);
    p = p.map((value) => value / sum);
    if (-p.reduce((total, value) => total + value * Math.log(Math.max(value, 1e-30)), 0) > Math.log(perplexity)) low = middle;
    else high = middle;
  }
  return p;
}

function* optimise(units, near) {
  const n = units.length, weights = new Map();
  near.forEach((list, row) => shares(list.map(([distance]) => distance), Math.min(PERPLEXITY, list.length / 3)).forEach((share, i) => {
    const other = list[i][1], key = Math.min(row, other) * n + Math.max(row, other);
    weights.set(key, (weights.get(key) ?? 0) + share / (2 * n));
  }));
  const pairs = [...weights].map(([key, weight]) => [Math.floor(key / n), key % n, weight]);
  const start = principalPlane(units), spread = Math.max(...start.map(Math.abs), 1e-30);
  const y = Float64Array.from(start, (value) => (value / spread) * 1e-2), velocity = new Float64Array(2 * n), gains = new Float64Array(2 * n).fill(1);
  for (let step = 0; step < PROJECTION_STEPS; step += 1) {
    yield { stage: "computing the map", done: step, total: PROJECTION_STEPS };
    const exaggeration = step < 100 ? 12 : 1, slope = gradient(y, pairs, exaggeration, n), rate = Math.max(n / exaggeration, 50);
    for (let i = 0; i < 2 * n; i += 1) {
      gains[i] = slope[i] * velocity[i] < 0 ? gains[i] + 0.2 : Math.max(0.8 * gains[i], 0.01);
      velocity[i] = 0.8 * velocity[i] - rate * gains[i] * slope[i];
      y[i] += velocity[i];
    }
  }
  return y;
}

// a quarter of the gradient of the Kullback-Leibler divergence
function gradient(y, pairs, exaggeration, n) {
  const pull = new Float64Array(2 * n), push = new Float64Array(2 * n);
  let total = 0;
  for (let i = 0; i < n; i += 1) {
    for (let j = i + 1; j < n; j += 1) {
      const dx = y[2 * i] - y[2 * j], dy = y[2 * i + 1] - y[2 * j + 1], q = 1 / (1 + dx * dx + dy * dy), force = q * q;
      total += 2 * q;
      push[2 * i] += force * dx; push[2 * i + 1] += force * dy;
      push[2 * j] -= force * dx; push[2 * j + 1] -= force * dy;
    }
  }
  for (const [i, j, weight] of pairs) {
    const dx = y[2 * i] - y[2 * j], dy = y[2 * i + 1] - y[2 * j + 1], force = weight / (1 + dx * dx + dy * dy);
    pull[2 * i] += force * dx; pull[2 * i + 1] += force * dy;
    pull[2 * j] -= force * dx; pull[2 * j + 1] -= force * dy;
  }
  return pull.map((value, i) => exaggeration * value - push[i] / (total || 1));
}

// by power iteration, the second component orthogonal to the first
function principalPlane(units) {
  const mean = average(units), centred = units.map((row) => row.map((value, d) => value - mean[d])), axes = [];
  for (let axis = 0; axis < 2; axis += 1) {
    let direction = mean.map((_, d) => Math.sin(1 + d * (axis + 1)));
    for (let round = 0; round < 40; round += 1) {
      const next = new Float64Array(mean.length);
      for (const row of centred) {
        const weight = inner(row, direction);
        for (let d = 0; d < next.length; d += 1) next[d] += weight * row[d];
      }
      for (const earlier of axes) {
        const overlap = inner(next, earlier);
        for (let d = 0; d < next.length; d += 1) next[d] -= overlap * earlier[d];
      }
      const length = Math.sqrt(inner(next, next)) || 1;
      direction = next.map((value) => value / length);
    }
    axes.push(direction);
  }
  return Float64Array.from(centred.flatMap((row) => axes.map((axis) => inner(row, axis))));
}

function fitSquare(positions) {
  const sides = [0, 1].map((axis) => positions.filter((_, i) => i % 2 === axis));
  const ends = sides.map((side) => [side.reduce((p, q) => Math.min(p, q)), side.reduce((p, q) => Math.max(p, q))]);
  const half = Math.max(...ends.map(([low, high]) => (high - low) / 2), 1e-30);
  return positions.map((value, i) => (value - (ends[i % 2][0] + ends[i % 2][1]) / 2) / half);
}

function keptNeighbours(near, positions) {
  const k = Math.min(10, near[0].length), rows = [...near.keys()].filter((row) => row % Math.ceil(near.length / 200) === 0);
  const distance = (p, q) => (positions[2 * p] - positions[2 * q]) ** 2 + (positions[2 * p + 1] - positions[2 * q + 1]) ** 2;
  const shared = rows.map((row) => {
    const flat = [...near.keys()].filter((other) => other !== row).sort((p, q) => distance(row, p) - distance(row, q)).slice(0, k);
    return near[row].slice(0, k).filter(([, other]) => flat.includes(other)).length / k;
  });
  return shared.reduce((sum, value) => sum + value, 0) / shared.length;
}

// spherical k-means from centres that are far from one another; names are the most central of the frequent words
function clusterRows(units, words, isContent) {
  const count = clamp(Math.floor(units.length / 12), 1, 20), centres = [units[0]];
  while (centres.length < count) {
    const closest = units.map((row) => Math.max(...centres.map((centre) => inner(row, centre))));
    centres.push(units[closest.indexOf(Math.min(...closest))]);
  }
  let labels = [];
  for (let round = 0; round < 25; round += 1) {
    labels = units.map((row) => centres.reduce((best, centre, c) => (inner(row, centre) > inner(row, centres[best]) ? c : best), 0));
    for (let c = 0; c < count; c += 1) {
      const members = units.filter((_, row) => labels[row] === c);
      if (members.length) centres[c] = average(members);
    }
  }
  const names = centres.map((centre, c) => {
    const members = [...units.keys()].filter((row) => labels[row] === c), content = members.filter((row) => isContent[row]);
    const candidates = (3 * content.length >= members.length ? content : members).slice(0, 50);
    return chooseNames(candidates.sort((p, q) => inner(units[q], centre) - inner(units[p], centre)).slice(0, 8).map((row) => words[row]));
  });
  return { labels: Uint8Array.from(labels), names };
}

// three words of which no two begin alike, as "animal" and "animals" do
function chooseNames(words) {
  const names = [];
  for (const word of words) if (!names.some((name) => beginAlike(word, name))) names.push(word);
  return names.slice(0, 3);
}

function beginAlike(a, b) {
  const shorter = Math.min(a.length, b.length);
  let n = 0;
  while (n < shorter && a[n] === b[n]) n += 1;
  return n >= Math.max(3, 0.6 * shorter);
}
