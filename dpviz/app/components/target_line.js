// A target on a chart: a line across its plot, which is dragged or moved by keys. The plot is measured in the drawing of the chart.
const STEP = 0.01, BIG = 0.1, PAUSE = 250;  // shares of the axis, and milliseconds after the last key
const UP = { log: Math.log, percent: (error) => error, count: Math.log1p }, DOWN = { log: Math.exp, percent: (height) => height, count: Math.expm1 };
const lines = new WeakMap();

// A move is a state with a number, not an event: an event may be lost where the page runs again at that moment.
export default function mount({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".target");
  if (!lines.has(root)) lines.set(root, create(root));
  const line = lines.get(root);
  Object.assign(line, { data, send: (error) => setStateValue("moved", { error, at: Date.now() }) });
  if (!line.dragged && !line.timer) line.error = data.error;
  watch(line);
  place(line);
}

function create(root) {
  const line = { root, dragged: false, timer: 0 };
  root.addEventListener("pointerdown", (event) => grab(line, event));
  root.addEventListener("pointermove", (event) => line.dragged && pull(line, event));
  root.addEventListener("pointerup", () => line.dragged && settle(line));
  root.addEventListener("pointercancel", () => letGo(line));
  root.addEventListener("keydown", (event) => step(line, event));
  line.changes = new MutationObserver(() => place(line));
  line.sizes = new ResizeObserver(() => place(line));
  return line;
}

// The chart may be drawn after the line, and is drawn anew with each change: what holds both is watched.
function watch(line) {
  const chart = document.querySelector(line.data.around);
  if (!chart || chart === line.chart) return;
  line.chart = chart;
  line.changes.observe(chart, { attributes: true, childList: true, subtree: true });
  line.sizes.observe(chart);
}

const plotOf = (line) => line.chart?.querySelector("svg .role-frame.root .background")?.getBoundingClientRect();

function place(line) {
  const { root, data, error } = line, plot = plotOf(line), base = root.parentElement.getBoundingClientRect();
  if (!root.isConnected) return [line.changes, line.sizes].forEach((each) => each.disconnect());
  root.hidden = !plot?.height && !root.matches(":focus");  // what is hidden loses the focus; the chart is away while it is drawn anew
  if (!plot?.height) return;
  const [low, high] = data.ends.map(UP[data.scale]), share = Math.min(1, Math.max(0, (UP[data.scale](error) - low) / (high - low)));
  Object.assign(root.style, { left: `${plot.left - base.left}px`, width: `${plot.width}px`, top: `${plot.bottom - base.top - share * plot.height}px` });
  const values = { valuemin: data.ends[0], valuemax: data.ends[1], valuenow: error, valuetext: `${error} ${data.unit}` };
  for (const [name, value] of Object.entries(values)) root.setAttribute(`aria-${name}`, value);
  root.querySelector("span").textContent = `${error} ${data.unit}`;
  root.classList.toggle("moving", line.dragged || line.timer > 0);
  line.share = share;
}

function moveTo(line, share) {
  const { ends, scale } = line.data, [low, high] = ends.map(UP[scale]), within = Math.min(1, Math.max(0, share));
  line.error = Number(DOWN[scale](low + within * (high - low)).toPrecision(3));
  place(line);
}

function grab(line, event) {
  if (event.button !== 0) return;
  event.preventDefault();
  line.root.setPointerCapture(event.pointerId);
  line.root.focus({ preventScroll: true });
  line.dragged = true;
}

function pull(line, event) {
  const plot = plotOf(line);
  if (plot) moveTo(line, (plot.bottom - event.clientY) / plot.height);
}

function letGo(line) {
  Object.assign(line, { dragged: false, error: line.data.error });
  place(line);
}

function settle(line) {
  clearTimeout(line.timer);
  Object.assign(line, { dragged: false, timer: 0 });
  place(line);
  if (line.root.isConnected && line.error !== line.data.error) line.send(line.error);
}

function step(line, event) {
  if (event.key === "Escape" && line.dragged) return letGo(line);
  if (line.dragged || event.ctrlKey || event.altKey || event.metaKey) return;
  const small = event.shiftKey ? BIG : STEP, ways = { ArrowUp: small, ArrowRight: small, ArrowDown: -small, ArrowLeft: -small, PageUp: BIG, PageDown: -BIG, Home: -1, End: 1 };
  if (!(event.key in ways)) return;
  event.preventDefault();
  clearTimeout(line.timer);
  line.timer = setTimeout(() => settle(line), PAUSE);
  moveTo(line, line.share + ways[event.key]);
}
