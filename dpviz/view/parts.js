// The parts of the scenes of a page, each kept as long as its owner is on the page. A part that an owner gets in place of another one
// lets that one go: a canvas holds what it shows.
function keepPart(data, owner) {
  const parts = (globalThis.dpvizParts ??= new Map()), part = unpack(data);
  parts.set(owner, part);
  globalThis.dispatchEvent(new Event("dpvizpart"));
  return () => { if (parts.get(owner) === part) parts.delete(owner); };
}

// A message is a digest of 16 digits, the length of a JSON header, the header, and the arrays that it names with their types and lengths.
function unpack(data) {
  const bytes = (data instanceof Uint8Array ? data : new Uint8Array(data)).slice(), size = new DataView(bytes.buffer).getUint32(16, true);
  const text = new TextDecoder(), part = JSON.parse(text.decode(bytes.subarray(20, 20 + size)));
  const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  let at = 20 + size;
  const arrays = {};
  for (const [name, kind, length] of part.arrays) {
    const end = at + length * kinds[kind].BYTES_PER_ELEMENT;
    arrays[name] = new kinds[kind](bytes.slice(at, end).buffer);
    at = end;
  }
  return { ...part, key: text.decode(bytes.subarray(0, 16)), arrays };
}

// The newest scene of a canvas, from its header and the parts that this names; null while one of them is missing.
function joinParts(canvas) {
  const kept = [...(globalThis.dpvizParts ?? new Map()).values()], header = kept.find((part) => part.canvas === canvas);
  const parts = header?.parts.map((key) => kept.find((part) => part.key === key));
  if (!parts?.every(Boolean)) return null;
  const scene = { ...header, arrays: {}, cells: {}, areas: {}, panes: parts.flatMap(({ key, pane }) => (pane ? { ...pane, key } : [])) };
  for (const { arrays, cells, areas, surroundings } of parts) {
    Object.assign(scene, surroundings);
    Object.assign(scene.arrays, arrays);
    Object.assign(scene.cells, cells);
    Object.assign(scene.areas, areas);
  }
  return scene;
}
