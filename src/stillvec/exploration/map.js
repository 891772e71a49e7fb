// One map on a canvas: density, points whose size is their frequency, labels, marks. `map_input.js` moves it.

const MAX_STRETCH = 1.6; // t-SNE and UMAP have no axes: their plane may be stretched to fill the screen

class WordMap {
  constructor(canvas, listeners) {
    this.canvas = canvas;
    this.listeners = listeners; // { onHover(word, x, y), onSelect(word, event), onMove(), onLasso(rows, event) }
    this.view = { x: 0, y: 0, zoom: 1 };
    this.extent = [1, 1];
    this.words = [];
    this.marked = [];
    this.selected = -1;
    this.hovered = -1;
    this.lasso = null;
    this.chosen = null;
    this.widths = new Map();
    listenToMap(this);
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // content: { words, positions, groups, colours, quiet (groups without a value), shown, sizes, labelOrder, titles, isIsotropic }
  show(content) {
    const isNew = content.words !== this.words;
    Object.assign(this, content);
    if (isNew) this.index = new Map(this.words.map((word, row) => [word, row]));
    this.order = Uint32Array.from(this.words.keys()).sort((p, q) => this.quiet.has(this.groups[q]) - this.quiet.has(this.groups[p]) || this.groups[p] - this.groups[q] || q - p);
    this.extent = [0, 1].map((axis) => this.positions.reduce((largest, value, i) => (i % 2 === axis ? Math.max(largest, Math.abs(value)) : largest), 0.05));
    this.density = drawDensity(this);
    this.draw();
  }

  choose(words) {
    this.chosen = words.size ? Uint8Array.from(this.words, (word) => words.has(word)) : null;
    this.draw();
  }

  setView(x, y, zoom) {
    this.view = { x: clamp(x, -1.2, 1.2), y: clamp(y, -1.2, 1.2), zoom: clamp(zoom, 0.8, 400) };
    this.draw();
    this.listeners.onHover(null); // its word has moved away
    this.listeners.onMove();
  }

  // centre a row in the area above a panel that covers the map, as on a phone
  centre(row, panel, zoom = this.view.zoom) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const y = panel.offsetLeft < width ? panel.offsetTop / 2 : height / 2;
    const scale = (this.scales()[1] * zoom) / this.view.zoom;
    this.setView(this.positions[2 * row], this.positions[2 * row + 1] + (height / 2 - y) / scale, zoom);
  }

  isCovered(row, panel) {
    const [x, y] = this.onScreen(row), margin = 16;
    const isInside = x > -margin && x < this.canvas.clientWidth + margin && y > -margin && y < this.canvas.clientHeight + margin;
    return !isInside || (x > panel.offsetLeft - margin && y > panel.offsetTop - margin && y < panel.offsetTop + panel.offsetHeight + margin);
  }

