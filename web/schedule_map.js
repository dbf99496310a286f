/* What runs when: steps to the right, layers downwards. A layer that is recomputed has a second mark. */

const SCHEDULE_KINDS = [
  ["forward", "forward, nothing saved"],
  ["save", "forward, state saved"],
  ["again", "recomputed forward"],
  ["backward", "backward"],
];

const GRAPH_KINDS = [
  ["forward", "run, made again later"],
  ["save", "run, kept"],
  ["again", "recomputed"],
  ["backward", "run once"],
];

/* The colour of a step's mark; null: it has none. */
function markKind(made, op, i) {
  if (op === "b" || op === "g") return "backward";
  if (!isForward(op)) return null;
  if (made.firstForward[made.source.layer[i]] !== i) return "again";
  return op === "s" ? "save" : "forward";
}

function drawSchedule(context, place, view, made) {
  const memory = made.source,
    height = (place.bottom - place.top) / Math.max(1, made.layerCount),
    inks = Object.fromEntries(SCHEDULE_KINDS.map(([variable]) => [variable, colour(variable)]));
  context.fillStyle = colour("waste");
  context.fillRect(place.left, place.top, place.width, place.bottom - place.top);
  const from = view.indexAt(made, view.min),
    to = Math.min(view.indexAt(made, view.max) + 1, made.count);
  for (let i = from; i < to; i++) {
    const kind = markKind(made, memory.op[i], i);
    if (!kind) continue;
    context.fillStyle = inks[kind];
    const x = place.x(view.position(made, i)),
      end = place.x(view.position(made, i + 1));
    context.fillRect(x, place.top + memory.layer[i] * height, Math.max(end - x, 1.5), Math.max(height, 1.5));
  }
}

function scheduleSection(file, made, view, chart) {
  if (!made || !made.source.op || !file.layers) return null;
  const memory = made.source;
  made.layerCount = file.layers.name.length;
  const kinds = [...memory.op].map((op, i) => markKind(made, op, i)),
    seen = new Set(kinds),
    again = kinds.filter((kind) => kind === "again").length;
  const { box, canvas } = plotBox(
    Math.min(340, Math.max(90, made.layerCount * 14)) + MAP_AXIS_HEIGHT,
    `What runs when: ${thingsOf(file)} over steps`,
  );
  const rows = rowsOf(file),
    row = rows.slice(0, -1);
  const said = () => {
    if (!again) return `Every ${row} runs${file.kind === "graph" ? "" : " forward"} once.`;
    if (file.kind === "graph") return `${countText(again)} ${again === 1 ? "run makes" : "runs make"} something again.`;
    return `${countText(again)} ${again === 1 ? "forward runs" : "forwards run"} a second time or more.`;
  };
  const inside = rows === "pieces" ? " What a piece recomputes in its own backward pass is part of that pass." : "";
  const section = el(
    "div",
    {},
    el("h3", {}, "What runs when"),
    el("p", {}, `Each mark is a step: the first ${row} at the top, time to the right. ${said()}${inside}`),
    box,
    legend((file.kind === "graph" ? GRAPH_KINDS : SCHEDULE_KINDS).filter(([variable]) => seen.has(variable))),
  );
  const steps = shownRows(made.count, (count) => thinned(made, 0, made.count, count));
  section.append(
    tableDetails(
      "The steps as a table",
      [{ name: "step", number: true }, { name: "what runs" }, { name: "live bytes", number: true }],
      () => steps.rows.map((i) => [countText(i), stepName(made, i), countText(made.total[i])]),
      steps.note,
    ),
  );
  const axis = {
    title: "",
    ticks: (place) => {
      const height = (place.bottom - place.top) / made.layerCount,
        step = height >= 12 ? 1 : Math.max(1, roundStep(12 / height)),
        ticks = [];
      for (let layer = 0; layer < made.layerCount; layer += step)
        ticks.push({
          y: place.top + (layer + 0.5) * height,
          text: countText(layer),
          name: layerName(file, layer),
        });
      return ticks;
    },
  };
  return {
    section,
    start: () => mapCanvas(canvas, view, chart, axis, (context, place) => drawSchedule(context, place, view, made)),
  };
}
