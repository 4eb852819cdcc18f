
// Trips: regions as areas or dots, and arcs between their centres that bend to the left of their direction, faint where they begin.
const DASH = 12, FILLED = 0.6; // pixels of a dash with its gap, and the share of the dash
const BEND = 0.3, NEAR_ARC = 4, NEAR_DOT = 2, NEAREST = 3;

// Positions on the web map, with the world as one unit: straight lines there are straight on the screen.
const flatten = (longitude, latitude) => [(longitude + 180) / 360, 0.5 + Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360)) / (2 * Math.PI)];

// Regions of one level: polygons as lists of rings with the box around them, H3 cells by their indexes, or centres alone.
function buildAreas(scene, name, deck) {
  if (scene.arrays[`${name} cells`]) return buildCells(scene, name, deck);
  const { arrays } = scene, corners = arrays[`${name} corners`], rings = arrays[`${name} rings`], starts = arrays[`${name} polygons`];
  const owner = arrays[`${name} owner`], centres = arrays[`${name} centres`];
  const polygons = Array.from(owner, (region, p) => {
    const shape = [];
    for (let r = starts[p]; r < starts[p + 1]; r += 1) {
      const ring = [];
      for (let c = rings[r]; c < rings[r + 1]; c += 1) ring.push([corners[2 * c], corners[2 * c + 1]]);
      shape.push(ring);
    }
    const xs = shape[0].map((corner) => corner[0]), ys = shape[0].map((corner) => corner[1]);
    const around = (values) => values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
    const [west, east] = around(xs), [south, north] = around(ys);
    return { region, rings: shape, box: [west, south, east, north] };
  });
  return { n: centres.length / 2, centres, polygons };
}

const hasCells = (scene) => Object.keys(scene.areas).some((name) => scene.arrays[`${name} cells`]);

// The library of H3 cells is inside deck.gl, which draws by it but does not export it: the accessor of the layer's own polygons gives the
// corners of a cell. Null where this deck.gl is built in another way.
function cornerFinder(deck) {
  class Taken { constructor(...props) { Object.assign(this, ...props); } }
  const stand = { props: { data: [], getHexagon: (d) => d, updateTriggers: {}, coverage: 1 }, getSubLayerClass: () => Taken, getSubLayerProps: () => ({}), _getForwardProps: () => ({ updateTriggers: {} }) };
  try {
    const { getPolygon } = deck.H3HexagonLayer.prototype._renderPolygonLayer.call(stand);
    return getPolygon("85283473fffffff").length >= 10 ? getPolygon : null;
  } catch {
    return null;
  }
}

// H3 cells of one level: their indexes, by which deck.gl draws them, and the corners of those that are looked at.
function buildCells(scene, name, deck) {
  const codes = scene.arrays[`${name} cells`], n = codes.length / 2, known = new Map(), find = cornerFinder(deck);
  const cells = Array.from({ length: n }, (_, i) => codes[2 * i + 1].toString(16) + codes[2 * i].toString(16).padStart(8, "0"));
  const ringOf = (region) => {
    if (!known.has(region)) {
      const flat = find(cells[region]);
      known.set(region, Array.from({ length: flat.length / 2 }, (_, k) => [flat[2 * k], flat[2 * k + 1]]));
    }
    return known.get(region);
  };
  return { n, centres: scene.arrays[`${name} centres`], cells, ringOf, indices: Array.from({ length: n }, (_, i) => i), polygons: [] };
}

// The H3 cell at a place: one of those with the nearest centres, since cells are nearly regular.
function hexagonAt(areas, longitude, latitude) {
  const near = [], across = Math.cos((latitude * Math.PI) / 180);
  for (let region = 0; region < areas.n; region += 1) {
    const distance = ((areas.centres[2 * region] - longitude) * across) ** 2 + (areas.centres[2 * region + 1] - latitude) ** 2;
    if (near.length === NEAREST && distance >= near[NEAREST - 1].distance) continue;
    near.push({ region, distance });
    near.sort((a, b) => a.distance - b.distance).splice(NEAREST);
  }
  return near.find(({ region }) => isInside([areas.ringOf(region)], longitude, latitude));
}

const centreOf = (areas, region) => [areas.centres[2 * region], areas.centres[2 * region + 1]];
const colorAt = (colors, i) => Array.from(colors.subarray(4 * i, 4 * i + 4));

// The dots of a pane, the largest first, since smaller ones are drawn over them.
function buildDots(scene, pane) {
  return (pane.areas ?? []).map((_, side) => {
    const radius = scene.arrays[pane.dots[side]] ?? [];
    return { radius, order: Array.from(radius, (_, region) => region).sort((a, b) => radius[b] - radius[a] || a - b) };
  });
}

