/* Two models, two seeds of one, or two studies side by side, with their differences.

   Intervals of a difference take the two sides for independent: they read other models, if the same texts. */
"use strict";

(function () {
  const { h, svg, state, number, interval, choice, csv, exits, picture } = attentest;
  const KINDS = [
    ["models", "two models"],
    ["seeds", "two seeds of a model"],
    ["studies", "two studies"],
  ];
  const WIDE = 180;

  function difference(one, other) {
    if (!one || !other || one.estimate === null || other.estimate === null) return null;
    const apart = other.estimate - one.estimate;
    if (one.low === null || other.low === null) return { apart, half: null };
    const half = Math.hypot((one.high - one.low) / 2, (other.high - other.low) / 2);
    return { apart, half };
  }

  const named = (point) =>
    point.corpus + ": " + point.model + (point.differs ? " (" + point.differs + ")" : "");
  const alone = (estimate) => ({ estimate, low: null, high: null, null: null });

  /* --- what is compared: pairs of numbers, each with its measure and where it is from */

  function ofModels(data, chosen) {
    const sides = [chosen.a, chosen.b].map((file) => data.points.find((point) => point.file === file));
    return data.measures.map((measure) => pair(measure, "", sides[0], sides[1]));
  }

  function pair(measure, where, one, other) {
    return { measure, where, a: one?.found[measure.key], b: other?.found[measure.key], points: [one, other] };
  }

  function ofSeeds(data, chosen) {
    const point = data.points.find((one) => one.file === chosen.model);
    const found = data.measures.filter((measure) => point.by_seed[measure.key]);
    return found.map((measure) => {
      const seeds = point.by_seed[measure.key];
      const [a, b] = [chosen.a, chosen.b].map((seed) => (seed in seeds ? alone(seeds[seed]) : undefined));
      return { measure, where: "", a, b, points: [point, point] };
    });
  }

  /* Models of two studies belong together where corpus, encoder, attention and projection are the same. */
  function ofStudies(data, chosen) {
    const of = (study) => data.points.filter((point) => point.studies.includes(study));
    const same = (one, other) =>
      ["corpus", "encoder", "attention", "projection"].every((axis) => one[axis] === other[axis]);
    const pairs = [];
    for (const one of of(chosen.a))
      for (const other of of(chosen.b))
        if (same(one, other) && one !== other) {
          const differs = [one.differs, other.differs].filter(Boolean).join(", then ");
          const where = one.corpus + ": " + one.model + (differs ? " (" + differs + ")" : "");
          for (const measure of data.measures.filter((each) => each.main))
            pairs.push(pair(measure, where, one, other));
        }
    return pairs;
  }

  const PAIRS = { models: ofModels, seeds: ofSeeds, studies: ofStudies };

  /* --- the table */

  function bar(found, scale) {
    const at = (value) => WIDE / 2 + (value / scale) * (WIDE / 2 - 8);
    const parts = [svg("line", { x1: WIDE / 2, x2: WIDE / 2, y1: 0, y2: 16, class: "zero" })];
    if (found.half !== null)
      parts.push(
        svg("line", {
          x1: at(found.apart - found.half),
          x2: at(found.apart + found.half),
          y1: 8,
          y2: 8,
          class: "interval",
        }),
      );
    parts.push(svg("circle", { cx: at(found.apart), cy: 8, r: 4, class: "dot" }));
    const about = {
      width: WIDE,
      height: 16,
      class: "marks",
      role: "img",
      "aria-label": "difference " + number(found.apart),
    };
    return svg("svg", about, parts);
  }

  function side(found) {
    if (!found) return h("td", { class: "n missing" }, "not run");
    if (found.estimate === null) return h("td", { class: "n missing" }, "undefined");
    const small = [found.low === null ? null : h("small", {}, interval(found))];
    if (found.null !== null) small.push(h("small", {}, "null " + number(found.null)));
    return h("td", { class: "n" }, h("span", { class: "main" }, number(found.estimate)), small);
  }

  function apart(found, scale) {
    if (!found) return [h("td", { class: "n missing" }, "–"), h("td", {})];
    const told =
      found.half === null ? "" : Math.abs(found.apart) > found.half ? "told apart" : "not told apart";
    const number_ = h("span", { class: "main" }, (found.apart > 0 ? "+" : "") + number(found.apart));
    const small = found.half === null ? null : h("small", {}, "± " + number(found.half) + ", " + told);
    return [h("td", { class: "n" }, number_, small), h("td", {}, bar(found, scale))];
  }

  function table(pairs, names) {
    const differences = pairs.map((one) => difference(one.a, one.b));
    const reach = differences.filter(Boolean).map((one) => Math.abs(one.apart) + (one.half || 0));
    const scale = Math.max(...reach, 1e-9);
    const where = pairs.some((one) => one.where);
    const rows = pairs.map((one, place) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, one.measure.says, h("small", {}, one.measure.title)),
        where ? h("td", {}, one.where) : null,
        side(one.a),
        side(one.b),
        apart(differences[place], scale),
      ),
    );
    const heads = ["measure", ...(where ? ["where"] : []), ...names, "difference", ""];
    const top = h(
      "tr",
      {},
      heads.map((head, n) => h("th", { scope: "col", class: n && head !== "where" ? "n" : null }, head)),
    );
    return h("table", { class: "compared" }, h("thead", {}, top), h("tbody", {}, rows));
  }

  function spreadsheet(pairs, names) {
    const sides = names.flatMap((name) => [name, name + ", low", name + ", high", name + ", null"]);
    const rows = pairs.map((one) => {
      const found = difference(one.a, one.b);
      const numbers = [one.a, one.b].flatMap((s) =>
        ["estimate", "low", "high", "null"].map((name) => s && s[name]),
      );
      return [one.measure.key, one.where, ...numbers, found && found.apart, found && found.half];
    });
    return csv([["measure", "where", ...sides, "difference", "plus or minus"], ...rows]);
  }

  /* --- what is chosen */

  function chosenNow(data) {
    const params = state.read();
    const kind = KINDS.some(([name]) => name === params.get("kind")) ? params.get("kind") : "models";
    const among = (list, name, place) =>
      list.includes(params.get(name)) ? params.get(name) : list[Math.min(place, list.length - 1)];
    const files = data.points.map((point) => point.file);
    if (kind === "models") return { kind, a: among(files, "a", 0), b: among(files, "b", 1) };
    if (kind === "studies") {
      const studies = Object.keys(data.studies).filter((name) =>
        data.points.some((p) => p.studies.includes(name)),
      );
      return { kind, studies, a: among(studies, "a", 0), b: among(studies, "b", 1) };
    }
    const model = among(files, "model", 0);
    const numbers = Object.values(data.points.find((point) => point.file === model).by_seed);
    const seeds = [...new Set(numbers.flatMap((one) => Object.keys(one)))];
    return { kind, model, seeds, a: among(seeds, "a", 0), b: among(seeds, "b", 1) };
  }

  function form(data, chosen, change) {
    const models = data.points.map((point) => [point.file, named(point)]);
    const parts = [
      choice("Compare", KINDS, chosen.kind, (kind) => change({ kind, a: "", b: "", model: "" })),
    ];
    const sides = { models, studies: (chosen.studies || []).map((name) => [name, data.studies[name].title]) };
    sides.seeds = (chosen.seeds || []).map((seed) => [seed, "seed " + seed]);
    if (chosen.kind === "seeds")
      parts.push(choice("of", models, chosen.model, (model) => change({ model, a: "", b: "" })));
    for (const name of ["a", "b"])
      parts.push(
        choice(name === "a" ? "first" : "second", sides[chosen.kind], chosen[name], (value) =>
          change({ [name]: value }),
        ),
      );
    const swap = () => change({ a: chosen.b, b: chosen.a });
    parts.push(h("button", { type: "button", onclick: swap }, "Swap"));
    return h("form", { class: "controls", onsubmit: (event) => event.preventDefault() }, parts);
  }

  function names(data, chosen) {
    if (chosen.kind === "models")
      return [chosen.a, chosen.b].map((file) => named(data.points.find((point) => point.file === file)));
    return [chosen.a, chosen.b].map((name) => (chosen.kind === "seeds" ? "seed " + name : name));
  }

  function commands(pairs) {
    const found = new Set();
    for (const one of pairs)
      for (const point of one.points) found.add(point?.done[one.measure.experiment]?.command);
    return [...found].filter(Boolean);
  }

  attentest.view("compare", function (element, data) {
    const controls = h("div");
    const shown = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "comparison" });
    const made = h("p", { class: "cell" });
    let pairs = [];
    let sides = [];

    function show() {
      const chosen = chosenNow(data);
      sides = names(data, chosen);
      controls.replaceChildren(form(data, chosen, (values) => (state.write(values), show())));
      pairs = PAIRS[chosen.kind](data, chosen).filter((one) => one.a || one.b);
      const nothing = h("p", { class: "missing" }, "These two have nothing to set side by side.");
      shown.replaceChildren(pairs.length ? table(pairs, sides) : nothing);
      const asked = commands(pairs).flatMap((command) => [h("code", {}, command), " "]);
      made.replaceChildren(...(asked.length ? ["Made by ", ...asked] : []));
    }

    const files = {
      ...picture.exits(() => shown.firstElementChild),
      CSV: () => [spreadsheet(pairs, sides), "text/csv"],
    };
    element.replaceChildren(
      controls,
      shown,
      exits(() => "attentest-compare", files),
      made,
    );
    attentest.follow(element, show);
    show();
  });
})();
