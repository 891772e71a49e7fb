// The map on a canvas: points by colour, names the more the nearer one is, one word under the pointer.

class WordMap {
  constructor(canvas, told) {
    this.canvas = canvas;
    this.told = told; // { over(word, x, y), chosen(word), moved() }
    this.view = { x: 0, y: 0, zoom: 1 };
    this.words = [];
    this.marked = [];
    this.chosen = -1;
    this.only = -1;
    this.pointers = new Map();
    this.widths = new Map();
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.told.over(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(words, places, groups, colours) {
    Object.assign(this, { words, places, groups, colours });
    this.index = new Map(words.map((word, row) => [word, row]));
    this.order = Uint32Array.from(words.keys()).sort((p, q) => groups[p] - groups[q] || q - p);
    this.draw();
  }

  look(x, y, zoom) {
    this.view = { x: clamp(x, -1.2, 1.2), y: clamp(y, -1.2, 1.2), zoom: clamp(zoom, 0.8, 400) };
    this.draw();
    this.told.moved();
  }

  // to the middle of what a panel leaves free: beside it, or over one that is as wide as a telephone
  bring(row, panel, zoom = this.view.zoom) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const over = panel.offsetWidth > width / 2;
    const x = over ? width / 2 : panel.offsetLeft / 2, y = over ? panel.offsetTop / 2 : height / 2;
    const scale = (this.scale() * zoom) / this.view.zoom;
    this.look(this.places[2 * row] + (width / 2 - x) / scale, this.places[2 * row + 1] + (height / 2 - y) / scale, zoom);
  }

  covered(row, panel) {
    const [x, y] = this.onScreen(row), room = 16;
    return x > panel.offsetLeft - room && y > panel.offsetTop - room && y < panel.offsetTop + panel.offsetHeight + room;
  }

  scale() {
    return 0.47 * Math.min(this.canvas.clientWidth, this.canvas.clientHeight) * this.view.zoom;
  }

  onScreen(row) {
    const scale = this.scale();
    return [
      this.canvas.clientWidth / 2 + (this.places[2 * row] - this.view.x) * scale,
      this.canvas.clientHeight / 2 + (this.places[2 * row + 1] - this.view.y) * scale,
    ];
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  paint() {
    const { canvas, words } = this, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !words.length) return;
    const dense = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, width, height);
    const { seen, xs, ys } = this.visible(width, height);
    const size = clamp(1.5 * Math.sqrt(this.view.zoom) * Math.sqrt(20000 / words.length), 1.5, 7);
    this.points(pen, xs, ys, size);
    this.boxes = new Boxes(width, height);
    this.ring(pen, xs, ys, style, size);
    if (this.titles && this.view.zoom < 3) this.headings(pen, style);
    this.names(pen, seen, xs, ys, style, size);
  }

  visible(width, height) {
    const scale = this.scale(), n = this.words.length;
    const xs = new Float32Array(n), ys = new Float32Array(n), seen = [];
    for (let row = 0; row < n; row += 1) {
      const x = width / 2 + (this.places[2 * row] - this.view.x) * scale;
      const y = height / 2 + (this.places[2 * row + 1] - this.view.y) * scale;
      xs[row] = x;
      ys[row] = y;
      if (x > -5 && x < width + 5 && y > -5 && y < height + 5) seen.push(row);
      else xs[row] = NaN;
    }
    return { seen, xs, ys };
  }

