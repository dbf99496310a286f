/* Of runs: loss, accuracy and what else a log has over the steps, and what was predicted beside what was measured. */

/* The share of a run that a moving average spans, and what must be there before one is drawn. */
const SMOOTH_SHARE = 1 / 25,
  SMOOTH_LEAST_POINTS = 40,
  SMOOTH_LEAST_NOISE = 0.01;

function shortFigure(value) {
  return String(+(+value).toPrecision(4));
}

/* What to draw over the steps, one curve a row; small ones stand beside each other. */
const RUN_CURVES = [
  { key: "loss", title: "Loss", axis: "loss", text: shortFigure },
  { key: "accuracy", title: "Accuracy", axis: "share of right answers", text: percentText, top: 1 },
  {
    key: "throughput",
    title: "Throughput",
    axis: "samples/s",
    text: (value) => `${shortFigure(value)} samples/s`,
    small: true,
  },
  { key: "rate", title: "Learning rate", axis: "rate", text: shortFigure, small: true },
  { key: "norm", title: "Norm of the gradient", axis: "norm", text: shortFigure, small: true },
];

function knownPoints(line) {
  const points = [];
  line.value.forEach((value, i) => {
    if (value !== null) points.push({ x: line.step[i], y: value });
  });
  return points;
}

/* The mean around each point. Towards both ends it spans a third, so that it begins and ends where the values do. */
function movingMean(points, half) {
  const sums = new Float64Array(points.length + 1);
  points.forEach((point, i) => (sums[i + 1] = sums[i] + point.y));
  return points.map(({ x }, i) => {
    const reach = Math.min(half, Math.max(Math.floor(half / 3), Math.min(i, points.length - 1 - i))),
      from = Math.max(0, i - reach),
      to = Math.min(points.length, i + reach + 1);
    return { x, y: (sums[to] - sums[from]) / (to - from) };
  });
}

/* A smooth line for points that jump; null where there are few or, unless `always`, where they are smooth already. */
function smoothed(points, always) {
  if (points.length < SMOOTH_LEAST_POINTS) return null;
  const half = Math.max(2, Math.round((points.length * SMOOTH_SHARE) / 2)),
    mean = movingMean(points, half);
  let low = Infinity,
    high = -Infinity,
    away = 0;
  points.forEach(({ y }, i) => {
    low = Math.min(low, y);
    high = Math.max(high, y);
    away += Math.abs(y - mean[i].y);
  });
  const noise = away / points.length / (high - low || 1);
  return always || noise > SMOOTH_LEAST_NOISE ? { points: mean, span: 2 * half + 1 } : null;
}

function thinPoints(points) {
  const every = Math.max(1, Math.ceil(points.length / 2000));
  return points.filter((point, i) => i % every === 0 || i + 1 === points.length);
}

/* Each file has a colour for training and another for validation. */
function runSeries(files, key) {
  return files.flatMap((file, n) =>
    ((file[key] && file[key].series) || []).map((line) => {
      const points = knownPoints(line);
      return {
        label: files.length > 1 ? `${file.label}: ${line.name}` : line.name,
        line,
        points,
        smooth: smoothed(points),
        variable: `${line.name === "validation" ? "held" : "file"}-${n % 4}`,
        dashed: files.length > 1 && line.name === "validation" && points.length > 1,
        file: n,
      };
    }),
  );
}

function runDatasets(series) {
  return series.flatMap((each) => {
    const set = (label, points, more) => ({
      label,
      data: thinPoints(points),
      parsing: false,
      lineVariable: each.variable,
      pointVariable: each.variable,
      borderWidth: 1.8,
      borderDash: each.dashed ? [5, 4] : [],
      pointRadius: points.length > 30 ? 0 : points.length > 1 ? 2.5 : 5 + 2 * each.file /* one around the other */,
      clip: 6 /* points at the edge are whole */,
      pointHitRadius: 8,
      ...more,
    });
    if (!each.smooth) return [set(each.label, each.points, {})];
    return [
      set(`${each.label}, mean of ${each.smooth.span} steps`, each.smooth.points, { order: 0 }),
      set(each.label, each.points, { faint: true, borderWidth: 1, order: 1 }),
    ];
  });
}

/* The first and last step get room at the sides, so that a point alone is no edge. */
function stepAxis(series, title) {
  const steps = series.flatMap((each) => each.points.map((point) => point.x)),
    first = Math.min(...steps),
    last = Math.max(...steps);
  const range = first === last ? { min: first - 1, max: last + 1 } : { min: first, max: last };
  return axisOptions(title, { ...range, ticks: { precision: 0, maxRotation: 0 } });
}

