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

function drawSchedule(context, place, view, made) {
  const memory = made.source,
    layers = Math.max(1, made.layerCount),
    seen = made.firstForward;
  const height = (place.bottom - place.top) / layers,
    inks = SCHEDULE_KINDS.map(([variable]) => colour(variable));
  context.fillStyle = colour("waste");
  context.fillRect(place.left, place.top, place.width, place.bottom - place.top);
  const from = view.indexAt(made, view.min),
    to = Math.min(view.indexAt(made, view.max) + 1, made.count);
  for (let i = from; i < to; i++) {
    const op = memory.op[i],
      layer = memory.layer[i];
    if (op !== "f" && op !== "s" && op !== "b" && op !== "g") continue;
    context.fillStyle = inks[op === "b" || op === "g" ? 3 : seen[layer] !== i ? 2 : op === "s" ? 1 : 0];
    const x = place.x(view.position(made, i)),
      end = place.x(view.position(made, i + 1));
    context.fillRect(x, place.top + layer * height, Math.max(end - x, 1.5), Math.max(height, 1.5));
  }
}

function scheduleSection(file, made, view, chart) {
  if (!made || !made.source.op || !file.layers) return null;
  const memory = made.source;
  made.layerCount = file.layers.name.length;
  made.firstForward = {};
  let again = 0;
  for (let i = 0; i < made.count; i++)
    if (memory.op[i] === "f" || memory.op[i] === "s") {
      if (made.firstForward[memory.layer[i]] === undefined) made.firstForward[memory.layer[i]] = i;
      else again++;
    }
  const { box, canvas } = plotBox(
    Math.min(220, Math.max(90, made.layerCount * 14)) + MAP_AXIS_HEIGHT,
    `What runs when: ${thingsOf(file)} over steps`,
  );
  const section = el(
    "div",
    {},
    el("h3", {}, "What runs when"),
    el(
      "p",
      {},
      `Each mark is a step: the first ${thingsOf(file).slice(0, -1)} at the top, time to the right. ${
        again
          ? file.kind === "graph"
            ? `${countText(again)} ${again === 1 ? "run makes" : "runs make"} something again.`
            : `${countText(again) + (again === 1 ? " forward runs" : " forwards run")} a second time or more.`
          : `Every ${thingsOf(file).slice(0, -1)} runs${file.kind === "graph" ? "" : " forward"} once.`
      }`,
    ),
    box,
    legend(
      (file.kind === "graph" ? GRAPH_KINDS : SCHEDULE_KINDS).filter(([variable]) => variable !== "again" || again),
    ),
  );
  section.append(
    tableDetails(
      "The steps as a table",
      [{ name: "step", number: true }, { name: "what runs" }, { name: "live bytes", number: true }],
      () => thinned(made, 0, made.count, 400).map((i) => [i, stepName(made, i), countText(made.total[i])]),
    ),
  );
  const axis = {
    title: thingsOf(file).slice(0, -1),
    ticks: (place) => {
      const step = Math.max(1, roundStep(made.layerCount / 5)),
        height = (place.bottom - place.top) / made.layerCount,
        ticks = [];
      for (let layer = 0; layer < made.layerCount; layer += step)
        ticks.push({ y: place.top + (layer + 0.5) * height, text: countText(layer) });
      return ticks;
    },
  };
  return {
    section,
    start: () => mapCanvas(canvas, view, chart, axis, (context, place) => drawSchedule(context, place, view, made)),
  };
}
