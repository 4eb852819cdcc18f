const STEP = 0.01, BIG = 0.05, PAUSE = 150, EVERY = 120, ANSWER = 1500, PATIENCE = 10000;
const TOPS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1], MARKS = ["before", "expected", "measured"], SPACE = "\u00a0";
const BASE = 14;  // pixels of the page's usual type, for which the sizes here are made
const MOST = 1000;  // percent: a larger error says only that noise is all there is
const FEW = 20;  // a share of fewer things says little, and is grey
const strips = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".strip");
  if (!strips.has(root)) strips.set(root, create(root));
  const strip = strips.get(root);
  strip.send = (message) => setTriggerValue("sent", message);
  receive(strip, data);
}

function create(root) {
  const [grid, note, live] = [".grid", ".note", ".live"].map((name) => root.querySelector(name));
  const strip = { root, grid, note, live, serial: 0, pending: {}, drag: null, timer: 0, pump: 0, frame: "", shares: [], tried: null, over: null, zoom: 1 };
  const knob = (event) => strip.knobs?.indexOf(event.target.closest?.(".knob")) ?? -1;
  grid.addEventListener("pointerdown", (event) => press(strip, event, knob(event)));
  grid.addEventListener("pointermove", (event) => (strip.drag ? pull(strip, event) : hover(strip, event)));
  grid.addEventListener("pointerup", (event) => release(strip, event));
  grid.addEventListener("pointercancel", () => cancel(strip));
  grid.addEventListener("lostpointercapture", () => cancel(strip));
  grid.addEventListener("pointerleave", () => hover(strip, null));
  grid.addEventListener("click", (event) => click(strip, event));
  grid.addEventListener("keydown", (event) => key(strip, event, knob(event)));
  grid.parentElement.addEventListener("scroll", () => hint(strip));
  new ResizeObserver(() => fit(strip)).observe(root.parentElement);
  grid.addEventListener("focusin", () => tell(strip));
  grid.addEventListener("focusout", (event) => { event.target.classList.remove("held"); tell(strip); });
  return strip;
}

// ---- messages -------------------------------------------------------------------------------------------------------------

// Every message holds all changes that Python has not confirmed, since Streamlit keeps only the newest of those that wait.
function post(strip, kind, value) {
  strip.serial += 1;
  strip.pending[kind] = { value, serial: strip.serial, since: performance.now() };
  const changes = Object.entries(strip.pending).map(([name, change]) => [name, { value: change.value, serial: change.serial }]);
  if (strip.root.isConnected) strip.send(Object.fromEntries(changes));
}

// What Python says is shown, except for what was changed here since: an older answer does not take a newer change back.
function receive(strip, data) {
  const frame = JSON.stringify([
    data.levels.map((level) => [level.name, level.finer, level.closed]), data.parts.map((part) => [part.label, part.level, part.structure]), withWrong(data), data.editable, data.unit, data.whole,
  ]);
  if (frame !== strip.frame) stop(strip);
  confirm(strip, data);
  strip.data = data;
  const { moved, level, unit } = strip.pending;
  if (!strip.drag && !strip.timer && !moved) Object.assign(strip, { shares: data.parts.map((part) => part.share), tried: null });
  else if (data.answer && data.answer.serial >= strip.first) strip.tried = data.answer.expected ?? strip.tried;
  if (!level && !strip.choice) strip.shown = data.shown;
  if (!unit) strip.relative = data.relative;
  const fresh = frame !== strip.frame;
  if (fresh) build(strip, frame);
  draw(strip);
  if (fresh || strip.revealed !== strip.shown) reveal(strip);
  strip.revealed = strip.shown;
  if (strip.drag) offer(strip);
}

function confirm(strip, data) {
  const seen = { ...data.serials, drag: data.answer?.serial ?? 0 }, now = performance.now();
  strip.serial = Math.max(strip.serial, ...Object.values(seen));
  for (const [kind, change] of Object.entries(strip.pending)) {
    if (seen[kind] >= change.serial || now - change.since > PATIENCE) delete strip.pending[kind];
  }
}

function stop(strip) {
  for (const name of ["timer", "pump", "choice"]) clearTimeout(strip[name]);
  Object.assign(strip, { drag: null, timer: 0, pump: 0, choice: 0, pending: {}, tried: null });
}

