const STEP = 0.01, BIG = 0.05, PAUSE = 150, PATIENCE = 3000, REACH = { mouse: 8, pen: 12, touch: 18 };
const LIGHT = [199, 227, 235], STRONG = [11, 110, 143], STRUCTURE = [138, 143, 148], HINT = "Drag a boundary, or use arrow keys";
const bars = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bar");
  if (!bars.has(root)) bars.set(root, create(root, parentElement.querySelector(".note")));
  const bar = bars.get(root);
  bar.send = (shares) => setTriggerValue("moved", { shares, serial: bar.serial });
  receive(bar, data);
}

function create(root, note) {
  const bar = { root, note, serial: 0, waitUntil: 0, timer: 0, drag: null, shares: [], frame: "" };
  root.addEventListener("pointerdown", (event) => press(bar, event));
  root.addEventListener("pointermove", (event) => (bar.drag ? pull(bar, event) : hover(bar, event)));
  root.addEventListener("pointerup", () => release(bar));
  root.addEventListener("pointercancel", () => cancel(bar));
  root.addEventListener("pointerleave", () => hover(bar, null));
  root.addEventListener("keydown", (event) => key(bar, event));
  root.addEventListener("focusin", () => tell(bar));
  root.addEventListener("focusout", () => tell(bar));
  new ResizeObserver(() => fit(bar)).observe(root);
  return bar;
}

// What Python says is shown, but for an answer to an older move while a newer one is on its way.
function receive(bar, data) {
  bar.data = data;
  const frame = JSON.stringify([data.labels, data.locked, data.structure]);
  const waiting = data.serial < bar.serial && performance.now() < bar.waitUntil;
  if (frame === bar.frame && (bar.drag || bar.timer || waiting)) return;
  if (bar.timer) clearTimeout(bar.timer);
  Object.assign(bar, { drag: null, timer: 0, serial: Math.max(bar.serial, data.serial), shares: data.shares.slice() });
  if (frame !== bar.frame) build(bar, frame);
  draw(bar);
}

function build(bar, frame) {
  const focused = bar.frame ? bar.handles.indexOf(bar.root.getRootNode().activeElement) : -1;
  bar.frame = frame;
  bar.root.textContent = "";
  bar.parts = bar.data.labels.map((_, i) => add(bar.root, "div", "part", { role: "img" }, paint(bar.data.structure, i)));
  bar.parts.forEach((part, i) => part.classList.toggle("structure", bar.data.structure[i]));
  bar.parts.at(-1).classList.add("last");
  bar.handles = bar.data.labels.slice(1).map(() => add(bar.root, "div", "handle", { role: "slider" }, {}));
  for (const part of bar.parts) part.append(document.createElement("b"), document.createElement("span"));
  if (bar.handles[focused]) bar.handles[focused].focus({ preventScroll: true });
}

function add(parent, tag, name, attributes, style) {
  const element = document.createElement(tag);
  element.className = name;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  Object.assign(element.style, style);
  return parent.appendChild(element);
}

