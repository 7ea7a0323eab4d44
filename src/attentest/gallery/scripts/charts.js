/* Charts: specifications that Python wrote, drawn by Vega without evaluating any string as a program. */
"use strict";

attentest.charts = (function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const OPTIONS = {
    ast: true, // expressions are walked, never evaluated: the page forbids that
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
    mode: "vega-lite",
    renderer: "canvas", // thousands of points are no trouble there
  };

  /* The library is as large as all else together, so it comes with the first chart. */
  let library = null;
  function vega() {
    if (!library) library = window.vegaEmbed ? Promise.resolve() : attentest.script("scripts/vega.js");
    return library;
  }

  const NIGHT = {
    axis: {
      gridColor: "#33333d",
      domainColor: "#77778a",
      tickColor: "#77778a",
      labelColor: "#dcdce6",
      titleColor: "#dcdce6",
    },
    legend: { labelColor: "#dcdce6", titleColor: "#a9a9b8" },
    title: { color: "#f0f0f5", subtitleColor: "#a9a9b8" },
  };

  function themed(spec) {
    const config = { ...spec.config, background: "transparent" };
    if (!dark.matches) return { ...spec, config };
    for (const [part, colours] of Object.entries(NIGHT)) config[part] = { ...config[part], ...colours };
    return { ...spec, config };
  }

  async function draw(element, spec) {
    await vega();
    return (await window.vegaEmbed(element, themed(spec), OPTIONS)).view;
  }

  /* A chart that nobody sees, for its files; always as it would be printed, on white. */
  async function unseen(spec) {
    await vega();
    return (await window.vegaEmbed(document.createElement("div"), spec, OPTIONS)).view;
  }

  const exits = (view) => ({
    SVG: async () => [await (await view()).toSVG(), "image/svg+xml"],
    PNG: async () => {
      const canvas = await (await view()).toCanvas(2);
      return [await new Promise((done) => canvas.toBlob(done, "image/png")), "image/png"];
    },
  });

  return { draw, unseen, exits, dark };
})();
