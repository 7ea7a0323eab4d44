"""Attention models behind one seam: `read` encodes once, `decide` answers under any attention."""
