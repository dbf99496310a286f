/* The arena: address over time. Every tensor is a rectangle; what stays empty below the top is waste. */

const MAP_AXIS_HEIGHT = 42; /* numbers and a title below a map */

/* A number and as much of a name as there is room for. */
function tickText(context, { text, name }, room) {
  let words = name === undefined ? text : `${text} ${name}`;
  for (let most = 30; name !== undefined && most > 3 && context.measureText(words).width > room; most--)
    words = `${text} ${shortName(name, most)}`;
  return words;
}

/* The axes of a map: below, that of the chart above it; at the left `axis`, its `title` and ticks with `y`, `text` and
 * perhaps `name`. */
function drawMapAxes(context, place, chart, axis) {
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = colour("quiet");
  context.strokeStyle = colour("grid");
  context.lineWidth = 1;
  const mark = (x, y, toX, toY) => {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  };
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const tick of chart.scales.x.ticks) {
    const x = place.x(tick.value);
    if (x < place.left - 1 || x > place.right + 1) continue;
    mark(x, place.bottom, x, place.bottom + 5);
    context.fillText(tick.label, x, place.bottom + 8);
  }
  context.fillText(chart.options.scales.x.title.text, (place.left + place.right) / 2, place.bottom + 26);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of axis.ticks(place)) {
    mark(place.left - 5, tick.y, place.left, tick.y);
    context.fillText(
      tickText(context, tick, place.left - 10),
      place.left - 8,
      Math.min(Math.max(tick.y, place.top), place.bottom - 3),
    );
  }
  context.save();
  context.translate(10, (place.top + place.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(axis.title, 0, 0);
  context.restore();
}

/* A canvas drawn by hand, as sharp as the screen, sharing the x axis of the chart above it. */
function mapCanvas(canvas, view, chart, axis, draw) {
  const refresh = () => {
    const box = canvas.parentElement.getBoundingClientRect(),
      ratio = devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    canvas.style.height = `${box.height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = chart.chartArea.left,
      right = chart.chartArea.right;
    const place = {
      left,
      right,
      top: 6,
      bottom: box.height - MAP_AXIS_HEIGHT,
      width: right - left,
      x: (value) => left + ((value - view.min) / (view.max - view.min)) * (right - left),
      value: (x) => view.min + ((x - left) / (right - left)) * (view.max - view.min),
    };
    canvas.place = place;
    context.clearRect(0, 0, box.width, box.height);
    drawMapAxes(context, place, chart, axis);
    context.save();
    context.beginPath();
    context.rect(left, 0, right - left, box.height);
    context.clip();
    draw(context, place);
    drawPhases(context, place, place.x, phasesOf(view, view.lead), false);
    context.restore();
  };
  view.onRange.push(refresh);
  themeListeners.push(refresh);
  addEventListener("resize", () => requestAnimationFrame(refresh));
  refresh();
  followCursor(
    view,
    canvas.parentElement,
    () => canvas.place,
    (value) => canvas.place.x(value),
  );
  memoryMouse(
    canvas,
    view,
    () => canvas.place,
    (x) => canvas.place.value(x),
  );
}

function arenaRectangle(view, made, place, scale, i) {
  const tensors = made.source.tensors;
  const x = place.x(view.position(made, tensors.born[i])),
    end = place.x(view.position(made, Math.min(tensors.ends[i], made.count)));
  const bottom = place.bottom - tensors.offset[i] * scale,
    height = tensors.bytes[i] * scale;
  return { x, y: bottom - height, width: Math.max(end - x, 0.6), height: Math.max(height, 0.6) };
}

function drawArena(context, place, view, made) {
  const tensors = made.source.tensors,
    bytes = made.file.arena.bytes,
    scale = (place.bottom - place.top) / Math.max(bytes, 1);
  context.fillStyle = colour("waste");
  context.fillRect(place.left, place.top, place.width, place.bottom - place.top);
  const inks = {},
    edge = colour("page");
  for (let i = 0; i < tensors.offset.length; i++) {
    const kind = made.kindOf[i],
      box = arenaRectangle(view, made, place, scale, i);
    if (box.x > place.right || box.x + box.width < place.left) continue;
    inks[kind] = inks[kind] || colour(kindVariable(kind));
    context.fillStyle = inks[kind];
    context.fillRect(box.x, box.y, box.width, box.height);
    if (box.width > 4 && box.height > 4) {
      context.strokeStyle = edge;
      context.lineWidth = 0.8;
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
    }
    if (box.width > 40 && box.height > 12) nameRectangle(context, place, box, tensorName(made, i));
  }
}

/* The name inside a rectangle that has room for it. */
function nameRectangle(context, place, box, name) {
  const left = Math.max(box.x, place.left),
    right = Math.min(box.x + box.width, place.right);
  context.font = "11px system-ui, sans-serif";
  if (context.measureText(name).width > right - left - 6) return;
  context.fillStyle = colour("on-kind");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(name, (left + right) / 2, box.y + box.height / 2);
}

function arenaSection(file, made, view, chart) {
  const arena = file.arena,
    tensors = made && made.source.tensors;
  if (!arena || !tensors || !tensors.offset) return null;
  /* Of a graph: without given tensors, which have no place. */
  const peak = arena.peak_bytes ?? made.total[made.peak],
    given = arena.given_bytes > 0 ? ` Given tensors take ${bytesText(arena.given_bytes)} outside it.` : "",
    waste = arena.bytes - peak;
  const proof = arena.bytes === arena.lower_bound_bytes ? ", and no placement loses less" : "";
  const lost = `${bytesText(waste)} (${percentText(waste / arena.bytes)}) more than its tensors at their peak are lost to gaps${proof}.`;
  const words =
    `Every tensor in one piece of memory of ${bytesText(arena.bytes)}: address upwards, time to the right. ` +
    (waste > 0 ? lost : `Nothing is lost to gaps: it is exactly the peak of its tensors.`) +
    given;
  const { box, canvas } = plotBox(260 + MAP_AXIS_HEIGHT, "Map of the arena: address over time");
  const readout = el("div", { class: "readout" }, el("p", {}, "Point at a rectangle to see whose it is."));
  const section = el(
    "div",
    {},
    el("h3", {}, "The arena"),
    el("p", {}, words),
    box,
    legend([...made.kinds.map((kind) => [kind.variable, kind.name]), ["waste", "empty"]]),
    readout,
  );
  const frame = el("div", { class: "chosen" });
  box.append(frame);
  const describe = (i) =>
    `${tensorName(made, i)}: ${bytesText(tensors.bytes[i])} at ${countText(tensors.offset[i])}, ` +
    `steps ${countText(tensors.born[i])} (${stepName(made, tensors.born[i])}) ` +
    `to ${countText(tensors.ends[i] - 1)} (${stepName(made, tensors.ends[i] - 1)}).`;
  const start = () => {
    const axis = {
      title: "address in bytes",
      ticks: (place) =>
        byteTicks(0, arena.bytes, 5).map(({ value }) => ({
          y: place.bottom - (value / Math.max(arena.bytes, 1)) * (place.bottom - place.top),
          text: byteTickText(value),
        })),
    };
    mapCanvas(canvas, view, chart, axis, (context, place) => drawArena(context, place, view, made));
    view.onRange.push(() => {
      frame.style.display = "none";
    });
    canvas.addEventListener("mousemove", (event) => {
      const at = canvas.getBoundingClientRect(),
        place = canvas.place;
      const time = view.cursor,
        address = ((place.bottom - (event.clientY - at.top)) / (place.bottom - place.top)) * arena.bytes;
      let chosen = -1;
      for (let i = 0; i < tensors.offset.length && chosen < 0; i++)
        if (
          tensors.born[i] <= time &&
          time < tensors.ends[i] &&
          tensors.offset[i] <= address &&
          address < tensors.offset[i] + tensors.bytes[i]
        )
          chosen = i;
      frame.style.display = chosen < 0 ? "none" : "block";
      if (chosen >= 0) {
        const shape = arenaRectangle(view, made, place, (place.bottom - place.top) / arena.bytes, chosen),
          from = Math.max(shape.x, place.left);
        Object.assign(frame.style, {
          left: `${from}px`,
          top: `${shape.y}px`,
          width: `${Math.min(shape.x + shape.width, place.right) - from}px`,
          height: `${shape.height}px`,
        });
      }
      readout.firstChild.textContent = chosen < 0 ? `Empty at step ${countText(time)}.` : describe(chosen);
    });
  };
  section.append(
    tableDetails(
      tensors.offset.length > ROWS_SHOWN
        ? `The ${countText(ROWS_SHOWN)} largest tensors as a table`
        : "The tensors as a table",
      [
        { name: "tensor", row: true },
        { name: "bytes", number: true },
        { name: "offset", number: true },
        { name: "first step", number: true },
        { name: "what runs" },
        { name: "last step", number: true },
        { name: "what runs" },
      ],
      () =>
        [...tensors.bytes.keys()]
          .sort((a, b) => tensors.bytes[b] - tensors.bytes[a])
          .filter((i) => i < tensors.offset.length)
          .slice(0, ROWS_SHOWN)
          .map((i) => [
            tensorName(made, i),
            countText(tensors.bytes[i]),
            countText(tensors.offset[i]),
            countText(tensors.born[i]),
            stepName(made, tensors.born[i]),
            countText(tensors.ends[i] - 1),
            stepName(made, tensors.ends[i] - 1),
          ]),
    ),
  );
  return { section, start };
}