// Shares on their way, at most one message at a time and one each EVERY milliseconds; the newest takes the place of one that waits.
function offer(strip) {
  const waiting = strip.pending.drag, since = strip.asked ?? -Infinity, now = performance.now();
  if (!strip.data.live || !strip.drag || strip.offered === strip.shares) return;
  const wait = since + (waiting ? ANSWER : EVERY) - now;
  clearTimeout(strip.pump);
  if (wait > 0) {
    strip.pump = setTimeout(() => offer(strip), wait);
    return;
  }
  Object.assign(strip, { asked: now, offered: strip.shares });
  post(strip, "drag", strip.shares);
}

function flush(strip) {
  clearTimeout(strip.timer);
  clearTimeout(strip.pump);
  strip.timer = 0;
  delete strip.pending.drag;
  post(strip, "moved", strip.shares);
}

// ---- elements -------------------------------------------------------------------------------------------------------------

function add(parent, tag, name, attributes = {}, style = {}) {
  const element = parent.appendChild(document.createElement(tag));
  if (name) element.className = name;
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  Object.assign(element.style, style);
  return element;
}

// Whether the maps can show a level.
const opens = (level) => !level.finer && !level.closed;
const withWrong = (data) => data.levels.some((level) => level.measured !== null);

// Where there is no room for all columns, the level that is shown is in view, right of the names of the rows.
function reveal(strip) {
  const scroll = strip.grid.parentElement, view = scroll.getBoundingClientRect(), box = strip.buttons[strip.shown].getBoundingClientRect();
  const right = box.right + box.width / 2;  // half of the next column shows that there is one
  if (right > view.right) scroll.scrollLeft += (right - view.right) / strip.zoom;
  hint(strip);
}

// The type follows that of the page, which is larger for a projector.
function fit(strip) {
  strip.zoom = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / BASE || 1;
  strip.root.style.zoom = strip.zoom;
  hint(strip);
}

// Columns that are out of view on the right are announced by a fade.
function hint(strip) {
  const scroll = strip.grid.parentElement;
  scroll.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
}

// Columns: the names of the rows, the parts that belong to no level, the levels.
function build(strip, frame) {
  const { data, grid, root } = strip, active = root.getRootNode().activeElement, old = [...(strip.knobs ?? []), ...(strip.buttons ?? [])];
  const focused = old.indexOf(active), split = data.parts.length > 1, wrong = withWrong(data), n = data.levels.length;
  const own = split ? data.parts.map((_, k) => k).filter((k) => data.parts[k].level === null) : [];
  Object.assign(strip, { frame, over: null });
  grid.textContent = "";
  const named = data.levels.some((level) => level.name.includes(" "));  // names of several words have two lines
  grid.classList.toggle("named", named);
  const first = 2 + own.length, heights = [named ? "38px" : own.length ? "30px" : "27px", split ? "60px" : "minmax(25px, auto)", "74px", ...(wrong ? ["33px", "33px"] : [])];
  grid.style.gridTemplateRows = heights.join(" ");
  grid.style.gridTemplateColumns = `var(--names) ${own.length ? `repeat(${own.length}, minmax(54px, 96px)) ` : ""}repeat(${n}, minmax(${named ? 62 : 46}px, 96px))`;
  strip.column = add(grid, "div", "column");
  if (own.length) add(grid, "div", "parting", {}, { gridColumn: first });
  for (const row of heights.keys()) if (row) add(grid, "div", "line", {}, { gridRow: row + 1 });
  add(grid, "div", "line end", {}, { gridRow: heights.length });
  strip.place = (i) => first + i;
  addLevels(strip);
  if (own.length) addHeadings(strip, own);
  addBudget(strip, own, split);
  addErrors(strip, 3);
  strip.wrongs = wrong ? [addWrong(strip, 4, 0), addWrong(strip, 5, 1)] : [];
  const fresh = [...strip.knobs, ...strip.buttons];
  if (focused >= 0 && fresh.length === old.length) fresh[focused].focus({ preventScroll: true });
}

