"""Can attention move while all else stays, or must the information move with it?"""
