/* The lanes of a text: every weighting of its words that is kept or follows from one, with what it does. */
"use strict";

attentest.lanes = (function () {
  const { number } = attentest;
  const STEPS = 9999; // as Python packs weights: whole shares of the text's largest

  function divergence(p, q) {
    const half = (a, b) =>
      a.reduce((sum, w, n) => (w > 0 ? sum + w * Math.log(w / ((w + b[n]) / 2)) : sum), 0);
    return (half(p, q) + half(q, p)) / 2;
  }

  /* The same order for the same text, whoever looks: a generator of 32 bits, seeded by the text's number. */
  function permuted(weights, seed) {
    let bits = (seed + 1) * 2654435761;
    const next = () => {
      bits ^= bits << 13;
      bits ^= bits >>> 17;
      bits ^= bits << 5;
      return (bits >>> 0) / 4294967296;
    };
    const order = [...weights];
    for (let n = order.length - 1; n > 0; n--) {
      const other = Math.floor(next() * (n + 1));
      [order[n], order[other]] = [order[other], order[n]];
    }
    return order;
  }

  const unpacked = (packed, name) =>
    packed[name] ? packed[name].map((step) => (step < 0 ? null : (step / STEPS) * packed.top)) : null;

  const known = (value) => value !== null && value !== undefined;

  function lanes(text, packed, about) {
    const own = unpacked(packed, "own");
    const length = own ? own.length : 0;
    const told = [];
    const lane = (name, weights, says, missing) => told.push({ name, weights, says, missing });
    const tau = (value) => (known(value) ? "τ with attention " + number(value) : "");
    const moved = (jsd) =>
      known(jsd) ? `JSD ${number(jsd)}; output moves by at most ${about.tolerance}` : "";
    const notKept = "not kept for this text";
    lane(
      "attention",
      own,
      `says ${about.predicted}` + (known(about.confidence) ? `, ${number(about.confidence)}` : ""),
      notKept,
    );
    lane("gradient", unpacked(packed, "gradient"), tau(about.tau_gradient), notKept);
    lane("leave-one-out", unpacked(packed, "loo"), tau(about.tau_loo), notKept);
    const change = known(about.change)
      ? `output changes by ${number(about.change)} (median of all orders tried)`
      : "";
    lane("one permutation", own && permuted(own, about.place), change, notKept);
    lane("search", unpacked(packed, "search"), moved(about.searched), notKept);
    lane("exact adversary", unpacked(packed, "exact"), moved(about.jsd), notKept);
    const uniform = own && own.map(() => 1 / length);
    const apart = own && own.every(known) ? `JSD ${number(divergence(own, uniform))}; output not asked` : "";
    lane("uniform", uniform, apart, notKept);
    if (text.r && own && own.length === tokens(text).length) {
      const marked = own.map((_, n) => (text.r.includes(n) ? 1 / text.r.length : 0));
      const mass = own.reduce((sum, weight, n) => sum + (marked[n] ? weight : 0), 0);
      lane("human rationale", marked, `holds ${number(mass)} of the attention`);
    }
    return told;
  }

  const tokens = (text) => text.t;

  /* Hierarchies weigh sentences: then a column is a sentence. */
  function units(text, length) {
    const words = tokens(text);
    if (!length || length === words.length) return words;
    const starts = text.s || [];
    if (starts.length !== length) return null;
    return starts.map((start, n) => words.slice(start, starts[n + 1]).join(" "));
  }

  return { lanes, units, tokens, known };
})();
