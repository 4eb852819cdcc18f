const STEP = 0.01, BIG = 0.05, PAUSE = 150, SETTLE = 350, EVERY = 120, ANSWER = 1500, PATIENCE = 10000;
const TOPS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1], MARKS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], SPACE = "\u00a0";
const BASE = 14;  // pixels of the page's usual type, for which the sizes here are made
const MOST = 999;  // percent: a larger error says only that noise is all there is
const LEAST = 0.01;  // and a smaller one that there is hardly any
const LONG = 1000;  // so many empty ones are a share in percent on a chip
const NEAR = 0.07;  // of the width: so near to the thumb a mark of the rail gives way to it
const GRADES = ["usable", "rough", "mostly noise"], COLOURS = ["good", "rough", "noisy"];
const TOO_FINE = "The release has no partitions so small: their counts are spread evenly.";
const rails = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".rail");
  if (!rails.has(root)) rails.set(root, create(root));
  const rail = rails.get(root);
  rail.send = (message) => setTriggerValue("sent", message);
  receive(rail, data);
}

function create(root) {
  const [said, slider, grid, note, live] = ["said", "slider", "grid", "note", "live"].map((name) => root.querySelector(`.${name}`));
  const rail = { root, said, slider, grid, note, live, serial: 0, pending: {}, drag: null, move: null, timer: 0, pump: 0, settle: 0, frame: "", shares: [], tried: null, open: false, zoom: 1 };
  const knob = (event) => rail.knobs?.indexOf(event.target.closest?.(".knob")) ?? -1;
  grid.addEventListener("pointerdown", (event) => press(rail, event, knob(event)));
  grid.addEventListener("pointermove", (event) => rail.drag && pull(rail, event));
  grid.addEventListener("pointerup", (event) => release(rail, event));
  for (const name of ["pointercancel", "lostpointercapture"]) grid.addEventListener(name, () => cancel(rail));
  grid.addEventListener("click", (event) => click(rail, event));
  grid.addEventListener("keydown", (event) => key(rail, event, knob(event)));
  for (const name of ["focusin", "focusout"]) grid.addEventListener(name, () => tell(rail));
  grid.parentElement.addEventListener("scroll", () => hint(rail));
  slider.addEventListener("pointerdown", (event) => grab(rail, event));
  slider.addEventListener("pointermove", (event) => rail.move && slide(rail, event));
  slider.addEventListener("pointerup", () => rail.move && settle(rail));
  for (const name of ["pointercancel", "lostpointercapture"]) slider.addEventListener(name, () => letGo(rail));
  slider.addEventListener("keydown", (event) => step(rail, event));
  said.addEventListener("click", (event) => event.target.closest("button") && post(rail, "false", !rail.data.falses));
  new ResizeObserver(() => fit(rail)).observe(root.parentElement);
  return rail;
}

// ---- messages -------------------------------------------------------------------------------------------------------------

// Every message holds all changes that Python has not confirmed, since Streamlit keeps only the newest of those that wait.
function post(rail, kind, value) {
  rail.serial += 1;
  rail.pending[kind] = { value, serial: rail.serial, since: performance.now() };
  const changes = Object.entries(rail.pending).map(([name, change]) => [name, { value: change.value, serial: change.serial }]);
  if (rail.root.isConnected) rail.send(Object.fromEntries(changes));
}

// What Python says is shown, except for what was changed here since: an older answer does not take a newer change back.
function receive(rail, data) {
  const frame = JSON.stringify([
    data.levels.map((level) => [level.name, level.finer, level.closed]), data.parts.map((part) => [part.label, part.level, part.structure]), data.editable, data.shown, data.whole,
  ]);
  if (frame !== rail.frame && rail.frame && rail.drag) cancelDrag(rail);
  confirm(rail, data);
  rail.data = data;
  const { moved, level, epsilon } = rail.pending;
  if (!rail.drag && !rail.timer && !moved) Object.assign(rail, { shares: data.parts.map((part) => part.share), tried: null });
  else if (data.answer && data.answer.serial >= rail.first) rail.tried = data.answer.expected ?? rail.tried;
  if (!level && !rail.choice) rail.shown = data.shown;
  if (!epsilon && !rail.move && !rail.settle) rail.at = data.epsilon.chosen;
  const fresh = frame !== rail.frame;
  if (fresh) build(rail, frame);
  draw(rail);
  if (fresh || rail.revealed !== rail.shown) reveal(rail);
  rail.revealed = rail.shown;
  if (rail.drag) offer(rail);
}

