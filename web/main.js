/* Puts the page together: the comparison where there are several files, then each file. */

const report = { ready: false, errors: [], charts: [], views: [], graphs: [] };
window.rematReport = report; /* for tests: what was drawn, and what went wrong */
addEventListener("error", (event) => report.errors.push(String(event.message)));

function addPart(to, part) {
  if (!part) return null;
  to.append(part.section);
  const chart = part.start();
  if (chart) report.charts.push(chart);
  return chart;
}

function memoryRows(made, rows) {
  return () =>
    rows.map((i) => [
      countText(made.stepOf(i)),
      stepName(made, i),
      ...made.kinds.map((kind) => countText(made.sums[kind.key][i])),
      countText(made.total[i]),
    ]);
}

function memoryWords(file, made) {
  if (file.kind === "profile")
    return "With everything kept, step by step: states pile up on the way forward and are used up on the way back.";
  const outline = made.source.keep_all ? " The grey outline is what keeping everything holds at that point." : "";
  return `Live bytes in each step.${made.sums.r ? " Red is recomputed." : ""}${outline}`;
}

function addMemory(to, file, made) {
  if (!made) return null;
  const view = makeView([made]),
    peak = made.total[made.peak];
  const at = `step ${made.stepOf(made.peak)}, ${stepName(made, made.peak)}`;
  const { box, canvas } = plotBox(
    340,
    `Memory over the steps, stacked by what holds it. The peak is ${bytesText(peak)} at ${at}.`,
  );
  const words = `${memoryWords(file, made)} Drag to zoom, double-click to see all.`;
  to.append(el("h3", {}, "Memory over time"), el("p", {}, words), box);
  const outline = made.source.keep_all ? [["outline", "with everything kept"]] : [];
  to.append(legend([...made.kinds.map((kind) => [kind.variable, kind.name]), ...outline]));
  to.append(memoryTools(view), memoryReadout(view));
  const shown = shownRows(made.count, (count) => thinned(made, 0, made.count, count));
  to.append(
    tableDetails(
      "Memory as a table",
      [
        { name: "step", number: true },
        { name: "what runs" },
        ...made.kinds.map((kind) => ({ name: kind.name, number: true })),
        { name: "all", number: true },
      ],
      memoryRows(made, shown.rows),
      shown.note,
    ),
  );
  const chart = memoryChart(canvas, view, memoryLines(file, peak));
  report.charts.push(chart);
  report.views.push(view);
  return { view, chart };
}

function addFile(main, file, made, alone) {
  const section = el(
    "section",
    {},
    el(
      "h2",
      {},
      (file.name || file.label) + (file.strategy ? `, ${file.strategy}` : "") + (alone ? "" : ` – ${file.label}`),
    ),
  );
  main.append(section);
  section.append(el("p", { class: alone ? "lead" : null }, leadOf(file)));
  if (file.remark) section.append(el("p", {}, `Remark: ${file.remark}.`));
  section.append(cardsOf(file));
  addPart(section, measuredSection(file));
  addPart(section, holdsSection(file));
  if (alone) addRunCurves(section, [file]);
  addPart(section, graphSection(file));
  const memory = addMemory(section, file, made);
  if (memory) {
    addPart(section, scheduleSection(file, made, memory.view, memory.chart));
    addPart(section, arenaSection(file, made, memory.view, memory.chart));
  }
  if (alone) addPart(section, curveSection([file]));
  addPart(section, layerSection([file], [made]));
  if (!made && file.feasible !== false && file.kind === "plan")
    section.append(
      el(
        "p",
        { class: "quiet" },
        "Memory over time needs the profile that the plan was made for: remat report PLAN --profile FILE.",
      ),
    );
}

function addComparison(main, files, mades) {
  const section = el(
    "section",
    {},
    el("h2", {}, "Side by side"),
    el("p", { class: "lead" }, comparisonLead(files)),
    figureTable(files),
  );
  main.append(section);
  const drawn = mades.filter((made) => made);
  if (drawn.length > 1) {
    const names = drawn.map((made) => `${made.file.label}, peak ${bytesText(made.total[made.peak])}`);
    const view = makeView(drawn),
      { box, canvas } = plotBox(300, `Memory over the steps of ${names.join("; ")}`);
    section.append(
      el("h3", {}, "Memory over time"),
      box,
      legend(names.map((name, i) => [`file-${i % 4}`, name])),
      memoryTools(view),
      totalsReadout(view),
    );
    /* Budgets of plans limit what is drawn here; those of models and runs count weights and more. */
    const limited = files.find((file) => (file.kind === "plan" || file.kind === "graph") && file.figures.budget_bytes);
    const top = Math.max(...drawn.map((made) => made.total[made.peak]));
    const figures = { budget_bytes: limited && limited.figures.budget_bytes };
    const chart = memoryChart(canvas, view, memoryLines({ figures }, top));
    report.charts.push(chart);
    report.views.push(view);
  }
  addRunCurves(section, files);
  addPart(section, curveSection(files));
  if (files.filter((file) => file.layers && file.layers.decision).length > 1)
    addPart(section, layerSection(files, mades));
}

function start() {
  const content = JSON.parse(document.getElementById("document").textContent),
    main = document.getElementById("main"),
    files = content.files;
  if (content.format !== "remat-report" || content.version !== 1)
    throw new Error(`this page cannot show ${content.format} version ${content.version}`);
  startTheme();
  document.getElementById("version").textContent = `Remat ${content.remat}`;
  document.getElementById("subtitle").textContent = files.map((file) => file.label).join(" · ");
  document.title = `${files.map((file) => file.name || file.label).join(" and ")} – Remat report`;
  files.forEach(takeModelFigures);
  Chart.defaults.font.family = "system-ui, sans-serif";
  const mades = files.map(memoryOf);
  report.memories = mades;
  if (files.length > 1) addComparison(main, files, mades);
  files.forEach((file, n) => addFile(main, file, mades[n], files.length === 1));
  report.ready = true;
}

try {
  start();
} catch (error) {
  report.errors.push(String(error));
  document
    .getElementById("main")
    .append(el("p", { role: "alert" }, `This report could not be shown: ${error.message}`));
  throw error;
}