  points(pen, xs, ys, size) {
    const whole = Math.round(size); // on whole pixels a square needs no smoothing
    let group = -1;
    for (const row of this.order) {
      if (Number.isNaN(xs[row])) continue;
      if (this.groups[row] !== group) {
        group = this.groups[row];
        pen.fillStyle = this.colours[group];
        pen.globalAlpha = this.only >= 0 && this.only !== group ? 0.1 : 0.8;
      }
      if (size < 3.5) pen.fillRect(Math.round(xs[row] - size / 2), Math.round(ys[row] - size / 2), whole, whole);
      else {
        pen.beginPath();
        pen.arc(xs[row], ys[row], size / 2, 0, 7);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }

  ring(pen, xs, ys, style, size) {
    const ink = style.getPropertyValue("--ink");
    pen.strokeStyle = ink;
    for (const row of [...this.marked, this.chosen]) {
      if (row < 0 || Number.isNaN(xs[row])) continue;
      pen.lineWidth = row === this.chosen ? 2.5 : 1.25;
      pen.beginPath();
      pen.arc(xs[row], ys[row], size / 2 + (row === this.chosen ? 5 : 3), 0, 7);
      pen.stroke();
    }
    for (const row of [this.chosen, ...this.marked]) {
      if (row < 0 || Number.isNaN(xs[row])) continue;
      this.name(pen, row, xs[row], ys[row] - size / 2 - 8, `${row === this.chosen ? "700 15px" : "600 13px"} ${style.getPropertyValue("--sans")}`, ink, style);
    }
  }

  headings(pen, style) {
    for (const { text, row, group } of this.titles) {
      const [x, y] = this.onScreen(row);
      const faded = this.only >= 0 && this.only !== group;
      if (!faded) this.name(pen, -1, x, y, `600 ${this.canvas.clientWidth < 600 ? 15 : 19}px ${style.getPropertyValue("--serif")}`, this.colours[group], style, text);
    }
  }

  names(pen, seen, xs, ys, style, size) {
    const most = Math.min(260, (this.canvas.clientWidth * this.canvas.clientHeight) / 3800);
    const font = `12px ${style.getPropertyValue("--sans")}`, ink = style.getPropertyValue("--ink");
    let written = 0;
    for (const row of seen.slice(0, 6000)) { // in order of frequency
      if (written >= most) break;
      if (this.boxes.has(xs[row], ys[row] - size / 2 - 7)) continue;
      if (this.only >= 0 && this.groups[row] !== this.only) continue;
      if (row !== this.chosen && this.name(pen, row, xs[row], ys[row] - size / 2 - 7, font, ink, style)) written += 1;
    }
  }

  name(pen, row, x, y, font, colour, style, text = this.words[row]) {
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
    const scale = this.scale(), best = { row: -1, far: within ** 2 };
    const left = this.canvas.clientWidth / 2 - this.view.x * scale, top = this.canvas.clientHeight / 2 - this.view.y * scale;
    for (let row = 0; row < this.words.length; row += 1) {
      if (this.only >= 0 && this.groups[row] !== this.only) continue;
      const far = (left + this.places[2 * row] * scale - x) ** 2 + (top + this.places[2 * row + 1] * scale - y) ** 2;
      if (far < best.far) Object.assign(best, { row, far });
    }
    return best.row;
  }

  zoomAt(x, y, factor) {
    const before = this.scale(), zoom = clamp(this.view.zoom * factor, 0.8, 400);
    const after = (before * zoom) / this.view.zoom;
    const fromX = x - this.canvas.clientWidth / 2, fromY = y - this.canvas.clientHeight / 2;
    this.look(this.view.x + fromX / before - fromX / after, this.view.y + fromY / before - fromY / after, zoom);
  }

  wheel(event) {
    event.preventDefault();
    const step = event.deltaMode ? 0.05 : event.ctrlKey ? 0.01 : 0.0018; // with ctrl: two fingers on a touchpad
    this.zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY * step));
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.dragged = this.pointers.size > 1 ? 99 : 0;
  }

  move(event) {
    const held = this.pointers.get(event.pointerId);
    if (!held) {
      const row = this.nearest(event.offsetX, event.offsetY);
      this.told.over(row < 0 ? null : this.words[row], ...(row < 0 ? [] : this.onScreen(row)));
      return;
    }
    const was = [...this.pointers.values()].map((each) => ({ ...each }));
    this.dragged += Math.hypot(event.offsetX - held.x, event.offsetY - held.y);
    Object.assign(held, { x: event.offsetX, y: event.offsetY });
    const now = [...this.pointers.values()], scale = this.scale();
    const middle = (all) => [all.reduce((s, p) => s + p.x, 0) / all.length, all.reduce((s, p) => s + p.y, 0) / all.length];
    const [fromX, fromY] = middle(was), [toX, toY] = middle(now);
    if (this.dragged > 4) this.look(this.view.x - (toX - fromX) / scale, this.view.y - (toY - fromY) / scale, this.view.zoom);
    if (now.length === 2) {
      const apart = ([p, q]) => Math.hypot(p.x - q.x, p.y - q.y) || 1;
      this.zoomAt(toX, toY, apart(now) / apart(was));
    }
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId) || event.type === "pointercancel") return;
    if (this.dragged <= 4 && !this.pointers.size) {
      const row = this.nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 26 : 16);
      this.told.chosen(row < 0 ? null : this.words[row]);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60 / this.scale(), { x, y, zoom } = this.view;
    const todo = {
      ArrowLeft: () => this.look(x - step, y, zoom),
      ArrowRight: () => this.look(x + step, y, zoom),
      ArrowUp: () => this.look(x, y - step, zoom),
      ArrowDown: () => this.look(x, y + step, zoom),
      "+": () => this.look(x, y, zoom * 1.4),
      "=": () => this.look(x, y, zoom * 1.4),
      "-": () => this.look(x, y, zoom / 1.4),
      0: () => this.look(0, 0, 1),
      Enter: () => {
        const row = this.nearest(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, 1e4);
        this.told.chosen(row < 0 ? null : this.words[row]);
      },
      Escape: () => this.told.chosen(null),
    }[event.key];
    if (todo) {
      event.preventDefault();
      todo();
    }
  }
}

// Which parts of the screen have a name already, in cells of six pixels.
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
    const [x0, y0, x1, y1] = [left, top, right, bottom].map((each) => Math.floor(each / 6));
    for (let y = y0; y <= y1; y += 1) for (let x = x0; x <= x1; x += 1) if (this.taken[y * this.wide + x]) return false;
    for (let y = y0; y <= y1; y += 1) this.taken.fill(1, y * this.wide + x0, y * this.wide + x1 + 1);
    return true;
  }
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