function confirm(rail, data) {
  const seen = { ...data.serials, drag: data.answer?.serial ?? 0 }, now = performance.now();
  rail.serial = Math.max(rail.serial, ...Object.values(seen));
  for (const [kind, change] of Object.entries(rail.pending)) {
    if (seen[kind] >= change.serial || now - change.since > PATIENCE) delete rail.pending[kind];
  }
}

// Shares on their way, at most one message at a time and one each EVERY milliseconds; the newest takes the place of one that waits.
function offer(rail) {
  const since = rail.asked ?? -Infinity, now = performance.now();
  if (!rail.data.live || !rail.drag || rail.offered === rail.shares) return;
  const wait = since + (rail.pending.drag ? ANSWER : EVERY) - now;
  clearTimeout(rail.pump);
  if (wait > 0) {
    rail.pump = setTimeout(() => offer(rail), wait);
    return;
  }
  Object.assign(rail, { asked: now, offered: rail.shares });
  post(rail, "drag", rail.shares);
}

function flush(rail) {
  clearTimeout(rail.timer);
  clearTimeout(rail.pump);
  rail.timer = 0;
  delete rail.pending.drag;
  post(rail, "moved", rail.shares);
}

// ---- elements -------------------------------------------------------------------------------------------------------------

function add(parent, tag, name, attributes = {}, style = {}) {
  const element = parent.appendChild(document.createElement(tag));
  if (name) element.className = name;
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  Object.assign(element.style, style);
  return element;
}

// Whether the maps can show a level; whether it has a chip: while the split is open, so has every level that has a share.
const opens = (level) => !level.finer && !level.closed;
const hasChip = (rail, i) => opens(rail.data.levels[i]) || i === rail.data.shown || (rail.open && rail.data.parts.some((part) => part.level === i));

// Where there is no room for all chips, the level that is shown is in view.
function reveal(rail) {
  const scroll = rail.grid.parentElement, view = scroll.getBoundingClientRect(), box = rail.chips[rail.shown]?.getBoundingClientRect();
  if (box && box.right + box.width / 2 > view.right) scroll.scrollLeft += (box.right + box.width / 2 - view.right) / rail.zoom;
  if (box && box.left < view.left) scroll.scrollLeft += (box.left - view.left) / rail.zoom;
  hint(rail);
}

// The type follows that of the page, which is larger for a projector.
function fit(rail) {
  rail.zoom = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / BASE || 1;
  rail.root.style.zoom = rail.zoom;
  if (rail.chips) reveal(rail);
}

// Chips that are out of view on the right are announced by a fade.
function hint(rail) {
  const scroll = rail.grid.parentElement;
  scroll.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
}

