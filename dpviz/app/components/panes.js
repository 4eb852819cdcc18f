// Two or more maps of one area in one deck.gl canvas: one camera, linked hover, a swipe bar, a box that is dragged. deck.gl itself comes from
// the loader component, under a name of its own.
const POLL = 40, SETTLED = 600, NARROW = 640, PADDING = 14, STEP = 80, MOST_LINES = 6000, CLICK = 5;
const held = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".canvas");
  if (!held.has(root)) held.set(root, create(root));
  const canvas = held.get(root);
  canvas.send = (name, value) => setTriggerValue(name, value);
  canvas.scene = unpack(data);
  attempt(canvas);
  return () => finish(canvas);
}

function create(root) {
  const find = (name) => root.querySelector(`.${name}`);
  const canvas = { root, map: find("map"), heads: find("heads"), tools: find("tools"), live: find("live"), layout: "side", cut: 0.5, boxing: false };
  canvas.cover = add(canvas.map, "div", "cover");
  canvas.bar = add(canvas.cover, "div", "bar", { role: "slider", tabindex: "0", "aria-label": "Swipe between the maps", "aria-valuemin": "0", "aria-valuemax": "100" });
  canvas.frame = add(canvas.cover, "div", "box");
  canvas.cross = add(canvas.cover, "div", "cross");
  canvas.cross.hidden = true;
  canvas.tips = [];
  canvas.watch = new ResizeObserver(() => { if (canvas.deck) { fitHeight(canvas); arrange(canvas); } });
  canvas.watch.observe(canvas.map);
  listen(canvas);
  return canvas;
}

function finish(canvas) {
  clearTimeout(canvas.waiting);
  clearTimeout(canvas.settling);
  canvas.watch.disconnect();
  for (const name of ["pointerup", "pointercancel"]) window.removeEventListener(name, canvas.letGo);
  canvas.deck?.finalize();
  held.delete(canvas.root);
}

// The loader may be mounted later than this component, or fail: then Python shows the maps in another way.
function attempt(canvas) {
  clearTimeout(canvas.waiting);
  if (globalThis.dpvizDeckError) {
    if (!canvas.failed) canvas.send("failed", { reason: String(globalThis.dpvizDeckError).slice(0, 200) });
    canvas.failed = true;
  } else if (!globalThis.dpvizDeck) canvas.waiting = setTimeout(() => attempt(canvas), POLL);
  else show(canvas, globalThis.dpvizDeck.deck);
}

// A message is the length of a JSON header, the header, and the arrays that it names with their types and lengths.
function unpack(data) {
  const bytes = (data instanceof Uint8Array ? data : new Uint8Array(data)).slice(), size = new DataView(bytes.buffer).getUint32(0, true);
  const scene = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  let at = 4 + size;
  const arrays = {};
  for (const [name, kind, length] of scene.arrays) {
    const end = at + length * kinds[kind].BYTES_PER_ELEMENT;
    arrays[name] = new kinds[kind](bytes.slice(at, end).buffer);
    at = end;
  }
  scene.arrays = arrays;
  return scene;
}

function show(canvas, deck) {
  const started = performance.now(), { scene } = canvas;
  const home = JSON.stringify([scene.bounds, scene.camera]), moved = canvas.home !== home;
  fitHeight(canvas);
  canvas.cells = Object.fromEntries(Object.entries(scene.cells).map(([name, about]) => [name, build(scene, name, about)]));
  if (!canvas.deck) canvas.deck = start(canvas, deck);
  label(canvas);
  if (moved) {
    canvas.home = home;
    canvas.camera = scene.camera ?? fit(canvas, deck);
  }
  arrange(canvas);
  canvas.hover = null;  // its rectangles are those of the scene before
  draw(canvas, deck);
  if (canvas.seen) showTips(canvas, canvas.seen);
  Object.assign(canvas.root.dataset, { shown: scene.key, runs: String(Number(canvas.root.dataset.runs ?? 0) + 1), ms: String(Math.round(performance.now() - started)) });
}

