/* Texts as points, and a brush over them. A brush is a range on each axis, so the address and the form have it
   already, and a link to it is a link to them. */
"use strict";

attentest.scatter = function (hub) {
  const { h, choice, charts, choosing, exits } = attentest;
  const { data, says } = hub;
  const chart = h("div", { class: "chart", role: "img" });
  const axes = h("div", { class: "controls" });
  let view = null;
  let printed = null; // the same as a file has it

  function points() {
    const { chosen } = hub;
    const [x, y] = [data.numbers[chosen.x], data.numbers[chosen.y]];
    const all = data.ids.map((id, n) => ({
      x: x[n],
      y: y[n],
      n,
      id,
      kept: choosing.passes(data, chosen, n),
    }));
    return all.filter((point) => point.x !== null && point.y !== null);
  }

  /* The range of an axis as far as there are points, or none where an end is open. */
  function reached(values, axis) {
    const [low, high] = hub.chosen.ranges[hub.chosen[axis]];
    if (low === null || high === null) return null;
    const least = values.reduce((so, point) => Math.min(so, point[axis]), Infinity);
    const most = values.reduce((so, point) => Math.max(so, point[axis]), -Infinity);
    return [Math.max(low, least), Math.min(high, most)];
  }

  function specified() {
    const spec = structuredClone(data.scatter);
    const values = points();
    spec.data = { name: "texts", values };
    const { encoding } = spec.layer[0];
    for (const [place, axis] of ["x", "y"].entries()) {
      encoding[axis].title = says[hub.chosen[axis]];
      encoding.tooltip[place + 1].title = says[hub.chosen[axis]];
    }
    const ends = { x: reached(values, "x"), y: reached(values, "y") };
    if (ends.x && ends.y) spec.params[0].value = ends;
    return spec;
  }

  function took(ranges) {
    const { x, y } = hub.chosen;
    const digits = (value) => Number(value.toPrecision(5));
    const sorted = (ends) => [...ends].sort((one, other) => one - other);
    const written = (ends) => (ends ? sorted(ends).map(digits).join("~") : "");
    hub.change({ ["in." + x]: written(ranges.x), ["in." + y]: written(ranges.y) });
  }

  /* One after the other: two drawings that overlap would leave the older of them on the page. */
  let drawing = Promise.resolve();
  function draw() {
    const wanted = (printed = specified());
    const { x, y } = hub.chosen;
    chart.setAttribute("aria-label", `texts by ${says[x]} and ${says[y]}; the filters do what a brush does`);
    chart.setAttribute("aria-busy", "true");
    drawing = drawing.then(() => wanted === printed && redraw(wanted));
    return drawing;
  }

  async function redraw(wanted) {
    if (view) view.finalize();
    view = await charts.draw(chart, wanted);
    let brushed = null;
    view.addSignalListener("brush", (_, ranges) => (brushed = ranges));
    view.addEventListener("click", (_, item) => item?.datum?.id !== undefined && hub.select(item.datum.n));
    // A drag may end anywhere; and Vega, which hears of it where we do, tells its last when it has run.
    chart.onpointerdown = () => addEventListener("pointerup", () => setTimeout(ended), { once: true });
    const ended = async () => {
      await view.runAsync();
      if (brushed) took(brushed);
    };
    if (wanted === printed) chart.setAttribute("aria-busy", "false");
  }

  let drawnFor = "";
  function show() {
    const { chosen, columns, change, kept } = hub;
    const list = columns.map(({ name, says: words }) => [name, words]);
    const hint = "Drag over the points to keep those texts; click one to read it.";
    axes.replaceChildren(
      choice("x axis", list, chosen.x, (x) => change({ x }, true)),
      choice("y axis", list, chosen.y, (y) => change({ y }, true)),
      h("span", { class: "about" }, hint),
    );
    // The order of the table moves no point.
    const now = JSON.stringify([chosen.x, chosen.y, chosen.ranges, [...kept].sort((a, b) => a - b)]);
    if (now !== drawnFor) draw();
    drawnFor = now;
  }

  charts.dark.addEventListener("change", () => draw());
  const files = charts.exits(() => charts.unseen({ ...printed, width: 640, height: 400 }));
  const element = h("div", {}, axes, chart);
  element.append(exits(() => "attentest-scatter", files));
  return { element, show };
};
