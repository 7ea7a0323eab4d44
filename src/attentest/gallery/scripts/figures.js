/* The figures of a model's page: drawn already, and on demand a PNG, the numbers behind it, and its
   specification. */
"use strict";

attentest.view("figure", function (element) {
  const { h, need, save, csv, charts } = attentest;
  const { name, source } = element.dataset;
  const spec = () => need(name, source);
  const file = name.split("/").pop();

  /* Charts carry their numbers in sets of records; every set becomes a block with its own heading. */
  async function numbers() {
    const written = await spec();
    const sets = Object.values(written.datasets || {});
    const blocks = sets.map((records) => {
      const heads = [...new Set(records.flatMap((record) => Object.keys(record)))];
      return csv([heads, ...records.map((record) => heads.map((head) => record[head]))]);
    });
    return [blocks.join("\r\n"), "text/csv"];
  }

  const drawn = charts.exits(async () => charts.unseen(await spec()));
  const ways = {
    ...(document.body.dataset.single ? { SVG: drawn.SVG } : {}), // elsewhere the drawing is a file, linked
    PNG: drawn.PNG,
    CSV: numbers,
    JSON: async () => [JSON.stringify(await spec()), "application/json"],
  };
  const buttons = Object.entries(ways).map(([kind, make]) => {
    const write = async () => {
      const [content, type] = await make();
      save(file + "." + kind.toLowerCase(), content, type);
    };
    return h("button", { type: "button", onclick: write, "data-export": kind.toLowerCase() }, kind);
  });
  element.append(...buttons);
});