  // pixels per unit in both directions
  scales() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const fit = [width / this.extent[0], height / this.extent[1]].map((scale) => 0.465 * this.view.zoom * scale), least = Math.min(...fit);
    return fit.map((scale) => Math.min(scale, this.isIsotropic ? least : MAX_STRETCH * least));
  }

  onScreen(row) {
    const [across, down] = this.scales();
    return [
      this.canvas.clientWidth / 2 + (this.positions[2 * row] - this.view.x) * across,
      this.canvas.clientHeight / 2 + (this.positions[2 * row + 1] - this.view.y) * down,
    ];
  }

  // the place of the map under a point of the screen
  toMap(x, y) {
    const [across, down] = this.scales();
    return [this.view.x + (x - this.canvas.clientWidth / 2) / across, this.view.y + (y - this.canvas.clientHeight / 2) / down];
  }

  draw() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }

  paint() {
    const { canvas, words } = this, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !words.length) return;
    const pixelRatio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * pixelRatio) || canvas.height !== Math.round(height * pixelRatio)) {
      canvas.width = Math.round(width * pixelRatio);
      canvas.height = Math.round(height * pixelRatio);
    }
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    this.fonts = Object.fromEntries(["ink", "pale", "soft", "sans", "serif"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    pen.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.project(width, height);
    this.size = clamp(2.3 * this.view.zoom ** 0.4 * (20000 / words.length) ** 0.4, 2, 7);
    if (this.density) this.paintDensity(pen);
    this.paintPoints(pen);
    this.boxes = new Boxes(width, height);
    this.paintMarks(pen);
    if (this.titles && this.view.zoom < 3 && !this.chosen) this.paintTitles(pen);
    this.paintLabels(pen);
    if (this.lasso) this.paintLasso(pen);
  }

  project(width, height) {
    const [across, down] = this.scales(), n = this.words.length;
    const xs = new Float32Array(n), ys = new Float32Array(n);
    for (let row = 0; row < n; row += 1) {
      const x = width / 2 + (this.positions[2 * row] - this.view.x) * across;
      const y = height / 2 + (this.positions[2 * row + 1] - this.view.y) * down;
      const isInside = x > -8 && x < width + 8 && y > -8 && y < height + 8;
      xs[row] = isInside ? x : NaN;
      ys[row] = y;
    }
    Object.assign(this, { xs, ys });
  }

  isVisible(row) {
    return !Number.isNaN(this.xs[row]);
  }

  isLive(row) {
    return this.shown[row] && (!this.chosen || this.chosen[row]);
  }

  paintDensity(pen) {
    const [across, down] = this.scales(), { clientWidth: width, clientHeight: height } = this.canvas;
    const left = width / 2 + (-DENSITY_EDGE - this.view.x) * across, top = height / 2 + (-DENSITY_EDGE - this.view.y) * down;
    pen.globalAlpha = (this.chosen ? 0.35 : 1) * clamp(1.6 - this.view.zoom / 8, 0, 1); // points are apart at a high zoom
    pen.imageSmoothingQuality = "high";
    if (pen.globalAlpha > 0) pen.drawImage(this.density, left, top, 2 * DENSITY_EDGE * across, 2 * DENSITY_EDGE * down);
    pen.globalAlpha = 1;
  }

  // one path per colour; what is filtered out or not chosen comes first, pale
  paintPoints(pen) {
    for (const isLive of [false, true]) {
      let group = -2;
      pen.globalAlpha = isLive ? 0.85 : this.chosen ? 0.22 : 0.1;
      pen.beginPath();
      for (const row of this.order) {
        if (!this.isVisible(row) || Boolean(this.isLive(row)) !== isLive) continue;
        if (this.groups[row] !== group) {
          pen.fill();
          pen.beginPath();
          group = this.groups[row];
          pen.fillStyle = this.colours[group];
        }
        const radius = (this.size * this.sizes[row]) / 2, x = this.xs[row], y = this.ys[row];
        if (radius < 1.3) pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
        else {
          pen.moveTo(x + radius, y);
          pen.arc(x, y, radius, 0, 7);
        }
      }
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  paintMarks(pen) {
    pen.strokeStyle = this.fonts.ink;
    const rows = [...new Set([this.selected, this.hovered, ...this.marked])].filter((row) => row >= 0 && this.isVisible(row));
    for (const row of rows) {
      const isMain = row === this.selected || row === this.hovered;
      pen.lineWidth = isMain ? 2.5 : 1.25;
      pen.beginPath();
      pen.arc(this.xs[row], this.ys[row], (this.size * this.sizes[row]) / 2 + (isMain ? 4 : 2.5), 0, 7);
      pen.stroke();
    }
    for (const row of rows) this.paintLabel(pen, this.words[row], this.xs[row], this.ys[row] - (this.size * this.sizes[row]) / 2 - 12, `${row === this.selected || row === this.hovered ? "700 15px" : "600 13px"} ${this.fonts.sans}`, this.fonts.ink);
  }

  paintTitles(pen) {
    const size = this.canvas.clientWidth < 600 ? 14 : 18;
    for (const { text, row, group } of this.titles) {
      if (this.shown[row] && this.isVisible(row)) this.paintLabel(pen, text, this.xs[row], this.ys[row], `600 ${size}px ${this.fonts.serif}`, this.colours[group]);
    }
  }

  paintLabels(pen) {
    const maxLabels = Math.min(260, (this.canvas.clientWidth * this.canvas.clientHeight) / 4200);
    let nLabels = 0, nTried = 0;
    for (const row of this.labelOrder) {
      if (nLabels >= maxLabels || nTried > 6000) break;
      if (!this.isVisible(row) || !this.isLive(row)) continue;
      nTried += 1;
      const y = this.ys[row] - (this.size * this.sizes[row]) / 2 - 8;
      if (this.boxes.has(this.xs[row], y)) continue;
      const font = `${this.sizes[row] > 1.45 ? 13 : 11.5}px ${this.fonts.sans}`;
      if (this.paintLabel(pen, this.words[row], this.xs[row], y, font, this.fonts.ink)) nLabels += 1;
    }
  }

  paintLabel(pen, text, x, y, font, colour) {
    const short = text.length > 28 ? `${text.slice(0, 27)}…` : text;
    const key = `${font}|${short}`;
    pen.font = font;
    if (!this.widths.has(key)) this.widths.set(key, pen.measureText(short).width);
    const half = this.widths.get(key) / 2 + 4, high = parseFloat(font.match(/([\d.]+)px/)[1]) * 0.65;
    const inside = clamp(x, half + 2, Math.max(half + 2, this.canvas.clientWidth - half - 2)); // no name is cut off at the edge
    if (Math.abs(inside - x) > half || !this.boxes.take(inside - half, y - high, inside + half, y + high)) return false;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 3.5;
    pen.strokeStyle = this.fonts.soft;
    pen.strokeText(short, inside, y);
    pen.fillStyle = colour;
    pen.fillText(short, inside, y);
    return true;
  }

  paintLasso(pen) {
    pen.beginPath();
    for (const [x, y] of this.lasso) pen.lineTo(x, y);
    pen.closePath();
    pen.fillStyle = this.fonts.ink;
    pen.globalAlpha = 0.08;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = this.fonts.ink;
    pen.lineWidth = 1.5;
    pen.setLineDash([6, 4]);
    pen.stroke();
    pen.setLineDash([]);
  }

  nearest(x, y, within = 16) {
    const best = { row: -1, distance: within ** 2 }, [across, down] = this.scales();
    const left = this.canvas.clientWidth / 2 - this.view.x * across, top = this.canvas.clientHeight / 2 - this.view.y * down;
    for (let row = 0; row < this.words.length; row += 1) {
      if (!this.shown[row]) continue;
      const distance = (left + this.positions[2 * row] * across - x) ** 2 + (top + this.positions[2 * row + 1] * down - y) ** 2;
      if (distance < best.distance) Object.assign(best, { row, distance });
    }
    return best.row;
  }

  // rows that are shown and inside a polygon of the screen
  inside(polygon) {
    return [...this.words.keys()].filter((row) => this.shown[row] && isInPolygon(...this.onScreen(row), polygon));
  }

  inView() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return this.inside([[0, 0], [width, 0], [width, height], [0, height]]);
  }
}

function isInPolygon(x, y, polygon) {
  let isInside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i], [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) isInside = !isInside;
  }
  return isInside;
}

// The parts of the screen that are taken by labels, in cells of six pixels.
class Boxes {
  constructor(width, height) {
    this.wide = Math.ceil(width / 6);
    this.high = Math.ceil(height / 6);
    this.taken = new Uint8Array(this.wide * this.high);
  }

  has(x, y) {
    return this.taken[Math.floor(y / 6) * this.wide + Math.floor(x / 6)];
  }

  take(left, top, right, bottom) {
    if (left < 0 || top < 0 || right > this.wide * 6 || bottom > this.high * 6) return false;
    const [x0, y0, x1, y1] = [left, top, right, bottom].map((value) => Math.floor(value / 6));
    for (let y = y0; y <= y1; y += 1) for (let x = x0; x <= x1; x += 1) if (this.taken[y * this.wide + x]) return false;
    for (let y = y0; y <= y1; y += 1) this.taken.fill(1, y * this.wide + x0, y * this.wide + x1 + 1);
    return true;
  }
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
