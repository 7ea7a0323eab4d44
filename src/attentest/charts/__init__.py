"""What all figures share: style, frames, histograms and other shapes. Altair; never torch."""
