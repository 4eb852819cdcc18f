const PAUSE = 250, ROOM = { wide: 1000, narrow: 300 }, LETTER = 8, THIN = 0.8;  // milliseconds; pixels of the strip, of a letter; share of a bar's place
const NS = "http://www.w3.org/2000/svg";
const strips = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".profile");
  if (!strips.has(root)) strips.set(root, create(root));
  const strip = strips.get(root);
  strip.send = (message) => setTriggerValue("sent", message);
  receive(strip, data);
}

function create(root) {
  const find = (name) => root.querySelector(`.${name}`);
  const strip = { root, said: find("said"), all: find("all"), key: find("key"), scale: find("scale"), chart: find("chart"), svg: root.querySelector("svg"), slots: find("slots"), groups: find("groups"), table: root.querySelector("table"), serial: 0, drag: null, timer: 0, waits: 0 };
  const { chart } = strip;
  chart.addEventListener("pointerdown", (event) => grab(strip, event));
  chart.addEventListener("pointermove", (event) => strip.drag && pull(strip, barAt(strip, event)));
  chart.addEventListener("pointerup", () => strip.drag && settle(strip));
  for (const name of ["pointercancel", "lostpointercapture"]) chart.addEventListener(name, () => strip.drag && cancel(strip));
  chart.addEventListener("keydown", (event) => key(strip, event));
  strip.all.addEventListener("click", () => { choose(strip, null); settle(strip); });
  return strip;
}

// What Python says is shown, except for what was chosen here since.
function receive(strip, data) {
  strip.serial = Math.max(strip.serial, data.serial);
  if (data.serial >= strip.waits) strip.waits = 0;
  strip.data = data;
  if (!strip.drag && !strip.timer && !strip.waits) {
    const at = (slot) => data.bars.findIndex((bar) => bar.first <= slot && slot <= bar.last);
    const ends = data.chosen && data.chosen.map(at);
    if (!ends || !strip.ends || Math.min(...strip.ends) !== ends[0] || Math.max(...strip.ends) !== ends[1]) strip.ends = ends;
  }
  build(strip);
  draw(strip);
}