// Columns: the parts of the budget that belong to no level, the levels, what is too fine, the button of the split.
function build(rail, frame) {
  const { data, grid, root } = rail, active = root.getRootNode().activeElement, old = [...(rail.knobs ?? []), ...(rail.chips ?? []).filter(Boolean), rail.more];
  const focused = old.indexOf(active), split = data.parts.length > 1, indices = data.levels.map((_, i) => i);
  const own = rail.open ? data.parts.map((_, k) => k).filter((k) => data.parts[k].level === null) : [];
  const with_chip = indices.filter((i) => hasChip(rail, i)), tooFine = indices.filter((i) => data.levels[i].finer && !hasChip(rail, i));
  rail.frame = frame;
  grid.textContent = "";
  grid.style.gridTemplateColumns = `${own.length ? `repeat(${own.length}, minmax(62px, 90px)) ` : ""}repeat(${with_chip.length}, minmax(var(--chip), 150px))${tooFine.length ? " max-content" : ""}${split ? " max-content" : ""}`;
  rail.place = (i) => 1 + own.length + with_chip.indexOf(i);
  const group = add(grid, "div", "row", { role: "radiogroup", "aria-label": "Size that the map shows" });
  rail.chips = data.levels.map((level, i) => (with_chip.includes(i) ? addChip(group, level, i, rail.place(i)) : null));
  if (tooFine.length) addTooFine(grid, rail.place(with_chip.at(-1)) + 1);
  rail.more = null;
  if (split) {
    rail.more = add(grid, "button", "b split", { type: "button", "aria-expanded": rail.open });
    document.documentElement.classList.toggle("dpviz-split", rail.open);  // the maps give the bars their room
    rail.more.textContent = rail.open ? "Close split" : "Split \u03b5 \u2026";
  }
  addSplit(rail, own);
  const fresh = [...rail.knobs, ...rail.chips.filter(Boolean), rail.more];
  if (focused >= 0) (active === old.at(-1) ? rail.more : fresh.length === old.length ? fresh[focused] : null)?.focus({ preventScroll: true });
}

function addChip(group, level, i, column) {
  const chip = add(group, "button", "b chip", { type: "button", role: "radio", "aria-disabled": !opens(level), "data-level": i }, { gridColumn: column });
  for (const name of ["size", "off", "empty", "share"]) add(chip, "span", name);
  chip.firstChild.textContent = level.name;
  return chip;
}

// What is too fine for the release: one chip that cannot be pressed.
function addTooFine(grid, column) {
  const chip = add(grid, "div", "chip fine", { title: TOO_FINE }, { gridColumn: column });
  add(chip, "span", "size").textContent = "smaller";
  add(chip, "span", "empty").textContent = "too fine";
}

// The parts of the budget as bars that can be moved, those of levels under their chips.
function addSplit(rail, own) {
  const { data, grid } = rail;
  rail.knobs = [];
  rail.cells = [];
  if (!rail.open || data.parts.length < 2) return;
  own.forEach((k, j) => { add(grid, "div", "heading", { title: data.parts[k].label }, { gridColumn: 1 + j }).textContent = data.parts[k].label; });
  const group = add(grid, "div", "row", { role: "group", "aria-label": "Split of the privacy budget" });
  data.parts.forEach((part, k) => {
    const cell = add(group, "div", "cell", {}, { gridColumn: part.level === null ? 1 + own.indexOf(k) : rail.place(part.level) });
    const knob = add(cell, "div", "knob", { role: "slider", "aria-orientation": "vertical", "aria-label": title(rail, k), "aria-valuemin": 0 });
    const track = add(knob, "div", "track");
    for (const name of ["bar", "share", "grip"]) add(track, "div", name);
    cell.classList.toggle("structure", part.structure);
    rail.cells.push(cell);
    rail.knobs.push(knob);
  });
}

// ---- numbers --------------------------------------------------------------------------------------------------------------

const known = (number) => number !== null && number !== undefined && Number.isFinite(number);
const tidy = (number) => (number >= 9.95 ? number.toFixed(0) : String(Number(number.toPrecision(2))));
const percent = (share) => {
  if (100 * share > MOST) return `>${SPACE}${MOST}${SPACE}%`;
  return share > 0 && 100 * share < LEAST ? `<${SPACE}${LEAST}${SPACE}%` : `${tidy(100 * share)}${SPACE}%`;
};
const part = (share) => `${share >= 0.0995 ? (100 * share).toFixed(0) : (100 * share).toFixed(1).replace(/\.0$/, "")}${SPACE}%`;
const whole = (number) => number.toLocaleString("en");

