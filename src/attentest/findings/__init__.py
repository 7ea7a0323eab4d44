"""The import path of the kernels that users rely on; the code is in `statistics`."""
