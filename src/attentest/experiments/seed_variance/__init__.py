"""Does another seed move attention as far as an adversary does?"""