// A curve between its points: linear in the logarithm of \u03b5, and for errors in that of the error, as ErrorsOverEpsilon says.
function between({ at }, values, epsilon, bends) {
  const k = at.findIndex((value) => value >= epsilon * (1 - 1e-9));
  if (k < 0 || (k === 0 && at[0] > epsilon * (1 + 1e-9))) return null;
  if (k === 0 || Math.abs(at[k] / epsilon - 1) < 1e-9) return values[k];
  const t = Math.log(epsilon / at[k - 1]) / Math.log(at[k] / at[k - 1]), [low, high] = [values[k - 1], values[k]];
  if (low === null || high === null) return null;
  return bends ? Math.exp(Math.log(Math.max(low, 1e-9)) * (1 - t) + Math.log(Math.max(high, 1e-9)) * t) : low * (1 - t) + high * t;
}

// What a level is worth with the \u03b5 and the shares of this moment: measured in the run, or about so, by its curve or what Python answered.
function worth(rail, i) {
  const level = rail.data.levels[i], { of_run: run } = rail.data.epsilon;
  if (rail.tried) return { about: true, error: known(rail.tried[i]) && level.average > 0 ? rail.tried[i] / level.average : null, wrong: null };
  if (run === null || rail.at === run) return { about: false, error: level.error, wrong: level.wrong, share: level.base ? level.wrong / level.base : 0 };
  if (!level.curve) return { about: true, error: null, wrong: null };
  const share = between(level.curve, level.curve.false, rail.at, false);
  return { about: true, error: between(level.curve, level.curve.error, rail.at, true), share, wrong: share === null ? null : Math.round(share * level.base) };
}

// The place of a grade, as of LevelWorth: by the error, and by how many of those that look inhabited are empty.
function grade(rail, i, { error, wrong }) {
  const { error: errors, false: falses } = rail.data.limits, level = rail.data.levels[i];
  if (error === null) return -1;
  const look = (wrong ?? 0) + level.there - level.missed, wrongs = look > 0 ? (wrong ?? 0) / look : 0;
  const place = (limits, value) => limits.filter((limit) => value > limit).length;
  return Math.max(place(errors, error), place(falses, wrongs));
}

const isPairs = (rail) => rail.data.words.short === "false";
const about = (found, text) => (found.about ? `~${text}` : text);

