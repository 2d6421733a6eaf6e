"use strict";
// Shared by all map pages of wayveil: theme, decoding, pan and zoom, streets, scale bar. No dependencies.

const UNITS = 65535; // positions are integers across the box, from the south-west corner
const element = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// ---- Decoding

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);
const longs = (text) => new Uint32Array(bytes(text).buffer);

// Where each line starts in a list of vertices; the last entry is the number of vertices.
function startsOf(counts) {
  const starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, k) => { starts[k + 1] = starts[k] + count; });
  return starts;
}

// ---- Theme: the system's, until the button says otherwise

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;
const themeName = () => chosenTheme ?? (prefersDark.matches ? "dark" : "light");

function startTheme(changed) {
  const apply = () => {
    document.documentElement.dataset.theme = themeName();
    element("theme").textContent = themeName() === "dark" ? "☀ Light" : "☾ Dark";
    changed();
  };
  element("theme").addEventListener("click", () => { chosenTheme = themeName() === "dark" ? "light" : "dark"; apply(); });
  prefersDark.addEventListener("change", apply);
  apply();
}

const INKS = {
  light: {
    road: "#8b8577", casing: "#ffffff", name: "#3f4750", track: "#d9480f", area: "#b42318", areaFill: "rgba(180,35,24,.16)",
    out: "#7c3aed", into: "#0f766e", speed: "#8a5300", speedFill: "rgba(214,140,20,.2)", way: "#1d4ed8",
    within: "#2e7d32", withinFill: "rgba(46,125,50,.07)", scale: "#1d2329", halo: "#fbfaf7", border: "#8b8577",
  },
  dark: {
    road: "#7b8794", casing: "#0b0e12", name: "#cdd5dc", track: "#ffb454", area: "#ff8f85", areaFill: "rgba(255,120,110,.17)",
    out: "#c4a5ff", into: "#5eead4", speed: "#f5b754", speedFill: "rgba(245,183,84,.17)", way: "#7fb2ff",
    within: "#7bd389", withinFill: "rgba(123,211,137,.06)", scale: "#e6e9ec", halo: "#12161b", border: "#6d7885",
  },
};
const inkNow = () => INKS[themeName()];

// ---- The view: the middle as shares of the box, and the zoom (1 shows the whole box)

const LEAST_ZOOM = 0.8, MOST_ZOOM = 200;

class View {
  constructor(widthM, heightM, changed) {
    Object.assign(this, { widthM, heightM, changed, x: 0.5, y: 0.5, zoom: 1 });
  }

  // Transforms between shares of the box (u, v) and pixels of a canvas (px, py); scale is in pixels per metre.
  frame(canvas) {
    const wide = canvas.clientWidth, high = canvas.clientHeight;
    const scale = Math.min(wide / this.widthM, high / this.heightM) * 0.96 * this.zoom;
    const { x, y, widthM, heightM } = this;
    return {
      wide, high, scale,
      x: (u) => wide / 2 + (u - x) * widthM * scale,
      y: (v) => high / 2 - (v - y) * heightM * scale,
      u: (px) => x + (px - wide / 2) / (widthM * scale),
      v: (py) => y - (py - high / 2) / (heightM * scale),
    };
  }

  set(x, y, zoom) {
    this.zoom = clamp(zoom, LEAST_ZOOM, MOST_ZOOM);
    this.x = clamp(x, 0, 1);
    this.y = clamp(y, 0, 1);
    this.changed();
  }

  home() { this.set(0.5, 0.5, 1); }

  movePixels(canvas, dx, dy) {
    const { scale } = this.frame(canvas);
    this.set(this.x - dx / (this.widthM * scale), this.y + dy / (this.heightM * scale), this.zoom);
  }

  // The place under (px, py) stays where it is.
  zoomAt(canvas, factor, px, py) {
    const to = this.frame(canvas), zoom = clamp(this.zoom * factor, LEAST_ZOOM, MOST_ZOOM), keep = this.zoom / zoom;
    const u = to.u(px), v = to.v(py);
    this.set(u - (u - this.x) * keep, v - (v - this.y) * keep, zoom);
  }

  zoomBy(factor) { this.set(this.x, this.y, this.zoom * factor); }
}

// ---- Input. The wheel and a finger scroll the page until the map has the focus.

const TAP_PIXELS = 5; // a press that moves less is a tap

