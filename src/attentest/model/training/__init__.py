"""Training by the protocol of the papers: loop, objectives, optimiser, selection of the epoch, files."""
