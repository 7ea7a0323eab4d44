/* global asked */
/* Texts to play with: one at a time, with the way to the next; where pages are served, also to the live one. */
"use strict";

attentest.view("play", function (element) {
  const { h } = attentest;
  const texts = [...element.querySelectorAll("article")];
  const turn = (words, by) => h("button", { type: "button", onclick: () => show(here + by) }, words);
  const [previous, next] = [turn("← Previous", -1), turn("Next →", 1)];
  const place = h("span", { "aria-live": "polite" });
  const key = element.dataset.model;
  const served = typeof asked !== "undefined" && asked.includes(key); // the server says which models it runs
  const edit = served ? h("a", { class: "go" }, "Edit this text") : null;
  let here = 0;

  function show(n) {
    here = n;
    texts.forEach((text, at) => (text.hidden = at !== here));
    previous.disabled = here === 0;
    next.disabled = here === texts.length - 1;
    place.textContent = ` ${here + 1} of ${texts.length} `;
    if (edit) edit.href = "live.html#" + new URLSearchParams({ model: key, text: texts[here].dataset.text });
  }

  element.prepend(h("p", { class: "pages" }, previous, place, next, edit));
  show(0);
});
