// Shapes of rules as paths of corners in degrees, and the history of changes.

// The paths of a shape: rings without their repeated last corner, or lines. A shape that cannot be drawn has none.
function pathsOf(geometry) {
  const closed = geometry?.type === "Polygon" || geometry?.type === "MultiPolygon";
  const lists = { LineString: (c) => [c], MultiLineString: (c) => c, Polygon: (c) => c, MultiPolygon: (c) => c.flat() }[geometry?.type];
  try {
    return lists(geometry.coordinates).map((places) => {
      if (!places.every((place) => Number.isFinite(place[0]) && Number.isFinite(place[1]))) throw new TypeError();
      const last = places[places.length - 1];
      const repeated = closed && places.length > 1 && places[0][0] === last[0] && places[0][1] === last[1];
      return { closed, places: repeated ? places.slice(0, -1) : places };
    });
  } catch { return []; }
}

// The shape with other corners in one of its paths; null if too few corners are left.
function withPath(geometry, index, places) {
  const closed = geometry.type.endsWith("Polygon"), least = closed ? 3 : 2;
  const path = closed ? [...places, places[0]] : places;
  const put = (list, at) => (places.length < least ? list.filter((_, k) => k !== at) : list.map((own, k) => (k === at ? path : own)));
  const { type, coordinates } = geometry;
  if (type === "LineString") return places.length < least ? null : { type, coordinates: path };
  if (type === "MultiLineString") return some({ type, coordinates: put(coordinates, index) });
  // Without its outer ring a polygon is gone, holes and all.
  const rings = (polygon, at) => (at === 0 && places.length < least ? [] : put(polygon, at));
  if (type === "Polygon") return some({ type, coordinates: rings(coordinates, index) });
  let first = 0;
  const polygons = coordinates.map((polygon) => {
    const at = index - first;
    first += polygon.length;
    return at >= 0 && at < polygon.length ? rings(polygon, at) : polygon;
  });
  return some({ type, coordinates: polygons.filter((polygon) => polygon.length > 0) });
}

const some = (geometry) => (geometry.coordinates.length > 0 ? geometry : null);

const drawnShape = (kind, places) => (kind === "one_way"
  ? { type: "LineString", coordinates: places }
  : { type: "Polygon", coordinates: [[...places, places[0]]] });

function reversedShape(geometry) {
  const { type, coordinates } = geometry;
  return { type, coordinates: type === "LineString" ? [...coordinates].reverse() : coordinates.map((line) => [...line].reverse()) };
}

// States of the list of rules; each change adds one.
class History {
  constructor(features) { this.states = [JSON.stringify(features)]; this.at = 0; this.saved = this.states[0]; }

  get features() { return JSON.parse(this.states[this.at]); }

  get isSaved() { return this.states[this.at] === this.saved; }

  get canUndo() { return this.at > 0; }

  get canRedo() { return this.at + 1 < this.states.length; }

  push(features) {
    const state = JSON.stringify(features);
    if (state === this.states[this.at]) return false;
    this.states.splice(this.at + 1, Infinity, state);
    this.at += 1;
    return true;
  }

  step(by) { this.at = clamp(this.at + by, 0, this.states.length - 1); }

  markSaved() { this.saved = this.states[this.at]; }
}

// The rules in the text of a GeoJSON file; throws a Fault with the remedy.
function featuresInFile(text) {
  let content;
  try { content = JSON.parse(text.replace(/^\ufeff/, "")); } catch { throw new Fault("This is not valid JSON; save it as GeoJSON from this page, QGIS or geojson.io."); }
  if (content?.type !== "FeatureCollection" && content?.type !== "Feature") throw new Fault("This is not a GeoJSON FeatureCollection; save it from this page, QGIS or geojson.io.");
  if (content.crs && !/(crs84|4326)$/i.test(String(content.crs?.properties?.name))) throw new Fault("This file is in another projection; export it in WGS 84 (EPSG:4326).");
  const features = content.type === "Feature" ? [content] : content.features;
  if (!Array.isArray(features) || features.length === 0) throw new Fault("This file has no features; it needs at least one rule.");
  return features;
}

// ---- Words for the list of rules

function summaryOf(properties) {
  const { rule, from, to, days, kmh, minutes, hours, classes } = properties ?? {};
  const when = [from || to ? `${from || "00:00"}–${to || "24:00"}` : "", days ? [days].flat().join(", ") : ""].filter(Boolean).join(" ");
  const words = {
    closed: `closed ${when || "always"}`,
    speed_limit: `at most ${kmh ?? "?"} km/h${classes ? " on " + [classes].flat().join(", ") : ""}`,
    one_way: "one-way",
    stay_within: "stay within",
    min_speed: `mean speed at least ${kmh ?? "?"} km/h`,
    max_duration: `at most ${minutes ?? hours ?? "?"} ${minutes === undefined ? "hours" : "minutes"} long`,
  };
  return words[rule] ?? "not a known rule";
}
