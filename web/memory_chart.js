/* Memory over the steps: one file stacked by kind, or several files as lines on one axis.
 * A view is the part of the axis that is shown; all pictures of a file share one and move together. */

function makeView(mades) {
  const lead = mades.reduce((longest, made) => (made.steps > longest.steps ? made : longest));
  const view = { mades, lead, axis: "step", cursor: null, onRange: [], onCursor: [], min: 0, max: 1 };
  view.position = (made, i) => {
    if (view.axis === "cost") return made.begin[i];
    return i >= made.count ? made.steps : made.stepOf(i);
  };
  /* The step (or column) that covers an axis value. */
  view.indexAt = (made, x) => {
    let low = 0,
      high = made.count;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (view.position(made, middle) <= x) low = middle;
      else high = middle;
    }
    return low;
  };
  view.end = () => Math.max(...mades.map((made) => view.position(made, made.count)));
  view.show = (min, max) => {
    const end = view.end(),
      least = Math.min(end, view.axis === "step" ? 4 : end / 1e5);
    const width = Math.min(Math.max(max - min, least), end);
    view.min = Math.min(Math.max(min, 0), end - width);
    view.max = view.min + width;
    for (const listener of [...view.onRange, ...view.onCursor]) listener();
  };
  view.all = () => view.show(0, view.end());
  view.zoom = (factor, centre) => {
    const at = centre === undefined ? (view.min + view.max) / 2 : centre;
    view.show(at - (at - view.min) * factor, at + (view.max - at) * factor);
  };
  view.pan = (share) => {
    const by = (view.max - view.min) * share;
    view.show(view.min + by, view.max + by);
  };
  view.point = (i) => {
    view.cursor = i;
    const x = view.cursorValue(),
      half = (view.max - view.min) / 2;
    if (x < view.min || x > view.max) view.show(x - half, x + half);
    else for (const listener of view.onCursor) listener();
  };
  /* The middle of the step under the cursor. */
  view.cursorValue = () => (view.position(lead, view.cursor) + view.position(lead, view.cursor + 1)) / 2;
  view.max = view.end();
  return view;
}

/* Points of a step function: each value holds until the next. */
function stepPoints(view, made, values, columns) {
  const from = view.indexAt(made, view.min),
    to = Math.min(view.indexAt(made, view.max) + 1, made.count);
  const points = thinned(made, from, to, columns).map((i) => ({ x: view.position(made, i), y: values[i] }));
  if (points.length > 0) points.push({ x: view.position(made, to), y: points[points.length - 1].y });
  return points;
}

/* The outline of keeping everything, over the steps of the plan: the fullest of each column. */
function outlinePoints(view, made, columns) {
  const { step, bytes } = made.source.keep_all,
    points = [],
    wide = (view.max - view.min) / columns;
  for (let i = 0; i < step.length; i++) {
    const x = view.position(made, step[i]),
      next = i + 1 < step.length ? view.position(made, step[i + 1]) : view.position(made, made.count),
      last = points[points.length - 1];
    if (next < view.min || x > view.max) continue;
    if (last && x - last.x < wide) last.y = Math.max(last.y, bytes[i]);
    else points.push({ x, y: bytes[i] });
  }
  if (points.length > 0) points.push({ x: view.position(made, made.count), y: points[points.length - 1].y });
  return points;
}

function outlineSet(made) {
  return {
    label: "everything kept",
    fillVariable: "outline-fill",
    lineVariable: "outline",
    made,
    outline: true,
    fill: "origin",
    stack: "outline",
    order: 1 /* behind the rest */,
    borderWidth: 1.5,
    pointRadius: 0,
    stepped: "before",
  };
}

/* Room at the left for the names of layers, which the map below the chart has. */
function leftRoom(canvas) {
  return canvas.clientWidth > 700 ? 132 : 78;
}

/* A line that follows the cursor. It is an element of its own, so that moving it redraws nothing. */
function followCursor(view, box, area, pixelOf) {
  const line = el("div", { class: "cursor" });
  box.append(line);
  view.onCursor.push(() => {
    const x = view.cursor === null ? -1 : pixelOf(view.cursorValue()),
      { left, right, top, bottom } = area();
    Object.assign(line.style, {
      display: x >= left && x <= right ? "block" : "none",
      left: `${x}px`,
      top: `${top}px`,
      height: `${bottom - top}px`,
    });
  });
}