function label(strip, row, text, name = "") {
  const element = add(strip.grid, "div", `label ${name}`, {}, { gridRow: row });
  element.textContent = text;
  return element;
}

function addLevels(strip) {
  label(strip, 1, "Level", "first");
  const group = add(strip.grid, "div", "row", { role: "radiogroup", "aria-label": "Level shown on the map" });
  strip.buttons = strip.data.levels.map((level, i) => {
    const cell = add(group, "div", "cell", { "data-level": i }, { gridRow: 1, gridColumn: strip.place(i) });
    const button = add(cell, "button", "b level", { type: "button", role: "radio", "aria-label": `Level ${level.name}`, "aria-disabled": !opens(level) });
    add(button, "span", "").textContent = level.name;
    return button;
  });
}

function addHeadings(strip, own) {
  own.forEach((k, j) => {
    const part = strip.data.parts[k], cell = add(strip.grid, "div", "cell heading", { title: part.label }, { gridRow: 1, gridColumn: 2 + j });
    const starts = part.structure && !(j && strip.data.parts[own[j - 1]].structure);
    if (starts) add(cell, "b", "").textContent = "Structure";
    cell.append(part.label);
  });
}

function addBudget(strip, own, split) {
  const { data, grid } = strip;
  label(strip, 2, "Budget");
  strip.knobs = [];
  strip.cells = [];
  if (!split) {
    add(grid, "div", "whole", {}, { gridColumn: "2 / -1" }).textContent = data.whole;
    return;
  }
  const group = add(grid, "div", "row", { role: "group", "aria-label": "Split of the privacy budget" });
  data.parts.forEach((part, k) => {
    const column = part.level === null ? 2 + own.indexOf(k) : strip.place(part.level), at = { gridRow: 2, gridColumn: column };
    const cell = add(group, "div", "cell", part.level === null ? {} : { "data-level": part.level }, at);
    const knob = add(cell, "div", "knob", { role: "slider", "aria-orientation": "vertical", "aria-label": title(strip, k), "aria-valuemin": 0 });
    const track = add(knob, "div", "track");
    for (const name of ["bar", "share", "grip"]) add(track, "div", name);
    cell.classList.toggle("structure", part.structure);
    strip.cells.push(cell);
    strip.knobs.push(knob);
  });
}

function addErrors(strip, row) {
  const { data, grid } = strip, head = label(strip, row, "Error", "error");
  const group = add(head, "div", "switch", { role: "group", "aria-label": "Unit of the errors" });
  strip.units = ["%", data.unit].map((text, i) => {
    const button = add(group, "button", "b unit", { type: "button", "data-unit": i });
    button.textContent = text;
    button.title = i ? `Errors in ${text}` : `Errors in percent of the average count of a ${strip.data.words.part}`;
    button.setAttribute("aria-label", button.title);
    return button;
  });
  strip.ticks = add(head, "div", "ticks", { "aria-hidden": "true" });
  strip.back = add(grid, "div", "back", {}, { gridRow: row, gridColumn: "2 / -1" });
  strip.svg = grid.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  Object.assign(strip.svg.style, { gridRow: row, gridColumn: `${strip.place(0)} / -1` });
  const shape = { viewBox: `0 0 ${data.levels.length} 100`, preserveAspectRatio: "none", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(shape)) strip.svg.setAttribute(name, value);
  strip.curves = MARKS.map((name) => {
    const curve = strip.svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
    curve.setAttribute("class", name);
    return curve;
  });
  strip.plots = data.levels.map((_, i) => {
    const cell = add(grid, "div", "cell", { role: "img", "data-level": i }, { gridRow: row, gridColumn: strip.place(i) });
    const number = add(cell, "div", "number"), plot = add(cell, "div", "plot"), link = add(plot, "div", "link");
    return { cell, number, link, marks: MARKS.map((name) => add(plot, "div", `mark ${name}`)) };
  });
}

// A row of shares: `k` is 0 for the wrong ones, 1 for the missed ones.
function addWrong(strip, row, k) {
  const words = strip.data.words.rows[k];
  label(strip, row, words.title, "false").title = words.help;
  return strip.data.levels.map((_, i) => {
    const cell = add(strip.grid, "div", `cell wrong ${k ? "missed" : ""}`, { role: "img", "data-level": i }, { gridRow: row, gridColumn: strip.place(i) });
    const value = add(cell, "div", "value"), fill = add(cell, "div", "fill");
    return { cell, value, fill, amount: add(fill, "i", "") };
  });
}