function tripLayers(canvas, deck, pane, i) {
  const { scene } = canvas, flat = { pickable: false, parameters: { depthCompare: "always" } }, layers = [], circles = [];
  pane.areas.forEach((name, side) => {
    const areas = canvas.areas[name], fill = scene.arrays[pane.fills[side]], { radius, order } = canvas.dots[i][side], filled = !order.length;
    if (areas.cells) {
      layers.push(new deck.H3HexagonLayer({ id: `${i}:cells ${side}`, data: areas.indices, getHexagon: (d) => areas.cells[d], getFillColor: (d) => colorAt(fill, d), filled, highPrecision: true, stroked: true, extruded: false, getLineColor: scene.rim, lineWidthMinPixels: 0.6, lineWidthMaxPixels: 0.6, updateTriggers: { getFillColor: scene.key, getHexagon: scene.key }, ...flat }));
    } else if (areas.polygons.length) {
      layers.push(new deck.PolygonLayer({ id: `${i}:areas ${side}`, data: areas.polygons, getPolygon: (d) => d.rings, getFillColor: (d) => colorAt(fill, d.region), filled, stroked: true, getLineColor: scene.rim, lineWidthMinPixels: 0.6, lineWidthMaxPixels: 0.6, updateTriggers: { getFillColor: scene.key }, ...flat }));
    }
    if (!filled) {
      circles.push(new deck.ScatterplotLayer({ id: `${i}:dots ${side}`, data: order, getPosition: (d) => centreOf(areas, d), getRadius: (d) => radius[d] / 10, radiusUnits: "pixels", getFillColor: (d) => colorAt(fill, d), stroked: true, getLineColor: scene.rim, lineWidthMinPixels: 0.6, lineWidthMaxPixels: 0.6, updateTriggers: { getFillColor: scene.key, getRadius: scene.key, getPosition: scene.key }, ...flat }));
    }
  });
  layers.push(...circles.reverse());
  if (pane.arcs) layers.push(arcLayer(canvas, deck, pane, i, `${i}:arcs`, null));
  return layers;
}

// deck.gl has no dashes for arcs: along those that are dashed, the shader leaves out parts of equal length.
let dashable = null;
function dashableArcs(deck) {
  dashable ??= class extends deck.ArcLayer {
    static layerName = "DashableArcs";

    static defaultProps = { getDashed: { type: "accessor", value: 0 } };

    initializeState() {
      super.initializeState();
      this.getAttributeManager().addInstanced({ instanceDashed: { size: 1, accessor: "getDashed" } });
    }

    getShaders() {
      const inject = {
        "vs:#decl": "in float instanceDashed;\nout float dashes;",
        "vs:#main-end": `dashes = instanceDashed * distance(source.xy, target.xy) * project.scale / ${DASH.toFixed(1)};`,
        "fs:#decl": "in float dashes;",
        "fs:DECKGL_FILTER_COLOR": `if (fract(geometry.uv.x * dashes) > ${FILLED}) discard;`,
      };
      return { ...super.getShaders(), inject };
    }
  };
  return dashable;
}

// All arcs of a pane, or only some of them in one colour.
function arcLayer(canvas, deck, pane, i, id, chosen) {
  const { arrays } = canvas.scene, from = canvas.areas[pane.areas[0]], to = canvas.areas[pane.areas.at(-1)];
  const origin = arrays[`${i} origin`], destination = arrays[`${i} destination`], width = arrays[`${i} width`], dashed = arrays[`${i} dashed`];
  const data = chosen ?? Array.from({ length: pane.arcs.count }, (_, k) => k), accent = canvas.scene.accent;
  const Layer = dashableArcs(deck);
  return new Layer({
    id, data, getTilt: 90, getHeight: BEND, pickable: false, parameters: { depthCompare: "always" },
    getSourcePosition: (k) => centreOf(from, origin[k]), getTargetPosition: (k) => centreOf(to, destination[k]),
    getSourceColor: (k) => (chosen ? accent : colorAt(arrays[`${i} start_color`], k)), getTargetColor: (k) => (chosen ? accent : colorAt(arrays[`${i} color`], k)),
    getWidth: (k) => width[k] / 10 + (chosen ? 1.5 : 0), getDashed: (k) => (chosen ? 0 : dashed[k]),
    updateTriggers: Object.fromEntries(["getSourcePosition", "getTargetPosition", "getSourceColor", "getTargetColor", "getWidth", "getDashed"].map((name) => [name, [canvas.scene.key, chosen]])),
  });
}

