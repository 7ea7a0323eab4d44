"""Which of our figures redraw a published one, by experiment and figure; the others are ours alone."""

from __future__ import annotations

REDRAWN = {
    # Jain & Wallace (2019)
    ("importance", "tau-gradient"): "JW-1: histograms of Kendall's tau of attention and gradients, by class",
    ("importance", "tau-loo"): "JW-2: the same for leave-one-out",
    ("importance", "tau-differences"): "JW-3: densities of differences, drawn by the published code only",
    ("permutation", "permutation"): "JW-4: violins of the median output change by largest weight",
    ("adversary", "jsd"): "JW-5: histograms of the ε-max JSD, by class",
    ("adversary", "jsd-violins"): "JW-5: violins of the ε-max JSD by largest weight",
    # Wiegreffe & Pinter (2019)
    ("seed-variance", "seeds"): "WP-2: violins of the JSD between seeds by largest weight",
    ("seed-variance", "output"): "WP-2: JSD between seeds against the change of output",
    ("trained-adversary", "search"): "WP-2: the violins with the search's adversaries in place of seeds",
    ("trained-adversary", "search-output"): "WP-2: the scatter with the search's adversaries",
    ("trained-adversary", "plane"): "WP-4: output TVD against attention JSD over lambda",
    # Serrano & Smith (2019)
    ("single-weight", "djs"): "SS-1: scatter of ΔJS against the gap of weights",
    ("single-weight", "negative"): "SS-1: histogram of the gaps where ΔJS is negative",
    ("single-weight", "flips"): "SS-2: which of two removals flips the decision",
    ("removal", "fraction"): "SS-3: boxes of the share removed until the decision flips",
    ("removal", "mass"): "SS-3: boxes of the attention removed until the decision flips",
    # Meister et al. (2021)
    ("dispersion", "gradient"): "ME-4, Figure 1: inputs and hidden states by gradients",
    ("dispersion", "loo"): "ME-4, Figure 4: inputs and hidden states by leaving out",
    ("sparsity", "entropy-gradient"): "ME-2, Figure 2: entropy of gradient importance by sparsity",
    ("sparsity", "entropy-loo"): "ME-2, Figure 2: entropy of leave-one-out importance by sparsity",
    ("sparsity", "tau"): "ME-3: agreement with importance by sparsity",
    # Treviso & Martins (2020)
    ("communication", "explainers"): "TM: communication success by explainer and words sent",
}
