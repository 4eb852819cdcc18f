// Two or more maps of one area in one deck.gl canvas: one camera, linked hover, a swipe bar, a box that is dragged. deck.gl itself comes from
// the loader component, under a name of its own.
const POLL = 40, SETTLED = 600, NARROW = 640, WIDE = 250, PADDING = 14, CLOSE = 3, STEP = 80, MOST_LINES = 6000, CLICK = 5, HINT = 1500, LONG = 130;
const ICONS = { "Side by side": "splitscreen_right", Swipe: "compare", Box: "select", "+": "add", "\u2212": "remove", "Reset view": "fit_screen", "Copy link": "link", PNG: "photo_camera" };
const LEAST_HEIGHT = 420, CONTROLS = 280; // pixels: of a map, and of what stands above and below it
const held = new WeakMap(), ruler = document.createElement("canvas").getContext("2d");
const TILES_WAIT = 200, FINEST_TILES = 19, MOST_TILES = 80, KEPT_TILES = 400;
let away = null;  // how the maps were left: they may be gone for a while within a visit of the page, as on another tab

// `data` is the name of the canvas, which the headers of its scenes carry.
export default function mount({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".canvas");
  if (!held.has(root)) held.set(root, create(root));
  const canvas = held.get(root);
  const send = (name, value) => setTriggerValue(name, value);
  Object.assign(canvas, { name: data, send });
  attempt(canvas);
  return () => { if (canvas.send === send) finish(canvas); };  // a call that came too late is cleaned up after the next one
}

function create(root) {
  const find = (name) => root.querySelector(`.${name}`);
  const canvas = { root, map: find("map"), heads: find("heads"), tools: find("tools"), live: find("live"), layout: "side", cut: 0.5, boxing: false, held: false };
  canvas.cover = add(canvas.map, "div", "cover");
  canvas.bar = add(canvas.cover, "div", "bar", { role: "slider", tabindex: "0", "aria-label": "Swipe between the maps", "aria-valuemin": "0", "aria-valuemax": "100" });
  canvas.frame = add(canvas.cover, "div", "box");
  canvas.cross = add(canvas.cover, "div", "cross");
  canvas.cross.hidden = true;
  canvas.hint = add(canvas.cover, "div", "hint", { "aria-hidden": "true" });
  canvas.hint.textContent = "Click the map, then zoom by wheel";
  canvas.tips = [];
  canvas.watch = new ResizeObserver(() => { if (canvas.deck) resize(canvas); });
  canvas.watch.observe(canvas.map);
  canvas.take = () => attempt(canvas);
  globalThis.addEventListener("dpvizpart", canvas.take);
  canvas.map.addEventListener("webglcontextlost", () => restart(canvas), true);
  listen(canvas);
  return canvas;
}

// A camera that nobody has moved keeps the whole domain in view. A hidden map has no size: it is fitted once it is seen.
function resize(canvas) {
  if (isHidden(canvas)) return;
  fitHeight(canvas);
  if (canvas.isHome) canvas.camera = fit(canvas, globalThis.dpvizDeck.deck);
  arrange(canvas);
}

function finish(canvas) {
  away = { home: canvas.home, isHome: canvas.isHome, camera: canvas.camera, layout: canvas.layout, cut: canvas.cut };
  clearTimeout(canvas.waiting);
  clearTimeout(canvas.settling);
  clearTimeout(canvas.swipeSettling);
  clearTimeout(canvas.tilesTimer);
  clearTimeout(canvas.hinting);
  canvas.watch.disconnect();
  globalThis.removeEventListener("dpvizpart", canvas.take);
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
  else receive(canvas, globalThis.dpvizDeck.deck);
}

// The maps before stay until all parts of the newest scene are there.
function receive(canvas, deck) {
  const scene = joinParts(canvas.name);
  if (!scene || scene.key === canvas.scene?.key) return;
  if (hasCells(scene) && !cornerFinder(deck)) {
    globalThis.dpvizDeckError = "this deck.gl does not know the corners of H3 cells";
    return attempt(canvas);
  }
  canvas.scene = scene;
  show(canvas, deck);
}