function start(canvas, deck) {
  return new deck.Deck({
    parent: canvas.map,
    views: [new deck.MapView({ id: "0", controller: true })],
    viewState: { 0: { longitude: 0, latitude: 0, zoom: 0 } },
    layers: [],
    layerFilter: ({ layer, viewport }) => layer.id.startsWith("all:") || layer.id.startsWith(`${viewport.id}:`),
    onViewStateChange: ({ viewId, viewState, interactionState }) => moveCamera(canvas, viewId, viewState, interactionState),
    onError: (error) => { canvas.root.dataset.error = String(error); },
    onLoad: () => requestAnimationFrame(() => setTimeout(() => begin(canvas))),
  });
}

// The first frame of deck.gl has not yet the size of the map: it stays empty, since all would be drawn again at once.
function begin(canvas) {
  if (!held.has(canvas.root)) return;
  canvas.sized = true;
  names(canvas);
}

// Maps that lie over each other, on a narrow screen, need more height.
function fitHeight(canvas) {
  const { scene } = canvas, narrow = canvas.root.clientWidth < NARROW && count(canvas) > 1 && !swipes(canvas);
  canvas.root.style.height = `${Math.round(scene.height * (narrow ? 0.8 + 0.35 * count(canvas) : 1))}px`;
}

const size = (canvas) => [Math.max(canvas.map.clientWidth, 1), Math.max(canvas.map.clientHeight, 1)];
const isNarrow = (canvas) => canvas.map.clientWidth < NARROW;
const count = (canvas) => canvas.scene.panes.length;
const swipes = (canvas) => canvas.layout === "swipe" && count(canvas) === 2;

// Where each pane lies in the canvas, in pixels.
function places(canvas) {
  const [width, height] = size(canvas), n = count(canvas);
  if (swipes(canvas)) {
    const cut = Math.round(canvas.cut * width);
    return [{ x: 0, y: 0, width: cut, height }, { x: cut, y: 0, width: width - cut, height }];
  }
  const columns = n === 1 || isNarrow(canvas) ? 1 : 2, rows = Math.ceil(n / columns), gap = 2;
  return canvas.scene.panes.map((_, i) => {
    const x = Math.round((i % columns) * (width / columns)), y = Math.round(Math.floor(i / columns) * (height / rows));
    const right = Math.round((1 + (i % columns)) * (width / columns)), bottom = Math.round((1 + Math.floor(i / columns)) * (height / rows));
    return { x, y, width: right - x - (i % columns + 1 < columns ? gap : 0), height: bottom - y - (Math.floor(i / columns) + 1 < rows ? gap : 0) };
  });
}

// With the swipe bar both panes show parts of one map, so their centres differ by the distance of the panes' middles.
const shift = (canvas, place) => (swipes(canvas) ? (place.x + place.width / 2 - size(canvas)[0] / 2) : 0);
const degrees = (pixels, zoom) => (pixels * 360) / (512 * 2 ** zoom);

function arrange(canvas) {
  const { deck } = globalThis.dpvizDeck, all = places(canvas), views = {}, { camera } = canvas;
  canvas.places = all;
  all.forEach((place, i) => {
    views[i] = { ...camera, longitude: camera.longitude + degrees(shift(canvas, place), camera.zoom), minZoom: canvas.scene.zooms[0], maxZoom: canvas.scene.zooms[1] };
  });
  const controller = { dragPan: !canvas.boxing, keyboard: false, scrollZoom: { smooth: false, speed: 0.01 }, dragRotate: false, touchRotate: false, doubleClickZoom: true };
  canvas.deck.setProps({
    views: all.map((place, i) => new deck.MapView({ id: String(i), ...place, controller })),
    viewState: views,
  });
  const bar = canvas.bar.style, cut = Math.round(100 * canvas.cut);
  bar.display = swipes(canvas) ? "" : "none";
  bar.left = `${100 * canvas.cut}%`;
  canvas.bar.setAttribute("aria-valuenow", cut);
  canvas.bar.setAttribute("aria-valuetext", `${cut} % ${canvas.scene.panes[0].title}`);
  canvas.heads.classList.toggle("stacked", all.length > 1 && !swipes(canvas) && all[0].width === all.at(-1).width && all[0].x === all.at(-1).x);
  canvas.root.dataset.camera = JSON.stringify(camera);
  canvas.root.dataset.layout = swipes(canvas) ? "swipe" : "side";
  placeHeads(canvas);
  names(canvas);
  drawBox(canvas);
}