function runChart(canvas, files, curve, series) {
  const said = files.find((file) => file[curve.key] && file[curve.key].axis);
  const most = Math.max(...series.flatMap((each) => each.points.map((point) => point.y)));
  const share = { min: 0, max: curve.top, ticks: { callback: (value) => `${roundText(100 * value)} %` } };
  const chart = new Chart(canvas, {
    type: "line",
    data: { datasets: runDatasets(series) },
    options: chartOptions({
      scales: {
        x: stepAxis(series, said ? said[curve.key].axis : "step of training"),
        y: axisOptions(
          curve.axis,
          curve.top ? share : curve.small ? { beginAtZero: true, suggestedMax: most * 1.05 } : {},
        ),
      },
    }),
  });
  themeListeners.push(() => restyle(chart));
  restyle(chart);
  return chart;
}

function runTable(curve, series) {
  const longest = Math.max(...series.map((each) => each.points.length)),
    every = Math.max(1, Math.ceil(longest / ROWS_SHOWN));
  return tableDetails(
    `${curve.title} as a table`,
    [{ name: "series" }, { name: "step", number: true }, { name: curve.axis, number: true }],
    () =>
      series.flatMap(({ label, points }) =>
        points
          .filter((point, i) => i % every === 0 || i + 1 === points.length)
          .map(({ x, y }) => [label, countText(x), y]),
      ),
    every > 1 ? `Every ${every}th value and the last.` : "",
  );
}

function runSection(files, curve) {
  const series = runSeries(files, curve.key).filter((each) => each.points.length > 0);
  if (series.length === 0) return null;
  if (series.some((each) => each.smooth)) for (const each of series) each.smooth = smoothed(each.points, true);
  const last = series
    .map((each) => `${each.label} ends at ${curve.text(each.points[each.points.length - 1].y)}`)
    .join("; ");
  const { box, canvas } = plotBox(curve.small ? 190 : 280, `${curve.title} over the steps of training. ${last}`);
  const notes = (each) =>
    (each.smooth ? `, mean of ${each.smooth.span} steps over the faint line of all` : "") +
    (each.dashed ? " (dashed)" : "");
  const section = el(
    "div",
    {},
    el("h3", {}, curve.title),
    el("p", {}, `${files.length > 1 ? last : last[0].toUpperCase() + last.slice(1)}.`),
    box,
    curve.small && files.length === 1 ? null : legend(series.map((each) => [each.variable, each.label + notes(each)])),
    runTable(curve, series),
  );
  return { section, start: () => runChart(canvas, files, curve, series) };
}

/* All curves of the runs among the files. */
function addRunCurves(to, files) {
  for (const curve of RUN_CURVES.filter((each) => !each.small)) addPart(to, runSection(files, curve));
  const row = el("div", { class: "small-charts" });
  to.append(row);
  for (const curve of RUN_CURVES.filter((each) => each.small)) addPart(row, runSection(files, curve));
  if (!row.firstChild) row.remove();
}

function measuredSection(file) {
  const rows = file.measured && file.measured.rows;
  if (!rows || rows.length === 0) return null;
  const known = (value) => value !== null && value !== undefined;
  const text = (value, unit) => {
    if (!known(value)) return "–";
    return unit === "bytes" ? `${bytesText(value)} (${countText(value)})` : costText(value, unit);
  };
  const difference = ({ predicted, measured }) => {
    if (!known(predicted) || !known(measured)) return "–";
    if (predicted === measured) return "equal";
    return predicted ? (measured > predicted ? "+" : "") + percentText((measured - predicted) / predicted) : "–";
  };
  const heads = [
    { name: "figure", row: true },
    { name: "predicted", number: true },
    { name: "measured", number: true },
    { name: "difference", number: true },
  ];
  const title = "Predicted and measured";
  const table = scrollTable(
    title,
    heads,
    rows.map((row) => [row.what, text(row.predicted, row.unit), text(row.measured, row.unit), difference(row)]),
  );
  return { section: el("div", {}, el("h3", {}, title), table), start: () => null };
}

/* What memory is made of for as long as the run lives. */
function holdsSection(file) {
  const rows = file.holds && file.holds.rows.filter((row) => row.bytes > 0);
  if (!rows || rows.length === 0) return null;
  const all = rows.reduce((sum, row) => sum + row.bytes, 0);
  const bar = (share) => {
    const made = el("div", { class: "bar", "aria-hidden": "true" });
    made.style.width = `${Math.max(share * 100, 0.5)}%`;
    return made;
  };
  const heads = [
    { name: "what", row: true },
    { name: "bytes", number: true },
    { name: "share", number: true },
    { name: "of all", class: "bars" },
  ];
  const title = "What memory is made of";
  const table = scrollTable(
    title,
    heads,
    rows.map((row) => [row.what, bytesText(row.bytes), percentText(row.bytes / all), bar(row.bytes / all)]),
  );
  return { section: el("div", {}, el("h3", {}, title), table), start: () => null };
}