function show(canvas, deck) {
  const started = performance.now(), { scene } = canvas;
  const home = JSON.stringify([scene.visit, scene.bounds, scene.camera]), moved = canvas.home !== home, back = !canvas.home && away?.home === home ? away : null;
  if (canvas.opened !== scene.swipe) {
    Object.assign(canvas, { opened: scene.swipe, layout: scene.swipe === null ? "side" : "swipe", cut: scene.swipe ?? canvas.cut });
  }
  if (back) Object.assign(canvas, { layout: back.layout, cut: back.cut });
  if (canvas.askedNow !== scene.asksNow) {
    Object.assign(canvas, { askedNow: scene.asksNow, boxing: scene.asksNow });
    canvas.map.classList.toggle("boxing", canvas.boxing);
  }
  fitHeight(canvas);
  canvas.cells = Object.fromEntries(Object.entries(scene.cells).map(([name, about]) => [name, build(scene, name, about)]));
  canvas.areas = Object.fromEntries(Object.keys(scene.areas).map((name) => [name, buildAreas(scene, name, deck)]));
  canvas.dots = scene.panes.map((pane) => buildDots(scene, pane));
  if (!canvas.deck) canvas.deck = start(canvas, deck);
  label(canvas);
  if (moved) {
    canvas.home = home;
    canvas.isHome = !(back ? !back.isHome : scene.camera);
    canvas.camera = back?.camera ?? scene.camera ?? fit(canvas, deck);
  }
  arrange(canvas);
  canvas.hover = null;  // its rectangles are those of the scene before
  draw(canvas, deck);
  if (canvas.seen) showTips(canvas, canvas.seen);
  if (canvas.live.textContent) canvas.live.textContent = canvas.seen ? distinct(canvas.texts).join("; ") : "";
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

// The browser took WebGL away, as it does where a page has too many maps: they are drawn again from what is here.
function restart(canvas) {
  canvas.deck.finalize();
  canvas.map.querySelector("canvas")?.remove();
  Object.assign(canvas, { deck: null, sized: false });
  show(canvas, globalThis.dpvizDeck.deck);
}

// The first frame of deck.gl has not yet the size of the map: it stays empty, since all would be drawn again at once.
function begin(canvas) {
  if (!held.has(canvas.root)) return;
  canvas.sized = true;
  canvas.map.querySelector("canvas").tabIndex = -1;  // the map around it has the focus, with a name and keys
  names(canvas);
}

// Maps that lie over each other, on a narrow screen, need more height; a single map leaves room for its controls in the window.
function fitHeight(canvas) {
  for (const name of ["fills", "titled"]) canvas.root.classList.toggle(name, canvas.scene[name]);
  if (canvas.scene.fills) return Object.assign(canvas.root.style, { height: "" });
  const { scene } = canvas, narrow = canvas.root.clientWidth < NARROW && count(canvas) > 1 && !swipes(canvas);
  const rows = count(canvas) > 2 && isWide(canvas) ? 0.5 : 1; // the height of more than two maps is that of two rows
  const most = count(canvas) > 1 ? Infinity : Math.max(LEAST_HEIGHT, window.innerHeight - CONTROLS);
  canvas.root.style.height = `${Math.round(Math.min(most, scene.height * (narrow ? 0.8 + 0.35 * count(canvas) : rows)))}px`;
}

const size = (canvas) => [Math.max(canvas.map.clientWidth, 1), Math.max(canvas.map.clientHeight, 1)];
const isHidden = (canvas) => canvas.map.clientWidth < 2;
const isNarrow = (canvas) => (canvas.scene.fills ? Math.min(window.innerWidth, canvas.map.clientWidth * 2) : canvas.map.clientWidth) < NARROW;
const isWide = (canvas) => canvas.root.clientWidth >= WIDE * count(canvas);
const count = (canvas) => canvas.scene.panes.length;
const swipes = (canvas) => canvas.layout === "swipe" && count(canvas) === 2;

// Where each pane lies in the canvas, in pixels.
function places(canvas) {
  const [width, height] = size(canvas), n = count(canvas);
  if (swipes(canvas)) {
    const cut = Math.round(canvas.cut * width);
    return [{ x: 0, y: 0, width: cut, height }, { x: cut, y: 0, width: width - cut, height }];
  }
  const [rows, columns] = lattice(canvas), gap = 2, room = rows > 1 ? (canvas.room ?? 0) : 0;
  return canvas.scene.panes.map((_, i) => {
    const x = Math.round((i % columns) * (width / columns)), y = Math.round(Math.floor(i / columns) * (height / rows));
    const right = Math.round((1 + (i % columns)) * (width / columns)), bottom = Math.round((1 + Math.floor(i / columns)) * (height / rows));
    const below = Math.floor(i / columns) + 1 < rows ? gap : 0;
    return { x, y: y + room, width: right - x - (i % columns + 1 < columns ? gap : 0), height: Math.max(1, bottom - y - room - below) };
  });
}

// Rows and columns of the panes.
function lattice(canvas) {
  if (canvas.rows) return [canvas.rows, Math.ceil(count(canvas) / canvas.rows)];
  const n = count(canvas), many = canvas.scene.fills ? roomiest(canvas) : isWide(canvas) ? n : 2;
  const columns = swipes(canvas) ? 2 : isNarrow(canvas) ? (canvas.scene.titled ? 2 : 1) : n === 1 ? 1 : n === 2 ? 2 : many;
  return [Math.ceil(n / columns), columns];
}

// The number of columns with which the bounds are largest on maps that fill the window.
function roomiest(canvas) {
  const [width, height] = size(canvas), n = count(canvas), [west, south, east, north] = canvas.scene.bounds;
  const up = (latitude) => Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360)), shape = ((east - west) * Math.PI) / 180 / (up(north) - up(south));
  const scale = (columns) => Math.min(width / columns / shape, height / Math.ceil(n / columns));
  const rows = n > 4 ? [1, 2, 3, 4] : [1, 2];
  return rows.map((number) => Math.ceil(n / number)).sort((one, other) => scale(other) - scale(one))[0];
}

// With the swipe bar both panes show parts of one map, so their centres differ by the distance of the panes' middles.
const shift = (canvas, place) => (swipes(canvas) ? (place.x + place.width / 2 - size(canvas)[0] / 2) : 0);
const degrees = (pixels, zoom) => (pixels * 360) / (512 * 2 ** zoom);

function arrange(canvas) {
  placeHeads(canvas);
  const { deck } = globalThis.dpvizDeck, all = places(canvas), views = {}, { camera } = canvas;
  canvas.places = all;
  all.forEach((place, i) => {
    views[i] = { ...camera, longitude: camera.longitude + degrees(shift(canvas, place), camera.zoom), minZoom: canvas.scene.zooms[0], maxZoom: canvas.scene.zooms[1] };
  });
  const controller = { dragPan: !canvas.boxing, keyboard: false, scrollZoom: canvas.held && { smooth: false, speed: 0.01 }, dragRotate: false, touchRotate: false, doubleClickZoom: true };
  canvas.deck.setProps({
    views: all.map((place, i) => new deck.MapView({ id: String(i), ...place, controller })),
    viewState: views,
  });
  const bar = canvas.bar.style, cut = Math.round(100 * canvas.cut);
  bar.display = swipes(canvas) ? "" : "none";
  bar.left = `${100 * canvas.cut}%`;
  canvas.bar.setAttribute("aria-valuenow", cut);
  canvas.bar.setAttribute("aria-valuetext", `${cut} % ${canvas.scene.panes[0].title}`);
  canvas.root.dataset.camera = JSON.stringify(camera);
  canvas.root.dataset.layout = swipes(canvas) ? "swipe" : "side";
  lookForTiles(canvas);
  names(canvas);
  drawBox(canvas);
}

