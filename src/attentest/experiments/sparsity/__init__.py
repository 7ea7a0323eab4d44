"""Does sparser attention make importance sparser, and does it come to agree with it?"""
