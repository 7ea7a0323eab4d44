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

  /* Each lane: its weights, what the model says under them and how far its output moves (null where no model
     was asked), and what else is known. Of the adversaries no more is kept than how far they may move it. */
  function lanes(text, packed, about) {
    const own = unpacked(packed, "own");
    const asked = packed.effects || {};
    const lane = (name, weights, effect, beside) => ({ name, weights, beside, ...effect });
    const effect = (name) => {
      const [change, says] = asked[name] || [null, null];
      return { moved: known(change) ? number(change) : null, says, flips: says !== null && says !== about.predicted };
    };
    const within = (jsd) => ({ moved: known(jsd) ? `≤ ${about.tolerance}` : null, says: null });
    const tau = (value) => (known(value) ? "τ with attention " + number(value) : "");
    const apart = (jsd) => (known(jsd) ? "JSD from attention " + number(jsd) : "");
    const chance = known(about.confidence) ? `probability ${number(about.confidence)}` : "";
    const told = [
      lane("attention", own, { moved: number(0), says: about.predicted }, chance),
      ...about.importances.map(({ name, column }) =>
        lane(name, unpacked(packed, column), effect(column), tau(about[`tau_${column}`])),
      ),
      permutation(packed, own, about, effect),
      lane("search", unpacked(packed, "search"), within(about.searched), apart(about.searched)),
      lane("exact adversary", unpacked(packed, "exact"), within(about.jsd), apart(about.jsd)),
    ];
    const even = own && own.map(() => 1 / own.length);
    told.push(lane("uniform", even, effect("uniform"), own?.every(known) ? apart(divergence(own, even)) : ""));
    if (text.r && own && own.length === tokens(text).length) {
      const marked = own.map((_, n) => (text.r.includes(n) ? 1 / text.r.length : 0));
      const mass = own.reduce((sum, weight, n) => sum + (marked[n] ? weight : 0), 0);
      told.push(lane("human rationale", marked, effect("rationale"), `holds ${number(mass)} of the attention`));
    }
    return told;
  }

  /* The very permutation that the model was asked about, where it is kept; else one that shows what is meant. */
  function permutation(packed, own, about, effect) {
    const median = known(about.change) ? `median of many orders ${number(about.change)}` : "";
    const asked = unpacked(packed, "permuted");
    if (asked) return { name: "one permutation", weights: asked, beside: median, ...effect("permuted") };
    const weights = own && permuted(own, about.place);
    return { name: "one permutation", weights, beside: median, moved: null, says: null };
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
