/* All pages in one file: the address says which is shown, `#page=...`, and beside it the state of its view. */
"use strict";

document.documentElement.classList.add("routed"); // at once: nothing flashes by while the file is read

addEventListener("DOMContentLoaded", function () {
  const pages = [...document.querySelectorAll("[data-page]")];

  function show() {
    const params = attentest.state.read();
    const page = pages.find((one) => one.dataset.page === params.get("page")) || pages[0];
    const turned = !page.classList.contains("here");
    for (const one of pages) one.classList.toggle("here", one === page);
    document.title = page.dataset.title;
    attentest.open(page);
    const place = params.get("at") && document.getElementById(page.dataset.page + "/" + params.get("at"));
    if (place) place.scrollIntoView();
    else if (turned) scrollTo(0, 0);
  }

  addEventListener("hashchange", show);
  show();
});
