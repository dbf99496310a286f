/* What is written over the memory chart and the maps below it: the passes, limits, and the peak. */

const FARTHEST = 4; /* a limit that is more times the peak is not drawn: it would flatten what is */

function textOver(context, text, x, y, align, ink) {
  context.textAlign = align;
  context.lineWidth = 4;
  context.strokeStyle = colour("page");
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

/* Puts a text above a point, and higher where it would cover one that is there already. */
function placeText(context, taken, area, text, x, y, align, ink) {
  const width = context.measureText(text).width,
    height = 15;
  if (align === "center") x = Math.min(Math.max(x, area.left + width / 2 + 4), area.right - width / 2 - 4);
  const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
  const covered = (bottom) =>
    taken.find(
      (box) => left < box.right + 6 && left + width > box.left - 6 && bottom > box.top && bottom - height < box.bottom,
    );
  let bottom = y;
  for (let box = covered(bottom); box && bottom > area.top; box = covered(bottom)) bottom = box.top;
  taken.push({ left, right: left + width, top: bottom - height, bottom });
  textOver(context, text, x, bottom, align, ink);
}

/* The passes that are in view: name, and where they begin and end on the axis. */
function phasesOf(view, made) {
  const phases = made.source.phases || [];
  return phases
    .map(([name, step], n) => ({
      name,
      border: step > 0,
      from: view.position(made, step),
      to: view.position(made, n + 1 < phases.length ? phases[n + 1][1] : made.count),
    }))
    .filter(({ from, to }) => to > view.min && from < view.max);
}

/* A line where each pass begins; the names are above the plot, where nothing else is. */
function drawPhases(context, area, pixelOf, phases, named) {
  context.save();
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "bottom";
  let taken = -Infinity;
  for (const { name, from, to, border } of phases) {
    const x = pixelOf(from),
      middle = (Math.max(x, area.left) + Math.min(pixelOf(to), area.right)) / 2,
      half = context.measureText(name).width / 2;
    if (border && x >= area.left) {
      context.strokeStyle = colour("text");
      context.lineWidth = 1;
      context.setLineDash([2, 2]);
      context.beginPath();
      context.moveTo(x, named ? area.top - 4 : area.top);
      context.lineTo(x, area.bottom);
      context.stroke();
    }
    const at = Math.max(middle, taken + half);
    context.setLineDash([]);
    if (!named || at + half > area.right + 4) continue;
    textOver(context, name, at, area.top - 3, "center", colour("quiet"));
    taken = at + half + 6;
  }
  context.restore();
}

/* Lines across and the peak's mark, drawn over the stack. */
function memoryMarks(view, mades, lines) {
  return {
    id: "memoryMarks",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales } = chart;
      const pixelOf = (value) => scales.x.getPixelForValue(value);
      if (mades.length === 1) drawPhases(ctx, area, pixelOf, phasesOf(view, mades[0]), true);
      ctx.save();
      ctx.font = "12px system-ui, sans-serif";
      ctx.textBaseline = "bottom";
      const taken = [];
      for (const line of lines) {
        const y = line.above ? area.top + 16 : scales.y.getPixelForValue(line.value);
        if (line.above) placeText(ctx, taken, area, line.text, area.right - 6, y, "right", colour(line.variable));
        if (line.above || y < area.top - 1 || y > area.bottom) continue;
        ctx.setLineDash(line.dash);
        ctx.lineWidth = 1.5;
        ctx.strokeStyle = colour(line.variable);
        ctx.beginPath();
        ctx.moveTo(area.left, y);
        ctx.lineTo(area.right, y);
        ctx.stroke();
        ctx.setLineDash([]);
        placeText(ctx, taken, area, line.text, area.right - 6, y - 3, "right", colour(line.variable));
      }
      if (mades.length === 1) markPeak(chart, view, mades[0], taken);
      chart.labelBoxes = taken; /* for tests: no two of them overlap */
      ctx.restore();
    },
  };
}

function markPeak(chart, view, made, taken) {
  const { ctx, chartArea: area, scales } = chart;
  const i = made.peak,
    x = scales.x.getPixelForValue((view.position(made, i) + view.position(made, i + 1)) / 2);
  if (x < area.left || x > area.right) return;
  const y = scales.y.getPixelForValue(made.total[i]);
  ctx.fillStyle = colour("mark");
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - 5, y - 8);
  ctx.lineTo(x + 5, y - 8);
  ctx.fill();
  const name = stepName(made, i);
  const brief = `peak ${bytesText(made.total[i])}, step ${countText(made.stepOf(i))}`,
    whole = name ? `${brief}: ${name}` : brief;
  const text = ctx.measureText(whole).width < area.right - area.left - 8 ? whole : brief;
  placeText(ctx, taken, area, text, x, y - 10, "center", colour("mark"));
}

/* The budget, and the peak with everything kept, which is only said where it is far above the chart. */
function memoryLines(file, peak) {
  const figures = file.figures || {},
    lines = [];
  const budget =
    file.kind === "model"
      ? figures.arena_budget_bytes
      : figures.budget_bytes; /* what the chart shows is the arena alone */
  if (budget && budget <= FARTHEST * peak)
    lines.push({
      value: budget,
      text: (file.kind === "model" ? "budget of the arena " : "budget ") + bytesText(budget),
      variable: "text",
      dash: [6, 4],
    });
  const all = figures.base_peak_bytes,
    above = all > FARTHEST * peak;
  if (all > peak)
    lines.push({
      value: above ? peak : all,
      above,
      text: `everything kept: ${bytesText(all)}${above ? ", above the chart" : ""}`,
      variable: "quiet",
      dash: [2, 3],
    });
  return lines;
}
