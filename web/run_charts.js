/* Of runs: the loss over time, and what was predicted beside what was measured. */

function lossSection(files) {
  const series = [];
  files.forEach((file, n) => {
    for (const [s, line] of ((file.loss && file.loss.series) || []).entries())
      series.push({
        label: (files.length > 1 ? `${file.label}: ` : "") + line.name,
        line,
        variable: `file-${(files.length > 1 ? n : s) % 4}`,
        dashed: files.length > 1 && s > 0,
      });
  });
  if (series.length === 0) return null;
  const last = series
    .map((each) => `${each.label} ends at ${(+each.line.value[each.line.value.length - 1]).toPrecision(4)}`)
    .join("; ");
  const { box, canvas } = plotBox(280, `Loss over the steps of training. ${last}`);
  const section = el(
    "div",
    {},
    el("h3", {}, "Loss"),
    el("p", {}, `${last}.`),
    box,
    legend(series.map((each) => [each.variable, each.label + (each.dashed ? " (dashed)" : "")])),
  );
  const start = () => {
    const thin = (line) => {
      const every = Math.max(1, Math.ceil(line.value.length / 2000)),
        points = [];
      for (let i = 0; i < line.value.length; i++)
        if (i % every === 0 || i + 1 === line.value.length)
          if (line.value[i] !== null) points.push({ x: line.step[i], y: line.value[i] });
      return points;
    };
    const chart = new Chart(canvas, {
      type: "line",
      data: {
        datasets: series.map((each) => ({
          label: each.label,
          data: thin(each.line),
          parsing: false,
          lineVariable: each.variable,
          pointVariable: each.variable,
          borderWidth: 1.8,
          borderDash: each.dashed ? [5, 4] : [],
          pointRadius: 0,
          pointHitRadius: 8,
        })),
      },
      options: chartOptions({
        scales: {
          x: axisOptions((files[0].loss && files[0].loss.axis) || "step of training", {}),
          y: axisOptions("loss", {}),
        },
      }),
    });
    themeListeners.push(() => restyle(chart));
    restyle(chart);
    return chart;
  };
  section.append(
    tableDetails(
      "The loss as a table",
      [{ name: "series" }, { name: "step", number: true }, { name: "loss", number: true }],
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
