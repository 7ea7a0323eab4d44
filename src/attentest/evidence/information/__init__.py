"""Hidden states and outputs as symbols: what estimates of mutual information start from."""