// deck.gl also reports a camera when a map gets another size, as after it was hidden: only what a person does is a move.
function moveCamera(canvas, viewId, state, interaction) {
  const place = canvas.places[Number(viewId)];
  if (!place || isHidden(canvas) || !Object.values(interaction ?? {}).some(Boolean)) return;
  const longitude = state.longitude - degrees(shift(canvas, place), state.zoom), { camera } = canvas;
  const moved = Math.hypot(longitude - camera.longitude, state.latitude - camera.latitude, state.zoom - camera.zoom) > 1e-9;
  if (moved) setCamera(canvas, { longitude, latitude: state.latitude, zoom: state.zoom });
  if (interaction?.isDragging) forgetHover(canvas);
}

function setCamera(canvas, { longitude, latitude, zoom }) {
  const [least, most] = canvas.scene.zooms;
  canvas.isHome = false;
  canvas.camera = { longitude, latitude: Math.max(-85, Math.min(85, latitude)), zoom: Math.max(least, Math.min(most, zoom)) };
  arrange(canvas);
  clearTimeout(canvas.settling);
  canvas.settling = setTimeout(() => canvas.send("camera", canvas.camera), SETTLED);
}

// The whole domain in view, also if the map is given another size.
function goHome(canvas) {
  setCamera(canvas, fit(canvas, globalThis.dpvizDeck.deck));
  canvas.isHome = true;
}

function fit(canvas, deck) {
  canvas.places = places(canvas);
  const [width, height] = swipes(canvas) ? size(canvas) : [canvas.places[0].width, canvas.places[0].height];
  const [west, south, east, north] = canvas.scene.bounds, padding = Math.min(canvas.scene.fills ? CLOSE : PADDING, width / 5, height / 5);
  const view = new deck.WebMercatorViewport({ width, height }).fitBounds([[west, south], [east, north]], { padding });
  return { longitude: view.longitude, latitude: view.latitude, zoom: view.zoom };
}

// Rectangles as lattice lines, or corners as parts of the bounds in 65,535ths, become (n, 4) corners in degrees.
function build(scene, name, { side, grid }) {
  const { arrays, bounds: [west, south, east, north] } = scene, lines = grid ? squares(grid, side) : arrays[`${name} lines`], corners = arrays[`${name} corners`];
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

// West, south, east, north of equal squares as lattice lines, row by row from the south.
function squares(grid, side) {
  const lines = new Uint32Array(4 * grid * grid), step = side / grid;
  for (let i = 0; i < grid * grid; i += 1) {
    const x = (i % grid) * step, y = Math.floor(i / grid) * step;
    lines.set([x, y, x + step, y + step], 4 * i);
  }
  return lines;
}

function paint(scene, pane) {
  const shades = scene.arrays[pane.shades], palette = scene.arrays[pane.palette], out = new Uint8ClampedArray(20 * shades.length);
  for (let i = 0; i < shades.length; i += 1) {
    const color = palette.subarray(4 * shades[i], 4 * shades[i] + 4);
    for (let k = 0; k < 5; k += 1) out.set(color, 20 * i + 4 * k);
  }
  return out;
}

function draw(canvas, deck) {
  const { scene } = canvas, line = scene.line;
  const flat = { pickable: false, parameters: { depthCompare: "always" } };
  const polygons = (id, data, color, stroked) => new deck.PolygonLayer({ id: `all:${id}`, data, getPolygon: (rings) => rings, filled: !stroked, stroked, getFillColor: color, getLineColor: line, lineWidthMinPixels: 1, lineWidthMaxPixels: 1, ...flat });
  const land = polygons("land", scene.ground.land, scene.land, false);
  const path = (id, data, width, color = line) => new deck.PathLayer({ id: `all:${id}`, data, getPath: (points) => points, getColor: color, widthMinPixels: width, widthMaxPixels: width, ...flat });
  const cells = scene.panes.flatMap((pane, i) => paneLayers(canvas, deck, pane, i));
  canvas.base = [land, ...(scene.tiles ? cells.map((layer) => layer.clone({ opacity: 0.6 })) : cells), polygons("masked", scene.masked, scene.maskedColor, false), polygons("coast", scene.ground.land, line, true), path("countries", scene.ground.borders, 1), path("states", scene.ground.states, 0.7), path("edge", scene.edge, 1.5), path("outline", scene.outline, 2, scene.boxColor)];
  canvas.shownNames = null;
  names(canvas);
}

// A street map from outside, only where a person has switched it on: its server is asked for the tiles in view once the map is at rest.
function lookForTiles(canvas) {
  clearTimeout(canvas.tilesTimer);
  const { tiles } = canvas.scene;
  if (!tiles) canvas.tilesShown = [];
  else canvas.tilesTimer = setTimeout(() => {
    canvas.tiles ??= new Map();
    if (canvas.tiles.size > KEPT_TILES) canvas.tiles.clear();
    canvas.tilesShown = tilesInView(canvas);
    for (const { key, x, y, z } of canvas.tilesShown) if (!canvas.tiles.has(key)) loadTile(canvas, key, tiles.replace("{z}", z).replace("{x}", x).replace("{y}", y));
    names(canvas);
  }, TILES_WAIT);
}

function tilesInView(canvas) {
  const { deck } = globalThis.dpvizDeck, { camera } = canvas, found = new Map(), z = Math.max(0, Math.min(FINEST_TILES, Math.round(camera.zoom) + 1)), n = 2 ** z;
  const column = (longitude) => Math.floor(((longitude + 180) / 360) * n), row = (latitude) => Math.floor(((1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2) * n);
  const north = (y) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / n))) * 180) / Math.PI, east = (x) => (x / n) * 360 - 180;
  for (const place of canvas.places) {
    const view = new deck.WebMercatorViewport({ ...camera, longitude: camera.longitude + degrees(shift(canvas, place), camera.zoom), width: Math.max(place.width, 1), height: Math.max(place.height, 1) });
    const [w, s, e, t] = view.getBounds();
    for (let y = Math.max(0, row(Math.min(t, 85))); y <= Math.min(n - 1, row(Math.max(s, -85))); y += 1) {
      for (let x = column(w); x <= column(e); x += 1) found.set(`${z}/${x}/${y}`, { key: `${z}/${x}/${y}`, z, x: ((x % n) + n) % n, y, bounds: [east(x), north(y + 1), east(x + 1), north(y)] });
    }
  }
  return [...found.values()].slice(0, MOST_TILES);
}

