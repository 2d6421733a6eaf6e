// The rules editor: tools, selection, form, checks, and files. Positions are kept in degrees, as in GeoJSON.
(() => {
  const data = JSON.parse(element("editor-data").textContent);
  const page = { definition: data.definition, projection: new Projection(data.scope), map: data.map };
  const roads = decodeRoads(data.roads), { scope } = data, canvas = element("map");
  const history = new History(data.features);
  const TOOLS = ["select", "closed", "one_way", "speed_limit", "stay_within"];
  const NEAR = 11; // pixels within which a corner is hit
  const base = document.createElement("canvas");

  let features = history.features, fileName = data.file;
  let tool = "select", draft = [], selected = -1, corner = null; // corner: { path, k } of the selected shape
  let pointer = null, byKeys = false, held = null, baseKey = "";
  let check = { problems: [], note: "" };

  const view = new View(scope.width_m, scope.height_m, () => repaint());
  const repaint = everyFrame(paint);
  const draws = () => tool !== "select";
  const shape = () => features[selected]?.geometry ?? null;

  // ---- Between pixels and degrees

  const toPixel = (to, place) => { const [x, y] = page.projection.metres(place); return [to.x(x / scope.width_m), to.y(y / scope.height_m)]; };
  const toPlace = (to, [px, py]) => page.projection.degrees([to.u(px) * scope.width_m, to.v(py) * scope.height_m]);
  const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

  // One-way lines snap to the nearest street, because a rule of ten metres' width must lie on it.
  function snapped(to, pixel) {
    if (!roads || tool !== "one_way" || !document.querySelector("#snap").checked) return pixel;
    const street = nearestStreet(roads, to, ...pixel, 14);
    return street ? [street.x, street.y] : pixel;
  }

  // ---- Changes

  function commit(changed, words) {
    if (!history.push(changed)) return;
    features = history.features;
    say(words);
    refresh();
  }

  const replaceSelected = (feature, words) => commit(features.map((own, k) => (k === selected ? feature : own)), words);

  function select(index) {
    selected = index;
    corner = null;
    refresh();
  }

  function refresh() {
    if (selected >= features.length) selected = -1;
    const path = corner && pathsOf(shape())[corner.path];
    if (corner && !(path && corner.k < path.places.length)) corner = null;
    check = checkRules(features, page);
    showProblems();
    showList();
    showForm();
    element("undo").disabled = !history.canUndo;
    element("redo").disabled = !history.canRedo;
    element("file-name").textContent = fileName + (history.isSaved ? "" : " (not saved)");
    repaint();
  }

  function say(text, bad = false) {
    element("status").textContent = text;
    element("status").classList.toggle("bad", bad);
  }

  function stepHistory(by) {
    if (by < 0 ? !history.canUndo : !history.canRedo) return;
    history.step(by);
    features = history.features;
    say(by < 0 ? "Undone." : "Redone.");
    refresh();
  }

  // ---- Drawing

  function setTool(name) {
    tool = name;
    draft = [];
    if (draws()) { selected = -1; corner = null; }
    for (const one of TOOLS) element("tool-" + one).setAttribute("aria-pressed", String(one === name));
    element("drawing").hidden = !draws();
    canvas.classList.toggle("draws", draws());
    const shapeWords = name === "one_way" ? "a line in the direction of travel" : "an area";
    say(draws() ? `Draw ${shapeWords}: click its corners, or press Space at the cross; Enter or a double click finishes.` : "Click a shape to edit it.");
    refresh();
  }

  function addCorner(pixel) {
    const to = view.frame(canvas), at = snapped(to, pixel);
    const least = tool === "one_way" ? 2 : 3, pixels = draft.map((place) => toPixel(to, place));
    if (draft.length && apart(pixels[pixels.length - 1], at) < 4) { if (draft.length >= least) finish(); return; }
    if (tool !== "one_way" && draft.length >= 3 && apart(pixels[0], at) < NEAR) { finish(); return; }
    draft.push(toPlace(to, at));
    say(`${draft.length} corner${draft.length > 1 ? "s" : ""}.`);
    repaint();
  }

  function dropCorner() { draft.pop(); repaint(); }

  function finish() {
    const least = tool === "one_way" ? 2 : 3;
    if (draft.length < least) { say(`${tool === "one_way" ? "A line" : "An area"} needs at least ${least} corners.`, true); return; }
    const properties = { rule: tool, ...(tool === "speed_limit" ? { kmh: 30 } : {}) };
    const feature = { type: "Feature", properties, geometry: drawnShape(tool, draft) };
    setTool("select");
    selected = features.length;
    commit([...features, feature], "Added. Set its name, hours or speed in the form.");
  }

  // ---- Selecting and moving corners

  function handles(to) {
    return pathsOf(shape()).flatMap(({ places, closed }, path) => places.flatMap((place, k) => {
      const at = toPixel(to, place), next = places[k + 1] ?? (closed ? places[0] : null);
      const own = [{ path, k, at, between: false }];
      if (next) { const b = toPixel(to, next); own.push({ path, k, at: [(at[0] + b[0]) / 2, (at[1] + b[1]) / 2], between: true, room: apart(at, b) > 3 * NEAR }); }
      return own;
    }));
  }

  function moveCorner(path, k, place, insert = false) {
    const places = [...pathsOf(shape())[path].places];
    places.splice(insert ? k + 1 : k, insert ? 0 : 1, place);
    return { ...features[selected], geometry: withPath(shape(), path, places) };
  }

  function deleteCorner() {
    const { path, k } = corner, places = pathsOf(shape())[path].places.filter((_, i) => i !== k), geometry = withPath(shape(), path, places);
    if (!geometry) { say("A shape needs these corners; delete the rule instead.", true); return; }
    corner = null;
    replaceSelected({ ...features[selected], geometry }, "Corner removed.");
  }

  function deleteRule() {
    if (selected < 0) return;
    const name = nameOf(selected), rest = features.filter((_, k) => k !== selected);
    selected = -1;
    commit(rest, `Deleted “${name}”. Undo brings it back.`);
    canvas.focus({ preventScroll: true });
  }

  // The shape under a pixel: lines and borders first, then the smallest area around it.
  function shapeAt(to, pixel) {
    let best = -1, least = Infinity;
    features.forEach((feature, index) => {
      for (const { places, closed } of pathsOf(feature.geometry)) {
        const pixels = places.map((place) => toPixel(to, place)), ends = closed ? pixels.length : pixels.length - 1;
        let border = Infinity, inside = false, area = 0;
        for (let k = 0; k < ends; k++) {
          const a = pixels[k], b = pixels[(k + 1) % pixels.length];
          border = Math.min(border, distanceToPiece(...pixel, [...a, ...b]));
          area += (a[0] * b[1] - b[0] * a[1]) / 2;
          if (a[1] > pixel[1] !== b[1] > pixel[1] && pixel[0] < a[0] + ((pixel[1] - a[1]) / (b[1] - a[1])) * (b[0] - a[0])) inside = !inside;
        }
        const score = border < 8 ? border : closed && inside ? 100 + Math.abs(area) : Infinity;
        if (score < least) [best, least] = [index, score];
      }
    });
    return best;
  }

  // ---- Painting

  const styleOf = (rule, ink) => ({
    closed: [ink.area, ink.areaFill], speed_limit: [ink.speed, ink.speedFill], stay_within: [ink.within, ink.withinFill], one_way: [ink.way, null],
  }[rule] ?? [ink.scale, null]);

  function paintStreets(to, ink) {
    const key = JSON.stringify([to.wide, to.high, view.x, view.y, view.zoom, themeName(), devicePixelRatio]);
    if (key === baseKey) return;
    const context = clearedContext(base, to.wide, to.high);
    if (roads) paintRoads(context, to, roads, ink, view.zoom, true);
    paintBorderAndScale(context, to, ink);
    baseKey = key;
  }

  function paintShape(context, to, feature, ink, chosen, faulty) {
    const [stroke, fill] = styleOf(feature.properties?.rule, ink), paths = pathsOf(feature.geometry);
    context.beginPath();
    for (const { places, closed } of paths) {
      places.forEach((place, k) => { const [x, y] = toPixel(to, place); if (k) context.lineTo(x, y); else context.moveTo(x, y); });
      if (closed) context.closePath();
    }
    context.lineWidth = chosen ? 3.5 : 2.2;
    context.setLineDash(faulty ? [7, 5] : []);
    context.strokeStyle = stroke;
    if (fill && paths.some((path) => path.closed)) { context.fillStyle = fill; context.fill("evenodd"); }
    context.stroke();
    context.setLineDash([]);
    for (const { places, closed } of paths) if (!closed) paintDirection(context, to, places, stroke);
  }

  function paintDirection(context, to, places, style) {
    for (let k = 0; k + 1 < places.length; k++) {
      const a = toPixel(to, places[k]), b = toPixel(to, places[k + 1]);
      if (apart(a, b) > 18) arrowHead(context, 0.3 * a[0] + 0.7 * b[0], 0.3 * a[1] + 0.7 * b[1], b[0] - a[0], b[1] - a[1], 7, style);
    }
  }

  function paintHandles(context, to, ink) {
    for (const handle of handles(to)) {
      if (handle.between && !handle.room) continue;
      const isChosen = corner && !handle.between && corner.path === handle.path && corner.k === handle.k;
      context.beginPath();
      context.arc(...handle.at, handle.between ? 3.5 : isChosen ? 8 : 6, 0, 7);
      context.fillStyle = isChosen ? ink.scale : ink.halo;
      context.globalAlpha = handle.between ? 0.7 : 1;
      context.fill();
      context.lineWidth = 2;
      context.strokeStyle = ink.scale;
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  function paintDraft(context, to, ink) {
    const [stroke, fill] = styleOf(tool, ink), pixels = draft.map((place) => toPixel(to, place));
    const aim = aimPixel(to);
    context.beginPath();
    [...pixels, ...(aim ? [snapped(to, aim)] : [])].forEach(([x, y], k) => { if (k) context.lineTo(x, y); else context.moveTo(x, y); });
    context.lineWidth = 2.5;
    context.strokeStyle = stroke;
    if (fill) { context.fillStyle = fill; context.fill(); }
    context.setLineDash([6, 4]);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = stroke;
    for (const [x, y] of pixels) { context.beginPath(); context.arc(x, y, 4.5, 0, 7); context.fill(); }
    if (tool === "one_way") paintDirection(context, to, draft, stroke);
  }

  const aimPixel = (to) => (byKeys ? [to.wide / 2, to.high / 2] : pointer);

  function paintNamesOfRules(context, to, ink) {
    if (features.length > 200) return;
    features.forEach((feature, k) => {
      const paths = pathsOf(feature.geometry);
      if (!paths.length || !paths[0].closed) return;
      const pixels = paths[0].places.map((place) => toPixel(to, place));
      const middle = [0, 1].map((axis) => pixels.reduce((sum, at) => sum + at[axis], 0) / pixels.length);
      paintLabel(context, nameOf(k), ...middle, styleOf(feature.properties?.rule, ink)[0], ink);
    });
  }

  function paint() {
    const to = view.frame(canvas), ink = inkNow();
    if (!to.wide || !to.high) return;
    paintStreets(to, ink);
    const context = clearedContext(canvas, to.wide, to.high);
    context.drawImage(base, 0, 0, to.wide, to.high);
    const faulty = new Set(check.problems.map((problem) => problem.feature));
    context.lineJoin = "round";
    features.forEach((feature, k) => paintShape(context, to, feature, ink, k === selected, faulty.has(k)));
    paintNamesOfRules(context, to, ink);
    if (selected >= 0) paintHandles(context, to, ink);
    if (draws()) paintDraft(context, to, ink);
    if (byKeys && document.activeElement === canvas && !corner) paintCross(context, to.wide / 2, to.high / 2, ink);
    showTip(to);
  }

  function showTip(to) {
    const at = aimPixel(to), street = roads && at && !held && nearestStreet(roads, to, ...at, Math.max(10, 12 * to.scale));
    const tip = element("tip");
    tip.hidden = !street || (byKeys && document.activeElement !== canvas);
    if (tip.hidden) return;
    tip.textContent = streetText(roads, street.k) + (roads.oneway[street.k] ? " (one-way)" : "");
    tip.style.left = clamp(at[0] + 16, 4, Math.max(4, to.wide - tip.offsetWidth - 4)) + "px";
    tip.style.top = clamp(at[1] + 16, 4, Math.max(4, to.high - tip.offsetHeight - 4)) + "px";
  }

  // ---- List, problems and form

  const nameOf = (k) => String(features[k].properties?.name || `${features[k].properties?.rule ?? "rule"} ${k + 1}`);

  function showList() {
    const items = features.map((feature, k) => {
      const fault = check.problems.find((problem) => problem.feature === k), rule = feature.properties?.rule;
      const button = make("button", { type: "button", className: fault ? "faulty" : "" });
      button.setAttribute("aria-pressed", String(k === selected));
      button.dataset.rule = String(k);
      const where = feature.geometry ? "" : rule === "one_way" ? " (streets of the map)" : feature.properties?.classes ? "" : " everywhere";
      button.append(make("i", { className: "swatch " + (page.definition.rules.includes(rule) ? rule : "") }), make("span", { textContent: nameOf(k) }),
        make("small", { textContent: fault ? fault.text : summaryOf(feature.properties) + where }));
      button.addEventListener("click", () => { if (draws()) setTool("select"); select(k); showOnMap(false); element("list").querySelector(`[data-rule="${k}"]`).focus(); });
      const item = make("li", {});
      item.append(button);
      return item;
    });
    element("list").replaceChildren(...items);
    if (!features.length) element("list").append(make("li", { textContent: "None yet. Choose a tool and draw on the map, or open a file.", className: "soft small" }));
  }

  function showProblems() {
    const lines = check.problems.map(({ feature, text }) => {
      const item = make("li", {});
      if (feature === null) { item.textContent = text; return item; }
      const button = make("button", { type: "button", textContent: `${nameOf(feature)}: ${text}` });
      button.addEventListener("click", () => { select(feature); element("field-name").focus(); });
      item.append(button);
      return item;
    });
    const good = features.length ? "No contradiction was found." : "There is no rule yet.";
    const list = make("ul", {});
    list.append(...lines);
    element("problems").replaceChildren(lines.length ? list : make("p", { textContent: check.note ? "No fault was found in single rules." : good, className: features.length ? "good" : "soft" }));
    if (check.note) element("problems").append(make("p", { textContent: check.note, className: "soft small" }));
  }

  function make(tag, properties) { return Object.assign(document.createElement(tag), properties); }

  const fieldsOf = (rule, geometry, classes) => ({
    area: Boolean(geometry) && rule !== "one_way", shape: Boolean(geometry), line: Boolean(geometry) && rule === "one_way",
    closed: rule === "closed", kmh: rule === "speed_limit" || rule === "min_speed", classes: rule === "speed_limit" && !geometry && classes,
    width: rule === "one_way" || (rule === "speed_limit" && !geometry && classes), duration: rule === "max_duration",
  });

  function showForm() {
    element("form").hidden = selected < 0;
    if (selected < 0) return;
    const { properties: given, geometry } = features[selected], properties = given ?? {};
    const shown = fieldsOf(properties.rule, geometry, properties.classes !== undefined && properties.classes !== null);
    for (const part of element("form").querySelectorAll("[data-for]")) part.hidden = !shown[part.dataset.for];
    for (const key of ["name", "from", "to", "kmh", "width_m"]) element("field-" + key).value = properties[key] ?? "";
    element("field-width_m").placeholder = String(properties.rule === "one_way" ? page.definition.one_way_width_m : page.definition.class_width_m);
    element("field-rule").value = properties.rule;
    element("kmh-text").textContent = properties.rule === "min_speed" ? "Minimum mean speed, km/h" : "Speed limit, km/h";
    let days = [];
    try { days = properties.days ? daysOf(listOf("days", properties.days, 50), page.definition) : []; } catch { /* the error is shown below */ }
    page.definition.days.forEach((_, k) => { element("day-" + k).checked = days.includes(k); });
    const classes = properties.classes ? [properties.classes].flat().map((word) => page.definition.class_of[word]) : [];
    for (const box of element("form").querySelectorAll("[id^=class-]")) box.checked = classes.includes(box.value);
    element("field-duration").value = properties.minutes ?? properties.hours ?? "";
    element("field-unit").value = properties.minutes === undefined && properties.hours !== undefined ? "hours" : "minutes";
    const fault = check.problems.find((problem) => problem.feature === selected);
    element("form-error").hidden = !fault;
    element("form-error").textContent = fault?.text ?? "";
  }

  const NUMERIC = ["kmh", "width_m", "minutes", "hours"];

  // Sets options of the selected rule; an empty value removes the option.
  function setOptions(changes) {
    const properties = { ...features[selected].properties };
    for (const [key, value] of Object.entries(changes)) {
      if (value === "" || value === null) delete properties[key];
      else properties[key] = NUMERIC.includes(key) && Number.isFinite(Number(value)) ? Number(value) : value;
    }
    replaceSelected({ ...features[selected], properties }, "Changed.");
  }

  function setKind(rule) {
    const own = page.definition.options_of[rule], properties = { ...features[selected].properties, rule };
    const every = new Set(Object.values(page.definition.options_of).flat());
    for (const key of Object.keys(properties)) if (every.has(key) && !own.includes(key)) delete properties[key];
    if (rule === "speed_limit" && properties.kmh === undefined) properties.kmh = 30;
    replaceSelected({ ...features[selected], properties }, "Changed.");
  }

  function addWithoutShape(kind) {
    const properties = {
      speed_limit: { rule: "speed_limit", kmh: 90 }, classes: { rule: "speed_limit", kmh: 30, classes: ["residential"] },
      one_way: { rule: "one_way" }, max_duration: { rule: "max_duration", hours: 3 }, min_speed: { rule: "min_speed", kmh: 3 },
    }[kind];
    if (draws()) setTool("select");
    selected = features.length;
    commit([...features, { type: "Feature", properties, geometry: null }], "Added. Set its values in the form.");
    element("field-name").focus();
  }

  // Moves the view so that the selected shape is in it; zooms only when asked to.
  function showOnMap(zooms) {
    const places = pathsOf(shape()).flatMap((path) => path.places).map((place) => page.projection.metres(place));
    if (!places.length) return;
    const [xs, ys] = [0, 1].map((axis) => places.map((place) => place[axis]));
    const [west, east, south, north] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const to = view.frame(canvas), x = (west + east) / 2 / scope.width_m, y = (south + north) / 2 / scope.height_m;
    const seen = to.x(x) > 0 && to.x(x) < to.wide && to.y(y) > 0 && to.y(y) < to.high;
    const fit = Math.min(to.wide / Math.max(east - west, 50), to.high / Math.max(north - south, 50)) * 0.6;
    if (zooms) view.set(x, y, (view.zoom * fit) / to.scale);
    else if (!seen) view.set(x, y, view.zoom);
  }

  // ---- Files

  function save() {
    if (!features.length) { say("There is nothing to save yet; draw at least one rule.", true); return; }
    const text = JSON.stringify({ type: "FeatureCollection", features }, null, 1) + "\n";
    const address = URL.createObjectURL(new Blob([text], { type: "application/geo+json" }));
    make("a", { href: address, download: fileName }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    history.markSaved();
    refresh();
    const count = check.problems.length;
    if (count) say(`Saved ${fileName} with ${count} problem${count > 1 ? "s" : ""}: synthesize refuses the file until ${count > 1 ? "they are" : "it is"} fixed.`, true);
    else say(`Saved ${fileName}. Next: wayveil synthesize RELEASE --rules ${fileName}`);
  }

  async function open(file) {
    if (!file) return;
    try {
      const found = featuresInFile(await file.text());
      fileName = file.name;
      selected = -1;
      setTool("select");
      if (!history.push(found)) { say(`${file.name} holds the same rules.`); return; }
      history.markSaved();
      features = history.features;
      say(`Opened ${file.name}: ${found.length} rule${found.length > 1 ? "s" : ""}.`);
      refresh();
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      say(`${file.name} was not opened. ${fault.message}`, true);
    }
  }

  // ---- Input

  function keyWhileDrawing(event) {
    const to = view.frame(canvas);
    const actions = { " ": () => addCorner([to.wide / 2, to.high / 2]), Enter: finish, Backspace: dropCorner, Escape: () => setTool("select") };
    if (!actions[event.key]) return false;
    actions[event.key]();
    return true;
  }

  function keyWithShape(event) {
    const corners = pathsOf(shape()).flatMap(({ places }, path) => places.map((_, k) => ({ path, k })));
    const at = corner ? corners.findIndex((one) => one.path === corner.path && one.k === corner.k) : -1;
    const choose = (index) => { corner = corners[(index + corners.length) % corners.length] ?? null; say(corner ? `Corner ${corners.indexOf(corner) + 1} of ${corners.length}.` : "This rule has no shape."); repaint(); };
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === ".") choose(at + 1);
    else if (event.key === ",") choose(at < 0 ? -1 : at - 1);
    else if (event.key === "Escape") { if (corner) { corner = null; repaint(); } else select(-1); }
    else if (event.key === "Delete" || event.key === "Backspace") { if (corner) deleteCorner(); else deleteRule(); }
    else if (corner && (event.key === "i" || event.key === "I")) insertAfterCorner();
    else if (corner && moves[event.key]) {
      const to = view.frame(canvas), step = event.shiftKey ? 2 : 12, [dx, dy] = moves[event.key];
      const [x, y] = toPixel(to, pathsOf(shape())[corner.path].places[corner.k]);
      replaceSelected(moveCorner(corner.path, corner.k, toPlace(to, [x + step * dx, y + step * dy])), "Corner moved.");
    } else return false;
    return true;
  }

  function insertAfterCorner() {
    const to = view.frame(canvas), between = handles(to).find((handle) => handle.between && handle.path === corner.path && handle.k === corner.k);
    if (!between) { say("A line has no corner after its last one.", true); return; }
    const feature = moveCorner(corner.path, corner.k, toPlace(to, between.at), true);
    corner = { path: corner.path, k: corner.k + 1 };
    replaceSelected(feature, "Corner added.");
  }

  let hiding = 0;
  listenToMap(canvas, view, {
    hover: (place) => { pointer = place; byKeys = byKeys && !place; repaint(); },
    grab: (place) => {
      byKeys = false;
      if (draws() || selected < 0) return false;
      const near = handles(view.frame(canvas)).filter((handle) => (!handle.between || handle.room) && apart(handle.at, place) <= NEAR)
        .sort((a, b) => Number(a.between) - Number(b.between) || apart(a.at, place) - apart(b.at, place))[0];
      held = near ?? null;
      return Boolean(near);
    },
    drag: (place) => {
      const at = toPlace(view.frame(canvas), place), before = history.features;
      features = before; // each step starts from the shape as it was
      features[selected] = moveCorner(held.path, held.k, at, held.between);
      repaint();
    },
    drop: (place, isTap) => {
      const grabbed = held;
      held = null;
      corner = { path: grabbed.path, k: grabbed.between && !isTap ? grabbed.k + 1 : grabbed.k };
      const moved = features;
      features = history.features;
      if (place && !isTap) commit(moved, grabbed.between ? "Corner added." : "Corner moved.");
      else refresh();
    },
    tap: (place) => {
      pointer = place;
      if (draws()) addCorner(place);
      else if (!corner || !handles(view.frame(canvas)).some((handle) => apart(handle.at, place) <= NEAR)) select(shapeAt(view.frame(canvas), place));
    },
    key: (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return false;
      byKeys = true;
      repaint();
      return draws() ? keyWhileDrawing(event) : selected >= 0 && keyWithShape(event);
    },
    scrolled: () => {
      element("hint").hidden = false;
      clearTimeout(hiding);
      hiding = setTimeout(() => { element("hint").hidden = true; }, 1600);
    },
  });
  canvas.addEventListener("focus", () => { element("hint").hidden = true; byKeys = canvas.matches(":focus-visible") && !pointer; repaint(); });
  canvas.addEventListener("blur", repaint);
  new ResizeObserver(repaint).observe(canvas);

  const onClick = (id, action) => element(id).addEventListener("click", action);
  const onChange = (id, action) => element(id).addEventListener("change", () => action(element(id).value.trim()));
  for (const name of TOOLS) onClick("tool-" + name, () => { setTool(name); if (draws()) canvas.focus({ preventScroll: true }); });
  onClick("finish", finish);
  onClick("drop-corner", dropCorner);
  onClick("cancel", () => setTool("select"));
  onClick("undo", () => stepHistory(-1));
  onClick("redo", () => stepHistory(1));
  onClick("save", save);
  onClick("delete", deleteRule);
  onClick("reverse", () => replaceSelected({ ...features[selected], geometry: reversedShape(shape()) }, "Direction reversed."));
  onClick("show", () => showOnMap(true));
  onClick("add", () => addWithoutShape(element("add-kind").value));
  onClick("zoom-in", () => view.zoomBy(1.5));
  onClick("zoom-out", () => view.zoomBy(1 / 1.5));
  onClick("zoom-home", () => view.home());
  for (const key of ["name", "from", "to", "kmh", "width_m"]) onChange("field-" + key, (value) => setOptions({ [key]: value }));
  onChange("field-rule", setKind);
  for (const id of ["field-duration", "field-unit"]) {
    onChange(id, () => {
      const [unit, value] = [element("field-unit").value, element("field-duration").value.trim()];
      setOptions({ minutes: "", hours: "", [unit]: value });
    });
  }
  page.definition.days.forEach((_, k) => onChange("day-" + k, () => {
    const chosen = page.definition.days.filter((name, i) => element("day-" + i).checked);
    setOptions({ days: chosen.length % 7 ? chosen : null });
  }));
  for (const box of document.querySelectorAll("[id^=class-]")) {
    box.addEventListener("change", () => setOptions({ classes: [...document.querySelectorAll("[id^=class-]")].filter((one) => one.checked).map((one) => one.value) }));
  }
  element("open").addEventListener("change", (event) => { open(event.target.files[0]); event.target.value = ""; });
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase(), typing = event.target.matches("input[type=text]");
    if (!(event.ctrlKey || event.metaKey) || (typing && key !== "s")) return;
    if (key === "s") save();
    else if (key === "z") stepHistory(event.shiftKey ? 1 : -1);
    else if (key === "y") stepHistory(1);
    else return;
    event.preventDefault();
  });
  window.addEventListener("beforeunload", (event) => { if (!history.isSaved) event.preventDefault(); });

  window.rulesPage = page; // for tests and the console: checkRules(features, rulesPage)
  startTheme(() => { baseKey = ""; repaint(); });
  setTool("select");
  if (features.length) say(`${features.length} rule${features.length > 1 ? "s" : ""} from ${fileName}. Click a shape to edit it.`);
  else say("Choose a tool above, then click the corners on the map.");
})();