function moveCamera(canvas, viewId, state, interaction) {
  const place = canvas.places[Number(viewId)];
  if (!place) return;
  const longitude = state.longitude - degrees(shift(canvas, place), state.zoom), { camera } = canvas;
  const moved = Math.hypot(longitude - camera.longitude, state.latitude - camera.latitude, state.zoom - camera.zoom) > 1e-9;
  if (moved) setCamera(canvas, { longitude, latitude: state.latitude, zoom: state.zoom });
  if (interaction?.isDragging) forgetHover(canvas);
}

function setCamera(canvas, { longitude, latitude, zoom }) {
  const [least, most] = canvas.scene.zooms;
  canvas.camera = { longitude, latitude: Math.max(-85, Math.min(85, latitude)), zoom: Math.max(least, Math.min(most, zoom)) };
  arrange(canvas);
  clearTimeout(canvas.settling);
  canvas.settling = setTimeout(() => canvas.send("camera", canvas.camera), SETTLED);
}

function fit(canvas, deck) {
  canvas.places = places(canvas);
  const [width, height] = swipes(canvas) ? size(canvas) : [canvas.places[0].width, canvas.places[0].height];
  const [west, south, east, north] = canvas.scene.bounds, padding = Math.min(PADDING, width / 5, height / 5);
  const view = new deck.WebMercatorViewport({ width, height }).fitBounds([[west, south], [east, north]], { padding });
  return { longitude: view.longitude, latitude: view.latitude, zoom: view.zoom };
}

// Rectangles as lattice lines, or corners as parts of the bounds in 65,535ths, become (n, 4) corners in degrees.
function build(scene, name, { side }) {
  const { arrays, bounds: [west, south, east, north] } = scene, lines = arrays[`${name} lines`], corners = arrays[`${name} corners`];
  const n = lines ? lines.length / 4 : corners.length / 8, quads = new Float64Array(8 * n);
  if (lines) {
    for (let i = 0; i < n; i += 1) {
      const w = west + ((east - west) * lines[4 * i]) / side, s = south + ((north - south) * lines[4 * i + 1]) / side;
      const e = west + ((east - west) * lines[4 * i + 2]) / side, t = south + ((north - south) * lines[4 * i + 3]) / side;
      quads.set([w, s, e, s, e, t, w, t], 8 * i);
    }
  } else {
    for (let k = 0; k < 8 * n; k += 2) {
      quads[k] = west + ((east - west) * corners[k]) / 65535;
      quads[k + 1] = south + ((north - south) * corners[k + 1]) / 65535;
    }
  }
  const positions = new Float64Array(10 * n), starts = new Uint32Array(n + 1);
  for (let i = 0; i < n; i += 1) {
    positions.set(quads.subarray(8 * i, 8 * i + 8), 10 * i);
    positions.set(quads.subarray(8 * i, 8 * i + 2), 10 * i + 8);
    starts[i + 1] = 5 * (i + 1);
  }
  return { n, quads, positions, starts };
}

function paint(scene, pane) {
  const shades = scene.arrays[pane.shades], palette = scene.arrays[pane.palette], out = new Uint8Array(20 * shades.length);
  for (let i = 0; i < shades.length; i += 1) {
    const color = palette.subarray(4 * shades[i], 4 * shades[i] + 4);
    for (let k = 0; k < 5; k += 1) out.set(color, 20 * i + 4 * k);
  }
  return out;
}

function draw(canvas, deck) {
  const { scene } = canvas, line = scene.line;
  const flat = { pickable: false, parameters: { depthCompare: "always" } };
  const land = new deck.PolygonLayer({ id: "all:land", data: scene.ground.land, getPolygon: (rings) => rings, filled: true, stroked: true, getFillColor: scene.land, getLineColor: line, lineWidthMinPixels: 1, lineWidthMaxPixels: 1, ...flat });
  const path = (id, data, width, color = line) => new deck.PathLayer({ id: `all:${id}`, data, getPath: (points) => points, getColor: color, widthMinPixels: width, widthMaxPixels: width, ...flat });
  const cells = scene.panes.flatMap((pane, i) => paneLayers(canvas, deck, pane, i));
  canvas.base = [land, ...cells, path("countries", scene.ground.borders, 1), path("states", scene.ground.states, 0.7), path("edge", scene.edge, 1.5)];
  canvas.zoomOfNames = null;
  names(canvas);
}

