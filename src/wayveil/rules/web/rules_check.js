// Faults and contradictions of rules, as `wayveil rules check` finds them (rules/options.py, hours.py, geometry.py,
// contradictions.py). The constants come from the Python code. Not checked here: misspelt options, areas around a pole,
// and overlaps of areas with more than MOST_EDGES edges.

const MOST_EDGES = 2000; // the time grows with their square
const DAY_S = 86400, WEEK_S = 7 * DAY_S;
const number = (value) => String(Number(Number(value).toPrecision(6))); // as Python's format :g

class Fault extends Error {}

// ---- Options

const LISTS = ["days", "classes"];
const NUMBERS = ["kmh", "width_m", "minutes", "hours"];

// The options of a feature, with numbers as numbers and lists as lists; properties of drawing programs are left out.
function optionsOf(properties, definition) {
  const names = definition.rules.join(", ");
  if (typeof properties !== "object" || properties === null || Array.isArray(properties)) {
    throw new Fault(`it has no properties; say which rule it is: "rule": one of ${names}`);
  }
  const given = {};
  for (const [key, value] of Object.entries(properties)) if (value !== null) given[key.trim().toLowerCase()] = value;
  if (!definition.rules.includes(given.rule)) throw new Fault(`"rule" must be one of ${names}`);
  const every = new Set(Object.values(definition.options_of).flat()), own = definition.options_of[given.rule];
  for (const key of Object.keys(given)) {
    if (every.has(key) && !own.includes(key)) throw new Fault(`'${key}' has no meaning for ${given.rule}; leave it out`);
  }
  const options = {};
  for (const key of own) {
    if (given[key] !== undefined) options[key] = optionValue(key, given[key], definition);
    else if (key === "kmh") throw new Fault(`${given.rule} needs 'kmh'`);
  }
  if (given.rule === "max_duration" && (options.minutes === undefined) === (options.hours === undefined)) {
    throw new Fault("give either minutes or hours");
  }
  return options;
}

function optionValue(key, value, definition) {
  if (LISTS.includes(key)) return listOf(key, value, definition.most_words);
  if (NUMBERS.includes(key)) return numberOf(key, value, definition);
  if (typeof value !== "string") throw new Fault(`${key} must be text`);
  const text = key === "name" ? value.replace(/[\p{C}\p{Z}]+/gu, " ").trim() : value;
  const most = definition.most_letters[key];
  if (most && [...text].length > most) throw new Fault(`${key} is longer than ${most} letters`);
  return text;
}

function numberOf(key, value, definition) {
  const found = typeof value === "string" && value.trim() === "" ? NaN : Number(value);
  if (!["number", "string", "boolean"].includes(typeof value) || !Number.isFinite(found)) throw new Fault(`${key} must be a number`);
  const [low, high] = { kmh: definition.limits_kmh, width_m: definition.widths_m }[key] ?? [null, null];
  if (low !== null && found < low) throw new Fault(`${key} must be at least ${number(low)}`);
  if (high !== null && found > high) throw new Fault(`${key} must be at most ${number(high)}`);
  if (low === null && found <= 0) throw new Fault(`${key} must be above 0`);
  return found;
}

