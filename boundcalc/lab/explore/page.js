// -- what can be taken along
function command() {
  const s = state;
  return `boundcalc eval ${DATA.base}--style ${s.style} --depth ${s.depth} --T ${s.T} --m ${s.m} --C ${s.C} --d ${s.d} --heads ${s.heads} --gamma ${s.gamma} --delta ${s.delta}`;
}
function copies(kind) {
  const t = THEOREMS.get(state.about);
  if (kind === "latex") return t.latex;
  if (kind === "python") return `${t.python}\nprint(gap(${t.inputs.map(n => `${n}=${state[n]}`).join(", ")}))`;
  if (kind === "command") return command();
  if (kind === "link") return location.href;
  const copy = $("chart").cloneNode(true);
  copy.setAttribute("xmlns", SVG); copy.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copy);
}
async function copy(kind) {
  const text = copies(kind);
  $("copied").value = text; $("copied").select();
  try { await navigator.clipboard.writeText(text); } catch { document.execCommand("copy"); }
}
function png() {
  const image = new Image(), box = $("chart").viewBox.baseVal;
  image.onload = () => {
    const canvas = document.createElement("canvas"); canvas.width = 3 * box.width; canvas.height = 3 * box.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => { const a = document.createElement("a"); a.href = URL.createObjectURL(blob); a.download = "boundcalc.png"; a.click(); $("png").dataset.bytes = blob.size; });
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(copies("svg").replace("<svg ", `<svg width="${box.width}" height="${box.height}" `));
}
// -- the engine behind the page, where it is served
async function ask(at, ticket) {
  if (ticket !== asked || served.has(key(at))) return;
  const words = new URLSearchParams(LETTERS.map(n => [n, at[n]])); words.set("style", at.style);
  const reply = await fetch(`value?${words}`), found = await reply.json();
  served.set(key(at), reply.ok ? found : {refused: found.error});
  if (served.size > 3000) served.clear();
}
async function askAll() {
  const ticket = ++asked, at = {...state};
  try {
    await ask(at, ticket);
    if (ticket === asked) { values(); why(); draw(); }
    for (const x of servedPlaces()) { await ask({...at, [at.axis]: x}, ticket); if (ticket !== asked) return; draw(); }
  } catch { $("says").textContent = "The server no longer answers: start boundcalc explore --serve again."; }
}
// -- controls
const STEPS = 1000;
function position(name, value) { const f = limits(name); return Math.round(STEPS * (f.log ? Math.log(value / f.least) / Math.log(f.most / f.least) : (value - f.least) / (f.most - f.least))); }
function at(name, place) {
  const f = limits(name), share = place / STEPS, raw = f.log ? f.least * (f.most / f.least) ** share : f.least + (f.most - f.least) * share;
  return clamp(name, f.whole ? raw : Number(raw.toPrecision(3)));
}
function control(name, parent) {
  const f = limits(name), box = document.createElement("div"), text = document.createElement("label"), range = document.createElement("input"), exact = document.createElement("input");
  box.className = "field"; text.htmlFor = `n-${name}`; text.textContent = `${f.symbol || name}: ${f.words}`;
  range.type = "range"; range.id = `r-${name}`; range.min = f.log ? 0 : f.whole ? f.least : 0; range.max = f.log ? STEPS : f.whole ? f.most : STEPS; range.step = 1; range.setAttribute("aria-label", `${name}: ${f.words}`);
  exact.type = "number"; exact.id = `n-${name}`; exact.min = f.least; exact.max = f.most; exact.step = f.whole ? 1 : "any";
  const steps = f.log || !f.whole;
  range.addEventListener("input", () => { set({[name]: steps ? at(name, Number(range.value)) : clamp(name, Number(range.value))}); });
  exact.addEventListener("input", () => { if (exact.value !== "" && exact.checkValidity()) set({[name]: clamp(name, Number(exact.value))}, exact); });
  exact.addEventListener("change", () => { exact.value = state[name]; });
  box.append(text, range, exact); parent.append(box);
}
function option(parent, value, text) { const made = document.createElement("option"); made.value = value; made.textContent = text; parent.append(made); }
function build() {
  const setting = $("setting"), box = document.createElement("div"), text = document.createElement("label"), select = document.createElement("select");
  box.className = "field"; text.htmlFor = "style"; text.textContent = "style: where the normalisation sits"; select.id = "style";
  DATA.styles.forEach(s => option(select, s, s)); box.append(text, select); setting.append(box);
  select.addEventListener("change", () => set({style: select.value}));
  LETTERS.forEach(n => control(n, setting)); EXTRAS.forEach(n => control(n, $("extras")));
  LETTERS.forEach(n => option($("axis"), n, `${n}, ${limits(n).words}`)); DATA.theorems.forEach(t => option($("about"), t.name, `${t.title} (${t.source})`));
  [[BEST, "least of all proofs (checked)"], ...DATA.theorems.map(t => [t.name, `${t.title} (${t.source})`])].forEach(([name, words], i) => {
    const choice = document.createElement("label"), tick = document.createElement("input"), swatch = document.createElement("span");
    tick.type = "checkbox"; tick.id = `s-${name}`; swatch.className = "swatch"; swatch.style.background = i ? COLOURS[i - 1] : "#000"; swatch.setAttribute("aria-hidden", "true");
    tick.addEventListener("change", () => set({shown: [BEST, ...THEOREMS.keys()].filter(n => $(`s-${n}`).checked)}));
    choice.append(tick, " ", swatch, words); $("shown").append(choice);
  });
  $("axis").addEventListener("change", () => set({axis: $("axis").value}));
  $("about").addEventListener("change", () => set({about: $("about").value}));
  for (const n of ["xlog", "ylog", "uncapped"]) $(n).addEventListener("change", () => set({[n]: $(n).checked}));
  $("reset").addEventListener("click", () => set(start()));
  $("nearest").addEventListener("click", () => set(nearest(state)));
  $("nearest").hidden = DATA.served;
  $("steps").addEventListener("toggle", () => { if ($("steps").open && !$("steps-text").innerHTML) $("steps-text").innerHTML = THEOREMS.get(state.about).steps; reach(); });
  $("copies").addEventListener("click", event => { if (event.target.dataset.copy) copy(event.target.dataset.copy); });
  $("png").addEventListener("click", png);
  $("controls").addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => { if (address() !== location.hash.slice(1)) { state = fromAddress(); show(); } });
  addEventListener("resize", () => { draw(); why(); reach(); });
}
let pending = 0;
function set(changes, typed) { state = {...state, ...changes}; show(typed); }
function show(typed) {
  for (const name of [...LETTERS, ...EXTRAS]) {
    const range = $(`r-${name}`), exact = $(`n-${name}`), f = limits(name);
    range.value = f.log || !f.whole ? position(name, state[name]) : state[name]; range.setAttribute("aria-valuetext", number(state[name]));
    if (exact !== typed) exact.value = state[name];
  }
  $("style").value = state.style; $("axis").value = state.axis; $("about").value = state.about;
  for (const n of ["xlog", "ylog", "uncapped"]) $(n).checked = state[n];
  for (const n of [BEST, ...THEOREMS.keys()]) $(`s-${n}`).checked = state.shown.includes(n);
  draw(); values(); why(); formula();
  clearTimeout(pending);
  pending = setTimeout(() => { const words = address(); if (words !== location.hash.slice(1)) history.replaceState(null, "", words ? `#${words}` : location.pathname + location.search); if (DATA.served) askAll(); }, 120);
}
build();
state = fromAddress();
show();
document.documentElement.dataset.ready = performance.now().toFixed(1);