const add = (parent, tag, name, attributes = {}, space = null) => {
  const element = parent.appendChild(space ? document.createElementNS(space, tag) : document.createElement(tag));
  if (name) element.setAttribute("class", name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element;
};

const whole = (number) => Math.round(number).toLocaleString("en");
const ends = (bar) => [Math.floor(bar.low), Math.ceil(bar.high)].map((end) => whole(Math.max(end, 0)));  // no count is below 0
const describe = (bar) => `${bar.name}: ${whole(bar.count)} (95 %: ${ends(bar).join(" to ")})${bar.true === null ? "" : `, true ${whole(bar.true)}`}`;

function build(strip) {
  const { data, svg, scale, slots, groups, key: legend } = strip, { bars } = data, n = bars.length;
  const top = Math.max(1, ...bars.map((bar) => Math.max(bar.high, bar.count, bar.true ?? 0))), bottom = Math.min(0, ...bars.map((bar) => bar.low));
  const y = (value) => (100 * (top - value)) / (top - bottom), part = (tag, name, attributes) => add(svg, tag, name, attributes, NS);
  strip.root.classList.toggle("dark", data.dark);
  svg.textContent = "";
  svg.setAttribute("viewBox", `0 0 ${n} 100`);
  strip.band = part("rect", "band", { y: 0, height: 100 });
  strip.parts = bars.map((bar, i) => {
    const [x, left] = [i + 0.5, i + (1 - THIN) / 2], made = part("g", "", {});
    add(made, "rect", "bar", { x: left, width: THIN, y: y(Math.max(bar.count, 0)), height: Math.abs(y(bar.count) - y(0)) }, NS);
    add(made, "path", "whisker", { d: `M${x} ${y(bar.low)}V${y(bar.high)}M${x - 0.15} ${y(bar.high)}h.3M${x - 0.15} ${y(bar.low)}h.3` }, NS);
    return made;
  });
  part("line", "axis", { x1: 0, x2: n, y1: y(0), y2: y(0) });
  if (bars[0].true !== null) part("path", "true", { d: bars.map((bar, i) => `${i ? "L" : "M"}${i} ${y(bar.true)}h1`).join("") });
  bars.forEach((bar, i) => { add(part("rect", "hit", { x: i, width: 1, y: 0, height: 100 }), "title", "", {}, NS).textContent = describe(bar); });
  for (const [name, value] of [["top", top], ["zero", 0]]) Object.assign(scale.querySelector(`.${name}`), { textContent: whole(value) }).style.top = `${y(value)}%`;
  const longest = Math.max(...bars.map((bar) => bar.name.length)) * LETTER, every = (room) => Math.max(1, Math.ceil((n * longest) / room));
  slots.textContent = groups.textContent = legend.textContent = "";
  strip.names = bars.map((bar, i) => add(slots, "span", `${i % every(ROOM.wide) ? "" : "wide"}${i % every(ROOM.narrow) ? "" : " narrow"}`));
  strip.names.forEach((name, i) => { name.textContent = bars[i].name; });
  groups.style.gridTemplateColumns = `repeat(${bars.at(-1).last + 1}, minmax(0, 1fr))`;
  strip.labels = data.groups.flatMap((level, row) => level.map(([name, first, last]) => addGroup(strip, { name, first, last, row })));
  for (const [name, words] of [["", "released"], ["whisker", "95 % of the unbiased estimate"], ["line", "true"]].slice(0, bars[0].true === null ? 2 : 3)) {
    const entry = add(legend, "span", "");
    add(entry, "i", name);
    entry.append(words);
  }
  list(strip);
}

function addGroup(strip, { name, first, last, row }) {
  const { bars } = strip.data, label = add(strip.groups, "button", "", { type: "button", tabindex: -1 });
  Object.assign(label, { textContent: name, title: name }).style.gridArea = `${row + 1} / ${first + 1} / auto / ${last + 2}`;
  label.addEventListener("click", () => {
    choose(strip, bars.findIndex((bar) => bar.first === first), bars.findIndex((bar) => bar.last === last));
    settle(strip);
  });
  return { label, first, last };
}

// The numbers for readers of tables.
function list(strip) {
  const { bars, by, unit } = strip.data;
  strip.table.textContent = "";
  add(strip.table, "caption", "").textContent = `Released ${unit} by ${by}`;
  const row = (cells, tag) => cells.reduce((made, cell) => { add(made, tag, "").textContent = cell; return made; }, add(strip.table, "tr", ""));
  row([by, "released", "95 % from", "to", ...(bars[0].true === null ? [] : ["true"])], "th");
  for (const bar of bars) row([bar.name, whole(bar.count), ...ends(bar), ...(bar.true === null ? [] : [whole(bar.true)])], "td");
}

const range = (strip) => (strip.ends ? [Math.min(...strip.ends), Math.max(...strip.ends)] : null);

function draw(strip) {
  const { data, ends } = strip, { bars } = data, [first, last] = range(strip) ?? [0, bars.length - 1], inside = (i) => first <= i && i <= last;
  strip.parts.forEach((part, i) => part.setAttribute("class", inside(i) ? "" : "out"));
  strip.names.forEach((name, i) => name.classList.toggle("on", Boolean(ends) && inside(i)));
  for (const [name, value] of [["x", first], ["width", ends ? last + 1 - first : 0]]) strip.band.setAttribute(name, value);
  for (const { label, first: from, last: to } of strip.labels) label.classList.toggle("on", Boolean(ends) && bars[first].first === from && bars[last].last === to);
  const same = JSON.stringify(ends && [bars[first].first, bars[last].last]) === JSON.stringify(data.chosen), named = name(strip);
  strip.said.textContent = same ? data.said : `${named}: ~${whole(bars.reduce((sum, bar, i) => sum + (inside(i) ? bar.count : 0), 0))} ${data.unit}`;
  Object.assign(strip.all, { textContent: data.every, hidden: !ends });
  for (const [attribute, value] of Object.entries({ "aria-label": `Shown by ${data.by}`, "aria-valuemax": bars.length - 1, "aria-valuenow": first, "aria-valuetext": named })) strip.chart.setAttribute(attribute, value);
}

function name(strip) {
  const { bars, every } = strip.data, [first, last] = range(strip) ?? [0, 0];
  if (!strip.ends) return every;
  const label = strip.labels.find((each) => each.first === bars[first].first && each.last === bars[last].last);
  return label?.label.textContent ?? (first === last ? bars[first].name : `${bars[first].name} to ${bars[last].name}`);
}

function choose(strip, from, to = from) {
  strip.ends = from === null ? null : [from, to];
  draw(strip);
}

function settle(strip) {
  clearTimeout(strip.timer);
  const { bars } = strip.data, [first, last] = range(strip) ?? [0, bars.length - 1], slots = strip.ends && [bars[first].first, bars[last].last];
  Object.assign(strip, { drag: null, timer: 0 });
  if (JSON.stringify(slots) === JSON.stringify(strip.data.chosen)) return draw(strip);
  strip.serial = strip.waits = strip.serial + 1;
  strip.send({ slots, serial: strip.serial });
}

const barAt = (strip, event) => {
  const box = strip.chart.getBoundingClientRect(), n = strip.data.bars.length;
  return Math.min(n - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * n)));
};