function listOf(key, value, most) {
  let words = value;
  if (typeof words === "string") words = words.replace(/^[[\] ]+|[[\] ]+$/g, "").replace(/["']/g, "").split(",");
  if (!Array.isArray(words)) throw new Fault(`${key} must be a list of words`);
  if (words.length === 0) throw new Fault(`${key} is an empty list; name at least one value, or leave ${key} out`);
  if (words.length > most) throw new Fault(`${key} has more than ${most} entries`);
  if (words.some((word) => typeof word !== "string" || word.length > 50)) throw new Fault(`${key} must be a list of words`);
  return words.map((word) => word.trim().toLowerCase());
}

// ---- Hours and days

const DAY_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const DAY_SETS = { weekday: [0, 1, 2, 3, 4], weekdays: [0, 1, 2, 3, 4], weekend: [5, 6], weekends: [5, 6], daily: [0, 1, 2, 3, 4, 5, 6] };

// Numbers of days, Monday = 0, from "mon", "Mo-Fr", "sat to mon", "weekdays" or a list of such words.
function daysOf(words, definition) {
  const found = new Set();
  const unknown = (text) => new Fault(`days must be some of ${definition.days.join(", ")}, or a range such as "mon-fri".${text ? ` '${text}' is not a day.` : ""}`);
  const day = (name, whole) => {
    const at = DAY_NAMES.findIndex((full) => name.length >= 2 && full.startsWith(name));
    if (at < 0) throw unknown(whole);
    return at;
  };
  for (const part of [words].flat()) {
    const spaced = part.trim().toLowerCase().replace(/\s*(?:[-‐‑‒–—−]|\b(?:to|through|until)\b)\s*/g, "-");
    for (const word of spaced.split(/[,;/&+\s]+(?:and\b[,;/&+\s]*)?/).filter(Boolean)) {
      if (DAY_SETS[word]) { DAY_SETS[word].forEach((k) => found.add(k)); continue; }
      const ends = word.split("-").map((name) => day(name.replace(/\.+$/, ""), part));
      if (ends.length > 2) throw unknown(part);
      const [first, last] = [ends[0], ends[ends.length - 1]];
      for (let k = first; k <= (last >= first ? last : last + 7); k++) found.add(k % 7);
    }
  }
  if (found.size === 0) throw unknown("");
  return [...found].sort();
}

function clockSeconds(text) {
  const match = /^(\d{1,2}):([0-5]\d)(?::([0-5]\d))?$/.exec(text.trim());
  const seconds = match ? Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3] ?? 0) : -1;
  if (seconds < 0 || seconds > DAY_S) throw new Fault('A time of day must be written like "07:00", from "00:00" to "24:00".');
  return seconds;
}

// Windows [start, end] in seconds since Monday 00:00; none at all means always.
function windowsOf({ from, to, days }, definition) {
  const indices = days === undefined ? [0, 1, 2, 3, 4, 5, 6] : daysOf(days, definition);
  const first = from === undefined ? 0 : clockSeconds(from);
  let last = to === undefined ? DAY_S : clockSeconds(to);
  if (first === last || first === DAY_S) throw new Fault("'from' and 'to' are the same time; leave both out to mean the whole day.");
  if (last === 0) last = DAY_S;
  if (last <= first) last += DAY_S;
  const merged = [];
  for (const index of indices) {
    const [start, end] = [index * DAY_S + first, index * DAY_S + last], before = merged[merged.length - 1];
    if (before && start <= before[1]) before[1] = Math.max(before[1], end);
    else merged.push([start, end]);
  }
  return merged.length === 1 && merged[0][1] - merged[0][0] >= WEEK_S ? [] : merged;
}

// A window begins a second early: a rule that holds "from 07:00" holds at 07:00:00.
const holdsAt = (windows, t) => windows.length === 0
  || windows.some(([start, end]) => [-WEEK_S, 0, WEEK_S].some((shift) => t - start - shift + 1 > 0 && end + shift - t > 0));

// ---- Shapes

const NOT_COORDINATES = "the coordinates are not a list of [longitude, latitude]";

function listed(value) {
  if (!Array.isArray(value)) throw new Fault(NOT_COORDINATES);
  return value;
}

function positionsOf(values, fewest) {
  listed(values);
  if (values.some((place) => !Array.isArray(place) || place.length < 2 || typeof place[0] !== "number" || typeof place[1] !== "number")) throw new Fault(NOT_COORDINATES);
  if (values.length < fewest) throw new Fault(`the shape needs at least ${fewest} corners`);
  if (values.some(([lon, lat]) => !Number.isFinite(lon) || !Number.isFinite(lat) || Math.abs(lat) > 90 || Math.abs(lon) > 540)) {
    throw new Fault("a coordinate is not in degrees (longitude -180 to 180, latitude -90 to 90)");
  }
  return values;
}