function loadTile(canvas, key, address) {
  const tile = { image: null };
  canvas.tiles.set(key, tile);
  fetch(address, { credentials: "omit", referrerPolicy: "origin" }).then((answer) => (answer.ok ? answer.blob() : Promise.reject())).then((blob) => createImageBitmap(blob)).then(
    (image) => { tile.image = image; if (held.has(canvas.root)) names(canvas); },
    () => { canvas.tiles.delete(key); },
  );
}

function streets(canvas, deck) {
  const shown = (canvas.tilesShown ?? []).filter(({ key }) => canvas.tiles.get(key)?.image);
  canvas.root.dataset.tiles = String(shown.length);
  const tintColor = canvas.scene.text[0] > 128 ? [110, 110, 110] : [255, 255, 255];  // on a dark page the streets are dark, too
  return shown.map(({ key, bounds }) => new deck.BitmapLayer({ id: `all:tile ${key}`, image: canvas.tiles.get(key).image, bounds, desaturate: 0.5, opacity: 0.7, tintColor, pickable: false, parameters: { depthCompare: "always" } }));
}

function paneLayers(canvas, deck, pane, i) {
  const { scene } = canvas, flat = { pickable: false, parameters: { depthCompare: "always" } };
  if (pane.areas) return tripLayers(canvas, deck, pane, i);
  if (pane.picture) {
    if (canvas.pictures?.[i]?.key !== pane.key) loadPicture(canvas, deck, i, pane.key, scene.arrays[pane.picture]);
    const image = canvas.pictures?.[i]?.image;
    return image ? [new deck.BitmapLayer({ id: `${i}:picture`, image, bounds: scene.bounds, textureParameters: { magFilter: "nearest", minFilter: "linear" }, ...flat })] : [];
  }
  const cells = canvas.cells[pane.cells];
  const polygons = { length: cells.n, startIndices: cells.starts, attributes: { getPolygon: { value: cells.positions, size: 2 }, getFillColor: { value: paint(scene, pane), size: 4 } } };
  const layers = [new deck.SolidPolygonLayer({ id: `${i}:cells`, data: polygons, filled: true, extruded: false, _normalize: false, ...flat })];
  if (cells.n <= MOST_LINES) {
    const color = [128, 128, 128, 70];
    layers.push(new deck.LineLayer({ id: `${i}:lines`, data: { length: 4 * cells.n, attributes: edges(cells) }, getColor: color, getWidth: 0.5, widthMinPixels: 0.5, ...flat }));
  }
  return layers;
}

// The four edges of each cell, as single lines: they are drawn faster than paths with joins.
function edges({ n, quads }) {
  const from = new Float64Array(8 * n), to = new Float64Array(8 * n);
  for (let i = 0; i < 8 * n; i += 8) {
    from.set(quads.subarray(i, i + 8), i);
    to.set(quads.subarray(i + 2, i + 8), i);
    to.set(quads.subarray(i, i + 2), i + 6);
  }
  return { getSourcePosition: { value: from, size: 2 }, getTargetPosition: { value: to, size: 2 } };
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
  const { deck } = globalThis.dpvizDeck, { scene } = canvas, { text, halo } = scene, data = wholeNames(canvas), shown = data.map(([name]) => name).join();
  if (shown !== canvas.shownNames) {
    canvas.shownNames = shown;
    canvas.names = data.length && new deck.TextLayer({ id: "all:names", data, getPosition: (d) => [d[1], d[2]], getText: (d) => d[0], getSize: scene.textSize, getColor: text, background: true, getBackgroundColor: halo, backgroundPadding: [2, 0], fontFamily: "sans-serif", characterSet: "auto", pickable: false, parameters: { depthCompare: "always" } });
    canvas.root.dataset.names = String(data.length);
  }
  if (canvas.sized) canvas.deck.setProps({ layers: [...streets(canvas, deck), ...canvas.base, ...marks(canvas, deck), canvas.names, boxLayer(canvas, deck)].filter(Boolean) });
}

