"""How many items must go before the decision flips?"""