// Counts from light to strong in their order; what finds the structure in a colour of its own.
function paint(structure, i) {
  const counts = structure.map((_, k) => k).filter((k) => !structure[k]), t = counts.length > 1 ? counts.indexOf(i) / (counts.length - 1) : 1;
  const color = structure[i] ? STRUCTURE : LIGHT.map((from, k) => Math.round(from + t * (STRONG[k] - from)));
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return { backgroundColor: `rgb(${color})`, color: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff" };
}

const broken = (number) => number < 9.95 && Math.abs(number - Math.round(number)) > 0.04;
const percent = (share) => `${(100 * share).toFixed(broken(100 * share) ? 1 : 0)}\u00a0%`;
const about = (data, i) => (data.structure[i] ? ", structure" : "") + (data.locked[i] ? ", locked" : "");
const named = (bar, i) => `${bar.data.labels[i]}: ${percent(bar.shares[i])}${about(bar.data, i)}`;
const name = (bar, side) => (side.length === 1 ? bar.data.labels[side[0]] : bar.data.structure[side[0]] ? "structure" : "counts");
const told = (bar, side) => (side.length === 1 ? named(bar, side[0]) : `${name(bar, side)}: ${percent(total(bar.shares, side))}`);

// The unlocked parts on both sides of boundary i between which it moves share, or null: the nearest one on each side, or
// all of a kind where structure meets counts.
function sides(bar, i) {
  const { structure, locked } = bar.data, all = structure.map((_, k) => k), meet = structure[i] !== structure[i + 1];
  const left = all.slice(0, i + 1).reverse(), right = all.slice(i + 1);
  const both = [left, right].map((side) => {
    const end = meet ? side.findIndex((k) => structure[k] !== structure[side[0]]) : -1;
    const free = side.slice(0, end < 0 ? side.length : end).filter((k) => !locked[k]);
    return meet ? free : free.slice(0, 1);
  });
  return both.every((side) => side.length) ? both : null;
}

const total = (shares, side) => side.reduce((sum, k) => sum + shares[k], 0);

function move(bar, from, i, delta) {
  const [left, right] = sides(bar, i), before = total(from, left), both = before + total(from, right);
  const wanted = Math.min(both, Math.max(0, Math.round(1e6 * (before + delta)) / 1e6));
  bar.shares = from.slice();
  spread(bar, from, left, wanted);
  spread(bar, from, right, both - wanted);
  draw(bar);
}

// Share given to parts in proportion to what they had, evenly where that was nothing.
function spread(bar, from, side, share) {
  const before = total(from, side);
  for (const k of side) bar.shares[k] = before > 0 ? (share * from[k]) / before : share / side.length;
}

function draw(bar) {
  let sum = 0;
  bar.parts.forEach((part, i) => {
    Object.assign(part.style, { left: `${100 * sum}%`, width: `${100 * bar.shares[i]}%` });
    part.classList.toggle("locked", bar.data.locked[i]);
    part.title = named(bar, i);
    part.setAttribute("aria-label", part.title);
    part.firstChild.textContent = bar.data.labels[i];
    part.lastChild.textContent = percent(bar.shares[i]);
    sum += bar.shares[i];
    if (i < bar.handles.length) place(bar, i, sum);
  });
  fit(bar);
  tell(bar);
}

function place(bar, i, sum) {
  const handle = bar.handles[i], free = sides(bar, i) !== null, [left, right] = sides(bar, i) ?? [[i], [i + 1]];
  handle.style.left = `${100 * sum}%`;
  handle.tabIndex = free ? 0 : -1;
  const [now, both] = [left, [...left, ...right]].map((side) => Math.round(1000 * total(bar.shares, side)) / 10);
  const values = { valuemin: free ? 0 : now, valuemax: free ? both : now, valuenow: now, disabled: !free };
  for (const [key, value] of Object.entries(values)) handle.setAttribute(`aria-${key}`, value);
  handle.setAttribute("aria-valuetext", `${told(bar, left)}; ${told(bar, right)}`);
  handle.setAttribute("aria-label", `Boundary between ${name(bar, left)} and ${name(bar, right)}`);
}

// Texts are shown only in parts that have room for them.
function fit(bar) {
  const texts = bar.parts?.flatMap((part) => [...part.children]) ?? [];
  for (const text of texts) text.hidden = false;
  const tight = texts.map((text) => text.scrollWidth + 4 > text.parentElement.clientWidth);
  texts.forEach((text, k) => { text.hidden = tight[k]; });
}

function tell(bar) {
  const i = bar.drag?.handle ?? bar.handles.indexOf(bar.root.getRootNode().activeElement), near = bar.over ?? -1;
  const ends = i >= 0 ? sides(bar, i) : null;
  bar.note.textContent = ends ? ends.map((side) => told(bar, side)).join("   \u00b7   ") : near >= 0 ? named(bar, near) : HINT;
  bar.handles.forEach((handle, k) => handle.classList.toggle("moving", bar.drag?.handle === k));
}

// Boundaries under the pointer: several where parts between them are empty.
function reach(bar, event) {
  const box = bar.root.getBoundingClientRect(), x = event.clientX - box.left, limit = REACH[event.pointerType] ?? 8;
  let sum = 0;
  const places = bar.handles.map((_, i) => box.width * (sum += bar.shares[i]));
  const gaps = places.map((at, i) => (sides(bar, i) ? Math.abs(at - x) : Infinity)), least = Math.min(...gaps, limit);
  const best = places[gaps.indexOf(least)];
  return places.map((at, i) => i).filter((i) => gaps[i] < Infinity && Math.abs(places[i] - best) < 0.5);
}

function hover(bar, event) {
  const near = event ? reach(bar, event) : [];
  bar.root.style.cursor = near.length ? "col-resize" : "default";
  bar.handles.forEach((handle, i) => handle.classList.toggle("near", i === near[0]));
  bar.over = event ? bar.parts.indexOf(event.target.closest(".part")) : -1;
  tell(bar);
}

function press(bar, event) {
  const near = reach(bar, event);
  if (event.button !== 0 || !near.length) return;
  event.preventDefault();
  if (bar.timer) flush(bar);
  bar.root.setPointerCapture(event.pointerId);
  bar.drag = { near, handle: null, pointer: event.pointerId, x: event.clientX, from: bar.shares.slice() };
  bar.handles[near[0]].focus({ preventScroll: true });
}

function pull(bar, event) {
  const drag = bar.drag, way = event.clientX - drag.x, side = way < 0 ? 0 : 1;
  if (drag.handle === null && way !== 0) {
    const order = side ? drag.near.slice().reverse() : drag.near;
    drag.handle = order.find((i) => total(drag.from, sides(bar, i)[side]) > 0) ?? drag.near[0];
    bar.handles[drag.handle].focus({ preventScroll: true });
  }
  if (drag.handle !== null) move(bar, drag.from, drag.handle, way / bar.root.clientWidth);
}

function release(bar) {
  const drag = bar.drag;
  bar.drag = null;
  if (drag && drag.from.some((share, i) => share !== bar.shares[i])) flush(bar);
  else if (drag) receive(bar, bar.data);
  tell(bar);
}

function cancel(bar) {
  if (!bar.drag) return;
  const { from, pointer } = bar.drag;
  bar.drag = null;
  bar.root.releasePointerCapture(pointer);
  bar.shares = from;
  draw(bar);
  receive(bar, bar.data);
}

function key(bar, event) {
  const i = bar.handles.indexOf(event.target);
  if (event.key === "Escape" && bar.drag) return cancel(bar);
  if (i < 0 || bar.drag || !sides(bar, i) || event.ctrlKey || event.altKey || event.metaKey) return;
  const step = event.shiftKey ? BIG : STEP;
  const ways = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -BIG, PageUp: BIG, Home: -1, End: 1 };
  if (!(event.key in ways)) return;
  event.preventDefault();
  event.stopPropagation();
  move(bar, bar.shares, i, ways[event.key]);
  clearTimeout(bar.timer);
  bar.timer = setTimeout(() => flush(bar), PAUSE);
}

function flush(bar) {
  clearTimeout(bar.timer);
  Object.assign(bar, { timer: 0, serial: bar.serial + 1, waitUntil: performance.now() + PATIENCE });
  if (bar.root.isConnected) bar.send(bar.shares);
}
