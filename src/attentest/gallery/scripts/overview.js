/* The overview: any two of the axes against each other, each cell with its numbers on an axis that all share.

   An entry is one measure of one model, of all seeds or of one. What is neither in the rows nor in the columns
   is named beside the entry, where it differs. */
"use strict";

(function () {
  const { h, svg, state, number, count, interval, choice, csv, exits, picture } = attentest;
  const AXES = ["corpus", "encoder", "attention", "projection", "seed", "experiment"];
  const ALL_SEEDS = "all seeds";
  const WIDE = 150;
  const LANE = 14;

  /* --- from the data to entries */

  function entries(data, chosen) {
    const measures = chosen.has("experiment")
      ? data.measures.filter((measure) => measure.main)
      : data.measures.filter((measure) => measure.key === chosen.measure);
    const bySeed = chosen.has("seed") || chosen.filter.seed;
    const found = [];
    for (const point of data.points)
      for (const measure of measures) {
        const about = { ...point, experiment: measure.heads, measure, point };
        const whole = point.found[measure.key];
        if (whole) found.push({ ...about, seed: ALL_SEEDS, found: whole });
        const single = bySeed ? Object.entries(point.by_seed[measure.key] || {}) : [];
        for (const [seed, estimate] of single)
          found.push({ ...about, seed, found: point.seeds === 1 ? whole : ofOneSeed(estimate, whole) });
      }
    const filters = Object.entries(chosen.filter).filter(([axis, value]) => value && offered(axis, chosen));
    return found.filter((entry) => filters.every(([axis, value]) => entry[axis] === value));
  }

  /* With one measure chosen, the experiment is chosen, too. */
  const offered = (axis, chosen) => axis !== "experiment" || chosen.has("experiment");

  function ofOneSeed(estimate, whole) {
    const null_ = whole ? whole.null : null;
    return { estimate, low: null, high: null, null: null_, n: null, excluded: 0, reading: "one seed" };
  }

  /* Whether a model passes the filters of what it is. */
  function kept(point, chosen) {
    return AXES.slice(0, 4).every((axis) => !chosen.filter[axis] || point[axis] === chosen.filter[axis]);
  }

  /* What has a number first, then what else is in the store or failed; with `wanted` also what studies name. */
  function values(axis, list, data, chosen) {
    const there = new Set(list.map((entry) => entry[axis]));
    if (axis !== "seed" && axis !== "experiment") {
      for (const point of data.points.filter((each) => kept(each, chosen))) there.add(point[axis]);
      for (const failure of data.failed) there.add(failure[axis]);
      if (chosen.wanted)
        for (const study of Object.values(data.studies)) for (const value of study[axis]) there.add(value);
    }
    const filter = chosen.filter[axis];
    return [...there].filter((value) => !filter || value === filter);
  }

  function why(data, about) {
    if (about.corpus && data.absent[about.corpus]) return "corpus not here: " + data.absent[about.corpus];
    const asked = (one) => (about.experiment ? one.heads === about.experiment : one.key === about.measure);
    const measure = data.measures.find(asked);
    const fits = (failure) =>
      AXES.slice(0, 4).every((axis) => !about[axis] || failure[axis] === about[axis]) &&
      (!measure || failure.experiment === measure.experiment);
    const failure = data.failed.find(fits);
    if (failure) return "failed: " + failure.error;
    const oneSeed = about.seed && about.seed !== ALL_SEEDS;
    if (!oneSeed) return "not run";
    return "none of this seed alone: not run, undefined, or its rows are not in the store";
  }

  /* --- axes and marks */

  /* One scale for each measure, wherever it is shown: cells are there to be compared. */
  function scales(list) {
    const ends = new Map();
    for (const { measure, found } of list) {
      const [low, high] = ends.get(measure.key) || [0, 0];
      const numbers = [found.estimate, found.low, found.high, found.null].filter((value) => value !== null);
      ends.set(measure.key, [Math.min(low, ...numbers), Math.max(high, ...numbers)]);
    }
    return ends;
  }

  const at = ([low, high], value) => 5 + ((value - low) / (high - low || 1)) * (WIDE - 10);

  function axis(ends) {
    const mark = (value, anchor) =>
      svg("text", { x: at(ends, value), y: 11, "text-anchor": anchor, class: "tick" }, number(value, 2));
    const line = svg("line", { x1: 5, x2: WIDE - 5, y1: 16, y2: 16, class: "axis" });
    const apart = Math.min(at(ends, 0) - at(ends, ends[0]), at(ends, ends[1]) - at(ends, 0));
    const zero = apart > 45 ? [mark(0, "middle")] : []; // where its label has room
    const about = { width: WIDE, height: 18, class: "axis", role: "img" };
    about["aria-label"] = `from ${number(ends[0], 2)} to ${number(ends[1], 2)}`;
    return svg("svg", about, line, mark(ends[0], "start"), zero, mark(ends[1], "end"));
  }

  function marks(found, ends, says) {
    const y = LANE / 2;
    const parts = [svg("line", { x1: at(ends, 0), x2: at(ends, 0), y1: 0, y2: LANE, class: "zero" })];
    const line = (from, to, y1, y2, kind) =>
      parts.push(svg("line", { x1: at(ends, from), x2: at(ends, to), y1, y2, class: kind }));
    if (found.low !== null) line(found.low, found.high, y, y, "interval");
    if (found.null !== null) line(found.null, found.null, 1, LANE - 1, "null");
    if (found.estimate !== null)
      parts.push(svg("circle", { cx: at(ends, found.estimate), cy: y, r: 4, class: "dot" }));
    return svg("svg", { width: WIDE, height: LANE, role: "img", "aria-label": says, class: "marks" }, parts);
  }

  /* --- cells */

  function said(entry) {
    const { found } = entry;
    const parts = [entry.experiment + ": " + number(found.estimate)];
    if (found.low !== null) parts.push("95 % interval " + interval(found));
    if (found.null !== null) parts.push("null " + number(found.null));
    if (found.n !== null)
      parts.push("n " + count(found.n) + (found.excluded ? ", " + count(found.excluded) + " left out" : ""));
    return parts.concat(found.reading || []).join("; ");
  }

  function line(entry, ends, named, alone) {
    const { found } = entry;
    const name =
      named
        .map((axis) => entry[axis])
        .concat(entry.differs || [])
        .join(" · ") || entry.model;
    const link = h("a", { href: entry.file, title: said(entry), class: "entry" });
    if (found.estimate === null) {
      link.append(h("span", { class: "missing" }, "undefined: " + (found.why || "no texts")));
      return link;
    }
    const numbers = h("span", { class: "estimate" }, number(found.estimate));
    link.append(marks(found, ends, said(entry)), numbers);
    if (!alone) link.append(h("span", { class: "named" }, name));
    else {
      if (found.low !== null) link.append(h("span", { class: "named" }, interval(found)));
      if (found.null !== null) link.append(h("span", { class: "named" }, "null " + number(found.null)));
    }
    return link;
  }

  function cell(data, list, ends, named, about) {
    if (!list.length) return h("td", { class: "missing" }, why(data, about));
    const lines = list.map((entry) => line(entry, ends.get(entry.measure.key), named, list.length === 1));
    return h("td", {}, lines);
  }

  /* --- the table */

  function table(data, list, chosen) {
    const rows = sorted(values(chosen.rows, list, data, chosen), list, chosen);
    const columns = values(chosen.columns, list, data, chosen);
    const ends = scales(list);
    const open = AXES.filter(
      (axis) => axis !== chosen.rows && axis !== chosen.columns && axis !== "experiment",
    );
    const named = open.filter((axis) => new Set(list.map((entry) => entry[axis])).size > 1);
    const shared = (value, which) => {
      const some = list.find((entry) => entry[which] === value);
      const wanted = which === "experiment" || (which === chosen.columns && !chosen.has("experiment"));
      return wanted && some ? axis(ends.get(some.measure.key)) : null;
    };
    const heads = columns.map((value) => h("th", { scope: "col" }, value, shared(value, chosen.columns)));
    const body = rows.map((row) => {
      const cells = columns.map((column) => {
        const here = list.filter((entry) => entry[chosen.rows] === row && entry[chosen.columns] === column);
        const about = {
          ...chosen.filter,
          [chosen.rows]: row,
          [chosen.columns]: column,
          measure: chosen.measure,
        };
        return cell(data, here, ends, named, about);
      });
      return h("tr", {}, h("th", { scope: "row" }, row, shared(row, chosen.rows)), cells);
    });
    const corner = h("th", { scope: "col" }, chosen.rows + " / " + chosen.columns);
    return h("table", { class: "grid" }, h("thead", {}, h("tr", {}, corner, heads)), h("tbody", {}, body));
  }

  function sorted(rows, list, chosen) {
    if (!chosen.sort) return rows;
    const mean = (row) => {
      const here = list.filter((entry) => entry[chosen.rows] === row && entry.found.estimate !== null);
      return here.reduce((sum, entry) => sum + entry.found.estimate, 0) / here.length || 0;
    };
    const sign = chosen.sort === "falling" ? -1 : 1;
    return [...rows].sort((one, other) => sign * (mean(one) - mean(other)));
  }

  function spreadsheet(list) {
    const fields = ["estimate", "low", "high", "null", "n", "excluded", "why"];
    const heads = [...AXES.slice(0, 5), "differs", "measure", ...fields, "cell", "command"];
    const rows = list.map((entry) => {
      const done = entry.point.done[entry.measure.experiment] || {};
      const axes = AXES.slice(0, 5).map((axis) => entry[axis]);
      const numbers = fields.map((name) => entry.found[name]);
      return [...axes, entry.differs, entry.measure.key, ...numbers, done.cell, done.command];
    });
    return csv([heads, ...rows]);
  }

  /* --- what is chosen, in the address and in the form */

  function chosenNow(data) {
    const params = state.read();
    const valid = (name, fallback) => (AXES.includes(params.get(name)) ? params.get(name) : fallback);
    const rows = valid("rows", "corpus");
    let columns = valid("columns", "encoder");
    if (columns === rows) columns = AXES.find((axis) => axis !== rows);
    const known = data.measures.some((measure) => measure.key === params.get("measure"));
    const first = data.measures.find((one) => one.key === "importance/tau-gradient") || data.measures[0];
    const filter = Object.fromEntries(AXES.map((axis) => [axis, params.get("only." + axis) || ""]));
    return {
      rows,
      columns,
      filter,
      measure: known ? params.get("measure") : first && first.key,
      sort: params.get("sort") || "",
      wanted: params.get("wanted") === "yes",
      has: (axis) => rows === axis || columns === axis,
    };
  }

  /* What an axis can be narrowed to. */
  function named(data, axis) {
    if (axis === "experiment") return data.measures.filter((one) => one.main).map((one) => one.heads);
    if (axis !== "seed") return [...new Set(data.points.map((point) => point[axis]))];
    const seeds = data.points.flatMap((point) => Object.values(point.by_seed).flatMap(Object.keys));
    return [ALL_SEEDS, ...[...new Set(seeds)].sort((one, other) => one - other)];
  }

  function form(data, chosen, change) {
    const axes = AXES.map((axis) => [axis, axis === "experiment" ? "experiment (its main number)" : axis]);
    const other = (taken, value) => (value === taken ? { rows: chosen.columns, columns: chosen.rows } : null);
    const parts = [
      choice("Rows", axes, chosen.rows, (value) => change(other(chosen.columns, value) || { rows: value })),
      choice("Columns", axes, chosen.columns, (value) =>
        change(other(chosen.rows, value) || { columns: value }),
      ),
    ];
    if (!chosen.has("experiment")) {
      const measures = data.measures.map((one) => [one.key, one.title + ": " + one.says]);
      parts.push(choice("Number", measures, chosen.measure, (value) => change({ measure: value })));
    }
    const orders = [
      ["", "as stored"],
      ["falling", "largest first"],
      ["rising", "smallest first"],
    ];
    parts.push(choice("Order of rows", orders, chosen.sort, (value) => change({ sort: value })));
    for (const axis of AXES.filter((each) => offered(each, chosen))) {
      const there = named(data, axis);
      if (there.length < 2) continue;
      const options = [["", "all"], ...there.map((value) => [value, value])];
      parts.push(
        choice("Only " + axis, options, chosen.filter[axis], (value) => change({ ["only." + axis]: value })),
      );
    }
    const wanted = (event) => change({ wanted: event.target.checked ? "yes" : "" });
    const box = h("input", { type: "checkbox", checked: chosen.wanted, onchange: wanted });
    parts.push(h("label", { class: "tick" }, box, " also what studies ask for and is not here"));
    return h("form", { class: "controls", onsubmit: (event) => event.preventDefault() }, parts);
  }

  attentest.view("overview", function (element, data) {
    if (!data.measures.length) return;
    const controls = h("div");
    const shown = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "overview" });
    const note = h("p", { class: "about" });
    let list = [];

    function show() {
      const chosen = chosenNow(data);
      const focused = [...controls.querySelectorAll("select, input")].indexOf(document.activeElement);
      list = entries(data, chosen);
      controls.replaceChildren(form(data, chosen, (values) => (state.write(values), show())));
      if (focused >= 0) controls.querySelectorAll("select, input")[focused]?.focus();
      shown.replaceChildren(table(data, list, chosen));
      const measure = data.measures.find((one) => one.key === chosen.measure);
      note.textContent = chosen.has("experiment")
        ? ""
        : `Read it as: ${measure.direction}. Null: ${measure.null}.`;
    }

    const files = {
      ...picture.exits(() => shown.firstElementChild),
      CSV: () => [spreadsheet(list), "text/csv"],
    };
    const key = h(
      "p",
      { class: "about" },
      "Dots are estimates, lines their 95 % intervals, upright bars the null. Intervals are over seeds and texts; " +
        "where a model has one seed, over texts of this one training. " +
        "Cells with the same number share its axis.",
    );
    element.replaceChildren(
      controls,
      note,
      key,
      shown,
      exits(() => "attentest-overview", files),
    );
    attentest.follow(element, show);
    show();
    if (state.read().has("rows") || state.read().has("columns")) element.scrollIntoView(); // somebody's link
  });
})();
