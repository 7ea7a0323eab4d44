/* One text: its words under every weighting that is kept of it, what each does, and the way to the next. */
"use strict";

attentest.reader = function (hub) {
  const { h, csv, exits, need, picture, strips } = attentest;
  const { data, names } = hub;
  const HINT =
    "Choose a text above, or press j for the first. Keys: j next, k previous; " +
    "in the text, arrows go from word to word.";
  const element = h("section", { class: "text" });

  /* A text costs no more than the two shards it is in. */
  async function held(n) {
    const place = data.places[n];
    if (!data.texts || place < 0) return null;
    const part = data.starts.findLastIndex((start) => start <= place);
    const shards = [`${data.texts}-${part}`, `${data.weights}-${part}`];
    const [words, weights] = await Promise.all(shards.map((name) => need(name)));
    return { text: words[place - data.starts[part]], packed: weights[place] || {} };
  }

  function about(n) {
    const numbers = Object.fromEntries(names.map((name) => [name, data.numbers[name][n]]));
    const predicted = data.labels[data.predicted[n]];
    const { tolerance, importances } = data;
    return { ...numbers, place: data.places[n], predicted, tolerance, importances };
  }

  function head(n) {
    const turn = (words, by) => h("button", { type: "button", onclick: () => hub.step(by) }, words);
    const turns = h("p", { class: "pages" }, turn("← Previous (k)", -1), turn("Next (j) →", 1));
    const label = (list) => h("bdi", {}, data.labels[list[n]]);
    const outside = hub.kept.includes(n) ? "" : "; outside the filters above";
    return [
      h("div", { class: "texthead" }, h("h2", {}, h("bdi", {}, data.ids[n])), turns),
      h("p", { class: "about" }, "label ", label(data.label), ", predicted ", label(data.predicted), outside),
    ];
  }

  function tick(words, checked, changed) {
    const box = h("input", { type: "checkbox", checked, onchange: (event) => changed(event.target.checked) });
    return h("label", { class: "tick" }, box, " " + words);
  }

  function ticks(long) {
    const { chosen, change } = hub;
    const each = (on) => change({ scale: on ? "each" : "" }, true);
    const fold = (on) => change({ fold: on ? "" : "no" }, true);
    const list = [tick("each lane on its own scale", chosen.each, each)];
    if (long) list.push(tick("fold what no lane weighs", chosen.fold, fold));
    return h("div", { class: "controls" }, list);
  }

  function spreadsheet({ all, words }) {
    const lanes = all.filter((lane) => lane.weights);
    const rows = words.map((word, n) => [n + 1, word, ...lanes.map((lane) => lane.weights[n])]);
    return csv([["place", "word", ...lanes.map((lane) => lane.name)], ...rows]);
  }

  /* A picture has all lines, also those that nobody has come near to. */
  function files(drawn) {
    const whole = () => (drawn.fillAll?.(), drawn.lines || drawn.box);
    return { ...picture.exits(whole), CSV: () => [spreadsheet(drawn), "text/csv"] };
  }

  async function show() {
    const { chosen } = hub;
    const n = chosen.text;
    if (n < 0) return element.replaceChildren(h("p", { class: "about" }, HINT));
    const found = await held(n);
    if (n !== hub.chosen.text) return undefined; // somebody was faster
    if (!found) {
      const why = data.missing || "The words of this text are not here.";
      return element.replaceChildren(...head(n), h("p", { class: "missing" }, why));
    }
    const { text, packed } = found;
    const long = text.t.length > strips.LONG;
    const options = { each: chosen.each, fold: chosen.fold && long, room: element.clientWidth };
    const drawn = strips.draw(text, packed, about(n), options);
    const asked = text.q ? h("p", { class: "about" }, "asked: ", h("bdi", {}, text.q)) : "";
    const ways = exits(() => "attentest-text", files(drawn));
    return element.replaceChildren(
      ...head(n),
      asked,
      strips.effects(drawn.all),
      ticks(long),
      drawn.box,
      ways,
    );
  }

  return { element, show };
};