function paneLayers(canvas, deck, pane, i) {
  const { scene } = canvas, flat = { pickable: false, parameters: { depthCompare: "always" } };
  if (pane.picture) {
    const key = `${scene.key} ${pane.picture}`;
    if (canvas.pictures?.[i]?.key !== key) loadPicture(canvas, deck, i, key, scene.arrays[pane.picture]);
    const image = canvas.pictures?.[i]?.image;
    return image ? [new deck.BitmapLayer({ id: `${i}:picture`, image, bounds: scene.bounds, ...flat })] : [];
  }
  const cells = canvas.cells[pane.cells];
  const polygons = { length: cells.n, startIndices: cells.starts, attributes: { getPolygon: { value: cells.positions, size: 2 }, getFillColor: { value: paint(scene, pane), size: 4 } } };
  const layers = [new deck.SolidPolygonLayer({ id: `${i}:cells`, data: polygons, filled: true, extruded: false, _normalize: false, ...flat })];
  if (cells.n <= MOST_LINES) {
    const outlines = { length: cells.n, startIndices: cells.starts, attributes: { getPath: { value: cells.positions, size: 2 } } };
    layers.push(new deck.PathLayer({ id: `${i}:lines`, data: outlines, _pathType: "open", getColor: [128, 128, 128, 70], widthMinPixels: 0.5, widthMaxPixels: 0.5, ...flat }));
  }
  return layers;
}

function loadPicture(canvas, deck, i, key, bytes) {
  canvas.pictures = { ...canvas.pictures, [i]: { key } };
  createImageBitmap(new Blob([bytes], { type: "image/png" })).then((image) => {
    if (canvas.pictures[i].key !== key) return;
    canvas.pictures[i].image = image;
    draw(canvas, deck);
  });
}

// Names come thinned for every whole zoom level, so that they do not overlap; the layer changes only when other names are shown.
function names(canvas) {
  if (!canvas.base) return;
  const { deck } = globalThis.dpvizDeck, { scene } = canvas, { places: all, text, halo } = scene, zoom = Math.floor(4 * canvas.camera.zoom) / 4;
  if (zoom !== canvas.zoomOfNames) {
    canvas.zoomOfNames = zoom;
    const data = all.filter(([, , , from]) => from <= zoom);
    canvas.names = data.length && new deck.TextLayer({ id: "all:names", data, getPosition: (d) => [d[1], d[2]], getText: (d) => d[0], getSize: scene.textSize, getColor: text, background: true, getBackgroundColor: halo, backgroundPadding: [2, 0], fontFamily: "sans-serif", characterSet: "auto", pickable: false, parameters: { depthCompare: "always" } });
    canvas.root.dataset.names = String(data.length);
  }
  if (canvas.sized) canvas.deck.setProps({ layers: [...canvas.base, ...marks(canvas, deck), canvas.names].filter(Boolean) });
}

// The cell under the pointer, outlined in every pane, and the box of the range query.
function marks(canvas, deck) {
  const layers = [], ring = (id, points, color, width) => layers.push(new deck.PathLayer({ id, data: [points], getPath: (d) => d, getColor: color, widthMinPixels: width, widthMaxPixels: width, pickable: false, parameters: { depthCompare: "always" } }));
  (canvas.hover ?? []).forEach((found, i) => {
    if (found >= 0) ring(`${i}:hover`, closed(canvas.cells[canvas.scene.panes[i].cells].quads, found), canvas.scene.accent, 2.5);
  });
  if (canvas.scene.box) {
    const [west, south, east, north] = canvas.scene.box;
    ring("all:box", [[west, south], [east, south], [east, north], [west, north], [west, south]], canvas.scene.boxColor, 2);
  }
  return layers;
}

const closed = (quads, i) => [0, 2, 4, 6, 0].map((k) => [quads[8 * i + k], quads[8 * i + k + 1]]);

