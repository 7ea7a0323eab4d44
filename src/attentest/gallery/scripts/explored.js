/* The texts of one model: a table that ranges and a brush narrow, and one text at a time under every weighting
   that is kept of it. */
"use strict";

attentest.explored = function (data) {
  const { h, state, choosing } = attentest;
  const names = data.columns.map((column) => column.name);
  const SHEET = 20; // rows of the table
  const element = h("div", {});

  /* What the parts share: the data, what is chosen now, and how to choose otherwise. */
  const hub = {
    data,
    names,
    columns: data.columns,
    says: Object.fromEntries(data.columns.map(({ name, says }) => [name, says])),
    SHEET,
    chosen: null,
    kept: [],
    change(values, keepSheet) {
      state.write(keepSheet ? values : { sheet: "", ...values });
      show();
    },
    select(n) {
      hub.change({ text: data.ids[n] }, true);
      reader.element.scrollIntoView({ block: "nearest" });
    },
    step(by) {
      if (!hub.kept.length) return;
      const place = hub.kept.indexOf(hub.chosen.text);
      const next = place < 0 ? 0 : Math.min(Math.max(place + by, 0), hub.kept.length - 1);
      hub.change({ text: data.ids[hub.kept[next]], sheet: Math.floor(next / SHEET) || "" }, true);
    },
  };
  const filters = h("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
  const [scatter, texts, reader] = [attentest.scatter(hub), attentest.texts(hub), attentest.reader(hub)];

  function show() {
    hub.chosen = choosing.now(data, names);
    if (hub.chosen.find && data.texts && !data.searched) choosing.searchable(data).then(show);
    hub.kept = choosing.kept(data, hub.chosen);
    const { activeElement } = document;
    const focused = activeElement?.getAttribute("aria-label") || activeElement?.textContent;
    filters.replaceChildren(...choosing.filters(hub));
    scatter.show();
    texts.show();
    restore(focused);
    return reader.show();
  }

  /* A table that is made anew must not lose the key that somebody is about to press again. */
  function restore(name) {
    if (!name || document.activeElement !== document.body) return;
    const named = (each) => (each.getAttribute("aria-label") || each.textContent) === name;
    [...element.querySelectorAll("button, input, select")].find(named)?.focus();
  }

  const narrowed = h(
    "details",
    { class: "more", open: innerWidth > 700 },
    h("summary", {}, "Filters"),
    filters,
  );
  element.append(
    h("div", { class: "beside" }, scatter.element, narrowed),
    ...texts.elements,
    reader.element,
  );
  const toText = () => hub.chosen.text >= 0 && reader.element.scrollIntoView();
  return { element, show, step: hub.step, toText };
};