// ---- numbers --------------------------------------------------------------------------------------------------------------

const percent = (share) => `${tidy(100 * share)}${SPACE}%`;
const tidy = (number) => (number >= 9.95 ? number.toFixed(0) : number.toFixed(1).replace(/\.0$/, ""));
const known = (number) => number !== null && number !== undefined && Number.isFinite(number);
const valued = (strip, i, records) => {
  if (!known(records)) return null;
  const mean = strip.data.levels[i].mean;
  return strip.relative ? (mean > 0 ? (100 * records) / mean : null) : records;
};

// One decimal below 10, one digit below 1; thousands and millions by their letters where there would be no room.
function short(number) {
  for (const [size, letter] of [[1e6, "M"], [1e3, "k"]]) {
    if (number >= 10 * size || (size === 1e6 && number >= 999500)) return `${tidy(number / size)}${letter}`;
  }
  if (number >= 9.95) return Math.round(number).toLocaleString("en");
  if (number > 0 && number < 0.01) return "<0.01";
  return number === 0 || number >= 0.95 ? tidy(number) : String(Number(number.toPrecision(1)));
}
const shown = (strip, value) => {
  if (value === null) return "\u2013";
  const large = strip.relative && value >= MOST - 0.5;
  return (large ? `>${SPACE}${MOST - 1}` : short(value)) + (strip.relative ? `${SPACE}%` : "");
};

const title = (strip, k) => {
  const { label: name, level } = strip.data.parts[k];
  return `Budget of ${level === null ? name : `level ${strip.data.levels[level].name}`}`;
};

// As dpviz.privacy.shares.redistribute: one share is set, and the other unlocked ones keep their proportions.
function redistribute(shares, locked, index, value) {
  const parts = shares.slice(), others = parts.map((_, k) => k).filter((k) => !locked[k] && k !== index);
  if (locked[index] || !others.length) return parts;
  const total = others.reduce((sum, k) => sum + parts[k], 0), free = total + parts[index], left = free - Math.min(Math.max(value, 0), free);
  for (const k of others) parts[k] = left * (total > 0 ? parts[k] / total : 1 / others.length);
  parts[index] = free - left;
  return parts;
}

const locks = (strip) => strip.data.parts.map((part) => part.locked);
const free = (strip, k) => strip.data.editable && !strip.data.parts[k].locked && locks(strip).filter((locked) => !locked).length > 1;

// ---- drawing --------------------------------------------------------------------------------------------------------------

function draw(strip) {
  strip.root.classList.toggle("calm", !strip.drag);
  strip.root.classList.toggle("tried", strip.tried !== null);
  strip.column.style.gridColumn = strip.place(strip.shown);
  strip.buttons.forEach((button, i) => {
    button.setAttribute("aria-checked", i === strip.shown);
    button.tabIndex = i === strip.shown ? 0 : -1;
    const { name, about } = strip.data.levels[i];
    button.title = name.includes(" ") && about ? `${name}: ${about}` : about;
    button.setAttribute("aria-description", sentence(strip, i));
  });
  strip.units.forEach((button, i) => button.setAttribute("aria-pressed", (i === 0) === strip.relative));
  drawBudget(strip);
  drawErrors(strip);
  if (withWrong(strip.data)) drawWrong(strip);
  tell(strip);
}

