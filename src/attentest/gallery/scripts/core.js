/* What every page shares: data that arrives by script, state that lives in the address, and elements.

   Nothing here sets HTML: words from corpora enter a page as text only. Nothing is fetched: from disk a page
   may not, but it may name a script, and every script that carries data calls `attentest.take`. */
"use strict";

const attentest = (function () {
  const taken = new Map(); // name -> value
  const waiting = new Map(); // name -> what to call once it is here
  const views = new Map(); // kind of view -> what fills its element

  /* --- data and scripts */

  function take(name, value) {
    taken.set(name, value);
    for (const told of waiting.get(name) || []) told(value);
    waiting.delete(name);
  }

  function script(source) {
    return new Promise(function (done, failed) {
      const element = document.createElement("script");
      element.src = source;
      element.onload = done;
      element.onerror = () => failed(new Error("cannot load " + source));
      document.head.append(element);
    });
  }

  /* The value of that name; its script is asked for once, and not at all where the page already holds it. */
  function need(name, source) {
    const block = taken.has(name) ? null : document.querySelector(`[data-block="${CSS.escape(name)}"]`);
    if (block) take(name, JSON.parse(block.textContent));
    if (taken.has(name)) return Promise.resolve(taken.get(name));
    const there = new Promise((done) => waiting.set(name, [...(waiting.get(name) || []), done]));
    if (waiting.get(name).length > 1) return there;
    return script(source || "data/" + name + ".js").then(() => there);
  }

  /* --- the state of a view is its address: what is after the #, as in a query */

  const state = {
    read() {
      return new URLSearchParams(location.hash.slice(1));
    },
    /* Replaces the address without a step back for every key that is pressed. */
    write(values) {
      const params = state.read();
      for (const [name, value] of Object.entries(values)) {
        if (value === "" || value === null || value === undefined) params.delete(name);
        else params.set(name, value);
      }
      params.delete("at"); // a place one came to by a link, where all pages are one file
      for (const [name, value] of [...params]) if (!value) params.delete(name); // such a place elsewhere
      const written = params.toString();
      history.replaceState(null, "", written ? "#" + written : location.pathname + location.search);
    },
  };

  /* --- elements */

  const SVG = "http://www.w3.org/2000/svg";

  function filled(element, about, children) {
    for (const [name, value] of Object.entries(about || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  const h = (tag, about, ...children) => filled(document.createElement(tag), about, children);
  const svg = (tag, about, ...children) => filled(document.createElementNS(SVG, tag), about, children);

  function choice(says, options, chosen, changed) {
    const list = options.map(([value, words]) => h("option", { value, selected: value === chosen }, words));
    const select = h(
      "select",
      { "aria-label": says, onchange: (event) => changed(event.target.value) },
      list,
    );
    return h("label", { class: "choice" }, h("span", {}, says), select);
  }

  /* --- numbers as the tables print them */

  function number(value, digits) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    return value.toFixed(digits === undefined ? 3 : digits).replace("-", "−");
  }

  const count = (value) => value.toLocaleString("en");

  function interval(found) {
    return found.low === null ? "–" : number(found.low) + " to " + number(found.high);
  }

  /* --- ways out: files and the address */

  function save(name, content, type) {
    const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    const link = h("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  /* A field that begins like a formula would be one in a spreadsheet, so an apostrophe goes before it. */
  function field(value) {
    if (value === null || value === undefined) return "";
    let written = String(value);
    if (typeof value === "string" && /^[=+\-@\t]/.test(written)) written = "'" + written;
    return /[",\r\n]/.test(written) ? '"' + written.replaceAll('"', '""') + '"' : written;
  }

  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";

  /* The buttons below a view: what makes each file is asked only when it is wanted. */
  function exits(name, ways) {
    const buttons = Object.entries(ways).map(([kind, make]) => {
      async function write() {
        const [content, type] = await make();
        save(name() + "." + kind.toLowerCase(), content, type);
      }
      return h("button", { type: "button", onclick: write, "data-export": kind.toLowerCase() }, kind);
    });
    const link = h("button", { type: "button", onclick: () => copied(link) }, "Copy link");
    return h("p", { class: "exits" }, h("span", {}, "Export: "), buttons, link);
  }

  function copied(button) {
    const said = (words) => {
      button.textContent = words;
      setTimeout(() => (button.textContent = "Copy link"), 1500);
    };
    const board = navigator.clipboard;
    if (board)
      board.writeText(location.href).then(
        () => said("Copied"),
        () => said("Use the address bar"),
      );
    else said("Use the address bar");
  }

  /* --- views: an element with data-view is filled once its script and its data are here */

  function view(kind, fill) {
    views.set(kind, fill);
  }

  /* Show again when the address changes, unless another page is open where all are one file. */
  function follow(element, show) {
    addEventListener("hashchange", () => element.closest("[data-page]:not(.here)") || show());
  }

  async function open(root) {
    for (const element of root.querySelectorAll("[data-view]:not([data-open])")) {
      const fill = views.get(element.dataset.view);
      if (!fill) continue;
      element.dataset.open = "";
      try {
        await fill(
          element,
          element.dataset.shard ? await need(element.dataset.name, element.dataset.shard) : null,
        );
        performance.mark("open"); // what a benchmark waits for
      } catch (error) {
        element.replaceChildren(h("p", { class: "missing" }, "This view cannot be shown: " + error.message));
        throw error;
      }
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.body.dataset.single) open(document);
  });

  return {
    take,
    need,
    script,
    state,
    h,
    svg,
    choice,
    number,
    count,
    interval,
    save,
    csv,
    exits,
    view,
    follow,
    open,
  };
})();
