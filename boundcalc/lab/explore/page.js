// Controls, the sentence and the formula.
const STEP = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 3, PageDown: -3};
function stopIndex(name) { return limits(name).stops.indexOf(nearestStop(name, state[name])); }
function moveBy(name, count) { const f = limits(name), i = Math.min(f.stops.length - 1, Math.max(0, stopIndex(name) + count)); set({[name]: f.stops[i]}); }
// -- the sentence: numbers that are sliders
function knob(element) {
  const name = element.dataset.knob, f = limits(name);
  element.role = "slider"; element.tabIndex = 0; element.setAttribute("aria-label", f.words); element.setAttribute("aria-valuemin", 0); element.setAttribute("aria-valuemax", f.stops.length - 1);
  let from = null;
  element.addEventListener("keydown", event => { if (event.key in STEP) { event.preventDefault(); moveBy(name, STEP[event.key]); } });
  element.addEventListener("pointerdown", event => { from = {x: event.clientX, index: stopIndex(name)}; element.setPointerCapture(event.pointerId); event.preventDefault(); element.focus(); });
  element.addEventListener("pointermove", event => { if (from) { const i = Math.min(f.stops.length - 1, Math.max(0, from.index + Math.round((event.clientX - from.x) / 18))); if (f.stops[i] !== state[name]) set({[name]: f.stops[i]}); } });
  for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => { from = null; });
}
function sentence() {
  const {value} = bound(state), floor = floorAt(state).value, suffices = enough(state, 0.1);
  for (const e of document.querySelectorAll("[data-knob]")) { e.textContent = words(state[e.dataset.knob]); e.setAttribute("aria-valuenow", stopIndex(e.dataset.knob)); e.setAttribute("aria-valuetext", words(state[e.dataset.knob])); }
  $("promise").textContent = value < VACUOUS ? `test error at most ${points(value, true)} above its training loss` : value < Infinity ? "no proved limit of its test error (the bound is vacuous)" : "no bound of its test error that was checked here";
  $("promise").dataset.value = value;
  $("least").textContent = floor > 0 ? `No bound of this kind can promise less than ${points(floor, false)}.` : "";
  $("least").dataset.value = floor;
  $("suffices").textContent = value === Infinity ? "" : suffices === null ? "No number of sequences up to a trillion is proved to be enough for 10 points." : `For 10 points ${words(rounded(suffices, 3, true))} sequences suffice.`;
  $("suffices").dataset.value = suffices ?? "";
}
// -- sliders
function control(name, parent) {
  const f = limits(name), box = document.createElement("div"), text = document.createElement("label"), range = document.createElement("input"), exact = document.createElement("input"), wrong = document.createElement("p");
  box.className = "field"; text.htmlFor = `n-${name}`; text.textContent = `${name === "gamma" ? "γ" : name}: ${f.words}`;
  range.type = "range"; range.id = `r-${name}`; range.min = 0; range.max = f.stops.length - 1; range.step = 1; range.setAttribute("aria-label", `${name}: ${f.words}`);
  exact.type = "text"; exact.inputMode = "decimal"; exact.id = `n-${name}`; exact.autocomplete = "off"; exact.setAttribute("aria-describedby", `w-${name}`);
  wrong.id = `w-${name}`; wrong.className = "wrong"; wrong.setAttribute("role", "alert");
  range.addEventListener("input", () => set({[name]: f.stops[Number(range.value)]}));
  const read = () => {
    const value = exact.value.trim() === "" ? NaN : Number(exact.value.trim().replace(/[,_\s]/g, "")), why = problem(name, value);
    wrong.textContent = why; exact.setAttribute("aria-invalid", why !== "");
    if (!why) set({[name]: value}, exact);
  };
  exact.addEventListener("input", read);
  exact.addEventListener("change", () => { if (!wrong.textContent) exact.value = state[name]; });
  box.append(text, range, exact, wrong); parent.append(box);
}
function option(parent, value, text) { const made = document.createElement("option"); made.value = value; made.textContent = text; parent.append(made); }
function build() {
  LETTERS.forEach(n => { control(n, $("setting")); option($("axis"), n, `${n}: ${limits(n).words}`); });
  document.querySelectorAll("[data-knob]").forEach(knob);
  for (const preset of DATA.presets) {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = preset.name; button.dataset.preset = preset.name;
    button.addEventListener("click", () => { state = {...start(), ...preset.set}; show(); $("preset-text").textContent = preset.text; });
    $("presets").append(button);
  }
  DATA.theorems.forEach((t, i) => {
    option($("about"), t.name, `${t.title} (${t.source})`);
    const choice = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("span");
    box.type = "checkbox"; box.id = `s-${t.name}`; swatch.className = `swatch closed-${i}`; swatch.setAttribute("aria-hidden", "true");
    box.addEventListener("change", () => set({shown: [...THEOREMS.keys()].filter(n => $(`s-${n}`).checked)}));
    choice.append(box, " ", swatch, `${t.title} (${t.source})`); $("shown").append(choice);
  });
  $("axis").addEventListener("change", () => set({axis: $("axis").value}));
  $("about").addEventListener("change", () => set({about: $("about").value}));
  $("reset").addEventListener("click", () => { state = start(); show(); $("preset-text").textContent = ""; });
  $("controls").addEventListener("submit", event => event.preventDefault());
  addEventListener("resize", () => { draw(); reach(); });
  listen(); heat();
}
let pending = 0;
function set(changes, typed) { state = {...state, ...changes}; show(typed); }
function show(typed) {
  for (const name of LETTERS) {
    const range = $(`r-${name}`), exact = $(`n-${name}`);
    range.value = stopIndex(name); range.setAttribute("aria-valuetext", words(state[name]));
    if (exact !== typed) { exact.value = state[name]; $(`w-${name}`).textContent = ""; exact.removeAttribute("aria-invalid"); }
  }
  $("axis").value = state.axis; $("about").value = state.about;
  for (const n of THEOREMS.keys()) $(`s-${n}`).checked = state.shown.includes(n);
  refresh(); formula();
  clearTimeout(pending);
  if (DATA.served) pending = setTimeout(askAll, 120);
}
function refresh() { sentence(); draw(); table(); pays(); }
// -- the values here, and the formula
function table() {
  const body = $("values"), {value, by} = bound(state), floor = floorAt(state).value;
  body.replaceChildren();
  const add = (id, text, number, shown, how) => {
    const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td"), known = document.createElement("td"), out = document.createElement("output");
    head.scope = "row"; head.textContent = text; cell.className = "number"; out.id = `v-${id}`; out.textContent = shown; known.textContent = how;
    if (number !== null) out.dataset.value = number;
    cell.append(out); line.append(head, cell, known); body.append(line);
  };
  const exact = by !== null && LETTERS.every(n => by.at[n] === state[n]);
  add("best", "best bound", value < Infinity ? value : null, shownBound(value), by === null ? (DATA.served ? "being checked" : "no checked point is worse than this setting") : exact ? "checked at this setting" : "follows from a proof at another setting");
  add("floor", "proved floor", floor || null, floor > 0 ? String(rounded(floor, 4, false)) : "none", floor > 0 ? "no bound of this kind is smaller" : "");
  for (const t of DATA.theorems) { const y = compute(t.name, state); add(t.name, `${t.title} (${t.source})`, y, shownBound(y), `formula, floating point${t.inputs.includes("K") ? `, if also entrywise l1 norms are at most ${DATA.fixed.K}` : ""}`); }
}
function reach() {  // formulas wider than their place scroll by keys, too
  for (const e of document.querySelectorAll(".math")) e.scrollWidth > e.clientWidth ? e.tabIndex = 0 : e.removeAttribute("tabindex");
}
function formula() {
  const t = THEOREMS.get(state.about);
  if ($("formula").dataset.name !== t.name) { $("formula").innerHTML = t.claim + t.formula; $("formula").dataset.name = t.name; }
  reach();
}
// -- the engine behind the page, where it is served: each answer is one more checked point
const asked = new Set();
let ticket = 0;
async function ask(at, mine) {
  const key = LETTERS.map(n => at[n]).join();
  if (mine !== ticket || asked.has(key)) return;
  const reply = await fetch(`value?${new URLSearchParams(LETTERS.map(n => [n, at[n]]))}`), found = await reply.json();
  if (!reply.ok) return;
  asked.add(key);
  found.rows.forEach(row => addPoint(row, found.names));
}
async function askAll() {
  const mine = ++ticket, at = {...state}, along = limits(at.axis).stops;
  document.body.dataset.busy = "";
  try {
    await ask(at, mine);
    if (mine === ticket) refresh();
    for (const x of along) { await ask({...at, [at.axis]: x}, mine); if (mine !== ticket) return; draw(); }
    if (mine === ticket) refresh();
  } catch { $("preset-text").textContent = "The server no longer answers: start boundcalc explore again."; }
  finally { if (mine === ticket) delete document.body.dataset.busy; }
}
build();
show();
document.documentElement.dataset.ready = performance.now().toFixed(1);
