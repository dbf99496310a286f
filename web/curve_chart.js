/* The curve: every plan worth having, from the smallest peak to the cheapest, and where each file stands. */

/* A curve's steep end is cut off at this many times the knee, if it goes on to far more. A button shows all of it. */
const STEEP_CUT = 4,
  STEEP_FACTOR = 1.5;

function overhead(cost, base) {
  return base ? ((cost - base) / base) * 100 : 0;
}

function overheadText(percent) {
  return `+${percent.toFixed(percent >= 100 ? 0 : 1)} %`;
}

/* A mark of its own with a name beside it. */
function markSet(name, point, variable, more) {
  return {
    label: name,
    data: [point],
    named: true,
    showLine: false,
    lineVariable: variable,
    pointRadius: 7,
    pointHoverRadius: 8,
    borderWidth: 1.5,
    order: -2,
    ...more,
  };
}

/* On an axis of all memory or of peaks; a file that does not say that figure is not there. */
function standing(file, whole, variable, name) {
  const figures = file.figures || {};
  const bytes = whole ? figures.total_bytes : figures.peak_bytes;
  if (!bytes || !figures.total_cost) return null;
  const point = { x: bytes, y: overhead(figures.total_cost, figures.base_cost) };
  return markSet(name, point, "page", { pointVariable: variable, pointStyle: "rectRot" });
}

function curveSets(file, variable) {
  const base = file.figures.base_cost,
    points = file.curve.points.map(([x, cost]) => ({ x, y: overhead(cost, base) })),
    line = {
      label: "best plans",
      data: points,
      lineVariable: variable,
      pointVariable: variable,
      borderWidth: 1.5,
      pointRadius: points.length > 200 ? 0 : points.length === 1 ? 5 : 2.5,
      stepped: "before",
      showLine: true,
    };
  if (points.length === 1) return [{ ...line, label: "the only plan", named: true }];
  const knee = markSet("knee", points[file.curve.knee], variable, { pointRadius: 10, borderWidth: 2, order: -1 });
  return [line, { ...knee, pointBackgroundColor: "transparent" }];
}

function curveWords(file, named) {
  const base = file.figures.base_cost,
    points = file.curve.points,
    knee = points[file.curve.knee],
    what = isModelled(file) ? "time (modelled)" : "cost",
    more = (cost) => `${cost === base ? "no" : percentText((cost - base) / base)} more ${what}`;
  const who = (text) => (named ? `${file.label}: ${text}` : text[0].toUpperCase() + text.slice(1));
  if (points.length === 1)
    return who(`only one plan is worth having: ${bytesText(points[0][0])} for ${more(points[0][1])}.`);
  return who(
    `the knee, where the curve bends most, is at ${bytesText(knee[0])} for ${more(knee[1])}; ` +
      `the least memory is ${bytesText(points[0][0])} for ${more(points[0][1])}.`,
  );
}

/* How far up the axis goes: past the knee, but not to a steep end that would flatten the rest. */
function curveTop(files, datasets) {
  const most = Math.max(...datasets.flatMap((set) => set.data.map((point) => point.y)));
  const knees = files.map((file) => overhead(file.curve.points[file.curve.knee][1], file.figures.base_cost));
  const cut = STEEP_CUT * Math.max(...knees);
  return cut > 0 && most > STEEP_FACTOR * cut ? { top: cut, most } : { top: most, most };
}

/* Names beside marks, and at the upper edge the plans that are above it. */
function curveMarks(datasets, limits) {
  return {
    id: "curveMarks",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales } = chart,
        taken = [];
      ctx.save();
      ctx.font = "12px system-ui, sans-serif";
      ctx.textBaseline = "bottom";
      const top = scales.y.max;
      for (const set of datasets) {
        const above = set.data.filter(({ y }) => y > top);
        ctx.fillStyle = colour(set.pointVariable || set.lineVariable);
        for (const { x } of above) {
          const at = scales.x.getPixelForValue(x);
          ctx.beginPath();
          ctx.moveTo(at, area.top);
          ctx.lineTo(at - 4, area.top + 7);
          ctx.lineTo(at + 4, area.top + 7);
          ctx.fill();
        }
        const [first] = set.data,
          where = `${bytesText(first.x)}, ${overheadText(first.y)}`;
        const x = scales.x.getPixelForValue(first.x) + 12;
        const beside = (text, y) => {
          const from = Math.min(x, area.right - ctx.measureText(text).width);
          placeText(ctx, taken, area, text, from, from < x ? y - 8 : y, "left", colour("text"));
        };
        if (set.named)
          beside(`${set.label}: ${where}`, Math.max(scales.y.getPixelForValue(first.y), area.top + 16) - 4);
        else if (above.length > 0) beside(`above: ${where}`, area.top + 24);
      }
      chart.labelBoxes = taken;
      chart.cut = limits.top < limits.most; /* both for tests */
      ctx.restore();
    },
  };
}

