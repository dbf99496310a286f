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

/* Tensors of the kind s by what the plan does with them: kept, or dropped and recomputed. */
const FATES = [
  ["s", "kept"],
  ["d", "dropped, made again later"],
  ["r", "recomputed"],
];

/* The colour of what holds memory; letters that have none of their own take turns. */
function kindVariable(key) {
  if (key === "d") return "forward";
  if (key === "r") return "again";
  return `kind-${KIND_NAMES[key] ? key : key.charCodeAt(0) % 2}`;
}

function isForward(op) {
  return op === "f" || op === "s";
}

/* By layer: the step in which it runs forward for the first time. */
function firstForwards(memory) {
  const first = {};
  for (let i = 0; memory.op && i < memory.steps; i++)
    if (isForward(memory.op[i]) && first[memory.layer[i]] === undefined) first[memory.layer[i]] = i;
  return first;
}

/* The kind of each tensor, with d and r for what is made more than once. Of a chain, only a later forward may save. */
function fatesOf(made) {
  const tensors = made.source.tensors,
    kinds = [...tensors.kind],
    before = new Map();
  const order = [...kinds.keys()].filter((i) => kinds[i] === "s").sort((a, b) => tensors.born[a] - tensors.born[b]);
  for (const i of order) {
    const id = (tensors.tensor || tensors.layer)[i],
      late = !tensors.tensor && made.firstForward[id] !== tensors.born[i];
    if (before.has(id)) kinds[before.get(id)] = kinds[before.get(id)] === "s" ? "d" : "r";
    if (before.has(id) || late) kinds[i] = "r";
    before.set(id, i);
  }
  return kinds;
}

/* The kinds with their names, from the bottom of the stack up. */
function namedKinds(names, kinds) {
  const fates = kinds.includes("r"),
    rows = [];
  for (const [key, name] of Object.entries(names))
    if (key === "s" && fates) for (const [fate, what] of FATES) rows.push([fate, `${name}, ${what}`]);
    else rows.push([key, name]);
  return rows;
}

function memoryOf(file) {
  const memory = file.memory;
  if (!memory || !memory.steps) return null;
  const names = memory.kinds || KIND_NAMES;
  const made = { file, steps: memory.steps, exact: !!memory.tensors, kinds: [], sums: {}, source: memory };
  const count = made.exact ? memory.steps : memory.columns.step.length;
  made.count = count;
  made.stepOf = made.exact ? (i) => i : (i) => memory.columns.step[i];
  made.firstForward = firstForwards(memory);
  made.kindOf = made.exact ? fatesOf(made) : [];
  if (made.exact) sumTensors(made, memory.tensors);
  else for (const key of Object.keys(names)) made.sums[key] = memory.columns[key];
  made.total = new Float64Array(count);
  for (const [key, name] of namedKinds(names, made.kindOf)) {
    const sum = made.sums[key];
    let any = false;
    for (let i = 0; sum && i < count; i++) {
      made.total[i] += sum[i];
      any = any || sum[i] > 0;
    }
    if (any) made.kinds.push({ key, name, variable: kindVariable(key) });
  }
  made.peak = 0;
  for (let i = 1; i < count; i++) if (made.total[i] > made.total[made.peak]) made.peak = i;
  made.begin = startTimes(memory, count);
  return made;
}

/* Adds up what is live in each step: every tensor changes two places of a running sum. */
function sumTensors(made, tensors) {
  for (const key of new Set(made.kindOf)) made.sums[key] = new Float64Array(made.steps + 1);
  for (let i = 0; i < tensors.kind.length; i++) {
    const sum = made.sums[made.kindOf[i]];
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