// What lies under a point of the map in a pane: a dot, else an arc, else a polygon; null if nothing does.
function tripAt(canvas, pane, i, longitude, latitude) {
  const world = 512 * 2 ** canvas.camera.zoom, [x, y] = flatten(longitude, latitude);
  for (const [side, name] of pane.areas.entries()) {
    const areas = canvas.areas[name], { radius, order } = canvas.dots[i][side];
    const dot = order.findLast((region) => {
      const [u, v] = flatten(...centreOf(areas, region));
      return Math.hypot(u - x, v - y) * world <= radius[region] / 10 + NEAR_DOT;
    });
    if (dot !== undefined) return { side, region: dot };
  }
  const arc = pane.arcs ? arcAt(canvas, pane, i, x, y, world) : -1;
  if (arc >= 0) return { arc };
  for (const [side, name] of pane.areas.entries()) {
    const areas = canvas.areas[name], found = areas.cells ? hexagonAt(areas, longitude, latitude) : areas.polygons.findLast(({ rings, box }) => longitude >= box[0] && longitude <= box[2] && latitude >= box[1] && latitude <= box[3] && isInside(rings, longitude, latitude));
    if (found) return { side, region: found.region };
  }
  return null;
}

// The arc nearest to a point, at most a few pixels away. An arc is half an ellipse over the line from its origin (u = 0) to its
// destination (u = 1), so the distance is taken along both axes, without a loop over its parts.
function arcAt(canvas, pane, i, x, y, world) {
  const { arrays } = canvas.scene, from = canvas.areas[pane.areas[0]], to = canvas.areas[pane.areas.at(-1)];
  const origin = arrays[`${i} origin`], destination = arrays[`${i} destination`], width = arrays[`${i} width`];
  let best = -1, least = Infinity;
  for (let k = pane.arcs.count - 1; k >= 0; k -= 1) {
    const [a, b] = flatten(...centreOf(from, origin[k])), [c, d] = flatten(...centreOf(to, destination[k]));
    const squared = (c - a) ** 2 + (d - b) ** 2;
    if (!squared) continue;
    const u = ((x - a) * (c - a) + (y - b) * (d - b)) / squared, v = ((y - b) * (c - a) - (x - a) * (d - b)) / squared;
    const across = u >= 0 && u <= 1 ? Math.abs(v - BEND * Math.sqrt(u * (1 - u))) : Infinity;
    const rise = v >= 0 && v <= BEND / 2 ? Math.sqrt(0.25 - (v / BEND) ** 2) : NaN;
    const along = Number.isNaN(rise) ? Infinity : Math.min(Math.abs(u - 0.5 + rise), Math.abs(u - 0.5 - rise));
    const distance = Math.min(across, along) * Math.sqrt(squared) * world - width[k] / 20;
    if (distance < Math.min(least, NEAR_ARC)) [best, least] = [k, distance];
  }
  return best;
}

function isInside(rings, x, y) {
  let inside = false;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 1; i < ring.length; j = i, i += 1) {
      const [a, b] = ring[i], [c, d] = ring[j];
      if ((b > y) !== (d > y) && x < ((c - a) * (y - b)) / (d - b) + a) inside = !inside;
    }
  }
  return inside;
}

// The same pair, or the same region, in another pane; null if it is not drawn there.
function sameTrip(canvas, found, from, to, pane) {
  if (!found || from === to || found.arc === undefined) return found;
  const { arrays } = canvas.scene, start = arrays[`${from} origin`][found.arc], end = arrays[`${from} destination`][found.arc];
  const origin = arrays[`${to} origin`], destination = arrays[`${to} destination`];
  const arc = pane.arcs ? origin.findIndex((region, k) => region === start && destination[k] === end) : -1;
  return arc < 0 ? null : { arc };
}

const saysTrip = (canvas, pane, found) => (found === null ? "" : found.arc === undefined ? (pane.texts[found.region] ?? canvas.scene.areas[pane.areas[found.side]].texts[found.region]) : pane.arcs.texts[found.arc]);

// The pair or region under the pointer, and the chosen region, outlined.
function tripMarks(canvas, deck, pane, i, found) {
  const layers = [], { accent, boxColor } = canvas.scene, flat = { pickable: false, parameters: { depthCompare: "always" } };
  const outline = (id, side, region, color) => {
    const areas = canvas.areas[pane.areas[side]], shapes = areas.cells ? [{ rings: [areas.ringOf(region)] }] : areas.polygons.filter((polygon) => polygon.region === region);
    if (shapes.length) layers.push(new deck.PathLayer({ id: `${id} lines`, data: shapes.flatMap(({ rings }) => rings.map((ring) => [...ring, ring[0]])), getPath: (d) => d, getColor: color, widthMinPixels: 2.5, widthMaxPixels: 2.5, ...flat }));
    else layers.push(new deck.ScatterplotLayer({ id, data: [region], getPosition: (d) => centreOf(areas, d), getRadius: canvas.dots[i][side].radius[region] / 10 + 3, radiusUnits: "pixels", filled: false, stroked: true, getLineColor: color, lineWidthMinPixels: 2.5, lineWidthMaxPixels: 2.5, ...flat }));
  };
  for (const region of pane.chosen) outline(`${i}:chosen ${region}`, 0, region, boxColor);
  if (found?.arc !== undefined) layers.push(arcLayer(canvas, deck, pane, i, `${i}:hover arc`, [found.arc]));
  else if (found) outline(`${i}:hover`, found.side, found.region, accent);
  return layers;
}
