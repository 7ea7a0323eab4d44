"""How well does it predict?"""