function drawBudget(strip) {
  const most = Math.max(...strip.shares), fitting = TOPS.find((top) => top >= most - 1e-9) ?? 1;
  strip.top = Math.max(fitting, strip.drag?.top ?? 0);
  const unlocked = strip.shares.reduce((sum, share, k) => sum + (strip.data.parts[k].locked ? 0 : share), 0);
  strip.knobs.forEach((knob, k) => {
    const share = strip.shares[k], height = `${(100 * share) / strip.top}%`, can = free(strip, k), now = Math.round(1000 * share) / 10;
    const [bar, text, grip] = knob.firstChild.children;
    bar.style.height = text.style.bottom = grip.style.bottom = height;
    text.textContent = percent(share);
    strip.cells[k].classList.toggle("locked", strip.data.parts[k].locked);
    knob.classList.toggle("moving", strip.drag?.k === k);
    knob.tabIndex = can ? 0 : -1;
    const about = `${percent(share)} of the budget${strip.data.parts[k].locked ? ", locked" : ""}`;
    const values = { valuenow: now, valuemax: can ? Math.round(1000 * unlocked) / 10 : now, valuetext: about, disabled: !can };
    for (const [name, value] of Object.entries({ ...values, valuemin: can ? 0 : now })) knob.setAttribute(`aria-${name}`, value);
  });
}

// The values of a level in the order of MARKS; while a split is tried, its expected errors stand beside the run that is shown.
const series = (strip, i) => {
  const { before, expected, measured } = strip.data.levels[i];
  const records = strip.tried ? [measured === null ? expected : null, strip.tried[i], measured] : [before, expected, measured];
  return records.map((value) => valued(strip, i, value));
};

function drawErrors(strip) {
  const all = strip.data.levels.map((_, i) => series(strip, i)), scale = logScale(strip, all.flat().filter((value) => value > 0));
  strip.curves.forEach((curve, m) => {
    const points = all.map((values, i) => (values[m] === null ? null : `${i + 0.5},${scale.at(values[m])}`));
    curve.setAttribute("points", points.filter(Boolean).join(" "));
  });
  strip.plots.forEach(({ cell, number, link, marks }, i) => {
    const [, expected, measured] = all[i], main = strip.tried ? expected : (measured ?? expected);
    number.textContent = (strip.tried && main !== null ? "\u2248" : "") + shown(strip, main);
    cell.classList.toggle("about", !strip.tried && measured === null);
    marks.forEach((mark, m) => {
      const value = all[i][m];
      Object.assign(mark.style, value === null ? { display: "none" } : { display: "", top: `${scale.at(value)}%` });
    });
    const both = [expected, measured].every((value) => value !== null), ends = both ? [scale.at(expected), scale.at(measured)] : [0, 0];
    Object.assign(link.style, { display: both ? "" : "none", top: `${Math.min(...ends)}%`, height: `${Math.abs(ends[0] - ends[1])}%` });
    cell.title = sentence(strip, i);
    cell.setAttribute("aria-label", cell.title);
  });
}

// The scale stays as it is while a split is tried, unless a value would lie outside.
function logScale(strip, values) {
  const logs = values.map((value) => Math.log10(strip.relative ? Math.min(value, MOST) : value)), kept = strip.tried && strip.scale?.relative === strip.relative ? strip.scale : null;
  const least = values.length ? Math.min(...logs) : 0, most = values.length ? Math.max(...logs) : 0, margin = Math.max(0, 1 - most + least) / 2;
  const low = Math.min(least - margin, kept?.low ?? Infinity), high = Math.max(most + margin, kept?.high ?? -Infinity);
  const at = (value) => 93 - 86 * Math.min(Math.max((Math.log10(Math.max(value, 1e-300)) - low) / (high - low), 0), 1);
  const same = strip.scale?.low === low && strip.scale?.high === high && strip.scale?.relative === strip.relative;
  strip.scale = { low, high, at, relative: strip.relative };
  if (!same || !strip.back.firstChild) drawTicks(strip);
  return strip.scale;
}

function drawTicks(strip) {
  const { low, high, at, relative } = strip.scale, step = Math.ceil((high - low) / 3), highest = Math.floor(high + 1e-9);
  strip.ticks.textContent = strip.back.textContent = "";
  for (let power = highest; power >= low - 1e-9; power -= step) {
    const top = `${at(10 ** power)}%`;
    add(strip.back, "i", relative && power === 2 ? "even" : "", {}, { top });
    add(strip.ticks, "span", "", {}, { top }).textContent = (power < -2 ? (10 ** power).toFixed(-power) : short(10 ** power)) + (relative ? `${SPACE}%` : "");
  }
}

