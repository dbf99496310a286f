/* The curve: every plan worth having, from the smallest peak to the cheapest, and where each file stands. */

function overhead(cost, base) {
  return base ? ((cost - base) / base) * 100 : 0;
}

function standing(file, variable, name) {
  const figures = file.figures || {};
  const bytes = file.kind === "model" ? figures.total_bytes : figures.peak_bytes;
  if (!bytes || !figures.total_cost) return null;
  return {
    label: name,
    data: [{ x: bytes, y: overhead(figures.total_cost, figures.base_cost) }],
    showLine: false,
    lineVariable: "page",
    pointVariable: variable,
    pointRadius: 7,
    pointHoverRadius: 8,
    pointStyle: "rectRot",
    borderWidth: 1.5,
    order: -2,
  };
}

/* `files` have the same profile or not; each brings its own curve. */
function curveSection(files) {
  const drawn = files.filter((file) => file.curve && file.curve.points.length > 0);
  if (drawn.length === 0) return null;
  const datasets = [],
    words = [],
    texts = drawn.map((file) => JSON.stringify(file.curve.points));
  const different = drawn.filter((file, n) => texts.indexOf(texts[n]) === n);
  different.forEach((file) => {
    const base = file.figures.base_cost,
      points = file.curve.points,
      knee = points[file.curve.knee];
    const variable = `file-${files.indexOf(file) % 4}`;
    datasets.push({
      label: "best plans",
      data: points.map(([x, cost]) => ({ x, y: overhead(cost, base) })),
      lineVariable: variable,
      pointVariable: variable,
      borderWidth: 1.5,
      pointRadius: points.length > 200 ? 0 : 2.5,
      stepped: "before",
      showLine: true,
    });
    datasets.push({
      label: "knee",
      data: [{ x: knee[0], y: overhead(knee[1], base) }],
      showLine: false,
      lineVariable: variable,
      pointBackgroundColor: "transparent",
      pointRadius: 10,
      borderWidth: 2,
      order: -1,
    });
    const more = (cost) => percentText((cost - base) / base),
      what = isModelled(file) ? "time (modelled)" : "cost";
    if (points.length === 1)
      words.push(`${different.length > 1 ? `${file.label}: only` : "Only"} one plan is worth having.`);
    else
      words.push(
        `${different.length > 1 ? `${file.label}: the` : "The"} knee, where the curve bends most, is at ` +
          `${bytesText(knee[0])} for ${more(knee[1])} more ${what}; ` +
          `the least memory is ${bytesText(points[0][0])} for ${more(points[0][1])} more.`,
      );
  });
  files.forEach((file, n) => {
    const set = standing(
      file,
      files.length > 1 ? `file-${n % 4}` : "mark",
      file.kind === "profile" ? "everything kept" : files.length > 1 ? file.label : "this plan",
    );
    if (set) datasets.push(set);
  });
  const { box, canvas } = plotBox(300, `Curve of cost over memory. ${words.join(" ")}`);
  const section = el(
    "div",
    {},
    el("h3", {}, "Cost over memory"),
    el("p", {}, `Each point is a plan; nothing found is cheaper in as little memory. ${words.join(" ")}`),
    box,
    el(
      "p",
      { class: "quiet" },
      `○ knee   ◆ ${files.length > 1 ? "the files" : files[0].kind === "profile" ? "everything kept" : "this plan"}`,
    ),
  );
  const most = Math.max(...datasets.flatMap((set) => set.data.map((point) => point.y)));
  const bytes = datasets.flatMap((set) => set.data.map((point) => point.x)),
    least = Math.min(...bytes),
    largest = Math.max(...bytes),
    aside = largest > least * 1.02 ? (largest - least) * 0.05 : largest * 0.25; /* a plan alone: room for ticks */
  const start = () => {
    for (const set of datasets) set.parsing = false;
    const chart = new Chart(canvas, {
      type: "scatter",
      data: { datasets },
      options: chartOptions({
        plugins: {
          legend: { display: false },
          tooltip: {
            callbacks: {
              label: (item) =>
                `${item.dataset.label}: ${bytesText(item.raw.x)}, +${item.raw.y.toFixed(2)} % ` +
                (drawn.some(isModelled) ? "time, modelled" : "cost"),
            },
          },
        },
        scales: {
          x: axisOptions(files[0].kind === "model" ? "all memory of training" : "peak", {
            min: Math.max(0, least - aside),
            max: largest + aside,
            afterBuildTicks: (axis) => {
              axis.ticks = byteTicks(axis.min, axis.max, 7);
            },
            ticks: { callback: byteTickText, maxRotation: 0 },
          }),
          y: axisOptions(drawn.some(isModelled) ? "more time, modelled" : "more cost than keeping everything", {
            min: 0,
            max: most > 0 ? most * 1.08 : 1,
            afterBuildTicks: (axis) => {
              axis.ticks = roundTicks(axis.min, axis.max, 6);
            },
            ticks: { callback: (value) => `+${roundText(value)} %` },
          }),
        },
      }),
    });
    themeListeners.push(() => restyle(chart));
    restyle(chart);
    return chart;
  };
  for (const file of drawn.slice(0, 1))
    section.append(
      tableDetails(
        "The curve as a table",
        [
          { name: "peak", number: true },
          { name: "bytes", number: true },
          ...(isModelled(file) ? [] : [{ name: "cost", number: true }]),
          { name: isModelled(file) ? "more, modelled" : "more", number: true },
          { name: "note" },
        ],
        () =>
          file.curve.points.map(([peak, cost], i) => [
            bytesText(peak),
            countText(peak),
            ...(isModelled(file) ? [] : [costText(cost, file.cost_unit)]),
            `+${overhead(cost, file.figures.base_cost).toFixed(2)} %`,
            i === file.curve.knee ? "knee" : "",
          ]),
      ),
    );
  return { section, start };
}
