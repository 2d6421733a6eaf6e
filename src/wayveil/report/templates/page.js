"use strict";
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const element = (id) => document.getElementById(id);

  // Theme: the system's, until the button says otherwise.
  let chosen = null;
  const isDark = () => (chosen === null ? prefersDark.matches : chosen === "dark");
  function applyTheme() {
    root.dataset.theme = isDark() ? "dark" : "light";
    element("theme").textContent = isDark() ? "☀ Light" : "☾ Dark";
    paintAll();
  }

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const words = (text) => {
    const raw = bytes(text);
    return Uint16Array.from({ length: raw.length / 2 }, (_, k) => raw[2 * k] | (raw[2 * k + 1] << 8));
  };

  const ramps = {
    light: [[222, 235, 240], [143, 190, 208], [47, 134, 166], [20, 74, 110], [10, 26, 58]],
    dark: [[24, 42, 54], [26, 82, 107], [49, 143, 171], [140, 214, 205], [250, 247, 205]],
  };
  const inks = {
    light: { road: "#8b8577", track: "#d9480f", area: "#b42318", areaFill: "rgba(180,35,24,.16)", scale: "#1d2329", halo: "#fbfaf7" },
    dark: { road: "#6d7885", track: "#ffb454", area: "#ff8f85", areaFill: "rgba(255,120,110,.17)", scale: "#e6e9ec", halo: "#12161b" },
  };
  const roadWidths = [2.6, 2.2, 1.8, 1.4, 1.0, 0.6, 0.4, 0.4, 0.6];

  function colour(ramp, share) {
    const at = share * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2), part = at - low;
    return ramp[low].map((value, k) => Math.round(value + part * (ramp[low + 1][k] - value)));
  }

  const cells = data.columns * data.rows;
  const panels = data.panels.map((panel, k) => ({
    canvas: element("map-" + k),
    day: bytes(panel.day),
    hours: bytes(panel.hours),
    counts: panel.sample.counts,
    hour: panel.sample.hour,
    xy: words(panel.sample.xy),
    synthetic: panel.name === "Synthetic",
    image: document.createElement("canvas"),
    veil: document.createElement("canvas"),
    veiled: "",
    inked: "",
  }));
  const roads = data.roads && { counts: words(data.roads.counts), rank: bytes(data.roads.rank), xy: words(data.roads.xy) };

  // One view for all panels: the middle in units of the box, and pixels a metre relative to the whole box.
  const home = { x: 0.5, y: 0.5, zoom: 1 };
  let view = { ...home }, hour = -1;
  const layers = { density: true, tracks: true, roads: true, areas: true, uncertain: true };

  function frame(canvas) {
    const wide = canvas.clientWidth, high = canvas.clientHeight;
    const fit = Math.min(wide / data.width_m, high / data.height_m) * 0.96;
    const scale = fit * view.zoom;
    return {
      wide, high, scale,
      x: (u) => wide / 2 + (u - view.x) * data.width_m * scale,
      y: (v) => high / 2 - (v - view.y) * data.height_m * scale,
    };
  }

  function densityImage(panel, theme) {
    const key = theme + hour;
    if (panel.inked === key) return panel.image;
    const plane = hour < 0 ? panel.day : panel.hours.subarray(hour * cells, (hour + 1) * cells);
    panel.image.width = data.columns;
    panel.image.height = data.rows;
    const context = panel.image.getContext("2d");
    const pixels = context.createImageData(data.columns, data.rows);
    const table = Array.from({ length: 256 }, (_, k) => colour(ramps[theme], k / 255));
    for (let row = 0; row < data.rows; row++) {
      for (let column = 0; column < data.columns; column++) {
        const ink = plane[row * data.columns + column];
        if (ink === 0) continue;
        const at = 4 * ((data.rows - 1 - row) * data.columns + column);
        const [red, green, blue] = table[ink];
        pixels.data[at] = red; pixels.data[at + 1] = green; pixels.data[at + 2] = blue; pixels.data[at + 3] = 255;
      }
    }
    context.putImageData(pixels, 0, 0);
    panel.inked = key;
    return panel.image;
  }

  // Cells whose estimate rests on the prior: the density fades under a hatched veil, four pixels a cell and side.
  const uncertain = data.uncertain && bytes(data.uncertain);
  function uncertainImage(panel, theme) {
    const key = theme + hour, fine = 4, ink = inks[theme];
    if (panel.veiled === key) return panel.veil;
    const plane = hour < 0 ? panel.day : panel.hours.subarray(hour * cells, (hour + 1) * cells);
    panel.veil.width = fine * data.columns;
    panel.veil.height = fine * data.rows;
    const context = panel.veil.getContext("2d");
    const pixels = context.createImageData(panel.veil.width, panel.veil.height);
    const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
    const [paper, lines] = [channels(ink.halo), channels(ink.road)];
    for (let k = 0; k < cells; k++) {
      if (!((uncertain[k >> 3] >> (k & 7)) & 1) || plane[k] === 0) continue;
      const column = k % data.columns, row = data.rows - 1 - (k - column) / data.columns;
      for (let part = 0; part < fine * fine; part++) {
        const x = fine * column + (part % fine), y = fine * row + Math.floor(part / fine);
        const hatched = (x + y) % fine === 0;
        pixels.data.set([...(hatched ? lines : paper), hatched ? 130 : 185], 4 * (y * panel.veil.width + x));
      }
    }
    context.putImageData(pixels, 0, 0);
    panel.veiled = key;
    return panel.veil;
  }

  function line(context, to, xy, first, count) {
    context.moveTo(to.x(xy[2 * first] / 65535), to.y(xy[2 * first + 1] / 65535));
    for (let k = first + 1; k < first + count; k++) context.lineTo(to.x(xy[2 * k] / 65535), to.y(xy[2 * k + 1] / 65535));
  }

  function paintRoads(context, to, ink) {
    const grow = Math.sqrt(view.zoom);
    context.strokeStyle = ink.road;
    for (let rank = 8; rank >= 0; rank--) {
      context.beginPath();
      for (let k = 0, first = 0; k < roads.counts.length; first += roads.counts[k], k++) {
        if (roads.rank[k] === rank) line(context, to, roads.xy, first, roads.counts[k]);
      }
      context.globalAlpha = rank < 4 ? 0.8 : Math.min(0.75, 0.28 * grow);
      context.lineWidth = roadWidths[rank] * Math.min(grow, 2.5) * 0.8;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  function paintTracks(context, panel, to, ink) {
    const shown = hour < 0 ? 120 : Infinity;
    let drawn = 0;
    context.strokeStyle = context.fillStyle = ink.track;
    context.lineWidth = 1.3;
    context.globalAlpha = hour < 0 ? 0.5 : 0.85;
    context.beginPath();
    const dots = [];
    for (let k = 0, first = 0; k < panel.counts.length; first += panel.counts[k], k++) {
      if ((hour >= 0 && panel.hour[k] !== hour) || drawn >= shown) continue;
      line(context, to, panel.xy, first, panel.counts[k]);
      dots.push(first);
      drawn++;
    }
    context.stroke();
    context.globalAlpha = 1;
    for (const first of dots) {
      context.beginPath();
      context.arc(to.x(panel.xy[2 * first] / 65535), to.y(panel.xy[2 * first + 1] / 65535), 2.2, 0, 7);
      context.fill();
    }
    return drawn;
  }

  function paintAreas(context, to, ink) {
    for (const area of data.areas) {
      const closed = hour < 0 || area.hours[hour] > 0;
      context.beginPath();
      for (const ring of area.rings) { line(context, to, ring, 0, ring.length / 2); context.closePath(); }
      context.setLineDash(closed ? [] : [4, 5]);
      context.strokeStyle = ink.area;
      context.lineWidth = closed ? 2 : 1;
      if (closed) { context.fillStyle = ink.areaFill; context.fill(); }
      context.stroke();
      context.setLineDash([]);
      if (area.rings.length && view.zoom >= 1.5) {
        const ring = area.rings[0];
        let x = 0, y = 0;
        for (let k = 0; k < ring.length; k += 2) { x += ring[k]; y += ring[k + 1]; }
        label(context, area.name, to.x((2 * x) / ring.length / 65535), to.y((2 * y) / ring.length / 65535), ink.area, ink);
      }
    }
  }

  function label(context, text, x, y, fill, ink) {
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 3.5;
    context.strokeStyle = ink.halo;
    context.strokeText(text, x, y);
    context.fillStyle = fill;
    context.fillText(text, x, y);
  }

  function paintScale(context, to, ink) {
    const most = Math.min(160, to.wide / 3) / to.scale;
    const power = 10 ** Math.floor(Math.log10(most));
    const metres = [5, 2, 1].map((k) => k * power).find((k) => k <= most);
    const long = metres * to.scale;
    // In the map's corner, or in the canvas's where that one is out of sight.
    const x = Math.min(Math.max(14, to.x(0) + 14), to.wide - long - 14);
    const y = Math.max(Math.min(to.high - 16, to.y(0) - 14), 30);
    context.strokeStyle = ink.scale;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, y - 5); context.lineTo(x, y); context.lineTo(x + long, y); context.lineTo(x + long, y - 5);
    context.stroke();
    label(context, metres >= 1000 ? metres / 1000 + " km" : metres + " m", x + long / 2, y - 7, ink.scale, ink);
  }

  function paint(panel) {
    const canvas = panel.canvas, dots = window.devicePixelRatio || 1;
    const wide = Math.round(canvas.clientWidth * dots), high = Math.round(canvas.clientHeight * dots);
    if (wide === 0 || high === 0) return;
    if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
    const theme = isDark() ? "dark" : "light", ink = inks[theme], context = canvas.getContext("2d");
    context.setTransform(dots, 0, 0, dots, 0, 0);
    const to = frame(canvas);
    context.clearRect(0, 0, to.wide, to.high);
    if (layers.density) {
      context.imageSmoothingEnabled = false;
      const right = (data.columns * data.cell_m) / data.width_m, top = (data.rows * data.cell_m) / data.height_m;
      context.save();
      context.beginPath();
      context.rect(to.x(0), to.y(1), to.x(1) - to.x(0), to.y(0) - to.y(1));
      context.clip();
      const place = [to.x(0), to.y(top), to.x(right) - to.x(0), to.y(0) - to.y(top)];
      context.drawImage(densityImage(panel, theme), ...place);
      if (layers.uncertain && uncertain && panel.synthetic) context.drawImage(uncertainImage(panel, theme), ...place);
      context.restore();
    }
    if (layers.roads && roads) paintRoads(context, to, ink);
    if (layers.areas) paintAreas(context, to, ink);
    if (layers.tracks) paintTracks(context, panel, to, ink);
    context.strokeStyle = ink.road;
    context.lineWidth = 1;
    context.strokeRect(to.x(0), to.y(1), to.x(1) - to.x(0), to.y(0) - to.y(1));
    paintScale(context, to, ink);
  }

  let waiting = false;
  function paintAll() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; panels.forEach(paint); legend(); });
  }

  function legend() {
    const ramp = ramps[isDark() ? "dark" : "light"];
    element("ramp").style.background = "linear-gradient(90deg," + ramp.map((c) => "rgb(" + c + ")").join(",") + ")";
    const most = data.most_percent[hour < 0 ? 0 : 1];
    element("most").textContent = most.toPrecision(2) + " %";
  }

  function hourText() {
    if (hour < 0) return "all day";
    const two = (k) => String(k).padStart(2, "0");
    return two(hour) + ":00–" + two(hour + 1) + ":00";
  }

  function setHour(value) {
    hour = value;
    if (element("hour")) {
      element("hour").setAttribute("aria-valuetext", hourText());
      element("hour-text").textContent = hourText();
    }
    const closed = data.areas.filter((area) => hour >= 0 && area.hours[hour] > 0)
      .map((area) => area.name + (area.hours[hour] === 1 ? " (some days)" : ""));
    element("closed").textContent = data.areas.length && hour >= 0
      ? "Closed at this hour: " + (closed.join(", ") || "none") : "";
    paintAll();
  }

  function clampView() {
    view.zoom = Math.min(Math.max(view.zoom, 0.8), 60);
    view.x = Math.min(Math.max(view.x, 0), 1);
    view.y = Math.min(Math.max(view.y, 0), 1);
    paintAll();
  }

  function zoomAt(canvas, factor, px, py) {
    const to = frame(canvas);
    const u = view.x + (px - to.wide / 2) / (data.width_m * to.scale);
    const v = view.y - (py - to.high / 2) / (data.height_m * to.scale);
    const before = view.zoom;
    view.zoom = Math.min(Math.max(view.zoom * factor, 0.8), 60);
    const keep = before / view.zoom;
    view.x = u - (u - view.x) * keep;
    view.y = v - (v - view.y) * keep;
    clampView();
  }

  function listen(panel) {
    const canvas = panel.canvas, held = new Map();
    const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1; };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); held.set(event.pointerId, place(event)); });
    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) return;
      const before = held.get(event.pointerId), now = place(event), to = frame(canvas);
      const wide = held.size === 2 ? spread() : 0;
      held.set(event.pointerId, now);
      const part = 1 / held.size;
      view.x -= (part * (now[0] - before[0])) / (data.width_m * to.scale);
      view.y += (part * (now[1] - before[1])) / (data.height_m * to.scale);
      if (held.size === 2) {
        const [a, b] = [...held.values()];
        zoomAt(canvas, spread() / wide, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      }
      clampView();
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoomAt(canvas, Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 300), ...place(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 0.1 / view.zoom;
      const moves = {
        ArrowLeft: () => (view.x -= step), ArrowRight: () => (view.x += step),
        ArrowUp: () => (view.y += step), ArrowDown: () => (view.y -= step),
        "+": () => (view.zoom *= 1.4), "=": () => (view.zoom *= 1.4), "-": () => (view.zoom /= 1.4),
        0: () => (view = { ...home }),
      };
      if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      moves[event.key]();
      clampView();
    });
    new ResizeObserver(paintAll).observe(canvas);
  }

  panels.forEach(listen);
  if (element("hour")) element("hour").addEventListener("input", (event) => setHour(Number(event.target.value)));
  for (const name of Object.keys(layers)) {
    const box = element("layer-" + name);
    if (!box) continue;
    layers[name] = box.checked;
    box.addEventListener("change", () => { layers[name] = box.checked; paintAll(); });
  }
  element("zoom-in").addEventListener("click", () => { view.zoom *= 1.5; clampView(); });
  element("zoom-out").addEventListener("click", () => { view.zoom /= 1.5; clampView(); });
  element("zoom-home").addEventListener("click", () => { view = { ...home }; clampView(); });
  element("theme").addEventListener("click", () => { chosen = isDark() ? "light" : "dark"; applyTheme(); });
  prefersDark.addEventListener("change", applyTheme);
  applyTheme();
  setHour(-1);
})();