// The last cell drawn that holds a point; -1 if there is none.
function cellAt({ n, quads }, x, y) {
  for (let i = n - 1; i >= 0; i -= 1) {
    let inside = true;
    for (let k = 0; k < 8 && inside; k += 2) {
      const m = (k + 2) % 8, ax = quads[8 * i + k], ay = quads[8 * i + k + 1];
      inside = (quads[8 * i + m] - ax) * (y - ay) - (quads[8 * i + m + 1] - ay) * (x - ax) >= 0;
    }
    if (inside) return i;
  }
  return -1;
}

// What a pane says about a point: its numbers in the words that Python wrote.
function describe(canvas, i, found) {
  const { scene } = canvas, pane = scene.panes[i], { near } = scene.cells[pane.cells];
  const number = (field) => scene.arrays[`${pane.cells} ${field}`][found] + (near[field] ? number(near[field]) : 0);
  return pane.words.replace(/\{(\w+)\}/g, (_, field) => number(field).toLocaleString("en-US"));
}

function lookAt(canvas, x, y) {
  canvas.seen = { longitude: x, latitude: y };
  const { panes } = canvas.scene;
  canvas.hover = panes.map((pane) => (pane.picture ? -1 : cellAt(canvas.cells[pane.cells], x, y)));
  canvas.texts = panes.map((_, i) => (canvas.hover[i] < 0 ? "" : describe(canvas, i, canvas.hover[i])));
  names(canvas);
  canvas.root.dataset.hover = canvas.texts.join(" | ");
}

function forgetHover(canvas) {
  canvas.hover = canvas.seen = null;
  canvas.tips.forEach((tip) => { tip.hidden = true; });
  canvas.cross.hidden = true;
  delete canvas.root.dataset.hover;
}

function viewport(canvas, i) {
  return canvas.deck.getViewports().find((each) => each.id === String(i));
}

function pointAt(canvas, event) {
  const box = canvas.map.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const i = canvas.places.findIndex((place) => x >= place.x && x < place.x + place.width && y >= place.y && y < place.y + place.height);
  if (i < 0) return null;
  const [longitude, latitude] = viewport(canvas, i).unproject([x - canvas.places[i].x, y - canvas.places[i].y]);
  return { i, x, y, longitude, latitude };
}

// Each pane has a tip of its own; the same place is marked in all of them.
function showTips(canvas, { longitude, latitude }) {
  lookAt(canvas, longitude, latitude);
  while (canvas.tips.length < count(canvas)) canvas.tips.push(add(canvas.cover, "div", "tip"));
  canvas.tips.forEach((tip, i) => {
    const text = canvas.texts[i], place = canvas.places[i], same = canvas.texts.findIndex((other) => other === text) < i;
    tip.hidden = !text || !place || (swipes(canvas) && same);
    if (tip.hidden) return;
    const [x, y] = viewport(canvas, i).project([longitude, latitude]);
    tip.textContent = text;
    const left = Math.max(place.x + 4, Math.min(place.x + x + 14, place.x + place.width - tip.offsetWidth - 4));
    const above = y > place.height - tip.offsetHeight - 24;
    Object.assign(tip.style, { left: `${left}px`, top: `${place.y + (above ? y - tip.offsetHeight - 10 : y + 14)}px` });
  });
}

function listen(canvas) {
  const { map, bar } = canvas;
  map.addEventListener("pointermove", (event) => {
    if (!canvas.deck || canvas.press) return pull(canvas, event);
    const at = event.target.closest?.(".bar") ? null : pointAt(canvas, event);
    if (!at) return forgetHover(canvas), names(canvas);
    cancelAnimationFrame(canvas.frameRequest);
    canvas.frameRequest = requestAnimationFrame(() => showTips(canvas, at));
  });
  map.addEventListener("pointerleave", () => { cancelAnimationFrame(canvas.frameRequest); forgetHover(canvas); names(canvas); });
  map.addEventListener("pointerdown", (event) => press(canvas, event), true);
  map.addEventListener("pointerup", (event) => release(canvas, event), true);
  canvas.letGo = () => setTimeout(() => { canvas.press = null; });  // a press may be let go outside the map
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, canvas.letGo);
  map.addEventListener("keydown", (event) => key(canvas, event));
  map.addEventListener("focus", () => { if (map.matches(":focus-visible")) announce(canvas); });
  map.addEventListener("blur", () => { canvas.cross.hidden = true; });
  bar.addEventListener("pointerdown", (event) => { bar.setPointerCapture(event.pointerId); canvas.swiping = true; event.stopPropagation(); });
  bar.addEventListener("pointermove", (event) => {
    if (!canvas.swiping) return;
    const box = map.getBoundingClientRect();
    setCut(canvas, (event.clientX - box.left) / box.width);
  });
  bar.addEventListener("pointerup", () => { canvas.swiping = false; });
  bar.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    setCut(canvas, canvas.cut + way);
  });
}

