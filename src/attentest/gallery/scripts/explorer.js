/* The explorer: which seed's model, and its texts. A model was trained several times, and what one training
   attends to another may not; so each has its texts, loaded when it is asked for. All of it is in the address. */
"use strict";

attentest.view("explorer", function (element, first) {
  const { h, state, choice, need } = attentest;
  const { seeds } = first;
  const made = new Map(); // name of a shard -> the texts in it, once they are here
  let here = null; // what is on the page

  const wanted = () => seeds.find(({ seed }) => String(seed) === state.read().get("seed")) || seeds[0];

  function chose(seed) {
    state.write({ seed: seed === String(seeds[0].seed) ? "" : seed });
    return show();
  }

  const options = seeds.map(({ seed }) => [String(seed), `seed ${seed}`]);
  const picker = choice("Seed", options, String(seeds[0].seed), chose);
  const several = h("div", { class: "controls" }, picker);

  async function show() {
    const { seed, name } = wanted();
    if (!made.has(name)) made.set(name, attentest.explored(await need(name)));
    if (wanted().name !== name) return undefined; // somebody was faster
    if (here !== made.get(name)) {
      here = made.get(name);
      picker.querySelector("select").value = String(seed);
      element.replaceChildren(...(seeds.length > 1 ? [several] : []), here.element);
    }
    return here.show();
  }

  addEventListener("keydown", function (event) {
    const typing = event.target.matches("input, select, textarea");
    const elsewhere = element.closest("[data-page]:not(.here)");
    if (!here || typing || elsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") here.step(1);
    if (event.key === "k") here.step(-1);
  });

  attentest.follow(element, show);
  return show().then(() => here.toText());
});