function curveChart(canvas, files, drawn, datasets, limits) {
  const bytes = datasets.flatMap((set) => set.data.map((point) => point.x)),
    least = Math.min(...bytes),
    largest = Math.max(...bytes),
    aside = largest > least * 1.02 ? (largest - least) * 0.05 : largest * 0.25; /* a plan alone: room for ticks */
  const what = drawn.some(isModelled) ? "time, modelled" : "cost";
  for (const set of datasets) set.parsing = false;
  const chart = new Chart(canvas, {
    type: "scatter",
    data: { datasets },
    plugins: [curveMarks(datasets, limits)],
    options: chartOptions({
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            label: (item) => `${item.dataset.label}: ${bytesText(item.raw.x)}, +${item.raw.y.toFixed(2)} % ${what}`,
          },
        },
      },
      scales: {
        x: axisOptions(drawn[0].kind === "model" ? "all memory of training" : "peak", {
          min: Math.max(0, least - aside),
          max: largest + aside,
          afterBuildTicks: (axis) => {
            axis.ticks = byteTicks(axis.min, axis.max, 7);
          },
          ticks: { callback: byteTickText, maxRotation: 0 },
        }),
        y: axisOptions(drawn.some(isModelled) ? "more time, modelled" : "more cost than keeping everything", {
          afterBuildTicks: (axis) => {
            axis.ticks = roundTicks(0, axis.max, 6);
          },
          ticks: { callback: (value) => `+${roundText(value)} %` },
        }),
      },
    }),
  });
  /* Room below 0, so that points there are whole. */
  const reach = (top) =>
    Object.assign(chart.options.scales.y, { min: -0.06 * (top || 1), max: top > 0 ? top * 1.12 : 1 });
  chart.reach = (top) => {
    reach(top);
    restyle(chart);
  };
  chart.reach(limits.top);
  themeListeners.push(() => restyle(chart));
  return chart;
}

function cutButton(limits, chart) {
  const words = () => (limits.shown === limits.most ? "Cut the steep end off" : "Show the steep end");
  const button = el("button", { type: "button" }, "Show the steep end");
  button.addEventListener("click", () => {
    limits.shown = limits.shown === limits.most ? limits.top : limits.most;
    chart.reach(limits.shown);
    button.textContent = words();
  });
  return button;
}

function curveTable(file) {
  const relative = isRelative(file);
  return tableDetails(
    "The curve as a table",
    [
      { name: "peak", number: true },
      { name: "bytes", number: true },
      ...(relative ? [] : [{ name: "cost", number: true }]),
      { name: isModelled(file) ? "more, modelled" : "more", number: true },
      { name: "note" },
    ],
    () =>
      file.curve.points.map(([peak, cost], i) => [
        bytesText(peak),
        countText(peak),
        ...(relative ? [] : [costText(cost, file.cost_unit)]),
        `+${overhead(cost, file.figures.base_cost).toFixed(2)} %`,
        i === file.curve.knee ? "knee" : "",
      ]),
  );
}

/* `files` have the same profile or not; each brings its own curve. */
function curveSection(files) {
  const drawn = files.filter((file) => file.curve && file.curve.points.length > 0);
  if (drawn.length === 0) return null;
  const texts = drawn.map((file) => JSON.stringify(file.curve.points)),
    different = drawn.filter((file, n) => texts.indexOf(texts[n]) === n),
    words = different.map((file) => curveWords(file, different.length > 1));
  const datasets = different.flatMap((file) => curveSets(file, `file-${files.indexOf(file) % 4}`));
  files.forEach((file, n) => {
    const name = file.kind === "profile" ? "everything kept" : files.length > 1 ? file.label : "this plan";
    const set = standing(file, drawn[0].kind === "model", files.length > 1 ? `file-${n % 4}` : "mark", name);
    if (set) datasets.push(set);
  });
  const limits = curveTop(different, datasets),
    { box, canvas } = plotBox(300, `Curve of cost over memory. ${words.join(" ")}`);
  const section = el(
    "div",
    {},
    el("h3", {}, "Cost over memory"),
    el("p", {}, `Each point is a plan; nothing found is cheaper in as little memory. ${words.join(" ")}`),
    box,
  );
  const start = () => {
    const chart = curveChart(canvas, files, drawn, datasets, limits);
    if (limits.top < limits.most) section.append(el("div", { class: "tools" }, cutButton(limits, chart)));
    section.append(curveTable(drawn[0]));
    return chart;
  };
  return { section, start };
}