function setCut(canvas, cut) {
  canvas.cut = Math.max(0.03, Math.min(0.97, cut));
  arrange(canvas);
}

function press(canvas, event) {
  if (!canvas.deck || event.button !== 0 || event.target.closest(".bar")) return;
  canvas.press = { x: event.clientX, y: event.clientY, at: pointAt(canvas, event), boxing: canvas.scene.asks && (canvas.boxing || event.shiftKey) };
  if (canvas.press.boxing && canvas.press.at) {
    event.stopPropagation();
    event.preventDefault();
    map_capture(canvas, event);
  }
}

function map_capture(canvas, event) {
  try { canvas.map.setPointerCapture(event.pointerId); } catch { /* a pointer that has left cannot be captured */ }
}

function pull(canvas, event) {
  if (!canvas.press?.boxing || !canvas.press.at) return;
  const from = canvas.press.at, place = canvas.places[from.i], box = canvas.map.getBoundingClientRect();
  const x = Math.max(place.x, Math.min(place.x + place.width, event.clientX - box.left)), y = Math.max(place.y, Math.min(place.y + place.height, event.clientY - box.top));
  Object.assign(canvas.frame.style, { display: "block", left: `${Math.min(x, from.x)}px`, top: `${Math.min(y, from.y)}px`, width: `${Math.abs(x - from.x)}px`, height: `${Math.abs(y - from.y)}px` });
  const [longitude, latitude] = viewport(canvas, from.i).unproject([x - place.x, y - place.y]);
  canvas.press.to = { longitude, latitude };
}

function release(canvas, event) {
  const { press: pressed } = canvas;
  canvas.press = null;
  if (!pressed?.at) return;
  canvas.frame.style.display = "none";
  const far = Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > CLICK;
  if (pressed.boxing && far && pressed.to) {
    const { longitude: x, latitude: y } = pressed.at, { longitude: u, latitude: v } = pressed.to;
    setBoxing(canvas, false);
    canvas.send("box", [Math.min(x, u), Math.min(y, v), Math.max(x, u), Math.max(y, v)]);
  } else if (!far) choose(canvas, pressed.at);
}

// A click says which cell was chosen, by its place in the order of the pane's cells.
function choose(canvas, { i, longitude, latitude }) {
  showTips(canvas, { longitude, latitude });
  canvas.live.textContent = [...new Set(canvas.texts.filter(Boolean))].join("; ");
  const pane = canvas.scene.panes[i], found = pane.picture ? -1 : cellAt(canvas.cells[pane.cells], longitude, latitude);
  canvas.send("chosen", { pane: i, cell: found, longitude, latitude });
}

function key(canvas, event) {
  if (event.target !== canvas.map || event.ctrlKey || event.altKey || event.metaKey || !canvas.deck) return;
  const { camera } = canvas, step = degrees(STEP, camera.zoom), up = step * Math.cos((camera.latitude * Math.PI) / 180);
  const ways = {
    ArrowLeft: () => ({ ...camera, longitude: camera.longitude - step }), ArrowRight: () => ({ ...camera, longitude: camera.longitude + step }),
    ArrowUp: () => ({ ...camera, latitude: camera.latitude + up }), ArrowDown: () => ({ ...camera, latitude: camera.latitude - up }),
    "+": () => ({ ...camera, zoom: camera.zoom + 0.5 }), "=": () => ({ ...camera, zoom: camera.zoom + 0.5 }), "-": () => ({ ...camera, zoom: camera.zoom - 0.5 }),
    0: () => fit(canvas, globalThis.dpvizDeck.deck),
  };
  if (event.key === "Enter" || event.key === " ") choose(canvas, { i: 0, longitude: camera.longitude, latitude: camera.latitude });
  else if (ways[event.key]) setCamera(canvas, ways[event.key]());
  else if (event.key === "Escape" && canvas.boxing) setBoxing(canvas, false);
  else return;
  event.preventDefault();
  event.stopPropagation();
  announce(canvas);
}