function drawWrong(strip) {
  strip.wrongs.forEach((cells, k) => cells.forEach(({ cell, value, fill, amount }, i) => {
    const level = strip.data.levels[i], [base, count] = k ? [level.there, level.missed] : [level.base, level.wrong], some = known(count) && base > 0;
    const words = strip.data.words.rows[k];
    value.textContent = some ? percent(count / base) : "\u2013";
    add(value, "small", "").textContent = some ? ` of ${short(base)}` : " none";
    cell.classList.toggle("few", some && base < FEW);
    fill.style.display = some ? "" : "none";
    amount.style.width = some ? `${(100 * count) / base}%` : "0";
    const all = `${percent(count / base)}, ${count?.toLocaleString("en")} of ${base?.toLocaleString("en")} ${words.base}, ${words.wrong}`;
    cell.title = `Level ${level.name}: ${some ? `${all}${base < FEW ? " (too few to say much)" : ""}` : words.none}.`;
    cell.setAttribute("aria-label", cell.title);
  }));
}

// ---- words ----------------------------------------------------------------------------------------------------------------

function sentence(strip, i) {
  const level = strip.data.levels[i], of = strip.relative ? ` of the average count of a ${strip.data.words.part}` : ` ${strip.data.unit}`;
  const say = (records) => shown(strip, valued(strip, i, records));
  const clauses = [];
  if (known(level.measured)) clauses.push(`measured error ${say(level.measured)}${of}`);
  if (known(level.expected)) clauses.push(`expected from noise ${say(level.expected)}${clauses.length ? "" : of}`);
  if (known(level.before)) clauses.push(`in the run before ${say(level.before)}`);
  if (strip.tried && known(strip.tried[i])) clauses.unshift(`expected error with this split ${say(strip.tried[i])}${of}`);
  const about = level.about ? ` (${level.about})` : "";
  const finer = level.closed ? ` ${level.closed}` : level.finer ? " The release has no partitions so small: counts are spread evenly." : "";
  return `Level ${level.name}${about}: ${clauses.length ? clauses.join(", ") : "no error is known"}.${finer}`;
}

// Whether Python cannot say what error a split has before a run with it.
const unknown = ({ data, first }) => Boolean(data.answer && data.answer.serial >= first && !data.answer.expected);

function describe(strip, k) {
  const i = strip.data.parts[k].level, answered = strip.tried && !strip.pending.drag;  // an older answer is of another share
  const error = i !== null && answered ? valued(strip, i, strip.tried[i]) : null;
  const end = error !== null ? `, expected error ${shown(strip, error)}` : unknown(strip) ? ", its error is known after the new run" : "";
  return `${title(strip, k)}: ${percent(strip.shares[k])}${end}`;
}

function tell(strip) {
  if (!strip.buttons) return;
  const active = strip.root.getRootNode().activeElement, knob = strip.drag?.k ?? strip.knobs.indexOf(active), button = strip.buttons.indexOf(active);
  const keyboard = active?.matches?.(":focus-visible");
  const text = strip.drag || (knob >= 0 && keyboard) ? describe(strip, knob)
    : strip.over !== null ? sentence(strip, strip.over) : button >= 0 && keyboard ? sentence(strip, button) : "";
  const [legend, tip] = strip.note.children;
  legend.hidden = text !== "";
  tip.textContent = text;
  const marks = { measured: withWrong(strip.data), before: strip.data.levels.some((level) => known(level.before)) };
  for (const [name, there] of Object.entries(marks)) legend.querySelector(`.${name}`).parentElement.hidden = !there;
  const drags = strip.knobs.some((_, k) => free(strip, k)), hint = legend.querySelector(".hint"), { whole } = strip.data;
  hint.textContent = drags ? "Drag a bar to move budget" : strip.knobs.length ? whole : "";
  hint.hidden = !hint.textContent;
}

const announce = (strip, text) => { strip.live.textContent = text; };

// ---- pointer and keys -----------------------------------------------------------------------------------------------------

function hover(strip, event) {
  const cell = event?.target.closest?.("[data-level]"), over = cell ? Number(cell.dataset.level) : null;
  if (over === strip.over) return;
  strip.over = over;
  tell(strip);
}

