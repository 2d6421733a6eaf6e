// The map of the data sheet and of the internal report: density, sample trips, flows, closed areas, animation.
(() => {
  const data = JSON.parse(element("map-data").textContent);
  const roads = decodeRoads(data.roads);
  const cells = data.columns * data.rows;
  const dayTicks = 86400 / data.tick_s;
  const layers = { density: true, tracks: true, roads: true, areas: true, flows: false, uncertain: true };
  const hourSlider = document.querySelector("#hour");
  let hour = -1; // -1: all day
  let probe = null; // the place that the pointer, a tap or the keys point at, in shares of the box

  const view = new View(data.width_m, data.height_m, () => { if (probe?.by === "keys") pointAtMiddle(); repaint(); });
  const repaint = everyFrame(() => { panels.forEach(paint); showLegend(); });

  const panels = data.panels.map((packed, k) => ({
    name: packed.name,
    canvas: element("map-" + k),
    tip: element("tip-" + k),
    day: bytes(packed.day),
    hours: packed.hours && bytes(packed.hours),
    trips: decodeTrips(packed.sample),
    flows: packed.flows,
    base: document.createElement("canvas"), baseKey: "",
    image: document.createElement("canvas"), imageKey: "",
  }));

  // ---- Density

  const ramps = {
    light: [[214, 232, 238], [143, 190, 208], [47, 134, 166], [20, 74, 110], [10, 26, 58]],
    dark: [[24, 48, 62], [26, 82, 107], [49, 143, 171], [140, 214, 205], [250, 247, 205]],
  };
  const FINE = 4; // pixels of the density image along a side of a cell

  function colour(ramp, share) {
    const at = share * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2), part = at - low;
    return ramp[low].map((value, k) => Math.round(value + part * (ramp[low + 1][k] - value)));
  }

  const plane = (panel) => (hour < 0 || !panel.hours ? panel.day : panel.hours.subarray(hour * cells, (hour + 1) * cells));

  // The level is interpolated between cell centres and then coloured; faint levels are transparent.
  function densityImage(panel) {
    const key = themeName() + hour;
    if (panel.imageKey === key) return panel.image;
    const levels = plane(panel), wide = data.columns * FINE, high = data.rows * FINE;
    panel.image.width = wide;
    panel.image.height = high;
    const context = panel.image.getContext("2d"), pixels = context.createImageData(wide, high);
    const table = Array.from({ length: 256 }, (_, k) => colour(ramps[themeName()], k / 255));
    const level = (column, row) => levels[clamp(row, 0, data.rows - 1) * data.columns + clamp(column, 0, data.columns - 1)];
    for (let py = 0; py < high; py++) {
      const y = (high - 1 - py + 0.5) / FINE - 0.5, row = Math.floor(y), up = y - row;
      for (let px = 0; px < wide; px++) {
        const x = (px + 0.5) / FINE - 0.5, column = Math.floor(x), right = x - column;
        const low = level(column, row) * (1 - right) + level(column + 1, row) * right;
        const top = level(column, row + 1) * (1 - right) + level(column + 1, row + 1) * right;
        const shade = low * (1 - up) + top * up;
        if (shade < 1) continue;
        pixels.data.set([...table[Math.round(shade)], Math.min(255, 40 + 2.2 * shade)], 4 * (py * wide + px));
      }
    }
    context.putImageData(pixels, 0, 0);
    panel.imageKey = key;
    return panel.image;
  }

  // Streets must stay visible: the closer the view, the fainter the density above a street map.
  function densityStrength(to) {
    const closeness = clamp(Math.log2((data.cell_m * to.scale) / 10) / 3, 0, 1);
    return (roads && layers.roads ? 0.95 - 0.6 * closeness : 0.95 - 0.25 * closeness) * (clock < 0 ? 1 : 0.55);
  }

  function paintGrid(context, to, image, widthM, heightM) {
    const right = widthM / data.width_m, top = heightM / data.height_m;
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.save();
    context.beginPath();
    context.rect(to.x(0), to.y(1), to.x(1) - to.x(0), to.y(0) - to.y(1));
    context.clip();
    context.drawImage(image, to.x(0), to.y(top), to.x(right) - to.x(0), to.y(0) - to.y(top));
    context.restore();
  }

  function percentAt(panel, u, v) {
    const column = Math.floor((u * data.width_m) / data.cell_m), row = Math.floor((v * data.height_m) / data.cell_m);
    if (u < 0 || v < 0 || u > 1 || v > 1) return null;
    return percentOf(plane(panel)[Math.min(row, data.rows - 1) * data.columns + Math.min(column, data.columns - 1)]);
  }

  // The share of all points, in percent, that a level from 0 to 255 stands for.
  function percentOf(level) {
    const most = data.most_percent[hour < 0 ? 0 : 1] / 100;
    return (100 * Math.expm1((level / 255) * Math.log1p(data.log_scale * most))) / data.log_scale;
  }

  const percentText = (value) => (value === 0 ? "0" : value < 0.001 ? "under 0.001" : String(Number(value.toPrecision(2)))) + " %";

  // ---- Where the estimate rests on the prior: hatched

  const HATCH_PX = 12; // distance between lines along an axis, the same at every zoom
  const uncertain = data.uncertain && {
    mask: levelImage(data.uncertain, 0.45),
    fade: levelImage(data.uncertain, 0.6),
    hatch: document.createElement("canvas"),
  };

  function levelImage(grid, strength) {
    const image = document.createElement("canvas"), levels = bytes(grid.level), side = 4;
    image.width = grid.columns * side;
    image.height = grid.rows * side;
    const context = image.getContext("2d"), pixels = context.createImageData(image.width, image.height);
    for (let py = 0; py < image.height; py++) {
      for (let px = 0; px < image.width; px++) {
        const row = grid.rows - 1 - Math.floor(py / side), level = levels[row * grid.columns + Math.floor(px / side)];
        pixels.data.set([128, 128, 128, level * strength], 4 * (py * image.width + px));
      }
    }
    context.putImageData(pixels, 0, 0);
    return image;
  }

  // The density fades, and a hatching is cut out by the mask. Its lines have a fixed distance on the screen but move
  // with the map.
  function paintUncertain(context, to) {
    const size = [data.uncertain.columns * data.uncertain.cell_m, data.uncertain.rows * data.uncertain.cell_m];
    context.globalCompositeOperation = "destination-out";
    paintGrid(context, to, uncertain.fade, ...size);
    context.globalCompositeOperation = "source-over";
    const over = clearedContext(uncertain.hatch, to.wide, to.high);
    const [left, right] = [to.x(0), to.x(1)].map((x) => clamp(x, 0, to.wide));
    const [top, bottom] = [to.y(1), to.y(0)].map((y) => clamp(y, 0, to.high));
    over.save();
    over.beginPath();
    over.rect(left, top, right - left, bottom - top);
    over.clip();
    over.strokeStyle = "rgb(128, 128, 128)";
    over.lineWidth = 1.4;
    over.beginPath();
    const origin = to.x(0) + to.y(1), from = origin + HATCH_PX * Math.floor((left + top - origin) / HATCH_PX);
    for (let sum = from; sum <= right + bottom; sum += HATCH_PX) {
      over.moveTo(sum - top, top);
      over.lineTo(sum - bottom, bottom);
    }
    over.stroke();
    over.restore();
    over.globalCompositeOperation = "destination-in";
    paintGrid(over, to, uncertain.mask, ...size);
    over.globalCompositeOperation = "source-over";
    context.drawImage(uncertain.hatch, 0, 0, to.wide, to.high);
  }

  // ---- Trips

  // Times of a trip count from its first point, so that a trip past midnight is one piece.
  function decodeTrips(packed) {
    const starts = startsOf(longs(packed.counts)), t = words(packed.t), xy = words(packed.xy);
    const since = new Uint32Array(t.length);
    for (let k = 0; k + 1 < starts.length; k++) {
      for (let i = starts[k] + 1; i < starts[k + 1]; i++) since[i] = since[i - 1] + ((t[i] - t[i - 1] + dayTicks) % dayTicks);
    }
    return { starts, xy, since, begin: (k) => t[starts[k]], count: starts.length - 1 };
  }

  const MOST_LINES = 120; // sample trips that are drawn for the whole day; more would hide the map
  const beginsNow = (trips, k) => hour < 0 || Math.floor((trips.begin(k) * data.tick_s) / 3600) === hour;

  function shownTrips(trips) {
    const chosen = [];
    for (let k = 0; k < trips.count && chosen.length < MOST_LINES; k++) if (beginsNow(trips, k)) chosen.push(k);
    return chosen;
  }

  function paintTracks(context, panel, to, ink) {
    const { trips } = panel, chosen = shownTrips(trips);
    context.strokeStyle = context.fillStyle = ink.track;
    context.lineWidth = 1.3;
    context.globalAlpha = hour < 0 ? 0.5 : 0.8;
    context.beginPath();
    for (const k of chosen) traceLine(context, to, trips.xy, trips.starts[k], trips.starts[k + 1]);
    context.stroke();
    context.globalAlpha = 1;
    for (const k of chosen) {
      const first = 2 * trips.starts[k];
      paintDot(context, to.x(trips.xy[first] / UNITS), to.y(trips.xy[first + 1] / UNITS), 2.2);
    }
  }

  function paintDot(context, x, y, radius) {
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.fill();
  }

  // ---- Animation over the day

  let clock = -1; // minutes since midnight; -1: no animation
  let playing = false, lastFrame = 0;
  const TAIL_TICKS = 240 / data.tick_s; // a moving trip shows the last four minutes of its path
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  function paintMoving(context, panel, to, ink) {
    const { trips } = panel, now = (clock * 60) / data.tick_s;
    let under = 0;
    context.strokeStyle = context.fillStyle = ink.track;
    context.lineWidth = 2.4;
    context.lineCap = "round";
    for (let k = 0; k < trips.count; k++) {
      const first = trips.starts[k], last = trips.starts[k + 1] - 1;
      const since = (now - trips.begin(k) + dayTicks) % dayTicks;
      if (since > trips.since[last]) continue;
      under++;
      const head = placeAt(trips, first, last, since);
      context.globalAlpha = 0.45;
      context.beginPath();
      context.moveTo(to.x(head.u), to.y(head.v));
      for (let i = head.before; i >= first && trips.since[i] > since - TAIL_TICKS; i--) {
        context.lineTo(to.x(trips.xy[2 * i] / UNITS), to.y(trips.xy[2 * i + 1] / UNITS));
      }
      context.stroke();
      context.globalAlpha = 1;
      paintDot(context, to.x(head.u), to.y(head.v), 3);
    }
    return under;
  }

  function placeAt(trips, first, last, since) {
    let before = first;
    while (before < last && trips.since[before + 1] <= since) before++;
    const after = Math.min(before + 1, last), span = trips.since[after] - trips.since[before];
    const part = span ? (since - trips.since[before]) / span : 0, { xy } = trips;
    return {
      before,
      u: (xy[2 * before] + part * (xy[2 * after] - xy[2 * before])) / UNITS,
      v: (xy[2 * before + 1] + part * (xy[2 * after + 1] - xy[2 * before + 1])) / UNITS,
    };
  }

  const clockText = (minutes) => [minutes / 60, minutes % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");

  function setClock(minutes) {
    clock = minutes;
    element("clock").value = Math.max(minutes, 0);
    const text = minutes < 0 ? "off" : clockText(minutes);
    element("clock").setAttribute("aria-valuetext", text);
    element("clock-text").textContent = text;
    element("stop").disabled = minutes < 0;
    repaint();
  }

  function setPlaying(on) {
    playing = on;
    element("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    if (!on) return;
    lastFrame = performance.now();
    if (clock < 0) setClock(5 * 60);
    requestAnimationFrame(advance);
  }

  function advance(now) {
    if (!playing) return;
    // With reduced motion, one frame per second.
    if (!calm.matches || now - lastFrame > 1000) {
      const minutes = (Math.min(now - lastFrame, 1000) / 1000) * Number(element("speed").value);
      lastFrame = now;
      setClock((clock + minutes) % 1440);
    }
    requestAnimationFrame(advance);
  }

  // ---- Origin-destination flows

  const MOST_ARCS = 60;

  function zoneAt(flows, u, v) {
    let best = -1, least = flows.zone_m;
    flows.x.forEach((x, k) => {
      const metres = Math.hypot((x / UNITS - u) * data.width_m, (flows.y[k] / UNITS - v) * data.height_m);
      if (metres < least) [best, least] = [k, metres];
    });
    return best;
  }

  function flowTotals(flows, zone) {
    const total = (ends) => flows.percent.reduce((sum, percent, k) => sum + (ends[k] === zone ? percent : 0), 0);
    return { out: total(flows.from), into: total(flows.to) };
  }

  function paintFlows(context, panel, to, ink) {
    const { flows } = panel, zone = probe ? zoneAt(flows, probe.u, probe.v) : -1;
    const widest = Math.max(...flows.percent, 1e-9);
    const chosen = flows.percent.map((_, k) => k)
      .filter((k) => flows.from[k] !== flows.to[k] && (zone < 0 || flows.from[k] === zone || flows.to[k] === zone))
      .slice(0, MOST_ARCS).reverse(); // the largest come first, and are painted last
    context.lineCap = "round";
    for (const k of chosen) {
      const [ax, ay] = [to.x(flows.x[flows.from[k]] / UNITS), to.y(flows.y[flows.from[k]] / UNITS)];
      const [bx, by] = [to.x(flows.x[flows.to[k]] / UNITS), to.y(flows.y[flows.to[k]] / UNITS)];
      // Arcs bend to the right of their direction, so that both directions can be told apart.
      const cx = (ax + bx) / 2 - (by - ay) * 0.2, cy = (ay + by) / 2 + (bx - ax) * 0.2;
      const wide = 1 + 6 * Math.sqrt(flows.percent[k] / widest), style = zone >= 0 && flows.to[k] === zone ? ink.into : ink.out;
      context.globalAlpha = 0.75;
      context.strokeStyle = style;
      context.lineWidth = wide;
      context.beginPath();
      context.moveTo(ax, ay);
      context.quadraticCurveTo(cx, cy, bx, by);
      context.stroke();
      context.globalAlpha = 1;
      arrowHead(context, bx, by, bx - cx, by - cy, 3 + wide, style);
    }
    context.globalAlpha = 1;
  }

  // ---- Closed areas

  const closedNow = (area) => hour < 0 || area.hours[hour] > 0;

  function traceArea(context, to, area) {
    context.beginPath();
    for (const ring of area.rings) { traceLine(context, to, ring, 0, ring.length / 2); context.closePath(); }
  }

  function paintAreas(context, to, ink) {
    for (const area of data.areas) {
      const closed = closedNow(area);
      traceArea(context, to, area);
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
        paintLabel(context, area.name, to.x((2 * x) / ring.length / UNITS), to.y((2 * y) / ring.length / UNITS), ink.area, ink);
      }
    }
  }

  // ---- One panel: a cached image of what depends on the view alone, with moving things painted over it

  function paintBase(panel, to, ink) {
    const key = JSON.stringify([to.wide, to.high, view.x, view.y, view.zoom, hour, clock < 0, themeName(), layers, devicePixelRatio]);
    if (panel.baseKey === key) return panel.base;
    const context = clearedContext(panel.base, to.wide, to.high);
    if (!context) return null;
    if (layers.density) {
      context.globalAlpha = densityStrength(to);
      paintGrid(context, to, densityImage(panel), data.columns * data.cell_m, data.rows * data.cell_m);
      context.globalAlpha = 1;
    }
    if (layers.uncertain && uncertain && panel.name !== "Real") paintUncertain(context, to);
    if (layers.roads && roads) paintRoads(context, to, roads, ink, view.zoom);
    if (layers.areas) paintAreas(context, to, ink);
    if (layers.tracks && clock < 0) paintTracks(context, panel, to, ink);
    paintBorderAndScale(context, to, ink);
    panel.baseKey = key;
    return panel.base;
  }

  function paint(panel) {
    const { canvas } = panel, to = view.frame(canvas), ink = inkNow();
    const base = to.wide && to.high ? paintBase(panel, to, ink) : null;
    if (!base) return;
    const context = clearedContext(canvas, to.wide, to.high);
    context.drawImage(base, 0, 0, to.wide, to.high);
    if (layers.flows) paintFlows(context, panel, to, ink);
    if (clock >= 0) panel.under = paintMoving(context, panel, to, ink);
    if (probe && probe.by !== "mouse") paintCross(context, to.x(probe.u), to.y(probe.v), ink);
    showTip(panel, to);
  }

  // ---- What is under the pointer

  function describe(to) {
    const { u, v } = probe, lines = [];
    const street = roads && nearestStreet(roads, to, to.x(u), to.y(v), Math.max(12, 15 * to.scale));
    if (street) lines.push(streetText(roads, street.k));
    const values = panels.map((panel) => [panel.name, percentAt(panel, u, v)]);
    if (values[0][1] === null) return ["Outside the area"];
    const when = hour < 0 ? "" : " and hour";
    const shares = panels.length > 1 ? values.map(([name, value]) => name + " " + percentText(value)).join(", ") : percentText(values[0][1]);
    lines.push(shares + " of all points in this cell" + when);
    if (layers.flows) {
      for (const panel of panels) {
        const zone = zoneAt(panel.flows, u, v), who = panels.length > 1 ? panel.name + ": " : "";
        if (zone < 0) { lines.push(who + "no trips start or end here"); continue; }
        const { out, into } = flowTotals(panel.flows, zone);
        lines.push(who + percentText(out) + " of trips start in this zone, " + percentText(into) + " end in it");
      }
    }
    for (const area of data.areas) if (insideArea(area, u, v)) lines.push(area.name + (hour < 0 ? "" : closedNow(area) ? ": closed now" : ": open now"));
    if (data.uncertain && layers.uncertain) {
      const { columns, rows, cell_m: cell, level } = data.uncertain;
      const at = Math.min(Math.floor((v * data.height_m) / cell), rows - 1) * columns + Math.min(Math.floor((u * data.width_m) / cell), columns - 1);
      if (bytes(level)[at] > 127) lines.push("Uncertain: mostly from the prior");
    }
    return lines;
  }

  function insideArea(area, u, v) {
    let inside = false;
    for (const ring of area.rings) {
      for (let k = 0, j = ring.length - 2; k < ring.length; j = k, k += 2) {
        const [ax, ay, bx, by] = [ring[j] / UNITS, ring[j + 1] / UNITS, ring[k] / UNITS, ring[k + 1] / UNITS];
        if (ay > v !== by > v && u < ax + ((v - ay) / (by - ay)) * (bx - ax)) inside = !inside;
      }
    }
    return inside;
  }

  function showTip(panel, to) {
    const here = probe && (probe.panel === panel || probe.by === "keys");
    panel.tip.hidden = !here;
    if (!here) return;
    const lines = describe(to);
    panel.tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
    const x = to.x(probe.u), y = to.y(probe.v), { offsetWidth: wide, offsetHeight: high } = panel.tip;
    panel.tip.style.left = clamp(x + 16 + wide > to.wide ? x - wide - 16 : x + 16, 4, Math.max(4, to.wide - wide - 4)) + "px";
    panel.tip.style.top = clamp(y + 16 + high > to.high ? y - high - 16 : y + 16, 4, Math.max(4, to.high - high - 4)) + "px";
    if (probe.by !== "mouse") element("readout").textContent = lines.join(". ");
  }

  function pointAt(panel, place, by) {
    const to = view.frame(panel.canvas);
    probe = place && { u: to.u(place[0]), v: to.v(place[1]), panel, by };
    repaint();
  }

  function pointAtMiddle() {
    probe = { u: view.x, v: view.y, panel: probe?.panel ?? panels[0], by: "keys" };
    repaint();
  }

  function listen(panel) {
    const { canvas } = panel, hint = element("hint-" + panels.indexOf(panel));
    let hiding = 0;
    listenToMap(canvas, view, {
      hover: (place) => { if (place || probe?.by === "mouse") pointAt(panel, place, "mouse"); },
      tap: (place, event) => pointAt(panel, place, event.pointerType === "mouse" ? "mouse" : "tap"),
      moved: pointAtMiddle,
      key: (event) => {
        if (event.key === "Enter") { pointAtMiddle(); return true; }
        if (event.key === " ") { setPlaying(!playing); return true; }
        return false;
      },
      scrolled: () => {
        hint.hidden = false;
        clearTimeout(hiding);
        hiding = setTimeout(() => { hint.hidden = true; }, 1600);
      },
    });
    canvas.addEventListener("focus", () => { hint.hidden = true; if (canvas.matches(":focus-visible") && !probe) pointAtMiddle(); });
    canvas.addEventListener("blur", () => { if (probe?.by === "keys") { probe = null; repaint(); } });
    new ResizeObserver(repaint).observe(canvas);
  }

  // ---- Legend and controls

  function showLegend() {
    const ramp = ramps[themeName()];
    element("ramp").style.background = "linear-gradient(90deg," + ramp.map((c) => "rgb(" + c + ")").join(",") + ")";
    element("ramp-low").textContent = percentText(percentOf(1));
    element("ramp-middle").textContent = percentText(percentOf(128));
    element("ramp-high").textContent = percentText(percentOf(255));
    const visible = { ...layers, tracks: layers.tracks && clock < 0, moving: clock >= 0 };
    for (const entry of document.querySelectorAll("[data-layer]")) entry.hidden = !visible[entry.dataset.layer];
    const { trips } = panels[0], count = shownTrips(trips).length;
    element("tracks-text").textContent = count + " of " + data.panels[0].trips.toLocaleString("en") + " trips" + (hour < 0 ? "" : ", those that start at this hour");
    element("moving-text").textContent = panels.map((panel) => panel.under ?? 0).join(" and ") + " trips under way, of a sample of " + trips.count.toLocaleString("en");
    element("flows-text").textContent = "widest: " + percentText(Math.max(...panels.map((panel) => Math.max(0, ...panel.flows.percent)))) + " of trips; point at a zone to see its flows";
  }

  const two = (k) => String(k).padStart(2, "0");
  const hourText = () => (hour < 0 ? "all day" : two(hour) + ":00–" + two(hour + 1) + ":00");

  function setHour(value) {
    hour = value;
    hourSlider?.setAttribute("aria-valuetext", hourText());
    if (hourSlider) element("hour-text").textContent = hourText();
    const closed = data.areas.filter((area) => hour >= 0 && area.hours[hour] > 0)
      .map((area) => area.name + (area.hours[hour] === 1 ? " (some days)" : ""));
    element("closed").textContent = data.areas.length && hour >= 0
      ? "Closed at this hour: " + (closed.join(", ") || "none") : "";
    repaint();
  }

  panels.forEach(listen);
  hourSlider?.addEventListener("input", () => setHour(Number(hourSlider.value)));
  for (const name of Object.keys(layers)) {
    const box = document.querySelector("#layer-" + name);
    if (!box) continue;
    layers[name] = box.checked;
    box.addEventListener("change", () => { layers[name] = box.checked; repaint(); });
  }
  element("play").addEventListener("click", () => setPlaying(!playing));
  element("stop").addEventListener("click", () => { setPlaying(false); setClock(-1); element("play").focus(); });
  element("clock").addEventListener("input", () => { setPlaying(false); setClock(Number(element("clock").value)); });
  element("zoom-in").addEventListener("click", () => view.zoomBy(1.5));
  element("zoom-out").addEventListener("click", () => view.zoomBy(1 / 1.5));
  element("zoom-home").addEventListener("click", () => view.home());
  startTheme(repaint);
  setClock(-1);
  setHour(-1);
})();