// Screen readers hear the numbers at the middle of the map, which the cross marks while the keyboard moves it.
function announce(canvas) {
  if (!canvas.deck) return;
  const { longitude, latitude } = canvas.camera;
  showTips(canvas, { longitude, latitude });
  const place = canvas.places[0];
  Object.assign(canvas.cross.style, { left: `${place.x + place.width / 2 - shift(canvas, place)}px`, top: `${place.y + place.height / 2}px` });
  canvas.cross.hidden = false;
  const found = canvas.texts.filter(Boolean);
  canvas.live.textContent = found.length ? [...new Set(found)].join("; ") : canvas.scene.nothing;
}

function setBoxing(canvas, on) {
  canvas.boxing = on;
  canvas.map.classList.toggle("boxing", on);
  arrange(canvas);
  label(canvas);
}

// The row over the maps: what each pane shows, with its legend; and the tools.
function label(canvas) {
  const { scene } = canvas, { deck } = globalThis.dpvizDeck;
  canvas.map.setAttribute("aria-label", scene.description);
  canvas.heads.textContent = "";
  placeHeads(canvas);
  scene.panes.forEach((pane) => {
    const head = add(canvas.heads, "div", "head");
    add(head, "b", "title").textContent = pane.title;
    if (pane.about) add(head, "span", "about").textContent = pane.about;
    legend(head, pane.legend);
    if (pane.note) add(head, "span", "note").textContent = pane.note;
  });
  canvas.tools.textContent = "";
  const button = (text, title, pressed, act) => {
    const made = add(canvas.tools, "button", "tool", { type: "button", title });
    made.textContent = text;
    if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", act);
  };
  if (count(canvas) === 2) {
    button("Side by side", "Both maps beside each other", canvas.layout === "side", () => setLayout(canvas, "side"));
    button("Swipe", "One map, with a bar between what the panes show", canvas.layout === "swipe", () => setLayout(canvas, "swipe"));
  }
  if (scene.asks) button("Box", "Drag a box on the map: its count, with its interval. Shift and drag does the same", canvas.boxing, () => setBoxing(canvas, !canvas.boxing));
  button("+", "Zoom in", null, () => setCamera(canvas, { ...canvas.camera, zoom: canvas.camera.zoom + 0.5 }));
  button("\u2212", "Zoom out", null, () => setCamera(canvas, { ...canvas.camera, zoom: canvas.camera.zoom - 0.5 }));
  button("Reset view", "Show the whole domain", null, () => setCamera(canvas, fit(canvas, deck)));
  if (scene.link) button("Copy link", "The address of exactly this picture", null, (event) => copyLink(canvas, event.currentTarget));
  button("PNG", "A picture of the maps with legends and caption, in the shape of a slide", null, () => save(canvas));
  add(canvas.tools, "span", "credit").textContent = scene.credit;
}

// The camera reaches the address only after the map has come to rest; the link has it at once.
function copyLink(canvas, button) {
  const link = new URL(window.location.href), { longitude, latitude, zoom } = canvas.camera;
  link.searchParams.set("camera", JSON.stringify([Number(longitude.toFixed(5)), Number(latitude.toFixed(5)), Number(zoom.toFixed(2))]));
  const tell = (words) => { button.textContent = words; canvas.live.textContent = words; setTimeout(() => { button.textContent = "Copy link"; }, 2500); };
  (navigator.clipboard?.writeText(link.href) ?? Promise.reject()).then(() => tell("Copied"), () => tell("Copy it from the address bar"));
}

