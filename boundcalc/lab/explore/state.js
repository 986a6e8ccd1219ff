// FORMULAS (above) are the closed forms, exported from Python; DATA is everything else that was computed there.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LETTERS = Object.keys(DATA.fields), EXTRAS = Object.keys(DATA.extras);
const THEOREMS = new Map(DATA.theorems.map(t => [t.name, t]));
const COLOURS = ["#0066A0", "#B34E00", "#00734F", "#8E3B66", "#7A5900"], DASHES = ["", "7 3", "2 2", "9 3 2 3", "5 2"];
const BEST = "best", SILENT = Math.exp(-1e-3);
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let state = start(), asked = 0, served = new Map();

function start() {
  return {...DATA.start, ...Object.fromEntries(EXTRAS.map(n => [n, DATA.extras[n].value])), style: DATA.style, axis: "m",
    xlog: true, ylog: true, uncapped: false, shown: [BEST, "edelman2022", "trauger2024", "zhang2022"], about: "edelman2022"};
}
function limits(name) { return name in DATA.fields ? DATA.fields[name] : DATA.extras[name]; }
function clamp(name, value) {
  const f = limits(name);
  if (!Number.isFinite(value)) return state[name];
  const inside = Math.min(f.most, Math.max(f.least, value));
  return f.whole ? Math.round(inside) : inside;
}
// -- the view in the address
function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)), found = start();
  for (const [name, text] of given) {
    if (LETTERS.includes(name) || EXTRAS.includes(name)) found[name] = clamp(name, Number(text));
    else if (name === "style" && DATA.styles.includes(text)) found.style = text;
    else if (name === "axis" && LETTERS.includes(text)) found.axis = text;
    else if (["xlog", "ylog", "uncapped"].includes(name)) found[name] = text === "1";
    else if (name === "about" && THEOREMS.has(text)) found.about = text;
    else if (name === "shown") found.shown = text.split(",").filter(n => n === BEST || THEOREMS.has(n));
  }
  return found;
}
function address() {
  const first = start(), words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const text = Array.isArray(value) ? value.join(",") : typeof value === "boolean" ? (value ? "1" : "0") : String(value);
    const usual = Array.isArray(first[name]) ? first[name].join(",") : typeof first[name] === "boolean" ? (first[name] ? "1" : "0") : String(first[name]);
    if (text !== usual) words.set(name, text);
  }
  return words.toString();
}
// -- numbers
function compute(name, at) {
  const theorem = THEOREMS.get(name);
  return FORMULAS[name](...theorem.inputs.map(input => at[input]));
}
function applies(name) { return name === BEST || (DATA.closed && state.style === "edelman"); }
function number(x) {
  if (x === 0) return "0";
  if (!Number.isFinite(x)) return x > 0 ? "beyond floats" : "none";
  if (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3) { const [a, b] = x.toExponential(3).split("e"); return Number(a) === 1 ? `10^${Number(b)}` : `${Number(a)}×10^${Number(b)}`; }
  return String(Number(x.toPrecision(4)));
}
function up(x) {  // bounds are rounded up
  if (!(x > 0) || !Number.isFinite(x)) return number(x);
  const unit = 10 ** (Math.floor(Math.log10(x)) - 3);
  return number(Math.ceil(x / unit * (1 - 1e-12)) * unit);
}
// -- the table of checked values
function table() { return DATA.tables[state.style]; }
function fixed(at) { return ["d", "heads", "gamma", "delta"].every(n => at[n] === DATA.start[n]); }
function row(at) {
  const t = DATA.tables[at.style];
  if (!t || !fixed(at)) return null;
  let index = 0;
  for (const [name, values] of Object.entries(t.axes)) {
    const i = values.indexOf(at[name]);
    if (i < 0) return null;
    index = index * values.length + i;
  }
  return t.rows[index];
}
function nearest(at) {
  const t = DATA.tables[at.style], found = {...at};
  for (const n of ["d", "heads", "gamma", "delta"]) found[n] = DATA.start[n];
  for (const [name, values] of Object.entries(t.axes))
    found[name] = values.reduce((a, b) => Math.abs(Math.log(b / at[name])) < Math.abs(Math.log(a / at[name])) ? b : a);
  return found;
}
function dots() {
  const t = table(), values = t && t.axes[state.axis];
  const points = [];
  for (const x of values || []) {
    const found = row({...state, [state.axis]: x});
    if (found && "log10" in found) points.push([x, 10 ** found.log10]);
  }
  return points;
}
function key(at) { return LETTERS.map(n => at[n]).join(",") + at.style; }
function here() { return served.get(key(state)) || row(state); }
function pieces(found) {
  if (!found.pieces) return [];
  return Array.isArray(found.pieces) ? found.pieces.map(([i, share]) => [DATA.tables[state.style].pieces[i], share]) : Object.entries(found.pieces);
}
