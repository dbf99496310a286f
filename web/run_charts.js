/* Of runs: loss and accuracy over time, and what was predicted beside what was measured. */

/* The share of a run that a moving average spans, and what must be there before one is drawn. */
const SMOOTH_SHARE = 1 / 25,
  SMOOTH_LEAST_POINTS = 40,
  SMOOTH_LEAST_NOISE = 0.01;

/* What to draw over the steps, one curve a row. */
const RUN_CURVES = [
  { key: "loss", title: "Loss", axis: "loss", text: (value) => (+value).toPrecision(4) },
  { key: "accuracy", title: "Accuracy", axis: "share of right answers", text: (value) => percentText(value), top: 1 },
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

/* A smooth line for points that jump; null where there are few, or where they are smooth already. */
function smoothed(points) {
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
  return noise > SMOOTH_LEAST_NOISE ? { points: mean, span: 2 * half + 1 } : null;
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
        label: (files.length > 1 ? `${file.label}: ` : "") + line.name,
        line,
        points,
        smooth: smoothed(points),
        variable: `${line.name === "validation" ? "held" : "file"}-${n % 4}`,
        dashed: files.length > 1 && line.name === "validation",
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
      pointRadius: points.length > 1 ? 0 : 4,
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

function runSection(files, curve) {
  const series = runSeries(files, curve.key).filter((each) => each.points.length > 0);
  if (series.length === 0) return null;
  const last = series
    .map((each) => `${each.label} ends at ${curve.text(each.points[each.points.length - 1].y)}`)
    .join("; ");
  const { box, canvas } = plotBox(280, `${curve.title} over the steps of training. ${last}`);
  const notes = (each) =>
    (each.smooth ? `, mean of ${each.smooth.span} steps over the faint line of all` : "") +
    (each.dashed ? " (dashed)" : "");
  const section = el(
    "div",
    {},
    el("h3", {}, curve.title),
    el("p", {}, `${last}.`),
    box,
    legend(series.map((each) => [each.variable, each.label + notes(each)])),
  );
  const start = () => {
    const said = files.find((file) => file[curve.key] && file[curve.key].axis);
    const chart = new Chart(canvas, {
      type: "line",
      data: { datasets: runDatasets(series) },
      options: chartOptions({
        scales: {
          x: axisOptions(said ? said[curve.key].axis : "step of training", {}),
          y: axisOptions(
            curve.axis,
            curve.top ? { min: 0, max: curve.top, ticks: { callback: (value) => `${roundText(100 * value)} %` } } : {},
          ),
        },
      }),
    });
    themeListeners.push(() => restyle(chart));
    restyle(chart);
    return chart;
  };
  section.append(
    tableDetails(
      `${curve.title} as a table`,
      [{ name: "series" }, { name: "step", number: true }, { name: curve.key, number: true }],
      () =>
        series.flatMap((each) => {
          const every = Math.max(1, Math.ceil(each.line.value.length / 100));
          return each.line.value
            .map((value, i) => [each.label, each.line.step[i], value])
            .filter((row, i) => i % every === 0 || i + 1 === each.line.value.length);
        }),
    ),
  );
  return { section, start };
}

function measuredSection(file) {
  const rows = file.measured && file.measured.rows;
  if (!rows || rows.length === 0) return null;
  const text = (value, unit) =>
    value === null || value === undefined
      ? "–"
      : unit === "bytes"
        ? `${bytesText(value)} (${countText(value)})`
        : costText(value, unit);
  const difference = (row) => {
    if (row.predicted === null || row.measured === null || row.predicted === undefined || row.measured === undefined)
      return "–";
    if (row.predicted === row.measured) return "equal";
    return row.predicted
      ? (row.measured > row.predicted ? "+" : "") + percentText((row.measured - row.predicted) / row.predicted)
      : "–";
  };
  const table = el(
    "table",
    {},
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "figure"),
        el("th", { class: "number", scope: "col" }, "predicted"),
        el("th", { class: "number", scope: "col" }, "measured"),
        el("th", { class: "number", scope: "col" }, "difference"),
      ),
    ),
    el(
      "tbody",
      {},
      ...rows.map((row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, row.what),
          el("td", { class: "number" }, text(row.predicted, row.unit)),
          el("td", { class: "number" }, text(row.measured, row.unit)),
          el("td", { class: "number" }, difference(row)),
        ),
      ),
    ),
  );
  return {
    section: el("div", {}, el("h3", {}, "Predicted and measured"), el("div", { class: "scroll" }, table)),
    start: () => null,
  };
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
  return {
    section: el(
      "div",
      {},
      el("h3", {}, "What memory is made of"),
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ...[
                ["what", false],
                ["bytes", true],
                ["share", true],
                ["of all", false],
              ].map(([name, number]) => el("th", { scope: "col", class: number ? "number" : null }, name)),
            ),
          ),
          el(
            "tbody",
            {},
            ...rows.map((row) =>
              el(
                "tr",
                {},
                el("th", { scope: "row" }, row.what),
                el("td", { class: "number" }, bytesText(row.bytes)),
                el("td", { class: "number" }, percentText(row.bytes / all)),
                el("td", { class: "bars" }, bar(row.bytes / all)),
              ),
            ),
          ),
        ),
      ),
    ),
    start: () => null,
  };
}
