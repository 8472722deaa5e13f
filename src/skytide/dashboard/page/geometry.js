// Numbers behind the pictures: dominance, staircases, ranges, ticks.

/** Whether values `a` are as good as `b` in every column with a goal and better in one. */
export function dominates(a, b, goals) {
  let better = false;
  for (let i = 0; i < goals.length; i++) {
    if (!goals[i]) continue;
    const left = cost(a[i], goals[i]);
    const right = cost(b[i], goals[i]);
    if (left > right) return false;
    if (left < right) better = true;
  }
  return better;
}

/** A value as a cost: smaller is better. What is missing is worst. */
export function cost(value, goal) {
  if (typeof value !== "number") return Infinity;
  return goal === "max" ? -value : value;
}

/** The corners of the border of what these points dominate; costs in, costs out. Points [x, y], border ends at the worst edges. */
export function staircase(points, worstX, worstY) {
  // one good point rules out most others, which need not be sorted then
  let [limitX, limitY, least] = [Infinity, Infinity, Infinity];
  for (const [x, y] of points) {
    const sum = x / (Math.abs(worstX) || 1) + y / (Math.abs(worstY) || 1);
    if (sum < least) [limitX, limitY, least] = [x, y, sum];
  }
  const sorted = points.filter((p) => p[0] < Infinity && p[1] < Infinity && (p[0] <= limitX || p[1] <= limitY)).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const corners = [];
  let best = Infinity;
  for (const [x, y] of sorted) {
    if (y >= best) continue;
    corners.push([x, corners.length ? best : Math.max(worstY, y)], [x, y]);
    best = y;
  }
  if (corners.length) corners.push([Math.max(worstX, corners[corners.length - 1][0]), best]);
  return corners;
}

/** Smallest and largest finite number, or null. */
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** Most of the values: what a few far away ones would squeeze into a corner is seen well. */
export function bulk(values, share) {
  const sorted = values.filter((value) => typeof value === "number" && Number.isFinite(value)).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const cut = Math.floor(((1 - share) / 2) * (sorted.length - 1));
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}

export function union(a, b) {
  if (!a || !b) return a ?? b;
  return [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
}

/** A range with some air around it. Halves keep differences of very large numbers finite. */
export function airy([low, high], air = 0.06) {
  const half = high / 2 - low / 2;
  const room = half > 0 ? half * 2 * air : Math.abs(low) * 0.1 || 1;
  const bound = (value) => Math.min(Math.max(value, -1e308), 1e308);
  return [bound(low - room), bound(high + room)];
}

/** The range to show: the old one while the data fits it and fills it well, so that axes do not tremble. */
export function steady(old, data) {
  if (!data) return old ?? [0, 1];
  if (old && data[0] >= old[0] && data[1] <= old[1]) {
    const filled = (data[1] / 2 - data[0] / 2) / (old[1] / 2 - old[0] / 2);
    if (filled > 0.55) return old;
  }
  return airy(data, 0.09);
}

/** About `count` round numbers within a range. */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9 && found.length < 50; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** Where a value lies between two others, 0 to 1; infinite ends stay at the edges. */
export function share(value, [low, high]) {
  if (value <= low) return value === low && low === high ? 0.5 : 0;
  if (value >= high) return 1;
  return (value / 2 - low / 2) / (high / 2 - low / 2);
}

const RAMP_LIGHT = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [70, 170, 80], [190, 160, 10]];
const RAMP_DARK = [[120, 90, 200], [80, 140, 230], [50, 190, 180], [130, 215, 90], [253, 231, 60]];

/** A colour between two ends that goes from dark to light, in steps that all eyes can tell apart. */
export function ramp(part, dark) {
  const stops = dark ? RAMP_DARK : RAMP_LIGHT;
  const place = Math.min(Math.max(part, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const mix = stops[i].map((c, j) => Math.round(c + (stops[i + 1][j] - c) * (place - i)));
  return `rgb(${mix.join(",")})`;
}
