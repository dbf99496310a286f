/* A file's memory section as numbers: what each step holds by kind, and which tensors are live when. */

const KIND_NAMES = { x: "inputs", s: "saved states", y: "gradients", w: "workspace" };
const OP_NAMES = {
  f: "forward",
  s: "forward and save",
  l: "loss",
  b: "backward",
  d: "drop the output before",
  D: "drop the state of",
};

/* The colour of what holds memory; letters that have none of their own take turns. */
function kindVariable(key) {
  return `kind-${KIND_NAMES[key] ? key : key.charCodeAt(0) % 2}`;
}

function memoryOf(file) {
  const memory = file.memory;
  if (!memory || !memory.steps) return null;
  const names = Object.assign({}, memory.kinds || KIND_NAMES);
  const made = { file, steps: memory.steps, exact: !!memory.tensors, kinds: [], sums: {}, source: memory };
  const count = made.exact ? memory.steps : memory.columns.step.length;
  made.count = count;
  made.stepOf = made.exact ? (i) => i : (i) => memory.columns.step[i];
  if (made.exact) sumTensors(made, memory.tensors);
  else
    for (const key of Object.keys(names))
      if (memory.columns[key]) made.sums[key] = Float64Array.from(memory.columns[key]);
  made.total = new Float64Array(count);
  for (const key of Object.keys(made.sums)) {
    const sum = made.sums[key];
    let any = false;
    for (let i = 0; i < count; i++) {
      made.total[i] += sum[i];
      any = any || sum[i] > 0;
    }
    if (any) made.kinds.push({ key, name: names[key] || key, variable: kindVariable(key) });
  }
  made.peak = 0;
  for (let i = 1; i < count; i++) if (made.total[i] > made.total[made.peak]) made.peak = i;
  made.begin = startTimes(memory, count);
  return made;
}

/* Adds up what is live in each step: every tensor changes two places of a running sum. */
function sumTensors(made, tensors) {
  const keys = new Set(tensors.kind);
  for (const key of [...Object.keys(made.source.kinds || KIND_NAMES), ...keys])
    if (keys.has(key)) made.sums[key] = made.sums[key] || new Float64Array(made.steps + 1);
  for (let i = 0; i < tensors.kind.length; i++) {
    const sum = made.sums[tensors.kind[i]];
    sum[tensors.born[i]] += tensors.bytes[i];
    sum[Math.min(tensors.ends[i], made.steps)] -= tensors.bytes[i];
  }
  for (const sum of Object.values(made.sums)) for (let i = 1; i <= made.steps; i++) sum[i] += sum[i - 1];
}

/* When each step begins, in cost so far; null where costs are not said. */
function startTimes(memory, count) {
  if (!memory.cost || !memory.tensors) return null;
  const begin = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) begin[i + 1] = begin[i] + memory.cost[i];
  return begin[count] > 0 ? begin : null;
}

/* The tensors that are live in a step, the largest first. */
function aliveAt(made, step) {
  const tensors = made.source.tensors,
    alive = [];
  if (!tensors) return alive;
  for (let i = 0; i < tensors.kind.length; i++) if (tensors.born[i] <= step && step < tensors.ends[i]) alive.push(i);
  return alive.sort((a, b) => tensors.bytes[b] - tensors.bytes[a] || a - b);
}

function layerName(file, i) {
  return file.layers && file.layers.name && file.layers.name[i] !== undefined ? file.layers.name[i] : `layer ${i}`;
}

function tensorName(made, i) {
  const tensors = made.source.tensors;
  if (tensors.name) return tensors.name[i];
  const kind = tensors.kind[i],
    layer = tensors.layer[i];
  if (kind === "s") return `state of ${layerName(made.file, layer)}`;
  if (kind === "w") return "workspace of the step";
  if (layer === 0) return kind === "x" ? "the input" : "gradient of the input";
  return (kind === "x" ? "output of " : "gradient from ") + layerName(made.file, layer - 1);
}

function stepName(made, step) {
  const memory = made.source;
  if (!memory.op) return "";
  const op = memory.op[step],
    layer = memory.layer[step];
  const name = (memory.ops || OP_NAMES)[op] || op;
  if (op === "l") return name;
  if (op === "d" && !memory.ops)
    return layer === 0 ? "drop the input" : `drop the output of ${layerName(made.file, layer - 1)}`;
  return `${name} ${layerName(made.file, layer)}`;
}

/* Which steps of [from, to) to draw in `columns` columns: the fullest of each. */
function thinned(made, from, to, columns) {
  const picked = [];
  if (to - from <= columns) {
    for (let i = from; i < to; i++) picked.push(i);
    return picked;
  }
  for (let c = 0; c < columns; c++) {
    const begin = from + Math.floor(((to - from) * c) / columns),
      end = from + Math.floor(((to - from) * (c + 1)) / columns);
    let best = begin;
    for (let i = begin + 1; i < end; i++) if (made.total[i] > made.total[best]) best = i;
    picked.push(best);
  }
  return picked;
}