// Names that are cut at the edge of a map cannot be read: they are left out. All panes have one size, but for the swipe bar, over which names go on.
function wholeNames(canvas) {
  const { scene, camera } = canvas, zoom = Math.floor(4 * camera.zoom) / 4, scale = (512 * 2 ** camera.zoom) / 360, margin = 4;
  const [width, height] = swipes(canvas) ? size(canvas) : [canvas.places[0].width, canvas.places[0].height];
  const up = (latitude) => (Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360)) * 180) / Math.PI, middle = up(camera.latitude);
  ruler.font = `${scene.textSize}px sans-serif`;
  return scene.places.filter(([name, longitude, latitude, from]) => {
    const x = Math.abs(longitude - camera.longitude) * scale, y = Math.abs(up(latitude) - middle) * scale;
    return from <= zoom && y < height / 2 - scene.textSize && x < width / 2 - ruler.measureText(name).width / 2 - margin;
  });
}

// The cell under the pointer, outlined in every pane.
function marks(canvas, deck) {
  const layers = [];
  canvas.scene.panes.forEach((pane, i) => {
    const found = canvas.hover?.[i] ?? null;
    if (pane.areas) layers.push(...tripMarks(canvas, deck, pane, i, found));
    else if (found !== null) layers.push(ring(deck, `${i}:hover`, closed(canvas.cells[canvas.scene.panes[i].cells].quads, found), canvas.scene.accent, 2.5));
  });
  return layers;
}

const ring = (deck, id, points, color, width) => new deck.PathLayer({ id, data: [points], getPath: (d) => d, getColor: color, widthMinPixels: width, widthMaxPixels: width, pickable: false, parameters: { depthCompare: "always" } });

// The box of the range query, over the names.
function boxLayer(canvas, deck) {
  if (!canvas.scene.box) return null;
  const [west, south, east, north] = canvas.scene.box;
  return ring(deck, "all:box", [[west, south], [east, south], [east, north], [west, north], [west, south]], canvas.scene.boxColor, 2);
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
  const { scene } = canvas, pane = scene.panes[i];
  if (pane.areas) return saysTrip(canvas, pane, found);
  if (found === null) return "";
  const { near } = scene.cells[pane.cells];
  const number = (field) => scene.arrays[`${pane.cells} ${field}`][found] + (near[field] ? number(near[field]) : 0);
  return pane.words.replace(/\{(\w+):([^}]*)\}/g, (_, field, text) => (number(field) ? text : "")).replace(/\{(\w+)\}/g, (_, field) => number(field).toLocaleString("en-US"));
}

// What is under a point of the map in pane `looked`, and the same in the other panes.
function lookAt(canvas, x, y, looked) {
  canvas.seen = { longitude: x, latitude: y, i: looked };
  const { panes } = canvas.scene, pointed = panes[looked]?.areas ? tripAt(canvas, panes[looked], looked, x, y) : null;
  canvas.hover = panes.map((pane, i) => (pane.areas ? sameTrip(canvas, pointed, looked, i, pane) : findCell(canvas, pane, x, y)));
  canvas.texts = panes.map((_, i) => describe(canvas, i, canvas.hover[i]));
  names(canvas);
  canvas.root.dataset.hover = canvas.texts.join(" | ");
}

function findCell(canvas, pane, x, y) {
  const found = pane.picture ? -1 : cellAt(canvas.cells[pane.cells], x, y);
  return found < 0 ? null : found;
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
function showTips(canvas, { longitude, latitude, i: looked = 0 }) {
  lookAt(canvas, longitude, latitude, looked);
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
  map.addEventListener("pointerleave", (event) => {
    hold(canvas, false);
    if (event.pointerType === "touch") return;  // a finger that was lifted leaves its numbers on the map
    cancelAnimationFrame(canvas.frameRequest);
    forgetHover(canvas);
    names(canvas);
  });
  map.addEventListener("pointerdown", (event) => press(canvas, event), true);
  map.addEventListener("pointerup", (event) => release(canvas, event), true);
  canvas.letGo = () => setTimeout(() => { canvas.press = null; });  // a press may be let go outside the map
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, canvas.letGo);
  map.addEventListener("wheel", (event) => hintAtWheel(canvas, event), { passive: true });
  map.addEventListener("keydown", (event) => key(canvas, event));
  canvas.tools.addEventListener("keydown", (event) => goToTool(canvas, event));
  map.addEventListener("focus", () => { if (map.matches(":focus-visible")) announce(canvas); });
  map.addEventListener("blur", () => { if (!canvas.cross.hidden) forgetHover(canvas); });  // the number at the middle was for the keyboard
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
  canvas.cut = Math.round(1000 * Math.max(0.03, Math.min(0.97, cut))) / 1000;
  arrange(canvas);
  settleSwipe(canvas);
}

function settleSwipe(canvas) {
  clearTimeout(canvas.swipeSettling);
  canvas.swipeSettling = setTimeout(() => canvas.send("swipe", swipes(canvas) ? canvas.cut : 0), SETTLED);
}

// The wheel moves the page until the map was pressed: charts below the map stay within reach.
function hold(canvas, held) {
  if (canvas.held === held || !canvas.deck) return;
  canvas.held = held;
  if (held) canvas.hint.classList.remove("shown");
  arrange(canvas);
}

