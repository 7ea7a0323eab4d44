"""Does the item with the largest weight matter more than any other?"""
