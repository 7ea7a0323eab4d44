/* What a report's pages have more while they are served: links to the live page. The server writes `asked`
   above: the keys of the models that can be asked here. Keys come from the page as text, and only known ones
   are linked. */

(function () {
  const link = (address, words, kind) =>
    Object.assign(document.createElement("a"), { href: address, textContent: words, className: kind });

  const pages = document.querySelector("nav.pages");
  if (pages) pages.append(" ", link("live.html", "Live", ""));

  for (const place of document.querySelectorAll("[data-live]")) {
    const models = place.dataset.live.split(" ").map((each) => each.split(":"));
    const here = models.filter(([, key]) => asked.includes(key));
    for (const [seed, key] of here) {
      const words = here.length > 1 ? `Ask it, seed ${seed}` : "Ask it";
      place.append(link(`live.html#model=${encodeURIComponent(key)}`, words, "go"), " ");
    }
  }
})();