function memoryChart(canvas, view, lines) {
  const mades = view.mades,
    stacked = mades.length === 1;
  const datasets = stacked
    ? mades[0].kinds.map((kind, i) => ({
        label: kind.name,
        fillVariable: kind.variable,
        lineVariable: kind.variable,
        made: mades[0],
        values: mades[0].sums[kind.key],
        fill: i ? "-1" : "origin",
        borderWidth: 0.5,
        pointRadius: 0,
        stepped: "before",
      }))
    : mades.map((made, i) => ({
        label: made.file.label,
        lineVariable: `file-${i % 4}`,
        made,
        values: made.total,
        fill: false,
        borderWidth: 2,
        pointRadius: 0,
        stepped: "before",
      }));
  if (stacked && mades[0].source.keep_all) datasets.push(outlineSet(mades[0]));
  for (const set of datasets) {
    set.data = [];
    set.parsing = false;
  }
  const top = Math.max(...mades.map((made) => made.total[made.peak]), ...lines.map((line) => line.value), 1);
  const chart = new Chart(canvas, {
    type: "line",
    data: { datasets },
    plugins: [memoryMarks(view, mades, lines)],
    options: chartOptions({
      events: [],
      layout: { padding: { top: 20 } } /* for the names of the passes */,
      plugins: { legend: { display: false }, tooltip: { enabled: false } },
      scales: {
        x: axisOptions("step", {
          ticks: {
            maxTicksLimit: 12,
            maxRotation: 0,
            callback: (value) => (view.axis === "step" ? countText(value) : priceText(mades[0].file, value)),
          },
        }),
        y: axisOptions("live bytes", {
          stacked,
          min: 0,
          max: top * 1.16 /* room for two lines of text */,
          afterFit: (axis) => {
            if (stacked) axis.width = leftRoom(canvas);
          },
          afterBuildTicks: (axis) => {
            axis.ticks = byteTicks(0, axis.max, 6);
          },
          ticks: { callback: byteTickText },
        }),
      },
    }),
  });
  const costTitle = isModelled(mades[0].file) ? "time so far, modelled, of one with everything kept" : "cost so far";
  const refresh = () => {
    const columns = Math.max(200, Math.floor(canvas.clientWidth));
    for (const set of chart.data.datasets)
      set.data = set.outline ? outlinePoints(view, set.made, columns) : stepPoints(view, set.made, set.values, columns);
    chart.options.scales.x.min = view.min;
    chart.options.scales.x.max = view.max;
    chart.options.scales.x.title.text = view.axis === "step" ? "step of the schedule" : costTitle;
    restyle(chart);
  };
  view.onRange.push(refresh);
  themeListeners.push(refresh);
  refresh();
  followCursor(
    view,
    canvas.parentElement,
    () => chart.chartArea,
    (value) => chart.scales.x.getPixelForValue(value),
  );
  memoryMouse(
    canvas,
    view,
    () => chart.chartArea,
    (x) => chart.scales.x.getValueForPixel(x),
  );
  return chart;
}

/* Hovering points, dragging chooses a range, a double click shows all. `area()` is the plot's part of the canvas. */
function memoryMouse(canvas, view, area, valueAt) {
  let from = null;
  const inside = (event) => {
    const box = canvas.getBoundingClientRect();
    return event.clientX - box.left;
  };
  canvas.addEventListener("mousemove", (event) => {
    const x = inside(event),
      { left, right } = area();
    if (x < left || x > right) return;
    view.point(view.indexAt(view.lead, valueAt(x)));
  });
  canvas.addEventListener("mousedown", (event) => {
    from = inside(event);
    event.preventDefault();
  });
  addEventListener("mouseup", (event) => {
    if (from === null) return;
    const to = inside(event),
      begin = from;
    from = null;
    if (Math.abs(to - begin) > 5) view.show(valueAt(Math.min(begin, to)), valueAt(Math.max(begin, to)));
  });
  canvas.addEventListener("dblclick", () => view.all());
}

