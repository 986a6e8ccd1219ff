// -- drawing
function node(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function places(name, log) {
  const f = limits(name), count = 120, found = [];
  for (let i = 0; i <= count; i++) {
    const share = i / count, x = log ? f.least * (f.most / f.least) ** share : f.least + (f.most - f.least) * share;
    found.push(f.whole ? Math.round(x) : x);
  }
  return [...new Set(found)];
}
function tens(x) { const e = Math.round(Math.log10(x)); return Math.abs(x - 10 ** e) < 1e-9 * x && (e > 3 || e < -2) ? `10^${e}` : String(Number(x.toPrecision(3))); }
function ticks(low, high, log, most) {
  const found = [];
  if (log) {
    const a = Math.ceil(Math.log10(low) - 1e-9), b = Math.floor(Math.log10(high) + 1e-9), step = Math.max(1, Math.ceil((b - a + 1) / most));
    if (b - a >= 1) { for (let e = a; e <= b; e += step) found.push(10 ** e); return found; }
    for (let x = low; x <= high * 1.0001; x *= 2) found.push(Number(x.toPrecision(2)));
    return found;
  }
  const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw)), step = unit * ([1, 2, 5, 10].find(k => k * unit >= raw));
  for (let x = Math.ceil(low / step) * step; x <= high * 1.0001; x += step) found.push(Number(x.toPrecision(6)));
  return found;
}
function label(parent, x, y, text, extra) {  // powers of ten are set as such
  const made = node("text", {x, y, "font-size": 13, fill: "#333", ...extra});
  text.split(/(\^-?[\d.]+)/).forEach(part => {
    if (part.startsWith("^")) made.append(node("tspan", {"font-size": 10, dy: -5}, part.slice(1)));
    else if (part) made.append(node("tspan", made.childNodes.length ? {dy: 5} : {}, part));
  });
  parent.append(made);
  return made;
}
function curves() {
  const xs = places(state.axis, state.xlog), found = [];
  DATA.theorems.forEach((t, i) => {
    if (!state.shown.includes(t.name) || !applies(t.name)) return;
    found.push({name: t.name, text: t.title, colour: COLOURS[i], dash: DASHES[i], points: xs.map(x => [x, compute(t.name, {...state, [state.axis]: x}).value])});
  });
  return found;
}
function names(svg, lines, marks, box) {  // each beside its curve where nothing crosses it, as far right as there is room
  const taken = [];
  for (const line of lines) {
    const text = THEOREMS.get(line.name).source, w = 7.6 * text.length, h = 14;
    const across = [...lines, {points: [[box.here, 0], [box.here, box.bottom]]}];
    const free = (x, y) => x >= box.left && x + w <= box.right && y >= box.top && y + h <= box.bottom && !marks.some(([a, b]) => a > x - 6 && a < x + w + 6 && b > y - 6 && b < y + h + 6)
      && !taken.some(([a, b, v]) => x < a + v && a < x + w && y < b + h && b < y + h)
      && !across.some(l => l.points.some(([a, b], i) => { const [c, d] = l.points[i + 1] || [a, b]; return c > x - 3 && a < x + w + 3 && Math.max(b, d) > y && Math.min(b, d) < y + h; }));
    for (const [x, y] of line.points.slice().reverse()) {
      const place = [[x - w, y - h - 4], [x - w, y + 4], [x + 4, y - h - 4], [x + 4, y + 4]].find(([a, b]) => free(a, b));
      if (!place) continue;
      taken.push([...place, w]);
      label(svg, place[0], place[1] + 11, text, {fill: line.colour, "data-label": line.name});
      break;
    }
  }
}
function draw() {
  const began = performance.now(), svg = $("chart"), width = Math.max(320, svg.clientWidth || 640), height = Math.round(Math.min(430, Math.max(300, 0.62 * width)));
  const right = 12, left = 58, bottom = 46, top = 12, field = limits(state.axis), lines = curves(), best = state.shown.includes(BEST) ? bestPoints() : [];
  const measured = DATA.points.filter(p => p.axis === state.axis);
  const told = [...lines.flatMap(c => c.points.map(p => p[1])), ...best.map(p => p[1]), ...measured.map(p => p.y)].filter(y => y > 0 && Number.isFinite(y));
  const small = told.filter(y => y < 1);
  let low = state.ylog ? Math.max(1e-9, Math.min(0.5, ...small) / 1.3) : 0, high = state.ylog ? (1 / low) ** 0.13 : 1.12;
  if (state.uncapped) high = Math.max(high, Math.min(1e30, Math.max(2, ...told) * 1.3));
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.append(node("title", {id: "chart-title"}, `Gap bounds along ${state.axis}`));
  const sx = x => left + (width - left - right) * (state.xlog ? Math.log(x / field.least) / Math.log(field.most / field.least) : (x - field.least) / (field.most - field.least));
  const sy = y => { const v = Math.min(high, Math.max(low, y)); return height - bottom - (height - bottom - top) * (state.ylog ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low)); };
  svg.append(node("rect", {x: 0, y: 0, width, height, fill: "#fff"}));
  svg.append(node("rect", {x: left, y: sy(high), width: width - left - right, height: sy(1) - sy(high), fill: "#efefef"}));
  label(svg, left + 6, sy(1) - 6, "says nothing", {fill: "#555"});
  for (const x of ticks(field.least, field.most, state.xlog, width < 480 ? 5 : 9)) {
    svg.append(node("line", {x1: sx(x), x2: sx(x), y1: top, y2: height - bottom, stroke: "#e2e2e2"}));
    label(svg, sx(x), height - bottom + 18, tens(x), {"text-anchor": "middle"});
  }
  for (const y of ticks(low, high, state.ylog, 6)) {
    svg.append(node("line", {x1: left, x2: width - right, y1: sy(y), y2: sy(y), stroke: "#e2e2e2"}));
    label(svg, left - 6, sy(y) + 4, tens(y), {"text-anchor": "end"});
  }
  svg.append(node("path", {d: `M${left},${top}V${height - bottom}H${width - right}`, fill: "none", stroke: "#333"}));
  svg.append(node("line", {x1: left, x2: width - right, y1: sy(1), y2: sy(1), stroke: "#555"}));
  label(svg, (left + width - right) / 2, height - 8, `${state.axis}, ${limits(state.axis).words}`, {"text-anchor": "middle"});
  for (const line of lines) {
    for (const quiet of [false, true]) {
      let d = "", on = false;
      for (const [x, y] of line.points) {
        const inside = quiet ? y >= SILENT && y <= high : y < SILENT && y >= low;
        d += inside ? `${on ? "L" : "M"}${sx(x).toFixed(2)},${sy(y).toFixed(2)}` : "";
        on = inside;
      }
      if (d && (!quiet || state.uncapped)) svg.append(node("path", {d, fill: "none", stroke: line.colour, "stroke-width": quiet ? 1.2 : 2.2, "stroke-dasharray": quiet ? "2 4" : line.dash, "data-curve": line.name}));
    }
  }
  if (width >= 480) names(svg, lines.map(c => ({...c, points: c.points.filter(p => p[1] < SILENT && p[1] >= low).map(([x, y]) => [sx(x), sy(y)])})),
    [...best.map(p => [sx(p[0]), sy(p[1])]), ...measured.map(p => [sx(p.x), sy(p.y)])], {left: left + 4, right: width - right - 4, top: sy(1) + 4, bottom: height - bottom - 4, here: sx(state[state.axis])});
  if (best.length && DATA.served) svg.append(node("path", {d: "M" + best.filter(p => p[1] < SILENT).map(([x, y]) => `${sx(x)},${sy(y)}`).join("L"), fill: "none", stroke: "#000", "stroke-width": 1}));
  for (const [x, y] of best) if (y < SILENT || state.uncapped) svg.append(node("circle", {cx: sx(x), cy: sy(y), r: 4, fill: y < SILENT ? "#000" : "#fff", stroke: "#000", "data-best": x}));
  for (const p of measured) {
    if (!(p.x >= field.least && p.x <= field.most)) continue;
    if (p.low != null && p.high != null) svg.append(node("line", {x1: sx(p.x), x2: sx(p.x), y1: sy(Math.max(p.low, low)), y2: sy(p.high), stroke: "#333"}));
    svg.append(node("path", {d: `M${sx(p.x) - 4},${sy(p.y)}h8M${sx(p.x)},${sy(p.y) - 4}v8`, stroke: "#333", "stroke-width": 1.8, "data-measured": p.x}));
  }
  svg.append(node("line", {x1: sx(state[state.axis]), x2: sx(state[state.axis]), y1: top, y2: height - bottom, stroke: "#0a6ebd", "stroke-dasharray": "3 3", "data-here": state[state.axis]}));
  const silent = lines.filter(c => !c.points.some(p => p[1] < SILENT)).map(c => c.text);
  $("chart-text").textContent = `Lines: closed forms, computed by your browser in floating point. Black dots: the least of all proofs, each value checked${DATA.served ? " by the engine as you move" : " when this page was made"}.`
    + (measured.length ? " Crosses: measured." : "") + (silent.length ? ` Above 1 everywhere here: ${silent.join("; ")}.` : "")
    + (applies("edelman2022") ? "" : " The closed forms are about the network of Edelman et al. alone, so none is drawn.");
  svg.dataset.ms = (performance.now() - began).toFixed(2);
}
function bestPoints() {
  if (!DATA.served) return dots();
  const found = [];
  for (const x of servedPlaces()) { const r = served.get(key({...state, [state.axis]: x})); if (r && "log10" in r) found.push([x, 10 ** r.log10]); }
  return found;
}
function servedPlaces() { const all = places(state.axis, state.xlog), n = Math.min(17, all.length); return [...new Set(Array.from({length: n}, (_, i) => all[Math.round(i * (all.length - 1) / Math.max(1, n - 1))]))]; }
function values() {
  const body = $("values"), said = [];
  body.replaceChildren();
  const add = (id, text, value, shown, how) => {
    const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td"), known = document.createElement("td"), out = document.createElement("output");
    head.scope = "row"; head.textContent = text; cell.className = "number"; out.id = `v-${id}`; out.textContent = shown; known.textContent = how;
    if (value !== null) out.dataset.value = value;
    cell.append(out); line.append(head, cell, known); body.append(line);
  };
  const found = here();
  let text = "no checked value here", how = DATA.served ? "being checked" : "go to the nearest checked setting", value = null;
  if (found && "log10" in found) { value = 10 ** found.log10; text = value < SILENT ? up(value) : `1 (${up(value)})`; how = `checked (${found.strategy})`; said.push(["The least of all proofs", value]); }
  else if (found && found.trivial) { text = "trivial: says nothing"; how = "checked: no cover is worth its price"; }
  else if (found && found.refused) { text = "refused"; how = found.refused; }
  add(BEST, "least of all proofs", value, text, how);
  for (const t of DATA.theorems) {
    if (!applies(t.name)) continue;
    const y = compute(t.name, state).value;
    const also = t.inputs.filter(n => EXTRAS.includes(n));
    if (state.shown.includes(t.name) && !also.length) said.push([t.title, y]);
    add(t.name, `${t.title} (${t.source})`, y, y < SILENT ? up(y) : `1 (${up(y)})`, `closed form, floating point${also.length ? `, if also ${also.map(n => `${n} is at most ${number(state[n])}`).join(", ")}` : ""}`.replace("p is at most", "p is"));
  }
  const telling = said.filter(p => p[1] < SILENT).sort((a, b) => a[1] - b[1]);
  $("says").textContent = (telling.length ? `Smallest shown: ${telling[0][0]}, gap at most ${up(telling[0][1])}. ${telling.length} of ${said.length} values say something.` : "Nothing shown says anything here: every bound is 1 or more.") + enough();
}
function enough() {  // how many samples a gap of 0.1 takes, of the values of m that were checked
  const places = DATA.served ? (state.axis === "m" ? servedPlaces() : []) : table()?.axes.m || [], told = places.map(m => [m, DATA.served ? served.get(key({...state, m})) : row({...state, m})]).filter(p => p[1]);
  const first = told.find(p => p[1].log10 <= -1);
  if (!told.length) return "";
  return first ? ` A gap of at most 0.1 is checked at m = ${up(first[0])}, the least that does of ${told.length} values tried.` : ` No m of the ${told.length} tried has a checked gap of at most 0.1.`;
}
function why() {
  const svg = $("why"), exact = here(), at = exact || !table() ? state : nearest(state), found = exact || row(at);
  svg.replaceChildren();
  if (!found || !("log10N" in found)) { $("why-text").textContent = found && found.refused ? found.refused : DATA.served && !found ? "Being checked." : "Nothing is counted here."; svg.setAttribute("viewBox", "0 0 10 1"); return; }
  const where = exact ? "" : ` These are of the nearest checked setting: ${LETTERS.map(n => `${n} = ${number(at[n])}`).join(", ")}.`;
  let rows = pieces(found).sort((a, b) => b[1] - a[1]);
  if (rows.length > 9) rows = [...rows.slice(0, 8), [`${rows.length - 8} more`, rows.slice(8).reduce((a, p) => a + p[1], 0)]];
  const whole = found.trivial && !rows.length;
  const bars = whole ? [["the cover that a statement needs", found.log10N, ""]] : rows.map(([name, share]) => [name, found.log10N + Math.log10(share), `${Math.round(1000 * share) / 10}%`]);
  const m = Math.log10(at.m), width = Math.max(320, svg.clientWidth || 640), step = 22, height = bars.length * step + 44, left = whole ? 10 : 110;
  const most = Math.max(m, found.log10N) * 1.08, sx = v => left + (width - left - 70) * Math.max(0, v) / most;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.append(node("rect", {x: 0, y: 0, width, height, fill: "#fff"}));
  bars.forEach(([name, log, note], i) => {
    const y = 6 + i * step;
    svg.append(node("rect", {x: left, y, width: Math.max(1, sx(log) - left), height: step - 6, fill: log > m ? "#D9822B" : "#7FB7BE", "data-piece": name}));
    if (!whole) label(svg, left - 6, y + 12, name, {"text-anchor": "end"});
    const past = sx(log) + 5 < sx(m) + 4 && sx(log) + 47 > sx(m) - 2;  // the line at m would cross it
    label(svg, whole ? left + 6 : past ? sx(m) + 6 : sx(log) + 5, y + 12, whole ? name : note, {});
  });
  const base = 6 + bars.length * step;
  svg.append(node("line", {x1: sx(m), x2: sx(m), y1: 0, y2: base + 4, stroke: "#000", "stroke-width": 2}));
  label(svg, sx(m), base + 18, "m", {"text-anchor": "middle"});
  for (const e of ticks(0, most, false, 6)) label(svg, sx(e), base + 34, `10^${e}`, {"text-anchor": "middle", fill: "#555"});
  $("why-text").textContent = (found.trivial
    ? `Vacuous: the cheapest cover that would say something has log N = ${number(10 ** found.log10N)}, against m = ${number(at.m)}.` + (found.need ? ` m = ${up(found.need)} would do.` : " No m would do.") + (whole ? "" : ` In the first proof that says something ${rows[0][0]} costs most, ${Math.round(100 * rows[0][1])}%.`)
    : `The level of the proof that costs most counts ${number(10 ** found.log10N)} nats in all (log N of covers, or what noise tells), against m = ${number(at.m)}: ${rows[0][0]} costs most, ${Math.round(100 * rows[0][1])}%.`) + where;
}
function reach() {  // formulas wider than their place scroll by keys, too; the others are no stop on the way
  const all = [...document.querySelectorAll(".math")], wide = all.map(e => e.scrollWidth > e.clientWidth);
  all.forEach((e, i) => wide[i] ? e.tabIndex = 0 : e.removeAttribute("tabindex"));
}
function formula() {
  const t = THEOREMS.get(state.about), list = $("parts");
  if ($("formula").dataset.name !== t.name) {
    $("formula").innerHTML = t.claim + t.formula;
    $("formula").dataset.name = t.name;
    $("steps-text").innerHTML = "";
    if ($("steps").open) $("steps-text").innerHTML = t.steps;
    reach();
  }
  list.replaceChildren();
  const found = compute(t.name, state);
  for (const [name, value] of [...Object.entries(found.parts), ["gap", found.value]]) {
    const term = document.createElement("dt"), text = document.createElement("dd"), [head, ...rest] = name.split("_");
    const letter = document.createElement("i"), sub = document.createElement("sub");
    letter.textContent = head === "Lambda" ? "Λ" : head; sub.textContent = rest.join("_");
    term.append(letter, sub, name === "gap" ? " ≤" : " ="); text.textContent = name === "gap" ? up(value) : number(value); text.dataset.part = name; text.dataset.value = value;
    list.append(term, text);
  }
}
