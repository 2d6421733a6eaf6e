// Shapes of rules in metres: projection, and the exact areas of all overlaps of polygons.

// Degrees to metres from the south-west corner of the scope, and back; as Scope.to_metres does.
class Projection {
  constructor(scope) { this.scope = scope; }

  metres([lon, lat]) {
    const { west, south, span_deg: span, x_m_per_deg: perX, y_m_per_deg: perY } = this.scope;
    let x = lon - (west + span / 2);
    if (Math.abs(x) > 180) x = ((((x + 180) % 360) + 360) % 360) - 180;
    return [(x + span / 2) * perX, (lat - south) * perY];
  }

  degrees([x, y]) {
    const lon = x / this.scope.x_m_per_deg + this.scope.west;
    return [round7(lon > 180 ? lon - 360 : lon), round7(y / this.scope.y_m_per_deg + this.scope.south)];
  }
}

const round7 = (value) => Math.round(value * 1e7) / 1e7;

// The areas inside the box of every combination of shapes, as a list of [set of shapes as booleans, square metres].
// A shape is a list of parts, a part is a list of rings, and a part covers what its rings enclose an odd number of times.
// The plane is cut into vertical strips at every corner and every crossing; in a strip, edges do not cross, so they bound
// trapezoids.
function overlapAreas(shapes, widthM, heightM) {
  const parts = [[[[0, 0], [widthM, 0], [widthM, heightM], [0, heightM]]]], owner = [-1];
  shapes.forEach((shape, k) => shape.forEach((part) => { parts.push(part); owner.push(k); }));
  const edges = parts.flatMap((rings, part) => rings.flatMap((ring) => ringEdges(ring, part)));
  const cuts = [0, widthM];
  for (const edge of edges) cuts.push(edge.ax, edge.bx);
  for (let i = 0; i < edges.length; i++) for (let j = 0; j < i; j++) { const x = crossing(edges[i], edges[j]); if (x !== null) cuts.push(x); }
  const inside = cuts.filter((x) => x >= 0 && x <= widthM).sort((a, b) => a - b);
  const areas = new Map();
  for (let k = 0; k + 1 < inside.length; k++) {
    const [left, right] = [inside[k], inside[k + 1]], middle = (left + right) / 2;
    if (right - left < 1e-9) continue;
    const active = edges.filter((edge) => edge.ax < middle && edge.bx > middle)
      .map((edge) => ({ part: edge.part, left: heightAt(edge, left), right: heightAt(edge, right), middle: heightAt(edge, middle) }))
      .sort((a, b) => a.middle - b.middle);
    const odd = new Array(parts.length).fill(false);
    for (let i = 0; i + 1 < active.length; i++) {
      odd[active[i].part] = !odd[active[i].part];
      if (!odd[0]) continue; // outside the box
      const area = ((active[i + 1].left - active[i].left + active[i + 1].right - active[i].right) / 2) * (right - left);
      const covers = shapes.map(() => false);
      odd.forEach((on, part) => { if (on && part > 0) covers[owner[part]] = true; });
      const key = covers.map(Number).join("");
      areas.set(key, [covers, (areas.get(key)?.[1] ?? 0) + area]);
    }
  }
  return [...areas.values()];
}

// The edges of a ring from left to right; vertical ones bound no trapezoid.
function ringEdges(ring, part) {
  return ring.map((a, k) => [a, ring[(k + 1) % ring.length]]).filter(([a, b]) => a[0] !== b[0])
    .map(([a, b]) => (a[0] < b[0] ? { ax: a[0], ay: a[1], bx: b[0], by: b[1], part } : { ax: b[0], ay: b[1], bx: a[0], by: a[1], part }));
}

const heightAt = (edge, x) => edge.ay + ((edge.by - edge.ay) * (x - edge.ax)) / (edge.bx - edge.ax);

function crossing(p, q) {
  const left = Math.max(p.ax, q.ax), right = Math.min(p.bx, q.bx);
  if (left >= right) return null;
  const before = heightAt(p, left) - heightAt(q, left), after = heightAt(p, right) - heightAt(q, right);
  return before * after < 0 ? left + ((right - left) * before) / (before - after) : null;
}

function distanceToPiece(x, y, [ax, ay, bx, by]) {
  const dx = bx - ax, dy = by - ay, square = dx * dx + dy * dy;
  const share = clamp(square ? ((x - ax) * dx + (y - ay) * dy) / square : 0, 0, 1);
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}

// A line without corners that lie within the tolerance of a straight line (Douglas and Peucker).
function straightened(line, tolerance) {
  if (line.length < 3) return line;
  const chord = [...line[0], ...line[line.length - 1]];
  let far = 0, most = tolerance;
  for (let k = 1; k + 1 < line.length; k++) {
    const distance = distanceToPiece(...line[k], chord);
    if (distance > most) [far, most] = [k, distance];
  }
  if (far === 0) return [line[0], line[line.length - 1]];
  return [...straightened(line.slice(0, far + 1), tolerance).slice(0, -1), ...straightened(line.slice(far), tolerance)];
}

// Whether a piece of a line meets a box (Liang and Barsky).
function meetsBox(a, b, west, south, east, north) {
  let enter = 0, leave = 1;
  for (const [start, step, low, high] of [[a[0], b[0] - a[0], west, east], [a[1], b[1] - a[1], south, north]]) {
    if (step === 0) { if (start < low || start > high) return false; continue; }
    const [first, second] = [(low - start) / step, (high - start) / step].sort((p, q) => p - q);
    enter = Math.max(enter, first);
    leave = Math.min(leave, second);
  }
  return enter <= leave;
}