function kindOf(geometry) {
  if (typeof geometry !== "object" || geometry === null || typeof geometry.type !== "string") throw new Fault("the geometry is not GeoJSON");
  if (geometry.type === "GeometryCollection") throw new Fault("a geometry collection is not one shape; split it into several features");
  return geometry.type;
}

// Parts of an area as rings in metres, without the repeated last corner.
function areaOf(geometry, projection) {
  const kind = kindOf(geometry);
  if (kind !== "Polygon" && kind !== "MultiPolygon") throw new Fault("the rule needs a polygon; draw an area");
  const polygons = kind === "Polygon" ? [geometry.coordinates] : listed(geometry.coordinates);
  const parts = polygons.map((rings) => listed(rings).map((ring) => {
    const places = positionsOf(ring, 3), last = places[places.length - 1];
    const open = places[0][0] === last[0] && places[0][1] === last[1] ? places.slice(0, -1) : places;
    if (open.length < 3) throw new Fault("a polygon needs at least three corners");
    return open.map((place) => projection.metres(place));
  }));
  if (parts.length === 0 || parts.some((rings) => rings.length === 0)) throw new Fault("the polygon has no corners");
  return parts;
}

// Lines in metres, in the direction of travel.
function linesOf(geometry, projection) {
  const kind = kindOf(geometry), { width_m: wide, height_m: high } = projection.scope, size = wide + high;
  if (kind !== "LineString" && kind !== "MultiLineString") throw new Fault("one_way needs a line; draw one in the direction of travel");
  const lines = (kind === "LineString" ? [geometry.coordinates] : listed(geometry.coordinates))
    .map((line) => positionsOf(line, 2).map((place) => projection.metres(place)))
    .filter((line) => line.some((place, k) => k > 0 && meetsBox(line[k - 1], place, -size, -size, wide + size, high + size)));
  if (lines.length === 0) throw new Fault("the line lies outside the scope; GeoJSON puts the longitude first, then the latitude");
  const steps = lines.flatMap((line) => line.slice(1).map((place, k) => [place[0] - line[k][0], place[1] - line[k][1]]));
  if (steps.some(([x, y]) => Math.max(Math.abs(x), Math.abs(y)) > 10 * size)) throw new Fault("the line is much longer than the scope; clip it to the scope");
  if (steps.every(([x, y]) => Math.hypot(x, y) <= 1e-6)) throw new Fault("The line has no length; draw at least two different corners.");
  return lines;
}

// ---- One rule

// A rule that is ready to be compared with others; throws a Fault.
function readRule(feature, position, page) {
  if (typeof feature !== "object" || feature === null || feature.type !== "Feature") throw new Fault("this is not a GeoJSON Feature");
  const { definition, projection, map } = page, options = optionsOf(feature.properties, definition), geometry = feature.geometry ?? null;
  const rule = { ...options, name: options.name || `${options.rule} ${position}`, area: null, lines: null };
  switch (options.rule) {
    case "closed":
      rule.windows = windowsOf(options, definition);
      if (geometry !== null) rule.area = areaOf(geometry, projection);
      break;
    case "stay_within":
      if (geometry !== null) rule.area = areaOf(geometry, projection);
      break;
    case "speed_limit":
      if (geometry !== null && options.classes) throw new Fault("a speed limit applies to a polygon or to road classes, not both; make two rules");
      if (geometry !== null) rule.area = areaOf(geometry, projection);
      else if (options.classes) checkClasses(options.classes, definition, map);
      break;
    case "one_way":
      if (geometry !== null) rule.lines = linesOf(geometry, projection);
      else if (map && !map.has_one_way) throw new Fault("The road map has no one-way street in the scope; remove the one_way rule.");
      break;
    default:
      if (geometry !== null) throw new Fault(`${options.rule} applies to whole trajectories; set "geometry": null`);
  }
  if (options.rule === "max_duration") {
    rule.hours = options.hours ?? options.minutes / 60;
    const [low, high] = definition.limits_h;
    if (rule.hours < low || rule.hours > high) throw new Fault(`hours must be between ${number(low)} and ${number(high)}`);
  }
  return rule;
}

