/* Which texts are chosen: what the address says, who passes, and the form that changes it. */
"use strict";

attentest.choosing = (function () {
  const { h, state, choice } = attentest;
  const FIRST = { x: ["max_attention"], y: ["jsd", "searched", "tau_gradient"] }; // of what there is

  /* Everything that can be set, from the address; what it does not say is as it is at first. */
  function now(data, names) {
    const params = state.read();
    const range = (name) => {
      const written = (params.get("in." + name) || "").split("~");
      const ends = written.map((end) => (end === "" ? null : Number(end)));
      return ends.length === 2 && !ends.some(Number.isNaN) ? ends : [null, null];
    };
    const axis = (name, place) => {
      const wanted = [params.get(name), ...FIRST[name]].find((each) => names.includes(each));
      return wanted || names[Math.min(place, names.length - 1)];
    };
    return {
      ranges: Object.fromEntries(names.map((name) => [name, range(name)])),
      label: params.get("label") || "",
      predicted: params.get("predicted") || "",
      whole: params.get("whole") === "yes",
      find: params.get("find") || "",
      sort: names.includes(params.get("sort")) ? params.get("sort") : "",
      falling: params.get("order") !== "rising",
      sheet: Math.max(0, Number(params.get("sheet")) || 0),
      text: data.ids.indexOf(params.get("text")),
      x: axis("x", 0),
      y: axis("y", 1),
      each: params.get("scale") === "each",
      fold: params.get("fold") !== "no",
    };
  }

  /* What has no number is outside every range that is asked for. */
  function within(value, [low, high]) {
    if (low === null && high === null) return true;
    return value !== null && (low === null || value >= low) && (high === null || value <= high);
  }

  /* Whether the words of the text hold what is looked for; the words come when somebody looks for some. */
  function holds(data, find, n) {
    return Boolean(data.searched?.[data.places[n]]?.includes(find.toLowerCase()));
  }

  async function searchable(data) {
    const parts = await Promise.all(data.starts.map((_, part) => attentest.need(`${data.texts}-${part}`)));
    data.searched = parts.flat().map(({ t, q }) => [...t, q || ""].join(" ").toLowerCase());
  }

  function passes(data, chosen, n) {
    return (
      (!chosen.label || data.labels[data.label[n]] === chosen.label) &&
      (!chosen.predicted || data.labels[data.predicted[n]] === chosen.predicted) &&
      (!chosen.whole || data.whole[n]) &&
      (!chosen.find || data.ids[n].includes(chosen.find) || holds(data, chosen.find, n)) &&
      Object.entries(chosen.ranges).every(([name, ends]) => within(data.numbers[name][n], ends))
    );
  }

  /* The texts that pass, in the order of the table; those without a number come last either way. */
  function kept(data, chosen) {
    const found = data.ids.map((_, n) => n).filter((n) => passes(data, chosen, n));
    const values = chosen.sort && data.numbers[chosen.sort];
    if (!values) return found;
    const sign = chosen.falling ? -1 : 1;
    const missing = (n) => values[n] === null;
    return found.sort((one, other) => missing(one) - missing(other) || sign * (values[one] - values[other]));
  }

  /* --- the form */

  function range(hub, name) {
    const { chosen, says, change } = hub;
    const set = (place, value) => {
      const ends = [...chosen.ranges[name]];
      ends[place] = value === "" ? null : Number(value);
      const open = ends.every((end) => end === null);
      change({ ["in." + name]: open ? "" : ends.map((end) => end ?? "").join("~") });
    };
    const input = (place, words) => {
      const about = {
        type: "number",
        step: "any",
        placeholder: words,
        value: chosen.ranges[name][place] ?? "",
      };
      about["aria-label"] = `${says[name]}, ${words}`;
      return h("input", { ...about, onchange: (event) => set(place, event.target.value) });
    };
    return h("fieldset", {}, h("legend", {}, says[name]), input(0, "least"), " to ", input(1, "most"));
  }

  function filters(hub) {
    const { data, names, chosen, change } = hub;
    const all = [["", "all"], ...data.labels.map((label) => [label, label])];
    const labels = (words, name) => choice(words, all, chosen[name], (value) => change({ [name]: value }));
    const searched = (event) => change({ find: event.target.value });
    const find = h("input", { type: "search", value: chosen.find, onchange: searched });
    const ticked = (event) => change({ whole: event.target.checked ? "yes" : "" });
    const whole = h("input", { type: "checkbox", checked: chosen.whole, onchange: ticked });
    const ranges = Object.fromEntries(names.map((name) => ["in." + name, ""]));
    const clear = () => change({ label: "", predicted: "", whole: "", find: "", ...ranges });
    return [
      labels("Label", "label"),
      labels("Predicted", "predicted"),
      h("label", { class: "choice" }, h("span", {}, "Text or ID contains"), find),
      ...names.map((name) => range(hub, name)),
      h("label", { class: "tick" }, whole, " only texts with stored importances"),
      h("button", { type: "button", onclick: clear }, "Clear all"),
    ];
  }

  return { now, passes, kept, filters, searchable };
})();
