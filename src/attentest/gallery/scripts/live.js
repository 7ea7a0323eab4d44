/* A figure whose legend can be used: the picture stays until Vega has drawn the same specification. */
"use strict";

attentest.view("live", async function (element) {
  const { need, charts, h } = attentest;
  const spec = await need(element.dataset.name, element.dataset.source);
  const chart = h("div", { class: "chart", role: "img", "aria-label": element.getAttribute("aria-label") });
  const picture = element.firstElementChild;
  element.append(chart);
  await charts.draw(chart, spec);
  picture.remove();
});