// A slide of 1600 x 900: title, what each pane shows with its legend, the maps as they are on screen, caption and stamp.
function slide(canvas) {
  const { scene } = canvas, page = document.createElement("canvas"), [width, height] = [1600, 900], margin = 40;
  Object.assign(page, { width, height });
  const pen = page.getContext("2d"), style = getComputedStyle(canvas.root), text = style.color;
  pen.fillStyle = scene.paper;
  pen.fillRect(0, 0, width, height);
  const write = (words, x, y, font, align = "left") => { Object.assign(pen, { fillStyle: text, font: `${font} ${style.fontFamily}`, textAlign: align }); pen.fillText(words, x, y); return pen.measureText(words).width; };
  write(scene.title, margin, 58, "600 34px");
  const top = 150, bottom = height - 100, scale = Math.min((width - 2 * margin) / canvas.map.clientWidth, (bottom - top) / canvas.map.clientHeight);
  const wide = canvas.map.clientWidth * scale, high = canvas.map.clientHeight * scale, left = (width - wide) / 2;
  canvas.deck.redraw("picture");
  pen.fillStyle = style.getPropertyValue("--st-secondary-background-color") || "#eee";
  pen.fillRect(left, top, wide, high);
  pen.drawImage(canvas.map.querySelector("canvas"), left, top, wide, high);
  if (swipes(canvas)) pen.fillRect(left + canvas.cut * wide - 2, top, 4, high);
  scene.panes.forEach((pane, i) => {
    let x = swipes(canvas) ? left + (i * wide) / 2 : left + canvas.places[i].x * scale;
    const y = swipes(canvas) || canvas.places[i].y === 0 ? 100 : top + canvas.places[i].y * scale + 22;
    x += 10 + write(pane.title, x, y, "600 20px");
    write(pane.about, x, y, "17px");
    drawLegend(pen, pane.legend, swipes(canvas) ? left + (i * wide) / 2 : left + canvas.places[i].x * scale, y + 30, write);
  });
  write(scene.caption, margin, height - 58, "22px");
  write([scene.stamp, scene.credit].filter(Boolean).join("  \u00b7  "), margin, height - 24, "16px");
  return page;
}

function drawLegend(pen, about, x, y, write) {
  const font = "16px", gradient = (colors, width) => {
    const ramp = pen.createLinearGradient(x, 0, x + width, 0);
    colors.forEach((color, k) => ramp.addColorStop(colors.length > 1 ? k / (colors.length - 1) : 0, color));
    pen.fillStyle = ramp;
    pen.fillRect(x, y - 13, width, 14);
    x += width + 8;
  };
  const words = (text) => { x += write(text, x, y, font) + 8; };
  if (about.title) words(about.title);
  if (about.bar.length) {
    words(about.low);
    gradient(about.bar, 110);
    words(about.top);
  }
  for (const [colors, meaning] of about.marks) {
    gradient(colors, colors.length > 1 ? 36 : 14);
    words(meaning);
  }
}

function save(canvas) {
  slide(canvas).toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "dpviz.png";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}

function setLayout(canvas, layout) {
  canvas.layout = layout;
  fitHeight(canvas);
  label(canvas);
  arrange(canvas);
}

function placeHeads(canvas) {
  canvas.heads.style.gridTemplateColumns = isNarrow(canvas) ? "1fr" : count(canvas) === 1 ? "1fr" : "1fr 1fr";
}

function legend(head, about) {
  if (!about) return;
  const row = add(head, "span", "legend");
  const text = (words) => { add(row, "span", "words").textContent = words; };
  const gradient = (colors, width) => Object.assign(add(row, "i", "gradient").style, { width: `${width}px`, background: `linear-gradient(90deg,${colors.join(",")})` });
  if (about.title) text(about.title);
  if (about.bar.length) {
    text(about.low);
    gradient(about.bar, 90);
    text(about.top);
  }
  for (const [colors, words] of about.marks) {
    gradient(colors, colors.length > 1 ? 30 : 11);
    text(words);
  }
}

function drawBox(canvas) {
  canvas.root.dataset.box = JSON.stringify(canvas.scene.box ?? null);
}

function add(parent, tag, name, attributes = {}) {
  const element = document.createElement(tag);
  element.className = name;
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return parent.appendChild(element);
}