function press(strip, event, k) {
  if (k < 0 || event.button !== 0 || strip.drag || !free(strip, k)) return;
  event.preventDefault();
  if (strip.timer) flush(strip);
  strip.knobs[k].setPointerCapture(event.pointerId);
  const { height } = strip.knobs[k].firstChild.getBoundingClientRect();
  strip.drag = { k, pointer: event.pointerId, y: event.clientY, from: strip.shares.slice(), top: strip.top, perPixel: strip.top / height };
  strip.first = strip.serial + 1;
  strip.knobs[k].classList.add("held");
  strip.knobs[k].focus({ preventScroll: true });
  draw(strip);
}

function pull(strip, event) {
  const { k, y, from, perPixel, pointer } = strip.drag;
  if (event.pointerId !== pointer) return;
  const value = Math.round(1000 * (from[k] + (y - event.clientY) * perPixel)) / 1000;
  strip.shares = event.clientY === y ? from.slice() : redistribute(from, locks(strip), k, value);
  draw(strip);
  offer(strip);
}

function release(strip, event) {
  const drag = strip.drag;
  if (!drag || event.pointerId !== drag.pointer) return;
  strip.drag = null;
  if (drag.from.some((share, k) => share !== strip.shares[k])) {
    flush(strip);
    announce(strip, describe(strip, drag.k));
    draw(strip);
  } else {
    delete strip.pending.drag;
    receive(strip, strip.data);
  }
}

function cancel(strip) {
  if (!strip.drag) return;
  const { from, pointer, k } = strip.drag;
  clearTimeout(strip.pump);
  delete strip.pending.drag;
  Object.assign(strip, { drag: null, tried: null, shares: from });
  if (strip.knobs[k].hasPointerCapture(pointer)) strip.knobs[k].releasePointerCapture(pointer);
  announce(strip, `${title(strip, k)} is as before: ${percent(from[k])}`);
  receive(strip, strip.data);
}

function key(strip, event, k) {
  if (event.key === "Escape" && strip.drag) {
    event.stopPropagation();
    return cancel(strip);
  }
  if (strip.drag || event.ctrlKey || event.altKey || event.metaKey) return;
  const i = strip.buttons.indexOf(event.target);
  const used = i >= 0 ? chooseByKey(strip, event, i) : k >= 0 && free(strip, k) && moveByKey(strip, event, k);
  if (!used) return;
  event.preventDefault();
  event.stopPropagation();
}

function moveByKey(strip, event, k) {
  const step = event.shiftKey ? BIG : STEP;
  const ways = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -BIG, PageUp: BIG, Home: -2, End: 2 };
  if (!(event.key in ways)) return false;
  strip.shares = redistribute(strip.shares, locks(strip), k, Math.round(1e6 * (strip.shares[k] + ways[event.key])) / 1e6);
  clearTimeout(strip.timer);
  event.target.classList.remove("held");
  strip.first = strip.serial + 1;
  strip.timer = setTimeout(() => flush(strip), PAUSE);
  announce(strip, describe(strip, k));
  draw(strip);
  return true;
}

function chooseByKey(strip, event, i) {
  const last = strip.data.levels.findLastIndex(opens);
  const to = { ArrowLeft: i - 1, ArrowUp: i - 1, ArrowRight: i + 1, ArrowDown: i + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return false;
  choose(strip, to < 0 ? last : to > last ? 0 : to, PAUSE);
  return true;
}

function choose(strip, i, pause = 0) {
  strip.shown = i;
  strip.buttons[i].focus();
  draw(strip);
  announce(strip, sentence(strip, i));
  clearTimeout(strip.choice);
  strip.choice = setTimeout(() => {
    strip.choice = 0;
    if (i !== strip.data.shown || strip.pending.level) post(strip, "level", i);
  }, pause);
}

function click(strip, event) {
  const i = strip.buttons.indexOf(event.target.closest?.(".level")), unit = strip.units.indexOf(event.target.closest?.(".unit"));
  if (i >= 0 && i !== strip.shown && opens(strip.data.levels[i])) choose(strip, i);
  if (unit < 0 || strip.relative === (unit === 0)) return;
  strip.relative = unit === 0;
  draw(strip);
  announce(strip, strip.units[unit].title);
  post(strip, "unit", strip.relative);
}
