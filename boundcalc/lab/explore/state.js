// FORMULAS (above) are the closed forms, exported from Python; DATA is everything else that was computed there.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LETTERS = Object.keys(DATA.fields);
const THEOREMS = new Map(DATA.theorems.map(t => [t.name, t]));
const VACUOUS = Math.exp(-1e-3), FALLING = new Set(DATA.falling);
const $ = id => document.getElementById(id);
let state = start();

function start() { return {...DATA.start, axis: "m", shown: ["edelman2022"], about: "edelman2022"}; }
function limits(name) { return DATA.fields[name]; }
function problem(name, value) {  // why a value cannot be shown, or ""
  const f = limits(name);
  if (!Number.isFinite(value)) return `${name} must be a number.`;
  if (value < f.least || value > f.most) return `${name} lies between ${words(f.least)} and ${words(f.most)}.`;
  if (f.whole && value !== Math.round(value)) return `${name} must be a whole number.`;
  if (name === "depth" && !DATA.served && !f.stops.includes(value)) return `This file has checked values for ${f.stops.join(", ")} layers; "boundcalc explore" without -o checks any number.`;
  const [d, heads] = [name === "d" ? value : state.d, name === "heads" ? value : state.heads];
  if ((name === "d" || name === "heads") && d % heads) return `d must be a multiple of the number of heads (${heads}).`;
  return "";
}
// -- checked points: [letters ..., bound, floor, strategy, terms, pieces, members], and what they prove elsewhere
const POINTS = [], BY_DEPTH = new Map();
function addPoint(row, names) {
  const at = Object.fromEntries(LETTERS.map((n, i) => [n, row[i]])), [gap, floor, strategy, terms, pieces, members] = row.slice(LETTERS.length);
  const point = {at, gap, floor, strategy: strategy === null ? null : names[strategy], terms, pieces: pieces.map(([n, share]) => [names[n], share]), members};
  point.compared = point.strategy !== null && point.strategy.startsWith("comparison");
  POINTS.push(point);
  if (!BY_DEPTH.has(at.depth)) BY_DEPTH.set(at.depth, []);
  BY_DEPTH.get(at.depth).push(point);
}
DATA.points.rows.forEach(row => addPoint(row, DATA.points.names));
function worse(p, at) {  // whether the class and the margin of a point are at least as bad
  const q = p.at;
  if (q.C < at.C || at.heads > q.heads) return false;
  if (p.compared) return q.m <= at.m;  // whatever T, d and gamma
  return q.T >= at.T && at.d <= q.d && q.gamma <= at.gamma && (p.terms.length > 0 || q.m <= at.m);
}
function termsAt(p, at) {  // what a proof gives at another m and gamma: first link, other links, resolution, confidence
  const [first, links, last, deviation] = p.terms, r = Math.sqrt(p.at.m / at.m), k = p.at.gamma / at.gamma;
  return [first * r, links * r * k, last * k, deviation * r];
}
function bound(at) {  // the best bound that a checked point proves here, and that point
  let value = Infinity, by = null;
  for (const p of BY_DEPTH.get(at.depth) || []) {
    if (p.gap === null || !worse(p, at)) continue;
    const v = !p.terms.length || (p.at.m === at.m && p.at.gamma === at.gamma) ? p.gap : termsAt(p, at).reduce((a, b) => a + b);
    if (v < value) { value = v; by = p; }
  }
  return {value, by};
}
function meanDeviation(m, n) {  // E |Bin(m, 1/n)/m - 1/n| by De Moivre, factorials by Stirling's series
  const v = Math.floor(m / n) + 1, rest = m - v, stirling = x => x === 1 ? 0.0810614667953272 : 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5);
  const near = v * Math.log1p((m / n - v) / v) + rest * Math.log1p((v - m / n) / rest) + Math.log(m / (2 * Math.PI * v * rest)) / 2;
  return 2 * v * (1 - 1 / n) * Math.exp(near + stirling(m) - stirling(v) - stirling(rest)) / m;
}
function floorOf(p, m) {  // by F1 its members count for every m; by F2 it falls no faster than 1/sqrt(m)
  if (m === p.at.m) return p.floor;
  if (p.members.length < 2) return p.members.length ? p.floor * Math.min(1, Math.sqrt(p.at.m / m)) : 0;
  const [drop, cells] = p.members, tail = Math.min(Math.sqrt(DATA.fixed.delta / (1 - DATA.fixed.delta)) / 2, Math.sqrt(-Math.log1p(-DATA.fixed.delta) / 2));
  return drop * (cells * meanDeviation(m, cells) / 2 - tail / Math.sqrt(m));
}
function floorAt(at) {  // sequences of T rows are those of q T rows, each q times; outputs shrink with gamma
  let value = 0, by = null;
  for (const p of BY_DEPTH.get(at.depth) || []) {
    const q = p.at;
    if (p.floor === null || at.C < q.C || at.T % q.T || at.gamma > q.gamma || q.d > at.d || q.heads > at.heads) continue;
    const v = floorOf(p, at.m);
    if (v > value) { value = v; by = p; }
  }
  return {value, by};
}
function enough(at, target) {  // the smallest m at which the best bound, which falls with m, is at most the target
  let low = 10, high = 1e12;
  if (bound({...at, m: high}).value > target) return null;
  while (high / low > 1.0005) { const m = Math.sqrt(low * high); if (bound({...at, m}).value <= target) high = m; else low = m; }
  return Math.ceil(high);
}
function compute(name, at) { return FORMULAS[name](...THEOREMS.get(name).inputs.map(n => at[n] ?? DATA.fixed[n])); }
// -- numbers as people write them
function words(x) {
  if (x >= 1e15) return x.toExponential(1).replace("e+", "e");
  for (const [unit, name] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]]) if (x >= unit) return `${Number((x / unit).toPrecision(3))} ${name}`;
  return x >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(3)));
}
function rounded(x, digits, up) {  // to the safe side
  if (!(x > 0) || !Number.isFinite(x)) return String(x);
  const unit = 10 ** (Math.floor(Math.log10(x)) + 1 - digits);
  return Number(((up ? Math.ceil(x / unit - 1e-9) : Math.floor(x / unit + 1e-9)) * unit).toPrecision(digits));
}
function points(x, up) { const p = rounded(100 * x, 2, up); return `${p} ${p === 1 ? "point" : "points"}`; }
function shownBound(x) { return x < VACUOUS ? String(rounded(x, 4, true)) : Number.isFinite(x) ? `vacuous (${words(rounded(x, 3, true))})` : "none"; }