const title = (rail, k) => {
  const { label: name, level } = rail.data.parts[k];
  return `Budget of ${level === null ? name : rail.data.levels[level].name}`;
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

const locks = (rail) => rail.data.parts.map(({ locked }) => locked);
const free = (rail, k) => rail.data.editable && !rail.data.parts[k].locked && locks(rail).filter((locked) => !locked).length > 1;

// ---- drawing --------------------------------------------------------------------------------------------------------------

function draw(rail) {
  const found = rail.data.levels.map((_, i) => worth(rail, i)), moves = rail.move !== null || rail.settle > 0 || Boolean(rail.pending.epsilon);
  rail.root.classList.toggle("calm", !rail.drag && !rail.move);
  for (const map of document.querySelectorAll(".st-key-map")) map.classList.toggle("dimmed", moves || rail.data.epsilon.waits);
  drawSaid(rail, found[rail.shown]);
  drawSlider(rail, found[rail.shown]);
  rail.chips.forEach((chip, i) => chip && drawChip(rail, chip, i, found[i]));
  drawSplit(rail);
  tell(rail);
}

function drawSaid(rail, found) {
  const level = rail.data.levels[rail.shown], { words, maps, falses } = rail.data, { said } = rail;
  const off = found.error === null ? (found.about ? "\u2026" : "an unknown share") : about(found, percent(found.error));
  const count = falseText(rail, found, level), text = JSON.stringify([level.subject, off, count, maps, falses]);
  if (said.dataset.text === text) return;
  const focused = said.contains(rail.root.getRootNode().activeElement) && said.querySelector("button") !== null;
  Object.assign(said, { textContent: "" }).dataset.text = text;
  said.append(`${level.subject} is off by `);
  add(said, "b", "").textContent = off;
  said.append("; ");
  if (count) {
    const button = add(said, maps ? "button" : "b", maps ? "b count" : "", maps ? { type: "button", "aria-pressed": falses, title: falses ? "Show what was released again" : "Show these on the right map" } : {});
    button.textContent = count;
    if (focused) button.focus({ preventScroll: true });
  }
  said.append(count ? ` ${words.wrong}.` : `${words.none}.`);
}

function falseText(rail, found, level) {
  if (!level.base && !found.about) return "";
  if (found.wrong === null) return "\u2026";
  if (found.about && isPairs(rail)) return `~${percent(found.share)} of`;
  return level.base ? about(found, `${whole(found.wrong)} of ${whole(level.base)}`) : "";
}

// What a chip has room for: of many, the share.
function shortFalse(rail, found, level, count) {
  const { short } = rail.data.words;
  if (!count) return isPairs(rail) ? "none" : "none empty";
  return level.base < LONG || !known(found.share) ? `${count} ${short}` : `${about(found, percent(found.share))} ${isPairs(rail) ? short : `of ${short}`}`;
}

const placeOf = (rail, epsilon) => Math.min(Math.max(Math.log(epsilon / rail.data.low) / Math.log(rail.data.high / rail.data.low), 0), 1);

function drawSlider(rail, found) {
  const { slider, root, data } = rail, level = data.levels[rail.shown], x = placeOf(rail, rail.at), { curve } = level;
  const spends = data.epsilon.of_run !== null, [value, small] = root.querySelector(".name").children;
  value.textContent = `\u03b5 ${written(rail.at)}`;
  small.textContent = !spends ? "has no effect here" : data.epsilon.computes ? "errors are computed \u2026" : "less private \u2192 better map";
  const off = found.error === null ? "" : about(found, percent(found.error));
  const thumb = slider.querySelector(".thumb");
  thumb.style.left = `${100 * x}%`;
  thumb.textContent = off;
  thumb.className = `thumb ${COLOURS[grade(rail, rail.shown, found)] ?? ""}`;
  const values = { valuenow: rail.at, valuetext: `${written(rail.at)}${off ? `: ${level.subject} is off by ${found.about ? "about " : ""}${off.replace("~", "")}` : ""}` };
  for (const [name, text] of Object.entries(values)) slider.setAttribute(`aria-${name}`, text);
  const logs = (curve?.error ?? []).map((error) => (known(error) ? Math.log(Math.min(Math.max(error, 1e-4), MOST / 100)) : null)), seen = logs.filter(known);
  const [low, high] = [Math.min(...seen), Math.max(...seen)], y = (log) => (high > low ? 96 - (92 * (log - low)) / (high - low) : 50);
  slider.querySelector("polyline").setAttribute("points", logs.map((log, k) => (known(log) ? `${100 * placeOf(rail, curve.at[k])},${y(log)}` : "")).filter(Boolean).join(" "));
  const marks = slider.querySelector(".marks");
  marks.textContent = "";
  for (const epsilon of MARKS) {
    const mark = add(marks, "div", "mark", {}, { left: `${100 * placeOf(rail, epsilon)}%` }), error = curve && between(curve, curve.error, epsilon, true);
    mark.classList.toggle("near", Math.abs(placeOf(rail, epsilon) - x) < NEAR);
    add(mark, "span", "off").textContent = known(error) ? percent(error) : spends ? "\u2026" : "";
    add(mark, "span", "tick").textContent = written(epsilon);
  }
}

function drawChip(rail, chip, i, found) {
  const level = rail.data.levels[i], place = grade(rail, i, found), shares = rail.data.parts.map((each, k) => (each.level === i ? rail.shares[k] : 0));
  const share = shares.reduce((sum, each) => sum + each, 0), top = Math.max(...rail.shares, 1e-9), count = falseText(rail, found, level);
  const [, off, empty, bar] = chip.children;
  chip.setAttribute("aria-checked", i === rail.shown);
  chip.tabIndex = i === rail.shown ? 0 : -1;
  chip.classList.remove(...COLOURS);
  if (place >= 0) chip.classList.add(COLOURS[place]);
  off.textContent = found.error === null ? "\u2026" : about(found, percent(found.error));
  empty.textContent = shortFalse(rail, found, level, count);
  bar.style.width = rail.data.parts.length > 1 ? `${(100 * share) / top}%` : "0";
  chip.title = described(rail, i, found, share);
  chip.setAttribute("aria-label", `${level.name}: ${off.textContent}, ${count ? `${count} ${rail.data.words.short}` : empty.textContent}`);
  chip.setAttribute("aria-description", chip.title);
}

function drawSplit(rail) {
  const most = Math.max(...rail.shares), fitting = TOPS.find((top) => top >= most - 1e-9) ?? 1;
  rail.top = Math.max(fitting, rail.drag?.top ?? 0);
  const unlocked = rail.shares.reduce((sum, share, k) => sum + (rail.data.parts[k].locked ? 0 : share), 0);
  rail.knobs.forEach((knob, k) => {
    const share = rail.shares[k], height = `${(100 * share) / rail.top}%`, can = free(rail, k), now = Math.round(1000 * share) / 10;
    const [bar, text, grip] = knob.firstChild.children, { locked } = rail.data.parts[k];
    bar.style.height = text.style.bottom = grip.style.bottom = height;
    text.textContent = part(share);
    rail.cells[k].classList.toggle("locked", locked);
    knob.classList.toggle("moving", rail.drag?.k === k);
    knob.tabIndex = can ? 0 : -1;
    const values = { valuemin: can ? 0 : now, valuenow: now, valuemax: can ? Math.round(1000 * unlocked) / 10 : now, valuetext: `${part(share)} of the budget${locked ? ", locked" : ""}`, disabled: !can };
    for (const [name, text] of Object.entries(values)) knob.setAttribute(`aria-${name}`, text);
  });
}

// ---- words ----------------------------------------------------------------------------------------------------------------

const written = (epsilon) => String(Number(epsilon.toPrecision(6)));

function described(rail, i, found, share) {
  const level = rail.data.levels[i], { words } = rail.data, place = grade(rail, i, found);
  const texts = [`${level.about}.`];
  if (place >= 0) texts.push(`${level.subject} is off by ${about(found, percent(found.error))}, ${GRADES[place]}.`);
  if (!found.about && known(level.error)) texts.push(`That is \u00b1${SPACE}${tidy(level.error * level.average)} of ${tidy(level.average)} on average.`);
  if (!found.about && level.base) texts.push(`${percent(level.wrong / level.base)} of ${whole(level.base)} ${words.wrong}.`);
  if (!found.about && level.there) texts.push(`${percent(level.missed / level.there)} of ${whole(level.there)} ${words.missed}.`);
  if (rail.data.parts.length > 1) texts.push(`${part(share)} of the budget.`);
  if (level.closed || level.finer) texts.push(level.closed || TOO_FINE);
  return texts.join(" ");
}

// Whether Python cannot say what error a split has before a run with it.
const unknown = ({ data, first }) => Boolean(data.answer && data.answer.serial >= first && !data.answer.expected);

function describe(rail, k) {
  const i = rail.data.parts[k].level, answered = rail.tried && !rail.pending.drag;  // an older answer is of another share
  const error = i !== null && answered ? worth(rail, i).error : null;
  const end = error !== null ? `, expected error ~${percent(error)}` : unknown(rail) ? ", its error is known after the new run" : "";
  return `${title(rail, k)}: ${part(rail.shares[k])}${end}`;
}

function tell(rail) {
  const k = rail.drag?.k ?? rail.knobs.indexOf(rail.root.getRootNode().activeElement), { whole: why, parts } = rail.data;
  const drags = rail.knobs.some((_, each) => free(rail, each));
  rail.note.textContent = k >= 0 ? describe(rail, k) : !rail.open ? "" : drags ? "Drag a bar, or press the arrow keys on it, to move budget; shares can be typed and locked beside the mechanism." : why;
  rail.note.hidden = !rail.open;
  if (rail.more) rail.more.title = parts.length > 1 ? "How the budget is split between the levels" : why;
}

const announce = (rail, text) => { rail.live.textContent = text; };

// ---- epsilon --------------------------------------------------------------------------------------------------------------

// The nearest number of two digits on the rail.
const onGrid = (rail, epsilon) => Number(Math.min(Math.max(epsilon, rail.data.low), rail.data.high).toPrecision(2));

function grab(rail, event) {
  if (event.button !== 0 || rail.move) return;
  event.preventDefault();
  clearTimeout(rail.settle);
  rail.slider.setPointerCapture(event.pointerId);
  Object.assign(rail, { settle: 0, move: { pointer: event.pointerId, from: rail.at } });
  rail.slider.focus({ preventScroll: true });
  slide(rail, event);
}

function slide(rail, event) {
  const box = rail.slider.querySelector(".track").getBoundingClientRect(), t = (event.clientX - box.left) / box.width;
  rail.at = onGrid(rail, rail.data.low * (rail.data.high / rail.data.low) ** Math.min(Math.max(t, 0), 1));
  draw(rail);
}

function settle(rail) {
  const from = rail.move?.from ?? rail.data.epsilon.chosen;
  clearTimeout(rail.settle);
  Object.assign(rail, { move: null, settle: 0 });
  if (rail.at !== from || rail.pending.epsilon) {
    post(rail, "epsilon", written(rail.at));
    announce(rail, rail.slider.getAttribute("aria-valuetext"));
  }
  draw(rail);
}

function letGo(rail) {
  if (!rail.move) return;
  Object.assign(rail, { at: rail.move.from, move: null });
  draw(rail);
}

// Arrow keys move to the usual values, and with Shift to the next number of two digits.
function step(rail, event) {
  if (event.key === "Escape" && rail.move) {
    event.stopPropagation();
    const { pointer } = rail.move;
    letGo(rail);
    if (rail.slider.hasPointerCapture(pointer)) rail.slider.releasePointerCapture(pointer);
    return;
  }
  const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4, Home: -1000, End: 1000 }[event.key];
  if (!way || rail.move || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  const { steps } = rail.data.epsilon, last = steps.length - 1, digits = 10 ** (1 - Math.floor(Math.log10(rail.at) + 1e-9));
  const next = way < 0 ? steps.findLastIndex((value) => value < rail.at * (1 - 1e-9)) : steps.findIndex((value) => value > rail.at * (1 + 1e-9));
  const rest = way < 0 ? way + 1 : way - 1, to = Math.min(Math.max((next < 0 ? (way < 0 ? 0 : last) : next) + rest, 0), last);
  rail.at = event.shiftKey && Math.abs(way) === 1 ? onGrid(rail, rail.at + way / digits) : steps[to];
  clearTimeout(rail.settle);
  rail.settle = setTimeout(() => settle(rail), SETTLE);
  draw(rail);
}

// ---- levels and shares ----------------------------------------------------------------------------------------------------

function press(rail, event, k) {
  if (k < 0 || event.button !== 0 || rail.drag || !free(rail, k)) return;
  event.preventDefault();
  if (rail.timer) flush(rail);
  rail.knobs[k].setPointerCapture(event.pointerId);
  const { height } = rail.knobs[k].firstChild.getBoundingClientRect();
  rail.drag = { k, pointer: event.pointerId, y: event.clientY, from: rail.shares.slice(), top: rail.top, perPixel: rail.top / height };
  rail.first = rail.serial + 1;
  rail.knobs[k].focus({ preventScroll: true });
  draw(rail);
}

function pull(rail, event) {
  const { k, y, from, perPixel, pointer } = rail.drag;
  if (event.pointerId !== pointer) return;
  const value = Math.round(1000 * (from[k] + (y - event.clientY) * perPixel)) / 1000;
  rail.shares = event.clientY === y ? from.slice() : redistribute(from, locks(rail), k, value);
  draw(rail);
  offer(rail);
}

function release(rail, event) {
  const drag = rail.drag;
  if (!drag || event.pointerId !== drag.pointer) return;
  rail.drag = null;
  if (drag.from.some((share, k) => share !== rail.shares[k])) {
    flush(rail);
    announce(rail, describe(rail, drag.k));
    draw(rail);
  } else {
    delete rail.pending.drag;
    receive(rail, rail.data);
  }
}

function cancelDrag(rail) {
  const { from } = rail.drag;
  clearTimeout(rail.pump);
  delete rail.pending.drag;
  Object.assign(rail, { drag: null, tried: null, shares: from });
}

function cancel(rail) {
  if (!rail.drag) return;
  const { pointer, k, from } = rail.drag;
  cancelDrag(rail);
  if (rail.knobs[k].hasPointerCapture(pointer)) rail.knobs[k].releasePointerCapture(pointer);
  announce(rail, `${title(rail, k)} is as before: ${part(from[k])}`);
  receive(rail, rail.data);
}

function key(rail, event, k) {
  if (event.key === "Escape" && rail.drag) {
    event.stopPropagation();
    return cancel(rail);
  }
  if (rail.drag || event.ctrlKey || event.altKey || event.metaKey) return;
  const i = rail.chips.indexOf(event.target);
  const used = i >= 0 ? chooseByKey(rail, event, i) : k >= 0 && free(rail, k) && moveByKey(rail, event, k);
  if (!used) return;
  event.preventDefault();
  event.stopPropagation();
}

function moveByKey(rail, event, k) {
  const by = event.shiftKey ? BIG : STEP;
  const ways = { ArrowLeft: -by, ArrowDown: -by, ArrowRight: by, ArrowUp: by, PageDown: -BIG, PageUp: BIG, Home: -2, End: 2 };
  if (!(event.key in ways)) return false;
  rail.shares = redistribute(rail.shares, locks(rail), k, Math.round(1e6 * (rail.shares[k] + ways[event.key])) / 1e6);
  clearTimeout(rail.timer);
  rail.first = rail.serial + 1;
  rail.timer = setTimeout(() => flush(rail), PAUSE);
  announce(rail, describe(rail, k));
  draw(rail);
  return true;
}

function chooseByKey(rail, event, i) {
  const open = rail.data.levels.map((_, each) => each).filter((each) => opens(rail.data.levels[each])), n = open.length;
  const at = open.indexOf(i), before = open.findLastIndex((each) => each < i), after = at < 0 ? before + 1 : at + 1;
  const to = { ArrowLeft: before, ArrowUp: before, ArrowRight: after, ArrowDown: after, Home: 0, End: n - 1 }[event.key];
  if (to === undefined || !n) return false;
  choose(rail, open[(to + n) % n], PAUSE);
  return true;
}

function choose(rail, i, pause = 0) {
  rail.shown = i;
  rail.chips[i].focus();
  draw(rail);
  announce(rail, rail.said.textContent);
  clearTimeout(rail.choice);
  rail.choice = setTimeout(() => {
    rail.choice = 0;
    if (i !== rail.data.shown || rail.pending.level) post(rail, "level", i);
  }, pause);
}

function click(rail, event) {
  const i = rail.chips.indexOf(event.target.closest?.(".chip"));
  if (i >= 0 && i !== rail.shown && opens(rail.data.levels[i])) choose(rail, i);
  if (!rail.more?.contains(event.target)) return;
  rail.open = !rail.open;
  build(rail, rail.frame);
  draw(rail);
}
