// FORMULAS (above) are the closed forms, exported from Python; DATA is everything else that was computed there.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LETTERS = Object.keys(DATA.fields), EXTRAS = Object.keys(DATA.extras);
const THEOREMS = new Map(DATA.theorems.map(t => [t.name, t]));
const VACUOUS = Math.exp(-1e-3), WORSE_SMALLER = new Set(DATA.smaller);
const $ = id => document.getElementById(id);
let state = start();

function start() {
  return {...DATA.start, ...Object.fromEntries(EXTRAS.map(n => [n, DATA.extras[n].value])), axis: "m", shown: DATA.closed ? ["edelman2022"] : [], about: "edelman2022"};
}
function limits(name) { return DATA.fields[name] || DATA.extras[name]; }
function problem(name, value) {  // why a value cannot be shown, or ""
  const f = limits(name);
  if (!Number.isFinite(value)) return `${name} must be a number.`;
  if (value < f.least || value > f.most) return `${name} lies between ${words(f.least)} and ${words(f.most)}.`;
  if (f.whole && value !== Math.round(value)) return `${name} must be a whole number.`;
  if (name === "depth" && !DATA.served && !f.stops.includes(value)) return `This file has checked values for ${f.stops.join(", ")} layers; "boundcalc explore" checks any number.`;
  const [d, heads] = [name === "d" ? value : state.d, name === "heads" ? value : state.heads];
  if ((name === "d" || name === "heads") && d % heads) return `d must be a multiple of the number of heads (${heads}).`;
  return "";
}
// -- checked points: [letters ..., bound, floor, strategy, parts], and what they prove elsewhere
const POINTS = [], BY_DEPTH = new Map();
function addPoint(row, names) {
  const at = Object.fromEntries(LETTERS.map((n, i) => [n, row[i]])), [gap, floor, strategy, parts] = row.slice(LETTERS.length);
  const point = {at, gap, floor, strategy: strategy === null ? null : names[strategy], parts: parts.map(([n, share]) => [names[n], share])};
  POINTS.push(point);
  if (!BY_DEPTH.has(at.depth)) BY_DEPTH.set(at.depth, []);
  BY_DEPTH.get(at.depth).push(point);
}
DATA.points.rows.forEach(row => addPoint(row, DATA.points.names));
function inside(small, large, flip) {  // every letter of `large` is at least as bad as that of `small`
  for (const n of LETTERS) {
    if (n === "depth") continue;
    const down = WORSE_SMALLER.has(n) !== flip;
    if (down ? large[n] > small[n] : large[n] < small[n]) return false;
  }
  return true;
}
function confidence(m) { return Math.sqrt(Math.log(1 / DATA.delta) / (2 * m)); }
function scales(p) { return p.strategy !== null && p.strategy.startsWith("comparison"); }
function scaled(p, at) {  // Gaussian comparison: A / (gamma sqrt(m)) and the confidence term; A falls with m
  const a = (p.gap - confidence(p.at.m)) * p.at.gamma * Math.sqrt(p.at.m);
  return a / (at.gamma * Math.sqrt(at.m)) + confidence(at.m);
}
function bound(at) {  // the best bound that a checked point proves here, and that point
  let value = Infinity, by = null;
  for (const p of BY_DEPTH.get(at.depth) || []) {
    if (p.gap === null) continue;
    const here = scales(p) ? {...at, gamma: p.at.gamma} : at;
    if (scales(p) ? p.at.m > at.m || p.at.C < at.C || p.at.heads < at.heads : !inside(here, p.at, false)) continue;
    const v = scales(p) ? scaled(p, at) : p.gap;
    if (v < value) { value = v; by = p; }
  }
  return {value, by};
}
function floorAt(at) {
  let value = 0, by = null;
  for (const p of BY_DEPTH.get(at.depth) || []) if (p.floor !== null && p.floor > value && inside(at, p.at, true)) { value = p.floor; by = p; }
  return {value, by};
}
function enough(at, target) {  // the smallest m at which the best bound, which falls with m, is at most the target
  let low = 10, high = 1e12;
  if (bound({...at, m: high}).value > target) return null;
  while (high / low > 1.0005) { const m = Math.sqrt(low * high); if (bound({...at, m}).value <= target) high = m; else low = m; }
  return Math.ceil(high);
}
function compute(name, at) { return FORMULAS[name](...THEOREMS.get(name).inputs.map(n => n === "delta" ? DATA.delta : at[n])); }
// -- the view in the address
function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)), view = start();
  for (const [name, text] of given) {
    if ((LETTERS.includes(name) || EXTRAS.includes(name)) && text !== "" && !problem(name, Number(text))) view[name] = Number(text);
    else if (name === "axis" && LETTERS.includes(text)) view.axis = text;
    else if (name === "about" && THEOREMS.has(text)) view.about = text;
    else if (name === "shown") view.shown = text.split(",").filter(n => THEOREMS.has(n));
  }
  return view;
}
function address() {
  const usual = start(), parts = new URLSearchParams();
  for (const n of [...LETTERS, ...EXTRAS, "axis", "about"]) if (state[n] !== usual[n]) parts.set(n, state[n]);
  if (state.shown.join() !== usual.shown.join()) parts.set("shown", state.shown.join());
  return parts.toString();
}
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
function shownBound(x) { return x < VACUOUS ? String(rounded(x, 4, true)) : Number.isFinite(x) ? `vacuous (${words(rounded(x, 3, true))})` : "vacuous"; }
