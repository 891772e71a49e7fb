// Pointer, wheel and keyboard on a map: drag and pinch move it, the lasso selects, a click opens a word.

const MIN_DRAG = 4; // pixels; less is a click

function listenToMap(map) {
  const { canvas } = map, pointers = new Map();
  let dragged = 0;

  const zoomAt = (x, y, factor) => {
    const zoom = clamp(map.view.zoom * factor, 0.8, 400), [before, beforeY] = map.scales();
    const ratio = zoom / map.view.zoom, fromX = x - canvas.clientWidth / 2, fromY = y - canvas.clientHeight / 2;
    map.setView(map.view.x + (fromX / before) * (1 - 1 / ratio), map.view.y + (fromY / beforeY) * (1 - 1 / ratio), zoom);
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaMode ? 0.05 : event.ctrlKey ? 0.01 : 0.0018; // with ctrl: a pinch on a touchpad
    zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY * step));
  }, { passive: false });

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    dragged = pointers.size > 1 ? 99 : 0;
    map.lasso = pointers.size === 1 && (map.isLassoing || event.shiftKey) ? [[event.offsetX, event.offsetY]] : null;
  });

  canvas.addEventListener("pointermove", (event) => {
    const pointer = pointers.get(event.pointerId), { offsetX: x, offsetY: y } = event;
    if (!pointer) {
      const row = map.nearest(x, y);
      map.listeners.onHover(row < 0 ? null : map.words[row], ...(row < 0 ? [] : map.onScreen(row)));
      return;
    }
    const before = [...pointers.values()].map((point) => ({ ...point }));
    dragged += Math.hypot(x - pointer.x, y - pointer.y);
    Object.assign(pointer, { x, y });
    if (map.lasso) {
      map.lasso.push([x, y]);
      map.listeners.onHover(null);
      map.draw();
      return;
    }
    const after = [...pointers.values()], [across, down] = map.scales();
    const middle = (points) => [points.reduce((sum, p) => sum + p.x, 0) / points.length, points.reduce((sum, p) => sum + p.y, 0) / points.length];
    const [fromX, fromY] = middle(before), [toX, toY] = middle(after);
    if (dragged > MIN_DRAG) map.setView(map.view.x - (toX - fromX) / across, map.view.y - (toY - fromY) / down, map.view.zoom);
    if (after.length === 2) {
      const distance = ([p, q]) => Math.hypot(p.x - q.x, p.y - q.y) || 1;
      zoomAt(toX, toY, distance(after) / distance(before));
    }
  });

  const release = (event) => {
    const lasso = map.lasso;
    map.lasso = null;
    map.draw();
    if (!pointers.delete(event.pointerId) || event.type === "pointercancel") return;
    if (lasso && dragged > 3 * MIN_DRAG) map.listeners.onLasso(map.inside(lasso), event);
    else if (dragged <= MIN_DRAG && !pointers.size) {
      const row = map.nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 26 : 16);
      map.listeners.onSelect(row < 0 ? null : map.words[row], event);
    }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => map.listeners.onHover(null));
  canvas.addEventListener("keydown", (event) => handleMapKey(map, event));
}

function handleMapKey(map, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [across, down] = map.scales().map((scale) => 60 / scale), { x, y, zoom } = map.view;
  const action = {
    ArrowLeft: () => map.setView(x - across, y, zoom),
    ArrowRight: () => map.setView(x + across, y, zoom),
    ArrowUp: () => map.setView(x, y - down, zoom),
    ArrowDown: () => map.setView(x, y + down, zoom),
    "+": () => map.setView(x, y, zoom * 1.4),
    "=": () => map.setView(x, y, zoom * 1.4),
    "-": () => map.setView(x, y, zoom / 1.4),
    0: () => map.setView(0, 0, 1),
    s: () => map.listeners.onLasso(map.inView(), event),
    S: () => map.listeners.onLasso(map.inView(), event),
    Enter: () => {
      const row = map.nearest(map.canvas.clientWidth / 2, map.canvas.clientHeight / 2, 1e4);
      map.listeners.onSelect(row < 0 ? null : map.words[row], event);
    },
    Escape: () => map.listeners.onSelect(null, event),
  }[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}