function checkClasses(words, definition, map) {
  const names = words.map((word) => definition.class_of[word]);
  if (names.some((name) => !name)) throw new Fault(`classes must be a list of some of ${definition.classes.join(", ")}.`);
  if (map && !names.some((name) => map.classes.includes(name))) throw new Fault("The road map has no road of these classes in the scope; remove the rule.");
}

// ---- Contradictions

function contradictionsOf(rules, areas, page) {
  const { scope } = page.projection, { small_share: small } = page.definition, found = [];
  const sum = (holds) => areas.list.reduce((total, [covers, area]) => total + (holds(covers) ? area : 0), 0);
  const covered = (rule, covers) => rule.area === null || covers[areas.place.get(rule)];
  let stays = [];
  for (const rule of rules.filter((one) => one.rule === "stay_within" && one.area)) {
    stays = [...stays, rule];
    if (sum((covers) => stays.every((stay) => covered(stay, covers))) <= small * scope.width_m * scope.height_m) {
      return [`with '${rule.name}', the stay_within areas do not overlap within the scope`];
    }
  }
  const isFree = (covers) => stays.every((stay) => covered(stay, covers)), free = sum(isFree);
  const closed = rules.filter((rule) => rule.rule === "closed");
  if (closed.length) {
    const longest = longestOpen(closed, (shut) => sum((covers) => isFree(covers) && !shut.some((rule) => covered(rule, covers))) > small * free, scope.weekdays);
    if (longest === 0) found.push("the closed areas cover everything that the scope and stay_within allow, at all times; make an area smaller or give it hours");
    else if (longest < page.definition.shortest_trip_s) {
      found.push(`the closed areas cover everything that the scope and stay_within allow, except for ${number(longest)} seconds at a time; make an area smaller or give it other hours`);
    }
  }
  const everywhere = (rule) => !rule.classes && sum((covers) => isFree(covers) && !covered(rule, covers)) <= small * free;
  found.push(...speedContradictions(rules, everywhere, page));
  found.push(...opposedLines(rules.filter((rule) => rule.lines), page.definition));
  return found;
}

// Seconds of the longest time without a break in which some place is open; it may run past midnight on Sunday.
function longestOpen(closed, leavesRoom, weekdays) {
  const marks = new Set(Array.from({ length: 8 }, (_, day) => day * DAY_S));
  for (const rule of closed) for (const mark of rule.windows.flat()) marks.add(((mark % WEEK_S) + WEEK_S) % WEEK_S);
  const edges = [...marks].sort((a, b) => a - b), known = new Map();
  const spans = edges.slice(1).map((end, k) => {
    const middle = (end + edges[k]) / 2, shut = closed.filter((rule) => holdsAt(rule.windows, middle));
    const key = shut.map((rule) => closed.indexOf(rule)).join();
    if (!known.has(key)) known.set(key, leavesRoom(shut));
    return { seconds: end - edges[k], open: known.get(key) && weekdays.includes(Math.floor(middle / DAY_S)) };
  });
  let longest = 0, running = 0;
  for (const span of [...spans, ...spans]) {
    running = span.open ? running + span.seconds : 0;
    longest = Math.max(longest, running);
  }
  return Math.min(longest, WEEK_S);
}

function speedContradictions(rules, everywhere, { definition, projection }) {
  const of = (kind) => rules.filter((rule) => rule.rule === kind), found = [];
  const fastest = Math.min(...of("speed_limit").filter(everywhere).map((rule) => rule.kmh));
  const slowest = Math.max(...of("min_speed").map((rule) => rule.kmh));
  const longestS = Math.min(...of("max_duration").map((rule) => rule.hours * 3600));
  const cap = projection.scope.speed_kmh, metres = (fastest / 3.6) * longestS;
  if (slowest >= fastest) found.push(`min_speed (${number(slowest)} km/h) is not below speed_limit (${number(fastest)} km/h)`);
  if (slowest >= cap) found.push(`min_speed (${number(slowest)} km/h) is not below the scope's fastest speed (${number(cap)} km/h)`);
  if (metres < definition.shortest_trip_m) found.push(`max_duration at speed_limit leaves ${metres.toFixed(0)} m for a whole trajectory; raise one of them`);
  return found;
}

