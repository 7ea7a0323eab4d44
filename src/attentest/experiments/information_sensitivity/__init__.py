"""How much does the agreement of attention and information depend on what the paper leaves open?"""
