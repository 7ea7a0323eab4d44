/* The table of texts: a sheet at a time, by any of its numbers, and the name of a text opens it. */
"use strict";

attentest.texts = function (hub) {
  const { h, need, number, count, csv, exits, picture } = attentest;
  const { data, names, columns } = hub;
  const WHOLE = ["length", "flip"]; // counted, not measured
  let heads = null; // how each text begins, once it is here
  if (data.texts) need(data.texts + "-heads").then((found) => ((heads = found), hub.kept.length && show()));
  const begins = (n) => heads?.[data.places[n]];
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "texts" });
  const sheets = h("p", { class: "pages" });

  /* Once for the largest first, again for the smallest, a third time for the order of the corpus. */
  function heading({ name, says, from }) {
    const { chosen, change } = hub;
    const here = chosen.sort === name;
    const next =
      here && !chosen.falling ? { sort: "", order: "" } : { sort: name, order: here ? "rising" : "" };
    const sign = here ? (chosen.falling ? " ↓" : " ↑") : "";
    const about = { type: "button", title: "from " + from, onclick: () => change(next) };
    const order = here ? (chosen.falling ? "descending" : "ascending") : "none";
    return h("th", { scope: "col", class: "n", "aria-sort": order }, h("button", about, says + sign));
  }

  function written(name, n) {
    const value = data.numbers[name][n];
    if (value === null) return "–";
    return WHOLE.includes(name) ? count(value) : number(value);
  }

  function row(n) {
    const name = (list) => h("bdi", {}, data.labels[list[n]]);
    const wrong = data.label[n] !== data.predicted[n];
    const about = { type: "button", class: "pick" };
    const star = data.whole[n]
      ? h("span", { class: "star", title: "more than its attention was kept" }, " ★")
      : null;
    return h(
      "tr",
      { "aria-selected": String(n === hub.chosen.text), onclick: () => hub.select(n) },
      h(
        "th",
        { scope: "row" },
        h("button", about, h("bdi", {}, begins(n) || data.ids[n])),
        star,
        begins(n) ? h("small", {}, h("bdi", {}, data.ids[n])) : null,
      ),
      h("td", {}, name(data.label)),
      h("td", { class: wrong ? "wrong" : null }, name(data.predicted), wrong ? " ✗" : ""),
      names.map((each) => h("td", { class: "n" }, written(each, n))),
    );
  }

  function show() {
    const { kept, chosen, change, SHEET } = hub;
    const last = Math.max(1, Math.ceil(kept.length / SHEET)) - 1;
    const sheet = Math.min(chosen.sheet, last);
    const heads = ["text", "label", "predicted"].map((words) => h("th", { scope: "col" }, words));
    const rows = kept.slice(sheet * SHEET, (sheet + 1) * SHEET).map(row);
    const head = h("thead", {}, h("tr", {}, heads, columns.map(heading)));
    table.replaceChildren(h("table", { class: "texts" }, head, h("tbody", {}, rows)));
    const turn = (words, to) => {
      const about = { type: "button", disabled: to < 0 || to > last };
      return h("button", { ...about, onclick: () => change({ sheet: to || "" }, true) }, words);
    };
    sheets.replaceChildren(
      h("strong", {}, count(kept.length)),
      ` of ${count(data.ids.length)} texts. `,
      turn("Previous", sheet - 1),
      ` ${sheet + 1} of ${last + 1} `,
      turn("Next", sheet + 1),
    );
  }

  function spreadsheet() {
    const label = (list, n) => data.labels[list[n]];
    const rows = hub.kept.map((n) => {
      const numbers = names.map((name) => data.numbers[name][n]);
      return [data.ids[n], label(data.label, n), label(data.predicted, n), ...numbers];
    });
    return csv([["id", "label", "predicted", ...names], ...rows]);
  }

  const files = { ...picture.exits(() => table.firstElementChild), CSV: () => [spreadsheet(), "text/csv"] };
  return { elements: [sheets, table, exits(() => "attentest-texts", files)], show };
};