function opposedLines(rules, definition) {
  const pieces = rules.map((rule) => rule.lines.flatMap((line) => {
    const few = straightened(line, definition.smooth_m);
    return few.slice(1).map((place, k) => [...few[k], ...place]).filter(([ax, ay, bx, by]) => Math.hypot(bx - ax, by - ay) > 1e-6);
  }));
  const widths = rules.map((rule) => rule.width_m ?? definition.one_way_width_m);
  const against = (a, b) => shareAgainst(pieces[a], pieces[b], widths[b], definition) > definition.opposed_share;
  for (let a = 0; a < rules.length; a++) {
    if (against(a, a)) return [`'${rules[a].name}' has lines along the same street in both directions, which closes it; remove one, or use closed`];
  }
  for (let a = 0; a < rules.length; a++) {
    for (let b = 0; b < rules.length; b++) {
      if (a !== b && against(a, b)) return [`'${rules[a].name}' and '${rules[b].name}' run along the same street in opposite directions, which closes it; remove one, or use closed`];
    }
  }
  return [];
}

// Share of a line's length whose middles lie close to the other line and run against it.
function shareAgainst(pieces, others, width, definition) {
  let wrong = 0, total = 0;
  for (const [ax, ay, bx, by] of pieces) {
    const long = Math.hypot(bx - ax, by - ay), x = (ax + bx) / 2, y = (ay + by) / 2;
    total += long;
    const opposed = others.some((other) => {
      const size = Math.hypot(other[2] - other[0], other[3] - other[1]);
      const cosine = ((bx - ax) * (other[2] - other[0]) + (by - ay) * (other[3] - other[1])) / (long * size);
      return Math.min(width - distanceToPiece(x, y, other), width * (-cosine - definition.parallel)) > width * definition.opposed_depth;
    });
    if (opposed) wrong += long;
  }
  return wrong / total;
}

// ---- All rules

// Problems of a list of features: [{ feature: its index from 0, or null for all together, text }]. `note` says what was
// not checked.
function checkRules(features, page) {
  const problems = [], rules = [], areas = { list: [], place: new Map() };
  if (features.length > page.definition.most_features) problems.push({ feature: null, text: `There are more than ${page.definition.most_features} features; merge the shapes of the same rule.` });
  features.forEach((feature, k) => {
    try { rules.push([readRule(feature, k + 1, page), k]); } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      problems.push({ feature: k, text: sentence(fault.message) });
    }
  });
  const { width_m: wide, height_m: high } = page.projection.scope, shaped = rules.filter(([rule]) => rule.area);
  const edges = shaped.reduce((total, [rule]) => total + rule.area.flat(2).length, 0);
  const note = edges > MOST_EDGES ? `The areas have ${edges.toLocaleString("en")} edges, too many to compare them here; use wayveil rules check.` : "";
  if (note) return { problems, note };
  areas.list = overlapAreas(shaped.map(([rule]) => rule.area), wide, high);
  shaped.forEach(([rule, k], place) => {
    areas.place.set(rule, place);
    if (areas.list.reduce((total, [covers, area]) => total + (covers[place] ? area : 0), 0) <= 1e-9) {
      problems.push({ feature: k, text: "The area lies outside the scope; GeoJSON puts the longitude first, then the latitude." });
    }
  });
  problems.sort((a, b) => (a.feature ?? -1) - (b.feature ?? -1));
  if (problems.length === 0) {
    for (const text of contradictionsOf(rules.map(([rule]) => rule), areas, page)) problems.push({ feature: null, text: sentence(text) });
  }
  return { problems, note };
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1).replace(/\.+$/, "") + ".";
