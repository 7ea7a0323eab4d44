/* One text under several weightings, aligned: a column a word, a lane a weighting, one scale for all lanes.

   The text is broken into lines that fit the page, each with the names of its lanes; lines are filled when they
   come near the window, so a text of thousands of words opens as fast as a short one. */
"use strict";

attentest.strips = (function () {
  const { h, number, count } = attentest;
  const { lanes, units, tokens, known } = attentest.lanes;
  const LANE = 16; // pixels
  const NAMES = 124;
  const LONG = 300; // words, from which cold stretches are folded
  const FOLD = 25; // words that no lane weighs, in a row
  const AT_ONCE = 8; // lines; the others are filled when they come near
  const COLD = 0.02; // of the largest weight

  /* --- colours: a share of the warm colour over the ground, so that day and night both have their own */

  function warmth(weight, top) {
    if (!known(weight)) return "var(--unknown)";
    const share = top > 0 ? Math.sqrt(Math.min(Math.max(weight / top, 0), 1)) : 0;
    return `color-mix(in srgb, var(--hot) ${(100 * share).toFixed(1)}%, var(--cold))`;
  }

  function ground(colours) {
    const stops = colours.map(
      (colour, n) =>
        `${colour} ${n * LANE}px ${(n + 1) * LANE - 1}px, var(--ground) ${(n + 1) * LANE - 1}px ${(n + 1) * LANE}px`,
    );
    return `linear-gradient(to bottom, ${stops.join(", ")})`;
  }

  /* --- columns and lines */

  function columns(words, shown, top, fold) {
    const cold = (n) => shown.every(({ weights }) => known(weights[n]) && weights[n] < COLD * top);
    const found = [];
    for (let n = 0; n < words.length; n++) {
      let end = n;
      while (fold && end < words.length && cold(end)) end++;
      if (end - n >= FOLD) {
        found.push({ from: n, to: end });
        n = end - 1;
      } else found.push({ at: n, word: words[n] || "∅" });
    }
    return found;
  }

  const width = (column, most) =>
    column.word === undefined ? 110 : Math.min(Math.max(30, 12 + 7.6 * column.word.length), most);

  function broken(list, room, most) {
    const lines = [[]];
    let used = 0;
    for (const column of list) {
      const wide = width(column, most);
      if (used + wide > room && lines.at(-1).length) {
        lines.push([]);
        used = 0;
      }
      lines.at(-1).push(column);
      used += wide;
    }
    return lines;
  }

  /* --- the element */

  function draw(text, packed, about, options) {
    const all = lanes(text, packed, about);
    const shown = all.filter((lane) => lane.weights);
    const words = units(text, shown[0]?.weights.length);
    const box = h("div", { class: "strips", tabindex: "0", role: "group" });
    box.setAttribute("aria-label", "the words with their weights; arrow keys go from word to word");
    if (!words || !shown.length) {
      box.append(
        plain(
          text,
          words ? "No weights are kept for this text." : "The weights are of other units than words.",
        ),
      );
      return { box, all, words: words || tokens(text) };
    }
    const sentences = words.length !== tokens(text).length;
    const tops = shown.map(({ weights }) => Math.max(...weights.filter(known)));
    const top = Math.max(...tops);
    const scale = (n) => (options.each ? tops[n] : top);
    const open = new Set();
    const readout = h("p", { class: "readout", "aria-live": "polite" }, "Point at a word for its numbers.");
    const lines = h("div", { class: "lines" });
    const room = Math.max((options.room || 800) - NAMES - 8, 160);
    const most = sentences ? room : Math.min(170, room);

    function column(one) {
      if (one.word === undefined) {
        const words_ = count(one.to - one.from) + " words";
        const unfold = () => (open.add(one.from), arrange());
        const button = h(
          "button",
          { type: "button", class: "fold", title: "show them", onclick: unfold },
          "… " + words_ + " …",
        );
        return h("div", { class: "column folded" }, button);
      }
      const colours = shown.map(({ weights }, n) => warmth(weights[one.at], scale(n)));
      const cells = h("div", { class: "cells" });
      cells.style.height = LANE * shown.length + "px";
      cells.style.background = ground(colours);
      Object.defineProperty(cells, "lanes", { get: () => colours.map(resolved) });
      const kind = sentences ? "word sentence" : "word";
      const made = h(
        "div",
        { class: "column", "data-at": one.at },
        h("bdi", { class: kind }, one.word),
        cells,
      );
      made.style.width = width(one, most) + "px";
      return made;
    }

    function filled(element, line) {
      if (element.dataset.filled) return;
      element.dataset.filled = "yes";
      const names = shown.map(({ name }) => h("span", {}, name));
      element.replaceChildren(
        h("div", { class: "names", "aria-hidden": "true" }, h("span", { class: "word" }, "\u00a0"), names),
        ...line.map(column),
      );
    }

    const near = new IntersectionObserver(
      (seen) => {
        for (const { target, isIntersecting } of seen)
          if (isIntersecting) (filled(target, target.line), near.unobserve(target));
      },
      { rootMargin: "600px" },
    );

    function arrange() {
      const list = columns(words, shown, top, options.fold).flatMap((one) =>
        one.word === undefined && open.has(one.from)
          ? words.slice(one.from, one.to).map((word, n) => ({ at: one.from + n, word: word || "∅" }))
          : [one],
      );
      near.disconnect();
      const made = broken(list, room, most).map((line, place) => {
        const element = h("div", { class: "line" });
        if (!sentences) element.style.minHeight = 26 + LANE * shown.length + "px";
        element.line = line;
        if (place < AT_ONCE) filled(element, line);
        else near.observe(element);
        return element;
      });
      lines.replaceChildren(...made);
    }

    /* --- a word's numbers, by pointer and by key */

    let current = -1;
    function point(at) {
      current = Math.min(Math.max(at, 0), words.length - 1);
      for (const old of lines.querySelectorAll(".current")) old.classList.remove("current");
      const target = lines.querySelector(`[data-at="${current}"]`);
      if (target) target.classList.add("current");
      const numbers = shown.map(({ name, weights }) => `${name} ${number(weights[current], 4)}`);
      readout.replaceChildren(
        h("bdi", {}, words[current]),
        ` (${current + 1} of ${words.length}): ` + numbers.join(", "),
      );
      return target;
    }
    lines.addEventListener("pointerover", (event) => {
      const found = event.target.closest("[data-at]");
      if (found) point(Number(found.dataset.at));
    });
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || event.target !== box) return;
      event.preventDefault();
      point(current + step)?.scrollIntoView({ block: "nearest" });
    });

    arrange();
    box.append(readout, lines, legend(options.each ? null : top));
    const fillAll = () => [...lines.children].forEach((element) => filled(element, element.line));
    return { box, all, words, lines, fillAll };
  }

  /* What a mixed colour is in numbers, for a picture that has no style sheet. */
  function resolved(colour) {
    const probe = document.createElement("i");
    probe.style.color = colour;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    const srgb = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)/.exec(found);
    return srgb
      ? `rgb(${srgb
          .slice(1, 4)
          .map((part) => Math.round(255 * part))
          .join(",")})`
      : found;
  }

  function plain(text, why) {
    return h(
      "div",
      {},
      h("p", { class: "missing" }, why),
      h(
        "p",
        { class: "plain" },
        tokens(text)
          .map((word) => [h("bdi", {}, word), " "])
          .flat(),
      ),
    );
  }

  function legend(top) {
    if (top === null) return h("p", { class: "about" }, "Each lane goes up to its own largest weight.");
    const keys = [0, 0.05, 0.25, 0.5, 1].map((share) => {
      const key = h("span", { class: "key" });
      key.style.background = warmth(share * top, top);
      return h("span", {}, key, " " + number(share * top, top < 0.05 ? 4 : 3) + " ");
    });
    return h(
      "p",
      { class: "about legend" },
      "weight, on one scale for all lanes: ",
      keys,
      " Importances are shares of their sum.",
    );
  }

  /* What each weighting does, beside the weights. */
  function effects(all) {
    const heads = ["weights", "prediction", "output moves by", "beside"];
    const top = h("tr", {}, heads.map((words) => h("th", { scope: "col" }, words)));
    const table = h("table", { class: "effects" }, h("thead", {}, top), h("tbody", {}, all.map(effect)));
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "effects" }, table);
  }

  function effect({ name, weights, says, flips, moved, beside }) {
    const head = h("th", { scope: "row" }, name);
    if (!weights) return h("tr", {}, head, h("td", { class: "missing", colspan: "3" }, "not kept for this text"));
    const unknown = (words) => h("span", { class: "missing" }, words);
    return h(
      "tr",
      {},
      head,
      h("td", { class: flips ? "wrong" : null }, says ? h("bdi", {}, says) : unknown("–"), flips ? " (flips)" : ""),
      h("td", { class: "n" }, moved ?? unknown("not asked")),
      h("td", {}, beside),
    );
  }

  return { draw, effects, LONG };
})();