// A press on the only slot that is shown takes it back.
function grab(strip, event) {
  if (event.button !== 0) return;
  event.preventDefault();
  clearTimeout(strip.timer);
  strip.timer = 0;
  const from = barAt(strip, event), again = strip.ends && strip.ends[0] === from && strip.ends[1] === from;
  strip.chart.setPointerCapture(event.pointerId);
  strip.chart.focus({ preventScroll: true });
  strip.drag = { from, at: from, before: strip.ends };
  choose(strip, again ? null : from);
}

function pull(strip, at) {
  if (at === strip.drag.at) return;
  strip.drag.at = at;
  choose(strip, strip.drag.from, at);
}

function cancel(strip) {
  strip.ends = strip.drag.before;
  strip.drag = null;
  draw(strip);
}

// Arrow keys move the slots, and with Shift their second end; Page keys go to the next of the coarser categories.
function key(strip, event) {
  if (event.ctrlKey || event.altKey || event.metaKey || strip.drag) return;
  const n = strip.data.bars.length, way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key], page = { PageUp: -1, PageDown: 1 }[event.key];
  if (event.key === "Escape" && strip.ends) choose(strip, null);
  else if (event.key === "Home" || event.key === "End") choose(strip, event.key === "Home" ? 0 : n - 1);
  else if (way) moveEnds(strip, way, event.shiftKey);
  else if (page) turn(strip, page);
  else return;
  event.preventDefault();
  event.stopPropagation();
  clearTimeout(strip.timer);
  strip.timer = setTimeout(() => settle(strip), PAUSE);
}

function moveEnds(strip, way, widens) {
  const last = strip.data.bars.length - 1;
  if (!strip.ends) return choose(strip, way > 0 ? 0 : last);
  const [anchor, end] = strip.ends, low = Math.min(anchor, end), high = Math.max(anchor, end), step = low + way < 0 || high + way > last ? 0 : way;
  if (widens) choose(strip, anchor, Math.min(last, Math.max(0, end + way)));
  else choose(strip, anchor + step, end + step);
}

function turn(strip, way) {
  const { bars, groups } = strip.data, level = groups.at(-1) ?? bars.map((bar) => [bar.name, bar.first, bar.last]);
  const at = strip.ends ? level.findIndex(([, first, last]) => first <= bars[range(strip)[0]].first && bars[range(strip)[0]].first <= last) : way > 0 ? -1 : level.length;
  const [, first, last] = level[Math.min(level.length - 1, Math.max(0, at + way))];
  choose(strip, bars.findIndex((bar) => bar.first === first), bars.findIndex((bar) => bar.last === last));
}
