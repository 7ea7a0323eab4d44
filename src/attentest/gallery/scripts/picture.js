/* A view as a picture: what stands on the page is written as SVG, and that drawn as PNG.

   Words go where the browser put them, line by line; grounds become rectangles; drawings are copied. So every
   table has the same ways out as a chart, and no page needs to be drawn twice. */
"use strict";

attentest.picture = (function () {
  const { svg } = attentest;
  const CLEAR = /^(rgba\(0, 0, 0, 0\)|transparent)$/;
  const MARGIN = 12;

  function rectangle(box, fill) {
    return svg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, fill });
  }

  /* The lines of a text node: a word whose top differs from the one before it begins a new one. */
  function* lines(node, shift) {
    const range = document.createRange();
    let line = null;
    for (const found of node.data.matchAll(/\S+/g)) {
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const box = range.getBoundingClientRect();
      if (!box.width) continue;
      if (line && Math.abs(line.y - shift(box).y) < 2) line.words += " " + found[0];
      else {
        if (line) yield line;
        line = { ...shift(box), words: found[0] };
      }
    }
    if (line) yield line;
  }

  function* written(node, shift) {
    const style = getComputedStyle(node.parentElement);
    if (style.visibility === "hidden") return;
    for (const line of lines(node, shift)) {
      const about = { x: line.x, y: line.y + line.height * 0.78, fill: style.color };
      about["font-size"] = style.fontSize;
      about["font-weight"] = style.fontWeight;
      about["font-family"] = style.fontFamily;
      yield svg("text", about, line.words);
    }
  }

  /* Colours of a copied drawing are the page's; in a file of its own they must be said. */
  function copy(drawing, box) {
    const twin = drawing.cloneNode(true);
    const from = [drawing, ...drawing.querySelectorAll("*")];
    [twin, ...twin.querySelectorAll("*")].forEach((element, place) => {
      const style = getComputedStyle(from[place]);
      for (const name of ["fill", "stroke", "stroke-width", "opacity", "font-size", "font-family"])
        element.setAttribute(name, style.getPropertyValue(name));
      element.removeAttribute("class");
    });
    for (const name of ["x", "y", "width", "height"]) twin.setAttribute(name, box[name]);
    return twin;
  }

  /* Elements say with `lanes`, a list of colours, what their ground is where it is more than one. */
  function* drawn(element, shift) {
    const style = getComputedStyle(element);
    if (style.display === "none" || element.hidden || element.matches(".exits, .fold, select, input")) return;
    const box = shift(element.getBoundingClientRect());
    if (element instanceof SVGSVGElement) {
      yield copy(element, box);
      return;
    }
    if (!CLEAR.test(style.backgroundColor)) yield rectangle(box, style.backgroundColor);
    const lanes = element.lanes || [];
    const high = box.height / (lanes.length || 1);
    for (const [place, fill] of lanes.entries())
      yield rectangle({ ...box, y: box.y + place * high, height: high - 1 }, fill);
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) yield* written(child, shift);
      else if (child.nodeType === Node.ELEMENT_NODE) yield* drawn(child, shift);
    }
  }

  /* The element as an SVG document. What is scrolled out of sight is drawn, too. */
  function asSvg(element) {
    const whole = element.getBoundingClientRect();
    const shift = (box) => ({
      x: box.x - whole.x + MARGIN,
      y: box.y - whole.y + MARGIN,
      width: box.width,
      height: box.height,
    });
    const width = Math.max(whole.width, element.scrollWidth) + 2 * MARGIN;
    const height = Math.max(whole.height, element.scrollHeight) + 2 * MARGIN;
    const ground = getComputedStyle(document.body).backgroundColor;
    const page = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    page.append(svg("rect", { width, height, fill: ground }), ...drawn(element, shift));
    return new XMLSerializer().serializeToString(page);
  }

  /* An image of our own making, so that the canvas stays readable; twice the size, for print. */
  async function asPng(written) {
    const image = new Image();
    const address = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(written);
    await new Promise((done, failed) => {
      image.onload = done;
      image.onerror = () => failed(new Error("the picture cannot be drawn"));
      image.src = address;
    });
    const canvas = document.createElement("canvas");
    const scale = Math.min(2, 16000 / Math.max(image.width, image.height));
    canvas.width = image.width * scale;
    canvas.height = image.height * scale;
    const brush = canvas.getContext("2d");
    brush.scale(scale, scale);
    brush.drawImage(image, 0, 0);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  /* The two ways out of a view that is no chart. */
  const exits = (element) => ({
    SVG: () => [asSvg(element()), "image/svg+xml"],
    PNG: async () => [await asPng(asSvg(element())), "image/png"],
  });

  return { asSvg, asPng, exits };
})();