// A wheel over a map that was not pressed moves the page: for a moment the map says how to zoom. Touch sends no wheel, and has its pinch.
function hintAtWheel(canvas, event) {
  if (canvas.held || !canvas.deck || Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
  canvas.hint.classList.add("shown");
  clearTimeout(canvas.hinting);
  canvas.hinting = setTimeout(() => canvas.hint.classList.remove("shown"), HINT);
}

function press(canvas, event) {
  hold(canvas, true);
  if (!canvas.deck || event.button !== 0 || event.target.closest(".bar")) return;
  canvas.press = { x: event.clientX, y: event.clientY, at: pointAt(canvas, event), boxing: canvas.scene.asks && (canvas.boxing || event.shiftKey) };
  if (canvas.press.boxing && canvas.press.at) {
    cancelAnimationFrame(canvas.frameRequest);
    forgetHover(canvas);
    names(canvas);
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

// Texts that say something: no text twice, and none that another one begins with.
const distinct = (texts) => [...new Set(texts.filter(Boolean))].filter((text, i, all) => !all.some((other, k) => k !== i && other.startsWith(text)));

// A click says which cell was chosen, by its place in the order of the pane's cells.
function choose(canvas, { i, longitude, latitude }) {
  showTips(canvas, { longitude, latitude, i });
  canvas.live.textContent = distinct(canvas.texts).join("; ");
  const found = canvas.hover[i], trip = canvas.scene.panes[i].areas && found;
  if (trip) canvas.send("chosen", { pane: i, cell: trip.arc ?? trip.region, kind: trip.arc !== undefined ? "arc" : trip.side ? "end" : "area", longitude, latitude });
  else canvas.send("chosen", { pane: i, cell: found ?? -1, kind: "cell", longitude, latitude });
}

function key(canvas, event) {
  if (event.target !== canvas.map || event.ctrlKey || event.altKey || event.metaKey || !canvas.deck) return;
  const { camera } = canvas, step = degrees(STEP, camera.zoom), up = step * Math.cos((camera.latitude * Math.PI) / 180);
  const ways = {
    ArrowLeft: () => ({ ...camera, longitude: camera.longitude - step }), ArrowRight: () => ({ ...camera, longitude: camera.longitude + step }),
    ArrowUp: () => ({ ...camera, latitude: camera.latitude + up }), ArrowDown: () => ({ ...camera, latitude: camera.latitude - up }),
    "+": () => ({ ...camera, zoom: camera.zoom + 0.5 }), "=": () => ({ ...camera, zoom: camera.zoom + 0.5 }), "-": () => ({ ...camera, zoom: camera.zoom - 0.5 }),
  };
  if (event.key === "Enter" || event.key === " ") choose(canvas, { i: 0, longitude: camera.longitude, latitude: camera.latitude });
  else if (ways[event.key]) setCamera(canvas, ways[event.key]());
  else if (event.key === "0") goHome(canvas);
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
  canvas.headsAt = "";
  scene.panes.forEach((pane, i) => {
    const head = add(canvas.heads, "div", "head"), words = [pane.title, pane.about, pane.note], first = add(head, "div", "first", { title: words.filter(Boolean).join(". ") });
    if (pane.mark) add(first, "i", "mark", { "aria-hidden": "true" }).style.background = pane.mark;
    ["title", "about", "note"].forEach((name, k) => { if (words[k]) add(first, k ? "span" : "b", name).textContent = words[k]; });
    legend(head, scene.fills ? ownLegend(scene.panes, i) : pane.legend);
  });
  placeHeads(canvas);
  const focused = [...canvas.tools.children].indexOf(canvas.root.getRootNode().activeElement);
  canvas.tools.textContent = "";
  const button = (text, title, pressed, act) => {
    const made = add(canvas.tools, "button", "tool", { type: "button", title: scene.fills ? `${text}: ${title}` : title, tabindex: "-1" });
    if (scene.fills) Object.assign(made, { ariaLabel: text }, { className: "tool icon" });
    made.textContent = scene.fills ? ICONS[text] : text;
    if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", act);
  };
  if (count(canvas) === 2) {
    button("Side by side", "Both maps beside each other", canvas.layout === "side", () => setLayout(canvas, "side"));
    button("Swipe", "One map, with a bar between what the panes show", canvas.layout === "swipe", () => setLayout(canvas, "swipe"));
  }
  if (scene.asks) button("Box", scene.whatBox, canvas.boxing, () => setBoxing(canvas, !canvas.boxing));
  button("+", "Zoom in", null, () => setCamera(canvas, { ...canvas.camera, zoom: canvas.camera.zoom + 0.5 }));
  button("\u2212", "Zoom out", null, () => setCamera(canvas, { ...canvas.camera, zoom: canvas.camera.zoom - 0.5 }));
  button("Reset view", "Show the whole domain", null, () => goHome(canvas));
  if (scene.link) button("Copy link", "The address of exactly this picture", null, (event) => copyLink(canvas, event.currentTarget));
  if (scene.maySave) button("PNG", "A picture of the maps with legends and caption, in the shape of a slide", null, () => save(canvas));
  add(scene.fills ? canvas.heads : canvas.tools, "span", "credit").textContent = scene.credit;
  canvas.tools.firstChild.tabIndex = 0;  // one stop of Tab; arrow keys go from tool to tool
  if (focused >= 0) canvas.tools.children[focused]?.focus();
}

function goToTool(canvas, event) {
  const all = [...canvas.tools.querySelectorAll(".tool")], at = all.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  all.forEach((tool) => { tool.tabIndex = -1; });
  const next = all[(to + all.length) % all.length];
  next.tabIndex = 0;
  next.focus();
}

// Camera and swipe bar reach the address only after they have come to rest; the link has them at once.
function copyLink(canvas, button) {
  const link = new URL(window.location.href), { longitude, latitude, zoom } = canvas.camera;
  link.searchParams.set("camera", JSON.stringify([Number(longitude.toFixed(5)), Number(latitude.toFixed(5)), Number(zoom.toFixed(4))]));
  if (swipes(canvas)) link.searchParams.set("swipe", String(canvas.cut));
  else link.searchParams.delete("swipe");
  const tell = (words) => { button.textContent = words; canvas.live.textContent = words; setTimeout(() => { button.textContent = "Copy link"; }, 2500); };
  (navigator.clipboard?.writeText(link.href) ?? Promise.reject()).then(() => tell("Copied"), () => tell("Copy it from the address bar"));
}

// A slide of 1600 x 900: title, what each pane shows with its legend, the maps as they are on screen, caption and stamp.
function slide(canvas) {
  const { scene } = canvas, page = document.createElement("canvas"), [width, height] = [1600, 900], margin = 40;
  Object.assign(page, { width, height });
  const pen = page.getContext("2d"), style = getComputedStyle(canvas.tools), text = style.color;
  pen.fillStyle = scene.paper;
  pen.fillRect(0, 0, width, height);
  const write = (words, x, y, font, align = "left", room = width) => { Object.assign(pen, { fillStyle: text, font: `${font} ${style.fontFamily}`, textAlign: align }); pen.fillText(words, x, y, room); return Math.min(room, pen.measureText(words).width); };
  write(scene.title, margin, 58, "600 34px");
  const stacked = canvas.heads.classList.contains("over");
  const top = stacked ? 80 : 164, bottom = height - (scene.caption ? 100 : 64), scale = Math.min((width - 2 * margin) / canvas.map.clientWidth, (bottom - top) / canvas.map.clientHeight);
  const above = stacked ? canvas.room * scale : 62, [large, small] = stacked ? [0.27 * above, 0.21 * above] : [20, 16];
  const wide = canvas.map.clientWidth * scale, high = canvas.map.clientHeight * scale, left = (width - wide) / 2;
  canvas.deck.redraw("picture");
  pen.fillStyle = style.getPropertyValue("--st-secondary-background-color") || "#eee";
  pen.fillRect(left, top, wide, high);
  pen.drawImage(canvas.map.querySelector("canvas"), left, top, wide, high);
  if (swipes(canvas)) pen.fillRect(left + canvas.cut * wide - 2, top, 4, high);
  scene.panes.forEach((pane, i) => {
    const place = swipes(canvas) ? { x: (i * canvas.map.clientWidth) / 2, width: canvas.map.clientWidth / 2 } : canvas.places[i];
    const x = left + place.x * scale, y = top + (stacked ? place.y * scale - 0.69 * above : -64), room = place.width * scale - 16;
    const named = 10 + write(pane.title, x, y, `600 ${large}px`, "left", room);
    if (room - named > 60) write(pane.about, x + named, y, `${small}px`, "left", room - named);
    drawLegend(pen, pane.legend, { x, y: y + 0.33 * above + (stacked ? 0 : 7), width: room, largest: Math.round(small), family: style.fontFamily, ink: text });
  });
  const first = scene.caption.length > LONG ? scene.caption.indexOf(". ") + 1 : 0, room = width - 2 * margin;  // a long caption has two lines
  if (first) write(scene.caption.slice(0, first), margin, height - 72, "20px", "left", room);
  write(scene.caption.slice(first).trim(), margin, height - (first ? 47 : 58), first ? "20px" : "22px", "left", room);
  write([scene.stamp, scene.credit].filter(Boolean).join("  \u00b7  "), margin, height - 24, "16px");
  return page;
}

// What a legend consists of: items that stay in one piece, each of texts and of swatches.
function legendItems({ title, low, top, bar, marks, lines, dashed = [], dots = [] }) {
  const items = title ? [[title]] : [];
  if (bar.length) items.push([low, { colors: bar, width: 90 }, top]);
  items.push(...lines.map(([color, height, words]) => [{ colors: [color], width: 26, height }, words]));
  items.push(...dashed.map(([color, height, words]) => [{ colors: [color], width: 31, height, dashed: true }, words]));
  items.push(...dots.map(([color, radius, words]) => [{ colors: [color], width: 2 * radius, height: 2 * radius, round: true }, words]));
  items.push(...marks.map(([colors, words]) => [{ colors, width: colors.length > 1 ? 30 : 11 }, words]));
  return items;
}

// A legend in at most two lines of a width; the type is smaller where it would not fit.
function drawLegend(pen, about, { x, y, width, largest, family, ink }) {
  const gap = 7, items = legendItems(about), wide = (part) => (typeof part === "string" ? pen.measureText(part).width : part.width) + gap;
  for (let type = largest; type >= 7; type -= 1) {
    pen.font = `${type}px ${family}`;
    let at = 0, line = 0;
    const spots = items.map((item) => {
      const needs = item.reduce((sum, part) => sum + wide(part), 0);
      if (at && at + needs > width) [at, line] = [0, line + 1];
      at += needs + gap;
      return [at - needs - gap, y + line * 1.3 * type];
    });
    if (line > 1 && type > 7) continue;
    items.forEach((item, k) => {
      let [left, base] = spots[k];
      for (const part of item) {
        drawPart(pen, part, x + left, base, type, ink);
        left += wide(part);
      }
    });
    return;
  }
}

function drawPart(pen, part, x, y, type, ink) {
  if (typeof part === "string") {
    pen.fillStyle = ink;
    pen.fillText(part, x, y);
    return;
  }
  if (part.round) {
    pen.fillStyle = part.colors[0];
    pen.beginPath();
    pen.arc(x + part.width / 2, y - 0.35 * type, part.width / 2, 0, 2 * Math.PI);
    pen.fill();
    return;
  }
  if (part.height) {
    pen.fillStyle = part.colors[0];
    const dashes = part.dashed ? [[0, 7], [12, 7], [24, 7]] : [[0, part.width]];
    for (const [from, long] of dashes) pen.fillRect(x + from, y - 0.35 * type - part.height / 2, long, part.height);
    return;
  }
  const ramp = pen.createLinearGradient(x, 0, x + part.width, 0);
  part.colors.forEach((color, k) => ramp.addColorStop(part.colors.length > 1 ? k / (part.colors.length - 1) : 0, color));
  Object.assign(pen, { fillStyle: ramp, strokeStyle: "rgba(128,128,128,.8)", lineWidth: 1 });
  pen.fillRect(x, y - 0.8 * type, part.width, 0.9 * type);
  pen.strokeRect(x, y - 0.8 * type, part.width, 0.9 * type);
}

// Maps in one row would leave much of a slide empty: they are drawn once more beside the page, in its size and in that number
// of rows in which the domain is largest.
function drawForSlide(canvas) {
  if (count(canvas) < 2 || swipes(canvas) || (lattice(canvas)[0] > 1 && !canvas.scene.fills)) return Promise.resolve(canvas);
  const { deck } = globalThis.dpvizDeck, map = add(document.body, "div", ""), root = { dataset: {}, clientWidth: 1520 }, heads = document.createElement("div");
  const spare = canvas.scene.caption ? 0 : 36, [row, rows] = [[1, 636 + spare], [2, 720 + spare]].map(([number, high]) => {
    Object.assign(map.style, { position: "fixed", left: "-9999px", top: 0, width: "1520px", height: `${high}px` });
    const stage = { ...canvas, root, map, heads, rows: number, room: 78, high, hover: null };
    return { ...stage, fitted: fit(stage, deck), places: places(stage) };
  });
  const stage = rows.fitted.zoom > row.fitted.zoom ? rows : row;
  heads.classList.toggle("over", stage === rows);
  map.style.height = `${stage.high}px`;
  stage.camera = { ...canvas.camera, zoom: canvas.camera.zoom + stage.fitted.zoom - fit(canvas, deck).zoom };
  return new Promise((resolve) => {
    const settle = (frames) => (frames ? requestAnimationFrame(() => settle(frames - 1)) : resolve(stage));
    const views = stage.places.map((place, i) => new deck.MapView({ id: String(i), ...place }));
    const viewState = Object.fromEntries(views.map((view) => [view.id, stage.camera]));
    const layerFilter = ({ layer, viewport }) => layer.id.startsWith("all:") || layer.id.startsWith(`${viewport.id}:`);
    stage.sized = true;
    stage.deck = new deck.Deck({ parent: map, views, viewState, layers: [], layerFilter, onLoad: () => { draw(stage, deck); settle(20); } });
  });
}

async function save(canvas) {
  const stage = await drawForSlide(canvas), picture = slide(stage);
  if (stage !== canvas) {
    stage.deck.finalize();
    stage.map.remove();
  }
  picture.toBlob((blob) => {
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
  settleSwipe(canvas);
}

// Maps in one row have their heads above the canvas. In several rows each map has its head right above it, in room that `places` leaves.
function placeHeads(canvas) {
  if (canvas.scene.fills) return placeOver(canvas);
  const { heads } = canvas, all = [...heads.children], [rows, columns] = lattice(canvas), at = [rows, columns, ...size(canvas)].join();
  if (at === canvas.headsAt) return;
  canvas.headsAt = at;
  heads.classList.toggle("over", rows > 1);
  heads.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  const widths = places(canvas);
  all.forEach((head, i) => Object.assign(head.style, { width: rows > 1 ? `${widths[i].width}px` : "" }));
  canvas.room = rows > 1 ? Math.max(...all.map((head) => head.offsetHeight)) : 0;
  places(canvas).forEach(({ x, y }, i) => Object.assign(all[i].style, { left: `${x}px`, top: `${y - canvas.room}px` }));
}

// Maps that fill the window have their heads over them; with the swipe bar each has half of the width.
function placeOver(canvas) {
  const [width, height] = size(canvas), halves = [{ x: 0, y: 0, width: width / 2, height }, { x: width / 2, y: 0, width: width / 2, height }];
  const all = [...canvas.heads.querySelectorAll(".head")], at = swipes(canvas) ? halves : places(canvas);
  const page = canvas.root.getRootNode().host?.closest(".st-key-panes")?.style;  // the page lays its menus over the maps
  all.forEach((head, i) => {
    const { x, y, width: wide, height: high } = at[i];
    Object.assign(head.style, { left: `${x}px`, top: `${y}px`, width: `${wide}px`, height: `${high}px` });
    for (const [name, value] of Object.entries({ x, y, width: wide })) page?.setProperty(`--map-${i}-${name}`, `${Math.round(value)}px`);
  });
}

// The legend of a map, without the scale and the marks that the next map has, too.
function ownLegend(panes, i) {
  const scale = ({ title, low, top, bar, lines, dots }) => JSON.stringify([title, low, top, bar, lines, dots]), next = panes[i + 1]?.legend, { legend: own } = panes[i];
  if (!next || !own || scale(own) !== scale(next)) return own;
  return { title: "", bar: [], lines: [], marks: own.marks.filter(([, meaning]) => next.marks.every(([, other]) => other !== meaning)) };
}

function legend(head, about) {
  const row = add(head, "div", "legend");
  for (const item of about ? legendItems(about) : []) {
    const piece = add(row, "span", "piece");
    for (const part of item) {
      if (typeof part === "string") add(piece, "span", "words").textContent = part;
      else Object.assign(add(piece, "i", `gradient${part.height ? " line" : ""}${part.dashed ? " dashed" : ""}${part.round ? " round" : ""}`).style, { ...(part.height && { height: `${part.height}px` }), width: `${part.width}px`, backgroundImage: `linear-gradient(90deg,${(part.colors.length > 1 ? part.colors : [part.colors[0], part.colors[0]]).join(",")})` });
    }
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
