// The map on a canvas: coloured points, more labels at higher zoom, the word under the pointer.

class WordMap {
  constructor(canvas, listeners) {
    this.canvas = canvas;
    this.listeners = listeners; // { onHover(word, x, y), onSelect(word), onMove() }
    this.view = { x: 0, y: 0, zoom: 1 };
    this.words = [];
    this.marked = [];
    this.selected = -1;
    this.only = -1;
    this.pointers = new Map();
    this.widths = new Map();
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.listeners.onHover(null));
    canvas.addEventListener("keydown", (event) => this.handleKey(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(words, positions, groups, colours) {
    Object.assign(this, { words, positions, groups, colours });
    this.index = new Map(words.map((word, row) => [word, row]));
    this.order = Uint32Array.from(words.keys()).sort((p, q) => groups[p] - groups[q] || q - p);
    this.draw();
  }

  setView(x, y, zoom) {
    this.view = { x: clamp(x, -1.2, 1.2), y: clamp(y, -1.2, 1.2), zoom: clamp(zoom, 0.8, 400) };
    this.draw();
    this.listeners.onHover(null); // its word has moved away
    this.listeners.onMove();
  }

  // centre a row in the area beside the panel, or above a panel that is as wide as a phone
  centre(row, panel, zoom = this.view.zoom) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const isWide = panel.offsetWidth > width / 2;
    const x = isWide ? width / 2 : panel.offsetLeft / 2, y = isWide ? panel.offsetTop / 2 : height / 2;
    const scale = (this.scale() * zoom) / this.view.zoom;
    this.setView(this.positions[2 * row] + (width / 2 - x) / scale, this.positions[2 * row + 1] + (height / 2 - y) / scale, zoom);
  }

  isCovered(row, panel) {
    const [x, y] = this.onScreen(row), margin = 16;
    return x > panel.offsetLeft - margin && y > panel.offsetTop - margin && y < panel.offsetTop + panel.offsetHeight + margin;
  }

  scale() {
    return 0.47 * Math.min(this.canvas.clientWidth, this.canvas.clientHeight) * this.view.zoom;
  }

  onScreen(row) {
    const scale = this.scale();
    return [
      this.canvas.clientWidth / 2 + (this.positions[2 * row] - this.view.x) * scale,
      this.canvas.clientHeight / 2 + (this.positions[2 * row + 1] - this.view.y) * scale,
    ];
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
    pen.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const { visible, xs, ys } = this.project(width, height);
    const size = clamp(2 * Math.sqrt(this.view.zoom) * Math.sqrt(20000 / words.length), 1.5, 7);
    this.drawPoints(pen, xs, ys, size);
    this.boxes = new Boxes(width, height);
    this.drawMarks(pen, xs, ys, style, size);
    if (this.titles && this.view.zoom < 3) this.drawTitles(pen, style);
    this.drawLabels(pen, visible, xs, ys, style, size);
  }

  project(width, height) {
    const scale = this.scale(), n = this.words.length;
    const xs = new Float32Array(n), ys = new Float32Array(n), visible = [];
    for (let row = 0; row < n; row += 1) {
      const x = width / 2 + (this.positions[2 * row] - this.view.x) * scale;
      const y = height / 2 + (this.positions[2 * row + 1] - this.view.y) * scale;
      xs[row] = x;
      ys[row] = y;
      if (x > -5 && x < width + 5 && y > -5 && y < height + 5) visible.push(row);
      else xs[row] = NaN;
    }
    return { visible, xs, ys };
  }

  drawPoints(pen, xs, ys, size) {
    const side = Math.round(size); // a square on whole pixels needs no antialiasing
    let group = -1;
    for (const row of this.order) {
      if (Number.isNaN(xs[row])) continue;
      if (this.groups[row] !== group) {
        group = this.groups[row];
        pen.fillStyle = this.colours[group];
        pen.globalAlpha = this.only >= 0 && this.only !== group ? 0.1 : 0.8;
      }
      if (size < 3.5) pen.fillRect(Math.round(xs[row] - size / 2), Math.round(ys[row] - size / 2), side, side);
      else {
        pen.beginPath();
        pen.arc(xs[row], ys[row], size / 2, 0, 7);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }

  drawMarks(pen, xs, ys, style, size) {
    const ink = style.getPropertyValue("--ink");
    pen.strokeStyle = ink;
    for (const row of [...this.marked, this.selected]) {
      if (row < 0 || Number.isNaN(xs[row])) continue;
      pen.lineWidth = row === this.selected ? 2.5 : 1.25;
      pen.beginPath();
      pen.arc(xs[row], ys[row], size / 2 + (row === this.selected ? 5 : 3), 0, 7);
      pen.stroke();
    }
    for (const row of [this.selected, ...this.marked]) {
      if (row < 0 || Number.isNaN(xs[row])) continue;
      this.drawLabel(pen, row, xs[row], ys[row] - size / 2 - 8, `${row === this.selected ? "700 15px" : "600 13px"} ${style.getPropertyValue("--sans")}`, ink, style);
    }
  }

  drawTitles(pen, style) {
    for (const { text, row, group } of this.titles) {
      const [x, y] = this.onScreen(row);
      const isFaded = this.only >= 0 && this.only !== group;
      if (!isFaded) this.drawLabel(pen, -1, x, y, `600 ${this.canvas.clientWidth < 600 ? 15 : 19}px ${style.getPropertyValue("--serif")}`, this.colours[group], style, text);
    }
  }

  drawLabels(pen, visible, xs, ys, style, size) {
    const maxLabels = Math.min(260, (this.canvas.clientWidth * this.canvas.clientHeight) / 3800);
    const font = `12px ${style.getPropertyValue("--sans")}`, ink = style.getPropertyValue("--ink");
    let nLabels = 0;
    for (const row of visible.slice(0, 6000)) { // in order of frequency
      if (nLabels >= maxLabels) break;
      if (this.boxes.has(xs[row], ys[row] - size / 2 - 7)) continue;
      if (this.only >= 0 && this.groups[row] !== this.only) continue;
      if (row !== this.selected && this.drawLabel(pen, row, xs[row], ys[row] - size / 2 - 7, font, ink, style)) nLabels += 1;
    }
  }

  drawLabel(pen, row, x, y, font, colour, style, text = this.words[row]) {
    const short = text.length > 24 ? `${text.slice(0, 23)}…` : text;
    const key = `${font}|${short}`;
    pen.font = font;
    if (!this.widths.has(key)) this.widths.set(key, pen.measureText(short).width);
    const half = this.widths.get(key) / 2 + 4, high = parseInt(font.match(/(\d+)px/)[1], 10) * 0.65;
    if (!this.boxes.take(x - half, y - high, x + half, y + high)) return false;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 3.5;
    pen.strokeStyle = style.getPropertyValue("--soft");
    pen.strokeText(short, x, y);
    pen.fillStyle = colour;
    pen.fillText(short, x, y);
    return true;
  }

  nearest(x, y, within = 16) {
    const scale = this.scale(), best = { row: -1, distance: within ** 2 };
    const left = this.canvas.clientWidth / 2 - this.view.x * scale, top = this.canvas.clientHeight / 2 - this.view.y * scale;
    for (let row = 0; row < this.words.length; row += 1) {
      if (this.only >= 0 && this.groups[row] !== this.only) continue;
      const distance = (left + this.positions[2 * row] * scale - x) ** 2 + (top + this.positions[2 * row + 1] * scale - y) ** 2;
      if (distance < best.distance) Object.assign(best, { row, distance });
    }
    return best.row;
  }

  zoomAt(x, y, factor) {
    const before = this.scale(), zoom = clamp(this.view.zoom * factor, 0.8, 400);
    const after = (before * zoom) / this.view.zoom;
    const fromX = x - this.canvas.clientWidth / 2, fromY = y - this.canvas.clientHeight / 2;
    this.setView(this.view.x + fromX / before - fromX / after, this.view.y + fromY / before - fromY / after, zoom);
  }

  wheel(event) {
    event.preventDefault();
    const step = event.deltaMode ? 0.05 : event.ctrlKey ? 0.01 : 0.0018; // with ctrl: a pinch on a touchpad
    this.zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY * step));
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.dragged = this.pointers.size > 1 ? 99 : 0;
  }

  move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      const row = this.nearest(event.offsetX, event.offsetY);
      this.listeners.onHover(row < 0 ? null : this.words[row], ...(row < 0 ? [] : this.onScreen(row)));
      return;
    }
    const before = [...this.pointers.values()].map((point) => ({ ...point }));
    this.dragged += Math.hypot(event.offsetX - pointer.x, event.offsetY - pointer.y);
    Object.assign(pointer, { x: event.offsetX, y: event.offsetY });
    const after = [...this.pointers.values()], scale = this.scale();
    const middle = (points) => [points.reduce((sum, p) => sum + p.x, 0) / points.length, points.reduce((sum, p) => sum + p.y, 0) / points.length];
    const [fromX, fromY] = middle(before), [toX, toY] = middle(after);
    if (this.dragged > 4) this.setView(this.view.x - (toX - fromX) / scale, this.view.y - (toY - fromY) / scale, this.view.zoom);
    if (after.length === 2) {
      const distance = ([p, q]) => Math.hypot(p.x - q.x, p.y - q.y) || 1;
      this.zoomAt(toX, toY, distance(after) / distance(before));
    }
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId) || event.type === "pointercancel") return;
    if (this.dragged <= 4 && !this.pointers.size) {
      const row = this.nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 26 : 16);
      this.listeners.onSelect(row < 0 ? null : this.words[row]);
    }
  }

  handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60 / this.scale(), { x, y, zoom } = this.view;
    const action = {
      ArrowLeft: () => this.setView(x - step, y, zoom),
      ArrowRight: () => this.setView(x + step, y, zoom),
      ArrowUp: () => this.setView(x, y - step, zoom),
      ArrowDown: () => this.setView(x, y + step, zoom),
      "+": () => this.setView(x, y, zoom * 1.4),
      "=": () => this.setView(x, y, zoom * 1.4),
      "-": () => this.setView(x, y, zoom / 1.4),
      0: () => this.setView(0, 0, 1),
      Enter: () => {
        const row = this.nearest(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, 1e4);
        this.listeners.onSelect(row < 0 ? null : this.words[row]);
      },
      Escape: () => this.listeners.onSelect(null),
    }[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  }
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