/* Buttons that do what the mouse does, and a slider that walks through the steps. */
function memoryTools(view) {
  const made = view.lead;
  const button = (text, label, act) =>
    el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const slider = el("input", {
    type: "range",
    min: 0,
    max: made.count - 1,
    step: 1,
    value: made.peak,
    "aria-label": "Step to look at",
  });
  slider.addEventListener("input", () => view.point(+slider.value));
  view.onCursor.push(() => {
    if (view.cursor === null) return;
    slider.value = view.cursor;
    slider.setAttribute(
      "aria-valuetext",
      `step ${made.stepOf(view.cursor)}, ${stepName(made, view.cursor)}, ${bytesText(made.total[view.cursor])}`,
    );
  });
  const axis = el(
    "select",
    { "aria-label": "What the axis counts" },
    el("option", { value: "step" }, "by steps"),
    el("option", { value: "cost" }, "by cost (time)"),
  );
  axis.addEventListener("change", () => {
    view.axis = axis.value;
    view.all();
  });
  const costs = view.mades.every((each) => each.begin && isModelled(each.file) === isModelled(made.file));
  return el(
    "div",
    { class: "tools" },
    button("+", "Zoom in", () => view.zoom(0.5, view.cursor === null ? undefined : view.position(made, view.cursor))),
    button("−", "Zoom out", () => view.zoom(2)),
    button("←", "Move left", () => view.pan(-0.25)),
    button("→", "Move right", () => view.pan(0.25)),
    button("All", "Show all steps", () => view.all()),
    button("Peak", "Go to the peak", () => view.point(made.peak)),
    slider,
    costs ? axis : null,
  );
}

/* The tensors that are live in the step under the cursor. */
function memoryReadout(view) {
  const made = view.mades[0],
    head = el("p", { "aria-live": "polite" }),
    list = el("ul", {});
  const box = el("div", { class: "readout" }, head, list);
  let shown = -1;
  const refresh = () => {
    const i = view.cursor === null ? made.peak : view.cursor;
    if (i === shown) return;
    shown = i;
    const name = stepName(made, i);
    head.textContent =
      `Step ${countText(made.stepOf(i))} of ${countText(made.steps)}${name ? `, ${name}` : ""}: ` +
      `${bytesText(made.total[i])} live${i === made.peak ? ", the peak" : ""}.`;
    const alive = aliveAt(made, i),
      tensors = made.source.tensors;
    const line = (variable, text, bytes) =>
      el("li", {}, swatch(variable), el("span", { title: text }, text), el("b", {}, bytesText(bytes)));
    const rows = alive
      .slice(0, 24)
      .map((t) => line(kindVariable(made.kindOf[t]), tensorName(made, t), tensors.bytes[t]));
    if (!made.exact) for (const kind of made.kinds) rows.push(line(kind.variable, kind.name, made.sums[kind.key][i]));
    if (alive.length > 24) rows.push(el("li", {}, el("span", {}, `and ${countText(alive.length - 24)} more`)));
    list.replaceChildren(...rows);
  };
  view.onCursor.push(refresh);
  refresh();
  return box;
}

/* Of several files: what each holds at the cursor. */
function totalsReadout(view) {
  const head = el("p", { "aria-live": "polite" }, "Point at the chart, or move the slider, to read it."),
    list = el("ul", { class: "rows" });
  view.onCursor.push(() => {
    if (view.cursor === null) return;
    const x = view.position(view.lead, view.cursor);
    head.textContent =
      view.axis === "step" ? `Step ${countText(x)}` : `After a cost of ${priceText(view.lead.file, x)}`;
    list.replaceChildren(
      ...view.mades.map((made, n) => {
        const over = x >= view.position(made, made.count),
          i = view.indexAt(made, x),
          name = over ? "done" : stepName(made, i);
        return el(
          "li",
          {},
          swatch(`file-${n % 4}`),
          el("span", {}, made.file.label + (name ? `, ${name}` : "")),
          el("b", {}, over ? "–" : bytesText(made.total[i])),
        );
      }),
    );
  });
  return el("div", { class: "readout" }, head, list);
}