// hooks: hover(place or null), tap(place, event), key(event) and grab(place, event) return true where they take over;
// a taken press continues with drag(place) and drop(place). moved() follows a key that moved the view. scrolled() is
// called where the wheel was left to the page.
function listenToMap(canvas, view, hooks) {
  const held = new Map();
  let pressed = null, taken = false;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const focused = () => document.activeElement === canvas;
  const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1; };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    const at = place(event);
    if (event.pointerType === "mouse") canvas.focus({ preventScroll: true });
    pressed = { at, tap: true };
    taken = held.size === 0 && Boolean(hooks.grab?.(at, event));
    held.set(event.pointerId, at);
    try { canvas.setPointerCapture(event.pointerId); } catch { /* the pointer has gone already */ }
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = place(event), before = held.get(event.pointerId);
    if (!before) { if (event.pointerType === "mouse") hooks.hover?.(now); return; }
    if (pressed && Math.hypot(now[0] - pressed.at[0], now[1] - pressed.at[1]) > TAP_PIXELS) pressed.tap = false;
    if (taken) { held.set(event.pointerId, now); if (!pressed.tap) hooks.drag(now, event); return; }
    if (event.pointerType !== "mouse" && !focused() && held.size === 1) { held.set(event.pointerId, now); return; }
    const wide = held.size === 2 ? spread() : 0;
    held.set(event.pointerId, now);
    view.movePixels(canvas, (now[0] - before[0]) / held.size, (now[1] - before[1]) / held.size);
    if (held.size === 2) {
      const [a, b] = [...held.values()];
      view.zoomAt(canvas, spread() / wide, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    if (!held.delete(event.pointerId)) return;
    const now = place(event), tap = pressed?.tap && held.size === 0;
    if (taken) hooks.drop(now, Boolean(tap));
    if (tap) { canvas.focus({ preventScroll: true }); hooks.tap?.(now, event); }
    taken = false;
  });
  canvas.addEventListener("pointercancel", (event) => {
    held.delete(event.pointerId);
    if (taken) hooks.drop(null, false);
    taken = false;
  });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hooks.hover?.(null); });

  canvas.addEventListener("wheel", (event) => {
    if (!focused() && !event.ctrlKey) { hooks.scrolled?.(); return; }
    event.preventDefault();
    view.zoomAt(canvas, Math.exp(-clamp(event.deltaY, -120, 120) / 300), ...place(event));
    hooks.hover?.(place(event));
  }, { passive: false });

  canvas.addEventListener("keydown", (event) => {
    if (hooks.key?.(event)) { event.preventDefault(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.min(canvas.clientWidth, canvas.clientHeight) / 8;
    const moves = {
      ArrowLeft: () => view.movePixels(canvas, step, 0), ArrowRight: () => view.movePixels(canvas, -step, 0),
      ArrowUp: () => view.movePixels(canvas, 0, step), ArrowDown: () => view.movePixels(canvas, 0, -step),
      "+": () => view.zoomBy(1.4), "=": () => view.zoomBy(1.4), "-": () => view.zoomBy(1 / 1.4), 0: () => view.home(),
      Escape: () => canvas.blur(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
    if (focused()) hooks.moved?.();
  });
}

// ---- Painting

// The canvas at the resolution of the screen, cleared; null while it has no size.
function clearedContext(canvas, wide, high) {
  const dots = window.devicePixelRatio || 1;
  const columns = Math.round(wide * dots), rows = Math.round(high * dots);
  if (columns === 0 || rows === 0) return null;
  if (canvas.width !== columns || canvas.height !== rows) { canvas.width = columns; canvas.height = rows; }
  const context = canvas.getContext("2d");
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, wide, high);
  return context;
}

function traceLine(context, to, xy, first, last) {
  context.moveTo(to.x(xy[2 * first] / UNITS), to.y(xy[2 * first + 1] / UNITS));
  for (let k = first + 1; k < last; k++) context.lineTo(to.x(xy[2 * k] / UNITS), to.y(xy[2 * k + 1] / UNITS));
}

function decodeRoads(packed) {
  if (!packed) return null;
  const starts = startsOf(longs(packed.counts)), xy = words(packed.xy), rank = bytes(packed.rank);
  const boxes = new Uint16Array(4 * rank.length); // west, south, east, north of each road
  for (let k = 0; k < rank.length; k++) {
    let [west, south, east, north] = [UNITS, UNITS, 0, 0];
    for (let i = starts[k]; i < starts[k + 1]; i++) {
      west = Math.min(west, xy[2 * i]); east = Math.max(east, xy[2 * i]);
      south = Math.min(south, xy[2 * i + 1]); north = Math.max(north, xy[2 * i + 1]);
    }
    boxes.set([west, south, east, north], 4 * k);
  }
  const name = packed.name ? longs(packed.name) : null;
  const nameOf = (k) => (name && name[k] > 0 ? packed.names[name[k] - 1] : "");
  return { starts, xy, rank, boxes, nameOf, oneway: bytes(packed.oneway) };
}

// Numbers of the roads whose box meets the canvas, enlarged by some pixels.
function roadsInside(roads, west, south, east, north) {
  const found = [];
  for (let k = 0; k < roads.rank.length; k++) {
    const b = 4 * k, boxes = roads.boxes;
    if (boxes[b] <= east && boxes[b + 2] >= west && boxes[b + 1] <= north && boxes[b + 3] >= south) found.push(k);
  }
  return found;
}

function roadsInView(roads, to) {
  return roadsInside(roads, to.u(0) * UNITS, to.v(to.high) * UNITS, to.u(to.wide) * UNITS, to.v(0) * UNITS);
}

const ROAD_WIDTHS = [2.6, 2.2, 1.8, 1.4, 1.0, 0.6, 0.4, 0.4, 0.6]; // pixels by class, motorway first

function paintRoads(context, to, roads, ink, zoom, oneWays = false) {
  const visible = roadsInView(roads, to), grow = Math.sqrt(zoom);
  const width = (rank) => ROAD_WIDTHS[rank] * Math.min(grow, 6) * 0.8;
  context.lineJoin = context.lineCap = "round";
  const stroke = (rank, style, wide, alpha) => {
    context.beginPath();
    for (const k of visible) if (roads.rank[k] === rank) traceLine(context, to, roads.xy, roads.starts[k], roads.starts[k + 1]);
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.globalAlpha = alpha;
    context.stroke();
  };
  // A casing keeps streets apart from the density below them; at small scales it would only blur.
  if (zoom >= 2.5) for (let rank = 8; rank >= 0; rank--) stroke(rank, ink.casing, width(rank) + 2.4, 0.75);
  for (let rank = 8; rank >= 0; rank--) stroke(rank, ink.road, width(rank), rank < 4 ? 0.85 : Math.min(0.85, 0.3 * grow));
  context.globalAlpha = 1;
  if (oneWays && to.scale > 0.12) for (const k of visible) if (roads.oneway[k]) paintArrow(context, to, roads, k, ink.road);
  if (to.scale > 0.1) paintNames(context, to, roads, visible, ink);
}

function longestPiece(to, roads, k) {
  let best = null;
  for (let i = roads.starts[k]; i + 1 < roads.starts[k + 1]; i++) {
    const [ax, ay] = [to.x(roads.xy[2 * i] / UNITS), to.y(roads.xy[2 * i + 1] / UNITS)];
    const [bx, by] = [to.x(roads.xy[2 * i + 2] / UNITS), to.y(roads.xy[2 * i + 3] / UNITS)];
    const long = Math.hypot(bx - ax, by - ay);
    if (!best || long > best.long) best = { ax, ay, bx, by, long };
  }
  return best;
}

function paintArrow(context, to, roads, k, style) {
  const piece = longestPiece(to, roads, k);
  if (!piece || piece.long < 26) return;
  arrowHead(context, (piece.ax + piece.bx) / 2, (piece.ay + piece.by) / 2, piece.bx - piece.ax, piece.by - piece.ay, 4.5, style);
}

function arrowHead(context, x, y, dx, dy, size, style) {
  const long = Math.hypot(dx, dy) || 1, ux = dx / long, uy = dy / long;
  context.beginPath();
  context.moveTo(x + ux * size, y + uy * size);
  context.lineTo(x - ux * size - uy * size * 0.8, y - uy * size + ux * size * 0.8);
  context.lineTo(x - ux * size + uy * size * 0.8, y - uy * size - ux * size * 0.8);
  context.closePath();
  context.fillStyle = style;
  context.fill();
}

// Each name once, on the longest visible piece of its street; names that would overlap are left out.
function paintNames(context, to, roads, visible, ink) {
  const longest = new Map();
  for (const k of visible) {
    const name = roads.nameOf(k), piece = name && longestPiece(to, roads, k);
    if (!piece) continue;
    const x = (piece.ax + piece.bx) / 2, y = (piece.ay + piece.by) / 2;
    if (x < 20 || y < 20 || x > to.wide - 20 || y > to.high - 20) continue;
    if (!longest.has(name) || longest.get(name).long < piece.long) longest.set(name, { ...piece, x, y, rank: roads.rank[k] });
  }
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const placed = [];
  for (const [name, piece] of [...longest].sort((a, b) => a[1].rank - b[1].rank || b[1].long - a[1].long)) {
    const half = context.measureText(name).width / 2;
    if (piece.long < 1.1 * half || placed.length >= 50) continue;
    if (placed.some((other) => Math.hypot(other.x - piece.x, other.y - piece.y) < half + other.half * 0.6)) continue;
    placed.push({ x: piece.x, y: piece.y, half });
    let angle = Math.atan2(piece.by - piece.ay, piece.bx - piece.ax);
    if (Math.abs(angle) > Math.PI / 2) angle += Math.PI;
    context.save();
    context.translate(piece.x, piece.y);
    context.rotate(angle);
    context.lineWidth = 3;
    context.strokeStyle = ink.halo;
    context.strokeText(name, 0, 0);
    context.fillStyle = ink.name;
    context.fillText(name, 0, 0);
    context.restore();
  }
  context.textBaseline = "alphabetic";
}

// The street nearest to a pixel: its number, distance in pixels, and nearest point; null beyond the reach.
function nearestStreet(roads, to, px, py, reach) {
  let best = null;
  const near = roadsInside(roads, to.u(px - reach) * UNITS, to.v(py + reach) * UNITS, to.u(px + reach) * UNITS, to.v(py - reach) * UNITS);
  for (const k of near) {
    for (let i = roads.starts[k]; i + 1 < roads.starts[k + 1]; i++) {
      const ax = to.x(roads.xy[2 * i] / UNITS), ay = to.y(roads.xy[2 * i + 1] / UNITS);
      const dx = to.x(roads.xy[2 * i + 2] / UNITS) - ax, dy = to.y(roads.xy[2 * i + 3] / UNITS) - ay;
      const share = clamp(((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy || 1), 0, 1);
      const x = ax + share * dx, y = ay + share * dy, distance = Math.hypot(px - x, py - y);
      if (distance <= reach && (!best || distance < best.distance)) best = { k, distance, x, y };
    }
  }
  return best;
}

const ROAD_WORDS = ["motorway", "trunk road", "primary road", "secondary road", "tertiary road", "residential street",
  "service road", "path", "road"];
const streetText = (roads, k) => roads.nameOf(k) || "Unnamed " + ROAD_WORDS[roads.rank[k]];

function paintLabel(context, text, x, y, fill, ink) {
  context.font = "600 12px system-ui, sans-serif";
  context.textAlign = "center";
  context.lineWidth = 3.5;
  context.strokeStyle = ink.halo;
  context.strokeText(text, x, y);
  context.fillStyle = fill;
  context.fillText(text, x, y);
}

function paintBorderAndScale(context, to, ink) {
  context.strokeStyle = ink.border;
  context.lineWidth = 1;
  context.strokeRect(to.x(0), to.y(1), to.x(1) - to.x(0), to.y(0) - to.y(1));
  const most = Math.min(160, to.wide / 3) / to.scale;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].map((k) => k * power).find((k) => k <= most);
  const long = metres * to.scale;
  // In the map's corner, or in the canvas's where that one is out of sight.
  const x = clamp(to.x(0) + 14, 14, to.wide - long - 14), y = clamp(to.y(0) - 14, 30, to.high - 16);
  context.strokeStyle = ink.scale;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x, y - 5); context.lineTo(x, y); context.lineTo(x + long, y); context.lineTo(x + long, y - 5);
  context.stroke();
  paintLabel(context, metres >= 1000 ? metres / 1000 + " km" : metres + " m", x + long / 2, y - 7, ink.scale, ink);
}

// Marks the middle of the map, which keys point with.
function paintCross(context, x, y, ink) {
  for (const [style, wide] of [[ink.halo, 5], [ink.scale, 1.8]]) {
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 5 * dx, y + 5 * dy);
      context.lineTo(x + 14 * dx, y + 14 * dy);
    }
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.stroke();
  }
}

// One repaint per frame, however often it is asked for.
function everyFrame(paint) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  };
}
