// The picture: floor and bound as a band, closed forms, measured runs, a line to drag and a read-out.
const SVG = "http://www.w3.org/2000/svg";
let frame = null;  // scales of the picture as it stands
function node(kind, attributes, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function axisPlaces(name) {  // x of the curves; those where checked points lie are among them
  const f = limits(name), low = f.stops[0], high = f.stops[f.stops.length - 1], steps = 72;
  if (f.whole && high - low <= steps) return DATA.served ? Array.from({length: high - low + 1}, (_, i) => low + i) : f.stops;
  const all = Array.from({length: steps + 1}, (_, i) => low * (high / low) ** (i / steps)).map(x => f.whole ? Math.round(x) : x);
  return [...new Set([...all, ...POINTS.map(p => p.at[name]).filter(x => x >= low && x <= high), state[name]])].sort((a, b) => a - b);
}
function label(x, y, text, attributes) {
  const made = node("text", {x, y, ...attributes});
  text.split(/(\^-?\d+)/).forEach(part => {
    if (part.startsWith("^")) made.append(node("tspan", {class: "power", dy: -5}, part.slice(1)));
    else if (part) made.append(node("tspan", made.childNodes.length ? {dy: 5} : {}, part));
  });
  return made;
}
function tick(x) { if (x >= 1 && x < 1e6 && Number.isInteger(x) && Math.log10(x) % 1) return String(x); const e = Math.log10(x); return Math.abs(e - Math.round(e)) < 1e-9 && (e > 3 || e < -2) ? `10^${Math.round(e)}` : String(Number(x.toPrecision(3))); }
function decades(low, high, most) {
  const a = Math.ceil(Math.log10(low) - 1e-9), b = Math.floor(Math.log10(high) + 1e-9), step = Math.max(1, Math.ceil((b - a + 1) / most));
  return Array.from({length: Math.max(0, Math.floor((b - a) / step) + 1)}, (_, i) => 10 ** (a + i * step));
}
function path(xy, closed) { return xy.length ? "M" + xy.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L") + (closed ? "Z" : "") : ""; }
function curved(by) { return by !== null && by.terms.length > 0 && FALLING.has(state.axis); }  // a formula between checked points
function stairs(rows, back) {  // a bound holds from its checked point on, a floor up to it; formulas in between are curves
  const out = [];
  rows.forEach(([x, y, smooth], i) => { if (i && !smooth) out.push(back ? [rows[i - 1][0], y] : [x, rows[i - 1][1]]); out.push([x, y]); });
  return out;
}
function draw() {
  const began = performance.now(), svg = $("chart"), width = Math.max(320, svg.clientWidth || 640), height = svg.clientHeight || 380;
  const left = 58, right = 14, top = 10, bottom = 44, f = limits(state.axis), low = f.stops[0], high = f.stops[f.stops.length - 1];
  const xs = axisPlaces(state.axis), best = xs.map(x => { const b = bound({...state, [state.axis]: x}); return [x, b.value, curved(b.by)]; }), floors = xs.map(x => { const f = floorAt({...state, [state.axis]: x}); return [x, f.value, f.by !== null && state.axis === "m"]; });
  const lines = DATA.theorems.filter(t => state.shown.includes(t.name)).map(t => ({...t, rows: xs.map(x => [x, compute(t.name, {...state, [state.axis]: x})])}));
  const runs = state.axis === "m" ? DATA.runs.rows : [];
  const seen = [...best, ...floors, ...lines.flatMap(l => l.rows), ...runs].map(p => p[1]).filter(y => y > 0 && y < 1);
  const least = Math.max(1e-6, 10 ** Math.floor(Math.log10(Math.min(0.1, ...seen)) + 0.01)), most = (1 / least) ** 0.12;
  const across = x => left + (width - left - right) * Math.log(x / low) / Math.log(high / low);
  const up = y => height - bottom - (height - bottom - top) * Math.log(Math.min(most, Math.max(least, y)) / least) / Math.log(most / least);
  frame = {left, right: width - right, top, bottom: height - bottom, low, high, across, up, width, height};
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.append(node("title", {id: "chart-title"}, `Floor and bounds of the generalization gap along ${state.axis}`));
  svg.append(node("rect", {class: "paper", x: 0, y: 0, width, height}), node("rect", {class: "vacuous", x: left, y: up(most), width: width - left - right, height: up(1) - up(most)}));
  const silent = lines.filter(l => !l.rows.some(p => p[1] < VACUOUS)).map(l => l.source), band = "vacuous" + (silent.length && width > 480 ? `: ${silent.join("; ")}` : "");
  svg.append(label(left + 6, up(1) - 6, band, {class: "quiet"}));
  let free = Infinity;  // where the label to the right begins
  for (const x of (f.stops.length <= 13 ? f.stops : decades(low, high, width > 480 ? 9 : 5)).toReversed()) {
    const text = tick(x), end = across(x) + (x === high ? 0 : 4 * text.length);
    svg.append(node("line", {class: "grid", x1: across(x), x2: across(x), y1: top, y2: height - bottom}));
    if (end > free) continue;
    svg.append(label(across(x), height - bottom + 18, text, {class: "tick", "text-anchor": x === high ? "end" : "middle"}));
    free = end - 8 * text.length - 6;
  }
  for (const y of decades(least, 1, 7)) svg.append(node("line", {class: "grid", x1: left, x2: width - right, y1: up(y), y2: up(y)}), label(left - 6, up(y) + 4, tick(y), {class: "tick", "text-anchor": "end"}));
  svg.append(label((left + width - right) / 2, height - 6, `${state.axis}: ${f.words}`, {class: "tick", "text-anchor": "middle"}));
  // the band between floor and bound, and both edges
  const back = FALLING.has(state.axis), place = ([x, y, smooth]) => [across(x), up(Math.min(y, 1)), smooth];
  const over = stairs(best.map(place), !back), under = stairs(floors.map(place), back);
  svg.append(node("path", {class: "band", d: path([...over, ...under.reverse()], true)}));
  const edge = (rows, kind, turned) => { const d = path(stairs(rows.map(place), turned)); if (d) svg.append(node("path", {class: kind, d, "data-line": kind})); };
  edge(floors.filter(p => p[1] > least), "floor", back);
  edge(best.filter(p => p[1] < VACUOUS), "best", !back);
  if (f.whole && xs.length < 30) for (const [x, y] of best) if (y < VACUOUS) svg.append(node("circle", {class: "stop", cx: across(x), cy: up(y), r: 3, "data-stop": x}));
  lines.forEach((l, i) => { const kept = l.rows.filter(p => p[1] < VACUOUS && p[1] >= least); if (kept.length) svg.append(node("path", {class: `closed closed-${i}`, d: path(kept.map(([x, y]) => [across(x), up(y)])), "data-curve": l.name})); });
  for (const [x, y] of runs) if (y > 0 && x >= low && x <= high) svg.append(node("circle", {class: "run", cx: across(x), cy: up(y), r: 3.5, "data-run": x}));
  svg.append(node("path", {class: "frame", d: `M${left},${top}V${height - bottom}H${width - right}`}));
  names(svg, best, floors, lines, runs, [left + 6, up(1) - 18, 7.8 * band.length]);
  const here = across(Math.min(high, Math.max(low, state[state.axis])));
  svg.append(node("line", {class: "here", x1: here, x2: here, y1: top, y2: height - bottom, "data-here": state[state.axis]}), node("circle", {class: "handle", cx: here, cy: height - bottom, r: 7}));
  $("chart-text").textContent = caption(runs);
  readOut(state[state.axis]);
  svg.dataset.ms = (performance.now() - began).toFixed(2);
}
function caption(runs) {
  const step = !FALLING.has(state.axis) && !DATA.served ? " Where it is a stair, its values are those of the next worse setting that was checked." : "";
  return `Red-brown: smallest proved bound. Grey: proved floor under every bound of this kind.${step}` + (runs.length ? ` Green dots: ${DATA.runs.words}.` : "");
}
function names(svg, best, floors, lines, runs, band) {
  const taken = [band];
  const put = (rows, text, kind, above) => {
    const kept = rows.filter(p => p[1] > 0 && p[1] < VACUOUS).map(([x, y]) => [frame.across(x), frame.up(y)]), w = 7.8 * text.length;
    for (const [x, y] of [...kept].reverse().filter((_, i) => i % 4 === 0)) {
      for (const [a, b] of kind === "run" ? [[x + 8, y - 8], [x - w - 8, y - 8]] : [[x - w - 4, above ? y - 20 : y + 5], [x - w - 4, above ? y + 5 : y - 20], [x + 6, y - 18]]) {
        if (a < frame.left + 4 || a + w > frame.right || b < frame.top || b + 16 > frame.bottom || taken.some(([c, d, v]) => a < c + v && c < a + w && b < d + 17 && d < b + 17)) continue;
        const crossed = [best, floors, ...lines.map(l => l.rows), runs].some(rows => rows.some(([p, q]) => { const u = frame.across(p), v = frame.up(q); return u > a - 4 && u < a + w + 4 && v > b && v < b + 15; }));
        if (crossed) continue;
        taken.push([a, b, w]);
        svg.append(label(a + w, b + 12, text, {class: `name ${kind}`, "text-anchor": "end", "data-label": kind}));
        return;
      }
    }
  };
  put(best, "best bound", "best", true);
  put(floors, "proved floor", "floor", false);
  lines.forEach((l, i) => put(l.rows, l.source, `closed-${i}`, true));
  put(runs, "measured", "run", true);
}
// -- the pointer: drag the line, read the curves
function nearestStop(name, x) { const f = limits(name); return f.stops.reduce((a, b) => Math.abs(Math.log(b / x)) < Math.abs(Math.log(a / x)) ? b : a); }
function pointerValue(event) {
  const box = $("chart").getBoundingClientRect(), share = ((event.clientX - box.left) * frame.width / box.width - frame.left) / (frame.right - frame.left);
  return frame.low * (frame.high / frame.low) ** Math.min(1, Math.max(0, share));
}
function readOut(x) {
  const at = {...state, [state.axis]: limits(state.axis).whole ? Math.round(x) : x}, b = bound(at).value, f = floorAt(at).value;
  $("read-out").textContent = `${state.axis} = ${words(at[state.axis])}: bound ${shownBound(b)}` + (f > 0 ? `, floor ${rounded(f, 3, false)}` : "")
    + state.shown.map(n => `, ${THEOREMS.get(n).source} ${shownBound(compute(n, at))}`).join("");
}
function listen() {
  const svg = $("chart");
  let dragged = false;
  svg.addEventListener("pointerdown", event => { dragged = true; svg.setPointerCapture(event.pointerId); set({[state.axis]: nearestStop(state.axis, pointerValue(event))}); });
  svg.addEventListener("pointermove", event => { if (!frame) return; readOut(pointerValue(event)); if (dragged) set({[state.axis]: nearestStop(state.axis, pointerValue(event))}); });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { dragged = false; });
  svg.addEventListener("pointerleave", () => readOut(state[state.axis]));
}
// -- who pays: one linear bar, cut by what the bound consists of
const OTHERS = "other weight matrices";
function pays() {
  const {value, by} = bound(state), box = $("pays");
  box.replaceChildren();
  if (!by || !(value < Infinity)) { $("pays-text").textContent = "No bound is checked here."; return; }
  let rows = by.pieces;
  if (by.terms.length) {
    const [first, links, last, deviation] = termsAt(by, state), others = 1 - by.pieces.reduce((a, p) => a + p[1], 0);
    const complexity = !by.pieces.length ? [["complexity of the class", 1]] : others > 0.005 ? [...by.pieces, [OTHERS, others]] : by.pieces;
    rows = [...complexity.map(([name, share]) => [name, share * (first + links)]), ["resolution of the covers", last], ["confidence", deviation]].filter(r => r[1] > 5e-4 * value);
  } else if (!rows.length) rows = [["complexity of the class", 1]];
  rows = rows.sort((a, b) => (a[0] === OTHERS) - (b[0] === OTHERS) || b[1] - a[1]);
  const total = rows.reduce((a, r) => a + r[1], 0);
  rows.forEach(([name, share], i) => {
    const cell = document.createElement("li"), percent = 100 * share / total;
    cell.style.setProperty("--share", `${percent}%`); cell.className = `part part-${i % 5}${percent < 5 ? " thin" : ""}`; cell.dataset.piece = name; cell.dataset.share = percent;
    cell.textContent = cell.title = `${name} ${percent < 10 ? percent.toFixed(1) : Math.round(percent)}%`;
    box.append(cell);
  });
  $("pays-text").textContent = `The bound, ${shownBound(value)}, is proved by "${DATA.strategies[by.strategy] || by.strategy}". ${Math.round(100 * rows[0][1] / total)}% of it: ${rows[0][0]}.`;
}
// -- one trained network: where its heads look
function heat() {
  const {attention, positions, words: text} = DATA.runs.network, svg = $("heat"), cell = 7, high = 14, left = 64;
  const columns = attention[0].length, width = left + columns * cell + 18, height = attention.length * high + 36;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.append(node("title", {id: "heat-title"}, text), node("rect", {class: "paper", x: 0, y: 0, width, height}));
  attention.forEach((row, h) => {
    if (h % 5 === 0) svg.append(label(left - 4, h * high + 11, `head ${h}`, {class: "tick", "text-anchor": "end"}));
    row.forEach((share, t) => { if (share > 0.01) svg.append(node("rect", {class: "cell", x: left + t * cell, y: h * high, width: cell, height: high - 1, "fill-opacity": Math.sqrt(share).toFixed(2)})); });
  });
  positions.forEach((p, i) => svg.append(node("rect", {class: "true", x: left + p * cell - 1, y: -1, width: cell + 2, height: attention.length * high + 1}), label(left + (p + 0.5) * cell, attention.length * high + 15 + 14 * (i % 2), `x${p - 1}`, {class: "tick", "text-anchor": "middle"})));
  $("heat-text").textContent = text;
}
